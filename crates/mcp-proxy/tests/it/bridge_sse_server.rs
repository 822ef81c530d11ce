//! Servers of the older HTTP transport, behind clients on a pipe and clients of Streamable HTTP.

use serde_json::{Value, json};

use crate::bridge_kit::{Events, INITIALIZED, LEGACY, SseServer, error_of, expect_stream, initialize, opened};
use crate::http_kit::{
    Client, Listening, Recording, STREAM, accepted, answer, bare, call, chunk, event, get, json as json_answer, post,
    result,
};
use crate::kit::{Running, Sandbox, until};

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;

fn progress(at: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{at}}}}}"#)
}

fn send(proxy: &mut Running, message: impl AsRef<str>) {
    proxy.send(format!("{}\n", message.as_ref()).as_bytes());
}

/// A client on a pipe that has begun.
#[track_caller]
fn open_pipe(sandbox: &Sandbox, server: &mut SseServer, more: &[&str]) -> Running {
    let mut proxy = sandbox.run_to("sse", &server.url(), more);
    server.origin.saw_nothing();
    send(&mut proxy, initialize(LEGACY));
    server.accept();
    assert_eq!(server.receive(), initialize(LEGACY));
    server.say(opened(LEGACY));
    assert_eq!(proxy.line(), format!("{}\n", opened(LEGACY)).as_bytes());
    send(&mut proxy, INITIALIZED);
    assert_eq!(server.receive(), INITIALIZED);
    proxy
}

/// Everything is well.
#[track_caller]
fn works(proxy: &mut Running, server: &mut SseServer, id: u64) {
    send(proxy, call(id, "good"));
    assert_eq!(server.receive(), call(id, "good"));
    server.say(result(id));
    assert_eq!(proxy.line(), format!("{}\n", result(id)).as_bytes());
}

/// Waits until the proxy has noticed that the stream is gone.
#[track_caller]
fn until_noticed(sandbox: &Sandbox, times: usize) {
    let notices = || Recording::of(sandbox).events().iter().filter(|it| it.contains("closed the stream")).count();
    until("the proxy notices", || notices() >= times);
}

#[test]
fn a_server_says_what_it_likes_and_asks_its_client_on_a_pipe() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = open_pipe(&sandbox, &mut server, &[]);
    send(&mut proxy, call(1, "x"));
    // The answer may come before the word that the call was taken.
    let mut posted = server.posted();
    for message in [progress(1), ASK.to_owned(), CHANGED.to_owned()] {
        server.say(&message);
        assert_eq!(proxy.line(), format!("{message}\n").as_bytes());
    }
    send(&mut proxy, r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    assert_eq!(server.receive(), r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    server.say(result(1));
    assert_eq!(proxy.line(), format!("{}\n", result(1)).as_bytes());
    posted.send(accepted());
    // Comments, other events and empty ones are no messages.
    server.stream().send(chunk(": keep-alive\n\nevent: ping\ndata: {}\n\ndata:\n\n"));
    works(&mut proxy, &mut server, 2);
    assert!(proxy.end().0.success());
    let recording = Recording::of(&sandbox);
    assert_eq!(recording.message(&result(1)).correlated_id, Some(recording.message(&call(1, "x")).id.clone()));
}

#[test]
fn a_message_that_the_server_does_not_take_fails_alone() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = open_pipe(&sandbox, &mut server, &[]);
    for (at, status) in ["400 Bad Request", "401 Unauthorized", "404 Not Found", "500 Oh"].into_iter().enumerate() {
        send(&mut proxy, call(at, "x"));
        server.posted().send(answer(status, &["Content-Type: text/html"], "<p>no such session</p>"));
        let failed = proxy.json();
        let code = if status.starts_with("401") { 5025 } else { 5021 };
        assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(at), &json!(code)));
        assert!(failed["error"]["message"].as_str().is_some_and(|text| text.contains(&status[..3])), "{failed}");
        // What asks for nothing has nobody to tell.
        send(&mut proxy, CHANGED);
        server.posted().send(answer(status, &[], ""));
        works(&mut proxy, &mut server, 100);
    }
    // Some servers have an answer of their own here, which means nothing.
    send(&mut proxy, call(9, "x"));
    server.posted().send(json_answer(result(9)));
    server.say(result(9));
    assert_eq!(proxy.line(), format!("{}\n", result(9)).as_bytes());
    works(&mut proxy, &mut server, 10);
    // The connection breaks instead.
    send(&mut proxy, call(11, "x"));
    server.posted().reset();
    assert_eq!(error_of(&proxy), (json!(11), json!(5023)));
    works(&mut proxy, &mut server, 12);
    assert!(proxy.end().0.success());
    let ends = Recording::of(&sandbox).ends();
    assert!(ends.iter().any(|how| how.contains("no such session")), "{ends:?}");
}

