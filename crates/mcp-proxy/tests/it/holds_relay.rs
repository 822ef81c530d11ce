//! Messages held between a client and a server that both speak HTTP: what the exchange does meanwhile,
//! and what leaves in the end.

use serde_json::{Value, json};

use crate::bridge_kit::{Events, LEGACY, SseClient, SseServer, initialize, modern};
use crate::http_kit::{
    Client, LAST_CHUNK, Listening, MODERN, Origin, STREAM, accepted, answer, call, chunk, json as as_json, post, result,
};
use crate::kit::{Sandbox, until};

/// A server by hand, a proxy that holds what `filter` matches, and somebody who decides.
struct Stage {
    sandbox: Sandbox,
    origin: Origin,
    proxy: Listening,
}

impl Stage {
    fn set(filter: &str, more: &[&str]) -> Self {
        let (sandbox, origin) = (Sandbox::new(), Origin::start());
        let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[&["--quiet"], more].concat());
        sandbox.breaks(filter);
        Self { sandbox, origin, proxy }
    }

    /// A client that sent a request and waits.
    fn send(&self, headers: &[&str], message: impl AsRef<[u8]>) -> Client {
        let mut client = self.proxy.client();
        client.send(&post("/mcp", headers, message));
        client
    }

    fn does(&self, args: &[&str]) -> String {
        self.sandbox.stdout(args)
    }
}

fn echo(id: u64, text: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "echo", "arguments": { "text": text } } })
        .to_string()
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}

#[test]
fn a_request_waits_and_leaves_changed() {
    let stage = Stage::set("> tool:echo", &[]);
    let mut client = stage.send(&[], echo(1, "before"));
    let number = stage.sandbox.held_number();
    // Others overtake it.
    let other = stage.send(&[], call(2, "ping"));
    stage.origin.call().send(as_json(result(2)));
    assert_eq!({ other }.response().status(), 200);
    stage.does(&["modify", &number, "--set", "$.params.arguments.text=a longer text than before"]);
    let mut reached = stage.origin.call();
    assert_eq!(parsed(&reached.body)["params"]["arguments"]["text"], "a longer text than before");
    reached.send(as_json(result(1)));
    assert_eq!(client.response().json()["id"], 1);
}

#[test]
fn headers_follow_an_edit_unless_they_are_not_to() {
    let stage = Stage::set("> method:tools/call", &[]);
    let message = modern("1", "tools/call", json!({ "name": "echo", "arguments": {} }));
    let headers = [MODERN, "Mcp-Method: tools/call", "Mcp-Name: echo"];
    for (flag, name) in [(None, "other"), (Some("--raw-headers"), "echo")] {
        let mut client = stage.send(&headers, &message);
        let number = stage.sandbox.held_number();
        let args = ["modify", &number, "--set", "$.params.name=other"];
        stage.does(&args.into_iter().chain(flag).collect::<Vec<_>>());
        let mut reached = stage.origin.call();
        assert_eq!(parsed(&reached.body)["params"]["name"], "other");
        assert_eq!(reached.head.get("mcp-name").as_deref(), Some(name));
        assert_eq!(reached.head.get("mcp-method").as_deref(), Some("tools/call"));
        reached.send(as_json(result(1)));
        assert_eq!(client.response().status(), 200);
    }
}

#[test]
fn an_answer_waits_and_leaves_changed() {
    let stage = Stage::set("< tool:echo", &[]);
    let mut client = stage.send(&[], echo(1, "x"));
    stage.origin.call().send(answer("200 OK", &["Content-Type: application/json", "X-Own: yes"], result(1)));
    let number = stage.sandbox.held_number();
    stage.does(&["modify", &number, "--set", "$.result={\"changed\":true}"]);
    let response = client.response();
    assert_eq!(response.json(), json!({ "jsonrpc": "2.0", "id": 1, "result": { "changed": true } }));
    assert_eq!(response.head.get("x-own").as_deref(), Some("yes"));
}

#[test]
fn a_request_under_another_id_is_answered_under_its_own() {
    let stage = Stage::set("> tool:echo", &[]);
    for stream in [false, true] {
        let mut client = stage.send(&[], echo(1, "x"));
        stage.does(&["modify", &stage.sandbox.held_number(), "--set", "$.id=\"another\""]);
        let mut reached = stage.origin.call();
        assert_eq!(parsed(&reached.body)["id"], "another");
        if stream {
            reached.send(STREAM);
            reached.send(chunk(format!("id: 7\ndata: {}\n\n", result("\"another\""))));
            reached.send(LAST_CHUNK);
            client.head();
            let event = client.next();
            assert_eq!((event.json()["id"].clone(), event.id.as_deref()), (1.into(), Some("7")));
        } else {
            reached.send(as_json(result("\"another\"")));
            assert_eq!(client.response().json()["id"], 1);
        }
    }
}

#[test]
fn a_dropped_request_stays_open_until_the_limit() {
    let stage = Stage::set("> tool:echo", &["--hold-timeout", "3"]);
    let mut client = stage.send(&[], echo(1, "x"));
    stage.does(&["drop", &stage.sandbox.held_number()]);
    assert_eq!(client.response().status(), 504);
    stage.origin.saw_nothing();
}

