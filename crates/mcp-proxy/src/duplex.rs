//! Messages over a pair of pipes, as a peer within this process reads and writes them.

use std::task::{Context, Poll};

use bytes::Bytes;
use mcp_transport::stdio::pipe::Pipe;
use mcp_wire::framing::encode;
use mcp_wire::{Cut, Deframer, Frame, Framing, Gather, Message};

/// Bytes that wait to be written before nothing more is read: a peer that reads nothing can request nothing more.
const WAITING_MAX: usize = 1024 * 1024;

pub(crate) struct Duplex {
    input: Pipe,
    /// Closed once nobody reads it, or nothing more is to be said.
    output: Option<Pipe>,
    deframer: Deframer,
    waiting: Gather,
}

impl Duplex {
    pub(crate) fn new(input: Pipe, output: Pipe, message_bytes_max: usize) -> Self {
        let deframer = Deframer::new(message_bytes_max);
        Self { input, output: Some(output), deframer, waiting: Gather::default() }
    }

    /// Puts a message where it will be written from, framed as the peer frames its own.
    pub(crate) fn send(&mut self, message: Bytes) {
        if self.output.is_some() {
            let framing = self.deframer.framing().unwrap_or(Framing::Line);
            encode((&Frame::composed(message)).into(), framing, b"\n", &mut self.waiting);
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    pub(crate) fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Nothing more is said. What waits is gone.
    pub(crate) fn hang_up(&mut self) {
        self.output = None;
        self.waiting.clear();
    }

    /// Writes what waits, and reads what is there. Ready with the messages that came, if any, once
    /// something was read or everything was written; with nothing at the end of the stream.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<Message>>> {
        let had_waiting = !self.waiting.is_empty();
        self.write(cx);
        if self.has_room()
            && let Poll::Ready(read) = self.input.poll_read(cx, self.deframer.buffer(), false)
        {
            let is_over = !matches!(read, Ok(count) if count > 0);
            let messages = self.cut(is_over);
            // What came last is told before the end is.
            return Poll::Ready(if is_over && messages.is_empty() { None } else { Some(messages) });
        }
        if had_waiting && self.waiting.is_empty() { Poll::Ready(Some(Vec::new())) } else { Poll::Pending }
    }

    /// Ready once everything was written, or nobody reads it.
    pub(crate) fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.write(cx);
        if self.waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn write(&mut self, cx: &mut Context<'_>) {
        if self.waiting.is_empty() {
            return;
        }
        if let Some(output) = &mut self.output
            && let Poll::Ready(Err(_)) = output.poll_write(cx, &mut self.waiting)
        {
            self.hang_up();
        }
    }

    fn cut(&mut self, is_over: bool) -> Vec<Message> {
        let mut cuts = Vec::new();
        if is_over {
            self.deframer.finish(&mut cuts);
        } else {
            self.deframer.cut(&mut cuts);
        }
        let message = |cut| match cut {
            Cut::Frame(frame) => Some(Message::new(frame.bytes)),
            Cut::TooLarge { .. } | Cut::Unframed { .. } => None,
        };
        cuts.into_iter().filter_map(message).collect()
    }
}
