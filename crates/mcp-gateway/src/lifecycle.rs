//! One server of a gateway: its connections, their start and their end. A server that ends is started again, after a
//! pause that grows while starts fail; the gateway never gives up.

pub(crate) mod health;
mod opening;
mod stats;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use crate::router::Namespace;
use crate::router::era::{self, ClientFacts};
use foldhash::fast::RandomState;
use mcp_engine::entrance::Glob;
use mcp_wire::reply::Refusal;
use mcp_wire::revision::Era;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::board::{ServerOrder, ServerState, ServerView};
use crate::client::GatewayClient;
use crate::gateway::{Gateway, TREES_GONE_FOR};
use crate::settings::{Instance, ServerSettings, Speaks, Start};
use crate::upstream::{ConnectionKey, Phase, UpstreamConnection};
use mcp_link::{Connector, Link};
use stats::Stats;

/// Pause before a server is started again: the first, which doubles, and the longest. Up to a tenth is added, so
/// that servers do not all return at once.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A call waits for a restart that is this near; otherwise it fails with the time to retry after.
const WORTH_WAITING: Duration = Duration::from_secs(1);
/// A connection that lasted this long has not failed.
const LASTED: Duration = Duration::from_secs(30);
/// Failures in a row until a server counts as down.
const DOWN_AFTER: u32 = 5;
/// Connections to one server that clients share; they differ by the capabilities that clients declare.
const CONNECTIONS_MAX: usize = 32;
/// Connections to one server where each client has its own.
const OWN_CONNECTIONS_MAX: usize = 256;
/// Time until a server that did not know the newest revision is asked again.
const LEARNED_FOR: Duration = Duration::from_secs(10 * 60);
/// Characters shown of a server's last words.
const LAST_WORDS_MAX: usize = 4_000;

pub(crate) struct Server {
    me: Weak<Self>,
    pub gateway: Weak<Gateway>,
    pub index: usize,
    pub settings: ServerSettings<Rc<dyn Connector>>,
    pub namespace: Namespace,
    connections: RefCell<HashMap<ConnectionKey, Rc<UpstreamConnection>, RandomState>>,
    /// Which eras it is known to know, as far as it was asked.
    legacy: Cell<Option<bool>>,
    modern: Cell<Option<bool>>,
    learned: Cell<Option<Instant>>,
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
    pub(crate) last_words: RefCell<String>,
    why: RefCell<Option<String>>,
    /// Why it could not be opened the last time.
    not_opened: RefCell<Option<String>>,
    /// The HTTP status by which it asked for a login when it was last opened.
    login: Cell<Option<u16>>,
    pub stats: Stats,
}

struct Revived {
    key: ConnectionKey,
    facts: Rc<ClientFacts>,
    clients: Vec<Weak<GatewayClient>>,
}