#[test]
fn a_dropped_answer_stays_away_until_the_limit() {
    let stage = Stage::set("< tool:echo", &["--hold-timeout", "3"]);
    let mut client = stage.send(&[], echo(1, "x"));
    stage.origin.call().send(as_json(result(1)));
    stage.does(&["drop", &stage.sandbox.held_number()]);
    assert_eq!(client.response().status(), 504);
}

#[test]
fn a_request_is_answered_in_the_servers_place() {
    let stage = Stage::set("> tool:echo", &[]);
    let mut client = stage.send(&[], echo(1, "x"));
    stage.does(&["answer", &stage.sandbox.held_number(), "--result", "{\"made\":\"up\"}"]);
    assert_eq!(client.response().json()["result"], json!({ "made": "up" }));
    let mut client = stage.send(&[], echo(2, "x"));
    stage.does(&["drop", &stage.sandbox.held_number(), "--error", "-32042: no"]);
    assert_eq!(client.response().error(), (-32042, 2.into()));
    stage.origin.saw_nothing();
}

#[test]
fn what_is_not_answered_is_accepted_at_once() {
    let stage = Stage::set("kind:notification", &[]);
    let told = r#"{"jsonrpc":"2.0","method":"notifications/told"}"#;
    assert_eq!(stage.send(&[], told).response().status(), 202);
    stage.does(&["forward", &stage.sandbox.held_number()]);
    let mut reached = stage.origin.call();
    assert_eq!(reached.text(), told);
    reached.send(accepted());
    assert_eq!(stage.send(&[], told).response().status(), 202);
    stage.does(&["drop", &stage.sandbox.held_number()]);
    stage.sandbox.held(0);
    stage.origin.saw_nothing();
}

#[test]
fn a_client_that_leaves_takes_its_request_along_or_does_not() {
    let stage = Stage::set("> tool:echo", &[]);
    // Since the newest revision this is how a call is cancelled.
    let message = modern("1", "tools/call", json!({ "name": "echo", "arguments": {} }));
    let client = stage.send(&[MODERN, "Mcp-Method: tools/call", "Mcp-Name: echo"], message);
    stage.sandbox.held(1);
    drop(client);
    stage.sandbox.held(0);
    // Before, the call goes on.
    let client = stage.send(&[], echo(2, "x"));
    let number = stage.sandbox.held_number();
    drop(client);
    stage.does(&["forward", &number]);
    let mut reached = stage.origin.call();
    assert_eq!(parsed(&reached.body)["id"], 2);
    reached.send(as_json(result(2)));
}

#[test]
fn cancelling_a_held_request_ends_its_exchange() {
    let stage = Stage::set("> tool:echo", &[]);
    let mut client = stage.send(&[], echo(1, "x"));
    stage.sandbox.held(1);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(stage.send(&[], cancel).response().status(), 202);
    stage.sandbox.held(0);
    assert_eq!(client.response().status(), 202);
    stage.origin.saw_nothing();
}

#[test]
fn events_without_ids_overtake_a_held_one() {
    let stage = Stage::set("method:notifications/held", &[]);
    let mut client = stage.send(&[], call(1, "x"));
    let mut stream = stage.origin.call();
    stream.send(STREAM);
    client.head();
    let held = r#"{"jsonrpc":"2.0","method":"notifications/held"}"#;
    let free = r#"{"jsonrpc":"2.0","method":"notifications/free"}"#;
    stream.send(chunk(format!("data: {held}\n\ndata: {free}\n\n")));
    assert_eq!(client.next().data, free);
    stage.does(&["forward", &stage.sandbox.held_number()]);
    assert_eq!(client.next().data, held);
    stream.send(chunk(format!("data: {}\n\n", result(1))));
    stream.send(LAST_CHUNK);
    assert_eq!(client.next().data, result(1));
}

#[test]
fn events_with_ids_wait_and_a_dropped_one_keeps_its_id() {
    let stage = Stage::set("method:notifications/held", &[]);
    let mut client = stage.send(&[], call(1, "x"));
    let mut stream = stage.origin.call();
    stream.send(STREAM);
    client.head();
    let held = r#"{"jsonrpc":"2.0","method":"notifications/held"}"#;
    let free = r#"{"jsonrpc":"2.0","method":"notifications/free"}"#;
    stream.send(chunk(format!("id: 1\ndata: {free}\n\nid: 2\ndata: {held}\n\nid: 3\ndata: {free}\n\n")));
    assert_eq!(client.next().id.as_deref(), Some("1"));
    stage.does(&["drop", &stage.sandbox.held_number()]);
    let dropped = client.next();
    assert_eq!((dropped.id.as_deref(), &*dropped.data), (Some("2"), ""));
    let last = client.next();
    assert_eq!((last.id.as_deref(), &*last.data), (Some("3"), free));
    stream.send(chunk(format!("id: 4\ndata: {held}\n\n")));
    let number = stage.sandbox.held_number();
    stream.send(chunk(format!("id: 5\ndata: {}\n\n", result(1))));
    stream.send(LAST_CHUNK);
    stage.does(&["modify", &number, "--set", "$.params={\"a\":1}"]);
    let edited = client.next();
    assert_eq!((edited.id.as_deref(), edited.json()["params"]["a"].clone()), (Some("4"), 1.into()));
    assert_eq!(client.next().id.as_deref(), Some("5"));
}

