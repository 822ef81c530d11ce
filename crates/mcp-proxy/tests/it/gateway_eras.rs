//! Clients and servers of either era, on pipes and over HTTP: what both know works for both, and what one of
//! them has no way for is refused in words.

use serde_json::{Value, json};

use crate::bridge_kit::{Events, expect_stream};
use crate::gateway_kit::{Fake, HttpClient, StdioClient, code_of, fake, names_in, steps, text_of};
use crate::http_kit::Listening;
use crate::kit::Sandbox;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A client of either kind, which asks one thing at a time.
enum Asker {
    Stdio(Box<StdioClient>),
    Http(Box<(HttpClient, Listening)>),
}

impl Asker {
    fn open(sandbox: &Sandbox, fakes: &[Fake], is_http: bool, is_modern: bool) -> Self {
        match (is_http, is_modern) {
            (false, false) => Self::Stdio(Box::new(StdioClient::open(sandbox, fakes, json!({})))),
            (false, true) => Self::Stdio(Box::new(StdioClient::modern(sandbox.serve(fakes, json!({}))))),
            (true, is_modern) => {
                let gateway = sandbox.serve_http(fakes, json!({}));
                let client = if is_modern { HttpClient::modern(&gateway) } else { HttpClient::open(&gateway) };
                Self::Http(Box::new((client, gateway)))
            }
        }
    }

    /// The answer, and what came before it.
    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> (Value, Vec<Value>) {
        match self {
            Self::Stdio(client) => {
                let answer = client.ask(method, params);
                (answer, client.take_kept())
            }
            Self::Http(both) => {
                let client = &mut both.0;
                let mut all = client.exchange(7, method, params);
                let answer = all.pop().expect("there is an answer");
                assert_eq!(answer["id"], 7, "{answer}");
                (answer, all)
            }
        }
    }

    #[track_caller]
    fn call(&mut self, tool: &str, told: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": steps(told) })).0
    }

    fn end(self) {
        match self {
            Self::Stdio(client) => drop(client.end()),
            Self::Http(both) => drop(both.1.end()),
        }
    }
}

/// Every pair of eras, on pipes and over HTTP; the server's era is the second.
fn for_every_pair(test: impl Fn(&Sandbox, bool, bool, bool)) {
    for is_http in [false, true] {
        for is_modern in [false, true] {
            for server_is_modern in [false, true] {
                test(&Sandbox::new(), is_http, is_modern, server_is_modern);
            }
        }
    }
}

fn of_era(is_modern: bool) -> Fake {
    let it = fake("a")
        .list("prompts", json!(["p"]))
        .list("resources", json!(["r:1"]))
        .list("resourceTemplates", json!(["t:{x}"]));
    if is_modern { it.modern().script("ttl_ms", 1000) } else { it }
}

#[test]
fn lists_calls_and_progress_work_in_every_pair() {
    for_every_pair(|sandbox, is_http, is_modern, server_is_modern| {
        let mut client = Asker::open(sandbox, &[of_era(server_is_modern)], is_http, is_modern);
        for (method, kind, key, expected) in [
            ("tools/list", "tools", "name", 2),
            ("prompts/list", "prompts", "name", 1),
            ("resources/list", "resources", "uri", 1),
            ("resources/templates/list", "resourceTemplates", "uriTemplate", 1),
        ] {
            let (list, _) = client.ask(method, json!({}));
            assert_eq!(names_in(&list, kind, key).len(), expected, "{list}");
            // What only the newest revision has is in its answers, and in no other.
            for member in ["resultType", "ttlMs", "cacheScope"] {
                assert_eq!(list["result"].get(member).is_some(), is_modern, "{member}: {list}");
            }
        }
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": "$token", "progress": 1 } });
        let told = steps(json!([{ "say": progress }, { "text": "done" }]));
        let params = json!({ "name": "a__do", "arguments": told, "_meta": { "progressToken": "mine" } });
        let (answer, before) = client.ask("tools/call", params);
        assert_eq!(text_of(&answer), "done");
        assert_eq!(answer["result"].get("resultType").is_some(), is_modern, "{answer}");
        let tokens: Vec<&Value> = before
            .iter()
            .filter(|it| it["method"] == "notifications/progress")
            .map(|it| &it["params"]["progressToken"])
            .collect();
        assert_eq!(tokens, [&json!("mine")], "{before:?}");
        let uri = names_in(&client.ask("resources/list", json!({})).0, "resources", "uri").remove(0);
        let (read, _) = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(read["result"]["contents"][0]["text"], "a:r:1");
        let (prompt, _) = client.ask("prompts/get", json!({ "name": "a__p" }));
        assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "a:p");
        client.end();
        // The server was spoken to in its own way.
        let call = sandbox.seen("a", "tools/call").remove(0);
        let meta = call["params"]["_meta"].as_object().unwrap();
        let protocols = meta.keys().filter(|key| key.starts_with("io.modelcontextprotocol/")).count();
        assert_eq!(protocols > 0, server_is_modern, "{call}");
        // One that knows only the newest is asked for an older one first, by whoever speaks that.
        assert_eq!(sandbox.seen("a", "notifications/initialized").is_empty(), server_is_modern);
    });
}

#[test]
fn errors_have_the_codes_of_the_clients_era() {
    for_every_pair(|sandbox, is_http, is_modern, server_is_modern| {
        let missing = if server_is_modern { -32602 } else { -32002 };
        let server = of_era(server_is_modern).script("on", json!({ "resources/read": [{ "error": missing }] }));
        let mut client = Asker::open(sandbox, &[server], is_http, is_modern);
        let uri = names_in(&client.ask("resources/list", json!({})).0, "resources", "uri").remove(0);
        let (refused, _) = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(code_of(&refused), if is_modern { -32602 } else { -32002 });
        assert_eq!(code_of(&client.call("a__do", json!([{ "error": 4711 }]))), 4711);
        assert_eq!(code_of(&client.call("b__do", json!([]))), -32602);
        client.end();
    });
}

