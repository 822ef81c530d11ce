//! What rules ask about held messages, and what somebody answers.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::policy::Permission;

pub use mcp_wire::Lasting;

/// What a rule asks about a held message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    /// The name of the rule.
    pub rule: String,
    /// What the rule says to whoever is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The tool, prompt or resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the tool does: `read`, `write`, `delete`, `execute` or `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// How long the rule waits for an answer, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What counts if somebody is there and does not answer in time. If nobody is, it is denied.
    pub on_timeout: Permission,
    /// Whoever uses the client is asked there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_client: bool,
}

/// Lets a message go on that a rule asks about.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    #[serde(default)]
    pub lasting: Lasting,
    /// What is sent instead, byte for byte; only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub raw: Option<Box<RawValue>>,
}

/// Does not let a message go on that a rule asks about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Deny {
    #[serde(default)]
    pub lasting: Lasting,
    /// What whoever sent it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub message: Option<String>,
}
