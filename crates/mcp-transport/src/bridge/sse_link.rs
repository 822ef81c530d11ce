//! A server of the older HTTP+SSE transport: one stream from it, which also says where messages to
//! it go. The end of the stream is the end of its session, so a stream that broke is opened anew and
//! the client's own opening is sent again.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, Uri};
use mcp_engine::{Lane, Side};
use mcp_store::Transport;
use mcp_wire::framing::sse::{SseCut, SseDeframer, SseEvent};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use mcp_wire::visible::visible_bytes;
use mcp_wire::{Id, Kind, Message};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::talk::Talk;
use crate::http::body::ToServer;
use crate::http::exchange::Exchange;
use crate::http::heads::is_media_type;
use crate::http::upstream::{ServerBody, Upstream, UpstreamError};

/// Messages that wait before the client has to.
const WAITING_MAX: usize = 256;
/// Pauses before a stream is opened again: the first, and the longest.
const RETRY_AFTER: Duration = Duration::from_millis(500);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// What of a body that is no message is quoted in the recording.
const QUOTED: usize = 512;
/// Requests on their way at a time; past this they are sent one by one.
const POSTS_MAX: usize = 256;

pub struct SseLink {
    talk: Weak<Talk>,
    upstream: Rc<Upstream>,
    waiting: RefCell<VecDeque<Bytes>>,
    more: Notify,
    room: Notify,
    /// The client's own bytes, for a session that has to be opened again.
    initialize: RefCell<Option<Bytes>>,
    initialized: RefCell<Option<Bytes>>,
    /// The answer to an opening that we sent again is not for the client.
    swallow: RefCell<Option<Id>>,
    /// Whether the server was ever reached, and whether it ever was not.
    reached: Cell<bool>,
    missed: Cell<bool>,
}

impl SseLink {
    pub fn start(talk: &Rc<Talk>, upstream: Rc<Upstream>) -> Rc<Self> {
        let link = Rc::new(Self {
            talk: Rc::downgrade(talk),
            upstream,
            waiting: RefCell::default(),
            more: Notify::new(),
            room: Notify::new(),
            initialize: RefCell::default(),
            initialized: RefCell::default(),
            swallow: RefCell::default(),
            reached: Cell::new(false),
            missed: Cell::new(false),
        });
        let attending = Rc::clone(&link);
        tokio::task::spawn_local(async move { attending.attend().await });
        link
    }

