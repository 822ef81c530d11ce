//! Events for those who watch. A watcher that is slow misses events and is told how many; the data
//! path never waits for one, and does no work at all while nobody watches.

mod pace;

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_store::{Mark, Outcome, Transport, Verdict};
use mcp_wire::Message;
use tokio::sync::{Notify, mpsc};

use crate::envelope::{Lane, ProxyMessage, Side};
use crate::intercept::Held;

pub use pace::{BURST, Pace};

/// Something a watcher may want to know.
#[derive(Clone, Debug)]
pub enum Event {
    Message {
        sequence: u64,
        time_ns: u64,
        from: Side,
        conversation: u32,
        /// The server of a gateway that the conversation is with.
        upstream: Option<Arc<str>>,
        transport: Transport,
        /// The HTTP exchange that carried it; 0 where there is none.
        exchange: u64,
        /// Of the SSE event that carried it, if it had one.
        event_id: Option<Arc<[u8]>>,
        message: Message,
        correlated: Option<u64>,
        /// The message of another conversation that a gateway made this one of.
        parent: Option<u64>,
        origin: Origin,
    },
    /// Something happened where a message should have been.
    Fault {
        sequence: u64,
        time_ns: u64,
        from: Side,
        conversation: u32,
        upstream: Option<Arc<str>>,
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
        is_ahead: bool,
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

    pub(crate) fn message(message: &ProxyMessage, upstream: Option<Arc<str>>, lane: Lane<'_>, origin: Origin) -> Self {
        Self::Message {
            sequence: message.sequence,
            time_ns: message.time_ns,
            from: message.from,
            conversation: message.conversation,
            upstream,
            transport: lane.transport,
            exchange: lane.exchange,
            event_id: (!lane.event_id.is_empty()).then(|| lane.event_id.into()),
            message: message.message.clone(),
            correlated: message.correlated,
            parent: lane.parent_of(message),
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
    lost: Arc<Lost>,
    /// Of the messages that wait.
    bytes: Arc<AtomicUsize>,
    wanted: Option<Wanted>,
}

/// How many messages a watcher wants.
struct Wanted {
    per_second: Arc<AtomicU32>,
    pace: Pace,
    /// Places that messages leave to everything else.
    kept_free: usize,
    /// The newest message, or the one of which only the verdict was told so far, and whether it is wanted.
    /// Both are told, or neither.
    decided: (u64, bool),
}

/// What a watcher was not told.
#[derive(Default)]
struct Lost {
    messages: AtomicU64,
    others: AtomicU64,
    /// Something was.
    is_some: Notify,
}

/// How many events a watcher was not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Messages, and what happened instead of some.
    pub messages: u64,
    pub others: u64,
}

/// Which message an event is about.
#[derive(Clone, Copy)]
struct About {
    sequence: u64,
    time_ns: u64,
    /// It tells of the message itself.
    is_message: bool,
}

/// The messages that wait for one watcher hold no more than this, and one more.
const WAITING_BYTES_MAX: usize = 16 << 20;

impl Bus {
    /// Begins to watch; at most `depth` events wait to be read.
    pub fn subscribe(&self, depth: usize) -> Subscription {
        self.watch(depth, None)
    }

    /// Begins to watch, and is told no more than so many messages a second, which may change. At most
    /// `messages` of them wait to be read, and `others` of the events that are not thinned out.
    pub fn subscribe_at(&self, per_second: Arc<AtomicU32>, messages: usize, others: usize) -> Subscription {
        let pace = Pace::default();
        let wanted = Wanted { per_second, pace, kept_free: others, decided: (0, true) };
        // Each may come with a verdict.
        self.watch(2 * messages + others, Some(wanted))
    }

    fn watch(&self, depth: usize, wanted: Option<Wanted>) -> Subscription {
        let (sender, receiver) = mpsc::channel(depth);
        let (lost, bytes) = (Arc::<Lost>::default(), Arc::new(AtomicUsize::new(0)));
        let mut queues = self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.push(Queue { sender, lost: Arc::clone(&lost), bytes: Arc::clone(&bytes), wanted });
        self.shared.watchers.store(queues.len(), Ordering::Release);
        Subscription { receiver, lost, bytes }
    }

    /// Tells every watcher. `event` is not even made when there is none.
    pub fn publish(&self, event: impl FnOnce() -> Event) {
        if self.shared.watchers.load(Ordering::Acquire) > 0 {
            self.publish_to_all(None, event);
        }
    }

    /// The same for a message, or for what happened instead of one.
    pub fn publish_message(&self, sequence: u64, time_ns: u64, event: impl FnOnce() -> Event) {
        if self.shared.watchers.load(Ordering::Acquire) > 0 {
            self.publish_to_all(Some(About { sequence, time_ns, is_message: true }), event);
        }
    }

    /// The same for something about a message that is told right before it.
    pub fn publish_ahead(&self, sequence: u64, time_ns: u64, event: impl FnOnce() -> Event) {
        if self.shared.watchers.load(Ordering::Acquire) > 0 {
            self.publish_to_all(Some(About { sequence, time_ns, is_message: false }), event);
        }
    }

    /// Whoever has no room misses it, and if nobody has any, it is not made.
    #[cold]
    fn publish_to_all(&self, about: Option<About>, event: impl FnOnce() -> Event) {
        let mut queues = self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for_several = queues.len() > 1;
        let is_message = about.is_some_and(|about| about.is_message);
        let mut make = Some(event);
        let mut made: Option<Event> = None;
        queues.retain_mut(|queue| {
            if !queue.wants(about) {
                // A verdict goes with its message, which is counted.
                if is_message && !queue.sender.is_closed() {
                    queue.lost.count(true);
                }
                return !queue.sender.is_closed();
            }
            match queue.sender.try_reserve() {
                Ok(_) if queue.bytes.load(Ordering::Relaxed) > WAITING_BYTES_MAX => {
                    queue.lost.count(is_message);
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
                    queue.lost.count(is_message);
                    true
                }
                Err(mpsc::error::TrySendError::Closed(())) => false,
            }
        });
        self.shared.watchers.store(queues.len(), Ordering::Release);
    }
}

impl Queue {
    fn wants(&mut self, about: Option<About>) -> bool {
        let (Some(wanted), Some(about)) = (&mut self.wanted, about) else { return true };
        if wanted.decided.0 != about.sequence {
            let has_room = self.sender.capacity() > wanted.kept_free;
            let per_second = wanted.per_second.load(Ordering::Relaxed);
            wanted.decided = (about.sequence, has_room && wanted.pace.admits(about.time_ns, per_second));
        }
        wanted.decided.1
    }
}

impl Lost {
    fn count(&self, is_message: bool) {
        let count = if is_message { &self.messages } else { &self.others };
        if count.fetch_add(1, Ordering::AcqRel) == 0 {
            self.is_some.notify_one();
        }
    }
}

/// One watcher's view of the bus.
pub struct Subscription {
    receiver: mpsc::Receiver<Event>,
    lost: Arc<Lost>,
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
    pub fn missed(&self) -> Missed {
        let take = |count: &AtomicU64| count.swap(0, Ordering::AcqRel);
        Missed { messages: take(&self.lost.messages), others: take(&self.lost.others) }
    }

    /// Waits until something was missed since that was last asked, or waited for.
    pub fn something_missed(&self) -> impl Future<Output = ()> + use<> {
        let lost = Arc::clone(&self.lost);
        async move { lost.is_some.notified().await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(sequence: u64) -> Event {
        Event::Fault { sequence, time_ns: 0, from: Side::Client, conversation: 0, upstream: None, text: "".into() }
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
                upstream: crate::envelope::Upstream::ONLY,
                message: large.clone(),
                ending: mcp_wire::Ending::Lf,
                bom: false,
                correlated: None,
            };
            Event::message(&message, None, Lane::PIPE, Origin::Peer)
        };
        (1..=10).for_each(|sequence| bus.publish(|| held(sequence)));
        assert_eq!(std::iter::from_fn(|| watcher.try_next()).count(), 5);
        assert_eq!(watcher.missed().others, 5);
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
        assert_eq!((slow.missed().others, slow.missed().others), (3, 0));
        assert_eq!((std::iter::from_fn(|| fast.try_next()).count(), fast.missed()), (5, Missed::default()));
    }

    fn verdict(sequence: u64) -> Event {
        let verdict = Verdict { what: mcp_store::VerdictKind::Allow, rule: None, operation: None, audit: None };
        Event::Verdict { sequence, verdict: verdict.into(), is_ahead: true }
    }

    /// Of messages no more is even made than wanted; what is told ahead of one goes with it.
    #[test]
    fn messages_are_thinned_out_and_nothing_else_is() {
        let (bus, made) = (Bus::default(), std::cell::Cell::new(0));
        let mut watcher = bus.subscribe_at(Arc::new(1.into()), 2 * BURST as usize, 100);
        let count = 2 * u64::from(BURST);
        for sequence in 1..=count {
            bus.publish_ahead(sequence, 0, || verdict(sequence));
            bus.publish_message(sequence, 0, || {
                made.set(made.get() + 1);
                fault(sequence)
            });
            if sequence % 64 == 0 {
                bus.publish(|| Event::Changed);
            }
        }
        assert_eq!(made.get(), BURST);
        let (mut told, mut decided, mut changed) = (Vec::new(), Vec::new(), 0);
        while let Some(event) = watcher.try_next() {
            match event {
                Event::Fault { sequence, .. } => told.push(sequence),
                Event::Verdict { sequence, .. } => decided.push(sequence),
                _ => changed += 1,
            }
        }
        let missed = watcher.missed();
        assert_eq!((missed.messages, missed.others), (count - u64::from(BURST), 0));
        assert_eq!(told, (1..=u64::from(BURST)).collect::<Vec<_>>());
        assert_eq!((decided, changed), (told, count / 64));
    }

    #[test]
    fn messages_leave_room_for_other_events() {
        let bus = Bus::default();
        let mut watcher = bus.subscribe_at(Arc::new(10_000.into()), 5, 3);
        for sequence in 1..=20 {
            bus.publish_message(sequence, 0, || fault(sequence));
        }
        (0..4).for_each(|_| bus.publish(|| Event::Changed));
        assert_eq!(std::iter::from_fn(|| watcher.try_next()).count(), 13);
        assert_eq!(watcher.missed(), Missed { messages: 10, others: 1 });
    }

    #[tokio::test]
    async fn whoever_misses_something_is_told_though_nothing_comes() {
        let bus = Bus::default();
        let watcher = bus.subscribe_at(Arc::new(1.into()), 0, 1);
        let missed = watcher.something_missed();
        bus.publish_message(1, 0, || unreachable!("there is no room"));
        missed.await;
        assert_eq!(watcher.missed().messages, 1);
    }
}
