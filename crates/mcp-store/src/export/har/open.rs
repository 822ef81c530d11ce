//! What has begun and not ended: exchanges that wait for their end, calls that wait for their answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::body::Body;
use crate::exchange::{AnswerHead, ExchangeMark, OpenExchanges, RequestHead, SessionEntry};
use crate::recorded::{Direction, Recorded, Transport};
use crate::story::Told;

/// Bodies that are kept of open exchanges; past it the oldest is written as far as it is known.
const OPEN_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Calls that wait for their answer, and their bytes; the same.
const OPEN_CALLS_MAX: usize = 65_536;
const OPEN_CALL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An HTTP exchange with the messages that came in it.
#[derive(Default)]
pub(super) struct Exchange {
    pub number: u64,
    pub conversation: u32,
    /// The server of a gateway that the conversation is with.
    pub upstream: Option<Arc<str>>,
    pub transport: Option<Transport>,
    /// When its first message came.
    pub seen_ns: Option<u64>,
    pub request: Option<(ExchangeMark, RequestHead)>,
    pub answer: Option<(ExchangeMark, AnswerHead)>,
    pub end: Option<(ExchangeMark, Option<String>)>,
    pub sent: Body,
    pub got: Body,
    /// What was sent is what the client sent on its own transport.
    pub is_lent: bool,
}

#[derive(Default)]
pub(super) struct Exchanges {
    open: OpenExchanges<Exchange>,
    body_bytes: usize,
    /// The stream that a conversation is told things on, where it has one.
    streams: BTreeMap<u32, u64>,
}

impl Exchanges {
    /// Takes part of an exchange, and returns those that are over by it.
    pub(super) fn hear(&mut self, entry: &SessionEntry) -> Vec<Exchange> {
        let mut over = Vec::new();
        match entry {
            SessionEntry::Message(_) | SessionEntry::Amendment(_) => {}
            SessionEntry::Request(mark, head) => {
                over.extend(self.remove(mark.exchange));
                let exchange = self.open.keep(mark.exchange, &head.headers);
                *exchange = Exchange { request: Some((*mark, head.clone())), ..exchange_of(mark) };
            }
            SessionEntry::Answer(mark, head) => {
                let exchange = self.open.keep(mark.exchange, &head.headers);
                (exchange.number, exchange.conversation) = (mark.exchange, mark.conversation);
                exchange.answer = Some((*mark, head.clone()));
                if exchange.is_stream() {
                    self.streams.insert(mark.conversation, mark.exchange);
                }
            }
            SessionEntry::End(mark, how) => {
                let exchange = self.remove(mark.exchange).unwrap_or_else(|| exchange_of(mark));
                over.push(Exchange { end: Some((*mark, how.clone())), ..exchange });
            }
        }
        over.extend(std::iter::from_fn(|| self.pop_excess()));
        over
    }

    /// Where a message belongs that names an exchange: there, or if that is over, on the stream of its
    /// conversation. The older transport answers so.
    pub(super) fn place(&self, number: u64, conversation: u32) -> u64 {
        match self.open.get(number) {
            Some(_) => number,
            None => self.streams.get(&conversation).copied().unwrap_or(number),
        }
    }

    /// A message that came in an exchange, or answers one that did.
    pub(super) fn add(&mut self, number: u64, direction: Direction, message: &Told) {
        let recorded = &message.recorded;
        let exchange = self.open.keep(number, &crate::exchange::Headers::default());
        (exchange.number, exchange.conversation) = (number, recorded.conversation);
        exchange.upstream.clone_from(&recorded.upstream);
        // A message that the proxy made arrived on nothing, and an answer to HTTP may come from a pipe.
        let transport =
            Some(recorded.transport).filter(|transport| !recorded.from_proxy && *transport != Transport::Stdio);
        exchange.transport = exchange.transport.or(transport);
        exchange.seen_ns = exchange.seen_ns.or(Some(recorded.time_ns));
        let body = match direction {
            Direction::ClientToServer => &mut exchange.sent,
            Direction::ServerToClient => &mut exchange.got,
        };
        let before = body.bytes;
        body.add(recorded.sequence, &recorded.raw, recorded.event_id.as_deref());
        self.body_bytes += body.bytes - before;
    }

    /// Of an exchange with the server, what was sent is known from the client's side.
    pub(super) fn lend(&mut self, number: u64, call: &Call) {
        let takes_a_body = |exchange: &&mut Exchange| exchange.sent.is_empty() && exchange.is_post();
        if let Some(exchange) = self.open.get_mut(number).filter(takes_a_body) {
            exchange.sent.add(call.sequence, &call.raw, None);
            exchange.is_lent = true;
            self.body_bytes += exchange.sent.bytes;
        }
    }

