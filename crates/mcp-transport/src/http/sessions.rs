//! HTTP clients whose server speaks another transport, or is a gateway. The proxy is their server: it keeps their
//! sessions, streams and statuses.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use mcp_engine::Pipeline;
use mcp_engine::entrance::Principal;
use mcp_engine::pipeline::is_noise;
use mcp_link::runtime::OpenCall;
use mcp_link::{ClientSide, Link};
use mcp_store::Transport;
use mcp_wire::framing::sse::encode_endpoint;
use mcp_wire::reply::{self, Refusal, TurnedAway};
use mcp_wire::revision::{self, Era, Revision};
use mcp_wire::{Gather, Kind, Message, scan};
use uuid::Uuid;

use super::body::ToClient;
use super::client::HttpClient;
use super::client::event_log::EventId;
use super::client::stream::{First, Stream};
use super::exchange::{Exchange, Received, receive};
use super::gate::{Caller, Refused, refused, unauthorized};
use super::heads::{accepts_events, is_encoded};
use super::http_side::HttpSide;
use super::relay::{json_response, json_response_in};
use super::response_stream::{PacedBody, ResponseStream, ResponseStreamBody};
use super::site::{MESSAGE, Server, Site, not_allowed, plain, refusal_response, turn_away};
use super::sse_side::SseSide;
use super::state::HttpState;
use super::strict;
use crate::child::side::{ChildOptions, ChildSide};
use crate::stdio::writer::PipeWriter;

const SESSION: HeaderName = HeaderName::from_static(revision::SESSION_HEADER);
const VERSION: HeaderName = HeaderName::from_static(revision::VERSION_HEADER);
const LAST_EVENT: HeaderName = HeaderName::from_static(revision::LAST_EVENT_HEADER);

/// Server processes at a time; beyond them the listener answers 503.
const CHILDREN_MAX: usize = 64;
/// Sessions at a time where the server is not a process; beyond them the listener answers 503.
const SESSIONS_MAX: usize = 10_000;
/// A session of `/mcp` without a message for this long is over.
const IDLE_FOR: Duration = Duration::from_secs(30 * 60);
/// A longer message of a client whose head shows no token is not searched for one.
const UNKNOWN_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of a client's capabilities that are compared to decide whether it shares a server.
const CAPABILITIES_BYTES_MAX: usize = 16 * 1024;

/// The conversations of clients whose server speaks another transport.
#[derive(Default)]
pub struct Sessions {
    /// Clients whose answer is not yet on its way to them.
    unanswered: Rc<Cell<usize>>,
    /// By the session id we gave the client.
    sessions: RefCell<HashMap<Uuid, Session, RandomState>>,
    /// Where there are no sessions any more: by who the client is and what it can do.
    shared: RefCell<HashMap<Box<[u8]>, Session>>,
    /// SSE connections, by the id in their message endpoint.
    streams: RefCell<HashMap<Uuid, Rc<Link>, RandomState>>,
    /// Clients on stdio that came through the door, for as long as somebody sees to them.
    piped: RefCell<Vec<Rc<Link>>>,
    children: Rc<Cell<usize>>,
}

/// A client of Streamable HTTP and its link.
#[derive(Clone)]
struct Session {
    link: Rc<Link>,
    client: Rc<HttpClient>,
}

