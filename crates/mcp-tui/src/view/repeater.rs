//! Requests that are sent again: the request beside what came of it.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::detail::spans_line;
use super::hints;
use super::traffic::pane;
use crate::app::App;
use crate::command::Command;
use crate::mouse::Hit;
use crate::state::common::Common;
use crate::state::cursor::Scroll;
use crate::state::repeater::{Against, Answer, Became, Content, Run, Tab, Text};
use crate::text;
use crate::theme::{Role, Theme};

/// Columns below which request and answer stand one above the other.
const COLUMNS_FOR_TWO: u16 = 70;
/// Of the title of a request, in a row of them.
const TITLE_CELLS_MAX: usize = 28;
/// Of the one path that is left out.
const IGNORED_CELLS_MAX: usize = 24;

const OF_REQUEST: [(Command, &str); 4] =
    [(Command::Replay, "send"), (Command::Edit, "edit"), (Command::Editor, "$EDITOR"), (Command::CloseTab, "close")];
const OF_ANSWERS: [(Command, &str); 4] = [
    (Command::NextView, "next run"),
    (Command::Compare, "compare"),
    (Command::Ignore, "leave out"),
    (Command::Open, "to the message"),
];

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let Some(tab) = app.repeater.tabs.get(app.repeater.shown) else { return empty(frame, area, theme) };
    let [tabs, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let title = format!(" Request #{}{} ", tab.sequence, if tab.is_edited() { ", edited" } else { "" });
    requests(app, frame, tabs, theme);
    let (left, right) = halves(app, body);
    if let Some(left) = left {
        let block = pane(text::fit(&title, cells(left), theme.ascii), !app.repeater.is_on_answer, theme);
        let inner = block.inner(left);
        frame.render_widget(block, left);
        app.hits.push((left, Hit::Line(0)));
        let rest = hints::below(app, frame, inner, theme, &OF_REQUEST);
        request(app, frame, rest, theme);
    }
    if let Some(right) = right {
        let block = pane(text::fit(" Answers ", cells(right), theme.ascii), app.repeater.is_on_answer, theme);
        let inner = block.inner(right);
        frame.render_widget(block, right);
        app.hits.push((right, Hit::Beside));
        let rest = hints::below(app, frame, inner, theme, &OF_ANSWERS);
        answers(app, frame, rest, theme);
    }
}

fn cells(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(2))
}

/// Where the request and where the answer is drawn.
fn halves(app: &App, area: Rect) -> (Option<Rect>, Option<Rect>) {
    if app.detail.is_zoomed {
        return if app.repeater.is_on_answer { (None, Some(area)) } else { (Some(area), None) };
    }
    let layout = match area.width >= COLUMNS_FOR_TWO {
        true => Layout::horizontal([Constraint::Percentage(42), Constraint::Percentage(58)]),
        false => Layout::vertical([Constraint::Percentage(40), Constraint::Percentage(60)]),
    };
    let [left, right] = layout.areas(area);
    (Some(left), Some(right))
}

