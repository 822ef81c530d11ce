//! A bug report: what the session was, what passed, and the evidence for whatever went wrong. It is
//! bounded, because a person reads it; `--filter` says which part of a long session it is about.

mod evidence;
mod inline;
mod summary;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use self::evidence::{Evidence, Sent, sections};
use self::inline::{code_cell, duration};
use self::summary::Facts;
use super::{Ending, Exporter};
use crate::exchange::{OpenExchanges, SessionEntry};
use crate::recorded::{Recorded, timestamp};
use crate::segment::{OutcomeKind, Verdict, VerdictKind};
use crate::session::Summary;
use crate::story::{Fault, MessageKind, Status, Told};

/// Rows of the timeline from either end: a person reads the report.
const TIMELINE_HALF: usize = 250;
/// Messages and calls shown as evidence: a person reads the report.
const EVIDENCE_MAX: usize = 50;
/// Requests kept until their answer shows whether they are evidence.
const OPEN_MAX: usize = 1_024;
/// Failed HTTP exchanges that are listed: a person reads the report.
const TROUBLE_MAX: usize = 50;

pub(super) struct Markdown {
    is_picked: bool,
    session: Option<Summary>,
    facts: Facts,
    first_rows: Vec<String>,
    last_rows: VecDeque<String>,
    rows_left_out: u64,
    open: BTreeMap<u64, Sent>,
    evidence: Vec<Evidence>,
    evidence_left_out: u64,
    exchanges: OpenExchanges<String>,
    trouble: Vec<String>,
    trouble_left_out: u64,
}

impl Markdown {
    /// With `is_picked`, everything that is told was asked for, and is evidence.
    pub(super) fn new(is_picked: bool) -> Self {
        Self {
            is_picked,
            session: None,
            facts: Facts::default(),
            first_rows: Vec::new(),
            last_rows: VecDeque::new(),
            rows_left_out: 0,
            open: BTreeMap::new(),
            evidence: Vec::new(),
            evidence_left_out: 0,
            exchanges: OpenExchanges::default(),
            trouble: Vec::new(),
            trouble_left_out: 0,
        }
    }
}

impl Exporter for Markdown {
    fn begin(&mut self, _out: &mut dyn Write, session: &Summary) -> io::Result<()> {
        self.session = Some(session.clone());
        Ok(())
    }

    fn exchange(&mut self, _out: &mut dyn Write, entry: &SessionEntry) -> io::Result<()> {
        match entry {
            SessionEntry::Message(_) | SessionEntry::Amendment(_) => {}
            SessionEntry::Request(mark, head) => {
                *self.exchanges.keep(mark.exchange, &head.headers) = format!("{} {}", head.method, head.target);
            }
            SessionEntry::Answer(mark, head) => {
                let name = self.exchanges.get(mark.exchange).cloned().unwrap_or_default();
                if head.status >= 400 {
                    self.trouble(mark.time_ns, &format!("{name} → {}", head.status));
                }
            }
            SessionEntry::End(mark, how) => {
                let name = self.exchanges.remove(mark.exchange).unwrap_or_default();
                if let Some(how) = how {
                    self.trouble(mark.time_ns, &format!("{name}: {how}"));
                }
            }
        }
        while self.exchanges.pop_excess().is_some() {}
        Ok(())
    }

