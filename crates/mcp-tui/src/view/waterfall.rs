//! Operations over time: a line each, all on one scale.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::traffic::pane;
use crate::app::App;
use crate::mouse::Hit;
use crate::state::waterfall::{Ending, Operation, Sum, Waits};
use crate::text;
use crate::theme::{Role, Theme};

/// Columns of a name, of a duration, and of how it went.
const NAME_CELLS: usize = 22;
const TIME_CELLS: usize = 8;
const STATUS_CELLS: usize = 13;
/// Columns below which names are shorter.
const COLUMNS_FOR_NAMES: usize = 70;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let filter = app.waterfall.filter().map(|filter| format!(" {}", text::clean(filter))).unwrap_or_default();
    let title = text::fit(&format!(" Waterfall{filter} "), usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, true, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let sum = app.waterfall.sum();
    if sum.operations == 0 {
        return frame.render_widget(Line::styled(empty(app), theme.style(Role::Faint)), inner);
    }
    let [head, axis, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(0)]).areas(inner);
    frame.render_widget(sum_line(&sum, inner, theme), head);
    let columns = Columns::of(usize::from(inner.width));
    let now = app.waterfall.now_us(&app.common);
    let (top, operations, selected) = app.waterfall.visible(usize::from(body.height));
    let scale = Scale::of(&operations, now, columns.bar);
    frame.render_widget(axis_line(&scale, &columns, theme), axis);
    let common = &app.common;
    let is_held = |sequence: u64| common.held_message(sequence).is_some();
    let mut hits = Vec::new();
    for ((at, operation), y) in (top..).zip(operations).zip(body.y..body.y + body.height) {
        let place = Rect { y, height: 1, ..body };
        frame.render_widget(line(operation, &scale, &columns, is_held, theme), place);
        if at == selected {
            frame.buffer_mut().set_style(place, theme.style(Role::Selected));
        }
        hits.push((place, Hit::Line(at)));
    }
    app.hits.extend(hits);
}

fn empty(app: &App) -> String {
    match (&app.waterfall.trouble, app.waterfall.is_loading(), app.waterfall.filter()) {
        (Some(words), ..) => text::clean(words).into_owned(),
        (None, true, _) => "loading".to_owned(),
        (None, false, Some(_)) => "no request matches the filter".to_owned(),
        (None, false, None) => "no request has passed yet".to_owned(),
    }
}

/// `412 operations  errors 1  denied 2  p50 38 ms  p95 312 ms  p99 2.1 s`
fn sum_line(sum: &Sum, area: Rect, theme: &Theme) -> Line<'static> {
    let mut words = match sum.operations {
        1 => "1 operation".to_owned(),
        operations => format!("{operations} operations"),
    };
    words += &format!("  errors {}  denied {}", sum.errors, sum.denied);
    if let Some(times) = sum.times {
        let [p50, p95, p99] = [times.p50, times.p95, times.p99].map(text::human_time);
        words += &format!("  p50 {p50}  p95 {p95}  p99 {p99}");
    }
    let role = if sum.errors + sum.denied > 0 { Role::Warn } else { Role::Text };
    Line::styled(text::fit(&words, usize::from(area.width), theme.ascii), theme.style(role))
}

struct Columns {
    name: usize,
    bar: usize,
}

impl Columns {
    fn of(width: usize) -> Self {
        let name = if width < COLUMNS_FOR_NAMES { NAME_CELLS / 2 + 3 } else { NAME_CELLS };
        Self { name, bar: width.saturating_sub(name + TIME_CELLS + STATUS_CELLS + 3) }
    }
}

/// Which time is which cell.
struct Scale {
    start: i64,
    end: i64,
    now: i64,
    cells: usize,
}

impl Scale {
    /// From the first of the shown operations to the last end.
    fn of(operations: &[&Operation], now: i64, cells: usize) -> Self {
        let start = operations.iter().filter_map(|operation| operation.start()).min().unwrap_or(now);
        let end = operations.iter().filter_map(|operation| operation.end(now)).max().unwrap_or(now);
        Self { start, end: end.max(start.saturating_add(1)), now, cells }
    }

    fn cell(&self, at: i64) -> usize {
        let span = i128::from(self.end) - i128::from(self.start);
        let from_start = (i128::from(at) - i128::from(self.start)).clamp(0, span);
        let cell = from_start * self.cells as i128 / span.max(1);
        (cell as usize).min(self.cells.saturating_sub(1))
    }

    /// The cells of a stretch: one at least.
    fn cells(&self, from: i64, to: i64) -> std::ops::Range<usize> {
        let first = self.cell(from);
        // What ends where the next cell begins does not reach into it.
        let last = self.cell(to.saturating_sub(1)).max(first);
        first..(last + 1).min(self.cells)
    }
}

/// When the first of what is shown began, and when the last was over.
fn axis_line(scale: &Scale, columns: &Columns, theme: &Theme) -> Line<'static> {
    let clock =
        |us: i64| jiff::Timestamp::from_microsecond(us).map(|time| text::clock(&time.to_string())).unwrap_or_default();
    let (from, to) = (format!("{} UTC", clock(scale.start)), clock(scale.end));
    let span = text::human_time(u64::try_from(scale.end.saturating_sub(scale.start)).unwrap_or(0).saturating_mul(1000));
    let room = columns.bar + 1;
    let both = text::width(&from) + text::width(&to);
    let words = match room.checked_sub(both + text::width(&span) + 2) {
        Some(blanks) => format!("{from}{} {span} {}{to}", " ".repeat(blanks / 2), " ".repeat(blanks - blanks / 2)),
        None if both < room => format!("{from}{}{to}", " ".repeat(room - both)),
        None => text::fit(&from, room, theme.ascii),
    };
    Line::styled(format!("{}{words}", " ".repeat(columns.name)), theme.style(Role::Faint))
}

