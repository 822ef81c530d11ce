//! Newer revisions repeat a request's method and subject in HTTP headers. Where the two disagree, one
//! of those who go by them is misled, and a reader must see it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_store::{Headers, RequestHead};
use mcp_wire::Message;

/// The last revision without these headers. Revisions are dates, which compare as text.
const LAST_WITHOUT: &str = "2025-11-25";

/// What the header says and what the body says, if they are not the same.
pub(super) fn disagreement(head: &RequestHead, message: &Message) -> Option<(String, String)> {
    let headers = &head.headers;
    if headers.get("mcp-protocol-version")? <= LAST_WITHOUT {
        return None;
    }
    let method = message.method()?;
    let name = match &*method {
        "tools/call" | "prompts/get" => message.name(),
        "resources/read" => message.uri(),
        _ => None,
    };
    let differs = |header: &str, body: &str| said(headers, header).filter(|said| said != body);
    differs("mcp-method", &method)
        .map(|said| (said, method.to_string()))
        .or_else(|| name.and_then(|name| Some((differs("mcp-name", &name)?, name.into_owned()))))
}

/// A header's value; what a header cannot hold stands in it as `=?base64?…?=`.
fn said(headers: &Headers, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let decoded = encoded.and_then(|encoded| BASE64.decode(encoded).ok());
    Some(decoded.map_or(value.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &str, body: &str, expected: Option<(&str, &str)>) {
        let head = RequestHead::parse(format!("POST /mcp HTTP/1.1\r\n{headers}").as_bytes());
        let found = disagreement(&head, &Message::new(body.to_owned().into()));
        assert_eq!(found, expected.map(|(header, body)| (header.to_owned(), body.to_owned())), "{headers}");
    }

    #[test]
    fn headers_are_held_against_the_body() {
        let call = r#"{"id":1,"method":"tools/call","params":{"name":"écho"}}"#;
        let modern = "MCP-Protocol-Version: 2026-07-28\r\n";
        check(&format!("{modern}Mcp-Method: tools/call\r\nMcp-Name: =?base64?w6ljaG8=?="), call, None);
        check(&format!("{modern}Mcp-Method: tools/call\r\nMcp-Name: echo"), call, Some(("echo", "écho")));
        check(&format!("{modern}Mcp-Method: tools/list"), call, Some(("tools/list", "tools/call")));
        check(&format!("{modern}Mcp-Name: =?base64?*?="), call, Some(("=?base64?*?=", "écho")));
        check(modern, call, None);
        check("MCP-Protocol-Version: 2025-11-25\r\nMcp-Method: tools/list", call, None);
        check("Mcp-Method: tools/list", call, None);
        let read = r#"{"id":1,"method":"resources/read","params":{"name":"n","uri":"file:///a"}}"#;
        check(&format!("{modern}Mcp-Name: file:///b"), read, Some(("file:///b", "file:///a")));
        let list = r#"{"id":1,"method":"tools/list","params":{"name":"n"}}"#;
        check(&format!("{modern}Mcp-Name: other"), list, None);
        check(&format!("{modern}Mcp-Method: other"), "not json", None);
    }
}
