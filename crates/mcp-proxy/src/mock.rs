//! Serves a recorded session as an MCP server: on standard input and output, or to clients of HTTP.

mod fallback;
mod serve;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mcp_engine::mock::Mock;
use mcp_store::{SegmentReader, Session, SessionHeader, StateDir};
use mcp_transport::stdio::relay;
use tokio::runtime::{Builder, LocalOptions};

use crate::chosen::{self, Chosen, ChosenArgs};
use crate::cli::{LISTEN_PORT, Listen, RecordingArgs, TargetArgs, TransportArg, UrlTransportArg};
use crate::duplex::Duplex;
use crate::failure::{Failure, exit};
use crate::plan::Plan;
use crate::report::say;
use crate::run;
use fallback::Fallback;

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy mock [OPTIONS] SESSION\n       mcp-proxy mock [OPTIONS] SESSION --fallback --target-command CMD\n       mcp-proxy mock [OPTIONS] SESSION --fallback --target-url URL"
)]
pub(crate) struct MockArgs {
    #[command(flatten)]
    chosen: ChosenArgs,
    /// Where clients connect: `stdio`, a port on 127.0.0.1, or an IP address with a port [default:
    /// stdio]
    #[arg(long, value_name = "stdio|[HOST:]PORT")]
    listen: Option<Listen>,
    /// What clients speak; with sse or streamable-http, listen on port 8888 unless --listen says
    /// otherwise
    #[arg(long, value_enum, ignore_case = true)]
    transport: Option<TransportArg>,
    /// Serve only clients that show the first line of this file as a bearer token; required where
    /// other machines can connect
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Pass calls that the recording does not have on to a live server, and add them to it
    #[arg(long)]
    fallback: bool,
    #[command(flatten)]
    target: TargetArgs,
    /// How the server at --target-url is reached [default: streamable-http]
    #[arg(long, value_enum, ignore_case = true, requires = "target_url")]
    target_transport: Option<UrlTransportArg>,
    /// Say nothing on standard error unless something is wrong
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn mock(args: &MockArgs, state: StateDir) -> Result<ExitCode, Failure> {
    let client = client(args)?;
    let chosen = args.chosen.read(&state, |_| ())?;
    if chosen.transcript.calls().next().is_none() {
        return Err(Failure::usage("there is nothing to serve: this conversation has no call of a client"));
    }
    let recording = args.target.recording((SessionHeader::EXTENDS, chosen.summary.header.id.to_string()));
    let server = args.target.server(args.target_transport, &recording)?;
    let fallback = match (args.fallback, server) {
        (true, Some(server)) => Some(Fallback::new(server, recording, state.clone())),
        (true, None) => {
            return Err(Failure::usage("--fallback needs a server")
                .hint("give --target-command CMD, --target-url URL, or -- CMD"));
        }
        (false, Some(_)) => {
            return Err(
                Failure::usage("a mock needs no server").hint("give --fallback to use one for what is not recorded")
            );
        }
        (false, None) => None,
    };
    match client {
        Listen::Stdio => on_stdio(args, chosen, fallback, &state),
        Listen::At(_) => listen(args, &chosen, client, state),
    }
}

fn client(args: &MockArgs) -> Result<Listen, Failure> {
    match (args.listen, args.transport) {
        (None, None | Some(TransportArg::Stdio)) => Ok(Listen::Stdio),
        (None, Some(_)) => Ok(Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, LISTEN_PORT)))),
        (Some(Listen::Stdio), Some(TransportArg::Sse | TransportArg::StreamableHttp)) => {
            Err(Failure::usage("--listen stdio does not go with this --transport"))
        }
        (Some(Listen::At(_)), Some(TransportArg::Stdio)) => {
            Err(Failure::usage("--transport stdio does not go with a listener").hint("leave one of the two out"))
        }
        (Some(listen), _) => Ok(listen),
    }
}

