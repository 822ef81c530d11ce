//! Servers with addresses beside those that are commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::gateway_kit::{Fake, HttpClient, StdioClient, code_of, fake, names_in, steps, text_of};
use crate::gateway_subscriptions::{UPDATED, answered_with, updated};
use crate::http_kit::{Head, Listening, Origin, Serving, accepted, answer as response, json as json_answer};
use crate::kit::{Sandbox, signal, until};

/// A fake that is reached over HTTP, and what serves it.
pub fn at_an_address(sandbox: &Sandbox, fake: Fake, path: &str) -> (Fake, Listening) {
    // Its script is written as if it were a command of the gateway's.
    sandbox.gateway_config(std::slice::from_ref(&fake), &json!({}));
    let script = sandbox.path(&format!("{}.script", fake.name));
    let listening = sandbox.listen_to_fixture(&["upstream", script.to_str().unwrap()], &["--no-record"]);
    (fake.set("url", listening.url(path)), listening)
}

#[test]
fn servers_of_every_transport_stand_side_by_side() {
    for is_http in [false, true] {
        let sandbox = Sandbox::new();
        let (over_http, _one) = at_an_address(&sandbox, fake("http"), "/mcp");
        let (over_sse, _two) = at_an_address(&sandbox, fake("sse"), "/sse");
        let (newest, _three) = at_an_address(&sandbox, fake("newest").modern(), "/mcp");
        let fakes = [over_http, over_sse.set("transport", "sse"), newest, fake("pipe")];
        let expected: Vec<String> =
            ["http", "sse", "newest", "pipe"].iter().flat_map(|id| [format!("{id}__x"), format!("{id}__do")]).collect();
        let ask = |call: &mut dyn FnMut(&str, Value) -> Value| {
            for id in ["http", "sse", "newest", "pipe"] {
                let told = steps(json!([{ "text": id }]));
                assert_eq!(text_of(&call(&format!("{id}__do"), told)), id);
            }
        };
        if is_http {
            let gateway = sandbox.serve_http(&fakes, json!({}));
            let mut client = HttpClient::open(&gateway);
            assert_eq!(names_in(&client.ask(1, "tools/list", json!({})), "tools", "name"), expected);
            ask(&mut |tool, arguments| client.call(1, tool, arguments));
            gateway.end();
        } else {
            let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
            assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), expected);
            ask(&mut |tool, arguments| client.call(tool, arguments));
            client.end();
        }
    }
}

#[test]
fn the_older_transport_is_found_out() {
    let sandbox = Sandbox::new();
    let (over_sse, _serving) = at_an_address(&sandbox, fake("a"), "/sse");
    let mut client = StdioClient::open(&sandbox, &[over_sse], json!({}));
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    client.end();
}

#[test]
fn an_address_where_nobody_is_hurts_nobody_else() {
    let sandbox = Sandbox::new();
    let nobody = Origin::start().url("/mcp");
    let mut client = StdioClient::open(&sandbox, &[fake("a").set("url", nobody), fake("b")], json!({}));
    assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["b__x", "b__do"]);
    let refused = client.call("a__x", json!({}));
    assert_eq!((code_of(&refused), &refused["error"]["data"]["server"]), (5032, &json!("a")), "{refused}");
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    client.end();
}

#[test]
fn a_session_that_a_server_lost_is_opened_again_with_what_was_subscribed_to() {
    for (path, transport) in [("/mcp", "streamable-http"), ("/sse", "sse")] {
        let sandbox = Sandbox::new();
        let (server, _serving) = at_an_address(&sandbox, fake("a").list("resources", json!(["r:1"])), path);
        let mut client = StdioClient::open(&sandbox, &[server.set("transport", transport), fake("b")], json!({}));
        let uri = names_in(&client.ask("resources/list", json!({})), "resources", "uri").remove(0);
        assert_eq!(client.ask("resources/subscribe", json!({ "uri": uri }))["result"], json!({}));
        assert_eq!(client.ask("logging/setLevel", json!({ "level": "error" }))["result"], json!({}));
        // Its session ends with its process, and its id is unknown from then on.
        let process = sandbox.starts("a")[0];
        signal(process, Signal::KILL);
        until("the process is gone", || !sandbox.left_over().contains(&process));
        until("it is called again", || {
            let answer = client.call("a__x", json!({ "text": "1" }));
            answer.get("result").is_some_and(|_| text_of(&answer) == "a:x:1")
        });
        sandbox.until_seen("a", "resources/subscribe", 2);
        sandbox.until_seen("a", "logging/setLevel", 2);
        assert_eq!(sandbox.seen("a", "initialize").len(), 2);
        client.steps("a__do", json!([updated("r:1"), { "text": "" }]));
        assert_eq!(client.heard(UPDATED)["params"]["uri"], uri);
        assert_eq!(client.says("b__x", "1"), "b:x:1");
        client.end();
    }
}

