//! What a command line asks for: who the server is, and where its clients come from.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use mcp_engine::entrance::Entrance;
use mcp_gateway::board::Board;
use mcp_store::Transport;
use mcp_transport::child::ServerCommand;
use mcp_transport::http::target::{HeaderMap, Target};

use crate::cli::{LISTEN_PORT, Listen, ProxyArgs, RecordingArgs, RunArgs, TargetArgs, TransportArg, UrlTransportArg};
use crate::failure::{Failure, exit, quoted};
use crate::gateway::Settings;
use crate::gateway::flags::check_names;

pub(crate) struct Plan {
    pub client: Listen,
    pub server: ServerSide,
    /// What clients of a listener must show.
    pub token: Option<String>,
    /// Whether they are told that the proxy is the resource which the server protects.
    pub rewrite_resource: bool,
    /// What came over standard input before it was known to be a client's.
    pub heard: Vec<u8>,
    /// For a terminal where a client should be, in a line.
    pub greeting: Option<String>,
    /// Any port will do if that of `client` is taken.
    pub or_any_port: bool,
    /// Standard error tells that the server is started.
    pub says_ready: bool,
}

pub enum ServerSide {
    Command { command: ServerCommand, shown: String },
    Url { target: Target, given: String, transport: Transport },
    Gateway(Box<GatewaySide>),
}

/// Many servers, and who may use them.
pub struct GatewaySide {
    pub settings: Settings,
    pub entrance: Entrance,
    pub board: Board,
    /// The configuration, for people.
    pub shown: String,
    /// The only server, where the command line gives that instead.
    pub in_front_of: Option<Box<ServerSide>>,
}

impl ServerSide {
    /// The one server that this is, even if it is behind a gateway.
    fn one(&self) -> &Self {
        match self {
            Self::Gateway(gateway) => gateway.in_front_of.as_deref().unwrap_or(self),
            Self::Command { .. } | Self::Url { .. } => self,
        }
    }

    pub fn transport(&self) -> Transport {
        match self.one() {
            // Of a gateway's servers each has its own.
            Self::Command { .. } | Self::Gateway(_) => Transport::Stdio,
            Self::Url { transport, .. } => *transport,
        }
    }

    /// The servers of a gateway; none where there is only one.
    pub fn ids(&self) -> Vec<Arc<str>> {
        match self.one() {
            Self::Gateway(gateway) => gateway.settings.servers.iter().map(|server| server.id.clone()).collect(),
            Self::Command { .. } | Self::Url { .. } => Vec::new(),
        }
    }

    pub fn command(&self) -> Option<String> {
        match self.one() {
            Self::Command { shown, .. } => Some(shown.clone()),
            Self::Gateway(gateway) => Some(gateway.shown.clone()),
            Self::Url { .. } => None,
        }
    }

    pub fn url(&self) -> Option<String> {
        match self.one() {
            Self::Command { .. } | Self::Gateway(_) => None,
            Self::Url { given, .. } => Some(given.clone()),
        }
    }

    /// Where the servers of a gateway are looked at.
    pub fn board(&self) -> Option<Board> {
        match self {
            Self::Command { .. } | Self::Url { .. } => None,
            Self::Gateway(gateway) => Some(gateway.board.clone()),
        }
    }
}

