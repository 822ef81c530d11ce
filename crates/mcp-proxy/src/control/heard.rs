//! What the bus tells of a message, as a recording would.

use mcp_engine::Event;
use mcp_engine::bus::Origin;
use mcp_store::recorded::message_id;
use mcp_store::{Recorded, Transport};
use uuid::Uuid;

/// What a recording says of the message that an event tells. `earlier` messages of this run came before
/// those of its session.
pub(super) fn recorded(event: Event, session: &Uuid, earlier: u64, transport_of_faults: Transport) -> Recorded {
    let id = |sequence: u64| message_id(session, sequence.saturating_sub(earlier));
    match event {
        Event::Message {
            sequence,
            time_ns,
            from,
            conversation,
            upstream,
            transport,
            exchange,
            event_id,
            message,
            correlated,
            parent,
            origin,
        } => Recorded {
            id: id(sequence),
            time_ns,
            conversation,
            upstream,
            transport,
            exchange: (exchange > 0).then_some(exchange),
            event_id: event_id.map(|id| String::from_utf8_lossy(&id).into_owned()),
            correlated_id: correlated.map(id),
            parent,
            noise: origin == Origin::Noise,
            from_proxy: origin == Origin::Proxy,
            ..Recorded::bare(sequence, from.direction(), message.bytes().clone())
        },
        Event::Fault { sequence, time_ns, from, conversation, upstream, text } => Recorded {
            id: id(sequence),
            time_ns,
            conversation,
            upstream,
            transport: transport_of_faults,
            event: Some(text.to_string()),
            ..Recorded::bare(sequence, from.direction(), bytes::Bytes::new())
        },
        _ => unreachable!("nothing else tells of a message"),
    }
}
