//! What the session was: the head of the report.

use std::collections::BTreeSet;
use std::io::{self, Write};

use mcp_wire::scan::{decode_string, member_at};

use super::super::{Ending, counted};
use super::inline::{block, code, code_cell, duration};
use crate::recorded::{Direction, timestamp};
use crate::session::Summary;
use crate::story::{MessageKind, Status, Told};

/// Different clients, servers and revisions named in the summary of a report.
const NAMED_MAX: usize = 8;

#[derive(Default)]
pub(super) struct Facts {
    servers: BTreeSet<String>,
    clients: BTreeSet<String>,
    revisions: BTreeSet<String>,
    counts: [u64; KINDS.len()],
    errors: u64,
    modified: u64,
    denied: u64,
    held: u64,
    kept_back: u64,
    first_ns: Option<u64>,
    last_ns: u64,
}

const KINDS: [(&str, &[MessageKind]); 5] = [
    ("request", &[MessageKind::Request]),
    ("answer", &[MessageKind::Response, MessageKind::Error]),
    ("notification", &[MessageKind::Notification]),
    ("noise line", &[MessageKind::Noise]),
    ("other", &[MessageKind::Batch, MessageKind::OtherJson, MessageKind::NotJson, MessageKind::Event]),
];

impl Facts {
    pub(super) fn add(&mut self, message: &Told) {
        for (count, (_, kinds)) in self.counts.iter_mut().zip(KINDS) {
            *count += u64::from(kinds.contains(&message.kind));
        }
        self.errors += u64::from(message.status().is_some_and(Status::is_err) || message.kind == MessageKind::Event);
        self.modified += u64::from(message.recorded.modified);
        let is_denied = message.recorded.is_denied();
        self.denied += u64::from(is_denied);
        self.held += u64::from(message.recorded.held && !is_denied);
        self.kept_back += u64::from(!message.recorded.went_on() && !is_denied);
        self.first_ns = self.first_ns.or(Some(message.recorded.time_ns));
        self.last_ns = self.last_ns.max(message.recorded.time_ns);
        if let Some(revision) = &message.revision {
            note(&mut self.revisions, Some(revision.to_string()));
        }
        if message.asked.as_ref().is_some_and(|asked| &*asked.method == "initialize") {
            match message.recorded.direction {
                Direction::ClientToServer => note(&mut self.clients, who(message, ["params", "clientInfo"])),
                Direction::ServerToClient => note(&mut self.servers, who(message, ["result", "serverInfo"])),
            }
        } else if self.clients.is_empty() {
            note(&mut self.clients, message.client.as_ref().map(|client| client.to_string()));
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write, session: &Summary, ending: &Ending) -> io::Result<()> {
        let header = &session.header;
        let server = header.server_command.as_deref().or(header.server_url.as_deref()).unwrap_or("unknown");
        writeln!(out, "# MCP session {}\n", &header.id.to_string()[..8])?;
        writeln!(out, "| | |\n|---|---|")?;
        let mut row = |name: &str, fact: &str| writeln!(out, "| {name} | {fact} |");
        row("session", &header.id.to_string())?;
        if let Some(name) = &header.name {
            row("name", &code_cell(name))?;
        }
        row("server", &format!("{} over {}", code_cell(server), header.transport.as_str()))?;
        for (name, known) in
            [("server says", &self.servers), ("client says", &self.clients), ("revision", &self.revisions)]
        {
            if !known.is_empty() {
                row(name, &known.iter().map(|text| code_cell(text)).collect::<Vec<_>>().join(", "))?;
            }
        }
        row("started", &format!("{:.3}", header.started_at()))?;
        row("ended", &ended(session))?;
        row("messages", &self.messages(ending))?;
        row("errors", &self.errors.to_string())?;
        for (name, count) in [
            ("denied by rules", self.denied),
            ("modified", self.modified),
            ("held", self.held),
            ("held and never passed on", self.kept_back),
        ] {
            if count > 0 {
                row(name, &count.to_string())?;
            }
        }
        for (key, value) in &session.notes {
            row("note", &format!("{} = {}", code_cell(key), code_cell(value)))?;
        }
        for warning in &session.warnings {
            row("warning", &code_cell(warning))?;
        }
        if ending.is_partial {
            row("warning", "this is a part: the export was interrupted")?;
        }
        match session.end.as_ref().map(|end| end.last_words.trim()) {
            Some(words) if !words.is_empty() => {
                writeln!(out, "\nThe server's last words on standard error:\n\n{}", block("text", words))
            }
            _ => Ok(()),
        }
    }

    fn messages(&self, ending: &Ending) -> String {
        let kinds: Vec<String> = self
            .counts
            .iter()
            .zip(KINDS)
            .filter(|(count, _)| **count > 0)
            .map(|(count, (name, _))| counted(*count, name))
            .collect();
        let of_all = if ending.chosen == ending.all { String::new() } else { format!(" of {}", ending.all) };
        let over = self.first_ns.map(|first| self.last_ns - first).filter(|ns| *ns > 0);
        let over = over.map(|ns| format!(", over {}", duration(ns))).unwrap_or_default();
        let kinds = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
        format!("{}{of_all}{kinds}{over}", ending.chosen)
    }
}

fn ended(session: &Summary) -> String {
    let Some(ns) = session.ended_ns else {
        return if session.live { "still running".into() } else { "unknown".into() };
    };
    let lasted = duration(ns.saturating_sub(session.header.started_ns));
    let how = session.end.as_ref().and_then(|end| end.server.as_deref());
    let how = how.map(|how| format!(", server: {}", code(how))).unwrap_or_default();
    format!("{:.3}, after {lasted}{how}", timestamp(ns))
}

/// `notes-server 1.2`, as somebody introduced himself.
fn who(message: &Told, at: [&'static str; 2]) -> Option<String> {
    let text = |name| {
        let span = member_at(message.message.bytes(), at.into_iter().chain([name]))?;
        decode_string(message.message.slice(span))
    };
    let parts: Vec<_> = [text("name"), text("version")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn note(known: &mut BTreeSet<String>, name: Option<String>) {
    known.extend(name.filter(|_| known.len() < NAMED_MAX));
}
