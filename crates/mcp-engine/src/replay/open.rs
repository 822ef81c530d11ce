//! Requests of a replay that are on their way. A recording may have many under way at once, so neither
//! the next one to be overdue nor the first answer to wait for is looked for among all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use mcp_wire::Id;

pub(super) struct Open {
    pub line: usize,
    /// What was sent.
    pub request: Bytes,
    pub sent_at: u64,
    /// The line of the recorded answer, if one is to be waited for.
    pub expected: Option<usize>,
    /// When it is overdue; `u64::MAX` if it is not waited for.
    pub until: u64,
    pub extra_rounds: u32,
}

impl Open {
    pub(super) fn is_awaited(&self) -> bool {
        self.until < u64::MAX
    }
}

/// Open requests by the id they left under.
#[derive(Default)]
pub(super) struct OpenCalls {
    by_id: HashMap<Id, (u64, Open)>,
    by_due: BTreeMap<(u64, u64), Id>,
    expected: BTreeSet<usize>,
    count: u64,
}

impl OpenCalls {
    /// Returns the request whose place it takes, if there is one.
    pub(super) fn insert(&mut self, id: Id, open: Open) -> Option<Open> {
        let before = self.remove(&id);
        self.count += 1;
        self.by_due.insert((open.until, self.count), id.clone());
        self.expected.extend(open.expected);
        self.by_id.insert(id, (self.count, open));
        before
    }

    pub(super) fn remove(&mut self, id: &Id) -> Option<Open> {
        let (number, open) = self.by_id.remove(id)?;
        self.by_due.remove(&(open.until, number));
        if let Some(expected) = open.expected {
            self.expected.remove(&expected);
        }
        Some(open)
    }

    /// Whether an answer is waited for that came before `line` in the recording.
    pub(super) fn expects_before(&self, line: usize) -> bool {
        self.expected.first().is_some_and(|&first| first < line)
    }

    /// Whether an answer is waited for under this id.
    pub(super) fn awaits(&self, id: &Id) -> bool {
        self.by_id.get(id).is_some_and(|(_, open)| open.is_awaited())
    }

    /// When the next one is overdue, if any is waited for.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.by_due.first_key_value().map(|((until, _), _)| *until).filter(|until| *until < u64::MAX)
    }

    pub(super) fn take_overdue(&mut self, now: u64) -> Option<(Id, Open)> {
        let ((until, _), id) = self.by_due.first_key_value()?;
        if *until > now {
            return None;
        }
        let id = id.clone();
        self.remove(&id).map(|open| (id, open))
    }

    /// All of them, in the order they left.
    pub(super) fn take_all(&mut self) -> Vec<(Id, Open)> {
        let mut all: Vec<_> = std::mem::take(self).by_id.into_iter().collect();
        all.sort_by_key(|(_, (number, _))| *number);
        all.into_iter().map(|(id, (_, open))| (id, open)).collect()
    }
}
