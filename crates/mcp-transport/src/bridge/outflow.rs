//! Bytes on their way into a pipe: gathered while it is full, written as soon as it is not.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use mcp_wire::framing::encode;
use mcp_wire::{Cut, Ending, FrameRef, Framing, Gather};
use tokio::sync::Notify;

use crate::stdio::pipe::Pipe;

/// Past this whoever fills it waits. A message or two of the usual sizes fit.
const FULL_AT: usize = 1024 * 1024;

#[derive(Default)]
pub struct Outflow {
    waiting: RefCell<Gather>,
    writer: RefCell<Option<Waker>>,
    room: Notify,
    /// No more will come, so the pipe is closed once everything has left.
    closed: Cell<bool>,
    /// Nobody reads.
    broken: Cell<bool>,
    framing: Cell<Option<Framing>>,
    /// How whoever reads it ends lines of its own.
    crlf: Cell<bool>,
    /// The last line had no end, because its sender ended first; what follows begins anew.
    in_half_line: Cell<bool>,
}

impl Outflow {
    /// Adds a message, as a line unless its reader wants otherwise. One that came as a line leaves as it
    /// came.
    pub fn push(&self, frame: FrameRef<'_>) {
        if self.broken.get() || self.closed.get() {
            return;
        }
        let framing = self.framing.get().unwrap_or(Framing::Line);
        let line_end: &[u8] = if self.crlf.get() { b"\r\n" } else { b"\n" };
        let waiting = &mut self.waiting.borrow_mut();
        if self.in_half_line.replace(framing == Framing::Line && frame.ending == Ending::EndOfStream) {
            waiting.copy(line_end);
        }
        encode(frame, framing, line_end, waiting);
        self.wake();
    }

    /// Remembers how the lines in `cuts` end, which its reader wrote.
    pub fn note_line_ends(&self, cuts: &[Cut]) {
        let ending = cuts.iter().rev().find_map(|cut| match cut {
            Cut::Frame(frame) => Some(frame.ending),
            Cut::TooLarge { .. } | Cut::Unframed { .. } => None,
        });
        if let Some(ending) = ending {
            self.crlf.set(ending == Ending::CrLf);
        }
    }

    /// Bytes that have yet to be written.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Whether something has yet to be written.
    pub fn is_behind(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Whoever reads it speaks `framing`.
    pub fn speak(&self, framing: Framing) {
        self.framing.set(Some(framing));
    }

    /// Closes the pipe once everything has left.
    pub fn close(&self) {
        self.closed.set(true);
        self.wake();
    }

    pub fn is_broken(&self) -> bool {
        self.broken.get()
    }

    /// Waits until more may be added.
    pub async fn room(&self) {
        while self.waiting.borrow().len() > FULL_AT && !self.broken.get() {
            self.room.notified().await;
        }
    }

    /// Writes until it is closed or cannot be written to.
    pub async fn write_to(&self, pipe: Pipe) {
        self.write(pipe, false).await;
    }

    /// The same, and ends as soon as nobody reads, whether there is something to write or not.
    pub async fn write_to_reader(&self, pipe: Pipe) {
        self.write(pipe, true).await;
    }

    async fn write(&self, mut pipe: Pipe, needs_reader: bool) {
        poll_fn(|cx| {
            let mut waiting = self.waiting.borrow_mut();
            let written = pipe.poll_write(cx, &mut waiting);
            let is_unread = needs_reader && waiting.is_empty() && pipe.poll_unread(cx);
            if is_unread || matches!(written, Poll::Ready(Err(_))) {
                self.broken.set(true);
                waiting.clear();
            }
            if waiting.len() <= FULL_AT {
                self.room.notify_waiters();
            }
            if self.broken.get() || waiting.is_empty() && self.closed.get() {
                return Poll::Ready(());
            }
            *self.writer.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}
