//! A client of Streamable HTTP in front of a server that knows only one stream: which of the
//! client's exchanges each message of the server belongs to, and what is kept for a client whose
//! connection broke.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use foldhash::fast::RandomState;
use mcp_engine::{Asked, Conversation, Lane, Side};
use mcp_store::Transport;
use mcp_wire::framing::sse::{encode_event, priming_event};
use mcp_wire::mirror::ToolParams;
use mcp_wire::revision::{Era, Revision};
use mcp_wire::splice::splice;
use mcp_wire::{Cut, Gather, Id, Kind, Message, Span, scan};
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::event_log::{BYTES_MAX, EVENTS_MAX, EventId, EventLog};
use super::outlet::Outlet;
use super::talk::Talk;
use crate::http::exchange::Exchange;
use crate::http::hub::OpenCall;

pub struct Session {
    /// What the client shows with each request. Where there are no sessions any more, nothing.
    pub id: Option<Uuid>,
    pub era: Era,
    /// What client and server agreed on.
    revision: Cell<Option<Revision>>,
    /// Requests without an answer, by the id that the server knows them under.
    calls: RefCell<HashMap<Id, Call, RandomState>>,
    /// The call that a progress token belongs to, by the token that the server knows.
    tokens: RefCell<HashMap<Id, Id, RandomState>>,
    /// The stream for what belongs to no call.
    general: RefCell<Option<Rc<Stream>>>,
    /// What found no stream.
    backlog: RefCell<VecDeque<Bytes>>,
    log: RefCell<EventLog>,
    streams: Cell<u64>,
    fresh: Cell<u64>,
    used: Cell<Instant>,
    drained: Rc<Notify>,
    /// What the server says of headers that repeat arguments, shared by all of its sessions.
    tools: Rc<RefCell<ToolParams>>,
}

/// A request that waits for its answer.
struct Call {
    asked: Asked,
    /// The client's own id and progress token, where others had to take their place.
    original_id: Option<Bytes>,
    original_token: Option<Bytes>,
    token: Option<Id>,
    exchange: Rc<Exchange>,
    stream: Rc<Stream>,
    is_initialize: bool,
    lists_tools: bool,
    _open: OpenCall,
}

/// A stream of ours to the client: the answer to a POST, or to a GET.
pub struct Stream {
    number: u64,
    /// Events sent so far.
    place: Cell<u64>,
    /// Requests that are still to be answered on it.
    open: Cell<usize>,
    state: RefCell<State>,
}

enum State {
    /// Nothing has come yet; whoever answers the client waits.
    Waiting(Option<Waker>),
    /// The answer came first, and alone.
    Answered(Bytes),
    Streaming(Rc<Outlet>),
    /// The client left.
    Detached,
}

/// How an answer begins.
pub enum First {
    Json(Bytes),
    Stream(Rc<Outlet>),
}

impl Stream {
    pub fn poll_first(&self, cx: &mut Context<'_>) -> Poll<Option<First>> {
        let state = &mut *self.state.borrow_mut();
        match state {
            State::Waiting(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Answered(bytes) => {
                let bytes = bytes.clone();
                *state = State::Detached;
                Poll::Ready(Some(First::Json(bytes)))
            }
            State::Streaming(outlet) => Poll::Ready(Some(First::Stream(Rc::clone(outlet)))),
            State::Detached => Poll::Ready(None),
        }
    }

    pub fn detach(&self) {
        *self.state.borrow_mut() = State::Detached;
    }

    fn replace(&self, next: State) {
        if let State::Waiting(Some(waker)) = self.state.replace(next) {
            waker.wake();
        }
    }
}

impl Session {
    pub fn new(id: Option<Uuid>, era: Era, tools: Rc<RefCell<ToolParams>>) -> Self {
        Self {
            id,
            era,
            revision: Cell::new(None),
            calls: RefCell::default(),
            tokens: RefCell::default(),
            general: RefCell::default(),
            backlog: RefCell::default(),
            log: RefCell::default(),
            streams: Cell::new(0),
            fresh: Cell::new(0),
            used: Cell::new(Instant::now()),
            drained: Rc::default(),
            tools,
        }
    }

    /// When a message last passed.
    pub fn used(&self) -> Instant {
        self.used.get()
    }

    pub fn open_calls(&self) -> usize {
        self.calls.borrow().len()
    }

    fn new_stream(&self, state: State) -> Rc<Stream> {
        self.streams.set(self.streams.get() + 1);
        let (number, place, open) = (self.streams.get(), Cell::new(0), Cell::new(0));
        Rc::new(Stream { number, place, open, state: RefCell::new(state) })
    }

