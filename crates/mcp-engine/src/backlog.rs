//! The last messages of a run that records nothing, for those who begin to watch late. On the path this
//! is a copy of a few bytes into a block that is there already.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use mcp_store::{RecordHead, Said, Transport};
use mcp_wire::Message;

use crate::bus::{Event, Origin};
use crate::envelope::{Lane, ProxyMessage, Side};

/// What is kept: as much as a person looks through.
const MESSAGES_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 << 20;
/// Messages are copied into blocks of this size, except those that would take up much of one.
const BLOCK_BYTES: usize = 64 << 10;
const COPIED_MAX: usize = BLOCK_BYTES / 8;

#[derive(Default)]
pub struct Backlog {
    kept: VecDeque<Kept>,
    blocks: VecDeque<Bytes>,
    /// The number of the first block.
    first: u64,
    filling: BytesMut,
    bytes: usize,
    /// What was said later of messages.
    said: VecDeque<(u64, Said)>,
}

/// Where a message is, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Kept {
    sequence: u64,
    time_ns: u64,
    correlated: Option<u64>,
    exchange: u64,
    block: u64,
    start: u32,
    length: u32,
    conversation: u32,
    from: Side,
    transport: Transport,
    /// `None` is no message, but what happened in its place.
    origin: Option<Origin>,
}

impl Backlog {
    pub(crate) fn message(&mut self, message: &ProxyMessage, lane: Lane<'_>, flags: u16) {
        let origin = match (flags & RecordHead::NOISE != 0, flags & RecordHead::FROM_PROXY != 0) {
            (true, _) => Origin::Noise,
            (false, true) => Origin::Proxy,
            (false, false) => Origin::Peer,
        };
        let (block, start) = self.put(message.message.bytes());
        self.keep(Kept {
            sequence: message.sequence,
            time_ns: message.time_ns,
            correlated: message.correlated,
            exchange: lane.exchange,
            block,
            start,
            length: message.message.bytes().len() as u32,
            conversation: message.conversation,
            from: message.from,
            transport: lane.transport,
            origin: Some(origin),
        });
    }

    pub(crate) fn event(&mut self, conversation: u32, from: Side, sequence: u64, time_ns: u64, text: &str) {
        let (block, start) = self.put(&Bytes::copy_from_slice(text.as_bytes()));
        self.keep(Kept {
            sequence,
            time_ns,
            correlated: None,
            exchange: 0,
            block,
            start,
            length: text.len() as u32,
            conversation,
            from,
            transport: Transport::Stdio,
            origin: None,
        });
    }

    pub(crate) fn say(&mut self, sequence: u64, said: Said) {
        if self.said.len() >= MESSAGES_MAX {
            self.said.pop_front();
        }
        self.said.push_back((sequence, said));
    }

    /// Puts bytes somewhere. Returns the number of their block, and where in it they begin.
    fn put(&mut self, bytes: &Bytes) -> (u64, u32) {
        if bytes.len() > COPIED_MAX {
            self.begin_block();
            self.blocks.push_back(bytes.clone());
            return (self.first + self.blocks.len() as u64 - 1, 0);
        }
        if self.filling.capacity() - self.filling.len() < bytes.len() {
            self.begin_block();
            self.filling.reserve(BLOCK_BYTES);
        }
        let start = self.filling.len() as u32;
        self.filling.extend_from_slice(bytes);
        (self.first + self.blocks.len() as u64, start)
    }

    fn begin_block(&mut self) {
        if !self.filling.is_empty() {
            self.blocks.push_back(self.filling.split().freeze());
        }
    }

