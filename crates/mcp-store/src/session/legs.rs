//! With which server of a gateway each conversation is, as a segment says before the first message of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::recorded::Recorded;
use crate::segment::{Record, RecordKind};

/// Conversations of which it is remembered; past this those that began first are forgotten. A gateway has
/// some for each of its clients.
const LEGS_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Legs(BTreeMap<u32, Arc<str>>);

impl Legs {
    /// Takes what a record says, if it is about this.
    pub(crate) fn hear(&mut self, record: &Record) {
        if record.head.kind == RecordKind::Leg {
            self.learn(record.head.conversation, &String::from_utf8_lossy(&record.payload));
        }
    }

    /// Whether this was not known.
    pub(crate) fn learn(&mut self, conversation: u32, server: &str) -> bool {
        if self.0.get(&conversation).is_some_and(|known| **known == *server) {
            return false;
        }
        if self.0.len() >= LEGS_MAX && !self.0.contains_key(&conversation) {
            self.0.pop_first();
        }
        self.0.insert(conversation, server.into());
        true
    }

    pub(crate) fn knows(&self, conversation: u32) -> bool {
        self.0.contains_key(&conversation)
    }

    /// The message, which says with which server its conversation is.
    pub(crate) fn with_upstream(&self, mut message: Recorded) -> Recorded {
        if !self.0.is_empty() {
            message.upstream = self.0.get(&message.conversation).cloned();
        }
        message
    }
}
