//! The member names a message is judged by, and the spellings that some parsers take for them.
//! Go's decoder ignores case; others stop at a NUL. A message that uses such a spelling can be
//! read two ways, so it is marked.

use super::{Ambiguity, decode_string};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Id,
    Method,
    Params,
    Result,
    Error,
    Name,
    Uri,
    Meta,
    RequestId,
    ProgressToken,
    TaskId,
    ProtocolVersion,
    SubscriptionId,
    Protocol,
    Arguments,
    Unknown,
}

/// The object whose members are being read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    TopLevel,
    Params,
    Meta,
}

impl Place {
    /// The name `key` is, if it is spelled exactly so.
    #[inline]
    fn exact(self, key: &[u8]) -> Named {
        // By length first: nearly always one name is left, or none.
        match (self, key.len()) {
            (Self::TopLevel, 2) if key == b"id" => Named::Id,
            (Self::TopLevel, 5) if key == b"error" => Named::Error,
            (Self::TopLevel, 6) => match key {
                b"method" => Named::Method,
                b"params" => Named::Params,
                b"result" => Named::Result,
                _ => Named::Unknown,
            },
            (Self::TopLevel, 7) if key == b"jsonrpc" => Named::Protocol,
            (Self::Params, 3) if key == b"uri" => Named::Uri,
            (Self::Params, 4) if key == b"name" => Named::Name,
            (Self::Params, 5) if key == b"_meta" => Named::Meta,
            (Self::Params, 6) if key == b"taskId" => Named::TaskId,
            (Self::Params, 9) => match key {
                b"arguments" => Named::Arguments,
                b"requestId" => Named::RequestId,
                _ => Named::Unknown,
            },
            (Self::Params | Self::Meta, 13) if key == b"progressToken" => Named::ProgressToken,
            (Self::Meta, 38) if key == b"io.modelcontextprotocol/subscriptionId" => Named::SubscriptionId,
            (Self::Meta, 39) if key == b"io.modelcontextprotocol/protocolVersion" => Named::ProtocolVersion,
            _ => Named::Unknown,
        }
    }

    /// Which name `key` is; nothing if that takes a closer look: it stands there twice, is spelled with an escape, or
    /// could be taken for another. `seen` are the names so far.
    #[inline(always)]
    pub(super) fn named(self, key: &[u8], seen: &mut u16) -> Option<Named> {
        let named = self.exact(key);
        if named == Named::Unknown {
            return self.is_plainly_other(key).then_some(named);
        }
        let bit = 1 << named as u16;
        let is_first = *seen & bit == 0;
        *seen |= bit;
        is_first.then_some(named)
    }

    /// Whether nobody takes `key` for one of the names, seen at a glance.
    fn is_plainly_other(self, key: &[u8]) -> bool {
        let is_plain = || key.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        let is_alike = |name: &&str| key.eq_ignore_ascii_case(name.as_bytes());
        key.iter().all(|byte| byte.is_ascii_lowercase()) || is_plain() && !self.names().iter().any(is_alike)
    }

    /// The names of this place, for comparing look-alikes.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::TopLevel => &["id", "method", "params", "result", "error", "jsonrpc"],
            Self::Params => &["name", "uri", "_meta", "arguments", "requestId", "taskId", "progressToken"],
            Self::Meta => {
                &["progressToken", "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/subscriptionId"]
            }
        }
    }
}

/// A key longer than this is none of the names, even with every character escaped and a tail of
/// NULs; decoding stays cheap.
const LONGEST_SPELLING: usize = 512;

/// The names of one object, and which of them it has shown already.
pub(super) struct Names {
    place: Place,
    seen: u16,
}

impl Names {
    pub(super) fn of(place: Place) -> Self {
        Self { place, seen: 0 }
    }

    /// Which name `key` (the text between its quotes) is; marks a repeat and a look-alike.
    #[inline]
    pub(super) fn find(&mut self, key: &[u8], ambiguity: &mut Option<Ambiguity>) -> Named {
        let named = match self.place.exact(key) {
            Named::Unknown if key.iter().all(|byte| byte.is_ascii_lowercase()) => return Named::Unknown,
            Named::Unknown => self.respelled(key, ambiguity),
            named => named,
        };
        if named != Named::Unknown {
            if self.seen & (1 << named as u16) != 0 {
                ambiguity.get_or_insert(Ambiguity::RepeatedKey);
            }
            self.seen |= 1 << named as u16;
        }
        named
    }

    /// A key with capitals, escapes or letters beyond ASCII. One that is only escaped is the name
    /// it spells, for every parser; one that differs is marked.
    fn respelled(&self, key: &[u8], ambiguity: &mut Option<Ambiguity>) -> Named {
        if key.iter().all(|&byte| byte.is_ascii() && byte != b'\\') {
            if self.place.names().iter().any(|name| key.eq_ignore_ascii_case(name.as_bytes())) {
                ambiguity.get_or_insert(Ambiguity::LookAlikeKey);
            }
            return Named::Unknown;
        }
        if key.len() > LONGEST_SPELLING {
            return Named::Unknown;
        }
        let quoted = [b"\"", key, b"\""].concat();
        let Some(text) = decode_string(&quoted) else { return Named::Unknown };
        let named = self.place.exact(text.as_bytes());
        if named == Named::Unknown && self.place.names().iter().any(|name| fold(&text).eq_ignore_ascii_case(name)) {
            ambiguity.get_or_insert(Ambiguity::LookAlikeKey);
        }
        named
    }
}

/// What remains when a trailing NUL is taken for the end, and the long s and the Kelvin sign for
/// the letters they fold into: the two beyond ASCII that do.
fn fold(text: &str) -> String {
    text.trim_end_matches('\0').replace('\u{17f}', "s").replace('\u{212a}', "k")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_in_its_place() {
        for place in [Place::TopLevel, Place::Params, Place::Meta] {
            for name in place.names() {
                assert_ne!(place.exact(name.as_bytes()), Named::Unknown, "{place:?} {name}");
            }
        }
    }
}
