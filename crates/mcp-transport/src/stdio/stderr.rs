//! A server's standard error: always drained, passed on to the proxy's as far as that takes it, and its
//! last words kept to explain its end. Lines of a server with a name carry it.

use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_wire::visible::visible_lines;
use rustix::fs::OFlags;

use super::pipe::Pipe;

/// Bytes kept of a server's standard error, as its last words.
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

/// The longest line of a gateway's server printed in one piece with its name: a pipe takes that at once.
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
            lines.end(&mut |name, line| ours.pass_on_line(name, line));
            return Ok(());
        }
        last_words.add(&buffer);
        if IS_KEPT.load(Ordering::Relaxed) {
            continue;
        }
        match lines.name.is_some() || VOICE.get().is_some() {
            true => lines.say(&buffer, &mut |name, line| ours.pass_on_line(name, line)),
            false => ours.pass_on(&buffer),
        }
    }
}

/// Takes a line of a server, which may have a name.
type PassOn<'a> = &'a mut dyn FnMut(Option<&str>, &[u8]);

/// What a server says, line by line.
struct Lines {
    name: Option<Arc<str>>,
    begun: Vec<u8>,
}

impl Lines {
    fn say(&mut self, bytes: &[u8], pass_on: PassOn<'_>) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.begun.len() >= LINE_BYTES_MAX {
                self.end(pass_on);
            }
        }
    }

    fn end(&mut self, pass_on: PassOn<'_>) {
        let line = self.begun.trim_ascii_end();
        if !line.is_empty() {
            pass_on(self.name.as_deref(), line);
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

    /// Passes on a line by the voice, or with the server's name in front. A pipe takes such a line whole or not at all.
    fn pass_on_line(&self, name: Option<&str>, line: &[u8]) {
        match (VOICE.get(), name) {
            (Some(voice), _) => voice(name, &String::from_utf8_lossy(line)),
            (None, Some(name)) => self.pass_on(&[b"[", name.as_bytes(), b"] ", line, b"\n"].concat()),
            (None, None) => self.pass_on(&[line, b"\n"].concat()),
        }
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

    #[test]
    fn what_a_server_says_is_told_line_by_line() {
        let heard = std::cell::RefCell::new(Vec::new());
        let pass_on = &mut |name: Option<&str>, line: &[u8]| {
            heard.borrow_mut().push((name.unwrap_or("?").to_owned(), line.to_vec()));
        };
        let mut lines = Lines { name: Some("a".into()), begun: Vec::new() };
        lines.say(b"one\r\ntw", pass_on);
        lines.say(b"o\n\n \nth\xffree", pass_on);
        assert_eq!(*heard.borrow(), [("a".to_owned(), b"one".to_vec()), ("a".to_owned(), b"two".to_vec())]);
        lines.end(pass_on);
        lines.say(&vec![b'x'; LINE_BYTES_MAX + 1], pass_on);
        assert_eq!(heard.borrow()[2].1, b"th\xffree");
        // A line without an end is not kept for ever.
        assert_eq!((heard.borrow().len(), lines.begun.len()), (4, 0));
    }
}
