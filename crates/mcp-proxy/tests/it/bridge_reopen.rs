//! A session that a server forgot is opened again, and the recording tells how.

use serde_json::Value;

use crate::bridge_kit::{INITIALIZED, LEGACY, Pair, SseServer, error_of, initialize, opened};
use crate::http_kit::{LAST_CHUNK, Recording, accepted, answer, call, event, json as json_answer, result};
use crate::kit::{Sandbox, until};

const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"welcome back"}}"#;

/// The opening was recorded as often as it was sent, and the second time as ours.
#[track_caller]
fn check(recording: &Recording) {
    for message in [&initialize(LEGACY)[..], INITIALIZED] {
        let sent: Vec<_> = recording.by_client().into_iter().filter(|it| it.raw == message.as_bytes()).collect();
        assert_eq!(sent.iter().map(|it| it.from_proxy).collect::<Vec<_>>(), [false, true], "{message}");
        assert!(sent[1].exchange.is_some(), "it names the exchange it was sent in");
    }
    let asked: Vec<_> = recording.by_client().into_iter().filter(|it| it.raw == initialize(LEGACY)).collect();
    let answered: Vec<_> = recording.by_server().into_iter().filter(|it| it.raw == opened(LEGACY)).collect();
    assert_eq!(answered.len(), 2);
    for (asked, answered) in asked.iter().zip(&answered) {
        assert_eq!(answered.correlated_id.as_ref(), Some(&asked.id));
        assert!(!answered.from_proxy, "the server said it");
    }
    let kept = recording.events();
    assert!(kept.iter().any(|event| event == "the answer before this was not passed on"), "{kept:?}");
}

#[test]
fn over_streamable_http() {
    for streams in [false, true] {
        let mut pair = Pair::open();
        pair.send(call(1, "lost"));
        pair.origin.call().send(answer("404 Not Found", &[], ""));
        assert_eq!(error_of(&pair.proxy).0, 1);
        let mut opening = pair.origin.call();
        assert_eq!(opening.text(), initialize(LEGACY));
        if streams {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: s2\r\n";
            opening.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
            opening.send([&event(LOG)[..], &event(opened(LEGACY)), LAST_CHUNK].concat());
            // What is not the answer is for the client, as ever.
            assert_eq!(pair.proxy.line(), format!("{LOG}\n").as_bytes());
        } else {
            opening.send(answer("200 OK", &["Content-Type: application/json", "Mcp-Session-Id: s2"], opened(LEGACY)));
        }
        let mut initialized = pair.origin.call();
        assert_eq!(initialized.text(), INITIALIZED);
        initialized.send(accepted());
        pair.origin.call().send(answer("405 Method Not Allowed", &[], ""));
        pair.ask(2);
        let sandbox = pair.end();
        check(&Recording::of(&sandbox));
        let shown = sandbox.stdout(["inspect", sandbox.segments()[0].to_str().unwrap()]);
        assert_eq!(shown.matches("→ initialize id=\"init\"").count(), 2, "{shown}");
        assert!(shown.contains("→ initialize id=\"init\" by the proxy"), "{shown}");
    }
}

/// Lets the opening that comes next succeed.
#[track_caller]
fn agree_again(pair: &Pair) {
    pair.answer_opening(LEGACY, "s2");
    let mut initialized = pair.origin.call();
    assert_eq!(initialized.text(), INITIALIZED);
    initialized.send(accepted());
    pair.origin.call().send(answer("405 Method Not Allowed", &[], ""));
}

