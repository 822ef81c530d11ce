use super::*;

fn call(tool: &str, arguments: &str) -> Message {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"a":1}}}}}}"#
    );
    Message::scanned(text.into())
}

/// `also`, `instead` or `unclear`, and what is used: its method, its subject and its arguments.
fn read(arguments: &str, unwraps: Option<&str>) -> String {
    let (how, uses) = match meaning(&call("proxy", arguments), unwraps) {
        Meaning::Itself => return "itself".into(),
        Meaning::Unclear(_) => return "unclear".into(),
        Meaning::Also(uses) => ("also", uses),
        Meaning::Instead(uses) => ("instead", uses),
    };
    let shown = |used: &Message| {
        assert_eq!(used.id(), call("proxy", "{}").id());
        assert!(scan::member_at(used.bytes(), ["params", "_meta", "a"]).is_some(), "{used:?}");
        let arguments = scan::member_at(used.bytes(), ["params", "arguments"]).map(|span| used.slice(span));
        let arguments = arguments.map(|json| String::from_utf8_lossy(json)).unwrap_or_default();
        format!(" {} {} {arguments}", used.method().unwrap_or_default(), used.subject().unwrap_or_default())
    };
    how.to_owned() + &uses.iter().map(shown).collect::<Vec<_>>().join(";")
}

#[track_caller]
fn check(arguments: &str, expected: &str) {
    assert_eq!(read(arguments, None).trim_end(), expected, "{arguments}");
}

#[test]
fn a_call_through_a_proxy_tool_is_also_what_it_uses() {
    check(r#"{"action":"call","type":"tool","path":"rm","args":{"n":1.0}}"#, r#"also tools/call rm {"n":1.0}"#);
    check(r#"{"action":"call","type":"tool","path":"rm"}"#, "also tools/call rm");
    check(r#"{"action":"call","type":"tool","path":"rm","args":null}"#, "also tools/call rm");
    check(r#"{"action":"call","type":"tool","path":"rm","args":"{\"a\":2}"}"#, r#"also tools/call rm {"a":2}"#);
    check(r#"{"action":"call","type":"resource","path":"file:///a"}"#, "also resources/read file:///a");
    check(r#"{"action":"call","type":"prompt","path":"p","args":{"a":"b"}}"#, r#"also prompts/get p {"a":"b"}"#);
    check(r#"{"action":"CALL","type":"Tool","path":"rm"}"#, "also tools/call rm");
    check(r#"{"action":"call","type":"tool","path":"r\u006d","more":1}"#, "also tools/call rm");
}

#[test]
fn each_operation_of_a_batch_counts() {
    let operations = r#"[{"action":"call","type":"tool","path":"a"},{"action":"list","type":"tool"},{"action":"batch","operations":[{"action":"call","type":"prompt","path":"b"}]}]"#;
    let expected = "also tools/call a ; prompts/get b";
    check(&format!(r#"{{"action":"batch","operations":{operations}}}"#), expected);
    let quoted = serde_json::Value::from(operations).to_string();
    check(&format!(r#"{{"action":"batch","operations":{quoted}}}"#), expected);
    let mut deep = r#"{"action":"call","type":"tool","path":"a"}"#.to_owned();
    for _ in 0..9 {
        deep = format!(r#"{{"action":"batch","operations":[{deep}]}}"#);
    }
    check(&deep, "unclear");
    let many = vec![r#"{"action":"call","type":"tool","path":"a"}"#; 1_001].join(",");
    check(&format!(r#"{{"action":"batch","operations":[{many}]}}"#), "unclear");
}

#[test]
fn what_only_looks_a_little_like_it_is_itself() {
    for arguments in [
        r#"{}"#,
        r#"{"action":"list","type":"tool"}"#,
        r#"{"action":"info","type":"tool","path":"rm"}"#,
        r#"{"action":"call","type":"person","path":"rm"}"#,
        r#"{"action":"call","type":"tool","path":5}"#,
        r#"{"action":"batch"}"#,
        r#"{"x":{"action":"call","type":"tool","path":"rm"}}"#,
        r#"null"#,
    ] {
        check(arguments, "itself");
    }
}

#[test]
fn what_can_be_read_two_ways_is_unclear() {
    for arguments in [
        r#"{"action":"list","action":"call","type":"tool","path":"rm"}"#,
        r#"{"action":"call","action":"list","type":"tool","path":"rm"}"#,
        r#"{"action":"call","type":"tool","path":"ok","path":"rm"}"#,
        r#"{"action":"call","type":"tool","path":"rm","path":1}"#,
        r#"{"action":"call","type":"tool","path":"ok","Path":"rm"}"#,
        r#"{"Action":"call","type":"tool","path":"rm"}"#,
        r#"{"action":"call","type":"tool","path":"ok","args":{},"args":{"a":1}}"#,
        r#"{"action":"batch","operations":[{"action":"call","type":"tool","path":"ok","path":"rm"}]}"#,
        r#"{"action":"batch","operations":"[{\"action\":\"call\",\"type\":\"tool\",\"path\":\"ok\",\"path\":\"rm\"}]"}"#,
    ] {
        check(arguments, "unclear");
    }
}

#[test]
fn where_a_server_is_looked_behind_its_tool_is_nothing_of_its_own() {
    let unwrapped = |arguments| read(arguments, Some("proxy"));
    assert_eq!(unwrapped(r#"{"action":"call","type":"tool","path":"rm"}"#).trim_end(), "instead tools/call rm");
    assert_eq!(unwrapped(r#"{"action":"list","type":"resource"}"#).trim_end(), "instead resources/list");
    assert_eq!(unwrapped(r#"{"action":"info","type":"prompt","path":"p"}"#).trim_end(), "instead prompts/list");
    assert_eq!(unwrapped(r#"{"action":"dance"}"#), "itself");
    let other = read(r#"{"action":"call","type":"tool","path":"rm"}"#, Some("other"));
    assert_eq!(other.trim_end(), "also tools/call rm");
}

#[test]
fn a_proxy_tool_that_is_called_by_another_is_looked_behind_as_well() {
    let inner = r#"{"action":"call","type":"tool","path":"rm"}"#;
    let expected = format!("also tools/call proxy {inner}; tools/call rm");
    check(&format!(r#"{{"action":"call","type":"tool","path":"proxy","args":{inner}}}"#), &expected);
    let quoted = serde_json::Value::from(inner);
    check(&format!(r#"{{"action":"call","type":"tool","path":"proxy","args":{quoted}}}"#), &expected);
    // Some take what says nothing of its type for a tool.
    check(r#"{"action":"call","path":"rm"}"#, "also tools/call rm");
    let twice = serde_json::Value::from(r#"{"action":"call","type":"tool","path":"a","path":"rm"}"#);
    check(&format!(r#"{{"action":"call","type":"tool","path":"proxy","args":{twice}}}"#), "unclear");
    let mut deep = inner.to_owned();
    for _ in 0..10 {
        deep = format!(r#"{{"action":"call","type":"tool","path":"proxy","args":{deep}}}"#);
    }
    check(&deep, "unclear");
}
