//! The session file: one JSON document that people keep, send and diff. Messages stand in it
//! verbatim, byte for byte; only what is not JSON is wrapped in base64.

mod exchanges;
mod read;
mod stream;

use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_wire::{Kind, Message};
use serde::Serialize;
use uuid::Uuid;

use crate::StoreError;
use crate::exchange::{Headers, OpenExchanges, SessionEntry};
use crate::recorded::{Direction, Recorded, SessionHeader, timestamp};
use crate::session::Session;

pub use read::FileSession;
pub use stream::FileStream;

/// Writes `session` to `path`: whole or not at all, and readable by its owner only.
pub fn write(path: &Path, session: &Session) -> Result<(), StoreError> {
    replace(path, |out| {
        let summary = session.summary();
        write_opening(out, &summary.header, summary.ended_ns)?;
        let first = write_messages(out, session)?;
        write_end_of_messages(out, first)?;
        if summary.has_exchanges {
            exchanges::write_exchanges(out, session)?;
        }
        Ok(write_closing(out, &summary.notes)?)
    })
}

/// Returns whether there were none.
fn write_messages(out: &mut impl Write, session: &Session) -> Result<bool, Failed> {
    let mut statuses = OpenExchanges::<u16>::default();
    let mut first = true;
    session.for_each_entry(|entry| -> Result<(), Failed> {
        match entry {
            SessionEntry::Message(message) => {
                let came_in_answer = message.exchange.filter(|_| message.direction == Direction::ServerToClient);
                let status = came_in_answer.and_then(|exchange| statuses.get(exchange).copied());
                write_message(out, &message, status, first)?;
                first = false;
            }
            SessionEntry::Answer(mark, head) => {
                *statuses.keep(mark.exchange, &Headers::default()) = head.status;
                statuses.pop_excess();
            }
            SessionEntry::End(mark, _) => drop(statuses.remove(mark.exchange)),
            SessionEntry::Request(..) => {}
        }
        Ok(())
    })?;
    Ok(first)
}

/// Says at `path` that a session is being recorded, so that a reader after a crash knows which.
pub fn write_placeholder(path: &Path, header: &SessionHeader) -> Result<(), StoreError> {
    replace(path, |out| {
        write_opening(out, header, None)?;
        write_end_of_messages(out, true)?;
        Ok(write_closing(out, &header.notes)?)
    })
}

/// Whether a session file may be put at `path`: nothing is there, or a session file that may be
/// written over. What is anything else is somebody's and stays.
pub fn may_be_written(path: &Path) -> Result<(), StoreError> {
    let refused = |reason: &str| Err(StoreError::NotWrittenOver { path: path.to_owned(), reason: reason.to_owned() });
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return if dir.is_dir() { Ok(()) } else { refused("its directory does not exist") };
        }
        Err(error) => return Err(StoreError::io("look at", path)(error)),
    };
    if !meta.is_file() {
        return refused("it is not a plain file");
    }
    let mut beginning = Vec::new();
    let file = std::fs::File::open(path).map_err(StoreError::io("open", path))?;
    file.take(64).read_to_end(&mut beginning).map_err(StoreError::io("read", path))?;
    let beginning: Vec<u8> = beginning.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if beginning.is_empty() || beginning.starts_with(b"{\"id\":") {
        Ok(())
    } else {
        refused("it is not a session file")
    }
}

/// The segment that is being written beside a session file, where no store is.
pub fn segment_beside(path: &Path, id: &Uuid) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.mcpseg", &id.to_string()[..8]));
    path.with_file_name(name)
}

pub fn is_placeholder_of(path: &Path, id: &Uuid) -> bool {
    FileSession::read(path).is_ok_and(|file| file.is_placeholder() && file.header.id == *id)
}

pub fn looks_like_segment(path: &Path) -> Result<bool, StoreError> {
    let mut magic = Vec::new();
    let file = std::fs::File::open(path).map_err(StoreError::io("open", path))?;
    file.take(8).read_to_end(&mut magic).map_err(StoreError::io("read", path))?;
    Ok(magic == crate::segment::MAGIC)
}

/// Either error of a writing step, before the path is known.
enum Failed {
    Io(io::Error),
    Store(StoreError),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut std::fs::File>) -> Result<(), Failed>,
) -> Result<(), StoreError> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let fill = || -> Result<(), Failed> {
        let mut file = tempfile::Builder::new().prefix(".mcp-session-").tempfile_in(dir)?;
        let mut out = BufWriter::with_capacity(256 * 1024, file.as_file_mut());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        file.as_file().sync_data()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    fill().map_err(|failed| match failed {
        Failed::Io(error) => StoreError::io("write", path)(error),
        Failed::Store(error) => error,
    })
}

