//! `mcp-governance-proxy`: becomes the `mcp-proxy` in its own directory, in the form that puts rules in front of a server.
//! It uses nothing of the library: a second program with all of that inside takes 20 MB and minutes to link.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// `governance::WORD` of the library.
const WORD: &str = "__governance";
/// `failure::exit::CANNOT_RUN` of the library.
const CANNOT_RUN: u8 = 3;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| OsString::from("mcp-governance-proxy"));
    let failure = match program() {
        Ok(program) => match Command::new(&program).arg0(name).arg(WORD).args(args).exec() {
            error if error.kind() == ErrorKind::NotFound => format!("`mcp-proxy` not found: no {program:?}"),
            error => format!("cannot start {program:?}: {error}"),
        },
        Err(error) => format!("cannot read the path of this program: {error}"),
    };
    let hint = "`mcp-governance-proxy` runs the `mcp-proxy` in its own directory; install both there";
    // With standard error closed, the exit code is all that can tell.
    let _ = writeln!(io::stderr(), "error: {failure}\n\nhint: {hint}");
    ExitCode::from(CANNOT_RUN)
}

/// The path of this program has every symbolic link resolved, so a link to it elsewhere finds `mcp-proxy` too.
fn program() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("mcp-proxy"))
}
