//! A stream that is cut anywhere goes on where it was cut: each event comes once, and in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::bridge_kit::{Event, Events, INITIALIZED, LEGACY, Session, expect_stream, initialize, opened};
use crate::http_kit::{
    Call, Client, LAST_CHUNK, Listening, Origin, STREAM, Serving, accepted, answer, call, chunk, get, post, result,
};
use crate::kit::Sandbox;

/// Events of a stream; the last one of a call's is its answer.
const EVENTS: usize = 50;
/// A revision whose clients are given something to go on from before the first message.
const PRIMED: &str = "2025-11-25";

fn notification(at: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"at":{at}}}}}"#)
}

fn progress(at: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{at}}}}}"#)
}

fn notifications() -> Vec<String> {
    (1..=EVENTS).map(notification).collect()
}

/// What comes in answer to the call `id`.
fn answers(id: usize) -> Vec<String> {
    (1..EVENTS).map(progress).chain([result(id)]).collect()
}

/// A client reads `count` messages and then leaves. Comes back with what it read, and with the last id
/// that it saw.
#[track_caller]
fn read_and_leave(mut stream: Client, count: usize) -> (Vec<String>, String) {
    let mut messages = Vec::new();
    let mut last = None;
    while messages.len() < count || last.is_none() {
        let event = stream.next();
        last = event.id.or(last);
        messages.extend(Some(event.data).filter(|data| !data.is_empty()));
    }
    (messages, last.expect("it was just seen"))
}

fn data(events: Vec<Event>) -> impl Iterator<Item = String> {
    events.into_iter().map(|event| event.data).filter(|data| !data.is_empty())
}

#[test]
fn the_stream_of_a_session_in_front_of_a_pipe() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    for cut in 0..EVENTS {
        let session = Session::open_with(&proxy, PRIMED);
        let all = notifications();
        // Either everything was sent before the cut, or the rest comes while nobody is there.
        let (before, after) = all.split_at(if cut % 2 == 0 { EVENTS } else { cut });
        let stream = session.listen(None);
        session.say(before);
        let (mut got, last) = read_and_leave(stream, cut);
        session.say(after);
        let mut rest = session.listen(Some(&last));
        while got.len() < EVENTS {
            got.push(rest.next().data);
        }
        assert_eq!(got, all, "cut after {cut}");
        // And nothing after that.
        session.say(&[notification(0)]);
        assert_eq!(rest.next().data, notification(0), "cut after {cut}");
        assert_eq!(session.delete().status(), 200);
    }
    proxy.end();
}

#[test]
fn the_stream_of_a_call_in_front_of_a_pipe() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    for cut in 0..EVENTS {
        let session = Session::open_with(&proxy, PRIMED);
        let params = r#"{"_meta":{"progressToken":"t"}}"#;
        let asked = format!(r#"{{"jsonrpc":"2.0","id":{cut},"method":"ignore/this","params":{params}}}"#);
        let mut stream = session.hold(&asked, "ignore/this");
        let all = answers(cut);
        let (before, after) = all.split_at(if cut % 2 == 0 { EVENTS } else { cut.max(1) });
        session.say(before);
        expect_stream(&mut stream);
        let (mut got, last) = read_and_leave(stream, cut);
        session.say(after);
        // The answer ends the stream, also the one by which it comes in the end.
        got.extend(data(session.listen(Some(&last)).all()));
        assert_eq!(got, all, "cut after {cut}");
        assert_eq!(session.delete().status(), 200);
    }
    proxy.end();
}

#[test]
fn a_stream_that_is_cut_after_every_event() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut stream = session.hold(&call(1, "ignore/this"), "ignore/this");
    let mut last: Option<String> = None;
    for at in 1..EVENTS {
        session.say(&[notification(at)]);
        match &last {
            None => drop(expect_stream(&mut stream)),
            Some(last) => stream = session.listen(Some(last)),
        }
        let event = stream.next();
        assert_eq!(event.data, notification(at));
        last = event.id;
    }
    session.say(&[result(1)]);
    assert_eq!(data(session.listen(last.as_deref()).all()).collect::<Vec<_>>(), [result(1)]);
    proxy.end();
}

/// A server whose streams break and can be asked for again. The stream of the call `long/N` breaks
/// after N events, and so does that of the session, after as many as `cut` says.
struct Resumable {
    cut: Arc<AtomicUsize>,
}

impl Resumable {
    fn answer(&self, request: &mut Call) {
        let asked = request.asked();
        if asked.starts_with("GET") {
            return match request.head.get("last-event-id") {
                Some(last) => resume(request, &last),
                None => send(request, "general", 0, self.cut.load(Ordering::Relaxed)),
            };
        }
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let headers = ["Content-Type: application/json", "Mcp-Session-Id: s1"];
                request.send(answer("200 OK", &headers, opened(LEGACY)));
            }
            method => match method.strip_prefix("long/").map(|cut| cut.parse().expect("a number")) {
                Some(cut) => send(request, &message["id"].to_string(), 0, cut),
                None => request.send(accepted()),
            },
        }
    }
}