    /// Passes what a POST brought to the server. If it asks for anything, the stream of its answer
    /// comes back.
    pub fn from_client(&self, talk: &Talk, exchange: &Rc<Exchange>, message: Message) -> Option<Rc<Stream>> {
        self.used.set(Instant::now());
        let stream = self.new_stream(State::Waiting(None));
        let asked = {
            let conversation = &mut talk.conversation.borrow_mut();
            let lane =
                Lane { transport: Transport::StreamableHttp, exchange: exchange.number, event_id: b"", asked: None };
            let (asked, out) =
                talk.hub.pass(|pipeline, out| pipeline.pass_opening(conversation, lane, message.clone(), out));
            // Nothing goes on that could not be recorded.
            if out.to_server.is_empty() {
                stream.detach();
                return Some(stream);
            }
            asked
        };
        let body = match asked {
            Some(asked) => self.remember_call(exchange, &stream, asked, message),
            None => {
                for id in asks(&message) {
                    self.remember_call(exchange, &stream, Asked { id, sequence: 0 }, Message::new(Bytes::new()));
                }
                self.with_known_id(message)
            }
        };
        talk.send(body);
        (stream.open.get() > 0).then_some(stream)
    }

    /// Remembers who waits for the answer to a request. What comes back is the request as the server
    /// gets it: with another id or token only where an equal one is in flight.
    fn remember_call(&self, exchange: &Rc<Exchange>, stream: &Rc<Stream>, asked: Asked, message: Message) -> Bytes {
        let mut calls = self.calls.borrow_mut();
        let mut request = message.bytes().clone();
        let mut key = asked.id.clone();
        let mut original_id = None;
        let glance = message.glance();
        let method = glance.method.map(|span| message.slice(span)).unwrap_or_default();
        if calls.contains_key(&key)
            && let Some(span) = glance.id
        {
            let id = self.fresh_id();
            original_id = Some(request.slice(span.range()));
            request = splice(&request, span, id.to_string().as_bytes());
            key = id;
        }
        let (mut token, mut original_token) = (None, None);
        if let Some((known, span)) = progress_token(&request) {
            token = Some(known);
            if self.tokens.borrow().contains_key(token.as_ref().expect("it was just found")) {
                let fresh = self.fresh_id();
                original_token = Some(request.slice(span.range()));
                request = splice(&request, span, fresh.to_string().as_bytes());
                token = Some(fresh);
            }
            self.tokens.borrow_mut().insert(token.clone().expect("it was just found"), key.clone());
        }
        let (is_initialize, lists_tools) = (method == b"\"initialize\"", method == b"\"tools/list\"");
        stream.open.set(stream.open.get() + 1);
        let call = Call {
            asked,
            original_id,
            original_token,
            token,
            exchange: Rc::clone(exchange),
            stream: Rc::clone(stream),
            is_initialize,
            lists_tools,
            _open: exchange.hub.open_call(),
        };
        calls.insert(key, call);
        request
    }

    fn fresh_id(&self) -> Id {
        self.fresh.set(self.fresh.get() + 1);
        Id::Text(format!("mcp-proxy-{}", self.fresh.get()).into())
    }

    /// A cancellation names the id that its sender chose; the server may know another.
    fn with_known_id(&self, message: Message) -> Bytes {
        let Some(cancelled) = message.cancelled_id() else { return message.bytes().clone() };
        let calls = self.calls.borrow();
        let known = calls.iter().find(|(_, call)| call.original_id.is_some() && call.asked.id == cancelled);
        match (known, message.peek().request_id) {
            (Some((known, _)), Some(span)) if !calls.contains_key(&cancelled) => {
                splice(message.bytes(), span, known.to_string().as_bytes())
            }
            _ => message.bytes().clone(),
        }
    }

    /// Takes what one read of a server's pipe brought.
    pub fn from_server_cuts(&self, talk: &Talk, cuts: &mut Vec<Cut>) {
        for cut in cuts.drain(..) {
            match cut {
                Cut::Frame(frame) if matches!(frame.bytes.trim_ascii_start().first(), Some(b'{' | b'[')) => {
                    self.from_server(talk, Transport::Stdio, frame.bytes);
                }
                Cut::TooLarge { size, head, tail } => talk.from_server_too_large((size, &head, &tail)),
                other => {
                    let conversation = &mut talk.conversation.borrow_mut();
                    talk.hub.pass(|pipeline, out| pipeline.pass(conversation, Side::Server, &mut vec![other], out));
                }
            }
        }
    }

