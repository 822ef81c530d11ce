use serde_json::{Value, json};

use super::*;

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(json)))
}

fn using(kind: Type, path: &str) -> Call {
    Call { kind, path: path.into(), args: None, objectify: true }
}

#[track_caller]
fn shaped(kind: Type, path: &str, result: &str, expected: &str) {
    assert_eq!(call(&using(kind, path), result.as_bytes()), expected);
}

#[test]
fn a_list_is_one_resource_with_everything_in_it() {
    let item = br#"{"name":"calculator_add","description":"Add two numbers"}"#;
    let expected = json!({"content": [{
        "type": "resource",
        "resource": {
            "uri": "proxy:list/tool",
            "mimeType": "application/json",
            "text": "[{\"name\":\"calculator_add\",\"description\":\"Add two numbers\"}]"
        },
        "annotations": {
            "proxyAction": "list", "proxyType": "tool",
            "pythonType": "Tool", "many": true, "dataType": "Tool", "isArray": true
        }
    }]});
    assert_eq!(value(&list(Type::Tool, [&item[..]], None, Dialect::Extension)), expected);
}

#[test]
fn a_list_says_what_it_holds_and_which_part() {
    let annotations = |kind, page| {
        value(&list(kind, [&b"{}"[..], b"{}"], page, Dialect::Extension))["content"][0]["annotations"].take()
    };
    assert_eq!(annotations(Type::Resource, None)["pythonType"], "Resource|ResourceTemplate");
    assert_eq!(annotations(Type::Prompt, None)["dataType"], "Prompt");
    let page = |total, offset, limit| {
        let annotations = annotations(Type::Tool, Some(Page { total, offset, limit }));
        ["proxyTotal", "proxyOffset", "proxyLimit", "proxyNextOffset"].map(|name| annotations[name].as_u64())
    };
    assert_eq!(page(9, 4, Some(2)), [Some(9), Some(4), Some(2), Some(6)]);
    assert_eq!(page(6, 4, None), [Some(6), Some(4), None, None]);
    assert_eq!(annotations(Type::Tool, None).get("proxyTotal"), None);
}

