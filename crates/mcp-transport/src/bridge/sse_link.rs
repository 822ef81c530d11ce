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
use mcp_store::Transport;
use mcp_wire::framing::sse::{SseCut, SseDeframer, SseEvent};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use mcp_wire::visible::visible_bytes;
use mcp_wire::{Kind, Message};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::http_link::of_status;
use super::queue::{Queue, asks, method_of};
use super::talk::{ClientEnd, Talk};
use crate::http::body::ToServer;
use crate::http::exchange::Exchange;
use crate::http::heads::is_media_type;
use crate::http::upstream::{ServerBody, Upstream, UpstreamError};

/// For a server to say where messages go.
const OPEN_FOR: Duration = Duration::from_secs(30);
/// Pauses before a stream is opened again: the first, and the longest. A stream that lasted for longer
/// than the first has not failed.
const RETRY_AFTER: Duration = Duration::from_millis(500);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// What of a body that is no message is quoted in the recording.
const QUOTED: usize = 512;

pub struct SseLink {
    talk: Weak<Talk>,
    upstream: Rc<Upstream>,
    pub queue: Rc<Queue>,
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

impl SseLink {
    pub fn start(talk: &Rc<Talk>, upstream: Rc<Upstream>) -> Rc<Self> {
        let link = Rc::new(Self {
            talk: Rc::downgrade(talk),
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
        let attending = Rc::clone(&link);
        tokio::task::spawn_local(async move { attending.attend().await });
        link
    }

    /// Whether the server was tried for, and never once reached.
    pub fn was_missed(&self) -> bool {
        self.missed.get() && !self.reached.get()
    }

    /// Holds a stream open for as long as the conversation lasts.
    async fn attend(self: &Rc<Self>) {
        let Some(talk) = self.talk.upgrade() else { return };
        tokio::select! {
            () = self.keep_connected(&talk) => {}
            () = talk.over() => {}
        }
    }

    async fn keep_connected(self: &Rc<Self>, talk: &Rc<Talk>) {
        // Nothing is opened before there is something to say.
        self.queue.something().await;
        let mut pause = RETRY_AFTER;
        loop {
            let begun = Instant::now();
            let ended = self.connection(talk).await;
            pause = if begun.elapsed() > RETRY_AFTER { RETRY_AFTER } else { (pause * 2).min(RETRY_AFTER_MAX) };
            match ended {
                Ok(()) => {
                    talk.note(Side::Server, "the server closed the stream; it is opened again");
                    talk.answer_open_calls_but(&self.queue.waiting_calls(), &Refusal::StreamLost);
                }
                Err(refusal) => {
                    self.missed.set(true);
                    self.queue.clear();
                    talk.answer_open_calls(&refusal);
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
    async fn connection(self: &Rc<Self>, talk: &Rc<Talk>) -> Result<(), Refusal> {
        let exchange = self.open_exchange(talk);
        let late = Refusal::Unreachable { what: "no endpoint in time".into() };
        let (mut events, endpoint) = timeout(OPEN_FOR, self.open(talk, &exchange)).await.unwrap_or(Err(late))?;
        let read = async {
            loop {
                talk.client_room().await;
                let Some(cuts) = events.next().await else { return };
                cuts.into_iter().for_each(|cut| self.take(talk, &exchange, cut));
            }
        };
        tokio::select! {
            () = read => Ok(()),
            () = self.post_all(talk, &endpoint) => Ok(()),
        }
    }

    /// Opens a stream and waits until it says where messages go.
    async fn open(&self, talk: &Rc<Talk>, exchange: &Exchange) -> Result<(Events, Uri), Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let uri = self.upstream.target.endpoint(None);
        let opened = self.request(exchange, Method::GET, uri, headers, ToServer::empty()).await;
        let (parts, body) = opened.map_err(|error| self.explain(talk, &error))?;
        if !parts.status.is_success() || !is_media_type(&parts.headers, "text/event-stream") {
            return Err(of_status(talk, parts.status));
        }
        self.reached.set(true);
        let mut events = Events { body, deframer: SseDeframer::new(talk.hub.message_bytes_max) };
        let mut endpoint = None;
        while endpoint.is_none() {
            for cut in events.next().await.ok_or(Refusal::StreamLost)? {
                match cut {
                    SseCut::Event(event) if endpoint.is_none() && event.event.as_deref() == Some(b"endpoint") => {
                        endpoint = Some(self.endpoint(talk, &event)?);
                    }
                    cut => self.take(talk, exchange, cut),
                }
            }
        }
        Ok((events, endpoint.expect("the loop ends with one")))
    }

    fn endpoint(&self, talk: &Talk, event: &SseEvent) -> Result<Uri, Refusal> {
        let named = event.data.as_deref().unwrap_or_default();
        self.upstream.target.resolve(&String::from_utf8_lossy(named)).ok_or_else(|| {
            let named = visible_bytes(named).to_string();
            talk.note(Side::Server, &format!("the server names an endpoint on another origin: {named}"));
            Refusal::GARBLED
        })
    }

    /// Passes one event on.
    fn take(&self, talk: &Talk, exchange: &Exchange, cut: SseCut) {
        match cut {
            SseCut::Event(event) => {
                let is_message = matches!(event.event.as_deref(), None | Some(b"" | b"message"));
                let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) else { return };
                let message = Message::new(data);
                let event_id = event.id.as_deref().unwrap_or_default();
                match self.asked_again(&message) {
                    Some(asked) => {
                        talk.keep_from_client(exchange.lane(event_id, Some(&asked)), message.bytes().clone());
                    }
                    None => talk.from_server(exchange.lane(event_id, None), message.bytes().clone()),
                }
            }
            SseCut::TooLarge { size, head, tail } => talk.from_server_too_large((size, &head, &tail)),
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
    async fn post_all(self: &Rc<Self>, talk: &Rc<Talk>, endpoint: &Uri) {
        self.open_again(talk, endpoint).await;
        let mut posts = JoinSet::new();
        loop {
            let (message, place) = self.queue.next().await;
            match method_of(&message) {
                b"\"initialize\"" => *self.opening.borrow_mut() = Some(message.clone()),
                b"\"notifications/initialized\"" => *self.initialized.borrow_mut() = Some(message.clone()),
                _ => {}
            }
            while posts.try_join_next().is_some() {}
            let (link, talk, endpoint) = (Rc::clone(self), Rc::clone(talk), endpoint.clone());
            posts.spawn_local(async move {
                let exchange = link.open_exchange(&talk);
                if let Err(refusal) = link.post(&talk, &exchange, &endpoint, &message).await {
                    asks(&message).iter().for_each(|id| talk.answer_call(id, &refusal));
                }
                drop(place);
            });
        }
    }

    /// Begins a session as the client began the one before. What goes wrong here shows itself in the
    /// next answer.
    async fn open_again(&self, talk: &Rc<Talk>, endpoint: &Uri) {
        let opening = self.initialize.borrow().clone();
        let Some(initialize) = opening else { return };
        if self.repeat(talk, endpoint, &initialize).await.is_err() {
            self.swallow.take();
        }
        while self.swallow.borrow().is_some() {
            self.swallowed.notified().await;
        }
        let initialized = self.initialized.borrow().clone();
        if let Some(initialized) = initialized {
            let _ = self.repeat(talk, endpoint, &initialized).await;
            if let ClientEnd::Leg(leg) = &talk.client {
                leg.reopened();
            }
        }
    }

    async fn repeat(&self, talk: &Rc<Talk>, endpoint: &Uri, message: &Message) -> Result<(), Refusal> {
        let exchange = self.open_exchange(talk);
        let sequence = talk.repeat_for_client(&exchange, message).ok_or(Refusal::NotRecorded)?;
        *self.swallow.borrow_mut() = asks(message).pop().map(|id| Asked { id, sequence });
        self.post(talk, &exchange, endpoint, message).await
    }

    async fn post(
        &self,
        talk: &Rc<Talk>,
        exchange: &Exchange,
        endpoint: &Uri,
        message: &Message,
    ) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = ToServer::Whole(Some(message.bytes().clone()));
        let sent = self.request(exchange, Method::POST, endpoint.clone(), headers, body).await;
        let (parts, mut body) = sent.map_err(|error| self.explain(talk, &error))?;
        // Some servers say a word here; nobody needs it, unless something went wrong.
        let mut seen = BytesMut::new();
        while let Some(Ok(data)) = body.data().await {
            seen.extend_from_slice(&data[..data.len().min(QUOTED.saturating_sub(seen.len()))]);
        }
        if parts.status.is_success() {
            return Ok(());
        }
        exchange.no_message(&seen, true);
        Err(of_status(talk, parts.status))
    }

    fn open_exchange(&self, talk: &Rc<Talk>) -> Rc<Exchange> {
        Exchange::open(&talk.hub, Rc::clone(&talk.conversation), Transport::Sse, Era::Legacy)
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

    fn explain(&self, talk: &Talk, error: &UpstreamError) -> Refusal {
        let (why, refusal) = error.explain(&talk.hub);
        talk.note(Side::Server, &why);
        refusal
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
