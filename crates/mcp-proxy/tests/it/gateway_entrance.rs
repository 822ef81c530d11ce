//! Who may come in, to what, and how often.

use std::path::Path;

use serde_json::{Value, json};

use crate::bridge_kit::LEGACY;
use crate::gateway_kit::{HttpClient, StdioClient, code_of, fake, initialize, names_in, steps, text_of};
use crate::http_kit::post;
use crate::kit::{Running, Sandbox};

const TOKEN: &str = "s3cr3t-0f-th3-t3st";

fn ask(proxy: &mut Running, message: &Value) -> Value {
    proxy.send(format!("{message}\n").as_bytes());
    loop {
        let answer = proxy.json();
        if answer["id"] == message["id"] {
            return answer;
        }
    }
}

fn is_in_any_file(dir: &Path, text: &str) -> bool {
    std::fs::read_dir(dir).into_iter().flatten().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in_any_file(&path, text);
        }
        path.is_file() && std::fs::read(&path).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn over_http_a_token_is_shown_with_every_request() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a")], json!({ "auth_token": TOKEN }));
    let opening = initialize(1, LEGACY, json!({})).to_string();
    for headers in [&[][..], &["Authorization: Bearer wrong"], &["Authorization: Basic x"]] {
        let refused = gateway.client().ask(&post("/mcp", headers, &opening));
        assert_eq!(refused.status(), 401, "{refused:?}");
        assert!(refused.head.get("www-authenticate").unwrap().starts_with("Bearer"), "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], -32001);
    }
    let header = format!("Authorization: Bearer {TOKEN}");
    let mut client = HttpClient::open_with(&gateway, &[&header], json!({}));
    assert_eq!(text_of(&client.call(1, "a__x", json!({}))), "a:x:");
    // Its session is of no use without it.
    client.headers.retain(|header| !header.starts_with("Authorization"));
    let message = client.message(2, "tools/list", json!({}));
    assert_eq!(client.post(&message).status(), 401);
    gateway.end();
    assert!(!is_in_any_file(&sandbox.path(".local"), TOKEN));
}

#[test]
fn a_token_in_a_message_is_for_us_alone() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.serve(&[fake("a")], json!({ "auth_token": TOKEN }));
    let mut opening = initialize(1, LEGACY, json!({}));
    for shown in [None, Some("wrong")] {
        if let Some(shown) = shown {
            opening["params"]["proxy"] = json!({ "authToken": shown });
        }
        let refused = ask(&mut proxy, &opening);
        assert_eq!((code_of(&refused), &refused["error"]["message"]), (-32001, &json!("Unauthorized")), "{refused}");
    }
    assert!(sandbox.starts("a").is_empty(), "nothing is done for strangers");
    opening["params"]["proxy"] = json!({ "authToken": TOKEN });
    assert!(ask(&mut proxy, &opening)["result"].is_object());
    // Once is enough, and every time is fine.
    let mut call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "a__x", "arguments": { "text": "1" } } });
    assert_eq!(text_of(&ask(&mut proxy, &call)), "a:x:1");
    call["params"]["proxy"] = json!({ "authToken": TOKEN });
    assert_eq!(text_of(&ask(&mut proxy, &call)), "a:x:1");
    call["params"]["proxy"] = json!({ "authToken": "wrong" });
    assert_eq!(code_of(&ask(&mut proxy, &call)), -32001);
    assert!(proxy.end().0.success());
    let seen = sandbox.seen("a", "tools/call");
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|call| call["params"].get("proxy").is_none()), "{seen:?}");
    assert!(!is_in_any_file(&sandbox.path(".local"), TOKEN));
    assert!(!is_in_any_file(&sandbox.path(".local"), "\"wrong\""));
}

#[test]
fn a_token_is_good_for_what_it_says() {
    let sandbox = Sandbox::new();
    let tokens = json!([
        { "name": "alice", "token": "token-of-alice", "servers": ["a"] },
        { "name": "bob", "token": "token-of-bob", "tools": ["*__x"] },
        { "name": "carol", "token": "token-of-carol" },
    ]);
    let fakes = [fake("a").list("prompts", json!(["p"])), fake("b").list("prompts", json!(["p"]))];
    let gateway = sandbox.serve_http(&fakes, json!({ "tokens": tokens }));
    for (name, tools, prompts) in [
        ("alice", &["a__x", "a__do"][..], &["a__p"][..]),
        ("bob", &["a__x", "b__x"], &["a__p", "b__p"]),
        ("carol", &["a__x", "a__do", "b__x", "b__do"], &["a__p", "b__p"]),
    ] {
        let header = format!("Authorization: Bearer token-of-{name}");
        let mut client = HttpClient::open_with(&gateway, &[&header], json!({}));
        assert_eq!(names_in(&client.ask(1, "tools/list", json!({})), "tools", "name"), tools, "{name}");
        assert_eq!(names_in(&client.ask(1, "prompts/list", json!({})), "prompts", "name"), prompts, "{name}");
        for tool in ["a__x", "a__do", "b__x", "b__do"] {
            let answer = client.call(2, tool, steps(json!([{ "text": "" }])));
            match tools.contains(&tool) {
                true => assert!(answer["result"].is_object(), "{name} {tool}: {answer}"),
                // As if there were no such thing.
                false => assert_eq!(code_of(&answer), -32602, "{name} {tool}"),
            }
        }
        let prompt = client.ask(3, "prompts/get", json!({ "name": "b__p" }));
        assert_eq!(prompt["result"].is_object(), name != "alice", "{prompt}");
    }
    gateway.end();
}

