//! What happened last, for faces that read along: each at its own place, and told how much it missed
//! once that place is gone.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use mcp_control::api::{Event, Message};
use mcp_store::{Said, Told};

use super::tell;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub entries: usize,
    pub bytes: usize,
}

pub struct Ring {
    room: Room,
    entries: VecDeque<Arc<Entry>>,
    /// The place of the first entry; places count on for ever.
    first: u64,
    bytes: usize,
}

pub struct Entry {
    pub what: What,
    /// As it stands in an event stream; made for the first face that wants it.
    frame: OnceLock<Bytes>,
}

pub enum What {
    /// A message, or what happened instead of one.
    Message(Box<Told>),
    Other(Event),
}

impl Entry {
    fn new(what: What) -> Self {
        Self { what, frame: OnceLock::new() }
    }

    pub fn told(&self) -> Option<&Told> {
        match &self.what {
            What::Message(told) => Some(told),
            What::Other(_) => None,
        }
    }

    pub fn frame(&self) -> Bytes {
        let make = || match &self.what {
            What::Message(told) => message_frame(tell::message(told, 0, tell::RAW_IN_LIST_MAX)),
            What::Other(event) => frame(event),
        };
        self.frame.get_or_init(make).clone()
    }

    fn bytes(&self) -> usize {
        /// What an entry costs besides its message.
        const OWN_BYTES: usize = 1024;
        self.told().map_or(0, |told| told.recorded.raw.len()) + OWN_BYTES
    }
}

/// A message as an event of a stream.
pub fn message_frame(message: Message) -> Bytes {
    frame(&match message.event {
        Some(_) => Event::Fault(Box::new(message)),
        None => Event::Message(Box::new(message)),
    })
}

/// An event as it stands in a stream. Line ends can only be between two values, and become blanks.
pub fn frame(event: &Event) -> Bytes {
    let mut frame = format!("event: {}\n", event.name());
    if let Event::Message(message) | Event::Fault(message) = event {
        frame.push_str(&format!("id: {}\n", message.sequence));
    }
    frame.push_str("data: ");
    let data = event.data();
    match data.contains(['\n', '\r']) {
        true => frame.push_str(&data.replace(['\n', '\r'], " ")),
        false => frame.push_str(&data),
    }
    frame.push_str("\n\n");
    Bytes::from(frame)
}

impl Ring {
    pub fn new(room: Room) -> Self {
        Self { room, entries: VecDeque::new(), first: 0, bytes: 0 }
    }

    pub fn push(&mut self, what: What) {
        let entry = Entry::new(what);
        self.bytes += entry.bytes();
        self.entries.push_back(Arc::new(entry));
        while self.entries.len() > self.room.entries || (self.bytes > self.room.bytes && self.entries.len() > 1) {
            let gone = self.entries.pop_front().expect("there are several");
            self.bytes -= gone.bytes();
            self.first += 1;
        }
    }

    /// The place that the next entry gets.
    pub fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub fn clear(&mut self) {
        (self.first, self.bytes) = (self.end(), 0);
        self.entries = VecDeque::new();
    }

    /// How many entries from `place` on are gone, and up to `limit` of those that are not.
    pub fn read(&self, place: u64, limit: usize) -> (u64, Vec<Arc<Entry>>) {
        let missed = self.first.saturating_sub(place);
        let from = (place + missed - self.first) as usize;
        (missed, self.entries.iter().skip(from).take(limit).cloned().collect())
    }

    /// Messages with what happened instead of some, oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Told> {
        self.entries.iter().filter_map(|entry| entry.told())
    }

    pub fn message(&self, sequence: u64) -> Option<&Told> {
        // The wanted one is mostly new.
        self.messages().rev().find(|told| told.recorded.sequence == sequence)
    }

    /// Changes what is known of a message.
    pub fn amend(&mut self, sequence: u64, said: Said) {
        let is_meant = |entry: &Arc<Entry>| entry.told().is_some_and(|told| told.recorded.sequence == sequence);
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| is_meant(entry))
            && let What::Message(told) = &entry.what
        {
            self.bytes -= entry.bytes();
            let mut told = told.clone();
            told.recorded.amend(said);
            *entry = Arc::new(Entry::new(What::Message(told)));
            self.bytes += entry.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_control::api::Gap;

    use super::*;

    fn other(missed: u64) -> What {
        What::Other(Event::Gap(Gap { missed }))
    }

    fn numbers(read: &(u64, Vec<Arc<Entry>>)) -> (u64, Vec<u64>) {
        let number = |entry: &Arc<Entry>| match &entry.what {
            What::Other(Event::Gap(gap)) => gap.missed,
            _ => unreachable!("there is nothing else"),
        };
        (read.0, read.1.iter().map(number).collect())
    }

    #[test]
    fn whoever_is_late_is_told_how_much_is_gone() {
        let mut ring = Ring::new(Room { entries: 3, bytes: usize::MAX });
        for number in 0..5 {
            ring.push(other(number));
        }
        assert_eq!(numbers(&ring.read(0, 9)), (2, vec![2, 3, 4]));
        assert_eq!(numbers(&ring.read(3, 1)), (0, vec![3]));
        assert_eq!(numbers(&ring.read(5, 9)), (0, vec![]));
        ring.clear();
        assert_eq!((ring.end(), numbers(&ring.read(4, 9))), (5, (1, vec![])));
        ring.push(other(5));
        assert_eq!(numbers(&ring.read(5, 9)), (0, vec![5]));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut ring = Ring::new(Room { entries: 100, bytes: 2048 });
        for number in 0..5 {
            ring.push(other(number));
        }
        assert_eq!(numbers(&ring.read(0, 9)), (3, vec![3, 4]));
    }

    #[test]
    fn an_event_is_one_line_of_data() {
        let gap = frame(&Event::Gap(Gap { missed: 3 }));
        assert_eq!(&gap[..], b"event: gap\ndata: {\"missed\":3}\n\n");
    }
}
