//! The proxy tool in use: alone in a list or beside others, over long lists, in batches, and in the middle of
//! everything else that a call can meet.

use serde_json::{Value, json};

use crate::gateway_kit::{HttpClient, StdioClient, code_of, fake, names_in, steps, text_of};
use crate::kit::{Running, Sandbox, fixture_program};
use crate::proxy_tool_kit::{call, data, full, names, tool};

#[test]
fn instead_of_everything_a_client_sees_one_small_tool() {
    let sandbox = Sandbox::new();
    let (mut client, opened) = StdioClient::open_with(sandbox.serve(&[full(), fake("b")], tool("instead")), json!({}));
    let can = &opened["result"]["capabilities"];
    assert_eq!((&can["tools"], can.get("resources"), can.get("prompts")), (&json!({}), None, None));
    let listed = client.ask("tools/list", json!({}));
    assert_eq!(names_in(&listed, "tools", "name"), ["proxy"]);
    assert!(listed["result"].to_string().len() < 3_000, "{}", listed["result"].to_string().len());
    for (method, kind) in [("prompts/list", "prompts"), ("resources/list", "resources")] {
        assert_eq!(client.ask(method, json!({}))["result"][kind], json!([]));
    }
    assert_eq!(
        names(&client.item(json!({ "action": "list", "type": "tool" }))),
        ["calculator_add", "x", "do", "b__x", "b__do"]
    );
    assert_eq!(client.item(call("b__x", json!({ "text": "1" })))["text"], "b:x:1");
    // What is not shown can be called all the same.
    assert_eq!(client.says("x", "2"), "full:x:2");
    // Nothing changes that this client knows of.
    let changed =
        json!([{ "say": { "jsonrpc": "2.0", "method": "notifications/tools/list_changed" } }, { "text": "." }]);
    client.content(call("do", json!({ "steps": changed })));
    assert_eq!(client.item(json!({ "action": "list", "type": "prompt" }))["annotations"]["proxyType"], "prompt");
    assert!(client.take_kept().is_empty());
    client.end();
}

#[test]
fn long_lists_come_in_pages_with_their_total() {
    let sandbox = Sandbox::new();
    let all: Vec<String> = (0..120).map(|number| format!("t{number:03}")).collect();
    let server = fake("a").list("tools", json!(all)).script("page_size", 50);
    let mut client = StdioClient::with_tool(&sandbox, server);
    let (mut seen, mut offset) = (Vec::new(), 0);
    loop {
        let page = client.item(json!({ "action": "list", "type": "tool", "limit": 50, "offset": offset }));
        let said = &page["annotations"];
        assert_eq!(
            (&said["proxyTotal"], &said["proxyOffset"], &said["proxyLimit"]),
            (&json!(120), &json!(offset), &json!(50))
        );
        seen.extend(names(&page));
        match said["proxyNextOffset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(seen, all.iter().map(|name| format!("a__{name}")).collect::<Vec<_>>());
    let beyond = client.item(json!({ "action": "list", "type": "tool", "offset": 500 }));
    assert_eq!((names(&beyond).len(), &beyond["annotations"]["proxyTotal"]), (0, &json!(120)));
    client.end();
}

/// Why it is not there is for those who run the gateway: it may have paths in it.
#[test]
fn a_native_list_does_not_say_where_an_absent_server_is() {
    let sandbox = Sandbox::new();
    let dead = fake("dead").set("command", json!(["/no/such/program"]));
    let failing = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32000,"message":"cannot read /home/of/server"}}"#;
    let failing = fake("b").script("on", json!({ "tools/list": [{ "line": failing }] }));
    let mut client = StdioClient::open(&sandbox, &[fake("a"), dead, failing], json!({}));
    let listed = client.ask("tools/list", json!({}));
    let absent = &listed["result"]["_meta"]["io.github.mcp-proxy/absent"];
    assert_eq!(
        *absent,
        json!([
            { "server": "dead", "reason": "it is not available" },
            { "server": "b", "reason": "it answered with an error" },
        ])
    );
    client.end_somehow();
    let noted = sandbox.stdout(["inspect", sandbox.segments()[0].to_str().unwrap()]);
    assert!(noted.contains("cannot read /home/of/server"), "{noted}");
}

