//! From segments to rows: record by record from where the last one stopped, a batch in a transaction.
//! Whoever is interrupted, or killed, leaves whole batches behind, and any number may take turns.

use std::ops::ControlFlow;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::source::{Found, Next, Source, kept};
use super::words::text_of;
use super::{Index, Known, PLACE_BITS, Recording, SHARD_TEXT_MAX, empty_shard, make_shard, numbers, progress_of};
use crate::StoreError;
use crate::database;
use crate::exchange::Said;
use crate::recorded::Direction;
use crate::segment::Outcome;
use crate::story::Story;

/// Rows searched for a request of an earlier round before the place where it stands if nothing was lost.
const LOST_BEFORE_MAX: i64 = 64;

/// How much is done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Somebody waits for it.
    Foreground,
    /// Nobody does: others get at the index, the disk and the processor in between.
    Background,
}

impl Pace {
    fn batch_bytes(self) -> usize {
        /// Text of one transaction, in the foreground and in the background. Few large transactions cost half as much as
        /// many small ones; while one lasts, other writers wait.
        const FOREGROUND_BYTES: usize = 16 * 1024 * 1024;
        const BACKGROUND_BYTES: usize = 4 * 1024 * 1024;
        match self {
            Self::Foreground => FOREGROUND_BYTES,
            Self::Background => BACKGROUND_BYTES,
        }
    }

    fn pause(self) {
        /// Long enough for another command that waits for the index to take its turn.
        const TURN: Duration = Duration::from_millis(120);
        if self == Self::Background {
            std::thread::sleep(TURN);
        }
    }
}

impl Index {
    /// Adds what `recording` has that is not here yet.
    pub(super) fn fill(
        &mut self,
        recording: &Recording,
        pace: Pace,
        step: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let mut source: Option<Source> = None;
        loop {
            let transaction = database::INDEX.write(&mut self.connection)?;
            let known = begin(&transaction, recording)?;
            // Somebody else may have gone on from where we were.
            let source = match &mut source {
                Some(source) if source.next_record() == known.next_record => source,
                _ => match Source::open_plain(&recording.path, known.next_record) {
                    Ok(opened) => source.insert(opened),
                    // Removed since the sessions were listed, or damaged: there is nothing to find in it.
                    Err(_) => return Ok(ControlFlow::Continue(())),
                },
            };
            let filled = fill_batch(&transaction, &known, source, pace, step)?;
            transaction.commit()?;
            match filled {
                Filled::Part => pace.pause(),
                Filled::All => return Ok(ControlFlow::Continue(())),
                Filled::Interrupted => return Ok(ControlFlow::Break(())),
            }
        }
    }
}

enum Filled {
    Part,
    All,
    Interrupted,
}

/// The row of the session, new if need be.
fn begin(connection: &Connection, recording: &Recording) -> Result<Known, rusqlite::Error> {
    let id = recording.id;
    match progress_of(connection, &id)? {
        // It has grown shorter: it is not the file that was read.
        Some(known) if known.next_record > recording.bytes => {
            empty_shard(connection, known.shard)?;
            Ok(Known { file_len: 0, next_record: 0, messages: 0, ..known })
        }
        Some(known) => Ok(known),
        None => {
            let shard = open_shard(connection)?;
            connection.execute(
                "INSERT INTO sessions (id, shard, file_len, next_record, messages) VALUES (?1, ?2, 0, 0, 0)",
                params![id.to_string(), shard],
            )?;
            let number = connection.last_insert_rowid();
            Ok(Known { number, shard, file_len: 0, next_record: 0, messages: 0 })
        }
    }
}

/// The shard that takes new sessions.
fn open_shard(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let newest = connection
        .query_row("SELECT number, text_bytes FROM shards ORDER BY number DESC LIMIT 1", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?))
        })
        .optional()?;
    match newest {
        Some((shard, bytes)) if bytes < SHARD_TEXT_MAX => Ok(shard),
        newest => {
            let shard = newest.map_or(1, |(shard, _)| shard + 1);
            make_shard(connection, shard)?;
            Ok(shard)
        }
    }
}

