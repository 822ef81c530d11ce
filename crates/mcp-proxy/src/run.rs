//! Wires a proxy together: command line to recorder, pipeline, server and session file.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use mcp_engine::pipeline::wall_ns;
use mcp_engine::record::Place;
use mcp_engine::{Bus, Evidence, OnStoreFailure, Pipeline, Recorder, RecorderOptions};
use mcp_store::{End, Session, SessionHeader, StateDir, StoreError, Transport, session_file};
use mcp_transport::child::{ExitStatus, ServerCommand};
use mcp_transport::stdio::session::ServeError;
use mcp_transport::stdio::{Ended, Options, relay, serve};
use uuid::Uuid;

use crate::cli::{EvidenceArg, OnStoreFailureArg, ProxyArgs, RecordingArgs, RunArgs, TransportArg, Ui};
use crate::failure::{Failure, exit, quoted};
use crate::report::say;

/// What a server gets to end by itself once the client is gone, without open calls and with.
const IDLE_GRACE: Duration = Duration::from_secs(2);
const CALL_GRACE: Duration = Duration::from_secs(10);
/// The signals by which a server is ended that did not end by itself.
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
/// Lines of a server's last words that are quoted and kept.
const LAST_WORDS_LINES: usize = 20;

/// `mcp-proxy proxy`
pub fn proxy(args: &ProxyArgs, state: Result<StateDir, Failure>) -> Result<ExitCode, Failure> {
    if args.transport != TransportArg::Stdio {
        return Err(
            Failure::usage("this version speaks stdio only").hint("use --transport stdio with --target-command")
        );
    }
    if args.ui == Some(Ui::Tui) {
        return Err(Failure::usage("this version has no terminal interface").hint("leave --ui out, or give --ui none"));
    }
    if args.target_url.is_some() {
        return Err(Failure::usage("--target-url does not go with --transport stdio").hint("give --target-command CMD"));
    }
    let Some(command) = &args.target_command else {
        return Err(Failure::usage("--transport stdio needs --target-command CMD"));
    };
    let words = shell_words::split(command)
        .map_err(|error| Failure::usage(format!("--target-command cannot be split into words: {error}")))?;
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    if args.intercept {
        say("mcp-proxy: nobody can hold messages in this version, so intercepted ones are forwarded at once");
    }
    relay_stdio(&words, command.clone(), &args.recording, state)
}

/// `mcp-proxy run -- CMD…`
pub fn run(args: &RunArgs, state: Result<StateDir, Failure>) -> Result<ExitCode, Failure> {
    let words = args.command.iter().map(|word| word.to_string_lossy());
    relay_stdio(&args.command, shell_words::join(words), &args.recording, state)
}

fn relay_stdio(
    words: &[OsString],
    shown: String,
    args: &RecordingArgs,
    state: Result<StateDir, Failure>,
) -> Result<ExitCode, Failure> {
    let Some((program, rest)) = words.split_first().filter(|(program, _)| !program.is_empty()) else {
        return Err(Failure::usage("the server's command is empty"));
    };
    let env = args.env.iter().map(|(key, value)| (key.into(), value.into())).collect();
    let command = ServerCommand { program: program.clone(), args: rest.to_vec(), env };
    let recorder = begin_recording(args, shown, state)?;
    if std::io::stdin().is_terminal() && !args.quiet {
        say("mcp-proxy: standard input is a terminal; type JSON-RPC messages, one a line, and end with Ctrl-D");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let ended = runtime.block_on(async {
        let client = relay::client_pipes().map_err(ServeError::Stdio)?;
        let pipeline = Pipeline::new(recorder, Bus::default(), args.message_limit);
        let options = Options { message_bytes_max: args.message_limit, idle_grace: IDLE_GRACE, call_grace: CALL_GRACE };
        serve(client, &command, pipeline, options, &mut |text| say(&format!("mcp-proxy: {text}"))).await
    });
    match ended {
        Ok(ended) => wind_up(ended, &program.to_string_lossy(), args),
        Err(error) => Err(Failure::caused_by(exit::CANNOT_RUN, &error)),
    }
}

fn not_started(program: &str, error: &std::io::Error) -> Failure {
    let failure = Failure::new(exit::CANNOT_RUN, format!("cannot start `{program}`: {}", plainly(error)));
    if error.kind() == std::io::ErrorKind::NotFound {
        return failure.hint("give the program's full path; clients often run without the PATH of your shell");
    }
    failure
}

/// An operating system error without its number.
fn plainly(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such program".into(),
        std::io::ErrorKind::PermissionDenied => "it may not be executed".into(),
        _ => error.to_string(),
    }
}

