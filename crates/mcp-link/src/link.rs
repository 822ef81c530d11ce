//! A link joins the two sides of a conversation. Every message passes the pipeline here, in either direction, and goes
//! to the other side.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use bytes::Bytes;
use mcp_engine::entrance::Principal;
use mcp_engine::pipeline::{Injection, is_noise};
use mcp_engine::{Conversation, Lane, Outbox, Pipeline, Release, Side};
use mcp_wire::reply::Refusal;
use mcp_wire::{Cut, Id, Message};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::side::{ClientSide, Passed, ServerSide};
use crate::{PASSED_TOGETHER, Runtime};

pub struct Link {
    me: Weak<Self>,
    pub runtime: Rc<Runtime>,
    pub conversation: Rc<RefCell<Conversation>>,
    pub client: Rc<dyn ClientSide>,
    server: OnceCell<Rc<dyn ServerSide>>,
    /// Whose it is, once that is known.
    owner: OnceCell<Rc<Principal>>,
    over: Cell<bool>,
    ended: Notify,
    /// For large answers that are read whole.
    large: Semaphore,
}

/// A byte order mark, which some readers skip.
const BOM: &[u8] = b"\xef\xbb\xbf";
/// Bytes that wait for an HTTP client before its server is no longer read.
pub const CLIENT_WAITING_MAX: usize = 4 * 1024 * 1024;
/// Large answers of one server read whole at a time; the others wait on their connections.
const LARGE_TOGETHER: usize = 2;

