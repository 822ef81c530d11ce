//! Recordings as servers: a client sees of a mock what it saw of the server.

use serde_json::{Value, json};

use crate::http_kit::Listening;
use crate::kit::{Running, Sandbox, marked_processes, signal, until};
use crate::tools_kit::Asker;

/// What a client of an older revision sees: results, and what it heard meanwhile.
fn see(asker: &mut Asker) -> Vec<Value> {
    let mut seen = asker.list();
    seen.push(asker.text("echo", json!({ "text": "hello" })).into());
    let counted = json!({ "name": "count", "arguments": {}, "_meta": { "progressToken": "tok" } });
    seen.push(asker.ask("tools/call", counted)["result"].clone());
    seen.push(asker.text("ask", json!({ "text": "say" })).into());
    seen.push(asker.call("nothing", json!({}))["error"].clone());
    seen.push(asker.text("pid", json!({})).into());
    seen.push(asker.call("grow", json!({}))["result"].clone());
    seen.push(asker.ask("ping", json!({}))["result"].clone());
    let heard = std::mem::take(&mut asker.heard).into_iter();
    seen.extend(heard.map(|message| json!([message["method"], message["params"]])));
    seen
}

fn see_rounds(asker: &mut Asker) -> Vec<Value> {
    let mut seen = asker.list();
    seen.push(asker.ask("server/discover", json!({}))["result"].clone());
    seen.push(asker.ask_in_rounds().into());
    seen
}

impl Sandbox {
    fn mock(&self, args: &[&str]) -> Running {
        let mut command = self.command(["mock"]);
        command.args(args);
        Running::start(command)
    }

    fn mock_listening(&self, args: &[&str]) -> Listening {
        let mut command = self.command(["mock", "--listen", "127.0.0.1:0"]);
        command.args(args);
        Listening::start(command)
    }
}

#[test]
fn a_client_sees_what_it_saw_of_the_server() {
    let sandbox = Sandbox::new();
    let mut recorded = Vec::new();
    sandbox.record("one", |asker| recorded = see(asker));
    let mut asker = Asker::opened(sandbox.mock(&["one"]));
    assert_eq!(see(&mut asker), recorded);
    assert!(asker.end().contains("serving session"), "it says what it does");
}

#[test]
fn a_client_of_the_newest_revision_too() {
    let sandbox = Sandbox::new();
    let mut recorded = Vec::new();
    sandbox.record_of("modern", "", Asker::modern, |asker| recorded = see_rounds(asker));
    let mut asker = Asker::modern(sandbox.mock(&["modern"]));
    assert_eq!(see_rounds(&mut asker), recorded);
    asker.end();
    let listening = sandbox.mock_listening(&["modern"]);
    let mut asker = Asker::modern(sandbox.run_to("streamable-http", &listening.url("/mcp"), &["--no-record"]));
    assert_eq!(see_rounds(&mut asker), recorded);
    asker.end();
    listening.end();
}

#[test]
fn over_every_transport() {
    let sandbox = Sandbox::new();
    let mut recorded = Vec::new();
    sandbox.record("one", |asker| recorded = see(asker));
    let listening = sandbox.mock_listening(&["one"]);
    for (transport, path) in [("streamable-http", "/mcp"), ("sse", "/sse")] {
        // Each client has a mock of its own, which begins at the beginning.
        for _ in 0..2 {
            let mut asker = Asker::opened(sandbox.run_to(transport, &listening.url(path), &["--no-record", "--quiet"]));
            assert_eq!(see(&mut asker), recorded, "{transport}");
            asker.end();
        }
    }
    listening.end();
    assert_eq!(sandbox.segments().len(), 1, "what clients get of a mock is not recorded");
}

#[test]
fn a_recording_over_http_is_as_good() {
    for (transport, path) in [("streamable-http", "/mcp"), ("sse", "/sse")] {
        let sandbox = Sandbox::new();
        let server = sandbox.listen_to_fixture(&["tools", ""], &["--name", "one"]);
        let mut asker = Asker::opened(sandbox.run_to(transport, &server.url(path), &["--no-record"]));
        let recorded = see(&mut asker);
        asker.end();
        server.end();
        let mut asker = Asker::opened(sandbox.mock(&["one"]));
        assert_eq!(see(&mut asker), recorded, "{transport}");
        asker.end();
        let ignoring = ["one", "--ignore", "$.result.content[*].text", "--only", "not tool:pid"];
        sandbox.replay(&ignoring, "").expect(0, &["0 drifted, 0 without an answer, 1 skipped"]);
    }
}

