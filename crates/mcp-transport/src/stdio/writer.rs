//! Bytes on their way into a pipe: gathered while it is full, written as soon as it is not.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_link::{ClientSide, Link, PASSED_TOGETHER, Passed, Waiting};
use mcp_store::Transport;
use mcp_wire::framing::encode;
use mcp_wire::{Cut, Ending, FrameRef, Framing, Gather};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

use super::pipe::Pipe;

/// Bytes that wait for a pipe before its senders wait: a message or two of the usual sizes fit.
const FULL_AT: usize = 1024 * 1024;

/// Time for a client of a gateway or a crossing to take a byte of the output that waits for it; then it is closed.
pub const STALLED_FOR: Duration = Duration::from_secs(60);

/// What is said of it.
pub const CLIENT_STALLED: &str = "a client took nothing of what waited for it for 60 s, and was closed";

#[derive(Default)]
pub struct PipeWriter {
    waiting: RefCell<Gather>,
    /// Messages may come many at a time, so that the first had better leave before the last.
    leaves_early: bool,
    /// Messages that came since something was written.
    added: Cell<usize>,
    pipe: RefCell<Option<Pipe>>,
    writer: RefCell<Option<Waker>>,
    room: Notify,
    /// No more will come, so the pipe is closed once everything has left.
    closed: Cell<bool>,
    /// Nobody reads.
    broken: Cell<bool>,
    /// The reader took something since the writer last looked.
    moved: Cell<bool>,
    /// The reader was given up, because it took nothing for too long.
    stalled: Cell<bool>,
    framing: Cell<Option<Framing>>,
    /// The reader ends its own lines with a carriage return.
    crlf: Cell<bool>,
    /// Nothing is written any more.
    finished: Cell<bool>,
    is_finished: Notify,
    /// The last line had no end, because its sender ended first; what follows begins anew.
    in_half_line: Cell<bool>,
}

impl PipeWriter {
    /// For whoever gets many messages at a time.
    pub fn of_many() -> Self {
        Self { leaves_early: true, ..Self::default() }
    }

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
        self.added.set(self.added.get() + 1);
        if self.leaves_early && self.added.get() >= PASSED_TOGETHER {
            self.added.set(0);
            let before = waiting.len();
            self.pipe.borrow_mut().iter_mut().for_each(|pipe| pipe.write_ahead(waiting));
            self.moved.set(self.moved.get() || waiting.len() < before);
        }
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

    /// Whether the reader was given up, because it took nothing for too long.
    pub fn has_stalled(&self) -> bool {
        self.stalled.get()
    }

    pub fn is_full(&self) -> bool {
        self.waiting.borrow().len() > FULL_AT && !self.broken.get()
    }

    /// Waits until more may be added.
    pub async fn until_room(&self) {
        while self.is_full() {
            self.room.notified().await;
        }
    }

    /// Writes until it is closed or its reader leaves, even with nothing to write.
    pub async fn write_to(&self, pipe: Pipe) {
        self.write(pipe, false).await;
    }

    /// The same, and ends when the reader takes nothing for too long.
    pub async fn write_to_reader(&self, pipe: Pipe) {
        self.write(pipe, true).await;
    }

    /// Waits until everything was written, or nothing more can be.
    pub async fn finished(&self) {
        let is_finished = self.is_finished.notified();
        if !self.finished.get() {
            is_finished.await;
        }
    }

