//! What the terminal shows that no running instance tells: recorded sessions and the audit log. The
//! program that draws brings an implementation; nothing here knows how recordings are stored.
//!
//! Everything here may block for as long as a disk takes. It is called on threads of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mcp_control::api::{Exchange, Message, Page, PageQuery};

/// Why something could not be done, in words for people. Nothing in it comes from a peer unescaped.
pub type Trouble = String;

pub trait Library: Send + Sync + 'static {
    /// All recorded sessions, the newest first.
    fn sessions(&self) -> Result<Vec<SessionRow>, Trouble>;

    /// Messages of any session that have these words, the newest first.
    fn search(&self, words: &str, limit: usize) -> Result<Vec<Hit>, Trouble>;

    /// Opens a session by its id, or a session file by its path, which takes long if it is large.
    fn open(&self, session: &SessionRef, work: &Work) -> Result<Arc<dyn Recording>, Trouble>;

    /// Writes a session in another format. Whatever ends it early leaves no file, or the one that was there.
    fn export(&self, export: &Export, work: &Work) -> Result<Exported, Trouble>;

    /// Where two sessions differ, as the lines of a report.
    fn compare(&self, left: &SessionRef, right: &SessionRef, work: &Work) -> Result<Comparison, Trouble>;

    /// Decisions of the audit log, the newest first. `filter` is an expression of the filter language.
    fn audit(&self, filter: Option<&str>, limit: usize) -> Result<Vec<Decision>, Trouble>;
}

/// A recorded session that can be read like a running one.
pub trait Recording: Send + Sync + 'static {
    fn about(&self) -> SessionRow;
    fn page(&self, which: &PageQuery) -> Result<Page, Trouble>;
    fn message(&self, sequence: u64) -> Result<Message, Trouble>;

    /// The heads of the HTTP exchange that a message came in.
    fn exchange(&self, sequence: u64) -> Result<Exchange, Trouble>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRef {
    /// The id of a session in the store, whole.
    Stored(String),
    File(PathBuf),
}

/// A session in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRow {
    pub id: String,
    pub name: Option<String>,
    /// The command or the address.
    pub server: String,
    /// `stdio`, `sse` or `streamable_http`.
    pub transport: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Absent while it is being recorded, or if it broke off.
    pub ended_at: Option<String>,
    /// It is being recorded now.
    pub is_live: bool,
    pub messages: u64,
    pub bytes: u64,
    pub notes: Vec<(String, String)>,
}

/// A message that was found by its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub session: String,
    pub sequence: u64,
    pub timestamp: String,
    /// Method and tool, in a few words.
    pub what: String,
    /// The words around what was found.
    pub snippet: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub session: SessionRef,
    /// One of [`EXPORT_FORMATS`].
    pub format: String,
    pub file: PathBuf,
    pub filter: Option<String>,
    pub redact: bool,
    /// Replace a file that is there.
    pub overwrite: bool,
}

/// What `mcp-proxy export` writes.
pub const EXPORT_FORMATS: [&str; 6] = ["json", "ndjson", "har", "md", "html", "curl"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    pub file: PathBuf,
    pub messages: u64,
    /// Values that were masked.
    pub masked: u64,
}

/// What two sessions have in common, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub same: u64,
    pub different: u64,
    pub only_left: u64,
    pub only_right: u64,
    pub lines: Vec<ComparedLine>,
}

/// One operation that the two sessions do not have alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedLine {
    /// Method and tool, in a few words.
    pub what: String,
    pub left: Option<u64>,
    pub right: Option<u64>,
    /// Where they differ, by path; empty where one has none.
    pub paths: Vec<String>,
}

/// One record of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub audit_id: String,
    pub timestamp: String,
    pub session: Option<String>,
    pub sequence: Option<u64>,
    pub client: Option<String>,
    pub server: Option<String>,
    pub method: Option<String>,
    pub tool: Option<String>,
    pub operation: Option<String>,
    pub verdict: String,
    pub rule: Option<String>,
    /// A rule or a person.
    pub actor: String,
    pub outcome: Option<String>,
    pub latency_ns: Option<u64>,
}

/// How far work has come, and whether somebody still wants it.
#[derive(Clone, Debug, Default)]
pub struct Work(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Work {
    pub fn set(&self, done: u64, total: u64) {
        self.0.done.store(done, Ordering::Relaxed);
        self.0.total.store(total, Ordering::Relaxed);
    }

    /// What is done, and of how much, 0 if that is not known.
    pub fn done(&self) -> (u64, u64) {
        (self.0.done.load(Ordering::Relaxed), self.0.total.load(Ordering::Relaxed))
    }

    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
    }
}

/// Where a path of the user's leads: `~` is the home.
pub fn expand(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}
