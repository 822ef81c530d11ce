//! Many servers behind one endpoint. A client's conversation ends here and so does each connection to a
//! server; what passes between them is told apart by ids of our own, and named as either side knows it.

pub mod board;
mod calls;
mod claims;
mod health;
pub mod leg;
mod listed;
mod listening;
mod lists;
mod opening;
mod proxy_tool;
mod questions;
pub mod serve;
pub mod server;
pub mod settings;
mod subscriptions;
mod told;
mod unwrapping;
mod updates;
pub mod visitor;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use mcp_engine::entrance::{ANONYMOUS, Entrance, Principal};
use mcp_engine::pipeline::Injection;
use mcp_engine::router::merge::{Own, OwnTool};
use mcp_engine::router::{Names, Namespace};

use crate::bridge::talk::Talk;
use crate::http::hub::Hub;
use board::Board;
use lists::Merged;
use proxy_tool::Indexes;
use server::Server;
use settings::{ProxyToolMode, Settings};
use visitor::Visitor;

/// How often it is looked whether something took too long.
const TICK: Duration = Duration::from_millis(250);

pub struct Gateway {
    pub hub: Rc<Hub>,
    pub settings: Settings,
    pub servers: Vec<Rc<Server>>,
    pub entrance: Rc<Entrance>,
    /// Who has shown nothing.
    nobody: Rc<Principal>,
    names: RefCell<Names>,
    merged: RefCell<Merged>,
    indexes: RefCell<Indexes>,
    /// Begins ids that no client could guess.
    key: uuid::Uuid,
    visitors: RefCell<Vec<Weak<Visitor>>>,
    /// Server processes of which something is still there.
    children: Rc<Cell<usize>>,
    is_ending: Cell<bool>,
    /// Whose turn it is to install what it starts.
    installs: tokio::sync::Mutex<()>,
    board: Board,
    /// Questions to clients so far.
    questions: Cell<i64>,
}

/// A server process, for as long as anything of it is there.
pub struct Counted {
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
    pub fn new(hub: &Rc<Hub>, settings: Settings, entrance: Rc<Entrance>, board: Board) -> Rc<Self> {
        let spaces = settings.servers.iter().map(|server| Namespace::new(server.id.clone(), server.prefix)).collect();
        let gateway = Rc::new_cyclic(|me| Self {
            hub: Rc::clone(hub),
            servers: settings.servers.iter().enumerate().map(|(at, it)| Server::new(me.clone(), at, it)).collect(),
            entrance,
            nobody: Rc::new(Principal::unrestricted(ANONYMOUS)),
            names: RefCell::new(Names::new(spaces)),
            merged: RefCell::default(),
            indexes: RefCell::default(),
            key: uuid::Uuid::new_v4(),
            visitors: RefCell::default(),
            children: Rc::default(),
            is_ending: Cell::new(false),
            installs: tokio::sync::Mutex::new(()),
            board,
            questions: Cell::new(0),
            settings,
        });
        if let Some(tool) = &gateway.settings.proxy_tool {
            hub.look(|pipeline| pipeline.has_own_tool(tool.name.as_str().into()));
        }
        gateway.board.show(&gateway.servers, 0);
        gateway.watch();
        gateway
    }

    /// Starts what is to be there before the first client is.
    pub fn start_early(&self) {
        self.servers.iter().for_each(|server| server.start_early());
    }

    /// Begins with a client, whose conversation is `talk`.
    pub fn welcome(self: &Rc<Self>, talk: &Rc<Talk>, principal: Option<Rc<Principal>>) -> Rc<Visitor> {
        let visitor = Visitor::new(self, talk, principal);
        let mut visitors = self.visitors.borrow_mut();
        if visitors.len() == visitors.capacity() {
            visitors.retain(|visitor| visitor.strong_count() > 0);
        }
        visitors.push(Rc::downgrade(&visitor));
        visitor
    }

    /// Who we are to clients.
    fn own(&self) -> Own<'_> {
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

    fn counted(&self, server: &Rc<Server>) -> Counted {
        self.children.set(self.children.get() + 1);
        server.begins();
        Counted { all: Rc::clone(&self.children), server: Rc::clone(server) }
    }

    /// Sends a server something that no client sent.
    pub fn inject(&self, injection: Injection) -> Result<(), Injection> {
        let talk = self.servers.iter().find_map(|server| server.talk(injection.conversation));
        match talk {
            Some(talk) => {
                talk.inject(injection);
                Ok(())
            }
            None => Err(injection),
        }
    }

    /// Calls that servers have not answered.
    pub fn open_calls(&self) -> usize {
        self.servers.iter().map(|server| server.open_calls()).sum()
    }

    /// Whether every server that takes part is there, or would be as soon as somebody needs it.
    pub fn is_ready(&self) -> bool {
        self.not_ready().next().is_none()
    }

    /// Those that are not.
    pub fn not_ready(&self) -> impl Iterator<Item = &Rc<Server>> {
        self.servers.iter().filter(|server| server.is_enabled() && !server.is_well())
    }

    /// From now on nothing is started any more.
    pub fn stop(&self) {
        self.is_ending.set(true);
    }

    /// Ends every server, and waits until nothing of them is left.
    pub async fn end(&self) {
        self.stop();
        for server in &self.servers {
            server.end();
        }
        let gone = async {
            while self.children.get() > 0 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let longest = self.settings.servers.iter().map(|server| server.shutdown_grace).max().unwrap_or_default();
        let _ = tokio::time::timeout(longest + TREES_GONE_FOR, gone).await;
    }
}

/// How often it is looked whether all processes are gone.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// For what is left of servers once they were told to end.
const TREES_GONE_FOR: Duration = Duration::from_secs(8);
