//! Two thousand clients that leave in the middle of a call cost nothing that stays: no descriptor, no
//! process, and the next request works.

use std::thread;

use serde_json::json;

use crate::bridge_kit::{INITIALIZED, Pair, Session, SseClient, is_process, modern};
use crate::http_kit::{
    Client, LAST_CHUNK, Listening, MODERN, Origin, Recording, STREAM, accepted, call, chunk, event, get,
    json as json_answer, post, result,
};
use crate::kit::{Sandbox, children_of, descriptors, until};

const ROUNDS: usize = 2_000;

/// Waits until a process holds no more open than it did.
#[track_caller]
fn until_closed(pid: u32, before: usize) {
    until("every descriptor is closed", || descriptors(pid) <= before);
}

#[test]
fn from_http_to_http() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let before = descriptors(proxy.pid());
    for round in 0..ROUNDS {
        let mut client = proxy.client();
        let is_modern = round % 2 == 0;
        client.send(&post("/mcp", if is_modern { &[MODERN] } else { &[] }, call(1, "x")));
        let mut reached = origin.call();
        if round % 4 < 2 {
            reached.send(STREAM);
            client.head();
        }
        drop(client);
        if is_modern {
            reached.until_closed();
        } else if round % 8 < 4 {
            // The call goes on, and ends some time.
            let _ = reached.try_send(if round % 4 < 2 { LAST_CHUNK.to_vec() } else { json_answer(result(1)) });
        } else {
            reached.close();
        }
    }
    origin.close_all();
    until_closed(proxy.pid(), before);
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], call(7, "good")));
    origin.call().send(json_answer(result(7)));
    assert_eq!(client.response().status(), 200);
    proxy.end();
    assert_eq!(Recording::of(&sandbox).requests().len(), ROUNDS + 1);
}

#[test]
fn from_sse_to_sse() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let before = descriptors(proxy.pid());
    let mut poster = proxy.client();
    for round in 0..ROUNDS {
        let (client, mut stream, endpoint) = open_sse(&proxy, &origin);
        poster.send(&post(&endpoint, &[], call(1, "x")));
        let mut posted = origin.call();
        if round % 2 == 0 {
            posted.send(accepted());
            assert_eq!(poster.response().status(), 202);
        }
        // The end of the stream is the end of the session, and the server sees it.
        drop(client);
        stream.until_closed();
        if round % 2 != 0 {
            posted.send(accepted());
            assert_eq!(poster.response().status(), 202);
        }
    }
    let (mut client, mut stream, endpoint) = open_sse(&proxy, &origin);
    poster.send(&post(&endpoint, &[], call(7, "good")));
    origin.call().send(accepted());
    stream.send(event(result(7)));
    assert_eq!(client.message(), result(7));
    drop((client, poster));
    origin.close_all();
    until_closed(proxy.pid(), before);
    proxy.end();
}

#[track_caller]
fn open_sse(proxy: &Listening, origin: &Origin) -> (Client, crate::http_kit::Call, String) {
    let mut client = proxy.client();
    client.send(&get("/sse", &["Accept: text/event-stream"]));
    let mut stream = origin.call();
    stream.send([STREAM, &chunk("event: endpoint\ndata: /m\n\n")].concat());
    assert_eq!(client.head().status(), 200);
    let endpoint = client.message();
    (client, stream, endpoint)
}

