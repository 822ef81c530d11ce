//! Streamable HTTP to Streamable HTTP, and SSE to SSE: one exchange in, one exchange out, on one
//! task. Statuses, headers and bodies pass as they are; the bodies are looked at on their way.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request;
use hyper::http::response::Parts;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use mcp_engine::{Conversation, Side};
use mcp_store::Transport;
use mcp_wire::Gather;
use mcp_wire::framing::sse::{SseCut, SseDeframer, SseEvent, encode_endpoint, encode_event};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::{self, Era};
use mcp_wire::visible::visible_bytes;

use super::body::{BodyError, ToClient, ToServer};
use super::exchange::{Exchange, Received, receive};
use super::heads::{is_media_type, strip_hop_by_hop};
use super::resource::OwnResource;
use super::site::{Site, refusal_response};
use super::upstream::{Call, ServerBody, Upstream, UpstreamError};

const SESSION_ID: HeaderName = HeaderName::from_static(revision::SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(revision::VERSION_HEADER);

/// What of a body that is no message is quoted in the recording.
const QUOTED: usize = 512;
/// A larger description of a resource is passed on as it is.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// What an exchange is about.
#[derive(Clone, Debug)]
pub enum Route {
    /// The endpoint of Streamable HTTP.
    Endpoint,
    /// The stream of an SSE connection.
    Stream,
    /// A message that belongs to an SSE connection.
    Message(Rc<Connection>),
    /// Anything else of the server that clients ask for, such as metadata.
    Metadata,
}

/// An SSE connection: the stream's conversation, and where its messages go.
#[derive(Debug)]
pub struct Connection {
    pub talk: Rc<RefCell<Conversation>>,
    pub endpoint: Uri,
}

/// Relays one exchange.
pub async fn relay(
    site: Rc<Site>,
    upstream: Rc<Upstream>,
    peer: IpAddr,
    (mut parts, body): (request::Parts, Incoming),
    route: Route,
) -> Response<ToClient> {
    let era = Era::of_header(parts.headers.get(&VERSION).map(|value| value.as_bytes()));
    let transport = match route {
        Route::Endpoint | Route::Metadata => Transport::StreamableHttp,
        Route::Stream | Route::Message(_) => Transport::Sse,
    };
    let received = match receive(body, &site.hub).await {
        Ok(received) => received,
        Err(refused) => return refusal_response(&refused),
    };
    let talk = match &route {
        Route::Message(connection) => Rc::clone(&connection.talk),
        Route::Endpoint | Route::Metadata => {
            site.conversations.of_request(&site.hub, peer, &parts.headers, era, &received)
        }
        Route::Stream => site.conversations.new_one(&site.hub),
    };
    let exchange = Exchange::open(&site.hub, talk, transport, era);
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    exchange.request_head(&parts.method, target, &parts.headers);
    let own = site.own_resource(&parts);
    parts.uri = match &route {
        Route::Endpoint | Route::Stream => upstream.target.endpoint(parts.uri.query()),
        Route::Message(connection) => connection.endpoint.clone(),
        Route::Metadata => match own.as_ref().and_then(|own| own.path_at(parts.uri.path(), &upstream.target)) {
            Some(path) => path,
            None => parts.uri.path_and_query().map_or(Uri::from_static("/"), |it| it.clone().into()),
        },
    };
    parts.version = Version::HTTP_11;
    strip_hop_by_hop(&mut parts.headers);
    // What is compressed cannot be looked at.
    parts.headers.remove(header::ACCEPT_ENCODING);
    if site.gate.authenticates() {
        parts.headers.remove(header::AUTHORIZATION);
    }
    upstream.target.add_headers(&mut parts.headers);
    let ends_session = if parts.method == Method::DELETE { parts.headers.get(&SESSION_ID).cloned() } else { None };
    let carries_on = era == Era::Legacy && parts.method == Method::POST;
    let body = match received {
        Received::Whole(bytes) if bytes.is_empty() => ToServer::empty(),
        Received::Whole(bytes) if matches!(route, Route::Metadata) => ToServer::Whole(Some(bytes)),
        Received::Whole(bytes) => match exchange.from_client(bytes) {
            Some(bytes) => ToServer::Whole(Some(bytes)),
            None => return not_recorded(&exchange),
        },
        Received::Rest(upload) => ToServer::Upload(upload.for_exchange(&exchange)),
    };
    let reached = match upstream.reach().await {
        Ok(reached) => reached,
        Err(error) => return Box::pin(not_reached(&exchange, body, &error)).await,
    };
    let mut waiting = Waiting {
        call: Some(reached.send(Request::from_parts(parts, body))),
        answer: Answer { exchange, route, upstream, site, carries_on, ends_session, own },
    };
    match (&mut waiting).await {
        Ok((parts, body)) => waiting.answer.begin(parts, body),
        Err(error) => unreachable(&waiting.answer.exchange, &error),
    }
}

/// The store failed and nothing may pass unrecorded.
fn not_recorded(exchange: &Exchange) -> Response<ToClient> {
    let body = exchange.refuse(&Refusal::NotRecorded);
    json_response(StatusCode::INTERNAL_SERVER_ERROR, body)
}

/// There is no server to pass `body` on to. What of it has not come is waited for: the id that an
/// answer must repeat may stand at its end.
async fn not_reached(exchange: &Exchange, body: ToServer, error: &UpstreamError) -> Response<ToClient> {
    if let ToServer::Upload(upload) = body {
        match upload.whole().await {
            Ok(message) => drop(exchange.from_client(message)),
            Err(refused) => return refusal_response(&refused),
        }
    }
    unreachable(exchange, error)
}

fn unreachable(exchange: &Exchange, error: &UpstreamError) -> Response<ToClient> {
    if let Some(refused) = exchange.take_refused() {
        exchange.note(Side::Client, &format!("a body was not passed on to its end: {}", refused.status));
        exchange.ended("message refused");
        return refusal_response(&refused);
    }
    let (why, refusal) = error.explain(&exchange.hub);
    exchange.note(Side::Server, &why);
    exchange.ended(match error {
        UpstreamError::Broken(_) => "server broke off",
        UpstreamError::Connect { .. } | UpstreamError::ConnectTimeout { .. } => "server not reached",
    });
    let status = match error {
        UpstreamError::ConnectTimeout { .. } => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    match exchange.refuse(&refusal) {
        // Clients of the older revisions read a JSON-RPC error only where the status is good; those of
        // the older transport never do, and would take a good status for a promise.
        Some(body) if exchange.era == Era::Legacy && exchange.transport != Transport::Sse => {
            json_response(StatusCode::OK, Some(body))
        }
        Some(body) => json_response(status, Some(body)),
        None => json_response(status, None),
    }
}

pub fn json_response(status: StatusCode, body: Option<Bytes>) -> Response<ToClient> {
    let mut response = Response::new(ToClient::Whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// What is needed once a server answers.
struct Answer {
    exchange: Rc<Exchange>,
    route: Route,
    upstream: Rc<Upstream>,
    site: Rc<Site>,
    /// The call goes on even if the client leaves: it may come back for the answer.
    carries_on: bool,
    /// The session that this exchange is to end.
    ends_session: Option<HeaderValue>,
    /// Whom the client is to take for the resource that the server protects.
    own: Option<OwnResource>,
}

impl Answer {
    fn begin(&self, mut parts: Parts, body: ServerBody) -> Response<ToClient> {
        let Self { exchange, route, .. } = self;
        exchange.response_head(parts.status, &parts.headers);
        if let (Route::Endpoint, Some(id)) = (route, parts.headers.get(&SESSION_ID)) {
            self.site.conversations.bind(&exchange.hub, id.as_bytes(), &exchange.talk);
        }
        if parts.status.is_success()
            && let Some(id) = &self.ends_session
        {
            self.site.conversations.end(id.as_bytes());
        }
        strip_hop_by_hop(&mut parts.headers);
        parts.version = Version::HTTP_11;
        if let Some(own) = &self.own {
            own.in_head(&mut parts.headers, &self.upstream.target);
        }
        if body.is_end() {
            return Response::from_parts(parts, ToClient::empty());
        }
        let tee = self.tee(&parts.headers);
        let is_stream = matches!(tee, Tee::Events(_) | Tee::Connection(_));
        let holds = self.site.hub.records_first || matches!(tee, Tee::Connection(_) | Tee::Document(..));
        if holds {
            // What leaves in the end may be an answer of our own.
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        let relay = RelayBody {
            body: Some(body),
            tee,
            ready: VecDeque::new(),
            holds,
            is_stream,
            exchange: Rc::clone(exchange),
            site: Rc::clone(&self.site),
            carries_on: self.carries_on,
        };
        Response::from_parts(parts, ToClient::Relay(Box::new(relay)))
    }

    /// How the body is looked at.
    fn tee(&self, headers: &HeaderMap) -> Tee {
        let limit = self.site.hub.message_bytes_max;
        if let Some(coding) = headers.get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity") {
            let coding = visible_bytes(coding.as_bytes()).to_string();
            self.exchange.note(Side::Server, &format!("a body that is encoded ({coding}) was passed on unread"));
            return Tee::Nothing;
        }
        match self.route {
            Route::Metadata => match self.own.clone().filter(OwnResource::is_asked_for) {
                Some(own) => Tee::Document(own, BytesMut::new()),
                None => Tee::Nothing,
            },
            Route::Stream if is_media_type(headers, "text/event-stream") => Tee::Connection(Box::new(Stream {
                deframer: SseDeframer::new(limit),
                upstream: Rc::clone(&self.upstream),
                registered: None,
            })),
            _ if is_media_type(headers, "text/event-stream") => Tee::Events(Box::new(SseDeframer::new(limit))),
            _ if is_media_type(headers, "application/json") => Tee::Json(BytesMut::new()),
            _ => Tee::Text(BytesMut::new()),
        }
    }
}

/// A call whose client may leave.
struct Waiting {
    call: Option<Call>,
    answer: Answer,
}

impl Future for Waiting {
    type Output = Result<(Parts, ServerBody), UpstreamError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.call.as_mut().expect("it is polled until it is ready");
        let answered = ready!(Pin::new(call).poll(cx));
        self.call = None;
        Poll::Ready(answered)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let Answer { exchange, route, upstream, site, carries_on, .. } = &self.answer;
        exchange.ended("client left");
        if *carries_on && let Some(place) = site.carried_on() {
            let answer = Answer {
                exchange: Rc::clone(exchange),
                route: route.clone(),
                upstream: Rc::clone(upstream),
                site: Rc::clone(site),
                carries_on: false,
                ends_session: None,
                own: None,
            };
            tokio::task::spawn_local(async move {
                let _place = place;
                if let Ok((parts, body)) = call.await
                    && let ToClient::Relay(mut relay) = answer.begin(parts, body).into_body()
                {
                    relay.drain().await;
                }
            });
        }
    }
}

/// An answer on its way to the client.
pub struct RelayBody {
    /// Gone once it has ended.
    body: Option<ServerBody>,
    tee: Tee,
    /// Looked at and ready to leave.
    ready: VecDeque<Bytes>,
    /// Nothing leaves before it was looked at.
    holds: bool,
    is_stream: bool,
    exchange: Rc<Exchange>,
    site: Rc<Site>,
    carries_on: bool,
}

enum Tee {
    Nothing,
    /// What says which resource the server protects.
    Document(OwnResource, BytesMut),
    /// A message.
    Json(BytesMut),
    /// A stream of messages.
    Events(Box<SseDeframer>),
    /// The stream of an SSE connection, which also says where messages go.
    Connection(Box<Stream>),
    /// Something else, such as the error page of a server in between.
    Text(BytesMut),
}

struct Stream {
    deframer: SseDeframer,
    upstream: Rc<Upstream>,
    /// The connection as we announced it.
    registered: Option<super::site::Registered>,
}

impl RelayBody {
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(ready)));
            }
            let Some(body) = &mut self.body else { return Poll::Ready(None) };
            match ready!(body.poll_data(cx)) {
                Some(Ok(data)) => {
                    let is_end = body.is_end();
                    self.look(data, is_end);
                    if is_end {
                        self.finish();
                    }
                }
                Some(Err(error)) => {
                    self.exchange.ended("server broke off");
                    self.body = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => self.finish(),
            }
        }
    }

    /// Looks at what came, and puts what may leave into `ready`.
    fn look(&mut self, data: Bytes, is_end: bool) {
        if !self.holds {
            self.ready.push_back(data.clone());
        }
        match &mut self.tee {
            Tee::Nothing => {
                if self.holds {
                    self.ready.push_back(data);
                }
            }
            Tee::Document(_, seen) => {
                seen.extend_from_slice(&data);
                if seen.len() > DOCUMENT_BYTES_MAX {
                    self.ready.push_back(seen.split().freeze());
                    self.tee = Tee::Nothing;
                }
            }
            Tee::Json(seen) if seen.is_empty() && is_end && data.len() <= self.site.hub.message_bytes_max => {
                let passed = self.answer(data);
                self.let_out(passed);
            }
            Tee::Json(seen) => {
                // Past the limit it is passed on, but no longer kept.
                if seen.len() <= self.site.hub.message_bytes_max {
                    seen.extend_from_slice(&data);
                }
            }
            Tee::Text(seen) => {
                let room = QUOTED.saturating_sub(seen.len());
                seen.extend_from_slice(&data[..data.len().min(room)]);
                if self.holds {
                    self.ready.push_back(data);
                }
            }
            Tee::Events(deframer) => {
                let mut cuts = Vec::new();
                deframer.push(&data, &mut cuts);
                for cut in cuts {
                    if let (SseCut::TooLarge { size, .. }, false) = (&cut, self.holds) {
                        let text = format!("an event of {size} bytes was passed on unrecorded");
                        self.exchange.note(Side::Server, &text);
                        continue;
                    }
                    let passed = look_at_event(&self.exchange, cut);
                    self.let_out(passed);
                }
            }
            Tee::Connection(stream) => {
                let mut cuts = Vec::new();
                stream.deframer.push(&data, &mut cuts);
                for cut in cuts {
                    let passed = match cut {
                        SseCut::Event(event) if event.event.as_deref() == Some(b"endpoint") => {
                            let announced = stream.announce(&self.site, &self.exchange, &event);
                            if announced.is_none() {
                                // Without one the client would wait for ever.
                                self.exchange.ended("no endpoint");
                                self.body = None;
                                return;
                            }
                            announced
                        }
                        cut => look_at_event(&self.exchange, cut),
                    };
                    self.ready.extend(passed);
                }
            }
        }
    }

    /// Passes the answer on; what must not pass unrecorded gives way to a refusal.
    fn answer(&self, message: Bytes) -> Option<Bytes> {
        let passed = self.exchange.from_server(message, b"");
        passed.or_else(|| self.exchange.refuse(&Refusal::NotRecorded))
    }

    fn let_out(&mut self, passed: Option<Bytes>) {
        if self.holds {
            self.ready.extend(passed);
        }
    }

    fn finish(&mut self) {
        self.body = None;
        match std::mem::replace(&mut self.tee, Tee::Nothing) {
            Tee::Nothing => {}
            Tee::Document(own, seen) => {
                let document = seen.freeze();
                let told = own.in_document(&document);
                if told.is_some() {
                    self.exchange.note(Side::Server, "the metadata was passed on with this proxy as the resource");
                }
                self.ready.push_back(told.unwrap_or(document));
            }
            Tee::Json(seen) if seen.is_empty() => {}
            Tee::Json(seen) if seen.len() > self.site.hub.message_bytes_max && self.holds => {
                let limit = self.site.hub.message_bytes_max;
                self.exchange.note(Side::Server, &format!("an answer of more than {limit} bytes was not passed on"));
                let refused = self.exchange.refuse(&Refusal::TooLarge { limit });
                self.let_out(refused);
            }
            Tee::Json(seen) if seen.len() > self.site.hub.message_bytes_max => {
                let limit = self.site.hub.message_bytes_max;
                let text = format!("an answer of more than {limit} bytes was passed on unrecorded");
                self.exchange.note(Side::Server, &text);
            }
            Tee::Json(seen) => {
                let passed = self.answer(seen.freeze());
                self.let_out(passed);
            }
            Tee::Text(seen) => {
                if !seen.is_empty() {
                    self.exchange.note(Side::Server, &format!("a body that is no message: {}", visible_bytes(&seen)));
                }
            }
            Tee::Events(mut deframer) => {
                let rest = deframer.finish();
                self.note_cut(rest.as_deref());
                self.let_out(rest);
            }
            Tee::Connection(mut stream) => self.note_cut(stream.deframer.finish().as_deref()),
        }
    }

    /// By the standard, an event that no blank line ended counts for nothing.
    fn note_cut(&self, rest: Option<&[u8]>) {
        if let Some(rest) = rest {
            let shown = visible_bytes(&rest[..rest.len().min(QUOTED)]);
            self.exchange.note(Side::Server, &format!("the stream ended in the middle of an event: {shown}"));
        }
    }

    pub fn is_end(&self) -> bool {
        self.body.is_none() && self.ready.is_empty()
    }

    pub fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) if !self.is_stream && !self.holds => body.size_hint(),
            _ => SizeHint::default(),
        }
    }

    /// Lets everything pass with nobody to take it.
    pub async fn drain(&mut self) {
        while let Some(Ok(_)) = std::future::poll_fn(|cx| self.poll_data(cx)).await {}
    }
}

