//! No more messages in a second than somebody wants. What was saved up in quiet times is there for a
//! burst; past that messages are let through in runs, so that calls mostly come with their answers.

/// Messages that a watcher with a limit a second may save up in quiet times.
pub const BURST: u32 = 1_024;
/// Part of a second of allowance that is saved up once a burst was too long. A run of messages then passes
/// together, so that most calls come with their answers.
const RUNS_PER_SECOND: u32 = 10;
/// What a message costs. A nanosecond is worth as many of these as there may be messages in a second.
const MESSAGE: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub struct Pace {
    saved: u64,
    at_ns: u64,
    /// Everything was spent, and a run is being saved up for.
    is_shut: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { saved: u64::from(BURST) * MESSAGE, at_ns: 0, is_shut: false }
    }
}

impl Pace {
    /// Whether one more message is wanted at this time.
    pub fn admits(&mut self, now_ns: u64, per_second: u32) -> bool {
        let gained = now_ns.saturating_sub(self.at_ns).saturating_mul(per_second.into());
        self.saved = self.saved.saturating_add(gained).min(u64::from(BURST) * MESSAGE);
        self.at_ns = self.at_ns.max(now_ns);
        let run = (per_second / RUNS_PER_SECOND).clamp(1, BURST);
        let needed = if self.is_shut { u64::from(run) * MESSAGE } else { MESSAGE };
        self.is_shut = self.saved < needed;
        if !self.is_shut {
            self.saved -= MESSAGE;
        }
        !self.is_shut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// How many of so many messages a second are admitted in each second after the first burst is spent.
    #[track_caller]
    fn check(per_second: u32, come: u64, expected: u64) {
        let mut pace = Pace::default();
        let mut admitted = |second: u64| {
            let times = (0..come).map(|at| (second * SECOND) + at * SECOND / come);
            times.filter(|now_ns| pace.admits(*now_ns, per_second)).count() as u64
        };
        let spent = (0..2_000).map(&mut admitted).sum::<u64>();
        assert!(spent <= 2_000 * u64::from(per_second) + u64::from(BURST), "{spent}");
        let later = (2_000..2_010).map(&mut admitted).sum::<u64>();
        let slack = 10 * expected / 50 + 1;
        assert!((10 * expected).abs_diff(later) <= slack, "{later} of {}", 10 * come);
    }

    #[test]
    fn no_more_is_admitted_than_wanted_and_no_less() {
        check(1, 1, 1);
        check(1, 50, 1);
        check(100, 99, 99);
        check(100, 100, 100);
        check(100, 150, 100);
        check(100, 3_000, 100);
    }

    #[test]
    fn a_burst_after_quiet_is_admitted_whole() {
        for per_second in [1, 1_000, 10_000] {
            let mut pace = Pace::default();
            for quiet in [SECOND, 1_100 * SECOND, 5_000 * SECOND] {
                assert!((0..BURST).all(|_| pace.admits(quiet, per_second)));
                assert!(!pace.admits(quiet, per_second));
            }
        }
    }

    #[test]
    fn past_that_it_goes_in_runs() {
        let mut pace = Pace::default();
        let admitted: Vec<bool> = (0..200_000).map(|at| pace.admits(SECOND + at * 20_000, 1_000)).collect();
        let runs = admitted.chunk_by(|one, other| one == other).filter(|run| run[0]).skip(1);
        let lengths: Vec<usize> = runs.map(<[bool]>::len).collect();
        assert!(lengths.len() >= 25 && lengths.iter().all(|length| (100..110).contains(length)), "{lengths:?}");
    }

    /// A clock that goes back, or far ahead, does no harm.
    #[test]
    fn any_time_will_do() {
        let mut pace = Pace::default();
        for now_ns in [u64::MAX, 0, 7, u64::MAX, 1 << 60] {
            pace.admits(now_ns, 10_000);
        }
        assert!(pace.saved <= u64::from(BURST) * MESSAGE);
    }
}
