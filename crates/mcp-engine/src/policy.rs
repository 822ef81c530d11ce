//! Who may do what. Without rules everything is permitted, but nothing leaves the proxy without
//! passing here: dispatch takes only [`Judged`] messages, and only this module makes them.

pub mod operation;
pub mod rules;

use crate::envelope::ProxyMessage;
use crate::resolve::Resolved;

/// A message that policy has let pass. An edit turns it back into a plain message.
#[derive(Debug)]
pub struct Judged(ProxyMessage);

impl Judged {
    pub fn message(&self) -> &ProxyMessage {
        &self.0
    }

    /// The message to be changed, and judged again.
    pub(crate) fn into_message(self) -> ProxyMessage {
        self.0
    }
}

/// What policy decided.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    Permitted(Judged),
}

#[derive(Debug, Default)]
pub struct Policy {}

impl Policy {
    pub fn permit(&self, resolved: Resolved) -> Verdict {
        Verdict::Permitted(Judged(resolved.message))
    }
}
