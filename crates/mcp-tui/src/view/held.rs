//! The screen `held`.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::traffic::pane;
use crate::app::App;
use crate::theme::Theme;

pub fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let title = format!(" {} ", app.common.screen.title());
    frame.render_widget(pane(title, true, theme), area);
}
