//! `audit --verify`: walks along every chain and says what it found, a log a line.

use std::ops::ControlFlow;
use std::process::ExitCode;

use mcp_store::StateDir;
use mcp_store::audit::{Ledger, LogFiles, Standing, Verified, Witness, recorded, verify as walk};
use mcp_wire::visible::visible;
use serde_json::json;
use uuid::Uuid;

use super::by_age;
use super::table::time;
use crate::failure::{Failure, exit, quoted};
use crate::progress::{Progress, Unit};
use crate::report::{ColorChoice, Page, Style, say};

/// Verifies all `logs`, or the one of `chosen`.
pub(super) fn verify(
    logs: &[LogFiles],
    chosen: Option<Uuid>,
    ledger: &Ledger,
    state: &StateDir,
    as_json: bool,
    color: ColorChoice,
) -> Result<ExitCode, Failure> {
    let is_chosen = |instance: &Uuid| chosen.is_none_or(|chosen| chosen == *instance);
    let gone: Vec<String> = gone(logs, ledger, is_chosen)?;
    let logs: Vec<&LogFiles> = by_age(logs).into_iter().filter(|log| is_chosen(&log.instance)).collect();
    let progress = Progress::begin("verifying", Unit::Bytes, Some(logs.iter().map(|log| log.bytes()).sum()));
    let mut page = Page::new(color);
    let (mut records, mut broken) = (0, gone.len());
    for log in &logs {
        let witnesses: Vec<Witness> = ledger.witness(&log.instance)?.into_iter().collect();
        let mut step = |bytes| match progress.advance(bytes) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        let interrupted = || Failure::new(exit::INTERRUPTED, "interrupted; not all was verified");
        let mut verified = walk(log, &witnesses, &mut step)?.ok_or_else(interrupted)?;
        if matches!(verified.standing, Standing::Interrupted { .. }) && verified.fault.is_none() {
            // Only then can there be more to know.
            let asking = Progress::begin("asking recordings", Unit::Bytes, None);
            let witness = recorded(&log.instance, state, &mut |bytes| match asking.advance(bytes) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })?;
            witness.iter().for_each(|witness| verified.hear(witness));
            asking.check().map_err(|_| interrupted())?;
        }
        records += verified.records;
        broken += usize::from(verified.fault.is_some());
        if as_json {
            page.line(&object(log, &verified))?;
        } else {
            print(&mut page, log, &verified)?;
        }
    }
    drop(progress);
    page.end()?;
    gone.iter().for_each(|gone| say(gone));
    say_in_all(logs.len() + gone.len(), records, broken);
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit::NEGATIVE) })
}

/// Logs that were read before and are not there.
fn gone(logs: &[LogFiles], ledger: &Ledger, is_chosen: impl Fn(&Uuid) -> bool) -> Result<Vec<String>, Failure> {
    let mut gone = Vec::new();
    for instance in ledger.instances()?.into_iter().filter(is_chosen) {
        if !logs.iter().any(|log| log.instance == instance)
            && let Some(witness) = ledger.witness(&instance)?
        {
            gone.push(format!(
                "the log of {instance} is gone: it had {} when it was last read",
                count(witness.seq, "record")
            ));
        }
    }
    Ok(gone)
}

fn print(page: &mut Page, log: &LogFiles, verified: &Verified) -> Result<(), Failure> {
    let first = log.first();
    let begun = first.as_ref().map_or_else(String::new, |begin| time(begin.time_ns()));
    let server = first.and_then(|begin| begin.server).unwrap_or_default();
    let word = match &verified.fault {
        None => page.styled(Style::Good, "sound "),
        Some(_) => page.styled(Style::Bad, "BROKEN"),
    };
    page.line(
        format!(
            "{}  {begun:<23}  {:<11}  {word}  {}, {}  {}",
            &log.instance.to_string()[..8],
            state(verified).unwrap_or_default(),
            count(verified.records, "record"),
            count(verified.decisions, "decision"),
            visible(&server),
        )
        .trim_end(),
    )?;
    for line in remarks(verified) {
        page.line(&format!("          {line}"))?;
    }
    Ok(())
}

fn remarks(verified: &Verified) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(fault) = &verified.fault {
        let file = quoted(&fault.path);
        let place = if fault.line > 0 { format!("line {} of {file}", fault.line) } else { file };
        remarks.push(format!("record {}, {place}", fault.seq));
        remarks.push(visible(&fault.wrong.to_string()).to_string());
    }
    if let (None, Standing::Interrupted { torn_bytes: 1.. }) = (&verified.fault, verified.standing) {
        remarks.push("its process died while it wrote; the half line at its end was never acknowledged".to_owned());
    }
    if verified.lost > 0 {
        remarks.push(format!(
            "{} could not be written at the time, as the log itself says",
            count(verified.lost, "record")
        ));
    }
    remarks
}

fn object(log: &LogFiles, verified: &Verified) -> String {
    let fault = verified.fault.as_ref().map(
        |fault| json!({ "file": fault.path, "line": fault.line, "seq": fault.seq, "wrong": fault.wrong.to_string() }),
    );
    let last = verified.last.as_ref();
    json!({
        "instance": log.instance,
        "state": state(verified),
        "sound": verified.fault.is_none(),
        "parts": log.parts.len(),
        "records": verified.records,
        "decisions": verified.decisions,
        "lost": verified.lost,
        "last_seq": last.map(|(seq, _)| seq),
        "last_hash": last.map(|(_, hash)| hash),
        "fault": fault,
    })
    .to_string()
}

/// Past the first bad record nothing is known.
fn state(verified: &Verified) -> Option<&'static str> {
    match verified.standing {
        _ if verified.fault.is_some() => None,
        Standing::Running => Some("running"),
        Standing::Ended => Some("ended"),
        Standing::Interrupted { .. } => Some("interrupted"),
    }
}

fn say_in_all(logs: usize, records: u64, broken: usize) {
    let (records, all) = (count(records, "record"), count(logs as u64, "log"));
    say(&match (logs, broken) {
        (0, _) => "there are no audit logs".to_owned(),
        (_, 0) => format!("{records} of {all}, every one as it was written"),
        (_, 1) => format!("1 of {all} is broken"),
        _ => format!("{broken} of {all} are broken"),
    });
}

fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
