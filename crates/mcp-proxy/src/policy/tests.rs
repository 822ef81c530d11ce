//! What people see of files that are wrong, and what is read from those that are right.

use std::time::Duration;

use mcp_engine::policy::rules::{Denial, Permission, Rules, VerdictKind};

use super::file;
use super::service::Naming;
use crate::config::Source;

fn read(name: &str, text: &str) -> Rules {
    let read = file::of(&Source::for_test(name, text), Naming::default());
    read.unwrap_or_else(|failure| panic!("{failure}")).rules
}

fn refused(name: &str, text: &str) -> String {
    file::of(&Source::for_test(name, text), Naming::default()).expect_err(text).to_string()
}

#[test]
fn everything_that_can_be_said() {
    let rules = read(
        "rules.yaml",
        r#"
policy:
  server: github
  default: deny
  hide_denied: true
  denial: result
  audit_required: true
  operations: {"z_*": read, "a_*": delete}
  rules:
    - {name: one, match: "", verdict: allow}
    - {name: two, match: "op:delete", verdict: ask, message: "Really?", timeout: 1.5m, on_timeout: allow}
    - {name: three, match: "tool:x", verdict: ask, timeout: 20}
"#,
    );
    assert_eq!(rules.server.as_deref(), Some("github"));
    assert_eq!((rules.default, rules.denial), (Permission::Deny, Denial::Result));
    assert!(rules.hide_denied && rules.audit_required);
    let operation = |tool| rules.classifier.classify(tool, Default::default()).operation.name();
    assert_eq!((operation("z_delete"), operation("a_read")), ("read", "delete"));
    let [one, two, three] = rules.rules.as_slice() else { panic!("{rules:?}") };
    assert_eq!((&*one.name, one.verdict, one.on_timeout), ("one", VerdictKind::Allow, Permission::Deny));
    assert_eq!((two.verdict, two.message.as_deref()), (VerdictKind::Ask, Some("Really?")));
    assert_eq!((two.timeout, two.on_timeout), (Some(Duration::from_secs(90)), Permission::Allow));
    assert_eq!((three.timeout, three.on_timeout), (Some(Duration::from_secs(20)), Permission::Deny));
}

