//! What a filter will say of messages, from what is known before there are any: which way, what kind, which
//! method and tool, between whom. Rules remember it for each tool, and look into messages only where it
//! leaves them in doubt.

use crate::compile::{Node, Test};
use crate::fields::Asks;
use crate::judge::{in_names, test_holds};
use crate::spelling::Reading;
use crate::subject::Subject;

/// Whether a filter matches, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    Yes,
    No,
    /// That depends on the message.
    Maybe,
}

impl Certainty {
    fn is(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
        }
    }

    pub(crate) fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Yes => Self::Yes,
            Self::No => other(),
            Self::Maybe => match other() {
                Self::Yes => Self::Yes,
                _ => Self::Maybe,
            },
        }
    }

    pub(crate) fn and(self, other: impl FnOnce() -> Self) -> Self {
        self.not().or(|| other().not()).not()
    }
}

pub(crate) fn foretell(node: &Node, subject: &(impl Subject + ?Sized), reading: Reading) -> Certainty {
    let of = |part: &Node| foretell(part, subject, reading);
    match node {
        Node::Everything => Certainty::Yes,
        Node::Any(parts) => joined(parts, Certainty::Yes, of),
        Node::All(parts) => joined(parts, Certainty::No, of),
        Node::Not(inner) => of(inner).not(),
        Node::Test(test) => of_test(test, subject, reading),
    }
}

/// One part that is `decisive` decides; where none is, one in doubt leaves all in doubt.
fn joined(parts: &[Node], decisive: Certainty, of: impl Fn(&Node) -> Certainty) -> Certainty {
    let mut all = decisive.not();
    for part in parts {
        match of(part) {
            part if part == decisive => return decisive,
            Certainty::Maybe => all = Certainty::Maybe,
            _ => {}
        }
    }
    all
}

fn of_test(test: &Test, subject: &(impl Subject + ?Sized), reading: Reading) -> Certainty {
    let is_known = match test {
        Test::Name(..) | Test::Hint(_) | Test::Era(_) => true,
        Test::Text(asks, _) | Test::Words(asks, _) | Test::Number(asks, _) => is_known(*asks),
        Test::Flag(asks, _) | Test::Present(asks) => is_known(*asks),
        // Found in a name it is found, whatever else the message says.
        Test::Search(search) if in_names(search, subject, reading) => return Certainty::Yes,
        Test::Search(_) | Test::Body(_) => false,
        Test::HeaderNamed(_) | Test::Header(..) => false,
        Test::Path(..) | Test::NamePath(..) => false,
    };
    match is_known {
        true => Certainty::is(test_holds(test, subject, reading)),
        false => Certainty::Maybe,
    }
}

/// Whether messages that have the same names, go the same way and belong to the same conversation have
/// this in common.
fn is_known(asks: Asks) -> bool {
    match asks {
        Asks::Direction | Asks::Kind | Asks::Method | Asks::Tool | Asks::Operation | Asks::Hint => true,
        Asks::Server | Asks::Client | Asks::Revision | Asks::Replay => true,
        Asks::Status | Asks::Code | Asks::Id | Asks::Duration | Asks::Size | Asks::Sequence => false,
        Asks::Text | Asks::Header | Asks::Rule | Asks::Verdict | Asks::Held | Asks::Edited => false,
        Asks::Mark | Asks::Noise | Asks::Origin => false,
    }
}
