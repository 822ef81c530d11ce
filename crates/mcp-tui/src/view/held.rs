//! The queue of what is held, beside the message that is looked at.

use std::sync::Arc;

use mcp_control::api::{Held, Message, Question};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::detail::spans_line;
use super::traffic::pane;
use super::{hints, words};
use crate::app::App;
use crate::command::Command;
use crate::json::Pretty;
use crate::mouse::Hit;
use crate::state::common::Common;
use crate::state::fate;
use crate::state::held::Fit;
use crate::text;
use crate::theme::{Role, Theme};

/// Columns below which queue and message stand one above the other.
const COLUMNS_FOR_TWO: u16 = 70;
/// Rows below which a held message has one line in the queue, and two otherwise.
const ROWS_FOR_TWO_LINES: u16 = 6;
/// Cells of the bar that runs out.
const BAR: u64 = 10;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if app.held.is_zoomed {
        return match app.held.is_on_message {
            true => selected(app, frame, area, theme),
            false => queue(app, frame, area, theme),
        };
    }
    let layout = match area.width >= COLUMNS_FOR_TWO {
        true => Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)]),
        false => Layout::vertical([Constraint::Percentage(40), Constraint::Percentage(60)]),
    };
    let [left, right] = layout.areas(area);
    queue(app, frame, left, theme);
    selected(app, frame, right, theme);
}

fn queue(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let held = app.common.held().len();
    let title = if held == 0 { " Held ".to_owned() } else { format!(" Held: {held} waiting ") };
    let block =
        pane(text::fit(&title, usize::from(area.width.saturating_sub(2)), theme.ascii), !app.held.is_on_message, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if held == 0 {
        return empty(app, frame, inner, theme);
    }
    let rows = if inner.height < ROWS_FOR_TWO_LINES { 1 } else { 2 };
    app.held.cursor.at = app.held.place(&app.common);
    let visible = app.held.cursor.visible(usize::from(inner.height / rows), held);
    let width = usize::from(inner.width);
    for (line, at) in visible.enumerate() {
        let held = &app.common.held()[at];
        let place = Rect { y: inner.y + line as u16 * rows, height: rows, ..inner };
        frame.render_widget(first_line(held, &app.common, width, rows == 1, theme), Rect { height: 1, ..place });
        if rows > 1 {
            let second = second_line(held, &app.common, width, theme);
            frame.render_widget(second, Rect { y: place.y + 1, height: 1, ..place });
        }
        if at == app.held.cursor.at {
            frame.buffer_mut().set_style(place, theme.style(Role::Selected));
        }
        app.hits.push((place, Hit::Line(at)));
    }
}

fn empty(app: &App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let mut lines = match &app.common.recording {
        Some(_) => vec!["this is a recording: nothing waits".to_owned()],
        None => vec!["nothing is held".to_owned()],
    };
    if app.common.recording.is_none() {
        let key = |command| app.keymap.shown(command);
        lines.push(format!("{} holds every message that comes", key(Command::Hold)));
        lines.push(format!("{} holds only what a filter matches", key(Command::HoldWhere)));
    }
    let lines = lines.iter().flat_map(|line| words::wrapped(line, usize::from(area.width), theme.ascii));
    for (line, y) in lines.zip(area.y..area.y + area.height) {
        frame.render_widget(Line::styled(line, theme.style(Role::Faint)), Rect { y, height: 1, ..area });
    }
}

/// `⏸ #143 → create_issue                31 s`
fn first_line(held: &Held, common: &Common, width: usize, is_alone: bool, theme: &Theme) -> Line<'static> {
    let (message, glyphs) = (&held.message, theme.glyphs());
    let is_out = words::is_to_server(message);
    let direction = theme.style(if is_out { Role::ToServer } else { Role::ToClient });
    let arrow = if is_out { glyphs.arrow_to_server } else { glyphs.arrow_to_client };
    let sign = if held.asks.is_some() { "?" } else { glyphs.held };
    let right = match (held.given_up, is_alone) {
        (true, _) => "client gave up".to_owned(),
        (false, true) => format!("{} {}", text::age(common.age(held)), countdown(held, common, theme)),
        (false, false) => text::age(common.age(held)),
    };
    let left = format!(" #{} {arrow} {}", held.sequence, name(message));
    let room = width.saturating_sub(text::width(&right) + 2);
    let left = text::pad(&text::fit(&left, room, theme.ascii), room);
    let role = if held.given_up { Role::Bad } else { Role::Warn };
    Line::from(vec![
        Span::styled(sign, theme.style(Role::Warn)),
        Span::styled(left, direction),
        Span::raw(" "),
        Span::styled(right, theme.style(role)),
    ])
}

