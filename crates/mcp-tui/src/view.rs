//! Draws the state. Nothing here changes it, save where something was drawn: the mouse asks for that.

pub(crate) mod audit;
pub(crate) mod breakpoints;
pub(crate) mod coach;
pub(crate) mod detail;
pub(crate) mod diff;
pub(crate) mod frame;
pub(crate) mod held;
pub(crate) mod help;
pub(crate) mod hints;
pub(crate) mod overlay;
pub(crate) mod repeater;
pub(crate) mod servers;
pub(crate) mod sessions;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod tools;
pub(crate) mod traffic;
pub(crate) mod waterfall;
pub(crate) mod words;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use crate::app::App;
use crate::command::Screen;
use crate::theme::Theme;

/// Rows below which the row of buttons is left out, then that of the filter, then that of the keys.
const ROWS_FOR_BUTTONS: u16 = 16;
const ROWS_FOR_FRAME: u16 = 6;
const ROWS_FOR_KEYS: u16 = 3;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, theme: &Theme) {
    app.hits.clear();
    let area = frame.area();
    if area.width == 0 || area.height == 0 {
        return;
    }
    let has_frame = u16::from(area.height >= ROWS_FOR_FRAME);
    let has_buttons = u16::from(area.height >= ROWS_FOR_BUTTONS);
    let coach_rows = app.coach.as_ref().map_or(0, |_| coach::ROWS * has_buttons);
    let [title, coach_area, body, filter, buttons, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(coach_rows),
        Constraint::Min(1),
        Constraint::Length(has_frame),
        Constraint::Length(has_buttons),
        Constraint::Length(u16::from(area.height >= ROWS_FOR_KEYS)),
    ])
    .areas(area);
    frame::title(app, frame, title, theme);
    coach::draw(app, frame, coach_area, theme);
    screen(app, frame, body, theme);
    frame::filter_row(app, frame, filter, theme);
    frame::buttons(app, frame, buttons, theme);
    frame::keys(app, frame, keys, theme);
    overlay::draw(app, frame, area, theme);
}

fn screen(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    match app.common.screen {
        Screen::Traffic => traffic::draw(app, frame, area, theme),
        Screen::Held => held::draw(app, frame, area, theme),
        Screen::Repeater => repeater::draw(app, frame, area, theme),
        Screen::Waterfall => waterfall::draw(app, frame, area, theme),
        Screen::Tools => tools::draw(app, frame, area, theme),
        Screen::Breakpoints => breakpoints::draw(app, frame, area, theme),
        Screen::Servers => servers::draw(app, frame, area, theme),
        Screen::Audit => audit::draw(app, frame, area, theme),
        Screen::Sessions => sessions::draw(app, frame, area, theme),
    }
}
