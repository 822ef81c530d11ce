//! The index over recorded messages: who said what, where it stands, and the words in it. Like the
//! catalogue it is a cache, filled from the segments, and made anew when it is damaged or of another
//! version.
//!
//! The words stand in *shards*, full-text tables that each hold the sessions of some time. When a
//! session is removed its words have to go for good. A shard can be dropped as a whole; what else was
//! in it is read again from the segments.

mod fill;
mod query;
mod search;
mod snippet;
mod source;
mod words;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

use rusqlite::{Connection, ErrorCode, params};
use uuid::Uuid;

use crate::StoreError;
use crate::catalogue::Entry;
use crate::database;
use crate::segment::SegmentReader;
use crate::state_dir::StateDir;

pub use fill::Pace;
pub use query::Query;
pub use search::{Hit, MessageReader, pick};
pub use snippet::{Piece, Snippets};
pub use words::{TEXT_BYTES_MAX, text_of};

/// A shard takes no further session once it holds this much text: what has to be read again when one
/// of them is removed stays a matter of seconds.
const SHARD_TEXT_MAX: u64 = 64 * 1024 * 1024;
/// Words gather in memory up to here before they are written and have to be merged with others; a
/// sixteenth of it makes filling twice as slow.
const GATHERED_BYTES: i64 = 16 * 1024 * 1024;
/// A message's row is numbered by its session and its place in it.
const PLACE_BITS: u32 = 32;
/// Words are letters and digits; case and accents make no difference. The text itself is in the
/// segment and is not kept a second time.
const FULL_TEXT: &str = "fts5(body, content='', columnsize=0, tokenize='unicode61 remove_diacritics 2')";

/// A recording to index.
#[derive(Clone, Debug)]
pub struct Recording {
    pub id: Uuid,
    pub path: PathBuf,
    pub started_ns: u64,
    pub bytes: u64,
    /// If they were counted.
    pub messages: u64,
}

impl From<&Entry> for Recording {
    fn from(entry: &Entry) -> Self {
        let Entry { header, path, bytes, messages, .. } = entry;
        Self { id: header.id, path: path.clone(), started_ns: header.started_ns, bytes: *bytes, messages: *messages }
    }
}

/// Every recording there is, by a look at its header; without the catalogue, which reads new ones whole.
pub fn recordings(state: &StateDir) -> Result<Vec<Recording>, StoreError> {
    let segments = state.segments()?.into_iter();
    // What cannot be read is for the catalogue to tell.
    let readers = segments.filter_map(|path| SegmentReader::open(&path).ok());
    let recording = |reader: SegmentReader| Recording {
        id: reader.header().id,
        path: reader.path().to_owned(),
        started_ns: reader.header().started_ns,
        bytes: reader.file_len(),
        messages: 0,
    };
    Ok(readers.map(recording).collect())
}

pub struct Index {
    connection: Connection,
    /// What opening it found out, for people.
    pub findings: Vec<String>,
}

impl Index {
    pub fn open(state: &StateDir) -> Result<Self, StoreError> {
        let (connection, findings) = database::INDEX.open(state)?;
        Ok(Self { connection, findings })
    }

    /// An index that knows nothing yet, in place of whatever there was.
    pub fn open_anew(state: &StateDir) -> Result<Self, StoreError> {
        database::INDEX.remove(state)?;
        Self::open(state)
    }

    /// How many messages of `recordings` are not in it.
    pub fn backlog(&self, recordings: &[Recording]) -> Result<u64, StoreError> {
        let mut backlog = 0;
        for recording in recordings {
            backlog += match self.progress_of(&recording.id)? {
                Some(known) if known.file_len == recording.bytes => 0,
                Some(known) => recording.messages.saturating_sub(known.messages),
                None => recording.messages,
            };
        }
        Ok(backlog)
    }

