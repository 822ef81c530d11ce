//! Lists of tools across transports. A tool may ask for headers that repeat its arguments, and not
//! every such wish is allowed.

use serde_json::{Value, json};

use crate::bridge_kit::{INITIALIZED, LEGACY, Session, initialize, modern, opened};
use crate::http_kit::{Listening, Origin, Recording, accepted, answer, call, get, json as json_answer, post};
use crate::kit::{Running, Sandbox};

/// A list with a tool that wants a header for what can be none, in odd spacing.
const LIST: &str = r#"{ "jsonrpc":"2.0", "id":1 ,"result":{"tools":[ {"name":"good","inputSchema":{"type":"object"}},
{"name":"wants-too-much","inputSchema":{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}} ]}}"#;

fn list() -> String {
    LIST.replace('\n', " ")
}

fn names(list: &[u8]) -> Vec<String> {
    let list: Value = serde_json::from_slice(list).expect("a list");
    let tools = list["result"]["tools"].as_array().expect("it has tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("they have names").to_owned()).collect()
}

/// Opens a session of the older revisions and answers `tools/list` in it.
#[track_caller]
fn answer_list(origin: &Origin) {
    let mut opening = origin.call();
    assert_eq!(opening.text(), initialize(LEGACY));
    opening.send(answer("200 OK", &["Content-Type: application/json", "Mcp-Session-Id: s1"], opened(LEGACY)));
    let mut initialized = origin.call();
    assert_eq!(initialized.text(), INITIALIZED);
    initialized.send(accepted());
    // The stream for what belongs to no call, and the call, in either order.
    for _ in 0..2 {
        let mut request = origin.call();
        match request.asked().as_str() {
            "GET /mcp" => request.send(answer("405 Method Not Allowed", &[], "")),
            _ => request.send(json_answer(list())),
        }
    }
}

#[test]
fn a_legacy_client_on_a_pipe_gets_the_list_as_it_is() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let mut proxy = sandbox.run_to("streamable-http", &origin.url("/mcp"), &[]);
    proxy.send(format!("{}\n", initialize(LEGACY)).as_bytes());
    proxy.send(format!("{INITIALIZED}\n{}\n", call(1, "tools/list")).as_bytes());
    answer_list(&origin);
    assert_eq!(proxy.json()["id"], "init");
    assert_eq!(proxy.line(), format!("{}\n", list()).as_bytes());
    goodbye(proxy, &origin);
    check_untouched(&sandbox);
}

fn goodbye(mut proxy: Running, origin: &Origin) {
    proxy.close_stdin();
    origin.call().send(accepted());
    assert!(proxy.end().0.success());
}

#[track_caller]
fn check_untouched(sandbox: &Sandbox) {
    let events = Recording::of(sandbox).events();
    assert!(!events.iter().any(|event| event.contains("left out")), "{events:?}");
}

#[test]
fn a_client_of_the_older_transport_gets_the_list_as_it_is() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[]);
    let mut stream = proxy.client();
    stream.send(&get("/sse", &["Accept: text/event-stream"]));
    stream.head();
    let endpoint = stream.message();
    for message in [initialize(LEGACY), INITIALIZED.to_owned(), call(1, "tools/list")] {
        assert_eq!(proxy.client().ask(&post(&endpoint, &[], message)).status(), 202);
    }
    answer_list(&origin);
    stream.message();
    assert_eq!(stream.message(), list());
    drop(stream);
    origin.call().send(accepted());
    proxy.end();
    check_untouched(&sandbox);
}

#[test]
fn a_modern_client_is_not_offered_what_the_proxy_must_not_send() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let mut proxy = sandbox.run_to("streamable-http", &origin.url("/mcp"), &[]);
    proxy.send(format!("{}\n", modern("1", "tools/list", json!({}))).as_bytes());
    origin.call().send(json_answer(list()));
    let line = proxy.line();
    assert_eq!(names(&line), ["good"]);
    let expected = LIST.split(",\n").next().unwrap().to_owned() + " ]}}\n";
    assert_eq!(String::from_utf8_lossy(&line), expected, "every other byte is as it was");
    assert!(proxy.end().0.success());
    let events = Recording::of(&sandbox).events();
    assert!(events.iter().any(|event| event.contains("left out")), "{events:?}");
}

/// A client that speaks HTTP itself chooses for itself, in either era.
#[test]
fn a_client_of_http_gets_the_list_as_it_is() {
    let sandbox = Sandbox::new();
    let proxy: Listening = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "say", "params": { "lines": [list()] } });
    assert_eq!(session.ask(asked.to_string()).body, list().as_bytes());
    let asked = modern("1", "say", json!({ "lines": [list()] }));
    let headers = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: say"];
    assert_eq!(proxy.client().ask(&post("/mcp", &headers, asked)).body, list().as_bytes());
    proxy.end();
}
