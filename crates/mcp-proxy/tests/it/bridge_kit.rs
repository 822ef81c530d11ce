//! What the tests of crossings add to the rest: a server on pipes that says what it is told, clients
//! of HTTP with a session, and clients on pipes of a server with an address.

mod pair;
mod sse;

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

pub use pair::{Pair, error_of, opened};
pub use sse::{SseClient, SseServer};

use crate::http_kit::{Client, Head, Listening, Recording, Response, bare, get, post};
use crate::kit::{Running, Sandbox, fixture_program, until};

/// A revision of which nothing special is expected.
pub const LEGACY: &str = "2025-06-18";

impl Sandbox {
    /// A listener in front of a fixture, one for each session.
    #[track_caller]
    pub fn listen_to_fixture(&self, fixture: &[&str], more: &[&str]) -> Listening {
        let program = fixture_program();
        let command = shell_words::join([&[program.to_str().expect("a path is text")], fixture].concat());
        self.listen(["--transport", "stdio", "--target-command", &command].iter().chain(more))
    }

    #[track_caller]
    pub fn listen_to_puppet(&self) -> Listening {
        self.listen_to_fixture(&["puppet"], &[])
    }

    /// `mcp-proxy run --transport TRANSPORT --url URL`
    pub fn run_to(&self, transport: &str, url: &str, more: &[&str]) -> Running {
        let mut command = self.command(["run", "--transport", transport, "--url", url]);
        command.args(more);
        Running::start(command)
    }
}

/// An event of a stream, as a client reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    pub event: Option<String>,
    pub retry: Option<String>,
    pub data: String,
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn parse_whole(text: &str) -> Option<Self> {
        text.ends_with("\n\n").then(|| Self::parse(text))?
    }

    fn parse(text: &str) -> Option<Self> {
        let mut event = Self::default();
        let mut data = Vec::new();
        for line in text.lines() {
            match line.split_once(':').map(|(name, value)| (name, value.strip_prefix(' ').unwrap_or(value))) {
                Some(("id", value)) => event.id = Some(value.to_owned()),
                Some(("event", value)) => event.event = Some(value.to_owned()),
                Some(("retry", value)) => event.retry = Some(value.to_owned()),
                Some(("data", value)) => data.push(value),
                _ => {}
            }
        }
        event.data = data.join("\n");
        (event.id.is_some() || !data.is_empty()).then_some(event)
    }
}

/// Reading events beyond their data.
pub trait Events {
    /// The next event that is more than a comment.
    fn next(&mut self) -> Event;
    /// The message of the next event that has one.
    fn next_json(&mut self) -> Value;
    /// Every event that is left, once the stream has ended as it should.
    fn all(&mut self) -> Vec<Event>;
    /// Every event that is left, however the stream ends. What it breaks off in is none.
    fn until_broken(&mut self) -> Vec<Event>;
}

impl Events for Client {
    #[track_caller]
    fn next(&mut self) -> Event {
        loop {
            if let Some(event) = Event::parse(&self.event()) {
                return event;
            }
        }
    }

    #[track_caller]
    fn next_json(&mut self) -> Value {
        loop {
            let event = self.next();
            if !event.data.is_empty() {
                return event.json();
            }
        }
    }

    #[track_caller]
    fn all(&mut self) -> Vec<Event> {
        let (rest, is_whole) = self.rest();
        assert!(is_whole, "the stream broke off after {:?}", String::from_utf8_lossy(&rest));
        String::from_utf8_lossy(&rest).split("\n\n").filter_map(Event::parse).collect()
    }

    #[track_caller]
    fn until_broken(&mut self) -> Vec<Event> {
        let (rest, _) = self.rest();
        String::from_utf8_lossy(&rest).split_inclusive("\n\n").filter_map(Event::parse_whole).collect()
    }
}

/// The head of an answer that is a stream.
#[track_caller]
pub fn expect_stream(client: &mut Client) -> Head {
    let head = client.head();
    assert_eq!((head.status(), head.get("content-type").as_deref()), (200, Some("text/event-stream")), "{head:?}");
    head
}

