//! The list of messages beside the one that is looked at.

use mcp_control::api::MessageKind;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::{detail, words};
use crate::app::App;
use crate::mouse::Hit;
use crate::state::common::Common;
use crate::state::traffic::Row;
use crate::text;
use crate::theme::{Role, Theme};

/// Columns below which list and detail stand one above the other.
const COLUMNS_FOR_TWO: u16 = 70;
/// Columns from which the list has more than half of them, and the columns of a list that has room for a
/// clock and arguments then.
const COLUMNS_FOR_MORE: u16 = 120;
const LIST_COLUMNS_FOR_MORE: u16 = 64;
/// Fewer cells of arguments would tell nothing.
const ARGUMENTS_CELLS_MIN: usize = 6;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if app.detail.is_zoomed {
        return match app.detail.has_keys {
            true => detail::draw(app, frame, area, theme),
            false => list(app, frame, area, theme),
        };
    }
    let layout = match area.width {
        COLUMNS_FOR_MORE.. => Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]),
        COLUMNS_FOR_TWO.. => Layout::horizontal([Constraint::Percentage(52), Constraint::Percentage(48)]),
        _ => Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]),
    };
    let [left, right] = layout.areas(area);
    list(app, frame, left, theme);
    detail::draw(app, frame, right, theme);
}

/// A box for a pane; the one that has the keys stands out.
pub(crate) fn pane(title: String, has_keys: bool, theme: &Theme) -> Block<'static> {
    let role = if has_keys { Role::Active } else { Role::Border };
    let block = Block::new().borders(Borders::ALL).border_style(theme.style(role)).title(title);
    match theme.ascii {
        true => block.border_set(ASCII_BORDER),
        false => block,
    }
}

const ASCII_BORDER: ratatui::symbols::border::Set<'static> = ratatui::symbols::border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

fn list(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let title = text::fit(&title(app), usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, !app.detail.has_keys, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    app.hits.push((inner, Hit::List));
    if app.traffic.rows.is_empty() {
        return empty(app, frame, inner, theme);
    }
    let visible = app.traffic.visible(usize::from(inner.height));
    let selected = app.traffic.selected;
    // What is not listed may be an answer.
    let is_narrowed = app.traffic.filter.is_some();
    for (line, row) in app.traffic.rows.range(visible).enumerate() {
        let place = Rect { y: inner.y + line as u16, height: 1, ..inner };
        let is_selected = selected == Some(row.message.sequence);
        let drawn = row_line(row, &app.common, is_narrowed, inner.width, theme);
        frame.render_widget(drawn, place);
        if is_selected {
            frame.buffer_mut().set_style(place, theme.style(Role::Selected));
        }
    }
}

fn title(app: &App) -> String {
    let traffic = &app.traffic;
    let filter = traffic.filter.as_deref().map(|filter| format!(" {}", text::clean(filter))).unwrap_or_default();
    let looking = match traffic.looking {
        Some(at) => format!(" (looking back, at #{at})"),
        None if traffic.follows => String::new(),
        None if traffic.reaches_end() => " (scrolled; G follows)".to_owned(),
        None => format!(" (of {}; G follows)", traffic.newest),
    };
    format!(" Messages{filter}{looking} ")
}

/// What to do while there is nothing to see.
fn empty(app: &App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let mut lines = Vec::new();
    if app.traffic.is_loading() || app.common.standing.is_none() && app.common.recording.is_none() {
        lines.push(app.common.lost.clone().unwrap_or_else(|| "loading".to_owned()));
    } else if app.traffic.filter.is_some() {
        lines.push("nothing matches; esc takes the filter away".to_owned());
    } else {
        lines.push("no message has passed yet".to_owned());
        if !app.common.doors.is_empty() {
            lines.push(String::new());
            lines.push("clients get in by:".to_owned());
            lines.extend(app.common.doors.iter().map(|door| format!("  {}", text::clean(door))));
        }
    }
    let text: Vec<Line<'_>> = lines.into_iter().map(|line| Line::styled(line, theme.style(Role::Faint))).collect();
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), area);
}

