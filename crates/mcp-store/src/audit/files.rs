//! Which files a log is: `<instance>.jsonl`, then `<instance>.2.jsonl`, and so on.

use std::path::{Path, PathBuf};

use uuid::Uuid;

const EXTENSION: &str = "jsonl";

pub fn part_path(dir: &Path, instance: &Uuid, part: u32) -> PathBuf {
    match part {
        1 => dir.join(format!("{instance}.{EXTENSION}")),
        _ => dir.join(format!("{instance}.{part}.{EXTENSION}")),
    }
}
