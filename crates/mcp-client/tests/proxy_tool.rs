//! Servers that keep their capabilities behind a proxy tool: one that answers exactly as the extension's text shows,
//! one with what this project adds, and some that only look the part.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kit;

use kit::{Answer, Error, Knows, LEGACY, MODERN_ONLY, Result, TOOLS, client, raw_value, text, value};
use mcp_client::{ClientError, Listing, Mode, Type, Use};
use serde_json::{Value, json};

/// As the extension's text has it: `pythonType` and `many`, and nothing more.
fn as_shown(method: &str, params: &Value) -> Answer {
    match method {
        "tools/list" => Result(json!({ "tools": [{ "name": "proxy", "description": "list, info, call" }] })),
        "tools/call" if params["name"] == "proxy" => proxied(&params["arguments"]),
        _ => Error(-32601, "no such method"),
    }
}

fn proxied(arguments: &Value) -> Answer {
    let (kind, path) = (&arguments["type"], &arguments["path"]);
    let query = |uri: String, data: Value, python_type: &str, many: bool| {
        let mut annotations = json!({
            "proxyAction": arguments["action"], "proxyType": kind, "pythonType": python_type, "many": many,
        });
        if !path.is_null() {
            annotations["proxyPath"] = path.clone();
        }
        let resource = json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() });
        Result(json!({ "content": [{ "type": "resource", "resource": resource, "annotations": annotations }] }))
    };
    let called = |mut item: Value| {
        item["annotations"] = json!({ "proxyType": kind, "proxyAction": "call", "proxyPath": path });
        Result(json!({ "content": [item] }))
    };
    let tool = json!({ "name": "calculator_add", "description": "Add two numbers" });
    let words = [&arguments["action"], kind, path].map(|word| word.as_str().unwrap_or_default());
    match words {
        ["list", "tool", ""] => query("proxy:list/tool".into(), json!([tool]), "Tool", true),
        ["list", "prompt", ""] => query("proxy:list/prompt".into(), json!([{ "name": "greet" }]), "Prompt", true),
        ["list", "resource", ""] => {
            let both = json!([{ "name": "r", "uri": "mem://r" }, { "name": "t", "uriTemplate": "mem://{id}" }]);
            query("proxy:list/resource".into(), both, "Resource|ResourceTemplate", true)
        }
        ["info", "tool", "calculator_add"] => query("proxy:info/tool/calculator_add".into(), tool, "Tool", false),
        ["call", "tool", "calculator_add"] => {
            let sum = arguments["args"]["a"].as_i64().unwrap() + arguments["args"]["b"].as_i64().unwrap();
            called(json!({ "type": "text", "text": sum.to_string() }))
        }
        ["call", "tool", "broken"] => {
            Result(json!({ "content": [{ "type": "text", "text": "out of order" }], "isError": true }))
        }
        ["call", "resource", "mem://r"] => {
            let resource = json!({
                "uri": "mem://r", "mimeType": "application/json", "text": "{\"key\":\"value\"}", "contentType": "text/plain",
            });
            called(json!({ "type": "resource", "resource": resource }))
        }
        ["call", "resource", "mem://picture"] => {
            called(json!({ "type": "resource", "resource": { "uri": path, "mimeType": "image/png", "blob": "AAAA" } }))
        }
        ["call", "prompt", "greet"] => {
            let prompt = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": arguments["args"]["who"] } }] });
            let resource =
                json!({ "uri": "proxy:call/prompt/greet", "mimeType": "application/json", "text": prompt.to_string() });
            let annotations = json!({
                "proxyType": "prompt", "proxyAction": "call", "proxyPath": "greet", "pythonType": "GetPromptResult",
            });
            Result(json!({ "content": [{ "type": "resource", "resource": resource, "annotations": annotations }] }))
        }
        ["call", "prompt", "missing"] => Error(-32602, "Unknown prompt: missing"),
        _ => Result(json!({ "content": [{ "type": "text", "text": "Unknown capability" }], "isError": true })),
    }
}

fn names(listing: &Listing) -> Vec<String> {
    listing.names().collect()
}

