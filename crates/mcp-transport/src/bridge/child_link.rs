//! A server that is a process, behind a client that is not on our standard input.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mcp_engine::Side;
use mcp_wire::reply::Refusal;
use mcp_wire::visible::visible_bytes;
use mcp_wire::{Cut, Deframer, Ending, Framing, Kind, Message};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::outflow::Outflow;
use super::talk::{ClientEnd, ServerEnd, Talk};
use crate::child::{self, Child, ChildEvent, ExitStatus, ServerCommand, ServerProcess};
use crate::stdio::pipe::Pipe;
use crate::stdio::stderr::{self, LastWords};

/// What a server gets to end by itself once its input is closed, or once it closed its own end of either pipe.
const END_FOR: Duration = Duration::from_secs(2);
/// The same, if it closed its input and may still answer calls.
const CALLS_FOR: Duration = Duration::from_secs(10);
/// For the guard to say that the tree is gone.
const TREE_GONE_FOR: Duration = Duration::from_secs(6);
/// For what a server wrote last, when something it left behind still holds its output open.
const DRAIN_FOR: Duration = Duration::from_millis(600);
/// How a server ended that never began.
pub const NOT_STARTED: &str = "could not be started";
/// Lines of a server's last words that are kept.
const LAST_WORDS_LINES: usize = 20;
/// Bytes of a message without an end that are quoted in the recording.
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

pub struct ChildLink {
    program: String,
    /// The server's, where there are several.
    name: Option<Arc<str>>,
    grace: Duration,
    pub stdin: Outflow,
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

impl ChildLink {
    /// Starts a server for `talk`. `done` is held until nothing of it is left.
    pub fn start(
        talk: &Rc<Talk>,
        command: &ServerCommand,
        options: &ChildOptions,
        done: impl Sized + 'static,
    ) -> io::Result<()> {
        let started = child::start(command)?;
        let input = Pipe::owned(started.stdin)?;
        let stdout = Pipe::owned(started.stdout)?;
        let last_words = LastWords::default();
        tokio::task::spawn_local({
            let (fd, last_words, name) = (started.stderr, last_words.clone(), options.name.clone());
            async move { stderr::drain(fd, last_words, name).await }
        });
        let program = command.program.to_string_lossy().into_owned();
        // What clients on HTTP send comes one message at a time, each in a turn of its own.
        let stdin = match talk.client {
            ClientEnd::Leg(_) | ClientEnd::Pipe(_) => Outflow::of_many(),
            ClientEnd::Session(_) | ClientEnd::Stream(_) => Outflow::default(),
        };
        let process = ServerProcess::new(&started.child, &input);
        let name = options.name.clone();
        let link = Rc::new(Self { program, name, grace: options.grace, stdin, process });
        if let Some(framing) = options.framing {
            link.stdin.speak(framing);
        }
        talk.connect(ServerEnd::Child(Rc::clone(&link)));
        let writing = tokio::task::spawn_local({
            let link = Rc::clone(&link);
            async move { link.stdin.write_to(input).await }
        });
        let talk = Rc::clone(talk);
        tokio::task::spawn_local(async move {
            attend(&talk, &link, (stdout, writing), started.child, &last_words).await;
            drop(done);
        });
        Ok(())
    }

    /// Whether the process that reads what is sent is stopped, as by SIGSTOP.
    pub fn is_stopped(&self) -> bool {
        self.process.is_stopped()
    }