fn on_stdio(
    args: &MockArgs,
    chosen: Chosen,
    fallback: Option<Fallback>,
    state: &StateDir,
) -> Result<ExitCode, Failure> {
    if args.token_file.is_some() {
        return Err(Failure::usage("--token-file is for a listener, and this mock is on stdio"));
    }
    let mut mock = Mock::of(&chosen.transcript);
    let (calls, id) = (chosen.transcript.calls().count(), chosen.summary.header.id);
    drop(chosen);
    let added = extend(&mut mock, &id.to_string(), state)?;
    if !args.quiet {
        let more = if added > 0 {
            format!(", and {added} {}", if added == 1 { "session that extends it" } else { "sessions that extend it" })
        } else {
            String::new()
        };
        say(&format!("mcp-proxy: serving session {}: {calls} calls{more}", &id.to_string()[..8]));
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    let interrupted = runtime.block_on(async {
        let (stdin, stdout) = relay::client_pipes()?;
        let client = Duplex::new(stdin, stdout, args.target.message_limit);
        Ok::<_, Failure>(serve::serve(mock, client, fallback).await)
    })?;
    Ok(if interrupted { ExitCode::from(exit::INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Adds what live servers answered to earlier mocks of the same session. Returns how many sessions
/// that were.
fn extend(mock: &mut Mock, id: &str, state: &StateDir) -> Result<usize, Failure> {
    // The catalogue is not needed for that, and several mocks may start at once.
    let header = |path: &PathBuf| SegmentReader::open(path).ok().map(|reader| reader.header().clone());
    let segments = if state.root().exists() { state.segments()? } else { Vec::new() };
    let mut found: Vec<(u64, PathBuf)> = segments
        .into_iter()
        .filter_map(|path| header(&path).map(|header| (header, path)))
        .filter(|(header, _)| header.notes.get(SessionHeader::EXTENDS).is_some_and(|of| of == id))
        .map(|(header, path)| (header.started_ns, path))
        .collect();
    found.sort();
    for (_, path) in &found {
        let chosen = chosen::read(Session::open_segment(path)?, None, |_| ())?;
        mock.extend(&chosen.transcript);
    }
    Ok(found.len())
}

/// Puts the ordinary listener in front of this program as a mock on stdio.
fn listen(args: &MockArgs, chosen: &Chosen, client: Listen, state: StateDir) -> Result<ExitCode, Failure> {
    let words = words_on_stdio(args, chosen, &state)?;
    let plan = Plan::in_front_of(&words, client, args.token_file.as_deref())?;
    // A mock's own clients are not recorded: what they get is a recording.
    let unrecorded = RecordingArgs { no_record: true, ..args.target.recording(("", String::new())) };
    let unrecorded = RecordingArgs { note: Vec::new(), quiet: args.quiet, ..unrecorded };
    run::carry_out(plan, &unrecorded, None, Ok(state))
}

/// The command line of the same mock on stdio.
fn words_on_stdio(args: &MockArgs, chosen: &Chosen, state: &StateDir) -> Result<Vec<OsString>, Failure> {
    let mut words: Vec<OsString> = vec![std::env::current_exe()?.into(), "mock".into()];
    let file = args.chosen.session_file.clone().or_else(|| args.chosen.session.as_ref().map(PathBuf::from));
    let file = file.filter(|file| file.exists()).unwrap_or_else(|| state.segment(&chosen.summary.header.id));
    words.extend(["--session-file".into(), std::path::absolute(file)?.into()]);
    let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
    option("--state-dir", std::path::absolute(state.root())?.into());
    option("--conversation", chosen.conversation.to_string().into());
    option("--message-limit", args.target.message_limit.to_string().into());
    for (key, value) in &args.target.env {
        option("--env", format!("{key}={value}").into());
    }
    for (name, value) in &args.target.header {
        option("--header", format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())).into());
    }
    if let Some(file) = &args.target.ca_file {
        option("--ca-file", std::path::absolute(file)?.into());
    }
    if let Some(name) = &args.target.name {
        option("--name", name.into());
    }
    if let Some(command) = &args.target.target_command {
        option("--target-command", command.into());
    }
    if let Some(url) = &args.target.target_url {
        option("--target-url", url.into());
    }
    if args.target_transport == Some(UrlTransportArg::Sse) {
        option("--target-transport", "sse".into());
    }
    let flags = [("--fallback", args.fallback), ("--no-record", args.target.no_record), ("--quiet", true)];
    words.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.into()));
    if !args.target.command.is_empty() {
        words.push("--".into());
        words.extend(args.target.command.iter().cloned());
    }
    Ok(words)
}
