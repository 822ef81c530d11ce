//! Documents that speak of the code, held to the code of all crates. They stand in the crate that builds fastest.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod names;

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

struct Source {
    /// From `crates/` on: `mcp-wire/src/scan.rs`.
    path: String,
    text: String,
}

/// The sources of every crate, in the order of their paths; those of tests are left out.
fn sources() -> Vec<Source> {
    let crates = Path::new(ROOT).join("crates");
    let mut left: Vec<PathBuf> =
        std::fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            let inside = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            left.extend(inside.filter(|_| name != "tests" && name != "checks"));
        } else if name.ends_with(".rs") && !["tests.rs", "checks.rs"].contains(&&*name) && !name.starts_with("testing")
        {
            let inside = path.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned();
            found.push(Source { path: inside, text: std::fs::read_to_string(&path).unwrap() });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}
