//! A proxy tool is no way around rules.

use super::tests::{Play, call, rule, rules};
use super::*;
use crate::intercept::{Decision, Lasting};
use crate::policy::rules::{Permission, Rules};

/// Names that rules may or may not be about, in spellings that somebody may try.
const NAMES: [&str; 40] = [
    "delete_repo",
    "DELETE_REPO",
    "deleteRepo",
    "delete-repo",
    "remove_file",
    "rm",
    "drop_table",
    "purge_cache",
    "wipe_disk",
    "erase",
    "destroy_vm",
    "truncate_log",
    "unlink",
    "uninstall",
    "clear_all",
    "list_repos",
    "get_repo",
    "read_file",
    "search",
    "fetch",
    "write_file",
    "create_repo",
    "update_issue",
    "send_mail",
    "post_message",
    "upload",
    "rename",
    "move_file",
    "run_command",
    "exec",
    "shell",
    "eval",
    "grant_access",
    "set_permissions",
    "add_admin",
    "files__delete",
    "proxy",
    "call",
    "batch",
    "x",
];

fn through(id: u32, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"proxy","arguments":{arguments}}}}}"#
    )
}

fn one(name: &str) -> String {
    format!(r#"{{"action":"call","type":"tool","path":"{name}","args":{{}}}}"#)
}

fn batch(names: &[&str]) -> String {
    let operations: Vec<String> = names.iter().map(|name| one(name)).collect();
    format!(r#"{{"action":"batch","operations":[{}]}}"#, operations.join(","))
}

fn all_rules() -> [Rules; 6] {
    let deny = |filter| rules(vec![rule("no", filter, VerdictKind::Deny)]);
    [
        deny("op:delete"),
        deny("op:execute or op:admin"),
        deny("tool:delete*"),
        deny("method:tools/call op:write"),
        rules(vec![rule("yes", "tool:proxy or op:read", VerdictKind::Allow), rule("no", "*", VerdictKind::Deny)]),
        Rules { default: Permission::Deny, ..rules(vec![rule("yes", "tool=proxy or op:read", VerdictKind::Allow)]) },
    ]
}

#[test]
fn what_is_denied_is_denied_through_the_tool_and_in_a_batch() {
    for (number, (one_way, other_way)) in all_rules().into_iter().zip(all_rules()).enumerate() {
        let (mut plain, mut tool) = (Play::by(one_way), Play::by(other_way));
        let is_open = {
            tool.calls(1, "proxy");
            tool.got(Side::Client);
            !tool.got(Side::Server).is_empty()
        };
        for name in NAMES {
            plain.calls(1, name);
            let passes = plain.got(Side::Server).len() == 1;
            plain.got(Side::Client);
            for arguments in [one(name), batch(&[name]), batch(&["get_it", name])] {
                tool.sends(Side::Client, &through(2, &arguments));
                let passed = tool.got(Side::Server);
                assert_eq!(!passed.is_empty(), passes && is_open, "rules {number}: {arguments}");
                assert!(passed.iter().all(|passed| *passed == through(2, &arguments)), "it is as it was");
                let answers = tool.got(Side::Client);
                assert_eq!(answers.len(), usize::from(passed.is_empty()));
                if !passed.is_empty() {
                    tool.sends(Side::Server, r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#);
                    tool.got(Side::Client);
                }
            }
        }
    }
}

#[test]
fn the_audit_says_what_was_used() {
    let mut play = Play::by(rules(vec![rule("no-deletes", "op:delete", VerdictKind::Deny)]));
    for arguments in [one("delete_repo"), one("get_repo"), batch(&["get_a", "write_b"]), batch(&["get_a", "rm"])] {
        play.sends(Side::Client, &through(1, &arguments));
        play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
    }
    play.sends(Side::Client, &through(1, r#"{"action":"list","type":"tool"}"#));
    let answers = play.got(Side::Client);
    assert!(answers[0].contains(r#""tool":"delete_repo""#), "{answers:?}");
    let decided: Vec<String> =
        play.audited().into_iter().filter(|line| line.starts_with("decision")).map(|line| line.to_string()).collect();
    assert_eq!(
        decided,
        [
            "decision delete_repo delete deny no-deletes rule",
            "decision get_repo read allow default",
            "decision get_a read allow default",
            "decision write_b write allow default",
            "decision rm delete deny no-deletes rule",
            "decision proxy write allow default",
        ]
    );
}

#[test]
fn arguments_behind_the_tool_decide_as_they_would_elsewhere() {
    let mut play = Play::by(rules(vec![rule("no", "tool:pay $.params.arguments.sum > 100", VerdictKind::Deny)]));
    let mut passes = |sum: &str| {
        let arguments = format!(r#"{{"action":"call","type":"tool","path":"pay","args":{sum}}}"#);
        play.sends(Side::Client, &through(1, &arguments));
        play.got(Side::Client);
        !play.got(Side::Server).is_empty()
    };
    assert!(passes(r#"{"sum":100}"#));
    assert!(!passes(r#"{"sum":101}"#));
    assert!(!passes(r#""{\"sum\":101}""#));
    assert!(!passes(r#"{"sum":1,"sum":101}"#), "it can be read two ways");
}

#[test]
fn people_are_asked_about_what_is_used_and_their_answers_are_about_that() {
    let mut play = Play::by(rules(vec![rule("careful", "op:delete", VerdictKind::Ask)]));
    play.pipeline.decisions().set_watchers(1);
    play.sends(Side::Client, &through(1, &one("delete_repo")));
    assert!(play.got(Side::Server).is_empty());
    play.decides(Decision::Approve { lasting: Lasting::Session, edited: None }).expect("it is asked");
    assert_eq!(play.got(Side::Server), [through(1, &one("delete_repo"))]);
    // The answer counts however the same is used.
    play.sends(Side::Client, &through(2, &one("delete_repo")));
    play.sends(Side::Client, &call(3, "delete_repo"));
    assert_eq!(play.got(Side::Server).len(), 2);
    // But for nothing else.
    play.sends(Side::Client, &through(4, &one("delete_user")));
    assert!(play.got(Side::Server).is_empty());
    play.decides(Decision::Deny { lasting: Lasting::Once, message: None }).expect("it is asked");
    assert_eq!(play.got(Side::Client).len(), 1);
    // And nobody is asked about a part of something.
    play.sends(Side::Client, &through(5, &batch(&["delete_repo", "delete_user"])));
    assert!(play.got(Side::Server).is_empty());
    assert_eq!(play.got(Side::Client).len(), 1);
}

#[test]
fn a_rule_about_the_tool_itself_still_counts() {
    let mut play = Play::by(rules(vec![rule("no-proxy", "tool:proxy", VerdictKind::Deny)]));
    play.sends(Side::Client, &through(1, &one("get_repo")));
    assert!(play.got(Side::Server).is_empty());
    assert!(play.got(Side::Client)[0].contains("no-proxy"));
}
