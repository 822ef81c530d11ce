//! What the server offers, beside the definition of one.

use std::sync::Arc;

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
use crate::state::tools::{Offer, Sort, View};
use crate::text;
use crate::theme::{Role, Theme};

/// Columns below which list and definition stand one above the other.
const COLUMNS_FOR_TWO: u16 = 70;
/// Cells that a name may take, and below which words about it are left out.
const NAME_MAX: usize = 28;
const ABOUT_MIN: usize = 8;
/// What is said of a definition with characters in it that cannot be seen.
const HIDDEN: &str = "hidden characters";

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    if app.tools.is_zoomed {
        return match app.tools.is_on_definition {
            true => definition(app, frame, area, theme),
            false => list(app, frame, area, theme),
        };
    }
    let layout = match area.width >= COLUMNS_FOR_TWO {
        true => Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]),
        false => Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]),
    };
    let [left, right] = layout.areas(area);
    list(app, frame, left, theme);
    definition(app, frame, right, theme);
}

fn list(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let title = text::fit(&title(app), usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, !app.tools.is_on_definition, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if app.tools.found.is_empty() {
        return empty(app, frame, inner, theme);
    }
    let visible = app.tools.cursor.visible(usize::from(inner.height), app.tools.found.len());
    let width = usize::from(inner.width);
    let longest =
        app.tools.found[visible.clone()].iter().map(|offer| text::width(&text::fit(&offer.name, NAME_MAX, false)));
    let name_cells = longest.max().unwrap_or(0).min(width / 3).max(4);
    for (line, at) in visible.enumerate() {
        let place = Rect { y: inner.y + line as u16, height: 1, ..inner };
        frame.render_widget(row(&app.tools.found[at], name_cells, width, theme), place);
        if at == app.tools.cursor.at {
            frame.buffer_mut().set_style(place, theme.style(Role::Selected));
        }
        app.hits.push((place, Hit::Line(at)));
    }
}

/// ` 34 tools, 2 prompts, 18 kB of definitions `
fn title(app: &App) -> String {
    let catalogue = &app.tools.catalogue;
    if catalogue.is_empty() {
        return " Tools ".to_owned();
    }
    let counted = |sort: Sort| match catalogue.count(sort) {
        0 => None,
        1 => Some(format!("1 {}", sort.word())),
        count => Some(format!("{count} {}s", sort.word())),
    };
    let counts: Vec<String> = Sort::ALL.into_iter().filter_map(counted).collect();
    let cut = if catalogue.is_cut { " (there is more than is kept)" } else { "" };
    let found = match app.tools.words.as_str() {
        "" => String::new(),
        words => format!("{} with \"{}\" of ", app.tools.found.len(), text::clean(words)),
    };
    format!(" {found}{}, {} of definitions{cut} ", counts.join(", "), text::human_size(catalogue.bytes()))
}

fn empty(app: &App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let words = match &app.tools.trouble {
        Some(words) => words.clone(),
        None if app.tools.is_loading() => "loading".to_owned(),
        None if !app.tools.words.is_empty() => "nothing has these words; esc shows all".to_owned(),
        None => "no list of tools has passed yet; it is shown once a client asks for one".to_owned(),
    };
    let lines = words::wrapped(&words, usize::from(area.width), theme.ascii);
    for (line, y) in lines.into_iter().zip(area.y..area.y + area.height) {
        frame.render_widget(Line::styled(line, theme.style(Role::Faint)), Rect { y, height: 1, ..area });
    }
}

/// `tool     create_issue  ! Makes an issue      destructive  1.2 kB`
fn row(offer: &Offer, name_cells: usize, width: usize, theme: &Theme) -> Line<'static> {
    let kind = text::pad(offer.sort.word(), 9);
    let name = text::pad(&text::fit(&offer.name, name_cells, theme.ascii), name_cells);
    let sign = if offer.is_hiding { theme.glyphs().noise } else { " " };
    let size = format!("{:>7}", text::human_size(offer.definition.len() as u64));
    let mut room = width.saturating_sub(9 + name_cells + 3 + 1 + size.len());
    let notes = notes(offer, room, theme);
    room -= text::width(&notes);
    // A few letters of a description say nothing.
    let about_cells = if room > ABOUT_MIN { room - 1 } else { 0 };
    let about = text::pad(&text::fit(&offer.about(), about_cells, theme.ascii), room);
    let role = if offer.is_hiding { Role::Bad } else { Role::Warn };
    Line::from(vec![
        Span::styled(kind, theme.style(Role::Faint)),
        Span::styled(name, theme.style(Role::JsonKey)),
        Span::styled(format!(" {sign} "), theme.style(Role::Bad)),
        Span::raw(about),
        Span::styled(notes, theme.style(role)),
        Span::styled(format!(" {size}"), theme.style(Role::Faint)),
    ])
}

