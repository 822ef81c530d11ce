//! Messages held, changed, dropped and answered from another shell, as people do it.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::hold_kit::{Scene, call};
use crate::kit::{Sandbox, signal, until, wait};

#[test]
fn a_call_is_held_changed_and_goes_on() {
    let mut scene = Scene::begin(&[]);
    let said = scene.does(&["break", "add", "> tool:echo", "--name", "mine"]);
    assert_eq!(said, "breakpoint mine holds what matches `> tool:echo`\n");
    scene.call(7, "echo", "before");
    // Others overtake it.
    scene.proxy.ask(8, "other");
    let held = scene.held(1);
    assert_eq!(held[0]["why"], "mine");
    assert_eq!(held[0]["message"]["raw"], call(7, "echo", "before"));
    assert_eq!(held[0]["direction"], "client_to_server");
    assert!(held[0]["released_in_ms"].as_u64().unwrap() <= 45_000);
    let number = scene.held_number();
    let shown = scene.does(&["held"]);
    assert!(shown.contains("→ tools/call [echo] id=7 ⏸ held "), "{shown}");
    assert!(shown.contains(" by mine, goes on in "), "{shown}");
    let said = scene.does(&[
        "modify",
        &number,
        "--set",
        "$.params.arguments.text=after",
        "--set",
        "$.params.arguments.more={\"a\":[]}",
    ]);
    assert!(said.ends_with(" went on, modified\n"), "{said}");
    let answer = scene.proxy.json();
    assert_eq!((&answer["id"], &answer["result"]["method"]), (&7.into(), &"tools/call".into()));
    let seen = scene.seen();
    let arrived = seen.iter().find(|line| line["id"] == 7).unwrap();
    assert_eq!(arrived["params"]["arguments"], json!({ "text": "after", "more": { "a": [] } }), "{arrived}");
    scene.held(0);
    // Both versions are on record.
    let recorded = scene.recorded();
    let message = recorded.iter().find(|message| message["jsonrpc_id"] == 7).unwrap();
    assert_eq!(message["modified"], true, "{message}");
    assert_eq!(message["original_raw"], call(7, "echo", "before"));
    assert_eq!(message["raw"]["params"]["arguments"]["text"], "after");
}

#[test]
fn a_call_goes_on_as_it_came() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "x");
    let number = scene.held_number();
    let said = scene.does(&["forward", number.trim_start_matches('#')]);
    assert!(said.ends_with(" went on as it came\n"), "{said}");
    assert_eq!(scene.proxy.json()["id"], 7);
    assert!(scene.seen().contains(&call(7, "echo", "x")));
    let errors = scene.refuses(1, &["forward", &number]);
    assert!(errors.contains("is not held: it was forwarded by command line ("), "{errors}");
    assert!(errors.contains("hint: `mcp-proxy held` shows what is held now"), "{errors}");
}

/// Where several run, the advice is about the right one.
#[test]
fn advice_names_the_instance_if_it_must() {
    let scene = Scene::begin(&["--name", "one"]);
    let mut other = scene.sandbox.run(&["--quiet", "--name", "other one"], &["answer"]);
    other.ask(1, "hello");
    let errors = scene.refuses(1, &["forward", "one", "2"]);
    assert!(errors.contains("hint: `mcp-proxy held one` shows"), "{errors}");
    let errors = scene.refuses(1, &["break", "rm", "--in", "other one", "none"]);
    assert!(errors.contains("there is no breakpoint `none`"), "{errors}");
    assert!(errors.contains("hint: `mcp-proxy break list 'other one'` shows"), "{errors}");
    drop(other.end());
}

#[test]
fn what_is_held_is_shown_whole() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "look at me");
    scene.call(8, "echo", "\u{1b}[2J");
    let held = scene.held(2);
    assert!(!scene.does(&["held"]).contains("look at me"));
    let shown = scene.does(&["held", "-v"]);
    assert!(shown.contains("        \"text\": \"look at me\"\n"), "{shown}");
    assert!(shown.contains("client to server, ") && !shown.contains('\x1b'), "{shown}");
    let number = held[0]["sequence"].to_string();
    for word in [number.clone(), format!("#{number}")] {
        let shown = scene.does(&["held", &word]);
        assert!(shown.contains("⏸ held ") && shown.contains("look at me") && !shown.contains("id=8"), "{shown}");
    }
    scene.refuses(1, &["held", "#99"]);
    scene.refuses(3, &["held", "99999999"]);
}

