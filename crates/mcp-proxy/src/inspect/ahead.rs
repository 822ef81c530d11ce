//! Reads a little ahead of what is printed, because some lines say what comes of something: the
//! status that a request will get, whether anything comes on a stream. A short session is known as a
//! whole before its first line.

use std::collections::VecDeque;

use mcp_store::{Entries, Said, SessionEntry, StoreError};

/// Records, and their bytes, that `inspect` reads ahead of its output to say how a request ended: enough for
/// messages that belong together, and read in no noticeable time.
const ENTRIES_AHEAD: usize = 1024;
const BYTES_AHEAD: usize = 1024 * 1024;

pub(super) struct Ahead {
    entries: Entries,
    queue: VecDeque<SessionEntry>,
    bytes: usize,
}

impl Ahead {
    pub(super) fn new(entries: Entries) -> Self {
        Self { entries, queue: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Reads what may be read ahead, and shows it to `foresee`.
    pub(super) fn fill(&mut self, mut foresee: impl FnMut(&SessionEntry)) -> Result<(), StoreError> {
        while self.queue.len() < ENTRIES_AHEAD && self.bytes < BYTES_AHEAD {
            let Some(entry) = self.entries.next()? else { break };
            foresee(&entry);
            self.bytes += weight(&entry);
            self.queue.push_back(entry);
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<SessionEntry> {
        let entry = self.queue.pop_front()?;
        self.bytes -= weight(&entry);
        Some(entry)
    }

    pub(super) fn look_again(&mut self) -> Result<(), StoreError> {
        self.entries.look_again()
    }
}

fn weight(entry: &SessionEntry) -> usize {
    match entry {
        SessionEntry::Message(message) => message.raw.len() + message.original_raw.as_ref().map_or(0, |raw| raw.len()),
        SessionEntry::Amendment(amendment) => match &amendment.said {
            Said::Outcome(outcome) => outcome.edited.as_ref().map_or(0, |edited| edited.len()),
            Said::Mark(_) | Said::Verdict(_) => 0,
        },
        _ => 0,
    }
}
