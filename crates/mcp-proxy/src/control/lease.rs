//! The control lease. One face at a time may act; it counts as there while an event stream of it is
//! open, and for a moment after, so that a face can come back from a hiccup.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_control::api::{Hand, Lease, LeaseGrant, LeaseRequest};
use mcp_engine::intercept::Owner;
use mcp_engine::pipeline::wall_ns;
use mcp_store::recorded::timestamp;
use subtle::ConstantTimeEq;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::gate::random;
use super::reply::Refusal;

/// A face may be away for this long before its lease lapses.
pub(super) const AWAY_FOR: Duration = Duration::from_secs(3);
/// Length of a token.
const TOKEN_BYTES: usize = 64;
/// The longest name of a face that holds the lease or acts.
const NAME_CHARS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Leases {
    held: Mutex<Option<Held>>,
    /// Something about it changed.
    changed: Notify,
}

struct Held {
    token: String,
    holder: String,
    since: String,
    /// Event streams of the holder.
    streams: usize,
    /// When it lapses, while there is no stream.
    lapses: Option<Instant>,
}

/// Somebody who may act.
#[derive(Debug)]
pub(crate) struct Actor {
    pub name: String,
    pub owner: Owner,
}

/// An event stream of the holder, for as long as it is open.
pub(crate) struct Presence {
    leases: Arc<Leases>,
    token: String,
}

impl Leases {
    /// Who has it.
    pub(crate) fn now(&self) -> Option<Lease> {
        self.lock().as_ref().map(Held::shown)
    }

