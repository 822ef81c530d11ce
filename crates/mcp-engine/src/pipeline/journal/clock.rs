//! The time that messages get.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall time that never goes back: read once from the system, then counted.
pub(super) struct Clock {
    began: Instant,
    began_ns: u64,
    pub last_ns: u64,
    /// Nothing was committed since it was read last, so that was a moment ago.
    is_recent: bool,
}

impl Clock {
    pub(super) fn start() -> Self {
        let began_ns = wall_ns();
        Self { began: Instant::now(), began_ns, last_ns: began_ns, is_recent: false }
    }

    pub(super) fn now_ns(&mut self) -> u64 {
        self.last_ns = self.began_ns + self.began.elapsed().as_nanos() as u64;
        self.is_recent = true;
        self.last_ns
    }

    /// What was recorded so far is written, so that from now on it is not recent any more.
    pub(super) fn rest(&mut self) {
        self.is_recent = false;
    }

    /// For what stands beside a message and happens with it: the system need not be asked again.
    pub(super) fn recent_ns(&mut self) -> u64 {
        if self.is_recent { self.last_ns } else { self.now_ns() }
    }

    /// The same for what is not recorded, so that nothing says how long that stays true.
    pub(super) fn recent(&self) -> Instant {
        match self.is_recent {
            true => self.began + Duration::from_nanos(self.last_ns - self.began_ns),
            false => Instant::now(),
        }
    }
}

/// Nanoseconds since 1970.
pub fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