#[test]
fn names_tell_what_tools_do_as_the_file_says() {
    let of = |rules: &Rules, tool| rules.classifier.classify(tool, Default::default()).operation.name();
    let asked = |name: &str, text: &str| {
        let rules = read(name, text);
        ["list_presets", "deny_all", "mine"].map(|tool| of(&rules, tool))
    };
    let native = "[policy]\noperations = { mine = \"admin\" }\n";
    assert_eq!(asked("rules.toml", native), ["read", "admin", "admin"]);
    assert_eq!(asked("rules.toml", &format!("{native}classify = \"words\"\n")), ["read", "admin", "admin"]);
    let substring = ["delete", "write", "admin"];
    assert_eq!(asked("rules.toml", &format!("{native}classify = \"substring\"\n")), substring);
    let operations = r#""operations": {"mine": "admin"}, "classify": "substring""#;
    assert_eq!(asked("rules.json", &format!(r#"{{"fs": {{"delete": "deny"}}, {operations}}}"#)), substring);
    let list = r#"{"service": "fs", "operations": ["delete"], "permission": "deny"}"#;
    assert_eq!(asked("rules.json", &format!(r#"{{"rules": [{list}], {operations}}}"#)), substring);

    // A service can be called so, too.
    let service = read("rules.json", r#"{"classify": {"delete": "deny"}}"#);
    assert_eq!((&*service.rules[0].name, service.classifier.mode().name()), ("classify.delete", "words"));
    for (name, text) in [("r.toml", "[policy]\nclassify = \"substrings\""), ("r.json", r#"{"classify": "substrings"}"#)]
    {
        let refused = refused(name, text);
        assert!(
            refused.contains("no such mode: `substrings`") && refused.contains("did you mean `substring`?"),
            "{refused}"
        );
    }
}

#[test]
fn what_is_left_out_is_harmless() {
    let rules = read("rules.toml", "[policy]\n");
    assert_eq!((rules.default, rules.denial), (Permission::Allow, Denial::Error));
    assert!(rules.rules.is_empty() && !rules.hide_denied && !rules.audit_required && rules.server.is_none());
}

#[test]
fn the_version_is_what_sha256sum_says() {
    assert_eq!(&*read("rules.json", "{\"default\": \"deny\"}").version, "94a6e5df8804");
}

#[test]
fn every_mistake_of_a_file_is_shown() {
    insta::assert_snapshot!(refused(
        "rules.toml",
        r#"
[policy]
defualt = "dney"
hide_denied = "yes"
denial = "silent"
operations = { "a_*" = "remove" }
[[policy.rules]]
name = "x"
match = "tol:search and $.a ~ \"x\""
verdict = "dney"
[[policy.rules]]
name = "x"
match = '$.path ^= "/etc" verdict:deny'
verdict = "deny"
timeout = 3
[[policy.rules]]
verdict = "ask"
timeout = "3 parsecs"
name = 5
"#
    ));
}

#[test]
fn every_mistake_of_services_is_shown() {
    insta::assert_snapshot!(refused(
        "rules.json",
        r#"// ~/mcp-rules/github.json
{
  "github": {
    "read": "allow",
    "write": "alow",
    "delete": "ask",
    "remove": "deny",
    "read": "deny"
  },
  "slack": "deny",
  "default": "no",
}
"#
    ));
    insta::assert_snapshot!(refused(
        "rules.yaml",
        r#"
rules:
  - service: github
    operations: [delete, adminn]
    permission: deny
    reason: 5
  - service: github
    operations: [delete]
    permission: allow
  - operations: delete
    permision: allow
  - match: op:delete
default: deny
github: {delete: deny}
"#
    ));
}

#[track_caller]
fn check(name: &str, text: &str, expected: &str) {
    let shown = refused(name, text);
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn wrong_files_are_refused() {
    check("r.json", "{}", "r.json:1:1: there are no rules in this file");
    check("r.json", "[]", "a rules file is a table, and this is a list");
    check("r.json", r#"{"mcpServers": {}}"#, "this is a client's config, and not rules");
    check("r.json", r#"{"policy": {}, "severs": []}"#, "unknown key `severs`");
    check("r.json", r#"{"policy": {}, "servers": [], "listn": 80}"#, "unknown key `listn`");
    check("r.json", r#"{"policy": []}"#, "`policy` is a table, and this is a list");
    check("r.json", r#"{"policy": {"rules": {}}}"#, "`rules` is a list, and this is a table");
    check("r.json", r#"{"rules": "x"}"#, "`rules` is a list, and this is text");
    check("r.json", r#"{"rules": []}"#, "r.json:1:11: there are no rules in this list");
    check("r.json", r#"{"rules": [{}]}"#, "r.json:1:12: this rule has no `service`");
    let nothing = r#"{"rules": [{"service": "github", "operations": [], "permission": "deny"}]}"#;
    check("r.json", nothing, "r.json:1:48: a rule without operations matches nothing");
    check("r.json", r#"{"_comment": "later"}"#, "r.json:1:1: there are no rules in this file");
    check("r.json", r#"{"a": {"read": "deny"}, "unknown_service": "ask"}"#, "no such permission: `ask`");
    check("r.json", r#"{"default": {"read": "deny"}}"#, "permission is text, and this is a table");
    check("r.yaml", "policy: {rules: [{name: \"a\\u202eb\", match: x, verdict: deny}]}", "that cannot be seen");
    check("r.yaml", "policy: {rules: [{name: ' ', match: x, verdict: deny}]}", "`name` is empty");
    for timeout in ["0", "-1s", "25h", "1d", "nan", "1e999", "true"] {
        check(
            "r.yaml",
            &format!("policy: {{rules: [{{name: a, match: x, verdict: ask, timeout: {timeout}}}]}}"),
            "`timeout` is",
        );
    }
    let many = (0..=file::RULES_MAX).map(|n| format!("{{name: a{n}, match: x, verdict: deny}},"));
    let many = format!("policy: {{rules: [{}]}}", many.collect::<String>());
    check("r.yaml", &many, "there are more than 10000 rules");
}

#[test]
fn rules_that_went_by_a_hint_alone_are_named_with_what_restores_them() {
    let remarks = |default: &str, rules: &[(&str, &str)]| {
        let rules = rules.iter().enumerate().map(|(at, (filter, verdict))| {
            serde_json::json!({"name": format!("r{at}"), "match": filter, "verdict": verdict})
        });
        let text = serde_json::json!({"policy": {"default": default, "rules": rules.collect::<Vec<_>>()}}).to_string();
        file::of(&Source::for_test("rules.json", &text), Naming::default()).unwrap().remarks.join("\n")
    };
    insta::assert_snapshot!(remarks("allow", &[
        ("op:delete", "deny"),
        ("op:delete,admin $.params.arguments.path ^= \"/etc\"", "ask"),
        ("op:write,read", "allow"),
        ("op:delete", "observe"),
        ("op>=write", "ask"),
    ]), @r#"
    rule "r0" does not match a tool for `destructiveHint: true` alone; `match = "op:delete or hint:destructive"` does
    rule "r1" does not match a tool for `destructiveHint: true` alone; `match = '(op:delete,admin or hint:destructive) and $.params.arguments.path^="/etc"'` does
    "#);
    insta::assert_snapshot!(remarks("deny", &[("op:read,write", "allow")]), @r#"rule "r0" also allows tools that write and have `destructiveHint: true`; `match = "op:read,write and not hint:destructive"` leaves them out"#);
    assert_eq!(remarks("allow", &[("op:delete", "deny"), ("hint:destructive", "ask")]), "");
    assert_ne!(remarks("allow", &[("hint:readonly", "allow"), ("op:delete", "deny")]), "");
    assert!(
        remarks("allow", &[("op:delete", "deny"); 12].map(|rule| rule))
            .ends_with("2 more rules by `op` do not go by `destructiveHint`")
    );
}

#[test]
fn comments_are_no_rules() {
    for text in [
        r#"{"_comment": "x", "github": {"_comment": ["y"], "delete": "deny"}, "default": "allow"}"#,
        r#"{"_comment": {}, "rules": [{"_comment": 1, "service": "github", "operations": ["delete"], "permission": "deny"}]}"#,
    ] {
        let rules = read("rules.json", text).rules;
        assert_eq!(rules.iter().map(|rule| &*rule.name).collect::<Vec<_>>(), ["github.delete"]);
    }
    let native = r#"{"_comment": "x", "policy": {"_comment": "x", "operations": {"_comment": "x", "a": "read"},
        "rules": [{"_comment": "x", "name": "a", "match": "", "verdict": "deny"}]}}"#;
    assert_eq!(read("rules.json", native).rules.len(), 1);
}

/// The caret is inside the filter, escapes or not.
#[test]
fn a_wrong_filter_is_underlined_where_it_is_wrong() {
    check(
        "r.json",
        r#"{"policy":{"rules":[{"name":"q","match":"$.a ^= \"x\" tol:1","verdict":"deny"}]}}"#,
        "r.json:1:55:",
    );
    check("r.yaml", "policy:\n  rules:\n  - {name: q, match: 'it''s tol:1', verdict: deny}", "r.yaml:3:29:");
    check("r.toml", "[[policy.rules]]\nname='q'\nverdict='deny'\nmatch='''\ntol:1'''", "r.toml:5:1:");
}

/// Every rules file in the documents is right, and every filter in their table can be read.
#[test]
fn the_documents_are_right() {
    let document = include_str!("../../../../docs/policy.md");
    let mut files = 0;
    for (format, start) in [("toml", "[policy]"), ("json", "// ~/mcp-rules"), ("json", "{\n  \"rules\"")] {
        let begin = document.find(&format!("```{format}\n{start}")).unwrap_or_else(|| panic!("{start}"));
        let text = document[begin..].split("```").nth(1).unwrap().strip_prefix(&format!("{format}\n")).unwrap();
        assert!(!read(&format!("rules.{format}"), text).rules.is_empty());
        files += 1;
    }
    assert_eq!(files, 3);
    let table = document.split("| filter | matches |").nth(1).unwrap().split("\n\n").next().unwrap();
    let filters: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix("| `")?.split("` |").next()).collect();
    assert!(filters.len() >= 8);
    for filter in filters {
        let filter = filter.replace("\\|", "|");
        let quoted = serde_json::Value::from(filter.as_str());
        read(
            "rules.json",
            &format!(
                "{{\"policy\": {{\"rules\": [{{\"name\": \"a\", \"match\": {quoted}, \"verdict\": \"deny\"}}]}}}}"
            ),
        );
    }
}

/// Whatever happens to a file, it is read or it is wrong; and what is shown of it can be shown.
#[test]
fn no_damage_is_too_much() {
    let files = [
        ("r.toml", include_str!("starter/rules.toml")),
        ("r.yaml", include_str!("starter/rules.yaml")),
        ("r.json", include_str!("starter/rules.jsonc")),
        ("r.json", "{\"github\": {\"read\": \"allow\"}, \"rules\": {}, \"default\": \"deny\"}"),
        ("r.yaml", "rules:\n  - {service: github, operations: [delete], permission: deny, reason: \"n\u{f6}\"}\n"),
    ];
    const PIECES: [&str; 12] = ["\"", "'", "{", "}", "[", "\n", "\\", "\u{1f600}", ": ", "#", "\t- ", "\\u12"];
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..400 {
        for (name, text) in files {
            let mut damaged: Vec<char> = text.chars().collect();
            for _ in 0..=next(3) {
                let (at, piece) = (next(damaged.len()), PIECES[next(PIECES.len())]);
                match next(3) {
                    0 if damaged.len() > 1 => drop(damaged.remove(at)),
                    0 | 1 => drop(damaged.splice(at..at, piece.chars())),
                    _ => damaged.truncate(at.max(1)),
                }
            }
            let damaged: String = damaged.into_iter().collect();
            match file::of(&Source::for_test(name, &damaged), Naming::default()) {
                Ok(_) => right += 1,
                Err(failure) => {
                    assert!(failure.to_string().contains(name), "{failure}");
                    wrong += 1;
                }
            }
        }
    }
    assert!(right > 50 && wrong > 500, "{right} {wrong}");
}
