//! Who may speak over TCP. Every page in the user's browser can reach this port, and every program
//! of every user of this machine; none of them may do anything without the token, and no page that is
//! not ours even with the cookie. The socket needs none of this: the system says who connects.

use std::sync::Mutex;
use std::sync::PoisonError;

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use mcp_control::api::Code;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::reply::Refusal;

/// What decides something, and therefore may stand there once only.
const ONCE: [HeaderName; 5] =
    [header::HOST, header::ORIGIN, header::AUTHORIZATION, header::CONTENT_TYPE, header::CONTENT_LENGTH];
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Pages that are logged in at once; the one that logged in first is forgotten.
const COOKIES_MAX: usize = 16;

pub(super) struct Gate {
    port: u16,
    secrets: Mutex<Secrets>,
}

struct Secrets {
    /// Shown on start. Good as a bearer token until a page has traded it for a cookie.
    token: Option<String>,
    cookies: Vec<String>,
}

/// How a request showed that it may.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Bearer,
    Cookie,
}

impl Gate {
    /// A gate for this port, and the token that opens it.
    pub(super) fn new(port: u16) -> (Self, String) {
        let token = random();
        let secrets = Mutex::new(Secrets { token: Some(token.clone()), cookies: Vec::new() });
        (Self { port, secrets }, token)
    }

    /// Lets a request through, or says why not. `/v1/login` is for those who have nothing to show yet:
    /// whether it has shown something is returned.
    pub(super) fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<bool, Refusal> {
        if let Some(twice) = ONCE.iter().find(|name| headers.get_all(*name).iter().nth(1).is_some()) {
            return Err(Refusal::bad(format!("the header `{twice}` stands there twice")));
        }
        self.check_host(uri, headers)?;
        let from_own_page = self.check_origin(headers)?;
        if uri.path() == super::site::LOGIN {
            return Ok(false);
        }
        match self.shown(headers) {
            Some(Shown::Bearer) => Ok(true),
            // A cookie is sent by the browser, whoever made it send the request.
            Some(Shown::Cookie) if from_own_page || method == Method::GET => Ok(true),
            Some(Shown::Cookie) => Err(Refusal::forbidden("an Origin header is needed")),
            None => {
                Err(Refusal::new(StatusCode::UNAUTHORIZED, Code::Unauthorized, "this needs the token shown on start"))
            }
        }
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| Refusal::bad("a Host header is needed"))?;
        // A whole address in place of a path counts for more than the header.
        let given = uri.authority().map(|authority| authority.as_str());
        match [Some(host), given].into_iter().flatten().all(|name| self.is_own(name)) {
            true => Ok(()),
            false => Err(Refusal::forbidden("this Host is not served here")),
        }
    }

    /// Whether the request comes from a page of ours; from another page it comes no further.
    fn check_origin(&self, headers: &HeaderMap) -> Result<bool, Refusal> {
        let refused = || Refusal::forbidden("this Origin is not served here");
        if let Some(site) = headers.get(SEC_FETCH_SITE)
            && site != "same-origin"
            && site != "none"
        {
            return Err(refused());
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(false) };
        let name = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        match name.is_some_and(|name| self.is_own(name)) {
            true => Ok(true),
            false => Err(refused()),
        }
    }

    fn is_own(&self, authority: &str) -> bool {
        let Some((name, port)) = authority.rsplit_once(':') else { return false };
        let is_local = ["127.0.0.1", "[::1]"].contains(&name) || name.eq_ignore_ascii_case("localhost");
        is_local && port == self.port.to_string()
    }

    fn shown(&self, headers: &HeaderMap) -> Option<Shown> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(authorization) = headers.get(header::AUTHORIZATION) {
            let (scheme, shown) = authorization.as_bytes().split_at_checked(7)?;
            let is_good = scheme.eq_ignore_ascii_case(b"bearer ")
                && secrets.token.as_ref().is_some_and(|token| is_same(shown, token));
            return is_good.then_some(Shown::Bearer);
        }
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut shown = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| {
            let (its_name, value) = cookie.trim().split_once('=')?;
            (its_name == name).then_some(value)
        });
        let is_good = |shown: &str| secrets.cookies.iter().any(|cookie| is_same(shown.as_bytes(), cookie));
        shown.any(is_good).then_some(Shown::Cookie)
    }

    /// Trades the token for a cookie, once.
    pub(super) fn log_in(&self, shown: &str) -> Result<HeaderValue, Refusal> {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !secrets.token.as_ref().is_some_and(|token| is_same(shown.as_bytes(), token)) {
            let what = "this token is not the one shown on start, or was used already";
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, Code::Unauthorized, what));
        }
        secrets.token = None;
        let cookie = random();
        let header = format!("{}={cookie}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name());
        secrets.cookies.push(cookie);
        if secrets.cookies.len() > COOKIES_MAX {
            secrets.cookies.remove(0);
        }
        HeaderValue::from_str(&header).map_err(|_| Refusal::internal("a cookie cannot be made"))
    }

    /// Browsers do not keep ports apart, so that the name has to.
    fn cookie_name(&self) -> String {
        format!("mcp_proxy_{}", self.port)
    }
}

