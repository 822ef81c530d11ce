//! The recording of a run: one session, or several where it was long enough to be divided. Sequences
//! count on over the run, and from 1 in each session.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_store::{ExchangeOf, Pages, SparseIndex, StoreError, Told};

use super::{Found, From, Wanted};

/// Open segments kept for later requests. One is nearly always enough.
const OPEN_MAX: usize = 4;

/// A session of this run.
pub(crate) struct Part {
    pub segment: PathBuf,
    /// Messages of this run that came before it.
    pub earlier: u64,
    /// Of the session that is being recorded.
    pub index: Option<Arc<SparseIndex>>,
}

/// All sessions of this run, the current one last, and the newest sequence in them.
pub(crate) struct Parts {
    pub parts: Vec<Part>,
    pub last_sequence: u64,
}

/// Opened segments.
#[derive(Default)]
pub(crate) struct Segments {
    open: Mutex<Vec<(PathBuf, Pages)>>,
}

impl Segments {
    /// A session by itself, with what it has now.
    pub(crate) fn alone(&self, segment: &Path) -> Result<Parts, StoreError> {
        let part = Part { segment: segment.to_owned(), earlier: 0, index: None };
        let last_sequence = self.with(&part, Pages::last)?;
        Ok(Parts { parts: vec![part], last_sequence })
    }

    pub(crate) fn page(&self, parts: &Parts, wanted: &Wanted) -> Result<Found, StoreError> {
        match wanted.from {
            From::Before(before) => self.before(parts, before, wanted),
            From::After(after) => self.after(parts, after, wanted),
        }
    }

    fn before(&self, parts: &Parts, before: u64, wanted: &Wanted) -> Result<Found, StoreError> {
        let last_sequence = parts.last_sequence;
        // What came since belongs to the page after the last: whoever goes on there is to see it once.
        let before = before.min(last_sequence.saturating_add(1));
        let newer = Some(before.saturating_sub(1));
        let mut found = Found { newer, last_sequence, ..Found::default() };
        for part in parts.parts.iter().rev().filter(|part| part.earlier.saturating_add(1) < before) {
            let room = wanted.limit - found.messages.len();
            if room == 0 {
                found.older = found.messages.first().map(|(told, earlier)| told.recorded.sequence + earlier);
                break;
            }
            let own = before - part.earlier;
            let page = self.with(part, |pages| pages.before(own, room, wanted.filter.as_ref()))?;
            found.messages.splice(..0, page.messages.into_iter().map(|told| (told, part.earlier)));
            if let Some(next) = page.next {
                found.older = Some(next + part.earlier);
                break;
            }
        }
        Ok(found)
    }

    fn after(&self, parts: &Parts, after: u64, wanted: &Wanted) -> Result<Found, StoreError> {
        let last_sequence = parts.last_sequence;
        let older = (after > 0).then(|| after.saturating_add(1));
        let mut found = Found { older, newer: Some(after.max(last_sequence)), last_sequence, ..Found::default() };
        for (number, part) in parts.parts.iter().enumerate() {
            if parts.parts.get(number + 1).is_some_and(|next| next.earlier <= after) {
                continue;
            }
            let room = wanted.limit - found.messages.len();
            if room == 0 {
                found.newer = Some(part.earlier);
                break;
            }
            let own = after.saturating_sub(part.earlier);
            let page = self.with(part, |pages| pages.after(own, room, wanted.filter.as_ref()))?;
            let is_known = |told: &Told| told.recorded.sequence + part.earlier <= last_sequence;
            let messages = page.messages.into_iter().filter(is_known);
            found.messages.extend(messages.map(|told| (told, part.earlier)));
            if let Some(next) = page.next {
                found.newer = Some((next + part.earlier).min(last_sequence.max(after)));
                break;
            }
        }
        Ok(found)
    }

    pub(crate) fn one(&self, parts: &Parts, sequence: u64) -> Result<Option<(Told, u64)>, StoreError> {
        let Some(part) = parts.parts.iter().rev().find(|part| part.earlier < sequence) else { return Ok(None) };
        let told = self.with(part, |pages| pages.one(sequence - part.earlier))?;
        Ok(told.map(|told| (told, part.earlier)))
    }

    /// The HTTP exchange of a message, as [`super::exchange`] tells it. What of it does not stand in the
    /// session of the message stands in the one before or after, save if it lasted very long.
    pub(crate) fn exchange(&self, parts: &Parts, sequence: u64) -> Result<Option<Option<ExchangeOf>>, StoreError> {
        let Some(at) = parts.parts.iter().rposition(|part| part.earlier < sequence) else { return Ok(None) };
        let part = &parts.parts[at];
        let Some(told) = self.with(part, |pages| pages.one(sequence - part.earlier))? else { return Ok(None) };
        let Some(number) = told.recorded.exchange else { return Ok(Some(None)) };
        let mut exchange = self.with(part, |pages| pages.exchange(number))?;
        let before = at.checked_sub(1).filter(|_| exchange.request.is_none());
        let after = Some(at + 1).filter(|_| exchange.end.is_none());
        for beside in [before, after].into_iter().flatten().filter_map(|at| parts.parts.get(at)) {
            let more = self.with(beside, |pages| pages.exchange(number))?;
            exchange.request = exchange.request.or(more.request);
            exchange.answer = exchange.answer.or(more.answer);
            exchange.end = exchange.end.or(more.end);
        }
        Ok(Some(Some(ExchangeOf { number, event_id: told.recorded.event_id, exchange })))
    }

