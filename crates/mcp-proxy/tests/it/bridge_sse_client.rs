//! Clients of the older HTTP transport in front of a command, and of a server of Streamable HTTP.

use serde_json::{Value, json};

use crate::bridge_kit::{Events, INITIALIZED, LEGACY, SseClient, initialize, is_process, opened, say};
use crate::http_kit::{
    Call, LAST_CHUNK, Listening, Origin, Recording, STREAM, accepted, answer, call, event, get, json as json_answer,
    post, result,
};
use crate::kit::{Sandbox, until};

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;

fn progress(at: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{at}}}}}"#)
}

/// A client that has begun, and the process of its server.
fn open<'a>(proxy: &'a Listening) -> (SseClient<'a>, u32) {
    let mut client = SseClient::open(proxy);
    client.tell(initialize(LEGACY));
    let opened = client.json();
    let pid = opened["result"]["serverInfo"]["version"].as_str().and_then(|pid| pid.parse().ok());
    (client, pid.unwrap_or_else(|| panic!("the server is a puppet: {opened}")))
}

#[test]
fn each_connection_has_a_command_of_its_own_which_ends_with_it() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let mut clients: Vec<(SseClient<'_>, u32)> = (0..3).map(|_| open(&proxy)).collect();
    let mut pids: Vec<u32> = clients.iter().map(|(_, pid)| *pid).collect();
    pids.dedup();
    assert_eq!(pids.len(), 3);
    // The same id in each of them.
    for (client, _) in &clients {
        client.tell(call(1, "hello"));
    }
    for (client, _) in &mut clients {
        assert_eq!(client.json()["result"]["method"], "hello");
    }
    let (left, pid) = clients.pop().expect("there are three");
    let endpoint = left.endpoint.clone();
    drop(left);
    until("its server is gone", || !is_process(pid));
    assert_eq!(proxy.client().ask(&post(&endpoint, &[], call(2, "hello"))).status(), 404);
    for (client, pid) in &mut clients {
        client.tell(call(2, "still here"));
        assert_eq!(client.json()["result"]["method"], "still here");
        assert!(is_process(*pid));
    }
    proxy.end();
    assert!(!pids.into_iter().any(is_process));
}

#[test]
fn a_command_that_ends_answers_its_calls_and_ends_the_stream() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let (mut client, _) = open(&proxy);
    client.tell(call(1, "ignore/one"));
    client.tell(call("\"two\"", "ignore/two"));
    client.tell(say(&[CHANGED]));
    assert_eq!(client.message(), CHANGED);
    client.tell(r#"{"jsonrpc":"2.0","method":"exit/7"}"#);
    for id in [json!(1), json!("two")] {
        let failed = client.json();
        assert_eq!((&failed["id"], &failed["error"]["code"]), (&id, &json!(5030)));
    }
    assert_eq!(client.stream.all(), []);
    assert_eq!(client.post(call(3, "x")).status(), 404);
    assert_eq!(open(&proxy).0.post(call(3, "x")).status(), 202, "the next client gets a server");
    proxy.end();
}

#[test]
fn a_command_that_cannot_be_started_ends_the_stream_at_once() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen(["--transport", "stdio", "--target-command", "/no/such/server"]);
    for _ in 0..3 {
        let mut client = SseClient::open(&proxy);
        assert_eq!(client.stream.all(), []);
    }
    let said = proxy.end();
    assert!(said.contains("cannot start `/no/such/server`"), "{said}");
}

#[test]
fn a_command_may_ask_its_client_and_say_what_it_likes_in_order() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let (mut client, _) = open(&proxy);
    client.tell(call(1, "ignore/this"));
    // Its own id 1, in the middle of the client's call 1.
    let said = [ASK.to_owned(), progress(1), CHANGED.to_owned(), progress(2)];
    client.tell(say(&said));
    assert_eq!([client.message(), client.message(), client.message(), client.message()], said);
    client.tell(result(1));
    client.tell(call(2, "seen"));
    let seen = client.json();
    assert_eq!(seen["result"]["lines"].as_array().and_then(|lines| lines.last()), Some(&json!(result(1))));
    client.tell(say(&[result(1)]));
    assert_eq!(client.message(), result(1));
    drop(client);
    proxy.end();
    let recording = Recording::of(&sandbox);
    let answers: Vec<_> = recording.messages().into_iter().filter(|it| it.raw == result(1).as_bytes()).collect();
    let asked = |text: &str| recording.messages().into_iter().find(|it| it.raw == text.as_bytes()).unwrap().id.clone();
    assert_eq!(answers[0].correlated_id, Some(asked(ASK)));
    assert_eq!(answers[1].correlated_id, Some(asked(&call(1, "ignore/this"))));
}

/// A client whose server is at an address, opened, without a stream for what belongs to no call.
fn open_http<'a>(proxy: &'a Listening, origin: &Origin) -> SseClient<'a> {
    let mut client = SseClient::open(proxy);
    origin.saw_nothing();
    client.tell(initialize(LEGACY));
    let mut opening = origin.call();
    assert_eq!((opening.text(), opening.head.get("mcp-session-id")), (initialize(LEGACY), None));
    opening.send(answer("200 OK", &["Content-Type: application/json", "Mcp-Session-Id: s1"], opened(LEGACY)));
    assert_eq!(client.message(), opened(LEGACY));
    client.tell(INITIALIZED);
    take(origin, INITIALIZED).send(accepted());
    origin.call().send(answer("405 Method Not Allowed", &[], ""));
    client
}

