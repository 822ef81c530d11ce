//! Lists: what a server has, each item under the name that clients use.

use std::ops::Range;

use bytes::Bytes;
use mcp_wire::{scan, splice};

use super::links::Links;
use crate::router::place::{Edits, change_text, is_sound, items, members, quoted, set_members_and_meta};
use crate::router::{ListKind, Namespace, meta};

/// Bytes of a server's name or address for an item: a longer one fits into no header, and no model repeats it.
const NAME_BYTES_MAX: usize = 8 * 1024;

/// One thing that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What its server calls it.
    pub original: String,
    /// What clients call it.
    pub given: String,
    /// The JSON of it, with the given name in it.
    pub bytes: Bytes,
}

/// One page of a server's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub items: Vec<Item>,
    /// The server's own cursor to the next page.
    pub next: Option<String>,
    /// How long the server says that this holds, if it says so.
    pub ttl_ms: Option<u64>,
    /// Whether the server says that this is for everybody.
    pub is_public: bool,
    /// Items that have no name that could be used, or that would make the whole list unreadable.
    pub left_out: usize,
}

/// Reads an answer to a request for a list. `None` if there is no such list in it.
pub fn page(ns: &Namespace, kind: ListKind, answer: &Bytes) -> Option<Page> {
    let list = scan::member_at(answer, ["result", kind.result_key()])?.range();
    if answer.get(list.start) != Some(&b'[') {
        return None;
    }
    let said = |name| scan::member_at(answer, ["result", name]).map(|value| &answer[value.range()]);
    let text = |name| said(name).and_then(scan::decode_string);
    let mut page = Page {
        next: text("nextCursor").filter(|cursor| !cursor.is_empty()).map(Into::into),
        ttl_ms: said("ttlMs").map(|json| std::str::from_utf8(json).ok().and_then(|ms| ms.parse().ok()).unwrap_or(0)),
        is_public: text("cacheScope").is_some_and(|scope| scope == "public"),
        ..Page::default()
    };
    for range in items(answer, list) {
        match item(ns, kind, &answer.slice(range)) {
            Some(item) => page.items.push(item),
            None => page.left_out += 1,
        }
    }
    Some(page)
}

fn item(ns: &Namespace, kind: ListKind, json: &Bytes) -> Option<Item> {
    if json.first() != Some(&b'{') || !is_sound(json) {
        return None;
    }
    let whole = 0..json.len();
    let names: Vec<Range<usize>> = members(json, whole.clone(), kind.name_key()).collect();
    let original = the_text(json, &names)?;
    let given = match kind {
        ListKind::Tools | ListKind::Prompts => ns.name(&original),
        ListKind::Resources => ns.uri(&original),
        ListKind::Templates => ns.template(&original),
    };
    if !ns.is_prefixed() {
        return Some(Item { original, given, bytes: json.clone() });
    }
    let mut edits = Edits::new();
    for name in names {
        change_text(json, name, &mut edits, |_| Some(given.clone()));
    }
    Links::new(ns, json, &mut edits).metas_of(whole.clone());
    let ours = [(meta::SERVER, quoted(ns.id())), (meta::ORIGINAL, quoted(&original))];
    set_members_and_meta(json, whole, &[], &ours, &mut edits);
    Some(Item { original, given, bytes: splice::splice_all(json, &mut edits) })
}

/// What all of these say, if they say one thing.
fn the_text(json: &[u8], values: &[Range<usize>]) -> Option<String> {
    let mut texts = values.iter().map(|value| scan::decode_string(&json[value.clone()]));
    let text = texts.next()??;
    let is_usable = !text.is_empty() && text.len() <= NAME_BYTES_MAX;
    (is_usable && texts.all(|other| other.as_ref() == Some(&text))).then(|| text.into_owned())
}
