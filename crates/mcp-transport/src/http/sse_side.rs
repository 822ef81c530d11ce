//! A server of the older HTTP+SSE transport: one stream from it, which also says where messages to
//! it go. The end of the stream is the end of its session, so a stream that broke is opened anew and
//! the client's own opening is sent again.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::BytesMut;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, Uri};
use mcp_engine::{Asked, Side};
use mcp_link::queue::{Queue, asks, method_of};
use mcp_link::{Alive, Link, Passed, ServerSide, Waiting};
use mcp_store::Transport;
use mcp_wire::framing::sse::{SseCut, SseDeframer, SseEvent};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use mcp_wire::visible::visible_bytes;
use mcp_wire::{Kind, Message};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::body::ToServer;
use super::exchange::Exchange;
use super::heads::is_media_type;
use super::http_side::of_status;
use super::state::HttpState;
use super::upstream::{ServerBody, Upstream, UpstreamError};

/// Time for a server to send the `endpoint` event.
const OPEN_FOR: Duration = Duration::from_secs(30);
/// Pauses before a lost stream is opened again: the first, which doubles, and the longest. A stream that lasted
/// longer than the first did not fail.
const RETRY_AFTER: Duration = Duration::from_millis(500);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// Bytes quoted in the recording of a body that is no message.
const QUOTED: usize = 512;

pub struct SseSide {
    link: Weak<Link>,
    state: Rc<HttpState>,
    upstream: Rc<Upstream>,
    queue: Rc<Queue>,
    /// The client's opening while it is not agreed to.
    opening: RefCell<Option<Message>>,
    /// The client's own bytes, for a session that has to be opened again.
    initialize: RefCell<Option<Message>>,
    initialized: RefCell<Option<Message>>,
    /// The answer to an opening that we sent again is not for the client.
    swallow: RefCell<Option<Asked>>,
    swallowed: Notify,
    /// Whether the server was ever reached, and whether it ever was not.
    reached: Cell<bool>,
    missed: Cell<bool>,
}

impl SseSide {
    /// Gives `link` this side. `alive` is held until the stream is closed.
    pub fn start(link: &Rc<Link>, state: &Rc<HttpState>, upstream: Rc<Upstream>, alive: Alive) {
        let side = Rc::new(Self {
            link: Rc::downgrade(link),
            state: Rc::clone(state),
            upstream,
            queue: Rc::default(),
            opening: RefCell::default(),
            initialize: RefCell::default(),
            initialized: RefCell::default(),
            swallow: RefCell::default(),
            swallowed: Notify::new(),
            reached: Cell::new(false),
            missed: Cell::new(false),
        });
        link.connect(Rc::<Self>::clone(&side));
        tokio::task::spawn_local(async move {
            side.attend().await;
            drop(alive);
        });
    }

    /// Holds a stream open for as long as the conversation lasts.
    async fn attend(self: &Rc<Self>) {
        let Some(link) = self.link.upgrade() else { return };
        tokio::select! {
            () = self.keep_connected(&link) => {}
            () = link.over() => {}
        }
    }

    async fn keep_connected(self: &Rc<Self>, link: &Rc<Link>) {
        // Nothing is opened before there is something to say.
        self.queue.something().await;
        let mut pause = RETRY_AFTER;
        loop {
            let begun = Instant::now();
            let ended = self.connection(link).await;
            pause = if begun.elapsed() > RETRY_AFTER { RETRY_AFTER } else { (pause * 2).min(RETRY_AFTER_MAX) };
            match ended {
                Ok(()) => {
                    link.note(Side::Server, "the server closed the stream; it is opened again");
                    link.answer_open_calls_but(&self.queue.waiting_calls(), &Refusal::StreamLost);
                }
                Err(refusal) => {
                    self.missed.set(true);
                    self.queue.clear();
                    link.answer_open_calls(&refusal);
                }
            }
            sleep(RETRY_AFTER).await;
            // Without a session to take up again, nothing is missed by waiting.
            let has_session = self.initialize.borrow().is_some();
            tokio::select! {
                () = self.queue.something() => {}
                () = sleep(pause.saturating_sub(RETRY_AFTER)), if has_session => {}
            }
        }
    }

