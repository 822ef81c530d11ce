//! Whether a program is there to be started, for whoever says so before it is.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mcp_transport::child::ServerCommand;
use mcp_transport::connect::ServerTarget;

use super::ServerSettings;
use mcp_wire::visible::visible;
use rustix::fs::{Access, access};

/// Why the program of an enabled server cannot be started, and what helps.
pub fn fault(server: &ServerSettings) -> Option<(String, &'static str)> {
    let ServerTarget::Command { command, .. } = &server.target else { return None };
    let error = check(command).err().filter(|_| server.enabled)?;
    let name = visible(&command.program.to_string_lossy()).to_string();
    let (what, help) = match error.kind() {
        ErrorKind::NotFound if name.contains(' ') => ("does not exist", "its arguments belong into `args`"),
        ErrorKind::NotFound if name.contains('/') => ("does not exist", "the path counts from `cwd`"),
        ErrorKind::NotFound => ("is not on PATH", "install it, or give its full path"),
        ErrorKind::PermissionDenied => ("cannot be executed", "`chmod +x` makes a file a program"),
        _ => ("cannot be looked up", "give its full path"),
    };
    Some((format!("the program `{name}` {what}"), help))
}

/// Looks where the system would: at a path from where the command starts, for a name in its `PATH`.
pub fn check(command: &ServerCommand) -> io::Result<()> {
    let program = Path::new(&command.program);
    if command.program.as_bytes().contains(&b'/') {
        return check_file(&from(command.cwd.as_deref(), program));
    }
    let given = command.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    // Without one, the system has a list of its own; what is in that is found when it is started.
    let Some(path) = given.or_else(|| std::env::var_os("PATH").filter(|_| !command.env_only)) else { return Ok(()) };
    let mut why = io::Error::from(ErrorKind::NotFound);
    for dir in std::env::split_paths(&path) {
        match check_file(&from(command.cwd.as_deref(), &dir).join(program)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => why = error,
            Err(_) => {}
        }
    }
    Err(why)
}

fn from(start: Option<&Path>, path: &Path) -> PathBuf {
    start.unwrap_or_else(|| Path::new(OsStr::new(""))).join(path)
}

fn check_file(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(access(path, Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_program(program: &str, path: Option<&str>, expected: Result<(), ErrorKind>) {
        let env = path.map(|path| ("PATH".into(), path.into())).into_iter().collect();
        let command = ServerCommand { program: program.into(), env, ..ServerCommand::default() };
        assert_eq!(check(&command).map_err(|error| error.kind()), expected, "{program} in {path:?}");
    }

    #[test]
    fn programs_are_found_where_the_system_finds_them() {
        check_program("sh", None, Ok(()));
        check_program("/bin/sh", None, Ok(()));
        check_program("sh", Some("/no/such/place:/bin"), Ok(()));
        check_program("sh", Some("/no/such/place"), Err(ErrorKind::NotFound));
        check_program("no-such-program", None, Err(ErrorKind::NotFound));
        check_program("/no/such/program", None, Err(ErrorKind::NotFound));
        check_program("/bin", None, Err(ErrorKind::PermissionDenied));
        check_program("/etc/passwd", None, Err(ErrorKind::PermissionDenied));
    }
}
