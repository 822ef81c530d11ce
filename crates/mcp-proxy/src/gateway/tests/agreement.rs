//! The schema, the reader and the defaults agree.

use serde_json::{Value, json};

use super::{EVERYTHING, good, load};
use crate::gateway::keys::{Key, PROXY_TOOL, SERVER, TOKEN, TOOL, TOP, Takes};
use crate::gateway::schema::schema;
use crate::gateway::show;

fn is_valid(document: &Value) -> bool {
    jsonschema::validator_for(&schema()).unwrap().is_valid(document)
}

/// A value that the key takes, and one that it does not.
fn examples(key: &Key) -> (Value, Value) {
    match key.takes {
        _ if key.name == "url" => (json!("http://h/"), json!(1)),
        _ if key.name == "id" => (json!("a"), json!(1)),
        Takes::Text | Takes::Secret => (json!("x"), json!({})),
        Takes::Flag => (json!(false), json!("no")),
        Takes::Duration => (json!("700s"), json!("long")),
        Takes::DurationOrOff => (json!(0), json!("long")),
        Takes::Count { min, max } => (json!(min), json!(max + 1)),
        Takes::Words(words) => (json!(words[0]), json!("x")),
        Takes::Texts => (json!(["x"]), json!([{}])),
        Takes::Pairs => (json!({"a": "x", "b": 1}), json!({"a": []})),
        Takes::Command => (json!(["x", 1]), json!([])),
        Takes::Listen => (json!(80), json!(65_536)),
        Takes::Notifications => (json!(["a"]), json!("some")),
        Takes::Policy => (json!({"default": "deny"}), json!(true)),
        Takes::Tool => (json!("mcp:proxy"), json!(1)),
        Takes::ToolWith(_) => (json!({"name": "x"}), json!([])),
        Takes::List(_) => (json!([]), json!({})),
        Takes::Named(_) => (json!({}), json!([])),
        Takes::Servers(_) => (json!({"a": {"command": "x"}}), json!([])),
    }
}

/// Puts a value where keys of a table stand, in a file that is right without it.
fn with(keys: &[Key], key: &Key, value: Value) -> Value {
    let mut document = json!({"servers": {"a": {"command": "x"}}});
    if std::ptr::eq(keys, TOP) {
        document[key.name] = value;
    } else if std::ptr::eq(keys, SERVER) {
        if ["url", "headers"].contains(&key.name) {
            document["servers"]["a"] = json!({"url": "http://h/"});
        }
        document["servers"]["a"][key.name] = value;
    } else if std::ptr::eq(keys, TOOL) {
        document["servers"]["a"]["tools"] = json!({"t": {key.name: value}});
    } else if std::ptr::eq(keys, PROXY_TOOL) {
        document["proxy_tool"] = json!({key.name: value});
    } else {
        document["tokens"] = json!([{"name": "n", "token": "t"}]);
        let value = if key.name == "servers" && value == json!(["x"]) { json!(["*"]) } else { value };
        document["tokens"][0][key.name] = value;
    }
    document
}

#[test]
fn every_key_is_the_same_to_the_schema_and_the_reader() {
    for keys in [TOP, SERVER, TOOL, PROXY_TOOL, TOKEN] {
        for key in keys {
            let (right, wrong) = examples(key);
            for value in [right, Value::Null] {
                let document = with(keys, key, value);
                let is_needed = document.pointer("/servers").is_none_or(Value::is_null)
                    || document
                        .pointer("/tokens/0")
                        .is_some_and(|token| token["name"].is_null() || token["token"].is_null())
                    || document
                        .pointer("/servers/a")
                        .is_some_and(|server| server["command"].is_null() && server["url"].is_null());
                let read = load("f.json", &document.to_string());
                assert_eq!(read.is_ok(), !is_needed, "{document} {:?}", read.err());
                assert!(is_valid(&document), "{document}");
            }
            let document = with(keys, key, wrong);
            assert!(load("f.json", &document.to_string()).is_err(), "{document}");
            assert!(!is_valid(&document), "{document}");
        }
    }
}

#[test]
fn whatever_the_reader_takes_the_schema_does() {
    // Without what plain JSON does not have.
    let plain = EVERYTHING.replace("// comments are fine", "").replace("},\n  ]", "}\n  ]");
    let plain: Value = serde_json::from_str(&plain).unwrap();
    assert!(is_valid(&plain));
    let shown = show::shown(&good("f.json", EVERYTHING).gateway).json();
    assert!(is_valid(&serde_json::from_str(&shown).unwrap()), "{shown}");
    assert!(!is_valid(&json!({"servers": [{"id": "a", "comand": "x"}]})));
    assert!(!is_valid(&json!({"listen": 80})));
}

/// The table says what counts where a key is left out, and so does the reader.
#[test]
fn the_defaults_are_those_that_the_table_gives() {
    let text = r#"{"servers": {"command": {"command": "x"}, "address": {"url": "http://h/"}}}"#;
    let shown: Value = serde_json::from_str(&show::shown(&good("f.json", text).gateway).json()).unwrap();
    let said = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for key in TOP.iter().filter(|key| !key.default.is_empty()) {
        assert_eq!(said(&shown[key.name]), key.default, "{}", key.name);
    }
    for key in SERVER.iter().filter(|key| !key.default.is_empty()) {
        let of_gateway = said(&shown[key.name]);
        let (command, address) = match key.default.split_once(" for a command, ") {
            Some((command, address)) => (command, address.trim_end_matches(" for an address")),
            None if key.default == "that of the gateway" => (of_gateway.as_str(), of_gateway.as_str()),
            None => (key.default, key.default),
        };
        for (number, default) in [(0, command), (1, address)] {
            let found = &shown["servers"][number][key.name];
            assert!(found.is_null() || said(found) == default, "{}: {found}", key.name);
        }
        assert!(!shown["servers"][0][key.name].is_null() || !shown["servers"][1][key.name].is_null(), "{}", key.name);
    }
}
