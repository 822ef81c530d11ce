//! The text of a message that people search: what its strings, names and numbers say, decoded. Blobs
//! are left out, and very long messages are cut, so that the index stays small beside the recording.

use bytes::Bytes;
use mcp_wire::{Kind, Message};

use crate::recorded::Recorded;

/// Text of one message that can be found. Longer ones are files and pictures, whose beginning tells what they are.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Letters, digits and marks of base64 in a row that are an encoded blob, not words …
const BLOB_BYTES_MIN: usize = 128;
/// … of which so many without a `/`, `-` or `_`, which a long path would have.
const BLOB_PIECE_MIN: usize = 32;
/// Stands for a blob that was left out.
const LEFT_OUT: char = '…';

/// The text that a message is found by: what went on, and what came if that was something else.
pub fn text_of(recorded: &Recorded) -> String {
    let mut text = Text::default();
    if let Some(event) = &recorded.event {
        text.push_str(event);
    } else {
        text.push_message(&recorded.raw, recorded.noise);
    }
    if let Some(original) = &recorded.original_raw {
        text.end_run();
        text.push_str(" ");
        text.push_message(original, false);
    }
    text.end()
}

/// Text as it gathers, with the run of letters and digits that it ends in.
#[derive(Default)]
struct Text {
    out: String,
    run: Run,
}

#[derive(Default)]
struct Run {
    start: usize,
    len: usize,
    piece: usize,
    longest_piece: usize,
}

impl Run {
    fn is_blob(&self) -> bool {
        self.len >= BLOB_BYTES_MIN && self.longest_piece >= BLOB_PIECE_MIN
    }
}

impl Text {
    fn is_full(&self) -> bool {
        self.out.len() >= TEXT_BYTES_MAX
    }

    fn push_message(&mut self, raw: &Bytes, is_noise: bool) {
        if is_noise || Message::new(raw.clone()).kind() == Kind::NotJson {
            // Past the bound it is cut in any case.
            let beginning = &raw[..raw.len().min(TEXT_BYTES_MAX)];
            self.push_str(&String::from_utf8_lossy(beginning));
        } else {
            self.push_json(&String::from_utf8_lossy(raw));
        }
    }

    fn push_str(&mut self, text: &str) {
        for c in text.chars() {
            if self.is_full() {
                return;
            }
            self.push(c);
        }
    }

    fn push(&mut self, c: char) {
        let is_mark = matches!(c, '/' | '-' | '_');
        if !(is_mark || c.is_ascii_alphanumeric() || matches!(c, '+' | '=')) {
            self.end_run();
            self.out.push(c);
            return;
        }
        if self.run.len == 0 {
            self.run.start = self.out.len();
        }
        self.run.len += 1;
        self.run.piece = if is_mark { 0 } else { self.run.piece + 1 };
        self.run.longest_piece = self.run.longest_piece.max(self.run.piece);
        // Of what is a blob already, no more needs to be held.
        if !self.run.is_blob() {
            self.out.push(c);
        }
    }

    fn end_run(&mut self) {
        if self.run.is_blob() {
            self.out.truncate(self.run.start);
            self.out.push(LEFT_OUT);
        }
        self.run = Run::default();
    }

    fn end(mut self) -> String {
        self.end_run();
        let end = self.out.floor_char_boundary(TEXT_BYTES_MAX);
        self.out.truncate(end);
        self.out
    }

    /// What a JSON text says, without its braces and quotes. It was found to be JSON, so nothing here
    /// looks for faults.
    fn push_json(&mut self, json: &str) {
        let mut lexer = Lexer { json, at: 0, depth: 0 };
        while let Some(token) = lexer.next()
            && !self.is_full()
        {
            match token {
                // Every message says so.
                Token::String("jsonrpc") if lexer.depth == 1 && lexer.skip_version() => continue,
                Token::String(text) => self.push_escaped(text),
                Token::Bare(text) => self.push_str(text),
            }
            self.end_run();
            self.out.push(' ');
        }
    }

    fn push_escaped(&mut self, mut text: &str) {
        while let Some(at) = text.find('\\') {
            self.push_str(&text[..at]);
            let (c, len) = unescaped(&text[at..]);
            self.push(c);
            text = &text[at + len..];
            if self.is_full() {
                return;
            }
        }
        self.push_str(text);
    }
}

