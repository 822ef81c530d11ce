//! Messages that somebody wants to see before they go on. A message is parked if everything is to be
//! held, or if a breakpoint matches it; others overtake it. Whoever watches decides what becomes of
//! it. Nobody there, or nobody who decides in time: it goes on as it came.

mod breakpoint;
mod decision;
mod live;
mod parked;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mcp_filter::Filter;
use mcp_wire::{Id, Kind};
use tokio::time::Instant;

use crate::conversation::Speaker;
use crate::envelope::{ProxyMessage, Side};
use crate::meaning::uses_of;
use crate::policy::Judged;

pub use breakpoint::{Breakpoint, BreakpointError};
pub use decision::{Answer, DecideError, Decision};
pub(crate) use decision::{compose_answer, edited};
pub(crate) use live::{Class, Live};
use live::{Request, Requests};
pub use mcp_wire::{Lasting, Mode, OnDetach, Owner};
pub(crate) use parked::{Asking, Content, KeptLane, Parked};
pub use parked::{Held, Why};

/// Time that a message is held unless `--hold-timeout` says otherwise. Clients commonly give a call 60 s; this
/// leaves them some.
pub const HOLD_FOR: Duration = Duration::from_secs(45);
/// Messages that are parked at once, and their bytes. More than that goes on unseen: it has to be
/// somewhere, and a person has long lost track.
const PARKED_MAX: usize = 10_000;
const PARKED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Requests that were held and whose answers are to be held for less, the newest of them.
const SPENT_MAX: usize = 256;

/// Why a message is held that came before any face.
pub(crate) const WAITS_FOR_FACE: &str = "wait-for-face";

#[derive(Clone, Debug)]
pub struct HoldOptions {
    /// How long a message is held at most; `None` for ever.
    pub limit: Option<Duration>,
    pub on_detach: OnDetach,
    /// Until a face comes, what the client sends is held.
    pub wait_for_face: bool,
    /// What filters know the server by.
    pub server: Option<Arc<str>>,
}

impl Default for HoldOptions {
    fn default() -> Self {
        Self { limit: Some(HOLD_FOR), on_detach: OnDetach::Forward, wait_for_face: false, server: None }
    }
}

/// Where a judged message goes.
#[must_use]
#[derive(Debug)]
pub(crate) enum Passed {
    Onward(Judged),
    /// It is to be parked.
    Held(Judged, Arc<str>, Owner),
    /// It takes back a request that is parked.
    TakesBack(Judged, u64),
}

#[derive(Debug)]
pub struct Intercept {
    mode: Mode,
    mode_owner: Owner,
    breakpoints: Vec<Breakpoint>,
    options: HoldOptions,
    face: bool,
    waits_for_face: bool,
    /// Whether messages have to be looked at, as things stand.
    armed: bool,
    requests: Requests,
    parked: BTreeMap<u64, Parked>,
    parked_bytes: usize,
    /// Requests that were held, and for how long.
    spent: VecDeque<(u64, Duration)>,
}

impl Default for Intercept {
    fn default() -> Self {
        Self::new(HoldOptions::default())
    }
}

impl Intercept {
    pub fn new(options: HoldOptions) -> Self {
        let mut intercept = Self {
            mode: Mode::Passthrough,
            mode_owner: Owner::Start,
            breakpoints: Vec::new(),
            waits_for_face: options.wait_for_face,
            options,
            face: false,
            armed: false,
            requests: Requests::default(),
            parked: BTreeMap::new(),
            parked_bytes: 0,
            spent: VecDeque::new(),
        };
        intercept.arm();
        intercept
    }

