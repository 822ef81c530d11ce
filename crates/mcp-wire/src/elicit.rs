//! Asking whoever uses a client whether something may go on: the form that the client shows, in the words
//! of either era, and what came back. Everything else about elicitation is between client and server.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::id::Id;
use crate::message::Message;
use crate::reply::answer_with_result;
use crate::scan::{self, Span};
use crate::splice::{splice, without_member};

/// What everything that we ask is known by: ids of requests, states of rounds, names of forms.
pub const ASKED_BY_US: &str = "mcp-proxy-ask";

/// The member of the form.
const DECISION: &str = "decision";
const ALLOW_ONCE: &str = "allow once";
const ALLOW_SESSION: &str = "allow for this session";
const DENY: &str = "deny";

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    AllowOnce,
    AllowForSession,
    Deny,
    /// The form was closed without an answer.
    Nothing,
    /// The client could not ask, or its answer makes no sense.
    Nonsense,
}

/// Whether a client that declares `capabilities` shows forms. Older revisions know no other kind of
/// elicitation, so nothing is said of forms there.
pub fn shows_forms(capabilities: &[u8]) -> bool {
    let Some(span) = scan::member_at(capabilities, ["elicitation"]) else { return false };
    let elicitation = &capabilities[span.range()];
    elicitation.starts_with(b"{")
        && (scan::object_members(elicitation).next().is_none()
            || scan::member_at(elicitation, ["form"]).is_some_and(|form| elicitation[form.range()].starts_with(b"{")))
}

/// Whether a request of the newest revision comes from a client that shows forms, and is one that may be
/// answered with a question.
pub fn can_be_answered_with_form(request: &Message) -> bool {
    const CAPABILITIES: [&str; 3] = ["params", "_meta", "io.modelcontextprotocol/clientCapabilities"];
    matches!(request.method().as_deref(), Some("tools/call" | "prompts/get" | "resources/read"))
        && scan::member_at(request.bytes(), CAPABILITIES).is_some_and(|span| shows_forms(request.slice(span)))
}

/// The request that has a client show `message`, in revisions where servers send requests.
pub fn request(id: &Id, message: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"elicitation/create\",\"params\":{}}}", form(message)).into()
}

/// The answer to `id` that has a client show `message` and send its request again, since there are no
/// requests of servers any more.
pub fn input_required(id: &Id, state: &str, message: &str) -> Bytes {
    let result = json!({
        "resultType": "input_required",
        "inputRequests": { ASKED_BY_US: { "method": "elicitation/create", "params": form(message) } },
        "requestState": state,
    });
    answer_with_result(id, result.to_string().as_bytes())
}

/// Every revision and every client knows a choice between plain words, and they say all there is to say.
fn form(message: &str) -> Value {
    json!({
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                DECISION: { "type": "string", "title": "Decision", "enum": [ALLOW_ONCE, ALLOW_SESSION, DENY] },
            },
            "required": [DECISION],
        },
    })
}

/// What the result of an elicitation says.
pub fn said(result: &[u8]) -> Said {
    let text = |path: &[&str]| {
        let span = scan::member_at(result, path.iter().copied())?;
        scan::decode_string(&result[span.range()])
    };
    match text(&["action"]).as_deref() {
        Some("accept") => match text(&["content", DECISION]).as_deref() {
            Some(ALLOW_ONCE) => Said::AllowOnce,
            Some(ALLOW_SESSION) => Said::AllowForSession,
            Some(DENY) => Said::Deny,
            _ => Said::Nonsense,
        },
        Some("decline") => Said::Deny,
        Some("cancel") => Said::Nothing,
        _ => Said::Nonsense,
    }
}

/// Members of `params` by which a request that was answered with a question comes again. Besides these
/// and `_meta` it says what it said before.
const STATE: [&str; 2] = ["params", "requestState"];
const RESPONSES: [&str; 2] = ["params", "inputResponses"];

