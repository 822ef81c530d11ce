//! The loop between a client's pipes and a server's: read what is there, pass it through the pipeline and
//! write it, a few messages at a time, and read again. Both directions run on one task, each in lock step with what it
//! writes to, so a peer that does not read holds up its own direction and nothing grows.

use std::io;
use std::task::{Context, Poll};

use mcp_engine::{Conversation, Lane, Outbox, Pipeline, Side, StoreFailed};
use mcp_wire::framing::encode;
use mcp_wire::reply::Refusal;
use mcp_wire::{Cut, Deframer, Ending, FrameRef, Framing, Gather};

use mcp_link::PASSED_TOGETHER;

use super::pipe::Pipe;

pub struct Relay {
    client: Peer,
    server: Peer,
    pub pipeline: Pipeline,
    pub conversation: Conversation,
    cuts: Vec<Cut>,
    outbox: Outbox,
    /// The last read brought several messages, so the next is likely to find some without waiting.
    busy: bool,
    /// Bytes read and written so far: whether anything moves.
    moved: u64,
    /// A message was parked and nobody was told yet.
    parked: bool,
    /// Something passed that is recorded but not written yet.
    unrecorded: bool,
}

/// What the relay cannot go on from by itself.
#[derive(Debug)]
pub enum Stop {
    /// The client sends no more, and everything it sent has reached the server.
    ClientDone,
    /// The client no longer reads.
    ClientGone,
    /// The client sends no more, but the server does not take what it sent.
    ClientWaits,
    /// The server no longer reads.
    ServerDeaf,
    /// The server sends no more.
    ServerDone,
    StoreFailed(StoreFailed),
    /// A message was parked, so there is a time to keep.
    Parked,
}

/// One side: a stream in, a stream out, and what waits to go out.
struct Peer {
    input: Option<Pipe>,
    output: Option<Pipe>,
    deframer: Deframer,
    waiting: Gather,
    written: u64,
    crlf: bool,
    /// The last line it was sent had no end, because its sender ended first; what follows begins anew.
    in_half_line: bool,
    /// The end of its input, of its output, and that it hung up were told.
    input_end_told: bool,
    output_end_told: bool,
    hang_up_told: bool,
    hung_up: bool,
    /// The readiness of its input was put aside: reads are tried without asking until one finds
    /// nothing.
    look_first: bool,
}

impl Peer {
    fn new(input: Pipe, output: Pipe, limit: usize) -> Self {
        let deframer = Deframer::new(limit);
        Self {
            input: Some(input),
            output: Some(output),
            deframer,
            waiting: Gather::default(),
            written: 0,
            crlf: false,
            in_half_line: false,
            input_end_told: false,
            output_end_told: false,
            hang_up_told: false,
            hung_up: false,
            look_first: false,
        }
    }

    fn encode(&mut self, frame: FrameRef<'_>, framing: Framing) {
        let line_end: &[u8] = if self.crlf { b"\r\n" } else { b"\n" };
        if std::mem::take(&mut self.in_half_line) {
            self.waiting.copy(line_end);
        }
        encode(frame, framing, line_end, &mut self.waiting);
        self.in_half_line = framing == Framing::Line && frame.ending == Ending::EndOfStream;
    }

    /// Writes what waits, as far as the peer takes it. An output that fails is closed: its reader
    /// is gone.
    fn flush(&mut self, cx: &mut Context<'_>) {
        let Some(output) = &mut self.output else { return self.waiting.clear() };
        let before = self.waiting.len();
        let written = output.poll_write(cx, &mut self.waiting);
        self.written += (before - self.waiting.len()) as u64;
        if let Poll::Ready(Err(_)) = written {
            self.output = None;
            self.waiting.clear();
        }
    }
}

impl Relay {
    pub fn new(client: (Pipe, Pipe), server: (Pipe, Pipe), pipeline: Pipeline, message_bytes_max: usize) -> Self {
        Self {
            client: Peer::new(client.0, client.1, message_bytes_max),
            server: Peer::new(server.0, server.1, message_bytes_max),
            conversation: Conversation::only(),
            pipeline,
            cuts: Vec::new(),
            outbox: Outbox::default(),
            busy: false,
            moved: 0,
            parked: false,
            unrecorded: false,
        }
    }