/// `   rule no-deletes asks · github    █████░░░░░ 14 s`
fn second_line(held: &Held, common: &Common, width: usize, theme: &Theme) -> Line<'static> {
    let peer = match words::is_to_server(&held.message) {
        true => held.message.server.as_deref(),
        false => held.message.client.as_deref(),
    };
    let right = countdown(held, common, theme);
    let room = width.saturating_sub(text::width(&right) + 4);
    let why = match peer {
        Some(peer) => format!("{} {} {}", why(held), theme.glyphs().dot, text::clean(peer)),
        None => why(held),
    };
    let left = text::pad(&text::fit(&why, room, theme.ascii), room);
    Line::from(vec![
        Span::styled(format!("   {left} "), theme.style(Role::Faint)),
        Span::styled(right, theme.style(Role::Warn)),
    ])
}

/// The tool, or the method where there is none.
fn name(message: &Message) -> String {
    match &message.tool {
        Some(tool) if message.answers.is_none() => text::clean(tool).into_owned(),
        _ => words::what(message),
    }
}

fn why(held: &Held) -> String {
    match (&held.asks, held.why.as_str()) {
        (Some(question), _) => format!("rule {} asks", text::clean(&question.rule)),
        (None, "intercept") => "intercept".to_owned(),
        (None, why) => format!("breakpoint {}", text::clean(why)),
    }
}

/// A bar that fills until a message is forwarded: `████░░░░░░ 26 s`; of a question also its end:
/// `denied in 26 s`.
fn countdown(held: &Held, common: &Common, theme: &Theme) -> String {
    let Some(remaining) = common.remaining(held) else { return "no limit".to_owned() };
    if held.asks.is_some() {
        return format!("{} in {}", fate::at_its_time(held), fate::seconds(remaining));
    }
    let total = (common.age(held) + remaining).max(1);
    let filled = (common.age(held) * BAR / total).min(BAR) as usize;
    let glyphs = theme.glyphs();
    format!(
        "{}{} {}",
        glyphs.bar.repeat(filled),
        glyphs.bar_empty.repeat(BAR as usize - filled),
        fate::seconds(remaining)
    )
}

fn selected(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let sequence = app.held.selected(&app.common);
    let title = sequence.map_or(" Message ".to_owned(), |sequence| format!(" Message #{sequence} "));
    let block = pane(title, app.held.is_on_message, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    app.hits.push((inner, Hit::Beside));
    let Some(held) = sequence.and_then(|sequence| app.common.held_message(sequence)).cloned() else { return };
    if inner.height < 2 || inner.width == 0 {
        return;
    }
    let body = Rect { height: inner.height - 1, ..inner };
    for (line, y) in lines(app, &held, body, theme).into_iter().zip(body.y..body.y + body.height) {
        frame.render_widget(line, Rect { y, height: 1, ..body });
    }
    let row = Rect { y: body.y + body.height, height: 1, ..inner };
    hints::draw(app, frame, row, theme, if held.asks.is_some() { &QUESTION } else { &HELD });
}

const HELD: [(Command, &str); 6] = [
    (Command::Forward, "forward"),
    (Command::Modify, "modify"),
    (Command::Drop, "drop"),
    (Command::Answer, "answer"),
    (Command::Editor, "$EDITOR"),
    (Command::ForwardAll, "all"),
];
const QUESTION: [(Command, &str); 4] = [
    (Command::Approve, "approve"),
    (Command::Deny, "deny"),
    (Command::Modify, "edit and approve"),
    (Command::Editor, "$EDITOR"),
];

/// What is known of the message, then the message.
fn lines(app: &mut App, held: &Held, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let cached = app.common.messages.get(held.sequence).cloned();
    let message = cached.unwrap_or_else(|| Arc::new(held.message.clone()));
    let mut facts = Facts { lines: Vec::new(), width, theme };
    about(&mut facts, held, &app.common);
    validity(&mut facts, app, &message);
    policy(&mut facts, &message, &app.common);
    control(&mut facts, held, &app.common);
    facts.lines.push(Line::raw(""));
    if message.raw.is_none() {
        let trouble = app.held.trouble.as_ref().filter(|(of, _)| *of == held.sequence);
        facts.say(
            Role::Faint,
            match trouble {
                Some((_, words)) => words,
                None if message.raw_omitted => "loading",
                None => "this message is not JSON; the raw view of Traffic shows it",
            },
        );
    }
    let mut lines = facts.lines;
    let json = app.held.shown.pretty(&message).map_or(0, Pretty::len);
    let window = app.held.scroll.visible(height, lines.len() + json);
    let from = window.start.saturating_sub(lines.len())..window.end.saturating_sub(lines.len());
    let json = app.held.shown.pretty(&message).map(|pretty| pretty.pretty_lines(from)).unwrap_or_default();
    lines.drain(..window.start.min(lines.len()));
    lines.truncate(height);
    lines.extend(json.into_iter().map(|spans| spans_line(spans, theme)));
    lines
}

/// Lines of words, each in what room there is.
struct Facts<'a> {
    lines: Vec<Line<'static>>,
    width: usize,
    theme: &'a Theme,
}

impl Facts<'_> {
    fn say(&mut self, role: Role, words: &str) {
        let style = self.theme.style(role);
        let lines = words::wrapped(words, self.width, self.theme.ascii);
        self.lines.extend(lines.into_iter().map(|line| Line::styled(line, style)));
    }
}

