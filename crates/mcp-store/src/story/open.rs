//! Requests that have not been answered, by the id their sender chose and by the record they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mcp_wire::Id;

use super::Asked;
use crate::recorded::Direction;

/// Requests remembered before the oldest is forgotten. Its answer is then told as one to nothing
/// known; far more than any peer keeps open, little enough to hold.
const OPEN_MAX: usize = 65_536;
/// The bytes of their methods, subjects and ids, which peers choose.
const OPEN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The two directions number their requests independently, and so do conversations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub conversation: u32,
    pub from: Direction,
    pub id: Id,
}

#[derive(Debug, Default)]
pub(super) struct Open {
    /// By age, so that the oldest can be forgotten.
    requests: BTreeMap<u64, Request>,
    by_key: HashMap<Key, BTreeSet<u64>>,
    /// The oldest request of each record; a batch is one record with several.
    by_record: HashMap<Box<str>, u64>,
    next_age: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Request {
    key: Key,
    record: Box<str>,
    asked: Arc<Asked>,
}

impl Open {
    pub(super) fn insert(&mut self, key: Key, record: &str, asked: Arc<Asked>) {
        let (age, request) = (self.next_age, Request { key, record: record.into(), asked });
        self.next_age += 1;
        self.bytes += request.weight();
        self.by_key.entry(request.key.clone()).or_default().insert(age);
        self.by_record.entry(request.record.clone()).or_insert(age);
        self.requests.insert(age, request);
        while self.requests.len() > OPEN_MAX || self.bytes > OPEN_BYTES_MAX {
            let Some(oldest) = self.requests.first_key_value().map(|(age, _)| *age) else { return };
            self.remove(oldest);
        }
    }

    /// The request that is answered: the one in the record that the answer names, or else the oldest
    /// under its id.
    pub(super) fn take(&mut self, key: Option<Key>, record: Option<&str>) -> Option<Arc<Asked>> {
        let ages = key.and_then(|key| self.by_key.get(&key));
        let age = match record {
            None => ages?.first().copied()?,
            Some(record) => {
                let first = *self.by_record.get(record)?;
                let under_id = ages.and_then(|ages| ages.range(first..).next().copied());
                under_id.filter(|age| self.is_in(*age, record)).unwrap_or(first)
            }
        };
        self.remove(age)
    }

    fn is_in(&self, age: u64, record: &str) -> bool {
        self.requests.get(&age).is_some_and(|request| &*request.record == record)
    }

    fn remove(&mut self, age: u64) -> Option<Arc<Asked>> {
        let request = self.requests.remove(&age)?;
        self.bytes -= request.weight();
        if let Some(ages) = self.by_key.get_mut(&request.key) {
            ages.remove(&age);
            if ages.is_empty() {
                self.by_key.remove(&request.key);
            }
        }
        if self.by_record.get(&request.record) == Some(&age) {
            // The rest of a batch lies side by side.
            let next = self.requests.range(age..).next().filter(|(_, next)| next.record == request.record);
            match next.map(|(age, _)| *age) {
                Some(next) => drop(self.by_record.insert(request.record, next)),
                None => drop(self.by_record.remove(&request.record)),
            }
        }
        Some(request.asked)
    }
}

impl Request {
    fn weight(&self) -> usize {
        let id = self.key.id.heap_bytes();
        let Asked { method, name, uri, .. } = &*self.asked;
        let texts = [Some(method), name.as_ref(), uri.as_ref(), Some(&self.record)];
        id + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(sequence: u64, name: &str) -> Arc<Asked> {
        let (operation, time_ns, operation_began_ns) = (sequence, 0, 0);
        let name = Some(name.into());
        Arc::new(Asked {
            sequence,
            time_ns,
            method: "m".into(),
            name,
            uri: None,
            operation,
            operation_began_ns,
            round: 1,
            op: None,
            is_own: false,
        })
    }

    fn key(id: i64) -> Key {
        Key { conversation: 0, from: Direction::ClientToServer, id: Id::Integer(id) }
    }

    #[test]
    fn what_is_never_answered_is_forgotten() {
        let mut open = Open::default();
        for sequence in 0..2 * OPEN_MAX as u64 {
            open.insert(key(sequence as i64), &format!("r{sequence}"), asked(sequence, ""));
        }
        assert_eq!((open.requests.len(), open.by_key.len(), open.by_record.len()), (OPEN_MAX, OPEN_MAX, OPEN_MAX));
        let large = "x".repeat(OPEN_BYTES_MAX / 2);
        for sequence in 0..3 {
            open.insert(key(-1), "large", asked(sequence, &large));
        }
        assert_eq!((open.requests.len(), open.by_key.len(), open.by_record.len()), (1, 1, 1));
        assert_eq!(open.take(Some(key(-1)), None).map(|asked| asked.sequence), Some(2));
        assert_eq!((open.bytes, open.by_key.len(), open.by_record.len()), (0, 0, 0));
    }
}
