//! The scan of a message that is like nearly all: an object in one piece, with nothing in it that could be read two
//! ways. It runs over the bytes once, in one loop. Whatever is out of the ordinary it leaves to the careful scan, which
//! says the same of all that this one takes.

use std::num::NonZeroU32;

use super::json::{Texture, Walk};
use super::names::{Named, Place};
use super::specials::next_special;
use super::{Kind, Peek, Span};

/// Levels of nesting that have a bit each.
const LEVELS: u32 = 64;

/// What was found, or nothing if the careful scan has to look.
pub(crate) fn quick(bytes: &[u8], texture: Texture) -> Option<Peek> {
    if texture.has_controls || u32::try_from(bytes.len()).is_err() {
        return None;
    }
    if !texture.is_ascii && simdutf8::basic::from_utf8(bytes).is_err() {
        return None;
    }
    let mut found = Found { peek: Peek::nothing(texture), has_result: false, has_error: false };
    walk(bytes, texture, &mut found)?;
    found.settle(bytes)
}

/// The containers that are open.
struct Open {
    depth: u32,
    /// A bit for each, the innermost last: whether it is an object.
    objects: u64,
    /// The innermost is, or is in, `params`, and its `_meta`.
    in_params: bool,
    in_meta: bool,
}

impl Open {
    #[inline(always)]
    fn push(&mut self, is_object: bool) -> Option<()> {
        self.depth += 1;
        self.objects = self.objects << 1 | u64::from(is_object);
        (self.depth <= LEVELS).then_some(())
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
        self.in_params &= self.depth > 1;
        self.in_meta &= self.depth > 2;
    }

    #[inline(always)]
    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }

    /// Which names count in the innermost.
    #[inline(always)]
    fn place(&self) -> Option<Place> {
        match self.depth {
            1 => Some(Place::TopLevel),
            2 if self.in_params => Some(Place::Params),
            3 if self.in_meta => Some(Place::Meta),
            _ => None,
        }
    }
}

fn walk(bytes: &[u8], texture: Texture, found: &mut Found) -> Option<()> {
    let mut open = Open { depth: 0, objects: 0, in_params: false, in_meta: false };
    let mut seen = 0;
    let mut at = blanks(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    open.push(true)?;
    at = blanks(bytes, at + 1);
    'members: loop {
        let key = at + 1;
        at = string(bytes, at)?;
        let name = &bytes[key..at - 1];
        at = colon(bytes, at)?;
        let named = match open.place() {
            Some(place) => place.named(name, &mut seen)?,
            None => Named::Unknown,
        };
        'value: loop {
            let start = at;
            match bytes.get(at)? {
                b'"' => {
                    at = string(bytes, at)?;
                    if named != Named::Unknown && open.is_object() {
                        found.note(named, bytes, start..at, texture.has_escapes)?;
                    }
                }
                &opening @ (b'{' | b'[') => {
                    let is_object = opening == b'{';
                    if named != Named::Unknown && open.is_object() {
                        found.note_container(named, is_object, start, &mut open)?;
                    }
                    open.push(is_object)?;
                    at = blanks(bytes, at + 1);
                    match (is_object, bytes.get(at)?) {
                        (true, b'}') | (false, b']') => {
                            open.pop();
                            at += 1;
                        }
                        (true, _) => continue 'members,
                        (false, _) => continue 'value,
                    }
                }
                b'0'..=b'9' | b'-' | b't' | b'f' | b'n' => {
                    at = scalar(bytes, at, texture)?;
                    if named != Named::Unknown && open.is_object() {
                        found.note(named, bytes, start..at, false)?;
                    }
                }
                _ => return None,
            }
            loop {
                at = blanks(bytes, at);
                match (bytes.get(at)?, open.is_object()) {
                    (b',', is_object) => {
                        at = blanks(bytes, at + 1);
                        if is_object {
                            continue 'members;
                        }
                        continue 'value;
                    }
                    (b'}', true) | (b']', false) => {
                        open.pop();
                        at += 1;
                        if open.depth == 0 {
                            return (blanks(bytes, at) == bytes.len()).then_some(());
                        }
                    }
                    _ => return None,
                }
            }
        }
    }
}

/// Past blanks. There are no controls, so there is one kind of them.
#[inline(always)]
fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at) == Some(&b' ') {
        at += 1;
    }
    at
}

