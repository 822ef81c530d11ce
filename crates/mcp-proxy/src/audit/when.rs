//! Times as people give them: how long ago, a day, or a moment.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use mcp_wire::visible::visible;

use crate::failure::Failure;
use crate::sessions::age;

/// Nanoseconds since 1970. A day begins at midnight, UTC, as all times are shown.
pub(super) fn parse(text: &str, now_ns: u64) -> Result<u64, Failure> {
    if let Ok(ago) = age(text) {
        return Ok(now_ns.saturating_sub(ago));
    }
    let moment = text.parse::<Timestamp>().ok();
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    let ns = moment.or_else(day).and_then(|moment| u64::try_from(moment.as_nanosecond()).ok());
    ns.ok_or_else(|| {
        Failure::usage(format!("`{}` is no time", visible(text)))
            .hint("give how long ago (90s, 2h, 7d), a day (2026-02-01), or a moment (2026-02-01T12:00:00Z)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_give_them() {
        let now = 1_800_000_000_000_000_000;
        assert_eq!(parse("2h", now).ok(), Some(now - 7_200_000_000_000));
        assert_eq!(parse("2026-02-01", now).ok(), Some(1_769_904_000_000_000_000));
        assert_eq!(parse("2026-02-01T00:00:01Z", now).ok(), Some(1_769_904_001_000_000_000));
        assert_eq!(parse("2026-02-01T01:00:00+01:00", now).ok(), Some(1_769_904_000_000_000_000));
        for text in ["", "yesterday", "2026-13-01", "1960-01-01", "12"] {
            assert!(parse(text, now).is_err(), "{text}");
        }
    }
}
