//! One client and one server over pipes, from the server's start to the last of its tree: who ended
//! first, what the other is told, and how long each is given.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_engine::commands::{Commands, next_command};
use mcp_engine::{Pipeline, Side, StoreFailed};
use mcp_wire::reply::Refusal;
use tokio::time::{Instant, sleep_until, timeout};

use super::client::CLIENT_STALLED_FOR;
use super::pipe::Pipe;
use super::relay::{Relay, Stop};
use super::stderr::{self, LastWords};
use crate::child::{self, Child, ChildEvent, DRAIN_FOR, ExitStatus, ServerCommand, TREE_GONE_FOR};
use crate::signals::Signals;

/// Interval between two looks at a server that was asked to end and still has open calls.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub message_bytes_max: usize,
    /// What a server gets to end by itself once its input is closed: without open calls, and with.
    pub idle_grace: Duration,
    pub call_grace: Duration,
    /// What a client in this process gets to leave by itself after a signal.
    pub signal_patience: Duration,
    /// Called when the server is started.
    pub ready: Option<fn()>,
}

/// How a conversation ended.
pub struct Ended {
    pub status: ExitStatus,
    /// Why the server could not be started, if it could not.
    pub not_started: Option<io::Error>,
    pub last_words: LastWords,
    pub pipeline: Pipeline,
    pub conversation: mcp_engine::Conversation,
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
    #[error("cannot start the server's guard")]
    Guard(#[source] io::Error),
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
    let mut signals = Signals::listen_with(options.signal_patience).map_err(ServeError::Stdio)?;
    let started = child::start(command).map_err(ServeError::Guard)?;
    let pipes = (Pipe::owned(started.stdout), Pipe::owned(started.stdin));
    let server = (pipes.0.map_err(ServeError::Stdio)?, pipes.1.map_err(ServeError::Stdio)?);
    let last_words = LastWords::default();
    let stderr = tokio::spawn(stderr::drain(started.stderr, last_words.clone(), None));
    let mut pipeline = pipeline;
    let commands = pipeline.take_commands();
    let mut conversation = Conversation {
        relay: Relay::new(client, server, pipeline, options.message_bytes_max),
        commands,
        options,
        asked_at: None,
        client_left: false,
        interrupted: false,
        hurried: false,
        store_failed: None,
    };
    let mut child = started.child;
    let (status, not_started) = match conversation.run(&mut child, &mut signals, tell).await {
        Ok(status) => (status, None),
        Err(error) => (ExitStatus::NotStarted, Some(error)),
    };
    let server_left_first = !conversation.client_left;
    let tree_gone = tokio::spawn(see_gone(child));
    let unanswered = conversation.wind_up(status, &mut signals).await;
    let _ = timeout(TREE_GONE_FOR, tree_gone).await;
    let _ = timeout(DRAIN_FOR, stderr).await;
    Ok(Ended {
        status,
        not_started,
        last_words,
        pipeline: conversation.relay.pipeline,
        conversation: conversation.relay.conversation,
        interrupted: conversation.interrupted,
        store_failed: conversation.store_failed,
        server_left_first,
        unanswered,
    })
}

struct Conversation {
    relay: Relay,
    /// Where commands come in, while there can be any.
    commands: Option<Commands>,
    options: Options,
    /// When the server was asked to end.
    asked_at: Option<Instant>,
    /// The client ended it, or we did; not the server.
    client_left: bool,
    interrupted: bool,
    /// We were told to end now; a client that does not read is not waited for.
    hurried: bool,
    store_failed: Option<StoreFailed>,
}

impl Conversation {
    /// Relays until the server has ended, by itself or because it was asked to.
    async fn run(
        &mut self,
        child: &mut Child,
        signals: &mut Signals,
        tell: &mut dyn FnMut(String),
    ) -> io::Result<ExitStatus> {
        let mut look_at: Option<Instant> = None;
        let mut stalled = Stalled::new(self.options.call_grace);
        loop {
            let next_look = look_at.unwrap_or_else(Instant::now);
            let held_until = self.relay.pipeline.holds.deadline();
            tokio::select! {
                biased;
                stop = poll_fn(|cx| poll_and_tell(&mut self.relay, cx, tell)) => match stop {
                    Stop::ClientWaits => stalled.watch(self.relay.moved()),
                    // What a rule refuses is parked and free at once.
                    Stop::Parked => self.send_released().await,
                    stop => {
                        self.stopped(stop).await;
                        look_at = self.asked_at.map(|asked| asked + self.options.idle_grace);
                    }
                },
                event = child.event() => match event {
                    ChildEvent::Started => self.options.ready.iter().for_each(|ready| ready()),
                    ChildEvent::NotStarted { errno } => return Err(io::Error::from_raw_os_error(errno)),
                    ChildEvent::Ended(status) => return Ok(status),
                    ChildEvent::TreeGone => return Ok(ExitStatus::Unknown),
                },
                interrupt = signals.next() => {
                    self.interrupted |= interrupt;
                    self.hurried = true;
                    self.client_left = true;
                    self.ask_to_end();
                    child.terminate();
                    look_at = None;
                }
                command = next_command(&mut self.commands) => {
                    command.carry_out(&mut self.relay.pipeline);
                    self.send_released().await;
                }
                () = sleep_until(held_until.unwrap_or(next_look)), if held_until.is_some() => {
                    self.relay.pipeline.decisions().release_overdue();
                    self.send_released().await;
                }
                () = sleep_until(next_look), if look_at.is_some() => look_at = self.look(child),
                () = stalled.over() => if stalled.is_over(self.relay.moved()) {
                    // The client is gone, and the server does not even take what it sent.
                    self.client_left = true;
                    self.ask_to_end();
                    child.terminate();
                },
            }
        }
    }

