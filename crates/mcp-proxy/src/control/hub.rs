//! Brings what the bus tells to the faces. One task listens to the bus, and only while a face reads
//! along; it looks at what came in one go and then sleeps, so that the data path is not made to wake
//! it for each message.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_control::api;
use mcp_engine::bus::{BURST, Missed};
use mcp_engine::{Bus, Event, Subscription};
use mcp_store::{Recorded, Said, Story, Told, Verdict};
use tokio::sync::{Notify, oneshot, watch};
use uuid::Uuid;

use super::reply::Refusal;
use super::ring::{Ring, Room, What};
use super::shared::{Shared, Standing};
use super::{heard, history, holds, policy, tell};

/// Event streams at once; a person has a few.
const FACES_MAX: usize = 64;
/// Messages, and other events, that wait for the hub; further ones reach no face and are counted.
const WAITING_MAX: usize = BURST as usize;
const OTHERS_WAITING_MAX: usize = 1_024;
/// Messages in a second that are told to a face which does not say how many it wants, and at most.
pub(super) const PER_SECOND_MAX: u32 = 10_000;
/// Sleep after each look, so that the data path need not wake the hub for each message.
const EVERY: Duration = Duration::from_millis(10);
/// Further sleep for each event. An event costs about ten microseconds here and in the face until it is shown, and
/// watching may use no more than a tenth of a core. Faster events are missed by faces, but not by the recording.
const REST_PER_EVENT: Duration = Duration::from_micros(100);
/// Further sleep for each KiB that the events carry, for the same reason.
const REST_PER_KIB: Duration = Duration::from_micros(150);
/// Time until a face hears that it missed events, if no other event tells it first.
const GAP_AFTER: Duration = Duration::from_millis(100);
/// The longest sleep: no face waits longer for an event.
const REST_MAX: Duration = Duration::from_millis(100);
/// Events that a face can fall behind by; older messages are read as history.
const ROOM: Room = Room { entries: 4_096, bytes: 16 << 20 };
/// Messages read again before the first event, so that an answer is shown with its request.
const FOREWORD: u32 = 512;

pub(crate) struct Hub {
    bus: Bus,
    ring: Mutex<Ring>,
    feed: Mutex<Feed>,
    wake: Notify,
    /// There are more faces or fewer.
    faces_changed: Notify,
    grown: watch::Sender<()>,
    /// What the most demanding face wants.
    per_second: Arc<AtomicU32>,
}

#[derive(Default)]
struct Feed {
    /// How many messages in a second each face wants to be made for it.
    faces: Vec<u32>,
    /// The bus is listened to.
    is_on: bool,
    /// For the task that listens, once.
    subscription: Option<Subscription>,
}

/// A face that reads along, for as long as this is held.
pub(crate) struct Reader {
    hub: Arc<Hub>,
    pub place: u64,
    grown: watch::Receiver<()>,
    per_second: u32,
}

impl Hub {
    pub(crate) fn new(bus: Bus) -> Arc<Self> {
        let ring = Ring::new(ROOM).into();
        Arc::new(Self {
            bus,
            ring,
            feed: Mutex::default(),
            wake: Notify::new(),
            faces_changed: Notify::new(),
            grown: watch::channel(()).0,
            per_second: Arc::default(),
        })
    }

    pub(crate) fn faces(&self) -> usize {
        self.lock_feed().faces.len()
    }

    /// Waits until there were more faces or fewer since this was last waited for.
    pub(crate) async fn faces_changed(&self) {
        self.faces_changed.notified().await;
    }

    /// From now on everything that happens can be read from the place returned, with so many messages a
    /// second or more, as others want them.
    pub(crate) fn attach(self: &Arc<Self>, per_second: u32) -> Result<Reader, Refusal> {
        let mut feed = self.lock_feed();
        if feed.faces.len() >= FACES_MAX {
            return Err(Refusal::too_many(format!("{FACES_MAX} faces read along already")));
        }
        feed.faces.push(per_second);
        self.keep_pace(&feed);
        self.faces_changed.notify_one();
        self.switch_on(&mut feed);
        let (place, grown) = (self.ring().end(), self.grown.subscribe());
        Ok(Reader { hub: Arc::clone(self), place, grown, per_second })
    }

    fn keep_pace(&self, feed: &Feed) {
        self.per_second.store(feed.faces.iter().copied().max().unwrap_or(0), Ordering::Relaxed);
    }

