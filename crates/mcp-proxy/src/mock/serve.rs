//! Drives a mock between its client and, for what is not recorded, a live server.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use mcp_engine::mock::{Mock, Out, Taken};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::{Kind, Message, scan};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

use super::fallback::Fallback;
use crate::duplex::Duplex;

/// Time for a live server once the client sends no more, and for a client to take the remaining output.
const CALLS_FOR: Duration = Duration::from_secs(10);

/// Serves until the client is gone. Returns whether a person interrupted it.
pub(super) async fn serve(mock: Mock, client: Duplex, fallback: Option<Fallback>) -> bool {
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let [interrupt, terminate, hang_up] = &mut signals;
    let mut serving = Serving { mock, client, fallback, begun: Instant::now() };
    let interrupted = tokio::select! {
        () = serving.run() => false,
        () = heard(interrupt) => true,
        () = heard(terminate) => false,
        () = heard(hang_up) => false,
    };
    if let Some(fallback) = &mut serving.fallback {
        fallback.end().await;
    }
    interrupted
}

/// Comes with the signal; never, where it cannot be heard.
async fn heard(signal: &mut std::io::Result<Signal>) {
    match signal {
        Ok(signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

struct Serving {
    mock: Mock,
    client: Duplex,
    fallback: Option<Fallback>,
    begun: Instant,
}

/// What came, and from whom; nothing at the end of a stream.
enum Came {
    OfClient(Option<Vec<Message>>),
    OfServer(Option<Vec<Message>>),
    /// It is time for the mock to say something.
    Time,
}

impl Serving {
    async fn run(&mut self) {
        for message in self.mock.begin() {
            self.client.send(message);
        }
        while self.turn(true).await {}
        // Who sends no more may still wait for what is held, or for what a live server says.
        let rest = async {
            while self.mock.due().is_some() || self.fallback.as_ref().is_some_and(|fallback| fallback.live.is_busy()) {
                self.turn(false).await;
            }
        };
        let _ = timeout(CALLS_FOR, rest).await;
        let _ = timeout(CALLS_FOR, poll_fn(|cx| self.client.poll_flushed(cx))).await;
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Takes what comes next. False at the end of the client's stream.
    async fn turn(&mut self, hears_client: bool) -> bool {
        let due = self.mock.due().map(|ns| self.begun + Duration::from_nanos(ns));
        let came = tokio::select! {
            biased;
            came = self.next(hears_client) => came,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Came::Time,
        };
        match came {
            Came::OfClient(None) => return false,
            Came::OfClient(Some(messages)) => messages.iter().for_each(|message| self.take(message)),
            Came::Time => {
                let now = self.now();
                self.mock.look(now).into_iter().for_each(|message| self.client.send(message));
            }
            Came::OfServer(None) => self.server_is_gone().await,
            Came::OfServer(Some(messages)) => {
                for message in messages {
                    let out = self.fallback.as_mut().map(|fallback| fallback.live.from_server(&message));
                    out.into_iter().flatten().for_each(|out| self.dispatch(out));
                }
            }
        }
        true
    }

    async fn next(&mut self, hears_client: bool) -> Came {
        let Self { client, fallback, .. } = self;
        let mut server = fallback.as_mut().and_then(Fallback::running);
        poll_fn(|cx| {
            // Nothing more is asked of a server that does not take what it was.
            if hears_client && server.as_ref().is_none_or(|server| server.has_room()) {
                if let Poll::Ready(came) = client.poll(cx) {
                    return Poll::Ready(Came::OfClient(came));
                }
            } else {
                let _ = client.poll_flushed(cx);
            }
            match &mut server {
                Some(server) => server.poll(cx).map(Came::OfServer),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn take(&mut self, message: &Message) {
        if message.kind() == Kind::Batch {
            for item in scan::batch_items(message.bytes()) {
                let item = Message::new(message.bytes().slice(item.range()));
                if item.kind() != Kind::Batch {
                    self.take(&item);
                }
            }
            return;
        }
        if let Some(fallback) = &mut self.fallback {
            fallback.live.note(message);
            if message.cancelled_id().is_some_and(|id| fallback.live.works_on(&id)) {
                return self.dispatch(Out::ToServer(message.bytes().clone()));
            }
        }
        let now = self.now();
        match (self.mock.take(message, now), &mut self.fallback) {
            (Taken::Said(messages), _) => messages.into_iter().for_each(|message| self.client.send(message)),
            (Taken::Unknown(_), Some(fallback)) if fallback.is_there() => {
                fallback.live.ask(message).into_iter().for_each(|out| self.dispatch(out));
            }
            (Taken::Unknown(refusal), _) => self.client.send(refusal),
            (Taken::NotOurs, Some(fallback)) => {
                if let Some(out) = fallback.live.answered(message) {
                    self.dispatch(out);
                }
            }
            (Taken::NotOurs, None) => {}
        }
    }

    fn dispatch(&mut self, out: Out) {
        match out {
            Out::ToClient(message) => self.client.send(message),
            Out::ToServer(message) => {
                if let Some(server) = self.fallback.as_mut().and_then(Fallback::server) {
                    server.send(message);
                }
            }
            // What the proxy said in the server's place is no answer to keep.
            Out::Learned { request, answer } if reply::refusal_text(&answer).is_none() => {
                self.mock.learn(&Message::new(request), &Message::new(answer));
            }
            Out::Learned { .. } => {}
        }
    }

    async fn server_is_gone(&mut self) {
        let Some(fallback) = &mut self.fallback else { return };
        fallback.end().await;
        for id in fallback.live.gone().iter().filter_map(Message::id) {
            self.client.send(reply::error(&id, &Refusal::StreamLost));
        }
    }
}
