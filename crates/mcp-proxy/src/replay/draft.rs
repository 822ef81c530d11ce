//! A report on its way to a file. That it can be written is found out before anything is sent; the file
//! appears whole, and readable by its owner only, because answers stand in it.

use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Failure, exit, quoted};

pub struct Draft {
    file: NamedTempFile,
    path: PathBuf,
}

impl Draft {
    pub fn begin(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        let Some(path) = path else { return Ok(None) };
        if path.is_dir() {
            return Err(Failure::usage(format!("{} is a directory", quoted(path))));
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".mcp-proxy-").tempfile_in(dir);
        let file = file.map_err(|error| cannot_write(path, &error))?;
        Ok(Some(Self { file, path: path.to_owned() }))
    }

    pub fn finish(mut self, report: &[u8]) -> Result<(), Failure> {
        self.file.write_all(report).map_err(|error| cannot_write(&self.path, &error))?;
        self.file.persist(&self.path).map_err(|error| cannot_write(&self.path, &error.error))?;
        Ok(())
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(exit::CANNOT_RUN, format!("cannot write {}: {error}", quoted(path)))
}
