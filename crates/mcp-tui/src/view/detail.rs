//! The message that is looked at.

use std::sync::Arc;

use mcp_control::api::{Exchange, Explanation, Message};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::traffic::pane;
use super::words;
use crate::app::App;
use crate::json::{self, Label};
use crate::mouse::Hit;
use crate::state::detail::{Detail, View};
use crate::text;
use crate::theme::{Role, Theme};

/// Of the messages that one led to, so many are named.
const MADE_SHOWN: usize = 3;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let title = app.detail.of.map_or(" Detail ".to_owned(), |sequence| title(app, sequence));
    let title = text::fit(&title, usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, app.detail.has_keys, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if inner.height < 2 || inner.width == 0 {
        return;
    }
    tabs(app, frame, Rect { height: 1, ..inner }, theme);
    let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    app.hits.push((body, Hit::Detail));
    let lines = lines(app, body, theme);
    for (line, at) in lines.into_iter().zip(body.y..body.y + body.height) {
        frame.render_widget(line, Rect { y: at, height: 1, ..body });
    }
    if app.detail.view == View::Tree {
        let at = app.detail.cursor.saturating_sub(app.detail.scroll) as u16;
        if at < body.height {
            let row = Rect { y: body.y + at, height: 1, ..body };
            frame.buffer_mut().set_style(row, theme.style(Role::Selected));
        }
    }
}

/// ` Detail #223, from #222 `, ` Detail #222, led to #223 #225 `
fn title(app: &App, sequence: u64) -> String {
    let from = app.traffic.maker(sequence).map(|maker| format!(", from #{maker}")).unwrap_or_default();
    // An answer ends what its request led to.
    let is_answer = app.traffic.rows.get(sequence).is_some_and(|row| row.message.answers.is_some());
    let made: Vec<u64> = app.traffic.made(sequence).filter(|_| !is_answer).take(MADE_SHOWN + 1).collect();
    let mut led_to: String = made.iter().take(MADE_SHOWN).map(|made| format!(" #{made}")).collect();
    if !made.is_empty() {
        let more = if made.len() > MADE_SHOWN { " and more" } else { "" };
        led_to = format!(", led to{led_to}{more}");
    }
    format!(" Detail #{sequence}{from}{led_to} ")
}

fn tabs(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let mut x = area.x;
    for view in View::ALL {
        let is_shown = app.detail.view == view;
        let label = if is_shown { format!("[{}]", view.title()) } else { format!(" {} ", view.title()) };
        let width = label.len() as u16;
        if x + width > area.x + area.width {
            break;
        }
        let place = Rect { x, width, ..area };
        let role = if is_shown { Role::Active } else { Role::Faint };
        frame.render_widget(Line::styled(label, theme.style(role)), place);
        app.hits.push((place, Hit::Tab(view)));
        x += width;
    }
}

fn lines(app: &mut App, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let faint = |words: String| vec![Line::styled(words, theme.style(Role::Faint))];
    let Some(sequence) = app.detail.of else { return faint("nothing is selected".into()) };
    let Some(message) = app.common.messages.get(sequence).cloned() else {
        let trouble = app.detail.trouble.as_ref().filter(|(of, _)| *of == sequence);
        return faint(trouble.map_or("loading".to_owned(), |(_, words)| text::clean(words).into_owned()));
    };
    let (height, width) = (usize::from(area.height), usize::from(area.width));
    let detail = &mut app.detail;
    match detail.view {
        View::Json => json_lines(detail, &message, height, theme),
        View::Tree => tree_lines(detail, &message, height, width, theme),
        View::Raw => raw_lines(detail, &message, height, width),
        View::Diff => {
            let other = detail.other.and_then(|other| app.common.messages.get(other).cloned());
            diff_lines(detail, &message, other, height, width, theme)
        }
        View::Headers => {
            let lines = header_lines(&message, detail.exchange.as_ref(), theme);
            window(detail, lines, height)
        }
        View::Policy => {
            let lines = policy_lines(&message, detail.explanation.as_ref(), theme);
            window(detail, lines, height)
        }
        View::Pair => {
            let pair = detail.pair.and_then(|pair| app.common.messages.get(pair).cloned());
            pair_lines(detail, pair, height, theme)
        }
    }
}

