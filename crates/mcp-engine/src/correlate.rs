//! Requests that still await an answer, and the answers that meet them.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use mcp_wire::{Id, Kind, Message, scan};

use crate::envelope::{Asked, Side};

/// Requests remembered per direction before the oldest half is forgotten: far more than any peer
/// keeps open, little enough to hold.
const PENDING_MAX: usize = 65_536;
/// Ids longer than this share `LONG_IDS_BYTES_MAX`; shorter ones are bounded by their number alone.
const LONG_ID: usize = 1_024;
/// Bytes of long ids remembered per direction and generation. One id of any length is remembered besides.
const LONG_IDS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Requests without an answer, keyed by the id their sender chose.
///
/// The two directions are separate tables: client and server number their requests independently,
/// and both like to start at 1.
#[derive(Debug, Default)]
pub struct Pending {
    from_client: Table,
    from_server: Table,
    /// Requests that the last batch answered, by id, and their sequences.
    answered_together: Vec<(Id, u64)>,
}

/// A request that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestMark {
    pub sequence: u64,
    /// Its sender no longer waits for an answer, though one may still come.
    pub cancelled: bool,
}

impl Pending {
    /// Takes note of `message`. Returns the sequence of the request it answers, if it answers one.
    pub fn correlate(&mut self, from: Side, message: &Message, sequence: u64) -> Option<u64> {
        match message.glance().kind {
            Kind::Request => {
                self.insert(from, message.id()?, sequence);
                None
            }
            Kind::Response | Kind::Error => self.table(from.other()).remove(&message.id()?).map(|mark| mark.sequence),
            Kind::Notification => {
                self.table(from).cancel(&message.cancelled_id()?);
                None
            }
            Kind::Batch => self.correlate_batch(from, message, sequence),
            Kind::OtherJson | Kind::NotJson => None,
        }
    }

    /// Remembers a request that was seen before.
    pub fn insert(&mut self, from: Side, id: Id, sequence: u64) {
        self.table(from).insert(id, RequestMark { sequence, cancelled: false });
    }

    /// Remembers a request whose sender no longer waits.
    pub fn insert_cancelled(&mut self, from: Side, id: Id, sequence: u64) {
        self.table(from).insert(id, RequestMark { sequence, cancelled: true });
    }

    /// Its sender waits for the answer to `id` no more, though one may still come.
    pub fn cancel(&mut self, from: Side, id: &Id) {
        self.table(from).cancel(id);
    }

    /// Each item of a batch counts by itself; the batch is shown as the answer to the first request
    /// it answers.
    fn correlate_batch(&mut self, from: Side, message: &Message, sequence: u64) -> Option<u64> {
        self.answered_together.clear();
        for item in scan::batch_items(message.bytes()) {
            let item = Message::new(message.bytes().slice(item.range()));
            if item.glance().kind != Kind::Batch
                && let Some(request) = self.correlate(from, &item, sequence)
            {
                self.answered_together.extend(item.id().map(|id| (id, request)));
            }
        }
        self.answered_together.first().map(|(_, request)| *request)
    }

    /// Whether a batch answers the request that its exchange was opened for, which no table has.
    pub fn note_asked_in_batch(&mut self, batch: &Message, asked: &Asked) -> bool {
        let is_answered = scan::batch_items(batch.bytes()).any(|item| {
            let item = Message::new(batch.bytes().slice(item.range()));
            item.glance().kind.is_response() && item.id().as_ref() == Some(&asked.id)
        });
        if is_answered {
            self.answered_together.insert(0, (asked.id.clone(), asked.sequence));
        }
        is_answered
    }

    /// Takes the requests that the last batch answered.
    pub fn take_answered_together(&mut self) -> Vec<(Id, u64)> {
        std::mem::take(&mut self.answered_together)
    }

    pub fn awaits(&self, from: Side, id: &Id) -> bool {
        match from {
            Side::Client => &self.from_client,
            Side::Server => &self.from_server,
        }
        .contains(id)
    }

    /// Forgets the oldest request under `id` and returns its mark.
    pub fn take(&mut self, from: Side, id: &Id) -> Option<RequestMark> {
        self.table(from).remove(id)
    }

    /// Forgets the request `sequence` under `id`, whatever else has that id.
    pub fn take_very(&mut self, from: Side, id: &Id, sequence: u64) -> Option<RequestMark> {
        self.table(from).remove_very(id, sequence)
    }

    /// Forgets every request `from` waits on and returns them, oldest first.
    pub fn take_all(&mut self, from: Side) -> Vec<(Id, RequestMark)> {
        let mut all = self.table(from).drain();
        all.retain(|(_, mark)| !mark.cancelled);
        all.sort_by_key(|(_, mark)| mark.sequence);
        all
    }