/// Why a connection is over.
#[derive(Clone, Debug)]
pub(crate) enum Lost {
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
    pub(crate) fn refusal(&self, server: &Server) -> Refusal {
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
    pub(crate) fn new(gateway: Weak<Gateway>, index: usize, settings: &ServerSettings<Rc<dyn Connector>>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            me: me.clone(),
            gateway,
            index,
            namespace: Namespace::new(settings.id.clone(), settings.prefix),
            connections: RefCell::default(),
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
            not_opened: RefCell::default(),
            login: Cell::new(None),
            stats: Stats::default(),
            settings: settings.clone(),
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.settings.id
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.get()
    }

    /// Whether it is there, or would be as soon as somebody needs it.
    pub(crate) fn is_well(&self) -> bool {
        self.failures.get() == 0 || self.connections.borrow().values().any(|connection| connection.is_ready())
    }

    /// Whether one of its tools is given out.
    pub(crate) fn gives_out(&self, tool: &str) -> bool {
        let any = |patterns: &[Glob]| patterns.iter().any(|pattern| pattern.matches(tool));
        self.enabled_tools.as_deref().is_none_or(any) && !any(&self.disabled_tools)
    }

    /// Whether it failed last, so that nobody waits for it who need not.
    pub(crate) fn has_failed(&self) -> bool {
        self.failures.get() > 0
    }

    /// The revisions to try, in order, for a client of `era`.
    pub(crate) fn eras(&self, era: Era) -> Vec<Era> {
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
    pub(crate) fn learn_era(&self, era: Era, knows: bool) {
        self.learned.set(Some(Instant::now()));
        match era {
            Era::Legacy => self.legacy.set(Some(knows)),
            Era::Modern => self.modern.set(Some(knows)),
        }
    }

    /// The connection for a client, which is opened if there is none.
    pub(crate) fn connection_for(
        &self,
        client: &Rc<GatewayClient>,
        facts: &Rc<ClientFacts>,
        era: Era,
    ) -> Result<Rc<UpstreamConnection>, Refusal> {
        if !self.enabled.get() {
            return Err(self.disabled());
        }
        let of = (self.settings.instance == Instance::PerClient).then_some(client.number);
        let key = self.key(era, of, facts);
        let connection = self.connections.borrow().get(&key).filter(|connection| !connection.is_over()).cloned();
        let connection = match connection {
            Some(connection) => connection,
            None => self.open(key, facts, Vec::new())?,
        };
        connection.attach(client);
        Ok(connection)
    }

    /// The key of the connection for clients that declare `facts`.
    fn key(&self, era: Era, client: Option<u32>, facts: &ClientFacts) -> ConnectionKey {
        let only = self
            .connections
            .borrow()
            .values()
            .find(|connection| self.settings.exclusive && !connection.is_over())
            .cloned();
        if let Some(only) = only {
            return only.key.clone();
        }
        let era = self.eras(era)[0];
        ConnectionKey { era, client, declared: (era == Era::Legacy).then(|| declared(facts)), retired: 0 }
    }

    /// Opens a connection that takes new work in place of `connection`, which drains and ends. False if there can be none.
    pub(crate) fn replace(&self, connection: &UpstreamConnection) -> bool {
        let (key, clients) = (connection.key.clone(), connection.clients.borrow().clone());
        let number = self.retirements.get() + 1;
        self.retirements.set(number);
        let aside = ConnectionKey { retired: number, ..key.clone() };
        {
            let mut connections = self.connections.borrow_mut();
            connections.remove(&key);
            connections.insert(aside.clone(), connection.rc());
        }
        match self.open(key.clone(), &connection.facts, clients) {
            Ok(successor) => {
                connection.retire(&successor);
                true
            }
            Err(_) => {
                let mut connections = self.connections.borrow_mut();
                connections.remove(&aside);
                connections.insert(key, connection.rc());
                connection.is_stuck();
                false
            }
        }
    }

    /// Whether there may be one more connection.
    pub(crate) fn has_room_for_more(&self) -> bool {
        self.connections.borrow().len() < CONNECTIONS_MAX
    }

    /// Starts it before anybody needs it, as if for a client that can do nothing in particular.
    pub(crate) fn start_early(&self) {
        if self.settings.start != Start::Eager || !self.enabled.get() || self.settings.instance == Instance::PerClient {
            return;
        }
        let facts = Rc::new(ClientFacts::plain());
        let key = self.key(Era::Legacy, None, &facts);
        // If it cannot be started now, whoever needs it tries again.
        let _ = self.open(key, &facts, Vec::new());
    }

    fn open(
        &self,
        key: ConnectionKey,
        facts: &Rc<ClientFacts>,
        clients: Vec<Weak<GatewayClient>>,
    ) -> Result<Rc<UpstreamConnection>, Refusal> {
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
        let most = if key.client.is_some() { OWN_CONNECTIONS_MAX } else { CONNECTIONS_MAX };
        if self.connections.borrow().len() >= most && !self.make_room() {
            return Err(self.overloaded());
        }
        // Whoever used the one before it goes on with this one.
        let mut clients = clients;
        {
            let mut revive = self.revive.borrow_mut();
            let is_replaced = |revived: &mut Revived| self.settings.exclusive || revived.key == key;
            clients.extend(revive.extract_if(.., is_replaced).flat_map(|revived| revived.clients));
        }
        clients.retain(|client| client.upgrade().is_some_and(|client| !client.has_left()));
        let me = self.me.upgrade().expect("it is in use");
        let connection = UpstreamConnection::new(&me, key.clone(), Rc::clone(facts));
        *connection.clients.borrow_mut() = clients;
        self.connections.borrow_mut().insert(key, Rc::clone(&connection));
        tokio::task::spawn_local({
            let connection = Rc::clone(&connection);
            async move {
                tokio::time::sleep(pause).await;
                connection.open().await;
            }
        });
        Ok(connection)
    }

    /// A process or session of it begins.
    pub(crate) fn begins(&self) {
        self.left.set(self.left.get() + 1);
    }

    /// Nothing is left of one that began.
    pub(crate) fn is_gone(&self) {
        self.left.set(self.left.get() - 1);
        self.gone.notify_waiters();
    }

    /// Waits until nothing is left of the process or session before, where there may be only one.
    pub(crate) async fn until_alone(&self) {
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
            let connections = self.connections.borrow();
            let unused =
                connections.values().filter(|connection| connection.open_calls() == 0 && !connection.is_wanted());
            // Those that somebody could come back to go last.
            unused.min_by_key(|connection| (!connection.attached().is_empty(), connection.used.get())).cloned()
        };
        match unused {
            Some(connection) => {
                connection.stop(Lost::Unused);
                true
            }
            None => false,
        }
    }

    /// A connection has come about.
    pub(crate) fn opened(&self) {
        self.next_start.set(None);
        self.login.set(None);
        self.why.take();
        self.not_opened.take();
    }

    /// A connection is over.
    pub(crate) fn lost(&self, connection: &UpstreamConnection, lost: &Lost) {
        self.connections.borrow_mut().retain(|_, other| !std::ptr::eq(&**other, connection));
        if connection.is_retired() {
            self.debug("has drained a connection that another one replaced");
            // The server goes on with another.
            return;
        }
        if lost.is_failure() {
            let has_lasted =
                connection.has_served.get() || connection.ready.get().is_some_and(|ready| ready.elapsed() > LASTED);
            self.failures.set(if has_lasted { 1 } else { self.failures.get() + 1 });
            let login = match lost {
                Lost::NeedsLogin { status } => Some(*status),
                _ => None,
            };
            // Logins change rarely, and servers lock out clients that try too often.
            let pause =
                if login.is_some() { PAUSE_MAX } else { PAUSE.saturating_mul(1 << (self.failures.get() - 1).min(16)) };
            self.next_start.set(Some(Instant::now() + jittered(pause.min(PAUSE_MAX))));
            let refusal = lost.refusal(self);
            if login.is_none() || self.login.get() != login {
                self.tell(&refusal.text());
            }
            self.login.set(login);
            *self.not_opened.borrow_mut() = match lost {
                Lost::NotOpened { why } => Some(why.clone()),
                _ => None,
            };
            // Views tell the time that is left beside this.
            *self.why.borrow_mut() = Some(match refusal {
                Refusal::ServerUnavailable { server, state, .. } => {
                    Refusal::ServerUnavailable { server, state, retry_after_ms: None }.text()
                }
                other => other.text(),
            });
        } else {
            self.debug("is not connected any more");
        }
        let is_needed = lost.is_failure() || matches!(lost, Lost::Asked);
        self.restarts.set(self.restarts.get() + u64::from(is_needed && self.enabled.get()));
        let clients: Vec<_> = connection.clients.borrow().iter().filter(|it| it.strong_count() > 0).cloned().collect();
        if is_needed && self.enabled.get() && (!clients.is_empty() || self.settings.start == Start::Eager) {
            let revived = Revived { key: connection.key.clone(), facts: Rc::clone(&connection.facts), clients };
            self.revive.borrow_mut().push(revived);
        }
    }

    /// Logs an ordinary event of this server at debug level.
    pub(crate) fn debug(&self, event: &str) {
        self.tell(&format!("debug: server \"{}\" {event}", self.id()));
    }

    fn tell(&self, text: &str) {
        if let Some(gateway) = self.gateway.upgrade() {
            gateway.runtime.tell(text.to_owned());
        }
    }

    fn retry_after_ms(&self) -> Option<u64> {
        let at = self.next_start.get()?;
        Some(at.saturating_duration_since(Instant::now()).as_millis().max(1) as u64)
    }

    /// Why calls are refused before it is started again.
    pub(crate) fn unavailable(&self) -> Refusal {
        if let Some(status) = self.login.get() {
            return self.needs_login(status);
        }
        let state = if self.failures.get() >= DOWN_AFTER { "down" } else { "restarting" };
        let state = match &*self.not_opened.borrow() {
            Some(why) => format!("{state} ({why})"),
            None => state.to_owned(),
        };
        Refusal::ServerUnavailable { server: self.id().to_owned(), state, retry_after_ms: self.retry_after_ms() }
    }

    fn needs_login(&self, status: u16) -> Refusal {
        Refusal::NeedsLogin { server: Some(self.id().to_owned()), status }
    }

    fn disabled(&self) -> Refusal {
        let (server, state) = (self.id().to_owned(), "disabled".into());
        Refusal::ServerUnavailable { server, state, retry_after_ms: None }
    }

    pub(crate) fn overloaded(&self) -> Refusal {
        Refusal::Busy { what: format!("server \"{}\" has as many calls waiting as it may", self.id()) }
    }

    pub(crate) fn timed_out(&self, after: Duration) -> Refusal {
        Refusal::ServerTimeout { server: self.id().to_owned(), after_ms: after.as_millis() as u64 }
    }

    pub(crate) fn tick(&self) {
        let now = Instant::now();
        let connections: Vec<Rc<UpstreamConnection>> = self.connections.borrow().values().cloned().collect();
        for connection in &connections {
            connection.give_up_overdue(now);
            self.look_after(connection, now);
        }
        if self.next_start.get().is_none_or(|at| at <= now) {
            let revived = self.revive.take();
            for Revived { key, facts, clients } in revived {
                let is_there = |client: &Weak<GatewayClient>| client.upgrade().is_some_and(|client| !client.has_left());
                let is_wanted = clients.iter().any(is_there);
                if is_wanted || self.settings.start == Start::Eager {
                    // If it cannot be opened now, whoever needs it tries again.
                    let _ = self.open(key, &facts, clients);
                }
            }
        }
        self.stats.tick(now);
    }

    /// Stops what nobody used for long, and asks the rest whether it is there.
    fn look_after(&self, connection: &Rc<UpstreamConnection>, now: Instant) {
        if !connection.is_ready() {
            return;
        }
        if connection.is_retired() {
            if connection.is_drained() {
                connection.stop(Lost::Unused);
            }
            return;
        }
        if let Some(idle) = self.settings.idle_stop
            && self.settings.target.is_process()
            && connection.open_calls() == 0
            && !connection.is_wanted()
            && now.saturating_duration_since(connection.used.get()) > idle
        {
            return connection.stop(Lost::Unused);
        }
        if connection.has_served.get() || connection.ready.get().is_some_and(|ready| now - ready > LASTED) {
            self.failures.set(0);
        }
        connection.look_after(now);
    }

    pub(crate) fn connections(&self) -> Vec<Rc<UpstreamConnection>> {
        self.connections.borrow().values().cloned().collect()
    }

    pub(crate) fn link(&self, conversation: u32) -> Option<Rc<Link>> {
        let connections = self.connections.borrow();
        connections
            .values()
            .filter_map(|connection| connection.link())
            .find(|link| link.conversation.borrow().number() == conversation)
    }

    pub(crate) fn obey(&self, order: ServerOrder) {
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
        for connection in self.connections() {
            connection.stop(why.clone());
        }
    }

    pub(crate) fn end(&self) {
        self.enabled.set(false);
        self.stop_all(&Lost::Ending);
    }

    /// Its last words, kept for whoever asks.
    pub(crate) fn said_last(&self, words: &str) {
        let from = words.char_indices().rev().nth(LAST_WORDS_MAX).map_or(0, |(at, _)| at);
        *self.last_words.borrow_mut() = words[from..].to_owned();
    }

    fn state_without_connection(
        &self,
        connections: &HashMap<ConnectionKey, Rc<UpstreamConnection>, RandomState>,
    ) -> ServerState {
        match self.failures.get() {
            _ if self.login.get().is_some() => ServerState::NeedsLogin,
            _ if connections.values().any(|connection| connection.phase.get() == Phase::Opening) => {
                ServerState::Starting
            }
            DOWN_AFTER.. => ServerState::Down,
            1.. => ServerState::Restarting,
            0 => ServerState::Stopped,
        }
    }

    /// How it is, for faces.
    pub(crate) fn view(&self) -> ServerView {
        let connections = self.connections.borrow();
        let ready = connections
            .values()
            .filter(|connection| connection.is_ready())
            .min_by_key(|connection| connection.is_retired());
        let in_use = connections.values().filter(|connection| connection.is_ready() && !connection.is_retired());
        let trouble =
            in_use.map(|connection| connection.health.state()).find(|(state, _)| *state != ServerState::Ready);
        let state = match (ready, &trouble) {
            _ if !self.enabled.get() => ServerState::Disabled,
            (Some(_), Some((state, _))) => *state,
            (Some(_), None) => ServerState::Ready,
            (None, _) => self.state_without_connection(&connections),
        };
        let counts = ready.map(|connection| connection.counts());
        ServerView {
            id: self.id().to_owned(),
            state,
            era: ready.map(|connection| connection.era.get()),
            transport: self.settings.target.transport(),
            tools: counts.and_then(|counts| counts[0]),
            prompts: counts.and_then(|counts| counts[1]),
            resources: counts.and_then(|counts| counts[2]),
            instances: connections.len(),
            clients: connections
                .values()
                .filter(|connection| !connection.is_retired())
                .map(|connection| connection.attached().len())
                .sum(),
            in_flight: connections.values().map(|connection| connection.open_calls()).sum(),
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
