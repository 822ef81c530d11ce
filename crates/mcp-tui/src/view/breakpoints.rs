//! Breakpoints above, the rules of the policy below, and the selected one in full.

use mcp_control::api::{Answered, Breakpoint, Lasting, Owner, Policy, Rule, VerdictKind};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::traffic::pane;
use super::{hints, words};
use crate::app::App;
use crate::command::Command;
use crate::mouse::Hit;
use crate::state::breakpoints::{Item, breakpoints, holds_now};
use crate::text;
use crate::theme::{Role, Theme};

/// Rows below which the selected one is not shown in full, and how many that takes.
const ROWS_FOR_FULL: u16 = 14;
const FULL: u16 = 6;
/// Cells of a name and of an expression.
const NAME: usize = 14;
const FILTER: usize = 30;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let full = if area.height >= ROWS_FOR_FULL { FULL } else { 0 };
    let wanted = breakpoints(&app.common).len().max(1) as u16 + 3;
    let room = area.height.saturating_sub(full);
    let [above, below, whole] = Layout::vertical([
        Constraint::Length(wanted.min(room / 2).max(3)),
        Constraint::Min(0),
        Constraint::Length(full),
    ])
    .areas(area);
    set(app, frame, above, theme);
    judged(app, frame, below, theme);
    in_full(app, frame, whole, theme);
}

fn set(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let place = app.breakpoints.place(&app.common);
    let count = breakpoints(&app.common).len();
    let title = if count == 0 { " Breakpoints ".to_owned() } else { format!(" Breakpoints: {count} ") };
    let block = pane(title, place < count || count == 0, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if inner.height == 0 {
        return;
    }
    let rows = Rect { height: inner.height.saturating_sub(1).max(1), ..inner };
    if count == 0 {
        let words = match &app.common.recording {
            Some(_) => "this is a recording: nothing is held".to_owned(),
            None => {
                format!("none; {} sets one that holds what a filter matches", app.keymap.shown(Command::NewBreakpoint))
            }
        };
        say(frame, rows, &words, theme);
    }
    app.breakpoints.above.at = place.min(count.saturating_sub(1));
    let visible = app.breakpoints.above.visible(usize::from(rows.height), count);
    for (line, at) in visible.enumerate() {
        let row = Rect { y: rows.y + line as u16, height: 1, ..rows };
        let drawn = breakpoint_line(&breakpoints(&app.common)[at], app, usize::from(rows.width), theme);
        item_row(app, frame, row, drawn, at, at == place, theme);
    }
    if inner.height > 1 {
        let row = Rect { y: inner.y + inner.height - 1, height: 1, ..inner };
        hints::draw(app, frame, row, theme, &HINTS);
    }
}

const HINTS: [(Command, &str); 5] = [
    (Command::NewBreakpoint, "new"),
    (Command::ChangeBreakpoint, "change"),
    (Command::Remove, "remove"),
    (Command::NextPane, "rules"),
    (Command::Hold, "hold everything, or nothing"),
];

fn item_row(
    app: &mut App,
    frame: &mut Frame<'_>,
    row: Rect,
    line: Line<'static>,
    at: usize,
    is_selected: bool,
    theme: &Theme,
) {
    frame.render_widget(line, row);
    if is_selected {
        frame.buffer_mut().set_style(row, theme.style(Role::Selected));
    }
    app.hits.push((row, Hit::Line(at)));
}

fn say(frame: &mut Frame<'_>, area: Rect, words: &str, theme: &Theme) {
    let lines = words::wrapped(words, usize::from(area.width), theme.ascii);
    for (line, y) in lines.into_iter().zip(area.y..area.y + area.height) {
        frame.render_widget(Line::styled(line, theme.style(Role::Faint)), Rect { y, height: 1, ..area });
    }
}

/// Something in exactly so many cells.
fn cell(words: &str, cells: usize, theme: &Theme) -> String {
    text::pad(&text::fit(words, cells.saturating_sub(1), theme.ascii), cells)
}

/// `⏸ b1   tool:add      3 hits  holds now: set on the command line, …`
fn breakpoint_line(breakpoint: &Breakpoint, app: &App, width: usize, theme: &Theme) -> Line<'static> {
    let holds = holds_now(breakpoint, &app.common);
    let (sign, role) = if holds { (theme.glyphs().held, Role::Warn) } else { (theme.glyphs().dot, Role::Faint) };
    let hits = format!("{} hit{}", breakpoint.hits, if breakpoint.hits == 1 { "" } else { "s" });
    let filter_cells = FILTER.min(width / 3);
    let state = if holds { "holds now: " } else { "waits for a face: " };
    let name_cells = NAME.min(width / 4);
    let room = width.saturating_sub(2 + name_cells + filter_cells + 9 + state.len());
    Line::from(vec![
        Span::styled(format!("{sign} "), theme.style(role)),
        Span::styled(cell(&breakpoint.name, name_cells, theme), theme.style(Role::Title)),
        Span::styled(cell(&breakpoint.filter, filter_cells, theme), theme.style(Role::JsonKey)),
        Span::raw(format!("{} ", text::pad(&hits, 8))),
        Span::styled(state, theme.style(role)),
        Span::styled(text::fit(owner(breakpoint.owner), room, theme.ascii), theme.style(Role::Faint)),
    ])
}

