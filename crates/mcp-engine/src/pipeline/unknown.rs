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
/// Calls that are over and whose names are still restored: a server may log after it answered.
const OVER_MAX: usize = 64;

/// Calls of hidden tools, with the names that the server got.
pub(super) struct Unknown {
    /// What the names begin with that servers get in place of hidden ones.
    prefix: String,
    count: u64,
    calls: VecDeque<Call>,
}

struct Call {
    sequence: u64,
    conversation: u32,
    id: Option<Id>,
    /// It was answered or cancelled.
    is_over: bool,
    /// The name that the server got.
    stand_in: String,
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
        let name = serde_json::to_string(&*call.message.name()?).ok()?;
        let said = |member| scan::member_at(bytes, ["params", member]).map(|span| &bytes[span.range()]);
        self.count += 1;
        let stand_in = format!("{}{:08x}", self.prefix, self.count);
        let mut replaced = b"{".to_vec();
        for member in ["_meta", "task"] {
            if let Some(json) = said(member) {
                replaced.extend_from_slice(format!(r#""{member}":"#).as_bytes());
                replaced.extend_from_slice(json);
                replaced.push(b',');
            }
        }
        let arguments = if said("arguments") == Some(b"null") { "null" } else { "{}" };
        replaced.extend_from_slice(format!(r#""name":"{stand_in}","arguments":{arguments}}}"#).as_bytes());
        let name = name[1..name.len() - 1].to_owned();
        let (sequence, conversation, id) = (call.sequence, call.conversation, call.message.id());
        self.calls.push_back(Call { sequence, conversation, id, is_over: false, stand_in, name });
        Some(Message::new(splice(bytes, params, &replaced)))
    }

    /// The server's message with the client's names restored, if it has stand-ins.
    pub(super) fn named_again(&mut self, message: &ProxyMessage) -> Option<Message> {
        let bytes = message.message.bytes();
        let has_any = memmem::find(bytes, self.prefix.as_bytes()).is_some();
        let mut renamed = has_any.then(|| bytes.to_vec());
        for call in &self.calls {
            if let Some(bytes) = &mut renamed {
                *bytes = replaced(bytes, call.stand_in.as_bytes(), call.name.as_bytes());
            }
        }
        self.end_where(|call| Some(call.sequence) == message.correlated);
        renamed.map(|bytes| Message::new(Bytes::from(bytes)))
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
