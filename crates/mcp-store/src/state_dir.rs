//! Where an instance and the commands meet: one private directory, found from the user's home
//! alone, because clients pass on almost no environment.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::StoreError;

const BELOW_HOME: &str = ".local/state/mcp-proxy";
const SEGMENT_EXTENSION: &str = "mcpseg";

#[derive(Clone, Debug)]
pub struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// The directory given, else the one below the home directory. `None` without either.
    pub fn find(given: Option<&Path>) -> Option<Self> {
        let root = match given {
            Some(given) => given.to_owned(),
            None => std::env::home_dir().filter(|home| home.is_absolute())?.join(BELOW_HOME),
        };
        Some(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    pub fn segment(&self, id: &uuid::Uuid) -> PathBuf {
        self.sessions().join(format!("{id}.{SEGMENT_EXTENSION}"))
    }

    /// Where audit logs are.
    pub fn audit(&self) -> PathBuf {
        self.root.join("audit")
    }

    /// The table of decisions that is made of them.
    pub fn decisions(&self) -> PathBuf {
        self.root.join("audit.sqlite")
    }

    pub fn catalogue(&self) -> PathBuf {
        self.root.join("catalogue.sqlite")
    }

    pub fn index(&self) -> PathBuf {
        self.root.join("index.sqlite")
    }

    /// Makes the directories if need be, and makes sure that they are ours alone. The mode of one that
    /// exists is never changed: it may be somebody's `/tmp`.
    pub fn prepare(&self) -> Result<(), StoreError> {
        for dir in [self.root.clone(), self.sessions()] {
            make_private_dir(&dir)?;
        }
        Ok(())
    }

    /// Makes sure that what exists of the directories of recordings is ours alone, and makes nothing. The state
    /// of the audit's directory is no reason not to read recordings.
    pub fn check(&self) -> Result<(), StoreError> {
        check_existing(&[self.root.clone(), self.sessions()])
    }

    /// The same of the audit's directory.
    pub fn check_audit(&self) -> Result<(), StoreError> {
        check_existing(&[self.root.clone(), self.audit()])
    }

    /// Every segment file there is.
    pub fn segments(&self) -> Result<Vec<PathBuf>, StoreError> {
        let dir = self.sessions();
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("read", &dir)(error)),
        };
        let mut segments: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == SEGMENT_EXTENSION))
            .collect();
        segments.sort();
        Ok(segments)
    }
}

/// Makes a directory unless it is there, and makes sure that it is ours alone.
pub fn make_private_dir(dir: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(StoreError::io("create", dir))?;
    check_private(dir)
}

fn check_existing(dirs: &[PathBuf]) -> Result<(), StoreError> {
    dirs.iter().filter(|dir| fs::symlink_metadata(dir).is_ok()).try_for_each(|dir| check_private(dir))
}

fn check_private(dir: &Path) -> Result<(), StoreError> {
    let meta = fs::symlink_metadata(dir).map_err(StoreError::io("look at", dir))?;
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
        return Err(StoreError::NotPrivate { path: dir.to_owned() });
    }
    Ok(())
}

/// A new file that only its owner may read, wherever it is and whatever the umask says. Never an
/// existing one, and never through a link.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
}
