//! Servers that keep what they have behind a proxy tool of their own, shown as if they did not.

use mcp_gateway::settings::UnwrapTool;
use serde_json::{Value, json};

use crate::kit::{Client, Heard, Playbook, Server, ServerPlan, names, server, text};

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

fn hidden(parameters: Value) -> ServerPlan {
    let schema = json!({ "type": "object", "properties": parameters });
    let tool = json!({ "name": "proxy", "description": "A proxy: list, info, call", "inputSchema": schema });
    server("a").list("tools/list", json!([tool])).set(|it| it.unwrap_proxy_tool = Some(UnwrapTool::Found))
}

fn plain() -> ServerPlan {
    hidden(json!({ "action": {}, "type": {}, "path": {}, "args": {} }))
}

/// Answers a use of the tool that asks for a list.
fn lists(asked: &Heard, kind: &str, items: Value, total: Option<usize>) {
    let mut annotations = json!({ "proxyAction": "list", "proxyType": kind, "many": true });
    if let Some(total) = total {
        annotations["proxyTotal"] = total.into();
        annotations["proxyOffset"] = asked.message["params"]["arguments"]["offset"].as_u64().unwrap_or(0).into();
    }
    let resource = json!({ "uri": "proxy:list", "mimeType": "application/json", "text": items.to_string() });
    asked.answers(json!({ "content": [{ "type": "resource", "resource": resource, "annotations": annotations }] }));
}

async fn asked_for(a: &Server, kind: &str) -> Heard {
    a.gets("tools/call", json!({ "name": "proxy", "arguments": { "action": "list", "type": kind } })).await
}

fn items_of(kind: &str) -> Value {
    match kind {
        "tool" => json!([{ "name": "x", "inputSchema": { "type": "object" } }]),
        "prompt" => json!([{ "name": "p" }]),
        _ => json!([{ "name": "r", "uri": "r:1" }, { "name": "t", "uriTemplate": "t:{x}" }]),
    }
}

/// A client that has read the list of tools.
async fn reads_tools(play: &Playbook) -> Client {
    let ann = play.client().await;
    ann.asks("tools", "tools/list", json!({}));
    lists(&asked_for(&play.server("a"), "tool").await, "tool", items_of("tool"), None);
    assert_eq!(names(&ann.gets_answer("tools").await, "tools", "name"), ["a__x"]);
    ann
}

