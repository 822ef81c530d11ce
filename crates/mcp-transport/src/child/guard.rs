//! The guard: starts the server, tells the proxy how it fares, and ends the whole tree when the
//! proxy asks for it or is gone. It never touches the data.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::{ChildEvent, ExitStatus, GUARD_NAME, tell, tree};
use crate::os;

/// The byte by which the proxy asks for the end.
pub(super) const TERMINATE: u8 = b'T';
/// Time from SIGTERM to SIGKILL.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// Time from SIGTERM to SIGKILL for processes that a server left behind when it ended by itself.
const KILL_ORPHANS_AFTER: Duration = Duration::from_millis(500);
/// Time to end a tree. A process that the guard may not signal, such as one that changed its user, is left after
/// it.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);
/// Interval between two looks at a tree that is ending.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What the guard tells the proxy: a letter and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    Started,
    NotStarted(i32),
    Code(i32),
    Signal(i32),
}

impl Report {
    const LEN: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::LEN] {
        let (letter, number) = match self {
            Self::Started => (b'S', 0),
            Self::NotStarted(errno) => (b'N', errno),
            Self::Code(code) => (b'C', code),
            Self::Signal(signal) => (b'K', signal),
        };
        let mut bytes = [letter; Self::LEN];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// Takes the first report off what was received.
    pub(super) fn take(received: &mut Vec<u8>) -> Option<Self> {
        let (letter, rest) = received.split_first()?;
        let number = i32::from_le_bytes(rest.get(..4)?.try_into().ok()?);
        let report = match letter {
            b'S' => Self::Started,
            b'N' => Self::NotStarted(number),
            b'C' => Self::Code(number),
            _ => Self::Signal(number),
        };
        received.drain(..Self::LEN);
        Some(report)
    }

    pub(super) fn into_event(self) -> ChildEvent {
        match self {
            Self::Started => ChildEvent::Started,
            Self::NotStarted(errno) => ChildEvent::NotStarted { errno },
            Self::Code(code) => ChildEvent::Ended(ExitStatus::Code(code)),
            Self::Signal(signal) => ChildEvent::Ended(ExitStatus::Signal(signal)),
        }
    }
}

/// Runs as a guard: `args` are the number of the control socket, the server's program and its
/// arguments.
pub fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let control = args.next().and_then(|number| number.to_str()?.parse().ok()).map(os::inherited);
    let (Some(Ok(control)), Some(program)) = (control, args.next()) else { return ExitCode::from(2) };
    // Out of the client's process group: what kills the proxy's group must not kill its guard.
    let _ = rustix::process::setsid();
    os::set_name(GUARD_NAME);
    os::adopt_orphans();
    os::close_the_rest_on_exec();
    let mut command = Command::new(program);
    command.args(args);
    os::detach(&mut command);
    let server = match command.spawn() {
        Ok(server) => server,
        Err(error) => {
            tell(&control, Report::NotStarted(error.raw_os_error().unwrap_or(0)));
            return ExitCode::from(3);
        }
    };
    // The pipes belong to the server and the proxy now; a copy here would hide their ends.
    if let Err(error) = let_go_of_stdio() {
        tell(&control, Report::NotStarted(error.raw_os_error().unwrap_or(0)));
    }
    tell(&control, Report::Started);
    watch(&control, server.id());
    ExitCode::SUCCESS
}

fn let_go_of_stdio() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Watches the server until it has ended, or has to.
fn watch(control: &UnixStream, server: u32) {
    let Ok((mut ended, teller)) = io::pipe() else { return end_tree(KILL_AFTER) };
    // Waiting for any child reaps orphans as they come, so that none stays a zombie.
    let reaper = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || reap(server, teller));
    if reaper.is_err() {
        return end_tree(KILL_AFTER);
    }
    os::let_go_of_code();
    let mut fds = [PollFd::new(control, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
    while let Err(rustix::io::Errno::INTR) = poll(&mut fds, None) {}
    let ended_by_itself = !fds[1].revents().is_empty();
    if ended_by_itself {
        report_end(control, &mut ended);
        return end_tree(KILL_ORPHANS_AFTER);
    }
    end_tree(KILL_AFTER);
    report_end(control, &mut ended);
}

/// Reaps every child; when the server is among them, says how it ended.
fn reap(server: u32, mut teller: io::PipeWriter) {
    use std::io::Write;
    while let Some((pid, status)) = wait_for_any() {
        if pid.as_raw_pid().cast_unsigned() == server {
            let status = std::process::ExitStatus::from_raw(status);
            let report = match (status.code(), status.signal()) {
                (Some(code), _) => Report::Code(code),
                (None, signal) => Report::Signal(signal.unwrap_or(0)),
            };
            let _ = teller.write_all(&report.encode());
        }
    }
}

fn wait_for_any() -> Option<(rustix::process::Pid, i32)> {
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Ok(Some((pid, status))) => return Some((pid, status.as_raw())),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Passes on how the server ended. By now that is known, or will never be.
fn report_end(control: &UnixStream, ended: &mut io::PipeReader) {
    // With children left, such as one we may not signal, the reaper may wait for ever.
    let known = || {
        let mut fds = [PollFd::new(&*ended, PollFlags::IN)];
        !tree::has_children() || poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    };
    let mut bytes = vec![0; Report::LEN];
    if known()
        && ended.read_exact(&mut bytes).is_ok()
        && let Some(report) = Report::take(&mut bytes)
    {
        tell(control, report);
    }
}

/// Ends everything below this process: a polite signal, then one that cannot be ignored, until
/// nothing is left.
fn end_tree(patience: Duration) {
    if !tree::has_children() {
        return;
    }
    let begun = Instant::now();
    tree::signal_descendants(Signal::TERM);
    // A stopped process would sleep through the polite signal.
    tree::signal_descendants(Signal::CONT);
    while tree::has_children() && begun.elapsed() < GIVE_UP_AFTER {
        if begun.elapsed() >= patience {
            tree::signal_descendants(Signal::KILL);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
