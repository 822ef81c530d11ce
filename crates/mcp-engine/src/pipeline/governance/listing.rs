//! What clients are shown of lists.

use std::sync::Arc;

use mcp_filter::Filter;

use super::tests::{Play, rule, rules};
use super::*;
use crate::intercept::{Decision, Owner};
use crate::policy::rules::Rules;

fn hiding() -> Rules {
    let rules = rules(vec![
        rule("no-deletes", "op:delete or hint:destructive", VerdictKind::Deny),
        rule("harmless", "tool:get_* hint:readonly", VerdictKind::Allow),
        rule("no-gets", "tool:get_*", VerdictKind::Deny),
    ]);
    Rules { hide_denied: true, ..rules }
}

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn listed(id: u32, tools: &[&str]) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{}]}}}}"#, tools.join(","))
}

fn tool(name: &str) -> String {
    format!(r#"{{"name":"{name}"}}"#)
}

impl Play {
    /// What the client gets of a list.
    fn is_shown(&mut self, list: &str) -> String {
        self.sends(Side::Client, ASK);
        assert_eq!(self.got(Side::Server), [ASK]);
        self.sends(Side::Server, list);
        self.got(Side::Client).concat()
    }
}

#[test]
fn what_may_not_be_used_is_not_listed() {
    let mut play = Play::by(hiding());
    let (delete, list) = (tool("delete_repo"), tool("list_repos"));
    assert_eq!(play.is_shown(&listed(1, &[&delete, &list])), listed(1, &[&list]));
    assert_eq!(play.is_shown(&listed(1, &[&list])), listed(1, &[&list]));
    // What looks like a list and was not asked for as one is nobody's business.
    play.sends(Side::Client, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_repos"}}"#);
    play.sends(Side::Server, &listed(2, &[&delete]));
    assert_eq!(play.got(Side::Client), [listed(2, &[&delete])]);
    play.sends(Side::Server, &listed(77, &[&delete]));
    assert_eq!(play.got(Side::Client), [listed(77, &[&delete])]);
}

#[test]
fn lists_are_judged_by_what_they_say_themselves() {
    let mut play = Play::by(hiding());
    let harmless = r#"{"name":"get_time","annotations":{"readOnlyHint":true}}"#;
    let harmful = r#"{"name":"tidy_up","annotations":{"destructiveHint":true}}"#;
    assert_eq!(play.is_shown(&listed(1, &[harmless, harmful])), listed(1, &[harmless]));
    // A later list makes nothing harmless, nor do other rules make anybody forget.
    play.pipeline.set_rules(Arc::new(hiding()));
    let (tidy, late) = (tool("tidy_up"), r#"{"name":"get_late"}"#);
    assert_eq!(play.is_shown(&listed(1, &[harmless, &tidy, late])), listed(1, &[harmless]));
    let late = late.replace("}", r#","annotations":{"readOnlyHint":true}}"#);
    assert_eq!(play.is_shown(&listed(1, &[harmless, &late])), listed(1, &[harmless]));
}

#[test]
fn a_batch_of_answers_is_looked_through() {
    let mut play = Play::by(hiding());
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#;
    play.sends(Side::Client, hello);
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26"}}"#);
    let ask = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]"#;
    play.sends(Side::Client, ask);
    assert_eq!(play.got(Side::Server), [hello, ask]);
    play.got(Side::Client);
    let pong = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let batch = |list: String| format!("[{pong}, {list}]");
    play.sends(Side::Server, &batch(listed(2, &[&tool("delete_repo"), &tool("list_repos")])));
    assert_eq!(play.got(Side::Client), [batch(listed(2, &[&tool("list_repos")]))]);
}

#[tokio::test]
async fn a_list_that_was_held_shows_no_more() {
    let mut play = Play::by(hiding());
    let everything = Filter::parse("< method:tools/list").expect("a filter");
    play.pipeline.decisions().add_breakpoint(None, everything, Owner::Command).expect("there is room");
    let (delete, list) = (tool("delete_repo"), tool("list_repos"));
    assert_eq!(play.is_shown(&listed(1, &[&delete, &list])), "");
    assert_eq!(play.decides(Decision::Forward), Ok(()));
    assert_eq!(play.got(Side::Client), [listed(1, &[&list])]);
}

/// What the client gets for a call of a tool, where the server knows none.
fn missing(play: &mut Play, id: u32, name: &str) -> String {
    let arguments = r#"{"path":"/home/ann"}"#;
    let params = format!(r#"{{"name":"{name}","arguments":{arguments},"_meta":{{"progressToken":7}}}}"#);
    play.sends(Side::Client, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#));
    let got = play.got(Side::Server);
    assert_eq!(got.len(), 1, "{got:?}");
    let asked: serde_json::Value = serde_json::from_str(&got[0]).expect("JSON");
    let called = asked["params"]["name"].as_str().expect("a name");
    assert_eq!(called == name, name == "nonesuch", "the server never hears of it");
    assert_eq!(asked["params"]["_meta"]["progressToken"], 7);
    assert_eq!(got[0].contains("ann"), name == "nonesuch", "nor of its arguments");
    let log = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"no {called}"}}}}"#);
    play.sends(Side::Server, &log);
    assert_eq!(play.got(Side::Client), [log.replace(called, name)]);
    let text = format!("Tool {called} not found, '{called}'");
    play.sends(
        Side::Server,
        &format!(r#"{{ "id":{id},"jsonrpc":"2.0", "result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}}}"#),
    );
    play.got(Side::Client).concat()
}

#[test]
fn a_hidden_tool_is_answered_as_a_missing_one() {
    let mut play = Play::by(hiding());
    let expected = missing(&mut play, 1, "nonesuch");
    for (id, name) in [(2, "delete_repo"), (3, "DELETE_ALL"), (4, r#"delete_\"all\""#)] {
        let plain = expected.replace("nonesuch", name).replace(r#""id":1"#, &format!(r#""id":{id}"#));
        assert_eq!(missing(&mut play, id, name), plain);
    }
    assert_eq!(play.conversation.open_calls(Side::Client), 0);
    let audited = play.audited();
    let denied = audited.iter().filter(|line| line.contains(" deny no-deletes")).count();
    assert_eq!(denied, 3, "{audited:?}");
}

/// Servers check these before they look for the tool, and answer mistakes in them otherwise.
#[test]
fn a_hidden_tool_is_asked_for_with_the_same_task_and_null_arguments() {
    let mut play = Play::by(hiding());
    for (id, given, expected) in [
        (1, r#""arguments":null"#, r#""arguments":null"#),
        (2, r#""arguments":{"path":"ann"},"task":7"#, r#""arguments":{}"#),
        (3, r#""_meta":{}"#, r#""arguments":{}"#),
    ] {
        let params = format!(r#"{{"name":"delete_repo",{given}}}"#);
        play.sends(Side::Client, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#));
        let got = play.got(Side::Server).concat();
        assert!(got.contains(expected) && !got.contains("ann"), "{got}");
        assert_eq!(got.contains(r#""task":7"#), id == 2, "{got}");
    }
}

/// A server may log after it answered, and say nothing more of a call that was cancelled.
#[test]
fn the_name_that_the_server_got_is_never_shown_afterwards() {
    let mut play = Play::by(hiding());
    let log =
        |name: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"no {name}"}}}}"#);
    for id in 0..600 {
        play.calls(id, "delete_repo");
        let got = play.got(Side::Server);
        assert_eq!(got.len(), 1, "cancelled calls are not open, {id}");
        let asked: serde_json::Value = serde_json::from_str(&got[0]).expect("JSON");
        let cancel = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
        play.sends(Side::Client, &cancel);
        assert_eq!(play.got(Side::Server), [cancel]);
        play.sends(Side::Server, &log(asked["params"]["name"].as_str().expect("a name")));
        assert_eq!(play.got(Side::Client), [log("delete_repo")]);
    }
}

#[test]
fn calls_that_wait_for_the_server_never_show_the_name_that_it_got() {
    let mut play = Play::by(hiding());
    for id in 0..300 {
        play.calls(id, "delete_repo");
    }
    let asked = play.got(Side::Server);
    assert_eq!(asked.len(), 256);
    // The proxy answers the calls beyond.
    assert_eq!(play.got(Side::Client).len(), 44);
    for call in asked {
        let call: serde_json::Value = serde_json::from_str(&call).expect("JSON");
        let (id, name) = (&call["id"], call["params"]["name"].as_str().expect("a name"));
        let text = format!("no {name}");
        play.sends(
            Side::Server,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"{text}"}}}}"#),
        );
        let answer = play.got(Side::Client).concat();
        assert!(answer.contains("no delete_repo"), "{answer}");
    }
}

#[test]
fn a_server_that_runs_anything_runs_nothing_of_a_denied_call() {
    let mut play = Play::by(hiding());
    for (id, result) in [(1, r#"{"content":[]}"#), (2, r#"{"resultType":"input_required","inputRequests":{}}"#)] {
        play.calls(id, "delete_repo");
        assert!(!play.got(Side::Server).concat().contains("delete_repo"));
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        play.sends(Side::Server, &answer);
        assert_eq!(play.got(Side::Client), [answer], "as of any tool that it does not have");
    }
}

#[test]
fn other_hidden_things_are_unknown() {
    let rules = rules(vec![rule("no-plans", "tool:secret_*", VerdictKind::Deny)]);
    let mut play = Play::by(Rules { hide_denied: true, ..rules });
    play.sends(Side::Client, r#"{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"secret_plan"}}"#);
    assert_eq!(play.got(Side::Server), [""; 0]);
    let answer = play.got(Side::Client).concat();
    assert!(answer.contains("-32602") && answer.contains("Unknown prompt: secret_plan"), "{answer}");
}
