//! The body of an answer that fills up over time: what a client of HTTP reads from us.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use mcp_link::link::CLIENT_WAITING_MAX;
use mcp_link::{ClientSide, Link, Passed, Waiting};
use mcp_store::Transport;
use mcp_wire::Gather;
use mcp_wire::framing::sse::{KEEP_ALIVE, encode_event};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

/// Silence on a response stream before a comment: less than intermediaries take for its end.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(15);

/// The filling end.
#[derive(Default)]
pub struct ResponseStream {
    waiting: RefCell<VecDeque<Bytes>>,
    /// Of all that waits, and of a large event until its last piece is taken.
    bytes: Cell<usize>,
    /// The length of the first event in `waiting`, once a piece of that was taken.
    begun: Cell<usize>,
    reader: RefCell<Option<Waker>>,
    ended: Cell<bool>,
    /// Whoever read it is gone.
    left: Cell<bool>,
    unread: Rc<Unread>,
}

impl ResponseStream {
    /// `unread` counts what waits in several of these.
    pub fn new(unread: &Rc<Unread>) -> Rc<Self> {
        Rc::new(Self {
            waiting: RefCell::default(),
            bytes: Cell::new(0),
            begun: Cell::new(0),
            reader: RefCell::default(),
            ended: Cell::new(false),
            left: Cell::new(false),
            unread: Rc::clone(unread),
        })
    }

    pub fn push(&self, bytes: Bytes) {
        if self.left.get() {
            return;
        }
        self.bytes.set(self.bytes.get() + bytes.len());
        self.unread.add(bytes.len());
        self.waiting.borrow_mut().push_back(bytes);
        self.wake();
    }

    /// Nothing more will come.
    pub fn end(&self) {
        self.ended.set(true);
        self.wake();
    }

    /// Nothing more will come, and nothing waits for what is still to be read.
    pub fn abandon(&self) {
        self.end();
        self.taken(self.bytes.get());
    }

    /// Bytes that wait to be read.
    pub fn waiting(&self) -> usize {
        self.bytes.get()
    }

    pub fn is_left(&self) -> bool {
        self.left.get()
    }

    fn wake(&self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn has_more_than(&self, most: usize) -> bool {
        self.bytes.get() > most && !self.left.get()
    }

    /// Waits until no more than `most` bytes wait.
    pub async fn until_room(&self, most: usize) {
        while self.has_more_than(most) {
            self.unread.drained.notified().await;
        }
    }

    /// The next event, or the next piece of a large one. The pieces share its memory.
    fn next_piece(&self) -> Option<Bytes> {
        let mut waiting = self.waiting.borrow_mut();
        let first = waiting.front_mut()?;
        if self.begun.get() == 0 {
            if !PacedBody::suits(first) {
                let event = waiting.pop_front()?;
                self.taken(event.len());
                return Some(event);
            }
            self.begun.set(first.len());
        }
        // Of the largest events a few pieces, because some readers look through what they have at each.
        let piece = first.split_to(first.len().min(PIECE.max(self.begun.get() / PIECES_MAX)));
        if first.is_empty() {
            waiting.pop_front();
            self.taken(self.begun.take());
        }
        Some(piece)
    }

    fn taken(&self, count: usize) {
        // An abandoned one counts no more.
        let count = count.min(self.bytes.get());
        self.bytes.set(self.bytes.get() - count);
        self.unread.taken(count);
    }

    fn leave(&self) {
        self.left.set(true);
        self.waiting.borrow_mut().clear();
        self.taken(self.bytes.get());
    }
}

impl Drop for ResponseStream {
    fn drop(&mut self) {
        self.unread.taken(self.bytes.get());
    }
}

/// A large answer, handed over piece by piece. The pieces share its memory, so all of it counts until the last piece is
/// taken.
pub struct PacedBody {
    rest: Bytes,
    counted: usize,
    unread: Rc<Unread>,
}

/// Bytes that a client has yet to take, wherever they wait.
#[derive(Default)]
pub struct Unread {
    bytes: Cell<usize>,
    /// Told of all that is taken.
    drained: Notify,
}

impl Unread {
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    fn add(&self, count: usize) {
        self.bytes.set(self.bytes.get() + count);
    }

