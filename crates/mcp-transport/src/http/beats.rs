//! A clock that costs nothing to read: the listener's sweep moves it on, once a second. For deadlines
//! of many seconds that nobody needs to meet to the second, on paths where every call counts.

use std::cell::Cell;
use std::time::Duration;

/// Interval at which connections, sessions and idle connections to servers are held to their limits.
pub const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct Beats(Cell<u32>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beat(u32);

impl Beats {
    pub fn now(&self) -> Beat {
        Beat(self.0.get())
    }

    /// How long ago `beat` was, give or take one.
    pub fn since(&self, beat: Beat) -> Duration {
        EVERY * (self.0.get() - beat.0)
    }

    /// One more has passed.
    pub fn move_on(&self) {
        self.0.set(self.0.get() + 1);
    }
}
