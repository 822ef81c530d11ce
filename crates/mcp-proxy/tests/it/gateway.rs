//! Many servers behind one endpoint: what they have is found under names that tell them apart, and everything
//! that is asked for reaches the server that has it.

use serde_json::{Value, json};

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
fn a_template_expands_to_what_routes_back() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &twins(), json!({}));
    let listed = client.ask("resources/templates/list", json!({}));
    let templates = names_in(&listed, "resourceTemplates", "uriTemplate");
    assert_eq!(templates, ["proxy://template/a/file:///{path}", "proxy://template/b/file:///{path}"]);
    let expanded = templates[1].replace("{path}", "a%20b/c");
    let read = client.ask("resources/read", json!({ "uri": expanded }));
    assert_eq!(read["result"]["contents"][0]["text"], "b:file:///a%20b/c");
    // What comes back can be asked for again, under whatever name it has now.
    let again = client.ask("resources/read", json!({ "uri": read["result"]["contents"][0]["uri"] }));
    assert_eq!(again["result"]["contents"][0]["text"], "b:file:///a%20b/c");
    client.end();
}

#[test]
fn completion_asks_the_server_of_what_is_completed() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &twins(), json!({}));
    for (wanted, original) in [
        (json!({ "type": "ref/prompt", "name": "b__p" }), json!({ "type": "ref/prompt", "name": "p" })),
        (
            json!({ "type": "ref/resource", "uri": "proxy://template/b/file:///{path}" }),
            json!({ "type": "ref/resource", "uri": "file:///{path}" }),
        ),
    ] {
        let argument = json!({ "name": "path", "value": "" });
        let answer = client.ask("completion/complete", json!({ "ref": wanted, "argument": argument }));
        let values = &answer["result"]["completion"]["values"];
        let named: Value = serde_json::from_str(values[1].as_str().unwrap()).unwrap();
        assert_eq!((&values[0], named), (&json!("b"), original), "{answer}");
    }
    client.end();
}

#[test]
fn long_names_are_shortened_the_same_way_every_time_and_lead_back() {
    let long = ["l".repeat(64), format!("{}1", "n".repeat(90)), format!("{}2", "n".repeat(90))];
    let mut given: Vec<Vec<String>> = Vec::new();
    for others in 0..2 {
        let sandbox = Sandbox::new();
        let tools: Vec<&str> = long.iter().map(String::as_str).collect();
        let mut fakes = vec![fake("long").tools(&tools)];
        fakes.extend((0..others).map(|_| fake("other").tools(&tools)));
        let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
        let tools = client.ask("tools/list", json!({}));
        let names = names_in(&tools, "tools", "name");
        for (name, original) in names.iter().zip(&long) {
            assert!(name.len() <= 64 && name.starts_with("long__"), "{name}");
            assert_eq!(client.says(name, ""), format!("long:{original}:"));
        }
        assert_eq!(tools["result"]["tools"][1]["_meta"]["io.github.mcp-proxy/original"], *long[1]);
        given.push(names.into_iter().filter(|name| name.starts_with("long__")).collect());
        client.end();
    }
    assert_eq!(given[0], given[1]);
    // Whoever remembers such a name may use it before anybody has asked for the list.
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("long").tools(&[&long[2]])], json!({}));
    assert_eq!(client.says(&given[0][2], "again"), format!("long:{}:again", long[2]));
    client.end();
}

#[test]
fn without_prefixes_what_two_servers_have_is_nobodys() {
    let sandbox = Sandbox::new();
    let fakes = [
        fake("a").tools(&["same", "mine"]).set("prefix", false),
        fake("b").tools(&["same", "yours"]).set("prefix", false),
        fake("c").tools(&["same"]),
    ];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let tools = client.ask("tools/list", json!({}));
    assert_eq!(names_in(&tools, "tools", "name"), ["mine", "yours", "c__same"]);
    assert_eq!(client.says("mine", "1"), "a:mine:1");
    assert_eq!(client.says("yours", "2"), "b:yours:2");
    assert_eq!(client.says("c__same", "3"), "c:same:3");
    let refused = client.call("same", json!({}));
    assert_eq!(refused["error"]["data"]["mcp-proxy/reason"], "name-collision", "{refused}");
    let said = client.end();
    assert!(said.contains("`same` of a") && said.contains("`same` of b"), "{said}");
    for server in ["a", "b"] {
        assert!(sandbox.seen(server, "tools/call").iter().all(|call| call["params"]["name"] != "same"));
    }
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
fn links_in_results_can_be_followed() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &twins(), json!({}));
    let link = json!({ "type": "resource_link", "name": "l", "uri": "file:///linked" });
    let embedded = json!({ "type": "resource", "resource": { "uri": "file:///embedded", "text": "t" } });
    let answer = client.steps("b__do", json!([{ "answer": { "content": [link, embedded] } }]));
    let content = &answer["result"]["content"];
    for (uri, original) in [(&content[0]["uri"], "linked"), (&content[1]["resource"]["uri"], "embedded")] {
        let read = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(read["result"]["contents"][0]["text"], format!("b:file:///{original}"));
    }
    client.end();
}

