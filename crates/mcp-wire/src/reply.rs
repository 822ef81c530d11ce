//! Answers the proxy composes itself. This is the only file that spells an error code.

use bytes::Bytes;
use serde_json::json;

use crate::id::Id;

/// Why the proxy answers in a peer's place. Peers get a short text; commands, paths and what the
/// server printed stay in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server ended while calls were open.
    ServerGone { status: String },
    /// The message, or the answer to it, is larger than the limit.
    TooLarge { limit: usize },
    /// The recording failed and the user asked for nothing to pass unrecorded.
    NotRecorded,
}

impl Refusal {
    /// Outside the range that JSON-RPC and the protocol reserve.
    fn code(&self) -> i64 {
        match self {
            Self::ServerGone { .. } => 5030,
            Self::TooLarge { .. } => 5130,
            Self::NotRecorded => 5070,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::ServerGone { .. } => "server-gone",
            Self::TooLarge { .. } => "too-large",
            Self::NotRecorded => "not-recorded",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::ServerGone { status } => format!("the server ended before it answered ({status})"),
            Self::TooLarge { limit } => format!("the message is larger than the limit of {limit} bytes"),
            Self::NotRecorded => "the proxy cannot record this message and was told to pass nothing unrecorded".into(),
        }
    }
}

/// An error answer to the request `id`.
pub fn error(id: &Id, refusal: &Refusal) -> Bytes {
    let error = json!({
        "code": refusal.code(),
        "message": format!("mcp-proxy: {}", refusal.text()),
        "data": { "mcp-proxy/reason": refusal.reason() },
    });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Message};

    #[test]
    fn an_error_repeats_the_id_as_it_was() {
        for id in ["7", "\"7\"", "null", "1e3", "99999999999999999999"] {
            let reply = Message::new(error(&Id::from_json(id.as_bytes()), &Refusal::TooLarge { limit: 5 }));
            assert_eq!(reply.kind(), Kind::Error);
            assert_eq!(reply.slice(reply.peek().id.expect("it has an id")), id.as_bytes());
        }
    }
}
