//! The MCP Proxy Extension, clause by clause; each test is named after its own. What only a client can show is
//! in the tests of `mcp-client`, and of `unwrap`.

use serde_json::{Value, json};

use crate::gateway_kit::{HttpClient, StdioClient, code_of, fake, names_in, text_of};
use crate::kit::{Sandbox, outcomes};
use crate::proxy_tool_kit::{data, full, names, tool};

fn tool_in(listed: &Value, name: &str) -> Value {
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{listed}")).clone()
}

#[test]
fn s2_1_the_tool_is_called_proxy_or_what_the_configuration_says() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a")], json!({ "proxy_tool": true }));
    tool_in(&client.ask("tools/list", json!({})), "proxy");
    client.end();
    let mut client = StdioClient::open(&sandbox, &[fake("a")], json!({ "proxy_tool": "mcp:proxy" }));
    let listed = client.ask("tools/list", json!({}));
    tool_in(&listed, "mcp:proxy");
    assert!(!names_in(&listed, "tools", "name").contains(&"proxy".to_owned()));
    assert_eq!(text_of(&client.call("mcp:proxy", json!({ "action": "call", "type": "tool", "path": "a__x" }))), "a:x:");
    client.end();
    // In front of one server, what the command line says.
    let script = sandbox.path("a.script");
    for flags in [&["--quiet", "--proxy-tool", "hub"][..], &["--quiet", "--proxy-tool=hub"]] {
        let proxy = sandbox.run(flags, &["upstream", script.to_str().unwrap()]);
        let mut client = StdioClient::open_with(proxy, json!({})).0;
        assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["hub", "x", "do"]);
        client.end();
    }
}

#[test]
fn s2_2_the_tool_accepts_action_type_path_and_args() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let schema = tool_in(&client.ask("tools/list", json!({})), "proxy")["inputSchema"].clone();
    for name in ["action", "type", "path", "args"] {
        assert!(schema["properties"][name]["description"].is_string(), "{name}: {schema}");
    }
    let args = json!({ "text": "hi" });
    let item = client.item(json!({ "action": "call", "type": "tool", "path": "x", "args": args }));
    assert_eq!(item["text"], "full:x:hi");
    client.end();
}

#[test]
fn s2_2_1_action_is_one_of_list_info_and_call() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let schema = tool_in(&client.ask("tools/list", json!({})), "proxy")["inputSchema"].clone();
    let values = schema["properties"]["action"]["enum"].as_array().unwrap();
    for action in ["list", "info", "call"] {
        assert!(values.contains(&json!(action)), "{schema}");
    }
    assert_eq!(schema["required"], json!(["action"]));
    client.content(json!({ "action": "list", "type": "tool" }));
    client.content(json!({ "action": "info", "type": "tool", "path": "x" }));
    client.content(json!({ "action": "call", "type": "tool", "path": "x" }));
    assert!(client.mistake(json!({ "type": "tool" })).contains("action"));
    client.end();
}

#[test]
fn s2_2_2_type_is_one_of_tool_resource_and_prompt() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let schema = tool_in(&client.ask("tools/list", json!({})), "proxy")["inputSchema"].clone();
    assert_eq!(schema["properties"]["type"]["enum"], json!(["tool", "resource", "prompt"]));
    for kind in ["tool", "resource", "prompt"] {
        client.content(json!({ "action": "list", "type": kind }));
    }
    for action in ["list", "info", "call"] {
        let path = (action != "list").then_some("x");
        let said = client.mistake(json!({ "action": action, "path": path }));
        assert!(said.contains("type"), "{said}");
    }
    client.end();
}

#[test]
fn s2_2_3_path_is_required_for_info_and_call_and_must_not_be_given_to_list() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for action in ["info", "call"] {
        let said = client.mistake(json!({ "action": action, "type": "tool" }));
        assert!(said.contains("path") && said.contains(action), "{said}");
    }
    let said = client.mistake(json!({ "action": "list", "type": "tool", "path": "x" }));
    assert!(said.contains("`path` is only for"), "{said}");
    client.end();
}