    fn message(&mut self, _out: &mut dyn Write, message: &Told) -> io::Result<()> {
        self.facts.add(message);
        self.row(message);
        self.look_for_evidence(message);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, ending: &Ending) -> io::Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        for (_, sent) in std::mem::take(&mut self.open) {
            self.give(Evidence::unanswered(sent));
        }
        self.evidence.sort_by_key(|evidence| evidence.sequence);
        self.facts.write(out, &session, ending)?;
        self.write_timeline(out)?;
        self.write_trouble(out)?;
        sections(out, &self.evidence, self.evidence_left_out)?;
        let masked = match (ending.is_redacted, ending.masked) {
            (false, _) => "Nothing in it was masked: it may hold secrets.".to_owned(),
            (true, count) => format!("Secrets masked as `***`: {count}."),
        };
        writeln!(out, "\n---\n\nMade with mcp-proxy {}. {masked}", env!("CARGO_PKG_VERSION"))
    }

    fn left_out(&self) -> Option<String> {
        let parts: Vec<String> = [
            (self.rows_left_out, "rows of the timeline"),
            (self.evidence_left_out, "pieces of evidence"),
            (self.trouble_left_out, "HTTP exchanges that went wrong"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl Markdown {
    fn row(&mut self, message: &Told) {
        let row = row(message);
        if self.first_rows.len() < TIMELINE_HALF {
            self.first_rows.push(row);
            return;
        }
        self.last_rows.push_back(row);
        if self.last_rows.len() > TIMELINE_HALF {
            self.last_rows.pop_front();
            self.rows_left_out += 1;
        }
    }

    fn look_for_evidence(&mut self, message: &Told) {
        let sent = message.answers.and_then(|sequence| self.open.remove(&sequence));
        let is_bad = message.status().is_some_and(Status::is_err) || message.kind == MessageKind::Event;
        let is_changed = message.recorded.modified
            || message.recorded.note.is_some()
            || !message.recorded.went_on()
            || sent.as_ref().is_some_and(|sent| sent.is_modified);
        if message.kind == MessageKind::Request {
            self.open.insert(message.recorded.sequence, Sent::of(message));
            if self.open.len() > OPEN_MAX {
                self.open.pop_first();
            }
        } else if self.is_picked || is_bad || is_changed {
            self.give(Evidence::of(sent, message));
        }
    }

    fn give(&mut self, evidence: Evidence) {
        if self.evidence.len() < EVIDENCE_MAX {
            self.evidence.push(evidence);
        } else {
            self.evidence_left_out += 1;
        }
    }

    fn trouble(&mut self, time_ns: u64, what: &str) {
        if self.trouble.len() < TROUBLE_MAX {
            self.trouble.push(format!("- {:.3} {}", timestamp(time_ns), inline::code(what)));
        } else {
            self.trouble_left_out += 1;
        }
    }

    fn write_timeline(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n## Timeline\n")?;
        if self.first_rows.is_empty() {
            return writeln!(out, "No message.");
        }
        writeln!(out, "| # | time (UTC) | | message | took | outcome |\n|--:|---|---|---|--:|---|")?;
        self.first_rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
        if self.rows_left_out > 0 {
            writeln!(out, "| … | | | {} messages are left out | | |", self.rows_left_out)?;
        }
        self.last_rows.iter().try_for_each(|row| writeln!(out, "{row}"))
    }

    fn write_trouble(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.trouble.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n## HTTP exchanges that went wrong\n")?;
        self.trouble.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        if self.trouble_left_out > 0 {
            writeln!(out, "- and {} more", self.trouble_left_out)?;
        }
        Ok(())
    }
}

/// `| 4 | 14:02:03.123 | ← | tools/call read_note | 12ms | ok |`
fn row(message: &Told) -> String {
    let recorded = &message.recorded;
    let time = recorded.timestamp().strftime("%H:%M:%S.%3f").to_string();
    let mut marks = vec![];
    marks.extend(recorded.upstream.as_deref().map(|server| format!("with {}", code_cell(server))));
    marks.extend(recorded.parent.map(|parent| format!("made of {parent}")));
    marks.extend(recorded.modified.then(|| "modified".to_owned()));
    marks.extend(recorded.from_proxy.then(|| "by the proxy".to_owned()));
    marks.extend(recorded.verdict.as_deref().and_then(ruled));
    marks.extend((recorded.held && !recorded.is_denied()).then(|| held(recorded)));
    marks.extend(recorded.mark.as_deref().map(|mark| format!("marked {}", code_cell(mark))));
    let what = what(message);
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    let took = message.duration_ns().map(duration).unwrap_or_default();
    let outcome = message.status().map(outcome).unwrap_or_default();
    let arrow = recorded.direction.arrow();
    format!("| {} | {time} | {arrow} | {}{marks} | {took} | {outcome} |", recorded.sequence, code_cell(&what))
}

/// ``denied by `no-deletes` ``; nothing if it may go on like any other.
fn ruled(verdict: &Verdict) -> Option<String> {
    let rule = verdict.rule.as_deref().map(|rule| format!(" by {}", code_cell(rule))).unwrap_or_default();
    Some(match verdict.what {
        VerdictKind::Allow => return None,
        VerdictKind::Deny => format!("denied{rule}"),
        VerdictKind::Ask => format!("asked{rule}"),
        VerdictKind::Observe => format!("observed{rule}"),
    })
}

/// `held 3.2 s, dropped`
fn held(recorded: &Recorded) -> String {
    let mut words = vec!["held".to_owned()];
    words.extend(recorded.held_ns.map(duration));
    let outcome = recorded.outcome.filter(|outcome| !matches!(outcome, OutcomeKind::Forwarded | OutcomeKind::Modified));
    let outcome = outcome.map(|outcome| format!(", {}", outcome.as_str())).unwrap_or_default();
    format!("{}{outcome}", words.join(" "))
}

/// `tools/call [read_note]`, or what it is instead.
fn what(message: &Told) -> String {
    let recorded = &message.recorded;
    match (&recorded.event, message.kind) {
        (Some(event), _) => format!("! {event}"),
        (None, MessageKind::Noise | MessageKind::NotJson | MessageKind::OtherJson | MessageKind::Batch) => {
            format!(
                "{} {}",
                message.kind.as_str(),
                String::from_utf8_lossy(&recorded.raw[..recorded.raw.len().min(200)])
            )
        }
        (None, kind) => {
            let method = message.method().unwrap_or_else(|| kind.as_str().into());
            match message.subject() {
                Some(subject) => format!("{method} [{subject}]"),
                None => method.into_owned(),
            }
        }
    }
}

fn outcome(status: &Status) -> String {
    match status {
        Status::Ok => "ok".into(),
        Status::InputRequired => "input required".into(),
        Status::Err(Fault::Tool) => "**tool error**".into(),
        Status::Err(Fault::Error { code, message }) => {
            let code = code.as_ref().map(|code| match code {
                Ok(code) => code.to_string(),
                Err(spelled) => spelled.to_string(),
            });
            let text = [code.as_deref(), message.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
            if text.is_empty() { "**error**".into() } else { format!("**error** {}", code_cell(&text)) }
        }
    }
}
