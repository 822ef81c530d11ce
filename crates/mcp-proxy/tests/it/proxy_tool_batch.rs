//! Several operations in one use of the proxy tool.

use serde_json::{Value, json};

use crate::gateway_kit::{StdioClient, fake};
use crate::kit::Sandbox;
use crate::proxy_tool_kit::{call, data, full, tool};

#[test]
fn a_batch_answers_in_order_and_one_failure_stops_nothing() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[full(), fake("b")], tool("beside"));
    let operations = json!([
        call("do", json!({ "steps": [{ "later": { "ms": 30, "steps": [{ "text": "slow" }] } }] })),
        call("b__x", json!({ "text": "fast" })),
        { "action": "info", "type": "prompt", "path": "greet" },
        { "action": "call", "type": "tool" },
        call("do", json!({ "steps": [{ "error": -32007 }] })),
        { "action": "batch", "operations": [] },
        { "action": "call", "type": "resource", "path": "mem://notes" },
        call("do", json!({ "steps": [{ "answer": { "content": [], "structuredContent": { "a": 1 }, "isError": true } }] })),
    ]);
    let answer = client.proxy(json!({ "action": "batch", "operations": operations }));
    let result = &answer["result"];
    assert!(result["isError"] != true, "{answer}");
    let content = result["content"].as_array().unwrap();
    let order: Vec<u64> = content.iter().map(|item| item["annotations"]["proxyIndex"].as_u64().unwrap()).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!((&content[0]["text"], &content[1]["text"]), (&json!("slow"), &json!("b:x:fast")));
    assert_eq!(data(&content[2])["name"], "greet");
    assert_eq!(content[6]["resource"]["text"], "full:mem://notes");
    for failed in [3, 4, 5] {
        assert_eq!(content[failed]["annotations"]["proxyError"], true, "{}", content[failed]);
    }
    let results = result["structuredContent"]["results"].as_array().unwrap();
    let failed: Vec<bool> = results.iter().map(|result| result["isError"] == true).collect();
    assert_eq!(failed, [false, false, false, true, true, true, false, true]);
    assert_eq!(results[4]["error"]["code"], -32007);
    assert_eq!(results[7]["structuredContent"], json!({ "a": 1 }));
    client.end();
}

#[test]
fn a_batch_of_failures_has_failed() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], tool("beside"));
    let operations = json!([call("nothing", json!({})), { "action": "list" }]);
    assert_eq!(client.proxy(json!({ "action": "batch", "operations": operations }))["result"]["isError"], true);
    let many: Vec<Value> = (0..101).map(|_| call("x", json!({}))).collect();
    let said = client.mistake(json!({ "action": "batch", "operations": many }));
    assert!(said.contains("100"), "{said}");
    assert!(client.mistake(json!({ "action": "batch", "operations": [] })).contains("operations"));
    client.end();
}

#[test]
fn a_batch_has_only_so_much_under_way_at_once() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let operations: Vec<Value> =
        (0..40).map(|at| call("do", json!({ "steps": [{ "hold": at.to_string() }] }))).collect();
    let batch = client.begin("proxy", json!({ "action": "batch", "operations": operations }));
    sandbox.until_seen("full", "tools/call", 16);
    // Whatever comes behind the sixteenth would have come before this.
    assert_eq!(client.says("x", "1"), "full:x:1");
    assert_eq!(sandbox.seen("full", "tools/call").len(), 17);
    for _ in 0..3 {
        client.steps("do", json!([{ "free_all": true }, { "text": "." }]));
    }
    let answer = client.answer(&batch);
    assert_eq!(answer["result"]["content"].as_array().unwrap().len(), 40, "{answer}");
    client.end();
}

