//! Where things stand in JSON text, and the edits that change them there. What stands twice is found twice:
//! nobody knows which one a reader takes.

use std::ops::Range;

use bytes::Bytes;
use mcp_wire::{Span, scan, splice};

/// Nesting of a value that is merged with the values of other servers. It stands a few levels deeper there, and
/// many readers take no more than `scan::DEPTH_MAX`.
const DEPTH_MAX: usize = scan::DEPTH_MAX - 8;

/// Replacements for spans of one message; see [`mcp_wire::splice::splice_all`].
pub type Edits = Vec<(Span, Bytes)>;

/// The members of this name in an object; none if it is no object.
pub(super) fn members<'a>(
    bytes: &'a [u8],
    object: Range<usize>,
    name: &'a str,
) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let start = object.start;
    let named = scan::object_members(&bytes[object]).filter(move |(key, _)| key == name);
    named.map(move |(_, value)| value.shifted(start).range())
}

/// The members at the end of a path.
pub(super) fn at_path(bytes: &[u8], path: &[&str]) -> Vec<Range<usize>> {
    let Some((first, rest)) = path.split_first() else { return Vec::new() };
    let mut found: Vec<_> = members(bytes, 0..bytes.len(), first).collect();
    for name in rest {
        found = found.into_iter().flat_map(|object| members(bytes, object, name)).collect();
    }
    found
}

/// The items of a list; none if it is no list.
pub(super) fn items(bytes: &[u8], list: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let start = list.start;
    scan::batch_items(&bytes[list]).map(move |item| item.shifted(start).range())
}

/// The object that a message is, without the blanks around it.
pub(super) fn whole_object(bytes: &[u8]) -> Option<Range<usize>> {
    let start = bytes.len() - bytes.trim_ascii_start().len();
    let whole = start..bytes.trim_ascii_end().len();
    (is_object(bytes, &whole) && bytes[whole.end - 1] == b'}').then_some(whole)
}

pub(super) fn is_object(bytes: &[u8], value: &Range<usize>) -> bool {
    bytes.get(value.start) == Some(&b'{') && value.len() >= 2
}

/// Replaces the text that stands there by what `change` makes of it. What is no text stays.
pub(super) fn change_text(
    bytes: &[u8],
    value: Range<usize>,
    edits: &mut Edits,
    change: impl FnOnce(&str) -> Option<String>,
) {
    let Some(text) = scan::decode_string(&bytes[value.clone()]) else { return };
    if let Some(changed) = change(&text).filter(|changed| *changed != text) {
        edits.push((Span::new(value), quoted(&changed)));
    }
}

/// A member to be set: its name, and its value as JSON.
pub(super) type Member<'a> = (&'a str, Bytes);

/// Gives an object these members. Those that it has are changed where they stand, the others come last. To
/// be called once for an object, since the edit ends at its brace.
pub(super) fn set_members(bytes: &[u8], object: Range<usize>, wanted: &[Member<'_>], edits: &mut Edits) {
    let mut added = Vec::new();
    let is_empty = bytes[object.start + 1..object.end - 1].trim_ascii().is_empty();
    for (name, json) in wanted {
        let mut there = members(bytes, object.clone(), name).peekable();
        if there.peek().is_some() {
            edits.extend(there.filter(|value| bytes[value.clone()] != **json).map(|v| (Span::new(v), json.clone())));
            continue;
        }
        if !added.is_empty() || !is_empty {
            added.push(b',');
        }
        push_member(&mut added, name, json);
    }
    if !added.is_empty() {
        added.push(b'}');
        edits.push((Span::new(object.end - 1..object.end), added.into()));
    }
}

/// The same where some of them belong into the object's `_meta`, which is made if there is none.
pub(super) fn set_members_and_meta(
    bytes: &[u8],
    object: Range<usize>,
    wanted: &[Member<'_>],
    meta: &[Member<'_>],
    edits: &mut Edits,
) {
    if meta.is_empty() {
        return set_members(bytes, object, wanted, edits);
    }
    let mut wanted = wanted.to_vec();
    let metas: Vec<_> = members(bytes, object.clone(), "_meta").collect();
    if metas.is_empty() {
        wanted.push(("_meta", composed(meta)));
    }
    for there in metas {
        match is_object(bytes, &there) {
            true => set_members(bytes, there, meta, edits),
            // Nothing else may stand there, and readers who check refuse the whole message for it.
            false => edits.push((Span::new(there), composed(meta))),
        }
    }
    set_members(bytes, object, &wanted, edits);
}

/// Takes out the members for whose names `is_cut` says so, with the commas between them.
pub(super) fn cut_members(bytes: &[u8], object: Range<usize>, is_cut: impl Fn(&str) -> bool, edits: &mut Edits) {
    splice::cut_members(bytes, object, |key, _| key.is_some_and(&is_cut), edits);
}

/// An object of these members.
pub(super) fn composed(members: &[Member<'_>]) -> Bytes {
    let mut object = vec![b'{'];
    for (at, (name, json)) in members.iter().enumerate() {
        if at > 0 {
            object.push(b',');
        }
        push_member(&mut object, name, json);
    }
    object.push(b'}');
    object.into()
}

fn push_member(object: &mut Vec<u8>, name: &str, json: &[u8]) {
    object.extend_from_slice(&quoted(name));
    object.push(b':');
    object.extend_from_slice(json);
}

/// `text` as JSON.
pub(super) fn quoted(text: &str) -> Bytes {
    serde_json::Value::from(text).to_string().into()
}

/// Whether a value can stand among those of others: a reader that trips over it would lose them all.
pub(super) fn is_sound(json: &[u8]) -> bool {
    scan::nesting(json).is_some_and(|depth| depth <= DEPTH_MAX) && !has_lone_surrogate(json)
}

fn has_lone_surrogate(json: &[u8]) -> bool {
    let mentions = |escape: &[u8]| memchr::memmem::find(json, escape).is_some();
    (mentions(b"\\ud") || mentions(b"\\uD")) && serde_json::from_slice::<serde_json::Value>(json).is_err()
}

#[cfg(test)]
mod tests;
