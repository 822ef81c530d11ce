//! What a segment says of a message after the message: how a hold of it ended, what somebody marked
//! it with. Where that stands is gathered from the heads of the records before the messages are
//! read, so that each message is told with it.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use crate::StoreError;
use crate::exchange::{Amendment, Said, SessionEntry};
use crate::recorded::Recorded;
use crate::segment::sparse::{AMENDED_MAX, Amended};
use crate::segment::{self, End, Mark, Outcome, Record, RecordHead, RecordKind, SegmentReader};

pub(crate) struct Later {
    reader: SegmentReader,
    /// By the sequence of the message. What was told is removed.
    places: HashMap<u64, Amended>,
    /// Everything before this was looked at.
    looked_to: u64,
}

impl Later {
    /// Looks at the first `len` bytes of a segment.
    pub fn open(path: &Path, len: u64) -> Result<Self, StoreError> {
        let mut reader = SegmentReader::open(path)?;
        reader.end_at(len);
        let looked_to = reader.whole_len();
        let mut has_none = || -> io::Result<bool> {
            let words = reader.last_words()?;
            let end = words.first().map(|record| serde_json::from_slice::<End>(&record.payload).unwrap_or_default());
            Ok(end.is_some_and(|end| end.amendments() == 0) && !words.iter().any(|record| is_amendment(&record.head)))
        };
        let has_none = !segment::is_live(path)? && has_none().map_err(StoreError::io("read", path))?;
        let looked_to = if has_none { reader.file_len() } else { looked_to };
        let mut later = Self { reader, places: HashMap::new(), looked_to };
        later.look()?;
        Ok(later)
    }

    /// Looks at what has been written since, up to `len`.
    pub fn look_again(&mut self, len: u64) -> Result<(), StoreError> {
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
                if is_amendment(&head) {
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
    pub fn amend(&mut self, message: &mut Recorded) -> Result<(), StoreError> {
        if self.places.is_empty() {
            return Ok(());
        }
        let Some(places) = self.places.remove(&message.sequence) else { return Ok(()) };
        for place in [places.outcome, places.mark].into_iter().filter(|place| *place > 0) {
            let said = said(&mut self.reader, place, message.sequence);
            if let Some(said) = said.map_err(StoreError::io("read", self.reader.path()))? {
                message.amend(said);
            }
        }
        Ok(())
    }

    /// The record at `place`, if it speaks of a message that was told without it.
    pub fn untold(&mut self, record: &Record, place: u64) -> Option<SessionEntry> {
        let head = &record.head;
        let places = self.places.get_mut(&head.correlated)?;
        let known = if head.kind == RecordKind::Outcome { &mut places.outcome } else { &mut places.mark };
        if *known != place {
            return None;
        }
        *known = 0;
        if places.outcome == 0 && places.mark == 0 {
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

/// What an outcome or a mark says, by itself.
pub(crate) fn amendment(record: &Record) -> Option<SessionEntry> {
    let RecordHead { conversation, direction, time_ns, correlated: sequence, .. } = record.head;
    let said = Said::decode(record)?;
    Some(SessionEntry::Amendment(Amendment { sequence, conversation, direction, time_ns, said }))
}

fn is_amendment(head: &RecordHead) -> bool {
    matches!(head.kind, RecordKind::Outcome | RecordKind::Mark)
}

impl Said {
    fn decode(record: &Record) -> Option<Self> {
        match record.head.kind {
            RecordKind::Outcome => Outcome::decode(&record.payload).map(Self::Outcome),
            RecordKind::Mark => Mark::decode(&record.payload).map(Self::Mark),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::recorded::{Direction, SessionHeader, Transport};
    use crate::segment::{OutcomeKind, SegmentWriter};
    use crate::{Entries, Session};

    struct Capture {
        dir: tempfile::TempDir,
        writer: SegmentWriter,
    }

    fn capture() -> Capture {
        let header = SessionHeader {
            id: uuid::Uuid::new_v4(),
            started_ns: 5,
            transport: Transport::Stdio,
            server_command: None,
            server_url: None,
            name: None,
            notes: Default::default(),
            session_file: None,
            continues: None,
        };
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
                words.join(" ")
            }
            SessionEntry::Amendment(Amendment { sequence, said: Said::Outcome(outcome), .. }) => {
                format!("{sequence}! {}", outcome.what.as_str())
            }
            SessionEntry::Amendment(Amendment { sequence, said: Said::Mark(mark), .. }) => {
                format!("{sequence}! {:?}", mark.mark)
            }
            other => panic!("{other:?}"),
        }
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
