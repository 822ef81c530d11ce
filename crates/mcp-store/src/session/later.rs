//! What a segment says of a message after the message: how a hold of it ended, what somebody marked
//! it with, what was decided about it later. Where that stands is gathered from the heads of the records before the messages are
//! read, so that each message is told with it.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use crate::StoreError;
use crate::exchange::{Amendment, Said, SessionEntry};
use crate::recorded::Recorded;
use crate::segment::sparse::{AMENDED_MAX, Amended};
use crate::segment::{self, End, Mark, Outcome, Record, RecordHead, RecordKind, SegmentReader, Verdict};

pub(crate) struct Later {
    reader: SegmentReader,
    /// By the sequence of the message. What was told is removed.
    places: HashMap<u64, Amended>,
    /// Everything before this was looked at.
    looked_to: u64,
}

impl Later {
    /// Looks at the first `len` bytes of a segment.
    pub(crate) fn open(path: &Path, len: u64) -> Result<Self, StoreError> {
        let mut reader = SegmentReader::open(path)?;
        reader.end_at(len);
        let looked_to = reader.whole_len();
        let mut has_none = || -> io::Result<bool> {
            let words = reader.last_words()?;
            let end = words.first().map(|record| serde_json::from_slice::<End>(&record.payload).unwrap_or_default());
            Ok(end.is_some_and(|end| end.amendments() == 0) && !words.iter().any(|record| record.head.is_amendment()))
        };
        let has_none = !segment::is_live(path)? && has_none().map_err(StoreError::io("read", path))?;
        let looked_to = if has_none { reader.file_len() } else { looked_to };
        let mut later = Self { reader, places: HashMap::new(), looked_to };
        later.look()?;
        Ok(later)
    }

    /// Looks at what has been written since, up to `len`.
    pub(crate) fn look_again(&mut self, len: u64) -> Result<(), StoreError> {
        self.reader.look_again().map_err(StoreError::io("read", self.reader.path()))?;
        self.reader.end_at(len);
        self.look()
    }

    fn look(&mut self) -> Result<(), StoreError> {
        if self.looked_to >= self.reader.file_len() {
            return Ok(());
        }
        let mut look = || -> io::Result<()> {
            self.reader.go_to(self.looked_to)?;
            while let Some(head) = self.reader.next_head()? {
                if head.is_amendment() {
                    self.remember(&head);
                }
            }
            Ok(())
        };
        let looked = look();
        self.looked_to = self.reader.whole_len();
        looked.map_err(StoreError::io("read", self.reader.path()))
    }

    fn remember(&mut self, head: &RecordHead) {
        if self.places.len() >= AMENDED_MAX && !self.places.contains_key(&head.correlated) {
            return;
        }
        self.places.entry(head.correlated).or_default().add(head.kind, self.reader.last_record());
    }

    /// Adds to a message what is said of it later.
    pub(crate) fn amend(&mut self, message: &mut Recorded) -> Result<(), StoreError> {
        if self.places.is_empty() {
            return Ok(());
        }
        let Some(places) = self.places.remove(&message.sequence) else { return Ok(()) };
        for place in places.places() {
            let said = said(&mut self.reader, place, message.sequence);
            if let Some(said) = said.map_err(StoreError::io("read", self.reader.path()))? {
                message.amend(said);
            }
        }
        Ok(())
    }

    /// The record at `place`, if it speaks of a message that was told without it.
    pub(crate) fn untold(&mut self, record: &Record, place: u64) -> Option<SessionEntry> {
        let head = &record.head;
        let places = self.places.get_mut(&head.correlated)?;
        let known = places.place(head.kind);
        if *known != place {
            return None;
        }
        *known = 0;
        if *places == Amended::default() {
            self.places.remove(&head.correlated);
        }
        amendment(record)
    }
}

/// What the record at `place` says of a message, if it is whole.
pub(crate) fn said(reader: &mut SegmentReader, place: u64, sequence: u64) -> io::Result<Option<Said>> {
    reader.go_to(place)?;
    let record = reader.next_record()?;
    let is_there = |record: &Record| reader.last_record() == place && record.head.correlated == sequence;
    Ok(record.filter(is_there).and_then(|record| Said::decode(&record)))
}

