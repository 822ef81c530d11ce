//! Where the files of instances lie, and that nobody else can get at them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{DESCRIPTION, InstanceError, SOCKET};

/// The longest path of a socket: systems take 104 to 108 bytes, with the zero at the end. A socket with a longer
/// path lies in a short directory instead.
const SOCKET_PATH_MAX: usize = 100;
/// Where sockets lie whose own path would be longer. Not what `TMPDIR` says: one side may not have it.
const SHORT: &str = "/tmp";

#[derive(Clone, Debug)]
pub(super) struct Place {
    state: PathBuf,
    run: PathBuf,
}

impl Place {
    pub(super) fn below(state: &Path) -> Self {
        Self { state: state.to_owned(), run: state.join("run") }
    }

    /// The directory of descriptions, and of sockets unless that makes their paths too long.
    pub(super) fn run(&self) -> &Path {
        &self.run
    }

    pub(super) fn description(&self, id: &Uuid) -> PathBuf {
        self.run.join(format!("{id}.{DESCRIPTION}"))
    }

    pub(super) fn socket(&self, id: &Uuid) -> Result<PathBuf, InstanceError> {
        let name = format!("{id}.{SOCKET}");
        Ok(match self.short(name.len())? {
            Some((_, short)) => short.join(name),
            None => self.canonical()?.join(name),
        })
    }

    /// The directory of sockets, if there is one by now.
    pub(super) fn sockets(&self) -> Result<Option<PathBuf>, InstanceError> {
        let dir = match self.short(Self::name_len())? {
            Some((_, short)) => short,
            None => self.canonical()?,
        };
        Ok(Some(dir).filter(|dir| dir.exists()))
    }

    /// Makes the directories if need be, and makes sure that they are ours alone. The mode of one that
    /// exists is never changed: it may be somebody's `/tmp`.
    pub(super) fn prepare(&self) -> Result<(), InstanceError> {
        make_private(&self.state)?;
        make_private(&self.run)?;
        if let Some((ours, short)) = self.short(Self::name_len())? {
            make_private(&ours)?;
            make_private(&short)?;
        }
        Ok(())
    }

    /// Makes sure that what exists of the directories is ours alone. Whether anything does.
    pub(super) fn check(&self) -> Result<bool, InstanceError> {
        if !check_private(&self.state)? || !check_private(&self.run)? {
            return Ok(false);
        }
        if let Some((ours, short)) = self.short(Self::name_len())? {
            let _ = check_private(&ours)? && check_private(&short)?;
        }
        Ok(true)
    }

    /// The path that both sides come to, whatever links lead to it.
    fn canonical(&self) -> Result<PathBuf, InstanceError> {
        fs::canonicalize(&self.run).map_err(InstanceError::io("find", &self.run))
    }

    /// The user's directory of short paths and the part of it that belongs to this place, if a file name
    /// of `name` bytes needs it.
    fn short(&self, name: usize) -> Result<Option<(PathBuf, PathBuf)>, InstanceError> {
        let run = self.canonical()?;
        let run = run.as_os_str().as_bytes();
        if run.len() + 1 + name <= SOCKET_PATH_MAX {
            return Ok(None);
        }
        let ours = Path::new(SHORT).join(format!("mcp-proxy-{}", rustix::process::geteuid().as_raw()));
        let short = ours.join(format!("{:016x}", fingerprint(run)));
        Ok(Some((ours, short)))
    }

    fn name_len() -> usize {
        uuid::fmt::Hyphenated::LENGTH + 1 + SOCKET.len()
    }
}

/// FNV-1a: the same in every version of this program. Two places that share a directory do no harm, since
/// instances have names of their own.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn make_private(dir: &Path) -> Result<(), InstanceError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(InstanceError::io("create", dir))?;
    check_private(dir).map(drop)
}

/// Whether there is such a directory; an error if it is not ours alone.
fn check_private(dir: &Path) -> Result<bool, InstanceError> {
    let meta = match fs::symlink_metadata(dir) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(InstanceError::io("look at", dir)(error)),
    };
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
        return Err(InstanceError::NotPrivate { path: dir.to_owned() });
    }
    Ok(true)
}
