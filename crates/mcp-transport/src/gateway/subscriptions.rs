//! What clients want to hear of without asking each time: resources that change, and lists. Each server is
//! asked once for all that its clients want.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcp_engine::router::{Found, ListKind};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::{Id, Kind, Message, scan};
use tokio::sync::{Notify, oneshot};

use super::leg::Leg;
use super::listed::json_text;
use super::visitor::{Visitor, too_many_calls};

/// Resources that one client may want to hear of, and times that it may want to.
const URIS_MAX: usize = 1_000;
const LISTENS_MAX: usize = 64;

/// Before a server is asked again to tell of changes, if it ended that.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// For as long as this a client that wants to hear of something waits for the servers to know of it.
const SERVERS_KNOW_WITHIN: Duration = Duration::from_secs(10);

/// The member of `_meta` that says which listen request something belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a server was asked to tell.
#[derive(Default)]
pub struct Subscriptions {
    active: RefCell<BTreeSet<String>>,
    /// Our request to a server of the newest revision that it tells us of changes.
    listening: Cell<Option<i64>>,
    /// Whether it has yet to say that it does.
    is_unacknowledged: Cell<bool>,
    /// The resources that we asked it to tell of one by one, as long as it has not answered.
    unanswered: RefCell<BTreeSet<String>>,
    /// Told when it has less to answer.
    answered: Notify,
}

/// What a client wants to hear of.
#[derive(Default)]
pub struct Listening {
    /// Resources, by server and the server's own name of them.
    uris: RefCell<BTreeSet<(usize, String)>>,
    /// Requests of the newest revision that last for as long as the client listens.
    listens: RefCell<Vec<Listen>>,
    /// How many of them there were; ids are used again.
    count: Cell<u64>,
}

struct Listen {
    number: u64,
    id: Id,
    lists: Vec<ListKind>,
    uris: BTreeSet<(usize, String)>,
    /// What the client is to hear once the servers know of it.
    untold: Option<Untold>,
}

struct Untold {
    /// That it is listened for, which comes first.
    acknowledged: Bytes,
    /// What there was to hear meanwhile, each thing once, and the messages that it came of.
    rest: Vec<(u64, Bytes)>,
}

impl Leg {
    /// Everything that its clients want to hear of.
    fn wanted(&self) -> BTreeSet<String> {
        let server = self.server.index;
        self.attached().iter().flat_map(|visitor| visitor.wanted_of(server)).collect()
    }

    /// Asks a server for everything, because it knows nothing of what the one before was asked.
    pub(super) fn subscribe_anew(&self) {
        self.subscriptions.active.borrow_mut().clear();
        self.subscriptions.listening.set(None);
        self.subscriptions.is_unacknowledged.set(false);
        self.adjust_level();
        if self.era.get() == Era::Modern {
            return self.listen_for(self.wanted());
        }
        self.adjust_subscriptions();
    }

    /// Asks the server for what is wanted now, and no more for what is not.
    pub(super) fn adjust_subscriptions(&self) {
        if !self.is_ready() || self.is_retired() {
            return;
        }
        let wanted = self.wanted();
        let active = self.subscriptions.active.borrow().clone();
        if wanted == active {
            return;
        }
        if self.era.get() == Era::Modern {
            return self.listen_for(wanted);
        }
        let ask = |method: &str, uri: &String| self.ask(method, Some(&format!("{{\"uri\":{}}}", json_text(uri))));
        wanted.difference(&active).for_each(|uri| self.remember_until(uri, ask("resources/subscribe", uri)));
        active.difference(&wanted).for_each(|uri| drop(ask("resources/unsubscribe", uri)));
        *self.subscriptions.active.borrow_mut() = wanted;
    }

    /// Remembers that a server has yet to answer.
    fn remember_until(&self, uri: &str, answer: oneshot::Receiver<Bytes>) {
        self.subscriptions.unanswered.borrow_mut().insert(uri.to_owned());
        let (leg, uri) = (self.rc(), uri.to_owned());
        tokio::task::spawn_local(async move {
            let _ = answer.await;
            leg.subscriptions.unanswered.borrow_mut().remove(&uri);
            leg.subscriptions.answered.notify_waiters();
        });
    }

    /// Waits until the server knows that those of `uris` are wanted that are its own.
    async fn knows(&self, uris: &BTreeSet<(usize, String)>) {
        while self.opened().await {
            let answered = self.subscriptions.answered.notified();
            if self.is_known_to_want(uris) {
                return;
            }
            answered.await;
        }
    }

