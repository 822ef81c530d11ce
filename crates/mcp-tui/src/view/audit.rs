//! What was decided: the list of decisions over, or beside, the one that is looked at.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::detail::named;
use super::table::{self, Column};
use super::traffic::pane;
use super::words;
use crate::app::App;
use crate::library::Decision;
use crate::mouse::Hit;
use crate::text;
use crate::theme::{Role, Theme};

/// Columns from which list and record stand beside each other.
const COLUMNS_FOR_TWO: u16 = 160;

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Time,
    Verdict,
    Operation,
    Subject,
    Rule,
    Who,
    Parties,
    Outcome,
    Latency,
}

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let layout = match area.width >= COLUMNS_FOR_TWO {
        true => Layout::horizontal([Constraint::Percentage(65), Constraint::Percentage(35)]),
        false => Layout::vertical([Constraint::Percentage(60), Constraint::Percentage(40)]),
    };
    let [over, under] = layout.areas(area);
    let (is_zoomed, is_on_record) = (app.detail.is_zoomed, app.audit.is_on_record);
    if !(is_zoomed && is_on_record) {
        list(app, frame, if is_zoomed { area } else { over }, theme);
    }
    if !is_zoomed || is_on_record {
        record(app, frame, if is_zoomed { area } else { under }, theme);
    }
}

