//! The strip that leads through the demo.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::command::Command;
use crate::state::coach::Step;
use crate::text;
use crate::theme::{Role, Theme};

/// Rows of the strip.
pub(crate) const ROWS: u16 = 3;

pub(crate) fn draw(app: &App, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let Some(coach) = app.coach.as_ref().filter(|_| area.height >= ROWS) else { return };
    let (at, of) = coach.progress();
    let title = match coach.step() {
        Step::Done => " Done ".to_owned(),
        _ => {
            let ahead = match coach.done_ahead() {
                0 => String::new(),
                ahead => format!(", {ahead} more done"),
            };
            format!(" Step {at} of {of}{ahead}   ({} skips it) ", app.keymap.shown(Command::SkipStep))
        }
    };
    let width = usize::from(area.width);
    let rule = if theme.ascii { "-" } else { "─" };
    let room = width.saturating_sub(text::width(&title) + 2);
    let head = Line::from(vec![
        Span::styled(rule.repeat(2), theme.style(Role::Border)),
        Span::styled(text::fit(&title, width.saturating_sub(2), theme.ascii), theme.style(Role::Warn)),
        Span::styled(rule.repeat(room), theme.style(Role::Border)),
    ]);
    let lines = coach
        .words(&app.common, app.traffic.filter.is_some())
        .map(|words| text::fit(&format!(" {words}"), width, theme.ascii));
    let rows = std::iter::once(head).chain(lines.into_iter().map(|line| Line::styled(line, theme.style(Role::Title))));
    for (row, y) in rows.zip(area.y..) {
        frame.render_widget(row, Rect { y, height: 1, ..area });
    }
}