impl Link {
    pub fn new(runtime: &Rc<Runtime>, conversation: Conversation, client: Rc<dyn ClientSide>) -> Rc<Self> {
        let (server, owner) = (OnceCell::new(), OnceCell::new());
        let (over, ended, large) = (Cell::new(false), Notify::new(), Semaphore::new(LARGE_TOGETHER));
        let (runtime, conversation) = (Rc::clone(runtime), Rc::new(RefCell::new(conversation)));
        Rc::new_cyclic(|me| Self { me: me.clone(), runtime, conversation, client, server, owner, over, ended, large })
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

    pub fn connect(&self, server: Rc<dyn ServerSide>) {
        // Set once, right after the two were made for each other.
        let _ = self.server.set(server);
    }

    pub fn server(&self) -> Option<&dyn ServerSide> {
        self.server.get().map(|server| &**server)
    }

    /// Passes what one read of the client's pipe brought.
    pub fn from_client_cuts(&self, cuts: &mut Vec<Cut>) {
        if let Some(server) = self.server() {
            server.cleanse(cuts);
        }
        self.pass_cuts(Side::Client, cuts);
    }

    /// Passes a message of a client that sends each by itself.
    pub fn from_client(&self, lane: Lane<'_>, message: impl Into<Message>) {
        self.pass(Side::Client, lane, message.into());
    }

    /// Passes what one read of a server's pipe brought.
    pub fn from_server_cuts(&self, cuts: &mut Vec<Cut>) {
        match self.client.exchanges() {
            Some(exchanges) => exchanges.pass_cuts(self, cuts),
            None => self.pass_cuts(Side::Server, cuts),
        }
    }

    /// Passes what one read of a pipe brought, a few messages at a time.
    fn pass_cuts(&self, from: Side, cuts: &mut Vec<Cut>) {
        // What is written before it leaves is written all at once.
        let together = if self.runtime.records_first { usize::MAX } else { PASSED_TOGETHER };
        let mut cuts = cuts.drain(..);
        while cuts.len() > 0 {
            let few = cuts.by_ref().take(together);
            let out = {
                let conversation = &mut self.conversation.borrow_mut();
                self.runtime.pass(|pipeline, out| pipeline.pass(conversation, from, few, out)).1
            };
            self.dispatch(&out);
        }
    }

    fn pass(&self, from: Side, lane: Lane<'_>, message: Message) {
        let out = {
            let conversation = &mut self.conversation.borrow_mut();
            self.runtime.pass(|pipeline, out| pipeline.pass_one(conversation, from, lane, message, out)).1
        };
        self.dispatch(&out);
    }

    /// Passes a message of a server that came with the answer to `about`. Data of an event that cannot be a message
    /// stays here, as such a line does.
    pub fn from_server(&self, lane: Lane<'_>, about: Option<&Id>, message: Bytes) {
        if is_noise(message.strip_prefix(BOM).unwrap_or(&message)) {
            let conversation = &mut self.conversation.borrow_mut();
            return self.runtime.note(|pipeline| pipeline.pass_noise(conversation, lane, message));
        }
        if let Some(exchanges) = self.client.exchanges() {
            let lane = Lane { transport: lane.transport, event_id: lane.event_id, can_ask: false, ..Lane::PIPE };
            return exchanges.pass(self, lane, None, message.into());
        }
        match self.client.upstream() {
            Some(upstream) => {
                let mut message = Some(message);
                upstream.take_about(about, &mut || {
                    if let Some(message) = message.take() {
                        self.pass(Side::Server, lane, message.into());
                    }
                });
            }
            None => self.pass(Side::Server, lane, message.into()),
        }
    }

    /// Passes a message of the gateway that concerns the request `about` of the client.
    pub fn from_gateway(&self, lane: Lane<'_>, about: Option<&Id>, message: impl Into<Message>) {
        match self.client.exchanges() {
            Some(exchanges) => exchanges.pass(self, lane, about, message.into()),
            None => self.pass(Side::Server, lane, message.into()),
        }
    }

    /// An event of a server was too large to hold.
    pub fn from_server_too_large(&self, found: (u64, &[u8], &[u8])) {
        self.answer_with(|pipeline, conversation, out| {
            pipeline.refuse_too_large(conversation, Side::Server, found, out)
        });
    }

    /// Does `then` when the parked message `sequence` is free. If this conversation is over by then, it
    /// has none to go on with.
    pub fn when_settled(&self, sequence: u64, then: impl FnOnce(Option<&Self>, Release) + 'static) {
        let me = self.me.clone();
        self.runtime.when_released(sequence, move |release| {
            let link = me.upgrade().filter(|link| !link.is_over());
            then(link.as_deref(), release);
        });
    }

    /// The same, done only if this conversation still lasts.
    pub fn when_released(&self, sequence: u64, then: impl FnOnce(&Self, Release) + 'static) {
        self.when_settled(sequence, move |link, release| {
            if let Some(link) = link {
                then(link, release);
            }
        });
    }

    /// Sends what is left of a message that was parked.
    fn released(&self, release: Release) {
        self.conversation.borrow_mut().settle(&release);
        if let (Some(came), Some(server)) = (&release.raw_headers, self.server()) {
            server.keep_headers(release.onward.as_ref().map(|outgoing| outgoing.frame().bytes), came);
        }
        let (onward, back) = (release.onward, release.back);
        let (to_server, to_client) = match release.from {
            Side::Client => (onward, back),
            Side::Server => (back, onward),
        };
        if let Some(unasks) = &release.unasks {
            self.client.deliver(Passed::unrecorded(unasks.frame()));
        }
        if let Some(outgoing) = &to_server {
            self.send_passed(Passed::of(outgoing));
        }
        if let Some(outgoing) = &to_client {
            self.client.deliver(Passed::of(outgoing));
        }
    }

    /// The server is gone: nothing more is held for it, and what it said goes on.
    pub fn server_is_gone(&self) {
        let conversation = self.conversation.borrow().number();
        self.runtime.note(|pipeline| pipeline.decisions().server_is_gone(conversation));
        self.runtime.give_back();
    }

    /// The client sends nothing more, and answers nothing that it was asked.
    pub fn client_is_silent(&self) {
        let conversation = self.conversation.borrow().number();
        self.runtime.note(|pipeline| pipeline.decisions().client_is_silent(conversation));
        self.runtime.give_back();
    }

    /// Whether something that the client sent is parked.
    pub fn holds_from_client(&self) -> bool {
        let conversation = self.conversation.borrow().number();
        self.runtime.look(|pipeline| pipeline.holds.holds_from(conversation, Side::Client))
    }

    /// Calls of the client that have no answer yet.
    pub fn open_calls(&self) -> usize {
        self.conversation.borrow().open_calls(Side::Client)
    }

    /// Hands everything to where it goes.
    fn dispatch(&self, out: &Outbox) {
        for parked in &out.parked {
            self.when_released(parked.sequence, Self::released);
        }
        for outgoing in &out.to_server {
            self.send_passed(Passed::of(outgoing));
        }
        for outgoing in &out.to_client {
            self.client.deliver(Passed::of(outgoing));
        }
    }

    fn send_passed(&self, passed: Passed<'_>) {
        if let Some(server) = self.server() {
            server.take(passed);
        }
    }

    /// Sends the server a message that was passed as `sequence`.
    pub fn send(&self, message: &Message, sequence: u64) {
        self.send_passed(Passed::composed(message, sequence));
    }

    /// Sends the server something that no client sent.
    pub fn inject(&self, injection: Injection) {
        let out = {
            let conversation = &mut self.conversation.borrow_mut();
            self.runtime.pass(|pipeline, out| pipeline.pass_injected(conversation, Lane::PIPE, injection, out)).1
        };
        self.dispatch(&out);
    }

    /// Tells the server something in the client's place.
    pub fn speak_for_client(&self, message: Bytes) {
        let out = {
            let conversation = self.conversation.borrow();
            self.runtime.pass(|pipeline, out| pipeline.speak_for_client(&conversation, Lane::PIPE, message, out)).1
        };
        self.dispatch(&out);
    }

    /// Takes note of what is said to the server once more, in an exchange of our own. The sequence by
    /// which its answer is known comes back, or nothing if it must not leave.
    pub fn repeat_for_client(&self, lane: Lane<'_>, message: &Message) -> Option<u64> {
        let (conversation, bytes) = (self.conversation.borrow(), message.bytes().clone());
        let (sequence, out) =
            self.runtime.pass(|pipeline, out| pipeline.speak_for_client(&conversation, lane, bytes, out));
        (!out.to_server.is_empty()).then_some(sequence)
    }

    /// Takes note of the server's answer to that, which is not for the client.
    pub fn keep_from_client(&self, lane: Lane<'_>, answer: Bytes) {
        let conversation = &mut self.conversation.borrow_mut();
        self.runtime.pass(|pipeline, out| pipeline.pass_one(conversation, Side::Server, lane, answer, out));
        self.runtime.note(|pipeline| {
            pipeline.journal.note(conversation, Side::Server, "the answer before this was not passed on")
        });
    }

    /// Answers every call the client still waits on.
    pub fn answer_open_calls(&self, refusal: &Refusal) {
        self.answer_with(|pipeline, conversation, out| {
            pipeline.answer_pending(conversation, Side::Client, refusal, out)
        });
    }

    /// The same, save for those under `kept`.
    pub fn answer_open_calls_but(&self, kept: &[Id], refusal: &Refusal) {
        self.answer_with(|pipeline, conversation, out| {
            pipeline.answer_pending_but(conversation, Side::Client, kept, refusal, out)
        });
    }

    /// Answers one call the client still waits on.
    pub fn answer_call(&self, id: &Id, refusal: &Refusal) {
        self.answer_with(|pipeline, conversation, out| {
            pipeline.answer_one(conversation, Side::Client, id, refusal, out)
        });
    }

    fn answer_with(&self, answer: impl Fn(&mut Pipeline, &mut Conversation, &mut Outbox)) {
        let mut out = None;
        let mut pass = |conversation: &mut Conversation| {
            out = Some(self.runtime.pass(|pipeline, out| answer(pipeline, conversation, out)).1);
        };
        {
            let conversation = &mut self.conversation.borrow_mut();
            match self.client.exchanges() {
                Some(exchanges) => exchanges.lend_calls(conversation, &mut pass),
                None => pass(conversation),
            }
        }
        if let Some(out) = out {
            self.dispatch(&out);
        }
    }

    pub fn note(&self, from: Side, text: &str) {
        self.runtime.note(|pipeline| pipeline.journal.note(&self.conversation.borrow(), from, text));
    }

    /// Whether more waits for the client than it should. Where nobody is held up by that, what it can do without is
    /// left out.
    pub fn client_is_behind(&self) -> bool {
        self.client.unread_bytes() > CLIENT_WAITING_MAX
    }

    /// A place for a large answer that is about to be read whole.
    pub async fn large_answer(&self) -> Option<SemaphorePermit<'_>> {
        self.large.acquire().await.ok()
    }

    /// Waits until the client has taken enough of what is there for it.
    pub async fn client_room(&self) {
        if let Some(wait) = self.client.room() {
            wait.await;
        }
    }

    /// Waits until the server has taken enough of what is there for it.
    pub async fn server_room(&self) {
        if let Some(wait) = self.server().and_then(ServerSide::room) {
            wait.await;
        }
    }

    /// Whether everything that asks for no answer has reached the server.
    pub fn server_was_told_all(&self) -> bool {
        self.server().is_none_or(ServerSide::has_told_all)
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
        self.runtime.note(|pipeline| pipeline.client_is_gone(conversation));
        self.runtime.give_back_soon();
        self.client.end(self);
        if let Some(server) = self.server() {
            server.end();
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
}
