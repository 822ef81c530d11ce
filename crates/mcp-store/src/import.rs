//! Takes sessions into the store that were kept or sent as files: a session file becomes a segment, a
//! segment is copied. Either appears whole or not at all.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use mcp_wire::{Kind, Message};
use uuid::Uuid;

use crate::StoreError;
use crate::exchange::{AnswerHead, ExchangeMark, Headers, RequestHead, SessionEntry};
use crate::recorded::{Direction, Recorded, SessionHeader, sequence_of};
use crate::segment::{self, End, HeadKey, Mark, Outcome, OutcomeKind, RecordHead, RecordKind, SegmentWriter};
use crate::session::{Legs, Session, Summary};
use crate::state_dir::{StateDir, create_private};

/// Requests of another program's file whose answers may still come; the oldest is forgotten first, and
/// its answer then answers nothing known.
const REQUESTS_MAX: usize = 65_536;
/// A message with a longer id is not remembered.
const ID_BYTES_MAX: usize = 256;
/// Bytes that stand before an edited message in its record, and more.
const AROUND_EDITED_MAX: usize = 4 * 1024;
/// Bytes of an import gathered before a write.
const COMMIT_BYTES: usize = 1024 * 1024;
/// A file with this ending is on its way in, or was when somebody was killed.
const ON_ITS_WAY: &str = "importing";

/// A session that was taken in.
#[derive(Debug)]
pub struct Imported {
    pub summary: Summary,
    pub path: PathBuf,
    /// What could not be kept as it was, for people.
    pub findings: Vec<String>,
}

/// A session that could be taken in.
pub struct Import {
    source: PathBuf,
    session: Session,
    is_segment: bool,
}

impl Import {
    /// Looks at a session file or a segment.
    pub fn open(source: &Path) -> Result<Self, StoreError> {
        Self::of(Session::open(source, None)?, source)
    }

    /// What lies at `source` and was opened as `session`.
    pub fn of(session: Session, source: &Path) -> Result<Self, StoreError> {
        // A file that was never completed is read from elsewhere.
        let is_segment = session.segment() == Some(source);
        let summary = session.summary();
        if summary.live {
            return Err(StoreError::Live { id: summary.header.id.to_string() });
        }
        let is_placeholder = !is_segment && summary.ended_ns.is_none() && summary.messages == 0;
        if is_placeholder {
            return Err(StoreError::not_a_session(source, "it only says that a session began"));
        }
        Ok(Self { source: source.to_owned(), session, is_segment })
    }

    pub fn id(&self) -> &Uuid {
        &self.session.summary().header.id
    }

    pub fn messages(&self) -> u64 {
        self.session.summary().messages
    }