/// Sends the rest of what `last` is an event of.
fn resume(request: &mut Call, last: &str) {
    let (stream, at) = last.split_once('/').expect("an id that was given");
    send(request, stream, at.parse().expect("a number"), EVENTS);
}

/// Sends a stream from one event to another, and breaks off unless that is the last. Whoever it is for
/// may have left.
fn send(request: &mut Call, stream: &str, from: usize, to: usize) {
    let messages = stream.parse().map_or_else(|_| notifications(), answers);
    let mut sent = STREAM.to_vec();
    if from == 0 {
        sent.extend(chunk(format!("id: {stream}/0\nretry: 1\ndata: \n\n")));
    }
    for (at, message) in messages.iter().enumerate().take(to).skip(from) {
        sent.extend(chunk(format!("id: {stream}/{}\ndata: {message}\n\n", at + 1)));
    }
    let is_whole = to == EVENTS;
    sent.extend_from_slice(if is_whole { LAST_CHUNK } else { b"" });
    let _ = request.try_send(sent);
    if !is_whole {
        request.break_off();
    }
}

fn resumable() -> (Serving, Arc<AtomicUsize>) {
    let cut: Arc<AtomicUsize> = Arc::default();
    let server = Resumable { cut: Arc::clone(&cut) };
    (Origin::start().serve(move |request| server.answer(request)), cut)
}

/// Asks for a stream and, wherever it is cut, for the rest. Returns what it says, and how often it was
/// asked for.
#[track_caller]
fn read_through(proxy: &Listening, request: &[u8], leave_after: Option<usize>) -> (Vec<String>, usize) {
    let mut stream = proxy.client();
    stream.send(request);
    expect_stream(&mut stream);
    let (mut got, mut last) = match leave_after {
        Some(count) => {
            let (got, last) = read_and_leave(stream, count);
            (got, Some(last))
        }
        None => {
            let events = stream.until_broken();
            let last = events.last().and_then(|event| event.id.clone());
            (data(events).collect(), last)
        }
    };
    let mut asked = 1;
    while got.len() < EVENTS {
        let mut rest = proxy.client();
        let header = format!("Last-Event-ID: {}", last.expect("something to go on from"));
        rest.send(&get("/mcp", &["Accept: text/event-stream", "Mcp-Session-Id: s1", &header]));
        expect_stream(&mut rest);
        let events = rest.until_broken();
        last = events.last().and_then(|event| event.id.clone());
        got.extend(data(events));
        asked += 1;
    }
    (got, asked)
}

#[test]
fn streams_from_http_to_http() {
    let sandbox = Sandbox::new();
    let (server, cut) = resumable();
    let proxy = sandbox.listen_to("streamable-http", &server.url("/mcp"), &["--quiet"]);
    let session = ["Mcp-Session-Id: s1", "Accept: text/event-stream"];
    for at in 0..EVENTS {
        // The server breaks off.
        let asked = post("/mcp", &session[..1], call(at, &format!("long/{at}")));
        assert_eq!(read_through(&proxy, &asked, None), (answers(at), 2), "the call was cut after {at}");
        cut.store(at, Ordering::Relaxed);
        let listens = get("/mcp", &session);
        assert_eq!(read_through(&proxy, &listens, None), (notifications(), 2), "the session was cut after {at}");
        // The client leaves.
        let asked = post("/mcp", &session[..1], call(at, &format!("long/{EVENTS}")));
        assert_eq!(read_through(&proxy, &asked, Some(at)), (answers(at), 2), "the client left after {at}");
        cut.store(EVENTS, Ordering::Relaxed);
        assert_eq!(read_through(&proxy, &listens, Some(at)), (notifications(), 2), "the client left after {at}");
    }
    proxy.end();
}

#[test]
fn streams_that_the_proxy_resumes_for_a_client_on_a_pipe() {
    let sandbox = Sandbox::new();
    let (server, cut) = resumable();
    cut.store(EVENTS, Ordering::Relaxed);
    let mut proxy = sandbox.run_to("streamable-http", &server.url("/mcp"), &["--quiet"]);
    proxy.send(format!("{}\n", initialize(LEGACY)).as_bytes());
    assert_eq!(proxy.json()["id"], "init");
    for at in 0..=EVENTS {
        proxy.send(format!("{}\n", call(at, &format!("long/{at}"))).as_bytes());
        for expected in answers(at) {
            assert_eq!(proxy.line(), format!("{expected}\n").as_bytes(), "the call was cut after {at}");
        }
    }
    assert!(proxy.end().0.success());
}

#[test]
fn the_stream_of_a_session_that_the_proxy_resumes_for_a_client_on_a_pipe() {
    let (server, cut) = resumable();
    for at in 0..EVENTS {
        let sandbox = Sandbox::new();
        cut.store(at, Ordering::Relaxed);
        let mut proxy = sandbox.run_to("streamable-http", &server.url("/mcp"), &["--quiet"]);
        proxy.send(format!("{}\n{INITIALIZED}\n", initialize(LEGACY)).as_bytes());
        assert_eq!(proxy.json()["id"], "init");
        for expected in notifications() {
            assert_eq!(proxy.line(), format!("{expected}\n").as_bytes(), "the stream was cut after {at}");
        }
        assert!(proxy.end().0.success());
    }
}
