//! What can be done. Each asks the lease first, and is carried out on the data path.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use mcp_control::api::{
    Answer as AnswerBody, ApiError, Code, Drop, Hand, LeaseGrant, LeaseRequest, LeaseState, Mark, ModeChange, Modify,
    Named, NewBreakpoint, Notes, Released, Replay, Replayed, Save, Saved,
};
use mcp_engine::intercept::BreakpointError;
use mcp_engine::{Decision, Pipeline};
use mcp_store::{Direction, MessageKind, Session, StoreError, session_file};

use super::history::Part;
use super::look::{Name, filter};
use super::reply::{Answer, Json, Refusal};
use super::request::{Large, Perhaps, PerhapsLarge, Query, Sequence, Small, no_body};
use super::shared::Shared;
use super::{history, holds};

/// Time for a replayed message to leave: the transport takes it at its next turn.
const SENT_WITHIN: Duration = Duration::from_secs(5);
/// A mark is a word; a note is a paragraph or two.
const MARK_CHARS_MAX: usize = 64;
const NOTE_CHARS_MAX: usize = 4_096;
/// Notes about a session set by one request.
const NOTES_MAX: usize = 64;

/// Send a held message on as it came
#[utoipa::path(post, path = "/v1/held/{sequence}/forward", tag = "act", params(("sequence" = u64, Path), Hand), responses((status = 200, body = Released), (status = "default", body = ApiError)))]
pub(super) async fn forward(
    State(shared): State<Shared>,
    Sequence(sequence): Sequence,
    Query(hand): Query<Hand>,
    body: Body,
) -> Answer<Released> {
    no_body(body).await?;
    let by = shared.leases.permit(&hand)?.name;
    Ok(Json(holds::decide(&shared, sequence, Decision::Forward, by).await?))
}

/// Send everything on that is held
#[utoipa::path(post, path = "/v1/held/forward", tag = "act", params(Hand), responses((status = 200, body = Released), (status = "default", body = ApiError)))]
pub(super) async fn forward_all(
    State(shared): State<Shared>,
    Query(hand): Query<Hand>,
    body: Body,
) -> Answer<Released> {
    no_body(body).await?;
    let by = shared.leases.permit(&hand)?.name;
    let released = shared.order(move |pipeline| pipeline.decisions().release_all(&by)).await?;
    Ok(Json(Released { released: released as u64 }))
}

/// Do not send a held message on
#[utoipa::path(post, path = "/v1/held/{sequence}/drop", tag = "act", params(("sequence" = u64, Path), Hand), request_body = Option<Drop>, responses((status = 200, body = Released), (status = "default", body = ApiError)))]
pub(super) async fn drop_held(
    State(shared): State<Shared>,
    Sequence(sequence): Sequence,
    Query(hand): Query<Hand>,
    Perhaps(drop): Perhaps<Drop>,
) -> Answer<Released> {
    let by = shared.leases.permit(&hand)?.name;
    let error = drop.error.map(|error| (error.code, error.message));
    Ok(Json(holds::decide(&shared, sequence, Decision::Drop { error }, by).await?))
}

/// Send a held message on with other content
#[utoipa::path(post, path = "/v1/held/{sequence}/modify", tag = "act", params(("sequence" = u64, Path), Hand), request_body = Modify, responses((status = 200, body = Released), (status = "default", body = ApiError)))]
pub(super) async fn modify(
    State(shared): State<Shared>,
    Sequence(sequence): Sequence,
    Query(hand): Query<Hand>,
    Large(modify): Large<Modify>,
) -> Answer<Released> {
    let by = shared.leases.permit(&hand)?.name;
    Ok(Json(holds::decide(&shared, sequence, holds::modification(modify), by).await?))
}

/// Answer a held request in its peer's place
#[utoipa::path(post, path = "/v1/held/{sequence}/answer", tag = "act", params(("sequence" = u64, Path), Hand), request_body = mcp_control::api::Answer, responses((status = 200, body = Released), (status = "default", body = ApiError)))]
pub(super) async fn answer(
    State(shared): State<Shared>,
    Sequence(sequence): Sequence,
    Query(hand): Query<Hand>,
    Large(answer): Large<AnswerBody>,
) -> Answer<Released> {
    let by = shared.leases.permit(&hand)?.name;
    Ok(Json(holds::decide(&shared, sequence, holds::answer(answer)?, by).await?))
}

/// Hold everything, or nothing but what breakpoints match
#[utoipa::path(put, path = "/v1/mode", tag = "act", params(Hand), request_body = ModeChange, responses((status = 200, body = Released), (status = "default", body = ApiError)))]
pub(super) async fn mode(
    State(shared): State<Shared>,
    Query(hand): Query<Hand>,
    Small(change): Small<ModeChange>,
) -> Answer<Released> {
    let owner = shared.leases.permit(&hand)?.owner;
    let released = shared.order(move |pipeline| pipeline.decisions().set_mode(change.mode, owner)).await?;
    Ok(Json(Released { released: released as u64 }))
}

