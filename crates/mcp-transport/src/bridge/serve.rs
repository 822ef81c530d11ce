//! A client on our standard input and output in front of a server with an address, from its first
//! message to its last.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::{Conversation, Pipeline, StoreFailed};
use mcp_wire::reply::Refusal;
use tokio::time::timeout;

use super::http_link::HttpLink;
use super::outflow::{CLIENT_STALLED, Outflow};
use super::pipe_client;
use super::sse_link::SseLink;
use super::talk::{ClientEnd, ServerEnd, Talk};
use crate::http::hub::Hub;
use crate::http::upstream::Upstream;
use crate::signals::Signals;
use crate::stdio::pipe::Pipe;

/// For a client that takes nothing of what is left for it.
const CLIENT_STALLED_FOR: Duration = Duration::from_secs(30);

/// How the server is spoken to.
pub enum Server {
    Http(Rc<Upstream>),
    Sse(Rc<Upstream>),
}

/// How a conversation ended.
pub struct Ended {
    pub pipeline: Pipeline,
    pub store_failed: Option<StoreFailed>,
    /// A person interrupted us.
    pub interrupted: bool,
    /// The server was tried for, and never once reached.
    pub missed: bool,
}

/// Relays until the client is done. `signal_patience` is what a client in this process gets to leave by itself after a
/// signal. Must be called where tasks can stay on their thread.
pub async fn serve(
    (stdin, stdout): (Pipe, Pipe),
    server: Server,
    pipeline: Pipeline,
    message_bytes_max: usize,
    signal_patience: Duration,
    tell: Box<dyn Fn(String)>,
) -> io::Result<Ended> {
    let mut signals = Signals::listen_with(signal_patience)?;
    let hub = Hub::new(pipeline, message_bytes_max, tell);
    let committer = tokio::task::spawn_local(Rc::clone(&hub).keep_committing());
    let obeyer = tokio::task::spawn_local(Rc::clone(&hub).keep_obeying());
    let out = Rc::new(Outflow::default());
    let conversation = Rc::new(RefCell::new(Conversation::only()));
    let talk = Talk::new(&hub, conversation, ClientEnd::Pipe(Rc::clone(&out)));
    talk.connect(match server {
        Server::Http(upstream) => ServerEnd::Http(HttpLink::start(&talk, upstream)),
        Server::Sse(upstream) => ServerEnd::Sse(SseLink::start(&talk, upstream)),
    });
    let injected = Rc::downgrade(&talk);
    hub.inject_with(move |injection| {
        if let Some(talk) = injected.upgrade() {
            talk.inject(injection);
        }
    });
    let mut writing = tokio::task::spawn_local({
        let out = Rc::clone(&out);
        async move { out.write_to_reader(stdout).await }
    });
    let mut interrupted = false;
    tokio::select! {
        () = pipe_client::serve(&talk, stdin) => {}
        // Nobody reads our answers any more.
        _ = &mut writing => if out.has_stalled() {
            hub.tell(CLIENT_STALLED.into());
        },
        () = hub.stopped() => talk.answer_open_calls(&Refusal::NotRecorded),
        interrupt = signals.next() => interrupted = interrupt,
    }
    // What is still held goes on, as far as there is somewhere to go.
    hub.end_holds();
    let missed = match talk.server() {
        Some(ServerEnd::Http(link)) => {
            link.end().await;
            link.was_missed()
        }
        Some(ServerEnd::Sse(link)) => link.was_missed(),
        _ => false,
    };
    talk.end();
    if !writing.is_finished() {
        tokio::select! {
            _ = timeout(CLIENT_STALLED_FOR, &mut writing) => {}
            _ = signals.next() => {}
        }
    }
    writing.abort();
    for task in [committer, obeyer] {
        task.abort();
        let _ = task.await;
    }
    let (pipeline, store_failed) = hub.take_back();
    Ok(Ended { pipeline, store_failed, interrupted, missed })
}
