//! OAuth metadata of a server, told to its clients as if it were ours.
//!
//! A server says which resource it protects, by its own address, and a client has to compare that with
//! the address it uses (RFC 9728, 3.3). Ours is another, so a strict client refuses to log in through
//! us. Where the user asks for it, the server's metadata names our address, and so does the challenge
//! that leads there. Nothing else in either is changed.

use bytes::Bytes;
use hyper::Uri;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use mcp_wire::scan;
use mcp_wire::splice::splice;

use super::target::Target;

/// Where a server describes the resource that it protects; the path of the resource follows.
const METADATA: &str = "/.well-known/oauth-protected-resource";
/// The parameter of a challenge that says where the metadata is.
const PARAMETER: &[u8] = b"resource_metadata";

/// The address by which a client reaches us, for one exchange.
#[derive(Clone, Debug)]
pub struct OwnResource {
    /// Scheme and authority.
    origin: String,
    /// The path that clients of this server's transport use.
    endpoint: &'static str,
    /// Whether the client asks for the metadata that says so.
    is_asked_for: bool,
}

impl OwnResource {
    /// What the client itself calls us; the gate has seen to it that this names us. The listener does
    /// not encrypt.
    pub fn of_request(parts: &Parts, endpoint: &'static str) -> Option<Self> {
        let host = match parts.uri.authority() {
            Some(authority) => authority.as_str(),
            None => parts.headers.get(header::HOST)?.to_str().ok()?,
        };
        let is_asked_for = is_metadata(parts.uri.path());
        Some(Self { origin: format!("http://{host}"), endpoint, is_asked_for })
    }

    pub fn is_asked_for(&self) -> bool {
        self.is_asked_for
    }

    /// The path at the server for what a client asks for: what stands for our endpoint stands for the
    /// server's there.
    pub fn path_at(&self, path: &str, target: &Target) -> Option<Uri> {
        let is_ours = path.strip_prefix(METADATA)? == self.endpoint;
        let of_server = target.endpoint(None);
        is_ours.then(|| format!("{METADATA}{}", of_server.path().trim_end_matches('/')).parse().ok())?
    }

    /// Changes the head of an answer.
    pub fn in_head(&self, headers: &mut HeaderMap, target: &Target) {
        if self.is_asked_for {
            headers.remove(header::CONTENT_LENGTH);
        }
        self.in_challenges(headers, target);
    }

    /// The same document with us as the resource. `None` if it names none.
    pub fn in_document(&self, document: &Bytes) -> Option<Bytes> {
        let span = scan::member_at(document, ["resource"])?;
        // A path and a host that passed as HTTP need no escaping in JSON, save for these.
        let own = format!("\"{}{}\"", self.origin.replace('\\', "\\\\").replace('"', "\\\""), self.endpoint);
        Some(splice(document, span, own.as_bytes()))
    }

    /// Has challenges lead to metadata at our address, where they led to the server's. Those that lead
    /// elsewhere are not ours to change.
    fn in_challenges(&self, headers: &mut HeaderMap, target: &Target) {
        let own: Vec<HeaderValue> = headers
            .get_all(header::WWW_AUTHENTICATE)
            .iter()
            .map(|value| self.in_challenge(value.as_bytes(), target).unwrap_or_else(|| value.clone()))
            .collect();
        headers.remove(header::WWW_AUTHENTICATE);
        for value in own {
            headers.append(header::WWW_AUTHENTICATE, value);
        }
    }

    fn in_challenge(&self, challenge: &[u8], target: &Target) -> Option<HeaderValue> {
        let named = parameter(challenge)?;
        let url = std::str::from_utf8(&challenge[named.clone()]).ok()?;
        let at_server = target.resolve(url.trim_matches('"'))?;
        let at_server = at_server.path_and_query()?.as_str();
        if !at_server.starts_with("/.well-known/") {
            return None;
        }
        let own = format!("\"{}{at_server}\"", self.origin);
        let whole = [&challenge[..named.start], own.as_bytes(), &challenge[named.end..]].concat();
        HeaderValue::from_bytes(&whole).ok()
    }
}

