//! A server in memory. It introduces itself, answers pings and lists what it has; the test plays the rest.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcp_engine::Lane;
use mcp_gateway::settings::{Instance, ServerSettings, Speaks, Start};
use mcp_link::{Alive, Connector, Link, Passed, ServerSide};
use mcp_wire::reply::Refusal;
use mcp_wire::{Id, Transport};
use serde_json::{Value, json};
use tokio::task::{LocalSet, spawn_local};

use super::{Inbox, line, message};

/// A server before the play begins.
pub(crate) struct ServerPlan {
    settings: ServerSettings<()>,
    has: Has,
}

struct Has {
    lists: [Vec<Value>; 4],
    page_size: usize,
    capabilities: Value,
    is_modern: bool,
    /// Members of its answers to lists.
    hints: Value,
    /// It is reached by an address and says with which answer everything comes.
    has_address: bool,
}

impl Has {
    fn list(&mut self, method: &str, items: &Value) {
        let at = LISTS.iter().position(|(known, ..)| *known == method).expect("it is a list");
        let whole = |item: &Value| match item {
            Value::String(name) => json!({ LISTS[at].2: name, "name": name, "inputSchema": { "type": "object" } }),
            whole => whole.clone(),
        };
        self.lists[at] = items.as_array().expect("they are several").iter().map(whole).collect();
    }
}

/// Methods of lists, what they hold, and what an item is known by.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

pub(crate) fn server(name: &str) -> ServerPlan {
    let settings = ServerSettings {
        id: name.into(),
        target: (),
        enabled: true,
        prefix: true,
        start: Start::default(),
        instance: Instance::default(),
        exclusive: false,
        speaks: Speaks::default(),
        startup_timeout: Duration::from_secs(30),
        shutdown_grace: Duration::from_secs(2),
        response_timeout: Duration::from_secs(60),
        response_cap: Duration::from_secs(600),
        cancel_grace: Duration::from_secs(2),
        idle_stop: None,
        in_flight: 64,
        queue: 256,
        enabled_tools: None,
        disabled_tools: Vec::new(),
        unwrap_proxy_tool: None,
    };
    let changes = json!({ "listChanged": true });
    let capabilities = json!({
        "tools": changes, "prompts": changes, "resources": { "listChanged": true, "subscribe": true }, "logging": {},
    });
    let (lists, hints) = (Default::default(), json!({}));
    let has = Has { lists, page_size: usize::MAX, capabilities, is_modern: false, hints, has_address: false };
    ServerPlan { settings, has }.tools(&["x"])
}

impl ServerPlan {
    pub(crate) fn set(mut self, set: impl FnOnce(&mut ServerSettings<()>)) -> Self {
        set(&mut self.settings);
        self
    }

    pub(crate) fn tools(self, names: &[&str]) -> Self {
        self.list("tools/list", json!(names))
    }

    /// Items of a list: each whole, or only what it is known by.
    pub(crate) fn list(mut self, method: &str, items: Value) -> Self {
        self.has.list(method, &items);
        self
    }

    pub(crate) fn pages_of(mut self, items: usize) -> Self {
        self.has.page_size = items;
        self
    }

    pub(crate) fn capabilities(mut self, capabilities: Value) -> Self {
        self.has.capabilities = capabilities;
        self
    }

    /// It knows the newest revision only.
    pub(crate) fn modern(mut self) -> Self {
        (self.has.is_modern, self.has.hints) = (true, json!({ "resultType": "complete", "ttlMs": 60_000 }));
        self
    }

    pub(crate) fn hints(mut self, hints: Value) -> Self {
        self.has.hints = hints;
        self
    }

    pub(crate) fn at_an_address(mut self) -> Self {
        self.has.has_address = true;
        self
    }

    /// Its settings, and the server that plays it.
    pub(super) fn cast(self, tasks: &Rc<LocalSet>) -> (ServerSettings<()>, Rc<Server>) {
        let server = Rc::new_cyclic(|me| Server {
            me: me.clone(),
            inbox: Inbox::new(&self.settings.id, tasks),
            has: RefCell::new(self.has),
            by_hand: RefCell::default(),
            seen: RefCell::default(),
            connections: RefCell::default(),
            fails_to_start: Cell::new(false),
            lingers: Cell::new(false),
        });
        (self.settings, server)
    }
}