/// A no to one of them does not spare the others.
#[test]
fn several_are_decided_at_once() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    for id in 7..12 {
        scene.call(id, "echo", "x");
    }
    let numbers: Vec<String> = scene.held(5).iter().map(|held| held["sequence"].to_string()).collect();
    let said = scene.does(&["drop", &numbers[0], &numbers[1]]);
    assert_eq!(said.matches(" was dropped\n").count(), 2, "{said}");
    let errors = scene.refuses(1, &["forward", &numbers[2], &numbers[1], &numbers[3]]);
    assert!(errors.contains("is not held: it was dropped by command line ("), "{errors}");
    assert_eq!([scene.proxy.json()["id"].clone(), scene.proxy.json()["id"].clone()], [9, 10]);
    assert_eq!(scene.held_number(), format!("#{}", numbers[4]));
}

/// Without a direction, a filter holds the answer too.
#[test]
fn an_answer_is_held_and_changed() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "< tool:echo"]);
    scene.call(7, "echo", "x");
    let number = scene.held_number();
    let shown = scene.does(&["held"]);
    assert!(shown.contains("← tools/call [echo] id=7"), "{shown}");
    scene.does(&["modify", &number, "--set", "$.result={\"changed\":true}"]);
    assert_eq!(scene.proxy.json(), json!({ "jsonrpc": "2.0", "id": 7, "result": { "changed": true } }));
}

#[test]
fn a_dropped_call_never_arrives() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "silently");
    assert!(scene.does(&["drop", &scene.held_number()]).ends_with(" was dropped\n"));
    scene.call(8, "echo", "not silently");
    let said = scene.does(&["drop", &scene.held_number(), "--error", "-32042: not today"]);
    assert!(said.ends_with(" was dropped and answered with error -32042\n"), "{said}");
    let answer = scene.proxy.json();
    assert_eq!(answer["id"], 8);
    assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&(-32042).into(), &"not today".into()));
    assert!(scene.seen().iter().all(|line| line["method"] != "tools/call"));
}

#[test]
fn a_call_is_answered_in_the_servers_place() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "a");
    scene.does(&["answer", &scene.held_number(), "--result", "{\"made\": \"up\"}"]);
    assert_eq!(scene.proxy.json(), json!({ "jsonrpc": "2.0", "id": 7, "result": { "made": "up" } }));
    scene.call(8, "echo", "b");
    scene.does(&["answer", &scene.held_number(), "--error", "no"]);
    let answer = scene.proxy.json();
    assert_eq!((&answer["id"], &answer["error"]["message"]), (&8.into(), &"no".into()));
    scene.call(9, "echo", "c");
    // The id is put right.
    let whole = "{\"jsonrpc\": \"2.0\",\n \"id\": 1234, \"result\": {\"whole\": true}}\n";
    scene.does_with_input(&["answer", &scene.held_number(), "-"], whole);
    assert_eq!(scene.proxy.json(), json!({ "jsonrpc": "2.0", "id": 9, "result": { "whole": true } }));
    assert!(scene.seen().iter().all(|line| line["method"] != "tools/call"));
    // An answer cannot be answered.
    scene.does(&["break", "add", "< tool:other"]);
    scene.call(10, "other", "d");
    let number = scene.held_number();
    scene.refuses(1, &["answer", &number, "--result", "{}"]);
    scene.does(&["forward", &number]);
    assert_eq!(scene.proxy.json()["id"], 10);
}

#[test]
fn everything_is_held_and_let_go() {
    let mut scene = Scene::begin(&["--name", "held"]);
    let said = scene.does(&["hold", "on"]);
    assert!(said.contains("(held) holds every message up to 45.0s; "), "{said}");
    for id in 2..12 {
        scene.proxy.request(id, "hello");
    }
    scene.held(10);
    assert!(scene.does(&["ps"]).contains("holds all"));
    let said = scene.does(&["hold", "off", "held"]);
    assert!(said.ends_with(" (held) passes messages on; 10 that were held went on\n"), "{said}");
    let answered: Vec<Value> = (2..12).map(|_| scene.proxy.json()["id"].clone()).collect();
    assert_eq!(answered, (2..12).map(Value::from).collect::<Vec<_>>());
    scene.proxy.ask(20, "free");
    // Breakpoints go on.
    scene.does(&["break", "add", "> tool:echo"]);
    let said = scene.does(&["hold", "off"]);
    assert!(said.ends_with("; none was held; 1 breakpoint still holds, see `mcp-proxy break list`\n"), "{said}");
    scene.does(&["break", "add", "< tool:echo"]);
    let said = scene.does(&["hold", "off"]);
    assert!(said.contains("; 2 breakpoints still hold, see "), "{said}");
}

