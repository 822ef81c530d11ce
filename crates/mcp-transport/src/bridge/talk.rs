//! Where the two sides of a crossing meet. Everything passes the pipeline here, in either direction,
//! and goes to whatever stands on the other side.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use bytes::Bytes;
use mcp_engine::entrance::Principal;
use mcp_engine::pipeline::{Injection, Outgoing, is_noise};
use mcp_engine::{Conversation, Lane, Outbox, Pipeline, Release, Side};
use mcp_store::Transport;
use mcp_wire::framing::sse::encode_event;
use mcp_wire::reply::Refusal;
use mcp_wire::{Cut, FrameRef, Gather, Id, Message};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::child_link::ChildLink;
use super::http_link::HttpLink;
use super::outflow::Outflow;
use super::outlet::Outlet;
use super::session::Session;
use super::sse_link::SseLink;
use crate::gateway::leg::Leg;
use crate::gateway::visitor::Visitor;
use crate::http::exchange::Exchange;
use crate::http::hub::Hub;
use crate::stdio::pipe::PASSED_TOGETHER;

pub struct Talk {
    me: Weak<Self>,
    pub hub: Rc<Hub>,
    pub conversation: Rc<RefCell<Conversation>>,
    pub client: ClientEnd,
    server: OnceCell<ServerEnd>,
    /// Whose it is, once that is known.
    owner: OnceCell<Rc<Principal>>,
    over: Cell<bool>,
    ended: Notify,
    /// For large answers that are read whole.
    large: Semaphore,
}

/// The side a client is on.
pub enum ClientEnd {
    /// What a client on stdio reads: our standard output, or a connection through the door.
    Pipe(Rc<Outflow>),
    /// The stream of an SSE connection.
    Stream(Rc<Outlet>),
    /// A session of Streamable HTTP, whose messages belong to one exchange or another.
    Session(Box<Session>),
    /// The gateway, which stands for all of its clients.
    Leg(Rc<Leg>),
}

/// The side a server is on.
pub enum ServerEnd {
    Child(Rc<ChildLink>),
    Http(Rc<HttpLink>),
    Sse(Rc<SseLink>),
    /// The gateway, which stands for all of its servers.
    Gateway(Rc<Visitor>),
}

/// A byte order mark, which some readers skip.
const BOM: &[u8] = b"\xef\xbb\xbf";
/// A slow client holds up its server past this much.
pub const CLIENT_WAITING_MAX: usize = 4 * 1024 * 1024;
/// Large answers of a server that are read whole at a time; the rest waits on its connections.
const LARGE_TOGETHER: usize = 2;

impl Talk {
    pub fn new(hub: &Rc<Hub>, conversation: Rc<RefCell<Conversation>>, client: ClientEnd) -> Rc<Self> {
        let (server, owner) = (OnceCell::new(), OnceCell::new());
        let (over, ended, large) = (Cell::new(false), Notify::new(), Semaphore::new(LARGE_TOGETHER));
        let hub = Rc::clone(hub);
        Rc::new_cyclic(|me| Self { me: me.clone(), hub, conversation, client, server, owner, over, ended, large })
    }

    /// Makes it somebody's, for good.
    pub fn belong_to(&self, who: &Rc<Principal>) {
        // Whoever came first stays.
        let _ = self.owner.set(Rc::clone(who));
    }

    pub fn owner(&self) -> Option<&Rc<Principal>> {
        self.owner.get()
    }

    pub fn belongs_to(&self, who: &Principal) -> bool {
        self.owner.get().is_some_and(|owner| owner.is(who))
    }

    pub fn connect(&self, server: ServerEnd) {
        // Set once, right after the two were made for each other.
        let _ = self.server.set(server);
    }

    pub fn server(&self) -> Option<&ServerEnd> {
        self.server.get()
    }

    /// Takes what one read of the client's pipe brought.
    pub fn from_client_cuts(&self, cuts: &mut Vec<Cut>) {
        if let Some(ServerEnd::Gateway(visitor)) = self.server.get() {
            visitor.look_at(cuts);
        }
        self.pass_cuts(Side::Client, cuts);
    }

    /// Takes one message of a client that sends each by itself.
    pub fn from_client(&self, lane: Lane<'_>, message: impl Into<Message>) {
        let out = {
            let talk = &mut self.conversation.borrow_mut();
            self.hub.pass(|pipeline, out| pipeline.pass_one(talk, Side::Client, lane, message, out)).1
        };
        self.dispatch(&out);
    }

    /// Takes what one read of a server's pipe brought.
    pub fn from_server_cuts(&self, cuts: &mut Vec<Cut>) {
        if let ClientEnd::Session(session) = &self.client {
            return session.from_server_cuts(self, cuts);
        }
        self.pass_cuts(Side::Server, cuts);
    }

