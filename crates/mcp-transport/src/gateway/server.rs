//! One server of a gateway: its connections, and whether it is there. One that ends is started again,
//! after a pause that grows while that fails, and never given up for good.

mod stats;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use foldhash::fast::RandomState;
use mcp_engine::entrance::Glob;
use mcp_engine::router::Namespace;
use mcp_engine::router::era::{self, ClientFacts};
use mcp_wire::Transport;
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::board::{ServerOrder, ServerState, ServerView};
use super::leg::{Leg, LegKey, Phase};
use super::settings::{Instance, ServerSettings, ServerTarget, Speaks, Start, UrlTransport};
use super::visitor::Visitor;
use super::{Gateway, TREES_GONE_FOR};
use crate::bridge::talk::Talk;
use crate::http::tls;
use crate::http::upstream::Upstream;
use stats::Stats;

/// The pause before a server is started again, and the longest.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A call waits for a server that is started again within this; others are told to come back.
const WORTH_WAITING: Duration = Duration::from_secs(1);
/// A connection that lasted this long has not failed.
const LASTED: Duration = Duration::from_secs(30);
/// Failures in a row after which a server counts as down.
const DOWN_AFTER: u32 = 5;
/// Connections to one server that clients share, at most. They differ by what clients declare.
const LEGS_MAX: usize = 32;
/// The same where each client has one of its own.
const OWN_LEGS_MAX: usize = 256;
/// A server that did not know the newest revision is asked again after this.
const LEARNED_FOR: Duration = Duration::from_secs(10 * 60);
/// Characters of a server's last words that are shown.
const LAST_WORDS_MAX: usize = 4_000;

pub struct Server {
    me: Weak<Self>,
    pub gateway: Weak<Gateway>,
    pub index: usize,
    pub settings: ServerSettings,
    pub namespace: Namespace,
    upstream: OnceCell<Result<Rc<Upstream>, String>>,
    legs: RefCell<HashMap<LegKey, Rc<Leg>, RandomState>>,
    /// Which eras it is known to know, as far as it was asked.
    legacy: Cell<Option<bool>>,
    modern: Cell<Option<bool>>,
    learned: Cell<Option<Instant>>,
    /// What is spoken at its address.
    pub(super) speaks_sse: Cell<bool>,
    /// It has introduced itself so.
    pub(super) knows_sse: Cell<bool>,
    enabled_tools: Option<Vec<Glob>>,
    disabled_tools: Vec<Glob>,
    enabled: Cell<bool>,
    failures: Cell<u32>,
    next_start: Cell<Option<Instant>>,
    /// Connections that are to be opened again.
    revive: RefCell<Vec<Revived>>,
    /// Processes and sessions of which something is left.
    left: Cell<usize>,
    /// Told when one of them is gone.
    gone: Notify,
    /// Connections that others took new work over from.
    retirements: Cell<u32>,
    /// Times that it was started again because it ended.
    restarts: Cell<u64>,
    pub(super) last_words: RefCell<String>,
    why: RefCell<Option<String>>,
    /// The HTTP status by which it asked for a login when it was last opened.
    login: Cell<Option<u16>>,
    pub stats: Stats,
}

struct Revived {
    key: LegKey,
    facts: Rc<ClientFacts>,
    visitors: Vec<Weak<Visitor>>,
}

/// Why a connection is over.
#[derive(Clone, Debug)]
pub enum Lost {
    /// It never came about.
    NotOpened {
        why: String,
    },
    Died {
        status: String,
    },
    /// It answered with this HTTP status, 401 or 403.
    NeedsLogin {
        status: u16,
    },
    /// It answered nothing any more.
    Silent,
    /// Nobody needs it.
    Unused,
    /// Somebody wants it started anew, or not at all.
    Asked,
    Ending,
}

