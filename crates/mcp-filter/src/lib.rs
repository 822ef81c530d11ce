//! The one filter language. The same expression narrows a list, holds messages, matches rules and
//! selects what is exported or replayed. An expression is parsed, checked and compiled once; judging
//! a message by it looks no further into the message than the expression does.
//!
//! `syntax` is the tree of what was written, `fields` the table of what can be asked, `compile` turns
//! the first into tests by the second, and `judge` holds them against a [`Subject`]. `foretell` says what
//! that will come to before there is a message, `spelling` which names are taken for each other, and `hinted` what rules
//! by operation lost since hints no longer make a delete of a tool.

#[cfg(any(test, feature = "checks"))]
pub mod checks;
mod clue;
mod compile;
mod error;
mod fields;
mod foretell;
mod glob;
mod hinted;
mod judge;
mod numbers;
mod parse;
mod path;
pub mod reference;
mod spelling;
mod subject;
mod syntax;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use compile::Compiled;
use spelling::Reading;

pub use clue::Clue;
pub use error::{FilterError, nearest};
pub use fields::{FIELDS, Field, Values};
pub use foretell::Certainty;
pub use glob::Glob;
pub use hinted::Hinted;
pub use spelling::Spelling;
pub use subject::Subject;

/// An expression longer than this is not read. Lists of names fit; what is longer was not written by
/// a person.
pub const EXPRESSION_BYTES_MAX: usize = 16 * 1024;
/// Parentheses and negations inside each other: the parser and the judge follow them on the stack.
pub const NESTING_MAX: usize = 64;
/// Regular expressions and searched words in one expression; each may take [`REGEX_BYTES_MAX`], and as much
/// again for names in other spellings.
pub const REGEXES_MAX: usize = 32;
/// Compiled size of one regular expression, and size of its search cache: filters come from users, messages from
/// peers.
pub const REGEX_BYTES_MAX: usize = 1024 * 1024;

/// What a list leaves out by default.
const WITHOUT_OWN: &str = "not origin:proxy";

/// An expression that can judge messages. Prints as an expression that means the same.
#[derive(Clone, Debug)]
pub struct Filter {
    written: syntax::Expr,
    test: compile::Node,
    needs: Needs,
    has_names: bool,
    has_origin: bool,
    clue: Option<Clue>,
}

/// What a filter looks at, beyond what a record says about a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// What one scan of the message finds: kind, method, tool, id.
    pub scan: bool,
    /// The bytes of the message.
    pub body: bool,
    /// The HTTP headers that it came with.
    pub headers: bool,
    /// Earlier messages: what an answer answers, and how long that took.
    pub story: bool,
}

impl Filter {
    /// Reads an expression. One without any words matches everything.
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        let fault = |fault: error::Fault| fault.within(expression);
        let written = parse::expression(expression).map_err(fault)?;
        let Compiled { test, needs, has_names, has_origin } = compile::compile(&written).map_err(fault)?;
        let clue = Clue::of(&test);
        Ok(Self { written, test, needs, has_names, has_origin, clue })
    }

    /// Reads the expression of a list, which leaves out what a gateway asks its servers of its own accord,
    /// unless the expression asks for the origin.
    pub fn of_list(expression: Option<&str>) -> Result<Self, FilterError> {
        let expression = expression.unwrap_or_default();
        let wanted = Self::parse(expression)?;
        match (wanted.has_origin, expression.trim()) {
            (true, _) => Ok(wanted),
            (false, "") => Self::parse(WITHOUT_OWN),
            // Of an expression at the limits of the language the rest is still valid.
            (false, expression) => Self::parse(&format!("({expression}) {WITHOUT_OWN}")).or(Ok(wanted)),
        }
    }

    /// Whether it asks who began an exchange.
    pub fn has_origin(&self) -> bool {
        self.has_origin
    }

    pub fn matches(&self, subject: &(impl Subject + ?Sized)) -> bool {
        judge::holds(&self.test, subject, Reading::Written)
    }

    /// The same, with names in such spellings.
    pub fn matches_in(&self, subject: &(impl Subject + ?Sized), spelling: Spelling) -> bool {
        let written = self.matches(subject);
        let folded = || judge::holds(&self.test, subject, Reading::Folded);
        match spelling {
            Spelling::Any if self.has_names => written || folded(),
            Spelling::Every if self.has_names => written && folded(),
            _ => written,
        }
    }

    /// What [`Filter::matches_in`] will say of every message that has the names of this one, goes its way
    /// and belongs to its conversation. The message itself is not looked at.
    pub fn foretell(&self, subject: &(impl Subject + ?Sized), spelling: Spelling) -> Certainty {
        let written = foretell::foretell(&self.test, subject, Reading::Written);
        let folded = || foretell::foretell(&self.test, subject, Reading::Folded);
        match spelling {
            Spelling::Any if self.has_names => written.or(folded),
            Spelling::Every if self.has_names => written.and(folded),
            _ => written,
        }
    }

    /// The names of members that its paths lead through, each once.
    pub fn path_keys(&self) -> Vec<&str> {
        let mut keys = Vec::new();
        self.written.path_keys(&mut keys);
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The fields that it asks for as they are written, and where in the expression it does.
    pub fn fields(&self) -> Vec<(&str, Range<usize>)> {
        let mut fields = Vec::new();
        self.written.fields(&mut fields);
        fields
    }

    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// What a message must have in it to match, names as they are written, if that can be told.
    pub fn clue(&self) -> Option<&Clue> {
        self.clue.as_ref()
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(expression: &str) -> Result<Self, FilterError> {
        Self::parse(expression)
    }
}

/// Two filters are the same if they were written the same, blanks and such aside.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}

#[cfg(test)]
mod tests;
