//! Rules that ask, and people who answer: from another shell, for once and for longer.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::ask_kit::{asks, denial, is_result, on_a_pipe, on_every_way, patient, piped, write_rules};
use crate::kit::{Sandbox, until};

#[test]
fn what_is_approved_goes_on_and_nothing_else() {
    on_every_way(&[patient()], &[], |sandbox, client| {
        client.call(1, "write_file", "first");
        let number = sandbox.held_number();
        let shown = sandbox.stdout(["held"]);
        let digits = number.trim_start_matches('#');
        assert!(
            shown.starts_with(&format!("a rule asks about 1 message: `mcp-proxy approve {digits}` lets")),
            "{shown}"
        );
        assert!(shown.contains(": rule \"writes\" asks (write), denied in "), "{shown}");
        assert!(shown.ends_with("\n    Writing needs a yes.\n"), "{shown}");
        assert_eq!(sandbox.stdout(["approve", &number]), format!("#{digits:0>3} was approved\n"));
        is_result(&client.answer(1));
        client.call(2, "write_file", "second");
        let number = sandbox.held_number();
        // Nothing that lets go of held messages lets go of this one.
        for args in [&["forward", &number][..], &["modify", &number, "--set", "$.id=7"], &["drop", &number]] {
            let errors = sandbox.refused(1, args);
            assert!(
                errors.contains("rule \"writes\" asks about #") && errors.contains("approve or deny it"),
                "{errors}"
            );
        }
        sandbox.stdout(["forward", "--all"]);
        sandbox.stdout(["hold", "off"]);
        assert_eq!(sandbox.held_number(), number);
        sandbox.stdout(["deny", &number, "--message", "not today"]);
        let said = denial(&client.answer(2));
        assert!(said.contains("not today") && said.contains("Writing needs a yes"), "{said}");
        // Others were never asked about.
        client.call(3, "list_files", "third");
        is_result(&client.answer(3));
        let saw = sandbox.saw();
        assert!(saw.contains("first") && saw.contains("third") && !saw.contains("second"), "{saw}");
    });
}

#[test]
fn what_is_approved_can_be_edited() {
    let never = json!({ "name": "never", "match": "tool:write_disk", "verdict": "deny" });
    on_every_way(&[never, patient()], &[], |sandbox, client| {
        client.call(1, "write_file", "before");
        let number = sandbox.held_number();
        // What another rule denies is not approved by an edit, and stays asked about.
        let errors = sandbox.refused(1, &["approve", &number, "--set", "$.params.name=write_disk"]);
        assert!(errors.contains("this may not be sent: rule \"never\" denies it"), "{errors}");
        let said = sandbox.stdout(["approve", &number, "--set", "$.params.arguments.text=after"]);
        assert!(said.ends_with(" was approved, edited\n"), "{said}");
        is_result(&client.answer(1));
        let saw = sandbox.saw();
        assert!(saw.contains("after") && !saw.contains("before") && !saw.contains("write_disk"), "{saw}");
    });
}

