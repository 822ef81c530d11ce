//! One forward pass over a message: what kind it is, and where the parts stand that routing, rules
//! and people ask about. Members may come in any order. What can be read two ways is marked, never
//! resolved by a guess.

mod glance;
pub(crate) mod json;
mod names;
mod quick;
pub(crate) mod specials;

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::LazyLock;

pub use glance::{Glance, glance};
use json::{NotJson, Texture, Walk};
use names::{Named, Names, Place};

/// Nesting past this is ambiguous: common parsers refuse it, others do not.
pub const DEPTH_MAX: usize = 128;

/// What the scan found. Spans are those of the JSON values, quotes included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    pub kind: Kind,
    /// Why this message must not be judged by what it seems to say, if so.
    pub ambiguity: Option<Ambiguity>,
    pub id: Option<Span>,
    pub method: Option<Span>,
    /// `params.name`
    pub name: Option<Span>,
    /// `params.uri`
    pub uri: Option<Span>,
    /// `params._meta.progressToken` of a request, `params.progressToken` of a notification
    pub progress_token: Option<Span>,
    /// `params.requestId`: what a cancellation cancels
    pub request_id: Option<Span>,
    /// `params.taskId`
    pub task_id: Option<Span>,
    /// The revision a modern request says it speaks, in `params._meta`
    pub protocol_version: Option<Span>,
    /// The listen request a notification belongs to, in `params._meta`
    pub subscription_id: Option<Span>,
    /// The value of `jsonrpc`
    pub(crate) version: Option<Span>,
    /// Where the value of `result` or `error` begins
    pub(crate) answer: Option<NonZeroU32>,
    pub(crate) texture: Texture,
}

impl Peek {
    /// Of a message that nothing was found in so far.
    fn nothing(texture: Texture) -> Self {
        Self {
            kind: Kind::NotJson,
            ambiguity: None,
            id: None,
            method: None,
            name: None,
            uri: None,
            progress_token: None,
            request_id: None,
            task_id: None,
            protocol_version: None,
            subscription_id: None,
            version: None,
            answer: None,
            texture,
        }
    }

    pub fn is_opaque(&self) -> bool {
        self.ambiguity.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Response,
    /// A response that carries an error.
    Error,
    Notification,
    /// A JSON array: legal in one revision, and a list of messages in any.
    Batch,
    /// JSON, but not JSON-RPC.
    OtherJson,
    NotJson,
}

impl Kind {
    pub fn is_response(self) -> bool {
        matches!(self, Self::Response | Self::Error)
    }
}

/// Why two readers could disagree about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    NotJson,
    InvalidUtf8,
    /// A member that decides something stands there twice.
    RepeatedKey,
    /// A key that some parsers take for one that decides something: other case, a trailing NUL.
    LookAlikeKey,
    /// A member that decides something is a string that cannot be decoded, such as a lone surrogate.
    Undecodable,
    TooDeep,
    /// Request and response at once, or result and error at once.
    TwoKinds,
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotJson => "not JSON",
            Self::InvalidUtf8 => "not UTF-8",
            Self::RepeatedKey => "a key stands twice",
            Self::LookAlikeKey => "a key that some parsers take for another",
            Self::Undecodable => "a string that cannot be decoded",
            Self::TooDeep => "nested too deep",
            Self::TwoKinds => "two kinds of message at once",
        })
    }
}

/// A byte range inside one message, never empty; messages are bounded far below 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: NonZeroU32,
}

impl Span {
    pub fn new(range: Range<usize>) -> Self {
        let narrow = |at| u32::try_from(at).expect("messages are bounded below 4 GiB");
        let end = NonZeroU32::new(narrow(range.end)).expect("a JSON value is never empty");
        Self { start: narrow(range.start), end }
    }

    #[expect(clippy::len_without_is_empty, reason = "a JSON value is never empty")]
    pub fn len(self) -> u32 {
        self.end.get() - self.start
    }

    /// The same span, `by` bytes further on: what was found in a part, in terms of the whole.
    pub fn shifted(self, by: usize) -> Self {
        let range = self.range();
        Self::new(range.start + by..range.end + by)
    }

    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end.get() as usize
    }
}

