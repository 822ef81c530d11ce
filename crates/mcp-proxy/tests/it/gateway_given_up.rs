//! A call that its client cancelled, or that took too long, costs the other clients of its server nothing: they are
//! asked, told and answered as if each were alone. What the server says because of that call reaches none of them.

use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bridge_kit::{Events, expect_stream};
use crate::gateway_kit::{Fake, HttpClient, StdioClient, fake, steps, text_of};
use crate::gateway_subscriptions::listen;
use crate::http_kit::{Listening, Origin, STREAM, accepted, bare, event, json as json_answer};
use crate::kit::{Sandbox, signal, until};

const QUESTIONS: [&str; 3] = ["sampling/createMessage", "elicitation/create", "roots/list"];

fn able() -> Value {
    json!({ "sampling": {}, "elicitation": {}, "roots": {} })
}

fn log(text: &str) -> Value {
    let params = json!({ "level": "info", "data": text });
    json!({ "say": { "jsonrpc": "2.0", "method": "notifications/message", "params": params } })
}

fn question(id: &str, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "message": id } })
}

fn open(gateway: &Listening) -> HttpClient {
    HttpClient::open_with(gateway, &[], able())
}

/// Calls a tool, answers what it is asked, and returns all that came, without the ids that are the gateway's.
fn converse(gateway: &Listening, client: &mut HttpClient, method: &str) -> Vec<Value> {
    let progress = json!({ "progressToken": "$token", "progress": 1 });
    let progress = json!({ "say": { "jsonrpc": "2.0", "method": "notifications/progress", "params": progress } });
    let arguments = steps(json!([log("before"), progress, { "ask": question("mine", method) }]));
    let params = json!({ "name": "a__do", "arguments": arguments, "_meta": { "progressToken": "t" } });
    let call = client.message(method, "tools/call", params);
    let mut beside = client.beside(gateway);
    let connection = beside.send(&call);
    expect_stream(connection);
    let mut all = Vec::new();
    loop {
        let mut message = connection.next_json();
        let is_answer = message["id"] == method;
        if message["method"].is_string() && message.get("id").is_some() {
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "for": method } });
            assert_eq!(client.post(&answer).status(), 202);
            message["id"] = json!("asked");
        }
        all.push(message);
        if is_answer {
            return all;
        }
    }
}

/// Everything that a client sees that lists, calls and is asked.
fn visit(gateway: &Listening) -> Vec<Value> {
    let mut client = open(gateway);
    let mut all = vec![client.ask("list", "tools/list", json!({}))];
    for method in QUESTIONS {
        all.extend(converse(gateway, &mut client, method));
    }
    all
}

/// How a client gives up its call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Cancels,
    Leaves,
    CancelsAndLeaves,
}

/// Begins a call that the server never answers by itself, and gives it up.
fn give_up(sandbox: &Sandbox, gateway: &Listening, way: Way) -> HttpClient {
    let seen = sandbox.seen("a", "notifications/cancelled").len();
    let mut client = open(gateway);
    let params = json!({ "name": "a__do", "arguments": steps(json!([{ "hold": "given up" }])) });
    let call = client.message("one", "tools/call", params);
    let calls = sandbox.seen("a", "tools/call").len();
    let mut waiting = client.beside(gateway);
    waiting.send(&call);
    sandbox.until_seen("a", "tools/call", calls + 1);
    if way != Way::Leaves {
        let params = json!({ "requestId": "one" });
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        assert_eq!(client.post(&cancelled).status(), 202);
    }
    if way != Way::Cancels {
        let headers: Vec<&str> = client.headers.iter().map(String::as_str).collect();
        assert!({
            let mut connection = gateway.client();
            connection.send(&bare("DELETE", "/mcp", &headers));
            connection.response().status() < 300
        });
    }
    sandbox.until_seen("a", "notifications/cancelled", seen + 1);
    client
}

/// A server that does something of its own once a call is cancelled.
fn server(on_cancelled: Value) -> Fake {
    let script = json!({ "notifications/cancelled": on_cancelled });
    fake("a").script("on", script).set("cancel_grace", "200ms")
}

fn top() -> Value {
    json!({ "initialize_wait": 60, "list_wait": 60 })
}

/// Six runs of two clients.
fn is_as_alone(on_cancelled: Value) {
    let (sandbox, alone) = (Sandbox::new(), Sandbox::new());
    let gateway = alone.serve_http(&[server(json!([]))], top());
    let expected = visit(&gateway);
    gateway.end();
    assert_eq!(expected.len(), 1 + 4 * QUESTIONS.len(), "{expected:#?}");
    let gateway = sandbox.serve_http(&[server(on_cancelled)], top());
    for way in [Way::Cancels, Way::Leaves, Way::CancelsAndLeaves] {
        for was_there in [true, false] {
            let mut other = was_there.then(|| open(&gateway));
            let gone = give_up(&sandbox, &gateway, way);
            if let Some(other) = &mut other {
                assert_eq!(text_of(&other.call(1, "a__x", json!({ "text": "1" }))), "a:x:1");
            }
            assert_eq!(visit(&gateway), expected, "{way:?}, {was_there}");
            drop(gone);
        }
    }
    gateway.end();
    sandbox.nothing_is_left();
}

#[test]
fn others_see_no_difference_where_the_server_goes_on_asking() {
    is_as_alone(json!([log("secret"), { "say": question("not yours", QUESTIONS[0]) }]));
}