#[test]
fn a_batch_tells_how_far_it_is_and_what_has_come_of_it() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let progress = json!({ "say": { "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": "$token", "progress": 1, "total": 4 } } });
    let operations =
        json!([call("x", json!({ "text": "first" })), call("do", json!({ "steps": [progress, { "hold": "h" }] })),]);
    let arguments = json!({ "action": "batch", "operations": operations });
    let params = json!({ "name": "proxy", "arguments": arguments, "_meta": { "progressToken": 7 } });
    let id = client.request("tools/call", params);
    let first = client.heard("notifications/progress")["params"].clone();
    assert_eq!((&first["progressToken"], &first["progress"], &first["total"]), (&json!(7), &json!(1), &json!(2)));
    let partial = &first["_meta"]["io.github.mcp-proxy/partial"];
    assert_eq!((&partial["index"], &partial["result"]["content"][0]["text"]), (&json!(0), &json!("full:x:first")));
    assert_eq!(client.heard("notifications/progress")["params"]["progress"], 1.25);
    client.steps("do", json!([{ "free": "h" }, { "text": "." }]));
    assert_eq!(client.heard("notifications/progress")["params"]["progress"], 2);
    assert_eq!(client.answer(&id)["result"]["content"].as_array().unwrap().len(), 2);
    client.end();
}

#[test]
fn a_batch_that_is_taken_back_begins_nothing_more() {
    let sandbox = Sandbox::new();
    // Lists are not answered before the gate is open, so what comes behind them waits.
    let (gate, slow) = (sandbox.gate(), fake("slow"));
    let slow = slow.script("on", json!({ "prompts/list": [{ "gate": gate }, { "answer": { "prompts": [] } }] }));
    let mut client = StdioClient::open(&sandbox, &[slow, fake("b")], tool("beside"));
    let lists = (0..16).map(|_| json!({ "action": "list", "type": "prompt" }));
    let calls = (0..20).map(|_| call("b__x", json!({})));
    let operations: Vec<Value> = lists.chain(calls).collect();
    let batch = client.begin("proxy", json!({ "action": "batch", "operations": operations }));
    sandbox.until_seen("slow", "prompts/list", 1);
    client.notify("notifications/cancelled", json!({ "requestId": batch }));
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    sandbox.open_gate();
    assert_eq!(client.says("slow__x", "2"), "slow:x:2");
    assert_eq!(client.says("b__x", "3"), "b:x:3");
    client.end();
    assert_eq!(sandbox.seen("b", "tools/call").len(), 2);
}

#[test]
fn a_batch_answers_no_more_than_may_be() {
    let sandbox = Sandbox::new();
    let long: Vec<Value> = (0..1_000)
        .map(|number| json!({ "name": format!("t{number}"), "description": "x".repeat(500), "inputSchema": { "type": "object" } }))
        .collect();
    let mut client = StdioClient::with_tool(&sandbox, fake("a").list("tools", json!(long)));
    let operations: Vec<Value> = (0..100).map(|_| json!({ "action": "list", "type": "tool" })).collect();
    let answer = client.proxy(json!({ "action": "batch", "operations": operations }));
    let results = answer["result"]["structuredContent"]["results"].as_array().unwrap();
    let failed = results.iter().filter(|result| result["error"]["code"] == 5130).count();
    assert!((50..100).contains(&failed), "{failed}");
    assert!(answer.to_string().len() < 40 * 1024 * 1024);
    client.end();
}

#[test]
fn progress_of_a_batch_only_ever_increases() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::with_tool(&sandbox, full());
    let step = |progress: u32| {
        json!({ "say": { "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": "$token", "progress": progress } } })
    };
    let steps = json!({ "steps": [step(1), step(2), step(3), { "text": "done" }] });
    let operations = json!([call("do", steps.clone()), call("do", steps), { "action": "list" }]);
    let arguments = json!({ "action": "batch", "operations": operations });
    let params = json!({ "name": "proxy", "arguments": arguments, "_meta": { "progressToken": 7 } });
    client.ask("tools/call", params);
    let heard: Vec<f64> = client.take_kept().iter().filter_map(|it| it["params"]["progress"].as_f64()).collect();
    assert!(heard.len() > 3 && heard.is_sorted_by(|one, other| one < other), "{heard:?}");
    client.end();
}
