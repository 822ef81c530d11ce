//! One connection to a server, and what is under way on it: calls of clients and of our own, each under
//! an id that we gave it.

pub(crate) mod calls;
mod claims;
mod side;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use crate::router::era::{self, ClientFacts, Crossed};
use crate::router::rewrite;
use crate::router::{ListKind, Namespace};
use bytes::Bytes;
use mcp_engine::{Lane, Side};
use mcp_proxy_tool::detect::ProxyTool;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::splice::{splice_all, spliced};
use mcp_wire::{Id, Kind, Message, Span, strict};
use smallvec::SmallVec;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::catalog::listed::{Listed, ListsRead};
use crate::client::GatewayClient;
use crate::lifecycle::health::{Failure, Health, HeldBack};
use crate::lifecycle::{Lost, Server};
use crate::proxy_tool::unwrapping;
use crate::subscriptions::Subscriptions;
use crate::upstream::calls::{Caller, Calls, ClientCall, InFlight, Method, OwnId};
use crate::upstream::claims::Claims;
use mcp_link::Link;

pub(crate) struct UpstreamConnection {
    me: Weak<Self>,
    pub server: Rc<Server>,
    pub key: ConnectionKey,
    /// Of the client that it was opened for.
    pub facts: Rc<ClientFacts>,
    pub(crate) link: RefCell<Option<Rc<Link>>>,
    pub(crate) phase: Cell<Phase>,
    /// Told when it is ready, or over.
    pub(crate) changed: Notify,
    /// What the server speaks on it.
    pub(crate) era: Cell<Era>,
    /// What the server said of itself: its answer to `initialize` or `server/discover`.
    pub(crate) introduction: RefCell<Option<Bytes>>,
    /// The tool that everything of the server is used through, if it is looked behind.
    pub(crate) unwraps: RefCell<Option<Rc<ProxyTool>>>,
    pub(crate) calls: RefCell<Calls>,
    waiting: RefCell<VecDeque<Job>>,
    pub(crate) clients: RefCell<Vec<Weak<GatewayClient>>>,
    pub(crate) lists: [Listed; 4],
    /// What the connection listed that it takes new work over from, as far as it was read.
    pub(crate) inherited: RefCell<Option<ListsRead>>,
    pub(crate) subscriptions: Subscriptions,
    /// Since when it is ready.
    pub(crate) ready: Cell<Option<Instant>>,
    /// Whether a call of a client was answered on it.
    pub(crate) has_served: Cell<bool>,
    pub(crate) used: Cell<Instant>,
    pub(crate) health: Health,
    pub(crate) held_back: HeldBack,
    /// When overdue calls were looked for last.
    looked: Cell<Instant>,
    /// How a process ended that had not introduced itself.
    pub(crate) last_status: RefCell<Option<String>>,
    /// Why it is over.
    pub(crate) lost: OnceCell<Lost>,
    /// The call that what is heard just now came with.
    about: Cell<Option<i64>>,
    pub(crate) claims: Claims,
    /// The connection that takes new work in its place.
    pub(crate) successor: OnceCell<Weak<Self>>,
}

/// Interval between two looks whether a slow client is still the only one.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Clients with the same key share a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionKey {
    pub era: Era,
    /// A client that shares with nobody.
    pub client: Option<u32>,
    /// What is declared to a server that is told once.
    pub declared: Option<Box<[u8]>>,
    /// Tells connections apart that drain, which no client finds by its key; 0 for one that takes new work.
    pub retired: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening,
    Ready,
    Over,
}

/// A call of a client that waits for its way to a server.
struct Job {
    client: Rc<GatewayClient>,
    message: Message,
    call: Outgoing,
}

/// What is to be known of a call of a client beside what it says.
pub(crate) struct Outgoing {
    pub method: Method,
    /// What has to change about it besides its id.
    pub edits: Vec<(Span, Bytes)>,
    pub era: Era,
    pub parent: u64,
    pub place: InFlight,
}

