//! When servers are started, for whom, and when they are stopped.

use serde_json::json;

use crate::gateway_kit::{HttpClient, StdioClient, fake, text_of};
use crate::http_kit::{Listening, bare};
use crate::kit::{Sandbox, until};

/// A client ends its session.
#[track_caller]
fn leave(gateway: &Listening, client: &HttpClient) {
    let headers: Vec<&str> = client.headers.iter().map(String::as_str).collect();
    let left = gateway.client().ask(&bare("DELETE", "/mcp", &headers));
    assert!((200..300).contains(&left.status()), "{left:?}");
}

#[test]
fn a_server_starts_with_its_first_client_or_with_the_gateway() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("eager").set("start", "eager"), fake("lazy")], json!({}));
    until("the eager one is there", || sandbox.seen("eager", "notifications/initialized").len() == 1);
    assert!(sandbox.starts("lazy").is_empty());
    let mut client = HttpClient::open(&gateway);
    assert_eq!(text_of(&client.call(1, "lazy__x", json!({}))), "lazy:x:");
    assert_eq!(text_of(&client.call(1, "eager__x", json!({}))), "eager:x:");
    assert_eq!(sandbox.starts("lazy").len(), 1);
    gateway.end();
    sandbox.nothing_is_left();
}

#[test]
fn clients_that_come_at_once_start_one_process() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a").tools(&["pid"])], json!({}));
    let pids: Vec<String> = std::thread::scope(|scope| {
        let ask = || text_of(&HttpClient::open(&gateway).call(1, "a__pid", json!({})));
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    assert_eq!(sandbox.starts("a").len(), 1);
    gateway.end();
}

#[test]
fn clients_share_a_server_or_have_one_of_their_own() {
    let sandbox = Sandbox::new();
    let fakes = [fake("own").tools(&["pid"]).set("instance", "per-client"), fake("shared").tools(&["pid"])];
    let gateway = sandbox.serve_http(&fakes, json!({}));
    let (mut one, mut other) = (HttpClient::open(&gateway), HttpClient::open(&gateway));
    let pid = |client: &mut HttpClient, tool: &str| text_of(&client.call(1, tool, json!({})));
    assert_eq!(pid(&mut one, "shared__pid"), pid(&mut other, "shared__pid"));
    let own = pid(&mut one, "own__pid");
    let others = pid(&mut other, "own__pid");
    assert_ne!(own, others);
    assert_eq!(own, pid(&mut one, "own__pid"));
    // It goes when its client goes; that of the other stays.
    leave(&gateway, &one);
    let own: u32 = own.parse().unwrap();
    until("its own server is gone", || !sandbox.left_over().contains(&own));
    assert_eq!(pid(&mut other, "own__pid"), others);
    gateway.end();
    assert_eq!((sandbox.starts("own").len(), sandbox.starts("shared").len()), (2, 1));
    sandbox.nothing_is_left();
}

#[test]
fn a_server_that_nobody_uses_is_stopped_until_somebody_does() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a").set("idle_stop", "100ms")], json!({}));
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    until("the server is stopped", || sandbox.left_over().is_empty());
    assert_eq!(client.says("a__x", "2"), "a:x:2");
    assert_eq!(sandbox.starts("a").len(), 2);
    client.end();
}