fn is_metadata(path: &str) -> bool {
    path.strip_prefix(METADATA).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where in a challenge the value of our parameter stands, with its quotes.
fn parameter(challenge: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    while at < challenge.len() {
        match challenge[at] {
            b'"' => at = end_of_quoted(challenge, at),
            byte if is_token(byte) => {
                let name = at..end_of_token(challenge, at);
                at = name.end;
                if !challenge[name].eq_ignore_ascii_case(PARAMETER) {
                    continue;
                }
                at += challenge[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                if challenge.get(at) != Some(&b'=') {
                    continue;
                }
                at += 1;
                at += challenge[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                let end = match challenge.get(at)? {
                    b'"' => end_of_quoted(challenge, at),
                    _ => at + challenge[at..].iter().take_while(|byte| !b", \t".contains(byte)).count(),
                };
                return Some(at..end);
            }
            _ => at += 1,
        }
    }
    None
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn end_of_token(text: &[u8], start: usize) -> usize {
    start + text[start..].iter().take_while(|&&byte| is_token(byte)).count()
}

/// Past the closing quote of what opens at `start`, or past everything.
fn end_of_quoted(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> OwnResource {
        OwnResource { origin: "http://localhost:8888".into(), endpoint: "/mcp", is_asked_for: true }
    }

    fn target(url: &str) -> Target {
        Target::parse(url, HeaderMap::new()).expect("an address")
    }

    #[test]
    fn documents_name_us_and_change_nowhere_else() {
        let check = |document: &'static str, expected: Option<&str>| {
            let changed = own().in_document(&Bytes::from_static(document.as_bytes()));
            assert_eq!(changed.as_deref(), expected.map(str::as_bytes), "{document}");
        };
        check(
            r#"{ "scopes":["resource"] ,"resource" : "https://far/mcp", "x":1e400}"#,
            Some(r#"{ "scopes":["resource"] ,"resource" : "http://localhost:8888/mcp", "x":1e400}"#),
        );
        check(r#"{"nested":{"resource":"https://far/mcp"}}"#, None);
        check("not JSON", None);
    }

    #[test]
    fn challenges_lead_to_us_if_they_led_to_the_server() {
        let check = |challenge: &str, expected: Option<&str>| {
            let changed = own().in_challenge(challenge.as_bytes(), &target("https://far:444/api/mcp"));
            assert_eq!(changed.as_ref().map(HeaderValue::as_bytes), expected.map(str::as_bytes), "{challenge}");
        };
        let there = "https://far:444/.well-known/oauth-protected-resource/api/mcp";
        let here = "http://localhost:8888/.well-known/oauth-protected-resource/api/mcp";
        for (before, after) in
            [("Bearer ", ""), ("Bearer error=\"x\", ", ", scope=\"a b\""), ("Bearer a=\"\\\"\",", "")]
        {
            check(
                &format!("{before}resource_metadata=\"{there}\"{after}"),
                Some(&format!("{before}resource_metadata=\"{here}\"{after}")),
            );
        }
        check(
            &format!("Basic realm=\"x\", Bearer Resource_Metadata = {there}, a=b"),
            Some(&format!("Basic realm=\"x\", Bearer Resource_Metadata = \"{here}\", a=b")),
        );
        for other in [
            "Bearer",
            "Bearer realm=\"resource_metadata=https://far:444/.well-known/x\"",
            "Bearer resource_metadata=\"https://elsewhere/.well-known/oauth-protected-resource\"",
            "Bearer resource_metadata=\"https://far:444/about\"",
            "Bearer resource_metadata=\"unclosed",
            "Bearer resource_metadata",
            "Bearer resource_metadata=",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn our_endpoint_stands_for_the_servers() {
        let check = |path: &str, url: &str, expected: Option<&str>| {
            let at_server = own().path_at(path, &target(url)).map(|uri| uri.to_string());
            assert_eq!(at_server.as_deref(), expected, "{path} at {url}");
        };
        check(
            "/.well-known/oauth-protected-resource/mcp",
            "https://far/a/b?c=d",
            Some("/.well-known/oauth-protected-resource/a/b"),
        );
        check(
            "/.well-known/oauth-protected-resource/mcp",
            "https://far/",
            Some("/.well-known/oauth-protected-resource"),
        );
        check("/.well-known/oauth-protected-resource/a/b", "https://far/a/b", None);
        check("/.well-known/oauth-protected-resource", "https://far/a/b", None);
        check("/.well-known/oauth-authorization-server/mcp", "https://far/a/b", None);
        assert!(is_metadata("/.well-known/oauth-protected-resource"));
        assert!(!is_metadata("/.well-known/oauth-protected-resources"));
    }
}
