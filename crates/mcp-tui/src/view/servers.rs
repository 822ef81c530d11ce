//! The servers of a gateway: the list over, or beside, what is known of one.

use mcp_control::api::{Server, ServerState, Transport};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::detail::named;
use super::table::{self, Column};
use super::traffic::pane;
use super::{hints, words};
use crate::app::App;
use crate::command::Command;
use crate::json::Wrap;
use crate::mouse::Hit;
use crate::text;
use crate::theme::{Role, Theme};

/// Columns from which list and facts stand beside each other.
const COLUMNS_FOR_TWO: u16 = 190;
/// Lines of last words that are shown; a gateway keeps fewer.
const LAST_WORDS_MAX: usize = 1_000;
/// Values that a gateway has of five minutes, and the cells they take in the list.
const SLICES: usize = 30;
const SPARK_CELLS: usize = 10;
/// From which mean on a bar is one step higher, in microseconds: the same for all, so that they compare.
const STEPS_US: [u64; 7] = [3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000];

const HINTS: [(Command, &str); 4] = [
    (Command::RestartServer, "restart"),
    (Command::DisableServer, "disable or enable"),
    (Command::NextPane, "other pane"),
    (Command::Copy, "copy"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Id,
    State,
    Era,
    Transport,
    Tools,
    Calls,
    Latency,
    Errors,
    Restarts,
    Words,
}

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let layout = match area.width >= COLUMNS_FOR_TWO {
        true => Layout::horizontal([Constraint::Percentage(65), Constraint::Percentage(35)]),
        false => Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]),
    };
    let [over, under] = layout.areas(area);
    let (is_zoomed, is_on_facts) = (app.detail.is_zoomed, app.servers.is_on_facts && empty(app).is_none());
    if !(is_zoomed && is_on_facts) {
        list(app, frame, if is_zoomed { area } else { over }, theme);
    }
    if !is_zoomed || is_on_facts {
        facts(app, frame, if is_zoomed { area } else { under }, theme);
    }
}

