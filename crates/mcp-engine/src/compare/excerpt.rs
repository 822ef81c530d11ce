//! A value as it is kept to be shown: whole if it is short, else the part where it begins to differ.

/// A value up to this size is kept whole. Many answers may differ, and each of them may be huge.
pub const WHOLE_MAX: usize = 4 * 1024;
/// Bytes kept of a longer value, and how many of them stand before the first difference.
const KEPT: usize = 1024;
const BEFORE: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// JSON text, or a piece of it.
    pub text: String,
    /// Where the piece begins.
    pub from: usize,
    /// How long the value is.
    pub len: usize,
}

impl Excerpt {
    pub fn of(value: &[u8]) -> Self {
        Self::from(value, 0)
    }

    /// Two values that differ, each from about the same place on.
    pub fn of_both(one: &[u8], other: &[u8]) -> (Self, Self) {
        let differs_at = one.iter().zip(other).position(|(a, b)| a != b).unwrap_or(one.len().min(other.len()));
        let from = differs_at.saturating_sub(BEFORE);
        (Self::from(one, from), Self::from(other, from))
    }

    pub fn is_whole(&self) -> bool {
        self.from == 0 && self.text.len() == self.len
    }

    fn from(value: &[u8], from: usize) -> Self {
        let (from, to) = match value.len() {
            0..=WHOLE_MAX => (0, value.len()),
            len => {
                let from = char_start(value, from.min(len.saturating_sub(KEPT)));
                (from, char_start(value, (from + KEPT).min(len)))
            }
        };
        Self { text: String::from_utf8_lossy(&value[from..to]).into_owned(), from, len: value.len() }
    }
}

/// The beginning of the character that stands at `at`.
fn char_start(text: &[u8], at: usize) -> usize {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (0..=at).rev().take(4).find(|&at| !is_inside(at)).unwrap_or(at)
}