/// Magg's client sends `args` with everything, and its servers know `filter_server`.
#[test]
fn what_maggs_clients_send_is_taken() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("ab"), fake("b")], tool("beside"));
    let list = json!({ "action": "list", "type": "tool", "args": {} });
    assert_eq!(names(&client.item(list)).len(), 6);
    let info = client.item(json!({ "action": "info", "type": "tool", "path": "b__x", "args": {} }));
    assert_eq!(data(&info)["name"], "b__x");
    for (begins, expected) in
        [("a", vec!["a__x", "a__do", "ab__x", "ab__do"]), ("ab", vec!["ab__x", "ab__do"]), ("x", vec![])]
    {
        let few = client.item(json!({ "action": "list", "type": "tool", "filter_server": begins }));
        assert_eq!(names(&few), expected);
        assert_eq!(few["annotations"]["proxyTotal"], expected.len());
    }
    let args = json!({ "action": "list", "type": "tool", "args": { "a": 1 } });
    assert_eq!(client.mistake(args), "`args` is only for action \"call\"");
    client.end();
}

#[test]
fn resources_are_spelled_for_maggs_client_where_it_says_so_or_is_told() {
    const MAGG: &str = "mcp.types.Resource | mcp.types.ResourceTemplate";
    let told = json!({ "proxy_tool": { "name": "proxy", "dialect": "magg" } });
    for (name, top, list, info) in [
        ("other", tool("beside"), "Resource|ResourceTemplate", "Resource"),
        ("magg-client", tool("beside"), MAGG, MAGG),
        ("other", told, MAGG, MAGG),
    ] {
        let sandbox = Sandbox::new();
        let mut client = StdioClient::named(sandbox.serve(&[full()], top), name);
        let listed = client.item(json!({ "action": "list", "type": "resource" }));
        assert_eq!(listed["annotations"]["pythonType"], list, "{name}");
        let described = client.item(json!({ "action": "info", "type": "resource", "path": "notes" }));
        assert_eq!(described["annotations"]["pythonType"], info, "{name}");
        client.end();
    }
    let sandbox = Sandbox::new();
    sandbox.gateway_config(&[full()], &json!({}));
    let mut command = sandbox.command(["run", "--proxy-tool", "--proxy-tool-dialect=magg", "--"]);
    command.arg(fixture_program()).arg("upstream").arg(sandbox.path("full.script"));
    let mut client = StdioClient::open_with(Running::start(command), json!({})).0;
    let listed = client.item(json!({ "action": "list", "type": "resource" }));
    assert_eq!(listed["annotations"]["pythonType"], MAGG);
    client.end();
}

#[test]
fn it_speaks_every_revision_on_both_sides() {
    for (is_modern_client, is_modern_server) in [(true, true), (true, false), (false, true)] {
        let sandbox = Sandbox::new();
        let server = if is_modern_server { full().modern() } else { full() };
        let proxy = sandbox.serve(&[server], tool("instead"));
        let mut client = match is_modern_client {
            true => StdioClient::modern(proxy),
            false => StdioClient::open_with(proxy, json!({})).0,
        };
        assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["proxy"]);
        let listed = client.proxy(json!({ "action": "list", "type": "tool" }));
        assert_eq!(names(&listed["result"]["content"][0]), ["calculator_add", "x", "do"]);
        let read = client.proxy(json!({ "action": "call", "type": "resource", "path": "mem://notes" }));
        assert_eq!(read["result"]["content"][0]["resource"]["text"], "full:mem://notes");
        for answer in [&listed, &read] {
            let kind = is_modern_client.then_some(json!("complete"));
            assert_eq!(answer["result"].get("resultType"), kind.as_ref(), "{answer}");
        }
        assert_eq!(text_of(&client.proxy(call("x", json!({ "text": "1" })))), "full:x:1");
        client.end();
    }
}

