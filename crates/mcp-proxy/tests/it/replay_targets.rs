//! Replays against servers of every transport, servers that are not there, and sessions of several
//! clients.

use serde_json::json;

use crate::bridge_kit::Session;
use crate::http_kit::Origin;
use crate::kit::Sandbox;
use crate::tools_kit::Asker;

fn everyday(asker: &mut Asker) {
    asker.list();
    asker.text("echo", json!({ "text": "hello" }));
    asker.text("count", json!({}));
    asker.text("ask", json!({ "text": "say" }));
}

#[test]
fn over_every_transport() {
    let sandbox = Sandbox::new();
    sandbox.record("one", everyday);
    let listening = sandbox.listen_to_fixture(&["tools", ""], &["--no-record"]);
    let (mcp, sse) = (listening.url("/mcp"), listening.url("/sse"));
    sandbox.replay_with(["one", "--target-url", &mcp]).expect(0, &["6 same, 0 drifted"]);
    sandbox.replay_with(["one", "--target-url", &sse, "--transport", "sse"]).expect(0, &["6 same, 0 drifted"]);
}

#[test]
fn the_newest_revision_over_http() {
    let sandbox = Sandbox::new();
    sandbox.record_of("modern", "", Asker::modern, |asker| {
        asker.list();
        asker.ask_in_rounds();
    });
    let listening = sandbox.listen_to_fixture(&["tools", ""], &["--no-record"]);
    sandbox.replay_with(["modern", "--target-url", &listening.url("/mcp")]).expect(0, &["4 same, 0 drifted"]);
}

#[test]
fn a_server_that_is_not_there_is_not_drift() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| drop(asker.text("echo", json!({ "text": "hello" }))));
    sandbox.replay_with(["one", "--", "/no/such/server"]).expect_failure(3, &["cannot start `/no/such/server`"]);
    let ended = sandbox.replay_with(["one", "--", "sh", "-c", "echo TOKEN is required >&2; exit 4"]);
    ended.expect_failure(3, &["the server answered nothing", "exit code 4", "its last words", "TOKEN is required"]);
    let gone = Origin::start().url("/mcp");
    sandbox.replay_with(["one", "--target-url", &gone]).expect_failure(3, &["was never reached"]);
    sandbox.replay_with(["one"]).expect_failure(2, &["replay needs a server"]);
    sandbox.replay_with(["one", "--target-url", "nonsense"]).expect_failure(2, &["cannot be the target"]);
    sandbox.replay_with(["one", "--output", "no/such/dir/f", "--", "true"]).expect_failure(3, &["cannot write"]);
    sandbox.replay_with(["nobody", "--", "true"]).expect_failure(2, &["no session `nobody`"]);
}

#[test]
fn a_session_file_is_as_good_as_a_session() {
    let sandbox = Sandbox::new();
    let mut asker = Asker::opened(sandbox.run(&["--quiet", "--no-record", "--session-file", "s.json"], &["tools", ""]));
    everyday(&mut asker);
    asker.end();
    sandbox.replay(&["s.json", "--no-record"], "").expect(0, &["6 same"]);
    let replayed = sandbox.replay(&["--session-file", "s.json", "--no-record"], "");
    replayed.expect(0, &["6 same"]);
    assert!(!replayed.shown.contains("recorded as") && sandbox.segments().is_empty(), "{replayed:?}");
}

#[test]
fn one_of_several_conversations_is_chosen() {
    let sandbox = Sandbox::new();
    let listening = sandbox.listen_to_puppet();
    for method in ["first", "second"] {
        let session = Session::open(&listening);
        session.ask(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#));
        session.delete();
    }
    listening.end();
    let id = sandbox.segments()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let puppet = [crate::kit::fixture_program().to_str().unwrap().to_owned(), "puppet".to_owned()];
    let ignore = ["--ignore", "$.result.serverInfo.version"];
    let replay = |more: &[&str]| {
        let args = [&[id.as_str()], more, &ignore, &["-v", "--", &puppet[0], &puppet[1]]].concat();
        sandbox.replay_with(args)
    };
    replay(&[]).expect_failure(2, &["this session has 2 conversations", "--conversation N", "1 (test, ", "2 (test, "]);
    replay(&["--conversation", "2"]).expect(0, &["second id=1", "2 same"]);
    replay(&["--conversation", "7"]).expect_failure(2, &["there is no conversation 7"]);
}
