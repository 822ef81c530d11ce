//! Calls of hidden tools, under `hide_denied`. The server gets a call of a tool that no server has, without the
//! arguments, and its answer goes to the client with the name that the client gave. Servers answer such calls each in
//! their own way; a hidden tool is answered as a missing one.

use bytes::Bytes;
use mcp_store::{Outcome, OutcomeKind};
use mcp_wire::reply;
use mcp_wire::splice::splice;
use mcp_wire::{Kind, Message, scan};
use memchr::memmem;
use uuid::Uuid;

use super::{Outbox, Outgoing, ParkedMark, Pipeline, Release};
use crate::conversation::{Conversation, Part};
use crate::envelope::{Lane, ProxyMessage, Side};
use crate::policy::Ruling;

/// Such calls of a conversation that have no answer; the proxy answers more of them itself.
const OPEN_MAX: usize = 256;

/// Calls of hidden tools that wait for the server's answer.
pub(super) struct Unknown {
    /// What the names begin with that servers get in place of hidden ones.
    prefix: String,
    count: u64,
    open: Vec<Open>,
}

struct Open {
    /// Of the call.
    sequence: u64,
    conversation: u32,
    /// The name that the server got.
    stand_in: String,
    /// The name that the client gave, as JSON has it between quotes.
    name: String,
}

impl Default for Unknown {
    fn default() -> Self {
        Self { prefix: format!("tool_{}", Uuid::new_v4().simple()), count: 0, open: Vec::new() }
    }
}

impl Unknown {
    /// The call of a tool that no server has, in place of `call`. Of its parameters only `_meta` stays.
    fn stand_in_for(&mut self, call: &ProxyMessage) -> Option<Message> {
        if self.open.iter().filter(|open| open.conversation == call.conversation).count() >= OPEN_MAX {
            return None;
        }
        let bytes = call.message.bytes();
        let params = scan::member_at(bytes, ["params"])?;
        let name = serde_json::to_string(&*call.message.name()?).ok()?;
        let meta = scan::member_at(bytes, ["params", "_meta"]).map(|meta| &bytes[meta.range()]);
        self.count += 1;
        let stand_in = format!("{}{:04x}", self.prefix, self.count);
        let mut replaced = b"{".to_vec();
        if let Some(meta) = meta {
            replaced.extend_from_slice(br#""_meta":"#);
            replaced.extend_from_slice(meta);
            replaced.push(b',');
        }
        replaced.extend_from_slice(format!(r#""name":"{stand_in}","arguments":{{}}}}"#).as_bytes());
        let name = name[1..name.len() - 1].to_owned();
        let (sequence, conversation) = (call.sequence, call.conversation);
        self.open.push(Open { sequence, conversation, stand_in, name });
        Some(Message::new(splice(bytes, params, &replaced)))
    }

    /// The server's message with the client's names restored, if it has stand-ins. A server that executes unknown tools
    /// must not report success for a denied call: the proxy composes that answer.
    pub fn named_again(&mut self, message: &ProxyMessage) -> Option<Message> {
        let answered = message.correlated.and_then(|call| self.open.iter().find(|open| open.sequence == call));
        if let Some(open) = answered.filter(|_| !is_failure(&message.message))
            && let (Some(id), Ok(name)) = (message.message.id(), serde_json::from_str::<String>(&open.quoted()))
        {
            let answer = reply::unknown(&id, "tools/call", &name);
            self.open.retain(|open| Some(open.sequence) != message.correlated);
            return Some(Message::new(answer));
        }
        let bytes = message.message.bytes();
        let has_any = memmem::find(bytes, self.prefix.as_bytes()).is_some();
        let mut renamed = has_any.then(|| bytes.to_vec());
        for open in self.open.iter().filter(|open| open.conversation == message.conversation) {
            if let Some(bytes) = &mut renamed {
                *bytes = replaced(bytes, open.stand_in.as_bytes(), open.name.as_bytes());
            }
        }
        if let Some(call) = message.correlated {
            self.open.retain(|open| open.sequence != call);
        }
        renamed.map(|bytes| Message::new(Bytes::from(bytes)))
    }

    /// A conversation is over.
    pub fn forget(&mut self, conversation: u32) {
        self.open.retain(|open| open.conversation != conversation);
    }
}

impl Open {
    fn quoted(&self) -> String {
        format!("\"{}\"", self.name)
    }
}

/// Whether an answer says that a tool failed.
fn is_failure(answer: &Message) -> bool {
    let bytes = answer.bytes();
    let says_so = || scan::member_at(bytes, ["result", "isError"]).is_some_and(|span| bytes[span.range()] == *b"true");
    answer.glance().kind == Kind::Error || says_so()
}

/// `bytes` with `other` wherever `word` stands.
fn replaced(bytes: &[u8], word: &[u8], other: &[u8]) -> Vec<u8> {
    let (mut whole, mut taken_to) = (Vec::with_capacity(bytes.len()), 0);
    for at in memmem::find_iter(bytes, word) {
        whole.extend_from_slice(&bytes[taken_to..at]);
        whole.extend_from_slice(other);
        taken_to = at + word.len();
    }
    whole.extend_from_slice(&bytes[taken_to..]);
    whole
}

impl Pipeline {
    /// Whether the server answers a denied call, as one of a tool that it does not have. A gateway answers for its
    /// servers, and a tool that a call uses through a proxy tool has no name of its own in the call.
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
            && conversation.part == Part::All
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
        if self.unknown.open.is_empty() || message.from == Side::Client {
            return None;
        }
        let named = self.unknown.named_again(message)?;
        Some(std::mem::replace(&mut message.message, named))
    }
}