    /// One connection, from its stream's first event to its last.
    async fn connection(self: &Rc<Self>, link: &Rc<Link>) -> Result<(), Refusal> {
        let exchange = self.open_exchange(link);
        let late = Refusal::Unreachable { what: "no endpoint in time".into() };
        let (mut events, endpoint) = timeout(OPEN_FOR, self.open(link, &exchange)).await.unwrap_or(Err(late))?;
        let read = async {
            loop {
                link.client_room().await;
                let Some(cuts) = events.next().await else { return };
                cuts.into_iter().for_each(|cut| self.take(link, &exchange, cut));
            }
        };
        tokio::select! {
            () = read => Ok(()),
            () = self.post_all(link, &endpoint) => Ok(()),
        }
    }

    /// Opens a stream and waits until it says where messages go.
    async fn open(&self, link: &Rc<Link>, exchange: &Exchange) -> Result<(Events, Uri), Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let uri = self.upstream.target.endpoint(None);
        let opened = self.request(exchange, Method::GET, uri, headers, ToServer::empty()).await;
        let (parts, body) = opened.map_err(|error| self.explain(link, &error))?;
        if !parts.status.is_success() || !is_media_type(&parts.headers, "text/event-stream") {
            return Err(of_status(link, parts.status));
        }
        self.reached.set(true);
        let mut events = Events { body, deframer: SseDeframer::new(link.runtime.message_bytes_max) };
        let mut endpoint = None;
        while endpoint.is_none() {
            for cut in events.next().await.ok_or(Refusal::StreamLost)? {
                match cut {
                    SseCut::Event(event) if endpoint.is_none() && event.event.as_deref() == Some(b"endpoint") => {
                        endpoint = Some(self.endpoint(link, &event)?);
                    }
                    cut => self.take(link, exchange, cut),
                }
            }
        }
        Ok((events, endpoint.expect("the loop ends with one")))
    }

    fn endpoint(&self, link: &Link, event: &SseEvent) -> Result<Uri, Refusal> {
        let named = event.data.as_deref().unwrap_or_default();
        self.upstream.target.resolve(&String::from_utf8_lossy(named)).ok_or_else(|| {
            let named = visible_bytes(named).to_string();
            link.note(Side::Server, &format!("the server names an endpoint on another origin: {named}"));
            Refusal::GARBLED
        })
    }

    /// Passes one event on.
    fn take(&self, link: &Link, exchange: &Exchange, cut: SseCut) {
        match cut {
            SseCut::Event(event) => {
                let is_message = matches!(event.event.as_deref(), None | Some(b"" | b"message"));
                let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) else { return };
                let message = Message::new(data);
                let event_id = event.id.as_deref().unwrap_or_default();
                match self.asked_again(&message) {
                    Some(asked) => {
                        link.keep_from_client(exchange.lane(event_id, Some(&asked)), message.bytes().clone());
                    }
                    None => link.from_server(exchange.lane(event_id, None), None, message.bytes().clone()),
                }
            }
            SseCut::TooLarge { size, head, tail } => link.from_server_too_large((size, &head, &tail)),
        }
    }

    /// Looks for the answer to an opening. If it is one that was sent again, what that was known by
    /// comes back.
    fn asked_again(&self, message: &Message) -> Option<Asked> {
        if !message.glance().kind.is_response() {
            return None;
        }
        let id = message.id();
        if self.swallow.borrow().as_ref().is_some_and(|asked| Some(&asked.id) == id.as_ref()) {
            self.swallowed.notify_one();
            return self.swallow.take();
        }
        let is_agreed = message.glance().kind == Kind::Response
            && self.opening.borrow().as_ref().is_some_and(|opening| opening.id() == id);
        if is_agreed {
            *self.initialize.borrow_mut() = self.opening.take();
        }
        None
    }

    /// Sends what waits for as long as the connection lasts.
    async fn post_all(self: &Rc<Self>, link: &Rc<Link>, endpoint: &Uri) {
        self.open_again(link, endpoint).await;
        let mut posts = JoinSet::new();
        loop {
            let (message, place) = self.queue.next().await;
            match method_of(&message) {
                b"\"initialize\"" => *self.opening.borrow_mut() = Some(message.clone()),
                b"\"notifications/initialized\"" => *self.initialized.borrow_mut() = Some(message.clone()),
                _ => {}
            }
            while posts.try_join_next().is_some() {}
            let (side, link, endpoint) = (Rc::clone(self), Rc::clone(link), endpoint.clone());
            posts.spawn_local(async move {
                let exchange = side.open_exchange(&link);
                if let Err(refusal) = side.post(&link, &exchange, &endpoint, &message).await {
                    asks(&message).iter().for_each(|id| link.answer_call(id, &refusal));
                }
                drop(place);
            });
        }
    }

    /// Begins a session as the client began the one before. What goes wrong here shows itself in the
    /// next answer.
    async fn open_again(&self, link: &Rc<Link>, endpoint: &Uri) {
        let opening = self.initialize.borrow().clone();
        let Some(initialize) = opening else { return };
        if self.repeat(link, endpoint, &initialize).await.is_err() {
            self.swallow.take();
        }
        while self.swallow.borrow().is_some() {
            self.swallowed.notified().await;
        }
        let initialized = self.initialized.borrow().clone();
        if let Some(initialized) = initialized {
            let _ = self.repeat(link, endpoint, &initialized).await;
            if let Some(upstream) = link.client.upstream() {
                upstream.reopened();
            }
        }
    }

    async fn repeat(&self, link: &Rc<Link>, endpoint: &Uri, message: &Message) -> Result<(), Refusal> {
        let exchange = self.open_exchange(link);
        let sequence = link.repeat_for_client(exchange.lane(b"", None), message).ok_or(Refusal::NotRecorded)?;
        *self.swallow.borrow_mut() = asks(message).pop().map(|id| Asked { id, sequence });
        self.post(link, &exchange, endpoint, message).await
    }

    async fn post(
        &self,
        link: &Rc<Link>,
        exchange: &Exchange,
        endpoint: &Uri,
        message: &Message,
    ) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = ToServer::Whole(Some(message.bytes().clone()));
        let sent = self.request(exchange, Method::POST, endpoint.clone(), headers, body).await;
        let (parts, mut body) = sent.map_err(|error| self.explain(link, &error))?;
        // Some servers say a word here; nobody needs it, unless something went wrong.
        let mut seen = BytesMut::new();
        while let Some(Ok(data)) = body.data().await {
            seen.extend_from_slice(&data[..data.len().min(QUOTED.saturating_sub(seen.len()))]);
        }
        if parts.status.is_success() {
            return Ok(());
        }
        exchange.no_message(&seen, true);
        Err(of_status(link, parts.status))
    }

    fn open_exchange(&self, link: &Rc<Link>) -> Rc<Exchange> {
        Exchange::open(&self.state, Rc::clone(&link.conversation), Transport::Sse, Era::Legacy)
    }

    async fn request(
        &self,
        exchange: &Exchange,
        method: Method,
        uri: Uri,
        mut headers: HeaderMap,
        body: ToServer,
    ) -> Result<(Parts, ServerBody), UpstreamError> {
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

    fn explain(&self, link: &Link, error: &UpstreamError) -> Refusal {
        let (why, refusal) = error.explain(&link.runtime);
        link.note(Side::Server, &why);
        refusal
    }
}

impl ServerSide for SseSide {
    fn take(&self, passed: Passed<'_>) {
        self.queue.push(passed.frame.bytes.clone().into());
    }

    fn room(&self) -> Option<Waiting<'_>> {
        self.queue.room()
    }

    fn has_told_all(&self) -> bool {
        self.queue.has_told_all()
    }

    fn was_missed(&self) -> bool {
        self.missed.get() && !self.reached.get()
    }
}

/// The stream of a connection.
struct Events {
    body: ServerBody,
    deframer: SseDeframer,
}

impl Events {
    /// What came next; nothing more comes after `None`.
    async fn next(&mut self) -> Option<Vec<SseCut>> {
        let data = self.body.data().await?.ok()?;
        let mut cuts = Vec::new();
        self.deframer.push(&data, &mut cuts);
        Some(cuts)
    }
}
