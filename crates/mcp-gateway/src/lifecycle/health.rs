//! Whether the server of a connection answers: what its last calls came to, and whether it answers pings.
//!
//! A server that works on a call may be busy and not dead: while calls of clients are open on a connection, unanswered
//! pings end it only once the server was quiet for as long as a call may take. A stopped process is ended at once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use mcp_link::ServerSide;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::{Id, Message, scan};
use tokio::time::{Instant, timeout};

use crate::board::ServerState;
use crate::lifecycle::Lost;
use crate::upstream::UpstreamConnection;
use crate::upstream::calls::ClientCall;

/// Unanswered pings in a row until a server is unhealthy.
const UNHEALTHY_AFTER: u32 = 3;
/// Silence while a call is open until a ping, time until an unanswered ping shows, and pause between two pings once
/// one failed.
const SOON: Duration = Duration::from_secs(5);
/// Time to read the backlog of a server once its only client has taken what waited for it.
const UNREAD_FOR: Duration = Duration::from_secs(2);
/// Failed calls in a row after which only an answered call makes a server ready again.
const FAILING_AFTER: u32 = 2;

pub(crate) struct Health {
    /// Counts what was heard.
    heard: Cell<u64>,
    /// The count at the last look, and when it last grew.
    seen: Cell<u64>,
    quiet_since: Cell<Instant>,
    /// When the server is asked next.
    next: Cell<Instant>,
    is_asked: Cell<bool>,
    /// A ping is unanswered, and nothing was heard since.
    is_silent: Cell<bool>,
    /// Pings without an answer, in a row.
    missed: Cell<u32>,
    /// Calls of clients that failed on the way, in a row: those that began before the last failure count as one with it.
    failed: Cell<u32>,
    failed_at: Cell<Instant>,
    failure: RefCell<Option<Failure>>,
    /// The call that an HTTP status refuses, and whose answer comes next.
    refused: RefCell<Option<(i64, Failure)>>,
}

/// Whether what a server says lies unread until the only client has taken what is there for it.
#[derive(Default)]
pub(crate) struct HeldBack {
    /// Readers that wait for the client.
    readers: Cell<usize>,
    /// When the last of them has read what lay there.
    until: Cell<Option<Instant>>,
}

impl HeldBack {
    /// A reader waits for as long as the guard lives.
    pub(crate) fn begin(&self) -> impl Drop {
        self.readers.set(self.readers.get() + 1);
        HeldBackReader(self)
    }

    pub(crate) fn lasts(&self) -> bool {
        self.readers.get() > 0 || self.until.get().is_some_and(|until| Instant::now() < until)
    }
}

struct HeldBackReader<'a>(&'a HeldBack);

impl Drop for HeldBackReader<'_> {
    fn drop(&mut self) {
        self.0.readers.set(self.0.readers.get() - 1);
        self.0.until.set(Some(Instant::now() + UNREAD_FOR));
    }
}

/// The reason that a call failed on its way.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    text: String,
    /// The HTTP status of a server that needs a login.
    login: Option<u16>,
}

impl Failure {
    /// The failure that an error of the proxy's own tells of.
    pub(crate) fn of(error: &Message) -> Option<Self> {
        let bytes = error.bytes();
        if !reply::says_own_failure(bytes) {
            return None;
        }
        let member = |name| scan::member_at(bytes, ["error", name]).map(|span| &bytes[span.range()]);
        let code = std::str::from_utf8(member("code")?).ok()?.parse().ok()?;
        let said = member("message").and_then(scan::decode_string)?;
        let text = said.strip_prefix("mcp-proxy: ").unwrap_or(&said).to_owned();
        Some(Self { text, login: reply::upstream_status(bytes).filter(|_| reply::is_login(code)) })
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let login = match refusal {
            Refusal::NeedsLogin { status, .. } => Some(status),
            _ => None,
        };
        Self { text: refusal.text(), login }
    }
}

