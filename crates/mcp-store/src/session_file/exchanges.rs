//! The HTTP exchanges of a session file: a list of their own after the messages, since the members
//! of a message are those that every transport has.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::Failed;
use super::document::{Document, Fault};
use super::message::{Layout, Object};
use super::read::nanoseconds;
use crate::exchange::{AnswerHead, Exchange, ExchangeMark, Headers, OpenExchanges, RequestHead, SessionEntry};
use crate::recorded::timestamp;
use crate::session::Session;

/// Writes the exchanges in the order in which they end, those that never do last. One that had to be
/// let go because too many were open stands in several parts.
pub(super) fn write_exchanges(out: &mut impl Write, session: &Session) -> Result<(), Failed> {
    let mut list = ExchangeList::default();
    write!(out, "  \"exchanges\": [")?;
    session.for_each_entry(|entry| -> Result<(), Failed> { Ok(list.hear(out, entry)?) })?;
    Ok(list.end(out)?)
}

/// The list of exchanges while it is being written.
pub(crate) struct ExchangeList {
    open: OpenExchanges<Exchange>,
    is_empty: bool,
}

impl Default for ExchangeList {
    fn default() -> Self {
        Self { open: OpenExchanges::default(), is_empty: true }
    }
}

impl ExchangeList {
    /// Takes the next entry of the session, and writes what is over by it.
    pub(crate) fn hear(&mut self, out: &mut (impl Write + ?Sized), entry: SessionEntry) -> io::Result<()> {
        match entry {
            SessionEntry::Message(_) | SessionEntry::Amendment(_) => {}
            SessionEntry::Request(mark, head) => {
                if let Some(other) = self.open.remove(mark.exchange) {
                    self.write(out, mark.exchange, &other)?;
                }
                let exchange = self.open.keep(mark.exchange, &head.headers);
                exchange.conversation = exchange.conversation.max(mark.conversation);
                exchange.request = Some((mark.time_ns, head));
            }
            SessionEntry::Answer(mark, head) => {
                if let Some(other) = self.open.remove_if(mark.exchange, |exchange| exchange.answer.is_some()) {
                    self.write(out, mark.exchange, &other)?;
                }
                let exchange = self.open.keep(mark.exchange, &head.headers);
                exchange.conversation = exchange.conversation.max(mark.conversation);
                exchange.answer = Some((mark.time_ns, head));
            }
            SessionEntry::End(mark, how) => {
                let mut exchange = self.open.remove(mark.exchange).unwrap_or_default();
                exchange.conversation = exchange.conversation.max(mark.conversation);
                exchange.end = Some((mark.time_ns, how));
                self.write(out, mark.exchange, &exchange)?;
            }
        }
        while let Some((number, exchange)) = self.open.pop_excess() {
            self.write(out, number, &exchange)?;
        }
        Ok(())
    }

    /// Writes those that never ended, and the end of the list.
    pub(crate) fn end(mut self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        while let Some((number, exchange)) = self.open.pop_oldest() {
            self.write(out, number, &exchange)?;
        }
        writeln!(out, "{}],", if self.is_empty { "" } else { "\n  " })
    }

    fn write(&mut self, out: &mut (impl Write + ?Sized), number: u64, exchange: &Exchange) -> io::Result<()> {
        let time = |time_ns: Option<u64>| time_ns.map(|ns| timestamp(ns).to_string());
        let request = exchange.request.as_ref().map(|(_, head)| head);
        let answer = exchange.answer.as_ref().map(|(_, head)| head);
        write!(out, "{}\n    ", if std::mem::replace(&mut self.is_empty, false) { "" } else { "," })?;
        let mut object = Object::begin(out, Layout::Document)?;
        object.member("id", &number)?;
        object.member("conversation", &exchange.conversation)?;
        object.member("started_at", &time(exchange.request.as_ref().map(|(ns, _)| *ns)))?;
        object.member("answered_at", &time(exchange.answer.as_ref().map(|(ns, _)| *ns)))?;
        object.member("ended_at", &time(exchange.end.as_ref().map(|(ns, _)| *ns)))?;
        object.member("method", &request.map(|head| &head.method))?;
        object.member("target", &request.map(|head| &head.target))?;
        headers(&mut object, "request_headers", request.map(|head| &head.headers))?;
        object.member("status", &answer.map(|head| head.status))?;
        headers(&mut object, "response_headers", answer.map(|head| &head.headers))?;
        object.member("ended", &exchange.end.as_ref().and_then(|(_, how)| how.as_ref()))?;
        object.end()
    }
}

/// A header a line, as people are used to see them.
fn headers(object: &mut Object<'_, impl Write + ?Sized>, name: &str, headers: Option<&Headers>) -> io::Result<()> {
    let Some(Headers(headers)) = headers.filter(|headers| !headers.0.is_empty()) else {
        return object.member(name, &headers.map(|headers| &headers.0));
    };
    object.key(name)?;
    let out = object.out();
    for (index, (name, value)) in headers.iter().enumerate() {
        let before = if index == 0 { "[" } else { "," };
        write!(out, "{before}\n        [{}, {}]", serde_json::to_string(name)?, serde_json::to_string(value)?)?;
    }
    write!(out, "\n      ]")
}