/// A breakpoint that comes while a stream is open counts from the next event on.
#[test]
fn a_stream_that_is_open_already_is_held_too() {
    let stage = Stage::set("tool:nothing", &[]);
    stage.does(&["break", "rm", "b1"]);
    let mut client = stage.send(&[], call(1, "x"));
    let mut stream = stage.origin.call();
    stream.send(STREAM);
    client.head();
    let told = r#"{"jsonrpc":"2.0","method":"notifications/held"}"#;
    stream.send(chunk(format!("data: {told}\n\n")));
    assert_eq!(client.next().data, told);
    stage.does(&["break", "add", "method:notifications/held"]);
    stream.send(chunk(format!("data: {told}\n\n")));
    stage.does(&["drop", &stage.sandbox.held_number()]);
    stream.send(chunk(format!("data: {}\n\n", result(1))));
    stream.send(LAST_CHUNK);
    assert_eq!(client.next().data, result(1));
}

#[test]
fn a_question_of_the_server_is_answered_in_the_clients_place() {
    let stage = Stage::set("method:elicitation/create", &[]);
    let mut client = stage.send(&["Authorization: Bearer of-the-client"], initialize(LEGACY));
    let opened = answer(
        "200 OK",
        &["Content-Type: application/json", "Mcp-Session-Id: s-1"],
        r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18"}}"#,
    );
    stage.origin.call().send(opened);
    assert_eq!(client.response().status(), 200);
    let mut client = stage.send(&["Mcp-Session-Id: s-1"], echo(1, "x"));
    let mut stream = stage.origin.call();
    stream.send(STREAM);
    client.head();
    stream.send(chunk("data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\"}\n\n"));
    stage.does(&["answer", &stage.sandbox.held_number(), "--result", "{\"action\":\"decline\"}"]);
    let mut answered = stage.origin.call();
    assert_eq!(parsed(&answered.body), json!({ "jsonrpc": "2.0", "id": "q", "result": { "action": "decline" } }));
    assert_eq!(answered.head.get("mcp-session-id").as_deref(), Some("s-1"));
    assert_eq!(answered.head.get("authorization").as_deref(), Some("Bearer of-the-client"));
    answered.send(accepted());
    stream.send(chunk(format!("data: {}\n\n", result(1))));
    stream.send(LAST_CHUNK);
    assert_eq!(client.next().data, result(1), "the client saw nothing of it");
}

#[test]
fn a_call_of_old_is_sent_again() {
    let stage = Stage::set("tool:nothing", &[]);
    let message = modern("1", "tools/call", json!({ "name": "echo", "arguments": {} }));
    let mut client = stage.send(&[MODERN, "Mcp-Method: tools/call", "Mcp-Name: echo"], &message);
    stage.origin.call().send(as_json(result(1)));
    assert_eq!(client.response().status(), 200);
    let again = std::thread::scope(|scope| {
        let again = scope.spawn(|| stage.does(&["replay", "--live", "#1", "--set", "$.params.name=other"]));
        let mut reached = stage.origin.call();
        let id = parsed(&reached.body)["id"].clone();
        assert_eq!(reached.head.get("mcp-name").as_deref(), Some("other"));
        reached.send(as_json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"again":true}}}}"#)));
        again.join().unwrap()
    });
    assert!(again.contains("\"again\":true") || again.contains("\"again\": true"), "{again}");
}

#[test]
fn the_older_transport_holds_both_ways() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &["--quiet"]);
    sandbox.breaks("tool:echo");
    let mut client = std::thread::scope(|scope| {
        let opening = scope.spawn(|| SseClient::open(&proxy));
        server.accept();
        opening.join().unwrap()
    });
    client.tell(echo(1, "before"));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.params.arguments.text=after"]);
    let message = server.receive();
    assert_eq!(parsed(message.as_bytes())["params"]["arguments"]["text"], "after");
    server.say(result(1));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.result={\"a\":1}"]);
    assert_eq!(client.json()["result"], json!({ "a": 1 }));
    client.tell(echo(2, "x"));
    sandbox.stdout(["answer", &sandbox.held_number(), "--result", "{\"made\":\"up\"}"]);
    assert_eq!(client.json(), json!({ "jsonrpc": "2.0", "id": 2, "result": { "made": "up" } }));
}

#[test]
fn nobody_waits_longer_than_the_limit() {
    let stage = Stage::set("tool:echo", &["--hold-timeout", "0.2"]);
    let mut client = stage.send(&[], echo(1, "x"));
    stage.origin.call().send(as_json(result(1)));
    assert_eq!(client.response().json()["id"], 1);
    // The limit is for the call and its answer together.
    until("one of them is on record as released", || {
        let id = stage.sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
        stage.does(&["inspect", "--json", &id]).matches("\"outcome\":\"released\"").count() == 1
    });
}
