//! Text from a peer, made safe to show. Control characters, escape sequences, bidirectional
//! overrides, zero-width and tag characters become visible symbols; everything else stays.

use std::fmt;

/// Shows hostile text. There is no other way to print what a peer sent.
pub fn visible(text: &str) -> Visible<'_> {
    Visible { text, keep_lines: false }
}

/// The same, but line breaks and tabs stay: for payloads and quoted stderr.
pub fn visible_lines(text: &str) -> Visible<'_> {
    Visible { text, keep_lines: true }
}

/// The text of bytes that may not be UTF-8, as a person should see it.
pub fn visible_bytes(bytes: &[u8]) -> String {
    visible(&String::from_utf8_lossy(bytes)).to_string()
}

pub struct Visible<'a> {
    text: &'a str,
    keep_lines: bool,
}

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for c in self.text.chars() {
            match c {
                '\n' | '\t' if self.keep_lines => f.write_char(c)?,
                '\0'..='\x1f' => f.write_char(char::from_u32(0x2400 + c as u32).expect("a control picture"))?,
                '\x7f' => f.write_char('\u{2421}')?,
                c if is_deceptive(c) => write!(f, "\u{27e8}U+{:04X}\u{27e9}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Characters that change how their neighbours look, or that cannot be seen at all.
pub fn is_deceptive(c: char) -> bool {
    matches!(c as u32,
        0x80..=0x9f                     // C1 controls, some of which start sequences
        | 0xad | 0x61c | 0x180e | 0xfeff
        | 0x200b..=0x200f               // zero width, direction marks
        | 0x2028..=0x202e               // line separators, bidi embeddings and overrides
        | 0x2060..=0x206f               // word joiner, bidi isolates
        | 0xfff9..=0xfffb
        | 0xe0000..=0xe007f             // tags
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(visible(text).to_string(), expected);
    }

    #[test]
    fn hostile_text_is_shown_not_obeyed() {
        check("plain text, déjà vu, 漢字", "plain text, déjà vu, 漢字");
        check("\x1b[2Jgone", "\u{241b}[2Jgone");
        check("\x1b]52;c;AAAA\x07", "\u{241b}]52;c;AAAA\u{2407}");
        check("a\nb\tc\r", "a\u{240a}b\u{2409}c\u{240d}");
        check("user\u{202e}txt.exe", "user⟨U+202E⟩txt.exe");
        check("zero\u{200b}width\u{e0041}", "zero⟨U+200B⟩width⟨U+E0041⟩");
        check("\u{9b}31m\x7f", "⟨U+009B⟩31m\u{2421}");
        assert_eq!(visible_lines("a\n\tb\x1b").to_string(), "a\n\tb\u{241b}");
    }
}
