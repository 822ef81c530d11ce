//! Whether a gateway is well, for whatever watches over it: `/healthz` says that the process serves, and
//! `/readyz` whether its servers do. Anybody may ask, so nobody is told more than names.

use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use mcp_link::Backend;
use serde_json::json;

use super::body::ToClient;
use super::relay::json_response;
use super::site::{not_allowed, plain};

pub const ALIVE: &str = "/healthz";
pub const READY: &str = "/readyz";

pub fn answer(backend: &dyn Backend, parts: &Parts) -> Response<ToClient> {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    let mut response = match parts.uri.path() {
        READY => ready(backend),
        _ => plain(StatusCode::OK, "ok"),
    };
    // How it is now is no answer to who asks later.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn ready(backend: &dyn Backend) -> Response<ToClient> {
    let missing: Vec<_> = (backend.unready().into_iter())
        .map(|server| json!({ "id": server.id, "state": server.state, "retry_after_ms": server.retry_after_ms }))
        .collect();
    let status = if missing.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({ "ready": missing.is_empty(), "servers": missing });
    json_response(status, Some(body.to_string().into()))
}
