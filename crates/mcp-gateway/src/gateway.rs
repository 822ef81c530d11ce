//! The gateway itself: its servers, its clients, and what they share.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use mcp_engine::entrance::{ANONYMOUS, Entrance, Principal};
use mcp_engine::pipeline::Injection;
use mcp_link::{Backend, Connector, Link, Runtime, ServerSide, Unready, Waiting};

use crate::board::Board;
use crate::catalog::Merged;
use crate::client::GatewayClient;
use crate::lifecycle::Server;
use crate::proxy_tool::Indexes;
use crate::router::merge::{Own, OwnTool};
use crate::router::{Names, Namespace};
use crate::settings::{ProxyToolMode, Settings};

/// Interval between two looks at timeouts and orders.
const TICK: Duration = Duration::from_millis(250);

pub struct Gateway {
    me: Weak<Self>,
    pub(crate) runtime: Rc<Runtime>,
    pub(crate) settings: Settings<Rc<dyn Connector>>,
    pub(crate) servers: Vec<Rc<Server>>,
    pub(crate) entrance: Rc<Entrance>,
    /// Who has shown nothing.
    pub(crate) nobody: Rc<Principal>,
    pub(crate) names: RefCell<Names>,
    pub(crate) merged: RefCell<Merged>,
    pub(crate) indexes: RefCell<Indexes>,
    /// Begins ids that no client could guess.
    pub(crate) key: uuid::Uuid,
    pub(crate) clients: RefCell<Vec<Weak<GatewayClient>>>,
    /// Server processes of which something is still there.
    pub(crate) children: Rc<Cell<usize>>,
    pub(crate) is_ending: Cell<bool>,
    /// Whose turn it is to install what it starts.
    pub(crate) installs: tokio::sync::Mutex<()>,
    pub(crate) board: Board,
    /// Questions to clients so far.
    pub(crate) questions: Cell<i64>,
}

/// A server process, for as long as anything of it is there.
pub(crate) struct Counted {
    all: Rc<Cell<usize>>,
    server: Rc<Server>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.all.set(self.all.get() - 1);
        self.server.is_gone();
    }
}

impl Gateway {
    pub fn new(
        runtime: &Rc<Runtime>,
        settings: Settings<Rc<dyn Connector>>,
        entrance: Rc<Entrance>,
        board: Board,
    ) -> Rc<Self> {
        let spaces = settings.servers.iter().map(|server| Namespace::new(server.id.clone(), server.prefix)).collect();
        let gateway = Rc::new_cyclic(|me| Self {
            me: me.clone(),
            runtime: Rc::clone(runtime),
            servers: settings.servers.iter().enumerate().map(|(at, it)| Server::new(me.clone(), at, it)).collect(),
            entrance,
            nobody: Rc::new(Principal::unrestricted(ANONYMOUS)),
            names: RefCell::new(Names::new(spaces)),
            merged: RefCell::default(),
            indexes: RefCell::default(),
            key: uuid::Uuid::new_v4(),
            clients: RefCell::default(),
            children: Rc::default(),
            is_ending: Cell::new(false),
            installs: tokio::sync::Mutex::new(()),
            board,
            questions: Cell::new(0),
            settings,
        });
        if let Some(tool) = &gateway.settings.proxy_tool {
            runtime.look(|pipeline| pipeline.has_own_tool(tool.name.as_str().into()));
        }
        gateway.board.show(&gateway.servers, 0);
        gateway.watch();
        gateway
    }

    fn add_client(&self, link: &Rc<Link>, principal: Option<Rc<Principal>>) -> Rc<GatewayClient> {
        let me = self.me.upgrade().expect("it is in use");
        let client = GatewayClient::new(&me, link, principal);
        let mut clients = self.clients.borrow_mut();
        if clients.len() == clients.capacity() {
            clients.retain(|client| client.strong_count() > 0);
        }
        clients.push(Rc::downgrade(&client));
        client
    }

    /// Who we are to clients.
    pub(crate) fn own(&self) -> Own<'_> {
        let tool = match self.settings.proxy_tool.as_ref().map(|tool| tool.mode) {
            None => OwnTool::None,
            Some(ProxyToolMode::Beside) => OwnTool::Beside,
            Some(ProxyToolMode::Instead) => OwnTool::Instead,
        };
        Own {
            name: &self.settings.name,
            title: None,
            version: env!("CARGO_PKG_VERSION"),
            instructions: self.settings.instructions.as_deref(),
            tool,
        }
    }

    /// Looks after everything that takes too long, over and over.
    fn watch(self: &Rc<Self>) {
        let me = Rc::downgrade(self);
        tokio::task::spawn_local(async move {
            let mut beat = tokio::time::interval(TICK);
            beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                beat.tick().await;
                let Some(gateway) = me.upgrade() else { return };
                if gateway.is_ending.get() {
                    return;
                }
                gateway.tick();
            }
        });
    }

    fn tick(self: &Rc<Self>) {
        for server in &self.servers {
            server.tick();
        }
        self.tell_changes();
        let orders = self.board.orders();
        for order in &orders {
            if let Some(server) = self.servers.iter().find(|server| server.id() == &*order.server) {
                server.obey(order.what);
            }
        }
        self.board.show(&self.servers, orders.len());
    }

    pub(crate) fn counted(&self, server: &Rc<Server>) -> Counted {
        self.children.set(self.children.get() + 1);
        server.begins();
        Counted { all: Rc::clone(&self.children), server: Rc::clone(server) }
    }
}

impl Backend for Gateway {
    fn entrance(&self) -> &Rc<Entrance> {
        &self.entrance
    }

    fn start_early(&self) {
        self.servers.iter().for_each(|server| server.start_early());
    }

    fn welcome(&self, link: &Rc<Link>, principal: Option<Rc<Principal>>) -> Rc<dyn ServerSide> {
        if let Some(exchanges) = link.client.exchanges() {
            exchanges.answers_name_requests();
        }
        self.add_client(link, principal)
    }

    fn inject(&self, injection: Injection) -> Result<(), Injection> {
        let link = self.servers.iter().find_map(|server| server.link(injection.conversation));
        match link {
            Some(link) => {
                link.inject(injection);
                Ok(())
            }
            None => Err(injection),
        }
    }

    fn unready(&self) -> Vec<Unready> {
        let unready = self.servers.iter().filter(|server| server.is_enabled() && !server.is_well());
        let views = unready.map(|server| server.view());
        views
            .map(|view| Unready { id: view.id, state: view.state.as_str(), retry_after_ms: view.retry_after_ms })
            .collect()
    }

    fn stop(&self) {
        self.is_ending.set(true);
        self.end_listening();
    }

    fn end(&self) -> Waiting<'_> {
        self.is_ending.set(true);
        for server in &self.servers {
            server.end();
        }
        let gone = async {
            while self.children.get() > 0 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let longest = self.settings.servers.iter().map(|server| server.shutdown_grace).max().unwrap_or_default();
        Box::pin(async move {
            let _ = tokio::time::timeout(longest + TREES_GONE_FOR, gone).await;
        })
    }
}

/// Interval between two looks at processes that are ending.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Wait for the processes of servers beyond their grace, also before an `exclusive` server is started again.
pub(crate) const TREES_GONE_FOR: Duration = Duration::from_secs(8);
