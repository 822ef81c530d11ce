//! The keys of a screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

use super::overlay::middle;
use super::traffic::pane;
use crate::app::App;
use crate::command::COMMANDS;
use crate::key::Key;
use crate::text;
use crate::theme::{Role, Theme};

pub(crate) fn draw(app: &App, scroll: &mut usize, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let place = middle(area, 78, area.height.saturating_sub(2));
    frame.render_widget(Clear, place);
    let title = format!(" Help: {} — any other key closes it ", app.common.screen.title());
    let block = pane(text::fit(&title, usize::from(place.width).saturating_sub(2), theme.ascii), true, theme);
    let inner = block.inner(place);
    frame.render_widget(block, place);
    let entries: Vec<_> = COMMANDS.iter().filter(|entry| entry.scope.has(app.common.screen)).collect();
    *scroll = (*scroll).min(entries.len().saturating_sub(usize::from(inner.height)));
    for (line, entry) in entries.iter().skip(*scroll).take(usize::from(inner.height)).enumerate() {
        let keys: Vec<String> = app.keymap.keys_of(entry.command).iter().map(Key::to_string).collect();
        let keys = text::pad(&text::fit(&keys.join(" "), 16, theme.ascii), 17);
        let does = text::fit(entry.does, usize::from(inner.width).saturating_sub(18), theme.ascii);
        let spans = [Span::styled(format!(" {keys}"), theme.style(Role::Key)), Span::raw(does)];
        frame.render_widget(Line::from_iter(spans), Rect { y: inner.y + line as u16, height: 1, ..inner });
    }
}
