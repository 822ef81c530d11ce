//! What is learned from lists of tools, and what becomes of calls and lists.

use super::*;

fn list(tools: &[(&str, &str)]) -> String {
    let tools: Vec<String> =
        tools.iter().map(|(name, schema)| format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#)).collect();
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#, tools.join(","))
}

fn learned(tools: &[(&str, &str)]) -> ToolParams {
    let mut params = ToolParams::default();
    params.learn(list(tools).as_bytes());
    params
}

fn headers(params: &ToolParams, name: &str, arguments: &str) -> Vec<String> {
    let call = format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#);
    params.headers(&Message::new(call.into())).into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

const QUERY: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "limit":{"type":"integer","x-mcp-header":"Limit"},
    "dry":{"type":"boolean","x-mcp-header":"Dry"},
    "place":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}},
    "x-mcp-header":{"type":"string"},
    "sql":{"type":"string","default":{"x-mcp-header":"not an annotation"}}}}"#;

#[test]
fn arguments_become_headers() {
    let params = learned(&[("query", QUERY), ("plain", r#"{"type":"object"}"#)]);
    let sent = headers(
        &params,
        "query",
        r#"{"region":"eu west","limit":12345678901234567890,"dry":false,"place":{"zone":"\u00e9"},"sql":"x"}"#,
    );
    assert_eq!(
        sent,
        [
            "Mcp-Param-Dry: false",
            "Mcp-Param-Limit: 12345678901234567890",
            "Mcp-Param-Zone: =?base64?w6k=?=",
            "Mcp-Param-Region: eu west"
        ]
    );
    assert_eq!(headers(&params, "query", r#"{"region":null,"limit":[1],"dry":{},"place":"x"}"#), [""; 0]);
    assert_eq!(headers(&params, "query", "null"), [""; 0]);
    let twice = r#"{"dry":true,"place":{"zone":"a"},"place":{},"dr\u0079":false}"#;
    assert_eq!(headers(&params, "query", twice), ["Mcp-Param-Dry: false"]);
    assert_eq!(headers(&params, "plain", r#"{"region":"eu"}"#), [""; 0]);
    assert_eq!(headers(&params, "unknown", r#"{"region":"eu"}"#), [""; 0]);
    let other =
        Message::new(r#"{"id":1,"method":"prompts/get","params":{"name":"query","arguments":{"dry":true}}}"#.into());
    assert!(params.headers(&other).is_empty());
}

#[test]
fn later_pages_add_and_later_lists_replace() {
    let mut params = learned(&[("a", QUERY)]);
    params.learn(list(&[("b", QUERY)]).as_bytes());
    assert_eq!(headers(&params, "a", r#"{"dry":true}"#).len(), 1);
    assert_eq!(headers(&params, "b", r#"{"dry":true}"#).len(), 1);
    params.learn(list(&[("a", "{}")]).as_bytes());
    assert_eq!(headers(&params, "a", r#"{"dry":true}"#).len(), 0);
    params.learn(b"garbage");
    params.learn(br#"{"id":1,"result":{"tools":[1,{"name":2}]}}"#);
    assert_eq!(headers(&params, "b", r#"{"dry":true}"#).len(), 1);
}

#[test]
fn a_tool_that_cannot_be_read_does_not_hide_the_rest() {
    let deep = format!(r#"{{"x-mcp-header":"A","items":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let params = learned(&[("deep", &deep), ("query", QUERY)]);
    assert_eq!(headers(&params, "query", r#"{"dry":true}"#).len(), 1);
}

#[test]
fn memory_is_bounded() {
    let mut params = ToolParams::default();
    for page in 0..30 {
        let names: Vec<String> = (0..100).map(|tool| format!("t{page}-{tool}")).collect();
        params.learn(list(&names.iter().map(|name| (name.as_str(), QUERY)).collect::<Vec<_>>()).as_bytes());
    }
    assert_eq!(params.tools.len(), TOOLS_MAX);
    let many: Vec<String> = (0..100).map(|n| format!(r#""p{n}":{{"type":"string","x-mcp-header":"P{n}"}}"#)).collect();
    let params = learned(&[("many", &format!(r#"{{"properties":{{{}}}}}"#, many.join(",")))]);
    let arguments: Vec<String> = (0..100).map(|n| format!(r#""p{n}":"x""#)).collect();
    assert_eq!(headers(&params, "many", &format!("{{{}}}", arguments.join(","))).len(), PARAMS_MAX);
}

#[track_caller]
fn check_legal(schema: &str, is_legal: bool) {
    assert_eq!(learned(&[("t", schema)]).illegal == 0, is_legal, "{schema}");
}

#[test]
fn annotations_that_name_no_fixed_place_are_illegal() {
    let property = |property: &str| format!(r#"{{"properties":{{"a":{property}}}}}"#);
    check_legal(QUERY, true);
    check_legal("{}", true);
    check_legal("true", true);
    check_legal(&property(r#"{"type":"string","x-mcp-header":"A-b.c"}"#), true);
    check_legal(&property(r#"{"type":"string","x-mcp-h\u0065ader":"a b"}"#), false);
    check_legal(&property(r#"{"type":"string","x-mcp-header":"a b"}"#), false);
    check_legal(&property(r#"{"type":"string","x-mcp-header":"a:b"}"#), false);
    check_legal(&property(r#"{"type":"string","x-mcp-header":"é"}"#), false);
    check_legal(&property(r#"{"type":"string","x-mcp-header":""}"#), false);
    check_legal(&property(r#"{"type":"string","x-mcp-header":1}"#), false);
    check_legal(&property(r#"{"type":"number","x-mcp-header":"A"}"#), false);
    check_legal(&property(r#"{"type":["string","null"],"x-mcp-header":"A"}"#), false);
    check_legal(&property(r#"{"type":"object","x-mcp-header":"A"}"#), false);
    check_legal(&property(r#"{"x-mcp-header":"A"}"#), false);
    check_legal(r#"{"type":"string","x-mcp-header":"A"}"#, false);
    let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
    for keyword in ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"] {
        check_legal(&property(&format!(r#"{{"{keyword}":{annotated}}}"#)), false);
        check_legal(&property(&format!(r#"{{"{keyword}":{{"properties":{{"b":{annotated}}}}}}}"#)), false);
    }
    for keyword in ["oneOf", "anyOf", "allOf", "prefixItems"] {
        check_legal(&property(&format!(r#"{{"{keyword}":[true,{annotated}]}}"#)), false);
    }
    for keyword in ["$defs", "definitions", "patternProperties", "dependentSchemas"] {
        check_legal(&format!(r#"{{"{keyword}":{{"b":{annotated}}}}}"#), false);
        check_legal(&format!(r#"{{"{keyword}":{{"x-mcp-header":true}}}}"#), true);
    }
    let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"same"}}}}}"#;
    check_legal(twice, false);
}

const BAD: &str = r#"{"x-mcp-header":"A"}"#;

#[track_caller]
fn check_cut(tools: &str, expected: &str) {
    let params = learned(&[("bad", BAD), ("worse", BAD), ("good", QUERY)]);
    let answer = |tools: &str| format!("{{ \"result\":{{\"tools\" :{tools}, \"ttlMs\":1e3}},\"id\":1 }}\n");
    let cut = params.without_illegal_tools(answer(tools).as_bytes());
    let cut = cut.map(|cut| String::from_utf8(cut).expect("text"));
    assert_eq!(cut, (tools != expected).then(|| answer(expected)));
}

#[test]
fn only_illegal_tools_are_cut() {
    check_cut(r#"[{"name":"good"}]"#, r#"[{"name":"good"}]"#);
    check_cut("[]", "[]");
    check_cut(r#"[ {"name":"bad"} ]"#, "[  ]");
    check_cut(r#"[ {"name":"bad"} , {"x":1,"name":"w\u006frse"} ]"#, "[  ]");
    check_cut(r#"[ {"name":"bad"} , {"name":"good"} ]"#, r#"[ {"name":"good"} ]"#);
    check_cut(r#"[ {"name":"good"} , {"name":"bad"} ]"#, r#"[ {"name":"good"} ]"#);
    check_cut(
        r#"[{"name":"bad"},{"name":"worse"}, {"name":"good"} ,{"name":"bad"},{"name":"worse"} , 7]"#,
        r#"[{"name":"good"} , 7]"#,
    );
    assert_eq!(learned(&[("good", QUERY)]).without_illegal_tools(list(&[("bad", BAD)]).as_bytes()), None);
}