/// A message that comes in the session that was agreed on.
#[track_caller]
fn take(origin: &Origin, message: &str) -> Call {
    let request = origin.call();
    assert_eq!((request.asked().as_str(), request.text().as_str()), ("POST /mcp", message));
    assert_eq!(request.head.get("mcp-session-id").as_deref(), Some("s1"));
    assert_eq!(request.head.get("mcp-protocol-version").as_deref(), Some(LEGACY));
    request
}

#[test]
fn a_session_with_a_server_of_streamable_http_ends_with_the_stream() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[]);
    let mut client = open_http(&proxy, &origin);
    client.tell(call(1, "json"));
    take(&origin, &call(1, "json")).send(json_answer(result(1)));
    assert_eq!(client.message(), result(1));
    client.tell(call(2, "stream"));
    let mut streaming = take(&origin, &call(2, "stream"));
    streaming.send([STREAM, &event(progress(1)), &event(result(2)), LAST_CHUNK].concat());
    assert_eq!([client.message(), client.message()], [progress(1), result(2)]);
    // One that is still open when the client leaves is given up, and the server hears that it is over.
    client.tell(call(3, "open"));
    let mut open = take(&origin, &call(3, "open"));
    let endpoint = client.endpoint.clone();
    drop(client);
    open.until_closed();
    let mut goodbye = origin.call();
    assert_eq!((goodbye.asked().as_str(), goodbye.head.get("mcp-session-id").as_deref()), ("DELETE /mcp", Some("s1")));
    goodbye.send(accepted());
    assert_eq!(proxy.client().ask(&post(&endpoint, &[], call(4, "x"))).status(), 404);
    proxy.end();
}

#[test]
fn a_server_of_streamable_http_may_ask_within_a_call_and_beside_it() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[]);
    let mut client = SseClient::open(&proxy);
    client.tell(initialize(LEGACY));
    let headers = ["Content-Type: application/json", "Mcp-Session-Id: s1"];
    origin.call().send(answer("200 OK", &headers, opened(LEGACY)));
    client.message();
    client.tell(INITIALIZED);
    take(&origin, INITIALIZED).send(accepted());
    let mut general = origin.call();
    assert_eq!(general.asked(), "GET /mcp");
    general.send(STREAM);

    client.tell(call(1, "x"));
    let mut waiting = take(&origin, &call(1, "x"));
    waiting.send([STREAM, &event(ASK)].concat());
    assert_eq!(client.message(), ASK);
    client.tell(result(1));
    take(&origin, &result(1)).send(accepted());
    general.send(event(ASK.replace("\"id\":1", "\"id\":\"g\"")));
    assert_eq!(client.json()["id"], "g");
    client.tell(result("\"g\""));
    take(&origin, &result("\"g\"")).send(accepted());
    waiting.send([&event(result(1))[..], LAST_CHUNK].concat());
    assert_eq!(client.message(), result(1));
    drop(client);
    origin.call().send(accepted());
    proxy.end();
}

#[test]
fn answers_that_are_none_become_errors_on_the_stream() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[]);
    let mut client = open_http(&proxy, &origin);
    let broken: [(Vec<u8>, i64); 5] = [
        (answer("401 Unauthorized", &["WWW-Authenticate: Bearer"], ""), 5025),
        (answer("500 Internal Server Error", &["Content-Type: text/html"], "<p>oh</p>"), 5021),
        (answer("200 OK", &["Content-Type: text/html"], "<p>hello</p>"), 5022),
        (accepted(), 5022),
        ([STREAM, &event(CHANGED), LAST_CHUNK].concat(), 5023),
    ];
    for (at, (wrong, code)) in broken.iter().enumerate() {
        client.tell(call(at, "x"));
        take(&origin, &call(at, "x")).send(wrong);
        let mut failed = client.json();
        if failed["method"] == "notifications/tools/list_changed" {
            failed = client.json();
        }
        assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(at), &json!(code)));
    }
    client.tell(call(9, "lost"));
    let mut lost = take(&origin, &call(9, "lost"));
    lost.send(answer("404 Not Found", &[], ""));
    assert_eq!(client.json()["error"]["code"], 5024);
    let mut opening = origin.call();
    assert_eq!(opening.text(), initialize(LEGACY));
    opening.send(answer("200 OK", &["Content-Type: application/json", "Mcp-Session-Id: s1"], opened(LEGACY)));
    take(&origin, INITIALIZED).send(accepted());
    origin.call().send(answer("405 Method Not Allowed", &[], ""));
    client.tell(call(10, "x"));
    take(&origin, &call(10, "x")).send(json_answer(result(10)));
    assert_eq!(client.message(), result(10));
    drop(client);
    origin.call().send(accepted());
    proxy.end();
}

#[test]
fn a_server_that_is_not_there_fails_each_call_on_its_stream() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let url = origin.url("/mcp");
    drop(origin);
    for transport in ["streamable-http", "sse"] {
        // A client of `/sse` in front of an SSE server gets the server's own stream, or its absence.
        let proxy = sandbox.listen_to(transport, &url, &["--no-record"]);
        if transport == "sse" {
            assert_eq!(proxy.client().ask(&get("/sse", &[])).status(), 502);
        } else {
            let mut client = SseClient::open(&proxy);
            for id in 0..3 {
                client.tell(call(id, "x"));
                let failed: Value = client.json();
                assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(id), &json!(5020)));
            }
        }
        let said = proxy.end();
        assert_eq!(said.matches("cannot connect to").count(), 1, "{said}");
    }
}