fn write_opening(out: &mut impl Write, header: &SessionHeader, ended_ns: Option<u64>) -> io::Result<()> {
    writeln!(out, "{{")?;
    member(out, 2, "id", &header.id.to_string())?;
    member(out, 2, "started_at", &header.started_at().to_string())?;
    member(out, 2, "ended_at", &ended_ns.map(|ns| timestamp(ns).to_string()))?;
    member(out, 2, "transport", &header.transport)?;
    member(out, 2, "server_command", &header.server_command)?;
    member(out, 2, "server_url", &header.server_url)?;
    write!(out, "  \"messages\": [")
}

fn write_end_of_messages(out: &mut impl Write, empty: bool) -> io::Result<()> {
    writeln!(out, "{}],", if empty { "" } else { "\n  " })
}

fn write_closing(out: &mut impl Write, notes: &impl Serialize) -> io::Result<()> {
    write!(out, "  \"metadata\": ")?;
    write_nested(out, notes)?;
    writeln!(out, "\n}}")
}

/// A small value over several lines, indented as a member of the document.
fn write_nested(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    out.write_all(text.replace('\n', "\n  ").as_bytes())
}

fn write_message(out: &mut impl Write, message: &Recorded, status: Option<u16>, first: bool) -> io::Result<()> {
    let scanned = Message::new(message.raw.clone());
    let peek = scanned.peek();
    let is_json = scanned.kind() != Kind::NotJson && std::str::from_utf8(&message.raw).is_ok();
    write!(out, "{}\n    {{\n", if first { "" } else { "," })?;
    member(out, 6, "id", &message.id)?;
    member(out, 6, "sequence", &message.sequence)?;
    member(out, 6, "timestamp", &message.timestamp().to_string())?;
    member(out, 6, "direction", &message.direction)?;
    member(out, 6, "transport", &message.transport)?;
    write!(out, "      \"raw\": ")?;
    out.write_all(if is_json { message.raw.trim_ascii() } else { b"null" })?;
    writeln!(out, ",")?;
    write!(out, "      \"jsonrpc_id\": ")?;
    out.write_all(peek.id.filter(|_| is_json).map_or(b"null", |span| scanned.slice(span)))?;
    writeln!(out, ",")?;
    member(out, 6, "method", &scanned.method().filter(|_| is_json))?;
    member(out, 6, "correlated_id", &message.correlated_id)?;
    member(out, 6, "modified", &message.modified)?;
    write!(out, "      \"original_raw\": ")?;
    out.write_all(message.original_raw.as_ref().map_or(b"null", |raw| raw.trim_ascii()))?;
    if message.conversation != 0 {
        write!(out, ",\n      \"conversation\": {}", message.conversation)?;
    }
    if let Some(exchange) = message.exchange {
        write!(out, ",\n      \"exchange\": {exchange}")?;
    }
    if let Some(event_id) = &message.event_id {
        write!(out, ",\n      \"event_id\": {}", serde_json::to_string(event_id)?)?;
    }
    if let Some(status) = status {
        write!(out, ",\n      \"http_status\": {status}")?;
    }
    // What `raw` cannot hold: blanks around a message, a message that is not JSON, and one that
    // would look as if there were none.
    let is_verbatim = is_json && message.raw.trim_ascii().len() == message.raw.len() && message.raw != b"null"[..];
    if message.event.is_none() && !is_verbatim {
        write!(out, ",\n      \"raw_base64\": \"{}\"", BASE64.encode(&message.raw))?;
    }
    if message.noise {
        write!(out, ",\n      \"noise\": true")?;
    }
    if message.from_proxy {
        write!(out, ",\n      \"origin\": \"proxy\"")?;
    }
    if let Some(event) = &message.event {
        write!(out, ",\n      \"event\": {}", serde_json::to_string(event)?)?;
    }
    if let Some(ambiguity) = peek.ambiguity.filter(|_| message.event.is_none() && !message.noise) {
        write!(out, ",\n      \"opaque\": {}", serde_json::to_string(&ambiguity.to_string())?)?;
    }
    write!(out, "\n    }}")
}

fn member(out: &mut impl Write, indent: usize, name: &str, value: &impl Serialize) -> io::Result<()> {
    write!(out, "{:indent$}\"{name}\": ", "")?;
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out, ",")
}

impl Direction {
    pub fn arrow(self) -> char {
        match self {
            Self::ClientToServer => '→',
            Self::ServerToClient => '←',
        }
    }
}

#[cfg(test)]
mod tests;
