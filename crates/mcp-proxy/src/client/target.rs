//! The server that is meant, and the client at the other end of the proxy in front of it.

use std::sync::Arc;
use std::time::Duration;

use mcp_client::{ClientError, Mode, Options, ProxyClient, Speaks};
use mcp_engine::{Bus, Pipeline};
use mcp_store::{StateDir, Transport};
use mcp_transport::connect::{ServerTarget, UrlTransport};
use mcp_transport::signals::Signals;
use mcp_wire::reply;
use tokio::runtime::{Builder, LocalOptions};

use super::args::ServerArgs;
use super::known;
use super::questions::Declines;
use super::told;
use crate::cli::{Listen, RecordingArgs, UrlTransportArg};
use crate::config::expand_home;
use crate::failure::{Failure, exit, quoted};
use crate::gateway::world::World;
use crate::gateway::{ServerSettings, load};
use crate::holding::HoldArgs;
use crate::inner::{self, Ended};
use crate::plan::{self, ServerSide};
use crate::policy::GovernArgs;
use crate::recording;
use crate::report::say;

/// Time to cancel open requests once the command is told to end.
const PARTING: Duration = Duration::from_secs(3);

/// Where recordings are kept, if there is such a place; asked again for each way that is tried.
pub(super) type StateOf<'a> = &'a dyn Fn() -> Result<StateDir, Failure>;

/// One way to come to the server.
#[derive(Clone, Copy)]
struct Way {
    speaks: Speaks,
    /// The older transport, where the newer one was refused.
    is_sse: bool,
}

/// What one way led to.
enum Came<T> {
    Done(Result<T, Failure>),
    /// We were asked to end; true if by a person.
    Stopped(bool),
    NotOpened(ClientError),
}

/// Does `work` with a client of the server, in whatever way the server can be spoken with.
pub(super) fn with_client<T>(
    args: &ServerArgs,
    state: StateOf<'_>,
    work: impl AsyncFn(&ProxyClient) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let done = in_any_way(args, state, work);
    if let (Err(failure), true) = (&done, args.json) {
        told::json(failure)?;
    }
    done
}

fn in_any_way<T>(
    args: &ServerArgs,
    state: StateOf<'_>,
    work: impl AsyncFn(&ProxyClient) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut way = Way { speaks: Speaks::Either, is_sse: false };
    let mut turned_away = None;
    loop {
        let server = Target::of(args)?;
        let (may_be_sse, is_command) = (server.may_be_sse, matches!(server.side, ServerSide::Command { .. }));
        let (ended, came) = once(args, server, way, state(), &work)?;
        let error = match came {
            Came::Done(done) => return finish(ended, done),
            Came::Stopped(true) => return Err(interrupted()),
            Came::Stopped(false) => return Err(Failure::new(exit::CANNOT_RUN, "it was ended from outside")),
            Came::NotOpened(error) => error,
        };
        let refused = status_of(&error).filter(|status| matches!(status, 400 | 404 | 405 | 406 | 410 | 501));
        let went_away = error.is_hang_up() || error.rpc().is_some_and(|error| reply::is_own_failure(error.code));
        let is_hopeless = ended.interrupted || ended.failure.is_some();
        if may_be_sse && refused.is_some() && !way.is_sse {
            turned_away = refused;
            way.is_sse = true;
        } else if is_command && went_away && way.speaks == Speaks::Either && !is_hopeless {
            // It may have ended because it was asked in a way that it does not know.
            way.speaks = Speaks::Legacy;
        } else if let (Some(status), false) = (refused.or(turned_away.filter(|_| is_hopeless)), ended.interrupted) {
            return Err(told::turned_away(status));
        } else {
            // It may have ended before it was asked anything, so that there was nothing to answer for it.
            let status = ended.status.as_deref().filter(|_| error.is_hang_up());
            let failure = status.map_or_else(|| told::failure(&error), told::ended);
            return finish(ended, Err(failure));
        }
    }
}

fn status_of(error: &ClientError) -> Option<u16> {
    error.rpc().and_then(|error| reply::status_said(error.code, &error.message))
}

/// What the end of the conversation makes of what came of it.
fn finish<T>(ended: Ended, done: Result<T, Failure>) -> Result<T, Failure> {
    match done {
        Ok(done) => Ok(done),
        Err(_) if ended.interrupted => Err(interrupted()),
        Err(failure) if failure.code == exit::CANNOT_RUN => {
            Err(ended.failure.unwrap_or_else(|| failure.evidence("the server's last words", &ended.last_words)))
        }
        Err(failure) => Err(failure),
    }
}

fn interrupted() -> Failure {
    Failure::new(exit::INTERRUPTED, "interrupted")
}