    /// Takes one message of the server, and gives it to the exchange it belongs to.
    pub fn from_server(&self, talk: &Talk, transport: Transport, bytes: Bytes) {
        self.used.set(Instant::now());
        let message = Message::new(bytes);
        let (call, message) = self.find_call(message);
        let (exchange, asked) = match &call {
            // The items of a batch are told apart by their ids alone.
            Found::Answered(call) => (call.exchange.number, Some(&call.asked).filter(|asked| asked.sequence > 0)),
            Found::About(stream, exchange) if stream.open.get() > 0 => (*exchange, None),
            _ => (0, None),
        };
        let lane = Lane { transport, exchange, event_id: b"", asked };
        let ((), out) = {
            let conversation = &mut talk.conversation.borrow_mut();
            talk.hub.pass(|pipeline, out| pipeline.pass_one(conversation, Side::Server, lane, message, out))
        };
        let Some(bytes) = out.to_client.first().map(|outgoing| outgoing.frame().bytes) else { return };
        match call {
            Found::Answered(call) => {
                if call.is_initialize {
                    self.revision.set(revision_of(bytes));
                }
                if call.lists_tools && self.era == Era::Modern {
                    self.tools.borrow_mut().learn(bytes);
                }
                self.answer(&call.stream, bytes);
            }
            Found::About(stream, _) => self.send_event(&stream, bytes),
            Found::Nobody => self.send_generally(bytes),
            Found::Late => {}
        }
    }

    /// Delivers a message of our own making.
    pub fn deliver(&self, message: &Bytes) {
        let (call, message) = self.find_call(Message::new(message.clone()));
        match call {
            Found::Answered(call) => self.answer(&call.stream, message.bytes()),
            Found::About(stream, _) => self.send_event(&stream, message.bytes()),
            Found::Nobody => self.send_generally(message.bytes()),
            Found::Late => {}
        }
    }

    /// Whom a message concerns; an id or a token that took another's place is put right.
    fn find_call(&self, message: Message) -> (Found, Message) {
        match message.glance().kind {
            Kind::Response | Kind::Error => {
                let Some(call) = message.id().and_then(|id| self.take_call(&id)) else {
                    return (Found::Late, message);
                };
                let message = match (&call.original_id, message.glance().id) {
                    (Some(original), Some(span)) => Message::new(splice(message.bytes(), span, original)),
                    _ => message,
                };
                (Found::Answered(call), message)
            }
            Kind::Batch => {
                let first = scan::batch_items(message.bytes())
                    .find_map(|item| self.take_call(&Message::new(message.bytes().slice(item.range())).id()?));
                for item in scan::batch_items(message.bytes()).collect::<Vec<_>>() {
                    if let Some(id) = Message::new(message.bytes().slice(item.range())).id() {
                        self.take_call(&id);
                    }
                }
                (first.map_or(Found::Nobody, Found::Answered), message)
            }
            Kind::Notification => self.find_notified(message),
            _ => (self.only_call().unwrap_or(Found::Nobody), message),
        }
    }

    fn find_notified(&self, message: Message) -> (Found, Message) {
        let method = message.glance().method.map(|span| message.slice(span)).unwrap_or_default();
        if method == b"\"notifications/progress\""
            && let Some(token) = message.progress_token()
        {
            let calls = self.calls.borrow();
            let found = self.tokens.borrow().get(&token).and_then(|key| calls.get(key)).map(|call| {
                let message = match (&call.original_token, message.peek().progress_token) {
                    (Some(original), Some(span)) => Message::new(splice(message.bytes(), span, original)),
                    _ => message.clone(),
                };
                (Found::About(Rc::clone(&call.stream), call.exchange.number), message)
            });
            // Progress of a call that is over is of no use to anybody, and some clients choke on it.
            return found.unwrap_or((Found::Late, message));
        }
        if let Some(subscription) = message.subscription_id() {
            let calls = self.calls.borrow();
            if let Some(call) = calls.get(&subscription) {
                let message = match (&call.original_id, message.peek().subscription_id) {
                    (Some(original), Some(span)) => Message::new(splice(message.bytes(), span, original)),
                    _ => message.clone(),
                };
                return (Found::About(Rc::clone(&call.stream), call.exchange.number), message);
            }
        }
        let is_about_lists = method.ends_with(b"/list_changed\"") || method == b"\"notifications/resources/updated\"";
        let general = self.general.borrow().is_some();
        match self.only_call() {
            Some(found) if !(is_about_lists && general) => (found, message),
            _ => (Found::Nobody, message),
        }
    }

