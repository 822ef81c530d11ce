//! The order of the stages, on one screen. A transport hands over what one read brought and gets
//! back what leaves. Nothing here waits, and nothing a peer sends ends a conversation.

mod answering;
mod clients;
mod decisions;
mod gateway;
mod governance;
mod holds;
mod inject;
mod journal;
mod outbox;
mod questions;
mod refusing;
mod shown;
mod status;
mod unknown;
mod watched;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use mcp_store::{End, RecordHead, SessionHeader};
use mcp_wire::reply::Refusal;
use mcp_wire::{Cut, Ending, Frame, Id, Kind, Message, scan, visible};

use crate::audit::Audit;
use crate::bus::{Bus, Origin};
use crate::commands::Commands;
use crate::conversation::{Conversation, Part};
use crate::envelope::{Asked, Lane, ProxyMessage, Side};
use crate::intercept::{Held, Intercept, Why};
use crate::policy::Judged;
use crate::policy::rules::Rules;
use crate::record::{Recorder, StoreFailed};
use journal::Stamp;

pub use decisions::Decisions;
pub use governance::Governance;
pub use holds::{Holds, Release};
pub use inject::{Injection, Injections};
pub use journal::{Journal, wall_ns};
pub use outbox::{Outbox, Outgoing, ParkedMark};
pub use questions::{NOBODY, Questions, TIMEOUT};
pub use status::Status;

pub struct Pipeline {
    /// Numbers, times, recording, audit log and watchers.
    pub journal: Journal,
    /// Rules, and the answers of people to those that ask.
    pub governance: Governance,
    /// Parked messages, and those that have come free.
    pub holds: Holds,
    /// The questions about parked messages, and who could answer.
    pub questions: Questions,
    /// Messages to servers that no client sent.
    pub injections: Injections,
    clients: clients::Clients,
    /// Calls of hidden tools, which the server is to answer as those of missing ones.
    unknown: unknown::Unknown,
    /// The tool of a gateway that reaches everything.
    own_tool: Option<Arc<str>>,
    commands: Option<Commands>,
    message_bytes_max: usize,
}

impl Pipeline {
    pub fn new(recorder: Recorder, bus: Bus, message_bytes_max: usize) -> Self {
        Self {
            journal: Journal::new(recorder, bus),
            governance: Governance::default(),
            holds: Holds::default(),
            questions: Questions::default(),
            injections: Injections::default(),
            clients: clients::Clients::default(),
            unknown: unknown::Unknown::default(),
            own_tool: None,
            commands: None,
            message_bytes_max,
        }
    }

    /// Lets messages be held, and commands be given at `commands`.
    pub fn governed_from(mut self, commands: Commands, intercept: Intercept) -> Self {
        (self.commands, self.holds) = (Some(commands), Holds::new(intercept));
        self
    }

    /// Has rules decide what passes, and their decisions written down.
    pub fn governed_by(mut self, rules: Arc<Rules>, audit: Audit) -> Self {
        self.journal.audit_in(audit, &rules);
        self.governance.policy.govern(rules);
        self
    }

    /// From now on these rules count. What is parked was judged by others.
    pub fn set_rules(&mut self, rules: Arc<Rules>) {
        self.journal.rules_changed(&rules);
        self.governance.set_rules(rules, self.journal.sequence());
        self.journal.changed();
    }

    /// Where commands come in, for the loop that carries them out.
    pub fn take_commands(&mut self) -> Option<Commands> {
        self.commands.take()
    }

    /// A client has come.
    pub fn begin_conversation(&mut self) -> Conversation {
        self.clients.begin(Part::All)
    }

