//! The order of the stages, on one screen. A transport hands over what one read brought and gets
//! back what leaves. Nothing here waits, and nothing a peer sends ends a conversation.

mod asks;
mod gateway;
mod holds;
mod inject;
mod journal;
mod judge;
mod outbox;
mod shown;
mod status;
mod unknown;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcp_store::{End, HeadKey, RecordHead, SessionHeader};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::{Cut, Ending, Frame, Id, Kind, Message, scan, visible};

use crate::audit::Audit;
use crate::bus::{Bus, Origin};
use crate::conversation::{Conversation, Part};
use crate::desk::Desk;
use crate::envelope::{Asked, Lane, ProxyMessage, Side, Upstream};
use crate::intercept::{Held, Intercept, Why};
use crate::policy::rules::Rules;
use crate::policy::{Answers, Judged, Policy};
use crate::record::{ExchangeMark, Recorder, StoreFailed};

use journal::{Journal, Stamp};

pub use asks::{NOBODY, TIMEOUT};
pub use holds::Release;
pub use inject::Injection;
pub use journal::wall_ns;
pub use outbox::{Outbox, Outgoing, ParkedMark};
pub use status::Status;

pub struct Pipeline {
    journal: Journal,
    conversations: u32,
    /// Held once more by the conversation of each connected client.
    connected: Arc<()>,
    policy: Policy,
    /// The newest message that was judged by other rules than those that count.
    judged_otherwise: u64,
    /// What people answered to rules that ask.
    answers: Answers,
    /// Calls whose clients are asked and send them again.
    rounds: asks::Rounds,
    /// Questions to clients so far.
    questions: u64,
    /// Faces that could answer, besides the one that has the lease.
    watchers: usize,
    /// Where else it is said that somebody is asked.
    on_question: Option<Box<dyn Fn(Held) + Send>>,
    /// The tool of a gateway that reaches everything.
    own_tool: Option<Arc<str>>,
    /// Calls of hidden tools, which the server is to answer as those of missing ones.
    unknown: unknown::Unknown,
    intercept: Intercept,
    /// Parked no more, and on its way to where it goes.
    released: Vec<Release>,
    /// On its way to a server, though no client sent it; and how many such there were.
    injected: Vec<Injection>,
    injections: u64,
    clients: status::Clients,
    desk: Option<Desk>,
    message_bytes_max: usize,
}

impl Pipeline {
    pub fn new(recorder: Recorder, bus: Bus, message_bytes_max: usize) -> Self {
        Self {
            journal: Journal::new(recorder, bus),
            conversations: 0,
            connected: Arc::default(),
            policy: Policy::default(),
            judged_otherwise: 0,
            answers: Answers::default(),
            rounds: asks::Rounds::default(),
            questions: 0,
            watchers: 0,
            on_question: None,
            own_tool: None,
            unknown: unknown::Unknown::default(),
            intercept: Intercept::default(),
            released: Vec::new(),
            injected: Vec::new(),
            injections: 0,
            clients: status::Clients::default(),
            desk: None,
            message_bytes_max,
        }
    }

    /// Lets messages be held, and orders be given at `desk`.
    pub fn governed_from(mut self, desk: Desk, intercept: Intercept) -> Self {
        (self.desk, self.intercept) = (Some(desk), intercept);
        self
    }

    /// Has rules decide what passes, and what they decide written down.
    pub fn governed_by(mut self, rules: Arc<Rules>, audit: Audit) -> Self {
        self.journal.audit_in(audit, &rules);
        self.policy.govern(rules);
        self
    }

    /// From now on these rules count. What is parked was judged by others.
    pub fn set_rules(&mut self, rules: Arc<Rules>) {
        self.journal.rules_changed(&rules);
        if self.policy.rules().is_none_or(|known| known.version != rules.version) {
            self.judged_otherwise = self.journal.sequence();
        }
        self.policy.govern(rules);
        self.journal.changed();
    }

