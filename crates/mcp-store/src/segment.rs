//! The segment file: a header that says which session this is, then records, each with its length
//! and checksum. Only ever appended to; a record that a crash tore is told by its checksum.

mod outcome;
mod reader;
mod repeated;
pub(crate) mod sparse;
mod verdict;
mod writer;

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::recorded::{Direction, Transport};

pub use crate::synced::OnSynced;
pub use mcp_wire::{OutcomeKind, VerdictKind};
pub use outcome::{MARK_BYTES_MAX, Mark, NOTE_BYTES_MAX, Outcome};
pub use reader::{SegmentReader, Tail, append_end, append_mark, append_note, cut_tail, is_live};
pub use repeated::HeadKey;
pub use sparse::SparseIndex;
pub use verdict::{AuditId, Verdict, operation_named};
pub use writer::SegmentWriter;

pub(crate) const MAGIC: &[u8; 8] = b"MCPSEG01";
const HEAD_LEN: usize = 40;
/// Where the checksum stands in it.
const CHECKSUM: Range<usize> = 4..8;
/// What stands before the payload of a linked record: a length and the number of the exchange.
const LINK_LEN: usize = 10;
/// An event id lets a server find its place again. The proxy's own have a few bytes; a longer one is cut, because a
/// link's length has 16 bits.
pub const EVENT_ID_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    Message,
    /// Something happened where a message should have been; the payload is text.
    Event,
    /// Notes added to the session; a JSON object of strings.
    Note,
    /// Messages passed that could not be written; the payload is their count as text.
    Gap,
    End,
    /// The head of an HTTP request, or of the response to it, as HTTP text without the blank line. The
    /// sequence is the number of the exchange, from 1 in a run of the proxy. Secrets in it were masked by
    /// whoever wrote it.
    Exchange,
    /// An exchange is over; the payload says how if not as it should be.
    ExchangeEnd,
    /// How a hold of the message `correlated` ended: an [`Outcome`]. The sequence is 0, direction and
    /// conversation are those of the message.
    Outcome,
    /// What somebody wrote beside the message `correlated`: a [`Mark`]. The rest as with an outcome.
    Mark,
    /// What rules decided about the message `correlated`: a [`Verdict`]. The rest as with an outcome.
    Verdict,
    /// A conversation of a gateway is with this server, whose id is the payload. It stands before the
    /// messages of that conversation, and again where a session goes on from another.
    Leg,
}

impl RecordKind {
    /// Whether it is a message or stands for one.
    pub fn is_message(self) -> bool {
        matches!(self, Self::Message | Self::Event)
    }
}

/// What a record says besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    pub kind: RecordKind,
    pub direction: Direction,
    pub flags: u16,
    pub conversation: u32,
    pub sequence: u64,
    pub time_ns: u64,
    /// The sequence of the request that this answers, or of the message that it is about or comes from; 0 for
    /// none. Of a message, [`RecordHead::answers`] and [`RecordHead::parent`] say which.
    pub correlated: u64,
}

impl RecordHead {
    pub const NOISE: u16 = 1;
    pub const FROM_PROXY: u16 = 2;
    /// Two bits: the transport a message arrived on.
    const ARRIVED_ON: u16 = 4 | 8;
    /// A link stands before the payload; [`SegmentWriter::push_message`] sets it.
    pub const LINKED: u16 = 16;
    /// The head of an exchange is the one that was numbered `correlated`, with another length.
    const REPEATED: u16 = 32;
    /// The message was held when it was recorded; an outcome says how that ended, once it has.
    pub const HELD: u16 = 64;
    /// The verdict stands right behind the message that it is about.
    pub(crate) const ADJOINED: u16 = 128;
    /// The message answers nothing; `correlated` is the message of another conversation that it comes from.
    pub const CAUSED: u16 = 256;
    /// With the head of the response an exchange is over, as it should be.
    pub const ENDS: u16 = 512;
    /// What rules decided about the message stands before its payload; [`SegmentWriter::push_message`] sets it.
    pub(crate) const JUDGED: u16 = 1024;
    const KNOWN_FLAGS: u16 = Self::NOISE
        | Self::FROM_PROXY
        | Self::ARRIVED_ON
        | Self::LINKED
        | Self::REPEATED
        | Self::HELD
        | Self::ADJOINED
        | Self::CAUSED
        | Self::ENDS
        | Self::JUDGED;

    /// The sequence of the request that this message answers, if it does.
    pub fn answers(&self) -> Option<u64> {
        (self.correlated > 0 && self.flags & Self::CAUSED == 0).then_some(self.correlated)
    }

    /// The sequence of the message that a gateway made this one of, if that is known.
    pub fn parent(&self) -> Option<u64> {
        (self.correlated > 0 && self.flags & Self::CAUSED != 0).then_some(self.correlated)
    }

    /// The flags that say that a message arrived on `transport`.
    pub fn arrived_on(transport: Transport) -> u16 {
        match transport {
            Transport::Stdio => 4,
            Transport::Sse => 8,
            Transport::StreamableHttp => 4 | 8,
        }
    }

    /// Whether it says something of a message that was recorded before, other than where that stands.
    pub(crate) fn is_amendment(&self) -> bool {
        match self.kind {
            RecordKind::Outcome | RecordKind::Mark => true,
            RecordKind::Verdict => self.flags & Self::ADJOINED == 0,
            _ => false,
        }
    }

    /// The number of the head that this one of an exchange repeats, if it does.
    pub(crate) fn named_head(&self) -> Option<u64> {
        (self.kind == RecordKind::Exchange && self.flags & Self::REPEATED != 0).then_some(self.correlated)
    }

