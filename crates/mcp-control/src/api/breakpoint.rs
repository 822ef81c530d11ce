//! Breakpoints: named filters that hold what they match.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use mcp_wire::Owner;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breakpoint {
    pub name: String,
    /// An expression of the filter language.
    pub filter: String,
    pub owner: Owner,
    /// How many messages it has held.
    pub hits: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breakpoints {
    pub breakpoints: Vec<Breakpoint>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBreakpoint {
    /// Chosen for you if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub name: Option<String>,
    #[schema(max_length = 16384)]
    pub filter: String,
}

/// The name of something that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Named {
    pub name: String,
}
