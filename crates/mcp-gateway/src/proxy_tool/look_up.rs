//! What there is, as the tool tells it: found in the same lists that clients are shown, so what one of them may not
//! see is not found here either.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;

use crate::router::rewrite::Item;
use crate::router::{Found, ListKind, meta};
use bytes::Bytes;
use foldhash::quality::RandomState;
use mcp_proxy_tool::Type;
use mcp_proxy_tool::arguments::{Mistake, Operation};
use mcp_proxy_tool::index::Index;
use mcp_proxy_tool::select::{Filter, Page, Paging};
use mcp_proxy_tool::shape::{self, Came, Dialect};
use mcp_wire::revision::Era;
use mcp_wire::{Id, reply, scan};

use super::Outer;
use crate::catalog::listed::for_clients_of;
use crate::catalog::{PartOf, era_of};
use crate::client::GatewayClient;

/// Indexes over lists: one for each type, and some for clients that see other servers.
const INDEXES_MAX: usize = 8;

/// Indexes over lists, by what stands in those.
#[derive(Default)]
pub(crate) struct Indexes {
    kept: VecDeque<(u128, Rc<Index>)>,
    seeds: [RandomState; 2],
}

impl Indexes {
    /// Two hashes that nobody outside knows the seeds of, of everything that is to be found.
    fn key(&self, visible: &[&Item]) -> u128 {
        let hash = |seed: &RandomState| {
            let mut hasher = seed.build_hasher();
            visible.iter().for_each(|item| item.bytes.hash(&mut hasher));
            u128::from(hasher.finish())
        };
        hash(&self.seeds[0]) << 64 | hash(&self.seeds[1])
    }

    fn get(&self, key: u128) -> Option<Rc<Index>> {
        self.kept.iter().find(|(known, _)| *known == key).map(|(_, index)| Rc::clone(index))
    }

    fn keep(&mut self, key: u128, index: Rc<Index>) {
        if self.kept.len() >= INDEXES_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((key, index));
    }
}

/// The lists of one type of capability, each with what every server has of it.
type Lists = Vec<(ListKind, Vec<PartOf>)>;

impl GatewayClient {
    /// Answers `list` or `info`.
    pub(super) fn look_up(&self, outer: &Rc<Outer>, operation: Operation) {
        self.own.borrow_mut().push(outer.id.clone());
        let (me, outer) = (self.rc(), Rc::clone(outer));
        tokio::task::spawn_local(async move {
            let came = me.looked_up(&operation, outer.era).await;
            if !me.is_still_wanted(&outer.id) {
                return;
            }
            match came {
                Came::Result(result) => me.say_of_tool(&outer, &result),
                Came::Error(error) => me.say(reply::answer_with_error(&outer.id, &error)),
            }
        });
    }

    /// Reads what tools there are before anybody asks, and makes ready to search them: an agent begins with that.
    pub(crate) fn prepare_tool(&self, era: Era) {
        if self.gateway.settings.proxy_tool.is_none() {
            return;
        }
        let me = self.rc();
        tokio::task::spawn_local(async move {
            let lists = me.lists_of(Type::Tool, era, None).await;
            me.index_of(&me.visible_in(&lists)).await;
        });
    }

    /// What there is to say to `list` or `info`.
    pub(crate) async fn looked_up(&self, operation: &Operation, era: Era) -> Came {
        match operation {
            Operation::List { kind, paging, filter } => self.listed(*kind, *paging, filter, era).await,
            Operation::Info { kind, path } => {
                let lists = self.lists_of(*kind, era, self.owner_of(*kind, path)).await;
                self.described(*kind, path, &lists, era)
            }
            // It is no question of what there is.
            Operation::Call(_) => Came::Error(reply::internal_error()),
        }
    }

    /// The server that a name tells, so that nobody waits for the others.
    fn owner_of(&self, kind: Type, path: &str) -> Option<usize> {
        let names = self.gateway.names.borrow();
        let found = match kind {
            Type::Tool => names.tool(path),
            Type::Prompt => names.prompt(path),
            Type::Resource => return None,
        };
        match found {
            Found::Is { server, .. } | Found::Ask { server } => Some(server),
            Found::Nowhere { .. } | Found::Collides { .. } => None,
        }
    }

    /// The lists of all servers, or of `only` one.
    async fn lists_of(&self, kind: Type, era: Era, only: Option<usize>) -> Lists {
        let read = |kind| async move { (kind, self.recent_or_read(kind, era, only).await) };
        match kind {
            Type::Tool => vec![read(ListKind::Tools).await],
            Type::Prompt => vec![read(ListKind::Prompts).await],
            Type::Resource => {
                let (resources, templates) = tokio::join!(read(ListKind::Resources), read(ListKind::Templates));
                vec![resources, templates]
            }
        }
    }

