//! Lists of all servers as one: kept while nothing changes, told anew no oftener than need be, and read to the
//! end but not for ever.

use serde_json::{Value, json};

use crate::gateway_kit::{StdioClient, fake, names_in};
use crate::kit::{Sandbox, until};

const CHANGED: &str = "notifications/tools/list_changed";

fn changes(times: usize) -> Value {
    let changed = json!({ "jsonrpc": "2.0", "method": CHANGED });
    json!([{ "repeat": { "times": times, "steps": [{ "say": changed }] } }, { "text": "done" }])
}

/// A client that has read the list, and heard whatever is said when servers come up.
fn settled(sandbox: &Sandbox, top: Value) -> StdioClient {
    let mut client = StdioClient::open(sandbox, &[fake("a"), fake("b")], top);
    client.ask("tools/list", json!({}));
    client.take_kept();
    client
}

#[test]
fn a_list_is_kept_while_nothing_changes() {
    let sandbox = Sandbox::new();
    let mut client = settled(&sandbox, json!({}));
    for _ in 0..10 {
        assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name").len(), 4);
    }
    assert_eq!((sandbox.seen("a", "tools/list").len(), sandbox.seen("b", "tools/list").len()), (1, 1));
    client.steps("a__do", changes(1));
    client.ask("tools/list", json!({}));
    assert_eq!((sandbox.seen("a", "tools/list").len(), sandbox.seen("b", "tools/list").len()), (2, 1));
    client.end();
}

#[test]
fn an_item_that_no_client_could_read_is_left_out_and_named() {
    let sandbox = Sandbox::new();
    let schema = json!({ "type": "object" });
    let tools = json!([
        "x",
        { "name": "bare" },
        { "name": "odd", "inputSchema": schema, "title": null, "description": 7, "annotations": { "title": null } },
    ]);
    let fakes =
        [fake("a").list("tools", tools).list("prompts", json!([{ "name": "p", "arguments": [{}] }])), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({ "proxy_tool": true }));
    let listed = client.ask("tools/list", json!({}));
    assert_eq!(names_in(&listed, "tools", "name"), ["proxy", "a__x", "a__odd", "b__x", "b__do"]);
    let mut odd = listed["result"]["tools"][2].clone();
    odd.as_object_mut().unwrap().remove("_meta");
    assert_eq!(odd, json!({ "name": "a__odd", "inputSchema": schema, "annotations": {} }));
    // A client that must not know of what is left out is not told its name.
    let cut = json!([{ "server": "a", "reason": "1 left out, which no client could read" }]);
    assert_eq!(listed["result"]["_meta"]["io.github.mcp-proxy/cut"], cut);
    assert_eq!(client.ask("prompts/list", json!({}))["result"]["prompts"], json!([]));
    let through = client.call("proxy", json!({ "action": "list", "type": "tool" })).to_string();
    assert!(!through.contains("bare") && through.contains("a__odd"), "{through}");
    let said = "`bare` left out, `inputSchema` is missing; `odd` without its `description`";
    let named = "`p` left out, `arguments`: `name` is missing";
    until("servers list names it", || {
        let told = sandbox.stdout(["servers", "list", "--json"]);
        told.contains(said) && told.contains(named)
    });
    let told = client.end();
    for text in [format!("tools/list of server \"a\" has items that are not valid: {said}"), named.to_owned()] {
        assert!(told.contains(&text), "{text}: {told}");
    }
}

#[test]
fn output_that_is_no_object_is_for_clients_that_know_it() {
    let tool = json!({ "name": "do", "inputSchema": { "type": "object" }, "outputSchema": { "type": "array" } });
    let result = json!({ "content": [], "structuredContent": [1] });
    for is_modern in [false, true] {
        let sandbox = Sandbox::new();
        let proxy = sandbox.serve(&[fake("a").modern().list("tools", json!([tool]))], json!({ "proxy_tool": true }));
        let mut client = match is_modern {
            true => StdioClient::modern(proxy),
            false => StdioClient::open_with(proxy, json!({})).0,
        };
        let expected = is_modern.then_some(&tool["outputSchema"]);
        assert_eq!(client.ask("tools/list", json!({}))["result"]["tools"][1].get("outputSchema"), expected);
        for action in ["list", "info"] {
            let mut arguments = json!({ "action": action, "type": "tool" });
            if action == "info" {
                arguments["path"] = "a__do".into();
            }
            let told = client.call("proxy", arguments)["result"]["content"][0].to_string();
            assert_eq!(told.contains("outputSchema"), is_modern, "{told}");
        }
        let answer = client.steps("a__do", json!([{ "answer": result }]));
        assert_eq!(answer["result"].get("structuredContent"), is_modern.then_some(&json!([1])), "{answer}");
        client.end();
    }
}
