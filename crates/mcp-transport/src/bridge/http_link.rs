//! A server of Streamable HTTP, in front of a client that knows only one stream. Each message of the
//! client is a POST of its own; what belongs to none comes on a stream that we ask for. The session,
//! the headers and the resuming of broken streams are our business here: the client knows nothing of
//! them.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use mcp_engine::{Lane, Side};
use mcp_store::Transport;
use mcp_wire::framing::sse::{SseCut, SseDeframer};
use mcp_wire::mirror::{self, ToolParams};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::{self, Era, Revision};
use mcp_wire::splice::splice;
use mcp_wire::visible::visible_bytes;
use mcp_wire::{Id, Kind, Message, scan};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::talk::Talk;
use crate::http::body::ToServer;
use crate::http::exchange::Exchange;
use crate::http::heads::is_media_type;
use crate::http::upstream::{ServerBody, Upstream, UpstreamError};

const SESSION: HeaderName = HeaderName::from_static(revision::SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(revision::VERSION_HEADER);
const METHOD: HeaderName = HeaderName::from_static(revision::METHOD_HEADER);
const NAME: HeaderName = HeaderName::from_static(revision::NAME_HEADER);
const LAST_EVENT: HeaderName = HeaderName::from_static(revision::LAST_EVENT_HEADER);

/// Calls on their way at a time; more wait.
const CALLS_MAX: usize = 256;
/// Messages that wait before the client has to.
const WAITING_MAX: usize = 256;
/// Where a server does not say how long to wait before asking for the rest of a stream.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// However long a server says: nobody waits longer for a stream to come back.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Times a stream is asked for again without anything having come.
const RETRIES_MAX: u32 = 5;
/// For a server to hear that a session is over.
const GOODBYE_FOR: Duration = Duration::from_secs(2);
/// What of a body that is no message is quoted in the recording.
const QUOTED: usize = 512;

pub struct HttpLink {
    talk: Weak<Talk>,
    upstream: Rc<Upstream>,
    /// What the server calls this session, and the revision to name in each request.
    session: RefCell<Option<HeaderValue>>,
    version: RefCell<Option<HeaderValue>>,
    /// The client's own bytes, for a session that has to be opened again.
    initialize: RefCell<Option<Bytes>>,
    initialized: RefCell<Option<Bytes>>,
    waiting: RefCell<VecDeque<Bytes>>,
    /// Something is on its way that others must not overtake.
    barrier: Cell<bool>,
    calls: RefCell<HashMap<Id, AbortHandle>>,
    running: Cell<usize>,
    listening: RefCell<Option<AbortHandle>>,
    tools: RefCell<ToolParams>,
    room: Notify,
    /// Whether the server was ever reached, and whether it ever was not.
    reached: Cell<bool>,
    missed: Cell<bool>,
}

/// How a call went, beyond what the client was told.
enum Outcome {
    Done,
    /// The server no longer knows the session.
    SessionLost,
}

impl HttpLink {
    pub fn new(talk: &Rc<Talk>, upstream: Rc<Upstream>) -> Rc<Self> {
        Rc::new(Self {
            talk: Rc::downgrade(talk),
            upstream,
            session: RefCell::default(),
            version: RefCell::default(),
            initialize: RefCell::default(),
            initialized: RefCell::default(),
            waiting: RefCell::default(),
            barrier: Cell::new(false),
            calls: RefCell::default(),
            running: Cell::new(0),
            listening: RefCell::default(),
            tools: RefCell::default(),
            room: Notify::new(),
            reached: Cell::new(false),
            missed: Cell::new(false),
        })
    }

    pub fn send(self: &Rc<Self>, message: Bytes) {
        self.waiting.borrow_mut().push_back(message);
        self.send_waiting();
    }

    pub async fn room(&self) {
        while self.waiting.borrow().len() >= WAITING_MAX {
            self.room.notified().await;
        }
    }

    /// Whether the server was tried for, and never once reached.
    pub fn was_missed(&self) -> bool {
        self.missed.get() && !self.reached.get()
    }

    /// Sends what waits, as far as nothing must be waited for first.
    fn send_waiting(self: &Rc<Self>) {
        while !self.barrier.get() && self.running.get() < CALLS_MAX {
            let Some(message) = self.waiting.borrow_mut().pop_front() else { return };
            self.room.notify_waiters();
            self.send_now(Message::new(message));
        }
    }

    fn send_now(self: &Rc<Self>, message: Message) {
        let method = message.glance().method.map(|span| message.slice(span)).unwrap_or_default();
        let is_initialize = method == b"\"initialize\"";
        let is_initialized = method == b"\"notifications/initialized\"";
        if is_initialize {
            *self.initialize.borrow_mut() = Some(message.bytes().clone());
        }
        if is_initialized {
            *self.initialized.borrow_mut() = Some(message.bytes().clone());
        }
        if let Some(id) = message.cancelled_id()
            && self.initialize.borrow().is_none()
        {
            // In the newer revisions nobody is told: the call itself is given up.
            if let Some(call) = self.calls.borrow_mut().remove(&id) {
                call.abort();
            }
            return;
        }
        let link = Rc::clone(self);
        if message.glance().kind == Kind::Request && !is_initialize {
            self.running.set(self.running.get() + 1);
            let id = message.id();
            let task = tokio::task::spawn_local(async move {
                let _running = Running(Rc::clone(&link));
                link.call(&message).await;
            });
            if let Some(id) = id {
                self.calls.borrow_mut().insert(id, task.abort_handle());
            }
            return;
        }
        // What is not a request has no answer to wait for, but what follows must not overtake it.
        self.barrier.set(true);
        tokio::task::spawn_local(async move {
            link.call(&message).await;
            if is_initialized {
                link.listen();
            }
            link.barrier.set(false);
            link.send_waiting();
        });
    }

    /// Sends one message and sees its answer through.
    async fn call(self: &Rc<Self>, message: &Message) {
        let Some(talk) = self.talk.upgrade() else { return };
        let outcome = self.exchange(&talk, message, false).await;
        if let Some(id) = message.id() {
            self.calls.borrow_mut().remove(&id);
        }
        if matches!(outcome, Outcome::SessionLost) {
            self.open_again(&talk).await;
        }
    }

    /// One POST. `silently`: the answer is not for the client.
    async fn exchange(self: &Rc<Self>, talk: &Rc<Talk>, message: &Message, silently: bool) -> Outcome {
        let era = Era::of_header(message_version(message).as_deref().map(str::as_bytes));
        let headers = self.headers(message, era);
        let session = headers.get(&SESSION).cloned();
        let exchange = Exchange::open(&talk.hub, Rc::clone(&talk.conversation), Transport::StreamableHttp, era);
        let body = ToServer::Whole(Some(message.bytes().clone()));
        let (parts, mut body) = match self.request(&exchange, Method::POST, headers, body).await {
            Ok(answer) => answer,
            Err(error) => {
                self.missed.set(true);
                refuse(talk, message, &exchange, &error);
                return Outcome::Done;
            }
        };
        self.reached.set(true);
        let is_initialize = self.is_initialize(message);
        if is_initialize && parts.status.is_success() {
            *self.session.borrow_mut() = parts.headers.get(&SESSION).cloned();
        }
        if parts.status == StatusCode::NOT_FOUND && session.is_some() && !is_initialize && era == Era::Legacy {
            let is_current = *self.session.borrow() == session;
            exchange.ended("session lost");
            if !is_current {
                answer(talk, message, &Refusal::SessionLost);
            }
            return if is_current { Outcome::SessionLost } else { Outcome::Done };
        }
        let asked = (message.glance().kind == Kind::Request).then(|| message.id()).flatten();
        let method = message.glance().method.map(|span| message.slice(span)).unwrap_or_default();
        let reader = Reader { link: self, talk, exchange: &exchange, method, asked: asked.as_ref(), silently };
        if is_media_type(&parts.headers, "text/event-stream") && parts.status.is_success() {
            reader.events(era, body).await;
        } else {
            reader.whole(&parts, &mut body).await;
        }
        Outcome::Done
    }

    fn is_initialize(&self, message: &Message) -> bool {
        message.glance().method.is_some_and(|span| message.slice(span) == b"\"initialize\"")
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
        let mut headers = self.session_headers(era);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if era == Era::Modern {
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

    fn session_headers(&self, era: Era) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if era == Era::Legacy {
            for (name, value) in [(SESSION, &self.session), (VERSION, &self.version)] {
                if let Some(value) = &*value.borrow() {
                    headers.insert(name, value.clone());
                }
            }
        }
        headers
    }

    /// Notes what the server's answers say that later requests depend on.
    fn learn(&self, method: &[u8], answer: &Bytes) -> Option<Bytes> {
        match method {
            b"\"initialize\"" => {
                let span = scan::member_at(answer, ["result", "protocolVersion"])?;
                let version = scan::decode_string(&answer[span.range()])?;
                let sends = Revision::parse(version.as_bytes()).is_none_or(Revision::sends_version_header);
                *self.version.borrow_mut() = HeaderValue::from_str(&version).ok().filter(|_| sends);
                None
            }
            b"\"tools/list\"" => {
                let mut tools = self.tools.borrow_mut();
                tools.learn(answer);
                tools.without_illegal_tools(answer).map(Bytes::from)
            }
            _ => None,
        }
    }

    /// The server forgot the session: whoever waits is told, and the client's own opening is sent
    /// again.
    async fn open_again(self: &Rc<Self>, talk: &Rc<Talk>) {
        let session = self.session.take();
        if session.is_none() {
            return;
        }
        let held = self.barrier.replace(true);
        talk.note(Side::Server, "the server no longer knows this session; it is opened again");
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
        for (_, call) in self.calls.borrow_mut().drain() {
            call.abort();
        }
        talk.answer_open_calls(&Refusal::SessionLost);
        *self.version.borrow_mut() = None;
        let (initialize, initialized) = (self.initialize.borrow().clone(), self.initialized.borrow().clone());
        if let Some(initialize) = initialize {
            self.exchange(talk, &Message::new(initialize), true).await;
        }
        if let Some(initialized) = initialized {
            self.exchange(talk, &Message::new(initialized), true).await;
            self.listen();
        }
        if !held {
            self.barrier.set(false);
            self.send_waiting();
        }
    }

    /// Asks for the stream of what belongs to no call.
    fn listen(self: &Rc<Self>) {
        let link = Rc::clone(self);
        let task = tokio::task::spawn_local(async move {
            let Some(talk) = link.talk.upgrade() else { return };
            let mut resume = Resume::default();
            loop {
                match link.listen_once(&talk, &mut resume).await {
                    Listened::Ended => sleep(resume.pause()).await,
                    Listened::NotOffered => return,
                    Listened::SessionLost => {
                        // Not from within: opening again ends this task.
                        let link = Rc::clone(&link);
                        tokio::task::spawn_local(async move { link.open_again(&talk).await });
                        return;
                    }
                }
                if resume.is_hopeless() {
                    talk.note(Side::Server, "the server's stream broke and did not come back");
                    return;
                }
            }
        });
        if let Some(before) = self.listening.replace(Some(task.abort_handle())) {
            before.abort();
        }
    }

    async fn listen_once(self: &Rc<Self>, talk: &Rc<Talk>, resume: &mut Resume) -> Listened {
        let exchange = Exchange::open(&talk.hub, Rc::clone(&talk.conversation), Transport::StreamableHttp, Era::Legacy);
        let headers = self.stream_headers(resume);
        let (parts, body) = match self.request(&exchange, Method::GET, headers, ToServer::empty()).await {
            Ok(answer) => answer,
            Err(_) => return Listened::Ended,
        };
        if !parts.status.is_success() || !is_media_type(&parts.headers, "text/event-stream") {
            // A server may do without this stream; a lost session shows itself at the next call, too.
            let lost = parts.status == StatusCode::NOT_FOUND && resume.has_come();
            return if lost { Listened::SessionLost } else { Listened::NotOffered };
        }
        let reader = Reader { link: self, talk, exchange: &exchange, method: b"", asked: None, silently: false };
        reader.read_events(body, resume).await;
        Listened::Ended
    }

    fn stream_headers(&self, resume: &Resume) -> HeaderMap {
        let mut headers = self.session_headers(Era::Legacy);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(last) = resume.last.as_ref().and_then(|last| HeaderValue::from_bytes(last).ok()) {
            headers.insert(LAST_EVENT, last);
        }
        headers
    }

    /// The client is gone: calls are given up, and the server is told that the session is over.
    pub async fn end(&self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
        for (_, call) in self.calls.borrow_mut().drain() {
            call.abort();
        }
        self.waiting.borrow_mut().clear();
        let Some(talk) = self.talk.upgrade() else { return };
        if self.session.borrow().is_some() {
            let exchange =
                Exchange::open(&talk.hub, Rc::clone(&talk.conversation), Transport::StreamableHttp, Era::Legacy);
            let headers = self.session_headers(Era::Legacy);
            let goodbye = self.request(&exchange, Method::DELETE, headers, ToServer::empty());
            let _ = timeout(GOODBYE_FOR, goodbye).await;
        }
    }
}

/// A call that counts while it runs; when it ends, the next may begin.
struct Running(Rc<HttpLink>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
        self.0.send_waiting();
    }
}

enum Listened {
    Ended,
    NotOffered,
    SessionLost,
}

/// Where a stream broke, and how often it did.
#[derive(Default)]
struct Resume {
    last: Option<Bytes>,
    retry: Option<Duration>,
    failures: u32,
    came: bool,
}

impl Resume {
    fn pause(&mut self) -> Duration {
        self.failures += 1;
        let backoff = RETRY_AFTER.saturating_mul(1 << (self.failures - 1).min(6));
        let wait = if self.failures == 1 { self.retry.unwrap_or(RETRY_AFTER) } else { self.retry.unwrap_or(backoff) };
        wait.min(RETRY_AFTER_MAX)
    }

    fn saw(&mut self, id: Option<Bytes>, retry: Option<u64>) {
        self.failures = 0;
        self.came = true;
        // An empty id says to begin anew.
        if let Some(id) = id {
            self.last = Some(id).filter(|id| !id.is_empty());
        }
        if let Some(retry) = retry {
            self.retry = Some(Duration::from_millis(retry));
        }
    }

    fn has_come(&self) -> bool {
        self.came
    }

    fn is_hopeless(&self) -> bool {
        self.failures > RETRIES_MAX
    }
}

/// Reads what came in an exchange.
struct Reader<'a> {
    link: &'a Rc<HttpLink>,
    talk: &'a Rc<Talk>,
    exchange: &'a Rc<Exchange>,
    /// The method of the request, quotes included, and the id whose answer is awaited here.
    method: &'a [u8],
    asked: Option<&'a Id>,
    silently: bool,
}

