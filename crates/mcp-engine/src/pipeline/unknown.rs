//! Calls of hidden tools, under `hide_denied`. The server gets a call of a tool that no server has, without the
//! arguments, and its answer goes to the client with the name that the client gave. Servers answer such calls each in
//! their own way; a hidden tool is answered as a missing one.

use std::collections::VecDeque;

use bytes::Bytes;
use mcp_store::{Outcome, OutcomeKind};
use mcp_wire::splice::splice;
use mcp_wire::{Id, Kind, Message, scan};
use memchr::memmem;
use uuid::Uuid;

use super::{Outbox, Outgoing, ParkedMark, Pipeline, Release};
use crate::conversation::{Conversation, Part};
use crate::envelope::{Lane, ProxyMessage, Side};
use crate::policy::Ruling;

/// Calls of hidden tools, per conversation, that wait for the server's answer to a missing one; the proxy answers
/// further ones itself.
const OPEN_MAX: usize = 256;
/// Bytes of a name as JSON that is remembered. The proxy itself answers a call of a longer one, which no server has.
const NAME_BYTES_MAX: usize = 1_024;
/// Stand-ins of one message that get their names back: a name may be longer than its stand-in, and a hostile server
/// could fill a message with stand-ins.
const RENAMED_MAX: usize = 1_000;
/// Calls that are over and whose names are still restored: a server may log after it answered.
const OVER_MAX: usize = 64;

/// Digits of the number at the end of a stand-in.
const DIGITS: usize = 8;

/// Calls of hidden tools, with the names that the server got.
pub(super) struct Unknown {
    /// What the names begin with that servers get in place of hidden ones.
    prefix: String,
    count: u32,
    calls: VecDeque<Call>,
}

struct Call {
    sequence: u64,
    conversation: u32,
    id: Option<Id>,
    /// It was answered or cancelled.
    is_over: bool,
    /// The number at the end of the name that the server got.
    number: u32,
    /// The name that the client gave, as JSON has it between quotes.
    name: String,
}

impl Default for Unknown {
    fn default() -> Self {
        Self { prefix: format!("tool_{}", Uuid::new_v4().simple()), count: 0, calls: VecDeque::new() }
    }
}

