//! The same where the client speaks HTTP: what it is asked goes by the way that its call came.

use serde_json::{Value, json};

use crate::bridge_kit::{Events, SseClient, SseServer, expect_stream};
use crate::elicit_kit::{
    ALLOW, ALLOW_SESSION, DENY, accept, answer, hello_with_forms, is_denied, is_question, is_taken_back, modern_call,
    write_file,
};
use crate::http_kit::{
    Call, Client, LAST_CHUNK, Listening, MODERN, Origin, STREAM, answer as answered, call, chunk, json as as_json,
    post, result,
};
use crate::kit::{Sandbox, fixture_program};

const MODERN_HEADERS: [&str; 3] = [MODERN, "Mcp-Method: tools/call", "Mcp-Name: write_file"];

/// A proxy in front of a puppet.
fn before_puppet(sandbox: &Sandbox, more: Value) -> Listening {
    let flags = sandbox.asking(more);
    sandbox.listen_to_fixture(&["puppet"], &flags.each_ref().map(String::as_str))
}

/// A client of Streamable HTTP with a session.
struct Session<'a> {
    proxy: &'a Listening,
    header: String,
}

impl<'a> Session<'a> {
    fn open(proxy: &'a Listening) -> Self {
        let opened = proxy.client().ask(&post("/mcp", &[], hello_with_forms()));
        let id = opened.head.get("mcp-session-id").expect("a session begins");
        Self { proxy, header: format!("Mcp-Session-Id: {id}") }
    }

    fn send(&self, message: impl AsRef<[u8]>) -> Client {
        let mut client = self.proxy.client();
        client.send(&post("/mcp", &[&self.header], message));
        client
    }

    fn tell(&self, message: impl AsRef<[u8]>) {
        assert_eq!(self.send(message).response().status(), 202);
    }

    /// A call whose stream has begun, and what is asked on it.
    fn calls(&self, id: u64) -> (Client, Value) {
        let mut client = self.send(write_file(id));
        expect_stream(&mut client);
        let question = client.next_json();
        (client, question)
    }
}

#[test]
fn http_to_a_command() {
    let sandbox = Sandbox::new();
    let proxy = before_puppet(&sandbox, json!({}));
    let session = Session::open(&proxy);
    let (mut client, question) = session.calls(1);
    session.tell(answer(&question, &accept(ALLOW)));
    assert_eq!(client.next_json()["result"]["method"], "tools/call");
    assert_eq!(client.all(), []);
    for (id, said) in [(2, accept(DENY)), (3, json!({ "action": "decline" })), (4, json!({ "action": "cancel" }))] {
        let (mut client, question) = session.calls(id);
        session.tell(answer(&question, &said));
        is_denied(&client.next_json(), id, "whoever uses the client");
        assert_eq!(client.all(), []);
    }
    let (mut client, question) = session.calls(5);
    session.tell(answer(&question, &accept(ALLOW_SESSION)));
    assert_eq!(client.next_json()["id"], 5);
    assert_eq!(session.send(write_file(6)).response().json()["id"], 6);
    let seen = session.send(call("\"s\"", "seen")).response().json();
    let seen: Vec<String> = serde_json::from_value(seen["result"]["lines"].clone()).unwrap();
    assert_eq!(seen[1..], [write_file(1), write_file(5), write_file(6)]);
    // What one client was permitted, another was not.
    let other = Session::open(&proxy);
    let (_, question) = other.calls(1);
    // Nor does one answer for another.
    session.tell(answer(&question, &accept(ALLOW)));
    let decided: Vec<_> = sandbox.decided().into_iter().map(|(verdict, actor)| format!("{verdict} {actor}")).collect();
    assert_eq!(decided, ["allow client", "deny client", "deny client", "deny client", "allow client", "allow client"]);
}

#[test]
fn time_runs_out_on_a_stream() {
    let sandbox = Sandbox::new();
    let proxy = before_puppet(&sandbox, json!({ "timeout": "100ms" }));
    let session = Session::open(&proxy);
    let (mut client, question) = session.calls(1);
    is_taken_back(&client.next_json(), &question);
    is_denied(&client.next_json(), 1, "nobody answered in time");
    assert_eq!(client.all(), []);
}

#[test]
fn a_client_that_reads_no_streams_is_not_asked() {
    let sandbox = Sandbox::new();
    let proxy = before_puppet(&sandbox, json!({}));
    let session = Session::open(&proxy);
    let request = post("/mcp", &[&session.header], write_file(1));
    let request = String::from_utf8(request).unwrap().replace(", text/event-stream", "");
    is_denied(&proxy.client().ask(request.as_bytes()).json(), 1, "nobody is there to ask");
}

