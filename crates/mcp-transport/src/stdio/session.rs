//! One client and one server over pipes, from the server's start to the last of its tree: who ended
//! first, what the other is told, and how long each is given.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use mcp_engine::{Pipeline, Side, StoreFailed};
use mcp_wire::reply::Refusal;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

use super::pipe::Pipe;
use super::relay::{Relay, Stop};
use super::stderr::{self, LastWords};
use crate::child::{self, Child, ChildEvent, ExitStatus, ServerCommand};

/// How often a server that still works on calls is looked at after it was asked to end.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// For what a server wrote last, when something it left behind still holds its output open.
const DRAIN_FOR: Duration = Duration::from_millis(600);
/// For a client to take the last messages, and for the guard to say that the tree is gone.
const FLUSH_FOR: Duration = Duration::from_secs(2);
const TREE_GONE_FOR: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub message_bytes_max: usize,
    /// What a server gets to end by itself once its input is closed: without open calls, and with.
    pub idle_grace: Duration,
    pub call_grace: Duration,
}

/// How a conversation ended.
pub struct Ended {
    pub status: ExitStatus,
    pub last_words: LastWords,
    pub pipeline: Pipeline,
    /// The user interrupted us.
    pub interrupted: bool,
    pub store_failed: Option<StoreFailed>,
    /// The server ended while the client was still there.
    pub server_left_first: bool,
    /// Calls that the server left open.
    pub unanswered: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot start the server")]
    NotStarted(#[source] io::Error),
    #[error("cannot use standard input and output")]
    Stdio(#[source] io::Error),
}

/// Starts `command` and relays between it and `client` until both are done. `tell` gets what the
/// user should know meanwhile.
pub async fn serve(
    client: (Pipe, Pipe),
    command: &ServerCommand,
    pipeline: Pipeline,
    options: Options,
    tell: &mut dyn FnMut(String),
) -> Result<Ended, ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Stdio)?;
    let started = child::start(command).map_err(ServeError::NotStarted)?;
    let pipes = (Pipe::owned(started.stdout), Pipe::owned(started.stdin));
    let server = (pipes.0.map_err(ServeError::Stdio)?, pipes.1.map_err(ServeError::Stdio)?);
    let last_words = LastWords::default();
    let stderr = tokio::spawn(stderr::drain(started.stderr, last_words.clone()));
    let mut conversation = Conversation {
        relay: Relay::new(client, server, pipeline, options.message_bytes_max),
        child: started.child,
        options,
        asked_at: None,
        client_left: false,
        interrupted: false,
        store_failed: None,
    };
    let status = conversation.run(&mut signals, tell).await.map_err(ServeError::NotStarted)?;
    let server_left_first = !conversation.client_left;
    let unanswered = conversation.wind_up(status).await;
    let _ = timeout(DRAIN_FOR, stderr).await;
    Ok(Ended {
        status,
        last_words,
        pipeline: conversation.relay.pipeline,
        interrupted: conversation.interrupted,
        store_failed: conversation.store_failed,
        server_left_first,
        unanswered,
    })
}

struct Conversation {
    relay: Relay,
    child: Child,
    options: Options,
    /// When the server was asked to end.
    asked_at: Option<Instant>,
    /// The client ended it, or we did; not the server.
    client_left: bool,
    interrupted: bool,
    store_failed: Option<StoreFailed>,
}

impl Conversation {
    /// Relays until the server has ended, by itself or because it was asked to.
    async fn run(&mut self, signals: &mut Signals, tell: &mut dyn FnMut(String)) -> io::Result<ExitStatus> {
        let mut look_at: Option<Instant> = None;
        loop {
            let next_look = look_at.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                stop = poll_fn(|cx| poll_and_tell(&mut self.relay, cx, tell)) => {
                    self.stopped(stop).await;
                    look_at = self.asked_at.map(|asked| asked + self.options.idle_grace);
                }
                event = self.child.event() => match event {
                    ChildEvent::Started => {}
                    ChildEvent::NotStarted { errno } => return Err(io::Error::from_raw_os_error(errno)),
                    ChildEvent::Ended(status) => return Ok(status),
                    ChildEvent::TreeGone => return Ok(ExitStatus::Unknown),
                },
                interrupt = signals.next() => {
                    self.interrupted |= interrupt;
                    self.client_left = true;
                    self.ask_to_end();
                    self.child.terminate();
                    look_at = None;
                }
                () = sleep_until(next_look), if look_at.is_some() => look_at = self.look(),
            }
        }
    }

    async fn stopped(&mut self, stop: Stop) {
        self.client_left |= !matches!(stop, Stop::ServerDone);
        if let Stop::StoreFailed(failed) = stop {
            self.store_failed = Some(failed);
            self.relay.close_server_output();
            // Recording these answers may fail as well; they are sent all the same.
            let _ = poll_fn(|cx| Poll::Ready(self.relay.answer_open_calls(&Refusal::NotRecorded, cx))).await;
        }
        self.ask_to_end();
    }

    /// Closes the server's input, which asks it to end.
    fn ask_to_end(&mut self) {
        self.relay.close_server_input();
        self.asked_at.get_or_insert_with(Instant::now);
    }

    /// The server was asked to end and has not yet: wait on for open calls, or end it.
    fn look(&mut self) -> Option<Instant> {
        let asked_at = self.asked_at?;
        let works = self.relay.client_reads() && self.relay.pipeline.open_calls(Side::Client) > 0;
        if works && asked_at.elapsed() < self.options.call_grace {
            return Some(Instant::now() + LOOK_AGAIN);
        }
        self.child.terminate();
        None
    }

    /// The server has ended: passes on its last words, answers what it left open, and sees its tree
    /// gone. Returns how many calls it left open.
    async fn wind_up(&mut self, status: ExitStatus) -> usize {
        let drained = poll_fn(|cx| {
            while self.relay.server_speaks() {
                match self.relay.poll(cx) {
                    Poll::Ready(_) => self.relay.close_server_input(),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(())
        });
        let _ = timeout(DRAIN_FOR, drained).await;
        let unanswered = self.relay.pipeline.open_calls(Side::Client);
        let refusal = Refusal::ServerGone { status: status.to_string() };
        let _ = poll_fn(|cx| Poll::Ready(self.relay.answer_open_calls(&refusal, cx))).await;
        let _ = timeout(FLUSH_FOR, poll_fn(|cx| self.relay.poll_client_flushed(cx))).await;
        let _ = timeout(TREE_GONE_FOR, async { while self.child.event().await != ChildEvent::TreeGone {} }).await;
        unanswered
    }
}

fn poll_and_tell(relay: &mut Relay, cx: &mut std::task::Context<'_>, tell: &mut dyn FnMut(String)) -> Poll<Stop> {
    let polled = relay.poll(cx);
    if let Some(trouble) = relay.pipeline.take_trouble() {
        tell(trouble);
    }
    polled
}

/// The signals that ask us to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// True if a person at a terminal sent it.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => false,
            _ = self.hang_up.recv() => false,
        }
    }
}