    pub fn send(&self, message: Bytes) {
        self.waiting.borrow_mut().push_back(message);
        self.more.notify_one();
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

    /// Holds a stream open for as long as the conversation lasts.
    async fn attend(self: &Rc<Self>) {
        let Some(talk) = self.talk.upgrade() else { return };
        let mut pause = RETRY_AFTER;
        // Nothing is opened before there is something to say.
        tokio::select! {
            () = self.something_waits() => {}
            () = talk.over() => return,
        }
        loop {
            let connected = tokio::select! {
                connected = self.connection(&talk) => connected,
                () = talk.over() => return,
            };
            match connected {
                Ok(()) => {
                    pause = RETRY_AFTER;
                    talk.note(Side::Server, "the server closed the stream; it is opened again");
                    talk.answer_open_calls(&Refusal::StreamLost);
                }
                Err(refusal) => {
                    self.missed.set(true);
                    self.refuse_waiting(&talk, &refusal);
                    talk.answer_open_calls(&refusal);
                    pause = (pause * 2).min(RETRY_AFTER_MAX);
                }
            }
            tokio::select! {
                () = async { sleep(pause).await; self.something_waits().await } => {}
                () = talk.over() => return,
            }
        }
    }

    async fn something_waits(&self) {
        while self.waiting.borrow().is_empty() {
            self.more.notified().await;
        }
    }

    fn refuse_waiting(&self, talk: &Talk, refusal: &Refusal) {
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        self.room.notify_waiters();
        for message in waiting {
            let message = Message::new(message);
            if message.glance().kind == Kind::Request
                && let Some(id) = message.id()
            {
                talk.answer_call(&id, refusal);
            }
        }
    }

    /// One connection, from its stream's first event to its last.
    async fn connection(self: &Rc<Self>, talk: &Rc<Talk>) -> Result<(), Refusal> {
        let exchange = self.open_exchange(talk);
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let uri = self.upstream.target.endpoint(None);
        let opened = self.request(&exchange, Method::GET, uri, headers, ToServer::empty()).await;
        let (parts, mut body) = opened.map_err(|error| self.explain(talk, &error))?;
        if !parts.status.is_success() || !is_media_type(&parts.headers, "text/event-stream") {
            return Err(Refusal::UpstreamStatus { status: parts.status.as_u16() });
        }
        self.reached.set(true);
        let mut deframer = SseDeframer::new(talk.hub.message_bytes_max);
        let mut cuts = Vec::new();
        let mut endpoint = None;
        while endpoint.is_none() {
            match body.data().await {
                Some(Ok(data)) => deframer.push(&data, &mut cuts),
                _ => return Err(Refusal::StreamLost),
            }
            for cut in cuts.drain(..) {
                match cut {
                    SseCut::Event(event) if event.event.as_deref() == Some(b"endpoint") => {
                        endpoint = Some(self.endpoint(talk, &event)?);
                    }
                    cut => self.take(talk, &exchange, cut),
                }
            }
        }
        let endpoint = endpoint.expect("the loop ends with one");
        let read = async {
            loop {
                talk.client_room().await;
                match body.data().await {
                    Some(Ok(data)) => deframer.push(&data, &mut cuts),
                    _ => return,
                }
                for cut in cuts.drain(..) {
                    self.take(talk, &exchange, cut);
                }
            }
        };
        tokio::select! {
            () = read => Ok(()),
            () = self.post_all(talk, &endpoint) => Ok(()),
        }
    }

    fn endpoint(&self, talk: &Talk, event: &SseEvent) -> Result<Uri, Refusal> {
        let named = event.data.as_deref().unwrap_or_default();
        self.upstream.target.resolve(&String::from_utf8_lossy(named)).ok_or_else(|| {
            let named = visible_bytes(named).to_string();
            talk.note(Side::Server, &format!("the server names an endpoint on another origin: {named}"));
            Refusal::UpstreamGarbled
        })
    }

    /// Passes one event on.
    fn take(&self, talk: &Talk, exchange: &Exchange, cut: SseCut) {
        match cut {
            SseCut::Event(event) => {
                let Some(data) = event.data.filter(|data| !data.is_empty()) else { return };
                let message = Message::new(data);
                let swallowed = self.swallow.borrow().is_some()
                    && message.glance().kind.is_response()
                    && message.id() == *self.swallow.borrow();
                if swallowed {
                    self.swallow.take();
                    return;
                }
                let event_id = event.id.as_deref().unwrap_or_default();
                let lane = Lane { transport: Transport::Sse, exchange: exchange.number, event_id, asked: None };
                talk.from_server(lane, message.bytes().clone());
            }
            SseCut::TooLarge { size, head, tail } => talk.from_server_too_large((size, &head, &tail)),
        }
    }

    /// Sends what waits, in order, for as long as the connection lasts. A server may answer the POST of
    /// a request only when it is done with it, and may ask the client something meanwhile, so nothing
    /// waits for those.
    async fn post_all(self: &Rc<Self>, talk: &Rc<Talk>, endpoint: &Uri) {
        let mut posts = JoinSet::new();
        let opening = [self.initialize.borrow().clone(), self.initialized.borrow().clone()];
        for message in opening.into_iter().flatten() {
            let message = Message::new(message);
            if message.glance().kind == Kind::Request {
                *self.swallow.borrow_mut() = message.id();
            }
            // What goes wrong here shows itself in the next answer.
            let _ = self.post(talk, endpoint, &message).await;
        }
        loop {
            self.something_waits().await;
            let next = self.waiting.borrow_mut().pop_front();
            self.room.notify_waiters();
            let Some(message) = next else { continue };
            let message = Message::new(message);
            let method = message.glance().method.map(|span| message.slice(span)).unwrap_or_default();
            match method {
                b"\"initialize\"" => *self.initialize.borrow_mut() = Some(message.bytes().clone()),
                b"\"notifications/initialized\"" => *self.initialized.borrow_mut() = Some(message.bytes().clone()),
                _ => {}
            }
            let overtakable = message.glance().kind == Kind::Request && method != b"\"initialize\"";
            while posts.try_join_next().is_some() {}
            if overtakable && posts.len() < POSTS_MAX {
                let (link, talk, endpoint) = (Rc::clone(self), Rc::clone(talk), endpoint.clone());
                posts.spawn_local(async move { link.post_or_answer(&talk, &endpoint, &message).await });
            } else {
                self.post_or_answer(talk, endpoint, &message).await;
            }
        }
    }

    async fn post_or_answer(&self, talk: &Rc<Talk>, endpoint: &Uri, message: &Message) {
        if let Err(refusal) = self.post(talk, endpoint, message).await
            && message.glance().kind == Kind::Request
            && let Some(id) = message.id()
        {
            talk.answer_call(&id, &refusal);
        }
    }

    async fn post(&self, talk: &Rc<Talk>, endpoint: &Uri, message: &Message) -> Result<(), Refusal> {
        let exchange = self.open_exchange(talk);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = ToServer::Whole(Some(message.bytes().clone()));
        let sent = self.request(&exchange, Method::POST, endpoint.clone(), headers, body).await;
        let (parts, mut body) = sent.map_err(|error| self.explain(talk, &error))?;
        // Some servers say a word here; nobody needs it, unless something went wrong.
        let mut seen = BytesMut::new();
        while let Some(Ok(data)) = body.data().await {
            seen.extend_from_slice(&data[..data.len().min(QUOTED.saturating_sub(seen.len()))]);
        }
        if parts.status.is_success() {
            return Ok(());
        }
        if !seen.is_empty() {
            talk.note(Side::Server, &format!("a body that is no message: {}", visible_bytes(&seen)));
        }
        Err(Refusal::UpstreamStatus { status: parts.status.as_u16() })
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
        let (why, refusal) = error.explain();
        talk.note(Side::Server, &why);
        refusal
    }
}