/// What somebody should know before calling it, as many words as there is room for.
fn notes(offer: &Offer, room: usize, theme: &Theme) -> String {
    let mut notes = if offer.is_hiding { text::fit(HIDDEN, room, theme.ascii) } else { String::new() };
    for hint in &offer.hints {
        let comma = if notes.is_empty() { "" } else { ", " };
        if notes.len() + comma.len() + hint.len() <= room {
            notes = format!("{notes}{comma}{hint}");
        } else {
            // A lesser hint in the place of one that does not fit would mislead.
            if notes.is_empty() {
                notes = text::fit(hint, room, theme.ascii);
            }
            break;
        }
    }
    notes
}

fn definition(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let offer = app.tools.selected().cloned();
    let title = match &offer {
        Some(offer) => format!(" {} {} ", offer.sort.word(), text::clean(&offer.name)),
        None => " Definition ".to_owned(),
    };
    let title = text::fit(&title, usize::from(area.width.saturating_sub(2)), theme.ascii);
    let block = pane(title, app.tools.is_on_definition, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    app.hits.push((inner, Hit::Beside));
    let Some(offer) = offer else { return };
    if inner.height < 3 || inner.width == 0 {
        return;
    }
    tabs(app, frame, Rect { height: 1, ..inner }, theme);
    let body = Rect { y: inner.y + 1, height: inner.height - 2, ..inner };
    app.tools.shown.turn_to(&offer);
    for (line, y) in lines(app, &offer, body, theme).into_iter().zip(body.y..body.y + body.height) {
        frame.render_widget(line, Rect { y, height: 1, ..body });
    }
    let row = Rect { y: body.y + body.height, height: 1, ..inner };
    hints::draw(app, frame, row, theme, if offer.sort == Sort::Tool { &TOOL } else { &OTHER });
}

const TOOL: [(Command, &str); 4] =
    [(Command::Try, "call it"), (Command::NextView, "view"), (Command::Filter, "find"), (Command::Copy, "copy")];
const OTHER: [(Command, &str); 3] = [(Command::NextView, "view"), (Command::Filter, "find"), (Command::Copy, "copy")];

fn tabs(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let spans = View::ALL.map(|view| match app.tools.view == view {
        true => Span::styled(format!("[{}]", view.title()), theme.style(Role::Active)),
        false => Span::styled(format!(" {} ", view.title()), theme.style(Role::Faint)),
    });
    frame.render_widget(Line::from_iter(spans), area);
    app.hits.push((area, Hit::Command(Command::NextView)));
}

fn lines(app: &mut App, offer: &Arc<Offer>, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let tools = &mut app.tools;
    match tools.view {
        View::Description => {
            let lines = description(offer, width, theme);
            let window = tools.scroll.visible(height, lines.len());
            lines.into_iter().skip(window.start).take(height).collect()
        }
        View::Schema => {
            let Some(count) = tools.shown.schema(offer).map(Pretty::len) else {
                return vec![Line::styled("it has no inputSchema", theme.style(Role::Faint))];
            };
            let window = tools.scroll.visible(height, count);
            let lines = tools.shown.schema(offer).map(|pretty| pretty.pretty_lines(window)).unwrap_or_default();
            lines.into_iter().map(|spans| spans_line(spans, theme)).collect()
        }
        View::Definition => {
            let wrap = tools.shown.definition(offer, width);
            wrap.look_to(usize::MAX);
            let window = tools.scroll.visible(height, wrap.known().0);
            tools.shown.definition(offer, width).lines(window).into_iter().map(Line::raw).collect()
        }
    }
}

fn description(offer: &Offer, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut say = |role: Role, words: &str| {
        let wrapped = words::wrapped(words, width, theme.ascii);
        lines.extend(wrapped.into_iter().map(|line| Line::styled(line, theme.style(role))));
    };
    if offer.is_hiding {
        let words = "characters in it cannot be seen, or turn what is around them; they are shown as symbols here";
        say(Role::Bad, &format!("{} {HIDDEN}: {words}", theme.glyphs().noise));
    }
    offer.title.iter().for_each(|title| say(Role::Title, title));
    say(Role::Text, offer.description.as_deref().unwrap_or("it has no description"));
    say(Role::Text, "\n");
    match offer.hints.is_empty() {
        _ if offer.sort != Sort::Tool => {}
        true => say(Role::Faint, "the server does not say what calling it may do"),
        false => say(Role::Faint, &format!("the server says that it is {}", offer.hints.join(", "))),
    }
    say(Role::Faint, &format!("its definition has {}", text::human_size(offer.definition.len() as u64)));
    lines
}

#[cfg(test)]
mod tests;
