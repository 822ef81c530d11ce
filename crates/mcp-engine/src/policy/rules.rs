//! The rules of a governed proxy, whichever file they were written in. In order; the first that matches
//! a message decides about it.

use std::sync::Arc;
use std::time::Duration;

use mcp_filter::Filter;

use super::operation::Classifier;

pub use mcp_wire::{Permission, VerdictKind};

/// Everything that a rules file says. Never changed: a new file is another one of these.
#[derive(Debug)]
pub struct Rules {
    pub rules: Vec<Rule>,
    /// What is decided about a message that no rule matches.
    pub default: Permission,
    pub classifier: Classifier,
    /// Lists leave out what would be denied whatever its arguments, and calls of it are answered as calls
    /// of something that is not there.
    pub hide_denied: bool,
    pub denial: Denial,
    /// A call whose decision cannot be written down does not go on.
    pub audit_required: bool,
    /// What the server is called in rules and records, if the file or the command line names it.
    pub server: Option<Arc<str>>,
    /// Which text these were read from: the beginning of its hash.
    pub version: Arc<str>,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub name: Arc<str>,
    pub filter: Filter,
    pub verdict: VerdictKind,
    /// What whoever is denied is told, and whoever is asked.
    pub message: Option<Arc<str>>,
    /// How long a question waits for an answer.
    pub timeout: Option<Duration>,
    /// What counts if somebody was there and did not answer in time.
    pub on_timeout: Permission,
}

/// What a denied caller gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denial {
    #[default]
    Error,
    /// A result of the tool that says it failed, for clients that show errors to nobody.
    Result,
}