impl Reader<'_> {
    /// A body that is read to its end: one message, or something else.
    async fn whole(&self, parts: &Parts, body: &mut ServerBody) {
        let limit = self.talk.hub.message_bytes_max;
        let mut seen = BytesMut::new();
        let mut sole = None;
        while let Some(data) = body.data().await {
            let Ok(data) = data else {
                self.exchange.ended("server broke off");
                return self.refuse(&Refusal::StreamLost);
            };
            if seen.is_empty() && body.is_end() {
                sole = Some(data);
                break;
            }
            seen.extend_from_slice(&data);
            if seen.len() > limit {
                self.note("an answer is over the limit and was not passed on");
                return self.refuse(&Refusal::TooLarge { limit });
            }
        }
        let bytes = sole.unwrap_or_else(|| seen.freeze());
        if bytes.is_empty() {
            if !parts.status.is_success() {
                return self.refuse(&Refusal::UpstreamStatus { status: parts.status.as_u16() });
            }
            return self.refuse(&Refusal::UpstreamGarbled);
        }
        let message = Message::new(bytes);
        let is_message = is_media_type(&parts.headers, "application/json")
            && matches!(
                message.kind(),
                Kind::Response | Kind::Error | Kind::Request | Kind::Notification | Kind::Batch
            );
        if !is_message {
            let quoted = &message.bytes()[..message.bytes().len().min(QUOTED)];
            self.note(&format!("a body that is no message: {}", visible_bytes(quoted)));
            if !parts.status.is_success() {
                return self.refuse(&Refusal::UpstreamStatus { status: parts.status.as_u16() });
            }
            return self.refuse(&Refusal::UpstreamGarbled);
        }
        self.message(message.bytes().clone(), b"");
        self.refuse(&Refusal::UpstreamGarbled);
    }

    /// A stream that ends with the answer, or breaks before it and is asked for again.
    async fn events(&self, era: Era, body: ServerBody) {
        let mut resume = Resume::default();
        let mut body = Some(body);
        loop {
            if let Some(body) = body.take() {
                self.read_events(body, &mut resume).await;
            }
            if !self.is_awaited() {
                return;
            }
            if era == Era::Modern || resume.last.is_none() || resume.is_hopeless() {
                self.exchange.ended("server broke off");
                return self.refuse(&Refusal::StreamLost);
            }
            sleep(resume.pause()).await;
            let headers = self.link.stream_headers(&resume);
            let exchange =
                Exchange::open(&self.talk.hub, Rc::clone(&self.talk.conversation), Transport::StreamableHttp, era);
            match self.link.request(&exchange, Method::GET, headers, ToServer::empty()).await {
                Ok((parts, rest)) if parts.status.is_success() => {
                    let reader = Reader { exchange: &exchange, ..*self };
                    reader.read_events(rest, &mut resume).await;
                }
                Ok((parts, _)) if parts.status.is_client_error() => return self.refuse(&Refusal::StreamLost),
                _ => {}
            }
        }
    }

    async fn read_events(&self, mut body: ServerBody, resume: &mut Resume) {
        let mut deframer = SseDeframer::new(self.talk.hub.message_bytes_max);
        let mut cuts = Vec::new();
        loop {
            self.talk.client_room().await;
            match body.data().await {
                Some(Ok(data)) => deframer.push(&data, &mut cuts),
                _ => return,
            }
            for cut in cuts.drain(..) {
                match cut {
                    SseCut::Event(event) => {
                        resume.saw(event.id.clone(), event.retry);
                        if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                            self.message(data, event.id.as_deref().unwrap_or_default());
                        }
                    }
                    SseCut::TooLarge { size, head, tail } => self.talk.from_server_too_large((size, &head, &tail)),
                }
            }
        }
    }

    /// Passes one message on.
    fn message(&self, bytes: Bytes, event_id: &[u8]) {
        let message = Message::new(bytes);
        let mut bytes = message.bytes().clone();
        let is_answer = message.glance().kind.is_response();
        if is_answer && let Some(asked) = self.asked {
            // An error may come without the id; the exchange tells whom it answers.
            if message.glance().kind == Kind::Error
                && let Some(span) = message.glance().id.filter(|span| message.slice(*span) == b"null")
            {
                bytes = splice(&bytes, span, asked.to_string().as_bytes());
            }
            if let Some(better) = self.link.learn(self.method, &bytes) {
                self.note("tools whose header annotations are not allowed were left out");
                bytes = better;
            }
        }
        if self.silently {
            return;
        }
        let lane = Lane { transport: Transport::StreamableHttp, exchange: self.exchange.number, event_id, asked: None };
        self.talk.from_server(lane, bytes);
    }

    fn is_awaited(&self) -> bool {
        !self.silently && self.asked.is_some_and(|asked| self.talk.conversation.borrow().awaits(Side::Client, asked))
    }

    fn refuse(&self, refusal: &Refusal) {
        if let Some(asked) = self.asked
            && self.is_awaited()
        {
            self.talk.answer_call(asked, refusal);
        }
    }

    fn note(&self, text: &str) {
        self.talk.note(Side::Server, text);
    }
}

fn answer(talk: &Talk, message: &Message, refusal: &Refusal) {
    if message.glance().kind == Kind::Request
        && let Some(id) = message.id()
    {
        talk.answer_call(&id, refusal);
    }
}

fn refuse(talk: &Talk, message: &Message, exchange: &Exchange, error: &UpstreamError) {
    exchange.ended("server not reached");
    let (why, refusal) = error.explain();
    talk.note(Side::Server, &why);
    answer(talk, message, &refusal);
}

/// The revision that a message names for itself. Looked for only where the word stands at all.
fn message_version(message: &Message) -> Option<String> {
    if !scan::mentions(message.bytes(), &scan::PROTOCOL_VERSION) {
        return None;
    }
    message.protocol_version().map(|version| version.into_owned())
}
