//! A server that is a process, behind a client that is not on our standard input.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mcp_engine::Side;
use mcp_wire::reply::Refusal;
use mcp_wire::{Deframer, Framing};
use tokio::time::timeout;

use super::outflow::Outflow;
use super::talk::{ClientEnd, ServerEnd, Talk};
use crate::child::{self, Child, ChildEvent, ExitStatus, ServerCommand};
use crate::stdio::pipe::Pipe;
use crate::stdio::stderr::{self, LastWords};

/// What a server gets to end by itself once its input is closed.
const END_FOR: Duration = Duration::from_secs(2);
/// For the guard to say that the tree is gone.
const TREE_GONE_FOR: Duration = Duration::from_secs(6);
/// For what a server wrote last, when something it left behind still holds its output open.
const DRAIN_FOR: Duration = Duration::from_millis(600);
/// How a server ended that never began.
pub const NOT_STARTED: &str = "could not be started";
/// Lines of a server's last words that are kept.
const LAST_WORDS_LINES: usize = 20;

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
        let link = Rc::new(Self { program, name: options.name.clone(), grace: options.grace, stdin });
        if let Some(framing) = options.framing {
            link.stdin.speak(framing);
        }
        talk.connect(ServerEnd::Child(Rc::clone(&link)));
        tokio::task::spawn_local({
            let link = Rc::clone(&link);
            async move { link.stdin.write_to(input).await }
        });
        let talk = Rc::clone(talk);
        tokio::task::spawn_local(async move {
            attend(&talk, &link, stdout, started.child, &last_words).await;
            drop(done);
        });
        Ok(())
    }

    pub async fn room(&self) {
        self.stdin.room().await;
    }
}

/// Sees a server through from its start to the last of its tree.
async fn attend(talk: &Rc<Talk>, link: &ChildLink, mut stdout: Pipe, mut child: Child, last_words: &LastWords) {
    let mut deframer = Deframer::new(talk.hub.message_bytes_max);
    let status = {
        let mut reading = std::pin::pin!(read(talk, link, &mut stdout, &mut deframer));
        let mut speaks = true;
        loop {
            tokio::select! {
                biased;
                () = &mut reading, if speaks => speaks = false,
                event = child.event() => match event {
                    ChildEvent::Started => {}
                    ChildEvent::NotStarted { errno } => break Err(io::Error::from_raw_os_error(errno)),
                    ChildEvent::Ended(status) => {
                        // What it wrote last may still be on its way.
                        let _ = timeout(DRAIN_FOR, async { if speaks { (&mut reading).await } }).await;
                        break Ok(Some(status));
                    }
                    ChildEvent::TreeGone => break Ok(Some(ExitStatus::Unknown)),
                },
                () = talk.over() => break Ok(None),
            }
        }
    };
    match status {
        Err(error) => {
            let whose = link.name.as_ref().map(|name| format!("server \"{name}\": ")).unwrap_or_default();
            talk.hub.tell(format!("error: {whose}cannot start `{}`: {error}", link.program));
            gone(talk, NOT_STARTED, last_words);
        }
        Ok(Some(status)) => gone(talk, &status.to_string(), last_words),
        Ok(None) => {
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

async fn read(talk: &Rc<Talk>, link: &ChildLink, stdout: &mut Pipe, deframer: &mut Deframer) {
    let mut cuts = Vec::new();
    loop {
        talk.client_room().await;
        let read = poll_fn(|cx| stdout.poll_read(cx, deframer.buffer(), false)).await;
        let at_end = !matches!(read, Ok(count) if count > 0);
        if at_end {
            deframer.finish(&mut cuts);
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

/// The server ended while its client was still there.
fn gone(talk: &Rc<Talk>, status: &str, last_words: &LastWords) {
    let words = last_words.text(LAST_WORDS_LINES);
    if let ClientEnd::Leg(leg) = &talk.client {
        leg.died(status, &words);
    }
    let said = if words.is_empty() { String::new() } else { format!("; its last words: {words}") };
    talk.note(Side::Server, &format!("the server ended ({status}){said}"));
    talk.server_is_gone();
    // Clients of several servers are told which one it was, and when to try again.
    if !matches!(talk.client, ClientEnd::Leg(_)) {
        talk.answer_open_calls(&Refusal::ServerGone { status: status.to_owned() });
    }
    talk.end();
}
