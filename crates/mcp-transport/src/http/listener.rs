//! The listener: takes connections, holds them to deadlines and bounds, and lets them finish when it
//! is time to end.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_wire::reply::Refusal;
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep};

use super::beats::{self, Beat, Beats};
use super::body::{BodyError, ToClient};
use super::gate::HEAD_BYTES_MAX;
use super::nearby;
use super::site::{Server, Site};
use crate::stdio::writer::STALLED_FOR;

/// Connections at a time, and from one address unless it is this machine's; further ones are closed at once.
const CONNECTIONS_MAX: usize = 10_000;
const PER_PEER_MAX: usize = 1_000;
/// Wait for the head of a request after its first byte, and for the next request on a connection.
const HEAD_FOR: Duration = Duration::from_secs(10);
const IDLE_FOR: Duration = Duration::from_secs(60);
/// Interval between two looks at open calls and servers while the listener ends.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A head and a body that are this short together are copied into one piece, which costs less than a second entry
/// of a vectored write.
const JOINED_BYTES_MAX: usize = 4 * 1024;
/// Pause before the next attempt to accept when the system has no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

pub struct Listener {
    /// Until it is served; whoever comes when that has ended is refused by the system.
    listener: Cell<Option<TcpListener>>,
    site: Rc<Site>,
    connections: Rc<Connections>,
}

/// Every connection there is.
struct Connections {
    beats: Rc<Beats>,
    all: RefCell<Vec<Weak<Held>>>,
    count: Cell<usize>,
    per_peer: RefCell<HashMap<IpAddr, usize>>,
    draining: Cell<bool>,
    /// Where short writes are put together.
    joined: RefCell<Vec<u8>>,
}

/// One connection as the sweep sees it.
struct Held {
    peer: IpAddr,
    phase: Cell<Phase>,
    since: Cell<Beat>,
    unwritten: Cell<Unwritten>,
    /// The client has to take the answer that is being written, and since when it has taken none of it.
    needs_reader: Cell<bool>,
    stalled: Cell<Option<Beat>>,
    /// The end of what the client sends was read.
    ended: Cell<bool>,
    order: Cell<Order>,
    waker: RefCell<Option<Waker>>,
    connections: Rc<Connections>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between two requests.
    Idle,
    /// Within a head.
    Head,
    /// A request is being answered.
    Busy,
}

/// What has not all been handed to the system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwritten {
    Nothing,
    /// A complete answer.
    Answer,
    /// One that is as complete as it will be, and waits to say so.
    BrokenOff,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    None,
    /// Finish what is being answered, then close.
    Finish,
    /// Close now.
    Close,
}

impl Listener {
    pub fn new(listener: TcpListener, site: Rc<Site>) -> Self {
        if let Ok(address) = listener.local_addr() {
            nearby::ease(&listener, address.ip());
        }
        let connections = Rc::new(Connections {
            beats: Rc::clone(&site.state.beats),
            all: RefCell::default(),
            count: Cell::default(),
            per_peer: RefCell::default(),
            draining: Cell::default(),
            joined: RefCell::default(),
        });
        Self { listener: Cell::new(Some(listener)), site, connections }
    }

