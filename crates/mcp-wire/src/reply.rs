//! Answers the proxy composes itself. This and what is below it are the only files that spell an error code.

mod failures;

use std::fmt;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::id::Id;
use crate::scan::{self, Kind};

pub use failures::{
    asks_its_caller, batch_too_large, failed_inside, internal_error, is_login, is_modern_code, is_own_failure,
    is_status, says_own_failure, status_said, upstream_status, without_details,
};

/// The code of a denial. Readers of recordings tell by it what the proxy refused because of a rule.
pub const DENIED: i64 = -32000;
/// The code of an error that a person answers with, unless they choose one.
pub const REFUSED_BY_HAND: i64 = 5080;
/// The code that stands for an HTTP status without a message.
const UPSTREAM_STATUS: i64 = 5021;
/// The code of an HTTP status that asks for a login.
const NEEDS_LOGIN: i64 = 5025;

/// Reasons that HTTP has statuses of its own for.
const UNAUTHORIZED: &str = "unauthorized";
const RATE_LIMITED: &str = "rate-limited";
/// The wording is settled; which limit it was stands in `data`.
const RATE_LIMIT_EXCEEDED: &str = "Rate limit exceeded";

/// Why the proxy answers in a peer's place. Peers get a short text; commands, paths and what the
/// server printed stay in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server ended while calls were open.
    ServerGone {
        status: String,
    },
    /// The message, or the answer to it, is larger than the limit.
    TooLarge {
        limit: usize,
    },
    /// The recording failed and the user asked for nothing to pass unrecorded.
    NotRecorded,
    /// What was decided about it could not be written down, and the user asked for nothing to pass so.
    NotAudited,
    /// No connection to the server came about.
    Unreachable {
        what: String,
    },
    /// The server answered, but not with a message.
    UpstreamStatus {
        status: u16,
    },
    /// The server's answer is not valid.
    UpstreamGarbled {
        /// Which of several servers.
        server: Option<String>,
        /// What is wrong with the answer, in a few words of our own.
        what: Option<String>,
    },
    /// The server answered with HTTP status 401 or 403.
    NeedsLogin {
        /// Its name, if it is one of several.
        server: Option<String>,
        status: u16,
    },
    /// The connection to the server broke with the answer outstanding.
    StreamLost,
    /// The server has forgotten the session that the request belongs to.
    SessionLost,
    /// A header that must repeat a part of the body does not.
    HeaderMismatch {
        what: String,
    },
    /// There are as many sessions as are allowed.
    Overloaded,
    /// What came is no request that could be passed on.
    BadRequest {
        what: String,
    },
    Unauthorized,
    /// A recording stands in for a peer, and has no answer to this.
    NotInRecording {
        what: String,
    },
    /// The same, of a method that it does not know at all.
    UnknownMethod {
        method: String,
    },
    /// Somebody held the message and did not let it go on.
    Dropped,
    /// Another message of its batch was refused.
    BatchRefused,
    /// Whoever asks did so more often than they may.
    RateLimited {
        retry_after_ms: u64,
        /// Which limit it was.
        what: String,
    },
    /// One of several servers is not there now.
    ServerUnavailable {
        server: String,
        /// As in "it is restarting".
        state: String,
        retry_after_ms: Option<u64>,
    },
    /// One of several servers is there, and did not answer in time.
    ServerTimeout {
        server: String,
        after_ms: u64,
    },
    /// Somebody has as much to do as they may have.
    Busy {
        what: String,
    },
    /// It has no form in the revision that the other side speaks.
    NotForThisRevision {
        what: String,
    },
    /// Whom it is meant for cannot be told, and is not guessed.
    Ambiguous {
        what: String,
    },
    /// Several servers have something of this name.
    Collides {
        name: String,
    },
    /// A cursor that was never given out, or no longer leads anywhere.
    BadCursor,
    /// The proxy ends, and nobody is left to answer.
    Ending,
    /// What a request says is not what its method wants.
    BadParams {
        what: String,
    },
    /// There is no such method here.
    NoSuchMethod {
        method: String,
    },
    /// A client cannot be asked this.
    CannotAsk {
        what: String,
    },
}

