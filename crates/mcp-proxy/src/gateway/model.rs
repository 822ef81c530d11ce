//! What a configuration says once it is read: every value in its place, every default filled in. It can be
//! shown again (`show.rs`), and is made into what the parts of a gateway take.

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use mcp_engine::entrance::{EntranceSettings, NamedToken, ServerLimit, ToolLimit};
use mcp_gateway::settings::{Instance, Notifications, ProxyToolSettings, Speaks, Start, UnwrapTool};
use mcp_transport::child::ServerCommand;
use mcp_transport::connect::{ServerTarget, StdioMode, UrlTransport};
use mcp_transport::http::target::{HeaderMap, Target};

use super::expand::Text;
use super::world::World;
use super::{ServerSettings, Settings};
use crate::cli::Listen;
use crate::config::Located;
use crate::report::Level;

/// What a gateway calls itself unless it is told.
pub const NAME: &str = "mcp-proxy";
/// Time for a server to start unless the configuration says otherwise. `npx` and `uvx` download a server first, so
/// a command gets twice the time of an address.
pub const STARTUP_OF_COMMAND: Duration = Duration::from_secs(30);
pub const STARTUP_OF_URL: Duration = Duration::from_secs(15);
/// Time for a server to end by itself unless the configuration says otherwise.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Wait for an answer, or for the next progress of it, unless the configuration says otherwise: clients commonly
/// wait as long.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Wait for an answer, whatever progress the call reports, unless the configuration says otherwise.
pub const RESPONSE_CAP: Duration = Duration::from_secs(600);
/// Time for a server to settle a cancelled or timed-out call, before the calls of other clients get a fresh
/// connection, unless the configuration says otherwise.
pub const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// Calls in flight to one server unless the configuration says otherwise. A server behind an address takes more
/// than one process.
pub const IN_FLIGHT_OF_COMMAND: usize = 64;
pub const IN_FLIGHT_OF_URL: usize = 256;
/// Calls that wait for one server unless the configuration says otherwise; more are refused.
pub const QUEUE: usize = 256;
/// Time that a client's `initialize` waits for servers that still start, unless the configuration says otherwise.
pub const INITIALIZE_WAIT: Duration = Duration::from_secs(2);
/// Time that a list waits for servers that still start, unless the configuration says otherwise.
pub const LIST_WAIT: Duration = Duration::from_secs(5);
/// Interval between two checks whether a server answers, unless the configuration says otherwise.
pub const HEALTHCHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Wait for the answer to such a check unless the configuration says otherwise.
pub const HEALTHCHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Items of one page of a merged list unless the configuration says otherwise.
pub const PAGE_SIZE: usize = 1000;
/// Pages, and items, of one server's list unless the configuration says otherwise: a server must not fill the
/// memory.
pub const LIST_PAGES: usize = 50;
pub const LIST_ITEMS: usize = 10_000;
/// Calls in flight of one client unless the configuration says otherwise.
pub const IN_FLIGHT_PER_CLIENT: usize = 256;
/// Time for open calls when the gateway ends, unless the configuration says otherwise.
pub const DRAIN: Duration = Duration::from_secs(10);

/// What a server gets to introduce itself, and how many calls at a time, unless it is said.
pub fn startup_and_in_flight(is_command: bool) -> (Duration, usize) {
    match is_command {
        true => (STARTUP_OF_COMMAND, IN_FLIGHT_OF_COMMAND),
        false => (STARTUP_OF_URL, IN_FLIGHT_OF_URL),
    }
}

/// A gateway, as its file has it.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub name: Text,
    pub instructions: Option<Text>,
    pub servers: Vec<Server>,
    pub listen: Option<Listen>,
    pub auth_token: Option<Text>,
    pub tokens: Vec<TokenOf>,
    pub rate_limit_per_minute: Option<NonZeroU32>,
    pub in_flight_per_client: usize,
    pub message_bytes_max: usize,
    pub response_timeout: Duration,
    pub cancel_grace: Duration,
    pub initialize_wait: Duration,
    pub list_wait: Duration,
    pub page_size: usize,
    pub list_pages: usize,
    pub list_items: usize,
    pub notifications: Notifications,
    pub healthcheck_interval: Option<Duration>,
    pub healthcheck_timeout: Duration,
    pub drain: Duration,
    pub proxy_tool: Option<ProxyToolSettings>,
    pub rules: Option<RulesAt>,
    pub log_level: Level,
    pub structured_logging: bool,
}

/// Where the rules are.
#[derive(Clone, Debug)]
pub enum RulesAt {
    /// In the configuration itself, under `policy`.
    Here(Located),
    File {
        written: String,
        path: PathBuf,
    },
}

#[derive(Clone, Debug)]
pub struct TokenOf {
    pub name: String,
    pub token: Text,
    pub servers: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
    pub rate_limit_per_minute: Option<NonZeroU32>,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub id: String,
    pub at: At,
    pub enabled: bool,
    pub prefix: bool,
    pub start: Start,
    pub instance: Instance,
    pub exclusive: bool,
    pub speaks: Speaks,
    pub startup_timeout: Duration,
    pub shutdown_grace: Duration,
    pub response_timeout: Duration,
    pub response_cap: Duration,
    pub cancel_grace: Duration,
    pub idle_stop: Option<Duration>,
    pub in_flight: usize,
    pub queue: usize,
    pub rate_limit_per_minute: Option<NonZeroU32>,
    pub enabled_tools: Option<Vec<String>>,
    pub disabled_tools: Vec<String>,
    /// Calls a minute, by the tool's own name.
    pub tool_limits: Vec<(String, NonZeroU32)>,
    pub unwrap_proxy_tool: Option<UnwrapTool>,
}

