//! Which upstream a message really concerns, under its own name. With one server there is one
//! answer; a gateway's name table will stand here.

use crate::envelope::ProxyMessage;

/// A message whose upstream is known.
#[derive(Debug)]
pub struct Resolved {
    pub message: ProxyMessage,
}

pub fn resolve(message: ProxyMessage) -> Resolved {
    Resolved { message }
}