    fn switch_on(&self, feed: &mut Feed) {
        if !feed.is_on {
            feed.is_on = true;
            feed.subscription =
                Some(self.bus.subscribe_at(Arc::clone(&self.per_second), WAITING_MAX, OTHERS_WAITING_MAX));
            self.wake.notify_one();
        }
    }

    /// Stops listening if nobody reads along any more.
    fn switch_off(&self) -> bool {
        let mut feed = self.lock_feed();
        let is_idle = feed.faces.is_empty();
        if is_idle {
            feed.is_on = false;
            self.ring().clear();
        }
        is_idle
    }

    /// Tells all faces something that did not come over the bus.
    pub(crate) fn tell(&self, event: api::Event) {
        if self.lock_feed().is_on {
            self.ring().push(What::Other(event));
            self.grown.send_replace(());
        }
    }

    pub(crate) fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Waits until there may be more to read.
    pub(crate) async fn grown(&mut self) {
        let _ = self.grown.changed().await;
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut feed = self.hub.lock_feed();
        if let Some(at) = feed.faces.iter().position(|per_second| *per_second == self.per_second) {
            feed.faces.swap_remove(at);
        }
        self.hub.keep_pace(&feed);
        self.hub.faces_changed.notify_one();
        if feed.faces.is_empty() {
            self.hub.wake.notify_one();
        }
    }
}

/// Listens to the bus while somebody reads along. When it is told to stop, it tells what is left.
pub(super) async fn listen(shared: Shared, mut stopped: oneshot::Receiver<()>) {
    let hub = &shared.hub;
    loop {
        let subscription = hub.lock_feed().subscription.take();
        let Some(mut subscription) = subscription else {
            tokio::select! {
                () = hub.wake.notified() => continue,
                _ = &mut stopped => return,
            }
        };
        let mut teller = Teller::new(&shared).await;
        loop {
            let missed = subscription.something_missed();
            let gap_is_due = async {
                missed.await;
                tokio::time::sleep(GAP_AFTER).await;
            };
            let event = tokio::select! {
                event = subscription.next() => match event {
                    None => return,
                    event => event,
                },
                () = gap_is_due => None,
                () = hub.wake.notified() => match hub.switch_off() {
                    true => break,
                    false => continue,
                },
                _ = &mut stopped => {
                    teller.take_rest(&mut subscription).await;
                    return;
                }
            };
            let rest = teller.take_all(event, &mut subscription).await;
            hub.grown.send_replace(());
            let rest = tokio::time::sleep(EVERY.max(rest));
            tokio::select! {
                () = rest => {}
                _ = &mut stopped => {
                    teller.take_rest(&mut subscription).await;
                    return;
                }
            }
        }
    }
}

/// Turns what the bus says into what faces are told.
struct Teller<'a> {
    shared: &'a Shared,
    story: Option<Story>,
    session: Uuid,
    earlier: u64,
    /// What was last told of these.
    mode: api::Mode,
    breakpoints: Vec<api::Breakpoint>,
    policy: Option<api::Governed>,
    /// What was decided about the next message before it is told.
    decided: Option<(u64, Arc<Verdict>)>,
}

impl<'a> Teller<'a> {
    async fn new(shared: &'a Shared) -> Self {
        let mut teller = Self {
            shared,
            story: None,
            session: shared.card.id,
            earlier: 0,
            mode: api::Mode::Passthrough,
            breakpoints: Vec::new(),
            policy: None,
            decided: None,
        };
        if let Ok(standing) = shared.standing().await {
            teller.place(&standing);
            teller.mode = standing.status.mode;
            teller.breakpoints = tell::breakpoints(&standing.status.breakpoints);
            teller.policy = policy::governed(&standing.status);
        }
        teller
    }

    /// Messages have ids of the session that they are in.
    fn place(&mut self, standing: &Standing) {
        self.session = standing.session.unwrap_or(self.shared.card.id);
        self.earlier = standing.earlier;
    }

