//! Lists of which a client is shown a part: recorded as they came and as they went on.

use mcp_store::{Outcome, OutcomeKind};

use super::journal::Journal;
use crate::envelope::{Lane, ProxyMessage};
use crate::policy::Hidden;

impl Hidden {
    /// The message as it came.
    pub(super) fn came(&self, message: &ProxyMessage) -> ProxyMessage {
        ProxyMessage { message: self.came.clone(), ..message.clone() }
    }

    fn words(&self) -> String {
        match self.count {
            0 => "the name of the tool is the client's".into(),
            1 => "one item is hidden".into(),
            count => format!("{count} items are hidden"),
        }
    }
}

impl Journal {
    /// Records and tells a message that goes on, and what it was before something was hidden.
    pub(super) fn keep_shown(&mut self, message: &ProxyMessage, hidden: &Hidden, lane: Lane<'_>) {
        self.keep(&hidden.came(message), lane);
        let edited = Some(message.message.bytes().clone());
        let (what, by, why) = (OutcomeKind::Modified, "rules".into(), hidden.words());
        self.outcome(message, Outcome { what, by, why, held_ns: 0, edited });
    }
}