#[test]
fn a_client_that_leaves_can_still_answer() {
    let sandbox = Sandbox::new();
    let proxy = before_puppet(&sandbox, json!({}));
    let session = Session::open(&proxy);
    let (client, question) = session.calls(1);
    drop(client);
    session.tell(answer(&question, &accept(ALLOW)));
    crate::kit::until("the call reaches the server", || {
        let seen = session.send(call("\"s\"", "seen")).response().json();
        seen["result"]["lines"].to_string().contains("write_file")
    });
    // The end of its session is the end of what it was asked.
    session.calls(2);
    sandbox.until_found();
    sandbox.held(1);
    let ended = proxy.client().ask(&crate::http_kit::bare("DELETE", "/mcp", &[&session.header]));
    assert_eq!(ended.status(), 200);
    sandbox.held(0);
}

#[test]
fn sse_to_a_command() {
    let sandbox = Sandbox::new();
    let proxy = before_puppet(&sandbox, json!({}));
    let mut client = SseClient::open(&proxy);
    client.tell(hello_with_forms());
    assert_eq!(client.json()["id"], "init");
    client.tell(write_file(1));
    let question = client.json();
    client.tell(answer(&question, &accept(ALLOW)));
    assert_eq!(client.json()["id"], 1);
    client.tell(write_file(2));
    let question = client.json();
    client.tell(answer(&question, &accept(DENY)));
    is_denied(&client.json(), 2, "said no");
    // The end of the connection is the end of what it was asked.
    client.tell(write_file(3));
    client.json();
    sandbox.until_found();
    sandbox.held(1);
    drop(client);
    sandbox.held(0);
}

#[test]
fn stdio_to_an_address() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let flags = sandbox.asking(json!({}));
    let mut client = sandbox.run_to("streamable-http", &origin.url("/mcp"), &flags.each_ref().map(String::as_str));
    client.send(format!("{}\n", hello_with_forms()).as_bytes());
    origin.call().send(as_json(r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18"}}"#));
    assert_eq!(client.json()["id"], "init");
    client.send(format!("{}\n", write_file(1)).as_bytes());
    let question = client.json();
    client.send(format!("{}\n", answer(&question, &accept(ALLOW))).as_bytes());
    let mut reached = origin.call();
    assert_eq!(reached.text(), write_file(1));
    reached.send(as_json(result(1)));
    assert_eq!(client.json()["id"], 1);
    client.send(format!("{}\n", write_file(2)).as_bytes());
    client.json();
    client.close_stdin();
    is_denied(&client.json(), 2, "the client is gone");
    assert!(client.end().0.success());
}

/// A client and a server of Streamable HTTP, with a session that the server gave.
struct Relayed {
    sandbox: Sandbox,
    origin: Origin,
    proxy: Listening,
}

impl Relayed {
    fn begin(more: Value) -> Self {
        let (sandbox, origin) = (Sandbox::new(), Origin::start());
        let flags = sandbox.asking(more);
        let url = origin.url("/mcp");
        let proxy = sandbox.listen_to("streamable-http", &url, &flags.each_ref().map(String::as_str));
        Self { sandbox, origin, proxy }
    }

    fn connected(more: Value) -> Self {
        let stage = Self::begin(more);
        let mut client = stage.proxy.client();
        client.send(&post("/mcp", &[], hello_with_forms()));
        let opened = r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18"}}"#;
        let headers = ["Content-Type: application/json", "Mcp-Session-Id: s-1"];
        stage.origin.call().send(answered("200 OK", &headers, opened));
        assert_eq!(client.response().status(), 200);
        stage
    }

    fn send(&self, message: impl AsRef<[u8]>) -> Client {
        let mut client = self.proxy.client();
        client.send(&post("/mcp", &["Mcp-Session-Id: s-1"], message));
        client
    }

    fn tell(&self, message: impl AsRef<[u8]>) {
        assert_eq!(self.send(message).response().status(), 202);
    }

    fn calls(&self, id: u64) -> (Client, Value) {
        let mut client = self.send(write_file(id));
        expect_stream(&mut client);
        let question = client.next_json();
        (client, question)
    }

    /// The call, which whoever uses the client permitted, at the server.
    fn permitted(&self, id: u64) -> (Client, Call) {
        let (client, question) = self.calls(id);
        self.tell(answer(&question, &accept(ALLOW)));
        let reached = self.origin.call();
        assert_eq!(reached.text(), write_file(id));
        assert_eq!(reached.head.get("mcp-session-id").as_deref(), Some("s-1"));
        (client, reached)
    }
}

#[test]
fn http_to_http() {
    let stage = Relayed::connected(json!({}));
    let (mut client, mut reached) = stage.permitted(1);
    reached.send(as_json(result(1)));
    assert_eq!(client.next().data, result(1));
    assert_eq!(client.all(), []);
    // A server may answer with a stream.
    let (mut client, mut reached) = stage.permitted(2);
    reached.send(STREAM);
    reached.send(chunk("id: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"));
    let event = client.next();
    assert_eq!((event.id.as_deref(), event.json()["method"].as_str()), (Some("7"), Some("notifications/x")));
    reached.send(chunk(format!("id: 8\ndata: {}\n\n", result(2))));
    reached.send(LAST_CHUNK);
    assert_eq!(client.next().data, result(2));
    assert_eq!(client.all(), []);
    // What is no message becomes one.
    let (mut client, mut reached) = stage.permitted(3);
    reached.send(answered("401 Unauthorized", &["Content-Type: text/plain"], "who are you?"));
    let refused = client.next_json();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&3.into(), &5021.into()), "{refused}");
    assert_eq!(client.all(), []);
    let (mut client, reached) = stage.permitted(4);
    reached.close();
    let refused = client.next_json();
    assert!(refused["id"] == 4 && refused["error"]["code"].is_i64(), "{refused}");
    for (id, said) in [(5, accept(DENY)), (6, json!({ "action": "decline" })), (7, json!({ "action": "cancel" }))] {
        let (mut client, question) = stage.calls(id);
        stage.tell(answer(&question, &said));
        is_denied(&client.next_json(), id, "whoever uses the client");
        assert_eq!(client.all(), []);
    }
    stage.origin.saw_nothing();
    let decided = stage.sandbox.decided();
    assert!(decided.iter().all(|(_, actor)| actor == "client") && decided.len() == 7, "{decided:?}");
}

