//! Prints a session: what it is, then a line a message.

mod exchanges;
mod mirror;

use std::path::PathBuf;

use clap::Args;
use mcp_store::catalogue::open_session;
use mcp_store::story::{Fault, Status};
use mcp_store::{Direction, MessageKind, Recorded, Session, SessionEntry, StateDir, Story, Summary, Told};
use mcp_wire::visible::{visible, visible_bytes, visible_lines};
use mcp_wire::{Kind, Message};

use crate::failure::Failure;
use crate::report::{self, ColorChoice, Page, Style, say};
use exchanges::Exchanges;

#[derive(Args)]
pub struct InspectArgs {
    /// A session file, or a recorded session by its id, the beginning of it, or its name
    #[arg(required_unless_present = "session_file")]
    session: Option<String>,
    #[arg(long, value_name = "FILE", conflicts_with = "session", help = "The session, as a file")]
    session_file: Option<PathBuf>,
    /// Print what the messages say, and the headers they came with
    #[arg(long, short)]
    verbose: bool,
}

pub fn inspect(args: &InspectArgs, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let session = match (&args.session_file, &args.session) {
        (Some(file), _) => Session::open(file, Some(state))?,
        (None, wanted) => {
            let (session, findings) = open_session(wanted.as_deref().unwrap_or_default(), state)?;
            findings.iter().for_each(|finding| say(&format!("mcp-proxy: {finding}")));
            session
        }
    };
    let mut page = Page::new(color);
    print_header(&mut page, session.summary())?;
    page.line("")?;
    let lines = Lines { show_conversation: session.summary().several_conversations };
    let mut story = Story::of(&session.summary().header);
    let mut exchanges = Exchanges::foresee(&session, args.verbose)?;
    session.for_each_entry(|entry| -> Result<(), Failure> {
        let SessionEntry::Message(message) = entry else {
            return print_lines(&mut page, |page| exchanges.pass(page, entry));
        };
        let told = story.tell(message);
        let mut line = lines.line(&page, &told);
        if let Some(disagreement) = exchanges.disagreement(&told.recorded) {
            line = format!("{line} {}", page.styled(Style::Bad, &disagreement));
        }
        page.line(&line)?;
        let beside = exchanges.beside(&page, &told.recorded);
        if args.verbose {
            print_payload(&mut page, &told.recorded, &beside)?;
        }
        Ok(())
    })?;
    print_lines(&mut page, |page| exchanges.rest(page))?;
    Ok(page.end()?)
}

fn print_lines(page: &mut Page, lines: impl FnOnce(&Page) -> Vec<String>) -> Result<(), Failure> {
    for line in lines(page) {
        page.line(&line)?;
    }
    Ok(())
}

pub fn print_header(page: &mut Page, summary: &Summary) -> Result<(), Failure> {
    let header = &summary.header;
    let server = header.server_command.as_deref().or(header.server_url.as_deref()).unwrap_or("unknown");
    let mut facts = vec![("session", header.id.to_string())];
    if let Some(name) = &header.name {
        facts.push(("name", visible(name).to_string()));
    }
    facts.push(("server", format!("{} ({})", visible(server), header.transport.as_str())));
    facts.push(("started", format!("{:.3}", header.started_at())));
    facts.push(("ended", ending(summary)));
    facts.push(("messages", summary.messages.to_string()));
    if let Some(next) = summary.end.as_ref().and_then(|end| end.continued_in) {
        facts.push(("goes on in", next.to_string()));
    }
    if let Some(earlier) = header.continues {
        facts.push(("goes on from", earlier.to_string()));
    }
    for (key, value) in &summary.notes {
        facts.push(("note", format!("{} = {}", visible(key), visible(value))));
    }
    for warning in &summary.warnings {
        facts.push(("warning", visible(warning).to_string()));
    }
    for (label, fact) in facts {
        let label = page.styled(Style::Heading, &format!("{label:<12}"));
        page.line(&format!("{label} {fact}"))?;
    }
    Ok(())
}

fn ending(summary: &Summary) -> String {
    let Some(ended_ns) = summary.ended_ns else {
        return if summary.live { "still running".into() } else { "unknown: it was interrupted".into() };
    };
    let lasted = report::duration(ended_ns.saturating_sub(summary.header.started_ns));
    let how = match &summary.end {
        Some(end) if end.recovered => ", interrupted".to_owned(),
        Some(end) => end.server.as_ref().map(|status| format!(", server: {}", visible(status))).unwrap_or_default(),
        None => String::new(),
    };
    format!("{:.3} (after {lasted}{how})", mcp_store::recorded::timestamp(ended_ns))
}

/// Turns messages into lines.
#[derive(Default)]
pub struct Lines {
    show_conversation: bool,
}

