//! What the engine and the store know, in the words of the control API.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_control::api;
use mcp_engine::intercept::{Breakpoint, Held};
use mcp_store::story::Status;
use mcp_store::{Told, Verdict};
use serde_json::value::RawValue;

use super::policy;

/// A message in a list, an event or a snapshot is given whole up to here. Longer ones are asked for
/// one by one.
pub(crate) const RAW_IN_LIST_MAX: usize = 256 * 1024;

/// The message with everything that is known of it. `earlier` messages of this run came before its
/// session; longer than `raw_max`, it is told without its content.
pub(crate) fn message(told: &Told, earlier: u64, raw_max: usize) -> api::Message {
    let recorded = &told.recorded;
    let originally = recorded.original_raw.as_ref().map_or(0, |raw| raw.len());
    let raw_omitted = recorded.raw.len().saturating_add(originally) > raw_max;
    let raw = Some(&recorded.raw).filter(|_| told.is_json() && !raw_omitted).and_then(|raw| verbatim(raw));
    let has_bytes = raw.is_none() && recorded.event.is_none() && !raw_omitted;
    api::Message {
        id: recorded.id.clone(),
        sequence: recorded.sequence + earlier,
        timestamp: recorded.timestamp().to_string(),
        direction: recorded.direction,
        transport: recorded.transport,
        kind: told.kind,
        method: told.method().map(Into::into),
        tool: told.subject().map(Into::into),
        proxied: told.proxied(),
        jsonrpc_id: told.id().and_then(verbatim),
        answers: told.answers.map(|sequence| sequence + earlier),
        operation: told.operation().map(|sequence| sequence + earlier),
        round: told.round(),
        status: told.status().map(|status| status.as_str().to_owned()),
        code: told.status().and_then(Status::code),
        error: told.error().map(str::to_owned),
        duration_ns: told.duration_ns(),
        size: recorded.raw.len() as u64,
        server: told.server.as_deref().map(str::to_owned),
        client: told.client.as_deref().map(str::to_owned),
        revision: told.revision.as_deref().map(str::to_owned),
        conversation: recorded.conversation,
        upstream: recorded.upstream.as_deref().map(str::to_owned),
        parent: recorded.parent.map(|parent| parent + earlier),
        correlated_id: recorded.correlated_id.clone(),
        modified: recorded.modified,
        noise: recorded.noise,
        exchange: recorded.exchange,
        event_id: recorded.event_id.clone(),
        origin: recorded.from_proxy.then(|| "proxy".to_owned()),
        event: recorded.event.clone(),
        opaque: told.opaque().map(|ambiguity| ambiguity.to_string()),
        verdict: recorded.verdict.as_deref().map(|verdict| verdict.what.as_str().to_owned()),
        rule: recorded.verdict.as_deref().and_then(|verdict| Some(verdict.rule.as_deref()?.to_owned())),
        op: told.op().map(str::to_owned),
        audit_id: recorded.verdict.as_deref().and_then(|verdict| Some(verdict.audit?.to_string())),
        held_ns: recorded.held_ns,
        outcome: recorded.outcome.map(|what| what.as_str().to_owned()),
        decided_by: recorded.decided_by.clone(),
        mark: recorded.mark.clone(),
        note: recorded.note.clone(),
        original_raw: recorded.original_raw.as_ref().filter(|_| !raw_omitted).and_then(|raw| verbatim(raw)),
        raw_base64: has_bytes.then(|| BASE64.encode(&recorded.raw)),
        raw,
        raw_omitted,
    }
}

/// A held message; `told` is what is known of it.
pub(crate) fn held(held: &Held, told: api::Message) -> api::Held {
    api::Held {
        sequence: held.sequence,
        conversation: held.conversation,
        direction: held.from.direction(),
        why: held.why.to_string(),
        asks: policy::question(held),
        since: mcp_store::recorded::timestamp(held.since_ns).to_string(),
        held_ms: millis(held.held_for),
        released_in_ms: held.left.map(millis),
        given_up: held.given_up,
        message: told,
    }
}

pub(crate) fn breakpoints(breakpoints: &[Breakpoint]) -> Vec<api::Breakpoint> {
    let told = |breakpoint: &Breakpoint| api::Breakpoint {
        name: breakpoint.name.to_string(),
        filter: breakpoint.filter.to_string(),
        owner: breakpoint.owner,
        hits: breakpoint.hits,
    };
    breakpoints.iter().map(told).collect()
}

/// What rules decided about a message that was told before.
pub(crate) fn verdict(sequence: u64, verdict: &Verdict) -> api::Verdict {
    api::Verdict {
        sequence,
        verdict: verdict.what.as_str().to_owned(),
        rule: verdict.rule.as_deref().map(str::to_owned),
        op: verdict.operation.map(str::to_owned),
        audit_id: verdict.audit.map(|audit| audit.to_string()),
    }
}

pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// JSON as it was spelled. `null` would look as if there were none, and is told by its bytes.
pub(crate) fn verbatim(json: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice::<Box<RawValue>>(json).ok().filter(|raw| raw.get() != "null")
}