impl Refusal {
    /// The answer of the only server is no message.
    pub const GARBLED: Self = Self::UpstreamGarbled { server: None, what: None };

    /// Outside the range that JSON-RPC and the protocol reserve, except where they say what code this
    /// is.
    fn code(&self) -> i64 {
        match self {
            Self::ServerGone { .. } => 5030,
            Self::TooLarge { .. } => 5130,
            Self::NotRecorded => 5070,
            Self::NotAudited => 5071,
            Self::Unreachable { .. } => 5020,
            Self::UpstreamStatus { .. } => UPSTREAM_STATUS,
            Self::NeedsLogin { .. } => NEEDS_LOGIN,
            Self::UpstreamGarbled { .. } => 5022,
            Self::StreamLost => 5023,
            Self::SessionLost => 5024,
            Self::HeaderMismatch { .. } => -32020,
            Self::Overloaded => 5031,
            Self::BadRequest { .. } => -32600,
            Self::Unauthorized => -32001,
            Self::NotInRecording { .. } => 5050,
            Self::UnknownMethod { .. } => -32601,
            Self::Dropped => 5040,
            Self::BatchRefused => 5042,
            Self::RateLimited { .. } => -32002,
            Self::ServerUnavailable { .. } => 5032,
            Self::ServerTimeout { .. } => 5041,
            Self::Busy { .. } => 5031,
            Self::Ending => 5033,
            Self::NotForThisRevision { .. } => 5060,
            Self::Ambiguous { .. } => 5061,
            Self::Collides { .. } => 5062,
            Self::BadCursor | Self::BadParams { .. } => -32602,
            Self::NoSuchMethod { .. } | Self::CannotAsk { .. } => -32601,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::ServerGone { .. } => "server-gone",
            Self::TooLarge { .. } => "too-large",
            Self::NotRecorded => "not-recorded",
            Self::NotAudited => "not-audited",
            Self::Unreachable { .. } => "upstream-unreachable",
            Self::UpstreamStatus { .. } => "upstream-status",
            Self::NeedsLogin { .. } => "needs-login",
            Self::UpstreamGarbled { .. } => "upstream-garbled",
            Self::StreamLost => "stream-lost",
            Self::SessionLost => "session-lost",
            Self::HeaderMismatch { .. } => "header-mismatch",
            Self::Overloaded => "overloaded",
            Self::BadRequest { .. } => "bad-request",
            Self::Unauthorized => UNAUTHORIZED,
            Self::NotInRecording { .. } => "not-in-recording",
            Self::UnknownMethod { .. } => "method-not-found",
            Self::Dropped => "dropped",
            Self::BatchRefused => "batch-refused",
            Self::RateLimited { .. } => RATE_LIMITED,
            Self::ServerUnavailable { .. } => "server-unavailable",
            Self::ServerTimeout { .. } => "server-timeout",
            Self::Busy { .. } => "overloaded",
            Self::Ending => "ending",
            Self::NotForThisRevision { .. } => "not-for-this-revision",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Collides { .. } => "name-collision",
            Self::BadCursor => "bad-cursor",
            Self::BadParams { .. } => "bad-params",
            Self::NoSuchMethod { .. } => "method-not-found",
            Self::CannotAsk { .. } => "cannot-ask",
        }
    }

    /// What programs are told besides.
    fn data(&self) -> Value {
        let mut data = match self {
            Self::RateLimited { retry_after_ms, what } => json!({ "retry_after_ms": retry_after_ms, "limit": what }),
            Self::ServerUnavailable { server, retry_after_ms: Some(retry_after_ms), .. } => {
                json!({ "server": server, "retry_after_ms": retry_after_ms })
            }
            Self::ServerUnavailable { server, .. }
            | Self::ServerTimeout { server, .. }
            | Self::UpstreamGarbled { server: Some(server), .. }
            | Self::NeedsLogin { server: Some(server), .. } => json!({ "server": server }),
            _ => json!({}),
        };
        data["mcp-proxy/reason"] = self.reason().into();
        data
    }

