//! Requests, under the names that their server knows.

use std::ops::Range;

use bytes::Bytes;
use mcp_wire::splice::splice_all;
use mcp_wire::{Message, Span, scan};

use super::links::may_have_links;
use crate::router::Namespace;
use crate::router::place::{Edits, at_path, change_text, quoted};

/// What a request for completions is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefKind {
    Prompt,
    /// A resource, or a template's text.
    Resource,
}

/// The edits that make a client's request one to its server: what it is about is called `original` there, and
/// the tasks it relates to have the server's ids.
pub fn request(ns: &Namespace, message: &Message, method: &str, original: &str) -> Edits {
    let bytes = message.bytes();
    let mut edits = Edits::new();
    let mut rename = |value: Range<usize>| {
        if scan::decode_string(&bytes[value.clone()]).is_some_and(|given| given != original) {
            edits.push((Span::new(value), quoted(original)));
        }
    };
    match message.peek() {
        // Nearly all that is asked.
        peek if method == "tools/call" && !peek.is_opaque() => {
            if let Some(name) = peek.name {
                rename(name.range());
            }
        }
        _ => subjects(message, method).into_iter().for_each(rename),
    }
    if may_have_links(ns, message) {
        for id in at_path(bytes, &["params", "_meta", "io.modelcontextprotocol/related-task", "taskId"]) {
            change_text(bytes, id, &mut edits, |given| ns.original_task(given).map(Into::into));
        }
    }
    edits
}

/// A call that names its subject as `toolName` or `promptName`, with the protocol's `name` in its place. `None`
/// of all others.
pub fn respelled(message: &Message, method: &str) -> Option<Message> {
    let spelling = match method {
        "tools/call" => "toolName",
        "prompts/get" => "promptName",
        _ => return None,
    };
    let peek = message.peek();
    if peek.name.is_some() || peek.is_opaque() {
        return None;
    }
    let bytes = message.bytes();
    let params = scan::member_at(bytes, ["params"])?.range();
    let mut named = scan::whole_members(&bytes[params.clone()]).filter(|(key, ..)| key.as_deref() == Some(spelling));
    let (_, whole, value) = named.next()?;
    let is_text = scan::decode_string(&bytes[value.shifted(params.start).range()]).is_some();
    if !is_text || named.next().is_some() {
        return None;
    }
    let before_value = Span::new(whole.range().start..value.range().start).shifted(params.start);
    Some(Message::new(splice_all(bytes, &mut [(before_value, Bytes::from_static(b"\"name\":"))])))
}

/// Where a request says what it is about.
fn subjects(message: &Message, method: &str) -> Vec<Range<usize>> {
    let bytes = message.bytes();
    let peek = message.peek();
    let (name, found) = match method {
        "tools/call" | "prompts/get" => ("name", peek.name),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => ("uri", peek.uri),
        "completion/complete" => {
            let member =
                if completion_ref(message).is_some_and(|(kind, _)| kind == RefKind::Prompt) { "name" } else { "uri" };
            return at_path(bytes, &["params", "ref", member]);
        }
        method if method.starts_with("tasks/") => ("taskId", peek.task_id),
        _ => return Vec::new(),
    };
    match found {
        Some(span) if !peek.is_opaque() => vec![span.range()],
        // A scan finds one of several.
        _ => at_path(bytes, &["params", name]),
    }
}

/// What a request for completions is about: the name or address that the client knows.
pub fn completion_ref(message: &Message) -> Option<(RefKind, String)> {
    let text = |member| {
        let span = scan::member_at(message.bytes(), ["params", "ref", member])?;
        scan::decode_string(message.slice(span))
    };
    let (kind, member) = match &*text("type")? {
        "ref/prompt" => (RefKind::Prompt, "name"),
        "ref/resource" => (RefKind::Resource, "uri"),
        _ => return None,
    };
    Some((kind, text(member)?.into_owned()))
}
