//! Servers that keep what they have behind a proxy tool of their own, shown as if they did not.

use serde_json::{Value, json};

use crate::gateway_kit::{Fake, HttpClient, StdioClient, code_of, fake, names_in, text_of};
use crate::http_kit::Listening;
use crate::kit::{Running, Sandbox, fixture_program};

/// A server with something of each kind.
fn full() -> Fake {
    fake("a")
        .tools(&["x", "do", "delete_x"])
        .list("prompts", json!(["p", "q"]))
        .list("resources", json!(["file:///r", { "name": "n", "uri": "file:///s", "mimeType": "text/plain" }]))
        .list("resourceTemplates", json!(["file:///{t}"]))
}

/// The same behind a tool, which is looked behind.
fn hidden() -> Fake {
    full().script("proxy_tool", "proxy").set("unwrap_proxy_tool", true)
}

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// What a client can get of it: its lists, and a use of each kind.
fn everything(client: &mut StdioClient) -> Vec<Value> {
    let lists: Vec<Value> =
        LISTS.iter().map(|(method, kind)| client.ask(method, json!({}))["result"][kind].clone()).collect();
    let uri = lists[2][0]["uri"].clone();
    let mut uses = vec![
        text_of(&client.call("a__x", json!({ "text": "1" }))).into(),
        client.ask("resources/read", json!({ "uri": uri }))["result"]["contents"].clone(),
        client.ask("prompts/get", json!({ "name": "a__p" }))["result"]["messages"].clone(),
    ];
    uses.extend(lists);
    uses
}

#[test]
fn s9_1_4_what_is_behind_the_tool_is_like_the_servers_own() {
    for pages in [false, true] {
        for is_modern in [false, true] {
            let mut seen = Vec::new();
            for server in [full(), hidden().script("proxy_pages", pages)] {
                let sandbox = Sandbox::new();
                let server = if is_modern { server.modern() } else { server };
                let proxy = sandbox.serve(&[server], json!({}));
                let mut client = match is_modern {
                    true => StdioClient::modern(proxy),
                    false => StdioClient::open_with(proxy, json!({})).0,
                };
                seen.push(everything(&mut client));
                client.end();
                if seen.len() == 2 {
                    for method in ["resources/read", "prompts/get", "resources/list", "prompts/list"] {
                        assert!(sandbox.seen("a", method).is_empty(), "{method} goes through the tool");
                    }
                    let called = sandbox.seen("a", "tools/call");
                    assert!(called.iter().all(|call| call["params"]["name"] == "proxy"), "{called:?}");
                }
            }
            assert_eq!(seen[0], seen[1]);
        }
    }
}

#[test]
fn failures_are_those_of_the_method_that_was_used() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[hidden().set("prefix", false)], json!({}));
    let tool = client.call("missing", json!({}));
    assert_eq!((&tool["result"]["isError"], text_of(&tool).as_str()), (&json!(true), "there is no missing"));
    for (method, params) in
        [("prompts/get", json!({ "name": "missing" })), ("resources/read", json!({ "uri": "file:///missing" }))]
    {
        let failed = client.ask(method, params);
        assert_eq!(code_of(&failed), -32603, "{failed}");
        assert!(failed["error"]["message"].as_str().unwrap().starts_with("there is no "), "{failed}");
    }
    let error = client.steps("do", json!([{ "error": -32042 }]));
    assert_eq!(code_of(&error), -32042, "an error stays what it is");
    client.end();
}

#[test]
fn a_question_in_the_middle_of_a_call_crosses_the_tool() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::modern(sandbox.serve(&[hidden().modern()], json!({})));
    let asks = json!({
        "resultType": "input_required", "requestState": "s",
        "inputRequests": { "q": { "method": "roots/list", "params": {} } },
    });
    let asked = client.steps("a__do", json!([{ "answer": asks }]));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(asked["result"]["inputRequests"], asks["inputRequests"], "{asked}");
    let state = asked["result"]["requestState"].clone();
    let answered = client.ask(
        "tools/call",
        json!({ "name": "a__x", "arguments": {}, "requestState": state, "inputResponses": { "q": { "roots": [] } } }),
    );
    assert_eq!(text_of(&answered), "a:x:");
    client.end();
    let called = sandbox.seen("a", "tools/call");
    let again = &called.last().unwrap()["params"];
    assert_eq!((&again["name"], &again["requestState"]), (&json!("proxy"), &json!("s")));
    assert_eq!(again["inputResponses"], json!({ "q": { "roots": [] } }));
}

