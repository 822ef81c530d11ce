//! The last messages of a run that records nothing, for those who begin to watch late. On the path this
//! is a copy of a few bytes behind those before; what is old goes a block at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use mcp_store::{RecordHead, Said, Transport};
use mcp_wire::Message;

use crate::bus::{Event, Origin};
use crate::envelope::{Lane, ProxyMessage, Side, Upstream};

/// Messages, and their bytes, kept in memory where nothing is recorded: as much as a person looks through.
const MESSAGES_MAX: usize = 10_000;
const BYTES_MAX: usize = 16 << 20;
/// Messages are copied into blocks of this size; one over half a block is shared instead.
const BLOCK_BYTES: usize = 64 << 10;
const COPIED_MAX: usize = BLOCK_BYTES / 2;
/// What stands before each message: numbers of fixed size, then its length.
const HEAD_BYTES: usize = 8 * 4 + 4 * 3 + 3;
/// In the byte of the side: what stands for an answered request is the message that this one was made of.
const CAUSED: u8 = 2;

#[derive(Default)]
pub struct Backlog {
    blocks: VecDeque<Block>,
    filling: BytesMut,
    /// Messages in the block that is being filled, and in all.
    in_filling: usize,
    messages: usize,
    bytes: usize,
    /// The servers of a gateway, in their order.
    servers: Vec<Arc<str>>,
    /// What was said later of messages.
    said: VecDeque<(u64, Said)>,
}

struct Block {
    messages: usize,
    content: Content,
}

#[derive(Clone)]
enum Content {
    /// Messages, each behind its head.
    Copied(Bytes),
    /// A message that is too large to copy, and its head.
    Shared(Head, Bytes),
}

/// What is known of a message.
#[derive(Clone, Copy, Debug)]
struct Head {
    sequence: u64,
    time_ns: u64,
    /// 0 is none.
    correlated: u64,
    is_caused: bool,
    exchange: u64,
    conversation: u32,
    upstream: Upstream,
    length: u32,
    from: Side,
    transport: Transport,
    /// `None` is no message, but what happened in its place.
    origin: Option<Origin>,
}

impl Head {
    fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[0..8].copy_from_slice(&self.sequence.to_le_bytes());
        head[8..16].copy_from_slice(&self.time_ns.to_le_bytes());
        head[16..24].copy_from_slice(&self.correlated.to_le_bytes());
        head[24..32].copy_from_slice(&self.exchange.to_le_bytes());
        head[32..36].copy_from_slice(&self.conversation.to_le_bytes());
        head[36..40].copy_from_slice(&self.length.to_le_bytes());
        head[40..44].copy_from_slice(&self.upstream.encode());
        head[44] = u8::from(self.from == Side::Server) | if self.is_caused { CAUSED } else { 0 };
        head[45] = match self.transport {
            Transport::Stdio => 0,
            Transport::Sse => 1,
            Transport::StreamableHttp => 2,
        };
        head[46] = match self.origin {
            None => 0,
            Some(Origin::Peer) => 1,
            Some(Origin::Noise) => 2,
            Some(Origin::Proxy) => 3,
        };
        head
    }

    fn read(block: &mut Bytes) -> Self {
        let (sequence, time_ns, correlated, exchange) =
            (block.get_u64_le(), block.get_u64_le(), block.get_u64_le(), block.get_u64_le());
        let (conversation, length, upstream) = (block.get_u32_le(), block.get_u32_le(), block.get_u32_le());
        let side = block.get_u8();
        Self {
            sequence,
            time_ns,
            correlated,
            is_caused: side & CAUSED != 0,
            exchange,
            conversation,
            upstream: Upstream::decode(upstream),
            length,
            from: if side & !CAUSED == 1 { Side::Server } else { Side::Client },
            transport: match block.get_u8() {
                0 => Transport::Stdio,
                1 => Transport::Sse,
                _ => Transport::StreamableHttp,
            },
            origin: match block.get_u8() {
                0 => None,
                1 => Some(Origin::Peer),
                2 => Some(Origin::Noise),
                _ => Some(Origin::Proxy),
            },
        }
    }
}

impl Backlog {
    pub(crate) fn message(&mut self, message: &ProxyMessage, lane: Lane<'_>, flags: u16) {
        let origin = match (flags & RecordHead::NOISE != 0, flags & RecordHead::FROM_PROXY != 0) {
            (true, _) => Origin::Noise,
            (false, true) => Origin::Proxy,
            (false, false) => Origin::Peer,
        };
        let bytes = message.message.bytes();
        let parent = lane.parent_of(message);
        let head = Head {
            sequence: message.sequence,
            time_ns: message.time_ns,
            correlated: message.correlated.or(parent).unwrap_or(0),
            is_caused: parent.is_some(),
            exchange: lane.exchange,
            conversation: message.conversation,
            upstream: message.upstream,
            length: bytes.len() as u32,
            from: message.from,
            transport: lane.transport,
            origin: Some(origin),
        };
        self.keep(&head, bytes);
    }

    /// There is this server of a gateway too.
    pub(crate) fn meet_server(&mut self, upstream: Upstream, server: &Arc<str>) {
        if upstream.index() > self.servers.len() {
            self.servers.push(Arc::clone(server));
        }
    }

    pub(crate) fn event(
        &mut self,
        (conversation, upstream): (u32, Upstream),
        from: Side,
        sequence: u64,
        time_ns: u64,
        text: &str,
    ) {
        let head = Head {
            sequence,
            time_ns,
            correlated: 0,
            is_caused: false,
            exchange: 0,
            conversation,
            upstream,
            length: text.len() as u32,
            from,
            transport: Transport::Stdio,
            origin: None,
        };
        self.keep(&head, &Bytes::copy_from_slice(text.as_bytes()));
    }

