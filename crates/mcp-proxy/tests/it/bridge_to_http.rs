//! Clients on a pipe in front of a server of Streamable HTTP: what the proxy sends, what it learns,
//! and what becomes of answers that are none.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::bridge_kit::{INITIALIZED, LEGACY, Pair, error_of, initialize, modern, opened};
use crate::http_kit::{
    Call, LAST_CHUNK, Origin, Recording, STREAM, accepted, answer, call, chunk, event, json as json_answer, result,
};
use crate::kit::{Running, Sandbox, peak_bytes, until};

const TRANSPORT: &str = "streamable-http";
const HTML: &[u8] = b"<html>It works!</html>";

fn event_with_id(id: impl std::fmt::Display, message: &str) -> Vec<u8> {
    chunk(format!("id: {id}\nretry: 1\ndata: {message}\n\n"))
}

fn progress(at: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{at}}}}}"#)
}

fn id_of(request: &Call) -> Value {
    serde_json::from_slice::<Value>(&request.body).expect("a message")["id"].clone()
}

#[test]
fn session_and_version_are_learned_and_sent() {
    for (revision, version) in
        [("2025-06-18", Some("2025-06-18")), ("2025-11-25", Some("2025-11-25")), ("2025-03-26", None)]
    {
        let mut pair = Pair::start(&["--header", "X-Key: secret"]);
        pair.send(initialize(revision));
        let opening = pair.answer_opening(revision, "s-1");
        for name in ["mcp-session-id", "mcp-protocol-version", "mcp-method"] {
            assert_eq!(opening.head.get(name), None, "{name}");
        }
        assert_eq!(opening.head.get("accept").as_deref(), Some("application/json, text/event-stream"));
        assert_eq!(opening.head.get("content-type").as_deref(), Some("application/json"));
        assert_eq!(pair.proxy.line(), format!("{}\n", opened(revision)).as_bytes());
        let check = |request: &Call, asked: &str| {
            assert_eq!(request.asked(), asked);
            assert_eq!(request.head.get("mcp-session-id").as_deref(), Some("s-1"));
            assert_eq!(request.head.get("mcp-protocol-version").as_deref(), version);
            assert_eq!(request.head.get("x-key").as_deref(), Some("secret"));
        };
        pair.send(INITIALIZED);
        let mut request = pair.origin.call();
        check(&request, "POST /mcp");
        assert_eq!(request.text(), INITIALIZED);
        request.send(accepted());
        let mut stream = pair.origin.call();
        check(&stream, "GET /mcp");
        assert_eq!(stream.head.get("accept").as_deref(), Some("text/event-stream"));
        assert_eq!(stream.head.get("last-event-id"), None);
        stream.send(STREAM);
        pair.send(call(1, "hello"));
        let mut request = pair.origin.call();
        check(&request, "POST /mcp");
        request.send(json_answer(result(1)));
        assert_eq!(pair.proxy.json()["id"], 1);
        stream.send(event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#));
        assert_eq!(pair.proxy.json()["method"], "notifications/tools/list_changed");
        pair.end();
    }
}

#[test]
fn a_server_without_sessions_and_streams_is_fine() {
    for refused in ["405 Method Not Allowed", "404 Not Found", "400 Bad Request", "501 Not Implemented"] {
        let mut pair = Pair::start(&[]);
        pair.send(initialize(LEGACY));
        pair.origin.call().send(json_answer(opened(LEGACY)));
        assert_eq!(pair.proxy.json()["id"], "init");
        pair.send(INITIALIZED);
        pair.origin.call().send(accepted());
        pair.origin.call().send(answer(refused, &[], ""));
        for id in 1..4 {
            pair.ask(id);
        }
        pair.proxy.close_stdin();
        let (status, said) = pair.proxy.end();
        assert!(status.success(), "{said}");
        pair.origin.saw_nothing();
    }
}

#[test]
fn answers_that_are_none_become_errors_with_the_id() {
    let mut pair = Pair::open();
    let html = &["Content-Type: text/html"];
    let json = &["Content-Type: application/json"];
    let elsewhere = format!("Location: {}", pair.origin.url("/elsewhere"));
    let wrong_answers: [(Vec<u8>, i64); 16] = [
        (answer("401 Unauthorized", &["WWW-Authenticate: Bearer"], ""), 5025),
        (answer("403 Forbidden", html, HTML), 5025),
        (answer("500 Internal Server Error", &[], "oh no"), 5021),
        (answer("503 Service Unavailable", json, r#"{"detail":"busy"}"#), 5021),
        (answer("400 Bad Request", json, "not JSON"), 5021),
        (answer("307 Temporary Redirect", &[&elsewhere], ""), 5021),
        (answer("301 Moved Permanently", &[&elsewhere, "Content-Type: text/html"], HTML), 5021),
        (answer("200 OK", html, HTML), 5022),
        (answer("200 OK", json, r#"{"jsonrpc":"2.0","id":1,"result":"#), 5022),
        (answer("200 OK", json, "null"), 5022),
        (answer("200 OK", json, ""), 5022),
        (answer("200 OK", &[], result(1)), 5022),
        (answer("200 OK", json, r#"{"jsonrpc":"2.0","id":999,"result":{}}"#), 5022),
        (accepted(), 5022),
        ([STREAM, LAST_CHUNK].concat(), 5023),
        ([STREAM, &event("not JSON"), LAST_CHUNK].concat(), 5023),
    ];
    for (at, (wrong, code)) in wrong_answers.iter().enumerate() {
        let id = format!("\"call {at}\"");
        pair.send(call(&id, "bad"));
        let mut request = pair.origin.call();
        assert_eq!(request.text(), call(&id, "bad"));
        request.send(wrong);
        // What came instead may be passed on as well, but the call is answered once.
        let answer = loop {
            let answer = pair.proxy.line();
            match serde_json::from_slice::<Value>(&answer) {
                Ok(answer) if answer["id"] == format!("call {at}") => break answer,
                _ => {}
            }
        };
        assert_eq!(answer["error"]["code"], *code, "{}", String::from_utf8_lossy(wrong));
        pair.ask(at as u64);
    }
    for broken in
        ["", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{", "rubbish\r\n\r\n"]
    {
        pair.send(call("[1,{}]", "bad"));
        let mut request = pair.origin.call();
        request.send(broken);
        request.close();
        assert_eq!(error_of(&pair.proxy), (json!([1, {}]), json!(5023)), "{broken}");
        pair.ask(100);
    }
    let ends = Recording::of(&pair.sandbox).ends();
    assert!(ends.iter().any(|how| how.contains("It works!")), "it can be seen what came instead: {ends:?}");
    pair.end();
}

#[test]
fn an_error_without_the_id_gets_it() {
    let mut pair = Pair::open();
    let body = |id: &str| format!(r#"{{ "jsonrpc":"2.0",{id}"error":{{"code":-32000,"message":"x" , "data":1e400}}}}"#);
    for (status, id) in [
        ("400 Bad Request", r#""id":null,"#),
        ("400 Bad Request", ""),
        ("200 OK", r#""id":null,"#),
        ("200 OK", ""),
        // What a common server library says where it cannot tell.
        ("406 Not Acceptable", r#""id":"server-error","#),
    ] {
        for own in ["1", "\"one\"", "12345678901234567890"] {
            pair.send(call(own, "x"));
            pair.origin.call().send(answer(status, &["Content-Type: application/json"], body(id)));
            let got = String::from_utf8(pair.proxy.line()).unwrap();
            let expected = format!(r#""id":{own},"#);
            if id.is_empty() {
                // Where there was no place for it, any will do.
                let error: Value = serde_json::from_str(&got.replace("1e400", "1")).unwrap();
                assert_eq!((error["id"].to_string().as_str(), &error["error"]["code"]), (own, &json!(-32000)), "{got}");
                assert_eq!(got.replacen(&expected, "", 1), format!("{}\n", body("")), "every other byte is as it was");
            } else {
                assert_eq!(got, format!("{}\n", body(&expected)));
            }
        }
        pair.ask(7);
    }
    pair.end();
}

#[test]
fn a_lost_session_fails_what_is_open_and_begins_again() {
    let mut pair = Pair::open();
    pair.send(call(1, "open"));
    let mut open = pair.origin.call();
    assert_eq!(open.text(), call(1, "open"));
    pair.send(call(2, "lost"));
    let mut lost = pair.origin.call();
    assert_eq!(lost.head.get("mcp-session-id").as_deref(), Some("s1"));
    lost.send(answer("404 Not Found", &[], ""));
    let mut failed = [error_of(&pair.proxy), error_of(&pair.proxy)];
    failed.sort_by_key(|(id, _)| id.as_u64());
    assert_eq!(failed, [(json!(1), json!(5024)), (json!(2), json!(5024))]);
    open.until_closed();
    // What the client says meanwhile waits for the new session.
    pair.send(call(3, "later"));
    let opening = pair.answer_opening(LEGACY, "s2");
    assert_eq!(opening.head.get("mcp-session-id"), None, "it is the client's own, byte for byte");
    let mut initialized = pair.origin.call();
    assert_eq!(
        (initialized.text().as_str(), initialized.head.get("mcp-session-id").as_deref()),
        (INITIALIZED, Some("s2"))
    );
    initialized.send(accepted());
    let mut requests = [pair.origin.call(), pair.origin.call()];
    requests.sort_by_key(Call::asked);
    let [stream, later] = &mut requests;
    assert_eq!((stream.asked().as_str(), later.asked().as_str()), ("GET /mcp", "POST /mcp"));
    stream.send(answer("405 Method Not Allowed", &[], ""));
    assert_eq!((later.text(), later.head.get("mcp-session-id").as_deref()), (call(3, "later"), Some("s2")));
    later.send(json_answer(result(3)));
    // The client is answered once, and hears nothing of the second opening.
    assert_eq!(pair.proxy.json()["id"], 3);
    pair.ask(4);
    pair.end();
}

#[test]
fn what_has_not_left_when_a_session_is_lost_waits_for_the_next() {
    let mut pair = Pair::open();
    let notification = r#"{"jsonrpc":"2.0","method":"n"}"#;
    pair.send(notification);
    let mut lost = pair.origin.call();
    assert_eq!(lost.text(), notification);
    pair.send(call(1, "waits"));
    pair.send(call(2, "waits"));
    pair.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    // A reply waits for nothing, so once it is here the proxy has read the rest.
    pair.send(result("\"reply\""));
    pair.origin.call().send(accepted());
    lost.send(answer("404 Not Found", &[], ""));
    pair.answer_opening(LEGACY, "s2");
    pair.origin.call().send(accepted());
    let mut requests = [pair.origin.call(), pair.origin.call()];
    requests.sort_by_key(Call::asked);
    requests[0].send(answer("405 Method Not Allowed", &[], ""));
    assert_eq!(requests[1].text(), call(1, "waits"));
    requests[1].send(json_answer(result(1)));
    assert_eq!(pair.proxy.line(), format!("{}\n", result(1)).as_bytes(), "it did not fail");
    // Neither the call that was taken back nor the word of it is sent.
    pair.ask(3);
    pair.end();
}

#[test]
fn a_session_that_cannot_be_opened_again_is_tried_for_with_the_next_call() {
    let mut pair = Pair::open();
    for id in [1, 2] {
        pair.send(call(id, "lost"));
        pair.origin.call().send(answer("404 Not Found", &[], ""));
        assert_eq!(error_of(&pair.proxy), (json!(id), json!(5024)));
        let mut opening = pair.origin.call();
        assert_eq!(opening.text(), initialize(LEGACY));
        opening.send(answer("503 Service Unavailable", &[], ""));
    }
    pair.send(call(3, "lost"));
    pair.origin.call().send(answer("404 Not Found", &[], ""));
    assert_eq!(error_of(&pair.proxy), (json!(3), json!(5024)));
    pair.answer_opening(LEGACY, "s2");
    pair.origin.call().send(accepted());
    pair.origin.call().send(answer("405 Method Not Allowed", &[], ""));
    pair.ask(4);
    pair.end();
}

#[test]
fn a_stream_that_breaks_before_the_answer_is_asked_for_the_rest() {
    const EVENTS: usize = 50;
    let mut pair = Pair::open();
    pair.send(call(1, "long"));
    let mut request = pair.origin.call();
    request.send(STREAM);
    // A first event without data gives something to go on from.
    request.send(chunk("id: e0\nretry: 1\ndata: \n\n"));
    request.close();
    for at in 1..=EVENTS {
        let mut rest = pair.origin.call();
        assert_eq!(rest.asked(), "GET /mcp");
        assert_eq!(rest.head.get("last-event-id"), Some(format!("e{}", at - 1)));
        assert_eq!(rest.head.get("mcp-session-id").as_deref(), Some("s1"));
        assert_eq!(rest.head.get("accept").as_deref(), Some("text/event-stream"));
        rest.send(STREAM);
        rest.send(event_with_id(format!("e{at}"), &progress(at)));
        if at % 2 == 0 {
            rest.send(LAST_CHUNK);
        }
        rest.close();
        assert_eq!(pair.proxy.line(), format!("{}\n", progress(at)).as_bytes());
    }
    let mut rest = pair.origin.call();
    assert_eq!(rest.head.get("last-event-id"), Some(format!("e{EVENTS}")));
    rest.send([STREAM, &event(result(1)), LAST_CHUNK].concat());
    assert_eq!(pair.proxy.line(), format!("{}\n", result(1)).as_bytes());
    // It was the answer, so nobody asks for more.
    pair.ask(2);
    pair.end();
}

#[test]
fn a_stream_that_does_not_come_back_fails_its_call() {
    let mut pair = Pair::open();
    for refused in ["405 Method Not Allowed", "400 Bad Request"] {
        pair.send(call(1, "long"));
        let mut request = pair.origin.call();
        request.send([STREAM, &event_with_id("e1", &progress(1)), LAST_CHUNK].concat());
        assert_eq!(pair.proxy.json()["params"]["progress"], 1);
        pair.origin.call().send(answer(refused, &[], ""));
        assert_eq!(error_of(&pair.proxy), (json!(1), json!(5023)));
        pair.ask(2);
    }
    // A session that is gone is opened again.
    pair.send(call(1, "long"));
    pair.origin.call().send([STREAM, &event_with_id("e1", &progress(1)), LAST_CHUNK].concat());
    assert_eq!(pair.proxy.json()["params"]["progress"], 1);
    pair.origin.call().send(answer("404 Not Found", &[], ""));
    assert_eq!(error_of(&pair.proxy), (json!(1), json!(5024)));
    pair.answer_opening(LEGACY, "s2");
    pair.origin.call().send(accepted());
    pair.origin.call().send(answer("405 Method Not Allowed", &[], ""));
    // Servers that answer with nothing are not asked for ever.
    pair.send(call(1, "long"));
    pair.origin.call().send([STREAM, &event_with_id("e1", &progress(1)), LAST_CHUNK].concat());
    assert_eq!(pair.proxy.json()["params"]["progress"], 1);
    let mut asked = 0;
    while asked < 6 {
        let mut rest = pair.origin.call();
        assert_eq!(rest.head.get("last-event-id").as_deref(), Some("e1"));
        rest.send([STREAM, LAST_CHUNK].concat());
        asked += 1;
    }
    assert_eq!(error_of(&pair.proxy), (json!(1), json!(5023)));
    pair.ask(3);
    pair.end();
}

#[test]
fn the_stream_of_a_session_comes_back_where_it_broke() {
    let mut pair = Pair::start(&[]);
    pair.send(initialize(LEGACY));
    pair.answer_opening(LEGACY, "s1");
    pair.proxy.json();
    pair.send(INITIALIZED);
    pair.origin.call().send(accepted());
    let changed = |at: usize| format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"at":{at}}}}}"#);
    for at in 0..20 {
        let mut stream = pair.origin.call();
        assert_eq!(stream.asked(), "GET /mcp");
        let last = (at > 0).then(|| format!("g{}", at - 1));
        assert_eq!(stream.head.get("last-event-id"), last);
        stream.send(STREAM);
        stream.send(event_with_id(format!("g{at}"), &changed(at)));
        assert_eq!(pair.proxy.line(), format!("{}\n", changed(at)).as_bytes());
        // Half an event at the end does not count.
        stream.send(chunk("id: never\ndata: {}\n"));
        match at % 3 {
            0 => stream.close(),
            1 => stream.reset(),
            _ => stream.send(LAST_CHUNK),
        }
    }
    pair.origin.call().send(answer("405 Method Not Allowed", &[], ""));
    pair.ask(1);
    pair.end();
}

#[test]
fn what_is_no_request_is_not_overtaken() {
    const ROUNDS: usize = 50;
    let sandbox = Sandbox::new();
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let origin = {
        let log = Arc::clone(&log);
        Origin::start().serve(move |request| {
            let message: Value = serde_json::from_slice(&request.body).unwrap();
            log.lock().unwrap().push(message["method"].as_str().unwrap_or_default().to_owned());
            match message.get("id") {
                Some(id) => request.send(json_answer(result(id))),
                None => request.send(accepted()),
            }
        })
    };
    let mut proxy = sandbox.run_to(TRANSPORT, &origin.url("/mcp"), &[]);
    for round in 0..ROUNDS {
        let notification = format!(r#"{{"jsonrpc":"2.0","method":"n{round}"}}"#);
        proxy.send(format!("{notification}\n{}\n", call(round, &format!("r{round}"))).as_bytes());
    }
    for _ in 0..ROUNDS {
        assert!(proxy.json()["result"].is_object());
    }
    assert!(proxy.end().0.success());
    let log = log.lock().unwrap();
    let place = |name: String| log.iter().position(|it| *it == name).unwrap();
    for round in 0..ROUNDS {
        let notified = place(format!("n{round}"));
        assert!((round..ROUNDS).all(|later| place(format!("r{later}")) > notified), "{log:?}");
        assert!((0..round).all(|earlier| place(format!("n{earlier}")) < notified), "{log:?}");
    }
}

#[test]
fn a_server_that_asks_within_a_call_gets_its_answer_there_and_then() {
    let mut pair = Pair::open();
    let ask = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create"}}"#);
    // Even one that says nothing to a notification before it has heard from the client.
    pair.send(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
    let mut notification = pair.origin.call();
    pair.send(call(1, "waits for that"));
    pair.send(result("\"q0\""));
    let mut reply = pair.origin.call();
    assert_eq!(reply.text(), result("\"q0\""));
    reply.send(accepted());
    notification.send(accepted());

    let mut request = pair.origin.call();
    assert_eq!(request.text(), call(1, "waits for that"));
    request.send(STREAM);
    for id in ["1", "\"q2\""] {
        request.send(event(ask(id)));
        assert_eq!(pair.proxy.line(), format!("{}\n", ask(id)).as_bytes());
        pair.send(result(id));
        let mut reply = pair.origin.call();
        assert_eq!((reply.text(), reply.head.get("mcp-session-id").as_deref()), (result(id), Some("s1")));
        reply.send(accepted());
    }
    request.send([&event(result(1))[..], LAST_CHUNK].concat());
    assert_eq!(pair.proxy.line(), format!("{}\n", result(1)).as_bytes());
    pair.end();
}

/// A server need not close a stream after the answer.
#[test]
fn what_follows_initialize_waits_for_its_answer_only() {
    let mut pair = Pair::start(&[]);
    pair.send(initialize(LEGACY));
    pair.send(INITIALIZED);
    let mut opening = pair.origin.call();
    opening.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: s1\r\nTransfer-Encoding: chunked\r\n\r\n");
    opening.send(event(opened(LEGACY)));
    assert_eq!(pair.proxy.json()["id"], "init");
    let mut initialized = pair.origin.call();
    assert_eq!(
        (initialized.text().as_str(), initialized.head.get("mcp-session-id").as_deref()),
        (INITIALIZED, Some("s1"))
    );
    initialized.send(accepted());
    pair.origin.call().send(answer("405 Method Not Allowed", &[], ""));
    pair.ask(1);
    // Whatever comes there later is passed on all the same.
    opening.send(event(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#));
    assert_eq!(pair.proxy.json()["method"], "notifications/x");
    opening.send(LAST_CHUNK);
    pair.end();
}

#[test]
fn only_messages_are_taken_from_a_stream() {
    let mut pair = Pair::open();
    pair.send(call(1, "x"));
    let mut request = pair.origin.call();
    request.send(STREAM);
    request
        .send(chunk(": comment\n\nevent: ping\ndata: {\"id\":1,\"result\":\"no\"}\n\nevent: endpoint\ndata: /x\n\n"));
    request.send(chunk(format!("event: message\ndata: {}\n\n", progress(1))));
    request.send(chunk(format!("event\ndata: {}\n\n", result(1))));
    request.send(LAST_CHUNK);
    assert_eq!(pair.proxy.line(), format!("{}\n", progress(1)).as_bytes());
    assert_eq!(pair.proxy.line(), format!("{}\n", result(1)).as_bytes());
    pair.ask(2);
    pair.end();
}

#[test]
fn a_batch_is_a_call_of_several() {
    let mut pair = Pair::open();
    let batch = format!("[{},{INITIALIZED},{}]", call(1, "a"), call(2, "b"));
    pair.send(&batch);
    let mut request = pair.origin.call();
    assert_eq!(request.text(), batch);
    // It holds up nobody, not even a question that comes with it.
    request.send(STREAM);
    request.send(event(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#));
    assert_eq!(pair.proxy.json()["id"], "q");
    pair.send(result("\"q\""));
    pair.origin.call().send(accepted());
    let answers = format!("[{},{}]", result(2), result(1));
    request.send([&event(&answers)[..], LAST_CHUNK].concat());
    assert_eq!(pair.proxy.line(), format!("{answers}\n").as_bytes());
    // Each of its calls gets an error where there is no answer.
    pair.send(&batch);
    pair.origin.call().send(answer("500 Internal Server Error", &[], ""));
    assert_eq!([error_of(&pair.proxy), error_of(&pair.proxy)], [(json!(1), json!(5021)), (json!(2), json!(5021))]);
    pair.end();
}

#[test]
fn a_legacy_cancellation_is_sent_and_the_call_given_up() {
    let mut pair = Pair::open();
    pair.send(call(1, "long"));
    let mut request = pair.origin.call();
    request.send(STREAM);
    request.send(event(progress(1)));
    pair.proxy.json();
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    pair.send(cancelled);
    let mut told = pair.origin.call();
    assert_eq!((told.text().as_str(), told.head.get("mcp-session-id").as_deref()), (cancelled, Some("s1")));
    told.send(accepted());
    // Servers keep such a stream open; hundreds of them would be the end of it.
    request.until_closed();
    pair.ask(2);
    pair.end();
}

#[test]
fn modern_requests_say_in_headers_what_they_say_in_their_bodies() {
    let mut pair = Pair::start(&[]);
    let tools = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
        { "name": "weather", "inputSchema": { "type": "object", "properties": {
            "city": { "type": "string", "x-mcp-header": "City" },
            "days": { "type": "integer", "x-mcp-header": "Days" },
            "note": { "type": "string" },
        } } },
        { "name": "plain", "inputSchema": { "type": "object" } },
    ] } });
    let headers =
        ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-city", "mcp-param-days", "mcp-session-id"];
    let mut check = |message: String, answered: String, expected: [Option<&str>; 6]| {
        pair.send(&message);
        let mut request = pair.origin.call();
        assert_eq!(request.text(), message);
        assert_eq!(
            headers.map(|name| request.head.get(name)),
            expected.map(|value| value.map(str::to_owned)),
            "{message}"
        );
        request.send(json_answer(&answered));
        assert_eq!(pair.proxy.line(), format!("{answered}\n").as_bytes());
    };
    let version = Some("2026-07-28");
    let arguments = |city: &str| json!({ "name": "weather", "arguments": { "city": city, "days": 3, "note": "x" } });
    check(
        modern("0", "tools/call", arguments("Bern")),
        result(0),
        [version, Some("tools/call"), Some("weather"), None, None, None],
    );
    check(
        modern("1", "tools/list", json!({})),
        tools.to_string(),
        [version, Some("tools/list"), None, None, None, None],
    );
    check(
        modern("2", "tools/call", arguments("Bern")),
        result(2),
        [version, Some("tools/call"), Some("weather"), Some("Bern"), Some("3"), None],
    );
    check(
        modern("3", "tools/call", arguments("Zürich")),
        result(3),
        [version, Some("tools/call"), Some("weather"), Some("=?base64?WsO8cmljaA==?="), Some("3"), None],
    );
    check(
        modern("4", "resources/read", json!({ "uri": "file:///ä" })),
        result(4),
        [version, Some("resources/read"), Some("=?base64?ZmlsZTovLy/DpA==?="), None, None, None],
    );
    check(
        modern("5", "server/discover", json!({})),
        result(5),
        [version, Some("server/discover"), None, None, None, None],
    );
    let (status, said) = pair.proxy.end();
    assert!(status.success(), "{said}");
    pair.origin.saw_nothing();
}

#[test]
fn a_modern_cancellation_closes_the_call() {
    let mut pair = Pair::start(&[]);
    pair.send(modern("1", "tools/call", json!({ "name": "slow" })));
    let mut slow = pair.origin.call();
    pair.send(modern("2", "subscriptions/listen", json!({})));
    let mut listen = pair.origin.call();
    listen.send(STREAM);
    listen.send(event(r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}"#));
    pair.proxy.json();
    for (id, request) in [(1, &mut slow), (2, &mut listen)] {
        pair.proxy.send(
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
                .as_bytes(),
        );
        pair.proxy.send(b"\n");
        request.until_closed();
    }
    pair.send(modern("3", "tools/list", json!({})));
    let mut next = pair.origin.call();
    assert_eq!(id_of(&next), 3, "the cancellation itself is not sent");
    next.send(json_answer(result(3)));
    assert_eq!(pair.proxy.json()["id"], 3);
    assert!(pair.proxy.end().0.success());
    pair.origin.saw_nothing();
}

#[test]
fn at_the_end_of_input_open_calls_finish_before_the_goodbye() {
    let mut pair = Pair::open();
    pair.send(call(1, "slow"));
    pair.send(r#"{"jsonrpc":"2.0","method":"last"}"#);
    pair.proxy.close_stdin();
    let mut requests = [pair.origin.call(), pair.origin.call()];
    requests.sort_by_key(|request| request.text().contains("last"));
    let [slow, last] = &mut requests;
    assert_eq!(slow.text(), call(1, "slow"));
    last.send(accepted());
    pair.origin.saw_nothing();
    slow.send(json_answer(result(1)));
    assert_eq!(pair.proxy.line(), format!("{}\n", result(1)).as_bytes());
    pair.end();
}

#[test]
fn a_notification_right_before_the_end_of_input_is_sent() {
    let mut pair = Pair::start(&[]);
    let messages: Vec<String> = (0..20).map(|at| format!(r#"{{"jsonrpc":"2.0","method":"n{at}"}}"#)).collect();
    for message in &messages {
        pair.send(message);
    }
    pair.proxy.close_stdin();
    for message in &messages {
        let mut request = pair.origin.call();
        assert_eq!(&request.text(), message);
        request.send(accepted());
    }
    assert!(pair.proxy.end().0.success());
}

#[test]
fn a_server_that_cannot_be_reached_fails_each_call_and_the_run() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let url = origin.url("/mcp");
    drop(origin);
    let mut proxy = sandbox.run_to(TRANSPORT, &url, &[]);
    proxy.send(format!("{}\n", initialize(LEGACY)).as_bytes());
    assert_eq!(error_of(&proxy), (json!("init"), json!(5020)));
    proxy.send(format!("{INITIALIZED}\n{}\n", call(1, "x")).as_bytes());
    assert_eq!(error_of(&proxy), (json!(1), json!(5020)));
    let (status, said) = proxy.end();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("was never reached"), "{said}");
}

#[test]
fn a_server_that_was_there_once_is_no_failure_of_the_run() {
    let mut pair = Pair::open();
    let origin = pair.origin;
    origin.close_all();
    drop(origin);
    pair.proxy.send(format!("{}\n", call(1, "x")).as_bytes());
    assert_eq!(error_of(&pair.proxy).0, json!(1));
    let (status, said) = pair.proxy.end();
    assert!(status.success(), "{status}: {said}");
}

const SMALL_LIMIT: [&str; 2] = ["--message-limit", "100000"];

#[test]
fn oversize_and_endless_answers_cost_their_call_only() {
    let mut pair = Pair::open_with(&SMALL_LIMIT);
    let large = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{}"}}"#, "x".repeat(200_000));
    pair.send(call(1, "x"));
    pair.origin.call().send(json_answer(large(1)));
    assert_eq!(error_of(&pair.proxy), (json!(1), json!(5130)));
    pair.ask(2);
    pair.send(call(3, "x"));
    pair.origin.call().send([STREAM, &event(large(3)), LAST_CHUNK].concat());
    assert_eq!(error_of(&pair.proxy), (json!(3), json!(5130)));
    pair.ask(4);
    for head in [
        &b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
        b"HTTP/1.1 500 Oh\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n",
        STREAM,
    ] {
        pair.send(call(5, "x"));
        let mut request = pair.origin.call();
        request.send(head);
        request.send(chunk("data: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\""));
        let block = chunk(vec![b'x'; 1 << 16]);
        if head == STREAM {
            (0..1_000).for_each(|_| request.send(&block));
            request.send(chunk("\"}\n\n"));
            request.close();
        } else {
            // It goes on for as long as somebody listens.
            until("the proxy has had enough", || request.try_send(&block).is_err());
        }
        assert_eq!(error_of(&pair.proxy), (json!(5), json!(5130)));
    }
    pair.ask(6);
    let peak = peak_bytes(pair.proxy.pid());
    assert!(peak < 40 << 20, "{peak} bytes");
    pair.end();
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    let sandbox = Sandbox::new();
    let origin = Origin::start().serve(|request| {
        let id = id_of(request);
        let pad = "x".repeat(10_000);
        let _ = request.try_send(json_answer(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{pad}"}}"#)));
    });
    let mut command = sandbox.command(["run", "--quiet", "--no-record", "--url", &origin.url("/mcp")]);
    command.stderr(std::process::Stdio::null());
    let mut proxy = Running::start_unread(command);
    let block: String = (0..1_000).map(|id| format!("{}\n", call(id, "x"))).collect();
    let taken = proxy.send_until_stuck(block.as_bytes(), 4 << 20);
    assert!(taken < 2 << 20, "{taken} bytes were taken");
    let peak = peak_bytes(proxy.pid());
    assert!(peak < 64 << 20, "{peak} bytes");
    proxy.kill();
    proxy.end();
}