#[test]
fn that_a_server_denies_with_status_400() {
    const JSON: &str = "Content-Type: application/json";
    let said = r#""error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}"#;
    for body in [
        format!(r#"{{"jsonrpc":"2.0",{said},"id":null}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"server-error",{said}}}"#),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#.into(),
        "Unknown session".into(),
    ] {
        let mut pair = Pair::open();
        pair.send(call(1, "lost"));
        pair.origin.call().send(answer("400 Bad Request", &[JSON], &body));
        assert_eq!(error_of(&pair.proxy), (1.into(), 5024.into()), "{body}");
        agree_again(&pair);
        pair.ask(2);
        check(&Recording::of(&pair.end()));
    }
}

#[test]
fn no_session_is_opened_again_for_a_400_about_the_request() {
    for (body, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no such session"}}"#, -32000),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"session must be a number"}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no such colour"}}"#, -32000),
    ] {
        let mut pair = Pair::open();
        pair.send(call(1, "wrong"));
        pair.origin.call().send(answer("400 Bad Request", &["Content-Type: application/json"], body));
        assert_eq!(error_of(&pair.proxy), (1.into(), code.into()), "{body}");
        pair.ask(2);
        pair.end();
    }
}

#[test]
fn a_400_soon_after_the_session_was_opened_again_is_about_the_request() {
    let said = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"session name is required"}}"#;
    let denied = || answer("400 Bad Request", &["Content-Type: application/json"], said);
    let mut pair = Pair::open();
    pair.send(call(1, "wrong"));
    pair.origin.call().send(denied());
    assert_eq!(error_of(&pair.proxy), (1.into(), 5024.into()));
    agree_again(&pair);
    pair.send(call(2, "slow"));
    let mut slow = pair.origin.call();
    pair.send(call(3, "wrong"));
    pair.origin.call().send(denied());
    assert_eq!(error_of(&pair.proxy), (3.into(), (-32600).into()));
    slow.send(json_answer(result(2)));
    assert_eq!(pair.proxy.line(), format!("{}\n", result(2)).as_bytes());
    pair.ask(4);
    pair.end();
}

#[test]
fn on_a_connection_that_had_closed() {
    let mut pair = Pair::open();
    pair.send(call(1, "lost"));
    pair.origin.call().send(answer("404 Not Found", &[], ""));
    assert_eq!(error_of(&pair.proxy).0, 1);
    let opening = pair.origin.call();
    assert_eq!(opening.text(), initialize(LEGACY));
    opening.close();
    agree_again(&pair);
    pair.ask(2);
    pair.end();
}

#[test]
fn that_is_refused_again() {
    let mut pair = Pair::open();
    pair.send(call(1, "lost"));
    pair.origin.call().send(answer("404 Not Found", &[], ""));
    assert_eq!(error_of(&pair.proxy).0, 1);
    let refused = r#"{"jsonrpc":"2.0","id":"init","error":{"code":-32000,"message":"not you"}}"#;
    pair.origin.call().send(json_answer(refused));
    pair.ask(2);
    let recording = Recording::of(&pair.end());
    let (asked, answered) = (recording.by_client(), recording.message("not you"));
    let again = asked.iter().find(|it| it.from_proxy).expect("it was sent again");
    assert_eq!((&again.raw[..], answered.correlated_id.as_ref()), (initialize(LEGACY).as_bytes(), Some(&again.id)));
    let kept = recording.events();
    assert!(kept.iter().any(|event| event.contains("could not be opened again")), "{kept:?}");
}

#[test]
fn over_sse() {
    for breaks in [false, true] {
        let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
        let mut proxy = sandbox.run_to("sse", &server.url(), &[]);
        proxy.send(format!("{}\n", initialize(LEGACY)).as_bytes());
        server.accept();
        assert_eq!(server.receive(), initialize(LEGACY));
        server.say(opened(LEGACY));
        assert_eq!(proxy.line(), format!("{}\n", opened(LEGACY)).as_bytes());
        proxy.send(format!("{INITIALIZED}\n").as_bytes());
        assert_eq!(server.receive(), INITIALIZED);
        match breaks {
            true => server.break_off(),
            false => server.end_stream(),
        }
        let has_noticed = |event: &String| event.contains("it is opened again");
        until("the proxy notices", || Recording::of(&sandbox).events().iter().any(has_noticed));
        proxy.send(format!("{}\n", call(1, "later")).as_bytes());
        server.accept();
        assert_eq!(server.receive(), initialize(LEGACY));
        server.say(LOG);
        assert_eq!(proxy.line(), format!("{LOG}\n").as_bytes());
        server.say(opened(LEGACY));
        assert_eq!([server.receive(), server.receive()], [INITIALIZED.to_owned(), call(1, "later")]);
        server.say(result(1));
        assert_eq!(proxy.json()["id"], Value::from(1), "the client hears nothing of the second opening");
        assert!(proxy.end().0.success());
        let recording = Recording::of(&sandbox);
        check(&recording);
        assert_eq!(recording.message(&result(1)).correlated_id, Some(recording.message("later").id.clone()));
    }
}
