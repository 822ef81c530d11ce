//! The tool that reaches everything: beside other tools or instead of them.

use std::time::Duration;

use mcp_gateway::settings::{ProxyToolMode, ProxyToolSettings};
use mcp_proxy_tool::shape::Dialect;
use serde_json::{Value, json};

use crate::kit::{Client, Playbook, ServerPlan, names, server, text};

fn with_tool<const N: usize>(plans: [ServerPlan; N], mode: ProxyToolMode, dialect: Dialect) -> Playbook {
    Playbook::with(plans, |it| it.proxy_tool = Some(ProxyToolSettings { name: "proxy".into(), mode, dialect }))
}

fn beside<const N: usize>(plans: [ServerPlan; N]) -> Playbook {
    with_tool(plans, ProxyToolMode::Beside, Dialect::default())
}

/// A server with something of everything, whose names are its own.
fn full() -> ServerPlan {
    let add = json!({ "name": "add", "description": "Adds two numbers", "inputSchema": { "type": "object" } });
    server("full")
        .set(|it| it.prefix = false)
        .list("tools/list", json!([add, "x"]))
        .list("prompts/list", json!(["greet"]))
        .list("resources/list", json!([{ "name": "notes", "uri": "mem://notes" }]))
        .list("resources/templates/list", json!([{ "name": "note", "uriTemplate": "mem://notes/{id}" }]))
}

fn call(path: &str) -> Value {
    json!({ "action": "call", "type": "tool", "path": path, "args": { "n": 1 } })
}

fn uses(client: &Client, id: impl Into<Value>, arguments: Value) {
    client.asks(
        id,
        "tools/call",
        json!({ "name": "proxy", "arguments": arguments, "_meta": { "progressToken": "t" } }),
    );
}

/// Uses the tool, and gets the result.
async fn use_of(client: &Client, arguments: Value) -> Value {
    client.ask("tools/call", json!({ "name": "proxy", "arguments": arguments })).await["result"].clone()
}

/// The data of a look-up.
fn data(result: &Value) -> Value {
    let text = result["content"][0]["resource"]["text"].as_str().unwrap_or_else(|| panic!("{result}"));
    serde_json::from_str(text).unwrap()
}