/// A window of lines that were all made.
fn window(detail: &mut Detail, lines: Vec<Line<'static>>, height: usize) -> Vec<Line<'static>> {
    let top = detail.top(height, lines.len());
    lines.into_iter().skip(top).take(height).collect()
}

fn json_lines(detail: &mut Detail, message: &Message, height: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(lines) = detail.shown.pretty(message).map(json::Pretty::len) else {
        return raw_lines(detail, message, height, 200);
    };
    let top = detail.top(height, lines);
    let pretty = detail.shown.pretty(message).map(|pretty| pretty.pretty_lines(top..top + height));
    pretty.unwrap_or_default().into_iter().map(|spans| spans_line(spans, theme)).collect()
}

/// Spans of JSON in their colours.
pub(crate) fn spans_line(spans: Vec<json::Span>, theme: &Theme) -> Line<'static> {
    Line::from_iter(spans.into_iter().map(|span| Span::styled(span.text, theme.style(json_role(span.kind)))))
}

pub(crate) fn json_role(kind: json::Kind) -> Role {
    match kind {
        json::Kind::Key => Role::JsonKey,
        json::Kind::String => Role::JsonString,
        json::Kind::Number => Role::JsonNumber,
        json::Kind::Bool | json::Kind::Null => Role::JsonWord,
        json::Kind::Punct => Role::Faint,
        json::Kind::Plain => Role::Text,
        json::Kind::Fault => Role::Bad,
    }
}

fn tree_lines(
    detail: &mut Detail,
    message: &Message,
    height: usize,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let Some(lines) = detail.shown.tree(message).map(json::Tree::len) else {
        return raw_lines(detail, message, height, width);
    };
    let top = detail.top(height, lines);
    let rows = detail.shown.tree(message).map(|tree| tree.rows(top..top + height)).unwrap_or_default();
    rows.into_iter().map(|row| tree_line(row, theme)).collect()
}

fn tree_line(row: json::Row, theme: &Theme) -> Line<'static> {
    let glyphs = theme.glyphs();
    let fold = match row.is_open {
        Some(true) => glyphs.unfolded,
        Some(false) => glyphs.folded,
        None => " ",
    };
    let mut spans =
        vec![Span::raw("  ".repeat(row.depth.min(30))), Span::styled(format!("{fold} "), theme.style(Role::Faint))];
    match row.key {
        Some(Label::Name(name)) => spans.push(Span::styled(format!("{name}  "), theme.style(Role::JsonKey))),
        Some(Label::Index(index)) => spans.push(Span::styled(format!("[{index}]  "), theme.style(Role::Faint))),
        None => {}
    }
    spans.extend(row.preview.into_iter().map(|span| Span::styled(span.text, theme.style(json_role(span.kind)))));
    Line::from(spans)
}

fn raw_lines(detail: &mut Detail, message: &Message, height: usize, width: usize) -> Vec<Line<'static>> {
    let wanted = detail.scroll + 2 * height;
    let wrapped = detail.shown.raw(message, width);
    wrapped.look_to(wanted);
    let known = wrapped.known().0;
    let top = detail.top(height, known);
    let lines = detail.shown.raw(message, width).lines(top..top + height);
    lines.into_iter().map(Line::raw).collect()
}

fn diff_lines(
    detail: &mut Detail,
    message: &Message,
    other: Option<Arc<Message>>,
    height: usize,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let title = match &other {
        Some(other) => format!("#{} against #{}", other.sequence, message.sequence),
        None => "as it came, against as it was sent".to_owned(),
    };
    let Some(diff) = detail.shown.diff(message, other.as_deref()) else {
        let words = "it left as it came; mark another with the space bar, and `c` compares the two";
        return vec![Line::styled(words, theme.style(Role::Faint))];
    };
    let mut lines = vec![Line::styled(title, theme.style(Role::Faint))];
    lines.extend(super::diff::lines(diff, width, theme));
    window(detail, lines, height)
}

fn header_lines(message: &Message, exchange: Option<&Result<Exchange, String>>, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = about(message, theme);
    lines.push(Line::raw(""));
    match exchange {
        None => lines.push(Line::styled("loading", theme.style(Role::Faint))),
        Some(Err(words)) => lines.push(Line::styled(text::clean(words).into_owned(), theme.style(Role::Faint))),
        Some(Ok(exchange)) => {
            let method = exchange.method.as_deref().unwrap_or("?");
            let target = exchange.target.as_deref().unwrap_or("");
            lines.push(Line::styled(text::clean(&format!("{method} {target}")).into_owned(), theme.style(Role::Title)));
            lines.extend(exchange.request.iter().map(|header| named(&header.name, &header.value, theme)));
            lines.push(Line::raw(""));
            let status = exchange.status.map_or("no answer yet".to_owned(), |status| format!("HTTP {status}"));
            lines.push(Line::styled(status, theme.style(Role::Title)));
            lines.extend(exchange.response.iter().map(|header| named(&header.name, &header.value, theme)));
            let ending = exchange.ending.iter().map(|ending| named("ending", ending, theme));
            lines.extend(ending);
        }
    }
    lines
}

