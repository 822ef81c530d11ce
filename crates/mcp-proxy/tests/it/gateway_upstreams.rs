//! Servers with addresses beside those that are commands.

use serde_json::{Value, json};

use crate::gateway_kit::{Fake, HttpClient, StdioClient, code_of, fake, names_in, steps, text_of};
use crate::http_kit::{Listening, Origin};
use crate::kit::Sandbox;

/// A fake that is reached over HTTP, and what serves it.
fn at_an_address(sandbox: &Sandbox, fake: Fake, path: &str) -> (Fake, Listening) {
    // Its script is written as if it were a command of the gateway's.
    sandbox.gateway_config(std::slice::from_ref(&fake), &json!({}));
    let script = sandbox.path(&format!("{}.script", fake.name));
    let listening = sandbox.listen_to_fixture(&["upstream", script.to_str().unwrap()], &["--no-record"]);
    (fake.set("url", listening.url(path)), listening)
}

#[test]
fn servers_of_every_transport_stand_side_by_side() {
    for is_http in [false, true] {
        let sandbox = Sandbox::new();
        let (over_http, _one) = at_an_address(&sandbox, fake("http"), "/mcp");
        let (over_sse, _two) = at_an_address(&sandbox, fake("sse"), "/sse");
        let (newest, _three) = at_an_address(&sandbox, fake("newest").modern(), "/mcp");
        let fakes = [over_http, over_sse.set("transport", "sse"), newest, fake("pipe")];
        let expected: Vec<String> =
            ["http", "sse", "newest", "pipe"].iter().flat_map(|id| [format!("{id}__x"), format!("{id}__do")]).collect();
        let ask = |call: &mut dyn FnMut(&str, Value) -> Value| {
            for id in ["http", "sse", "newest", "pipe"] {
                let told = steps(json!([{ "text": id }]));
                assert_eq!(text_of(&call(&format!("{id}__do"), told)), id);
            }
        };
        if is_http {
            let gateway = sandbox.serve_http(&fakes, json!({}));
            let mut client = HttpClient::open(&gateway);
            assert_eq!(names_in(&client.ask(1, "tools/list", json!({})), "tools", "name"), expected);
            ask(&mut |tool, arguments| client.call(1, tool, arguments));
            gateway.end();
        } else {
            let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
            assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), expected);
            ask(&mut |tool, arguments| client.call(tool, arguments));
            client.end();
        }
    }
}

#[test]
fn the_older_transport_is_found_out() {
    let sandbox = Sandbox::new();
    let (over_sse, _serving) = at_an_address(&sandbox, fake("a"), "/sse");
    let mut client = StdioClient::open(&sandbox, &[over_sse], json!({}));
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    client.end();
}

#[test]
fn an_address_where_nobody_is_hurts_nobody_else() {
    let sandbox = Sandbox::new();
    let nobody = Origin::start().url("/mcp");
    let mut client = StdioClient::open(&sandbox, &[fake("a").set("url", nobody), fake("b")], json!({}));
    assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["b__x", "b__do"]);
    let refused = client.call("a__x", json!({}));
    assert_eq!((code_of(&refused), &refused["error"]["data"]["server"]), (5032, &json!("a")), "{refused}");
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    client.end();
}

#[test]
fn progress_and_questions_come_over_http_too() {
    let sandbox = Sandbox::new();
    let (server, _serving) = at_an_address(&sandbox, fake("a"), "/mcp");
    let (mut client, _) = StdioClient::open_with(sandbox.serve(&[server], json!({})), json!({ "roots": {} }));
    let params = json!({ "progressToken": "$token", "progress": 1 });
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
    let asked = json!({ "ask": { "jsonrpc": "2.0", "id": 1, "method": "roots/list" } });
    let told = steps(json!([{ "say": progress }, asked]));
    let params = json!({ "name": "a__do", "arguments": told, "_meta": { "progressToken": "mine" } });
    let call = client.request("tools/call", params);
    assert_eq!(client.heard("notifications/progress")["params"]["progressToken"], "mine");
    let question = client.heard("roots/list");
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } }));
    let heard: Value = serde_json::from_str(&text_of(&client.answer(&call))).unwrap();
    assert_eq!(heard["result"], json!({ "roots": [] }));
    client.end();
}
