//! Everything about an instance but its messages.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::breakpoint::{Breakpoint, Owner};
use crate::api::held::Held;
use crate::api::instance::Instance;
use crate::api::lease::Lease;

pub use mcp_wire::{Mode, OnDetach};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeChange {
    pub mode: Mode,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    pub instance: Instance,
    pub mode: Mode,
    /// Who set the mode, which decides whether it holds while no face has the lease.
    pub mode_owner: Owner,
    /// A face has the lease.
    pub has_face: bool,
    pub breakpoints: Vec<Breakpoint>,
    pub held: Vec<Held>,
    #[serde(default)]
    pub lease: Option<Lease>,
    /// A hold ends after this; absent if it may last for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_limit_ms: Option<u64>,
    pub on_detach: OnDetach,
    /// How many event streams are open.
    pub faces: u32,
    /// The newest sequence.
    pub last_sequence: u64,
}