    pub fn rules(&self) -> Option<&Arc<Rules>> {
        self.policy.rules()
    }

    /// Whether messages are judged, so that they must be whole and clear before any of them leaves.
    pub fn is_governed(&self) -> bool {
        self.policy.is_governed()
    }

    /// When the newest message came, if that was a moment ago, and else now.
    pub fn recent(&self) -> Instant {
        self.journal.recent()
    }

    /// Where orders come in, for the loop that carries them out.
    pub fn take_desk(&mut self) -> Option<Desk> {
        self.desk.take()
    }

    /// A client has come.
    pub fn begin_conversation(&mut self) -> Conversation {
        self.conversations += 1;
        Conversation::new(self.conversations).counted(&self.connected)
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
                    self.keep_noise(conversation, Lane::PIPE, frame, now_ns)
                }
                Cut::Frame(frame) => {
                    let message = match self.policy.is_governed() || conversation.part != Part::All {
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
            self.meet(conversation, &message);
        }
        if conversation.part != Part::All {
            return self.pass_gateway(conversation, lane, message, out);
        }
        if self.intercept.is_armed() || conversation.is_particular() {
            return self.pass_watched(conversation, lane, message, out);
        }
        match self.policy.permit_freely(message) {
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
        let now_ns = self.journal.now_ns();
        self.keep_noise(conversation, lane, Frame::composed(bytes), now_ns);
    }

    fn keep_noise(&mut self, conversation: &mut Conversation, lane: Lane<'_>, frame: Frame, now_ns: u64) {
        conversation.noise += 1;
        let message = self.journal.stamp_at(now_ns).on(conversation, Side::Server, None, framed(frame));
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

    /// Records that something happened where a message should have been.
    pub fn note(&mut self, conversation: &Conversation, from: Side, text: &str) {
        self.journal.note(conversation, from, text);
    }

    /// Answers every call `from` still waits on: its peer is gone.
    pub fn answer_pending(&mut self, conversation: &mut Conversation, from: Side, refusal: &Refusal, out: &mut Outbox) {
        self.answer_pending_but(conversation, from, &[], refusal, out);
    }

    /// Answers every call `from` still waits on, save those under `kept`.
    pub fn answer_pending_but(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        kept: &[Id],
        refusal: &Refusal,
        out: &mut Outbox,
    ) {
        for (id, mark) in conversation.pending.take_all(from) {
            if kept.contains(&id) {
                conversation.pending.insert(from, id, mark.sequence);
                continue;
            }
            let id = conversation.own_id(id, mark.sequence);
            self.answer(conversation, from, (&id, Some(mark.sequence)), refusal, out);
        }
    }

    /// Answers a call that waits in an exchange of its own.
    pub fn answer_asked(
        &mut self,
        conversation: &mut Conversation,
        asked: &Asked,
        refusal: &Refusal,
        lane: Lane<'_>,
        out: &mut Outbox,
    ) {
        let id = conversation.own_id(asked.id.clone(), asked.sequence);
        let answer = reply::error(&id, refusal);
        let answer = self.journal.compose(conversation.place(), lane, Side::Client, Some(asked.sequence), answer);
        out.to_client.push(answer);
    }

    /// Answers one call that `from` still waits on, if it does.
    pub fn answer_one(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        id: &Id,
        refusal: &Refusal,
        out: &mut Outbox,
    ) {
        if let Some(mark) = conversation.pending.take(from, id) {
            let id = conversation.own_id(id.clone(), mark.sequence);
            self.answer(conversation, from, (&id, Some(mark.sequence)), refusal, out);
        }
    }

    /// Tells the server, in the client's place, something that the client said in another way or
    /// before. Returns the sequence by which an answer to it is known.
    pub fn speak_for_client(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        message: Bytes,
        out: &mut Outbox,
    ) -> u64 {
        let message = self.journal.compose(conversation.place(), lane, Side::Server, None, message);
        let sequence = message.sequence();
        out.to_server.push(message);
        sequence
    }

    /// Holds back what could not be recorded. Answers that the client waits for become refusals; its
    /// own calls are still open, and are answered with the rest.
    pub fn hold_back_unrecorded(&mut self, conversation: &Conversation, out: &mut Outbox) {
        let held_back = std::mem::take(&mut out.to_client);
        out.to_server.clear();
        for outgoing in held_back {
            let judged = match outgoing {
                Outgoing::Message(judged) => judged,
                // A refusal of our own is no evidence of anything.
                reply @ Outgoing::Reply(..) => {
                    out.to_client.push(reply);
                    continue;
                }
            };
            if let ProxyMessage { message, correlated: Some(request), .. } = judged.message()
                && let Some(id) = message.id()
            {
                self.answer(conversation, Side::Client, (&id, Some(*request)), &Refusal::NotRecorded, out);
            }
        }
    }

    /// Composes an answer to `asker` in its peer's place.
    fn answer(
        &mut self,
        conversation: &Conversation,
        asker: Side,
        (id, correlated): (&Id, Option<u64>),
        refusal: &Refusal,
        out: &mut Outbox,
    ) {
        let answer = reply::error(id, &self.named(conversation.upstream(), refusal));
        let answer = self.journal.compose(conversation.place(), conversation.lane_of(id), asker, correlated, answer);
        out.to(asker).push(answer);
    }

    /// A refusal that says which of several servers gave an invalid answer.
    fn named<'a>(&self, upstream: Upstream, refusal: &'a Refusal) -> Cow<'a, Refusal> {
        match (refusal, self.journal.server(upstream)) {
            (Refusal::UpstreamGarbled { server: None, what }, Some(server)) => {
                Cow::Owned(Refusal::UpstreamGarbled { server: Some(server.to_string()), what: what.clone() })
            }
            _ => Cow::Borrowed(refusal),
        }
    }

