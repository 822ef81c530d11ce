use proptest::prelude::*;

use super::*;

#[track_caller]
fn parsed(json: &str) -> Operation {
    match parse(Some(json.as_bytes())) {
        Ok(Request::One(operation)) => operation,
        other => panic!("{json} gave {other:?}"),
    }
}

#[track_caller]
fn called(json: &str) -> Call {
    match parsed(json) {
        Operation::Call(call) => call,
        other => panic!("{json} gave {other:?}"),
    }
}

#[track_caller]
fn refused(json: &str, expected: &str) {
    match parse(Some(json.as_bytes())) {
        Err(Mistake(text)) => assert_eq!(text, expected, "{json}"),
        Ok(request) => panic!("{json} gave {request:?}"),
    }
}

fn list(kind: Type, paging: Paging, filter: Filter) -> Operation {
    Operation::List { kind, paging, filter }
}

#[test]
fn each_action_is_read() {
    let (paging, filter) = (Paging::default(), Filter::default());
    assert_eq!(parsed(r#"{"action":"list","type":"tool"}"#), list(Type::Tool, paging, filter));
    let info = Operation::Info { kind: Type::Prompt, path: "greet".into() };
    assert_eq!(parsed(r#"{"type":"prompt","path":"greet","action":"info"}"#), info);
    let call = Call { kind: Type::Tool, path: "add".into(), args: Some(r#"{"a": 5.0}"#.into()), objectify: true };
    assert_eq!(called(r#"{"action":"call","type":"tool","path":"add","args":{"a": 5.0}}"#), call);
}

#[test]
fn a_list_can_be_narrowed() {
    let json = r#"{"action":"list","type":"resource","limit":50,"offset":0,
        "filter_server":"g","filter":{"prefix":"a_","tags":["x","y"],"server":"git","query":"read file"}}"#;
    let filter = Filter {
        prefix: Some("a_".into()),
        tags: vec!["x".into(), "y".into()],
        server: Some("git".into()),
        server_prefix: Some("g".into()),
        query: Some("read file".into()),
    };
    assert_eq!(parsed(json), list(Type::Resource, Paging { limit: Some(50), offset: Some(0) }, filter));
    let nothing = r#"{"action":"list","type":"tool","limit":null,"filter_server":"","filter":{"prefix":null,"query":" ","tags":[]}}"#;
    assert_eq!(parsed(nothing), list(Type::Tool, Paging::default(), Filter::default()));
}

#[test]
fn args_may_be_text() {
    let args = |json: &str| called(&format!(r#"{{"action":"call","type":"tool","path":"t","args":{json}}}"#)).args;
    assert_eq!(args(r#""{\"a\": 1e2,\n\"b\":\"x y\"}""#).unwrap(), r#"{"a":1e2,"b":"x y"}"#);
    assert_eq!(args(r#""{}""#).unwrap(), "{}");
    assert_eq!(args(r#""""#), None);
    assert_eq!(args("null"), None);
    assert_eq!(args("{}").unwrap(), "{}");
    let other = |given: &str, shown: &str| {
        let json = format!(r#"{{"action":"call","type":"tool","path":"t","args":{given}}}"#);
        refused(&json, &format!("`args` must be an object, or text that holds one as JSON; given: {shown}"));
    };
    other("[1]", "a list");
    other("7.50", "7.50");
    other(r#""hello""#, "\"hello\"");
    other(r#""{\"a\":1""#, "\"{\"a\":1\"");
    other(r#""[1]""#, "\"[1]\"");
}

#[test]
fn args_of_a_resource_fill_its_template() {
    let call = called(r#"{"action":"call","type":"resource","path":"n://{a}/x{?b}","args":{"a":"é/","b":1.0}}"#);
    assert_eq!((call.path.as_str(), call.args), ("n://%C3%A9%2F/x?b=1.0", None));
    let call = called(r#"{"action":"call","type":"resource","path":"n://plain","args":{},"objectify":false}"#);
    assert_eq!((call.path.as_str(), call.objectify), ("n://plain", false));
    assert_eq!(called(r#"{"action":"call","type":"resource","path":"n://odd{"}"#).path, "n://odd{");
    // With nothing to fill in, nobody can tell it from an address.
    assert_eq!(called(r#"{"action":"call","type":"resource","path":"n://{a}"}"#).path, "n://{a}");
    refused(
        r#"{"action":"call","type":"resource","path":"n://{a}/{b}","args":{"b":1}}"#,
        "`args` must have `a`, which the template `path` needs",
    );
    refused(
        r#"{"action":"call","type":"resource","path":"n://plain","args":{"a":1}}"#,
        "`args` of a resource fill in a template such as notes://{name}, and `path` is none",
    );
    assert_eq!(called(r#"{"action":"call","type":"tool","path":"{odd}"}"#).path, "{odd}");
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(parse(None).unwrap_err().0, "`action` is required: list, info, call or batch");
    refused("{}", "`action` is required: list, info, call or batch");
    refused(r#"{"action":null}"#, "`action` is required: list, info, call or batch");
    refused(r#"{"action":"list"}"#, "`type` is required for action \"list\": tool, resource or prompt");
    refused(r#"{"action":"info","type":"prompt"}"#, "`path` is required for action \"info\": the name of the prompt");
    refused(r#"{"action":"call","type":"tool"}"#, "`path` is required for action \"call\": the name of the tool");
    refused(
        r#"{"action":"call","type":"resource","path":null}"#,
        "`path` is required for action \"call\": the URI of the resource",
    );
    refused(r#"{"action":"info","type":"tool","path":""}"#, "`path` is empty; give the name of the tool");
}

#[test]
fn what_does_not_go_together_is_named() {
    refused(r#"{"action":"list","type":"tool","path":"a"}"#, "`path` is only for actions \"info\" and \"call\"");
    refused(r#"{"action":"list","type":"tool","path":""}"#, "`path` is only for actions \"info\" and \"call\"");
    for nothing in ["{}", r#""""#, r#""{}""#, "null"] {
        parsed(&format!(r#"{{"action":"list","type":"tool","args":{nothing}}}"#));
        parsed(&format!(r#"{{"action":"info","type":"tool","path":"a","args":{nothing}}}"#));
    }
    refused(r#"{"action":"list","type":"tool","args":{"b":1}}"#, "`args` is only for action \"call\"");
    refused(r#"{"action":"list","type":"tool","args":7}"#, "`args` is only for action \"call\"");
    refused(r#"{"action":"info","type":"tool","path":"a","args":{"b":1}}"#, "`args` is only for action \"call\"");
    refused(r#"{"action":"call","type":"tool","path":"a","limit":1}"#, "`limit` is only for action \"list\"");
    refused(r#"{"action":"info","type":"tool","path":"a","offset":1}"#, "`offset` is only for action \"list\"");
    refused(r#"{"action":"info","type":"tool","path":"a","filter":{}}"#, "`filter` is only for action \"list\"");
    refused(r#"{"action":"list","type":"tool","operations":[]}"#, "`operations` is only for action \"batch\"");
    refused(r#"{"action":"list","type":"tool","objectify":true}"#, "`objectify` is only for action \"call\"");
    refused(
        r#"{"action":"call","type":"tool","path":"a","objectify":true}"#,
        "`objectify` is only for type \"resource\"",
    );
}

#[test]
fn what_is_unknown_is_named() {
    refused(r#"{"action":"lst","type":"tool"}"#, "unknown action \"lst\"; use list, info, call or batch");
    refused(r#"{"action":"list","type":"tools"}"#, "unknown type \"tools\"; use tool, resource or prompt");
    refused(
        r#"{"action":"call","type":"tool","path":"a","arguments":{}}"#,
        "unknown parameter `arguments`; did you mean `args`?",
    );
    refused(r#"{"action":"list","typ":"tool"}"#, "unknown parameter `typ`; did you mean `type`?");
    refused(
        r#"{"action":"list","type":"tool","filter":{"name":"x"}}"#,
        "unknown parameter `name`; `filter` can have `prefix`, `tags`, `server` and `query`",
    );
    refused(r#"{"action":"list","type":"tool","filter":{"tag":[]}}"#, "unknown parameter `tag`; did you mean `tags`?");
    refused(r#"{"action":"list","type":"tool","action":"call"}"#, "`action` stands twice; give each parameter once");
}

#[test]
fn what_is_of_another_kind_is_named() {
    refused("[1]", "the arguments must be an object; given: a list");
    refused("{", "the arguments are not JSON");
    refused(r#"{"action":1}"#, "`action` must be text; given: 1");
    refused(r#"{"action":"list","type":["tool"]}"#, "`type` must be text; given: a list");
    refused(r#"{"action":"info","type":"tool","path":{}}"#, "`path` must be text; given: an object");
    for limit in ["0", "1001", "1.5", "-1", "1e1", "99999999999999999999"] {
        let expected = format!("`limit` must be a whole number from 1 to 1000; given: {limit}");
        refused(&format!(r#"{{"action":"list","type":"tool","limit":{limit}}}"#), &expected);
    }
    refused(
        r#"{"action":"list","type":"tool","offset":"x"}"#,
        "`offset` must be a whole number, 0 or more; given: \"x\"",
    );
    refused(
        r#"{"action":"list","type":"tool","filter":"x"}"#,
        "`filter` must be an object with `prefix`, `tags`, `server` and `query`; given: \"x\"",
    );
    refused(r#"{"action":"list","type":"tool","filter":{"tags":"x"}}"#, "`tags` must be a list of texts; given: \"x\"");
    refused(
        r#"{"action":"list","type":"tool","filter":{"tags":[1]}}"#,
        "`tags` must be a list of texts; given: a list",
    );
    refused(
        r#"{"action":"call","type":"resource","path":"a","objectify":1}"#,
        "`objectify` must be true or false; given: 1",
    );
}

#[test]
fn text_in_messages_is_short_and_harmless() {
    let long = "x".repeat(500);
    let Err(Mistake(text)) = parse(Some(format!(r#"{{"action":"{long}"}}"#).as_bytes())) else { panic!("{long}") };
    assert!(text.chars().count() < 160 && text.contains('…'), "{text}");
    refused("{\"action\":\"a\\u001b[2J\"}", "unknown action \"a\u{241b}[2J\"; use list, info, call or batch");
    let deep =
        format!(r#"{{"action":"call","type":"tool","path":"a","args":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
    refused(&deep, "the arguments are nested too deep");
    let deep = format!("{}1{}", r#"{\"a\":"#.repeat(500), "}".repeat(500));
    refused(&format!(r#"{{"action":"call","type":"tool","path":"a","args":"{deep}"}}"#), "`args` is nested too deep");
}

#[test]
fn operations_of_a_batch_are_read_one_by_one() {
    let json = r#"{"action":"batch","type":"tool","operations":[
        {"action":"info","type":"tool","path":"a"}, {"action":"batch","operations":[]}, 7, {"type":"tool"}]}"#;
    let Ok(Request::Batch(operations)) = parse(Some(json.as_bytes())) else { panic!("{json}") };
    assert_eq!(operations[0], Ok(Operation::Info { kind: Type::Tool, path: "a".into() }));
    let mistakes: Vec<_> = operations[1..].iter().map(|read| read.as_ref().unwrap_err().0.as_str()).collect();
    let expected = [
        "a batch cannot stand in a batch; use list, info or call",
        "an operation must be an object; given: 7",
        "`action` is required: list, info, call or batch",
    ];
    assert_eq!(mistakes, expected);
}

#[test]
fn a_batch_has_some_operations_but_not_too_many() {
    refused(
        r#"{"action":"batch"}"#,
        "`operations` is required for action \"batch\": a list of objects with action, type, path, args",
    );
    refused(r#"{"action":"batch","operations":[]}"#, "`operations` is empty; give at least one");
    refused(r#"{"action":"batch","operations":{}}"#, "`operations` must be a list of objects; given: an object");
    let many = vec!["{}"; OPERATIONS_MAX + 1].join(",");
    refused(&format!(r#"{{"action":"batch","operations":[{many}]}}"#), "`operations` has 101 items; give at most 100");
}

#[test]
fn a_filter_has_not_too_many_tags() {
    let many = vec!["\"a\""; TAGS_MAX + 1].join(",");
    let json = format!(r#"{{"action":"list","type":"tool","filter":{{"tags":[{many}]}}}}"#);
    refused(&json, "`tags` has 101 items; give at most 100");
}

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        prop_oneof!["[a-z{}?/+]{0,8}", "\\PC{0,6}", Just("call".into()), Just("list".into()), Just("resource".into())]
            .prop_map(|text: String| serde_json::Value::from(text).to_string()),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let keys = prop::sample::select([&PARAMETERS[..], &OF_FILTER[..], &["x"][..]].concat());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((keys, inner), 0..5).prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(key, value)| format!(r#""{key}":{value}"#)).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn anything_is_read_or_refused(json in any_json()) {
        let _ = parse(Some(json.as_bytes()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse(Some(&bytes));
    }

    #[test]
    fn any_call_is_read_or_refused(kind in "tool|resource|prompt", path in "\\PC{0,12}", args in any_json()) {
        let path = serde_json::Value::from(path).to_string();
        let json = format!(r#"{{"action":"call","type":"{kind}","path":{path},"args":{args}}}"#);
        if let Ok(Request::One(Operation::Call(call))) = parse(Some(json.as_bytes())) {
            prop_assert!(call.args.is_none_or(|args| is_object(&args) && is_json(&args)));
        }
    }
}

#[test]
fn numbers_may_be_written_as_texts() {
    let paging = Paging { limit: Some(3), offset: Some(0) };
    let json = r#"{"action":"list","type":"tool","limit":"3","offset":" 0 "}"#;
    assert_eq!(parsed(json), list(Type::Tool, paging, Filter::default()));
    refused(
        r#"{"action":"list","type":"tool","limit":"three"}"#,
        "`limit` must be a whole number from 1 to 1000; given: \"three\"",
    );
}