/// How it is reached.
#[derive(Clone, Debug)]
pub enum At {
    Command {
        /// The program and its arguments.
        words: Vec<Text>,
        /// Where the file names the program.
        place: Range<usize>,
        env: Vec<(String, Text)>,
        pass_env: Vec<String>,
        cwd: Option<(Text, PathBuf)>,
        stdio_mode: StdioMode,
    },
    Url {
        url: Text,
        target: Target,
        transport: UrlTransport,
        headers: Vec<(String, Text)>,
    },
}

/// Everything that a gateway is told, each part for whoever takes it.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    pub settings: Settings,
    pub entrance: EntranceSettings,
    /// Where clients connect, if the file says it.
    pub listen: Option<Listen>,
    /// The file with the rules, which may be the configuration itself.
    pub rules: Option<PathBuf>,
    pub message_bytes_max: usize,
    pub log_level: Level,
    pub structured_logging: bool,
}

impl Gateway {
    /// `file` is the configuration itself.
    pub fn config(&self, world: &World, file: &std::path::Path) -> GatewayConfig {
        GatewayConfig {
            settings: self.settings(world),
            entrance: self.entrance(),
            listen: self.listen,
            rules: self.rules.as_ref().map(|rules| match rules {
                RulesAt::Here(_) => world.cwd.join(file),
                RulesAt::File { path, .. } => path.clone(),
            }),
            message_bytes_max: self.message_bytes_max,
            log_level: self.log_level,
            structured_logging: self.structured_logging,
        }
    }

    fn settings(&self, world: &World) -> Settings {
        Settings {
            name: self.name.value.clone(),
            instructions: self.instructions.as_ref().map(|text| text.value.clone()),
            servers: self.servers.iter().map(|server| server.settings(world)).collect(),
            initialize_wait: self.initialize_wait,
            list_wait: self.list_wait,
            healthcheck_interval: self.healthcheck_interval,
            healthcheck_timeout: self.healthcheck_timeout,
            page_size: self.page_size,
            list_pages: self.list_pages,
            list_items: self.list_items,
            in_flight_per_client: self.in_flight_per_client,
            notifications: self.notifications.clone(),
            drain: self.drain,
            proxy_tool: self.proxy_tool.clone(),
        }
    }

    fn entrance(&self) -> EntranceSettings {
        let token = |token: &TokenOf| NamedToken {
            name: token.name.clone(),
            token: token.token.value.clone(),
            servers: token.servers.clone(),
            tools: token.tools.clone(),
            rate_limit_per_minute: token.rate_limit_per_minute,
        };
        let limit_of_server = |server: &Server| {
            let per_minute = server.rate_limit_per_minute?;
            Some(ServerLimit { server: server.id.clone(), per_minute })
        };
        let limits_of_tools = |server: &Server| -> Vec<ToolLimit> {
            let of = |(tool, per_minute): &(String, NonZeroU32)| ToolLimit {
                server: server.id.clone(),
                tool: tool.clone(),
                per_minute: *per_minute,
            };
            server.tool_limits.iter().map(of).collect()
        };
        EntranceSettings {
            tokens: self.tokens.iter().map(token).collect(),
            auth_token: self.auth_token.as_ref().map(|token| token.value.clone()),
            rate_limit_per_minute: self.rate_limit_per_minute,
            servers: self.servers.iter().filter_map(limit_of_server).collect(),
            tools: self.servers.iter().flat_map(limits_of_tools).collect(),
        }
    }
}

impl Server {
    fn settings(&self, world: &World) -> ServerSettings {
        ServerSettings {
            id: self.id.as_str().into(),
            target: self.target(world),
            enabled: self.enabled,
            prefix: self.prefix,
            start: self.start,
            instance: self.instance,
            exclusive: self.exclusive,
            speaks: self.speaks,
            startup_timeout: self.startup_timeout,
            shutdown_grace: self.shutdown_grace,
            response_timeout: self.response_timeout,
            response_cap: self.response_cap,
            cancel_grace: self.cancel_grace,
            idle_stop: self.idle_stop,
            in_flight: self.in_flight,
            queue: self.queue,
            enabled_tools: self.enabled_tools.clone(),
            disabled_tools: self.disabled_tools.clone(),
            unwrap_proxy_tool: self.unwrap_proxy_tool.clone(),
        }
    }

    /// What people see of it is as it was written: what stands for a secret still does.
    fn target(&self, world: &World) -> ServerTarget {
        match &self.at {
            At::Command { words, env, pass_env, cwd, stdio_mode, place: _ } => {
                let mut values = words.iter().map(|word| word.value.clone().into());
                let own = env.iter().map(|(name, text)| (name.as_str(), text.value.as_str()));
                let command = ServerCommand {
                    program: values.next().unwrap_or_default(),
                    args: values.collect(),
                    env: world.for_server(pass_env, own),
                    env_only: true,
                    cwd: cwd.as_ref().map(|(_, path)| path.clone()),
                };
                let shown = shell_words::join(words.iter().map(|word| &word.written));
                ServerTarget::Command { command, framing: *stdio_mode, shown }
            }
            At::Url { url, target, transport, .. } => ServerTarget::Url {
                target: target.clone(),
                transport: *transport,
                given: url.written.clone(),
                ca_file: None,
            },
        }
    }
}

/// Headers as they are sent; each was found to be one.
pub fn header_map(headers: &[(String, Text)]) -> Result<HeaderMap, (usize, String)> {
    let mut map = HeaderMap::new();
    for (number, (name, text)) in headers.iter().enumerate() {
        if name.contains(':') {
            return Err((number, "that is no header name".into()));
        }
        let parsed = mcp_transport::http::target::parse_header(&format!("{name}: {}", text.value));
        let (name, value) = parsed.map_err(|why| (number, why))?;
        map.append(name, value);
    }
    Ok(map)
}
