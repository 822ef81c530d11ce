//! Wires a proxy together: command line to recorder, pipeline, clients and server.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal};
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::{Bus, Pipeline, StoreFailed};
use mcp_gateway::Gateway;
use mcp_store::{End, StateDir, Transport};
use mcp_transport::child::{ExitStatus, LAST_WORDS_LINES, ServerCommand};
use mcp_transport::connect::connector;
use mcp_transport::http::serve::{self as http, Parting};
use mcp_transport::http::site::{ENDPOINT, STREAM, Server};
use mcp_transport::http::state::HttpState;
use mcp_transport::http::target::Target;
use mcp_transport::http::tls;
use mcp_transport::http::upstream::Upstream;
use mcp_transport::stdio::pipe::Pipe;
use mcp_transport::stdio::session::ServeError;
use mcp_transport::stdio::{Ended, Options, client, relay, serve};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;

use crate::cli::{Listen, ProxyArgs, RecordingArgs, RunArgs};
use crate::control::Control;
use crate::failure::{Failure, exit};
use crate::holding::HoldArgs;
use crate::launch::{self, Launch};
use crate::plan::{GatewaySide, Plan, ServerSide};
use crate::policy::GovernArgs;
use crate::recording;
use crate::report::{ColorChoice, announce, say};
use crate::screen::{Drawn, Screen};

/// Time for a server to end by itself once its input is closed, without open calls and with. Calls on a listener
/// get the latter when it ends.
pub(crate) const IDLE_GRACE: Duration = Duration::from_secs(2);
const CALL_GRACE: Duration = Duration::from_secs(10);
/// The signals by which a server is ended that did not end by itself.
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
/// The greeting of a terminal in a client's place, unless the plan has one of its own.
const TYPE_HERE: &str = "standard input is a terminal; type JSON-RPC messages, one a line, and end with Ctrl-D";

/// `mcp-proxy proxy`
pub(crate) fn proxy(
    args: &ProxyArgs,
    state: Result<StateDir, Failure>,
    color: ColorChoice,
) -> Result<ExitCode, Failure> {
    let mut plan = Plan::of_proxy(args)?;
    let instance = Some((&args.hold, &args.govern));
    match launch::decide(args.ui, args.listen == Some(Listen::Stdio))? {
        Launch::Headless { heard } => {
            plan.heard = heard;
            carry_out(plan, &args.recording, instance, state)
        }
        Launch::Draw => {
            let state = state?;
            let screen = Screen::new(color, &state);
            carry_out_drawn(plan.drawn(args.listen_port), &args.recording, instance, Ok(state), Some(screen))
        }
    }
}

/// `mcp-proxy run`
pub(crate) fn run(args: &RunArgs, state: Result<StateDir, Failure>) -> Result<ExitCode, Failure> {
    let words: Vec<OsString> = std::env::args_os().collect();
    // Options may have secrets, which do not belong into a log.
    let is_seen = std::io::stderr().is_terminal();
    let greeting = is_seen.then(|| launch::by_hand::advice(args, &words));
    let plan = Plan { greeting, ..Plan::of_run(args)? };
    carry_out(plan, &args.recording, Some((&args.hold, &args.govern)), state)
}

/// Stands between the two sides of a plan. Without `instance` nobody can attach, nothing is held and nothing
/// governed.
pub(crate) fn carry_out(
    plan: Plan,
    args: &RecordingArgs,
    instance: Option<(&HoldArgs, &GovernArgs)>,
    state: Result<StateDir, Failure>,
) -> Result<ExitCode, Failure> {
    carry_out_drawn(plan, args, instance, state, None)
}

