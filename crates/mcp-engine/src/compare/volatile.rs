//! What may differ: places that were named, and places that were seen to differ between recordings of
//! the same calls.

use std::collections::{HashMap, HashSet};

use super::{Path, Pattern};

/// Places learned at most: a server that answers differently each time must not fill the memory.
const LEARNED_MAX: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub struct Volatile {
    named: Vec<Pattern>,
    /// By what was called.
    learned: HashMap<String, HashSet<Pattern>>,
    count: usize,
}

impl Volatile {
    pub fn name(&mut self, pattern: Pattern) {
        self.named.push(pattern);
    }

    /// Remembers that answers to `call` differ at `path`, in whichever item of a list.
    pub fn learn(&mut self, call: &str, path: &Path) {
        if self.count < LEARNED_MAX && self.learned.entry(call.to_owned()).or_default().insert(path.in_any_item()) {
            self.count += 1;
        }
    }

    /// Whether a difference at `path` in an answer to `call` means nothing.
    pub fn covers(&self, call: &str, path: &Path) -> bool {
        let learned = self.learned.get(call).into_iter().flatten();
        self.named.iter().chain(learned).any(|pattern| pattern.covers(path))
    }

    pub fn named(&self) -> &[Pattern] {
        &self.named
    }

    /// What was learned, in a settled order.
    pub fn learned(&self) -> Vec<(&str, &Pattern)> {
        let mut all: Vec<(&str, &Pattern)> = self
            .learned
            .iter()
            .flat_map(|(call, patterns)| patterns.iter().map(move |pattern| (call.as_str(), pattern)))
            .collect();
        all.sort_by_cached_key(|(call, pattern)| (call.to_string(), pattern.to_string()));
        all
    }
}
