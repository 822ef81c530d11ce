//! The rules that messages are judged by.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::question::Lasting;

pub use mcp_wire::{Permission, VerdictKind};

/// The rules in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Governed {
    /// The beginning of a hash of what they were read from.
    pub version: String,
    /// How many there are.
    pub rules: u64,
    /// What counts where no rule matches.
    pub default: Permission,
    /// What is denied whatever its arguments is not listed to clients.
    pub hide_denied: bool,
    /// Decisions are not written down: the audit log cannot be written.
    #[serde(default)]
    pub unwritten: bool,
}

/// The rules, and what people answered to those that ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Policy {
    pub version: String,
    /// Where they were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What they call the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub default: Permission,
    pub hide_denied: bool,
    /// A call whose decision cannot be written down does not go on.
    pub audit_required: bool,
    /// In order: the first that matches decides.
    pub rules: Vec<Rule>,
    /// Answers that count for more than once.
    pub answers: Vec<Answered>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    pub name: String,
    /// An expression of the filter language.
    pub filter: String,
    pub verdict: VerdictKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Of a rule that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<Permission>,
}

/// An answer that counts for more than once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Answered {
    pub rule: String,
    pub method: String,
    /// The tool, prompt or resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The server of a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub permission: Permission,
    /// Who said so.
    pub by: String,
    pub lasting: Lasting,
    /// There is a rule of this name that asks, and nobody said otherwise since.
    pub counts: bool,
}
