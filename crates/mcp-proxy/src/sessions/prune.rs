//! `sessions prune`: removes what the user no longer wants to keep, and nothing without being told.

use clap::Args;
use mcp_store::{Catalogue, Entry, StateDir};
use mcp_wire::visible::visible;
use uuid::Uuid;

use super::{indexing, server_of};
use crate::failure::{Failure, exit};
use crate::progress::{Progress, Unit};
use crate::report::{self, ColorChoice, Page, say};

#[derive(Args)]
pub(crate) struct PruneArgs {
    /// Remove sessions that ended longer ago than this: 12h, 30d, 8w
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<u64>,
    /// Remove the oldest sessions until the others take no more than this: 500M, 10G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    keep_bytes: Option<u64>,
    /// Remove all but this many of the newest sessions
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn prune(
    args: &PruneArgs,
    catalogue: &Catalogue,
    state: &StateDir,
    now_ns: u64,
    color: ColorChoice,
) -> Result<(), Failure> {
    if args.older_than.is_none() && args.keep_bytes.is_none() && args.keep.is_none() {
        return Err(Failure::usage("nothing says what to remove")
            .hint("give --older-than AGE, --keep-bytes SIZE or --keep N; with several, what any of them says goes"));
    }
    let entries = catalogue.entries()?;
    let chosen = chosen(&entries, args, now_ns);
    let mut page = Page::new(color);
    let word = if args.dry_run { "would remove" } else { "removed" };
    let progress = Progress::begin("removing", Unit::Sessions, Some(chosen.len() as u64));
    let (mut removed, mut freed, mut interrupted) = (Vec::<Uuid>::new(), 0, false);
    for entry in chosen {
        if !args.dry_run
            && let Err(error) = catalogue.remove(entry)
        {
            progress.say(&format!("mcp-proxy: session {} stays: {}", entry.header.id, Failure::from(error).what()));
            continue;
        }
        removed.push(entry.header.id);
        freed += entry.bytes;
        page.line(&line(word, entry))?;
        if progress.advance(1).is_err() {
            interrupted = true;
            break;
        }
    }
    drop(progress);
    page.end()?;
    if !args.dry_run {
        indexing::forget(&removed, state);
    }
    let kept = entries.len() - removed.len();
    say(&format!("{word} {} sessions with {}; {kept} kept", removed.len(), report::size(freed)));
    if interrupted {
        return Err(Failure::new(exit::INTERRUPTED, "interrupted; what was not removed until then stays"));
    }
    Ok(())
}

fn line(word: &str, entry: &Entry) -> String {
    let started = entry.header.started_at().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let id = &entry.header.id.to_string()[..8];
    let head = format!("{word} {id}  {started}  {:>9}  ", report::size(entry.bytes));
    let server = visible(&server_of(entry)).to_string();
    format!("{head}{}", report::rest_of_line(&server, head.len(), report::terminal_width()))
}

/// What any criterion says must go, oldest first. Running sessions count as kept, and stay.
fn chosen<'a>(entries: &'a [Entry], args: &PruneArgs, now_ns: u64) -> Vec<&'a Entry> {
    let (mut kept, mut kept_bytes, mut is_full) = (0, 0u64, false);
    let mut chosen = Vec::new();
    for entry in entries {
        let age_ns = now_ns.saturating_sub(entry.ended_ns.unwrap_or(entry.header.started_ns));
        let is_old = args.older_than.is_some_and(|age| age_ns > age);
        let is_too_many = args.keep.is_some_and(|keep| kept >= keep);
        // Once one has to go, a smaller, older one is not kept in place of it.
        is_full |= args.keep_bytes.is_some_and(|keep| kept_bytes.saturating_add(entry.bytes) > keep);
        if !entry.live && (is_old || is_too_many || is_full) {
            chosen.push(entry);
        } else {
            kept += 1;
            kept_bytes = kept_bytes.saturating_add(entry.bytes);
        }
    }
    chosen.reverse();
    chosen
}

/// A time as people write it, in nanoseconds.
pub(crate) fn age(text: &str) -> Result<u64, String> {
    let seconds = number_with_unit(text, &[("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400), ("w", 7 * 86_400)]);
    let nanoseconds = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
    nanoseconds.ok_or_else(|| "expected a time such as 12h, 30d or 8w".into())
}

fn size(text: &str) -> Result<u64, String> {
    let text = text.strip_suffix(['b', 'B']).unwrap_or(text).to_ascii_lowercase();
    let units = [("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("t", 1 << 40)];
    let bytes = number_with_unit(&text, &units).or_else(|| text.parse().ok());
    bytes.ok_or_else(|| "expected a size such as 500M or 10G".into())
}

fn number_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    number.parse::<u64>().ok()?.checked_mul(*unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_store::{SessionHeader, Transport};

    fn entry(started_s: u64, bytes: u64, live: bool) -> Entry {
        let started_ns = started_s * 1_000_000_000;
        let header = SessionHeader::begun(Uuid::from_u128(u128::from(started_s)), started_ns, Transport::Stdio);
        Entry {
            path: "x".into(),
            header,
            ended_ns: (!live).then_some(started_ns),
            live,
            interrupted: false,
            messages: 1,
            bytes,
            notes: Default::default(),
            warnings: Vec::new(),
        }
    }

    /// Newest first, as the catalogue gives them: times, sizes, and which is running.
    #[track_caller]
    fn check(older_than: Option<&str>, keep_bytes: Option<&str>, keep: Option<usize>, expected: &[u64]) {
        let entries = [
            entry(50, 10, true),
            entry(40, 10, false),
            entry(30, 100, false),
            entry(20, 1, false),
            entry(10, 10, true),
        ];
        let args = PruneArgs {
            older_than: older_than.map(|text| age(text).unwrap()),
            keep_bytes: keep_bytes.map(|text| size(text).unwrap()),
            keep,
            dry_run: false,
        };
        let times: Vec<u64> = chosen(&entries, &args, 60_000_000_000)
            .iter()
            .map(|entry| entry.header.started_ns / 1_000_000_000)
            .collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn what_any_criterion_says_goes_and_what_runs_stays() {
        check(Some("25s"), None, None, &[20, 30]);
        check(None, None, Some(2), &[20, 30]);
        check(None, None, Some(0), &[20, 30, 40]);
        check(None, Some("1000"), None, &[]);
        check(None, Some("100"), None, &[20, 30]);
        check(Some("35s"), Some("1k"), Some(3), &[20]);
        check(Some("1w"), None, None, &[]);
    }

    #[test]
    fn ages_and_sizes_are_read_as_people_write_them() {
        assert_eq!((age("30d"), age("2w")), (Ok(30 * 86_400_000_000_000), Ok(14 * 86_400_000_000_000)));
        assert_eq!((size("10G"), size("500mb"), size("7")), (Ok(10 << 30), Ok(500 << 20), Ok(7)));
        for text in ["", "d", "-1d", "30", "1.5h", "99999999999999999999d", "9999999999999w"] {
            assert!(age(text).is_err(), "{text}");
        }
        for text in ["", "G", "-1", "1.5G", "99999999999T"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
