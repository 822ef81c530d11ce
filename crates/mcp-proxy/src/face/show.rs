//! What an instance tells of a message, for the printer of lines that recordings have too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use mcp_control::api::{self, Message};
use mcp_store::story::Asked;
use mcp_store::{Direction, OutcomeKind, Recorded, Told, Transport};

/// The bytes of a message, if they came with it.
pub fn bytes(message: &Message) -> Option<Bytes> {
    match (&message.raw, &message.raw_base64) {
        (Some(raw), _) => Some(Bytes::from(raw.get().to_owned())),
        (None, Some(text)) => BASE64.decode(text).ok().map(Bytes::from),
        (None, None) => None,
    }
}

pub fn told(message: &Message) -> Told {
    let time_ns = nanoseconds(&message.timestamp);
    let recorded = Recorded {
        id: message.id.clone(),
        time_ns,
        conversation: message.conversation,
        transport: match message.transport {
            api::Transport::Stdio => Transport::Stdio,
            api::Transport::Sse => Transport::Sse,
            api::Transport::StreamableHttp => Transport::StreamableHttp,
        },
        exchange: message.exchange,
        event_id: message.event_id.clone(),
        correlated_id: message.correlated_id.clone(),
        modified: message.modified,
        held: message.held_ns.is_some(),
        held_ns: message.held_ns,
        outcome: message.outcome.as_ref().and_then(|outcome| OutcomeKind::from_name(outcome.as_str())),
        decided_by: message.decided_by.clone(),
        mark: message.mark.clone(),
        note: message.note.clone(),
        noise: message.noise,
        from_proxy: message.origin.as_deref() == Some("proxy"),
        event: message.event.clone(),
        ..Recorded::bare(message.sequence, direction(message.direction), bytes(message).unwrap_or_default())
    };
    Told::retold(recorded, asked(message, time_ns))
}

/// The request that a message is or answers.
fn asked(message: &Message, time_ns: u64) -> Option<Asked> {
    let sequence = match message.kind {
        api::Kind::Request => message.sequence,
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
    })
}

fn direction(direction: api::Direction) -> Direction {
    match direction {
        api::Direction::ClientToServer => Direction::ClientToServer,
        api::Direction::ServerToClient => Direction::ServerToClient,
    }
}

fn nanoseconds(timestamp: &str) -> u64 {
    let parsed = timestamp.parse::<jiff::Timestamp>().map(|time| time.as_nanosecond());
    parsed.ok().and_then(|ns| u64::try_from(ns).ok()).unwrap_or_default()
}
