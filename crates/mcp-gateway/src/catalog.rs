//! Lists of all servers as one: in the order of the servers and of what each lists, cut into pages.

pub(crate) mod listed;

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use crate::router::cursor::{self, Digest};
use crate::router::merge::{self, Listing, Missing};
use crate::router::rewrite::Item;
use crate::router::{Found, ListKind, Namespace};
use bytes::Bytes;
use mcp_proxy_tool::Type;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::{Id, Message, scan};
use tokio::time::{Instant, timeout_at};

use crate::catalog::listed::{Read, Unread, for_clients_of};
use crate::client::GatewayClient;
use crate::upstream::UpstreamConnection;

/// Merged lists kept as they were sent.
const KEPT_MAX: usize = 32;

/// Answers that were put together before.
#[derive(Default)]
pub(crate) struct Merged(VecDeque<(Key, Bytes)>);

/// What an answer depends on.
#[derive(PartialEq, Eq)]
struct Key {
    kind: ListKind,
    era: Era,
    principal: Rc<str>,
    lists: Vec<u64>,
}

impl Merged {
    fn get(&self, key: &Key) -> Option<Bytes> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, result)| result.clone())
    }

    fn keep(&mut self, key: Key, result: Bytes) {
        if self.0.len() >= KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back((key, result));
    }
}

/// Age of a list that suffices for a request about part of it, unless its server says otherwise.
const RECENT: Duration = Duration::from_secs(10);

/// The list of one server, or why there is none.
pub(crate) struct PartOf {
    pub connection: Rc<UpstreamConnection>,
    pub read: Result<Rc<Read>, Unread>,
}

impl GatewayClient {
    /// Answers a request for a list.
    pub(crate) fn list(&self, message: &Message, kind: ListKind, era: Era) {
        let Some(id) = message.id() else { return };
        let wanted = match Wanted::of(message) {
            Ok(wanted) => wanted,
            Err(refusal) => return self.answer_with(&id, &refusal),
        };
        if self.sees_only_the_tool() {
            return self.say_list(&id, kind, era, &wanted, &[]);
        }
        let connections = self.all_legs(era);
        let is_complete = connections.len() == self.servers().count();
        if let Some(parts) =
            known_parts(&connections, |connection| connection.list(kind).fresh()).filter(|_| is_complete)
        {
            return self.say_list(&id, kind, era, &wanted, &parts);
        }
        self.own.borrow_mut().push(id.clone());
        let me = self.rc();
        tokio::task::spawn_local(async move {
            let parts = me.gather(kind, connections).await;
            if me.is_still_wanted(&id) {
                me.say_list(&id, kind, era, &wanted, &parts);
            }
        });
    }

    /// The list of every server, or of `only` one, as it was read a moment ago or is read now.
    pub(crate) async fn recent_or_read(&self, kind: ListKind, era: Era, only: Option<usize>) -> Vec<PartOf> {
        let mut connections = self.all_legs(era);
        connections.retain(|connection| only.is_none_or(|only| connection.server.index == only));
        match known_parts(&connections, |connection| connection.recent(kind, RECENT)) {
            Some(parts) => parts,
            None => self.gather(kind, connections).await,
        }
    }

    /// Whether rules keep something from clients, so that each has lists of its own.
    pub(crate) fn sees_a_part(&self) -> bool {
        self.gateway.runtime.look(|pipeline| pipeline.governance.rules().is_some_and(|rules| rules.hide_denied))
    }

    /// Whether rules keep an item from this client.
    fn is_hidden(&self, connection: &UpstreamConnection, kind: ListKind, item: &Item) -> bool {
        let method = match kind {
            ListKind::Tools => "tools/call",
            ListKind::Prompts => "prompts/get",
            ListKind::Resources => "resources/read",
            ListKind::Templates => return false,
        };
        let Some(link) = connection.link().filter(|_| self.sees_a_part()) else { return false };
        let speaker = self.speaker();
        let conversation = link.conversation.borrow();
        self.gateway.runtime.look(|pipeline| pipeline.governance.hides(&conversation, method, &item.original, &speaker))
    }

