//! A Streamable HTTP client in front of a server that has one stream for everything. Finds the exchange that each message
//! of the server belongs to, and keeps events for a client whose connection broke.

pub mod calls;
pub mod event_log;
mod held;
pub mod stream;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::slice;
use std::time::Duration;

use bytes::Bytes;
use mcp_engine::{Asked, Conversation, Lane, Lent, Side};
use mcp_link::link::CLIENT_WAITING_MAX;
use mcp_link::{ClientSide, Exchanges, Link, Passed, Waiting};
use mcp_store::Transport;
use mcp_wire::framing::sse::{encode_event, priming_event};
use mcp_wire::mirror::ToolParams;
use mcp_wire::revision::{Era, Revision};
use mcp_wire::splice::splice;
use mcp_wire::{Cut, Gather, Id, Kind, Message, Span, scan};
use uuid::Uuid;

use super::beats::{Beat, Beats};
use super::exchange::Exchange;
use super::response_stream::{PacedBody, ResponseStream, Unread};
use calls::{Call, Calls, replace_items};
use event_log::{BYTES_MAX, EVENTS_MAX, EventId, EventLog};
use held::Asking;
use stream::Stream;

/// The member of `_meta` that says which listen request something belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Bytes of the version that a server agrees to and that its client repeats in a header; a longer one is none.
const VERSION_BYTES_MAX: usize = 64;
/// Calls that continue without their client; past this the oldest is given up.
const LEFT_MAX: usize = 1_024;

pub struct HttpClient {
    me: Weak<Self>,
    /// What the client shows with each request. Where there are no sessions any more, nothing.
    pub id: Option<Uuid>,
    pub era: Era,
    /// Every answer names its request: nothing is taken to belong to the only open call.
    knows_whose: Cell<bool>,
    /// What client and server agreed on.
    revision: Cell<Option<Revision>>,
    /// The same as the server spelled it.
    version: RefCell<Option<Box<str>>>,
    calls: RefCell<Calls>,
    /// The stream for what belongs to no call.
    general: RefCell<Option<Rc<Stream>>>,
    /// What found no stream.
    backlog: RefCell<VecDeque<Bytes>>,
    log: RefCell<EventLog>,
    streams: Cell<u64>,
    used: Cell<Beat>,
    beats: Rc<Beats>,
    /// Events and large answers that wait for the client.
    unread: Rc<Unread>,
    /// What the server says of headers that repeat arguments, shared by all of its sessions.
    tools: Rc<RefCell<ToolParams>>,
}

/// Whom a message of the server concerns.
enum Found {
    /// It answers this call.
    Answered(Call),
    /// It is a batch that answers these, all of one client.
    AllAnswered(Vec<Call>),
    /// It belongs to the exchange of a call that goes on.
    About(Rc<Stream>),
    Nobody,
    /// A batch for several.
    Several,
    /// It comes too late for anybody.
    Late,
}

impl Found {
    /// The calls that it answers.
    fn calls(&self) -> &[Call] {
        match self {
            Self::Answered(call) => slice::from_ref(call),
            Self::AllAnswered(calls) => calls,
            Self::About(_) | Self::Nobody | Self::Several | Self::Late => &[],
        }
    }
}

