//! The audit log, for people: what was decided, by which rule or by whom, how it went on, and whether the
//! log is as it was written.

mod csv;
mod follow;
mod raw;
mod show;
pub(crate) mod table;
mod verify;
mod when;

use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use mcp_engine::pipeline::wall_ns;
use mcp_filter::Filter;
use mcp_store::audit::ledger::{DecisionRow, Entry, Order, Wanted};
use mcp_store::audit::{Ledger, LogFiles, logs};
use mcp_store::{Catalogue, StateDir, StoreError};
use mcp_wire::visible::visible;
use uuid::Uuid;

use crate::failure::{Failure, exit};
use crate::progress::{Unit, Waiter};
use crate::report::{ColorChoice, Page, say};
use table::Table;

/// Decisions in a list unless `--limit` says otherwise: a few screens.
const SHOWN: usize = 100;
/// Earlier decisions that `--follow` shows first.
const SHOWN_BEFORE: usize = 10;
/// Decisions in one list. A file of all of them comes by `--json` and `--csv`.
const LIMIT_MAX: u64 = 1_000_000;
/// Fields of filters that a log can answer.
const KNOWN_TO_LOGS: [&str; 14] = [
    "dir", "method", "tool", "server", "client", "op", "verdict", "rule", "status", "code", "dur", "seq", "held",
    "text",
];

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Show only decisions that match, such as `verdict:deny tool:delete_*`; see `mcp-proxy help filter`
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Show only what was decided since: 2h, 7d, 2026-02-01, 2026-02-01T12:00:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Show only what was decided before
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Show only decisions about messages of this session: its id, the beginning of it, or its name
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Take only the log of this instance: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// Show no more than this many decisions, the newest [default: 100; --json and --csv: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=LIMIT_MAX))]
    limit: Option<u64>,
    /// Go on with what is decided from now on, by every proxy there is
    #[arg(long, short, conflicts_with = "until")]
    follow: bool,
    /// The lines of the logs as they are; with --verify, an object a log
    #[arg(long)]
    json: bool,
    /// For spreadsheets, with the outcome beside the decision
    #[arg(long, conflicts_with_all = ["json", "follow"])]
    csv: bool,
    /// Tell whether the logs are as they were written, and name the first record that is not
    #[arg(long, conflicts_with_all = ["filter", "since", "until", "session", "limit", "follow", "csv"])]
    verify: bool,
}

#[derive(Subcommand)]
enum AuditCommand {
    /// Show everything about one decision, and where to find its message
    Show {
        /// Its id as denials and lists give it: INSTANCE/NUMBER, or the beginning of the instance's
        id: String,
    },
}

pub(crate) fn audit(args: &AuditArgs, state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    state.check_audit()?;
    let logs = logs(&state.audit())?;
    let ledger = open_ledger(state, &logs, &Waiter::Command)?;
    if args.verify {
        let chosen = args.instance.as_deref().map(|wanted| find_instance(wanted, &ledger, &logs)).transpose()?;
        return verify::verify(&logs, chosen, &ledger, state, args.json, color);
    }
    if let Some(AuditCommand::Show { id }) = &args.command {
        return show::show(id, &ledger, &logs, color);
    }
    ledger.findings.iter().for_each(|finding| say(&format!("mcp-proxy: {finding}")));
    let choice = Choice::new(args, state, &ledger, &logs)?;
    match (args.follow, args.json, args.csv) {
        (true, ..) => follow::follow(&choice, state, &ledger, args.json, color),
        (_, true, _) => raw::print(&choice, &ledger, &logs),
        (_, _, true) => csv::print(&choice, &ledger),
        _ => list(&choice, &ledger, color),
    }
}

/// The newest decisions that match, the newest first.
pub(crate) fn decisions(
    filter: Option<&str>,
    limit: usize,
    state: &StateDir,
    waiter: &Waiter,
) -> Result<Vec<DecisionRow>, Failure> {
    state.check_audit()?;
    let filter = filter.map(parse_filter).transpose()?;
    let ledger = open_ledger(state, &logs(&state.audit())?, waiter)?;
    let choice = Choice { wanted: Wanted::default(), filter, limit: None };
    choice.newest_of(&ledger, limit, |entry| match entry {
        Entry::Decision(row) => Some(*row),
        Entry::Note(_) => None,
    })
}

/// Which decisions are meant.
struct Choice {
    wanted: Wanted,
    filter: Option<Filter>,
    limit: Option<usize>,
}

impl Choice {
    fn new(args: &AuditArgs, state: &StateDir, ledger: &Ledger, logs: &[LogFiles]) -> Result<Self, Failure> {
        let now_ns = wall_ns();
        let time = |text: &Option<String>| text.as_deref().map(|text| when::parse(text, now_ns)).transpose();
        let instance = args.instance.as_deref().map(|wanted| find_instance(wanted, ledger, logs)).transpose()?;
        let session = args.session.as_deref().map(|wanted| find_session(wanted, state)).transpose()?;
        let wanted = Wanted { since_ns: time(&args.since)?, until_ns: time(&args.until)?, instance, session };
        let filter = args.filter.as_deref().map(parse_filter).transpose()?;
        Ok(Self { wanted, filter, limit: args.limit.map(|limit| limit as usize) })
    }

    /// Notes are about no message, so no filter matches them.
    fn matches(&self, entry: &Entry) -> bool {
        match (&self.filter, entry) {
            (None, _) => true,
            (Some(filter), Entry::Decision(row)) => filter.matches(&**row),
            (Some(_), Entry::Note(_)) => false,
        }
    }