#[test]
fn breakpoints_come_and_go() {
    let mut scene = Scene::begin(&[]);
    assert!(scene.does(&["break", "list"]).ends_with(" has no breakpoints\n"));
    scene.does(&["break", "add", "tool:a", "--name", "one"]);
    scene.does(&["break", "add", "> tool:b"]);
    scene.refuses(1, &["break", "add", "tool:c", "--name", "one"]);
    scene.call(7, "b", "x");
    let number = scene.held_number();
    let list = scene.does(&["break", "list", "--json"]);
    let list: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&list[0]["name"], &list[0]["hits"]), (&"one".into(), &0.into()), "{list:?}");
    assert_eq!(list[1]["hits"], 1, "{list:?}");
    assert!(list[1]["filter"].as_str().unwrap().ends_with("tool:b"), "{list:?}");
    let name = list[1]["name"].as_str().unwrap();
    let shown = scene.does(&["break", "list"]);
    assert_eq!(
        shown,
        format!(
            "NAME      HITS  HOLDS        FILTER\none          0  up to 45.0s  tool:a\n{name:<4}         1  up to 45.0s  > and tool:b\n"
        )
    );
    assert_eq!(scene.does(&["break", "rm", name]), format!("breakpoint {name} is gone\n"));
    let errors = scene.refuses(1, &["break", "rm", name, "one"]);
    assert!(errors.contains("hint: `mcp-proxy break list` shows"), "{errors}");
    assert!(scene.does(&["break", "list"]).ends_with(" has no breakpoints\n"));
    let errors = scene.refuses(2, &["break", "add", " "]);
    assert!(errors.contains("hint: `mcp-proxy hold on` holds everything"), "{errors}");
    // What it held stays held.
    assert_eq!(scene.held_number(), number);
    scene.does(&["forward", &number]);
    assert_eq!(scene.proxy.json()["id"], 7);
    scene.call(8, "b", "free");
    assert_eq!(scene.proxy.json()["id"], 8);
}

#[test]
fn a_held_call_can_be_taken_back() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "x");
    let number = scene.held_number();
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    scene.proxy.send(format!("{cancelled}\n").as_bytes());
    scene.held(0);
    scene.refuses(1, &["forward", &number]);
    // The server heard of neither.
    assert!(scene.seen().iter().all(|line| line["method"] == "hello"));
    let recorded = scene.recorded();
    let message = recorded.iter().find(|message| message["jsonrpc_id"] == 7).unwrap();
    assert_eq!(message["outcome"], "cancelled", "{message}");
}

#[test]
fn an_edit_may_change_the_id() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "x");
    scene.does(&["modify", &scene.held_number(), "--set", "$.id=\"another\""]);
    // The client gets its answer under the id that it knows.
    let answer = scene.proxy.json();
    assert_eq!((&answer["id"], &answer["result"]["method"]), (&7.into(), &"tools/call".into()));
    assert!(scene.seen().iter().any(|line| line["id"] == "another"));
}

#[test]
fn what_is_no_longer_a_message_needs_a_word() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "x");
    let number = scene.held_number();
    let mut command = scene.sandbox.command(["modify", &number, "-"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(wait(command.spawn().unwrap()).code(), Some(2), "nothing is not JSON");
    let errors = scene.refuses(1, &["modify", &number, "--set", "$.method=7"]);
    assert!(errors.contains("hint: --not-json-rpc sends it all the same"), "{errors}");
    let errors = scene.refuses(2, &["modify", &number, "--set", "$.params.name.x=7"]);
    assert!(errors.contains("has no place for $.params.name.x"), "{errors}");
    scene.does_with_input(&["modify", &number, "-", "--not-json-rpc"], "[\"anything\"]\n");
    assert!(scene.seen().contains(&json!(["anything"])));
}

/// An editor that spoils the message, is told so, and mends it.
#[test]
fn an_edit_goes_on_until_it_can_be_sent() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "before");
    let number = scene.held_number();
    let editor = scene.sandbox.path("editor");
    let script = "#!/bin/sh
        if grep -q 'It was not sent' \"$1\"; then sed -i 's/spoilt/\"after\"/' \"$1\"
        else sed -i 's/\"before\"/spoilt/' \"$1\"; fi";
    std::fs::write(&editor, script).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o700)).unwrap();
    let edit = |editor: &std::path::Path| {
        let mut command = scene.sandbox.command(["modify", &number, "--edit"]);
        command.env("EDITOR", editor).env_remove("VISUAL").env("TMPDIR", scene.sandbox.path(""));
        command.stdin(Stdio::null()).output().unwrap()
    };
    // One that does nothing leaves it held.
    let output = edit("true".as_ref());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was changed; the message is still held"));
    let output = edit(&editor);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(scene.proxy.json()["id"], 7);
    assert!(scene.seen().contains(&call(7, "echo", "after")));
}

