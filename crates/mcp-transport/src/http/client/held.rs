//! Messages of a session that are parked, and what becomes of the exchanges that wait for them.

use std::rc::{Rc, Weak};

use bytes::Bytes;
use mcp_engine::pipeline::ParkedMark;
use mcp_engine::{Asked, Release};
use mcp_link::{Link, queue};
use mcp_wire::reply::Refusal;
use mcp_wire::{Kind, Message};

use super::stream::Stream;
use super::{Found, HttpClient};
use crate::http::exchange::Exchange;
use crate::http::response_stream::ResponseStream;

/// A message of the client's, and the exchange that waits because of it.
pub(super) struct Asking<'a> {
    pub exchange: &'a Rc<Exchange>,
    pub stream: Rc<Stream>,
    pub asked: Option<Asked>,
    pub message: Message,
}

impl HttpClient {
    /// Has the exchange of a parked message wait, if an answer is wanted. The stream of that comes back.
    pub(super) fn wait_for(&self, link: &Link, parked: ParkedMark, asking: Asking<'_>) -> Option<Rc<Stream>> {
        let Asking { exchange, stream, asked, message } = asking;
        let sequence = parked.sequence;
        let asks = message.glance().kind == Kind::Batch && !queue::asks(&message).is_empty();
        let waits = asked.is_some() || asks || parked.is_refused;
        stream.parked.set(Some(sequence));
        let (me, exchange, held) = (self.me.clone(), Rc::clone(exchange), Rc::clone(&stream));
        link.when_settled(sequence, move |link, release| match link {
            Some(link) => from_client(&me, link, &exchange, &held, asked, release),
            // Whoever waits here is told that the session is over.
            None => held.end(),
        });
        if link.is_over() {
            link.runtime.discard(sequence);
        }
        waits.then_some(stream)
    }

    /// Answers a request that went nowhere, on a stream that may have begun with a question of ours.
    fn answer_alone(&self, stream: &Rc<Stream>, answer: &Bytes) {
        if stream.is_waiting() {
            return stream.answer(answer.clone());
        }
        self.send_event(stream, answer);
        stream.end_events();
    }

    /// Whoever waits on `stream` hears no more; an answer would be to nothing.
    fn end_quietly(&self, stream: &Stream) {
        if stream.is_waiting() {
            stream.attach(&ResponseStream::new(&self.unread));
        }
        stream.end_events();
    }
}

/// Sends on what the client sent and somebody held.
fn from_client(
    client: &Weak<HttpClient>,
    link: &Link,
    exchange: &Rc<Exchange>,
    stream: &Rc<Stream>,
    asked: Option<Asked>,
    release: Release,
) {
    let Some(session) = client.upgrade() else { return };
    stream.parked.take();
    link.conversation.borrow_mut().settle_items(&release);
    if let Some(unasks) = &release.unasks {
        session.send_event(stream, unasks.frame().bytes);
    }
    if let Some(outgoing) = &release.onward {
        let message = Message::new(outgoing.frame().bytes.clone());
        session.ask(link, exchange, stream, asked, &message);
        if !stream.is_open() {
            // What went on asks for nothing, so nothing will come back.
            give_up_later(link, stream);
        }
        return;
    }
    match &release.back {
        Some(answer) => session.answer_alone(stream, answer.frame().bytes),
        None if release.is_taken_back => session.end_quietly(stream),
        None if release.is_discarded => {
            // The server is gone; if the client is, nobody has to be told.
            if let Some(asked) = asked.filter(|_| stream.is_attached()) {
                let refusal = Refusal::ServerGone { status: "while the message was held".into() };
                let conversation = &mut link.conversation.borrow_mut();
                let lane = exchange.lane(b"", None);
                let out = link
                    .runtime
                    .pass(|pipeline, out| pipeline.answer_asked(conversation, &asked, &refusal, lane, out))
                    .1;
                if let Some(answer) = out.to_client.first() {
                    session.answer_alone(stream, answer.frame().bytes);
                }
            }
        }
        None => give_up_later(link, stream),
    }
}

/// Sends on what the server sent and somebody held.
pub(super) fn to_client(client: &Weak<HttpClient>, link: &Link, found: Found, release: Release) {
    let Some(session) = client.upgrade() else { return };
    if let Some(answer) = &release.back {
        link.send(&Message::new(answer.frame().bytes.clone()), answer.sequence());
    }
    if let Some(outgoing) = &release.onward {
        return session.route(found, outgoing.frame().bytes);
    }
    if release.back.is_some() {
        return;
    }
    found.calls().iter().for_each(|call| give_up_later(link, &call.stream));
}

/// A request that nothing answers stays open until its client leaves, but not longer than it could have
/// been held.
fn give_up_later(link: &Link, stream: &Rc<Stream>) {
    let Some(limit) = link.runtime.look(|pipeline| pipeline.holds.limit()) else { return };
    let stream = Rc::downgrade(stream);
    tokio::task::spawn_local(async move {
        tokio::time::sleep(limit).await;
        if let Some(stream) = stream.upgrade() {
            stream.give_up();
        }
    });
}
