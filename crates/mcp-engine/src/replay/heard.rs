//! What a server says by itself, counted by method: what the recording has and what came. Messages
//! of this kind depend on the clock and on each other, so no more than their number is compared.

use std::collections::{BTreeMap, HashSet};

use crate::transcript::{Line, Transcript};

/// Methods that are counted apart: a server may make up as many as it likes.
const METHODS_MAX: usize = 256;
/// Bytes of a method's name that count; a server chooses it.
const NAME_MAX: usize = 128;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub recorded: u64,
    pub now: u64,
}

#[derive(Default)]
pub(super) struct Heard {
    counts: BTreeMap<String, Count>,
    /// The longest that one of a method took to come in the recording, from what led to it.
    delays: BTreeMap<String, u64>,
    /// Methods that did not come when they should have. They are not waited for again.
    given_up: HashSet<String>,
    /// Lines of the recording that are counted already.
    up_to: usize,
}

impl Heard {
    /// Counts what the recording has before the line at `end`, as far as it was caused by what was sent.
    pub(super) fn expect_up_to(&mut self, end: usize, transcript: &Transcript, sent: &[bool]) {
        for at in self.up_to..end {
            let line = transcript.line(at);
            let Some(cause) = line.cause.filter(|&cause| sent[cause]) else { continue };
            let name = self.name_of(line);
            let delay = line.time_ns.saturating_sub(transcript.line(cause).arrived_ns());
            self.counts.entry(name.clone()).or_default().recorded += 1;
            let longest = self.delays.entry(name).or_default();
            *longest = delay.max(*longest);
        }
        self.up_to = self.up_to.max(end);
    }

    pub(super) fn hear(&mut self, method: &str) {
        let name = self.name(method);
        self.counts.entry(name).or_default().now += 1;
    }

    /// How long to wait for what has not come yet, at most `most`; nothing if all has.
    pub(super) fn patience(&self, base: u64, most: u64) -> Option<u64> {
        let missing = self.missing();
        missing.map(|name| base.saturating_add(self.delays.get(name).copied().unwrap_or(0)).min(most)).max()
    }

    /// What has not come so far is not waited for any more.
    pub(super) fn give_up(&mut self) {
        let missing: Vec<String> = self.missing().cloned().collect();
        self.given_up.extend(missing);
    }

    fn missing(&self) -> impl Iterator<Item = &String> {
        let is_missing =
            |(name, count): &(&String, &Count)| count.now < count.recorded && !self.given_up.contains(*name);
        self.counts.iter().filter(is_missing).map(|(name, _)| name)
    }

    pub(super) fn into_counts(self) -> BTreeMap<String, Count> {
        self.counts
    }

    fn name_of(&self, line: &Line) -> String {
        self.name(&line.method())
    }

    fn name(&self, method: &str) -> String {
        let name = &method[..method.floor_char_boundary(NAME_MAX)];
        if self.counts.len() >= METHODS_MAX && !self.counts.contains_key(name) {
            return "others".into();
        }
        name.to_owned()
    }
}
