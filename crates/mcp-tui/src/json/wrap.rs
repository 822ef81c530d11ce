//! Text as it came, wrapped at a width. Lines are found as they are asked for: the first screen of a
//! huge message costs a screen.

use std::ops::Range;
use std::sync::Arc;

use crate::text::{fit, head, is_plain, pieces, width};

/// Every so many lines the place is noted, so that going back is no walk from the start.
const NOTED_EVERY: usize = 64;

/// Raw lines of a text at one width.
#[derive(Debug)]
pub(crate) struct Wrap {
    text: Arc<str>,
    width: usize,
    /// Where every so many lines start.
    noted: Vec<usize>,
    /// Lines that were found, and where the next one starts; `None` after the last.
    found: usize,
    next: Option<usize>,
}

impl Wrap {
    pub(crate) fn new(text: impl Into<Arc<str>>, width: usize) -> Self {
        Self { text: text.into(), width: width.max(1), noted: Vec::new(), found: 0, next: Some(0) }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The lines of a window, clean. What lies after the end is left out.
    pub(crate) fn lines(&mut self, window: Range<usize>) -> Vec<String> {
        self.look_to(window.end);
        let (mut line, mut at) = match self.noted.get(window.start / NOTED_EVERY) {
            Some(at) => (window.start / NOTED_EVERY * NOTED_EVERY, *at),
            None => return Vec::new(),
        };
        let mut lines = Vec::new();
        while line < window.end.min(self.found) {
            let end = self.line_end(at);
            if line >= window.start {
                lines.push(self.shown(at..end));
            }
            at = self.after(end).unwrap_or(end);
            line += 1;
        }
        lines
    }

    /// How many lines are known, and whether that is all of them.
    pub(crate) fn known(&self) -> (usize, bool) {
        (self.found, self.next.is_none())
    }

    /// Finds lines up to this one. All of them: `usize::MAX`.
    pub(crate) fn look_to(&mut self, lines: usize) {
        while self.found < lines
            && let Some(at) = self.next
        {
            if self.found.is_multiple_of(NOTED_EVERY) {
                self.noted.push(at);
            }
            self.found += 1;
            self.next = self.after(self.line_end(at));
        }
    }

    /// Where the next line starts, if there is one after the line that ends here.
    fn after(&self, end: usize) -> Option<usize> {
        let rest = &self.text.as_bytes()[end..];
        match rest {
            [] | [b'\n'] | [b'\r', b'\n'] => None,
            [b'\n', ..] => Some(end + 1),
            [b'\r', b'\n', ..] => Some(end + 2),
            _ => Some(end),
        }
    }

    fn line_end(&self, start: usize) -> usize {
        let rest = &self.text[start..];
        // Nearly every line is plain, and then its bytes are its cells. A mark may still follow.
        if let Some(line) = rest.get(..self.width)
            && is_plain(line)
            && rest.as_bytes().get(self.width).is_none_or(u8::is_ascii)
        {
            return start + self.width;
        }
        let rest = head(rest, self.width);
        let mut cells = 0;
        let mut end = start;
        for (raw, shown) in pieces(rest) {
            cells += width(&shown).min(self.width);
            if cells > self.width || raw == "\n" || raw == "\r\n" {
                break;
            }
            end += raw.len();
        }
        end
    }

    fn shown(&self, range: Range<usize>) -> String {
        fit(&self.text[range], self.width, false)
    }
}