    /// Whether a batch must be on disk before it leaves.
    pub fn records_first(&self) -> bool {
        self.journal.records_first()
    }

    /// Whether anything is written: messages, or what was decided about them.
    pub fn writes(&self) -> bool {
        self.journal.writes()
    }

    /// Writes what was recorded, and how calls went.
    pub fn commit(&mut self) -> Result<(), StoreFailed> {
        self.journal.commit_audit();
        self.commit_records()
    }

    pub fn commit_audit(&mut self) {
        self.journal.commit_audit();
    }

    /// Writes what was recorded.
    pub fn commit_records(&mut self) -> Result<(), StoreFailed> {
        self.journal.commit(self.intercept.held_count() == 0)
    }

    /// What is recorded, and where.
    pub fn recorder(&self) -> &Recorder {
        self.journal.recorder()
    }

    pub fn take_trouble(&mut self) -> Option<String> {
        self.journal.take_trouble()
    }

    /// Whether heads of HTTP exchanges are wanted by anybody.
    pub fn keeps_exchanges(&self) -> bool {
        self.journal.keeps_exchanges()
    }

    /// A number for the next HTTP exchange.
    pub fn number_exchange(&mut self) -> u64 {
        self.journal.number_exchange()
    }

    pub fn exchange_head(
        &mut self,
        exchange: &ExchangeMark,
        key: HeadKey,
        text: impl FnOnce() -> Vec<u8>,
        is_over: bool,
    ) {
        self.journal.exchange_head(exchange, key, text, is_over);
    }

    pub fn exchange_end(&mut self, exchange: &ExchangeMark, how: &str) {
        self.journal.exchange_end(exchange, how);
    }

    /// Ends the recording.
    pub fn finish(mut self, end: &End) -> (Vec<(SessionHeader, PathBuf)>, io::Result<()>) {
        self.discard_held(|_| true, Why::Ending);
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
