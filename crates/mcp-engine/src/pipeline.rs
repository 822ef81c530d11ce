//! The order of the stages, on one screen. A transport hands over what one read brought and gets
//! back what leaves. Nothing here waits, and nothing a peer sends ends a conversation.

use std::io;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mcp_store::{End, RecordHead, SessionHeader};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::{Cut, Frame, FrameRef, Id, Message, scan, visible};

use crate::bus::{Bus, Event, Origin};
use crate::correlate::Pending;
use crate::envelope::{ProxyMessage, Side};
use crate::intercept::{Intercept, Passed};
use crate::policy::{Judged, Policy, Verdict};
use crate::record::{Recorder, StoreFailed};
use crate::resolve::resolve;

pub struct Pipeline {
    clock: Clock,
    sequence: u64,
    pending: Pending,
    policy: Policy,
    intercept: Intercept,
    recorder: Recorder,
    bus: Bus,
    message_bytes_max: usize,
    noise: u64,
    server_spoke: bool,
}

/// What leaves, by where it goes. A judged message or a reply of our own; nothing else can.
#[derive(Debug, Default)]
pub struct Outbox {
    pub to_client: Vec<Outgoing>,
    pub to_server: Vec<Outgoing>,
}

#[derive(Debug)]
pub enum Outgoing {
    Message(Judged),
    Reply(Frame),
}

impl Outbox {
    pub fn clear(&mut self) {
        self.to_client.clear();
        self.to_server.clear();
    }

    fn to(&mut self, side: Side) -> &mut Vec<Outgoing> {
        match side {
            Side::Client => &mut self.to_client,
            Side::Server => &mut self.to_server,
        }
    }
}

impl Outgoing {
    pub fn frame(&self) -> FrameRef<'_> {
        match self {
            Self::Message(judged) => judged.message().frame(),
            Self::Reply(frame) => frame.into(),
        }
    }
}

impl Pipeline {
    pub fn new(recorder: Recorder, bus: Bus, message_bytes_max: usize) -> Self {
        Self {
            clock: Clock::start(),
            sequence: 0,
            pending: Pending::default(),
            policy: Policy::default(),
            intercept: Intercept::default(),
            recorder,
            bus,
            message_bytes_max,
            noise: 0,
            server_spoke: false,
        }
    }

    /// Takes what one read brought and decides it all at once. Never waits.
    pub fn pass(&mut self, from: Side, cuts: &mut Vec<Cut>, out: &mut Outbox) {
        let now_ns = self.clock.now_ns();
        for cut in cuts.drain(..) {
            match cut {
                Cut::Frame(frame) if from == Side::Server && is_noise(&frame.bytes) => self.keep_noise(frame, now_ns),
                Cut::Frame(frame) => self.pass_message(from, frame, now_ns, out),
                Cut::TooLarge { size, head, tail } => self.refuse_too_large(from, size, &head, &tail, now_ns, out),
                Cut::Unframed { sample } => self.note_unframed(from, &sample, now_ns),
            }
        }
    }

    fn pass_message(&mut self, from: Side, frame: Frame, now_ns: u64, out: &mut Outbox) {
        let message = self.stamp(from, frame, now_ns);
        self.server_spoke |= from == Side::Server;
        match self.policy.permit(resolve(message)) {
            Verdict::Permitted(judged) => match self.intercept.pass(judged) {
                Passed::Onward(judged) => {
                    self.recorder.message(judged.message(), 0);
                    self.tell(judged.message(), Origin::Peer);
                    out.to(from.other()).push(Outgoing::Message(judged));
                }
            },
        }
    }

    /// Gives a frame its envelope: sequence, time, and the request it answers.
    fn stamp(&mut self, from: Side, frame: Frame, now_ns: u64) -> ProxyMessage {
        self.sequence += 1;
        let message = Message::new(frame.bytes);
        let correlated = self.pending.correlate(from, &message, self.sequence);
        ProxyMessage {
            sequence: self.sequence,
            time_ns: now_ns,
            from,
            message,
            ending: frame.ending,
            bom: frame.bom,
            correlated,
        }
    }

    /// A line on the server's standard output that is no message: kept from the client, shown.
    fn keep_noise(&mut self, frame: Frame, now_ns: u64) {
        self.noise += 1;
        let message = self.stamp(Side::Server, frame, now_ns);
        self.recorder.message(&message, RecordHead::NOISE);
        self.tell(&message, Origin::Noise);
    }