#[tokio::test]
async fn s9_1_2_a_server_as_the_extension_shows_it_is_as_good_as_a_native_one() {
    for (knows, mode) in [(TOOLS, Mode::Auto), (LEGACY, Mode::Always), (MODERN_ONLY, Mode::Always)] {
        let (client, seen) = client(knows, as_shown);
        let client = client.mode(mode);
        assert_eq!(client.proxy_tool().await.unwrap(), Some("proxy"));
        assert_eq!(names(&client.list_tools().await.unwrap()), ["calculator_add"]);
        assert_eq!(names(&client.list_resources().await.unwrap()), ["r"]);
        assert_eq!(names(&client.list_resource_templates().await.unwrap()), ["t"]);
        assert_eq!(names(&client.list_prompts().await.unwrap()), ["greet"]);
        let info = client.info(Type::Tool, "calculator_add").await.unwrap();
        assert_eq!(value(&info), json!({ "name": "calculator_add", "description": "Add two numbers" }));

        let wants = Use::default();
        let arguments = raw_value(&json!({ "a": 5, "b": 3 }));
        let called = client.call_tool("calculator_add", Some(&arguments), &wants).await.unwrap();
        assert_eq!((value(&called.json), called.is_error), (text("8"), false));
        let read = client.read_resource("mem://r", &wants).await.unwrap();
        let contents = json!([{ "uri": "mem://r", "mimeType": "text/plain", "text": "{\"key\":\"value\"}" }]);
        assert_eq!(value(&read)["contents"], contents);
        let picture = client.read_resource("mem://picture", &wants).await.unwrap();
        assert_eq!(value(&picture)["contents"][0]["blob"], "AAAA");
        let prompt = client.get_prompt("greet", Some(&raw_value(&json!({ "who": "Ada" }))), &wants).await.unwrap();
        assert_eq!(value(&prompt)["messages"][0]["content"]["text"], "Ada");

        assert!(seen.methods().iter().all(|method| !matches!(method.as_str(), "resources/read" | "prompts/get")));
        let arguments = seen.params("tools/call").into_iter().map(|params| params["arguments"].clone());
        let known = ["action", "type", "path", "args"];
        for arguments in arguments {
            let extra = arguments.as_object().unwrap().keys().find(|key| !known.contains(&key.as_str()));
            assert_eq!(extra, None, "a tool of the extension alone knows no more: {arguments}");
        }
    }
}

#[tokio::test]
async fn what_goes_wrong_behind_the_tool_is_told_as_a_native_server_would() {
    let (client, _) = client(TOOLS, as_shown);
    let wants = Use::default();
    let broken = client.call_tool("broken", None, &wants).await.unwrap();
    assert!(broken.is_error && broken.json.get().contains("out of order"), "{}", broken.json);
    let missing = client.get_prompt("missing", None, &wants).await.unwrap_err();
    assert_eq!(missing.rpc().unwrap().code, -32602);
    let nowhere = client.read_resource("mem://nowhere", &wants).await.unwrap_err();
    assert!(matches!(&nowhere, ClientError::Refused(said) if said == "Unknown capability"), "{nowhere}");
    assert!(matches!(client.info(Type::Prompt, "nothing").await.unwrap_err(), ClientError::Refused(_)));
}

#[tokio::test]
async fn the_tool_is_left_alone_where_it_is_not_wanted() {
    let (client, _) = client(TOOLS, as_shown);
    let client = client.mode(Mode::Never);
    assert_eq!(client.proxy_tool().await.unwrap(), None);
    assert_eq!(names(&client.list_tools().await.unwrap()), ["proxy"]);
    let arguments = raw_value(&json!({ "action": "list", "type": "tool" }));
    let called = client.call_tool("proxy", Some(&arguments), &Use::default()).await.unwrap();
    assert_eq!(value(&called.json)["content"][0]["annotations"]["pythonType"], "Tool");
}

#[tokio::test]
async fn s9_1_1_a_tool_that_must_be_there_and_is_not_is_an_error() {
    let none = |method: &str, _: &Value| match method {
        "tools/list" => Result(json!({ "tools": [] })),
        _ => Error(-32601, "no such method"),
    };
    let (always, _) = client(TOOLS, none);
    assert!(matches!(always.mode(Mode::Always).list_tools().await.unwrap_err(), ClientError::NoProxyTool));
    let (named, _) = client(TOOLS, as_shown);
    assert!(matches!(named.tool_name("mcp:proxy").list_tools().await.unwrap_err(), ClientError::NoProxyTool));
}

