//! Wires a proxy together: command line to recorder, pipeline, clients and server.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::{Bus, Pipeline, StoreFailed};
use mcp_store::{End, StateDir, Transport};
use mcp_transport::bridge::serve as bridge;
use mcp_transport::child::{ExitStatus, ServerCommand};
use mcp_transport::http::serve as http;
use mcp_transport::http::site::{ENDPOINT, STREAM, Server};
use mcp_transport::http::target::Target;
use mcp_transport::http::tls;
use mcp_transport::http::upstream::Upstream;
use mcp_transport::stdio::session::ServeError;
use mcp_transport::stdio::{Ended, Options, relay, serve};
use tokio::runtime::{Builder, LocalOptions};

use crate::cli::{Listen, ProxyArgs, RecordingArgs, RunArgs, Ui};
use crate::failure::{Failure, exit};
use crate::holding::HoldArgs;
use crate::plan::{Plan, ServerSide};
use crate::policy::GovernArgs;
use crate::recording;
use crate::report::say;

/// What a server gets to end by itself once the client is gone, without open calls and with.
pub const IDLE_GRACE: Duration = Duration::from_secs(2);
const CALL_GRACE: Duration = Duration::from_secs(10);
/// The signals by which a server is ended that did not end by itself.
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
/// Lines of a server's last words that are quoted and kept.
pub const LAST_WORDS_LINES: usize = 20;

/// `mcp-proxy proxy`
pub fn proxy(args: &ProxyArgs, state: Result<StateDir, Failure>) -> Result<ExitCode, Failure> {
    if args.ui == Some(Ui::Tui) {
        return Err(Failure::usage("this version has no terminal interface").hint("leave --ui out, or give --ui none"));
    }
    let plan = Plan::of_proxy(args)?;
    carry_out(plan, &args.recording, Some((&args.hold, &args.govern)), state)
}

/// `mcp-proxy run`
pub fn run(args: &RunArgs, state: Result<StateDir, Failure>) -> Result<ExitCode, Failure> {
    carry_out(Plan::of_run(args)?, &args.recording, Some((&args.hold, &args.govern)), state)
}

/// Stands between the two sides of a plan. Without `instance` nobody can attach, nothing is held and nothing
/// governed.
pub fn carry_out(
    plan: Plan,
    args: &RecordingArgs,
    instance: Option<(&HoldArgs, &GovernArgs)>,
    state: Result<StateDir, Failure>,
) -> Result<ExitCode, Failure> {
    // Everything of a proxy runs on this thread, so nothing needs to be shared between threads.
    let runtime = Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    let listener = match plan.client {
        Listen::Stdio => None,
        // A busy port is found before anything is recorded.
        Listen::At(address) => {
            let _inside = runtime.enter();
            Some(http::bind(address).map_err(|error| cannot_listen(address, &error))?)
        }
    };
    // So are certificates that cannot be read.
    let upstream = match &plan.server {
        ServerSide::Command { .. } => None,
        ServerSide::Url { target, .. } => Some(upstream(target.clone(), args)?),
    };
    let holding = match instance {
        Some((hold, govern)) => Some(hold.check(govern.check(args.name.as_deref())?)?),
        None => None,
    };
    let meeting_point = state.as_ref().ok().cloned();
    let recorder = recording::begin(args, &plan.server, state)?;
    let (pipeline, control) = match holding {
        Some(holding) => holding.begin(recorder, &plan.server, plan.client, meeting_point, args)?,
        None => (Pipeline::new(recorder, Bus::default(), args.message_limit), None),
    };
    let front = (plan.token, plan.rewrite_resource);
    let ended = match (listener, plan.server, upstream) {
        (None, ServerSide::Command { command, .. }, _) => runtime.block_on(relay_stdio(&command, pipeline, args)),
        (Some(listener), ServerSide::Command { command, .. }, _) => {
            runtime.block_on(listen(listener, Server::Command(command), front, pipeline, args))
        }
        (None, server, Some(upstream)) => runtime.block_on(bridge_stdio(upstream, server.transport(), pipeline, args)),
        (Some(listener), server, Some(upstream)) => {
            let server = match server.transport() {
                Transport::Sse => Server::Sse(upstream),
                Transport::StreamableHttp | Transport::Stdio => Server::Http(upstream),
            };
            runtime.block_on(listen(listener, server, front, pipeline, args))
        }
        (_, ServerSide::Url { .. }, None) => unreachable!("an address was made an upstream above"),
    };
    if let Some(control) = control {
        control.end();
    }
    ended
}