/// Opens the recording, and the session file if one is wanted.
fn begin_recording(
    args: &RecordingArgs,
    server_command: String,
    state: Result<StateDir, Failure>,
) -> Result<Recorder, Failure> {
    let session_file = args.session_file.as_ref().map(std::path::absolute).transpose()?;
    if args.no_record && session_file.is_none() {
        if args.evidence == EvidenceArg::Strict {
            return Err(Failure::usage("--evidence strict needs a recording")
                .hint("leave --no-record out, or give --session-file FILE"));
        }
        return Ok(Recorder::off());
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
        id: Uuid::new_v4(),
        started_ns: wall_ns(),
        transport: Transport::Stdio,
        server_command: Some(server_command),
        server_url: None,
        name: args.name.clone(),
        notes: args.note.iter().cloned().collect(),
        session_file: session_file.clone(),
        continues: None,
    };
    if let Some(file) = &session_file {
        session_file::may_be_written(file)?;
        session_file::write_placeholder(file, &header)?;
    }
    let short_id = header.id.to_string()[..8].to_owned();
    match open_recorder(header, args, state, RecorderOptions { evidence, on_failure }) {
        Ok(recorder) => {
            let look = match &session_file {
                Some(file) if args.no_record => quoted(file),
                _ => short_id.clone(),
            };
            if !args.quiet {
                say(&format!(
                    "mcp-proxy {short_id}: recording, verbatim and readable by you only; look with `mcp-proxy inspect {look}`"
                ));
            }
            Ok(recorder)
        }
        Err(failure) if on_failure == OnStoreFailure::Forward => {
            say(&format!("mcp-proxy: warning: nothing is recorded: {}", failure.what()));
            Ok(Recorder::off())
        }
        Err(failure) => Err(failure),
    }
}

/// The segment lies in the store; where nothing is to be kept there, beside the session file.
fn open_recorder(
    header: SessionHeader,
    args: &RecordingArgs,
    state: Result<StateDir, Failure>,
    options: RecorderOptions,
) -> Result<Recorder, Failure> {
    let place: Place = match (&header.session_file, args.no_record) {
        (Some(file), true) => {
            let file = file.clone();
            Box::new(move |id| session_file::segment_beside(&file, id))
        }
        _ => {
            let state = state?;
            state.prepare()?;
            Box::new(move |id| state.segment(id))
        }
    };
    Ok(Recorder::begin(header, place, options)?)
}

/// The conversation is over: ends the recording, writes the session file, says how it ended.
fn wind_up(ended: Ended, program: &str, args: &RecordingArgs) -> Result<ExitCode, Failure> {
    let last_words = ended.last_words.text(LAST_WORDS_LINES);
    let noise = ended.pipeline.noise();
    let answered_nothing = !ended.pipeline.server_spoke();
    let end = End { server: Some(ended.status.to_string()), last_words: last_words.clone(), ..End::default() };
    let (sessions, finished) = ended.pipeline.finish(&end);
    if let Err(error) = finished {
        say(&format!("mcp-proxy: the end of the recording cannot be written ({error}); it will be found interrupted"));
    }
    let written = write_session_files(sessions, args);
    if noise > 0 && !args.quiet {
        let lines = if noise == 1 {
            "1 line that is no message was".to_owned()
        } else {
            format!("{noise} lines that are no messages were")
        };
        say(&format!("mcp-proxy: {lines} kept from the client; the server wrote it to its standard output"));
    }
    if let Some(error) = ended.not_started {
        return Err(not_started(program, &error));
    }
    if let Some(failed) = ended.store_failed {
        return Err(
            Failure::caused_by(exit::CANNOT_RUN, &failed).hint("free some space, or give --on-store-failure forward")
        );
    }
    written?;
    if ended.interrupted {
        return Ok(ExitCode::from(exit::INTERRUPTED));
    }
    let code = ended.status.as_exit_code();
    let failed_by_itself = match ended.status {
        ExitStatus::Code(code) => code != 0,
        ExitStatus::Signal(signal) => ended.server_left_first || !matches!(signal, SIGTERM | SIGKILL),
        ExitStatus::Unknown | ExitStatus::NotStarted => true,
    };
    if failed_by_itself && (ended.unanswered > 0 || ended.server_left_first && answered_nothing) {
        let what = match ended.unanswered {
            0 => format!("the server ended before it said anything ({})", ended.status),
            1 => format!("the server ended with a call unanswered ({})", ended.status),
            calls => format!("the server ended with {calls} calls unanswered ({})", ended.status),
        };
        return Err(Failure::new(code, what).evidence("its last words", &last_words));
    }
    Ok(ExitCode::from(code))
}

fn write_session_files(sessions: Vec<(SessionHeader, PathBuf)>, args: &RecordingArgs) -> Result<(), Failure> {
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
