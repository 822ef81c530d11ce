//! Resources that change: which clients a server's notification concerns, and what waits for a client that was not
//! answered yet.

use std::collections::BTreeSet;
use std::rc::{Rc, Weak};

use crate::router::rewrite;
use bytes::Bytes;
use mcp_wire::{Id, Message, splice};

use crate::catalog::listed::json_text;
use crate::client::GatewayClient;
use crate::subscriptions::SUBSCRIPTION;
use crate::subscriptions::listening::{Listen, Listening, notification};
use crate::upstream::UpstreamConnection;

/// Notifications, and their bytes, that wait until a subscription is answered, each once.
const UNTOLD_MAX: usize = 1_000;
const UNTOLD_BYTES_MAX: usize = 1024 * 1024;

/// A resource that a client asked to hear of and was not answered about.
pub(crate) struct Awaited {
    pub number: u64,
    pub place: (usize, String),
    pub untold: Untold,
}

/// Notifications that wait for a client to be answered, each once, and the messages that they came of.
#[derive(Default)]
pub(crate) struct Untold {
    rest: Vec<(u64, Bytes)>,
    bytes: usize,
}

impl Untold {
    /// False if there is no room for it.
    fn keep(&mut self, sequence: u64, message: Bytes) -> bool {
        if self.rest.iter().any(|(_, known)| *known == message) {
            return true;
        }
        if self.rest.len() >= UNTOLD_MAX || self.bytes + message.len() > UNTOLD_BYTES_MAX {
            return false;
        }
        self.bytes += message.len();
        self.rest.push((sequence, message));
        true
    }
}

impl IntoIterator for Untold {
    type Item = (u64, Bytes);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.rest.into_iter()
    }
}

/// Whether news of `changed` is news to a subscriber of `wanted`: it is that resource, or one within it.
fn covers(wanted: &str, changed: &str) -> bool {
    let Some(rest) = changed.strip_prefix(wanted) else { return false };
    rest.is_empty() || wanted.ends_with('/') || rest.starts_with(['/', '?', '#'])
}

/// A resource that changed, and to whom that is news.
struct Changed {
    place: (usize, String),
    /// The address names no resource that a client is subscribed to, and only one client is subscribed to any.
    concerns_all: bool,
}

impl Changed {
    fn concerns(&self, (server, wanted): &(usize, String)) -> bool {
        *server == self.place.0 && (self.concerns_all || covers(wanted, &self.place.1))
    }

    fn concerns_any(&self, uris: &BTreeSet<(usize, String)>) -> bool {
        uris.contains(&self.place) || uris.iter().any(|uri| self.concerns(uri))
    }
}

impl UpstreamConnection {
    /// A resource changed: its subscribers are told.
    pub(crate) fn hear_updated(&self, message: &Message, sequence: u64) {
        let successor = self.successor.get().and_then(Weak::upgrade);
        if successor.is_some_and(|successor| successor.knows_all()) {
            // Which tells of it itself.
            return;
        }
        if !self.is_of_current(message) {
            return;
        }
        let Some(uri) = message.uri() else { return };
        let (server, clients) = (self.server.index, self.attached());
        let changed = self.whom_concerns((server, uri.into_owned()), &clients);
        let given = self.namespace().uri(&changed.place.1);
        for client in clients {
            client.hear_changed(&changed, sequence, || {
                let plain = splice::without_member(message.bytes(), &["params", "_meta", SUBSCRIPTION]);
                rewrite::notification(self.namespace(), plain)
            });
            let updated = |id: &Id| {
                let params = format!("{{\"_meta\":{{\"{SUBSCRIPTION}\":{id}}},\"uri\":{}}}", json_text(&given));
                notification("notifications/resources/updated", &params)
            };
            for message in client.listening.due(|listen| changed.concerns_any(&listen.uris), sequence, updated) {
                client.tell_of(sequence, None, message);
            }
        }
    }

    /// The protocol lets servers name a part of what a client is subscribed to, however they spell that. Where the
    /// address does not tell, the only subscriber is meant, unless one before it may be.
    fn whom_concerns(&self, place: (usize, String), clients: &[Rc<GatewayClient>]) -> Changed {
        let mut changed = Changed { place, concerns_all: false };
        let server = changed.place.0;
        let is_known = clients.iter().any(|client| client.listening.any(|uri| changed.concerns(uri)));
        if !is_known && !self.has_to_end_some() {
            let subscribers = clients.iter().filter(|client| client.listening.any(|(at, _)| *at == server));
            changed.concerns_all = subscribers.count() == 1;
        }
        changed
    }
}

impl GatewayClient {
    /// Tells it of a change in its own subscriptions, or keeps that until it was answered.
    fn hear_changed(&self, changed: &Changed, sequence: u64, message: impl FnOnce() -> Bytes) {
        if changed.concerns_any(&self.listening.uris.borrow()) {
            return self.tell_of(sequence, None, message());
        }
        let mut awaited = self.listening.awaited.borrow_mut();
        let has_room = match awaited.iter_mut().find(|awaited| changed.concerns(&awaited.place)) {
            Some(awaited) => awaited.untold.keep(sequence, message()),
            None => true,
        };
        drop(awaited);
        if !has_room {
            self.note("too much changed before the subscription was answered; this was left out");
        }
    }
}

impl Listening {
    /// The updates due to the listen requests that `are_concerned`. Updates for requests without a listener yet are kept.
    pub(crate) fn due(
        &self,
        are_concerned: impl Fn(&Listen) -> bool,
        sequence: u64,
        of: impl Fn(&Id) -> Bytes,
    ) -> Vec<Bytes> {
        let mut due = Vec::new();
        for listen in self.listens.borrow_mut().iter_mut().filter(|listen| are_concerned(listen)) {
            let message = of(&listen.id);
            match &mut listen.untold {
                // One that finds no room follows a thousand others.
                Some((_, untold)) => drop(untold.keep(sequence, message)),
                None => due.push(message),
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_itself_and_what_is_within_it() {
        for (wanted, changed) in [
            ("file:///dir", "file:///dir"),
            ("file:///dir", "file:///dir/a/b"),
            ("file:///dir/", "file:///dir/a"),
            ("file:///dir", "file:///dir?v=2"),
            ("r:1", "r:1#part"),
        ] {
            assert!(covers(wanted, changed), "{wanted} {changed}");
        }
        for (wanted, changed) in [
            ("file:///dir", "file:///dirs"),
            ("file:///dir/", "file:///dir"),
            ("file:///dir/a", "file:///dir"),
            ("r:1", "r:10"),
            ("r:1", "s:1"),
        ] {
            assert!(!covers(wanted, changed), "{wanted} {changed}");
        }
    }

    #[test]
    fn what_waits_is_kept_once_and_has_a_bound() {
        let mut untold = Untold::default();
        for number in 0..UNTOLD_MAX {
            assert!(untold.keep(0, number.to_string().into()));
        }
        assert!(untold.keep(0, "7".into()), "it is known");
        assert!(!untold.keep(0, "more".into()));
        assert_eq!(untold.into_iter().count(), UNTOLD_MAX);
        let mut untold = Untold::default();
        assert!(!untold.keep(0, vec![b' '; UNTOLD_BYTES_MAX + 1].into()));
    }
}