impl Plan {
    /// `mcp-proxy proxy …`
    pub(crate) fn of_proxy(args: &ProxyArgs) -> Result<Self, Failure> {
        let server = match (args.transport, &args.target_command, &args.target_url) {
            (_, Some(_), Some(_)) => {
                return Err(Failure::usage("--target-command and --target-url do not go together")
                    .hint("give the one that --transport names: a command for stdio, an address for the others"));
            }
            (TransportArg::Stdio, Some(command), None) => {
                split_command_side(command, "--target-command", &args.recording)?
            }
            (TransportArg::Stdio, None, Some(_)) => {
                return Err(Failure::usage("--target-url does not go with --transport stdio")
                    .hint("give --target-command CMD, or --transport streamable-http or sse"));
            }
            (TransportArg::Stdio, None, None) => {
                return Err(Failure::usage("--transport stdio needs --target-command CMD"));
            }
            (TransportArg::Sse, None, Some(url)) => url_side(url, Transport::Sse, &args.recording)?,
            (TransportArg::StreamableHttp, None, Some(url)) => {
                url_side(url, Transport::StreamableHttp, &args.recording)?
            }
            (_, Some(_), None) => {
                return Err(Failure::usage("--target-command goes with --transport stdio only")
                    .hint("for an HTTP client in front of a command, give --transport stdio --listen 8888"));
            }
            (_, None, None) => return Err(Failure::usage("this --transport needs --target-url URL")),
        };
        let client = match (args.listen, args.transport) {
            (Some(listen), _) => listen,
            (None, TransportArg::Stdio) => Listen::Stdio,
            (None, _) => Listen::At(local(args.listen_port)),
        };
        let token = token(client, args.token_file.as_deref())?;
        if args.rewrite_resource {
            check_rewrite(client, &server, token.is_some())?;
        }
        let server = server.behind(&args.proxy_tool, &args.unwrap, &args.recording)?;
        if args.rewrite_resource && matches!(server, ServerSide::Gateway(_)) {
            return Err(Failure::usage("--rewrite-resource does not go with a proxy tool")
                .hint("requests do not reach the server as they are then, so that no login does"));
        }
        Ok(Self { token, rewrite_resource: args.rewrite_resource, ..Self::new(client, server) })
    }

    pub(crate) fn new(client: Listen, server: ServerSide) -> Self {
        Self {
            client,
            server,
            token: None,
            rewrite_resource: false,
            heard: Vec::new(),
            greeting: None,
            or_any_port: false,
            says_ready: false,
        }
    }

    /// The same where the terminal is drawn on: clients do not come over it. Those that would have are
    /// listened for, at a port that nobody has to know if nobody named it.
    pub(crate) fn drawn(mut self, listen_port: Option<u16>) -> Self {
        if self.client == Listen::Stdio {
            self.client = Listen::At(local(listen_port));
            self.or_any_port = listen_port.is_none();
        }
        self
    }

    /// A listener in front of a command of our own.
    pub(crate) fn in_front_of(words: &[OsString], client: Listen, token_file: Option<&Path>) -> Result<Self, Failure> {
        let token = token(client, token_file)?;
        let shown = shell_words::join(words.iter().map(|word| word.to_string_lossy()));
        let (program, rest) = words.split_first().expect("the command is ours, and not empty");
        let command = ServerCommand { program: program.clone(), args: rest.to_vec(), ..ServerCommand::default() };
        Ok(Self { token, ..Self::new(client, ServerSide::Command { command, shown }) })
    }

    /// `mcp-proxy run …`
    pub(crate) fn of_run(args: &RunArgs) -> Result<Self, Failure> {
        let words: Vec<OsString> = std::env::args_os().collect();
        check_names(&args.command, &words)?;
        let server = match &args.url {
            Some(url) => {
                let transport = match args.transport {
                    Some(UrlTransportArg::Sse) => Transport::Sse,
                    Some(UrlTransportArg::StreamableHttp) | None => Transport::StreamableHttp,
                };
                url_side(url, transport, &args.recording)?
            }
            None => words_side(&args.command, &args.recording)?,
        };
        let server = server.behind(&args.proxy_tool, &args.unwrap, &args.recording)?;
        Ok(Self::new(Listen::Stdio, server))
    }
}

impl Plan {
    /// `--target …`, which is a command, or an address if it looks like one.
    pub(crate) fn of_target(target: &str, args: &RecordingArgs) -> Result<Self, Failure> {
        let is_address = ["http://", "https://"].iter().any(|scheme| target.starts_with(scheme));
        let server = match is_address {
            true => url_side(target, Transport::StreamableHttp, args)?,
            false => split_command_side(target, "--target", args)?,
        };
        Ok(Self::new(Listen::Stdio, server))
    }
}

fn local(port: Option<u16>) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(LISTEN_PORT)))
}