/// A server process, for as long as anything of it is there.
struct Counted(Rc<Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Sessions {
    /// Forgets conversations that are over, and ends those that nobody uses.
    pub fn sweep(&self, state: &HttpState) {
        let is_kept = |session: &Session| {
            if state.beats.since(session.client.used()) > IDLE_FOR {
                session.link.end();
            }
            !session.link.is_over()
        };
        self.sessions.borrow_mut().retain(|_, session| is_kept(session));
        self.shared.borrow_mut().retain(|_, session| is_kept(session));
        self.streams.borrow_mut().retain(|_, link| !link.is_over());
    }

    /// The links of clients on HTTP.
    fn over_http(&self) -> Vec<Rc<Link>> {
        let (sessions, shared) = (self.sessions.borrow(), self.shared.borrow());
        let links = sessions.values().chain(shared.values()).map(|session| &session.link);
        links.chain(self.streams.borrow().values()).cloned().collect()
    }

    /// Ends every conversation.
    pub fn end_all(&self) {
        let links = self.over_http();
        self.sessions.take();
        self.shared.take();
        self.streams.take();
        links.iter().for_each(|link| link.end());
        for link in self.piped.borrow().iter() {
            let refusal = if link.runtime.has_failed() { Refusal::NotRecorded } else { Refusal::StreamLost };
            link.answer_open_calls(&refusal);
            link.end();
        }
    }

    /// Answers every call that somebody still waits for.
    pub fn answer_open_calls(&self, refusal: &Refusal) {
        self.over_http().iter().for_each(|link| link.answer_open_calls(refusal));
    }

    /// Nobody sees to a client on stdio any more.
    pub fn left(&self, link: &Rc<Link>) {
        self.piped.borrow_mut().retain(|other| !Rc::ptr_eq(other, link));
    }

    /// How many clients on stdio are seen to.
    pub fn piped(&self) -> usize {
        self.piped.borrow().len()
    }

    /// A client waits for the answer to a POST.
    fn unanswered(&self) -> OpenCall {
        OpenCall::counted(&self.unanswered)
    }

    pub fn is_any_unanswered(&self) -> bool {
        self.unanswered.get() > 0
    }

    /// Calls on the streams of connections and on pipes, and answers that wait there. Those of sessions are counted
    /// where they are kept.
    pub fn open_calls(&self) -> usize {
        let of_stream = |link: &Rc<Link>| link.open_calls() + usize::from(link.client.unread_bytes() > 0);
        self.streams.borrow().values().chain(self.piped.borrow().iter()).map(of_stream).sum::<usize>()
            + self.unanswered.get()
    }

    /// The conversation with this number, if it lasts.
    pub fn link(&self, number: u32) -> Option<Rc<Link>> {
        self.find(|link| link.conversation.borrow().number() == number)
    }

    /// Whether any conversation lasts.
    pub fn is_any_open(&self) -> bool {
        self.find(|_| true).is_some()
    }

    /// A conversation that lasts and is meant.
    fn find(&self, is_meant: impl Fn(&Link) -> bool) -> Option<Rc<Link>> {
        let (sessions, shared, streams) = (self.sessions.borrow(), self.shared.borrow(), self.streams.borrow());
        let piped = self.piped.borrow();
        let of_sessions = sessions.values().chain(shared.values()).map(|session| &session.link);
        let mut all = of_sessions.chain(streams.values()).chain(piped.iter());
        all.find(|link| !link.is_over() && is_meant(link)).cloned()
    }

    /// Server processes that are still there.
    pub fn children(&self) -> usize {
        self.children.get()
    }

    fn len(&self) -> usize {
        self.sessions.borrow().len() + self.shared.borrow().len() + self.streams.borrow().len() + self.piped()
    }
}

/// Begins a conversation with a client on stdio.
pub fn begin_piped(site: &Rc<Site>, out: Rc<PipeWriter>) -> Result<Rc<Link>, Refusal> {
    let link = begin(site, None, out).map_err(|refused| refused.refusal)?;
    site.sessions.piped.borrow_mut().push(Rc::clone(&link));
    Ok(link)
}

/// Begins a conversation with a server of its own.
fn begin(site: &Rc<Site>, owner: Option<&Rc<Principal>>, client: Rc<dyn ClientSide>) -> Result<Rc<Link>, Refused> {
    let overloaded = Refused { status: StatusCode::SERVICE_UNAVAILABLE, refusal: Refusal::Overloaded };
    let sessions = &site.sessions;
    let conversation = site.state.look(match &site.server {
        Server::Many(_) => Pipeline::begin_entrance,
        _ => Pipeline::begin_conversation,
    });
    let link = Link::new(&site.state.runtime, conversation, client);
    if let Some(owner) = owner {
        link.belong_to(owner);
    }
    let is_full = sessions.len() >= SESSIONS_MAX;
    match &site.server {
        Server::Many(_) | Server::Http(_) | Server::Sse(_) if is_full => return Err(overloaded),
        Server::Many(backend) => link.connect(backend.welcome(&link, owner.cloned())),
        Server::Command(command) => {
            if sessions.children.get() >= CHILDREN_MAX {
                return Err(overloaded);
            }
            sessions.children.set(sessions.children.get() + 1);
            let alive = Box::new(Counted(Rc::clone(&sessions.children)));
            ChildSide::start(&link, command, &ChildOptions::default(), alive).map_err(|error| {
                site.state.tell(format!("error: the server cannot be started: {error}"));
                Refused {
                    status: StatusCode::BAD_GATEWAY,
                    refusal: Refusal::Unreachable { what: "not started".into() },
                }
            })?;
        }
        Server::Http(upstream) => HttpSide::start(&link, &site.state, Rc::clone(upstream), Box::new(())),
        Server::Sse(upstream) => SseSide::start(&link, &site.state, Rc::clone(upstream), Box::new(())),
    }
    Ok(link)
}

/// What a POST opened.
struct Opened {
    session: Session,
    /// By this very request.
    is_new: bool,
    exchange: Rc<Exchange>,
    message: Message,
}

/// Answers a POST of a client of Streamable HTTP.
#[expect(
    clippy::manual_async_fn,
    reason = "an `async fn` has room for all that it is given twice, and this waits a lot"
)]
pub fn post(
    site: Rc<Site>,
    (peer, caller): (IpAddr, Caller),
    parts: Parts,
    body: Incoming,
) -> impl Future<Output = Response<ToClient>> + use<> {
    async move {
        if let Err(refused) = check_plain(&parts.headers).and_then(|()| check_length(&caller, &body)) {
            return refusal_response(&refused);
        }
        let body = match receive_whole(&site, body).await {
            Ok(body) => body,
            Err(refused) => return refusal_response(&refused),
        };
        let (who, body) = match site.gate.admit_message(caller, &body) {
            Ok((who, without_token)) => (who, without_token.unwrap_or(body)),
            Err(refusal) => return refuse_message(&body, &refusal),
        };
        let opened = match open(&site, (peer, &who), &parts, &body) {
            Ok(opened) => opened,
            Err(refused) => return refusal_response(&refused),
        };
        let Opened { session, is_new, exchange, message } = opened;
        let Session { link, client } = session;
        if let Err(refusal) = check_message(&site, &client, &message, &parts.headers) {
            return turned_down(&exchange, body, &refusal);
        }
        let headers = emptied(parts);
        link.server_room().await;
        let Some(stream) = client.from_client(&link, &exchange, message) else {
            return respond(&exchange, Response::new(ToClient::empty()), StatusCode::ACCEPTED);
        };
        let mut waiting = Waiting {
            session: Session { link: Rc::clone(&link), client: Rc::clone(&client) },
            stream: Some(stream),
            unanswered: Some(site.sessions.unanswered()),
        };
        let mut response = match waiting.first().await {
            Some(First::Json(answer)) => answered(&site, &client, &body, answer, headers),
            Some(First::Stream(response_stream)) => waiting.stream(response_stream),
            Some(First::Late) => plain(StatusCode::GATEWAY_TIMEOUT, "no answer comes\n"),
            None if site.state.has_failed() => {
                let (status, refusal) = (StatusCode::INTERNAL_SERVER_ERROR, Refusal::NotRecorded);
                return refusal_response(&Refused { status, refusal });
            }
            None => plain(StatusCode::NOT_FOUND, "the session is over\n"),
        };
        if is_new
            && !link.is_over()
            && let Some(id) = client.id
        {
            response.headers_mut().insert(SESSION, session_value(id));
        }
        exchange.last_head(response.status(), response.headers());
        response
    }
}

