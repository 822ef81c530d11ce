//! Which processes descend from this one, and how they are ended.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

/// Sends `signal` to every process below this one.
pub(super) fn signal_descendants(signal: Signal) {
    for pid in descendants(getpid()) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether this process has any child left, dead or alive. Reaping is left to the guard's reaper,
/// which must not miss how the server ended.
pub(super) fn has_children() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, look), Err(rustix::io::Errno::CHILD))
}

fn descendants(root: Pid) -> Vec<Pid> {
    let parents = parents();
    let mut found = vec![root.as_raw_pid()];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found[1..].iter().filter_map(|pid| Pid::from_raw(*pid)).collect()
}

/// Whether a process below `root` is stopped whose standard input is the pipe with this inode. Helpers of a server may be
/// stopped for reasons of their own.
#[cfg(target_os = "linux")]
pub(super) fn has_stopped_reader(root: u32, pipe: u64) -> bool {
    let Some(root) = i32::try_from(root).ok().and_then(Pid::from_raw) else { return false };
    let reads = |pid: i32| {
        let input = std::fs::read_link(format!("/proc/{pid}/fd/0"));
        input.is_ok_and(|input| input.as_os_str() == format!("pipe:[{pipe}]").as_str())
    };
    descendants(root).into_iter().map(Pid::as_raw_pid).any(|pid| is_stopped(pid) && reads(pid))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn has_stopped_reader(_root: u32, _pipe: u64) -> bool {
    false
}

/// Every process with its parent.
#[cfg(target_os = "linux")]
fn parents() -> Vec<(i32, i32)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, parent_of(pid)?))
        })
        .collect()
}

#[cfg(target_os = "linux")]
fn parent_of(pid: i32) -> Option<i32> {
    status_field(pid, 1)?.parse().ok()
}

#[cfg(target_os = "linux")]
fn is_stopped(pid: i32) -> bool {
    status_field(pid, 0).as_deref() == Some("T")
}

/// A field of `/proc/PID/stat`, counted from the third; the second may hold anything, so the count begins at the last
/// parenthesis.
#[cfg(target_os = "linux")]
fn status_field(pid: i32, at: usize) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.iter().rposition(|&byte| byte == b')')?;
    Some(std::str::from_utf8(&stat[after + 1..]).ok()?.split_ascii_whitespace().nth(at)?.to_owned())
}

/// Every process with its parent; without a process file system `ps` knows.
#[cfg(not(target_os = "linux"))]
fn parents() -> Vec<(i32, i32)> {
    let output = std::process::Command::new("ps").args(["-axo", "pid=,ppid="]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        })
        .collect()
}