    /// Whether the server knows of everything that is wanted.
    pub(super) fn knows_all(&self) -> bool {
        let subscriptions = &self.subscriptions;
        self.is_ready() && !subscriptions.is_unacknowledged.get() && subscriptions.unanswered.borrow().is_empty()
    }

    fn is_known_to_want(&self, uris: &BTreeSet<(usize, String)>) -> bool {
        let unanswered = self.subscriptions.unanswered.borrow();
        let is_unanswered = |(server, uri): &(usize, String)| *server == self.server.index && unanswered.contains(uri);
        !self.subscriptions.is_unacknowledged.get() && !uris.iter().any(is_unanswered)
    }

    /// It took too long to say so: nobody waits for that again.
    fn is_taken_to_know(&self, uris: &BTreeSet<(usize, String)>) {
        let is_one = |uri: &String| uris.contains(&(self.server.index, uri.clone()));
        self.subscriptions.unanswered.borrow_mut().retain(|uri| !is_one(uri));
        self.is_listened_to();
    }

    /// The server says that it tells us of changes from now on.
    pub(super) fn hear_acknowledged(&self, message: &Message) {
        let id = scan::member_at(message.bytes(), ["params", "_meta", SUBSCRIPTION]);
        let id = id.map(|span| Id::from_json(&message.bytes()[span.range()]));
        let is_it = self.subscriptions.listening.get().is_some_and(|ours| match id {
            Some(Id::Integer(id)) => id == ours,
            // Some take every id for text.
            Some(Id::Text(id)) => *id == *ours.to_string(),
            _ => false,
        });
        if is_it {
            self.is_listened_to();
        }
    }

    fn is_listened_to(&self) {
        self.subscriptions.is_unacknowledged.set(false);
        self.subscriptions.answered.notify_waiters();
    }

    /// Asks a server of the newest revision to tell of these resources, and of its lists.
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
        let before = self.subscriptions.listening.take();
        self.is_listened_to();
        if !filter.is_empty() {
            let params = format!("{{\"notifications\":{{{}}}}}", filter.join(","));
            let (id, ended) = self.ask_as("subscriptions/listen", Some(&params), Era::Modern);
            self.keep_open(id);
            self.subscriptions.listening.set(Some(id));
            self.subscriptions.is_unacknowledged.set(true);
            let leg = self.rc();
            tokio::task::spawn_local(async move {
                let _ = ended.await;
                leg.listen_again(id).await;
            });
        }
        if let Some(before) = before {
            drop(self.calls.borrow_mut().take(before));
            self.cancel(before);
        }
        *self.subscriptions.active.borrow_mut() = uris;
    }

    /// The server ended what we listened to: it is asked for once more, and what was missed is looked for.
    async fn listen_again(&self, ended: i64) {
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
    pub(super) fn is_wanted(&self) -> bool {
        !self.is_retired() && !self.wanted().is_empty()
    }

    pub(super) fn unsubscribe_all(&self, _visitor: u32) {
        self.adjust_subscriptions();
        self.adjust_level();
    }

    /// A resource changed: whoever wants to is told.
    pub(super) fn hear_updated(&self, message: &Message, sequence: u64) {
        let successor = self.successor.get().and_then(Weak::upgrade);
        if successor.is_some_and(|successor| successor.knows_all()) {
            // Which tells of it itself.
            return;
        }
        let Some(uri) = message.uri() else { return };
        let place = (self.server.index, uri.into_owned());
        let given = self.namespace().uri(&place.1);
        for visitor in self.attached() {
            if visitor.listening.uris.borrow().contains(&place) {
                let plain = mcp_wire::splice::without_member(message.bytes(), &["params", "_meta", SUBSCRIPTION]);
                visitor.tell_of(sequence, None, mcp_engine::router::rewrite::notification(self.namespace(), plain));
            }
            let updated = |id: &Id| {
                let params = format!("{{\"_meta\":{{\"{SUBSCRIPTION}\":{id}}},\"uri\":{}}}", json_text(&given));
                notification("notifications/resources/updated", &params)
            };
            for message in visitor.listening.due(|listen| listen.uris.contains(&place), sequence, updated) {
                visitor.tell_of(sequence, None, message);
            }
        }
    }
}

/// Waits until servers know that `uris` are wanted, so that nothing escapes whoever wants to hear of them.
async fn all_know(legs: &[Rc<Leg>], uris: &BTreeSet<(usize, String)>) {
    let known = async {
        for leg in legs {
            leg.knows(uris).await;
        }
    };
    if tokio::time::timeout(SERVERS_KNOW_WITHIN, known).await.is_err() {
        legs.iter().for_each(|leg| leg.is_taken_to_know(uris));
    }
}

pub(super) fn notification(method: &str, params: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}").into()
}

