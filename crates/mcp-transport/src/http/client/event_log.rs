//! What was sent on the streams of a session, so that a client whose connection broke can ask for
//! the rest. Bounded: the oldest is forgotten first.

use std::collections::VecDeque;

use bytes::Bytes;

/// Events, and their bytes, that a session keeps for a client that resumes, and for one without a stream. The
/// newest event is kept however large it is.
pub const EVENTS_MAX: usize = 256;
pub const BYTES_MAX: usize = 1024 * 1024;

/// Names one event: the stream it was sent on, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    pub stream: u64,
    pub place: u64,
}

impl EventId {
    /// Whether it could have been given to anybody: places are counted from 1.
    pub fn is_real(self) -> bool {
        self.place > 0
    }

    pub fn parse(text: &[u8]) -> Option<Self> {
        let (stream, place) = std::str::from_utf8(text).ok()?.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, place: place.parse().ok()? })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.stream, self.place)
    }
}

#[derive(Debug, Default)]
pub struct EventLog {
    events: VecDeque<(EventId, Bytes)>,
    bytes: usize,
}

impl EventLog {
    /// Keeps an event as it was encoded.
    pub fn keep(&mut self, id: EventId, event: Bytes) {
        self.bytes += event.len();
        self.events.push_back((id, event));
        // The newest is kept however large it is: it is what a client would ask for.
        while self.events.len() > EVENTS_MAX || self.bytes > BYTES_MAX && self.events.len() > 1 {
            if let Some((_, event)) = self.events.pop_front() {
                self.bytes -= event.len();
            }
        }
    }

    /// What came on the stream of `last` after it, in order. Of an event that was never sent, nothing.
    pub fn after(&self, last: EventId) -> Vec<Bytes> {
        let is_later = |id: EventId| last.is_real() && id.stream == last.stream && id.place > last.place;
        let later = self.events.iter().filter(|(id, _)| is_later(*id));
        later.map(|(_, event)| event.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_resumes_by_itself() {
        let mut log = EventLog::default();
        for place in 1..=3 {
            for stream in 1..=2 {
                log.keep(EventId { stream, place }, Bytes::from(format!("{stream}-{place}")));
            }
        }
        assert_eq!(log.after(EventId { stream: 1, place: 1 }), ["1-2", "1-3"]);
        assert_eq!(log.after(EventId { stream: 2, place: 3 }), Vec::<Bytes>::new());
        assert_eq!(log.after(EventId { stream: 9, place: 1 }), Vec::<Bytes>::new());
        assert_eq!(log.after(EventId { stream: 1, place: 0 }), Vec::<Bytes>::new(), "nobody was given this id");
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut log = EventLog::default();
        for place in 1..=1_000 {
            log.keep(EventId { stream: 1, place }, Bytes::from_static(b"x"));
        }
        assert_eq!(log.after(EventId { stream: 1, place: 1 }).len(), EVENTS_MAX);
        log.keep(EventId { stream: 1, place: 1_001 }, vec![0; BYTES_MAX + 1].into());
        assert_eq!(log.after(EventId { stream: 1, place: 1 }).len(), 1);
    }

    #[test]
    fn ids_that_were_never_given_are_none() {
        assert_eq!(EventId::parse(b"3-17"), Some(EventId { stream: 3, place: 17 }));
        for forged in [&b""[..], b"3", b"3-", b"-1", b"a-b", b"3-17-1", b"\xff-1"] {
            assert_eq!(EventId::parse(forged), None);
        }
    }
}
