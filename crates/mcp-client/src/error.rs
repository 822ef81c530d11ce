//! Why nothing came of a request, for callers to act on.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use mcp_proxy_tool::unwrap::NotNative;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The error that a server answered with.
#[derive(Clone, Debug, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
    pub data: Option<Box<RawValue>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot start `{command}`")]
    Spawn {
        command: String,
        #[source]
        source: io::Error,
    },
    /// The streams were given once, and are used up.
    #[error("the connection to the server is over")]
    Over,
    /// The server knows neither of the two ways to begin.
    #[error("the server did not introduce itself: {0}")]
    NotOpened(Box<ClientError>),
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// A proxy tool failed where a native method would have answered with an error.
    #[error("{0}")]
    Refused(String),
    #[error("no answer to {method} within {} s", after.as_secs_f32())]
    Timeout { method: String, after: Duration },
    #[error("the server hung up before it answered {method}")]
    HungUp { method: String },
    #[error("the answer to {method} is larger than the limit of {limit} bytes")]
    TooLarge { method: String, limit: usize },
    #[error("the answer to {method} is not what the protocol says: {what}")]
    Unexpected { method: String, what: Cow<'static, str> },
    /// Each page of a list led to another.
    #[error("{method} has more pages than anybody can want")]
    Endless { method: &'static str },
    /// The server wants to be answered first, again and again.
    #[error("the server asked {rounds} times for something before it answered {method}")]
    AskedTooOften { method: String, rounds: usize },
    #[error("the server asks for {question} before it answers, and nobody can give that")]
    Unanswered { question: String },
    #[error("the server has no proxy tool")]
    NoProxyTool,
    #[error("the server has no {kind} `{path}`")]
    NoSuch { kind: &'static str, path: String },
}

impl ClientError {
    /// The error that the server answered with, if it did.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Rpc(error) => Some(error),
            Self::NotOpened(inner) => inner.rpc(),
            _ => None,
        }
    }

    fn unexpected_of_tool(what: Cow<'static, str>) -> Self {
        Self::Unexpected { method: "the call of the proxy tool".into(), what }
    }

    /// Whether the connection ended, rather than one request.
    pub fn is_hang_up(&self) -> bool {
        match self {
            Self::HungUp { .. } | Self::Over => true,
            Self::NotOpened(inner) => inner.is_hang_up(),
            _ => false,
        }
    }
}

impl From<NotNative> for ClientError {
    fn from(not: NotNative) -> Self {
        match not {
            NotNative::Failed(text) => Self::Refused(text),
            NotNative::Unexpected(what) => Self::unexpected_of_tool(what.into()),
            NotNative::Invalid(what) => Self::unexpected_of_tool(what.into()),
        }
    }
}