/// Past a string.
#[inline(always)]
fn string(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let end = next_special(bytes, at + 1, false);
    match bytes.get(end)? {
        b'"' => Some(end + 1),
        _ => with_escapes(bytes, end),
    }
}

/// Past the rest of a string from an escape on.
#[inline(never)]
fn with_escapes(bytes: &[u8], escape: usize) -> Option<usize> {
    let mut at = super::json::escape_end(bytes, escape).ok()?;
    loop {
        at = next_special(bytes, at, false);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at = super::json::escape_end(bytes, at).ok()?,
        }
    }
}

/// Past what stands between a key and its value.
#[inline(always)]
fn colon(bytes: &[u8], at: usize) -> Option<usize> {
    let at = blanks(bytes, at);
    (bytes.get(at)? == &b':').then(|| blanks(bytes, at + 1))
}

/// Past a number or a word.
#[inline(always)]
fn scalar(bytes: &[u8], at: usize, texture: Texture) -> Option<usize> {
    let mut end = at;
    while bytes.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    let is_whole = end > at && (bytes[at] != b'0' || end == at + 1);
    match bytes.get(end)? {
        b',' | b'}' | b']' | b' ' if is_whole => Some(end),
        _ => unusual(bytes, at, texture),
    }
}

#[inline(never)]
fn unusual(bytes: &[u8], at: usize, texture: Texture) -> Option<usize> {
    let mut walk = Walk::at(bytes, at, texture);
    walk.value().ok()?;
    Some(walk.at)
}

struct Found {
    peek: Peek,
    has_result: bool,
    has_error: bool,
}

impl Found {
    /// Notes a value that is no container.
    #[inline(always)]
    fn note(&mut self, named: Named, bytes: &[u8], range: std::ops::Range<usize>, has_escapes: bool) -> Option<()> {
        let peek = &mut self.peek;
        let slot = match named {
            Named::Id => &mut peek.id,
            Named::Method => &mut peek.method,
            Named::Name => &mut peek.name,
            Named::Uri => &mut peek.uri,
            Named::RequestId => &mut peek.request_id,
            Named::TaskId => &mut peek.task_id,
            Named::ProgressToken => &mut peek.progress_token,
            Named::ProtocolVersion => &mut peek.protocol_version,
            Named::SubscriptionId => &mut peek.subscription_id,
            Named::Protocol => &mut peek.version,
            Named::Result | Named::Error => {
                self.note_answer(named, range.start);
                return Some(());
            }
            Named::Params | Named::Meta => return None,
            Named::Arguments | Named::Unknown => return Some(()),
        };
        // Whether that can be decoded is for the careful scan to say.
        if has_escapes && memchr::memchr(b'\\', &bytes[range.clone()]).is_some() {
            return None;
        }
        slot.get_or_insert(Span { start: range.start as u32, end: NonZeroU32::new(range.end as u32)? });
        Some(())
    }

    /// Notes that a container begins.
    #[inline(always)]
    fn note_container(&mut self, named: Named, is_object: bool, start: usize, open: &mut Open) -> Option<()> {
        match named {
            Named::Params if is_object => open.in_params = true,
            Named::Meta if is_object => open.in_meta = true,
            Named::Result | Named::Error => self.note_answer(named, start),
            Named::Arguments => {}
            _ => return None,
        }
        Some(())
    }

    /// Notes where the value of `result` or `error` begins.
    #[inline(always)]
    fn note_answer(&mut self, named: Named, start: usize) {
        self.has_result |= named == Named::Result;
        self.has_error |= named == Named::Error;
        self.peek.answer = self.peek.answer.or(NonZeroU32::new(start as u32));
    }

    fn settle(mut self, bytes: &[u8]) -> Option<Peek> {
        let has_method = match self.peek.method {
            Some(method) if bytes[method.start as usize] != b'"' => return None,
            method => method.is_some(),
        };
        self.peek.kind = match (has_method, self.has_result, self.has_error, self.peek.id) {
            (true, false, false, Some(_)) => Kind::Request,
            (true, false, false, None) => Kind::Notification,
            (false, true, false, Some(_)) => Kind::Response,
            (false, false, true, _) => Kind::Error,
            _ => return None,
        };
        Some(self.peek)
    }
}
