//! Two messages side by side. Both are laid out line by line in their own spelling and order, and what
//! differs by nature, as times and ids, can be left out by its path.
//!
//! The work is bounded by the size of what is compared, not by a clock: the same two messages always
//! compare the same.

mod ignore;
mod layout;
mod learn;
mod words;

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

pub(crate) use learn::learn;
pub(crate) use words::Word;

use crate::text::human_size;
use ignore::Pattern;
use layout::Laid;

/// Messages with more bytes or lines are not compared line by line.
pub(crate) const BYTES_MAX: usize = 2_000_000;
pub(crate) const LINES_MAX: usize = 20_000;
/// Lines searched on the other side for the one with the same key.
const LOOK_AHEAD: usize = 64;
/// Fewer equal lines are shown rather than counted.
const FOLDED_MIN: usize = 2;

/// What two messages have in common, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    pub rows: Vec<Row>,
    /// Rows that differ.
    pub differing: usize,
    /// Rows whose values were not looked at.
    pub ignored: usize,
    /// Why there are no rows though the messages differ, or which paths could not be read. Clean.
    pub note: Option<String>,
    /// All of it is the same, but for what was ignored.
    pub is_same: bool,
}

/// One row, for both sides at once. On one column a changed row is two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Same { left: Line, right: Line, is_ignored: bool },
    Changed { left: Line, right: Line },
    Left(Line),
    Right(Line),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// From 1.
    pub number: usize,
    pub words: Vec<Word>,
}

/// What is drawn of the rows when long stretches of equal ones are folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Row(usize),
    Folded(Range<usize>),
}

/// Compares two messages, leaving out the values at these paths: `$.result.ts`, `$..*_id`, `$.list[*].at`.
pub(crate) fn diff_json(left: &str, right: &str, ignore: &[String]) -> Diff {
    let (patterns, unread): (Vec<_>, Vec<_>) =
        ignore.iter().map(|path| Pattern::parse(path).ok_or(path)).partition(Result::is_ok);
    let patterns: Vec<Pattern> = patterns.into_iter().flatten().collect();
    let unread: Vec<&String> = unread.into_iter().filter_map(Result::err).collect();
    let note = unread.first().map(|path| format!("no path: {}", crate::text::fit(path, 60, false)));
    match (layout::lay_out(left, &patterns), layout::lay_out(right, &patterns)) {
        (Some(left), Some(right)) => Diff { note, ..compare(&left, &right) },
        _ if left == right => Diff { is_same: true, ..Diff::default() },
        _ => too_large(left, right),
    }
}

impl Diff {
    /// The rows with equal ones folded, but for `context` lines around what differs. 3 is usual.
    pub(crate) fn folded(&self, context: usize) -> Vec<Shown> {
        let mut shown = Vec::new();
        let mut equal_from = 0;
        for row in 0..=self.rows.len() {
            if self.rows.get(row).is_some_and(Row::is_same) {
                continue;
            }
            fold(&mut shown, equal_from..row, context, self.rows.len());
            if row < self.rows.len() {
                shown.push(Shown::Row(row));
            }
            equal_from = row + 1;
        }
        shown
    }
}

impl Row {
    pub(crate) fn is_same(&self) -> bool {
        matches!(self, Self::Same { .. })
    }
}

/// A stretch of equal rows: its ends where something differs beyond them, the rest as one.
fn fold(shown: &mut Vec<Shown>, equal: Range<usize>, context: usize, rows: usize) {
    let start = if equal.start == 0 { 0 } else { (equal.start + context).min(equal.end) };
    let end = if equal.end == rows { rows } else { equal.end.saturating_sub(context).max(start) };
    if end - start < FOLDED_MIN {
        shown.extend(equal.map(Shown::Row));
        return;
    }
    shown.extend((equal.start..start).map(Shown::Row));
    shown.push(Shown::Folded(start..end));
    shown.extend((end..equal.end).map(Shown::Row));
}

fn too_large(left: &str, right: &str) -> Diff {
    let [left, right] = [left, right].map(|text| human_size(text.len() as u64));
    let words = format!("they differ; {left} and {right} are too large to compare line by line");
    Diff { note: Some(words), ..Diff::default() }
}

fn compare(left: &[Laid], right: &[Laid]) -> Diff {
    let mut rows = Rows { left, right, rows: Vec::with_capacity(left.len().max(right.len())) };
    let (left_ids, right_ids) = ids(left, right);
    for op in capture_diff_slices(Algorithm::Myers, &left_ids, &right_ids) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                (0..len).for_each(|at| rows.same(old_index + at, new_index + at))
            }
            op => rows.replaced(op.old_range(), op.new_range()),
        }
    }
    let rows = rows.rows;
    let differing = rows.iter().filter(|row| !row.is_same()).count();
    let ignored = rows.iter().filter(|row| matches!(row, Row::Same { is_ignored: true, .. })).count();
    Diff { rows, differing, ignored, note: None, is_same: differing == 0 }
}

/// A number for each distinct line, so that comparing two is no matter of their length.
fn ids(left: &[Laid], right: &[Laid]) -> (Vec<usize>, Vec<usize>) {
    let mut known = HashMap::new();
    let mut id = |line: &'_ Laid| {
        let next = known.len();
        *known.entry(line.compared().to_owned()).or_insert(next)
    };
    (left.iter().map(&mut id).collect(), right.iter().map(&mut id).collect())
}

struct Rows<'a> {
    left: &'a [Laid],
    right: &'a [Laid],
    rows: Vec<Row>,
}

impl Rows<'_> {
    fn same(&mut self, left: usize, right: usize) {
        let is_ignored = self.left[left].is_ignored;
        self.rows.push(Row::Same { left: whole(self.left, left), right: whole(self.right, right), is_ignored });
    }

    /// Lines in place of others. Those that have the same key are one row.
    fn replaced(&mut self, left: Range<usize>, right: Range<usize>) {
        let mut next = right.start;
        for line in left {
            let near = next..right.end.min(next + LOOK_AHEAD);
            match near.into_iter().find(|other| self.left[line].is_counterpart(&self.right[*other])) {
                Some(other) => {
                    self.only_right(next..other);
                    self.changed(line, other);
                    next = other + 1;
                }
                None => self.rows.push(Row::Left(whole(self.left, line))),
            }
        }
        self.only_right(next..right.end);
    }

    fn only_right(&mut self, lines: Range<usize>) {
        self.rows.extend(lines.map(|line| Row::Right(whole(self.right, line))));
    }

    fn changed(&mut self, left: usize, right: usize) {
        let (left_words, right_words) = words::changed(&self.left[left].text, &self.right[right].text);
        let [left, right] =
            [(left, left_words), (right, right_words)].map(|(at, words)| Line { number: at + 1, words });
        self.rows.push(Row::Changed { left, right });
    }
}

fn whole(lines: &[Laid], at: usize) -> Line {
    Line { number: at + 1, words: words::unchanged(&lines[at].text) }
}

#[cfg(test)]
mod tests;