#[test]
fn rules_judge_what_is_used_and_not_the_tool() {
    let sandbox = Sandbox::new();
    let rules = json!([
        { "name": "no-deletes", "match": "op:delete", "verdict": "deny" },
        { "name": "not-q", "match": "method:prompts/get tool:q", "verdict": "deny" },
        { "name": "uses", "match": "tool:x or op:read", "verdict": "allow" },
    ]);
    let top = json!({ "policy": { "rules": rules, "default": "deny", "hide_denied": true } });
    let mut client = StdioClient::open(&sandbox, &[hidden()], top);
    assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["a__x"]);
    assert_eq!(names_in(&client.ask("prompts/list", json!({})), "prompts", "name"), ["a__p"]);
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    assert!(client.ask("prompts/get", json!({ "name": "a__p" }))["result"].is_object());
    for denied in [
        client.call("a__delete_x", json!({})),
        client.call("a__proxy", json!({ "action": "call", "type": "tool", "path": "delete_x" })),
        client.ask("prompts/get", json!({ "name": "a__q" })),
    ] {
        assert_eq!(code_of(&denied), -32602, "as if there were no such thing: {denied}");
    }
    client.end();
    let used: Vec<Value> = sandbox
        .seen("a", "tools/call")
        .iter()
        .filter(|call| call["params"]["arguments"]["action"] == "call")
        .map(|call| call["params"]["arguments"]["path"].clone())
        .collect();
    assert_eq!(used, ["x", "p"]);
    let decided: Vec<(Value, Value)> = sandbox
        .decisions()
        .into_iter()
        .map(|mut decision| (decision["tool"].take(), decision["verdict"].take()))
        .collect();
    for (tool, verdict) in [("x", "allow"), ("p", "allow"), ("delete_x", "deny"), ("q", "deny")] {
        assert!(decided.contains(&(json!(tool), json!(verdict))), "{tool}: {decided:?}");
    }
}

#[test]
fn the_flag_looks_behind_the_tool_of_one_server() {
    let sandbox = Sandbox::new();
    sandbox.gateway_config(&[full().script("proxy_tool", "mcp:hub")], &json!({}));
    for flag in ["--unwrap-proxy-tool", "--unwrap-proxy-tool=mcp:hub"] {
        let mut command = sandbox.command(["run", flag, "--env", "OF_TEST=1", "--"]);
        command.arg(fixture_program()).arg("upstream").arg(sandbox.path("a.script"));
        let (mut client, opened) = StdioClient::open_with(Running::start(command), json!({}));
        assert!(opened["result"]["instructions"].as_str().unwrap().contains("a is a fake."), "{opened}");
        let listed = client.ask("tools/list", json!({}));
        assert_eq!(names_in(&listed, "tools", "name"), ["x", "do", "delete_x"]);
        assert_eq!(client.says("x", "1"), "a:x:1");
        let read = client.ask("resources/read", json!({ "uri": "file:///r" }));
        assert_eq!(read["result"]["contents"], json!([{ "uri": "file:///r", "text": "a:file:///r" }]));
        client.end();
    }
}

/// `run FLAGS -- SERVER`, with a client that has introduced itself.
fn run(sandbox: &Sandbox, flags: &[&str]) -> StdioClient {
    sandbox.gateway_config(&[full().script("proxy_tool", "proxy")], &json!({}));
    let mut command = sandbox.command(["run"]);
    command.args(flags).arg("--").arg(fixture_program()).arg("upstream").arg(sandbox.path("a.script"));
    StdioClient::open_with(Running::start(command), json!({})).0
}

