//! Drives a replay: sends what it wants sent, hands it what comes, keeps the time.

use std::future::poll_fn;
use std::time::Duration;

use mcp_engine::replay::{Replay, Step};
use tokio::time::{Instant, sleep_until};

use crate::duplex::Duplex;
use crate::progress::Progress;

/// The longest that is waited without looking at the clock again.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// Plays to the end, then sees the conversation closed.
pub(super) async fn play(replay: &mut Replay, mut proxy: Duplex, progress: &Progress) {
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut is_done = false;
    loop {
        let until = if is_done { None } else { fill(replay, &mut proxy, now()) };
        is_done = until.is_none();
        // Interrupted, the proxy ends the conversation, and that ends the replay.
        let _ = progress.reach(replay.progress().0 as u64);
        if is_done && proxy.is_flushed() {
            proxy.hang_up();
        }
        let wake_at = begun + Duration::from_nanos(until.unwrap_or(u64::MAX)).min(begun.elapsed() + LOOK_AGAIN);
        tokio::select! {
            biased;
            came = poll_fn(|cx| proxy.poll(cx)) => match came {
                Some(messages) => messages.iter().for_each(|message| replay.received(message, now())),
                None => return replay.closed(),
            },
            () = sleep_until(wake_at) => {}
        }
    }
}

/// Takes what the replay wants sent, as long as there is room. Returns when to look again, or nothing
/// once it is done.
fn fill(replay: &mut Replay, proxy: &mut Duplex, now: u64) -> Option<u64> {
    while proxy.has_room() {
        match replay.step(now) {
            Step::Send(message) => proxy.send(message),
            Step::Wait(until) => return Some(until),
            Step::Done => return None,
        }
    }
    Some(u64::MAX)
}
