//! Whether a proxy that was just started draws, or carries messages for a client that started it: the
//! rule, and the facts that it goes by. A client may hand over a terminal, so that being on one is not
//! enough: drawing on it would ruin what the client shows, or stop us.

pub(crate) mod by_hand;

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use mcp_wire::framing::opens_messages;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cli::Ui;
use crate::failure::Failure;

/// Time to listen to a terminal before drawing on it. A client that speaks at once is heard, and a person hardly
/// waits.
const LISTEN_FOR: Duration = Duration::from_millis(250);
/// Bytes read from the terminal meanwhile: enough to tell a client from a person.
const HEARD_MAX: usize = 64 * 1024;

/// What a proxy begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Launch {
    Draw,
    /// Carries messages. `heard` is what came over standard input already.
    Headless {
        heard: Vec<u8>,
    },
}

/// What the rule goes by, save for what is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// What the command line asks for.
    pub ui: Option<Ui>,
    /// Whether the command line says that clients come over standard input.
    pub stdin_is_client: bool,
    pub terminals: Terminals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminals {
    pub stdin: bool,
    pub stdout: bool,
    /// They show what we write, and do not stop us for it.
    pub foreground: bool,
    /// They do no more than print lines.
    pub dumb: bool,
}

/// What the facts come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Draw,
    Headless,
    /// Draw, unless a client is heard first.
    Listen,
    /// It was asked for, and there is nothing to draw on.
    Impossible,
}

/// Finds out, which takes as long as a terminal has to be listened to.
pub(crate) fn decide(ui: Option<Ui>, stdin_is_client: bool) -> Result<Launch, Failure> {
    let facts = Facts { ui, stdin_is_client, terminals: Terminals::of_this_process() };
    Ok(match rule(facts) {
        Rule::Draw => Launch::Draw,
        Rule::Headless => Launch::Headless { heard: Vec::new() },
        Rule::Listen => listen(),
        Rule::Impossible => return Err(no_terminal("--ui tui")),
    })
}

/// The first line that matches counts.
fn rule(Facts { ui, stdin_is_client, terminals }: Facts) -> Rule {
    match ui {
        Some(Ui::None) => Rule::Headless,
        Some(Ui::Tui) if !terminals.can_be_drawn_on() => Rule::Impossible,
        Some(Ui::Tui) => Rule::Draw,
        None if !terminals.can_be_drawn_on() => Rule::Headless,
        None if !terminals.foreground => Rule::Headless,
        None if stdin_is_client => Rule::Headless,
        None => Rule::Listen,
    }
}

impl Terminals {
    pub(crate) fn of_this_process() -> Self {
        Self {
            stdin: std::io::stdin().is_terminal(),
            stdout: std::io::stdout().is_terminal(),
            foreground: is_foreground(),
            dumb: std::env::var_os("TERM").as_deref() == Some(OsStr::new("dumb")),
        }
    }

    pub(crate) fn can_be_drawn_on(self) -> bool {
        self.stdin && self.stdout && !self.dumb
    }
}

/// Whether what we do to the terminal does not stop us. Of a terminal that is not ours to control, nobody
/// can tell.
fn is_foreground() -> bool {
    let own = rustix::process::getpgrp();
    let is_own = |group: rustix::io::Result<_>| group == Ok(own);
    is_own(rustix::termios::tcgetpgrp(rustix::stdio::stdin()))
        && is_own(rustix::termios::tcgetpgrp(rustix::stdio::stdout()))
}

/// What is said where something would have to be drawn, and cannot be.
pub(crate) fn no_terminal(what: &str) -> Failure {
    Failure::usage(format!(
        "{what} needs a terminal on standard input and output; `mcp-proxy tail` prints messages anywhere"
    ))
}

/// Listens to standard input for a moment. What is no client's is a person's impatience, and is let go.
fn listen() -> Launch {
    let mut heard = Vec::new();
    match hear(&mut heard, Instant::now() + LISTEN_FOR) {
        true => Launch::Headless { heard },
        false => Launch::Draw,
    }
}

/// Whether a client speaks before `until`; what was read is in `heard`.
fn hear(heard: &mut Vec<u8>, until: Instant) -> bool {
    let stdin = rustix::stdio::stdin();
    let mut piece = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::from_borrowed_fd(stdin, PollFlags::IN)], Some(&wait)) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return false,
        }
        match rustix::io::read(stdin, &mut piece) {
            // Whoever closes its end at once is no person.
            Ok(0) | Err(rustix::io::Errno::IO) => return true,
            Ok(count) => heard.extend_from_slice(&piece[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => return false,
        }
        match opens_messages(heard) {
            Some(is_client) => return is_client,
            None if heard.len() > HEARD_MAX => return false,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Terminals = Terminals { stdin: true, stdout: true, foreground: true, dumb: false };
    const NO_STDIN: Terminals = Terminals { stdin: false, ..BOTH };
    const NO_STDOUT: Terminals = Terminals { stdout: false, ..BOTH };
    const NEITHER: Terminals = Terminals { stdout: false, ..NO_STDIN };
    const BEHIND: Terminals = Terminals { foreground: false, ..BOTH };
    const DUMB: Terminals = Terminals { dumb: true, ..BOTH };

    #[test]
    fn the_rule() {
        let table = [
            (None, BOTH, Rule::Listen),
            (None, NO_STDIN, Rule::Headless),
            (None, NO_STDOUT, Rule::Headless),
            (None, NEITHER, Rule::Headless),
            (None, BEHIND, Rule::Headless),
            (None, DUMB, Rule::Headless),
            (Some(Ui::Tui), BOTH, Rule::Draw),
            // Whoever asks for it is stopped by the shell until it is in front, like any editor.
            (Some(Ui::Tui), BEHIND, Rule::Draw),
            (Some(Ui::Tui), NO_STDIN, Rule::Impossible),
            (Some(Ui::Tui), NO_STDOUT, Rule::Impossible),
            (Some(Ui::Tui), NEITHER, Rule::Impossible),
            (Some(Ui::Tui), DUMB, Rule::Impossible),
            (Some(Ui::None), BOTH, Rule::Headless),
            (Some(Ui::None), NEITHER, Rule::Headless),
            (Some(Ui::None), BEHIND, Rule::Headless),
        ];
        for (ui, terminals, expected) in table {
            let facts = Facts { ui, stdin_is_client: false, terminals };
            assert_eq!(rule(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn whoever_says_that_clients_are_on_stdin_types_messages_there() {
        let decided = |ui| rule(Facts { ui, stdin_is_client: true, terminals: BOTH });
        assert_eq!(decided(None), Rule::Headless);
        assert_eq!(decided(Some(Ui::Tui)), Rule::Draw);
    }
}