fn list(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let title = text::fit(&title(app), usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, !app.servers.is_on_facts, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let len = app.servers.servers.as_ref().map_or(0, Vec::len);
    if let Some(empty) = empty(app) {
        return say(frame, inner, &empty, theme);
    }
    let inner = hints::below(app, frame, inner, theme, &HINTS);
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(inner);
    let columns = columns(usize::from(inner.width));
    frame.render_widget(table::head(&columns, theme), head);
    let visible = app.servers.cursor.visible(usize::from(body.height), len);
    let servers = app.servers.servers.iter().flatten().enumerate();
    for ((at, server), y) in servers.skip(visible.start).take(visible.len()).zip(body.y..) {
        let place = Rect { y, height: 1, ..body };
        frame.render_widget(table::line(&columns, theme, |what| value(server, what, theme)), place);
        if at == app.servers.cursor.at {
            frame.buffer_mut().set_style(place, theme.style(Role::Selected));
        }
        app.hits.push((place, Hit::Line(at)));
    }
}

/// ` Servers: 2 of 3 ready `
fn title(app: &App) -> String {
    let Some(servers) = app.servers.servers.as_ref().filter(|_| empty(app).is_none()) else {
        return " Servers ".to_owned();
    };
    let ready = servers.iter().filter(|server| server.state == ServerState::Ready).count();
    let again = if app.servers.trouble.is_some() { " (not told any more)" } else { "" };
    format!(" Servers: {ready} of {} ready{again} ", servers.len())
}

/// Why there is no list.
fn empty(app: &App) -> Option<String> {
    let servers = &app.servers;
    if app.common.recording.is_some() {
        return Some("servers are shown while the proxy runs; this is a recording".to_owned());
    }
    if servers.no_gateway.is_some() {
        return Some("this instance has one server only; a gateway (`mcp-proxy serve`) has many".to_owned());
    }
    match (&servers.servers, &servers.trouble) {
        (None, Some(words)) => Some(text::clean(words).into_owned()),
        (None, None) if app.common.ended.is_some() => Some("the proxy has ended".to_owned()),
        (None, None) => Some("loading".to_owned()),
        (Some(list), _) if list.is_empty() => Some("this gateway has no servers".to_owned()),
        (Some(_), _) => None,
    }
}

fn say(frame: &mut Frame<'_>, area: Rect, words: &str, theme: &Theme) {
    let lines = words::wrapped(words, usize::from(area.width), theme.ascii);
    for (line, y) in lines.into_iter().zip(area.y..area.y + area.height) {
        frame.render_widget(Line::styled(line, theme.style(Role::Faint)), Rect { y, height: 1, ..area });
    }
}

fn columns(room: usize) -> Vec<Column<What>> {
    let columns = [
        Column::text(What::Id, "server", 11),
        Column::text(What::State, "state", 14),
        Column::text(What::Era, "era", 6),
        Column::text(What::Transport, "over", 5),
        Column::number(What::Tools, "tools", 5),
        Column::number(What::Calls, "calls/min", 9),
        Column::text(What::Latency, "latency (5 min)", SPARK_CELLS + 8),
        Column::number(What::Errors, "errors", 6),
        Column::number(What::Restarts, "restarts", 8),
        Column::text(What::Words, "last words", 18),
    ];
    let by_weight = [
        What::Id,
        What::State,
        What::Latency,
        What::Calls,
        What::Errors,
        What::Restarts,
        What::Tools,
        What::Era,
        What::Transport,
        What::Words,
    ];
    table::fitted(&columns, &by_weight, &[What::Id, What::Words], room)
}

fn value(server: &Server, what: What, theme: &Theme) -> (String, Role) {
    let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let troubled = |count: u64| if count > 0 { Role::Warn } else { Role::Text };
    match what {
        What::Id => (format!("{} {}", sign(server.state, theme), server.id), role(server.state)),
        What::State => (state(server), role(server.state)),
        What::Era => (server.era.map_or("-", |era| era.as_str()).to_owned(), Role::Text),
        What::Transport => (transport(server.transport).to_owned(), Role::Text),
        What::Tools => (count(server.tools), Role::Text),
        What::Calls => (server.calls.per_minute.to_string(), Role::Text),
        What::Latency => {
            let latest = server.calls.latest_us().map(time).unwrap_or_default();
            (format!("{} {latest}", spark(&server.calls.latency_us, SPARK_CELLS, theme)), Role::ToServer)
        }
        What::Errors => (server.calls.errors.to_string(), troubled(server.calls.errors)),
        What::Restarts => (server.restarts.to_string(), troubled(server.restarts)),
        What::Words => {
            let last = server.last_words.as_deref().and_then(|words| words.trim_end().lines().next_back());
            (last.unwrap_or_default().to_owned(), Role::Faint)
        }
    }
}

/// `ready`, `restarting 8s`
fn state(server: &Server) -> String {
    match server.retry_after_ms {
        Some(ms) => format!("{} {}s", server.state.as_str(), ms.div_ceil(1_000)),
        None => server.state.as_str().to_owned(),
    }
}

fn sign(state: ServerState, theme: &Theme) -> &'static str {
    let glyphs = theme.glyphs();
    match state {
        ServerState::Ready => glyphs.full,
        ServerState::Starting | ServerState::Restarting | ServerState::NotResponding | ServerState::Failing => {
            glyphs.half
        }
        ServerState::Stopped => glyphs.hollow,
        ServerState::Down | ServerState::NeedsLogin => glyphs.error,
        ServerState::Disabled => glyphs.dot,
    }
}

fn role(state: ServerState) -> Role {
    match state {
        ServerState::Ready => Role::Good,
        ServerState::Starting | ServerState::Restarting | ServerState::NotResponding | ServerState::Failing => {
            Role::Warn
        }
        ServerState::Down | ServerState::NeedsLogin => Role::Bad,
        ServerState::Stopped | ServerState::Disabled => Role::Faint,
    }
}

fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Stdio => "stdio",
        Transport::Sse => "sse",
        Transport::StreamableHttp => "http",
    }
}

fn time(us: u64) -> String {
    text::human_time(us.saturating_mul(1_000))
}

/// The last five minutes in so many cells, now at the right end; blank where nothing was answered.
fn spark(means: &[Option<u64>], cells: usize, theme: &Theme) -> String {
    let known = &means[means.len().saturating_sub(SLICES)..];
    let per_cell = SLICES.div_ceil(cells.max(1));
    let levels = &theme.glyphs().levels;
    let mut bars: Vec<&str> = known
        .rchunks(per_cell)
        .map(|slices| match slices.iter().flatten().max() {
            Some(mean) => levels[STEPS_US.iter().filter(|step| mean >= step).count()],
            None => " ",
        })
        .collect();
    bars.resize(SLICES.div_ceil(per_cell), " ");
    bars.into_iter().rev().collect()
}

