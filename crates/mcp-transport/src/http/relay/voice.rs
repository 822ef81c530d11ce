//! Speaking in the place of a client that is relayed: to its server, or on its stream.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Waker};

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Uri};
use mcp_engine::Side;
use mcp_wire::Gather;
use mcp_wire::framing::sse::encode_event;
use mcp_wire::revision;

use crate::http::body::ToServer;
use crate::http::exchange::Exchange;
use crate::http::upstream::Upstream;

/// What a request in a client's place needs: the headers by which the server knows the client.
pub(super) struct Voice {
    uri: Uri,
    headers: HeaderMap,
}

impl Voice {
    /// From a request of the client's, ready to be sent on.
    pub fn of(parts: &Parts) -> Rc<Self> {
        let mut headers = parts.headers.clone();
        for name in [header::CONTENT_LENGTH, HeaderName::from_static(revision::LAST_EVENT_HEADER)] {
            headers.remove(name);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Rc::new(Self { uri: parts.uri.clone(), headers })
    }

    /// Tells the server something, which is recorded already, in an exchange of our own beside `exchange`.
    pub fn say(&self, upstream: &Rc<Upstream>, exchange: &Exchange, to: Option<Uri>, message: Bytes) {
        let own = Exchange::open(&exchange.hub, Rc::clone(&exchange.talk), exchange.transport, exchange.era);
        let mut request = Request::new(ToServer::Whole(Some(message)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = to.unwrap_or_else(|| self.uri.clone());
        *request.headers_mut() = self.headers.clone();
        own.request_head(&Method::POST, request.uri().path(), request.headers());
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
                Err(error) => own.note(Side::Server, &error.explain(&own.hub).0),
            }
        });
    }
}

/// What is to be said on the stream of a connection besides what its server says.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: RefCell<VecDeque<Bytes>>,
    reader: RefCell<Option<Waker>>,
}

impl Inbox {
    pub fn push(&self, message: &Bytes) {
        let mut event = Gather::default();
        encode_event(None, message, &mut event);
        self.waiting.borrow_mut().push_back(event.to_bytes());
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// The next event, if there is one; if not, `cx` is told of it.
    pub fn poll(&self, cx: &mut Context<'_>) -> Option<Bytes> {
        let next = self.waiting.borrow_mut().pop_front();
        if next.is_none() {
            self.reader.replace(Some(cx.waker().clone()));
        }
        next
    }
}
