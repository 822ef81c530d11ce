//! Who may link to a listener at all. A page in somebody's browser must not reach a server through
//! us, neither directly nor under a name of its own that it points at this machine.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use mcp_engine::entrance::{self, ANONYMOUS, Entrance, Principal, SHARED, Unauthorized};
use mcp_wire::reply::Refusal;
use mcp_wire::{Message, revision};
use subtle::ConstantTimeEq;

use super::heads::is_media_type;
use super::health;

/// Bytes of path and query; beyond them the listener answers 414.
const TARGET_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a request's headers; beyond them the listener answers 431. hyper's reader stops only near it.
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

/// Whether we are well may be asked by anybody, or else by nobody who watches over us.
const OPEN_TO_ALL: [&str; 2] = [health::ALIVE, health::READY];

pub struct Gate {
    listens_on: IpAddr,
    /// What a client must show, where the listener can be reached from elsewhere.
    token: Option<String>,
    /// Where clients are told apart.
    entrance: Option<Rc<Entrance>>,
    /// Whoever shows the token, and everybody where nothing is to be shown.
    shared: Rc<Principal>,
    anonymous: Rc<Principal>,
    /// The last `Host` that was good: nearly all requests give the same.
    good_host: RefCell<Option<HeaderValue>>,
}

/// Who sent a request, as far as its head tells. Nobody yet, if its message may still show a token.
pub type Caller = Option<Rc<Principal>>;

/// Why a request goes no further.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: StatusCode,
    pub refusal: Refusal,
}

impl Gate {
    pub fn new(listens_on: SocketAddr, token: Option<String>, entrance: Option<Rc<Entrance>>) -> Self {
        Self {
            listens_on: listens_on.ip(),
            token,
            entrance,
            shared: Rc::new(Principal::unrestricted(SHARED)),
            anonymous: Rc::new(Principal::unrestricted(ANONYMOUS)),
            good_host: RefCell::default(),
        }
    }

    /// Whether the listener itself asks for credentials, which then go no further.
    pub fn authenticates(&self) -> bool {
        self.token.is_some() || self.entrance.as_ref().is_some_and(|entrance| entrance.asks_for_token())
    }

    /// Whether clients are told apart here, and what they say has to be theirs.
    pub fn has_entrance(&self) -> bool {
        self.entrance.is_some()
    }

    pub fn admit<B>(&self, request: &Request<B>) -> Result<Caller, Refused> {
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
        let is_open = OPEN_TO_ALL.contains(&request.uri().path());
        self.check_host(headers, is_open)?;
        self.check_address(request.uri(), is_open)?;
        self.check_origin(headers)?;
        let caller = if is_open { None } else { self.caller(request.method(), headers)? };
        let has_message = request.method() == Method::POST;
        if has_message && !is_media_type(headers, "application/json") {
            let text = "the body must be application/json";
            return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        Ok(caller)
    }

    /// Whose message this is, and, where messages may show tokens, the message without its own. Where head and
    /// message show one each, both are of the same client.
    pub fn admit_message(&self, caller: Caller, message: &Bytes) -> Result<(Rc<Principal>, Option<Bytes>), Refusal> {
        if self.entrance.is_none() {
            return Ok((caller.ok_or(Unauthorized)?, None));
        }
        let message = Message::new(message.clone());
        let who = match (caller, entrance::shown_in(&message)?) {
            (Some(caller), None) => caller,
            (None, None) => return Err(Refusal::Unauthorized),
            (caller, Some(shown)) => {
                let who = self.who_shows(Some(shown.as_bytes()))?;
                if caller.is_some_and(|caller| !caller.is(&who)) {
                    return Err(Refusal::Unauthorized);
                }
                who
            }
        };
        Ok((who, Some(entrance::without_token(&message))))
    }

    fn check_host(&self, headers: &HeaderMap, is_open: bool) -> Result<(), Refused> {
        let host = headers.get(header::HOST);
        if !is_open && host.is_some() && self.good_host.borrow().as_ref() == host {
            return Ok(());
        }
        let name = host.and_then(|host| host.to_str().ok());
        let Some(name) = name else { return Err(refused(StatusCode::BAD_REQUEST, "a Host header is needed")) };
        self.check_name(name, is_open)?;
        if is_open {
            return Ok(());
        }
        *self.good_host.borrow_mut() = host.cloned();
        Ok(())
    }

    fn check_name(&self, host: &str, is_open: bool) -> Result<(), Refused> {
        let name = host_name(host);
        let is_good = match self.authenticates() {
            // No name was made to lead here, if there is none.
            true if is_open => name.is_some_and(|name| is_local_name(name) || name.parse::<IpAddr>().is_ok()),
            // Whoever shows a token is no page that was lured here.
            true => true,
            false => name.is_some_and(is_local_name),
        };
        if is_good {
            return Ok(());
        }
        Err(refused(StatusCode::FORBIDDEN, "this Host is not served here"))
    }

    /// A whole address in place of a path counts for more than the Host header.
    fn check_address(&self, uri: &Uri, is_open: bool) -> Result<(), Refused> {
        let Some(authority) = uri.authority() else { return Ok(()) };
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(refused(StatusCode::BAD_REQUEST, "the request target has another scheme"));
        }
        self.check_name(authority.as_str(), is_open)
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

    fn caller(&self, method: &Method, headers: &HeaderMap) -> Result<Caller, Refused> {
        let header = headers.get(header::AUTHORIZATION);
        let shown = header.and_then(|header| match header.as_bytes().split_at_checked(7) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(rest),
            _ => None,
        });
        match self.who_shows(shown) {
            Ok(who) => Ok(Some(who)),
            // The message may show it.
            Err(Unauthorized) if self.has_entrance() && header.is_none() && method == Method::POST => Ok(None),
            Err(Unauthorized) => Err(unauthorized()),
        }
    }

