//! A message with its envelope, as one JSON object: over several lines in a session file, on one line
//! where lines are what is counted.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_wire::{Kind, Message, scan};
use serde::Serialize;

use crate::exchange::{Headers, OpenExchanges, SessionEntry};
use crate::recorded::{Direction, Recorded};

/// Levels of a message. Python, Ruby and Jackson stop at 1,000 and less, and the document has some of its own.
const NESTING_MAX: usize = 900;

/// How an object is spread out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As an item of a list in the document.
    Document,
    Line,
}

/// An object that is written member by member.
pub(crate) struct Object<'a, W: ?Sized> {
    out: &'a mut W,
    layout: Layout,
    is_empty: bool,
}

impl<'a, W: Write + ?Sized> Object<'a, W> {
    pub(crate) fn begin(out: &'a mut W, layout: Layout) -> io::Result<Self> {
        out.write_all(b"{")?;
        Ok(Self { out, layout, is_empty: true })
    }

    pub(crate) fn member(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.key(name)?;
        Ok(serde_json::to_writer(&mut *self.out, value)?)
    }

    /// A member whose value is JSON already, and stays as it is spelled.
    pub(crate) fn verbatim(&mut self, name: &str, json: &[u8]) -> io::Result<()> {
        self.key(name)?;
        self.out.write_all(json)
    }

    /// The name of a member; its value is written next.
    pub(crate) fn key(&mut self, name: &str) -> io::Result<()> {
        let comma = if std::mem::replace(&mut self.is_empty, false) { "" } else { "," };
        match self.layout {
            Layout::Document => write!(self.out, "{comma}\n      \"{name}\": "),
            Layout::Line => write!(self.out, "{comma}\"{name}\":"),
        }
    }

    pub(crate) fn out(&mut self) -> &mut W {
        self.out
    }

    pub(crate) fn end(self) -> io::Result<()> {
        self.out.write_all(if self.layout == Layout::Document { b"\n    }" } else { b"}" })
    }
}

/// The statuses of answers under way, for the messages that come in them.
#[derive(Default)]
pub(crate) struct Statuses {
    open: OpenExchanges<u16>,
}

impl Statuses {
    pub(crate) fn hear(&mut self, entry: &SessionEntry) {
        match entry {
            SessionEntry::Answer(mark, head) => {
                *self.open.keep(mark.exchange, &Headers::default()) = head.status;
                self.open.pop_excess();
            }
            SessionEntry::End(mark, _) => drop(self.open.remove(mark.exchange)),
            SessionEntry::Request(..) | SessionEntry::Message(_) | SessionEntry::Amendment(_) => {}
        }
    }

    /// The status of the answer that a message came in.
    pub(crate) fn of(&self, message: &Recorded) -> Option<u16> {
        let came_in_answer = message.exchange.filter(|_| message.direction == Direction::ServerToClient);
        self.open.get(came_in_answer?).copied()
    }
}