#[test]
fn s2_2_4_args_are_for_call_only() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for (action, path) in [("list", None), ("info", Some("x"))] {
        let said = client.mistake(json!({ "action": action, "type": "tool", "path": path, "args": { "a": 1 } }));
        assert!(said.contains("args") && said.contains("call"), "{said}");
    }
    // An object, or a text that holds one.
    for args in [json!({ "text": "t" }), json!("{\"text\":\"t\"}")] {
        let item = client.item(json!({ "action": "call", "type": "tool", "path": "x", "args": args }));
        assert_eq!(item["text"], "full:x:t");
    }
    for args in [json!([1]), json!("no object"), json!(7)] {
        let said = client.mistake(json!({ "action": "call", "type": "tool", "path": "x", "args": args }));
        assert!(said.contains("args"), "{said}");
    }
    client.end();
    assert_eq!(sandbox.seen("full", "tools/call").len(), 2);
}

#[test]
fn s2_3_what_is_missing_unknown_or_does_not_go_together_is_said_clearly() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for (arguments, words) in [
        (json!({}), vec!["action"]),
        (json!({ "action": "list" }), vec!["type"]),
        (json!({ "action": "lst", "type": "tool" }), vec!["lst", "list", "info", "call"]),
        (json!({ "action": "list", "type": "tols" }), vec!["tols", "tool", "resource", "prompt"]),
        (json!({ "action": 1, "type": "tool" }), vec!["action"]),
        (json!({ "action": "list", "type": "tool", "limit": 0 }), vec!["limit"]),
        (json!({ "action": "list", "type": "tool", "offset": -1 }), vec!["offset"]),
        (json!({ "action": "call", "type": "tool", "path": "x", "limit": 5 }), vec!["limit", "list"]),
        (json!({ "action": "info", "type": "tool", "path": "x", "filter": {} }), vec!["filter", "list"]),
        (json!({ "action": "list", "type": "tool", "pth": "x" }), vec!["pth", "path"]),
        (json!({ "action": "list", "type": "tool", "filter": { "tag": ["a"] } }), vec!["tag", "tags"]),
        (json!({ "action": "list", "type": "tool", "filter": { "server": "nobody" } }), vec!["nobody", "full"]),
        (json!({ "action": "call", "type": "tool", "path": "x", "operations": [] }), vec!["operations", "batch"]),
    ] {
        let said = client.mistake(arguments.clone());
        assert!(words.iter().all(|word| said.contains(word)), "{arguments}: {said}");
    }
    client.end();
    assert!(sandbox.seen("full", "tools/call").is_empty());
}

#[test]
fn s3_1_queries_return_one_embedded_resource() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for kind in ["tool", "resource", "prompt"] {
        let item = client.item(json!({ "action": "list", "type": kind }));
        assert_eq!(item["type"], "resource");
    }
    for (kind, path) in [("tool", "x"), ("resource", "mem://notes"), ("prompt", "greet")] {
        let item = client.item(json!({ "action": "info", "type": kind, "path": path }));
        assert_eq!(item["type"], "resource");
    }
    client.end();
}

#[test]
fn s3_1_1_a_query_has_the_structure_of_the_extension() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let item = client.item(json!({ "action": "info", "type": "prompt", "path": "greet" }));
    let text = item["resource"]["text"].clone();
    assert_eq!(
        item,
        json!({
            "type": "resource",
            "resource": { "uri": "proxy:info/prompt/greet", "mimeType": "application/json", "text": text },
            "annotations": {
                "proxyAction": "info", "proxyType": "prompt", "proxyPath": "greet",
                "pythonType": "Prompt", "many": false, "dataType": "Prompt", "isArray": false,
            },
        })
    );
    assert_eq!((&data(&item)["name"], &data(&item)["arguments"]), (&json!("greet"), &json!([{ "name": "who" }])));
    client.end();
}

