//! A message that waits for somebody's decision.

use std::sync::Arc;
use std::time::Duration;

use mcp_store::Transport;
use mcp_wire::{Id, Message};
use tokio::time::Instant;

use super::Owner;
use crate::conversation::Speaker;
use crate::envelope::{Lane, ProxyMessage, Side};
use crate::policy::{Judged, Question, Ruling};

#[derive(Debug)]
pub(crate) struct Parked {
    pub content: Content,
    /// Who sends it, or whom it is for.
    pub speaker: Speaker,
    /// The server of a gateway that it is for, or from.
    pub server: Option<Arc<str>>,
    pub lane: KeptLane,
    pub since: Instant,
    /// When it must be decided, at the latest.
    pub deadline: Option<Instant>,
    /// The breakpoint that held it, or another reason.
    pub why: Arc<str>,
    pub owner: Owner,
    /// Whoever it is for no longer waits for it.
    pub given_up: bool,
    /// The id that it has, and the one that its receiver knows, where they differ.
    pub known_id: Option<(Id, Id)>,
    /// It is no longer what was recorded.
    pub is_changed: bool,
    /// What its client was asked about it, and has not answered.
    pub asking: Option<Asking>,
}

/// A request of ours to a client.
#[derive(Debug)]
pub(crate) struct Asking {
    pub id: Id,
    /// Under which it is recorded.
    pub sequence: u64,
}

/// What is parked. Only what was judged can go on.
#[derive(Debug)]
pub(crate) enum Content {
    Judged(Judged),
    /// A rule wants somebody asked first.
    Question(Box<Question>),
}

impl Content {
    pub(crate) fn message(&self) -> &ProxyMessage {
        match self {
            Self::Judged(judged) => judged.message(),
            Self::Question(question) => question.message(),
        }
    }
}

/// The way a parked message came, for what is recorded of it later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptLane {
    pub transport: Transport,
    pub exchange: u64,
    /// The client's conversation that a gateway passes it on for; 0 is none.
    pub behalf: u32,
}

impl From<Lane<'_>> for KeptLane {
    fn from(lane: Lane<'_>) -> Self {
        let behalf = lane.behalf.map_or(0, |behalf| behalf.conversation);
        Self { transport: lane.transport, exchange: lane.exchange, behalf }
    }
}

impl KeptLane {
    pub(crate) fn lane(self) -> Lane<'static> {
        Lane { transport: self.transport, exchange: self.exchange, ..Lane::PIPE }
    }
}

/// A parked message as watchers see it.
#[derive(Clone, Debug)]
pub struct Held {
    pub sequence: u64,
    /// Nanoseconds since 1970.
    pub since_ns: u64,
    pub held_for: Duration,
    /// Until it goes on by itself.
    pub left: Option<Duration>,
    pub from: Side,
    pub conversation: u32,
    /// The server of a gateway that the conversation is with, and the client's conversation that it is held
    /// for.
    pub upstream: Option<Arc<str>>,
    pub behalf: Option<u32>,
    pub transport: Transport,
    pub message: Message,
    pub correlated: Option<u64>,
    pub why: Arc<str>,
    pub owner: Owner,
    pub given_up: bool,
    /// The rule that wants somebody asked whether it may go on.
    pub asks: Option<Ruling>,
    /// Whoever uses the client is asked.
    pub in_client: bool,
}

impl Held {
    /// `message` as it is held since and until these times, because of `why`.
    pub(crate) fn of(
        message: &ProxyMessage,
        (since, deadline): (Instant, Option<Instant>),
        lane: KeptLane,
        why: Arc<str>,
    ) -> Self {
        Self {
            sequence: message.sequence,
            since_ns: message.time_ns,
            held_for: since.elapsed(),
            left: deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            from: message.from,
            conversation: message.conversation,
            upstream: None,
            behalf: Some(lane.behalf).filter(|behalf| *behalf > 0),
            transport: lane.transport,
            message: message.message.clone(),
            correlated: None,
            why,
            owner: Owner::Policy,
            given_up: false,
            asks: None,
            in_client: false,
        }
    }
}

/// Why nothing was decided about a message and it is parked no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was held as long as may be.
    Limit,
    /// The face that held it is gone.
    Detached,
    /// Nothing is held any more.
    Passthrough,
    /// The server ended.
    ServerGone,
    /// The client is gone.
    ClientGone,
    /// The proxy ends.
    Ending,
    FaceCame,
    /// A rule asks about it, and nobody was there to answer.
    NobodyThere,
}

impl Why {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "held as long as may be",
            Self::Detached => "whoever held it is gone",
            Self::Passthrough => "nothing is held any more",
            Self::ServerGone => "the server is gone",
            Self::ClientGone => "the client is gone",
            Self::Ending => "the proxy ends",
            Self::FaceCame => "a face is attached",
            Self::NobodyThere => "nobody is there to ask",
        }
    }
}

impl Parked {
    /// One that a rule is about.
    pub(crate) fn new(content: Content, speaker: &Speaker, lane: Lane<'_>) -> Self {
        let why = match &content {
            Content::Question(question) => question.ruling.name().into(),
            Content::Judged(_) => "".into(),
        };
        Self {
            content,
            speaker: speaker.clone(),
            server: None,
            lane: lane.into(),
            since: lane.since.unwrap_or_else(Instant::now),
            deadline: None,
            why,
            owner: Owner::Policy,
            given_up: false,
            known_id: None,
            is_changed: false,
            asking: None,
        }
    }

    pub(crate) fn message(&self) -> &ProxyMessage {
        self.content.message()
    }

    pub(crate) fn question(&self) -> Option<&Question> {
        match &self.content {
            Content::Question(question) => Some(question),
            Content::Judged(_) => None,
        }
    }

    pub(crate) fn held(&self) -> Held {
        Held {
            upstream: self.server.clone(),
            correlated: self.message().correlated,
            owner: self.owner,
            given_up: self.given_up,
            asks: self.question().map(|question| question.ruling.clone()),
            in_client: self.asking.is_some(),
            ..Held::of(self.message(), (self.since, self.deadline), self.lane, Arc::clone(&self.why))
        }
    }

    pub(crate) fn held_ns(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64
    }
}