/// Finds the conversation that a POST belongs to, or begins one.
fn open(
    site: &Rc<Site>,
    (peer, who): (IpAddr, &Rc<Principal>),
    parts: &Parts,
    body: &Bytes,
) -> Result<Opened, Refused> {
    let message = Message::new(body.clone());
    let era = Era::of_header(parts.headers.get(&VERSION).map(|value| value.as_bytes()));
    // The server refuses an unknown version that the request itself names, too.
    if !parts.headers.contains_key(&SESSION)
        && let Err(refused) = check_version(&parts.headers, None)
        && !scan::mentions(body, &scan::PROTOCOL_VERSION)
    {
        return Err(refused);
    }
    let (session, is_new) = match era {
        Era::Modern => (shared_session(site, (peer, who), &parts.headers, body)?, false),
        Era::Legacy => match parts.headers.get(&SESSION) {
            Some(id) => (session_of(site, who, id, &parts.headers)?, false),
            None if is_initialize(&message) => (new_session(site, who)?, true),
            None if scan::mentions(body, &scan::PROTOCOL_VERSION) => {
                (shared_session(site, (peer, who), &parts.headers, body)?, false)
            }
            None => return Err(refused(StatusCode::BAD_REQUEST, "a session id is needed")),
        },
    };
    let conversation = Rc::clone(&session.link.conversation);
    let exchange = Exchange::open(&site.state, conversation, Transport::StreamableHttp, era);
    // Only rules ask.
    let can_ask = || era == Era::Legacy && accepts_events(&parts.headers);
    exchange.can_ask.set(site.state.is_governed() && can_ask());
    exchange.request_head(&parts.method, target(parts), &parts.headers);
    Ok(Opened { session, is_new, exchange, message })
}