/// Scans a whole message.
pub fn scan(bytes: &[u8]) -> Peek {
    quick(bytes).unwrap_or_else(|| careful(bytes))
}

/// What the quick scan says of a message, if that is plain enough for it.
pub(crate) fn quick(bytes: &[u8]) -> Option<Peek> {
    quick::quick(bytes, Texture::of(bytes))
}

/// The same for any bytes.
pub(crate) fn careful(bytes: &[u8]) -> Peek {
    let mut scan = Scan::new(bytes);
    let finished = scan.message();
    scan.judge(finished)
}

/// What can be told of a message of which only the beginning and the end are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salvaged<'a> {
    pub id: &'a [u8],
    /// It asks for something; else it answers.
    pub is_request: bool,
}

/// Finds whom a message too large to hold concerns. `None` where it cannot be told for certain
/// enough.
pub fn salvage<'a>(head: &'a [u8], tail: &'a [u8]) -> Option<Salvaged<'a>> {
    let mut scan = Scan::new(head);
    let whole = scan.message().is_ok();
    if scan.peek.ambiguity.is_some() {
        return None;
    }
    let is_request = scan.peek.method.is_some();
    match scan.peek.id {
        // A value that runs into the cut may go on after it.
        Some(span) => {
            (whole || span.range().end < head.len()).then(|| Salvaged { id: &head[span.range()], is_request })
        }
        None => last_member_id(tail).map(|id| Salvaged { id, is_request }),
    }
}

/// Takes `…,"id":7}` at the very end, where servers that write the result first put the id.
fn last_member_id(tail: &[u8]) -> Option<&[u8]> {
    let key = memchr::memmem::rfind(tail, b"\"id\"")?;
    let mut walk = Walk::new(tail);
    walk.at = key + 4;
    walk.skip_blanks();
    walk.expect(b':').ok()?;
    walk.skip_blanks();
    let start = walk.at;
    walk.value().ok()?;
    let id = &tail[start..walk.at];
    walk.skip_blanks();
    walk.expect(b'}').ok()?;
    walk.skip_blanks();
    (walk.at == tail.len()).then_some(id)
}

/// The spans of a batch's items, one after the other; none if `bytes` is not a JSON array.
pub fn batch_items(bytes: &[u8]) -> impl Iterator<Item = Span> {
    let mut walk = Walk::new(bytes);
    walk.skip_blanks();
    let mut before = b'[';
    // Ends at the closing bracket, or wherever the array stops being one.
    std::iter::from_fn(move || {
        walk.expect(before).ok()?;
        before = b',';
        walk.skip_blanks();
        let span = value_span(&mut walk).ok()?;
        walk.skip_blanks();
        Some(span)
    })
}

/// The key under which a message of the newest revision names it.
pub static PROTOCOL_VERSION: LazyLock<Word> =
    LazyLock::new(|| Word::new(b"\"io.modelcontextprotocol/protocolVersion\""));
pub static PROGRESS_TOKEN: LazyLock<Word> = LazyLock::new(|| Word::new(b"\"progressToken\""));

/// Whether a word stands anywhere in a message: a quick way to find out that it does not.
pub fn mentions(bytes: &[u8], word: &Word) -> bool {
    word.0.find(bytes).is_some()
}

/// Whether a member of this name (quotes included) with this value may stand anywhere in a message: a
/// quick way to find out that it does not.
pub fn may_say(bytes: &[u8], name: &Word, value: &[u8]) -> bool {
    name.0.find_iter(bytes).any(|at| {
        let rest = bytes[at + name.0.needle().len()..].trim_ascii_start().strip_prefix(b":");
        rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(value))
    })
}

/// A word to look for, prepared once.
pub struct Word(memchr::memmem::Finder<'static>);

impl Word {
    pub fn new(word: &'static [u8]) -> Self {
        Self(memchr::memmem::Finder::new(word))
    }
}

/// The value of the first member called `key` (quotes included), wherever it stands. A shortcut for
/// telling peers apart; never judge by it.
pub fn member_anywhere<'a>(bytes: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut walk = Walk::new(bytes);
    walk.at = memchr::memmem::find(bytes, key)? + key.len();
    walk.skip_blanks();
    walk.expect(b':').ok()?;
    walk.skip_blanks();
    let start = walk.at;
    walk.value().ok()?;
    Some(&bytes[start..walk.at])
}