impl UpstreamConnection {
    pub(crate) fn new(server: &Rc<Server>, key: ConnectionKey, facts: Rc<ClientFacts>) -> Rc<Self> {
        let now = Instant::now();
        Rc::new_cyclic(|me| Self {
            me: me.clone(),
            server: Rc::clone(server),
            era: Cell::new(key.era),
            key,
            facts,
            link: RefCell::default(),
            phase: Cell::new(Phase::Opening),
            changed: Notify::new(),
            introduction: RefCell::default(),
            unwraps: RefCell::default(),
            calls: RefCell::default(),
            waiting: RefCell::default(),
            clients: RefCell::default(),
            lists: Default::default(),
            inherited: RefCell::default(),
            subscriptions: Subscriptions::default(),
            ready: Cell::new(None),
            has_served: Cell::new(false),
            used: Cell::new(now),
            health: Health::new(now),
            held_back: HeldBack::default(),
            looked: Cell::new(now),
            last_status: RefCell::default(),
            lost: OnceCell::new(),
            about: Cell::new(None),
            claims: Claims::default(),
            successor: OnceCell::new(),
        })
    }

    pub(crate) fn rc(&self) -> Rc<Self> {
        self.me.upgrade().expect("it is in use")
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.server.namespace
    }

    pub(crate) fn link(&self) -> Option<Rc<Link>> {
        self.link.borrow().clone()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.phase.get() == Phase::Over
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase.get() == Phase::Ready
    }

    /// Whether it may be ready soon.
    pub(crate) fn is_worth_waiting_for(&self) -> bool {
        self.phase.get() == Phase::Opening && !self.server.has_failed()
    }

    /// Waits until it is ready; false if it is over instead.
    pub(crate) async fn opened(&self) -> bool {
        loop {
            let changed = self.changed.notified();
            match self.phase.get() {
                Phase::Opening => changed.await,
                phase => return phase == Phase::Ready,
            }
        }
    }

    /// Why calls on it are refused.
    pub(crate) fn refusal(&self) -> Refusal {
        self.lost.get().map_or_else(|| self.server.unavailable(), |lost| lost.refusal(&self.server))
    }

    /// Makes a client one of those that it is for.
    pub(crate) fn attach(&self, client: &Rc<GatewayClient>) {
        let mut clients = self.clients.borrow_mut();
        let weak = Rc::downgrade(client);
        if !clients.iter().any(|other| other.ptr_eq(&weak)) {
            clients.retain(|other| other.strong_count() > 0);
            clients.push(weak);
        }
    }