    /// Brings it up to date with the recordings there are, oldest first. `step` is told of messages that
    /// were added, and may end the work; what was added until then stays.
    pub fn update(
        &mut self,
        recordings: &[Recording],
        pace: Pace,
        step: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let present: HashSet<Uuid> = recordings.iter().map(|recording| recording.id).collect();
        let gone: Vec<Uuid> = self.known()?.into_iter().filter(|id| !present.contains(id)).collect();
        self.forget(&gone)?;
        let mut oldest_first: Vec<&Recording> = recordings.iter().collect();
        oldest_first.sort_by_key(|recording| recording.started_ns);
        for recording in oldest_first {
            let is_known = self.progress_of(&recording.id)?.is_some_and(|known| known.file_len == recording.bytes);
            if !is_known && self.fill(recording, pace, step)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Removes sessions with all their words. Others that shared a shard with them are read again when
    /// the index is next brought up to date.
    pub fn forget(&mut self, ids: &[Uuid]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let transaction = database::INDEX.write(&mut self.connection)?;
        let mut shards = HashSet::new();
        for id in ids {
            let Some(known) = progress_of(&transaction, id)? else { continue };
            shards.insert(known.shard);
            remove_messages(&transaction, known.number)?;
            transaction.execute("DELETE FROM sessions WHERE number = ?1", [known.number])?;
        }
        for shard in shards {
            empty_shard(&transaction, shard)?;
        }
        transaction.commit()?;
        // What was freed goes back to the disk, also from the log of changes, unless somebody reads there.
        for pragma in ["PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"] {
            let mut statement = self.connection.prepare(pragma)?;
            let mut steps = statement.query([])?;
            // Each step gives back one page.
            while steps.next()?.is_some() {}
        }
        Ok(())
    }

    fn known(&self) -> Result<Vec<Uuid>, StoreError> {
        let mut statement = self.connection.prepare("SELECT id FROM sessions")?;
        let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
        Ok(ids.collect::<Result<Vec<_>, _>>()?.iter().filter_map(|id| Uuid::parse_str(id).ok()).collect())
    }

    fn progress_of(&self, id: &Uuid) -> Result<Option<Known>, rusqlite::Error> {
        progress_of(&self.connection, id)
    }
}

impl StoreError {
    /// Whether a cache is damaged, and would be good again if it were made anew.
    pub fn is_damaged_cache(&self) -> bool {
        matches!(self, Self::Cache(error) if database::is_damage(error))
    }

    /// Whether somebody else is writing a cache, and has been for longer than anybody waits.
    pub fn is_busy_cache(&self) -> bool {
        matches!(self, Self::Cache(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
    }
}

/// How far a session has come.
#[derive(Clone, Copy, Debug)]
struct Known {
    number: i64,
    shard: i64,
    /// The length of its file when it was last read, and where its next record will begin.
    file_len: u64,
    next_record: u64,
    messages: u64,
}

fn progress_of(connection: &Connection, id: &Uuid) -> Result<Option<Known>, rusqlite::Error> {
    let mut statement = connection
        .prepare_cached("SELECT number, shard, file_len, next_record, messages FROM sessions WHERE id = ?1")?;
    let mut rows = statement.query([id.to_string()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Known {
        number: row.get(0)?,
        shard: row.get(1)?,
        file_len: row.get(2)?,
        next_record: row.get(3)?,
        messages: row.get(4)?,
    }))
}

/// The numbers of a session's messages.
fn numbers(session: i64) -> (i64, i64) {
    (session << PLACE_BITS, ((session + 1) << PLACE_BITS) - 1)
}

fn remove_messages(connection: &Connection, session: i64) -> Result<(), rusqlite::Error> {
    let (first, last) = numbers(session);
    connection.execute("DELETE FROM messages WHERE number BETWEEN ?1 AND ?2", [first, last])?;
    connection.execute("DELETE FROM edited WHERE number BETWEEN ?1 AND ?2", [first, last])?;
    Ok(())
}

/// Drops every word in a shard. Sessions that are still in it begin anew, under the same numbers.
fn empty_shard(connection: &Connection, shard: i64) -> Result<(), rusqlite::Error> {
    connection.execute_batch(&format!("DROP TABLE text_{shard}"))?;
    let mut statement = connection.prepare("SELECT number FROM sessions WHERE shard = ?1")?;
    let sessions = statement.query_map([shard], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    for session in &sessions {
        remove_messages(connection, *session)?;
        connection
            .execute("UPDATE sessions SET file_len = 0, next_record = 0, messages = 0 WHERE number = ?1", [session])?;
    }
    connection.execute("DELETE FROM shards WHERE number = ?1", [shard])?;
    if !sessions.is_empty() {
        make_shard(connection, shard)?;
    }
    Ok(())
}

fn make_shard(connection: &Connection, shard: i64) -> Result<(), rusqlite::Error> {
    connection.execute_batch(&format!("CREATE VIRTUAL TABLE text_{shard} USING {FULL_TEXT}"))?;
    connection.execute(
        &format!("INSERT INTO text_{shard} (text_{shard}, rank) VALUES (?1, ?2)"),
        params!["hashsize", GATHERED_BYTES],
    )?;
    connection.execute("INSERT INTO shards VALUES (?1, 0)", [shard])?;
    Ok(())
}

#[cfg(test)]
mod tests;