/// This project's own: its definition, results and pages.
fn ours(method: &str, params: &Value) -> Answer {
    use mcp_proxy_tool::arguments::{Operation, Request, parse};
    use mcp_proxy_tool::shape::{self, Dialect};
    let native: Vec<String> = (0..1200).map(|number| json!({ "name": format!("tool_{number}") }).to_string()).collect();
    match method {
        "tools/list" => {
            let own = mcp_proxy_tool::definition::definition("proxy", false);
            let own: Value = serde_json::from_slice(&own).unwrap();
            Result(json!({ "tools": [own, { "name": "tool_0", "title": "native" }] }))
        }
        "tools/call" if params["name"] == "proxy" => {
            let arguments = params["arguments"].to_string();
            let made = match parse(Some(arguments.as_bytes())).unwrap() {
                Request::One(Operation::List { kind: Type::Tool, paging, .. }) => {
                    let (range, page) = paging.cut(native.len());
                    shape::list(Type::Tool, native[range].iter().map(String::as_bytes), page, Dialect::Extension)
                }
                Request::One(Operation::List { kind, .. }) => shape::list(kind, [], None, Dialect::Extension),
                Request::One(Operation::Info { kind, path }) => {
                    shape::info(kind, &path, json!({ "name": path }).to_string().as_bytes(), Dialect::Extension)
                }
                Request::One(Operation::Call(call)) if call.kind == Type::Resource => shape::call(
                    &call,
                    br#"{"contents":[{"uri":"mem://r","mimeType":"text/plain","text":"{ \"n\": 1.50 }"}],"ttlMs":5}"#,
                ),
                Request::One(Operation::Call(call)) => shape::call(
                    &call,
                    br#"{"content":[{"type":"text","text":"x","annotations":{"priority":1.0}}],"structuredContent":{"n":1.50},"isError":true}"#,
                ),
                Request::Batch(_) => unreachable!("this client sends no batches"),
            };
            Result(serde_json::from_slice(&made).unwrap())
        }
        "tools/call" => Result(text("native")),
        _ => Error(-32601, "no such method"),
    }
}

#[tokio::test]
async fn s9_1_3_our_own_tool_gives_pages_and_leaves_text_alone() {
    let (client, seen) = client(Knows { capabilities: &["tools"], ..MODERN_ONLY }, ours);
    let listing = client.list_tools().await.unwrap();
    assert_eq!(listing.items.len(), 1200);
    assert_eq!(value(listing.find("tool_0").unwrap())["title"], "native", "what is native comes first");
    assert_eq!(seen.params("tools/call").len(), 3, "pages of 500");
    let wants = Use::default();
    let read = client.read_resource("mem://r", &wants).await.unwrap();
    let contents = json!([{ "uri": "mem://r", "mimeType": "text/plain", "text": "{ \"n\": 1.50 }" }]);
    assert_eq!((&value(&read)["contents"], &value(&read)["ttlMs"]), (&contents, &json!(5)));
    let called = client.call_tool("tool_7", None, &wants).await.unwrap();
    assert!(called.is_error);
    assert_eq!(value(&called.json)["content"][0]["annotations"], json!({ "priority": 1.0 }));
    assert_eq!(value(&called.json)["structuredContent"], json!({ "n": 1.50 }));
    assert_eq!(value(&client.call_tool("tool_0", None, &wants).await.unwrap().json), text("native"));
    assert_eq!(value(&client.info(Type::Tool, "tool_9").await.unwrap()), json!({ "name": "tool_9" }));
}

#[tokio::test]
async fn s6_1_what_only_looks_like_a_proxy_tool_is_a_tool() {
    let (client, _) = client(TOOLS, |method, _| match method {
        "tools/list" => Result(json!({ "tools": [{ "name": "proxy" }, { "name": "other" }] })),
        _ => Result(text("http://proxy.example:3128")),
    });
    assert_eq!(names(&client.list_tools().await.unwrap()), ["proxy", "other"]);
}
