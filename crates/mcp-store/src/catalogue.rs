//! The catalogue of sessions: a SQLite table filled from the segment files. It is a cache. What it
//! lacks is read from the segments, what is damaged is thrown away and read again, and where it
//! cannot be written it lives in memory.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::database;
use crate::recorded::SessionHeader;
use crate::session::{self, Session, Summary};
use crate::state_dir::StateDir;
use rusqlite::{Connection, params};

/// The word for the newest session.
const LAST: &str = "last";

pub struct Catalogue {
    state: StateDir,
    connection: Connection,
    /// What opening it found out, for people.
    pub findings: Vec<String>,
}

/// A session as a list shows it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub path: PathBuf,
    pub header: SessionHeader,
    pub ended_ns: Option<u64>,
    pub live: bool,
    /// Its process died before it could end it.
    pub interrupted: bool,
    pub messages: u64,
    pub bytes: u64,
    pub notes: std::collections::BTreeMap<String, String>,
    pub warnings: Vec<String>,
}

impl Catalogue {
    /// Opens the catalogue and brings it up to date with the segments. Sessions whose process died
    /// are ended on the way.
    pub fn open(state: &StateDir) -> Result<Self, StoreError> {
        let (connection, findings) = database::CATALOGUE.open(state)?;
        let mut catalogue = Self { state: state.clone(), connection, findings };
        catalogue.refresh()?;
        Ok(catalogue)
    }

    /// Every session, newest first.
    pub fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        let mut statement = self.connection.prepare(
            "SELECT path, file_len, ended_ns, interrupted, messages, header, notes, warnings FROM sessions ORDER BY started_ns DESC, id",
        )?;
        let rows = statement.query_map([], |row| {
            let json = |index: usize| row.get::<_, String>(index);
            let path = PathBuf::from(json(0)?);
            Ok(Entry {
                bytes: row.get(1)?,
                ended_ns: row.get(2)?,
                interrupted: row.get(3)?,
                messages: row.get(4)?,
                header: parse(&json(5)?)?,
                notes: parse(&json(6)?)?,
                warnings: parse(&json(7)?)?,
                live: false,
                path,
            })
        })?;
        let mut entries = rows.collect::<Result<Vec<_>, _>>()?;
        for entry in &mut entries {
            entry.live = entry.ended_ns.is_none() && crate::segment::is_live(&entry.path).unwrap_or(false);
        }
        Ok(entries)
    }

    /// The one session whose id begins with `wanted` or whose name it is. A name that could be the
    /// beginning of another session's id means neither: sessions are removed by it.
    pub fn find(&self, wanted: &str) -> Result<Entry, StoreError> {
        let entries = self.entries()?;
        let beginning = wanted.to_ascii_lowercase();
        let is_meant = |entry: &&Entry| {
            let is_begun = !wanted.is_empty() && entry.header.id.to_string().starts_with(&beginning);
            is_begun || entry.header.name.as_deref() == Some(wanted)
        };
        let found: Vec<&Entry> = entries.iter().filter(is_meant).collect();
        match found.as_slice() {
            [] => Err(StoreError::Unknown { wanted: wanted.to_owned() }),
            [entry] => Ok((*entry).clone()),
            several => Err(StoreError::Ambiguous {
                wanted: wanted.to_owned(),
                candidates: several.iter().take(8).map(|entry| entry.header.id.to_string()).collect(),
            }),
        }
    }

    /// The session to read: the newest of all for `last` and where none is named, the newest of those
    /// with this name. Where a name fits several, the note says which was taken.
    pub fn find_to_read(&self, wanted: Option<&str>) -> Result<(Entry, Option<String>), StoreError> {
        let mut entries = self.entries()?;
        let Some(wanted) = wanted.filter(|wanted| *wanted != LAST) else {
            entries.truncate(1);
            return Ok((entries.pop().ok_or(StoreError::NoneRecorded)?, None));
        };
        match self.find(wanted) {
            Err(StoreError::Ambiguous { candidates, .. }) => {
                let named = |entry: &Entry| entry.header.name.as_deref() == Some(wanted);
                match entries.into_iter().find(named) {
                    Some(entry) => {
                        let id = entry.header.id.to_string();
                        let note =
                            format!("`{wanted}` fits several sessions; this is the newest of that name, {}", &id[..8]);
                        Ok((entry, Some(note)))
                    }
                    None => Err(StoreError::Ambiguous { wanted: wanted.to_owned(), candidates }),
                }
            }
            found => Ok((found?, None)),
        }
    }

    pub fn remove(&self, entry: &Entry) -> Result<(), StoreError> {
        if crate::segment::is_live(&entry.path)? {
            return Err(StoreError::Live { id: entry.header.id.to_string() });
        }
        fs::remove_file(&entry.path).map_err(StoreError::io("remove", &entry.path))?;
        self.connection.execute("DELETE FROM sessions WHERE path = ?1", [path_text(&entry.path)])?;
        Ok(())
    }

    fn refresh(&mut self) -> Result<(), StoreError> {
        let segments = self.state.segments()?;
        let known = self.known()?;
        let present: HashSet<String> = segments.iter().map(|path| path_text(path)).collect();
        for (path, ..) in known.iter().filter(|(path, ..)| !present.contains(path)) {
            self.connection.execute("DELETE FROM sessions WHERE path = ?1", [path])?;
        }
        for path in segments {
            let Ok(meta) = fs::metadata(&path) else { continue };
            let stamp = (path_text(&path), meta.len(), mtime_ns(&meta));
            if known.contains(&stamp) {
                continue;
            }
            if let Err(error) = self.add(&path) {
                if meta.len() == 0 || crate::segment::is_live(&path).unwrap_or(false) {
                    // It is just being begun.
                    continue;
                }
                self.findings.push(format!("`{}` is left out: {}", path.display(), with_cause(&error)));
            }
        }
        Ok(())
    }

    fn known(&self) -> Result<HashSet<(String, u64, i64)>, StoreError> {
        // An unended session is looked at again: its process may have died without a last write.
        let mut statement =
            self.connection.prepare("SELECT path, file_len, file_mtime_ns FROM sessions WHERE ended_ns IS NOT NULL")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn add(&mut self, path: &Path) -> Result<(), StoreError> {
        let mut summary = Session::open_segment(path)?.summary().clone();
        match session::recover(path, &summary) {
            Ok(None) => {}
            Ok(Some(done)) => {
                self.findings.push(done);
                let warnings = summary.warnings;
                summary = Session::open_segment(path)?.summary().clone();
                summary.warnings = warnings;
            }
            Err(error) => self.findings.push(format!(
                "session {} was interrupted and cannot be ended: {}",
                summary.header.id,
                with_cause(&error)
            )),
        }
        let meta = fs::metadata(path).map_err(StoreError::io("look at", path))?;
        self.insert(path, &meta, &summary)
    }

    fn insert(&self, path: &Path, meta: &fs::Metadata, summary: &Summary) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT OR REPLACE INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                summary.header.id.to_string(),
                path_text(path),
                meta.len(),
                mtime_ns(meta),
                summary.header.started_ns,
                summary.ended_ns,
                summary.end.as_ref().is_some_and(|end| end.recovered),
                summary.messages,
                to_json(&summary.header),
                to_json(&summary.notes),
                to_json(&summary.warnings),
            ],
        )?;
        Ok(())
    }
}

