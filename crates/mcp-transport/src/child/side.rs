//! A server process as the server side of a link: started under the guard, read and written by pipes, seen to its end.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mcp_engine::Side;
use mcp_link::side::NOT_STARTED;
use mcp_link::{Alive, Link, Passed, ServerSide, Waiting};
use mcp_store::Transport;
use mcp_wire::reply::Refusal;
use mcp_wire::visible::visible_bytes;
use mcp_wire::{Cut, Deframer, Ending, Framing, Kind, Message};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Child, ChildEvent, DRAIN_FOR, ExitStatus, LAST_WORDS_LINES, ServerCommand, ServerProcess, TREE_GONE_FOR};
use crate::stdio::pipe::Pipe;
use crate::stdio::stderr::{self, LastWords};
use crate::stdio::writer::PipeWriter;

/// Time for a server to end by itself once its input is closed, or once it closed its own end of either pipe.
const END_FOR: Duration = Duration::from_secs(2);
/// Time for a server that closed its input to answer its open calls.
const CALLS_FOR: Duration = Duration::from_secs(10);
/// Bytes quoted in the recording of a message that has no end.
const QUOTED: usize = 512;

/// What is particular about a server.
pub struct ChildOptions {
    /// What it gets to end by itself once its input is closed.
    pub grace: Duration,
    /// How it is spoken to, if not as its client speaks.
    pub framing: Option<Framing>,
    /// What people call it.
    pub name: Option<Arc<str>>,
}

impl Default for ChildOptions {
    fn default() -> Self {
        Self { grace: END_FOR, framing: None, name: None }
    }
}

pub struct ChildSide {
    program: String,
    /// The server's, where there are several.
    name: Option<Arc<str>>,
    grace: Duration,
    pub stdin: PipeWriter,
    process: ServerProcess,
}

/// The way a server's process left its conversation.
enum Left {
    NotStarted(io::Error),
    Ended(ExitStatus),
    /// It lives, but has closed one end of its pipes for longer than it may.
    Closed(&'static str),
    /// The client left first.
    Unwanted,
}

impl ChildSide {
    /// Starts a server for `link`. `alive` is held until nothing of it is left.
    pub fn start(link: &Rc<Link>, command: &ServerCommand, options: &ChildOptions, alive: Alive) -> io::Result<()> {
        let started = super::start(command)?;
        let input = Pipe::owned(started.stdin)?;
        let stdout = Pipe::owned(started.stdout)?;
        let last_words = LastWords::default();
        tokio::task::spawn_local({
            let (fd, last_words, name) = (started.stderr, last_words.clone(), options.name.clone());
            async move { stderr::drain(fd, last_words, name).await }
        });
        let program = command.program.to_string_lossy().into_owned();
        // What clients on HTTP send comes one message at a time, each in a turn of its own.
        let stdin = match link.client.transport() {
            Transport::Stdio => PipeWriter::of_many(),
            Transport::Sse | Transport::StreamableHttp => PipeWriter::default(),
        };
        let process = ServerProcess::new(&started.child, &input);
        let name = options.name.clone();
        let side = Rc::new(Self { program, name, grace: options.grace, stdin, process });
        if let Some(framing) = options.framing {
            side.stdin.speak(framing);
        }
        link.connect(Rc::<Self>::clone(&side));
        let writing = tokio::task::spawn_local({
            let side = Rc::clone(&side);
            async move { side.stdin.write_to(input).await }
        });
        let link = Rc::clone(link);
        tokio::task::spawn_local(async move {
            attend(&link, &side, (stdout, writing), started.child, &last_words).await;
            drop(alive);
        });
        Ok(())
    }
}

impl ServerSide for ChildSide {
    fn take(&self, passed: Passed<'_>) {
        self.stdin.push(passed.frame);
    }

    fn room(&self) -> Option<Waiting<'_>> {
        self.stdin.is_full().then(|| Box::pin(self.stdin.until_room()) as Waiting<'_>)
    }

    fn input_ended(&self) -> bool {
        self.stdin.close();
        true
    }

    fn speak(&self, framing: Framing) {
        self.stdin.speak(framing);
    }

