//! What a tool does: read, write, delete, execute or administer.
//!
//! An override comes first, then the name: its words are held against a table of verbs (`verbs.rs`),
//! and a name without a known verb writes. The server's own annotations raise a read to a write and
//! change nothing else, so that a call before the first list is judged as one after it, that step aside.

mod compound;
mod lexicon;
mod name;
mod reason;
pub mod reference;
mod substring;
mod verbs;
mod words;

use std::fmt;
use std::str::FromStr;

use mcp_filter::Glob;
use mcp_wire::fold::skeleton;

pub use reason::Reason;

/// Ordered by how much it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Read,
    Write,
    Delete,
    Execute,
    Admin,
}

impl Operation {
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Delete, Self::Execute, Self::Admin];

    /// As rules and filters spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Execute => "execute",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such operation; it is one of read, write, delete, execute, admin")]
pub struct UnknownOperation;

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(text: &str) -> Result<Self, UnknownOperation> {
        Self::ALL.into_iter().find(|operation| operation.name() == text).ok_or(UnknownOperation)
    }
}

/// What the server says of its tool, where it says anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
    /// No list has named the tool yet.
    pub is_unlisted: bool,
}

impl Annotations {
    /// Of a tool that no list has named yet.
    pub const UNLISTED: Self =
        Self { read_only: None, destructive: None, idempotent: None, open_world: None, is_unlisted: true };

    /// As filters ask for one.
    pub fn hint(self, name: &str) -> Option<bool> {
        match name {
            "unknown" => Some(self.is_unlisted),
            "readonly" => self.read_only,
            "destructive" => self.destructive,
            "idempotent" => self.idempotent,
            "openworld" => self.open_world,
            _ => None,
        }
    }

    /// The hint that raises a read to a write. An absent hint says nothing: the protocol's own default would
    /// make every tool destructive.
    fn raises(self) -> Option<(&'static str, bool)> {
        match self {
            Self { destructive: Some(true), .. } => Some(("destructiveHint", true)),
            Self { read_only: Some(false), .. } => Some(("readOnlyHint", false)),
            _ => None,
        }
    }
}

/// The operation of a tool, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    pub operation: Operation,
    pub reason: Reason,
}

impl fmt::Display for Classified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.reason)
    }
}

/// How a name tells what its tool does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By its whole words, see `verbs.rs`.
    #[default]
    Words,
    /// By any part of it, see `substring.rs`.
    Substring,
}

impl Mode {
    pub const ALL: [Self; 2] = [Self::Words, Self::Substring];

    /// As rules files spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Substring => "substring",
        }
    }
}

/// Tells what tools do. Without overrides it knows only names and annotations.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    overrides: Vec<Override>,
    mode: Mode,
}

#[derive(Clone, Debug)]
struct Override {
    pattern: String,
    glob: Glob,
    /// The same for names in another spelling, which a server may take for those.
    folded: Glob,
    operation: Operation,
}

impl Classifier {
    /// With what the user said of tools: names, where `*` is any text. The first that matches counts.
    pub fn new(overrides: impl IntoIterator<Item = (String, Operation)>) -> Self {
        let overrides = overrides.into_iter().map(|(pattern, operation)| {
            let (glob, folded) = (Glob::new(&pattern), Glob::new(&skeleton(&pattern)));
            Override { pattern, glob, folded, operation }
        });
        Self { overrides: overrides.collect(), mode: Mode::default() }
    }

    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The time that it takes grows with the name and the overrides. It is the same every time, so
    /// callers may keep it.
    pub fn classify(&self, tool: &str, annotations: Annotations) -> Classified {
        if let Some(said) = self.overrides.iter().find(|said| said.glob.matches(tool)) {
            return Classified {
                operation: said.operation,
                reason: Reason::Override { pattern: said.pattern.clone() },
            };
        }
        let (named, reason) = self.spelled_otherwise(tool, self.named(tool));
        match annotations.raises() {
            Some((hint, value)) if named == Operation::Read => {
                Classified { operation: Operation::Write, reason: Reason::Annotation { hint, value, named } }
            }
            _ => Classified { operation: named, reason },
        }
    }

    /// What the name alone tells.
    fn named(&self, tool: &str) -> (Operation, Reason) {
        match self.mode {
            Mode::Words => name::judge(tool),
            Mode::Substring => substring::judge(tool),
        }
    }

    /// What the user said of a tool counts in any spelling of its name, where it makes the tool no
    /// less dangerous.
    fn spelled_otherwise(&self, tool: &str, named: (Operation, Reason)) -> (Operation, Reason) {
        if self.overrides.is_empty() {
            return named;
        }
        let form = skeleton(tool);
        match self.overrides.iter().find(|said| said.folded.matches(&form)) {
            Some(said) if said.operation == Operation::Delete || said.operation > named.0 => {
                (said.operation, Reason::Override { pattern: said.pattern.clone() })
            }
            _ => named,
        }
    }
}

#[cfg(test)]
mod tests;
