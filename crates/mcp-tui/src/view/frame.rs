//! What is around every screen: the title, the row of the filter and the mode, the buttons, the keys.

use mcp_control::api::{Mode, Transport};
use mcp_wire::revision::{Era, Revision};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::words;
use crate::app::App;
use crate::command::{Command, Screen};
use crate::mouse::Hit;
use crate::text;
use crate::theme::{Role, Theme};

/// ` mcp-proxy — stdio — python server.py … [INTERCEPT] ● rec 412 msgs 2 held`
pub(crate) fn title(app: &App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let right = standing(app, theme);
    let right_width = right.width() as u16;
    let room = usize::from(area.width.saturating_sub(right_width + 1));
    let left = text::fit(&about(app, room, theme), room, theme.ascii);
    frame.render_widget(Line::styled(left, theme.style(Role::Title)), area);
    let at = area.x + area.width.saturating_sub(right_width);
    frame.render_widget(right, Rect { x: at, width: right_width.min(area.width), ..area });
}

/// Transport or listener, target, client and revision. The target may be long, and gives way.
fn about(app: &App, room: usize, theme: &Theme) -> String {
    /// What is left of a target at least.
    const TARGET_CELLS_MIN: usize = 12;
    if let Some(row) = &app.common.recording {
        let name = row.name.as_deref().unwrap_or(&row.server);
        return format!(" mcp-proxy — recording {} — {}", words::short_id(&row.id), text::clean(name));
    }
    let Some(standing) = &app.common.standing else { return " mcp-proxy — connecting".to_owned() };
    let instance = &standing.instance;
    // Where clients connect; a gateway's servers have each a transport of their own.
    let transport = match (instance.listen.as_str(), instance.transport) {
        ("stdio", Transport::Stdio) => "stdio".to_owned(),
        ("stdio", Transport::Sse) => "sse".to_owned(),
        ("stdio", Transport::StreamableHttp) => "streamable-http".to_owned(),
        (address, _) => text::clean(address).into_owned(),
    };
    let target = instance.server_command.as_deref().or(instance.server_url.as_deref()).unwrap_or_default();
    let name = instance.name.as_deref().map(|name| format!("{}: ", text::clean(name))).unwrap_or_default();
    let speaker = instance.conversations.last();
    let client = speaker.and_then(|speaker| speaker.client.as_deref()).map(|client| text::clean(client).into_owned());
    let revision = speaker.and_then(|speaker| speaker.revision.as_deref()).map(era);
    let who: Vec<String> = [client, revision].into_iter().flatten().collect();
    let who = if who.is_empty() { String::new() } else { format!(" — {}", who.join(" · ")) };
    let before = format!(" mcp-proxy — {transport} — {name}");
    let after = format!("{who} — {}", words::short_id(&instance.id));
    let left = room.saturating_sub(text::width(&before) + text::width(&after)).max(TARGET_CELLS_MIN);
    format!("{before}{}{after}", text::fit(target, left, theme.ascii))
}

/// `modern 2026-07-28`, `legacy 2025-11-25`
fn era(revision: &str) -> String {
    let era = Revision::parse(revision.as_bytes()).map_or("", |known| match known.era() {
        Era::Modern => "modern ",
        Era::Legacy => "legacy ",
    });
    format!("{era}{}", text::clean(revision))
}

