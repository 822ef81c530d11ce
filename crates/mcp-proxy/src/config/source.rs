//! A file as it was found: its text, its name and the format that its name tells.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::failure::{Failure, quoted};

use super::mistake::{Mistake, Mistakes};
use super::tree::{Located, Value};
use super::{json, toml, yaml};

/// A file that is longer was not written by hand.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of a hash that tell versions of one file apart.
const VERSION_BYTES: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Toml,
    Yaml,
}

pub struct Source {
    path: PathBuf,
    format: Format,
    text: String,
    version: String,
}

impl Source {
    /// Reads a file. `what` it is meant to be, such as "the rules", is said where it cannot be read.
    pub fn read(path: &Path, what: &str) -> Result<Self, Failure> {
        let bytes =
            contents(path).map_err(|why| Failure::usage(format!("cannot read {what} in {}: {why}", quoted(path))))?;
        let format = format(path)?;
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(Failure::usage(format!("cannot read {what} in {}: it is not text in UTF-8", quoted(path))));
        };
        Ok(Self::of(path.to_owned(), format, text))
    }

    fn of(path: PathBuf, format: Format, text: String) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let version = hash.iter().take(VERSION_BYTES).map(|byte| format!("{byte:02x}")).collect();
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Self { path, format, text, version }
    }

    #[cfg(test)]
    pub fn for_test(name: &str, text: &str) -> Self {
        Self::of(name.into(), format(Path::new(name)).unwrap(), text.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The beginning of what `sha256sum` says of the file.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What the file is called in front of a mistake.
    pub fn shown(&self) -> String {
        mcp_wire::visible::visible(&self.path.to_string_lossy()).to_string()
    }

    /// The tree, without keys that come twice.
    pub fn parse(&self, mistakes: &mut Mistakes) -> Option<Located> {
        let parsed = match self.format {
            Format::Json => json::parse(&self.text).map_err(|mistake| vec![mistake]),
            Format::Toml => toml::parse(&self.text).map(Some),
            Format::Yaml => yaml::parse(&self.text).map_err(|mistake| vec![mistake]),
        };
        match parsed {
            Ok(Some(root)) => {
                find_repeated(&root, mistakes);
                Some(root)
            }
            Ok(None) => {
                mistakes.add(Mistake::at(0..0, "there is nothing in this file"));
                None
            }
            Err(wrong) => {
                mistakes.extend(wrong);
                None
            }
        }
    }

    /// What is wrong with the file, as an error of a command.
    pub fn refused(&self, what: &str, mistakes: Mistakes) -> Failure {
        Failure::usage(format!("{what} in {} cannot be used\n\n{}", quoted(&self.path), mistakes.shown(self)))
    }
}

fn format(path: &Path) -> Result<Format, Failure> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    Ok(match extension.as_deref() {
        Some("json" | "jsonc") => Format::Json,
        Some("toml") => Format::Toml,
        Some("yaml" | "yml") => Format::Yaml,
        _ => {
            return Err(Failure::usage(format!("cannot tell by its name in which format {} is", quoted(path)))
                .hint("call it .json, .jsonc, .toml, .yaml or .yml"));
        }
    })
}

fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let plainly = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "you may not read it".to_owned(),
        _ => error.to_string(),
    };
    // A pipe could keep us waiting for ever, so we look before we open.
    let found = std::fs::metadata(path).map_err(plainly)?;
    if found.is_dir() {
        return Err("it is a directory".into());
    }
    if !found.is_file() {
        return Err("it is no regular file".into());
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(plainly)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is longer than {} MiB", FILE_BYTES_MAX / 1024 / 1024));
    }
    if bytes.trim_ascii().is_empty() {
        return Err("it is empty".into());
    }
    Ok(bytes)
}

/// Which of two values counts would depend on who reads the file, so neither does.
fn find_repeated(located: &Located, mistakes: &mut Mistakes) {
    match &located.value {
        Value::List(items) => items.iter().for_each(|item| find_repeated(item, mistakes)),
        Value::Table(members) => {
            let mut seen = std::collections::HashMap::new();
            for member in members {
                if let Some(first) = seen.insert(member.key.as_str(), member.key_span.start) {
                    let what = format!("{} is here twice", super::said(&member.key));
                    mistakes.add(Mistake::at(member.key_span.clone(), what).other("the first is", first));
                }
                find_repeated(&member.value, mistakes);
            }
        }
        _ => {}
    }
}

/// `~` is the user's home, also where no shell has read it. Without HOME it is that of the user database.
pub(crate) fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) if home.is_absolute() => home.join(rest),
        _ => path.to_owned(),
    }
}