    /// Requests `from` waits on.
    pub fn count(&self, from: Side) -> usize {
        match from {
            Side::Client => self.from_client.len(),
            Side::Server => self.from_server.len(),
        }
    }

    fn table(&mut self, from: Side) -> &mut Table {
        match from {
            Side::Client => &mut self.from_client,
            Side::Server => &mut self.from_server,
        }
    }
}

/// Two generations: when the young one is full the old one is forgotten. Bounded, and forgetting
/// the oldest costs nothing per request.
#[derive(Debug, Default)]
struct Table {
    young: Generation,
    old: Generation,
    /// Requests that were put into the young one, answered or not.
    inserted: usize,
}

#[derive(Debug, Default)]
struct Generation {
    requests: HashMap<Id, Marks, RandomState>,
    /// Bytes of the long ids among them.
    long_bytes: usize,
}

#[derive(Debug)]
struct Marks {
    first: RequestMark,
    /// Later requests under the same id; nearly always empty, and then without an allocation.
    more: VecDeque<RequestMark>,
}

impl Table {
    fn insert(&mut self, id: Id, mark: RequestMark) {
        let long_bytes = long_bytes(&id);
        let is_full = long_bytes > 0
            && self.young.long_bytes > 0
            && self.young.long_bytes.saturating_add(long_bytes) > LONG_IDS_BYTES_MAX;
        if is_full || self.inserted >= PENDING_MAX / 2 && !self.young.requests.is_empty() {
            self.old = std::mem::take(&mut self.young);
            self.inserted = 0;
        }
        self.inserted += 1;
        self.young.long_bytes += long_bytes;
        match self.young.requests.entry(id) {
            std::collections::hash_map::Entry::Occupied(mut entry) => entry.get_mut().more.push_back(mark),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(Marks { first: mark, more: VecDeque::new() });
            }
        }
    }

    /// The oldest request under `id` is the one that is answered first.
    fn remove(&mut self, id: &Id) -> Option<RequestMark> {
        for (generation, is_young) in [(&mut self.old, false), (&mut self.young, true)] {
            let Some(mut marks) = generation.requests.remove(id) else { continue };
            let first = marks.first;
            self.inserted -= usize::from(is_young);
            generation.long_bytes -= long_bytes(id);
            if let Some(next) = marks.more.pop_front() {
                marks.first = next;
                generation.requests.insert(id.clone(), marks);
            }
            return Some(first);
        }
        None
    }

    fn remove_very(&mut self, id: &Id, sequence: u64) -> Option<RequestMark> {
        for (generation, is_young) in [(&mut self.old, false), (&mut self.young, true)] {
            let Some(marks) = generation.requests.get_mut(id) else { continue };
            let mark = if marks.first.sequence == sequence {
                let first = marks.first;
                match marks.more.pop_front() {
                    Some(next) => marks.first = next,
                    None => drop(generation.requests.remove(id)),
                }
                first
            } else if let Some(at) = marks.more.iter().position(|mark| mark.sequence == sequence) {
                marks.more.remove(at)?
            } else {
                continue;
            };
            self.inserted -= usize::from(is_young);
            generation.long_bytes -= long_bytes(id);
            return Some(mark);
        }
        None
    }

    fn cancel(&mut self, id: &Id) {
        for generation in [&mut self.old, &mut self.young] {
            if let Some(marks) = generation.requests.get_mut(id) {
                marks.first.cancelled = true;
            }
        }
    }

    fn contains(&self, id: &Id) -> bool {
        self.young.requests.contains_key(id) || self.old.requests.contains_key(id)
    }

    fn len(&self) -> usize {
        let all =
            |marks: &Marks| std::iter::once(&marks.first).chain(&marks.more).filter(|mark| !mark.cancelled).count();
        self.old.requests.values().chain(self.young.requests.values()).map(all).sum()
    }

    fn drain(&mut self) -> Vec<(Id, RequestMark)> {
        let mut all = Vec::new();
        let (old, young) = (std::mem::take(&mut self.old), std::mem::take(&mut self.young));
        self.inserted = 0;
        for (id, marks) in old.requests.into_iter().chain(young.requests) {
            all.extend(marks.more.into_iter().map(|mark| (id.clone(), mark)));
            all.push((id, marks.first));
        }
        all
    }
}