    /// Reads all lists at the same time; those that do not come in time are left out.
    async fn gather(&self, kind: ListKind, connections: Vec<Rc<UpstreamConnection>>) -> Vec<PartOf> {
        let until = Instant::now() + self.gateway.settings.list_wait;
        let worth = self.gateway.settings.list_wait;
        let (stuck, connections): (Vec<_>, Vec<_>) =
            connections.into_iter().partition(|connection| connection.list(kind).is_stuck(worth));
        let readers: Vec<_> = connections
            .iter()
            .map(|connection| {
                let connection = Rc::clone(connection);
                // Whoever asks next finds what came too late for this one.
                tokio::task::spawn_local(async move { connection.fetch(kind).await })
            })
            .collect();
        let mut parts = Vec::new();
        for (connection, reader) in connections.into_iter().zip(readers) {
            if !connection.is_ready() && !connection.is_worth_waiting_for() {
                let read = Err(Unread::gone(&connection.refusal()));
                parts.push(PartOf { connection, read });
                continue;
            }
            let read = match timeout_at(until, reader).await {
                Ok(Ok(read)) => read,
                Ok(Err(_)) => Err(Unread::of("it could not be read")),
                Err(_) => Err(Unread::late()),
            };
            parts.push(PartOf { connection, read });
        }
        let missing = |connection| PartOf { connection, read: Err(Unread::of("it has not answered for a while")) };
        parts.extend(stuck.into_iter().map(missing));
        parts.sort_by_key(|part| part.connection.server.index);
        parts
    }

    fn say_list(&self, id: &Id, kind: ListKind, era: Era, wanted: &Wanted, parts: &[PartOf]) {
        let principal = self.principal();
        let absent = if self.sees_only_the_tool() { Vec::new() } else { self.absent(parts) };
        let lists: Vec<u64> = parts.iter().filter_map(|part| part.read.as_ref().ok()).map(|read| read.number).collect();
        let is_whole = absent.is_empty() && wanted.is_plain() && !self.sees_a_part();
        let key = Key { kind, era, principal: Rc::from(&*principal.name), lists };
        if is_whole && let Some(result) = self.gateway.merged.borrow().get(&key) {
            return self.say(reply::answer_with_result(id, &result));
        }
        let own = self.own_tool(kind, era);
        let mut items: Vec<&Item> = own.iter().collect();
        for item in self.visible(kind, parts) {
            match own.as_ref().filter(|own| own.given == item.given) {
                None => items.push(item),
                Some(own) => {
                    let what =
                        format!("a server's tool is called `{0}` too; it is reached through `{0}` only", own.given);
                    self.gateway.runtime.tell_once(&what);
                }
            }
        }
        let digest = Digest::of(items.iter().map(|item| &*item.given));
        let page_size =
            wanted.limit.map_or(self.gateway.settings.page_size, |limit| limit.min(self.gateway.settings.page_size));
        let Ok(page) = cursor::cut(kind, &items, |item| &item.given, &digest, wanted.cursor.as_deref(), page_size)
        else {
            return self.answer_with(id, &Refusal::BadCursor);
        };
        for (server, unread) in &absent {
            self.note(&format!("the server \"{server}\" is missing from {}: {}", kind.method(), unread.why));
        }
        let told = |(server, unread): &(String, Unread)| Missing { server: server.clone(), reason: unread.told.into() };
        let absent: Vec<Missing> = absent.iter().map(told).collect();
        let varies = self.gateway.runtime.is_governed() || self.gateway.entrance.asks_for_token();
        let (ttl_ms, is_public) = hints(parts, &absent, varies);
        let (own, next) = (self.gateway.own(), page.next.as_deref());
        let listing = Listing { kind, next, absent: &absent, cut: &cut(parts), era, ttl_ms, is_public, own: &own };
        let items: Vec<Bytes> = match kind {
            ListKind::Tools => {
                let era = era_of(era, parts);
                items[page.items].iter().map(|item| for_clients_of(era, Type::Tool, &item.bytes)).collect()
            }
            _ => items[page.items].iter().map(|item| item.bytes.clone()).collect(),
        };
        let result = merge::list(&items, &listing);
        if is_whole {
            self.gateway.merged.borrow_mut().keep(key, result.clone());
        }
        self.say(reply::answer_with_result(id, &result));
    }