#[test]
fn s3_1_2_a_query_says_what_it_was_and_only_info_says_of_what() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let listed = client.item(json!({ "action": "list", "type": "resource" }))["annotations"].clone();
    assert_eq!((&listed["proxyAction"], &listed["proxyType"]), (&json!("list"), &json!("resource")));
    assert!(listed.get("proxyPath").is_none());
    let told = client.item(json!({ "action": "info", "type": "resource", "path": "mem://notes" }));
    let told = told["annotations"].clone();
    assert_eq!((&told["proxyAction"], &told["proxyType"]), (&json!("info"), &json!("resource")));
    assert_eq!(told["proxyPath"], "mem://notes");
    client.end();
}

#[test]
fn s3_1_2_a_query_says_which_type_its_data_has_and_whether_there_are_many() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for (kind, of_list, path, of_info) in [
        ("tool", "Tool", "x", "Tool"),
        ("prompt", "Prompt", "greet", "Prompt"),
        ("resource", "Resource|ResourceTemplate", "mem://notes", "Resource"),
        ("resource", "Resource|ResourceTemplate", "mem://notes/{id}", "ResourceTemplate"),
    ] {
        let said = client.item(json!({ "action": "list", "type": kind }))["annotations"].clone();
        assert_eq!((&said["pythonType"], &said["many"]), (&json!(of_list), &json!(true)));
        let said = client.item(json!({ "action": "info", "type": kind, "path": path }))["annotations"].clone();
        assert_eq!((&said["pythonType"], &said["many"]), (&json!(of_info), &json!(false)));
    }
    client.end();
}

#[test]
fn s3_2_a_call_returns_the_actual_result_of_what_was_called() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let native = json!({
        "content": [{ "type": "text", "text": "a" }, { "type": "image", "data": "aGk=", "mimeType": "image/png" }],
        "structuredContent": { "sum": 8 }, "isError": true, "_meta": { "k": 1 }, "unknown": [1.5],
    });
    let mut result = client.result_of(native.clone());
    for item in result["content"].as_array_mut().unwrap() {
        item.as_object_mut().unwrap().remove("annotations").unwrap();
    }
    assert_eq!(result, native);
    client.end();
}

#[test]
fn s3_2_1_every_item_of_a_tools_content_is_annotated() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let linked = json!({ "type": "resource_link", "uri": "mem://notes", "name": "n" });
    let embedded = json!({ "type": "resource", "resource": { "uri": "a://b", "text": "{ }" } });
    let noted = json!({ "type": "text", "text": "t", "annotations": { "audience": ["user"], "priority": 0.50 } });
    let result = client.result_of(json!({ "content": [noted, linked, embedded] }));
    let content = result["content"].as_array().unwrap();
    for item in content {
        let said = &item["annotations"];
        let own = (&said["proxyType"], &said["proxyAction"], &said["proxyPath"]);
        assert_eq!(own, (&json!("tool"), &json!("call"), &json!("do")));
    }
    // What was said already is still said, and what is embedded stays as it is.
    assert_eq!(content[0]["annotations"]["audience"], json!(["user"]));
    assert_eq!(content[0]["annotations"]["priority"], json!(0.5));
    assert_eq!(content[2]["resource"], json!({ "uri": "a://b", "text": "{ }" }));
    client.end();
}

/// A server whose resources all read like this.
#[track_caller]
fn read(contents: Value) -> Value {
    let sandbox = Sandbox::new();
    let on = json!({ "resources/read": [{ "answer": { "contents": contents } }] });
    let mut client = StdioClient::with_tool(&sandbox, full().script("on", on));
    let result = client.proxy(json!({ "action": "call", "type": "resource", "path": "mem://notes" }))["result"].clone();
    client.end();
    result
}

#[test]
fn s3_2_2_what_a_resource_holds_becomes_embedded_resources() {
    let result = read(json!([
        { "uri": "mem://notes", "mimeType": "text/markdown", "text": "# a" },
        { "uri": "mem://more", "text": "b" },
    ]));
    let annotations = json!({ "proxyType": "resource", "proxyAction": "call", "proxyPath": "mem://notes" });
    let first = json!({ "uri": "mem://notes", "mimeType": "text/markdown", "text": "# a" });
    assert_eq!(
        result["content"],
        json!([
            { "type": "resource", "resource": first, "annotations": annotations },
            { "type": "resource", "resource": { "uri": "mem://more", "text": "b" }, "annotations": annotations },
        ])
    );
    assert!(result.get("contents").is_none());
}

