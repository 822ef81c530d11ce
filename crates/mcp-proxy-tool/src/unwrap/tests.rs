use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::arguments::Call;
use crate::shape::{self, Dialect};

const OURS: fn(bool) -> ProxyTool =
    |knows_objectify| ProxyTool { name: "proxy".into(), knows_paging: true, knows_objectify };

fn list(result: &[u8]) -> Result<Listed, NotNative> {
    super::list(&OURS(true), Type::Tool, result)
}

fn info(result: &[u8]) -> Result<Bytes, NotNative> {
    super::info(&OURS(true), Type::Tool, result)
}

fn call(kind: Type, result: &[u8]) -> Result<Bytes, NotNative> {
    super::call(kind, result, Era::Legacy)
}

fn shaped_list<'a>(items: impl IntoIterator<Item = &'a [u8]>, page: Option<Page>) -> Bytes {
    shape::list(Type::Tool, items, page, Dialect::Extension)
}

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}

/// A result as the specification shows one.
fn result(text: &str, annotations: Value) -> String {
    let resource = json!({"uri": "proxy:list/tool", "mimeType": "application/json", "text": text});
    json!({"content": [{"type": "resource", "resource": resource, "annotations": annotations}]}).to_string()
}

fn unexpected<T: std::fmt::Debug>(unwrapped: Result<T, NotNative>) -> &'static str {
    match unwrapped {
        Err(Unexpected(what)) => what,
        other => panic!("{other:?}"),
    }
}

