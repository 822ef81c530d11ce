//! Requests to a server to tell of changes: one for all of its clients, repeated after a restart.

pub(crate) mod listening;
pub(crate) mod updates;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::router::ListKind;
use bytes::Bytes;
use mcp_wire::reply;
use mcp_wire::revision::Era;
use mcp_wire::{Id, Kind, Message};
use tokio::sync::Notify;

use crate::catalog::listed::json_text;
use crate::client::LogLevel;
use crate::upstream::UpstreamConnection;

/// Pause before a server that ended a subscription is asked again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// The member of `_meta` that says which listen request something belongs to.
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a server was asked to tell.
#[derive(Default)]
pub(crate) struct Subscriptions {
    asked: RefCell<BTreeMap<String, Asked>>,
    /// Requests to subscribe so far.
    count: Cell<u64>,
    /// Resources that no client wants to hear of any more, until the server has answered that, and our requests.
    leaving: RefCell<Vec<(String, i64)>>,
    /// Our request to a server of the newest revision that it tells us of changes.
    listening: Cell<Option<i64>>,
    /// The one before, until this one is acknowledged.
    before: Cell<Option<i64>>,
    /// Whether it has yet to say that it does.
    is_unacknowledged: Cell<bool>,
    /// How much it was asked to log, and how often it has yet to answer that.
    pub(crate) level: Cell<Option<LogLevel>>,
    pub(crate) levels_unanswered: Cell<usize>,
    /// Told when it has less to answer.
    pub(crate) answered: Notify,
}

/// A resource that a server was asked to tell of.
struct Asked {
    /// Tells its requests apart.
    number: u64,
    answer: Answer,
}

enum Answer {
    NotYet,
    Subscribed,
    /// An error, as it came.
    Refused(Bytes),
}

impl UpstreamConnection {
    /// Everything that its clients want to hear of.
    fn wanted(&self) -> BTreeSet<String> {
        let server = self.server.index;
        self.attached().iter().flat_map(|client| client.wanted_of(server)).collect()
    }

    /// Asks a server for everything, because it knows nothing of what the one before was asked.
    pub(crate) fn subscribe_anew(&self) {
        let subscriptions = &self.subscriptions;
        subscriptions.asked.borrow_mut().clear();
        subscriptions.leaving.borrow_mut().clear();
        subscriptions.listening.set(None);
        subscriptions.before.set(None);
        subscriptions.is_unacknowledged.set(false);
        subscriptions.level.set(None);
        self.adjust_level();
        if self.era.get() == Era::Modern {
            return self.listen_for(self.wanted());
        }
        self.adjust_subscriptions();
    }

    /// Asks the server for what is wanted now, and no more for what is not.
    pub(crate) fn adjust_subscriptions(&self) {
        if !self.is_ready() || self.is_retired() {
            return;
        }
        let wanted = self.wanted();
        if self.era.get() == Era::Modern {
            let is_known = self.subscriptions.asked.borrow().keys().eq(&wanted);
            // One request at a time takes the place of another.
            if !is_known && !self.subscriptions.is_unacknowledged.get() {
                self.listen_for(wanted);
            }
            return;
        }
        let (missing, spare) = self.subscriptions.differ_from(&wanted, self.is_process());
        missing.into_iter().for_each(|uri| self.ask_for(uri));
        spare.into_iter().for_each(|uri| self.ask_no_more_for(uri));
    }

    fn ask_for(&self, uri: String) {
        let subscriptions = &self.subscriptions;
        let number = subscriptions.count.get() + 1;
        subscriptions.count.set(number);
        subscriptions.asked.borrow_mut().insert(uri.clone(), Asked { number, answer: Answer::NotYet });
        let answer = self.ask("resources/subscribe", Some(&format!("{{\"uri\":{}}}", json_text(&uri))));
        let connection = self.rc();
        tokio::task::spawn_local(async move {
            let answer = answer.await.unwrap_or_else(|_| reply::error(&Id::Integer(0), &connection.refusal()));
            let is_refused = Message::new(answer.clone()).glance().kind == Kind::Error;
            if let Some(asked) =
                connection.subscriptions.asked.borrow_mut().get_mut(&uri).filter(|it| it.number == number)
            {
                asked.answer = if is_refused { Answer::Refused(answer) } else { Answer::Subscribed };
            }
            connection.hear_of_subscription();
        });
    }

