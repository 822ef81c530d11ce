//! Messages in a few words. Everything that comes from a peer is made visible here.

use mcp_control::api::{Direction, Message, MessageKind};

use crate::text;

/// Lines of one text that are shown; the raw views have all of it.
const WRAPPED_LINES_MAX: usize = 1_000;

/// Method and tool: `tools/call [read_file]`, `tools/call (response)`; of a proxy tool also what it does:
/// `tools/call [proxy: call read_file]`.
pub(crate) fn what(message: &Message) -> String {
    let method = message.method.as_deref().map(text::clean);
    let does = message.proxied.as_deref().map(|does| format!(": {}", text::clean(does))).unwrap_or_default();
    let tool = message.tool.as_deref().map(|tool| format!(" [{}{does}]", text::clean(tool))).unwrap_or_default();
    match (message.kind, method) {
        (MessageKind::Event, _) => {
            message.event.as_deref().map(|event| text::clean(event).into_owned()).unwrap_or_default()
        }
        (MessageKind::Noise, _) => "noise".to_owned(),
        (MessageKind::Response | MessageKind::Error, Some(method)) => format!("{method} (response){tool}"),
        (MessageKind::Response | MessageKind::Error, None) => "(response)".to_owned(),
        (_, Some(method)) => format!("{method}{tool}"),
        (kind, None) => kind.as_str().to_owned(),
    }
}

/// How it went, if that is known: `ok`, `err -32601`, `denied`.
pub(crate) fn status(message: &Message) -> String {
    if let Some(outcome) = message.outcome.as_deref().filter(|outcome| is_telling(outcome)) {
        return text::clean(outcome).into_owned();
    }
    if message.verdict.as_deref() == Some("deny") {
        return "denied".to_owned();
    }
    match (message.status.as_deref(), message.code) {
        (Some("err"), Some(code)) => format!("err {code}"),
        (Some("input_required"), _) => "asks".to_owned(),
        (Some(status), _) => text::clean(status).into_owned(),
        (None, _) => String::new(),
    }
}

/// What went on as it came needs no word.
fn is_telling(outcome: &str) -> bool {
    matches!(outcome, "dropped" | "refused" | "answered" | "cancelled" | "discarded")
}

pub(crate) fn is_bad(message: &Message) -> bool {
    message.status.as_deref() == Some("err")
        || matches!(message.kind, MessageKind::Error | MessageKind::Event)
        || message.verdict.as_deref() == Some("deny")
}

pub(crate) fn is_to_server(message: &Message) -> bool {
    message.direction == Direction::ClientToServer
}

/// A value as the filter language takes it.
pub(crate) fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-/.".contains(c);
    match !value.is_empty() && value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// A text of several lines in lines of so many cells, broken between words where that can be. Clean.
pub(crate) fn wrapped(words: &str, cells: usize, ascii: bool) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines = Vec::new();
    for paragraph in words.lines().take(WRAPPED_LINES_MAX) {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let word = text::fit(word, cells, ascii);
            let needed = text::width(&line) + 1 + text::width(&word);
            if line.is_empty() {
                line = word;
            } else if needed <= cells {
                line.push(' ');
                line.push_str(&word);
            } else {
                lines.push(std::mem::replace(&mut line, word));
            }
        }
        lines.push(line);
        if lines.len() > WRAPPED_LINES_MAX {
            break;
        }
    }
    lines.truncate(WRAPPED_LINES_MAX);
    lines
}

/// What a session or an instance is called: the first letters of its id.
pub(crate) fn short_id(id: &str) -> String {
    text::clean(&id.chars().take(8).collect::<String>()).into_owned()
}