    /// What of these lists the client may see.
    pub(crate) fn visible<'a>(&self, kind: ListKind, parts: &'a [PartOf]) -> Vec<&'a Item> {
        let principal = self.principal();
        let mut items: Vec<&Item> = Vec::new();
        for part in parts {
            let Ok(read) = &part.read else { continue };
            let server = &part.connection.server;
            let is_given = |tool: &str| principal.may_use_tool(server.id(), tool) && server.gives_out(tool);
            let may_see = |item: &&Item| kind != ListKind::Tools || is_given(&item.original);
            items
                .extend(read.items.iter().filter(may_see).filter(|item| !self.is_hidden(&part.connection, kind, item)));
        }
        self.leave_out_collisions(kind, &mut items);
        items
    }

    /// The servers that are missing from a list, and why.
    fn absent(&self, parts: &[PartOf]) -> Vec<(String, Unread)> {
        let mut absent = Vec::new();
        for server in self.servers() {
            let part = parts.iter().find(|part| part.connection.server.index == server.index);
            let unread = match part.map(|part| &part.read) {
                Some(Ok(_)) => continue,
                Some(Err(unread)) => unread.clone(),
                None => Unread::gone(&server.unavailable()),
            };
            absent.push((server.id().to_owned(), unread));
        }
        absent
    }

    /// What two servers claim is nobody's.
    fn leave_out_collisions(&self, kind: ListKind, items: &mut Vec<&Item>) {
        let names = self.gateway.names.borrow();
        let is_address = matches!(kind, ListKind::Resources | ListKind::Templates);
        if is_address && names.servers().iter().all(Namespace::is_prefixed) {
            // Their addresses hold their server.
            return;
        }
        items.retain(|item| {
            let found = match kind {
                ListKind::Tools => names.tool(&item.given),
                ListKind::Prompts => names.prompt(&item.given),
                ListKind::Resources | ListKind::Templates => names.uri(&item.given),
            };
            !matches!(found, Found::Collides { .. })
        });
    }
}

/// The list of each of these, if all are `known`.
fn known_parts(
    connections: &[Rc<UpstreamConnection>],
    known: impl Fn(&UpstreamConnection) -> Option<Rc<Read>>,
) -> Option<Vec<PartOf>> {
    let part = |connection: &Rc<UpstreamConnection>| {
        let read = known(connection).filter(|_| connection.is_ready())?;
        Some(PartOf { connection: Rc::clone(connection), read: Ok(read) })
    };
    connections.iter().map(part).collect()
}

/// The era that items of these lists are to be made fit for: lists of legacy servers fit all clients.
pub(crate) fn era_of(client: Era, parts: &[PartOf]) -> Era {
    let is_modern = |part: &PartOf| part.connection.era.get() == Era::Modern;
    if parts.iter().any(is_modern) { client } else { Era::Modern }
}

/// For how long a merged list is right, and whether it is so for everybody.
fn hints(parts: &[PartOf], absent: &[Missing], varies: bool) -> (u64, bool) {
    let reads: Vec<&Rc<Read>> = parts.iter().filter_map(|part| part.read.as_ref().ok()).collect();
    let ttl = reads.iter().map(|read| read.ttl.unwrap_or_default()).min().unwrap_or(Duration::ZERO);
    let ttl = if absent.is_empty() { ttl } else { Duration::ZERO };
    (ttl.as_millis() as u64, !varies && !reads.is_empty() && reads.iter().all(|read| read.is_public))
}

/// The servers of which not all items are listed, and why. What is left out may be what a client must not know of, so it
/// is not named.
fn cut(parts: &[PartOf]) -> Vec<Missing> {
    let cut = |part: &PartOf| {
        let read = part.read.as_ref().ok()?;
        let left_out = Some(read.faults.left_out).filter(|count| *count > 0);
        let left_out = left_out.map(|count| format!("{count} left out, which no client could read"));
        let reasons: Vec<String> = [read.cut.clone(), left_out].into_iter().flatten().collect();
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "))?;
        Some(Missing { server: part.connection.server.id().to_owned(), reason })
    };
    parts.iter().filter_map(cut).collect()
}

/// The part of a list that a client asks for.
struct Wanted {
    cursor: Option<String>,
    /// Items on its page; never more than ours have.
    limit: Option<usize>,
}

impl Wanted {
    fn of(message: &Message) -> Result<Self, Refusal> {
        let said = |name| {
            let span = scan::member_at(message.bytes(), ["params", name])?;
            Some(&message.bytes()[span.range()]).filter(|json| *json != b"null")
        };
        let cursor = said("cursor").map(|json| scan::decode_string(json).ok_or(Refusal::BadCursor)).transpose()?;
        let limit = said("limit").map(|json| {
            let limit = std::str::from_utf8(json).ok().and_then(|text| text.parse().ok());
            limit
                .filter(|limit| *limit > 0)
                .ok_or_else(|| Refusal::BadParams { what: "`limit` is not a whole number from 1 on".into() })
        });
        Ok(Self { cursor: cursor.map(|cursor| cursor.into_owned()), limit: limit.transpose()? })
    }

    /// Whether it asks for the list as everybody gets it.
    fn is_plain(&self) -> bool {
        self.cursor.is_none() && self.limit.is_none()
    }
}