impl Health {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            heard: Cell::new(0),
            seen: Cell::new(0),
            quiet_since: Cell::new(now),
            next: Cell::new(now),
            is_asked: Cell::new(false),
            is_silent: Cell::new(false),
            missed: Cell::new(0),
            failed: Cell::new(0),
            failed_at: Cell::new(now),
            failure: RefCell::default(),
            refused: RefCell::default(),
        }
    }

    /// Begins with a server that has introduced itself.
    pub(crate) fn begin(&self, next: Instant) {
        self.next.set(next);
        self.recovered();
    }

    /// What failed before tells nothing any more.
    pub(crate) fn recovered(&self) {
        self.failed.set(0);
        self.failure.take();
    }

    /// The server said something.
    pub(crate) fn heard(&self) {
        self.heard.set(self.heard.get() + 1);
    }

    /// The failure that an error stands for. Any other error was said by the server.
    pub(crate) fn failure_in(&self, error: &Message) -> Option<Failure> {
        let refused = self.refused.take().filter(|(id, _)| error.id() == Some(Id::Integer(*id)));
        let failure = Failure::of(error);
        if failure.is_none() {
            self.heard();
        }
        failure.or(refused.map(|(_, failure)| failure))
    }

    pub(crate) fn is_refused(&self, id: i64, failure: Failure) {
        *self.refused.borrow_mut() = Some((id, failure));
    }

    /// A call failed on its way: one of a client's that began at `began`, or one of the gateway's own.
    pub(crate) fn failed(&self, failure: Failure, began: Option<Instant>, now: Instant) {
        if let Some(began) = began {
            if self.failed.get() == 0 || began >= self.failed_at.get() {
                self.failed.set(self.failed.get() + 1);
            }
            self.failed_at.set(now);
            self.next.set(self.next.get().min(now));
        }
        *self.failure.borrow_mut() = Some(failure);
    }

    /// A call was answered by the server.
    pub(crate) fn worked(&self, is_of_client: bool) {
        if is_of_client {
            self.failed.set(0);
        }
        if self.failed.get() < FAILING_AFTER && self.failure.borrow().is_some() {
            self.failure.take();
        }
    }

    /// The state of a connection that is ready, and why.
    pub(crate) fn state(&self) -> (ServerState, Option<String>) {
        let failure = self.failure.borrow();
        match &*failure {
            Some(failure) if failure.login.is_some() => (ServerState::NeedsLogin, Some(failure.text.clone())),
            _ if self.is_silent.get() => (ServerState::NotResponding, Some("a ping is unanswered".into())),
            Some(failure) => (ServerState::Failing, Some(failure.text.clone())),
            None => (ServerState::Ready, None),
        }
    }

    /// Takes note of whether anything was heard since the last look.
    fn look(&self, now: Instant) {
        if self.seen.replace(self.heard.get()) != self.heard.get() {
            self.quiet_since.set(now);
            self.is_silent.set(false);
            self.missed.set(0);
        }
    }
}

impl UpstreamConnection {
    /// Asks the server whether it is there, if it is time.
    pub(crate) fn look_after(self: &Rc<Self>, now: Instant) {
        let health = &self.health;
        health.look(now);
        let Some(gateway) = self.server.gateway.upgrade() else { return };
        let Some(interval) = gateway.settings.healthcheck_interval else { return };
        if self.held_back.lasts() {
            // The answer would not be read either.
            return;
        }
        if health.is_asked.get() || now < health.next.get() && !self.keeps_waiting(now, interval.min(SOON)) {
            return;
        }
        health.is_asked.set(true);
        health.next.set(now + interval);
        let (connection, patience) = (Rc::clone(self), gateway.settings.healthcheck_timeout);
        tokio::task::spawn_local(async move {
            connection.ping(patience).await;
            connection.health.is_asked.set(false);
            if connection.health.missed.get() > 0 {
                connection.health.next.set(connection.health.next.get().min(Instant::now() + SOON));
            }
        });
    }

    /// Whether a client waits while nothing is heard.
    fn keeps_waiting(&self, now: Instant, patience: Duration) -> bool {
        let is_long = |since: Instant| now.saturating_duration_since(since) >= patience;
        is_long(self.health.quiet_since.get())
            && self.calls.borrow().of_clients() > 0
            && self.calls.borrow().clients_since().any(is_long)
    }

