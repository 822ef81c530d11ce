//! What servers ask of clients: it reaches the client whose call it belongs to and nobody else, and where that
//! cannot be told the server hears so at once.

use serde_json::{Value, json};

use crate::bridge_kit::Events;
use crate::gateway_kit::{Fake, HttpClient, StdioClient, fake, steps, text_of};
use crate::http_kit::{Listening, get};
use crate::kit::{Sandbox, until};

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

#[test]
fn an_id_of_a_question_comes_back_as_it_was() {
    let sandbox = Sandbox::new();
    let (mut client, _) = StdioClient::open_with(sandbox.serve(&[fake("a")], json!({})), able());
    for id in [json!("q"), json!(0), json!(-5), json!("1")] {
        let call = client.begin("a__do", steps(json!([question(id.clone(), "roots/list")])));
        let asked = client.heard("roots/list");
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -1, "message": "no" } }));
        let heard = heard_by_server(&client.answer(&call));
        assert_eq!(heard, json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no" } }));
    }
    client.end();
}

#[test]
fn nothing_waits_behind_a_question() {
    let sandbox = Sandbox::new();
    let (mut client, _) = StdioClient::open_with(sandbox.serve(&three(), json!({})), able());
    let call = client.begin("a__do", steps(json!([question(7, "sampling/createMessage")])));
    let asked = client.heard("sampling/createMessage");
    // The server that asks takes other calls, and so do the others.
    for server in ["a", "b", "c"] {
        assert_eq!(client.says(&format!("{server}__x"), "1"), format!("{server}:x:1"));
    }
    client.ask("tools/list", json!({}));
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} }));
    assert_eq!(heard_by_server(&client.answer(&call))["id"], 7);
    // An answer to nothing is nobody's.
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 4711, "result": {} }));
    assert_eq!(client.says("a__x", "2"), "a:x:2");
    client.end();
}

#[test]
fn a_client_is_not_asked_what_it_cannot_answer() {
    let sandbox = Sandbox::new();
    let (mut client, _) = StdioClient::open_with(sandbox.serve(&[fake("a")], json!({})), json!({ "roots": {} }));
    for method in ["sampling/createMessage", "elicitation/create"] {
        let heard = heard_by_server(&client.steps("a__do", json!([question(1, method)])));
        assert_eq!((&heard["id"], &heard["error"]["code"]), (&json!(1), &json!(-32601)), "{heard}");
    }
    assert!(client.take_kept().iter().all(|message| message.get("id").is_none()));
    client.end();
}

#[test]
fn a_ping_of_a_server_is_answered_for_the_client() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a")], json!({}));
    let heard = heard_by_server(&client.steps("a__do", json!([question("p", "ping")])));
    assert_eq!(heard, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    assert!(client.take_kept().iter().all(|message| message["method"] != "ping"));
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
fn whom_a_shared_server_means_is_never_guessed() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a")], json!({}));
    let (mut one, mut other) =
        (HttpClient::open_with(&gateway, &[], able()), HttpClient::open_with(&gateway, &[], able()));
    let hold = one.message(1, "tools/call", json!({ "name": "a__do", "arguments": steps(json!([{ "hold": "one" }])) }));
    one.send(&hold);
    sandbox.until_seen("a", "tools/call", 1);
    let all = other.exchange(
        1,
        "tools/call",
        json!({ "name": "a__do", "arguments": steps(json!([question(1, "roots/list")])) }),
    );
    assert_eq!(all.len(), 1, "{all:?}");
    let heard = heard_by_server(&all[0]);
    assert!(heard["error"]["message"].as_str().unwrap().contains("cannot be told"), "{heard}");
    let free = steps(json!([{ "free": "one" }, { "text": "freed" }]));
    assert_eq!(text_of(&other.call(2, "a__do", free)), "freed");
    assert_eq!(one.answers().len(), 1, "nobody asked it anything");
    gateway.end();
}

#[test]
fn what_a_server_asks_after_a_call_was_given_up_is_put_to_nobody_else() {
    const ASKS: &str = "sampling/createMessage";
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a").set("exclusive", true)], json!({}));
    let (mut one, mut other) =
        (HttpClient::open_with(&gateway, &[], able()), HttpClient::open_with(&gateway, &[], able()));
    let hold = one.message(1, "tools/call", json!({ "name": "a__do", "arguments": steps(json!([{ "hold": "one" }])) }));
    let mut held = one.beside(&gateway);
    held.send(&hold);
    sandbox.until_seen("a", "tools/call", 1);
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(one.post(&cancelled).status(), 202);
    sandbox.until_seen("a", "notifications/cancelled", 1);
    // The only call that is open is the other's, though the server may still work on the first.
    let asks = json!({ "name": "a__do", "arguments": steps(json!([question(1, ASKS)])) });
    let asks = other.message(1, "tools/call", asks);
    other.send(&asks);
    let is_refusal = |line: &str| line.contains("\"error\"") && line.contains("cannot be told");
    until("the server is refused", || sandbox.journal("a").iter().any(|(_, line)| is_refusal(line)));
    let all = other.answers();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(heard_by_server(&all[0])["id"], 1);
    // Once it has answered the first as well, there is no doubt any more.
    let arguments = steps(json!([{ "free": "one" }, question(2, ASKS)]));
    let call = other.message(2, "tools/call", json!({ "name": "a__do", "arguments": arguments }));
    let mut answers = other.beside(&gateway);
    let connection = answers.send(&call);
    crate::bridge_kit::expect_stream(connection);
    let asked = connection.next_json();
    assert_eq!(asked["method"], ASKS, "{asked}");
    other.post(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "ok": true } }));
    assert_eq!(heard_by_server(&connection.next_json())["result"], json!({ "ok": true }));
    gateway.end();
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

