//! Heads of HTTP exchanges that were written before. A client says the same with every request but
//! for the length of its body, and so does its server, so such a head is written once and then named
//! by its number. Readers get it back whole.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;

/// Heads that can be named again; more than a few clients and their servers use.
const HEADS_MAX: usize = 256;

/// What makes two heads the same: everything in them but the length of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadKey {
    pub hash: u64,
    /// The length that the head gives its body, if it gives one in the usual spelling.
    pub content_length: Option<u64>,
}

/// The writer's side: which heads were written, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Written {
    numbers: HashMap<u64, u64, BuildHasherDefault<AsItIs>>,
    order: VecDeque<u64>,
    count: u64,
}

/// For keys that are hashes already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Written {
    /// The number of a head like this one, if it was written lately.
    pub(super) fn find(&self, key: HeadKey) -> Option<u64> {
        self.numbers.get(&key.hash).copied()
    }

    /// Gives a new head its number.
    pub(super) fn add(&mut self, key: HeadKey) -> u64 {
        self.count += 1;
        self.numbers.insert(key.hash, self.count);
        self.order.push_back(key.hash);
        if self.order.len() > HEADS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
        self.count
    }

    /// What was written last was lost, so nothing may be named by it.
    pub(super) fn forget(&mut self) {
        self.numbers.clear();
        self.order.clear();
    }
}

/// The reader's side: the heads that may be named.
#[derive(Debug, Default)]
pub(super) struct Seen {
    heads: VecDeque<(u64, Bytes)>,
}

impl Seen {
    pub(super) fn add(&mut self, number: u64, head: &Bytes) {
        self.heads.push_back((number, head.clone()));
        if self.heads.len() > HEADS_MAX {
            self.heads.pop_front();
        }
    }

    /// The head that `payload` names, whole; empty if it is not known.
    pub(super) fn resolve(&self, number: u64, payload: &[u8]) -> Bytes {
        let found = self.heads.iter().rev().find(|(known, _)| *known == number);
        let Some((_, head)) = found else { return Bytes::new() };
        match payload.first_chunk().map(|length| u64::from_le_bytes(*length)) {
            Some(length) => with_content_length(head, length),
            None => head.clone(),
        }
    }
}

const CONTENT_LENGTH: &[u8] = b"\r\ncontent-length: ";

fn with_content_length(head: &Bytes, length: u64) -> Bytes {
    let Some(at) = head.windows(CONTENT_LENGTH.len()).position(|window| window == CONTENT_LENGTH) else {
        return head.clone();
    };
    let value = at + CONTENT_LENGTH.len();
    let digits = head[value..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    [&head[..value], length.to_string().as_bytes(), &head[value + digits..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_with_the_length_of_its_own_body() {
        let mut seen = Seen::default();
        seen.add(3, &Bytes::from_static(b"POST / HTTP/1.1\r\ncontent-length: 12\r\nx: y\r\n"));
        let again = seen.resolve(3, &4567u64.to_le_bytes());
        assert_eq!(again, &b"POST / HTTP/1.1\r\ncontent-length: 4567\r\nx: y\r\n"[..]);
        assert_eq!(seen.resolve(3, b""), &b"POST / HTTP/1.1\r\ncontent-length: 12\r\nx: y\r\n"[..]);
        assert!(seen.resolve(4, b"").is_empty());
    }

    #[test]
    fn what_the_writer_names_the_reader_still_knows() {
        let (mut written, mut seen) = (Written::default(), Seen::default());
        for hash in 0..1_000 {
            let key = HeadKey { hash: hash % 300, content_length: None };
            match written.find(key) {
                Some(number) => assert_eq!(seen.resolve(number, b""), (hash % 300).to_string()),
                None => seen.add(written.add(key), &Bytes::from((hash % 300).to_string())),
            }
        }
        written.forget();
        assert_eq!(written.find(HeadKey { hash: 299, content_length: None }), None);
    }
}
