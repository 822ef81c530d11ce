//! What is said in the name of all servers: who they are together, and merged lists.

mod capabilities;
mod instructions;

use bytes::Bytes;
use mcp_wire::{Era, Id, Revision, reply};

use super::place::{composed, quoted};
use super::{ListKind, meta};

pub use capabilities::{OwnTool, capabilities};
pub use instructions::instructions;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A server that has introduced itself.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub id: &'a str,
    /// Its whole answer to `initialize` or `server/discover`.
    pub answer: &'a Bytes,
}

/// Who speaks for all of them.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    pub name: &'a str,
    pub title: Option<&'a str>,
    pub version: &'a str,
    pub instructions: Option<&'a str>,
    pub tool: OwnTool,
}

impl Own<'_> {
    /// What models are told. Who sees one tool instead of everything is not told of everything either.
    fn instructions(&self, parts: &[Part<'_>]) -> Option<String> {
        match self.tool {
            OwnTool::Instead => instructions(&[], self.instructions),
            OwnTool::None | OwnTool::Beside => instructions(parts, self.instructions),
        }
    }

    /// As the protocol describes software.
    pub fn info(&self) -> Bytes {
        let mut members = vec![("name", quoted(self.name))];
        members.extend(self.title.map(|title| ("title", quoted(title))));
        members.push(("version", quoted(self.version)));
        composed(&members)
    }
}

/// A server that is missing from a merged list, in whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub server: String,
    /// In a few words for the client; no addresses, commands or secrets.
    pub reason: String,
}

/// The answer to `initialize`. The client gets the revision it asked for if that has a handshake, else the
/// newest that has. `missing` servers are not known yet; for their sake everything common is declared.
pub fn initialize(id: &Id, requested: &str, parts: &[Part<'_>], missing: usize, own: &Own<'_>) -> Bytes {
    let revision = Revision::parse(requested.as_bytes()).filter(|revision| revision.era() == Era::Legacy);
    let mut result = vec![
        ("protocolVersion", quoted(revision.unwrap_or(Revision::NEWEST_LEGACY).as_str())),
        ("capabilities", capabilities(parts, missing, Era::Legacy, own.tool)),
        ("serverInfo", own.info()),
    ];
    result.extend(own.instructions(parts).map(|text| ("instructions", quoted(&text))));
    reply::answer_with_result(id, &composed(&result))
}

/// The answer to `server/discover`. It may change with every server that comes or goes, so nobody is to keep
/// it.
pub fn discover(id: &Id, parts: &[Part<'_>], missing: usize, own: &Own<'_>) -> Bytes {
    let modern = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Modern);
    let versions: Vec<_> = modern.map(Revision::as_str).collect();
    let mut result = vec![
        ("resultType", quoted("complete")),
        ("supportedVersions", serde_json::json!(versions).to_string().into()),
        ("capabilities", capabilities(parts, missing, Era::Modern, own.tool)),
    ];
    result.extend(own.instructions(parts).map(|text| ("instructions", quoted(&text))));
    result.extend(cache_hints(0, false));
    result.push(("_meta", composed(&[(SERVER_INFO, own.info())])));
    reply::answer_with_result(id, &composed(&result))
}

/// What is to be said of a page of a merged list beside its items.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    pub kind: ListKind,
    pub next: Option<&'a str>,
    pub absent: &'a [Missing],
    /// Servers of which not all items are listed.
    pub cut: &'a [Missing],
    /// The client's.
    pub era: Era,
    pub ttl_ms: u64,
    pub is_public: bool,
    pub own: &'a Own<'a>,
}

/// The result of a request for a list. The items are JSON already and stand in it byte for byte.
pub fn list<'a>(items: impl IntoIterator<Item = &'a Bytes>, listing: &Listing<'_>) -> Bytes {
    let mut result = Vec::new();
    if listing.era == Era::Modern {
        result.push(("resultType", quoted("complete")));
        result.extend(cache_hints(listing.ttl_ms, listing.is_public));
    }
    result.push((listing.kind.result_key(), array(items)));
    result.extend(listing.next.map(|cursor| ("nextCursor", quoted(cursor))));
    let mut meta = Vec::new();
    if listing.era == Era::Modern {
        meta.push((SERVER_INFO, listing.own.info()));
    }
    for (key, servers) in [(meta::ABSENT, listing.absent), (meta::CUT, listing.cut)] {
        if !servers.is_empty() {
            meta.push((key, missing(servers)));
        }
    }
    if !meta.is_empty() {
        result.push(("_meta", composed(&meta)));
    }
    composed(&result)
}

fn cache_hints(ttl_ms: u64, is_public: bool) -> [(&'static str, Bytes); 2] {
    let scope = if is_public { "public" } else { "private" };
    [("ttlMs", ttl_ms.to_string().into()), ("cacheScope", quoted(scope))]
}

fn array<'a>(items: impl IntoIterator<Item = &'a Bytes>) -> Bytes {
    let mut array = vec![b'['];
    for item in items {
        if array.len() > 1 {
            array.push(b',');
        }
        array.extend_from_slice(item);
    }
    array.push(b']');
    array.into()
}

fn missing(servers: &[Missing]) -> Bytes {
    let each = |it: &Missing| composed(&[("server", quoted(&it.server)), ("reason", quoted(&it.reason))]);
    array(&servers.iter().map(each).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
