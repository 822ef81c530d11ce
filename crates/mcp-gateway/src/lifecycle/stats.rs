//! How a server's calls went in the last minutes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::board::CallsView;

/// Time of one value of a sparkline, and its values: five minutes.
const SLICE: Duration = Duration::from_secs(10);
const SLICES: usize = 30;

#[derive(Default)]
pub(crate) struct Stats {
    asked: Cell<u64>,
    errors: Cell<u64>,
    now: RefCell<Slice>,
    past: RefCell<VecDeque<Slice>>,
    began: Cell<Option<Instant>>,
}

#[derive(Clone, Copy, Default)]
struct Slice {
    asked: u64,
    answered: u64,
    total: Duration,
    longest: Duration,
}

impl Stats {
    pub(crate) fn asked(&self) {
        self.asked.set(self.asked.get() + 1);
        self.now.borrow_mut().asked += 1;
    }

    pub(crate) fn answered(&self, after: Duration, is_error: bool) {
        self.errors.set(self.errors.get() + u64::from(is_error));
        let mut now = self.now.borrow_mut();
        now.answered += 1;
        now.total += after;
        now.longest = now.longest.max(after);
    }

    pub(crate) fn tick(&self, now: Instant) {
        let began = self.began.get().unwrap_or(now);
        self.began.set(Some(began));
        if now - began < SLICE {
            return;
        }
        self.began.set(Some(now));
        let mut past = self.past.borrow_mut();
        past.push_back(self.now.take());
        while past.len() > SLICES {
            past.pop_front();
        }
    }

    pub(crate) fn view(&self) -> CallsView {
        let past = self.past.borrow();
        let now = *self.now.borrow();
        let minute = past.iter().rev().take(5).map(|slice| slice.asked).sum::<u64>() + now.asked;
        let micros = |slice: &Slice| match slice.answered {
            0 => None,
            answered => Some((slice.total.as_micros() / u128::from(answered)) as u64),
        };
        CallsView {
            total: self.asked.get(),
            errors: self.errors.get(),
            per_minute: minute,
            latency_us: past.iter().chain([&now]).map(micros).collect(),
            longest_us: past.iter().chain([&now]).map(|slice| slice.longest.as_micros() as u64).max().unwrap_or(0),
        }
    }
}