impl HttpClient {
    pub fn new(id: Option<Uuid>, era: Era, beats: Rc<Beats>, tools: Rc<RefCell<ToolParams>>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            me: me.clone(),
            id,
            era,
            knows_whose: Cell::new(false),
            revision: Cell::new(None),
            version: RefCell::default(),
            calls: RefCell::default(),
            general: RefCell::default(),
            backlog: RefCell::default(),
            log: RefCell::default(),
            streams: Cell::new(0),
            used: Cell::new(beats.now()),
            beats,
            unread: Rc::default(),
            tools,
        })
    }

    /// When a message last passed; now, while a client waits for an answer.
    pub fn used(&self) -> Beat {
        let is_waited_for = self.calls.borrow().all().any(|call| call.stream.is_attached());
        if is_waited_for { self.beats.now() } else { self.used.get() }
    }

    /// Whether client and server agreed on this version.
    pub fn agreed_to(&self, version: &[u8]) -> bool {
        self.version.borrow().as_ref().is_some_and(|agreed| agreed.as_bytes() == version)
    }

    fn next_stream(&self) -> u64 {
        self.streams.set(self.streams.get() + 1);
        self.streams.get()
    }

    /// Passes what a POST brought to the server. If it asks for anything, the stream of its answer
    /// comes back.
    pub fn from_client(&self, link: &Link, exchange: &Rc<Exchange>, message: Message) -> Option<Rc<Stream>> {
        self.used.set(self.beats.now());
        let stream = Stream::waiting(self.next_stream(), exchange.number);
        let (message, cancelled) = self.cancelled_by(link, message);
        let (asked, out) = {
            let conversation = &mut link.conversation.borrow_mut();
            let lane = exchange.lane(b"", None);
            link.runtime.pass(|pipeline, out| pipeline.pass_opening(conversation, lane, message.clone(), out))
        };
        if let Some(parked) = out.parked.first() {
            // What the client is asked about its call belongs to the exchange of the call.
            out.to_client.iter().for_each(|question| self.send_event(&stream, question.frame().bytes));
            return self.wait_for(link, *parked, Asking { exchange, stream, asked, message });
        }
        if out.withheld > 0 {
            return None;
        }
        // Nothing goes on that could not be recorded, nor to a server that is gone.
        if out.to_server.is_empty() || link.is_over() {
            stream.detach();
            return Some(stream);
        }
        self.ask(link, exchange, &stream, asked, &message);
        if let Some(call) = cancelled {
            self.close_call(&call);
        }
        // It may have been answered at once.
        (stream.is_open() || !stream.is_waiting()).then_some(stream)
    }

    /// Sends a message to the server, and remembers who waits for an answer to it.
    fn ask(&self, link: &Link, exchange: &Rc<Exchange>, stream: &Rc<Stream>, asked: Option<Asked>, message: &Message) {
        let sequence = asked.as_ref().map_or(0, |asked| asked.sequence);
        let changed = match (asked, message.glance().kind) {
            (Some(asked), Kind::Request) => self.calls.borrow_mut().remember(exchange, stream, asked, message),
            (None, Kind::Batch) => Some(self.calls.borrow_mut().remember_batch(exchange, stream, message.bytes())),
            _ => None,
        };
        self.give_up_oldest(link);
        match changed {
            None => link.send(message, sequence),
            Some(changed) => link.send(&changed.into(), sequence),
        }
    }

    /// The call that a message takes back. It is given up, and named as the server knows it.
    fn cancelled_by(&self, link: &Link, message: Message) -> (Message, Option<Call>) {
        let taken = message.cancelled_id().and_then(|id| {
            let mut calls = self.calls.borrow_mut();
            let known = calls.known_as(&id).filter(|known| calls.get(known).is_some_and(|call| !call.is_initialize))?;
            let call = calls.take(&known)?;
            Some((known, call))
        });
        let Some((known, call)) = taken else { return (message, None) };
        remember_cancelled(link, &call.asked);
        let message = match message.peek().request_id {
            Some(span) if known != call.asked.id => splice(message.bytes(), span, known.to_string().as_bytes()).into(),
            _ => message,
        };
        (message, Some(call))
    }

    /// A server that answers nothing must not have us remember every call for ever.
    fn give_up_oldest(&self, link: &Link) {
        let oldest = {
            let calls = self.calls.borrow();
            if calls.count() <= LEFT_MAX {
                return;
            }
            let left = calls.known().filter(|(_, call)| !call.stream.is_attached());
            left.min_by_key(|(_, call)| call.exchange.number).map(|(known, _)| known.clone())
        };
        let call = oldest.and_then(|known| self.calls.borrow_mut().take(&known));
        if let Some(call) = call {
            remember_cancelled(link, &call.asked);
        }
    }

    /// Nobody waits for the answer to a call any more; the last one on a stream ends it.
    fn close_call(&self, call: &Call) {
        if !call.stream.closes() {
            return;
        }
        if call.stream.is_waiting() {
            call.stream.attach(&ResponseStream::new(&self.unread));
        }
        call.stream.end_events();
    }

    fn pass_from_server(&self, link: &Link, lane: Lane<'_>, about: Option<&Id>, message: Message) {
        self.used.set(self.beats.now());
        let is_answer = message.glance().kind.is_response();
        let (found, message) = self.find(message);
        let found = match (found, about) {
            (Found::Nobody | Found::About(_), Some(id)) => {
                let call = self.calls.borrow().get(id).filter(|call| call.stream.can_reach()).map(self::about);
                call.unwrap_or(Found::Nobody)
            }
            (found, _) => found,
        };
        let asked = match &found {
            // The items of a batch are told apart by their ids alone.
            Found::Answered(call) if is_answer && call.asked.sequence > 0 => Some(&call.asked),
            _ => None,
        };
        if message.glance().kind == Kind::Batch {
            self.remember_answered(link, &found, &message);
        }
        let is_unwanted = is_answer && matches!(found, Found::Late);
        if let Found::AllAnswered(calls) = &found
            && message.is_error_without_id()
        {
            let mut conversation = link.conversation.borrow_mut();
            calls.iter().for_each(|call| conversation.forget(&call.asked.id));
        }
        let (exchange, given) = self.way(&found);
        let given = given.map(|id| id.to_string());
        let event_id = given.as_deref().map_or(lane.event_id, str::as_bytes);
        let lane = Lane { exchange, event_id, is_foretold: given.is_some(), asked, ..lane };
        let ((), out) = {
            let conversation = &mut link.conversation.borrow_mut();
            link.runtime.pass(|pipeline, out| pipeline.pass_one(conversation, Side::Server, lane, message, out))
        };
        match out.to_client.first() {
            // Answers to calls of several exchanges, in place of a refused batch; the last of them is parked.
            Some(_) if !out.parked.is_empty() => {
                out.to_client.iter().for_each(|outgoing| self.route(Found::Several, outgoing.frame().bytes));
                let sequence = out.parked[0].sequence;
                let me = self.me.clone();
                link.when_released(sequence, move |link, release| held::to_client(&me, link, found, release));
            }
            Some(outgoing) => self.route(found, outgoing.frame().bytes),
            None if !out.parked.is_empty() => {
                let sequence = out.parked[0].sequence;
                let me = self.me.clone();
                link.when_released(sequence, move |link, release| held::to_client(&me, link, found, release));
            }
            None if out.withheld > 0 => {}
            // It could not be recorded; whoever waits for it is told so.
            None => found.calls().iter().for_each(|call| call.stream.end()),
        }
        if is_unwanted && out.withheld == 0 {
            link.note(Side::Server, "the answer before this is to no open call, and was not passed on");
        }
    }

    /// Has the conversation know the calls that a batch answers, which their exchanges know otherwise.
    fn remember_answered(&self, link: &Link, found: &Found, batch: &Message) {
        let mut conversation = link.conversation.borrow_mut();
        let mut remember = |call: &Call, id: Id| {
            if call.asked.sequence > 0 {
                conversation.remember(Asked { id, sequence: call.asked.sequence });
            }
        };
        match found {
            Found::AllAnswered(calls) => calls.iter().for_each(|call| remember(call, call.asked.id.clone())),
            // The items still have the ids that the server knows.
            Found::Several => {
                let calls = self.calls.borrow();
                for item in scan::batch_items(batch.bytes()) {
                    let item = Message::new(batch.bytes().slice(item.range()));
                    let id = item.id().filter(|_| item.glance().kind.is_response());
                    if let Some((call, id)) = id.and_then(|id| Some((calls.get(&id)?, id))) {
                        remember(call, id);
                    }
                }
            }
            _ => {}
        }
    }

    /// The exchange by which something will reach its client, and the id of the event it will be, if it
    /// becomes one: a message is recorded with both before it is sent. What waits for a stream has
    /// neither yet.
    fn way(&self, found: &Found) -> (u64, Option<EventId>) {
        match found {
            Found::Answered(call) => self.way_of_answer(call, 1),
            Found::AllAnswered(calls) => calls.first().map_or((0, None), |call| self.way_of_answer(call, calls.len())),
            Found::About(stream) => self.way_of_event(stream),
            Found::Nobody => self.listening().map_or((0, None), |general| self.way_of_event(&general)),
            Found::Several | Found::Late => (0, None),
        }
    }

    /// The same for the answers to `count` calls of one stream.
    fn way_of_answer(&self, call: &Call, count: usize) -> (u64, Option<EventId>) {
        match call.stream.is_waiting() && call.stream.closes_with(count) {
            true => (call.stream.exchange.get(), None),
            false => self.way_of_event(&call.stream),
        }
    }

    fn way_of_event(&self, stream: &Stream) -> (u64, Option<EventId>) {
        let primed = u64::from(stream.is_waiting() && self.primes());
        (stream.exchange.get(), (self.era == Era::Legacy).then(|| stream.id_after(primed)))
    }

    fn route(&self, found: Found, bytes: &Bytes) {
        match found {
            Found::Answered(_) | Found::AllAnswered(_) => self.answer(found.calls(), bytes),
            Found::About(stream) => self.send_event(&stream, bytes),
            Found::Nobody => self.send_generally(bytes),
            Found::Several if !matches!(bytes.trim_ascii_start().first(), Some(b'[')) => {
                let (found, message) = self.find(Message::new(bytes.clone()));
                self.route(found, message.bytes());
            }
            Found::Several => {
                for item in scan::batch_items(bytes).collect::<Vec<_>>() {
                    let item = Message::new(bytes.slice(item.range()));
                    match item.glance().kind {
                        // Nobody sends these, and following them down could go deep.
                        Kind::Batch => self.send_generally(item.bytes()),
                        _ => {
                            let (found, item) = self.find(item);
                            self.route(found, item.bytes());
                        }
                    }
                }
            }
            Found::Late => {}
        }
    }

    /// Whom a message concerns, and the message as they know it: an id or a token that took another's
    /// place is put right.
    fn find(&self, message: Message) -> (Found, Message) {
        match message.glance().kind {
            Kind::Response | Kind::Error => {
                let call = message.id().and_then(|id| self.calls.borrow_mut().take(&id));
                let Some(call) = call else {
                    return match if message.is_error_without_id() { self.only_asked() } else { None } {
                        Some(Found::Answered(call)) => {
                            let message = message.with_id(&call.asked.id);
                            (Found::Answered(call), message)
                        }
                        found => (found.unwrap_or(Found::Late), message),
                    };
                };
                // The end of a listen request names its id a second time.
                let message = call.with_own_id(message, subscription_in_result);
                let message = call.with_own_id(message, |message| message.glance().id);
                (Found::Answered(call), message)
            }
            Kind::Batch => self.find_batch(message),
            Kind::Notification => self.find_notified(message),
            Kind::Request | Kind::OtherJson | Kind::NotJson => (self.only_call().unwrap_or(Found::Nobody), message),
        }
    }

    fn find_batch(&self, message: Message) -> (Found, Message) {
        let calls = &mut *self.calls.borrow_mut();
        let item_ids = scan::batch_items(message.bytes()).filter_map(|item| {
            let item = Message::new(message.bytes().slice(item.range()));
            item.id().filter(|_| item.glance().kind.is_response())
        });
        let known: Vec<Id> = item_ids.filter(|id| calls.get(id).is_some()).collect();
        let mut streams: Vec<u64> = known.iter().filter_map(|id| Some(calls.get(id)?.stream.number)).collect();
        streams.sort_unstable();
        streams.dedup();
        match streams[..] {
            [] => (Found::Nobody, message),
            [_] => {
                let batch = replace_items(message.bytes(), |item| {
                    let call = item.id().filter(|_| item.glance().kind.is_response()).and_then(|id| calls.get(&id));
                    let own = call.map(|call| call.with_own_id(item.clone(), |item| item.glance().id));
                    own.as_ref().unwrap_or(item).bytes().clone()
                });
                (Found::AllAnswered(known.iter().filter_map(|id| calls.take(id)).collect()), batch.into())
            }
            _ => (Found::Several, message),
        }
    }

    fn find_notified(&self, message: Message) -> (Found, Message) {
        let method = message.glance().method.map(|span| message.slice(span)).unwrap_or_default();
        let calls = self.calls.borrow();
        if method == b"\"notifications/progress\""
            && let Some(token) = message.progress_token()
        {
            // Progress of a call that is over is of no use to anybody, and some clients choke on it.
            let Some(call) = calls.by_token(&token) else { return (Found::Late, message) };
            return (about(call), call.with_own_token(message));
        }
        let is_about_lists = method.ends_with(b"/list_changed\"") || method == b"\"notifications/resources/updated\"";
        if let Some(call) = message.subscription_id().and_then(|subscription| calls.get(&subscription)) {
            return (about(call), call.with_own_id(message, |message| message.peek().subscription_id));
        }
        drop(calls);
        match self.only_call() {
            Some(found) if !(is_about_lists && (self.listening().is_some() || self.knows_whose.get())) => {
                (found, message)
            }
            _ => (Found::Nobody, message),
        }
    }

    /// The only request in flight, which an error without an id answers: its server could not read the id. All requests
    /// of a batch count as one. A gateway reads every id, and never answers so.
    fn only_asked(&self) -> Option<Found> {
        let mut calls = self.calls.borrow_mut();
        let stream = calls.all().next()?.stream.number;
        let is_only = !self.knows_whose.get() && calls.all().all(|call| call.stream.number == stream);
        if !is_only {
            return None;
        }
        let mut answered = calls.take_all();
        Some(match answered.len() {
            1 => Found::Answered(answered.pop()?),
            _ => Found::AllAnswered(answered),
        })
    }

    /// The only call in flight, if what is sent there can reach its client.
    fn only_call(&self) -> Option<Found> {
        self.calls.borrow().only().filter(|call| !call.is_initialize && call.stream.can_reach()).map(about)
    }

    /// The stream for what belongs to no call, while its client is there.
    fn listening(&self) -> Option<Rc<Stream>> {
        self.general.borrow().clone().filter(|stream| stream.is_attached())
    }

    /// Sends the answer of a call; the last one on a stream ends it.
    fn answer(&self, calls: &[Call], message: &Bytes) {
        let Some(first) = calls.first() else { return };
        if first.is_initialize {
            let version = version_of(message);
            self.revision.set(version.as_ref().and_then(|version| Revision::parse(version.as_bytes())));
            *self.version.borrow_mut() = version;
        }
        if first.lists_tools && self.era == Era::Modern {
            self.tools.borrow_mut().learn(message);
        }
        let mut is_last = false;
        calls.iter().for_each(|call| is_last = call.stream.closes());
        if is_last && first.stream.is_waiting() {
            return first.stream.answer(message.clone());
        }
        self.send_event(&first.stream, message);
        if is_last {
            first.stream.end_events();
        }
    }

    fn send_event(&self, stream: &Rc<Stream>, message: &Bytes) {
        if stream.is_waiting() {
            let response_stream = ResponseStream::new(&self.unread);
            self.prime(stream, &response_stream);
            stream.attach(&response_stream);
        }
        let id = self.next_id(stream);
        let mut event = Gather::default();
        encode_event(id.map(|id| id.to_string()).as_deref().map(str::as_bytes), message, &mut event);
        let event = event.to_bytes();
        if let Some(id) = id {
            self.log.borrow_mut().keep(id, event.clone());
        }
        stream.push(event);
    }

    /// Gives a client something to resume from before the first message, if it knows what that is.
    fn prime(&self, stream: &Stream, response_stream: &ResponseStream) {
        if self.primes()
            && let Some(id) = self.next_id(stream)
        {
            response_stream.push(priming_event(id.to_string().as_bytes(), None));
        }
    }

    fn primes(&self) -> bool {
        self.revision.get().is_some_and(Revision::primes_streams)
    }

    fn next_id(&self, stream: &Stream) -> Option<EventId> {
        (self.era == Era::Legacy).then(|| stream.next_id())
    }

    /// Sends what belongs to no call; without a stream for it, it is kept until there is one.
    fn send_generally(&self, message: &Bytes) {
        if let Some(stream) = self.listening() {
            return self.send_event(&stream, message);
        }
        if self.era == Era::Modern {
            return;
        }
        let mut backlog = self.backlog.borrow_mut();
        backlog.push_back(message.clone());
        while backlog.len() > EVENTS_MAX || backlog.iter().map(Bytes::len).sum::<usize>() > BYTES_MAX {
            backlog.pop_front();
        }
    }

    /// Opens the stream that a GET asks for: the rest of one that broke, or the general one.
    pub fn open_stream(&self, exchange: u64, last: Option<EventId>) -> (Rc<ResponseStream>, Rc<Stream>) {
        self.used.set(self.beats.now());
        let response_stream = ResponseStream::new(&self.unread);
        let resumed = last.and_then(|last| self.resume(last, &response_stream));
        let stream = resumed.unwrap_or_else(|| {
            let stream = Stream::streaming(self.next_stream(), exchange, &response_stream);
            self.prime(&stream, &response_stream);
            // One stream of this kind at a time: a new one takes the old one's place.
            if let Some(before) = self.general.replace(Some(Rc::clone(&stream))) {
                before.end();
            }
            stream
        });
        stream.exchange.set(exchange);
        if self.listening().is_some_and(|general| Rc::ptr_eq(&general, &stream)) {
            let backlog = std::mem::take(&mut *self.backlog.borrow_mut());
            backlog.iter().for_each(|message| self.send_event(&stream, message));
        }
        (response_stream, stream)
    }

    /// Goes on with a stream after the event `last`, if there is such a one.
    fn resume(&self, last: EventId, response_stream: &Rc<ResponseStream>) -> Option<Rc<Stream>> {
        let of_call = self.calls.borrow().all().map(|call| &call.stream).find(|stream| stream.gave(last)).cloned();
        let found = of_call.or_else(|| self.general.borrow().clone().filter(|stream| stream.gave(last)));
        let missed = self.log.borrow().after(last);
        if found.is_none() && missed.is_empty() {
            return None;
        }
        missed.into_iter().for_each(|event| response_stream.push(event));
        Some(match found {
            Some(stream) => {
                stream.attach(response_stream);
                stream
            }
            // Everything was sent, so the rest of it is all there is.
            None => {
                response_stream.end();
                Stream::streaming(self.next_stream(), 0, response_stream)
            }
        })
    }

    /// The client closed a connection on which it read a stream. The answer to a call goes on.
    pub fn left(&self, stream: &Rc<Stream>, response_stream: &Rc<ResponseStream>) {
        // Unless it came back on another connection before this one was seen to end.
        if stream.response_stream().is_none_or(|current| Rc::ptr_eq(&current, response_stream)) {
            stream.detach();
        }
    }

    /// Forgets the calls of a stream that its client closed, and returns the ids the server knows
    /// them under.
    pub fn cancel(&self, link: &Link, stream: &Rc<Stream>) -> Vec<Id> {
        stream.detach();
        let mut calls = self.calls.borrow_mut();
        let of_stream = calls.known().filter(|(_, call)| Rc::ptr_eq(&call.stream, stream));
        let known: Vec<Id> = of_stream.map(|(known, _)| known.clone()).collect();
        for call in known.iter().filter_map(|known| calls.take(known)) {
            remember_cancelled(link, &call.asked);
        }
        known
    }

    /// A large answer of its own, counted until its client has taken it.
    pub fn paced(&self, answer: Bytes) -> PacedBody {
        PacedBody::new(answer, Rc::clone(&self.unread))
    }
}