#[test]
fn a_client_of_the_newest_revision_discovers_everybody_at_once() {
    for is_http in [false, true] {
        let sandbox = Sandbox::new();
        let fakes = [of_era(true), fake("b")];
        let mut client = Asker::open(&sandbox, &fakes, is_http, true);
        let (answer, _) = client.ask("server/discover", json!({}));
        let result = &answer["result"];
        assert_eq!((&result["resultType"], &result["supportedVersions"]), (&json!("complete"), &json!(["2026-07-28"])));
        assert!(result["capabilities"]["tools"].is_object() && result["ttlMs"].is_u64(), "{answer}");
        let (list, _) = client.ask("tools/list", json!({}));
        assert_eq!(names_in(&list, "tools", "name"), ["a__x", "a__do", "b__x", "b__do"]);
        for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
            let (refused, _) = client.ask(method, json!({}));
            assert_eq!(code_of(&refused), -32601, "{method}");
        }
        client.end();
    }
}

#[test]
fn a_client_that_leaves_has_listened_to_the_end() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::modern(sandbox.serve(&[of_era(false)], json!({})));
    let id = client.request("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    client.heard("notifications/subscriptions/acknowledged");
    client.proxy.close_stdin();
    let answer = client.answer(&id);
    assert_eq!(answer["result"]["_meta"][SUBSCRIPTION], id, "{answer}");
    client.end();
}

#[test]
fn listening_over_http_lasts_until_the_connection_is_closed() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[of_era(false)], json!({}));
    let mut client = HttpClient::modern(&gateway);
    let uri = names_in(&client.ask(1, "resources/list", json!({})), "resources", "uri").remove(0);
    let mut listener = client.beside(&gateway);
    let wanted = json!({ "resourceSubscriptions": [uri] });
    let listen = listener.message("l", "subscriptions/listen", json!({ "notifications": wanted }));
    let stream = listener.send(&listen);
    expect_stream(stream);
    assert_eq!(stream.next_json()["method"], "notifications/subscriptions/acknowledged");
    let updated = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "r:1" } });
    client.call(2, "a__do", steps(json!([{ "say": updated }, { "text": "" }])));
    let heard = stream.next_json();
    assert_eq!(heard["params"], json!({ "_meta": { SUBSCRIPTION: "l" }, "uri": uri }));
    drop(listener);
    sandbox.until_seen("a", "resources/unsubscribe", 1);
    gateway.end();
}

#[test]
fn a_question_in_the_middle_of_a_call_does_not_cross_eras() {
    for is_http in [false, true] {
        // A server of the newest revision asks by its answer, which a client of an older one could not read.
        let sandbox = Sandbox::new();
        let mut client = Asker::open(&sandbox, &[of_era(true)], is_http, false);
        let asks = json!({ "resultType": "input_required", "inputRequests": {} });
        let refused = client.call("a__do", json!([{ "answer": asks }]));
        assert_eq!(refused["error"]["data"]["mcp-proxy/reason"], "not-for-this-revision", "{refused}");
        client.end();
        // And a server of an older one asks in a way that the newest has no more.
        let sandbox = Sandbox::new();
        let mut client = Asker::open(&sandbox, &[of_era(false)], is_http, true);
        let asked = json!({ "ask": { "jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {} } });
        let heard: Value = serde_json::from_str(&text_of(&client.call("a__do", json!([asked])))).unwrap();
        assert_eq!((&heard["id"], &heard["error"]["data"]["mcp-proxy/reason"]), (&json!(1), &json!("cannot-ask")));
        client.end();
    }
}

#[test]
fn a_question_within_the_newest_era_passes() {
    let sandbox = Sandbox::new();
    let mut client = Asker::open(&sandbox, &[of_era(true)], false, true);
    let asks = json!({ "resultType": "input_required", "inputRequests": { "q": { "method": "roots/list" } }, "requestState": "s" });
    let answer = client.call("a__do", json!([{ "answer": asks.clone() }]));
    assert_eq!(answer["result"], asks);
    client.end();
}

#[test]
fn a_client_of_the_newest_revision_that_closes_takes_its_call_back() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[of_era(false)], json!({}));
    let client = HttpClient::modern(&gateway);
    let mut gone = client.beside(&gateway);
    let call = gone.message(1, "tools/call", json!({ "name": "a__do", "arguments": steps(json!([{ "hold": "x" }])) }));
    gone.send(&call);
    let calls = sandbox.until_seen("a", "tools/call", 1);
    drop(gone);
    let cancelled = sandbox.until_seen("a", "notifications/cancelled", 1);
    assert_eq!(cancelled[0]["params"]["requestId"], calls[0]["id"]);
    gateway.end();
}

#[test]
fn servers_of_both_eras_stand_side_by_side() {
    for is_modern in [false, true] {
        let sandbox = Sandbox::new();
        let fakes = [of_era(true), fake("b"), fake("c").script("eras", "both")];
        let mut client = Asker::open(&sandbox, &fakes, false, is_modern);
        for server in ["a", "b", "c"] {
            assert_eq!(text_of(&client.call(&format!("{server}__do"), json!([{ "text": "hi" }]))), "hi");
        }
        client.end();
        // One that knows both is spoken to as the client speaks.
        assert_eq!(sandbox.seen("c", "initialize").is_empty(), is_modern);
        assert_eq!(sandbox.seen("c", "server/discover").is_empty(), !is_modern);
    }
}
