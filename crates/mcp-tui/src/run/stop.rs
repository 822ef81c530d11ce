//! Stopping to let the shell have the terminal: by key, with an editor, or because another process says so.

use futures_util::FutureExt;
use rustix::process::Signal;
use signal_hook::low_level::raise;
use tokio::signal::unix::{self, SignalKind, signal};

/// SIGTSTP from outside, which by itself would leave the terminal as it is drawn on.
pub(super) struct Stops {
    requests: unix::Signal,
}

impl Stops {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self { requests: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))? })
    }

    /// Waits until this process is told to stop.
    pub(super) async fn requested(&mut self) {
        self.requests.recv().await;
    }

    /// Forgets what was said while an editor had the terminal: one that is suspended tells its whole job.
    pub(super) async fn forget(&mut self) {
        // The runtime takes in signals when a task yields.
        tokio::task::yield_now().await;
        while self.requests.recv().now_or_never().is_some() {}
    }
}

/// Stops this process; `fg` goes on behind this.
///
/// SIGTSTP is caught here, so that SIGSTOP has to do it. Unlike the former it stops even what no shell would
/// ever continue, which is left alone. A signal to the whole process may reach another thread first, and this one
/// would go on to draw before the stop; a raised signal stops the caller before `raise` returns.
pub(super) fn here() {
    if has_job_control() {
        let _ = raise(Signal::STOP.as_raw());
    }
}

/// Whether a shell of this session started our job.
fn has_job_control() -> bool {
    let Some(own) = Standing::of("self") else { return false };
    let mut parent = own.parent;
    loop {
        match Standing::of(&parent.to_string()) {
            Some(other) if other.session != own.session => return false,
            Some(other) if other.group != own.group => return true,
            Some(other) => parent = other.parent,
            None => return false,
        }
    }
}

/// Where a process stands among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    parent: i32,
    group: i32,
    session: i32,
}

impl Standing {
    fn of(pid: &str) -> Option<Self> {
        Self::read(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `42 (any name) S 1 42 42 …`
    fn read(stat: &str) -> Option<Self> {
        let (_, behind_name) = stat.rsplit_once(')')?;
        let mut numbers = behind_name.split_ascii_whitespace().skip(1).map(|number| number.parse().ok());
        Some(Self { parent: numbers.next()??, group: numbers.next()??, session: numbers.next()?? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_among_others() {
        let standing = Standing::read("42 (a) b (c)) S 7 42 6 34816 42 4194304 1 2");
        assert_eq!(standing, Some(Standing { parent: 7, group: 42, session: 6 }));
        assert_eq!(Standing::read("42 (cut) S 7"), None);
        assert_eq!(
            Standing::of("self").map(|own| own.parent),
            rustix::process::getppid().map(rustix::process::Pid::as_raw_pid)
        );
    }
}
