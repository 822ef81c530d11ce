//! Whether the process of an instance is still there.

use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, test_kill_process};

/// When a process began, in ticks since the system did. `None` where the system does not say it this way.
pub(super) fn started(pid: u32) -> Option<u64> {
    look(pid).map(|(_, started)| started)
}

/// Whether this very process still runs, and not another that was given its number.
pub(super) fn is_running(pid: u32, began: Option<u64>) -> bool {
    match (began, look(pid)) {
        (Some(began), Some((state, started))) => began == started && !matches!(state, b'Z' | b'X'),
        // A system that told of it before does so still: it is gone.
        (Some(_), None) => false,
        (None, _) => i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok()),
    }
}

/// Whether somebody takes connections here. A queue that is full says yes too, and does not make us wait.
pub(super) fn listens(socket: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(address) = SocketAddrUnix::new(socket) else { return false };
    let Ok(probe) = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None) else { return true };
    match connect(&probe, &address) {
        Ok(()) => true,
        Err(error) => error == Errno::AGAIN,
    }
}

/// State and start time from `/proc/PID/stat`. The name in parentheses may hold anything, so the fields
/// are counted from its end.
fn look(pid: u32) -> Option<(u8, u64)> {
    const STARTED_AFTER_STATE: usize = 19;
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.nth(STARTED_AFTER_STATE - 1)?.parse().ok()?))
}
