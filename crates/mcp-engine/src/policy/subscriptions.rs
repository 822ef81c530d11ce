//! Requests of the newest revision that ask to be told of several resources at once. Each of them is
//! judged as the request of its own that it was before, and the strictest word counts.

use mcp_wire::Message;

use super::Ruling;
use super::govern::Governed;
use super::rules::VerdictKind;
use crate::conversation::Speaker;
use crate::envelope::ProxyMessage;

/// The only method that does.
const SUBSCRIBES: &str = "subscriptions/listen";

impl Governed {
    /// What counts for a message that was judged as a whole, once what it asks for in detail is, too.
    pub(super) fn with_subscriptions(
        &mut self,
        mut ruling: Ruling,
        message: &ProxyMessage,
        speaker: &Speaker,
    ) -> Ruling {
        if ruling.about.as_ref().is_some_and(|(method, _)| &**method != SUBSCRIBES) {
            return ruling;
        }
        for address in message.message.subscriptions() {
            let request =
                [br#"{"jsonrpc":"2.0","id":0,"method":"resources/subscribe","params":{"uri":"#, &address[..], b"}}"];
            let asked = ProxyMessage { message: Message::new(request.concat().into()), ..message.clone() };
            let one = self.rule(&asked, speaker);
            ruling.observed.extend(
                one.observed.iter().filter(|rule| !ruling.observed.contains(rule)).cloned().collect::<Vec<_>>(),
            );
            if strictness(one.verdict) > strictness(ruling.verdict) {
                ruling = Ruling { observed: ruling.observed, ..one };
            }
        }
        ruling
    }
}

fn strictness(verdict: VerdictKind) -> u8 {
    match verdict {
        VerdictKind::Allow | VerdictKind::Observe => 0,
        VerdictKind::Ask => 1,
        VerdictKind::Deny => 2,
    }
}