fn list(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let filter = app.audit.filter.as_deref().map(|filter| format!(" {}", text::clean(filter))).unwrap_or_default();
    let again = if app.audit.is_loading && app.audit.decisions.is_some() { " (looking again)" } else { "" };
    let title = text::fit(&format!(" Audit{filter}{again} "), usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, !app.audit.is_on_record, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let len = app.audit.decisions.as_ref().map_or(0, Vec::len);
    if len == 0 || app.audit.trouble.is_some() {
        let words = Paragraph::new(empty(app)).style(theme.style(Role::Faint)).wrap(Wrap { trim: false });
        return frame.render_widget(words, inner);
    }
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(inner);
    let columns = columns(usize::from(inner.width));
    frame.render_widget(table::head(&columns, theme), head);
    let visible = app.audit.cursor.visible(usize::from(body.height), len);
    let decisions = app.audit.decisions.iter().flatten().enumerate();
    for ((at, decision), y) in decisions.skip(visible.start).take(visible.len()).zip(body.y..) {
        let place = Rect { y, height: 1, ..body };
        frame.render_widget(table::line(&columns, theme, |what| value(decision, what, theme)), place);
        if at == app.audit.cursor.at {
            frame.buffer_mut().set_style(place, theme.style(Role::Selected));
        }
        app.hits.push((place, Hit::Line(at)));
    }
}

fn empty(app: &App) -> String {
    let audit = &app.audit;
    let has_rules = app.common.standing.as_ref().is_some_and(|standing| standing.instance.policy.is_some());
    match (&audit.trouble, &audit.filter) {
        (Some(words), _) => text::clean(words).into_owned(),
        _ if audit.is_loading => "loading".to_owned(),
        (None, Some(_)) => "no decision matches; esc takes the filter away".to_owned(),
        (None, None) if has_rules => "nothing was decided yet".to_owned(),
        (None, None) => "no rules judge here, so nothing was decided".to_owned(),
    }
}

fn columns(room: usize) -> Vec<Column<What>> {
    let columns = [
        Column::text(What::Time, "time (UTC)", 14),
        Column::text(What::Verdict, "verdict", 9),
        Column::text(What::Operation, "class", 8),
        Column::text(What::Subject, "tool or method", 18),
        Column::text(What::Rule, "rule", 14),
        Column::text(What::Who, "decided by", 12),
        Column::text(What::Parties, "client to server", 20),
        Column::text(What::Outcome, "outcome", 10),
        Column::number(What::Latency, "took", 8),
    ];
    let by_weight = [
        What::Verdict,
        What::Subject,
        What::Time,
        What::Rule,
        What::Operation,
        What::Who,
        What::Outcome,
        What::Parties,
        What::Latency,
    ];
    table::fitted(&columns, &by_weight, &[What::Subject, What::Rule], room)
}

fn value(decision: &Decision, what: What, theme: &Theme) -> (String, Role) {
    let or_blank = |text: &Option<String>| text.clone().unwrap_or_default();
    match what {
        What::Time => (table::day_and_time(&decision.timestamp, false), Role::Text),
        What::Verdict => verdict(decision, theme),
        What::Operation => (or_blank(&decision.operation), Role::Text),
        What::Subject => (subject(decision), Role::ToServer),
        What::Rule => (or_blank(&decision.rule), Role::Text),
        What::Who => (decision.actor.clone(), Role::Text),
        What::Parties => (parties(decision, theme), Role::Faint),
        What::Outcome => (or_blank(&decision.outcome), Role::Text),
        What::Latency => (decision.latency_ns.map(text::human_time).unwrap_or_default(), Role::Text),
    }
}

fn verdict(decision: &Decision, theme: &Theme) -> (String, Role) {
    let glyphs = theme.glyphs();
    let (sign, role) = match decision.verdict.as_str() {
        "allow" => (glyphs.ok, Role::Good),
        "deny" => (glyphs.denied, Role::Bad),
        "ask" => (glyphs.held, Role::Warn),
        _ => (glyphs.dot, Role::Faint),
    };
    (format!("{sign} {}", decision.verdict), role)
}

fn subject(decision: &Decision) -> String {
    decision.tool.clone().or(decision.method.clone()).unwrap_or_default()
}

fn parties(decision: &Decision, theme: &Theme) -> String {
    let name = |party: &Option<String>| party.clone().unwrap_or_else(|| "?".to_owned());
    format!("{} {} {}", name(&decision.client), theme.glyphs().arrow_to_server, name(&decision.server))
}

fn record(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let title = text::fit(" Record ", usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, app.audit.is_on_record, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    app.hits.push((area, Hit::Beside));
    let Some(decision) = app.audit.selected().filter(|_| app.audit.trouble.is_none()) else { return };
    let lines = facts(decision, app.common.shows(decision.session.as_deref().unwrap_or_default()), theme);
    let visible = app.audit.record.visible(usize::from(inner.height), lines.len());
    for (line, y) in lines.into_iter().skip(visible.start).take(visible.len()).zip(inner.y..) {
        frame.render_widget(line, Rect { y, height: 1, ..inner });
    }
}

/// Everything that was written down.
fn facts(decision: &Decision, is_shown: bool, theme: &Theme) -> Vec<Line<'static>> {
    let (sign, role) = verdict(decision, theme);
    let what = [decision.method.as_deref(), decision.tool.as_deref()];
    let what = what.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let head = text::clean(&format!("{sign} {what}")).into_owned();
    let mut lines = vec![Line::styled(head, theme.style(role))];
    let mut fact = |name: &str, value: Option<String>| lines.extend(value.map(|value| named(name, &value, theme)));
    fact("rule", decision.rule.clone());
    fact("decided by", Some(decision.actor.clone()).filter(|actor| !actor.is_empty()));
    fact("class of operation", decision.operation.clone());
    fact("outcome", decision.outcome.clone());
    fact("client", decision.client.clone());
    fact("server", decision.server.clone());
    fact("took", decision.latency_ns.map(text::human_time));
    fact("time", Some(decision.timestamp.clone()));
    let session = decision.session.as_deref().map(words::short_id);
    let place = if is_shown { "enter leads there" } else { "enter opens that session" };
    let message = session.zip(decision.sequence);
    fact("message", message.map(|(session, sequence)| format!("#{sequence} of session {session}; {place}")));
    fact("audit", Some(decision.audit_id.clone()));
    lines
}
