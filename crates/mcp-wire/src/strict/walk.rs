//! A walk over every object of a message, for keys that stand twice, keys that pass for others and
//! strings that not every reader can decode. The text is known to be JSON, and not too deep: that
//! was the scan's part, so nothing is checked again and recursion is bounded.

use std::sync::LazyLock;

use super::Unfit;
use super::keys::{JudgedKeys, Likeness, Member, Place};
use super::print::{Key, Print};
use super::siblings::Siblings;
use crate::scan::json::Texture;
use crate::scan::specials::next_special;
use crate::scan::{Ambiguity, Span};

/// What stands where in the envelope, beyond what a scan tells.
#[derive(Default)]
pub(super) struct Shape {
    pub version: Option<Span>,
    pub params: Option<Span>,
    pub result: Option<Span>,
    pub error: Option<Span>,
    pub arguments: Option<Span>,
    pub has_action: bool,
    pub notifications: Option<Span>,
    pub subscriptions: Option<Span>,
    pub reference: Reference,
}

/// What a completion is about.
#[derive(Default)]
pub(super) struct Reference {
    pub kind: Option<Span>,
    pub name: Option<Span>,
    pub uri: Option<Span>,
}

pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    keys: &'a JudgedKeys,
    has_escapes: bool,
    pub shape: Shape,
}

/// How the argument is called by which a proxy tool goes.
static ACTION: LazyLock<Print> = LazyLock::new(|| Print::of(b"action"));

type Step<T = ()> = Result<T, Unfit>;

impl<'a> Walk<'a> {
    pub(super) fn new(bytes: &'a [u8], texture: Texture, keys: &'a JudgedKeys) -> Self {
        Self { bytes, at: 0, keys, has_escapes: texture.has_escapes, shape: Shape::default() }
    }

    /// Walks the whole message.
    pub(super) fn message(&mut self) -> Step {
        self.skip_blanks();
        self.value(Place::Envelope, false)
    }

    /// Walks past a value. `judged` says that a rule looks at it.
    fn value(&mut self, place: Place, judged: bool) -> Step {
        match self.byte() {
            b'{' => self.object(place),
            b'[' => self.array(judged),
            b'"' => {
                let text = self.string()?;
                if judged && self.has_escapes && has_nul(text) { Err(Unfit::Nul) } else { Ok(()) }
            }
            _ => self.scalar(),
        }
    }

    fn object(&mut self, place: Place) -> Step {
        let mut siblings = Siblings::default();
        self.open();
        while self.byte() != b'}' {
            let key = self.key()?;
            let name = place.name(&key.text);
            let likeness = self.keys.likeness(&key);
            if likeness == Likeness::Alike || (name == Member::Unknown && place.has_alike(&key)) {
                return Err(Ambiguity::LookAlikeKey.into());
            }
            self.shape.has_action |= place == Place::Arguments && key.to_people == *ACTION;
            siblings.add(key.to_parsers)?;
            self.member(name, likeness == Likeness::Same || name == Member::Subject)?;
            self.next();
        }
        self.at += 1;
        siblings.finish()
    }

    /// Walks past the value of a member and notes where it stands, if somebody asks for it later.
    fn member(&mut self, name: Member, judged: bool) -> Step {
        let inside = match name {
            Member::Params => Place::Params,
            Member::Meta => Place::Meta,
            Member::Reference => Place::Reference,
            Member::Notifications => Place::Notifications,
            Member::Arguments => Place::Arguments,
            _ => Place::Elsewhere,
        };
        let start = self.at;
        self.value(inside, judged)?;
        let Shape { version, params, result, error, arguments, notifications, subscriptions, reference, .. } =
            &mut self.shape;
        let slot = match name {
            Member::Version => version,
            Member::Params => params,
            Member::Result => result,
            Member::Error => error,
            Member::Arguments => arguments,
            Member::Notifications => notifications,
            Member::Subscriptions => subscriptions,
            Member::ReferenceKind => &mut reference.kind,
            Member::ReferenceName => &mut reference.name,
            Member::ReferenceUri => &mut reference.uri,
            Member::Subject | Member::Meta | Member::Reference | Member::Known | Member::Unknown => return Ok(()),
        };
        *slot = Some(Span::new(start..self.at));
        Ok(())
    }