fn once<T>(
    args: &ServerArgs,
    server: Target,
    way: Way,
    state: Result<StateDir, Failure>,
    work: &impl AsyncFn(&ProxyClient) -> Result<T, Failure>,
) -> Result<(Ended, Came<T>), Failure> {
    let recording = &server.recording(args, way);
    let mut side = server.side;
    if let (ServerSide::Url { transport, .. }, true) = (&mut side, way.is_sse) {
        *transport = Transport::Sse;
    }
    let governing =
        GovernArgs { rules: args.rules.clone(), ..GovernArgs::default() }.check(recording.name.as_deref())?;
    let audit = state.as_ref().ok().cloned();
    let recorder = recording::begin(recording, &side, state)?;
    let (pipeline, control) = match governing {
        Some(governing) => {
            let holding = HoldArgs::default().check(Some(governing))?;
            holding.begin(recorder, &side, Listen::Stdio, audit, recording)?
        }
        None => (Pipeline::new(recorder, Bus::default(), recording.message_limit), None),
    };
    let runtime = Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    let (mut ended, came) = runtime.block_on(async {
        let (pipes, (from_proxy, to_proxy)) = inner::streams()?;
        let proxy = inner::stand_between(pipes, side, pipeline, recording, PARTING);
        let mut signals = Signals::listen()?;
        let client = of(args, way, recording, from_proxy, to_proxy);
        let work = async {
            let asking = async {
                match client.client().open().await {
                    Ok(()) => Came::Done(work(&client).await),
                    Err(error) => Came::NotOpened(error),
                }
            };
            // What is asked and no longer waited for is taken back.
            let came = tokio::select! {
                came = asking => came,
                is_interrupt = signals.next() => Came::Stopped(is_interrupt),
            };
            client.close().await;
            came
        };
        let (ended, came) = tokio::join!(proxy, work);
        Ok::<_, Failure>((ended?, came))
    })?;
    if let Some(control) = control {
        control.end();
    }
    if args.verbose
        && let Some((header, _)) = ended.sessions.first()
    {
        say(&format!("mcp-proxy: recorded as {}", &header.id.to_string()[..8]));
    }
    recording::write_session_files(std::mem::take(&mut ended.sessions), recording)?;
    Ok((ended, came))
}

fn of(
    args: &ServerArgs,
    way: Way,
    recording: &RecordingArgs,
    reader: tokio::net::unix::pipe::Receiver,
    writer: tokio::net::unix::pipe::Sender,
) -> ProxyClient {
    let options = Options {
        name: "mcp-proxy".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        speaks: way.speaks,
        timeout: args.timeout,
        message_bytes_max: recording.message_limit,
        questions: Arc::new(Declines),
    };
    let client = ProxyClient::over(reader, writer, options);
    match (&args.proxy_tool, args.no_proxy_tool) {
        (Some(name), _) => client.tool_name(name),
        (None, true) => client.mode(Mode::Never),
        (None, false) => client,
    }
}

struct Target {
    side: ServerSide,
    may_be_sse: bool,
    /// What the configuration calls it.
    name: Option<String>,
}

impl Target {
    fn of(args: &ServerArgs) -> Result<Self, Failure> {
        let recording = &args.recording;
        if let Some(url) = &args.url {
            let transport = match args.transport {
                Some(UrlTransportArg::Sse) => Transport::Sse,
                Some(UrlTransportArg::StreamableHttp) | None => Transport::StreamableHttp,
            };
            let side = plan::url_side(url, transport, recording)?;
            return Ok(Self { side, may_be_sse: args.transport.is_none(), name: None });
        }
        if !args.command.is_empty() {
            let side = plan::words_side(&args.command, recording)?;
            return Ok(Self { side, may_be_sse: false, name: None });
        }
        Self::of_config(args)
    }

    fn of_config(args: &ServerArgs) -> Result<Self, Failure> {
        if !args.recording.env.is_empty() || !args.recording.header.is_empty() {
            return Err(Failure::usage("--env and --header are for a server that is given on the command line")
                .hint("servers of a configuration have `env` and `headers` there"));
        }
        let world = World::own(&args.input);
        let server = match (&args.config, &args.server) {
            (Some(file), name) => {
                let loaded = load::load(&expand_home(file), &world)?;
                choose(&loaded.config.settings.servers, name.as_deref(), &quoted(file))?.clone()
            }
            (None, Some(name)) => {
                let (server, file) = known::find(name, &world)?;
                if !args.recording.quiet {
                    say(&format!("mcp-proxy: `{name}` as {} has it", quoted(&file)));
                }
                server
            }
            (None, None) => {
                return Err(Failure::usage("there is no server to ask")
                    .hint("give --server NAME, --config FILE --server NAME, --url URL, or -- CMD"));
            }
        };
        let name = Some(server.id.to_string());
        let (side, may_be_sse) = match server.target {
            ServerTarget::Command { command, shown, .. } => (ServerSide::Command { command, shown }, false),
            ServerTarget::Url { target, transport, given, .. } => {
                let spoken = match transport {
                    UrlTransport::Sse => Transport::Sse,
                    UrlTransport::Auto | UrlTransport::StreamableHttp => Transport::StreamableHttp,
                };
                (ServerSide::Url { target, given, transport: spoken }, transport == UrlTransport::Auto)
            }
        };
        Ok(Self { side, may_be_sse, name })
    }

    /// What the proxy in front of it is told. Of that it says nothing: people look at the answer.
    fn recording(&self, args: &ServerArgs, way: Way) -> RecordingArgs {
        let name = args.recording.name.clone().or_else(|| self.name.clone());
        // A second way replaces the session file of the first.
        let force = args.recording.force || way.is_sse || way.speaks != Speaks::Either;
        RecordingArgs { name, force, quiet: true, ..args.recording.clone() }
    }
}

fn choose<'a>(servers: &'a [ServerSettings], name: Option<&str>, file: &str) -> Result<&'a ServerSettings, Failure> {
    let known = || servers.iter().map(|server| format!("`{}`", server.id)).collect::<Vec<_>>().join(", ");
    let Some(name) = name else {
        return match servers {
            [only] => Ok(only),
            _ => Err(Failure::usage(format!("{file} has several servers"))
                .hint(format!("give --server, one of {}", known()))),
        };
    };
    servers.iter().find(|server| &*server.id == name).ok_or_else(|| {
        let near = mcp_filter::nearest(name, servers.iter().map(|server| &*server.id));
        let failure = Failure::usage(format!("{file} has no server `{name}`"));
        failure.hint(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", known()),
        })
    })
}
