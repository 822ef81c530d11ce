//! Drives a replay over pipes: writes what it wants sent, reads what comes, keeps the time.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_engine::replay::{Replay, Step};
use mcp_transport::stdio::pipe::Pipe;
use mcp_wire::framing::encode;
use mcp_wire::{Cut, Deframer, Frame, Framing, Gather, Message};
use tokio::time::{Instant, sleep_until};

use crate::inner::Ends;
use crate::progress::Progress;

/// What may wait for the proxy before the replay has to.
const WAITING_MAX: usize = 1024 * 1024;
/// The longest that is waited without looking at the clock again.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// Plays to the end, then sees the conversation closed.
pub async fn play(replay: &mut Replay, ends: Ends, message_bytes_max: usize, progress: &Progress) {
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let Ends { mut from_proxy, to_proxy } = ends;
    let mut wire = Wire { to_proxy: Some(to_proxy), waiting: Gather::default() };
    let mut deframer = Deframer::new(message_bytes_max);
    let mut is_done = false;
    loop {
        let until = if is_done { None } else { fill(replay, &mut wire, now()) };
        is_done = until.is_none();
        // Interrupted, the proxy ends the conversation, and that ends the replay.
        let _ = progress.reach(replay.progress().0 as u64);
        if is_done && wire.waiting.is_empty() {
            wire.to_proxy = None;
        }
        let wake_at = begun + Duration::from_nanos(until.unwrap_or(u64::MAX)).min(begun.elapsed() + LOOK_AGAIN);
        tokio::select! {
            biased;
            is_open = poll_fn(|cx| wire.poll(cx, &mut from_proxy, &mut deframer)) => {
                hear(replay, &mut deframer, is_open, now());
                if !is_open {
                    return replay.closed();
                }
            }
            () = sleep_until(wake_at) => {}
        }
    }
}

/// Takes what the replay wants sent, as long as there is room. Returns when to look again, or nothing
/// once it is done.
fn fill(replay: &mut Replay, wire: &mut Wire, now: u64) -> Option<u64> {
    while wire.waiting.len() < WAITING_MAX {
        match replay.step(now) {
            Step::Send(message) => {
                let frame = Frame::composed(message);
                encode((&frame).into(), Framing::Line, b"\n", &mut wire.waiting);
            }
            Step::Wait(until) => return Some(until),
            Step::Done => return None,
        }
    }
    Some(u64::MAX)
}

fn hear(replay: &mut Replay, deframer: &mut Deframer, is_open: bool, now: u64) {
    let mut cuts = Vec::new();
    if is_open {
        deframer.cut(&mut cuts);
    } else {
        deframer.finish(&mut cuts);
    }
    for cut in cuts {
        if let Cut::Frame(frame) = cut {
            replay.received(&Message::new(frame.bytes), now);
        }
    }
}

struct Wire {
    to_proxy: Option<Pipe>,
    waiting: Gather,
}

impl Wire {
    /// Writes what waits and reads what is there. Ready when something was read or written to the end;
    /// false at the end of the stream.
    fn poll(&mut self, cx: &mut Context<'_>, from_proxy: &mut Pipe, deframer: &mut Deframer) -> Poll<bool> {
        let had = self.waiting.len();
        if let Some(pipe) = self.to_proxy.as_mut().filter(|_| had > 0)
            && let Poll::Ready(Err(_)) = pipe.poll_write(cx, &mut self.waiting)
        {
            // Nobody takes it; what came before is still to be read.
            self.to_proxy = None;
            self.waiting.clear();
        }
        match from_proxy.poll_read(cx, deframer.buffer(), false) {
            Poll::Ready(read) => Poll::Ready(matches!(read, Ok(count) if count > 0)),
            Poll::Pending if had > 0 && self.waiting.is_empty() => Poll::Ready(true),
            Poll::Pending => Poll::Pending,
        }
    }
}
