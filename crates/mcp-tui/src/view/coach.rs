//! The strip that leads through the demo.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::App;
use crate::theme::Theme;

/// Rows of the strip.
pub const ROWS: u16 = 3;

pub fn draw(_app: &App, _frame: &mut Frame<'_>, _area: Rect, _theme: &Theme) {}
