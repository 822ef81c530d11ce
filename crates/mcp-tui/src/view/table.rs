//! Lines of a list in columns.

use ratatui::text::{Line, Span};

use crate::text;
use crate::theme::{Role, Theme};

/// A column: what it is called, how wide it is, and whether it ends at its right edge, as numbers do.
#[derive(Clone, Copy)]
pub(crate) struct Column<T> {
    pub what: T,
    pub title: &'static str,
    pub cells: usize,
    pub is_number: bool,
}

impl<T> Column<T> {
    pub(crate) fn text(what: T, title: &'static str, cells: usize) -> Self {
        Self { what, title, cells, is_number: false }
    }

    pub(crate) fn number(what: T, title: &'static str, cells: usize) -> Self {
        Self { what, title, cells, is_number: true }
    }
}

/// The columns that there is room for: those that come first in `by_weight` are the last to go. What is
/// left over goes to those that have `grows`.
pub(crate) fn fitted<T: Copy + PartialEq>(
    columns: &[Column<T>],
    by_weight: &[T],
    grows: &[T],
    room: usize,
) -> Vec<Column<T>> {
    let mut shown: Vec<Column<T>> = columns.to_vec();
    let wide = |shown: &[Column<T>]| shown.iter().map(|column| column.cells + 1).sum::<usize>();
    for what in by_weight.iter().rev() {
        if wide(&shown) <= room || shown.len() == 1 {
            break;
        }
        shown.retain(|column| column.what != *what);
    }
    let spare = room.saturating_sub(wide(&shown));
    let growing = shown.iter().filter(|column| grows.contains(&column.what)).count();
    for column in shown.iter_mut().filter(|column| grows.contains(&column.what)) {
        column.cells += spare / growing.max(1);
    }
    shown
}

pub(crate) fn head<T: Copy>(columns: &[Column<T>], theme: &Theme) -> Line<'static> {
    let cells = columns.iter().map(|column| cell(column, column.title, theme));
    Line::styled(cells.collect::<Vec<_>>().join(" "), theme.style(Role::Faint))
}

pub(crate) fn line<T: Copy>(
    columns: &[Column<T>],
    theme: &Theme,
    value: impl Fn(T) -> (String, Role),
) -> Line<'static> {
    let mut spans = Vec::with_capacity(columns.len() * 2);
    for column in columns {
        let (text, role) = value(column.what);
        spans.push(Span::styled(cell(column, &text, theme), theme.style(role)));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn cell<T>(column: &Column<T>, text: &str, theme: &Theme) -> String {
    let text = text::fit(text, column.cells, theme.ascii);
    match column.is_number {
        true => format!("{}{text}", " ".repeat(column.cells.saturating_sub(text::width(&text)))),
        false => text::pad(&text, column.cells),
    }
}

/// `11-15 14:02:11`, or with the year and without the seconds; in UTC. Blank if it is no time.
pub(crate) fn day_and_time(rfc3339: &str, has_year: bool) -> String {
    let form = if has_year { "%Y-%m-%d %H:%M" } else { "%m-%d %H:%M:%S" };
    let time = rfc3339.parse::<jiff::Timestamp>();
    time.map(|time| time.strftime(form).to_string()).unwrap_or_default()
}
