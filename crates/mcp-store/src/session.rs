//! A session as its readers see it, whether it lies in the store or in a file somebody sent.

mod entries;
mod later;
mod legs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use entries::Entries;
use entries::Tally;
pub(crate) use later::Later;
use later::amendment;
pub(crate) use later::said;
pub(crate) use legs::Legs;

use crate::StoreError;
use crate::exchange::{AnswerHead, ExchangeMark, RequestHead, SessionEntry};
use crate::recorded::{Direction, Recorded, SessionHeader, message_id};
use crate::segment::{self, End, Record, RecordHead, RecordKind, SegmentReader};
use crate::session_file::{self, FileSession};
use crate::state_dir::StateDir;

/// A session that can be read from the start, any number of times.
pub struct Session {
    source: Source,
    summary: Summary,
}

enum Source {
    Segment(PathBuf),
    File(Box<FileSession>),
}

/// Everything about a session but its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub header: SessionHeader,
    pub ended_ns: Option<u64>,
    pub end: Option<End>,
    pub live: bool,
    pub messages: u64,
    pub several_conversations: bool,
    pub has_exchanges: bool,
    /// Outcomes, marks and late verdicts, which are told with their messages.
    pub amendments: u64,
    pub notes: BTreeMap<String, String>,
    /// What a reader must be told: a torn tail, damaged records, messages never written.
    pub warnings: Vec<String>,
    /// Of a segment: where its last whole record ends, and the time of it.
    pub whole_len: u64,
    pub last_ns: u64,
    pub torn: bool,
}

impl Session {
    /// Opens a segment or a session file, whichever `path` is. A session file that was never
    /// completed is read from the store instead, where its messages are.
    pub fn open(path: &Path, state: Option<&StateDir>) -> Result<Self, StoreError> {
        if session_file::looks_like_segment(path)? {
            return Self::open_segment(path);
        }
        let file = FileSession::open(path)?;
        if let Some(segment) = file.unfinished(path, state) {
            let mut session = Self::open_segment(&segment)?;
            session.summary.warnings.insert(0, not_completed(path));
            return Ok(session);
        }
        let summary = file.summary();
        Ok(Self { source: Source::File(Box::new(file)), summary })
    }

    pub fn open_segment(path: &Path) -> Result<Self, StoreError> {
        let summary = summarise(path)?;
        Ok(Self { source: Source::Segment(path.to_owned()), summary })
    }

    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The segment that it is read from, unless it is a session file.
    pub fn segment(&self) -> Option<&Path> {
        match &self.source {
            Source::Segment(path) => Some(path),
            Source::File(_) => None,
        }
    }

    /// Calls `visit` with each message in order. Nothing but the current one is held in memory.
    pub fn for_each<E: From<StoreError>>(&self, mut visit: impl FnMut(Recorded) -> Result<(), E>) -> Result<(), E> {
        self.for_each_entry(|entry| match entry {
            SessionEntry::Message(message) => visit(message),
            _ => Ok(()),
        })
    }

    /// The same with what HTTP said between the messages.
    pub fn for_each_entry<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(SessionEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut entries = match &self.source {
            Source::File(file) => Entries::of_file(file.entries()?),
            Source::Segment(path) => Entries::open_segment(path)?,
        };
        while let Some(entry) = entries.next()? {
            visit(entry)?;
        }
        Ok(())
    }
}

