//! A client within this process. It talks to the ordinary proxy over a pair of pipes, as a client in
//! another process would, so what it sends is recorded and judged like everything else: there is no
//! second way to send.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use mcp_engine::{Pipeline, StoreFailed};
use mcp_store::{End, SessionHeader, Transport};
use mcp_transport::child::{LAST_WORDS_LINES, ServerCommand};
use mcp_transport::stdio::client;
use mcp_transport::stdio::pipe::Pipe;
use mcp_transport::stdio::{Options, serve};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::cli::RecordingArgs;
use crate::duplex::Duplex;
use crate::failure::{Failure, exit};
use crate::plan::ServerSide;
use crate::report::say;
use crate::run::{IDLE_GRACE, not_recorded, not_started, upstream};

/// How the conversation with the server ended.
pub(crate) struct Ended {
    pub interrupted: bool,
    /// Why nothing can have come of it, if so.
    pub failure: Option<Failure>,
    /// How a server that is a command ended, and its last words.
    pub status: Option<String>,
    pub last_words: String,
    pub sessions: Vec<(SessionHeader, PathBuf)>,
}

/// The proxy's ends of two pipes, and the client's. Must be called inside a tokio runtime.
pub(crate) fn pipes(message_bytes_max: usize) -> io::Result<((Pipe, Pipe), Duplex)> {
    let (from_client, to_proxy) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_proxy, to_client) = pipe_with(PipeFlags::CLOEXEC)?;
    let proxy = (Pipe::owned(from_client)?, Pipe::owned(to_client)?);
    Ok((proxy, Duplex::new(Pipe::owned(from_proxy)?, Pipe::owned(to_proxy)?, message_bytes_max)))
}

/// The same, with the client's ends as streams that any client library takes.
pub(crate) fn streams() -> io::Result<((Pipe, Pipe), (Receiver, Sender))> {
    let (from_client, to_proxy) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from_proxy, to_client) = pipe_with(PipeFlags::CLOEXEC)?;
    let proxy = (Pipe::owned(from_client)?, Pipe::owned(to_client)?);
    Ok((proxy, (Receiver::from_owned_fd(from_proxy)?, Sender::from_owned_fd(to_proxy)?)))
}

/// Stands between the client at the other end of `pipes` and `server` until either is done. After a
/// signal the client has `signal_patience` to leave by itself. Must be called inside a local runtime.
pub(crate) async fn stand_between(
    pipes: (Pipe, Pipe),
    server: ServerSide,
    pipeline: Pipeline,
    args: &RecordingArgs,
    signal_patience: Duration,
) -> Result<Ended, Failure> {
    match server {
        ServerSide::Command { command, .. } => before_command(pipes, &command, pipeline, args, signal_patience).await,
        ServerSide::Gateway(_) => Err(Failure::usage("a gateway cannot stand here; give one server")),
        ServerSide::Url { target, transport, .. } => {
            let upstream = upstream(target, args)?;
            let shown = upstream.target.to_string();
            let server = match transport {
                Transport::Sse => client::Server::Sse(upstream),
                Transport::StreamableHttp | Transport::Stdio => client::Server::Http(upstream),
            };
            let tell = Box::new(|text: String| say(&format!("mcp-proxy: {text}")));
            let serve = client::serve(pipes, |_| server, pipeline, args.message_limit, signal_patience, tell);
            let (ended, missed) = serve.await?;
            let missed = missed.then(|| {
                Failure::new(exit::CANNOT_RUN, format!("the server at {shown} was never reached"))
                    .hint("try the address with `curl -v`")
            });
            let failure = ended.store_failed.as_ref().map(not_recorded).or(missed);
            Ok(wind_up(ended.pipeline, &End::default(), ended.interrupted, failure))
        }
    }
}

async fn before_command(
    pipes: (Pipe, Pipe),
    command: &ServerCommand,
    pipeline: Pipeline,
    args: &RecordingArgs,
    signal_patience: Duration,
) -> Result<Ended, Failure> {
    // A client of our own takes back what it no longer waits for, so nothing needs longer.
    let options = Options {
        message_bytes_max: args.message_limit,
        idle_grace: IDLE_GRACE,
        call_grace: IDLE_GRACE,
        signal_patience,
        ready: None,
    };
    let mut tell = |text: String| say(&format!("mcp-proxy: {text}"));
    let ended = serve(pipes, command, pipeline, options, &mut tell)
        .await
        .map_err(|error| Failure::caused_by(exit::CANNOT_RUN, &error))?;
    let program = command.program.to_string_lossy();
    let unstarted = ended.not_started.as_ref().map(|error| not_started(&program, error));
    let failure = unstarted.or_else(|| ended.store_failed.as_ref().map(|failed: &StoreFailed| not_recorded(failed)));
    let last_words = ended.last_words.text(LAST_WORDS_LINES);
    let end = End { server: Some(ended.status.to_string()), last_words, ..End::default() };
    Ok(wind_up(ended.pipeline, &end, ended.interrupted, failure))
}

fn wind_up(pipeline: Pipeline, end: &End, interrupted: bool, failure: Option<Failure>) -> Ended {
    let (sessions, finished) = pipeline.finish(end);
    if let Err(error) = finished {
        say(&format!("mcp-proxy: the end of the recording cannot be written ({error}); it will be found interrupted"));
    }
    Ended { interrupted, failure, status: end.server.clone(), last_words: end.last_words.clone(), sessions }
}