    /// Takes what waits, and says how long to rest for it.
    async fn take_all(&mut self, first: Option<Event>, subscription: &mut Subscription) -> Duration {
        let mut rest = Duration::ZERO;
        let mut next = first;
        while let Some(event) = next {
            if let Event::Message { message, .. } = &event {
                let told = message.bytes().len().min(tell::RAW_IN_LIST_MAX);
                rest += REST_PER_KIB * (told / 1024) as u32;
            }
            rest += REST_PER_EVENT;
            self.take(event).await;
            // What is left, and what comes meanwhile, is for the next time.
            next = if rest < REST_MAX { subscription.try_next() } else { None };
        }
        let Missed { messages, others } = subscription.missed();
        if messages + others > 0 {
            self.push(What::Other(api::Event::Gap(api::Gap { missed: messages + others })));
        }
        if others > 0 {
            // A change may have been among it.
            self.look_again().await;
        }
        rest
    }

    async fn take_rest(&mut self, subscription: &mut Subscription) {
        let first = subscription.try_next();
        self.take_all(first, subscription).await;
        self.shared.hub.grown.send_replace(());
    }

    fn push(&self, what: What) {
        self.shared.hub.ring().push(what);
    }

    async fn take(&mut self, event: Event) {
        match event {
            Event::Message { .. } | Event::Fault { .. } => {
                let mut recorded = heard::recorded(event, &self.session, self.earlier, self.shared.card.transport);
                let decided = self.decided.take().filter(|(sequence, _)| *sequence == recorded.sequence);
                recorded.verdict = decided.map(|(_, verdict)| Box::new((*verdict).clone()));
                let told = self.tell(recorded).await;
                self.push(What::Message(Box::new(told)));
            }
            Event::Held(held) => {
                let held = holds::told(self.shared, &held, tell::RAW_IN_LIST_MAX).await;
                self.push(What::Other(api::Event::Held(Box::new(held))));
            }
            Event::Outcome { sequence, outcome } => {
                self.shared.hub.ring().amend(sequence, Said::Outcome((*outcome).clone()));
                self.push(What::Other(api::Event::Outcome(api::Outcome {
                    sequence,
                    what: outcome.what,
                    by: outcome.by.clone(),
                    held_ns: outcome.held_ns,
                    edited: outcome.edited.is_some(),
                })));
            }
            Event::Verdict { sequence, verdict, is_ahead: true } => self.decided = Some((sequence, verdict)),
            Event::Verdict { sequence, verdict, is_ahead: false } => {
                self.shared.hub.ring().amend(sequence, Said::Verdict((*verdict).clone()));
                self.push(What::Other(api::Event::Verdict(tell::verdict(sequence, &verdict))));
            }
            Event::Marked { sequence, mark } => {
                self.shared.hub.ring().amend(sequence, Said::Mark((*mark).clone()));
                let (mark, note) = (mark.mark.clone(), mark.note.clone());
                self.push(What::Other(api::Event::Marked(api::Marked { sequence, mark, note })));
            }
            Event::Changed => self.look_again().await,
        }
    }

    /// Tells what of the mode, the breakpoints and the rules is no longer what it was.
    async fn look_again(&mut self) {
        let Ok(standing) = self.shared.standing().await else { return };
        self.place(&standing);
        let status = standing.status;
        let (mode, breakpoints) = (status.mode, tell::breakpoints(&status.breakpoints));
        if mode != self.mode {
            self.mode = mode;
            self.push(What::Other(api::Event::Mode(api::ModeChange { mode })));
        }
        if breakpoints != self.breakpoints {
            self.breakpoints = breakpoints.clone();
            self.push(What::Other(api::Event::Breakpoints(api::Breakpoints { breakpoints })));
        }
        let policy = policy::governed(&status);
        if policy != self.policy {
            self.policy = policy.clone();
            policy.into_iter().for_each(|policy| self.push(What::Other(api::Event::Policy(policy))));
        }
    }

    /// The first message is preceded by many, some of which it takes up.
    async fn tell(&mut self, recorded: Recorded) -> Told {
        if self.story.is_none() {
            self.story = Some(foreword(self.shared, recorded.sequence).await);
        }
        self.story.get_or_insert_default().tell(recorded)
    }
}

/// A story that has heard what came before a message.
async fn foreword(shared: &Shared, sequence: u64) -> Story {
    let mut story = Story::of(&shared.card.header());
    let query = api::PageQuery { before: Some(sequence), limit: Some(FOREWORD), ..api::PageQuery::default() };
    if let Ok(page) = history::page(shared, &query, None).await {
        for (mut told, earlier) in page.messages {
            told.recorded.sequence += earlier;
            story.tell(told.recorded);
        }
    }
    story
}
