//! What clients want to hear of without asking each time. What one wants changes nothing for the others.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bridge_kit::{Events, expect_stream};
use crate::gateway_kit::{HttpClient, StdioClient, fake, names_in, steps, text_of};
use crate::http_kit::{Client, Listening, get};
use crate::kit::{Sandbox, signal, until};

pub const UPDATED: &str = "notifications/resources/updated";

pub fn updated(uri: &str) -> Value {
    json!({ "say": { "jsonrpc": "2.0", "method": UPDATED, "params": { "uri": uri } } })
}

fn logged(level: &str) -> Value {
    let params = json!({ "level": level, "data": level });
    json!({ "say": { "jsonrpc": "2.0", "method": "notifications/message", "params": params } })
}

pub fn listen(gateway: &Listening, client: &HttpClient) -> Client {
    let mut stream = gateway.client();
    let headers: Vec<&str> = client.headers.iter().map(String::as_str).chain(["Accept: text/event-stream"]).collect();
    stream.send(&get("/mcp", &headers));
    expect_stream(&mut stream);
    stream
}

/// The next message that tells of a resource.
#[track_caller]
fn next_updated(stream: &mut Client) -> Value {
    loop {
        let message = stream.next_json();
        if message["method"] == UPDATED {
            return message["params"]["uri"].clone();
        }
    }
}

#[test]
fn what_was_subscribed_to_is_subscribed_to_again_after_a_restart() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a").list("resources", json!(["r:1"]))], json!({}));
    let uri = names_in(&client.ask("resources/list", json!({})), "resources", "uri").remove(0);
    assert_eq!(client.ask("resources/subscribe", json!({ "uri": uri }))["result"], json!({}));
    assert_eq!(sandbox.seen("a", "resources/subscribe")[0]["params"], json!({ "uri": "r:1" }));
    client.steps("a__do", json!([updated("r:1"), { "text": "" }]));
    assert_eq!(client.heard(UPDATED)["params"]["uri"], uri);
    signal(sandbox.starts("a")[0], Signal::KILL);
    sandbox.until_seen("a", "resources/subscribe", 2);
    client.steps("a__do", json!([updated("r:1"), { "text": "" }]));
    assert_eq!(client.heard(UPDATED)["params"]["uri"], uri);
    client.ask("resources/unsubscribe", json!({ "uri": uri }));
    sandbox.until_seen("a", "resources/unsubscribe", 1);
    client.end();
}

#[test]
fn whoever_calls_a_server_back_calls_it_back_for_all() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a").list("resources", json!(["r:1"]))], json!({}));
    let (mut one, mut other) = (HttpClient::open(&gateway), HttpClient::open(&gateway));
    let mut of_other = listen(&gateway, &other);
    let uri = names_in(&other.ask(1, "resources/list", json!({})), "resources", "uri").remove(0);
    assert_eq!(other.ask(2, "resources/subscribe", json!({ "uri": uri }))["result"], json!({}));
    let died = one.call(1, "a__do", steps(json!([{ "kill": true }])));
    assert_eq!(died["error"]["code"], 5032, "{died}");
    assert_eq!(text_of(&one.call(2, "a__x", json!({}))), "a:x:");
    sandbox.until_seen("a", "resources/subscribe", 2);
    one.call(3, "a__do", steps(json!([updated("r:1"), { "text": "" }])));
    assert_eq!(next_updated(&mut of_other), json!(uri));
    gateway.end();
    assert_eq!(sandbox.starts("a").len(), 2);
}

