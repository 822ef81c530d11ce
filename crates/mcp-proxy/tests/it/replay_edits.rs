//! Messages chosen and changed before they are sent again.

use serde_json::json;

use crate::kit::Sandbox;
use crate::tools_kit::{Asker, tools};

fn three(asker: &mut Asker) {
    asker.text("echo", json!({ "text": "a" }));
    asker.text("count", json!({}));
    asker.text("echo", json!({ "text": "b", "deep": { "text": "c" } }));
}

#[test]
fn only_what_a_filter_matches_is_sent() {
    let sandbox = Sandbox::new();
    sandbox.record("one", three);
    sandbox
        .replay(&["one", "--only", "tool:count"], "changed")
        .expect(0, &["2 same, 0 drifted, 0 without an answer, 2 skipped"]);
    // By what the answer says.
    sandbox.replay(&["one", "--only", "< and text:counted"], "changed").expect(0, &["2 same", "2 skipped"]);
    sandbox.replay(&["one", "--only", "tol:count"], "").expect_failure(2, &["did you mean `tool`"]);
    sandbox.replay(&["one", "--only", "tool:nothing"], "").expect_failure(2, &["matches nothing that the client sent"]);
}

#[test]
fn values_are_put_where_the_path_leads() {
    let sandbox = Sandbox::new();
    sandbox.record("one", three);
    let replayed = sandbox.replay(&["one", "--set", "$.params.arguments.text=x", "-v"], "");
    replayed.expect(1, &["- \"a\"", "- \"b\"", "+ \"x\"", "2 same, 2 drifted"]);
    sandbox.replay(&["one", "--set", "$..deep.text=[1, 2e3]"], "").expect(0, &["4 same"]);
    sandbox.replay(&["one", "--set", "$.params.nowhere=1"], "").expect_failure(2, &["no message has $.params.nowhere"]);
    sandbox.replay(&["one", "--set", "params=1"], "").expect_failure(2, &["a path begins with `$`"]);
}

fn edited(sandbox: &Sandbox, editor: &str, name: &str) -> std::process::Output {
    let mut command = sandbox.command(["replay", "one", "--edit", "--name", name]);
    command.args(tools("")).env("EDITOR", editor).env_remove("VISUAL");
    command.output().unwrap()
}

#[test]
fn an_editor_changes_messages_or_takes_them_out() {
    let sandbox = Sandbox::new();
    sandbox.record("one", three);
    // Untouched, everything goes as it was, byte for byte.
    assert_eq!(edited(&sandbox, "true", "untouched").status.code(), Some(0));
    let sent = |name: &str| sandbox.stdout(["inspect", name, "-v"]).matches("client to server").count();
    assert_eq!(sent("untouched"), 5);
    let changed = edited(&sandbox, r#"sed -i 's/"text": "a"/"text": "z"/'"#, "changed");
    let shown = String::from_utf8_lossy(&changed.stdout);
    assert!(
        changed.status.code() == Some(1) && shown.contains("+ \"z\"") && shown.contains("3 same, 1 drifted"),
        "{shown}"
    );
    // A message that was deleted is not sent.
    let cut = edited(&sandbox, r#"sed -i '/tools.call \[count\]/,/^}/d'"#, "cut");
    assert!(
        String::from_utf8_lossy(&cut.stdout).contains("3 same, 0 drifted, 0 without an answer, 1 skipped"),
        "{cut:?}"
    );
    assert_eq!(sent("cut"), 4);
}

#[test]
fn an_editor_that_fails_or_empties_the_file_sends_nothing() {
    let sandbox = Sandbox::new();
    sandbox.record("one", three);
    let before = sandbox.segments().len();
    for (editor, code) in [("false", 3), ("/no/such/editor", 3), ("truncate -s 0", 2), ("sed -i s/^#@/@@/", 2)] {
        let output = edited(&sandbox, editor, "nothing");
        assert_eq!(output.status.code(), Some(code), "{editor}: {output:?}");
    }
    assert_eq!(sandbox.segments().len(), before);
}