    /// What is said of it, to peers and in records.
    pub fn text(&self) -> String {
        let text = match self {
            Self::ServerGone { status } => return format!("the server ended before it answered ({status})"),
            Self::TooLarge { limit } => return format!("the message is larger than the limit of {limit} bytes"),
            Self::Unreachable { what } => return format!("the server cannot be reached ({what})"),
            Self::UpstreamStatus { status } => return format!("the server answered with HTTP status {status}"),
            Self::UpstreamGarbled { server, what } => {
                let whose =
                    server.as_ref().map_or("the server's answer".into(), |id| format!("the answer of server \"{id}\""));
                let why = what.as_ref().map(|what| format!(" ({what})")).unwrap_or_default();
                return format!("{whose} is not a JSON-RPC message{why}");
            }
            Self::NeedsLogin { server: None, status } => {
                return format!(
                    "the server needs a login (HTTP status {status}). Give its credentials to the proxy with --header"
                );
            }
            Self::NeedsLogin { server: Some(server), status } => {
                return format!(
                    "server \"{server}\" needs a login (HTTP status {status}). Set its credentials under `headers` in the \
                     gateway's configuration and restart the gateway"
                );
            }
            Self::HeaderMismatch { what } => return format!("headers and body disagree ({what})"),
            Self::BadRequest { what } => return format!("the request cannot be accepted ({what})"),
            Self::NotInRecording { what } => return format!("the recording has no answer to this ({what})"),
            Self::UnknownMethod { method } => {
                return format!("Method not found: the recording has no call of {method}");
            }
            Self::RateLimited { retry_after_ms, what } => {
                return format!("{RATE_LIMIT_EXCEEDED} ({what}), retry in {}", Wait(*retry_after_ms));
            }
            Self::ServerUnavailable { server, state, retry_after_ms: Some(wait) } => {
                return format!("server \"{server}\" is {state}, retry in {}", Wait(*wait));
            }
            Self::ServerUnavailable { server, state, retry_after_ms: None } => {
                return format!("server \"{server}\" is {state}");
            }
            Self::ServerTimeout { server, after_ms } => {
                return format!("server \"{server}\" did not answer within {}", within(*after_ms));
            }
            Self::Busy { what } => return format!("{what}; try again later"),
            Self::NotForThisRevision { what } => {
                return format!("the protocol revisions of client and server leave no way for this ({what})");
            }
            Self::Ambiguous { what } => return format!("it cannot be told who is meant ({what})"),
            Self::Collides { name } => return format!("several servers have something called \"{name}\""),
            Self::BadParams { what } => return format!("Invalid params: {what}"),
            Self::NoSuchMethod { method } => return format!("Method not found: {method}"),
            Self::CannotAsk { what } => return format!("the client cannot be asked this ({what})"),
            Self::BadCursor => "Invalid cursor",
            Self::Ending => "the proxy is ending before the server answered",
            Self::NotRecorded => "the proxy cannot record this message and was told to pass nothing unrecorded",
            Self::NotAudited => {
                "the proxy cannot write down its decision about this call, and was told to pass none so"
            }
            Self::StreamLost => "the connection to the server broke before it answered",
            Self::SessionLost => "the server no longer knows this session",
            Self::Overloaded => "the proxy holds as many sessions or messages as it may; try again later",
            Self::Unauthorized => "Unauthorized",
            Self::Dropped => "the message was held, and whoever watches this proxy did not let it go on",
            Self::BatchRefused => {
                "not sent, because another message of the same batch was refused. Send this one again by itself"
            }
        };
        text.into()
    }

    /// What the peer is told. It learns who speaks, except where the wording is settled.
    fn message(&self) -> String {
        match self {
            Self::Unauthorized => self.text(),
            Self::RateLimited { .. } => RATE_LIMIT_EXCEEDED.to_owned(),
            _ => format!("mcp-proxy: {}", self.text()),
        }
    }
}

/// A time as people say it.
struct Wait(u64);

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ms @ 0..1000 => write!(f, "{ms} ms"),
            // Who comes too early is sent away again.
            ms => write!(f, "{} s", ms.div_ceil(1000)),
        }
    }
}

