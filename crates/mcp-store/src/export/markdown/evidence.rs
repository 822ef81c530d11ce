//! What was sent, what it was changed to, and what came back.

use std::io::{self, Write};

use bytes::Bytes;
use mcp_wire::layout::indented;

use super::inline::{block, code, duration};
use super::{outcome, what};
use crate::recorded::{Direction, Recorded, timestamp};
use crate::segment::{Verdict, VerdictKind};
use crate::story::{MessageKind, Status, Told};

/// Bytes shown of one message in a report.
const BLOCK_BYTES_MAX: usize = 16 * 1024;

/// A request that may turn out to be worth showing.
pub(super) struct Sent {
    message: Shown,
    what: String,
    /// Somebody changed it, kept it back, or wrote something beside it.
    pub is_modified: bool,
}

/// A message, as much of it as is shown.
struct Shown {
    sequence: u64,
    time_ns: u64,
    direction: Direction,
    from_proxy: bool,
    raw: Bytes,
    original: Option<Bytes>,
    /// What became of it, if somebody held it, and what somebody wrote beside it.
    fate: Option<String>,
    note: Option<String>,
    event: Option<String>,
}

pub(super) struct Evidence {
    pub sequence: u64,
    title: String,
    sent: Option<Shown>,
    got: Option<Shown>,
}

impl Sent {
    pub(super) fn of(message: &Told) -> Self {
        let recorded = &message.recorded;
        let is_modified = recorded.modified || recorded.note.is_some() || !recorded.went_on();
        Self { message: Shown::of(message), what: what(message), is_modified }
    }
}

impl Shown {
    fn of(message: &Told) -> Self {
        let recorded = &message.recorded;
        // A slice would keep the whole of a large message alive.
        let kept = |raw: &Bytes| {
            if raw.len() > BLOCK_BYTES_MAX { Bytes::copy_from_slice(&raw[..=BLOCK_BYTES_MAX]) } else { raw.clone() }
        };
        Self {
            sequence: recorded.sequence,
            time_ns: recorded.time_ns,
            direction: recorded.direction,
            from_proxy: recorded.from_proxy,
            raw: kept(&recorded.raw),
            original: recorded.original_raw.as_ref().map(kept),
            fate: recorded.verdict.as_deref().and_then(ruling).or(recorded.held.then(|| fate(recorded))),
            note: recorded.note.clone(),
            event: recorded.event.clone(),
        }
    }

    fn write(&self, out: &mut dyn Write, verb: &str) -> io::Result<()> {
        let time = format!("#{}, {:.3}", self.sequence, timestamp(self.time_ns));
        let who = match (self.from_proxy, self.direction) {
            (true, _) => "The proxy",
            (false, Direction::ClientToServer) => "The client",
            (false, Direction::ServerToClient) => "The server",
        };
        if let Some(event) = &self.event {
            return writeln!(out, "\nInstead of a message ({time}): {}", code(event));
        }
        match &self.original {
            Some(original) => {
                writeln!(out, "\n{who} {verb} ({time}):\n\n{}", shown(original))?;
                writeln!(out, "\nThis was changed to:\n\n{}", shown(&self.raw))?;
            }
            None => writeln!(out, "\n{who} {verb} ({time}):\n\n{}", shown(&self.raw))?,
        }
        self.fate.iter().try_for_each(|fate| writeln!(out, "\n{fate}"))?;
        self.note.iter().try_for_each(|note| writeln!(out, "\nSomebody noted:\n\n{}", block("text", note)))
    }
}

/// ``The rule `no-deletes` denied it (audit `…/7`).``
fn ruling(verdict: &Verdict) -> Option<String> {
    let said = match (verdict.what, verdict.rule.as_deref()) {
        (VerdictKind::Deny, Some(rule)) => format!("The rule {} denied it", code(rule)),
        (VerdictKind::Deny, None) => "It was denied".to_owned(),
        (VerdictKind::Observe, Some(rule)) => format!("The rule {} took note of it", code(rule)),
        // What came of a question is said of a message that was held.
        (VerdictKind::Allow | VerdictKind::Ask | VerdictKind::Observe, _) => return None,
    };
    let audit = verdict.audit.map(|audit| format!(" (audit {})", code(&audit.to_string()))).unwrap_or_default();
    Some(format!("{said}{audit}."))
}

/// ``It was held for 3.2 s, and dropped by `tui`: `too dangerous`.``
fn fate(recorded: &Recorded) -> String {
    let time = recorded.held_ns.map(|ns| format!(" for {}", duration(ns))).unwrap_or_default();
    let Some(outcome) = recorded.outcome else { return "It was held, and what became of it is not known.".into() };
    let by = recorded.decided_by.as_deref().map(|by| format!(" by {}", code(by))).unwrap_or_default();
    let why = recorded.why.as_deref().map(|why| format!(": {}", code(why))).unwrap_or_default();
    format!("It was held{time}, and {}{by}{why}.", outcome.as_str())
}

impl Evidence {
    pub(super) fn of(sent: Option<Sent>, message: &Told) -> Self {
        let took = message.duration_ns().map(|ns| format!(" after {}", duration(ns))).unwrap_or_default();
        let how = match message.status() {
            Some(Status::Ok) if message.recorded.modified => format!(": modified, ok{took}"),
            Some(status) => format!(": {}{took}", outcome(status)),
            None if message.recorded.modified => ": modified".into(),
            None => String::new(),
        };
        let title = sent.as_ref().map_or_else(|| what(message), |sent| sent.what.clone());
        let sequence = sent.as_ref().map_or(message.recorded.sequence, |sent| sent.message.sequence);
        let is_event = message.kind == MessageKind::Event;
        let title =
            if is_event { "what happened instead of a message".into() } else { format!("{}{how}", code(&title)) };
        Self { sequence, title, sent: sent.map(|sent| sent.message), got: Some(Shown::of(message)) }
    }

    pub(super) fn unanswered(sent: Sent) -> Self {
        let title = format!("{}: never answered", code(&sent.what));
        Self { sequence: sent.message.sequence, title, sent: Some(sent.message), got: None }
    }
}

pub(super) fn sections(out: &mut dyn Write, evidence: &[Evidence], left_out: u64) -> io::Result<()> {
    if evidence.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Evidence")?;
    for evidence in evidence {
        writeln!(out, "\n### #{} {}", evidence.sequence, evidence.title)?;
        if let Some(sent) = &evidence.sent {
            sent.write(out, "sent")?;
        }
        if let Some(got) = &evidence.got {
            got.write(out, if evidence.sent.is_some() { "returned" } else { "sent" })?;
        }
    }
    if left_out > 0 {
        writeln!(out, "\n{left_out} more pieces of evidence are left out.")?;
    }
    Ok(())
}

/// A message over several lines, cut if it is long.
fn shown(raw: &[u8]) -> String {
    if raw.len() <= BLOCK_BYTES_MAX {
        let text = indented(raw);
        let language = if text.starts_with(['{', '[']) { "json" } else { "text" };
        return block(language, &text);
    }
    format!(
        "{}\n\n(the beginning; the rest is left out)",
        block("text", &String::from_utf8_lossy(&raw[..BLOCK_BYTES_MAX]))
    )
}