/// The members of an object, one after the other; none if `bytes` is not a JSON object. A member
/// whose key cannot be decoded is left out.
pub fn object_members(bytes: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Span)> {
    whole_members(bytes).filter_map(|(key, _, value)| Some((key?, value)))
}

/// The same with where each member stands from the start of its key on, and none left out.
pub fn whole_members(bytes: &[u8]) -> impl Iterator<Item = (Option<Cow<'_, str>>, Span, Span)> {
    let mut walk = Walk::new(bytes);
    walk.skip_blanks();
    let mut before = b'{';
    std::iter::from_fn(move || {
        walk.expect(before).ok()?;
        before = b',';
        walk.skip_blanks();
        let start = walk.at;
        let end = start + walk.key().ok()?.len() + 2;
        let value = value_span(&mut walk).ok()?;
        walk.skip_blanks();
        Some((decode_string(&bytes[start..end]), Span::new(start..value.range().end), value))
    })
}

/// How deep a JSON value is nested, zero if it is neither object nor array. `None` if `bytes` is not one
/// value, or not UTF-8.
pub fn nesting(bytes: &[u8]) -> Option<usize> {
    simdutf8::basic::from_utf8(bytes).ok()?;
    let mut walk = Walk::new(bytes);
    walk.skip_blanks();
    walk.value().ok()?;
    walk.skip_blanks();
    (walk.at == bytes.len()).then_some(walk.deepest)
}

/// Where the member at the end of `path` stands. Of a key that stands twice the last one counts, as
/// it does for the parsers our peers use.
pub fn member_at<'p>(bytes: &[u8], path: impl IntoIterator<Item = &'p str>) -> Option<Span> {
    let mut found = None;
    for name in path {
        let range = found.map_or(0..bytes.len(), Span::range);
        let (_, span) = object_members(&bytes[range.clone()]).filter(|(key, _)| key == name).last()?;
        found = Some(span.shifted(range.start));
    }
    found
}

/// The text of a JSON string, borrowed where it has no escapes. `None` if it is not a string or
/// cannot be decoded.
pub fn decode_string(json: &[u8]) -> Option<Cow<'_, str>> {
    /// A shorter name is found faster without the setup of a vectorised search.
    const SHORT: usize = 32;
    let inner = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let has_escapes = if inner.len() < SHORT { inner.contains(&b'\\') } else { memchr::memchr(b'\\', inner).is_some() };
    if !has_escapes {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(json).ok().map(Cow::Owned)
}

struct Scan<'a> {
    walk: Walk<'a>,
    peek: Peek,
    has_result: bool,
    has_error: bool,
}

