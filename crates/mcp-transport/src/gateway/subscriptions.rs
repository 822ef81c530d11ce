//! What clients want to hear of without asking each time: resources that change, and lists. Each server is
//! asked once for all that its clients want.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use mcp_engine::router::{Found, ListKind};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::{Id, Kind, Message, scan};

use super::leg::Leg;
use super::listed::json_text;
use super::visitor::{Visitor, too_many_calls};

/// Resources that one client may want to hear of, and times that it may want to.
const URIS_MAX: usize = 1_000;
const LISTENS_MAX: usize = 64;

/// Before a server is asked again to tell of changes, if it ended that.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// The member of `_meta` that says which listen request something belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a server was asked to tell.
#[derive(Default)]
pub struct Subscriptions {
    active: RefCell<BTreeSet<String>>,
    /// Our request to a server of the newest revision that it tells us of changes.
    listening: Cell<Option<i64>>,
}

/// What a client wants to hear of.
#[derive(Default)]
pub struct Listening {
    /// Resources, by server and the server's own name of them.
    uris: RefCell<BTreeSet<(usize, String)>>,
    /// Requests of the newest revision that last for as long as the client listens.
    listens: RefCell<Vec<Listen>>,
}

struct Listen {
    id: Id,
    lists: Vec<ListKind>,
    uris: BTreeSet<(usize, String)>,
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
        self.adjust_level();
        if self.era.get() == Era::Modern {
            return self.listen_for(self.wanted());
        }
        self.adjust_subscriptions();
    }

    /// Asks the server for what is wanted now, and no more for what is not.
    pub(super) fn adjust_subscriptions(&self) {
        if !self.is_ready() {
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
        let ask = |method: &str, uri: &String| drop(self.ask(method, Some(&format!("{{\"uri\":{}}}", json_text(uri)))));
        wanted.difference(&active).for_each(|uri| ask("resources/subscribe", uri));
        active.difference(&wanted).for_each(|uri| ask("resources/unsubscribe", uri));
        *self.subscriptions.active.borrow_mut() = wanted;
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
        if !filter.is_empty() {
            let params = format!("{{\"notifications\":{{{}}}}}", filter.join(","));
            let (id, ended) = self.ask_as("subscriptions/listen", Some(&params), Era::Modern);
            self.keep_open(id);
            self.subscriptions.listening.set(Some(id));
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
        if self.subscriptions.listening.get() != Some(ended) || !self.is_ready() {
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
        !self.wanted().is_empty()
    }

    pub(super) fn unsubscribe_all(&self, _visitor: u32) {
        self.adjust_subscriptions();
        self.adjust_level();
    }

    /// A resource changed: whoever wants to is told.
    pub(super) fn hear_updated(&self, message: &Message, sequence: u64) {
        let Some(uri) = message.uri() else { return };
        let place = (self.server.index, uri.into_owned());
        let given = self.namespace().uri(&place.1);
        for visitor in self.attached() {
            if visitor.listening.uris.borrow().contains(&place) {
                let plain = mcp_wire::splice::without_member(message.bytes(), &["params", "_meta", SUBSCRIPTION]);
                visitor.tell_of(
                    self,
                    sequence,
                    None,
                    mcp_engine::router::rewrite::notification(self.namespace(), plain),
                );
            }
            let listens = visitor.listening.listens.borrow();
            let ids: Vec<Id> = listens.iter().filter(|it| it.uris.contains(&place)).map(|it| it.id.clone()).collect();
            drop(listens);
            for id in ids {
                let params = format!("{{\"_meta\":{{\"{SUBSCRIPTION}\":{id}}},\"uri\":{}}}", json_text(&given));
                visitor.tell_of(self, sequence, None, notification("notifications/resources/updated", &params));
            }
        }
    }
}

pub(super) fn notification(method: &str, params: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}").into()
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
        self.listening.uris.borrow_mut().insert(place);
        leg.adjust_subscriptions();
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
        self.listening.listens.borrow_mut().push(Listen { id: id.clone(), lists, uris });
        let params = format!("{{\"_meta\":{{\"{SUBSCRIPTION}\":{id}}},\"notifications\":{{{}}}}}", granted.join(","));
        self.say(notification("notifications/subscriptions/acknowledged", &params));
        for server in servers {
            if let Ok(leg) = self.leg(server, Era::Modern) {
                leg.adjust_subscriptions();
            }
        }
        // A server that nobody has asked yet tells nobody of changes.
        drop(self.all_legs(Era::Modern));
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
            let result = format!("{{\"resultType\":\"complete\",\"_meta\":{{\"{SUBSCRIPTION}\":{}}}}}", listen.id);
            self.say(reply::answer_with_result(&listen.id, result.as_bytes()));
        }
    }

    /// The listen requests that want to hear of changes of a list.
    pub(super) fn listens_to(&self, kind: ListKind) -> Vec<Id> {
        let kind = if kind == ListKind::Templates { ListKind::Resources } else { kind };
        let listens = self.listening.listens.borrow();
        listens.iter().filter(|listen| listen.lists.contains(&kind)).map(|listen| listen.id.clone()).collect()
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
        for id in self.listens_to(kind) {
            self.say(notification(&method, &format!("{{\"_meta\":{{\"{SUBSCRIPTION}\":{id}}}}}")));
        }
    }
}

/// The error that a server gave us, under a client's id.
fn error_for(id: &Id, answer: &Bytes) -> Bytes {
    mcp_wire::splice::with_id(answer, id)
}