fn respond(exchange: &Exchange, mut response: Response<ToClient>, status: StatusCode) -> Response<ToClient> {
    *response.status_mut() = status;
    exchange.response_head(status, response.headers());
    response
}

/// The headers of a request without what they said. Those of its answer are put there, and then, by hyper, those of
/// the next request.
fn emptied(parts: Parts) -> HeaderMap {
    let mut headers = parts.headers;
    headers.clear();
    headers
}

fn target(parts: &Parts) -> &str {
    parts.uri.path_and_query().map_or("/", |target| target.as_str())
}

async fn receive_whole(site: &Site, body: Incoming) -> Result<Bytes, Refused> {
    match receive(body, &site.state).await? {
        Received::Whole(bytes) => Ok(bytes),
        Received::Rest(upload) => Box::pin(upload.whole()).await,
    }
}

/// Whether a body is the message itself: a server on another transport would not be told that it is not.
fn check_plain(headers: &HeaderMap) -> Result<(), Refused> {
    if !is_encoded(headers) {
        return Ok(());
    }
    Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "an encoded body cannot be passed on to this server"))
}

/// Whether a message is worth reading: somebody who has not shown a token is not listened to for long.
fn check_length(caller: &Caller, body: &Incoming) -> Result<(), Refused> {
    let is_short = || body.size_hint().upper().is_some_and(|length| length <= UNKNOWN_BYTES_MAX);
    if caller.is_some() || is_short() { Ok(()) } else { Err(unauthorized()) }
}

/// Turns a message away whose sender is not let in.
fn refuse_message(message: &Bytes, refusal: &Refusal) -> Response<ToClient> {
    let body = match Message::new(message.clone()).id() {
        Some(id) => reply::error(&id, refusal),
        None => reply::error_without_id(refusal),
    };
    let mut response = json_response(StatusCode::BAD_REQUEST, Some(body));
    if let Some(why) = TurnedAway::of(refusal) {
        turn_away(&mut response, why);
    }
    response
}

fn is_initialize(message: &Message) -> bool {
    message.glance().method.is_some_and(|span| message.slice(span) == b"\"initialize\"")
}

fn session_value(id: Uuid) -> HeaderValue {
    HeaderValue::from_str(&id.to_string()).expect("a uuid is plain text")
}

