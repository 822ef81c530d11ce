//! Numbers, durations and sizes as people write them. A value is a range: `200ms` is everything that
//! would be written so, up to but not including `201ms`.

use std::ops::RangeInclusive;

/// Whole numbers of the smallest unit: ones, nanoseconds or bytes.
pub(crate) type Range = RangeInclusive<i128>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Whole,
    Duration,
    Size,
}

const DURATIONS: [(&str, i128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const SIZES: [(&str, i128); 7] =
    [("", 1), ("b", 1), ("k", 1 << 10), ("kb", 1 << 10), ("m", 1 << 20), ("mb", 1 << 20), ("g", 1 << 30)];
/// Digits of one number; more would not fit.
const DIGITS_MAX: usize = 24;

impl Measure {
    /// What a value must look like, for people.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Whole => "a whole number, such as `7` or `-32602`",
            Self::Duration => "a duration with its unit, such as `200ms`, `1.5s` or `2m`",
            Self::Size => "a size, such as `512`, `10k` or `1.5M`",
        }
    }

    pub fn parse(self, text: &str) -> Option<Range> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) if self == Self::Whole => (-1, rest),
            _ => (1, text),
        };
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let (number, unit) = digits.split_at(digits.find(|c| !is_digit(c)).unwrap_or(digits.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || fraction.contains('.') || whole.len() + fraction.len() > DIGITS_MAX {
            return None;
        }
        if number.contains('.') && (fraction.is_empty() || self == Self::Whole) {
            return None;
        }
        let unit = self.unit(unit)?;
        let all: i128 = format!("{whole}{fraction}").parse().ok()?;
        let parts = 10i128.checked_pow(fraction.len() as u32)?;
        let start = all.checked_mul(unit)? / parts;
        let end = all.checked_add(1)?.checked_mul(unit)? / parts;
        Some(if sign < 0 { -start..=-start } else { start..=(end - 1).max(start) })
    }

    /// `10..20`, `10..`, `..20`, or one value.
    pub fn parse_range(self, text: &str) -> Option<Range> {
        let Some((from, to)) = text.split_once("..") else { return self.parse(text) };
        let from = if from.is_empty() { Some(i128::MIN) } else { self.parse(from).map(|range| *range.start()) };
        let to = if to.is_empty() { Some(i128::MAX) } else { self.parse(to).map(|range| *range.end()) };
        (text != "..").then_some(from?..=to?)
    }

    fn unit(self, text: &str) -> Option<i128> {
        let units: &[(&str, i128)] = match self {
            Self::Whole => &[("", 1)],
            Self::Duration => &DURATIONS,
            Self::Size => &SIZES,
        };
        // `10M` and `10m` are both megabytes, but a minute is not a megasecond.
        let found = |name: &&(&str, i128)| name.0 == text || (self == Self::Size && name.0.eq_ignore_ascii_case(text));
        units.iter().find(found).map(|(_, factor)| *factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(measure: Measure, text: &str, expected: Option<(i128, i128)>) {
        assert_eq!(measure.parse_range(text), expected.map(|(from, to)| from..=to), "{text}");
    }

    #[test]
    fn values_are_ranges() {
        use Measure::*;
        check(Whole, "7", Some((7, 7)));
        check(Whole, "-32602", Some((-32602, -32602)));
        check(Whole, "10..20", Some((10, 20)));
        check(Whole, "10..", Some((10, i128::MAX)));
        check(Whole, "..-3", Some((i128::MIN, -3)));
        check(Duration, "200ms", Some((200_000_000, 200_999_999)));
        check(Duration, "1.5s", Some((1_500_000_000, 1_599_999_999)));
        check(Duration, "0.5ns", Some((0, 0)));
        check(Duration, "1m..2m", Some((60_000_000_000, 179_999_999_999)));
        check(Size, "512", Some((512, 512)));
        check(Size, "10k", Some((10_240, 11_263)));
        check(Size, "1.5MB", Some((1_572_864, 1_677_720)));
        for (measure, text) in [
            (Whole, ""),
            (Whole, "x"),
            (Whole, "1.5"),
            (Whole, "1k"),
            (Whole, "--1"),
            (Whole, ".."),
            (Whole, "1."),
            (Duration, "200"),
            (Duration, "1M"),
            (Duration, "-1s"),
            (Duration, "1.2.3s"),
            (Duration, ".5s"),
            (Size, "1x"),
            (Size, "99999999999999999999999999999999999999999"),
        ] {
            check(measure, text, None);
        }
    }
}