#[test]
fn an_edit_comes_from_an_editor_or_standard_input() {
    on_a_pipe(false, &[patient()], &[], |sandbox, client| {
        let editor = sandbox.path("editor.sh");
        std::fs::write(&editor, "#!/bin/sh\nsed -i s/before/by-hand/ \"$1\"\n").unwrap();
        std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
        client.call(1, "write_file", "before");
        let number = sandbox.held_number();
        let mut command = sandbox.command(["approve", &number, "--edit"]);
        let edited = command.env("EDITOR", &editor).env_remove("VISUAL").output().unwrap();
        assert!(edited.status.success(), "{}", String::from_utf8_lossy(&edited.stderr));
        is_result(&client.answer(1));
        client.call(2, "write_file", "before");
        let mut command = sandbox.command(["approve", &sandbox.held_number(), "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let message = crate::hold_kit::call(2, "write_file", "by-input").to_string();
        child.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        is_result(&client.answer(2));
        let saw = sandbox.saw();
        assert!(saw.contains("by-hand") && saw.contains("by-input") && !saw.contains("before"), "{saw}");
    });
}

#[test]
fn an_answer_counts_for_the_session() {
    on_every_way(&[patient()], &[], |sandbox, client| {
        client.call(1, "write_file", "a");
        let said = sandbox.stdout(["approve", &sandbox.held_number(), "--for", "session"]);
        assert!(
            said.contains(" was approved; rule \"writes\" asks no more about tools/call [write_file] while "),
            "{said}"
        );
        is_result(&client.answer(1));
        client.call(2, "write_file", "b");
        is_result(&client.answer(2));
        // About something else it asks.
        client.call(3, "write_log", "c");
        let said = sandbox.stdout(["deny", &sandbox.held_number(), "--for", "session"]);
        assert!(said.contains(" was denied; rule \"writes\" denies tools/call [write_log] while "), "{said}");
        denial(&client.answer(3));
        client.call(4, "write_log", "d");
        denial(&client.answer(4));
        let saw = sandbox.saw();
        assert!(!saw.contains("write_log"), "{saw}");
        assert!(!sandbox.path("rules.json.answers.json").exists());
    });
}

/// The answers that are written, by tool and permission.
fn written(sandbox: &Sandbox) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(sandbox.path("rules.json.answers.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let words = |answer: &Value, name: &str| answer[name].as_str().unwrap().to_owned();
    let answers = document["answers"].as_array().unwrap().iter();
    answers.map(|answer| (words(answer, "subject"), words(answer, "permission"))).collect()
}

#[test]
fn an_answer_for_good_survives_a_restart() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, &[patient()]);
    piped(&sandbox, &[], |client| {
        client.call(1, "write_file", "a");
        let said = sandbox.stdout(["approve", &sandbox.held_number(), "--for", "rule"]);
        assert!(
            said.ends_with(
                "; rule \"writes\" asks no more about tools/call [write_file], which is written beside the rules\n"
            ),
            "{said}"
        );
        is_result(&client.answer(1));
        client.call(2, "write_log", "a");
        sandbox.stdout(["deny", &sandbox.held_number(), "--for", "rule"]);
        denial(&client.answer(2));
    });
    let pair = |tool: &str, permission: &str| (tool.to_owned(), permission.to_owned());
    assert_eq!(written(&sandbox), [pair("write_file", "allow"), pair("write_log", "deny")]);
    let mode = std::fs::metadata(sandbox.path("rules.json.answers.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let checked = sandbox.stdout(["policy", "check", "rules.json"]);
    assert!(checked.contains("tools/call [write_file] allowed by "), "{checked}");
    for (tool, code, verdict) in [("write_file", 0, "allow"), ("write_log", 1, "deny"), ("write_else", 0, "ask")] {
        let explained = sandbox.output(["policy", "explain", tool, "--rules", "rules.json"]);
        let text = String::from_utf8_lossy(&explained.stdout).into_owned();
        assert_eq!(explained.status.code(), Some(code), "{text}");
        let by = if verdict == "ask" { "rule `writes`" } else { "an answer to rule `writes` that counts for good" };
        assert!(text.contains(&format!("decision: {verdict} by {by}")), "{text}");
    }
    piped(&sandbox, &[], |client| {
        client.call(1, "write_file", "b");
        is_result(&client.answer(1));
        client.call(2, "write_log", "b");
        denial(&client.answer(2));
        let answers = sandbox.policy().answers;
        assert!(answers.len() == 2 && answers.iter().all(|answer| answer.counts), "{answers:?}");
        // Struck out, it is asked again, without a restart.
        std::fs::remove_file(sandbox.path("rules.json.answers.json")).unwrap();
        until("what is struck out counts no more", || sandbox.policy().answers.is_empty());
        client.call(3, "write_file", "c");
        sandbox.stdout(["deny", &sandbox.held_number()]);
        denial(&client.answer(3));
    });
    assert!(!sandbox.path("rules.json.answers.json").exists());
}

/// An answer to a rule that is gone is kept, and has no effect on the rule that comes in its place.
#[test]
fn an_answer_is_to_the_rule_that_asked() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, &[patient()]);
    piped(&sandbox, &[], |client| {
        client.call(1, "write_file", "a");
        sandbox.stdout(["approve", &sandbox.held_number(), "--for", "rule"]);
        is_result(&client.answer(1));
    });
    let mut other = patient();
    other["name"] = json!("others");
    write_rules(&sandbox, &[other]);
    piped(&sandbox, &[], |client| {
        assert!(sandbox.policy().answers.iter().all(|answer| !answer.counts));
        let checked = sandbox.stdout(["policy", "check", "rules.json"]);
        assert!(checked.contains("no effect: no rule of this name asks"), "{checked}");
        client.call(1, "write_file", "b");
        sandbox.stdout(["deny", &sandbox.held_number()]);
        assert_eq!(client.answer(1)["error"]["data"]["rule"], "others");
    });
    // Nor does it help against a rule that denies.
    let mut denies = patient();
    denies["verdict"] = json!("deny");
    denies.as_object_mut().unwrap().remove("timeout");
    write_rules(&sandbox, &[denies]);
    piped(&sandbox, &[], |client| {
        client.call(1, "write_file", "c");
        denial(&client.answer(1));
    });
    assert_eq!(written(&sandbox).len(), 1);
    assert!(!sandbox.saw().contains("\"b\"") && !sandbox.saw().contains("\"c\""));
}

#[test]
fn wrong_answers_refuse_to_start() {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, &[patient()]);
    std::fs::write(sandbox.path("rules.json.answers.json"), "{\n  \"answers\": [{ \"rule\": 7 }]\n}\n").unwrap();
    for args in [&["run", "--rules", "rules.json", "--", "true"][..], &["policy", "check", "rules.json"]] {
        let errors = sandbox.refused(2, args);
        assert!(errors.contains("rules.json.answers.json:2:25: `rule` is text, and this is a number\n"), "{errors}");
        assert!(errors.contains("  │   \"answers\": [{ \"rule\": 7 }]\n  │                         ^\n"), "{errors}");
        assert!(errors.ends_with("hint: mend the file; or remove it, and what it answers is asked anew\n"), "{errors}");
    }
}

