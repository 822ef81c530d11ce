//! Where the parts of an HTTP exchange stand. Exchanges are numbered as they begin, so a few places
//! tell where each began, and nearly all of them are over soon after. What comes late is remembered one
//! by one. Heads that later ones name are remembered too, because they may stand anywhere before.

use std::collections::{BTreeMap, VecDeque};

use super::{PLACE_BYTES, Place};
use crate::recorded::Direction;
use crate::segment::{RecordHead, RecordKind};

/// Bytes read from the place of an exchange in search of its parts: some milliseconds.
pub(crate) const NEAR_BYTES: u64 = 4 * PLACE_BYTES;
/// Exchanges of which parts stand further away; the oldest are forgotten first.
const LATE_MAX: usize = 65_536;
/// Heads that others may name. A client whose requests all differ has that many, and then none is named.
const HEADS_MAX: usize = 262_144;

/// Where the parts of one exchange stand; 0 where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExchangeParts {
    pub request: u64,
    pub answer: u64,
    pub end: u64,
}

impl ExchangeParts {
    /// Takes note of a record that is about the exchange. Of two the first counts.
    pub(crate) fn add(&mut self, head: &RecordHead, offset: u64) {
        let first = |part: &mut u64| *part = if *part == 0 { offset } else { *part };
        match (head.kind, head.direction) {
            (RecordKind::Exchange, Direction::ClientToServer) => first(&mut self.request),
            (RecordKind::Exchange, Direction::ServerToClient) => {
                first(&mut self.answer);
                if head.flags & RecordHead::ENDS != 0 {
                    first(&mut self.end);
                }
            }
            (RecordKind::ExchangeEnd, _) => first(&mut self.end),
            _ => {}
        }
    }

    pub(crate) fn are_all(&self) -> bool {
        self.request > 0 && self.answer > 0 && self.end > 0
    }
}

#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// In order.
    places: Vec<Place>,
    late: BTreeMap<u64, ExchangeParts>,
    /// By their numbers, in order.
    heads: VecDeque<(u64, u64)>,
}

impl Exchanges {
    /// What stands far from where the exchange began, and from where on to look for the rest.
    pub(super) fn find(&self, exchange: u64) -> (ExchangeParts, Option<u64>) {
        let late = self.late.get(&exchange).copied().unwrap_or_default();
        let at = self.places.partition_point(|place| place.sequence <= exchange).checked_sub(1);
        (late, at.map(|at| self.places[at].offset))
    }

    /// Where the head of this number stands.
    pub(super) fn head(&self, number: u64) -> Option<u64> {
        let at = self.heads.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(self.heads[at].1)
    }

    pub(super) fn publish(&mut self, growth: &mut ExchangesGrowth) {
        self.places.append(&mut growth.places);
        for (head, offset) in growth.late.drain(..) {
            self.late.entry(head.sequence).or_default().add(&head, offset);
            if self.late.len() > LATE_MAX {
                self.late.pop_first();
            }
        }
        self.heads.extend(growth.heads.drain(..));
        let excess = self.heads.len().saturating_sub(HEADS_MAX);
        self.heads.drain(..excess);
    }
}

/// What records add, before they are written.
#[derive(Debug, Default)]
pub(super) struct ExchangesGrowth {
    places: Vec<Place>,
    late: Vec<(RecordHead, u64)>,
    heads: Vec<(u64, u64)>,
    /// The places that are still near, and the exchange of the last.
    near: VecDeque<Place>,
    last: u64,
}

impl ExchangesGrowth {
    pub(super) fn add(&mut self, head: &RecordHead, offset: u64) {
        while self.near.front().is_some_and(|place| offset.saturating_sub(place.offset) >= NEAR_BYTES) {
            self.near.pop_front();
        }
        let is_request = head.kind == RecordKind::Exchange && head.direction == Direction::ClientToServer;
        let is_due = self.near.back().is_none_or(|place| offset.saturating_sub(place.offset) >= PLACE_BYTES);
        if is_request && is_due && head.sequence > self.last {
            let place = Place { sequence: head.sequence, offset };
            self.places.push(place);
            self.near.push_back(place);
            self.last = head.sequence;
        }
        if self.near.front().is_none_or(|place| place.sequence > head.sequence) {
            self.late.push((*head, offset));
        }
        let is_whole = head.kind == RecordKind::Exchange && head.flags & RecordHead::REPEATED == 0;
        if is_whole && head.correlated > 0 {
            self.heads.push((head.correlated, offset));
        }
    }

    /// None of it was written. What comes next is near to nothing.
    pub(super) fn forgotten(&self) -> Self {
        Self { last: self.last, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.late.is_empty() && self.heads.is_empty()
    }
}
