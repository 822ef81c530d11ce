//! Messages held where the two sides speak different transports: there we are the server that a client
//! sees, and the exchange waits for us.

use serde_json::{Value, json};

use crate::bridge_kit::{Events, Session, SseClient, modern};
use crate::http_kit::{Listening, MODERN, Origin, json as as_json, post, result};
use crate::kit::{Sandbox, until};

/// A proxy in front of a puppet on pipes that holds what `filter` matches.
fn stage(filter: &str, more: &[&str]) -> (Sandbox, Listening) {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_fixture(&["puppet"], &[&["--quiet"], more].concat());
    sandbox.breaks(filter);
    (sandbox, proxy)
}

fn echo(id: u64, text: &str) -> String {
    let params = json!({ "name": "echo", "arguments": { "text": text } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_call_of_a_session_waits_and_leaves_changed() {
    let (sandbox, proxy) = stage("tool:echo", &[]);
    let session = Session::open(&proxy);
    let mut client = session.send(echo(1, "before"));
    let number = sandbox.held_number();
    sandbox.stdout(["modify", &number, "--set", "$.params.arguments.text=after", "--set", "$.id=\"another\""]);
    let line = parsed(&session.until_seen("after"));
    assert_eq!(line["id"], "another");
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.result={\"changed\":true}"]);
    let response = client.response();
    assert_eq!(response.json(), json!({ "jsonrpc": "2.0", "id": 1, "result": { "changed": true } }));
}

#[test]
fn a_dropped_call_of_a_session_stays_open_until_the_limit() {
    for filter in ["> tool:echo", "< tool:echo"] {
        let (sandbox, proxy) = stage(filter, &["--hold-timeout", "3"]);
        let session = Session::open(&proxy);
        let mut client = session.send(echo(1, "x"));
        sandbox.stdout(["drop", &sandbox.held_number()]);
        assert_eq!(client.response().status(), 504);
    }
}

#[test]
fn a_call_of_a_session_is_answered_for_its_server() {
    let (sandbox, proxy) = stage("> tool:echo", &[]);
    let session = Session::open(&proxy);
    let mut client = session.send(echo(1, "x"));
    sandbox.stdout(["answer", &sandbox.held_number(), "--result", "{\"made\":\"up\"}"]);
    assert_eq!(client.response().json()["result"], json!({ "made": "up" }));
    let mut client = session.send(echo(2, "x"));
    sandbox.stdout(["drop", &sandbox.held_number(), "--error", "-32042: no"]);
    assert_eq!(client.response().error(), (-32042, 2.into()));
    assert!(session.seen().iter().all(|line| !line.contains("tools/call")));
}

#[test]
fn a_call_of_a_session_can_be_taken_back() {
    let (sandbox, proxy) = stage("> tool:echo", &[]);
    let session = Session::open(&proxy);
    let mut client = session.send(echo(1, "x"));
    sandbox.held(1);
    session.tell(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    sandbox.held(0);
    assert_eq!(client.response().status(), 200);
    assert!(session.seen().iter().all(|line| !line.contains("tools/call") && !line.contains("cancelled")));
}

#[test]
fn a_client_without_a_session_takes_its_call_along() {
    let (sandbox, proxy) = stage("> tool:echo", &[]);
    let message = modern("1", "tools/call", json!({ "name": "echo", "arguments": {} }));
    let headers = [MODERN, "Mcp-Method: tools/call", "Mcp-Name: echo"];
    let mut client = proxy.client();
    client.send(&post("/mcp", &headers, &message));
    sandbox.held(1);
    drop(client);
    sandbox.held(0);
    let mut client = proxy.client();
    client.send(&post("/mcp", &headers, &message));
    sandbox.stdout(["forward", &sandbox.held_number()]);
    assert_eq!(client.response().json()["id"], 1);
}

#[test]
fn what_the_server_asks_is_answered_for_its_client() {
    let (sandbox, proxy) = stage("method:elicitation/create", &[]);
    let session = Session::open(&proxy);
    session.say(&[r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#]);
    sandbox.stdout(["answer", &sandbox.held_number(), "--result", "{\"action\":\"accept\"}"]);
    let line = parsed(&session.until_seen("accept"));
    assert_eq!(line, json!({ "jsonrpc": "2.0", "id": "q", "result": { "action": "accept" } }));
    // One that is let go reaches the client, with an id of its own as an event.
    let mut general = session.listen(None);
    session.say(&[r#"{"jsonrpc":"2.0","id":"r","method":"elicitation/create","params":{}}"#]);
    let number = sandbox.held_number();
    session.say(&[r#"{"jsonrpc":"2.0","method":"notifications/free"}"#]);
    let free = general.next();
    assert_eq!(free.json()["method"], "notifications/free");
    sandbox.stdout(["forward", &number]);
    let asked = general.next();
    assert_eq!(asked.json()["id"], "r");
    assert!(asked.id.is_some() && asked.id != free.id);
}

#[test]
fn a_server_that_dies_leaves_nobody_waiting() {
    let (sandbox, proxy) = stage("> tool:echo", &[]);
    let session = Session::open(&proxy);
    let mut client = session.send(echo(1, "x"));
    sandbox.held(1);
    crate::kit::signal(session.pid, rustix::process::Signal::KILL);
    let (code, id) = client.response().error();
    assert_eq!((code, id), (5030, 1.into()));
    sandbox.held(0);
}

#[test]
fn a_session_that_ends_leaves_nobody_waiting() {
    let (sandbox, proxy) = stage("> tool:echo", &[]);
    let session = Session::open(&proxy);
    let mut client = session.send(echo(1, "x"));
    sandbox.held(1);
    assert_eq!(session.delete().status(), 200);
    assert_eq!(client.response().status(), 404);
    sandbox.held(0);
}

#[test]
fn an_older_client_holds_both_ways() {
    let (sandbox, proxy) = stage("tool:echo", &[]);
    let mut client = SseClient::open(&proxy);
    client.tell(echo(1, "before"));
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.id=\"another\""]);
    sandbox.stdout(["modify", &sandbox.held_number(), "--set", "$.result.changed=true"]);
    let answer = client.json();
    assert_eq!((&answer["id"], &answer["result"]["changed"]), (&1.into(), &true.into()), "{answer}");
    client.tell(echo(2, "x"));
    sandbox.stdout(["answer", &sandbox.held_number(), "--error", "no"]);
    assert_eq!(client.json()["error"]["message"], "no");
}

/// A client on pipes, a server with an address: the headers are ours to make.
#[test]
fn a_client_on_pipes_holds_what_goes_to_an_address() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let mut proxy = sandbox.run_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let message = |id: &str| format!("{}\n", modern(id, "tools/call", json!({ "name": "echo", "arguments": {} })));
    proxy.send(format!("{}\n", modern("0", "ping", json!({}))).as_bytes());
    origin.call().send(as_json(result(0)));
    assert_eq!(proxy.json()["id"], 0);
    sandbox.breaks("> tool:echo");
    for (flag, name) in [(None, "other"), (Some("--raw-headers"), "echo")] {
        proxy.send(message("1").as_bytes());
        let number = sandbox.held_number();
        let args = ["modify", &number, "--set", "$.params.name=other"];
        sandbox.stdout(args.into_iter().chain(flag));
        let mut reached = origin.call();
        assert_eq!(reached.head.get("mcp-name").as_deref(), Some(name));
        reached.send(as_json(result(1)));
        assert_eq!(proxy.json()["id"], 1);
    }
    proxy.send(message("2").as_bytes());
    sandbox.stdout(["drop", &sandbox.held_number(), "--error", "7: no"]);
    assert_eq!(proxy.json()["error"]["code"], 7);
    // What is held when the client sends no more is waited for.
    proxy.send(message("3").as_bytes());
    let number = sandbox.held_number();
    proxy.close_stdin();
    sandbox.stdout(["forward", &number]);
    origin.call().send(as_json(result(3)));
    assert_eq!(proxy.json()["id"], 3);
    let (status, errors) = proxy.end();
    assert!(status.success(), "{errors}");
}

#[test]
fn a_call_of_old_is_sent_again_unseen_by_its_client() {
    let (sandbox, proxy) = stage("tool:nothing", &[]);
    let session = Session::open(&proxy);
    assert_eq!(session.ask(echo(1, "first")).status(), 200);
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    let mut number = None;
    until("the call is on record", || {
        let lines = sandbox.stdout(["inspect", "--json", &id]);
        let call = lines.lines().map(parsed).find(|line| line["jsonrpc_id"] == 1 && line["kind"] == "request");
        number = call.map(|call| format!("#{}", call["sequence"]));
        number.is_some()
    });
    let said = sandbox.stdout(["replay", "--live", number.as_deref().unwrap()]);
    assert!(said.contains("tools/call"), "{said}");
    let seen = session.seen();
    assert_eq!(seen.iter().filter(|line| line.contains("\"first\"")).count(), 2, "{seen:?}");
}
