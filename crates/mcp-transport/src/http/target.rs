//! The address of a server, and what every request to it carries.

use std::fmt;

use hyper::Uri;
pub use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::heads::is_framing;

/// Where a server listens.
#[derive(Clone, Debug)]
pub struct Target {
    pub host: String,
    pub port: u16,
    pub tls: bool,
    /// The value of the `Host` header.
    pub authority: HeaderValue,
    /// The endpoint as a request line names it.
    endpoint: Uri,
    /// Headers the server needs besides the client's, from the command line.
    pub added: HeaderMap,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadTarget {
    #[error("it is not an address such as https://host/mcp")]
    NotAnAddress,
    #[error("only http:// and https:// can be spoken")]
    Scheme,
    #[error("a name and a password do not belong into it; give --header instead")]
    Credentials,
}

impl Target {
    pub fn parse(url: &str, added: HeaderMap) -> Result<Self, BadTarget> {
        // What follows `#` is for browsers.
        let url = url.split('#').next().unwrap_or_default();
        let uri: Uri = url.parse().map_err(|_| BadTarget::NotAnAddress)?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(BadTarget::Scheme),
            None => return Err(BadTarget::NotAnAddress),
        };
        let authority = uri.authority().ok_or(BadTarget::NotAnAddress)?;
        if authority.as_str().contains('@') {
            return Err(BadTarget::Credentials);
        }
        if authority.host().is_empty() {
            return Err(BadTarget::NotAnAddress);
        }
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let endpoint = uri.path_and_query().cloned().map_or(Uri::from_static("/"), Uri::from);
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port,
            tls,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| BadTarget::NotAnAddress)?,
            endpoint,
            added,
        })
    }

    fn path(&self) -> &str {
        self.endpoint.path()
    }

    /// The endpoint as a request line names it; the query of a client's request is added to its own.
    pub fn endpoint(&self, query: Option<&str>) -> Uri {
        let Some(query) = query else { return self.endpoint.clone() };
        let target = match self.endpoint.query() {
            None => format!("{}?{query}", self.path()),
            Some(own) => format!("{}?{own}&{query}", self.path()),
        };
        target.parse().unwrap_or_else(|_| Uri::from_static("/"))
    }

    /// What `reference`, an endpoint that the server named, means as seen from here. `None` if it
    /// leads to another origin: nobody may send us there.
    pub fn resolve(&self, reference: &str) -> Option<Uri> {
        let reference = reference.trim();
        if reference.starts_with("http://") || reference.starts_with("https://") {
            let other = Self::parse(reference, HeaderMap::new()).ok()?;
            let same = other.tls == self.tls && other.port == self.port && other.host.eq_ignore_ascii_case(&self.host);
            return same.then(|| other.endpoint(None));
        }
        // Another scheme, or what some take for another host.
        let first_segment = reference.split(['/', '?', '#']).next().unwrap_or_default();
        if reference.starts_with("//")
            || reference.is_empty()
            || first_segment.contains(':')
            || reference.contains('\\')
        {
            return None;
        }
        let absolute = match reference.strip_prefix('?') {
            Some(query) => format!("{}?{query}", self.path()),
            None if reference.starts_with('/') => reference.to_owned(),
            None => format!("{}{reference}", &self.path()[..=self.path().rfind('/')?]),
        };
        absolute.parse().ok()
    }

    /// Adds what the server needs; it wins over what the client sent.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        headers.insert(hyper::header::HOST, self.authority.clone());
        for name in self.added.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.added {
            headers.append(name.clone(), value.clone());
        }
    }
}

/// `NAME: VALUE` as the command line gives it.
pub fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME: VALUE")?;
    let name: HeaderName = name.trim().parse().map_err(|_| "that is no header name".to_owned())?;
    if is_framing(&name) {
        return Err("it says how a request is sent, which only the proxy knows; leave it out".into());
    }
    let value = value.trim();
    let is_bare_scheme = name == hyper::header::AUTHORIZATION
        && ["basic", "bearer", "token"].iter().any(|scheme| value.eq_ignore_ascii_case(scheme));
    if value.is_empty() || is_bare_scheme {
        return Err("the value is empty; an unset variable, perhaps".into());
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| "that is no header value".to_owned())?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Without its query, which may hold a secret.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", String::from_utf8_lossy(self.authority.as_bytes()), self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url, HeaderMap::new()).expect("an address")
    }

    #[test]
    fn addresses_are_taken_apart() {
        let it = target("https://Example.com/a/mcp?key=1#x");
        assert_eq!((it.host.as_str(), it.port, it.tls), ("Example.com", 443, true));
        assert_eq!(it.endpoint(None), "/a/mcp?key=1");
        assert_eq!(it.endpoint(Some("b=2")), "/a/mcp?key=1&b=2");
        assert_eq!(target("http://[::1]:81/mcp").host, "::1");
        assert_eq!(target("http://h").endpoint(None), "/");
        for wrong in ["", "/mcp", "localhost:80/mcp", "http://", "ftp://h/", "http://u:p@h/", "http://h h/"] {
            assert!(Target::parse(wrong, HeaderMap::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_that_frame_a_request_cannot_be_given() {
        for name in ["Content-Length", "transfer-encoding", "Connection", "Keep-Alive", "TE", "Trailer", "UPGRADE"] {
            assert!(parse_header(&format!("{name}: 5")).is_err(), "{name}");
        }
        assert!(parse_header("Proxy-Connection : close").is_err());
        for fine in ["Host: a.example", "Content-Language: de", "Proxy-Authorization: Basic abc", "X-Key: a:b"] {
            assert!(parse_header(fine).is_ok(), "{fine}");
        }
    }

    #[test]
    fn endpoints_stay_on_their_origin() {
        let it = target("http://h:8080/a/sse");
        for (reference, expected) in [
            ("/messages?s=1", Some("/messages?s=1")),
            ("messages?s=1", Some("/a/messages?s=1")),
            ("?s=1", Some("/a/sse?s=1")),
            ("http://H:8080/m?s=1", Some("/m?s=1")),
            ("http://h/m", None),
            ("https://h:8080/m", None),
            ("//evil/m", None),
            ("/\\evil/m", None),
            ("file:///etc/passwd", None),
            ("m?next=http://h/", Some("/a/m?next=http://h/")),
            ("", None),
        ] {
            assert_eq!(it.resolve(reference).map(|uri| uri.to_string()).as_deref(), expected, "{reference}");
        }
    }
}
