//! `audit --follow`: decisions as they are made, by every proxy there is, those that are yet to start
//! included. A call is shown when it is decided about, and again when it has come back.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use mcp_store::StateDir;
use mcp_store::audit::ledger::{DecisionRow, Entry, NoteRow, OutcomeRow};
use mcp_store::audit::{Kind, Ledger, LineReader, LogFiles, Record, logs};
use uuid::Uuid;

use super::table::Table;
use super::{Choice, SHOWN_BEFORE};
use crate::failure::{Failure, exit};
use crate::progress::is_interrupted;
use crate::report::{ColorChoice, Page};

/// Interval between two looks at the logs: as fast as people read, and no load.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Calls without an outcome that are remembered, in two halves; when the young one is full, the old one is
/// forgotten. Notifications never have an outcome.
const OPEN_MAX: usize = 65_536;

pub(super) fn follow(
    choice: &Choice,
    state: &StateDir,
    ledger: &Ledger,
    as_json: bool,
    color: ColorChoice,
) -> Result<ExitCode, Failure> {
    let table = Table::open();
    let shown = Shown { choice, as_json, table, page: Page::new(color), young: HashMap::new(), old: HashMap::new() };
    let mut following = Following { dir: state.audit(), seen_ns: None, known: None, tails: HashMap::new(), shown };
    following.shown.begin(ledger)?;
    // Whoever read the logs before has taken Ctrl-C for itself.
    while !is_interrupted() {
        following.look_for_logs(ledger)?;
        for tail in following.tails.values_mut().filter(|tail| !tail.is_over) {
            tail.read(&mut following.shown)?;
        }
        following.shown.page.flush()?;
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(exit::INTERRUPTED.into())
}

struct Following<'a> {
    dir: PathBuf,
    /// When the directory was last changed.
    seen_ns: Option<SystemTime>,
    /// The logs that there were then; nothing before the first look.
    known: Option<HashSet<Uuid>>,
    tails: HashMap<Uuid, Tail>,
    shown: Shown<'a>,
}

impl Following<'_> {
    /// Takes up logs that are written, and those that were begun since the last look.
    fn look_for_logs(&mut self, ledger: &Ledger) -> Result<(), Failure> {
        let changed = fs::metadata(&self.dir).and_then(|meta| meta.modified()).ok();
        if changed.is_none() || changed == self.seen_ns {
            return Ok(());
        }
        let is_first_look = self.known.is_none();
        let known = self.known.get_or_insert_default();
        for log in logs(&self.dir)? {
            let is_meant = self.shown.choice.wanted.instance.is_none_or(|instance| instance == log.instance);
            if !known.insert(log.instance) || !is_meant {
                continue;
            }
            // One that was begun since is read from its beginning, whoever has put it into the rows meanwhile.
            let place = if is_first_look { ledger.place(&log.instance)? } else { None };
            // Of those that were there before, only what is being written can have more to say.
            if place.is_none() || log.is_live() {
                let (part, place) = place.unwrap_or((1, 0));
                self.tails.insert(log.instance, Tail { log, part, place, reader: None, is_over: false });
            }
        }
        self.seen_ns = changed;
        Ok(())
    }
}

/// Where a log is being read.
struct Tail {
    log: LogFiles,
    part: u32,
    place: u64,
    reader: Option<LineReader>,
    is_over: bool,
}

impl Tail {
    fn read(&mut self, shown: &mut Shown<'_>) -> Result<(), Failure> {
        loop {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None => match LineReader::open(&self.log.path(self.part), self.place) {
                    Ok(reader) => self.reader.insert(reader),
                    // Removed, or not there yet.
                    Err(_) => return Ok(()),
                },
            };
            let mut goes_on = false;
            while let Some(line) = reader.next_line()? {
                let Ok(record) = Record::parse(line) else { continue };
                if record.kind == Kind::End {
                    goes_on = record.goes_on_in.is_some();
                    self.is_over |= !goes_on;
                }
                shown.take(self.log.instance, line, &record)?;
            }
            if !goes_on {
                return Ok(());
            }
            (self.part, self.place, self.reader) = (self.part + 1, 0, None);
        }
    }
}

/// What people see of it.
struct Shown<'a> {
    choice: &'a Choice,
    as_json: bool,
    table: Table,
    page: Page,
    /// Decisions that have no outcome yet, with their line, and whether they were shown.
    young: HashMap<(Uuid, u64), Open>,
    old: HashMap<(Uuid, u64), Open>,
}