/// What clients have to show, which is a must where other machines can connect.
fn token(client: Listen, file: Option<&Path>) -> Result<Option<String>, Failure> {
    let token = file.map(read_token).transpose()?;
    if let Listen::At(address) = client
        && !address.ip().is_loopback()
        && token.is_none()
    {
        return Err(Failure::usage(format!("{address} can be reached from other machines, so clients need a token"))
            .hint("give --token-file FILE, or listen on 127.0.0.1"));
    }
    if client == Listen::Stdio && token.is_some() {
        return Err(Failure::usage("--token-file is for a listener, and this proxy listens on stdio"));
    }
    Ok(token)
}

/// Clients log in to a server only where their requests reach it as they are.
fn check_rewrite(client: Listen, server: &ServerSide, has_token: bool) -> Result<(), Failure> {
    if client == Listen::Stdio || !matches!(server, ServerSide::Url { .. }) {
        return Err(Failure::usage("--rewrite-resource is for HTTP clients of a server with an address"));
    }
    if has_token {
        return Err(Failure::usage("--rewrite-resource does not go with --token-file")
            .hint("what a client shows as its token is for the proxy then, and no login reaches the server"));
    }
    Ok(())
}

impl TargetArgs {
    /// The server that is meant, if one is.
    pub(crate) fn server(
        &self,
        transport: Option<UrlTransportArg>,
        args: &RecordingArgs,
    ) -> Result<Option<ServerSide>, Failure> {
        Ok(Some(match (&self.target_command, &self.target_url) {
            (Some(command), _) => split_command_side(command, "--target-command", args)?,
            (None, Some(url)) => {
                let transport = match transport {
                    Some(UrlTransportArg::Sse) => Transport::Sse,
                    Some(UrlTransportArg::StreamableHttp) | None => Transport::StreamableHttp,
                };
                url_side(url, transport, args)?
            }
            (None, None) if self.command.is_empty() => return Ok(None),
            (None, None) => words_side(&self.command, args)?,
        }))
    }
}

pub(crate) fn words_side(words: &[OsString], args: &RecordingArgs) -> Result<ServerSide, Failure> {
    let shown = shell_words::join(words.iter().map(|word| word.to_string_lossy()));
    command_side(words, shown, args)
}

/// A command as one text, split as a shell would.
fn split_command_side(command: &str, flag: &str, args: &RecordingArgs) -> Result<ServerSide, Failure> {
    let words = shell_words::split(command)
        .map_err(|error| Failure::usage(format!("{flag} cannot be split into words: {error}")))?;
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    command_side(&words, command.to_owned(), args)
}

fn command_side(words: &[OsString], shown: String, args: &RecordingArgs) -> Result<ServerSide, Failure> {
    let Some((program, rest)) = words.split_first().filter(|(program, _)| !program.is_empty()) else {
        return Err(Failure::usage("the server's command is empty"));
    };
    if !args.header.is_empty() || args.ca_file.is_some() {
        return Err(Failure::usage("--header and --ca-file are for a server with an address, not for a command"));
    }
    let env = args.env.iter().map(|(key, value)| (key.into(), value.into())).collect();
    let command = ServerCommand { program: program.clone(), args: rest.to_vec(), env, ..ServerCommand::default() };
    Ok(ServerSide::Command { command, shown })
}

pub(crate) fn url_side(url: &str, transport: Transport, args: &RecordingArgs) -> Result<ServerSide, Failure> {
    if !args.env.is_empty() {
        return Err(Failure::usage("--env is for a server that is a command, not for an address"));
    }
    let mut added = HeaderMap::new();
    for (name, value) in &args.header {
        added.append(name.clone(), value.clone());
    }
    let target =
        Target::parse(url, added).map_err(|error| Failure::usage(format!("`{url}` cannot be the target: {error}")))?;
    if args.ca_file.is_some() && !target.tls {
        return Err(Failure::usage("--ca-file is for https:// addresses, and this one is not encrypted"));
    }
    Ok(ServerSide::Url { target, given: url.to_owned(), transport })
}

/// The first line of a file.
pub(crate) fn read_token(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(exit::USAGE, format!("cannot read the token from {}: {error}", quoted(path))))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.is_empty() {
        return Err(Failure::usage(format!("the token in {} is empty", quoted(path)))
            .hint("write one line into it, for example with `openssl rand -hex 32`"));
    }
    Ok(token.to_owned())
}