fn standing(app: &App, theme: &Theme) -> Line<'static> {
    let (common, glyphs) = (&app.common, theme.glyphs());
    let mut spans = Vec::new();
    let mut say = |text: String, role| {
        spans.push(Span::styled(text, theme.style(role)));
        spans.push(Span::raw(" "));
    };
    if let Some(standing) = common.standing.as_ref().filter(|_| common.recording.is_none()) {
        let held = standing.held.len();
        match (&common.ended, &common.lost) {
            (Some(_), _) => say("ended".into(), Role::Bad),
            (None, Some(_)) => say("connection lost".into(), Role::Bad),
            _ if standing.mode == Mode::Intercept => say("[INTERCEPT]".into(), Role::Warn),
            _ if !standing.breakpoints.is_empty() => say(format!("[BREAK {}]", standing.breakpoints.len()), Role::Warn),
            _ => {}
        }
        match &standing.lease {
            _ if common.has_lease => {}
            Some(lease) => say(format!("controls: {}", text::clean(&lease.holder)), Role::Faint),
            None => say("watching".into(), Role::Faint),
        }
        if standing.instance.session.is_some() {
            say(format!("{} rec", glyphs.recording), Role::Faint);
        }
        say(format!("{} msgs", app.traffic.newest), Role::Text);
        if held > 0 {
            say(format!("{} {held} held", glyphs.held), Role::Warn);
        }
    } else {
        say(format!("{} msgs", app.traffic.newest), Role::Text);
    }
    Line::from(spans)
}

/// ` [Filter: ___]  [Passthrough] [Intercept]`, or what was said last.
pub(crate) fn filter_row(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if area.height == 0 {
        return;
    }
    if let Some(line) = progress(app, theme) {
        return frame.render_widget(line, area);
    }
    if let Some(word) = &app.common.word {
        let role = if word.is_bad { Role::Bad } else { Role::Good };
        let text = text::fit(&format!(" {}", word.text), usize::from(area.width), theme.ascii);
        return frame.render_widget(Line::styled(text, theme.style(role)), area);
    }
    let filter = app.traffic.filter.clone().unwrap_or_default();
    let mode = app.common.mode();
    let chosen = |is_it: bool| theme.style(if is_it { Role::Warn } else { Role::Faint });
    let shown = match filter.is_empty() {
        true => "_".repeat(12),
        false => text::fit(&text::clean(&filter), usize::from(area.width).saturating_sub(40).max(8), theme.ascii),
    };
    let mark = |is_it: bool, name: &str| if is_it { format!("[{name}*]") } else { format!("[{name}]") };
    let (filter, passes) = (format!("[Filter: {shown}]"), mode == Mode::Passthrough);
    let style = theme.style(if app.traffic.filter.is_some() { Role::Warn } else { Role::Text });
    let buttons = [
        (filter, style, Command::Filter),
        (mark(passes, "Passthrough"), chosen(passes), Command::Hold),
        (mark(!passes, "Intercept"), chosen(!passes), Command::Hold),
    ];
    draw_buttons(app, frame, area, &buttons);
}

/// A bar for work that takes its time.
fn progress(app: &App, theme: &Theme) -> Option<Line<'static>> {
    let job = app.common.job.as_ref()?;
    let (done, total) = job.work.done();
    let glyphs = theme.glyphs();
    let seconds = (app.common.now.saturating_sub(job.since)) as f64 / 1000.0;
    let rate = if seconds > 0.2 { format!(", {:.0}/s", done as f64 / seconds) } else { String::new() };
    let bar = match total {
        0 => String::new(),
        total => {
            let filled = (done.min(total) * 20 / total) as usize;
            format!("{}{} ", glyphs.bar.repeat(filled), glyphs.bar_empty.repeat(20 - filled))
        }
    };
    let of = if total > 0 { format!(" of {total}") } else { String::new() };
    let text = format!(" {} {bar}{done}{of}{rate}   esc: cancel", job.title);
    Some(Line::styled(text, theme.style(Role::Warn)))
}

pub(crate) fn buttons(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if area.height == 0 {
        return;
    }
    let named = [
        ("Forward", Command::Forward),
        ("Modify", Command::Modify),
        ("Drop", Command::Drop),
        ("Replay", Command::Replay),
        ("Save", Command::Save),
        ("Load", Command::Load),
        ("Export", Command::Export),
    ];
    let can_decide = !app.common.held().is_empty();
    let buttons: Vec<_> = named
        .into_iter()
        .map(|(name, command)| {
            let decides = matches!(command, Command::Forward | Command::Modify | Command::Drop);
            let role = if decides && !can_decide { Role::Faint } else { Role::Text };
            (format!("[{name}]"), theme.style(role), command)
        })
        .collect();
    draw_buttons(app, frame, area, &buttons);
}

