//! Rules in front of a server: when it starts at all, and what a change of the file does.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::kit::{Running, Sandbox, until};

const ALLOW: &str = r#"{"github": {"delete": "allow"}}"#;
const DENY: &str = r#"{"github": {"delete": "deny"}}"#;

fn call(id: u64, tool: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}}).to_string()
}

/// Puts another text in place of the file at once, as editors do it.
fn replace(sandbox: &Sandbox, text: &str) {
    std::fs::write(sandbox.path("draft"), text).unwrap();
    std::fs::rename(sandbox.path("draft"), sandbox.path("rules.json")).unwrap();
}

/// Every record of the only audit log.
fn audit(sandbox: &Sandbox) -> Vec<Value> {
    let logs: Vec<PathBuf> = std::fs::read_dir(sandbox.state().audit())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    let [log] = logs.as_slice() else { panic!("{logs:?}") };
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn without_right_rules_nothing_starts() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("wrong.json"), r#"{"github": {"delete": "dney"}}"#).unwrap();
    std::fs::write(sandbox.path("right.json"), DENY).unwrap();
    for (flags, why) in [
        (&["--rules", "none.json"][..], "cannot read the rules in"),
        (&["--rules", "wrong.json"], "wrong.json:1:23: no such permission: `dney`"),
        (&["--rules", "right.json", "--service", "jira"], "there is no service `jira`"),
        (&["--service", "github"], "--rules <FILE>"),
    ] {
        let server = ["--", "touch", "started"];
        let output = sandbox.output(["run"].into_iter().chain(flags.iter().copied()).chain(server));
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(why), "{errors}");
        assert!(!sandbox.path("started").exists() && sandbox.segments().is_empty(), "{flags:?}");
    }
}

#[test]
fn it_is_said_whose_rules_apply() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("rules.json"), DENY).unwrap();
    let (status, errors) = sandbox.run(&["--rules", "~/rules.json"], &["answer"]).end();
    assert!(status.success(), "{errors}");
    assert!(errors.contains(": rules: 1 rule, default allow, classify words (version "), "{errors}");
    assert!(errors.contains("those of the service `github`"), "{errors}");
    let (_, errors) = sandbox.run(&["--rules", "rules.json", "--quiet"], &["answer"]).end();
    assert_eq!(errors, "");
}

/// A file of before is followed, and what is weaker in it is named; so are services that no tool can be of.
#[test]
fn rules_that_do_less_than_they_seem_to_are_noted() {
    let sandbox = Sandbox::new();
    let weaker = r#"{"policy": {"rules": [{"name": "no-deletes", "match": "op:delete", "verdict": "deny"}]}}"#;
    std::fs::write(sandbox.path("weaker.json"), weaker).unwrap();
    std::fs::write(sandbox.path("odd.json"), r#"{"my files": {"write": "deny"}, "slack": {"read": "allow"}}"#).unwrap();
    for (file, note) in [
        (
            "weaker.json",
            "note: rule \"no-deletes\" does not match a tool for `destructiveHint: true` alone; `match = \"op:delete or hint:destructive\"` does",
        ),
        ("odd.json", "note: no tool's name can begin with `my files`; --service applies the rules of such a service"),
    ] {
        let (status, errors) = sandbox.run(&["--rules", file], &["answer"]).end();
        assert!(status.success() && errors.contains(note), "{errors}");
        let checked = sandbox.stdout(["policy", "check", file]);
        assert!(checked.contains(note), "{checked}");
    }
}

/// Answers lists as server-filesystem and Playwright's server do, and calls with an empty result. Every id is 7.
const HINTING: &str = r#"while read -r line; do case "$line" in
    *'"tools/list"'*) printf '%s\n' '{"jsonrpc":"2.0","id":7,"result":{"tools":[
        {"name":"read_file","annotations":{"readOnlyHint":true}},{"name":"list_all","annotations":{"destructiveHint":true}},
        {"name":"write_file","annotations":{"readOnlyHint":false,"destructiveHint":true}},
        {"name":"edit_file","annotations":{"readOnlyHint":false,"destructiveHint":true}},
        {"name":"move_file","annotations":{"readOnlyHint":false,"destructiveHint":true}},
        {"name":"browser_navigate","annotations":{"readOnlyHint":false,"destructiveHint":true}},
        {"name":"browser_click","annotations":{"readOnlyHint":false,"destructiveHint":true}},
        {"name":"delete_file","annotations":{"readOnlyHint":false,"destructiveHint":true}}]}}' | tr -d '\n'; echo ;;
    *) printf '%s\n' '{"jsonrpc":"2.0","id":7,"result":{}}' ;;
    esac; done"#;

