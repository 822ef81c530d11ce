//! Two texts that were compared: beside each other where there is room, else one below the other.

use ratatui::text::{Line, Span};

use crate::diff::{self, Diff, Row, Shown, Word};
use crate::text;
use crate::theme::{Role, Theme};

/// Equal lines that are shown around what differs.
const CONTEXT: usize = 3;
/// Columns from which the two stand beside each other.
const COLUMNS_FOR_TWO: usize = 100;

/// All lines of a comparison.
pub(crate) fn lines(diff: &Diff, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let words = match (diff.is_same, diff.differing) {
        (true, _) => "no difference".to_owned(),
        (false, 1) => "1 line differs".to_owned(),
        (false, differing) => format!("{differing} lines differ"),
    };
    let ignored = if diff.ignored > 0 { format!(", {} left out", diff.ignored) } else { String::new() };
    lines.push(Line::styled(
        format!("{words}{ignored}"),
        theme.style(if diff.is_same { Role::Good } else { Role::Warn }),
    ));
    lines.extend(diff.note.iter().map(|note| Line::styled(note.clone(), theme.style(Role::Faint))));
    for shown in diff.folded(CONTEXT) {
        match shown {
            Shown::Folded(range) => {
                let dots = theme.glyphs().dot.repeat(3);
                let words = format!("{dots} {} equal lines {dots}", range.len());
                lines.push(Line::styled(words, theme.style(Role::Faint)));
            }
            Shown::Row(at) if width >= COLUMNS_FOR_TWO => lines.push(beside(&diff.rows[at], width, theme)),
            Shown::Row(at) => lines.extend(below(&diff.rows[at], theme)),
        }
    }
    lines
}

/// `- was`, `+ is`.
fn below(row: &Row, theme: &Theme) -> Vec<Line<'static>> {
    let signed = |sign: &'static str, line: &diff::Line, role: Role| {
        let mut spans = vec![Span::styled(sign, theme.style(role))];
        spans.extend(words(line, role, theme));
        Line::from(spans)
    };
    match row {
        Row::Same { right, is_ignored: false, .. } => vec![signed("  ", right, Role::Text)],
        Row::Same { right, is_ignored: true, .. } => vec![signed("~ ", right, Role::Faint)],
        Row::Changed { left, right } => vec![signed("- ", left, Role::Removed), signed("+ ", right, Role::Added)],
        Row::Left(left) => vec![signed("- ", left, Role::Removed)],
        Row::Right(right) => vec![signed("+ ", right, Role::Added)],
    }
}

fn beside(row: &Row, width: usize, theme: &Theme) -> Line<'static> {
    let half = width.saturating_sub(3) / 2;
    let (left, right, sign) = match row {
        Row::Same { left, right, is_ignored } => {
            let role = if *is_ignored { Role::Faint } else { Role::Text };
            (Some((left, role)), Some((right, role)), if *is_ignored { " ~ " } else { "   " })
        }
        Row::Changed { left, right } => (Some((left, Role::Removed)), Some((right, Role::Added)), " | "),
        Row::Left(left) => (Some((left, Role::Removed)), None, " < "),
        Row::Right(right) => (None, Some((right, Role::Added)), " > "),
    };
    let mut spans = column(left, half, theme);
    spans.push(Span::styled(sign, theme.style(Role::Warn)));
    spans.extend(column(right, half, theme));
    Line::from(spans)
}

/// A side in exactly so many columns.
fn column(side: Option<(&diff::Line, Role)>, width: usize, theme: &Theme) -> Vec<Span<'static>> {
    let Some((line, role)) = side else { return vec![Span::raw(" ".repeat(width))] };
    let mut room = width;
    let mut spans = Vec::new();
    for span in words(line, role, theme) {
        let text = text::fit(&span.content, room, theme.ascii);
        room -= text::width(&text).min(room);
        spans.push(Span::styled(text, span.style));
    }
    spans.push(Span::raw(" ".repeat(room)));
    spans
}

fn words(line: &diff::Line, role: Role, theme: &Theme) -> Vec<Span<'static>> {
    let style = theme.style(role);
    let strong = style.add_modifier(ratatui::style::Modifier::UNDERLINED);
    let span = |word: &Word| Span::styled(word.text.clone(), if word.is_changed { strong } else { style });
    line.words.iter().map(span).collect()
}
