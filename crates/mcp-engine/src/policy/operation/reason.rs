//! Why a tool has its operation, in words for whoever asks.

use std::fmt;

use mcp_wire::visible::visible;

use super::Operation;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user said so.
    Override { pattern: String },
    /// The server's own description of the tool says more than its name, which stands for `named`.
    Annotation { hint: &'static str, value: bool, named: Operation },
    /// A verb in the name; `word` is the form that it has there.
    Verb { word: String, verb: &'static str },
    /// A verb for which it counts what it is done to: rights, who has them, what takes statements.
    About { word: String, object: String },
    /// No verb, but a word for something that is shown.
    Shows { word: String },
    /// No verb, but a word for something that runs what it is given.
    Runs { word: String },
    /// The mode `substring`: a word of its tables is a part of the name.
    Contains { part: &'static str },
    /// The mode `substring`: no word of its tables is a part of the name.
    ContainsNone,
    /// It would read by its name, but that has letters that are not what they look like.
    Disguised,
    /// No word that we know.
    Unknown,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Override { pattern } => write!(f, "set for `{}`", visible(pattern)),
            Self::Annotation { hint, value, named } => {
                write!(f, "the server says `{hint}: {value}`; the name alone would be {named}")
            }
            Self::Verb { word, verb } if word == verb => write!(f, "verb `{verb}`"),
            Self::Verb { word, verb } => write!(f, "`{}`, a form of `{verb}`", visible(word)),
            Self::About { word, object } => write!(f, "`{}` done to `{}`", visible(word), visible(object)),
            Self::Shows { word } => write!(f, "no verb, and `{}` is something to look at", visible(word)),
            Self::Runs { word } => write!(f, "no verb, and `{}` runs what it is given", visible(word)),
            Self::Contains { part } => write!(f, "`{part}` in the name, by `classify = \"substring\"`"),
            Self::ContainsNone => f.write_str("no known word in the name, by `classify = \"substring\"`"),
            Self::Disguised => f.write_str("the name has letters other than plain ones, and is not trusted to read"),
            Self::Unknown => f.write_str("no known verb in the name"),
        }
    }
}
