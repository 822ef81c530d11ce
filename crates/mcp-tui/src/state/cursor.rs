//! Where one is in a list or a text, and which part of it is shown.

use std::ops::Range;

use crate::command::Command;

/// The line of a list that is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub at: usize,
    top: usize,
    /// Lines that were drawn last.
    height: usize,
}

impl Cursor {
    /// Moves, if the command says so.
    pub(crate) fn motion(&mut self, command: Command, len: usize) -> bool {
        let page = self.height.saturating_sub(1).max(1);
        self.at = match command {
            Command::Down => self.at.saturating_add(1),
            Command::Up => self.at.saturating_sub(1),
            Command::PageDown => self.at.saturating_add(page),
            Command::PageUp => self.at.saturating_sub(page),
            Command::First => 0,
            Command::Last => usize::MAX,
            _ => return false,
        }
        .min(len.saturating_sub(1));
        true
    }

    /// The part to show in so many lines, with the selected one in it.
    pub(crate) fn visible(&mut self, height: usize, len: usize) -> Range<usize> {
        self.height = height;
        self.at = self.at.min(len.saturating_sub(1));
        self.top = self.top.min(len.saturating_sub(height)).min(self.at).max((self.at + 1).saturating_sub(height));
        self.top..(self.top + height).min(len)
    }
}

/// The part of a text that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scroll {
    top: usize,
    /// Lines that were drawn last, and lines there are.
    height: usize,
    lines: usize,
}

impl Scroll {
    /// Moves, if the command says so.
    pub(crate) fn motion(&mut self, command: Command) -> bool {
        let page = self.height.saturating_sub(1).max(1);
        self.top = match command {
            Command::Down => self.top.saturating_add(1),
            Command::Up => self.top.saturating_sub(1),
            Command::PageDown => self.top.saturating_add(page),
            Command::PageUp => self.top.saturating_sub(page),
            Command::First => 0,
            Command::Last => usize::MAX,
            _ => return false,
        }
        .min(self.lines.saturating_sub(self.height));
        true
    }

    /// The lines to show in a height, of so many.
    pub(crate) fn visible(&mut self, height: usize, lines: usize) -> Range<usize> {
        (self.height, self.lines) = (height, lines);
        self.top = self.top.min(lines.saturating_sub(height));
        self.top..(self.top + height).min(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_line_is_always_shown() {
        let mut cursor = Cursor::default();
        assert_eq!(cursor.visible(3, 10), 0..3);
        cursor.motion(Command::Last, 10);
        assert_eq!((cursor.visible(3, 10), cursor.at), (7..10, 9));
        assert_eq!((cursor.visible(3, 4), cursor.at), (1..4, 3));
        assert_eq!((cursor.visible(3, 0), cursor.at), (0..0, 0));
        assert_eq!(cursor.visible(0, 5), 1..1);
    }

    #[test]
    fn a_text_is_not_scrolled_past_its_end() {
        let mut scroll = Scroll::default();
        assert_eq!(scroll.visible(4, 6), 0..4);
        (0..9).for_each(|_| assert!(scroll.motion(Command::Down)));
        assert_eq!(scroll.visible(4, 6), 2..6);
        assert_eq!(scroll.visible(9, 6), 0..6);
    }
}
