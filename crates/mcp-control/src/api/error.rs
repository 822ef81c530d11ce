//! What is said when something cannot be done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiError {
    pub error: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    pub code: Code,
    /// In plain words.
    pub message: String,
}

/// What went wrong, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request cannot be understood.
    BadRequest,
    /// The filter expression has a fault.
    BadFilter,
    /// No token, or not the right one.
    Unauthorized,
    /// From another user, another host name or another origin.
    Forbidden,
    /// There is no such path, message or breakpoint.
    NotFound,
    MethodNotAllowed,
    /// The message is not held, or not any more.
    NotHeld,
    /// Only a request can be answered.
    NotARequest,
    /// A rule asks about the message: it is approved or denied.
    IsAsked,
    /// No rule asks about the message: it is forwarded or dropped.
    NotAsked,
    /// The edited message is not JSON-RPC any more; `confirm` sends it nevertheless.
    NotJsonRpc,
    /// It is there already.
    Exists,
    TooLarge,
    /// The content type is not `application/json`.
    UnsupportedMediaType,
    /// It was understood, and cannot be done.
    NotPossible,
    /// The rules do not let this pass.
    Denied,
    /// The answer could not be written beside the rules, so nothing was decided.
    NotWritten,
    /// Somebody else has the lease.
    Locked,
    /// More than the proxy takes at once.
    TooMany,
    /// A fault of the proxy's own.
    Internal,
    /// The proxy is ending.
    Ending,
    /// A code that this version does not know.
    #[serde(other)]
    Other,
}