    /// Whether messages have to be looked at. While not, nothing of this costs anything.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    /// Whether nothing is to be held, and nothing is parked that a message could take back.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        !self.armed && self.parked.is_empty()
    }

    /// Looks at a message, which `speaker`'s conversation brought. `server` is that of a gateway.
    pub(crate) fn look(
        &mut self,
        judged: Judged,
        speaker: &Speaker,
        server: Option<&str>,
        since: Option<Instant>,
    ) -> Passed {
        let message = judged.message();
        if !self.parked.is_empty()
            && let Some(id) = message.message.cancelled_id()
        {
            if let Some(sequence) = self.taken_back(message, &id) {
                return Passed::TakesBack(judged, sequence);
            }
            self.give_up(message, &id);
        }
        let held = self.held_by(message, speaker, server);
        match held.filter(|_| self.has_room(message) && self.has_time(message, since)) {
            Some((why, owner)) => Passed::Held(judged, why, owner),
            None => Passed::Onward(judged),
        }
    }

    /// Why a message is to be held, if it is.
    fn held_by(
        &mut self,
        message: &ProxyMessage,
        speaker: &Speaker,
        server: Option<&str>,
    ) -> Option<(Arc<str>, Owner)> {
        let mut found = None;
        if self.breakpoints.iter().any(|breakpoint| self.may_match(breakpoint, message)) {
            let request = self.requests.hear(message);
            found = self.held_by_breakpoint(message, request, speaker, server);
        }
        if found.is_none() && self.waits_for_face && message.from == Side::Client {
            return Some((WAITS_FOR_FACE.into(), Owner::Start));
        }
        if found.is_none() && self.mode == Mode::Intercept && self.holds_for(self.mode_owner) {
            return Some(("intercept".into(), self.mode_owner));
        }
        found
    }

    /// Whether a closer look at a message is worth it. Most messages are told by what is not in them.
    fn may_match(&self, breakpoint: &Breakpoint, message: &ProxyMessage) -> bool {
        self.holds_for(breakpoint.owner)
            && match breakpoint.filter.clue() {
                None => true,
                Some(_) if message.message.glance().kind.is_response() => self.requests.knows(message.correlated),
                Some(clue) => clue.may_be_in(message.message.bytes()),
            }
    }

    fn held_by_breakpoint(
        &mut self,
        message: &ProxyMessage,
        request: Option<Request>,
        speaker: &Speaker,
        server: Option<&str>,
    ) -> Option<(Arc<str>, Owner)> {
        let server = server.or(self.options.server.as_deref());
        let live = Live { message, request: request.as_ref(), speaker, server, class: Class::ByName };
        // Who waits for a tool waits for it behind a proxy tool, too.
        let uses: Vec<ProxyMessage> = match message.from {
            Side::Client => uses_of(&message.message),
            Side::Server => Vec::new(),
        }
        .into_iter()
        .map(|used| ProxyMessage { message: used, ..message.clone() })
        .collect();
        let is_meant = |filter: &Filter| {
            let used = |message| Live { message, request: None, speaker, server, class: Class::ByName };
            filter.matches(&live) || uses.iter().any(|message| filter.matches(&used(message)))
        };
        let mut found = None;
        for breakpoint in &mut self.breakpoints {
            if (self.face || breakpoint.owner == Owner::Command) && is_meant(&breakpoint.filter) {
                breakpoint.hits += 1;
                // What a command wants held stays held when a face leaves.
                if found
                    .as_ref()
                    .is_none_or(|(_, owner)| *owner != Owner::Command && breakpoint.owner == Owner::Command)
                {
                    found = Some((Arc::clone(&breakpoint.name), breakpoint.owner));
                }
            }
        }
        found
    }

    /// The parked request `id` that `message` takes back.
    fn taken_back(&self, message: &ProxyMessage, id: &Id) -> Option<u64> {
        let is_meant = |held: &ProxyMessage| {
            (held.conversation, held.from) == (message.conversation, message.from)
                && held.message.glance().kind == Kind::Request
                && held.message.id().as_ref() == Some(id)
        };
        self.parked.iter().find(|(_, parked)| is_meant(parked.message())).map(|(sequence, _)| *sequence)
    }

    /// The sender of `message` no longer waits for the answer to its request `id`, which may be parked.
    fn give_up(&mut self, message: &ProxyMessage, id: &Id) {
        for parked in self.parked.values_mut() {
            let held = parked.message();
            parked.given_up |= (held.conversation, held.from) == (message.conversation, message.from.other())
                && held.message.glance().kind.is_response()
                && held.message.id().as_ref() == Some(id);
        }
    }

    /// Whether whoever waits for a message has not waited as long as may be already: for the request that
    /// it answers, or behind another message.
    fn has_time(&self, message: &ProxyMessage, since: Option<Instant>) -> bool {
        let waited = since.map_or(Duration::ZERO, |since| since.elapsed());
        self.options.limit.is_none_or(|limit| waited + self.spent_on(message.correlated) < limit)
    }

    /// How long the request `sequence` was held.
    pub(crate) fn spent_on(&self, sequence: Option<u64>) -> Duration {
        let spent = sequence.and_then(|sequence| self.spent.iter().find(|(request, _)| *request == sequence));
        spent.map_or(Duration::ZERO, |(_, spent)| *spent)
    }

    /// The request `sequence` went on after it was held for so long. Its answer is held for less.
    pub(crate) fn spend(&mut self, sequence: u64, held: Duration) {
        if self.spent.len() >= SPENT_MAX {
            self.spent.pop_front();
        }
        self.spent.push_back((sequence, held));
    }

    pub(crate) fn has_room(&self, message: &ProxyMessage) -> bool {
        self.parked.len() < PARKED_MAX && self.parked_bytes + message.message.bytes().len() <= PARKED_BYTES_MAX
    }

    /// Whether what `owner` wants held is held, as things stand.
    fn holds_for(&self, owner: Owner) -> bool {
        self.face || matches!(owner, Owner::Command | Owner::Policy)
    }

    fn arm(&mut self) {
        let by_mode = self.mode == Mode::Intercept && self.holds_for(self.mode_owner);
        let by_breakpoint = self.breakpoints.iter().any(|breakpoint| self.holds_for(breakpoint.owner));
        self.requests.wanted_by(self.breakpoints.iter().map(|breakpoint| &breakpoint.filter));
        self.armed = by_mode || by_breakpoint || self.waits_for_face || !self.parked.is_empty();
    }

    /// Whether a parked message would be held anew, as things stand now. If so it is held for that.
    pub(crate) fn holds_still(&mut self, sequence: u64) -> bool {
        let Some(mut parked) = self.take(sequence) else { return false };
        let why = self.held_by(parked.message(), &Speaker::default(), parked.server.as_deref());
        let holds = why.is_some();
        if let Some((why, owner)) = why {
            (parked.why, parked.owner) = (why, owner);
        }
        self.park(parked);
        holds
    }

    pub(crate) fn park(&mut self, parked: Parked) {
        self.parked_bytes += parked.message().message.bytes().len();
        self.parked.insert(parked.message().sequence, parked);
    }

    pub(crate) fn take(&mut self, sequence: u64) -> Option<Parked> {
        let parked = self.parked.remove(&sequence)?;
        self.parked_bytes -= parked.message().message.bytes().len();
        if self.parked.is_empty() {
            self.arm();
        }
        Some(parked)
    }

    pub(crate) fn get(&self, sequence: u64) -> Option<&Parked> {
        self.parked.get(&sequence)
    }

    /// A client was asked about a parked message, and is so no more.
    pub(crate) fn stop_asking(&mut self, sequence: u64) -> Option<Asking> {
        self.parked.get_mut(&sequence)?.asking.take()
    }

    /// The sequences of parked messages that `which` is true of, oldest first.
    pub(crate) fn parked_where(&self, mut which: impl FnMut(&Parked) -> bool) -> Vec<u64> {
        self.parked.iter().filter(|(_, parked)| which(parked)).map(|(sequence, _)| *sequence).collect()
    }

    pub fn held(&self) -> Vec<Held> {
        self.parked.values().map(Parked::held).collect()
    }

    pub fn held_count(&self) -> usize {
        self.parked.len()
    }

    /// When something has been held long enough.
    pub fn deadline(&self) -> Option<Instant> {
        self.parked.values().filter_map(|parked| parked.deadline).min()
    }

    pub fn limit(&self) -> Option<Duration> {
        self.options.limit
    }

    pub fn on_detach(&self) -> OnDetach {
        self.options.on_detach
    }

    pub fn mode(&self) -> (Mode, Owner) {
        (self.mode, self.mode_owner)
    }

    pub fn set_mode(&mut self, mode: Mode, owner: Owner) {
        (self.mode, self.mode_owner) = (mode, owner);
        self.arm();
    }

    pub fn has_face(&self) -> bool {
        self.face
    }

    pub fn set_face(&mut self, face: bool) {
        self.face = face;
        self.waits_for_face &= !face;
        self.arm();
    }

    /// Nothing more is held: this proxy is ending.
    pub fn disarm(&mut self) {
        self.mode = Mode::Passthrough;
        self.breakpoints.clear();
        self.waits_for_face = false;
        self.arm();
    }

    /// Nobody came.
    pub(crate) fn stop_waiting_for_face(&mut self) {
        self.waits_for_face = false;
        self.arm();
    }

    pub fn breakpoints(&self) -> &[Breakpoint] {
        &self.breakpoints
    }

    /// Adds a breakpoint, or puts it in the place of the one with this name. Returns its name.
    pub fn add(&mut self, name: Option<String>, filter: Filter, owner: Owner) -> Result<Arc<str>, BreakpointError> {
        let name = breakpoint::add(&mut self.breakpoints, name, filter, owner)?;
        self.arm();
        Ok(name)
    }

    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.breakpoints.len();
        self.breakpoints.retain(|breakpoint| *breakpoint.name != *name);
        self.arm();
        self.breakpoints.len() < before
    }
}