pub(crate) struct Server {
    me: Weak<Self>,
    inbox: Inbox<Rc<Connection>>,
    has: RefCell<Has>,
    /// Methods that the test answers.
    by_hand: RefCell<Vec<&'static str>>,
    seen: RefCell<Vec<Value>>,
    connections: RefCell<Vec<Rc<Connection>>>,
    pub fails_to_start: Cell<bool>,
    /// Its processes are not gone as soon as they are told to end.
    pub lingers: Cell<bool>,
}

/// One process of a server, or one session with it.
pub(crate) struct Connection {
    server: Weak<Server>,
    link: Weak<Link>,
    alive: RefCell<Option<Alive>>,
    is_over: Cell<bool>,
}

/// A message of the gateway to a server.
pub(crate) struct Heard {
    pub message: Value,
    pub connection: Rc<Connection>,
}

impl Server {
    pub(crate) fn name(&self) -> &str {
        &self.inbox.name
    }

    /// The test answers these from now on.
    pub(crate) fn answers_by_hand(&self, methods: &[&'static str]) {
        *self.by_hand.borrow_mut() = methods.to_vec();
    }

    pub(crate) fn lists(&self, method: &str, items: Value) {
        self.has.borrow_mut().list(method, &items);
    }

    /// The first message with this method and these parameters; it is waited for.
    pub(crate) async fn gets(&self, method: &str, params: Value) -> Heard {
        let mut expected = json!({ "method": method });
        if !params.is_null() {
            expected["params"] = params;
        }
        self.hears(expected).await
    }

    pub(crate) async fn hears(&self, expected: Value) -> Heard {
        let (message, connection) = self.inbox.get(&expected).await;
        Heard { message, connection }
    }

    pub(crate) async fn gets_call(&self, tool: &str) -> Heard {
        self.gets("tools/call", json!({ "name": tool })).await
    }

    pub(crate) async fn gets_nothing_else(&self) {
        let rest = self.inbox.rest().await;
        assert_eq!(rest, Vec::<Value>::new(), "{}", self.name());
    }

    /// The parameters of everything with this method that was ever sent to it.
    pub(crate) fn seen(&self, method: &str) -> Vec<Value> {
        let seen = self.seen.borrow();
        seen.iter().filter(|message| message["method"] == method).map(|message| message["params"].clone()).collect()
    }

    pub(crate) fn starts(&self) -> usize {
        self.connections.borrow().len()
    }

    /// The connection that came about last.
    pub(crate) fn connection(&self) -> Rc<Connection> {
        Rc::clone(self.connections.borrow().last().expect("it was started"))
    }

    /// Says something that belongs to no call.
    pub(crate) fn says(&self, method: &str, params: Value) {
        self.connection().says(&message(None, method, params));
    }

    pub(crate) fn asks(&self, id: impl Into<Value>, method: &str, params: Value) {
        self.connection().says(&message(Some(id.into()), method, params));
    }

    /// Answers a message by itself, or leaves it to the test.
    fn hear(&self, message: Value, connection: Rc<Connection>) {
        let method = message["method"].as_str().unwrap_or_default();
        let is_by_hand = self.by_hand.borrow().contains(&method);
        match self.own_answer(&message).filter(|_| !is_by_hand) {
            Some(answer) => Heard { message, connection }.is_answered_with(answer),
            None if method == "notifications/initialized" => {}
            None => self.inbox.put(message, connection),
        }
    }

    /// The member by which it answers by itself.
    fn own_answer(&self, message: &Value) -> Option<(&'static str, Value)> {
        let has = self.has.borrow();
        let unknown = || Some(("error", json!({ "code": -32601, "message": "no such method" })));
        let info = json!({ "name": self.name(), "version": "1" });
        let method = message["method"].as_str().unwrap_or_default();
        if let Some(at) = LISTS.iter().position(|(known, ..)| *known == method) {
            let from = message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let items: Vec<&Value> = has.lists[at].iter().skip(from).take(has.page_size).collect();
            let mut result = has.hints.clone();
            if from + items.len() < has.lists[at].len() {
                result["nextCursor"] = (from + items.len()).to_string().into();
            }
            result[LISTS[at].1] = json!(items);
            return Some(("result", result));
        }
        match method {
            "ping" => Some(("result", json!({}))),
            "initialize" if !has.is_modern => {
                let version = &message["params"]["protocolVersion"];
                let mut result = json!({ "protocolVersion": version, "capabilities": has.capabilities });
                (result["serverInfo"], result["instructions"]) = (info, format!("{} plays.", self.name()).into());
                Some(("result", result))
            }
            "server/discover" if has.is_modern => {
                let mut result = json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"] });
                (result["serverInfo"], result["capabilities"]) = (info, has.capabilities.clone());
                Some(("result", result))
            }
            "initialize" | "server/discover" => unknown(),
            _ => None,
        }
    }
}

impl Connector for Server {
    fn connect(&self, link: &Rc<Link>, alive: Alive) -> io::Result<()> {
        if self.fails_to_start.get() {
            return Err(io::Error::other("no such program"));
        }
        let (server, alive) = (self.me.clone(), RefCell::new(Some(alive)));
        let connection = Rc::new(Connection { server, link: Rc::downgrade(link), alive, is_over: Cell::new(false) });
        link.connect(Rc::<Connection>::clone(&connection));
        self.connections.borrow_mut().push(connection);
        Ok(())
    }

