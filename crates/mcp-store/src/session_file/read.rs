//! Reads a session file, its own or that of a related tool: two other spellings of the envelope are
//! in use and mean the same.
//!
//! A file in any order is read twice: once for its outline, then entry by entry. A large file in the
//! order in which the program writes it, without HTTP exchanges, whose place among the messages is only
//! known at the end, is read once.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::document::{Document, Fault};
use super::exchanges::{self, Listed, Part, Parts};
use super::metadata;
use crate::StoreError;
use crate::exchange::SessionEntry;
use crate::recorded::{Direction, Recorded, SessionHeader, Transport, message_id};
use crate::segment::{AuditId, OutcomeKind, Verdict, VerdictKind, operation_named};
use crate::session::{Conversations, Summary};
use crate::state_dir::StateDir;

/// A buffer that grew past this for one large message is given back.
const BUFFER_KEPT: usize = 2 * 1024 * 1024;
/// A member of a session file besides its messages and exchanges is small; a longer one was not written by a
/// recorder.
const MEMBER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A smaller file is read twice in no time, and then known as a whole.
const STREAMED_FROM: u64 = 1024 * 1024;
/// What stands before the messages fits in here, notes included.
const OPENING_MAX: u64 = 64 * 1024;

/// A session file. It was read once to learn what it says of the session; its messages are read from
/// it again, one by one, whenever somebody asks.
#[derive(Clone, Debug)]
pub struct FileSession {
    path: PathBuf,
    pub header: SessionHeader,
    pub ended_ns: Option<u64>,
    /// Where the list of messages begins, and how many there are.
    messages_at: u64,
    messages: u64,
    /// What HTTP said between them, in order.
    parts: Arc<Vec<Part>>,
    several_conversations: bool,
    last_ns: u64,
}

/// A message as it stands in the document.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, alias = "proxy_id")]
    id: Option<String>,
    #[serde(default)]
    sequence: Option<u64>,
    timestamp: Timestamp,
    direction: Direction,
    #[serde(default = "stdio")]
    transport: Transport,
    #[serde(default)]
    conversation: Option<u32>,
    #[serde(default)]
    upstream: Option<String>,
    #[serde(default)]
    parent: Option<u64>,
    #[serde(default)]
    exchange: Option<u64>,
    #[serde(default)]
    event_id: Option<String>,
    #[serde(borrow, default, alias = "payload", alias = "raw_message")]
    raw: Option<&'a RawValue>,
    #[serde(borrow, default)]
    raw_base64: Option<Cow<'a, str>>,
    #[serde(default, alias = "correlation_id")]
    correlated_id: Option<String>,
    #[serde(default)]
    modified: bool,
    #[serde(borrow, default, alias = "original_payload")]
    original_raw: Option<&'a RawValue>,
    #[serde(borrow, default)]
    original_raw_base64: Option<Cow<'a, str>>,
    /// As text, so that a file of a later version can be read.
    #[serde(default)]
    verdict: Option<String>,
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    op: Option<String>,
    #[serde(default)]
    audit_id: Option<String>,
    #[serde(default)]
    held: bool,
    #[serde(default)]
    held_ns: Option<u64>,
    /// As text, so that a file of a later version can be read.
    #[serde(default)]
    outcome: Option<String>,
    #[serde(default)]
    decided_by: Option<String>,
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    mark: Option<String>,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    noise: bool,
    #[serde(default)]
    origin: Option<String>,
    #[serde(default)]
    event: Option<String>,
}

fn stdio() -> Transport {
    Transport::Stdio
}

impl FileSession {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(StoreError::io("read", path))?;
        Outline::read(file).and_then(|mut outline| outline.session(path)).map_err(|fault| fault.at(path))
    }

    /// A file that says a session began, and no more.
    pub fn is_placeholder(&self) -> bool {
        self.ended_ns.is_none() && self.messages == 0
    }

    /// Where the messages of a file that was never completed are: in the store, or beside it.
    pub fn unfinished(&self, path: &Path, state: Option<&StateDir>) -> Option<PathBuf> {
        let beside = super::segment_beside(path, &self.header.id);
        let places = [state.map(|state| state.segment(&self.header.id)), Some(beside)];
        places.into_iter().flatten().find(|segment| self.is_placeholder() && segment.exists())
    }

    /// Whether the session has no message, here or in its segment.
    pub fn is_empty(&self, path: &Path, state: Option<&StateDir>) -> bool {
        self.messages == 0 && self.unfinished(path, state).is_none()
    }

    /// Everything in the order in which it happened.
    pub fn entries(&self) -> Result<FileEntries, StoreError> {
        let open = || -> Result<FileEntries, Fault> {
            let (path, parts) = (self.path.clone(), self.parts()?);
            let messages = Messages::open(self)?;
            Ok(FileEntries { path, messages, message: None, parts, outline: None, summary: self.summary() })
        };
        open().map_err(|fault| fault.at(&self.path))
    }

    pub fn summary(&self) -> Summary {
        Summary {
            header: self.header.clone(),
            ended_ns: self.ended_ns,
            end: None,
            live: false,
            messages: self.messages,
            several_conversations: self.several_conversations,
            has_exchanges: !self.parts.is_empty(),
            amendments: 0,
            notes: self.header.notes.clone(),
            warnings: Vec::new(),
            whole_len: 0,
            last_ns: self.last_ns,
            torn: false,
        }
    }

    fn document(&self) -> Result<Document<File>, Fault> {
        Document::open(File::open(&self.path)?)
    }

    fn parts(&self) -> Result<Parts, Fault> {
        Ok(Parts::new(Arc::clone(&self.parts), self.document()?))
    }
}

