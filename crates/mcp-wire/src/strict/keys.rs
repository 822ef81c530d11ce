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
    Elsewhere,
}

impl Place {
    /// The names that the protocol gives a meaning that matters here.
    pub fn names(self) -> Option<&'static JudgedKeys> {
        static ENVELOPE: LazyLock<JudgedKeys> =
            LazyLock::new(|| JudgedKeys::new(["jsonrpc", "id", "method", "params", "result", "error"]));
        static PARAMS: LazyLock<JudgedKeys> = LazyLock::new(|| {
            JudgedKeys::new([
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
            ])
        });
        static META: LazyLock<JudgedKeys> = LazyLock::new(|| {
            JudgedKeys::new([
                "progressToken",
                "io.modelcontextprotocol/protocolVersion",
                "io.modelcontextprotocol/subscriptionId",
                "io.modelcontextprotocol/clientInfo",
                "io.modelcontextprotocol/clientCapabilities",
            ])
        });
        static REFERENCE: LazyLock<JudgedKeys> = LazyLock::new(|| JudgedKeys::new(["type", "name", "uri"]));
        static NOTIFICATIONS: LazyLock<JudgedKeys> = LazyLock::new(|| JudgedKeys::new(["resourceSubscriptions"]));
        Some(match self {
            Self::Envelope => &ENVELOPE,
            Self::Params => &PARAMS,
            Self::Meta => &META,
            Self::Reference => &REFERENCE,
            Self::Notifications => &NOTIFICATIONS,
            Self::Elsewhere => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