#[test]
fn s3_2_2_text_that_is_json_is_written_anew_and_its_type_kept() {
    let text = "{\n  \"key\": \"value\",\n \"n\": 1.0, \"a\": [ 1, 2 ] }\n";
    let result = read(json!([{ "uri": "mem://notes", "mimeType": "text/plain", "text": text }]));
    assert_eq!(
        result["content"][0]["resource"],
        json!({
            "uri": "mem://notes", "mimeType": "application/json",
            "text": r#"{"key":"value","n":1.0,"a":[1,2]}"#, "contentType": "text/plain",
        })
    );
}

#[test]
fn s3_2_2_what_is_no_json_is_left_alone() {
    for contents in [
        json!({ "uri": "mem://notes", "mimeType": "image/png", "blob": "aGk=" }),
        json!({ "uri": "mem://notes", "mimeType": "application/json", "text": "{ \"cut" }),
        json!({ "uri": "mem://notes", "text": "plain" }),
    ] {
        assert_eq!(read(json!([contents]))["content"][0]["resource"], contents);
    }
}

#[test]
fn s3_2_3_a_prompt_is_wrapped_with_what_it_says_as_json() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let native = client.ask("prompts/get", json!({ "name": "greet", "arguments": { "who": "you" } }));
    let item = client.item(json!({ "action": "call", "type": "prompt", "path": "greet", "args": { "who": "you" } }));
    assert_eq!(data(&item), native["result"]);
    assert_eq!(item["type"], "resource");
    assert_eq!(item["resource"]["uri"], "proxy:call/prompt/greet");
    assert_eq!(item["resource"]["mimeType"], "application/json");
    assert_eq!(
        item["annotations"],
        json!({
            "proxyType": "prompt", "proxyAction": "call", "proxyPath": "greet",
            "pythonType": "GetPromptResult", "dataType": "GetPromptResult",
        })
    );
    client.end();
    let seen = sandbox.seen("full", "prompts/get");
    assert_eq!(seen[0]["params"]["arguments"], seen[1]["params"]["arguments"]);
}

#[test]
fn s4_1_types_are_said_in_annotations_in_neutral_words_too() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for kind in ["tool", "resource", "prompt"] {
        let said = client.item(json!({ "action": "list", "type": kind }))["annotations"].clone();
        assert_eq!((&said["dataType"], &said["isArray"]), (&said["pythonType"], &said["many"]));
        assert!(said["dataType"].is_string() && said["isArray"].is_boolean(), "{said}");
    }
    client.end();
}

#[test]
fn s4_1_2_type_identifiers_are_simple_names_or_unions_of_them() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for (kind, identifier) in [("tool", "Tool"), ("resource", "Resource|ResourceTemplate"), ("prompt", "Prompt")] {
        assert_eq!(client.item(json!({ "action": "list", "type": kind }))["annotations"]["pythonType"], identifier);
    }
    client.end();
}

#[test]
fn s4_2_1_the_original_type_of_what_is_written_anew_is_kept() {
    let result = read(json!([{ "uri": "mem://notes", "mimeType": "application/ld+json", "text": "[]" }]));
    let resource = &result["content"][0]["resource"];
    assert_eq!(
        (&resource["mimeType"], &resource["contentType"]),
        (&json!("application/json"), &json!("application/ld+json"))
    );
    // Where nothing was said, there is nothing to keep.
    let result = read(json!([{ "uri": "mem://notes", "text": "[]" }]));
    assert_eq!(result["content"][0]["resource"]["mimeType"], "application/json");
    assert!(result["content"][0]["resource"].get("contentType").is_none());
}

