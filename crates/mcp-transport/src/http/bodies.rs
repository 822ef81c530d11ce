//! How much of clients' bodies may be held on their way in, of all of them together. Each is bounded by itself, and so is
//! how many clients there are; but not even a large machine has room for as much as that comes to.

use std::cell::Cell;
use std::rc::Rc;

use hyper::StatusCode;
use mcp_wire::reply::Refusal;

use super::gate::Refused;

/// Concurrent request bodies share a budget of this many maximum-size messages, and of no less than this many
/// bytes; beyond it the listener answers 503.
const LARGEST: usize = 8;
const BYTES_MIN: usize = 64 << 20;

/// All that is on its way.
pub struct Bodies {
    held: Cell<usize>,
    max: usize,
}

/// The part that one body has in it.
pub struct Held {
    all: Rc<Bodies>,
    own: usize,
}

impl Bodies {
    pub fn new(message_bytes_max: usize) -> Rc<Self> {
        let max = message_bytes_max.saturating_mul(LARGEST).max(BYTES_MIN);
        Rc::new(Self { held: Cell::new(0), max })
    }

    /// A body that has nothing yet.
    pub fn begin(self: &Rc<Self>) -> Held {
        Held { all: Rc::clone(self), own: 0 }
    }
}

impl Held {
    /// Has it hold this much in all, if there is room for that.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Refused> {
        let held = self.all.held.get() - self.own + bytes;
        if bytes > self.own && held > self.all.max {
            return Err(Refused { status: StatusCode::SERVICE_UNAVAILABLE, refusal: Refusal::Overloaded });
        }
        self.all.held.set(held);
        self.own = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.held.set(self.all.held.get() - self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_what_there_is_and_give_it_back() {
        let all = Bodies::new(1000);
        let (mut one, mut other) = (all.begin(), all.begin());
        assert!(one.grow_to(BYTES_MIN - 10).is_ok() && other.grow_to(10).is_ok());
        let refused = other.grow_to(11).expect_err("there is no more");
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        // What it had it keeps, and others may have what one gives back.
        assert!(one.grow_to(BYTES_MIN - 11).is_ok() && other.grow_to(11).is_ok() && one.grow_to(BYTES_MIN).is_err());
        drop(other);
        assert!(one.grow_to(BYTES_MIN).is_ok());
        drop(one);
        assert_eq!((all.held.get(), Bodies::new(BYTES_MIN).max), (0, LARGEST * BYTES_MIN));
    }
}