impl Lines {
    /// `#003 → tools/call [read_file] id=2`, `#004 ← tools/call [read_file] id=2 12ms ok`
    pub fn line(&self, page: &Page, told: &Told) -> String {
        let recorded = &told.recorded;
        let number = page.styled(Style::Faint, &format!("#{:03}", recorded.sequence));
        let mut parts = vec![number];
        parts.extend(self.show_conversation.then(|| format!("c{}", recorded.conversation)));
        parts.push(recorded.direction.arrow().to_string());
        describe(page, told, &mut parts);
        if recorded.from_proxy {
            parts.push("by the proxy".into());
        }
        if recorded.modified {
            parts.push("modified".into());
        }
        if let Some(ambiguity) = told.message.peek().ambiguity.filter(|_| told.is_message()) {
            parts.push(page.styled(Style::Bad, &format!("opaque: {ambiguity}")));
        }
        parts.join(" ")
    }
}

fn describe(page: &Page, told: &Told, parts: &mut Vec<String>) {
    let raw = &told.recorded.raw;
    match told.kind {
        MessageKind::Request | MessageKind::Notification | MessageKind::Response | MessageKind::Error => {
            parts.push(what(told));
            parts.extend(told.id().map(|id| format!("id={}", visible_bytes(id))));
            parts.extend(told.duration_ns().map(report::duration));
            parts.extend(told.status().map(|status| show_status(page, status)));
        }
        MessageKind::Batch => parts.push(format!("batch of {}", mcp_wire::scan::batch_items(raw).count())),
        MessageKind::OtherJson => parts.push(format!("json {}", quote(raw))),
        MessageKind::NotJson => parts.push(format!("bytes {}", quote(raw))),
        MessageKind::Noise => parts.push(format!("noise {}", quote(raw))),
        MessageKind::Event => {
            let event = told.recorded.event.as_deref().unwrap_or_default();
            parts.push(page.styled(Style::Bad, &format!("! {}", visible(event))));
        }
    }
}

/// A method, with the tool, prompt or resource it is about.
fn what(told: &Told) -> String {
    let Some(method) = told.method() else { return "response".to_owned() };
    match told.subject() {
        Some(subject) => format!("{} [{}]", visible(&method), visible(&subject)),
        None => visible(&method).to_string(),
    }
}

fn show_status(page: &Page, status: &Status) -> String {
    match status {
        Status::Ok => page.styled(Style::Good, "ok"),
        Status::InputRequired => "input required".to_owned(),
        Status::Err(Fault::Tool) => page.styled(Style::Bad, "tool error"),
        Status::Err(Fault::Error { code, message }) => {
            let code = code.as_ref().map(|code| match code {
                Ok(code) => format!(" {code}"),
                Err(spelled) => format!(" {}", short(spelled.as_bytes())),
            });
            let text = message.as_ref().map(|text| format!(" {}", quote(text.as_bytes())));
            page.styled(Style::Bad, &format!("error{}{}", code.unwrap_or_default(), text.unwrap_or_default()))
        }
    }
}

/// The beginning of something a peer sent.
fn short(bytes: &[u8]) -> String {
    const SHOWN: usize = 72;
    let text = visible_bytes(&bytes[..bytes.len().min(4 * SHOWN)]);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() || bytes.len() > 4 * SHOWN {
        shown.push('…');
    }
    shown
}

fn quote(bytes: &[u8]) -> String {
    format!("\"{}\"", short(bytes))
}

fn print_payload(page: &mut Page, recorded: &Recorded, beside: &[String]) -> Result<(), Failure> {
    let is_message = recorded.event.is_none();
    let side = match recorded.direction {
        Direction::ClientToServer => "client to server",
        Direction::ServerToClient => "server to client",
    };
    if is_message {
        let line = format!("    {:.3} {side}, {} bytes", recorded.timestamp(), recorded.raw.len());
        page.line(&page.styled(Style::Faint, &line))?;
    }
    for line in beside {
        page.line(line)?;
    }
    if is_message {
        for line in visible_lines(&indented(&recorded.raw)).to_string().lines() {
            page.line(&format!("    {line}"))?;
        }
    }
    Ok(())
}

/// JSON over several lines for reading, with every number and string as it was spelled. What is not
/// JSON is shown as it is.
fn indented(raw: &[u8]) -> String {
    let message = Message::new(bytes::Bytes::copy_from_slice(raw));
    if message.kind() == Kind::NotJson {
        return String::from_utf8_lossy(raw).into_owned();
    }
    let mut out = String::with_capacity(raw.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    let text = String::from_utf8_lossy(raw);
    let is_blank = |c: &char| matches!(c, ' ' | '\n' | '\r' | '\t');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            (in_string, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            c if is_blank(&c) => {}
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(is_blank).is_some() {}
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(close) => out.push(close),
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => out.push(c),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    /// Deeper than this, more blanks help nobody, and a hostile message could ask for gigabytes.
    const INDENT_MAX: usize = 64;
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(INDENT_MAX)));
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn payloads_keep_their_spelling() {
        let shown = indented(br#"{ "a":1e400,"b" : [ ],"c":[1,{"d":"x, {y} \" \u0000"}] }"#);
        let expected = "{\n  \"a\": 1e400,\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x, {y} \\\" \\u0000\"\n    }\n  ]\n}";
        assert_eq!(shown, expected);
    }
}
