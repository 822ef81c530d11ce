//! The lines of the logs as they are, log after log. With nothing left out they can be verified anywhere;
//! else there are the decisions that are meant, and the lines that say how they went, whole.

use std::collections::HashSet;
use std::process::ExitCode;

use mcp_store::audit::ledger::{Entry, OutcomeRow, Wanted};
use mcp_store::audit::{Kind, Ledger, LineReader, LogFiles, Record};
use uuid::Uuid;

use super::{Choice, by_age};
use crate::failure::Failure;
use crate::report::{ColorChoice, Page};

pub(super) fn print(choice: &Choice, ledger: &Ledger, logs: &[LogFiles]) -> Result<ExitCode, Failure> {
    let meant = if choice.means_everything() { None } else { Some(numbers(choice, ledger)?) };
    let mut page = Page::new(ColorChoice::Never);
    for log in by_age(logs) {
        if choice.wanted.instance.is_none_or(|instance| instance == log.instance) {
            print_log(&mut page, log, meant.as_ref())?;
        }
    }
    page.end()?;
    Ok(ExitCode::SUCCESS)
}

impl Choice {
    fn means_everything(&self) -> bool {
        let Wanted { since_ns, until_ns, instance: _, session } = &self.wanted;
        let is_bounded = since_ns.is_some() || until_ns.is_some() || session.is_some();
        self.filter.is_none() && self.limit.is_none() && !is_bounded
    }
}

/// The records that are meant, by log and number.
fn numbers(choice: &Choice, ledger: &Ledger) -> Result<HashSet<(Uuid, u64)>, Failure> {
    let mut numbers = HashSet::new();
    choice.each(ledger, |entry| {
        numbers.insert(match &entry {
            Entry::Decision(row) => (row.instance, row.record.seq),
            Entry::Note(note) => (note.instance, note.seq),
        });
        Ok(())
    })?;
    Ok(numbers)
}

fn print_log(page: &mut Page, log: &LogFiles, meant: Option<&HashSet<(Uuid, u64)>>) -> Result<(), Failure> {
    for part in &log.parts {
        let path = log.path(*part);
        let mut reader = LineReader::open(&path, 0)?;
        while let Some(line) = reader.next_line()? {
            if is_meant(line, log.instance, meant) {
                page.raw(line)?;
            }
        }
    }
    Ok(())
}

fn is_meant(line: &[u8], instance: Uuid, meant: Option<&HashSet<(Uuid, u64)>>) -> bool {
    let Some(meant) = meant else { return true };
    let Ok(record) = Record::parse(line) else { return false };
    match record.kind {
        Kind::Outcome | Kind::Outcomes => OutcomeRow::all_of(&record).any(|(of, _)| meant.contains(&(instance, of))),
        _ => meant.contains(&(instance, record.seq)),
    }
}
