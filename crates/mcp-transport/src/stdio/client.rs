//! A client on a pipe in front of an HTTP server or a gateway: on standard input and output, or on the private socket of a
//! listening instance. `relay.rs` serves a client whose server is a process of its own.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

use mcp_engine::Pipeline;
use mcp_link::serve::Closing;
use mcp_link::{Backend, Ended, Front, Link, Runtime};
use mcp_wire::reply::Refusal;
use mcp_wire::{Deframer, Framing};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::pipe::Pipe;
use super::writer::{CLIENT_STALLED, PipeWriter};
use crate::http::http_side::HttpSide;
use crate::http::sse_side::SseSide;
use crate::http::state::HttpState;
use crate::http::upstream::Upstream;
use crate::signals::Signals;

/// Time for open calls and messages under way once the client sends no more.
const CALLS_FOR: Duration = Duration::from_secs(10);
/// Interval between two counts of those.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Time for a server process without open calls to end by itself.
const IDLE_FOR: Duration = Duration::from_secs(2);
/// Time for a client to take a byte of the output that an ended server left for it.
pub const CLIENT_STALLED_FOR: Duration = Duration::from_secs(30);

/// A client whose messages come on one pipe and whose answers leave on another.
pub struct PipeClient {
    pub link: Rc<Link>,
    out: Rc<PipeWriter>,
    stdin: Cell<Option<Pipe>>,
    writing: JoinHandle<()>,
}

impl PipeClient {
    /// `out` is the client side of `link`.
    pub fn new(link: Rc<Link>, out: Rc<PipeWriter>, (stdin, stdout): (Pipe, Pipe)) -> Self {
        let writing = tokio::task::spawn_local({
            let out = Rc::clone(&out);
            async move { out.write_to_reader(stdout).await }
        });
        Self { link, out, stdin: Cell::new(Some(stdin)), writing }
    }

    /// Serves the client until it is done, or no longer reads.
    pub async fn serve(&self) {
        let Some(stdin) = self.stdin.take() else { return };
        tokio::select! {
            () = self.read(stdin) => {}
            () = self.out.finished() => if self.out.has_stalled() {
                self.link.runtime.tell(CLIENT_STALLED.into());
            },
            () = self.link.over() => {}
        }
    }

    /// Lets the client read what is left for it.
    pub async fn flush(&self) {
        let _ = timeout(CLIENT_STALLED_FOR, self.out.finished()).await;
    }

    /// Passes on what the client sends, until it sends no more and its calls are answered.
    async fn read(&self, mut stdin: Pipe) {
        let link = &self.link;
        let mut deframer = Deframer::new(link.runtime.message_bytes_max);
        let mut cuts = Vec::new();
        loop {
            link.server_room().await;
            // A client that reads no answers gets to ask for no more of them.
            link.client_room().await;
            let read = poll_fn(|cx| stdin.poll_read(cx, deframer.buffer(), false)).await;
            let at_end = !matches!(read, Ok(count) if count > 0);
            if at_end {
                deframer.finish(&mut cuts);
            } else {
                deframer.cut(&mut cuts);
            }
            self.out.note_line_ends(&cuts);
            if let Some(framing) = deframer.framing() {
                self.speak(framing);
            }
            if !cuts.is_empty() {
                link.from_client_cuts(&mut cuts);
            }
            if at_end {
                break;
            }
        }
        link.client_is_silent();
        // Held messages go on in the end, unless someone decides otherwise.
        while link.holds_from_client() && !link.is_over() {
            sleep(LOOK_AGAIN).await;
        }
        let server_ends = link.server().is_some_and(|server| server.input_ended());
        if server_ends {
            return self.see_server_out().await;
        }
        let answered = async {
            while link.open_calls() > 0 || !link.server_was_told_all() {
                sleep(LOOK_AGAIN).await;
            }
        };
        if timeout(CALLS_FOR, answered).await.is_err() {
            link.answer_open_calls(&Refusal::StreamLost);
        }
    }

    /// The client gets its own framing, and so does a server that is a process, which was made for such clients.
    fn speak(&self, framing: Framing) {
        self.out.speak(framing);
        if let Some(server) = self.link.server() {
            server.speak(framing);
        }
    }

