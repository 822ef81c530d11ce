//! What clients want to hear of without asking each time: resources that change, and lists.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use crate::router::{Found, ListKind};
use bytes::Bytes;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::{Id, Message, scan, splice};

use crate::catalog::listed::json_text;
use crate::client::{GatewayClient, too_many_calls};
use crate::subscriptions::SUBSCRIPTION;
use crate::subscriptions::updates::{Awaited, Untold};
use crate::upstream::UpstreamConnection;

/// Resources that one client may subscribe to, and its open requests to listen.
const URIS_MAX: usize = 1_000;
const LISTENS_MAX: usize = 64;

/// Time for servers to take a subscription before the client gets its acknowledgement.
const SERVERS_KNOW_WITHIN: Duration = Duration::from_secs(10);

/// What a client wants to hear of.
#[derive(Default)]
pub(crate) struct Listening {
    /// Resources, by server and the server's own name of them.
    pub(crate) uris: RefCell<BTreeSet<(usize, String)>>,
    /// Those that it asked for and was not answered about.
    pub(crate) awaited: RefCell<Vec<Awaited>>,
    /// Requests of the newest revision that last for as long as the client listens.
    pub(crate) listens: RefCell<Vec<Listen>>,
    /// How many of either there were; ids are used again.
    count: Cell<u64>,
}

pub(crate) struct Listen {
    number: u64,
    pub(crate) id: Id,
    pub(crate) lists: Vec<ListKind>,
    pub(crate) uris: BTreeSet<(usize, String)>,
    /// What the client is to hear once the servers know of it: that it is listened for, and then the rest.
    pub(crate) untold: Option<(Bytes, Untold)>,
}

/// Waits until servers know that `uris` are wanted, so that subscribers miss no change.
async fn all_know(connections: &[Rc<UpstreamConnection>], uris: &BTreeSet<(usize, String)>) {
    let known = async {
        for connection in connections {
            connection.knows(uris).await;
        }
    };
    if tokio::time::timeout(SERVERS_KNOW_WITHIN, known).await.is_err() {
        connections.iter().for_each(|connection| connection.is_taken_to_know(uris));
    }
}

pub(crate) fn notification(method: &str, params: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}").into()
}

impl Listening {
    fn next_number(&self) -> u64 {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }

    /// Whether `is_it` holds of a resource that it wants to hear of.
    pub(crate) fn any(&self, is_it: impl FnMut(&(usize, String)) -> bool) -> bool {
        let (listens, uris) = (self.listens.borrow(), self.uris.borrow());
        let awaited = self.awaited.borrow();
        let all = uris.iter().chain(listens.iter().flat_map(|listen| &listen.uris));
        all.chain(awaited.iter().map(|awaited| &awaited.place)).any(is_it)
    }

    /// Resources that it wants to hear of or has asked for, apart from those of its listen requests.
    fn of_legacy(&self) -> usize {
        self.uris.borrow().len() + self.awaited.borrow().len()
    }
}

impl GatewayClient {
    /// The resources of a server that it wants to hear of.
    pub(crate) fn wanted_of(&self, server: usize) -> Vec<String> {
        let mut wanted = Vec::new();
        self.listening.any(|(at, uri)| {
            wanted.extend((*at == server).then(|| uri.clone()));
            false
        });
        wanted
    }

    /// A client of the older revisions wants to hear of a resource, or no longer.
    pub(crate) fn subscribe(&self, message: Message, method: &str, _sequence: u64) {
        let Some(uri) = message.uri() else {
            return self.refuse(&message, &Refusal::BadParams { what: "params.uri is missing".into() });
        };
        let Some((server, original)) = self.find_resource(&uri) else {
            let id = message.id().unwrap_or(Id::Other("null".into()));
            return self.say(reply::unknown(&id, "resources/read", &uri));
        };
        let connection = match self.connection(server, Era::Legacy) {
            Ok(connection) => connection,
            Err(refusal) => return self.refuse(&message, &refusal),
        };
        let Some(id) = message.id() else { return };
        let (me, place, ends) = (self.rc(), (server, original), method == "resources/unsubscribe");
        self.own.borrow_mut().push(id.clone());
        tokio::task::spawn_local(async move {
            if !connection.opened().await {
                if me.is_still_wanted(&id) {
                    me.answer_with(&id, &connection.refusal());
                }
            } else if ends {
                me.unsubscribe_from(&connection, &place);
                if me.is_still_wanted(&id) {
                    me.say(reply::answer_with_result(&id, b"{}"));
                }
            } else {
                me.subscribe_to(&connection, place, id).await;
            }
        });
    }