    pub(crate) fn say(&mut self, sequence: u64, said: Said) {
        if self.said.len() >= MESSAGES_MAX {
            self.said.pop_front();
        }
        self.said.push_back((sequence, said));
    }

    fn keep(&mut self, head: &Head, bytes: &Bytes) {
        self.messages += 1;
        self.bytes += bytes.len();
        if bytes.len() > COPIED_MAX {
            self.end_block();
            self.blocks.push_back(Block { messages: 1, content: Content::Shared(*head, bytes.clone()) });
            return self.forget();
        }
        if self.filling.capacity() - self.filling.len() < HEAD_BYTES + bytes.len() {
            self.end_block();
            self.forget();
        }
        self.filling.extend_from_slice(&head.encode());
        self.filling.extend_from_slice(bytes);
        self.in_filling += 1;
    }

    fn end_block(&mut self) {
        if self.in_filling > 0 {
            let content = Content::Copied(std::mem::take(&mut self.filling).freeze());
            self.blocks.push_back(Block { messages: std::mem::take(&mut self.in_filling), content });
        }
    }

    /// Lets the oldest blocks go that are not needed for what is to be kept.
    fn forget(&mut self) {
        while let Some(oldest) = self.blocks.front()
            && self.blocks.len() > 1
            && (self.messages - oldest.messages >= MESSAGES_MAX || self.bytes > BYTES_MAX)
        {
            let Some(gone) = self.blocks.pop_front() else { break };
            self.messages -= gone.messages;
            self.bytes -= match &gone.content {
                Content::Copied(block) => block.len() - gone.messages * HEAD_BYTES,
                Content::Shared(_, bytes) => bytes.len(),
            };
            // The room of a block that nobody looks at is used again.
            if let Content::Copied(block) = gone.content
                && self.filling.capacity() == 0
                && let Ok(mut room) = block.try_into_mut()
            {
                room.clear();
                self.filling = room;
            }
        }
        if self.filling.capacity() == 0 {
            self.filling.reserve(BLOCK_BYTES);
        }
    }

    /// What is kept now, for another thread to look through.
    pub fn look(&self) -> Look {
        let filling = Content::Copied(Bytes::copy_from_slice(&self.filling));
        Look {
            blocks: self.blocks.iter().map(|block| block.content.clone()).chain([filling]).collect(),
            excess: self.messages.saturating_sub(MESSAGES_MAX),
            servers: self.servers.clone(),
            said: self.said.iter().cloned().collect(),
        }
    }
}

/// What was kept at one moment.
pub struct Look {
    blocks: Vec<Content>,
    /// The oldest of them are more than is promised.
    excess: usize,
    servers: Vec<Arc<str>>,
    /// What was said later of messages, which may be gone.
    pub said: Vec<(u64, Said)>,
}

impl Look {
    /// Everything as it was told when it happened, oldest first.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.blocks.iter().flat_map(Content::messages).skip(self.excess).map(|(head, bytes)| {
            let Head { sequence, time_ns, exchange, conversation, from, transport, .. } = head;
            let upstream = head.upstream.index().checked_sub(1).and_then(|at| self.servers.get(at)).cloned();
            let correlated = (head.correlated > 0).then_some(head.correlated);
            match head.origin {
                Some(origin) => Event::Message {
                    sequence,
                    time_ns,
                    from,
                    conversation,
                    upstream,
                    transport,
                    exchange,
                    event_id: None,
                    message: Message::new(bytes),
                    correlated: correlated.filter(|_| !head.is_caused),
                    parent: correlated.filter(|_| head.is_caused),
                    origin,
                },
                None => {
                    let text = String::from_utf8_lossy(&bytes).into();
                    Event::Fault { sequence, time_ns, from, conversation, upstream, text }
                }
            }
        })
    }
}

impl Content {
    fn messages(&self) -> impl Iterator<Item = (Head, Bytes)> {
        let (mut copied, mut shared) = match self {
            Self::Copied(block) => (block.clone(), None),
            Self::Shared(head, bytes) => (Bytes::new(), Some((*head, bytes.clone()))),
        };
        std::iter::from_fn(move || {
            if copied.is_empty() {
                return shared.take();
            }
            let head = Head::read(&mut copied);
            Some((head, copied.split_to(head.length as usize)))
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
            upstream: crate::envelope::Upstream::ONLY,
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
        backlog.event((0, Upstream::ONLY), Side::Server, 25_001, 0, "it broke");
        let kept = kept(&backlog);
        assert!(kept.len() <= MESSAGES_MAX && kept.len() > 1_000, "{}", kept.len());
        assert_eq!(kept.last(), Some(&(25_001, "it broke".into())));
        for (sequence, found) in &kept[..kept.len() - 1] {
            assert_eq!(*found, bytes(*sequence));
        }
        assert!(backlog.bytes <= BYTES_MAX + BLOCK_BYTES, "{}", backlog.bytes);
    }

    #[test]
    fn a_message_larger_than_all_room_is_kept_alone() {
        let mut backlog = Backlog::default();
        push(&mut backlog, 1, "a");
        push(&mut backlog, 2, vec![b' '; BYTES_MAX + 1]);
        assert_eq!(kept(&backlog).len(), 1);
        push(&mut backlog, 3, vec![b' '; COPIED_MAX + 1]);
        push(&mut backlog, 4, "b");
        let sequences: Vec<u64> = kept(&backlog).into_iter().map(|(sequence, _)| sequence).collect();
        assert_eq!(sequences, [3, 4]);
    }
}
