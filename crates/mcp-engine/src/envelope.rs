//! A message with what the proxy knows about it.

use mcp_store::Direction;
use mcp_wire::{Ending, FrameRef, Message};

/// Where a message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The direction of what this side sends.
    pub fn direction(self) -> Direction {
        match self {
            Self::Client => Direction::ClientToServer,
            Self::Server => Direction::ServerToClient,
        }
    }
}

#[derive(Clone, Debug)]
pub struct ProxyMessage {
    /// One counter over both directions, from 1.
    pub sequence: u64,
    /// Nanoseconds since 1970; never goes back within a run.
    pub time_ns: u64,
    pub from: Side,
    pub message: Message,
    pub ending: Ending,
    pub bom: bool,
    /// The sequence of the request that this answers.
    pub correlated: Option<u64>,
}

impl ProxyMessage {
    /// The message as framing will put it on the wire.
    pub fn frame(&self) -> FrameRef<'_> {
        FrameRef { bytes: self.message.bytes(), ending: self.ending, bom: self.bom }
    }
}