fn is_same(shown: &[u8], secret: &str) -> bool {
    bool::from(shown.ct_eq(secret.as_bytes()))
}

/// 244 random bits.
pub(super) fn random() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: (&str, &str) = ("host", "127.0.0.1:4000");
    const OWN: (&str, &str) = ("origin", "http://localhost:4000");

    fn headers(of: &[(&str, &str)]) -> HeaderMap {
        let named = |name: &str| HeaderName::from_bytes(name.as_bytes()).unwrap();
        of.iter().map(|(name, value)| (named(name), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[track_caller]
    fn check(gate: &Gate, method: Method, of: &[(&str, &str)], expected: u16) {
        let mut map = HeaderMap::new();
        for (name, value) in of {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let admitted = gate.admit(&method, &Uri::from_static("/v1/instance"), &map);
        assert_eq!(admitted.err().map_or(200, |refusal| refusal.status.as_u16()), expected, "{of:?}");
    }

    #[test]
    fn only_its_own_names_are_served() {
        let (gate, token) = Gate::new(4000);
        let token = &*format!("Bearer {token}");
        let shown = ("authorization", token);
        for host in ["127.0.0.1:4000", "localhost:4000", "LocalHost:4000", "[::1]:4000"] {
            check(&gate, Method::GET, &[("host", host), shown], 200);
            check(&gate, Method::GET, &[HOST, ("origin", &format!("http://{host}")), shown], 200);
        }
        for host in [
            "evil.example:4000",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:4001",
            "127.0.0.1:04000",
            "localhost.:4000",
            "",
            "127.0.0.1.evil.example:4000",
            "evil@127.0.0.1:4000",
            "0:4000",
            "127.1:4000",
            "[::ffff:127.0.0.1]:4000",
        ] {
            check(&gate, Method::GET, &[("host", host), shown], 403);
            check(&gate, Method::GET, &[HOST, ("origin", &format!("http://{host}")), shown], 403);
        }
        for origin in ["null", "https://127.0.0.1:4000", "http://127.0.0.1:4000/", "file://", "127.0.0.1:4000"] {
            check(&gate, Method::GET, &[HOST, ("origin", origin), shown], 403);
        }
        check(&gate, Method::GET, &[HOST, ("sec-fetch-site", "cross-site"), shown], 403);
        check(&gate, Method::GET, &[HOST, ("sec-fetch-site", "same-site"), shown], 403);
        check(&gate, Method::GET, &[shown], 400);
        check(&gate, Method::GET, &[HOST, HOST, shown], 400);
        check(&gate, Method::GET, &[HOST, shown, shown], 400);
        let elsewhere = Uri::from_static("http://evil.example:4000/v1/instance");
        let refused = gate.admit(&Method::GET, &elsewhere, &headers(&[HOST, shown])).unwrap_err();
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }

    #[test]
    fn nothing_is_open_without_the_token() {
        let (gate, token) = Gate::new(4000);
        check(&gate, Method::GET, &[HOST], 401);
        for wrong in ["Bearer ", "Bearer x", &token, &format!("Basic {token}"), &format!("Bearer {token} "), "B"] {
            check(&gate, Method::GET, &[HOST, ("authorization", wrong)], 401);
        }
        check(&gate, Method::GET, &[HOST, ("cookie", &format!("mcp_proxy_4000={token}"))], 401);
    }

    #[test]
    fn a_token_is_traded_once_and_a_cookie_needs_our_page() {
        let (gate, token) = Gate::new(4000);
        assert!(gate.log_in("x").is_err());
        let cookie = gate.log_in(&token).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        let cookie = ("cookie", cookie.split(';').next().unwrap());
        check(&gate, Method::GET, &[HOST, cookie], 200);
        check(&gate, Method::POST, &[HOST, cookie], 403);
        check(&gate, Method::DELETE, &[HOST, cookie], 403);
        check(&gate, Method::POST, &[HOST, cookie, OWN], 200);
        check(&gate, Method::POST, &[HOST, cookie, ("origin", "http://evil.example")], 403);
        assert!(gate.log_in(&token).is_err());
        check(&gate, Method::GET, &[HOST, ("authorization", &format!("Bearer {token}"))], 401);
    }
}