/// `search      ▏   ████          312 ms ✓ ok`
fn line(
    operation: &Operation,
    scale: &Scale,
    columns: &Columns,
    is_held: impl Fn(u64) -> bool,
    theme: &Theme,
) -> Line<'static> {
    let glyphs = theme.glyphs();
    let is_held_now = operation.rounds.last().is_some_and(|round| round.answer.is_none() && is_held(round.request));
    let rounds = match operation.rounds.len() {
        0 | 1 => String::new(),
        rounds if columns.name < NAME_CELLS => format!(" x{rounds}"),
        rounds => format!(" ({rounds} rounds)"),
    };
    let room = columns.name.saturating_sub(1 + text::width(&rounds));
    let arrow = if operation.is_to_server { String::new() } else { format!("{} ", glyphs.arrow_to_client) };
    let name = text::fit(&format!("{arrow}{}", operation.name), room, theme.ascii);
    let name = text::pad(&format!("{name}{rounds}"), columns.name);
    let (sign, word, role) = match operation.ending() {
        _ if is_held_now => (glyphs.held, "held", Role::Warn),
        Ending::Open => (glyphs.waiting, "waiting", Role::Faint),
        Ending::Good => (glyphs.ok, operation.status(), Role::Good),
        Ending::Bad => (glyphs.error, operation.status(), Role::Bad),
        Ending::Denied => (glyphs.denied, "denied", Role::Bad),
        Ending::Nowhere => (glyphs.error, operation.status(), Role::Warn),
    };
    let status = if sign == word { word.to_owned() } else { format!("{sign} {word}") };
    let time = operation.duration_ns().map(text::human_time).unwrap_or_else(|| match operation.is_open() {
        true => text::human_time(age_ns(operation, scale.now)),
        false => String::new(),
    });
    let direction = theme.style(if operation.is_to_server { Role::ToServer } else { Role::ToClient });
    let mut spans = vec![Span::styled(name, direction), Span::styled(glyphs.axis, theme.style(Role::Faint))];
    spans.extend(bar(operation, scale, is_held, role, theme));
    spans.push(Span::raw(format!("{time:>TIME_CELLS$} ")));
    spans.push(Span::styled(text::fit(&status, STATUS_CELLS, theme.ascii), theme.style(role)));
    Line::from(spans)
}

fn age_ns(operation: &Operation, now: i64) -> u64 {
    let since = operation.start().map_or(0, |start| now.saturating_sub(start));
    u64::try_from(since).unwrap_or(0).saturating_mul(1000)
}

/// What is in a cell of a bar.
#[derive(Clone, PartialEq, Eq)]
enum Cell {
    Nothing,
    Work,
    /// It may go on for who knows how long.
    Open,
    Step,
    Wait,
    Label(String),
}

fn bar(
    operation: &Operation,
    scale: &Scale,
    is_held: impl Fn(u64) -> bool,
    role: Role,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let mut cells = vec![Cell::Nothing; scale.cells];
    for (from, to) in operation.work(scale.now) {
        cells[scale.cells(from, to)].fill(Cell::Work);
    }
    if let Some(last) = operation.rounds.last().filter(|_| operation.is_open()) {
        cells[scale.cells(last.start, scale.end)].fill(Cell::Open);
    }
    for step in &operation.steps {
        if let Some(cell) = cells.get_mut(scale.cell(*step)) {
            *cell = Cell::Step;
        }
    }
    for (waits, from, to) in operation.waits(scale.now, is_held) {
        let range = scale.cells(from, to);
        cells[range.clone()].fill(Cell::Wait);
        label(&mut cells[range], waits, to.saturating_sub(from), theme);
    }
    spans(&cells, role, theme)
}

/// Says in a wait what it is for, where there is room.
fn label(cells: &mut [Cell], waits: Waits, us: i64, theme: &Theme) {
    let time = text::human_time(u64::try_from(us).unwrap_or(0).saturating_mul(1000));
    let words = match waits {
        Waits::Held => ["", " held "],
        Waits::ForClient => [" waits for the client ", " client "],
    };
    let forms = [words[0], words[1], " "].into_iter().filter(|words| !words.is_empty());
    let dots = 2 * text::width(theme.glyphs().dot);
    let form = forms.map(|words| format!("{words}{time} ")).find(|form| form.len() + dots <= cells.len());
    let Some(form) = form else { return };
    let from = (cells.len() - form.len()) / 2;
    for (cell, letter) in cells[from..].iter_mut().zip(form.chars()) {
        *cell = Cell::Label(letter.to_string());
    }
}

fn spans(cells: &[Cell], role: Role, theme: &Theme) -> Vec<Span<'static>> {
    let glyphs = theme.glyphs();
    let look = |cell: &Cell| match cell {
        Cell::Nothing => (" ", Role::Text),
        Cell::Work => (glyphs.bar, if role == Role::Good { Role::ToServer } else { role }),
        Cell::Open => (glyphs.bar_empty, Role::Faint),
        Cell::Step => (glyphs.step, Role::Warn),
        Cell::Wait => (glyphs.dot, Role::Warn),
        Cell::Label(_) => ("", Role::Warn),
    };
    let mut spans: Vec<(String, Role)> = Vec::new();
    for cell in cells {
        let (glyph, role) = look(cell);
        let glyph = if let Cell::Label(letter) = cell { letter } else { glyph };
        match spans.last_mut() {
            Some((text, last)) if *last == role => text.push_str(glyph),
            _ => spans.push((glyph.to_owned(), role)),
        }
    }
    spans.into_iter().map(|(text, role)| Span::styled(text, theme.style(role))).collect()
}