/// The same, shown on `screen` meanwhile.
fn carry_out_drawn(
    mut plan: Plan,
    args: &RecordingArgs,
    instance: Option<(&HoldArgs, &GovernArgs)>,
    state: Result<StateDir, Failure>,
    screen: Option<Screen>,
) -> Result<ExitCode, Failure> {
    // Everything of a proxy runs on this thread, so nothing needs to be shared between threads.
    let runtime = Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    let listener = match plan.client {
        Listen::Stdio => None,
        // A busy port is found before anything is recorded.
        Listen::At(address) => {
            let _inside = runtime.enter();
            let listener = bind(address, plan.or_any_port)?;
            plan.client = Listen::At(listener.local_addr()?);
            Some(listener)
        }
    };
    // So are certificates that cannot be read.
    let upstream = match &plan.server {
        ServerSide::Command { .. } | ServerSide::Gateway(_) => None,
        ServerSide::Url { target, .. } => Some(upstream(target.clone(), args)?),
    };
    let holding = match instance {
        Some((hold, govern)) => {
            let servers = plan.server.ids();
            let governing = govern.check_for(args.name.as_deref(), &servers)?;
            Some(hold.check(governing)?.drawn(screen.is_some()))
        }
        None => None,
    };
    let meeting_point = state.as_ref().ok().cloned();
    let recorder = recording::begin(args, &plan.server, state)?;
    let (pipeline, mut control) = match holding {
        Some(holding) => holding.begin(recorder, &plan.server, plan.client, meeting_point, args)?,
        None => (Pipeline::new(recorder, Bus::default(), args.message_limit), None),
    };
    let (drawn, parting) = draw(screen, control.as_mut(), plan.client)?;
    let front = Front {
        token: plan.token,
        rewrite_resource: plan.rewrite_resource,
        is_drawn: drawn.is_some(),
        parting,
        door: control.as_mut().and_then(|control| control.door.take()),
        drain: match &plan.server {
            ServerSide::Gateway(gateway) => gateway.settings.drain,
            ServerSide::Command { .. } | ServerSide::Url { .. } => CALL_GRACE,
        },
    };
    if listener.is_none() && plan.heard.is_empty() && !args.quiet && std::io::stdin().is_terminal() {
        say(&format!("mcp-proxy: {}", plan.greeting.as_deref().unwrap_or(TYPE_HERE)));
    }
    mcp_transport::let_go_of_code();
    let ended = match (listener, plan.server, upstream) {
        (None, ServerSide::Command { command, .. }, _) => {
            let ready = plan.says_ready.then_some(say_ready as fn());
            runtime.block_on(relay_stdio(&command, plan.heard, pipeline, args, ready))
        }
        (Some(listener), ServerSide::Command { command, .. }, _) => {
            runtime.block_on(listen(listener, |_| Server::Command(command), front, pipeline, args))
        }
        (None, ServerSide::Gateway(gateway), _) => {
            runtime.block_on(gateway_stdio(*gateway, plan.heard, pipeline, args))
        }
        (Some(listener), ServerSide::Gateway(gateway), _) => {
            let serve = |state: &Rc<_>| Server::Many(start(*gateway, state));
            runtime.block_on(listen(listener, serve, front, pipeline, args))
        }
        (None, server, Some(upstream)) => {
            // Nothing is started: it runs elsewhere.
            if plan.says_ready {
                say_ready();
            }
            runtime.block_on(bridge_stdio(upstream, server.transport(), plan.heard, pipeline, args))
        }
        (Some(listener), server, Some(upstream)) => {
            let server = match server.transport() {
                Transport::Sse => Server::Sse(upstream),
                Transport::StreamableHttp | Transport::Stdio => Server::Http(upstream),
            };
            runtime.block_on(listen(listener, |_| server, front, pipeline, args))
        }
        (_, ServerSide::Url { .. }, None) => unreachable!("an address was made an upstream above"),
    };
    if let Some(control) = control {
        control.end();
    }
    // The end of the instance is what the face leaves at.
    if let Some(drawn) = drawn {
        drawn.end();
    }
    ended
}

/// What a listener is told besides who the server is.
struct Front {
    token: Option<String>,
    rewrite_resource: bool,
    is_drawn: bool,
    parting: Option<oneshot::Receiver<Parting>>,
    door: Option<oneshot::Receiver<UnixListener>>,
    /// What calls get to finish once we are asked to end.
    drain: Duration,
}

/// Begins to draw, if that is wanted and faces can attach.
fn draw(
    screen: Option<Screen>,
    control: Option<&mut Control>,
    client: Listen,
) -> Result<(Option<Drawn>, Option<oneshot::Receiver<Parting>>), Failure> {
    let (Some(screen), Some(control), Listen::At(address)) = (screen, control, client) else { return Ok((None, None)) };
    let Some(socket) = control.socket.take() else { return Ok((None, None)) };
    let (drawn, parting) = screen.start(socket, &control.id.to_string()[..8], address)?;
    Ok((Some(drawn), Some(parting)))
}

fn bind(address: SocketAddr, or_any_port: bool) -> Result<TcpListener, Failure> {
    match http::bind(address) {
        Err(error) if or_any_port && error.kind() == ErrorKind::AddrInUse => Ok(http::bind((address.ip(), 0).into())?),
        bound => bound.map_err(|error| cannot_listen(address, &error)),
    }
}

/// A client on our standard input and output, a server with an address.
async fn bridge_stdio(
    upstream: Rc<Upstream>,
    transport: Transport,
    heard: Vec<u8>,
    pipeline: Pipeline,
    args: &RecordingArgs,
) -> Result<ExitCode, Failure> {
    let shown = upstream.target.to_string();
    let server = match transport {
        Transport::Sse => client::Server::Sse(upstream),
        Transport::StreamableHttp | Transport::Stdio => client::Server::Http(upstream),
    };
    let (ended, missed) = serve_stdio(heard, |_| server, pipeline, args).await?;
    let code = wind_up_recording(ended.pipeline, ended.store_failed, args)?;
    if ended.interrupted {
        return Ok(ExitCode::from(exit::INTERRUPTED));
    }
    if missed {
        return Err(Failure::new(exit::CANNOT_RUN, format!("the server at {shown} was never reached"))
            .hint("look at the recording with `mcp-proxy inspect`, and try the address with `curl -v`"));
    }
    Ok(code)
}

