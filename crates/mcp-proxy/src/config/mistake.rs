//! What is wrong with a file, and where: each mistake is shown with its line and a caret under the
//! place, and with what was probably meant.

use std::ops::Range;

use mcp_filter::nearest;
use mcp_store::redact::Redactor;
use mcp_wire::visible::visible;

use super::source::Source;

/// Mistakes that are kept and shown; past a screen of them a person fixes the first.
const KEPT_MAX: usize = 1_000;
const SHOWN_MAX: usize = 20;
/// Columns of a line shown before and after a mistake: together they fit a terminal.
const SHOWN_BEFORE: usize = 60;
const SHOWN_AFTER: usize = 40;
/// Characters quoted of a value in an error: a line has room for them.
const QUOTED_MAX: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The bytes of the text that are at fault; may be empty.
    span: Range<usize>,
    what: String,
    help: Option<String>,
    /// Where the other one is, of two that do not go together.
    other: Option<usize>,
}

impl Mistake {
    pub fn at(span: Range<usize>, what: impl Into<String>) -> Self {
        Self { span, what: what.into(), help: None, other: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says after its help, such as "the first is", on which line the other one is.
    pub fn other(self, help: &str, at: usize) -> Self {
        Self { other: Some(at), ..self.help(help) }
    }

    /// Suggests what was probably meant, or else everything that could be.
    pub fn meant(self, written: &str, choices: &[&str]) -> Self {
        match nearest(written, choices.iter().copied()) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => match choices {
                [only] => self.help(format!("there is only `{only}`")),
                _ => self.help(format!("it is one of {}", choices.join(", "))),
            },
        }
    }
}

/// Everything that is wrong with a file.
#[derive(Debug, Default)]
pub struct Mistakes {
    found: Vec<Mistake>,
    left_out: usize,
}

impl Mistakes {
    pub fn add(&mut self, mistake: Mistake) {
        if self.found.len() < KEPT_MAX {
            self.found.push(mistake);
        } else {
            self.left_out += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// For people, in the order of the file.
    pub fn shown(mut self, source: &Source) -> String {
        self.found.sort_by_key(|mistake| mistake.span.start);
        let mut shown: Vec<String> = self.found.iter().take(SHOWN_MAX).map(|mistake| show(mistake, source)).collect();
        match self.found.len().saturating_sub(SHOWN_MAX) + self.left_out {
            0 => {}
            1 => shown.push("and one more".into()),
            more => shown.push(format!("and {more} more")),
        }
        shown.join("\n\n")
    }
}

impl Extend<Mistake> for Mistakes {
    fn extend<T: IntoIterator<Item = Mistake>>(&mut self, mistakes: T) {
        mistakes.into_iter().for_each(|mistake| self.add(mistake));
    }
}

/// Something that was written, as it is quoted: cut, and not if it seems to be a secret. Somebody may
/// have given us the wrong file.
pub(crate) fn said(written: &str) -> String {
    if has_secret(written) {
        return "what is there (it seems to be a secret)".into();
    }
    match written.char_indices().nth(QUOTED_MAX) {
        Some((cut, _)) => format!("`{}…`", visible(&written[..cut])),
        None => format!("`{}`", visible(written)),
    }
}

fn has_secret(text: &str) -> bool {
    let mut redactor = Redactor::default();
    drop(redactor.text(text));
    redactor.masked() > 0
}

/// ```text
/// rules.toml:7:11: no such verdict `dney`
///   │ verdict = "dney"
///   │           ^^^^^^ did you mean `deny`?
/// ```
fn show(Mistake { span, what, help, other }: &Mistake, source: &Source) -> String {
    let text = source.text();
    let at = floor(text, span.start);
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let line_number = |at: usize| text[..at].matches('\n').count() + 1;
    let (number, column) = (line_number(at), text[line_start..at].chars().count() + 1);
    let mut shown = format!("{}:{number}:{column}: {what}", source.shown());
    let other = other.map(|at| format!(" on line {}", line_number(floor(text, at)))).unwrap_or_default();
    let help = help.as_ref().map(|help| format!(" {}{other}", visible(help))).unwrap_or_default();
    if has_secret(line) {
        shown.push_str("\n  │ (this line seems to have a secret in it, so it is not shown)");
        return if help.is_empty() { shown } else { format!("{shown}\n  │{help}") };
    }
    let start = (at - line_start).min(line.len());
    let end = floor(line, span.end.saturating_sub(line_start).max(start));
    let (before, is_cut) = last_columns(&line[..start]);
    let before = format!("{}{}", if is_cut { "…" } else { "" }, one_line(before));
    let (at_fault, is_long) = first_columns(&line[start..end]);
    let at_fault = format!("{}{}", one_line(at_fault), if is_long { "…" } else { "" });
    let after = if is_long { String::new() } else { rest_of(&line[end..]) };
    let (indent, carets) = (before.chars().count(), at_fault.chars().count().max(1));
    shown.push_str(&format!("\n  │ {before}{at_fault}{after}\n  │ {:indent$}{}{help}", "", "^".repeat(carets)));
    shown
}

fn rest_of(line: &str) -> String {
    let (after, is_cut) = first_columns(line);
    format!("{}{}", one_line(after), if is_cut { "…" } else { "" })
}

/// A tab is as wide as the caret thinks it is.
fn one_line(text: &str) -> String {
    visible(&text.replace('\t', " ")).to_string()
}

fn last_columns(text: &str) -> (&str, bool) {
    let from = text.char_indices().rev().nth(SHOWN_BEFORE - 1).map_or(0, |(at, _)| at);
    (&text[from..], from > 0)
}

fn first_columns(text: &str) -> (&str, bool) {
    let to = text.char_indices().nth(SHOWN_AFTER).map_or(text.len(), |(at, _)| at);
    (&text[..to], to < text.len())
}

/// The nearest beginning of a letter, at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}