    /// An oversize message fails alone: whoever waits for it, or for its answer, is told.
    fn refuse_too_large(&mut self, from: Side, size: u64, head: &[u8], tail: &[u8], now_ns: u64, out: &mut Outbox) {
        let text =
            format!("a message of {size} bytes is over the limit of {} and was not passed on", self.message_bytes_max);
        self.note_fault(from, &text, now_ns);
        let Some(found) = scan::salvage(head, tail) else { return };
        let id = Id::from_json(found.id);
        let refusal = Refusal::TooLarge { limit: self.message_bytes_max };
        if found.is_request {
            self.answer(from, &id, None, &refusal, now_ns, out);
        } else if let Some(mark) = self.pending.take(from.other(), &id) {
            self.answer(from.other(), &id, Some(mark.sequence), &refusal, now_ns, out);
        }
    }

    fn note_unframed(&mut self, from: Side, sample: &[u8], now_ns: u64) {
        let text = format!("bytes that no header announced were passed over: {}", visible::visible_bytes(sample));
        self.note_fault(from, &text, now_ns);
    }

    fn note_fault(&mut self, from: Side, text: &str, now_ns: u64) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.recorder.event(from, sequence, now_ns, text);
        self.bus.publish(|| Event::Fault { sequence, from, text: text.to_owned() });
    }

    /// Answers every call `from` still waits on: its peer is gone.
    pub fn answer_pending(&mut self, from: Side, refusal: &Refusal, out: &mut Outbox) {
        let now_ns = self.clock.now_ns();
        for (id, mark) in self.pending.take_all(from) {
            self.answer(from, &id, Some(mark.sequence), refusal, now_ns, out);
        }
    }

    /// Holds back what could not be recorded. Answers that the client waits for become refusals; its
    /// own calls are still open, and are answered with the rest.
    pub fn hold_back_unrecorded(&mut self, out: &mut Outbox) {
        let now_ns = self.clock.now_ns();
        let held_back = std::mem::take(&mut out.to_client);
        out.to_server.clear();
        for outgoing in held_back {
            let judged = match outgoing {
                Outgoing::Message(judged) => judged,
                // A refusal of our own is no evidence of anything.
                reply @ Outgoing::Reply(_) => {
                    out.to_client.push(reply);
                    continue;
                }
            };
            if let ProxyMessage { message, correlated: Some(request), .. } = judged.message()
                && let Some(id) = message.id()
            {
                self.answer(Side::Client, &id, Some(*request), &Refusal::NotRecorded, now_ns, out);
            }
        }
    }

    /// Composes an answer to `asker` in its peer's place.
    fn answer(
        &mut self,
        asker: Side,
        id: &Id,
        correlated: Option<u64>,
        refusal: &Refusal,
        now_ns: u64,
        out: &mut Outbox,
    ) {
        let frame = Frame::composed(reply::error(id, refusal));
        self.sequence += 1;
        let message = ProxyMessage {
            sequence: self.sequence,
            time_ns: now_ns,
            from: asker.other(),
            message: Message::new(frame.bytes.clone()),
            ending: frame.ending,
            bom: false,
            correlated,
        };
        self.recorder.message(&message, RecordHead::FROM_PROXY);
        self.tell(&message, Origin::Proxy);
        out.to(asker).push(Outgoing::Reply(frame));
    }

    fn tell(&self, message: &ProxyMessage, origin: Origin) {
        self.bus.publish(|| Event::Message {
            sequence: message.sequence,
            time_ns: message.time_ns,
            from: message.from,
            message: message.message.clone(),
            correlated: message.correlated,
            origin,
        });
    }

    /// Whether a batch must be on disk before it leaves.
    pub fn records_first(&self) -> bool {
        self.recorder.is_strict()
    }

    /// Writes what the last batch brought.
    pub fn commit(&mut self) -> Result<(), StoreFailed> {
        self.recorder.commit(self.clock.last_ns)
    }

    pub fn take_trouble(&mut self) -> Option<String> {
        self.recorder.take_trouble()
    }

    /// Calls `from` still waits on.
    pub fn open_calls(&self, from: Side) -> usize {
        self.pending.count(from)
    }

    /// Lines of the server's output that were kept from the client.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    /// Whether any message came from the server.
    pub fn server_spoke(&self) -> bool {
        self.server_spoke
    }

    /// Ends the recording.
    pub fn finish(mut self, end: &End) -> (Vec<(SessionHeader, PathBuf)>, io::Result<()>) {
        let now_ns = self.clock.now_ns();
        self.recorder.finish(now_ns, end)
    }
}

/// A server's line is a message if it could be JSON at all; everything else there is noise.
fn is_noise(line: &[u8]) -> bool {
    !matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Wall time that never goes back: read once from the system, then counted.
struct Clock {
    began: Instant,
    began_ns: u64,
    last_ns: u64,
}

impl Clock {
    fn start() -> Self {
        let began_ns = wall_ns();
        Self { began: Instant::now(), began_ns, last_ns: began_ns }
    }

    fn now_ns(&mut self) -> u64 {
        self.last_ns = self.began_ns + self.began.elapsed().as_nanos() as u64;
        self.last_ns
    }
}

/// Nanoseconds since 1970.
pub fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests;
