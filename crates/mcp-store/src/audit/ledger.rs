//! Decisions as rows: a SQLite table filled from the logs by whoever reads it, never by a running proxy.
//! It is a cache, as the catalogue and the index are: what it lacks is read from the logs, and it can be
//! removed at any time.
//!
//! One thing sets it apart. It remembers how far each log went when it was last read, and what the last
//! record was, so it can tell when a log has lost its tail or was written anew. Rows of records that are no
//! longer in a log stay.

mod fill;
mod row;

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::files::LogFiles;
use super::verify::Witness;
use crate::StoreError;
use crate::database;
use crate::state_dir::StateDir;

pub use row::{DecisionRow, Entry, NoteRow, OutcomeRow};

/// A row is numbered by its log and its number in it; a log that wrote a million records a second would
/// need two weeks to use these up.
const SEQ_BITS: u32 = 40;

/// What of the rows is wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub since_ns: Option<u64>,
    pub until_ns: Option<u64>,
    pub instance: Option<Uuid>,
    pub session: Option<Uuid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    OldestFirst,
    NewestFirst,
}

pub struct Ledger {
    connection: Connection,
    /// What opening it and bringing it up to date found out, for people.
    pub findings: Vec<String>,
}

impl Ledger {
    pub fn open(state: &StateDir) -> Result<Self, StoreError> {
        state.check_audit()?;
        let (connection, findings) = database::LEDGER.open(state)?;
        Ok(Self { connection, findings })
    }

    /// One that knows nothing and is kept nowhere.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self { connection: database::LEDGER.open_in_memory()?, findings: Vec::new() })
    }

    /// One that knows nothing yet, in place of whatever there was.
    pub fn open_anew(state: &StateDir) -> Result<Self, StoreError> {
        state.check_audit()?;
        database::LEDGER.remove(state)?;
        Self::open(state)
    }

    /// How many bytes of `logs` are not in it.
    pub fn backlog(&self, logs: &[LogFiles]) -> Result<u64, StoreError> {
        let mut bytes = 0;
        for log in logs {
            let known = self.known(&log.instance)?;
            let earlier = log.parts.iter().filter(|part| known.as_ref().is_some_and(|known| **part < known.part));
            let read: u64 = earlier.map(|part| log.part_bytes(*part)).sum();
            bytes += log.bytes().saturating_sub(read + known.map_or(0, |known| known.place));
        }
        Ok(bytes)
    }

    /// Adds what is in `logs` and not here. `step` is told of bytes that were read, and may end the work;
    /// what was added until then stays.
    pub fn update(
        &mut self,
        logs: &[LogFiles],
        step: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        for log in logs {
            if self.fill(log, step)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.find_losses(logs)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Logs that are shorter than they were, or gone.
    fn find_losses(&mut self, logs: &[LogFiles]) -> Result<(), StoreError> {
        for instance in self.instances()? {
            let Some(known) = self.known(&instance)? else { continue };
            let what = match logs.iter().find(|log| log.instance == instance) {
                None => "gone",
                Some(log) if log.part_bytes(known.part) < known.place => "shorter than it was",
                Some(_) => continue,
            };
            self.findings.push(format!("the audit log {instance} is {what}; `mcp-proxy audit --verify` says more"));
        }
        Ok(())
    }

    /// What is known here of a log, to hold it to.
    pub fn witness(&self, instance: &Uuid) -> Result<Option<Witness>, StoreError> {
        let witness = |known: Known| Witness {
            seq: known.seq,
            hash: Some(known.hash),
            saw_the_end: known.has_ended,
            who: "the table of decisions".to_owned(),
        };
        Ok(self.known(instance)?.filter(|known| known.seq > 0).map(witness))
    }

    /// Every log that was ever read.
    pub fn instances(&self) -> Result<Vec<Uuid>, StoreError> {
        let mut statement = self.connection.prepare("SELECT instance FROM logs ORDER BY number")?;
        let instances = statement.query_map([], |row| row.get::<_, [u8; 16]>(0))?;
        Ok(instances.map(|instance| instance.map(Uuid::from_bytes)).collect::<Result<_, _>>()?)
    }

    /// Gives out decisions and notes until `take` has enough.
    pub fn each<E: From<StoreError>>(
        &self,
        wanted: &Wanted,
        order: Order,
        mut take: impl FnMut(Entry) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        row::each(&self.connection, wanted, order, &mut take)
    }

    /// How far a log has been read: its part, and where in it the next line begins.
    pub fn place(&self, instance: &Uuid) -> Result<Option<(u32, u64)>, StoreError> {
        Ok(self.known(instance)?.map(|known| (known.part, known.place)))
    }

    /// One record of a log.
    pub fn find(&self, instance: &Uuid, seq: u64) -> Result<Option<Entry>, StoreError> {
        row::find(&self.connection, instance, seq)
    }

    fn known(&self, instance: &Uuid) -> Result<Option<Known>, StoreError> {
        Ok(known(&self.connection, instance)?)
    }
}

/// How far a log has been read.
#[derive(Clone, Debug)]
struct Known {
    number: i64,
    part: u32,
    place: u64,
    seq: u64,
    hash: String,
    has_ended: bool,
}

fn known(connection: &Connection, instance: &Uuid) -> Result<Option<Known>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT number, part, place, seq, hash, has_ended FROM logs WHERE instance = ?1")?
        .query_row([instance.as_bytes()], |row| {
            Ok(Known {
                number: row.get(0)?,
                part: row.get(1)?,
                place: row.get(2)?,
                seq: row.get(3)?,
                hash: row.get(4)?,
                has_ended: row.get(5)?,
            })
        })
        .optional()
}

fn number(log: i64, seq: u64) -> i64 {
    (log << SEQ_BITS) | i64::try_from(seq).unwrap_or(i64::MAX).min((1 << SEQ_BITS) - 1)
}

#[cfg(test)]
mod tests;
