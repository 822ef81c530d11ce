//! Whose hand it is that acts.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Goes with every request that changes something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Hand {
    /// The lease of whoever acts. Without one, acting is possible while nobody has the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64)]
    pub lease: Option<String>,
    /// What to write down as the one who acted; the holder's name if a lease is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64)]
    pub by: Option<String>,
    /// Act even if somebody else has the lease. It stays theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take: bool,
}
