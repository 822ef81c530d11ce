//! `tail`, `ps`, `save` and `replay --live`, with instances that run.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::gateway_kit::{StdioClient, fake};
use crate::hold_kit::Scene;
use crate::kit::{Sandbox, signal, until, wait};
use crate::proxy_tool_kit::tool;

struct Tail {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Tail {
    fn begin(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut command = sandbox.command([&["tail"], args].concat());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    #[track_caller]
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "it goes on");
        line.trim_end().to_owned()
    }

    #[track_caller]
    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// How it ended, what was left of its output, and what it said.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut rest, mut errors) = (String::new(), String::new());
        self.lines.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (wait(self.child).code(), rest, errors)
    }
}

#[test]
fn messages_are_printed_as_they_pass() {
    let mut scene = Scene::begin(&[]);
    let mut tail = Tail::begin(&scene.sandbox, &[]);
    assert_eq!(tail.line(), "#001 → hello id=1");
    assert!(tail.line().starts_with("#002 ← hello id=1 "));
    scene.call(2, "\u{1b}[2Jecho", "x");
    assert_eq!(tail.line(), "#003 → tools/call [␛[2Jecho] id=2");
    let answer = tail.line();
    assert!(answer.starts_with("#004 ← tools/call [␛[2Jecho] id=2 ") && answer.ends_with(" ok ↩ #003"), "{answer}");
    scene.proxy.json();
    drop(scene.proxy.end());
    let (code, rest, errors) = tail.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""), "{errors}");
    assert!(errors.contains(" has ended"), "{errors}");
}

#[test]
fn scripts_get_an_object_a_line() {
    let mut scene = Scene::begin(&[]);
    let mut tail = Tail::begin(&scene.sandbox, &["--json", "-n", "1", "--filter", "tool:echo or method:hello"]);
    let first = tail.json();
    assert_eq!((&first["sequence"], &first["answers"], &first["method"]), (&2.into(), &1.into(), &"hello".into()));
    scene.call(2, "other", "x");
    scene.call(3, "echo", "x");
    let request = tail.json();
    assert_eq!((&request["tool"], &request["raw"]["id"]), (&"echo".into(), &3.into()), "{request}");
    let answer = tail.json();
    assert_eq!((&answer["answers"], &answer["status"]), (&request["sequence"], &"ok".into()), "{answer}");
    // The same members as a recording has.
    drop((scene.proxy.json(), scene.proxy.json()));
    let recorded = scene.recorded();
    let recorded = recorded.iter().find(|message| message["sequence"] == answer["sequence"]).unwrap();
    for (name, value) in recorded.as_object().unwrap() {
        assert_eq!(&answer[name], value, "{name}");
    }
    assert_eq!(tail.end().0, Some(0));
}

#[test]
fn of_several_conversations_each_line_says_which() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], tool("beside"));
    client.content(json!({ "action": "call", "type": "tool", "path": "b__x", "args": {} }));
    // Lists that are made ready meanwhile come in between.
    let mut tail = Tail::begin(&sandbox, &["-n", "4", "--filter", "method:tools/call"]);
    let lines: Vec<String> = (0..4).map(|_| tail.line()).collect();
    let conversation = |line: &String| line.split(' ').nth(1).is_some_and(|word| word.starts_with('c'));
    assert!(lines.iter().all(conversation), "{lines:?}");
    assert!(lines[0].contains(" c1 → tools/call [proxy: call b__x] id="), "{lines:?}");
    client.end();
    assert_eq!(tail.end().0, Some(0));
}

#[test]
fn holds_and_what_came_of_them_are_told() {
    let mut scene = Scene::begin(&[]);
    scene.does(&["break", "add", "> tool:echo", "--name", "mine"]);
    let mut tail = Tail::begin(&scene.sandbox, &["-n", "1"]);
    let mut script = Tail::begin(&scene.sandbox, &["-n", "1", "--json"]);
    // From what they began with on, they miss nothing.
    assert!(tail.line().starts_with("#002 "));
    assert_eq!(script.json()["sequence"], 2);
    scene.call(7, "echo", "x");
    let number = scene.held_number();
    assert_eq!(tail.line(), "#003 → tools/call [echo] id=7");
    let held = tail.line();
    assert!(held.starts_with("#003 ⏸ held by mine for up to "), "{held}");
    assert_eq!(script.json()["sequence"], 3);
    let held = script.json();
    assert_eq!((&held["kind"], &held["why"]), (&"held".into(), &"mine".into()), "{held}");
    scene.does(&["forward", &number]);
    let outcome = tail.line();
    assert!(outcome.starts_with("#003 ⏸ ") && outcome.contains(" forwarded by command line ("), "{outcome}");
    let outcome = script.json();
    assert_eq!((&outcome["kind"], &outcome["outcome"]), (&"outcome".into(), &"forwarded".into()), "{outcome}");
    scene.proxy.json();
}

