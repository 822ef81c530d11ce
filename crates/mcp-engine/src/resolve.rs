//! Which upstream a message really concerns, under its own name. With one server there is one answer. Between a
//! gateway and one of its servers whoever passed the message on has answered already, and the message says it.

use crate::envelope::ProxyMessage;

/// A message whose upstream is known.
#[derive(Debug)]
pub struct Resolved {
    pub message: ProxyMessage,
}

pub fn resolve(message: ProxyMessage) -> Resolved {
    Resolved { message }
}