    /// Sends what is parked no more, and what an order had recorded to the disk.
    async fn send_released(&mut self) {
        let sent = poll_fn(|cx| Poll::Ready(self.relay.dispatch_released(cx))).await;
        if let Err(failed) = sent {
            self.stopped(Stop::StoreFailed(failed)).await;
        }
    }

    async fn stopped(&mut self, stop: Stop) {
        self.client_left |= !matches!(stop, Stop::ServerDone | Stop::ServerDeaf);
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
    fn look(&mut self, child: &Child) -> Option<Instant> {
        let asked_at = self.asked_at?;
        let works = self.relay.client_reads()
            && self.relay.server_speaks()
            && self.relay.conversation.open_calls(Side::Client) > 0;
        if works && asked_at.elapsed() < self.options.call_grace {
            return Some(Instant::now() + LOOK_AGAIN);
        }
        child.terminate();
        None
    }

    /// The server has ended: passes on its last words and answers what it left open. Returns how many calls it left open.
    async fn wind_up(&mut self, status: ExitStatus, signals: &mut Signals) -> usize {
        self.relay.pipeline.holds.stop_holding();
        let gone = poll_fn(|cx| Poll::Ready(self.relay.server_is_gone(cx))).await;
        if let Err(failed) = gone {
            self.store_failed.get_or_insert(failed);
        }
        self.while_anything_moves(signals, Self::poll_drained).await;
        let unanswered = self.relay.conversation.open_calls(Side::Client);
        let refusal = Refusal::ServerGone { status: status.to_string() };
        if let Err(failed) = poll_fn(|cx| Poll::Ready(self.relay.answer_open_calls(&refusal, cx))).await {
            self.store_failed.get_or_insert(failed);
        }
        self.while_anything_moves(signals, |conversation, cx| conversation.relay.poll_client_flushed(cx)).await;
        unanswered
    }

    /// Ready when the server's output has been passed on to its end.
    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.relay.server_speaks() {
            match self.relay.poll(cx) {
                Poll::Ready(Stop::StoreFailed(failed)) => {
                    self.store_failed.get_or_insert(failed);
                    self.relay.close_server_output();
                }
                Poll::Ready(Stop::ClientGone) => self.relay.close_server_output(),
                Poll::Ready(Stop::Parked) => {
                    if let Err(failed) = self.relay.dispatch_released(cx) {
                        self.store_failed.get_or_insert(failed);
                    }
                }
                Poll::Ready(_) => self.relay.close_server_input(),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Waits for `done`, but not when nothing happens any more: something the server left behind may
    /// hold its output open, or the client may have stopped reading.
    async fn while_anything_moves(
        &mut self,
        signals: &mut Signals,
        mut done: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<()>,
    ) {
        loop {
            let before = self.relay.moved();
            let waits_for_client = self.relay.client_is_behind() && !self.hurried;
            let patience = if waits_for_client { CLIENT_STALLED_FOR } else { DRAIN_FOR };
            tokio::select! {
                biased;
                () = poll_fn(|cx| done(self, cx)) => return,
                _ = signals.next() => self.hurried = true,
                () = tokio::time::sleep(patience) => if self.relay.moved() == before {
                    // Whoever did not take this will not take more.
                    self.hurried = true;
                    return;
                }
            }
        }
    }
}

/// Reaps the guard as soon as the tree is gone. The client may take its time over what the server left for it, and the
/// guard must not stay a zombie for that long.
async fn see_gone(mut child: Child) {
    while child.event().await != ChildEvent::TreeGone {}
    let _ = tokio::task::spawn_blocking(move || drop(child)).await;
}

/// Watches whether a server takes anything at all of what a client left for it.
struct Stalled {
    patience: Duration,
    watched: Option<(u64, Instant)>,
}

impl Stalled {
    fn new(patience: Duration) -> Self {
        Self { patience, watched: None }
    }

    fn watch(&mut self, moved: u64) {
        self.watched = Some((moved, Instant::now() + self.patience));
    }

    /// Comes when it is time to look; never while nothing is watched.
    async fn over(&self) {
        match self.watched {
            Some((_, at)) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// True if nothing has moved since; else it is watched on.
    fn is_over(&mut self, moved: u64) -> bool {
        match self.watched.take() {
            Some((before, _)) if before == moved => true,
            _ => {
                self.watch(moved);
                false
            }
        }
    }
}

fn poll_and_tell(relay: &mut Relay, cx: &mut Context<'_>, tell: &mut dyn FnMut(String)) -> Poll<Stop> {
    let polled = relay.poll(cx);
    if let Some(trouble) = relay.pipeline.journal.take_trouble() {
        tell(trouble);
    }
    polled
}