#[test]
fn others_see_no_difference_where_the_server_asks_late() {
    let late = json!([log("secret"), { "say": question("not yours", QUESTIONS[1]) }, { "free_all": true }]);
    is_as_alone(json!([{ "later": { "ms": 100, "steps": late } }]));
}

#[test]
fn the_process_before_finishes_its_calls_and_ends() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a").tools(&["x", "do", "pid"]).set("cancel_grace", "100ms")], top());
    let (mut one, mut other) = (open(&gateway), open(&gateway));
    let gate = sandbox.gate();
    let params = json!({ "name": "a__do", "arguments": steps(json!([{ "hold": "given up" }])) });
    let call = one.message(1, "tools/call", params);
    let mut waiting = one.beside(&gateway);
    waiting.send(&call);
    sandbox.until_seen("a", "tools/call", 1);
    let params = json!({ "name": "a__do", "arguments": steps(json!([{ "gate": gate }, { "text": "done" }])) });
    let slow = other.message(1, "tools/call", params);
    let mut of_slow = other.beside(&gateway);
    of_slow.send(&slow);
    sandbox.until_seen("a", "tools/call", 2);
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(one.post(&cancelled).status(), 202);
    // New work of either goes to a new process, and the one before is not ended under its call.
    let pid = |client: &mut HttpClient| -> u32 { text_of(&client.call(2, "a__pid", json!({}))).parse().unwrap() };
    let fresh = pid(&mut other);
    let starts = sandbox.starts("a");
    assert_eq!(starts.len(), 2);
    assert_eq!((fresh, pid(&mut one)), (starts[1], starts[1]));
    assert!(sandbox.left_over().contains(&starts[0]));
    sandbox.open_gate();
    assert_eq!(text_of(&of_slow.answers()[0]), "done");
    until("the process before has ended", || !sandbox.left_over().contains(&starts[0]));
    assert_eq!(pid(&mut other), starts[1]);
    gateway.end();
    assert_eq!(sandbox.starts("a").len(), 2);
}

#[test]
fn an_exclusive_server_is_started_again_once_the_process_before_is_gone() {
    for is_asked in [true, false] {
        let sandbox = Sandbox::new();
        let interval = if is_asked { "1h" } else { "100ms" };
        let top = json!({ "healthcheck_interval": interval, "healthcheck_timeout": "200ms" });
        let slow = fake("a").script("survives_eof", true).set("exclusive", true);
        let mut client = StdioClient::open(&sandbox, &[slow], top);
        assert_eq!(client.says("a__x", "1"), "a:x:1");
        let before = sandbox.starts("a")[0];
        if is_asked {
            sandbox.stdout(["servers", "restart", "a"]);
        } else {
            signal(before, Signal::STOP);
        }
        until("it is started again", || sandbox.starts("a").len() > 1);
        assert!(!sandbox.left_over().contains(&before), "the process before is still there");
        until("it answers", || client.call("a__x", json!({}))["result"].is_object());
        client.end();
        sandbox.nothing_is_left();
    }
}

#[test]
fn logs_outside_of_calls_reach_others_after_the_grace_where_answers_have_streams_of_their_own() {
    let (sandbox, (arrived, arrivals)) = (Sandbox::new(), sync_channel(100));
    let (goes_on, is_over) = sync_channel::<()>(1);
    let is_over = Mutex::new(is_over);
    let serving = Origin::start().serve(move |call| {
        let message: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        let result = match method {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {}, "logging": {} },
                "serverInfo": { "name": "a", "version": "1" },
            }),
            "tools/list" => json!({ "tools": [{ "name": "x", "inputSchema": { "type": "object" } }] }),
            "ping" => json!({}),
            "tools/call" => return drop(arrived.send(method.to_owned())),
            "" if call.asked().starts_with("GET") => {
                call.send(STREAM);
                let logged = event(log("on no call's stream")["say"].to_string());
                let is_over = is_over.lock().unwrap();
                while is_over.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout)
                    && call.try_send(&logged).is_ok()
                {}
                return;
            }
            _ => {
                let _ = call.try_send(accepted());
                return drop(arrived.send(method.to_owned()));
            }
        };
        let _ =
            call.try_send(json_answer(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()));
    });
    // The server's threads end once this has been dropped, also if the test fails.
    let _goes_on = goes_on;
    let until_arrived = |method: &str| while arrivals.recv().unwrap() != method {};
    let server = fake("a").set("url", serving.url("/mcp")).set("protocol", "legacy").set("cancel_grace", "50ms");
    let gateway = sandbox.serve_http(&[server], top());
    let mut gone = open(&gateway);
    let call = gone.message("one", "tools/call", json!({ "name": "a__x", "arguments": {} }));
    let mut waiting = gone.beside(&gateway);
    waiting.send(&call);
    until_arrived("tools/call");
    let params = json!({ "requestId": "one" });
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    assert_eq!(gone.post(&cancelled).status(), 202);
    until_arrived("notifications/cancelled");
    let headers: Vec<&str> = gone.headers.iter().map(String::as_str).collect();
    assert!(gateway.client().ask(&bare("DELETE", "/mcp", &headers)).status() < 300);
    let mut other = open(&gateway);
    other.ask(1, "tools/list", json!({}));
    let mut stream = listen(&gateway, &other);
    while stream.next_json()["params"]["data"] != "on no call's stream" {}
    drop(stream);
    gateway.end();
}
