//! A relayed call whose client is asked about it. The exchange is answered at once, with a stream: first
//! the question, and whatever comes of the call in the end.

use std::pin::Pin;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use hyper::body::Body;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request;
use hyper::{Request, Response};
use mcp_engine::{Release, Side};
use mcp_wire::framing::sse::encode_event;
use mcp_wire::reply::Refusal;
use mcp_wire::{Gather, Message};
use tokio::sync::oneshot;

use super::held::{adapt, answer as held_answer};
use super::{Answer, unreachable};
use crate::http::body::{ToClient, ToServer};
use crate::http::exchange::Exchange;
use crate::http::heads::is_media_type;
use crate::http::response_stream::{ResponseStream, ResponseStreamBody};

/// Bytes that wait for a client that was asked a question before the server's answer is no longer read.
const WAITING_MAX: usize = 1024 * 1024;

/// The answer that asks a client `question`, and goes on when the call is decided. A client that leaves
/// does not take its call back: it can still answer, by another exchange.
pub(super) fn ask(
    answer: &Answer,
    parts: &request::Parts,
    question: &Bytes,
    released: oneshot::Receiver<Release>,
) -> Response<ToClient> {
    let response_stream = Rc::<ResponseStream>::default();
    response_stream.push(event(question));
    let exchange = Rc::clone(&answer.exchange);
    let body = ResponseStreamBody::new(Rc::clone(&response_stream), move || exchange.ended("client left"));
    let (answer, parts) = (answer.without_client(), parts.clone());
    let mut response = Response::new(ToClient::ResponseStream(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    answer.exchange.response_head(response.status(), response.headers());
    tokio::task::spawn_local(async move {
        go_on(&answer, parts, released, &response_stream).await;
        response_stream.end();
    });
    response
}

/// Waits for the decision about a call, and for what comes of it.
async fn go_on(
    answer: &Answer,
    mut parts: request::Parts,
    released: oneshot::Receiver<Release>,
    response_stream: &ResponseStream,
) {
    let Ok(release) = released.await else { return };
    let exchange = &answer.exchange;
    exchange.settle(&release);
    for ours in [&release.unasks, &release.back].into_iter().flatten() {
        response_stream.push(event(ours.frame().bytes));
    }
    let Some(outgoing) = &release.onward else { return };
    let bytes = outgoing.frame().bytes.clone();
    adapt(answer, &mut parts.headers, &release, &bytes);
    let request = Request::from_parts(parts, ToServer::Whole(Some(bytes)));
    let answered = match answer.upstream.send(request).await {
        Ok(call) => call.await,
        Err(error) => Err(error),
    };
    let response = match answered {
        Ok((parts, body)) if answer.is_to_be_seen(&parts, &body) => held_answer(answer, parts, body).await,
        Ok((parts, body)) => answer.begin(parts, body),
        Err(error) => unreachable(exchange, &error),
    };
    pour(exchange, response, response_stream).await;
}

/// Puts a server's answer into a stream that has begun already: events as they come, a message as the
/// last event. What is neither cannot be told here, but that there was something else can.
async fn pour(exchange: &Exchange, response: Response<ToClient>, response_stream: &ResponseStream) {
    let (status, limit) = (response.status(), exchange.state.message_bytes_max);
    let is_stream = status.is_success() && is_media_type(response.headers(), "text/event-stream");
    let mut body = response.into_body();
    let mut whole = BytesMut::new();
    while let Some(data) = next(&mut body).await {
        if is_stream {
            response_stream.push(data);
            response_stream.until_room(WAITING_MAX).await;
        } else if whole.len() + data.len() <= limit {
            whole.extend_from_slice(&data);
        }
    }
    if is_stream {
        return;
    }
    let message = whole.freeze();
    let last = match Message::new(message.clone()).kind().is_response() {
        true => Some(message),
        false => {
            exchange.note(Side::Server, &format!("the answer {status} is no message, and had to become one"));
            exchange.refuse(&Refusal::UpstreamStatus { status: status.as_u16() })
        }
    };
    response_stream.push(last.as_ref().map(event).unwrap_or_default());
}

async fn next(body: &mut ToClient) -> Option<Bytes> {
    let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
    frame.ok()?.into_data().ok()
}

fn event(message: &Bytes) -> Bytes {
    let mut event = Gather::default();
    encode_event(None, message, &mut event);
    event.to_bytes()
}
