//! The one place, before anything is routed, where clients are known, allowed and limited. Who decides
//! stands behind two traits, so that another service can in place of what the settings say.
//!
//! Where the token comes from is the transport's to know: a header, or the message itself
//! ([`shown_in`]).

mod admission;
mod buckets;
mod principal;
mod shown;
mod tokens;

use std::fmt;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use mcp_wire::reply::Refusal;

pub use mcp_filter::Glob;

pub use admission::Admission;
pub use buckets::Buckets;
pub use principal::{ANONYMOUS, Principal};
pub use shown::{Shown, Unclear, may_show, shown_in, without_token};
pub use tokens::{BadTokens, SHARED, TOKEN_BYTES_MAX, Tokens};

/// Tells who a client is by what it shows.
pub trait Authority {
    /// Whether anything has to be shown at all.
    fn asks_for_token(&self) -> bool;

    fn admit(&self, shown: Option<&[u8]>) -> Result<Rc<Principal>, Unauthorized>;
}

/// Tells whether somebody may ask once more.
pub trait Limiter {
    /// Counts one request, which concerns this server and its tool of this name as far as it is about any.
    /// One that is refused counts nowhere.
    fn take(&self, who: &Principal, server: Option<&str>, tool: Option<&str>) -> Result<(), Limited>;
}

/// No token was shown, or a wrong one, or that of somebody else: whoever asks is not told which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unauthorized")]
pub struct Unauthorized;

impl From<Unauthorized> for Refusal {
    fn from(_: Unauthorized) -> Self {
        Self::Unauthorized
    }
}

/// It was asked too often.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {what}")]
pub struct Limited {
    /// When the same request will be let through, if nothing else is asked before.
    pub retry_after: Duration,
    /// Which limit it was, as in `60 a minute for server "files"`.
    pub what: String,
}

impl From<Limited> for Refusal {
    fn from(limited: Limited) -> Self {
        // Who comes a part of a millisecond early is refused again.
        let retry_after_ms = limited.retry_after.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX);
        Self::RateLimited { retry_after_ms, what: limited.what }
    }
}

/// What there is to set.
#[derive(Clone, Default)]
pub struct EntranceSettings {
    pub tokens: Vec<NamedToken>,
    /// One token for everybody who has none of their own. Whoever shows it is called [`SHARED`].
    pub auth_token: Option<String>,
    /// For each token, and for everybody together where there are none. As many may come at once, after a
    /// minute without any.
    pub rate_limit_per_minute: Option<NonZeroU32>,
    /// The same for what concerns a server.
    pub servers: Vec<ServerLimit>,
    /// The same for calls of a tool.
    pub tools: Vec<ToolLimit>,
}

#[derive(Clone)]
pub struct NamedToken {
    pub name: String,
    pub token: String,
    /// Patterns of server ids. Whoever shows the token sees no other server.
    pub servers: Option<Vec<String>>,
    /// Patterns of the names that servers give their tools, or `<server>__<tool>`. What servers have besides
    /// tools is not concerned.
    pub tools: Option<Vec<String>>,
    /// In place of the limit for everybody.
    pub rate_limit_per_minute: Option<NonZeroU32>,
}

#[derive(Clone, Debug)]
pub struct ServerLimit {
    pub server: String,
    pub per_minute: NonZeroU32,
}

#[derive(Clone, Debug)]
pub struct ToolLimit {
    pub server: String,
    /// A pattern of the names that the server gives its tools. Those that match share the limit.
    pub tool: String,
    pub per_minute: NonZeroU32,
}

impl fmt::Debug for EntranceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, auth_token, rate_limit_per_minute, servers, tools } = self;
        let auth_token = auth_token.as_ref().map(|_| "***");
        f.debug_struct("EntranceSettings")
            .field("tokens", tokens)
            .field("auth_token", &auth_token)
            .field("rate_limit_per_minute", rate_limit_per_minute)
            .field("servers", servers)
            .field("tools", tools)
            .finish()
    }
}

impl fmt::Debug for NamedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, token: _, servers, tools, rate_limit_per_minute: _ } = self;
        let mut shown = f.debug_struct("NamedToken");
        shown.field("name", name).field("servers", servers).field("tools", tools).finish_non_exhaustive()
    }
}

/// The two together.
pub struct Entrance {
    authority: Box<dyn Authority>,
    limiter: Box<dyn Limiter>,
}

impl Entrance {
    /// As the settings say.
    pub fn new(settings: &EntranceSettings) -> Result<Self, BadTokens> {
        let tokens = Tokens::new(settings)?;
        let buckets = Buckets::new(settings, tokens.names());
        Ok(Self::of(tokens, buckets))
    }

    /// With others to decide.
    pub fn of(authority: impl Authority + 'static, limiter: impl Limiter + 'static) -> Self {
        Self { authority: Box::new(authority), limiter: Box::new(limiter) }
    }

    /// Whether clients have to show anything.
    pub fn asks_for_token(&self) -> bool {
        self.authority.asks_for_token()
    }

    /// Who shows this.
    pub fn admit(&self, shown: Option<&[u8]>) -> Result<Rc<Principal>, Unauthorized> {
        self.authority.admit(shown)
    }

    /// Whether they may ask once more. Counts it if so.
    pub fn take(&self, who: &Principal, server: Option<&str>, tool: Option<&str>) -> Result<(), Limited> {
        self.limiter.take(who, server, tool)
    }
}

impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
