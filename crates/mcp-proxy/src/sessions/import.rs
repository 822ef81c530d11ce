//! `sessions import`: files become sessions of the store.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use mcp_store::import::Import;
use mcp_store::{Catalogue, Entry, StateDir, StoreError};
use mcp_wire::visible::visible;

use crate::failure::{Failure, exit, quoted};
use crate::progress::{Progress, Unit};
use crate::report::say;

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// Session files (.json, .ndjson) or recordings (.mcpseg)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Each file by itself: what cannot be taken in is said, and the others are.
pub(super) fn import(args: &ImportArgs, catalogue: &Catalogue, state: &StateDir) -> Result<(), Failure> {
    let known = catalogue.entries()?;
    let mut first_failure = None;
    for file in &args.files {
        match import_file(file, &known, state) {
            Ok(Some(said)) => say(&said),
            Ok(None) => {
                return Err(Failure::new(
                    exit::INTERRUPTED,
                    format!("interrupted; nothing of {} was kept", quoted(file)),
                ));
            }
            Err(error) => {
                let failure = Failure::from(error);
                match first_failure {
                    None => first_failure = Some(failure),
                    Some(_) => say(&failure.to_string()),
                }
            }
        }
    }
    first_failure.map_or(Ok(()), Err)
}

/// What to say of it; nothing if it was interrupted.
fn import_file(file: &Path, known: &[Entry], state: &StateDir) -> Result<Option<String>, StoreError> {
    let opening = Progress::waiting("reading");
    let import = Import::open(file)?;
    drop(opening);
    let (id, shown) = (import.id(), quoted(file));
    if let Some(entry) = known.iter().find(|entry| entry.header.id == *id) {
        let difference = if entry.messages == import.messages() {
            String::new()
        } else {
            format!(", with {} messages where the file has {}", entry.messages, import.messages())
        };
        return Ok(Some(format!("{shown} is recorded already as {id}{difference}")));
    }
    if state.segment(id).exists() {
        return Ok(Some(format!("{shown} is recorded already as {id}")));
    }
    let progress = Progress::begin("importing", Unit::Messages, Some(import.messages()));
    let brought = import.bring(state, &mut |messages| match progress.advance(messages) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    })?;
    drop(progress);
    let Some(imported) = brought else { return Ok(None) };
    let mut said = format!("imported {shown} as {id}: {} messages", imported.summary.messages);
    for finding in imported.findings.iter().chain(&imported.summary.warnings) {
        said.push_str(&format!("\n  {}", visible(finding)));
    }
    Ok(Some(said))
}