    /// The clients that it is for.
    pub(crate) fn attached(&self) -> Vec<Rc<GatewayClient>> {
        self.clients.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether it is for this client too.
    pub(crate) fn is_for(&self, client: &GatewayClient) -> bool {
        self.clients.borrow().iter().any(|other| std::ptr::eq(other.as_ptr(), client))
    }

    /// A client is gone: nothing of it is wanted any more.
    pub(crate) fn detach(&self, client: &GatewayClient) {
        self.clients.borrow_mut().retain(|other| !std::ptr::eq(other.as_ptr(), client) && other.strong_count() > 0);
        self.waiting.borrow_mut().retain(|job| !std::ptr::eq(&*job.client, client));
        let is_its = |call: &ClientCall| std::ptr::eq(call.client.as_ptr(), client);
        let open: Vec<i64> = self.calls.borrow().clients().filter(|(_, call)| is_its(call)).map(|(id, _)| id).collect();
        for id in open {
            drop(self.calls.borrow_mut().take(id));
            self.claims.add(id, client.number);
            self.cancel(id, "the client left");
        }
        self.unsubscribe_all(client.number);
        if self.key.client.is_some() {
            self.stop(Lost::Unused);
        } else {
            self.pump();
        }
    }

    /// Sends a call as soon as it may go, or says at once that it may not.
    pub(crate) fn submit(&self, client: &GatewayClient, message: &Message, call: Outgoing) {
        match self.phase.get() {
            Phase::Over => client.refuse(message, &self.refusal()),
            Phase::Ready if self.has_room() && !self.is_to_wait(client) => self.send(client, message, call),
            Phase::Ready | Phase::Opening => {
                if self.waiting.borrow().len() < self.server.settings.queue {
                    let job = Job { client: client.rc(), message: message.clone(), call };
                    self.waiting.borrow_mut().push_back(job);
                } else {
                    client.refuse(message, &self.server.overloaded());
                }
            }
        }
    }

    /// Sends what waits, as far as it may go.
    pub(crate) fn pump(&self) {
        while self.is_ready() && !self.waiting.borrow().is_empty() {
            let is_retired = self.is_retired();
            let is_spent = || self.waiting.borrow().iter().any(|job| self.is_spent_for(&job.client));
            if !is_retired && is_spent() && self.server.replace(self) {
                // Which has sent everything elsewhere.
                return;
            }
            let has_room = self.has_room();
            let may_go = |job: &Job| is_retired || has_room && !self.is_to_wait(&job.client);
            let next = self.waiting.borrow().iter().position(may_go);
            let job = next.and_then(|at| self.waiting.borrow_mut().remove(at));
            let Some(Job { client, message, call }) = job else { return };
            if is_retired {
                client.submit(self.server.index, &message, call);
            } else {
                self.send(&client, &message, call);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.calls.borrow().of_clients() < self.server.settings.in_flight
    }

    fn send(&self, client: &GatewayClient, message: &Message, call: Outgoing) {
        let Some(link) = self.link() else { return client.refuse(message, &self.refusal()) };
        let Outgoing { method, edits, era, parent, place } = call;
        let Some(id_span) = message.glance().id else { return };
        let own_id = OwnId::new(message.slice(id_span));
        let id = self.calls.borrow_mut().next_id();
        let token_span = message.peek().progress_token;
        let token = token_span.map(|span| OwnId::new(message.slice(span)));
        let request = with_integer(message, [Some(id_span), token_span], id, &edits);
        let (mut request, through) = self.wrapped(method.as_str(), request);
        match (era, self.era.get()) {
            (Era::Legacy, Era::Modern) => request = era::to_modern(request.bytes(), &client.facts()).into(),
            (Era::Modern, Era::Legacy) => request = era::to_legacy(request.bytes()).into(),
            _ => {}
        }
        let settings = &self.server.settings;
        let call = ClientCall { client: client.weak(), id: own_id, token, method, through, era, _place: place };
        let limits = (settings.response_timeout, settings.response_cap);
        self.calls.borrow_mut().insert(id, Caller::Client(call), link.runtime.recent(), limits);
        self.server.stats.asked();
        client.on_behalf(parent, |lane| link.from_client(lane, request));
    }

    /// Tells the server something for a client that wants no answer.
    pub(crate) fn tell_for(&self, client: &GatewayClient, parent: u64, message: Bytes) {
        if self.is_ready() {
            self.reply_for(client, parent, message);
        }
    }

    /// Answers the server for a client. A server may ask before it introduces itself, and wait for the answer.
    pub(crate) fn reply_for(&self, client: &GatewayClient, parent: u64, message: Bytes) {
        if let Some(link) = self.link() {
            client.on_behalf(parent, |lane| link.from_client(lane, message));
        }
    }

    /// Tells the server something of our own.
    pub(crate) fn tell(&self, message: Bytes) {
        if let Some(link) = self.link() {
            link.from_client(OURS, message);
        }
    }

    /// Asks the server something ourselves. Nothing comes back if it is gone first.
    pub(crate) fn ask(&self, method: &str, params: Option<&str>) -> oneshot::Receiver<Bytes> {
        self.ask_as(method, params, self.era.get()).1
    }

    /// The same as a revision of `era` has it, with the id that it has.
    pub(crate) fn ask_as(&self, method: &str, params: Option<&str>, era: Era) -> (i64, oneshot::Receiver<Bytes>) {
        let (sender, receiver) = oneshot::channel();
        let id = self.calls.borrow_mut().next_id();
        if self.is_over() {
            // Nobody is there to answer.
            return (id, receiver);
        }
        let params = params.map(|params| format!(",\"params\":{params}")).unwrap_or_default();
        let mut message: Bytes = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"{params}}}").into();
        if era == Era::Modern {
            message = era::to_modern(&message, &self.facts);
        }
        let settings = &self.server.settings;
        let cap = settings.response_timeout.max(settings.startup_timeout);
        self.calls.borrow_mut().insert(id, Caller::Own(sender), Instant::now(), (cap, cap));
        self.tell(message);
        (id, receiver)
    }

    /// A request of ours that lasts for as long as the connection.
    pub(crate) fn keep_open(&self, id: i64) {
        self.calls.borrow_mut().keep_open(id);
    }

    /// Takes back a call that the server knows by `id`.
    pub(crate) fn cancel(&self, id: i64, reason: &str) {
        self.tell(reply::cancellation_because(&Id::Integer(id), reason));
    }

    /// A client takes back one of its calls. False if it is none of those here.
    pub(crate) fn cancel_for(&self, client: &GatewayClient, id: &Id, message: &Message, parent: u64) -> bool {
        let is_it = |job: &Job| std::ptr::eq(&*job.client, client) && job.message.id().as_ref() == Some(id);
        let at = self.waiting.borrow().iter().position(is_it);
        if let Some(at) = at {
            drop(self.waiting.borrow_mut().remove(at));
            return true;
        }
        let is_its = |call: &ClientCall| std::ptr::eq(call.client.as_ptr(), client) && call.id.id() == *id;
        let open = self.calls.borrow().clients().find(|(_, call)| is_its(call)).map(|(ours, _)| ours);
        let Some(ours) = open else { return false };
        drop(self.calls.borrow_mut().take(ours));
        self.claims.add(ours, client.number);
        if let Some(span) = message.peek().request_id {
            self.tell_for(client, parent, splice_all(message.bytes(), &mut [(span, ours.to_string())]));
        }
        self.withdraw_questions(client);
        self.pump();
        true
    }

    /// The call that what is heard just now belongs to: the one it came with, or the only one there is.
    pub(crate) fn call_in_question(&self) -> Option<(Rc<GatewayClient>, Id)> {
        let calls = self.calls.borrow();
        let whose = |call: &ClientCall| Some((call.client.upgrade()?, call.id.id()));
        if let Some(id) = self.about.get() {
            return match calls.get(id).map(|call| &call.caller) {
                Some(Caller::Client(call)) => whose(call),
                // It belongs to a call that is over.
                _ => None,
            };
        }
        let mut clients = calls.clients();
        let (_, only) = clients.next()?;
        let found = clients.next().is_none().then(|| whose(only)).flatten();
        found.filter(|(client, _)| !self.claims.are_another(client.number))
    }

    /// Takes what the server says, once it has passed.
    pub(crate) fn hear(&self, message: &Message, sequence: u64) {
        let kind = message.glance().kind;
        if kind != Kind::Error {
            self.health.heard();
        }
        match kind {
            Kind::Response | Kind::Error => self.hear_answer(message, sequence),
            Kind::Notification => self.hear_notification(message, sequence),
            Kind::Request => self.hear_question(message, sequence),
            Kind::Batch => {
                let items: Vec<Span> = mcp_wire::scan::batch_items(message.bytes()).collect();
                for item in items {
                    let item = Message::new(message.bytes().slice(item.range()));
                    match (item.glance().kind, item.peek().is_opaque()) {
                        (Kind::Batch, _) => {}
                        (Kind::Request | Kind::Notification, true) => {
                            self.note(
                                "an item of the batch before this can be read in several ways, and was not passed on",
                            );
                        }
                        _ => self.hear(&item, sequence),
                    }
                }
            }
            Kind::OtherJson if message.peek().method.is_none() && self.awaits(message) => {
                self.hear_answer(message, sequence);
            }
            Kind::OtherJson | Kind::NotJson => self.note("the message before this is for nobody"),
        }
    }

    fn hear_answer(&self, message: &Message, sequence: u64) {
        let found = self.answered_by(message);
        let call = found.and_then(|id| self.calls.borrow_mut().take(id));
        let now = self.link().map_or_else(Instant::now, |link| link.runtime.recent());
        self.used.set(now);
        let is_error = message.glance().kind == Kind::Error;
        let failure = if is_error { self.health.failure_in(message) } else { None };
        let began = call.as_ref().filter(|call| matches!(call.caller, Caller::Client(_))).map(|call| call.began);
        match failure {
            Some(failure) => self.health.failed(failure, began, now),
            None => self.health.worked(began.is_some()),
        }
        let Some(call) = call else {
            self.note("the answer before this is to no open call, and was not passed on");
            if let Some(Id::Integer(id)) = message.id() {
                self.claims.settle(id);
                self.pump();
            }
            return;
        };
        let named = found.filter(|_| message.is_error_without_id()).map(|id| self.with_id_of(id, message));
        let message = named.as_ref().unwrap_or(message);
        let garbled = self.refusal_of_garbled(message);
        let message = garbled.as_ref().unwrap_or(message);
        match call.caller {
            Caller::Own(waits) => drop(waits.send(message.bytes().clone())),
            Caller::Client(asked) => {
                self.has_served.set(self.has_served.get() || !is_error);
                self.server.stats.answered(now.saturating_duration_since(call.began), is_error);
                self.answer(asked, message, sequence);
                self.pump();
            }
        }
    }

    /// Our id of the call that an answer is to. An error to a request whose id the server could not read is to the only
    /// call that it may be working on.
    fn answered_by(&self, answer: &Message) -> Option<i64> {
        match answer.id() {
            Some(Id::Integer(id)) => Some(id),
            _ if answer.is_error_without_id() && self.claims.is_empty() => self.calls.borrow().only(),
            _ => None,
        }
    }

    /// An error to no id as the answer to call `id`.
    fn with_id_of(&self, id: i64, error: &Message) -> Message {
        let id = Id::Integer(id);
        if let Some(link) = self.link() {
            link.conversation.borrow_mut().forget(&id);
        }
        error.clone().with_id(&id)
    }

    /// Whether an open call has the id of a message.
    fn awaits(&self, message: &Message) -> bool {
        matches!(message.id(), Some(Id::Integer(id)) if self.calls.borrow().get(id).is_some())
    }

    /// The error that takes the place of an answer that is not valid: clients would not read it, and wait.
    fn refusal_of_garbled(&self, answer: &Message) -> Option<Message> {
        let unfit = strict::check_answer(answer).err()?;
        let refusal = Refusal::UpstreamGarbled { server: Some(self.server.id().into()), what: Some(unfit.to_string()) };
        self.note(&format!("the answer before this was not passed on: {unfit}"));
        Some(reply::error(&answer.id()?, &refusal).into())
    }

    /// Gives a client its answer, in its own words.
    fn answer(&self, call: ClientCall, message: &Message, sequence: u64) {
        let Some(client) = call.client.upgrade() else { return };
        let method = call.method.as_str();
        let unwrapped =
            call.through.map(|kind| Message::new(unwrapping::unwrapped(kind, message.bytes().clone(), self.era.get())));
        let message = unwrapped.as_ref().unwrap_or(message);
        let Some(span) = message.glance().id else { return };
        let edits = rewrite::answer(self.namespace(), method, message);
        let answer = match &call.id {
            OwnId::Integer(id) => with_integer(message, [Some(span)], *id, &edits),
            OwnId::Spelled(id) => with_text(message, [Some(span)], id, &edits),
        };
        let answer = match (self.era.get(), call.era) {
            (Era::Modern, Era::Legacy) => match era::answer_to_legacy(method, answer.into_bytes()) {
                Crossed::Answer(bytes) => bytes.into(),
                Crossed::Asks | Crossed::Unknown => {
                    let what = "the server asks something of the caller in a way that its revision does not know";
                    let refusal = Refusal::NotForThisRevision { what: what.into() };
                    reply::error(&call.id.id(), &refusal).into()
                }
            },
            (Era::Legacy, Era::Modern) => {
                let introduction = self.introduction.borrow();
                let server = introduction.as_ref().and_then(|it| server_info(it));
                era::answer_to_modern(method, answer.into_bytes(), server).into()
            }
            _ => answer,
        };
        self.withdraw_questions_about(&client, &call.id.id());
        // Its place is free before the client hears of it, who may have more to send.
        drop(call);
        client.hear(sequence, None, answer);
    }

    pub(crate) fn note(&self, text: &str) {
        if let Some(link) = self.link() {
            link.note(Side::Server, text);
        }
    }

    /// Gives up calls that took too long.
    pub(crate) fn give_up_overdue(&self, now: Instant) {
        let looked = self.looked.replace(now);
        if self.held_back.lasts() {
            // The answers may lie unread.
            self.calls.borrow_mut().put_off(looked, now);
        }
        // Nobody is to blame while a person decides.
        let is_held = self.link().is_some_and(|link| link.holds_from_client());
        let is_asked = |call: &ClientCall| call.client.upgrade().is_some_and(|client| client.is_asked_by(self));
        let waits = |call: &ClientCall| is_held || is_asked(call);
        let overdue = self.calls.borrow_mut().overdue(now, waits);
        self.claims.expire(now, self.claims_last());
        for (id, call) in overdue {
            let limit = call.limit(now);
            self.cancel(id, &format!("no answer came within {}", reply::within(limit.as_millis() as u64)));
            if let Caller::Client(asked) = call.caller {
                self.server.stats.answered(call.began.elapsed(), true);
                self.health.failed(Failure::from(self.server.timed_out(call.began.elapsed())), Some(call.began), now);
                if let Some(client) = asked.client.upgrade() {
                    self.claims.add(id, client.number);
                    self.withdraw_questions_about(&client, &asked.id.id());
                    client.answer_with(&asked.id.id(), &self.server.timed_out(limit));
                }
            }
        }
        if self.is_ready() && self.is_dead() {
            return self.stop(Lost::Silent);
        }
        self.pump();
    }

    /// Ends the connection, for a reason of ours.
    pub(crate) fn stop(&self, why: Lost) {
        let _ = self.lost.set(why);
        match self.link() {
            Some(link) => link.end(),
            None => self.is_lost(),
        }
    }

    /// It is over: whoever waits is told, and the server is started anew if it is still needed.
    pub(crate) fn is_lost(&self) {
        if self.phase.replace(Phase::Over) == Phase::Over {
            return;
        }
        let lost = self.lost.get_or_init(|| Lost::Died { status: "the connection ended".into() }).clone();
        let calls = self.calls.borrow_mut().drain();
        let waiting = self.waiting.take();
        self.server.lost(self, &lost);
        let refusal = lost.refusal(&self.server);
        for call in calls {
            if let Caller::Client(asked) = call.caller {
                self.server.stats.answered(call.began.elapsed(), true);
                if let Some(client) = asked.client.upgrade() {
                    client.answer_with(&asked.id.id(), &refusal);
                }
            }
        }
        for job in waiting {
            job.client.refuse(&job.message, &refusal);
        }
        for client in self.attached() {
            client.forget_questions_of(self);
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn open_calls(&self) -> usize {
        self.calls.borrow().of_clients() + self.waiting.borrow().len()
    }

    pub(crate) fn list(&self, kind: ListKind) -> &Listed {
        &self.lists[kind as usize]
    }
}

/// `message` with an integer in place of `spans`, and with `edits`.
fn with_integer(
    message: &Message,
    spans: impl IntoIterator<Item = Option<Span>>,
    integer: i64,
    edits: &[(Span, Bytes)],
) -> Message {
    with_text(message, spans, itoa::Buffer::new().format(integer).as_bytes(), edits)
}

/// The same with a text.
fn with_text(
    message: &Message,
    spans: impl IntoIterator<Item = Option<Span>>,
    text: &[u8],
    edits: &[(Span, Bytes)],
) -> Message {
    let mut all: SmallVec<[(Span, &[u8]); 4]> = spans.into_iter().flatten().map(|span| (span, text)).collect();
    all.extend(edits.iter().map(|(span, replacement)| (*span, &replacement[..])));
    spliced(message, &mut all)
}

/// Who the server of an introduction is.
fn server_info(introduction: &Bytes) -> Option<&[u8]> {
    let span = mcp_wire::scan::member_at(introduction, ["result", "serverInfo"])?;
    Some(&introduction[span.range()])
}

/// The way of what we say ourselves.
pub(crate) const OURS: Lane<'static> = Lane { can_ask: false, ..Lane::PIPE };