    fn key(&mut self) -> Step<Key<'a>> {
        let start = self.at;
        self.string()?;
        let key = Key::read(&self.bytes[start..self.at]).ok_or(Ambiguity::Undecodable)?;
        self.skip_blanks();
        self.at += 1;
        self.skip_blanks();
        // No tool has such a name; a reader that stops there takes it for a shorter one.
        if self.has_escapes && key.text.contains(&0) { Err(Ambiguity::LookAlikeKey.into()) } else { Ok(key) }
    }

    fn array(&mut self, judged: bool) -> Step {
        self.open();
        while self.byte() != b']' {
            self.value(Place::Elsewhere, judged)?;
            self.next();
        }
        self.at += 1;
        Ok(())
    }

    /// Walks past a string, and gives what stands between its quotes.
    #[inline(always)]
    fn string(&mut self) -> Step<&'a [u8]> {
        let start = self.at + 1;
        // Its end is known to be there, and controls not to be.
        let mut end = next_special(self.bytes, start, false);
        if self.bytes.get(end) != Some(&b'"') {
            end = self.escaped_end(end)?;
        }
        self.at = end + 1;
        Ok(&self.bytes[start..end])
    }

    /// The end of a string that goes on with an escape.
    #[inline(never)]
    fn escaped_end(&self, mut at: usize) -> Step<usize> {
        loop {
            match self.bytes.get(at).ok_or(Ambiguity::NotJson)? {
                b'\\' => at = next_special(self.bytes, escape_end(self.bytes, at)?, false),
                _ => return Ok(at),
            }
        }
    }

    fn scalar(&mut self) -> Step {
        let start = self.at;
        while !matches!(self.byte(), b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' | b'\0') {
            self.at += 1;
        }
        if is_finite(&self.bytes[start..self.at]) { Ok(()) } else { Err(Unfit::Number) }
    }

    /// Steps into a container.
    fn open(&mut self) {
        self.at += 1;
        self.skip_blanks();
    }

    /// Steps to the next entry of a container, or to its end.
    fn next(&mut self) {
        self.skip_blanks();
        if self.byte() == b',' {
            self.at += 1;
            self.skip_blanks();
        }
    }

    /// The byte at the cursor; NUL, which stands nowhere in JSON, at the end.
    fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        while let b' ' | b'\t' | b'\r' | b'\n' = self.byte() {
            self.at += 1;
        }
    }
}

/// The end of the escape that begins at `at`. Half of a pair is no character: some readers replace
/// it, some keep it, some refuse.
fn escape_end(bytes: &[u8], at: usize) -> Step<usize> {
    let Some(unit) = unit(bytes, at) else { return Ok(at + 2) };
    match unit {
        0xd800..=0xdbff if matches!(self::unit(bytes, at + 6), Some(0xdc00..=0xdfff)) => Ok(at + 12),
        0xd800..=0xdfff => Err(Ambiguity::Undecodable.into()),
        _ => Ok(at + 6),
    }
}

/// The code unit that the escape at `at` stands for, if it is spelled with `\u`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = bytes.get(at..at + 6)? else { return None };
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether a string (between its quotes) has a NUL, where some readers stop.
pub(super) fn has_nul(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"\\u0000").any(|at| {
        // An escaped backslash before it makes it text.
        text[..at].iter().rev().take_while(|byte| **byte == b'\\').count().is_multiple_of(2)
    })
}

/// Whether a number is one to every reader: some take one too large for infinity, some refuse it.
fn is_finite(scalar: &[u8]) -> bool {
    /// Without an exponent, a number of fewer digits is never too large.
    const DIGITS: usize = 300;
    if scalar.len() < DIGITS && !scalar.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return true;
    }
    let number = std::str::from_utf8(scalar).ok().and_then(|text| text.parse::<f64>().ok());
    number.is_none_or(f64::is_finite)
}

impl From<Ambiguity> for Unfit {
    fn from(ambiguity: Ambiguity) -> Self {
        Self::Ambiguous(ambiguity)
    }
}