fn new_session(site: &Rc<Site>, who: &Rc<Principal>) -> Result<Session, Refused> {
    let id = Uuid::new_v4();
    let session = begin_session(site, who, Some(id), Era::Legacy)?;
    site.sessions.sessions.borrow_mut().insert(id, session.clone());
    Ok(session)
}

fn begin_session(site: &Rc<Site>, who: &Rc<Principal>, id: Option<Uuid>, era: Era) -> Result<Session, Refused> {
    let client = HttpClient::new(id, era, Rc::clone(&site.state.beats), Rc::clone(&site.state.tools));
    let link = begin(site, Some(who), Rc::<HttpClient>::clone(&client))?;
    Ok(Session { link, client })
}

/// The session under an id, if it is theirs. Others are not told that it exists.
fn find_session(site: &Site, who: &Principal, id: &HeaderValue) -> Result<Session, Refused> {
    let id: Option<Uuid> = id.to_str().ok().and_then(|id| id.parse().ok());
    let session = id.and_then(|id| site.sessions.sessions.borrow().get(&id).cloned());
    session
        .filter(|session| !session.link.is_over() && session.link.belongs_to(who))
        .ok_or_else(|| refused(StatusCode::NOT_FOUND, "no such session"))
}

/// The same for a request that names the revision of its session, or none.
fn session_of(site: &Site, who: &Principal, id: &HeaderValue, headers: &HeaderMap) -> Result<Session, Refused> {
    let session = find_session(site, who, id)?;
    check_version(headers, Some(&session.client))?;
    Ok(session)
}

/// Whether the version header, if there is one, names one revision of the protocol, or the one that the server of the
/// session agreed to. Of a later date the body tells.
fn check_version(headers: &HeaderMap, session: Option<&HttpClient>) -> Result<(), Refused> {
    let mut named = headers.get_all(&VERSION).iter();
    let Some(version) = named.next() else { return Ok(()) };
    if named.any(|other| other != version) {
        return Err(refused(StatusCode::BAD_REQUEST, "two values of MCP-Protocol-Version"));
    }
    let version = version.as_bytes();
    let is_known = Revision::parse(version).is_some()
        || Era::of_header(Some(version)) == Era::Modern
        || session.is_some_and(|session| session.agreed_to(version));
    if is_known { Ok(()) } else { Err(refused(StatusCode::BAD_REQUEST, "MCP-Protocol-Version names no revision")) }
}

/// The conversation of a client that has no session: one for each client and what it can do, because
/// a server may offer more to a client that can do more.
fn shared_session(
    site: &Rc<Site>,
    (peer, who): (IpAddr, &Rc<Principal>),
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Session, Refused> {
    let principal = match site.gate.authenticates() {
        true => who.name.as_bytes(),
        false => headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default(),
    };
    let capabilities = scan::member_anywhere(body, b"\"io.modelcontextprotocol/clientCapabilities\"");
    let capabilities = capabilities.unwrap_or_default();
    let key: Box<[u8]> = [
        peer.to_string().as_bytes(),
        b"\n",
        principal,
        b"\n",
        &capabilities[..capabilities.len().min(CAPABILITIES_BYTES_MAX)],
    ]
    .concat()
    .into();
    if let Some(session) = site.sessions.shared.borrow().get(&key).filter(|session| !session.link.is_over()) {
        return Ok(session.clone());
    }
    let session = begin_session(site, who, None, Era::Modern)?;
    site.sessions.shared.borrow_mut().insert(key, session.clone());
    Ok(session)
}

/// Whether a body is a message that a server could answer. A server on a pipe has no status to say so with. A body
/// that only looks broken goes on: the server may read it.
fn check_message(site: &Site, session: &HttpClient, message: &Message, headers: &HeaderMap) -> Result<(), Refusal> {
    if let Some(what) = no_message(site, message) {
        return Err(Refusal::BadRequest { what: what.into() });
    }
    if session.era == Era::Legacy {
        return Ok(());
    }
    strict::check_all(&site.state.tools.borrow(), message, headers).map_err(|what| Refusal::HeaderMismatch { what })?;
    let is_gateway = matches!(site.server, Server::Many(_));
    if !is_gateway && message.glance().kind == Kind::Request && message.protocol_version().is_none() {
        let what = format!("params._meta has no {}", revision::PROTOCOL_VERSION);
        return Err(Refusal::BadParams { what });
    }
    Ok(())
}

/// Why a body is not passed on to a server on a pipe, if it is no message at all. Other servers say so themselves, and
/// where messages are judged, they are refused there.
fn no_message(site: &Site, message: &Message) -> Option<&'static str> {
    match site.server {
        _ if site.state.is_governed() => None,
        Server::Many(_) | Server::Http(_) | Server::Sse(_) => None,
        Server::Command(_) if is_noise(message.bytes()) => Some("the body is not JSON, or no message"),
        Server::Command(_) if message.glance().kind == Kind::OtherJson && message.peek().method.is_some() => {
            Some("`method` is not text")
        }
        Server::Command(_) => None,
    }
}

