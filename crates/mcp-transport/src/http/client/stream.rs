//! A stream of ours to a client of Streamable HTTP: the answer to a POST, or to a GET.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::event_log::EventId;
use crate::http::response_stream::ResponseStream;

pub struct Stream {
    pub number: u64,
    /// The HTTP exchange that carries it, or last did.
    pub exchange: Cell<u64>,
    /// Events sent so far.
    place: Cell<u64>,
    /// Requests that are still to be answered on it.
    open: Cell<usize>,
    /// What was sent on it to the server, while that is parked.
    pub parked: Cell<Option<u64>>,
    state: RefCell<State>,
}

enum State {
    /// Nothing has come yet; whoever answers the client waits.
    Waiting(Option<Waker>),
    /// The answer came first, and alone.
    Answered(Bytes),
    Streaming(Rc<ResponseStream>),
    /// Nothing will come, and the client was kept waiting long enough.
    Late,
    /// The client left.
    Detached,
}

/// How an answer begins.
pub enum First {
    Json(Bytes),
    Stream(Rc<ResponseStream>),
    Late,
}

impl Stream {
    /// One whose client waits for an answer.
    pub fn waiting(number: u64, exchange: u64) -> Rc<Self> {
        Self::new(number, exchange, State::Waiting(None))
    }

    /// One whose client reads events.
    pub fn streaming(number: u64, exchange: u64, response_stream: &Rc<ResponseStream>) -> Rc<Self> {
        Self::new(number, exchange, State::Streaming(Rc::clone(response_stream)))
    }

    fn new(number: u64, exchange: u64, state: State) -> Rc<Self> {
        let (exchange, place, open) = (Cell::new(exchange), Cell::new(0), Cell::new(0));
        Rc::new(Self { number, exchange, place, open, parked: Cell::default(), state: RefCell::new(state) })
    }

    pub fn poll_first(&self, cx: &mut Context<'_>) -> Poll<Option<First>> {
        let state = &mut *self.state.borrow_mut();
        match state {
            State::Waiting(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Answered(bytes) => {
                let bytes = std::mem::take(bytes);
                *state = State::Detached;
                Poll::Ready(Some(First::Json(bytes)))
            }
            State::Streaming(response_stream) => Poll::Ready(Some(First::Stream(Rc::clone(response_stream)))),
            State::Late => {
                *state = State::Detached;
                Poll::Ready(Some(First::Late))
            }
            State::Detached => Poll::Ready(None),
        }
    }

    pub fn next_id(&self) -> EventId {
        self.place.set(self.place.get() + 1);
        EventId { stream: self.number, place: self.place.get() }
    }

    /// The id of the next event, if `others` come before it.
    pub fn id_after(&self, others: u64) -> EventId {
        EventId { stream: self.number, place: self.place.get() + others + 1 }
    }

    /// Whether a client was given `id` on this stream.
    pub fn gave(&self, id: EventId) -> bool {
        id.stream == self.number && id.is_real() && id.place <= self.place.get()
    }

    pub fn opens(&self) {
        self.open.set(self.open.get() + 1);
    }

    /// One of its requests waits no more. True if it was the last.
    pub fn closes(&self) -> bool {
        self.open.set(self.open.get().saturating_sub(1));
        !self.is_open()
    }

    /// Whether these many answers are the last on it.
    pub fn closes_with(&self, answers: usize) -> bool {
        self.open.get() <= answers
    }

    /// Whether anything is still to be answered on it.
    pub fn is_open(&self) -> bool {
        self.open.get() > 0
    }

    pub fn is_waiting(&self) -> bool {
        matches!(*self.state.borrow(), State::Waiting(_))
    }

    /// Whether its client is there, as far as is known.
    pub fn is_attached(&self) -> bool {
        !matches!(*self.state.borrow(), State::Detached)
    }

    /// Whether what is sent on it can still reach its client: it is there, or could ask for the rest.
    pub fn can_reach(&self) -> bool {
        self.is_attached() || self.place.get() > 0
    }

    pub fn response_stream(&self) -> Option<Rc<ResponseStream>> {
        match &*self.state.borrow() {
            State::Streaming(response_stream) => Some(Rc::clone(response_stream)),
            _ => None,
        }
    }

    pub fn push(&self, event: Bytes) {
        if let Some(response_stream) = self.response_stream() {
            response_stream.push(event);
        }
    }

    /// Answers a client that waits.
    pub fn answer(&self, message: Bytes) {
        self.replace(State::Answered(message));
    }

    /// Nothing will come; a client that still waits is told so.
    pub fn give_up(&self) {
        if self.is_waiting() {
            self.replace(State::Late);
        } else {
            self.end_events();
        }
    }

    /// Its events go to `response_stream` from now on; whatever they went to before is over.
    pub fn attach(&self, response_stream: &Rc<ResponseStream>) {
        if let State::Streaming(before) = self.replace(State::Streaming(Rc::clone(response_stream))) {
            before.abandon();
        }
    }

    pub fn detach(&self) {
        self.replace(State::Detached);
    }

    /// No more events come; those that came are still to be read.
    pub fn end_events(&self) {
        if let Some(response_stream) = self.response_stream() {
            response_stream.end();
        }
    }

    /// It is over, whoever waits for it.
    pub fn end(&self) {
        if let State::Streaming(response_stream) = self.replace(State::Detached) {
            response_stream.abandon();
        }
    }

    fn replace(&self, next: State) -> State {
        let mut before = self.state.replace(next);
        if let State::Waiting(waker) = &mut before
            && let Some(waker) = waker.take()
        {
            waker.wake();
        }
        before
    }
}