    /// Gives out all that is meant, oldest first.
    fn each(&self, ledger: &Ledger, mut take: impl FnMut(Entry) -> Result<(), Failure>) -> Result<(), Failure> {
        if let Some(limit) = self.limit {
            return self.newest(ledger, limit)?.into_iter().try_for_each(take);
        }
        ledger.each(&self.wanted, Order::OldestFirst, |entry| {
            if self.matches(&entry) {
                take(entry)?;
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// So many of the newest, the newest last.
    fn newest(&self, ledger: &Ledger, count: usize) -> Result<Vec<Entry>, Failure> {
        let mut entries = self.newest_of(ledger, count, Some)?;
        entries.reverse();
        Ok(entries)
    }

    /// So many of the newest of a kind, the newest first.
    fn newest_of<T>(
        &self,
        ledger: &Ledger,
        count: usize,
        of_kind: impl Fn(Entry) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let mut found = Vec::new();
        ledger.each(&self.wanted, Order::NewestFirst, |entry| {
            if found.len() == count {
                return Ok::<_, Failure>(ControlFlow::Break(()));
            }
            if self.matches(&entry) {
                found.extend(of_kind(entry));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}

/// What a log does not have would never match, and nobody would know why.
fn parse_filter(text: &str) -> Result<Filter, Failure> {
    let filter = Filter::parse(text)?;
    let unknown = filter.fields().into_iter().map(|(field, _)| field).find(|field| !KNOWN_TO_LOGS.contains(field));
    let what = match unknown {
        Some(field) => format!("the audit does not have `{}` of a message", visible(field)),
        None if !filter.path_keys().is_empty() => "the audit does not have what messages say".into(),
        None => return Ok(filter),
    };
    Err(Failure::usage(what).hint(
        "`mcp-proxy sessions search --filter EXPR` looks at the messages; `verdict:*` there are those that rules judged",
    ))
}

fn list(choice: &Choice, ledger: &Ledger, color: ColorChoice) -> Result<ExitCode, Failure> {
    let limit = choice.limit.unwrap_or(SHOWN);
    let mut entries = choice.newest(ledger, limit + 1)?;
    let is_more = entries.len() > limit;
    entries.drain(..usize::from(is_more));
    if entries.is_empty() {
        say(if ledger.instances()?.is_empty() {
            "nothing was decided yet; `mcp-proxy run --rules FILE -- CMD` decides by rules"
        } else {
            "nothing found"
        });
        return Ok(ExitCode::from(exit::NEGATIVE));
    }
    let mut page = Page::new(color);
    Table::fitting(&entries).print(&mut page, &entries)?;
    page.end()?;
    if is_more {
        say(&format!("there is more than the newest {limit}; --limit N shows it"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The rows, with everything that the logs have.
fn open_ledger(state: &StateDir, logs: &[LogFiles], waiter: &Waiter) -> Result<Ledger, Failure> {
    if logs.is_empty() && !state.decisions().exists() {
        // Nothing to make rows of, and nothing to make for them.
        return Ok(Ledger::in_memory()?);
    }
    let mut ledger = Ledger::open(state)?;
    match bring_up_to_date(&mut ledger, logs, waiter) {
        Err(error) if error.is_damaged_cache() => {
            waiter.say("mcp-proxy: the table of decisions was unusable and is filled anew");
            drop(ledger);
            ledger = Ledger::open_anew(state)?;
            bring_up_to_date(&mut ledger, logs, waiter)?
        }
        Err(error) if error.is_busy_cache() => {
            waiter.say("mcp-proxy: another command is reading the audit logs; the newest decisions may be missing");
            ControlFlow::Continue(())
        }
        done => done?,
    }
    .map_break(|()| Failure::new(exit::INTERRUPTED, "interrupted; what was read until then need not be read again"))
    .break_value()
    .map_or(Ok(ledger), Err)
}

fn bring_up_to_date(ledger: &mut Ledger, logs: &[LogFiles], waiter: &Waiter) -> Result<ControlFlow<()>, StoreError> {
    let progress = waiter.begin("reading audit logs", Unit::Bytes, Some(ledger.backlog(logs)?));
    ledger.update(logs, &mut |bytes| {
        if progress.advance(bytes).is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// The oldest first.
fn by_age(logs: &[LogFiles]) -> Vec<&LogFiles> {
    let mut aged: Vec<(u64, &LogFiles)> =
        logs.iter().map(|log| (log.first().map_or(u64::MAX, |begin| begin.time_ns()), log)).collect();
    aged.sort_by_key(|(begun_ns, log)| (*begun_ns, log.instance));
    aged.into_iter().map(|(_, log)| log).collect()
}

/// The one instance whose id begins so, among those whose logs are there or were.
fn find_instance(wanted: &str, ledger: &Ledger, logs: &[LogFiles]) -> Result<Uuid, Failure> {
    let mut all: Vec<Uuid> = logs.iter().map(|log| log.instance).chain(ledger.instances()?).collect();
    all.sort_unstable();
    all.dedup();
    let beginning = wanted.to_ascii_lowercase();
    let found: Vec<Uuid> =
        all.into_iter().filter(|id| !wanted.is_empty() && id.to_string().starts_with(&beginning)).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::usage(format!("no audit log of an instance `{}`", visible(wanted)))
            .hint("`mcp-proxy audit --verify` lists the logs there are")),
        several => {
            let ids: Vec<String> = several.iter().map(Uuid::to_string).collect();
            Err(Failure::usage(format!("`{}` fits several instances: {}", visible(wanted), ids.join(", ")))
                .hint("give more of the id"))
        }
    }
}

/// A session may be gone whose decisions are not; then it is known by its whole id.
fn find_session(wanted: &str, state: &StateDir) -> Result<Uuid, Failure> {
    match Uuid::parse_str(wanted) {
        Ok(id) => Ok(id),
        Err(_) => Ok(Catalogue::open(state)?.find(wanted)?.header.id),
    }
}
