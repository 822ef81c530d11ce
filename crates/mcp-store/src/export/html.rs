//! One page that shows the session in a browser, offline: list, detail, filter and a picture of the
//! calls. Everything is inside it, and a strict policy keeps it from asking anybody for anything.
//!
//! Messages stand in the page as data. The page's own script, which the policy names by its hash, is
//! all that runs, and it puts text into the page as text only.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_wire::inert::inert_in_page;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Ending, Exporter, counted};
use crate::exchange::{Headers, SessionEntry};
use crate::session::Summary;
use crate::story::{Fault, Status, Told};

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
/// One script, in the order in which its parts need each other.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("html/text.js"),
    include_str!("html/rows.js"),
    include_str!("html/filter.js"),
    include_str!("html/list.js"),
    include_str!("html/waterfall.js"),
    include_str!("html/detail.js"),
    include_str!("html/json.js"),
    include_str!("html/keys.js"),
    include_str!("html/begin.js"),
    "})();\n"
);

/// Messages in a page. Browsers keep all of them in memory, and a filter is tried on each.
const MESSAGES_MAX: u64 = 20_000;
/// Bytes of all messages in a page together: browsers keep them in memory.
const PAYLOADS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of one message in a page; the rest is left out.
const PAYLOAD_BYTES_MAX: usize = 128 * 1024;
/// Parts of HTTP exchanges in a page, and bytes shown of one header.
const EXCHANGES_MAX: u64 = 40_000;
const HEADER_BYTES_MAX: usize = 2 * 1024;

#[derive(Default)]
pub(super) struct Html {
    session: Option<Summary>,
    started_ns: u64,
    last_us: u64,
    has_entries: bool,
    messages: u64,
    payload_bytes: usize,
    cut: u64,
    too_many: u64,
    exchange_entries: u64,
    exchanges_left_out: u64,
    client: Option<String>,
    revision: Option<String>,
}

