//! `hide_denied` behind a gateway: a denied tool and a missing one are answered with the same bytes, names and ids apart.

use serde_json::{Value, json};

use crate::gateway_kit::{Fake, HttpClient, StdioClient, fake, names_in};
use crate::gateway_upstreams::at_an_address;
use crate::kit::Sandbox;

/// Answers to a call of a missing tool: an error, a failed result, and a success, which is wrong.
const ANSWERS: [&str; 3] = [
    r#"{"id":$id,"error":{"message":"no `$name` here","code":-32601,"data":{"tool":"$name"}},"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":$id,"result":{"isError":true,"content":[{"type":"text","text":"Tool $name not found"}],"structuredContent":{"name":"$name"},"_meta":{"example.org/tool":"$name"}}}"#,
    r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"$name is done"}],"structuredContent":{"of":"$name"}}}"#,
];
const LOGS: usize = 3;
const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"no $name"}}"#;

fn hiding() -> Value {
    let rules = json!([
        { "name": "no-deletes", "match": "op:delete", "verdict": "deny" },
        { "name": "no-harm", "match": "hint:destructive", "verdict": "deny" },
    ]);
    json!({ "policy": { "hide_denied": true, "rules": rules } })
}

/// A server that answers every call like this, and writes nothing else.
fn answering(name: &str, answer: &str) -> Fake {
    with_steps(name, json!([{ "line": answer }]))
}

/// The same between logs, of which the client gets [`LOGS`].
fn logging(name: &str, answer: &str) -> Fake {
    with_steps(name, json!([{ "line": LOG }, { "line": LOG }, { "line": answer }, { "line": LOG }]))
}

fn with_steps(name: &str, steps: Value) -> Fake {
    let own = json!(format!("delete_{name}"));
    let harmful =
        json!({ "name": "frob", "inputSchema": { "type": "object" }, "annotations": { "destructiveHint": true } });
    fake(name).list("tools", json!(["x", "delete_it", own, harmful])).script("on", json!({ "tools/call": steps }))
}

/// The lines that a client on a pipe gets because of a call, without its id and the tool's name.
fn said_on_pipe(client: &mut StdioClient, given: &str, logs: usize) -> Vec<String> {
    let id = client.request("tools/call", json!({ "name": given, "arguments": { "a": 1 } }));
    let line = |_| {
        let line = String::from_utf8(client.proxy.line()).unwrap();
        line.replace(&format!("\"id\":{id}"), "\"id\":0").replace(bare(given), "NAME")
    };
    (0..=logs).map(line).collect()
}

fn bare(given: &str) -> &str {
    given.split_once("__").map_or(given, |(_, name)| name)
}

/// Denied tools are answered like missing ones, before and after the list is read.
#[track_caller]
fn check(sandbox: &Sandbox, fakes: &[Fake], (is_modern, logs): (bool, usize), missing: &str, denied: &[&str]) {
    let mut client = match is_modern {
        true => StdioClient::modern(sandbox.serve(fakes, hiding())),
        false => StdioClient::open(sandbox, fakes, hiding()),
    };
    for is_read in [false, true] {
        if is_read {
            let names = names_in(&client.ask("tools/list", json!({})), "tools", "name");
            assert!(names.iter().all(|name| !name.contains("delete") && !name.contains("frob")), "{names:?}");
            client.take_kept();
        }
        let expected = said_on_pipe(&mut client, missing, logs);
        assert!(expected.iter().all(|line| line.contains("NAME")), "{expected:?}");
        for given in denied.iter().filter(|given| is_read || !given.ends_with("frob")) {
            assert_eq!(said_on_pipe(&mut client, given, logs), expected, "{given}, read: {is_read}");
        }
    }
    client.end();
    for call in fakes.iter().flat_map(|fake| sandbox.seen(&fake.name, "tools/call")) {
        let name = call["params"]["name"].as_str().unwrap();
        assert!(!name.contains("delete") && name != "frob", "{call}");
    }
    let decided = sandbox.decisions();
    let refused = |tool: &str| decided.iter().any(|line| line["tool"] == tool && line["verdict"] == "deny");
    assert!(denied.iter().all(|given| refused(bare(given))), "{decided:?}");
}