#[test]
fn subscriptions_stand_however_requests_overtake_each_other() {
    for path in ["/mcp", "/sse"] {
        let sandbox = Sandbox::new();
        let on = json!({ "resources/subscribe": answered_with(&["$uri"]) });
        let server = fake("a").list("resources", json!(["r:1"])).script("on", on).set("prefix", false);
        let (server, _serving) = at_an_address(&sandbox, server, path);
        let mut client = StdioClient::open(&sandbox, &[server], json!({}));
        let uri = json!({ "uri": "r:1" });
        assert_eq!(client.ask("resources/subscribe", uri.clone())["result"], json!({}));
        assert_eq!(client.heard(UPDATED)["params"], uri);
        // Each of these is a request of its own, and the server hears them in their order.
        let methods = ["resources/unsubscribe", "resources/subscribe"].repeat(10);
        let ids: Vec<Value> = methods.iter().map(|method| client.request(method, uri.clone())).collect();
        ids.iter().for_each(|id| assert_eq!(client.answer(id)["result"], json!({})));
        until("it is subscribed to in the end", || {
            let lines: Vec<String> = sandbox.journal("a").into_iter().map(|(_, line)| line).collect();
            let of = |method: &str| {
                let lines = lines.iter().enumerate().filter(|(_, line)| line.contains(method));
                lines.map(|(at, _)| at).collect::<Vec<_>>()
            };
            let (begun, ended) = (of("resources/subscribe"), of("resources/unsubscribe"));
            begun.len() == ended.len() + 1 && begun.last() > ended.last()
        });
        client.take_kept();
        client.steps("do", json!([updated("r:1#last"), { "text": "" }]));
        while client.heard(UPDATED)["params"]["uri"] != "r:1#last" {}
        client.end();
    }
}

#[test]
fn progress_and_questions_come_over_http_too() {
    let sandbox = Sandbox::new();
    let (server, _serving) = at_an_address(&sandbox, fake("a"), "/mcp");
    let (mut client, _) = StdioClient::open_with(sandbox.serve(&[server], json!({})), json!({ "roots": {} }));
    let params = json!({ "progressToken": "$token", "progress": 1 });
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
    let asked = json!({ "ask": { "jsonrpc": "2.0", "id": 1, "method": "roots/list" } });
    let told = steps(json!([{ "say": progress }, asked]));
    let params = json!({ "name": "a__do", "arguments": told, "_meta": { "progressToken": "mine" } });
    let call = client.request("tools/call", params);
    assert_eq!(client.heard("notifications/progress")["params"]["progressToken"], "mine");
    let question = client.heard("roots/list");
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } }));
    let heard: Value = serde_json::from_str(&text_of(&client.answer(&call))).unwrap();
    assert_eq!(heard["result"], json!({ "roots": [] }));
    client.end();
}

/// What `servers list` says of the server `a`.
fn listed(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.stdout(["servers", "list", "--json"])).unwrap()
}

/// A server of Streamable HTTP that `answer` can answer for.
fn answers(answer: impl Fn(&Value, &Head) -> Option<Vec<u8>> + Send + Sync + 'static) -> Serving {
    Origin::start().serve(move |call| {
        let message: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "a", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [{ "name": "x", "inputSchema": { "type": "object" } }] }),
            Some("tools/call") => json!({ "content": [{ "type": "text", "text": "done" }] }),
            Some("server/discover") => return call.send(response("404 Not Found", &[], "")),
            Some("ping") => json!({}),
            _ if call.asked().starts_with("GET") => return call.send(response("405 Method Not Allowed", &[], "")),
            _ => return call.send(accepted()),
        };
        let answered = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        // The proxy may have left.
        let _ = call.try_send(answer(&message, &call.head).unwrap_or_else(|| json_answer(answered)));
    })
}

