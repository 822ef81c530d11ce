//! What people see when something cannot be done: what happened, the evidence, one next step.

use std::error::Error;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mcp_filter::FilterError;
use mcp_store::StoreError;

/// The exit codes, everywhere.
pub(crate) mod exit {
    /// The command's own negative answer.
    pub(crate) const NEGATIVE: u8 = 1;
    /// Wrong usage or configuration.
    pub(crate) const USAGE: u8 = 2;
    /// It could not run: target missing, store unusable.
    pub(crate) const CANNOT_RUN: u8 = 3;
    pub(crate) const INTERRUPTED: u8 = 130;
}

#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    what: String,
    evidence: Option<String>,
    hint: Option<String>,
    answer: Option<String>,
    broken_pipe: bool,
}

impl Failure {
    pub fn new(code: u8, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), evidence: None, hint: None, answer: None, broken_pipe: false }
    }

    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(exit::USAGE, what)
    }

    /// Lines that show why, such as the server's last words.
    pub fn evidence(mut self, label: &str, text: &str) -> Self {
        if !text.is_empty() {
            self.evidence = Some(format!("{label}:\n{}", indent(text)));
        }
        self
    }

    /// Says after what happened why it did.
    pub fn because(mut self, why: &str) -> Self {
        self.what = format!("{}: {why}", self.what);
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The error of the protocol that it comes from, as JSON, for scripts.
    pub fn with_answer(mut self, json: String) -> Self {
        self.answer = Some(json);
        self
    }

    pub fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    /// What happened, without the word "error" and without advice.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The one next step.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whoever read the output has seen enough, as in `… | head`.
    pub fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    /// An error with everything that led to it, on one line.
    pub fn caused_by(code: u8, error: &(dyn Error + 'static)) -> Self {
        let mut what = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            what.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self::new(code, what)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        if let Some(evidence) = &self.evidence {
            write!(f, "\n\n{evidence}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let failure = Self::caused_by(exit::CANNOT_RUN, &error);
        match error {
            StoreError::NoneRecorded => Self { code: exit::USAGE, ..failure }
                .hint("`mcp-proxy run -- CMD` records one, as does `mcp-proxy demo`"),
            StoreError::Unknown { .. } => {
                Self { code: exit::USAGE, ..failure }.hint("`mcp-proxy sessions list` shows what there is")
            }
            StoreError::Ambiguous { .. } => Self { code: exit::USAGE, ..failure }
                .hint("give more of the id; `mcp-proxy sessions list` shows them with their times"),
            StoreError::NotWrittenOver { .. } => {
                Self { code: exit::USAGE, ..failure }.hint("give --session-file a path of its own")
            }
            StoreError::NotASession { .. } => {
                Self { code: exit::USAGE, ..failure }.hint("give a session file, or the id of a recorded session")
            }
            StoreError::Live { .. } => {
                Self { code: exit::NEGATIVE, ..failure }.hint("end the client that uses it, then try again")
            }
            StoreError::NotPrivate { path } => failure.hint(own_directory(&path)),
            StoreError::Io { .. } | StoreError::Cache(_) => failure,
        }
    }
}

impl From<FilterError> for Failure {
    /// The error shows the expression with the fault underlined.
    fn from(error: FilterError) -> Self {
        Self::usage(error.to_string()).hint("`mcp-proxy help filter` explains the language")
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let broken_pipe = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self { broken_pipe, ..Self::caused_by(exit::CANNOT_RUN, &error) }
    }
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

/// The advice about a directory that is not private. One that is shared by its sticky bit, such as /tmp, or that
/// belongs to another user must not be closed.
pub(crate) fn own_directory(path: &Path) -> String {
    let other = "give another directory with --state-dir";
    let is_ours = path.symlink_metadata().is_ok_and(|meta| {
        meta.is_dir() && meta.mode() & 0o1000 == 0 && meta.uid() == rustix::process::geteuid().as_raw()
    });
    match is_ours {
        true => format!("{other}, or `chmod 700 {}` if it is yours", quoted(path)),
        false => other.to_owned(),
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