#[test]
fn the_rules_of_a_service_count_in_front_of_one_server() {
    let sandbox = Sandbox::new();
    let rules = sandbox.path("rules.json");
    std::fs::write(&rules, r#"{"svc": {"delete": "deny"}, "other": {"read": "deny", "write": "deny"}}"#).unwrap();
    let flags = ["--unwrap-proxy-tool", "--service", "svc", "--rules", rules.to_str().unwrap()];
    let mut client = run(&sandbox, &flags);
    assert_eq!(client.says("x", "1"), "a:x:1");
    assert_eq!(code_of(&client.call("delete_x", json!({}))), -32000);
    client.end();
}

#[test]
fn a_servers_own_proxy_tool_is_no_way_around_rules() {
    let sandbox = Sandbox::new();
    let rules = sandbox.path("rules.json");
    std::fs::write(&rules, r#"{"a": {"delete": "deny"}}"#).unwrap();
    let mut client = run(&sandbox, &["--rules", rules.to_str().unwrap()]);
    let one = |path: &str| json!({ "action": "call", "type": "tool", "path": path, "args": { "text": "1" } });
    assert_eq!(text_of(&client.call("proxy", one("x"))), "a:x:1");
    for arguments in [one("delete_x"), json!({ "action": "batch", "operations": [one("x"), one("delete_x")] })] {
        let denied = client.call("proxy", arguments);
        assert_eq!((code_of(&denied), &denied["error"]["data"]["tool"]), (-32000, &json!("delete_x")), "{denied}");
    }
    client.end();
    assert_eq!(sandbox.seen("a", "tools/call").len(), 1);
}

#[test]
fn clients_over_http_see_behind_the_tool() {
    let sandbox = Sandbox::new();
    sandbox.gateway_config(&[full().script("proxy_tool", "proxy")], &json!({}));
    let (program, script) = (fixture_program(), sandbox.path("a.script"));
    let target = format!("{} upstream {}", program.display(), script.display());
    let command = sandbox.command([
        "proxy",
        "--transport",
        "stdio",
        "--target-command",
        &target,
        "--listen",
        "0",
        "--unwrap-proxy-tool",
    ]);
    let proxy = Listening::start(command);
    let mut client = HttpClient::open_with(&proxy, &[], json!({}));
    assert_eq!(text_of(&client.call(1, "x", json!({ "text": "1" }))), "a:x:1");
    proxy.end();
}

/// A server, the tool in front of it, and what looks behind the tool: nothing is lost on the way.
#[test]
fn what_one_proxy_wraps_another_unwraps() {
    let json = json!({ "uri": "file:///j", "mimeType": "text/plain", "text": "{\"a\": 1.0, \"b\":[ ]}" });
    let binary = json!({ "uri": "file:///b", "mimeType": "image/png", "blob": "AAEC" });
    let server = || {
        full().script(
            "on",
            json!({ "resources/read": [{ "answer": { "contents": [json, binary], "_meta": { "k": 1 } } }] }),
        )
    };
    let mut seen = Vec::new();
    for is_wrapped in [false, true] {
        let sandbox = Sandbox::new();
        sandbox.gateway_config(&[server()], &json!({}));
        let script = sandbox.path("a.script");
        let mut command = match is_wrapped {
            false => sandbox.command(["run", "--proxy-tool=unused", "--"]),
            true => {
                let mut command = sandbox.command(["run", "--unwrap-proxy-tool", "--"]);
                command.arg(sandbox.command([""; 0]).get_program());
                command.args(["run", "--quiet", "--no-record", "--proxy-tool", "--proxy-tool-mode=instead", "--"]);
                command
            }
        };
        command.arg(fixture_program()).arg("upstream").arg(script);
        let (mut client, _) = StdioClient::open_with(Running::start(command), json!({}));
        let mut got: Vec<Value> = LISTS
            .iter()
            .map(|(method, kind)| {
                let mut listed = client.ask(method, json!({}))["result"][kind].take();
                if let Some(items) = listed.as_array_mut() {
                    items.retain(|item| item["name"] != "unused");
                }
                listed
            })
            .collect();
        let result = |answer: Value| answer["result"].clone();
        got.push(result(client.call("x", json!({ "text": "1" }))));
        got.push(result(client.steps(
            "do",
            json!([{ "answer": {
            "content": [{ "type": "text", "text": "t", "annotations": { "priority": 0.50 } }],
            "structuredContent": { "n": 1.0 }, "isError": true, "_meta": { "m": [] },
        } }]),
        )));
        got.push(client.steps("do", json!([{ "error": -32042 }]))["error"].clone());
        got.push(result(client.ask("resources/read", json!({ "uri": "file:///j" }))));
        got.push(result(client.ask("prompts/get", json!({ "name": "p", "arguments": { "a": "b" } }))));
        client.end();
        seen.push(got);
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn the_tool_itself_is_nobodys_to_call() {
    let sandbox = Sandbox::new();
    let server = hidden().set("disabled_tools", json!(["delete_x"]));
    let mut client = StdioClient::open(&sandbox, &[server], json!({}));
    let around = json!({ "action": "call", "type": "tool", "path": "delete_x" });
    for name in ["a__proxy", "a__Proxy", "a__delete_x"] {
        assert_eq!(code_of(&client.call(name, around.clone())), -32602, "{name}");
    }
    client.end();
    let calls = sandbox.seen("a", "tools/call");
    assert!(calls.iter().all(|call| call["params"]["arguments"]["action"] == "list"), "{calls:?}");
}

/// Magg writes what its language has: nulls for what is missing, `meta` for `_meta`, and no structured content.
#[test]
fn what_a_tool_writes_for_its_own_clients_is_made_valid() {
    let written = json!({ "title": null, "icons": null, "meta": { "k": null } });
    let with = |mut item: Value| {
        item.as_object_mut().unwrap().extend(written.as_object().unwrap().clone());
        item
    };
    let schema = json!({ "type": "object", "properties": { "n": { "default": null } } });
    let tool = with(json!({ "name": "do", "inputSchema": schema, "outputSchema": { "type": "object" } }));
    let prompt = with(json!({ "name": "p", "arguments": [{ "name": "a", "description": null, "required": true }] }));
    let server = hidden()
        .list("tools", json!([tool, with(json!({ "name": "bad" })), "x"]))
        .list("prompts", json!([prompt]))
        .list("resources", json!([with(json!({ "name": "r", "uri": "file:///r", "annotations": null, "size": null }))]))
        .list("resourceTemplates", json!([with(json!({ "name": "t", "uriTemplate": "file:///{t}" }))]))
        .set("prefix", false);
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[server], json!({}));
    let meta = json!({ "k": null });
    let expected = [
        json!([{ "name": "do", "inputSchema": schema, "_meta": meta }, { "name": "x", "inputSchema": { "type": "object" } }]),
        json!([{ "name": "p", "arguments": [{ "name": "a", "required": true }], "_meta": meta }]),
        json!([{ "name": "r", "uri": "file:///r", "_meta": meta }]),
        json!([{ "name": "t", "uriTemplate": "file:///{t}", "_meta": meta }]),
    ];
    for ((method, kind), expected) in LISTS.into_iter().zip(expected) {
        assert_eq!(client.ask(method, json!({}))["result"][kind], expected);
    }
    let answer =
        client.steps("do", json!([{ "answer": { "content": [{ "type": "text", "text": "1", "_meta": null }] } }]));
    assert_eq!(answer["result"], json!({ "content": [{ "type": "text", "text": "1" }] }));
    let broken = client.steps("do", json!([{ "answer": { "content": [{ "type": "text", "text": null }] } }]));
    assert_eq!(code_of(&broken), -32603, "{broken}");
    assert!(client.end().contains("`bad` left out, `inputSchema` is missing"));
}