/// A limit as people say it: never longer than it was.
pub fn within(ms: u64) -> String {
    match (ms / 1000, ms % 1000 / 100) {
        (0, _) => format!("{ms} ms"),
        (s, 0) => format!("{s} s"),
        (s, tenths) => format!("{s}.{tenths} s"),
    }
}

/// An error answer to the request `id`.
pub fn error(id: &Id, refusal: &Refusal) -> Bytes {
    error_with(id, refusal)
}

/// An error answer to what has no id that could be repeated. It says `null` where newer revisions
/// would have it leave the id out, because older clients insist on the member.
pub fn error_without_id(refusal: &Refusal) -> Bytes {
    error_with("null", refusal)
}

fn error_with(id: impl fmt::Display, refusal: &Refusal) -> Bytes {
    let error = json!({
        "code": refusal.code(),
        "message": refusal.message(),
        "data": refusal.data(),
    });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into()
}

/// What a caller is told whom a rule denies something.
#[derive(Clone, Copy, Debug)]
pub struct Denied<'a> {
    /// None if no rule did, and what none permits is denied.
    pub rule: Option<&'a str>,
    /// What the rule has to say.
    pub message: Option<&'a str>,
    /// Why, where it is not the rule alone: nobody was there to ask.
    pub why: Option<&'a str>,
    pub server: Option<&'a str>,
    pub tool: Option<&'a str>,
    pub operation: Option<&'a str>,
    pub audit_id: Option<&'a str>,
}

impl Denied<'_> {
    /// Models read this, so it says what to do.
    fn text(&self) -> String {
        let mut text = match (self.rule, self.why) {
            (Some(rule), _) => format!("Permission denied by rule \"{rule}\""),
            (None, None) => "Permission denied: no rule permits this".to_owned(),
            (None, Some(_)) => "Permission denied".to_owned(),
        };
        for more in [self.message, self.why].into_iter().flatten() {
            text.push_str(": ");
            text.push_str(more.trim_end_matches('.'));
        }
        text.push_str(". A retry will not help; ask the user.");
        text
    }
}

/// The error that denies the request `id`.
pub fn denied(id: &Id, denied: &Denied<'_>) -> Bytes {
    let Denied { rule, server, tool, operation, audit_id, .. } = denied;
    let data = json!({
        "rule": rule,
        "server": server,
        "tool": tool,
        "operation": operation,
        "audit_id": audit_id,
        "mcp-proxy/reason": "denied",
    });
    let error = json!({ "code": DENIED, "message": denied.text(), "data": data });
    answer_with_error(id, error.to_string().as_bytes())
}

/// The same as a result of a tool that failed, for clients that keep errors from their model.
pub fn denied_as_result(id: &Id, denied: &Denied<'_>, is_modern: bool) -> Bytes {
    failed_as_result(id, &denied.text(), is_modern)
}

/// The result of a tool that failed with this text.
pub fn failed_as_result(id: &Id, text: &str, is_modern: bool) -> Bytes {
    let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    if is_modern {
        result["resultType"] = "complete".into();
    }
    answer_with_result(id, result.to_string().as_bytes())
}

/// What a server says of something that it does not have: a tool, a prompt, a resource, a task.
pub fn unknown(id: &Id, method: &str, name: &str) -> Bytes {
    let (code, what, data) = match method {
        "resources/read" | "resources/subscribe" => (-32002, "Resource not found", Some(json!({ "uri": name }))),
        "prompts/get" => (-32602, "Unknown prompt", None),
        "completion/complete" => (-32602, "Unknown prompt or resource", None),
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => (-32602, "Unknown task", None),
        _ => (-32602, "Unknown tool", None),
    };
    let mut error = json!({ "code": code, "message": format!("{what}: {name}") });
    if let Some(data) = data {
        error["data"] = data;
    }
    answer_with_error(id, error.to_string().as_bytes())
}

/// The answers to a batch, one after the other.
pub fn batch(answers: &[Bytes]) -> Bytes {
    [b"[".as_slice(), &answers.join(&b','), b"]"].concat().into()
}

