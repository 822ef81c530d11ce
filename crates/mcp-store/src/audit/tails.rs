//! The part of a decision that comes again with every call of the same tool: who, what, and by which
//! rule. Composed once and then copied.

use std::hash::BuildHasher;

use super::Decision;
use crate::recorded::Direction;

/// How many are remembered, one a slot: an agent uses a few dozen tools.
const SLOTS: usize = 64;

#[derive(Default)]
pub struct Tails {
    hasher: foldhash::fast::RandomState,
    slots: Vec<Option<Tail>>,
}

struct Tail {
    client: Option<Box<str>>,
    server: Option<Box<str>>,
    direction: Direction,
    method: Box<str>,
    tool: Option<Box<str>>,
    operation: Option<&'static str>,
    verdict: &'static str,
    rule: Option<Box<str>>,
    rules_version: Box<str>,
    actor: Box<str>,
    text: Box<[u8]>,
}

impl Tails {
    pub fn forget(&mut self) {
        self.slots.clear();
    }

    /// Where that of a decision is kept, if it is.
    pub fn slot(&self, decision: &Decision<'_>) -> usize {
        let Decision { method, tool, rule, verdict, .. } = decision;
        self.hasher.hash_one((method, tool, rule, verdict)) as usize % SLOTS
    }

    pub fn get(&self, slot: usize, decision: &Decision<'_>) -> Option<&[u8]> {
        let tail = self.slots.get(slot)?.as_ref()?;
        tail.is_of(decision).then_some(&*tail.text)
    }

    pub fn keep(&mut self, slot: usize, decision: &Decision<'_>, text: &[u8]) {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        self.slots[slot] = Some(Tail {
            client: decision.client.map(Into::into),
            server: decision.server.map(Into::into),
            direction: decision.direction,
            method: decision.method.into(),
            tool: decision.tool.map(Into::into),
            operation: decision.operation,
            verdict: decision.verdict,
            rule: decision.rule.map(Into::into),
            rules_version: decision.rules_version.into(),
            actor: decision.actor.into(),
            text: text.into(),
        });
    }
}

impl Tail {
    fn is_of(&self, decision: &Decision<'_>) -> bool {
        self.tool.as_deref() == decision.tool
            && *self.method == *decision.method
            && self.rule.as_deref() == decision.rule
            && self.verdict == decision.verdict
            && self.direction == decision.direction
            && self.operation == decision.operation
            && self.client.as_deref() == decision.client
            && self.server.as_deref() == decision.server
            && *self.rules_version == *decision.rules_version
            && *self.actor == *decision.actor
    }
}
