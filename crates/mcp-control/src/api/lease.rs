//! The control lease: any number of faces may watch, one at a time may act.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who has the lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    pub holder: String,
    /// RFC 3339, UTC.
    pub since: String,
    /// An event stream of the holder is open. If none is for three seconds, the lease lapses.
    pub present: bool,
}

/// The lease as it is now, if anybody has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// What others see, such as `tui (ann)`.
    #[schema(min_length = 1, max_length = 64)]
    pub holder: String,
    /// Take it from whoever has it.
    #[serde(default)]
    pub take: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseGrant {
    /// Give this as `lease` to act, and to the event stream by which you are present.
    pub token: String,
    pub holder: String,
    pub since: String,
    /// Who had it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<String>,
}
