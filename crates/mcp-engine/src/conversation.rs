//! One client's exchange with the proxy, from the first message to the last: a pipe, a session of
//! Streamable HTTP, an SSE connection.

use std::collections::HashMap;

use mcp_wire::{Id, Message};

use crate::correlate::Pending;
use crate::envelope::{Asked, Lane, Lent, Side};

#[derive(Debug)]
pub struct Conversation {
    number: u32,
    pub(crate) pending: Pending,
    /// By id, which no two of them share.
    lent: HashMap<Id, Lent>,
    pub(crate) noise: u64,
    pub(crate) server_spoke: bool,
}

impl Conversation {
    pub(crate) fn new(number: u32) -> Self {
        Self { number, pending: Pending::default(), lent: HashMap::new(), noise: 0, server_spoke: false }
    }

    /// The one conversation of a pipe.
    pub fn only() -> Self {
        Self::new(0)
    }

    /// From 1 in a run of the proxy; 0 where there is only one.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Takes note of `message`. Returns the sequence of the request it answers, if it answers one.
    ///
    /// A request in an exchange of its own is not remembered here: `asked` pairs it with its answer
    /// more exactly than its id does, and [`Self::remember`] takes it over if that answer goes missing.
    pub(crate) fn correlate(
        &mut self,
        from: Side,
        message: &Message,
        sequence: u64,
        asked: Option<&Asked>,
    ) -> Option<u64> {
        match asked {
            Some(asked) if asked.sequence == sequence => None,
            Some(asked) if message.glance().kind.is_response() && message.id().as_ref() == Some(&asked.id) => {
                Some(asked.sequence)
            }
            _ => self.pending.correlate(from, message, sequence),
        }
    }

    /// The answer to `asked` did not come in its exchange; it may come in another.
    pub fn remember(&mut self, asked: Asked) {
        self.pending.insert(Side::Client, asked.id, asked.sequence);
    }

    /// The client gave up the answer to `asked`, which may still come.
    pub fn remember_cancelled(&mut self, asked: Asked) {
        self.pending.insert_cancelled(Side::Client, asked.id, asked.sequence);
    }

    /// Takes in a call that waits in an exchange of its own, so that it is answered with the others.
    pub fn borrow_call(&mut self, lent: Lent) {
        self.remember(lent.asked.clone());
        self.lent.insert(lent.asked.id.clone(), lent);
    }

    /// Gives back the calls that were taken in, answered or not.
    pub fn give_back_calls(&mut self) {
        for (id, _) in self.lent.drain() {
            self.pending.take(Side::Client, &id);
        }
    }

    /// How an answer of ours to `id` reaches the client.
    pub(crate) fn lane_of(&self, id: &Id) -> Lane<'_> {
        let lent = self.lent.get(id);
        lent.map_or(Lane::PIPE, |lent| Lane { exchange: lent.exchange, event_id: &lent.event_id, ..Lane::PIPE })
    }

    /// Calls `from` still waits on.
    pub fn open_calls(&self, from: Side) -> usize {
        self.pending.count(from)
    }

    pub fn awaits(&self, from: Side, id: &Id) -> bool {
        self.pending.awaits(from, id)
    }

    /// Lines of the server's output that were kept from the client.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    /// Whether any message came from the server.
    pub fn server_spoke(&self) -> bool {
        self.server_spoke
    }
}