#[test]
fn s4_2_2_whatever_parses_as_json_is_json() {
    for (text, written) in
        [("42", "42"), (" \"a\" ", "\"a\""), ("[1 ,2]", "[1,2]"), ("null", "null"), ("1e400", "1e400")]
    {
        let result = read(json!([{ "uri": "mem://notes", "mimeType": "text/plain", "text": text }]));
        let resource = &result["content"][0]["resource"];
        assert_eq!((&resource["mimeType"], &resource["text"]), (&json!("application/json"), &json!(written)));
    }
}

#[test]
fn s4_2_3_what_is_binary_stays_with_its_own_type() {
    let blob = json!({ "uri": "mem://notes", "mimeType": "application/json", "blob": "e30=" });
    assert_eq!(read(json!([blob]))["content"][0]["resource"], blob);
}

#[test]
fn s5_errors_are_those_of_the_protocol() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[full(), fake("b")], tool("beside"));
    // What a caller can mend is a result that says so, as of any tool.
    let answer = client.proxy(json!({ "action": "call" }));
    assert_eq!((&answer["result"]["isError"], &answer["result"]["content"][0]["type"]), (&json!(true), &json!("text")));
    // What the protocol calls an error is one.
    assert_eq!(code_of(&client.proxy(json!({ "action": "info", "type": "tool", "path": "nothing" }))), -32602);
    client.end();
}

#[test]
fn s5_1_wrong_parameters_reach_nobody() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    client.mistake(json!({ "action": "call", "type": "tool" }));
    client.mistake(json!({ "action": "list", "type": "tool", "args": { "a": 1 } }));
    client.mistake(json!({ "action": "run", "type": "tool", "path": "x" }));
    client.mistake(json!({ "action": "call", "type": "tol", "path": "x" }));
    client.end();
    assert!(sandbox.seen("full", "tools/call").is_empty());
}

#[test]
fn s5_2_errors_of_what_is_called_come_through_as_they_are() {
    let sandbox = Sandbox::new();
    let error = json!({ "resources/read": [{ "error": -32002 }], "prompts/get": [{ "error": -32602 }] });
    let mut client = StdioClient::open(&sandbox, &[full().script("on", error), fake("b")], tool("beside"));
    for (method, params, arguments) in [
        ("tools/call", json!({ "name": "do", "arguments": { "steps": [{ "error": -32007 }] } }), None),
        ("resources/read", json!({ "uri": "mem://notes" }), Some(("resource", "mem://notes"))),
        ("prompts/get", json!({ "name": "greet" }), Some(("prompt", "greet"))),
    ] {
        let direct = client.ask(method, params.clone());
        let through = match arguments {
            Some((kind, path)) => json!({ "action": "call", "type": kind, "path": path }),
            None => json!({ "action": "call", "type": "tool", "path": "do", "args": params["arguments"] }),
        };
        assert_eq!(client.proxy(through)["error"], direct["error"], "{direct}");
        assert!(code_of(&direct) < 0);
    }
    // What a tool finds wrong with its arguments is its own result.
    let result =
        client.result_of(json!({ "content": [{ "type": "text", "text": "a is no number" }], "isError": true }));
    assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!("a is no number")));
    client.end();
}

#[test]
fn s5_2_a_tool_that_is_not_there_is_as_unknown_as_it_is_by_itself() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], tool("beside"));
    let direct = client.call("nothing", json!({}));
    assert_eq!(code_of(&direct), -32602);
    assert_eq!(client.proxy(json!({ "action": "call", "type": "tool", "path": "nothing" }))["error"], direct["error"]);
    client.end();
}

#[test]
fn s6_1_the_tool_can_be_found_by_its_name_and_its_description() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let found = tool_in(&client.ask("tools/list", json!({})), "proxy");
    let said = found["description"].as_str().unwrap().to_lowercase();
    for word in ["proxy", "list", "info", "call", "tool", "resource", "prompt"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(client.proxy(json!({ "action": "list", "type": "tool" })).get("result").is_some());
    client.end();
}

