//! What a gateway is told about its servers and its clients.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mcp_link::Connector;
use mcp_proxy_tool::shape::Dialect;

/// The settings of a gateway. `T` tells how a server is reached: what a configuration says of that, or the connector made
/// of it.
#[derive(Clone, Debug)]
pub struct Settings<T> {
    /// What clients know the gateway by, and what it tells their models of itself.
    pub name: String,
    pub instructions: Option<String>,
    /// In the order in which lists are merged.
    pub servers: Vec<ServerSettings<T>>,
    /// For a client that opens a conversation, before servers that have not come up are left out of the
    /// answer.
    pub initialize_wait: Duration,
    /// The same for whoever asks for a list.
    pub list_wait: Duration,
    /// The time between two looks at whether a server still answers; none if nobody looks.
    pub healthcheck_interval: Option<Duration>,
    pub healthcheck_timeout: Duration,
    /// Items on a page of a merged list.
    pub page_size: usize,
    /// Pages of one server's list that are read, and items of it that are kept; the rest is cut, and clients
    /// are told.
    pub list_pages: usize,
    pub list_items: usize,
    /// Calls of one client at a time; more are refused.
    pub in_flight_per_client: usize,
    /// Whom a client's notifications reach that concern no server in particular.
    pub notifications: Notifications,
    /// What calls get to finish once the gateway is asked to end.
    pub drain: Duration,
    /// The tool that reaches everything, where there is one.
    pub proxy_tool: Option<ProxyToolSettings>,
}

impl<T> Settings<T> {
    /// The same settings with the connector that `connect` makes for each server.
    pub fn connected(self, connect: impl Fn(&ServerSettings<T>) -> Rc<dyn Connector>) -> Settings<Rc<dyn Connector>> {
        let servers = self.servers.into_iter().map(|server| {
            let target = connect(&server);
            server.reached_by(target)
        });
        Settings {
            servers: servers.collect(),
            name: self.name,
            instructions: self.instructions,
            initialize_wait: self.initialize_wait,
            list_wait: self.list_wait,
            healthcheck_interval: self.healthcheck_interval,
            healthcheck_timeout: self.healthcheck_timeout,
            page_size: self.page_size,
            list_pages: self.list_pages,
            list_items: self.list_items,
            in_flight_per_client: self.in_flight_per_client,
            notifications: self.notifications,
            drain: self.drain,
            proxy_tool: self.proxy_tool,
        }
    }
}

impl<T> ServerSettings<T> {
    fn reached_by<U>(self, target: U) -> ServerSettings<U> {
        ServerSettings {
            target,
            id: self.id,
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
            enabled_tools: self.enabled_tools,
            disabled_tools: self.disabled_tools,
            unwrap_proxy_tool: self.unwrap_proxy_tool,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyToolSettings {
    pub name: String,
    pub mode: ProxyToolMode,
    /// For clients that do not say who they are.
    pub dialect: Dialect,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyToolMode {
    /// Clients see it with everything else.
    #[default]
    Beside,
    /// Clients see nothing else.
    Instead,
}

/// Which tool of a server is a proxy tool, through which everything else of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnwrapTool {
    /// The one that is called or described so.
    Found,
    Named(String),
}

#[derive(Clone, Debug)]
pub struct ServerSettings<T> {
    /// Letters, digits, `-` and `_`, but never `__`.
    pub id: Arc<str>,
    pub target: T,
    /// Whether it takes part at all.
    pub enabled: bool,
    /// Whether its names are given out as `<id>__<name>`, and its addresses wrapped.
    pub prefix: bool,
    pub start: Start,
    pub instance: Instance,
    /// One connection at most, whatever clients declare.
    pub exclusive: bool,
    pub speaks: Speaks,
    /// Until it has introduced itself.
    pub startup_timeout: Duration,
    /// For a process to end by itself, before it is made to.
    pub shutdown_grace: Duration,
    /// For an answer; progress begins it anew, up to `response_cap`.
    pub response_timeout: Duration,
    pub response_cap: Duration,
    /// For the answer to a call that was given up. Past it, an exclusive server is taken to have settled the
    /// call; calls of other clients get a fresh connection to any other server.
    pub cancel_grace: Duration,
    /// A process that nobody used for this long is stopped, and started when it is needed.
    pub idle_stop: Option<Duration>,
    /// Calls at a time; more wait, up to `queue`, and the rest is refused.
    pub in_flight: usize,
    pub queue: usize,
    /// Which of its tools are given out, by patterns of their own names; all of them unless said.
    pub enabled_tools: Option<Vec<String>>,
    pub disabled_tools: Vec<String>,
    /// The tool to look behind, where what is there is to be shown as the server's own.
    pub unwrap_proxy_tool: Option<UnwrapTool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// When the first client comes.
    #[default]
    Lazy,
    /// With the gateway.
    Eager,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Instance {
    /// Clients that declare the same capabilities share one.
    #[default]
    Shared,
    PerClient,
}

/// Which revisions a server knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speaks {
    /// It is asked.
    #[default]
    Auto,
    /// Those that begin with `initialize`.
    Legacy,
    Modern,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Notifications {
    /// Those that it has to do with.
    #[default]
    Concerned,
    All,
    Nobody,
    /// These, by id.
    Only(Vec<Arc<str>>),
}
