//! A message with its envelope. The names are those of the session file and of `inspect --json`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

pub use mcp_wire::{Direction, MessageKind, Transport};

/// One message, or an event that stands where a message should have been.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// A UUID, derived from the session and the sequence.
    pub id: String,
    /// From 1, one counter over both directions and the whole run.
    pub sequence: u64,
    /// RFC 3339, UTC.
    pub timestamp: String,
    pub direction: Direction,
    /// The side it arrived on.
    pub transport: Transport,
    pub kind: MessageKind,
    /// Of an answer, the method of the request that it answers.
    #[serde(default)]
    pub method: Option<String>,
    /// The tool, prompt or resource.
    #[serde(default)]
    pub tool: Option<String>,
    /// Of a call of a proxy tool, what it does in a few words: `call files__read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<String>,
    /// The JSON-RPC id as it was spelled.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub jsonrpc_id: Option<Box<RawValue>>,
    /// The sequence of the request that this answers.
    #[serde(default)]
    pub answers: Option<u64>,
    /// The sequence of the first request of the operation, and which round of it this is.
    #[serde(default)]
    pub operation: Option<u64>,
    #[serde(default)]
    pub round: Option<u32>,
    /// `ok`, `err` or `input_required`, of an answer.
    #[serde(default)]
    pub status: Option<String>,
    /// Of a JSON-RPC error.
    #[serde(default)]
    pub code: Option<i64>,
    #[serde(default)]
    pub error: Option<String>,
    /// From the request to this answer.
    #[serde(default)]
    pub duration_ns: Option<u64>,
    /// In bytes.
    pub size: u64,
    #[serde(default)]
    pub server: Option<String>,
    /// What the client of this conversation calls itself.
    #[serde(default)]
    pub client: Option<String>,
    /// The revision that is spoken, as a date.
    #[serde(default)]
    pub revision: Option<String>,
    pub conversation: u32,
    /// The server of a gateway that its conversation is with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The sequence of the message of another conversation that a gateway made this one of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The id of the request that this answers.
    #[serde(default)]
    pub correlated_id: Option<String>,
    /// It left otherwise than it came.
    #[serde(default)]
    pub modified: bool,
    #[serde(default)]
    pub noise: bool,
    /// The HTTP exchange it came in, and the id of the SSE event that carried it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// `proxy` if the proxy made it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What happened instead of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Why it can be read two ways, if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<String>,
    /// What rules decided about it: `allow`, `deny`, `ask` or `observe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The rule that did; absent if none matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The class of operation that was judged: `read`, `write`, `delete`, `execute` or `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// Where the audit says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_id: Option<String>,
    /// How long somebody held it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ns: Option<u64>,
    /// What became of a held message: see `OutcomeKind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The message verbatim; null if it is not JSON.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub raw: Option<Box<RawValue>>,
    /// What it was before it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub original_raw: Option<Box<RawValue>>,
    /// Its bytes, where `raw` cannot hold them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_base64: Option<String>,
    /// It is too long for a list; `GET /v1/messages/{sequence}` has it whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw_omitted: bool,
}