#[test]
fn s6_2_what_there_is_can_be_listed_described_and_then_called() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let listed = client.item(json!({ "action": "list", "type": "tool" }));
    assert_eq!(names(&listed), ["calculator_add", "x", "do"]);
    let native = client.ask("tools/list", json!({}));
    for name in names(&listed) {
        let told = client.item(json!({ "action": "info", "type": "tool", "path": name }));
        assert_eq!(data(&told), tool_in(&native, &name));
    }
    let resources = client.item(json!({ "action": "list", "type": "resource" }));
    assert_eq!(names(&resources), ["notes", "note"]);
    // By name as well as by address.
    for path in ["notes", "mem://notes"] {
        let told = client.item(json!({ "action": "info", "type": "resource", "path": path }));
        assert_eq!(data(&told)["uri"], "mem://notes");
    }
    client.end();
}

#[test]
fn s7_1_access_controls_of_servers_and_policies_of_ours_hold() {
    let sandbox = Sandbox::new();
    std::fs::write(
        sandbox.path("rules.json"),
        r#"{"policy": {"rules": [{"name": "no-sums", "match": "tool:calculator_add", "verdict": "deny"}]}}"#,
    )
    .unwrap();
    let mut top = tool("beside");
    top["rules"] = sandbox.path("rules.json").to_str().into();
    let mut client = StdioClient::open(&sandbox, &[full()], top);
    let direct = client.call("calculator_add", json!({}));
    let through = client.proxy(json!({ "action": "call", "type": "tool", "path": "calculator_add" }));
    assert_eq!((code_of(&direct), code_of(&through)), (-32000, -32000));
    assert_eq!(through["error"]["data"]["tool"], "calculator_add");
    // What a server refuses stays refused.
    let refused = json!({ "steps": [{ "error": -32003 }] });
    assert_eq!(
        code_of(&client.proxy(json!({ "action": "call", "type": "tool", "path": "do", "args": refused }))),
        -32003
    );
    client.end();
    assert_eq!(sandbox.seen("full", "tools/call").len(), 1);
}

#[test]
fn s7_1_what_is_done_with_the_tool_is_written_down() {
    let sandbox = Sandbox::new();
    std::fs::write(
        sandbox.path("rules.json"),
        r#"{"policy": {"rules": [{"name": "x", "match": "tool:x", "verdict": "allow"}]}}"#,
    )
    .unwrap();
    let mut top = tool("beside");
    top["rules"] = sandbox.path("rules.json").to_str().into();
    let mut client = StdioClient::open(&sandbox, &[full()], top);
    client.content(json!({ "action": "list", "type": "prompt" }));
    client.content(json!({ "action": "info", "type": "tool", "path": "x" }));
    client.content(json!({ "action": "call", "type": "tool", "path": "x" }));
    client.end();
    let audit = sandbox.stdout(["audit", "--json"]);
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decided = |tool: &str| lines.iter().filter(|line| line["kind"] == "decision" && line["tool"] == tool).count();
    assert_eq!((decided("proxy"), decided("x")), (3, 1), "{audit}");
    assert!(lines.iter().any(|line| line["why"] == "list prompt" && line["client"] == "test"), "{audit}");
    // What came of each is known, too.
    assert_eq!(outcomes(&lines).filter(|call| call["outcome"] == "ok").count(), 4, "{audit}");
    assert_eq!(outcomes(&lines).count(), 4, "{audit}");
    let table = sandbox.stdout(["audit"]);
    for use_of_it in ["proxy: list prompt ", "proxy: info tool ", "proxy: call tool ", " x "] {
        assert!(table.lines().any(|line| line.contains(use_of_it)), "{use_of_it}: {table}");
    }
}

#[test]
fn s7_2_errors_tell_nothing_of_how_a_server_is_run() {
    let sandbox = Sandbox::new();
    let dead = fake("dead").set("command", json!(["/no/such/secret-program", "--token", "hush"]));
    let mut client = StdioClient::open(&sandbox, &[fake("a"), dead], tool("beside"));
    let killed = json!({ "steps": [{ "exit": 3 }] });
    for arguments in [
        json!({ "action": "call", "type": "tool", "path": "dead__x" }),
        json!({ "action": "call", "type": "tool", "path": "a__do", "args": killed }),
    ] {
        let answer = client.proxy(arguments).to_string();
        for word in ["secret", "hush", "/no/such", "exit", "status", "program"] {
            assert!(!answer.contains(word), "{word}: {answer}");
        }
        assert!(answer.contains("not available"), "{answer}");
    }
    client.end_somehow();
}