    /// Passes on what one read of a pipe brought, a few messages at a time.
    fn pass_cuts(&self, from: Side, cuts: &mut Vec<Cut>) {
        // What is written before it leaves is written all at once.
        let together = if self.hub.records_first { usize::MAX } else { PASSED_TOGETHER };
        let mut cuts = cuts.drain(..);
        while cuts.len() > 0 {
            let few = cuts.by_ref().take(together);
            let out = {
                let talk = &mut self.conversation.borrow_mut();
                self.hub.pass(|pipeline, out| pipeline.pass(talk, from, few, out)).1
            };
            self.dispatch(&out);
        }
    }

    /// Takes one message of a server. Data of an event that cannot be one stays here, as such a line does.
    pub fn from_server(&self, lane: Lane<'_>, message: Bytes) {
        if is_noise(message.strip_prefix(BOM).unwrap_or(&message)) {
            let talk = &mut self.conversation.borrow_mut();
            return self.hub.note(|pipeline| pipeline.pass_noise(talk, lane, message));
        }
        if let ClientEnd::Session(session) = &self.client {
            return session.from_server(self, (lane.transport, lane.event_id), message);
        }
        let out = {
            let talk = &mut self.conversation.borrow_mut();
            self.hub.pass(|pipeline, out| pipeline.pass_one(talk, Side::Server, lane, message, out)).1
        };
        self.dispatch(&out);
    }

    /// Takes one message of a server that came with the answer to `about`.
    pub fn from_server_about(&self, lane: Lane<'_>, about: Option<&Id>, message: Bytes) {
        match &self.client {
            ClientEnd::Leg(leg) => leg.with_about(about, || self.from_server(lane, message)),
            _ => self.from_server(lane, message),
        }
    }

    /// Takes one message of a server of ours, or of our own, that has to do with the request `about` of the
    /// client.
    pub fn from_gateway(&self, lane: Lane<'_>, about: Option<&Id>, message: impl Into<Message>) {
        if let ClientEnd::Session(session) = &self.client {
            return session.from_gateway(self, lane, about, message.into());
        }
        let out = {
            let talk = &mut self.conversation.borrow_mut();
            self.hub.pass(|pipeline, out| pipeline.pass_one(talk, Side::Server, lane, message, out)).1
        };
        self.dispatch(&out);
    }

    /// An event of a server was too large to hold.
    pub fn from_server_too_large(&self, found: (u64, &[u8], &[u8])) {
        self.answer_with(|pipeline, talk, out| pipeline.refuse_too_large(talk, Side::Server, found, out));
    }

    /// Does `then` when the parked message `sequence` is free. If this conversation is over by then, it
    /// has none to go on with.
    pub fn when_settled(&self, sequence: u64, then: impl FnOnce(Option<&Self>, Release) + 'static) {
        let me = self.me.clone();
        self.hub.when_released(sequence, move |release| {
            let talk = me.upgrade().filter(|talk| !talk.is_over());
            then(talk.as_deref(), release);
        });
    }

    /// The same, done only if this conversation still lasts.
    pub fn when_released(&self, sequence: u64, then: impl FnOnce(&Self, Release) + 'static) {
        self.when_settled(sequence, move |talk, release| {
            if let Some(talk) = talk {
                then(talk, release);
            }
        });
    }

    /// Sends what is left of a message that was parked.
    fn released(&self, release: Release) {
        self.conversation.borrow_mut().settle(&release);
        if let (Some(came), Some(ServerEnd::Http(link))) = (&release.raw_headers, self.server.get()) {
            link.keep_headers(release.onward.as_ref().map(|outgoing| outgoing.frame().bytes), came);
        }
        let (onward, back) = (release.onward, release.back);
        let (to_server, to_client) = match release.from {
            Side::Client => (onward, back),
            Side::Server => (back, onward),
        };
        if let Some(unasks) = &release.unasks {
            self.deliver(unasks.frame());
        }
        if let Some(outgoing) = &to_server {
            self.send_outgoing(outgoing);
        }
        if let Some(outgoing) = &to_client {
            self.deliver_outgoing(outgoing);
        }
    }

    /// The server is gone: nothing more is held for it, and what it said goes on.
    pub fn server_is_gone(&self) {
        let conversation = self.conversation.borrow().number();
        self.hub.note(|pipeline| pipeline.server_is_gone(conversation));
        self.hub.give_back();
    }

    /// The client sends nothing more, and answers nothing that it was asked.
    pub fn client_is_silent(&self) {
        let conversation = self.conversation.borrow().number();
        self.hub.note(|pipeline| pipeline.client_is_silent(conversation));
        self.hub.give_back();
    }

