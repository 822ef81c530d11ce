//! Where to begin reading in a long segment: the places of a few messages, of the first message of
//! each conversation, of everything that is said of a message later, and of HTTP exchanges. Whoever writes a segment
//! fills it along the way; of a segment that nobody writes it is made from the heads of its records.

mod exchanges;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{RecordHead, RecordKind};
use exchanges::{Exchanges, ExchangesGrowth};

pub(crate) use exchanges::{ExchangeParts, NEAR_BYTES};

/// A place is kept after so many messages, or so many bytes: what is read to get at one message is a
/// matter of a millisecond, and the places of a whole session fit in some tens of kilobytes.
const PLACE_MESSAGES: u64 = 1_024;
pub(crate) const PLACE_BYTES: u64 = 1024 * 1024;
/// Conversations of which the beginning is known; as many as readers remember.
const OPENINGS_MAX: usize = 16_384;
/// Messages of which it is remembered that more is said of them: as many as a session has.
pub(crate) const AMENDED_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct SparseIndex {
    kept: Mutex<Kept>,
    /// Everything before this is whole, and in the file.
    len: AtomicU64,
    last: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    places: Vec<Place>,
    openings: HashMap<u32, u64>,
    legs: HashMap<u32, u64>,
    amended: HashMap<u64, Amended>,
    exchanges: Exchanges,
}

/// A message, and where its record begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub sequence: u64,
    pub offset: u64,
}

/// Where the last outcome, mark and late verdict of a message stand; 0 if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amended {
    pub outcome: u64,
    pub mark: u64,
    pub verdict: u64,
}

impl Amended {
    pub(crate) fn add(&mut self, kind: RecordKind, offset: u64) {
        *self.place(kind) = offset;
    }

    pub(crate) fn place(&mut self, kind: RecordKind) -> &mut u64 {
        match kind {
            RecordKind::Outcome => &mut self.outcome,
            RecordKind::Verdict => &mut self.verdict,
            _ => &mut self.mark,
        }
    }

    pub(crate) fn places(self) -> impl Iterator<Item = u64> {
        [self.verdict, self.outcome, self.mark].into_iter().filter(|place| *place > 0)
    }
}

impl SparseIndex {
    /// How much of the file can be read.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    pub fn is_empty(&self) -> bool {
        self.last() == 0
    }

    /// The newest message.
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// In order.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.kept().places.clone()
    }

    /// Where the first message of a conversation stands.
    pub(crate) fn opening(&self, conversation: u32) -> Option<u64> {
        self.kept().openings.get(&conversation).copied()
    }

    /// Where it stands with which server of a gateway a conversation is.
    pub(crate) fn leg(&self, conversation: u32) -> Option<u64> {
        self.kept().legs.get(&conversation).copied()
    }

    pub(crate) fn has_legs(&self) -> bool {
        !self.kept().legs.is_empty()
    }

    pub(crate) fn amended(&self, sequence: u64) -> Option<Amended> {
        self.kept().amended.get(&sequence).copied()
    }

    /// What stands far from where an HTTP exchange began, and from where on to look for the rest.
    pub(crate) fn exchange(&self, number: u64) -> (ExchangeParts, Option<u64>) {
        self.kept().exchanges.find(number)
    }

    /// Where the head of an exchange stands that others name by this number.
    pub(crate) fn head(&self, number: u64) -> Option<u64> {
        self.kept().exchanges.head(number)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Whoever panicked left it whole: everything is added in one go.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what was written, up to `len`.
    pub(crate) fn publish(&self, growth: &mut Growth, len: u64) {
        if !growth.is_small() {
            let mut kept = self.kept();
            kept.places.append(&mut growth.places);
            for (conversation, offset) in growth.openings.drain(..) {
                if kept.openings.len() < OPENINGS_MAX {
                    kept.openings.entry(conversation).or_insert(offset);
                }
            }
            for (conversation, offset) in growth.legs.drain(..) {
                if kept.legs.len() < OPENINGS_MAX {
                    kept.legs.entry(conversation).or_insert(offset);
                }
            }
            for (sequence, kind, offset) in growth.amended.drain(..) {
                if kept.amended.len() < AMENDED_MAX || kept.amended.contains_key(&sequence) {
                    kept.amended.entry(sequence).or_default().add(kind, offset);
                }
            }
            kept.exchanges.publish(&mut growth.exchanges);
        }
        self.last.fetch_max(growth.last, Ordering::AcqRel);
        self.len.store(len, Ordering::Release);
    }
}

/// What records add to an index, before they are written.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    places: Vec<Place>,
    openings: Vec<(u32, u64)>,
    legs: Vec<(u32, u64)>,
    amended: Vec<(u64, RecordKind, u64)>,
    exchanges: ExchangesGrowth,
    last: u64,
    /// The last place, and how many messages came since.
    place_at: Option<u64>,
    since: u64,
    /// Conversations are numbered as they begin, so a new one has a greater number.
    conversation: Option<u32>,
}

impl Growth {
    /// Takes note of the record that begins at `offset`.
    pub(crate) fn add(&mut self, head: &RecordHead, offset: u64) {
        match head.kind {
            RecordKind::Message | RecordKind::Event => self.add_message(head, offset),
            RecordKind::Exchange | RecordKind::ExchangeEnd => self.exchanges.add(head, offset),
            RecordKind::Leg => self.legs.push((head.conversation, offset)),
            _ if head.is_amendment() => self.amended.push((head.correlated, head.kind, offset)),
            _ => {}
        }
    }

    fn add_message(&mut self, head: &RecordHead, offset: u64) {
        let is_due = |at: u64| self.since >= PLACE_MESSAGES || offset.saturating_sub(at) >= PLACE_BYTES;
        // Ours are always in order; a file of somebody else's may not be.
        if self.place_at.is_none_or(is_due) && head.sequence > self.last {
            self.places.push(Place { sequence: head.sequence, offset });
            (self.place_at, self.since) = (Some(offset), 0);
        }
        self.last = self.last.max(head.sequence);
        self.since += 1;
        if self.conversation.is_none_or(|known| head.conversation > known) {
            self.conversation = Some(head.conversation);
            self.openings.push((head.conversation, offset));
        }
    }

    /// None of it was written.
    pub(crate) fn forget(&mut self) {
        let (conversation, last, exchanges) = (self.conversation, self.last, self.exchanges.forgotten());
        *self = Self { conversation, last, exchanges, ..Self::default() };
    }

    fn is_small(&self) -> bool {
        self.places.is_empty()
            && self.openings.is_empty()
            && self.legs.is_empty()
            && self.amended.is_empty()
            && self.exchanges.is_empty()
    }
}
