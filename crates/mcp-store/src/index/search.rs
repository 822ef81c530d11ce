//! Finds messages by their words, newest first.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::path::PathBuf;

use rusqlite::{Row, params};
use uuid::Uuid;

use super::query::Query;
use super::source::{Next, Source};
use super::{Index, PLACE_BITS, numbers, progress_of};
use crate::StoreError;
use crate::catalogue::Entry;
use crate::recorded::{Direction, Recorded};
use crate::segment::SegmentReader;
use crate::session::{self, Later};
use crate::story::Told;

/// A message that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub session: Uuid,
    pub sequence: u64,
    pub time_ns: u64,
    pub direction: Direction,
    /// As [`crate::MessageKind`] spells it.
    pub kind: String,
    /// Of an answer, those of its request.
    pub method: Option<String>,
    pub tool: Option<String>,
    pub jsonrpc_id: Option<String>,
    /// Of an answer, how it went.
    pub status: Option<String>,
    pub size: u64,
    /// Where its record begins in the segment.
    pub place: u64,
    /// It belongs to a health check or to discovery.
    pub is_own: bool,
}

impl Index {
    /// Calls `visit` with every message that `query` finds, in one session or in all, those that were
    /// recorded last first, until it says that it has seen enough.
    pub fn search<E: From<StoreError>>(
        &self,
        query: &Query,
        session: Option<&Uuid>,
        mut visit: impl FnMut(Hit) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let (shards, (first, last)) = self.scope(session)?;
        let ids = self.ids()?;
        for shard in shards {
            let sql = format!(
                "SELECT m.*
                 FROM text_{shard} t CROSS JOIN messages m ON m.number = t.rowid
                 WHERE text_{shard} MATCH ?1 AND t.rowid BETWEEN ?2 AND ?3 ORDER BY t.rowid DESC"
            );
            let mut statement = self.connection.prepare(&sql).map_err(StoreError::from)?;
            let mut rows = statement.query(params![query.as_match(), first, last]).map_err(StoreError::from)?;
            while let Some(row) = rows.next().map_err(StoreError::from)? {
                let number: i64 = row.get(0).map_err(StoreError::from)?;
                let Some(id) = ids.get(&(number >> PLACE_BITS)) else { continue };
                if visit(hit(*id, row).map_err(StoreError::from)?)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Which shards to look in, and for which numbers.
    fn scope(&self, session: Option<&Uuid>) -> Result<(Vec<i64>, (i64, i64)), StoreError> {
        if let Some(id) = session {
            let known = progress_of(&self.connection, id)?;
            return Ok(known.map_or((Vec::new(), (0, 0)), |known| (vec![known.shard], numbers(known.number))));
        }
        let mut statement = self.connection.prepare("SELECT number FROM shards ORDER BY number DESC")?;
        let shards = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok((shards, (0, i64::MAX)))
    }

    fn ids(&self) -> Result<HashMap<i64, Uuid>, StoreError> {
        let mut statement = self.connection.prepare("SELECT number, id FROM sessions")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        let ids = rows.collect::<Result<Vec<(i64, String)>, _>>()?;
        Ok(ids.into_iter().filter_map(|(number, id)| Some((number, Uuid::parse_str(&id).ok()?))).collect())
    }
}

fn hit(session: Uuid, row: &Row<'_>) -> Result<Hit, rusqlite::Error> {
    Ok(Hit {
        session,
        sequence: row.get::<_, i64>(1)?.cast_unsigned(),
        time_ns: row.get::<_, i64>(2)?.cast_unsigned(),
        direction: if row.get::<_, i64>(3)? == 0 { Direction::ClientToServer } else { Direction::ServerToClient },
        kind: row.get(4)?,
        method: row.get(5)?,
        tool: row.get(6)?,
        jsonrpc_id: row.get(7)?,
        status: row.get(8)?,
        size: row.get::<_, i64>(9)?.cast_unsigned(),
        place: row.get::<_, i64>(10)?.cast_unsigned(),
        is_own: row.get(11)?,
    })
}

/// The messages of a recording that `is_wanted` says yes to, the last one first: at most `most`, and of
/// those at `places` only, if any are given. Every message is read in its order, so that what only
/// earlier ones tell is known.
pub fn pick(
    entry: &Entry,
    places: Option<&HashSet<u64>>,
    most: usize,
    mut is_wanted: impl FnMut(&Told) -> ControlFlow<(), bool>,
) -> Result<Vec<Hit>, StoreError> {
    let mut source = Source::open(&entry.path)?;
    let mut hits = VecDeque::new();
    while let Some(next) = source.next()? {
        let Next::Message(found) = next else { continue };
        if places.is_some_and(|places| !places.contains(&found.place)) {
            continue;
        }
        match is_wanted(&found.told) {
            ControlFlow::Continue(false) => {}
            ControlFlow::Continue(true) => {
                hits.push_back(found.hit());
                if hits.len() > most {
                    hits.pop_front();
                }
            }
            ControlFlow::Break(()) => break,
        }
    }
    Ok(hits.into_iter().rev().collect())
}

/// Reads the messages that were found, each from where it stands.
pub struct MessageReader {
    paths: HashMap<Uuid, PathBuf>,
    /// Hits of one session come one after the other.
    open: Option<(Uuid, SegmentReader, Later)>,
}

impl MessageReader {
    pub fn new(entries: &[Entry]) -> Self {
        Self { paths: entries.iter().map(|entry| (entry.header.id, entry.path.clone())).collect(), open: None }
    }

    /// The message, if it is still there.
    pub fn read(&mut self, hit: &Hit) -> Option<Recorded> {
        if self.open.as_ref().is_none_or(|(session, ..)| *session != hit.session) {
            let path = self.paths.get(&hit.session)?;
            let reader = SegmentReader::open(path).ok()?;
            let later = Later::open(path, reader.file_len()).ok()?;
            self.open = Some((hit.session, reader, later));
        }
        let (_, reader, later) = self.open.as_mut()?;
        reader.go_to(hit.place).ok()?;
        let record = reader.next_record().ok()??;
        let mut message = session::message(reader.header(), record).filter(|it| it.sequence == hit.sequence)?;
        later.amend(&mut message).ok()?;
        Some(message)
    }
}