#[test]
fn a_server_that_is_to_tell_of_something_is_in_use() {
    let sandbox = Sandbox::new();
    let fakes = ["a", "b"].map(|name| fake(name).list("resources", json!(["r:1"])).set("idle_stop", "100ms"));
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let uri = names_in(&client.ask("resources/list", json!({})), "resources", "uri").remove(0);
    assert_eq!(client.ask("resources/subscribe", json!({ "uri": uri }))["result"], json!({}));
    let wanted = sandbox.starts("a").pop().unwrap();
    // The other one, which is used after it, is stopped over and over.
    for number in 0..3 {
        assert_eq!(client.says("b__x", "1"), "b:x:1");
        let unwanted = sandbox.starts("b").pop().unwrap();
        until("the other one is stopped", || !sandbox.left_over().contains(&unwanted));
        assert!(sandbox.left_over().contains(&wanted), "it was stopped too, by {number}");
    }
    client.steps("a__do", json!([updated("r:1"), { "text": "" }]));
    assert_eq!(client.heard(UPDATED)["params"]["uri"], uri);
    assert_eq!(sandbox.starts("a").pop(), Some(wanted));
    client.ask("resources/unsubscribe", json!({ "uri": uri }));
    until("nobody wants anything of it", || sandbox.left_over().is_empty());
    client.end();
}

#[test]
fn clients_hear_of_what_they_want_and_of_nothing_else() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a").list("resources", json!(["r:1", "r:2", "r:both"]))], json!({}));
    let (mut one, mut other) = (HttpClient::open(&gateway), HttpClient::open(&gateway));
    let (mut of_one, mut of_other) = (listen(&gateway, &one), listen(&gateway, &other));
    let uris = names_in(&one.ask(1, "resources/list", json!({})), "resources", "uri");
    for (client, wanted) in [(&mut one, [0, 2]), (&mut other, [1, 2])] {
        for at in wanted {
            let answer = client.ask(2, "resources/subscribe", json!({ "uri": uris[at] }));
            assert_eq!(answer["result"], json!({}), "{answer}");
        }
    }
    assert_eq!(sandbox.seen("a", "resources/subscribe").len(), 3, "a server is asked once for all");
    one.call(3, "a__do", steps(json!([updated("r:1"), updated("r:2"), updated("r:both"), { "text": "" }])));
    assert_eq!([next_updated(&mut of_one), next_updated(&mut of_one)], [json!(uris[0]), json!(uris[2])]);
    assert_eq!([next_updated(&mut of_other), next_updated(&mut of_other)], [json!(uris[1]), json!(uris[2])]);
    // What one wants no more the other still gets.
    one.ask(4, "resources/unsubscribe", json!({ "uri": uris[2] }));
    one.call(5, "a__do", steps(json!([updated("r:both"), updated("r:1"), updated("r:2"), { "text": "" }])));
    assert_eq!(next_updated(&mut of_one), json!(uris[0]));
    assert_eq!([next_updated(&mut of_other), next_updated(&mut of_other)], [json!(uris[2]), json!(uris[1])]);
    assert_eq!(sandbox.seen("a", "resources/unsubscribe").len(), 0);
    gateway.end();
}

/// An answer and, in the same write, what changes next to it.
pub fn answered_with(updated: &[&str]) -> Value {
    let answer = json!({ "jsonrpc": "2.0", "id": "$id", "result": {} }).to_string();
    let updated = updated.iter().map(|uri| {
        let params = json!({ "uri": uri });
        json!({ "jsonrpc": "2.0", "method": UPDATED, "params": params }).to_string()
    });
    let lines: Vec<String> = [answer].into_iter().chain(updated).collect();
    json!([{ "line": lines.join("\n") }])
}

#[test]
fn changes_right_after_a_subscription_reach_the_client() {
    let sandbox = Sandbox::new();
    let uris: Vec<String> = (0..50).map(|number| format!("r:{number}")).collect();
    let on = json!({ "resources/subscribe": answered_with(&["$uri", "$uri#part"]) });
    let server = fake("a").list("resources", json!(uris)).script("on", on).set("prefix", false);
    let mut client = StdioClient::open(&sandbox, &[server], json!({}));
    let uris = names_in(&client.ask("resources/list", json!({})), "resources", "uri");
    for uri in &uris {
        assert_eq!(client.ask("resources/subscribe", json!({ "uri": uri }))["result"], json!({}));
        let kept = client.take_kept();
        assert!(kept.is_empty(), "told before the answer: {kept:?}");
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
        let kept = client.take_kept();
        let heard: Vec<&str> = kept.iter().filter_map(|it| it["params"]["uri"].as_str()).collect();
        assert_eq!(heard, [uri.clone(), format!("{uri}#part")], "{kept:?}");
    }
    client.end();
}

