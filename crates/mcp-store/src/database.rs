//! The SQLite caches: each a file of its own that only its owner may read, of the version this program
//! knows, replaced when damaged, and kept in memory where it cannot be written.
//!
//! Three files, because a file has one write lock and one fate: the index is written for a second at a
//! time and is removed as a whole, `sessions` writes to the catalogue meanwhile, and the table of decisions
//! remembers what no log says any more.

mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, ffi};

use crate::StoreError;
use crate::state_dir::StateDir;

/// Wait for another command that writes the catalogue or the index.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) const CATALOGUE: Cache = Cache {
    name: "catalogue",
    path: StateDir::catalogue,
    version: 1,
    schema: schema::CATALOGUE,
    probe: "sessions",
    instead: ":memory:",
};

pub(crate) const INDEX: Cache =
    Cache { name: "index", path: StateDir::index, version: 3, schema: schema::INDEX, probe: "sessions", instead: "" };

pub(crate) const LEDGER: Cache = Cache {
    name: "table of decisions",
    path: StateDir::decisions,
    version: 1,
    schema: schema::LEDGER,
    probe: "logs",
    instead: "",
};

pub(crate) struct Cache {
    /// Its name in messages.
    name: &'static str,
    path: fn(&StateDir) -> PathBuf,
    /// Raised with every change of the tables; a cache of another version is filled again.
    version: i64,
    schema: &'static str,
    /// One of its tables.
    probe: &'static str,
    /// Where it lives if it cannot be a file of its own: `:memory:`, or nothing for a file without a name.
    instead: &'static str,
}

impl Cache {
    /// Opens the cache, with what people should be told if it could not be used as it was.
    pub(crate) fn open(&self, state: &StateDir) -> Result<(Connection, Vec<String>), StoreError> {
        state.check()?;
        let path = (self.path)(state);
        let error = match self.connect(&path) {
            Ok(connection) => return Ok((connection, Vec::new())),
            Err(error) => error,
        };
        let mut findings = Vec::new();
        if is_damage(&error) {
            remove(&path);
            findings.push(format!("the {} was unusable and is filled anew ({error})", self.name));
        }
        let connection = self.connect(&path).or_else(|_| self.prepare(Connection::open(self.instead)?))?;
        Ok((connection, findings))
    }

    /// One that no file has.
    pub(crate) fn open_in_memory(&self) -> Result<Connection, rusqlite::Error> {
        self.prepare(Connection::open_in_memory()?)
    }

    /// Begins to write, unless a program of another version has replaced the tables since they were opened.
    pub(crate) fn write<'a>(&self, connection: &'a mut Connection) -> Result<Transaction<'a>, rusqlite::Error> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if version(&transaction)? != self.version {
            let why = format!("another version of this program has replaced the {}", self.name);
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_SCHEMA), Some(why)));
        }
        Ok(transaction)
    }

    pub(crate) fn remove(&self, state: &StateDir) -> Result<(), StoreError> {
        state.check()?;
        remove(&(self.path)(state));
        Ok(())
    }

    fn connect(&self, path: &Path) -> Result<Connection, rusqlite::Error> {
        let connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        restrict(path);
        self.prepare(connection)
    }

    fn prepare(&self, connection: Connection) -> Result<Connection, rusqlite::Error> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Before there are any pages: what is removed can be given back to the disk.
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
        let _: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        // What a power failure takes off the end is filled in again.
        connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")?;
        if version(&connection)? != self.version {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            // Another command may have come first.
            if version(&connection)? != self.version {
                drop_tables(&connection)?;
                connection.execute_batch(self.schema)?;
                connection.execute_batch(&format!("PRAGMA user_version = {}", self.version))?;
            }
            connection.execute_batch("COMMIT")?;
        }
        // One that is damaged shows it now rather than in the middle of something.
        connection.query_row(&format!("SELECT count(*) FROM {}", self.probe), [], |row| row.get::<_, i64>(0))?;
        Ok(connection)
    }
}

/// Whether it is the file itself that is bad.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

/// Removes the cache at `path` and what SQLite keeps beside it.
fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut path = path.as_os_str().to_owned();
        path.push(suffix);
        let _ = fs::remove_file(path);
    }
}

/// Removes the tables of another version. Full-text tables go first: they take their own along.
fn drop_tables(connection: &Connection) -> Result<(), rusqlite::Error> {
    for which in ["sql LIKE 'CREATE VIRTUAL%'", "name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"] {
        let names = format!("SELECT name FROM sqlite_schema WHERE type = 'table' AND {which}");
        let mut statement = connection.prepare(&names)?;
        for name in statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()? {
            connection.execute_batch(&format!("DROP TABLE \"{name}\""))?;
        }
    }
    Ok(())
}

fn version(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Caches hold command lines and words of messages; the file is its owner's alone, as its directory is.
fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
}