    async fn ping(&self, patience: Duration) {
        let (used, health) = (self.used.get(), &self.health);
        let heard = health.heard.get();
        let method = if self.era.get() == Era::Modern { "server/discover" } else { "ping" };
        let mut answer = self.ask(method, None);
        let early = timeout(patience.min(SOON), &mut answer).await;
        if early.is_err() {
            health.is_silent.set(health.heard.get() == heard && !self.is_held());
        }
        let answer = match early {
            Ok(answer) => answer.ok(),
            Err(_) => timeout(patience.saturating_sub(SOON), answer).await.ok().and_then(Result::ok),
        };
        if self.is_over() {
            return;
        }
        // That it cannot be reached is said by the proxy.
        match answer.map(|answer| Failure::of(&Message::new(answer))) {
            Some(None) => {
                health.missed.set(0);
                // Being asked is no use of it.
                self.used.set(used);
            }
            Some(Some(Failure { login: Some(status), .. })) => self.stop(Lost::NeedsLogin { status }),
            // A person holds the question, or the answer lies unread, so the server is not late.
            _ if self.is_held() => health.missed.set(0),
            _ => {
                health.missed.set(health.missed.get() + 1);
                if self.is_dead() || self.is_stopped() {
                    self.stop(Lost::Silent);
                }
            }
        }
    }

    fn is_held(&self) -> bool {
        self.held_back.lasts() || self.link().is_some_and(|link| link.holds_from_client())
    }

    /// Whether too many pings failed, and not because the server is busy.
    pub(crate) fn is_dead(&self) -> bool {
        let now = Instant::now();
        self.health.look(now);
        if self.health.missed.get() < UNHEALTHY_AFTER {
            return false;
        }
        if self.is_held() {
            self.health.missed.set(0);
            return false;
        }
        !self.may_be_busy(now)
    }

    /// Whether calls of clients are open that the server may be busy with, or waits for a client to go on with.
    fn may_be_busy(&self, now: Instant) -> bool {
        let calls = self.calls.borrow();
        let Some(busy_since) = calls.busy_since() else { return false };
        let quiet = now.saturating_duration_since(busy_since.max(self.health.quiet_since.get()));
        let is_asked = |call: &ClientCall| call.client.upgrade().is_some_and(|client| client.is_asked_by(self));
        quiet < self.server.settings.response_timeout || calls.clients().any(|(_, call)| is_asked(call))
    }

    fn is_stopped(&self) -> bool {
        self.link().is_some_and(|link| link.server().is_some_and(ServerSide::is_stopped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minute of calls and pings: `c` and `p` fail, `C` and `P` are answered.
    #[track_caller]
    fn check(events: &str, expected: ServerState) {
        let now = Instant::now();
        let health = Health::new(now);
        for (at, event) in (1..).zip(events.chars()) {
            let at = now + Duration::from_secs(at);
            match event {
                'C' | 'P' => health.worked(event == 'C'),
                _ => health.failed(Failure::from(Refusal::StreamLost), (event == 'c').then_some(at), at),
            }
        }
        assert_eq!(health.state().0, expected, "{events}");
    }

    #[test]
    fn a_server_whose_calls_all_fail_is_not_ready() {
        check("C", ServerState::Ready);
        check("Cc", ServerState::Failing);
        check("CcP", ServerState::Ready);
        check("CcPc", ServerState::Failing);
        check("CcPcP", ServerState::Failing);
        check("CccPPP", ServerState::Failing);
        check("CccPC", ServerState::Ready);
        check("p", ServerState::Failing);
        check("ppP", ServerState::Ready);
    }

    #[test]
    fn calls_that_fail_together_count_once() {
        let now = Instant::now();
        let health = Health::new(now);
        let later = now + Duration::from_secs(1);
        (0..5).for_each(|_| health.failed(Failure::from(Refusal::StreamLost), Some(now), later));
        health.worked(false);
        assert_eq!(health.state().0, ServerState::Ready);
    }

    #[test]
    fn a_login_shows_before_anything_else() {
        let now = Instant::now();
        let health = Health::new(now);
        health.is_silent.set(true);
        assert_eq!(health.state().0, ServerState::NotResponding);
        health.failed(Failure::from(Refusal::NeedsLogin { server: None, status: 401 }), None, now);
        assert_eq!(health.state().0, ServerState::NeedsLogin);
        health.heard();
        health.worked(true);
        health.look(now);
        assert_eq!(health.state().0, ServerState::Ready);
    }
}
