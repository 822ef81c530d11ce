//! Denied calls by way of the proxy tool: alone, in a batch, with arguments in a text, and under every name by which
//! a tool may be asked for. Whatever way a call takes, the rules say the same of it.

use serde_json::{Value, json};

use super::attacks::{filled, uses};
use super::readings::Denied;
use super::stage::{Stage, harmless_with};
use super::{Era, FIRST_ID, RULES};
use crate::gateway_kit::{StdioClient, fake};
use crate::kit::Sandbox;

/// The operation that would use the same, in the same spelling.
fn operation(method: &str, members: &str) -> String {
    let kind = match method {
        "tools/call" => "tool",
        "resources/read" => "resource",
        _ => "prompt",
    };
    let members = members.replace("\"name\":", "\"path\":").replace("\"uri\":", "\"path\":");
    let members = members.replace("\"arguments\":", "\"args\":");
    format!(r#"{{"action":"call","type":"{kind}",{members}}}"#)
}

/// Every way to have the tool do it.
fn ways(method: &str, members: &str) -> [String; 3] {
    let operation = operation(method, members);
    let batch = |operations: &str| format!(r#"{{"action":"batch","operations":[{operations}]}}"#);
    let harmless = r#"{"action":"call","type":"tool","path":"x_nothing_of_note"}"#;
    [batch(&operation), batch(&format!("{harmless},{operation}")), operation]
}

fn try_all(era: Era) {
    let mut stage = Stage::tool(era, RULES);
    let (mut id, mut tried) = (FIRST_ID, 0);
    for (name, method, members) in uses() {
        for arguments in ways(method, members) {
            let call = filled(&format!("tools/call \"name\":\"proxy\",\"arguments\":{arguments}"), era, &mut id);
            let number = 1 + tried;
            let running = stage.running();
            running.send(format!("{call}\n{}\n", harmless_with(era, number)).as_bytes());
            // Both are answered: the one with what is wrong, the other as ever.
            for _ in 0..2 {
                let answer = running.json();
                if answer["id"] == number {
                    assert!(answer.get("result").is_some(), "{name}: {answer}");
                } else {
                    assert!(is_refused(&answer), "{name}: {arguments}: {answer}");
                }
            }
            let found = stage.denied_calls(Denied::More);
            assert!(found.is_empty(), "{name}: {found:?}");
            tried += 1;
        }
    }
    assert!(tried >= 150, "there are {tried}");
    stage.end();
}

/// Whether the last operation of a use of the tool came to nothing.
fn is_refused(answer: &Value) -> bool {
    let result = &answer["result"];
    let results = result["structuredContent"]["results"].as_array();
    let last_failed = results.and_then(|results| results.last()).is_some_and(|last| last["isError"] == true);
    answer.get("error").is_some() || result["isError"] == true || last_failed
}

#[test]
fn no_denied_call_goes_through_the_tool() {
    try_all(Era::Legacy);
}

#[test]
fn no_denied_call_goes_through_the_tool_in_the_newest_revision() {
    try_all(Era::Modern);
}

/// Names as tools have them, and such as look like others.
const NAMES: [&str; 40] = [
    "read_file",
    "write_file",
    "delete_file",
    "list_files",
    "move_file",
    "create_repo",
    "delete_repo",
    "get_repo",
    "update_issue",
    "drop_table",
    "select_rows",
    "run_query",
    "execute",
    "shutdown_host",
    "reboot",
    "status",
    "send_mail",
    "post_message",
    "search",
    "fetch",
    "admin_reset",
    "admin_list",
    "user.create",
    "user.delete",
    "user-get",
    "a",
    "A1",
    "x.y.z",
    "do_it",
    "undo",
    "purge_cache",
    "clear",
    "remove_member",
    "add_member",
    "kill_job",
    "start_job",
    "stop_job",
    "proxy_list",
    "proxy_call",
    "readOnly",
];

/// Rules of twelve shapes.
const SHAPES: [&str; 12] = [
    "op:delete",
    "op:write",
    "op:read",
    "tool:delete_*",
    "tool:shutdown_host,reboot,status",
    "tool:*file*",
    "not tool:a*",
    "tool:user.* not op:read",
    "server:one tool:*repo*",
    "server:two",
    "$.params.arguments.path ^= \"/etc\"",
    "/admin/ or tool:proxy_*",
];

/// What came of a call: whether it was denied, and by which rule.
fn verdict(answer: &Value) -> Option<String> {
    let error = answer.get("error")?;
    assert_eq!(error["code"], -32000, "{answer}");
    Some(error["data"]["rule"].as_str().unwrap_or_default().to_owned())
}

/// One table of decisions: it is the same by whatever way a call comes.
#[test]
fn forty_names_and_twelve_rules_are_decided_alike_on_every_way() {
    let args = json!({ "path": "/etc/hosts" });
    let mut denied = 0;
    for (number, shape) in SHAPES.iter().enumerate() {
        let rules = json!({ "policy": { "rules": [{ "name": "it", "match": shape, "verdict": "deny" }] } });
        let sandbox = Sandbox::new();
        let path = sandbox.path("rules.json");
        std::fs::write(&path, rules.to_string()).unwrap();
        let servers = |prefix: bool| [fake("one").tools(&NAMES).set("prefix", prefix)];
        let top = json!({ "rules": path.to_str(), "proxy_tool": true });
        let mut prefixed = StdioClient::open(&sandbox, &servers(true), top.clone());
        let other = Sandbox::new();
        let mut plain = StdioClient::open(&other, &servers(false), top);
        for name in NAMES {
            let direct = verdict(&plain.call(name, args.clone()));
            denied += usize::from(direct.is_some());
            let tool = |path: &str| json!({ "action": "call", "type": "tool", "path": path, "args": args });
            let task = json!({ "name": name, "arguments": args, "task": { "ttl": 1000 } });
            let tool_task = json!({ "name": "proxy", "arguments": tool(name), "task": { "ttl": 1000 } });
            let ways = [
                verdict(&prefixed.call(&format!("one__{name}"), args.clone())),
                verdict(&prefixed.call("proxy", tool(&format!("one__{name}")))),
                verdict(&plain.call("proxy", tool(name))),
                verdict(&plain.ask("tools/call", task)),
                verdict(&plain.ask("tools/call", tool_task)),
            ];
            assert!(ways.iter().all(|way| *way == direct), "{shape}: {name}: {direct:?}, {ways:?}");
            let batch = plain.call("proxy", json!({ "action": "batch", "operations": [tool(name)] }));
            let result = &batch["result"]["structuredContent"]["results"][0];
            assert_eq!(result["error"]["code"] == -32000, direct.is_some(), "{shape}: {name}: {batch}");
        }
        assert!(number < SHAPES.len());
        prefixed.end();
        plain.end();
    }
    assert!((60..400).contains(&denied), "{denied} are denied");
}