/// Who set it, and what follows from that.
fn owner(owner: Owner) -> &'static str {
    match owner {
        Owner::Start => "set on the command line, holds while a face has control",
        Owner::Face => "set by a face, holds while a face has control",
        Owner::Command => "set by a command, holds up to the limit whoever is there",
        Owner::Policy => "a rule that asks, holds until somebody answers",
    }
}

fn judged(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let place = app.breakpoints.place(&app.common);
    let first = breakpoints(&app.common).len();
    let title = text::fit(&rules_title(app), usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, place >= first && first > 0, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    match &app.breakpoints.rules {
        Some(Ok(_)) => {}
        Some(Err(words)) => return say(frame, inner, &text::clean(words), theme),
        None if app.common.recording.is_some() => {
            return say(frame, inner, "rules are shown while the proxy runs", theme);
        }
        None => return say(frame, inner, "loading", theme),
    }
    let items: Vec<(usize, Line<'static>)> = app
        .breakpoints
        .items(&app.common)
        .into_iter()
        .enumerate()
        .skip(first)
        .map(|(at, item)| (at, item_line(item, usize::from(inner.width), theme)))
        .collect();
    if items.is_empty() {
        return say(frame, inner, "there are no rules in it", theme);
    }
    app.breakpoints.below.at = place.saturating_sub(first);
    let visible = app.breakpoints.below.visible(usize::from(inner.height), items.len());
    for (line, (at, drawn)) in items.into_iter().skip(visible.start).take(visible.len()).enumerate() {
        let row = Rect { y: inner.y + line as u16, height: 1, ..inner };
        item_row(app, frame, row, drawn, at, at == place, theme);
    }
}

/// ` Rules: 3 of rules.json, version 1a2b; otherwise allow `
fn rules_title(app: &App) -> String {
    let Some(Ok(policy)) = &app.breakpoints.rules else { return " Rules ".to_owned() };
    let file = policy.file.as_deref().map(|file| format!(" of {}", text::clean(file))).unwrap_or_default();
    let version = text::clean(&policy.version).into_owned();
    format!(" Rules: {}{file}, version {version}; otherwise {} ", policy.rules.len(), policy.default.as_str())
}

fn item_line(item: Item<'_>, width: usize, theme: &Theme) -> Line<'static> {
    match item {
        Item::Breakpoint(breakpoint) => Line::raw(text::clean(&breakpoint.name).into_owned()),
        Item::Rule(place, rule) => rule_line(place, rule, width, theme),
        Item::Answer(answer) => answer_line(answer, width, theme),
    }
}

/// ` 1 deny    no-deletes    op:delete         Ask a person to do that.`
fn rule_line(place: usize, rule: &Rule, width: usize, theme: &Theme) -> Line<'static> {
    let role = match rule.verdict {
        VerdictKind::Allow => Role::Good,
        VerdictKind::Deny => Role::Bad,
        VerdictKind::Ask => Role::Warn,
        VerdictKind::Observe => Role::Faint,
    };
    let (name_cells, filter_cells) = ((NAME + 4).min(width / 4), FILTER.min(width / 3));
    let room = width.saturating_sub(4 + 8 + name_cells + filter_cells);
    let message = rule.message.as_deref().map(|words| text::fit(words, room, theme.ascii)).unwrap_or_default();
    Line::from(vec![
        Span::styled(format!("{place:>3} "), theme.style(Role::Faint)),
        Span::styled(cell(rule.verdict.as_str(), 8, theme), theme.style(role)),
        Span::styled(cell(&rule.name, name_cells, theme), theme.style(Role::Title)),
        Span::styled(cell(&rule.filter, filter_cells, theme), theme.style(Role::JsonKey)),
        Span::styled(message, theme.style(Role::Faint)),
    ])
}

/// `    answered: allow tools/call delete_note, for this session (ann, rule no-deletes)`
fn answer_line(answer: &Answered, width: usize, theme: &Theme) -> Line<'static> {
    let role = if answer.counts { Role::Text } else { Role::Faint };
    let words = format!("    answered: {}", answer_words(answer));
    Line::styled(text::fit(&words, width, theme.ascii), theme.style(role))
}

fn answer_words(answer: &Answered) -> String {
    let lasting = match answer.lasting {
        Lasting::Once => "once",
        Lasting::Session => "for this session",
        Lasting::Rule => "for as long as the rule is there",
    };
    let subject = answer.subject.as_deref().map(|subject| format!(" {subject}")).unwrap_or_default();
    let counts = if answer.counts { "" } else { "; it counts no longer" };
    let words = format!(
        "{} {}{subject}, {lasting} (by {}, rule {}){counts}",
        answer.permission.as_str(),
        answer.method,
        answer.by,
        answer.rule
    );
    text::clean(&words).into_owned()
}

fn in_full(app: &App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let items = app.breakpoints.items(&app.common);
    let Some(item) = items.get(app.breakpoints.place(&app.common)) else { return };
    let (title, words) = match item {
        Item::Breakpoint(breakpoint) => {
            (format!(" {} ", text::clean(&breakpoint.name)), breakpoint_words(breakpoint, app))
        }
        Item::Rule(_, rule) => (format!(" rule {} ", text::clean(&rule.name)), rule_words(rule, policy(app))),
        Item::Answer(answer) => (" answer ".to_owned(), vec![answer_words(answer)]),
    };
    let title = text::fit(&title, usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, false, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let lines = words.iter().flat_map(|words| words::wrapped(&text::clean(words), width, theme.ascii));
    for (line, y) in lines.zip(inner.y..inner.y + inner.height) {
        frame.render_widget(Line::raw(line), Rect { y, height: 1, ..inner });
    }
}

fn policy(app: &App) -> Option<&Policy> {
    app.breakpoints.rules.as_ref().and_then(|rules| rules.as_ref().ok())
}

fn breakpoint_words(breakpoint: &Breakpoint, app: &App) -> Vec<String> {
    let state = match holds_now(breakpoint, &app.common) {
        true => "it holds now",
        false => "it does not hold now, for no face has control",
    };
    let hits = match breakpoint.hits {
        1 => "1 message was held by it".to_owned(),
        hits => format!("{hits} messages were held by it"),
    };
    vec![breakpoint.filter.clone(), format!("{}; {state}; {hits}", owner(breakpoint.owner))]
}

fn rule_words(rule: &Rule, policy: Option<&Policy>) -> Vec<String> {
    let mut lines = vec![rule.filter.clone()];
    lines.extend(rule.message.as_ref().map(|message| format!("says: {message}")));
    let limit =
        rule.timeout_ms.map_or("the usual time".to_owned(), |ms| text::human_time(ms.saturating_mul(1_000_000)));
    if let (VerdictKind::Ask, Some(otherwise)) = (rule.verdict, rule.on_timeout) {
        lines.push(format!("waits {limit} for an answer, then: {}", otherwise.as_str()));
    }
    if policy.is_some_and(|policy| policy.hide_denied) && rule.verdict == VerdictKind::Deny {
        lines.push("what is always denied is not listed to clients".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests;
