//! JSON in another layout: over several lines or without blanks, every number and string as it was spelled.

use crate::scan::{self, Kind};

/// Deeper lines stand no further to the right; a hostile message could ask for gigabytes of blanks.
pub const INDENT_MAX: usize = 64;

/// A message over several lines. Text that is not JSON stays as it is.
pub fn indented(raw: &[u8]) -> String {
    if scan::scan(raw).kind == Kind::NotJson {
        return String::from_utf8_lossy(raw).into_owned();
    }
    let mut out = String::with_capacity(raw.len() * 2);
    for token in Tokens::new(raw) {
        match token {
            Token::Key(text) | Token::Text(text) | Token::Word(text) => out.push_str(&String::from_utf8_lossy(text)),
            Token::Mark(mark) => out.push_str(mark),
            Token::Before(mark, depth) => {
                out.push(mark);
                out.push('\n');
                out.extend(indent(depth));
            }
            Token::After(mark, depth) => {
                out.push('\n');
                out.extend(indent(depth));
                out.push(mark);
            }
        }
    }
    out
}

/// JSON without the blanks between its parts.
pub fn compact(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len());
    for token in Tokens::new(json.as_bytes()) {
        match token {
            Token::Key(text) | Token::Text(text) | Token::Word(text) => out.extend_from_slice(text),
            Token::Mark(mark) => out.extend_from_slice(mark.trim_end().as_bytes()),
            Token::Before(mark, _) | Token::After(mark, _) => out.push(mark as u8),
        }
    }
    String::from_utf8(out).expect("blanks are characters of their own")
}

/// The blanks before a line of this depth.
pub fn indent(depth: usize) -> impl Iterator<Item = &'static str> {
    std::iter::repeat_n("  ", depth.min(INDENT_MAX))
}

/// A part of JSON text, and where a line ends beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Key(&'a [u8]),
    Text(&'a [u8]),
    /// A number, `true`, `false` or `null`.
    Word(&'a [u8]),
    /// `{}`, `[]` or `: `.
    Mark(&'static str),
    /// `{`, `[` or `,`, which stands before a new line of this depth.
    Before(char, usize),
    /// `}` or `]`, which stands at the beginning of a line of this depth.
    After(char, usize),
}

/// The tokens of JSON text. Text that is not JSON has tokens too, all of it.
pub struct Tokens<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(json: &'a [u8]) -> Self {
        Self { rest: json, depth: 0 }
    }

    /// The text behind the last token.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn open(&mut self, open: char) -> Token<'a> {
        self.rest = self.rest.trim_ascii_start();
        let empty = match (open, self.rest.first()) {
            ('{', Some(b'}')) => "{}",
            ('[', Some(b']')) => "[]",
            _ => {
                self.depth += 1;
                return Token::Before(open, self.depth);
            }
        };
        self.rest = &self.rest[1..];
        Token::Mark(empty)
    }

    fn text(&self) -> usize {
        let mut end = 1;
        while let Some(at) = memchr::memchr2(b'"', b'\\', &self.rest[end.min(self.rest.len())..]) {
            match self.rest[end + at] {
                b'"' => return end + at + 1,
                _ => end += at + 2,
            }
        }
        self.rest.len()
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.rest = self.rest.trim_ascii_start();
        let first = *self.rest.first()?;
        let length = match first {
            b'"' => self.text(),
            b'{' | b'[' | b'}' | b']' | b',' | b':' => 1,
            _ => self
                .rest
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || b",:{}[]\"".contains(byte))
                .unwrap_or(self.rest.len()),
        };
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(match first {
            b'{' | b'[' => self.open(char::from(first)),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                Token::After(char::from(first), self.depth)
            }
            b',' => Token::Before(',', self.depth),
            b':' => Token::Mark(": "),
            b'"' if rest.trim_ascii_start().first() == Some(&b':') => Token::Key(text),
            b'"' => Token::Text(text),
            _ => Token::Word(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_spelling() {
        let shown = indented(br#"{ "a":1e400,"b" : [ ],"c":[1,{"d":"x, {y} \" \u0000"}] }"#);
        let expected = "{\n  \"a\": 1e400,\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x, {y} \\\" \\u0000\"\n    }\n  ]\n}";
        assert_eq!(shown, expected);
        assert_eq!(indented(b"not json {"), "not json {");
    }

    #[test]
    fn depth_is_bounded() {
        let deep = indented(format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)).as_bytes());
        assert!(deep.len() < 10_000 * 3 * INDENT_MAX);
    }

    #[test]
    fn blanks_between_parts_go_and_those_in_strings_stay() {
        for (json, expected) in [
            ("{\n  \"a b\": [ 1.50, \"\\\\\" ] }", "{\"a b\":[1.50,\"\\\\\"]}"),
            (r#"{"a": "\" \\", "b" : " " }"#, r#"{"a":"\" \\","b":" "}"#),
            ("null", "null"),
        ] {
            assert_eq!(compact(json), expected);
        }
    }

    #[test]
    fn text_that_breaks_off_has_tokens_too() {
        for (text, count) in [("\"", 1), ("\"a\\", 1), ("[\"\\\"", 2), ("{\"a\":", 3), ("}", 1), ("", 0)] {
            assert_eq!(Tokens::new(text.as_bytes()).count(), count, "{text}");
        }
    }
}
