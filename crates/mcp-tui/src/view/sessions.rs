//! Recordings: the list of them, what was found in them, and where two of them differ.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::hints;
use super::table::{self, Column};
use super::traffic::pane;
use super::words;
use crate::app::App;
use crate::command::Command;
use crate::library::{ComparedLine, Hit as Found, SessionRow};
use crate::mouse::Hit;
use crate::state::sessions::{Compared, Hits, Over};
use crate::text;
use crate::theme::{Role, Theme};

const OF_LIST: [(Command, &str); 5] = [
    (Command::Open, "open"),
    (Command::Mark, "mark"),
    (Command::Compare, "compare"),
    (Command::Filter, "search all"),
    (Command::Export, "export"),
];

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    match std::mem::take(&mut app.sessions.over) {
        Over::Nothing => list(app, frame, area, theme),
        Over::Hits(mut hits) => {
            found(app, &mut hits, frame, area, theme);
            app.sessions.over = Over::Hits(hits);
        }
        Over::Compared(mut compared) => {
            differences(app, &mut compared, frame, area, theme);
            app.sessions.over = Over::Compared(compared);
        }
    }
}

fn boxed(title: &str, has_keys: bool, frame: &mut Frame<'_>, area: Rect, theme: &Theme) -> Rect {
    let block = pane(text::fit(title, usize::from(area.width.saturating_sub(2)), theme.ascii), has_keys, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

fn say(words: &str, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let words = text::clean(words).into_owned();
    frame.render_widget(Paragraph::new(words).style(theme.style(Role::Faint)).wrap(Wrap { trim: false }), area);
}

/// Lines of a list with a head, each of which can be clicked.
fn lines(
    app: &mut App,
    frame: &mut Frame<'_>,
    area: Rect,
    theme: &Theme,
    head: Line<'static>,
    (drawn, visible, selected): (Vec<Line<'static>>, std::ops::Range<usize>, usize),
) {
    if area.height == 0 {
        return;
    }
    frame.render_widget(head, Rect { height: 1, ..area });
    for ((line, at), y) in drawn.into_iter().zip(visible).zip(area.y + 1..area.y + area.height) {
        let place = Rect { y, height: 1, ..area };
        frame.render_widget(line, place);
        if at == selected {
            frame.buffer_mut().set_style(place, theme.style(Role::Selected));
        }
        app.hits.push((place, Hit::Line(at)));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Mark,
    Live,
    Id,
    Name,
    Transport,
    Started,
    Messages,
    Size,
    Notes,
}

fn list(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let sessions = &mut app.sessions;
    let again = if sessions.is_loading && !sessions.rows.is_empty() { " (looking again)" } else { "" };
    let inner = boxed(&format!(" Sessions{again} "), true, frame, area, theme);
    if let Some(words) = &sessions.trouble {
        return say(words, frame, inner, theme);
    }
    if sessions.rows.is_empty() {
        let words = if sessions.is_loading { "loading" } else { "nothing was recorded yet" };
        return say(words, frame, inner, theme);
    }
    let columns = [
        Column::text(What::Mark, "", 1),
        Column::text(What::Live, "", 1),
        Column::text(What::Id, "session", 8),
        Column::text(What::Name, "server", 16),
        Column::text(What::Transport, "via", 5),
        Column::text(What::Started, "started (UTC)", 16),
        Column::number(What::Messages, "messages", 8),
        Column::number(What::Size, "size", 7),
        Column::text(What::Notes, "notes", 12),
    ];
    let by_weight = [
        What::Id,
        What::Name,
        What::Started,
        What::Mark,
        What::Live,
        What::Messages,
        What::Size,
        What::Transport,
        What::Notes,
    ];
    let columns = table::fitted(&columns, &by_weight, &[What::Name, What::Notes], usize::from(inner.width));
    let inner = hints::below(app, frame, inner, theme, &OF_LIST);
    let sessions = &mut app.sessions;
    let height = usize::from(inner.height).saturating_sub(1);
    let visible = sessions.cursor.visible(height, sessions.rows.len());
    let marked = &sessions.marked;
    let line =
        |row: &SessionRow| table::line(&columns, theme, |what| value(row, what, marked.contains(&row.id), theme));
    let drawn = sessions.rows[visible.clone()].iter().map(line).collect();
    let selected = sessions.cursor.at;
    lines(app, frame, inner, theme, table::head(&columns, theme), (drawn, visible, selected));
}

fn value(row: &SessionRow, what: What, is_marked: bool, theme: &Theme) -> (String, Role) {
    let glyphs = theme.glyphs();
    let sign = |is_so: bool, glyph: &str| if is_so { glyph.to_owned() } else { String::new() };
    match what {
        What::Mark => (sign(is_marked, glyphs.marked), Role::Warn),
        What::Live => (sign(row.is_live, glyphs.recording), Role::Good),
        What::Id => (words::short_id(&row.id), Role::Text),
        What::Name => match &row.name {
            Some(name) => (format!("{name}: {}", row.server), Role::ToServer),
            None => (row.server.clone(), Role::ToServer),
        },
        What::Transport => match row.transport.as_str() {
            "streamable_http" => ("http".to_owned(), Role::Text),
            transport => (transport.to_owned(), Role::Text),
        },
        What::Started => (table::day_and_time(&row.started_at, true), Role::Text),
        What::Messages => (row.messages.to_string(), Role::Text),
        What::Size => (text::human_size(row.bytes), Role::Text),
        What::Notes => {
            let notes: Vec<String> = row.notes.iter().map(|(name, note)| format!("{name}: {note}")).collect();
            (notes.join("; "), Role::Faint)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OfHit {
    Session,
    Time,
    Sequence,
    What,
    Snippet,
}

fn found(app: &mut App, hits: &mut Hits, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let title = match &hits.found {
        None => format!(" Sessions: looking for {} ", text::clean(&hits.words)),
        Some(found) => format!(" Sessions: {} messages have {}; esc: back ", found.len(), text::clean(&hits.words)),
    };
    let inner = boxed(&title, true, frame, area, theme);
    let Some(found) = &hits.found else { return say("loading", frame, inner, theme) };
    if found.is_empty() {
        return say("no recorded message has these words", frame, inner, theme);
    }
    let columns = [
        Column::text(OfHit::Session, "session", 8),
        Column::text(OfHit::Time, "time (UTC)", 14),
        Column::number(OfHit::Sequence, "#", 6),
        Column::text(OfHit::What, "message", 18),
        Column::text(OfHit::Snippet, "words", 20),
    ];
    let by_weight = [OfHit::Snippet, OfHit::What, OfHit::Session, OfHit::Sequence, OfHit::Time];
    let columns = table::fitted(&columns, &by_weight, &[OfHit::What, OfHit::Snippet], usize::from(inner.width));
    let visible = hits.cursor.visible(usize::from(inner.height).saturating_sub(1), found.len());
    let of_hit = |hit: &Found, what: OfHit| match what {
        OfHit::Session => (words::short_id(&hit.session), Role::Text),
        OfHit::Time => (table::day_and_time(&hit.timestamp, false), Role::Text),
        OfHit::Sequence => (hit.sequence.to_string(), Role::Text),
        OfHit::What => (hit.what.clone(), Role::ToServer),
        OfHit::Snippet => (hit.snippet.clone(), Role::Text),
    };
    let line = |hit: &Found| table::line(&columns, theme, |what| of_hit(hit, what));
    let drawn = found[visible.clone()].iter().map(line).collect();
    let selected = hits.cursor.at;
    lines(app, frame, inner, theme, table::head(&columns, theme), (drawn, visible, selected));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OfLine {
    What,
    Left,
    Right,
    Paths,
}

fn differences(app: &mut App, compared: &mut Compared, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let [over, under] = Layout::vertical([Constraint::Percentage(65), Constraint::Percentage(35)]).areas(area);
    let (left, right) = (words::short_id(&compared.left), words::short_id(&compared.right));
    let inner = boxed(&format!(" Sessions: {left} against {right}; esc: back "), true, frame, over, theme);
    let [sum, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(inner);
    let comparison = &compared.comparison;
    let words = format!(
        "{} alike, {} differ, {} only in {left}, {} only in {right}",
        comparison.same, comparison.different, comparison.only_left, comparison.only_right
    );
    let role = if comparison.lines.is_empty() { Role::Good } else { Role::Warn };
    let words = text::fit(&words, usize::from(inner.width), theme.ascii);
    frame.render_widget(Line::styled(words, theme.style(role)), sum);
    let columns = [
        Column::text(OfLine::What, "operation", 24),
        Column::number(OfLine::Left, "left", 7),
        Column::number(OfLine::Right, "right", 7),
        Column::text(OfLine::Paths, "differs at", 16),
    ];
    let by_weight = [OfLine::What, OfLine::Paths, OfLine::Left, OfLine::Right];
    let columns = table::fitted(&columns, &by_weight, &[OfLine::What, OfLine::Paths], usize::from(body.width));
    let visible = compared.cursor.visible(usize::from(body.height).saturating_sub(1), comparison.lines.len());
    let number = |sequence: Option<u64>| sequence.map_or_else(|| "none".to_owned(), |sequence| format!("#{sequence}"));
    let of_line = |line: &ComparedLine, what: OfLine| match what {
        OfLine::What => (line.what.clone(), Role::ToServer),
        OfLine::Left => (number(line.left), Role::Removed),
        OfLine::Right => (number(line.right), Role::Added),
        OfLine::Paths => (line.paths.join(" "), Role::Text),
    };
    let line = |line: &ComparedLine| table::line(&columns, theme, |what| of_line(line, what));
    let drawn = comparison.lines[visible.clone()].iter().map(line).collect();
    let selected = compared.cursor.at;
    if !comparison.lines.is_empty() {
        lines(app, frame, body, theme, table::head(&columns, theme), (drawn, visible, selected));
    }
    paths(compared, frame, under, theme);
}

/// Where the selected operation differs, a path a line.
fn paths(compared: &Compared, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let inner = boxed(" Differs at ", false, frame, area, theme);
    let Some(line) = compared.line() else { return };
    let one_sided = match (line.left, line.right) {
        (Some(_), None) => Some("only in the left one"),
        (None, Some(_)) => Some("only in the right one"),
        _ => None,
    };
    let lines = one_sided.into_iter().chain(line.paths.iter().map(String::as_str));
    for (words, y) in lines.zip(inner.y..inner.y + inner.height) {
        let words = text::fit(words, usize::from(inner.width), theme.ascii);
        frame.render_widget(Line::raw(words), Rect { y, height: 1, ..inner });
    }
}