impl Unknown {
    /// The call of a tool that no server has, in place of `call`. Of its parameters `_meta` and `task` stay, and
    /// arguments that are `null`: servers check them before they look for the tool.
    fn stand_in_for(&mut self, call: &ProxyMessage) -> Option<Message> {
        let is_open = |other: &&Call| !other.is_over && other.conversation == call.conversation;
        if self.calls.iter().filter(is_open).count() >= OPEN_MAX {
            return None;
        }
        let bytes = call.message.bytes();
        let params = scan::member_at(bytes, ["params"])?;
        let name = call.message.name().filter(|name| name.len() <= NAME_BYTES_MAX)?;
        let name = serde_json::to_string(&*name).ok().filter(|name| name.len() <= NAME_BYTES_MAX)?;
        let said = |member| scan::member_at(bytes, ["params", member]).map(|span| &bytes[span.range()]);
        self.count = self.count.wrapping_add(1);
        let (number, prefix) = (self.count, &self.prefix);
        let mut replaced = b"{".to_vec();
        for member in ["_meta", "task"] {
            if let Some(json) = said(member) {
                replaced.extend_from_slice(format!(r#""{member}":"#).as_bytes());
                replaced.extend_from_slice(json);
                replaced.push(b',');
            }
        }
        let arguments = if said("arguments") == Some(b"null") { "null" } else { "{}" };
        replaced.extend_from_slice(format!(r#""name":"{prefix}{number:08x}","arguments":{arguments}}}"#).as_bytes());
        let name = name[1..name.len() - 1].to_owned();
        let (sequence, conversation, id) = (call.sequence, call.conversation, call.message.id());
        self.calls.push_back(Call { sequence, conversation, id, is_over: false, number, name });
        Some(Message::new(splice(bytes, params, &replaced)))
    }

    /// The server's message with the client's names restored, if it has stand-ins.
    pub(super) fn named_again(&mut self, message: &ProxyMessage) -> Option<Message> {
        let renamed = self.renamed(message.message.bytes());
        self.end_where(|call| Some(call.sequence) == message.correlated);
        renamed.map(|bytes| Message::new(Bytes::from(bytes)))
    }

    /// `bytes` with the names of clients in place of stand-ins, if there are any.
    fn renamed(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut whole, mut taken_to) = (Vec::new(), 0);
        for at in memmem::find_iter(bytes, self.prefix.as_bytes()).take(RENAMED_MAX) {
            let digits = at + self.prefix.len();
            let end = digits + DIGITS;
            let number = bytes.get(digits..end).and_then(|digits| std::str::from_utf8(digits).ok());
            let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let Some(call) = number.and_then(|number| self.calls.iter().find(|call| call.number == number)) else {
                continue;
            };
            whole.extend_from_slice(&bytes[taken_to..at]);
            whole.extend_from_slice(call.name.as_bytes());
            taken_to = end;
        }
        if taken_to == 0 {
            return None;
        }
        whole.extend_from_slice(&bytes[taken_to..]);
        Some(whole)
    }

    /// A client takes back a request.
    fn cancel(&mut self, message: &ProxyMessage) {
        if let Some(id) = message.message.cancelled_id() {
            self.end_where(|call| call.conversation == message.conversation && call.id.as_ref() == Some(&id));
        }
    }

    fn end_where(&mut self, is_it: impl Fn(&Call) -> bool) {
        let Some(call) = self.calls.iter_mut().find(|call| !call.is_over && is_it(call)) else { return };
        call.is_over = true;
        if self.calls.iter().filter(|call| call.is_over).count() > OVER_MAX
            && let Some(oldest) = self.calls.iter().position(|call| call.is_over)
        {
            self.calls.remove(oldest);
        }
    }

    /// A conversation is over.
    pub(super) fn forget(&mut self, conversation: u32) {
        self.calls.retain(|call| call.conversation != conversation);
    }
}

impl Pipeline {
    /// Whether the server answers a denied call, as one of a tool that it does not have. A tool that a call uses through
    /// a proxy tool has no name of its own in the call.
    pub(super) fn is_answered_as_unknown(
        &self,
        conversation: &Conversation,
        call: &ProxyMessage,
        ruling: &Ruling,
    ) -> bool {
        let said = &call.message;
        let is_named = |ruling: &Ruling| match &ruling.about {
            Some((method, Some(tool))) => {
                &**method == "tools/call"
                    && said.method().is_some_and(|said| *said == **method)
                    && said.name().is_some_and(|name| *name == **tool)
            }
            _ => false,
        };
        ruling.is_hidden
            && conversation.part != Part::Entrance
            && call.from == Side::Client
            && said.glance().kind == Kind::Request
            && self.governance.rules().is_some_and(|rules| rules.hide_denied)
            && is_named(ruling)
    }

    /// Sends the server a call of no tool in place of a denied one. Transports take it for a message that was parked,
    /// edited, and came free at once.
    pub(super) fn send_as_unknown(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        call: ProxyMessage,
        ruling: &Ruling,
        out: &mut Outbox,
    ) -> Option<ProxyMessage> {
        let Some(stand_in) = self.unknown.stand_in_for(&call) else { return Some(call) };
        let verdict = ("deny", ruling.decider(), None);
        self.journal.decided(lane.speaker(conversation), &call, ruling, verdict, 0);
        self.journal.keep_held(&call, lane);
        let outcome = Outcome {
            what: OutcomeKind::Modified,
            by: "rules".into(),
            why: format!("denied by {}; the server gets a call of no tool", ruling.name()),
            held_ns: 0,
            edited: Some(stand_in.bytes().clone()),
        };
        self.journal.outcome(&call, outcome);
        let release = Release { is_edited: true, ..Release::of(&call) };
        out.parked.push(ParkedMark { sequence: call.sequence, correlated: None, is_refused: false });
        let judged = self.governance.policy.pass_own(ProxyMessage { message: stand_in, ..call });
        self.holds.release(Release { onward: Some(Outgoing::Message(judged)), ..release });
        None
    }

    /// A message of the server's with the names that its client gave. It comes back as it came, if it had others.
    pub(super) fn name_again(&mut self, message: &mut ProxyMessage) -> Option<Message> {
        if self.unknown.calls.is_empty() {
            return None;
        }
        if message.from == Side::Client {
            self.unknown.cancel(message);
            return None;
        }
        let named = self.unknown.named_again(message)?;
        Some(std::mem::replace(&mut message.message, named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(names: &[(u32, &str)]) -> Unknown {
        let call = |(number, name): &(u32, &str)| Call {
            sequence: 1,
            conversation: 1,
            id: None,
            is_over: false,
            number: *number,
            name: (*name).to_owned(),
        };
        Unknown { prefix: "tool_".into(), count: 9, calls: names.iter().map(call).collect() }
    }

    #[track_caller]
    fn check(said: &str, expected: Option<&str>) {
        let renamed = unknown(&[(1, "delete"), (0xab, "tool_00000001")]).renamed(said.as_bytes());
        assert_eq!(renamed.as_deref().map(String::from_utf8_lossy).as_deref(), expected);
    }

    #[test]
    fn stand_ins_get_their_names_back_once() {
        check("no tool_00000001, no tool_000000ab!", Some("no delete, no tool_00000001!"));
        check("tool_00000001", Some("delete"));
        check("tool_00000002 tool_0000000 tool_", None);
        check("nothing", None);
    }

    /// A server that has seen one stand-in may fill a message with it.
    #[test]
    fn a_message_full_of_stand_ins_grows_by_so_much_only() {
        let name = "x".repeat(NAME_BYTES_MAX);
        let said = "tool_00000001".repeat(100_000);
        let renamed = unknown(&[(1, &name)]).renamed(said.as_bytes()).expect("there are stand-ins");
        assert!(renamed.len() <= said.len() + RENAMED_MAX * NAME_BYTES_MAX, "{}", renamed.len());
    }
}