/// An answer with this result, which is JSON already.
pub fn answer_with_result(id: &Id, result: &[u8]) -> Bytes {
    answer_with(id, "result", result)
}

/// An answer with this error, which is JSON already.
pub fn answer_with_error(id: &Id, error: &[u8]) -> Bytes {
    answer_with(id, "error", error)
}

fn answer_with(id: &Id, member: &str, value: &[u8]) -> Bytes {
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":");
    [head.as_bytes(), value, b"}"].concat().into()
}

/// What a client is told that speaks a revision which is not spoken here.
pub fn unsupported_version(id: &Id, requested: &str, supported: &[&str]) -> Bytes {
    let error = json!({
        "code": -32022,
        "message": "Unsupported protocol version",
        "data": { "supported": supported, "requested": requested },
    });
    answer_with_error(id, error.to_string().as_bytes())
}

/// The error object that says `message`.
pub fn error_object(code: i64, message: &str) -> Bytes {
    json!({ "code": code, "message": message }).to_string().into()
}

/// A result that says nothing, as the answer to a `ping` does.
pub fn empty_result(id: &Id) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}").into()
}

/// What tells a server on a pipe that nobody waits for the answer to `id` any more.
pub fn cancellation(id: &Id) -> Bytes {
    cancellation_because(id, "the client left")
}

/// The same for another reason, in plain words.
pub fn cancellation_because(id: &Id, reason: &str) -> Bytes {
    let params = format!("{{\"requestId\":{id},\"reason\":{}}}", serde_json::Value::from(reason));
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}").into()
}

/// Whether an answer was composed by a proxy in a server's place, and what it said then.
pub fn refusal_text(answer: &[u8]) -> Option<String> {
    scan::member_at(answer, ["error", "data", "mcp-proxy/reason"])?;
    let text = scan::member_at(answer, ["error", "message"])?;
    let text = scan::decode_string(&answer[text.range()])?;
    Some(text.strip_prefix("mcp-proxy: ").unwrap_or(&text).to_owned())
}

/// What code a legacy client is told in place of a modern server's: what only the newest revision has is our
/// affair.
pub fn legacy_code(method: &str, code: &[u8]) -> Option<&'static str> {
    match code {
        b"-32020" | b"-32022" => Some("-32603"),
        b"-32602" if method == "resources/read" => Some("-32002"),
        _ => None,
    }
}

/// What code a modern client is told in place of a legacy server's.
pub fn modern_code(method: &str, code: &[u8]) -> Option<&'static str> {
    (code == b"-32002" && method.starts_with("resources/")).then_some("-32602")
}

pub fn is_invalid_params(code: &[u8]) -> bool {
    code == b"-32602"
}

/// Whether an answer is an error to a message whose id could not be told.
pub fn is_without_id(answer: &[u8]) -> bool {
    // Most answers begin with the id, and then no more need be read. White space may stand before a `null`.
    let id = answer.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":").and_then(|id| id.first());
    if matches!(id, Some(b'0'..=b'9' | b'-' | b'"')) {
        return false;
    }
    let glance = scan::glance(answer);
    glance.kind == Kind::Error && glance.id.is_none_or(|span| &answer[span.range()] == b"null")
}

/// The HTTP status that the newest revision gives an error with this code, if it is not 200.
pub fn status_of(code: &[u8]) -> Option<u16> {
    match code {
        b"-32601" => Some(404),
        b"-32700" | b"-32600" | b"-32020" | b"-32021" | b"-32022" => Some(400),
        _ => None,
    }
}

/// Why a client was turned away at the entrance, where HTTP says so by its status, in every revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    Unauthorized,
    RateLimited { retry_after_ms: u64 },
}