#[test]
fn a_stream_that_ends_fails_what_is_open_and_is_opened_anew() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = open_pipe(&sandbox, &mut server, &[]);
    for round in 1..=3 {
        send(&mut proxy, call(1, "one"));
        send(&mut proxy, call("\"two\"", "two"));
        let mut received = [server.receive(), server.receive()];
        received.sort();
        match round % 2 {
            0 => server.break_off(),
            _ => server.end_stream(),
        }
        let mut failed = [error_of(&proxy), error_of(&proxy)];
        failed.sort_by_key(|(id, _)| id.is_string());
        assert_eq!(failed, [(json!(1), json!(5023)), (json!("two"), json!(5023))]);
        until_noticed(&sandbox, round);
        // The session is taken up again, with or without something to send.
        server.accept();
        assert_eq!(server.receive(), initialize(LEGACY));
        server.say(opened(LEGACY));
        assert_eq!(server.receive(), INITIALIZED);
        works(&mut proxy, &mut server, 7);
    }
    assert!(proxy.end().0.success());
}

/// Without a session there is nothing to take up again.
#[test]
fn a_stream_that_ends_before_a_session_began_waits_for_the_client() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = sandbox.run_to("sse", &server.url(), &[]);
    for round in 1..=2 {
        send(&mut proxy, call(1, "x"));
        server.accept();
        assert_eq!(server.receive(), call(1, "x"));
        server.end_stream();
        assert_eq!(error_of(&proxy), (json!(1), json!(5023)));
        until_noticed(&sandbox, round);
    }
    server.origin.saw_nothing();
    send(&mut proxy, call(2, "x"));
    server.accept();
    assert_eq!(server.receive(), call(2, "x"));
    server.say(result(2));
    assert_eq!(proxy.json()["id"], 2);
    assert!(proxy.end().0.success());
}

#[test]
fn a_server_that_has_no_stream_or_sends_us_elsewhere_gets_no_message() {
    let elsewhere = "event: endpoint\ndata: http://evil.example/message\n\n";
    for (opened, code) in [
        (answer("404 Not Found", &[], ""), 5021),
        (answer("401 Unauthorized", &["WWW-Authenticate: Bearer"], ""), 5025),
        (answer("200 OK", &["Content-Type: text/html"], "<p>hello</p>"), 5021),
        ([STREAM, &chunk(elsewhere)].concat(), 5022),
        ([STREAM, &chunk("event: endpoint\ndata: //evil.example/m\n\n")].concat(), 5022),
        ([STREAM, &chunk(": nothing\n\n"), b"0\r\n\r\n"].concat(), 5023),
    ] {
        let (sandbox, server) = (Sandbox::new(), SseServer::start());
        let mut proxy = sandbox.run_to("sse", &server.url(), &["--header", "X-Key: secret"]);
        send(&mut proxy, call(1, "x"));
        let mut stream = server.origin.call();
        assert_eq!(stream.head.get("x-key").as_deref(), Some("secret"));
        stream.send(&opened);
        assert_eq!(error_of(&proxy), (json!(1), json!(code)), "{}", String::from_utf8_lossy(&opened));
        proxy.end();
        server.origin.saw_nothing();
    }
}

