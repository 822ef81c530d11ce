//! Which rules can decide about a message, remembered by what is known of it without its arguments: who
//! sends it, its method, its tool. Most rules are told from that alone, so a thousand of them cost no
//! more than those few that look at arguments.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use mcp_filter::{Certainty, Spelling};

use super::operation::{Annotations, Operation};
use super::prospect::Prospect;
use super::rules::{Permission, Rule, VerdictKind};
use crate::envelope::Side;

/// Kinds of messages that are remembered. Names come from peers, so there can be any number; a gateway that hides
/// what is denied asks for every one that its servers list.
const KINDS_MAX: usize = 16_384;
/// The decision table does not remember longer names: peers choose them.
const NAMES_BYTES_MAX: usize = 1_024;

/// What is known of a message without its arguments.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub from: Side,
    pub is_request: bool,
    pub method: &'a str,
    pub tool: Option<&'a str>,
    pub client: Option<&'a Arc<str>>,
    pub revision: Option<&'a str>,
}

/// The rules that can decide about messages of one kind, in order.
#[derive(Debug)]
pub(super) struct Candidates {
    from: Side,
    is_request: bool,
    pub method: Arc<str>,
    pub tool: Option<Arc<str>>,
    client: Option<Arc<str>>,
    revision: Option<Box<str>>,
    pub class: Class,
    /// The class under the name without percent-encoding, where that is another name.
    pub respelled: Option<Class>,
    /// Which rule, and whether it needs a look at the message.
    pub rules: Box<[(u32, bool)]>,
    /// They are denied whatever their arguments.
    pub is_hopeless: bool,
    pub is_plumbing: bool,
}

/// The operation of a message, and the hints about its tool.
pub(super) type Class = (Option<Operation>, Annotations);

impl Candidates {
    fn new(known: &Known<'_>, Found { class, respelled, rules, is_hopeless, is_plumbing }: Found) -> Self {
        Self {
            from: known.from,
            is_request: known.is_request,
            method: known.method.into(),
            tool: known.tool.map(Into::into),
            client: known.client.cloned(),
            revision: known.revision.map(Into::into),
            class,
            respelled,
            rules,
            is_hopeless,
            is_plumbing,
        }
    }

    /// The operation that is told and written down: of two spellings, the one that can do more.
    pub(super) fn operation(&self) -> Option<Operation> {
        self.class.0.max(self.respelled.and_then(|(operation, _)| operation))
    }

    fn are_of(&self, known: &Known<'_>) -> bool {
        (self.from, self.is_request) == (known.from, known.is_request)
            && *self.method == *known.method
            && self.tool.as_deref() == known.tool
            && is_same(self.client.as_ref(), known.client)
            && self.revision.as_deref() == known.revision
    }
}

/// A name is shared by all messages of a conversation, which spares comparing it.
fn is_same(one: Option<&Arc<str>>, other: Option<&Arc<str>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (None, None) => true,
        _ => false,
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    kinds: HashMap<u64, Candidates, RandomState>,
    /// The last of those that are too long to keep.
    long: Option<Candidates>,
}

impl Table {
    /// Other rules, or something else was learned of tools.
    pub(super) fn forget(&mut self) {
        self.kinds.clear();
    }

    /// What was found out for messages of this kind, or is now by `find_out`.
    pub(super) fn candidates(&mut self, known: &Known<'_>, find_out: impl FnOnce() -> Found) -> &Candidates {
        let lengths = [Some(known.method), known.tool, known.revision].map(|name| name.map_or(0, str::len));
        if lengths.iter().sum::<usize>() > NAMES_BYTES_MAX {
            return self.long.insert(Candidates::new(known, find_out()));
        }
        let key = self.key(known);
        let is_known = self.kinds.get(&key).is_some_and(|kind| kind.are_of(known));
        if !is_known {
            if self.kinds.len() >= KINDS_MAX {
                self.kinds.clear();
            }
            self.kinds.insert(key, Candidates::new(known, find_out()));
        }
        &self.kinds[&key]
    }

