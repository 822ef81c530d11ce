//! Over HTTP too the bytes that arrive are the bytes that leave, and the bytes that are recorded.

use std::thread;

use mcp_store::Transport;

use crate::http_kit::{LAST_CHUNK, Origin, Recording, STREAM, accepted, chunk, event, get, post};
use crate::identity::{assert_same, corpus, lines_of_events};
use crate::kit::Sandbox;

/// A request with a message whose length is not said beforehand.
fn post_in_chunks(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    [head.into_bytes(), in_chunks(body)].concat()
}

/// Cut where nobody would: in the middle of a letter, or of a number.
fn in_chunks(body: &[u8]) -> Vec<u8> {
    let mut chunks: Vec<u8> = body.chunks(body.len() / 3 + 1).flat_map(chunk).collect();
    chunks.extend_from_slice(LAST_CHUNK);
    chunks
}

#[test]
fn bodies_both_ways() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let corpus = corpus();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = proxy.client();
            for (at, (name, message)) in corpus.iter().enumerate() {
                client.send(&if at % 2 == 0 { post("/mcp", &[], message) } else { post_in_chunks("/mcp", message) });
                let response = client.response();
                assert_eq!((response.status(), response.is_whole), (200, true), "{name}");
                assert_same(&response.body, message);
            }
        });
        for (at, (_, message)) in corpus.iter().enumerate() {
            let mut call = origin.call();
            assert_same(&call.body, message);
            let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
            // A request that was chunked is answered with its length, and the other way round.
            if at % 2 == 0 {
                call.send(format!("{json}Transfer-Encoding: chunked\r\n\r\n"));
                call.send(in_chunks(message));
            } else {
                call.send(format!("{json}Content-Length: {}\r\n\r\n", message.len()));
                call.send(message);
            }
        }
    });
    proxy.end();
    check_recorded(&Recording::of(&sandbox), &corpus, Transport::StreamableHttp);
}

fn check_recorded(recording: &Recording, corpus: &[(String, Vec<u8>)], transport: Transport) {
    for messages in [recording.by_client(), recording.by_server()] {
        assert_eq!(messages.len(), corpus.len());
        for ((name, expected), message) in corpus.iter().zip(messages) {
            assert!(message.raw == expected, "{name} in the recording");
            assert_eq!((message.transport, message.exchange.is_some()), (transport, true), "{name}");
        }
    }
    assert_eq!(recording.events(), Vec::<String>::new());
    assert!(recording.ends().iter().all(String::is_empty), "{:?}", recording.ends());
}

#[test]
fn events_of_an_answer() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let lines = lines_of_events();
    thread::scope(|scope| {
        let proxy = &proxy;
        let lines = &lines;
        scope.spawn(move || {
            let mut client = proxy.client();
            client.send(&post("/mcp", &[], r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#));
            assert_eq!(client.head().get("content-type").as_deref(), Some("text/event-stream"));
            for (_, message) in lines {
                let expected = [b"data: ", message.as_slice(), b"\n\n"].concat();
                assert_same(&client.body(expected.len()), &expected);
            }
            assert_eq!(client.rest(), (Vec::new(), true));
        });
        let mut call = origin.call();
        call.send(STREAM);
        for (_, message) in lines {
            call.send(event(message));
        }
        call.send(LAST_CHUNK);
    });
    proxy.end();
    let recording = Recording::of(&sandbox);
    let messages = recording.by_server();
    assert_eq!(messages.len(), lines.len());
    for ((name, expected), message) in lines.iter().zip(messages) {
        assert!(message.raw == expected, "{name} in the recording");
    }
}

#[test]
fn messages_and_events_of_the_older_transport() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let corpus = corpus();
    let lines = lines_of_events();
    thread::scope(|scope| {
        let (proxy, corpus, lines) = (&proxy, &corpus, &lines);
        scope.spawn(move || {
            let mut stream = proxy.client();
            stream.send(&get("/sse", &["Accept: text/event-stream"]));
            assert_eq!(stream.head().status(), 200);
            let endpoint = stream.message();
            let mut client = proxy.client();
            for (at, (name, message)) in corpus.iter().enumerate() {
                client.send(&if at % 2 == 0 {
                    post(&endpoint, &[], message)
                } else {
                    post_in_chunks(&endpoint, message)
                });
                assert_eq!(client.response().status(), 202, "{name}");
            }
            for (_, message) in lines {
                let expected = [b"data: ", message.as_slice(), b"\n\n"].concat();
                assert_same(&stream.body(expected.len()), &expected);
            }
            assert_eq!(stream.rest(), (Vec::new(), true));
        });
        let mut stream = origin.call();
        stream.send(STREAM);
        stream.send(chunk("event: endpoint\ndata: /messages?id=7\n\n"));
        for (_, message) in corpus {
            let mut call = origin.call();
            assert_eq!(call.asked(), "POST /messages?id=7");
            assert_same(&call.body, message);
            call.send(accepted());
        }
        for (_, message) in lines {
            stream.send(event(message));
        }
        stream.send(LAST_CHUNK);
    });
    proxy.end();
    let recording = Recording::of(&sandbox);
    for (messages, expected) in [(recording.by_client(), &corpus), (recording.by_server(), &lines)] {
        assert_eq!(messages.len(), expected.len());
        for ((name, expected), message) in expected.iter().zip(messages) {
            assert!(message.raw == expected, "{name} in the recording");
            assert_eq!(message.transport, Transport::Sse);
        }
    }
}
