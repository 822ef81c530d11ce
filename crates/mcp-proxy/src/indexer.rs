//! The index follows a long recording while it is made, so that a search later finds it indexed. A
//! process of its own does it, at the lowest priority: the proxy neither waits for it nor fails with it,
//! and may end it at any moment, because what it wrote is whole or not there.
//!
//! Short recordings are left to whoever searches; indexing them takes no time worth a process.

use std::ffi::OsString;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_store::index::{self, Pace};
use mcp_store::segment::OnSynced;
use mcp_store::{Index, StateDir, StoreError};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::failure::exit;

/// The first word of the command line that makes the program an indexer.
pub(crate) const INDEX_WORD: &str = "__index";
/// Growth of a recording that is worth an indexer; a search adds less by itself in about a second.
const WORTH_BYTES: u64 = 16 * 1024 * 1024;

/// Follows the recordings of this process in the store.
pub(crate) fn follow(state: &StateDir) -> OnSynced {
    let follower = Mutex::new(Follower { state: state.clone(), growth: Growth::default(), indexer: None });
    Arc::new(move |len| follower.lock().unwrap_or_else(PoisonError::into_inner).grown(len))
}

struct Follower {
    state: StateDir,
    growth: Growth,
    indexer: Option<Indexer>,
}

impl Follower {
    fn grown(&mut self, len: u64) {
        self.growth.add(len);
        if self.growth.bytes < WORTH_BYTES || self.is_at_work() {
            return;
        }
        self.growth.bytes = 0;
        // Without an indexer, whoever searches indexes.
        self.indexer = start(&self.state).and_then(Indexer::reaped).ok();
    }

    fn is_at_work(&self) -> bool {
        self.indexer.as_ref().is_some_and(|indexer| indexer.child().is_some())
    }
}

/// An indexer's process until it has ended. A recording may rest for hours, so a thread reaps it and closes its pipe.
/// Dropping this ends the process: none outlives the recording.
struct Indexer(Arc<Mutex<Option<Child>>>);

impl Indexer {
    fn reaped(mut child: Child) -> std::io::Result<Self> {
        let pid = Pid::from_child(&child);
        let stdin = child.stdin.take();
        let indexer = Self(Arc::new(Mutex::new(Some(child))));
        let theirs = Self(Arc::clone(&indexer.0));
        std::thread::Builder::new().name("indexer-reaper".into()).stack_size(64 * 1024).spawn(move || {
            // The process stays a zombie, and its id its own, until the lock is held.
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            drop(stdin);
            drop(theirs);
        })?;
        Ok(indexer)
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How much was recorded since the last indexer began.
#[derive(Default)]
struct Growth {
    len: u64,
    bytes: u64,
}

impl Growth {
    /// A recording that is shorter than before is the next one.
    fn add(&mut self, len: u64) {
        self.bytes += if len < self.len { len } else { len - self.len };
        self.len = len;
    }
}

fn start(state: &StateDir) -> std::io::Result<Child> {
    let mut command = Command::new(mcp_transport::own_program()?);
    command.arg(INDEX_WORD).arg(state.root());
    // Its standard input says, by its end, that the proxy is gone.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// `mcp-proxy __index STATE_DIR`: brings the index up to date, and ends.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(state) = args.next().and_then(|dir| StateDir::find(Some(Path::new(&dir)))) else {
        return ExitCode::from(exit::USAGE);
    };
    mcp_transport::stand_back();
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        end_at_once();
    });
    match bring_up_to_date(&state) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(exit::CANNOT_RUN),
    }
}

fn bring_up_to_date(state: &StateDir) -> Result<(), StoreError> {
    let recordings = index::recordings(state)?;
    let _ = Index::open(state)?.update(&recordings, Pace::Background, &mut |_| ControlFlow::Continue(()))?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "it writes nothing but the index, in transactions")]
fn end_at_once() {
    std::process::exit(0);
}

#[cfg(test)]
mod tests {
    use super::Growth;

    #[test]
    fn growth_goes_on_from_one_recording_to_the_next() {
        let mut growth = Growth::default();
        for len in [100, 100, 150, 20, 30] {
            growth.add(len);
        }
        assert_eq!((growth.bytes, growth.len), (180, 30));
    }
}