    fn who_shows(&self, shown: Option<&[u8]>) -> Result<Rc<Principal>, Unauthorized> {
        if let Some(token) = &self.token
            && bool::from(shown.unwrap_or_default().ct_eq(token.as_bytes()))
        {
            return Ok(Rc::clone(&self.shared));
        }
        match &self.entrance {
            // A token that is asked for here is not given up because nobody asks there.
            Some(entrance) if entrance.asks_for_token() || self.token.is_none() => entrance.admit(shown),
            None if self.token.is_none() => Ok(Rc::clone(&self.anonymous)),
            _ => Err(Unauthorized),
        }
    }
}

pub fn unauthorized() -> Refused {
    Refused { status: StatusCode::UNAUTHORIZED, refusal: Refusal::Unauthorized }
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
    use mcp_engine::entrance::{EntranceSettings, NamedToken};

    use super::*;

    #[track_caller]
    fn check(token: Option<&str>, headers: &[(&str, &str)], expected: u16) {
        let gate = Gate::new(SocketAddr::from(([127, 0, 0, 1], 8888)), token.map(str::to_owned), None);
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

    fn named(name: &str, token: &str) -> NamedToken {
        NamedToken { name: name.into(), token: token.into(), servers: None, tools: None, rate_limit_per_minute: None }
    }

    fn gate(token: Option<&str>, tokens: Vec<NamedToken>) -> Gate {
        let entrance = Entrance::new(&EntranceSettings { tokens, ..EntranceSettings::default() });
        let entrance = Some(Rc::new(entrance.expect("the tokens are good")));
        Gate::new(SocketAddr::from(([127, 0, 0, 1], 8888)), token.map(str::to_owned), entrance)
    }

    /// Who is let in, nobody yet as "?", or the status of a refusal.
    fn admitted(gate: &Gate, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match gate.admit(&request.body(()).expect("a request")) {
            Ok(Some(who)) => who.name.to_string(),
            Ok(None) => "?".into(),
            Err(refused) => refused.status.as_u16().to_string(),
        }
    }

    #[test]
    fn clients_are_told_apart_by_their_tokens() {
        let gate = gate(None, vec![named("ann", "sesame"), named("bob", "open-up")]);
        let local = ("host", "localhost");
        for (method, header, expected) in [
            ("POST", Some("Bearer sesame"), "ann"),
            ("GET", Some("bearer open-up"), "bob"),
            ("DELETE", Some("Bearer open-up"), "bob"),
            ("POST", Some("Bearer wrong"), "401"),
            ("POST", Some("Bearer "), "401"),
            ("POST", Some("Basic sesame"), "401"),
            ("GET", Some("Bearer wrong"), "401"),
            ("GET", None, "401"),
            ("DELETE", None, "401"),
            // Its message may say so.
            ("POST", None, "?"),
        ] {
            let header = header.map(|header| ("authorization", header));
            let headers: Vec<_> = header.into_iter().chain([local]).collect();
            assert_eq!(admitted(&gate, method, "/mcp", &headers), expected, "{method} {headers:?}");
        }
        assert_eq!(admitted(&gate, "GET", "/mcp?access_token=sesame", &[local]), "401");
        let twice = [local, ("authorization", "Bearer sesame"), ("authorization", "Bearer open-up")];
        assert_eq!(admitted(&gate, "GET", "/mcp", &twice), "400");
    }

    #[test]
    fn a_token_is_asked_for_even_if_the_entrance_asks_for_none() {
        let gate = gate(Some("sesame"), Vec::new());
        assert_eq!(admitted(&gate, "GET", "/mcp", &[("host", "a.example")]), "401");
        let shown = [("host", "a.example"), ("authorization", "Bearer sesame")];
        assert_eq!(admitted(&gate, "GET", "/mcp", &shown), SHARED);
        assert_eq!(admitted(&self::gate(None, Vec::new()), "GET", "/mcp", &[("host", "localhost")]), ANONYMOUS);
        assert_eq!(admitted(&self::gate(None, Vec::new()), "GET", "/mcp", &[("host", "a.example")]), "403");
    }

    #[test]
    fn whether_we_are_well_is_told_without_a_token() {
        for gate in [gate(Some("sesame"), Vec::new()), gate(None, vec![named("ann", "sesame")])] {
            for path in OPEN_TO_ALL {
                assert_eq!(admitted(&gate, "GET", path, &[("host", "localhost")]), "?");
                assert_eq!(admitted(&gate, "GET", path, &[("host", "10.0.0.7:8888")]), "?");
                // A name that somebody pointed here is still none of ours, whoever came by it before.
                let shown = [("host", "evil.example"), ("authorization", "Bearer sesame")];
                assert_ne!(admitted(&gate, "GET", "/mcp", &shown), "403");
                assert_eq!(admitted(&gate, "GET", path, &[("host", "evil.example")]), "403");
            }
            assert_eq!(admitted(&gate, "GET", "/healthz/x", &[("host", "localhost")]), "401");
        }
    }

    #[test]
    fn a_message_may_show_its_token() {
        let gate = gate(None, vec![named("ann", "sesame"), named("bob", "open-up")]);
        let ann = || Some(Rc::new(Principal::unrestricted("ann")));
        let check = |caller: Caller, proxy: &str, expected: Result<&str, Refusal>| {
            let message = format!("{{\"id\":1,\"method\":\"ping\",\"params\":{{{proxy}}}}}");
            let admitted = gate.admit_message(caller, &message.into());
            let admitted = admitted.map(|(who, message)| {
                assert_eq!(message.unwrap(), br#"{"id":1,"method":"ping","params":{}}"#[..]);
                who.name.to_string()
            });
            assert_eq!(admitted, expected.map(str::to_owned));
        };
        check(None, r#""proxy":{"authToken":"sesame"}"#, Ok("ann"));
        check(ann(), r#""proxy":{"authToken":"sesame"}"#, Ok("ann"));
        check(ann(), "", Ok("ann"));
        check(None, "", Err(Refusal::Unauthorized));
        check(None, r#""proxy":{"authToken":"wrong"}"#, Err(Refusal::Unauthorized));
        check(ann(), r#""proxy":{"authToken":"open-up"}"#, Err(Refusal::Unauthorized));
        let unclear = Refusal::BadRequest { what: "`params.proxy.authToken` is no text".into() };
        check(ann(), r#""proxy":{"authToken":1}"#, Err(unclear));
    }

    #[test]
    fn bodies_that_a_form_could_send_are_refused() {
        check(None, &[("host", "localhost"), ("content-type", "text/plain")], 400);
        let gate = Gate::new(SocketAddr::from(([127, 0, 0, 1], 8888)), None, None);
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let request = Request::post("/mcp").header("host", "localhost").header("content-type", wrong);
            let refused = gate.admit(&request.body(()).expect("a request")).expect_err("it is refused");
            assert_eq!(refused.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
    }
}
