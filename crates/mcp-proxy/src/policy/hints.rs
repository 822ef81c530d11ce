//! What `policy explain` knows of a server's hints: those of its recorded lists, and those that would change
//! the answer.

use mcp_engine::policy::explain::ListedTools;
use mcp_engine::policy::operation::Annotations;
use mcp_store::catalogue::{Catalogue, Entry};
use mcp_store::{Session, StateDir, StoreError, Story, Told};

/// Recordings in which `policy explain` looks for a list that names the tool, the newest first.
const SESSIONS_MAX: usize = 50;
/// Messages of each that are looked through. Clients ask for the list of tools at the beginning.
const MESSAGES_MAX: usize = 1_000;
/// Letters of a session's id that tell it from others.
const ID_LETTERS: usize = 8;

/// A tool as the newest recording that lists it shows it.
pub(super) struct Recorded {
    pub annotations: Annotations,
    /// Of the recording, for people.
    pub session: String,
    pub server: Option<String>,
}

/// Looks through recordings for a list that names the tool; with `server` only through those of it.
pub(super) fn recorded(state: &StateDir, tool: &str, server: Option<&str>) -> Result<Option<Recorded>, StoreError> {
    if !state.sessions().is_dir() {
        return Ok(None);
    }
    for entry in Catalogue::open(state)?.entries()?.iter().take(SESSIONS_MAX) {
        // One that was removed meanwhile, or is damaged, says nothing.
        if let Ok(Some(recorded)) = in_session(entry, tool, server) {
            return Ok(Some(recorded));
        }
    }
    Ok(None)
}

enum Stop {
    Enough,
    Failed,
}

impl From<StoreError> for Stop {
    fn from(_: StoreError) -> Self {
        Self::Failed
    }
}

fn in_session(entry: &Entry, tool: &str, server: Option<&str>) -> Result<Option<Recorded>, StoreError> {
    let session = Session::open_segment(&entry.path)?;
    let mut story = Story::of(&entry.header);
    let (mut lists, mut by, mut messages) = (ListedTools::default(), None, 0);
    let read = session.for_each_entry(|record| {
        let Some(told) = story.hear(record) else { return Ok(()) };
        messages += 1;
        if is_list(&told) && server.is_none_or(|server| told.server.as_deref() == Some(server)) {
            lists.hear(&told.recorded.raw);
            by = by.take().or_else(|| told.server.as_deref().map(str::to_owned));
        }
        if messages >= MESSAGES_MAX { Err(Stop::Enough) } else { Ok(()) }
    });
    let annotations = lists.of(tool);
    let is_found = !annotations.is_unlisted && !matches!(read, Err(Stop::Failed));
    let session = entry.header.id.to_string().chars().take(ID_LETTERS).collect();
    Ok(is_found.then_some(Recorded { annotations, session, server: by }))
}

fn is_list(told: &Told) -> bool {
    told.answers.is_some() && told.method().as_deref() == Some("tools/list")
}

/// A hint that a server may give, or the lack of any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    ReadOnly,
    Destructive,
    Idempotent,
    OpenWorld,
    Unknown,
}

impl Hint {
    /// What `--hint` takes.
    pub(super) fn parse(text: &str) -> Result<(Self, bool), String> {
        let (name, value) = text.split_once('=').unwrap_or((text, "yes"));
        let name = match name {
            "readonly" | "readOnlyHint" => Self::ReadOnly,
            "destructive" | "destructiveHint" => Self::Destructive,
            "idempotent" | "idempotentHint" => Self::Idempotent,
            "openworld" | "openWorldHint" => Self::OpenWorld,
            "unknown" => Self::Unknown,
            _ => return Err("expected `destructive`, `readonly`, `idempotent`, `openworld` or `unknown`".into()),
        };
        match value {
            "yes" | "true" => Ok((name, true)),
            "no" | "false" => Ok((name, false)),
            _ => Err("expected `=yes` or `=no`".into()),
        }
    }

    pub(super) fn set(self, annotations: Annotations, value: bool) -> Annotations {
        match self {
            Self::ReadOnly => Annotations { read_only: Some(value), ..annotations },
            Self::Destructive => Annotations { destructive: Some(value), ..annotations },
            Self::Idempotent => Annotations { idempotent: Some(value), ..annotations },
            Self::OpenWorld => Annotations { open_world: Some(value), ..annotations },
            Self::Unknown if value => Annotations::UNLISTED,
            Self::Unknown => Annotations { is_unlisted: false, ..annotations },
        }
    }

    /// The case in which it counts, for people.
    pub(super) fn told(self, value: bool) -> String {
        match (self, value) {
            (Self::ReadOnly, value) => format!("if the server says `readOnlyHint: {value}`"),
            (Self::Destructive, value) => format!("if the server says `destructiveHint: {value}`"),
            (Self::Idempotent, value) => format!("if the server says `idempotentHint: {value}`"),
            (Self::OpenWorld, value) => format!("if the server says `openWorldHint: {value}`"),
            (Self::Unknown, true) => "before the server has listed it".into(),
            (Self::Unknown, false) => "once the server has listed it".into(),
        }
    }
}

/// Every hint that differs from these annotations and may change what counts.
pub(super) fn others(annotations: Annotations) -> impl Iterator<Item = (Hint, bool, Annotations)> {
    let all = [
        (Hint::Destructive, true),
        (Hint::Destructive, false),
        (Hint::ReadOnly, true),
        (Hint::ReadOnly, false),
        (Hint::Idempotent, true),
        (Hint::OpenWorld, true),
        (Hint::Unknown, !annotations.is_unlisted),
    ];
    let other = all.into_iter().map(move |(hint, value)| {
        // A hint comes with a list.
        let listed = Annotations { is_unlisted: false, ..annotations };
        (hint, value, hint.set(listed, value))
    });
    other.filter(move |(_, _, other)| *other != annotations)
}
