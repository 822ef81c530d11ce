//! Text for cells. What a peer wrote comes out with nothing hidden in it and nothing that acts on a
//! terminal; what is cut is cut between letters; times and sizes come in words that fit a column.
//!
//! Nothing here looks at more of a text than it shows, save [`clean`] and [`width`], which take it whole.

mod ascii;
#[cfg(test)]
pub(crate) mod chance;
mod units;

use std::borrow::Cow;

use mcp_wire::visible::{is_deceptive, visible};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(crate) use ascii::ascii;
pub(crate) use units::{age, clock, human_size, human_time};

/// Characters of one letter. Scripts that stack marks need half as many; a longer stack is not writing, and a cell
/// would hold kilobytes of it.
const LETTER_CHARS_MAX: usize = 12;
/// Bytes of the text in one cell; further ones belong to one letter.
const CELL_BYTES_MAX: usize = 64;

/// The text as a person should see it, on one line: line ends and tabs are symbols too.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut pieces = pieces(text);
    let mut same = 0;
    // Most text that is not ASCII is plain all the same: copy only once something has changed.
    let changed = loop {
        match pieces.next() {
            Some((raw, Cow::Borrowed(_))) => same += raw.len(),
            Some((_, Cow::Owned(changed))) => break changed,
            None => return Cow::Borrowed(text),
        }
    };
    let mut shown = String::with_capacity(text.len() + changed.len());
    shown.push_str(&text[..same]);
    shown.push_str(&changed);
    shown.extend(pieces.map(|(_, piece)| piece));
    Cow::Owned(shown)
}

/// How many cells clean text takes. Letters are counted one by one, as they are drawn.
pub fn width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

/// The text, clean, in no more than `cells`. What is cut off is marked by an ellipsis; with `ascii`, in
/// ASCII as all glyphs of our own.
pub(crate) fn fit(text: &str, cells: usize, ascii: bool) -> String {
    let start = head(text, cells);
    let mut shown = String::new();
    let mut cut = Cut::default();
    let mut is_whole = start.len() == text.len();
    let (sign, sign_cells) = if ascii { ("..", 2) } else { ("…", 1) };
    for (_, piece) in pieces(start) {
        let piece = if ascii { self::ascii(&piece) } else { piece };
        let piece_cells = width(&piece);
        if cut.cells + piece_cells > cells {
            is_whole = false;
            break;
        }
        if cut.cells + sign_cells <= cells {
            cut.before_sign = shown.len();
        }
        shown.push_str(&piece);
        cut.cells += piece_cells;
    }
    if is_whole {
        return shown;
    }
    if cut.cells + sign_cells > cells {
        shown.truncate(cut.before_sign);
    }
    if sign_cells <= cells {
        shown.push_str(sign);
    }
    shown
}

#[derive(Default)]
struct Cut {
    cells: usize,
    /// Where the text ends if the ellipsis has to follow it.
    before_sign: usize,
}

/// Clean text with blanks after it up to `cells`. What is wider stays as it is: [`fit`] it first.
pub(crate) fn pad(text: &str, cells: usize) -> String {
    let blanks = cells.saturating_sub(width(text));
    let mut padded = String::with_capacity(text.len() + blanks);
    padded.push_str(text);
    padded.extend(std::iter::repeat_n(' ', blanks));
    padded
}

/// As much from the start of a text as can matter to `cells`.
pub(crate) fn head(text: &str, cells: usize) -> &str {
    let bytes_max = cells.saturating_add(1).saturating_mul(CELL_BYTES_MAX);
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Letter after letter: the bytes it came from, and what is shown for it.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    text.graphemes(true).map(|letter| (letter, shown(letter)))
}

pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn shown(letter: &str) -> Cow<'_, str> {
    if is_plain(letter) || !needs_care(letter) {
        return Cow::Borrowed(letter);
    }
    let is_flood = letter.chars().nth(LETTER_CHARS_MAX).is_some();
    // One less than the most, for some characters join the sign that follows.
    let kept = if is_flood { LETTER_CHARS_MAX - 1 } else { LETTER_CHARS_MAX };
    let mut shown = String::new();
    let mut before = None;
    for c in letter.chars().take(kept) {
        let symbol = symbol(c, before);
        // A mark needs a letter to stand on: after a symbol, it is one itself.
        before = symbol.is_none().then_some(c);
        match symbol {
            Some(symbol) => shown.push_str(&symbol),
            None => shown.push(c),
        }
    }
    if is_flood {
        shown.push_str(&format!("\u{27e8}+{}\u{27e9}", letter.chars().count() - kept));
    }
    Cow::Owned(shown)
}

fn needs_care(letter: &str) -> bool {
    let mut before = None;
    let has_symbols = letter.chars().any(|c| symbol(c, before.replace(c)).is_some());
    has_symbols || letter.chars().nth(LETTER_CHARS_MAX).is_some()
}

/// What is shown for a character that cannot be seen as it is.
fn symbol(c: char, before: Option<char>) -> Option<String> {
    let is_lone_mark = before.is_none() && c.width() == Some(0);
    if c.is_control() || is_deceptive(c) {
        Some(visible(c.encode_utf8(&mut [0; 4])).to_string())
    } else if is_lone_mark || is_unseen(c, before) {
        Some(format!("\u{27e8}U+{:04X}\u{27e9}", c as u32))
    } else {
        None
    }
}

/// Characters that draw nothing, beyond those that `visible` knows: fillers, and selectors of a variant,
/// of which a row can carry a hidden text. One after a sign that has variants is what they are for.
pub(crate) fn is_unseen(c: char, before: Option<char>) -> bool {
    match c as u32 {
        0xfe0e | 0xfe0f => before.is_none_or(|sign| sign.is_alphabetic() || sign.is_whitespace() || is_selector(sign)),
        0x34f | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x2800 | 0x3164 | 0xffa0 => true,
        0xfe00..=0xfe0d | 0xfff0..=0xfff8 | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff => true,
        _ => false,
    }
}

fn is_selector(c: char) -> bool {
    matches!(c as u32, 0xfe00..=0xfe0f)
}

#[cfg(test)]
mod tests;
