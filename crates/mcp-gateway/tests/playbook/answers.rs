//! Answers that are not valid, that come twice or that nobody waits for.

use serde_json::{Value, json};

use crate::kit::{Playbook, text};

const RESULT: &str = r#""result":{"content":[]}"#;

#[tokio::test(start_paused = true)]
async fn an_unreadable_answer_is_one_error_at_once() {
    let play = Playbook::servers(["a", "b"]);
    let ann = play.client().await;
    ann.calls(1, "b__x");
    let open = play.server("b").gets_call("x").await;
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
        (r#"[{"jsonrpc":"2.0","id":$id,"result":7}]"#.into(), "`result` or `error` is not an object"),
        (r#"[{"jsonrpc":"2.0","id":$id}]"#.into(), "neither `result` nor `error`"),
    ] {
        ann.calls(2, "a__x");
        play.server("a").gets_call("x").await.writes(&line);
        let answer = ann.gets_error(2, 5022).await;
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("server \"a\"") && said.contains(what), "{line}: {answer}");
    }
    open.answers(text("b"));
    ann.gets_result(1, text("b")).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_to_no_id_is_the_answer_to_the_only_open_call() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    let error = r#""error":{"code":-32700,"message":"what?"}"#;
    for line in [format!(r#"{{"jsonrpc":"2.0","id":null,{error}}}"#), format!(r#"{{"jsonrpc":"2.0",{error}}}"#)] {
        ann.calls(1, "a__x");
        a.gets_call("x").await.writes(&line);
        ann.gets_error(1, -32700).await;
        // With two open it is a guess whose it is.
        ann.calls(2, "a__x");
        ann.calls(3, "a__x");
        let (two, three) = (a.gets_call("x").await, a.gets_call("x").await);
        two.writes(&line);
        ann.gets_nothing_else().await;
        two.answers(text("2"));
        three.answers(text("3"));
        ann.gets_result(2, text("2")).await;
        ann.gets_result(3, text("3")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn answers_to_no_open_call_reach_nobody() {
    let play = Playbook::servers(["a", "b"]);
    let ann = play.client().await;
    ann.calls(1, "b__x");
    let open = play.server("b").gets_call("x").await;
    for _ in 0..2 {
        ann.calls(2, "a__x");
        let call = play.server("a").gets_call("x").await;
        for id in ["999999", "null", "$id.0", "\"$id.\"", "-$id", "[]", "\"\""] {
            call.writes(&format!(r#"{{"jsonrpc":"2.0","id":{id},{RESULT}}}"#));
        }
        // Nor is the next call answered by words that came before it.
        let next = call.id().as_i64().unwrap() + 1;
        call.writes(&format!(r#"{{"jsonrpc":"2.0","id":{next},{RESULT}}}"#));
        call.answers(text("right"));
        call.answers(text("twice"));
        ann.gets_result(2, text("right")).await;
    }
    open.answers(text("b"));
    ann.gets_result(1, text("b")).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn noise_is_no_message() {
    let play = Playbook::servers(["a"]);
    let ann = play.client().await;
    ann.calls(1, "a__x");
    let call = play.server("a").gets_call("x").await;
    for noise in ["starting up...", "", "[1,2", "{}", "null", "[]", "\u{1b}[31m", "{\"jsonrpc\":\"2.0\"}", "[[1]]"] {
        call.writes(noise);
    }
    call.answers(text("heard"));
    ann.gets_result(1, text("heard")).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_servers_batch_is_taken_apart() {
    let play = Playbook::servers(["a"]);
    let ann = play.client().await;
    ann.asks(1, "tools/call", json!({ "name": "a__x", "_meta": { "progressToken": "t" } }));
    let call = play.server("a").gets_call("x").await;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":1}}"#;
    call.writes(&format!(r#"[{progress},{{"jsonrpc":"2.0","id":$id,{RESULT}}}]"#));
    ann.hears("notifications/progress").await;
    ann.gets_result(1, json!({ "content": [] })).await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_id_is_answered_with_null() {
    let play = Playbook::servers(["a"]);
    let ann = play.client().await;
    for id in [&b"\"b\\ad\""[..], b"01", b"1e999", b"\"\\ud800\"", b"{\"a\":}"] {
        for method in [&b"\"ping\""[..], b"\"tools/list\"", b"\"initialize\""] {
            ann.sends([b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"method\":", method, b"}"].concat());
            ann.gets_error(Value::Null, -32600).await;
        }
    }
    ann.gets_nothing_else().await;
}
