//! Across transports too the bytes that a client sends are the bytes that its server gets, and the
//! bytes that are recorded.

use std::path::Path;

use mcp_wire::Kind;

use crate::bridge_kit::{LEGACY, Pair, Session, SseClient, SseServer, initialize, opened};
use crate::http_kit::{Call, Listening, Origin, Recording, accepted, answer, bare, post};
use crate::identity::{assert_same, corpus, lines_of_events, without_bom};
use crate::kit::{Sandbox, until};

type Corpus = Vec<(String, Vec<u8>)>;

/// The messages as they were recorded, the opening aside.
fn check_recorded(sandbox: &Sandbox, corpus: &Corpus) {
    let recording = Recording::of(sandbox);
    let opening = initialize(LEGACY);
    let mut messages = recording.by_client();
    messages.retain(|message| !message.from_proxy && message.raw != opening.as_bytes());
    assert_eq!(messages.len(), corpus.len());
    for ((name, expected), message) in corpus.iter().zip(messages) {
        assert!(message.raw == expected, "{name} in the recording");
    }
}

/// What a client on a pipe can send; there a byte order mark is no part of the message.
fn lines() -> Corpus {
    corpus().into_iter().map(|(name, message)| (name, without_bom(&message).to_vec())).collect()
}

/// What a listener takes for a server on a pipe: all but a body behind a byte order mark, which it refuses.
fn bodies_for_pipes() -> Corpus {
    lines_of_events().into_iter().filter(|(_, message)| without_bom(message).len() == message.len()).collect()
}

/// The next POST; a stream that the proxy asks for is refused on the way.
#[track_caller]
fn next_post(origin: &Origin) -> Call {
    loop {
        let mut request = origin.call();
        if request.asked().starts_with("POST") {
            return request;
        }
        request.send(answer("405 Method Not Allowed", &[], ""));
    }
}

#[test]
fn from_a_pipe_to_http() {
    let mut pair = Pair::start(&["--quiet"]);
    pair.send(initialize(LEGACY));
    pair.answer_opening(LEGACY, "s1");
    let lines = lines();
    for (name, message) in &lines {
        pair.proxy.send(&[message, &b"\n"[..]].concat());
        let mut request = next_post(&pair.origin);
        assert!(request.body == *message, "{name}");
        request.send(accepted());
    }
    let sandbox = pair.end();
    check_recorded(&sandbox, &lines);
}

#[test]
fn from_a_pipe_to_sse() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let mut proxy = sandbox.run_to("sse", &server.url(), &["--quiet"]);
    let lines = lines();
    for (at, (name, message)) in lines.iter().enumerate() {
        proxy.send(&[message, &b"\n"[..]].concat());
        if at == 0 {
            server.accept();
        }
        assert!(server.receive_bytes() == *message, "{name}");
    }
    // Calls that nobody answers get their time, and there is no need to wait for that.
    proxy.terminate();
    proxy.end();
    check_recorded(&sandbox, &lines);
}

#[test]
fn from_sse_to_a_pipe() {
    let sandbox = Sandbox::new();
    let kept = sandbox.path("kept");
    let proxy = sandbox.listen_to_fixture(&["keep", kept.to_str().unwrap()], &["--quiet"]);
    let client = SseClient::open(&proxy);
    let lines = bodies_for_pipes();
    for (_, message) in &lines {
        client.tell(message);
    }
    drop(client);
    let expected: Vec<u8> = lines.iter().flat_map(|(_, message)| [message, &b"\n"[..]].concat()).collect();
    until("the server has everything", || std::fs::metadata(&kept).is_ok_and(|it| it.len() >= expected.len() as u64));
    assert_same(&std::fs::read(&kept).unwrap(), &expected);
    proxy.end();
    check_recorded(&sandbox, &lines);
}

#[test]
fn from_sse_to_http() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let client = SseClient::open(&proxy);
    client.tell(initialize(LEGACY));
    origin.call().send(answer("200 OK", &["Content-Type: application/json"], opened(LEGACY)));
    let corpus = corpus();
    for (name, message) in &corpus {
        client.tell(message);
        let mut request = next_post(&origin);
        assert!(request.body == *message, "{name}");
        request.send(accepted());
    }
    drop(client);
    proxy.end();
    check_recorded(&sandbox, &corpus);
}

/// Posts a message and waits for no answer.
fn send(proxy: &Listening, session: &str, message: &[u8]) -> crate::http_kit::Client {
    let mut client = proxy.client();
    client.send(&post("/mcp", &[&format!("Mcp-Session-Id: {session}")], message));
    client
}

/// Whether it keeps an id busy, which the next message of the corpus may use as well.
fn asks(message: &[u8]) -> bool {
    matches!(mcp_wire::scan::glance(message).kind, Kind::Request | Kind::Batch)
}

#[test]
fn from_http_to_a_pipe() {
    let sandbox = Sandbox::new();
    let kept = sandbox.path("kept");
    let proxy = sandbox.listen_to_fixture(&["puppet", kept.to_str().unwrap()], &["--quiet"]);
    let lines = bodies_for_pipes();
    let mut session: Option<(Session<'_>, Vec<u8>)> = None;
    for (name, message) in &lines {
        let (open, mut expected) =
            session.take().unwrap_or_else(|| (Session::open(&proxy), format!("{}\n", initialize(LEGACY)).into_bytes()));
        let client = send(&proxy, &open.id, message);
        expected.extend_from_slice(message);
        expected.push(b'\n');
        let path = format!("{}.{}", kept.display(), open.pid);
        until(name, || std::fs::metadata(Path::new(&path)).is_ok_and(|it| it.len() >= expected.len() as u64));
        assert_same(&std::fs::read(&path).unwrap(), &expected);
        drop(client);
        if asks(message) {
            assert_eq!(open.delete().status(), 200);
        } else {
            session = Some((open, expected));
        }
    }
    proxy.end();
    check_recorded(&sandbox, &lines);
}

#[test]
fn from_http_to_sse() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &["--quiet"]);
    let corpus = corpus();
    let mut session: Option<String> = None;
    for (name, message) in &corpus {
        let open = session.take().unwrap_or_else(|| {
            let mut client = proxy.client();
            client.send(&post("/mcp", &[], initialize(LEGACY)));
            server.accept();
            assert_eq!(server.receive(), initialize(LEGACY));
            server.say(opened(LEGACY));
            client.response().head.get("mcp-session-id").expect("a session begins")
        });
        let client = send(&proxy, &open, message);
        assert!(server.receive_bytes() == *message, "{name}");
        drop(client);
        if asks(message) {
            let end = bare("DELETE", "/mcp", &[&format!("Mcp-Session-Id: {open}")]);
            assert_eq!(proxy.client().ask(&end).status(), 200);
        } else {
            session = Some(open);
        }
    }
    proxy.end();
    check_recorded(&sandbox, &corpus);
}