impl ClientSide for HttpClient {
    fn transport(&self) -> Transport {
        Transport::StreamableHttp
    }

    fn deliver(&self, passed: Passed<'_>) {
        let (found, message) = self.find(Message::new(passed.frame.bytes.clone()));
        self.route(found, message.bytes());
    }

    fn unread_bytes(&self) -> usize {
        self.unread.bytes()
    }

    fn room(&self) -> Option<Waiting<'_>> {
        self.unread.room(CLIENT_WAITING_MAX)
    }

    /// Ends every stream.
    fn end(&self, _link: &Link) {
        let calls = self.calls.borrow_mut().take_all();
        let general = self.general.take();
        calls.iter().map(|call| &call.stream).chain(general.as_ref()).for_each(|stream| stream.end());
    }

    fn exchanges(&self) -> Option<&dyn Exchanges> {
        Some(self)
    }
}

impl Exchanges for HttpClient {
    fn era(&self) -> Era {
        self.era
    }

    fn answers_name_requests(&self) {
        self.knows_whose.set(true);
    }

    fn pass_cuts(&self, link: &Link, cuts: &mut Vec<Cut>) {
        for cut in cuts.drain(..) {
            match cut {
                Cut::Frame(frame) if matches!(frame.bytes.trim_ascii_start().first(), Some(b'{' | b'[')) => {
                    let lane = Lane { can_ask: false, ..Lane::PIPE };
                    self.pass_from_server(link, lane, None, frame.bytes.into());
                }
                Cut::TooLarge { size, head, tail } => link.from_server_too_large((size, &head, &tail)),
                other => {
                    let conversation = &mut link.conversation.borrow_mut();
                    link.runtime.pass(|pipeline, out| pipeline.pass(conversation, Side::Server, [other], out));
                }
            }
        }
    }