/// What a session file says, read as it is asked for.
pub struct FileEntries {
    path: PathBuf,
    messages: Messages,
    /// The next message, once it is known what stands before it.
    message: Option<Recorded>,
    parts: Parts,
    /// Of a file that is read once, what was found so far.
    outline: Option<Outline>,
    summary: Summary,
}

impl FileEntries {
    /// Opens a large file that can be read once. `None` if the file has to be read twice.
    pub fn begin(path: &Path) -> Result<Option<Self>, StoreError> {
        let mut file = File::open(path).map_err(StoreError::io("open", path))?;
        let len = file.metadata().map_err(StoreError::io("look at", path))?.len();
        if len < STREAMED_FROM {
            return Ok(None);
        }
        let mut opening = Vec::new();
        let read = file.by_ref().take(OPENING_MAX).read_to_end(&mut opening).and_then(|_| file.rewind());
        read.map_err(StoreError::io("read", path))?;
        // A fault is for the other way of reading to tell.
        Ok(Self::begin_in(file, &opening, path).unwrap_or_default())
    }

    fn begin_in(file: File, opening: &[u8], path: &Path) -> Result<Option<Self>, Fault> {
        let (mut document, mut outline) = (Document::open(file)?, Outline::default());
        if !outline.read_members(&mut document, true)? {
            return Ok(None);
        }
        let Some(at) = document.enter_array()?.filter(|at| *at < OPENING_MAX) else { return Ok(None) };
        outline.messages = Some((at, 0));
        let session = outline.session(path)?;
        let has_exchanges = memchr::memmem::find(&opening[at as usize..], b"\"exchange\"").is_some();
        if session.header.transport != Transport::Stdio || has_exchanges {
            return Ok(None);
        }
        let messages = Messages::new(session.header.id, document, false);
        let (parts, summary) = (session.parts()?, session.summary());
        Ok(Some(Self { path: path.to_owned(), messages, message: None, parts, outline: Some(outline), summary }))
    }

    /// What is known so far. Counts and notes are only true once [`FileEntries::is_whole`].
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Everything there is to know of the session is known.
    pub fn is_whole(&self) -> bool {
        self.outline.is_none()
    }

    #[expect(clippy::should_implement_trait, reason = "reading can fail")]
    pub fn next(&mut self) -> Result<Option<SessionEntry>, StoreError> {
        self.read_next().map_err(|fault| fault.at(&self.path))
    }

    fn read_next(&mut self) -> Result<Option<SessionEntry>, Fault> {
        if self.message.is_none() {
            self.message = self.messages.next()?;
            self.learn()?;
        }
        let Some(message) = &self.message else { return self.parts.next() };
        match self.parts.next_before(message.time_ns)? {
            Some(entry) => Ok(Some(entry)),
            None => Ok(self.message.take().map(SessionEntry::Message)),
        }
    }

    /// Takes what the next message says of the session, and behind the last one what the rest of the file says.
    fn learn(&mut self) -> Result<(), Fault> {
        let Some(outline) = &mut self.outline else { return Ok(()) };
        if let Some(message) = &self.message {
            outline.hear(message);
            self.summary.several_conversations = outline.conversations.several;
            return Ok(());
        }
        let rest = outline.read_members(&mut self.messages.document, false);
        let rest = rest.and_then(|_| self.messages.document.end());
        rest.map_err(|fault| fault.within("after its messages"))?;
        let session = outline.session(&self.path)?;
        (self.parts, self.summary) = (session.parts()?, session.summary());
        self.outline = None;
        Ok(())
    }
}

/// What one pass over the document finds. Its members may come in any order.
#[derive(Default)]
struct Outline {
    members: HashMap<String, Vec<u8>>,
    seen: HashSet<String>,
    /// Where the list of messages begins, and how many there are.
    messages: Option<(u64, u64)>,
    last_ns: Option<u64>,
    conversations: Conversations,
    parts: Vec<Part>,
}

