//! The command line: what can be asked, and who answers it.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use mcp_store::StateDir;
use mcp_transport::http::target::{HeaderName, HeaderValue};

use crate::face::FaceCommand;
use crate::failure::{Failure, exit};
use crate::gateway::flags::{ProxyToolArgs, UnwrapArgs};
use crate::holding::HoldArgs;
use crate::policy::GovernArgs;
use crate::report::{self, ColorChoice, Page};
use crate::{
    audit, client, config_cmd, demo, doctor, export, face, gateway, governance, inspect, mock, pages, policy, replay,
    run, sessions,
};

/// Where clients of HTTP connect unless told otherwise.
pub(crate) const LISTEN_PORT: u16 = 8888;

/// Stand between MCP clients and servers: pass everything on, see it and record it
#[derive(Parser)]
#[command(name = "mcp-proxy", version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Pages: `mcp-proxy help configuration`, `help errors`, `help filter`, `help operations`, `help rules`.\n\nExit codes: 0 done, 1 the command's own negative answer, 2 wrong usage, 3 could not run, 130 interrupted. `run -- CMD` gives the server's own code.\n\nWithout a command, `mcp-proxy --target CMD --rules FILE` puts rules in front of a server; see `mcp-governance-proxy --help`. `mcp-proxy --config FILE` is `mcp-proxy serve --listen stdio --config FILE`."
)]
pub(crate) struct Cli {
    /// Where recordings are kept [default: ~/.local/state/mcp-proxy]
    #[arg(long, global = true, value_name = "DIR", env = "MCP_PROXY_STATE_DIR", hide_env_values = true)]
    pub state_dir: Option<PathBuf>,
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help = "Colour the output: auto, always or never",
        hide_possible_values = true
    )]
    pub color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Stand between clients and a server, over any transport on either side
    Proxy(ProxyArgs),
    /// Stand between a client on stdio and a server, for client configs: `run -- CMD` or `run --url URL`
    Run(RunArgs),
    /// Put many servers behind one endpoint: the gateway
    #[command(mut_arg("env", |env| env.hide(true)), mut_arg("header", |header| header.hide(true)))]
    Serve(gateway::ServeArgs),
    /// Check and show a gateway's configuration, or the file of any client
    Config {
        #[command(subcommand)]
        command: config_cmd::ConfigCommand,
    },
    /// List what a server has: its tools, resources and prompts, also those behind a proxy tool
    List(client::ListArgs),
    /// Describe a tool, resource or prompt of a server
    Info(client::InfoArgs),
    /// Call a tool of a server, read a resource or get a prompt
    Call(client::CallArgs),
    /// Send a recorded client's messages to a server again, and compare the answers
    Replay(replay::ReplayArgs),
    /// Serve a recorded session as an MCP server
    Mock(mock::MockArgs),
    /// Print a recorded session
    Inspect(inspect::InspectArgs),
    /// Show what was decided about messages, and prove that the record of it is whole
    Audit(audit::AuditArgs),
    /// Write a recorded session in another format: a report, a page, HAR, a script
    Export(export::ExportArgs),
    /// List, show, search, import, annotate and remove recorded sessions
    Sessions {
        #[command(subcommand)]
        command: sessions::SessionsCommand,
    },
    /// Check, explain and begin rules: what clients may do
    Policy {
        #[command(subcommand)]
        command: policy::PolicyCommand,
    },
    #[command(flatten)]
    Face(FaceCommand),
    /// See it work: a bundled server, a scripted client, no network
    Demo(demo::DemoArgs),
    /// Check that everything mcp-proxy needs is in order
    Doctor,
    /// How messages are picked: the language of --filter
    #[command(hide = true, after_help = mcp_filter::reference::plain(), help_template = "{about}{after-help}")]
    Filter,
    /// The keys of a gateway's configuration
    #[command(hide = true, after_help = pages::CONFIGURATION, help_template = "{after-help}", term_width = 0)]
    Configuration,
    /// The errors that the proxy answers with
    #[command(hide = true, after_help = pages::ERRORS, help_template = "{after-help}", term_width = 0)]
    Errors,
    /// How tools are classed
    #[command(hide = true, after_help = pages::OPERATIONS, help_template = "{after-help}", term_width = 0)]
    Operations,
    /// What clients may do
    #[command(hide = true, after_help = pages::RULES, help_template = "{after-help}", term_width = 0)]
    Rules,
    /// Print a shell's completion script
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Args)]
pub(crate) struct ProxyArgs {
    /// How the server is reached, and clients too unless --listen says otherwise
    #[arg(long, value_enum, ignore_case = true)]
    pub transport: TransportArg,
    /// The server's command line, for stdio; split like a shell would, but no shell runs it
    #[arg(long, value_name = "CMD")]
    pub target_command: Option<String>,
    /// The server's address, for sse and streamable-http
    #[arg(long, value_name = "URL")]
    pub target_url: Option<String>,
    /// Port of the listener on 127.0.0.1, for sse, streamable-http and wherever the proxy draws; 0 takes
    /// any free one [default: 8888]
    #[arg(long, value_name = "PORT")]
    pub listen_port: Option<u16>,
    /// Where clients connect: `stdio`, a port on 127.0.0.1, or an IP address with a port
    #[arg(long, value_name = "stdio|[HOST:]PORT", conflicts_with = "listen_port")]
    pub listen: Option<Listen>,
    /// Serve only clients that show the first line of this file as a bearer token; required where
    /// other machines can connect
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Name this proxy where the server's OAuth metadata names the resource, for clients that compare
    /// it with the address they use
    #[arg(long)]
    pub rewrite_resource: bool,
    /// What to show: `tui` draws on this terminal, `none` shows nothing; without it the proxy draws where
    /// a person started it, and not where a client did
    #[arg(long, value_enum)]
    pub ui: Option<Ui>,
    #[command(flatten)]
    pub proxy_tool: ProxyToolArgs,
    #[command(flatten)]
    pub unwrap: UnwrapArgs,
    #[command(flatten)]
    pub hold: HoldArgs,
    #[command(flatten)]
    pub govern: GovernArgs,
    #[command(flatten)]
    pub recording: RecordingArgs,
}