#[test]
fn it_ends_when_told_to_and_when_nobody_reads() {
    let scene = Scene::begin(&[]);
    let mut tail = Tail::begin(&scene.sandbox, &[]);
    tail.line();
    signal(tail.child.id(), Signal::INT);
    assert_eq!(tail.end().0, Some(130));
    let mut tail = Tail::begin(&scene.sandbox, &[]);
    tail.line();
    // Nothing passes any more, so nothing is written that could fail.
    drop(tail.lines);
    assert_eq!(wait(tail.child).code(), Some(0));
}

#[test]
fn a_killed_instance_ends_it_too() {
    let mut scene = Scene::begin(&[]);
    let mut tail = Tail::begin(&scene.sandbox, &["-n", "1"]);
    tail.line();
    scene.proxy.kill();
    drop(scene.proxy);
    let (code, _, errors) = tail.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains(" is gone"), "{errors}");
    assert!(scene.sandbox.stdout(["ps"]).contains("no instance is running"));
}

#[test]
fn instances_are_listed_with_what_they_do() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--name", "first"], &["puppet"]);
    let opening = r#"{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"ide\u001b"}}}"#;
    proxy.send(format!("{opening}\n").as_bytes());
    proxy.json();
    let scene = Scene { sandbox, proxy };
    let mut second = scene.sandbox.run(&["--quiet", "--name", "second", "--no-record"], &["answer"]);
    second.ask(1, "hello");
    let shown = scene.does(&["ps"]);
    let rows: Vec<&str> = shown.lines().collect();
    assert!(rows[0].starts_with("ID ") && rows.len() == 3, "{shown}");
    for part in ["first", "ide␛", "2025-11-25", "stdio→stdio", "passes all", "mcp-fixture puppet"] {
        assert!(rows[1].contains(part), "{part}: {shown}");
    }
    let list = scene.does(&["ps", "--json"]);
    let list: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&list[0]["messages"], &list[0]["held"]), (&2.into(), &0.into()), "{list:?}");
    assert_eq!((&list[0]["clients"], &list[0]["servers"]), (&1.into(), &1.into()), "{list:?}");
    assert_eq!((&list[1]["name"], &list[1]["answers"]), (&"second".into(), &true.into()), "{list:?}");
    // The instance has the id of its session, and answers to the beginning of it.
    let id = list[0]["id"].as_str().unwrap();
    assert_eq!(scene.sandbox.segments()[0].file_stem().unwrap().to_str(), Some(id));
    for wanted in [id, &id[..8], "first"] {
        assert!(scene.does(&["held", wanted]).ends_with(" (first) holds nothing\n"));
        assert!(scene.does(&["held", "--in", wanted]).ends_with(" (first) holds nothing\n"));
    }
    assert!(scene.refuses(2, &["held"]).contains("several instances are running"));
    // Another state directory is another world.
    let elsewhere = scene.sandbox.path("elsewhere");
    assert!(scene.does(&["ps", "--state-dir", elsewhere.to_str().unwrap()]).contains("no instance is running"));
    drop(second.end());
    assert!(scene.does(&["held"]).ends_with(" (first) holds nothing\n"));
}

#[test]
fn the_newest_instance_is_followed_unless_another_is_named() {
    let mut scene = Scene::begin(&["--name", "twice"]);
    let second = scene.sandbox.run(&["--quiet", "--name", "twice"], &["answer"]);
    until("both are found", || scene.does(&["ps", "--json"]).lines().count() == 2);
    let running = scene.does(&["ps", "--json"]);
    let newest: Value = serde_json::from_str(running.lines().last().unwrap()).unwrap();
    let newest = newest["id"].as_str().unwrap()[..8].to_owned();
    let tails = [&[][..], &["last"], &["twice"]].map(|args| Tail::begin(&scene.sandbox, args));
    let mut second = second;
    second.ask(1, "newer");
    let saids = ["2 instances are running", "", "2 instances named `twice` are running"];
    let mut ends = Vec::new();
    for mut tail in tails {
        assert_eq!(tail.line(), "#001 → newer id=1");
        ends.push(tail);
    }
    drop(second.end());
    for (tail, said) in ends.into_iter().zip(saids) {
        let (_, _, errors) = tail.end();
        assert!(errors.contains(said), "{errors}");
        assert_eq!(errors.contains(&format!("this is the newest, {newest} (twice)")), !said.is_empty(), "{errors}");
    }
    scene.call(2, "echo", "x");
    scene.proxy.json();
}

