//! Across transports too the bytes that a server sends are the bytes that its client gets, and the
//! bytes that are recorded.

use mcp_wire::{Kind, Message};
use serde_json::json;

use crate::bridge_kit::{INITIALIZED, LEGACY, Pair, Session, SseClient, SseServer, expect_stream, initialize, opened};
use crate::http_kit::{Client, Listening, Origin, Recording, STREAM, accepted, answer, event, get, post};
use crate::identity::{assert_same, is_noise, lines_of_events, without_bom};
use crate::kit::Sandbox;

type Corpus = Vec<(String, Vec<u8>)>;

/// All of them were recorded, in order; what else a server said does not matter here.
fn check_recorded(sandbox: &Sandbox, corpus: &Corpus) {
    let recording = Recording::of(sandbox);
    let mut messages = recording.by_server().into_iter();
    for (name, expected) in corpus {
        assert!(messages.any(|message| message.raw == expected), "{name} in the recording");
    }
}

/// What a server on a pipe can send as a message; a byte order mark is no part of it.
fn lines_of_pipes() -> Corpus {
    let lines = lines_of_events().into_iter().filter(|(_, message)| !is_noise(message));
    lines.map(|(name, message)| (name, without_bom(&message).to_vec())).collect()
}

/// The data of the next event with a message.
#[track_caller]
fn next_message(client: &mut Client) -> Vec<u8> {
    loop {
        let event = client.event_bytes();
        let mark = b"\ndata: ";
        if let Some(at) = event.windows(mark.len()).position(|window| window == mark) {
            return event[at + mark.len()..event.len() - 2].to_vec();
        }
    }
}

/// Opens a session towards a server of Streamable HTTP, with the stream for what it says by itself.
#[track_caller]
fn answer_opening(origin: &Origin) -> crate::http_kit::Call {
    let mut opening = origin.call();
    assert_eq!(opening.text(), initialize(LEGACY));
    opening.send(answer("200 OK", &["Content-Type: application/json", "Mcp-Session-Id: s1"], opened(LEGACY)));
    let mut initialized = origin.call();
    assert_eq!(initialized.text(), INITIALIZED);
    initialized.send(accepted());
    let mut stream = origin.call();
    assert_eq!(stream.asked(), "GET /mcp");
    stream.send(STREAM);
    stream
}

#[test]
fn from_http_to_a_pipe() {
    let mut pair = Pair::start(&["--quiet"]);
    pair.send(initialize(LEGACY));
    pair.send(INITIALIZED);
    let mut stream = answer_opening(&pair.origin);
    pair.proxy.line();
    let lines = lines_of_events();
    for (_, message) in &lines {
        stream.send(event(message));
        assert_same(&pair.proxy.line(), &[message, &b"\n"[..]].concat());
    }
    check_recorded(&pair.end(), &lines);
}

#[test]
fn from_sse_to_a_pipe() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = sandbox.run_to("sse", &server.url(), &["--quiet"]);
    proxy.send(format!("{INITIALIZED}\n").as_bytes());
    server.accept();
    assert_eq!(server.receive(), INITIALIZED);
    let lines = lines_of_events();
    for (_, message) in &lines {
        server.say(message);
        assert_same(&proxy.line(), &[message, &b"\n"[..]].concat());
    }
    assert!(proxy.end().0.success());
    check_recorded(&sandbox, &lines);
}

#[test]
fn from_a_pipe_to_sse() {
    let sandbox = Sandbox::new();
    let lines = lines_of_pipes();
    let played = sandbox.path("played");
    let bytes: Vec<u8> = lines.iter().flat_map(|(_, message)| [message, &b"\n"[..]].concat()).collect();
    std::fs::write(&played, bytes).unwrap();
    let proxy = sandbox.listen_to_fixture(&["play", played.to_str().unwrap()], &["--quiet"]);
    let mut client = SseClient::open(&proxy);
    for (_, message) in &lines {
        assert_same(&next_message(&mut client.stream), message);
    }
    drop(client);
    proxy.end();
    check_recorded(&sandbox, &lines);
}

#[test]
fn from_http_to_sse() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = SseClient::open(&proxy);
    client.tell(initialize(LEGACY));
    client.tell(INITIALIZED);
    let mut stream = answer_opening(&origin);
    client.message();
    let lines = lines_of_events();
    for (_, message) in &lines {
        stream.send(event(message));
        assert_same(&next_message(&mut client.stream), message);
    }
    drop(client);
    origin.call().send(accepted());
    proxy.end();
    check_recorded(&sandbox, &lines);
}

/// By which of its exchanges a client of Streamable HTTP gets a message.
enum Way {
    /// As the answer to a call of this id.
    Answer(Vec<u8>),
    /// Before the answer to a call that wants to hear of its progress under this token.
    Progress(Vec<u8>),
    /// On the stream for what belongs to no call.
    General,
    /// None: it answers nothing that anybody could have asked.
    Nowhere,
}

