//! Many servers behind one endpoint: what they have is found under names that tell them apart, and everything
//! that is asked for reaches the server that has it.

use serde_json::json;

use crate::gateway_kit::{Fake, HttpClient, StdioClient, code_of, fake, names_in, steps, text_of};
use crate::kit::Sandbox;

/// Two servers that have the same of everything.
fn twins() -> [Fake; 2] {
    ["a", "b"].map(|name| {
        fake(name)
            .tools(&["x", "y__z", "__", "do"])
            .list("prompts", json!(["p"]))
            .list("resources", json!(["file:///same"]))
            .list("resourceTemplates", json!(["file:///{path}"]))
    })
}

#[test]
fn equal_names_lead_to_their_own_servers() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &twins(), json!({}));
    let tools = client.ask("tools/list", json!({}));
    let expected = ["a__x", "a__y__z", "a____", "a__do", "b__x", "b__y__z", "b____", "b__do"];
    assert_eq!(names_in(&tools, "tools", "name"), expected);
    let origin = &tools["result"]["tools"][4]["_meta"];
    assert_eq!(origin, &json!({ "io.github.mcp-proxy/server": "b", "io.github.mcp-proxy/original": "x" }));
    for server in ["a", "b"] {
        for tool in ["x", "y__z", "__"] {
            assert_eq!(client.says(&format!("{server}__{tool}"), "hi"), format!("{server}:{tool}:hi"));
        }
    }
    assert_eq!(names_in(&client.ask("prompts/list", json!({})), "prompts", "name"), ["a__p", "b__p"]);
    let prompt = client.ask("prompts/get", json!({ "name": "b__p" }));
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "b:p");
    let resources = names_in(&client.ask("resources/list", json!({})), "resources", "uri");
    assert_ne!(resources[0], resources[1]);
    for (uri, server) in resources.iter().zip(["a", "b"]) {
        let read = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(read["result"]["contents"][0]["text"], format!("{server}:file:///same"));
        assert_eq!(read["result"]["contents"][0]["uri"], *uri, "what was asked for is what comes back");
    }
    client.end();
    sandbox.nothing_is_left();
}

#[test]
fn schemas_pass_byte_for_byte() {
    let sandbox = Sandbox::new();
    let schema = r#"{"type":"object", "properties":{"n":{"minimum":1.0e2,"x-b":0.10,"é":"\u00e9\/"}},"$defs":{ }}"#;
    let tool = format!(r#"{{"inputSchema":{schema},"name":"x","annotations":{{"readOnlyHint":true}},"x-title":null}}"#);
    let line = format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{{"tools":[{tool}]}}}}"#);
    // `$defs` is no placeholder of the script.
    let fakes = [fake("a").script("on", json!({ "tools/list": [{ "line": line }] }))];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let id = client.request("tools/list", json!({}));
    let listed = loop {
        let line = String::from_utf8(client.proxy.line()).unwrap();
        if line.contains("\"tools\":[") {
            break line;
        }
    };
    assert!(listed.contains(&format!("\"id\":{id}")), "{listed}");
    assert!(
        listed.contains(&tool.replace("\"name\":\"x\"", "\"name\":\"a__x\"").replace("null}", "null,")),
        "{listed}"
    );
    client.end();
}

#[test]
fn the_same_holds_over_http() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&twins(), json!({}));
    let mut client = HttpClient::open(&gateway);
    let expected = ["a__x", "a__y__z", "a____", "a__do", "b__x", "b__y__z", "b____", "b__do"];
    assert_eq!(names_in(&client.ask(1, "tools/list", json!({})), "tools", "name"), expected);
    assert_eq!(text_of(&client.call(1, "a__x", json!({ "text": "1" }))), "a:x:1");
    assert_eq!(text_of(&client.call("1", "b__y__z", json!({ "text": "2" }))), "b:y__z:2");
    let resources = names_in(&client.ask(2, "resources/list", json!({})), "resources", "uri");
    let read = client.ask(3, "resources/read", json!({ "uri": resources[1] }));
    assert_eq!(read["result"]["contents"][0]["text"], "b:file:///same");
    assert_eq!(code_of(&client.call(4, "c__x", json!({}))), -32602);
    gateway.end();
    sandbox.nothing_is_left();
}

#[test]
fn an_id_comes_back_as_it_was_spelled() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &twins(), json!({}));
    for id in ["7", "\"7\"", "-1", "9007199254740993", "\"\"", "\"a\\u0062\""] {
        client.proxy.send(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"a__x\"}}}}\n")
                .as_bytes(),
        );
        let answer = loop {
            let line = String::from_utf8(client.proxy.line()).unwrap();
            if line.contains("\"id\":") {
                break line;
            }
        };
        assert!(answer.contains(&format!("\"id\":{id},")) || answer.contains(&format!("\"id\":{id}}}")), "{answer}");
    }
    client.end();
}

#[test]
fn a_message_that_is_too_large_fails_alone() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(5_000);
    let large = fake("a").list("prompts", json!(["p"])).script("on", json!({ "prompts/get": [{ "text": long }] }));
    let mut client = StdioClient::open(&sandbox, &[large, fake("b")], json!({ "max_message_bytes": 4_096 }));
    let open = client.begin("b__do", steps(json!([{ "hold": "open" }])));
    for refused in [client.call("a__x", json!({ "text": long })), client.ask("prompts/get", json!({ "name": "a__p" }))]
    {
        assert_eq!(refused["error"]["data"]["mcp-proxy/reason"], "too-large", "{refused}");
    }
    assert!(sandbox.seen("a", "tools/call").is_empty());
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    client.steps("b__do", json!([{ "free": "open" }, { "text": "" }]));
    assert_eq!(text_of(&client.answer(&open)), "open");
    client.end();
}
