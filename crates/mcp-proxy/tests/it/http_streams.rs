//! Streams pass as they come, to as many clients as there are, and outlive those who leave only where
//! the protocol says so.

use std::sync::Barrier;
use std::thread;

use crate::http_kit::{
    Call, Client, LAST_CHUNK, Listening, MODERN, Origin, Recording, STREAM, accepted, answer, bare, call, chunk, event,
    get, is_stuck, json, post, result,
};
use crate::kit::{Sandbox, descriptors, peak_bytes, until};

const MIB: usize = 1 << 20;

fn http(sandbox: &Sandbox, origin: &Origin, more: &[&str]) -> Listening {
    sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[&["--quiet"], more].concat())
}

/// A client with a stream from its server, over either transport.
fn open_stream(transport: &str, proxy: &Listening, origin: &Origin) -> (Client, Call) {
    let mut client = proxy.client();
    client.send(&if transport == "sse" { get("/sse", &[]) } else { post("/mcp", &[], call(1, "x")) });
    let mut stream = origin.call();
    stream.send(STREAM);
    assert_eq!(client.head().status(), 200);
    (client, stream)
}

#[test]
fn each_event_arrives_before_the_next_is_sent() {
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        let (mut client, mut stream) = open_stream(transport, &proxy, &origin);
        for id in 0..100 {
            let text = format!("id: {id}\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"n{id}\"}}\n\n");
            stream.send(chunk(&text));
            assert_eq!(client.event(), text);
        }
        stream.send(chunk(": keep-alive\n\n"));
        assert_eq!(client.event(), ": keep-alive\n\n");
        stream.send(LAST_CHUNK);
        assert_eq!(client.rest(), (Vec::new(), true));
        proxy.end();
        assert_eq!(Recording::of(&sandbox).by_server().len(), 100);
    }
}

#[test]
fn a_body_arrives_as_far_as_it_was_sent() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin, &[]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], call(1, "x")));
    let mut reached = origin.call();
    let body = result(1);
    reached
        .send(format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len()));
    assert_eq!(client.head().status(), 200, "the head does not wait for the body");
    for byte in body.as_bytes() {
        reached.send([*byte]);
        assert_eq!(client.body(1), [*byte]);
    }
    proxy.end();
}

#[test]
fn a_slow_reader_loses_nothing_and_costs_little() {
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        let (mut client, mut stream) = open_stream(transport, &proxy, &origin);
        let message =
            |id: usize| format!(r#"{{"jsonrpc":"2.0","method":"n","params":[{id},"{}"]}}"#, "x".repeat(64 * 1024));
        let writer = thread::spawn(move || {
            for id in 0..1024 {
                stream.send(event(message(id)));
            }
            stream.send(LAST_CHUNK);
        });
        // Nobody reads until the server cannot go on.
        until("the server is held up", || is_stuck(client.tcp()));
        for id in 0..1024 {
            let expected = format!("data: {}\n\n", message(id));
            assert!(client.body(expected.len()) == expected.as_bytes(), "event {id}");
        }
        assert_eq!(client.rest(), (Vec::new(), true));
        writer.join().unwrap();
        let peak = peak_bytes(proxy.pid());
        assert!(peak < 48 * MIB as u64, "{transport}: {peak} bytes");
        proxy.end();
        assert_eq!(Recording::of(&sandbox).by_server().len(), 1024);
    }
}

#[test]
fn a_large_answer_passes_though_it_is_too_large_to_record() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin, &["--message-limit", "1048576"]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], call(1, "x")));
    let mut reached = origin.call();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(64 * MIB));
    let sent = body.clone();
    let writer = thread::spawn(move || reached.send(json(sent)));
    let response = client.response();
    assert!(response.body == body.as_bytes() && response.is_whole);
    writer.join().unwrap();
    let peak = peak_bytes(proxy.pid());
    assert!(peak < 32 * MIB as u64, "{peak} bytes");
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!(recording.by_server().len(), 0);
    assert!(recording.events()[0].contains("was passed on unrecorded"), "{:?}", recording.events());
}