#[test]
fn changes_right_before_the_answer_to_a_subscription_follow_it() {
    let sandbox = Sandbox::new();
    let on = json!({ "resources/subscribe": [updated("$uri"), updated("$uri"), { "answer": {} }] });
    let mut client =
        StdioClient::open(&sandbox, &[fake("a").list("resources", json!(["r:1"])).script("on", on)], json!({}));
    let uri = names_in(&client.ask("resources/list", json!({})), "resources", "uri").remove(0);
    assert_eq!(client.ask("resources/subscribe", json!({ "uri": uri }))["result"], json!({}));
    assert_eq!(client.take_kept(), Vec::<Value>::new());
    client.steps("a__do", json!([updated("r:2"), { "text": "" }]));
    let kept = client.take_kept();
    assert_eq!(kept.len(), 2, "a change that is told twice in the meantime is told once: {kept:?}");
    assert_eq!(kept[0]["params"]["uri"], uri);
    client.end();
}

#[test]
fn nothing_is_told_of_a_subscription_that_the_server_refused() {
    let sandbox = Sandbox::new();
    let on = json!({ "resources/subscribe": [updated("$uri"), { "error": -32002 }] });
    let gateway = sandbox.serve_http(&[fake("a").list("resources", json!(["r:1", "r:2"])).script("on", on)], json!({}));
    let mut clients = [HttpClient::open(&gateway), HttpClient::open(&gateway)];
    let uris = names_in(&clients[0].ask(1, "resources/list", json!({})), "resources", "uri");
    for (number, client) in clients.iter_mut().enumerate() {
        let refused = client.ask(2, "resources/subscribe", json!({ "uri": uris[0] }));
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
        assert_eq!(sandbox.seen("a", "resources/subscribe").len(), number + 1, "each is refused by the server");
    }
    let [one, _] = &mut clients;
    let mut stream = listen(&gateway, one);
    let accept = json!({ "next": { "resources/subscribe": [{ "handle": true }] } });
    one.call(3, "a__do", steps(json!([accept, { "text": "" }])));
    assert_eq!(one.ask(4, "resources/subscribe", json!({ "uri": uris[1] }))["result"], json!({}));
    one.call(5, "a__do", steps(json!([updated("r:2"), { "text": "" }])));
    assert_eq!(next_updated(&mut stream), json!(uris[1]), "the first is the first that it is subscribed to");
    assert_eq!(sandbox.seen("a", "resources/unsubscribe").len(), 0, "a server that refused has nothing to end");
    gateway.end();
}

#[test]
fn changes_within_a_resource_reach_its_subscribers() {
    let sandbox = Sandbox::new();
    let resources = json!(["file:///dir", "file:///dir/a", "note://n/"]);
    let on = json!({ "resources/unsubscribe": answered_with(&["card:7"]) });
    let server = fake("a").list("resources", resources).script("on", on).set("prefix", false);
    let gateway = sandbox.serve_http(&[server], json!({}));
    let (mut one, mut other) = (HttpClient::open(&gateway), HttpClient::open(&gateway));
    let (mut of_one, mut of_other) = (listen(&gateway, &one), listen(&gateway, &other));
    let uris = names_in(&one.ask(1, "resources/list", json!({})), "resources", "uri");
    for wanted in [0, 1, 2] {
        let client = if wanted == 2 { &mut other } else { &mut one };
        assert_eq!(client.ask(2, "resources/subscribe", json!({ "uri": uris[wanted] }))["result"], json!({}));
    }
    let changed = ["file:///dir/a", "file:///dir?x", "file:///dirs", "note://n", "note://n/1", "card:7", "file:///dir"];
    let changed: Vec<Value> = changed.into_iter().map(updated).chain([json!({ "text": "" })]).collect();
    one.call(3, "do", steps(changed.into()));
    for uri in ["file:///dir/a", "file:///dir?x", "file:///dir"] {
        assert_eq!(next_updated(&mut of_one), json!(uri));
    }
    assert_eq!(next_updated(&mut of_other), json!("note://n/1"));
    // An address that tells nothing is meant for the only client that is subscribed to anything.
    other.ask(4, "resources/unsubscribe", json!({ "uri": uris[2] }));
    one.call(5, "do", steps(json!([updated("file:///dir"), { "text": "" }])));
    assert_eq!([next_updated(&mut of_one), next_updated(&mut of_one)], [json!("card:7"), json!("file:///dir")]);
    assert_eq!(other.ask(6, "resources/subscribe", json!({ "uri": uris[2] }))["result"], json!({}));
    other.call(7, "do", steps(json!([updated("note://n/"), { "text": "" }])));
    assert_eq!(next_updated(&mut of_other), json!("note://n/"), "the first since it was subscribed to nothing");
    gateway.end();
}