    fn unsubscribe_from(&self, connection: &UpstreamConnection, place: &(usize, String)) {
        self.listening.uris.borrow_mut().remove(place);
        self.listening.awaited.borrow_mut().retain(|awaited| awaited.place != *place);
        connection.adjust_subscriptions();
    }

    /// Has the server tell of a resource, unless it does, and answers the client. Changes before that follow the answer.
    async fn subscribe_to(&self, connection: &UpstreamConnection, place: (usize, String), id: Id) {
        if self.listening.of_legacy() >= URIS_MAX {
            if self.is_still_wanted(&id) {
                self.answer_with(&id, &too_many_calls());
            }
            return;
        }
        let number = self.listening.next_number();
        let uri = place.1.clone();
        self.listening.awaited.borrow_mut().push(Awaited { number, place, untold: Untold::default() });
        connection.subscriptions.forget_refused(&uri);
        connection.adjust_subscriptions();
        let told = match connection.era.get() {
            Era::Legacy => connection.tells_of(&uri).await,
            Era::Modern => {
                all_know(&[connection.rc()], &BTreeSet::from([(connection.server.index, uri)])).await;
                Ok(())
            }
        };
        let awaited = {
            let mut awaited = self.listening.awaited.borrow_mut();
            let at = awaited.iter().position(|awaited| awaited.number == number);
            at.map(|at| awaited.remove(at))
        };
        let is_wanted = self.is_still_wanted(&id);
        let subscribed = awaited.filter(|_| is_wanted && told.is_ok());
        if let Some(Awaited { place, .. }) = &subscribed {
            self.listening.uris.borrow_mut().insert(place.clone());
        }
        connection.adjust_subscriptions();
        if is_wanted {
            self.say(match &told {
                Ok(()) => reply::answer_with_result(&id, b"{}"),
                Err(error) => splice::with_id(error, &id),
            });
        }
        if let Some(Awaited { untold, .. }) = subscribed {
            self.tell_rest(untold);
        }
    }

    fn tell_rest(&self, untold: Untold) {
        untold.into_iter().for_each(|(sequence, message)| self.tell_of(sequence, None, message));
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
    pub(crate) fn listen(&self, message: &Message) {
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
        let number = self.listening.next_number();
        let untold = Some((acknowledged, Untold::default()));
        self.listening.listens.borrow_mut().push(Listen { number, id, lists, uris: uris.clone(), untold });
        // A server without a request so far reports no changes.
        drop(self.all_legs(Era::Modern));
        if servers.is_empty() {
            return self.begin_listening(number);
        }
        let connections: Vec<_> =
            servers.into_iter().filter_map(|server| self.connection(server, Era::Modern).ok()).collect();
        connections.iter().for_each(|connection| connection.adjust_subscriptions());
        let me = self.rc();
        tokio::task::spawn_local(async move {
            all_know(&connections, &uris).await;
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
        if let Some((acknowledged, rest)) = untold {
            self.say(acknowledged);
            self.tell_rest(rest);
        }
    }

    /// The client listens no more. False if it did not.
    pub(crate) fn stop_listening(&self, id: &Id) -> bool {
        let ended = {
            let mut listens = self.listening.listens.borrow_mut();
            let at = listens.iter().position(|listen| listen.id == *id);
            at.map(|at| listens.swap_remove(at))
        };
        if ended.is_some() {
            self.open_connections().iter().for_each(|connection| connection.adjust_subscriptions());
        }
        ended.is_some()
    }

    /// Ends what it listens to, because it leaves or the gateway ends.
    pub(crate) fn end_listening(&self) {
        for listen in std::mem::take(&mut *self.listening.listens.borrow_mut()) {
            if let Some((acknowledged, _)) = listen.untold {
                self.say(acknowledged);
            }
            let result = format!("{{\"resultType\":\"complete\",\"_meta\":{{\"{SUBSCRIPTION}\":{}}}}}", listen.id);
            self.say(reply::answer_with_result(&listen.id, result.as_bytes()));
        }
    }

    /// Says that a list changed, in every way that it wants to hear of it.
    pub(crate) fn say_changed(&self, kind: ListKind) {
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