    /// Whether something that the client sent is parked.
    pub fn holds_from_client(&self) -> bool {
        let conversation = self.conversation.borrow().number();
        self.hub.look(|pipeline| pipeline.holds_from(conversation, Side::Client))
    }

    /// Hands everything to where it goes.
    pub fn dispatch(&self, out: &Outbox) {
        for parked in &out.parked {
            self.when_released(parked.sequence, Self::released);
        }
        for outgoing in &out.to_server {
            self.send_outgoing(outgoing);
        }
        for outgoing in &out.to_client {
            self.deliver_outgoing(outgoing);
        }
    }

    fn send_outgoing(&self, outgoing: &Outgoing) {
        match self.server.get() {
            Some(ServerEnd::Gateway(visitor)) => visitor.take(&looked_at(outgoing), outgoing.sequence()),
            _ => self.send_frame(outgoing.frame()),
        }
    }

    fn deliver_outgoing(&self, outgoing: &Outgoing) {
        match &self.client {
            ClientEnd::Leg(leg) => leg.hear(&looked_at(outgoing), outgoing.sequence()),
            _ => self.deliver(outgoing.frame()),
        }
    }

    /// Sends the server a message that was passed as `sequence`.
    pub fn send(&self, message: &Message, sequence: u64) {
        match self.server.get() {
            Some(ServerEnd::Gateway(visitor)) => visitor.take(message, sequence),
            _ => self.send_frame(FrameRef::composed(message.bytes())),
        }
    }

    fn send_frame(&self, frame: FrameRef<'_>) {
        match self.server.get() {
            Some(ServerEnd::Child(link)) => link.stdin.push(frame),
            Some(ServerEnd::Http(link)) => link.queue.push(frame.bytes.clone().into()),
            Some(ServerEnd::Sse(link)) => link.queue.push(frame.bytes.clone().into()),
            Some(ServerEnd::Gateway(visitor)) => visitor.take(&Message::new(frame.bytes.clone()), 0),
            None => {}
        }
    }

    fn deliver(&self, frame: FrameRef<'_>) {
        match &self.client {
            ClientEnd::Pipe(pipe) => pipe.push(frame),
            ClientEnd::Stream(outlet) => {
                let mut event = Gather::default();
                encode_event(None, frame.bytes, &mut event);
                outlet.push(event.to_bytes());
            }
            ClientEnd::Session(session) => session.deliver(frame.bytes),
            ClientEnd::Leg(leg) => leg.hear(&Message::new(frame.bytes.clone()), 0),
        }
    }

    /// Sends the server something that no client sent.
    pub fn inject(&self, injection: Injection) {
        let out = {
            let talk = &mut self.conversation.borrow_mut();
            self.hub.pass(|pipeline, out| pipeline.pass_injected(talk, Lane::PIPE, injection, out)).1
        };
        self.dispatch(&out);
    }

    /// Tells the server something in the client's place.
    pub fn speak_for_client(&self, message: Bytes) {
        let talk = self.conversation.borrow();
        let out = self.hub.pass(|pipeline, out| pipeline.speak_for_client(&talk, Lane::PIPE, message, out)).1;
        drop(talk);
        self.dispatch(&out);
    }

    /// Takes note of what is said to the server once more, in an exchange of our own. The sequence by
    /// which its answer is known comes back, or nothing if it must not leave.
    pub fn repeat_for_client(&self, exchange: &Exchange, message: &Message) -> Option<u64> {
        let (talk, bytes) = (self.conversation.borrow(), message.bytes().clone());
        let lane = exchange.lane(b"", None);
        let (sequence, out) = self.hub.pass(|pipeline, out| pipeline.speak_for_client(&talk, lane, bytes, out));
        (!out.to_server.is_empty()).then_some(sequence)
    }

    /// Takes note of the server's answer to that, which is not for the client.
    pub fn keep_from_client(&self, lane: Lane<'_>, answer: Bytes) {
        let talk = &mut self.conversation.borrow_mut();
        self.hub.pass(|pipeline, out| pipeline.pass_one(talk, Side::Server, lane, answer, out));
        self.hub.note(|pipeline| pipeline.note(talk, Side::Server, "the answer before this was not passed on"));
    }

    /// Answers every call the client still waits on.
    pub fn answer_open_calls(&self, refusal: &Refusal) {
        self.answer_with(|pipeline, talk, out| pipeline.answer_pending(talk, Side::Client, refusal, out));
    }

    /// The same, save for those under `kept`.
    pub fn answer_open_calls_but(&self, kept: &[Id], refusal: &Refusal) {
        self.answer_with(|pipeline, talk, out| pipeline.answer_pending_but(talk, Side::Client, kept, refusal, out));
    }

