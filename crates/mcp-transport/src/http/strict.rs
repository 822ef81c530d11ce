//! What a governed listener asks of a request before its message is judged: that nothing around the
//! body can make a server read something else in it, or act on something else.

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use mcp_wire::fold::plain_uri;
use mcp_wire::mirror::{self, Seen, ToolParams};
use mcp_wire::revision::{self, Era};
use mcp_wire::{Kind, Message};

use super::gate::{Refused, refused};
use super::heads::is_encoded;

/// Whether a request can be read one way only, as far as its head tells.
pub fn check_head(parts: &Parts) -> Result<(), Refused> {
    if is_encoded(&parts.headers) {
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "an encoded body cannot be judged"));
    }
    if parts.headers.get_all(header::CONTENT_TYPE).iter().any(|value| !is_utf8(value)) {
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be in UTF-8"));
    }
    let path = parts.uri.path();
    if plain_uri(path) != path {
        return Err(refused(StatusCode::BAD_REQUEST, "the path is not in its plain form"));
    }
    Ok(())
}

/// Whether a body comes where there must be one, and nowhere else: what is not sent with POST has no
/// meaning that all servers agree on.
pub fn check_body(method: &Method, body_is_empty: bool) -> Result<(), Refused> {
    match (*method == Method::POST, body_is_empty) {
        (true, true) => Err(refused(StatusCode::BAD_REQUEST, "there is no message")),
        (false, false) => Err(refused(StatusCode::BAD_REQUEST, "only POST has a body here")),
        _ => Ok(()),
    }
}

/// Whether a media type says UTF-8, or nothing: some servers believe `charset=utf-7`, in which the same
/// bytes are another text.
fn is_utf8(value: &HeaderValue) -> bool {
    let text = value.as_bytes().to_ascii_lowercase();
    let mut charsets = text.split(|&byte| byte == b';').skip(1).filter_map(|parameter| {
        let (name, value) = parameter.split_at(parameter.iter().position(|&byte| byte == b'=')?);
        (name.trim_ascii() == b"charset").then(|| value[1..].trim_ascii())
    });
    charsets.all(|charset| matches!(charset, b"utf-8" | b"utf8" | b"\"utf-8\"" | b"\"utf8\""))
        // Whoever does not split at every semicolon finds one elsewhere.
        && text.windows(b"charset".len()).filter(|window| *window == b"charset").count() <= 1
}

/// Whether the headers that repeat parts of a message say what it says. Requests of the newest revision
/// must have them; whoever else sends them must not lie.
pub fn check_mirrored(tools: &ToolParams, message: &Message, headers: &HeaderMap, era: Era) -> Result<(), String> {
    let is_call = matches!(message.kind(), Kind::Request | Kind::Notification);
    let has = |name| headers.contains_key(name);
    if !is_call && (has(revision::METHOD_HEADER) || has(revision::NAME_HEADER)) {
        return Err("there is no call that a header could repeat".into());
    }
    let is_modern = era == Era::Modern
        || message.protocol_version().is_some_and(|version| Era::of_header(Some(version.as_bytes())) == Era::Modern);
    if is_modern {
        return check_all(tools, message, headers);
    }
    let (version, method, name) = (
        all(headers, revision::VERSION_HEADER),
        all(headers, revision::METHOD_HEADER),
        all(headers, revision::NAME_HEADER),
    );
    if method.is_empty() && name.is_empty() && version.len() <= 1 {
        return Ok(());
    }
    let seen = Seen { version: &version, method: &method, name: &name };
    mirror::check_given(message, &seen).map_err(|mismatch| mismatch.to_string())
}

/// Whether the headers of a message of the newest revision agree with it.
pub fn check_all(tools: &ToolParams, message: &Message, headers: &HeaderMap) -> Result<(), String> {
    let (version, method, name) = (
        all(headers, revision::VERSION_HEADER),
        all(headers, revision::METHOD_HEADER),
        all(headers, revision::NAME_HEADER),
    );
    let seen = Seen { version: &version, method: &method, name: &name };
    mirror::check(message, &seen).map_err(|mismatch| mismatch.to_string())?;
    tools
        .check(message, |name| all(headers, &name.to_ascii_lowercase()))
        .map_err(|name| format!("{name} says something else"))
}

fn all<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h [u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn head(path: &str, headers: &[(&str, &str)]) -> Result<(), StatusCode> {
        let request = headers.iter().fold(Request::post(path), |request, (name, value)| request.header(*name, *value));
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        check_head(&parts).map_err(|refused| refused.status)
    }

    #[test]
    fn bodies_are_plain_utf8() {
        let media_type = |value| head("/mcp", &[("content-type", value)]).is_ok();
        for fine in [
            "application/json",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "a/b; charset=\"utf-8\"",
        ] {
            assert!(media_type(fine), "{fine}");
        }
        for wrong in [
            "application/json; charset=utf-7",
            "application/json; charset=utf-16",
            "application/json; charset = iso-8859-1",
            "application/json; charset=utf-8; charset=utf-7",
            "application/json; x=\";charset=utf-8\"; CHARSET=utf-7",
            "application/json; charset=",
            "application/json; charset='utf-7'",
        ] {
            assert!(!media_type(wrong), "{wrong}");
        }
        for (coding, is_fine) in [("identity", true), ("gzip", false), ("identity, gzip", false), ("", false)] {
            assert_eq!(head("/mcp", &[("content-encoding", coding)]).is_ok(), is_fine, "{coding}");
        }
        let twice = [("content-encoding", "identity"), ("content-encoding", "gzip")];
        assert_eq!(head("/mcp", &twice), Err(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }

    #[test]
    fn paths_are_plain() {
        assert_eq!(head("/.well-known/oauth-protected-resource/mcp", &[]), Ok(()));
        for path in ["/.well-known/../mcp", "/.well-known/%2e%2e/mcp", "/.well-known//mcp", "/.well-known/..%2fmcp"] {
            assert_eq!(head(path, &[]), Err(StatusCode::BAD_REQUEST), "{path}");
        }
    }

    #[test]
    fn headers_of_older_revisions_must_not_lie() {
        let check = |body: &str, headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, HeaderValue::from_static(value));
            }
            let message = Message::new(body.as_bytes().to_vec().into());
            check_mirrored(&ToolParams::default(), &message, &map, Era::Legacy)
        };
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
        let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        assert_eq!(check(call, &[]), Ok(()));
        assert_eq!(check(call, &[("mcp-protocol-version", "2025-11-25")]), Ok(()));
        assert_eq!(check(call, &[("mcp-method", "tools/call"), ("mcp-name", "echo")]), Ok(()));
        for wrong in [
            &[("mcp-method", "tools/list")][..],
            &[("mcp-name", "delete_repo")],
            &[("mcp-name", "echo"), ("mcp-name", "echo")],
            &[("mcp-protocol-version", "2025-11-25"), ("mcp-protocol-version", "2025-06-18")],
        ] {
            assert!(check(call, wrong).is_err(), "{wrong:?}");
        }
        assert!(check("[]", &[("mcp-method", "tools/call")]).is_err());
        assert!(check(modern, &[]).is_err(), "a modern request must have them, whatever its version header says");
    }
}
