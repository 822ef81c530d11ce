//! The shapes of requests and results, for those who check them with other means than ours.

/// JSON Schema (2020-12) with a definition for the arguments and for each kind of result.
pub const SCHEMA: &str = include_str!("../schema/proxy-tool.schema.json");

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Type;
    use crate::arguments::{self, Call, Mistake};
    use crate::select::Page;
    use crate::shape::{self, Came, Dialect, Outcome};

    fn value(json: &[u8]) -> Value {
        serde_json::from_slice(json).unwrap()
    }

    fn fits(definition: &str, document: &Value) -> bool {
        let mut schema = value(SCHEMA.as_bytes());
        assert!(schema["$defs"].get(definition).is_some(), "{definition}");
        schema["$ref"] = format!("#/$defs/{definition}").into();
        jsonschema::validator_for(&schema).unwrap().is_valid(document)
    }

    /// A result fits its own definition and no other.
    #[track_caller]
    fn check(definition: &str, document: &[u8]) {
        let results =
            ["listResult", "infoResult", "toolCallResult", "resourceCallResult", "promptCallResult", "batchResult"];
        let document = value(document);
        assert!(fits(definition, &document), "{definition}: {document}");
        for other in results.iter().filter(|other| **other != definition) {
            assert!(!fits(other, &document), "{other}: {document}");
        }
    }

    /// No result of this kind is without the member at `pointer`.
    #[track_caller]
    fn needs(definition: &str, document: &[u8], pointer: &str) {
        let mut document = value(document);
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = document.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
        assert!(parent.remove(name).is_some(), "{pointer}");
        assert!(!fits(definition, &document), "{definition} without {pointer}");
    }

    fn call(kind: Type, result: &str) -> Vec<u8> {
        shape::call(&Call { kind, path: "n://a b".into(), args: None, objectify: true }, result.as_bytes()).to_vec()
    }

    #[test]
    fn the_schema_is_one() {
        assert!(jsonschema::meta::is_valid(&value(SCHEMA.as_bytes())));
    }

    #[test]
    fn lists_and_infos_fit() {
        let page = Some(Page { total: 9, offset: 4, limit: Some(1) });
        let list = |kind, page| shape::list(kind, [&b"{}"[..]], page, Dialect::Extension);
        for kind in Type::ALL {
            for list in [list(kind, None), list(kind, page)] {
                check("listResult", &list);
                for name in ["proxyAction", "proxyType", "pythonType", "many", "dataType", "isArray"] {
                    needs("listResult", &list, &format!("/content/0/annotations/{name}"));
                }
            }
            let info = shape::info(kind, "n://{a}", br#"{"uriTemplate":"n://{a}"}"#, Dialect::Extension);
            check("infoResult", &info);
            for name in ["annotations/proxyPath", "annotations/proxyAction", "resource/uri", "resource/text"] {
                needs("infoResult", &info, &format!("/content/0/{name}"));
            }
        }
    }

    #[test]
    fn calls_fit() {
        let tool =
            call(Type::Tool, r#"{"content":[{"type":"text","text":"8"}],"structuredContent":{},"isError":true}"#);
        check("toolCallResult", &tool);
        for name in ["proxyType", "proxyAction", "proxyPath"] {
            needs("toolCallResult", &tool, &format!("/content/0/annotations/{name}"));
        }
        for contents in [
            r#"{"uri":"n://a","mimeType":"text/plain","text":"{ }"}"#,
            r#"{"uri":"n://a","text":"no json"}"#,
            r#"{"uri":"n://a","mimeType":"image/png","blob":"AA=="}"#,
        ] {
            let read = call(Type::Resource, &format!(r#"{{"contents":[{contents}]}}"#));
            check("resourceCallResult", &read);
            needs("resourceCallResult", &read, "/content/0/annotations/proxyPath");
            needs("resourceCallResult", &read, "/content/0/resource/uri");
        }
        let prompt = call(Type::Prompt, r#"{"messages":[]}"#);
        check("promptCallResult", &prompt);
        needs("promptCallResult", &prompt, "/content/0/annotations/pythonType");
        needs("promptCallResult", &prompt, "/content/0/annotations/proxyPath");
    }

    #[test]
    fn batches_and_mistakes_fit() {
        let outcome = |came| Outcome { action: Some("call"), kind: Some(Type::Tool), path: Some("a".into()), came };
        let mistake = shape::mistake(&Mistake("what?".into()));
        assert!(fits("mistake", &value(&mistake)));
        let done = outcome(Came::Result(call(Type::Tool, r#"{"content":[{"type":"text"}],"_meta":{}}"#).into()));
        let error = outcome(Came::Error(r#"{"code":-32602,"message":"no"}"#.into()));
        let task = outcome(Came::Result(r#"{"task":{}}"#.into()));
        let unread = Outcome { action: None, kind: None, path: None, came: Came::Result(mistake) };
        let failed = shape::batch(&[error.clone(), unread.clone()]);
        assert!(fits("batchResult", &value(&failed)));
        let batch = shape::batch(&[done, error, task, unread]);
        check("batchResult", &batch);
        for name in ["/content/0/annotations/proxyIndex", "/structuredContent/results/0/index"] {
            needs("batchResult", &batch, name);
        }
    }

    #[test]
    fn arguments_fit_where_the_parser_takes_them() {
        let check = |arguments: Value, right: bool| {
            assert_eq!(fits("arguments", &arguments), right, "{arguments}");
            assert_eq!(arguments::parse(Some(arguments.to_string().as_bytes())).is_ok(), right, "{arguments}");
        };
        let call = json!({"action": "call", "type": "tool", "path": "a", "args": {"b": 1}});
        check(call.clone(), true);
        check(json!({"action": "list", "type": "tool", "limit": 1, "offset": 0, "filter": {"tags": ["a"]}}), true);
        check(json!({"action": "info", "type": "prompt", "path": "a"}), true);
        check(json!({"action": "list", "type": "tool", "args": {}, "filter_server": "a"}), true);
        check(json!({"action": "info", "type": "tool", "path": "a", "args": {}}), true);
        check(json!({"action": "call", "type": "resource", "path": "a:b", "objectify": false}), true);
        check(json!({"action": "batch", "operations": [call]}), true);
        check(json!({}), false);
        check(json!({"action": "list"}), false);
        check(json!({"action": "list", "type": "thing"}), false);
        check(json!({"action": "list", "type": "tool", "path": "a"}), false);
        check(json!({"action": "list", "type": "tool", "args": {"a": 1}}), false);
        check(json!({"action": "info", "type": "tool", "path": "a", "args": {"a": 1}}), false);
        check(json!({"action": "info", "type": "tool", "path": "a", "filter_server": "a"}), false);
        check(json!({"action": "info", "type": "tool"}), false);
        check(json!({"action": "call", "type": "tool"}), false);
        check(json!({"action": "call", "type": "tool", "path": "a", "args": []}), false);
        check(json!({"action": "call", "type": "tool", "path": "a", "objectify": true}), false);
        check(json!({"action": "batch", "operations": []}), false);
        check(json!({"action": "batch"}), false);
    }
}
