//! Names in other spellings.

use super::*;

fn call(tool: &str) -> Fake {
    let tool = serde_json::Value::from(tool);
    message(&format!(r#"{{"id":1,"method":"tools/call","params":{{"name":{tool},"arguments":{{"name":"Bob"}}}}}}"#))
}

fn reading(uri: &str) -> Fake {
    let uri = serde_json::Value::from(uri);
    message(&format!(r#"{{"id":1,"method":"resources/read","params":{{"uri":{uri}}}}}"#))
}

/// Which spellings match: exactly, any, every.
#[track_caller]
fn check_in(expression: &str, subject: &Fake, exact: bool, any: bool, every: bool) {
    let filter = parsed(expression);
    let shown = || format!("{expression} {:?}", subject.tool());
    assert_eq!(filter.matches(subject), exact, "{}", shown());
    assert_eq!(filter.matches_in(subject, Spelling::Exact), exact, "{}", shown());
    assert_eq!(filter.matches_in(subject, Spelling::Any), any, "{}", shown());
    assert_eq!(filter.matches_in(subject, Spelling::Every), every, "{}", shown());
}

const OTHER_SPELLINGS: &[&str] =
    &["Delete_Repo", "DELETE_REPO", "delete_repo\0", "\u{200b}delete_repo", " delete_repo\t", "delete_rep\u{43e}"];

#[test]
fn a_name_is_meant_in_any_spelling() {
    for expression in [
        "tool:delete_repo",
        "tool:delete_*",
        "tool:*_repo",
        "tool=delete_repo",
        "tool:x,DELETE_repo",
        "tool^=delete",
        "tool~^delete_repo$",
        "tool~^Delete_Repo$",
        "$.params.name:delete_*",
        "$.params.name = delete_repo",
        "$..name ^= \"delete\"",
        "$.params.name ~ ^del.*repo$",
    ] {
        let filter = parsed(expression);
        for spelling in OTHER_SPELLINGS.iter().chain(&["delete_repo"]) {
            assert!(filter.matches_in(&call(spelling), Spelling::Any), "{expression} {spelling:?}");
        }
        for other in ["list_repos", "de1ete_rep0", "undelete_repos"] {
            assert!(!filter.matches_in(&call(other), Spelling::Any), "{expression} {other:?}");
        }
    }
    for spelling in OTHER_SPELLINGS {
        check_in("tool:delete_repo", &call(spelling), false, true, false);
        check_in("tool!=delete_repo", &call(spelling), true, true, false);
    }
    check_in("tool:delete_repo", &call("delete_repo"), true, true, true);
    check_in("tool:Delete_*", &call("Delete_Repo"), true, true, true);
}

#[test]
fn methods_and_words_have_spellings_too() {
    let call = message(r#"{"id":1,"method":"Tools/CALL\u0000","params":{"name":"\u0444d\u0435lete"}}"#);
    check_in("method:tools/call", &call, false, true, false);
    check_in("method^=tools/", &call, false, true, false);
    check_in("delete", &call, false, true, false);
    check_in("/D[e]lete/", &call, false, true, false);
}

#[test]
fn a_uri_is_where_it_leads() {
    let etc =
        ["file:///%65tc/passwd", "file:///tmp/../etc/passwd", "FILE:///etc/passwd", "file:///tmp/%2e%2e/etc/passwd"];
    for uri in etc {
        check_in("tool:file:///etc/*", &reading(uri), false, true, false);
        check_in("tool:*/etc/passwd tool~^file:///[^t]", &reading(uri), false, true, false);
        check_in("$.params.uri ^= \"file:///etc/\"", &reading(uri), false, true, false);
        assert!(!parsed("tool:file:///tmp/*").matches_in(&reading(uri), Spelling::Every), "{uri}");
    }
    check_in("tool:file:///tmp/*", &reading("file:///tmp/a"), true, true, true);
    check_in("tool:file:///tmp/%41*", &reading("file:///tmp/%41"), true, true, true);
}

#[test]
fn negations_mean_the_same_names() {
    let filter = "tool:delete_* not tool:delete_draft";
    check_in(filter, &call("delete_repo"), true, true, true);
    check_in(filter, &call("DELETE_REPO"), false, true, false);
    check_in(filter, &call("delete_draft"), false, false, false);
    check_in(filter, &call("DELETE_DRAFT"), false, false, false);
    check_in(filter, &call("delete_Draft"), true, true, false);
    check_in("not tool:read_*", &call("Read_X"), true, true, false);
}

#[test]
fn whatever_is_no_name_is_as_it_is() {
    let call = call("x");
    check_in("$.params.arguments.name = \"Bob\"", &call, true, true, true);
    check_in("$.params.arguments.name = bob", &call, false, false, false);
    check_in("$.params.name = 1", &message(r#"{"params":{"name":1.0}}"#), true, true, true);
    check_in("client:x", &call, false, false, false);
}
