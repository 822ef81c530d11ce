//! Names in other spellings. A peer may take `Delete_Repo`, `delete_repo\0` or a look-alike of it for
//! `delete_repo`, and a uri with escapes or dots for the one that it leads to. Whoever denies a name means
//! all of them.

use std::borrow::Cow;

use mcp_wire::fold::{plain_uri, skeleton};

/// Which spellings of names a filter is held against: those of the method and of the tool, prompt or
/// resource. Whatever else it asks is asked as ever.
///
/// A message can be read with its names as they are written, or as whoever is careless about spelling
/// reads them. A whole expression is held against one reading, so that its negations mean the same names
/// as the rest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// As written, and no other.
    Exact,
    /// One of the readings is enough: for what denies or asks.
    Any,
    /// Both readings must match: for what allows. `tool:file:///tmp/*` does not allow
    /// `file:///tmp/../etc/passwd`, nor `not tool:drop_all` the tool `Drop_All`.
    Every,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Written,
    Folded,
}

/// A name, or a pattern for names, as whoever is careless about spelling reads it.
pub(crate) fn folded(text: &str) -> Cow<'_, str> {
    if !text.contains([':', '%', '/']) {
        return skeleton(text);
    }
    match plain_uri(text) {
        Cow::Borrowed(text) => skeleton(text),
        Cow::Owned(text) => Cow::Owned(skeleton(&text).into_owned()),
    }
}