impl<'a> Scan<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let walk = Walk::new(bytes);
        let peek = Peek::nothing(walk.texture);
        Self { walk, peek, has_result: false, has_error: false }
    }

    fn message(&mut self) -> Result<(), NotJson> {
        self.walk.skip_blanks();
        match self.walk.peek()? {
            b'{' => self.envelope()?,
            b'[' => {
                self.peek.kind = Kind::Batch;
                self.walk.value()?;
            }
            _ => {
                self.peek.kind = Kind::OtherJson;
                self.walk.value()?;
            }
        }
        self.walk.skip_blanks();
        if self.walk.at == self.walk.bytes.len() { Ok(()) } else { Err(NotJson) }
    }

    fn envelope(&mut self) -> Result<(), NotJson> {
        let Self { walk, peek, has_result, has_error } = self;
        let mut names = Names::of(Place::TopLevel);
        walk.members(|walk, key| {
            let named = names.find(key, &mut peek.ambiguity);
            if named == Named::Params && walk.peek()? == b'{' {
                return params(walk, peek);
            }
            let span = value_span(walk)?;
            match named {
                Named::Id => peek.id = peek.id.or(Some(span)),
                Named::Method => peek.method = peek.method.or(Some(span)),
                Named::Protocol => peek.version = peek.version.or(Some(span)),
                Named::Result | Named::Error => {
                    *has_result |= named == Named::Result;
                    *has_error |= named == Named::Error;
                    peek.answer = peek.answer.or(NonZeroU32::new(span.start));
                }
                _ => {}
            }
            Ok(())
        })
    }

    /// Settles kind and ambiguity once the walk is over.
    fn judge(mut self, finished: Result<(), NotJson>) -> Peek {
        if finished.is_err() {
            let ambiguity = if self.is_utf8() { Ambiguity::NotJson } else { Ambiguity::InvalidUtf8 };
            return Peek { ambiguity: Some(ambiguity), ..Peek::nothing(self.walk.texture) };
        }
        if self.peek.kind == Kind::NotJson {
            self.peek.kind = self.envelope_kind();
        }
        if self.walk.deepest > DEPTH_MAX {
            self.mark(Ambiguity::TooDeep);
        }
        if self.walk.texture.has_escapes && !self.strings_decode() {
            self.mark(Ambiguity::Undecodable);
        }
        if !self.is_utf8() {
            self.mark(Ambiguity::InvalidUtf8);
        }
        self.peek
    }

    /// Whether the strings that decide something say the same to every reader.
    fn strings_decode(&self) -> bool {
        let Peek { id, method, name, uri, task_id, protocol_version, subscription_id, .. } = self.peek;
        [id, method, name, uri, task_id, protocol_version, subscription_id].into_iter().flatten().all(|span| {
            let json = &self.walk.bytes[span.range()];
            json[0] != b'"' || decode_string(json).is_some()
        })
    }

    fn is_utf8(&self) -> bool {
        self.walk.texture.is_ascii || simdutf8::basic::from_utf8(self.walk.bytes).is_ok()
    }

    fn envelope_kind(&mut self) -> Kind {
        let has_method = self.peek.method.is_some_and(|span| self.walk.bytes[span.range()][0] == b'"');
        if usize::from(has_method) + usize::from(self.has_result) + usize::from(self.has_error) > 1 {
            self.mark(Ambiguity::TwoKinds);
        }
        match (has_method, self.peek.id) {
            (true, Some(_)) => Kind::Request,
            (true, None) => Kind::Notification,
            (false, Some(_)) if self.has_result => Kind::Response,
            (false, _) if self.has_error => Kind::Error,
            _ => Kind::OtherJson,
        }
    }

    fn mark(&mut self, ambiguity: Ambiguity) {
        self.peek.ambiguity.get_or_insert(ambiguity);
    }
}

fn value_span(walk: &mut Walk<'_>) -> Result<Span, NotJson> {
    let start = walk.at;
    walk.value()?;
    Ok(Span::new(start..walk.at))
}

fn params(walk: &mut Walk<'_>, peek: &mut Peek) -> Result<(), NotJson> {
    let mut names = Names::of(Place::Params);
    walk.members(|walk, key| {
        let named = names.find(key, &mut peek.ambiguity);
        if named == Named::Meta && walk.peek()? == b'{' {
            return meta(walk, peek);
        }
        let span = value_span(walk)?;
        let slot = match named {
            Named::Name => &mut peek.name,
            Named::Uri => &mut peek.uri,
            Named::RequestId => &mut peek.request_id,
            Named::TaskId => &mut peek.task_id,
            Named::ProgressToken => &mut peek.progress_token,
            _ => return Ok(()),
        };
        slot.get_or_insert(span);
        Ok(())
    })
}

fn meta(walk: &mut Walk<'_>, peek: &mut Peek) -> Result<(), NotJson> {
    let mut names = Names::of(Place::Meta);
    walk.members(|walk, key| {
        let named = names.find(key, &mut peek.ambiguity);
        let span = value_span(walk)?;
        let slot = match named {
            Named::ProgressToken => &mut peek.progress_token,
            Named::ProtocolVersion => &mut peek.protocol_version,
            Named::SubscriptionId => &mut peek.subscription_id,
            _ => return Ok(()),
        };
        slot.get_or_insert(span);
        Ok(())
    })
}

#[cfg(test)]
mod tests;