impl Listening {
    /// What `of` says for the listen requests that `are_concerned`. It is kept for those that nobody listens for yet.
    fn due(&self, are_concerned: impl Fn(&Listen) -> bool, sequence: u64, of: impl Fn(&Id) -> Bytes) -> Vec<Bytes> {
        let mut due = Vec::new();
        for listen in self.listens.borrow_mut().iter_mut().filter(|listen| are_concerned(listen)) {
            let message = of(&listen.id);
            match &mut listen.untold {
                Some(Untold { rest, .. }) if rest.iter().any(|(_, known)| *known == message) => {}
                Some(Untold { rest, .. }) => rest.push((sequence, message)),
                None => due.push(message),
            }
        }
        due
    }
}

impl Visitor {
    fn wanted_of(&self, server: usize) -> Vec<String> {
        let of_server = |(at, uri): &(usize, String)| (*at == server).then(|| uri.clone());
        let listens = self.listening.listens.borrow();
        let uris = self.listening.uris.borrow();
        uris.iter().chain(listens.iter().flat_map(|listen| &listen.uris)).filter_map(of_server).collect()
    }

    /// A client of the older revisions wants to hear of a resource, or no longer.
    pub(super) fn subscribe(&self, message: Message, method: &str, _sequence: u64) {
        let Some(uri) = message.uri() else {
            return self.refuse(&message, &Refusal::BadParams { what: "params.uri is missing".into() });
        };
        let Some((server, original)) = self.find_resource(&uri) else {
            let id = message.id().unwrap_or(Id::Other("null".into()));
            return self.say(reply::unknown(&id, "resources/read", &uri));
        };
        let leg = match self.leg(server, Era::Legacy) {
            Ok(leg) => leg,
            Err(refusal) => return self.refuse(&message, &refusal),
        };
        let me = self.rc();
        let method = method.to_owned();
        let Some(id) = message.id() else { return };
        self.own.borrow_mut().push(id.clone());
        tokio::task::spawn_local(async move {
            if !leg.opened().await {
                if me.is_still_wanted(&id) {
                    me.answer_with(&id, &leg.refusal());
                }
                return;
            }
            let refused = me.change_subscription(&leg, &method, (server, original)).await;
            if !me.is_still_wanted(&id) {
                return;
            }
            match refused {
                None => me.say(reply::answer_with_result(&id, b"{}")),
                Some(error) => me.say(error_for(&id, &error)),
            }
        });
    }

    /// Asks the server, unless it was asked before. What it answers is an error, or of no concern.
    async fn change_subscription(&self, leg: &Leg, method: &str, place: (usize, String)) -> Option<Bytes> {
        if method == "resources/unsubscribe" {
            self.listening.uris.borrow_mut().remove(&place);
            leg.adjust_subscriptions();
            return None;
        }
        let is_known = leg.subscriptions.active.borrow().contains(&place.1);
        if self.listening.uris.borrow().len() >= URIS_MAX {
            return Some(reply::error(&Id::Integer(0), &too_many_calls()));
        }
        if !is_known && leg.era.get() == Era::Legacy {
            let params = format!("{{\"uri\":{}}}", json_text(&place.1));
            let answer = leg.ask("resources/subscribe", Some(&params)).await;
            let answer = answer.unwrap_or_else(|_| reply::error(&Id::Integer(0), &leg.refusal()));
            if Message::new(answer.clone()).glance().kind == Kind::Error {
                return Some(answer);
            }
            leg.subscriptions.active.borrow_mut().insert(place.1.clone());
        }
        self.listening.uris.borrow_mut().insert(place.clone());
        leg.adjust_subscriptions();
        all_know(&[leg.rc()], &BTreeSet::from([place])).await;
        None
    }

    /// The server of a resource that this client may use, and the server's own name of it.
    fn find_resource(&self, uri: &str) -> Option<(usize, String)> {
        let found = self.gateway.names.borrow().uri(uri);
        let (server, original) = match found {
            Found::Is { server, original } => (server, original.as_ref().to_owned()),
            Found::Nowhere { candidates } if candidates.len() == 1 => (candidates[0], uri.to_owned()),
            _ => return None,
        };
        self.principal().may_use_server(self.gateway.servers[server].id()).then_some((server, original))
    }

