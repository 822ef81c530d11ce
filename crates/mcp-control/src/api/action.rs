//! What can be done to messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Sends a held message on with other content.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Modify {
    /// What is sent instead, byte for byte.
    #[schema(value_type = serde_json::Value)]
    pub raw: Box<RawValue>,
    /// Leave HTTP headers as they came even if they no longer agree with the message.
    #[serde(default)]
    pub raw_headers: bool,
    /// Send it even if it is no JSON-RPC message any more.
    #[serde(default)]
    pub confirm: bool,
}

/// Does not send a held message on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// Tell whoever sent it, if it waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorAnswer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorAnswer {
    pub code: i64,
    #[schema(max_length = 4096)]
    pub message: String,
}

/// Answers a held request in its peer's place: exactly one of the three.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The result of a successful answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorAnswer>,
    /// A whole JSON-RPC response; its id is put right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub raw: Option<Box<RawValue>>,
}

/// Sends a client's message to the server again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// What is sent instead of what was sent then; its id is put right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub raw: Option<Box<RawValue>>,
}

/// The message that a replay sent; its answer says that it answers this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replayed {
    pub sequence: u64,
}

/// A mark and a note on a message; absent ones are taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub mark: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub note: Option<String>,
}

/// Notes about the session; the named ones are set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Notes(pub BTreeMap<String, String>);

/// Writes what was recorded so far to a session file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Save {
    /// An absolute path.
    #[schema(max_length = 4096)]
    pub file: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Saved {
    /// One file for each session of the run.
    pub files: Vec<String>,
    pub messages: u64,
}

/// How many held messages went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Released {
    pub released: u64,
}