    fn keep(&mut self, kept: Kept) {
        self.bytes += kept.length as usize;
        self.kept.push_back(kept);
        while self.kept.len() > MESSAGES_MAX || self.bytes > BYTES_MAX && self.kept.len() > 1 {
            let gone = self.kept.pop_front().expect("there are several");
            self.bytes -= gone.length as usize;
        }
        let oldest = self.kept.front().map_or(kept.block, |oldest| oldest.block);
        while self.first < oldest && self.blocks.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// What is kept now, for another thread to look through.
    pub fn look(&self) -> Look {
        let filling = Bytes::copy_from_slice(&self.filling);
        Look {
            kept: self.kept.iter().copied().collect(),
            blocks: self.blocks.iter().cloned().chain([filling]).collect(),
            first: self.first,
            said: self.said.iter().cloned().collect(),
        }
    }
}

/// What was kept at one moment.
pub struct Look {
    kept: Vec<Kept>,
    blocks: Vec<Bytes>,
    first: u64,
    /// What was said later of messages, which may be gone.
    pub said: Vec<(u64, Said)>,
}

impl Look {
    /// Everything as it was told when it happened, oldest first.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.kept.iter().map(|kept| {
            let start = kept.start as usize;
            let block = &self.blocks[(kept.block - self.first) as usize];
            let bytes = block.slice(start..start + kept.length as usize);
            let Kept { sequence, time_ns, correlated, exchange, conversation, from, transport, .. } = *kept;
            match kept.origin {
                Some(origin) => Event::Message {
                    sequence,
                    time_ns,
                    from,
                    conversation,
                    transport,
                    exchange,
                    event_id: None,
                    message: Message::new(bytes),
                    correlated,
                    origin,
                },
                None => {
                    let text = String::from_utf8_lossy(&bytes).into();
                    Event::Fault { sequence, time_ns, from, conversation, text }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use mcp_wire::Ending;

    use super::*;

    fn push(backlog: &mut Backlog, sequence: u64, bytes: impl Into<Bytes>) {
        let message = ProxyMessage {
            sequence,
            time_ns: 0,
            from: Side::Client,
            conversation: 0,
            message: Message::new(bytes.into()),
            ending: Ending::Lf,
            bom: false,
            correlated: None,
        };
        backlog.message(&message, Lane::PIPE, 0);
    }

    fn kept(backlog: &Backlog) -> Vec<(u64, Bytes)> {
        let look = backlog.look();
        let event = |event| match event {
            Event::Message { sequence, message, .. } => (sequence, message.bytes().clone()),
            Event::Fault { sequence, text, .. } => (sequence, text.to_string().into()),
            other => unreachable!("{other:?}"),
        };
        look.events().map(event).collect()
    }

    #[test]
    fn the_last_messages_are_kept_as_they_came() {
        let mut backlog = Backlog::default();
        let bytes =
            |sequence: u64| Bytes::from(format!("{{\"id\":{sequence},{}", "x".repeat(sequence as usize % 9_000)));
        for sequence in 1..=25_000 {
            push(&mut backlog, sequence, bytes(sequence));
        }
        backlog.event(0, Side::Server, 25_001, 0, "it broke");
        let kept = kept(&backlog);
        assert!(kept.len() <= MESSAGES_MAX && kept.len() > 1_000, "{}", kept.len());
        assert_eq!(kept.last(), Some(&(25_001, "it broke".into())));
        for (sequence, found) in &kept[..kept.len() - 1] {
            assert_eq!(*found, bytes(*sequence));
        }
        assert!(backlog.bytes <= BYTES_MAX);
        assert!(backlog.blocks.iter().map(Bytes::len).sum::<usize>() <= BYTES_MAX + 2 * BLOCK_BYTES);
    }

    #[test]
    fn a_message_larger_than_all_room_is_kept_alone() {
        let mut backlog = Backlog::default();
        push(&mut backlog, 1, "a");
        push(&mut backlog, 2, vec![b' '; BYTES_MAX + 1]);
        assert_eq!(kept(&backlog).len(), 1);
        push(&mut backlog, 3, "b");
        assert_eq!(kept(&backlog), [(3, Bytes::from("b"))]);
        assert_eq!(backlog.blocks.len(), 0);
    }
}