/// The state that a request comes with.
pub fn state_of(request: &Message) -> Option<std::borrow::Cow<'_, str>> {
    scan::decode_string(request.slice(member(request, &STATE)?))
}

/// What a request that comes again answers to our question.
pub fn said_again(request: &Message) -> Said {
    let ours = RESPONSES.into_iter().chain([ASKED_BY_US]);
    scan::member_at(request.bytes(), ours).map_or(Said::Nothing, |span| said(request.slice(span)))
}

/// Whether `again` asks for the same as `first`, byte for byte, and answers nothing but our question.
pub fn is_same_again(first: &Message, again: &Message) -> bool {
    let method = |message: &Message| message.peek().method.map(|span| message.slice(span).to_vec());
    let answers_others = member(again, &RESPONSES)
        .is_some_and(|span| scan::object_members(again.slice(span)).any(|(name, _)| name != ASKED_BY_US));
    method(first) == method(again) && what_is_asked(first) == what_is_asked(again) && !answers_others
}

/// The members of `params` that stay from round to round, each with its value as it is spelled.
fn what_is_asked(request: &Message) -> Vec<(String, &[u8])> {
    let Some(params) = member(request, &["params"]).map(|span| request.slice(span)) else { return Vec::new() };
    let stays = |name: &str| !matches!(name, "_meta" | "requestState" | "inputResponses");
    let members = scan::object_members(params).filter(|(name, _)| stays(name));
    let mut members: Vec<_> = members.map(|(name, span)| (name.into_owned(), &params[span.range()])).collect();
    members.sort_unstable();
    members
}

/// `again` without our question, as if `first` had been sent once more: what `first` had to say to a
/// question of the server's is put in the place of what we asked for. No other byte changes. Without a
/// `first`, only what is ours is taken out.
pub fn without_our_round(again: &Message, first: Option<&Message>) -> Bytes {
    let before = |path: &[&str]| first.and_then(|first| Some(first.slice(member(first, path)?)));
    let restored = put(again.bytes().clone(), &STATE, before(&STATE));
    if let Some(before) = before(&RESPONSES) {
        return put(restored, &RESPONSES, Some(before));
    }
    let ours_out = match scan::member_at(&restored, RESPONSES.into_iter().chain([ASKED_BY_US])) {
        Some(_) => without_member(&restored, &[RESPONSES[0], RESPONSES[1], ASKED_BY_US]),
        None => restored,
    };
    let is_empty = |span: Span| scan::object_members(&ours_out[span.range()]).next().is_none();
    match scan::member_at(&ours_out, RESPONSES) {
        Some(span) if is_empty(span) => without_member(&ours_out, &RESPONSES),
        _ => ours_out,
    }
}

/// `request` with `value` at `path`, or nothing there.
fn put(request: Bytes, path: &[&str], value: Option<&[u8]>) -> Bytes {
    match (scan::member_at(&request, path.iter().copied()), value) {
        (Some(span), Some(value)) => splice(&request, span, value),
        (Some(_), None) => without_member(&request, path),
        (None, Some(value)) => with_member(&request, path, value),
        (None, None) => request,
    }
}

/// A client need not repeat both members, so that one may have to be put back where it is missing.
fn with_member(request: &Bytes, path: &[&str], value: &[u8]) -> Bytes {
    let Some((name, to)) = path.split_last() else { return request.clone() };
    let Some(object) = scan::member_at(request, to.iter().copied()) else { return request.clone() };
    let start = object.range().start + 1;
    let is_empty = scan::object_members(&request[object.range()]).next().is_none();
    let comma: &[u8] = if is_empty { b"" } else { b"," };
    let added = [Value::from(*name).to_string().as_bytes(), b":", value, comma].concat();
    splice(request, Span::new(start..start), &added)
}

fn member(message: &Message, path: &[&str]) -> Option<Span> {
    scan::member_at(message.bytes(), path.iter().copied())
}

#[cfg(test)]
mod tests;