#[test]
fn a_large_event_passes_though_it_is_too_large_to_record() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin, &["--message-limit", "1048576"]);
    let (mut client, mut stream) = open_stream("streamable-http", &proxy, &origin);
    let large = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}\n\n", "x".repeat(4 * MIB));
    let sent = large.clone();
    let writer = thread::spawn(move || {
        stream.send(chunk(sent));
        stream.send(event(r#"{"jsonrpc":"2.0","method":"after"}"#));
        stream.send(LAST_CHUNK);
    });
    assert!(client.body(large.len()) == large.as_bytes());
    assert_eq!(client.message(), r#"{"jsonrpc":"2.0","method":"after"}"#);
    writer.join().unwrap();
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!(recording.by_server().len(), 1, "nothing is recorded that was not sent");
    assert!(recording.events()[0].contains("was passed on unrecorded"), "{:?}", recording.events());
}

#[test]
fn a_large_event_of_the_older_transport_fails_its_call_alone() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet", "--message-limit", "1048576"]);
    let (mut client, mut stream) = open_stream("sse", &proxy, &origin);
    stream.send(chunk("event: endpoint\ndata: /m\n\n"));
    let endpoint = client.message();
    let mut poster = proxy.client();
    poster.send(&post(&endpoint, &[], call(1, "x")));
    origin.call().send(accepted());
    poster.response();
    let writer = thread::spawn(move || {
        stream.send(event(format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(4 * MIB))));
        stream.send(event(r#"{"jsonrpc":"2.0","method":"after"}"#));
        stream
    });
    let failed: serde_json::Value = serde_json::from_str(&client.message()).unwrap();
    assert_eq!((&failed["id"], &failed["error"]["code"]), (&1.into(), &5130.into()));
    assert_eq!(client.message(), r#"{"jsonrpc":"2.0","method":"after"}"#);
    drop(writer.join().unwrap());
    drop(client);
    proxy.end();
}

#[test]
fn two_hundred_clients_with_the_same_id_get_their_own_answers() {
    const CLIENTS: usize = 200;
    const CALLS: usize = 5;
    for headers in [&[][..], &["Mcp-Session-Id: the-same"], &[MODERN]] {
        let sandbox = Sandbox::new();
        let all_there = Barrier::new(CLIENTS);
        let origin = Origin::start().serve(move |reached| {
            // Nobody is answered before everybody has asked.
            all_there.wait();
            let text = reached.text();
            let (_, mark) = text.split_once("mark-").unwrap();
            let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"mark-{}"}}"#, mark.trim_end_matches("\"}"));
            if mark.len() % 2 == 0 {
                reached.send(json(answer));
            } else {
                reached.send([STREAM, &event(answer), LAST_CHUNK].concat());
            }
        });
        let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let proxy = &proxy;
                scope.spawn(move || {
                    let mut connection = proxy.client();
                    for number in 0..CALLS {
                        let mark = format!("mark-{client}-{number}");
                        let asked = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{mark}"}}"#);
                        let response = connection.ask(&post("/mcp", headers, asked));
                        let text = String::from_utf8(response.body).unwrap();
                        assert!(text.contains(&format!("\"{mark}\"")), "{mark}: {text}");
                    }
                });
            }
        });
        assert_eq!(origin.connections(), CLIENTS, "no more connections than calls at a time");
        proxy.end();
        let recording = Recording::of(&sandbox);
        assert_eq!((recording.by_client().len(), recording.by_server().len()), (CLIENTS * CALLS, CLIENTS * CALLS));
        let asked: std::collections::HashMap<&str, String> = recording
            .by_client()
            .into_iter()
            .map(|request| (request.id.as_str(), String::from_utf8_lossy(&request.raw).into_owned()))
            .collect();
        for answer in recording.by_server() {
            let text = String::from_utf8_lossy(&answer.raw).into_owned();
            let mark = text.split('"').find(|part| part.starts_with("mark-")).unwrap();
            let request = &asked[answer.correlated_id.as_deref().unwrap()];
            assert!(request.contains(&format!("\"{mark}\"")), "{text} answers {request}");
        }
    }
}

/// Waits until the proxy has noticed that a client is gone.
fn until_noticed(proxy: &Listening, client: Client) {
    let before = descriptors(proxy.pid());
    drop(client);
    until("the proxy lets go of its client", || descriptors(proxy.pid()) < before);
}

