//! A message with what the proxy knows about it.

use mcp_wire::{Ending, FrameRef, Id, Message, Transport};
use tokio::time::Instant;

use crate::conversation::{Conversation, Speaker};

pub use mcp_wire::Side;

/// The way a message came in.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// The transport of the side it came from.
    pub transport: Transport,
    /// The HTTP exchange that carried it; 0 where there is none.
    pub exchange: u64,
    /// The id of the SSE event it came in, if that had one.
    pub event_id: &'a [u8],
    /// That is the id we give it if it leaves now; if it is parked, it will have another.
    pub is_foretold: bool,
    /// When it came, if that was not just now: it may have waited behind another.
    pub since: Option<Instant>,
    /// The request that this exchange was opened for. Clients that give every request the same id
    /// are told apart by it.
    pub asked: Option<&'a Asked>,
    /// Whoever sent it can be asked something by the way it came, before it is answered.
    pub can_ask: bool,
    /// Whom a gateway passes it on for, and what it made it of.
    pub behalf: Option<Behalf<'a>>,
}

/// What a message of a gateway comes from: one of another conversation.
#[derive(Clone, Copy, Debug)]
pub struct Behalf<'a> {
    /// The sequence of the message that this one was made of; 0 if there is none.
    pub parent: u64,
    /// Who is judged by it, and named where it is written down.
    pub speaker: &'a Speaker,
    /// The client's conversation.
    pub conversation: u32,
}

/// Which server of a gateway a conversation is with, in the order in which they were first met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upstream(u32);

impl Upstream {
    /// There is no other, or it is not said yet which.
    pub const ONLY: Self = Self(0);

    /// The server that was met after so many others.
    pub(crate) fn nth(others: usize) -> Self {
        Self(others as u32 + 1)
    }

    pub(crate) fn encode(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    pub(crate) fn decode(number: u32) -> Self {
        Self(number)
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl<'a> Lane<'a> {
    /// A pipe: nothing but the messages themselves.
    pub const PIPE: Lane<'static> = Lane {
        transport: Transport::Stdio,
        exchange: 0,
        event_id: b"",
        is_foretold: false,
        since: None,
        asked: None,
        can_ask: true,
        behalf: None,
    };

    /// The message that one was made of. Where it answers a request, that request has said so.
    #[inline]
    pub(crate) fn parent_of(&self, message: &ProxyMessage) -> Option<u64> {
        let behalf = self.behalf.filter(|_| message.correlated.is_none())?;
        (behalf.parent > 0).then_some(behalf.parent)
    }

    /// Who speaks by a message that came this way, or hears it.
    #[inline]
    pub(crate) fn speaker<'s>(&self, conversation: &'s Conversation) -> &'s Speaker
    where
        'a: 's,
    {
        self.behalf.map_or(conversation.speaker(), |behalf| behalf.speaker)
    }
}

/// A request that waits for its answer in an exchange of its own.
#[derive(Clone, Debug)]
pub struct Asked {
    pub id: Id,
    pub sequence: u64,
}

/// A request in an exchange of its own that its conversation answers for, because the server will not.
#[derive(Clone, Debug)]
pub struct Lent {
    pub asked: Asked,
    /// How the answer will reach the client.
    pub exchange: u64,
    pub event_id: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct ProxyMessage {
    /// One counter over both directions, from 1.
    pub sequence: u64,
    /// Nanoseconds since 1970; never goes back within a run.
    pub time_ns: u64,
    pub from: Side,
    /// The client's exchange with the proxy that it belongs to, or a gateway's with one of its servers.
    pub conversation: u32,
    pub upstream: Upstream,
    pub message: Message,
    pub ending: Ending,
    pub bom: bool,
    /// The sequence of the request that this answers.
    pub correlated: Option<u64>,
}

impl ProxyMessage {
    /// Its conversation, and the server that this is with.
    pub(crate) fn place(&self) -> (u32, Upstream) {
        (self.conversation, self.upstream)
    }

    /// The message as framing will put it on the wire.
    pub fn frame(&self) -> FrameRef<'_> {
        FrameRef { bytes: self.message.bytes(), ending: self.ending, bom: self.bom }
    }
}
