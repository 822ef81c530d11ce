//! Many durations in few figures.

/// By nearest rank: each is a value that occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percentiles {
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
}

/// `None` of nothing.
pub(crate) fn percentiles(durations: &[u64]) -> Option<Percentiles> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let at = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    };
    Some(Percentiles { p50: at(50)?, p95: at(95)?, p99: at(99)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let all: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(percentiles(&all), Some(Percentiles { p50: 50, p95: 95, p99: 99 }));
        assert_eq!(percentiles(&[7]), Some(Percentiles { p50: 7, p95: 7, p99: 7 }));
        assert_eq!(percentiles(&[9, 1, 5]), Some(Percentiles { p50: 5, p95: 9, p99: 9 }));
        assert_eq!(percentiles(&[]), None);
    }
}
