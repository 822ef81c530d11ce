//! What a listener offers: which path leads where, and what its exchanges share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use mcp_engine::Side;
use mcp_engine::pipeline::Injection;
use mcp_link::Backend;
use mcp_wire::reply::{self, TurnedAway};
use pin_project_lite::pin_project;
use uuid::Uuid;

use super::body::ToClient;
use super::conversations::Conversations;
use super::gate::{Gate, Refused, unauthorized};
use super::health;
use super::relay::voice::{self, Voices};
use super::relay::{Connection, Route, json_response, relay};
use super::resource::OwnResource;
use super::sessions::{self, Sessions};
use super::state::HttpState;
use super::strict;
use super::upstream::Upstream;
use crate::child::ServerCommand;

/// Where clients of Streamable HTTP, clients of the older SSE transport, and their messages go.
pub const ENDPOINT: &str = "/mcp";
pub const STREAM: &str = "/sse";
pub const MESSAGE: &str = "/message";

/// What a client should wait that found no room, in seconds.
const RETRY_AFTER: &str = "5";

/// Relayed calls that continue after their client left; further ones are given up.
const CARRIED_ON_MAX: usize = 1_024;
/// Relayed SSE connections at a time.
const CONNECTIONS_MAX: usize = 10_000;

/// How the server is spoken to.
pub enum Server {
    Http(Rc<Upstream>),
    Sse(Rc<Upstream>),
    Command(ServerCommand),
    /// Many of them.
    Many(Rc<dyn Backend>),
}

pub struct Site {
    pub state: Rc<HttpState>,
    pub gate: Gate,
    pub server: Server,
    pub conversations: Conversations,
    pub sessions: Sessions,
    own_resource: bool,
    connections: RefCell<HashMap<Uuid, Rc<Connection>>>,
    /// How to speak to the server in a client's place.
    pub voices: Voices,
    carried_on: Rc<Cell<usize>>,
}

impl Site {
    pub fn new(state: Rc<HttpState>, gate: Gate, server: Server, own_resource: bool) -> Rc<Self> {
        Rc::new(Self {
            state,
            gate,
            server,
            conversations: Conversations::default(),
            sessions: Sessions::default(),
            own_resource,
            connections: RefCell::default(),
            voices: Voices::default(),
            carried_on: Rc::default(),
        })
    }