    /// Reads in a segment, which is kept open. Whoever reads at the same time opens it again.
    fn with<R>(&self, part: &Part, read: impl FnOnce(&mut Pages) -> Result<R, StoreError>) -> Result<R, StoreError> {
        let mut pages = match self.take(&part.segment) {
            Some(pages) => pages,
            None => Pages::open(&part.segment, part.index.clone())?,
        };
        let result = read(&mut pages)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push((part.segment.clone(), pages));
        Ok(result)
    }

    fn take(&self, segment: &Path) -> Option<Pages> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(|(path, _)| path == segment)?;
        Some(open.remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use mcp_filter::Filter;
    use mcp_store::{Direction, RecordHead, RecordKind, SegmentWriter, SessionHeader, Transport};

    use super::*;

    /// A run that was divided: messages 1 to 3, 4 to 5, and 6 to 8.
    fn run(dir: &Path) -> Parts {
        let mut parts = Vec::new();
        for (earlier, count) in [(0, 3), (3, 2), (5, 3)] {
            let id = uuid::Uuid::new_v4();
            let segment = dir.join(id.to_string());
            let header = SessionHeader::begun(id, 0, Transport::Stdio);
            let mut writer = SegmentWriter::create(&segment, &header).unwrap();
            for sequence in 1..=count {
                let head = RecordHead {
                    kind: RecordKind::Message,
                    direction: Direction::ClientToServer,
                    flags: 0,
                    conversation: 0,
                    sequence,
                    time_ns: 0,
                    correlated: 0,
                };
                let method = if (sequence + earlier) % 2 == 0 { "even" } else { "odd" };
                writer.push(&head, &format!(r#"{{"method":"{method}"}}"#).into());
            }
            writer.commit().unwrap();
            let index = (earlier == 5).then(|| writer.index());
            parts.push(Part { segment, earlier, index });
        }
        Parts { parts, last_sequence: 8 }
    }

    #[track_caller]
    fn check(from: From, limit: usize, filter: &str, expected: &[u64], older: Option<u64>, newer: Option<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let parts = run(dir.path());
        let filter = (!filter.is_empty()).then(|| Filter::parse(filter).unwrap());
        let found = Segments::default().page(&parts, &Wanted { from, limit, filter }).unwrap();
        let sequences: Vec<u64> =
            found.messages.iter().map(|(told, earlier)| told.recorded.sequence + earlier).collect();
        assert_eq!((sequences.as_slice(), found.older, found.newer), (expected, older, newer));
        assert_eq!(found.last_sequence, 8);
    }

    #[test]
    fn pages_cross_sessions_backwards() {
        check(From::Before(u64::MAX), 2, "", &[7, 8], Some(7), Some(8));
        check(From::Before(7), 2, "", &[5, 6], Some(5), Some(6));
        check(From::Before(6), 2, "", &[4, 5], Some(4), Some(5));
        check(From::Before(5), 9, "", &[1, 2, 3, 4], None, Some(4));
        check(From::Before(u64::MAX), 9, "method:even", &[2, 4, 6, 8], None, Some(8));
        check(From::Before(1), 9, "", &[], None, Some(0));
        check(From::Before(0), 9, "", &[], None, Some(0));
    }

    #[test]
    fn pages_cross_sessions_forwards() {
        check(From::After(0), 2, "", &[1, 2], None, Some(2));
        check(From::After(2), 2, "", &[3, 4], Some(3), Some(4));
        check(From::After(0), 3, "", &[1, 2, 3], None, Some(3));
        check(From::After(3), 9, "", &[4, 5, 6, 7, 8], Some(4), Some(8));
        check(From::After(0), 9, "method:odd", &[1, 3, 5, 7], None, Some(8));
        check(From::After(8), 9, "", &[], Some(9), Some(8));
        check(From::After(u64::MAX), 9, "", &[], Some(u64::MAX), Some(u64::MAX));
    }

    /// Whoever reads on after the last sequence sees each message once, also those that came meanwhile.
    #[test]
    fn a_page_ends_where_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let (parts, segments) = (Parts { last_sequence: 5, ..run(dir.path()) }, Segments::default());
        for (from, expected) in [(From::Before(u64::MAX), vec![4, 5]), (From::After(3), vec![4, 5])] {
            let limit = if matches!(from, From::After(_)) { 9 } else { 2 };
            let found = segments.page(&parts, &Wanted { from, limit, filter: None }).unwrap();
            let sequences: Vec<_> =
                found.messages.iter().map(|(told, earlier)| told.recorded.sequence + earlier).collect();
            assert_eq!((sequences, found.newer, found.last_sequence), (expected, Some(5), 5));
        }
    }

    #[test]
    fn one_is_found_in_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let (parts, segments) = (run(dir.path()), Segments::default());
        for sequence in 1..=8 {
            let (told, earlier) = segments.one(&parts, sequence).unwrap().unwrap();
            assert_eq!(told.recorded.sequence + earlier, sequence);
        }
        assert!(segments.one(&parts, 0).unwrap().is_none() && segments.one(&parts, 9).unwrap().is_none());
        assert!(segments.open.lock().unwrap().len() <= OPEN_MAX);
    }
}
