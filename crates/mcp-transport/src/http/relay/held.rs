//! Messages of a relayed exchange that somebody holds, and what its client gets meanwhile and after.

use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::{request, response};
use hyper::{Request, Response, StatusCode};
use mcp_engine::{Release, Side};
use mcp_wire::reply::Refusal;
use mcp_wire::revision::{self, Era};
use mcp_wire::{Message, mirror};
use tokio::sync::oneshot;

use super::{Answer, Route, asked, json_response, not_recorded};
use crate::http::body::{ToClient, ToServer};
use crate::http::exchange::{Exchange, Passed};
use crate::http::sessions::status_of_own;
use crate::http::site::plain;
use crate::http::upstream::ServerBody;

/// The message was taken; nothing more will be said of it.
pub(super) fn accepted(exchange: &Exchange) -> Response<ToClient> {
    own(exchange, plain(StatusCode::ACCEPTED, ""))
}

fn own(exchange: &Exchange, response: Response<ToClient>) -> Response<ToClient> {
    exchange.response_head(response.status(), response.headers());
    response
}

/// Waits until the request that opened an exchange may go on. What is to be sent comes back, or the
/// answer that its client gets instead.
pub(super) async fn request(
    answer: &Answer,
    parts: &mut request::Parts,
    sequence: u64,
) -> Result<Bytes, Response<ToClient>> {
    let exchange = &answer.exchange;
    let question = exchange.take_question();
    let released = exchange.state.released(sequence);
    if let (Some(question), Route::Endpoint) = (&question, &answer.route) {
        return Err(asked::ask(answer, parts, question, released));
    }
    if let (Some(question), Route::Message(connection)) = (&question, &answer.route) {
        connection.inbox.push(question);
    }
    let mut waiting = Waiting { answer, parts, sequence, released: Some(released) };
    let is_answered = exchange.awaits_answer() || exchange.is_refused();
    if !is_answered || !matches!(answer.route, Route::Endpoint) {
        // Nothing but a word that it was taken is waited for, and others may wait for that word.
        waiting.go_on_alone();
        return Err(accepted(exchange));
    }
    let Some(release) = waiting.released().await else { return Err(not_recorded(exchange)) };
    drop(waiting);
    exchange.settle(&release);
    if let Some(outgoing) = &release.onward {
        let bytes = outgoing.frame().bytes.clone();
        adapt(answer, &mut parts.headers, &release, &bytes);
        return Ok(bytes);
    }
    Err(match &release.back {
        Some(back) => {
            let back = back.frame().bytes.clone();
            own(exchange, json_response(status_of_own(exchange.era, &back), Some(back)))
        }
        None if release.is_taken_back => accepted(exchange),
        None => no_answer(exchange).await,
    })
}

/// A request that nothing answers stays open until its client leaves, but not longer than it could
/// have been held.
async fn no_answer(exchange: &Exchange) -> Response<ToClient> {
    match exchange.state.look(|pipeline| pipeline.holds.limit()) {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
    exchange.ended("message dropped");
    own(exchange, plain(StatusCode::GATEWAY_TIMEOUT, "no answer comes\n"))
}

/// Has the headers of a request say what an edited body does, where they repeat parts of it.
pub(super) fn adapt(answer: &Answer, headers: &mut HeaderMap, release: &Release, bytes: &Bytes) {
    if !release.is_edited {
        return;
    }
    headers.remove(header::CONTENT_LENGTH);
    if release.raw_headers.is_some() || answer.exchange.era == Era::Legacy {
        return;
    }
    let message = Message::new(bytes.clone());
    let name = mirror::derive(&message).name;
    if headers.get(revision::NAME_HEADER).map(HeaderValue::as_bytes) != name.as_deref().map(str::as_bytes) {
        // They repeat arguments for another tool.
        let of_arguments = headers.keys().filter(|name| name.as_str().starts_with(revision::PARAM_HEADER_PREFIX));
        for name in of_arguments.cloned().collect::<Vec<_>>() {
            headers.remove(name);
        }
    }
    mirror_headers(&answer.exchange, headers, &message);
}

/// Has headers repeat the parts of `message` that they must repeat.
pub(super) fn mirror_headers(exchange: &Exchange, headers: &mut HeaderMap, message: &Message) {
    let mirrored = mirror::derive(message);
    let derived = [
        (revision::VERSION_HEADER, mirrored.version),
        (revision::METHOD_HEADER, mirrored.method),
        (revision::NAME_HEADER, mirrored.name),
    ];
    for (name, value) in derived {
        let name = HeaderName::from_static(name);
        match value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            Some(value) => drop(headers.insert(name, value)),
            // A request without a revision is for the server to refuse.
            None if name.as_str() == revision::VERSION_HEADER => {}
            None => drop(headers.remove(name)),
        }
    }
    for (name, value) in exchange.state.tools.borrow().headers(message) {
        if let (Ok(name), Ok(value)) = (name.to_ascii_lowercase().parse(), HeaderValue::from_str(&value)) {
            headers.insert::<HeaderName>(name, value);
        }
    }
}

