//! Which files a log is: `<instance>.jsonl`, then `<instance>.2.jsonl`, and so on.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::read::LineReader;
use super::record::Record;
use crate::StoreError;
use crate::segment::is_live;

const EXTENSION: &str = "jsonl";

/// The audit log of one instance, as it lies in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFiles {
    pub instance: Uuid,
    dir: PathBuf,
    /// The numbers of its parts, in order. From 1 and without gaps unless some are missing.
    pub parts: Vec<u32>,
}

impl LogFiles {
    pub fn path(&self, part: u32) -> PathBuf {
        part_path(&self.dir, &self.instance, part)
    }

    /// Whether somebody is writing it.
    pub fn is_live(&self) -> bool {
        self.parts.last().is_some_and(|&part| is_live(&self.path(part)).unwrap_or(false))
    }

    /// What it says first, if that can be read.
    pub fn first(&self) -> Option<Record> {
        let mut reader = LineReader::open(&self.path(*self.parts.first()?), 0).ok()?;
        Record::parse(reader.next_line().ok()??).ok()
    }

    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| self.part_bytes(*part)).sum()
    }

    /// 0 if it is not there.
    pub fn part_bytes(&self, part: u32) -> u64 {
        fs::metadata(self.path(part)).map_or(0, |meta| meta.len())
    }
}

pub(super) fn part_path(dir: &Path, instance: &Uuid, part: u32) -> PathBuf {
    match part {
        1 => dir.join(format!("{instance}.{EXTENSION}")),
        _ => dir.join(format!("{instance}.{part}.{EXTENSION}")),
    }
}

/// Every log in `dir`, in no order that means anything. Other files are nobody's business.
pub fn logs(dir: &Path) -> Result<Vec<LogFiles>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("read", dir)(error)),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: BTreeMap<Uuid, Vec<u32>> = BTreeMap::new();
    for (instance, part) in names.filter_map(|name| parse_name(&name)) {
        found.entry(instance).or_default().push(part);
    }
    let log = |(instance, mut parts): (Uuid, Vec<u32>)| {
        parts.sort_unstable();
        LogFiles { instance, dir: dir.to_owned(), parts }
    };
    Ok(found.into_iter().map(log).collect())
}

fn parse_name(name: &str) -> Option<(Uuid, u32)> {
    let stem = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let (instance, part) = match stem.split_once('.') {
        Some((instance, part)) => (instance, part.parse().ok().filter(|part| *part > 1)?),
        None => (stem, 1),
    };
    let instance = Uuid::parse_str(instance).ok()?;
    // Spelled as we spell it: another spelling is another file.
    part_path(Path::new(""), &instance, part).to_str().filter(|spelled| *spelled == name)?;
    Some((instance, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts() {
        let instance = Uuid::parse_str("7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a").expect("a uuid");
        assert_eq!(parse_name(&format!("{instance}.jsonl")), Some((instance, 1)));
        assert_eq!(parse_name(&format!("{instance}.12.jsonl")), Some((instance, 12)));
        for name in ["1", "01", "x", "2.3", ""] {
            assert_eq!(parse_name(&format!("{instance}.{name}.jsonl")), None, "{name}");
        }
        let loud = instance.to_string().to_uppercase();
        assert_eq!((parse_name(&format!("{loud}.jsonl")), parse_name("notes.jsonl")), (None, None));
    }
}