fn empty(frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let block = pane(text::fit(" Repeater ", cells(area), theme.ascii), true, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let words = "no request is here yet: `r` on a request of Traffic, or on a tool, brings one and sends it";
    let words = Paragraph::new(words).style(theme.style(Role::Faint)).wrap(Wrap { trim: false });
    frame.render_widget(words, inner);
}

/// Labels in a row, as many as there is room for around the one that is shown.
fn row_of_tabs(
    app: &mut App,
    frame: &mut Frame<'_>,
    area: Rect,
    theme: &Theme,
    (labels, shown): (Vec<String>, usize),
    hit: fn(usize) -> Hit,
) {
    let room = usize::from(area.width);
    let widths: Vec<usize> = labels.iter().map(|label| text::width(label) + 2).collect();
    let mut from = shown;
    let mut taken = widths.get(shown).copied().unwrap_or(0);
    while from > 0 && taken + widths[from - 1] <= room {
        from -= 1;
        taken += widths[from];
    }
    let mut x = area.x;
    for (at, label) in labels.iter().enumerate().skip(from) {
        let left = usize::from(area.x + area.width - x);
        if left == 0 {
            break;
        }
        let label = if at == shown { format!("[{label}]") } else { format!(" {label} ") };
        let label = text::fit(&label, left, theme.ascii);
        let place = Rect { x, width: text::width(&label) as u16, ..area };
        let role = if at == shown { Role::Active } else { Role::Faint };
        frame.render_widget(Line::styled(label, theme.style(role)), place);
        app.hits.push((place, hit(at)));
        x += place.width;
    }
}

fn requests(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let label =
        |(number, tab): (usize, &Tab)| format!("{number} {}", text::fit(&tab.title, TITLE_CELLS_MAX, theme.ascii));
    let labels: Vec<String> = (1..).zip(&app.repeater.tabs).map(label).collect();
    let shown = app.repeater.shown;
    row_of_tabs(app, frame, area, theme, (labels, shown), Hit::Request);
}

fn request(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let repeater = &mut app.repeater;
    let Some(tab) = repeater.tabs.get_mut(repeater.shown) else { return };
    let text = repeater.drawn.request(tab);
    let lines = text_lines(text, &mut tab.request_scroll, usize::from(area.height), theme);
    put(frame, area, lines);
}

fn answers(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let [runs, status, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let Some(tab) = app.repeater.tab() else { return };
    let labels: Vec<String> = tab.runs.iter().map(|run| run_label(run, theme)).collect();
    let shown = tab.shown;
    let line = match tab.shown_run() {
        Some(run) => status_line(run, &app.common, theme),
        None => ("not sent yet; `r` sends it".to_owned(), Role::Faint),
    };
    let (words, role) = line;
    frame.render_widget(
        Line::styled(text::fit(&words, usize::from(area.width), theme.ascii), theme.style(role)),
        status,
    );
    row_of_tabs(app, frame, runs, theme, (labels, shown), Hit::Run);
    let repeater = &mut app.repeater;
    let Some(tab) = repeater.tabs.get_mut(repeater.shown) else { return };
    if let Some(Became::Refused(words)) = tab.shown_run().map(|run| &run.became) {
        let words = Paragraph::new(text::clean(words).into_owned()).wrap(Wrap { trim: false });
        return frame.render_widget(words, body);
    }
    let (height, width) = (usize::from(body.height), usize::from(body.width));
    let lines = match tab.against {
        Against::Nothing => answer_lines(tab, &mut repeater.drawn, height, theme),
        _ => {
            let lines = diff_lines(tab, &mut repeater.drawn, width, theme);
            let visible = tab.answer_scroll.visible(height, lines.len());
            lines.into_iter().skip(visible.start).take(height).collect()
        }
    };
    put(frame, body, lines);
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    for (line, y) in lines.into_iter().zip(area.y..area.y + area.height) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// `run 2 312 ms ok`
fn run_label(run: &Run, theme: &Theme) -> String {
    let what = match &run.became {
        Became::Sending => theme.glyphs().waiting.to_owned(),
        Became::Waiting(waiting) if waiting.is_given_up => "no answer".to_owned(),
        Became::Waiting(_) => theme.glyphs().waiting.to_owned(),
        Became::Told { .. } => "sent".to_owned(),
        Became::Refused(_) => "refused".to_owned(),
        Became::Answered(answer) => {
            let time = answer.duration_ns.map(|ns| format!("{} ", text::human_time(ns))).unwrap_or_default();
            format!("{time}{}", answer.status)
        }
    };
    format!("run {} {what}", run.number)
}

fn status_line(run: &Run, common: &Common, theme: &Theme) -> (String, Role) {
    let glyphs = theme.glyphs();
    match &run.became {
        Became::Sending => ("on its way".to_owned(), Role::Faint),
        Became::Waiting(waiting) if common.held_message(waiting.sequence).is_some() => {
            (format!("{} it is held as #{}; `2` shows it", glyphs.held, waiting.sequence), Role::Warn)
        }
        Became::Waiting(waiting) if waiting.is_given_up => ("no answer yet; `r` sends it again".to_owned(), Role::Warn),
        Became::Waiting(waiting) => {
            let age = text::human_time(common.now.saturating_sub(waiting.since) * 1_000_000);
            (format!("{} sent as #{}, {age} without an answer", glyphs.waiting, waiting.sequence), Role::Faint)
        }
        Became::Told { sequence } => {
            (format!("{} sent as #{sequence}; nothing answers a notification", glyphs.ok), Role::Good)
        }
        Became::Refused(_) => (format!("{} not sent", glyphs.error), Role::Bad),
        Became::Answered(answer) => {
            let sign = if answer.is_bad { glyphs.error } else { glyphs.ok };
            let time = answer.duration_ns.map(|ns| format!("  {}", text::human_time(ns))).unwrap_or_default();
            let words = match answer.status.as_str() {
                "ok" if theme.ascii => sign.to_owned(),
                status => format!("{sign} {status}"),
            };
            let size = text::human_size(answer.size);
            let role = if answer.is_bad { Role::Bad } else { Role::Good };
            (format!("{words}{time}  {size}  #{}", answer.sequence), role)
        }
    }
}

fn answer_lines(
    tab: &mut Tab,
    drawn: &mut crate::state::repeater::Drawn,
    height: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let faint = |words: &str| vec![Line::styled(words.to_owned(), theme.style(Role::Faint))];
    let Some(Answer { content, sequence, .. }) = tab.runs.get(tab.shown).and_then(Run::answer) else {
        return Vec::new();
    };
    match content {
        Content::Coming => faint("loading"),
        Content::Gone => faint("its content made room for later ones; enter leads to the message"),
        Content::Missing(words) => faint(&text::clean(words)),
        Content::Here(content) => {
            let text = drawn.answer(*sequence, content);
            text_lines(text, &mut tab.answer_scroll, height, theme)
        }
    }
}

fn diff_lines(tab: &Tab, drawn: &mut crate::state::repeater::Drawn, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    match drawn.diff(tab) {
        Err(words) => vec![Line::styled(words, theme.style(Role::Faint))],
        Ok((title, diff)) => {
            let left_out = match tab.ignored.as_slice() {
                [] => "; `x` leaves paths out".to_owned(),
                [path] => format!("; without {} (`x`)", text::fit(path, IGNORED_CELLS_MAX, theme.ascii)),
                paths => format!("; without {} paths (`x`)", paths.len()),
            };
            let mut lines = vec![Line::styled(format!("{title}{left_out}"), theme.style(Role::Title))];
            lines.extend(super::diff::lines(diff, width, theme));
            lines
        }
    }
}

fn text_lines(text: &Text, scroll: &mut Scroll, height: usize, theme: &Theme) -> Vec<Line<'static>> {
    let visible = scroll.visible(height, text.len());
    match text {
        Text::Json(pretty) => pretty.pretty_lines(visible).into_iter().map(|spans| spans_line(spans, theme)).collect(),
        Text::Plain(lines) => lines[visible].iter().cloned().map(Line::raw).collect(),
    }
}