    pub async fn room(&self) {
        self.stdin.room().await;
    }
}

/// Sees a server through from its start to the last of its tree.
async fn attend(
    talk: &Rc<Talk>,
    link: &ChildLink,
    (mut stdout, mut writing): (Pipe, JoinHandle<()>),
    mut child: Child,
    last_words: &LastWords,
) {
    let mut deframer = Deframer::new(talk.hub.message_bytes_max);
    let left = {
        let mut reading = std::pin::pin!(read(talk, link, &mut stdout, &mut deframer));
        let (mut speaks, mut listens) = (true, true);
        let mut closed: Option<(Instant, &'static str)> = None;
        loop {
            tokio::select! {
                biased;
                () = &mut reading, if speaks => {
                    speaks = false;
                    link.stdin.close();
                    // No call is answered any more.
                    closed = Some((Instant::now() + link.grace.min(END_FOR), "standard output closed"));
                }
                _ = &mut writing, if listens => {
                    listens = false;
                    if link.stdin.is_broken() && closed.is_none() {
                        let has_calls = talk.conversation.borrow().open_calls(Side::Client) > 0;
                        let patience = if has_calls { CALLS_FOR } else { link.grace.min(END_FOR) };
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
                () = talk.over() => break Left::Unwanted,
            }
        }
    };
    match left {
        Left::NotStarted(error) => {
            let whose = link.name.as_ref().map(|name| format!("server \"{name}\": ")).unwrap_or_default();
            talk.hub.tell(format!("error: {whose}cannot start `{}`: {error}", link.program));
            gone(talk, &NOT_STARTED, last_words);
        }
        Left::Ended(status) => gone(talk, &status, last_words),
        Left::Closed(how) => {
            // A process that takes its place does not meet it.
            child.terminate();
            let ended = async { while !matches!(child.event().await, ChildEvent::Ended(_) | ChildEvent::TreeGone) {} };
            let _ = timeout(END_FOR, ended).await;
            gone(talk, &how, last_words);
        }
        Left::Unwanted => {
            link.stdin.close();
            let ended = async { while !matches!(child.event().await, ChildEvent::Ended(_) | ChildEvent::TreeGone) {} };
            if timeout(link.grace, ended).await.is_err() {
                child.terminate();
            }
        }
    }
    link.stdin.close();
    let tree_gone = async { while child.event().await != ChildEvent::TreeGone {} };
    if timeout(TREE_GONE_FOR, tree_gone).await.is_err() {
        talk.hub.tell("a server's processes could not be seen to end".into());
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

async fn read(talk: &Rc<Talk>, link: &ChildLink, stdout: &mut Pipe, deframer: &mut Deframer) {
    let mut cuts = Vec::new();
    loop {
        talk.client_room().await;
        let read = poll_fn(|cx| stdout.poll_read(cx, deframer.buffer(), false)).await;
        let at_end = !matches!(read, Ok(count) if count > 0);
        if at_end {
            deframer.finish(&mut cuts);
            if let Some(torn) = cuts.pop_if(|cut| is_torn(cut)) {
                note_torn(talk, &torn);
            }
        } else {
            deframer.cut(&mut cuts);
        }
        if !cuts.is_empty() {
            link.stdin.note_line_ends(&cuts);
            talk.from_server_cuts(&mut cuts);
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

fn note_torn(talk: &Talk, torn: &Cut) {
    if let Cut::Frame(frame) = torn {
        let quoted = visible_bytes(&frame.bytes[..frame.bytes.len().min(QUOTED)]);
        talk.note(Side::Server, &format!("the server's output ended in the middle of a message: {quoted}"));
    }
}

/// The server ended while its client was still there.
fn gone(talk: &Rc<Talk>, status: &dyn fmt::Display, last_words: &LastWords) {
    let (words, status) = (last_words.text(LAST_WORDS_LINES), status.to_string());
    if let ClientEnd::Leg(leg) = &talk.client {
        leg.died(&status, &words);
    }
    let said = if words.is_empty() { String::new() } else { format!("; its last words: {words}") };
    talk.note(Side::Server, &format!("the server ended ({status}){said}"));
    talk.server_is_gone();
    // Clients of several servers are told which one it was, and when to try again.
    if !matches!(talk.client, ClientEnd::Leg(_)) {
        talk.answer_open_calls(&Refusal::ServerGone { status });
    }
    talk.end();
}
