//! Paths into a message: `$.params.arguments.path`, `$.params.list[0]`, `$..uri`, `$.*["odd key"]`.
//!
//! A path is followed in one forward walk over the bytes, with the set of steps that may come next at
//! each value. However the path is made, the walk takes time in proportion to the message.

use std::fmt;

use memchr::memchr2;

use crate::syntax::quoted;

/// Steps of one path: they are the bits of a number.
pub(crate) const STEPS_MAX: usize = 31;
/// Deeper values are not examined: common parsers refuse them, and the scanner calls them ambiguous.
const DEPTH_MAX: usize = mcp_wire::scan::DEPTH_MAX;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Path {
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Member(String),
    Item(u64),
    /// Any member or item.
    Any,
    /// Everything below, at any depth; the step after it says which.
    Below,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        let mut is_below = false;
        for step in &self.steps {
            let dot = if is_below { "" } else { "." };
            match step {
                Step::Below => f.write_str("..")?,
                Step::Any => write!(f, "{dot}*")?,
                Step::Item(index) => write!(f, "[{index}]")?,
                Step::Member(name) if is_plain(name) => write!(f, "{dot}{name}")?,
                Step::Member(name) => {
                    f.write_str("[")?;
                    quoted(f, name)?;
                    f.write_str("]")?;
                }
            }
            is_below = *step == Step::Below;
        }
        Ok(())
    }
}

/// Whether a name can stand after a dot.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_plain_char)
}

pub(crate) fn is_plain_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '@')
}

impl Path {
    /// The names of members that it leads through.
    pub(crate) fn members(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Member(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether it leads to what a message is about: a method, a name or a uri, and no argument.
    pub(crate) fn leads_to_name(&self) -> bool {
        let is = |step: &Step, names: &[&str]| matches!(step, Step::Member(name) if names.contains(&name.as_str()));
        self.steps.last().is_some_and(|last| is(last, &["method", "name", "uri"]))
            && !self.steps.iter().any(|step| is(step, &["arguments"]))
    }

    /// Whether `test` holds for the JSON of any value that the path leads to.
    pub(crate) fn any(&self, json: &[u8], mut test: impl FnMut(&[u8]) -> bool) -> bool {
        let mut walk = Walk { json, at: 0, steps: &self.steps, test: &mut test, found: false };
        let start = walk.opened(1);
        walk.value(start, 0);
        walk.found
    }
}

/// Which steps may come next: bit n for step n, the bit after the last for "this is it".
type Next = u32;

struct Walk<'a> {
    json: &'a [u8],
    at: usize,
    steps: &'a [Step],
    test: &'a mut dyn FnMut(&[u8]) -> bool,
    found: bool,
}

impl<'a> Walk<'a> {
    /// Walks over the value at the cursor. `None` if it is no JSON, or the walk is over.
    fn value(&mut self, next: Next, depth: usize) -> Option<()> {
        self.blanks();
        let start = self.at;
        let leads_on = next & !self.goal() != 0 && depth < DEPTH_MAX;
        match self.byte()? {
            b'{' if leads_on => self.object(next, depth)?,
            b'[' if leads_on => self.array(next, depth)?,
            _ => self.skip()?,
        }
        if next & self.goal() != 0 && (self.test)(&self.json[start..self.at]) {
            self.found = true;
            return None;
        }
        Some(())
    }

    fn object(&mut self, next: Next, depth: usize) -> Option<()> {
        self.items(b'}', |walk, _| {
            let key = walk.key()?;
            let taken = walk.taken(next, |step| matches!(step, Step::Member(name) if says(key, name)));
            walk.value(taken, depth + 1)
        })
    }

    fn array(&mut self, next: Next, depth: usize) -> Option<()> {
        self.items(b']', |walk, index| {
            let taken = walk.taken(next, |step| *step == Step::Item(index));
            walk.value(taken, depth + 1)
        })
    }

    /// What stands between brackets, up to and with the closing one.
    fn items(&mut self, close: u8, mut item: impl FnMut(&mut Self, u64) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.blanks();
        let mut index = 0;
        while self.byte()? != close {
            item(self, index)?;
            index += 1;
            self.blanks();
            if self.byte()? == b',' {
                self.at += 1;
                self.blanks();
            }
        }
        self.at += 1;
        Some(())
    }

    /// The steps that may come after a value that `fits` those of `next`.
    fn taken(&self, next: Next, fits: impl Fn(&Step) -> bool) -> Next {
        let mut taken = 0;
        for (index, step) in self.steps.iter().enumerate().filter(|(index, _)| next & (1 << index) != 0) {
            match step {
                Step::Below => taken |= 1 << index,
                step if *step == Step::Any || fits(step) => taken |= 1 << (index + 1),
                _ => {}
            }
        }
        self.opened(taken)
    }

    /// Where everything below may come next, so may what follows it.
    fn opened(&self, mut next: Next) -> Next {
        for (index, step) in self.steps.iter().enumerate() {
            if *step == Step::Below && next & (1 << index) != 0 {
                next |= 1 << (index + 1);
            }
        }
        next
    }

    fn goal(&self) -> Next {
        1 << self.steps.len()
    }

    fn byte(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.byte() {
            self.at += 1;
        }
    }

    /// The JSON of a key; the cursor ends on its value.
    fn key(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.string()?;
        let key = &self.json[start..self.at];
        self.blanks();
        if self.byte()? != b':' {
            return None;
        }
        self.at += 1;
        Some(key)
    }

    fn string(&mut self) -> Option<()> {
        if self.byte()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            let rest = self.json.get(self.at..)?;
            let found = memchr2(b'"', b'\\', rest)?;
            self.at += found + 1;
            if rest[found] == b'"' {
                return Some(());
            }
            self.at += 1;
        }
    }

    /// Runs over a value without looking at it.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.byte()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => self.scalar()?,
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn scalar(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(byte) = self.byte() {
            if matches!(byte, b',' | b':' | b'}' | b']' | b'{' | b'[' | b'"' | b' ' | b'\t' | b'\r' | b'\n') {
                break;
            }
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

/// Whether a key, as JSON, says `name`.
fn says(key: &[u8], name: &str) -> bool {
    let inner = &key[1..key.len() - 1];
    inner == name.as_bytes()
        || (inner.contains(&b'\\') && mcp_wire::scan::decode_string(key).is_some_and(|key| key == name))
}
