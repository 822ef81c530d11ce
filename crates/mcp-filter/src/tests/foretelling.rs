//! What filters say of messages before there are any.

use super::*;

const NAMES: &str = r#"{"id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"/etc"}}}"#;

#[track_caller]
fn check_foretold(expected: Certainty, expressions: &[&str]) {
    let call = Fake {
        direction: Some(Direction::ClientToServer),
        kind: Some("request"),
        revision: Some("2025-06-18"),
        ..message(NAMES)
    };
    for expression in expressions {
        let opposite = match expected {
            Certainty::Yes => Certainty::No,
            Certainty::No => Certainty::Yes,
            Certainty::Maybe => Certainty::Maybe,
        };
        assert_eq!(parsed(expression).foretell(&call, Spelling::Exact), expected, "{expression}");
        assert_eq!(parsed(&format!("not ({expression})")).foretell(&call, Spelling::Exact), opposite, "{expression}");
    }
}

#[test]
fn names_decide() {
    check_foretold(
        Certainty::Yes,
        &[
            "tool:write_*",
            "> kind:request method:tools/call tool:write_file",
            "era:legacy",
            "replay:no",
            "write_file",
            "/^tools/",
            "tool:write_file or $.params.x",
            "tool!=x",
            "not (tool:x $.params.x)",
        ],
    );
    check_foretold(
        Certainty::No,
        &[
            "tool:x",
            "<",
            "kind:response",
            "client:x",
            "op:delete",
            "hint:readonly",
            "tool:x $.params.arguments.path",
            "tool:x write_file",
            "era:modern or client:x",
        ],
    );
}

#[test]
fn nothing_asked_is_certain() {
    assert_eq!(parsed("").foretell(&message(NAMES), Spelling::Any), Certainty::Yes);
}

#[test]
fn what_only_the_message_tells_is_in_doubt() {
    check_foretold(
        Certainty::Maybe,
        &[
            "$.params.arguments.path",
            "$.params.name = write_file",
            "tool:write_file $.params.arguments.path ^= \"/etc\"",
            "tool:x or size>10",
            "text:write_file",
            "etc",
            "/etc/",
            "id:1",
            "seq:7",
            "seq:*",
            "header.host",
            "header:host",
            "dur>1s",
            "status:ok",
            "code:7",
            "held:yes",
            "edited:no",
            "mark:x",
            "noise:no",
            "rule:x",
            "verdict:deny",
            "not $.params.arguments.path",
        ],
    );
}

#[test]
fn spellings_are_foretold_too() {
    let call = message(r#"{"params":{"name":"Delete_Repo"}}"#);
    for (expression, any, every) in [
        ("tool:delete_repo", Certainty::Yes, Certainty::No),
        ("not tool:delete_repo", Certainty::Yes, Certainty::No),
        ("tool:Delete_Repo", Certainty::Yes, Certainty::Yes),
        ("tool:delete_repo $.x", Certainty::Maybe, Certainty::No),
        ("tool:Delete_Repo $.x", Certainty::Maybe, Certainty::Maybe),
        ("tool:other $.x", Certainty::No, Certainty::No),
    ] {
        assert_eq!(parsed(expression).foretell(&call, Spelling::Any), any, "{expression}");
        assert_eq!(parsed(expression).foretell(&call, Spelling::Every), every, "{expression}");
    }
}

#[test]
fn paths_tell_their_members() {
    let filter = parsed("tool:x ($.params.arguments.path or not $..uri[0] ~ x) and $.params['odd key'].* = 1");
    assert_eq!(filter.path_keys(), ["arguments", "odd key", "params", "path", "uri"]);
    assert!(parsed("tool:x text:y").path_keys().is_empty());
}
