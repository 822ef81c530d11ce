//! Connections over TCP that have shown nothing yet. Any program of this machine can open them and say
//! nothing, so they have little room of their own, and a new one takes the place of the oldest: whoever
//! has the token shows it at once, and always gets in.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::reply::Refusal;

/// TCP connections that have not shown the token. A new one takes the place of the oldest, so that strangers cannot
/// shut out a face with the token. A page opens half a dozen connections before it has its cookie.
pub(super) const STRANGERS_MAX: usize = 64;

pub(super) struct Strangers {
    /// The oldest first.
    waiting: Mutex<VecDeque<Arc<Notify>>>,
    /// For those that are strangers no more.
    room: Arc<Semaphore>,
}

/// One connection, for as long as this is held.
pub(super) struct Visitor {
    strangers: Arc<Strangers>,
    turned_away: Arc<Notify>,
    /// Its turn, once it has shown that it may.
    turn: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Strangers {
    /// `room` is how many may be there that have shown something.
    pub(super) fn new(room: usize) -> Arc<Self> {
        Arc::new(Self { waiting: Mutex::default(), room: Arc::new(Semaphore::new(room)) })
    }

    pub(super) fn enter(self: &Arc<Self>) -> Arc<Visitor> {
        let turned_away = Arc::new(Notify::new());
        let mut waiting = self.lock();
        waiting.push_back(Arc::clone(&turned_away));
        if waiting.len() > STRANGERS_MAX
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.notify_one();
        }
        drop(waiting);
        Arc::new(Visitor { strangers: Arc::clone(self), turned_away, turn: Mutex::default() })
    }

    fn leave(&self, stranger: &Arc<Notify>) {
        self.lock().retain(|waiting| !Arc::ptr_eq(waiting, stranger));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visitor {
    /// It has shown that it may: nobody takes its place any more.
    pub(super) fn let_in(&self) -> Result<(), Refusal> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.is_none() {
            let free = Arc::clone(&self.strangers.room).try_acquire_owned();
            *turn = Some(free.map_err(|_| Refusal::too_many("there are too many connections already"))?);
            self.strangers.leave(&self.turned_away);
        }
        Ok(())
    }

    /// Waits until another has its place.
    pub(super) async fn turned_away(&self) {
        self.turned_away.notified().await;
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.strangers.leave(&self.turned_away);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_turned_away(visitor: &Visitor) -> bool {
        pin!(visitor.turned_away()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_oldest_stranger_makes_room() {
        let strangers = Strangers::new(1);
        let (known, oldest) = (strangers.enter(), strangers.enter());
        known.let_in().unwrap();
        known.let_in().unwrap();
        let others: Vec<_> = (1..STRANGERS_MAX).map(|_| strangers.enter()).collect();
        assert!(!is_turned_away(&oldest));
        let newest = strangers.enter();
        assert!(is_turned_away(&oldest) && !is_turned_away(&known));
        assert!(others.iter().chain([&newest]).all(|other| !is_turned_away(other)));
        // Known ones have room of their own, and give it back.
        assert_eq!(newest.let_in().unwrap_err().status.as_u16(), 503);
        drop(known);
        newest.let_in().unwrap();
        drop((others, oldest));
        assert!(strangers.lock().is_empty());
    }
}
