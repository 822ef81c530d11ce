//! Many servers behind one endpoint: its configuration, its command line, and the wiring.

mod args;
mod dialect;
mod expand;
mod fields;
pub mod flags;
mod ids;
pub mod keys;
pub mod load;
pub mod model;
mod native;
pub mod program;
#[cfg(test)]
mod reference;
pub mod schema;
pub mod show;
mod single;
pub mod world;
pub mod write;

use std::process::ExitCode;

use mcp_gateway::board::Board;
use mcp_gateway::settings;
use mcp_store::StateDir;
use mcp_transport::connect::{ServerTarget, UrlTransport};

pub use args::{ServeArgs, ServePlan, without_command};

/// Settings of a gateway whose servers are reached as a configuration says.
pub type Settings = settings::Settings<ServerTarget>;
pub type ServerSettings = settings::ServerSettings<ServerTarget>;

use crate::cli::{Listen, RecordingArgs};
use crate::failure::Failure;
use crate::plan::{GatewaySide, Plan, ServerSide};
use crate::report::{self, say};
use crate::run;

/// `mcp-proxy serve`
pub fn serve(args: &ServeArgs, state: Result<StateDir, Failure>) -> Result<ExitCode, Failure> {
    let ServePlan { loaded, entrance, listen, govern, message_bytes_max } = args.plan()?;
    report::structured(loaded.config.structured_logging, loaded.config.log_level);
    if !loaded.warnings.is_empty() && !args.recording.quiet {
        say(loaded.warnings.trim_end());
    }
    let config = loaded.config;
    if listen == Listen::Stdio && entrance.asks_for_token() && !args.recording.quiet {
        say("mcp-proxy: warning: clients on stdio have to show a token as `params.proxy.authToken`, which few can");
    }
    if !args.recording.quiet {
        say(&format!("mcp-proxy: {}", listed(&config.settings.servers)));
        for server in &config.settings.servers {
            if let Some((what, help)) = program::fault(server) {
                say(&format!("mcp-proxy: warning: server \"{}\" cannot start: {what}; {help}", server.id));
            }
        }
    }
    let shown = format!("serve --config {}", shell_words::quote(&args.config.to_string_lossy()));
    let side = GatewaySide { settings: config.settings, entrance, board: Board::default(), shown, in_front_of: None };
    let recording = RecordingArgs { message_limit: message_bytes_max, ..args.recording.clone() };
    let plan = Plan::new(listen, ServerSide::Gateway(Box::new(side)));
    run::carry_out(plan, &recording, Some((&args.hold, &govern)), state)
}

/// The servers by their ids, as they are reached; addresses and commands may have secrets in them.
fn listed(servers: &[ServerSettings]) -> String {
    let one = |server: &ServerSettings| {
        let reached = match &server.target {
            ServerTarget::Command { .. } => "stdio",
            ServerTarget::Url { transport: UrlTransport::Sse, .. } => "SSE",
            ServerTarget::Url { .. } => "HTTP",
        };
        let disabled = if server.enabled { "" } else { ", disabled" };
        format!("{} ({reached}{disabled})", server.id)
    };
    let count = if servers.len() == 1 { "1 server".to_owned() } else { format!("{} servers", servers.len()) };
    format!("{count}: {}", servers.iter().map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