impl TurnedAway {
    /// What an answer says of that, if a proxy composed it to say so. Others use the same codes for other
    /// things.
    pub fn told_by(answer: &[u8]) -> Option<Self> {
        let told = |name| scan::member_at(answer, ["error", "data", name]).map(|span| &answer[span.range()]);
        match scan::decode_string(told("mcp-proxy/reason")?)?.as_ref() {
            UNAUTHORIZED => Some(Self::Unauthorized),
            RATE_LIMITED => {
                let retry_after_ms = std::str::from_utf8(told("retry_after_ms")?).ok()?.parse().ok()?;
                Some(Self::RateLimited { retry_after_ms })
            }
            _ => None,
        }
    }

    pub fn of(refusal: &Refusal) -> Option<Self> {
        match refusal {
            Refusal::Unauthorized => Some(Self::Unauthorized),
            Refusal::RateLimited { retry_after_ms, .. } => Some(Self::RateLimited { retry_after_ms: *retry_after_ms }),
            _ => None,
        }
    }

    pub fn status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::RateLimited { .. } => 429,
        }
    }

    /// After how many whole seconds another try is worth it.
    pub fn retry_after_s(self) -> Option<u64> {
        match self {
            Self::Unauthorized => None,
            Self::RateLimited { retry_after_ms } => Some(retry_after_ms.div_ceil(1000).max(1)),
        }
    }
}

