//! Messages that are held while something ends: the server, the client, the time, the proxy itself.

use serde_json::{Value, json};

use crate::bridge_kit::{Session, initialize};
use crate::hold_kit::Scene;
use crate::http_kit::{Origin, json as as_json, result};
use crate::kit::{Running, Sandbox, children_of, signal, until};

/// The server's process: the only child of the guard, which is the only child of the proxy.
fn server_of(proxy: &Running) -> u32 {
    let guard = children_of(proxy.pid())[0];
    children_of(guard)[0]
}

#[test]
fn a_server_that_dies_answers_what_was_held_for_it_and_has_said_the_rest() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "tool:echo"]);
    scene.call(7, "echo", "x");
    scene.does(&["forward", &scene.held_number()]);
    // Now its answer is held, and another call.
    scene.held(1);
    scene.call(8, "echo", "y");
    scene.held(2);
    signal(server_of(&scene.proxy), rustix::process::Signal::KILL);
    let answer = scene.proxy.json();
    assert_eq!((&answer["id"], &answer["result"]["method"]), (&7.into(), &"tools/call".into()));
    let refused = scene.proxy.json();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&8.into(), &5030.into()));
    let id = scene.sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    let (_, _) = scene.proxy.end();
    let lines = scene.sandbox.stdout(["inspect", "--json", &id]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcome = |id: u64, kind: &str| {
        lines.iter().find(|line| line["jsonrpc_id"] == id && line["kind"] == kind).unwrap()["outcome"].clone()
    };
    assert_eq!((outcome(7, "response"), outcome(8, "request")), ("released".into(), "discarded".into()));
}

#[test]
fn what_a_client_sent_last_is_waited_for() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "x");
    let number = scene.held_number();
    scene.proxy.close_stdin();
    scene.does(&["forward", &number]);
    assert_eq!(scene.proxy.json()["id"], 7);
    let (status, errors) = scene.proxy.end();
    assert!(status.success(), "{errors}");
}

#[test]
fn a_proxy_that_is_told_to_end_does_not_wait_for_anybody() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "tool:echo"]);
    scene.call(7, "echo", "x");
    scene.held(1);
    scene.proxy.terminate();
    let (_, _) = scene.proxy.end();
    let id = scene.sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    let lines = scene.sandbox.stdout(["inspect", "--json", &id]);
    assert!(lines.contains("\"outcome\":\"discarded\""), "{lines}");
    assert!(!scene.sandbox.state().root().join("run").read_dir().is_ok_and(|mut left| left.next().is_some()));
}

#[test]
fn nobody_there_means_nothing_is_held() {
    let sandbox = Sandbox::new();
    let flags = ["--quiet", "--break", "tool:echo"];
    let mut proxy = sandbox.run(&flags, &["puppet"]);
    proxy.send(format!("{}\n", initialize("2025-06-18")).as_bytes());
    assert_eq!(proxy.json()["id"], "init");
    proxy.send(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n");
    assert_eq!(proxy.json()["id"], 2);
    sandbox.until_found();
    assert_eq!(sandbox.stdout(["held", "--json"]), "");
    let list: Value = serde_json::from_str(&sandbox.stdout(["break", "list", "--json"])).unwrap();
    assert_eq!((&list["filter"], &list["owner"]), (&"tool:echo".into(), &"start".into()), "{list}");
}

#[test]
fn the_first_message_waits_for_somebody_but_not_for_ever() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--wait-for-face", "--hold-timeout", "2"], &["puppet"]);
    until("it can be found", || !sandbox.stdout(["ps", "--json"]).is_empty());
    proxy.request(1, "hello");
    assert_eq!(proxy.json()["id"], 1);
    proxy.ask(2, "free");
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    until("what became of it is on record", || {
        let lines = sandbox.stdout(["inspect", "--json", &id]);
        lines.lines().next().is_some_and(|first| first.contains("\"outcome\":\"released\""))
    });
}

/// Everything is let go in the middle of traffic: nothing is lost, nothing comes twice.
#[test]
fn all_is_released_under_load() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["hold", "on"]);
    const MANY: u64 = 2_000;
    let lines: String =
        (0..MANY).map(|id| format!("{}\n", json!({ "jsonrpc": "2.0", "id": 100 + id, "method": "hello" }))).collect();
    let sending = scene.proxy.send_from_behind(lines.into_bytes());
    until("some are held", || scene.does(&["held", "--json"]).lines().count() > 100);
    scene.does(&["hold", "off"]);
    let mut answered: Vec<u64> = (0..MANY).map(|_| scene.proxy.json()["id"].as_u64().unwrap()).collect();
    scene.proxy.put_back(sending.join().unwrap());
    answered.sort_unstable();
    assert_eq!(answered, (100..100 + MANY).collect::<Vec<_>>());
    scene.held(0);
}

/// A listener that is told to end lets go of what it holds, so that calls can finish.
#[test]
fn a_listener_that_is_told_to_end_lets_go() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_fixture(&["puppet"], &["--quiet"]);
    sandbox.breaks("> tool:echo");
    let session = Session::open(&proxy);
    let mut client = session.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#);
    sandbox.held(1);
    proxy.terminate();
    assert_eq!(client.response().json()["id"], 1);
}

/// Nobody is there any more to read an answer, so nothing is waited for.
#[test]
fn a_client_that_is_gone_is_not_waited_for() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let url = origin.url("/mcp");
    let flags = ["--quiet", "--hold-timeout", "0", "--transport", "streamable-http", "--url", &url];
    let mut proxy = Running::start_unread(sandbox.command(["run"].iter().chain(&flags)));
    proxy.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    origin.call().send(as_json(result(1)));
    sandbox.breaks("> tool:echo");
    proxy.send(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n");
    sandbox.held(1);
    proxy.close_stdin();
    proxy.close_stdout();
    let (_, _) = proxy.end();
    origin.saw_nothing();
}
