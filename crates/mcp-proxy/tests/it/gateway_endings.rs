//! A gateway that is asked to end answers what is open, and leaves no process behind.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::gateway_kit::{Fake, HttpClient, StdioClient, fake, steps, text_of};
use crate::kit::{Sandbox, until};

const CALLS: usize = 500;

fn roomy(name: &str) -> Fake {
    fake(name).set("in_flight", 1000).set("queue", 1000)
}

/// Calls that one server leaves open, the last of which has it wait at the gate and then answer all.
fn held(sandbox: &Sandbox) -> Vec<Value> {
    let gate = sandbox.gate();
    let each = |number: usize| match number + 1 == CALLS {
        false => json!([{ "hold": number.to_string() }]),
        true => json!([{ "hold": number.to_string() }, { "gate": gate }, { "free_all": true }]),
    };
    (0..CALLS).map(each).collect()
}

#[test]
fn five_hundred_calls_on_a_pipe_are_answered_before_the_end() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[roomy("a")], json!({ "in_flight_per_client": 1000, "drain": "1m" }));
    let ids: Vec<Value> = held(&sandbox).into_iter().map(|it| client.begin("a__do", steps(it))).collect();
    sandbox.until_seen("a", "tools/call", CALLS);
    client.proxy.terminate();
    sandbox.open_gate();
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(text_of(&client.answer(id)), number.to_string());
    }
    let (status, said) = client.end_somehow();
    assert_eq!(status.code(), Some(0), "{said}");
    sandbox.nothing_is_left();
}

#[test]
fn five_hundred_calls_that_no_server_answers_are_answered_by_us() {
    let sandbox = Sandbox::new();
    let top = json!({ "in_flight_per_client": 1000, "drain": "100ms" });
    let mut client = StdioClient::open(&sandbox, &[roomy("a")], top);
    let hold = steps(json!([{ "hold": "x" }]));
    let ids: Vec<Value> = (0..CALLS).map(|_| client.begin("a__do", hold.clone())).collect();
    sandbox.until_seen("a", "tools/call", CALLS);
    client.proxy.terminate();
    for id in &ids {
        assert_eq!(client.answer(id)["error"]["data"]["mcp-proxy/reason"], "ending");
    }
    assert_eq!(client.end_somehow().0.code(), Some(0));
    sandbox.nothing_is_left();
}

#[test]
fn five_hundred_calls_over_http_are_answered_before_the_end() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[roomy("a")], json!({ "in_flight_per_client": 1000, "drain": "1m" }));
    let clients: Vec<HttpClient> = (0..10).map(|_| HttpClient::open(&gateway)).collect();
    let mut open: Vec<HttpClient> = Vec::new();
    for (number, it) in held(&sandbox).into_iter().enumerate() {
        if number + 1 == CALLS {
            // The last one has the server read no more.
            sandbox.until_seen("a", "tools/call", CALLS - 1);
        }
        let mut client = clients[number % 10].beside(&gateway);
        let params = json!({ "name": "a__do", "arguments": steps(it) });
        let message = client.message(number, "tools/call", params);
        client.send(&message);
        open.push(client);
    }
    sandbox.until_seen("a", "tools/call", CALLS);
    gateway.terminate();
    sandbox.open_gate();
    let mut answered: BTreeSet<usize> = BTreeSet::new();
    for (number, client) in open.iter_mut().enumerate() {
        let all = client.answers();
        let answer = all.iter().find(|message| message["id"] == number).unwrap_or_else(|| panic!("{all:?}"));
        assert_eq!(text_of(answer), number.to_string());
        answered.insert(number);
    }
    assert_eq!(answered.len(), CALLS);
    let (status, said) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    sandbox.nothing_is_left();
}

#[test]
fn calls_over_http_that_no_server_answers_are_answered_by_us() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[roomy("a")], json!({ "drain": "100ms" }));
    let client = HttpClient::open(&gateway);
    let mut open: Vec<HttpClient> = (0..20).map(|_| client.beside(&gateway)).collect();
    for (number, client) in open.iter_mut().enumerate() {
        let params = json!({ "name": "a__do", "arguments": steps(json!([{ "hold": "x" }])) });
        let message = client.message(number, "tools/call", params);
        client.send(&message);
    }
    sandbox.until_seen("a", "tools/call", 20);
    gateway.terminate();
    for (number, client) in open.iter_mut().enumerate() {
        let all = client.answers();
        let answer = all.iter().find(|message| message["id"] == number).unwrap_or_else(|| panic!("{all:?}"));
        assert_eq!(answer["error"]["data"]["mcp-proxy/reason"], "ending", "{answer}");
    }
    let (status, said) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    sandbox.nothing_is_left();
}

#[test]
fn whoever_asks_twice_means_now() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a")], json!({ "drain": "1h" }));
    let mut client = HttpClient::open(&gateway);
    let hold = json!({ "name": "a__do", "arguments": steps(json!([{ "hold": "x" }])) });
    let message = client.message(1, "tools/call", hold);
    client.send(&message);
    sandbox.until_seen("a", "tools/call", 1);
    gateway.terminate();
    until("it takes no more clients", || std::net::TcpStream::connect(("127.0.0.1", gateway.port)).is_err());
    gateway.terminate();
    let (status, said) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    sandbox.nothing_is_left();
}

#[test]
fn a_client_that_leaves_takes_the_servers_with_it() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({}));
    client.begin("a__do", steps(json!([{ "hold": "x" }])));
    client.end();
    sandbox.nothing_is_left();
}