/// A server that asks as soon as it is spoken to.
fn forward(then: Value) -> Fake {
    let asks = json!({ "jsonrpc": "2.0", "id": "early", "method": "roots/list" });
    let on = json!({ "initialize": [{ "ask_then": { "ask": asks, "then": then } }, { "handle": true }] });
    fake("a").script("on", on)
}

#[test]
fn a_client_is_asked_nothing_before_it_is_introduced() {
    let sandbox = Sandbox::new();
    // The second server keeps the client waiting for its introduction.
    let fakes = [forward(json!([])), fake("b").script("gate", sandbox.gate())];
    let mut proxy = sandbox.serve(&fakes, json!({ "initialize_wait": 60 }));
    proxy.send(format!("{}\n", crate::gateway_kit::initialize("init", crate::bridge_kit::LEGACY, able())).as_bytes());
    sandbox.until_seen("a", "notifications/initialized", 1);
    sandbox.open_gate();
    let first = proxy.json();
    assert_eq!(first["id"], "init", "{first}");
    let asked = proxy.json();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [] } });
    proxy.send(format!("{answer}\n").as_bytes());
    let answer = json!({ "jsonrpc": "2.0", "id": "early", "result": { "roots": [] } }).to_string();
    until("the server is answered", || sandbox.journal("a").iter().any(|(_, line)| *line == answer));
    assert!(proxy.end().0.success());
}

#[test]
fn a_question_that_is_taken_back_before_the_client_is_introduced_never_reaches_it() {
    let sandbox = Sandbox::new();
    let asks = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let on = json!({ "initialize": [{ "say": asks }, { "say": cancel }, { "handle": true }] });
    let (mut client, _) =
        StdioClient::open_with(sandbox.serve(&[fake("a").script("on", on)], json!({ "initialize_wait": 60 })), able());
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    assert_eq!(client.take_kept(), Vec::<Value>::new());
    client.end();
}

#[test]
fn an_answer_reaches_a_server_that_has_yet_to_introduce_itself() {
    let sandbox = Sandbox::new();
    let asks = json!({ "jsonrpc": "2.0", "id": "early", "method": "roots/list" });
    let on = json!({ "initialize": [{ "ask_then": { "ask": asks, "then": [{ "handle": true }] } }] });
    let top = json!({ "initialize_wait": "100ms" });
    let (mut client, _) = StdioClient::open_with(sandbox.serve(&[fake("a").script("on", on)], top), able());
    let asked = client.heard("roots/list");
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [] } }));
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    client.end();
}

#[test]
fn a_server_is_told_only_what_can_be_asked_across_eras() {
    let capabilities = json!({
        "sampling": { "tools": {} }, "elicitation": { "form": {} }, "roots": { "listChanged": true },
        "experimental": { "e": {} }, "extensions": { "x/y": {} },
    });
    for (is_modern, expected) in
        [(true, json!({ "experimental": { "e": {} }, "extensions": { "x/y": {} } })), (false, capabilities.clone())]
    {
        let sandbox = Sandbox::new();
        let proxy = sandbox.serve(&[fake("a")], json!({}));
        let mut client = match is_modern {
            true => StdioClient::modern_with(proxy, capabilities.clone()),
            false => StdioClient::open_with(proxy, capabilities.clone()).0,
        };
        assert_eq!(client.says("a__x", "1"), "a:x:1");
        assert_eq!(sandbox.seen("a", "initialize")[0]["params"]["capabilities"], expected);
        client.end();
    }
}

#[test]
fn what_a_server_takes_back_is_taken_back_from_the_client() {
    let sandbox = Sandbox::new();
    let (mut client, _) = StdioClient::open_with(sandbox.serve(&[fake("a")], json!({})), able());
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } });
    let call = client.begin("a__do", steps(json!([question(3, "roots/list"), { "say": cancel }])));
    let asked = client.heard("roots/list");
    assert_eq!(client.heard("notifications/cancelled")["params"]["requestId"], asked["id"]);
    client.notify("notifications/cancelled", json!({ "requestId": call }));
    client.end();
}
