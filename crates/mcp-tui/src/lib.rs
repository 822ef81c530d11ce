//! The terminal face: a client of the control API that draws. It knows instances by what they tell and
//! recordings by the [`library`] it is given, and nothing of the data path.

pub mod library;

use std::path::PathBuf;
use std::sync::Arc;

use mcp_control::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Auto,
    Light,
    Dark,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub color: Color,
    pub ascii: bool,
    pub theme: Theme,
    /// Watch only, never ask for the lease.
    pub read_only: bool,
    /// A file that maps keys.
    pub keys: Option<PathBuf>,
    /// How clients get in, one line each; shown while nobody has connected.
    pub doors: Vec<String>,
    pub who: String,
    /// This process carries the traffic.
    pub own_instance: bool,
}

#[derive(Clone, Debug)]
pub enum Source {
    Instance(Address),
    Recording(library::SessionRef),
}

/// How the user left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    Detached,
    EndWanted,
    InstanceEnded(String),
}

#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("there is nothing to draw here yet")]
    Nothing,
}

/// Waits for a line, `q` or `Q`, or for the end of the instance.
pub fn run(source: Source, _: Arc<dyn library::Library>, _: Options) -> Result<Left, TuiError> {
    let Source::Instance(Address::Socket(socket)) = source else { return Err(TuiError::Nothing) };
    while socket.exists() {
        let mut fds = [PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN)];
        let mut line = [0; 64];
        if poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 })).is_ok_and(|ready| ready > 0) {
            match rustix::io::read(rustix::stdio::stdin(), &mut line) {
                Ok(count) if line[..count].starts_with(b"Q") => return Ok(Left::EndWanted),
                Ok(count) if count > 0 && !line.starts_with(b"q") => {}
                _ => return Ok(Left::Detached),
            }
        }
    }
    Ok(Left::InstanceEnded("it has ended".into()))
}