    fn only_call(&self) -> Option<Found> {
        let calls = self.calls.borrow();
        let mut all = calls.values();
        match (all.next(), all.next()) {
            (Some(call), None) if !call.is_initialize => {
                Some(Found::About(Rc::clone(&call.stream), call.exchange.number))
            }
            _ => None,
        }
    }

    fn take_call(&self, id: &Id) -> Option<Call> {
        let call = self.calls.borrow_mut().remove(id)?;
        if let Some(token) = &call.token {
            self.tokens.borrow_mut().remove(token);
        }
        Some(call)
    }

    /// Sends the answer of a call; the last one on a stream ends it.
    fn answer(&self, stream: &Rc<Stream>, message: &Bytes) {
        stream.open.set(stream.open.get().saturating_sub(1));
        let is_last = stream.open.get() == 0;
        if is_last && matches!(*stream.state.borrow(), State::Waiting(_)) {
            return stream.replace(State::Answered(message.clone()));
        }
        self.send_event(stream, message);
        if is_last && let State::Streaming(outlet) = &*stream.state.borrow() {
            outlet.end();
        }
    }

    fn send_event(&self, stream: &Rc<Stream>, message: &Bytes) {
        if matches!(*stream.state.borrow(), State::Waiting(_)) {
            let outlet = Outlet::new(Rc::clone(&self.drained));
            self.prime(stream, &outlet);
            stream.replace(State::Streaming(outlet));
        }
        let id = self.next_id(stream);
        let mut event = Gather::default();
        encode_event(id.map(|id| id.to_string()).as_deref().map(str::as_bytes), message, &mut event);
        let event = event.to_bytes();
        if let Some(id) = id {
            self.log.borrow_mut().keep(id, event.clone());
        }
        if let State::Streaming(outlet) = &*stream.state.borrow() {
            outlet.push(event);
        }
    }

    /// Gives a client something to resume from before the first message, if it knows what that is.
    fn prime(&self, stream: &Stream, outlet: &Outlet) {
        if self.revision.get().is_some_and(Revision::primes_streams)
            && let Some(id) = self.next_id(stream)
        {
            outlet.push(priming_event(id.to_string().as_bytes(), None));
        }
    }

    fn next_id(&self, stream: &Stream) -> Option<EventId> {
        if self.era == Era::Modern {
            return None;
        }
        stream.place.set(stream.place.get() + 1);
        Some(EventId { stream: stream.number, place: stream.place.get() })
    }

    /// Sends what belongs to no call; without a stream for it, it is kept until there is one.
    fn send_generally(&self, message: &Bytes) {
        let general = self.general.borrow().clone();
        match general {
            Some(stream) => self.send_event(&stream, message),
            None if self.era == Era::Modern => {}
            None => {
                let mut backlog = self.backlog.borrow_mut();
                backlog.push_back(message.clone());
                while backlog.len() > EVENTS_MAX || backlog.iter().map(Bytes::len).sum::<usize>() > BYTES_MAX {
                    backlog.pop_front();
                }
            }
        }
    }

    /// Opens the stream that a GET asks for: the rest of one that broke, or the general one.
    pub fn open_stream(&self, last: Option<EventId>) -> (Rc<Outlet>, Rc<Stream>) {
        self.used.set(Instant::now());
        let outlet = Outlet::new(Rc::clone(&self.drained));
        if let Some(last) = last
            && let Some(stream) = self.resume(last, &outlet)
        {
            return (outlet, stream);
        }
        let stream = self.new_stream(State::Streaming(Rc::clone(&outlet)));
        self.prime(&stream, &outlet);
        self.replace_general(&stream);
        let backlog = std::mem::take(&mut *self.backlog.borrow_mut());
        for message in &backlog {
            self.send_event(&stream, message);
        }
        (outlet, stream)
    }

    /// Goes on with a stream after the event `last`, if there is such a one.
    fn resume(&self, last: EventId, outlet: &Rc<Outlet>) -> Option<Rc<Stream>> {
        let calls = self.calls.borrow();
        let general = self.general.borrow().clone();
        let open = calls.values().map(|call| &call.stream).find(|stream| stream.number == last.stream).cloned();
        let found = open.or(general.filter(|stream| stream.number == last.stream));
        let missed = self.log.borrow().after(last);
        if found.is_none() && missed.is_empty() {
            return None;
        }
        for event in missed {
            outlet.push(event);
        }
        match found {
            Some(stream) => {
                if let State::Streaming(before) = stream.state.replace(State::Streaming(Rc::clone(outlet))) {
                    before.end();
                }
                Some(stream)
            }
            None => {
                outlet.end();
                Some(self.new_stream(State::Detached))
            }
        }
    }

