//! Where an export goes: standard output, a file that appears whole or not at all, or something that
//! is no file, such as a pipe.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Failure, exit, quoted};
use crate::report::{ColorChoice, Page};

/// Bytes of an export per write.
const BUFFER: usize = 256 * 1024;

pub(crate) enum Output {
    Standard,
    File { path: PathBuf, beside: NamedTempFile, replaces: bool },
    Other { path: PathBuf, file: File },
}

impl Output {
    /// Finds out that it cannot be written before any work is done. A file that exists is replaced only
    /// if it `replaces`.
    pub(crate) fn open(path: &Path, replaces: bool) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Self::Standard);
        }
        let fault = |error: io::Error| {
            Failure::new(exit::CANNOT_RUN, format!("cannot write {}: {error}", quoted(path)))
                .hint("give --output a file in a directory of yours, or leave it out for standard output")
        };
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Err(fault(io::ErrorKind::IsADirectory.into())),
            Ok(meta) if !meta.is_file() => {
                let file = File::options().write(true).open(path).map_err(fault)?;
                Ok(Self::Other { path: path.to_owned(), file })
            }
            _ if !replaces && path.symlink_metadata().is_ok() => Err(exists(path)),
            _ => Self::beside(path, replaces).map_err(fault),
        }
    }

    /// A file and nothing else, which takes the place of another only if it `replaces`.
    pub(crate) fn file(path: &Path, replaces: bool) -> Result<Self, Failure> {
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.is_dir() => Err(not_written(path)(io::ErrorKind::IsADirectory.into())),
            Ok(_) if !replaces => Err(exists(path)),
            Ok(meta) if !meta.is_file() => {
                let what = format!("cannot write {}: it is not a plain file", quoted(path));
                Err(Failure::new(exit::CANNOT_RUN, what))
            }
            _ => Self::beside(path, replaces).map_err(not_written(path)),
        }
    }

    /// What is written stands beside the file until all of it is there.
    fn beside(path: &Path, replaces: bool) -> io::Result<Self> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Only its owner may read it from the beginning on.
        let beside = tempfile::Builder::new().prefix(".mcp-export-").tempfile_in(dir)?;
        Ok(Self::File { path: path.to_owned(), beside, replaces })
    }

    /// Whether nothing is there until all is.
    pub(crate) fn appears_whole(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Has `fill` write. If it says that what it wrote is not all, no file appears.
    pub(crate) fn write<T>(
        self,
        fill: impl FnOnce(&mut dyn Write) -> Result<(bool, T), Failure>,
    ) -> Result<T, Failure> {
        match self {
            Self::Standard => {
                let mut page = BufWriter::with_capacity(BUFFER, Page::new(ColorChoice::Never));
                let (_, outcome) = fill(&mut page)?;
                page.flush()?;
                Ok(outcome)
            }
            Self::Other { path, file } => {
                let mut out = BufWriter::with_capacity(BUFFER, file);
                let (_, outcome) = fill(&mut out)?;
                out.flush().map_err(not_written(&path))?;
                Ok(outcome)
            }
            Self::File { path, mut beside, replaces } => {
                let mut out = BufWriter::with_capacity(BUFFER, beside.as_file_mut());
                let (is_partial, outcome) = fill(&mut out)?;
                out.flush().map_err(not_written(&path))?;
                drop(out);
                if !is_partial {
                    beside.as_file().sync_data().map_err(not_written(&path))?;
                    let put = if replaces { beside.persist(&path) } else { beside.persist_noclobber(&path) };
                    put.map_err(|error| not_written(&path)(error.error))?;
                }
                Ok(outcome)
            }
        }
    }
}

/// The refusal to replace a file.
pub(crate) fn exists(path: &Path) -> Failure {
    Failure::new(exit::NEGATIVE, format!("{} exists already", quoted(path))).hint("--force replaces it")
}

fn not_written(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let what = format!("cannot write {}", quoted(path));
    move |error| Failure::new(exit::CANNOT_RUN, format!("{what}: {error}"))
}