const DENIED: [&str; 3] = ["a__delete_it", "a__delete_a", "a__frob"];

#[test]
fn a_denied_tool_is_answered_as_a_missing_one_of_its_server() {
    for answer in ANSWERS {
        for (is_modern, server_is_modern) in [(false, false), (false, true), (true, false), (true, true)] {
            let a = match server_is_modern {
                true => answering("a", answer).modern(),
                false => answering("a", answer),
            };
            let how = (is_modern, 0);
            check(&Sandbox::new(), std::slice::from_ref(&a), how, "a__nonesuch", &DENIED);
            check(&Sandbox::new(), &[a, answering("b", answer)], how, "a__nonesuch", &DENIED);
        }
    }
}

#[test]
fn logs_about_a_denied_tool_are_those_about_a_missing_one() {
    let fakes = [logging("a", ANSWERS[0]), fake("b")];
    check(&Sandbox::new(), &fakes, (false, LOGS), "a__nonesuch", &DENIED);
}

#[test]
fn a_denied_tool_without_a_prefix_is_answered_as_a_missing_one() {
    for answer in ANSWERS {
        let bare = |name| answering(name, answer).set("prefix", false);
        for others in [None, Some(answering("b", answer))] {
            let fakes: Vec<Fake> = [bare("a")].into_iter().chain(others).collect();
            check(&Sandbox::new(), &fakes, (false, 0), "nonesuch", &["delete_it", "delete_a", "frob"]);
        }
        // The gateway does not know whose a missing tool would be. Both list a denied one, or one does.
        let denied = ["delete_it", "delete_a", "delete_b", "frob"];
        check(&Sandbox::new(), &[bare("a"), bare("b")], (false, 0), "nonesuch", &denied);
    }
}

#[test]
fn it_does_not_matter_how_the_server_is_reached() {
    for (path, transport) in [("/mcp", "streamable-http"), ("/sse", "sse")] {
        for is_modern in [false, true] {
            let sandbox = Sandbox::new();
            let (a, _serving) = at_an_address(&sandbox, answering("a", ANSWERS[1]), path);
            let fakes = [a.set("transport", transport), fake("b")];
            check(&sandbox, &fakes, (is_modern, 0), "a__nonesuch", &DENIED);
        }
    }
}

/// Names of more than 64 characters are shortened; the answer names what the client called.
#[test]
fn a_denied_tool_with_a_shortened_name_is_answered_as_a_missing_one() {
    let long = format!("delete_{}", "x".repeat(70));
    let server = answering("a", ANSWERS[1]).list("tools", json!([long]));
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, std::slice::from_ref(&server), json!({}));
    let given = names_in(&client.ask("tools/list", json!({})), "tools", "name").remove(0);
    client.end();
    assert_ne!(bare(&given), long);
    let missing = format!("{}{}", &given[..given.len() - 4], "zzzz");
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[server], hiding());
    client.ask("tools/list", json!({}));
    client.take_kept();
    let expected = said_on_pipe(&mut client, &missing, 0);
    assert_eq!(said_on_pipe(&mut client, &given, 0), expected);
    client.end();
    assert!(sandbox.decisions().iter().any(|line| line["tool"] == *long && line["verdict"] == "deny"));
}

#[test]
fn a_client_over_http_sees_no_difference() {
    for is_modern in [false, true] {
        let sandbox = Sandbox::new();
        let gateway = sandbox.serve_http(&[answering("a", ANSWERS[0]), fake("b")], hiding());
        let mut client = match is_modern {
            true => HttpClient::modern(&gateway),
            false => HttpClient::open(&gateway),
        };
        let mut said = |name: &str| {
            let call = client.message(7, "tools/call", json!({ "name": name }));
            let response = client.post(&call);
            (response.status(), String::from_utf8(response.body).unwrap().replace(bare(name), "NAME"))
        };
        let expected = said("a__nonesuch");
        assert!(expected.1.contains("no `NAME` here"), "{expected:?}");
        assert_eq!(said("a__delete_it"), expected);
        gateway.end();
    }
}