impl Drop for RelayBody {
    fn drop(&mut self) {
        if self.body.is_none() {
            return;
        }
        self.exchange.ended("client left");
        if self.carries_on
            && let Some(place) = self.site.carried_on()
        {
            let mut relay = Self {
                body: self.body.take(),
                tee: std::mem::replace(&mut self.tee, Tee::Nothing),
                ready: VecDeque::new(),
                holds: self.holds,
                is_stream: self.is_stream,
                exchange: Rc::clone(&self.exchange),
                site: Rc::clone(&self.site),
                carries_on: false,
            };
            tokio::task::spawn_local(async move {
                let _place = place;
                relay.drain().await;
            });
        }
    }
}

/// Passes the message of an event, if it holds one. What comes back is the event as it came.
fn look_at_event(exchange: &Exchange, cut: SseCut) -> Option<Bytes> {
    match cut {
        SseCut::Event(SseEvent { raw, data, id, .. }) => match data.filter(|data| !data.is_empty()) {
            Some(data) => exchange.from_server(data, id.as_deref().unwrap_or_default()).map(|_| raw),
            None => Some(raw),
        },
        SseCut::TooLarge { size, head, tail } => exchange.too_large((size, &head, &tail)).map(|answer| {
            let mut out = Gather::default();
            encode_event(None, &answer, &mut out);
            out.to_bytes()
        }),
    }
}

impl Stream {
    /// Announces an endpoint of our own in place of the server's.
    fn announce(&mut self, site: &Rc<Site>, exchange: &Exchange, event: &SseEvent) -> Option<Bytes> {
        let named = String::from_utf8_lossy(event.data.as_deref().unwrap_or_default()).into_owned();
        let Some(endpoint) = self.upstream.target.resolve(&named) else {
            let named = visible_bytes(named.as_bytes()).to_string();
            exchange.note(Side::Server, &format!("the server names an endpoint on another origin: {named}"));
            return None;
        };
        let registered = site.register(Connection { talk: Rc::clone(&exchange.talk), endpoint })?;
        let mut out = Gather::default();
        encode_endpoint(&registered.path(), &mut out);
        self.registered = Some(registered);
        Some(out.to_bytes())
    }
}
