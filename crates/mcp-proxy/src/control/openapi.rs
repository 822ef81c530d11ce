//! The OpenAPI document, made of the types and the routes.

use axum::response::IntoResponse;
use mcp_control::api;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::reply::Json;
use super::{act, asks, exchange, explain, look, policy, servers, site};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "mcp-proxy control API",
        description = "Watch a running mcp-proxy, hold, change and release messages. On the instance's private socket, and on loopback TCP with `--control-port`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        look::instance, look::snapshot, look::messages, look::message, exchange::exchange, explain::explain, look::events, look::held, look::held_message,
        look::breakpoints, look::lease, act::forward, act::forward_all, act::drop_held, act::modify, act::answer,
        asks::approve, asks::deny, policy::policy, servers::servers, servers::restart, servers::disable, servers::enable,
        act::mode, act::add_breakpoint, act::remove_breakpoint, act::replay, act::mark, act::notes, act::save, act::take_lease,
        act::give_up_lease, site::login,
    ),
    components(schemas(
        api::Ended, api::Gap, api::Outcome, api::OutcomeKind, api::Marked, api::Verdict, api::Lease, api::Owner, api::MessageKind
    )),
    modifiers(&Doors),
    security(("token" = [])),
    tags(
        (name = "look", description = "What can be seen; changes nothing."),
        (name = "act", description = "What can be done. Somebody else's lease refuses it with 423."),
        (name = "lease", description = "One face at a time may act."),
    ),
)]
struct Document;

/// How one shows that one may. On the private socket nothing is asked for.
struct Doors;

impl Modify for Doors {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let mut token = Http::new(HttpAuthScheme::Bearer);
        token.description = Some("Over TCP: the token shown on start.".into());
        document.components.get_or_insert_default().add_security_scheme("token", SecurityScheme::Http(token));
    }
}

pub(super) async fn document() -> impl IntoResponse {
    Json(Document::openapi())
}