fn failed<T: std::fmt::Debug>(unwrapped: Result<T, NotNative>) -> String {
    match unwrapped {
        Err(NotNative::Failed(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_are_items_again() {
    let many = json!({"proxyAction": "list", "proxyType": "tool", "pythonType": "Tool", "many": true});
    let listed = list(result("[{\"name\": \"a\",\n\"n\":1.50}, {}]", many).as_bytes()).unwrap();
    assert_eq!(listed.items, [r#"{"name":"a","n":1.50}"#, "{}"]);
    assert_eq!(listed.page, None);
    assert!(list(result("[]", json!({})).as_bytes()).unwrap().items.is_empty());
}

#[test]
fn lists_tell_which_part_they_are() {
    for page in [Page { total: 9, offset: 4, limit: Some(2) }, Page { total: 9, offset: 0, limit: None }] {
        let shaped = shaped_list([&b"{}"[..]], Some(page));
        assert_eq!(list(&shaped).unwrap().page, Some(page));
    }
}

#[test]
fn info_is_one_item_again() {
    let shaped = shape::info(Type::Tool, "a", br#"{"name":"a","n":1.50}"#, Dialect::Extension);
    assert_eq!(info(&shaped).unwrap(), r#"{"name":"a","n":1.50}"#);
    assert_eq!(info(result(r#"[{"name":"a"}]"#, json!({"many": true})).as_bytes()).unwrap(), r#"{"name":"a"}"#);
    assert_eq!(unexpected(info(result("[{},{}]", json!({})).as_bytes())), "not one item");
}

#[test]
fn what_is_not_as_it_should_be_is_named() {
    assert_eq!(unexpected(list(b"[]")), "no object");
    assert_eq!(unexpected(list(b"{")), "no object");
    assert_eq!(unexpected(list(br#"{"content":[{"type":"text","text":"[]"}]}"#)), "no embedded resource");
    assert_eq!(unexpected(list(result("[", json!({})).as_bytes())), "the resource's text is not JSON");
    assert_eq!(unexpected(list(result("[7]", json!({})).as_bytes())), "an item of the list is no object");
    assert_eq!(unexpected(list(result("{}", json!({"many": true})).as_bytes())), "many items that are no list");
    let text = br#"{"content":[{"type":"text","text":"x"}]}"#;
    assert_eq!(unexpected(call(Type::Resource, text)), "content that is no resource");
    assert_eq!(unexpected(call(Type::Resource, b"{}")), "no content");
    assert_eq!(unexpected(call(Type::Prompt, result("[]", json!({})).as_bytes())), "the prompt is no object");
}

#[test]
fn failures_are_told() {
    let two = br#"{"isError":true,"content":[{"type":"text","text":"no"},{"type":"text","text":"way"}]}"#;
    assert_eq!(failed(list(two)), "no\nway");
    assert_eq!(failed(info(two)), "no\nway");
    assert_eq!(failed(call(Type::Resource, two)), "no\nway");
    assert_eq!(failed(call(Type::Prompt, br#"{"isError":true}"#)), "the proxy tool failed and does not say why");
    assert_eq!(call(Type::Tool, two).unwrap(), &two[..]);
}

#[test]
fn results_of_tools_lose_only_what_the_tool_added() {
    let check = |result: &str, expected: &str| assert_eq!(call(Type::Tool, result.as_bytes()).unwrap(), expected);
    check(
        r#"{"content":[{"type":"text","annotations":{"proxyType":"tool","proxyAction":"call","proxyPath":"a"},"text":"8"}],"n":1.50}"#,
        r#"{"content":[{"type":"text","text":"8"}],"n":1.50}"#,
    );
    check(
        r#"{"content":[{"type":"x","annotations":{"priority":0.50,"proxyType":"tool"}},{"type":"x","annotations": {}}]}"#,
        r#"{"content":[{"type":"x","annotations":{"priority":0.50}},{"type":"x","annotations": {}}]}"#,
    );
}

#[test]
fn what_is_not_complete_stays_as_it_is() {
    for result in [r#"{"task":{"taskId":"1"} }"#, r#"{"resultType":"input_required", "requestState":"s"}"#] {
        for kind in Type::ALL {
            assert_eq!(call(kind, result.as_bytes()).unwrap(), result);
        }
    }
}

#[test]
fn resources_get_their_own_type_back() {
    let result = r#"{"content":[{"type":"resource","resource":{"uri":"n://a","mimeType":"application/json","text":"{}","contentType":"text/plain"}},{"type":"resource","resource":{"uri":"n://b","blob":"AA=="}}],"isError":false,"_meta":{"a":1.0}}"#;
    let expected = r#"{"contents":[{"uri":"n://a","mimeType":"text/plain","text":"{}"},{"uri":"n://b","blob":"AA=="}],"_meta":{"a":1.0}}"#;
    assert_eq!(call(Type::Resource, result.as_bytes()).unwrap(), expected);
}

#[test]
fn prompts_are_taken_out_of_the_text() {
    let wrapped = result("{ \"messages\":[],\"n\":1.50}", json!({"pythonType": "GetPromptResult"}));
    assert_eq!(call(Type::Prompt, wrapped.as_bytes()).unwrap(), r#"{"messages":[],"n":1.50}"#);
    let modern = wrapped.replacen('{', r#"{"resultType":"complete","#, 1);
    let expected = r#"{"messages":[],"n":1.50,"resultType":"complete"}"#;
    assert_eq!(call(Type::Prompt, modern.as_bytes()).unwrap(), expected);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        prop_oneof!["[\\[\\]{},:\" 0-9]{0,8}", Just("{ \"a\" : 1.50 }".to_owned())].prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

/// Objects with some of these members and one of another name.
fn any_object(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    (prop::collection::vec((prop::sample::select(names), any_value()), 0..5), "[A-Z]{1,4}", any_value()).prop_map(
        |(members, other, value)| {
            let mut object = json!({ other: value });
            for (name, value) in members {
                object[name] = value;
            }
            object
        },
    )
}

/// An object with these members, one of another name, and perhaps `_meta`.
fn any_valid(members: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let meta = prop::option::of(prop::collection::btree_map("[a-z]{1,4}", any_value(), 0..3));
    (members, "[A-Z]{1,4}", any_value(), meta).prop_map(|(mut object, other, value, meta)| {
        object[other] = value;
        if let Some(meta) = meta {
            object["_meta"] = json!(meta);
        }
        object
    })
}

fn any_item() -> impl Strategy<Value = Value> {
    let annotations = prop::collection::btree_map("[a-z]{1,4}", any_value(), 1..3);
    let item = ("\\PC{0,6}", prop::option::of(annotations)).prop_map(|(text, annotations)| {
        let mut item = json!({ "type": "text", "text": text });
        if let Some(annotations) = annotations {
            item["annotations"] = json!(annotations);
        }
        item
    });
    any_valid(item)
}

fn any_resource() -> impl Strategy<Value = Value> {
    let resource = ("\\PC{0,6}", "\\PC{0,6}", any::<bool>()).prop_map(|(uri, held, is_text)| {
        let held = if is_text { ("text", held) } else { ("blob", held) };
        json!({ "uri": uri, held.0: held.1 })
    });
    any_valid(resource)
}

fn using(kind: Type) -> Call {
    Call { kind, path: "n://a b".into(), args: None, objectify: false }
}

fn there_and_back(kind: Type, native: &Value) -> Value {
    let shaped = shape::call(&using(kind), native.to_string().as_bytes());
    value(&call(kind, &shaped).unwrap())
}

proptest! {
    #[test]
    fn tool_results_come_back(
        mut native in any_valid(any::<bool>().prop_map(|failed| json!({ "isError": failed, "structuredContent": {} }))),
        content in prop::collection::vec(any_item(), 0..4),
    ) {
        native["content"] = content.into();
        prop_assert_eq!(there_and_back(Type::Tool, &native), native);
    }

    #[test]
    fn resources_come_back(
        mut native in any_valid(any_object(&["ttlMs"])),
        contents in prop::collection::vec(any_resource(), 0..4),
    ) {
        native["contents"] = contents.into();
        prop_assert_eq!(there_and_back(Type::Resource, &native), native);
    }

    #[test]
    fn prompts_come_back(
        mut native in any_valid(any_object(&["ttlMs"])),
        content in prop::collection::vec(any_item(), 0..4),
    ) {
        native["messages"] = content.into_iter().map(|item| json!({ "role": "user", "content": item })).collect();
        prop_assert_eq!(there_and_back(Type::Prompt, &native), native);
    }

    #[test]
    fn lists_come_back(items in prop::collection::vec(any_valid(Just(json!({ "name": "a", "inputSchema": { "type": "object" } }))), 0..4)) {
        let texts: Vec<_> = items.iter().map(Value::to_string).collect();
        let shaped = shaped_list(texts.iter().map(String::as_bytes), None);
        prop_assert_eq!(list(&shaped).unwrap().items, texts);
    }

    #[test]
    fn anything_is_unwrapped_or_refused(result in any_object(&["content", "contents", "isError", "resultType"])) {
        let json = result.to_string();
        let _ = (list(json.as_bytes()).is_ok(), info(json.as_bytes()).is_ok());
        for kind in Type::ALL {
            let _ = call(kind, json.as_bytes()).is_ok();
        }
    }
}

#[test]
fn a_page_is_found_where_unknown_annotations_are_dropped() {
    let page = Page { total: 9, offset: 2, limit: Some(1) };
    let shaped = shaped_list([&b"{}"[..]], Some(page));
    let mut stripped: serde_json::Value = serde_json::from_slice(&shaped).unwrap();
    assert_eq!(stripped["_meta"][PAGE], serde_json::json!({ "total": 9, "offset": 2, "limit": 1, "nextOffset": 3 }));
    stripped["content"][0].as_object_mut().unwrap().remove("annotations");
    assert_eq!(list(stripped.to_string().as_bytes()).unwrap().page, Some(page));
}

#[test]
fn what_magg_writes_is_made_native() {
    let text = r#"[{"name":"a","title":null,"inputSchema":{"type":"object","properties":{"x":{"default":null}}},"outputSchema":{"type":"object"},"meta":{"fastmcp":{"tags":[]}}}]"#;
    let annotations = json!({"pythonType": "Tool", "many": true, "totalCount": 3, "offset": 1, "limit": 1});
    let listed = super::list(&OURS(false), Type::Tool, result(text, annotations).as_bytes()).unwrap();
    let expected = r#"{"name":"a","inputSchema":{"type":"object","properties":{"x":{"default":null}}},"_meta":{"fastmcp":{"tags":[]}}}"#;
    assert_eq!(listed.items, [expected]);
    assert_eq!(listed.page, Some(Page { total: 3, offset: 1, limit: Some(1) }));
    assert!(list(br#"{"content":[],"isError":false}"#).unwrap().items.is_empty());
    let template = r#"[{"name":"a","uriTemplate":"a:{b}","uri":null,"size":null,"annotations":null,"meta":null}]"#;
    let listed = super::list(&OURS(false), Type::Resource, result(template, json!({"many": true})).as_bytes()).unwrap();
    assert_eq!(listed.items, [r#"{"name":"a","uriTemplate":"a:{b}","uri":null,"size":null}"#]);
    let prompt = r#"{"meta":null,"description":null,"messages":[{"role":"user","content":{"type":"text","text":"x","annotations":null,"meta":null}}]}"#;
    let native = call(Type::Prompt, result(prompt, json!({"pythonType": "GetPromptResult"})).as_bytes()).unwrap();
    assert_eq!(native, r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}"#);
}

#[test]
fn promised_output_is_kept_where_it_comes() {
    let text = r#"[{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]"#;
    let listed = list(result(text, json!({"many": true})).as_bytes()).unwrap();
    assert_eq!(listed.items, [&text[1..text.len() - 1]]);
}

#[test]
fn what_cannot_be_made_valid_is_named() {
    let wrong = call(Type::Tool, br#"{"content":[{"type":"text","text":null}]}"#).unwrap_err();
    assert_eq!(wrong.to_string(), "the proxy tool's answer is no valid result: `content`: `text`: it is no text");
}