/// A client on our standard input and output, a server with an address.
async fn bridge_stdio(
    upstream: Rc<Upstream>,
    transport: Transport,
    pipeline: Pipeline,
    args: &RecordingArgs,
) -> Result<ExitCode, Failure> {
    let shown = upstream.target.to_string();
    let server = match transport {
        Transport::Sse => bridge::Server::Sse(upstream),
        Transport::StreamableHttp | Transport::Stdio => bridge::Server::Http(upstream),
    };
    greet_terminal(args);
    let tell = Box::new(|text: String| say(&format!("mcp-proxy: {text}")));
    let ended = bridge::serve(relay::client_pipes()?, server, pipeline, args.message_limit, tell).await?;
    let code = wind_up_recording(ended.pipeline, ended.store_failed, args)?;
    if ended.interrupted {
        return Ok(ExitCode::from(exit::INTERRUPTED));
    }
    if ended.missed {
        return Err(Failure::new(exit::CANNOT_RUN, format!("the server at {shown} was never reached"))
            .hint("look at the recording with `mcp-proxy inspect`, and try the address with `curl -v`"));
    }
    Ok(code)
}

pub fn upstream(target: Target, args: &RecordingArgs) -> Result<Rc<Upstream>, Failure> {
    let tls = target
        .tls
        .then(|| tls::client_config(args.ca_file.as_deref()))
        .transpose()
        .map_err(|error| Failure::caused_by(exit::CANNOT_RUN, &error))?;
    Ok(Upstream::new(target, tls))
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Failure {
    let failure = Failure::new(exit::CANNOT_RUN, format!("cannot listen on {address}: {error}"));
    if error.kind() == std::io::ErrorKind::AddrInUse {
        return Failure::new(exit::CANNOT_RUN, format!("port {} is taken ({address})", address.port()))
            .hint("end the program that uses it, or listen on another port; port 0 takes any free one");
    }
    failure
}

/// Serves clients that connect to `listener`.
async fn listen(
    listener: tokio::net::TcpListener,
    server: Server,
    (token, own_resource): (Option<String>, bool),
    pipeline: Pipeline,
    args: &RecordingArgs,
) -> Result<ExitCode, Failure> {
    let address = listener.local_addr()?;
    // Whoever started us waits for this line, so it is said even if we are to be quiet.
    let greeting = format!(
        "listening on http://{address}; Streamable HTTP clients connect to {ENDPOINT}, SSE clients to {STREAM}"
    );
    let options =
        http::Options { message_bytes_max: args.message_limit, drain: CALL_GRACE, token, own_resource, greeting };
    let tell = Box::new(|text: String| say(&format!("mcp-proxy: {text}")));
    let ended = http::serve(listener, server, pipeline, options, tell).await?;
    let code = wind_up_recording(ended.pipeline, ended.store_failed, args)?;
    Ok(if ended.interrupted { ExitCode::from(exit::INTERRUPTED) } else { code })
}

/// Ends the recording of a run that has no server process to speak of.
fn wind_up_recording(
    pipeline: Pipeline,
    store_failed: Option<StoreFailed>,
    args: &RecordingArgs,
) -> Result<ExitCode, Failure> {
    let (sessions, finished) = pipeline.finish(&End::default());
    if let Err(error) = finished {
        say(&format!("mcp-proxy: the end of the recording cannot be written ({error}); it will be found interrupted"));
    }
    let written = recording::write_session_files(sessions, args);
    if let Some(failed) = store_failed {
        return Err(not_recorded(&failed));
    }
    written?;
    Ok(ExitCode::SUCCESS)
}

fn greet_terminal(args: &RecordingArgs) {
    if std::io::stdin().is_terminal() && !args.quiet {
        say("mcp-proxy: standard input is a terminal; type JSON-RPC messages, one a line, and end with Ctrl-D");
    }
}

pub fn not_recorded(failed: &StoreFailed) -> Failure {
    Failure::caused_by(exit::CANNOT_RUN, failed).hint("free some space, or give --on-store-failure forward")
}

/// A client on our standard input and output, a server that is a command.
async fn relay_stdio(command: &ServerCommand, pipeline: Pipeline, args: &RecordingArgs) -> Result<ExitCode, Failure> {
    greet_terminal(args);
    let begin = async {
        let client = relay::client_pipes().map_err(ServeError::Stdio)?;
        let options = Options { message_bytes_max: args.message_limit, idle_grace: IDLE_GRACE, call_grace: CALL_GRACE };
        serve(client, command, pipeline, options, &mut |text| say(&format!("mcp-proxy: {text}"))).await
    };
    match begin.await {
        Ok(ended) => wind_up(ended, &command.program.to_string_lossy(), args),
        Err(error) => Err(Failure::caused_by(exit::CANNOT_RUN, &error)),
    }
}

pub fn not_started(program: &str, error: &std::io::Error) -> Failure {
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

/// The conversation is over: ends the recording, writes the session file, says how it ended.
fn wind_up(ended: Ended, program: &str, args: &RecordingArgs) -> Result<ExitCode, Failure> {
    let last_words = ended.last_words.text(LAST_WORDS_LINES);
    let noise = ended.talk.noise();
    let answered_nothing = !ended.talk.server_spoke();
    let end = End { server: Some(ended.status.to_string()), last_words: last_words.clone(), ..End::default() };
    let (sessions, finished) = ended.pipeline.finish(&end);
    if let Err(error) = finished {
        say(&format!("mcp-proxy: the end of the recording cannot be written ({error}); it will be found interrupted"));
    }
    let written = recording::write_session_files(sessions, args);
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
        return Err(not_recorded(&failed));
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
