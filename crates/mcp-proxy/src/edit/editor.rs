//! The user's editor.

use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, exit};

/// Opens a file in `$VISUAL` or `$EDITOR`, and returns when the person is done with it.
pub(crate) fn open(path: &Path) -> Result<(), Failure> {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    let words = shell_words::split(&editor).unwrap_or_default();
    let (program, args) = words.split_first().ok_or_else(|| Failure::usage("$EDITOR is empty"))?;
    let status = Command::new(program).args(args).arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(exit::CANNOT_RUN, format!("the editor `{editor}` ended with {status}"))
            .hint("nothing was sent")),
        Err(error) => Err(Failure::new(exit::CANNOT_RUN, format!("cannot start the editor `{editor}`: {error}"))
            .hint("set EDITOR to one that is there")),
    }
}
