//! The rules of a governed proxy, whichever file they were written in. In order; the first that matches
//! a message decides about it.

use std::sync::Arc;
use std::time::Duration;

use mcp_filter::Filter;

use super::operation::Classifier;

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
    pub verdict: RuleVerdict,
    /// What whoever is denied is told, and whoever is asked.
    pub message: Option<Arc<str>>,
    /// How long a question waits for an answer.
    pub timeout: Option<Duration>,
    /// What counts if somebody was there and did not answer in time.
    pub on_timeout: Permission,
}

/// What a rule says of what it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleVerdict {
    Allow,
    Deny,
    /// Somebody decides.
    Ask,
    /// It is noted that the rule matches, and the rules after it decide.
    Observe,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Permission {
    #[default]
    Allow,
    Deny,
}

/// What a denied caller gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denial {
    #[default]
    Error,
    /// A result of the tool that says it failed, for clients that show errors to nobody.
    Result,
}

impl RuleVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Observe => "observe",
        }
    }
}

impl Permission {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}
