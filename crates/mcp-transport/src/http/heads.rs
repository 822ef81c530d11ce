//! Header sections: which headers stop at each hop, which of them are secret, and how a head is kept
//! in a recording.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{StatusCode, header};
use mcp_store::HeadKey;

/// Headers that speak of one connection only.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers whose values are never kept.
const SECRET: [HeaderName; 4] =
    [header::AUTHORIZATION, header::COOKIE, header::SET_COOKIE, header::PROXY_AUTHORIZATION];

/// Whether a header says how a request is sent, which only its sender can say. Credentials may be meant for a proxy
/// further on.
pub fn is_framing(name: &HeaderName) -> bool {
    *name == header::CONTENT_LENGTH || (HOP_BY_HOP.contains(name) && *name != header::PROXY_AUTHORIZATION)
}

/// Takes out what concerns this connection only, whatever `Connection` names included.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Mostly there is nothing of the kind, and that is seen sooner than it is searched for.
    if !headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        return;
    }
    let named: Vec<HeaderValue> = headers.get_all(header::CONNECTION).iter().cloned().collect();
    for name in named.iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b',')) {
        if let Ok(name) = HeaderName::from_bytes(name.trim_ascii()) {
            headers.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Whether a body is something else than the bytes that come: compressed, mostly.
pub fn is_encoded(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(header::CONTENT_ENCODING);
    codings.iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// What makes a head the same as another, as far as a recording is concerned. Its parts are put side
/// by side in `scratch` and hashed at once, which is a good deal faster than one by one.
pub fn key(state: &RandomState, scratch: &mut Vec<u8>, start: &[&str], headers: &HeaderMap) -> HeadKey {
    scratch.clear();
    let mut part = |bytes: &[u8]| {
        scratch.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        scratch.extend_from_slice(bytes);
    };
    for text in start {
        part(text.as_bytes());
    }
    let mut content_length = None;
    for (name, value) in headers {
        part(name.as_str().as_bytes());
        if name == header::CONTENT_LENGTH && content_length.is_none() {
            content_length = plain_number(value.as_bytes());
        }
        if name == header::CONTENT_LENGTH && content_length.is_some() {
            continue;
        }
        if is_secret(name, value) {
            part(scheme(name, value));
        } else {
            part(value.as_bytes());
        }
    }
    HeadKey { hash: state.hash_one(scratch.as_slice()), content_length }
}

/// A number in its shortest spelling.
fn plain_number(digits: &[u8]) -> Option<u64> {
    let is_plain = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits.first() != Some(&b'0'));
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

/// The head of a request as HTTP text, with its secrets masked.
pub fn request_text(method: &str, target: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::with_capacity(512);
    for part in [method, " ", target, " HTTP/1.1\r\n"] {
        text.extend_from_slice(part.as_bytes());
    }
    append(headers, &mut text);
    text
}

/// The head of a response as HTTP text, with its secrets masked.
pub fn response_text(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::with_capacity(512);
    for part in ["HTTP/1.1 ", status.as_str(), " ", status.canonical_reason().unwrap_or_default(), "\r\n"] {
        text.extend_from_slice(part.as_bytes());
    }
    append(headers, &mut text);
    text
}

fn append(headers: &HeaderMap, text: &mut Vec<u8>) {
    for (name, value) in headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        if is_secret(name, value) {
            append_masked(name, value, text);
        } else {
            text.extend_from_slice(value.as_bytes());
        }
        text.extend_from_slice(b"\r\n");
    }
}

/// What the user gave us for the server is secret under any name.
fn is_secret(name: &HeaderName, value: &HeaderValue) -> bool {
    value.is_sensitive() || SECRET.contains(name)
}

fn append_masked(name: &HeaderName, value: &HeaderValue, text: &mut Vec<u8>) {
    text.extend_from_slice(scheme(name, value));
    text.extend_from_slice(b"***");
}

/// How a client tries to prove itself, with the blank after it; only the proof is secret.
fn scheme<'a>(name: &HeaderName, value: &'a HeaderValue) -> &'a [u8] {
    let value = value.as_bytes();
    match value.iter().position(|&byte| byte == b' ') {
        Some(blank)
            if (name == header::AUTHORIZATION || name == header::PROXY_AUTHORIZATION)
                && value[..blank].iter().all(u8::is_ascii_alphanumeric) =>
        {
            &value[..=blank]
        }
        _ => b"",
    }
}

/// Whether the media type of a body is `wanted`, parameters aside.
pub fn is_media_type(headers: &HeaderMap, wanted: &str) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return false };
    let essence = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes())
}

/// Whether a client reads a stream of events as an answer.
pub fn accepts_events(headers: &HeaderMap) -> bool {
    let types = headers.get_all(header::ACCEPT).iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    let mut essences = types.map(|one| one.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii());
    essences.any(|essence| essence.eq_ignore_ascii_case(b"text/event-stream") || essence == b"*/*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn what_a_connection_names_stays_on_it() {
        let mut map =
            headers(&[("connection", "close, X-Mine"), ("x-mine", "1"), ("te", "trailers"), ("mcp-name", "a")]);
        strip_hop_by_hop(&mut map);
        assert_eq!(map, headers(&[("mcp-name", "a")]));
    }

    #[test]
    fn secrets_are_not_kept() {
        let map = headers(&[("authorization", "Bearer abc"), ("cookie", "a=b"), ("accept", "*/*")]);
        let text = request_text("POST", "/mcp", &map);
        assert_eq!(text, &b"POST /mcp HTTP/1.1\r\nauthorization: Bearer ***\r\ncookie: ***\r\naccept: */*\r\n"[..]);
        let odd = response_text(StatusCode::OK, &headers(&[("authorization", "secretonly"), ("set-cookie", "x")]));
        assert_eq!(odd, &b"HTTP/1.1 200 OK\r\nauthorization: ***\r\nset-cookie: ***\r\n"[..]);
    }

    #[test]
    fn media_types_compare_without_their_parameters() {
        let json = headers(&[("content-type", "Application/JSON; charset=utf-8")]);
        assert!(is_media_type(&json, "application/json"));
        assert!(!is_media_type(&json, "text/plain"));
    }

    #[test]
    fn who_reads_events() {
        for (accept, expected) in [
            ("application/json, text/event-stream", true),
            ("Text/Event-Stream;q=0.5", true),
            ("*/*", true),
            ("application/json", false),
            ("text/event-streams", false),
        ] {
            assert_eq!(accepts_events(&headers(&[("accept", accept)])), expected, "{accept}");
        }
        assert!(!accepts_events(&HeaderMap::new()));
        assert!(accepts_events(&headers(&[("accept", "application/json"), ("accept", "text/event-stream")])));
    }
}
