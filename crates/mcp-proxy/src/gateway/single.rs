//! A gateway in front of one server that the command line names, for what only a gateway can do. Clients see the
//! server's own names.

use mcp_engine::entrance::{Entrance, EntranceSettings};
use mcp_gateway::board::Board;
use mcp_gateway::settings::{Instance, Notifications, Speaks, Start};
use mcp_store::Transport;
use mcp_transport::connect::{ServerTarget, StdioMode, UrlTransport};
use mcp_transport::http::tls;

use super::flags::{ProxyToolArgs, UnwrapArgs};
use super::{ServerSettings, Settings, ids, model, program};
use crate::cli::RecordingArgs;
use crate::failure::{Failure, exit};
use crate::plan::{GatewaySide, ServerSide};
use crate::run::not_started;

/// What a server is called whose command or address gives no id.
const NAMELESS: &str = "server";

impl ServerSide {
    /// The same server, behind a gateway if either flag asks for what only that can do.
    pub fn behind(self, tool: &ProxyToolArgs, unwrap: &UnwrapArgs, args: &RecordingArgs) -> Result<Self, Failure> {
        let (proxy_tool, unwrap_proxy_tool) = (tool.over(None)?, unwrap.tool());
        if proxy_tool.is_none() && unwrap_proxy_tool.is_none() {
            return Ok(self);
        }
        let target = self.target(args)?;
        let server = ServerSettings { unwrap_proxy_tool, ..server(self.id(args), target) };
        let name = args.name.clone().unwrap_or_else(|| model::NAME.to_owned());
        let settings = Settings { proxy_tool, ..settings(name, server) };
        let entrance =
            Entrance::new(&EntranceSettings::default()).map_err(|error| Failure::usage(error.to_string()))?;
        let shown = self.command().unwrap_or_default();
        let side =
            GatewaySide { settings, entrance, board: Board::default(), shown, in_front_of: Some(Box::new(self)) };
        Ok(Self::Gateway(Box::new(side)))
    }

    fn target(&self, args: &RecordingArgs) -> Result<ServerTarget, Failure> {
        match self {
            Self::Command { command, shown } => {
                // A gateway would try again and again, and its clients would see nothing.
                program::check(command).map_err(|error| not_started(&command.program.to_string_lossy(), &error))?;
                Ok(ServerTarget::Command { command: command.clone(), framing: StdioMode::Auto, shown: shown.clone() })
            }
            Self::Url { target, given, transport } => {
                // Certificates that cannot be read are found before anything is recorded.
                if target.tls {
                    tls::client_config(args.ca_file.as_deref())
                        .map_err(|error| Failure::caused_by(exit::CANNOT_RUN, &error))?;
                }
                let transport = match transport {
                    Transport::Sse => UrlTransport::Sse,
                    Transport::StreamableHttp | Transport::Stdio => UrlTransport::StreamableHttp,
                };
                let ca_file = args.ca_file.clone();
                Ok(ServerTarget::Url { target: target.clone(), transport, given: given.clone(), ca_file })
            }
            Self::Gateway(_) => Err(Failure::usage("a gateway cannot stand here; give one server")),
        }
    }

    /// Of what the user calls it, or of its program or host.
    fn id(&self, args: &RecordingArgs) -> String {
        let name = match (&args.name, self) {
            (Some(name), _) => name.clone(),
            (None, Self::Command { command, .. }) => {
                let name = std::path::Path::new(&command.program).file_stem().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }
            (None, Self::Url { target, .. }) => target.host.clone(),
            (None, Self::Gateway(_)) => String::new(),
        };
        let id = ids::tidied(&name);
        if id.is_empty() { NAMELESS.to_owned() } else { id }
    }
}

fn settings(name: String, server: ServerSettings) -> Settings {
    Settings {
        name,
        instructions: None,
        // There is nothing to show without it, so whoever asks waits as long as the server gets.
        initialize_wait: server.startup_timeout,
        list_wait: server.startup_timeout,
        servers: vec![server],
        healthcheck_interval: Some(model::HEALTHCHECK_INTERVAL),
        healthcheck_timeout: model::HEALTHCHECK_TIMEOUT,
        page_size: model::PAGE_SIZE,
        list_pages: model::LIST_PAGES,
        list_items: model::LIST_ITEMS,
        in_flight_per_client: model::IN_FLIGHT_PER_CLIENT,
        notifications: Notifications::default(),
        drain: model::DRAIN,
        proxy_tool: None,
    }
}

fn server(id: String, target: ServerTarget) -> ServerSettings {
    let (startup_timeout, in_flight) = model::startup_and_in_flight(matches!(target, ServerTarget::Command { .. }));
    ServerSettings {
        id: id.into(),
        target,
        enabled: true,
        prefix: false,
        start: Start::default(),
        instance: Instance::default(),
        exclusive: false,
        speaks: Speaks::default(),
        startup_timeout,
        shutdown_grace: model::SHUTDOWN_GRACE,
        response_timeout: model::RESPONSE_TIMEOUT,
        response_cap: model::RESPONSE_CAP,
        cancel_grace: model::CANCEL_GRACE,
        idle_stop: None,
        in_flight,
        queue: model::QUEUE,
        enabled_tools: None,
        disabled_tools: Vec::new(),
        unwrap_proxy_tool: None,
    }
}
