//! A session read as a stream: what is known of it grows with every entry, and nothing waits for the
//! whole. A session that is still being recorded can be followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Conversations, Later, Legs, Summary, entry};
use crate::StoreError;
use crate::catalogue::{as_path, find_segment};
use crate::exchange::SessionEntry;
use crate::recorded::SessionHeader;
use crate::segment::{self, Record, RecordKind, SegmentReader, Tail};
use crate::session_file::{self, FileEntries, FileSession};
use crate::state_dir::StateDir;

/// The entries of a session, in order.
pub struct Entries {
    source: Source,
    summary: Summary,
    is_whole: bool,
}

enum Source {
    Segment(Box<Segment>),
    File(Box<FileEntries>),
}

struct Segment {
    reader: SegmentReader,
    later: Later,
    legs: Legs,
    tally: Tally,
    path: PathBuf,
}

impl Entries {
    /// Opens a session given as a file, an id, the beginning of one, a name or `last`; the newest if none
    /// is given. Returns what was found out on the way, for people. An id is found without the catalogue, which may have to read all
    /// that was recorded lately; a session that was interrupted is ended on the way.
    pub fn find(wanted: Option<&str>, state: &StateDir) -> Result<(Self, Vec<String>), StoreError> {
        if let Some(path) = wanted.and_then(as_path) {
            return Ok((Self::open(path, Some(state))?, Vec::new()));
        }
        state.check()?;
        if let Some(path) = only_segment(wanted.unwrap_or_default(), state)? {
            let entries = Self::open_segment(&path)?;
            if entries.summary.live || entries.summary.ended_ns.is_some() {
                return Ok((entries, Vec::new()));
            }
        }
        let (path, findings) = find_segment(wanted, state)?;
        Ok((Self::open_segment(&path)?, findings))
    }

    /// Opens a segment or a session file, as [`super::Session::open`] does.
    pub fn open(path: &Path, state: Option<&StateDir>) -> Result<Self, StoreError> {
        if session_file::looks_like_segment(path)? {
            return Self::open_segment(path);
        }
        if let Some(entries) = FileEntries::begin(path)? {
            return Ok(Self::of_file(entries));
        }
        let file = FileSession::open(path)?;
        if let Some(segment) = file.unfinished(path, state) {
            let mut entries = Self::open_segment(&segment)?;
            if let Source::Segment(segment) = &mut entries.source {
                segment.tally.first_warning = Some(super::not_completed(path));
            }
            return Ok(entries);
        }
        Ok(Self::of_file(file.entries()?))
    }

    pub(super) fn of_file(entries: FileEntries) -> Self {
        let (summary, is_whole) = (entries.summary().clone(), entries.is_whole());
        Self { source: Source::File(Box::new(entries)), summary, is_whole }
    }

    /// Reads the beginning of a segment, and its end if that is short enough to be found there.
    pub fn open_segment(path: &Path) -> Result<Self, StoreError> {
        let live = segment::is_live(path)?;
        let mut reader = SegmentReader::open(path)?;
        let tally = Tally::new(reader.header().clone(), live);
        let mut summary = tally.summary.clone();
        if !live {
            for record in reader.last_words().map_err(StoreError::io("read", path))? {
                summary.take(&record);
            }
        }
        let later = Later::open(path, reader.file_len())?;
        let segment = Segment { later, legs: Legs::default(), reader, tally, path: path.to_owned() };
        Ok(Self { source: Source::Segment(Box::new(segment)), summary, is_whole: false })
    }

    pub fn header(&self) -> &SessionHeader {
        &self.summary.header
    }