/// Whoever wants it for good is told that it cannot be, and nothing has happened.
#[test]
fn what_cannot_be_written_is_not_approved() {
    on_a_pipe(false, &[patient()], &[], |sandbox, client| {
        client.call(1, "write_file", "a");
        let number = sandbox.held_number();
        // Something in its place that nobody writes over.
        std::fs::create_dir(sandbox.path("rules.json.answers.json")).unwrap();
        for command in ["approve", "deny"] {
            let errors = sandbox.refused(1, &[command, &number, "--for", "rule"]);
            assert!(errors.contains("nothing was decided, because the answer cannot be kept for good: "), "{errors}");
            assert!(
                errors.contains("rules.json.answers.json") && errors.contains("hint: --for session counts"),
                "{errors}"
            );
        }
        assert_eq!(sandbox.held_number(), number);
        assert!(!sandbox.saw().contains("write_file"));
        sandbox.stdout(["approve", &number, "--for", "session"]);
        is_result(&client.answer(1));
        client.call(2, "write_file", "b");
        is_result(&client.answer(2));
    });
}

#[test]
fn the_wrong_message_is_not_answered() {
    on_a_pipe(false, &[patient()], &[], |sandbox, client| {
        client.call(1, "list_files", "a");
        is_result(&client.answer(1));
        for (command, number) in [("approve", "99"), ("deny", "99"), ("approve", "1")] {
            let errors = sandbox.refused(1, &[command, number]);
            assert!(errors.contains(&format!("#{number} is not held")), "{errors}");
        }
        sandbox.refused(2, &["approve", "write_file"]);
        // One that is held for another reason is no question.
        sandbox.stdout(["break", "add", "> tool:list_files"]);
        client.call(2, "list_files", "b");
        let number = sandbox.held_number();
        for command in ["approve", "deny"] {
            for lasting in ["once", "session", "rule"] {
                let errors = sandbox.refused(1, &[command, &number, "--for", lasting]);
                assert!(errors.contains("no rule asks about #") && errors.contains("forward or drop it"), "{errors}");
            }
        }
        assert!(!sandbox.path("rules.json.answers.json").exists());
        sandbox.stdout(["forward", &number]);
        is_result(&client.answer(2));
        // Whoever comes second is told what the first one did.
        client.call(3, "write_file", "c");
        let number = sandbox.held_number();
        sandbox.stdout(["approve", &number]);
        is_result(&client.answer(3));
        let errors = sandbox.refused(1, &["deny", &number]);
        assert!(errors.contains("is not held: it was forwarded by command line ("), "{errors}");
    });
}