    fn is_stopped(&self) -> bool {
        self.process.is_stopped()
    }
}

/// Sees a server through from its start to the last of its tree.
async fn attend(
    link: &Rc<Link>,
    side: &ChildSide,
    (mut stdout, mut writing): (Pipe, JoinHandle<()>),
    mut child: Child,
    last_words: &LastWords,
) {
    let mut deframer = Deframer::new(link.runtime.message_bytes_max);
    let left = {
        let mut reading = std::pin::pin!(read(link, side, &mut stdout, &mut deframer));
        let (mut speaks, mut listens) = (true, true);
        let mut closed: Option<(Instant, &'static str)> = None;
        loop {
            tokio::select! {
                biased;
                () = &mut reading, if speaks => {
                    speaks = false;
                    side.stdin.close();
                    // No call is answered any more.
                    closed = Some((Instant::now() + side.grace.min(END_FOR), "standard output closed"));
                }
                _ = &mut writing, if listens => {
                    listens = false;
                    if side.stdin.is_broken() && closed.is_none() {
                        let has_calls = link.open_calls() > 0;
                        let patience = if has_calls { CALLS_FOR } else { side.grace.min(END_FOR) };
                        closed = Some((Instant::now() + patience, "standard input closed"));
                    }
                }
                event = child.event() => match event {
                    ChildEvent::Started => {}
                    ChildEvent::NotStarted { errno } => break Left::NotStarted(io::Error::from_raw_os_error(errno)),
                    ChildEvent::Ended(status) => {
                        // What it wrote last may still be on its way.
                        let _ = timeout(DRAIN_FOR, async { if speaks { (&mut reading).await } }).await;
                        break Left::Ended(status);
                    }
                    ChildEvent::TreeGone => break Left::Ended(ExitStatus::Unknown),
                },
                how = until(closed) => break Left::Closed(how),
                () = link.over() => break Left::Unwanted,
            }
        }
    };
    match left {
        Left::NotStarted(error) => {
            let whose = side.name.as_ref().map(|name| format!("server \"{name}\": ")).unwrap_or_default();
            link.runtime.tell(format!("error: {whose}cannot start `{}`: {error}", side.program));
            gone(link, &NOT_STARTED, last_words);
        }
        Left::Ended(status) => gone(link, &status, last_words),
        Left::Closed(how) => {
            // A process that takes its place does not meet it.
            child.terminate();
            let ended = async { while !matches!(child.event().await, ChildEvent::Ended(_) | ChildEvent::TreeGone) {} };
            let _ = timeout(END_FOR, ended).await;
            gone(link, &how, last_words);
        }
        Left::Unwanted => {
            side.stdin.close();
            let ended = async { while !matches!(child.event().await, ChildEvent::Ended(_) | ChildEvent::TreeGone) {} };
            if timeout(side.grace, ended).await.is_err() {
                child.terminate();
            }
        }
    }
    side.stdin.close();
    let tree_gone = async { while child.event().await != ChildEvent::TreeGone {} };
    if timeout(TREE_GONE_FOR, tree_gone).await.is_err() {
        link.runtime.tell("a server's processes could not be seen to end".into());
    }
    // The guard has ended or is about to; waiting for it would hold up everybody else.
    let _ = tokio::task::spawn_blocking(move || drop(child)).await;
}

/// Waits until a server that closed a pipe should have ended; for ever, if it closed none.
async fn until(closed: Option<(Instant, &'static str)>) -> &'static str {
    match closed {
        Some((at, how)) => {
            sleep_until(at).await;
            how
        }
        None => std::future::pending().await,
    }
}

async fn read(link: &Rc<Link>, side: &ChildSide, stdout: &mut Pipe, deframer: &mut Deframer) {
    let mut cuts = Vec::new();
    loop {
        link.client_room().await;
        let read = poll_fn(|cx| stdout.poll_read(cx, deframer.buffer(), false)).await;
        let at_end = !matches!(read, Ok(count) if count > 0);
        if at_end {
            deframer.finish(&mut cuts);
            if let Some(torn) = cuts.pop_if(|cut| is_torn(cut)) {
                note_torn(link, &torn);
            }
        } else {
            deframer.cut(&mut cuts);
        }
        if !cuts.is_empty() {
            side.stdin.note_line_ends(&cuts);
            link.from_server_cuts(&mut cuts);
        }
        if at_end {
            return;
        }
    }
}

/// Whether a server ended in the middle of a message. A client could not read it, and would take the beginning for its answer.
fn is_torn(cut: &Cut) -> bool {
    match cut {
        Cut::Frame(frame) if frame.ending == Ending::EndOfStream => {
            let opens = matches!(frame.bytes.trim_ascii_start().first(), Some(b'{' | b'['));
            opens && Message::new(frame.bytes.clone()).kind() == Kind::NotJson
        }
        Cut::Frame(_) | Cut::TooLarge { .. } | Cut::Unframed { .. } => false,
    }
}

fn note_torn(link: &Link, torn: &Cut) {
    if let Cut::Frame(frame) = torn {
        let quoted = visible_bytes(&frame.bytes[..frame.bytes.len().min(QUOTED)]);
        link.note(Side::Server, &format!("the server's output ended in the middle of a message: {quoted}"));
    }
}

/// The server ended while its client was still there.
fn gone(link: &Rc<Link>, status: &dyn fmt::Display, last_words: &LastWords) {
    let (words, status) = (last_words.text(LAST_WORDS_LINES), status.to_string());
    let upstream = link.client.upstream();
    if let Some(upstream) = upstream {
        upstream.died(&status, &words);
    }
    let said = if words.is_empty() { String::new() } else { format!("; its last words: {words}") };
    link.note(Side::Server, &format!("the server ended ({status}){said}"));
    link.server_is_gone();
    // Clients of several servers are told which one it was, and when to try again.
    if upstream.is_none() {
        link.answer_open_calls(&Refusal::ServerGone { status });
    }
    link.end();
}
