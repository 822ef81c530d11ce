//! A server's standard error: always drained, passed on to ours as far as ours takes it, and its
//! last words kept for the time when somebody asks why it ended.

use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_wire::visible::visible_lines;
use rustix::fs::OFlags;

use super::pipe::Pipe;

/// What is kept of the last words.
const TAIL_BYTES: usize = 16 * 1024;

/// Nothing is passed on, because something draws on the terminal that it would go to.
static IS_KEPT: AtomicBool = AtomicBool::new(false);

/// Keeps what servers say from our standard error, or stops doing so. It is the process's own, and so is
/// this.
pub fn keep_to_ourselves(is_kept: bool) {
    IS_KEPT.store(is_kept, Ordering::Relaxed);
}

/// The last words of a server.
#[derive(Clone, Debug, Default)]
pub struct LastWords {
    tail: Arc<Mutex<Vec<u8>>>,
}

impl LastWords {
    /// The last lines, made safe to show; the first may be cut.
    pub fn text(&self, lines: usize) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let last: Vec<&str> = text.trim_end().lines().rev().take(lines).collect();
        let text: Vec<String> = last.into_iter().rev().map(|line| visible_lines(line).to_string()).collect();
        text.join("\n")
    }

    fn add(&self, bytes: &[u8]) {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        let surplus = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..surplus);
    }
}

/// Drains `stderr` until it ends.
pub async fn drain(stderr: OwnedFd, last_words: LastWords) -> io::Result<()> {
    let mut pipe = Pipe::owned(stderr)?;
    let ours = Ours::open();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        if poll_fn(|cx| pipe.poll_read(cx, &mut buffer, false)).await? == 0 {
            return Ok(());
        }
        last_words.add(&buffer);
        ours.pass_on(&buffer);
    }
}

/// Our own standard error, which may be a full pipe, or a terminal that must not be played with.
struct Ours {
    pipe: Option<Pipe>,
    terminal: bool,
}

impl Ours {
    fn open() -> Self {
        let pipe = Pipe::shared(rustix::stdio::stderr(), OFlags::WRONLY).ok();
        Self { pipe, terminal: io::stderr().is_terminal() }
    }

    /// Passes on what fits. A reader that does not keep up loses lines, never the server its time.
    fn pass_on(&self, bytes: &[u8]) {
        let Some(pipe) = &self.pipe else { return };
        if IS_KEPT.load(Ordering::Relaxed) {
            return;
        }
        if self.terminal {
            let text = visible_lines(&String::from_utf8_lossy(bytes)).to_string();
            pipe.write_now(text.as_bytes());
        } else {
            pipe.write_now(bytes);
        }
    }
}
