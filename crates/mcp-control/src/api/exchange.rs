//! The HTTP exchange that a message came in: what was said beside it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One request and its answer, as they were recorded: secrets are masked. Any part may be absent that is
/// yet to come or could not be written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Exchange {
    /// Which it is; `exchange` of a message. From 1 over the whole run.
    pub number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The path, with the query if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Headers of the request, in the order in which they came.
    pub request: Vec<Header>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Headers of the answer, in the order in which they came.
    pub response: Vec<Header>,
    /// Of the SSE event that carried the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// When the request came, when the answer began and when all was over: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// How it ended, if not as it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Header {
    pub name: String,
    pub value: String,
}
