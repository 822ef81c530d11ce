//! What a call of a proxy tool does, in a few words for people: `call files__read`, `list tool "read a file"`,
//! `info prompt greet`, `batch of 3`. Such a call is known by what its arguments look like, as the tool may be
//! called anything. Nothing is decided by it.

use std::borrow::Cow;

use crate::visible::visible;
use crate::{Kind, Message, scan};

/// Characters shown of a capability's name or of a query: one line of a list.
const SHOWN_MAX: usize = 100;

const TYPES: [&str; 3] = ["tool", "resource", "prompt"];

/// The words, if it is such a call. They are safe to show.
pub fn label(message: &Message) -> Option<String> {
    let is_call = message.kind() == Kind::Request && message.method().is_some_and(|method| method == "tools/call");
    let span = scan::member_at(message.bytes(), ["params", "arguments"]).filter(|_| is_call)?;
    of_arguments(message.slice(span))
}

fn of_arguments(arguments: &[u8]) -> Option<String> {
    let action = word(arguments, "action", &["list", "info", "call", "batch"])?;
    if action == "batch" {
        let operations = unquoted(member(arguments, "operations")?);
        let is_list = operations.trim_ascii_start().starts_with(b"[");
        return is_list.then(|| format!("batch of {}", scan::batch_items(&operations).count()));
    }
    let kind = word(arguments, "type", &TYPES)?;
    let path = text(arguments, "path").map(|path| shown(&path));
    Some(match (action, path) {
        ("list", _) => {
            let filter = member(arguments, "filter").unwrap_or_default();
            let query = text(filter, "query").map(|query| format!(" \"{}\"", shown(&query)));
            format!("list {kind}{}", query.unwrap_or_default())
        }
        // Mostly it is a tool.
        ("call", Some(path)) if kind == "tool" => format!("call {path}"),
        (_, Some(path)) => format!("{action} {kind} {path}"),
        (_, None) => format!("{action} {kind}"),
    })
}

fn word(object: &[u8], name: &str, words: &[&'static str]) -> Option<&'static str> {
    let said = text(object, name)?;
    words.iter().copied().find(|word| said.trim().eq_ignore_ascii_case(word))
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    scan::member_at(object, [name]).map(|span| &object[span.range()])
}

fn text<'a>(object: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    scan::decode_string(member(object, name)?)
}

/// JSON, even where it is held by a text, as some clients have it.
pub fn unquoted(json: &[u8]) -> Cow<'_, [u8]> {
    match scan::decode_string(json) {
        Some(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        None => Cow::Borrowed(json),
    }
}

/// The beginning of something that a peer chose.
fn shown(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN_MAX).map_or(text.len(), |(at, _)| at);
    let clean = visible(&text[..end]).to_string();
    let mut beginning: String = clean.chars().take(SHOWN_MAX).collect();
    if end < text.len() || beginning.len() < clean.len() {
        beginning.push('…');
    }
    beginning
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: Option<&str>) {
        let request = |method: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"p","arguments":{arguments}}}}}"#)
        };
        let label = |method: &str| label(&Message::new(Bytes::from(request(method))));
        assert_eq!(label("tools/call").as_deref(), expected, "{arguments}");
        assert_eq!(label("prompts/get"), None);
    }

    #[test]
    fn a_use_is_told_in_a_few_words() {
        check(r#"{"action":"call","type":"tool","path":"a__x","args":{"path":"y"}}"#, Some("call a__x"));
        check(r#"{"action":"call","type":"resource","path":"mem://n"}"#, Some("call resource mem://n"));
        check(r#"{"action":"info","type":"prompt","path":"greet"}"#, Some("info prompt greet"));
        check(r#"{"action":"list","type":"tool"}"#, Some("list tool"));
        check(
            r#"{"action":"list","type":"tool","filter":{"query":"read a file"}}"#,
            Some(r#"list tool "read a file""#),
        );
        check(r#"{"action":"batch","operations":[{},{},{}]}"#, Some("batch of 3"));
        check(r#"{"action":"batch","operations":"[{},{}]"}"#, Some("batch of 2"));
    }

    #[test]
    fn what_is_said_loosely_or_by_mistake_is_told_all_the_same() {
        check(r#"{"action":" Call","type":"TOOL","path":"x"}"#, Some("call x"));
        check(r#"{"action":"call","type":"tool"}"#, Some("call tool"));
        check(r#"{"action":"info","type":"prompt","path":7}"#, Some("info prompt"));
        check(r#"{"action":"list","type":"tool","filter":"x"}"#, Some("list tool"));
    }

    #[test]
    fn other_arguments_say_nothing() {
        for arguments in [
            "{}",
            "null",
            "7",
            r#"{"action":"call"}"#,
            r#"{"action":"call","type":"taxi","path":"x"}"#,
            r#"{"action":"delete","type":"tool","path":"x"}"#,
            r#"{"action":"batch","operations":{"a":1}}"#,
            r#"{"type":"tool","path":"x"}"#,
        ] {
            check(arguments, None);
        }
    }

    #[test]
    fn hostile_text_is_shown_and_cut() {
        check(r#"{"action":"info","type":"tool","path":"\u001b[2J\n\u202e"}"#, Some("info tool ␛[2J␊⟨U+202E⟩"));
        for path in ["é".repeat(100_000), "\u{202e}".repeat(99)] {
            let arguments = format!(r#"{{"action":"call","type":"tool","path":"{path}"}}"#);
            let label = of_arguments(arguments.as_bytes()).unwrap();
            assert_eq!((label.chars().count(), label.ends_with('…')), ("call ".len() + SHOWN_MAX + 1, true));
        }
    }
}