#[test]
fn http_to_http_without_a_stream_or_an_answer() {
    let stage = Relayed::connected(json!({ "timeout": "100ms" }));
    let (mut client, question) = stage.calls(1);
    is_taken_back(&client.next_json(), &question);
    is_denied(&client.next_json(), 1, "nobody answered in time");
    assert_eq!(client.all(), []);
    let request = post("/mcp", &["Mcp-Session-Id: s-1"], write_file(2));
    let request = String::from_utf8(request).unwrap().replace(", text/event-stream", "");
    is_denied(&stage.proxy.client().ask(request.as_bytes()).json(), 2, "nobody is there to ask");
    stage.origin.saw_nothing();
}

#[test]
fn http_to_http_goes_on_without_its_client() {
    let stage = Relayed::connected(json!({}));
    let (client, question) = stage.calls(1);
    drop(client);
    stage.tell(answer(&question, &accept(ALLOW)));
    let mut reached = stage.origin.call();
    assert_eq!(reached.text(), write_file(1));
    reached.send(as_json(result(1)));
}

#[test]
fn sse_to_sse() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let flags = sandbox.asking(json!({}));
    let proxy = sandbox.listen_to("sse", &server.url(), &flags.each_ref().map(String::as_str));
    let mut client = std::thread::scope(|scope| {
        let opening = scope.spawn(|| SseClient::open(&proxy));
        server.accept();
        opening.join().unwrap()
    });
    let mut hello = proxy.client();
    hello.send(&post(&client.endpoint, &[], hello_with_forms()));
    server.receive();
    assert_eq!(hello.response().status(), 202);
    server.say(r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18"}}"#);
    assert_eq!(client.stream.next_json()["id"], "init");
    client.tell(write_file(1));
    let question = client.stream.next_json();
    client.tell(answer(&question, &accept(ALLOW)));
    assert_eq!(server.receive(), write_file(1));
    server.say(result(1));
    assert_eq!(client.stream.next_json()["id"], 1);
    client.tell(write_file(2));
    let question = client.stream.next_json();
    client.tell(answer(&question, &accept(DENY)));
    is_denied(&client.stream.next_json(), 2, "said no");
    // A server cannot answer in the client's place.
    client.tell(write_file(3));
    let question = client.stream.next_json();
    server.say(json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept(ALLOW) }).to_string());
    assert_eq!(client.stream.next_json()["id"], question["id"]);
    client.tell(answer(&question, &json!({ "action": "decline" })));
    is_denied(&client.stream.next_json(), 3, "said no");
    server.origin.saw_nothing();
}