pub fn initialize(revision: &str) -> String {
    json!({
        "jsonrpc": "2.0",
        "id": "init",
        "method": "initialize",
        "params": {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    })
    .to_string()
}

pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A request of a client of the newest revision, which says everything in each.
pub fn modern(id: &str, method: &str, params: Value) -> String {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let id: Value = serde_json::from_str(id).unwrap();
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A notification that has a puppet write `lines`.
pub fn say(lines: &[impl AsRef<str>]) -> String {
    let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    json!({ "jsonrpc": "2.0", "method": "say", "params": { "lines": lines } }).to_string()
}

/// Numbers for requests whose id is nobody's concern.
pub fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("\"fresh-{}\"", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn is_process(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Waits until the proxy has seen the end of every exchange so far.
#[track_caller]
pub fn until_quiet(sandbox: &Sandbox) {
    until("every exchange ends", || {
        let recording = Recording::of(sandbox);
        recording.ends().len() == recording.requests().len()
    });
}

/// Waits until the proxy has taken exactly this message from a server.
#[track_caller]
pub fn until_recorded(sandbox: &Sandbox, message: &str) {
    let is_there = |recording: Recording| recording.by_server().iter().any(|it| it.raw == message.as_bytes());
    until("the message passes the proxy", || is_there(Recording::of(sandbox)));
}

/// A client of Streamable HTTP with a session, whose server is a puppet.
pub struct Session<'a> {
    pub proxy: &'a Listening,
    pub id: String,
    /// The server's process.
    pub pid: u32,
}

impl<'a> Session<'a> {
    #[track_caller]
    pub fn open(proxy: &'a Listening) -> Self {
        Self::open_with(proxy, LEGACY)
    }

    #[track_caller]
    pub fn open_with(proxy: &'a Listening, revision: &str) -> Self {
        let opened = proxy.client().ask(&post("/mcp", &[], initialize(revision)));
        assert_eq!(opened.status(), 200, "{opened:?}");
        let id = opened.head.get("mcp-session-id").expect("a session begins");
        let pid = opened.json()["result"]["serverInfo"]["version"].as_str().and_then(|pid| pid.parse().ok());
        Self { proxy, id, pid: pid.expect("the server is a puppet") }
    }

    pub fn header(&self) -> String {
        format!("Mcp-Session-Id: {}", self.id)
    }

    /// Posts a message on a connection of its own and waits for nothing.
    #[track_caller]
    pub fn send(&self, message: impl AsRef<[u8]>) -> Client {
        let mut client = self.proxy.client();
        client.send(&post("/mcp", &[&self.header()], message));
        client
    }

    #[track_caller]
    pub fn ask(&self, message: impl AsRef<[u8]>) -> Response {
        self.send(message).response()
    }

    /// Posts what is not a request.
    #[track_caller]
    pub fn tell(&self, message: impl AsRef<[u8]>) {
        let told = self.ask(message);
        assert_eq!((told.status(), &told.body[..]), (202, &b""[..]), "{told:?}");
    }

    /// Has the server write `lines`.
    #[track_caller]
    pub fn say(&self, lines: &[impl AsRef<str>]) {
        self.tell(say(lines));
    }

    /// Opens a stream by GET; `last` is the event to go on after.
    #[track_caller]
    pub fn listen(&self, last: Option<&str>) -> Client {
        let mut client = self.proxy.client();
        let last = last.map(|last| format!("Last-Event-ID: {last}"));
        let header = self.header();
        let headers: Vec<&str> = ["Accept: text/event-stream", &header].into_iter().chain(last.as_deref()).collect();
        client.send(&get("/mcp", &headers));
        expect_stream(&mut client);
        client
    }

    #[track_caller]
    pub fn delete(&self) -> Response {
        self.proxy.client().ask(&bare("DELETE", "/mcp", &[&self.header()]))
    }

    /// Every line that reached the server so far.
    #[track_caller]
    pub fn seen(&self) -> Vec<String> {
        let id = fresh_id();
        let answer = self.ask(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"seen"}}"#));
        let lines = &answer.json()["result"]["lines"];
        serde_json::from_value(lines.clone()).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    /// Waits until a line with `text` in it has reached the server, and returns it.
    #[track_caller]
    pub fn until_seen(&self, text: &str) -> String {
        let mut found = None;
        until(&format!("the server gets {text}"), || {
            found = self.seen().into_iter().find(|line| line.contains(text));
            found.is_some()
        });
        found.expect("it was just found")
    }

    /// Posts a call that the server leaves open, and waits until it is there.
    #[track_caller]
    pub fn hold(&self, message: &str, known_by: &str) -> Client {
        let client = self.send(message);
        self.until_seen(known_by);
        client
    }
}