#[test]
fn a_task_that_the_tool_began_ends_as_the_tools() {
    let sandbox = Sandbox::new();
    let capabilities = json!({ "tools": {}, "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } });
    let on = json!({ "tasks/result": [{ "text": "at last" }] });
    let server = full().script("capabilities", capabilities).script("on", on);
    let mut client = StdioClient::with_tool(&sandbox, server);
    client.ask("tools/list", json!({}));
    let listed = client.ask("tools/list", json!({}));
    let own = listed["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "proxy").unwrap();
    assert_eq!(own["execution"]["taskSupport"], "optional");
    let begun = json!({ "task": { "taskId": "t1", "status": "working" } });
    let arguments = call("do", json!({ "steps": [{ "answer": begun }] }));
    let params = json!({ "name": "proxy", "arguments": arguments, "task": { "ttl": 1000 } });
    let task = client.ask("tools/call", params)["result"]["task"]["taskId"].clone();
    let result = client.ask("tasks/result", json!({ "taskId": task }))["result"].clone();
    assert_eq!(
        (&result["content"][0]["text"], &result["content"][0]["annotations"]["proxyPath"]),
        (&json!("at last"), &json!("do"))
    );
    client.end();
    assert_eq!(sandbox.seen("full", "tools/call")[0]["params"]["task"], json!({ "ttl": 1000 }));
}

#[test]
fn both_calls_are_recorded_and_lead_to_each_other() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], tool("beside"));
    let operations = json!([call("a__x", json!({})), call("b__x", json!({}))]);
    client.content(call("b__x", json!({ "text": "1" })));
    client.content(json!({ "action": "batch", "operations": operations }));
    client.end();
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    let lines = sandbox.stdout(["inspect", "--json", &id]);
    let messages: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests = |tool: &str| -> Vec<&Value> {
        messages.iter().filter(|message| message["kind"] == "request" && message["tool"] == tool).collect()
    };
    let (outer, inner) = (requests("proxy"), requests("x"));
    assert_eq!((outer.len(), inner.len()), (2, 3));
    let parents: Vec<&Value> = inner.iter().map(|message| &message["parent"]).collect();
    assert_eq!(parents, [&outer[0]["sequence"], &outer[1]["sequence"], &outer[1]["sequence"]]);
    assert!(inner.iter().all(|message| message["client"] == "test"), "{lines}");
    assert_eq!((&outer[0]["proxied"], &outer[1]["proxied"]), (&json!("call b__x"), &json!("batch of 2")));
    assert!(inner.iter().all(|message| message.get("proxied").is_none()), "{lines}");
    let shown = sandbox.stdout(["inspect", &id]);
    for does in ["call b__x", "batch of 2"] {
        assert!(shown.contains(&format!(" c1 → tools/call [proxy: {does}] id=")), "{shown}");
    }
}

#[test]
fn what_the_tool_calls_is_held_by_its_own_name() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], tool("instead"));
    sandbox.breaks("> server:a tool:x");
    let id = client.begin("proxy", call("a__x", json!({ "text": "held" })));
    let number = sandbox.held_number();
    assert_eq!(client.item(call("b__x", json!({ "text": "1" })))["text"], "b:x:1");
    sandbox.stdout(["modify", &number, "--set", "$.params.arguments.text=changed"]);
    assert_eq!(text_of(&client.answer(&id)), "a:x:changed");
    client.end();
}

fn rule(verdict: &str) -> Value {
    let mut rule = json!({ "name": "sums", "match": "tool:calculator_add", "verdict": verdict });
    if verdict == "ask" {
        // Whoever answers comes later.
        rule["timeout"] = "10m".into();
    }
    json!({ "policy": { "rules": [rule] } })
}

