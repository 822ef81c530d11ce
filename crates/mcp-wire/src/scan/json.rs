//! A validating walk over JSON text: where a value ends, and whether it is one at all. It keeps to
//! the grammar of RFC 8259, never recurses, and allocates only past 64 levels of nesting.

use wide::u8x16;

use super::specials::next_special;

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
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0, Texture::of(bytes))
    }

    /// The same from somewhere in a text on.
    pub(super) fn at(bytes: &'a [u8], at: usize, texture: Texture) -> Self {
        Self { bytes, at, texture, open: Open::default(), deepest: 0 }
    }

    pub(super) fn peek(&self) -> Step<u8> {
        self.bytes.get(self.at).copied().ok_or(NotJson)
    }

    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    pub(super) fn expect(&mut self, byte: u8) -> Step {
        if self.peek()? != byte {
            return Err(NotJson);
        }
        self.at += 1;
        Ok(())
    }

    /// Walks the members of the object at the cursor. `member` gets the key's text between its
    /// quotes and the cursor at the value, which it must walk past.
    pub(super) fn members(&mut self, mut member: impl FnMut(&mut Self, &'a [u8]) -> Step) -> Step {
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
    #[inline]
    pub(super) fn value(&mut self) -> Step {
        if self.peek()? == b'"' { self.string() } else { self.other_value() }
    }

    fn other_value(&mut self) -> Step {
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
    pub(super) fn key(&mut self) -> Step<&'a [u8]> {
        let start = self.at + 1;
        self.string()?;
        let key = &self.bytes[start..self.at - 1];
        self.skip_blanks();
        self.expect(b':')?;
        self.skip_blanks();
        Ok(key)
    }

    #[inline(always)]
    fn string(&mut self) -> Step {
        let bytes = self.bytes;
        if bytes.get(self.at) != Some(&b'"') {
            return Err(NotJson);
        }
        let end = next_special(bytes, self.at + 1, self.texture.has_controls);
        match bytes.get(end) {
            Some(b'"') => {
                self.at = end + 1;
                Ok(())
            }
            Some(b'\\') => self.string_from(end),
            _ => Err(NotJson),
        }
    }

    /// Walks past the rest of a string, which goes on with an escape.
    #[inline(never)]
    fn string_from(&mut self, escape: usize) -> Step {
        let bytes = self.bytes;
        let mut at = escape_end(bytes, escape)?;
        loop {
            at = next_special(bytes, at, self.texture.has_controls);
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
pub(super) fn escape_end(bytes: &[u8], at: usize) -> Step<usize> {
    match bytes.get(at + 1).ok_or(NotJson)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 2),
        b'u' => {
            let digits = bytes.get(at + 2..at + 6).ok_or(NotJson)?;
            if digits.iter().all(u8::is_ascii_hexdigit) { Ok(at + 6) } else { Err(NotJson) }
        }
        _ => Err(NotJson),
    }
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
    pub(crate) fn of(bytes: &[u8]) -> Self {
        /// Nothing that is asked for.
        const PLAIN: u8 = b' ';
        let (parts, rest) = bytes.as_chunks::<16>();
        let mut last = [PLAIN; 16];
        last[..rest.len()].copy_from_slice(rest);
        let (mut lowest, mut union, mut escapes) = (u8x16::splat(PLAIN), u8x16::ZERO, u8x16::ZERO);
        for part in parts.iter().chain([&last]) {
            let part = u8x16::from(*part);
            lowest = lowest.min(part);
            union |= part;
            escapes |= part.simd_eq(u8x16::splat(b'\\'));
        }
        let controls = lowest.simd_eq(lowest.min(u8x16::splat(0x1f)));
        Self {
            has_controls: controls.to_bitmask() != 0,
            has_escapes: escapes.to_bitmask() != 0,
            // A byte is its own mask there: the highest bit of each counts.
            is_ascii: union.to_bitmask() == 0,
        }
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