    /// What is known so far. Counts and warnings are only true once [`Entries::is_whole`].
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Everything that there is now has been read.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    #[expect(
        clippy::should_implement_trait,
        reason = "reading can fail, and a stream that grows goes on after its end"
    )]
    pub fn next(&mut self) -> Result<Option<SessionEntry>, StoreError> {
        let Segment { reader, later, legs, tally, path } = match &mut self.source {
            Source::File(entries) => {
                let entry = entries.next()?;
                if !self.is_whole && entries.is_whole() {
                    (self.summary, self.is_whole) = (entries.summary().clone(), true);
                }
                self.summary.several_conversations = entries.summary().several_conversations;
                return Ok(entry);
            }
            Source::Segment(segment) => &mut **segment,
        };
        while let Some(record) = reader.next_record().map_err(StoreError::io("read", path))? {
            tally.add(&record);
            self.summary.several_conversations = tally.conversations.several;
            self.summary.messages = tally.summary.messages;
            if let Some(entry) = entry(&self.summary.header, record, reader.last_record(), legs, Some(later))? {
                return Ok(Some(entry));
            }
        }
        self.summary = tally.so_far(reader);
        self.is_whole = true;
        Ok(None)
    }

    /// Whether more may come: somebody is still writing.
    pub fn is_live(&self) -> bool {
        self.summary.live
    }

    /// Looks whether a session that is being recorded has grown, or has ended. What has been written
    /// by then is read by [`Entries::next`].
    pub fn look_again(&mut self) -> Result<(), StoreError> {
        let Source::Segment(segment) = &mut self.source else { return Ok(()) };
        let Segment { reader, later, tally, path, .. } = &mut **segment;
        // Asked before the length is: whoever has stopped writing by now has written all of it.
        let live = segment::is_live(path)?;
        reader.look_again().map_err(StoreError::io("read", path))?;
        later.look_again(reader.file_len())?;
        tally.summary.live = live;
        self.summary.live = live;
        Ok(())
    }
}

/// Characters of an id, as lists show them; a shorter word could be a person's name for a session.
const SHOWN_OF_ID: usize = 8;

/// The segment whose id begins with `wanted`, if it is the only one and nothing else can be meant.
fn only_segment(wanted: &str, state: &StateDir) -> Result<Option<PathBuf>, StoreError> {
    if wanted.len() < SHOWN_OF_ID {
        return Ok(None);
    }
    let wanted = wanted.to_ascii_lowercase();
    let begins = |path: &PathBuf| path.file_stem().is_some_and(|id| id.to_string_lossy().starts_with(&wanted));
    let mut found = state.segments()?.into_iter().filter(begins);
    let first = found.next();
    Ok(if found.next().is_some() { None } else { first })
}

/// What the records of a segment add up to.
pub(super) struct Tally {
    pub summary: Summary,
    conversations: Conversations,
    unwritten: Option<u64>,
    first_warning: Option<String>,
}

impl Tally {
    pub(super) fn new(header: SessionHeader, live: bool) -> Self {
        let summary = Summary {
            ended_ns: None,
            end: None,
            live,
            messages: 0,
            several_conversations: false,
            has_exchanges: false,
            amendments: 0,
            notes: header.notes.clone(),
            warnings: Vec::new(),
            whole_len: 0,
            last_ns: header.started_ns,
            torn: false,
            header,
        };
        Self { summary, conversations: Conversations::default(), unwritten: None, first_warning: None }
    }

    pub(super) fn add(&mut self, record: &Record) {
        let Record { head, payload, .. } = record;
        let summary = &mut self.summary;
        summary.last_ns = summary.last_ns.max(head.time_ns);
        self.conversations.add(head.conversation);
        match head.kind {
            RecordKind::Message | RecordKind::Event => summary.messages += 1,
            RecordKind::Gap => {
                let count = std::str::from_utf8(payload).ok().and_then(|count| count.parse::<u64>().ok()).unwrap_or(1);
                self.unwritten = Some(self.unwritten.unwrap_or(0u64).saturating_add(count));
            }
            RecordKind::Exchange | RecordKind::ExchangeEnd => summary.has_exchanges = true,
            RecordKind::Note | RecordKind::End => summary.take(record),
            RecordKind::Leg => {}
            RecordKind::Outcome | RecordKind::Mark | RecordKind::Verdict => {
                summary.amendments += u64::from(head.is_amendment());
            }
        }
    }

    /// The summary of what `reader` has read.
    pub(super) fn so_far(&self, reader: &SegmentReader) -> Summary {
        let mut summary = self.summary.clone();
        summary.several_conversations = self.conversations.several;
        summary.whole_len = reader.whole_len();
        summary.warnings.extend(self.first_warning.clone());
        if let Tail::Torn { bytes } = reader.tail()
            && !summary.live
        {
            summary.torn = true;
            summary.warnings.push(format!(
                "a torn tail of {bytes} bytes was cut: the recording was interrupted in the middle of a write"
            ));
        }
        if reader.damaged() > 0 {
            summary.warnings.push(format!("{} damaged records were passed over", reader.damaged()));
        }
        if let Some(count) = self.unwritten {
            let what = if count == 0 { "parts of HTTP exchanges".to_owned() } else { format!("{count} messages") };
            summary.warnings.push(format!("{what} passed while the disk could not be written, and are not here"));
        }
        summary
    }
}

