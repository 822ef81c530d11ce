//! Everything people read. Standard output belongs to the protocol while a proxy runs; commands that
//! answer a question may use it, and only through here. Text from a peer is made visible on the way.

mod kept;
mod structured;

use std::io::{self, BufWriter, IsTerminal, Write};

use mcp_wire::visible::visible_lines;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) use kept::{Kept, keep, say_kept};
pub(crate) use structured::{Level, structured};

/// Says something on standard error, or later while something draws there.
pub(crate) fn say(text: &str) {
    structured::said(text).iter().for_each(|line| keep_or_say(line));
}

/// The same of what somebody waits for, whatever is left out otherwise.
pub(crate) fn announce(text: &str) {
    keep_or_say(&structured::announced(text));
}

fn keep_or_say(line: &str) {
    if !kept::takes(line) {
        say_now(line);
    }
}

/// Never waits for long: nobody may be reading, and there is nobody else to tell.
fn say_now(text: &str) {
    say_within(text, PATIENCE);
}

/// Says it if it is taken at once. Whoever says much waits for nobody.
fn say_if_taken(text: &str) {
    say_within(text, Timespec { tv_sec: 0, tv_nsec: 0 });
}

/// Wait for a reader of standard error; then the rest of the text is dropped.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

fn say_within(text: &str, patience: Timespec) {
    /// Bytes that a pipe takes at once if it says that it takes any.
    const TAKEN_AT_ONCE: usize = 4096;
    let line = format!("{}\n", visible_lines(text));
    let stderr = rustix::stdio::stderr();
    for (at, part) in line.as_bytes().chunks(TAKEN_AT_ONCE).enumerate() {
        let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
        // What is begun is worth the wait.
        match poll(&mut fds, Some(if at == 0 { &patience } else { &PATIENCE })) {
            Ok(ready) if ready > 0 => {}
            _ => return,
        }
        if rustix::io::write(stderr, part).is_err() {
            return;
        }
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// The answer of a command, on standard output.
pub(crate) struct Page {
    out: BufWriter<io::StdoutLock<'static>>,
    color: bool,
}

/// What a piece of text means; shown by colour only in addition to words.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Heading,
    Faint,
    Good,
    Bad,
    /// Of JSON: the name of a member, a string, and a number or a word.
    Key,
    Text,
    Number,
}

impl Page {
    pub(crate) fn new(color: ColorChoice) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => !plain && io::stdout().is_terminal(),
        };
        Self { out: BufWriter::new(io::stdout().lock()), color }
    }

    /// Prints a line of our own making; what came from a peer has been made visible by then.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match style {
            Style::Heading => "1",
            Style::Faint => "2",
            Style::Good => "32",
            Style::Bad => "31",
            Style::Key => "36",
            Style::Text => "32",
            Style::Number => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Shows what has been printed so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(crate) fn end(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Characters of a line's last column that are shown on however narrow a terminal.
const LAST_COLUMN_LEAST: usize = 16;

/// The width of the terminal on standard output, if that is one.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The beginning of a line's last column, as far as the terminal has room behind `used` columns. In a pipe, all of
/// it.
pub(crate) fn rest_of_line(text: &str, used: usize, width: Option<usize>) -> String {
    let room = width.map(|width| width.saturating_sub(used).max(LAST_COLUMN_LEAST));
    match room.and_then(|room| text.char_indices().nth(room).map(|_| room)) {
        Some(room) => text.chars().take(room - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// A duration as people say it.
pub(crate) fn duration(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{}\u{b5}s", ns / 1_000),
        1_000_000..10_000_000 => format!("{:.1}ms", ns as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{}ms", ns / 1_000_000),
        _ => format!("{:.1}s", ns as f64 / 1e9),
    }
}

/// A size as people say it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GB", bytes as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_is_as_wide_as_the_terminal_lets_it() {
        let text = "npx -y @modelcontextprotocol/server-filesystem /home/me";
        assert_eq!(rest_of_line(text, 65, None), text, "a pipe gets it all");
        assert_eq!(rest_of_line(text, 65, Some(120)), text);
        assert_eq!(rest_of_line(text, 65, Some(119)).chars().count(), 119 - 65);
        assert_eq!(rest_of_line(text, 65, Some(80)), "npx -y @modelco…");
    }
}