fn mtime_ns(meta: &fs::Metadata) -> i64 {
    meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec())
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data always serialises")
}

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, rusqlite::Error> {
    serde_json::from_str(json)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error)))
}

fn with_cause(error: &StoreError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// A session given as a file, an id, the beginning of one, a name or `last`; the newest if none is given.
/// Returns what was found out on the way, for people.
pub fn open_session(wanted: Option<&str>, state: &StateDir) -> Result<(Session, Vec<String>), StoreError> {
    if let Some(path) = wanted.and_then(as_path) {
        return Ok((Session::open(path, Some(state))?, Vec::new()));
    }
    let (path, findings) = find_segment(wanted, state)?;
    Ok((Session::open_segment(&path)?, findings))
}

/// The file that a word names: one that exists, or one that could be nothing else.
pub(crate) fn as_path(wanted: &str) -> Option<&Path> {
    let path = Path::new(wanted);
    let is_path =
        wanted.contains('/') || path.extension().is_some_and(|extension| extension == "json" || extension == "mcpseg");
    (wanted != LAST && (is_path || path.exists())).then_some(path)
}

/// The segment of the session to read.
pub(crate) fn find_segment(wanted: Option<&str>, state: &StateDir) -> Result<(PathBuf, Vec<String>), StoreError> {
    let mut catalogue = Catalogue::open(state)?;
    let (entry, note) = catalogue.find_to_read(wanted)?;
    catalogue.findings.extend(note);
    Ok((entry.path, catalogue.findings))
}