    /// Brings it into the store, where no session of this id may be. `step` is told of each message and
    /// may break the work off, which leaves nothing behind.
    pub fn bring(
        &self,
        state: &StateDir,
        step: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Imported>, StoreError> {
        state.prepare()?;
        remove_leftovers(state)?;
        let target = state.segment(self.id());
        if target.exists() {
            return Err(StoreError::io("create", &target)(io::ErrorKind::AlreadyExists.into()));
        }
        // Nobody else has this file open: it is new, or making it has failed.
        let on_its_way = target.with_extension(ON_ITS_WAY);
        let brought = match self.is_segment {
            true => copy(&self.source, &on_its_way).map(|guard| Some((guard, Vec::new()))),
            false => self.convert(&on_its_way, step),
        };
        let Some((_guard, findings)) = brought? else { return Ok(None) };
        fs::rename(&on_its_way, &target).map_err(StoreError::io("create", &target))?;
        if self.is_segment {
            let _ = step(self.messages());
        }
        Ok(Some(Imported { summary: self.session.summary().clone(), path: target, findings }))
    }

    fn convert(
        &self,
        path: &Path,
        step: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<(OnItsWay, Vec<String>)>, StoreError> {
        let summary = self.session.summary();
        let header = SessionHeader { notes: summary.notes.clone(), session_file: None, ..summary.header.clone() };
        let mut conversion = Conversion::begin(path, &header)?;
        let guard = OnItsWay(path.to_owned());
        let outcome = self.session.for_each_entry(|entry| -> Result<(), Stopped> {
            let is_message = matches!(entry, SessionEntry::Message(_));
            conversion.add(entry)?;
            if is_message && step(1).is_break() { Err(Stopped::Interrupted) } else { Ok(()) }
        });
        match outcome {
            Ok(()) => Ok(Some((guard, conversion.end(summary.ended_ns.unwrap_or(summary.last_ns))?))),
            Err(Stopped::Interrupted) => Ok(None),
            Err(Stopped::Failed(error)) => Err(error),
        }
    }
}

/// The file that becomes the session; under this name it is gone whatever happens.
struct OnItsWay(PathBuf);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn remove_leftovers(state: &StateDir) -> Result<(), StoreError> {
    let dir = state.sessions();
    let entries = fs::read_dir(&dir).map_err(StoreError::io("read", &dir))?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|extension| extension == ON_ITS_WAY) && !segment::is_live(&path).unwrap_or(true)
        {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

fn copy(source: &Path, target: &Path) -> Result<OnItsWay, StoreError> {
    let mut from = File::open(source).map_err(StoreError::io("open", source))?;
    let mut to = create_private(target).map_err(StoreError::io("create", target))?;
    let guard = OnItsWay(target.to_owned());
    let copied = to.lock().and_then(|()| io::copy(&mut from, &mut to)).and_then(|_| to.sync_data());
    copied.map_err(StoreError::io("write", target))?;
    Ok(guard)
}

enum Stopped {
    Interrupted,
    Failed(StoreError),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Turns the entries of a session file into records.
struct Conversion {
    writer: SegmentWriter,
    path: PathBuf,
    session: Uuid,
    gathered: usize,
    sequence: u64,
    renumbered: u64,
    /// What was written of the servers that conversations are with.
    legs: Legs,
    open: Requests,
    hasher: RandomState,
}

impl Conversion {
    fn begin(path: &Path, header: &SessionHeader) -> Result<Self, StoreError> {
        Ok(Self {
            writer: SegmentWriter::create(path, header)?,
            path: path.to_owned(),
            session: header.id,
            gathered: 0,
            sequence: 0,
            renumbered: 0,
            legs: Legs::default(),
            open: Requests::default(),
            hasher: RandomState::new(),
        })
    }

    fn add(&mut self, entry: SessionEntry) -> Result<(), StoreError> {
        match entry {
            SessionEntry::Message(message) => self.message(message)?,
            SessionEntry::Request(mark, head) => self.head(&mark, Direction::ClientToServer, request_text(&head)),
            SessionEntry::Answer(mark, head) => self.head(&mark, Direction::ServerToClient, answer_text(&head)),
            SessionEntry::Amendment(_) => {}
            SessionEntry::End(mark, how) => {
                let head = exchange_head(RecordKind::ExchangeEnd, &mark, Direction::ServerToClient);
                self.writer.push(&head, &Bytes::from(how.unwrap_or_default()));
            }
        }
        if self.gathered >= COMMIT_BYTES {
            self.gathered = 0;
            self.writer.commit().map_err(StoreError::io("write", &self.path))?;
        }
        Ok(())
    }

    fn message(&mut self, mut message: Recorded) -> Result<(), StoreError> {
        let (outcome, mark) = amendments(&mut message);
        let verdict = message.verdict.take();
        let (kind, payload) = match message.event {
            Some(event) => (RecordKind::Event, Bytes::from(event)),
            None => (RecordKind::Message, message.raw),
        };
        let edited_len = outcome.as_ref().and_then(|outcome| outcome.edited.as_ref()).map_or(0, Bytes::len);
        if u32::try_from(payload.len().max(edited_len + AROUND_EDITED_MAX)).is_err() {
            return Err(StoreError::not_a_session(&self.path, format!("message {} is too large", message.sequence)));
        }
        // Sequences tell messages apart, so each must be greater than the one before.
        let in_order = message.sequence > self.sequence;
        self.sequence = if in_order { message.sequence } else { self.sequence + 1 };
        self.renumbered += u64::from(!in_order);
        let answers = message.correlated_id.and_then(|id| self.asked(&id));
        // What got another number is not found under the one that others know.
        let parent = message.parent.filter(|parent| *parent < self.sequence && self.renumbered == 0);
        if let Some(upstream) = message.upstream
            && self.legs.learn(message.conversation, &upstream)
        {
            self.writer.push_leg(message.time_ns, message.conversation, &upstream);
        }
        // The ids of our own files say what they are, unless they got new numbers.
        if sequence_of(&self.session, &message.id) != Some(self.sequence)
            && matches!(Message::new(payload.clone()).kind(), Kind::Request | Kind::Batch)
        {
            self.open.add(message.id, self.sequence);
        }
        let mut flags = RecordHead::arrived_on(message.transport);
        flags |= if message.noise { RecordHead::NOISE } else { 0 };
        flags |= if message.from_proxy { RecordHead::FROM_PROXY } else { 0 };
        flags |= if message.held { RecordHead::HELD } else { 0 };
        flags |= if answers.is_none() && parent.is_some() { RecordHead::CAUSED } else { 0 };
        let head = RecordHead {
            kind,
            direction: message.direction,
            flags,
            conversation: message.conversation,
            sequence: self.sequence,
            time_ns: message.time_ns,
            correlated: answers.or(parent).unwrap_or(0),
        };
        self.gathered += payload.len() + edited_len;
        match message.exchange {
            None => self.writer.push(&head, &payload),
            Some(exchange) => {
                let event_id = message.event_id.unwrap_or_default();
                self.writer.push_linked(&head, exchange, event_id.as_bytes(), &payload);
            }
        }
        let about = RecordHead { correlated: self.sequence, ..head };
        if let Some(verdict) = verdict {
            self.writer.push_verdict(&about, &verdict);
        }
        if let Some(outcome) = outcome {
            let time_ns = head.time_ns.saturating_add(outcome.held_ns);
            self.writer.push_outcome(&RecordHead { time_ns, ..about }, &outcome);
        }
        if let Some(mark) = mark {
            self.writer.push_mark(&about, &mark);
        }
        Ok(())
    }

    /// The sequence of the request that has this id.
    fn asked(&self, id: &str) -> Option<u64> {
        self.open.get(id).or_else(|| sequence_of(&self.session, id).filter(|sequence| *sequence < self.sequence))
    }

    fn head(&mut self, mark: &ExchangeMark, direction: Direction, text: Vec<u8>) {
        let key = HeadKey {
            hash: self.hasher.hash_one((direction == Direction::ClientToServer, &text)),
            content_length: None,
        };
        self.gathered += text.len();
        self.writer.push_exchange_head(&exchange_head(RecordKind::Exchange, mark, direction), key, || text);
    }

    fn end(self, time_ns: u64) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        if self.renumbered > 0 {
            findings.push(format!("{} messages were out of order and got new numbers", self.renumbered));
        }
        self.writer.finish(time_ns, &End::default()).map_err(StoreError::io("write", &self.path))?;
        Ok(findings)
    }
}

/// What stands in records of its own beside a message; the message becomes what it was when it came.
fn amendments(message: &mut Recorded) -> (Option<Outcome>, Option<Mark>) {
    let edited = message.original_raw.take().map(|original| std::mem::replace(&mut message.raw, original));
    let is_changed = message.modified || edited.is_some();
    let what = message.outcome.or(is_changed.then_some(OutcomeKind::Modified));
    let outcome = what.map(|what| Outcome {
        what,
        by: message.decided_by.take().unwrap_or_default(),
        why: message.why.take().unwrap_or_default(),
        held_ns: message.held_ns.unwrap_or(0),
        edited,
    });
    let mark = Mark { mark: message.mark.take(), note: message.note.take() };
    (outcome, Some(mark).filter(|mark| *mark != Mark::default()))
}

fn exchange_head(kind: RecordKind, mark: &ExchangeMark, direction: Direction) -> RecordHead {
    RecordHead {
        kind,
        direction,
        flags: 0,
        conversation: mark.conversation,
        sequence: mark.exchange,
        time_ns: mark.time_ns,
        correlated: 0,
    }
}

fn request_text(head: &RequestHead) -> Vec<u8> {
    let first = format!("{} {} HTTP/1.1", on_its_line(&head.method), on_its_line(&head.target));
    head_text(first, &head.headers)
}

fn answer_text(head: &AnswerHead) -> Vec<u8> {
    head_text(format!("HTTP/1.1 {}", head.status), &head.headers)
}

fn head_text(mut text: String, Headers(headers): &Headers) -> Vec<u8> {
    text.push_str("\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{}: {}\r\n", on_its_line(name), on_its_line(value)));
    }
    text.into_bytes()
}

/// A file may say anything; a line break in a header would make two of it.
fn on_its_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// The last requests, by the ids that the file gives them.
#[derive(Default)]
struct Requests {
    sequences: HashMap<String, u64>,
    order: VecDeque<String>,
}

impl Requests {
    fn add(&mut self, id: String, sequence: u64) {
        if id.len() > ID_BYTES_MAX {
            return;
        }
        self.order.push_back(id.clone());
        self.sequences.insert(id, sequence);
        if self.order.len() > REQUESTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.sequences.remove(&oldest);
        }
    }

    fn get(&self, id: &str) -> Option<u64> {
        self.sequences.get(id).copied()
    }
}

#[cfg(test)]
mod tests;