#[test]
fn at_the_end_of_input_open_calls_finish() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = open_pipe(&sandbox, &mut server, &[]);
    send(&mut proxy, call(1, "slow"));
    send(&mut proxy, CHANGED);
    proxy.close_stdin();
    let mut received = [server.receive(), server.receive()];
    received.sort();
    assert_eq!(received, [call(1, "slow"), CHANGED.to_owned()]);
    server.say(progress(1));
    server.say(result(1));
    assert_eq!([proxy.line(), proxy.line()], [progress(1), result(1)].map(|it| format!("{it}\n").into_bytes()));
    let (status, said) = proxy.end();
    assert!(status.success(), "{said}");
    server.stream().until_closed();
}

#[test]
fn an_event_that_is_too_large_fails_its_call_alone() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = open_pipe(&sandbox, &mut server, &["--message-limit", "100000"]);
    send(&mut proxy, call(1, "x"));
    assert_eq!(server.receive(), call(1, "x"));
    server.say(format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(200_000)));
    assert_eq!(error_of(&proxy), (json!(1), json!(5130)));
    works(&mut proxy, &mut server, 2);
    assert!(proxy.end().0.success());
}

const NO_MESSAGES: [&str; 5] = ["hello", "\"text\"", "7", "null", "}{"];

#[test]
fn event_data_that_is_no_message_reaches_no_client() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = open_pipe(&sandbox, &mut server, &[]);
    NO_MESSAGES.iter().for_each(|data| server.say(data));
    // The next line is the answer.
    works(&mut proxy, &mut server, 1);
    assert!(proxy.end().0.success());
    let recording = Recording::of(&sandbox);
    let noise = recording.by_server().into_iter().filter(|message| message.noise);
    let noise: Vec<_> = noise.map(|message| String::from_utf8_lossy(&message.raw).into_owned()).collect();
    assert_eq!(noise, NO_MESSAGES);

    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &[]);
    let session = open_http(&proxy, &mut server);
    let mut client = hold(&proxy, &session, &server, &call(1, "x"));
    NO_MESSAGES.iter().for_each(|data| server.say(data));
    server.say(result(1));
    assert_eq!(client.response().body, result(1).as_bytes(), "no stream was opened for noise");
    proxy.end();
}

/// A client of Streamable HTTP that has begun, with the header that names its session.
#[track_caller]
fn open_http(proxy: &Listening, server: &mut SseServer) -> String {
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], initialize(LEGACY)));
    server.accept();
    assert_eq!(server.receive(), initialize(LEGACY));
    server.say(opened(LEGACY));
    let response = client.response();
    assert_eq!(response.body, opened(LEGACY).as_bytes());
    let session = format!("Mcp-Session-Id: {}", response.head.get("mcp-session-id").expect("a session begins"));
    client.send(&post("/mcp", &[&session], INITIALIZED));
    assert_eq!(server.receive(), INITIALIZED);
    assert_eq!(client.response().status(), 202);
    session
}

/// Makes a call that the server has got.
#[track_caller]
fn hold(proxy: &Listening, session: &str, server: &SseServer, message: &str) -> Client {
    let mut client = proxy.client();
    client.send(&post("/mcp", &[session], message));
    assert_eq!(server.receive(), message);
    client
}

