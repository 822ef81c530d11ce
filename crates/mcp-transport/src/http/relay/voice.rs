//! Speaking in the place of a client that is relayed: to its server, or on its stream.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::task::{Context, Waker};

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Uri};
use mcp_engine::pipeline::Injection;
use mcp_engine::{Conversation, Side};
use mcp_store::Transport;
use mcp_wire::framing::sse::encode_event;
use mcp_wire::revision::{self, Era};
use mcp_wire::{Gather, Message};

use super::held::mirror_headers;
use super::{Answer, Route};
use crate::http::body::ToServer;
use crate::http::exchange::Exchange;
use crate::http::site::Site;
use crate::http::upstream::Upstream;

const SESSION: HeaderName = HeaderName::from_static(revision::SESSION_HEADER);
/// Clients whose headers are remembered to send requests in their place; past this the oldest are forgotten.
const VOICES_MAX: usize = 10_000;

/// The headers by which a server knows each client.
#[derive(Default)]
pub struct Voices(RefCell<BTreeMap<u32, Voice>>);

struct Voice {
    conversation: Rc<RefCell<Conversation>>,
    transport: Transport,
    era: Era,
    uri: Uri,
    headers: HeaderMap,
}

impl Voices {
    /// Remembers how a client speaks, from its first request, ready to be sent on.
    pub(super) fn keep(&self, exchange: &Exchange, parts: &Parts) {
        let is_of_message = |name: &HeaderName| {
            [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::ACCEPT].contains(name)
                || name.as_str() == revision::LAST_EVENT_HEADER
        };
        let mut headers = HeaderMap::with_capacity(parts.headers.len());
        for (name, value) in parts.headers.iter().filter(|(name, _)| !is_of_message(name)) {
            // A copy, because the value as it came keeps all that was read with it in memory.
            if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
                copy.set_sensitive(value.is_sensitive());
                headers.append(name.clone(), copy);
            }
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let (transport, era, uri) = (exchange.transport, exchange.era, parts.uri.clone());
        let voice = Voice { conversation: Rc::clone(&exchange.conversation), transport, era, uri, headers };
        let mut voices = self.0.borrow_mut();
        voices.insert(exchange.conversation.borrow().number(), voice);
        if voices.len() > VOICES_MAX {
            voices.pop_first();
        }
    }

    /// The server has given a client a session.
    pub(super) fn name_session(&self, exchange: &Exchange, id: &HeaderValue) {
        if let Some(voice) = self.0.borrow_mut().get_mut(&exchange.conversation.borrow().number())
            && !voice.headers.contains_key(&SESSION)
            && let Ok(copy) = HeaderValue::from_bytes(id.as_bytes())
        {
            voice.headers.insert(SESSION, copy);
        }
    }

    /// The server has said where the messages of a connection go.
    pub(super) fn name_endpoint(&self, exchange: &Exchange, endpoint: &Uri) {
        if let Some(voice) = self.0.borrow_mut().get_mut(&exchange.conversation.borrow().number()) {
            voice.uri = endpoint.clone();
        }
    }

    /// Answers the server in the place of a client. The answer is recorded already.
    pub(super) fn answer(&self, upstream: &Rc<Upstream>, exchange: &Exchange, message: Bytes) {
        let voices = self.0.borrow();
        let Some(voice) = voices.get(&exchange.conversation.borrow().number()) else {
            return exchange.note(Side::Server, "the answer given in the client's place had no way to the server");
        };
        let own = voice.exchange(exchange);
        let request = voice.request(&own, message);
        let upstream = Rc::clone(upstream);
        tokio::task::spawn_local(async move {
            let answered = match upstream.send(request).await {
                Ok(call) => call.await,
                Err(error) => Err(error),
            };
            match answered {
                Ok((parts, mut body)) => {
                    own.response_head(parts.status, &parts.headers);
                    while let Some(Ok(_)) = body.data().await {}
                }
                Err(error) => own.note(Side::Server, &error.explain(&own.state).0),
            }
        });
    }
}

impl Voice {
    fn exchange(&self, beside: &Exchange) -> Rc<Exchange> {
        Exchange::open(&beside.state, Rc::clone(&self.conversation), self.transport, self.era)
    }

    fn request(&self, exchange: &Exchange, message: Bytes) -> Request<ToServer> {
        let mut headers = self.headers.clone();
        if self.era == Era::Modern {
            mirror_headers(exchange, &mut headers, &Message::new(message.clone()));
        }
        let mut request = Request::new(ToServer::Whole(Some(message)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        exchange.request_head(&Method::POST, target, request.headers());
        request
    }
}

/// Sends a server what no client sent, in an exchange that nobody but the recording sees.
pub fn inject(site: &Rc<Site>, upstream: &Rc<Upstream>, injection: Injection) {
    let voices = site.voices.0.borrow();
    let Some(voice) = voices.get(&injection.conversation) else { return };
    let exchange = Exchange::open(&site.state, Rc::clone(&voice.conversation), voice.transport, voice.era);
    let Some(message) = exchange.inject(injection) else { return };
    let request = voice.request(&exchange, message);
    let answer = Answer {
        exchange,
        route: Route::Endpoint,
        upstream: Rc::clone(upstream),
        site: Rc::clone(site),
        carries_on: false,
        ends_session: None,
        own: None,
    };
    tokio::task::spawn_local(async move { answer.send_alone(request).await });
}

/// What is to be said on the stream of a connection besides what its server says.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: RefCell<VecDeque<Bytes>>,
    reader: RefCell<Option<Waker>>,
}

impl Inbox {
    pub(super) fn push(&self, message: &Bytes) {
        let mut event = Gather::default();
        encode_event(None, message, &mut event);
        self.waiting.borrow_mut().push_back(event.to_bytes());
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// The next event, if there is one; if not, `cx` is told of it.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Option<Bytes> {
        let next = self.waiting.borrow_mut().pop_front();
        if next.is_none() {
            self.reader.replace(Some(cx.waker().clone()));
        }
        next
    }
}