#[derive(Args)]
#[command(override_usage = "mcp-proxy run [OPTIONS] -- CMD [ARGS]...\n       mcp-proxy run [OPTIONS] --url URL")]
pub(crate) struct RunArgs {
    /// The server's address, in place of a command
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// How the server at --url is reached [default: streamable-http]
    #[arg(long, value_enum, ignore_case = true, requires = "url")]
    pub transport: Option<UrlTransportArg>,
    #[command(flatten)]
    pub proxy_tool: ProxyToolArgs,
    #[command(flatten)]
    pub unwrap: UnwrapArgs,
    #[command(flatten)]
    pub hold: HoldArgs,
    #[command(flatten)]
    pub govern: GovernArgs,
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// The server's program and its arguments, exactly as they are to be
    #[arg(trailing_var_arg = true, required_unless_present = "url", value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What both forms of the proxy take.
#[derive(Args, Clone)]
pub struct RecordingArgs {
    /// Write the session to this file when it ends
    #[arg(long, value_name = "FILE")]
    pub session_file: Option<PathBuf>,
    /// Replace a session file that exists
    #[arg(long)]
    pub force: bool,
    /// Format of the session file
    #[arg(long, value_enum, default_value = "json", value_name = "FORMAT")]
    pub output_format: OutputFormat,
    /// Set a variable in the environment of a server that is a command
    #[arg(long, value_name = "K=V", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// Send this header with every request to a server with an address, in place of the client's
    #[arg(long, value_name = "NAME: VALUE", value_parser = mcp_transport::http::target::parse_header)]
    pub header: Vec<(HeaderName, HeaderValue)>,
    /// Trust the certificates in this PEM file for https://, besides those of the system
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// What to call this server
    #[arg(long)]
    pub name: Option<String>,
    /// Note something about the session
    #[arg(long, value_name = "K=V", value_parser = pair)]
    pub note: Vec<(String, String)>,
    /// Keep no recording
    #[arg(long)]
    pub no_record: bool,
    /// `strict` passes a message on only once it is recorded
    #[arg(long, value_enum, default_value = "normal")]
    pub evidence: EvidenceArg,
    /// When the recording cannot be written [default: forward, with strict evidence stop]
    #[arg(long, value_enum)]
    pub on_store_failure: Option<OnStoreFailureArg>,
    /// The largest message that is passed on
    #[arg(long, value_name = "BYTES", default_value_t = mcp_wire::framing::MESSAGE_BYTES_MAX, value_parser = message_limit)]
    pub message_limit: usize,
    /// Say nothing on standard error unless something is wrong
    #[arg(long, short)]
    pub quiet: bool,
}

/// The server of a command that is a client itself.
#[derive(Args, Clone)]
pub(crate) struct TargetArgs {
    /// The server's command line; split like a shell would, but no shell runs it
    #[arg(long, value_name = "CMD", conflicts_with_all = ["target_url", "command"])]
    pub target_command: Option<String>,
    /// The server's address
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub target_url: Option<String>,
    /// Set a variable in the environment of a server that is a command
    #[arg(long, value_name = "K=V", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// Send this header with every request to a server with an address
    #[arg(long, value_name = "NAME: VALUE", value_parser = mcp_transport::http::target::parse_header)]
    pub header: Vec<(HeaderName, HeaderValue)>,
    /// Trust the certificates in this PEM file for https://, besides those of the system
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// What to call this server
    #[arg(long)]
    pub name: Option<String>,
    /// Keep no recording of what the server is asked and says
    #[arg(long)]
    pub no_record: bool,
    /// The largest message that is passed on
    #[arg(long, value_name = "BYTES", default_value_t = mcp_wire::framing::MESSAGE_BYTES_MAX, value_parser = message_limit)]
    pub message_limit: usize,
    /// The server's program and its arguments, in place of --target-command
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl TargetArgs {
    /// What a proxy in front of this server is told, with `note` about the session.
    pub(crate) fn recording(&self, note: (&str, String)) -> RecordingArgs {
        RecordingArgs {
            session_file: None,
            force: false,
            output_format: OutputFormat::Json,
            env: self.env.clone(),
            header: self.header.clone(),
            ca_file: self.ca_file.clone(),
            name: self.name.clone(),
            note: vec![(note.0.to_owned(), note.1)],
            no_record: self.no_record,
            evidence: EvidenceArg::Normal,
            on_store_failure: None,
            message_limit: self.message_limit,
            quiet: true,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportArg {
    Stdio,
    Sse,
    StreamableHttp,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UrlTransportArg {
    Sse,
    StreamableHttp,
}

/// Where clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    Stdio,
    At(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "stdio" {
            return Ok(Self::Stdio);
        }
        if let Ok(port) = text.parse() {
            return Ok(Self::At(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        }
        let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let address = numeric.as_deref().unwrap_or(text).parse();
        address.map(Self::At).map_err(|_| "expected `stdio`, a port, or an IP address with a port".into())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ui {
    Tui,
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvidenceArg {
    Normal,
    Strict,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnStoreFailureArg {
    Forward,
    Stop,
}

pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".into()),
    }
}

/// From a kilobyte, below which no handshake fits, to what a record can hold.
fn message_limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes @ 1024..=1_073_741_824) => Ok(bytes),
        _ => Err("expected a number of bytes from 1024 to 1073741824".into()),
    }
}

impl Cli {
    fn state_dir(&self) -> Result<StateDir, Failure> {
        state_dir(self.state_dir.as_deref())
    }
}

/// The directory that was given, or the one below the home.
pub(crate) fn state_dir(given: Option<&Path>) -> Result<StateDir, Failure> {
    StateDir::find(given).ok_or_else(|| {
        Failure::new(exit::CANNOT_RUN, "cannot tell where to keep recordings: there is no home directory")
            .hint("set HOME, or give --state-dir DIR")
    })
}

pub(crate) fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if governance::is_meant(&args) {
        return governance::main("mcp-proxy", args.into_iter());
    }
    if let Some(words) = gateway::without_command(&args) {
        return code_of(answer(&Cli::parse_from([OsString::from("mcp-proxy")].into_iter().chain(words))));
    }
    code_of(answer(&Cli::parse()))
}

/// What the program ends with; why something failed is told.
pub(crate) fn code_of(answered: Result<ExitCode, Failure>) -> ExitCode {
    answered.unwrap_or_else(|failure| {
        report::say(&failure.to_string());
        ExitCode::from(failure.code)
    })
}

/// Whoever reads the answer may leave before its end.
fn or_enough(answered: Result<ExitCode, Failure>) -> Result<ExitCode, Failure> {
    answered.or_else(|failure| if failure.is_broken_pipe() { Ok(ExitCode::SUCCESS) } else { Err(failure) })
}

fn answer(cli: &Cli) -> Result<ExitCode, Failure> {
    let outcome = match &cli.command {
        Command::Sessions { command } => return or_enough(sessions::sessions(command, &cli.state_dir()?, cli.color)),
        Command::Policy { command } => return or_enough(policy::policy(command, &|| cli.state_dir(), cli.color)),
        Command::Config { command } => return or_enough(config_cmd::config(command, cli.color)),
        Command::Audit(args) => return or_enough(audit::audit(args, &cli.state_dir()?, cli.color)),
        Command::Proxy(args) => return run::proxy(args, cli.state_dir(), cli.color),
        Command::Run(args) => return run::run(args, cli.state_dir()),
        Command::Serve(args) => return gateway::serve(args, cli.state_dir()),
        Command::List(args) => return or_enough(client::list(args, &|| cli.state_dir(), cli.color)),
        Command::Info(args) => return or_enough(client::info(args, &|| cli.state_dir(), cli.color)),
        Command::Call(args) => return or_enough(client::call(args, &|| cli.state_dir(), cli.color)),
        Command::Replay(args) => return replay::replay(args, cli.state_dir()?, cli.color),
        Command::Mock(args) => return mock::mock(args, cli.state_dir()?),
        Command::Face(command) => return face::face(command, &cli.state_dir()?, cli.color),
        Command::Doctor => return doctor::doctor(&cli.state_dir()?, cli.color),
        Command::Inspect(args) => inspect::inspect(args, &cli.state_dir()?, cli.color),
        Command::Export(args) => export::export(args, &cli.state_dir()?),
        Command::Demo(args) => demo::demo(args, cli.color),
        Command::Filter => print_all(mcp_filter::reference::plain().as_bytes()),
        Command::Configuration => print_all(pages::CONFIGURATION.as_bytes()),
        Command::Errors => print_all(pages::ERRORS.as_bytes()),
        Command::Operations => print_all(pages::OPERATIONS.as_bytes()),
        Command::Rules => print_all(pages::RULES.as_bytes()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "mcp-proxy", &mut script);
            print_all(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            let mut command = Cli::command();
            command.build();
            clap_mangen::Man::new(command.clone()).render(&mut page)?;
            man_pages_below(&command, &mut page)?;
            print_all(&page)
        }
    };
    or_enough(outcome.map(|()| ExitCode::SUCCESS))
}

/// The commands below `command`, each with its options, on the same page.
fn man_pages_below(command: &clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
        let man = clap_mangen::Man::new(command.clone());
        man.render_name_section(page)?;
        man.render_synopsis_section(page)?;
        man.render_options_section(page)?;
        man_pages_below(command, page)?;
    }
    Ok(())
}

fn print_all(bytes: &[u8]) -> Result<(), Failure> {
    let mut page = Page::new(ColorChoice::Never);
    page.raw(bytes)?;
    Ok(page.end()?)
}