/// Hold what matches a filter
#[utoipa::path(post, path = "/v1/breakpoints", tag = "act", params(Hand), request_body = NewBreakpoint, responses((status = 200, body = Named), (status = "default", body = ApiError)))]
pub(super) async fn add_breakpoint(
    State(shared): State<Shared>,
    Query(hand): Query<Hand>,
    Small(new): Small<NewBreakpoint>,
) -> Answer<Named> {
    let owner = shared.leases.permit(&hand)?.owner;
    let filter = filter(Some(&new.filter))?.expect("an expression was given");
    let added = shared.order(move |pipeline| pipeline.decisions().add_breakpoint(new.name, filter, owner)).await?;
    let refused = |error: BreakpointError| {
        let (status, code) = match error {
            BreakpointError::TooMany => (StatusCode::CONFLICT, Code::TooMany),
            BreakpointError::Name => (StatusCode::BAD_REQUEST, Code::BadRequest),
            BreakpointError::Taken(_) => (StatusCode::CONFLICT, Code::Exists),
        };
        Refusal::new(status, code, error.to_string())
    };
    Ok(Json(Named { name: added.map_err(refused)? }))
}

/// Remove a breakpoint
#[utoipa::path(delete, path = "/v1/breakpoints/{name}", tag = "act", params(("name" = String, Path), Hand), responses((status = 200, body = Named), (status = "default", body = ApiError)))]
pub(super) async fn remove_breakpoint(
    State(shared): State<Shared>,
    name: Name,
    Query(hand): Query<Hand>,
    body: Body,
) -> Answer<Named> {
    no_body(body).await?;
    shared.leases.permit(&hand)?;
    let name = name.0;
    let wanted = name.clone();
    match shared.order(move |pipeline| pipeline.decisions().remove_breakpoint(&wanted)).await? {
        true => Ok(Json(Named { name })),
        false => Err(Refusal::not_found("there is no breakpoint of this name")),
    }
}

/// Send a client's message to the server once more
///
/// It is judged and recorded like any other, under an id of its own; the answer says what it answers, and the
/// client sees neither.
#[utoipa::path(post, path = "/v1/messages/{sequence}/replay", tag = "act", params(("sequence" = u64, Path), Hand), request_body = Option<Replay>, responses((status = 200, body = Replayed), (status = "default", body = ApiError)))]
pub(super) async fn replay(
    State(shared): State<Shared>,
    Sequence(sequence): Sequence,
    Query(hand): Query<Hand>,
    PerhapsLarge(replay): PerhapsLarge<Replay>,
) -> Answer<Replayed> {
    shared.leases.permit(&hand)?;
    let (told, _) = history::one(&shared, sequence).await?.ok_or_else(|| no_message(sequence))?;
    let is_sent_again = matches!(told.kind, MessageKind::Request | MessageKind::Notification)
        && told.recorded.direction == Direction::ClientToServer;
    if !is_sent_again {
        return Err(Refusal::not_possible(format!("#{sequence} is no request or notification of a client")));
    }
    let message = holds::replayed(replay, &told.recorded.raw)?;
    let conversation = told.recorded.conversation;
    let sent = shared.order(move |pipeline| pipeline.injections.inject(conversation, message)).await?;
    match tokio::time::timeout(SENT_WITHIN, sent).await {
        Ok(Ok(Ok(sequence))) => Ok(Json(Replayed { sequence })),
        Ok(Ok(Err(why))) => Err(Refusal::denied(format!("it was not sent: {why}"))),
        _ => Err(Refusal::not_possible("the conversation that this message was part of is over")),
    }
}

/// Mark a message, or note something beside it
#[utoipa::path(put, path = "/v1/messages/{sequence}/mark", tag = "act", params(("sequence" = u64, Path), Hand), request_body = Mark, responses((status = 200, body = Mark), (status = "default", body = ApiError)))]
pub(super) async fn mark(
    State(shared): State<Shared>,
    Sequence(sequence): Sequence,
    Query(hand): Query<Hand>,
    Small(mark): Small<Mark>,
) -> Answer<Mark> {
    shared.leases.permit(&hand)?;
    check_length("mark", mark.mark.as_deref(), MARK_CHARS_MAX)?;
    check_length("note", mark.note.as_deref(), NOTE_CHARS_MAX)?;
    let kept = mcp_store::Mark { mark: mark.mark.clone(), note: mark.note.clone() };
    let work = move |pipeline: &mut Pipeline| {
        if sequence == 0 || sequence > pipeline.journal.sequence() {
            return Err(no_message(sequence));
        }
        if sequence <= pipeline.journal.recorder().earlier() {
            return Err(Refusal::not_possible(format!("#{sequence} is in a session that has ended")));
        }
        pipeline.journal.mark(sequence, kept);
        Ok(())
    };
    shared.order(work).await??;
    Ok(Json(mark))
}

