//! Two hundred clients at once that all use the same ids, in front of commands.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::bridge_kit::{LEGACY, Session, SseClient, initialize, modern};
use crate::http_kit::{Listening, MODERN, bare, call, post};
use crate::kit::{Sandbox, children_of, until};

const CLIENTS: usize = 200;
/// As many commands as there may be at a time.
const PLACES: usize = 64;

/// Asks for a session. Nothing comes back if there is no place.
#[track_caller]
fn try_open(proxy: &Listening) -> Option<String> {
    let opened = proxy.client().ask(&post("/mcp", &[], initialize(LEGACY)));
    if opened.status() == 503 {
        assert_eq!(opened.error().0, 5031);
        assert!(opened.head.get("retry-after").is_some(), "{opened:?}");
        return None;
    }
    assert_eq!(opened.status(), 200, "{opened:?}");
    Some(format!("Mcp-Session-Id: {}", opened.head.get("mcp-session-id").expect("a session begins")))
}

#[test]
fn sessions_beyond_the_places_are_turned_away_and_served_when_others_leave() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let (all_came, refused) = (Barrier::new(CLIENTS), AtomicUsize::new(0));
    let all_asked = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (proxy, all_came, all_asked, refused) = (&proxy, &all_came, &all_asked, &refused);
            scope.spawn(move || {
                all_came.wait();
                let mut session = try_open(proxy);
                refused.fetch_add(usize::from(session.is_none()), Ordering::Relaxed);
                // Nobody leaves before everybody has tried.
                all_asked.wait();
                until("there is a place", || {
                    session = session.take().or_else(|| try_open(proxy));
                    session.is_some()
                });
                let session = session.expect("it was just opened");
                for number in 0..3 {
                    let mark = format!("mark-{client}-{number}");
                    let answer = proxy.client().ask(&post("/mcp", &[&session], call(1, &mark))).json();
                    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": { "method": mark } }));
                }
                assert_eq!(proxy.client().ask(&bare("DELETE", "/mcp", &[&session])).status(), 200);
            });
        }
        // A client on a pipe has a proxy of its own, and notices nothing.
        let elsewhere = Sandbox::new();
        let mut pipe = elsewhere.run(&[], &["answer"]);
        for id in 0..50 {
            pipe.ask(id, "beside the crowd");
        }
        assert!(pipe.end().0.success());
    });
    assert_eq!(refused.into_inner(), CLIENTS - PLACES, "every place was taken, and no more");
    until("every server is gone", || children_of(proxy.pid()).is_empty());
    assert_eq!(Session::open(&proxy).ask(call(1, "good")).status(), 200);
    proxy.end();
}

#[test]
fn calls_of_one_session_under_one_id_get_their_own_answers() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let all_came = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (session, all_came) = (&session, &all_came);
            scope.spawn(move || {
                all_came.wait();
                for number in 0..3 {
                    let mark = format!("mark-{client}-{number}");
                    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": mark, "params": {
                        "_meta": { "progressToken": "the same" },
                    } });
                    let answer = session.ask(asked.to_string()).json();
                    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": { "method": mark } }));
                }
            });
        }
    });
    proxy.end();
}

#[test]
fn modern_clients_that_share_a_server_get_their_own_answers() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let all_came = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (proxy, all_came) = (&proxy, &all_came);
            scope.spawn(move || {
                all_came.wait();
                let mut connection = proxy.client();
                for number in 0..3 {
                    let mark = format!("mark-{client}-{number}");
                    let asked = modern("1", "x", json!({ "answer": mark }));
                    let answer = connection.ask(&post("/mcp", &[MODERN, "Mcp-Method: x"], asked)).json();
                    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": mark }));
                }
            });
        }
    });
    assert_eq!(children_of(proxy.pid()).len(), 1, "they have the same name and can do the same");
    proxy.end();
}

#[test]
fn connections_of_the_older_transport_share_out_the_same_places() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let all_came = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (proxy, all_came) = (&proxy, &all_came);
            scope.spawn(move || {
                all_came.wait();
                let mut opened = None;
                until("there is a place", || {
                    opened = SseClient::try_open(proxy);
                    opened.is_some()
                });
                let mut connection = opened.expect("it was just opened");
                let mark = format!("mark-{client}");
                connection.tell(call(1, &mark));
                assert_eq!(connection.json()["result"]["method"], mark);
            });
        }
    });
    until("every server is gone", || children_of(proxy.pid()).is_empty());
    proxy.end();
}
