//! What is let through, what is refused, and that what is let through reads the same to all.

use proptest::prelude::*;

use super::*;
use crate::checks;

const KEYS: &[&str] = &["params", "arguments", "path", "repoName", "amount"];

fn judge(text: &[u8]) -> Result<(), Unfit> {
    let message = Message::new(text.to_vec().into());
    let verdict = check(&message, &JudgedKeys::new(KEYS.iter().copied()));
    assert_eq!(checks::judged_is_what_anybody_reads(text, KEYS), verdict.is_ok());
    verdict.map(drop)
}

#[track_caller]
fn fits(text: &str) {
    assert_eq!(judge(text.as_bytes()), Ok(()), "{text}");
}

#[track_caller]
fn refused(text: &str, expected: impl Into<Unfit>) {
    assert_eq!(judge(text.as_bytes()), Err(expected.into()), "{text}");
}

/// A call of `echo` with these arguments.
fn with(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{{arguments}}}}}}}"#
    )
}

/// A request with these members beside `jsonrpc` and `id`.
fn request(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#)
}

fn call(params: &str) -> String {
    request(&format!(r#""method":"tools/call","params":{{{params}}}"#))
}

#[test]
fn ordinary_messages_fit() {
    fits(&with(""));
    fits(&with(
        r#""path":"/tmp","text":"déjà vu 漢字 🎉 \ud83c\udf89 \n \\u0000","deep":[{"a":{}},[[]],null,1.5e3,-0]"#,
    ));
    fits(&with(r#""Text":"a","other":"a","año":1,"ano":2,"漢":1,"字":2"#));
    fits(&with(r#""a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":2}]"#));
    fits(&with(r#""text":"a\u0000b""#));
    fits(&call(r#""name":"echo""#));
    fits(&call(r#""name":"echo","arguments":null"#));
    fits(&call(r#""name":"echo","arguments":{},"_meta":{"progressToken":"p","x/y":1},"task":{"ttl":5}"#));
    fits(&call(r#""name":"echo","arguments":{},"inputResponses":{"a":{"action":"accept"}},"requestState":"s""#));
    fits(&request(r#""method":"ping""#));
    fits(&request(r#""method":"tools\/list","params":{}"#));
    fits(&request(r#""method":"acme/doThing","params":{"x":1}"#));
    fits(&request(r#""method":"$/progress.a:b-c_d""#));
    fits(&request(r#""method":"resources/read","params":{"uri":"file:///a%20b"}"#));
    fits(&request(r#""method":"prompts/get","params":{"name":"Grüße"}"#));
    fits(&request(r#""method":"tasks/get","params":{"taskId":"t"}"#));
    fits(&request(
        r#""method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}"#,
    ));
    fits(&request(r#""method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"a:{b}"}}"#));
    fits(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    fits(r#" {"jsonrpc":"2.0","id":"x","method":"ping"} "#);
    fits(
        "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"method\": \"ping\",\n  \"params\": {\n \"x\": [\n {\"a\":1},\n [1,2],\n {\"a\":2}\n]}\n}\n",
    );
}

#[test]
fn answers_are_checked_as_well() {
    fits(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"a":1}}}"#);
    fits(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#);
    fits(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#);
    refused(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Unfit::Id);
    refused(r#"{"jsonrpc":"2.0","id":1,"result":5}"#, Unfit::Answer);
    refused(r#"{"jsonrpc":"2.0","id":1,"error":null}"#, Unfit::Answer);
    refused(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#, Ambiguity::RepeatedKey);
    refused(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, Ambiguity::TwoKinds);
    refused(r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}"#, Ambiguity::TwoKinds);
    refused(r#"{"jsonrpc":"2.0","result":{}}"#, Unfit::NotAMessage);
    refused(r#"{"id":1,"result":{}}"#, Unfit::Version);
}

#[test]
fn a_key_that_stands_twice_is_refused_anywhere() {
    for arguments in [
        r#""a":1,"a":2"#,
        r#""a":1,"b":2,"a":1"#,
        r#""a":1,"\u0061":2"#,
        r#""a":1,"A":2"#,
        r#""task":1,"taſk":2"#,
        r#""é":1,"É":2"#,
        r#""":1,"":2"#,
        r#""x":{"y":[{"a":1,"a":2}]}"#,
    ] {
        refused(&with(arguments), Ambiguity::RepeatedKey);
    }
    let many: String = (0..100).map(|at| format!(r#""k{at}":{at},"#)).collect();
    fits(&with(&format!(r#"{many}"last":1"#)));
    refused(&with(&format!(r#"{many}"K50":1"#)), Ambiguity::RepeatedKey);
    refused(&request(r#""method":"ping","method":"ping""#), Ambiguity::RepeatedKey);
    refused(&request(r#""method":"ping","x":1,"x":2"#), Ambiguity::RepeatedKey);
    refused(&call(r#""name":"echo","name":"delete_repo""#), Ambiguity::RepeatedKey);
    refused(&call(r#""name":"echo","_meta":{"x":1,"X":2}"#), Ambiguity::RepeatedKey);
}

#[test]
fn a_key_that_passes_for_one_that_decides_is_refused() {
    for arguments in [
        r#""Path":1"#,
        r#""p\u0430th":1"#,
        r#""path\u0000":1"#,
        r#""path\u0000x":1"#,
        r#""reponame":1"#,
        r#""x":[{"PATH":1}]"#,
        r#""other\u0000":1"#,
    ] {
        refused(&with(arguments), Ambiguity::LookAlikeKey);
    }
    for members in [r#""Method":"ping""#, r#""method":"ping","Params":{}"#, r#""method":"ping","ｉd":2"#] {
        refused(&request(members), Ambiguity::LookAlikeKey);
    }
    for params in [
        r#""name":"echo","Name":"x""#,
        r#""name":"echo","n\u0430me":"x""#,
        r#""name":"echo","Arguments":{}"#,
        r#""name":"echo","taskid":"x""#,
        r#""name":"echo","name\u0000":"x""#,
        r#""name":"echo","_meta":{"progresstoken":1}"#,
        r#""name":"echo","requeststate":"x""#,
    ] {
        refused(&call(params), Ambiguity::LookAlikeKey);
    }
    refused(
        &request(r#""method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p","Name":"q"}}"#),
        Ambiguity::LookAlikeKey,
    );
}

#[test]
fn texts_that_readers_decode_differently_are_refused() {
    for arguments in [r#""a":"\ud800""#, r#""a":"\udc00\ud800""#, r#""\ud800":1"#, r#""a":["x\ud83cx"]"#] {
        refused(&with(arguments), Ambiguity::Undecodable);
    }
    refused(&with(r#""path":"a\u0000""#), Unfit::Nul);
    refused(&with(r#""path":["b","a\u0000"]"#), Unfit::Nul);
    refused(&with(r#""amount":1e400"#), Unfit::Number);
    refused(&with(r#""other":-1e400"#), Unfit::Number);
    refused(&with(&format!(r#""other":{}"#, "9".repeat(400))), Unfit::Number);
    fits(&with(r#""other":1e30,"tiny":1e-400"#));
    fits(&with(r#""path":"a\\u0000","x":{"other":"\u0000"}"#));
    let invalid = [with(r#""a":""#).trim_end_matches("}}}").as_bytes(), b"\xff\"}}}"].concat();
    assert_eq!(judge(&invalid), Err(Ambiguity::InvalidUtf8.into()));
}

#[test]
fn what_is_not_one_json_text_is_refused() {
    let ping = request(r#""method":"ping""#);
    for text in [
        format!("\u{feff}{ping}"),
        format!("{ping}{ping}"),
        format!("{ping} x"),
        format!("{ping}\0"),
        format!("{ping}\u{b}"),
        format!("/* */{ping}"),
        ping.replace(r#""ping""#, r#""ping","#),
        ping.replace('"', "'"),
        with(r#""a":NaN"#),
        with(r#""a":01"#),
        String::new(),
    ] {
        refused(&text, Ambiguity::NotJson);
    }
    let utf16: Vec<u8> = ping.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(judge(&utf16).is_err());
    refused(&with(&format!(r#""a":{}1{}"#, "[".repeat(200), "]".repeat(200))), Ambiguity::TooDeep);
    fits(&with(&format!(r#""a":{}1{}"#, "[".repeat(100), "]".repeat(100))));
    refused(&format!("[{ping}]"), Unfit::Batch);
    refused("[]", Unfit::Batch);
    for text in
        ["1", "null", "\"tools/call\"", "{}", r#"{"jsonrpc":"2.0","id":1}"#, r#"{"jsonrpc":"2.0","id":1,"method":5}"#]
    {
        refused(text, Unfit::NotAMessage);
    }
}

#[test]
fn a_message_in_a_line_of_another_is_refused() {
    let inner = call(r#""name":"delete_repo""#);
    for line in [
        inner.clone(),
        format!("  {inner}  "),
        format!("[{inner}]"),
        inner.replace("\"id\":1,", ""),
        inner.replace("\"method\"", "\"m\\u0065thod\""),
        inner.replace("\"method\"", "\"Method\""),
    ] {
        for end in ["\r", "\n", "\r\n"] {
            refused(&with(&format!(r#""a":{end}{line}{end}"#)), Unfit::MessageInLine);
            refused(&with(&format!(r#""a":[{end}{line},{end}{line}{end}]"#)), Unfit::MessageInLine);
        }
        if !line.contains("Method") {
            fits(&with(&format!(r#""a":{line}"#)));
        }
    }
}

#[test]
fn the_version_is_exact() {
    for version in [r#""2.00""#, r#""1.0""#, "2.0", "2", "null", r#""2.0 ""#, r#""2\u002e0""#] {
        refused(&format!(r#"{{"jsonrpc":{version},"id":1,"method":"ping"}}"#), Unfit::Version);
    }
    refused(r#"{"id":1,"method":"ping"}"#, Unfit::Version);
    refused(r#"{"JSONRPC":"2.0","id":1,"method":"ping"}"#, Ambiguity::LookAlikeKey);
}

#[test]
fn ids_are_text_or_integers() {
    let with_id = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    for id in ["0", "1", "-1", "9007199254740993", r#""1""#, r#""""#, r#""ü""#] {
        fits(&with_id(id));
    }
    for id in ["null", "true", "1.0", "1.5", "1e3", "-0", "[1]", "{}", "123456789012345678901234567890", r#""1\u0000""#]
    {
        refused(&with_id(id), Unfit::Id);
    }
    refused(&with_id(r#""\ud800""#), Ambiguity::Undecodable);
}

#[test]
fn methods_are_spelled_as_the_protocol_does() {
    for method in [
        "Tools/Call",
        "TOOLS/CALL",
        "tools/call ",
        " tools/call",
        r"tools/call\u0000",
        "t\u{43e}ols/call",
        "tools\u{2044}call",
        "tools/\u{200b}call",
        "tools/call\u{e0041}",
        "Notifications/Initialized",
        "notificationS/x",
        "resources/Read",
        r"tools/call\n",
    ] {
        refused(&request(&format!(r#""method":"{method}","params":{{"name":"x"}}"#)), Unfit::LookAlikeMethod);
    }
    for method in ["", "a b", "tools/call;x", "漢字", r"x\u0000", "a\\\\b"] {
        refused(&request(&format!(r#""method":"{method}""#)), Unfit::Method);
    }
    refused(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#, Unfit::CallWithoutId);
    refused(r#"{"jsonrpc":"2.0","method":"initialized"}"#, Unfit::CallWithoutId);
    refused(&request(r#""method":"notifications/initialized""#), Unfit::NotificationWithId);
}

#[test]
fn parameters_have_the_types_that_readers_expect() {
    for params in ["[]", "null", "1", r#""x""#, r#"["delete_repo",{}]"#] {
        refused(&request(&format!(r#""method":"tools/call","params":{params}"#)), Unfit::Params);
    }
    refused(&request(r#""method":"tools/call""#), Unfit::Subject);
    for params in [
        "",
        r#""name":null"#,
        r#""name":1"#,
        r#""name":["delete_repo"]"#,
        r#""name":{"x":1}"#,
        r#""name":"""#,
        r#""name":"a\n""#,
        r#""name":"a\u007f""#,
        r#""name":"a\u0085""#,
    ] {
        refused(&call(params), Unfit::Subject);
    }
    for name in [r#""delete_repo\u0000""#, r#""delete_repo\u0000_safe""#, r#"["delete_repo\u0000"]"#] {
        refused(&call(&format!(r#""name":{name}"#)), Unfit::Nul);
        refused(&request(&format!(r#""method":"acme/do","params":{{"name":{name}}}"#)), Unfit::Nul);
    }
    for arguments in ["[]", "1", r#""{}""#, "true"] {
        refused(&call(&format!(r#""name":"echo","arguments":{arguments}"#)), Unfit::Arguments);
        refused(
            &request(&format!(r#""method":"prompts/get","params":{{"name":"p","arguments":{arguments}}}"#)),
            Unfit::Arguments,
        );
    }
    for method in ["resources/read", "resources/subscribe", "resources/unsubscribe"] {
        for params in ["", r#""uri":1"#, r#""uri":["a:b"]"#, r#""uri":"""#, r#""uri":"a:%00""#, r#""uri":"a:%2500""#] {
            refused(&request(&format!(r#""method":"{method}","params":{{{params}}}"#)), Unfit::Subject);
        }
    }
    for reference in [
        "1",
        "null",
        "{}",
        r#"{"type":"ref/prompt"}"#,
        r#"{"type":"ref/prompt","name":1}"#,
        r#"{"type":"ref/prompt","uri":"a:b"}"#,
        r#"{"type":"ref/prompt","name":"p","uri":"a:b"}"#,
        r#"{"type":"ref/resource","name":"p"}"#,
        r#"{"type":"ref/Prompt","name":"p"}"#,
        r#"{"type":"ref/tool","name":"p"}"#,
        r#"{"name":"p"}"#,
    ] {
        refused(&request(&format!(r#""method":"completion/complete","params":{{"ref":{reference}}}"#)), Unfit::Subject);
    }
    for notifications in [
        "1",
        "[]",
        r#"{"resourceSubscriptions":"a:b"}"#,
        r#"{"resourceSubscriptions":[1]}"#,
        r#"{"resourceSubscriptions":["a:b",["a:b"]]}"#,
        r#"{"resourceSubscriptions":["a:b","a:%00"]}"#,
    ] {
        let listen = format!(r#""method":"subscriptions/listen","params":{{"notifications":{notifications}}}"#);
        refused(&request(&listen), Unfit::Subject);
    }
    let listen =
        |list: &str| request(&format!(r#""method":"subscriptions/listen","params":{{"notifications":{list}}}"#));
    fits(&listen("{}"));
    fits(&listen(r#"{"toolsListChanged":true,"resourceSubscriptions":["a:b","a:c"]}"#));
    refused(&listen(r#"{"resourcesubscriptions":["a:b"]}"#), Ambiguity::LookAlikeKey);
    let many = vec![r#""a:b""#; SUBSCRIPTIONS_MAX].join(",");
    refused(&listen(&format!(r#"{{"resourceSubscriptions":[{many}]}}"#)), Unfit::Subject);
    refused(&request(r#""method":"tasks/cancel","params":{}"#), Unfit::Subject);
    refused(&request(r#""method":"tasks/result","params":{"taskId":5}"#), Unfit::Subject);
}

/// Keys and texts that readers see differently, among ordinary ones.
fn tricky(rest: &'static [&'static str]) -> impl Strategy<Value = String> {
    let words: Vec<&str> = [
        "a",
        "A",
        "\\u0061",
        "a\\u0000",
        "path",
        "Path",
        "p\\u0430th",
        "p\u{430}th",
        "x",
        "\\ud800",
        "é",
        "É",
        "ſ",
        "s",
    ]
    .into_iter()
    .chain(rest.iter().copied())
    .collect();
    prop::sample::select(words).prop_map(|word| format!("\"{word}\""))
}

fn document() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![tricky(&[]), Just("1".to_owned()), Just("1e999".to_owned()), Just("null".to_owned())];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let member =
            (tricky(&["name", "params", "method"]), inner.clone()).prop_map(|(key, value)| format!("{key}: {value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(" ,"))),
        ]
    })
}

fn message() -> impl Strategy<Value = String> {
    const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error", "Method", "ID", "i\\u0064"];
    const INSIDE: &[&str] = &["name", "uri", "arguments", "_meta", "Name", "n\\u0061me", "taskId", "taskid"];
    const VALUES: &[&str] =
        &["2.0", "tools/call", "tools/list", "echo", "Tools/Call", "resources/read", "notifications/x"];
    let value = prop_oneof![3 => tricky(VALUES), 1 => document(), 1 => Just("1".to_owned())];
    let members = |names, value| prop::collection::vec((tricky(names), value), 0..5);
    let joined = |members: Vec<(String, String)>| {
        let members: Vec<String> = members.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
        members.join(",")
    };
    let params = members(INSIDE, value.clone().boxed()).prop_map(joined);
    let extra = members(ENVELOPE, value.boxed()).prop_map(joined);
    (params, extra, any::<bool>()).prop_map(|(params, extra, usual)| {
        let start = if usual { r#""jsonrpc":"2.0","id":1,"method":"tools/call""# } else { r#""jsonrpc":"2.0""# };
        let comma = if extra.is_empty() { "" } else { "," };
        let name = if usual { r#""name":"echo""# } else { r#""x":1"# };
        let inside = if params.is_empty() { "" } else { "," };
        format!(r#"{{{start},"params":{{{name}{inside}{params}}}{comma}{extra}}}"#)
    })
}

proptest! {
    #[test]
    fn what_fits_reads_the_same_to_all(text in message()) {
        checks::judged_is_what_anybody_reads(text.as_bytes(), KEYS);
    }

    #[test]
    fn arguments_that_fit_read_the_same_to_all(arguments in document()) {
        let text = with(&format!(r#""value":{arguments}"#));
        checks::judged_is_what_anybody_reads(text.as_bytes(), KEYS);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        checks::judged_is_what_anybody_reads(&bytes, KEYS);
    }
}

#[test]
fn an_argument_that_may_be_an_action_is_noticed() {
    let noticed = |text: &str| check(&Message::new(text.to_owned().into()), &JudgedKeys::default());
    for name in ["action", "Action", "act\\u0069on", "acti\u{43e}n", "action ", "\u{200b}action"] {
        assert_eq!(noticed(&with(&format!(r#""x":1,"{name}":2"#))), Ok(Fit { has_action: true }), "{name}");
    }
    for arguments in ["", r#""actions":1"#, r#""x":{"action":"call"}"#, r#""x":"action""#] {
        assert_eq!(noticed(&with(arguments)), Ok(Fit { has_action: false }), "{arguments}");
    }
}

#[test]
fn the_envelope_of_an_answer_is_what_every_client_reads() {
    let check = |text: &str| check_answer(&Message::new(text.to_owned().into()));
    for fine in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"result":{"a":[1]},"jsonrpc":"2.0","id":"1"}"#,
        "{ \"id\" : 1 ,\r\n\"result\" : { } , \"jsonrpc\" : \"2.0\" }",
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"data":[1],"message":"m","code":0}}"#,
    ] {
        assert_eq!(check(fine), Ok(()), "{fine}");
    }
    for (text, expected) in [
        (r#"{"id":1,"result":{}}"#, Unfit::Version),
        (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, Unfit::Version),
        (r#"{"jsonrpc":2.0,"id":1,"result":{}}"#, Unfit::Version),
        (r#"{"jsonrpc":["2.0"],"id":1,"result":{}}"#, Unfit::Version),
        (r#"{"jsonrpc":"2.0","id":1,"result":[]}"#, Unfit::Answer),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, Unfit::Answer),
        (r#"{"jsonrpc":"2.0","id":1,"result":"{"}"#, Unfit::Answer),
        (r#"{"jsonrpc":"2.0","id":1,"error":"{"}"#, Unfit::Answer),
        (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, Unfit::ErrorCode),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}"#, Unfit::ErrorCode),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"message":"m","code":1.5}}"#, Unfit::ErrorCode),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, Unfit::ErrorMessage),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":null}}"#, Unfit::ErrorMessage),
        (r#"{"jsonrpc":"2.0","id":1}"#, Unfit::NoAnswer),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, Unfit::NoAnswer),
        (r#"{"jsonrpc":"2.0","result":{}}"#, Unfit::NoAnswer),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, Unfit::Ambiguous(Ambiguity::TwoKinds)),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}"#, Unfit::Ambiguous(Ambiguity::NotJson)),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}"#, Unfit::Ambiguous(Ambiguity::NotJson)),
    ] {
        assert_eq!(check(text), Err(expected), "{text}");
    }
    let not_utf8 = Message::new(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\xff\"}}".to_vec().into());
    assert_eq!(check_answer(&not_utf8), Err(Unfit::Ambiguous(Ambiguity::InvalidUtf8)));
}
