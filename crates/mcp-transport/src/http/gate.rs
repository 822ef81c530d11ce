//! Who may talk to a listener at all. A page in somebody's browser must not reach a server through
//! us, neither directly nor under a name of its own that it points at this machine.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use mcp_wire::reply::Refusal;
use mcp_wire::revision;
use subtle::ConstantTimeEq;

use super::heads::is_media_type;

/// The longest request target that is looked at.
const TARGET_BYTES_MAX: usize = 8 * 1024;
/// The largest header section. What reads it stops near there only.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Headers that decide something and therefore may stand there once only.
const ONCE: [HeaderName; 6] = [
    header::HOST,
    header::ORIGIN,
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
    HeaderName::from_static(revision::SESSION_HEADER),
    HeaderName::from_static(revision::LAST_EVENT_HEADER),
];

pub struct Gate {
    listens_on: IpAddr,
    /// What a client must show, where the listener can be reached from elsewhere.
    token: Option<String>,
    /// The last `Host` that was good: nearly all requests give the same.
    good_host: RefCell<Option<HeaderValue>>,
}

/// Why a request goes no further.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: StatusCode,
    pub refusal: Refusal,
}

impl Gate {
    pub fn new(listens_on: SocketAddr, token: Option<String>) -> Self {
        Self { listens_on: listens_on.ip(), token, good_host: RefCell::default() }
    }

    /// Whether the listener itself asks for credentials, which then go no further.
    pub fn authenticates(&self) -> bool {
        self.token.is_some()
    }

    pub fn admit<B>(&self, request: &Request<B>) -> Result<(), Refused> {
        let headers = request.headers();
        let Some(target) = request.uri().path_and_query() else {
            return Err(refused(StatusCode::BAD_REQUEST, "the request target is no path"));
        };
        if target.as_str().len() > TARGET_BYTES_MAX {
            return Err(refused(StatusCode::URI_TOO_LONG, "the request target is too long"));
        }
        if headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>() > HEAD_BYTES_MAX {
            return Err(refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too large"));
        }
        // Nearly always every header stands there once, and that is known without a search.
        if headers.len() > headers.keys_len()
            && let Some(twice) = ONCE.iter().find(|name| headers.get_all(*name).iter().nth(1).is_some())
        {
            return Err(refused(StatusCode::BAD_REQUEST, &format!("the header `{twice}` stands there twice")));
        }
        if headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH) {
            return Err(refused(StatusCode::BAD_REQUEST, "the length of the body is given in two ways"));
        }
        self.check_host(headers)?;
        self.check_address(request.uri())?;
        self.check_origin(headers)?;
        self.check_token(headers)?;
        let has_message = request.method() == Method::POST;
        if has_message && !is_media_type(headers, "application/json") {
            let text = "the body must be application/json";
            return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        Ok(())
    }

    fn check_host(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let host = headers.get(header::HOST);
        if host.is_some() && self.good_host.borrow().as_ref() == host {
            return Ok(());
        }
        let name = host.and_then(|host| host.to_str().ok());
        let Some(name) = name else { return Err(refused(StatusCode::BAD_REQUEST, "a Host header is needed")) };
        self.check_name(name)?;
        *self.good_host.borrow_mut() = host.cloned();
        Ok(())
    }

    fn check_name(&self, host: &str) -> Result<(), Refused> {
        // Whoever shows the token is no page that was lured here.
        if self.token.is_some() || host_name(host).is_some_and(is_local_name) {
            return Ok(());
        }
        Err(refused(StatusCode::FORBIDDEN, "this Host is not served here"))
    }

    /// A whole address in place of a path counts for more than the Host header.
    fn check_address(&self, uri: &Uri) -> Result<(), Refused> {
        let Some(authority) = uri.authority() else { return Ok(()) };
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(refused(StatusCode::BAD_REQUEST, "the request target has another scheme"));
        }
        self.check_name(authority.as_str())
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let name = name.and_then(host_name);
        let is_own = |name: &str| name.parse().is_ok_and(|address: IpAddr| address == self.listens_on);
        match name {
            Some(name) if is_local_name(name) || is_own(name) => Ok(()),
            _ => Err(refused(StatusCode::FORBIDDEN, "this Origin is not served here")),
        }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(token) = &self.token else { return Ok(()) };
        let shown = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
        let shown = match shown.split_at_checked(7) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => rest,
            _ => b"",
        };
        if bool::from(shown.ct_eq(token.as_bytes())) {
            return Ok(());
        }
        Err(Refused { status: StatusCode::UNAUTHORIZED, refusal: Refusal::Unauthorized })
    }
}

pub fn refused(status: StatusCode, what: &str) -> Refused {
    Refused { status, refusal: Refusal::BadRequest { what: what.to_owned() } }
}

/// The name in `name`, `name:port` and `[v6]:port`. What is none of these names nobody: readers
/// disagree on what it means.
fn host_name(authority: &str) -> Option<&str> {
    let (name, rest) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

fn is_local_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(token: Option<&str>, headers: &[(&str, &str)], expected: u16) {
        let gate = Gate::new(SocketAddr::from(([127, 0, 0, 1], 8888)), token.map(str::to_owned));
        let mut request = Request::post("/mcp").header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let status = gate.admit(&request.body(()).expect("a request")).err().map_or(200, |it| it.status.as_u16());
        assert_eq!(status, expected, "{headers:?}");
    }

    #[test]
    fn only_local_names_are_served() {
        for host in ["localhost", "localhost:8888", "LOCALHOST", "127.0.0.1:1", "[::1]:8888", "[::1]", "127.8.8.8"] {
            check(None, &[("host", host)], 200);
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "0x7f000001", "[::1"] {
            check(None, &[("host", host)], 403);
        }
        for host in ["localhost:80@evil.example", "[::1].evil.example", "localhost:x", "localhost/evil.example"] {
            check(None, &[("host", host)], 403);
            check(None, &[("host", "localhost"), ("origin", &format!("http://{host}"))], 403);
        }
        check(None, &[], 400);
        check(None, &[("host", "localhost"), ("host", "localhost")], 400);
    }

    #[test]
    fn only_local_pages_are_served() {
        for origin in ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:3000"] {
            check(None, &[("host", "localhost"), ("origin", origin)], 200);
        }
        for origin in ["null", "", "http://evil.example", "http://localhost.evil.example", "file://", "localhost"] {
            check(None, &[("host", "localhost"), ("origin", origin)], 403);
        }
    }

    #[test]
    fn a_token_is_asked_for_where_one_is_set() {
        check(Some("sesame"), &[("host", "a.example")], 401);
        check(Some("sesame"), &[("host", "a.example"), ("authorization", "Bearer sesam")], 401);
        check(Some("sesame"), &[("host", "a.example"), ("authorization", "bearer sesame")], 200);
    }

    #[test]
    fn bodies_that_a_form_could_send_are_refused() {
        check(None, &[("host", "localhost"), ("content-type", "text/plain")], 400);
        let gate = Gate::new(SocketAddr::from(([127, 0, 0, 1], 8888)), None);
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let request = Request::post("/mcp").header("host", "localhost").header("content-type", wrong);
            let refused = gate.admit(&request.body(()).expect("a request")).expect_err("it is refused");
            assert_eq!(refused.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
    }
}