#[test]
fn a_session_belongs_to_whoever_opened_it() {
    let sandbox = Sandbox::new();
    let tokens = json!([{ "name": "alice", "token": "token-of-alice" }, { "name": "bob", "token": "token-of-bob" }]);
    let gateway = sandbox.serve_http(&[fake("a")], json!({ "tokens": tokens }));
    let mut client = HttpClient::open_with(&gateway, &["Authorization: Bearer token-of-alice"], json!({}));
    client.headers[0] = "Authorization: Bearer token-of-bob".into();
    let message = client.message(2, "tools/list", json!({}));
    let refused = client.post(&message);
    assert!(matches!(refused.status(), 401 | 403 | 404), "{refused:?}");
    gateway.end();
}

#[test]
fn who_asks_too_often_is_told_when_to_come_back() {
    let sandbox = Sandbox::new();
    let fakes = [
        fake("a").set("rate_limit_per_minute", 2),
        fake("b").set("tools", json!({ "x": { "rate_limit_per_minute": 1 } })),
    ];
    let gateway = sandbox.serve_http(&fakes, json!({}));
    let mut client = HttpClient::open(&gateway);
    let limited = |client: &mut HttpClient, tool: &str| {
        let message =
            client.message(9, "tools/call", json!({ "name": tool, "arguments": steps(json!([{ "text": "" }])) }));
        let refused = client.post(&message);
        assert_eq!(refused.status(), 429, "{refused:?}");
        let seconds: u64 = refused.head.get("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{refused:?}");
        let error = &refused.json()["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(-32002), &json!("Rate limit exceeded")));
        assert!(error["data"]["retry_after_ms"].as_u64().unwrap() > 0, "{error}");
    };
    client.call(1, "a__x", json!({}));
    client.call(1, "a__x", json!({}));
    limited(&mut client, "a__do");
    client.call(1, "b__x", json!({}));
    limited(&mut client, "b__x");
    assert!(client.call(1, "b__do", steps(json!([{ "text": "" }])))["result"].is_object());
    // The limit is one for all clients.
    limited(&mut HttpClient::open(&gateway), "b__x");
    gateway.end();
    assert_eq!((sandbox.seen("a", "tools/call").len(), sandbox.seen("b", "tools/call").len()), (2, 2));
}

#[test]
fn each_token_is_counted_by_itself() {
    let sandbox = Sandbox::new();
    let tokens = json!([
        { "name": "alice", "token": "token-of-alice" },
        { "name": "bob", "token": "token-of-bob", "rate_limit_per_minute": 1000 },
    ]);
    let gateway = sandbox.serve_http(&[fake("a")], json!({ "tokens": tokens, "rate_limit_per_minute": 10 }));
    let mut alice = HttpClient::open_with(&gateway, &["Authorization: Bearer token-of-alice"], json!({}));
    let mut bob = HttpClient::open_with(&gateway, &["Authorization: Bearer token-of-bob"], json!({}));
    let mut limited = 0;
    for number in 0..20 {
        let message = alice.message(number, "tools/call", json!({ "name": "a__x" }));
        limited += usize::from(alice.post(&message).status() == 429);
        assert_eq!(text_of(&bob.call(number, "a__x", json!({}))), "a:x:");
    }
    assert!((10..20).contains(&limited), "{limited}");
    gateway.end();
}

#[test]
fn on_a_pipe_a_limit_is_an_error() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a").set("rate_limit_per_minute", 1)], json!({}));
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    let refused = client.call("a__x", json!({}));
    assert_eq!(code_of(&refused), -32002);
    assert!(refused["error"]["data"]["retry_after_ms"].is_u64(), "{refused}");
    client.end();
}

#[test]
fn what_lists_say_is_for_everybody_only_where_everybody_may_come() {
    let tokens = json!([{ "name": "alice", "token": "token-of-alice", "tools": ["*__x"] }]);
    for (top, scope, tools) in
        [(json!({}), "public", &["a__x", "a__do"][..]), (json!({ "tokens": tokens }), "private", &["a__x"])]
    {
        let sandbox = Sandbox::new();
        let gateway = sandbox.serve_http(&[fake("a").modern().script("ttl_ms", 60_000)], top);
        let mut client = HttpClient::modern(&gateway);
        client.headers.push("Authorization: Bearer token-of-alice".into());
        let listed = client.ask(1, "tools/list", json!({}));
        assert_eq!(listed["result"]["cacheScope"], scope, "{listed}");
        assert_eq!(names_in(&listed, "tools", "name"), tools);
        gateway.end();
    }
}

#[test]
fn what_we_answer_ourselves_is_counted_too() {
    for method in ["tools/list", "ping"] {
        let sandbox = Sandbox::new();
        let gateway = sandbox.serve_http(&[fake("a")], json!({ "rate_limit_per_minute": 2 }));
        // Introducing itself is the first of them.
        let mut client = HttpClient::open(&gateway);
        assert!(client.ask(1, method, json!({}))["result"].is_object(), "{method}");
        let message = client.message(2, method, json!({}));
        let refused = client.post(&message);
        assert_eq!(refused.status(), 429, "{method}: {refused:?}");
        assert_eq!(code_of(&refused.json()), -32002, "{method}");
        // Calls are of the same count.
        let call = client.message(9, "tools/call", json!({ "name": "a__x" }));
        assert_eq!(client.post(&call).status(), 429, "{method}");
        gateway.end();
        assert!(sandbox.seen("a", "tools/call").is_empty());
    }
}
