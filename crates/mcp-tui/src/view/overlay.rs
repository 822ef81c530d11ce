//! What lies over a screen: lines to type, menus, the palette, the editor, help.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

use super::traffic::pane;
use super::{help, words};
use crate::app::App;
use crate::mouse::Hit;
use crate::news::Editing;
use crate::state::common::Overlay;
use crate::state::editor::Editor;
use crate::state::fate;
use crate::state::menu::Menu;
use crate::state::palette::Palette;
use crate::state::prompt::Prompt;
use crate::text;
use crate::theme::{Role, Theme};

/// Columns from which an edit is compared with what came.
const COLUMNS_FOR_COMPARING: u16 = 110;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let mut overlay = std::mem::take(&mut app.common.overlay);
    match &mut overlay {
        Overlay::None => {}
        Overlay::Prompt(line) => prompt(line, frame, area, theme),
        Overlay::Palette(palette) => draw_palette(app, palette, frame, area, theme),
        Overlay::Menu(choices) => menu(app, choices, frame, area, theme),
        Overlay::Editor(text) => editor(app, text, frame, area, theme),
        Overlay::Help { scroll } => help::draw(app, scroll, frame, area, theme),
    }
    app.common.overlay = overlay;
}

/// A place in the middle, no larger than there is room.
pub(crate) fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// Types on the row of the filter, near the bottom.
fn prompt(prompt: &Prompt, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let rows = 2.min(area.height);
    let place = Rect { y: area.y + area.height - rows, height: rows, ..area };
    frame.render_widget(Clear, place);
    let label = format!(" {}: ", prompt.asking.title());
    let label_width = text::width(&label).min(usize::from(area.width) / 2);
    let label = text::fit(&label, label_width, theme.ascii);
    let room = usize::from(area.width).saturating_sub(label_width + 1).max(1);
    let (shown, cursor) = around_cursor(prompt.text(), prompt.cursor(), room);
    let role = if prompt.fault.is_some() { Role::Bad } else { Role::Good };
    let line = Line::from(vec![Span::styled(label, theme.style(Role::Key)), Span::styled(shown, theme.style(role))]);
    frame.render_widget(line, Rect { height: 1, ..place });
    frame.set_cursor_position(Position::new(place.x + (label_width + cursor) as u16, place.y));
    if rows < 2 {
        return;
    }
    let (hint, role) = match &prompt.fault {
        Some((words, _)) => (format!(" {}", text::clean(words)), Role::Bad),
        None => (" enter: take it   esc: leave   up: what was typed before".to_owned(), Role::Faint),
    };
    let hint = text::fit(&hint, usize::from(area.width), theme.ascii);
    frame.render_widget(Line::styled(hint, theme.style(role)), Rect { y: place.y + 1, height: 1, ..place });
}

/// The part of a line that has the cursor in it, and where in that it is.
fn around_cursor(line: &str, cursor: usize, room: usize) -> (String, usize) {
    let before: String = line.chars().take(cursor).collect();
    let before = text::clean(&before);
    let skipped = text::width(&before).saturating_sub(room.saturating_sub(1));
    let mut dropped = 0;
    let mut rest: &str = &before;
    while dropped < skipped {
        let mut letters = rest.chars();
        let Some(letter) = letters.next() else { break };
        dropped += text::width(letter.encode_utf8(&mut [0; 4]));
        rest = letters.as_str();
    }
    let after: String = line.chars().skip(cursor).collect();
    let shown = format!("{rest}{}", text::clean(&after));
    (text::fit(&shown, room, false), text::width(rest))
}

fn menu(app: &mut App, menu: &Menu, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    /// Cells beside a title: borders, corners and blanks.
    const BESIDE_TITLE: usize = 6;
    let widest = menu.choices.iter().map(|(_, label, _)| text::width(label) + 8).max().unwrap_or(0);
    let title_width = text::width(&menu.title) + BESIDE_TITLE;
    let is_short = title_width <= usize::from(area.width);
    let width = widest.max(title_width).min(usize::from(area.width));
    // A title that is wider than the screen stands above the choices.
    let (title, words) = match is_short {
        true => (format!(" {} ", menu.title), Vec::new()),
        false => (String::new(), words::wrapped(&menu.title, width.saturating_sub(4), theme.ascii)),
    };
    let place = middle(area, width as u16, (words.len() + menu.choices.len() + 2) as u16);
    frame.render_widget(Clear, place);
    let block = pane(text::fit(&title, usize::from(place.width).saturating_sub(2), theme.ascii), true, theme);
    let mut inner = block.inner(place);
    frame.render_widget(block, place);
    for line in words.into_iter().take(usize::from(inner.height)) {
        frame.render_widget(Line::styled(format!(" {line}"), theme.style(Role::Title)), Rect { height: 1, ..inner });
        inner = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    }
    for (at, (letter, label, _)) in menu.choices.iter().enumerate().take(usize::from(inner.height)) {
        let row = Rect { y: inner.y + at as u16, height: 1, ..inner };
        let label = text::fit(&format!(" {label}"), usize::from(inner.width).saturating_sub(3), theme.ascii);
        let spans = [Span::styled(format!(" {letter} "), theme.style(Role::Key)), Span::raw(label)];
        frame.render_widget(Line::from_iter(spans), row);
        if at == menu.selected {
            frame.buffer_mut().set_style(row, theme.style(Role::Selected));
        }
        app.hits.push((row, Hit::Choice(at)));
    }
}