/// Note something about the session
#[utoipa::path(patch, path = "/v1/notes", tag = "act", params(Hand), request_body = Notes, responses((status = 200, body = Notes), (status = "default", body = ApiError)))]
pub(super) async fn notes(
    State(shared): State<Shared>,
    Query(hand): Query<Hand>,
    Small(notes): Small<Notes>,
) -> Answer<Notes> {
    shared.leases.permit(&hand)?;
    if notes.0.len() > NOTES_MAX || notes.0.keys().any(|key| key.is_empty()) {
        return Err(Refusal::bad(format!("up to {NOTES_MAX} notes, each with a name, are taken at once")));
    }
    let kept = notes.0.clone();
    let work = move |pipeline: &mut Pipeline| {
        let is_recorded = pipeline.journal.recorder().is_on();
        if is_recorded {
            pipeline.journal.note_session(&kept);
        }
        is_recorded
    };
    match shared.order(work).await? {
        true => Ok(Json(notes)),
        false => Err(not_recorded()),
    }
}

/// Write what was recorded so far to a session file
#[utoipa::path(post, path = "/v1/save", tag = "act", params(Hand), request_body = Save, responses((status = 200, body = Saved), (status = "default", body = ApiError)))]
pub(super) async fn save(
    State(shared): State<Shared>,
    Query(hand): Query<Hand>,
    Small(save): Small<Save>,
) -> Answer<Saved> {
    shared.leases.permit(&hand)?;
    let file = PathBuf::from(&save.file);
    if !file.is_absolute() || file.file_name().is_none() {
        return Err(Refusal::bad("`file` needs an absolute path"));
    }
    let parts = shared.parts().await?.parts;
    if parts.is_empty() {
        return Err(not_recorded());
    }
    let _turn = shared.readers.acquire().await.map_err(|_| Refusal::ending())?;
    let saved = tokio::task::spawn_blocking(move || write(&parts, &file)).await;
    let saved = saved.map_err(|_| Refusal::internal("the file cannot be written"))?;
    saved.map(Json).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        Refusal::not_possible(format!("{error}{cause}"))
    })
}

/// One file for each session: the second is `session-2.json`.
fn write(parts: &[Part], file: &FilePath) -> Result<Saved, StoreError> {
    let mut saved = Saved { files: Vec::new(), messages: 0 };
    for (number, part) in parts.iter().enumerate() {
        let file = match number {
            0 => file.to_owned(),
            number => mcp_engine::record::numbered(file, 1, number as u32 + 1),
        };
        session_file::may_be_written(&file)?;
        let session = Session::open_segment(&part.segment)?;
        session_file::write(&file, &session)?;
        saved.messages += session.summary().messages;
        saved.files.push(file.display().to_string());
    }
    Ok(saved)
}

/// Ask for the control lease
#[utoipa::path(post, path = "/v1/lease", tag = "lease", request_body = LeaseRequest, responses((status = 200, body = LeaseGrant), (status = "default", body = ApiError)))]
pub(super) async fn take_lease(
    State(shared): State<Shared>,
    Small(request): Small<LeaseRequest>,
) -> Answer<LeaseGrant> {
    let grant = shared.leases.grant(&request)?;
    shared.face_changed().await?;
    Ok(Json(grant))
}

/// Give up the control lease
#[utoipa::path(delete, path = "/v1/lease", tag = "lease", params(Hand), responses((status = 200, body = LeaseState), (status = "default", body = ApiError)))]
pub(super) async fn give_up_lease(
    State(shared): State<Shared>,
    Query(hand): Query<Hand>,
    body: Body,
) -> Answer<LeaseState> {
    no_body(body).await?;
    let token = hand.lease.ok_or_else(|| Refusal::bad("`lease` says which lease is given up"))?;
    if !shared.leases.give_up(&token)? {
        return Err(Refusal::locked("this lease is over already"));
    }
    shared.face_changed().await?;
    Ok(Json(LeaseState { lease: shared.leases.now() }))
}

fn check_length(what: &str, text: Option<&str>, max: usize) -> Result<(), Refusal> {
    match text.is_some_and(|text| text.chars().count() > max) {
        true => Err(Refusal::bad(format!("a {what} has up to {max} characters"))),
        false => Ok(()),
    }
}

pub(super) fn no_message(sequence: u64) -> Refusal {
    Refusal::not_found(format!("there is no message #{sequence}"))
}

fn not_recorded() -> Refusal {
    Refusal::not_possible("nothing is recorded, so there is nothing to keep this with")
}
