//! Sizes and times in few letters. What does not fit a unit evenly is rounded down, so that a number
//! never shows the next unit's thousand.

use jiff::Timestamp;
use jiff::tz::TimeZone;

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1000 * MILLISECOND_NS;
const MINUTE_NS: u64 = 60 * SECOND_NS;
const HOUR_NS: u64 = 60 * MINUTE_NS;

/// `812 B`, `9.5 kB`, `67 MB`: in thousands, as disks and networks count.
pub(crate) fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut of_unit = 1000;
    let mut unit = 0;
    while bytes / of_unit >= 1000 && unit + 1 < UNITS.len() {
        of_unit *= 1000;
        unit += 1;
    }
    in_unit(bytes, of_unit, UNITS[unit])
}

/// `0.4 ms`, `312 ms`, `2.1 s`, `1m 04s`, `3h 20m`.
pub(crate) fn human_time(ns: u64) -> String {
    match ns {
        ..MILLISECOND_NS => format!("0.{} ms", ns / 100_000),
        MILLISECOND_NS..SECOND_NS => format!("{} ms", ns / MILLISECOND_NS),
        SECOND_NS..MINUTE_NS => format!("{}.{} s", ns / SECOND_NS, ns % SECOND_NS / (SECOND_NS / 10)),
        MINUTE_NS..HOUR_NS => format!("{}m {:02}s", ns / MINUTE_NS, ns % MINUTE_NS / SECOND_NS),
        _ => format!("{}h {:02}m", ns / HOUR_NS, ns % HOUR_NS / MINUTE_NS),
    }
}

/// The time of day of an RFC 3339 time, in UTC: `14:02:11.2`. Dashes if it is none.
pub(crate) fn clock(rfc3339: &str) -> String {
    let Ok(time) = rfc3339.parse::<Timestamp>() else {
        return "--:--:--.-".to_owned();
    };
    let time = time.to_zoned(TimeZone::UTC);
    let tenth = time.subsec_nanosecond() / 100_000_000;
    format!("{:02}:{:02}:{:02}.{tenth}", time.hour(), time.minute(), time.second())
}

/// How long ago, in one unit: `now`, `31 s`, `4 min`, `2 h`, `9 d`.
pub(crate) fn age(ms: u64) -> String {
    match ms / 1000 {
        0 => "now".to_owned(),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..86_400 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// One decimal below ten, none above.
fn in_unit(amount: u64, of_unit: u64, unit: &str) -> String {
    match amount / of_unit {
        whole @ ..10 => format!("{whole}.{} {unit}", amount % of_unit / (of_unit / 10)),
        whole => format!("{whole} {unit}"),
    }
}
