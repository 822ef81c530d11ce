//! JSON-RPC ids. `1` and `"1"` are different ids; so are `1` and `1.0`, because a peer must repeat
//! an id as it was spelled.

use std::fmt;

use crate::scan::{decode_string, nesting};

/// An id as a key. Strings compare by what they say, since a peer that decodes and encodes again
/// may escape differently; everything else compares by spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// An integer in its shortest spelling: nearly every id there is, and no allocation.
    Integer(i64),
    Text(Box<str>),
    /// Any other JSON: `null`, a float, an integer beyond 64 bits, even a small object.
    Other(Box<str>),
    /// An id that no answer can repeat: text that is not JSON or not UTF-8, a string that cannot be decoded, a number
    /// beyond a float, a large or deep container. Its bytes pair it; replies say `null`, as JSON-RPC has it for an id
    /// that could not be read.
    Broken(Box<[u8]>),
}

impl Id {
    /// Reads the JSON text of an id, as the scanner found it.
    pub fn from_json(json: &[u8]) -> Self {
        if let Some(integer) = shortest_integer(json) {
            return Self::Integer(integer);
        }
        match decode_string(json) {
            Some(text) => Self::Text(text.into()),
            None => readable(json).map_or_else(|| Self::Broken(json.into()), |json| Self::Other(json.into())),
        }
    }

    /// Bytes that it holds on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Integer(_) => 0,
            Self::Text(text) | Self::Other(text) => text.len(),
            Self::Broken(json) => json.len(),
        }
    }
}

/// Shows the id as JSON, ready to stand in a message.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Text(text) => f.write_str(&serde_json::Value::from(&**text).to_string()),
            Self::Other(json) => f.write_str(json),
            Self::Broken(_) => f.write_str("null"),
        }
    }
}

/// An id that is no string and longer or deeper than this is not repeated: a full parser reads it, and the reply around
/// it nests deeper.
const OTHER_BYTES_MAX: usize = 1_024;
const OTHER_DEPTH_MAX: usize = 64;

/// The text of an id that every parser reads.
fn readable(json: &[u8]) -> Option<&str> {
    let is_read = json.len() <= OTHER_BYTES_MAX
        && nesting(json).is_some_and(|depth| depth <= OTHER_DEPTH_MAX)
        && serde_json::from_slice::<serde_json::Value>(json).is_ok();
    std::str::from_utf8(json).ok().filter(|_| is_read)
}

fn shortest_integer(json: &[u8]) -> Option<i64> {
    let (negative, digits) = match json {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, json),
    };
    // Eighteen digits always fit; the few longer ids keep their spelling instead.
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && json.len() > 1) {
        return None;
    }
    let mut value = 0i64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Id) {
        let id = Id::from_json(json.as_bytes());
        assert_eq!(id, expected);
        assert_eq!(Id::from_json(id.to_string().as_bytes()), id, "survives a round trip");
    }

    #[test]
    fn ids_keep_their_type_and_spelling() {
        check("1", Id::Integer(1));
        check("0", Id::Integer(0));
        check("-1", Id::Integer(-1));
        check("\"1\"", Id::Text("1".into()));
        check("\"\"", Id::Text("".into()));
        check("\"a\\u0062\"", Id::Text("ab".into()));
        check("null", Id::Other("null".into()));
        check("1.0", Id::Other("1.0".into()));
        check("-0", Id::Other("-0".into()));
        check("9007199254740993", Id::Integer(9_007_199_254_740_993));
        check("9223372036854775807", Id::Other("9223372036854775807".into()));
        check("123456789012345678901234567890", Id::Other("123456789012345678901234567890".into()));
        check("true", Id::Other("true".into()));
        check("[1,{}]", Id::Other("[1,{}]".into()));
        check("1e300", Id::Other("1e300".into()));
    }

    #[test]
    fn an_id_that_is_no_json_is_shown_as_null_and_pairs_by_its_bytes() {
        for json in [
            &b"\"b\\ad\""[..],
            b"\"b\xffd\"",
            b"\"\\ud800\"",
            b"1\xff2",
            b"01",
            b"1e400",
            b"NaN",
            b"nul",
            b"{\"a\":}",
            b"[1e999]",
            b"",
            b"\"",
        ] {
            let id = Id::from_json(json);
            assert_eq!(id, Id::Broken(json.into()), "{}", String::from_utf8_lossy(json));
            assert_eq!(id.to_string(), "null");
        }
        let deep = |depth| [b"[".repeat(depth), b"]".repeat(depth)].concat();
        assert_eq!(Id::from_json(&deep(OTHER_DEPTH_MAX + 1)).to_string(), "null");
        assert_eq!(Id::from_json(&b"1".repeat(OTHER_BYTES_MAX + 1)).to_string(), "null");
        assert_ne!(Id::from_json(b"nul"), Id::from_json(b"nil"));
    }
}
