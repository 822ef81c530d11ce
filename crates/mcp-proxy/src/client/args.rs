//! What the three commands have in common on the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use mcp_client::Type;

use crate::cli::{RecordingArgs, UrlTransportArg, pair};

#[derive(Args)]
pub(super) struct ServerArgs {
    /// The server of this name in the configuration, or in the files of clients such as ~/.cursor/mcp.json
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "command"])]
    pub server: Option<String>,
    /// The file that has the server: a gateway's configuration, or that of any client
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "command"])]
    pub config: Option<PathBuf>,
    /// What a client would ask its user for, where its file has `${input:NAME}`
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with_all = ["url", "command"])]
    pub input: Vec<(String, String)>,
    /// The server's address
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// How the server at --url is reached [default: streamable-http, or sse where that is refused]
    #[arg(long, value_enum, ignore_case = true, requires = "url")]
    pub transport: Option<UrlTransportArg>,
    /// Send only what the rules in this file let pass, and keep an audit of what they decide
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The tool that the server's other capabilities are behind [default: the one that looks so]
    #[arg(long, value_name = "NAME", conflicts_with = "no_proxy_tool")]
    pub proxy_tool: Option<String>,
    /// Use only what the server lists itself, whatever is behind a tool of its
    #[arg(long)]
    pub no_proxy_tool: bool,
    /// Seconds for each answer
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub timeout: Duration,
    /// Print the protocol's own result, as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Say on standard error what is done meanwhile
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// The server's program and its arguments, exactly as they are to be
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TypeArg {
    Tool,
    Resource,
    Prompt,
}

impl From<TypeArg> for Type {
    fn from(kind: TypeArg) -> Self {
        match kind {
            TypeArg::Tool => Self::Tool,
            TypeArg::Resource => Self::Resource,
            TypeArg::Prompt => Self::Prompt,
        }
    }
}

/// From a millisecond to a day.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a number of seconds, up to a day".into()),
    }
}