    /// One stream of this kind at a time: a new one takes the old one's place.
    fn replace_general(&self, stream: &Rc<Stream>) {
        let before = self.general.replace(Some(Rc::clone(stream)));
        if let Some(before) = before
            && let State::Streaming(outlet) = &*before.state.borrow()
        {
            outlet.end();
        }
    }

    /// The client closed a stream. A general one is gone with it; the answer to a call goes on.
    pub fn left(&self, stream: &Rc<Stream>, outlet: &Rc<Outlet>) {
        if let State::Streaming(current) = &*stream.state.borrow()
            && !Rc::ptr_eq(current, outlet)
        {
            // It came back on another connection before this one was seen to end.
            return;
        }
        stream.detach();
    }

    /// Forgets the calls of a stream that its client closed, and returns the ids the server knows
    /// them under.
    pub fn cancel(&self, stream: &Rc<Stream>) -> Vec<(Id, Asked)> {
        let of_stream = |call: &Call| Rc::ptr_eq(&call.stream, stream);
        let keys: Vec<Id> =
            self.calls.borrow().iter().filter(|(_, call)| of_stream(call)).map(|(key, _)| key.clone()).collect();
        keys.into_iter().filter_map(|key| self.take_call(&key).map(|call| (key, call.asked))).collect()
    }

    /// Lends every open call to the conversation's own table while `answer` answers from there.
    pub fn with_calls<R>(&self, conversation: &mut Conversation, answer: impl FnOnce(&mut Conversation) -> R) -> R {
        let lent: Vec<Asked> = (self.calls.borrow().iter())
            .filter(|(key, _)| !conversation.awaits(Side::Client, key))
            .map(|(key, call)| Asked { id: key.clone(), sequence: call.asked.sequence })
            .collect();
        for asked in &lent {
            conversation.remember(asked.clone());
        }
        let answered = answer(conversation);
        for asked in lent {
            conversation.forget(&asked.id);
        }
        answered
    }

    pub async fn room(&self, most: usize) {
        loop {
            let waiting: usize = {
                let calls = self.calls.borrow();
                let general = self.general.borrow();
                let streams = calls.values().map(|call| &call.stream).chain(general.as_ref());
                streams
                    .map(|stream| match &*stream.state.borrow() {
                        State::Streaming(outlet) => outlet.waiting(),
                        _ => 0,
                    })
                    .sum()
            };
            if waiting <= most {
                return;
            }
            self.drained.notified().await;
        }
    }

    /// Ends every stream.
    pub fn end(&self) {
        let calls = std::mem::take(&mut *self.calls.borrow_mut());
        let general = self.general.take();
        for stream in calls.values().map(|call| &call.stream).chain(general.as_ref()) {
            let state = stream.state.replace(State::Detached);
            match state {
                State::Streaming(outlet) => outlet.end(),
                State::Waiting(Some(waker)) => waker.wake(),
                _ => {}
            }
        }
    }
}

/// Whom a message of the server concerns.
enum Found {
    /// It answers this call.
    Answered(Call),
    /// It belongs to the exchange of a call that goes on.
    About(Rc<Stream>, u64),
    Nobody,
    /// It comes too late for anybody.
    Late,
}

/// The requests in a batch, which are remembered one by one.
fn asks(message: &Message) -> Vec<Id> {
    if message.glance().kind != Kind::Batch {
        return Vec::new();
    }
    let items = scan::batch_items(message.bytes()).map(|item| Message::new(message.bytes().slice(item.range())));
    items.filter(|item| item.glance().kind == Kind::Request).filter_map(|item| item.id()).collect()
}

/// The token by which a request wants to hear of its progress. Looked for only where the word
/// stands at all.
fn progress_token(request: &Bytes) -> Option<(Id, Span)> {
    if !scan::mentions(request, &scan::PROGRESS_TOKEN) {
        return None;
    }
    let message = Message::new(request.clone());
    Some((message.progress_token()?, message.peek().progress_token?))
}

/// The revision that an answer to `initialize` settles on.
fn revision_of(answer: &[u8]) -> Option<Revision> {
    let span = scan::member_at(answer, ["result", "protocolVersion"])?;
    Revision::parse(scan::decode_string(&answer[span.range()])?.as_bytes())
}
