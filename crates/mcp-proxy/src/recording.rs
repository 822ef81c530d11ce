//! The recording of a run: where it lies, what the user is told of it, and the session file that is
//! made of it in the end.

use std::path::PathBuf;

use mcp_engine::pipeline::wall_ns;
use mcp_engine::record::Place;
use mcp_engine::{Evidence, OnStoreFailure, Recorder, RecorderOptions};
use mcp_store::session_file::FileSession;
use mcp_store::{Session, SessionHeader, StateDir, StoreError, session_file};
use uuid::Uuid;

use crate::cli::{EvidenceArg, OnStoreFailureArg, RecordingArgs};
use crate::export::exists;
use crate::failure::{Failure, exit, quoted};
use crate::indexer;
use crate::plan::ServerSide;
use crate::report::say;

/// Opens the recording, and the session file if one is wanted.
pub(crate) fn begin(
    args: &RecordingArgs,
    server: &ServerSide,
    state: Result<StateDir, Failure>,
) -> Result<Recorder, Failure> {
    let session_file = args.session_file.as_ref().map(std::path::absolute).transpose()?;
    if args.no_record && session_file.is_none() {
        if args.evidence == EvidenceArg::Strict {
            return Err(Failure::usage("--evidence strict needs a recording")
                .hint("leave --no-record out, or give --session-file FILE"));
        }
        return Ok(Recorder::in_memory());
    }
    let evidence = match args.evidence {
        EvidenceArg::Normal => Evidence::Normal,
        EvidenceArg::Strict => Evidence::Strict,
    };
    let on_failure = match (args.on_store_failure, evidence) {
        (Some(OnStoreFailureArg::Forward), _) | (None, Evidence::Normal) => OnStoreFailure::Forward,
        (Some(OnStoreFailureArg::Stop), _) | (None, Evidence::Strict) => OnStoreFailure::Stop,
    };
    let header = SessionHeader {
        server_command: server.command(),
        server_url: server.url(),
        name: args.name.clone(),
        notes: args.note.iter().cloned().collect(),
        session_file: session_file.clone(),
        ..SessionHeader::begun(Uuid::new_v4(), wall_ns(), server.transport())
    };
    if let Some(file) = &session_file {
        session_file::make_dir_of(file)?;
        session_file::may_be_written(file)?;
        // A run that came to nothing leaves a file without messages; the next run replaces it.
        let is_empty = || FileSession::open(file).is_ok_and(|it| it.is_empty(file, state.as_ref().ok()));
        if !args.force && file.symlink_metadata().is_ok() && !is_empty() {
            return Err(exists(file));
        }
        session_file::write_placeholder(file, &header)?;
    }
    let short_id = header.id.to_string()[..8].to_owned();
    match open_recorder(header, args, state, RecorderOptions { evidence, on_failure, on_synced: None }) {
        Ok(recorder) => {
            let look = match &session_file {
                Some(file) if args.no_record => quoted(file),
                _ => short_id.clone(),
            };
            if !args.quiet {
                say(&format!(
                    "mcp-proxy {short_id}: recording, verbatim and readable by you only; look with `mcp-proxy inspect {look}`, \
                     watch with `mcp-proxy attach {short_id}`"
                ));
            }
            Ok(recorder)
        }
        Err(failure) if on_failure == OnStoreFailure::Forward => {
            say(&format!("mcp-proxy: warning: nothing is recorded: {}", failure.what()));
            Ok(Recorder::in_memory())
        }
        Err(failure) => Err(failure),
    }
}

/// The segment lies in the store; where nothing is to be kept there, beside the session file.
fn open_recorder(
    header: SessionHeader,
    args: &RecordingArgs,
    state: Result<StateDir, Failure>,
    mut options: RecorderOptions,
) -> Result<Recorder, Failure> {
    let place: Place = match (&header.session_file, args.no_record) {
        (Some(file), true) => {
            let file = file.clone();
            Box::new(move |id| session_file::segment_beside(&file, id))
        }
        _ => {
            let state = state?;
            state.prepare()?;
            options.on_synced = Some(indexer::follow(&state));
            Box::new(move |id| state.segment(id))
        }
    };
    Ok(Recorder::begin(header, place, options)?)
}

pub(crate) fn write_session_files(
    sessions: Vec<(SessionHeader, PathBuf)>,
    args: &RecordingArgs,
) -> Result<(), Failure> {
    for (header, segment) in sessions {
        let Some(file) = header.session_file else { continue };
        let write = || -> Result<(), StoreError> { session_file::write(&file, &Session::open_segment(&segment)?) };
        write().map_err(|error| {
            Failure::caused_by(exit::CANNOT_RUN, &error)
                .hint(format!("the recording itself is whole: {}", quoted(&segment)))
        })?;
        if args.no_record {
            let _ = std::fs::remove_file(&segment);
        }
    }
    Ok(())
}
