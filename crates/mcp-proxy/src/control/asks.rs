//! What people answer to rules that ask. An answer that is to count for good is written beside the rules
//! before it counts at all.

use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use mcp_control::api::{ApiError, Approve, Code, Deny, Hand, Released};
use mcp_engine::Decision;
use mcp_engine::intercept::Lasting;
use mcp_engine::policy::Answered;
use mcp_engine::policy::rules::Permission;
use mcp_wire::visible::visible;

use super::holds;
use super::reply::{Answer, Json, Refusal};
use super::request::{Perhaps, PerhapsLarge, Query, Sequence};
use super::shared::Shared;
use crate::answers::{AnswersError, AnswersFile};

/// Characters of the reason that a client gets with a denial. A model may read it, and pays for it.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Let a message go on that a rule asks about
#[utoipa::path(post, path = "/v1/held/{sequence}/approve", tag = "act", params(("sequence" = u64, Path), Hand), request_body = Option<Approve>, responses((status = 200, body = Released), (status = "default", body = ApiError)))]
pub(super) async fn approve(
    State(shared): State<Shared>,
    Sequence(sequence): Sequence,
    Query(hand): Query<Hand>,
    PerhapsLarge(approve): PerhapsLarge<Approve>,
) -> Answer<Released> {
    let by = shared.leases.permit(&hand)?.name;
    let lasting = approve.lasting;
    let edited = approve.raw.map(|raw| Bytes::copy_from_slice(raw.get().as_bytes()));
    let decision = Decision::Approve { lasting, edited };
    Ok(Json(answer(shared, sequence, decision, (lasting, Permission::Allow), by).await?))
}

/// Do not let a message go on that a rule asks about
#[utoipa::path(post, path = "/v1/held/{sequence}/deny", tag = "act", params(("sequence" = u64, Path), Hand), request_body = Option<Deny>, responses((status = 200, body = Released), (status = "default", body = ApiError)))]
pub(super) async fn deny(
    State(shared): State<Shared>,
    Sequence(sequence): Sequence,
    Query(hand): Query<Hand>,
    Perhaps(deny): Perhaps<Deny>,
) -> Answer<Released> {
    let by = shared.leases.permit(&hand)?.name;
    if deny.message.as_ref().is_some_and(|message| message.chars().count() > MESSAGE_CHARS_MAX) {
        return Err(Refusal::bad(format!("a message has up to {MESSAGE_CHARS_MAX} characters")));
    }
    let lasting = deny.lasting;
    let message = deny.message.filter(|message| !message.trim().is_empty());
    let decision = Decision::Deny { lasting, message: message.map(|message| visible(&message).to_string()) };
    Ok(Json(answer(shared, sequence, decision, (lasting, Permission::Deny), by).await?))
}

async fn answer(
    shared: Shared,
    sequence: u64,
    decision: Decision,
    (lasting, permission): (Lasting, Permission),
    by: String,
) -> Result<Released, Refusal> {
    if lasting != Lasting::Rule {
        return holds::decide(&shared, sequence, decision, by).await;
    }
    // Whoever asked may leave meanwhile; what is begun is brought to its end.
    let done = tokio::spawn(async move { answer_for_good(&shared, sequence, decision, permission, by).await });
    done.await.unwrap_or_else(|_| Err(Refusal::internal("the answer could not be carried out")))
}

async fn answer_for_good(
    shared: &Shared,
    sequence: u64,
    decision: Decision,
    permission: Permission,
    by: String,
) -> Result<Released, Refusal> {
    let Some(file) = shared.rules_file.as_deref().map(AnswersFile::beside) else {
        return Err(not_written("these rules are in no file that it could be written beside".into()));
    };
    if matches!(decision, Decision::Approve { edited: Some(_), .. }) {
        // Refused in its own words.
        return holds::decide(shared, sequence, decision, by).await;
    }
    let actor = by.clone();
    let answered = move |pipeline: &mut mcp_engine::Pipeline| {
        pipeline.decisions().lasting_answer(sequence, Lasting::Rule, permission, &actor)
    };
    let answered = shared.order(answered).await?.map_err(holds::undecided)?.expect("it is to count for good");
    let _turn = shared.answering.lock().await;
    let before = write(&file, &answered, AnswersFile::put).await?;
    let decided = holds::decide(shared, sequence, decision, by).await;
    // It was denied meanwhile, or somebody else was faster: then this answer was never given.
    if decided.as_ref().is_err_and(|refusal| matches!(refusal.code, Code::NotHeld | Code::NotAsked)) {
        write(&file, &answered, move |file, answered| file.put_back(answered, before)).await?;
    }
    decided
}

/// Has the file written by a thread that may wait for a disk.
async fn write<R: Send + 'static>(
    file: &AnswersFile,
    answered: &Answered,
    write: impl FnOnce(&AnswersFile, &Answered) -> Result<R, AnswersError> + Send + 'static,
) -> Result<R, Refusal> {
    let (file, answered) = (file.clone(), answered.clone());
    let written = tokio::task::spawn_blocking(move || write(&file, &answered)).await;
    let written = written.map_err(|_| Refusal::internal("the answer cannot be written"))?;
    written.map_err(|error| not_written(error.to_string()))
}

fn not_written(why: String) -> Refusal {
    let what = format!("nothing was decided, because the answer cannot be kept for good: {why}");
    Refusal::new(StatusCode::CONFLICT, Code::NotWritten, what)
}