#[test]
fn in_the_newest_revision_to_a_command() {
    let sandbox = Sandbox::new();
    let proxy = before_puppet(&sandbox, json!({}));
    let ask = |message: String| proxy.client().ask(&post("/mcp", &MODERN_HEADERS, message)).json();
    let asked = ask(modern_call(1, None));
    is_question(&asked, 1);
    assert_eq!(ask(modern_call(2, Some((&asked, &accept(ALLOW)))))["result"]["method"], "tools/call");
    let asked = ask(modern_call(3, None));
    is_denied(&ask(modern_call(4, Some((&asked, &accept(DENY))))), 4, "said no");
    let asked = ask(modern_call(5, None));
    ask(modern_call(6, Some((&asked, &accept(ALLOW_SESSION)))));
    assert_eq!(ask(modern_call(7, None))["result"]["method"], "tools/call");
}

#[test]
fn in_the_newest_revision_to_http() {
    let stage = Relayed::begin(json!({}));
    let send = |message: String| {
        let mut client = stage.proxy.client();
        client.send(&post("/mcp", &MODERN_HEADERS, message));
        client
    };
    let asked = send(modern_call(1, None)).response().json();
    is_question(&asked, 1);
    let mut client = send(modern_call(2, Some((&asked, &accept(ALLOW)))));
    let mut reached = stage.origin.call();
    assert_eq!(reached.text(), modern_call(2, None));
    assert_eq!(reached.head.get("mcp-name").as_deref(), Some("write_file"));
    assert_eq!(reached.head.get("content-length").as_deref(), Some(&*modern_call(2, None).len().to_string()));
    // The server's own rounds are the server's, and each is judged.
    let theirs = json!({
        "resultType": "input_required", "requestState": "theirs",
        "inputRequests": { "word": { "method": "elicitation/create", "params": { "message": "?" } } },
    });
    reached.send(as_json(json!({ "jsonrpc": "2.0", "id": 2, "result": theirs }).to_string()));
    assert_eq!(client.response().json()["result"], theirs);
    let mut round: Value = serde_json::from_str(&modern_call(3, None)).unwrap();
    round["params"]["inputResponses"] = json!({ "word": { "action": "accept", "content": { "word": "yes" } } });
    round["params"]["requestState"] = "theirs".into();
    let asked = send(round.to_string()).response().json();
    is_question(&asked, 3);
    let mut client = send(modern_call(4, Some((&asked, &accept(ALLOW)))));
    let mut reached = stage.origin.call();
    round["id"] = 4.into();
    assert_eq!(serde_json::from_slice::<Value>(&reached.body).unwrap(), round);
    reached.send(as_json(result(4)));
    assert_eq!(client.response().json()["id"], 4);
    let asked = send(modern_call(5, None)).response().json();
    is_denied(&send(modern_call(6, Some((&asked, &json!({ "action": "decline" }))))).response().json(), 6, "said no");
    stage.origin.saw_nothing();
}

/// Two proxies in a row: each asks for itself, and neither takes the other's answers for its own.
#[test]
fn one_behind_another() {
    let sandbox = Sandbox::new();
    let flags = sandbox.asking(json!({}));
    let words = [crate::kit::proxy_program().to_str().unwrap(), "run", &flags[0], &flags[1], &flags[2], "--"];
    let program = fixture_program();
    let inner = shell_words::join(words.into_iter().chain([program.to_str().unwrap(), "puppet"]));
    let mut command = sandbox.command(["run"]);
    command.args(&flags).arg("--").args(shell_words::split(&inner).unwrap());
    let mut client = crate::kit::Running::start(command);
    let mut say = |message: &str| client.send(format!("{message}\n").as_bytes());
    say(&modern_call(1, None));
    let outer = client.json();
    is_question(&outer, 1);
    client.send(format!("{}\n", modern_call(2, Some((&outer, &accept(ALLOW))))).as_bytes());
    let inner = client.json();
    is_question(&inner, 2);
    assert_ne!(inner["result"]["requestState"], outer["result"]["requestState"]);
    client.send(format!("{}\n", modern_call(3, Some((&inner, &accept(ALLOW))))).as_bytes());
    let outer = client.json();
    is_question(&outer, 3);
    client.send(format!("{}\n", modern_call(4, Some((&outer, &accept(ALLOW))))).as_bytes());
    assert_eq!(client.json()["result"]["method"], "tools/call");
}
