//! A gateway in memory, with clients and servers that a test plays line by line. Time is paused: it passes when everything
//! waits, and no further than a test says.

mod client;
mod server;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use mcp_engine::entrance::{Entrance, EntranceSettings};
use mcp_engine::{Bus, Pipeline, Recorder};
use mcp_gateway::Gateway;
use mcp_gateway::board::{Board, Order, ServerOrder, ServerView};
use mcp_gateway::settings::{Notifications, Settings};
use mcp_link::{Backend, Runtime};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::{LocalEnterGuard, LocalSet, spawn_local, yield_now};
use tokio::time::timeout;

pub(crate) use client::Client;
pub(crate) use server::{Heard, Server, ServerPlan, server};

/// The largest message of the play.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// For a message that is waited for: longer than the gateway waits for its servers before it answers without them.
const PATIENCE: Duration = Duration::from_secs(6);
/// Turns after which nothing is under way that needs no time.
const TURNS: usize = 200;

pub(crate) struct Playbook {
    pub gateway: Rc<Gateway>,
    runtime: Rc<Runtime>,
    board: Board,
    servers: Vec<Rc<Server>>,
    told: Rc<RefCell<Vec<String>>>,
    /// Messages and clients can be sent outside of `run_until` for as long as it lives.
    _context: LocalEnterGuard,
    tasks: Rc<LocalSet>,
}

impl Playbook {
    /// A gateway of servers that have one tool each, `x`.
    pub(crate) fn servers<const N: usize>(names: [&str; N]) -> Self {
        Self::of(names.map(server))
    }

    pub(crate) fn of<const N: usize>(plans: [ServerPlan; N]) -> Self {
        Self::with(plans, |_| {})
    }

    /// The same with settings that differ from the usual ones.
    pub(crate) fn with<const N: usize>(plans: [ServerPlan; N], set: impl FnOnce(&mut Settings<()>)) -> Self {
        let tasks = Rc::new(LocalSet::new());
        let context = tasks.enter();
        let told: Rc<RefCell<Vec<String>>> = Rc::default();
        let tell = Rc::clone(&told);
        let pipeline = Pipeline::new(Recorder::off(), Bus::default(), MESSAGE_BYTES_MAX);
        let runtime = Runtime::new(pipeline, MESSAGE_BYTES_MAX, Box::new(move |text| tell.borrow_mut().push(text)));
        spawn_local(Rc::clone(&runtime).keep_committing());
        spawn_local(Rc::clone(&runtime).keep_obeying());
        let (of_servers, servers): (Vec<_>, Vec<_>) = plans.map(|plan| plan.cast(&tasks)).into_iter().unzip();
        let mut settings = Settings {
            name: "gateway".into(),
            instructions: None,
            servers: of_servers,
            initialize_wait: Duration::from_secs(2),
            list_wait: Duration::from_secs(5),
            healthcheck_interval: None,
            healthcheck_timeout: Duration::from_secs(10),
            page_size: 1000,
            list_pages: 100,
            list_items: 10_000,
            in_flight_per_client: 64,
            notifications: Notifications::default(),
            drain: Duration::from_secs(10),
            proxy_tool: None,
        };
        set(&mut settings);
        let plays = |id: &str| servers.iter().find(|server: &&Rc<Server>| server.name() == id).cloned();
        let settings = settings.connected(|it| plays(&it.id).expect("each has one"));
        let entrance = Rc::new(Entrance::new(&EntranceSettings::default()).expect("it has no tokens"));
        let board = Board::default();
        let gateway = Gateway::new(&runtime, settings, entrance, board.clone());
        Self { gateway, runtime, board, servers, told, _context: context, tasks }
    }

    #[track_caller]
    pub(crate) fn server(&self, name: &str) -> Rc<Server> {
        Rc::clone(self.servers.iter().find(|server| server.name() == name).expect("it takes part"))
    }

    /// A client of an older revision, which has shaken hands.
    pub(crate) async fn client(&self) -> Client {
        self.client_that(json!({})).await
    }

    /// The same with these capabilities.
    pub(crate) async fn client_that(&self, can: Value) -> Client {
        Client::open(self, false, can).await
    }

    /// The same over HTTP, where each request has a stream of its own.
    pub(crate) async fn web_client_that(&self, can: Value) -> Client {
        Client::open(self, true, can).await
    }