    /// Takes connections for ever; nobody can connect any more once this is dropped.
    pub async fn serve(&self) {
        let listener = self.listener.take().expect("it is served once");
        let sweep = async {
            let mut every = interval(beats::EVERY);
            loop {
                every.tick().await;
                self.connections.beats.move_on();
                self.connections.sweep();
                self.site.sweep();
            }
        };
        let accept = async {
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => self.take(stream, peer),
                    // No descriptor, or a peer that left at once: neither ends the listener.
                    Err(_) => sleep(ACCEPT_AGAIN).await,
                }
            }
        };
        tokio::join!(sweep, accept);
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        let Some(held) = self.connections.admit(peer.ip()) else { return };
        let _ = stream.set_nodelay(true);
        tokio::task::spawn_local(serve_connection(stream, held, Rc::clone(&self.site)));
    }

    /// Lets what is being answered finish, and waits for it as long as `within`.
    pub async fn drain(&self, within: Duration) {
        self.connections.draining.set(true);
        self.connections.order(Order::Finish);
        let finished = async {
            // Streams that only wait for something to happen are not calls; an answer that its client
            // has yet to take is.
            while self.site.open_calls() > 0 || self.connections.is_any_unwritten() {
                sleep(LOOK_AGAIN).await;
            }
        };
        if tokio::time::timeout(within, finished).await.is_err() {
            // Who waited in vain is told so, and gets a moment to hear it.
            self.site.sessions.answer_open_calls(&Refusal::Ending);
            let written = async {
                // What they are told is on its way before it can be seen to be.
                while self.site.sessions.is_any_unanswered() || self.connections.is_any_unwritten() {
                    sleep(LOOK_AGAIN).await;
                }
            };
            let _ = tokio::time::timeout(LAST_ANSWERS_FOR, written).await;
        }
        self.connections.order(Order::Close);
        while self.connections.count.get() > 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// Time for clients to take their last answers when their calls had no time left.
const LAST_ANSWERS_FOR: Duration = Duration::from_secs(1);
/// Wait for the servers of ended conversations to be gone.
const SERVERS_FOR: Duration = Duration::from_secs(10);

impl Listener {
    /// Ends every conversation that has a server of its own, and sees the servers gone, and clients on stdio
    /// with what is left for them.
    pub async fn end_servers(&self) {
        self.site.sessions.end_all();
        if let Server::Many(backend) = &self.site.server {
            backend.end().await;
        }
        let gone = async {
            while self.site.sessions.children() + self.site.sessions.piped() > 0 {
                sleep(LOOK_AGAIN).await;
            }
        };
        let _ = tokio::time::timeout(SERVERS_FOR, gone).await;
    }
}

async fn serve_connection(stream: TcpStream, held: Rc<Held>, site: Rc<Site>) {
    let peer = held.peer;
    let service = {
        let held = Rc::clone(&held);
        service_fn(move |request| {
            held.enter(Phase::Busy);
            Answering { answer: Rc::clone(&site).answer(peer, request), busy: Some(Busy(Rc::clone(&held))) }
        })
    };
    let mut builder = http1::Builder::new();
    // A client that leaves is noticed here. To notice it, hyper reads on while it waits for an answer,
    // and takes a new buffer for that with every request.
    builder.max_buf_size(HEAD_BYTES_MAX).auto_date_header(false).half_close(true);
    let stream = Rc::new(RefCell::new(stream));
    let io = TokioIo::new(Watched { stream: Rc::clone(&stream), held: Rc::clone(&held) });
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut finishing = false;
    poll_fn(|cx| {
        held.watch(cx);
        match held.order.get() {
            Order::Close => return Poll::Ready(()),
            Order::Finish if !finishing => {
                finishing = true;
                connection.as_mut().graceful_shutdown();
            }
            _ => {}
        }
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        match held.phase.get() {
            Phase::Busy if !held.ended.get() => poll_left(&stream.borrow(), cx),
            _ => Poll::Pending,
        }
    })
    .await;
}

/// Comes when a client has closed its connection. What it sent before is left where it is.
fn poll_left(stream: &TcpStream, cx: &mut Context<'_>) -> Poll<()> {
    match ready!(stream.poll_peek(cx, &mut ReadBuf::new(&mut [0]))) {
        Ok(0) | Err(_) => Poll::Ready(()),
        Ok(_) => Poll::Pending,
    }
}

pin_project! {
    /// A request until its answer begins. Written out, because the request is moved about with all that
    /// this could have to keep.
    struct Answering<F> {
        #[pin]
        answer: F,
        busy: Option<Busy>,
    }
}

impl<F: Future<Output = Response<ToClient>>> Future for Answering<F> {
    type Output = Result<Response<Answered>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.answer.poll(cx));
        let busy = this.busy.take().expect("it is answered once");
        busy.0.needs_reader.set(response.body().needs_reader());
        Poll::Ready(Ok(response.map(|body| Answered { body, broken: None, busy })))
    }
}

impl Connections {
    fn admit(self: &Rc<Self>, peer: IpAddr) -> Option<Rc<Held>> {
        let mut per_peer = self.per_peer.borrow_mut();
        let from_peer = per_peer.entry(peer).or_default();
        if self.count.get() >= CONNECTIONS_MAX || *from_peer >= PER_PEER_MAX && !peer.is_loopback() {
            return None;
        }
        *from_peer += 1;
        self.count.set(self.count.get() + 1);
        let held = Rc::new(Held {
            peer,
            phase: Cell::new(Phase::Idle),
            since: Cell::new(self.beats.now()),
            unwritten: Cell::new(Unwritten::Nothing),
            needs_reader: Cell::new(false),
            stalled: Cell::new(None),
            ended: Cell::new(false),
            order: Cell::new(if self.draining.get() { Order::Finish } else { Order::None }),
            waker: RefCell::default(),
            connections: Rc::clone(self),
        });
        self.all.borrow_mut().push(Rc::downgrade(&held));
        Some(held)
    }

