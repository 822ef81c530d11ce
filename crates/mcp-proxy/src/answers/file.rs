//! The file on a disk: written whole, by one at a time.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use mcp_engine::policy::ANSWERS_MAX;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;

use super::read::read;
use super::{AnswersError, Entry};
use crate::failure::quoted;

/// Bytes of the file of answers beside the rules; a full file takes no further answer.
const FILE_BYTES_MAX: usize = 4 << 20;
/// Wait for another proxy that writes answers to the same rules, which takes milliseconds, and the pause between
/// two attempts.
const TURN_FOR: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Serialize)]
struct Document {
    answers: Vec<Entry>,
}

/// Changes what the file says. It is whole at any time, and nobody's change is lost.
pub(super) fn change<R>(path: &Path, change: impl FnOnce(&mut Vec<Entry>) -> R) -> Result<R, AnswersError> {
    let fault = |source| AnswersError::Write { path: quoted(path), source };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let handle = File::open(dir).map_err(fault)?;
    take_turn(&handle).map_err(fault)?;
    let mut document = Document { answers: read(path).map_err(AnswersError::Read)? };
    let changed = change(&mut document.answers);
    let mut text = serde_json::to_vec_pretty(&document).expect("plain data always serialises");
    text.push(b'\n');
    if document.answers.len() > ANSWERS_MAX || text.len() > FILE_BYTES_MAX {
        return Err(AnswersError::Full { path: quoted(path) });
    }
    // Only its owner may read it, from the beginning on.
    let mut beside = tempfile::Builder::new().prefix(".mcp-answers-").tempfile_in(dir).map_err(fault)?;
    beside.write_all(&text).and_then(|()| beside.as_file().sync_all()).map_err(fault)?;
    beside.persist(path).map_err(|error| fault(error.error))?;
    let _ = handle.sync_all();
    Ok(changed)
}

/// One at a time: other proxies may have the same rules. The directory stands for the file, which is
/// another one each time.
fn take_turn(dir: &File) -> io::Result<()> {
    let asked = Instant::now();
    loop {
        match flock(dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if asked.elapsed() < TURN_FOR => std::thread::sleep(LOOK_AGAIN),
            Err(Errno::WOULDBLOCK) => return Err(io::Error::other("somebody else keeps writing there")),
            // A file system without locks: the file is whole all the same.
            Err(Errno::OPNOTSUPP | Errno::NOLCK) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