    async fn write(&self, pipe: Pipe, is_limited: bool) {
        let _lent = Lent::to(self, pipe);
        let mut patience = Patience::default();
        poll_fn(|cx| {
            let (mut waiting, mut pipe) = (self.waiting.borrow_mut(), self.pipe.borrow_mut());
            let Some(pipe) = &mut *pipe else { return Poll::Ready(()) };
            self.added.set(0);
            let before = waiting.len();
            let written = pipe.poll_write(cx, &mut waiting);
            let has_moved = self.moved.take() || waiting.len() < before;
            let is_unread = waiting.is_empty() && pipe.poll_unread(cx);
            let is_stalled = is_limited && patience.is_over(!waiting.is_empty(), has_moved, cx);
            self.stalled.set(is_stalled);
            if is_unread || is_stalled || matches!(written, Poll::Ready(Err(_))) {
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
        self.finished.set(true);
        self.is_finished.notify_waiters();
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}

/// A client that reads a pipe.
impl ClientSide for PipeWriter {
    fn transport(&self) -> Transport {
        Transport::Stdio
    }

    fn deliver(&self, passed: Passed<'_>) {
        self.push(passed.frame);
    }

    fn unread_bytes(&self) -> usize {
        self.waiting_bytes()
    }

    fn room(&self) -> Option<Waiting<'_>> {
        self.is_full().then(|| Box::pin(self.until_room()) as Waiting<'_>)
    }

    fn end(&self, _link: &Link) {
        self.close();
    }
}

/// How long a reader has taken nothing of what waits for it.
#[derive(Default)]
struct Patience(Option<Pin<Box<Sleep>>>);

impl Patience {
    fn is_over(&mut self, is_behind: bool, has_moved: bool, cx: &mut Context<'_>) -> bool {
        if !is_behind {
            self.0 = None;
            return false;
        }
        let ends = self.0.get_or_insert_with(|| Box::pin(sleep(STALLED_FOR)));
        if has_moved {
            ends.as_mut().reset(Instant::now() + STALLED_FOR);
        }
        ends.as_mut().poll(cx).is_ready()
    }
}

/// A pipe that is written to for as long as this lasts, and then closed.
struct Lent<'a>(&'a PipeWriter);

impl<'a> Lent<'a> {
    fn to(writer: &'a PipeWriter, pipe: Pipe) -> Self {
        *writer.pipe.borrow_mut() = Some(pipe);
        Self(writer)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.pipe.take();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::os::fd::OwnedFd;
    use std::pin::pin;
    use std::task::Context;

    use mcp_wire::Frame;

    use super::*;

    fn pair() -> (Pipe, OwnedFd) {
        let (reading, writing) = rustix::pipe::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&reading, true).expect("it does not wait");
        (Pipe::owned(writing).expect("it can be watched"), reading)
    }

    fn read(fd: &OwnedFd) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = rustix::io::read(fd, &mut buffer) {
            all.extend_from_slice(&buffer[..count]);
        }
        all
    }

    fn push(writer: &PipeWriter, text: String) {
        writer.push((&Frame::composed(text.into())).into());
    }

    /// What is there to read after so many messages, before the writer has had a turn; and then all of it.
    async fn after(writer: &PipeWriter, count: usize) -> (Vec<u8>, Vec<u8>) {
        let (pipe, reading) = pair();
        let mut writing = pin!(writer.write_to(pipe));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(writing.as_mut().poll(&mut cx).is_pending());
        (0..count).for_each(|number| push(writer, number.to_string()));
        let early = read(&reading);
        writer.close();
        assert!(writing.as_mut().poll(&mut cx).is_ready());
        let all = [&early[..], &read(&reading)].concat();
        (early, all)
    }

    fn lines(numbers: std::ops::Range<usize>) -> Vec<u8> {
        numbers.flat_map(|number| format!("{number}\n").into_bytes()).collect()
    }

    #[tokio::test]
    async fn of_many_messages_the_first_leave_before_the_last_have_come() {
        let count = 2 * PASSED_TOGETHER + 3;
        let (early, all) = after(&PipeWriter::of_many(), count).await;
        assert_eq!(early, lines(0..2 * PASSED_TOGETHER));
        assert_eq!(all, lines(0..count));
        let (early, all) = after(&PipeWriter::default(), count).await;
        assert_eq!(early, b"");
        assert_eq!(all, lines(0..count));
    }

    #[tokio::test]
    async fn what_a_full_pipe_does_not_take_follows_in_order() {
        let writer = PipeWriter::of_many();
        let (pipe, reading) = pair();
        let long = "x".repeat(3_000);
        let writing = writer.write_to(pipe);
        let reading = async {
            // Nobody reads meanwhile, so most of it cannot leave.
            (0..1_000).for_each(|number| push(&writer, format!("{number} {long}")));
            assert!(writer.is_behind());
            writer.close();
            let mut all = Vec::new();
            while writer.is_behind() {
                all.extend(read(&reading));
                tokio::task::yield_now().await;
            }
            all.extend(read(&reading));
            all
        };
        let ((), all) = tokio::join!(writing, reading);
        let expected: Vec<u8> = (0..1_000).flat_map(|number| format!("{number} {long}\n").into_bytes()).collect();
        assert_eq!(all.len(), expected.len());
        assert!(all == expected);
    }

    /// A reader is slow as long as it takes anything, and gone when it takes nothing for a minute.
    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        for takes in [true, false] {
            let writer = PipeWriter::default();
            let (pipe, reading) = pair();
            let long = "x".repeat(100_000);
            (0..10).for_each(|_| push(&writer, long.clone()));
            let mut writing = pin!(writer.write_to_reader(pipe));
            for _ in 0..5 {
                let stalled = tokio::time::timeout(STALLED_FOR * 2 / 3, &mut writing).await.is_ok();
                if stalled {
                    break;
                }
                if takes {
                    rustix::io::read(&reading, &mut [0; 8192]).expect("there is something");
                }
            }
            assert_eq!((writer.has_stalled(), writer.is_broken()), (!takes, !takes));
            assert_eq!(writer.is_behind(), takes, "what nobody will read is not kept");
        }
    }

    #[tokio::test]
    async fn a_pipe_is_closed_with_whoever_writes_to_it() {
        let writer = PipeWriter::of_many();
        let (pipe, reading) = pair();
        let mut writing = Box::pin(writer.write_to(pipe));
        assert!(writing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(writing);
        let mut buffer = [0; 1];
        assert_eq!(rustix::io::read(&reading, &mut buffer), Ok(0), "it is still open");
    }
}