fn way_of(message: &[u8]) -> Way {
    let message = Message::new(message.to_vec().into());
    match message.glance().kind {
        Kind::Response | Kind::Error => match message.glance().id {
            Some(id) => Way::Answer(message.slice(id).to_vec()),
            None => Way::Nowhere,
        },
        Kind::Notification if message.method().as_deref() == Some("notifications/progress") => {
            let token = message.peek().progress_token.expect("an official example has one");
            Way::Progress(message.slice(token).to_vec())
        }
        _ => Way::General,
    }
}

/// The server's side.
trait Speaker {
    /// Waits until a call with `mark` in it is there.
    fn wait_for(&mut self, mark: &str);
    fn say(&mut self, message: &[u8]);
}

/// A server on a pipe that says what a file holds.
struct Puppet<'a> {
    session: &'a Session<'a>,
    sandbox: &'a Sandbox,
    said: usize,
}

impl Speaker for Puppet<'_> {
    fn wait_for(&mut self, mark: &str) {
        self.session.until_seen(mark);
    }

    fn say(&mut self, message: &[u8]) {
        self.said += 1;
        let file = self.sandbox.path(&format!("said-{}", self.said));
        std::fs::write(&file, [message, b"\n"].concat()).unwrap();
        self.session.tell(json!({ "method": "play", "params": { "file": file } }).to_string());
    }
}

impl Speaker for SseServer {
    fn wait_for(&mut self, mark: &str) {
        let received = self.receive();
        assert!(received.contains(mark), "{received}");
    }

    fn say(&mut self, message: &[u8]) {
        Self::say(self, message);
    }
}

/// A client of Streamable HTTP with a session.
struct Reader<'a> {
    proxy: &'a Listening,
    /// The header that names the session.
    session: String,
    /// The stream for what belongs to no call.
    general: Client,
    calls: usize,
    nowhere: usize,
}

impl<'a> Reader<'a> {
    fn new(proxy: &'a Listening, session: String) -> Self {
        let mut general = proxy.client();
        general.send(&get("/mcp", &["Accept: text/event-stream", &session]));
        expect_stream(&mut general);
        Self { proxy, session, general, calls: 0, nowhere: 0 }
    }

    /// Makes a call that is left open.
    #[track_caller]
    fn call(&mut self, id: &[u8], token: &[u8], server: &mut impl Speaker) -> Client {
        self.calls += 1;
        let method = format!(",\"method\":\"ignore/{}\"", self.calls);
        let params = match token {
            b"" => Vec::new(),
            token => [b",\"params\":{\"_meta\":{\"progressToken\":", token, b"}}"].concat(),
        };
        let body = [b"{\"jsonrpc\":\"2.0\",\"id\":", id, method.as_bytes(), &params, b"}"].concat();
        let mut client = self.proxy.client();
        client.send(&post("/mcp", &[&self.session], body));
        server.wait_for(&method);
        client
    }

    /// Has the server say something, and expects it where it belongs.
    #[track_caller]
    fn expect(&mut self, message: &[u8], server: &mut impl Speaker) {
        match way_of(message) {
            Way::Answer(id) => {
                let mut client = self.call(&id, b"", server);
                server.say(message);
                let response = client.response();
                assert_eq!(response.status(), 200);
                assert_same(&response.body, message);
            }
            Way::Progress(token) => {
                const ANSWER: &[u8] = br#"{"id":"wants-progress","result":{}}"#;
                let mut client = self.call(b"\"wants-progress\"", &token, server);
                server.say(message);
                expect_stream(&mut client);
                assert_same(&next_message(&mut client), message);
                server.say(ANSWER);
                assert_same(&next_message(&mut client), ANSWER);
            }
            Way::General => {
                server.say(message);
                assert_same(&next_message(&mut self.general), message);
            }
            Way::Nowhere => {
                server.say(message);
                self.nowhere += 1;
            }
        }
    }
}

#[test]
fn from_a_pipe_to_http() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_fixture(&["puppet"], &["--quiet"]);
    let session = Session::open(&proxy);
    let mut server = Puppet { session: &session, sandbox: &sandbox, said: 0 };
    let mut reader = Reader::new(&proxy, session.header());
    let lines = lines_of_pipes();
    for (_, message) in &lines {
        reader.expect(message, &mut server);
    }
    assert_eq!(reader.nowhere, 1, "an error without an id");
    proxy.end();
    check_recorded(&sandbox, &lines);
}

#[test]
fn from_sse_to_http() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &["--quiet"]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], initialize(LEGACY)));
    server.accept();
    assert_eq!(server.receive(), initialize(LEGACY));
    server.say(opened(LEGACY));
    let session = client.response().head.get("mcp-session-id").expect("a session begins");
    let mut reader = Reader::new(&proxy, format!("Mcp-Session-Id: {session}"));
    let lines = lines_of_events();
    for (_, message) in &lines {
        reader.expect(message, &mut server);
    }
    assert_eq!(reader.nowhere, 1, "an error without an id");
    proxy.end();
    check_recorded(&sandbox, &lines);
}
