//! JSON-RPC ids. `1` and `"1"` are different ids; so are `1` and `1.0`, because a peer must repeat
//! an id as it was spelled.

use std::fmt;

use crate::scan::decode_string;

/// An id as a key. Strings compare by what they say, since a peer that decodes and encodes again
/// may escape differently; everything else compares by spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// An integer in its shortest spelling: nearly every id there is, and no allocation.
    Integer(i64),
    Text(Box<str>),
    /// Any other JSON: `null`, a float, an integer beyond 64 bits, even an object.
    Other(Box<str>),
}

impl Id {
    /// Reads the JSON text of an id, as the scanner found it.
    pub fn from_json(json: &[u8]) -> Self {
        if let Some(integer) = shortest_integer(json) {
            return Self::Integer(integer);
        }
        match decode_string(json) {
            Some(text) => Self::Text(text.into()),
            None => Self::Other(String::from_utf8_lossy(json).into()),
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
        }
    }
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
    }
}
