//! What clients want to hear of without asking each time. What one wants changes nothing for the others.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bridge_kit::{Events, expect_stream};
use crate::gateway_kit::{HttpClient, StdioClient, fake, names_in, steps};
use crate::http_kit::{Client, Listening, get};
use crate::kit::{Sandbox, signal};

pub const UPDATED: &str = "notifications/resources/updated";

pub fn updated(uri: &str) -> Value {
    json!({ "say": { "jsonrpc": "2.0", "method": UPDATED, "params": { "uri": uri } } })
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
