//! A message over several lines reaches peers that know only lines, as the same JSON.

use serde_json::Value;

use crate::bridge_kit::{Events, LEGACY, Pair, Session, SseClient, initialize, opened};
use crate::http_kit::{Origin, answer, call, json as json_answer};
use crate::kit::Sandbox;

/// As pretty as it comes, and as it comes from other systems.
const REQUEST: &str = "{\r\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n\t\"method\": \"ignore/this\"\n}\r\n";
const ANSWER: &str = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\r\n  \"result\": { \"text\": \"a\\nb\" }\n}\n";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn to_a_server_on_a_pipe() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let waiting = session.send(REQUEST);
    assert_eq!(json(&session.until_seen("ignore/this")), json(REQUEST));
    drop(waiting);
    let mut client = SseClient::open(&proxy);
    client.tell(REQUEST);
    client.tell(call(2, "seen"));
    let seen = client.json();
    assert_eq!(json(seen["result"]["lines"][0].as_str().expect("a line")), json(REQUEST));
    drop(client);
    proxy.end();
}

#[test]
fn to_a_client_on_a_pipe() {
    let mut pair = Pair::open();
    pair.send(call(1, "x"));
    pair.origin.call().send(json_answer(ANSWER));
    let line = String::from_utf8(pair.proxy.line()).unwrap();
    assert_eq!(json(&line), json(ANSWER));
    pair.ask(2);
    pair.end();
}

#[test]
fn to_a_client_of_the_older_transport() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[]);
    let mut client = SseClient::open(&proxy);
    client.tell(initialize(LEGACY));
    origin.call().send(answer("200 OK", &["Content-Type: application/json"], opened(LEGACY)));
    client.message();
    client.tell(call(1, "x"));
    origin.call().send(json_answer(ANSWER));
    assert_eq!(json(&client.stream.next().data), json(ANSWER));
    drop(client);
    proxy.end();
}
