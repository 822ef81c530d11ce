//! The part of a decision that comes again with every call of the same tool: who, what, and by which
//! rule. Composed once and then copied.

use std::hash::BuildHasher;

use uuid::Uuid;

use super::Decision;
use super::line::{TailDigest, tail_digest};
use super::words::NAME_BYTES_MAX;
use crate::recorded::Direction;

/// Decisions that need not be composed again, one a slot: an agent uses a few dozen tools.
const SLOTS: usize = 64;

#[derive(Default)]
pub(super) struct Tails {
    hasher: foldhash::fast::RandomState,
    slots: Vec<Option<Kept>>,
    /// The last that was not to be kept.
    passing: Option<Tail>,
}

pub(super) struct Tail {
    pub text: Vec<u8>,
    /// The hash of the text.
    pub digest: TailDigest,
}

struct Kept {
    session: Uuid,
    direction: Direction,
    texts: [Option<Box<str>>; 9],
    tail: Tail,
}

impl Tails {
    pub(super) fn forget(&mut self) {
        self.slots.clear();
    }

    /// That of a decision, composed now if it is not known. `compose` also says whether a secret was found.
    pub(super) fn of(&mut self, decision: &Decision<'_>, compose: impl FnOnce() -> (Vec<u8>, bool)) -> &Tail {
        let slot = self.slot(decision);
        let is_known = self.slots.get(slot).is_some_and(|kept| kept.as_ref().is_some_and(|kept| kept.is_of(decision)));
        if !is_known {
            let (text, has_masked) = compose();
            let tail = Tail { digest: tail_digest(&text), text };
            if has_masked {
                // A secret that was found is found everywhere from now on.
                self.forget();
            }
            if has_masked || is_long(decision) {
                return self.passing.insert(tail);
            }
            if self.slots.is_empty() {
                self.slots.resize_with(SLOTS, || None);
            }
            let texts = texts(decision).map(|text| text.map(Into::into));
            self.slots[slot] = Some(Kept { session: decision.session, direction: decision.direction, texts, tail });
        }
        &self.slots[slot].as_ref().expect("it was there, or is now").tail
    }

    /// Where that of a decision is kept, if it is.
    fn slot(&self, decision: &Decision<'_>) -> usize {
        let Decision { method, tool, rule, verdict, .. } = decision;
        self.hasher.hash_one((method, tool, rule, verdict)) as usize % SLOTS
    }
}

impl Kept {
    fn is_of(&self, decision: &Decision<'_>) -> bool {
        self.session == decision.session
            && self.direction == decision.direction
            && self.texts.iter().map(Option::as_deref).eq(texts(decision))
    }
}

/// Peers choose their names; what is kept of them must not grow with them.
fn is_long(decision: &Decision<'_>) -> bool {
    texts(decision).into_iter().flatten().any(|text| text.len() > NAME_BYTES_MAX)
}

/// Every text of the tail, the one that differs most often first.
fn texts<'a>(decision: &Decision<'a>) -> [Option<&'a str>; 9] {
    let Decision { client, server, method, tool, operation, verdict, rule, rules_version, actor, .. } = *decision;
    [tool, Some(method), rule, Some(verdict), operation, client, server, Some(rules_version), Some(actor)]
}

#[cfg(test)]
mod tests {
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
            tails.of(&decision, || (b"text".to_vec(), false));
            let again = tails.of(&decision, || (b"again".to_vec(), false));
            assert_eq!(again.text == b"text", is_kept);
        }
    }
}