/// What the proxy knows of a message beside its content.
fn about(message: &Message, theme: &Theme) -> Vec<Line<'static>> {
    let mut facts: Vec<(&str, String)> = vec![
        ("what", words::what(message)),
        ("time", message.timestamp.clone()),
        ("size", text::human_size(message.size)),
        ("transport", message.transport.as_str().to_owned()),
        ("conversation", message.conversation.to_string()),
    ];
    let mut add = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    add("server", message.upstream.clone());
    add("made of", message.parent.map(|parent| format!("#{parent}")));
    add("client", message.client.clone());
    add("revision", message.revision.clone());
    add("answers", message.answers.map(|answers| format!("#{answers}")));
    add("operation", message.operation.map(|operation| format!("#{operation}, round {}", message.round.unwrap_or(1))));
    add("took", message.duration_ns.map(text::human_time));
    add("held", message.held_ns.map(text::human_time));
    add("outcome", message.outcome.clone());
    add("decided by", message.decided_by.clone().filter(|by| !by.is_empty()));
    add("event id", message.event_id.clone());
    add("opaque", message.opaque.clone());
    add("origin", message.origin.clone());
    add("mark", message.mark.clone());
    add("note", message.note.clone());
    facts.into_iter().map(|(name, value)| named(name, &value, theme)).collect()
}

pub(crate) fn named(name: &str, value: &str, theme: &Theme) -> Line<'static> {
    let name = Span::styled(format!("{}: ", text::clean(name)), theme.style(Role::JsonKey));
    Line::from(vec![name, Span::raw(text::clean(value).into_owned())])
}

fn policy_lines(
    message: &Message,
    explanation: Option<&Result<Explanation, String>>,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut fact = |name: &str, value: &Option<String>| {
        lines.extend(value.as_ref().map(|value| named(name, value, theme)));
    };
    fact("verdict", &message.verdict);
    fact("rule", &message.rule);
    fact("operation", &message.op);
    fact("audit", &message.audit_id);
    lines.push(Line::raw(""));
    match explanation {
        None => lines.push(Line::styled("loading", theme.style(Role::Faint))),
        Some(Err(words)) => lines.push(Line::styled(text::clean(words).into_owned(), theme.style(Role::Faint))),
        Some(Ok(explanation)) => {
            if explanation.rules_changed {
                lines.push(Line::styled("other rules count now than when it came", theme.style(Role::Warn)));
            }
            lines.extend(explanation.reasons.iter().map(|reason| Line::raw(text::clean(reason).into_owned())));
            for rule in &explanation.rules {
                lines.push(rule_line(rule, theme));
            }
            if explanation.rules_omitted > 0 {
                lines.push(Line::raw(format!("and {} more rules", explanation.rules_omitted)));
            }
            lines.push(Line::raw(format!("where no rule decides: {}", explanation.default.as_str())));
        }
    }
    lines
}

fn rule_line(rule: &mcp_control::api::ExplainedRule, theme: &Theme) -> Line<'static> {
    let (sign, role) = match (rule.decides, rule.matches) {
        (true, _) => ("=>", Role::Warn),
        (false, true) => (" +", Role::Text),
        (false, false) => ("  ", Role::Faint),
    };
    let verdict = rule.verdict.as_str();
    let note = rule.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
    let words = format!("{sign} {verdict} {}: {}{note}", rule.name, rule.filter);
    Line::styled(text::clean(&words).into_owned(), theme.style(role))
}

fn pair_lines(detail: &mut Detail, pair: Option<Arc<Message>>, height: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(pair) = pair else {
        let words = if detail.pair.is_some() { "loading" } else { "no message belongs to this one yet" };
        return vec![Line::styled(words, theme.style(Role::Faint))];
    };
    let head = Line::styled(format!("#{} {}", pair.sequence, words::what(&pair)), theme.style(Role::Title));
    let Some(lines) = detail.shown.pair(&pair).map(json::Pretty::len) else { return vec![head] };
    let top = detail.top(height.saturating_sub(1), lines);
    let shown = detail.shown.pair(&pair).map(|pretty| pretty.pretty_lines(top..top + height)).unwrap_or_default();
    std::iter::once(head).chain(shown.into_iter().map(|spans| spans_line(spans, theme))).collect()
}
