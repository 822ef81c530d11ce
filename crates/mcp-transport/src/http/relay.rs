//! Streamable HTTP to Streamable HTTP, and SSE to SSE: one exchange in, one exchange out, on one
//! task. Statuses, headers and bodies pass as they are; the bodies are looked at on their way.

mod asked;
mod held;
mod tee;
pub mod voice;

use std::cell::RefCell;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request;
use hyper::http::response::Parts;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use mcp_engine::{Conversation, Side};
use mcp_store::Transport;
use mcp_wire::framing::sse::SseDeframer;
use mcp_wire::reply::Refusal;
use mcp_wire::revision::{self, Era};
use mcp_wire::visible::visible_bytes;

use super::body::{ToClient, ToServer};
use super::exchange::{Exchange, Passed, Received, receive};
use super::heads::{accepts_events, is_media_type, strip_hop_by_hop};
use super::resource::OwnResource;
use super::site::{Site, refusal_response};
use super::strict;
use super::upstream::{Call, ServerBody, Upstream, UpstreamError};
pub use tee::RelayBody;
use tee::{Stream, Tee};
use voice::Inbox;

const SESSION_ID: HeaderName = HeaderName::from_static(revision::SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(revision::VERSION_HEADER);

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
    pub conversation: Rc<RefCell<Conversation>>,
    pub endpoint: Uri,
    /// What we have to say on its stream ourselves.
    inbox: Rc<Inbox>,
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
    let is_governed = site.state.is_governed();
    let received = match receive(body, &site.state).await {
        // Nothing leaves before all of it was judged.
        Ok(Received::Rest(upload)) if is_governed => Box::pin(upload.whole()).await.map(Received::Whole),
        received => received,
    };
    let received = match received {
        Ok(received) => received,
        Err(refused) => return refusal_response(&refused),
    };
    if is_governed && let Err(refused) = strict::check_body(&parts.method, received.is_empty()) {
        return refusal_response(&refused);
    }
    let conversation = match &route {
        Route::Message(connection) => Rc::clone(&connection.conversation),
        Route::Endpoint | Route::Metadata => {
            site.conversations.of_request(&site.state, peer, &parts.headers, era, &received)
        }
        Route::Stream => site.conversations.new_one(&site.state),
    };
    let exchange = Exchange::open(&site.state, conversation, transport, era);
    exchange.can_ask.set(match route {
        Route::Endpoint => era == Era::Legacy && accepts_events(&parts.headers),
        Route::Message(_) => true,
        Route::Stream | Route::Metadata => false,
    });
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    exchange.request_head(&parts.method, target, &parts.headers);
    if is_governed
        && let Received::Whole(body) = &received
        && let Err(what) = strict::check_mirrored(&site.state.tools.borrow(), &body.clone().into(), &parts.headers, era)
    {
        return mismatched(&exchange, body.clone(), what);
    }
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
    if exchange.conversation.borrow().is_new() && !matches!(route, Route::Metadata) {
        site.voices.keep(&exchange, &parts);
    }
    let ends_session = if parts.method == Method::DELETE { parts.headers.get(&SESSION_ID).cloned() } else { None };
    let carries_on = era == Era::Legacy && parts.method == Method::POST;
    let answer = Answer { exchange, route, upstream, site, carries_on, ends_session, own };
    let body = match received {
        Received::Whole(bytes) if bytes.is_empty() => ToServer::empty(),
        Received::Whole(bytes) if matches!(answer.route, Route::Metadata) => ToServer::Whole(Some(bytes)),
        Received::Whole(bytes) => match answer.exchange.from_client(bytes) {
            Passed::Onward(bytes) => ToServer::Whole(Some(bytes)),
            Passed::Parked(sequence) => match Box::pin(held::request(&answer, &mut parts, sequence)).await {
                Ok(bytes) => ToServer::Whole(Some(bytes)),
                Err(response) => return response,
            },
            Passed::Withheld => return held::accepted(&answer.exchange),
            Passed::NotRecorded => return not_recorded(&answer.exchange),
        },
        Received::Rest(upload) => ToServer::Upload(upload.for_exchange(&answer.exchange)),
    };
    let reached = match answer.upstream.reach().await {
        Ok(reached) => reached,
        Err(error) => return Box::pin(not_reached(&answer.exchange, body, &error)).await,
    };
    let mut waiting = Waiting { call: Some(reached.send(Request::from_parts(parts, body))), answer };
    match (&mut waiting).await {
        Ok((mut parts, _)) if is_governed && waiting.answer.is_unreadable(&parts) => {
            waiting.answer.take_head(&mut parts);
            unreadable(&waiting.answer.exchange)
        }
        Ok((parts, body)) if waiting.answer.is_to_be_seen(&parts, &body) => {
            Box::pin(held::answer(&waiting.answer, parts, body)).await
        }
        Ok((parts, body)) => waiting.answer.begin(parts, body),
        Err(error) => unreachable(&waiting.answer.exchange, &error),
    }
}

/// The store failed and nothing may pass unrecorded.
fn not_recorded(exchange: &Exchange) -> Response<ToClient> {
    let body = exchange.refuse(&Refusal::NotRecorded);
    json_response(StatusCode::INTERNAL_SERVER_ERROR, body)
}

/// Headers and body of a request disagree: whoever judges goes by the body, and others by the headers.
fn mismatched(exchange: &Exchange, body: Bytes, what: String) -> Response<ToClient> {
    let answer = exchange.refuse_opening(body, &Refusal::HeaderMismatch { what });
    let response = json_response(StatusCode::BAD_REQUEST, Some(answer));
    exchange.response_head(response.status(), response.headers());
    response
}

