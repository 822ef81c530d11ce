//! A server as a process tree. A small guard (this program, executed again) owns the tree: it is the
//! server's parent, adopts whatever the server leaves behind, and ends it all when the proxy asks or
//! is gone. The server's pipes lead straight to the proxy; the guard is off the data path.

pub mod guard;
pub mod side;
mod tree;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::os;

/// Wait for the guard's report that the process tree is gone.
pub const TREE_GONE_FOR: Duration = Duration::from_secs(6);
/// Time for the last output of an ended server while a process that it left behind holds the pipe open; longer than
/// `KILL_ORPHANS_AFTER`.
pub const DRAIN_FOR: Duration = Duration::from_millis(600);
/// Lines kept of a server's last words.
pub const LAST_WORDS_LINES: usize = 20;

/// The word that makes this program a guard instead.
pub const GUARD_WORD: &str = "__guard";
/// What the guard is called in a process list, so that killing `mcp-proxy` by name spares it.
const GUARD_NAME: &str = "mcp-guard";
/// What to start.
#[derive(Clone, Debug, Default)]
pub struct ServerCommand {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Added to the environment of the proxy.
    pub env: Vec<(OsString, OsString)>,
    /// That is all it gets: nothing of the proxy's own.
    pub env_only: bool,
    /// Where it starts; where the proxy did, unless said.
    pub cwd: Option<PathBuf>,
}

/// A server that was started, with the proxy's ends of its pipes.
pub struct Started {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub child: Child,
}

/// The proxy's hold on a server. Dropping it ends the server's tree.
pub struct Child {
    guard: std::process::Child,
    control: UnixStream,
    received: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    Started,
    /// It could not be started, for this reason.
    NotStarted {
        errno: i32,
    },
    Ended(ExitStatus),
    /// Nothing of the tree is left.
    TreeGone,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
    /// The guard itself was killed, so nobody knows.
    Unknown,
    NotStarted,
}

impl ExitStatus {
    /// As a shell would give it.
    pub fn as_exit_code(self) -> u8 {
        match self {
            Self::Code(code) => u8::try_from(code & 0xff).unwrap_or(1),
            Self::Signal(signal) => u8::try_from(128 + (signal & 0x7f)).unwrap_or(1),
            Self::Unknown | Self::NotStarted => 1,
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::Unknown => f.write_str("killed with its guard"),
            Self::NotStarted => f.write_str("could not be started"),
        }
    }
}

/// Starts the guard, which starts the server. Whether that worked comes as the first event.
/// Must be called inside a tokio runtime.
pub fn start(command: &ServerCommand) -> io::Result<Started> {
    let (their_stdin, stdin) = io::pipe()?;
    let (stdout, their_stdout) = io::pipe()?;
    let (stderr, their_stderr) = io::pipe()?;
    let (control, their_control) = std::os::unix::net::UnixStream::pair()?;
    control.set_nonblocking(true)?;
    let mut guard = Command::new(os::own_program()?);
    guard.arg0(GUARD_NAME).arg(GUARD_WORD).stdin(Stdio::from(their_stdin)).stdout(Stdio::from(their_stdout));
    if command.env_only {
        guard.env_clear();
    }
    if let Some(cwd) = &command.cwd {
        guard.current_dir(cwd);
    }
    guard.stderr(Stdio::from(their_stderr)).envs(command.env.iter().map(|(name, value)| (name, value)));
    os::inherit(&mut guard, their_control);
    guard.arg(&command.program).args(&command.args);
    let guard = guard.spawn()?;
    let child = Child { guard, control: UnixStream::from_std(control)?, received: Vec::new() };
    Ok(Started { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into(), child })
}

impl Child {
    /// The next thing that happens to the tree. Safe to drop and call again.
    pub async fn event(&mut self) -> ChildEvent {
        loop {
            if let Some(report) = guard::Report::take(&mut self.received) {
                return report.into_event();
            }
            let mut bytes = [0; 64];
            match self.control.try_read(&mut bytes) {
                Ok(0) => return ChildEvent::TreeGone,
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // An error here is one of the socket, and the next read tells.
                    let _ = self.control.ready(Interest::READABLE).await;
                }
                Err(_) => return ChildEvent::TreeGone,
            }
        }
    }

    /// Asks the guard to end the tree: politely, then not.
    pub fn terminate(&self) {
        // A guard that cannot be told is ending the tree already.
        let _ = self.control.try_write(&[guard::TERMINATE]);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The guard takes the closed socket for our death, and ends the tree before it ends.
        let _ = rustix::net::shutdown(&self.control, rustix::net::Shutdown::Both);
        let _ = self.guard.wait();
    }
}

/// The process at the other end of a server's standard input.
pub struct ServerProcess {
    guard: u32,
    /// The inode of that pipe.
    pipe: Option<u64>,
}

impl ServerProcess {
    /// `stdin` is the proxy's end of the pipe.
    pub fn new(child: &Child, stdin: &impl AsFd) -> Self {
        Self { guard: child.guard.id(), pipe: rustix::fs::fstat(stdin).ok().map(|stat| stat.st_ino) }
    }

    /// Whether it is stopped, as by SIGSTOP.
    pub fn is_stopped(&self) -> bool {
        self.pipe.is_some_and(|pipe| tree::has_stopped_reader(self.guard, pipe))
    }
}

/// Tells the proxy something from the guard; a proxy that is gone is noticed elsewhere.
fn tell(mut control: &std::os::unix::net::UnixStream, report: guard::Report) {
    let _ = control.write_all(&report.encode());
}