    /// What the message arrived on; `None` means the session's own transport.
    pub fn transport(&self) -> Option<Transport> {
        match self.flags & Self::ARRIVED_ON {
            0 => None,
            4 => Some(Transport::Stdio),
            8 => Some(Transport::Sse),
            _ => Some(Transport::StreamableHttp),
        }
    }

    /// The head of a record with this payload.
    fn encode(&self, payload: &[u8]) -> [u8; HEAD_LEN] {
        let mut head = self.unchecked(payload.len());
        let checksum = checksum(&head, payload);
        head[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// The same for a payload of `length` bytes, but for the checksum.
    fn unchecked(&self, length: usize) -> [u8; HEAD_LEN] {
        let mut head = [0; HEAD_LEN];
        head[0..4].copy_from_slice(&(length as u32).to_le_bytes());
        head[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        head[16..24].copy_from_slice(&self.time_ns.to_le_bytes());
        head[24..32].copy_from_slice(&self.correlated.to_le_bytes());
        head[32..36].copy_from_slice(&self.conversation.to_le_bytes());
        head[36] = match self.kind {
            RecordKind::Message => 1,
            RecordKind::Event => 2,
            RecordKind::Note => 3,
            RecordKind::Gap => 4,
            RecordKind::End => 5,
            RecordKind::Exchange => 6,
            RecordKind::ExchangeEnd => 7,
            RecordKind::Outcome => 8,
            RecordKind::Mark => 9,
            RecordKind::Verdict => 10,
            RecordKind::Leg => 11,
        };
        head[37] = match self.direction {
            Direction::ClientToServer => 0,
            Direction::ServerToClient => 1,
        };
        head[38..40].copy_from_slice(&self.flags.to_le_bytes());
        head
    }

    /// `None` if no version of this program wrote such a record.
    fn decode(head: &[u8; HEAD_LEN]) -> Option<Self> {
        Some(Self {
            sequence: u64::from_le_bytes(part(head, 8)),
            time_ns: u64::from_le_bytes(part(head, 16)),
            correlated: u64::from_le_bytes(part(head, 24)),
            conversation: u32::from_le_bytes(part(head, 32)),
            kind: match head[36] {
                1 => RecordKind::Message,
                2 => RecordKind::Event,
                3 => RecordKind::Note,
                4 => RecordKind::Gap,
                5 => RecordKind::End,
                6 => RecordKind::Exchange,
                7 => RecordKind::ExchangeEnd,
                8 => RecordKind::Outcome,
                9 => RecordKind::Mark,
                10 => RecordKind::Verdict,
                11 => RecordKind::Leg,
                _ => return None,
            },
            direction: match head[37] {
                0 => Direction::ClientToServer,
                1 => Direction::ServerToClient,
                _ => return None,
            },
            flags: u16::from_le_bytes(part(head, 38)),
        })
    }
}

fn part<const N: usize>(head: &[u8; HEAD_LEN], at: usize) -> [u8; N] {
    head[at..at + N].try_into().expect("inside the head")
}

/// Of a record that begins with its head and goes on with `rest`. Covers all but the checksum itself.
fn checksum(start: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&start[..CHECKSUM.start]);
    hasher.update(&start[CHECKSUM.end..]);
    hasher.update(rest);
    hasher.finalize()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub head: RecordHead,
    pub link: Option<Link>,
    pub payload: Bytes,
    /// Of a message, what rules decided about it, as far as that was known at once.
    pub verdict: Option<Verdict>,
}

/// The HTTP exchange that a message came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub exchange: u64,
    /// Of the SSE event that carried it; empty if there was none.
    pub event_id: Bytes,
}

impl Link {
    /// The link without the event id, which follows it.
    fn encode(exchange: u64, event_id: &[u8]) -> [u8; LINK_LEN] {
        let mut link = [0; LINK_LEN];
        link[0..2].copy_from_slice(&((LINK_LEN - 2 + event_id.len()) as u16).to_le_bytes());
        link[2..10].copy_from_slice(&exchange.to_le_bytes());
        link
    }

    /// Takes the link off the front of `payload`. `None` if none is there.
    fn take(payload: &mut Bytes) -> Option<Self> {
        let length = usize::from(u16::from_le_bytes(*payload.first_chunk()?));
        let exchange = u64::from_le_bytes(*payload.get(2..)?.first_chunk()?);
        if length < LINK_LEN - 2 || payload.len() < 2 + length {
            return None;
        }
        let link = payload.split_to(2 + length);
        Some(Self { exchange, event_id: link.slice(LINK_LEN..) })
    }
}

/// How a session ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Nobody was there to end it; a later command did.
    #[serde(default)]
    pub recovered: bool,
    /// How the server ended, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The last of what it wrote to standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_words: String,
    /// The session that goes on from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_in: Option<uuid::Uuid>,
    /// How many records there are of some kinds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
}

impl End {
    const AMENDMENTS: &str = "amendments";

    /// How many outcomes, marks and late verdicts there are. Without any, nobody has to look for them.
    pub fn amendments(&self) -> u64 {
        self.counts.get(Self::AMENDMENTS).copied().unwrap_or(0)
    }

    /// The same end, with this said.
    pub fn with_amendments(mut self, count: u64) -> Self {
        if count > 0 {
            self.counts.insert(Self::AMENDMENTS.to_owned(), count);
        }
        self
    }
}

#[cfg(test)]
mod tests;