fn governed(rules: &Value, mode: &str) -> (Sandbox, Value) {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("rules.json"), rules.to_string()).unwrap();
    let mut top = tool(mode);
    top["rules"] = sandbox.path("rules.json").to_str().into();
    (sandbox, top)
}

#[test]
fn what_is_hidden_is_neither_listed_nor_described_nor_called() {
    let rules = json!({ "policy": { "hide_denied": true, "rules": [{ "name": "no-sums", "match": "tool:calculator_*", "verdict": "deny" }] } });
    let (sandbox, top) = governed(&rules, "beside");
    let unknown = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32602,"message":"Unknown tool: $name"}}"#;
    let server = full().script("on", json!({ "tools/call": [{ "line": unknown }] }));
    let mut client = StdioClient::open(&sandbox, &[server], top);
    for arguments in [
        json!({ "action": "list", "type": "tool" }),
        json!({ "action": "list", "type": "tool", "filter": { "query": "calculator add" } }),
        json!({ "action": "list", "type": "tool", "filter": { "prefix": "calc" } }),
    ] {
        let item = client.item(arguments);
        assert!(!names(&item).contains(&"calculator_add".to_owned()), "{item}");
    }
    let told = client.proxy(json!({ "action": "info", "type": "tool", "path": "calculator_add" }));
    let called = client.proxy(call("calculator_add", json!({})));
    let unknown = client.call("calculator_add", json!({}));
    assert_eq!((&told["error"], &called["error"]), (&unknown["error"], &unknown["error"]));
    assert_eq!(code_of(&unknown), -32602);
    client.end();
    assert!(!sandbox.seen("full", "tools/call").iter().any(|call| call.to_string().contains("calculator")));
}

#[test]
fn somebody_is_asked_about_what_the_tool_calls() {
    let (sandbox, top) = governed(&rule("ask"), "instead");
    let mut client = StdioClient::open(&sandbox, &[full()], top);
    let id = client.begin("proxy", call("calculator_add", json!({ "text": "1" })));
    let number = sandbox.held_number();
    assert!(sandbox.seen("full", "tools/call").is_empty());
    sandbox.stdout(["approve", &number]);
    assert_eq!(text_of(&client.answer(&id)), "full:calculator_add:1");
    let operations = json!([call("x", json!({})), call("calculator_add", json!({}))]);
    let id = client.begin("proxy", json!({ "action": "batch", "operations": operations }));
    sandbox.stdout(["deny", &sandbox.held_number()]);
    let results = client.answer(&id)["result"]["structuredContent"]["results"].clone();
    assert_eq!((&results[0]["isError"], &results[1]["error"]["code"]), (&json!(false), &json!(-32000)), "{results}");
    client.end();
}

#[test]
fn over_http_what_belongs_to_a_call_comes_with_its_answer() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[full(), fake("b")], tool("instead"));
    let mut client = HttpClient::open(&gateway);
    let progress = json!({ "say": { "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": "$token", "progress": 1, "total": 2 } } });
    let arguments = call("do", json!({ "steps": [progress, { "text": "done" }] }));
    let params = json!({ "name": "proxy", "arguments": arguments, "_meta": { "progressToken": "mine" } });
    let messages = client.exchange(5, "tools/call", params);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["params"]["progressToken"], "mine");
    assert_eq!((&messages[1]["id"], text_of(&messages[1]).as_str()), (&json!(5), "done"));
    let operations = json!([call("x", json!({})), call("b__x", json!({}))]);
    let params = json!({ "name": "proxy", "arguments": { "action": "batch", "operations": operations }, "_meta": { "progressToken": 1 } });
    let messages = client.exchange(6, "tools/call", params);
    assert_eq!(messages.iter().filter(|message| message["method"] == "notifications/progress").count(), 2);
    assert_eq!(messages.last().unwrap()["id"], 6);
    gateway.end();
}