#[tokio::test(start_paused = true)]
async fn capabilities_behind_the_tool_are_like_the_servers_own() {
    let play = Playbook::of([plain().capabilities(json!({ "tools": {} }))]);
    let (ann, a) = (play.client().await, play.server("a"));
    for (method, kind, key) in LISTS {
        let of = match kind {
            "tools" => "tool",
            "prompts" => "prompt",
            _ => "resource",
        };
        ann.asks(1, method, json!({}));
        lists(&asked_for(&a, of).await, of, items_of(of), None);
        assert_eq!(names(&ann.gets_answer(1).await, kind, key).len(), 1);
    }
    let through =
        |of: &str, path: &str| json!({ "name": "proxy", "arguments": { "action": "call", "type": of, "path": path } });
    let about = |of: &str, path: &str| json!({ "proxyAction": "call", "proxyType": of, "proxyPath": path });
    ann.asks(2, "tools/call", json!({ "name": "a__x", "arguments": { "n": 1 } }));
    let asked = a.gets("tools/call", through("tool", "x")).await;
    assert_eq!(asked.message["params"]["arguments"]["args"], json!({ "n": 1 }));
    asked.answers(json!({ "content": [{ "type": "text", "text": "done", "annotations": about("tool", "x") }] }));
    ann.gets_result(2, text("done")).await;
    ann.asks(3, "prompts/get", json!({ "name": "a__p" }));
    let resource = json!({ "uri": "proxy:prompt", "mimeType": "application/json", "text": r#"{"messages":[]}"# });
    let content = json!([{ "type": "resource", "resource": resource, "annotations": about("prompt", "p") }]);
    a.gets("tools/call", through("prompt", "p")).await.answers(json!({ "content": content }));
    ann.gets_result(3, json!({ "messages": [] })).await;
    ann.asks(4, "resources/read", json!({ "uri": "proxy://template/a/r:1" }));
    let resource = json!({ "uri": "r:1", "mimeType": "text/plain", "text": "hi" });
    let content = json!([{ "type": "resource", "resource": resource, "annotations": about("resource", "r:1") }]);
    a.gets("tools/call", through("resource", "r:1")).await.answers(json!({ "content": content }));
    let read = ann.gets_answer(4).await;
    assert_eq!(read["result"]["contents"][0]["text"], "hi", "{read}");
}

#[tokio::test(start_paused = true)]
async fn pages_behind_the_tool_are_read_to_the_end_or_a_bound() {
    for (bound, expected) in [(10_000, 1_203), (600, 1_000)] {
        let parameters = json!({ "action": {}, "type": {}, "path": {}, "limit": {}, "offset": {} });
        let play = Playbook::with([hidden(parameters)], |it| (it.page_size, it.list_items) = (2_000, bound));
        let (ann, a) = (play.client().await, play.server("a"));
        let all: Vec<Value> =
            (0..1_203).map(|n| json!({ "name": format!("t{n}"), "inputSchema": { "type": "object" } })).collect();
        ann.asks(1, "tools/list", json!({}));
        for offset in (0..expected).step_by(500) {
            let asked = asked_for(&a, "tool").await;
            assert_eq!(asked.message["params"]["arguments"]["offset"].as_u64().unwrap_or(0), offset as u64);
            lists(&asked, "tool", json!(all[offset..(offset + 500).min(1_203)]), Some(1_203));
        }
        let listed = ann.gets_answer(1).await;
        let is_cut = listed["result"]["_meta"]["io.github.mcp-proxy/cut"].is_array();
        assert_eq!((names(&listed, "tools", "name").len().min(1_203) <= expected, is_cut), (true, bound < 1_203));
        a.gets_nothing_else().await;
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_those_of_the_method_that_was_used() {
    let play = Playbook::of([plain().set(|it| it.prefix = false)]);
    let (ann, a) = (play.client().await, play.server("a"));
    let failed = json!({ "content": [{ "type": "text", "text": "there is none" }], "isError": true });
    for (method, params) in [("prompts/get", json!({ "name": "p" })), ("resources/read", json!({ "uri": "r:1" }))] {
        ann.asks(1, method, params);
        a.gets("tools/call", json!({ "arguments": { "action": "call" } })).await.answers(failed.clone());
        ann.gets_error(1, -32603).await;
    }
    ann.calls(2, "x");
    a.gets_call("proxy").await.answers(failed.clone());
    ann.gets_result(2, failed).await;
    ann.calls(3, "x");
    a.gets_call("proxy").await.fails(-32042, "own");
    ann.gets_error(3, -32042).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_through_the_tool_is_absent() {
    for is_error in [true, false] {
        let play = Playbook::of([plain()]);
        let (ann, a) = (play.client().await, play.server("a"));
        ann.asks(1, "tools/list", json!({}));
        let asked = asked_for(&a, "tool").await;
        if is_error {
            asked.fails(-32603, "no");
        } else {
            asked.answers(json!({ "content": [{ "type": "text", "text": "odd" }] }));
        }
        let listed = ann.gets_answer(1).await;
        assert_eq!(listed["result"]["_meta"]["io.github.mcp-proxy/absent"][0]["server"], "a", "{listed}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_cancellation_and_questions_cross_the_tool() {
    let play = Playbook::of([plain()]);
    let a = play.server("a");
    let ann = play.client_that(json!({ "roots": {} })).await;
    ann.asks(1, "tools/call", json!({ "name": "a__x", "_meta": { "progressToken": "mine" } }));
    let call = a.gets_call("proxy").await;
    call.progresses(1);
    assert_eq!(ann.hears("notifications/progress").await["params"]["progressToken"], "mine");
    call.asks("q", "roots/list", Value::Null);
    let question = ann.hears("roots/list").await;
    ann.answers(&question, json!({ "roots": [] }));
    a.hears(json!({ "id": "q", "result": { "roots": [] } })).await;
    ann.cancels(1);
    a.gets("notifications/cancelled", json!({ "requestId": call.id() })).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_tools_is_told_of_everything() {
    let play = Playbook::of([plain()]);
    let ann = reads_tools(&play).await;
    play.passes(std::time::Duration::from_secs(2)).await;
    ann.rest().await;
    play.server("a").says("notifications/tools/list_changed", Value::Null);
    for kind in ["tools", "prompts", "resources"] {
        ann.hears(&format!("notifications/{kind}/list_changed")).await;
    }
    ann.asks(1, "tools/list", json!({}));
    lists(&asked_for(&play.server("a"), "tool").await, "tool", json!([]), None);
    ann.gets_result(1, json!({ "tools": [] })).await;
    ann.ask("tools/list", json!({})).await;
    play.server("a").gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn the_tool_itself_is_not_to_be_called() {
    let play = Playbook::of([plain()]);
    let ann = reads_tools(&play).await;
    for name in ["a__proxy", "a__Proxy"] {
        ann.calls(1, name);
        ann.gets_error(1, -32602).await;
    }
    play.server("a").gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_such_a_tool_is_shown_as_it_is() {
    for (wanted, words) in
        [(UnwrapTool::Found, "has no proxy tool"), (UnwrapTool::Named("hub".into()), "has no tool called `hub`")]
    {
        let play = Playbook::of([server("a").set(|it| it.unwrap_proxy_tool = Some(wanted))]);
        let ann = play.client().await;
        assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["a__x"]);
        assert!(play.has_told(words));
    }
}
