//! A listener that is told to end lets calls across transports finish first.

use std::net::TcpStream;

use crate::bridge_kit::{LEGACY, SseClient, SseServer, initialize, opened};
use crate::http_kit::{Client, Listening, Origin, Recording, call, json as json_answer, post, result};
use crate::kit::{Sandbox, until};

/// A server on a pipe that agrees to a session and then says what comes through a named pipe.
fn listen_to_pipe(sandbox: &Sandbox) -> Listening {
    let fifo = sandbox.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let script =
        format!("read opening; echo '{}'; read call; cat '{}'; cat >/dev/null", opened(LEGACY), fifo.display());
    let command = shell_words::join(["sh", "-c", &script]);
    sandbox.listen(["--transport", "stdio", "--target-command", &command])
}

/// Told to end, it takes nobody new.
fn tell_to_end(proxy: &Listening) {
    proxy.terminate();
    until("the proxy takes no more clients", || TcpStream::connect(("127.0.0.1", proxy.port)).is_err());
}

#[track_caller]
fn ends_in_order(sandbox: &Sandbox, proxy: Listening) {
    let (status, said) = proxy.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let recording = Recording::of(sandbox);
    assert_eq!(recording.message(&result(1)).correlated_id, Some(recording.message(&call(1, "slow")).id.clone()));
}

fn open_sse<'a>(proxy: &'a Listening, agree: impl FnOnce()) -> SseClient<'a> {
    let mut client = SseClient::open(proxy);
    client.tell(initialize(LEGACY));
    agree();
    assert_eq!(client.message(), opened(LEGACY));
    client.tell(call(1, "slow"));
    client
}

/// The call of a client of Streamable HTTP, in a session.
fn open_http(proxy: &Listening, agree: impl FnOnce()) -> Client {
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], initialize(LEGACY)));
    agree();
    let session = client.response().head.get("mcp-session-id").expect("a session begins");
    client.send(&post("/mcp", &[&format!("Mcp-Session-Id: {session}")], call(1, "slow")));
    client
}

#[test]
fn from_sse_to_a_pipe() {
    let sandbox = Sandbox::new();
    let proxy = listen_to_pipe(&sandbox);
    let mut client = open_sse(&proxy, || {});
    tell_to_end(&proxy);
    std::fs::write(sandbox.path("fifo"), format!("{}\n", result(1))).unwrap();
    assert_eq!(client.message(), result(1));
    client.stream.until_closed();
    ends_in_order(&sandbox, proxy);
}

#[test]
fn from_http_to_a_pipe() {
    let sandbox = Sandbox::new();
    let proxy = listen_to_pipe(&sandbox);
    let mut client = open_http(&proxy, || {});
    let is_there = |recording: Recording| recording.by_client().iter().any(|it| it.raw == call(1, "slow").as_bytes());
    until("the call passes the proxy", || is_there(Recording::of(&sandbox)));
    tell_to_end(&proxy);
    std::fs::write(sandbox.path("fifo"), format!("{}\n", result(1))).unwrap();
    assert_eq!(client.response().body, result(1).as_bytes());
    ends_in_order(&sandbox, proxy);
}

#[test]
fn from_sse_to_http() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[]);
    let mut client = open_sse(&proxy, || origin.call().send(json_answer(opened(LEGACY))));
    let mut slow = origin.call();
    assert_eq!(slow.text(), call(1, "slow"));
    tell_to_end(&proxy);
    slow.send(json_answer(result(1)));
    assert_eq!(client.message(), result(1));
    client.stream.until_closed();
    ends_in_order(&sandbox, proxy);
}

#[test]
fn from_http_to_sse() {
    let (sandbox, mut server) = (Sandbox::new(), SseServer::start());
    let proxy = sandbox.listen_to("sse", &server.url(), &[]);
    let mut client = open_http(&proxy, || {
        server.accept();
        assert_eq!(server.receive(), initialize(LEGACY));
        server.say(opened(LEGACY));
    });
    assert_eq!(server.receive(), call(1, "slow"));
    tell_to_end(&proxy);
    server.say(result(1));
    assert_eq!(client.response().body, result(1).as_bytes());
    server.stream().until_closed();
    ends_in_order(&sandbox, proxy);
}

/// A listener in front of a server that agrees to a session and then does as `script` says.
fn listen_to_script(sandbox: &Sandbox, script: &str) -> Listening {
    let script = format!("read opening; echo '{}'; {script}", opened(LEGACY));
    sandbox.listen(["--transport", "stdio", "--target-command", &shell_words::join(["sh", "-c", &script])])
}

#[test]
fn a_server_that_lives_with_a_closed_output_is_answered_for() {
    let sandbox = Sandbox::new();
    let proxy = listen_to_script(&sandbox, "read call; exec sleep 600 >&-");
    assert_eq!(open_http(&proxy, || {}).response().error(), (5030, 1.into()));
    let mut sse = open_sse(&proxy, || {});
    let gone = sse.json();
    assert_eq!((&gone["id"], &gone["error"]["code"]), (&1.into(), &5030.into()), "{gone}");
    assert_eq!(sse.stream.rest(), (Vec::new(), true));
    proxy.end();
}

#[test]
fn a_server_that_lives_with_a_closed_input_is_answered_for() {
    let sandbox = Sandbox::new();
    let proxy = listen_to_script(&sandbox, "exec sleep 600 <&-");
    assert_eq!(open_http(&proxy, || {}).response().error(), (5030, 1.into()));
    proxy.end();
}

#[test]
fn a_server_that_dies_in_the_middle_of_an_answer_is_answered_for() {
    let sandbox = Sandbox::new();
    let torn = r#"{"jsonrpc":"2.0","id":1,"result":{"text":"ha"#;
    let proxy = listen_to_script(&sandbox, &format!("read call; printf '%s' '{torn}'"));
    assert_eq!(open_http(&proxy, || {}).response().error(), (5030, 1.into()));
    let gone = open_sse(&proxy, || {}).json();
    assert_eq!((&gone["id"], &gone["error"]["code"]), (&1.into(), &5030.into()), "{gone}");
    proxy.end();
    let events = Recording::of(&sandbox).events();
    let kept = |event: &&String| event.contains("in the middle of a message") && event.contains("ha");
    assert_eq!(events.iter().filter(kept).count(), 2, "{events:?}");
}