    fn ask_no_more_for(&self, uri: String) {
        let asked = self.subscriptions.asked.borrow_mut().remove(&uri);
        self.subscriptions.answered.notify_waiters();
        if asked.is_none_or(|asked| matches!(asked.answer, Answer::Refused(_))) {
            return;
        }
        let params = format!("{{\"uri\":{}}}", json_text(&uri));
        let (id, answer) = self.ask_as("resources/unsubscribe", Some(&params), Era::Legacy);
        self.subscriptions.leaving.borrow_mut().push((uri, id));
        let connection = self.rc();
        tokio::task::spawn_local(async move {
            let _ = answer.await;
            connection.subscriptions.leaving.borrow_mut().retain(|(_, other)| *other != id);
            connection.hear_of_subscription();
        });
    }

    /// Whether the server may still tell of a resource that no client wants to hear of any more. What it says right after
    /// its answer is heard before the task that waits for that runs.
    pub(crate) fn has_to_end_some(&self) -> bool {
        let calls = self.calls.borrow();
        self.subscriptions.leaving.borrow().iter().any(|(_, id)| calls.get(*id).is_some())
    }

    /// The server answered: requests that waited for that may leave.
    fn hear_of_subscription(&self) {
        self.subscriptions.answered.notify_waiters();
        self.adjust_subscriptions();
    }

    /// Waits until the server tells of a resource that is wanted. An error is the server's, or says that it is gone.
    pub(crate) async fn tells_of(&self, uri: &str) -> Result<(), Bytes> {
        while self.opened().await {
            let answered = self.subscriptions.answered.notified();
            match self.subscriptions.asked.borrow().get(uri).map(|asked| &asked.answer) {
                Some(Answer::Subscribed) if !self.subscriptions.is_unacknowledged.get() => return Ok(()),
                Some(Answer::Refused(error)) => return Err(error.clone()),
                // The client has changed its mind, or another connection asks for it.
                None if self.is_retired() || !self.wanted().contains(uri) => return Ok(()),
                _ => {}
            }
            answered.await;
        }
        if self.is_retired() { Ok(()) } else { Err(reply::error(&Id::Integer(0), &self.refusal())) }
    }

    /// Waits until the server knows that those of `uris` are wanted that are its own.
    pub(crate) async fn knows(&self, uris: &BTreeSet<(usize, String)>) {
        for (_, uri) in uris.iter().filter(|(server, _)| *server == self.server.index) {
            // A client that listens is told of no error.
            let _ = self.tells_of(uri).await;
        }
    }

    /// Whether the server knows of everything that is wanted.
    pub(crate) fn knows_all(&self) -> bool {
        let subscriptions = &self.subscriptions;
        let is_answered = |asked: &Asked| !matches!(asked.answer, Answer::NotYet);
        self.is_ready()
            && !subscriptions.is_unacknowledged.get()
            && subscriptions.asked.borrow().values().all(is_answered)
    }

    /// It took too long to say so: nobody waits for that again.
    pub(crate) fn is_taken_to_know(&self, uris: &BTreeSet<(usize, String)>) {
        for (uri, asked) in &mut *self.subscriptions.asked.borrow_mut() {
            if matches!(asked.answer, Answer::NotYet) && uris.contains(&(self.server.index, uri.clone())) {
                asked.answer = Answer::Subscribed;
            }
        }
        self.is_listened_to();
    }

    /// The server says that it tells us of changes from now on.
    pub(crate) fn hear_acknowledged(&self, message: &Message) {
        let ours = self.subscriptions.listening.get();
        if ours.is_some() && listen_request(message) == ours {
            self.is_listened_to();
        }
    }

    /// Whether a notification belongs to the listen request in force. While one request takes the place of another, the
    /// server may tell of a change under both; it is passed on once.
    pub(crate) fn is_of_current(&self, message: &Message) -> bool {
        let subscriptions = &self.subscriptions;
        let (Some(said), Some(ours)) = (listen_request(message), subscriptions.listening.get()) else { return true };
        if said == ours && subscriptions.is_unacknowledged.get() {
            // A notification under the new request acknowledges it.
            self.is_listened_to();
        }
        said >= ours || subscriptions.before.get() == Some(said)
    }

