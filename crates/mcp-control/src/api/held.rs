//! Messages that wait for somebody, and what became of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::message::{Direction, Message};
use crate::api::question::Question;

pub use mcp_wire::OutcomeKind;

/// A message that is held.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Held {
    pub sequence: u64,
    pub conversation: u32,
    pub direction: Direction,
    /// The name of the breakpoint that holds it, or of the rule that asks about it, or `intercept`.
    pub why: String,
    /// A rule asks about it: it goes on only if somebody approves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Question>,
    /// RFC 3339, UTC.
    pub since: String,
    pub held_ms: u64,
    /// When it is let go if nobody decides, or when the time to answer a rule is up; absent if it waits
    /// for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_in_ms: Option<u64>,
    /// Whoever sent it no longer waits for an answer.
    #[serde(default)]
    pub given_up: bool,
    pub message: Message,
}

/// What is held, in the order of arrival.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HeldList {
    pub held: Vec<Held>,
}

/// What became of a held message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    pub sequence: u64,
    pub what: OutcomeKind,
    /// Who decided; empty if nobody did.
    #[serde(default)]
    pub by: String,
    pub held_ns: u64,
    /// It left otherwise than it came; `GET /v1/messages/{sequence}` has both.
    #[serde(default)]
    pub edited: bool,
}