pub(crate) fn write_message(
    out: &mut (impl Write + ?Sized),
    layout: Layout,
    message: &Recorded,
    status: Option<u16>,
) -> io::Result<()> {
    let scanned = Message::new(message.raw.clone());
    let peek = scanned.peek();
    let is_json = is_readable_json(&message.raw);
    // Messages that only our parser reads keep their id and method.
    let is_told = scanned.kind() != Kind::NotJson && std::str::from_utf8(&message.raw).is_ok();
    let id = peek.id.map(|span| scanned.slice(span)).filter(|id| is_told && is_readable_json(id));
    let original = message.original_raw.as_ref();
    let mut object = Object::begin(out, layout)?;
    object.member("id", &message.id)?;
    object.member("sequence", &message.sequence)?;
    object.member("timestamp", &message.timestamp().to_string())?;
    object.member("direction", &message.direction)?;
    object.member("transport", &message.transport)?;
    object.verbatim("raw", if is_json { message.raw.trim_ascii() } else { b"null" })?;
    object.verbatim("jsonrpc_id", id.unwrap_or(b"null"))?;
    object.member("method", &scanned.method().filter(|_| is_told))?;
    object.member("correlated_id", &message.correlated_id)?;
    object.member("modified", &message.modified)?;
    let is_json_original = original.is_some_and(|raw| is_readable_json(raw));
    object.verbatim("original_raw", original.filter(|_| is_json_original).map_or(b"null", |raw| raw.trim_ascii()))?;
    if message.conversation != 0 {
        object.member("conversation", &message.conversation)?;
    }
    if let Some(upstream) = &message.upstream {
        object.member("upstream", &**upstream)?;
    }
    if let Some(parent) = message.parent {
        object.member("parent", &parent)?;
    }
    if let Some(exchange) = message.exchange {
        object.member("exchange", &exchange)?;
    }
    if let Some(event_id) = &message.event_id {
        object.member("event_id", event_id)?;
    }
    if let Some(status) = status {
        object.member("http_status", &status)?;
    }
    if message.event.is_none() && !is_verbatim(&message.raw, is_json) {
        object.member("raw_base64", &BASE64.encode(&message.raw))?;
    }
    if let Some(original) = original.filter(|raw| !is_verbatim(raw, is_json_original)) {
        object.member("original_raw_base64", &BASE64.encode(original))?;
    }
    write_verdict(&mut object, message)?;
    write_hold(&mut object, message)?;
    if message.noise {
        object.member("noise", &true)?;
    }
    if message.from_proxy {
        object.member("origin", "proxy")?;
    }
    if let Some(event) = &message.event {
        object.member("event", event)?;
    }
    if let Some(ambiguity) = peek.ambiguity.filter(|_| message.event.is_none() && !message.noise) {
        object.member("opaque", &ambiguity.to_string())?;
    }
    object.end()
}

/// What rules decided about a message.
fn write_verdict(object: &mut Object<'_, impl Write + ?Sized>, message: &Recorded) -> io::Result<()> {
    let Some(verdict) = &message.verdict else { return Ok(()) };
    object.member("verdict", verdict.what.as_str())?;
    if let Some(rule) = &verdict.rule {
        object.member("rule", &**rule)?;
    }
    if let Some(operation) = verdict.operation {
        object.member("op", operation)?;
    }
    if let Some(audit) = verdict.audit {
        object.member("audit_id", &audit.to_string())?;
    }
    Ok(())
}

/// What became of a message that was held, and what somebody wrote beside it.
fn write_hold(object: &mut Object<'_, impl Write + ?Sized>, message: &Recorded) -> io::Result<()> {
    if message.held {
        object.member("held", &true)?;
    }
    if let Some(held_ns) = message.held_ns {
        object.member("held_ns", &held_ns)?;
    }
    if let Some(outcome) = message.outcome {
        object.member("outcome", outcome.as_str())?;
    }
    for (name, text) in
        [("decided_by", &message.decided_by), ("why", &message.why), ("mark", &message.mark), ("note", &message.note)]
    {
        if let Some(text) = text {
            object.member(name, text)?;
        }
    }
    Ok(())
}

/// Whether `json` can stand in a document that common parsers have to read: it is JSON and UTF-8, its strings are
/// text, and it is not nested past what they take.
pub fn is_readable_json(json: &[u8]) -> bool {
    let is_shallow = scan::nesting(json).is_some_and(|levels| levels <= NESTING_MAX);
    is_shallow && std::str::from_utf8(json).is_ok() && !has_lone_surrogate(json)
}

/// Whether a string in `json` escapes half of a surrogate pair.
fn has_lone_surrogate(json: &[u8]) -> bool {
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &json[at..]) {
        at += next;
        at += match escaped_unit(&json[at..]) {
            Some(0xd800..=0xdbff) if matches!(escaped_unit(&json[at + 6..]), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => return true,
            // An escape is two bytes at least.
            _ => 2,
        };
        if at >= json.len() {
            break;
        }
    }
    false
}

/// The UTF-16 unit that the bytes begin with, spelled `\uXXXX`.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether a member that is JSON says all of it. It does not of blanks around a message, of a message
/// that is not JSON, and of one that would look as if there were none.
fn is_verbatim(raw: &[u8], is_json: bool) -> bool {
    is_json && raw.trim_ascii().len() == raw.len() && raw != b"null"
}