impl Outline {
    fn read(input: impl Read) -> Result<Self, Fault> {
        let mut document = Document::open(input)?;
        let mut outline = Self::default();
        outline.read_members(&mut document, false)?;
        if outline.messages.is_none() {
            outline.read_lines(&mut document)?;
        }
        document.end()?;
        Ok(outline)
    }

    /// Reads on to the end of the object, or up to the messages. Returns whether it stopped at these.
    fn read_members(&mut self, document: &mut Document<impl Read>, to_messages: bool) -> Result<bool, Fault> {
        while let Some(name) = document.next_name()? {
            let is_known = MEMBERS.contains(&name.as_str());
            if is_known && !self.seen.insert(name.clone()) {
                return Err(Fault::Bad(format!("duplicate field `{name}`")));
            }
            match name.as_str() {
                "messages" if to_messages => return Ok(true),
                "messages" => self.read_messages(document)?,
                "exchanges" => self.read_exchanges(document)?,
                _ if is_known => {
                    let value = self.members.entry(name).or_default();
                    document.short_value(value, MEMBER_BYTES_MAX)?;
                }
                _ => document.skip_value()?,
            }
        }
        Ok(false)
    }

    /// Looks at every message, so that a file that opens can be read.
    fn read_messages(&mut self, document: &mut Document<impl Read>) -> Result<(), Fault> {
        let begin = document.enter_array()?.ok_or_else(|| Fault::Bad("`messages` is not a list".into()))?;
        self.messages = Some((begin, 0));
        let mut bytes = Vec::new();
        while document.next_element(&mut bytes)?.is_some() {
            self.read_message(&bytes)?;
        }
        Ok(())
    }

    /// The session without its messages is a line, and each message is one.
    fn read_lines(&mut self, document: &mut Document<impl Read>) -> Result<(), Fault> {
        let Some(begin) = document.next_line()? else { return Ok(()) };
        self.messages = Some((begin, 0));
        let mut bytes = Vec::new();
        while document.next_line()?.is_some() {
            document.value(&mut bytes)?;
            self.read_message(&bytes)?;
        }
        Ok(())
    }

    fn read_message(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let count = self.messages.map_or(0, |(_, count)| count);
        self.hear(&Envelope::parse(bytes, &Uuid::nil(), count)?);
        Ok(())
    }

    fn hear(&mut self, message: &Recorded) {
        self.messages.iter_mut().for_each(|(_, count)| *count += 1);
        self.conversations.add(message.conversation);
        self.last_ns = Some(message.time_ns);
    }

    fn read_exchanges(&mut self, document: &mut Document<impl Read>) -> Result<(), Fault> {
        if document.enter_array()?.is_none() {
            let mut value = Vec::new();
            document.short_value(&mut value, MEMBER_BYTES_MAX)?;
            return if value == b"null" { Ok(()) } else { Err(Fault::Bad("`exchanges` is not a list".into())) };
        }
        let mut bytes = Vec::new();
        while let Some(at) = document.next_element(&mut bytes)? {
            let listed = Listed::parse(&bytes)?;
            for (which, entry) in listed.entries() {
                self.conversations.add(entry.conversation());
                self.parts.push(Part::new(at, which, &entry));
            }
        }
        Ok(())
    }

    fn session(&mut self, path: &Path) -> Result<FileSession, Fault> {
        let id: String = self.member("id")?;
        let id = Uuid::parse_str(&id).map_err(|_| Fault::Bad(format!("`id` is not a UUID: {id}")))?;
        let started_ns = nanoseconds(self.member("started_at")?);
        let (messages_at, messages) = self.messages.ok_or_else(|| missing("messages"))?;
        let transport = self.member_or("transport", stdio)?;
        let mut header = SessionHeader {
            server_command: self.member_or("server_command", || None)?,
            server_url: self.member_or("server_url", || None)?,
            ..SessionHeader::begun(id, started_ns, transport)
        };
        metadata::take(self.member_or("metadata", metadata::Listed::new)?, &mut header);
        let mut parts = std::mem::take(&mut self.parts);
        exchanges::sort(&mut parts);
        Ok(FileSession {
            path: path.to_owned(),
            ended_ns: self.member_or("ended_at", || None)?.map(nanoseconds),
            messages_at,
            messages,
            several_conversations: self.conversations.several,
            last_ns: self.last_ns.unwrap_or(header.started_ns),
            parts: Arc::new(parts),
            header,
        })
    }

    fn member<T: DeserializeOwned>(&self, name: &str) -> Result<T, Fault> {
        let value = self.members.get(name).ok_or_else(|| missing(name))?;
        serde_json::from_slice(value).map_err(|error| Fault::Bad(format!("`{name}`: {error}")))
    }