    fn transport(&self) -> Transport {
        match self.has.borrow().has_address {
            true => Transport::StreamableHttp,
            false => Transport::Stdio,
        }
    }

    fn is_process(&self) -> bool {
        !self.has.borrow().has_address
    }
}

impl ServerSide for Connection {
    fn take(&self, passed: Passed<'_>) {
        let Some(server) = self.server.upgrade() else { return };
        let message: Value = serde_json::from_slice(passed.frame.bytes).expect("what the gateway says is JSON");
        server.seen.borrow_mut().push(message.clone());
        let me = server.connections.borrow().iter().find(|it| std::ptr::eq(&***it, self)).cloned();
        let me = me.expect("it came about");
        // The gateway may still be in the middle of what it does.
        spawn_local(async move { server.hear(message, me) });
    }

    fn end(&self) {
        self.is_over.set(true);
        if self.server.upgrade().is_none_or(|server| !server.lingers.get()) {
            self.is_gone();
        }
    }
}

impl Connection {
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Nothing is left of the process.
    pub(crate) fn is_gone(&self) {
        drop(self.alive.take());
    }

    pub(crate) fn link(&self) -> Rc<Link> {
        self.link.upgrade().expect("it is not over")
    }

    pub(crate) fn says(&self, message: &Value) {
        self.writes(None, line(message));
    }

    /// Sends bytes as they are, with the answer to `about`.
    pub(crate) fn writes(&self, about: Option<&Id>, raw: impl Into<Bytes>) {
        self.link().from_server(Lane::PIPE, about, raw.into());
    }

    /// Ends by itself.
    pub(crate) fn dies(&self, status: &str) {
        let link = self.link();
        link.client.upstream().expect("its client is the gateway").died(status, "last words");
        link.server_is_gone();
        link.end();
    }
}

impl Heard {
    pub(crate) fn id(&self) -> &Value {
        &self.message["id"]
    }

    pub(crate) fn answers(&self, result: Value) {
        self.is_answered_with(("result", result));
    }

    pub(crate) fn fails(&self, code: i64, message: &str) {
        self.is_answered_with(("error", json!({ "code": code, "message": message })));
    }

    fn is_answered_with(&self, (member, answer): (&str, Value)) {
        self.says(&json!({ "jsonrpc": "2.0", "id": self.id(), member: answer }));
    }

    /// Says something with the answer to this.
    pub(crate) fn says(&self, message: &Value) {
        self.writes(&message.to_string());
    }

    /// The same in bytes, where `$id` is the id.
    pub(crate) fn writes(&self, raw: &str) {
        let server = self.connection.server.upgrade().expect("it plays");
        let about = self.id().as_i64().map(Id::Integer).filter(|_| !server.is_process());
        if self.connection.link.upgrade().is_some() {
            self.connection.writes(about.as_ref(), raw.replace("$id", &self.id().to_string()));
        }
    }

    pub(crate) fn progresses(&self, progress: u64) {
        let token = &self.message["params"]["_meta"]["progressToken"];
        let params = json!({ "progressToken": token, "progress": progress });
        self.says(&message(None, "notifications/progress", params));
    }

    pub(crate) fn asks(&self, id: impl Into<Value>, method: &str, params: Value) {
        self.says(&message(Some(id.into()), method, params));
    }

    /// The address refuses it with a status of HTTP.
    pub(crate) fn is_refused(&self, refusal: &Refusal) {
        let link = self.connection.link();
        let id = Id::Integer(self.id().as_i64().expect("it is a request"));
        link.client.upstream().expect("its client is the gateway").refused(Some(&id), refusal);
        link.answer_call(&id, refusal);
    }
}
