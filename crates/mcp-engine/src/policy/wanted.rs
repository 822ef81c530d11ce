//! What a server asks of the client inside an answer, as the newest revision has it: an answer that says
//! what input is required. Each request in it is judged as if the server had sent it by itself.

use bytes::Bytes;
use mcp_wire::{Message, scan};

use super::govern::{Governed, Opinion};
use super::rules::VerdictKind;
use super::{Refused, Ruling, Rulings};
use crate::conversation::Speaker;
use crate::envelope::ProxyMessage;

/// Requests inside one answer that are judged: people answer them.
const WANTED_MAX: usize = 256;

static INPUT_REQUIRED: std::sync::LazyLock<scan::Word> =
    std::sync::LazyLock::new(|| scan::Word::new(b"input_required"));
static ESCAPE: std::sync::LazyLock<scan::Word> = std::sync::LazyLock::new(|| scan::Word::new(b"\\u"));

/// Whether an answer may want input. Most are told by what is not in them.
pub(super) fn may_want(answer: &Message) -> bool {
    let bytes = answer.bytes();
    (scan::mentions(bytes, &INPUT_REQUIRED) || (answer.has_escapes() && scan::mentions(bytes, &ESCAPE)))
        && scan::member_at(bytes, ["result", "inputRequests"]).is_some()
}

impl Governed {
    /// Judges the requests in an answer. One that is denied takes the answer with it.
    pub(super) fn judge_wanted(&mut self, answer: &ProxyMessage, speaker: &Speaker) -> Result<Rulings, Refused> {
        // A client that reads it otherwise would be asked otherwise.
        if let Err(unfit) = self.fit_throughout(answer) {
            return Err(Refused::Unfit(unfit));
        }
        let bytes = answer.message.bytes();
        let Some(requests) = scan::member_at(bytes, ["result", "inputRequests"]) else { return Ok(Rulings::None) };
        let mut rulings: Vec<(Message, Ruling)> = Vec::new();
        for (_, span) in scan::object_members(&bytes[requests.range()]) {
            if rulings.len() == WANTED_MAX {
                return Err(Refused::Unfit(format!("it asks for more than {WANTED_MAX} things")));
            }
            let wanted = &bytes[requests.range()][span.range()];
            let request = ProxyMessage { message: as_request(wanted), correlated: None, ..answer.clone() };
            match self.consider(&request, speaker) {
                Opinion::Ruled(mut ruling) => {
                    // Nobody can be asked about a part of something.
                    if matches!(ruling.verdict, VerdictKind::Deny | VerdictKind::Ask) {
                        ruling.verdict = VerdictKind::Deny;
                        return Err(Refused::Denied(Box::new(ruling)));
                    }
                    rulings.push((request.message, ruling));
                }
                Opinion::Each(uses) => rulings.extend(uses),
                Opinion::Unfit(why) => return Err(Refused::Unfit(format!("something that it asks for: {why}"))),
                Opinion::Fit => return Err(Refused::Unfit("something that it asks for is no request".into())),
            }
        }
        Ok(Rulings::Each(rulings))
    }
}

/// What an answer asks for, as a request of its own.
fn as_request(wanted: &[u8]) -> Message {
    let wanted = wanted.trim_ascii();
    let members = wanted.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or(wanted).trim_ascii();
    let comma: &[u8] = if members.is_empty() { b"" } else { b"," };
    let head: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":0";
    Message::new(Bytes::from([head, comma, members, b"}"].concat()))
}
