//! `$EDITOR` on a text. An editor that is suspended suspends this process as well, since the shell looks at
//! both as one job.

use std::io::Write;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};

use super::stop;

/// Edits a text in the user's editor. `None` if nothing was changed.
pub fn edit(text: &str) -> Result<Option<String>, String> {
    let cannot = |error: std::io::Error| format!("cannot edit: {error}");
    let mut file = tempfile::Builder::new().prefix("mcp-proxy-").suffix(".json").tempfile().map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    file.flush().map_err(cannot)?;
    let words = words()?;
    let (program, args) = words.split_first().ok_or("$EDITOR is empty")?;
    let editor = Command::new(program).args(args).arg(file.path()).spawn();
    let editor = editor.map_err(|error| format!("cannot start `{program}`: {error}; set $EDITOR"))?;
    let status = end_of(editor.id()).map_err(|error| cannot(error.into()))?;
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

/// Waits for the end of a child, and stops with it on the way.
fn end_of(id: u32) -> Result<WaitStatus, Errno> {
    let child = Pid::from_raw(id.cast_signed());
    loop {
        match waitpid(child, WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => stop::here(),
            Ok(Some((_, status))) => return Ok(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn words() -> Result<Vec<String>, String> {
    let set = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|set| !set.is_empty()));
    let editor = set.unwrap_or_else(|| "vi".to_owned());
    shell_words::split(&editor).map_err(|error| format!("$EDITOR cannot be split into words: {error}"))
}
