//! Reads a session file, ours or that of a related tool: two other spellings of the envelope are
//! in use and mean the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::exchanges::{self, Listed};
use crate::StoreError;
use crate::exchange::SessionEntry;
use crate::recorded::{Direction, Recorded, SessionHeader, Transport, message_id};
use crate::session::{Conversations, Summary};
use crate::state_dir::StateDir;

/// A session file, read whole.
#[derive(Clone, Debug)]
pub struct FileSession {
    pub header: SessionHeader,
    pub ended_ns: Option<u64>,
    pub messages: Vec<Recorded>,
    /// What HTTP said between them, with the number of messages that stand before each.
    exchanges: Vec<(usize, SessionEntry)>,
}

#[derive(Deserialize)]
struct Document<'a> {
    id: String,
    started_at: Timestamp,
    #[serde(default)]
    ended_at: Option<Timestamp>,
    #[serde(default = "stdio")]
    transport: Transport,
    #[serde(default)]
    server_command: Option<String>,
    #[serde(default)]
    server_url: Option<String>,
    #[serde(borrow)]
    messages: Vec<Envelope<'a>>,
    #[serde(default)]
    exchanges: Option<Vec<Listed>>,
    #[serde(default)]
    metadata: BTreeMap<String, serde_json::Value>,
}

/// A message as it stands in the document.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
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
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let text = std::fs::read(path).map_err(StoreError::io("read", path))?;
        Self::parse(&text, path)
    }

    /// Takes a whole document; `path` is for what is said if it is none.
    pub(super) fn parse(text: &[u8], path: &Path) -> Result<Self, StoreError> {
        let document: Document<'_> =
            serde_json::from_slice(text).map_err(|error| StoreError::not_a_session(path, error.to_string()))?;
        let id = Uuid::parse_str(&document.id)
            .map_err(|_| StoreError::not_a_session(path, format!("`id` is not a UUID: {}", document.id)))?;
        let mut messages = Vec::with_capacity(document.messages.len());
        for (index, envelope) in document.messages.into_iter().enumerate() {
            messages.push(
                envelope
                    .read(&id, index)
                    .map_err(|reason| StoreError::not_a_session(path, format!("message {}: {reason}", index + 1)))?,
            );
        }
        let exchanges = exchanges::placed(document.exchanges.unwrap_or_default(), &messages);
        let notes = document.metadata.into_iter().map(note);
        let header = SessionHeader {
            id,
            started_ns: nanoseconds(document.started_at),
            transport: document.transport,
            server_command: document.server_command,
            server_url: document.server_url,
            name: None,
            notes: notes.collect(),
            session_file: None,
            continues: None,
        };
        Ok(Self { header, ended_ns: document.ended_at.map(nanoseconds), messages, exchanges })
    }

    /// A file that says a session began, and no more.
    pub fn is_placeholder(&self) -> bool {
        self.ended_ns.is_none() && self.messages.is_empty()
    }

    /// Where the messages of a file that was never completed are: in the store, or beside it.
    pub fn unfinished(&self, path: &Path, state: Option<&StateDir>) -> Option<PathBuf> {
        let beside = super::segment_beside(path, &self.header.id);
        let places = [state.map(|state| state.segment(&self.header.id)), Some(beside)];
        places.into_iter().flatten().find(|segment| self.is_placeholder() && segment.exists())
    }

    /// Everything in the order in which it happened.
    pub fn entries(&self) -> impl Iterator<Item = SessionEntry> {
        let mut exchanges = self.exchanges.iter().peekable();
        let mut messages = self.messages.iter().enumerate().peekable();
        std::iter::from_fn(move || {
            let place = messages.peek().map_or(usize::MAX, |(index, _)| *index);
            match exchanges.next_if(|(before, _)| *before <= place) {
                Some((_, entry)) => Some(entry.clone()),
                None => messages.next().map(|(_, message)| SessionEntry::Message(message.clone())),
            }
        })
    }

    /// The same, letting go of each.
    pub fn into_entries(self) -> impl Iterator<Item = SessionEntry> {
        let mut exchanges = self.exchanges.into_iter().peekable();
        let mut messages = self.messages.into_iter().enumerate().peekable();
        std::iter::from_fn(move || {
            let place = messages.peek().map_or(usize::MAX, |(index, _)| *index);
            match exchanges.next_if(|(before, _)| *before <= place) {
                Some((_, entry)) => Some(entry),
                None => messages.next().map(|(_, message)| SessionEntry::Message(message)),
            }
        })
    }

    pub fn summary(&self) -> Summary {
        let mut conversations = Conversations::default();
        self.messages.iter().for_each(|message| conversations.add(message.conversation));
        self.exchanges.iter().for_each(|(_, entry)| conversations.add(entry.conversation()));
        Summary {
            header: self.header.clone(),
            ended_ns: self.ended_ns,
            end: None,
            live: false,
            messages: self.messages.len() as u64,
            several_conversations: conversations.several,
            has_exchanges: !self.exchanges.is_empty(),
            notes: self.header.notes.clone(),
            warnings: Vec::new(),
            whole_len: 0,
            last_ns: self.messages.last().map_or(self.header.started_ns, |message| message.time_ns),
            torn: false,
        }
    }
}

impl Envelope<'_> {
    pub(super) fn read(self, session: &Uuid, index: usize) -> Result<Recorded, String> {
        let sequence = self.sequence.unwrap_or(index as u64 + 1);
        let raw = match (&self.raw_base64, self.raw) {
            (Some(encoded), _) => {
                BASE64.decode(encoded.as_bytes()).map_err(|error| format!("`raw_base64`: {error}"))?
            }
            (None, Some(raw)) => raw.get().as_bytes().to_vec(),
            (None, None) if self.event.is_some() => Vec::new(),
            (None, None) => return Err("neither `raw` nor `raw_base64`".into()),
        };
        Ok(Recorded {
            id: self.id.unwrap_or_else(|| message_id(session, sequence)),
            sequence,
            time_ns: nanoseconds(self.timestamp),
            direction: self.direction,
            conversation: self.conversation.unwrap_or(0),
            transport: self.transport,
            exchange: self.exchange,
            event_id: self.event_id,
            raw: raw.into(),
            correlated_id: self.correlated_id,
            modified: self.modified,
            original_raw: self.original_raw.map(|raw| Bytes::copy_from_slice(raw.get().as_bytes())),
            noise: self.noise,
            from_proxy: self.origin.as_deref() == Some("proxy"),
            event: self.event,
        })
    }
}

/// A note is text; what is something else is kept as JSON.
pub(super) fn note((key, value): (String, serde_json::Value)) -> (String, String) {
    match value {
        serde_json::Value::String(text) => (key, text),
        other => (key, other.to_string()),
    }
}

pub fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or(0)
}
