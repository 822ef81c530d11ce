//! The journal of a run: it numbers and times messages, and writes each of them, and each decision about them, to the
//! recording, to the audit log and to watchers.

mod clock;
mod decided;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcp_store::{End, HeadKey, Mark, Outcome, RecordHead, SessionHeader};
use mcp_wire::reply::Refusal;
use mcp_wire::{Ending, Frame, Message};

use super::outbox::{Composed, Outgoing};
use crate::audit::Audit;
use crate::bus::{Bus, Event, Origin};
use crate::conversation::Conversation;
use crate::envelope::{Asked, Lane, ProxyMessage, Side, Upstream};
use crate::record::{ExchangeMark, Recorder, StoreFailed};
use clock::Clock;

pub use clock::wall_ns;

pub struct Journal {
    clock: Clock,
    /// The newest message.
    sequence: u64,
    recorder: Recorder,
    audit: Option<Box<Audit>>,
    bus: Bus,
    /// The newest message that watchers were told, or missed.
    told: u64,
    exchanges: u64,
    /// The servers of a gateway, in the order of their [`Upstream`].
    servers: Vec<Arc<str>>,
}

/// The number and the time that a message gets.
pub(super) struct Stamp {
    pub sequence: u64,
    time_ns: u64,
}

impl Stamp {
    /// Gives a message its envelope: number, time, and the request it answers.
    pub(super) fn on(
        self,
        conversation: &mut Conversation,
        from: Side,
        asked: Option<&Asked>,
        (message, ending, bom): (Message, Ending, bool),
    ) -> ProxyMessage {
        let Self { sequence, time_ns } = self;
        let correlated = conversation.correlate(from, &message, sequence, asked);
        let (upstream, conversation) = (conversation.upstream(), conversation.number());
        ProxyMessage { sequence, time_ns, from, conversation, upstream, message, ending, bom, correlated }
    }
}

impl Journal {
    pub(super) fn new(recorder: Recorder, bus: Bus) -> Self {
        Self {
            clock: Clock::start(),
            sequence: 0,
            recorder,
            audit: None,
            bus,
            told: 0,
            exchanges: 0,
            servers: Vec::new(),
        }
    }

    /// The stamp of the next message, which has come just now.
    pub(super) fn stamp(&mut self) -> Stamp {
        let now_ns = self.clock.now_ns();
        self.stamp_at(now_ns)
    }

    /// The stamp of the next message on `lane`. The message that a gateway makes of another follows right behind it.
    pub(super) fn stamp_for(&mut self, lane: Lane<'_>) -> Stamp {
        let now_ns = if lane.behalf.is_some() { self.clock.recent_ns() } else { self.clock.now_ns() };
        self.stamp_at(now_ns)
    }

    #[inline]
    pub(super) fn stamp_at(&mut self, time_ns: u64) -> Stamp {
        self.sequence += 1;
        Stamp { sequence: self.sequence, time_ns }
    }

    pub(super) fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    pub(super) fn recent_ns(&mut self) -> u64 {
        self.clock.recent_ns()
    }

    /// The time of the newest message while that is a moment ago, and otherwise now.
    pub fn recent(&self) -> Instant {
        self.clock.recent()
    }

    /// The newest message: a recording that reaches as far has all that passed.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Records a message that goes on as it came, and tells watchers of it.
    #[inline]
    pub(super) fn keep(&mut self, message: &ProxyMessage, lane: Lane<'_>) {
        self.keep_as(message, lane, 0, Origin::Peer);
    }

    #[inline]
    pub(super) fn keep_as(&mut self, message: &ProxyMessage, lane: Lane<'_>, flags: u16, origin: Origin) {
        self.recorder.message(message, lane, flags);
        self.told = message.sequence;
        self.bus.publish_message(message.sequence, message.time_ns, || {
            Event::message(message, named(&self.servers, message.upstream).cloned(), lane, origin)
        });
    }

    /// Records a message that does not go on as it came, or not yet: an outcome follows.
    pub(super) fn keep_held(&mut self, message: &ProxyMessage, lane: Lane<'_>) {
        self.keep_as(message, lane, RecordHead::HELD, Origin::Peer);
    }

    pub(super) fn outcome(&mut self, message: &ProxyMessage, outcome: Outcome) {
        let now_ns = self.clock.now_ns();
        self.recorder.outcome(message, now_ns, &outcome);
        let sequence = message.sequence;
        self.bus.publish(|| Event::Outcome { sequence, outcome: outcome.into() });
    }

    /// Records that something happened where a message should have been.
    pub fn note(&mut self, conversation: &Conversation, from: Side, text: &str) {
        let now_ns = self.clock.now_ns();
        self.note_at(conversation, from, text, now_ns);
    }

    pub(super) fn note_at(&mut self, conversation: &Conversation, from: Side, text: &str, time_ns: u64) {
        let sequence = self.stamp_at(time_ns).sequence;
        let (conversation, upstream) = (conversation.number(), conversation.upstream());
        self.recorder.event((conversation, upstream), from, sequence, time_ns, text);
        let upstream = named(&self.servers, upstream);
        let fault = || {
            let upstream = upstream.cloned();
            Event::Fault { sequence, time_ns, from, conversation, upstream, text: text.into() }
        };
        self.bus.publish_message(sequence, time_ns, fault);
    }