impl Exporter for Html {
    fn begin(&mut self, out: &mut dyn Write, session: &Summary) -> io::Result<()> {
        self.started_ns = session.header.started_ns;
        let head = PAGE.split("{{data}}").next().unwrap_or_default();
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
            hash(SCRIPT),
            hash(STYLE)
        );
        let head = head
            .replace("{{policy}}", &policy)
            .replace("{{title}}", &session.header.id.to_string()[..8])
            .replace("{{style}}", STYLE);
        self.session = Some(session.clone());
        write!(out, "{head}{{\"entries\":[")
    }

    fn exchange(&mut self, out: &mut dyn Write, entry: &SessionEntry) -> io::Result<()> {
        if self.exchange_entries >= EXCHANGES_MAX || self.is_full() {
            self.exchanges_left_out += u64::from(matches!(entry, SessionEntry::Request(..)));
            return Ok(());
        }
        self.exchange_entries += 1;
        let value = match entry {
            SessionEntry::Message(_) | SessionEntry::Amendment(_) => return Ok(()),
            SessionEntry::Request(mark, head) => json!({
                "x": mark.exchange,
                "conv": mark.conversation,
                "at": self.since_start(mark.time_ns),
                "method": head.method,
                "target": head.target,
                "request": headers(&head.headers),
            }),
            SessionEntry::Answer(mark, head) => json!({
                "x": mark.exchange,
                "status": head.status,
                "answer": headers(&head.headers),
                "until": self.since_start(mark.time_ns),
            }),
            SessionEntry::End(mark, how) => {
                json!({ "x": mark.exchange, "until": self.since_start(mark.time_ns), "ended": how })
            }
        };
        self.entry(out, value)
    }

    fn message(&mut self, out: &mut dyn Write, message: &Told) -> io::Result<()> {
        self.client = self.client.take().or_else(|| message.client.as_ref().map(|client| client.to_string()));
        self.revision = message.revision.as_ref().map(|revision| revision.to_string()).or_else(|| self.revision.take());
        if self.is_full() {
            self.too_many += 1;
            return Ok(());
        }
        self.messages += 1;
        let value = self.described(message);
        self.entry(out, value)
    }

    fn end(&mut self, out: &mut dyn Write, ending: &Ending) -> io::Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        let header = &session.header;
        let data = json!({
            "session": {
                "id": header.id,
                "name": header.name,
                "server": header.server_command.as_ref().or(header.server_url.as_ref()),
                "transport": header.transport.as_str(),
                "client": self.client,
                "revision": self.revision,
                "started_at": header.started_at().to_string(),
                "notes": session.notes,
            },
            "started_ms": header.started_ns as f64 / 1e6,
            "lasted_us": session.ended_ns.map(|ns| self.since_start(ns)),
            "end_at": self.last_us,
            "notes": self.notes(&session, ending),
        });
        // The entries stand in the same object, before the rest.
        let data = inert_in_page(&data.to_string()).into_owned();
        let rest = PAGE.split("{{data}}").nth(1).unwrap_or_default().replace("{{script}}", SCRIPT);
        write!(out, "\n],{}{rest}", &data[1..])
    }

    fn left_out(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.too_many > 0 {
            parts.push(format!(
                "{}, because a page holds {MESSAGES_MAX} or 32 MiB of them",
                counted(self.too_many, "message")
            ));
        }
        if self.cut > 0 {
            parts.push(format!("the rest of {} longer than 128 KiB", counted(self.cut, "message")));
        }
        if self.exchanges_left_out > 0 {
            parts.push(counted(self.exchanges_left_out, "HTTP exchange"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl Html {
    fn is_full(&self) -> bool {
        self.messages >= MESSAGES_MAX || self.payload_bytes >= PAYLOADS_BYTES_MAX
    }

    /// Microseconds.
    fn since_start(&mut self, time_ns: u64) -> u64 {
        let since = time_ns.saturating_sub(self.started_ns) / 1_000;
        self.last_us = self.last_us.max(since);
        since
    }

    /// A message as the page's script wants it. What is not there is left out.
    fn described(&mut self, message: &Told) -> Value {
        let recorded = &message.recorded;
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
        put("seq", recorded.sequence.into());
        put("at", self.since_start(recorded.time_ns).into());
        put("dir", u8::from(recorded.direction == crate::Direction::ServerToClient).into());
        put("kind", message.kind.as_str().into());
        put("size", recorded.raw.len().into());
        put("transport", recorded.transport.as_str().into());
        let (text, is_cut) = self.payload(&recorded.raw);
        if is_cut {
            self.cut += 1;
            put("cut", true.into());
        }
        match &recorded.event {
            Some(event) => put("event", event.as_str().into()),
            None => put("raw", text.into()),
        }
        if let Some(original) = &recorded.original_raw {
            put("original", self.payload(original).0.into());
        }
        let opaque = message.opaque().map(|why| why.to_string());
        let id = message.id().map(|id| String::from_utf8_lossy(id).into_owned());
        for (name, value) in [
            ("method", message.method().map(|method| method.into_owned())),
            ("name", message.subject().map(|subject| subject.into_owned())),
            ("id", id),
            ("event_id", recorded.event_id.clone()),
            ("opaque", opaque),
            ("status", message.status().map(|status| status.as_str().to_owned())),
            ("outcome", recorded.outcome.map(|outcome| outcome.as_str().to_owned())),
            ("by", recorded.decided_by.clone()),
            ("why", recorded.why.clone()),
            ("verdict", recorded.verdict.as_deref().map(|verdict| verdict.what.as_str().to_owned())),
            ("rule", recorded.verdict.as_deref().and_then(|verdict| Some(verdict.rule.as_deref()?.to_owned()))),
            ("op", recorded.verdict.as_deref().and_then(|verdict| Some(verdict.operation?.to_owned()))),
            ("audit_id", recorded.verdict.as_deref().and_then(|verdict| Some(verdict.audit?.to_string()))),
            ("mark", recorded.mark.clone()),
            ("note", recorded.note.clone()),
        ] {
            if let Some(value) = value {
                put(name, value.into());
            }
        }
        match message.status() {
            Some(Status::Err(Fault::Tool)) => put("tool_error", true.into()),
            Some(Status::Err(Fault::Error { code, message })) => {
                if let Some(code) = code {
                    put("code", code.as_ref().map_or_else(|spelled| json!(spelled), |code| json!(code)));
                }
                if let Some(message) = message {
                    put("message", message.to_string().into());
                }
            }
            _ => {}
        }
        for (name, value) in [
            ("answers", message.answers),
            ("took", message.duration_ns().map(|ns| ns / 1_000)),
            ("held_for", recorded.held_ns.map(|ns| ns / 1_000)),
            ("exchange", recorded.exchange),
            ("conv", Some(u64::from(recorded.conversation)).filter(|number| *number > 0)),
            ("parent", recorded.parent),
        ] {
            if let Some(value) = value {
                put(name, value.into());
            }
        }
        if let Some(server) = &recorded.upstream {
            put("upstream", server.to_string().into());
        }
        if recorded.from_proxy {
            put("proxy", true.into());
        }
        if recorded.held && !recorded.is_denied() {
            put("held", true.into());
        }
        if !recorded.went_on() {
            put("kept_back", true.into());
        }
        Value::Object(object)
    }

    /// As much of a message as a page holds, and whether that is not all.
    fn payload(&mut self, raw: &[u8]) -> (String, bool) {
        let text = String::from_utf8_lossy(&raw[..raw.len().min(PAYLOAD_BYTES_MAX)]).into_owned();
        self.payload_bytes += text.len();
        (text, raw.len() > PAYLOAD_BYTES_MAX)
    }

    fn notes(&self, session: &Summary, ending: &Ending) -> Vec<Value> {
        let mut notes = Vec::new();
        let mut note = |strong: bool, text: String| notes.push(json!({ "strong": strong, "text": text }));
        if ending.chosen < ending.all {
            note(false, format!("{} of {} messages of the session were chosen.", ending.chosen, ending.all));
        }
        if let Some(left_out) = self.left_out() {
            note(true, format!("Left out: {left_out}. Export with --filter to see others."));
        }
        if ending.is_partial {
            note(true, "This is a part: the export was interrupted.".into());
        }
        for warning in &session.warnings {
            note(true, format!("{warning}."));
        }
        match (ending.is_redacted, ending.masked) {
            (false, _) => note(true, "Nothing was masked: this page may hold secrets.".into()),
            (true, 0) => note(false, "No secrets were found to mask.".into()),
            (true, 1) => note(false, "1 secret is masked as ***.".into()),
            (true, masked) => note(false, format!("{masked} secrets are masked as ***.")),
        }
        note(
            false,
            format!(
                "Made with mcp-proxy {}; it works offline and asks nobody for anything.",
                env!("CARGO_PKG_VERSION")
            ),
        );
        notes
    }

    fn entry(&mut self, out: &mut dyn Write, value: Value) -> io::Result<()> {
        let comma = if std::mem::replace(&mut self.has_entries, true) { "," } else { "" };
        write!(out, "{comma}\n{}", inert_in_page(&value.to_string()))
    }
}

fn headers(Headers(headers): &Headers) -> Vec<(String, String)> {
    let shown = |text: &str| text[..text.floor_char_boundary(HEADER_BYTES_MAX)].to_owned();
    headers.iter().map(|(name, value)| (shown(name), shown(value))).collect()
}

/// How a policy names what it lets run.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(Sha256::digest(text)))
}