fn fill_batch(
    connection: &Connection,
    known: &Known,
    source: &mut Source,
    pace: Pace,
    step: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Filled, StoreError> {
    let (first, last) = numbers(known.number);
    let mut number = first + i64::try_from(known.messages).unwrap_or(last - first);
    let mut text_bytes = 0;
    let filled = loop {
        if text_bytes >= pace.batch_bytes() {
            break Filled::Part;
        }
        let found = match source.next()? {
            None => break Filled::All,
            Some(Next::Message(found)) if number < last => found,
            Some(Next::Message(_)) => continue,
            Some(Next::Outcome(sequence, outcome)) => {
                text_bytes += add_edited(connection, known, source, sequence, outcome)?;
                continue;
            }
        };
        number += 1;
        add_message(connection, number, &found)?;
        let text = text_of(&found.told.recorded);
        let insert = format!("INSERT INTO text_{} (rowid, body) VALUES (?1, ?2)", known.shard);
        connection.prepare_cached(&insert)?.execute(params![number, text])?;
        text_bytes += text.len();
        if step(1).is_break() {
            break Filled::Interrupted;
        }
    };
    // Until all of it is here, the file counts as changed.
    let file_len = if matches!(filled, Filled::All) { source.file_len() } else { 0 };
    connection.execute(
        "UPDATE sessions SET file_len = ?2, next_record = ?3, messages = ?4 WHERE number = ?1",
        params![known.number, file_len, source.next_record(), number - first],
    )?;
    connection.execute(
        "UPDATE shards SET text_bytes = text_bytes + ?2 WHERE number = ?1",
        params![known.shard, text_bytes as u64],
    )?;
    Ok(filled)
}

fn add_message(connection: &Connection, number: i64, found: &Found) -> Result<(), rusqlite::Error> {
    let mut hit = found.hit();
    // Its request was read before, maybe by another command.
    if found.told.asked.is_none() && found.answers > 0 {
        let asked = asked_before(connection, number, found.answers)?;
        hit.is_own |= asked.2;
        (hit.method, hit.tool) = (asked.0, asked.1);
    }
    connection
        .prepare_cached("INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?
        .execute(params![
            number,
            hit.sequence.cast_signed(),
            hit.time_ns.cast_signed(),
            hit.direction == Direction::ServerToClient,
            hit.kind,
            hit.method,
            hit.tool,
            hit.jsonrpc_id,
            hit.status,
            hit.size.cast_signed(),
            hit.place.cast_signed(),
            hit.is_own,
        ])?;
    Ok(())
}

/// A message that is in the index went on as another: it can be found by the words of both. Returns how
/// much text that added.
fn add_edited(
    connection: &Connection,
    known: &Known,
    source: &Source,
    sequence: u64,
    outcome: Outcome,
) -> Result<usize, StoreError> {
    if outcome.edited.is_none() {
        return Ok(0);
    }
    let (first, last) = numbers(known.number);
    let place = first.saturating_add_unsigned(sequence).min(last);
    let row = connection
        .prepare_cached("SELECT number, place FROM messages WHERE number BETWEEN ?1 AND ?2 AND sequence = ?3")?
        .query_row(params![(place - LOST_BEFORE_MAX).max(first), place, sequence.cast_signed()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
        })
        .optional()?;
    let Some((number, place)) = row else { return Ok(0) };
    // Only once: from then on its words are not those that it came with.
    if connection.prepare_cached("INSERT OR IGNORE INTO edited VALUES (?1)")?.execute([number])? == 0 {
        return Ok(0);
    }
    let Some(mut message) = source.as_it_came(place, sequence) else { return Ok(0) };
    let text = format!("text_{}", known.shard);
    // The table keeps no text, so it has to be told which words go.
    connection
        .prepare_cached(&format!("INSERT INTO {text} ({text}, rowid, body) VALUES ('delete', ?1, ?2)"))?
        .execute(params![number, text_of(&message)])?;
    message.amend(Said::Outcome(outcome));
    let (words, size) = (text_of(&message), message.raw.len() as u64);
    connection
        .prepare_cached(&format!("INSERT INTO {text} (rowid, body) VALUES (?1, ?2)"))?
        .execute(params![number, words])?;
    let told = Story::default().tell(message);
    connection
        .prepare_cached(
            "UPDATE messages SET method = coalesce(?2, method), tool = coalesce(?3, tool), size = ?4 WHERE number = ?1",
        )?
        .execute(params![number, told.method().map(kept), told.subject().map(kept), size.cast_signed()])?;
    Ok(words.len())
}

/// Method and tool of a request that was added in another round, and whether a gateway began it. It stands where its sequence says,
/// or a little before, if messages were lost.
fn asked_before(
    connection: &Connection,
    number: i64,
    sequence: u64,
) -> Result<(Option<String>, Option<String>, bool), rusqlite::Error> {
    let (first, last) = numbers(number >> PLACE_BITS);
    let place = first.saturating_add_unsigned(sequence).min(last);
    let found = connection
        .prepare_cached("SELECT method, tool, is_own FROM messages WHERE number BETWEEN ?1 AND ?2 AND sequence = ?3")?
        .query_row(params![(place - LOST_BEFORE_MAX).max(first), place, sequence.cast_signed()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    Ok(found.unwrap_or_default())
}