#[test]
fn a_session_file_can_be_served_where_there_is_no_store() {
    let sandbox = Sandbox::new();
    let mut asker = Asker::opened(sandbox.run(&["--quiet", "--no-record", "--session-file", "s.json"], &["tools", ""]));
    let recorded = see(&mut asker);
    asker.end();
    let mut asker = Asker::opened(sandbox.mock(&["s.json", "--quiet"]));
    assert_eq!(see(&mut asker), recorded);
    assert_eq!(asker.end(), "");
    let listening = sandbox.mock_listening(&["--session-file", "s.json"]);
    let mut asker = Asker::opened(sandbox.run_to("sse", &listening.url("/sse"), &["--no-record"]));
    assert_eq!(see(&mut asker), recorded);
    asker.end();
    listening.end();
}

#[test]
fn what_is_not_recorded_is_refused_in_words() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| drop(asker.text("echo", json!({ "text": "hello" }))));
    let mut asker = Asker::opened(sandbox.mock(&["one"]));
    let unknown = asker.call("echo", json!({ "text": "\u{1b}[2J" }));
    assert_eq!(unknown["error"]["code"], 5050);
    assert_eq!(unknown["error"]["data"]["mcp-proxy/reason"], "not-in-recording");
    let said = unknown["error"]["message"].as_str().unwrap();
    assert!(said.contains("it has 1 call of tools/call, none with") && !said.contains('\u{1b}'), "{said}");
    let unknown = asker.ask("prompts/list", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    // Nothing of this disturbs what follows.
    asker.peer.send(b"rubbish\n{}\n[]\n[1,2]\n");
    assert_eq!(asker.text("echo", json!({ "text": "hello" })), "hello");
    asker.end();
}

#[test]
fn huge_and_odd_messages_are_served_as_they_were() {
    let sandbox = Sandbox::new();
    let mut big = String::new();
    sandbox.record("one", |asker| {
        big = asker.text("big", json!({ "kilobytes": 4096 }));
        asker.text("hostile", json!({}));
        asker.text("twice", json!({}));
    });
    let mut asker = Asker::opened(sandbox.mock(&["one"]));
    assert_eq!(asker.text("big", json!({ "kilobytes": 4096 })), big);
    assert_eq!(asker.text("hostile", json!({})), "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\u{9b}31m");
    assert_eq!(asker.text("twice", json!({})), "once");
    asker.end();
}

#[test]
fn a_mock_ends_with_its_client_or_when_told_to() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| drop(asker.text("echo", json!({ "text": "hello" }))));
    let (status, _) = sandbox.mock(&["one"]).end();
    assert_eq!(status.code(), Some(0));
    for (sent, code) in [(rustix::process::Signal::TERM, 0), (rustix::process::Signal::INT, 130)] {
        let mut asker = Asker::opened(sandbox.mock(&["one"]));
        asker.text("echo", json!({ "text": "hello" }));
        signal(asker.peer.pid(), sent);
        assert_eq!(asker.peer.rest(), Vec::<Vec<u8>>::new());
        let (status, said) = asker.peer.end();
        assert_eq!(status.code(), Some(code), "{said}");
    }
}

#[test]
fn a_listening_mock_leaves_no_process_behind() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| drop(asker.text("echo", json!({ "text": "hello" }))));
    let mark = format!("MARK={}", sandbox.path("x").display());
    let mut command = sandbox.command(["mock", "--listen", "127.0.0.1:0", "one"]);
    command.env("MARK", sandbox.path("x"));
    let listening = Listening::start(command);
    let mut asker = Asker::opened(sandbox.run_to("sse", &listening.url("/sse"), &["--no-record"]));
    asker.text("echo", json!({ "text": "hello" }));
    assert!(marked_processes(&mark).len() > 1);
    signal(listening.pid(), rustix::process::Signal::KILL);
    until("every process ends", || marked_processes(&mark).is_empty());
}

#[test]
fn wrong_usage_is_said() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| drop(asker.text("echo", json!({ "text": "hello" }))));
    let check = |args: &[&str], code: i32, said: &str| {
        let output = sandbox.output(["mock"].iter().chain(args));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && errors.contains(said), "{args:?}: {output:?}");
    };
    check(&["nobody"], 2, "no session `nobody`");
    check(&["one", "--fallback"], 2, "--fallback needs a server");
    check(&["one", "--target-command", "true"], 2, "a mock needs no server");
    check(&["one", "--listen", "stdio", "--transport", "sse"], 2, "does not go with");
    check(&["one", "--listen", "0", "--transport", "stdio"], 2, "does not go with");
    check(&["one", "--listen", "0.0.0.0:0"], 2, "clients need a token");
    check(&["one", "--token-file", "x"], 2, "--token-file is for a listener");
    check(&["one", "--conversation", "9"], 2, "there is no conversation 9");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    check(&["one", "--listen", &taken.local_addr().unwrap().port().to_string()], 3, "is taken");
    let empty = sandbox.run(&["--quiet", "--name", "empty"], &["tools", ""]);
    empty.end();
    check(&["empty"], 2, "there is nothing to serve");
}
