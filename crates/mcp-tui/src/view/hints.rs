//! The keys of a pane, in a row of it. A click is the key.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::command::Command;
use crate::mouse::Hit;
use crate::text;
use crate::theme::{Role, Theme};

/// ` f forward  d drop`, as many as there is room for.
pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, theme: &Theme, hints: &[(Command, &'static str)]) {
    let mut x = area.x;
    for (command, label) in hints {
        let key = app.keymap.shown(*command);
        let width = (text::width(&key) + 1 + text::width(label)) as u16;
        if key.is_empty() {
            continue;
        }
        if area.height == 0 || x + width > area.x + area.width {
            return;
        }
        let place = Rect { x, width, height: 1, ..area };
        let spans =
            [Span::styled(key, theme.style(Role::Key)), Span::styled(format!(" {label}"), theme.style(Role::Faint))];
        frame.render_widget(Line::from_iter(spans), place);
        app.hits.push((place, Hit::Command(*command)));
        x += width + 2;
    }
}

/// Rows of a pane below which its keys are left to help.
const ROWS_FOR_HINTS: u16 = 8;

/// Draws the keys into the last row of a pane, if it is high enough; what is left of it.
pub(crate) fn below(
    app: &mut App,
    frame: &mut Frame<'_>,
    area: Rect,
    theme: &Theme,
    hints: &[(Command, &'static str)],
) -> Rect {
    if area.height < ROWS_FOR_HINTS {
        return area;
    }
    draw(app, frame, Rect { y: area.y + area.height - 1, height: 1, ..area }, theme, hints);
    Rect { height: area.height - 1, ..area }
}
