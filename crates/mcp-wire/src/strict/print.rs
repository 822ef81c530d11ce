//! A number for each key, the same for all spellings that a parser could take for one another.
//! Equal keys never have different numbers, so none is missed; that different keys have the same
//! one is a matter of 2^-64, and then a message is refused that could have gone on.

use std::borrow::Cow;

use crate::fold::{case_folded, skeleton};
use crate::scan::decode_string;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Print(u64);

/// A key of an object, as it can be compared.
pub(super) struct Key<'a> {
    /// What it says, in UTF-8.
    pub text: Cow<'a, [u8]>,
    /// The same for keys that parsers take for each other: those that differ by case.
    pub to_parsers: Print,
    /// The same for keys that look alike.
    pub to_people: Print,
}

impl<'a> Key<'a> {
    /// Reads a key with its quotes. `None` if it cannot be decoded.
    #[inline]
    pub(super) fn read(json: &'a [u8]) -> Option<Self> {
        let inner = &json[1..json.len() - 1];
        match Print::of_plain(inner) {
            Some(print) => Some(Self { text: Cow::Borrowed(inner), to_parsers: print, to_people: print }),
            None => Self::decode(json),
        }
    }

    fn decode(json: &'a [u8]) -> Option<Self> {
        let text = decode_string(json)?;
        let folded: String = text.chars().flat_map(case_folded).collect();
        let to_people = Print::of(skeleton(&text).as_bytes());
        let text = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Some(Self { text, to_parsers: Print::of(folded.as_bytes()), to_people })
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

impl Print {
    pub(super) const NONE: Self = Self(0);

    /// One bit of 64, for telling in no time that a key is not among a few.
    pub(super) fn bit(self) -> u64 {
        1 << (self.0 >> 58)
    }

    /// Of a text in lower case.
    pub(super) fn of(text: &[u8]) -> Self {
        let (words, rest) = text.as_chunks::<8>();
        let print = words.iter().fold(Self::seed(text), |print, word| print.with(u64::from_le_bytes(*word)));
        print.with(last_word(rest))
    }

    /// Of a key in plain letters, without escapes: nearly every one. `None` if it is another.
    fn of_plain(key: &[u8]) -> Option<Self> {
        if key.first() == Some(&b' ') || key.last() == Some(&b' ') {
            return None;
        }
        let (words, rest) = key.as_chunks::<8>();
        let (mut print, mut strange) = (Self::seed(key), 0);
        for word in words {
            let word = u64::from_le_bytes(*word);
            strange |= not_plain(word);
            print = print.with(lower(word));
        }
        let word = last_word(rest);
        strange |= not_plain(word);
        (strange == 0).then(|| print.with(lower(word)))
    }

    fn seed(text: &[u8]) -> Self {
        Self(text.len() as u64 ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn with(self, word: u64) -> Self {
        let product = u128::from(self.0 ^ word) * 0xa076_1d64_78bd_642f;
        Self((product as u64) ^ (product >> 64) as u64)
    }
}

/// Fewer than eight bytes, and zeros after them.
fn last_word(rest: &[u8]) -> u64 {
    let shifted = |value: u64, at: usize| value << (8 * at);
    // A copy of a length that is not known beforehand costs more than to read some bytes twice.
    match (rest.first_chunk(), rest.last_chunk(), rest) {
        (Some(first), Some(last), _) => {
            let [first, last] = [first, last].map(|half: &[u8; 4]| u64::from(u32::from_le_bytes(*half)));
            first | shifted(last, rest.len() - 4)
        }
        (_, _, []) => 0,
        (_, _, &[first, .., last]) => {
            let middle = rest.len() / 2;
            u64::from(first) | shifted(rest[middle].into(), middle) | shifted(last.into(), rest.len() - 1)
        }
        (_, _, &[only]) => only.into(),
    }
}

/// Not zero if a byte of `word` is a backslash, DEL or beyond ASCII. It may mistake a neighbour of
/// such a byte for one, which does no harm.
fn not_plain(word: u64) -> u64 {
    let has = |byte: u8| {
        let zeroed = word ^ (ONES * u64::from(byte));
        zeroed.wrapping_sub(ONES) & !zeroed
    };
    (has(b'\\') | has(0x7f) | word) & HIGHS
}

/// `word`, whose bytes are ASCII, in lower case.
fn lower(word: u64) -> u64 {
    let from_a = word.wrapping_add(ONES * u64::from(0x80 - b'A'));
    let past_z = word.wrapping_add(ONES * u64::from(0x80 - b'Z' - 1));
    word | (((from_a & !past_z) & HIGHS) >> 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(key: &str) -> Key<'static> {
        let json = serde_json::to_vec(key).expect("text is JSON").leak();
        Key::read(json).expect("it can be decoded")
    }

    proptest! {
        #[test]
        fn lower_is_lower(bytes in proptest::array::uniform8(0u8..0x80)) {
            prop_assert_eq!(lower(u64::from_le_bytes(bytes)).to_le_bytes(), bytes.map(|byte| byte.to_ascii_lowercase()));
        }

        #[test]
        fn case_and_escapes_make_no_difference(text in "[a-zA-Z0-9_\\\\ éſ\u{7f}]{0,24}") {
            let key = read(&text);
            prop_assert_eq!(&*key.text, text.as_bytes());
            prop_assert_eq!(key.to_parsers, read(&text.to_uppercase()).to_parsers);
            prop_assert_eq!(key.to_people, read(&text.to_uppercase()).to_people);
            let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            let escaped = Key::read(json.as_bytes()).expect("it can be decoded");
            prop_assert_eq!(escaped.to_parsers, key.to_parsers);
            prop_assert_eq!(escaped.to_people, key.to_people);
        }

        #[test]
        fn a_last_word_is_what_is_left(rest in prop::collection::vec(any::<u8>(), 0..8)) {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(&rest);
            prop_assert_eq!(last_word(&rest).to_le_bytes(), word);
        }

        #[test]
        fn different_keys_differ(one in "[a-z_]{0,20}", other in "[a-z_]{0,20}") {
            prop_assert_eq!(one == other, read(&one).to_parsers == read(&other).to_parsers);
        }
    }

    #[test]
    fn look_alikes_are_alike_to_people_only() {
        let (plain, alike) = (read("path"), read("p\u{430}th"));
        assert_eq!(plain.to_people, alike.to_people);
        assert_ne!(plain.to_parsers, alike.to_parsers);
    }
}