#[test]
fn a_level_is_acknowledged_once_the_servers_have_taken_it() {
    let sandbox = Sandbox::new();
    let first = json!({ "jsonrpc": "2.0", "method": "notifications/before_the_answer" });
    let on = json!({ "logging/setLevel": [{ "say": first }, { "answer": {} }] });
    let mut client = StdioClient::open(&sandbox, &[fake("a").script("on", on)], json!({}));
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    for level in ["error", "debug"] {
        let begun = std::time::Instant::now();
        assert_eq!(client.ask("logging/setLevel", json!({ "level": level }))["result"], json!({}));
        // A machine that takes a second for it is no failure, whether or not the server had answered by then.
        let was_late = begun.elapsed() >= std::time::Duration::from_secs(1);
        let kept = client.take_kept().len();
        assert!(was_late || kept == 1, "acknowledged before the server had answered: {kept}");
        if kept == 0 {
            client.heard("notifications/before_the_answer");
        }
        client.ask("ping", json!({}));
    }
    client.end();
}

#[test]
fn a_level_is_acknowledged_though_a_server_says_nothing() {
    let sandbox = Sandbox::new();
    let silent = fake("a").script("on", json!({ "logging/setLevel": [] }));
    let mut client = StdioClient::open(&sandbox, &[silent, fake("b")], json!({}));
    assert_eq!(client.ask("logging/setLevel", json!({ "level": "error" }))["result"], json!({}));
    let params = json!({ "level": "info" });
    let taken_back = json!({ "jsonrpc": "2.0", "id": "back", "method": "logging/setLevel", "params": params });
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "back" } });
    client.proxy.send(format!("{taken_back}\n{cancelled}\n").as_bytes());
    assert_eq!(client.ask("logging/setLevel", json!({ "level": "debug" }))["result"], json!({}));
    assert_eq!(client.take_kept(), Vec::<Value>::new(), "an answer to a request that was taken back");
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    client.stop();
}

#[test]
fn each_client_hears_as_much_as_it_wants() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a")], json!({}));
    let (mut one, mut other) = (HttpClient::open(&gateway), HttpClient::open(&gateway));
    assert_eq!(one.ask(1, "logging/setLevel", json!({ "level": "debug" }))["result"], json!({}));
    assert_eq!(other.ask(1, "logging/setLevel", json!({ "level": "error" }))["result"], json!({}));
    let params = |client: &HttpClient| {
        let _ = client;
        json!({ "name": "a__do", "arguments": steps(json!([logged("info"), logged("error"), { "text": "" }])) })
    };
    let levels = |all: Vec<Value>| -> Vec<String> {
        let logged = all.iter().filter(|message| message["method"] == "notifications/message");
        logged.map(|message| message["params"]["level"].as_str().unwrap().to_owned()).collect()
    };
    let wanted = params(&one);
    assert_eq!(levels(one.exchange(2, "tools/call", wanted.clone())), ["info", "error"]);
    assert_eq!(levels(other.exchange(2, "tools/call", wanted)), ["error"]);
    let last = sandbox.seen("a", "logging/setLevel").pop().unwrap();
    assert_eq!(last["params"]["level"], "debug", "the server logs what the keenest wants");
    gateway.end();
}

#[test]
fn a_level_that_there_is_none_of_is_refused() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a")], json!({}));
    assert_eq!(client.ask("logging/setLevel", json!({ "level": "loud" }))["error"]["code"], -32602);
    client.end();
}
