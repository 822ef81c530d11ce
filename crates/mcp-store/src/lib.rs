//! What was captured. Bytes go to an append-only segment file per session, as fast as they pass;
//! the catalogue (SQLite) is filled from the segments and can be rebuilt from them at any time.
//! Session files are the exchange format people keep.

pub mod audit;
pub mod catalogue;
mod database;
pub mod exchange;
pub mod export;
pub mod import;
pub mod index;
pub mod pages;
pub mod recorded;
pub mod redact;
pub mod segment;
pub mod session;
pub mod session_file;
pub mod state_dir;
pub mod story;
mod synced;

use std::io;
use std::path::{Path, PathBuf};

pub use audit::AuditLog;
pub use catalogue::{Catalogue, Entry};
pub use exchange::{Amendment, AnswerHead, ExchangeMark, Headers, RequestHead, Said, SessionEntry};
pub use index::Index;
pub use pages::{ExchangeOf, Page, Pages};
pub use recorded::{Direction, Recorded, SessionHeader, Transport};
pub use segment::{
    AuditId, End, HeadKey, Link, Mark, Outcome, OutcomeKind, Record, RecordHead, RecordKind, SegmentReader,
    SegmentWriter, SparseIndex, Verdict, VerdictKind,
};
pub use session::{Entries, Session, Summary};
pub use state_dir::StateDir;
pub use story::{MessageKind, Story, Told};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot {what} `{path}`")]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{path}` is not a session: {reason}")]
    NotASession { path: PathBuf, reason: String },
    #[error("`{path}` is not a directory of yours that is closed to others")]
    NotPrivate { path: PathBuf },
    #[error("cannot write `{path}`: {reason}")]
    NotWrittenOver { path: PathBuf, reason: String },
    #[error("no session is recorded yet")]
    NoneRecorded,
    #[error("no session `{wanted}`")]
    Unknown { wanted: String },
    #[error("`{wanted}` fits several sessions: {}", .candidates.join(", "))]
    Ambiguous { wanted: String, candidates: Vec<String> },
    #[error("session {id} is still being recorded")]
    Live { id: String },
    #[error("the catalogue or the index cannot be used")]
    Cache(#[from] rusqlite::Error),
}

impl StoreError {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    pub(crate) fn not_a_session(path: &Path, reason: impl Into<String>) -> Self {
        Self::NotASession { path: path.to_owned(), reason: reason.into() }
    }
}