    fn taken(&self, count: usize) {
        self.bytes.set(self.bytes.get() - count);
        self.drained.notify_waiters();
    }

    /// The wait until no more than `most` bytes wait; `None` if there is room.
    pub fn room(&self, most: usize) -> Option<Waiting<'_>> {
        let is_full = move || self.bytes.get() > most;
        is_full().then(|| {
            Box::pin(async move {
                while is_full() {
                    self.drained.notified().await;
                }
            }) as Waiting<'_>
        })
    }
}

/// The client of an SSE connection, which reads every message as an event.
impl ClientSide for ResponseStream {
    fn transport(&self) -> Transport {
        Transport::Sse
    }

    fn deliver(&self, passed: Passed<'_>) {
        let mut event = Gather::default();
        encode_event(None, passed.frame.bytes, &mut event);
        self.push(event.to_bytes());
    }

    fn unread_bytes(&self) -> usize {
        self.waiting()
    }

    fn room(&self) -> Option<Waiting<'_>> {
        let is_full = self.has_more_than(CLIENT_WAITING_MAX);
        is_full.then(|| Box::pin(self.until_room(CLIENT_WAITING_MAX)) as Waiting<'_>)
    }

    fn end(&self, _link: &Link) {
        ResponseStream::end(self);
    }
}

/// Bytes of a large answer or event handed over at a time.
const PIECE: usize = 64 * 1024;
/// Pieces of one event.
const PIECES_MAX: usize = 16;

impl PacedBody {
    pub fn new(answer: Bytes, unread: Rc<Unread>) -> Self {
        let counted = answer.len();
        unread.add(counted);
        Self { rest: answer, counted, unread }
    }

    pub fn next_piece(&mut self) -> Option<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        if self.rest.is_empty() {
            self.unread.taken(std::mem::take(&mut self.counted));
        }
        Some(piece).filter(|piece| !piece.is_empty())
    }

    /// Bytes that have yet to be handed over.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether an answer is worth handing over in pieces.
    pub fn suits(answer: &Bytes) -> bool {
        answer.len() > 4 * PIECE
    }
}

impl Drop for PacedBody {
    fn drop(&mut self) {
        self.unread.taken(self.counted);
    }
}

/// The reading end, as hyper polls it.
pub struct ResponseStreamBody {
    response_stream: Rc<ResponseStream>,
    keep_alive: Option<Pin<Box<Sleep>>>,
    /// Told when the client leaves before the end.
    on_leave: Option<Box<dyn FnOnce()>>,
}

impl ResponseStreamBody {
    pub fn new(response_stream: Rc<ResponseStream>, on_leave: impl FnOnce() + 'static) -> Self {
        Self { response_stream, keep_alive: None, on_leave: Some(Box::new(on_leave)) }
    }

    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(bytes) = self.response_stream.next_piece() {
            self.keep_alive = None;
            return Poll::Ready(Some(bytes));
        }
        if self.response_stream.ended.get() {
            self.on_leave = None;
            return Poll::Ready(None);
        }
        let keep_alive = self.keep_alive.get_or_insert_with(|| Box::pin(sleep(KEEP_ALIVE_AFTER)));
        if keep_alive.as_mut().poll(cx).is_ready() {
            keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE_AFTER);
            return Poll::Ready(Some(Bytes::from_static(KEEP_ALIVE)));
        }
        *self.response_stream.reader.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    pub fn is_end(&self) -> bool {
        self.response_stream.ended.get() && self.response_stream.waiting.borrow().is_empty()
    }
}

impl Drop for ResponseStreamBody {
    fn drop(&mut self) {
        let at_end = self.is_end();
        self.response_stream.leave();
        if let Some(on_leave) = self.on_leave.take()
            && !at_end
        {
            on_leave();
        }
    }
}