fn facts(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let block = pane(
        text::fit(" Server ", usize::from(area.width.saturating_sub(2)), theme.ascii),
        app.servers.is_on_facts,
        theme,
    );
    let inner = block.inner(area);
    frame.render_widget(block, area);
    app.hits.push((area, Hit::Beside));
    let Some(server) = app.servers.selected().filter(|_| empty(app).is_none()) else { return };
    let mut lines = about(server, usize::from(inner.width), theme);
    if let Some(trouble) = &app.servers.trouble {
        lines.insert(0, Line::styled(text::clean(trouble).into_owned(), theme.style(Role::Bad)));
    }
    let visible = app.servers.facts.visible(usize::from(inner.height), lines.len());
    for (line, y) in lines.into_iter().skip(visible.start).take(visible.len()).zip(inner.y..) {
        frame.render_widget(line, Rect { y, height: 1, ..inner });
    }
}

/// Everything that is known of it.
fn about(server: &Server, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let glyphs = theme.glyphs();
    let head = format!("{} {} {} {}", sign(server.state, theme), server.id, glyphs.dot, server.state.as_str());
    let mut lines = vec![Line::styled(text::clean(&head).into_owned(), theme.style(role(server.state)))];
    for (at, line) in server.why.iter().flat_map(|why| whole(why, width.saturating_sub(5), theme)).enumerate() {
        lines.push(match at {
            0 => named("why", &line, theme),
            _ => Line::raw(format!("     {line}")),
        });
    }
    let mut fact = |name: &str, value: Option<String>| lines.extend(value.map(|value| named(name, &value, theme)));
    fact("retry in", server.retry_after_ms.map(|ms| text::human_time(ms.saturating_mul(1_000_000))));
    let speaks = server.era.map_or("not known yet", |era| era.as_str());
    fact("speaks", Some(format!("{speaks}, over {}", server.transport.as_str())));
    fact("offers", offers(server));
    fact("clients", Some(format!("{}, on {}", server.clients, counted(server.instances, "instance"))));
    let calls = &server.calls;
    let waiting = if server.in_flight > 0 { format!(", {} not answered yet", server.in_flight) } else { String::new() };
    fact(
        "calls",
        Some(format!(
            "{}, {} in the last minute, {}{waiting}",
            calls.total,
            calls.per_minute,
            counted(calls.errors, "error")
        )),
    );
    fact("restarts", Some(server.restarts.to_string()));
    if let Some(latest) = calls.latest_us() {
        let slowest = format!(" {}, slowest {}", time(latest), time(calls.longest_us));
        lines.push(Line::from(vec![
            Span::styled("latency: ", theme.style(Role::JsonKey)),
            Span::styled(spark(&calls.latency_us, SLICES, theme), theme.style(Role::ToServer)),
            Span::raw(slowest),
        ]));
    }
    if let Some(said) = &server.last_words {
        lines.push(Line::styled("last words:", theme.style(Role::JsonKey)));
        lines
            .extend(whole(said, width.saturating_sub(2), theme).into_iter().map(|line| Line::raw(format!("  {line}"))));
    }
    lines
}

/// `34 tools, 2 prompts, 5 resources`, as far as that is known.
fn offers(server: &Server) -> Option<String> {
    let named = [(server.tools, "tool"), (server.prompts, "prompt"), (server.resources, "resource")];
    let known: Vec<String> =
        named.into_iter().filter_map(|(count, name)| count.map(|count| counted(count, name))).collect();
    Some(known.join(", ")).filter(|known| !known.is_empty())
}

fn counted(count: u64, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// All of a text of somebody else's, in lines of so many cells. Clean.
fn whole(words: &str, cells: usize, theme: &Theme) -> Vec<String> {
    let lines = Wrap::new(words.trim_end(), cells).lines(0..LAST_WORDS_MAX);
    lines.into_iter().map(|line| if theme.ascii { text::ascii(&line).into_owned() } else { line }).collect()
}
