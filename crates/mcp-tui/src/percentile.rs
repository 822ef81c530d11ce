//! Many durations in few figures.

/// By nearest rank: each is a value that occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
}

/// `None` of nothing.
pub fn percentiles(durations: &[u64]) -> Option<Percentiles> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let at = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    };
    Some(Percentiles { p50: at(50)?, p95: at(95)?, p99: at(99)? })
}

/// One glyph a value, scaled to the largest. Zero is blank: nothing happened then.
pub fn sparkline(values: &[u64], ascii: bool) -> String {
    const GLYPHS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];
    const ASCII: [char; 7] = ['_', '.', ':', '-', '=', '+', '#'];
    let glyphs = if ascii { ASCII } else { GLYPHS };
    let most = values.iter().copied().max().unwrap_or(0);
    let glyph = |value: u64| match value {
        0 => ' ',
        value => glyphs[((u128::from(value) * glyphs.len() as u128 - 1) / u128::from(most)) as usize],
    };
    values.iter().map(|value| glyph(*value)).collect()
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

    #[test]
    fn a_sparkline_is_scaled_to_its_largest() {
        assert_eq!(sparkline(&[0, 1, 2, 3, 4, 5, 6, 7], false), " ▁▂▃▄▅▆▇");
        assert_eq!(sparkline(&[1, 1000, u64::MAX], true), "__#");
        assert_eq!(sparkline(&[5, 5], false), "▇▇");
        assert_eq!(sparkline(&[0, 0], false), "  ");
        assert_eq!(sparkline(&[], false), "");
    }
}