    fn remove(&mut self, number: u64) -> Option<Exchange> {
        let exchange = self.open.remove(number)?;
        self.forget(&exchange);
        Some(exchange)
    }

    fn forget(&mut self, exchange: &Exchange) {
        self.body_bytes -= exchange.sent.bytes + exchange.got.bytes;
        if self.streams.get(&exchange.conversation) == Some(&exchange.number) {
            self.streams.remove(&exchange.conversation);
        }
    }

    pub(super) fn pop_excess(&mut self) -> Option<Exchange> {
        let too_much = self.body_bytes > OPEN_BODY_BYTES_MAX;
        let (_, exchange) = if too_much { self.open.pop_oldest() } else { self.open.pop_excess() }?;
        self.forget(&exchange);
        Some(exchange)
    }

    /// Those that never ended.
    pub(super) fn drain(&mut self) -> Vec<Exchange> {
        std::iter::from_fn(|| self.open.pop_oldest()).map(|(_, exchange)| exchange).collect()
    }
}

impl Exchange {
    fn is_post(&self) -> bool {
        self.request.as_ref().is_some_and(|(_, head)| head.method == "POST")
    }

    /// Whether it is open to tell a client things.
    fn is_stream(&self) -> bool {
        let is_get = self.request.as_ref().is_some_and(|(_, head)| head.method == "GET");
        let media = self.answer.as_ref().and_then(|(_, head)| head.content_type());
        is_get && media.is_some_and(|media| media.eq_ignore_ascii_case("text/event-stream"))
    }
}

fn exchange_of(mark: &ExchangeMark) -> Exchange {
    Exchange { number: mark.exchange, conversation: mark.conversation, ..Exchange::default() }
}

/// A request, or a message that stands alone.
pub(super) struct Call {
    pub sequence: u64,
    pub time_ns: u64,
    pub conversation: u32,
    /// The server of a gateway that the conversation is with.
    pub upstream: Option<Arc<str>>,
    pub direction: Direction,
    pub transport: Transport,
    pub exchange: Option<u64>,
    pub raw: Bytes,
    pub kind: &'static str,
    pub method: Option<String>,
    pub subject: Option<String>,
    pub is_request: bool,
    /// What became of it instead, in words, if it did not go on.
    pub kept_back: Option<String>,
}

impl Call {
    pub(super) fn of(message: &Told) -> Self {
        let recorded = &message.recorded;
        Self {
            sequence: recorded.sequence,
            time_ns: recorded.time_ns,
            conversation: recorded.conversation,
            upstream: recorded.upstream.clone(),
            direction: recorded.direction,
            transport: recorded.transport,
            exchange: recorded.exchange,
            raw: recorded.raw.clone(),
            kind: message.kind.as_str(),
            method: message.method().map(|method| method.into_owned()),
            subject: message.subject().map(|subject| subject.into_owned()),
            is_request: message.kind == crate::story::MessageKind::Request,
            kept_back: (!recorded.went_on()).then(|| kept_back(recorded)),
        }
    }
}

fn kept_back(recorded: &Recorded) -> String {
    if recorded.is_denied() {
        let rule = recorded.verdict.as_deref().and_then(|verdict| verdict.rule.as_deref());
        return rule.map_or_else(|| "it was denied".to_owned(), |rule| format!("the rule {rule} denied it"));
    }
    let outcome = recorded.outcome.map_or("no decision", |outcome| outcome.as_str());
    format!("it was held, and never passed on ({outcome})")
}

#[derive(Default)]
pub(super) struct Calls {
    open: BTreeMap<u64, Call>,
    bytes: usize,
}

impl Calls {
    /// Keeps a call until it is answered, and returns those that there is no room for any more.
    pub(super) fn add(&mut self, call: Call) -> Vec<Call> {
        self.bytes += call.raw.len();
        let mut over = Vec::new();
        if let Some(other) = self.open.insert(call.sequence, call) {
            self.bytes -= other.raw.len();
            over.push(other);
        }
        while self.open.len() > OPEN_CALLS_MAX || (self.bytes > OPEN_CALL_BYTES_MAX && self.open.len() > 1) {
            let Some((_, oldest)) = self.open.pop_first() else { break };
            self.bytes -= oldest.raw.len();
            over.push(oldest);
        }
        over
    }

    pub(super) fn take(&mut self, sequence: u64) -> Option<Call> {
        let call = self.open.remove(&sequence)?;
        self.bytes -= call.raw.len();
        Some(call)
    }

    pub(super) fn drain(&mut self) -> Vec<Call> {
        self.bytes = 0;
        std::mem::take(&mut self.open).into_values().collect()
    }
}