    /// Answers one call the client still waits on.
    pub fn answer_call(&self, id: &Id, refusal: &Refusal) {
        self.answer_with(|pipeline, talk, out| pipeline.answer_one(talk, Side::Client, id, refusal, out));
    }

    fn answer_with(&self, answer: impl FnOnce(&mut Pipeline, &mut Conversation, &mut Outbox)) {
        let pass = |talk: &mut Conversation| self.hub.pass(|pipeline, out| answer(pipeline, talk, out)).1;
        let out = match &self.client {
            ClientEnd::Session(session) => session.with_calls(&mut self.conversation.borrow_mut(), pass),
            _ => pass(&mut self.conversation.borrow_mut()),
        };
        self.dispatch(&out);
    }

    pub fn note(&self, from: Side, text: &str) {
        self.hub.note(|pipeline| pipeline.note(&self.conversation.borrow(), from, text));
    }

    /// Whether more waits for the client than it should. Where nobody is held up by that, what it can do without is
    /// left out.
    pub fn client_is_behind(&self) -> bool {
        self.client_waiting() > CLIENT_WAITING_MAX
    }

    /// Bytes that wait for the client.
    pub fn client_waiting(&self) -> usize {
        match &self.client {
            ClientEnd::Pipe(pipe) => pipe.waiting_bytes(),
            ClientEnd::Stream(outlet) => outlet.waiting(),
            ClientEnd::Session(session) => session.waiting_bytes(),
            ClientEnd::Leg(_) => 0,
        }
    }

    /// A place for a large answer that is about to be read whole.
    pub async fn large_answer(&self) -> Option<SemaphorePermit<'_>> {
        self.large.acquire().await.ok()
    }

    /// Waits until the client has taken enough of what is there for it.
    pub async fn client_room(&self) {
        match &self.client {
            ClientEnd::Pipe(pipe) => pipe.room().await,
            ClientEnd::Stream(outlet) => outlet.room(CLIENT_WAITING_MAX).await,
            ClientEnd::Session(session) => session.room(CLIENT_WAITING_MAX).await,
            ClientEnd::Leg(leg) => leg.client_room().await,
        }
    }

    /// Waits until the server has taken enough of what is there for it.
    pub async fn server_room(&self) {
        match self.server.get() {
            Some(ServerEnd::Child(link)) => link.room().await,
            Some(ServerEnd::Http(link)) => link.queue.room().await,
            Some(ServerEnd::Sse(link)) => link.queue.room().await,
            // One slow server of many holds up nobody's client.
            Some(ServerEnd::Gateway(_)) | None => {}
        }
    }

    /// Whether everything that asks for no answer has reached the server.
    pub fn server_was_told_all(&self) -> bool {
        match self.server.get() {
            Some(ServerEnd::Http(link)) => link.queue.has_told_all(),
            Some(ServerEnd::Sse(link)) => link.queue.has_told_all(),
            Some(ServerEnd::Child(_) | ServerEnd::Gateway(_)) | None => true,
        }
    }

    /// One side is gone for good, so the other has to go.
    pub fn end(&self) {
        if self.over.replace(true) {
            return;
        }
        let conversation = {
            let conversation = self.conversation.borrow();
            conversation.client_left();
            conversation.number()
        };
        self.hub.note(|pipeline| pipeline.client_is_gone(conversation));
        self.hub.give_back_soon();
        match &self.client {
            ClientEnd::Pipe(pipe) => pipe.close(),
            ClientEnd::Stream(outlet) => outlet.end(),
            ClientEnd::Session(session) => session.end(),
            ClientEnd::Leg(leg) => leg.ended(self),
        }
        if let Some(ServerEnd::Gateway(visitor)) = self.server.get() {
            visitor.leave();
        }
        self.ended.notify_waiters();
    }

    pub fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Comes when either side is gone for good.
    pub async fn over(&self) {
        let ended = self.ended.notified();
        if !self.over.get() {
            ended.await;
        }
    }

    pub fn client_transport(&self) -> Transport {
        match &self.client {
            ClientEnd::Pipe(_) | ClientEnd::Leg(_) => Transport::Stdio,
            ClientEnd::Stream(_) => Transport::Sse,
            ClientEnd::Session(_) => Transport::StreamableHttp,
        }
    }
}

/// What leaves, with what is known of it.
fn looked_at(outgoing: &Outgoing) -> Cow<'_, Message> {
    match outgoing.message() {
        Some(message) => Cow::Borrowed(message),
        None => Cow::Owned(Message::new(outgoing.frame().bytes.clone())),
    }
}
