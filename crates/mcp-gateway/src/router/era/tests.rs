use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::router::schema;

fn facts(revision: Revision, capabilities: &'static str) -> ClientFacts {
    ClientFacts {
        revision,
        info: Bytes::from_static(br#"{"name":"c","version":"1"}"#),
        capabilities: Bytes::from_static(capabilities.as_bytes()),
        log_level: None,
    }
}

const KEYS: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}"#;

#[track_caller]
fn check_modern(message: &str, expected: &str) {
    let facts = facts(Revision::V2025_06_18, "{}");
    let modern = to_modern(&message.to_owned().into(), &facts);
    assert_eq!(modern, expected.replace("KEYS", KEYS));
    assert_eq!(to_modern(&modern, &facts), modern, "said once");
}

#[test]
fn every_modern_request_says_who_asks() {
    check_modern(r#"{"id":1,"method":"tools/list"}"#, r#"{"id":1,"method":"tools/list","params":{"_meta":{KEYS}}}"#);
    check_modern(" { \"id\":1,\"method\":\"m\" } ", " { \"id\":1,\"method\":\"m\" ,\"params\":{\"_meta\":{KEYS}}} ");
    check_modern(r#"{"id":1,"method":"m","params":{}}"#, r#"{"id":1,"method":"m","params":{"_meta":{KEYS}}}"#);
    check_modern(r#"{"id":1,"method":"m","params":null}"#, r#"{"id":1,"method":"m","params":{"_meta":{KEYS}}}"#);
    check_modern(
        r#"{"id":1,"params":{"name":"a", "x":1e400,"_meta":{"progressToken":7}},"method":"m"}"#,
        r#"{"id":1,"params":{"name":"a", "x":1e400,"_meta":{"progressToken":7,KEYS}},"method":"m"}"#,
    );
    // What a client claims in the gateway's place is not believed.
    let claimed = r#"{"id":1,"method":"m","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/protocolVersion":"x","io.modelcontextprotocol/logLevel":"debug"}}}"#;
    let said = to_modern(&claimed.to_owned().into(), &facts(Revision::V2025_06_18, "{}"));
    let said: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["params"]["_meta"][CLIENT_CAPABILITIES], json!({}));
    assert_eq!(said["params"]["_meta"][PROTOCOL_VERSION], "2026-07-28");
    assert_eq!(said["params"]["_meta"].get(LOG_LEVEL), None);
    for other in
        [r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#, r#"{"id":1,"result":{}}"#, "[]", "", "{"]
    {
        check_modern(other, other);
    }
}

#[test]
fn what_is_said_fits_the_schema() {
    let mut facts = facts(
        Revision::V2025_11_25,
        r#"{"sampling":{},"roots":{"listChanged":true},"elicitation":{"form":{},"url":{}},"tasks":{"list":{}}}"#,
    );
    facts.log_level = Some("info".into());
    for info in [r#"{"name":"c","version":"1"}"#, "{}", r#"{"name":7,"version":"1"}"#] {
        facts.info = Bytes::from_static(info.as_bytes());
        let request = to_modern(
            &r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}"#.into(),
            &facts,
        );
        let request: Value = serde_json::from_slice(&request).unwrap();
        schema::check("2026-07-28", "CallToolRequest", &request);
        assert_eq!(request["params"]["_meta"][LOG_LEVEL], "info");
    }
}

#[test]
fn only_what_a_client_can_do_is_declared() {
    let all = r#"{"roots":{"listChanged":true},"tasks":{"x":1},"elicitation":{"form":{},"url":{}},"sampling":{"v":1e400},"experimental":{"x":{}}}"#;
    #[track_caller]
    fn check(revision: Revision, declared: &'static str, expected: &str) {
        assert_eq!(declared_to_modern(&facts(revision, declared)), expected);
    }
    let rest = r#""sampling":{"v":1e400},"experimental":{"x":{}}}"#;
    check(Revision::V2024_11_05, all, &format!(r#"{{"roots":{{}},{rest}"#));
    check(Revision::V2025_03_26, all, &format!(r#"{{"roots":{{}},{rest}"#));
    check(Revision::V2025_06_18, all, &format!(r#"{{"roots":{{}},"elicitation":{{"form":{{}}}},{rest}"#));
    check(Revision::V2025_11_25, all, &format!(r#"{{"roots":{{}},"elicitation":{{"form":{{}},"url":{{}}}},{rest}"#));
    check(Revision::V2025_06_18, r#"{"elicitation":{},"tasks":{}}"#, r#"{"elicitation":{}}"#);
    check(Revision::V2025_06_18, "{}", "{}");
}

#[test]
fn a_legacy_server_is_told_nothing_that_a_client_of_the_newest_revision_cannot_be_asked() {
    let all =
        r#"{"roots":{},"x":1,"tasks":{},"elicitation":{"form":{}},"sampling":{},"experimental":{},"extensions":{}}"#;
    let rest = r#"{"x":1,"experimental":{},"extensions":{}}"#;
    assert_eq!(declared_to_legacy(&facts(Revision::NEWEST, all)), rest);
    assert_eq!(declared_to_legacy(&facts(Revision::NEWEST, "{}")), "{}");
    assert_eq!(declared_to_legacy(&facts(Revision::V2025_11_25, all)), all);
}

#[test]
fn clients_introduce_themselves() {
    let message = |text: &str| Message::new(text.to_owned().into());
    let initialize = |version: &str| {
        message(&format!(
            r#"{{"id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"x":1e400}},"clientInfo":{{ "name":"c"}}}}}}"#
        ))
    };
    let facts = facts_of_initialize(&initialize("2025-03-26")).unwrap();
    assert_eq!(facts.revision, Revision::V2025_03_26);
    assert_eq!((&facts.info[..], &facts.capabilities[..]), (&br#"{ "name":"c"}"#[..], &br#"{"x":1e400}"#[..]));
    for other in ["2026-07-28", "1", ""] {
        assert_eq!(facts_of_initialize(&initialize(other)).unwrap().revision, Revision::V2025_11_25);
    }
    for odd in [
        r#"{"id":1,"method":"initialize"}"#,
        r#"{"id":1,"method":"initialize","params":{"capabilities":[],"clientInfo":null}}"#,
    ] {
        let facts = facts_of_initialize(&message(odd)).unwrap();
        assert_eq!((&facts.info[..], &facts.capabilities[..]), (&b"{}"[..], &b"{}"[..]));
    }
    assert_eq!(facts_of_initialize(&message(r#"{"id":1,"method":"ping"}"#)), None);

    let modern = |meta: &str| message(&format!(r#"{{"id":1,"method":"tools/list","params":{{"_meta":{meta}}}}}"#));
    let facts = facts_of_modern(&modern(
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/logLevel":"debug"}"#,
    ))
    .unwrap();
    assert_eq!(facts.revision, Revision::V2026_07_28);
    assert_eq!((&facts.info[..], &facts.capabilities[..]), (&br#"{"name":"c"}"#[..], &br#"{"roots":{}}"#[..]));
    assert_eq!(facts.log_level.as_deref(), Some("debug"));
    for odd in [
        "{}",
        r#"{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":7}"#,
    ] {
        assert_eq!(facts_of_modern(&modern(odd)), None);
    }
}

#[test]
fn a_legacy_server_is_told_nothing_of_the_newest() {
    #[track_caller]
    fn check(meta: &str, expected: &str) {
        let whole = |meta: &str| format!(r#"{{"id":1,"params":{{"name":"a","_meta":{meta} }},"method":"tools/call"}}"#);
        assert_eq!(to_legacy(&whole(meta).into()), whole(expected));
    }
    check(&format!("{{{KEYS}}}"), "{}");
    check(
        &format!(r#"{{"progressToken":7, {KEYS},"traceparent":"00-1","com.example/k":[1e400]}}"#),
        r#"{"progressToken":7, "traceparent":"00-1","com.example/k":[1e400]}"#,
    );
    check(r#"{"io.modelcontextprotocol\/clientInfo":1,"\u0069o.modelcontextprotocol/x":2,"a":3}"#, r#"{"a":3}"#);
    check("{}", "{}");
    check("null", "null");
    let bare = Bytes::from(r#"{"id":1,"method":"tools/list"}"#);
    assert_eq!(to_legacy(&bare), bare);
}

#[test]
fn to_modern_and_back_is_where_it_began() {
    for message in
        [r#"{"id":1,"method":"m","params":{"_meta":{"a":1}}}"#, r#"{"id":1,"params":{"_meta":{ }},"method":"m"}"#]
    {
        let there = to_modern(&message.to_owned().into(), &facts(Revision::V2025_06_18, "{}"));
        assert_eq!(to_legacy(&there), message);
    }
}

#[track_caller]
fn check_to_legacy(method: &str, answer: &str, expected: &str) {
    assert_eq!(answer_to_legacy(method, answer.to_owned().into()), Crossed::Answer(expected.to_owned().into()));
}

#[test]
fn answers_to_legacy_clients_lose_what_they_do_not_know() {
    check_to_legacy(
        "tools/list",
        r#"{"id":1,"result":{"resultType":"complete","tools":[{"resultType":1e400}], "ttlMs":5 ,"cacheScope":"public"}}"#,
        r#"{"id":1,"result":{"tools":[{"resultType":1e400}]}}"#,
    );
    check_to_legacy("tools/call", r#"{"id":1,"result":{"content":[]}}"#, r#"{"id":1,"result":{"content":[]}}"#);
    let asks = r#"{"id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    assert_eq!(answer_to_legacy("tools/call", asks.into()), Crossed::Asks);
    for odd in ["\"task\"", "\"Complete\"", "7", "null", "\"complete\",\"resultType\":\"task\""] {
        let unknown = format!(r#"{{"id":1,"result":{{"resultType":{odd}}}}}"#);
        assert_eq!(answer_to_legacy("tools/call", unknown.into()), Crossed::Unknown, "{odd}");
    }
}

#[test]
fn errors_have_the_codes_of_their_era() {
    #[track_caller]
    fn check(method: &str, modern: i64, legacy: i64) {
        let error =
            |code: i64| format!(r#"{{"id":1,"error":{{"code":{code},"message":"m","data":{{"code":{code}}}}}}}"#);
        let expected = error(modern).replacen(&modern.to_string(), &legacy.to_string(), 1);
        check_to_legacy(method, &error(modern), &expected);
    }
    check("resources/read", -32602, -32002);
    check("tools/call", -32602, -32602);
    check("tools/call", -32020, -32603);
    check("resources/read", -32022, -32603);
    check("tools/call", -32000, -32000);
    let modern = answer_to_modern("resources/read", r#"{"id":1,"error":{"code":-32002,"message":"m"}}"#.into(), None);
    assert_eq!(modern, r#"{"id":1,"error":{"code":-32602,"message":"m"}}"#);
    let limited = Bytes::from(r#"{"id":1,"error":{"code":-32002,"message":"m"}}"#);
    assert_eq!(answer_to_modern("tools/call", limited.clone(), Some(b"{}")), limited);
}

#[test]
fn answers_to_modern_clients_gain_what_they_expect() {
    let info = br#"{"name":"s","version":"1"}"#;
    #[track_caller]
    fn check(method: &str, info: Option<&[u8]>, result: &str, expected: &str) {
        let whole = |result: &str| format!(r#"{{"jsonrpc":"2.0","result":{result} ,"id":1}}"#);
        assert_eq!(answer_to_modern(method, whole(result).into(), info), whole(expected));
    }
    check("tools/call", None, r#"{"content":[ 1e400 ]}"#, r#"{"content":[ 1e400 ],"resultType":"complete"}"#);
    check(
        "ping",
        Some(info),
        "{}",
        r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
    );
    check(
        "resources/read",
        Some(info),
        r#"{"_meta":{"a":1},"contents":[],"ttlMs":-5}"#,
        r#"{"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"contents":[],"ttlMs":0,"resultType":"complete","cacheScope":"private"}"#,
    );
    check("tools/call", Some(info), "null", "null");
    for kind in ListKind::ALL {
        let answer = format!(r#"{{"id":1,"jsonrpc":"2.0","result":{{"{}":[]}}}}"#, kind.result_key());
        let answer = answer_to_modern(kind.method(), answer.into(), Some(info));
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let name = ["ListToolsResult", "ListPromptsResult", "ListResourcesResult", "ListResourceTemplatesResult"];
        schema::check("2026-07-28", name[kind as usize], &answer["result"]);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(text in r#"[\[\]{}",:a1 \\]{0,60}"#) {
        let facts = facts(Revision::V2025_06_18, "{}");
        for whole in [text.clone(), format!(r#"{{"id":1,"method":"m","params":{{"_meta":{text}}},"result":{text}}}"#)] {
            let whole = Bytes::from(whole);
            to_modern(&whole, &facts);
            to_legacy(&whole);
            let _ = answer_to_legacy("tools/call", whole.clone());
            answer_to_modern("tools/list", whole.clone(), Some(b"{}"));
            facts_of_modern(&Message::new(whole.clone()));
            facts_of_initialize(&Message::new(whole));
        }
    }
}