impl Lost {
    pub fn refusal(&self, server: &Server) -> Refusal {
        let (state, retry_after_ms) = match self {
            Self::NeedsLogin { status } => return server.needs_login(*status),
            Self::NotOpened { why } => (format!("not there ({why})"), server.retry_after_ms()),
            Self::Died { status } => (format!("gone: it ended before it answered ({status})"), server.retry_after_ms()),
            Self::Silent => ("started again because it no longer answered".into(), server.retry_after_ms()),
            Self::Unused | Self::Asked => ("stopped".into(), server.retry_after_ms()),
            Self::Ending => ("ending with the gateway".into(), None),
        };
        Refusal::ServerUnavailable { server: server.id().to_owned(), state, retry_after_ms }
    }

    fn is_failure(&self) -> bool {
        matches!(self, Self::NotOpened { .. } | Self::Died { .. } | Self::NeedsLogin { .. } | Self::Silent)
    }
}

impl Server {
    pub fn new(gateway: Weak<Gateway>, index: usize, settings: &ServerSettings) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            me: me.clone(),
            gateway,
            index,
            namespace: Namespace::new(settings.id.clone(), settings.prefix),
            upstream: OnceCell::new(),
            legs: RefCell::default(),
            legacy: Cell::new(match settings.speaks {
                Speaks::Auto => None,
                Speaks::Legacy => Some(true),
                Speaks::Modern => Some(false),
            }),
            modern: Cell::new(match settings.speaks {
                Speaks::Auto => None,
                Speaks::Legacy => Some(false),
                Speaks::Modern => Some(true),
            }),
            learned: Cell::new(None),
            knows_sse: Cell::new(false),
            speaks_sse: Cell::new(matches!(settings.target, ServerTarget::Url { transport: UrlTransport::Sse, .. })),
            enabled_tools: settings.enabled_tools.as_deref().map(globs),
            disabled_tools: globs(&settings.disabled_tools),
            enabled: Cell::new(settings.enabled),
            failures: Cell::new(0),
            next_start: Cell::new(None),
            revive: RefCell::default(),
            left: Cell::new(0),
            gone: Notify::new(),
            retirements: Cell::new(0),
            restarts: Cell::new(0),
            last_words: RefCell::default(),
            why: RefCell::default(),
            login: Cell::new(None),
            stats: Stats::default(),
            settings: settings.clone(),
        })
    }

    pub fn id(&self) -> &str {
        &self.settings.id
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled.get()
    }

    /// Whether it is there, or would be as soon as somebody needs it.
    pub fn is_well(&self) -> bool {
        self.failures.get() == 0 || self.legs.borrow().values().any(|leg| leg.is_ready())
    }

    /// Whether one of its tools is given out.
    pub fn gives_out(&self, tool: &str) -> bool {
        let any = |patterns: &[Glob]| patterns.iter().any(|pattern| pattern.matches(tool));
        self.enabled_tools.as_deref().is_none_or(any) && !any(&self.disabled_tools)
    }

    /// Whether it failed last, so that nobody waits for it who need not.
    pub fn has_failed(&self) -> bool {
        self.failures.get() > 0
    }

    /// What speaks HTTP with it.
    pub(super) fn upstream(&self) -> Result<Rc<Upstream>, String> {
        let made = self.upstream.get_or_init(|| match &self.settings.target {
            ServerTarget::Command { .. } => Err("it is a command".into()),
            ServerTarget::Url { target, ca_file, .. } => {
                let tls = target.tls.then(|| tls::client_config(ca_file.as_deref())).transpose();
                tls.map(|tls| Upstream::new(target.clone(), tls)).map_err(|error| error.to_string())
            }
        });
        made.clone()
    }

    /// The revisions to try, in order, for a client of `era`.
    pub(super) fn eras(&self, era: Era) -> Vec<Era> {
        if self.settings.speaks == Speaks::Auto {
            // A server may have been asked at a bad time, and may learn.
            let is_old = self.learned.get().is_some_and(|learned| learned.elapsed() > LEARNED_FOR);
            if is_old && self.modern.get() == Some(false) {
                self.modern.set(None);
            }
            if (self.legacy.get(), self.modern.get()) == (Some(false), Some(false)) {
                self.legacy.set(None);
                self.modern.set(None);
            }
        }
        let knows = |era| match era {
            Era::Legacy => self.legacy.get(),
            Era::Modern => self.modern.get(),
        };
        let other = if era == Era::Legacy { Era::Modern } else { Era::Legacy };
        match (knows(era), knows(other)) {
            (Some(true), _) | (None, Some(false)) => vec![era],
            (Some(false), _) => vec![other],
            (None, _) => vec![era, other],
        }
    }

    /// It was asked for a revision of `era`, and knows it or does not.
    pub(super) fn learn_era(&self, era: Era, knows: bool) {
        self.learned.set(Some(Instant::now()));
        match era {
            Era::Legacy => self.legacy.set(Some(knows)),
            Era::Modern => self.modern.set(Some(knows)),
        }
    }

    /// The connection for a client, which is opened if there is none.
    pub fn leg_for(&self, visitor: &Rc<Visitor>, facts: &Rc<ClientFacts>, era: Era) -> Result<Rc<Leg>, Refusal> {
        if !self.enabled.get() {
            return Err(self.disabled());
        }
        let of = (self.settings.instance == Instance::PerClient).then_some(visitor.number);
        let key = self.key(era, of, facts);
        let leg = self.legs.borrow().get(&key).filter(|leg| !leg.is_over()).cloned();
        let leg = match leg {
            Some(leg) => leg,
            None => self.open(key, facts, Vec::new())?,
        };
        leg.attach(visitor);
        Ok(leg)
    }

    /// The key of the connection for clients that declare `facts`.
    fn key(&self, era: Era, visitor: Option<u32>, facts: &ClientFacts) -> LegKey {
        let only = self.legs.borrow().values().find(|leg| self.settings.exclusive && !leg.is_over()).cloned();
        if let Some(only) = only {
            return only.key.clone();
        }
        let era = self.eras(era)[0];
        LegKey { era, visitor, declared: (era == Era::Legacy).then(|| declared(facts)), retired: 0 }
    }

    /// Opens a connection that takes new work in place of `leg`, which drains and ends. False if there can be none.
    pub(super) fn replace(&self, leg: &Leg) -> bool {
        let (key, visitors) = (leg.key.clone(), leg.visitors.borrow().clone());
        let number = self.retirements.get() + 1;
        self.retirements.set(number);
        let aside = LegKey { retired: number, ..key.clone() };
        {
            let mut legs = self.legs.borrow_mut();
            legs.remove(&key);
            legs.insert(aside.clone(), leg.rc());
        }
        match self.open(key.clone(), &leg.facts, visitors) {
            Ok(successor) => {
                leg.retire(&successor);
                true
            }
            Err(_) => {
                let mut legs = self.legs.borrow_mut();
                legs.remove(&aside);
                legs.insert(key, leg.rc());
                leg.is_stuck();
                false
            }
        }
    }

    /// Whether there may be one more connection.
    pub(super) fn has_room_for_more(&self) -> bool {
        self.legs.borrow().len() < LEGS_MAX
    }

    /// Starts it before anybody needs it, as if for a client that can do nothing in particular.
    pub(super) fn start_early(&self) {
        if self.settings.start != Start::Eager || !self.enabled.get() || self.settings.instance == Instance::PerClient {
            return;
        }
        let facts = Rc::new(ClientFacts::plain());
        let key = self.key(Era::Legacy, None, &facts);
        // If it cannot be started now, whoever needs it tries again.
        let _ = self.open(key, &facts, Vec::new());
    }

    fn open(&self, key: LegKey, facts: &Rc<ClientFacts>, visitors: Vec<Weak<Visitor>>) -> Result<Rc<Leg>, Refusal> {
        let is_ending = self.gateway.upgrade().is_none_or(|gateway| gateway.is_ending.get());
        if is_ending {
            return Err(Lost::Ending.refusal(self));
        }
        if !self.enabled.get() {
            return Err(self.disabled());
        }
        let pause = self.next_start.get().map(|at| at.saturating_duration_since(Instant::now())).unwrap_or_default();
        if pause > WORTH_WAITING {
            return Err(self.unavailable());
        }
        let most = if key.visitor.is_some() { OWN_LEGS_MAX } else { LEGS_MAX };
        if self.legs.borrow().len() >= most && !self.make_room() {
            return Err(self.overloaded());
        }
        // Whoever used the one before it goes on with this one.
        let mut visitors = visitors;
        {
            let mut revive = self.revive.borrow_mut();
            let is_replaced = |revived: &mut Revived| self.settings.exclusive || revived.key == key;
            visitors.extend(revive.extract_if(.., is_replaced).flat_map(|revived| revived.visitors));
        }
        visitors.retain(|visitor| visitor.upgrade().is_some_and(|visitor| !visitor.has_left()));
        let me = self.me.upgrade().expect("it is in use");
        let leg = Leg::new(&me, key.clone(), Rc::clone(facts));
        *leg.visitors.borrow_mut() = visitors;
        self.legs.borrow_mut().insert(key, Rc::clone(&leg));
        tokio::task::spawn_local({
            let leg = Rc::clone(&leg);
            async move {
                tokio::time::sleep(pause).await;
                leg.open().await;
            }
        });
        Ok(leg)
    }

    /// A process or session of it begins.
    pub(super) fn begins(&self) {
        self.left.set(self.left.get() + 1);
    }

    /// Nothing is left of one that began.
    pub(super) fn is_gone(&self) {
        self.left.set(self.left.get() - 1);
        self.gone.notify_waiters();
    }

    /// Waits until nothing is left of the process or session before, where there may be only one.
    pub(super) async fn until_alone(&self) {
        if !self.settings.exclusive {
            return;
        }
        let gone = async {
            loop {
                let gone = self.gone.notified();
                if self.left.get() == 0 {
                    return;
                }
                gone.await;
            }
        };
        // By then its tree was killed, or cannot be.
        let _ = timeout(self.settings.shutdown_grace + TREES_GONE_FOR, gone).await;
    }

    /// Ends a connection that nobody uses.
    fn make_room(&self) -> bool {
        let unused = {
            let legs = self.legs.borrow();
            let unused = legs.values().filter(|leg| leg.open_calls() == 0 && !leg.is_wanted());
            // Those that somebody could come back to go last.
            unused.min_by_key(|leg| (!leg.attached().is_empty(), leg.used.get())).cloned()
        };
        match unused {
            Some(leg) => {
                leg.stop(Lost::Unused);
                true
            }
            None => false,
        }
    }

    /// A connection has come about.
    pub(super) fn opened(&self) {
        self.next_start.set(None);
        self.login.set(None);
        self.why.take();
    }

    /// A connection is over.
    pub fn lost(&self, leg: &Leg, lost: &Lost) {
        self.legs.borrow_mut().retain(|_, other| !std::ptr::eq(&**other, leg));
        if leg.is_retired() {
            self.debug("has drained a connection that another one replaced");
            // The server goes on with another.
            return;
        }
        if lost.is_failure() {
            let has_lasted = leg.has_served.get() || leg.ready.get().is_some_and(|ready| ready.elapsed() > LASTED);
            self.failures.set(if has_lasted { 1 } else { self.failures.get() + 1 });
            let login = match lost {
                Lost::NeedsLogin { status } => Some(*status),
                _ => None,
            };
            // Logins change rarely, and servers lock out clients that try too often.
            let pause =
                if login.is_some() { PAUSE_MAX } else { PAUSE.saturating_mul(1 << (self.failures.get() - 1).min(16)) };
            self.next_start.set(Some(Instant::now() + jittered(pause.min(PAUSE_MAX))));
            let text = lost.refusal(self).text();
            if login.is_none() || self.login.get() != login {
                self.tell(&text);
            }
            self.login.set(login);
            *self.why.borrow_mut() = Some(text);
        } else {
            self.debug("is not connected any more");
        }
        let is_needed = lost.is_failure() || matches!(lost, Lost::Asked);
        self.restarts.set(self.restarts.get() + u64::from(is_needed && self.enabled.get()));
        let visitors: Vec<_> = leg.visitors.borrow().iter().filter(|it| it.strong_count() > 0).cloned().collect();
        if is_needed && self.enabled.get() && (!visitors.is_empty() || self.settings.start == Start::Eager) {
            let revived = Revived { key: leg.key.clone(), facts: Rc::clone(&leg.facts), visitors };
            self.revive.borrow_mut().push(revived);
        }
    }

    /// Logs an ordinary event of this server at debug level.
    pub(super) fn debug(&self, event: &str) {
        self.tell(&format!("debug: server \"{}\" {event}", self.id()));
    }

    fn tell(&self, text: &str) {
        if let Some(gateway) = self.gateway.upgrade() {
            gateway.hub.tell(text.to_owned());
        }
    }

    fn retry_after_ms(&self) -> Option<u64> {
        let at = self.next_start.get()?;
        Some(at.saturating_duration_since(Instant::now()).as_millis().max(1) as u64)
    }

    /// Why calls are refused before it is started again.
    pub fn unavailable(&self) -> Refusal {
        if let Some(status) = self.login.get() {
            return self.needs_login(status);
        }
        let state = if self.failures.get() >= DOWN_AFTER { "down" } else { "restarting" };
        let (server, retry_after_ms) = (self.id().to_owned(), self.retry_after_ms());
        Refusal::ServerUnavailable { server, state: state.into(), retry_after_ms }
    }

    fn needs_login(&self, status: u16) -> Refusal {
        Refusal::NeedsLogin { server: Some(self.id().to_owned()), status }
    }

    fn disabled(&self) -> Refusal {
        let (server, state) = (self.id().to_owned(), "disabled".into());
        Refusal::ServerUnavailable { server, state, retry_after_ms: None }
    }

    pub fn overloaded(&self) -> Refusal {
        Refusal::Busy { what: format!("server \"{}\" has as many calls waiting as it may", self.id()) }
    }

    pub fn timed_out(&self, after: Duration) -> Refusal {
        Refusal::ServerTimeout { server: self.id().to_owned(), after_ms: after.as_millis() as u64 }
    }

    pub(super) fn tick(&self) {
        let now = Instant::now();
        let legs: Vec<Rc<Leg>> = self.legs.borrow().values().cloned().collect();
        for leg in &legs {
            leg.give_up_overdue(now);
            self.look_after(leg, now);
        }
        if self.next_start.get().is_none_or(|at| at <= now) {
            let revived = self.revive.take();
            for Revived { key, facts, visitors } in revived {
                let is_there = |visitor: &Weak<Visitor>| visitor.upgrade().is_some_and(|visitor| !visitor.has_left());
                let is_wanted = visitors.iter().any(is_there);
                if is_wanted || self.settings.start == Start::Eager {
                    // If it cannot be opened now, whoever needs it tries again.
                    let _ = self.open(key, &facts, visitors);
                }
            }
        }
        self.stats.tick(now);
    }

    /// Stops what nobody used for long, and asks the rest whether it is there.
    fn look_after(&self, leg: &Rc<Leg>, now: Instant) {
        if !leg.is_ready() {
            return;
        }
        if leg.is_retired() {
            if leg.is_drained() {
                leg.stop(Lost::Unused);
            }
            return;
        }
        let is_process = matches!(self.settings.target, ServerTarget::Command { .. });
        if let Some(idle) = self.settings.idle_stop
            && is_process
            && leg.open_calls() == 0
            && !leg.is_wanted()
            && now.saturating_duration_since(leg.used.get()) > idle
        {
            return leg.stop(Lost::Unused);
        }
        if leg.has_served.get() || leg.ready.get().is_some_and(|ready| now - ready > LASTED) {
            self.failures.set(0);
        }
        leg.look_after(now);
    }

    pub(super) fn legs(&self) -> Vec<Rc<Leg>> {
        self.legs.borrow().values().cloned().collect()
    }

    pub fn talk(&self, conversation: u32) -> Option<Rc<Talk>> {
        let legs = self.legs.borrow();
        legs.values().filter_map(|leg| leg.talk()).find(|talk| talk.conversation.borrow().number() == conversation)
    }

    pub fn open_calls(&self) -> usize {
        self.legs.borrow().values().map(|leg| leg.open_calls()).sum()
    }

    pub(super) fn obey(&self, order: ServerOrder) {
        match order {
            ServerOrder::Restart => {
                self.failures.set(0);
                self.next_start.set(None);
                self.login.set(None);
                self.stop_all(&Lost::Asked);
            }
            ServerOrder::Disable => {
                self.enabled.set(false);
                self.revive.borrow_mut().clear();
                self.stop_all(&Lost::Asked);
                self.changed_for_all();
            }
            ServerOrder::Enable => {
                self.enabled.set(true);
                self.changed_for_all();
            }
        }
    }

    fn changed_for_all(&self) {
        if let Some(gateway) = self.gateway.upgrade() {
            gateway.lists_changed_for_all();
        }
    }

    fn stop_all(&self, why: &Lost) {
        for leg in self.legs() {
            leg.stop(why.clone());
        }
    }

    pub fn end(&self) {
        self.enabled.set(false);
        self.stop_all(&Lost::Ending);
    }

    /// Its last words, kept for whoever asks.
    pub(super) fn said_last(&self, words: &str) {
        let from = words.char_indices().rev().nth(LAST_WORDS_MAX).map_or(0, |(at, _)| at);
        *self.last_words.borrow_mut() = words[from..].to_owned();
    }

    fn state_without_connection(&self, legs: &HashMap<LegKey, Rc<Leg>, RandomState>) -> ServerState {
        match self.failures.get() {
            _ if self.login.get().is_some() => ServerState::NeedsLogin,
            _ if legs.values().any(|leg| leg.phase.get() == Phase::Opening) => ServerState::Starting,
            DOWN_AFTER.. => ServerState::Down,
            1.. => ServerState::Restarting,
            0 => ServerState::Stopped,
        }
    }

    /// How it is, for faces.
    pub fn view(&self) -> ServerView {
        let legs = self.legs.borrow();
        let ready = legs.values().filter(|leg| leg.is_ready()).min_by_key(|leg| leg.is_retired());
        let in_use = legs.values().filter(|leg| leg.is_ready() && !leg.is_retired());
        let trouble = in_use.map(|leg| leg.health.state()).find(|(state, _)| *state != ServerState::Ready);
        let state = match (ready, &trouble) {
            _ if !self.enabled.get() => ServerState::Disabled,
            (Some(_), Some((state, _))) => *state,
            (Some(_), None) => ServerState::Ready,
            (None, _) => self.state_without_connection(&legs),
        };
        let counts = ready.map(|leg| leg.counts());
        ServerView {
            id: self.id().to_owned(),
            state,
            era: ready.map(|leg| leg.era.get()),
            transport: match &self.settings.target {
                ServerTarget::Command { .. } => Transport::Stdio,
                ServerTarget::Url { .. } if self.speaks_sse.get() => Transport::Sse,
                ServerTarget::Url { .. } => Transport::StreamableHttp,
            },
            tools: counts.and_then(|counts| counts[0]),
            prompts: counts.and_then(|counts| counts[1]),
            resources: counts.and_then(|counts| counts[2]),
            instances: legs.len(),
            clients: legs.values().filter(|leg| !leg.is_retired()).map(|leg| leg.attached().len()).sum(),
            in_flight: legs.values().map(|leg| leg.open_calls()).sum(),
            restarts: self.restarts.get(),
            retry_after_ms: self.retry_after_ms().filter(|_| ready.is_none()),
            why: trouble.and_then(|(_, why)| why).or_else(|| self.why.borrow().clone()).or_else(|| ready?.lists_cut()),
            last_words: Some(self.last_words.borrow().clone()).filter(|words| !words.is_empty()),
            calls: self.stats.view(),
        }
    }
}

fn globs(patterns: &[String]) -> Vec<Glob> {
    patterns.iter().map(|pattern| Glob::new(pattern)).collect()
}

/// What is declared to a server that is told once, in a form that can be compared.
fn declared(facts: &ClientFacts) -> Box<[u8]> {
    [facts.revision.as_str().as_bytes(), b"\n", &era::declared_to_legacy(facts)].concat().into()
}

/// Up to a tenth longer, so that servers which ended together do not all come back at once.
fn jittered(pause: Duration) -> Duration {
    let random = uuid::Uuid::new_v4().as_bytes()[0];
    pause + pause.mul_f64(f64::from(random) / 2_550.0)
}