/// Whoever gives up finds the edit where `modify` takes it from, and how.
#[test]
fn an_edit_that_cannot_be_sent_is_kept() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "before");
    let number = scene.held_number();
    let mut command = scene.sandbox.command(["modify", &number, "--edit"]);
    // The second time it only looks.
    let editor = "sh -c 'cat $0 >&2; sed -i s/.tools.call./7/ $0'";
    command.env("EDITOR", editor).env_remove("VISUAL").env("TMPDIR", scene.sandbox.path(""));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("\n# --not-json-rpc sends it all the same\n"), "{errors}");
    let send = format!("`mcp-proxy modify {} - < ", number.trim_start_matches('#'));
    let path = errors.split_once(&send).unwrap().1.split_once('`').unwrap().0;
    let kept = std::fs::read_to_string(path).unwrap();
    scene.does_with_input(&["modify", &number, "-", "--not-json-rpc"], &kept);
    assert!(scene.seen().iter().any(|line| line["id"] == 7 && line["method"] == 7));
}

/// Five hundred at once, and all of them go on in the order they came.
#[test]
fn a_crowd_is_held_and_let_go() {
    const CROWD: u64 = 500;
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    for id in 0..CROWD {
        scene.call(1_000 + id, "echo", "x");
    }
    scene.held(CROWD as usize);
    scene.proxy.ask(2, "meanwhile");
    assert_eq!(scene.does(&["forward", "--all"]), "500 messages went on as they came\n");
    let answered: Vec<u64> = (0..CROWD).map(|_| scene.proxy.json()["id"].as_u64().unwrap()).collect();
    assert_eq!(answered, (1_000..1_000 + CROWD).collect::<Vec<_>>());
    scene.held(0);
}

/// More than a list tells the content of: the rest is told by what it begins with, and nobody waits.
#[test]
fn a_heavy_crowd_does_not_keep_others_from_looking() {
    const CROWD: u64 = 200;
    let mut scene = Scene::begin(&["--name", "heavy"]);
    scene.does(&["break", "add", "> tool:echo"]);
    let text = "x".repeat(100_000);
    for id in 0..CROWD {
        scene.call(1_000 + id, "echo", &text);
    }
    let held = scene.held(CROWD as usize);
    let (first, last) = (&held[0]["message"], &held[CROWD as usize - 1]["message"]);
    assert_eq!((&first["raw"]["id"], &first["tool"]), (&1_000.into(), &"echo".into()), "{first}");
    assert_eq!((&last["raw_omitted"], &last["kind"]), (&true.into(), &"request".into()), "{last}");
    assert_eq!((&last["method"], &last["jsonrpc_id"]), (&"tools/call".into(), &(999 + CROWD).into()), "{last}");
    assert_eq!(last["size"], call(1_000, "echo", &text).to_string().len(), "{last}");
    let shown = scene.does(&["held"]);
    assert!(shown.lines().last().unwrap().contains("→ tools/call"), "{shown}");
    let instance = scene.does(&["ps", "--json"]);
    let instance: Value = serde_json::from_str(&instance).unwrap();
    assert_eq!((&instance["answers"], &instance["held"]), (&true.into(), &CROWD.into()), "{instance}");
    assert_eq!((&instance["breakpoints"], &instance["breakpoints_that_hold"]), (&1.into(), &1.into()), "{instance}");
    scene.does(&["forward", "--all"]);
    assert_eq!(scene.proxy.json()["id"], 1_000);
}

/// Somebody who edits is killed: the message is still there for others.
#[test]
fn nothing_is_lost_with_whoever_edits() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo"]);
    scene.call(7, "echo", "x");
    let number = scene.held_number();
    let begun = scene.sandbox.path("begun");
    let mut command = scene.sandbox.command(["modify", &number, "--edit"]);
    command.env("EDITOR", format!("sh -c 'touch {}; read never'", begun.display())).env_remove("VISUAL");
    command.env("TMPDIR", scene.sandbox.path("")).stdin(Stdio::piped());
    let mut editing = command.spawn().unwrap();
    let stdin = editing.stdin.take();
    until("the editor is open", || begun.exists());
    signal(editing.id(), rustix::process::Signal::KILL);
    wait(editing);
    drop(stdin);
    scene.does(&["forward", &number]);
    assert_eq!(scene.proxy.json()["id"], 7);
}

/// What holds only for a face would look as if it did nothing.
#[test]
fn flags_for_faces_say_so_at_the_start() {
    for (flags, said) in [
        (&["--break", "tool:echo"][..], "--break holds only while a face is in control"),
        (&["--intercept"], "--intercept holds only while a face is in control"),
        (&["--quiet", "--intercept"], ""),
        (&[], ""),
    ] {
        let (status, errors) = Sandbox::new().run(flags, &["answer"]).end();
        assert!(status.success(), "{errors}");
        let lines: Vec<&str> = errors.lines().filter(|line| line.contains("a face")).collect();
        assert_eq!(lines.len(), usize::from(!said.is_empty()), "{flags:?}: {errors}");
        assert!(errors.contains(said), "{errors}");
    }
}