fn draw_palette(app: &App, palette: &Palette, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let place = middle(area, 72, 18);
    frame.render_widget(Clear, place);
    let block = pane(" Commands ".to_owned(), true, theme);
    let inner = block.inner(place);
    frame.render_widget(block, place);
    if inner.height == 0 {
        return;
    }
    let typed = format!(" :{}", text::clean(palette.text()));
    let typed = text::fit(&typed, usize::from(inner.width), theme.ascii);
    frame.set_cursor_position(Position::new(inner.x + text::width(&typed) as u16, inner.y));
    frame.render_widget(Line::styled(typed, theme.style(Role::Key)), Rect { height: 1, ..inner });
    let rows = usize::from(inner.height).saturating_sub(1);
    let from = (palette.selected + 1).saturating_sub(rows);
    for (line, (at, entry)) in palette.found.iter().enumerate().skip(from).take(rows).enumerate() {
        let row = Rect { y: inner.y + 1 + line as u16, height: 1, ..inner };
        let key = text::pad(&app.keymap.shown(entry.command), 9);
        let label = format!("{} {}", text::pad(entry.name, 18), entry.does);
        let label = text::fit(&label, usize::from(inner.width).saturating_sub(10), theme.ascii);
        frame.render_widget(
            Line::from_iter([Span::styled(format!(" {key}"), theme.style(Role::Key)), Span::raw(label)]),
            row,
        );
        if at == palette.selected {
            frame.buffer_mut().set_style(row, theme.style(Role::Selected));
        }
    }
}

fn editor(app: &App, editor: &mut Editor, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let place = middle(area, area.width.saturating_sub(4).max(20), area.height.saturating_sub(2));
    frame.render_widget(Clear, place);
    let compared = match area.width >= COLUMNS_FOR_COMPARING {
        true => compared(app, editor, place, theme),
        false => None,
    };
    let waits = waits(app, editor).unwrap_or((String::new(), Role::Text));
    let is_outlived = app.outlived(editor).is_some();
    let Some((lines, beside)) = compared else { return text_box(editor, waits, is_outlived, frame, place, theme) };
    text_box(editor, waits, is_outlived, frame, Rect { width: place.width - beside.width, ..place }, theme);
    let title = match editor.fault {
        None => " received | will be sent ",
        Some(_) => " received | will be sent, when it last was JSON ",
    };
    let block = pane(title.to_owned(), false, theme);
    let inner = block.inner(beside);
    frame.render_widget(block, beside);
    for (line, y) in lines.into_iter().zip(inner.y..inner.y + inner.height) {
        frame.render_widget(line, Rect { y, height: 1, ..inner });
    }
}

/// What a held message was against what is written, and where it is shown.
fn compared(app: &App, editor: &mut Editor, place: Rect, theme: &Theme) -> Option<(Vec<Line<'static>>, Rect)> {
    let Editing::Modify(sequence) = editor.why else { return None };
    let message = app.common.messages.get(sequence)?;
    let diff = editor.compare(message.raw.as_ref()?.get())?;
    let width = place.width / 2;
    let beside = Rect { x: place.x + place.width - width, width, ..place };
    Some((super::diff::lines(diff, usize::from(width).saturating_sub(2), theme), beside))
}

/// How long the message still waits that somebody writes for, and whether it waits at all.
fn waits(app: &App, editor: &Editor) -> Option<(String, Role)> {
    let (Editing::Modify(sequence) | Editing::Answer(sequence)) = editor.why else { return None };
    let Some(held) = app.common.held_message(sequence) else {
        return Some((format!("#{sequence} is held no longer"), Role::Bad));
    };
    let left = app.common.remaining(held)?;
    Some((format!("{} in {}", fate::at_its_time(held), fate::seconds(left)), Role::Warn))
}

fn text_box(
    editor: &mut Editor,
    (waits, waits_role): (String, Role),
    is_outlived: bool,
    frame: &mut Frame<'_>,
    place: Rect,
    theme: &Theme,
) {
    let title = format!(" {}   ctrl-e: $EDITOR   ctrl-z: undo   esc: leave ", editor.title());
    let title = text::fit(&title, usize::from(place.width).saturating_sub(2), theme.ascii);
    let block = pane(title, true, theme);
    let inner = block.inner(place);
    frame.render_widget(block, place);
    if inner.height < 2 {
        return;
    }
    let text_area = Rect { height: inner.height - 1, ..inner };
    editor.area.set_cursor_line_style(theme.style(Role::Text));
    frame.render_widget(&editor.area, text_area);
    let (words, role) = match (&editor.fault, &editor.schema) {
        _ if editor.is_leaving && is_outlived => ("esc once more keeps your edit in a file".to_owned(), Role::Warn),
        _ if editor.is_leaving => ("esc once more leaves, and what you wrote is gone".to_owned(), Role::Bad),
        _ if is_outlived && editor.is_changed() => ("esc keeps your edit in a file".to_owned(), Role::Warn),
        _ if let Some(refused) = &editor.refused => (format!("{} {refused}", theme.glyphs().error), Role::Bad),
        (Some(fault), _) => (format!("{} {fault}", theme.glyphs().error), Role::Bad),
        (None, Some((true, words))) => (format!("{} {words}", theme.glyphs().ok), Role::Good),
        (None, Some((false, words))) => (format!("{} {words}", theme.glyphs().error), Role::Warn),
        (None, None) => (format!("{} JSON", theme.glyphs().ok), Role::Good),
    };
    let room = usize::from(inner.width).saturating_sub(text::width(&waits) + 1);
    let words = text::pad(&text::fit(&text::clean(&words), room, theme.ascii), room + 1);
    let spans = [Span::styled(words, theme.style(role)), Span::styled(waits, theme.style(waits_role))];
    frame.render_widget(Line::from_iter(spans), Rect { y: inner.y + inner.height - 1, height: 1, ..inner });
}
