//! A running proxy.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::breakpoint::Owner;
use crate::api::lease::Lease;
use crate::api::message::Transport;
use crate::api::policy::Governed;
use crate::api::snapshot::Mode;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Instance {
    /// The id of the run's first session.
    pub id: String,
    /// Of mcp-proxy.
    pub version: String,
    pub pid: u32,
    /// What the user calls the server.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub server_command: Option<String>,
    #[serde(default)]
    pub server_url: Option<String>,
    /// The server side.
    pub transport: Transport,
    /// Where clients connect: `stdio` or an address.
    pub listen: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// The session that is being recorded; absent if nothing is.
    #[serde(default)]
    pub session: Option<String>,
    /// Clients connected now. HTTP clients of a relay count until they end their session or were silent for 30 minutes.
    #[serde(default)]
    pub clients: u64,
    /// Servers: those of a gateway, else 1.
    #[serde(default)]
    pub servers: u64,
    /// How many messages have passed.
    pub messages: u64,
    pub held: u64,
    /// How many of those a rule asks about.
    #[serde(default)]
    pub questions: u64,
    /// The rules that messages are judged by; absent if they are not.
    #[serde(default)]
    pub policy: Option<Governed>,
    pub mode: Mode,
    /// Who set the mode, which decides whether it holds while no face has the lease.
    pub mode_owner: Owner,
    /// A face has the lease.
    pub has_face: bool,
    #[serde(default)]
    pub lease: Option<Lease>,
    /// How many breakpoints there are, and how many of them hold as things stand: the others wait for a
    /// face that has the lease.
    pub breakpoints: u64,
    pub breakpoints_that_hold: u64,
    /// How many event streams are open.
    pub faces: u32,
    /// Who has spoken, the newest last, and no more than a screen of them.
    pub conversations: Vec<Speaker>,
}

impl Instance {
    /// Whether every message is held, as things stand.
    pub fn holds_all(&self) -> bool {
        self.mode == Mode::Intercept && (self.has_face || self.mode_owner == Owner::Command)
    }
}

/// The client of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Speaker {
    pub conversation: u32,
    /// What it calls itself.
    #[serde(default)]
    pub client: Option<String>,
    /// The revision that is spoken, as a date, once somebody said so.
    #[serde(default)]
    pub revision: Option<String>,
}
