use std::sync::Arc;

use bytes::Bytes;
use mcp_wire::{Message, splice};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::router::{ListKind, Names, Namespace, meta};

fn git() -> Namespace {
    Namespace::new(Arc::from("git"), true)
}

fn bare() -> Namespace {
    Namespace::new(Arc::from("bare"), false)
}

fn tools(list: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{list}]}}}}"#).into()
}

/// `text` with `memo:…` wrapped as the gateway does, and `ui://…`, and `task-…`.
fn given(text: &str) -> String {
    let names = git();
    text.replace("memo:x", &names.uri("memo:x"))
        .replace("ui://v", &names.uri("ui://v"))
        .replace("task-1", &names.task("task-1"))
}

const OURS: &str = r#""io.github.mcp-proxy/server":"git","io.github.mcp-proxy/original":"#;

/// How one tool is listed.
#[track_caller]
fn check_tool(item: &str, expected: &str) {
    let page = page(&git(), ListKind::Tools, &tools(item)).unwrap();
    assert_eq!(page.items.len(), 1, "{item}");
    assert_eq!(page.items[0].bytes, expected.as_bytes());
    assert_eq!(page.left_out, 0);
    let untouched = super::page(&bare(), ListKind::Tools, &tools(item)).unwrap();
    assert_eq!(untouched.items[0].bytes, item.as_bytes());
}