    fn is_listened_to(&self) {
        self.subscriptions.is_unacknowledged.set(false);
        if let Some(before) = self.subscriptions.before.take() {
            drop(self.calls.borrow_mut().take(before));
            self.cancel(before, "another subscription took its place");
        }
        self.hear_of_subscription();
    }

    /// Asks a server of the newest revision to tell of these resources, and of its lists. The request before ends when
    /// this one is acknowledged.
    fn listen_for(&self, uris: BTreeSet<String>) {
        let list = |kind, name: &str| self.tells_changes_of(kind).then(|| format!("\"{name}\":true"));
        let mut filter: Vec<String> = [
            list(ListKind::Tools, "toolsListChanged"),
            list(ListKind::Prompts, "promptsListChanged"),
            list(ListKind::Resources, "resourcesListChanged"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !uris.is_empty() {
            let uris: Vec<String> = uris.iter().map(|uri| json_text(uri)).collect();
            filter.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
        }
        let subscriptions = &self.subscriptions;
        let now_asked = uris.into_iter().map(|uri| (uri, Asked { number: 0, answer: Answer::Subscribed })).collect();
        *subscriptions.asked.borrow_mut() = now_asked;
        subscriptions.before.set(subscriptions.listening.take());
        if filter.is_empty() {
            return self.is_listened_to();
        }
        let params = format!("{{\"notifications\":{{{}}}}}", filter.join(","));
        let (id, ended) = self.ask_as("subscriptions/listen", Some(&params), Era::Modern);
        self.keep_open(id);
        subscriptions.listening.set(Some(id));
        subscriptions.is_unacknowledged.set(true);
        subscriptions.answered.notify_waiters();
        let connection = self.rc();
        tokio::task::spawn_local(async move {
            let _ = ended.await;
            connection.listen_again(id).await;
        });
    }

    /// The server ended what we listened to: it is asked for once more, and what was missed is looked for.
    async fn listen_again(&self, ended: i64) {
        if self.subscriptions.before.get() == Some(ended) {
            self.subscriptions.before.set(None);
        }
        if self.subscriptions.listening.get() != Some(ended) {
            return;
        }
        // Nor will it say any more that it listens.
        self.is_listened_to();
        if !self.is_ready() {
            return;
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
        if self.subscriptions.listening.get() != Some(ended) || !self.is_ready() {
            return;
        }
        self.subscriptions.listening.set(None);
        for kind in ListKind::ALL {
            self.list_changed(kind);
        }
        self.listen_for(self.wanted());
    }

    /// Whether a client wants to hear of something here.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.is_retired() && !self.wanted().is_empty()
    }

    pub(crate) fn unsubscribe_all(&self, _visitor: u32) {
        self.adjust_subscriptions();
        self.adjust_level();
    }
}

/// The id of the gateway's listen request that a notification names.
fn listen_request(message: &Message) -> Option<i64> {
    match message.subscription_id()? {
        Id::Integer(id) => Some(id),
        // Some take every id for text.
        Id::Text(id) => id.parse().ok(),
        Id::Other(_) | Id::Broken(_) => None,
    }
}

impl Subscriptions {
    /// The resources that are wanted and have to be asked for, and those that are not and were. Where messages may
    /// overtake each other a resource waits for the answer to what was asked about it before.
    fn differ_from(&self, wanted: &BTreeSet<String>, is_ordered: bool) -> (Vec<String>, Vec<String>) {
        let (asked, leaving) = (self.asked.borrow(), self.leaving.borrow());
        let may_ask = |uri: &&String| is_ordered || !leaving.iter().any(|(other, _)| other == *uri);
        let missing = wanted.iter().filter(|uri| !asked.contains_key(*uri)).filter(may_ask);
        let may_end = |asked: &Asked| is_ordered || !matches!(asked.answer, Answer::NotYet);
        let spare = asked.iter().filter(|(uri, asked)| !wanted.contains(*uri) && may_end(asked));
        (missing.cloned().collect(), spare.map(|(uri, _)| uri.clone()).collect())
    }

    /// Has a resource be asked for once more that the server refused.
    pub(crate) fn forget_refused(&self, uri: &str) {
        let mut asked = self.asked.borrow_mut();
        if asked.get(uri).is_some_and(|asked| matches!(asked.answer, Answer::Refused(_))) {
            asked.remove(uri);
        }
    }
}
