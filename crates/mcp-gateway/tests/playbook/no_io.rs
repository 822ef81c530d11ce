//! The gateway does no I/O: neither its manifest nor its source names any.

use std::path::Path;

const MANIFEST: &str = include_str!("../../Cargo.toml");

#[test]
fn the_manifest_names_no_io() {
    let lines = MANIFEST.lines().filter(|line| !line.starts_with("description"));
    for line in lines {
        for crate_ in ["hyper", "rustix", "libc", "nix", "mio", "socket2", "mcp-transport"] {
            assert!(!line.trim_start().starts_with(crate_), "{line}");
        }
        for feature in ["net", "process", "fs", "io-std", "io-util", "signal", "full"] {
            assert!(!line.contains(&format!("\"{feature}\"")), "{line}");
        }
    }
}

#[test]
fn the_source_names_no_io() {
    let mut files = 0;
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // This module is for unit tests only.
            if path.ends_with("router/schema.rs") {
                continue;
            }
            files += 1;
            let source = std::fs::read_to_string(&path).unwrap();
            // Its tests may read files.
            let source = source.split("#[cfg(test)]").next().unwrap();
            for module in ["net", "fs", "process", "os"] {
                for root in ["std", "tokio"] {
                    let name = format!("{root}::{module}");
                    assert!(!source.contains(&name), "{} names {name}", path.display());
                }
            }
        }
    }
    assert!(files > 20, "{files} files are not all of them");
}
