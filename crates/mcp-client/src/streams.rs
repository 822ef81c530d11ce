//! The two directions of a connection, and how they come about.

use std::process::Stdio;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use crate::error::ClientError;

pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub(crate) struct Streams {
    pub reader: Reader,
    pub writer: Writer,
    /// Ended when this is dropped.
    pub child: Option<Child>,
}

/// Where a connection comes from.
pub(crate) enum Connector {
    /// Given ready made, for once.
    Ready(Mutex<Option<Streams>>),
    /// A process, as often as needed.
    Command(Mutex<Command>),
}

impl Connector {
    pub(crate) fn ready(reader: Reader, writer: Writer) -> Self {
        Self::Ready(Mutex::new(Some(Streams { reader, writer, child: None })))
    }

    pub(crate) fn command(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        Self::Command(Mutex::new(command))
    }

    /// Whether a connection that broke can be had anew.
    pub(crate) fn can_connect_again(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    pub(crate) fn connect(&self) -> Result<Streams, ClientError> {
        match self {
            Self::Ready(streams) => lock(streams).take().ok_or(ClientError::Over),
            Self::Command(command) => {
                let mut command = lock(command);
                let shown = command.as_std().get_program().to_string_lossy().into_owned();
                let mut child = command.spawn().map_err(|source| ClientError::Spawn { command: shown, source })?;
                let (Some(stdout), Some(stdin)) = (child.stdout.take(), child.stdin.take()) else {
                    return Err(ClientError::Over);
                };
                Ok(Streams { reader: Box::new(stdout), writer: Box::new(stdin), child: Some(child) })
            }
        }
    }
}

/// What a panic elsewhere left behind is as good as before: nothing here is changed in steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
