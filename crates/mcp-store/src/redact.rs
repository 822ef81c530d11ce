//! Secrets taken out of what leaves the machine. A secret is found by the name it stands under, by its
//! shape, by a path that the user gave, or because it was found before; only its own bytes are
//! replaced, so everything around it stays as it was spelled.
//!
//! This is a net, not a wall: what is secret only to those who know it passes. `docs/security.md`
//! says so too.

mod assigned;
mod json;
mod known;
mod names;
mod path;
mod shapes;

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use mcp_wire::Kind;
use mcp_wire::scan;

use known::Known;
pub use path::JsonPath;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// Masks secrets, counts them, and remembers those it has seen.
#[derive(Default)]
pub struct Redactor {
    is_off: bool,
    paths: Vec<JsonPath>,
    known: Known,
    masked: u64,
}

/// A part of a text that must not be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hidden {
    range: Range<usize>,
    /// It is a JSON value rather than the inside of a string, so the mask needs quotes; inside how many
    /// other JSON strings it stands says how these are spelled.
    quoted_at: Option<u32>,
    /// It stands under a name that says that it is secret, so it is worth knowing when it comes again.
    is_named: bool,
}

impl Hidden {
    fn inside(range: Range<usize>) -> Self {
        Self { range, quoted_at: None, is_named: false }
    }

    fn named(range: Range<usize>) -> Self {
        Self { range, quoted_at: None, is_named: true }
    }

    /// The same, found in a part that begins at `by`.
    fn shifted(self, by: usize) -> Self {
        Self { range: self.range.start + by..self.range.end + by, ..self }
    }
}

impl Redactor {
    /// Masks what `paths` lead to as well.
    pub fn new(paths: Vec<JsonPath>) -> Self {
        Self { paths, ..Self::default() }
    }

    /// One that changes nothing.
    pub fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// How many values were masked so far.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// A message, JSON or not.
    pub fn message(&mut self, raw: &Bytes) -> Bytes {
        if self.is_off {
            return raw.clone();
        }
        let hidden = match scan::scan(raw).kind {
            Kind::NotJson => self.in_text(raw),
            _ => json::find(raw, &self.paths, &|text| self.in_text(text)),
        };
        match self.mask(raw, hidden) {
            Cow::Borrowed(_) => raw.clone(),
            Cow::Owned(masked) => masked.into(),
        }
    }

    /// Text that is no message: a command line, an address, a server's last words.
    pub fn text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if self.is_off {
            return Cow::Borrowed(text);
        }
        let hidden = self.in_text(text.as_bytes());
        as_text(self.mask(text.as_bytes(), hidden))
    }

    /// A value under a name: a header, a note.
    pub fn named<'a>(&mut self, name: &str, value: &'a str) -> Cow<'a, str> {
        if self.is_off {
            return Cow::Borrowed(value);
        }
        if !names::is_secret(name) && !names::is_secret_header(name) {
            return self.text(value);
        }
        let from = assigned::after_scheme(value.as_bytes());
        as_text(self.mask(value.as_bytes(), vec![Hidden::named(from..value.len())]))
    }

    fn in_text(&self, text: &[u8]) -> Vec<Hidden> {
        let mut hidden = Vec::new();
        if text.len() >= shapes::SHORTEST {
            shapes::find(text, &mut hidden);
            assigned::find(text, &mut hidden);
            self.known.find(text, &mut hidden);
            self.find_in_json_within(text, &mut hidden);
        }
        hidden
    }

    /// A line of a log often has JSON in it, from the first brace to the last.
    fn find_in_json_within(&self, text: &[u8], hidden: &mut Vec<Hidden>) {
        let ends = (text.iter().position(|&byte| byte == b'{'), text.iter().rposition(|&byte| byte == b'}'));
        let (Some(first), Some(last)) = ends else { return };
        if first < last && is_json_container(&text[first..=last]) {
            let found = json::find(&text[first..=last], &[], &|text| self.in_text(text));
            hidden.extend(found.into_iter().map(|hidden| hidden.shifted(first)));
        }
    }

    /// Puts the mask in place of what is hidden. What overlaps is one secret.
    fn mask<'a>(&mut self, text: &'a [u8], mut hidden: Vec<Hidden>) -> Cow<'a, [u8]> {
        hidden.retain(|hidden| !hidden.range.is_empty() && text[hidden.range.clone()] != *MASK.as_bytes());
        if hidden.is_empty() {
            return Cow::Borrowed(text);
        }
        hidden.sort_by_key(|hidden| (hidden.range.start, std::cmp::Reverse(hidden.range.end)));
        let mut masked = Vec::with_capacity(text.len());
        let mut done = 0;
        for Hidden { range, quoted_at, is_named } in hidden {
            if is_named {
                self.known.add(&text[range.clone()]);
            }
            if range.start < done {
                // The rest of one that began inside another.
                done = done.max(range.end);
                continue;
            }
            masked.extend_from_slice(&text[done..range.start]);
            let quote = quoted_at.map(quote_at).unwrap_or_default();
            [quote.as_str(), MASK, &quote].iter().for_each(|part| masked.extend_from_slice(part.as_bytes()));
            self.masked += 1;
            done = range.end;
        }
        masked.extend_from_slice(&text[done..]);
        Cow::Owned(masked)
    }
}

/// A quote that stands inside this many JSON strings, each of which escapes the one within.
fn quote_at(level: u32) -> String {
    format!("{}\"", "\\".repeat((1 << level) - 1))
}

fn as_text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Whether a text is JSON with something inside it.
fn is_json_container(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')) && scan::scan(text).kind != Kind::NotJson
}

#[cfg(test)]
pub(crate) mod planted;
#[cfg(test)]
mod tests;
