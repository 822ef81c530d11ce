use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn tool(knows: bool) -> ProxyTool {
    ProxyTool { name: "the \"proxy\"".into(), knows_paging: knows, knows_objectify: knows }
}

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}

#[test]
fn lists_are_asked_for_as_far_as_the_tool_knows() {
    let paging = Paging { limit: Some(50), offset: Some(100) };
    let expected = json!({"name": "the \"proxy\"", "arguments": {"action": "list", "type": "resource"}});
    assert_eq!(value(&list(&tool(false), Type::Resource, paging)), expected);
    let arguments = json!({"action": "list", "type": "tool", "limit": 50, "offset": 100});
    assert_eq!(value(&list(&tool(true), Type::Tool, paging))["arguments"], arguments);
    let arguments = json!({"action": "info", "type": "prompt", "path": "a"});
    assert_eq!(value(&info(&tool(true), Type::Prompt, "a"))["arguments"], arguments);
}

#[track_caller]
fn wrapped(kind: Type, params: &str, expected: &str) {
    assert_eq!(call(&tool(true), kind, params.as_bytes()).unwrap(), expected, "{params}");
}

#[test]
fn native_requests_become_calls_of_the_tool() {
    wrapped(
        Type::Tool,
        r#"{"_meta":{"progressToken":1.0},"name":"add","arguments":{"a":5.0, "b":1e400},"task":{}}"#,
        r#"{"_meta":{"progressToken":1.0},"name":"the \"proxy\"","arguments":{"action":"call","type":"tool","path":"add","args":{"a":5.0, "b":1e400}},"task":{}}"#,
    );
    wrapped(
        Type::Resource,
        r#"{"uri":"n://a","requestState":"s"}"#,
        r#"{"name":"the \"proxy\"","requestState":"s","arguments":{"action":"call","type":"resource","path":"n://a","objectify":false}}"#,
    );
    wrapped(
        Type::Prompt,
        r#"{"name":"greet","arguments":null}"#,
        r#"{"name":"the \"proxy\"","arguments":{"action":"call","type":"prompt","path":"greet"}}"#,
    );
    let plain = call(&tool(false), Type::Resource, br#"{"uri":"n://a"}"#).unwrap();
    assert_eq!(value(&plain)["arguments"], json!({"action": "call", "type": "resource", "path": "n://a"}));
}

#[test]
fn what_names_nothing_is_not_wrapped() {
    for params in ["{}", "[]", "{", r#"{"name":7}"#, r#"{"uri":"a"}"#, r#"{"name":"a","arguments":[]}"#] {
        assert_eq!(call(&tool(true), Type::Tool, params.as_bytes()), None, "{params}");
    }
}

#[test]
fn a_call_of_the_tool_stands_for_each_use_in_it() {
    let native = |arguments: &str| {
        let params = format!(r#"{{"name":"proxy","arguments":{arguments},"_meta":{{"a":1.0}}}}"#);
        super::native(params.as_bytes())
    };
    assert_eq!(native(r#"{"action":"list","type":"tool"}"#), Ok(vec![]));
    assert_eq!(native(r#"{"action":"info","type":"tool","path":"a"}"#), Ok(vec![]));
    let read = Bytes::from(r#"{"uri":"n://x","_meta":{"a":1.0}}"#);
    let call = r#"{"action":"call","type":"resource","path":"n://{y}","args":{"y":"x"}}"#;
    assert_eq!(native(call), Ok(vec![(Type::Resource, read.clone())]));
    let get = Bytes::from(r#"{"name":"p","arguments":{"b":1.0},"_meta":{"a":1.0}}"#);
    let batch = format!(
        r#"{{"action":"batch","operations":[{call},{{"action":"list","type":"tool"}},{{"action":"call","type":"prompt","path":"p","args":{{"b":1.0}}}}]}}"#
    );
    assert_eq!(native(&batch), Ok(vec![(Type::Resource, read), (Type::Prompt, get)]));
}

#[test]
fn what_cannot_be_read_stands_for_nothing() {
    assert!(native(b"{}").is_err());
    assert!(native(b"[]").is_err());
    assert!(native(br#"{"name":"proxy","arguments":{"action":"call","type":"tool"}}"#).is_err());
    assert!(
        native(br#"{"arguments":{"action":"list","type":"tool"},"arguments":{"action":"list","type":"tool"}}"#)
            .is_err()
    );
    let half = br#"{"arguments":{"action":"batch","operations":[{"action":"list","type":"tool"},{}]}}"#;
    assert!(native(half).is_err());
}

proptest! {
    #[test]
    fn what_was_wrapped_is_native_again(
        kind in prop::sample::select(Type::ALL.to_vec()),
        // What has braces is a template to the tool.
        path in "[^{}]{1,20}",
        args in prop::option::of(prop::collection::btree_map("\\PC{0,4}", any::<i32>(), 0..4)),
        state in prop::option::of("\\PC{0,4}"),
        knows in any::<bool>(),
    ) {
        let mut params = json!({ name_of(kind): path });
        if let Some(args) = args.filter(|_| kind != Type::Resource) {
            params["arguments"] = json!(args);
        }
        if let Some(state) = state {
            params["requestState"] = state.into();
        }
        let wrapped = call(&tool(knows), kind, params.to_string().as_bytes()).unwrap();
        let natives = native(&wrapped).unwrap();
        prop_assert_eq!(natives.len(), 1);
        prop_assert_eq!(natives[0].0, kind);
        prop_assert_eq!(value(&natives[0].1), params);
    }
}