/// Bytes that an id holds besides its place in the table, if it is a long one.
fn long_bytes(id: &Id) -> usize {
    Some(id.heap_bytes()).filter(|len| *len > LONG_ID).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(pending: &mut Pending, from: Side, sequence: u64, text: &str) -> Option<u64> {
        pending.correlate(from, &Message::new(text.to_owned().into()), sequence)
    }

    #[test]
    fn answers_meet_their_requests() {
        let mut pending = Pending::default();
        send(&mut pending, Side::Client, 1, r#"{"id":1,"method":"a"}"#);
        send(&mut pending, Side::Client, 2, r#"{"id":"1","method":"b"}"#);
        send(&mut pending, Side::Server, 3, r#"{"id":1,"method":"sampling/createMessage"}"#);
        assert_eq!(send(&mut pending, Side::Server, 4, r#"{"result":{},"id":"1"}"#), Some(2));
        assert_eq!(send(&mut pending, Side::Client, 5, r#"{"id":1,"result":{}}"#), Some(3));
        assert_eq!(send(&mut pending, Side::Server, 6, r#"{"id":1,"error":{}}"#), Some(1));
        assert_eq!(send(&mut pending, Side::Server, 7, r#"{"id":1,"result":{}}"#), None);
    }

    #[test]
    fn one_id_used_for_everything_is_answered_in_order() {
        let mut pending = Pending::default();
        for sequence in 1..=3 {
            send(&mut pending, Side::Client, sequence, r#"{"id":1,"method":"a"}"#);
        }
        for sequence in 1..=3 {
            assert_eq!(send(&mut pending, Side::Server, 9, r#"{"id":1,"result":{}}"#), Some(sequence));
        }
    }

    #[test]
    fn a_cancelled_request_waits_no_more_but_a_late_answer_is_known() {
        let mut pending = Pending::default();
        send(&mut pending, Side::Client, 1, r#"{"id":7,"method":"a"}"#);
        send(&mut pending, Side::Client, 2, r#"{"id":8,"method":"a"}"#);
        send(&mut pending, Side::Client, 3, r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#);
        assert_eq!(pending.count(Side::Client), 1);
        assert_eq!(send(&mut pending, Side::Server, 4, r#"{"id":7,"result":{}}"#), Some(1));
        let open = pending.take_all(Side::Client);
        assert_eq!(open, [(Id::Integer(8), RequestMark { sequence: 2, cancelled: false })]);
    }

    #[test]
    fn batches_count_item_by_item() {
        let mut pending = Pending::default();
        send(&mut pending, Side::Client, 1, r#"[{"id":1,"method":"a"},{"id":2,"method":"b"},{"method":"n"}]"#);
        assert_eq!(pending.count(Side::Client), 2);
        assert_eq!(send(&mut pending, Side::Server, 2, r#"[{"id":2,"result":1},{"id":1,"result":1}]"#), Some(1));
        assert_eq!(pending.count(Side::Client), 0);
    }

    #[test]
    fn a_peer_that_never_answers_costs_a_bounded_table() {
        let mut pending = Pending::default();
        for sequence in 1..=3 * PENDING_MAX as u64 {
            send(&mut pending, Side::Client, sequence, &format!(r#"{{"id":{sequence},"method":"a"}}"#));
        }
        assert!(pending.count(Side::Client) <= PENDING_MAX);
        let newest = 3 * PENDING_MAX as u64;
        assert_eq!(send(&mut pending, Side::Server, 1, &format!(r#"{{"id":{newest},"result":1}}"#)), Some(newest));
    }

    #[test]
    fn long_ids_are_remembered_within_a_bound_of_bytes() {
        let mut pending = Pending::default();
        let id = |number: usize, len: usize| format!("{number:04}{}", "x".repeat(len - 4));
        let ask = |pending: &mut Pending, number, len| {
            send(pending, Side::Client, number as u64, &format!(r#"{{"id":"{}","method":"a"}}"#, id(number, len)))
        };
        ask(&mut pending, 1, 2 * LONG_IDS_BYTES_MAX);
        assert_eq!(pending.count(Side::Client), 1, "one of any length");
        for number in 2..=100 {
            ask(&mut pending, number, LONG_IDS_BYTES_MAX / 4);
        }
        assert_eq!(pending.count(Side::Client), 4 + 3, "two generations");
        let answer = format!(r#"{{"id":"{}","result":1}}"#, id(100, LONG_IDS_BYTES_MAX / 4));
        assert_eq!(send(&mut pending, Side::Server, 1, &answer), Some(100));
        pending.take_all(Side::Client);
        for number in 1..=4 {
            ask(&mut pending, number, LONG_IDS_BYTES_MAX / 4);
        }
        assert_eq!(pending.count(Side::Client), 4, "ids that were answered cost nothing any more");
    }
}