/// Refuses a request for what it says of itself. It is recorded, and goes nowhere.
fn turned_down(exchange: &Exchange, body: Bytes, refusal: &Refusal) -> Response<ToClient> {
    let body = match exchange.state.is_governed() {
        true => exchange.refuse_opening(body, refusal),
        false => {
            exchange.keep_from_client(body);
            exchange.refuse(refusal).unwrap_or_else(|| reply::error_without_id(refusal))
        }
    };
    respond(exchange, json_response(StatusCode::BAD_REQUEST, Some(body)), StatusCode::BAD_REQUEST)
}

/// The response that an answer is sent with, whose headers go where there is room for them.
fn answered(site: &Site, session: &HttpClient, request: &Bytes, answer: Bytes, room: HeaderMap) -> Response<ToClient> {
    let turned_away = match site.gate.has_entrance() && scan::glance(&answer).kind == Kind::Error {
        true => TurnedAway::told_by(&answer),
        false => None,
    };
    let status = status_of(session.era, request, &answer);
    let mut response = match PacedBody::suits(&answer) {
        false => json_response_in(room, status, Some(answer)),
        true => json_response_in(room, status, None).map(|_| ToClient::Paced(Box::new(session.paced(answer)))),
    };
    if let Some(why) = turned_away {
        turn_away(&mut response, why);
    }
    response
}

/// The status that an answer is sent with.
pub fn status_of(era: Era, request: &Bytes, answer: &Bytes) -> StatusCode {
    match era {
        Era::Modern if lacks_what_is_required(request, answer) => StatusCode::BAD_REQUEST,
        _ => status_of_own(era, answer),
    }
}

/// The same of an answer that we gave ourselves. What it says of parameters is about what they name, and
/// not about what every request has to say of itself.
pub fn status_of_own(era: Era, answer: &Bytes) -> StatusCode {
    match era {
        Era::Modern => modern_status(answer),
        // It is to nothing that the client waits for, so only the status tells that.
        Era::Legacy if reply::is_without_id(answer) => StatusCode::BAD_REQUEST,
        Era::Legacy => StatusCode::OK,
    }
}

/// Whether an answer refuses parameters that lack what every request has to say of itself.
fn lacks_what_is_required(request: &Bytes, answer: &Bytes) -> bool {
    const REQUIRED: [&[u8]; 3] = [
        b"\"io.modelcontextprotocol/protocolVersion\"",
        b"\"io.modelcontextprotocol/clientInfo\"",
        b"\"io.modelcontextprotocol/clientCapabilities\"",
    ];
    error_code(answer).is_some_and(reply::is_invalid_params)
        && REQUIRED.iter().any(|key| scan::member_anywhere(request, key).is_none())
}

/// The status that the newest revision wants an answer to have.
fn modern_status(answer: &Bytes) -> StatusCode {
    let status = error_code(answer).and_then(reply::status_of);
    status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or_default()
}

