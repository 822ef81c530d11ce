//! The servers of a gateway: how each is, and how its calls went.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::message::Transport;

pub use mcp_wire::{Era, ServerState};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Servers {
    /// In the order in which lists are merged.
    pub servers: Vec<Server>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Server {
    pub id: String,
    pub state: ServerState,
    /// What is spoken with it, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
    pub transport: Transport,
    /// How many it offers, once it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<u64>,
    /// Processes of it, or connections to its address.
    pub instances: u64,
    /// Who is connected to those.
    pub clients: u64,
    /// Calls that it has not answered yet.
    pub in_flight: u64,
    /// Of the whole run.
    pub restarts: u64,
    /// Until it is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The reason that it is not ready or was not at the last look, or that its lists are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The end of what it wrote to its standard error before it last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    pub calls: ServerCalls,
}

/// What clients asked of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerCalls {
    /// Of the whole run.
    pub total: u64,
    pub errors: u64,
    pub per_minute: u64,
    /// The mean of each ten seconds of the last five minutes, oldest first; null where nothing was answered.
    pub latency_us: Vec<Option<u64>>,
    /// The slowest of them.
    pub longest_us: u64,
}

impl ServerCalls {
    /// The newest mean.
    pub fn latest_us(&self) -> Option<u64> {
        self.latency_us.iter().rev().find_map(|mean| *mean)
    }
}
