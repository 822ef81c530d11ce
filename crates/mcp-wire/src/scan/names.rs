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
    fn exact(self, key: &[u8]) -> Named {
        match (self, key) {
            (Self::TopLevel, b"id") => Named::Id,
            (Self::TopLevel, b"method") => Named::Method,
            (Self::TopLevel, b"params") => Named::Params,
            (Self::TopLevel, b"result") => Named::Result,
            (Self::TopLevel, b"error") => Named::Error,
            (Self::TopLevel, b"jsonrpc") => Named::Protocol,
            (Self::Params, b"name") => Named::Name,
            (Self::Params, b"uri") => Named::Uri,
            (Self::Params, b"_meta") => Named::Meta,
            (Self::Params, b"arguments") => Named::Arguments,
            (Self::Params, b"requestId") => Named::RequestId,
            (Self::Params, b"taskId") => Named::TaskId,
            (Self::Params | Self::Meta, b"progressToken") => Named::ProgressToken,
            (Self::Meta, b"io.modelcontextprotocol/protocolVersion") => Named::ProtocolVersion,
            (Self::Meta, b"io.modelcontextprotocol/subscriptionId") => Named::SubscriptionId,
            _ => Named::Unknown,
        }
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
    pub fn of(place: Place) -> Self {
        Self { place, seen: 0 }
    }

    /// Which name `key` (the text between its quotes) is; marks a repeat and a look-alike.
    pub fn find(&mut self, key: &[u8], ambiguity: &mut Option<Ambiguity>) -> Named {
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
