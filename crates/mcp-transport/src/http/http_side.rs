//! A Streamable HTTP server as the server side of a link. Each message of the client is a POST of its own; a GET stream
//! brings the server's messages that answer no POST. This side keeps session, headers and order.

mod reader;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use mcp_engine::Side;
use mcp_link::queue::{Class, Place, Queue, asks, method_of};
use mcp_link::{Alive, Link, Passed, ServerSide, Waiting};
use mcp_store::Transport;
use mcp_wire::mirror::{self, ToolParams};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::{self, Era, Revision};
use mcp_wire::{Id, Message, scan};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::body::ToServer;
use super::exchange::Exchange;
use super::heads::is_media_type;
use super::state::HttpState;
use super::upstream::{ServerBody, Upstream, UpstreamError};
use reader::{Audience, Opening, Reader, Resume};

const SESSION: HeaderName = HeaderName::from_static(revision::SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(revision::VERSION_HEADER);
const METHOD: HeaderName = HeaderName::from_static(revision::METHOD_HEADER);
const NAME: HeaderName = HeaderName::from_static(revision::NAME_HEADER);
const LAST_EVENT: HeaderName = HeaderName::from_static(revision::LAST_EVENT_HEADER);

/// Time for a server to open a session again.
const OPEN_AGAIN_FOR: Duration = Duration::from_secs(30);
/// A session that was opened again this recently is known to its server: status 400 is then about the request.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// Time for a server to take the end of a session.
const GOODBYE_FOR: Duration = Duration::from_secs(2);

pub struct HttpSide {
    state: Rc<HttpState>,
    upstream: Rc<Upstream>,
    /// What the server calls this session, and the revision to name in each request.
    session: RefCell<Option<HeaderValue>>,
    version: RefCell<Option<HeaderValue>>,
    /// When the session was last opened again.
    reopened: Cell<Option<Instant>>,
    /// The client's own bytes, for a session that has to be opened again.
    initialize: RefCell<Option<Message>>,
    initialized: RefCell<Option<Message>>,
    queue: Rc<Queue>,
    calls: RefCell<HashMap<Id, AbortHandle, RandomState>>,
    listening: RefCell<Option<AbortHandle>>,
    tools: RefCell<ToolParams>,
    /// Requests that were edited, by their ids, as they came: their headers are to say what those say.
    as_they_came: RefCell<HashMap<Id, Message, RandomState>>,
    /// Whether the server was ever reached, and whether it ever was not.
    reached: Cell<bool>,
    missed: Cell<bool>,
}

/// How an exchange went, beyond what the client was told.
#[derive(PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The server did not take the message.
    Failed,
    /// The connection ended before the head of an answer.
    Broken,
    /// The server no longer knows this session.
    SessionLost(HeaderValue),
}

impl HttpSide {
    /// Gives `link` this side. `alive` is held until the server has heard that the session is over.
    pub fn start(link: &Rc<Link>, state: &Rc<HttpState>, upstream: Rc<Upstream>, alive: Alive) {
        let side = Rc::new(Self {
            state: Rc::clone(state),
            upstream,
            session: RefCell::default(),
            version: RefCell::default(),
            reopened: Cell::new(None),
            initialize: RefCell::default(),
            initialized: RefCell::default(),
            queue: Rc::default(),
            calls: RefCell::default(),
            listening: RefCell::default(),
            tools: RefCell::default(),
            as_they_came: RefCell::default(),
            reached: Cell::new(false),
            missed: Cell::new(false),
        });
        let sending = Rc::clone(&side);
        side.spawn(link, |link| async move {
            loop {
                let (message, place) = sending.queue.next().await;
                sending.send(&link, message, place);
            }
        });
        link.connect(Rc::<Self>::clone(&side));
        let link = Rc::clone(link);
        tokio::task::spawn_local(async move {
            link.over().await;
            side.say_goodbye(&link).await;
            drop(alive);
        });
    }

