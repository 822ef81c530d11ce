use serde_json::{Value, json};

use super::*;
use crate::router::schema;
use crate::router::{Namespace, rewrite};

const OWN: Own<'static> =
    Own { name: "gateway", title: Some("Many \"servers\""), version: "1.2.3", instructions: None, tool: OwnTool::None };

fn legacy(capabilities: &str) -> Bytes {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
    )
    .into()
}

fn modern(capabilities: &str) -> Bytes {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{capabilities},"ttlMs":0,"cacheScope":"public"}}}}"#
    )
    .into()
}

fn parts(answers: &[Bytes]) -> Vec<Part<'_>> {
    const IDS: [&str; 4] = ["a", "b", "c", "d"];
    answers.iter().zip(IDS).map(|(answer, id)| Part { id, answer }).collect()
}

#[track_caller]
fn check(era: Era, answers: &[Bytes], missing: usize, expected: Value) {
    let united = capabilities(&parts(answers), missing, era, OwnTool::None);
    assert_eq!(serde_json::from_slice::<Value>(&united).unwrap(), expected);
    let revision = if era == Era::Legacy { "2025-11-25" } else { "2026-07-28" };
    schema::check(revision, "ServerCapabilities", &expected);
}

#[test]
fn capabilities_are_united() {
    check(Era::Legacy, &[], 0, json!({}));
    check(
        Era::Legacy,
        &[
            legacy(r#"{"tools":{"listChanged":false},"resources":{},"experimental":{"x":{"v":1}}}"#),
            legacy(
                r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"experimental":{"x":{"v":2},"y":{}}}"#,
            ),
            legacy(r#"{"tools":{},"prompts":{"listChanged":false},"completions":{},"vendor":[1]}"#),
        ],
        0,
        json!({
            "tools": { "listChanged": true }, "resources": { "subscribe": true }, "prompts": { "listChanged": false },
            "logging": {}, "completions": {}, "experimental": { "x": { "v": 1 }, "y": {} }, "vendor": [1],
        }),
    );
}

#[test]
fn servers_to_come_are_declared_for() {
    let common = json!({
        "tools": { "listChanged": true }, "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true }, "logging": {}, "completions": {},
    });
    check(Era::Legacy, &[], 1, common.clone());
    check(Era::Modern, &[legacy(r#"{"tools":{"listChanged":false}}"#)], 2, common);
}

#[test]
fn each_era_hears_of_what_works_in_it() {
    let answers = [
        legacy(
            r#"{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/ui":{}}}"#,
        ),
        modern(r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#),
    ];
    check(
        Era::Legacy,
        &answers,
        0,
        json!({
            "tools": {}, "extensions": { "io.modelcontextprotocol/ui": {} },
            "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } },
        }),
    );
    check(
        Era::Modern,
        &answers,
        0,
        json!({
            "tools": {}, "extensions": { "io.modelcontextprotocol/ui": {}, "io.modelcontextprotocol/tasks": {} },
        }),
    );
    check(Era::Legacy, &[legacy(r#"{"tasks":{"list":{},"cancel":{}}}"#)], 0, json!({}));
}

#[test]
fn one_bad_server_spoils_nothing() {
    let deep = format!(r#"{{"experimental":{}{},"tools":{{}}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    for odd in [
        r#"{"tools":true,"prompts":null,"resources":[],"logging":"x","completions":7,"experimental":[],"extensions":1,"tasks":[]}"#,
        r#"{"tools":{"listChanged":"yes"},"resources":{"subscribe":1},"experimental":{"x":true},"extensions":{"y":[]}}"#,
        r#"{"tasks":{"requests":{"tools":{"call":true}},"cancel":1}}"#,
        r#"{"vendor":"\ud800"}"#,
        &deep,
        "null",
        "{",
    ] {
        let good = legacy(r#"{"tools":{"listChanged":true}}"#);
        let united = capabilities(&parts(&[legacy(odd), good]), 0, Era::Legacy, OwnTool::None);
        let united: Value = serde_json::from_slice(&united).unwrap();
        assert_eq!(united["tools"], json!({ "listChanged": true }), "{}", &odd[..odd.len().min(60)]);
        schema::check("2025-11-25", "ServerCapabilities", &united);
    }
    let many: Vec<_> = (0..5_000).map(|at| format!(r#""v{at}":{{}}"#)).collect();
    assert!(
        capabilities(&parts(&[legacy(&format!("{{{}}}", many.join(",")))]), 0, Era::Legacy, OwnTool::None).len()
            < 16_384
    );
}

#[test]
fn unknown_values_keep_their_spelling() {
    let odd = r#"{"x":123456789012345678901234567890, "y" : 1.0e0,"a":null}"#;
    let united = capabilities(&parts(&[legacy(&format!(r#"{{"vendor":{odd}}}"#))]), 0, Era::Legacy, OwnTool::None);
    assert_eq!(united, format!(r#"{{"vendor":{odd}}}"#));
}

#[test]
fn a_client_gets_the_revision_it_asks_for_if_it_can_be_had() {
    for (asked, told) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1.0", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let answer = initialize(&Id::Text("i".into()), asked, &parts(&[legacy(r#"{"tools":{}}"#)]), 0, &OWN);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("i"), &json!(told)));
        assert_eq!(
            answer["result"]["serverInfo"],
            json!({ "name": "gateway", "title": "Many \"servers\"", "version": "1.2.3" })
        );
        schema::check(told, "InitializeResult", &answer["result"]);
    }
}

#[test]
fn discovery_tells_who_all_are() {
    let own = Own { title: None, instructions: Some("Together."), ..OWN };
    for missing in [0, 3] {
        let answer = discover(&Id::Integer(1), &parts(&[legacy(r#"{"tools":{}}"#), modern("{}")]), missing, &own);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        schema::check("2026-07-28", "DiscoverResult", &answer["result"]);
        schema::check("2026-07-28", "DiscoverResultResponse", &answer);
        assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28"]));
        assert_eq!(answer["result"]["_meta"][SERVER_INFO], json!({ "name": "gateway", "version": "1.2.3" }));
        assert_eq!(answer["result"]["instructions"], "Together.");
        assert_eq!((&answer["result"]["ttlMs"], &answer["result"]["cacheScope"]), (&json!(0), &json!("private")));
    }
}

#[test]
fn instructions_stand_under_headings() {
    let says = |text: &str| Bytes::from(json!({ "result": { "instructions": text } }).to_string());
    let answers = [says("Use a.\n"), says(" \n"), legacy("{}"), says("Use \"d\".")];
    assert_eq!(instructions(&parts(&answers), None).unwrap(), "## a\n\nUse a.\n\n## d\n\nUse \"d\".");
    assert_eq!(instructions(&parts(&answers[..1]), Some("First.")).unwrap(), "First.\n\n## a\n\nUse a.");
    assert_eq!(instructions(&parts(&answers[1..3]), None), None);
    assert_eq!(instructions(&parts(&[r#"{"result":{"instructions":7}}"#.into()]), None), None);
    let long = [
        says(&"漢".repeat(100_000)),
        says(&"x".repeat(100_000)),
        says(&"y".repeat(100_000)),
        says(&"z".repeat(100_000)),
    ];
    let text = instructions(&parts(&long), Some(&"o".repeat(20_000))).unwrap();
    assert!(text.len() <= 64 * 1024 && text.ends_with('…') && text.contains("## b\n\nxxx"), "{}", text.len());
}

fn listing(kind: ListKind, era: Era) -> Listing<'static> {
    Listing { kind, next: None, absent: &[], cut: &[], era, ttl_ms: 0, is_public: false, own: &OWN }
}

#[test]
fn a_list_is_made_of_its_items_bytes() {
    let items = [Bytes::from(r#"{ "name":"a" , "x":1e400}"#), Bytes::from(r#"{"name":"b"}"#)];
    let legacy = list(&items, &listing(ListKind::Tools, Era::Legacy));
    assert_eq!(legacy, r#"{"tools":[{ "name":"a" , "x":1e400},{"name":"b"}]}"#);
    let none = list(&[], &listing(ListKind::Prompts, Era::Legacy));
    assert_eq!(none, r#"{"prompts":[]}"#);
    let absent = [Missing { server: "c".into(), reason: "it does not answer".into() }];
    let more = Listing { next: Some("n"), absent: &absent, ..listing(ListKind::Tools, Era::Legacy) };
    assert_eq!(
        list(&items[1..], &more),
        r#"{"tools":[{"name":"b"}],"nextCursor":"n","_meta":{"io.github.mcp-proxy/absent":[{"server":"c","reason":"it does not answer"}]}}"#
    );
    let cut = [Missing { server: "b".into(), reason: "only 1 items are kept".into() }];
    assert_eq!(
        list(&items[1..], &Listing { cut: &cut, ..listing(ListKind::Tools, Era::Legacy) }),
        r#"{"tools":[{"name":"b"}],"_meta":{"io.github.mcp-proxy/cut":[{"server":"b","reason":"only 1 items are kept"}]}}"#
    );
    let modern = Listing { ttl_ms: 7, is_public: true, ..listing(ListKind::Tools, Era::Modern) };
    let modern: Value = serde_json::from_slice(&list(&items[1..], &modern)).unwrap();
    assert_eq!(modern["_meta"][SERVER_INFO]["name"], "gateway");
    assert_eq!((&modern["ttlMs"], &modern["cacheScope"]), (&json!(7), &json!("public")));
}

#[test]
fn merged_lists_are_as_the_protocol_wants_them() {
    let schema_text = r##"{"type":"object","$defs":{"b":{"minimum":-123456789012345678901234567890},"a":{}},"properties":{"x":{"$ref":"#/$defs/b"}}}"##;
    let kinds = [
        (
            ListKind::Tools,
            format!(r#"{{"name":"t","inputSchema":{schema_text},"_meta":{{"ui":{{"resourceUri":"ui://v"}}}}}}"#),
        ),
        (ListKind::Prompts, r#"{"name":"p"}"#.into()),
        (ListKind::Resources, r#"{"name":"r","uri":"file:///a"}"#.into()),
        (ListKind::Templates, r#"{"name":"r","uriTemplate":"file:///{a}"}"#.into()),
    ];
    let absent = [Missing { server: "c".into(), reason: "it does not answer".into() }];
    for (kind, item) in kinds {
        let answer = Bytes::from(format!(r#"{{"id":1,"result":{{"{}":[{item}]}}}}"#, kind.result_key()));
        let mut items = Vec::new();
        for id in ["a", "b"] {
            let page = rewrite::page(&Namespace::new(id.into(), true), kind, &answer).unwrap();
            items.extend(page.items.into_iter().map(|item| item.bytes));
        }
        let name = match kind {
            ListKind::Tools => "ListToolsResult",
            ListKind::Prompts => "ListPromptsResult",
            ListKind::Resources => "ListResourcesResult",
            ListKind::Templates => "ListResourceTemplatesResult",
        };
        for revision in mcp_wire::Revision::ALL {
            let listing = Listing { next: Some("n"), absent: &absent, ..listing(kind, revision.era()) };
            let merged = list(&items, &listing);
            if kind == ListKind::Tools {
                assert_eq!(String::from_utf8_lossy(&merged).matches(schema_text).count(), 2, "byte for byte");
            }
            let merged: Value = serde_json::from_slice(&merged).unwrap();
            schema::check(revision.as_str(), name, &merged);
        }
    }
}