fn about(facts: &mut Facts<'_>, held: &Held, common: &Common) {
    let (message, glyphs) = (&held.message, facts.theme.glyphs());
    if held.given_up {
        facts.say(Role::Bad, &format!("{} client gave up: nobody waits for an answer to this any more", glyphs.error));
    }
    let left = common.remaining(held);
    match &held.asks {
        Some(question) => {
            asked(facts, question, message);
            facts.say(
                Role::Warn,
                &match left {
                    Some(left) => {
                        format!("will be {} in {} unless answered", fate::at_its_time(held), fate::seconds(left))
                    }
                    None => "waits for an answer, without a limit".to_owned(),
                },
            );
        }
        None => {
            let age = text::age(common.age(held));
            let held_for = if age == "now" { String::new() } else { format!(", {age}") };
            facts.say(
                Role::Warn,
                &match left {
                    Some(left) => {
                        format!("held by {}{held_for}; will be forwarded in {}", why(held), fate::seconds(left))
                    }
                    None => format!("held by {}{held_for}; waits for a decision, without a limit", why(held)),
                },
            );
        }
    }
    let arrow = if words::is_to_server(message) { glyphs.arrow_to_server } else { glyphs.arrow_to_client };
    let peer = |name: &Option<String>, else_: &str| {
        name.as_deref().map_or(else_.to_owned(), |name| text::clean(name).into_owned())
    };
    let (client, server) = (peer(&message.client, "client"), peer(&message.server, "server"));
    let what = words::what(message);
    facts.say(Role::Text, &format!("{client} {arrow} {server}: {what}, {}", text::human_size(message.size)));
}

/// What a rule asks, in words.
fn asked(facts: &mut Facts<'_>, question: &Question, message: &Message) {
    let client = message.client.as_deref().unwrap_or("the client");
    let does = match (&question.tool, &question.method) {
        (Some(tool), Some(method)) => format!("send {method} for {tool}"),
        (Some(tool), None) => format!("use {tool}"),
        (None, Some(method)) => format!("send {method}"),
        (None, None) => "send this".to_owned(),
    };
    let operation = question.operation.as_deref().map(|word| format!(" (operation: {word})")).unwrap_or_default();
    let words = format!("? rule {} asks: may {client} {does}{operation}?", question.rule);
    facts.say(Role::Title, &text::clean(&words));
    if let Some(message) = &question.message {
        facts.say(Role::Text, &format!("\"{}\"", text::clean(message)));
    }
    if question.in_client {
        facts.say(Role::Faint, "whoever uses the client is asked there as well; the first answer counts");
    }
}

fn validity(facts: &mut Facts<'_>, app: &mut App, message: &Message) {
    let is_call = message.method.as_deref() == Some("tools/call") && message.answers.is_none();
    let (Some(raw), Some(tool), true) = (&message.raw, &message.tool, is_call) else { return };
    let (version, glyphs) = (app.tools.catalogue.version, facts.theme.glyphs());
    app.held.fit.take_if(|fit| (fit.of, fit.version) != (message.sequence, version));
    let tools = &app.tools;
    let ask = || Fit { of: message.sequence, version, said: tools.check_call(raw.get()) };
    match &app.held.fit.get_or_insert_with(ask).said {
        Some((true, words)) => facts.say(Role::Good, &format!("{} {words}", glyphs.ok)),
        Some((false, words)) => facts.say(Role::Bad, &format!("{} {words}", glyphs.error)),
        None if app.tools.knows(tool) => facts.say(Role::Faint, "the tool has no inputSchema"),
        None => facts.say(Role::Faint, "schema not seen yet"),
    }
}

fn policy(facts: &mut Facts<'_>, message: &Message, common: &Common) {
    let governed = common.standing.as_ref().is_some_and(|standing| standing.instance.policy.is_some());
    let Some(verdict) = &message.verdict else {
        return facts.say(Role::Faint, if governed { "policy: no verdict" } else { "policy: there are no rules" });
    };
    let rule = message.rule.as_deref().map_or("no rule matched".to_owned(), |rule| format!("rule {rule}"));
    let operation = message.op.as_deref().map(|op| format!(", operation {op}")).unwrap_or_default();
    facts.say(Role::Text, &text::clean(&format!("policy: {verdict}, {rule}{operation}")));
}

/// Who decides, and what happens if they leave without a decision.
fn control(facts: &mut Facts<'_>, held: &Held, common: &Common) {
    let Some(standing) = &common.standing else { return };
    let otherwise = format!("this {}", fate::once_left(held, common));
    facts.say(
        Role::Faint,
        &match &standing.lease {
            _ if common.has_lease => format!("controls: you; if you leave, {otherwise}"),
            Some(lease) => format!("controls: {}; if they leave, {otherwise}", text::clean(&lease.holder)),
            None => "controls: nobody; T takes control".to_owned(),
        },
    );
}

#[cfg(test)]
mod tests;