/// A refusal of each kind, with `text` wherever one has words of others.
#[cfg(any(test, feature = "checks"))]
pub fn refusals(text: &str) -> Vec<Refusal> {
    let text = || text.to_owned();
    vec![
        Refusal::ServerGone { status: text() },
        Refusal::TooLarge { limit: 5 },
        Refusal::NotRecorded,
        Refusal::NotAudited,
        Refusal::Unreachable { what: text() },
        Refusal::UpstreamStatus { status: 502 },
        Refusal::GARBLED,
        Refusal::UpstreamGarbled { server: Some(text()), what: Some(text()) },
        Refusal::StreamLost,
        Refusal::SessionLost,
        Refusal::HeaderMismatch { what: text() },
        Refusal::Overloaded,
        Refusal::BadRequest { what: text() },
        Refusal::Unauthorized,
        Refusal::NotInRecording { what: text() },
        Refusal::UnknownMethod { method: text() },
        Refusal::Dropped,
        Refusal::RateLimited { retry_after_ms: 1500, what: text() },
        Refusal::ServerUnavailable { server: text(), state: text(), retry_after_ms: Some(1) },
        Refusal::ServerUnavailable { server: text(), state: text(), retry_after_ms: None },
        Refusal::ServerTimeout { server: text(), after_ms: 1 },
        Refusal::Busy { what: text() },
        Refusal::NotForThisRevision { what: text() },
        Refusal::Ambiguous { what: text() },
        Refusal::Collides { name: text() },
        Refusal::BadCursor,
        Refusal::Ending,
        Refusal::BadParams { what: text() },
        Refusal::NoSuchMethod { method: text() },
        Refusal::CannotAsk { what: text() },
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Kind, Message, checks};

    proptest! {
        #[test]
        fn every_reply_is_json_whatever_the_id(
            head in prop::sample::select(vec!["", "\"", "1", "-", "[", "{\"a\":", "\"\\", "\"\\u", "tru"]),
            id in prop::collection::vec(any::<u8>(), 0..12),
            tail in prop::sample::select(vec!["", "\"", "]", "}", "e9", ".0"]),
        ) {
            checks::replies_are_json(&[head.as_bytes(), &id, tail.as_bytes()].concat());
        }
    }

    #[test]
    fn replies_to_broken_ids_are_json() {
        for id in [&b"\"b\\ad\""[..], b"1\xff2", b"\"\xff\"", b"1e999", b"[[]", b"\"\\ud800\"", b"NaN", b""] {
            checks::replies_are_json(id);
        }
        checks::replies_are_json(&b"[".repeat(100_000));
    }

    #[test]
    fn every_reason_is_documented() {
        let documented = include_str!("../../../docs/errors.md");
        for refusal in refusals("x") {
            let row = format!("| {} | `{}` |", refusal.code(), refusal.reason());
            assert!(documented.contains(&row), "docs/errors.md lacks {row}");
        }
    }

    #[test]
    fn limits_are_said_as_they_were() {
        for (ms, expected) in
            [(0, "0 ms"), (999, "999 ms"), (1000, "1 s"), (1003, "1 s"), (1590, "1.5 s"), (60_000, "60 s")]
        {
            assert_eq!(within(ms), expected);
        }
    }

    #[test]
    fn what_is_unknown_is_named_as_what_it_would_be() {
        for (method, expected) in [
            ("tools/call", "Unknown tool: x"),
            ("prompts/get", "Unknown prompt: x"),
            ("resources/read", "Resource not found: x"),
            ("completion/complete", "Unknown prompt or resource: x"),
            ("tasks/get", "Unknown task: x"),
            ("tasks/cancel", "Unknown task: x"),
        ] {
            let answer: Value = serde_json::from_slice(&unknown(&Id::Integer(1), method, "x")).expect("it is JSON");
            assert_eq!(answer["error"]["message"], expected, "{method}");
        }
    }

    #[test]
    fn refusals_say_what_is_wrong_and_when_to_come_again() {
        #[track_caller]
        fn check(refusal: &Refusal, expected: &str) {
            let answer = error(&Id::Integer(1), refusal);
            let told = scan::member_at(&answer, ["error"]).expect("it is an error");
            assert_eq!(String::from_utf8_lossy(&answer[told.range()]), expected);
        }
        let files = || "files".to_owned();
        check(
            &Refusal::RateLimited { retry_after_ms: 1500, what: "60 a minute".into() },
            r#"{"code":-32002,"data":{"limit":"60 a minute","mcp-proxy/reason":"rate-limited","retry_after_ms":1500},"message":"Rate limit exceeded"}"#,
        );
        check(
            &Refusal::ServerUnavailable { server: files(), state: "restarting".into(), retry_after_ms: Some(1500) },
            r#"{"code":5032,"data":{"mcp-proxy/reason":"server-unavailable","retry_after_ms":1500,"server":"files"},"message":"mcp-proxy: server \"files\" is restarting, retry in 2 s"}"#,
        );
        check(
            &Refusal::ServerTimeout { server: files(), after_ms: 250 },
            r#"{"code":5041,"data":{"mcp-proxy/reason":"server-timeout","server":"files"},"message":"mcp-proxy: server \"files\" did not answer within 250 ms"}"#,
        );
        check(
            &Refusal::NeedsLogin { server: Some(files()), status: 401 },
            r#"{"code":5025,"data":{"mcp-proxy/reason":"needs-login","server":"files"},"message":"mcp-proxy: server \"files\" needs a login (HTTP status 401). Set its credentials under `headers` in the gateway's configuration and restart the gateway"}"#,
        );
        check(
            &Refusal::Busy { what: "server \"files\" has as many calls as it may have".into() },
            r#"{"code":5031,"data":{"mcp-proxy/reason":"overloaded"},"message":"mcp-proxy: server \"files\" has as many calls as it may have; try again later"}"#,
        );
        check(
            &Refusal::UpstreamGarbled { server: Some(files()), what: Some("`result` is not an object".into()) },
            r#"{"code":5022,"data":{"mcp-proxy/reason":"upstream-garbled","server":"files"},"message":"mcp-proxy: the answer of server \"files\" is not a JSON-RPC message (`result` is not an object)"}"#,
        );
        check(
            &Refusal::BadCursor,
            r#"{"code":-32602,"data":{"mcp-proxy/reason":"bad-cursor"},"message":"mcp-proxy: Invalid cursor"}"#,
        );
    }

    #[test]
    fn only_our_own_refusals_turn_clients_away() {
        let limited = Refusal::RateLimited { retry_after_ms: 1500, what: "60 a minute".into() };
        for refusal in [Refusal::Unauthorized, limited] {
            let told = TurnedAway::told_by(&error(&Id::Integer(1), &refusal));
            assert!(told.is_some() && told == TurnedAway::of(&refusal), "{refusal:?}");
        }
        assert_eq!(TurnedAway::told_by(&unknown(&Id::Integer(1), "resources/read", "x:y")), None);
        assert_eq!(TurnedAway::told_by(&error(&Id::Integer(1), &Refusal::Dropped)), None);
        let seconds = |retry_after_ms| TurnedAway::RateLimited { retry_after_ms }.retry_after_s();
        assert_eq!((seconds(0), seconds(1000), seconds(1001)), (Some(1), Some(1), Some(2)));
    }

    #[test]
    fn an_error_repeats_the_id_as_it_was() {
        for id in ["7", "\"7\"", "null", "1e3", "99999999999999999999"] {
            let reply = Message::new(error(&Id::from_json(id.as_bytes()), &Refusal::TooLarge { limit: 5 }));
            assert_eq!(reply.kind(), Kind::Error);
            assert_eq!(reply.slice(reply.peek().id.expect("it has an id")), id.as_bytes());
        }
    }

    #[test]
    fn an_http_status_is_read_from_the_words_for_it() {
        for (refusal, status) in [
            (Refusal::UpstreamStatus { status: 502 }, Some(502)),
            (Refusal::NeedsLogin { server: None, status: 401 }, Some(401)),
            (Refusal::NeedsLogin { server: Some("files".into()), status: 403 }, Some(403)),
            (Refusal::StreamLost, None),
        ] {
            let told = error(&Id::Integer(1), &refusal);
            assert_eq!(upstream_status(&told), status, "{refusal:?}");
            assert!(says_own_failure(&told), "{refusal:?}");
        }
    }

    #[test]
    fn our_own_words_are_known_again() {
        let ours = error(&Id::Integer(1), &Refusal::StreamLost);
        assert_eq!(refusal_text(&ours).as_deref(), Some("the connection to the server broke before it answered"));
        assert_eq!(refusal_text(br#"{"id":1,"error":{"code":1,"message":"mcp-proxy: no","data":{}}}"#), None);
        assert_eq!(refusal_text(br#"{"id":1,"result":{}}"#), None);
    }

    #[test]
    fn a_cancellation_is_read_as_one() {
        for id in [Id::Integer(7), Id::Text("a\"b".into())] {
            let message = Message::new(cancellation_because(&id, "it took \"too long\""));
            assert_eq!((message.kind(), message.cancelled_id()), (Kind::Notification, Some(id)));
        }
        assert_eq!(
            cancellation(&Id::Integer(1)),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the client left"}}"#
        );
    }

    #[test]
    fn an_error_without_an_id_says_so() {
        assert_eq!(
            error_without_id(&Refusal::Unauthorized),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"data":{"mcp-proxy/reason":"unauthorized"},"message":"Unauthorized"}}"#
        );
        assert_eq!(
            error_without_id(&Refusal::UpstreamStatus { status: 502 }),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":5021,"data":{"mcp-proxy/reason":"upstream-status"},"message":"mcp-proxy: the server answered with HTTP status 502"}}"#
        );
    }

    #[test]
    fn errors_to_nobody_are_told_from_others() {
        let refusal = Refusal::Ending;
        assert!(is_without_id(&error_without_id(&refusal)));
        assert!(!is_without_id(&error(&Id::from_json(b"7"), &refusal)));
        for (answer, expected) in [
            (r#"{"error":{"code":1},"jsonrpc":"2.0","id":null}"#, true),
            (r#"{"jsonrpc":"2.0","error":{"code":1}}"#, true),
            (r#"{"jsonrpc":"2.0","id": null,"error":{"code":1}}"#, true),
            ("{\"jsonrpc\":\"2.0\",\"id\":\n\tnull ,\"error\":{\"code\":1}}", true),
            (r#"{"jsonrpc":"2.0","id": 1,"error":{"code":1}}"#, false),
            (r#"{"jsonrpc":"2.0","id":-1,"error":{"code":1}}"#, false),
            (r#"{"jsonrpc":"2.0","id":"null","error":{"code":1}}"#, false),
            (r#"{"error":{"code":1},"jsonrpc":"2.0","id":"null"}"#, false),
            (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, false),
            (r#"{"result":{},"jsonrpc":"2.0","id":1}"#, false),
        ] {
            assert_eq!(is_without_id(answer.as_bytes()), expected, "{answer}");
        }
    }
}
