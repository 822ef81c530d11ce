//! How the servers of a gateway are, for whoever looks from another thread, and what is wanted of them.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_wire::Transport;
use mcp_wire::revision::Era;
use tokio::sync::watch;

use crate::lifecycle::Server;

pub use mcp_wire::ServerState;

/// What both sides see: cheap to look at, written a few times a second.
#[derive(Clone, Default)]
pub struct Board {
    written: Arc<Mutex<Written>>,
    /// How many orders were carried out, and show.
    obeyed: watch::Sender<u64>,
}

#[derive(Default)]
struct Written {
    servers: Vec<ServerView>,
    orders: Vec<Order>,
    /// How many were given so far.
    given: u64,
}

/// What somebody wants of a server.
#[derive(Clone, Debug)]
pub struct Order {
    pub server: String,
    pub what: ServerOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrder {
    Restart,
    Disable,
    Enable,
}

#[derive(Clone, Debug)]
pub struct ServerView {
    pub id: String,
    pub state: ServerState,
    pub era: Option<Era>,
    pub transport: Transport,
    pub tools: Option<usize>,
    pub prompts: Option<usize>,
    pub resources: Option<usize>,
    /// Connections to it, or processes.
    pub instances: usize,
    pub clients: usize,
    pub in_flight: usize,
    pub restarts: u64,
    /// Until it is started again.
    pub retry_after_ms: Option<u64>,
    /// The reason that it is not ready, or that its lists are cut.
    pub why: Option<String>,
    /// The end of what it wrote to its standard error before it last ended.
    pub last_words: Option<String>,
    pub calls: CallsView,
}

#[derive(Clone, Debug, Default)]
pub struct CallsView {
    pub total: u64,
    pub errors: u64,
    pub per_minute: u64,
    /// The mean of each ten seconds of the last five minutes, oldest first; none where there was no call.
    pub latency_us: Vec<Option<u64>>,
    pub longest_us: u64,
}

/// Why an order is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    NoSuchServer,
    /// Too much is wanted already.
    TooMany,
}

/// Orders about servers that wait.
const ORDERS_MAX: usize = 64;

impl Board {
    fn written(&self) -> std::sync::MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn servers(&self) -> Vec<ServerView> {
        self.written().servers.clone()
    }

    /// Wants something of a server. The order gets a number, by which it can be waited for.
    pub fn order(&self, order: Order) -> Result<u64, NotTaken> {
        let mut written = self.written();
        if !written.servers.iter().any(|server| server.id == order.server) {
            return Err(NotTaken::NoSuchServer);
        }
        if written.orders.len() >= ORDERS_MAX {
            return Err(NotTaken::TooMany);
        }
        written.orders.push(order);
        written.given += 1;
        Ok(written.given)
    }

    /// Waits until an order was carried out and the board shows it; for ever, if the gateway ends first.
    pub async fn obeyed(&self, number: u64) {
        // The board itself has the other end.
        let _ = self.obeyed.subscribe().wait_for(|obeyed| *obeyed >= number).await;
    }

    /// Shows how the servers are, after so many more orders were carried out.
    pub(crate) fn show(&self, servers: &[Rc<Server>], obeyed: usize) {
        self.show_views(servers.iter().map(|server| server.view()).collect(), obeyed);
    }

    /// The same in plain data, which tests of faces make up.
    pub fn show_views(&self, views: Vec<ServerView>, obeyed: usize) {
        self.written().servers = views;
        if obeyed > 0 {
            self.obeyed.send_modify(|all| *all += obeyed as u64);
        }
    }

    /// What is wanted since this was asked last.
    pub fn orders(&self) -> Vec<Order> {
        std::mem::take(&mut self.written().orders)
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn view(id: &str) -> ServerView {
        ServerView {
            id: id.to_owned(),
            state: ServerState::Ready,
            era: None,
            transport: Transport::Stdio,
            tools: None,
            prompts: None,
            resources: None,
            instances: 0,
            clients: 0,
            in_flight: 0,
            restarts: 0,
            retry_after_ms: None,
            why: None,
            last_words: None,
            calls: CallsView::default(),
        }
    }

    fn restart(server: &str) -> Order {
        Order { server: server.to_owned(), what: ServerOrder::Restart }
    }

    #[tokio::test]
    async fn an_order_is_waited_for_until_it_shows() {
        let board = Board::default();
        board.show_views(vec![view("a"), view("b")], 0);
        assert_eq!(board.order(restart("c")), Err(NotTaken::NoSuchServer));
        let (first, second) = (board.order(restart("a")).unwrap(), board.order(restart("b")).unwrap());
        assert_eq!(board.orders().len(), 2);
        let mut waiting = Box::pin(board.obeyed(second));
        let mut nobody = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut nobody).is_pending());
        board.show_views(vec![view("a"), view("b")], 1);
        board.obeyed(first).await;
        assert!(waiting.as_mut().poll(&mut nobody).is_pending());
        board.show_views(vec![view("a"), view("b")], 1);
        waiting.await;
    }

    #[test]
    fn orders_have_a_bound() {
        let board = Board::default();
        board.show_views(vec![view("a")], 0);
        (0..ORDERS_MAX).for_each(|_| assert!(board.order(restart("a")).is_ok()));
        assert_eq!(board.order(restart("a")), Err(NotTaken::TooMany));
        board.orders();
        assert!(board.order(restart("a")).is_ok());
    }
}
