//! Headers that repeat parts of a body, since 2026-07-28: what they must say for a given message, and
//! whether those that came agree with it. They are hints for whoever routes without reading bodies;
//! we always judge by the body.

mod params;

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::Kind;
use crate::message::Message;
use crate::revision::{Subject, subject_of};

pub use params::ToolParams;

const MARKER_START: &str = "=?base64?";
const MARKER_END: &str = "?=";

/// `text` as a header value: itself where a header can carry it, else marked base64 of it.
pub fn encode_value(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { format!("{MARKER_START}{}{MARKER_END}", BASE64.encode(text)) }
}

/// Visible ASCII and blanks between it: what arrives as it was sent, and means what it says.
fn is_plain(text: &str) -> bool {
    let is_marked = text.starts_with(MARKER_START) && text.ends_with(MARKER_END);
    !text.is_empty() && !is_marked && text == text.trim() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// What a header value says. `None` if it is marked as base64 and is none, or is not UTF-8.
pub fn decode_value(value: &[u8]) -> Option<Cow<'_, str>> {
    if !value.starts_with(MARKER_START.as_bytes()) || !value.ends_with(MARKER_END.as_bytes()) {
        return std::str::from_utf8(value).ok().map(Cow::Borrowed);
    }
    let encoded = value.get(MARKER_START.len()..value.len() - MARKER_END.len())?;
    String::from_utf8(BASE64.decode(encoded).ok()?).ok().map(Cow::Owned)
}

/// The header values that a request must be sent with, ready to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrored {
    pub version: Option<String>,
    pub method: Option<String>,
    pub name: Option<String>,
}

/// What the headers of `message` must say. Only requests are repeated in headers; all else derives
/// nothing.
pub fn derive(message: &Message) -> Mirrored {
    if message.kind() != Kind::Request {
        return Mirrored::default();
    }
    Mirrored {
        version: message.protocol_version().map(|version| encode_value(&version)),
        method: message.method().map(|method| encode_value(&method)),
        name: subject(message).map(|subject| encode_value(&subject)),
    }
}

/// What a request is about, where its method has a member for that.
fn subject(message: &Message) -> Option<Cow<'_, str>> {
    match subject_of(&message.method()?)? {
        Subject::Name => message.name(),
        Subject::Uri => message.uri(),
        Subject::TaskId => message.task_id(),
    }
}

/// The values of each header as they came. A header may stand there more than once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen<'a> {
    pub version: &'a [&'a [u8]],
    pub method: &'a [&'a [u8]],
    pub name: &'a [&'a [u8]],
}

/// A header that does not repeat what the body says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    header: &'static str,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Missing,
    Repeated,
    Undecodable,
    Differs,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self.fault {
            Fault::Missing => "is missing",
            Fault::Repeated => "stands twice",
            Fault::Undecodable => "cannot be decoded",
            Fault::Differs => "differs from the body",
        };
        write!(f, "{} {fault}", self.header)
    }
}

impl std::error::Error for Mismatch {}

/// Whether the headers of a modern message agree with it. A request must have them; a notification
/// may, and then they must be right. What the body itself leaves out is for the server to refuse,
/// which has a better answer than that a header is wrong.
pub fn check(message: &Message, headers: &Seen<'_>) -> Result<(), Mismatch> {
    match message.kind() {
        Kind::Request => compare(message, headers, true),
        Kind::Notification => compare(message, headers, false),
        _ => Ok(()),
    }
}

/// Whether those headers that are there agree with a request or a notification of any revision.
pub fn check_given(message: &Message, headers: &Seen<'_>) -> Result<(), Mismatch> {
    compare(message, headers, false)
}

fn compare(message: &Message, headers: &Seen<'_>, is_request: bool) -> Result<(), Mismatch> {
    let (version, method) = (message.protocol_version(), message.method());
    let subject = subject(message);
    let compared = [
        (Header { name: "MCP-Protocol-Version", values: headers.version }, version.as_deref(), is_request),
        (Header { name: "Mcp-Method", values: headers.method }, method.as_deref(), is_request),
        (Header { name: "Mcp-Name", values: headers.name }, subject.as_deref(), is_request && subject.is_some()),
    ];
    for (header, body, is_required) in compared {
        header.check(body, is_required)?;
    }
    Ok(())
}

struct Header<'a> {
    name: &'static str,
    values: &'a [&'a [u8]],
}

