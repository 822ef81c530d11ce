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
    /// Known to decide something later (arguments of a call, the protocol's name), not looked into.
    Noted,
    Unknown,
}

type Table = &'static [(&'static str, Named)];

const TOP_LEVEL: Table = &[
    ("id", Named::Id),
    ("method", Named::Method),
    ("params", Named::Params),
    ("result", Named::Result),
    ("error", Named::Error),
    ("jsonrpc", Named::Noted),
];
const PARAMS: Table = &[
    ("name", Named::Name),
    ("uri", Named::Uri),
    ("_meta", Named::Meta),
    ("arguments", Named::Noted),
    ("requestId", Named::RequestId),
    ("progressToken", Named::ProgressToken),
];
const META: Table = &[("progressToken", Named::ProgressToken)];

/// A key longer than this is none of the names, even with every character escaped and a tail of
/// NULs; decoding stays cheap.
const LONGEST_SPELLING: usize = 256;

/// The names of one object, and which of them it has shown already.
pub(super) struct Names {
    table: Table,
    seen: u16,
}

impl Names {
    pub fn top_level() -> Self {
        Self { table: TOP_LEVEL, seen: 0 }
    }

    pub fn params() -> Self {
        Self { table: PARAMS, seen: 0 }
    }

    pub fn meta() -> Self {
        Self { table: META, seen: 0 }
    }

    /// Which name `key` (the text between its quotes) is; marks a repeat and a look-alike.
    pub fn find(&mut self, key: &[u8], ambiguity: &mut Option<Ambiguity>) -> Named {
        for (index, &(name, named)) in self.table.iter().enumerate() {
            if key == name.as_bytes() {
                return self.see(index, named, ambiguity);
            }
        }
        if key.iter().all(|&byte| byte.is_ascii() && byte != b'\\') {
            if self.table.iter().any(|(name, _)| key.eq_ignore_ascii_case(name.as_bytes())) {
                ambiguity.get_or_insert(Ambiguity::LookAlikeKey);
            }
            return Named::Unknown;
        }
        self.find_respelled(key, ambiguity)
    }

    /// A key with escapes or letters beyond ASCII, which no peer needs for these names.
    #[cold]
    fn find_respelled(&mut self, key: &[u8], ambiguity: &mut Option<Ambiguity>) -> Named {
        if key.len() > LONGEST_SPELLING {
            return Named::Unknown;
        }
        let quoted = [b"\"", key, b"\""].concat();
        let Some(text) = decode_string(&quoted) else { return Named::Unknown };
        for (index, &(name, named)) in self.table.iter().enumerate() {
            if text == name {
                // Only escaped: every parser reads the same name.
                return self.see(index, named, ambiguity);
            }
            if fold(&text).eq_ignore_ascii_case(name) {
                ambiguity.get_or_insert(Ambiguity::LookAlikeKey);
            }
        }
        Named::Unknown
    }

    fn see(&mut self, index: usize, named: Named, ambiguity: &mut Option<Ambiguity>) -> Named {
        if self.seen & (1 << index) != 0 {
            ambiguity.get_or_insert(Ambiguity::RepeatedKey);
        }
        self.seen |= 1 << index;
        named
    }
}

/// What remains when a trailing NUL is taken for the end, and the long s and the Kelvin sign for
/// the letters they fold into: the two beyond ASCII that do.
fn fold(text: &str) -> String {
    text.trim_end_matches('\0').replace('\u{17f}', "s").replace('\u{212a}', "k")
}
