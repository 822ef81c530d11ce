//! What servers ask of clients: it reaches the client whose call it belongs to and nobody else, and where that
//! cannot be told the server hears so at once.

use serde_json::{Value, json};

use crate::bridge_kit::Events;
use crate::gateway_kit::{Fake, HttpClient, StdioClient, fake, steps, text_of};
use crate::http_kit::{Listening, get};
use crate::kit::Sandbox;

const EVERYTHING: [&str; 3] = ["sampling", "elicitation", "roots"];

fn able() -> Value {
    EVERYTHING.iter().map(|name| ((*name).to_owned(), json!({}))).collect::<serde_json::Map<_, _>>().into()
}

fn question(id: impl Into<Value>, method: &str) -> Value {
    json!({ "ask": { "jsonrpc": "2.0", "id": id.into(), "method": method, "params": { "message": "?" } } })
}

/// What a server was answered that asked.
#[track_caller]
fn heard_by_server(call: &Value) -> Value {
    serde_json::from_str(&text_of(call)).unwrap()
}

fn three() -> Vec<Fake> {
    ["a", "b", "c"].map(fake).to_vec()
}

#[test]
fn three_servers_that_number_alike_are_told_apart() {
    let sandbox = Sandbox::new();
    let (mut client, _) = StdioClient::open_with(sandbox.serve(&three(), json!({})), able());
    let methods = ["roots/list", "sampling/createMessage", "elicitation/create"];
    let calls: Vec<Value> = ["a__do", "b__do", "c__do"]
        .iter()
        .zip(methods)
        .map(|(tool, method)| client.begin(tool, steps(json!([question(1, method)]))))
        .collect();
    let asked: Vec<Value> = methods.iter().map(|method| client.heard(method)).collect();
    assert!(asked[0]["id"] != asked[1]["id"] && asked[1]["id"] != asked[2]["id"] && asked[0]["id"] != asked[2]["id"]);
    for (number, question) in asked.iter().enumerate().rev() {
        assert_eq!(question["params"], json!({ "message": "?" }));
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "for": number } }));
    }
    for (number, call) in calls.iter().enumerate() {
        let heard = heard_by_server(&client.answer(call));
        assert_eq!(heard, json!({ "jsonrpc": "2.0", "id": 1, "result": { "for": number } }));
    }
    client.end();
}

/// A stream for what belongs to no call.
fn listen(gateway: &Listening, client: &HttpClient) -> crate::http_kit::Client {
    let mut stream = gateway.client();
    let headers: Vec<&str> = client.headers.iter().map(String::as_str).chain(["Accept: text/event-stream"]).collect();
    stream.send(&get("/mcp", &headers));
    crate::bridge_kit::expect_stream(&mut stream);
    stream
}

#[test]
fn a_question_comes_with_the_call_it_belongs_to() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a")], json!({}));
    let mut client = HttpClient::open_with(&gateway, &[], able());
    let mut bystander = HttpClient::open_with(&gateway, &[], able());
    let mut stream = listen(&gateway, &bystander);
    let arguments = steps(json!([question(1, "sampling/createMessage")]));
    let call = client.message(5, "tools/call", json!({ "name": "a__do", "arguments": arguments }));
    let mut answers = client.beside(&gateway);
    let connection = answers.send(&call);
    crate::bridge_kit::expect_stream(connection);
    let asked = connection.next_json();
    assert_eq!(asked["method"], "sampling/createMessage", "{asked}");
    let told = client.post(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "ok": true } }));
    assert_eq!(told.status(), 202, "{told:?}");
    let answer = connection.next_json();
    assert_eq!(heard_by_server(&answer)["result"], json!({ "ok": true }));
    // The other one heard nothing of it: what comes first on its stream is its own.
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/prompts/list_changed" });
    bystander.call(1, "a__do", steps(json!([{ "say": changed }, { "text": "" }])));
    let first = stream.next_json();
    assert!(first["method"].as_str().unwrap().ends_with("list_changed"), "{first}");
    gateway.end();
}
