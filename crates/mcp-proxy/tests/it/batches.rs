//! Refused batches: each caller in them is answered exactly once.

use std::process::Command;

use serde_json::{Value, json};

use crate::http_kit::{LAST_CHUNK, Origin, STREAM, Serving, event, json as json_answer, post};
use crate::kit::{Running, Sandbox};

const RULES: &str = r#"{"policy": {"rules": [{"name": "no-deletes", "match": "op:delete", "verdict": "deny"},
    {"name": "no-secrets", "match": "method:notifications/secret", "verdict": "deny"}]}}"#;

/// A server that answers each call with a batch of one answer.
const SCRIPT: &str = r#"while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}' ;;
        *) result='{"content":[]}' ;;
    esac
    case "$line" in
        *'"tools/call"'*) printf '[{"jsonrpc":"2.0","id":%s,"result":%s}]\n' "$id" "$result" ;;
        *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result" ;;
    esac
done"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("rules.json"), RULES).unwrap();
    std::fs::write(sandbox.path("server.sh"), SCRIPT).unwrap();
    sandbox
}

/// The same server over HTTP.
fn origin(as_event: bool) -> Serving {
    Origin::start().serve(move |call| {
        let asked: Value = serde_json::from_slice(&call.body).unwrap();
        let Some(id) = asked.get("id") else { return call.send(crate::http_kit::accepted()) };
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let is_call = asked["method"] == "tools/call";
        let answer = if is_call { json!([answer]) } else { answer }.to_string();
        match as_event && is_call {
            false => call.send(json_answer(answer)),
            true => call.send([STREAM, &event(answer), LAST_CHUNK].concat()),
        }
    })
}

fn initialize(revision: &str) -> String {
    let client = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

fn call(id: u64, tool: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
}

fn say(proxy: &mut Running, message: &str) {
    proxy.send(format!("{message}\n").as_bytes());
}

#[track_caller]
fn check_garbled(answer: &Value) {
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&1.into(), &5022.into()), "{answer}");
}

#[track_caller]
fn check_on_pipe(mut proxy: Running, tool: &str) {
    say(&mut proxy, &initialize("2025-11-25"));
    assert_eq!(proxy.json()["id"], 0);
    say(&mut proxy, &call(1, tool).to_string());
    check_garbled(&proxy.json());
    proxy.close_stdin();
    assert_eq!(proxy.rest(), [b""; 0], "it is answered once");
    drop(proxy.end());
}

fn check_over_http(sandbox: &Sandbox, args: &[&str]) {
    let proxy = sandbox.listen(args);
    let mut client = proxy.client();
    let opened = client.ask(&post("/mcp", &[], initialize("2025-11-25")));
    let session = opened.head.get("mcp-session-id").map(|id| format!("Mcp-Session-Id: {id}"));
    let headers: Vec<&str> = session.as_deref().into_iter().collect();
    let response = client.ask(&post("/mcp", &headers, call(1, "x").to_string()));
    let body = String::from_utf8(response.body.clone()).unwrap();
    let data = body.lines().filter_map(|line| line.strip_prefix("data: ")).find(|data| !data.is_empty());
    let answer = serde_json::from_str(data.unwrap_or(&body));
    check_garbled(&answer.unwrap_or_else(|error| panic!("{error}: {response:?}")));
    proxy.end();
}

#[test]
fn a_batch_for_an_answer_is_refused_with_an_answer() {
    let sandbox = sandbox();
    let rules = ["--rules", "rules.json", "--quiet"];
    check_on_pipe(sandbox.run_script(&rules, SCRIPT), "x");
    let (plain, streams) = (origin(false), origin(true));
    for origin in [&plain, &streams] {
        let url = origin.url("/mcp");
        check_on_pipe(sandbox.run_to("streamable-http", &url, &rules), "x");
        check_over_http(&sandbox, &[&["--transport", "streamable-http", "--target-url", &url], &rules[..]].concat());
    }
    check_over_http(&sandbox, &[&["--transport", "stdio", "--target-command", "sh server.sh"], &rules[..]].concat());
}

#[test]
fn a_gateway_refuses_it_by_rules_and_takes_it_apart_without() {
    let sandbox = sandbox();
    check_on_pipe(Running::start(gateway(&sandbox, &["--rules", "rules.json"])), "s__x");
    let mut proxy = Running::start(gateway(&sandbox, &[]));
    say(&mut proxy, &initialize("2025-11-25"));
    assert_eq!(proxy.json()["id"], 0);
    say(&mut proxy, &call(1, "s__x").to_string());
    let answer = proxy.json();
    assert_eq!((&answer["id"], &answer["result"]["content"]), (&1.into(), &json!([])), "{answer}");
    proxy.close_stdin();
    assert_eq!(proxy.rest(), [b""; 0], "it is answered once");
    drop(proxy.end());
}

fn gateway(sandbox: &Sandbox, args: &[&str]) -> Command {
    let config = json!({ "servers": [{ "id": "s", "command": ["sh", "server.sh"] }] });
    std::fs::write(sandbox.path("gateway.json"), config.to_string()).unwrap();
    sandbox.command([&["serve", "--quiet", "--config", "gateway.json"], args].concat())
}

/// Calls left open would be answered again at the end of the conversation.
#[test]
fn a_refused_batch_is_answered_once() {
    let batch = json!([call(1, "list_repos"), call(2, "delete_repo")]).to_string();
    for revision in ["2025-03-26", "2025-11-25"] {
        let sandbox = sandbox();
        let governed =
            sandbox.run_script(&["--rules", "rules.json", "--quiet"], &SCRIPT.replace("2025-11-25", revision));
        let gateway = (revision == "2025-11-25").then(|| Running::start(gateway(&sandbox, &[])));
        for mut proxy in [governed].into_iter().chain(gateway) {
            say(&mut proxy, &initialize(revision));
            assert_eq!(proxy.json()["result"]["protocolVersion"], revision);
            say(&mut proxy, &batch);
            let answer = proxy.json();
            let codes: Vec<&Value> = match &answer {
                Value::Array(answers) => answers.iter().map(|answer| &answer["error"]["code"]).collect(),
                answer => vec![&answer["error"]["code"]],
            };
            let expected: &[i64] = if revision == "2025-03-26" { &[5042, -32000] } else { &[-32600] };
            assert_eq!(codes, expected, "{answer}");
            proxy.close_stdin();
            assert_eq!(proxy.rest(), [b""; 0]);
            drop(proxy.end());
        }
    }
}

#[test]
fn a_refused_batch_over_http_is_answered_once() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path("server.sh"), SCRIPT.replace("2025-11-25", "2025-03-26")).unwrap();
    let args = ["--transport", "stdio", "--target-command", "sh server.sh", "--rules", "rules.json", "--quiet"];
    let proxy = sandbox.listen(args);
    let mut client = proxy.client();
    let opened = client.ask(&post("/mcp", &[], initialize("2025-03-26")));
    let session = format!("Mcp-Session-Id: {}", opened.head.get("mcp-session-id").unwrap());
    let refused =
        client.ask(&post("/mcp", &[&session], json!([call(1, "get_repo"), call(2, "delete_repo")]).to_string()));
    let answers: Value = refused.json();
    assert_eq!((&answers[0]["error"]["code"], &answers[1]["error"]["code"]), (&5042.into(), &(-32000).into()));
    // Nothing waits for an answer in this one.
    let told = json!([{ "jsonrpc": "2.0", "method": "notifications/secret" }]).to_string();
    assert_eq!(client.ask(&post("/mcp", &[&session], told)).status(), 202);
    proxy.end();
}
