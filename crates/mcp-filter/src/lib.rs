//! The one filter language. The same expression narrows a list, holds messages, matches rules and
//! selects what is exported or replayed. An expression is parsed, checked and compiled once; judging
//! a message by it looks no further into the message than the expression does.
//!
//! `syntax` is the tree of what was written, `fields` the table of what can be asked, `compile` turns
//! the first into tests by the second, and `judge` holds them against a [`Subject`].

#[cfg(any(test, feature = "checks"))]
pub mod checks;
mod clue;
mod compile;
mod error;
mod fields;
mod glob;
mod judge;
mod numbers;
mod parse;
mod path;
pub mod reference;
mod subject;
mod syntax;

use std::fmt;
use std::str::FromStr;

pub use clue::Clue;
pub use error::FilterError;
pub use fields::{FIELDS, Field, Values};
pub use glob::Glob;
pub use subject::{Subject, Way};

/// An expression longer than this is not read. Lists of names fit; what is longer was not written by
/// a person.
pub const EXPRESSION_BYTES_MAX: usize = 16 * 1024;
/// Parentheses and negations inside each other.
pub const NESTING_MAX: usize = 64;
/// Regular expressions and searched words in one expression; each may take [`REGEX_BYTES_MAX`].
pub const REGEXES_MAX: usize = 32;
/// What one regular expression may compile to, and what its search may cache.
pub const REGEX_BYTES_MAX: usize = 1024 * 1024;

/// An expression that can judge messages. Prints as an expression that means the same.
#[derive(Clone, Debug)]
pub struct Filter {
    written: syntax::Expr,
    test: compile::Node,
    needs: Needs,
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
        let (test, needs) = compile::compile(&written).map_err(fault)?;
        let clue = Clue::of(&test);
        Ok(Self { written, test, needs, clue })
    }

    pub fn matches(&self, subject: &(impl Subject + ?Sized)) -> bool {
        judge::holds(&self.test, subject)
    }

    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// What a message must have in it to match, if that can be told.
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