    /// Moves bytes both ways until neither side has any, and tells what has come to an end. Everything that passed is
    /// written down then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Stop> {
        let moved = self.poll_both(cx);
        self.pipeline.journal.commit_audit();
        moved
    }

    fn poll_both(&mut self, cx: &mut Context<'_>) -> Poll<Stop> {
        /// Reads before timers and signals get their turn, however much a peer sends.
        const READS_AT_ONCE: usize = 64;
        for _ in 0..READS_AT_ONCE {
            let before = self.moved();
            let mut read = false;
            for side in [Side::Client, Side::Server] {
                match self.poll_from(side, cx) {
                    Ok(something) => read |= something,
                    // Not even what the other side has ready may pass after that.
                    Err(failed) => return Poll::Ready(Stop::StoreFailed(failed)),
                }
            }
            if std::mem::take(&mut self.unrecorded)
                && let Err(failed) = self.pipeline.commit_records()
            {
                return Poll::Ready(Stop::StoreFailed(failed));
            }
            // What one side waited for may have been written on the other's turn.
            let moved = read || self.moved() != before;
            if let Some(stop) = self.ended() {
                return Poll::Ready(stop);
            }
            if std::mem::take(&mut self.parked) {
                return Poll::Ready(Stop::Parked);
            }
            if !moved && !self.notice_unread(cx) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Closes an output that nobody reads any more, before something is lost in it. True if there was
    /// one.
    fn notice_unread(&mut self, cx: &mut Context<'_>) -> bool {
        let mut noticed = false;
        for peer in [&mut self.client, &mut self.server] {
            if peer.waiting.is_empty() && peer.output.as_mut().is_some_and(|output| output.poll_unread(cx)) {
                peer.output = None;
                noticed = true;
            }
        }
        noticed
    }

    /// One read from `side` and everything that follows from it. False if there was nothing to do.
    fn poll_from(&mut self, side: Side, cx: &mut Context<'_>) -> Result<bool, StoreFailed> {
        let (from, to) = match side {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        from.flush(cx);
        to.flush(cx);
        // Only what this side sends waits for the other to read. That it does not read itself must
        // not keep it from being read: it may be writing before it reads.
        if !to.waiting.is_empty() {
            // What is not read may still end, and that must not go unnoticed.
            from.hung_up = from.hung_up || from.input.as_mut().is_some_and(|input| input.poll_hung_up(cx));
            from.look_first = true;
            return Ok(false);
        }
        let Some(input) = &mut from.input else { return Ok(false) };
        let mut is_end = false;
        match input.poll_read(cx, from.deframer.buffer(), self.busy || from.look_first) {
            Poll::Pending => {
                // Nothing was there, and the next byte will wake us.
                from.look_first = false;
                return Ok(false);
            }
            Poll::Ready(Ok(count)) if count > 0 => {
                self.moved += count as u64;
                from.deframer.cut(&mut self.cuts);
            }
            Poll::Ready(_) => {
                from.input = None;
                from.deframer.finish(&mut self.cuts);
                is_end = true;
            }
        }
        if !self.cuts.is_empty() {
            self.busy = self.cuts.len() > 1;
            self.note_line_ends(side);
            self.pass(side, cx)?;
        }
        if is_end && side == Side::Client {
            self.pipeline.decisions().client_is_silent(self.conversation.number());
            self.dispatch(cx)?;
        }
        Ok(true)
    }

    /// Passes on what one read brought, a few messages at a time: whoever gets them works on them meanwhile.
    fn pass(&mut self, side: Side, cx: &mut Context<'_>) -> Result<(), StoreFailed> {
        if self.pipeline.journal.records_first() {
            self.pipeline.pass(&mut self.conversation, side, self.cuts.drain(..), &mut self.outbox);
            return self.dispatch(cx);
        }
        let mut all = std::mem::take(&mut self.cuts);
        let mut cuts = all.drain(..);
        while cuts.len() > 0 {
            let few = cuts.by_ref().take(PASSED_TOGETHER);
            self.pipeline.pass(&mut self.conversation, side, few, &mut self.outbox);
            self.take_released();
            self.send(cx);
        }
        drop(cuts);
        self.cuts = all;
        // What the other side has ready is recorded with it.
        self.unrecorded = true;
        Ok(())
    }

    /// Sends what is parked no more, after somebody decided or enough time passed.
    pub fn dispatch_released(&mut self, cx: &mut Context<'_>) -> Result<(), StoreFailed> {
        for injection in self.pipeline.injections.take() {
            self.pipeline.pass_injected(&mut self.conversation, Lane::PIPE, injection, &mut self.outbox);
        }
        self.dispatch(cx)
    }

    /// Takes what is parked no more, and what was refused as soon as it came.
    fn take_released(&mut self) {
        if !self.pipeline.holds.has_released() {
            return;
        }
        for release in self.pipeline.holds.take_released() {
            self.conversation.settle(&release);
            self.outbox.to_client.extend(release.unasks);
            let (onward, back) = match release.from {
                Side::Client => (&mut self.outbox.to_server, &mut self.outbox.to_client),
                Side::Server => (&mut self.outbox.to_client, &mut self.outbox.to_server),
            };
            onward.extend(release.onward);
            back.extend(release.back);
        }
    }

    /// Sends what the pipeline let out, and has it recorded: first if it must be, else after.
    fn dispatch(&mut self, cx: &mut Context<'_>) -> Result<(), StoreFailed> {
        self.take_released();
        let mut recorded = Ok(());
        if self.pipeline.journal.records_first() {
            recorded = self
                .pipeline
                .commit()
                .inspect_err(|_| self.pipeline.hold_back_unrecorded(&self.conversation, &mut self.outbox));
        }
        self.send(cx);
        if !self.pipeline.journal.records_first() {
            recorded = self.pipeline.commit();
        }
        recorded
    }

    fn send(&mut self, cx: &mut Context<'_>) {
        self.encode_outbox();
        self.server.flush(cx);
        self.client.flush(cx);
    }

    /// Frames what leaves: for the client its own way, and the same for the server, which was made for
    /// such clients.
    fn encode_outbox(&mut self) {
        self.parked |= !self.outbox.parked.is_empty();
        self.outbox.parked.clear();
        let framing = self.client.deframer.framing().unwrap_or(Framing::Line);
        let both = [(&mut self.client, &mut self.outbox.to_client), (&mut self.server, &mut self.outbox.to_server)];
        for (peer, outgoing) in both {
            for out in outgoing.drain(..) {
                peer.encode(out.frame(), framing);
            }
        }
    }

    /// Remembers how a peer ends its lines, for the lines we write to it ourselves.
    fn note_line_ends(&mut self, side: Side) {
        let ending = self.cuts.iter().rev().find_map(|cut| match cut {
            Cut::Frame(frame) => Some(frame.ending),
            Cut::TooLarge { .. } | Cut::Unframed { .. } => None,
        });
        if let Some(ending) = ending {
            self.peer(side).crlf = ending == Ending::CrLf;
        }
    }

    /// What has come to an end and was not told yet.
    fn ended(&mut self) -> Option<Stop> {
        let (client, server) = (&mut self.client, &mut self.server);
        if client.output.is_none() && !std::mem::replace(&mut client.output_end_told, true) {
            return Some(Stop::ClientGone);
        }
        if client.input.is_none()
            && server.waiting.is_empty()
            && !client.input_end_told
            && !self.pipeline.holds.holds_from(self.conversation.number(), Side::Client)
        {
            client.input_end_told = true;
            return Some(Stop::ClientDone);
        }
        if client.hung_up && !std::mem::replace(&mut client.hang_up_told, true) {
            return Some(Stop::ClientWaits);
        }
        if server.input.is_none() && !std::mem::replace(&mut server.input_end_told, true) {
            return Some(Stop::ServerDone);
        }
        if server.output.is_none() && !std::mem::replace(&mut server.output_end_told, true) {
            return Some(Stop::ServerDeaf);
        }
        None
    }

    fn peer(&mut self, side: Side) -> &mut Peer {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Closes the server's standard input: it is asked to end. What the client still sends is not
    /// read any more.
    pub fn close_server_input(&mut self) {
        self.server.output = None;
        self.server.output_end_told = true;
        self.server.waiting.clear();
        self.client.input = None;
        self.client.input_end_told = true;
    }

    /// Stops listening to the server: what it says from now on may not pass.
    pub fn close_server_output(&mut self) {
        self.server.input = None;
    }

    /// The server will take nothing and say nothing more: what is parked for it goes nowhere, what it
    /// said goes on.
    pub fn server_is_gone(&mut self, cx: &mut Context<'_>) -> Result<(), StoreFailed> {
        self.pipeline.decisions().server_is_gone(self.conversation.number());
        self.dispatch_released(cx)
    }

    /// Answers the calls that are still open, because the server will not.
    pub fn answer_open_calls(&mut self, refusal: &Refusal, cx: &mut Context<'_>) -> Result<(), StoreFailed> {
        self.pipeline.answer_pending(&mut self.conversation, Side::Client, refusal, &mut self.outbox);
        self.dispatch(cx)
    }

    /// Ready when everything for the client has left, or nobody reads it.
    pub fn poll_client_flushed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.client.flush(cx);
        if self.client.waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether the server's output is still open.
    pub fn server_speaks(&self) -> bool {
        self.server.input.is_some()
    }

    /// Bytes moved so far; while this grows, something happens.
    pub fn moved(&self) -> u64 {
        self.moved + self.client.written + self.server.written
    }

    /// Whether the client has yet to take what is there for it.
    pub fn client_is_behind(&self) -> bool {
        !self.client.waiting.is_empty()
    }

    pub fn client_reads(&self) -> bool {
        self.client.output.is_some()
    }
}

/// The two ends of standard input and output as a client gave them to us.
pub fn client_pipes() -> io::Result<(Pipe, Pipe)> {
    use rustix::fs::OFlags;
    Ok((Pipe::shared(rustix::stdio::stdin(), OFlags::RDONLY)?, Pipe::shared(rustix::stdio::stdout(), OFlags::WRONLY)?))
}
