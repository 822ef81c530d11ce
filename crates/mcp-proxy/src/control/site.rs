//! The routes, and what every answer carries.

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::{delete, get, patch, post, put};
use mcp_control::api::{ApiError, Code};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

use super::gate::Gate;
use super::reply::{Json, Refusal};
use super::shared::Shared;
use super::strangers::Visitor;
use super::{act, asks, exchange, explain, look, openapi, policy, request, servers};

/// Where a page trades its token for a cookie.
pub(super) const LOGIN: &str = "/v1/login";
/// The longest request target that is looked at: a filter, escaped.
const TARGET_BYTES_MAX: usize = 56 * 1024;
/// Time for a token to arrive: a page sends it with the head.
const LOGIN_FOR: Duration = Duration::from_secs(3);

/// Nothing of ours is to be framed, guessed at, kept or fetched by others.
const ALWAYS: [(HeaderName, HeaderValue); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// How a request came in.
#[derive(Clone)]
pub(super) enum Door {
    /// The private socket: the system has said who it is.
    Socket,
    Tcp(Arc<Gate>),
}

pub(super) fn router(shared: Shared, door: Door) -> Router {
    Router::new()
        .route("/openapi.json", get(openapi::document))
        .route("/v1/instance", get(look::instance))
        .route("/v1/snapshot", get(look::snapshot))
        .route("/v1/messages", get(look::messages))
        .route("/v1/messages/{sequence}", get(look::message))
        .route("/v1/messages/{sequence}/exchange", get(exchange::exchange))
        .route("/v1/messages/{sequence}/explain", get(explain::explain))
        .route("/v1/messages/{sequence}/mark", put(act::mark))
        .route("/v1/messages/{sequence}/replay", post(act::replay))
        .route("/v1/events", get(look::events))
        .route("/v1/held", get(look::held))
        .route("/v1/held/forward", post(act::forward_all))
        .route("/v1/held/{sequence}", get(look::held_message))
        .route("/v1/held/{sequence}/forward", post(act::forward))
        .route("/v1/held/{sequence}/drop", post(act::drop_held))
        .route("/v1/held/{sequence}/modify", post(act::modify))
        .route("/v1/held/{sequence}/answer", post(act::answer))
        .route("/v1/held/{sequence}/approve", post(asks::approve))
        .route("/v1/held/{sequence}/deny", post(asks::deny))
        .route("/v1/policy", get(policy::policy))
        .route("/v1/servers", get(servers::servers))
        .route("/v1/servers/{id}/restart", post(servers::restart))
        .route("/v1/servers/{id}/disable", post(servers::disable))
        .route("/v1/servers/{id}/enable", post(servers::enable))
        .route("/v1/mode", put(act::mode))
        .route("/v1/breakpoints", get(look::breakpoints).post(act::add_breakpoint))
        .route("/v1/breakpoints/{name}", delete(act::remove_breakpoint))
        .route("/v1/notes", patch(act::notes))
        .route("/v1/save", post(act::save))
        .route("/v1/lease", get(look::lease).post(act::take_lease).delete(act::give_up_lease))
        .route(LOGIN, post(login))
        .fallback(|| async { Refusal::not_found("there is nothing at this path; /openapi.json says what there is") })
        .method_not_allowed_fallback(|| async {
            let what = "this path does not take this method; /openapi.json says which it takes";
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, Code::MethodNotAllowed, what)
        })
        .layer(middleware::from_fn_with_state(door.clone(), admit))
        .layer(Extension(door))
        .with_state(shared)
}

/// Everything passes here first, whatever it is.
async fn admit(State(door): State<Door>, request: Request, next: Next) -> Response<Body> {
    let mut response = match check(&door, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            let mut response = refusal.into_response();
            if response.status() == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            response
        }
    };
    response.headers_mut().extend(ALWAYS);
    response
}

fn check(door: &Door, request: &Request) -> Result<(), Refusal> {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    if !target.starts_with('/') || target.len() > TARGET_BYTES_MAX {
        return Err(Refusal::bad("the request target is no path, or too long"));
    }
    match door {
        Door::Socket => Ok(()),
        Door::Tcp(gate) => {
            let has_shown = gate.admit(request.method(), request.uri(), request.headers())?;
            let visitor = request.extensions().get::<Arc<Visitor>>().filter(|_| has_shown);
            visitor.map_or(Ok(()), |visitor| visitor.let_in())
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    /// The one shown on start. It can be traded once, and is good for nothing after.
    #[schema(max_length = 128)]
    token: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct LoggedIn {
    cookie: bool,
}

/// Trade the token shown on start for a cookie, over TCP
#[utoipa::path(post, path = "/v1/login", tag = "look", request_body = Login, responses((status = 200, body = LoggedIn), (status = "default", body = ApiError)))]
pub(super) async fn login(Extension(door): Extension<Door>, request: Request) -> Result<Response<Body>, Refusal> {
    let login: Login = request::small(request, LOGIN_FOR).await?;
    let Door::Tcp(gate) = door else { return Err(Refusal::not_found("on this socket no token is needed")) };
    let cookie = gate.log_in(&login.token)?;
    Ok(([(header::SET_COOKIE, cookie)], Json(LoggedIn { cookie: true })).into_response())
}
