//! The glyphs we draw with, for terminals that have only ASCII.

use std::borrow::Cow;

/// Replaces glyphs of our own. Letters of a peer stay: they are what was written.
pub(crate) fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.chars().any(|c| replaced(c).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match replaced(c) {
            Some(Plain::Text(text)) => plain.push_str(text),
            Some(Plain::Control(letter)) => plain.extend(['^', letter]),
            None => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

enum Plain {
    Text(&'static str),
    /// A control character, shown by the letter that types it.
    Control(char),
}

fn replaced(c: char) -> Option<Plain> {
    let text = match c {
        '\u{2400}'..='\u{241f}' => return Some(Plain::Control((c as u32 - 0x2400 + 0x40) as u8 as char)),
        '\u{2421}' => return Some(Plain::Control('?')),
        '…' => "..",
        '·' | '•' => ".",
        '–' | '—' | '─' | '━' | '═' => "-",
        '│' | '┃' | '║' | '▏' | '▎' | '▌' => "|",
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => "+",
        '╭' | '╮' | '╰' | '╯' => "+",
        '▸' | '▶' | '►' => ">",
        '◀' | '◄' => "<",
        '▾' | '▼' | '↓' => "v",
        '▴' | '▲' | '↑' => "^",
        '→' => "->",
        '←' => "<-",
        '↔' => "<->",
        '⏎' => "\\n",
        '●' => "*",
        '○' => "o",
        '◐' => "%",
        '⏸' => "=",
        '⏳' => "~",
        '✓' => "+",
        '✗' => "x",
        '⚠' => "!",
        '█' | '▇' | '▆' => "#",
        '▓' | '▅' => "=",
        '▒' | '▄' => "-",
        '░' | '▃' => ":",
        '▂' | '▁' => ".",
        '§' => "$",
        '\u{27e8}' => "<",
        '\u{27e9}' => ">",
        _ => return None,
    };
    Some(Plain::Text(text))
}