#[test]
fn a_legacy_call_goes_on_without_its_client_and_its_answer_is_kept() {
    for headers in [&[][..], &["MCP-Protocol-Version: 2025-11-25"], &["MCP-Protocol-Version: nonsense"]] {
        for mid_stream in [false, true] {
            let sandbox = Sandbox::new();
            let origin = Origin::start();
            let proxy = http(&sandbox, &origin, &[]);
            let mut client = proxy.client();
            client.send(&post("/mcp", headers, call(1, "x")));
            let mut reached = origin.call();
            if mid_stream {
                reached.send(STREAM);
                reached.send(event(r#"{"jsonrpc":"2.0","method":"first"}"#));
                client.head();
                client.message();
            }
            until_noticed(&proxy, client);
            if mid_stream {
                reached.send(event(result(1)));
                reached.send(LAST_CHUNK);
            } else {
                reached.send(json(result(1)));
            }
            // The connection is as good as any for the next client.
            let mut other = proxy.client();
            other.send(&post("/mcp", headers, call(2, "next")));
            let mut next = origin.call();
            next.send(json(result(2)));
            assert_eq!(other.response().body, result(2).as_bytes());
            proxy.end();
            let recording = Recording::of(&sandbox);
            let (asked, answered) = (recording.message(&call(1, "x")), recording.message(&result(1)));
            assert_eq!(answered.correlated_id.as_ref(), Some(&asked.id));
            assert!(recording.ends().contains(&"client left".to_owned()), "{:?}", recording.ends());
        }
    }
}

#[test]
fn a_modern_call_ends_with_its_client() {
    for headers in [MODERN, "MCP-Protocol-Version: 2027-01-01"] {
        for mid_stream in [false, true] {
            let sandbox = Sandbox::new();
            let origin = Origin::start();
            let proxy = http(&sandbox, &origin, &[]);
            let mut client = proxy.client();
            client.send(&post("/mcp", &[headers], call(1, "x")));
            let mut reached = origin.call();
            if mid_stream {
                reached.send(STREAM);
                reached.send(event(r#"{"jsonrpc":"2.0","method":"first"}"#));
                client.head();
                client.message();
            }
            drop(client);
            reached.until_closed();
            let mut other = proxy.client();
            other.send(&post("/mcp", &[headers], call(2, "next")));
            origin.call().send(json(result(2)));
            assert_eq!(other.response().body, result(2).as_bytes());
            proxy.end();
            assert_eq!(Recording::of(&sandbox).ends(), ["client left", ""]);
        }
    }
}

#[test]
fn streams_that_belong_to_a_client_end_with_it() {
    for (transport, path) in [("streamable-http", "/mcp"), ("sse", "/sse")] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        for with_head in [true, false] {
            let mut client = proxy.client();
            client.send(&get(path, &["Accept: text/event-stream"]));
            let mut stream = origin.call();
            if with_head {
                stream.send(STREAM);
                client.head();
            }
            drop(client);
            stream.until_closed();
        }
        proxy.end();
    }
}

#[test]
fn a_stream_that_broke_is_resumed_and_the_answer_finds_its_request() {
    for client_leaves in [false, true] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = http(&sandbox, &origin, &[]);
        let mut client = proxy.client();
        client.send(&post("/mcp", &[], call(0, "initialize")));
        origin.call().send(answer("200 OK", &["Content-Type: application/json", "Mcp-Session-Id: s1"], result(0)));
        client.response();
        client.send(&post("/mcp", &["Mcp-Session-Id: s1"], call(1, "long")));
        let mut stream = origin.call();
        stream.send(STREAM);
        stream.send(chunk("id: a/1\nretry: 10\ndata:\n\n"));
        stream.send(chunk("id: a/2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"progress\"}\n\n"));
        client.head();
        assert_eq!(client.event(), "id: a/1\nretry: 10\ndata:\n\n");
        client.message();
        if client_leaves {
            until_noticed(&proxy, client);
            stream.close();
        } else {
            // A server may close its connection and let the client poll.
            stream.send(LAST_CHUNK);
            assert_eq!(client.rest(), (Vec::new(), true));
        }
        let mut client = proxy.client();
        client.send(&get("/mcp", &["Mcp-Session-Id: s1", "Last-Event-ID: a/2", "Accept: text/event-stream"]));
        let mut resumed = origin.call();
        assert_eq!(resumed.asked(), "GET /mcp");
        assert_eq!(resumed.head.get("last-event-id").as_deref(), Some("a/2"));
        assert_eq!(resumed.head.get("mcp-session-id").as_deref(), Some("s1"));
        resumed.send(STREAM);
        resumed.send(chunk(format!("id: a/3\ndata: {}\n\n", result(1))));
        client.head();
        assert_eq!(client.event(), format!("id: a/3\ndata: {}\n\n", result(1)));
        drop(client);
        proxy.end();
        let recording = Recording::of(&sandbox);
        let (asked, answered) = (recording.message(&call(1, "long")), recording.message(&result(1)));
        assert_eq!(answered.correlated_id.as_ref(), Some(&asked.id), "client_leaves {client_leaves}");
        assert_eq!(answered.event_id.as_deref(), Some("a/3"));
        assert_ne!(answered.exchange, asked.exchange);
        assert_eq!(answered.conversation, asked.conversation, "a session is one conversation");
    }
}

#[test]
fn an_answer_may_overtake_the_word_that_its_request_was_taken() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let (mut client, mut stream) = open_stream("sse", &proxy, &origin);
    stream.send(chunk("event: endpoint\ndata: /m\n\n"));
    let endpoint = client.message();
    let mut poster = proxy.client();
    poster.send(&post(&endpoint, &[], call(1, "x")));
    let mut posted = origin.call();
    stream.send(event(result(1)));
    assert_eq!(client.message(), result(1));
    posted.send(accepted());
    assert_eq!(poster.response().status(), 202);
    drop(client);
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!(recording.message(&result(1)).correlated_id, Some(recording.message(&call(1, "x")).id.clone()));
}

#[test]
fn a_server_may_ask_its_client_on_any_stream() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin, &[]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &["Mcp-Session-Id: s1"], call(1, "tools/call")));
    let mut stream = origin.call();
    stream.send(STREAM);
    // Its own id 1, in the middle of our call 1.
    stream.send(event(call(1, "sampling/createMessage")));
    client.head();
    assert_eq!(client.message(), call(1, "sampling/createMessage"));
    let mut second = proxy.client();
    let reply = r#"{"jsonrpc":"2.0","id":1,"result":"sampled"}"#;
    second.send(&post("/mcp", &["Mcp-Session-Id: s1"], reply));
    origin.call().send(accepted());
    assert_eq!(second.response().status(), 202);
    stream.send(event(result(1)));
    assert_eq!(client.message(), result(1));
    stream.send(LAST_CHUNK);
    proxy.end();
    let recording = Recording::of(&sandbox);
    let correlated = |text: &str| recording.message(text).correlated_id.clone();
    assert_eq!(correlated("sampled"), Some(recording.message("sampling/createMessage").id.clone()));
    assert_eq!(correlated(r#""result":{}"#), Some(recording.message("tools/call").id.clone()));
}

#[test]
fn connections_to_the_server_are_used_again() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin, &[]);
    // One after the other, from clients that have nothing to do with each other.
    for id in 0..5 {
        let mut client = proxy.client();
        client.send(&post("/mcp", &[], call(id, "x")));
        let mut reached = origin.call();
        assert_eq!(reached.connection, 0, "request {id}");
        match id % 3 {
            0 => reached.send(json(result(id))),
            1 => reached.send([STREAM, &event(result(id)), LAST_CHUNK].concat()),
            _ => reached.send(accepted()),
        }
        client.response();
    }
    // What a server wants to be the last request on a connection is.
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], call(5, "x")));
    origin.call().send(answer("200 OK", &["Connection: close", "Content-Type: application/json"], result(5)));
    assert_eq!(client.response().head.get("connection"), None, "which is no business of the client's");
    client.send(&bare("DELETE", "/mcp", &[]));
    let mut reached = origin.call();
    assert_eq!(reached.connection, 1);
    reached.send(accepted());
    assert_eq!(client.response().status(), 202);
    proxy.end();
}

#[test]
fn a_server_that_closes_idle_connections_is_reached_all_the_same() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin, &[]);
    let mut client = proxy.client();
    for id in 0..100 {
        client.send(&post("/mcp", &[], call(id, "x")));
        origin.call().send(json(result(id)));
        assert_eq!(client.response().body, result(id).as_bytes());
        origin.close_all();
    }
    assert_eq!(origin.connections(), 100);
    proxy.end();
    assert!(Recording::of(&sandbox).ends().iter().all(String::is_empty));
}
