//! What whoever uses a client is asked, in plain words. All of it may be hostile, and none of it endless.

use mcp_wire::visible::visible;
use mcp_wire::{Message, scan};

use crate::meaning::uses_of;
use crate::policy::Ruling;

/// Characters shown of a name in a question: they fit on a screen with the rest.
const NAME_CHARS_MAX: usize = 200;
/// Characters shown of a call's arguments in a question.
const ARGUMENTS_CHARS_MAX: usize = 1_000;
/// Characters shown of a rule's message in a question: as many as a rules file allows.
const MESSAGE_CHARS_MAX: usize = 2_000;

pub(super) fn question(said: &Message, ruling: &Ruling, server: Option<&str>) -> String {
    let mut lines = vec![format!("mcp-proxy: rule \"{}\" asks whether this may go on.", name(ruling.name()))];
    lines.extend(ruling.message.as_deref().map(|message| shorten(message, MESSAGE_CHARS_MAX)));
    let (method, subject) = ruling.asks_about(said).unwrap_or_default();
    let mut call = name(&method);
    let uses = uses_of(said);
    let is_asked_about = |used: &&Message| used.method().as_ref() == Some(&method) && used.subject() == subject;
    let shown = uses.iter().find(is_asked_about).unwrap_or(said);
    if let Some(subject) = &subject {
        call = format!("{call}: {}", name(subject));
    }
    if let Some(operation) = ruling.operation {
        call = format!("{call} ({})", operation.name());
    }
    lines.push(call);
    lines.extend(server.map(|server| format!("server: {}", name(server))));
    let arguments = scan::member_at(shown.bytes(), ["params", "arguments"]).map(|span| shown.slice(span));
    let spelled = |json: &[u8]| shorten(&String::from_utf8_lossy(json), ARGUMENTS_CHARS_MAX);
    lines.extend(arguments.map(|arguments| format!("arguments: {}", spelled(arguments))));
    lines.join("\n")
}

fn name(text: &str) -> String {
    shorten(text, NAME_CHARS_MAX)
}

/// Only what is shown is looked at: there may be megabytes of the rest.
fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => visible(text).to_string(),
        Some((end, _)) => format!("{}… ({} bytes)", visible(&text[..end]), text.len()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_call_through_a_proxy_tool_is_shown_as_what_it_uses() {
        let call = r#"{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"name":"proxy","arguments":{"action":"call","type":"tool","path":"rm","args":{"all":true}}}}"#;
        let about = Some(("tools/call".into(), Some("rm".into())));
        let ruling = Ruling { rule: Some("careful".into()), about, ..Ruling::unfit() };
        let asked = question(&Message::new(Bytes::from(call)), &ruling, None);
        assert!(asked.ends_with("tools/call: rm\narguments: {\"all\":true}"), "{asked}");
    }

    #[test]
    fn hostile_words_are_shown_and_cut() {
        let long = "x".repeat(5_000);
        let call = format!(
            r#"{{"id":1,"method":"tools/call","params":{{"name":"write\u202e\nrule \"easy\" permits it","arguments":{{"path":"{long}"}}}}}}"#
        );
        let ruling = Ruling { rule: Some("careful".into()), message: Some("ask\nAnn".into()), ..Ruling::unfit() };
        let asked = question(&Message::new(Bytes::from(call)), &ruling, Some("files"));
        let lines: Vec<&str> = asked.lines().collect();
        assert_eq!(lines[0], "mcp-proxy: rule \"careful\" asks whether this may go on.");
        assert_eq!(lines[1], "ask␊Ann");
        assert_eq!(lines[2], "tools/call: write⟨U+202E⟩␊rule \"easy\" permits it");
        assert_eq!(lines[3], "server: files");
        assert!(lines[4].starts_with("arguments: {\"path\":\"xxx") && lines[4].ends_with("… (5011 bytes)"));
        assert_eq!(lines.len(), 5);
        assert!(asked.len() < 1_500);
    }
}
