//! A JSON object, read member by member and element by element. Only the value that is asked
//! for is held in memory, and where it stands is known, so that it can be read again.
//!
//! Values are cut out, not judged: whoever parses one finds what is wrong inside it.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::StoreError;

/// Bytes of a session file read at a time.
const BUFFER_BYTES: usize = 64 * 1024;

pub(super) struct Document<R> {
    input: BufReader<R>,
    /// Where the next byte stands.
    offset: u64,
    /// Whether the object or array that is being read has had a member.
    begun: bool,
}

#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    Bad(String),
}

impl Fault {
    /// The same of a part of the document.
    pub(super) fn within(self, part: &str) -> Self {
        match self {
            Self::Io(error) => Self::Io(error),
            Self::Bad(reason) => Self::Bad(format!("{part}: {reason}")),
        }
    }

    /// What it means for the session file at `path`.
    pub(super) fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Io(error) => StoreError::io("read", path)(error),
            Self::Bad(reason) => StoreError::not_a_session(path, reason),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: Read> Document<R> {
    /// At the beginning of the object that `input` is.
    pub(super) fn open(input: R) -> Result<Self, Fault> {
        let mut document = Self { input: BufReader::with_capacity(BUFFER_BYTES, input), offset: 0, begun: false };
        document.expect(b'{', "an object")?;
        Ok(document)
    }

    /// The name of the next member.
    pub(super) fn next_name(&mut self) -> Result<Option<String>, Fault> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        let mut name = Vec::new();
        match self.peek()? {
            Some(b'"') => self.value(&mut name)?,
            _ => return Err(self.bad("expected the name of a member")),
        }
        let name = serde_json::from_slice(&name).map_err(|error| self.bad(&error.to_string()))?;
        self.expect(b':', "`:`")?;
        Ok(Some(name))
    }

    /// The value that stands here.
    pub(super) fn value(&mut self, into: &mut Vec<u8>) -> Result<(), Fault> {
        into.clear();
        self.pass_value(|bytes| into.extend_from_slice(bytes))
    }

    /// The same, unless it is longer than anybody would have written it.
    pub(super) fn short_value(&mut self, into: &mut Vec<u8>, most: usize) -> Result<(), Fault> {
        into.clear();
        let mut length = 0;
        self.pass_value(|bytes| {
            length += bytes.len();
            if length <= most {
                into.extend_from_slice(bytes);
            }
        })?;
        if length > most { Err(self.bad("a member is too long")) } else { Ok(()) }
    }

    pub(super) fn skip_value(&mut self) -> Result<(), Fault> {
        self.pass_value(|_| {})
    }

    /// Goes into the array that stands here, if it is one, and tells where it begins. Its elements come
    /// from [`Document::next_element`], until there is none.
    pub(super) fn enter_array(&mut self) -> Result<Option<u64>, Fault> {
        if self.peek()? != Some(b'[') {
            return Ok(None);
        }
        let at = self.offset;
        self.consume(1);
        self.begun = false;
        Ok(Some(at))
    }

    /// The next element of the array, and where it stands.
    pub(super) fn next_element(&mut self, into: &mut Vec<u8>) -> Result<Option<u64>, Fault> {
        if !self.has_next(b']')? {
            // What goes on is the object, and this was a member of it.
            self.begun = true;
            return Ok(None);
        }
        self.peek()?;
        let at = self.offset;
        self.value(into)?;
        Ok(Some(at))
    }

    /// Where the next value begins that stands by itself after the object, if any does.
    pub(super) fn next_line(&mut self) -> Result<Option<u64>, Fault> {
        Ok(self.peek()?.map(|_| self.offset))
    }

    /// Makes sure that nothing follows the object.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(self.bad("trailing characters")),
        }
    }

    /// Whether something follows before `close`, with the comma that must stand before it.
    fn has_next(&mut self, close: u8) -> Result<bool, Fault> {
        let begun = std::mem::replace(&mut self.begun, true);
        match self.peek()? {
            Some(byte) if byte == close => {
                self.consume(1);
                Ok(false)
            }
            Some(b',') if begun => {
                self.consume(1);
                match self.peek()? {
                    Some(byte) if byte == close => Err(self.bad("trailing comma")),
                    _ => Ok(true),
                }
            }
            Some(_) if !begun => Ok(true),
            Some(_) => Err(self.bad("expected `,`")),
            None => Err(self.too_early()),
        }
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Fault> {
        match self.peek()? {
            Some(found) if found == byte => {
                self.consume(1);
                Ok(())
            }
            Some(_) => Err(self.bad(&format!("expected value: {what}"))),
            None => Err(self.too_early()),
        }
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let blanks = buffer.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
            let found = buffer.get(blanks).copied();
            self.consume(blanks);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    fn pass_value(&mut self, mut take: impl FnMut(&[u8])) -> Result<(), Fault> {
        if self.peek()?.is_none() {
            return Err(self.too_early());
        }
        let mut inside = Inside::default();
        let begin = self.offset;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                // A number may end with the file, but the object around it does not.
                return Err(self.too_early());
            }
            let (length, is_over) = inside.pass(buffer);
            take(&buffer[..length]);
            self.consume(length);
            if is_over {
                return if self.offset > begin { Ok(()) } else { Err(self.bad("expected value")) };
            }
        }
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.offset += count as u64;
    }

    fn bad(&self, what: &str) -> Fault {
        Fault::Bad(format!("{what} at byte {}", self.offset))
    }

    fn too_early(&self) -> Fault {
        self.bad("EOF")
    }
}

