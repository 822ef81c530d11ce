//! Where something stands in a JSON text, and patterns for such places: a small part of JSONPath.

use std::fmt;

use mcp_wire::scan::{self, Span};

/// A place in a JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Member(String),
    Item(usize),
}

impl Path {
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    pub fn push(&mut self, step: Step) {
        self.0.push(step);
    }

    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// The same place in any item of its lists.
    pub fn in_any_item(&self) -> Pattern {
        let wide = |step: &Step| match step {
            Step::Member(name) => Part::Member(name.clone()),
            Step::Item(_) => Part::Any,
        };
        Pattern(self.0.iter().map(wide).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.0.iter().try_for_each(|step| match step {
            Step::Member(name) => write_member(f, name),
            Step::Item(at) => write!(f, "[{at}]"),
        })
    }
}

/// Places that are alike: `$.result.content[*].text`, `$..createdAt`, `$.result['a b'][0]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Member(String),
    Item(usize),
    /// Every member or item.
    Any,
    /// However far below.
    Below,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at column {column}")]
pub struct PatternError {
    pub what: &'static str,
    /// Counted in characters, from 1.
    pub column: usize,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        Parser { text, at: 0 }.pattern()
    }

    /// Whether `path` or something it lies in is meant.
    pub fn covers(&self, path: &Path) -> bool {
        covers(&self.0, path.steps())
    }

    /// Where in `value` this pattern leads, outermost first.
    pub fn find(&self, value: &[u8]) -> Vec<Span> {
        let mut found = Vec::new();
        let start = value.len() - value.trim_ascii_start().len();
        let end = start + value.trim_ascii().len();
        if start < end {
            find(&self.0, value, Span::new(start..end), 0, &mut found);
        }
        found.sort_by_key(|span: &Span| span.range().start);
        found.dedup();
        found
    }

    /// The objects in `value` that lack the member which the pattern ends with, outermost first, and its
    /// name. `None` if it ends otherwise, or names no one place to put it.
    pub fn find_lacking(&self, value: &[u8]) -> Option<(Vec<Span>, &str)> {
        let (Part::Member(name), above) = self.0.split_last()? else { return None };
        if above.contains(&Part::Below) {
            return None;
        }
        let mut homes = Self(above.to_vec()).find(value);
        homes.retain(|home| {
            let inner = &value[home.range()];
            inner.starts_with(b"{") && scan::object_members(inner).all(|(key, _)| key != *name)
        });
        Some((homes, name))
    }
}

fn covers(parts: &[Part], steps: &[Step]) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    if *part == Part::Below {
        return (0..=steps.len()).any(|from| covers(rest, &steps[from..]));
    }
    let Some((step, below)) = steps.split_first() else { return false };
    part.fits(step) && covers(rest, below)
}

fn find(parts: &[Part], value: &[u8], at: Span, depth: usize, found: &mut Vec<Span>) {
    let Some((part, rest)) = parts.split_first() else { return found.push(at) };
    if depth > scan::DEPTH_MAX {
        return;
    }
    if *part == Part::Below {
        find(rest, value, at, depth, found);
    }
    for (step, span) in children(value, at) {
        match part {
            Part::Below => find(parts, value, span, depth + 1, found),
            part if part.fits(&step) => find(rest, value, span, depth + 1, found),
            _ => {}
        }
    }
}

fn children(value: &[u8], at: Span) -> Vec<(Step, Span)> {
    let (start, inner) = (at.range().start, &value[at.range()]);
    match inner.first() {
        Some(b'{') => scan::object_members(inner)
            .map(|(key, span)| (Step::Member(key.into_owned()), span.shifted(start)))
            .collect(),
        Some(b'[') => {
            scan::batch_items(inner).enumerate().map(|(at, span)| (Step::Item(at), span.shifted(start))).collect()
        }
        _ => Vec::new(),
    }
}

impl Part {
    fn fits(&self, step: &Step) -> bool {
        match (self, step) {
            (Self::Any, _) => true,
            (Self::Member(name), Step::Member(other)) => name == other,
            (Self::Item(at), Step::Item(other)) => at == other,
            _ => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        let mut after_below = false;
        for part in &self.0 {
            match part {
                Part::Member(name) if after_below && is_plain(name) => f.write_str(name)?,
                Part::Member(name) => write_member(f, name)?,
                Part::Item(at) => write!(f, "[{at}]")?,
                Part::Any => f.write_str("[*]")?,
                Part::Below => f.write_str("..")?,
            }
            after_below = *part == Part::Below;
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

fn write_member(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    if is_plain(name) {
        return write!(f, ".{name}");
    }
    write!(f, "['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn pattern(mut self) -> Result<Pattern, PatternError> {
        if !self.take("$") {
            return self.fail("a path begins with `$`");
        }
        let mut parts = Vec::new();
        while self.at < self.text.len() {
            self.part(&mut parts)?;
        }
        if parts.last() == Some(&Part::Below) {
            return self.fail("`..` needs a name after it");
        }
        Ok(Pattern(parts))
    }

    fn part(&mut self, parts: &mut Vec<Part>) -> Result<(), PatternError> {
        if self.take("..") {
            parts.push(Part::Below);
            if !self.rest().starts_with('[') {
                parts.push(self.name()?);
            }
        } else if self.take(".") {
            parts.push(self.name()?);
        } else if self.take("[") {
            parts.push(self.bracket()?);
        } else {
            return self.fail("expected `.name`, `[0]`, `[*]` or `['name']`");
        }
        Ok(())
    }

    fn name(&mut self) -> Result<Part, PatternError> {
        if self.take("*") {
            return Ok(Part::Any);
        }
        let rest = self.rest();
        let end = rest.find(['.', '[', ']', '*', '\'', '"', ' ', '=']).unwrap_or(rest.len());
        if end == 0 {
            return self.fail("expected a name");
        }
        self.at += end;
        Ok(Part::Member(rest[..end].to_owned()))
    }

    fn bracket(&mut self) -> Result<Part, PatternError> {
        let part = match self.rest().chars().next() {
            Some('*') => {
                self.at += 1;
                Part::Any
            }
            Some(quote @ ('\'' | '"')) => {
                self.at += 1;
                Part::Member(self.quoted(quote)?)
            }
            _ => self.index()?,
        };
        if !self.take("]") {
            return self.fail("expected `]`");
        }
        Ok(part)
    }

    fn index(&mut self) -> Result<Part, PatternError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(at) = rest[..end].parse() else { return self.fail("expected a number, `*` or a quoted name") };
        self.at += end;
        Ok(Part::Item(at))
    }

    fn quoted(&mut self, quote: char) -> Result<String, PatternError> {
        let mut name = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, c)| c)),
                c if c == quote => {
                    self.at += at + c.len_utf8();
                    return Ok(name);
                }
                c => name.push(c),
            }
        }
        self.fail("the quote is not closed")
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let is_there = self.rest().starts_with(token);
        self.at += if is_there { token.len() } else { 0 };
        is_there
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, PatternError> {
        Err(PatternError { what, column: self.text[..self.at].chars().count() + 1 })
    }
}

/// Splits `$.path=value` at the sign that ends the path.
pub fn split_assignment(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '=') => return Some((&text[..at], &text[at + 1..])),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}