    pub(crate) fn grant(&self, request: &LeaseRequest) -> Result<LeaseGrant, Refusal> {
        let holder = name(&request.holder)?.ok_or_else(|| Refusal::bad("`holder` needs a name that others see"))?;
        let mut held = self.lock();
        if let Some(held) = held.as_ref().filter(|_| !request.take) {
            return Err(Refusal::locked(format!(
                "{} has control since {}; `take` takes it over",
                held.holder, held.since
            )));
        }
        let taken_from = held.take().map(|held| held.holder);
        let (token, since) = (random(), timestamp(wall_ns()).strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        let lapses = Some(Instant::now() + AWAY_FOR);
        *held = Some(Held { token: token.clone(), holder: holder.clone(), since: since.clone(), streams: 0, lapses });
        self.changed.notify_one();
        Ok(LeaseGrant { token, holder, since, taken_from })
    }

    /// Gives the lease up; `false` if it is not that of `token`.
    pub(crate) fn give_up(&self, token: &str) -> Result<bool, Refusal> {
        check_token(token)?;
        let mut held = self.lock();
        let is_meant = held.as_ref().is_some_and(|held| held.is(token));
        if is_meant {
            *held = None;
        }
        Ok(is_meant)
    }

    /// A face opens an event stream with its lease.
    pub(crate) fn enter(self: &Arc<Self>, token: &str) -> Result<Presence, Refusal> {
        check_token(token)?;
        let mut held = self.lock();
        match held.as_mut().filter(|held| held.is(token)) {
            Some(held) => {
                held.streams += 1;
                held.lapses = None;
                Ok(Presence { leases: Arc::clone(self), token: token.to_owned() })
            }
            None => Err(over(held.as_ref())),
        }
    }

    /// Whether whoever sends `hand` may act, and as whom.
    pub(crate) fn permit(&self, hand: &Hand) -> Result<Actor, Refusal> {
        let by = hand.by.as_deref().map(name).transpose()?.flatten();
        hand.lease.as_deref().map_or(Ok(()), check_token)?;
        let held = self.lock();
        match (&hand.lease, held.as_ref()) {
            (Some(token), Some(held)) if held.is(token) => {
                Ok(Actor { name: by.unwrap_or_else(|| held.holder.clone()), owner: Owner::Face })
            }
            (Some(_), held) if !hand.take => Err(over(held)),
            (None, Some(held)) if !hand.take => Err(Refusal::locked(format!(
                "{} has control since {}; `take` acts nevertheless",
                held.holder, held.since
            ))),
            _ => Ok(Actor { name: by.unwrap_or_else(|| "a command".into()), owner: Owner::Command }),
        }
    }

    /// Waits until the lease has lapsed, and takes it away.
    pub(crate) async fn lapsed(&self) {
        loop {
            let lapses = self.lock().as_ref().and_then(|held| held.lapses);
            let changed = self.changed.notified();
            match lapses {
                None => changed.await,
                Some(at) => {
                    if tokio::time::timeout_at(at, changed).await.is_err() && self.lapse(Instant::now()) {
                        return;
                    }
                }
            }
        }
    }

    fn lapse(&self, now: Instant) -> bool {
        let mut held = self.lock();
        let is_over = held.as_ref().and_then(|held| held.lapses).is_some_and(|at| at <= now);
        if is_over {
            *held = None;
        }
        is_over
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn is(&self, token: &str) -> bool {
        bool::from(self.token.as_bytes().ct_eq(token.as_bytes()))
    }

    fn shown(&self) -> Lease {
        Lease { holder: self.holder.clone(), since: self.since.clone(), present: self.streams > 0 }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some(held) = self.leases.lock().as_mut().filter(|held| held.is(&self.token)) {
            held.streams -= 1;
            if held.streams == 0 {
                held.lapses = Some(Instant::now() + AWAY_FOR);
                self.leases.changed.notify_one();
            }
        }
    }
}

/// What cannot be a token is a mistake, and no lease that is over.
fn check_token(token: &str) -> Result<(), Refusal> {
    match token.len() > TOKEN_BYTES {
        true => Err(Refusal::bad(format!("a lease has {TOKEN_BYTES} characters"))),
        false => Ok(()),
    }
}

fn over(held: Option<&Held>) -> Refusal {
    Refusal::locked(match held {
        Some(held) => format!("this lease is over; {} has control since {}", held.holder, held.since),
        None => "this lease is over; ask for it again".into(),
    })
}

/// A name that others are shown. Nothing in it may deceive them.
fn name(given: &str) -> Result<Option<String>, Refusal> {
    let given = given.trim();
    if given.chars().count() > NAME_CHARS_MAX {
        return Err(Refusal::bad(format!("a name has up to {NAME_CHARS_MAX} characters")));
    }
    Ok((!given.is_empty()).then(|| mcp_wire::visible::visible(given).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(holder: &str, take: bool) -> LeaseRequest {
        LeaseRequest { holder: holder.into(), take }
    }

    fn hand(lease: Option<&str>, take: bool) -> Hand {
        Hand { lease: lease.map(str::to_owned), by: None, take }
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_acts() {
        let leases = Arc::new(Leases::default());
        assert_eq!(leases.permit(&hand(None, false)).unwrap().owner, Owner::Command);
        let ann = leases.grant(&ask("ann", false)).unwrap();
        assert!(leases.grant(&ask("bob", false)).unwrap_err().message.starts_with("ann has control since "));
        let actor = leases.permit(&hand(Some(&ann.token), false)).unwrap();
        assert_eq!((actor.name.as_str(), actor.owner), ("ann", Owner::Face));
        assert_eq!(leases.permit(&hand(None, false)).unwrap_err().status.as_u16(), 423);
        assert_eq!(leases.permit(&hand(None, true)).unwrap().owner, Owner::Command);
        let bob = leases.grant(&ask("bob", true)).unwrap();
        assert_eq!(bob.taken_from.as_deref(), Some("ann"));
        let over = leases.permit(&hand(Some(&ann.token), false)).unwrap_err();
        assert!(over.message.starts_with("this lease is over; bob has control"), "{}", over.message);
        assert!(!leases.give_up(&ann.token).unwrap());
        assert!(leases.give_up(&bob.token).unwrap());
        assert_eq!(leases.now(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_lapses_three_seconds_after_its_last_stream() {
        let leases = Arc::new(Leases::default());
        let granted = Instant::now();
        let ann = leases.grant(&ask("ann", false)).unwrap();
        leases.lapsed().await;
        assert_eq!((granted.elapsed(), leases.now()), (AWAY_FOR, None));
        assert!(leases.enter(&ann.token).is_err());

        let ann = leases.grant(&ask("ann", false)).unwrap();
        let (one, other) = (leases.enter(&ann.token).unwrap(), leases.enter(&ann.token).unwrap());
        drop(one);
        let is_kept = tokio::time::timeout(AWAY_FOR * 100, leases.lapsed()).await.is_err();
        assert!(is_kept && leases.now().unwrap().present);
        drop(other);
        assert!(!leases.now().unwrap().present);
        let left = Instant::now();
        leases.lapsed().await;
        assert_eq!(left.elapsed(), AWAY_FOR);
    }

    #[tokio::test(start_paused = true)]
    async fn coming_back_in_time_keeps_it() {
        let leases = Arc::new(Leases::default());
        let ann = leases.grant(&ask("ann", false)).unwrap();
        drop(leases.enter(&ann.token).unwrap());
        tokio::time::advance(AWAY_FOR - Duration::from_millis(1)).await;
        let _back = leases.enter(&ann.token).unwrap();
        assert!(tokio::time::timeout(AWAY_FOR * 2, leases.lapsed()).await.is_err());
    }

    #[test]
    fn names_do_not_deceive() {
        assert_eq!(name(" ann ").unwrap().as_deref(), Some("ann"));
        assert_eq!(name("  ").unwrap(), None);
        assert!(name(&"x".repeat(65)).is_err());
        assert!(!name("a\u{202e}b\u{1b}[2J").unwrap().unwrap().chars().any(|c| c.is_control() || c == '\u{202e}'));
    }
}