impl<R: Read + Seek> Document<R> {
    /// Goes on at `offset`, where a value begins.
    pub(super) fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(offset))?;
        self.offset = offset;
        Ok(())
    }
}

/// Where in a value we are.
#[derive(Default)]
struct Inside {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Inside {
    /// How much of `bytes` belongs to the value, and whether it ends there.
    fn pass(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                match memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                    _ if self.escaped => {
                        self.escaped = false;
                        at += 1;
                    }
                    Some(next) => {
                        at += next + 1;
                        self.escaped = bytes[at - 1] == b'\\';
                        self.in_string = self.escaped;
                    }
                    None => return (bytes.len(), false),
                }
                if !self.in_string && self.depth == 0 {
                    return (at, true);
                }
                continue;
            }
            match bytes[at] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => return (at + 1, true),
                // A number or a word ends before what follows it.
                b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {
                    return (at, true);
                }
                _ => {}
            }
            at += 1;
        }
        (at, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every member with its value, arrays taken apart.
    fn members(json: &[u8]) -> Result<Vec<(String, Vec<String>)>, Fault> {
        let mut document = Document::open(json)?;
        let (mut members, mut bytes) = (Vec::new(), Vec::new());
        while let Some(name) = document.next_name()? {
            let mut values = Vec::new();
            if document.enter_array()?.is_some() {
                while let Some(at) = document.next_element(&mut bytes)? {
                    assert!(json[at as usize..].starts_with(&bytes));
                    values.push(String::from_utf8_lossy(&bytes).into_owned());
                }
            } else {
                document.value(&mut bytes)?;
                values.push(String::from_utf8_lossy(&bytes).into_owned());
            }
            members.push((name, values));
        }
        document.end()?;
        Ok(members)
    }

    #[track_caller]
    fn check(json: &str, expected: &[(&str, &[&str])]) {
        let found = members(json.as_bytes()).unwrap();
        let found: Vec<(&str, Vec<&str>)> =
            found.iter().map(|(name, values)| (name.as_str(), values.iter().map(String::as_str).collect())).collect();
        let expected: Vec<(&str, Vec<&str>)> = expected.iter().map(|(name, values)| (*name, values.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn members_and_elements_come_one_by_one() {
        check("{}", &[]);
        check(r#" { "a" : 1.5e3 , "b":"x\"],}" } "#, &[("a", &["1.5e3"]), ("b", &[r#""x\"],}""#])]);
        check(
            r#"{"a":[1, {"b":[2,"]"]} ,[], "\\"],"c\u0064":null,"e":{"f":{}}}"#,
            &[("a", &["1", r#"{"b":[2,"]"]}"#, "[]", r#""\\""#]), ("cd", &["null"]), ("e", &[r#"{"f":{}}"#])],
        );
        let long = "x".repeat(3 * BUFFER_BYTES);
        check(&format!(r#"{{"a":["{long}"],"b":2}}"#), &[("a", &[&format!("\"{long}\"")]), ("b", &["2"])]);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for json in [
            "",
            " ",
            "1",
            "[]",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":[1,]}",
            "{\"a\":[1 2]}",
            "{\"a\":[1",
            "{\"a\":\"x",
            "{a:1}",
            "{\"a\":1}{",
            "{,\"a\":1}",
            "{\"a\":}",
        ] {
            assert!(matches!(members(json.as_bytes()), Err(Fault::Bad(_))), "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_object_of_a_full_parser_is_read_the_same(text in r#"\{("a":([0-9]{1,3}|"[\\"\]a]{0,3}"|\[\]|\{"b":\[1\]\}),?){0,3}\}"#) {
            let parsed = serde_json::from_str::<std::collections::BTreeMap<String, serde_json::Value>>(&text);
            let read = members(text.as_bytes());
            if parsed.is_ok() {
                prop_assert!(read.is_ok(), "{text}");
            }
        }

        #[test]
        fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = members(&bytes);
        }
    }
}