#[test]
fn an_item_changes_in_its_name_and_meta_only() {
    check_tool(r#"{"name":"a"}"#, &format!(r#"{{"name":"git__a","_meta":{{{OURS}"a"}}}}"#));
    let schema = r##""inputSchema" : {"$defs":{"z":1,"name":"a"}, "maximum":123456789012345678901234567890 ,"x":1.0e0,"$ref":"#/é","enum":[ ]}"##;
    check_tool(
        &format!("{{ {schema},\n\t\"name\" :\"\\u0061\", \"description\":\"\\u00e9 \\\"name\\\":\" }}"),
        &format!(
            "{{ {schema},\n\t\"name\" :\"git__a\", \"description\":\"\\u00e9 \\\"name\\\":\" ,\"_meta\":{{{OURS}\"a\"}}}}"
        ),
    );
    check_tool(r#"{"_meta":{ },"name":"a"}"#, &format!(r#"{{"_meta":{{ {OURS}"a"}},"name":"git__a"}}"#));
    check_tool(
        r#"{"_meta":{"v/k":[1e400]},"name":"a"}"#,
        &format!(r#"{{"_meta":{{"v/k":[1e400],{OURS}"a"}},"name":"git__a"}}"#),
    );
    check_tool(r#"{"_meta":null,"name":"a"}"#, &format!(r#"{{"_meta":{{{OURS}"a"}},"name":"git__a"}}"#));
    // One gateway behind another: it is this one's server that a client has to do with.
    check_tool(
        r#"{"name":"in__a","_meta":{"io.github.mcp-proxy/server":"in","io.github.mcp-proxy/original":"a"}}"#,
        &format!(r#"{{"name":"git__in__a","_meta":{{{OURS}"in__a"}}}}"#),
    );
    // What stands twice is changed twice.
    check_tool(
        r#"{"name":"a","n\u0061me":"a"}"#,
        &format!(r#"{{"name":"git__a","n\u0061me":"git__a","_meta":{{{OURS}"a"}}}}"#),
    );
}

#[test]
fn descriptors_link_to_their_interface() {
    check_tool(
        r#"{"name":"a","_meta":{"ui":{"resourceUri":"ui://v","x":1},"ui/resourceUri":"ui://v"}}"#,
        &given(&format!(
            r#"{{"name":"git__a","_meta":{{"ui":{{"resourceUri":"ui://v","x":1}},"ui/resourceUri":"ui://v",{OURS}"a"}}}}"#
        )),
    );
    // Nothing but `_meta` is looked at.
    check_tool(
        r#"{"name":"a","ui":{"resourceUri":"ui://v"},"uri":"memo:x","taskId":"task-1"}"#,
        &format!(
            r#"{{"name":"git__a","ui":{{"resourceUri":"ui://v"}},"uri":"memo:x","taskId":"task-1","_meta":{{{OURS}"a"}}}}"#
        ),
    );
}

#[test]
fn every_kind_has_its_names() {
    #[track_caller]
    fn check(kind: ListKind, item: &str, original: &str, given: &str) {
        let answer =
            json!({ "id": 1, "result": { kind.result_key(): [serde_json::from_str::<Value>(item).unwrap()] } });
        let page = page(&git(), kind, &answer.to_string().into()).unwrap();
        assert_eq!((page.items[0].original.as_str(), page.items[0].given.as_str()), (original, given));
        let said: Value = serde_json::from_slice(&page.items[0].bytes).unwrap();
        assert_eq!(said[kind.name_key()], given);
        assert_eq!((&said["_meta"][meta::SERVER], &said["_meta"][meta::ORIGINAL]), (&json!("git"), &json!(original)));
        assert_eq!(ListKind::from_method(kind.method()), Some(kind));
    }
    check(ListKind::Prompts, r#"{"name":"p"}"#, "p", "git__p");
    check(ListKind::Resources, r#"{"name":"r","uri":"memo:x"}"#, "memo:x", &git().uri("memo:x"));
    check(ListKind::Templates, r#"{"name":"t","uriTemplate":"m:{x}"}"#, "m:{x}", "proxy://template/git/m:{x}");
}

#[test]
fn items_that_cannot_be_used_are_left_out_and_counted() {
    let deep = format!(r#"{{"name":"a","x":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    let long = format!(r#"{{"name":"{}"}}"#, "a".repeat(10_000));
    for odd in [
        "{}",
        r#"{"title":"c"}"#,
        r#"{"name":1}"#,
        r#"{"name":null}"#,
        r#"{"name":""}"#,
        r#""c""#,
        "[]",
        "7",
        r#"{"name":"\ud800"}"#,
        r#"{"name":"a","description":"\udc00"}"#,
        r#"{"name":"c","name":"a"}"#,
        r#"{"name":"c","name":1}"#,
        &deep,
        &long,
    ] {
        for names in [git(), bare()] {
            let page = page(&names, ListKind::Tools, &tools(&format!(r#"{odd},{{"name":"c"}}"#))).unwrap();
            assert_eq!((page.items.len(), page.left_out), (1, 1), "{}", &odd[..odd.len().min(60)]);
        }
    }
    let garbled = [&tools("")[..tools("").len() - 3], &b"{\"name\":\"a\xff\"}]}}"[..]].concat();
    assert_eq!(page(&git(), ListKind::Tools, &garbled.into()).unwrap().left_out, 1);
}

#[test]
fn what_is_no_list_is_none() {
    for other in [
        "",
        "null",
        "[]",
        r#"{"error":{"code":1,"message":"x"}}"#,
        r#"{"result":{}}"#,
        r#"{"result":{"tools":null}}"#,
        r#"{"result":{"tools":{"name":"a"}}}"#,
        r#"{"result":{"prompts":[]}}"#,
    ] {
        assert_eq!(page(&git(), ListKind::Tools, &other.to_owned().into()), None, "{other}");
    }
}

#[test]
fn a_page_tells_what_follows_and_how_long_it_holds() {
    #[track_caller]
    fn check(more: &str, next: Option<&str>, ttl_ms: Option<u64>, is_public: bool) {
        let answer = format!(r#"{{"result":{{"tools":[],{more}}}}}"#);
        let page = page(&git(), ListKind::Tools, &answer.into()).unwrap();
        assert_eq!((page.next.as_deref(), page.ttl_ms, page.is_public), (next, ttl_ms, is_public), "{more}");
    }
    check(r#""nextCursor":"c\u0061""#, Some("ca"), None, false);
    check(r#""nextCursor":"","ttlMs":5,"cacheScope":"private""#, None, Some(5), false);
    check(r#""nextCursor":null,"ttlMs":0,"cacheScope":"public""#, None, Some(0), true);
    for odd in ["-1", "1.5", "\"5\"", "null", "99999999999999999999"] {
        check(&format!(r#""nextCursor":7,"ttlMs":{odd},"cacheScope":true"#), None, Some(0), false);
    }
}

fn answered(ns: &Namespace, method: &str, text: Bytes) -> Bytes {
    let message = Message::new(text);
    splice::splice_all(message.bytes(), &mut answer(ns, method, &message))
}

/// What becomes of a result.
#[track_caller]
fn check_answer(method: &str, result: &str) {
    let whole = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":7, "result" : {result} }}"#);
    assert_eq!(answered(&git(), method, whole(result).into()), whole(&given(result)), "{method}");
}

#[test]
fn links_in_results_are_rewritten() {
    check_answer(
        "tools/call",
        r#"{"content":[{"type":"resource_link","uri":"memo:x","name":"n"},{"type":"text","text":"\"uri\":"}]}"#,
    );
    check_answer(
        "tools/call",
        r#"{"content":[ {"resource":{"uri" : "memo:x","text":"\u00e9"},"type":"resource"} ],"isError":true}"#,
    );
    check_answer("tools/call", r#"{"content":[],"_meta":{"ui":{"resourceUri":"ui://v"},"ui/resourceUri":"ui://v"}}"#);
    check_answer("tools/call", r#"{"content":[{"type":"text","text":"a","_meta":{"ui/resourceUri":"ui://v"}}]}"#);
    check_answer(
        "prompts/get",
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"memo:x"}}}]}"#,
    );
    check_answer("resources/read", r#"{"contents":[{"uri":"memo:x","text":"t"},{"uri":"ui://v","blob":""}]}"#);
    check_answer(
        "tasks/result",
        r#"{"content":[{"type":"resource_link","uri":"memo:x"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"task-1"}}}"#,
    );
}

#[test]
fn tasks_are_renamed() {
    check_answer("tools/call", r#"{"task":{"taskId":"task-1","status":"working","ttl":null}}"#);
    check_answer("tools/call", r#"{"resultType":"task","taskId":"task-1"}"#);
    check_answer("tasks/list", r#"{"tasks":[{"taskId":"task-1"},{"taskId":"task-1"}],"nextCursor":"x"}"#);
    check_answer("tasks/get", r#"{"taskId":"task-1","result":{"content":[{"type":"resource_link","uri":"memo:x"}]}}"#);
    check_answer("tasks/get", r#"{"taskId":"task-1","error":{"code":-32002,"data":{"uri":"memo:x"}}}"#);
    // Those of servers without a prefix as well: nothing else says whose they are.
    let task =
        Bytes::from(r#"{"id":1,"result":{"task":{"taskId":"1"},"content":[{"type":"resource_link","uri":"memo:x"}]}}"#);
    assert_eq!(
        answered(&bare(), "tools/call", task),
        r#"{"id":1,"result":{"task":{"taskId":"bare:1"},"content":[{"type":"resource_link","uri":"memo:x"}]}}"#
    );
}

#[test]
fn questions_are_looked_through() {
    check_answer(
        "tools/call",
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"t","content":[{"type":"resource_link","uri":"memo:x"}]}]}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"task-1"}}}}}}"#,
    );
}

#[test]
fn errors_about_a_resource_name_it() {
    let error = r#"{"id":1,"error":{"code":-32002,"message":"no memo","data":{"uri":"memo:x"}}}"#;
    assert_eq!(answered(&git(), "resources/read", error.into()), given(error));
}

#[test]
fn keys_may_be_spelled_with_escapes() {
    let spelled = r#"{"id":1,"result":{"\u0063ontent":[{"typ\u0065":"resource\u005flink","\u0075ri":"memo:\u0078"}]}}"#;
    let expected = spelled.replace(r"memo:\u0078", &git().uri("memo:x"));
    assert_eq!(answered(&git(), "tools/call", spelled.into()), expected);
    // Also where something else is wrong with it.
    let garbled = spelled.replacen("}]}}", "}]},\"x\":01}", 1);
    assert_eq!(
        answered(&git(), "tools/call", garbled.clone().into()),
        garbled.replace(r"memo:\u0078", &git().uri("memo:x"))
    );
}

#[test]
fn all_else_stays() {
    for (method, result) in [
        (
            "tools/call",
            r#"{"structuredContent":{"uri":"memo:x","taskId":"task-1"},"content":[{"type":"text","text":"x","uri":"memo:x"}]}"#,
        ),
        ("tools/call", r#"{"content":[{"type":"resource_link","uri":7},{"type":"resource","resource":"memo:x"}]}"#),
        (
            "tools/call",
            r#"{"content":"memo:x","task":"task-1","tasks":{"taskId":"task-1"},"_meta":["ui/resourceUri"]}"#,
        ),
        ("vendor/method", r#"{"contents":[{"uri":"memo:x"}],"taskId":"task-1"}"#),
        ("completion/complete", r#"{"completion":{"values":["memo:x"],"uri":"memo:x"}}"#),
        ("tools/call", "null"),
        ("tools/call", "[]"),
    ] {
        let whole = Bytes::from(format!(r#"{{"id":1,"result":{result}}}"#));
        assert_eq!(answered(&git(), method, whole.clone()), whole);
    }
    for garbled in
        ["", "{", r#"{"result":{"taskId":"#, r#"{"result":{"content":[{"type":"resource_link","uri":"memo:x"}"#]
    {
        answered(&git(), "tools/call", garbled.into());
    }
}

#[test]
fn a_hostile_answer_is_survived() {
    // Each kind of content once, whatever is said twice.
    let twice = r#"{"type":"resource_link","type":"resource_link","uri":"memo:x","uri":"memo:x"}"#;
    check_answer("tools/call", &format!(r#"{{"content":[{twice}],"content":[{twice}]}}"#));
    let deep = |open: &str, close: &str| {
        let nested = format!(r#"{}{}"#, open.repeat(20_000), close.repeat(20_000));
        answered(&git(), "tasks/get", format!(r#"{{"id":1,"result":{{"taskId":"task-1","x":{nested}}}}}"#).into())
    };
    deep("[", "]");
    deep(r#"{"content":[{"type":"tool_result","content":["#, "]}]}");
    let results = format!(r#"{{"id":1{}{}"#, r#","result":{"taskId":"task-1""#.repeat(10_000), "}".repeat(10_001));
    let renamed = answered(&git(), "tasks/get", results.into());
    assert_eq!(String::from_utf8_lossy(&renamed).matches("git:task-1").count(), 5, "as deep as anybody looks");
}

#[test]
fn rewriting_addresses_again_changes_nothing() {
    let result =
        r#"{"id":1,"result":{"contents":[{"uri":"memo:x"},{"uri":"ui://v"}],"_meta":{"ui":{"resourceUri":"ui://v"}}}}"#;
    let once = answered(&git(), "resources/read", result.into());
    assert_eq!(answered(&git(), "resources/read", once.clone()), once);
}

#[test]
fn notifications_are_rewritten() {
    for message in [
        r#"{"method":"notifications/resources/updated","params":{"uri" : "memo:x"}}"#,
        r#"{"method":"notifications/tasks/status","params":{"taskId":"task-1","status":"working"}}"#,
        r#"{"method":"notifications/tasks","params":{"taskId":"task-1","result":{"contents":[{"uri":"memo:x"}]}}}"#,
        r#"{"method":"notifications/message","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"task-1"}},"data":{"taskId":"1"}}}"#,
        r#"{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["memo:x","memo:x"]}}}"#,
        r#"{"id":1,"method":"elicitation/create","params":{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"task-1"}}}}"#,
        r#"{"method":"notifications/progress","params":{"progress":1,"uri":"m","data":{"taskId":"1"}}}"#,
        r#"{"method":"notifications/tools/list_changed"}"#,
    ] {
        assert_eq!(notification(&git(), message.into()), given(message));
    }
}

/// A request of a client's as its server gets it.
#[track_caller]
fn check_request(method: &str, params: &str, original: &str, expected: &str) {
    let whole = |params: &str| format!(r#"{{ "id":1,"method":"{method}","params":{params} }}"#);
    let message = Message::new(whole(params).into());
    let mut edits = request(&git(), &message, method, original);
    assert_eq!(splice::splice_all(message.bytes(), &mut edits), whole(expected));
}

#[test]
fn requests_name_what_their_server_knows() {
    check_request(
        "tools/call",
        r#"{"name":"git__a","arguments":{"name":"git__a"}}"#,
        "a",
        r#"{"name":"a","arguments":{"name":"git__a"}}"#,
    );
    check_request("prompts/get", r#"{ "n\u0061me" : "git\u005f_a" }"#, "a\"b", r#"{ "n\u0061me" : "a\"b" }"#);
    check_request("resources/read", r#"{"uri":"proxy://x","name":"n"}"#, "memo:x", r#"{"uri":"memo:x","name":"n"}"#);
    check_request("resources/subscribe", r#"{"uri":"proxy://x"}"#, "memo:x", r#"{"uri":"memo:x"}"#);
    check_request("tasks/get", r#"{"taskId":"git:1"}"#, "1", r#"{"taskId":"1"}"#);
    check_request(
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"git__p"},"argument":{"name":"git__p","value":""}}"#,
        "p",
        r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"git__p","value":""}}"#,
    );
    check_request(
        "completion/complete",
        r#"{"ref":{"uri":"proxy://template/git/m:{x}","type":"ref/resource","name":"n"}}"#,
        "m:{x}",
        r#"{"ref":{"uri":"m:{x}","type":"ref/resource","name":"n"}}"#,
    );
    check_request(
        "tools/call",
        r#"{"name":"git__a","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"git:1"},"x":{"taskId":"git:1"}}}"#,
        "a",
        r#"{"name":"a","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"},"x":{"taskId":"git:1"}}}"#,
    );
    // Both, for whoever reads the first one.
    check_request("tools/call", r#"{"name":"git__a","name":"git__b"}"#, "a", r#"{"name":"a","name":"a"}"#);
    check_request("tools/call", r#"{"name":"a"}"#, "a", r#"{"name":"a"}"#);
    check_request("tools/call", r#"{"name":7}"#, "a", r#"{"name":7}"#);
    check_request("vendor/x", r#"{"name":"git__a"}"#, "a", r#"{"name":"git__a"}"#);
    check_request("tools/call", "[]", "a", "[]");
}

#[test]
fn subjects_have_one_spelling_behind_the_gateway() {
    let respelled = |method: &str, params: &str| {
        let text = format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#);
        let respelled = respelled(&Message::new(text.into()), method)?;
        let text = String::from_utf8(respelled.bytes().to_vec()).unwrap();
        Some(text.split_once(r#""params":"#).unwrap().1.trim_end_matches('}').to_owned())
    };
    let renamed = Some(r#"{ "x":1, "name":"t""#.to_owned());
    assert_eq!(respelled("tools/call", r#"{ "x":1, "toolName" : "t"}"#), renamed);
    assert_eq!(respelled("prompts/get", r#"{ "x":1, "prompt\u004eame":"t"}"#), renamed);
    for (method, params) in [
        ("tools/call", r#"{"promptName":"t"}"#),
        ("tools/call", r#"{"toolName":"t","name":"u"}"#),
        ("tools/call", r#"{"toolName":"t","toolName":"u"}"#),
        ("tools/call", r#"{"toolName":{"name":"t"}}"#),
        ("tools/call", "[]"),
        ("vendor/call", r#"{"toolName":"t"}"#),
    ] {
        assert_eq!(respelled(method, params), None, "{params}");
    }
}

#[test]
fn completions_say_what_they_are_about() {
    let about = |reference: &str| {
        let text = format!(r#"{{"id":1,"method":"completion/complete","params":{{"ref":{reference}}}}}"#);
        completion_ref(&Message::new(text.into()))
    };
    assert_eq!(about(r#"{"type":"ref/prompt","name":"p","uri":"u"}"#), Some((RefKind::Prompt, "p".into())));
    assert_eq!(about(r#"{"type":"ref/resource","name":"p","uri":"u"}"#), Some((RefKind::Resource, "u".into())));
    for odd in [
        "{}",
        "null",
        r#"{"type":"ref/prompt"}"#,
        r#"{"type":"ref/prompt","name":1}"#,
        r#"{"type":"ref/tool","name":"p"}"#,
    ] {
        assert_eq!(about(odd), None, "{odd}");
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "uri",
        "type",
        "content",
        "contents",
        "resource",
        "_meta",
        "ui",
        "resourceUri",
        "taskId",
        "task",
        "tasks",
        "result",
        "messages",
        "name",
        "é\"\\",
    ]);
    let leaf = prop_oneof![
        Just(json!("resource_link")),
        Just(json!("resource")),
        Just(json!("memo:x")),
        Just(json!(null)),
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(key.clone().prop_map(String::from), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same in shape, with text where the other has text and all else equal.
fn differs_in_texts_only(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(_), Value::String(_)) => true,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| differs_in_texts_only(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|it| differs_in_texts_only(value, it)))
        }
        _ => one == other,
    }
}

proptest! {
    #[test]
    fn an_answer_keeps_its_shape(result in anything()) {
        let whole = json!({ "id": 1, "result": result }).to_string();
        for method in ["tools/call", "tasks/get"] {
            let rewritten = answered(&git(), method, whole.clone().into());
            let said: Value = serde_json::from_slice(&rewritten).unwrap();
            prop_assert!(differs_in_texts_only(&said["result"], &result), "{} {}", whole, said);
        }
    }

    #[test]
    fn what_is_listed_leads_back(list in prop::collection::vec(anything(), 0..6), prefix in any::<bool>()) {
        let names = Namespace::new("git".into(), prefix);
        let count = list.len();
        let whole = json!({ "id": 1, "result": { "tools": list } }).to_string();
        let page = page(&names, ListKind::Tools, &whole.into()).unwrap();
        prop_assert_eq!(page.items.len() + page.left_out, count);
        let mut all = Names::new(vec![names]);
        let originals: Vec<_> = page.items.iter().map(|item| item.original.clone()).collect();
        all.learn(0, ListKind::Tools, &originals);
        for item in &page.items {
            let said: Value = serde_json::from_slice(&item.bytes).unwrap();
            prop_assert_eq!(&said["name"], item.given.as_str());
            let found = all.tool(&item.given);
            prop_assert_eq!(found, crate::router::Found::Is { server: 0, original: item.original.as_str().into() });
        }
    }

    #[test]
    fn any_bytes_are_survived(text in r#"[\[\]{}",:a1 \\]{0,60}"#) {
        for whole in [text.clone(), format!(r#"{{"result":{{"taskId":"1","tools":[{text}],"content":[{text}]}}}}"#)] {
            page(&git(), ListKind::Tools, &whole.clone().into());
            answered(&git(), "tools/call", whole.clone().into());
            notification(&git(), whole.clone().into());
            let message = Message::new(whole.into());
            request(&git(), &message, "tools/call", "a");
            completion_ref(&message);
        }
    }
}