/// There is no server to pass `body` on to. What of it has not come is waited for: the id that an
/// answer must repeat may stand at its end.
async fn not_reached(exchange: &Exchange, body: ToServer, error: &UpstreamError) -> Response<ToClient> {
    if let ToServer::Upload(upload) = body {
        match upload.whole().await {
            Ok(message) => exchange.keep_from_client(message),
            Err(refused) => return refusal_response(&refused),
        }
    }
    unreachable(exchange, error)
}

/// What the server says is encoded, although nobody asked for that, and may not pass unread.
fn unreadable(exchange: &Exchange) -> Response<ToClient> {
    exchange.note(Side::Server, "a body that is encoded was not passed on");
    exchange.ended("answer refused");
    json_response(StatusCode::BAD_GATEWAY, exchange.refuse(&Refusal::GARBLED))
}

fn unreachable(exchange: &Exchange, error: &UpstreamError) -> Response<ToClient> {
    if let Some(refused) = exchange.take_refused() {
        exchange.note(Side::Client, &format!("a body was not passed on to its end: {}", refused.status));
        exchange.ended("message refused");
        return refusal_response(&refused);
    }
    let (why, refusal) = error.explain(&exchange.state);
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
    json_response_in(HeaderMap::new(), status, body)
}

/// The same, with its headers where others were.
pub fn json_response_in(room: HeaderMap, status: StatusCode, body: Option<Bytes>) -> Response<ToClient> {
    let mut response = Response::new(ToClient::Whole(body));
    *response.status_mut() = status;
    *response.headers_mut() = room;
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
    /// The same for a task that goes on without the client.
    fn without_client(&self) -> Self {
        Self {
            exchange: Rc::clone(&self.exchange),
            route: self.route.clone(),
            upstream: Rc::clone(&self.upstream),
            site: Rc::clone(&self.site),
            carries_on: false,
            ends_session: None,
            own: None,
        }
    }

    /// Sends a request and sees its answer through, with nobody to take it.
    async fn send_alone(&self, request: Request<ToServer>) {
        let answered = match self.upstream.send(request).await {
            Ok(call) => call.await,
            Err(error) => Err(error),
        };
        match answered {
            Ok((parts, body)) => {
                if let ToClient::Relay(mut relay) = self.begin(parts, body).into_body() {
                    relay.drain().await;
                }
            }
            Err(error) => drop(unreachable(&self.exchange, &error)),
        }
    }

    /// Whether an answer has to be whole, and may be held, before anything of it leaves.
    fn is_to_be_seen(&self, parts: &Parts, body: &ServerBody) -> bool {
        self.exchange.looks_first()
            && (matches!(self.route, Route::Endpoint)
                || self.site.state.is_governed() && !matches!(self.route, Route::Metadata))
            && !body.is_end()
            && encoding(&parts.headers).is_none()
            && is_media_type(&parts.headers, "application/json")
    }

    /// Whether a body has messages in it that nobody here could judge.
    fn is_unreadable(&self, parts: &Parts) -> bool {
        !matches!(self.route, Route::Metadata) && encoding(&parts.headers).is_some()
    }

    /// Takes note of the head of an answer, and makes it ours.
    fn take_head(&self, parts: &mut Parts) {
        let Self { exchange, route, .. } = self;
        exchange.response_head(parts.status, &parts.headers);
        if let (Route::Endpoint, Some(id)) = (route, parts.headers.get(&SESSION_ID)) {
            self.site.conversations.bind(&exchange.state, id.as_bytes(), &exchange.conversation);
            self.site.voices.name_session(exchange, id);
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
    }

    fn begin(&self, mut parts: Parts, body: ServerBody) -> Response<ToClient> {
        self.take_head(&mut parts);
        if body.is_end() {
            return Response::from_parts(parts, ToClient::empty());
        }
        let tee = self.tee(&parts.headers);
        let relay = RelayBody::new(self, body, tee);
        if relay.holds() {
            // What leaves in the end may be an answer of our own.
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        Response::from_parts(parts, ToClient::Relay(Box::new(relay)))
    }

    /// How the body is looked at.
    fn tee(&self, headers: &HeaderMap) -> Tee {
        let limit = self.site.state.message_bytes_max;
        if let Some(coding) = encoding(headers) {
            let coding = visible_bytes(coding.as_bytes()).to_string();
            self.exchange.note(Side::Server, &format!("a body that is encoded ({coding}) was passed on unread"));
            return Tee::Nothing;
        }
        match self.route {
            Route::Metadata => match self.own.clone().filter(OwnResource::is_asked_for) {
                Some(own) => Tee::Document(own, BytesMut::new()),
                None => Tee::Nothing,
            },
            Route::Stream if is_media_type(headers, "text/event-stream") => {
                Tee::Connection(Box::new(Stream::new(limit, &self.upstream)))
            }
            _ if is_media_type(headers, "text/event-stream") => Tee::Events(Box::new(SseDeframer::new(limit))),
            _ if is_media_type(headers, "application/json") => Tee::Json(BytesMut::new()),
            _ => Tee::Text(BytesMut::new()),
        }
    }
}

/// How a body is encoded, if it is.
fn encoding(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity")
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
        let Answer { exchange, site, carries_on, .. } = &self.answer;
        exchange.ended("client left");
        if *carries_on && let Some(place) = site.carried_on() {
            let answer = self.answer.without_client();
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