    fn key(&self, known: &Known<'_>) -> u64 {
        let kind = (known.from == Side::Client, known.is_request, known.method, known.tool, known.client);
        self.kinds.hasher().hash_one(kind)
    }
}

pub(super) struct Found {
    pub class: Class,
    pub respelled: Option<Class>,
    pub rules: Box<[(u32, bool)]>,
    pub is_hopeless: bool,
    pub is_plumbing: bool,
}

/// Finds the rules that can match a message of which `prospect` is known, up to the first that decides
/// for certain. `respelled` has the class under the name without percent-encoding, where that is another name.
pub(super) fn find_out(
    rules: &[Rule],
    default: Permission,
    prospect: &Prospect<'_>,
    respelled: Option<&Prospect<'_>>,
) -> Found {
    let (mut found, mut may_pass, mut is_decided) = (Vec::new(), false, false);
    for (at, rule) in (0..).zip(rules) {
        let certainty = in_spellings(rule, foretell(rule, prospect), || Some(foretell(rule, respelled?)));
        if certainty == Certainty::No {
            continue;
        }
        found.push((at, certainty == Certainty::Maybe));
        may_pass |= matches!(rule.verdict, VerdictKind::Allow | VerdictKind::Ask);
        if certainty == Certainty::Yes && rule.verdict != VerdictKind::Observe {
            is_decided = true;
            break;
        }
    }
    let is_hopeless = !may_pass && (is_decided || (default == Permission::Deny && !prospect.is_plumbing));
    let class = |prospect: &Prospect<'_>| (prospect.operation, prospect.annotations);
    Found {
        class: class(prospect),
        respelled: respelled.map(class),
        rules: found.into(),
        is_hopeless,
        is_plumbing: prospect.is_plumbing,
    }
}

/// Whether a rule matches a message with two classes, by two spellings of its name: one is enough for a rule that restricts, one
/// that permits must match both.
pub(super) fn in_spellings(rule: &Rule, one: Certainty, other: impl FnOnce() -> Option<Certainty>) -> Certainty {
    let decisive = match rule.verdict {
        VerdictKind::Allow => Certainty::No,
        VerdictKind::Deny | VerdictKind::Ask | VerdictKind::Observe => Certainty::Yes,
    };
    match one == decisive {
        true => one,
        false => match other() {
            None => one,
            Some(other) if other == decisive || other == one => other,
            Some(_) => Certainty::Maybe,
        },
    }
}

/// Whether a rule matches a message of which `prospect` is known. Of plumbing, only those rules count that
/// are about its method.
pub(super) fn foretell(rule: &Rule, prospect: &Prospect<'_>) -> Certainty {
    let certainty = rule.filter.foretell(prospect, spelling(rule));
    let is_beside = || rule.filter.foretell(&prospect.without_method(), spelling(rule)) == Certainty::Yes;
    match certainty != Certainty::No && prospect.is_plumbing && is_beside() {
        true => Certainty::No,
        false => certainty,
    }
}

/// What restricts is not escaped by another spelling, and what permits is not reached by one.
pub(super) fn spelling(rule: &Rule) -> Spelling {
    match rule.verdict {
        VerdictKind::Allow => Spelling::Every,
        VerdictKind::Deny | VerdictKind::Ask | VerdictKind::Observe => Spelling::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_is_kept_only_if_it_is_short() {
        let mut table = Table::default();
        let long = "x".repeat(NAMES_BYTES_MAX);
        let known = Known {
            from: Side::Client,
            is_request: true,
            method: "tools/call",
            tool: Some("a"),
            client: None,
            revision: Some("2026-07-28"),
        };
        let found = || Found {
            class: (None, Annotations::default()),
            respelled: None,
            rules: Box::new([]),
            is_hopeless: false,
            is_plumbing: false,
        };
        for known in [Known { revision: Some(&long), ..known }, Known { tool: Some(&long), ..known }] {
            table.candidates(&known, found);
        }
        assert_eq!(table.kinds.len(), 0);
        table.candidates(&known, found);
        assert_eq!(table.kinds.len(), 1);
    }
}