fn error_code(answer: &Bytes) -> Option<&[u8]> {
    if scan::glance(answer).kind != Kind::Error {
        return None;
    }
    scan::member_at(answer, ["error", "code"]).map(|span| &answer[span.range()])
}

/// Answers a GET of a client of Streamable HTTP.
pub fn get(site: &Rc<Site>, who: &Principal, parts: &Parts) -> Response<ToClient> {
    listen(site, who, parts).unwrap_or_else(|refused| refusal_response(&refused))
}

fn listen(site: &Rc<Site>, who: &Principal, parts: &Parts) -> Result<Response<ToClient>, Refused> {
    let era = Era::of_header(parts.headers.get(&VERSION).map(|value| value.as_bytes()));
    if era == Era::Modern {
        return Ok(not_allowed("POST"));
    }
    let Some(id) = parts.headers.get(&SESSION) else {
        return Err(refused(StatusCode::BAD_REQUEST, "a session id is needed"));
    };
    let Session { link, client } = session_of(site, who, id, &parts.headers)?;
    let exchange = Exchange::open(&site.state, Rc::clone(&link.conversation), Transport::StreamableHttp, era);
    exchange.request_head(&parts.method, target(parts), &parts.headers);
    let last = parts.headers.get(&LAST_EVENT).and_then(|last| EventId::parse(last.as_bytes()));
    let (response_stream, stream) = client.open_stream(exchange.number, last);
    let leaving = (client, Rc::clone(&response_stream), Rc::clone(&exchange));
    let body = ResponseStreamBody::new(response_stream, move || {
        let (client, response_stream, exchange) = leaving;
        client.left(&stream, &response_stream);
        drop(exchange);
    });
    Ok(respond(&exchange, stream_response(body), StatusCode::OK))
}

/// Answers a DELETE of a client of Streamable HTTP.
pub fn delete(site: &Rc<Site>, who: &Principal, parts: &Parts) -> Response<ToClient> {
    end(site, who, parts).unwrap_or_else(|refused| refusal_response(&refused))
}

fn end(site: &Rc<Site>, who: &Principal, parts: &Parts) -> Result<Response<ToClient>, Refused> {
    if Era::of_header(parts.headers.get(&VERSION).map(|value| value.as_bytes())) == Era::Modern {
        return Ok(not_allowed("POST"));
    }
    let Some(id) = parts.headers.get(&SESSION) else {
        return Err(refused(StatusCode::BAD_REQUEST, "a session id is needed"));
    };
    let Session { link, .. } = session_of(site, who, id, &parts.headers)?;
    let exchange = Exchange::open(&site.state, Rc::clone(&link.conversation), Transport::StreamableHttp, Era::Legacy);
    exchange.request_head(&parts.method, target(parts), &parts.headers);
    link.end();
    Ok(respond(&exchange, Response::new(ToClient::empty()), StatusCode::OK))
}

