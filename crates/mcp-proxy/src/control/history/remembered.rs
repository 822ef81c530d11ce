//! History where nothing is recorded: what the ring still has.

use super::super::ring::Ring;
use super::super::tell;
use super::{Found, From, Wanted};

/// The content of the messages on a page. One that is longer comes alone.
const CONTENT_MAX: usize = 8 << 20;

pub fn page(ring: &Ring, wanted: &Wanted) -> Found {
    let last_sequence = ring.messages().next_back().map_or(0, |told| told.recorded.sequence);
    let first_sequence = ring.messages().next().map_or(0, |told| told.recorded.sequence);
    let (mut messages, mut bytes, mut is_full) = (Vec::new(), 0, false);
    let mut take = |told: &mcp_store::Told| {
        if wanted.filter.as_ref().is_none_or(|filter| filter.matches(told)) {
            bytes += told.recorded.raw.len().min(tell::RAW_IN_LIST_MAX);
            messages.push((told.clone(), 0));
        }
        is_full = messages.len() >= wanted.limit || bytes >= CONTENT_MAX;
        is_full
    };
    match wanted.from {
        From::Before(before) => {
            let stopped = ring.messages().rev().filter(|told| told.recorded.sequence < before).find(|told| take(told));
            let older = stopped.map(|told| told.recorded.sequence).filter(|sequence| *sequence > first_sequence);
            messages.reverse();
            let newer = Some(before.saturating_sub(1).min(last_sequence));
            Found { messages, older, newer, last_sequence }
        }
        From::After(after) => {
            let stopped = ring.messages().filter(|told| told.recorded.sequence > after).find(|told| take(told));
            let newer = stopped.map_or(after.max(last_sequence), |told| told.recorded.sequence);
            let older = (first_sequence > 0 && first_sequence <= after).then(|| after.saturating_add(1));
            Found { messages, older, newer: Some(newer), last_sequence }
        }
    }
}