#[test]
fn s7_2_annotations_hold_nothing_but_what_the_caller_said_and_knows() {
    let sandbox = Sandbox::new();
    let server = full().set("env", json!({ "TOKEN": "hush" }));
    let mut client = StdioClient::with_tool(&sandbox, server);
    let known = ["proxyAction", "proxyType", "proxyPath", "pythonType", "many", "dataType", "isArray"];
    for arguments in [
        json!({ "action": "list", "type": "tool" }),
        json!({ "action": "info", "type": "tool", "path": "x" }),
        json!({ "action": "call", "type": "tool", "path": "x", "args": { "text": "sesame" } }),
        json!({ "action": "call", "type": "prompt", "path": "greet", "args": { "who": "sesame" } }),
    ] {
        let said = client.item(arguments)["annotations"].clone();
        assert!(said.as_object().unwrap().keys().all(|name| known.contains(&name.as_str())), "{said}");
        assert!(!said.to_string().contains("sesame") && !said.to_string().contains("hush"), "{said}");
    }
    client.end();
}

#[test]
fn s7_2_the_tool_is_no_way_around_a_token() {
    let sandbox = Sandbox::new();
    let mut top = tool("beside");
    top["tokens"] = json!([
        { "name": "few", "token": "few-token", "servers": ["a"] },
        { "name": "all", "token": "all-token" },
    ]);
    let gateway = sandbox.serve_http(&[fake("a"), fake("b")], top);
    let mut client = HttpClient::open_with(&gateway, &["Authorization: Bearer few-token"], json!({}));
    let call = |path: &str| json!({ "action": "call", "type": "tool", "path": path });
    assert_eq!(text_of(&client.call(1, "proxy", call("a__x"))), "a:x:");
    assert_eq!(code_of(&client.call(2, "proxy", call("b__x"))), -32602);
    let listed = client.call(3, "proxy", json!({ "action": "list", "type": "tool" }));
    assert_eq!(names(&listed["result"]["content"][0]), ["a__x", "a__do"]);
    let mut client = HttpClient::open_with(&gateway, &["Authorization: Bearer all-token"], json!({}));
    assert_eq!(text_of(&client.call(1, "proxy", call("b__x"))), "b:x:");
    gateway.end();
    assert_eq!(sandbox.seen("b", "tools/call").len(), 1);
}

#[test]
fn s8_1_whoever_knows_nothing_of_the_tool_loses_nothing() {
    let sandbox = Sandbox::new();
    let mut plain = StdioClient::open(&sandbox, &[full()], json!({}));
    let mut client = StdioClient::with_tool(&sandbox, full());
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let (without, mut with) = (plain.ask(method, json!({})), client.ask(method, json!({})));
        if let Some(Value::Array(tools)) = with["result"].get_mut("tools") {
            tools.retain(|tool| tool["name"] != "proxy");
        }
        assert_eq!(with["result"], without["result"]);
    }
    assert_eq!(client.says("x", "1"), "full:x:1");
    plain.end();
    client.end();
}

#[test]
fn s8_2_what_is_added_has_names_of_its_own_and_leaves_the_core_alone() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let page = client.item(json!({ "action": "list", "type": "tool", "limit": 2, "offset": 1 }));
    let whole = client.item(json!({ "action": "list", "type": "tool" }));
    let added: Vec<&String> = {
        let core = whole["annotations"].as_object().unwrap();
        page["annotations"].as_object().unwrap().keys().filter(|name| !core.contains_key(*name)).collect()
    };
    assert!(!added.is_empty() && added.iter().all(|name| name.starts_with("proxy")), "{added:?}");
    assert_eq!(page["resource"]["uri"], whole["resource"]["uri"]);
    client.end();
}