    fn member_or<T: DeserializeOwned>(&self, name: &str, default: fn() -> T) -> Result<T, Fault> {
        if self.members.contains_key(name) { self.member(name) } else { Ok(default()) }
    }
}

/// The members of a session that mean something.
const MEMBERS: [&str; 9] =
    ["id", "started_at", "ended_at", "transport", "server_command", "server_url", "messages", "exchanges", "metadata"];

fn missing(name: &str) -> Fault {
    Fault::Bad(format!("missing field `{name}`"))
}

/// The messages, one at a time.
struct Messages {
    session: Uuid,
    document: Document<File>,
    in_lines: bool,
    is_over: bool,
    bytes: Vec<u8>,
    count: u64,
}

impl Messages {
    fn open(file: &FileSession) -> Result<Self, Fault> {
        let mut document = file.document()?;
        document.go_to(file.messages_at)?;
        let in_lines = document.enter_array()?.is_none();
        Ok(Self::new(file.header.id, document, in_lines))
    }

    fn new(session: Uuid, document: Document<File>, in_lines: bool) -> Self {
        Self { session, document, in_lines, is_over: false, bytes: Vec::new(), count: 0 }
    }

    fn next(&mut self) -> Result<Option<Recorded>, Fault> {
        if self.is_over {
            return Ok(None);
        }
        let is_there = match self.in_lines {
            true => self.document.next_line()?.map(|_| self.document.value(&mut self.bytes)).transpose()?.is_some(),
            false => self.document.next_element(&mut self.bytes).map_err(broken_off)?.is_some(),
        };
        if !is_there {
            self.is_over = true;
            return Ok(None);
        }
        let message = Envelope::parse(&self.bytes, &self.session, self.count)?;
        self.count += 1;
        if self.bytes.capacity() > BUFFER_KEPT {
            self.bytes = Vec::new();
        }
        Ok(Some(message))
    }
}

fn broken_off(fault: Fault) -> Fault {
    match fault {
        Fault::Bad(_) => Fault::Bad("it breaks off among its messages".into()),
        Fault::Io(error) => Fault::Io(error),
    }
}

impl Envelope<'_> {
    /// The message that stands at `index` in the list, from 0.
    fn parse(bytes: &[u8], session: &Uuid, index: u64) -> Result<Recorded, Fault> {
        let at = |reason: String| Fault::Bad(format!("message {}: {reason}", index + 1));
        let envelope: Envelope<'_> = serde_json::from_slice(bytes).map_err(|error| at(error.to_string()))?;
        envelope.read(session, index).map_err(at)
    }

    fn read(self, session: &Uuid, index: u64) -> Result<Recorded, String> {
        let sequence = self.sequence.unwrap_or(index + 1);
        let decoded =
            |name: &str, encoded: &str| BASE64.decode(encoded.as_bytes()).map_err(|error| format!("`{name}`: {error}"));
        let original = match (&self.original_raw_base64, self.original_raw) {
            (Some(encoded), _) => Some(decoded("original_raw_base64", encoded)?),
            (None, raw) => raw.map(|raw| raw.get().as_bytes().to_vec()),
        };
        let raw = match (&self.raw_base64, self.raw) {
            (Some(encoded), _) => decoded("raw_base64", encoded)?,
            (None, Some(raw)) => raw.get().as_bytes().to_vec(),
            (None, None) if self.event.is_some() => Vec::new(),
            (None, None) => return Err("neither `raw` nor `raw_base64`".into()),
        };
        let verdict = self.verdict.as_deref().and_then(VerdictKind::from_name).map(|what| Verdict {
            what,
            rule: self.rule.map(Into::into),
            operation: self.op.as_deref().and_then(operation_named),
            audit: self.audit_id.as_deref().and_then(AuditId::parse),
        });
        Ok(Recorded {
            id: self.id.unwrap_or_else(|| message_id(session, sequence)),
            sequence,
            time_ns: nanoseconds(self.timestamp),
            direction: self.direction,
            conversation: self.conversation.unwrap_or(0),
            upstream: self.upstream.map(Into::into),
            transport: self.transport,
            exchange: self.exchange,
            event_id: self.event_id,
            raw: raw.into(),
            correlated_id: self.correlated_id,
            parent: self.parent,
            modified: self.modified,
            original_raw: original.map(Bytes::from),
            held: self.held || self.held_ns.is_some(),
            held_ns: self.held_ns,
            outcome: self.outcome.as_deref().and_then(OutcomeKind::from_name),
            decided_by: self.decided_by,
            why: self.why,
            verdict: verdict.map(Box::new),
            mark: self.mark,
            note: self.note,
            noise: self.noise,
            from_proxy: self.origin.as_deref() == Some("proxy"),
            event: self.event,
        })
    }
}

pub(super) fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or(0)
}
