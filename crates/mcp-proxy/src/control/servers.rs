//! The servers of a gateway in the words of the control API, and what can be wanted of one.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use mcp_control::api::{self, ApiError, Hand, Server, ServerCalls, ServerState, Servers};
use mcp_gateway::board::{Board, NotTaken, Order, ServerOrder, ServerView};
use mcp_wire::visible::visible;

use super::look::Name;
use super::reply::{Answer, Json, Refusal};
use super::request::{Query, no_body};
use super::shared::Shared;

/// Time for the gateway to carry out an order: it takes orders four times a second.
const ORDER_FOR: Duration = Duration::from_secs(10);

/// The servers of a gateway
///
/// 404 on an instance that has one server only.
#[utoipa::path(get, path = "/v1/servers", tag = "look", responses((status = 200, body = Servers), (status = "default", body = ApiError)))]
pub(super) async fn servers(State(shared): State<Shared>) -> Answer<Servers> {
    let servers = board(&shared)?.servers();
    Ok(Json(Servers { servers: servers.into_iter().map(told).collect() }))
}

/// End a server of a gateway, and start it again for whoever uses it
#[utoipa::path(post, path = "/v1/servers/{id}/restart", tag = "act", params(("id" = String, Path), Hand), responses((status = 200, body = Server), (status = "default", body = ApiError)))]
pub(super) async fn restart(
    State(shared): State<Shared>,
    id: Name,
    Query(hand): Query<Hand>,
    body: Body,
) -> Answer<api::Server> {
    order(&shared, id.0, ServerOrder::Restart, &hand, body).await
}

/// End a server of a gateway, and offer nothing of it any more
#[utoipa::path(post, path = "/v1/servers/{id}/disable", tag = "act", params(("id" = String, Path), Hand), responses((status = 200, body = Server), (status = "default", body = ApiError)))]
pub(super) async fn disable(
    State(shared): State<Shared>,
    id: Name,
    Query(hand): Query<Hand>,
    body: Body,
) -> Answer<api::Server> {
    order(&shared, id.0, ServerOrder::Disable, &hand, body).await
}

/// Have a server of a gateway take part again
#[utoipa::path(post, path = "/v1/servers/{id}/enable", tag = "act", params(("id" = String, Path), Hand), responses((status = 200, body = Server), (status = "default", body = ApiError)))]
pub(super) async fn enable(
    State(shared): State<Shared>,
    id: Name,
    Query(hand): Query<Hand>,
    body: Body,
) -> Answer<api::Server> {
    order(&shared, id.0, ServerOrder::Enable, &hand, body).await
}

/// Has it done, and tells how the server is then.
async fn order(shared: &Shared, id: String, what: ServerOrder, hand: &Hand, body: Body) -> Answer<api::Server> {
    no_body(body).await?;
    shared.leases.permit(hand)?;
    let board = board(shared)?;
    let is_disabled = board.servers().iter().any(|it| it.id == id && it.state == ServerState::Disabled);
    if is_disabled && what == ServerOrder::Restart {
        return Err(Refusal::not_possible(format!("server `{id}` is disabled; it has to be enabled first")));
    }
    let number = board.order(Order { server: id.clone(), what }).map_err(|why| match why {
        NotTaken::NoSuchServer => Refusal::not_found(format!("there is no server `{}`", visible(&id))),
        NotTaken::TooMany => Refusal::too_many("too much is wanted of the servers at once"),
    })?;
    let mut ending = shared.ending.clone();
    tokio::select! {
        done = tokio::time::timeout(ORDER_FOR, board.obeyed(number)) => {
            done.map_err(|_| Refusal::too_many("the gateway is busy; it may still do what it was asked"))?;
        }
        _ = ending.wait_for(|is_ending| *is_ending) => return Err(Refusal::ending()),
    }
    let server = board.servers().into_iter().find(|server| server.id == id);
    server.map(|server| Json(told(server))).ok_or_else(Refusal::ending)
}

fn board(shared: &Shared) -> Result<&Board, Refusal> {
    shared.board.as_ref().ok_or_else(|| Refusal::not_found("this instance is no gateway: it has one server only"))
}

fn told(server: ServerView) -> api::Server {
    let count = |count: usize| count as u64;
    let calls = server.calls;
    api::Server {
        id: server.id,
        state: server.state,
        era: server.era,
        transport: server.transport,
        tools: server.tools.map(count),
        prompts: server.prompts.map(count),
        resources: server.resources.map(count),
        instances: count(server.instances),
        clients: count(server.clients),
        in_flight: count(server.in_flight),
        restarts: server.restarts,
        retry_after_ms: server.retry_after_ms,
        why: server.why,
        last_words: server.last_words,
        calls: ServerCalls {
            total: calls.total,
            errors: calls.errors,
            per_minute: calls.per_minute,
            latency_us: calls.latency_us,
            longest_us: calls.longest_us,
        },
    }
}
