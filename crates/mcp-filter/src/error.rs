//! What is wrong with an expression, and where: the fault is underlined, and what was meant is
//! suggested where that can be told.

use std::fmt;
use std::ops::Range;

use mcp_wire::visible::visible;

/// Columns of the expression shown before and after a fault: together they fit a terminal.
const SHOWN_BEFORE: usize = 60;
const SHOWN_AFTER: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    what: String,
    help: Option<String>,
    expression: String,
    /// The bytes of the expression that are at fault; may be empty, at the end.
    span: Range<usize>,
}

impl std::error::Error for FilterError {}

impl FilterError {
    /// In one line, without the expression.
    pub fn what(&self) -> &str {
        &self.what
    }

    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

/// A fault before the whole expression is at hand.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub what: String,
    pub help: Option<String>,
    pub span: Range<usize>,
}

impl Fault {
    pub(crate) fn at(span: Range<usize>, what: impl Into<String>) -> Self {
        Self { what: what.into(), help: None, span }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Suggests the candidate that was probably meant, if one is near.
    pub(crate) fn meant<'a>(self, written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(written, candidates) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    pub(crate) fn or_help(self, help: impl FnOnce() -> String) -> Self {
        if self.help.is_some() { self } else { self.help(help()) }
    }

    pub(crate) fn within(self, expression: &str) -> FilterError {
        let end = self.span.end.min(expression.len());
        let span = self.span.start.min(end)..end;
        FilterError { what: self.what, help: self.help, expression: expression.to_owned(), span }
    }
}

impl fmt::Display for FilterError {
    /// ```text
    /// unknown filter field `tol`
    ///   │ tol:search dur>1s
    ///   │ ^^^ did you mean `tool`?
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.span;
        let (before, cut_before) = last_columns(&self.expression[..start]);
        let (after, cut_after) = first_columns(&self.expression[end..]);
        let (at_fault, cut_within) = first_columns(&self.expression[start..end]);
        let mark = |cut: bool| if cut { "…" } else { "" };
        let before = format!("{}{}", mark(cut_before), visible(before));
        let at_fault = format!("{}{}", visible(at_fault), mark(cut_within));
        let after = if cut_within { String::new() } else { format!("{}{}", visible(after), mark(cut_after)) };
        writeln!(f, "{}", visible(&self.what))?;
        writeln!(f, "  │ {before}{at_fault}{after}")?;
        let (indent, carets) = (columns(&before), columns(&at_fault).max(1));
        write!(f, "  │ {:indent$}{}", "", "^".repeat(carets))?;
        match &self.help {
            Some(help) => write!(f, " {}", visible(help)),
            None => Ok(()),
        }
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

fn last_columns(text: &str) -> (&str, bool) {
    let from = text.char_indices().rev().nth(SHOWN_BEFORE - 1).map_or(0, |(at, _)| at);
    (&text[from..], from > 0)
}

fn first_columns(text: &str) -> (&str, bool) {
    let to = text.char_indices().nth(SHOWN_AFTER).map_or(text.len(), |(at, _)| at);
    (&text[..to], to < text.len())
}

/// The candidate that differs least, if it does not differ too much to have been meant.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Characters of a mistyped word that are compared with the known ones, which are shorter.
    const LENGTH_MAX: usize = 32;
    let written: Vec<char> = written.to_lowercase().chars().take(LENGTH_MAX).collect();
    let far = |candidate: &&str| (distance(&written, &candidate.chars().collect::<Vec<_>>()), candidate.len());
    let near = candidates.into_iter().min_by_key(far)?;
    let allowed = (near.chars().count().max(written.len()) / 3).max(1);
    (far(&near).0 <= allowed && !written.is_empty()).then_some(near)
}

/// How many letters must be changed, added, left out, or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}
