//! What an answer lists: tools, prompts, resources. Read from the bytes, item by item; what stands there
//! twice is read twice, since nobody knows which one a client will take.

use std::borrow::Cow;
use std::ops::Range;

use mcp_wire::scan;

/// One kind of list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List {
    /// The request that asks for it, and the member of its answer that holds it.
    pub asked_by: &'static str,
    member: &'static str,
    /// The method that uses what is listed, and the member of an item that is named in it.
    pub used_by: &'static str,
    name: &'static str,
}

pub(super) const TOOLS: List = List { asked_by: "tools/list", member: "tools", used_by: "tools/call", name: "name" };
const LISTS: [List; 4] = [
    TOOLS,
    List { asked_by: "prompts/list", member: "prompts", used_by: "prompts/get", name: "name" },
    List { asked_by: "resources/list", member: "resources", used_by: "resources/read", name: "uri" },
    List {
        asked_by: "resources/templates/list",
        member: "resourceTemplates",
        used_by: "resources/read",
        name: "uriTemplate",
    },
];

/// Whether a request asks for a list.
pub(super) fn asks_for_list(method: &str) -> bool {
    LISTS.iter().any(|list| list.asked_by == method)
}

/// Calls `visit` with each list in an answer, or in the answers of a batch, and where in the answer its
/// JSON stands.
pub(super) fn each_list(answer: &[u8], mut visit: impl FnMut(&'static List, Range<usize>)) {
    let mut each_in = |message: Range<usize>| {
        for result in members(answer, message, "result") {
            for list in &LISTS {
                members(answer, result.clone(), list.member).for_each(|json| visit(list, json));
            }
        }
    };
    match answer.trim_ascii_start().first() {
        Some(b'[') => items(answer, 0..answer.len()).for_each(each_in),
        _ => each_in(0..answer.len()),
    }
}

/// The items of a list, whose JSON stands there in `bytes`.
pub(super) fn items(bytes: &[u8], list: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let start = list.start;
    scan::batch_items(&bytes[list]).map(move |item| item.shifted(start).range())
}

/// Where the members of this name stand in an object.
pub(super) fn members<'a>(
    bytes: &'a [u8],
    object: Range<usize>,
    name: &'a str,
) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let start = object.start;
    let members = scan::object_members(&bytes[object]).filter(move |(key, _)| key == name);
    members.map(move |(_, value)| value.shifted(start).range())
}

impl List {
    /// What an item is called by whoever uses it; `None` where that cannot be read.
    pub(super) fn names<'a>(
        &self,
        bytes: &'a [u8],
        item: Range<usize>,
    ) -> impl Iterator<Item = Option<Cow<'a, str>>> + use<'a> {
        members(bytes, item, self.name).map(|name| scan::decode_string(&bytes[name]))
    }
}
