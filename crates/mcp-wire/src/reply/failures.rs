//! Errors that tell what became of a request on its way: which of them are ours, and how much of that is said.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{NEEDS_LOGIN, UPSTREAM_STATUS, answer_with_error, error_object};
use crate::id::Id;
use crate::scan;

/// The status that a server answered with in place of a message, if this answer of ours says so.
pub fn upstream_status(answer: &[u8]) -> Option<u16> {
    let code = scan::member_at(answer, ["error", "code"])?;
    let code = std::str::from_utf8(&answer[code.range()]).ok()?.parse().ok()?;
    let text = scan::member_at(answer, ["error", "message"])?;
    status_said(code, &scan::decode_string(&answer[text.range()])?)
}

/// The same of an error that was read already.
pub fn status_said(code: i64, message: &str) -> Option<u16> {
    let (_, status) = message.split_once("HTTP status ").filter(|_| is_status(code))?;
    status.get(..3)?.parse().ok()
}

/// Whether an error of this code is one of ours that stands for an HTTP status.
pub fn is_status(code: i64) -> bool {
    code == UPSTREAM_STATUS || is_login(code)
}

/// Whether the proxy composed an error of this code because a server needs a login.
pub fn is_login(code: i64) -> bool {
    code == NEEDS_LOGIN
}

/// Whether an error is one of ours that says that a server could not be reached or heard.
pub fn is_own_failure(code: i64) -> bool {
    matches!(code, 5020 | 5022..=5024 | 5030..=5032 | 5041)
}

/// Whether an answer is one of ours that says so.
pub fn says_own_failure(answer: &[u8]) -> bool {
    let code =
        scan::member_at(answer, ["error", "code"]).and_then(|span| std::str::from_utf8(&answer[span.range()]).ok());
    code.and_then(|code| code.parse().ok()).is_some_and(|code: i64| is_status(code) || is_own_failure(code))
}

/// Whether only a server of the newest revision says this.
pub fn is_modern_code(code: i64) -> bool {
    matches!(code, -32022..=-32020)
}

/// An answer of ours that says why a server could not be reached or heard, without saying how: that is for
/// whoever runs it. Any other answer stays as it is.
pub fn without_details(answer: &Bytes) -> Bytes {
    let code = scan::member_at(answer, ["error", "code"]).filter(|_| says_own_failure(answer));
    let Some(code) = code else { return answer.clone() };
    let is_known = |name: &str| {
        let span = scan::member_at(answer, ["error", "data", name])?;
        serde_json::from_slice::<Value>(&answer[span.range()]).ok()
    };
    let text = match &answer[code.range()] {
        b"5031" => "the server has as much to do as it may; try again later",
        b"5041" => "the server did not answer in time",
        _ => "the server is not available",
    };
    let mut error = json!({ "message": format!("mcp-proxy: {text}"), "data": {} });
    error["code"] = serde_json::from_slice(&answer[code.range()]).unwrap_or_default();
    for name in ["mcp-proxy/reason", "retry_after_ms"] {
        if let Some(value) = is_known(name) {
            error["data"][name] = value;
        }
    }
    format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{error}}}").into()
}

/// The error of whoever found something that cannot be.
pub fn internal_error() -> Bytes {
    error_object(-32603, "Internal error")
}

/// The error of a call in a batch that asks its caller something, whom it cannot tell apart from others there.
pub fn asks_its_caller() -> Bytes {
    error_object(5063, "mcp-proxy: this asks its caller for something; call it by itself, not in a batch")
}

/// The error of an operation of a batch whose result has no room in the answer.
pub fn batch_too_large() -> Bytes {
    error_object(
        5130,
        "mcp-proxy: the answers to this batch are too large together; ask for less, or for this by itself",
    )
}

/// An answer that says that something went wrong where it was worked on.
pub fn failed_inside(id: &Id, message: &str) -> Bytes {
    answer_with_error(id, &error_object(-32603, message))
}