    fn send(self: &Rc<Self>, link: &Rc<Link>, message: Message, place: Place) {
        let cancelled = message.cancelled_id();
        if let Some(id) = &cancelled
            && self.speaks_modern()
        {
            // In the newer revisions nobody is told: the call itself is given up.
            return self.give_up(id);
        }
        let side = Rc::clone(self);
        if place.class() == Class::Told {
            self.spawn(link, |link| async move { side.tell(&link, message, cancelled, place).await });
            return;
        }
        let ids = asks(&message);
        let known = ids.clone();
        let task = self.spawn(link, |link| async move { side.call(&link, &message, &known, place).await });
        self.calls.borrow_mut().extend(ids.into_iter().map(|id| (id, task.clone())));
    }

    /// Does something for as long as the conversation lasts.
    fn spawn<F: Future<Output = ()> + 'static>(
        &self,
        link: &Rc<Link>,
        work: impl FnOnce(Rc<Link>) -> F,
    ) -> AbortHandle {
        // It is large, and would be moved several times on its way into the task.
        let work = Box::pin(work(Rc::clone(link)));
        let link = Rc::clone(link);
        let task = tokio::task::spawn_local(async move {
            tokio::select! {
                () = work => {}
                () = link.over() => {}
            }
        });
        task.abort_handle()
    }

    /// Sends what others must not overtake.
    async fn tell(self: &Rc<Self>, link: &Rc<Link>, message: Message, cancelled: Option<Id>, place: Place) {
        let method = method_of(&message);
        match method {
            b"\"initialize\"" => *self.initialize.borrow_mut() = Some(message.clone()),
            b"\"notifications/initialized\"" => *self.initialized.borrow_mut() = Some(message.clone()),
            _ => {}
        }
        self.call(link, &message, &asks(&message), place).await;
        if method == b"\"notifications/initialized\"" {
            self.listen(link);
        }
        if let Some(id) = cancelled {
            // Many servers never end the answer to a call that was cancelled.
            self.give_up(&id);
        }
    }

    fn give_up(&self, id: &Id) {
        if let Some(call) = self.calls.borrow_mut().remove(id) {
            call.abort();
        }
    }

    fn speaks_modern(&self) -> bool {
        self.initialize.borrow().is_none()
    }

    /// Sends one message and sees its answer through. Its place is given up when it is answered, but
    /// not before that of a call is over.
    async fn call(self: &Rc<Self>, link: &Rc<Link>, message: &Message, ids: &[Id], place: Place) {
        let is_call = place.class() == Class::Call;
        let (until_answered, until_over) = if is_call { (None, Some(place)) } else { (Some(place), None) };
        let audience = Audience::Client(RefCell::new(until_answered));
        let outcome = self.exchange(link, message, ids, &audience).await;
        drop(until_over);
        for id in ids {
            self.calls.borrow_mut().remove(id);
        }
        if let Outcome::SessionLost(session) = outcome {
            refuse(link, ids, &Refusal::SessionLost);
            // Rare, and large: a call is the smaller for it.
            Box::pin(self.open_again(link, session)).await;
        }
    }

    /// One POST.
    async fn exchange(self: &Rc<Self>, link: &Rc<Link>, message: &Message, ids: &[Id], audience: &Audience) -> Outcome {
        let era = Era::of_header(message_version(message).as_deref().map(str::as_bytes));
        let headers = self.headers(message, era);
        let session = headers.get(&SESSION).cloned();
        let exchange = Exchange::open(&self.state, Rc::clone(&link.conversation), Transport::StreamableHttp, era);
        if !audience.takes_note(link, &exchange, message) {
            return Outcome::Failed;
        }
        let body = ToServer::Whole(Some(message.bytes().clone()));
        let (parts, body) = match self.request(&exchange, Method::POST, headers, body).await {
            Ok(answer) => answer,
            Err(error) => {
                self.missed.set(true);
                exchange.ended("server not reached");
                let (why, refusal) = error.explain(&link.runtime);
                link.note(Side::Server, &why);
                refuse(link, ids, &refusal);
                return match error {
                    UpstreamError::Broken(_) => Outcome::Broken,
                    UpstreamError::Connect { .. } | UpstreamError::ConnectTimeout { .. } => Outcome::Failed,
                };
            }
        };
        self.reached.set(true);
        let method = method_of(message);
        if method == b"\"initialize\"" && parts.status.is_success() {
            *self.session.borrow_mut() = parts.headers.get(&SESSION).cloned();
        }
        if parts.status == StatusCode::NOT_FOUND
            && let Some(session) = session
        {
            exchange.ended("session lost");
            return Outcome::SessionLost(session);
        }
        let reader = Reader { side: self, link, exchange: &exchange, method, asked: ids, audience };
        if is_media_type(&parts.headers, "text/event-stream") && parts.status.is_success() {
            return Box::pin(reader.events(era, body)).await;
        }
        match parts.status {
            status if status.is_success() => {
                reader.whole(&parts, body).await;
                Outcome::Done
            }
            status => {
                let may_be_lost = session.as_ref().is_some_and(|session| self.may_have_lost(session));
                let is_about_session = Box::pin(reader.refused(&parts, body, may_be_lost)).await;
                match session.filter(|_| is_about_session && status == StatusCode::BAD_REQUEST) {
                    Some(session) => Outcome::SessionLost(session),
                    None => Outcome::Failed,
                }
            }
        }
    }

    /// Whether the server may have forgotten `session`. A tool may have sessions of its own, so the words of an error
    /// are not enough.
    fn may_have_lost(&self, session: &HeaderValue) -> bool {
        let is_known = self.reopened.get().is_some_and(|reopened| reopened.elapsed() < KNOWN_FOR);
        !is_known || self.session.borrow().as_ref() != Some(session)
    }

    /// Sends a request and waits for the head of its answer.
    async fn request(
        &self,
        exchange: &Exchange,
        method: Method,
        mut headers: HeaderMap,
        body: ToServer,
    ) -> Result<(Parts, ServerBody), UpstreamError> {
        let uri: Uri = self.upstream.target.endpoint(None);
        self.upstream.target.add_headers(&mut headers);
        exchange.request_head(&method, uri.path_and_query().map_or("/", |target| target.as_str()), &headers);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let (parts, body) = self.upstream.send(request).await?.await?;
        exchange.response_head(parts.status, &parts.headers);
        Ok((parts, body))
    }

    /// What a POST of `message` says of itself besides its body.
    fn headers(&self, message: &Message, era: Era) -> HeaderMap {
        let opens = method_of(message) == b"\"initialize\"";
        let mut headers =
            if era == Era::Legacy && !opens { self.session_headers() } else { HeaderMap::with_capacity(8) };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if era == Era::Modern {
            let mut edited = self.as_they_came.borrow_mut();
            let came = if edited.is_empty() { None } else { message.id().and_then(|id| edited.remove(&id)) };
            let message = came.as_ref().unwrap_or(message);
            let mirrored = mirror::derive(message);
            let version = message_version(message);
            for (name, value) in [(VERSION, version), (METHOD, mirrored.method), (NAME, mirrored.name)] {
                if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                    headers.insert(name, value);
                }
            }
            for (name, value) in self.tools.borrow().headers(message) {
                if let (Ok(name), Ok(value)) = (name.to_ascii_lowercase().parse(), HeaderValue::from_str(&value)) {
                    headers.insert::<HeaderName>(name, value);
                }
            }
        }
        headers
    }

    fn session_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [(SESSION, &self.session), (VERSION, &self.version)] {
            if let Some(value) = &*value.borrow() {
                headers.insert(name, value.clone());
            }
        }
        headers
    }

    /// Notes what the server's answers say that later requests depend on. What comes back takes the
    /// answer's place.
    pub fn learn(&self, method: &[u8], era: Era, answer: &Bytes) -> Option<Bytes> {
        match method {
            b"\"initialize\"" => {
                let span = scan::member_at(answer, ["result", "protocolVersion"])?;
                let version = scan::decode_string(&answer[span.range()])?;
                let sends = Revision::parse(version.as_bytes()).is_none_or(Revision::sends_version_header);
                *self.version.borrow_mut() = HeaderValue::from_str(&version).ok().filter(|_| sends);
                None
            }
            // Before that there were no such headers, and a list says nothing that concerns us.
            b"\"tools/list\"" if era == Era::Modern => {
                let mut tools = self.tools.borrow_mut();
                tools.learn(answer);
                tools.without_illegal_tools(answer).map(Bytes::from)
            }
            _ => None,
        }
    }

    /// The server forgot the session: whoever waits for it is told, and the client's own opening is
    /// sent again. What has not left yet waits for the new one.
    async fn open_again(self: &Rc<Self>, link: &Rc<Link>, lost: HeaderValue) {
        if *self.session.borrow() != Some(lost.clone()) {
            // Somebody else saw it first.
            return;
        }
        let _others_wait = self.queue.hold(Class::Told);
        link.note(Side::Server, "the server no longer knows this session; it is opened again");
        self.session.take();
        let version = self.version.take();
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
        let open: Vec<(Id, AbortHandle)> = self.calls.borrow_mut().drain().collect();
        for (id, call) in open {
            call.abort();
            refuse(link, &[id], &Refusal::SessionLost);
        }
        if timeout(OPEN_AGAIN_FOR, self.send_opening(link)).await.is_ok_and(|is_open| is_open) {
            self.reopened.set(Some(Instant::now()));
            if let Some(upstream) = link.client.upstream() {
                upstream.reopened();
            }
            return self.listen(link);
        }
        // The next call is answered as the last was, and so tries again.
        link.note(Side::Server, "the session could not be opened again");
        *self.session.borrow_mut() = Some(lost);
        *self.version.borrow_mut() = version;
    }

    async fn send_opening(self: &Rc<Self>, link: &Rc<Link>) -> bool {
        let opening = [self.initialize.borrow().clone(), self.initialized.borrow().clone()];
        for message in opening.into_iter().flatten() {
            let (ids, ourselves) = (asks(&message), Audience::Ourselves(Opening::default()));
            let mut outcome = self.exchange(link, &message, &ids, &ourselves).await;
            if outcome == Outcome::Broken {
                // A server that restarts closes connections that were kept, and learns nothing from what came on them.
                self.upstream.forget_idle();
                outcome = self.exchange(link, &message, &ids, &ourselves).await;
            }
            if outcome != Outcome::Done || !ids.is_empty() && !ourselves.is_satisfied() {
                return false;
            }
        }
        true
    }

    /// Asks for the stream of what belongs to no call.
    fn listen(self: &Rc<Self>, link: &Rc<Link>) {
        let side = Rc::clone(self);
        let task = self.spawn(link, |link| async move {
            let mut resume = Resume::default();
            loop {
                match side.listen_once(&link, &mut resume).await {
                    Listened::Ended => sleep(resume.pause()).await,
                    Listened::NotOffered => return,
                    Listened::SessionLost(session) => {
                        // Not from within: opening again ends this task.
                        side.spawn(&link, |link| {
                            let side = Rc::clone(&side);
                            async move { side.open_again(&link, session).await }
                        });
                        return;
                    }
                }
                if resume.is_hopeless() {
                    link.note(Side::Server, "the server's stream broke and did not come back");
                    return;
                }
            }
        });
        if let Some(before) = self.listening.replace(Some(task)) {
            before.abort();
        }
    }

    async fn listen_once(self: &Rc<Self>, link: &Rc<Link>, resume: &mut Resume) -> Listened {
        let session = self.session.borrow().clone();
        let exchange =
            Exchange::open(&self.state, Rc::clone(&link.conversation), Transport::StreamableHttp, Era::Legacy);
        let (parts, body) = match self.ask_for_rest(&exchange, resume).await {
            Ok(answer) => answer,
            Err(_) => return Listened::Ended,
        };
        if !parts.status.is_success() || !is_media_type(&parts.headers, "text/event-stream") {
            // A server may do without this stream; then a lost session shows itself at the next call.
            return match session.filter(|_| parts.status == StatusCode::NOT_FOUND && resume.has_come()) {
                Some(session) => Listened::SessionLost(session),
                None => Listened::NotOffered,
            };
        }
        let audience = &Audience::Client(RefCell::default());
        let reader = Reader { side: self, link, exchange: &exchange, method: b"", asked: &[], audience };
        reader.read_events(body, resume).await;
        Listened::Ended
    }

    /// Asks for the stream of the session, or for the rest of one that broke.
    pub async fn ask_for_rest(
        &self,
        exchange: &Exchange,
        resume: &Resume,
    ) -> Result<(Parts, ServerBody), UpstreamError> {
        let mut headers = self.session_headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(last) = resume.last().and_then(|last| HeaderValue::from_bytes(last).ok()) {
            headers.insert(LAST_EVENT, last);
        }
        self.request(exchange, Method::GET, headers, ToServer::empty()).await
    }

    pub fn session(&self) -> Option<HeaderValue> {
        self.session.borrow().clone()
    }

    /// The client is gone: calls are given up, and the server is told that the session is over.
    async fn say_goodbye(&self, link: &Rc<Link>) {
        self.queue.clear();
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
        for (_, call) in self.calls.borrow_mut().drain() {
            call.abort();
        }
        if self.session.borrow().is_some() {
            let exchange =
                Exchange::open(&self.state, Rc::clone(&link.conversation), Transport::StreamableHttp, Era::Legacy);
            let goodbye = self.request(&exchange, Method::DELETE, self.session_headers(), ToServer::empty());
            let _ = timeout(GOODBYE_FOR, goodbye).await;
        }
    }
}

