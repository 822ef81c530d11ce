//! The same table over the older transport, where answers come on a stream.

use super::attacks::attacks;
use super::readings::{Denied, denied_calls};
use super::stage::{HANDSHAKE, JOURNAL, harmless_with, journals_in};
use super::{Era, FIRST_ID, RULES, rules_in};
use crate::bridge_kit::SseClient;
use crate::http_kit::{Listening, post};
use crate::kit::Sandbox;

/// Tries the whole table on a proxy whose server writes its journal into `server`.
fn try_all(proxy: &Listening, server: &Sandbox) {
    let mut client = SseClient::open(proxy);
    client.tell(HANDSHAKE);
    assert_eq!(client.json()["id"], 0);
    client.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let mut looked_at = 0;
    for (id, attack) in (1..).zip(attacks(Era::Legacy, FIRST_ID)) {
        let mut attacker = proxy.client();
        let _ = attacker.try_send(&post(&client.endpoint, &[], &attack.bytes));
        let _ = attacker.try_response();
        client.tell(harmless_with(Era::Legacy, id));
        loop {
            let answer = client.json();
            if answer["id"] == id {
                assert!(answer.get("result").is_some(), "{}: {answer}", attack.name);
                break;
            }
            assert!(!answer.to_string().contains("\"result\""), "{}: {answer}", attack.name);
        }
        let received = journals_in(server);
        let found = denied_calls(&received[looked_at..], Denied::More);
        assert!(found.is_empty(), "{}: {found:?}", attack.name);
        looked_at = received.len();
    }
}

#[test]
fn a_stream_in_front_of_pipes() {
    let sandbox = Sandbox::new();
    let rules = rules_in(&sandbox, RULES);
    let journal = sandbox.path(JOURNAL);
    let fixture = ["puppet", journal.to_str().unwrap()];
    let proxy = sandbox.listen_to_fixture(&fixture, &["--quiet", "--rules", &rules]);
    try_all(&proxy, &sandbox);
    proxy.end();
}

#[test]
fn a_stream_in_front_of_a_stream() {
    let (inner, outer) = (Sandbox::new(), Sandbox::new());
    let rules = rules_in(&outer, RULES);
    let journal = inner.path(JOURNAL);
    let server = inner.listen_to_fixture(&["puppet", journal.to_str().unwrap()], &["--quiet", "--no-record"]);
    let proxy = outer.listen_to("sse", &server.url("/sse"), &["--quiet", "--rules", &rules]);
    try_all(&proxy, &inner);
    proxy.end();
    server.end();
}
