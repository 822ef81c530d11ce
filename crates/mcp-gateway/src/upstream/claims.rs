//! Calls that were given up while the server may still work on them. Until such a call is settled, what the
//! server says outside of any call may be meant for its client.
//!
//! On one stream that is all that the server says, so the other clients would be left without logs and questions.
//! Their calls wait for `cancel_grace`, and then get a fresh connection; the one before drains and ends.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::client::GatewayClient;
use crate::upstream::UpstreamConnection;

/// Given-up calls that the server may still work on, so that its questions may concern them.
const CLAIMS_MAX: usize = 1_024;

#[derive(Default)]
pub(crate) struct Claims {
    open: RefCell<Vec<Claim>>,
    /// No other connection came about, so this one has to do.
    is_stuck: Cell<bool>,
}

struct Claim {
    /// Of the call, as the server knows it.
    id: i64,
    /// Whose it was.
    client: u32,
    since: Instant,
}

impl Claims {
    /// A call was cancelled or timed out.
    pub(crate) fn add(&self, id: i64, client: u32) {
        let mut claims = self.open.borrow_mut();
        if claims.len() >= CLAIMS_MAX {
            claims.remove(0);
        }
        claims.push(Claim { id, client, since: Instant::now() });
    }

    /// The server answered the call after all.
    pub(crate) fn settle(&self, id: i64) {
        self.open.borrow_mut().retain(|claim| claim.id != id);
    }

    pub(crate) fn expire(&self, now: Instant, after: Duration) {
        self.open.borrow_mut().retain(|claim| now.saturating_duration_since(claim.since) < after);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// Whether another client than this has one.
    pub(crate) fn are_another(&self, client: u32) -> bool {
        self.open.borrow().iter().any(|claim| claim.client != client)
    }

    /// Whether another client than this has one, and for how long the newest.
    fn of_others(&self, client: u32) -> Option<Duration> {
        let claims = self.open.borrow();
        let others = claims.iter().filter(|claim| claim.client != client);
        others.map(|claim| claim.since.elapsed()).min()
    }
}

impl UpstreamConnection {
    /// Whether a fresh connection can take new work in its place. Where answers have streams of their own, the
    /// server says with which call it means, and none is needed.
    fn is_replaceable(&self) -> bool {
        let settings = &self.server.settings;
        !settings.exclusive
            && self.key.client.is_none()
            && !self.claims.is_stuck.get()
            && self.server.settings.target.has_one_stream()
            && self.server.has_room_for_more()
    }

    /// For how long an unsettled call may be what the server means. Where answers have streams of their own, that of the
    /// call is closed, so the server can no longer settle it.
    pub(crate) fn claims_last(&self) -> Duration {
        let settings = &self.server.settings;
        if settings.exclusive || !self.server.settings.target.has_one_stream() {
            settings.cancel_grace
        } else {
            settings.response_cap
        }
    }

    /// Whether a call waits here, because the server may be about to settle those of other clients.
    pub(crate) fn is_to_wait(&self, client: &GatewayClient) -> bool {
        let since = self.claims.of_others(client.number);
        let is_soon = since.is_some_and(|since| since < self.server.settings.cancel_grace);
        is_soon && client.hears_unasked() && self.is_replaceable()
    }

    /// Whether new work of a client needs another connection.
    pub(crate) fn is_spent_for(&self, client: &GatewayClient) -> bool {
        if self.is_retired() {
            return true;
        }
        let since = self.claims.of_others(client.number);
        let is_past = since.is_some_and(|since| since >= self.server.settings.cancel_grace);
        is_past && client.hears_unasked() && self.is_replaceable()
    }

    /// Whether it takes no new work.
    pub(crate) fn is_retired(&self) -> bool {
        self.successor.get().is_some()
    }

    /// Leaves new work to `successor`.
    pub(crate) fn retire(&self, successor: &Rc<Self>) {
        self.note("new calls go to a fresh connection: calls that were given up are not settled here");
        *successor.inherited.borrow_mut() = Some(self.lists_read());
        // It was not retired before, since it was found by its key.
        let _ = self.successor.set(Rc::downgrade(successor));
        self.pump();
    }

    /// Goes on taking new work, since no other connection can.
    pub(crate) fn is_stuck(&self) {
        self.claims.is_stuck.set(true);
    }

    /// Whether a retired connection has nothing left to do.
    pub(crate) fn is_drained(&self) -> bool {
        let successor = self.successor.get().and_then(Weak::upgrade);
        self.open_calls() == 0 && successor.is_none_or(|successor| successor.is_over() || successor.knows_all())
    }
}
