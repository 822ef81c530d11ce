//! Sessions, hits and decisions as rows of lists. Hostile text in them has been made visible.

use std::collections::BTreeMap;

use mcp_store::audit::ledger::DecisionRow;
use mcp_store::index::{Hit as Found, Piece};
use mcp_store::recorded::timestamp;
use mcp_store::{Entry, SessionHeader, Summary};
use mcp_tui::library::{Decision, Hit, SessionRow};
use mcp_wire::visible::visible;

use crate::audit::table;
use crate::sessions::search;

pub(super) fn of_entry(entry: &Entry) -> SessionRow {
    SessionRow {
        ended_at: ended_at(entry.ended_ns, entry.interrupted),
        is_live: entry.live,
        messages: entry.messages,
        bytes: entry.bytes,
        notes: notes(&entry.notes),
        ..of_header(&entry.header)
    }
}

/// What is known of a session that is in a file of so many bytes.
pub(super) fn of_summary(summary: &Summary, bytes: u64) -> SessionRow {
    SessionRow {
        ended_at: ended_at(summary.ended_ns, summary.end.as_ref().is_some_and(|end| end.recovered)),
        is_live: summary.live,
        messages: summary.messages,
        bytes,
        notes: notes(&summary.notes),
        ..of_header(&summary.header)
    }
}

fn of_header(header: &SessionHeader) -> SessionRow {
    let server = header.server_command.as_deref().or(header.server_url.as_deref()).unwrap_or("unknown");
    SessionRow {
        id: header.id.to_string(),
        name: shown(header.name.as_deref()),
        server: visible(server).to_string(),
        transport: header.transport.as_str().to_owned(),
        started_at: header.started_at().to_string(),
        ..SessionRow::default()
    }
}

/// One that broke off was ended by whoever found it; that is not when it ended.
fn ended_at(ended_ns: Option<u64>, is_interrupted: bool) -> Option<String> {
    ended_ns.filter(|_| !is_interrupted).map(|ns| timestamp(ns).to_string())
}

fn notes(notes: &BTreeMap<String, String>) -> Vec<(String, String)> {
    notes.iter().map(|(name, value)| (visible(name).to_string(), visible(value).to_string())).collect()
}

pub(super) fn of_hit(hit: &Found, pieces: &[Piece]) -> Hit {
    Hit {
        session: hit.session.to_string(),
        sequence: hit.sequence,
        timestamp: timestamp(hit.time_ns).to_string(),
        what: search::what(hit),
        snippet: search::snippet(pieces, |found| found),
    }
}

pub(super) fn of_decision(row: &DecisionRow) -> Decision {
    let outcome = row.outcome.as_ref();
    Decision {
        audit_id: row.id(),
        timestamp: timestamp(row.record.time_ns()).to_string(),
        session: row.message().map(|message| message.session.to_string()),
        sequence: row.message().map(|message| message.sequence),
        client: shown(row.record.client.as_deref()),
        server: shown(row.record.server.as_deref()),
        method: shown(row.record.method.as_deref()),
        tool: table::tool(row),
        operation: shown(row.record.operation.as_deref()),
        verdict: visible(row.record.verdict()).to_string(),
        rule: shown(row.record.rule.as_deref()),
        actor: shown(row.record.actor.as_deref()).unwrap_or_default(),
        outcome: outcome.map(table::words),
        latency_ns: outcome.map(|outcome| outcome.latency_us.saturating_mul(1_000)),
    }
}

fn shown(text: Option<&str>) -> Option<String> {
    text.map(|text| visible(text).to_string())
}