#[test]
fn from_http_to_a_command_where_calls_go_on() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    session.tell(INITIALIZED);
    assert_eq!(session.ask(call(0, "good")).status(), 200);
    let before = descriptors(proxy.pid());
    // Few enough at a time that none has to be given up.
    for round in 0..ROUNDS / 500 {
        for at in 0..500 {
            let client = session.send(call(at, &format!("ignore/{round}")));
            if at % 2 == 0 {
                // It is certainly under way.
                session.tell(r#"{"jsonrpc":"2.0","method":"n"}"#);
            } else {
                client.finish_sending();
                let _ = client.tcp().shutdown(std::net::Shutdown::Both);
            }
        }
        session.until_seen(&format!("\"id\":498,\"method\":\"ignore/{round}\""));
        let answers: Vec<String> = (0..500).map(result).collect();
        session.say(&answers);
    }
    until_closed(proxy.pid(), before);
    assert!(!session.seen().iter().any(|line| line.contains("cancelled")), "legacy calls are not cancelled");
    assert_eq!(session.ask(call(7, "good")).json()["result"]["method"], "good");
    let pid = session.pid;
    proxy.end();
    assert!(!is_process(pid));
}

#[test]
fn from_http_to_a_command_where_leaving_is_cancelling() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let asked = |id: usize, method: &str| {
        let headers = [MODERN, &format!("Mcp-Method: {method}")].map(str::to_owned);
        post("/mcp", &headers.each_ref().map(String::as_str), modern(&id.to_string(), method, json!({})))
    };
    let mut client = proxy.client();
    assert_eq!(client.ask(&asked(0, "good")).json()["result"]["method"], "good");
    let before = descriptors(proxy.pid());
    for id in 1..=ROUNDS {
        let mut leaving = proxy.client();
        leaving.send(&asked(id, "ignore/this"));
        if id % 16 == 0 {
            // Now and then the proxy gets to see all of them.
            client.ask(&asked(0, "good"));
        }
    }
    until_closed(proxy.pid(), before);
    let seen = client.ask(&asked(0, "seen")).json();
    let lines: Vec<&str> =
        seen["result"]["lines"].as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    let called = lines.iter().filter(|line| line.contains("ignore/this")).count();
    let cancelled = lines.iter().filter(|line| line.contains("notifications/cancelled")).count();
    assert_eq!(cancelled, called, "each call that reached the server was taken back");
    assert!(called >= ROUNDS / 16, "only {called} calls got anywhere");
    proxy.end();
}

#[test]
fn from_sse_to_a_command() {
    const AT_A_TIME: usize = 16;
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let before = descriptors(proxy.pid());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            let proxy = &proxy;
            scope.spawn(move || {
                for _ in 0..ROUNDS / AT_A_TIME {
                    // A server that has lost its client still counts until it is gone.
                    let mut opened = None;
                    until("there is a place", || {
                        opened = SseClient::try_open(proxy);
                        opened.is_some()
                    });
                    let client = opened.expect("it was just opened");
                    client.tell(call(1, "ignore/this"));
                }
            });
        }
    });
    until_closed(proxy.pid(), before);
    let mut client = SseClient::open(&proxy);
    client.tell(call(7, "good"));
    assert_eq!(client.json()["result"]["method"], "good");
    let children = children_of(proxy.pid());
    assert_eq!(children.len(), 1, "one guard of one server: {children:?}");
    drop(client);
    until("the last server is gone", || children_of(proxy.pid()).is_empty());
    proxy.end();
}

/// A client on a pipe has one connection; what it can leave is a call.
#[test]
fn from_a_pipe_to_http() {
    let mut pair = Pair::open();
    pair.ask(0);
    let before = descriptors(pair.proxy.pid());
    for round in 1..=ROUNDS {
        let is_modern = round % 2 == 0;
        let id = round.to_string();
        let asked = if is_modern { modern(&id, "tools/list", json!({})) } else { call(&id, "long") };
        pair.send(asked);
        let mut reached = pair.origin.call();
        if round % 4 < 2 {
            reached.send([STREAM, &event(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#)].concat());
            assert_eq!(pair.proxy.json()["method"], "notifications/x");
        }
        pair.send(format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
        // In a session that was opened as of old, the server is told so before the call is given up.
        let mut told = pair.origin.call();
        assert!(told.text().contains("notifications/cancelled"), "{}", told.text());
        told.send(accepted());
        reached.until_closed();
    }
    until_closed(pair.proxy.pid(), before);
    pair.ask(7);
    pair.end();
}