    /// A client that says with each request who it is.
    pub(crate) fn modern_client(&self) -> Client {
        self.modern_client_that(json!({}))
    }

    pub(crate) fn modern_client_that(&self, can: Value) -> Client {
        Client::modern(self, can)
    }

    /// A client that has said nothing yet.
    pub(crate) fn newcomer(&self) -> Client {
        Client::join(self, None, None)
    }

    /// Lets time pass. No clock is waited for, because time is paused.
    pub(crate) async fn passes(&self, time: Duration) {
        self.tasks.run_until(tokio::time::sleep(time)).await;
        self.settles().await;
    }

    /// Lets everything happen that needs no time.
    pub(crate) async fn settles(&self) {
        settle(&self.tasks).await;
    }

    pub(crate) async fn ends(&self) {
        self.tasks.run_until(self.gateway.end()).await;
        self.settles().await;
    }

    pub(crate) async fn orders(&self, server: &str, what: ServerOrder) {
        let number = self.board.order(Order { server: server.into(), what }).expect("there is such a server");
        self.tasks.run_until(self.board.obeyed(number)).await;
        self.settles().await;
    }

    /// How the gateway shows a server, after its next tick.
    pub(crate) async fn shows(&self, server: &str) -> ServerView {
        self.passes(Duration::from_millis(300)).await;
        self.board.servers().into_iter().find(|view| view.id == server).expect("it is shown")
    }

    /// Whether the gateway's log has such words.
    pub(crate) fn has_told(&self, words: &str) -> bool {
        self.told.borrow().iter().any(|text| text.contains(words))
    }
}

async fn settle(tasks: &LocalSet) {
    let turns = async {
        for _ in 0..TURNS {
            yield_now().await;
        }
    };
    tasks.run_until(turns).await;
}

/// Messages that came to a client or a server, and that no line of the test has named yet.
struct Inbox<T> {
    name: String,
    tasks: Rc<LocalSet>,
    came: RefCell<VecDeque<(Value, T)>>,
    more: Notify,
}

impl<T> Inbox<T> {
    fn new(name: &str, tasks: &Rc<LocalSet>) -> Self {
        Self { name: name.into(), tasks: Rc::clone(tasks), came: RefCell::default(), more: Notify::new() }
    }

    fn put(&self, message: Value, with: T) {
        self.came.borrow_mut().push_back((message, with));
        self.more.notify_one();
    }

    /// The first message that has what is `expected`, which is waited for.
    async fn get(&self, expected: &Value) -> (Value, T) {
        let find = || {
            let mut came = self.came.borrow_mut();
            let at = came.iter().position(|(message, _)| has(message, expected))?;
            came.remove(at)
        };
        let found = timeout(PATIENCE, async {
            loop {
                if let Some(found) = find() {
                    return found;
                }
                self.more.notified().await;
            }
        });
        match self.tasks.run_until(found).await {
            Ok(found) => found,
            Err(_) => panic!("{} got no {expected}, but {:?}", self.name, self.left()),
        }
    }

    fn left(&self) -> Vec<Value> {
        self.came.borrow().iter().map(|(message, _)| message.clone()).collect()
    }

    /// Everything that came by now and that no line has named.
    async fn rest(&self) -> Vec<Value> {
        settle(&self.tasks).await;
        self.came.borrow_mut().drain(..).map(|(message, _)| message).collect()
    }
}

/// Whether `message` has what is `expected`: members that are not named may be anything.
fn has(message: &Value, expected: &Value) -> bool {
    match (message, expected) {
        (Value::Object(message), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| message.get(key).is_some_and(|found| has(found, value)))
        }
        (Value::Array(message), Value::Array(expected)) => {
            message.len() == expected.len() && message.iter().zip(expected).all(|(one, other)| has(one, other))
        }
        _ => message == expected,
    }
}

fn line(message: &Value) -> Bytes {
    message.to_string().into()
}

/// A request, or a notification if it has no `id`.
pub(crate) fn message(id: Option<Value>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if let Some(id) = id {
        message["id"] = id;
    }
    if !params.is_null() {
        message["params"] = params;
    }
    message
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// The names of a list.
pub(crate) fn names(answer: &Value, kind: &str, key: &str) -> Vec<String> {
    let items = answer["result"][kind].as_array().unwrap_or_else(|| panic!("no {kind}: {answer}"));
    items.iter().map(|item| item[key].as_str().expect("it has a name").to_owned()).collect()
}
