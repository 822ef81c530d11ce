//! One session, read from any place in it: the same pages that a running instance gives of its own. What
//! lies in a session file is first brought into a segment, because a document can only be read from its
//! beginning.

use std::fs::Permissions;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mcp_control::api::{Exchange, Message, Page, PageQuery};
use mcp_store::import::Import;
use mcp_store::{Catalogue, Entries, Session, StateDir, StoreError};
use mcp_tui::library::{Recording, SessionRef, SessionRow, Trouble, Work};
use tempfile::TempDir;

use super::{list_filter, rows, trouble};
use crate::control::history::{self, Segments, Wanted};
use crate::control::{exchange, tell};
use crate::failure::{Failure, exit};

pub(super) struct Opened {
    row: SessionRow,
    segment: PathBuf,
    segments: Segments,
    /// Where a session file was brought to. It is gone with this.
    _brought: Option<TempDir>,
}

pub(super) fn open(session: &SessionRef, state: &StateDir, work: &Work) -> Result<Opened, Failure> {
    let opened = match session {
        SessionRef::Stored(id) => {
            let entry = Catalogue::open(state)?.find(id)?;
            Opened::new(rows::of_entry(&entry), entry.path, None)
        }
        SessionRef::File(path) => open_file(path, state, work)?,
    };
    // The first page need not wait for what is looked at once.
    opened.segments.alone(&opened.segment)?;
    Ok(opened)
}

fn open_file(path: &Path, state: &StateDir, work: &Work) -> Result<Opened, Failure> {
    let session = Session::open(path, Some(state))?;
    let row = rows::of_summary(session.summary(), length(path));
    let segment = session.segment().map(Path::to_owned);
    Ok(match segment {
        Some(segment) => Opened::new(row, segment, None),
        None => {
            let (segment, dir) = bring(session, path, work)?;
            Opened::new(row, segment, Some(dir))
        }
    })
}

/// A segment with what a session file has, in a directory of its own that nobody else can look into.
fn bring(session: Session, path: &Path, work: &Work) -> Result<(PathBuf, TempDir), Failure> {
    let mut builder = tempfile::Builder::new();
    let dir = builder.prefix("mcp-proxy-session-").permissions(Permissions::from_mode(0o700)).tempdir()?;
    let place = StateDir::find(Some(dir.path())).expect("a directory was given");
    let brought = Import::of(session, path)?.bring(&place, &mut |messages| {
        work.set(messages, 0);
        if work.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let brought = brought.ok_or_else(|| Failure::new(exit::INTERRUPTED, "interrupted: the file was not opened"))?;
    Ok((brought.path, dir))
}

impl Opened {
    fn new(row: SessionRow, segment: PathBuf, brought: Option<TempDir>) -> Self {
        Self { row, segment, segments: Segments::default(), _brought: brought }
    }

    /// What has become of a session that was being recorded when it was opened.
    fn grown(&self) -> Result<SessionRow, StoreError> {
        let messages = self.segments.alone(&self.segment)?.last_sequence;
        let entries = Entries::open_segment(&self.segment)?;
        Ok(SessionRow { messages, ..rows::of_summary(entries.summary(), length(&self.segment)) })
    }
}

impl Recording for Opened {
    fn about(&self) -> SessionRow {
        let grown = if self.row.is_live { self.grown().ok() } else { None };
        grown.unwrap_or_else(|| self.row.clone())
    }

    fn page(&self, which: &PageQuery) -> Result<Page, Trouble> {
        let filter = list_filter(which.filter.as_deref()).map_err(trouble)?;
        let wanted = Wanted::of(which, filter).map_err(|refusal| trouble(Failure::usage(refusal.message)))?;
        let read = || self.segments.page(&self.segments.alone(&self.segment)?, &wanted);
        Ok(history::told(read().map_err(trouble)?))
    }

    fn message(&self, sequence: u64) -> Result<Message, Trouble> {
        let read = || self.segments.one(&self.segments.alone(&self.segment)?, sequence);
        match read().map_err(trouble)? {
            Some((told, earlier)) => Ok(tell::message(&told, earlier, usize::MAX)),
            None => Err(format!("there is no message #{sequence}")),
        }
    }

    fn exchange(&self, sequence: u64) -> Result<Exchange, Trouble> {
        let read = || self.segments.exchange(&self.segments.alone(&self.segment)?, sequence);
        match read().map_err(trouble)? {
            Some(Some(found)) => Ok(exchange::told(found)),
            Some(None) => Err(format!("#{sequence} came in no HTTP exchange")),
            None => Err(format!("there is no message #{sequence}")),
        }
    }
}

/// 0 if it is not there.
fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}