    /// Makes a message of the proxy's own for one side, in the other's place.
    pub(super) fn compose(
        &mut self,
        (conversation, upstream): (u32, Upstream),
        lane: Lane<'_>,
        to: Side,
        correlated: Option<u64>,
        message: Bytes,
    ) -> Outgoing {
        let frame = Frame::composed(message);
        let Stamp { sequence, time_ns } = self.stamp();
        let message = ProxyMessage {
            sequence,
            time_ns,
            from: to.other(),
            conversation,
            upstream,
            message: Message::new(frame.bytes.clone()),
            ending: frame.ending,
            bom: false,
            correlated,
        };
        self.keep_as(&message, lane, RecordHead::FROM_PROXY, Origin::Proxy);
        self.answered(&message);
        Outgoing::Reply(frame, Composed { sequence })
    }

    /// The server of a gateway.
    pub(super) fn server(&self, upstream: Upstream) -> Option<&Arc<str>> {
        named(&self.servers, upstream)
    }

    /// A refusal that says which of several servers gave an invalid answer.
    pub(super) fn naming<'a>(&self, upstream: Upstream, refusal: &'a Refusal) -> Cow<'a, Refusal> {
        match (refusal, self.server(upstream)) {
            (Refusal::UpstreamGarbled { server: None, what }, Some(server)) => {
                Cow::Owned(Refusal::UpstreamGarbled { server: Some(server.to_string()), what: what.clone() })
            }
            _ => Cow::Borrowed(refusal),
        }
    }

    /// A gateway has begun a conversation with one of its servers.
    pub(super) fn begin_leg(&mut self, conversation: u32, upstream: Upstream, server: &Arc<str>) {
        if upstream.index() > self.servers.len() {
            self.servers.push(Arc::clone(server));
        }
        let now_ns = self.clock.now_ns();
        self.recorder.begin_leg(conversation, upstream, server, now_ns);
    }

    pub(super) fn end_leg(&mut self, conversation: u32) {
        self.recorder.end_leg(conversation);
    }

    /// Tells watchers that holds, rules or leases have changed.
    pub(super) fn changed(&self) {
        self.bus.publish(|| Event::Changed);
    }

    #[cfg(test)]
    pub(super) fn bus(&self) -> &Bus {
        &self.bus
    }

    pub(super) fn publish(&self, event: impl FnOnce() -> Event) {
        self.bus.publish(event);
    }

    /// Whether a batch must be on disk before it leaves.
    pub fn records_first(&self) -> bool {
        self.recorder.is_strict()
    }

    /// Whether anything is written: messages, or decisions about them.
    pub fn writes(&self) -> bool {
        self.recorder.is_on() || self.audit.is_some()
    }

    /// Writes the recording. `may_divide`: nothing of this session is held, so that the next may begin.
    pub(super) fn commit(&mut self, may_divide: bool) -> Result<(), StoreFailed> {
        self.clock.rest();
        self.recorder.may_divide(may_divide);
        let earlier = self.recorder.earlier();
        let committed = self.recorder.commit(self.clock.last_ns);
        if let Some(audit) = &mut self.audit {
            audit.follow(&self.recorder);
        }
        if self.recorder.earlier() != earlier {
            // From here on messages belong to another session.
            self.changed();
        }
        committed
    }

    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Trouble with the audit log or the recording that the user has not been told.
    pub fn take_trouble(&mut self) -> Option<String> {
        let audit = self.audit.as_mut().and_then(|audit| audit.take_trouble());
        audit.or_else(|| self.recorder.take_trouble())
    }

    /// Whether the heads of HTTP exchanges are recorded.
    pub fn keeps_exchanges(&self) -> bool {
        self.recorder.is_on()
    }

    /// A number for the next HTTP exchange.
    pub fn number_exchange(&mut self) -> u64 {
        self.exchanges += 1;
        self.exchanges
    }

    /// Keeps the head of a request or a response, and whether the exchange is over with it.
    pub fn exchange_head(
        &mut self,
        exchange: &ExchangeMark,
        key: HeadKey,
        text: impl FnOnce() -> Vec<u8>,
        is_over: bool,
    ) {
        let now_ns = self.clock.recent_ns();
        self.recorder.exchange_head(exchange, now_ns, key, text, is_over);
    }

    /// Keeps the end of an exchange; `how` is empty if it ended as it should.
    pub fn exchange_end(&mut self, exchange: &ExchangeMark, how: &str) {
        let now_ns = self.clock.recent_ns();
        self.recorder.exchange_end(exchange, now_ns, how);
    }

    /// Marks a message, or notes something beside it.
    pub fn mark(&mut self, sequence: u64, mark: Mark) {
        let now_ns = self.clock.now_ns();
        self.recorder.mark(sequence, now_ns, &mark);
        self.bus.publish(|| Event::Marked { sequence, mark: mark.into() });
    }

    /// Notes something about the session.
    pub fn note_session(&mut self, notes: &BTreeMap<String, String>) {
        let now_ns = self.clock.now_ns();
        self.recorder.note(now_ns, notes);
        self.changed();
    }

    /// Ends the audit log and the recording.
    pub(super) fn finish(mut self, end: &End) -> (Vec<(SessionHeader, PathBuf)>, io::Result<()>) {
        let now_ns = self.clock.now_ns();
        let audited = self.audit.map_or(Ok(()), |audit| audit.finish(now_ns));
        let (sessions, recorded) = self.recorder.finish(now_ns, end);
        (sessions, recorded.and(audited))
    }
}

fn named(servers: &[Arc<str>], upstream: Upstream) -> Option<&Arc<str>> {
    servers.get(upstream.index().checked_sub(1)?)
}