    /// Decisions about parked messages.
    pub fn decisions(&mut self) -> Decisions<'_> {
        let Self { holds, questions, governance, journal, .. } = self;
        Decisions { holds, questions, governance, journal }
    }

    /// Takes what one read of a pipe brought, or some of it, and decides that all at once. Never waits.
    pub fn pass(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        cuts: impl IntoIterator<Item = Cut>,
        out: &mut Outbox,
    ) {
        let now_ns = self.journal.now_ns();
        for cut in cuts {
            match cut {
                Cut::Frame(frame) if from == Side::Server && is_noise(&frame.bytes) => {
                    let stamp = self.journal.stamp_at(now_ns);
                    self.keep_noise(conversation, Lane::PIPE, frame, stamp);
                }
                Cut::Frame(frame) => {
                    let message = match self.governance.policy.is_governed() || conversation.part != Part::All {
                        true => Message::scanned(frame.bytes),
                        false => Message::new(frame.bytes),
                    };
                    let stamp = self.journal.stamp_at(now_ns);
                    let message = stamp.on(conversation, from, None, (message, frame.ending, frame.bom));
                    self.pass_message(conversation, from, Lane::PIPE, message, out);
                }
                Cut::TooLarge { size, head, tail } => {
                    self.refuse_too_large(conversation, from, (size, &head, &tail), out)
                }
                Cut::Unframed { sample } => self.note_unframed(conversation, from, &sample, now_ns),
            }
        }
        self.seal(Lane::PIPE, out);
    }

    /// Takes the message that opens an HTTP exchange. If it is a request, its answer belongs into
    /// that exchange, and what to know it by is returned instead of remembered.
    pub fn pass_opening(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        message: impl Into<Message>,
        out: &mut Outbox,
    ) -> Option<Asked> {
        let message = message.into();
        let id = if message.glance().kind == Kind::Request { message.id() } else { None };
        let stamp = self.journal.stamp_for(lane);
        let asked = id.map(|id| Asked { id, sequence: stamp.sequence });
        // A request answers nothing, so this only keeps it out of the table.
        self.pass_stamped(conversation, Side::Client, Lane { asked: asked.as_ref(), ..lane }, (message, stamp), out);
        asked
    }

    /// Takes one message that an HTTP body or an event of a stream brought.
    pub fn pass_one(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        lane: Lane<'_>,
        message: impl Into<Message>,
        out: &mut Outbox,
    ) {
        let stamp = self.journal.stamp_for(lane);
        self.pass_stamped(conversation, from, lane, (message.into(), stamp), out);
    }

    fn pass_stamped(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        lane: Lane<'_>,
        (message, stamp): (Message, Stamp),
        out: &mut Outbox,
    ) {
        let message = stamp.on(conversation, from, lane.asked, (message, Ending::Counted, false));
        self.pass_message(conversation, from, lane, message, out);
        self.seal(lane, out);
    }

    fn pass_message(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        lane: Lane<'_>,
        message: ProxyMessage,
        out: &mut Outbox,
    ) {
        conversation.server_spoke |= from == Side::Server;
        if conversation.listens_for(&message) {
            self.clients.meet(conversation, &message);
        }
        if conversation.part != Part::All {
            return self.pass_gateway(conversation, lane, message, out);
        }
        if self.holds.intercept.is_armed() || conversation.is_particular() {
            return self.pass_watched(conversation, lane, message, out);
        }
        match self.governance.policy.permit_freely(message) {
            Ok(judged) => self.pass_onward(lane, judged, out),
            Err(message) => self.pass_watched(conversation, lane, message, out),
        }
    }

    #[inline]
    fn pass_onward(&mut self, lane: Lane<'_>, judged: Judged, out: &mut Outbox) {
        let message = judged.message();
        let to = message.from.other();
        self.journal.keep(message, lane);
        out.to(to).push(Outgoing::Message(judged));
    }

    /// Keeps what a server wrote where only messages may stand from the client: recorded and shown.
    pub fn pass_noise(&mut self, conversation: &mut Conversation, lane: Lane<'_>, bytes: Bytes) {
        let stamp = self.journal.stamp();
        self.keep_noise(conversation, lane, Frame::composed(bytes), stamp);
    }

    fn keep_noise(&mut self, conversation: &mut Conversation, lane: Lane<'_>, frame: Frame, stamp: Stamp) {
        conversation.noise += 1;
        let message = stamp.on(conversation, Side::Server, None, framed(frame));
        self.journal.keep_as(&message, lane, RecordHead::NOISE, Origin::Noise);
    }

    /// An oversize message fails alone: whoever waits for it, or for its answer, is told.
    pub fn refuse_too_large(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        (size, head, tail): (u64, &[u8], &[u8]),
        out: &mut Outbox,
    ) {
        let text =
            format!("a message of {size} bytes is over the limit of {} and was not passed on", self.message_bytes_max);
        self.journal.note(conversation, from, &text);
        let Some(found) = scan::salvage(head, tail) else { return };
        let id = Id::from_json(found.id);
        let refusal = Refusal::TooLarge { limit: self.message_bytes_max };
        if found.is_request {
            self.answer(conversation, from, (&id, None), &refusal, out);
        } else if let Some(mark) = conversation.pending.take(from.other(), &id) {
            let id = conversation.own_id(id, mark.sequence);
            self.answer(conversation, from.other(), (&id, Some(mark.sequence)), &refusal, out);
        }
    }

    fn note_unframed(&mut self, conversation: &Conversation, from: Side, sample: &[u8], now_ns: u64) {
        let text = format!("bytes that no header announced were passed over: {}", visible::visible_bytes(sample));
        self.journal.note_at(conversation, from, &text, now_ns);
    }

    /// Whether messages are held, or could be, so that they must be whole before any of them leaves.
    pub fn watches(&self) -> bool {
        self.holds.intercept.is_armed() || self.governance.policy.is_governed()
    }

    /// The client of a conversation is gone, and with it all that is parked, there or for it on its way to the
    /// servers of a gateway.
    pub fn client_is_gone(&mut self, conversation: u32) {
        let is_its = |held: &Held| held.conversation == conversation || held.behalf == Some(conversation);
        self.holds.discard_where(&mut self.journal, is_its, Why::ClientGone);
        self.questions.rounds.forget(conversation);
        self.unknown.forget(conversation);
        self.journal.lost(conversation);
    }

    /// Writes the recording, and the outcomes of calls.
    pub fn commit(&mut self) -> Result<(), StoreFailed> {
        self.journal.commit_audit();
        self.commit_records()
    }

    /// Writes the recording.
    pub fn commit_records(&mut self) -> Result<(), StoreFailed> {
        self.journal.commit(self.holds.is_empty())
    }

    /// Ends the recording.
    pub fn finish(mut self, end: &End) -> (Vec<(SessionHeader, PathBuf)>, io::Result<()>) {
        self.holds.discard_where(&mut self.journal, |_| true, Why::Ending);
        self.journal.finish(end)
    }
}

fn framed(frame: Frame) -> (Message, Ending, bool) {
    (Message::new(frame.bytes), frame.ending, frame.bom)
}

/// Whether a server's line, or the data of its event, is no message: it cannot even be JSON.
pub fn is_noise(line: &[u8]) -> bool {
    !matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
}

#[cfg(test)]
mod tests;