fn named(result: &Value) -> Vec<String> {
    data(result).as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn instead_of_everything_a_client_sees_one_tool() {
    let play = with_tool([full(), server("b")], ProxyToolMode::Instead, Dialect::default());
    let ann = play.newcomer();
    let opened = ann.shakes_hands("2025-11-25", json!({})).await;
    let can = &opened["result"]["capabilities"];
    assert_eq!((&can["tools"], can.get("resources"), can.get("prompts")), (&json!({}), None, None));
    assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["proxy"]);
    for (method, kind) in [("prompts/list", "prompts"), ("resources/list", "resources")] {
        assert_eq!(ann.ask(method, json!({})).await["result"][kind], json!([]));
    }
    assert_eq!(named(&use_of(&ann, json!({ "action": "list", "type": "tool" })).await), ["add", "x", "b__x"]);
    // A tool that is not shown can be called all the same.
    ann.calls(1, "b__x");
    play.server("b").gets_call("x").await;
    // No list changes that this client knows of.
    play.server("full").says("notifications/tools/list_changed", Value::Null);
    play.passes(Duration::from_secs(2)).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_through_the_tool_reaches_its_server_as_its_own() {
    let play = beside([server("a"), server("b")]);
    let ann = play.client().await;
    uses(&ann, 1, call("a__x"));
    let asked = play.server("a").gets("tools/call", json!({ "name": "x", "arguments": { "n": 1 } })).await;
    asked.progresses(1);
    ann.gets(json!({ "method": "notifications/progress", "params": { "progressToken": "t", "progress": 1 } })).await;
    asked.answers(text("done"));
    let answer = ann.gets_result(1, text("done")).await;
    assert_eq!(answer["result"]["content"][0]["annotations"]["proxyAction"], "call", "{answer}");
    // Errors are as they are, and the tool does not call itself.
    uses(&ann, 2, call("a__x"));
    play.server("a").gets_call("x").await.fails(-32042, "own");
    ann.gets_error(2, -32042).await;
    uses(&ann, 3, call("proxy"));
    ann.gets_error(3, -32602).await;
    uses(&ann, 4, call("nobodys"));
    ann.gets_error(4, -32602).await;
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_are_used_through_the_tool() {
    let play = beside([full()]);
    let (ann, full) = (play.client().await, play.server("full"));
    uses(&ann, 1, json!({ "action": "call", "type": "prompt", "path": "greet", "args": { "who": "me" } }));
    full.gets("prompts/get", json!({ "name": "greet", "arguments": { "who": "me" } }))
        .await
        .answers(json!({ "messages": [] }));
    let answer = ann.gets_answer(1).await;
    assert_eq!(data(&answer["result"]), json!({ "messages": [] }));
    uses(&ann, 2, json!({ "action": "call", "type": "resource", "path": "mem://notes" }));
    let contents = json!([{ "uri": "mem://notes", "mimeType": "text/plain", "text": "hi" }]);
    full.gets("resources/read", json!({ "uri": "mem://notes" })).await.answers(json!({ "contents": contents }));
    let answer = ann.gets_answer(2).await;
    assert_eq!(answer["result"]["content"][0]["resource"]["text"], "hi", "{answer}");
    use_of(&ann, json!({ "action": "list", "type": "resource" })).await;
    let open = use_of(&ann, json!({ "action": "call", "type": "resource", "path": "mem://notes/{id}" })).await;
    assert_eq!(open["isError"], true, "{open}");
}

#[tokio::test(start_paused = true)]
async fn capabilities_are_listed_and_described() {
    let play = beside([full(), server("b")]);
    let ann = play.client().await;
    for (kind, expected) in
        [("tool", vec!["add", "x", "b__x"]), ("prompt", vec!["greet"]), ("resource", vec!["notes", "note"])]
    {
        let listed = use_of(&ann, json!({ "action": "list", "type": kind })).await;
        assert_eq!(named(&listed), expected);
        assert_eq!(listed["content"][0]["annotations"]["proxyType"], kind);
    }
    let info = use_of(&ann, json!({ "action": "info", "type": "tool", "path": "add" })).await;
    assert_eq!(data(&info)["description"], "Adds two numbers");
    for path in ["notes", "mem://notes"] {
        let info = use_of(&ann, json!({ "action": "info", "type": "resource", "path": path })).await;
        assert_eq!(data(&info)["uri"], "mem://notes", "{info}");
    }
    let missing = use_of(&ann, json!({ "action": "info", "type": "tool", "path": "nobodys" })).await;
    assert!(missing.is_null() || missing["isError"] == true, "{missing}");
    for wrong in [json!({}), json!({ "action": "list" , "type": "dog" }), json!({ "action": "call", "type": "tool" })] {
        assert_eq!(use_of(&ann, wrong).await["isError"], true);
    }
    // Resources are spelled for the client that has a dialect of its own.
    let magg = with_tool([full()], ProxyToolMode::Beside, Dialect::Magg);
    let ben = magg.client().await;
    let listed = use_of(&ben, json!({ "action": "list", "type": "resource" })).await;
    assert_eq!(listed["content"][0]["annotations"]["pythonType"], "mcp.types.Resource | mcp.types.ResourceTemplate");
}

#[tokio::test(start_paused = true)]
async fn lists_are_narrowed_and_paged() {
    let tool = |name: &str, text: &str, tags: Value| json!({ "name": name, "description": text, "inputSchema": { "type": "object" }, "_meta": { "_fastmcp": { "tags": tags } } });
    let a = json!([
        tool("send_mail", "Sends a letter to a person", json!(["post", "write"])),
        tool("read_mail", "Reads the inbox", json!(["post"])),
        tool("weather", "Tells whether it rains in a city", json!([])),
    ]);
    let b = json!([tool("send_money", "Pays a bill", json!(["bank", "write"]))]);
    let play = beside([server("a").list("tools/list", a), server("b").list("tools/list", b)]);
    let ann = play.client().await;
    for (filter, expected) in [
        (json!({ "prefix": "a__send" }), vec!["a__send_mail"]),
        (json!({ "tags": ["write"] }), vec!["a__send_mail", "b__send_money"]),
        (json!({ "tags": ["bank", "post"] }), vec!["a__send_mail", "a__read_mail", "b__send_money"]),
        (json!({ "server": "b" }), vec!["b__send_money"]),
        (json!({ "query": "rain" }), vec!["a__weather"]),
        (json!({ "query": "send", "server": "b" }), vec!["b__send_money"]),
        (json!({ "query": "send", "tags": ["post"] }), vec!["a__send_mail"]),
        (json!({ "query": "zebra" }), vec![]),
    ] {
        assert_eq!(named(&use_of(&ann, json!({ "action": "list", "type": "tool", "filter": filter })).await), expected);
    }
    let best = use_of(&ann, json!({ "action": "list", "type": "tool", "filter": { "query": "send a letter" } })).await;
    assert_eq!(named(&best)[0], "a__send_mail");
    let page = use_of(&ann, json!({ "action": "list", "type": "tool", "limit": 2, "offset": 1 })).await;
    assert_eq!(named(&page), ["a__read_mail", "a__weather"]);
    let said = &page["content"][0]["annotations"];
    assert_eq!((&said["proxyTotal"], &said["proxyNextOffset"]), (&json!(4), &json!(3)));
    // A list that changed is read again.
    play.server("a").lists("tools/list", json!(["rainbow"]));
    play.server("a").says("notifications/tools/list_changed", Value::Null);
    play.passes(Duration::from_secs(11)).await;
    let found = use_of(&ann, json!({ "action": "list", "type": "tool", "filter": { "prefix": "a__" } })).await;
    assert_eq!(named(&found), ["a__rainbow"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_says_which_servers_are_not_in_it() {
    let play = beside([server("a"), server("dead")]);
    play.server("dead").fails_to_start.set(true);
    let ann = play.client().await;
    let listed = use_of(&ann, json!({ "action": "list", "type": "tool" })).await;
    assert_eq!(named(&listed), ["a__x"]);
    assert_eq!(listed["_meta"]["io.github.mcp-proxy/absent"], json!([{ "server": "dead" }]));
}

#[tokio::test(start_paused = true)]
async fn the_tool_hides_a_servers_tool_of_its_name() {
    let play = beside([server("a").tools(&["proxy", "x"]).set(|it| it.prefix = false)]);
    let ann = play.client().await;
    assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["proxy", "x"]);
    uses(&ann, 1, call("proxy"));
    play.server("a").gets_call("proxy").await;
}

#[tokio::test(start_paused = true)]
async fn a_use_that_is_cancelled_is_cancelled_at_the_server() {
    let play = beside([full()]);
    let (ann, full) = (play.client().await, play.server("full"));
    uses(&ann, 1, call("x"));
    let alone = full.gets_call("x").await;
    let operations: Vec<Value> = (0..20).map(|_| call("x")).collect();
    uses(&ann, 2, json!({ "action": "batch", "operations": operations }));
    let mut begun = Vec::new();
    for _ in 0..16 {
        begun.push(full.gets_call("x").await);
    }
    full.gets_nothing_else().await;
    ann.cancels(1);
    ann.cancels(2);
    for call in [alone].iter().chain(&begun) {
        full.gets("notifications/cancelled", json!({ "requestId": call.id() })).await;
        call.answers(text("late"));
    }
    // Nothing more of the batch is begun, and nothing of either is said.
    full.gets_nothing_else().await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_answers_in_order_and_a_failure_stops_nothing_else() {
    let play = beside([full(), server("b")]);
    let (ann, full, b) = (play.client().await, play.server("full"), play.server("b"));
    let list = json!({ "action": "list", "type": "prompt" });
    let info = json!({ "action": "info", "type": "tool", "path": "add" });
    let operations = json!([call("x"), list, call("b__x"), info, call("nobodys"), { "action": "dance" }]);
    uses(&ann, 1, json!({ "action": "batch", "operations": operations }));
    let (first, second) = (full.gets_call("x").await, b.gets_call("x").await);
    // A name without a prefix may be one of the only server that has none.
    full.gets_call("nobodys").await.fails(-32602, "no such tool");
    second.progresses(1);
    second.answers(text("second"));
    first.progresses(1);
    b.connection().dies("signal 9");
    first.answers(text("first"));
    let answer = ann.gets_answer(1).await;
    let results = answer["result"]["structuredContent"]["results"].as_array().unwrap();
    let failed: Vec<bool> = results.iter().map(|result| result["isError"] == true).collect();
    assert_eq!(failed, [false, false, false, false, true, true], "{answer}");
    let content = &answer["result"]["content"];
    assert_eq!((&content[0]["text"], &content[2]["text"]), (&json!("first"), &json!("second")), "{answer}");
    let rest = ann.rest().await;
    let told: Vec<f64> = rest.iter().filter_map(|it| it["params"]["progress"].as_f64()).collect();
    assert!(told.len() > 3 && told.is_sorted_by(|one, other| one < other), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_keeps_within_its_clients_and_servers_bounds() {
    for (of_server, of_client) in [(2, 64), (64, 4)] {
        let play = Playbook::with([full().set(|it| (it.in_flight, it.queue) = (of_server, 3))], |it| {
            it.in_flight_per_client = of_client;
            let (mode, dialect) = (ProxyToolMode::Beside, Dialect::default());
            it.proxy_tool = Some(ProxyToolSettings { name: "proxy".into(), mode, dialect });
        });
        let (ann, full) = (play.client().await, play.server("full"));
        let operations: Vec<Value> = (0..40).map(|_| call("x")).collect();
        uses(&ann, 1, json!({ "action": "batch", "operations": operations }));
        for _ in 0..40 {
            full.gets_call("x").await.answers(text(""));
        }
        let answer = ann.gets_answer(1).await;
        let results = answer["result"]["structuredContent"]["results"].as_array().unwrap();
        assert!(results.iter().all(|result| result["isError"] == false), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_fails_its_operation_and_no_other() {
    let play = beside([server("a"), server("b")]);
    let ann = play.client().await;
    uses(&ann, 1, json!({ "action": "batch", "operations": [call("a__x"), call("b__x")] }));
    play.server("a").gets_call("x").await.connection.dies("signal 9");
    play.server("b").gets_call("x").await.answers(text(""));
    let answer = ann.gets_answer(1).await;
    let results = &answer["result"]["structuredContent"]["results"];
    assert_eq!((&results[0]["isError"], &results[1]["isError"]), (&json!(true), &json!(false)), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_question_in_the_middle_reaches_the_caller() {
    let play = with_tool([full()], ProxyToolMode::Instead, Dialect::default());
    let ann = play.client_that(json!({ "elicitation": {} })).await;
    uses(&ann, 1, call("x"));
    play.server("full").gets_call("x").await.asks("q", "elicitation/create", json!({ "message": "?" }));
    let question = ann.hears("elicitation/create").await;
    ann.answers(&question, json!({ "action": "accept" }));
    play.server("full").hears(json!({ "id": "q", "result": { "action": "accept" } })).await;
}

#[tokio::test(start_paused = true)]
async fn modern_questions_pass_through_the_tool_but_not_in_a_batch() {
    let play = with_tool([full().modern()], ProxyToolMode::Instead, Dialect::default());
    let (ann, full) = (play.modern_client(), play.server("full"));
    let asks = json!({ "resultType": "input_required", "inputRequests": { "q": { "method": "roots/list" } }, "requestState": "s" });
    uses(&ann, 1, call("x"));
    full.gets_call("x").await.answers(asks.clone());
    ann.gets_result(1, asks.clone()).await;
    let given = json!({ "q": { "roots": [] } });
    ann.asks(
        2,
        "tools/call",
        json!({ "name": "proxy", "arguments": call("x"), "inputResponses": given, "requestState": "s" }),
    );
    full.gets("tools/call", json!({ "name": "x", "inputResponses": given, "requestState": "s" })).await;
    uses(&ann, 3, json!({ "action": "batch", "operations": [call("x")] }));
    full.gets_call("x").await.answers(asks);
    let answer = ann.gets_answer(3).await;
    assert_eq!(answer["result"]["structuredContent"]["results"][0]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_the_tool_began_has_its_result_shaped() {
    let play = beside([server("a"), server("b")]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.asks(1, "tools/call", json!({ "name": "proxy", "arguments": call("a__x"), "task": { "ttl": 1000 } }));
    a.gets("tools/call", json!({ "task": { "ttl": 1000 } })).await.answers(json!({ "task": { "taskId": "t" } }));
    ann.gets_result(1, json!({ "task": { "taskId": "a:t" } })).await;
    ann.asks(2, "tasks/result", json!({ "taskId": "a:t" }));
    a.gets("tasks/result", json!({ "taskId": "t" })).await.answers(text("done"));
    let answer = ann.gets_result(2, text("done")).await;
    assert_eq!(answer["result"]["content"][0]["annotations"]["proxyAction"], "call", "{answer}");
}
