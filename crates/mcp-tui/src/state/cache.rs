//! Whole messages that were seen last, so that moving about does not ask for each again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use mcp_control::api::Message;

/// Content of the messages that were shown last, kept in memory.
const BYTES_MAX: usize = 24 << 20;
/// A larger one is fetched when it is looked at; lists bring many.
const FROM_LISTS_MAX: usize = 64 << 10;

#[derive(Default)]
pub(crate) struct Cache {
    messages: HashMap<u64, Arc<Message>>,
    /// In the order in which they came.
    order: VecDeque<u64>,
    bytes: usize,
}

impl Cache {
    pub(crate) fn get(&self, sequence: u64) -> Option<&Arc<Message>> {
        self.messages.get(&sequence)
    }

    /// Keeps a message that a list or an event brought, if it is whole and not large.
    pub(crate) fn see(&mut self, message: &Message) {
        if !message.raw_omitted && weight(message) <= FROM_LISTS_MAX {
            self.keep(message.clone());
        }
    }

    pub(crate) fn keep(&mut self, message: Message) {
        let (sequence, weight_now) = (message.sequence, weight(&message));
        match self.messages.insert(sequence, Arc::new(message)) {
            Some(before) => self.bytes -= weight(&before),
            None => self.order.push_back(sequence),
        }
        self.bytes += weight_now;
        while self.bytes > BYTES_MAX && self.order.len() > 1 {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(message) = self.messages.remove(&oldest) {
                self.bytes -= weight(&message);
            }
        }
    }

    /// It is not any more what it was.
    pub(crate) fn forget(&mut self, sequence: u64) {
        if let Some(message) = self.messages.remove(&sequence) {
            self.bytes -= weight(&message);
            self.order.retain(|other| *other != sequence);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn weight(message: &Message) -> usize {
    /// Memory of a message besides its content, as it counts against the bound.
    const OWN_BYTES: usize = 1024;
    let raw = |raw: &Option<Box<serde_json::value::RawValue>>| raw.as_ref().map_or(0, |raw| raw.get().len());
    OWN_BYTES + raw(&message.raw) + raw(&message.original_raw) + message.raw_base64.as_ref().map_or(0, String::len)
}
