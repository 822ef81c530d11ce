//! Held messages, and what is decided about them.

use axum::http::StatusCode;
use bytes::Bytes;
use mcp_control::api::{self, Code};
use mcp_engine::intercept::{Answer, DecideError, Held};
use mcp_engine::{Decision, Pipeline};
use mcp_store::{Recorded, Story};
use mcp_wire::{Kind, Message, Span};
use serde_json::value::RawValue;

use super::reply::Refusal;
use super::shared::Shared;
use super::{history, tell};

/// Held messages of one list whose requests are looked up in the recording; a longer list reads none.
const LOOKED_UP_MAX: usize = 64;
/// Content of the held messages in one list. Further ones are listed without it and not read: there may be hundreds
/// of megabytes, and all other requests wait meanwhile.
const CONTENT_MAX: usize = 4 << 20;

/// What is held, in the order of arrival.
pub(super) async fn list(shared: &Shared, held: &[Held]) -> Vec<api::Held> {
    let mut told = Vec::with_capacity(held.len());
    let mut content = CONTENT_MAX;
    for (index, held) in held.iter().enumerate() {
        let raw_max = content.min(tell::RAW_IN_LIST_MAX);
        content = content.saturating_sub(held.message.bytes().len());
        told.push(match raw_max {
            0 => unread(shared, held),
            _ if index < LOOKED_UP_MAX => self::told(shared, held, raw_max).await,
            _ => alone(shared, held, raw_max),
        });
    }
    told
}

/// A held message with what is known of it.
pub(super) async fn told(shared: &Shared, held: &Held, raw_max: usize) -> api::Held {
    let in_ring = shared.hub.ring().message(held.sequence).map(|told| tell::message(told, 0, raw_max));
    if let Some(told) = in_ring {
        return tell::held(held, told);
    }
    match history::one(shared, held.sequence).await {
        Ok(Some((told, earlier))) => tell::held(held, tell::message(&told, earlier, raw_max)),
        _ => alone(shared, held, raw_max),
    }
}

/// What a held message says by itself.
fn alone(shared: &Shared, held: &Held, raw_max: usize) -> api::Held {
    let recorded = recorded(shared, held, held.message.bytes().clone());
    let told = Story::of(&shared.card.header()).tell(recorded);
    tell::held(held, tell::message(&told, 0, raw_max))
}

/// What is known of a held message from its first bytes.
fn unread(shared: &Shared, held: &Held) -> api::Held {
    let glance = held.message.glance();
    let text = |span: Option<Span>| span.map(|span| held.message.slice(span));
    let told = Story::of(&shared.card.header()).tell(recorded(shared, held, Bytes::new()));
    let message = api::Message {
        kind: glance.kind.into(),
        method: text(glance.method).and_then(|method| serde_json::from_slice(method).ok()),
        jsonrpc_id: text(glance.id).and_then(tell::verbatim),
        size: held.message.bytes().len() as u64,
        raw_base64: None,
        raw_omitted: true,
        ..tell::message(&told, 0, 0)
    };
    tell::held(held, message)
}

fn recorded(shared: &Shared, held: &Held, raw: Bytes) -> Recorded {
    Recorded {
        id: mcp_store::recorded::message_id(&shared.card.id, held.sequence),
        time_ns: held.since_ns,
        conversation: held.conversation,
        transport: held.transport,
        held: true,
        ..Recorded::bare(held.sequence, held.from.direction(), raw)
    }
}

/// Carries out a decision about one held message.
pub(super) async fn decide(
    shared: &Shared,
    sequence: u64,
    decision: Decision,
    by: String,
) -> Result<api::Released, Refusal> {
    let work = move |pipeline: &mut Pipeline| pipeline.decisions().decide(sequence, decision, &by);
    shared.order(work).await?.map_err(undecided)?;
    Ok(api::Released { released: 1 })
}

pub(super) fn modification(modify: api::Modify) -> Decision {
    Decision::Modify { raw: bytes(&modify.raw), raw_headers: modify.raw_headers, not_json_rpc: modify.confirm }
}

/// The one answer of the three that a body can hold.
pub(super) fn answer(answer: api::Answer) -> Result<Decision, Refusal> {
    let answer = match answer {
        api::Answer { result: Some(result), error: None, raw: None } => Answer::Result(bytes(&result)),
        api::Answer { result: None, error: Some(error), raw: None } => {
            Answer::Error(serde_json::to_vec(&error).expect("plain data always serialises").into())
        }
        api::Answer { result: None, error: None, raw: Some(raw) } => whole_answer(&raw)?,
        _ => return Err(Refusal::bad("exactly one of `result`, `error` and `raw` is needed")),
    };
    Ok(Decision::Answer(answer))
}

/// The members of a JSON-RPC response that its id is put to anew.
fn whole_answer(raw: &RawValue) -> Result<Answer, Refusal> {
    #[derive(serde::Deserialize)]
    struct Response<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let what = "`raw` must be a JSON-RPC response, with `result` or `error`";
    match serde_json::from_str::<Response<'_>>(raw.get()) {
        Ok(Response { result: Some(result), error: None }) => Ok(Answer::Result(bytes(result))),
        Ok(Response { result: None, error: Some(error) }) => Ok(Answer::Error(bytes(error))),
        _ => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, Code::NotJsonRpc, what)),
    }
}

/// The message that a replay sends: what was sent then, or something in its place. Line ends would end
/// it on a pipe; in JSON they stand between values only.
pub(super) fn replayed(replay: api::Replay, then: &Bytes) -> Result<Bytes, Refusal> {
    let Some(raw) = replay.raw else { return Ok(then.clone()) };
    let message = Message::new(Bytes::from(raw.get().replace(['\n', '\r'], " ")));
    match message.kind() {
        Kind::Request | Kind::Notification => Ok(message.bytes().clone()),
        _ => {
            let what = "`raw` must be a JSON-RPC request or notification";
            Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, Code::NotJsonRpc, what))
        }
    }
}

fn bytes(raw: &RawValue) -> Bytes {
    Bytes::copy_from_slice(raw.get().as_bytes())
}

pub(super) fn undecided(error: DecideError) -> Refusal {
    let (status, code) = match error {
        DecideError::NotHeld(_) => (StatusCode::NOT_FOUND, Code::NotHeld),
        DecideError::NotARequest(_) | DecideError::NobodyWaits(_) => (StatusCode::CONFLICT, Code::NotARequest),
        DecideError::IsAsked(..) => (StatusCode::CONFLICT, Code::IsAsked),
        DecideError::NotAsked(_) => (StatusCode::CONFLICT, Code::NotAsked),
        DecideError::OnlyOnce(..) | DecideError::InClient(_) => (StatusCode::CONFLICT, Code::NotPossible),
        DecideError::Denied(_) => return Refusal::denied(error.to_string()),
        DecideError::NotJson(_) => (StatusCode::BAD_REQUEST, Code::BadRequest),
        DecideError::NotJsonRpc => (StatusCode::UNPROCESSABLE_ENTITY, Code::NotJsonRpc),
    };
    Refusal::new(status, code, error.to_string())
}
