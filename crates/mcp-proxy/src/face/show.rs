//! What an instance tells of a message, for the printer of lines that recordings have too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use mcp_control::api::{Held, Message, Permission};
use mcp_store::segment::operation_named;
use mcp_store::story::Asked;
use mcp_store::{AuditId, MessageKind, OutcomeKind, Recorded, Told, Verdict, VerdictKind};
use serde_json::{Value, json};

/// The bytes of a message, if they came with it.
pub(super) fn bytes(message: &Message) -> Option<Bytes> {
    match (&message.raw, &message.raw_base64) {
        (Some(raw), _) => Some(Bytes::from(raw.get().to_owned())),
        (None, Some(text)) => BASE64.decode(text).ok().map(Bytes::from),
        (None, None) => None,
    }
}

/// What becomes of a held message by itself.
pub(super) fn ends(held: &Held) -> &'static str {
    match held.asks.as_ref().map(|question| question.on_timeout) {
        None => "goes on",
        Some(Permission::Allow) => "allowed",
        Some(Permission::Deny) => "denied",
    }
}

pub(super) fn told(message: &Message) -> Told {
    let time_ns = nanoseconds(&message.timestamp);
    let recorded = Recorded {
        id: message.id.clone(),
        time_ns,
        conversation: message.conversation,
        upstream: message.upstream.as_deref().map(Into::into),
        parent: message.parent,
        transport: message.transport,
        exchange: message.exchange,
        event_id: message.event_id.clone(),
        correlated_id: message.correlated_id.clone(),
        modified: message.modified,
        held: message.held_ns.is_some(),
        held_ns: message.held_ns,
        verdict: verdict(message),
        outcome: message.outcome.as_ref().and_then(|outcome| OutcomeKind::from_name(outcome.as_str())),
        decided_by: message.decided_by.clone(),
        mark: message.mark.clone(),
        note: message.note.clone(),
        noise: message.noise,
        from_proxy: message.origin.as_deref() == Some("proxy"),
        event: message.event.clone(),
        ..Recorded::bare(message.sequence, message.direction, bytes(message).unwrap_or_else(|| stand_in(message)))
    };
    Told::retold(recorded, asked(message, time_ns))
}

fn verdict(message: &Message) -> Option<Box<Verdict>> {
    Some(Box::new(Verdict {
        what: VerdictKind::from_name(message.verdict.as_deref()?)?,
        rule: message.rule.as_deref().map(Into::into),
        operation: message.op.as_deref().and_then(operation_named),
        audit: message.audit_id.as_deref().and_then(AuditId::parse),
    }))
}

/// A message that came without its content, made of what is said of it.
fn stand_in(message: &Message) -> Bytes {
    let mut members = serde_json::Map::new();
    if let Some(id) = message.jsonrpc_id.as_ref().and_then(|id| serde_json::from_str(id.get()).ok()) {
        members.insert("id".into(), id);
    }
    match message.kind {
        MessageKind::Request | MessageKind::Notification => {
            members.insert("method".into(), json!(message.method));
        }
        MessageKind::Response => {
            let is_error = message.status.as_deref() == Some("err");
            members.insert("result".into(), if is_error { json!({ "isError": true }) } else { json!({}) });
        }
        MessageKind::Error => {
            members.insert("error".into(), json!({ "code": message.code, "message": message.error }));
        }
        // Nothing that is known of these can be put together.
        _ => return Bytes::new(),
    }
    Bytes::from(Value::Object(members).to_string())
}

/// The request that a message is or answers.
fn asked(message: &Message, time_ns: u64) -> Option<Asked> {
    let sequence = match message.kind {
        MessageKind::Request => message.sequence,
        _ => message.answers?,
    };
    Some(Asked {
        sequence,
        time_ns: time_ns.saturating_sub(message.duration_ns.unwrap_or_default()),
        method: message.method.clone().unwrap_or_default().into(),
        name: message.tool.clone().map(Into::into),
        uri: None,
        operation: message.operation.unwrap_or(sequence),
        // An instance does not say.
        operation_began_ns: 0,
        round: message.round.unwrap_or(1),
        op: message.op.as_deref().and_then(operation_named),
        // The instance has filtered them.
        is_own: false,
    })
}

fn nanoseconds(timestamp: &str) -> u64 {
    let parsed = timestamp.parse::<jiff::Timestamp>().map(|time| time.as_nanosecond());
    parsed.ok().and_then(|ns| u64::try_from(ns).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use mcp_control::api::Message;

    use super::told;
    use crate::inspect::lines::Lines;
    use crate::report::{ColorChoice, Page};

    #[track_caller]
    fn check(members: &str, expected: &str) {
        let json = format!(
            r#"{{"id":"x","timestamp":"2026-11-16T12:00:00.000500Z","transport":"stdio","size":9,"conversation":0,{members}}}"#
        );
        let message: Message = serde_json::from_str(&json).unwrap();
        assert_eq!(Lines::default().line(&Page::new(ColorChoice::Never), &told(&message)), expected);
    }

    #[test]
    fn messages_read_like_recorded_ones() {
        check(
            r#""sequence":3,"direction":"client_to_server","kind":"request","method":"tools/call","tool":"add","operation":3,"round":1,
               "raw":{"id":2,"method":"tools/call","params":{"name":"add"}}"#,
            "#003 → tools/call [add] id=2",
        );
        check(
            r#""sequence":3,"direction":"client_to_server","kind":"request","method":"tools/call","tool":"proxy",
               "raw":{"id":2,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"info","type":"prompt","path":"a\u001b"}}}"#,
            "#003 → tools/call [proxy: info prompt a␛] id=2",
        );
        check(
            r#""sequence":4,"direction":"server_to_client","kind":"response","method":"tools/call","tool":"add","answers":3,
               "operation":1,"round":2,"duration_ns":123000,"raw":{"id":2,"result":{"isError":true}}"#,
            "#004 ← tools/call [add] id=2 123µs tool error ↩ #003 round 2 of #001",
        );
        check(
            r#""sequence":5,"direction":"server_to_client","kind":"noise","noise":true,"raw":null,"raw_base64":"G1sySg==""#,
            "#005 ← noise \"␛[2J\"",
        );
        check(
            r#""sequence":7,"direction":"client_to_server","kind":"request","method":"tools/call","tool":"add","jsonrpc_id":2,"raw_omitted":true"#,
            "#007 → tools/call [add] id=2",
        );
        check(
            r#""sequence":8,"direction":"server_to_client","kind":"error","method":"tools/call","answers":7,"jsonrpc_id":"a","code":-3,"error":"no",
               "duration_ns":2000,"raw_omitted":true"#,
            "#008 ← tools/call id=\"a\" 2µs error -3 \"no\" ↩ #007",
        );
        check(
            r#""sequence":6,"direction":"server_to_client","kind":"event","event":"too large""#,
            "#006 ← ! too large",
        );
    }
}
