//! A validating walk over JSON text: where a value ends, and whether it is one at all. It keeps to
//! the grammar of RFC 8259, never recurses, and allocates only past 64 levels of nesting.

/// The text is not JSON from here on. There is nothing more to say: such a message is opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotJson;

type Step<T = ()> = Result<T, NotJson>;

pub(super) struct Walk<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    pub texture: Texture,
    open: Open,
    pub deepest: usize,
}

impl<'a> Walk<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, texture: Texture::of(bytes), open: Open::default(), deepest: 0 }
    }

    pub fn peek(&self) -> Step<u8> {
        self.bytes.get(self.at).copied().ok_or(NotJson)
    }

    #[inline]
    pub fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    pub fn expect(&mut self, byte: u8) -> Step {
        if self.peek()? != byte {
            return Err(NotJson);
        }
        self.at += 1;
        Ok(())
    }

    /// Walks the members of the object at the cursor. `member` gets the key's text between its
    /// quotes and the cursor at the value, which it must walk past.
    pub fn members(&mut self, mut member: impl FnMut(&mut Self, &'a [u8]) -> Step) -> Step {
        self.expect(b'{')?;
        self.enter(Container::Object);
        self.skip_blanks();
        if self.peek()? != b'}' {
            loop {
                let key = self.key()?;
                member(self, key)?;
                self.skip_blanks();
                match self.peek()? {
                    b',' => self.at += 1,
                    b'}' => break,
                    _ => return Err(NotJson),
                }
                self.skip_blanks();
            }
        }
        self.at += 1;
        self.open.pop();
        Ok(())
    }

    /// Walks past one value of any kind.
    pub fn value(&mut self) -> Step {
        let floor = self.open.depth;
        loop {
            if self.value_opens()? {
                continue;
            }
            loop {
                if self.open.depth == floor {
                    return Ok(());
                }
                if self.value_closed()? {
                    break;
                }
            }
        }
    }

    /// Reads a value's first token. True when that opened a container that has content.
    fn value_opens(&mut self) -> Step<bool> {
        match self.peek()? {
            b'"' => self.string()?,
            b'{' => return self.container(Container::Object),
            b'[' => return self.container(Container::Array),
            b't' => self.literal(b"true")?,
            b'f' => self.literal(b"false")?,
            b'n' => self.literal(b"null")?,
            _ => self.number()?,
        }
        Ok(false)
    }

    fn container(&mut self, container: Container) -> Step<bool> {
        self.at += 1;
        self.enter(container);
        self.skip_blanks();
        let close = if container == Container::Object { b'}' } else { b']' };
        if self.peek()? == close {
            self.at += 1;
            self.open.pop();
            return Ok(false);
        }
        if container == Container::Object {
            self.key()?;
        }
        Ok(true)
    }

    /// What follows a value inside a container. True when another value comes.
    fn value_closed(&mut self) -> Step<bool> {
        self.skip_blanks();
        let byte = self.peek()?;
        self.at += 1;
        match (byte, self.open.top()) {
            (b',', container) => {
                self.skip_blanks();
                if container == Container::Object {
                    self.key()?;
                }
                Ok(true)
            }
            (b'}', Container::Object) | (b']', Container::Array) => {
                self.open.pop();
                Ok(false)
            }
            _ => Err(NotJson),
        }
    }

    fn enter(&mut self, container: Container) {
        self.open.push(container);
        self.deepest = self.deepest.max(self.open.depth);
    }

    /// A key and its colon; the cursor ends on the value.
    pub fn key(&mut self) -> Step<&'a [u8]> {
        let start = self.at + 1;
        self.string()?;
        let key = &self.bytes[start..self.at - 1];
        self.skip_blanks();
        self.expect(b':')?;
        self.skip_blanks();
        Ok(key)
    }

    #[inline]
    fn string(&mut self) -> Step {
        let bytes = self.bytes;
        if bytes.get(self.at) != Some(&b'"') {
            return Err(NotJson);
        }
        let mut at = self.at + 1;
        loop {
            at = plain_run_end(bytes, at, self.texture.has_controls);
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at = escape_end(bytes, at)?,
                _ => return Err(NotJson),
            }
        }
        self.at = at + 1;
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Step {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(NotJson);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Step {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Step {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err(NotJson) } else { Ok(()) }
    }
}

/// The end of the escape that begins at `at`.
fn escape_end(bytes: &[u8], at: usize) -> Step<usize> {
    match bytes.get(at + 1).ok_or(NotJson)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 2),
        b'u' => {
            let digits = bytes.get(at + 2..at + 6).ok_or(NotJson)?;
            if digits.iter().all(u8::is_ascii_hexdigit) { Ok(at + 6) } else { Err(NotJson) }
        }
        _ => Err(NotJson),
    }
}

/// The end of a run of string bytes that need no thought: the next quote, backslash or control.
#[inline]
pub(crate) fn plain_run_end(bytes: &[u8], from: usize, has_controls: bool) -> usize {
    /// Most runs are keys, short words or what stands between two escapes; calling the vectorised
    /// search for those costs more than it saves.
    const SHORT: usize = 64;
    let mut at = from;
    while let Some(word) = bytes[at..].first_chunk::<8>() {
        let found = specials(u64::from_le_bytes(*word));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
        if at - from == SHORT && !has_controls {
            return at + memchr::memchr2(b'"', b'\\', &bytes[at..]).unwrap_or(bytes.len() - at);
        }
    }
    let rest = &bytes[at..];
    at + rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20).unwrap_or(rest.len())
}

/// The high bit of each byte that is a quote, a backslash or a control; exact up to and including
/// the lowest one set, which is all that is asked.
#[inline]
fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word;
    let quotes = zero_bytes(word ^ (ONES * b'"' as u64));
    let backslashes = zero_bytes(word ^ (ONES * b'\\' as u64));
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (quotes | backslashes | controls) & HIGHS
}

/// What kinds of bytes a text is made of, found in one vectorised pass. Nearly no message has a
/// control character in it, and then strings need not be searched for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Texture {
    pub has_controls: bool,
    pub has_escapes: bool,
    pub is_ascii: bool,
}

impl Texture {
    pub fn of(bytes: &[u8]) -> Self {
        let mut union = [0u8; 3];
        for &byte in bytes {
            union[0] |= u8::from(byte < 0x20);
            union[1] |= u8::from(byte == b'\\');
            union[2] |= byte;
        }
        Self { has_controls: union[0] != 0, has_escapes: union[1] != 0, is_ascii: union[2] < 0x80 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

/// The containers that are open, a bit each.
#[derive(Default)]
struct Open {
    depth: usize,
    word: u64,
    full_words: Vec<u64>,
}

impl Open {
    fn push(&mut self, container: Container) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.full_words.push(self.word);
        }
        self.word = (self.word << 1) | u64::from(container == Container::Object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.word >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.word = self.full_words.pop().expect("a word was kept at each 64 levels");
        }
    }

    fn top(&self) -> Container {
        if self.word & 1 == 1 { Container::Object } else { Container::Array }
    }
}