fn draw_buttons(app: &mut App, frame: &mut Frame<'_>, area: Rect, buttons: &[(String, Style, Command)]) {
    let mut x = area.x + 1;
    for (label, style, command) in buttons {
        let width = text::width(label) as u16;
        if x + width > area.x + area.width {
            break;
        }
        let place = Rect { x, width, ..area };
        frame.render_widget(Line::styled(label.clone(), *style), place);
        app.hits.push((place, Hit::Command(*command)));
        x += width + 1;
    }
}

/// `?:Help`, every screen's key and the keys of the seed's row, each with its name as far as they fit.
pub(crate) fn keys(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if area.height == 0 {
        return;
    }
    let mut x = area.x;
    for entry in fitted(app, usize::from(area.width)) {
        let width = entry.cells() as u16;
        let place = Rect { x, width, ..area };
        let role = if entry.is_here { Role::Active } else { Role::Text };
        let (key, label) = match entry.named {
            Named::No => continue,
            Named::ByKey => (entry.key, String::new()),
            Named::InFull => (format!("{}:", entry.key), entry.label.to_owned()),
        };
        let spans = [Span::raw(" "), Span::styled(key, theme.style(Role::Key)), Span::styled(label, theme.style(role))];
        frame.render_widget(Line::from_iter(spans), place);
        app.hits.push((place, entry.hit));
        x += width;
    }
}

/// A key in the last row.
struct Entry {
    key: String,
    label: &'static str,
    hit: Hit,
    is_here: bool,
    named: Named,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    No,
    ByKey,
    InFull,
}

impl Entry {
    fn new(key: String, label: &'static str, hit: Hit) -> Self {
        Self { key, label, hit, is_here: false, named: Named::No }
    }

    /// With the blank before it.
    fn cells(&self) -> usize {
        match self.named {
            Named::No => 0,
            Named::ByKey => 1 + text::width(&self.key),
            Named::InFull => 2 + text::width(&self.key) + text::width(self.label),
        }
    }
}

/// The entries of the last row in their order. Help comes first in width too, then the screens' keys, the
/// name of the current one, leaving, the other commands, and the names of the other screens.
fn fitted(app: &App, room: usize) -> Vec<Entry> {
    let commands = [
        (Command::Help, "?", "Help"),
        (Command::Filter, "F2", "Filter"),
        (Command::Forward, "F5", "Forward"),
        (Command::Modify, "F6", "Modify"),
        (Command::Drop, "F8", "Drop"),
        (Command::Detach, "Q", "Quit"),
    ];
    let quit = commands.len() - 1;
    let mut entries: Vec<Entry> = commands
        .into_iter()
        .map(|(command, key, label)| {
            let keys = app.keymap.keys_of(command);
            let key = keys.iter().map(ToString::to_string).find(|other| other == key);
            Entry::new(key.unwrap_or(app.keymap.shown(command)), label, Hit::Command(command))
        })
        .chain(Screen::ALL.into_iter().map(|screen| Entry {
            is_here: app.common.screen == screen,
            ..Entry::new(screen.number().to_string(), screen.title(), Hit::Screen(screen))
        }))
        .collect();
    let (screens, here) = (commands.len()..entries.len(), entries.iter().position(|entry| entry.is_here));
    let by_weight = [(0, Named::ByKey), (0, Named::InFull)]
        .into_iter()
        .chain(screens.clone().map(|screen| (screen, Named::ByKey)))
        .chain(here.map(|here| (here, Named::InFull)))
        .chain([quit].into_iter().chain(1..quit).map(|command| (command, Named::InFull)))
        .chain(screens.map(|screen| (screen, Named::InFull)));
    let mut used = 0;
    for (at, named) in by_weight {
        let (before, cells) = (entries[at].named, entries[at].cells());
        entries[at].named = named;
        match used + entries[at].cells() - cells {
            needed if needed <= room => used = needed,
            _ => entries[at].named = before,
        }
    }
    entries
}