impl Summary {
    /// Takes what stands at the end of a segment, which may be known before the rest is read.
    fn take(&mut self, record: &Record) {
        match record.head.kind {
            RecordKind::Note => {
                let notes = serde_json::from_slice::<BTreeMap<_, _>>(&record.payload);
                self.notes.extend(notes.unwrap_or_default());
            }
            RecordKind::End => {
                self.ended_ns = Some(record.head.time_ns);
                self.end = Some(serde_json::from_slice(&record.payload).unwrap_or_default());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Session;
    use crate::recorded::{Direction, Transport};
    use crate::segment::{End, RecordHead, SegmentWriter, append_note};

    fn header() -> SessionHeader {
        SessionHeader::begun(uuid::Uuid::new_v4(), 5, Transport::Stdio)
    }

    fn push(writer: &mut SegmentWriter, sequence: u64, payload: &[u8]) {
        let (kind, direction) = (RecordKind::Message, Direction::ClientToServer);
        let head = RecordHead { kind, direction, flags: 0, conversation: 1, sequence, time_ns: 5, correlated: 0 };
        writer.push(&head, &Bytes::copy_from_slice(payload));
    }

    fn sequences(entries: &mut Entries) -> Vec<u64> {
        let next = || entries.next().unwrap();
        std::iter::from_fn(next)
            .map(|entry| matches!(entry, SessionEntry::Message(m) if m.sequence > 0))
            .map(u64::from)
            .collect()
    }

    #[test]
    fn a_session_that_is_being_recorded_is_followed_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.mcpseg");
        let mut writer = SegmentWriter::create(&path, &header()).unwrap();
        let mut entries = Entries::open_segment(&path).unwrap();
        assert!(entries.next().unwrap().is_none() && entries.is_live());
        for round in 1..=3 {
            push(&mut writer, round, b"{}");
            writer.commit().unwrap();
            assert!(sequences(&mut entries).is_empty(), "not before it is asked to look again");
            entries.look_again().unwrap();
            assert_eq!(sequences(&mut entries).len(), 1);
        }
        writer.finish(9, &End::default()).unwrap();
        entries.look_again().unwrap();
        assert!(entries.next().unwrap().is_none() && !entries.is_live());
        assert_eq!((entries.summary().messages, entries.summary().ended_ns), (3, Some(9)));
    }

    /// A record of which half is there yet is whole the next time.
    #[test]
    fn half_a_record_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (path, growing) = (dir.path().join("s.mcpseg"), dir.path().join("g.mcpseg"));
        let mut writer = SegmentWriter::create(&path, &header()).unwrap();
        let empty = std::fs::metadata(&path).unwrap().len() as usize;
        push(&mut writer, 1, b"{\"a\":1}");
        push(&mut writer, 2, b"{\"a\":2}");
        writer.finish(9, &End::default()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&growing, &whole[..empty]).unwrap();
        let mut entries = Entries::open_segment(&growing).unwrap();
        let mut read = 0;
        for end in empty..=whole.len() {
            std::fs::write(&growing, &whole[..end]).unwrap();
            entries.look_again().unwrap();
            read += sequences(&mut entries).len();
        }
        assert_eq!((read, entries.summary().messages, entries.summary().torn), (2, 2, false));
        assert_eq!(entries.summary(), Session::open_segment(&growing).unwrap().summary());
    }

    #[test]
    fn the_end_is_known_before_the_rest_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.mcpseg");
        let mut writer = SegmentWriter::create(&path, &header()).unwrap();
        // What stands in a message is no record, though it may look like one.
        let fake = std::fs::read(&path).unwrap();
        for sequence in 1..100 {
            push(&mut writer, sequence, &[&fake[..], &[5; 500]].concat());
        }
        let end = End { server: Some("exited".into()), ..End::default() };
        writer.finish(9, &end).unwrap();
        let note = [("k".to_owned(), "v".to_owned())].into();
        append_note(&path, 10, &note).unwrap();
        let mut entries = Entries::open_segment(&path).unwrap();
        assert_eq!((entries.summary().ended_ns, entries.summary().end.as_ref()), (Some(9), Some(&end)));
        assert_eq!((&entries.summary().notes, entries.is_whole()), (&note, false));
        while entries.next().unwrap().is_some() {}
        assert_eq!(entries.summary(), Session::open_segment(&path).unwrap().summary());
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"torn"))
            .unwrap();
        assert_eq!(Entries::open_segment(&path).unwrap().summary().ended_ns, None);
    }
}
