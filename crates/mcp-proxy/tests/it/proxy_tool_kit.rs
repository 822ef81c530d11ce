//! What the tests of the proxy tool share.

use serde_json::{Value, json};

use crate::gateway_kit::{Fake, StdioClient, fake};
use crate::kit::Sandbox;

/// What the configuration says of the tool.
pub fn tool(mode: &str) -> Value {
    json!({ "proxy_tool": { "name": "proxy", "mode": mode } })
}

/// A use of the tool that calls another.
pub fn call(path: &str, args: Value) -> Value {
    json!({ "action": "call", "type": "tool", "path": path, "args": args })
}

/// A server with something of everything, whose names are its own.
pub fn full() -> Fake {
    let add = json!({
        "name": "calculator_add", "description": "Add two numbers",
        "inputSchema": { "type": "object", "properties": { "a": { "type": "number" } } },
    });
    fake("full")
        .set("prefix", false)
        .list("tools", json!([add, "x", "do"]))
        .list("prompts", json!([{ "name": "greet", "arguments": [{ "name": "who" }] }]))
        .list("resources", json!([{ "name": "notes", "uri": "mem://notes", "mimeType": "text/plain" }]))
        .list("resourceTemplates", json!([{ "name": "note", "uriTemplate": "mem://notes/{id}" }]))
}

impl StdioClient {
    /// A client of one server and the tool beside it.
    #[track_caller]
    pub fn with_tool(sandbox: &Sandbox, server: Fake) -> Self {
        Self::open(sandbox, &[server], tool("beside"))
    }

    /// Uses the tool; the whole answer, which is one that the schema has.
    #[track_caller]
    pub fn proxy(&mut self, arguments: Value) -> Value {
        let answer = self.call("proxy", arguments.clone());
        fits_schema(&arguments, &answer);
        answer
    }

    /// Uses the tool, and expects it to go well; the content.
    #[track_caller]
    pub fn content(&mut self, arguments: Value) -> Vec<Value> {
        let answer = self.proxy(arguments);
        assert!(answer["result"]["isError"] != true, "{answer}");
        answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// The only item of that.
    #[track_caller]
    pub fn item(&mut self, arguments: Value) -> Value {
        let content = self.content(arguments);
        assert_eq!(content.len(), 1, "{content:?}");
        content[0].clone()
    }

    /// What the tool says is wrong.
    #[track_caller]
    pub fn mistake(&mut self, arguments: Value) -> String {
        let answer = self.proxy(arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// What the result of `calculator_add` is, whatever it is called with.
    #[track_caller]
    pub fn result_of(&mut self, result: Value) -> Value {
        let args = json!({ "steps": [{ "answer": result }] });
        self.proxy(json!({ "action": "call", "type": "tool", "path": "do", "args": args }))["result"].clone()
    }
}

/// Holds an answer to the schema that the project ships.
#[track_caller]
fn fits_schema(arguments: &Value, answer: &Value) {
    let result = &answer["result"];
    // An error is the protocol's, and so is what is no result yet.
    if !result["content"].is_array() {
        return;
    }
    let is_query = |kind: &str| result["isError"] == true && kind != "call" && kind != "batch";
    let definition = match (arguments["action"].as_str(), arguments["type"].as_str()) {
        (Some(action), _) if is_query(action) => "mistake",
        (Some("list"), _) => "listResult",
        (Some("info"), _) => "infoResult",
        (Some("batch"), _) if result.get("structuredContent").is_some() => "batchResult",
        (Some("call"), Some(_)) if result["isError"] == true && result["content"][0].get("annotations").is_none() => {
            "mistake"
        }
        (Some("call"), Some("tool")) => "toolCallResult",
        (Some("call"), Some("resource")) => "resourceCallResult",
        (Some("call"), Some("prompt")) => "promptCallResult",
        _ => "mistake",
    };
    let mut schema: Value = serde_json::from_str(mcp_proxy_tool::SCHEMA).unwrap();
    schema["$ref"] = format!("#/$defs/{definition}").into();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(result).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{definition}: {faults:?}: {answer}");
}

/// The JSON in the text of an embedded resource.
#[track_caller]
pub fn data(item: &Value) -> Value {
    let text = item["resource"]["text"].as_str().unwrap_or_else(|| panic!("{item}"));
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))
}

/// The names of what was listed.
#[track_caller]
pub fn names(item: &Value) -> Vec<String> {
    let items = data(item);
    let name = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
    items.as_array().unwrap_or_else(|| panic!("{items}")).iter().map(name).collect()
}
