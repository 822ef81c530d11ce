//! SQLite files that are caches: their owner's alone, of the version this program knows, thrown away
//! when damaged, and made anew where they cannot be written.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// For another command that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// What a cache holds.
pub(crate) struct Cache {
    /// What people call it.
    pub name: &'static str,
    /// Raised with every change of the tables; a cache of another version is filled anew.
    pub version: i64,
    /// Removes whatever tables there are, and makes them anew.
    pub make: fn(&Connection) -> Result<(), rusqlite::Error>,
    /// A table that it has.
    pub probe: &'static str,
    /// Where it lives if it cannot be a file of its own: `:memory:`, or nothing for a file without a name.
    pub instead: &'static str,
}

impl Cache {
    /// Opens the cache at `path`, with what people should be told if it could not be used as it was.
    pub fn open(&self, path: &Path) -> Result<(Connection, Option<String>), rusqlite::Error> {
        let error = match self.connect(path) {
            Ok(connection) => return Ok((connection, None)),
            Err(error) => error,
        };
        let finding = is_damage(&error).then(|| {
            remove(path);
            format!("the {} was unusable and is filled anew ({error})", self.name)
        });
        let connection = self.connect(path).or_else(|_| self.prepare(Connection::open(self.instead)?))?;
        Ok((connection, finding))
    }

    /// One that no file has.
    pub fn open_in_memory(&self) -> Result<Connection, rusqlite::Error> {
        self.prepare(Connection::open_in_memory()?)
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
                (self.make)(&connection)?;
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
pub(crate) fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut path = path.as_os_str().to_owned();
        path.push(suffix);
        let _ = fs::remove_file(path);
    }
}

fn version(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Caches hold command lines and words of messages; the file is its owner's alone, as its directory is.
fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
}