    fn visible_in<'a>(&self, lists: &'a Lists) -> Vec<&'a Item> {
        lists.iter().flat_map(|(kind, parts)| self.visible(*kind, parts)).collect()
    }

    async fn listed(&self, kind: Type, paging: Paging, filter: &Filter, era: Era) -> Came {
        let server = filter.server.as_ref().map(|id| self.servers().find(|known| known.id() == id).map(|it| it.index));
        if let (Some(None), Some(id)) = (&server, &filter.server) {
            let ids: Vec<&str> = self.servers().map(|server| server.id()).collect();
            let text = format!("there is no server {id:?}; `filter.server` is one of {}", ids.join(", "));
            return Came::Result(shape::mistake(&Mistake(text)));
        }
        let mut lists = self.lists_of(kind, era, server.flatten()).await;
        if let Some(prefix) = &filter.server_prefix {
            lists.iter_mut().for_each(|(_, parts)| parts.retain(|part| begins_with(part, prefix)));
        }
        let visible = self.visible_in(&lists);
        let mut chosen: Vec<&Item> = match &filter.query {
            Some(query) => {
                let ranked = self.index_of(&visible).await.search(query);
                ranked.into_iter().filter_map(|place| visible.get(place).copied()).collect()
            }
            None => visible,
        };
        chosen.retain(|item| filter.matches(&item.bytes));
        let (range, page) = paging.cut(chosen.len());
        let is_filtered = *filter != Filter::default();
        let page = page.or_else(|| is_filtered.then_some(Page { total: chosen.len(), offset: 0, limit: None }));
        let era = readable_by(era, &lists);
        let items: Vec<Bytes> = chosen[range].iter().map(|item| for_clients_of(era, kind, &item.bytes)).collect();
        let result = shape::list(kind, items.iter().map(|item| &item[..]), page, self.dialect());
        let is_meant = |id: &str| filter.server_prefix.as_ref().is_none_or(|prefix| id.starts_with(prefix.as_str()));
        let mut missing = self.missing(&lists, server.flatten());
        missing.retain(|id| is_meant(id));
        Came::Result(with_absent(result, &missing))
    }

    /// The servers of which nothing is in these lists, and something might be.
    fn missing(&self, lists: &Lists, only: Option<usize>) -> Vec<String> {
        let is_read = |index| {
            let has = |parts: &Vec<PartOf>| {
                parts.iter().any(|part| part.connection.server.index == index && part.read.is_ok())
            };
            lists.iter().all(|(_, parts)| has(parts))
        };
        let asked = self.servers().filter(|server| only.is_none_or(|only| server.index == only));
        asked.filter(|server| !is_read(server.index)).map(|server| server.id().to_owned()).collect()
    }

    /// The index over what a client may see, and over nothing else: what it may not must not show in how the rest is
    /// ranked. Made elsewhere if there is none yet, since a long list takes its time.
    async fn index_of(&self, visible: &[&Item]) -> Rc<Index> {
        let key = self.gateway.indexes.borrow().key(visible);
        if let Some(index) = self.gateway.indexes.borrow().get(key) {
            return index;
        }
        let items: Vec<Bytes> = visible.iter().map(|item| item.bytes.clone()).collect();
        let made = tokio::task::spawn_blocking(move || Index::build(items.iter().map(|item| &item[..]))).await;
        let index = Rc::new(made.unwrap_or_else(|_| Index::build([])));
        self.gateway.indexes.borrow_mut().keep(key, Rc::clone(&index));
        index
    }

    /// How the client wants to be told what things are.
    fn dialect(&self) -> Dialect {
        let set = self.gateway.settings.proxy_tool.as_ref().map(|tool| tool.dialect).unwrap_or_default();
        let facts = self.facts();
        let name =
            scan::member_at(&facts.info, ["name"]).and_then(|span| scan::decode_string(&facts.info[span.range()]));
        match (set, name) {
            (Dialect::Extension, Some(name)) => Dialect::of_client(&name),
            (set, _) => set,
        }
    }

    fn described(&self, kind: Type, path: &str, lists: &Lists, era: Era) -> Came {
        let era = readable_by(era, lists);
        let told = |item: &Item| {
            let item = for_clients_of(era, kind, &item.bytes);
            Came::Result(shape::info(kind, path, &item, self.dialect()))
        };
        let visible = self.visible_in(lists);
        if let Some(item) = visible.iter().find(|item| item.given == path) {
            return told(item);
        }
        // Resources are called by their addresses, but have names, too.
        let named = visible.iter().filter(|_| kind == Type::Resource).filter(|item| is_called(&item.bytes, path));
        match named.collect::<Vec<_>>()[..] {
            [item] => told(item),
            [] => Came::Error(unknown(kind, path)),
            _ => {
                let text = format!("several resources are called {path:?}; give the URI of one as `path`");
                Came::Result(shape::mistake(&Mistake(text)))
            }
        }
    }
}

/// The same with the servers that are not in it. Why they are not is for whoever runs them.
fn with_absent(result: Bytes, missing: &[String]) -> Bytes {
    if missing.is_empty() {
        return result;
    }
    let absent: Vec<_> = missing.iter().map(|server| serde_json::json!({ "server": server })).collect();
    shape::with_meta(&result, meta::ABSENT, serde_json::Value::from(absent).to_string().as_bytes())
}

fn readable_by(client: Era, lists: &Lists) -> Era {
    lists.iter().map(|(_, parts)| era_of(client, parts)).find(|era| *era == client).unwrap_or(Era::Modern)
}

/// Whether a part is of a server whose id begins so.
fn begins_with(part: &PartOf, prefix: &str) -> bool {
    part.connection.server.id().starts_with(prefix)
}

fn is_called(item: &[u8], name: &str) -> bool {
    let known = scan::member_at(item, ["name"]).and_then(|span| scan::decode_string(&item[span.range()]));
    known.is_some_and(|known| known == name)
}

/// The error of a use of something that is not there.
fn unknown(kind: Type, path: &str) -> Bytes {
    let answer = reply::unknown(&Id::Integer(0), kind.method(), path);
    let error = scan::member_at(&answer, ["error"]).map(|span| answer.slice(span.range()));
    error.unwrap_or_else(reply::internal_error)
}
