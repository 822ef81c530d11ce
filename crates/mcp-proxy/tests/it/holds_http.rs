//! Messages held on the other transports: what is changed leaves with everything that goes with it.

use serde_json::{Value, json};

use crate::bridge_kit::{Events, INITIALIZED, LEGACY, SseClient, SseServer, initialize};
use crate::hold_kit::call;
use crate::http_kit::{LAST_CHUNK, MODERN, Origin, STREAM, accepted, event, json as json_answer, post, result};
use crate::kit::Sandbox;

const NAMED: [&str; 3] = [MODERN, "Mcp-Method: tools/call", "Mcp-Name: echo"];

/// A call of the newest revision, which says in its headers what it calls.
fn named_call(id: u64) -> Vec<u8> {
    post("/mcp", &NAMED, call(id, "echo", "before").to_string())
}

#[test]
fn headers_follow_an_edit_unless_they_are_to_stay() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    sandbox.stdout(["break", "add", "> tool:echo"]);
    for (id, more, expected) in [(1, None, "other"), (2, Some("--raw-headers"), "echo")] {
        let mut client = proxy.client();
        client.send(&named_call(id));
        let number = sandbox.held_number();
        let edit =
            ["modify", &number, "--set", "$.params.name=other", "--set", "$.params.arguments.text=after, longer"];
        sandbox.stdout(edit.into_iter().chain(more));
        let mut arrived = origin.call();
        assert_eq!(arrived.head.get("mcp-name").as_deref(), Some(expected));
        let body: Value = serde_json::from_slice(&arrived.body).unwrap();
        assert_eq!(body["params"], json!({ "name": "other", "arguments": { "text": "after, longer" } }));
        arrived.send(json_answer(result(id)));
        assert_eq!(client.response().json()["id"], id);
    }
    proxy.end();
}

#[test]
fn an_answer_over_http_is_held_and_changed() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    sandbox.stdout(["break", "add", "< tool:echo"]);
    let mut client = proxy.client();
    client.send(&named_call(1));
    origin.call().send(json_answer(result(1)));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.result.more=[1,2,3]"]);
    let response = client.response();
    assert!(response.is_whole, "{response:?}");
    assert_eq!(response.json(), json!({ "jsonrpc": "2.0", "id": 1, "result": { "more": [1, 2, 3] } }));
    proxy.end();
}

/// What the server asks in the middle of a call is held on the stream that it came by.
#[test]
fn a_question_on_a_stream_is_held_and_changed() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    sandbox.stdout(["break", "add", "method:elicitation/create", "--name", "questions"]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], call(1, "echo", "x").to_string()));
    let mut answering = origin.call();
    answering.send(STREAM);
    answering
        .send(event(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Your name?"}}"#));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.params.message=Your quest?"]);
    client.head();
    let question: Value = serde_json::from_str(&client.message()).unwrap();
    assert_eq!((&question["id"], &question["params"]["message"]), (&"q".into(), &"Your quest?".into()));
    // Its answer is held too, and given from here.
    let mut other = proxy.client();
    other.send(&post("/mcp", &[], r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}"#));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.result.action=decline"]);
    let mut told = origin.call();
    assert_eq!(told.text(), r#"{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}"#);
    told.send(accepted());
    assert_eq!(other.response().status(), 202);
    answering.send(event(result(1)));
    answering.send(LAST_CHUNK);
    assert_eq!(client.message(), result(1));
    proxy.end();
}

#[test]
fn what_is_dropped_over_http_is_answered_all_the_same() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    sandbox.stdout(["hold", "on"]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#));
    sandbox.stdout(["drop", &sandbox.held_number()]);
    assert_eq!(client.response().status(), 202);
    client.send(&named_call(2));
    sandbox.stdout(["drop", &sandbox.held_number(), "--error", "no"]);
    assert_eq!(client.response().error(), (5080, 2.into()));
    client.send(&named_call(3));
    sandbox.stdout(["answer", &sandbox.held_number(), "--result", "{\"made\":\"up\"}"]);
    assert_eq!(client.response().json()["result"]["made"], "up");
    origin.saw_nothing();
    proxy.end();
}

#[test]
fn the_older_transport_holds_both_ways() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &["--quiet"]);
    let mut client = std::thread::scope(|scope| {
        scope.spawn(|| server.accept());
        SseClient::open(&proxy)
    });
    sandbox.stdout(["break", "add", "tool:echo"]);
    let mut posting = proxy.client();
    posting.send(&post(&client.endpoint, &[], call(1, "echo", "before").to_string()));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.params.arguments.text=after"]);
    assert_eq!(server.receive(), call(1, "echo", "after").to_string());
    assert_eq!(posting.response().status(), 202);
    server.say(result(1));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.result.late=true"]);
    assert_eq!(client.stream.next_json(), json!({ "jsonrpc": "2.0", "id": 1, "result": { "late": true } }));
    drop(client);
    proxy.end();
}

/// HTTP in front of a command, and a command's client in front of HTTP.
#[test]
fn crossings_hold_too() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let mut client = proxy.client();
    let opened = client.ask(&post("/mcp", &[], initialize(LEGACY)));
    let session = format!("Mcp-Session-Id: {}", opened.head.get("mcp-session-id").unwrap());
    assert_eq!(client.ask(&post("/mcp", &[&session], INITIALIZED)).status(), 202);
    sandbox.stdout(["break", "add", "> tool:echo"]);
    client.send(&post("/mcp", &[&session], call(7, "echo", "before").to_string()));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.params.answer={\"seen\":\"edited\"}"]);
    assert_eq!(client.response().json()["result"], json!({ "seen": "edited" }));
    proxy.end();

    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let mut proxy = sandbox.run_to("streamable-http", &origin.url("/mcp"), &["--quiet", "--name", "bridge"]);
    proxy.send(format!("{}\n", crate::http_kit::call(1, "ping")).as_bytes());
    origin.call().send(json_answer(result(1)));
    assert_eq!(proxy.json()["id"], 1);
    sandbox.stdout(["hold", "on"]);
    proxy.send(format!("{}\n", call(2, "echo", "before")).as_bytes());
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.params.arguments.text=after"]);
    let mut arrived = origin.call();
    assert_eq!(arrived.text(), call(2, "echo", "after").to_string());
    arrived.send(json_answer(result(2)));
    sandbox.held(1);
    sandbox.stdout(["hold", "off", "bridge"]);
    assert_eq!(proxy.json()["id"], 2);
    assert!(proxy.end().0.success());
}
