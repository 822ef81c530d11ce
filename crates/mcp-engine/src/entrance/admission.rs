//! Who is at the other end of a conversation that knows no headers. A client may show its token once, or
//! with every message; what it was let in with holds until it leaves.

use std::rc::Rc;

use super::{Entrance, Principal, Unauthorized};

#[derive(Debug, Default)]
pub struct Admission {
    who: Option<Rc<Principal>>,
}

impl Admission {
    /// Of a client of which the way it came told who it is, or did not.
    pub fn of(who: Option<Rc<Principal>>) -> Self {
        Self { who }
    }

    /// Who the client is, once it has shown that.
    pub fn who(&self) -> Option<&Rc<Principal>> {
        self.who.as_ref()
    }

    /// Whose message this is that shows a token, or none. A message that is refused changes nothing: who was
    /// let in before stays so, and somebody else does not come in at the same door.
    pub fn admit(&mut self, entrance: &Entrance, shown: Option<&[u8]>) -> Result<Rc<Principal>, Unauthorized> {
        let known = match (&self.who, shown) {
            (Some(who), None) => return Ok(Rc::clone(who)),
            (known, _) => known,
        };
        let admitted = entrance.admit(shown)?;
        if known.as_ref().is_some_and(|who| !who.is(&admitted)) {
            return Err(Unauthorized);
        }
        self.who = Some(Rc::clone(&admitted));
        Ok(admitted)
    }
}
