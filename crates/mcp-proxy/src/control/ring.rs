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
pub(crate) struct Room {
    pub entries: usize,
    pub bytes: usize,
}

pub(crate) struct Ring {
    room: Room,
    /// Each with its place. Places count events, and count on for ever.
    entries: VecDeque<(u64, Arc<Entry>)>,
    end: u64,
    bytes: usize,
}

pub(crate) struct Entry {
    pub what: What,
    /// As it stands in an event stream; made for the first face that wants it.
    frame: OnceLock<Bytes>,
}

pub(crate) enum What {
    /// A message, or what happened instead of one.
    Message(Box<Told>),
    Other(Event),
}

impl Entry {
    fn new(what: What) -> Self {
        Self { what, frame: OnceLock::new() }
    }

    pub(crate) fn told(&self) -> Option<&Told> {
        match &self.what {
            What::Message(told) => Some(told),
            What::Other(_) => None,
        }
    }

    pub(crate) fn frame(&self) -> Bytes {
        let make = || match &self.what {
            What::Message(told) => message_frame(tell::message(told, 0, tell::RAW_IN_LIST_MAX)),
            What::Other(event) => frame(event),
        };
        self.frame.get_or_init(make).clone()
    }

    /// How many events it stands for: one that tells of others which were missed, for all of them.
    fn events(&self) -> u64 {
        match &self.what {
            What::Other(Event::Gap(gap)) => gap.missed,
            _ => 1,
        }
    }

    fn bytes(&self) -> usize {
        /// Memory of an entry besides its message, as it counts against the room.
        const OWN_BYTES: usize = 1024;
        self.told().map_or(0, |told| told.recorded.raw.len()) + OWN_BYTES
    }
}

/// A message as an event of a stream.
pub(super) fn message_frame(message: Message) -> Bytes {
    frame(&match message.event {
        Some(_) => Event::Fault(Box::new(message)),
        None => Event::Message(Box::new(message)),
    })
}

/// An event as it stands in a stream. Line ends can only be between two values, and become blanks.
pub(super) fn frame(event: &Event) -> Bytes {
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
    pub(crate) fn new(room: Room) -> Self {
        Self { room, entries: VecDeque::new(), end: 0, bytes: 0 }
    }

    pub(crate) fn push(&mut self, what: What) {
        let entry = Entry::new(what);
        self.bytes += entry.bytes();
        let place = self.end;
        self.end += entry.events();
        self.entries.push_back((place, Arc::new(entry)));
        while self.entries.len() > self.room.entries || (self.bytes > self.room.bytes && self.entries.len() > 1) {
            let (_, gone) = self.entries.pop_front().expect("there are several");
            self.bytes -= gone.bytes();
        }
    }

    /// The place that the next entry gets.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn clear(&mut self) {
        self.bytes = 0;
        self.entries = VecDeque::new();
    }

    /// How many events from `place` on are gone, and up to `limit` entries of those that are not, each
    /// with the place after it.
    pub(crate) fn read(&self, place: u64, limit: usize) -> (u64, Vec<(u64, Arc<Entry>)>) {
        let first = self.entries.front().map_or(self.end, |(first, _)| *first);
        let from = self.entries.partition_point(|(at, _)| *at < place);
        let entries = self.entries.iter().skip(from).take(limit);
        let entries = entries.map(|(at, entry)| (at + entry.events(), Arc::clone(entry))).collect();
        (first.saturating_sub(place), entries)
    }

    /// Messages with what happened instead of some, oldest first.
    pub(crate) fn messages(&self) -> impl DoubleEndedIterator<Item = &Told> {
        self.entries.iter().filter_map(|(_, entry)| entry.told())
    }

    pub(crate) fn message(&self, sequence: u64) -> Option<&Told> {
        // The wanted one is mostly new.
        self.messages().rev().find(|told| told.recorded.sequence == sequence)
    }

    /// Changes what is known of a message.
    pub(crate) fn amend(&mut self, sequence: u64, said: Said) {
        let is_meant = |entry: &Arc<Entry>| entry.told().is_some_and(|told| told.recorded.sequence == sequence);
        if let Some((_, entry)) = self.entries.iter_mut().rev().find(|(_, entry)| is_meant(entry))
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

    fn gap(missed: u64) -> What {
        What::Other(Event::Gap(Gap { missed }))
    }

    fn mode() -> What {
        What::Other(Event::Mode(mcp_control::api::ModeChange { mode: mcp_control::api::Mode::Passthrough }))
    }

    /// What is gone, and the places after what is not.
    fn places((missed, read): (u64, Vec<(u64, Arc<Entry>)>)) -> (u64, Vec<u64>) {
        (missed, read.into_iter().map(|(after, _)| after).collect())
    }

    #[test]
    fn whoever_is_late_is_told_how_much_is_gone() {
        let mut ring = Ring::new(Room { entries: 3, bytes: usize::MAX });
        for _ in 0..5 {
            ring.push(mode());
        }
        assert_eq!(places(ring.read(0, 9)), (2, vec![3, 4, 5]));
        assert_eq!(places(ring.read(3, 1)), (0, vec![4]));
        assert_eq!(places(ring.read(5, 9)), (0, vec![]));
        ring.clear();
        assert_eq!((ring.end(), places(ring.read(4, 9))), (5, (1, vec![])));
        ring.push(mode());
        assert_eq!(places(ring.read(5, 9)), (0, vec![6]));
    }

    #[test]
    fn a_gap_that_is_gone_counts_for_all_it_stands_for() {
        let mut ring = Ring::new(Room { entries: 2, bytes: usize::MAX });
        for what in [mode(), gap(7), mode(), mode()] {
            ring.push(what);
        }
        assert_eq!(places(ring.read(0, 9)), (8, vec![9, 10]));
        assert_eq!(places(ring.read(1, 9)), (7, vec![9, 10]));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut ring = Ring::new(Room { entries: 100, bytes: 2048 });
        for _ in 0..5 {
            ring.push(mode());
        }
        assert_eq!(places(ring.read(0, 9)), (3, vec![4, 5]));
    }

    #[test]
    fn an_event_is_one_line_of_data() {
        let gap = frame(&Event::Gap(Gap { missed: 3 }));
        assert_eq!(&gap[..], b"event: gap\ndata: {\"missed\":3}\n\n");
    }
}