#[test]
fn info_is_of_one() {
    let expected = json!({"content": [{
        "type": "resource",
        "resource": {"uri": "proxy:info/tool/add", "mimeType": "application/json", "text": "{\"name\": \"add\"}"},
        "annotations": {
            "proxyAction": "info", "proxyType": "tool", "proxyPath": "add",
            "pythonType": "Tool", "many": false, "dataType": "Tool", "isArray": false
        }
    }]});
    assert_eq!(value(&info(Type::Tool, "add", br#"{"name": "add"}"#, Dialect::Extension)), expected);
    let data_type = |item: &str| {
        let info = value(&info(Type::Resource, "n://{é}", item.as_bytes(), Dialect::Extension));
        assert_eq!(info["content"][0]["resource"]["uri"], "proxy:info/resource/n://%7B%C3%A9%7D");
        assert_eq!(info["content"][0]["annotations"]["proxyPath"], "n://{é}");
        info["content"][0]["annotations"]["dataType"].as_str().unwrap().to_owned()
    };
    assert_eq!(data_type(r#"{"uri":"n://a"}"#), "Resource");
    assert_eq!(data_type(r#"{"uriTemplate":"n://{é}"}"#), "ResourceTemplate");
}

#[test]
fn results_of_tools_get_annotations_and_keep_the_rest() {
    shaped(
        Type::Tool,
        "calculator_add",
        r#"{"content":[{"type":"text","text":"8"}]}"#,
        r#"{"content":[{"type":"text","text":"8","annotations":{"proxyType":"tool","proxyAction":"call","proxyPath":"calculator_add"}}]}"#,
    );
    shaped(
        Type::Tool,
        "a",
        r#"{"_meta":{"z":1.0,"a":1e400},"content":[{"annotations":{"priority":0.50},"type":"image"}], "isError":true,"structuredContent":{"n":12345678901234567890123},"x":"\u00e9"}"#,
        r#"{"_meta":{"z":1.0,"a":1e400},"content":[{"annotations":{"priority":0.50,"proxyType":"tool","proxyAction":"call","proxyPath":"a"},"type":"image"}],"isError":true,"structuredContent":{"n":12345678901234567890123},"x":"\u00e9"}"#,
    );
    shaped(Type::Tool, "a", r#"{"content":[]}"#, r#"{"content":[]}"#);
    shaped(
        Type::Tool,
        "a",
        r#"{"content":[7,{"annotations":null}]}"#,
        r#"{"content":[7,{"annotations":{"proxyType":"tool","proxyAction":"call","proxyPath":"a"}}]}"#,
    );
}

#[test]
fn what_is_not_complete_stays_as_it_is() {
    for kind in Type::ALL {
        for result in [
            r#"{"task":{"taskId":"1"} }"#,
            r#"{"resultType":"input_required","inputRequests":{},"content":[{}],"contents":[{}],"messages":[]}"#,
            r#"{"resultType":"task","taskId":"1"}"#,
            "[1]",
            "{",
        ] {
            shaped(kind, "a", result, result);
        }
    }
}

const BY_READ: &str = r#""annotations":{"proxyType":"resource","proxyAction":"call","proxyPath":"n://a"}"#;

#[track_caller]
fn read(contents: &str, resource: &str) {
    let expected = format!(r#"{{"content":[{{"type":"resource","resource":{resource},{BY_READ}}}]}}"#);
    shaped(Type::Resource, "n://a", &format!(r#"{{"contents":[{contents}]}}"#), &expected);
}

#[test]
fn text_of_resources_that_is_json_is_written_as_such() {
    read(
        r#"{"uri":"n://a","mimeType":"text/plain","text":"{ \"key\" : \"value\",\n \"n\": 1.50, \"e\":\"\\u00e9\" }"}"#,
        r#"{"uri":"n://a","mimeType":"application/json","text":"{\"key\":\"value\",\"n\":1.50,\"e\":\"\\u00e9\"}","contentType":"text/plain"}"#,
    );
    read(r#"{"uri":"n://a","text":" [1] "}"#, r#"{"uri":"n://a","text":"[1]","mimeType":"application/json"}"#);
    for same in [
        r#"{"uri":"n://a","mimeType":"image/png","blob":"AAAA"}"#,
        r#"{"uri":"n://a","mimeType":"text/plain","text":"not { json"}"#,
        r#"{"uri":"n://a","text":""}"#,
        r#"{"uri":"n://a","contentType":"x","text":"{ }"}"#,
    ] {
        read(same, same);
    }
}

#[test]
fn text_of_resources_can_be_left_alone() {
    let contents = r#"{"uri":"n://a","text":"{ }"}"#;
    let call = Call { objectify: false, ..using(Type::Resource, "n://a") };
    let expected = format!(r#"{{"content":[{{"type":"resource","resource":{contents},{BY_READ}}}]}}"#);
    assert_eq!(super::call(&call, format!(r#"{{"contents":[{contents}]}}"#).as_bytes()), expected);
}

#[test]
fn what_stands_beside_contents_stays() {
    let result = r#"{"ttlMs":5,"contents":[],"_meta":{"a":1.0}}"#;
    shaped(Type::Resource, "n://a", result, r#"{"ttlMs":5,"content":[],"_meta":{"a":1.0}}"#);
}

#[test]
fn prompts_are_wrapped_whole() {
    let result = r#"{"description":"d", "messages":[],"resultType":"complete","_meta":{"a":1.0}}"#;
    let text = r#"{\"description\":\"d\",\"messages\":[],\"resultType\":\"complete\",\"_meta\":{\"a\":1.0}}"#;
    let expected = format!(
        "{}{}{}",
        r#"{"content":[{"type":"resource","resource":{"uri":"proxy:call/prompt/my%20prompt","mimeType":"application/json","#,
        format_args!(r#""text":"{text}"}},"annotations":{{"proxyType":"prompt","proxyAction":"call","#),
        r#""proxyPath":"my prompt","pythonType":"GetPromptResult","dataType":"GetPromptResult"}}],"resultType":"complete","_meta":{"a":1.0}}"#,
    );
    shaped(Type::Prompt, "my prompt", result, &expected);
}

#[test]
fn a_mistake_is_a_result_that_says_so() {
    let expected = json!({"content": [{"type": "text", "text": "`path` is \"x\""}], "isError": true});
    assert_eq!(value(&mistake(&Mistake("`path` is \"x\"".into()))), expected);
}

fn outcome(action: Option<&'static str>, came: Came) -> Outcome {
    let kind = action.map(|_| Type::Tool);
    Outcome { action, kind, path: action.map(|_| "add".into()), came }
}

#[test]
fn a_batch_tells_what_came_of_each() {
    let result =
        br#"{"content":[{"type":"text","text":"8"},{"type":"text","text":"9"}],"structuredContent":{"n":8.0}}"#;
    let done = outcome(Some("call"), Came::Result(call(&using(Type::Tool, "add"), result)));
    let refused = outcome(Some("call"), Came::Error(r#"{"code":-32602,"message":"no","data":1.0}"#.into()));
    let unread = outcome(None, Came::Result(mistake(&Mistake("what?".into()))));
    let batch = batch(&[done, refused, unread]);
    assert!(String::from_utf8_lossy(&batch).contains(r#""structuredContent":{"n":8.0}"#));
    let batch = value(&batch);
    let by =
        |index: usize| json!({"proxyType": "tool", "proxyAction": "call", "proxyPath": "add", "proxyIndex": index});
    let mut failed = by(1);
    failed["proxyError"] = true.into();
    let expected = json!({
        "content": [
            {"type": "text", "text": "8", "annotations": by(0)},
            {"type": "text", "text": "9", "annotations": by(0)},
            {"type": "text", "text": "no", "annotations": failed},
            {"type": "text", "text": "what?", "annotations": {"proxyIndex": 2, "proxyError": true}},
        ],
        "structuredContent": {"results": [
            {"index": 0, "action": "call", "type": "tool", "path": "add", "isError": false, "count": 2,
             "structuredContent": {"n": 8.0}},
            {"index": 1, "action": "call", "type": "tool", "path": "add", "isError": true, "count": 1,
             "error": {"code": -32602, "message": "no", "data": 1.0}},
            {"index": 2, "isError": true, "count": 1},
        ]},
    });
    assert_eq!(batch, expected);
}

#[test]
fn a_batch_fails_only_if_all_of_it_does() {
    let failed = || outcome(None, Came::Result(mistake(&Mistake("what?".into()))));
    let done = || outcome(Some("call"), Came::Result(r#"{"content":[]}"#.into()));
    let is_error = |outcomes: &[Outcome]| value(&batch(outcomes))["isError"].as_bool();
    assert_eq!(is_error(&[failed(), failed()]), Some(true));
    assert_eq!(is_error(&[failed(), done()]), None);
    assert_eq!(is_error(&[]), None);
}

#[test]
fn what_has_no_content_is_not_lost_in_a_batch() {
    let task = outcome(Some("call"), Came::Result(r#"{"task":{"taskId":"1"}}"#.into()));
    let told = value(&batch(&[task]))["structuredContent"]["results"][0].take();
    assert_eq!((&told["count"], &told["result"]["task"]["taskId"]), (&json!(0), &json!("1")));
}

#[test]
fn maggs_client_is_told_of_resources_as_it_spells_them() {
    let told = |result: &Bytes| value(result)["content"][0]["annotations"].take();
    let union = "mcp.types.Resource | mcp.types.ResourceTemplate";
    for (kind, expected) in [(Type::Tool, "Tool"), (Type::Prompt, "Prompt"), (Type::Resource, union)] {
        for result in [list(kind, [], None, Dialect::Magg), info(kind, "a", b"{}", Dialect::Magg)] {
            assert_eq!(told(&result)["pythonType"], expected);
            assert_ne!(told(&result)["dataType"], union);
        }
    }
    for (name, expected) in [("magg", Dialect::Magg), ("My-MAGG client", Dialect::Magg), ("mcp", Dialect::Extension)] {
        assert_eq!(Dialect::of_client(name), expected);
    }
}