#[test]
fn a_running_session_is_saved() {
    let mut scene = Scene::begin(&["--name", "notes"]);
    let errors = scene.refuses(2, &["save", "notes"]);
    assert!(errors.contains("`notes` is an instance") && errors.contains("`mcp-proxy save notes FILE`"), "{errors}");
    assert_eq!(scene.does(&["save", "s.json"]).lines().count(), 1);
    let text = std::fs::read_to_string(scene.sandbox.path("s.json")).unwrap();
    let session: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(session["messages"].as_array().unwrap().len(), 2, "{text}");
    crate::schema::check(&scene.sandbox.path("s.json"));
    let shown = scene.does(&["inspect", "s.json"]);
    assert!(shown.contains("it still ran when this was written, or was interrupted"), "{shown}");
    let errors = scene.refuses(1, &["save", "s.json"]);
    assert!(errors.contains("s.json exists already") && errors.contains("hint: --force replaces it"), "{errors}");
    scene.does(&["save", "s.json", "--force"]);
    scene.refuses(1, &["save", "/nowhere/at/all.json"]);
    scene.proxy.ask(2, "on");
}

#[test]
fn a_message_is_sent_again_while_the_session_runs() {
    let mut scene = Scene::begin(&[]);
    scene.call(2, "echo", "once");
    scene.proxy.json();
    let shown = scene.does(&["replay", "--live", "#3"]);
    assert!(shown.contains("← tools/call [echo]") && shown.contains("\"method\": \"tools/call\""), "{shown}");
    scene.does(&["replay", "--live", "3", "--set", "$.params.arguments.text=twice"]);
    scene.refuses(1, &["replay", "--live", "#99"]);
    let id = scene.does(&["ps"]).lines().nth(1).unwrap()[..8].to_owned();
    let json = scene.does(&["replay", "--live", "--json", "--take", "--in", &id, "3"]);
    let answer: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&answer["tool"], &answer["status"]), (&"echo".into(), &"ok".into()), "{json}");
    scene.refuses(2, &["replay", "--json", "x", "--", "true"]);
    // The client hears nothing of it.
    let seen = scene.seen();
    let texts: Vec<&Value> = seen.iter().skip(1).map(|line| &line["params"]["arguments"]["text"]).collect();
    assert_eq!(texts, ["once", "once", "twice", "once"]);
    let id = scene.sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    assert!(scene.proxy.end().0.success());
    let replays = scene.sandbox.stdout(["inspect", "--json", "--filter", "replay:yes", &id]);
    let replays: Vec<Value> = replays.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&Value> = replays.iter().map(|message| &message["raw"]["params"]["arguments"]["text"]).collect();
    assert_eq!(texts, ["once", "twice", "once"], "{replays:?}");
}

const RULES: &str = r#"{"policy": {"rules": [
    {"name": "no-deletes", "match": "op:delete", "verdict": "deny"},
    {"name": "would-be", "match": "tool:send_*", "verdict": "observe"}
]}}"#;

/// What rules decide comes with the message, so that filters know it: while it passes, and in the recording.
#[test]
fn what_rules_decide_is_told_with_the_message() {
    for flags in [&[][..], &["--no-record"]] {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path("rules.json"), RULES).unwrap();
        let mut scene = Scene::begin_in(sandbox, &[&["--rules", "rules.json"], flags].concat());
        let expression = ["--filter", "method:tools/call (verdict:* or op:*)"];
        let mut tail = Tail::begin(&scene.sandbox, &expression);
        for (id, tool) in [(2, "read_file"), (3, "delete_repo"), (4, "send_mail")] {
            scene.call(id, tool, "x");
            scene.proxy.json();
        }
        assert_eq!(tail.line(), "#003 → tools/call [read_file] id=2");
        let answer = tail.line();
        assert!(answer.starts_with("#004 ← tools/call [read_file] id=2 "), "{answer}");
        assert_eq!(tail.line(), "#005 → tools/call [delete_repo] id=3 ✗ denied by no-deletes");
        let answer = tail.line();
        assert!(answer.starts_with("#006 ← tools/call [delete_repo] id=3 "), "{flags:?} {answer}");
        assert_eq!(tail.line(), "#007 → tools/call [send_mail] id=4 observed by would-be");
        let mut denied = Tail::begin(&scene.sandbox, &["--json", "-n", "9", "--filter", "verdict:deny"]);
        let message = denied.json();
        let said = ["verdict", "rule", "op"].map(|name| message[name].as_str().unwrap().to_owned());
        assert_eq!((said.join(" ").as_str(), &message["sequence"]), ("deny no-deletes delete", &5.into()), "{message}");
        scene.call(5, "DELETE_repo", "x");
        scene.proxy.json();
        let again = denied.json();
        assert_eq!((&again["sequence"], &again["rule"]), (&9.into(), &"no-deletes".into()), "{again}");
        assert_ne!(again["audit_id"], message["audit_id"]);
        drop(scene.proxy.end());
        assert_eq!((tail.end().0, denied.end().0), (Some(0), Some(0)));
        if flags.is_empty() {
            let segment = scene.sandbox.segments().remove(0);
            let segment = segment.to_str().unwrap();
            let found = scene.sandbox.stdout(["inspect", segment, "--json", "--filter", "verdict:deny"]);
            let found: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let ids = [&message, &again].map(|message| &message["audit_id"]);
            assert_eq!(found.iter().map(|message| &message["audit_id"]).collect::<Vec<_>>(), ids);
        }
    }
}