fn stream_response(body: ResponseStreamBody) -> Response<ToClient> {
    let mut response = Response::new(ToClient::ResponseStream(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Servers in between must not hold events back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// A client that waits for an answer, and may leave.
struct Waiting {
    session: Session,
    stream: Option<Rc<Stream>>,
    /// A call is over when its answer is there, but nobody may end before the client has it.
    unanswered: Option<OpenCall>,
}

impl Waiting {
    async fn first(&mut self) -> Option<First> {
        let stream = Rc::clone(self.stream.as_ref()?);
        let first = std::future::poll_fn(|cx| stream.poll_first(cx)).await;
        if !matches!(first, Some(First::Stream(_))) {
            self.stream = None;
        }
        first
    }

    fn stream(mut self, response_stream: Rc<ResponseStream>) -> Response<ToClient> {
        let (session, stream, unanswered) = (self.session.clone(), self.stream.take(), self.unanswered.take());
        let current = Rc::clone(&response_stream);
        let body = ResponseStreamBody::new(response_stream, move || {
            if let Some(stream) = stream {
                leave(&session, &stream, Some(&current));
            }
            drop(unanswered);
        });
        stream_response(body)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            leave(&self.session, &stream, None);
        }
    }
}

/// The client closed its connection. Before the newest revision the call goes on, and can be asked
/// for again; since then this is how a call is cancelled.
fn leave(session: &Session, stream: &Rc<Stream>, response_stream: Option<&Rc<ResponseStream>>) {
    let Session { link, client } = session;
    if client.era == Era::Modern
        && let Some(parked) = stream.parked.take()
    {
        link.runtime.discard(parked);
    }
    if client.era == Era::Legacy {
        return match response_stream {
            Some(response_stream) => client.left(stream, response_stream),
            None => stream.detach(),
        };
    }
    // On a pipe a cancellation is a message.
    for id in client.cancel(link, stream) {
        link.speak_for_client(reply::cancellation(&id));
    }
}

/// Opens an SSE connection.
pub fn open_stream(site: &Rc<Site>, who: &Rc<Principal>, parts: &Parts) -> Response<ToClient> {
    let response_stream = Rc::<ResponseStream>::default();
    let link = match begin(site, Some(who), Rc::<ResponseStream>::clone(&response_stream)) {
        Ok(link) => link,
        Err(refused) => return refusal_response(&refused),
    };
    let exchange = Exchange::open(&site.state, Rc::clone(&link.conversation), Transport::Sse, Era::Legacy);
    exchange.request_head(&parts.method, target(parts), &parts.headers);
    let id = Uuid::new_v4();
    site.sessions.streams.borrow_mut().insert(id, Rc::clone(&link));
    let mut event = Gather::default();
    encode_endpoint(&format!("{MESSAGE}?session={id}"), &mut event);
    response_stream.push(event.to_bytes());
    let leaving = (Rc::clone(site), Rc::clone(&exchange));
    let body = ResponseStreamBody::new(response_stream, move || {
        let (site, exchange) = leaving;
        // The end of the stream is the end of the conversation.
        link.end();
        site.sessions.streams.borrow_mut().remove(&id);
        drop(exchange);
    });
    respond(&exchange, stream_response(body), StatusCode::OK)
}

/// Takes a message that belongs to an SSE connection.
pub async fn post_to_stream(site: &Rc<Site>, caller: Caller, parts: Parts, body: Incoming) -> Response<ToClient> {
    let none_such = || plain(StatusCode::NOT_FOUND, "no such connection\n");
    let id: Option<Uuid> = parts.uri.query().and_then(|query| query.strip_prefix("session=")?.parse().ok());
    let find = || id.and_then(|id| site.sessions.streams.borrow().get(&id).cloned()).filter(|link| !link.is_over());
    // Who is known need not wait for that until the message is there; others are not told.
    if caller.as_ref().is_some_and(|who| !find().is_some_and(|link| link.belongs_to(who))) {
        return none_such();
    }
    if let Err(refused) = check_plain(&parts.headers).and_then(|()| check_length(&caller, &body)) {
        return refusal_response(&refused);
    }
    let body = match receive_whole(site, body).await {
        Ok(body) => body,
        Err(refused) => return refusal_response(&refused),
    };
    let (who, body) = match site.gate.admit_message(caller, &body) {
        Ok((who, without_token)) => (who, without_token.unwrap_or(body)),
        Err(refusal) => return refuse_message(&body, &refusal),
    };
    let Some(link) = find().filter(|link| link.belongs_to(&who)) else { return none_such() };
    let exchange = Exchange::open(&site.state, Rc::clone(&link.conversation), Transport::Sse, Era::Legacy);
    exchange.can_ask.set(true);
    exchange.request_head(&parts.method, target(&parts), &parts.headers);
    let message = Message::new(body);
    if let Some(what) = no_message(site, &message) {
        return turned_down(&exchange, message.into_bytes(), &Refusal::BadRequest { what: what.into() });
    }
    link.server_room().await;
    link.from_client(exchange.lane(b"", None), message);
    respond(&exchange, plain(StatusCode::ACCEPTED, "Accepted"), StatusCode::ACCEPTED)
}

#[cfg(test)]
mod tests;
