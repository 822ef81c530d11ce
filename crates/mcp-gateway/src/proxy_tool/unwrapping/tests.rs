use super::*;

#[test]
fn an_introduction_declares_what_is_behind_the_tool() {
    let check = |declared: &str, expected: &str| {
        let introduction = |capabilities: &str| {
            format!(r#"{{"id":1,"result":{{"capabilities":{capabilities},"serverInfo":{{"name":"x"}}}}}}"#)
        };
        let shown = declaring_all(&introduction(declared).into());
        assert_eq!(String::from_utf8_lossy(&shown), introduction(expected));
    };
    check(
        r#"{"tools":{}}"#,
        r#"{"tools":{"listChanged":false},"resources":{"listChanged":false},"prompts":{"listChanged":false}}"#,
    );
    check(
        r#"{"logging":{},"tools":{"listChanged":true},"resources":{"subscribe":true}}"#,
        r#"{"logging":{},"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true}}"#,
    );
}

#[test]
fn answers_are_native_again() {
    let check = |kind, result: &str, expected: &str| {
        let answer = unwrapped(kind, format!(r#"{{"jsonrpc":"2.0","id":"a",{result}}}"#).into(), Era::Legacy);
        assert_eq!(String::from_utf8_lossy(&answer), format!(r#"{{"jsonrpc":"2.0","id":"a",{expected}}}"#));
    };
    let error = r#""error":{"code":-32000,"message":"no"}"#;
    check(Type::Tool, error, error);
    check(
        Type::Tool,
        r#""result":{"content":[{"type":"text","text":"8","annotations":{"proxyType":"tool","proxyAction":"call","proxyPath":"x"}}],"isError":true}"#,
        r#""result":{"content":[{"type":"text","text":"8"}],"isError":true}"#,
    );
    check(
        Type::Resource,
        r#""result":{"content":[{"type":"text","text":"it is gone"}],"isError":true}"#,
        r#""error":{"code":-32603,"message":"it is gone"}"#,
    );
    check(
        Type::Prompt,
        r#""result":{"content":[]}"#,
        r#""error":{"code":-32603,"message":"the proxy tool's answer is not what the extension says: no embedded resource"}"#,
    );
}

#[test]
fn resources_and_templates_are_told_apart() {
    let tool = ProxyTool { name: "proxy".into(), knows_paging: false, knows_objectify: false };
    let (resource, template) = (br#"{"uri":"a:b","name":"x"}"#, br#"{"uriTemplate":"a:{b}","name":"x"}"#);
    assert!(is_of(&tool, ListKind::Resources, resource) && !is_of(&tool, ListKind::Templates, resource));
    assert!(is_of(&tool, ListKind::Templates, template) && !is_of(&tool, ListKind::Resources, template));
    assert!(is_of(&tool, ListKind::Tools, br#"{"name":"x"}"#));
    assert!(!is_of(&tool, ListKind::Tools, br#"{"name":"proxy"}"#));
}
