//! `$EDITOR` on a text. An editor that is suspended suspends this process as well, since the shell looks at
//! both as one job.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use signal_hook::{SigId, flag, low_level};
use tempfile::NamedTempFile;

use super::stop;

/// Between two looks at the editor and at the signals that end this process.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Time for an editor that was told to end; a slower one is left behind.
const GRACE: Duration = Duration::from_secs(1);

/// Leaves a text in a file that only its owner can read.
pub(super) fn keep(text: &str) -> Result<PathBuf, String> {
    let kept = file_with(text).and_then(|file| Ok(file.keep()?.1));
    kept.map_err(|error| format!("your edit cannot be kept: {error}"))
}

fn file_with(text: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("mcp-proxy-").suffix(".json").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Edits a text in the user's editor. `None` if nothing was changed.
pub(super) fn edit(text: &str) -> Result<Option<String>, String> {
    let cannot = |error: io::Error| format!("cannot edit: {error}");
    let file = file_with(text).map_err(cannot)?;
    let words = words()?;
    let (program, args) = words.split_first().ok_or("$EDITOR is empty")?;
    let editor = Command::new(program).args(args).arg(file.path()).spawn();
    let editor = editor.map_err(|error| format!("cannot start `{program}`: {error}; set $EDITOR"))?;
    let status = Endings::new().and_then(|endings| end_of(editor.id(), &endings)).map_err(cannot)?;
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => {}
        (Some(code), _) => return Err(format!("`{program}` ended with exit status {code}; nothing was changed")),
        (None, signal) => {
            return Err(format!("`{program}` ended by signal {}; nothing was changed", signal.unwrap_or_default()));
        }
    }
    // Editors write a new file in the old one's place.
    let edited = std::fs::read_to_string(file.path()).map_err(cannot)?;
    Ok(Some(edited).filter(|edited| edited.trim_end() != text.trim_end()))
}

/// Signals that end this process. The loop, which else hears them, waits for the editor. The keys of SIGINT and
/// SIGQUIT are the editor's meanwhile.
struct Endings {
    told: Arc<AtomicBool>,
    hooks: Vec<SigId>,
}

impl Endings {
    fn new() -> io::Result<Self> {
        let mut endings = Self { told: Arc::default(), hooks: Vec::new() };
        for signal in [Signal::TERM, Signal::HUP] {
            endings.hooks.push(flag::register(signal.as_raw(), Arc::clone(&endings.told))?);
        }
        Ok(endings)
    }

    fn are_told(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }
}

impl Drop for Endings {
    fn drop(&mut self) {
        for hook in self.hooks.drain(..) {
            low_level::unregister(hook);
        }
    }
}

/// Waits for the end of a child, and stops with it on the way. A signal that ends this process ends the child.
fn end_of(id: u32, endings: &Endings) -> io::Result<WaitStatus> {
    let child = Pid::from_raw(id.cast_signed()).ok_or(Errno::CHILD)?;
    let mut told_at = None;
    loop {
        match waitpid(Some(child), WaitOptions::UNTRACED | WaitOptions::NOHANG) {
            Ok(Some((_, status))) if status.stopped() => stop::here(),
            Ok(Some((_, status))) => return Ok(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        match told_at {
            None if endings.are_told() => {
                let _ = kill_process(child, Signal::TERM);
                told_at = Some(Instant::now());
            }
            Some(told_at) if told_at.elapsed() > GRACE => return Err(io::ErrorKind::TimedOut.into()),
            _ => std::thread::sleep(LOOK_EVERY),
        }
    }
}

fn words() -> Result<Vec<String>, String> {
    let set = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|set| !set.is_empty()));
    let editor = set.unwrap_or_else(|| "vi".to_owned());
    shell_words::split(&editor).map_err(|error| format!("$EDITOR cannot be split into words: {error}"))
}
