//! Mocks with a live server behind them, for what the recording does not have.

use serde_json::json;

use crate::kit::{Running, Sandbox, until};
use crate::tools_kit::{Asker, tools};

impl Sandbox {
    /// A mock of `one`, with a fixture behind it.
    fn mock_before(&self, server: &[String]) -> Running {
        let mut command = self.command(["mock", "one", "--fallback"]);
        command.args(server);
        Running::start(command)
    }

    fn record_one(&self) {
        self.record("one", |asker| {
            assert_eq!(asker.text("echo", json!({ "text": "recorded" })), "recorded");
        });
    }
}

#[test]
fn what_is_not_recorded_is_asked_of_a_live_server_and_kept() {
    let sandbox = Sandbox::new();
    sandbox.record_one();
    // This one answers otherwise than the recording, so that it can be told who answered.
    let mut asker = Asker::opened(sandbox.mock_before(&tools("changed")));
    assert_eq!(asker.text("echo", json!({ "text": "recorded" })), "recorded");
    assert_eq!(sandbox.segments().len(), 1, "nobody was asked so far");
    assert_eq!(asker.text("echo", json!({ "text": "live" })), "LIVE");
    let pid = asker.text("pid", json!({}));
    assert_eq!(asker.text("pid", json!({})), pid);
    // What it asks in turn reaches the client, and progress has the client's own token.
    assert_eq!(asker.text("ask", json!({ "text": "say" })), "say \"please\"");
    let counted = json!({ "name": "count", "arguments": {}, "_meta": { "progressToken": "mine" } });
    asker.heard.clear();
    assert!(asker.ask("tools/call", counted)["result"].is_object());
    assert_eq!(asker.heard[0]["params"]["progressToken"], "mine");
    asker.end();
    // It is a session of its own, that says what it extends.
    let segments = sandbox.segments();
    assert_eq!(segments.len(), 2);
    let list = sandbox.stdout(["sessions", "list", "--json"]);
    assert!(list.lines().any(|line| line.contains("\"extends\":")), "{list}");
    // From then on the recording has it, without a server.
    let mut command = sandbox.command(["mock", "one"]);
    command.stderr(std::process::Stdio::piped());
    let mut asker = Asker::opened(Running::start(command));
    assert_eq!(asker.text("echo", json!({ "text": "recorded" })), "recorded");
    assert_eq!(asker.text("echo", json!({ "text": "live" })), "LIVE");
    assert_eq!(asker.text("pid", json!({})), pid);
    assert_eq!(asker.call("echo", json!({ "text": "neither" }))["error"]["code"], 5050);
    let said = asker.end();
    assert!(said.contains("1 session that extends it"), "{said}");
}

#[test]
fn over_http_too() {
    let sandbox = Sandbox::new();
    sandbox.record_one();
    let mut command = sandbox.command(["mock", "one", "--fallback", "--listen", "127.0.0.1:0"]);
    command.args(tools("changed"));
    let listening = crate::http_kit::Listening::start(command);
    let mut asker = Asker::opened(sandbox.run_to("streamable-http", &listening.url("/mcp"), &["--no-record"]));
    assert_eq!(asker.text("echo", json!({ "text": "recorded" })), "recorded");
    assert_eq!(asker.text("echo", json!({ "text": "live" })), "LIVE");
    asker.end();
    listening.end();
    assert_eq!(sandbox.segments().len(), 2);
}

#[test]
fn a_live_server_may_have_an_address() {
    let sandbox = Sandbox::new();
    sandbox.record_one();
    let server = sandbox.listen_to_fixture(&["tools", "changed"], &["--no-record"]);
    for (transport, path) in [("streamable-http", "/mcp"), ("sse", "/sse")] {
        let url = server.url(path);
        let target = ["--no-record", "--target-url", &url, "--target-transport", transport].map(String::from);
        let mut asker = Asker::opened(sandbox.mock_before(&target));
        assert_eq!(asker.text("echo", json!({ "text": "live" })), "LIVE", "{transport}");
        asker.end();
    }
    assert_eq!(sandbox.segments().len(), 1, "nothing is kept if nothing is to be");
}

#[test]
fn the_newest_revision_needs_no_handshake() {
    let sandbox = Sandbox::new();
    sandbox.record_of("one", "", Asker::modern, |asker| drop(asker.text("echo", json!({ "text": "recorded" }))));
    let mut asker = Asker::modern(sandbox.mock_before(&tools("changed")));
    assert_eq!(asker.text("echo", json!({ "text": "recorded" })), "recorded");
    assert_eq!(asker.text("echo", json!({ "text": "live" })), "LIVE");
    assert_eq!(asker.ask_in_rounds(), "say \"please\"");
    asker.end();
}

#[test]
fn a_live_server_that_is_gone_leaves_the_recording() {
    let sandbox = Sandbox::new();
    sandbox.record_one();
    let mut asker = Asker::opened(sandbox.mock_before(&tools("changed")));
    let died = asker.call("die", json!({}));
    assert_eq!(died["error"]["data"]["mcp-proxy/reason"], "server-gone", "{died}");
    // It is not started again, and what it said last is not taken for an answer. Its end may be heard of a
    // moment later than its last words.
    until("its end is heard of", || {
        let died = asker.call("die", json!({}));
        died["error"]["data"]["mcp-proxy/reason"] == "not-in-recording"
    });
    assert_eq!(asker.text("echo", json!({ "text": "recorded" })), "recorded");
    asker.end();
}

#[test]
fn a_live_server_that_cannot_be_started_is_said_and_answered() {
    let sandbox = Sandbox::new();
    sandbox.record_one();
    let mut asker = Asker::opened(sandbox.mock_before(&["--".into(), "/no/such/server".into()]));
    let refused = asker.call("echo", json!({ "text": "live" }));
    assert!(refused["error"]["data"]["mcp-proxy/reason"].is_string(), "{refused}");
    assert_eq!(asker.text("echo", json!({ "text": "recorded" })), "recorded");
    let said = asker.end();
    assert!(said.contains("cannot start `/no/such/server`"), "{said}");
}
