//! Session files as docs/session.schema.json describes them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::kit::{Sandbox, wire_fixtures};

const SCHEMA: &str = include_str!("../../../../docs/session.schema.json");
/// What a peer wrote. It may be JSON that not every parser takes, and the schema says nothing of it.
const VERBATIM: [&str; 3] = ["raw", "jsonrpc_id", "original_raw"];

fn faults(document: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(document).unwrap();
    let messages = members.remove("messages").unwrap();
    let messages: Vec<BTreeMap<String, Box<RawValue>>> = serde_json::from_str(messages.get()).unwrap();
    let value = |name: &String, raw: &RawValue| {
        let value = serde_json::from_str(raw.get());
        let value = if VERBATIM.contains(&name.as_str()) { value.unwrap_or_default() } else { value.unwrap() };
        (name.clone(), value)
    };
    let messages: Vec<Value> =
        messages.iter().map(|message| message.iter().map(|(name, raw)| value(name, raw)).collect()).collect();
    let mut document: serde_json::Map<String, Value> = members.iter().map(|(name, raw)| value(name, raw)).collect();
    document.insert("messages".into(), messages.into());
    validator.iter_errors(&document.into()).map(|fault| format!("{fault} at {}", fault.instance_path())).collect()
}

/// Holds a session file to the schema.
#[track_caller]
pub fn check(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(faults(&text), Vec::<String>::new(), "{}", file.display());
}

#[test]
fn every_message_there_is_makes_a_valid_file() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--session-file", "s.json"], &["keep", "/dev/null"]);
    for (_, message) in wire_fixtures() {
        let line: Vec<u8> = message.iter().copied().filter(|byte| *byte != b'\n').chain(*b"\n").collect();
        proxy.send(&line);
    }
    assert!(proxy.end().0.success());
    check(&sandbox.path("s.json"));
}

#[test]
fn what_is_not_as_agreed_is_found() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--session-file", "s.json", "--note", "k=v"], &["answer"]);
    proxy.ask(1, "hello");
    assert!(proxy.end().0.success());
    check(&sandbox.path("s.json"));
    let text = std::fs::read_to_string(sandbox.path("s.json")).unwrap();
    for (good, bad) in [
        ("\"transport\": \"stdio\"", "\"transport\": \"pigeon\""),
        ("\"sequence\": 1", "\"sequence\": \"1\""),
        ("\"modified\": false", "\"modified\": null"),
        ("\"server_url\": null", "\"server_uri\": null"),
        ("\"metadata\": {\n    \"k\": \"v\"\n  }", "\"metadata\": [\"v\"]"),
        ("Z\"", "+01:00\""),
    ] {
        assert!(text.contains(good), "{good}");
        assert!(!faults(&text.replace(good, bad)).is_empty(), "{bad}");
    }
}