impl Header<'_> {
    fn check(&self, body: Option<&str>, is_required: bool) -> Result<(), Mismatch> {
        let fault = match self.values {
            [] if is_required => Fault::Missing,
            [] => return Ok(()),
            [value] => match (decode_value(value), body) {
                (None, _) => Fault::Undecodable,
                (Some(value), Some(body)) if value != body => Fault::Differs,
                _ => return Ok(()),
            },
            _ => Fault::Repeated,
        };
        Err(Mismatch { header: self.name, fault })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_value(text: &str, encoded: &str) {
        assert_eq!(encode_value(text), encoded);
        assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Some(text));
    }

    #[test]
    fn values() {
        check_value("tools/call", "tools/call");
        check_value("two words", "two words");
        check_value("~!=?base64", "~!=?base64");
        check_value("", "=?base64??=");
        check_value(" x", "=?base64?IHg=?=");
        check_value("x\t", "=?base64?eAk=?=");
        check_value("a\nb", "=?base64?YQpi?=");
        check_value("é", "=?base64?w6k=?=");
        check_value("=?base64?w6k=?=", "=?base64?PT9iYXNlNjQ/dzZrPT89?=");
        check_value("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?=");
    }

    #[test]
    fn bad_values() {
        let bad: [&[u8]; 6] =
            [b"=?base64?w6k?=", b"=?base64?w6l=?=", b"=?base64?!?=", b"=?base64?=", b"=?base64?/w==?=", b"\xff"];
        for value in bad {
            assert_eq!(decode_value(value), None, "{}", value.escape_ascii());
        }
        assert_eq!(decode_value(b"=?base64?w6k=").as_deref(), Some("=?base64?w6k="));
    }

    const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"caf\u00e9","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

    fn message(text: &str) -> Message {
        Message::new(text.to_owned().into())
    }

    #[test]
    fn what_a_request_is_sent_with() {
        let derived = |text: &str| {
            let Mirrored { version, method, name } = derive(&message(text));
            [version, method, name].map(Option::unwrap_or_default).join(" ")
        };
        assert_eq!(derived(CALL), "2026-07-28 tools/call =?base64?Y2Fmw6k=?=");
        assert_eq!(
            derived(r#"{"id":1,"method":"resources/read","params":{"uri":"memo:x","name":"y"}}"#),
            " resources/read memo:x"
        );
        assert_eq!(derived(r#"{"id":1,"method":"tasks/get","params":{"taskId":"t"}}"#), " tasks/get t");
        assert_eq!(derived(r#"{"id":1,"method":"tools/list","params":{"name":"y"}}"#), " tools/list ");
        assert_eq!(derived(r#"{"method":"notifications/x"}"#), "  ");
        assert_eq!(derived(r#"{"id":1,"result":{}}"#), "  ");
    }

    /// Headers as `version|method|name`, each a list parted by commas.
    #[track_caller]
    fn check_headers(text: &str, headers: &str, expected: &str) {
        let lists: Vec<Vec<&[u8]>> = headers
            .split('|')
            .map(|list| list.split(',').filter(|value| !value.is_empty()).map(str::as_bytes).collect())
            .collect();
        let seen = Seen { version: &lists[0], method: &lists[1], name: &lists[2] };
        let said = check(&message(text), &seen).map_or_else(|mismatch| mismatch.to_string(), |()| "agree".into());
        assert_eq!(said, expected, "{headers}");
    }

    #[test]
    fn headers_agree_with_the_body_or_are_told() {
        check_headers(CALL, "2026-07-28|tools/call|=?base64?Y2Fmw6k=?=", "agree");
        check_headers(CALL, "2026-07-28|=?base64?dG9vbHMvY2FsbA==?=|=?base64?Y2Fmw6k=?=", "agree");
        check_headers(CALL, "|tools/call|x", "MCP-Protocol-Version is missing");
        check_headers(CALL, "2025-11-25|tools/call|x", "MCP-Protocol-Version differs from the body");
        check_headers(CALL, "2026-07-28||x", "Mcp-Method is missing");
        check_headers(CALL, "2026-07-28|Tools/call|x", "Mcp-Method differs from the body");
        check_headers(CALL, "2026-07-28|tools/call,tools/call|x", "Mcp-Method stands twice");
        check_headers(CALL, "2026-07-28|tools/call|", "Mcp-Name is missing");
        check_headers(CALL, "2026-07-28|tools/call|cafe", "Mcp-Name differs from the body");
        check_headers(CALL, "2026-07-28|tools/call|=?base64?Y2Fmw6k?=", "Mcp-Name cannot be decoded");

        let list = r#"{"id":1,"method":"tools/list"}"#;
        check_headers(list, "2026-07-28|tools/list|", "agree");
        check_headers(list, "2026-07-28|tools/list|whatever", "agree");
        check_headers(list, "2026-07-28|tools/list|a,b", "Mcp-Name stands twice");
        let notification = r#"{"method":"notifications/x"}"#;
        check_headers(notification, "||", "agree");
        check_headers(notification, "|notifications/y|", "Mcp-Method differs from the body");
        check_headers(r#"{"id":1,"result":{}}"#, "||", "agree");
    }
}
