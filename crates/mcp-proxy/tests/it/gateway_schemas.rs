//! What a gateway composes itself, held to the protocol's own schemas where they are at hand.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::gateway_kit::{Fake, StdioClient, fake, initialize};
use crate::kit::Sandbox;

fn schema_of(revision: &str) -> Option<Value> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/mcp-schema");
    let text = std::fs::read(file.join(revision).join("schema.json"));
    match text {
        Ok(text) => Some(serde_json::from_slice(&text).unwrap()),
        Err(_) => {
            #[expect(clippy::print_stderr, reason = "whoever runs the tests should know what they did not show")]
            {
                eprintln!("SKIPPED: THE SCHEMA OF {revision} IS NOT AT HAND");
            }
            None
        }
    }
}

#[track_caller]
fn check(schema: &Value, definition: &str, result: &Value) {
    let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
    let mut schema = schema.clone();
    schema["$ref"] = format!("#/{place}/{definition}").into();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(result).map(|fault| fault.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new(), "{definition}: {result}");
}

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "ListToolsResult"),
    ("prompts/list", "ListPromptsResult"),
    ("resources/list", "ListResourcesResult"),
    ("resources/templates/list", "ListResourceTemplatesResult"),
];

/// Servers of both eras that have something of everything, and one that is not there.
fn all() -> Vec<Fake> {
    let full = |name: &str| {
        let it = fake(name).list("prompts", json!(["p"])).list("resources", json!(["r:1"]));
        it.list("resourceTemplates", json!(["t:{x}"]))
    };
    vec![full("a"), full("b").modern().script("ttl_ms", 1000), fake("gone").script("begin", json!([{ "exit": 1 }]))]
}

#[test]
fn what_older_clients_are_told_is_as_their_revision_says() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let Some(schema) = schema_of(revision) else { continue };
        let sandbox = Sandbox::new();
        let mut proxy = sandbox.serve(&all(), json!({ "page_size": 3 }));
        proxy.send(format!("{}\n", initialize(0, revision, json!({}))).as_bytes());
        let opened = proxy.json();
        assert_eq!(opened["result"]["protocolVersion"], revision);
        check(&schema, "InitializeResult", &opened["result"]);
        for (id, (method, definition)) in LISTS.iter().enumerate() {
            proxy.send(format!("{}\n", json!({ "jsonrpc": "2.0", "id": id + 1, "method": method })).as_bytes());
            let listed = loop {
                let message = proxy.json();
                if message["id"] == id + 1 {
                    break message;
                }
            };
            check(&schema, definition, &listed["result"]);
            assert!(listed["result"]["_meta"].is_object(), "one is absent: {listed}");
        }
        assert!(proxy.end().0.success());
    }
}

#[test]
fn what_clients_of_the_newest_revision_are_told_is_as_it_says() {
    let Some(schema) = schema_of("2026-07-28") else { return };
    let sandbox = Sandbox::new();
    let mut client = StdioClient::modern(sandbox.serve(&all(), json!({ "page_size": 3 })));
    check(&schema, "DiscoverResult", &client.ask("server/discover", json!({}))["result"]);
    for (method, definition) in LISTS {
        check(&schema, definition, &client.ask(method, json!({}))["result"]);
    }
    // Answers of servers that know nothing of it are made fit for it.
    let call = client.call("a__x", json!({ "text": "1" }));
    check(&schema, "CallToolResult", &call["result"]);
    let read = client.ask("resources/read", json!({ "uri": "proxy://template/a/r:1" }));
    check(&schema, "ReadResourceResult", &read["result"]);
    let prompt = client.ask("prompts/get", json!({ "name": "a__p" }));
    check(&schema, "GetPromptResult", &prompt["result"]);
    client.request("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let acknowledged = client.heard("notifications/subscriptions/acknowledged");
    check(&schema, "SubscriptionsAcknowledgedNotification", &acknowledged);
    client.end();
}