#[test]
fn many_callers_with_one_id_get_their_own_answers() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[full()], tool("instead"));
    let mut clients: Vec<HttpClient> = (0..20).map(|_| HttpClient::open(&gateway)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let arguments = call("do", json!({ "steps": [{ "hold": number.to_string() }] }));
        let message = client.message(1, "tools/call", json!({ "name": "proxy", "arguments": arguments }));
        client.send(&message);
    }
    sandbox.until_seen("full", "tools/call", 20);
    let mut other = HttpClient::open(&gateway);
    other.call(1, "do", steps(json!([{ "free_all": true }, { "text": "." }])));
    for (number, client) in clients.iter_mut().enumerate() {
        let answers = client.answers();
        assert_eq!(text_of(answers.last().unwrap()), number.to_string());
    }
    gateway.end();
}

#[test]
fn what_a_client_may_not_see_does_not_show_in_how_the_rest_is_ranked() {
    let rules = json!({ "policy": { "hide_denied": true, "rules": [{ "name": "no", "match": "tool:secret_*", "verdict": "deny" }] } });
    let found = |tools: &[&str]| {
        let (sandbox, top) = governed(&rules, "beside");
        let mut client = StdioClient::open(&sandbox, &[fake("a").set("prefix", false).tools(tools)], top);
        let item = client.item(json!({ "action": "list", "type": "tool", "filter": { "query": "diska" } }));
        client.end();
        names(&item)
    };
    assert_eq!(found(&["disks_list"]), found(&["disks_list", "secret_diska"]));
}

#[test]
fn whose_name_is_told_is_not_waited_for_by_others() {
    let sandbox = Sandbox::new();
    let silent = fake("silent").script("on", json!({ "tools/list": [] }));
    let mut client = StdioClient::open(&sandbox, &[fake("a"), silent], tool("beside"));
    let info = client.begin("proxy", json!({ "action": "info", "type": "tool", "path": "a__x" }));
    let only = json!({ "action": "list", "type": "tool", "filter": { "server": "a" } });
    let only = client.begin("proxy", only);
    // This waits for the silent one, and so is answered last.
    let all = client.begin("proxy", json!({ "action": "list", "type": "tool" }));
    assert_eq!(client.answer(&all)["id"], all);
    let before: Vec<Value> = client.take_kept().iter().map(|message| message["id"].clone()).collect();
    assert!(before.contains(&info) && before.contains(&only), "{before:?}");
    client.end_somehow();
}

#[test]
fn a_template_is_filled_in_and_an_address_with_braces_is_not() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let read = |path: &str| json!({ "action": "call", "type": "resource", "path": path });
    let mut filled = read("mem://notes/{id}");
    filled["args"] = json!({ "id": "a b" });
    assert_eq!(client.item(filled)["resource"]["text"], "full:mem://notes/a%20b");
    assert_eq!(client.item(read("mem://odd/{b}c"))["resource"]["text"], "full:mem://odd/{b}c");
    client.content(json!({ "action": "list", "type": "resource" }));
    let said = client.mistake(read("mem://notes/{id}"));
    assert!(said.contains("template") && said.contains("args"), "{said}");
    client.end();
}

#[test]
fn what_is_denied_is_denied_alone_and_in_a_batch() {
    let (sandbox, top) = governed(&rule("deny"), "instead");
    let mut client = StdioClient::open(&sandbox, &[full()], top);
    assert_eq!(code_of(&client.proxy(call("calculator_add", json!({})))), -32000);
    let operations = json!([call("x", json!({})), call("calculator_add", json!({}))]);
    let answer = client.proxy(json!({ "action": "batch", "operations": operations }));
    let results = &answer["result"]["structuredContent"]["results"];
    assert_eq!((&results[0]["isError"], &results[1]["error"]["code"]), (&json!(false), &json!(-32000)), "{answer}");
    client.end();
    assert_eq!(sandbox.seen("full", "tools/call").len(), 1);
}
