//! What was written, as a tree. It prints as an expression that parses to the same tree.

use std::fmt;
use std::ops::Range;

use mcp_wire::Direction;

use crate::path::Path;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// Nothing was asked.
    Everything,
    /// Two or more, of which one must hold.
    Or(Vec<Expr>),
    /// Two or more, which must all hold.
    And(Vec<Expr>),
    Not(Box<Expr>),
    /// A leading `>` or `<`.
    Direction(Direction),
    /// A word or a quoted text, wherever it may stand.
    Search(Value),
    Regex(Regex),
    /// `field op values`; for `header.NAME` with the name.
    Test {
        field: Word,
        part: Option<Word>,
        op: Op,
        values: Vec<Value>,
    },
    /// `header.NAME` alone.
    HasHeader(Word),
    /// `$.path`, alone or compared.
    Path {
        path: Path,
        place: Place,
        test: Option<(Op, Vec<Value>)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Has,
    Equal,
    NotEqual,
    Like,
    Begins,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Op {
    /// Longer spellings first, so that the first that fits is the right one.
    pub(crate) const ALL: [(&'static str, Self); 9] = [
        ("!=", Self::NotEqual),
        ("^=", Self::Begins),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        (":", Self::Has),
        ("=", Self::Equal),
        ("~", Self::Like),
        ("<", Self::Less),
        (">", Self::Greater),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, op)| *op == self).map_or("", |(text, _)| text)
    }

    pub(crate) fn takes_list(self) -> bool {
        matches!(self, Self::Has | Self::Equal | Self::NotEqual)
    }
}

/// Where something stands in the expression. It does not count when trees are compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place(pub Range<usize>);

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Word {
    pub text: String,
    pub place: Place,
}

/// A value as it was meant; in quotes it stands for itself, and `*` in it is a star.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub text: String,
    pub quoted: bool,
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Regex {
    /// Without the slashes, and with `\/` as it was written.
    pub pattern: String,
    pub ignore_case: bool,
    pub place: Place,
}

impl Expr {
    /// Adds the names of members that paths lead through.
    pub(crate) fn path_keys<'a>(&'a self, keys: &mut Vec<&'a str>) {
        match self {
            Self::Or(parts) | Self::And(parts) => parts.iter().for_each(|part| part.path_keys(keys)),
            Self::Not(inner) => inner.path_keys(keys),
            Self::Path { path, .. } => keys.extend(path.members()),
            _ => {}
        }
    }

    /// Adds the fields that are asked for, and where.
    pub(crate) fn fields<'a>(&'a self, fields: &mut Vec<(&'a str, Range<usize>)>) {
        match self {
            Self::Or(parts) | Self::And(parts) => parts.iter().for_each(|part| part.fields(fields)),
            Self::Not(inner) => inner.fields(fields),
            Self::Test { field, .. } => fields.push((&field.text, field.place.0.clone())),
            _ => {}
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => Ok(()),
            Self::Or(parts) => joined(f, parts, " or ", |part| matches!(part, Self::Or(_))),
            Self::And(parts) => joined(f, parts, " and ", |part| matches!(part, Self::Or(_) | Self::And(_))),
            Self::Not(inner) if matches!(**inner, Self::Or(_) | Self::And(_)) => write!(f, "not ({inner})"),
            Self::Not(inner) => write!(f, "not {inner}"),
            Self::Direction(Direction::ClientToServer) => f.write_str(">"),
            Self::Direction(Direction::ServerToClient) => f.write_str("<"),
            Self::Search(value) => value.fmt(f),
            Self::Regex(Regex { pattern, ignore_case, .. }) => {
                write!(f, "/{pattern}/{}", if *ignore_case { "i" } else { "" })
            }
            Self::Test { field, part, op, values } => {
                f.write_str(&field.text)?;
                if let Some(part) = part {
                    write!(f, ".{}", part.text)?;
                }
                compared(f, *op, values)
            }
            Self::HasHeader(name) => write!(f, "header.{}", name.text),
            Self::Path { path, test, .. } => {
                path.fmt(f)?;
                match test {
                    Some((op, values)) => compared(f, *op, values),
                    None => Ok(()),
                }
            }
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, parts: &[Expr], word: &str, is_closed: fn(&Expr) -> bool) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(word)?;
        }
        if is_closed(part) { write!(f, "({part})")? } else { write!(f, "{part}")? }
    }
    Ok(())
}

fn compared(f: &mut fmt::Formatter<'_>, op: Op, values: &[Value]) -> fmt::Result {
    f.write_str(op.as_str())?;
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write!(f, "{value}")?;
    }
    Ok(())
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quoted { quoted(f, &self.text) } else { f.write_str(&self.text) }
    }
}

/// Text in quotes, as the parser takes it.
pub(crate) fn quoted(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