struct Open {
    row: DecisionRow,
    line: Vec<u8>,
    was_shown: bool,
}

impl Shown<'_> {
    /// Shows a little of what was before.
    fn begin(&mut self, ledger: &Ledger) -> Result<(), Failure> {
        if self.as_json {
            return Ok(());
        }
        self.table.print_heading(&mut self.page)?;
        for entry in self.choice.newest(ledger, self.choice.limit.unwrap_or(SHOWN_BEFORE))? {
            self.table.print_entry(&mut self.page, &entry)?;
            if let Entry::Decision(row) = entry
                && row.outcome.is_none()
            {
                self.remember(*row, &[], true);
            }
        }
        Ok(self.page.flush()?)
    }

    fn take(&mut self, instance: Uuid, line: &[u8], record: &Record) -> Result<(), Failure> {
        match record.kind {
            Kind::Decision => self.take_decision(instance, line, record),
            Kind::Outcome | Kind::Outcomes => self.take_outcomes(instance, line, record),
            _ => self.take_other(instance, line, record),
        }
    }

    fn take_decision(&mut self, instance: Uuid, line: &[u8], record: &Record) -> Result<(), Failure> {
        let Some(row) = DecisionRow::of(record, instance).filter(|row| self.is_meant(row)) else { return Ok(()) };
        let entry = Entry::Decision(Box::new(row.clone()));
        let was_shown = self.choice.matches(&entry);
        if was_shown {
            self.print(&entry, line)?;
        }
        self.remember(row, line, was_shown);
        Ok(())
    }

    /// What is known only now may be what was asked for.
    fn take_outcomes(&mut self, instance: Uuid, line: &[u8], record: &Record) -> Result<(), Failure> {
        let (mut is_asked_for, mut lines) = (false, Vec::new());
        for (of, outcome) in OutcomeRow::all_of(record) {
            let key = (instance, of);
            let Some(open) = self.young.remove(&key).or_else(|| self.old.remove(&key)) else { continue };
            let row = DecisionRow { outcome: Some(outcome), ..open.row };
            if open.was_shown {
                is_asked_for = true;
                if !self.as_json {
                    self.table.print_outcome(&mut self.page, &row, record.time_ns())?;
                }
                continue;
            }
            let entry = Entry::Decision(Box::new(row));
            if self.choice.matches(&entry) {
                is_asked_for = true;
                match self.as_json {
                    true => lines.extend_from_slice(&open.line),
                    false => self.table.print_entry(&mut self.page, &entry)?,
                }
            }
        }
        if self.as_json && is_asked_for {
            lines.extend_from_slice(line);
            self.page.raw(&lines)?;
        }
        Ok(())
    }

    fn take_other(&mut self, instance: Uuid, line: &[u8], record: &Record) -> Result<(), Failure> {
        let is_about_all = self.choice.filter.is_none() && self.choice.wanted.session.is_none();
        match &record.note {
            _ if !is_about_all => Ok(()),
            _ if self.as_json => Ok(self.page.raw(line)?),
            Some(text) => {
                let note = NoteRow { instance, seq: record.seq, time_ns: record.time_ns(), text: text.clone() };
                self.print(&Entry::Note(note), line)
            }
            None => Ok(()),
        }
    }

    fn is_meant(&self, row: &DecisionRow) -> bool {
        let wanted = &self.choice.wanted;
        wanted.since_ns.is_none_or(|since_ns| row.record.time_ns() >= since_ns)
            && wanted.session.is_none_or(|session| row.message().is_some_and(|message| message.session == session))
    }

    fn remember(&mut self, row: DecisionRow, line: &[u8], was_shown: bool) {
        if row.record.verdict() != "allow" {
            return;
        }
        if self.young.len() >= OPEN_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        let line = if was_shown { Vec::new() } else { line.to_vec() };
        self.young.insert((row.instance, row.record.seq), Open { row, line, was_shown });
    }

    fn print(&mut self, entry: &Entry, lines: &[u8]) -> Result<(), Failure> {
        match self.as_json {
            true => Ok(self.page.raw(lines)?),
            false => Ok(self.table.print_entry(&mut self.page, entry)?),
        }
    }
}
