//! What can be seen: each of these changes nothing.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Response;
use axum::http::StatusCode;
use mcp_control::api::{
    ApiError, Breakpoints, Code, EventsQuery, Held, HeldList, Instance, LeaseState, Message, Page, PageQuery, Snapshot,
};
use mcp_filter::Filter;

use super::act::no_message;
use super::hub::PER_SECOND_MAX;
use super::reply::{Answer, Json, Refusal};
use super::request::{Query, Sequence};
use super::shared::Shared;
use super::{history, holds, stream, tell};

/// Who this is
#[utoipa::path(get, path = "/v1/instance", tag = "look", responses((status = 200, body = Instance), (status = "default", body = ApiError)))]
pub(super) async fn instance(State(shared): State<Shared>) -> Answer<Instance> {
    let standing = shared.standing().await?;
    Ok(Json(shared.instance(&standing)))
}

/// Everything but the messages
#[utoipa::path(get, path = "/v1/snapshot", tag = "look", responses((status = 200, body = Snapshot), (status = "default", body = ApiError)))]
pub(super) async fn snapshot(State(shared): State<Shared>) -> Answer<Snapshot> {
    let standing = shared.standing().await?;
    Ok(Json(stream::snapshot(&shared, &standing).await))
}

/// A page of the messages that have passed
#[utoipa::path(get, path = "/v1/messages", tag = "look", params(PageQuery), responses((status = 200, body = Page), (status = "default", body = ApiError)))]
pub(super) async fn messages(State(shared): State<Shared>, Query(query): Query<PageQuery>) -> Answer<Page> {
    let filter = list_filter(query.filter.as_deref())?;
    Ok(Json(history::told(history::page(&shared, &query, filter).await?)))
}

/// One message, whole
#[utoipa::path(get, path = "/v1/messages/{sequence}", tag = "look", params(("sequence" = u64, Path)), responses((status = 200, body = Message), (status = "default", body = ApiError)))]
pub(super) async fn message(State(shared): State<Shared>, Sequence(sequence): Sequence) -> Answer<Message> {
    let found = history::one(&shared, sequence).await?;
    let (told, earlier) = found.ok_or_else(|| no_message(sequence))?;
    Ok(Json(tell::message(&told, earlier, usize::MAX)))
}

/// What happens, as it happens
///
/// Server-sent events. The first is `snapshot`, which comes again where something could not be told; then
/// `message`, `held`, `outcome`, `marked`, `mode`, `breakpoints`, `policy`, `lease`, `fault`, `gap` as they come, and
/// `end` last. The id of a message's event is its sequence: give it as `after` to go on from there.
#[utoipa::path(get, path = "/v1/events", tag = "look", params(EventsQuery), responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ApiError)))]
pub(super) async fn events(
    State(shared): State<Shared>,
    Query(query): Query<EventsQuery>,
) -> Result<Response<Body>, Refusal> {
    let filter = list_filter(query.filter.as_deref())?;
    history::check_sequences(&[query.after])?;
    if query.per_second.is_some_and(|per_second| !(1..=PER_SECOND_MAX).contains(&per_second)) {
        return Err(Refusal::bad(format!("`per_second` is from 1 to {PER_SECOND_MAX}")));
    }
    stream::open(shared, &query, filter).await
}

/// What is held
#[utoipa::path(get, path = "/v1/held", tag = "look", responses((status = 200, body = HeldList), (status = "default", body = ApiError)))]
pub(super) async fn held(State(shared): State<Shared>) -> Answer<HeldList> {
    let standing = shared.committed_standing().await?;
    Ok(Json(HeldList { held: holds::list(&shared, &standing.status.held).await }))
}

/// One held message, whole
#[utoipa::path(get, path = "/v1/held/{sequence}", tag = "look", params(("sequence" = u64, Path)), responses((status = 200, body = Held), (status = "default", body = ApiError)))]
pub(super) async fn held_message(State(shared): State<Shared>, Sequence(sequence): Sequence) -> Answer<Held> {
    let standing = shared.committed_standing().await?;
    let held = standing.status.held.iter().find(|held| held.sequence == sequence);
    let not_held = || holds::undecided(mcp_engine::intercept::DecideError::NotHeld(sequence));
    Ok(Json(holds::told(&shared, held.ok_or_else(not_held)?, usize::MAX).await))
}

/// The breakpoints
#[utoipa::path(get, path = "/v1/breakpoints", tag = "look", responses((status = 200, body = Breakpoints), (status = "default", body = ApiError)))]
pub(super) async fn breakpoints(State(shared): State<Shared>) -> Answer<Breakpoints> {
    let standing = shared.standing().await?;
    Ok(Json(Breakpoints { breakpoints: tell::breakpoints(&standing.status.breakpoints) }))
}

/// Who has the control lease
#[utoipa::path(get, path = "/v1/lease", tag = "lease", responses((status = 200, body = LeaseState), (status = "default", body = ApiError)))]
pub(super) async fn lease(State(shared): State<Shared>) -> Answer<LeaseState> {
    Ok(Json(LeaseState { lease: shared.leases.now() }))
}

pub(super) fn filter(expression: Option<&str>) -> Result<Option<Filter>, Refusal> {
    let filter = expression.map(Filter::parse).transpose();
    filter.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, Code::BadFilter, error.to_string()))
}

/// The filter of a list of messages, which leaves out health checks and discovery by default.
fn list_filter(expression: Option<&str>) -> Result<Option<Filter>, Refusal> {
    let filter = Filter::of_list(expression);
    filter.map(Some).map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, Code::BadFilter, error.to_string()))
}

/// The last segment of a path, decoded.
pub(super) type Name = Path<String>;