#[test]
fn what_a_server_says_finds_its_exchange() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &[]);
    let session = open_http(&proxy, &mut server);
    let mut general = proxy.client();
    general.send(&get("/mcp", &["Accept: text/event-stream", &session]));
    expect_stream(&mut general);
    // An answer by itself is JSON, and its client need not be the one that asked last.
    let (mut one, mut two) =
        (hold(&proxy, &session, &server, &call(1, "one")), hold(&proxy, &session, &server, &call(2, "two")));
    server.say(ASK);
    assert_eq!(general.next().data, ASK, "nobody can tell whose it is");
    server.say(result(1));
    assert_eq!(one.response().body, result(1).as_bytes());
    // Now there is only one.
    server.say(ASK);
    expect_stream(&mut two);
    assert_eq!(two.next().data, ASK);
    let mut reply = hold(&proxy, &session, &server, r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    assert_eq!(reply.response().status(), 202);
    server.say(CHANGED);
    assert_eq!(general.next().data, CHANGED);
    server.say(result(2));
    assert_eq!(two.all().into_iter().map(|event| event.data).collect::<Vec<_>>(), [result(2)]);
    drop(general);
    proxy.end();
}

#[test]
fn each_session_has_a_stream_of_its_own_which_ends_with_it() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &[]);
    for _ in 0..3 {
        let session = open_http(&proxy, &mut server);
        let waiting = hold(&proxy, &session, &server, &call(1, "open"));
        let ended = proxy.client().ask(&bare("DELETE", "/mcp", &[&session]));
        assert_eq!(ended.status(), 200);
        server.stream().until_closed();
        drop(waiting);
        assert_eq!(proxy.client().ask(&post("/mcp", &[&session], call(2, "x"))).status(), 404);
    }
    proxy.end();
}

#[test]
fn a_stream_that_ends_costs_a_session_its_calls_only() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &[]);
    let session = open_http(&proxy, &mut server);
    let mut plain = hold(&proxy, &session, &server, &call(1, "plain"));
    let mut streaming = hold(
        &proxy,
        &session,
        &server,
        r#"{"jsonrpc":"2.0","id":2,"method":"x","params":{"_meta":{"progressToken":1}}}"#,
    );
    server.say(progress(1));
    expect_stream(&mut streaming);
    assert_eq!(streaming.next().data, progress(1));
    server.break_off();
    let failed = plain.response();
    assert_eq!((failed.status(), failed.error()), (200, (5023, json!(1))));
    let last: Vec<Value> = streaming.all().iter().map(|event| event.json()["error"]["code"].clone()).collect();
    assert_eq!(last, [5023]);
    // The same session goes on.
    server.accept();
    assert_eq!(server.receive(), initialize(LEGACY));
    server.say(opened(LEGACY));
    assert_eq!(server.receive(), INITIALIZED);
    let mut next = hold(&proxy, &session, &server, &call(3, "next"));
    server.say(result(3));
    assert_eq!(next.response().body, result(3).as_bytes());
    proxy.end();
}

#[test]
fn a_message_that_the_server_does_not_take_fails_for_its_client_alone() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &[]);
    let session = open_http(&proxy, &mut server);
    let mut waiting = hold(&proxy, &session, &server, &call(1, "waiting"));
    let mut refused = proxy.client();
    refused.send(&post("/mcp", &[&session], call(2, "refused")));
    server.posted().send(answer("500 Oh", &[], "no"));
    assert_eq!(refused.response().error(), (5021, json!(2)));
    server.say(result(1));
    assert_eq!(waiting.response().body, result(1).as_bytes());
    proxy.end();
}

#[test]
fn a_legacy_call_goes_on_without_its_client_and_can_be_asked_for() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &[]);
    let session = open_http(&proxy, &mut server);
    let asked = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":1}}}"#;
    let mut left = hold(&proxy, &session, &server, asked);
    server.stream().send(event(progress(1)));
    expect_stream(&mut left);
    let last = left.next().id.expect("it has an id");
    drop(left);
    server.say(progress(2));
    server.say(result(1));
    let mut rest = proxy.client();
    let last = format!("Last-Event-ID: {last}");
    rest.send(&get("/mcp", &["Accept: text/event-stream", &session, &last]));
    expect_stream(&mut rest);
    assert_eq!(rest.all().into_iter().map(|event| event.data).collect::<Vec<_>>(), [progress(2), result(1)]);
    proxy.end();
}
