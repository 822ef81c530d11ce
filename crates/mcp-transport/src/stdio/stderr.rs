//! A server's standard error: always drained, passed on to ours as far as ours takes it, and its
//! last words kept for the time when somebody asks why it ended.

use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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

/// Who passes on what servers say, where our standard error is for programs: a line at a time, of the
/// server by its name if it has one. Must not wait.
pub type Voice = fn(Option<&str>, &str);

static VOICE: OnceLock<Voice> = OnceLock::new();

/// The longest line that is passed on in one piece.
const LINE_BYTES_MAX: usize = 2 * 1024;

/// Has what servers say passed on in other words than their own. Once, for the whole process.
pub fn pass_on_through(voice: Voice) {
    let _ = VOICE.set(voice);
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

/// Drains the `stderr` of a server, which may have a name, until it ends.
pub async fn drain(stderr: OwnedFd, last_words: LastWords, name: Option<Arc<str>>) -> io::Result<()> {
    let mut pipe = Pipe::owned(stderr)?;
    let ours = Ours::open();
    let mut lines = Lines { name, begun: Vec::new() };
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        if poll_fn(|cx| pipe.poll_read(cx, &mut buffer, false)).await? == 0 {
            if let Some(voice) = VOICE.get() {
                lines.end(*voice);
            }
            return Ok(());
        }
        last_words.add(&buffer);
        match VOICE.get() {
            _ if IS_KEPT.load(Ordering::Relaxed) => {}
            Some(voice) => lines.say(&buffer, *voice),
            None => ours.pass_on(&buffer),
        }
    }
}

/// What a server says, line by line.
struct Lines {
    name: Option<Arc<str>>,
    begun: Vec<u8>,
}

impl Lines {
    fn say(&mut self, bytes: &[u8], voice: Voice) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.begun.len() >= LINE_BYTES_MAX {
                self.end(voice);
            }
        }
    }

    fn end(&mut self, voice: Voice) {
        let text = String::from_utf8_lossy(&self.begun);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            voice(self.name.as_deref(), line);
        }
        self.begun.clear();
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
        if self.terminal {
            let text = visible_lines(&String::from_utf8_lossy(bytes)).to_string();
            pipe.write_now(text.as_bytes());
        } else {
            pipe.write_now(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

    #[test]
    fn what_a_server_says_is_told_line_by_line() {
        let voice: Voice = |name, line| HEARD.lock().unwrap().push(format!("{}: {line}", name.unwrap_or("?")));
        let mut lines = Lines { name: Some("a".into()), begun: Vec::new() };
        lines.say(b"one\r\ntw", voice);
        lines.say(b"o\n\n \nth\xffree", voice);
        assert_eq!(*HEARD.lock().unwrap(), ["a: one", "a: two"]);
        lines.end(voice);
        lines.say(&vec![b'x'; LINE_BYTES_MAX + 1], voice);
        assert_eq!(HEARD.lock().unwrap()[2], "a: th\u{fffd}ree");
        // What never ends is not kept for ever.
        assert_eq!((HEARD.lock().unwrap().len(), lines.begun.len()), (4, 0));
    }
}
