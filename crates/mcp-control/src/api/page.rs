//! History, a page at a time.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::api::message::Message;

/// Which page. Neither `before` nor `after`: the newest messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Messages with a smaller sequence, the nearest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Messages with a larger sequence, the nearest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// At most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// Only those that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 16384)]
    pub filter: Option<String>,
}

/// Messages in the order of their sequences. A page may be shorter than asked for, even empty, where
/// messages are large or few match; `older` and `newer` say where to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Page {
    pub messages: Vec<Message>,
    /// Ask with this as `before` for what came earlier; absent if there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older: Option<u64>,
    /// Ask with this as `after` for what comes later, now or when there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer: Option<u64>,
    /// The newest sequence there is, whether or not it matches.
    pub last_sequence: u64,
}
