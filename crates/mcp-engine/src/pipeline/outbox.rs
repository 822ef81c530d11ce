//! The messages that leave, by where they go.

use mcp_wire::{Frame, FrameRef, Message};

use crate::envelope::Side;
use crate::policy::Judged;

/// What leaves, by where it goes. A judged message or a reply of our own; nothing else can.
#[derive(Debug, Default)]
pub struct Outbox {
    pub to_client: Vec<Outgoing>,
    pub to_server: Vec<Outgoing>,
    /// Messages that were parked: they leave later, as a [`Release`](super::Release), or not at all.
    pub parked: Vec<ParkedMark>,
    /// Messages that go nowhere, because they take back what was parked.
    pub withheld: usize,
}

/// What a parked message is known by.
#[derive(Clone, Copy, Debug)]
pub struct ParkedMark {
    pub sequence: u64,
    /// The sequence of the request that it answers.
    pub correlated: Option<u64>,
    /// It was refused, and what its sender is told comes free at once, asked for or not.
    pub is_refused: bool,
}

#[derive(Debug)]
pub enum Outgoing {
    Message(Judged),
    /// What we made ourselves.
    Reply(Frame, Composed),
}

/// How a message that we made is known.
#[derive(Clone, Copy, Debug)]
pub struct Composed {
    pub(super) sequence: u64,
}

impl Outbox {
    pub fn clear(&mut self) {
        self.to_client.clear();
        self.to_server.clear();
        self.parked.clear();
        self.withheld = 0;
    }

    pub(super) fn to(&mut self, side: Side) -> &mut Vec<Outgoing> {
        match side {
            Side::Client => &mut self.to_client,
            Side::Server => &mut self.to_server,
        }
    }
}

impl Outgoing {
    pub fn frame(&self) -> FrameRef<'_> {
        match self {
            Self::Message(judged) => judged.message().frame(),
            Self::Reply(frame, _) => frame.into(),
        }
    }

    /// The sequence of the request that this answers, as far as it came from a peer.
    pub fn correlated(&self) -> Option<u64> {
        match self {
            Self::Message(judged) => judged.message().correlated,
            Self::Reply(..) => None,
        }
    }

    /// What is said, with what is known of it already, unless we made it.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(judged) => Some(&judged.message().message),
            Self::Reply(..) => None,
        }
    }

    /// Under which it is recorded, and by which whatever is made of it says what it comes from.
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Message(judged) => judged.message().sequence,
            Self::Reply(_, composed) => composed.sequence,
        }
    }
}
