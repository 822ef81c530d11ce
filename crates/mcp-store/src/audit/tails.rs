//! The part of a decision that comes again with every call of the same tool: who, what, and by which
//! rule. Composed once and then copied.

use std::hash::BuildHasher;

use super::Decision;
use super::words::NAME_BYTES_MAX;
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
        let texts = [decision.client, decision.server, Some(decision.method), decision.tool, decision.rule];
        if texts.into_iter().flatten().chain([decision.actor]).any(|text| text.len() > NAME_BYTES_MAX) {
            // Peers choose their names; what is kept of them must not grow with them.
            return;
        }
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_is_kept_does_not_grow_with_names() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let decision = |tool| Decision {
            time_ns: 0,
            session: Uuid::nil(),
            sequence: 1,
            conversation: 0,
            client: None,
            server: None,
            direction: Direction::ClientToServer,
            method: "tools/call",
            tool: Some(tool),
            operation: None,
            verdict: "allow",
            rule: None,
            rules_version: "",
            actor: "rule",
            why: None,
            held_ns: 0,
        };
        let mut tails = Tails::default();
        for (tool, is_kept) in [("short", true), (&long, false)] {
            let decision = decision(tool);
            let slot = tails.slot(&decision);
            tails.keep(slot, &decision, b"text");
            assert_eq!(tails.get(slot, &decision).is_some(), is_kept);
        }
    }
}
