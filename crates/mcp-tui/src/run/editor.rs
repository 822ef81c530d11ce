//! `$EDITOR` on a text, and stopping to let the shell have the terminal.

use std::io::Write;
use std::process::Command;

use rustix::process::{Signal, getpid, kill_process};

/// Edits a text in the user's editor. `None` if nothing was changed.
pub fn edit(text: &str) -> Result<Option<String>, String> {
    let cannot = |error: std::io::Error| format!("cannot edit: {error}");
    let mut file = tempfile::Builder::new().prefix("mcp-proxy-").suffix(".json").tempfile().map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    file.flush().map_err(cannot)?;
    let words = words()?;
    let (program, args) = words.split_first().ok_or("$EDITOR is empty")?;
    let status = Command::new(program).args(args).arg(file.path()).status();
    let status = status.map_err(|error| format!("cannot start `{program}`: {error}; set $EDITOR"))?;
    if !status.success() {
        return Err(format!("`{program}` ended with {status}; nothing was changed"));
    }
    // Editors write a new file in the old one's place.
    let edited = std::fs::read_to_string(file.path()).map_err(cannot)?;
    Ok(Some(edited).filter(|edited| edited.trim_end() != text.trim_end()))
}

fn words() -> Result<Vec<String>, String> {
    let set = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|set| !set.is_empty()));
    let editor = set.unwrap_or_else(|| "vi".to_owned());
    shell_words::split(&editor).map_err(|error| format!("$EDITOR cannot be split into words: {error}"))
}

/// Stops this process as ctrl-z does; `fg` goes on behind this.
pub fn stop_here() {
    let _ = kill_process(getpid(), Signal::TSTP);
}
