//! Secrets in a JSON text: one pass over its tokens, which never recurses and parses nothing into
//! values. The text is known to be JSON.

use std::borrow::Cow;
use std::ops::Range;

use mcp_wire::scan::decode_string;

use super::assigned::after_scheme;
use super::path::{self, JsonPath, Place, Trail};
use super::{Hidden, is_json_container, names};

/// Deeper levels are searched as text: no tool answers with such nesting, and a hostile message could ask for
/// gigabytes.
const DEPTH_MAX: usize = 512;
/// Tools answer with JSON inside a string, and sometimes with JSON inside that.
const NESTED_MAX: u32 = 3;

/// Finds what is to be hidden in `json`; `in_text` finds it in the text of a string.
pub(super) fn find(json: &[u8], paths: &[JsonPath], in_text: &dyn Fn(&[u8]) -> Vec<Hidden>) -> Vec<Hidden> {
    let mut walk = Walk { json, paths, in_text, level: 0, at: 0, open: Vec::new(), hidden: Vec::new() };
    walk.run();
    walk.hidden
}

struct Walk<'a> {
    json: &'a [u8],
    paths: &'a [JsonPath],
    in_text: &'a dyn Fn(&[u8]) -> Vec<Hidden>,
    /// Inside how many JSON strings this text stands.
    level: u32,
    at: usize,
    open: Vec<Container<'a>>,
    hidden: Vec<Hidden>,
}

/// An object or array that is being walked.
struct Container<'a> {
    start: usize,
    is_object: bool,
    awaits_key: bool,
    key: Cow<'a, str>,
    index: usize,
    /// All of it stands under the name of a secret.
    is_secret: bool,
    role: Role,
    trail: Trail,
    /// A path leads here, so it is hidden whole.
    is_wanted: bool,
    pair: Pair,
}

/// What the members of an object are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Plain,
    /// `properties` of a JSON Schema: the names are what it describes, not what it holds.
    Properties,
    /// The schema of something with a secret name: only examples can be secret.
    SecretSchema,
}

/// `{"name": "DB_PASSWORD", "value": "…"}`
#[derive(Default)]
struct Pair {
    is_named: bool,
    value: Option<Range<usize>>,
}

/// What is known of a value before it is read.
struct Spot {
    is_secret: bool,
    is_wanted: bool,
    trail: Trail,
    role: Role,
}

impl<'a> Walk<'a> {
    fn run(&mut self) {
        while let Some(&byte) = self.json.get(self.at) {
            match byte {
                b'{' | b'[' => self.open_container(byte == b'{'),
                b'}' | b']' => self.close_container(),
                b',' => {
                    self.at += 1;
                    if let Some(container) = self.open.last_mut() {
                        container.awaits_key = container.is_object;
                        container.index += 1;
                    }
                }
                b'"' => self.string(),
                b' ' | b'\t' | b'\r' | b'\n' | b':' => self.at += 1,
                _ => self.word(),
            }
            if self.open.len() > DEPTH_MAX {
                return self.give_up();
            }
        }
    }

    /// Too deep to follow: what is left is text, and so is what is open.
    fn give_up(&mut self) {
        if let Some(start) =
            self.open.iter().find(|container| container.is_wanted || container.is_secret).map(|c| c.start)
        {
            self.hidden.push(Hidden { range: start..self.json.len(), quoted_at: None, is_named: false });
        }
        let from = self.at.min(self.json.len());
        let rest = (self.in_text)(&self.json[from..]);
        self.hidden.extend(rest.into_iter().map(|hidden| hidden.shifted(from)));
    }

    fn open_container(&mut self, is_object: bool) {
        let place = self.place();
        self.open.push(Container {
            start: self.at,
            is_object,
            awaits_key: is_object,
            key: Cow::Borrowed(""),
            index: 0,
            is_secret: place.is_secret && place.role == Role::Plain,
            role: place.role,
            trail: place.trail,
            is_wanted: place.is_wanted,
            pair: Pair::default(),
        });
        self.at += 1;
    }

    fn close_container(&mut self) {
        self.at += 1;
        let Some(container) = self.open.pop() else { return };
        if container.is_wanted {
            self.hide_value(container.start..self.at);
        } else if let Some(value) = container.pair.value.filter(|_| container.pair.is_named) {
            self.hidden.push(Hidden::named(value));
        }
    }

    /// What the value at the cursor is, by where it stands.
    fn place(&self) -> Spot {
        let Some(container) = self.open.last() else {
            return Spot { is_secret: false, is_wanted: false, trail: path::beginning(self.paths), role: Role::Plain };
        };
        let spot = if container.is_object { Place::Member(&container.key) } else { Place::Item(container.index) };
        let (trail, is_wanted) = path::follow(self.paths, &container.trail, spot);
        let is_named = container.is_object && names::is_secret(&container.key);
        let is_sample = matches!(&*container.key, "default" | "const" | "example" | "examples");
        let role = match container.role {
            Role::Properties if is_named => Role::SecretSchema,
            Role::Properties => Role::Plain,
            _ if container.is_object && container.key == "properties" => Role::Properties,
            _ => Role::Plain,
        };
        let is_secret = container.is_secret
            || match container.role {
                Role::SecretSchema => is_sample,
                _ => is_named,
            };
        Spot { is_secret, is_wanted, trail, role }
    }

    fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        while let Some(&byte) = self.json.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(self.json.len());
        let inner = start + 1..(self.at - 1).max(start + 1);
        if let Some(container) = self.open.last_mut().filter(|container| container.awaits_key) {
            container.awaits_key = false;
            let key = &self.json[start..self.at];
            container.key = decode_string(key).unwrap_or_else(|| String::from_utf8_lossy(key));
            return self.text(inner);
        }
        let place = self.place();
        if place.is_wanted {
            return self.hide_value(start..self.at);
        }
        if place.is_secret {
            let proof = after_scheme(&self.json[inner.clone()]);
            return self.hidden.push(Hidden::named(inner.start + proof..inner.end));
        }
        self.note_pair(&inner);
        self.text(inner);
    }

    fn note_pair(&mut self, inner: &Range<usize>) {
        let Some(container) = self.open.last_mut().filter(|container| container.is_object) else { return };
        match &*container.key {
            "name" | "key" | "header" | "variable" => {
                let name = std::str::from_utf8(&self.json[inner.clone()]).unwrap_or_default();
                container.pair.is_named |= names::is_secret(name) || names::is_secret_header(name);
            }
            "value" => container.pair.value = Some(inner.clone()),
            _ => {}
        }
    }

    /// A number or a literal.
    fn word(&mut self) {
        let start = self.at;
        let length = self.json[start..].iter().position(|byte| b",]} \t\r\n".contains(byte));
        self.at = length.map_or(self.json.len(), |length| start + length.max(1));
        let place = self.place();
        let is_number = !matches!(self.json[start], b't' | b'f' | b'n');
        let is_count = self.open.last().is_some_and(|container| container.is_object && names::counts(&container.key));
        if place.is_wanted || (place.is_secret && is_number && !is_count) {
            self.hide_value(start..self.at);
        }
    }

    fn hide_value(&mut self, range: Range<usize>) {
        self.hidden.push(Hidden { range, quoted_at: Some(self.level), is_named: false });
    }

    /// Looks into the text of a string, and if that is JSON itself, into that.
    fn text(&mut self, inner: Range<usize>) {
        let spelled = &self.json[inner.clone()];
        let decoded = Decoded::of(spelled);
        let mut found = if self.level < NESTED_MAX && is_json_container(&decoded.text) {
            let mut nested = Walk {
                json: &decoded.text,
                paths: &[],
                in_text: self.in_text,
                level: self.level + 1,
                at: 0,
                open: Vec::new(),
                hidden: Vec::new(),
            };
            nested.run();
            nested.hidden
        } else {
            let mut found = (self.in_text)(&decoded.text);
            for level in found.iter_mut().filter_map(|hidden| hidden.quoted_at.as_mut()) {
                *level += self.level + 1;
            }
            found
        };
        for hidden in &mut found {
            hidden.range = decoded.spelled(&hidden.range);
        }
        self.hidden.extend(found.into_iter().map(|hidden| hidden.shifted(inner.start)));
    }
}

/// The text of a JSON string, and where each part of it is spelled.
struct Decoded<'a> {
    text: Cow<'a, [u8]>,
    /// Each escape: where it stands in the text and in the spelling, and how long it is in both.
    escapes: Vec<Escape>,
}

struct Escape {
    at: usize,
    length: usize,
    spelled_at: usize,
    spelled_length: usize,
}

impl<'a> Decoded<'a> {
    fn of(spelled: &'a [u8]) -> Self {
        if !spelled.contains(&b'\\') {
            return Self { text: Cow::Borrowed(spelled), escapes: Vec::new() };
        }
        let (mut text, mut escapes) = (Vec::with_capacity(spelled.len()), Vec::new());
        let mut at = 0;
        while at < spelled.len() {
            if spelled[at] != b'\\' {
                text.push(spelled[at]);
                at += 1;
                continue;
            }
            let (decoded, spelled_length) = unescape(&spelled[at..]);
            let mut utf8 = [0; 4];
            let utf8 = decoded.encode_utf8(&mut utf8).as_bytes();
            escapes.push(Escape { at: text.len(), length: utf8.len(), spelled_at: at, spelled_length });
            text.extend_from_slice(utf8);
            at += spelled_length;
        }
        Self { text: Cow::Owned(text), escapes }
    }

    /// Where a part of the text is spelled; an escape is never cut apart.
    fn spelled(&self, part: &Range<usize>) -> Range<usize> {
        self.place(part.start, false)..self.place(part.end, true)
    }

    fn place(&self, at: usize, is_end: bool) -> usize {
        let before = self.escapes.partition_point(|escape| escape.at < at);
        let Some(escape) = before.checked_sub(1).and_then(|index| self.escapes.get(index)) else { return at };
        match at.checked_sub(escape.at + escape.length) {
            Some(beyond) => escape.spelled_at + escape.spelled_length + beyond,
            None if is_end => escape.spelled_at + escape.spelled_length,
            None => escape.spelled_at,
        }
    }
}

/// The character that an escape stands for, and how long the escape is. What stands for none is shown
/// as such.
fn unescape(spelled: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(spelled.get(at + 2..at + 6)?).ok()?;
        (spelled.get(at..at + 2)? == b"\\u").then(|| u32::from_str_radix(digits, 16).ok())?
    };
    match spelled.get(1) {
        Some(b'n') => ('\n', 2),
        Some(b't') => ('\t', 2),
        Some(b'r') => ('\r', 2),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'u') => match (unit(0), unit(6)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                let joined = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
            }
            (Some(unit), _) => (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
            (None, _) => (char::REPLACEMENT_CHARACTER, spelled.len().min(2)),
        },
        Some(&other) => (char::from(other), 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}
