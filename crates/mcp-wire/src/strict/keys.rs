//! The names of members that something is decided by.

use std::sync::LazyLock;

use super::print::{Key, Print};
use crate::fold::skeleton;

/// The names of members that rules look at, wherever in a message they stand.
#[derive(Clone, Debug, Default)]
pub struct JudgedKeys {
    /// Sorted.
    names: Vec<(Print, Box<str>)>,
    /// Their bits.
    bits: u64,
}

/// What a key is to the names something is decided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    Other,
    /// It is one of them.
    Same,
    /// Somebody could take it for one of them.
    Alike,
}

impl JudgedKeys {
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names: Vec<(Print, Box<str>)> =
            keys.into_iter().map(|key| (Print::of(skeleton(key).as_bytes()), key.into())).collect();
        names.sort_unstable();
        names.dedup();
        let bits = names.iter().fold(0, |bits, (print, _)| bits | print.bit());
        Self { names, bits }
    }

    #[inline]
    pub(super) fn likeness(&self, key: &Key<'_>) -> Likeness {
        if self.bits & key.to_people.bit() == 0 { Likeness::Other } else { self.look_up(key) }
    }

    fn look_up(&self, key: &Key<'_>) -> Likeness {
        let start = self.names.partition_point(|(print, _)| *print < key.to_people);
        let mut alike = self.names[start..].iter().take_while(|(print, _)| *print == key.to_people).peekable();
        match () {
            () if alike.peek().is_none() => Likeness::Other,
            // Rules that name both spellings know what they do.
            () if alike.any(|(_, name)| name.as_bytes() == &*key.text) => Likeness::Same,
            () => Likeness::Alike,
        }
    }
}

/// The objects of a message that have names of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Envelope,
    Params,
    /// `params._meta`
    Meta,
    /// `params.ref`: what a completion is about
    Reference,
    /// `params.notifications`: what a listen request asks for
    Notifications,
    /// `params.arguments`: what a tool or prompt is given
    Arguments,
    Elsewhere,
}

/// What a member of one of these objects is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Version,
    Params,
    Result,
    Error,
    /// What somebody may show or decide by, whatever the method.
    Subject,
    Arguments,
    Meta,
    Reference,
    ReferenceKind,
    ReferenceName,
    ReferenceUri,
    Notifications,
    Subscriptions,
    /// It has a meaning that others look after.
    Known,
    Unknown,
}

impl Place {
    const ALL: [Self; 7] = [
        Self::Envelope,
        Self::Params,
        Self::Meta,
        Self::Reference,
        Self::Notifications,
        Self::Arguments,
        Self::Elsewhere,
    ];

    /// What `key` is, if it is spelled exactly so.
    pub(super) fn name(self, key: &[u8]) -> Member {
        match self {
            Self::Envelope => match key {
                b"jsonrpc" => Member::Version,
                b"params" => Member::Params,
                b"result" => Member::Result,
                b"error" => Member::Error,
                b"id" | b"method" => Member::Known,
                _ => Member::Unknown,
            },
            Self::Params => match key {
                b"name" | b"uri" | b"taskId" => Member::Subject,
                b"arguments" => Member::Arguments,
                b"_meta" => Member::Meta,
                b"ref" => Member::Reference,
                b"notifications" => Member::Notifications,
                b"argument" | b"task" | b"requestId" | b"progressToken" | b"inputResponses" | b"requestState"
                | b"protocolVersion" | b"capabilities" => Member::Known,
                _ => Member::Unknown,
            },
            Self::Reference => match key {
                b"type" => Member::ReferenceKind,
                b"name" => Member::ReferenceName,
                b"uri" => Member::ReferenceUri,
                _ => Member::Unknown,
            },
            Self::Notifications if key == b"resourceSubscriptions" => Member::Subscriptions,
            Self::Meta => match key {
                b"progressToken"
                | b"io.modelcontextprotocol/protocolVersion"
                | b"io.modelcontextprotocol/subscriptionId"
                | b"io.modelcontextprotocol/clientInfo"
                | b"io.modelcontextprotocol/clientCapabilities" => Member::Known,
                _ => Member::Unknown,
            },
            _ => Member::Unknown,
        }
    }

    /// Whether somebody could take `key`, which is none of the names of this place, for one of them.
    #[inline]
    pub(super) fn has_alike(self, key: &Key<'_>) -> bool {
        !matches!(self, Self::Arguments | Self::Elsewhere) && self.names().likeness(key) != Likeness::Other
    }

    fn names(self) -> &'static JudgedKeys {
        static NAMES: LazyLock<[JudgedKeys; Place::ALL.len()]> =
            LazyLock::new(|| Place::ALL.map(|place| JudgedKeys::new(place.spelled().iter().copied())));
        &NAMES[self as usize]
    }

    fn spelled(self) -> &'static [&'static str] {
        match self {
            Self::Envelope => &["jsonrpc", "id", "method", "params", "result", "error"],
            Self::Params => &[
                "name",
                "uri",
                "arguments",
                "argument",
                "ref",
                "_meta",
                "task",
                "taskId",
                "requestId",
                "progressToken",
                "inputResponses",
                "requestState",
                "notifications",
                "protocolVersion",
                "capabilities",
            ],
            Self::Meta => &[
                "progressToken",
                "io.modelcontextprotocol/protocolVersion",
                "io.modelcontextprotocol/subscriptionId",
                "io.modelcontextprotocol/clientInfo",
                "io.modelcontextprotocol/clientCapabilities",
            ],
            Self::Reference => &["type", "name", "uri"],
            Self::Notifications => &["resourceSubscriptions"],
            Self::Arguments | Self::Elsewhere => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_their_spelling() {
        for place in Place::ALL {
            for name in place.spelled() {
                assert_ne!(place.name(name.as_bytes()), Member::Unknown, "{place:?} {name}");
                let capitals = format!("\"{}\"", name.to_uppercase());
                let key = Key::read(capitals.as_bytes()).expect("it can be decoded");
                assert!(place.name(&key.text) == Member::Unknown && place.has_alike(&key), "{place:?} {name}");
            }
        }
    }

    #[test]
    fn spellings() {
        let keys = JudgedKeys::new(["path", "repoName", "Path2", "path2"]);
        let check = |json: &str, expected| {
            let key = Key::read(json.as_bytes()).expect("it can be decoded");
            assert_eq!(keys.likeness(&key), expected, "{json}");
        };
        for json in [r#""path""#, r#""p\u0061th""#, r#""repoName""#, r#""Path2""#, r#""path2""#] {
            check(json, Likeness::Same);
        }
        for json in [r#""Path""#, r#""p\u0430th""#, r#""path ""#, r#""reponame""#, r#""PATH2""#, "\"p\u{200b}ath\""] {
            check(json, Likeness::Alike);
        }
        for json in [r#""paths""#, r#""""#, r#""repo_name""#] {
            check(json, Likeness::Other);
        }
    }
}
