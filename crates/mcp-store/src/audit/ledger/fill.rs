//! From lines to rows: from where the last reader stopped, a batch in a transaction. Whoever is
//! interrupted, or killed, leaves whole batches behind, and any number may take turns.

use std::io;
use std::ops::ControlFlow;

use rusqlite::{Connection, params};

use super::row::OutcomeRow;
use super::{Known, Ledger, known, number};
use crate::StoreError;
use crate::audit::files::LogFiles;
use crate::audit::line::LineHash;
use crate::audit::read::LineReader;
use crate::audit::record::{Kind, Record};
use crate::database;

/// The lines of one transaction; while it lasts, others wait.
const BATCH_BYTES: u64 = 16 * 1024 * 1024;

enum Filled {
    Part,
    All,
    Interrupted,
}

impl Ledger {
    /// Adds what `log` has that is not here yet.
    pub(super) fn fill(
        &mut self,
        log: &LogFiles,
        step: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        if !has_more(log, super::known(&self.connection, &log.instance)?.as_ref()) {
            return Ok(ControlFlow::Continue(()));
        }
        loop {
            let transaction = database::LEDGER.write(&mut self.connection)?;
            let mut known = begin(&transaction, log)?;
            let mut unreadable = 0;
            let filled = fill_batch(&transaction, log, &mut known, &mut unreadable, step)?;
            remember(&transaction, &known)?;
            transaction.commit()?;
            if unreadable > 0 {
                self.findings.push(format!("{unreadable} lines of the audit log {} are no records", log.instance));
            }
            match filled {
                Filled::Part => {}
                Filled::All => return Ok(ControlFlow::Continue(())),
                Filled::Interrupted => return Ok(ControlFlow::Break(())),
            }
        }
    }
}

/// Whether there is anything to read, without asking for the right to write.
fn has_more(log: &LogFiles, known: Option<&Known>) -> bool {
    known.is_none_or(|known| {
        log.part_bytes(known.part) > known.place || log.parts.last().is_some_and(|last| *last > known.part)
    })
}

/// The row of the log, new if need be.
fn begin(connection: &Connection, log: &LogFiles) -> Result<Known, rusqlite::Error> {
    if let Some(known) = known(connection, &log.instance)? {
        return Ok(known);
    }
    let hash = LineHash::NONE.to_string();
    connection.execute(
        "INSERT INTO logs (instance, part, place, seq, hash, has_ended) VALUES (?1, 1, 0, 0, ?2, 0)",
        params![log.instance.as_bytes(), hash],
    )?;
    let number = connection.last_insert_rowid();
    Ok(Known { number, part: 1, place: 0, seq: 0, hash, has_ended: false })
}

fn remember(connection: &Connection, known: &Known) -> Result<(), rusqlite::Error> {
    connection.execute(
        "UPDATE logs SET part = ?2, place = ?3, seq = ?4, hash = ?5, has_ended = ?6 WHERE number = ?1",
        params![known.number, known.part, known.place, known.seq, known.hash, known.has_ended],
    )?;
    Ok(())
}

fn fill_batch(
    connection: &Connection,
    log: &LogFiles,
    known: &mut Known,
    unreadable: &mut u64,
    step: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Filled, StoreError> {
    let mut read = 0;
    loop {
        let (path, began_at) = (log.path(known.part), known.place);
        let mut reader = match LineReader::open(&path, known.place) {
            Ok(reader) => reader,
            // Removed: what is known of it stays.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Filled::All),
            Err(error) => return Err(StoreError::io("open", &path)(error)),
        };
        while let Some(line) = reader.next_line().map_err(StoreError::io("read", &path))? {
            let bytes = line.len() as u64;
            match Record::parse(line) {
                Ok(record) => add(connection, known, &record)?,
                Err(_) => *unreadable += 1,
            }
            known.place += bytes;
            read += bytes;
            if step(bytes).is_break() {
                return Ok(Filled::Interrupted);
            }
            if read >= BATCH_BYTES {
                return Ok(Filled::Part);
            }
        }
        if log.part_bytes(known.part + 1) == 0 {
            return Ok(Filled::All);
        }
        // The other part may have been begun since this one was read to its end, so that is read once more.
        if known.place == began_at {
            (known.part, known.place) = (known.part + 1, 0);
        }
    }
}

fn add(connection: &Connection, known: &mut Known, record: &Record) -> Result<(), rusqlite::Error> {
    match record.kind {
        Kind::Decision => add_decision(connection, known.number, record)?,
        Kind::Outcome | Kind::Outcomes => {
            for (of, outcome) in OutcomeRow::all_of(record) {
                add_outcome(connection, number(known.number, of), &outcome)?;
            }
        }
        Kind::Note => add_note(connection, known.number, record)?,
        Kind::End => known.has_ended = record.goes_on_in.is_none(),
        Kind::Begin => {}
    }
    known.seq = record.seq;
    known.hash.clone_from(&record.hash);
    Ok(())
}

fn add_decision(connection: &Connection, log: i64, record: &Record) -> Result<(), rusqlite::Error> {
    // Of two under one number the first that was seen counts; that there are two is for others to find.
    let mut statement = connection.prepare_cached(
        "INSERT OR IGNORE INTO decisions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
         ?17, NULL, NULL, NULL, NULL, NULL)",
    )?;
    let message = record.message_id(record.message);
    statement.execute(params![
        number(log, record.seq),
        record.time_ns(),
        message.map(|message| message.session.into_bytes()),
        message.map(|message| message.sequence),
        record.conversation,
        record.client,
        record.server,
        record.direction,
        record.method,
        record.tool,
        record.operation,
        record.verdict(),
        record.rule,
        record.rules,
        record.actor,
        record.why,
        record.held_us(),
    ])?;
    Ok(())
}

fn add_outcome(connection: &Connection, decision: i64, outcome: &OutcomeRow) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "UPDATE decisions SET outcome = ?2, code = ?3, latency_us = ?4, answer_session = ?5, answer_sequence = ?6 \
         WHERE number = ?1",
    )?;
    let answer = outcome.answer.as_ref();
    statement.execute(params![
        decision,
        outcome.status,
        outcome.code,
        outcome.latency_us,
        answer.map(|answer| answer.session.into_bytes()),
        answer.map(|answer| answer.sequence),
    ])?;
    Ok(())
}

fn add_note(connection: &Connection, log: i64, record: &Record) -> Result<(), rusqlite::Error> {
    connection.execute(
        "INSERT OR IGNORE INTO notes VALUES (?1, ?2, ?3)",
        params![number(log, record.seq), record.time_ns(), record.note.as_deref().unwrap_or_default()],
    )?;
    Ok(())
}