/// What an outcome, a mark or a verdict says, by itself.
pub(crate) fn amendment(record: &Record) -> Option<SessionEntry> {
    let RecordHead { conversation, direction, time_ns, correlated: sequence, .. } = record.head;
    let said = Said::decode(record)?;
    Some(SessionEntry::Amendment(Amendment { sequence, conversation, direction, time_ns, said }))
}

impl Said {
    fn decode(record: &Record) -> Option<Self> {
        match record.head.kind {
            RecordKind::Outcome => Outcome::decode(&record.payload).map(Self::Outcome),
            RecordKind::Mark => Mark::decode(&record.payload).map(Self::Mark),
            RecordKind::Verdict => Verdict::decode(&record.payload).map(Self::Verdict),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::recorded::{Direction, SessionHeader, Transport};
    use crate::segment::{OutcomeKind, SegmentWriter, VerdictKind};
    use crate::{Entries, Session};

    struct Capture {
        dir: tempfile::TempDir,
        writer: SegmentWriter,
    }

    fn capture() -> Capture {
        let header = SessionHeader::begun(uuid::Uuid::new_v4(), 5, Transport::Stdio);
        let dir = tempfile::tempdir().unwrap();
        let writer = SegmentWriter::create(&dir.path().join("s.mcpseg"), &header).unwrap();
        Capture { dir, writer }
    }

    fn head(sequence: u64, correlated: u64, flags: u16) -> RecordHead {
        let (kind, direction) = (RecordKind::Message, Direction::ClientToServer);
        RecordHead { kind, direction, flags, conversation: 1, sequence, time_ns: 9, correlated }
    }

    impl Capture {
        fn path(&self) -> std::path::PathBuf {
            self.dir.path().join("s.mcpseg")
        }

        fn message(&mut self, sequence: u64, is_held: bool) {
            let flags = if is_held { RecordHead::HELD } else { 0 };
            self.writer.push(&head(sequence, 0, flags), &Bytes::from(format!("{{\"came\":{sequence}}}")));
            self.writer.commit().unwrap();
        }

        fn outcome(&mut self, sequence: u64, what: OutcomeKind, edited: Option<&'static str>) {
            let edited = edited.map(|edited| Bytes::from_static(edited.as_bytes()));
            let outcome = Outcome { what, by: "ann".into(), why: String::new(), held_ns: 7, edited };
            self.writer.push_outcome(&head(0, sequence, 0), &outcome);
            self.writer.commit().unwrap();
        }

        fn mark(&mut self, sequence: u64, mark: Option<&str>) {
            let mark = Mark { mark: mark.map(Into::into), note: None };
            self.writer.push_mark(&head(0, sequence, 0), &mark);
            self.writer.commit().unwrap();
        }

        fn verdict(&mut self, sequence: u64, what: VerdictKind, rule: &str) {
            let verdict = Verdict { what, rule: Some(rule.into()), operation: None, audit: None };
            self.writer.push_verdict(&head(0, sequence, 0), &verdict);
            self.writer.commit().unwrap();
        }

        fn end(self) -> tempfile::TempDir {
            self.writer.finish(10, &End::default()).unwrap();
            self.dir
        }
    }

    /// `1 {"came":1}`, `2 dropped`, `3 {"edited":3} was {"came":3}`; `3! …` for what comes by itself.
    fn shown(entry: &SessionEntry) -> String {
        match entry {
            SessionEntry::Message(message) => {
                let mut words = vec![message.sequence.to_string(), String::from_utf8_lossy(&message.raw).into_owned()];
                words.extend(message.original_raw.iter().map(|raw| format!("was {}", String::from_utf8_lossy(raw))));
                words.extend(message.held.then(|| format!("held {:?}", message.held_ns)));
                words.extend(message.outcome.map(|outcome| outcome.as_str().to_owned()));
                words.extend(message.mark.iter().cloned());
                words.extend(message.verdict.as_deref().map(said_by_rules));
                words.join(" ")
            }
            SessionEntry::Amendment(Amendment { sequence, said: Said::Outcome(outcome), .. }) => {
                format!("{sequence}! {}", outcome.what.as_str())
            }
            SessionEntry::Amendment(Amendment { sequence, said: Said::Mark(mark), .. }) => {
                format!("{sequence}! {:?}", mark.mark)
            }
            SessionEntry::Amendment(Amendment { sequence, said: Said::Verdict(verdict), .. }) => {
                format!("{sequence}! {}", said_by_rules(verdict))
            }
            other => panic!("{other:?}"),
        }
    }

    fn said_by_rules(verdict: &Verdict) -> String {
        format!("{} by {}", verdict.what.as_str(), verdict.rule.as_deref().unwrap_or("default"))
    }

    fn read(path: &Path) -> Vec<String> {
        let mut shown_entries = Vec::new();
        let session = Session::open_segment(path).unwrap();
        session
            .for_each_entry(|entry| -> Result<(), StoreError> {
                shown_entries.push(shown(&entry));
                Ok(())
            })
            .unwrap();
        let mut entries = Entries::open_segment(path).unwrap();
        let streamed: Vec<String> = std::iter::from_fn(|| entries.next().unwrap()).map(|entry| shown(&entry)).collect();
        assert_eq!(streamed, shown_entries);
        assert_eq!(entries.summary().messages, session.summary().messages);
        shown_entries
    }

    #[test]
    fn messages_are_told_with_what_became_of_them() {
        let mut capture = capture();
        capture.message(1, false);
        capture.message(2, true);
        capture.message(3, true);
        capture.mark(1, Some("first"));
        capture.outcome(3, OutcomeKind::Modified, Some("{\"edited\":3}"));
        capture.message(4, true);
        capture.outcome(2, OutcomeKind::Dropped, None);
        capture.mark(1, Some("last"));
        let expected = [
            "1 {\"came\":1} last",
            "2 {\"came\":2} held Some(7) dropped",
            "3 {\"edited\":3} was {\"came\":3} held Some(7) modified",
            "4 {\"came\":4} held None",
        ];
        assert_eq!(read(&capture.path()), expected, "while it is written");
        let path = capture.path();
        let _dir = capture.end();
        assert_eq!(read(&path), expected);
        assert_eq!(Session::open_segment(&path).unwrap().summary().end.as_ref().unwrap().amendments(), 4);
    }

    /// Whoever reads along has told a message before anybody decided about it.
    #[test]
    fn what_comes_later_is_told_by_itself() {
        let mut capture = capture();
        let mut entries = Entries::open_segment(&capture.path()).unwrap();
        let told = |entries: &mut Entries| -> Vec<String> {
            entries.look_again().unwrap();
            std::iter::from_fn(|| entries.next().unwrap()).map(|entry| shown(&entry)).collect()
        };
        capture.message(1, true);
        assert_eq!(told(&mut entries), ["1 {\"came\":1} held None"]);
        capture.outcome(1, OutcomeKind::Forwarded, None);
        capture.message(2, true);
        capture.outcome(2, OutcomeKind::Dropped, None);
        assert_eq!(told(&mut entries), ["1! forwarded", "2 {\"came\":2} held Some(7) dropped"]);
        capture.mark(2, Some("x"));
        capture.mark(2, None);
        assert_eq!(told(&mut entries), ["2! None"], "the last one counts");
        let path = capture.path();
        let _dir = capture.end();
        assert!(told(&mut entries).is_empty());
        assert_eq!(read(&path), ["1 {\"came\":1} held Some(7) forwarded", "2 {\"came\":2} held Some(7) dropped"]);
    }

    #[test]
    fn verdicts_come_with_their_messages() {
        let mut capture = capture();
        capture.message(1, false);
        capture.verdict(1, VerdictKind::Deny, "no-deletes");
        capture.message(2, true);
        capture.verdict(2, VerdictKind::Ask, "ask-me");
        capture.message(3, false);
        let soon = ["1 {\"came\":1} deny by no-deletes", "2 {\"came\":2} held None ask by ask-me", "3 {\"came\":3}"];
        assert_eq!(read(&capture.path()), soon);
        let mut entries = Entries::open_segment(&capture.path()).unwrap();
        assert_eq!(std::iter::from_fn(|| entries.next().unwrap()).count(), 3);
        capture.verdict(2, VerdictKind::Allow, "ask-me");
        entries.look_again().unwrap();
        assert_eq!(shown(&entries.next().unwrap().unwrap()), "2! allow by ask-me");
        assert!(entries.next().unwrap().is_none());
        let path = capture.path();
        let _dir = capture.end();
        assert_eq!(read(&path)[1], "2 {\"came\":2} held None allow by ask-me", "the last one counts");
        let summary = Session::open_segment(&path).unwrap().summary().clone();
        assert_eq!((summary.end.unwrap().amendments(), summary.amendments), (1, 1), "only what came later");
    }

    /// However the reader's buffer and the file end, a verdict is told, and told once.
    #[test]
    fn verdicts_are_read_whole() {
        let mut capture = capture();
        let before = std::fs::metadata(capture.path()).unwrap().len() as usize;
        capture.message(1, false);
        let message_end = std::fs::metadata(capture.path()).unwrap().len() as usize;
        capture.verdict(1, VerdictKind::Deny, "no-deletes");
        let verdict_end = std::fs::metadata(capture.path()).unwrap().len() as usize;
        capture.message(2, false);
        let whole = std::fs::read(capture.path()).unwrap();
        let growing = capture.dir.path().join("g.mcpseg");
        std::fs::write(&growing, &whole[..before]).unwrap();
        for step in [1, 7, 50] {
            std::fs::write(&growing, &whole[..before]).unwrap();
            let mut entries = Entries::open_segment(&growing).unwrap();
            let mut told = Vec::new();
            for end in (before..whole.len()).step_by(step).chain([whole.len()]) {
                std::fs::write(&growing, &whole[..end]).unwrap();
                entries.look_again().unwrap();
                told.extend(std::iter::from_fn(|| entries.next().unwrap()).map(|entry| shown(&entry)));
            }
            let verdicts = told.iter().filter(|told| told.contains("deny by no-deletes")).count();
            assert_eq!((verdicts, told.last().unwrap().as_str()), (1, "2 {\"came\":2}"), "{step}: {told:?}");
        }
        for ahead in [1, 16, 41, 90] {
            let mut reader = SegmentReader::open_with(&capture.path(), ahead).unwrap();
            let first = reader.next_record().unwrap().unwrap();
            assert!(first.verdict.is_some(), "reading {ahead} ahead");
            assert_eq!(reader.next_record().unwrap().unwrap().head.sequence, 2);
        }
        for hit in message_end..verdict_end {
            let mut damaged = whole.clone();
            damaged[hit] ^= 0x41;
            std::fs::write(&growing, damaged).unwrap();
            assert_eq!(read(&growing), ["1 {\"came\":1}", "2 {\"came\":2}"], "hit at {hit}");
        }
    }

    /// Damage costs what it hits: a message without its outcome, an outcome without its message.
    #[test]
    fn what_is_damaged_is_as_if_it_were_not_there() {
        let mut capture = capture();
        capture.message(1, true);
        let outcome_at = std::fs::metadata(capture.path()).unwrap().len() as usize;
        capture.outcome(1, OutcomeKind::Modified, Some("{\"edited\":1}"));
        capture.message(2, false);
        capture.outcome(77, OutcomeKind::Dropped, None);
        let path = capture.path();
        let _dir = capture.end();
        assert_eq!(read(&path)[1..], ["2 {\"came\":2}", "77! dropped"]);
        let bytes = std::fs::read(&path).unwrap();
        for hit in outcome_at..outcome_at + 60 {
            let mut damaged = bytes.clone();
            damaged[hit] ^= 0x41;
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(read(&path), ["1 {\"came\":1} held None", "2 {\"came\":2}", "77! dropped"], "hit at {hit}");
        }
    }

    /// A session that was interrupted says in its end that there is something to look for.
    #[test]
    fn a_session_that_was_interrupted_keeps_its_outcomes() {
        let mut capture = capture();
        capture.message(1, true);
        capture.outcome(1, OutcomeKind::Released, None);
        let path = capture.path();
        let Capture { dir: _dir, writer } = capture;
        drop(writer);
        let summary = Session::open_segment(&path).unwrap().summary().clone();
        assert!(crate::session::recover(&path, &summary).unwrap().is_some());
        assert_eq!(read(&path), ["1 {\"came\":1} held Some(7) released"]);
        let mark = Mark { mark: Some("after the end".into()), note: None };
        segment::append_mark(&path, 11, 1, &mark).unwrap();
        assert_eq!(read(&path), ["1 {\"came\":1} held Some(7) released after the end"]);
    }
}
