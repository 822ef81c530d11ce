//! Results as people read them. Whatever a server says is made visible on the way.

use mcp_client::{Type, member, text_member};
use mcp_wire::inert::inert;
use mcp_wire::layout::indented;
use mcp_wire::visible::{visible, visible_lines};
use serde_json::value::RawValue;

use crate::report::{Page, size};

pub(super) fn shown(text: &str) -> String {
    visible(text).to_string()
}

pub(super) fn shown_lines(text: &str) -> String {
    visible_lines(text).to_string()
}

pub(super) fn first_line(text: &str) -> String {
    shown(text.trim_start().lines().next().unwrap_or_default().trim_end())
}

/// The native result of a capability's own method.
pub(super) fn result(kind: Type, result: &RawValue, page: &mut Page) -> std::io::Result<()> {
    match kind {
        Type::Tool => {
            let items = items(result, "content");
            items.iter().try_for_each(|item| page.line(&content(item)))?;
            let has_text = items.iter().any(|item| text_member(item, "text").is_some());
            match member(result, "structuredContent").filter(|_| !has_text) {
                Some(structured) => page.line(&json(structured)),
                None => Ok(()),
            }
        }
        Type::Resource => items(result, "contents").iter().try_for_each(|item| page.line(&resource(item))),
        Type::Prompt => items(result, "messages").iter().try_for_each(|message| {
            let role = text_member(message, "role").unwrap_or_default();
            let said = member(message, "content").map(content).unwrap_or_default();
            page.line(&format!("{}: {said}", shown(&role)))
        }),
    }
}

fn items(result: &RawValue, key: &str) -> Vec<Box<RawValue>> {
    member(result, key).and_then(|items| serde_json::from_str(items.get()).ok()).unwrap_or_default()
}

/// An item of content: text as it is, the rest in a line.
fn content(item: &RawValue) -> String {
    let text = |key: &str| text_member(item, key);
    let kind = text("type").unwrap_or_default();
    match kind.as_str() {
        "text" => shown_lines(&text("text").unwrap_or_default()),
        "image" | "audio" => binary(&kind, text("mimeType"), &text("data").unwrap_or_default()),
        "resource" => member(item, "resource").map(resource).unwrap_or_default(),
        "resource_link" => {
            let name = text("name").map(|name| format!(" ({})", shown(&name))).unwrap_or_default();
            format!("[link {}{name}]", shown(&text("uri").unwrap_or_default()))
        }
        _ => format!("[{}]", shown(&kind)),
    }
}

fn resource(item: &RawValue) -> String {
    match (text_member(item, "text"), text_member(item, "blob")) {
        (Some(text), _) => shown_lines(&text),
        (None, blob) => {
            let uri = text_member(item, "uri").unwrap_or_default();
            binary(&format!("resource {uri}"), text_member(item, "mimeType"), &blob.unwrap_or_default())
        }
    }
}

/// Bytes have no place on a terminal.
fn binary(what: &str, mime_type: Option<String>, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    let mime_type = mime_type.map(|mime_type| format!(" {mime_type}")).unwrap_or_default();
    format!("[{}{}, {}]", shown(what), shown(&mime_type), size(bytes as u64))
}

/// JSON over several lines.
fn json(json: &RawValue) -> String {
    let inert = inert(json.get());
    indented(inert.as_bytes())
}