#[test]
fn tasks_are_told_apart() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &twins(), json!({}));
    let task = json!({ "task": { "taskId": "t1", "status": "working" } });
    let answer = client.steps("b__do", json!([{ "answer": task }]));
    let id = &answer["result"]["task"]["taskId"];
    assert_eq!(id, "b:t1");
    let got = client.ask("tasks/get", json!({ "taskId": id }));
    assert_eq!(got["result"], json!({ "taskId": "b:t1", "status": "working" }));
    assert_eq!(sandbox.seen("b", "tasks/get")[0]["params"]["taskId"], "t1");
    client.end();
}

#[test]
fn what_nobody_has_is_refused_as_a_server_would() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &twins(), json!({}));
    assert_eq!(code_of(&client.call("c__x", json!({}))), -32602);
    assert_eq!(code_of(&client.call("x", json!({}))), -32602);
    assert_eq!(code_of(&client.ask("prompts/get", json!({ "name": "p" }))), -32602);
    assert_eq!(code_of(&client.ask("resources/read", json!({ "uri": "file:///same" }))), -32002);
    assert_eq!(code_of(&client.ask("no/such/method", json!({}))), -32601);
    assert_eq!(code_of(&client.ask("tools/call", json!({}))), -32602);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    client.end();
}

#[test]
fn everybody_introduces_themselves_together() {
    let sandbox = Sandbox::new();
    let fakes = [fake("a").script("capabilities", json!({ "tools": {} })), fake("b")];
    let top = json!({ "name": "all", "instructions": "Ours." });
    let (client, opened) = StdioClient::open_with(sandbox.serve(&fakes, top), json!({}));
    let result = &opened["result"];
    assert_eq!(result["serverInfo"]["name"], "all");
    assert_eq!(result["capabilities"]["tools"], json!({ "listChanged": true }));
    assert_eq!(result["capabilities"]["resources"], json!({ "subscribe": true, "listChanged": true }));
    let instructions = result["instructions"].as_str().unwrap();
    assert!(instructions.starts_with("Ours.") && instructions.contains("b is a fake."), "{instructions}");
    client.end();
    // Servers hear who the client is, not who we are.
    assert_eq!(sandbox.seen("b", "initialize")[0]["params"]["clientInfo"], json!({ "name": "test", "version": "1" }));
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
fn a_notification_reaches_those_that_the_configuration_names() {
    const CHANGED: &str = "notifications/roots/list_changed";
    let reached = |setting: Value, is_shared: bool| {
        let sandbox = Sandbox::new();
        let top = if setting.is_null() { json!({}) } else { json!({ "notifications": setting }) };
        let gateway = sandbox.serve_http(&[fake("a"), fake("b")], top);
        let mut clients = vec![HttpClient::open(&gateway)];
        if is_shared {
            clients.push(HttpClient::open(&gateway));
        }
        let use_both = |client: &mut HttpClient| {
            for tool in ["a__x", "b__x"] {
                assert_eq!(text_of(&client.call(1, tool, json!({}))), format!("{}:x:", &tool[..1]));
            }
        };
        clients.iter_mut().for_each(use_both);
        assert_eq!(clients[0].post(&json!({ "jsonrpc": "2.0", "method": CHANGED })).status(), 202);
        // What comes after it has come, it has come.
        use_both(&mut clients[0]);
        gateway.end();
        ["a", "b"].map(|name| sandbox.seen(name, CHANGED).len())
    };
    // By itself it goes to servers that serve nobody else.
    assert_eq!(reached(Value::Null, false), [1, 1]);
    assert_eq!(reached(Value::Null, true), [0, 0]);
    assert_eq!(reached(json!("all"), true), [1, 1]);
    assert_eq!(reached(json!("nobody"), false), [0, 0]);
    assert_eq!(reached(json!(["b"]), true), [0, 1]);
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
