use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What comes of an object: its text, and what was dropped.
#[track_caller]
fn mended(what: What, json: &str) -> (String, Vec<String>) {
    match fit(what, json.as_bytes(), Era::Legacy, Writer::ProxyTool) {
        Fit::AsItIs => (json.to_owned(), Vec::new()),
        Fit::Mended { json, dropped } => (String::from_utf8(json.to_vec()).unwrap(), dropped),
        Fit::Bad(wrong) => panic!("{json}: {wrong}"),
    }
}

#[track_caller]
fn check(what: What, json: &str, expected: &str, expected_dropped: &[&str]) {
    let (mended, dropped) = mended(what, json);
    assert_eq!((mended.as_str(), dropped), (expected, expected_dropped.iter().map(|&it| it.to_owned()).collect()));
    assert_eq!(fit(what, expected.as_bytes(), Era::Legacy, Writer::ProxyTool), Fit::AsItIs);
}

#[track_caller]
fn bad(what: What, json: &str, expected: &str) {
    assert_eq!(fit(what, json.as_bytes(), Era::Modern, Writer::Server), Fit::Bad(expected.into()), "{json}");
}

const SCHEMA: &str = r#""inputSchema": {"type" :"object","properties":{"a":{"default":null}}}"#;

#[test]
fn what_is_as_it_should_be_is_left_alone() {
    for (what, json) in [
        (What::Tool, format!(r#" {{ "name":"a" , {SCHEMA},"x":null,"_meta":{{"k":null}}}} "#)),
        (
            What::Tool,
            format!(
                r#"{{"name":"a",{SCHEMA},"annotations":{{"readOnlyHint":true,"x":1}},"outputSchema":{{"type":"object"}}}}"#
            ),
        ),
        (What::Prompt, r#"{"name":"a","arguments":[{"name":"b","required":true}]}"#.into()),
        (
            What::Resource,
            r#"{"name":"a","uri":"memo:x","size":3.0,"annotations":{"priority":0.5,"audience":["user"]}}"#.into(),
        ),
        (What::Template, r#"{"name":"a","uriTemplate":"{+uri}"}"#.into()),
    ] {
        assert_eq!(fit(what, json.as_bytes(), Era::Legacy, Writer::Server), Fit::AsItIs, "{json}");
    }
}

#[test]
fn nulls_for_what_may_be_missing_are_dropped() {
    check(
        What::Tool,
        &format!(
            r#"{{"title":null,"name":"a","icons":null, {SCHEMA},"outputSchema":null,"annotations":{{"title":null}},"_meta":null}}"#
        ),
        &format!(r#"{{"name":"a",{SCHEMA},"annotations":{{}}}}"#),
        &[],
    );
    check(
        What::Prompt,
        r#"{"name":"a","arguments":[{"description":null,"name":"b"},{"name":"c","required":null}],"icons":null}"#,
        r#"{"name":"a","arguments":[{"name":"b"},{"name":"c"}]}"#,
        &[],
    );
    check(What::Prompt, r#"{"arguments":null,"name":"a"}"#, r#"{"name":"a"}"#, &[]);
    check(What::Resource, r#"{"size":null,"uri":"a:b","title":null,"name":"c"}"#, r#"{"uri":"a:b","name":"c"}"#, &[]);
}

/// A server may repeat a member as often as a message has room.
#[test]
fn many_members_that_are_dropped_take_no_more_time_each() {
    let many = r#","title":null,"annotations":7,"meta":{}"#.repeat(50_000);
    let (json, dropped) = mended(What::Tool, &format!(r#"{{"name":"a",{SCHEMA}{many}}}"#));
    assert_eq!(dropped, ["annotations"]);
    assert!(!json.contains("title"));
    let tool = format!(r#"{{"name":"a",{SCHEMA}{}}}"#, r#","meta":{}"#.repeat(50_000));
    assert!(matches!(fit(What::Tool, tool.as_bytes(), Era::Legacy, Writer::ProxyTool), Fit::Mended { .. }));
}

#[test]
fn a_proxy_tools_meta_is_renamed() {
    check(What::Prompt, r#"{"name":"a", "meta" :{"k":null}}"#, r#"{"name":"a", "_meta" :{"k":null}}"#, &[]);
    check(What::Prompt, r#"{"name":"a","meta":null}"#, r#"{"name":"a"}"#, &[]);
    check(What::Prompt, r#"{"name":"a","_meta":{},"meta":7}"#, r#"{"name":"a","_meta":{},"meta":7}"#, &[]);
    check(What::Prompt, r#"{"_meta":null,"meta":{"k":1},"name":"a"}"#, r#"{"_meta":{"k":1},"name":"a"}"#, &[]);
    check(What::Prompt, r#"{"_meta":null,"meta":null,"name":"a"}"#, r#"{"name":"a"}"#, &[]);
    let own = br#"{"name":"a","meta":{"k":1}}"#;
    assert_eq!(fit(What::Prompt, own, Era::Legacy, Writer::Server), Fit::AsItIs, "a server may call anything so");
}

#[test]
fn what_cannot_be_kept_is_dropped_and_named() {
    check(
        What::Tool,
        &format!(
            r#"{{"name":"a",{SCHEMA},"description":7,"annotations":{{"title":"t","readOnlyHint":"no"}},"icons":[{{}}]}}"#
        ),
        &format!(r#"{{"name":"a",{SCHEMA},"annotations":{{"title":"t"}}}}"#),
        &["description", "readOnlyHint", "icons"],
    );
    check(
        What::Resource,
        r#"{"name":"a","uri":"a:b","size":1.5,"annotations":{"priority":2,"audience":["all"]}}"#,
        r#"{"name":"a","uri":"a:b","annotations":{}}"#,
        &["size", "priority", "audience"],
    );
}

#[test]
fn what_no_reader_could_take_is_bad() {
    bad(What::Tool, r#"{"name":"a"}"#, "`inputSchema` is missing");
    bad(What::Tool, r#"{"name":7}"#, "`name`: it is no text");
    bad(What::Tool, r#"{"name":"a","inputSchema":null}"#, "`inputSchema`: it is no object");
    bad(
        What::Tool,
        r#"{"name":"a","inputSchema":{"type":"string"}}"#,
        "`inputSchema`: `type`: it is no word that is known",
    );
    bad(
        What::Tool,
        r#"{"name":"a","inputSchema":{"properties":{"a":7}}}"#,
        "`inputSchema`: `properties`: it is no object of schemas",
    );
    bad(What::Resource, r#"{"name":"a","uri":"b"}"#, "`uri`: it is no address");
    bad(What::Prompt, r#"{"name":"a","arguments":[{}]}"#, "`arguments`: `name` is missing");
    bad(What::Template, "[]", "it is no object");
}

#[test]
fn a_schema_of_arguments_is_one_of_an_object() {
    check(What::Tool, r#"{"name":"a","inputSchema":{}}"#, r#"{"name":"a","inputSchema":{"type":"object"}}"#, &[]);
    check(
        What::Tool,
        r#"{"name":"a","inputSchema":{"properties":{"a":true,"b":false},"required":null}}"#,
        r#"{"name":"a","inputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}}}}}"#,
        &[],
    );
}

#[test]
fn an_output_that_is_no_object_is_for_newer_clients() {
    let json = format!(r#"{{"name":"a","outputSchema":{{"type":"array"}},{SCHEMA}}}"#);
    assert_eq!(fit(What::Tool, json.as_bytes(), Era::Modern, Writer::Server), Fit::AsItIs);
    check(What::Tool, &json, &format!(r#"{{"name":"a",{SCHEMA}}}"#), &["outputSchema"]);
    let result = r#"{"content":[],"structuredContent":[1]}"#;
    assert_eq!(fit(What::CallResult, result.as_bytes(), Era::Modern, Writer::Server), Fit::AsItIs);
    check(What::CallResult, result, r#"{"content":[]}"#, &["structuredContent"]);
}

#[test]
fn results_are_mended_within_their_content() {
    check(
        What::PromptResult,
        r#"{"meta":null,"description":null,"messages":[{"role":"user","content":{"type":"text","text":"a","annotations":null,"meta":null}}]}"#,
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}"#,
        &[],
    );
    check(
        What::CallResult,
        r#"{"content":[{"type":"resource","resource":{"uri":"a","text":"b","mimeType":null,"meta":{}}},{"type":"new","x":null}],"isError":null}"#,
        r#"{"content":[{"type":"resource","resource":{"uri":"a","text":"b","_meta":{}}},{"type":"new","x":null}]}"#,
        &[],
    );
    check(
        What::ReadResult,
        r#"{"contents":[{"uri":"a","blob":"","text":null}]}"#,
        r#"{"contents":[{"uri":"a","blob":""}]}"#,
        &[],
    );
    bad(
        What::PromptResult,
        r#"{"messages":[{"role":"me","content":{}}]}"#,
        "`messages`: `role`: it is no word that is known",
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        "[a-z:\"]{0,5}".prop_map(Value::from),
        Just(json!("object")),
    ];
    let names = prop::sample::select(vec![
        "name",
        "uri",
        "title",
        "meta",
        "_meta",
        "type",
        "text",
        "inputSchema",
        "properties",
        "annotations",
        "arguments",
        "icons",
    ]);
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..6).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_mended_needs_no_more(value in any_value(), modern in any::<bool>()) {
        let era = if modern { Era::Modern } else { Era::Legacy };
        let json = value.to_string();
        for what in [What::Tool, What::Prompt, What::Resource, What::Template, What::CallResult, What::ReadResult, What::PromptResult] {
            for writer in [Writer::Server, Writer::ProxyTool] {
                if let Fit::Mended { json, .. } = fit(what, json.as_bytes(), era, writer) {
                    prop_assert!(serde_json::from_slice::<Value>(&json).is_ok());
                    prop_assert_eq!(fit(what, &json, era, writer), Fit::AsItIs);
                }
            }
        }
    }
}
