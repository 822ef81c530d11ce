//! The two halves of the way through a gateway. A client's message passes once in the client's conversation,
//! where it is recorded under the name that the client knows, and once on its way to a server, where it is
//! judged, held and written down under the server's own. Whoever stands between the two makes one of the other.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_wire::{Ending, Id, Kind, Message, Span, scan};

use super::{Outbox, Pipeline};
use crate::conversation::{Conversation, Part, Speaker};
use crate::envelope::{Lane, ProxyMessage, Side};
use crate::intercept::Why;
use crate::policy::{Refused, Ruling, Verdict};

const CALL_TOOL: &str = "tools/call";
/// Bytes of an action or a type in a call of the proxy tool; a longer word is neither.
const WORD_BYTES_MAX: usize = 16;

impl Pipeline {
    /// A client of a gateway has come. What it says is recorded and told, but neither judged nor held here; it
    /// has to be clear, since where it goes depends on what it says.
    pub fn begin_entrance(&mut self) -> Conversation {
        self.clients.begin(Part::Entrance)
    }

    /// A gateway turns to one of its servers. What passes there is judged by that server's name, and by what it
    /// says of its own tools.
    pub fn begin_leg(&mut self, server: Arc<str>) -> Conversation {
        let number = self.clients.number();
        let upstream = self.governance.policy.meet_server(&server);
        self.journal.begin_leg(number, upstream, &server);
        Conversation::part_of(number, Part::Leg(upstream))
    }

    /// Nothing more is said to that server in this conversation. What is parked there is gone.
    pub fn end_leg(&mut self, leg: &Conversation) {
        self.holds.discard_where(&mut self.journal, |held| held.conversation == leg.number(), Why::ServerGone);
        self.questions.rounds.forget(leg.number());
        self.journal.end_leg(leg.number());
    }

    /// Whether a call that message `sequence` makes of a tool of `server` is denied, and the tool hidden. The audit has the
    /// denial then: the gateway routes the call as one of a tool that no server lists.
    pub fn denies_hidden(&mut self, server: &str, client: (&Speaker, u32), sequence: u64, call: Message) -> bool {
        let Some(upstream) = self.governance.policy.upstream_named(server) else { return false };
        let (time_ns, (speaker, conversation)) = (self.journal.recent_ns(), client);
        let (from, ending) = (Side::Client, Ending::Counted);
        let call = ProxyMessage {
            sequence,
            time_ns,
            from,
            conversation,
            upstream,
            message: call,
            ending,
            bom: false,
            correlated: None,
        };
        match self.governance.policy.permit(call, speaker) {
            Verdict::Refused(call, Refused::Denied(ruling)) if ruling.is_hidden => {
                self.journal.decided(speaker, &call, &ruling, ("deny", ruling.decider(), None), 0);
                true
            }
            _ => false,
        }
    }

    pub(super) fn pass_gateway(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        mut message: ProxyMessage,
        out: &mut Outbox,
    ) {
        if let (Some(id), Part::Leg(_)) = (says_nothing(&message), conversation.part) {
            message.correlated = conversation.pending.take(Side::Client, &id).map(|mark| mark.sequence);
        }
        match conversation.part {
            Part::Entrance => self.pass_entrance(conversation, lane, message, out),
            _ if self.holds.intercept.is_armed()
                || self.governance.policy.is_governed()
                || conversation.is_particular() =>
            {
                self.pass_watched(conversation, lane, message, out);
            }
            _ if message.from == Side::Client => {
                let judged = self.governance.policy.pass_own(message);
                self.pass_onward(lane, judged, out);
            }
            _ => self.pass_admitted(conversation, lane, message, out),
        }
    }

    fn pass_entrance(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
        out: &mut Outbox,
    ) {
        self.clients.meet_again(conversation, &message);
        if conversation.keeps(&message) {
            self.journal.keep(&message, lane);
            out.withheld += 1;
            return;
        }
        match message.from {
            Side::Client => {
                self.note_use_of_own_tool(lane.speaker(conversation), &message);
                self.pass_admitted(conversation, lane, message, out);
            }
            // The gateway made it, of what it was told elsewhere.
            Side::Server => {
                if self.own_tool.is_some() {
                    self.journal.answered(&message);
                }
                let judged = self.governance.policy.pass_own(message);
                self.pass_onward(lane, judged, out);
            }
        }
    }

    /// Clients of a gateway can call this tool, which is the gateway's own. What they do with it is written down;
    /// what it calls is judged where that goes.
    pub fn has_own_tool(&mut self, name: Arc<str>) {
        self.own_tool = Some(name);
    }

    fn note_use_of_own_tool(&mut self, speaker: &Speaker, message: &ProxyMessage) {
        let Some(tool) = self.own_tool.as_ref().filter(|_| self.journal.is_audited()) else { return };
        let said = &message.message;
        let is_use = said.kind() == Kind::Request
            && said.method().is_some_and(|method| method == CALL_TOOL)
            && said.name().is_some_and(|name| *name == **tool);
        if !is_use {
            return;
        }
        let text = |name| {
            let span = scan::member_at(said.bytes(), ["params", "arguments", name])?;
            scan::decode_string(&said.bytes()[span.range()])
        };
        let word = |name| text(name).filter(|word: &Cow<'_, str>| word.len() <= WORD_BYTES_MAX).unwrap_or_default();
        let why = format!("{} {}", word("action"), word("type"));
        let about = Some((CALL_TOOL.into(), Some(Arc::clone(tool))));
        let ruling = Ruling { about, ..Ruling::unfit() };
        self.journal.decided(speaker, message, &ruling, ("allow", "gateway", Some(why.trim())), 0);
    }

    /// Passes a message on if it is clear where it goes and whom it answers. What it says there is judged where
    /// there are rules.
    fn pass_admitted(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
        out: &mut Outbox,
    ) {
        if is_clear(&message.message) {
            let judged = self.governance.policy.pass_own(message);
            return self.pass_onward(lane, judged, out);
        }
        match self.governance.judge(conversation, lane, message) {
            Ok((judged, _)) => self.pass_onward(lane, judged, out),
            Err(stopped) => self.stop(conversation, lane, None, stopped, out),
        }
    }
}

#[cfg(test)]
mod tests;

/// The id of a server's message that has neither a method nor a result nor an error. If a request has it, nothing else
/// will answer that.
fn says_nothing(message: &ProxyMessage) -> Option<Id> {
    let said = &message.message;
    let is_it = message.from == Side::Server && said.glance().kind == Kind::OtherJson && said.peek().method.is_none();
    if is_it { said.id() } else { None }
}

/// Whether a message can be read in one way only, as far as its way goes. What seems not to be clear is read
/// once more, by those that say why.
fn is_clear(message: &Message) -> bool {
    let peek = message.peek();
    let has_plain_id = |id: Span| match message.slice(id) {
        [b'"', ..] => true,
        number @ [b'-' | b'0'..=b'9', ..] => !matches!(Id::from_json(number), Id::Broken(_)),
        _ => false,
    };
    let is_one = matches!(peek.kind, Kind::Request | Kind::Notification | Kind::Response | Kind::Error);
    is_one && peek.ambiguity.is_none() && peek.id.is_none_or(has_plain_id)
}