#[test]
fn rules_that_go_by_parts_of_names_deny_by_them() {
    let seed = r#"{"fs": {"read": "allow", "write": "allow", "delete": "deny"}"#;
    for (mode, denied) in
        [("", vec!["delete_file"]), (r#", "classify": "substring""#, vec!["list_presets", "delete_file"])]
    {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path("rules.json"), format!("{seed}{mode}}}")).unwrap();
        let mut proxy = sandbox.run_script(&["--rules", "rules.json"], HINTING);
        let mut is_denied = |tool: &&str| {
            proxy.send(format!("{}\n", call(7, tool)).as_bytes());
            proxy.json()["error"]["code"] == -32000
        };
        let tools = ["list_presets", "list_all", "delete_file", "write_file"];
        assert_eq!(tools.into_iter().filter(|tool| is_denied(tool)).collect::<Vec<_>>(), denied);
        let (_, errors) = proxy.end();
        let mode = if mode.is_empty() { "classify words" } else { "classify substring" };
        assert!(errors.contains(&format!("3 rules, default allow, {mode} (version ")), "{errors}");
    }
}

/// The seed's example rules mean after a list what they mean before it.
#[test]
fn what_a_server_says_of_its_tools_makes_no_delete_of_a_write() {
    let writes = ["write_file", "edit_file", "move_file", "browser_navigate", "browser_click"];
    let denied_by = |rules: &str, tools: &[&str]| {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path("rules.json"), rules).unwrap();
        let mut proxy = sandbox.run_script(&["--rules", "rules.json", "--quiet"], HINTING);
        let mut ask = |message: &str| {
            proxy.send(format!("{message}\n").as_bytes());
            proxy.json()
        };
        let denied = |ask: &mut dyn FnMut(&str) -> serde_json::Value| -> Vec<String> {
            let is_denied = |tool: &&&str| ask(&call(7, tool))["error"]["code"] == -32000;
            tools.iter().filter(is_denied).map(|tool| (*tool).to_owned()).collect()
        };
        let before = denied(&mut ask);
        let listed = ask(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
        assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(8), "{listed}");
        let after = denied(&mut ask);
        proxy.end();
        (before, after)
    };
    let check = |rules: &str, tools: &[&str], before: &[&str], after: &[&str]| {
        let denied = denied_by(rules, tools);
        assert_eq!(
            (denied.0.iter().map(String::as_str).collect(), denied.1.iter().map(String::as_str).collect()),
            (before.to_vec(), after.to_vec()),
            "{rules}"
        );
    };
    let all = [&writes[..], &["read_file", "list_all", "delete_file"]].concat();
    let seed = r#"{"fs": {"read": "allow", "write": "allow", "delete": "deny"}}"#;
    check(seed, &all, &["delete_file"], &["delete_file"]);
    let rule = |filter: &str| {
        format!(r#"{{"policy": {{"rules": [{{"name": "r", "match": "{filter}", "verdict": "deny"}}]}}}}"#)
    };
    // The one step that a hint makes: a read becomes a write.
    check(&rule("op:write"), &all, &writes, &[&writes[..], &["list_all"]].concat());
    check(&rule("op>=write"), &["list_all", "delete_file"], &["delete_file"], &["list_all", "delete_file"]);
    check(&rule("hint:destructive"), &["read_file", "list_all", "edit_file"], &[], &["list_all", "edit_file"]);
    check(&rule("hint:unknown"), &["read_file", "new_one"], &["read_file", "new_one"], &["new_one"]);
}

/// Sends calls until one is answered as wanted, and tells how each was.
fn call_until(proxy: &mut Running, next_id: &mut u64, is_denied: bool, seen: &mut Vec<bool>) {
    const BURST: u64 = 20;
    loop {
        let burst: String = (0..BURST).map(|n| call(*next_id + n, "delete_repo") + "\n").collect();
        *next_id += BURST;
        proxy.send(burst.as_bytes());
        let denied: Vec<bool> = (0..BURST)
            .map(|_| {
                let answer = proxy.json();
                match answer["error"]["code"].as_i64() {
                    Some(-32000) => true,
                    None if answer["result"]["method"] == "tools/call" => false,
                    _ => panic!("{answer}"),
                }
            })
            .collect();
        seen.extend(&denied);
        if denied.contains(&is_denied) {
            return;
        }
    }
}

/// Calls go on while the file changes; each is judged by one version of it, and the audit says by which.
#[test]
fn rules_change_under_load() {
    let sandbox = Sandbox::new();
    replace(&sandbox, ALLOW);
    let mut proxy = sandbox.run(&["--rules", "rules.json"], &["answer"]);
    let (mut next_id, mut seen) = (1, Vec::new());
    call_until(&mut proxy, &mut next_id, false, &mut seen);
    for (text, is_denied) in [(DENY, true), (ALLOW, false)] {
        replace(&sandbox, text);
        call_until(&mut proxy, &mut next_id, is_denied, &mut seen);
    }
    let (status, errors) = proxy.end();
    assert!(status.success(), "{errors}");
    // Of the second change it may have had no time to speak.
    assert!(errors.contains("mcp-proxy: rules reloaded: 1 rule"), "{errors}");
    let records = audit(&sandbox);
    let decisions: Vec<&Value> = records.iter().filter(|record| record["kind"] == "decision").collect();
    assert_eq!(decisions.len(), seen.len());
    let changes = decisions.windows(2).filter(|pair| pair[0]["rules"] != pair[1]["rules"]).count();
    assert_eq!(changes, 2);
    let (first, last) = (&decisions[0]["rules"], &decisions[decisions.len() - 1]["rules"]);
    assert_eq!(first, last);
    // Calls of a burst are answered in their order, but for those that are denied, which overtake.
    for decision in &decisions {
        let expected = if decision["rules"] == *first { "allow" } else { "deny" };
        assert_eq!(decision["verdict"], expected, "{decision}");
    }
    let denied = decisions.iter().filter(|decision| decision["verdict"] == "deny").count();
    assert_eq!(denied, seen.iter().filter(|is_denied| **is_denied).count());
}

/// A wrong file, and then none, leave what counted before.
#[test]
fn a_file_that_is_wrong_or_gone_changes_nothing() {
    let sandbox = Sandbox::new();
    replace(&sandbox, DENY);
    let mut command = sandbox.command(["run", "--rules", "rules.json", "--"]);
    command.arg(crate::kit::fixture_program()).arg("answer");
    let heard = sandbox.path("heard");
    command.stderr(std::fs::File::create(&heard).unwrap());
    let mut proxy = Running::start_quietly(command);
    let has_heard = |text: &str| std::fs::read_to_string(&heard).unwrap().contains(text);
    let mut check_denied = |id: u64| {
        proxy.send((call(id, "delete_repo") + "\n").as_bytes());
        assert_eq!(proxy.json()["error"]["code"], -32000);
    };
    check_denied(1);
    replace(&sandbox, r#"{"github": {"delete": "alow"}}"#);
    until("the mistake is told", || has_heard("did you mean `allow`?"));
    check_denied(2);
    std::fs::remove_file(sandbox.path("rules.json")).unwrap();
    until("it is told that the file is gone", || has_heard("is gone, and the rules in it still count"));
    check_denied(3);
    replace(&sandbox, DENY);
    until("it is told that the file is back", || has_heard("the rules file is right again"));
    check_denied(4);
    replace(&sandbox, ALLOW);
    until("the new rules count", || has_heard("rules reloaded"));
    proxy.send((call(5, "delete_repo") + "\n").as_bytes());
    assert_eq!(proxy.json()["result"]["method"], "tools/call");
}