/// What the record at `place` says of the traffic, if it does. A message is told with what is known to be
/// said of it later; without that, it stands as it came and what is said of it by itself.
pub(crate) fn entry(
    header: &SessionHeader,
    record: Record,
    place: u64,
    legs: &mut Legs,
    later: Option<&mut Later>,
) -> Result<Option<SessionEntry>, StoreError> {
    let RecordHead { kind, direction, conversation, sequence, time_ns, .. } = record.head;
    let mark = ExchangeMark { exchange: sequence, conversation, time_ns };
    Ok(Some(match (kind, direction) {
        (RecordKind::Message | RecordKind::Event, _) => {
            let mut message = legs.with_upstream(recorded(header, record));
            if let Some(later) = later {
                later.amend(&mut message)?;
            }
            SessionEntry::Message(message)
        }
        (RecordKind::Exchange, Direction::ClientToServer) => {
            SessionEntry::Request(mark, RequestHead::parse(&record.payload))
        }
        (RecordKind::Exchange, Direction::ServerToClient) => {
            SessionEntry::Answer(mark, AnswerHead::parse(&record.payload))
        }
        (RecordKind::ExchangeEnd, _) => SessionEntry::End(mark, text(&record.payload)),
        (RecordKind::Outcome | RecordKind::Mark | RecordKind::Verdict, _) => {
            // What stands behind its message and was not told with it was not whole then.
            let later = later.filter(|_| record.head.is_amendment());
            return Ok(later.map_or_else(|| amendment(&record), |later| later.untold(&record, place)));
        }
        (RecordKind::Leg, _) => {
            legs.hear(&record);
            return Ok(None);
        }
        (RecordKind::Note | RecordKind::Gap | RecordKind::End, _) => return Ok(None),
    }))
}

/// The message that a record holds, as it came.
pub(crate) fn message(header: &SessionHeader, record: Record) -> Option<Recorded> {
    record.head.kind.is_message().then(|| recorded(header, record))
}

fn recorded(header: &SessionHeader, record: Record) -> Recorded {
    let session = &header.id;
    let Record { head, link, payload, verdict } = record;
    let (raw, event) = match head.kind {
        RecordKind::Event => (bytes::Bytes::new(), Some(String::from_utf8_lossy(&payload).into_owned())),
        _ => (payload, None),
    };
    Recorded {
        id: message_id(session, head.sequence),
        time_ns: head.time_ns,
        conversation: head.conversation,
        transport: head.transport().unwrap_or(header.transport),
        exchange: link.as_ref().map(|link| link.exchange),
        event_id: link.and_then(|link| text(&link.event_id)),
        correlated_id: head.answers().map(|request| message_id(session, request)),
        parent: head.parent(),
        held: head.flags & RecordHead::HELD != 0,
        noise: head.flags & RecordHead::NOISE != 0,
        from_proxy: head.flags & RecordHead::FROM_PROXY != 0,
        verdict: verdict.map(Box::new),
        event,
        ..Recorded::bare(head.sequence, head.direction, raw)
    }
}

/// Text that means nothing if there is none.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// Finds out whether there is more than one conversation. What belongs to none has the number 0.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    first: u32,
    pub several: bool,
}

impl Conversations {
    pub(crate) fn add(&mut self, conversation: u32) {
        if self.first == 0 {
            self.first = conversation;
        }
        self.several |= conversation != 0 && conversation != self.first;
    }
}

fn summarise(path: &Path) -> Result<Summary, StoreError> {
    let live = segment::is_live(path)?;
    let mut reader = SegmentReader::open(path)?;
    let mut tally = Tally::new(reader.header().clone(), live);
    while let Some(record) = reader.next_record().map_err(StoreError::io("read", path))? {
        tally.add(&record);
    }
    Ok(tally.so_far(&reader))
}

fn not_completed(path: &Path) -> String {
    format!("`{}` was not completed; this is what was recorded", path.display())
}

/// Ends a session whose process is gone: cuts a torn tail, writes the end, completes its session
/// file. Returns what was done, in words, or nothing if there was nothing to do.
pub fn recover(path: &Path, summary: &Summary) -> Result<Option<String>, StoreError> {
    if summary.live || summary.ended_ns.is_some() {
        return Ok(None);
    }
    if summary.torn {
        segment::cut_tail(path, summary.whole_len)?;
    }
    let end = End { recovered: true, ..End::default() }.with_amendments(summary.amendments);
    segment::append_end(path, summary.last_ns, &end)?;
    let count = match summary.messages {
        1 => "its one message is whole".to_owned(),
        count => format!("its {count} messages are whole"),
    };
    let mut done = format!("session {} was interrupted; {count}", summary.header.id);
    if summary.torn {
        done.push_str(", a torn tail was cut");
    }
    if let Some(file) = &summary.header.session_file
        && session_file::is_placeholder_of(file, &summary.header.id)
    {
        session_file::write(file, &Session::open_segment(path)?)?;
        done.push_str(&format!(", `{}` was completed", file.display()));
    }
    Ok(Some(done))
}
