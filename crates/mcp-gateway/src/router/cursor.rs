//! Pages of a merged list. A cursor says where the next one begins, in which list, and after which item: if
//! the list has changed since, paging goes on after that item, wherever it stands by now.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use serde::{Deserialize, Serialize};

use super::ListKind;

/// A longer cursor did not come from the gateway.
const CURSOR_BYTES_MAX: usize = 512;

/// The cursor is none of ours, belongs to another list, or what it points to is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not one of this list's, or what it pointed to is gone")]
pub struct BadCursor;

/// What tells one list from another: the names in it and their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest(String);

impl Digest {
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for name in names {
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
        }
        Self(short(&hasher.finalize()))
    }
}

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub items: Range<usize>,
    /// The cursor to the next one.
    pub next: Option<String>,
}

/// Cuts the page that `cursor` asks for out of a list; the first one if it is `None`. `given` is what clients
/// call an item, and `digest` that of all of them.
pub fn cut<T>(
    kind: ListKind,
    list: &[T],
    given: impl Fn(&T) -> &str,
    digest: &Digest,
    cursor: Option<&str>,
    page_size: usize,
) -> Result<Cut, BadCursor> {
    let mark = |item: &T| short(&blake3::hash(given(item).as_bytes()));
    let start = match cursor {
        None => 0,
        Some(cursor) => Cursor::read(kind, cursor)?.start(list, digest, mark)?,
    };
    let end = start.saturating_add(page_size.max(1)).min(list.len());
    let next = (end < list.len()).then(|| {
        let last = mark(&list[end - 1]);
        Cursor { kind: kind.result_key().into(), offset: end, list: digest.0.clone(), last }.written()
    });
    Ok(Cut { items: start..end, next })
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    kind: String,
    offset: usize,
    list: String,
    last: String,
}

impl Cursor {
    fn read(kind: ListKind, cursor: &str) -> Result<Self, BadCursor> {
        if cursor.len() > CURSOR_BYTES_MAX {
            return Err(BadCursor);
        }
        let json = BASE64URL.decode(cursor).map_err(|_| BadCursor)?;
        let read: Self = serde_json::from_slice(&json).map_err(|_| BadCursor)?;
        let is_ours = read.kind == kind.result_key() && read.offset > 0 && read.written() == cursor;
        is_ours.then_some(read).ok_or(BadCursor)
    }

    fn written(&self) -> String {
        BASE64URL.encode(serde_json::to_string(self).expect("texts and a number are JSON"))
    }

    /// Where the page begins.
    fn start<T>(&self, list: &[T], digest: &Digest, mark: impl Fn(&T) -> String) -> Result<usize, BadCursor> {
        let is_last = |item: &T| mark(item) == self.last;
        let is_here = |offset: usize| offset.checked_sub(1).and_then(|at| list.get(at)).is_some_and(is_last);
        match () {
            () if is_here(self.offset) => Ok(self.offset),
            () if self.list == digest.0 => Err(BadCursor),
            () => list.iter().position(is_last).map(|at| at + 1).ok_or(BadCursor),
        }
    }
}

/// Enough of a hash: whoever finds another list with the same gains a page of it.
fn short(hash: &blake3::Hash) -> String {
    hash.to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests;