/// A request that is parked, and whose client may leave.
struct Waiting<'a> {
    answer: &'a Answer,
    parts: &'a request::Parts,
    sequence: u64,
    /// Gone once it is free.
    released: Option<oneshot::Receiver<Release>>,
}

impl Waiting<'_> {
    async fn released(&mut self) -> Option<Release> {
        let released = self.released.as_mut()?.await.ok();
        self.released = None;
        released
    }

    /// Sends it on when it is free, whether the client is still there or not.
    fn go_on_alone(&mut self) {
        let Some(released) = self.released.take() else { return };
        let (answer, parts) = (self.answer.without_client(), self.parts.clone());
        tokio::task::spawn_local(alone(answer, parts, released));
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.released.is_none() {
            return;
        }
        self.answer.exchange.ended("client left");
        match self.answer.carries_on {
            true => self.go_on_alone(),
            false => self.answer.exchange.state.discard(self.sequence),
        }
    }
}

async fn alone(answer: Answer, mut parts: request::Parts, released: oneshot::Receiver<Release>) {
    let Ok(release) = released.await else { return };
    answer.exchange.settle(&release);
    if let Route::Message(connection) = &answer.route {
        for ours in [&release.unasks, &release.back].into_iter().flatten() {
            connection.inbox.push(ours.frame().bytes);
        }
    }
    let Some(outgoing) = &release.onward else { return };
    let bytes = outgoing.frame().bytes.clone();
    adapt(&answer, &mut parts.headers, &release, &bytes);
    let request = Request::from_parts(parts, ToServer::Whole(Some(bytes)));
    answer.send_alone(request).await;
}

/// Waits for an answer that is one message, and until it may go on.
pub(super) async fn answer(answer: &Answer, mut parts: response::Parts, mut body: ServerBody) -> Response<ToClient> {
    let exchange = &answer.exchange;
    answer.take_head(&mut parts);
    let limit = exchange.state.message_bytes_max;
    let mut seen = BytesMut::new();
    while let Some(data) = body.data().await {
        let Ok(data) = data else {
            exchange.ended("server broke off");
            return json_response(StatusCode::BAD_GATEWAY, exchange.refuse(&Refusal::StreamLost));
        };
        seen.extend_from_slice(&data);
        if seen.len() > limit {
            exchange.note(Side::Server, &format!("an answer of more than {limit} bytes was not passed on"));
            return json_response(StatusCode::BAD_GATEWAY, exchange.refuse(&Refusal::TooLarge { limit }));
        }
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    let left = match exchange.from_server(seen.freeze(), b"") {
        Passed::Onward(bytes) => bytes,
        Passed::Parked(sequence) => match decided(exchange, sequence).await {
            Some(bytes) => bytes,
            None => return no_answer(exchange).await,
        },
        Passed::Withheld => return no_answer(exchange).await,
        Passed::NotRecorded => return not_recorded(exchange),
    };
    Response::from_parts(parts, ToClient::Whole(Some(left)))
}

/// What is left of a parked answer.
async fn decided(exchange: &Rc<Exchange>, sequence: u64) -> Option<Bytes> {
    let mut unread = Unread { exchange, sequence: Some(sequence) };
    let release = exchange.state.released(sequence).await.ok()?;
    unread.sequence = None;
    release.onward.map(|outgoing| outgoing.frame().bytes.clone())
}

/// A parked answer whose client may leave; then nobody is there to read it.
struct Unread<'a> {
    exchange: &'a Exchange,
    sequence: Option<u64>,
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if let Some(sequence) = self.sequence.take() {
            self.exchange.ended("client left");
            self.exchange.state.discard(sequence);
        }
    }
}