#[test]
fn a_server_that_restarts_and_answers_400_is_opened_again() {
    let sandbox = Sandbox::new();
    let (run, openings) = (Arc::new(AtomicUsize::new(1)), Arc::new(AtomicUsize::new(0)));
    let serving = answers({
        let (run, openings) = (Arc::clone(&run), Arc::clone(&openings));
        move |message, head| {
            let session = format!("run-{}", run.load(Ordering::Relaxed));
            if message["method"] == "initialize" {
                openings.fetch_add(1, Ordering::Relaxed);
                let result = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "a", "version": "1" } });
                let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
                let headers = ["Content-Type: application/json", &format!("Mcp-Session-Id: {session}")];
                return Some(response("200 OK", &headers, body));
            }
            let error = json!({ "code": -32000, "message": "Bad Request: No valid session ID provided" });
            let body = json!({ "jsonrpc": "2.0", "error": error, "id": null }).to_string();
            let is_known = head.get("mcp-session-id") == Some(session);
            (!is_known).then(|| response("400 Bad Request", &["Content-Type: application/json"], body))
        }
    });
    // Without calls a health check finds out.
    for interval in ["1h", "50ms"] {
        let fakes = [fake("a").set("url", serving.url("/mcp")).set("protocol", "legacy")];
        let mut client = StdioClient::open(&sandbox, &fakes, json!({ "healthcheck_interval": interval }));
        assert_eq!(text_of(&client.call("a__x", json!({}))), "done");
        let before = openings.load(Ordering::Relaxed);
        run.fetch_add(1, Ordering::Relaxed);
        if interval == "1h" {
            let lost = client.call("a__x", json!({}));
            assert_eq!(code_of(&lost), 5024, "{lost}");
        }
        until("the session is opened again", || openings.load(Ordering::Relaxed) > before);
        until("calls work", || client.call("a__x", json!({}))["result"].is_object());
        until("it shows", || listed(&sandbox)["state"] == "ready");
        assert_eq!(openings.load(Ordering::Relaxed), before + 1);
        client.end();
    }
}

#[test]
fn a_server_whose_calls_all_fail_is_not_ready() {
    let (sandbox, fails) = (Sandbox::new(), Arc::new(AtomicBool::new(true)));
    let serving = answers({
        let fails = Arc::clone(&fails);
        move |message, _| {
            let is_call = message["method"] == "tools/call" && fails.load(Ordering::Relaxed);
            is_call.then(|| response("500 Internal Server Error", &[], "oh"))
        }
    });
    let fakes = [fake("a").set("url", serving.url("/mcp")).set("protocol", "legacy")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    client.ask("tools/list", json!({}));
    until("it is ready", || listed(&sandbox)["state"] == "ready");
    for _ in 0..3 {
        assert_eq!(code_of(&client.call("a__x", json!({}))), 5021);
    }
    until("that shows", || listed(&sandbox)["state"] == "failing");
    let why = listed(&sandbox)["why"].to_string();
    assert!(why.contains("HTTP status 500"), "{why}");
    fails.store(false, Ordering::Relaxed);
    assert_eq!(text_of(&client.call("a__x", json!({}))), "done");
    until("it is ready again", || listed(&sandbox)["state"] == "ready");
    client.end();
}

#[test]
fn a_server_that_wants_a_login_says_so() {
    for (status, transport) in [("401 Unauthorized", "auto"), ("403 Forbidden", "auto"), ("401 Unauthorized", "sse")] {
        let sandbox = Sandbox::new();
        let serving = Origin::start().serve(move |call| {
            let _ = call.try_send(response(status, &["WWW-Authenticate: Bearer"], "who are you?"));
        });
        let fakes = [fake("a").set("url", serving.url("/mcp")).set("transport", transport)];
        let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
        let mut refused = Value::Null;
        until("calls say so", || {
            refused = client.call("a__x", json!({}));
            code_of(&refused) == 5025
        });
        assert_eq!(refused["error"]["data"], json!({ "mcp-proxy/reason": "needs-login", "server": "a" }));
        let next_step = "Set its credentials under `headers`";
        assert!(refused["error"]["message"].as_str().unwrap().contains(next_step), "{refused}");
        until("it shows", || listed(&sandbox)["state"] == "needs_login");
        assert!(listed(&sandbox)["why"].as_str().unwrap().contains(next_step));
        assert!(sandbox.stdout(["servers", "list"]).contains(" needs login "));
        client.end();
    }
}

#[test]
fn a_login_that_lapses_shows() {
    let (sandbox, lapsed) = (Sandbox::new(), Arc::new(AtomicBool::new(false)));
    let serving = answers({
        let lapsed = Arc::clone(&lapsed);
        move |_, _| lapsed.load(Ordering::Relaxed).then(|| response("401 Unauthorized", &[], ""))
    });
    let fakes = [fake("a").set("url", serving.url("/mcp")).set("protocol", "legacy")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    assert_eq!(text_of(&client.call("a__x", json!({}))), "done");
    lapsed.store(true, Ordering::Relaxed);
    assert_eq!(code_of(&client.call("a__x", json!({}))), 5025);
    until("it shows", || listed(&sandbox)["state"] == "needs_login");
    lapsed.store(false, Ordering::Relaxed);
    sandbox.stdout(["servers", "restart", "a"]);
    until("it is there again", || client.call("a__x", json!({}))["result"].is_object());
    until("that shows", || listed(&sandbox)["state"] == "ready");
    client.end();
}