enum Token<'a> {
    /// Between its quotes, escapes and all.
    String(&'a str),
    /// A number, or one of the three words.
    Bare(&'a str),
}

struct Lexer<'a> {
    json: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.json.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b'"' => return Some(Token::String(self.string())),
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => {}
                _ => {
                    let rest = &self.json[self.at..];
                    let end = rest.find([',', ':', '}', ']', ' ', '\t', '\r', '\n', '"']).unwrap_or(rest.len());
                    self.at += end;
                    return Some(Token::Bare(&rest[..end]));
                }
            }
            self.at += 1;
        }
    }

    /// The string that begins here.
    fn string(&mut self) -> &'a str {
        let bytes = self.json.as_bytes();
        let start = self.at + 1;
        let mut end = start;
        while let Some(byte) = bytes.get(end)
            && *byte != b'"'
        {
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        let end = end.min(bytes.len());
        self.at = (end + 1).min(bytes.len());
        self.json.get(start..end).unwrap_or_default()
    }

    /// Passes over `: "2.0"`, if that is what follows.
    fn skip_version(&mut self) -> bool {
        let rest = self.json[self.at..].trim_start();
        let Some(rest) = rest.strip_prefix(':').and_then(|rest| rest.trim_start().strip_prefix("\"2.0\"")) else {
            return false;
        };
        self.at = self.json.len() - rest.len();
        true
    }
}

/// What an escape at the beginning of `text` stands for, and how long it is.
fn unescaped(text: &str) -> (char, usize) {
    let unit = |text: &str| text.get(2..6).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match text.as_bytes().get(1) {
        Some(b'u') => match unit(text) {
            Some(high @ 0xd800..0xdc00) => {
                let low = text.get(6..).filter(|rest| rest.starts_with("\\u")).and_then(unit);
                match low.filter(|low| (0xdc00..0xe000).contains(low)) {
                    Some(low) => {
                        let point = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
                    }
                    None => (char::REPLACEMENT_CHARACTER, 6),
                }
            }
            Some(point) => (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
            None => (char::REPLACEMENT_CHARACTER, 2),
        },
        Some(b'n' | b'r') => ('\n', 2),
        Some(b't' | b'b' | b'f') => (' ', 2),
        Some(byte @ (b'"' | b'\\' | b'/')) => (char::from(*byte), 2),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Direction;
    use proptest::prelude::*;

    fn recorded(raw: &[u8]) -> Recorded {
        Recorded::bare(1, Direction::ClientToServer, raw.to_vec())
    }

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(text_of(&recorded(raw.as_bytes())).trim_end(), expected);
    }

    #[test]
    fn what_messages_say_is_found_without_how_json_says_it() {
        check(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","deep":[1.5e3,true,null]}}"#,
            "id 7 method tools/call params name read_file deep 1.5e3 true null",
        );
        check(
            r#"{ "jsonrpc" : "2.0" , "a" : "x\ny \"q\" \\ \/ \u00fc\ud83d\ude00 \ud800" }"#,
            "a x\ny \"q\" \\ / ü😀 \u{fffd}",
        );
        check(r#"{"params":{"jsonrpc":"2.0"}}"#, "params jsonrpc 2.0");
        check(r#"{"jsonrpc":"3"}"#, "jsonrpc 3");
        check("[]", "");
        check("DEBUG not json \"at all", "DEBUG not json \"at all");
    }

    #[test]
    fn events_are_found_by_what_they_say() {
        let event = Recorded { event: Some("too large".into()), ..recorded(b"") };
        assert_eq!(text_of(&event), "too large");
    }

    #[test]
    fn blobs_are_left_out_and_long_paths_are_not() {
        let blob = "iVBORw0KGgoAAAANSUhEUgAAAAUA/w8AAAAFCAYAAACNbyblAAAAHElEQVQI12P4+".repeat(4);
        check(&format!(r#"{{"data":"{blob}","after":"it"}}"#), "data … after it");
        check(&format!(r#"{{"escaped":"{}"}}"#, blob.replace('/', "\\/")), "escaped …");
        check(&blob, "…");
        let path = "/a/path-of_parts".repeat(20);
        check(&format!(r#"{{"path":"{path}"}}"#), &format!("path {path}"));
        let hash = "0123456789abcdef".repeat(4);
        check(&format!(r#"{{"sha256":"{hash}"}}"#), &format!("sha256 {hash}"));
    }

    #[test]
    fn text_is_bounded_wherever_it_comes_from() {
        for raw in [
            format!(r#"{{"text":"{}"}}"#, "word ".repeat(TEXT_BYTES_MAX)),
            format!("[{}1]", "1,".repeat(TEXT_BYTES_MAX)),
            format!(r#"["{}"]"#, "\\u00fc".repeat(TEXT_BYTES_MAX)),
            "not json ".repeat(TEXT_BYTES_MAX),
        ] {
            let text = text_of(&recorded(raw.as_bytes()));
            assert!(text.len() <= TEXT_BYTES_MAX && text.len() > TEXT_BYTES_MAX - 8, "{}", text.len());
        }
        // A blob costs nothing, so what follows it is found.
        let raw = format!(r#"["{}","after"]"#, "A1b2".repeat(TEXT_BYTES_MAX));
        assert_eq!(text_of(&recorded(raw.as_bytes())), "… after ");
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_text(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            text_of(&recorded(&bytes));
        }

        #[test]
        fn any_json_like_text_has_a_text(text in r#"[{}\[\]",:\\ua-f0-9é ]{0,80}"#) {
            let mut out = Text::default();
            out.push_json(&text);
            out.end();
        }
    }
}