    /// Answers one request. Whatever can be decided is decided at once: what has to wait is one future,
    /// without others inside that would each keep the request once more.
    pub fn answer(
        self: Rc<Self>,
        peer: IpAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<ToClient>> + use<> {
        let caller = match self.gate.admit(&request) {
            Ok(caller) => caller,
            Err(refused) => return Answering::now(refusal_response(&refused)),
        };
        if self.state.has_failed() {
            let text = "the recording cannot be written; nothing passes\n";
            return Answering::now(plain(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        let (parts, body) = request.into_parts();
        if self.state.is_governed()
            && let Err(refused) = strict::check_head(&parts)
        {
            return Answering::now(refusal_response(&refused));
        }
        let way = self.way(&parts);
        match (way, caller) {
            (Way::Answer(response), _) => Answering::now(*response),
            // Only where messages are looked at can they show who sent them.
            (Way::Post, caller) => {
                Answering::Post { post: Box::pin(sessions::post(self, (peer, caller), parts, body)) }
            }
            (Way::PostToStream, caller) => {
                let rare = async move { sessions::post_to_stream(&self, caller, parts, body).await };
                Answering::Rare { rare: Box::pin(rare) }
            }
            (_, None) => Answering::now(refusal_response(&unauthorized())),
            (Way::Relay(upstream, route), Some(_)) => {
                Answering::Relay { relay: Box::pin(relay(self, upstream, peer, (parts, body), route)) }
            }
            (Way::Get, Some(who)) => Answering::now(sessions::get(&self, &who, &parts)),
            (Way::Delete, Some(who)) => Answering::now(sessions::delete(&self, &who, &parts)),
            (Way::OpenStream, Some(who)) => Answering::now(sessions::open_stream(&self, &who, &parts)),
        }
    }

    /// What a request leads to.
    fn way(&self, parts: &Parts) -> Way {
        let method = &parts.method;
        let relay = |upstream: &Rc<Upstream>, route| Way::Relay(Rc::clone(upstream), route);
        // Where clients are told apart, sessions have to be ours: a server would not know whose each is.
        let relays = !self.gate.has_entrance();
        match (parts.uri.path(), &self.server) {
            (ENDPOINT, Server::Http(upstream)) if relays => match *method {
                Method::POST | Method::GET | Method::DELETE => relay(upstream, Route::Endpoint),
                _ => not_allowed("GET, POST, DELETE").into(),
            },
            (ENDPOINT, _) => match *method {
                Method::POST => Way::Post,
                Method::GET => Way::Get,
                Method::DELETE => Way::Delete,
                _ => not_allowed("GET, POST, DELETE").into(),
            },
            (STREAM, Server::Sse(upstream)) if relays => match *method {
                Method::GET => relay(upstream, Route::Stream),
                _ => not_allowed("GET").into(),
            },
            (MESSAGE, Server::Sse(upstream)) if relays => match (method, self.connection(parts.uri.query())) {
                (&Method::POST, Some(connection)) => relay(upstream, Route::Message(connection)),
                (&Method::POST, None) => plain(StatusCode::NOT_FOUND, "no such connection\n").into(),
                _ => not_allowed("POST").into(),
            },
            (STREAM, _) if *method == Method::GET => Way::OpenStream,
            (MESSAGE, _) if *method == Method::POST => Way::PostToStream,
            (STREAM, _) => not_allowed("GET").into(),
            (MESSAGE, _) => not_allowed("POST").into(),
            (health::ALIVE | health::READY, Server::Many(backend)) => health::answer(&**backend, parts).into(),
            (path, Server::Http(upstream) | Server::Sse(upstream)) if path.starts_with("/.well-known/") => {
                match *method {
                    Method::GET | Method::HEAD => relay(upstream, Route::Metadata),
                    _ => not_allowed("GET, HEAD").into(),
                }
            }
            _ => plain(StatusCode::NOT_FOUND, "nothing here; MCP clients connect to /mcp or /sse\n").into(),
        }
    }

    /// Who we are to the client of a request, if it is to be told that in the server's place.
    pub fn own_resource(&self, parts: &Parts) -> Option<OwnResource> {
        let endpoint = if matches!(self.server, Server::Sse(_)) { STREAM } else { ENDPOINT };
        if self.own_resource { OwnResource::of_request(parts, endpoint) } else { None }
    }

    fn connection(&self, query: Option<&str>) -> Option<Rc<Connection>> {
        let id = query?.strip_prefix("session=")?.parse().ok()?;
        self.connections.borrow().get(&id).cloned()
    }

    /// Makes an SSE connection known under an id that nobody can guess.
    pub fn register(self: &Rc<Self>, connection: Connection) -> Option<Registered> {
        let mut connections = self.connections.borrow_mut();
        if connections.len() >= CONNECTIONS_MAX {
            return None;
        }
        let id = Uuid::new_v4();
        connections.insert(id, Rc::new(connection));
        Some(Registered { id, site: Rc::downgrade(self) })
    }

    /// Sends the server something that no client sent.
    pub fn inject(self: &Rc<Self>, mut injection: Injection) {
        if let Server::Many(backend) = &self.server {
            match backend.inject(injection) {
                Ok(()) => return,
                Err(of_client) => injection = of_client,
            }
        }
        match &self.server {
            Server::Http(upstream) | Server::Sse(upstream) if self.sessions.link(injection.conversation).is_none() => {
                voice::inject(self, upstream, injection);
            }
            _ => {
                if let Some(link) = self.sessions.link(injection.conversation) {
                    link.inject(injection);
                }
            }
        }
    }

    /// Whether there are clients that may still want something.
    pub fn is_serving(&self) -> bool {
        !self.connections.borrow().is_empty() || !self.conversations.is_empty() || self.sessions.is_any_open()
    }

    /// Calls that somebody waits for, in an exchange of their own or on the stream of a connection.
    pub fn open_calls(&self) -> usize {
        let connections = self.connections.borrow();
        let on_streams =
            connections.values().map(|connection| connection.conversation.borrow().open_calls(Side::Client));
        self.state.open_calls() + on_streams.sum::<usize>() + self.sessions.open_calls()
    }

    /// A place for a call that goes on without its client, if there is one left.
    pub fn carried_on(&self) -> Option<CarriedOn> {
        if self.carried_on.get() >= CARRIED_ON_MAX {
            return None;
        }
        self.carried_on.set(self.carried_on.get() + 1);
        Some(CarriedOn(Rc::clone(&self.carried_on)))
    }

    /// Gives up what nobody uses any more.
    pub fn sweep(&self) {
        self.conversations.sweep(&self.state);
        self.sessions.sweep(&self.state);
        if let Server::Http(upstream) | Server::Sse(upstream) = &self.server {
            upstream.close_idle();
        }
    }
}

/// Where a request leads.
enum Way {
    /// To a server of the same transport.
    Relay(Rc<Upstream>, Route),
    /// Across, to one of another.
    Post,
    Get,
    Delete,
    OpenStream,
    PostToStream,
    /// No further.
    Answer(Box<Response<ToClient>>),
}

impl From<Response<ToClient>> for Way {
    fn from(response: Response<ToClient>) -> Self {
        Self::Answer(Box::new(response))
    }
}

pin_project! {
    /// An answer that is there, or on its way. What is on its way is large, and is moved several times before it
    /// begins.
    #[project = AnsweringNow]
    enum Answering<R, P> {
        Now { response: Option<Response<ToClient>> },
        Relay { relay: Pin<Box<R>> },
        Post { post: Pin<Box<P>> },
        Rare { rare: Pin<Box<dyn Future<Output = Response<ToClient>>>> },
    }
}

impl<R, P> Answering<R, P> {
    fn now(response: Response<ToClient>) -> Self {
        Self::Now { response: Some(response) }
    }
}

impl<R, P> Future for Answering<R, P>
where
    R: Future<Output = Response<ToClient>>,
    P: Future<Output = Response<ToClient>>,
{
    type Output = Response<ToClient>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            AnsweringNow::Now { response } => Poll::Ready(response.take().expect("it is asked for once")),
            AnsweringNow::Relay { relay } => relay.as_mut().poll(cx),
            AnsweringNow::Post { post } => post.as_mut().poll(cx),
            AnsweringNow::Rare { rare } => rare.as_mut().poll(cx),
        }
    }
}

/// An SSE connection for as long as its stream is open.
pub struct Registered {
    id: Uuid,
    site: Weak<Site>,
}

impl Registered {
    /// Where its messages go.
    pub fn path(&self) -> String {
        format!("{MESSAGE}?session={}", self.id)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(site) = self.site.upgrade() {
            site.connections.borrow_mut().remove(&self.id);
        }
    }
}

pub struct CarriedOn(Rc<Cell<usize>>);

impl Drop for CarriedOn {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A request that goes no further, as the client is told.
pub fn refusal_response(refused: &Refused) -> Response<ToClient> {
    let mut response = json_response(refused.status, Some(reply::error_without_id(&refused.refusal)));
    if let Some(turned_away) = TurnedAway::of(&refused.refusal) {
        turn_away(&mut response, turned_away);
    }
    if refused.status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    }
    response
}

/// Has a response say in the words of HTTP why the client was turned away at the entrance.
pub fn turn_away(response: &mut Response<ToClient>, why: TurnedAway) {
    *response.status_mut() = StatusCode::from_u16(why.status()).expect("it is a status");
    let headers = response.headers_mut();
    match why {
        TurnedAway::Unauthorized => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        TurnedAway::RateLimited { .. } => {
            headers.insert(header::RETRY_AFTER, why.retry_after_s().unwrap_or(1).into());
        }
    }
}

pub fn not_allowed(allowed: &'static str) -> Response<ToClient> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here\n");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

pub fn plain(status: StatusCode, text: &'static str) -> Response<ToClient> {
    let mut response = Response::new(ToClient::Whole(Some(text.as_bytes().into())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
