//! A message as one line of JSON, for scripts. The names are those of the session file where it has
//! them, and stay as they are.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_store::recorded::timestamp;
use mcp_store::story::Status;
use mcp_store::{Amendment, Direction, Mark, OutcomeKind, Said, Told, Transport, Verdict, VerdictKind};
use mcp_wire::inert::inert;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Object<'a> {
    sequence: u64,
    timestamp: String,
    direction: Direction,
    transport: Transport,
    kind: &'static str,
    method: Option<Cow<'a, str>>,
    /// The tool, prompt or resource.
    tool: Option<Cow<'a, str>>,
    /// Of a call of a proxy tool, what it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    proxied: Option<String>,
    jsonrpc_id: Option<&'a RawValue>,
    /// The sequence of the request that this answers.
    answers: Option<u64>,
    /// The sequence of the first request of the operation, and which round of it this is.
    operation: Option<u64>,
    round: Option<u32>,
    status: Option<&'static str>,
    code: Option<i64>,
    error: Option<&'a str>,
    duration_ns: Option<u64>,
    size: usize,
    server: Option<&'a str>,
    client: Option<&'a str>,
    revision: Option<&'a str>,
    conversation: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    id: &'a str,
    correlated_id: Option<&'a str>,
    modified: bool,
    noise: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opaque: Option<String>,
    #[serde(flatten)]
    ruling: Ruling<'a>,
    #[serde(flatten)]
    hold: Hold<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_raw: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_raw_base64: Option<String>,
    raw: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_base64: Option<String>,
}

/// What rules decided about a message.
#[derive(Default, Serialize)]
struct Ruling<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<VerdictKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_id: Option<String>,
}

impl<'a> Ruling<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        Self {
            verdict: Some(verdict.what),
            rule: verdict.rule.as_deref(),
            op: verdict.operation,
            audit_id: verdict.audit.map(|audit| audit.to_string()),
        }
    }
}

/// What became of a message that was held.
#[derive(Serialize)]
struct Hold<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// What was said of a message that an earlier line is about; its kind is `outcome`, `mark` or `verdict`.
#[derive(Serialize)]
struct Amended<'a> {
    sequence: u64,
    timestamp: String,
    direction: Direction,
    kind: &'static str,
    conversation: u32,
    #[serde(flatten)]
    hold: Option<Hold<'a>>,
    #[serde(flatten)]
    mark: Option<&'a Mark>,
    #[serde(flatten)]
    ruling: Option<Ruling<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_base64: Option<String>,
}

pub(crate) fn amendment(amendment: &Amendment) -> String {
    let outcome = match &amendment.said {
        Said::Outcome(outcome) => Some(outcome),
        Said::Mark(_) | Said::Verdict(_) => None,
    };
    let edited = outcome.and_then(|outcome| outcome.edited.as_deref());
    let raw = edited.and_then(verbatim);
    let text = |text: &'_ String| !text.is_empty();
    let object = Amended {
        sequence: amendment.sequence,
        timestamp: timestamp(amendment.time_ns).to_string(),
        direction: amendment.direction,
        kind: match &amendment.said {
            Said::Outcome(_) => "outcome",
            Said::Mark(_) => "mark",
            Said::Verdict(_) => "verdict",
        },
        conversation: amendment.conversation,
        hold: outcome.map(|outcome| Hold {
            held: Some(true),
            held_ns: Some(outcome.held_ns),
            outcome: Some(outcome.what),
            decided_by: Some(&outcome.by).filter(|by| text(by)).map(String::as_str),
            why: Some(&outcome.why).filter(|why| text(why)).map(String::as_str),
        }),
        mark: match &amendment.said {
            Said::Mark(mark) => Some(mark),
            Said::Outcome(_) | Said::Verdict(_) => None,
        },
        ruling: match &amendment.said {
            Said::Verdict(verdict) => Some(Ruling::of(verdict)),
            Said::Outcome(_) | Said::Mark(_) => None,
        },
        raw_base64: edited.filter(|_| raw.is_none()).map(|edited| BASE64.encode(edited)),
        raw,
    };
    inert(&serde_json::to_string(&object).expect("plain data always serialises")).into_owned()
}

/// The message as an object, without a line break in it.
pub(crate) fn object(told: &Told) -> String {
    let recorded = &told.recorded;
    let original = recorded.original_raw.as_deref();
    let original_raw = original.and_then(verbatim);
    let raw = verbatim(&recorded.raw).filter(|_| told.is_json());
    let object = Object {
        sequence: recorded.sequence,
        timestamp: recorded.timestamp().to_string(),
        direction: recorded.direction,
        transport: recorded.transport,
        kind: told.kind.as_str(),
        method: told.method(),
        tool: told.subject(),
        proxied: told.proxied(),
        jsonrpc_id: told.id().and_then(verbatim),
        answers: told.answers,
        operation: told.operation(),
        round: told.round(),
        status: told.status().map(Status::as_str),
        code: told.status().and_then(Status::code),
        error: told.error(),
        duration_ns: told.duration_ns(),
        size: recorded.raw.len(),
        server: told.server.as_deref(),
        client: told.client.as_deref(),
        revision: told.revision.as_deref(),
        conversation: recorded.conversation,
        upstream: recorded.upstream.as_deref(),
        parent: recorded.parent,
        id: &recorded.id,
        correlated_id: recorded.correlated_id.as_deref(),
        modified: recorded.modified,
        noise: recorded.noise,
        exchange: recorded.exchange,
        event_id: recorded.event_id.as_deref(),
        origin: recorded.from_proxy.then_some("proxy"),
        event: recorded.event.as_deref(),
        opaque: told.opaque().map(|ambiguity| ambiguity.to_string()),
        ruling: Ruling { op: told.op(), ..recorded.verdict.as_deref().map(Ruling::of).unwrap_or_default() },
        hold: Hold {
            held: recorded.held.then_some(true),
            held_ns: recorded.held_ns,
            outcome: recorded.outcome,
            decided_by: recorded.decided_by.as_deref(),
            why: recorded.why.as_deref(),
        },
        mark: recorded.mark.as_deref(),
        note: recorded.note.as_deref(),
        original_raw_base64: original.filter(|_| original_raw.is_none()).map(|original| BASE64.encode(original)),
        original_raw,
        raw_base64: (raw.is_none() && recorded.event.is_none()).then(|| BASE64.encode(&recorded.raw)),
        raw,
    };
    inert(&serde_json::to_string(&object).expect("plain data always serialises")).into_owned()
}

/// JSON as it was spelled, if a reader of the line will take it for JSON.
fn verbatim(json: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(json).ok()
}
