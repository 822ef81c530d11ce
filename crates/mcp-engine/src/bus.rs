//! Events for those who watch. A watcher that is slow misses events and is told how many; the data
//! path never waits for one, and does no work at all while nobody watches.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_store::{Mark, Outcome, Transport, Verdict};
use mcp_wire::Message;
use tokio::sync::mpsc;

use crate::envelope::{Lane, ProxyMessage, Side};
use crate::intercept::Held;

/// Something a watcher may want to know.
#[derive(Clone, Debug)]
pub enum Event {
    Message {
        sequence: u64,
        time_ns: u64,
        from: Side,
        conversation: u32,
        transport: Transport,
        /// The HTTP exchange that carried it; 0 where there is none.
        exchange: u64,
        /// Of the SSE event that carried it, if it had one.
        event_id: Option<Arc<[u8]>>,
        message: Message,
        correlated: Option<u64>,
        origin: Origin,
    },
    /// Something happened where a message should have been.
    Fault {
        sequence: u64,
        time_ns: u64,
        from: Side,
        conversation: u32,
        text: Arc<str>,
    },
    /// A message, told before, is parked.
    Held(Box<Held>),
    /// A message, told before, is parked no more, or left otherwise than it came.
    Outcome {
        sequence: u64,
        outcome: Arc<Outcome>,
    },
    Marked {
        sequence: u64,
        mark: Arc<Mark>,
    },
    /// What rules decided about a message: told before the message if they did before it went anywhere,
    /// and afterwards else.
    Verdict {
        sequence: u64,
        verdict: Arc<Verdict>,
    },
    /// What is held, or who may decide, is no longer what it was.
    Changed,
}

impl Event {
    /// The bytes of the message that it keeps in memory.
    pub fn size(&self) -> usize {
        match self {
            Self::Message { message, .. } => message.bytes().len(),
            Self::Held(held) => held.message.bytes().len(),
            Self::Outcome { outcome, .. } => outcome.edited.as_ref().map_or(0, |edited| edited.len()),
            Self::Fault { .. } | Self::Marked { .. } | Self::Verdict { .. } | Self::Changed => 0,
        }
    }

    pub(crate) fn message(message: &ProxyMessage, lane: Lane<'_>, origin: Origin) -> Self {
        Self::Message {
            sequence: message.sequence,
            time_ns: message.time_ns,
            from: message.from,
            conversation: message.conversation,
            transport: lane.transport,
            exchange: lane.exchange,
            event_id: (!lane.event_id.is_empty()).then(|| lane.event_id.into()),
            message: message.message.clone(),
            correlated: message.correlated,
            origin,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Peer,
    /// A line of the server's output that is no message.
    Noise,
    Proxy,
}

#[derive(Clone, Default)]
pub struct Bus {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Read on the path before anything else is done.
    watchers: AtomicUsize,
    queues: Mutex<Vec<Queue>>,
}

struct Queue {
    sender: mpsc::Sender<Event>,
    missed: Arc<AtomicU64>,
    /// Of the messages that wait.
    bytes: Arc<AtomicUsize>,
}

/// The messages that wait for one watcher hold no more than this, and one more.
const WAITING_BYTES_MAX: usize = 16 << 20;

impl Bus {
    /// Begins to watch; at most `depth` events wait to be read.
    pub fn subscribe(&self, depth: usize) -> Subscription {
        let (sender, receiver) = mpsc::channel(depth);
        let (missed, bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut queues = self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.push(Queue { sender, missed: Arc::clone(&missed), bytes: Arc::clone(&bytes) });
        self.shared.watchers.store(queues.len(), Ordering::Release);
        Subscription { receiver, missed, bytes }
    }

    /// Tells every watcher. `event` is not even made when there is none.
    pub fn publish(&self, event: impl FnOnce() -> Event) {
        if self.shared.watchers.load(Ordering::Acquire) > 0 {
            self.publish_to_all(event);
        }
    }

    /// Whoever has no room misses it, and if nobody has any, it is not made.
    #[cold]
    fn publish_to_all(&self, event: impl FnOnce() -> Event) {
        let mut queues = self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for_several = queues.len() > 1;
        let mut make = Some(event);
        let mut made: Option<Event> = None;
        queues.retain(|queue| match queue.sender.try_reserve() {
            Ok(_) if queue.bytes.load(Ordering::Relaxed) > WAITING_BYTES_MAX => {
                queue.missed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Ok(place) => {
                let event = made.clone().or_else(|| make.take().map(|make| make()));
                if is_for_several && made.is_none() {
                    made.clone_from(&event);
                }
                if let Some(event) = event {
                    queue.bytes.fetch_add(event.size(), Ordering::Relaxed);
                    place.send(event);
                }
                true
            }
            Err(mpsc::error::TrySendError::Full(())) => {
                queue.missed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(mpsc::error::TrySendError::Closed(())) => false,
        });
        self.shared.watchers.store(queues.len(), Ordering::Release);
    }
}

/// One watcher's view of the bus.
pub struct Subscription {
    receiver: mpsc::Receiver<Event>,
    missed: Arc<AtomicU64>,
    bytes: Arc<AtomicUsize>,
}

impl Subscription {
    /// The next event; `None` once the bus is gone.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.receiver.recv().await;
        self.taken(event)
    }

    pub fn try_next(&mut self) -> Option<Event> {
        let event = self.receiver.try_recv().ok();
        self.taken(event)
    }

    fn taken(&self, event: Option<Event>) -> Option<Event> {
        let size = event.as_ref().map_or(0, Event::size);
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        event
    }

    /// How many events were missed since this was last asked.
    pub fn missed(&self) -> u64 {
        self.missed.swap(0, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(sequence: u64) -> Event {
        Event::Fault { sequence, time_ns: 0, from: Side::Client, conversation: 0, text: "".into() }
    }

    #[test]
    fn nothing_is_made_for_nobody() {
        let bus = Bus::default();
        bus.publish(|| unreachable!("nobody watches"));
        drop(bus.subscribe(1));
        bus.publish(|| fault(1));
        bus.publish(|| unreachable!("the only watcher is gone"));
    }

    #[test]
    fn a_watcher_is_not_sent_more_bytes_than_it_takes() {
        let bus = Bus::default();
        let mut watcher = bus.subscribe(1_000);
        let large = Message::new(vec![b' '; WAITING_BYTES_MAX / 4].into());
        let held = |sequence| {
            let message = ProxyMessage {
                sequence,
                time_ns: 0,
                from: Side::Client,
                conversation: 0,
                message: large.clone(),
                ending: mcp_wire::Ending::Lf,
                bom: false,
                correlated: None,
            };
            Event::message(&message, Lane::PIPE, Origin::Peer)
        };
        (1..=10).for_each(|sequence| bus.publish(|| held(sequence)));
        assert_eq!(std::iter::from_fn(|| watcher.try_next()).count(), 5);
        assert_eq!(watcher.missed(), 5);
        bus.publish(|| held(11));
        assert!(watcher.try_next().is_some());
    }

    #[test]
    fn a_slow_watcher_misses_and_is_told() {
        let bus = Bus::default();
        let mut slow = bus.subscribe(2);
        let mut fast = bus.subscribe(10);
        for sequence in 1..=5 {
            bus.publish(|| fault(sequence));
        }
        assert_eq!(std::iter::from_fn(|| slow.try_next()).count(), 2);
        assert_eq!((slow.missed(), slow.missed()), (3, 0));
        assert_eq!((std::iter::from_fn(|| fast.try_next()).count(), fast.missed()), (5, 0));
    }
}