    /// A client of the newest revision wants to hear of changes for as long as it listens.
    pub(super) fn listen(&self, message: &Message) {
        let Some(id) = message.id() else { return };
        if self.listening.listens.borrow().len() >= LISTENS_MAX {
            return self.answer_with(&id, &too_many_calls());
        }
        let wants = |name: &str| {
            let span = scan::member_at(message.bytes(), ["params", "notifications", name]);
            span.is_some_and(|span| &message.bytes()[span.range()] == b"true")
        };
        let lists = [
            (ListKind::Tools, "toolsListChanged"),
            (ListKind::Prompts, "promptsListChanged"),
            (ListKind::Resources, "resourcesListChanged"),
        ];
        let lists: Vec<(ListKind, &str)> = lists.into_iter().filter(|(_, name)| wants(name)).collect();
        let mut uris = BTreeSet::new();
        let mut given = Vec::new();
        for uri in message.subscriptions().take(URIS_MAX) {
            let Some(uri) = scan::decode_string(&uri) else { continue };
            if let Some(place) = self.find_resource(&uri) {
                uris.insert(place);
                given.push(json_text(&uri));
            }
        }
        let mut granted: Vec<String> = lists.iter().map(|(_, name)| format!("\"{name}\":true")).collect();
        if !given.is_empty() {
            granted.push(format!("\"resourceSubscriptions\":[{}]", given.join(",")));
        }
        let servers: BTreeSet<usize> = uris.iter().map(|(server, _)| *server).collect();
        let lists = lists.into_iter().map(|(kind, _)| kind).collect();
        let params = format!("{{\"_meta\":{{\"{SUBSCRIPTION}\":{id}}},\"notifications\":{{{}}}}}", granted.join(","));
        let acknowledged = notification("notifications/subscriptions/acknowledged", &params);
        let number = self.listening.count.get() + 1;
        self.listening.count.set(number);
        let untold = Some(Untold { acknowledged, rest: Vec::new() });
        self.listening.listens.borrow_mut().push(Listen { number, id, lists, uris: uris.clone(), untold });
        // A server that nobody has asked yet tells nobody of changes.
        drop(self.all_legs(Era::Modern));
        if servers.is_empty() {
            return self.begin_listening(number);
        }
        let legs: Vec<_> = servers.into_iter().filter_map(|server| self.leg(server, Era::Modern).ok()).collect();
        legs.iter().for_each(|leg| leg.adjust_subscriptions());
        let me = self.rc();
        tokio::task::spawn_local(async move {
            all_know(&legs, &uris).await;
            me.begin_listening(number);
        });
    }

    /// Tells the client that it is listened for, unless it no longer listens, and what there was to hear since.
    fn begin_listening(&self, number: u64) {
        let untold = {
            let mut listens = self.listening.listens.borrow_mut();
            let listen = listens.iter_mut().find(|listen| listen.number == number);
            listen.and_then(|listen| listen.untold.take())
        };
        if let Some(Untold { acknowledged, rest }) = untold {
            self.say(acknowledged);
            rest.into_iter().for_each(|(sequence, message)| self.tell_of(sequence, None, message));
        }
    }

    /// The client listens no more. False if it did not.
    pub(super) fn stop_listening(&self, id: &Id) -> bool {
        let ended = {
            let mut listens = self.listening.listens.borrow_mut();
            let at = listens.iter().position(|listen| listen.id == *id);
            at.map(|at| listens.swap_remove(at))
        };
        if ended.is_some() {
            self.open_legs().iter().for_each(|leg| leg.adjust_subscriptions());
        }
        ended.is_some()
    }

    /// Ends what it listens to, because it leaves or the gateway ends.
    pub(crate) fn end_listening(&self) {
        for listen in std::mem::take(&mut *self.listening.listens.borrow_mut()) {
            if let Some(Untold { acknowledged, .. }) = listen.untold {
                self.say(acknowledged);
            }
            let result = format!("{{\"resultType\":\"complete\",\"_meta\":{{\"{SUBSCRIPTION}\":{}}}}}", listen.id);
            self.say(reply::answer_with_result(&listen.id, result.as_bytes()));
        }
    }

    /// Says that a list changed, in every way that it wants to hear of it.
    pub(super) fn say_changed(&self, kind: ListKind) {
        if self.sees_only_the_tool() {
            // Which never changes.
            return;
        }
        let method = format!("notifications/{}/list_changed", kind.capability());
        if self.is_open.get() && !self.has_no_handshake() {
            self.say(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}").into());
        }
        let kind = if kind == ListKind::Templates { ListKind::Resources } else { kind };
        let changed = |id: &Id| notification(&method, &format!("{{\"_meta\":{{\"{SUBSCRIPTION}\":{id}}}}}"));
        for message in self.listening.due(|listen| listen.lists.contains(&kind), 0, changed) {
            self.say(message);
        }
    }
}

/// The error that a server gave us, under a client's id.
fn error_for(id: &Id, answer: &Bytes) -> Bytes {
    mcp_wire::splice::with_id(answer, id)
}