    /// Passes on what a server says until it has ended, now that its input is closed.
    async fn see_server_out(&self) {
        let asked = Instant::now();
        while !self.link.is_over() {
            let works = self.link.open_calls() > 0;
            if asked.elapsed() > if works { CALLS_FOR } else { IDLE_FOR } {
                return self.link.answer_open_calls(&Refusal::StreamLost);
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

impl Drop for PipeClient {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

/// The server, or servers, of the one client of a process.
pub enum Server {
    Http(Rc<Upstream>),
    Sse(Rc<Upstream>),
    /// `drain` is what open calls get to finish once the process is asked to end.
    Many {
        backend: Rc<dyn Backend>,
        drain: Duration,
    },
}

/// The one client of a process: its front from the first message to the last.
struct OnlyClient {
    client: PipeClient,
    /// Set where there are many servers.
    backend: Option<(Rc<dyn Backend>, Duration)>,
    /// Comes when nothing is left of a server with an address.
    server_gone: RefCell<Option<oneshot::Receiver<()>>>,
    interrupted: Cell<bool>,
    missed: Rc<Cell<bool>>,
}

impl Front for OnlyClient {
    async fn serve(&self) {
        self.client.serve().await;
    }

    fn close(&self, why: Closing) {
        let link = &self.client.link;
        self.interrupted.set(why == Closing::Interrupted);
        self.missed.set(link.server().is_some_and(|server| server.was_missed()));
        if why == Closing::NotRecorded {
            link.answer_open_calls(&Refusal::NotRecorded);
        }
        if let Some((backend, _)) = &self.backend {
            backend.stop();
        }
    }

    async fn drain(&self) {
        if let Some((_, drain)) = &self.backend
            && self.interrupted.get()
        {
            let answered = async {
                while self.client.link.open_calls() > 0 {
                    sleep(LOOK_AGAIN).await;
                }
            };
            let _ = timeout(*drain, answered).await;
        }
    }

    async fn end(&self) {
        let link = &self.client.link;
        if self.backend.is_some() && self.interrupted.get() {
            link.answer_open_calls(&Refusal::Ending);
        }
        link.end();
        if let Some((backend, _)) = &self.backend {
            backend.end().await;
        }
        let server_gone = self.server_gone.take();
        if let Some(server_gone) = server_gone {
            // An error says that it is.
            let _ = server_gone.await;
        }
    }

    async fn flush(&self) {
        self.client.flush().await;
    }
}

/// Serves one client until it is done. `signal_patience` is what a client in this process gets to leave by itself after
/// a signal. True beside the end if the server was tried for and never once reached. Must be called where tasks can stay
/// on their thread.
pub async fn serve(
    pipes: (Pipe, Pipe),
    server: impl FnOnce(&Rc<HttpState>) -> Server,
    pipeline: Pipeline,
    message_bytes_max: usize,
    signal_patience: Duration,
    tell: Box<dyn Fn(String)>,
) -> io::Result<(Ended, bool)> {
    let mut signals = Signals::listen_with(signal_patience)?;
    let runtime = Runtime::new(pipeline, message_bytes_max, tell);
    let state = HttpState::new(&runtime);
    let server = server(&state);
    let out = Rc::new(match server {
        Server::Many { .. } => PipeWriter::of_many(),
        Server::Http(_) | Server::Sse(_) => PipeWriter::default(),
    });
    let conversation = match &server {
        Server::Many { .. } => runtime.look(Pipeline::begin_entrance),
        Server::Http(_) | Server::Sse(_) => mcp_engine::Conversation::only(),
    };
    let link = Link::new(&runtime, conversation, Rc::<PipeWriter>::clone(&out));
    let (alive, server_gone) = oneshot::channel::<()>();
    let backend = match server {
        Server::Http(upstream) => {
            HttpSide::start(&link, &state, upstream, Box::new(alive));
            None
        }
        Server::Sse(upstream) => {
            SseSide::start(&link, &state, upstream, Box::new(alive));
            None
        }
        Server::Many { backend, drain } => {
            drop(alive);
            link.connect(backend.welcome(&link, None));
            Some((backend, drain))
        }
    };
    let (servers, of_client) = (backend.as_ref().map(|(backend, _)| Rc::downgrade(backend)), Rc::downgrade(&link));
    runtime.inject_with(move |injection| {
        let left = match servers.as_ref().and_then(Weak::upgrade) {
            Some(backend) => backend.inject(injection),
            None => Err(injection),
        };
        if let (Err(injection), Some(link)) = (left, of_client.upgrade()) {
            link.inject(injection);
        }
    });
    let missed = Rc::new(Cell::new(false));
    let front = OnlyClient {
        client: PipeClient::new(link, out, pipes),
        backend,
        server_gone: RefCell::new(Some(server_gone)),
        interrupted: Cell::new(false),
        missed: Rc::clone(&missed),
    };
    let ended = mcp_link::serve(&runtime, front, &mut signals).await;
    Ok((ended, missed.get()))
}
