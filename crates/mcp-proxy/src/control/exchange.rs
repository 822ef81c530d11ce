//! The HTTP exchange that a message came in, from the recording.

use axum::extract::State;
use mcp_control::api::{self, ApiError, Header};
use mcp_store::recorded::timestamp;
use mcp_store::{ExchangeOf, Headers};

use super::history;
use super::reply::{Answer, Json, Refusal};
use super::request::Sequence;
use super::shared::Shared;

/// The HTTP exchange that a message came in
///
/// The heads as they were recorded, which is with secrets masked.
#[utoipa::path(get, path = "/v1/messages/{sequence}/exchange", tag = "look", params(("sequence" = u64, Path)), responses((status = 200, body = api::Exchange), (status = "default", body = ApiError)))]
pub(crate) async fn exchange(State(shared): State<Shared>, Sequence(sequence): Sequence) -> Answer<api::Exchange> {
    if !shared.is_recorded {
        return Err(Refusal::not_found("nothing is recorded, so nothing is known of HTTP exchanges"));
    }
    match history::exchange(&shared, sequence).await? {
        Some(Some(exchange)) => Ok(Json(told(exchange))),
        Some(None) => Err(Refusal::not_found(format!("#{sequence} came in no HTTP exchange"))),
        None => Err(super::act::no_message(sequence)),
    }
}

pub(crate) fn told(ExchangeOf { number, event_id, exchange }: ExchangeOf) -> api::Exchange {
    let (started_ns, request) = exchange.request.unzip();
    let (answered_ns, answer) = exchange.answer.unzip();
    let (ended_ns, ending) = exchange.end.unzip();
    let at = |time: Option<u64>| time.map(|time_ns| timestamp(time_ns).to_string());
    let request = request.unwrap_or_default();
    let said = |text: String| Some(text).filter(|text| !text.is_empty());
    let (status, response) = answer.map(|answer| (answer.status, answer.headers)).unzip();
    api::Exchange {
        number,
        method: said(request.method),
        target: said(request.target),
        request: headers(request.headers),
        // Zero is one that could not be read.
        status: status.filter(|status| *status > 0),
        response: headers(response.unwrap_or_default()),
        event_id,
        started_at: at(started_ns),
        answered_at: at(answered_ns),
        ended_at: at(ended_ns),
        ending: ending.flatten(),
    }
}

fn headers(headers: Headers) -> Vec<Header> {
    headers.0.into_iter().map(|(name, value)| Header { name, value }).collect()
}