    /// Gives a message to the exchange that it belongs to.
    fn pass(&self, link: &Link, lane: Lane<'_>, about: Option<&Id>, message: Message) {
        self.pass_from_server(link, lane, about, message);
    }

    fn lend_calls(&self, conversation: &mut Conversation, answer: &mut dyn FnMut(&mut Conversation)) {
        for (known, call) in self.calls.borrow().known() {
            if !conversation.awaits(Side::Client, known) {
                let (exchange, event_id) = self.way_of_answer(call, 1);
                let event_id = event_id.map_or_else(Vec::new, |id| id.to_string().into_bytes());
                let asked = Asked { id: known.clone(), sequence: call.asked.sequence };
                conversation.borrow_call(Lent { asked, exchange, event_id });
            }
        }
        answer(conversation);
        conversation.give_back_calls();
    }

    /// A client that does not know how to ask for the rest keeps its stream.
    fn pause(&self, known: &Id, retry: Option<Duration>) {
        let stream = self.calls.borrow().get(known).map(|call| Rc::clone(&call.stream));
        let Some(stream) = stream.filter(|stream| self.primes() && stream.is_attached()) else { return };
        if stream.is_waiting() {
            stream.attach(&ResponseStream::new(&self.unread));
        }
        let retry = retry.map(|retry| retry.as_millis() as u64);
        if let (Some(id), Some(response_stream)) = (self.next_id(&stream), stream.response_stream()) {
            response_stream.push(priming_event(id.to_string().as_bytes(), retry));
            // What comes later is for whoever asks for the rest.
            response_stream.end();
        }
    }
}

fn about(call: &Call) -> Found {
    Found::About(Rc::clone(&call.stream))
}

/// A late answer to a call that nobody waits for is still known for what it is.
fn remember_cancelled(link: &Link, asked: &Asked) {
    if asked.sequence > 0 {
        link.conversation.borrow_mut().remember_cancelled(asked.clone());
    }
}

/// Where an answer says which subscription it ends, if it is the one it answers.
fn subscription_in_result(answer: &Message) -> Option<Span> {
    let span = scan::member_at(answer.bytes(), ["result", "_meta", SUBSCRIPTION])?;
    (Some(Id::from_json(answer.slice(span))) == answer.id()).then_some(span)
}

/// The version that an answer to `initialize` settles on, if it could be one.
fn version_of(answer: &[u8]) -> Option<Box<str>> {
    let span = scan::member_at(answer, ["result", "protocolVersion"])?;
    let version = scan::decode_string(&answer[span.range()])?;
    (version.len() <= VERSION_BYTES_MAX).then(|| version.into())
}