/// `⏸ #007 → tools/call [exec_cmd]     ✎ 312 ms ok`; with more room
/// `⏸ #007 14:02:11 → tools/call [exec_cmd] command="ls"     ✎ 312 ms ok`, in UTC.
fn row_line(row: &Row, common: &Common, is_narrowed: bool, width: u16, theme: &Theme) -> Line<'static> {
    let (has_more, width) = (width >= LIST_COLUMNS_FOR_MORE, usize::from(width));
    let (message, glyphs) = (&row.message, theme.glyphs());
    let is_out = words::is_to_server(message);
    let held = common.held_message(message.sequence);
    let direction = theme.style(if is_out { Role::ToServer } else { Role::ToClient });
    let sign = match (held, is_out) {
        (Some(_), _) => Span::styled(glyphs.held, theme.style(Role::Warn)),
        (None, true) => Span::styled(glyphs.to_server, direction),
        (None, false) => Span::styled(glyphs.to_client, direction),
    };
    let arrow = if is_out { glyphs.arrow_to_server } else { glyphs.arrow_to_client };
    let server = message.upstream.as_deref().map(|server| format!("[{}] ", text::clean(server))).unwrap_or_default();
    let from = message.parent.map(|parent| format!(" from #{parent:03}")).unwrap_or_default();
    let (clock, arguments) = match has_more {
        true => (clock(row), row.arguments(common.messages.get(message.sequence).map(|whole| &**whole))),
        false => (String::new(), ""),
    };
    let left = format!(" #{:03} {clock}{arrow} {server}{}{from}", message.sequence, words::what(message));
    let (right, role) = match held {
        Some(held) if held.given_up => ("client gave up".to_owned(), Role::Bad),
        Some(held) => (format!("held {}", text::age(common.age(held))), Role::Warn),
        None if is_waiting(row) => (if is_narrowed { "" } else { glyphs.waiting }.to_owned(), Role::Faint),
        None => ending(row, theme),
    };
    let marks = marks(row, theme);
    let right = format!("{marks}{right}");
    let room = width.saturating_sub(text::width(&right) + 2);
    let left = text::fit(&left, room, theme.ascii);
    let rest = room.saturating_sub(text::width(&left));
    let arguments = match arguments {
        "" => " ".repeat(rest),
        _ if rest < ARGUMENTS_CELLS_MIN => " ".repeat(rest),
        arguments => text::pad(&text::fit(&format!(" {arguments}"), rest, theme.ascii), rest),
    };
    Line::from(vec![
        sign,
        Span::styled(left, direction),
        Span::styled(arguments, theme.style(Role::Faint)),
        Span::raw(" "),
        Span::styled(right, theme.style(role)),
    ])
}

/// `14:02:11 `
fn clock(row: &Row) -> String {
    let clock = text::clock(&row.message.timestamp);
    format!("{} ", clock.split('.').next().unwrap_or_default())
}

/// A request that nobody has answered or stopped, as far as the list shows.
fn is_waiting(row: &Row) -> bool {
    row.message.kind == MessageKind::Request && row.answered.is_none() && words::status(&row.message).is_empty()
}

/// How long it took and how it went.
fn ending(row: &Row, theme: &Theme) -> (String, Role) {
    let message = &row.message;
    let own = words::status(message);
    let (time, status, is_bad) = match &row.answered {
        Some(answered) if own.is_empty() => {
            let is_bad = answered.status.as_deref() == Some("err");
            let status = match (answered.code, answered.status.as_deref()) {
                (Some(code), _) => format!("err {code}"),
                (None, Some("input_required")) => "asks".to_owned(),
                (None, status) => status.unwrap_or_default().to_owned(),
            };
            (answered.duration_ns, status, is_bad)
        }
        _ => (message.duration_ns, own, words::is_bad(message)),
    };
    let time = time.map(|ns| format!("{} ", text::human_time(ns))).unwrap_or_default();
    let glyph = match (status.is_empty(), is_bad) {
        (true, _) => "",
        (false, true) => theme.glyphs().error,
        (false, false) => "",
    };
    let role = if is_bad { Role::Bad } else { Role::Text };
    (format!("{time}{glyph}{status}"), role)
}

/// Edited, denied, noise, marked, noted: a glyph each.
fn marks(row: &Row, theme: &Theme) -> String {
    let (message, glyphs) = (&row.message, theme.glyphs());
    let marks = [
        (message.mark.is_some(), glyphs.marked),
        (message.note.is_some(), glyphs.noted),
        (message.modified, glyphs.edited),
        (message.noise, glyphs.noise),
        (message.origin.as_deref() == Some("replay"), glyphs.replayed),
        (message.opaque.is_some(), "?"),
    ];
    let shown: String = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, glyph)| glyph).collect();
    if shown.is_empty() { shown } else { format!("{shown} ") }
}