#[test]
fn s9_2_1_everything_is_checked_before_anything_is_done() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let said = client.mistake(json!({ "action": "call", "type": "tool", "path": "x", "args": {}, "limit": 1 }));
    assert!(said.contains("limit"), "{said}");
    client.end();
    assert!(sandbox.seen("full", "tools/call").is_empty());
}

#[test]
fn s9_2_2_every_kind_of_answer_is_annotated() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for (action, kind, path) in [
        ("list", "tool", None),
        ("info", "tool", Some("x")),
        ("call", "tool", Some("x")),
        ("call", "resource", Some("mem://notes")),
        ("call", "prompt", Some("greet")),
    ] {
        let mut arguments = json!({ "action": action, "type": kind });
        if let Some(path) = path {
            arguments["path"] = path.into();
        }
        let said = client.item(arguments)["annotations"].clone();
        assert_eq!((&said["proxyAction"], &said["proxyType"]), (&json!(action), &json!(kind)));
        assert_eq!(said.get("proxyPath"), path.map(Value::from).as_ref());
    }
    client.end();
}

#[test]
fn s9_2_3_after_every_error_the_next_use_works() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for arguments in [
        json!({ "action": "nothing" }),
        json!({ "action": "call", "type": "tool", "path": "nothing" }),
        json!({ "action": "call", "type": "tool", "path": "do", "args": { "steps": [{ "error": -1 }] } }),
        json!({ "action": "call", "type": "tool", "path": "do", "args": { "steps": [{ "answer": 7 }] } }),
    ] {
        client.proxy(arguments);
        assert_eq!(client.item(json!({ "action": "call", "type": "tool", "path": "x" }))["text"], "full:x:");
    }
    client.end();
}

#[test]
fn s9_2_4_connections_are_shared_and_lists_kept() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    for _ in 0..20 {
        client.content(json!({ "action": "list", "type": "tool" }));
        client.content(json!({ "action": "info", "type": "tool", "path": "x" }));
        client.content(json!({ "action": "call", "type": "tool", "path": "x" }));
    }
    client.end();
    assert_eq!((sandbox.starts("full").len(), sandbox.seen("full", "tools/list").len()), (1, 1));
}

#[test]
fn s10_1_the_example_of_a_list() {
    let sandbox = Sandbox::new();
    let schema = json!({ "type": "object" });
    let calculator = json!([{ "name": "calculator_add", "description": "Add two numbers", "inputSchema": schema }]);
    let server = fake("calculator").set("prefix", false).list("tools", calculator);
    let mut client = StdioClient::with_tool(&sandbox, server);
    let mut item = client.item(json!({ "action": "list", "type": "tool" }));
    let listed = data(&item);
    assert_eq!((&listed[0]["name"], &listed[0]["description"]), (&json!("calculator_add"), &json!("Add two numbers")));
    item["resource"]["text"] = "the list".into();
    assert_eq!(
        item,
        json!({
            "type": "resource",
            "resource": { "uri": "proxy:list/tool", "mimeType": "application/json", "text": "the list" },
            "annotations": {
                "proxyAction": "list", "proxyType": "tool", "pythonType": "Tool", "many": true,
                "dataType": "Tool", "isArray": true,
            },
        })
    );
    client.end();
}

#[test]
fn s10_2_the_example_of_a_call() {
    let sandbox = Sandbox::new();
    let on = json!({ "tools/call": [{ "text": "8" }] });
    let server = fake("calculator").set("prefix", false).tools(&["calculator_add"]).script("on", on);
    let mut client = StdioClient::with_tool(&sandbox, server);
    let arguments = json!({ "action": "call", "type": "tool", "path": "calculator_add", "args": { "a": 5, "b": 3 } });
    assert_eq!(
        client.content(arguments),
        [json!({
            "type": "text", "text": "8",
            "annotations": { "proxyType": "tool", "proxyAction": "call", "proxyPath": "calculator_add" },
        })]
    );
    client.end();
    let seen = &sandbox.seen("calculator", "tools/call")[0]["params"];
    assert_eq!((&seen["name"], &seen["arguments"]), (&json!("calculator_add"), &json!({ "a": 5, "b": 3 })));
}