impl ServerSide for HttpSide {
    fn take(&self, passed: Passed<'_>) {
        self.queue.push(passed.frame.bytes.clone().into());
    }

    fn room(&self) -> Option<Waiting<'_>> {
        self.queue.room()
    }

    fn has_told_all(&self) -> bool {
        self.queue.has_told_all()
    }

    fn keep_headers(&self, edited: Option<&Bytes>, came: &Message) {
        if let Some(id) = edited.and_then(|edited| Message::new(edited.clone()).id()) {
            self.as_they_came.borrow_mut().insert(id, came.clone());
        }
    }

    fn was_missed(&self) -> bool {
        self.missed.get() && !self.reached.get()
    }
}

enum Listened {
    Ended,
    NotOffered,
    SessionLost(HeaderValue),
}

/// Answers those of `ids` that the client still waits for.
pub fn refuse(link: &Link, ids: &[Id], refusal: &Refusal) {
    for id in ids {
        link.answer_call(id, refusal);
    }
}

/// What an HTTP status of failure means for a call.
pub fn of_status(link: &Link, status: StatusCode) -> Refusal {
    let server = link.client.upstream().map(|upstream| upstream.server().to_owned());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Refusal::NeedsLogin { server, status: status.as_u16() },
        status => Refusal::UpstreamStatus { status: status.as_u16() },
    }
}

/// The revision that a message names for itself. Looked for only where the word stands at all.
fn message_version(message: &Message) -> Option<String> {
    if !scan::mentions(message.bytes(), &scan::PROTOCOL_VERSION) {
        return None;
    }
    message.protocol_version().map(|version| version.into_owned())
}
