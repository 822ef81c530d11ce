//! The session file: one JSON document that people keep, send and diff. Messages stand in it
//! verbatim, byte for byte; only what is not JSON is wrapped in base64.

mod document;
mod exchanges;
mod message;
mod metadata;
mod read;

use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde::Serialize;
use uuid::Uuid;

use crate::StoreError;
use crate::exchange::SessionEntry;
use crate::recorded::{Recorded, SessionHeader, timestamp};
use crate::session::Session;

pub(crate) use exchanges::ExchangeList;
pub use message::is_readable_json;
pub(crate) use message::{Layout, Object, Statuses, write_message};
pub(crate) use metadata::Metadata;
pub use read::{FileEntries, FileSession};

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
        Ok(write_closing(out, &summary.metadata())?)
    })
}

/// Returns whether there were none.
fn write_messages(out: &mut impl Write, session: &Session) -> Result<bool, Failed> {
    let mut statuses = Statuses::default();
    let mut first = true;
    session.for_each_entry(|entry| -> Result<(), Failed> {
        statuses.hear(&entry);
        if let SessionEntry::Message(message) = entry {
            write_listed(out, &message, statuses.of(&message), first)?;
            first = false;
        }
        Ok(())
    })?;
    Ok(first)
}

/// A message as the next item of the list.
pub(crate) fn write_listed(
    out: &mut (impl Write + ?Sized),
    message: &Recorded,
    status: Option<u16>,
    first: bool,
) -> io::Result<()> {
    write!(out, "{}\n    ", if first { "" } else { "," })?;
    write_message(out, Layout::Document, message, status)
}

/// Says at `path` that a session is being recorded, so that a reader after a crash knows which.
pub fn write_placeholder(path: &Path, header: &SessionHeader) -> Result<(), StoreError> {
    replace(path, |out| {
        write_opening(out, header, None)?;
        write_end_of_messages(out, true)?;
        Ok(write_closing(out, &Metadata { notes: &header.notes, json: &header.json_notes })?)
    })
}

/// Makes the directory of the session file that will be at `path`, closed to others, where it is missing.
pub fn make_dir_of(path: &Path) -> Result<(), StoreError> {
    let dir = dir_of(path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| StoreError::NotWrittenOver {
        path: path.to_owned(),
        reason: format!("its directory cannot be made ({error})"),
    })
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a session file may be put at `path`: nothing is there, or a session file that may be
/// written over. What is anything else is somebody's and stays.
pub fn may_be_written(path: &Path) -> Result<(), StoreError> {
    let refused = |reason: &str| Err(StoreError::NotWrittenOver { path: path.to_owned(), reason: reason.to_owned() });
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = dir_of(path);
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
    FileSession::open(path).is_ok_and(|file| file.is_placeholder() && file.header.id == *id)
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
    let dir = dir_of(path);
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

pub(crate) fn write_opening(
    out: &mut (impl Write + ?Sized),
    header: &SessionHeader,
    ended_ns: Option<u64>,
) -> io::Result<()> {
    writeln!(out, "{{")?;
    member(out, 2, "id", &header.id.to_string())?;
    member(out, 2, "started_at", &header.started_at().to_string())?;
    member(out, 2, "ended_at", &ended_ns.map(|ns| timestamp(ns).to_string()))?;
    member(out, 2, "transport", &header.transport)?;
    member(out, 2, "server_command", &header.server_command)?;
    member(out, 2, "server_url", &header.server_url)?;
    write!(out, "  \"messages\": [")
}

pub(crate) fn write_end_of_messages(out: &mut (impl Write + ?Sized), empty: bool) -> io::Result<()> {
    writeln!(out, "{}],", if empty { "" } else { "\n  " })
}

pub(crate) fn write_closing(out: &mut (impl Write + ?Sized), notes: &Metadata<'_>) -> io::Result<()> {
    write!(out, "  \"metadata\": ")?;
    write_nested(out, notes)?;
    writeln!(out, "\n}}")
}

/// A small value over several lines, indented as a member of the document.
fn write_nested(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    out.write_all(text.replace('\n', "\n  ").as_bytes())
}

fn member(out: &mut (impl Write + ?Sized), indent: usize, name: &str, value: &impl Serialize) -> io::Result<()> {
    write!(out, "{:indent$}\"{name}\": ", "")?;
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out, ",")
}

#[cfg(test)]
mod tests;