    fn sweep(&self) {
        self.all.borrow_mut().retain(|held| {
            let Some(held) = held.upgrade() else { return false };
            let stalled = held.stalled.get().filter(|_| held.needs_reader.get());
            if stalled.is_some_and(|since| self.beats.since(since) > STALLED_FOR) {
                held.tell(Order::Close);
                return true;
            }
            let patience = match held.phase.get() {
                Phase::Idle => IDLE_FOR,
                Phase::Head => HEAD_FOR,
                Phase::Busy => return true,
            };
            if self.beats.since(held.since.get()) > patience {
                held.tell(Order::Close);
            }
            true
        });
    }

    fn is_any_unwritten(&self) -> bool {
        self.all.borrow().iter().filter_map(Weak::upgrade).any(|held| held.unwritten.get() != Unwritten::Nothing)
    }

    fn order(&self, order: Order) {
        let all: Vec<Rc<Held>> = self.all.borrow().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|held| held.tell(order));
    }
}

impl Held {
    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(self.connections.beats.now());
    }

    fn tell(&self, order: Order) {
        self.order.set(order);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Takes note of whether the client takes what is written to it.
    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(_) => self.stalled.set(None),
            Poll::Pending if self.stalled.get().is_none() => self.stalled.set(Some(self.connections.beats.now())),
            Poll::Pending => {}
        }
    }

    fn watch(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }
}

/// A request that is being answered, until the last byte of the answer was handed over.
struct Busy(Rc<Held>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.unwritten.set(Unwritten::Answer);
        self.0.enter(Phase::Idle);
    }
}

struct Answered {
    body: ToClient,
    /// Why no more of it comes.
    broken: Option<BodyError>,
    busy: Busy,
}

impl Body for Answered {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.broken.is_none() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Err(error)) => {
                    self.broken = Some(error);
                    self.busy.0.unwritten.set(Unwritten::BrokenOff);
                }
                frame => return Poll::Ready(frame),
            }
        }
        // The end of a connection takes with it what was not handed over, and all of that came whole.
        if self.busy.0.unwritten.get() != Unwritten::Nothing {
            return Poll::Pending;
        }
        Poll::Ready(self.broken.take().map(Err))
    }

    fn is_end_stream(&self) -> bool {
        self.broken.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let connections = &self.connections;
        connections.count.set(connections.count.get() - 1);
        let mut per_peer = connections.per_peer.borrow_mut();
        if let Some(from_peer) = per_peer.get_mut(&self.peer) {
            *from_peer -= 1;
            if *from_peer == 0 {
                per_peer.remove(&self.peer);
            }
        }
    }
}

/// A stream that notices when a request begins.
struct Watched {
    stream: Rc<RefCell<TcpStream>>,
    held: Rc<Held>,
}

impl AsyncRead for Watched {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut *self.stream.borrow_mut()).poll_read(cx, buf);
        if read.is_ready() {
            if self.held.phase.get() == Phase::Idle {
                self.held.enter(Phase::Head);
            }
            self.held.ended.set(buf.filled().len() == before);
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.stream.borrow_mut()).poll_write(cx, buf);
        self.held.wrote(&written);
        written
    }

    /// Asked for once everything before it was written.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut *self.stream.borrow_mut()).poll_flush(cx);
        if flushed.is_ready() && self.held.unwritten.replace(Unwritten::Nothing) == Unwritten::BrokenOff {
            cx.waker().wake_by_ref();
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = &mut *self.stream.borrow_mut();
        if bufs.iter().map(|buf| buf.len()).sum::<usize>() > JOINED_BYTES_MAX {
            let written = Pin::new(stream).poll_write_vectored(cx, bufs);
            self.held.wrote(&written);
            return written;
        }
        let mut joined = self.held.connections.joined.borrow_mut();
        joined.clear();
        bufs.iter().for_each(|buf| joined.extend_from_slice(buf));
        let written = Pin::new(stream).poll_write(cx, &joined);
        self.held.wrote(&written);
        written
    }
}

#[cfg(test)]
mod tests;