/// An exchange as it stands in the document.
#[derive(Deserialize)]
pub(super) struct Listed {
    id: u64,
    #[serde(default)]
    conversation: Option<u32>,
    #[serde(default)]
    started_at: Option<Timestamp>,
    #[serde(default)]
    answered_at: Option<Timestamp>,
    #[serde(default)]
    ended_at: Option<Timestamp>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    request_headers: Option<Vec<(String, String)>>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    response_headers: Option<Vec<(String, String)>>,
    #[serde(default)]
    ended: Option<String>,
}

impl Listed {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(bytes).map_err(|error| Fault::Bad(format!("`exchanges`: {error}")))
    }

    /// What it says, each with its number among the three things there are to say.
    pub(super) fn entries(self) -> impl Iterator<Item = (u64, SessionEntry)> {
        let begin = self.started_at.or(self.answered_at).or(self.ended_at).map_or(0, nanoseconds);
        let mark = |time: Option<Timestamp>| ExchangeMark {
            exchange: self.id,
            conversation: self.conversation.unwrap_or(0),
            time_ns: time.map_or(begin, nanoseconds),
        };
        let request = (self.method.is_some() || self.request_headers.is_some()).then(|| RequestHead {
            method: self.method.unwrap_or_default(),
            target: self.target.unwrap_or_default(),
            headers: Headers(self.request_headers.unwrap_or_default()),
        });
        let answer = (self.status.is_some() || self.response_headers.is_some()).then(|| AnswerHead {
            status: self.status.unwrap_or_default(),
            headers: Headers(self.response_headers.unwrap_or_default()),
        });
        let is_over = self.ended_at.is_some() || self.ended.is_some();
        [
            request.map(|head| (REQUEST, SessionEntry::Request(mark(self.started_at), head))),
            answer.map(|head| (ANSWER, SessionEntry::Answer(mark(self.answered_at), head))),
            is_over.then(|| (END, SessionEntry::End(mark(self.ended_at), self.ended))),
        ]
        .into_iter()
        .flatten()
    }
}

const REQUEST: u64 = 0;
const ANSWER: u64 = 1;
const END: u64 = 2;

/// One thing that an exchange says, and where to read it. The document has no common order of messages
/// and exchanges, so the times tell. A file may hold a million of these, so each is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    time_ns: u64,
    exchange: u64,
    /// Where the exchange stands in the document, and in the last two bits which of the three it is.
    place: u64,
}

impl Part {
    pub(super) fn new(at: u64, which: u64, entry: &SessionEntry) -> Self {
        let (SessionEntry::Request(mark, _) | SessionEntry::Answer(mark, _) | SessionEntry::End(mark, _)) = entry
        else {
            unreachable!("an exchange says nothing else");
        };
        Self { time_ns: mark.time_ns, exchange: mark.exchange, place: at << 2 | which }
    }

    fn which(self) -> u64 {
        self.place & 3
    }

    fn key(self) -> (u64, bool, u64, u64, u64) {
        (self.time_ns, self.is_end(), self.exchange, self.which(), self.place)
    }

    fn is_end(self) -> bool {
        self.which() == END
    }
}

/// Puts parts in the order in which they happened.
pub(super) fn sort(parts: &mut [Part]) {
    parts.sort_unstable_by_key(|part| part.key());
}

/// Reads the parts in their order.
pub(super) struct Parts {
    parts: Arc<Vec<Part>>,
    next: usize,
    document: Document<File>,
    bytes: Vec<u8>,
}

impl Parts {
    pub(super) fn new(parts: Arc<Vec<Part>>, document: Document<File>) -> Self {
        Self { parts, next: 0, document, bytes: Vec::new() }
    }

    /// The next one that stands before a message of this time. What one read brought has one time: a
    /// head goes before the messages of that time, an end after them.
    pub(super) fn next_before(&mut self, time_ns: u64) -> Result<Option<SessionEntry>, Fault> {
        let is_before = |part: &Part| part.time_ns < time_ns || part.time_ns == time_ns && !part.is_end();
        if self.parts.get(self.next).is_some_and(is_before) { self.next() } else { Ok(None) }
    }

    pub(super) fn next(&mut self) -> Result<Option<SessionEntry>, Fault> {
        let Some(part) = self.parts.get(self.next).copied() else { return Ok(None) };
        self.next += 1;
        self.document.go_to(part.place >> 2)?;
        self.document.value(&mut self.bytes)?;
        let mut entries = Listed::parse(&self.bytes)?.entries();
        match entries.find(|(which, _)| *which == part.which()) {
            Some((_, entry)) => Ok(Some(entry)),
            None => Err(Fault::Bad("it was changed while it was read".into())),
        }
    }
}
