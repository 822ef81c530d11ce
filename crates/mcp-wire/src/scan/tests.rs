//! What the scanner says of particular messages, and that it never disagrees with a full parser.

use proptest::prelude::*;

use super::*;
use crate::Message;
use crate::checks;

#[track_caller]
fn check(text: &str, kind: Kind, ambiguity: Option<Ambiguity>) {
    let peek = scan(text.as_bytes());
    assert_eq!((peek.kind, peek.ambiguity), (kind, ambiguity), "{text}");
    checks::scan_agrees_with_parser(text.as_bytes());
}

#[test]
fn kinds() {
    check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Kind::Request, None);
    check(r#"{"method":"ping","id":null}"#, Kind::Request, None);
    check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Kind::Notification, None);
    check(r#"{"result":{"a":[1,{}]},"jsonrpc":"2.0","id":"x"}"#, Kind::Response, None);
    check(r#"{"id":1,"error":{"code":1}}"#, Kind::Error, None);
    check(r#"{"error":{"code":1}}"#, Kind::Error, None);
    check(r#" [ {"id":1,"method":"a"} , 2 ] "#, Kind::Batch, None);
    check(r#"{}"#, Kind::OtherJson, None);
    check(r#"{"hello":"world"}"#, Kind::OtherJson, None);
    check(r#"{"method":5,"id":1}"#, Kind::OtherJson, None);
    check("-0.5e+10", Kind::OtherJson, None);
    check("true", Kind::OtherJson, None);
    check(r#"{"id":1,"method":"a","params":[1,2]}"#, Kind::Request, None);
}

#[test]
fn what_is_not_json_is_not_judged() {
    let bad = Some(Ambiguity::NotJson);
    for text in [
        "",
        " ",
        "nonsense",
        "{",
        "{}}",
        "{} {}",
        r#"{"id":1,"method":"a"}{"id":2}"#,
        r#"{"a":01}"#,
        r#"{"a":1.}"#,
        r#"{"a":+1}"#,
        r#"{"a":.5}"#,
        r#"{"a":1e}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12g4"}"#,
        "{\"a\":\"\n\"}",
        r#"{"a":1,}"#,
        "[1,]",
        "[,1]",
        "[1 2]",
        r#"{a:1}"#,
        r#"{"a" 1}"#,
        "nul",
        "[1}",
        r#"{"a":1]"#,
        "\u{feff}{}",
        r#"{'a':1}"#,
        "NaN",
    ] {
        check(text, Kind::NotJson, bad);
    }
}

#[test]
fn what_can_be_read_two_ways_is_marked() {
    check(r#"{"id":1,"id":2,"method":"a"}"#, Kind::Request, Some(Ambiguity::RepeatedKey));
    check(r#"{"method":"a","\u006dethod":"b"}"#, Kind::Notification, Some(Ambiguity::RepeatedKey));
    check(
        r#"{"method":"tools/call","params":{"name":"a","name":"b"}}"#,
        Kind::Notification,
        Some(Ambiguity::RepeatedKey),
    );
    check(r#"{"method":"a","params":{},"params":{}}"#, Kind::Notification, Some(Ambiguity::RepeatedKey));
    check(r#"{"method":"a","Method":"b"}"#, Kind::Notification, Some(Ambiguity::LookAlikeKey));
    check(r#"{"method":"a","param\u017f":{}}"#, Kind::Notification, Some(Ambiguity::LookAlikeKey));
    check("{\"method\":\"a\",\"param\u{17f}\":{}}", Kind::Notification, Some(Ambiguity::LookAlikeKey));
    check(r#"{"method":"a","method\u0000":"b"}"#, Kind::Notification, Some(Ambiguity::LookAlikeKey));
    check(r#"{"method":"a","params":{"NAME":1}}"#, Kind::Notification, Some(Ambiguity::LookAlikeKey));
    check(r#"{"method":"\ud800"}"#, Kind::Notification, Some(Ambiguity::Undecodable));
    check(r#"{"method":"a","id":1,"result":{}}"#, Kind::Request, Some(Ambiguity::TwoKinds));
    check(r#"{"id":1,"result":{},"error":{}}"#, Kind::Response, Some(Ambiguity::TwoKinds));
    // Repeats where nothing is decided are the sender's own business.
    check(r#"{"method":"a","params":{"arguments":{"x":1,"x":2}}}"#, Kind::Notification, None);
    check(r#"{"result":"\ud800","id":1}"#, Kind::Response, None);
    check(r#"{"result":1e400,"id":123456789012345678901234567890}"#, Kind::Response, None);
}

#[test]
fn invalid_utf8_is_marked() {
    let peek = scan(b"{\"id\":1,\"method\":\"a\",\"params\":\"\xff\"}");
    assert_eq!((peek.kind, peek.ambiguity), (Kind::Request, Some(Ambiguity::InvalidUtf8)));
}

#[test]
fn depth_is_bounded_for_judging_but_not_for_reading() {
    let nested = |levels: usize| {
        format!(r#"{{"id":1,"method":"a","params":{{"x":{}{}}}}}"#, "[".repeat(levels), "]".repeat(levels))
    };
    for levels in [60, 61, 62, 63, 64, 65, DEPTH_MAX - 2] {
        check(&nested(levels), Kind::Request, None);
    }
    check(&nested(DEPTH_MAX - 1), Kind::Request, Some(Ambiguity::TooDeep));
    check(&nested(100_000), Kind::Request, Some(Ambiguity::TooDeep));
    let mixed = format!("{}1{}", "[{\"a\":".repeat(5_000), "}]".repeat(5_000));
    check(&mixed, Kind::Batch, Some(Ambiguity::TooDeep));
    check(&mixed.replacen("}]", "]}", 1), Kind::NotJson, Some(Ambiguity::NotJson));
}

#[test]
fn ordinary_messages_are_scanned_quickly() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\nb","n":[1,-2.5e3,true,null]}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x"}},"name":"echo"},"id":"a"}"#,
        r#"{ "jsonrpc": "2.0", "id": 1, "result": { "content": [ { "type": "text", "text": "d\u00e9j\u00e0 vu é" } ], "isError": false } }"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
    ] {
        assert_eq!(quick(text.as_bytes()), Some(careful(text.as_bytes())), "{text}");
    }
}

#[test]
fn spans_in_any_order() {
    let message = Message::new(
        br#"{"params":{"_meta":{"progressToken":"t"},"uri":"memo:x","name":"re\u0061d"},"method":"tools/call","id":"7"}"#.as_slice().into(),
    );
    assert_eq!(message.method().as_deref(), Some("tools/call"));
    assert_eq!(message.name().as_deref(), Some("read"));
    assert_eq!(message.uri().as_deref(), Some("memo:x"));
    assert_eq!(message.id(), Some(crate::Id::Text("7".into())));
    assert_eq!(message.slice(message.peek().progress_token.expect("there is one")), b"\"t\"");
    let cancel = Message::new(br#"{"method":"notifications/cancelled","params":{"requestId":12}}"#.as_slice().into());
    assert_eq!(cancel.cancelled_id(), Some(crate::Id::Integer(12)));
}

#[test]
fn what_a_modern_message_says_of_itself() {
    let request = Message::new(
        br#"{"id":1,"method":"tasks/get","params":{"taskId":"t\u002d1","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"x"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#.as_slice().into(),
    );
    assert_eq!(request.task_id().as_deref(), Some("t-1"));
    assert_eq!(request.protocol_version().as_deref(), Some("2026-07-28"));
    assert_eq!((request.name(), request.subscription_id(), request.progress_token()), (None, None, None));
    let update = Message::new(
        br#"{"method":"notifications/x","params":{"progressToken":"7","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#.as_slice().into(),
    );
    assert_eq!(update.subscription_id(), Some(crate::Id::Integer(7)));
    assert_eq!(update.progress_token(), Some(crate::Id::Text("7".into())));

    let version = "io.modelcontextprotocol/protocolVersion";
    let meta = |members: &str| format!(r#"{{"method":"a","params":{{"_meta":{{{members}}}}}}}"#);
    let twice = meta(&format!(r#""{version}":"2026-07-28","{version}":"2025-11-25""#));
    check(&twice, Kind::Notification, Some(Ambiguity::RepeatedKey));
    let other_case = meta(&format!(r#""{}":"2026-07-28""#, version.to_ascii_uppercase()));
    check(&other_case, Kind::Notification, Some(Ambiguity::LookAlikeKey));
    let escaped: String = version.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let both = meta(&format!(r#""{version}":"2026-07-28","{escaped}":"2025-11-25""#));
    check(&both, Kind::Notification, Some(Ambiguity::RepeatedKey));
    check(&meta(&format!(r#""{version}":"\ud800""#)), Kind::Notification, Some(Ambiguity::Undecodable));
    check(r#"{"method":"a","params":{"taskid":1}}"#, Kind::Notification, None);
    check(r#"{"method":"a","params":{"taskID":1}}"#, Kind::Notification, Some(Ambiguity::LookAlikeKey));
}

#[test]
fn batches_are_lists_of_messages() {
    let items = |text: &'static str| batch_items(text.as_bytes()).map(|span| &text[span.range()]).collect::<Vec<_>>();
    assert_eq!(items(r#" [ {"id":1} , [2] ,3 ] "#), [r#"{"id":1}"#, "[2]", "3"]);
    assert_eq!(items("[]"), Vec::<&str>::new());
    assert_eq!(items("{}"), Vec::<&str>::new());
}

#[test]
fn members_are_found_by_path() {
    let text = r#" {"a": {"b":1, "\u0062" : [2], "c":{}}, "\ud800":1, "d":"x"} "#;
    let found = |path: &[&str]| member_at(text.as_bytes(), path.iter().copied()).map(|span| &text[span.range()]);
    assert_eq!(found(&["a", "b"]), Some("[2]"));
    assert_eq!(found(&["a", "c"]), Some("{}"));
    assert_eq!(found(&["d"]), Some(r#""x""#));
    assert_eq!(found(&["a", "c", "d"]), None);
    assert_eq!(found(&["d", "x"]), None);
    assert_eq!(found(&["x"]), None);
    assert_eq!(member_at(b"[]", ["a"]), None);
}

#[test]
fn an_id_is_salvaged_from_the_ends_of_a_message() {
    let salvaged = |head: &'static str, tail: &'static str| {
        salvage(head.as_bytes(), tail.as_bytes())
            .map(|found| (str::from_utf8(found.id).expect("text"), found.is_request))
    };
    let request = r#"{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"x":"aaaa"#;
    assert_eq!(salvaged(request, r#"aaaa"}}"#), Some(("41", true)));
    assert_eq!(
        salvaged(r#"{"result":{"content":"aaa"#, r#"aaa"},"jsonrpc":"2.0","id":"x-9"}"#),
        Some(("\"x-9\"", false))
    );
    assert_eq!(salvaged(r#"{"id":7,"result":"whole"}"#, r#"{"id":7,"result":"whole"}"#), Some(("7", false)));
    assert_eq!(salvaged(r#"{"result":{"content":"aaa"#, r#"aaa"},"jsonrpc":"2.0"}"#), None);
    assert_eq!(salvaged(r#"{"id":12"#, ""), None);
    assert_eq!(salvaged(r#"{"id":1,"id":2,"method":"x","params":""#, ""), None);
    assert_eq!(salvaged("garbage", "garbage"), None);
}

/// JSON that looks like messages, with every member in doubt.
fn nearly_messages() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "id",
        "method",
        "params",
        "result",
        "error",
        "jsonrpc",
        "name",
        "uri",
        "_meta",
        "progressToken",
        "requestId",
        "taskId",
        "arguments",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/subscriptionId",
        "Method",
        "x",
        "m\\u0065thod",
        "id\\u0000",
    ]);
    let scalar = prop::sample::select(vec![
        "1",
        "\"1\"",
        "null",
        "1e400",
        "-0",
        "\"\\ud800\"",
        "\"tools/call\"",
        "true",
        "\"\\n\\\"\"",
        "01",
        "\"é\"",
        "",
        "123456789012345678901234567890",
    ]);
    let leaf = scalar.prop_map(str::to_owned);
    let blank = prop::sample::select(vec!["", "", "", " ", "\t", "\r\n"]);
    leaf.prop_recursive(4, 48, 6, move |inner| {
        let member = (key.clone(), inner.clone(), blank.clone())
            .prop_map(|(key, value, blank)| format!("{blank}\"{key}\"{blank}:{blank}{value}"));
        prop_oneof![
            prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(","))),
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn agrees_on_nearly_messages(text in nearly_messages()) {
        checks::scan_agrees_with_parser(text.as_bytes());
        checks::splice_changes_one_span(text.as_bytes(), b"\"other\"");
    }

    #[test]
    fn agrees_on_damaged_messages(text in nearly_messages(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text.into_bytes();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        checks::scan_agrees_with_parser(&bytes);
    }

    #[test]
    fn agrees_on_noise(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\u0123456789eE+-.truefalsnl \t\n\x00\x1f\x7f\xc3\xa9\xff".to_vec()), 0..40)) {
        checks::scan_agrees_with_parser(&bytes);
    }
}

#[test]
fn what_no_member_says_is_told_by_its_name() {
    let name = Word::new(b"\"isError\"");
    for (text, expected) in [
        (r#"{"isError":true}"#, true),
        ("{\"isError\" :\n true}", true),
        (r#"{"isError":false,"isError":true}"#, true),
        (r#"{"text":"\"isError\":true"}"#, false),
        (r#"{"isError":false}"#, false),
        (r#"{"true":"isError"}"#, false),
        (r#"["isError""#, false),
    ] {
        assert_eq!(may_say(text.as_bytes(), &name, b"true"), expected, "{text}");
    }
}

#[test]
fn a_message_that_is_scanned_at_once_is_glanced_at_alike() {
    for text in [
        r#"{"id":1,"method":"a","params":{"name":"b"}}"#,
        r#"{"result":{},"id":"x"}"#,
        r#"{"method":"n"}"#,
        r#"{"id":1,"id":2,"method":"a"}"#,
        r#"{"id":1,"method":"a""#,
        r#"[{"id":1,"method":"a"}]"#,
        "nothing",
    ] {
        let (new, scanned) = (Message::new(text.into()), Message::scanned(text.into()));
        assert_eq!(new.glance(), scanned.glance(), "{text}");
        assert_eq!(new.peek(), scanned.peek(), "{text}");
    }
}

#[test]
fn nesting_is_counted_of_what_is_one_value() {
    for (text, depth) in [("7", 0), (" \"[[\" ", 0), ("{}", 1), ("[[],[{\"a\":[]}]]", 4), ("{\"a\":1} ", 1)] {
        assert_eq!(nesting(text.as_bytes()), Some(depth), "{text}");
    }
    assert_eq!(nesting("[".repeat(5_000).as_bytes()), None);
    assert_eq!(nesting(["[".repeat(5_000), "]".repeat(5_000)].concat().as_bytes()), Some(5_000));
    for bytes in [&b""[..], b"{", b"[1 2]", b"{} {}", b"\"\xff\""] {
        assert_eq!(nesting(bytes), None);
    }
}