pub(crate) fn upstream(target: Target, args: &RecordingArgs) -> Result<Rc<Upstream>, Failure> {
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

/// A client on our standard input and output, and many servers.
async fn gateway_stdio(
    gateway: GatewaySide,
    heard: Vec<u8>,
    pipeline: Pipeline,
    args: &RecordingArgs,
) -> Result<ExitCode, Failure> {
    let drain = gateway.settings.drain;
    let server = |state: &Rc<_>| client::Server::Many { backend: start(gateway, state), drain };
    let (ended, _) = serve_stdio(heard, server, pipeline, args).await?;
    let code = wind_up_recording(ended.pipeline, ended.store_failed, args)?;
    Ok(if ended.interrupted { ExitCode::from(exit::INTERRUPTED) } else { code })
}

/// The gateway of a configuration.
fn start(gateway: GatewaySide, state: &Rc<HttpState>) -> Rc<Gateway> {
    let GatewaySide { settings, entrance, board, .. } = gateway;
    let settings = settings.connected(|server| connector(state, &server.target, &server.id, server.shutdown_grace));
    Gateway::new(&state.runtime, settings, Rc::new(entrance), board)
}

/// Serves the client on our standard input and output. True beside the end if its server was never reached.
async fn serve_stdio(
    heard: Vec<u8>,
    server: impl FnOnce(&Rc<HttpState>) -> client::Server,
    pipeline: Pipeline,
    args: &RecordingArgs,
) -> std::io::Result<(mcp_link::Ended, bool)> {
    let tell = Box::new(|text: String| say(&format!("mcp-proxy: {text}")));
    client::serve(client_pipes(heard)?, server, pipeline, args.message_limit, Duration::ZERO, tell).await
}

/// Serves clients that connect to `listener`.
async fn listen(
    listener: TcpListener,
    server: impl FnOnce(&Rc<HttpState>) -> Server,
    front: Front,
    pipeline: Pipeline,
    args: &RecordingArgs,
) -> Result<ExitCode, Failure> {
    let address = listener.local_addr()?;
    // Whoever started us waits for this line, so it is said even if we are to be quiet.
    let greeting = format!(
        "listening on http://{address}; Streamable HTTP clients connect to {ENDPOINT}, SSE clients to {STREAM}"
    );
    let waited_for = greeting.clone();
    let options = http::Options {
        message_bytes_max: args.message_limit,
        drain: front.drain,
        token: front.token,
        own_resource: front.rewrite_resource,
        // Who draws shows it.
        greeting: (!front.is_drawn).then_some(greeting),
        parting: front.parting,
        door: front.door,
    };
    let tell = Box::new(move |text: String| {
        let say = if text == waited_for { announce } else { say };
        say(&format!("mcp-proxy: {text}"));
    });
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

/// The client that gave us its standard input and output, which may have spoken already.
fn client_pipes(heard: Vec<u8>) -> std::io::Result<(Pipe, Pipe)> {
    let (stdin, stdout) = relay::client_pipes()?;
    Ok((stdin.after(heard), stdout))
}

pub(crate) fn not_recorded(failed: &StoreFailed) -> Failure {
    Failure::caused_by(exit::CANNOT_RUN, failed).hint("free some space, or give --on-store-failure forward")
}

/// Programs that start the short form wait for this line.
fn say_ready() {
    say("Proxy ready");
}

/// A client on our standard input and output, a server that is a command.
async fn relay_stdio(
    command: &ServerCommand,
    heard: Vec<u8>,
    pipeline: Pipeline,
    args: &RecordingArgs,
    ready: Option<fn()>,
) -> Result<ExitCode, Failure> {
    let begin = async {
        let client = client_pipes(heard).map_err(ServeError::Stdio)?;
        let options = Options {
            message_bytes_max: args.message_limit,
            idle_grace: IDLE_GRACE,
            call_grace: CALL_GRACE,
            signal_patience: Duration::ZERO,
            ready,
        };
        serve(client, command, pipeline, options, &mut |text| say(&format!("mcp-proxy: {text}"))).await
    };
    match begin.await {
        Ok(ended) => wind_up(ended, &command.program.to_string_lossy(), args),
        Err(error) => Err(Failure::caused_by(exit::CANNOT_RUN, &error)),
    }
}

pub(crate) fn not_started(program: &str, error: &std::io::Error) -> Failure {
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
    let noise = ended.conversation.noise();
    let answered_nothing = !ended.conversation.server_spoke();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_named_unless_any_will_do() {
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let _inside = runtime.enter();
        let taken = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = taken.local_addr().unwrap();
        let refused = bind(address, false).unwrap_err();
        assert_eq!(
            (refused.code, refused.what()),
            (exit::CANNOT_RUN, &*format!("port {} is taken ({address})", address.port()))
        );
        assert_ne!(bind(address, true).unwrap().local_addr().unwrap().port(), address.port());
    }
}
