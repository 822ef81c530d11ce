//! What a gateway hands out is valid, whatever its servers and clients send: one error in place of an answer that no
//! client could read, and no id repeated that is none.

use serde_json::{Value, json};

use crate::gateway_kit::{StdioClient, code_of, fake, steps, text_of};
use crate::kit::Sandbox;

const RESULT: &str = r#""result":{"content":[]}"#;

#[test]
fn an_answer_that_no_client_could_read_is_one_error_at_once() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({}));
    let open = client.begin("b__do", steps(json!([{ "hold": "b" }])));
    for (line, what) in [
        (format!(r#"{{"id":$id,{RESULT}}}"#), "`jsonrpc` is not \"2.0\""),
        (format!(r#"{{"jsonrpc":"1.0","id":$id,{RESULT}}}"#), "`jsonrpc` is not \"2.0\""),
        (r#"{"jsonrpc":"2.0","id":$id,"result":[]}"#.into(), "`result` or `error` is not an object"),
        (r#"{"jsonrpc":"2.0","id":$id,"result":null}"#.into(), "`result` or `error` is not an object"),
        (r#"{"jsonrpc":"2.0","id":$id,"error":"no"}"#.into(), "`result` or `error` is not an object"),
        (r#"{"jsonrpc":"2.0","id":$id,"error":{"code":"1","message":"m"}}"#.into(), "`error.code` is not an integer"),
        (r#"{"jsonrpc":"2.0","id":$id,"error":{"code":1.5,"message":"m"}}"#.into(), "`error.code` is not an integer"),
        (r#"{"jsonrpc":"2.0","id":$id,"error":{"code":1}}"#.into(), "`error.message` is not text"),
        (format!(r#"{{"jsonrpc":"2.0","id":$id,{RESULT},"error":{{"code":1,"message":"m"}}}}"#), "two kinds"),
        (r#"{"jsonrpc":"2.0","id":$id}"#.into(), "neither `result` nor `error`"),
        (r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[],"x":NaN}}"#.into(), "not JSON"),
        (r#"{"jsonrpc":"2.0","id":$id,"result":{"content":["#.into(), "not JSON"),
        ("{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"x\":\"\u{ff}\"}}".into(), "not UTF-8"),
        (r#"[{"jsonrpc":"2.0","id":$id,"result":7}]"#.into(), "`result` or `error` is not an object"),
        (r#"[{"jsonrpc":"2.0","id":$id}]"#.into(), "neither `result` nor `error`"),
    ] {
        let answer = client.steps("a__do", json!([{ "bytes": line }]));
        assert_eq!((code_of(&answer), &answer["error"]["data"]["server"]), (5022, &json!("a")), "{line}: {answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("server \"a\"") && said.contains(what), "{line}: {answer}");
        assert_eq!(client.says("a__x", "next"), "a:x:next");
    }
    client.steps("b__do", json!([{ "free": "b" }, { "text": "" }]));
    assert_eq!(text_of(&client.answer(&open)), "b");
    assert_eq!(client.take_kept(), Vec::<Value>::new(), "each call has one answer");
    client.end();
    sandbox.nothing_is_left();
}

/// Where rules judge, too.
#[test]
fn a_governed_gateway_names_the_server_of_an_invalid_answer() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("rules.json"), r#"{"a": {"delete": "deny"}}"#).unwrap();
    let top = json!({ "rules": sandbox.path("rules.json").to_str() });
    let mut client = StdioClient::open(&sandbox, &[fake("a")], top);
    for (line, what) in [
        (r#"{"jsonrpc":"2.0","id":$id,"result":7}"#, "`result` or `error` is not an object"),
        (r#"{"jsonrpc":"2.0","id":$id,"result":{"x":NaN}}"#, "not JSON"),
        (r#"{"jsonrpc":"2.0","id":$id}"#, "neither `result` nor `error`"),
        (r#"{"jsonrpc":"2.0","id":$id,"error":{"code":"x","message":"m"}}"#, "`error.code` is not an integer"),
    ] {
        let answer = client.steps("a__do", json!([{ "line": line }]));
        assert_eq!((code_of(&answer), &answer["error"]["data"]["server"]), (5022, &json!("a")), "{line}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(what), "{line}: {answer}");
    }
    client.end();
}

/// Each line of the gateway is read with a full parser, and so is each id in it.
#[test]
fn a_broken_id_is_answered_with_null() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a")], json!({}));
    for id in [&b"\"b\\ad\""[..], b"\"\xff\"", b"1\xff2", b"01", b"1e999", b"\"\\ud800\"", b"{\"a\":}", b"[1e999]"] {
        for method in [&b"\"ping\""[..], b"\"tools/list\"", b"\"initialize\""] {
            client.proxy.send(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"method\":", method, b"}\n"].concat());
            let answer = client.answer(&Value::Null);
            assert_eq!(code_of(&answer), -32600, "{answer}");
        }
    }
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    assert_eq!(client.take_kept(), Vec::<Value>::new());
    client.end();
}
