//! The tool as clients and their models are shown it.

use bytes::Bytes;

use crate::members::Compose;

pub const DEFAULT_NAME: &str = "proxy";

/// Says how to go on from nothing: whoever reads it knows neither the extension nor what there is. It also has the
/// words by which clients recognise such a tool.
const DESCRIPTION: &str = "Proxy to every tool, resource and prompt there is, also those not shown to you. \
    Find what you need with list (filter.query takes a few words and ranks tools, resources or prompts by relevance), \
    read its parameters with info, then use it with call. Results of call are those of what was called.";

const INPUT_SCHEMA: &str = concat!(
    r#"{"type":"object","properties":{"#,
    r#""action":{"type":"string","enum":["list","info","call","batch"],"#,
    r#""description":"list: find capabilities; info: one in full, with its parameters; call: call a tool, read a "#,
    r#"resource or get a prompt; batch: several of these at once"},"#,
    r#""type":{"type":"string","enum":["tool","resource","prompt"],"description":"Needed except for batch"},"#,
    r#""path":{"type":"string","description":"info and call: the name of the tool or prompt, or the URI of the "#,
    r#"resource (or its URI template, to be filled in by args), as list gives it"},"#,
    // Two types in one `type` are more than some clients can show.
    r#""args":{"anyOf":[{"type":"object"},{"type":"string"}],"description":"call: the arguments, an object as in the "#,
    r#"inputSchema that info gives (or JSON text of one)"},"#,
    r#""limit":{"type":"integer","minimum":1,"maximum":1000,"description":"list: at most so many"},"#,
    r#""offset":{"type":"integer","minimum":0,"description":"list: skip so many"},"#,
    r#""filter":{"type":"object","description":"list: only what fits all of these","properties":{"#,
    r#""query":{"type":"string","description":"Words to search names, descriptions and parameters for; best first"},"#,
    r#""prefix":{"type":"string","description":"How the name or URI begins"},"#,
    r#""tags":{"type":"array","items":{"type":"string"},"description":"Any of these tags"},"#,
    r#""server":{"type":"string","description":"Only from this server"}},"additionalProperties":false},"#,
    r#""filter_server":{"type":"string","description":"list: only from servers whose names begin so"},"#,
    r#""operations":{"type":"array","items":{"type":"object"},"minItems":1,"maxItems":100,"#,
    r#""description":"batch: objects with action, type, path, args as above"},"#,
    r#""objectify":{"type":"boolean","description":"call of a resource: false leaves JSON text as it is"}},"#,
    r#""required":["action"],"additionalProperties":false}"#,
);

/// The definition of the tool, as an item of `tools/list`. `takes_tasks`: whether calls may be tasks.
pub fn definition(name: &str, takes_tasks: bool) -> Bytes {
    Compose::new()
        .text("name", name)
        .text("description", DESCRIPTION)
        .json("inputSchema", INPUT_SCHEMA)
        .json("annotations", r#"{"openWorldHint":true}"#)
        .maybe(takes_tasks.then_some(r#"{"taskSupport":"optional"}"#), |tool, json| tool.json("execution", json))
        .bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What a client has to load before it can do anything.
    const BYTES_MAX: usize = 3 * 1024;

    fn defined(name: &str, takes_tasks: bool) -> Value {
        serde_json::from_slice(&definition(name, takes_tasks)).unwrap()
    }

    #[test]
    fn it_is_small() {
        let longest = "x".repeat(64);
        let bytes = definition(&longest, true).len();
        assert!(bytes < BYTES_MAX, "{bytes}");
    }

    #[test]
    fn it_is_recognised_by_its_words() {
        let tool = defined(DEFAULT_NAME, false);
        let description = tool["description"].as_str().unwrap().to_lowercase();
        for word in ["proxy", "list", "info", "call", "tools", "resources", "prompts"] {
            assert!(description.contains(word), "{word}");
        }
        assert_eq!(crate::detect::find([&*definition("other", false)], None).unwrap().name, "other");
    }

    #[test]
    fn any_name_will_do() {
        for name in ["proxy", "mcp:proxy", "a\"b\\c\n", "é"] {
            assert_eq!(defined(name, false)["name"], name);
        }
    }

    #[test]
    fn tasks_are_offered_only_where_they_work() {
        assert_eq!(defined("proxy", false).get("execution"), None);
        assert_eq!(defined("proxy", true)["execution"], json!({"taskSupport": "optional"}));
    }

    /// Clients that print a schema take a `type` for one word.
    #[test]
    fn every_parameter_has_types_that_are_words() {
        let tool = defined("proxy", false);
        for (name, parameter) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(!parameter["type"].is_array(), "{name}: {parameter}");
        }
        assert_eq!(tool["inputSchema"]["properties"]["args"]["anyOf"], json!([{"type": "object"}, {"type": "string"}]));
    }

    #[test]
    fn the_schema_takes_what_the_parser_takes() {
        let tool = defined("proxy", false);
        let validator = jsonschema::validator_for(&tool["inputSchema"]).unwrap();
        let check = |arguments: Value, fits: bool| {
            assert_eq!(validator.is_valid(&arguments), fits, "{arguments}");
            assert_eq!(crate::arguments::parse(Some(arguments.to_string().as_bytes())).is_ok(), fits, "{arguments}");
        };
        check(json!({"action": "list", "type": "tool", "limit": 50, "offset": 0, "filter": {"query": "a"}}), true);
        check(json!({"action": "info", "type": "prompt", "path": "a"}), true);
        check(json!({"action": "call", "type": "tool", "path": "a", "args": {"b": 1}}), true);
        check(json!({"action": "call", "type": "tool", "path": "a", "args": "{}"}), true);
        check(json!({"action": "call", "type": "resource", "path": "a:b", "objectify": false}), true);
        check(json!({"action": "batch", "operations": [{"action": "list", "type": "tool"}]}), true);
        check(json!({"action": "list", "type": "tool", "args": {}, "filter_server": "a"}), true);
        check(json!({"type": "tool"}), false);
        check(json!({"action": "lst", "type": "tool"}), false);
        check(json!({"action": "list", "type": "tool", "limit": 0}), false);
        check(json!({"action": "list", "type": "tool", "filter": {"name": "x"}}), false);
        check(json!({"action": "list", "type": "tool", "other": 1}), false);
        check(json!({"action": "batch", "operations": []}), false);
    }
}