/// Of several each is answered, also after one that is none.
#[test]
fn several_are_answered_at_once() {
    on_a_pipe(false, &[patient()], &[], |sandbox, client| {
        (1..=4).for_each(|id| client.call(id, "write_file", "x"));
        let numbers: Vec<String> = sandbox.held(4).iter().map(|held| held["sequence"].to_string()).collect();
        let shown = sandbox.stdout(["held"]);
        assert!(shown.starts_with("rules ask about 4 messages: "), "{shown}");
        let said = sandbox.stdout(["approve", &numbers[0], &numbers[1]]);
        assert_eq!(said.matches(" was approved\n").count(), 2, "{said}");
        sandbox.refused(1, &["deny", &numbers[0], &numbers[2], &numbers[3]]);
        [1, 2].iter().for_each(|id| is_result(&client.answer(*id)));
        [3, 4].iter().for_each(|id| drop(denial(&client.answer(*id))));
    });
}

/// Questions stand apart from what is held for other reasons.
#[test]
fn questions_are_shown_apart() {
    on_a_pipe(
        false,
        &[asks(json!({ "timeout": "10m", "on_timeout": "allow" }))],
        &["--name", "files"],
        |sandbox, client| {
            sandbox.stdout(["break", "add", "> tool:list_files", "--name", "mine"]);
            client.call(1, "write_file", "look at me");
            client.call(2, "list_files", "and me");
            sandbox.held(2);
            let shown = sandbox.stdout(["held"]);
            let lines: Vec<&str> = shown.lines().collect();
            assert!(
                lines[0].contains("[list_files] id=2 ⏸ held ") && lines[0].contains(" by mine, goes on in "),
                "{shown}"
            );
            assert!(lines[1].is_empty() && lines[2].starts_with("a rule asks about 1 message: "), "{shown}");
            assert!(
                lines[3].contains("[write_file] id=1 ⏸ ") && lines[3].contains("asks (write), allowed in "),
                "{shown}"
            );
            assert!(sandbox.stdout(["held", "-v"]).contains("\"text\": \"look at me\""));
            let ps = sandbox.stdout(["ps"]);
            assert!(ps.contains(" 2 (1 asked)  1 rule, 1 breakpoint  "), "{ps}");
            let ps: Value = serde_json::from_str(&sandbox.stdout(["ps", "--json"])).unwrap();
            assert_eq!(
                (&ps["questions"], &ps["policy"]["rules"], &ps["policy"]["default"]),
                (&1.into(), &1.into(), &"allow".into())
            );
            let held = sandbox.held(2);
            let asks = &held.iter().find(|held| held["asks"].is_object()).unwrap()["asks"];
            let expected = json!({ "rule": "writes", "method": "tools/call", "tool": "write_file", "operation": "write", "timeout_ms": 600_000, "on_timeout": "allow" });
            assert_eq!(asks, &expected);
        },
    );
}
