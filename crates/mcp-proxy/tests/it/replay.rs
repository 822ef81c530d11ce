//! Sessions replayed: the same server has not drifted, another one has, and no server makes a replay
//! hang, die or print what it was told to.

use serde_json::{Value, json};

use crate::kit::{Sandbox, signal, until};
use crate::tools_kit::{Asker, tools};

fn everyday(asker: &mut Asker) {
    asker.list();
    asker.text("echo", json!({ "text": "hello" }));
    asker.text("count", json!({}));
    assert_eq!(asker.text("ask", json!({ "text": "say" })), "say \"please\"");
}

#[test]
fn the_same_server_has_not_drifted() {
    let sandbox = Sandbox::new();
    sandbox.record("one", everyday);
    let replayed = sandbox.replay(&["one", "-v"], "");
    replayed.expect(
        0,
        &["6 same, 0 drifted, 0 without an answer", "notifications/progress came 3 times, in the recording 3 times"],
    );
    let id = replayed.shown.rsplit_once("recorded as ").expect("it is recorded").1.trim();
    let shown = sandbox.stdout(["sessions", "show", id]);
    let original = sandbox.stdout(["sessions", "show", "one"]);
    let original = original.split_whitespace().nth(1).expect("its id");
    assert!(shown.contains(&format!("replays = {original}")), "{shown}");
    // A replay is a client like any other: its session can be replayed in turn.
    sandbox.replay(&[id], "").expect(0, &["6 same"]);
}

#[test]
fn both_eras_and_every_round() {
    let sandbox = Sandbox::new();
    sandbox.record_of("modern", "", Asker::modern, |asker| {
        asker.ask("server/discover", json!({}));
        asker.list();
        assert_eq!(asker.ask_in_rounds(), "say \"please\"");
    });
    sandbox.replay(&["modern"], "").expect(0, &["5 same, 0 drifted, 0 without an answer"]);
}

#[test]
fn what_changed_is_named_by_its_path() {
    let sandbox = Sandbox::new();
    sandbox.record("one", everyday);
    let replayed = sandbox.replay(&["one", "--output", "out.json", "--junit", "out.xml"], "changed");
    let what = [
        "tools/call [echo] id=4",
        "drifted at 1 place",
        "$.result.content[0].text",
        "- \"hello\"",
        "+ \"HELLO\"",
        "5 same, 1 drifted",
    ];
    replayed.expect(1, &what);
    let report: Value = serde_json::from_slice(&std::fs::read(sandbox.path("out.json")).unwrap()).unwrap();
    assert_eq!((&report["drifted"], &report["summary"]["same"]), (&json!(true), &json!(5)));
    let call = report["calls"].as_array().unwrap().iter().find(|call| call["outcome"] == "drifted").unwrap();
    let difference =
        json!({ "path": "$.result.content[0].text", "change": "changed", "recorded": "hello", "now": "HELLO" });
    assert_eq!((&call["call"], &call["differences"]), (&json!("tools/call [echo]"), &json!([difference])));
    let xml = std::fs::read_to_string(sandbox.path("out.xml")).unwrap();
    assert!(xml.contains("failures=\"1\" errors=\"0\"") && xml.contains("- &quot;hello&quot;"), "{xml}");
    for file in ["out.json", "out.xml"] {
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(sandbox.path(file)).unwrap());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn what_may_differ_is_named_or_learned() {
    let sandbox = Sandbox::new();
    for name in ["one", "two"] {
        sandbox.record(name, |asker| {
            asker.text("pid", json!({}));
            asker.text("echo", json!({ "text": "hello" }));
        });
    }
    sandbox.replay(&["one"], "").expect(1, &["tools/call [pid]", "$.result.content[0].text", "2 same, 1 drifted"]);
    sandbox.replay(&["one", "--ignore", "$.result.content[*].text"], "changed").expect(0, &["3 same"]);
    sandbox.replay(&["one", "--learn", "two"], "").expect(0, &["3 same"]);
    // What was learned of one tool holds for that one.
    sandbox.replay(&["one", "--learn", "two"], "changed").expect(1, &["tools/call [echo]", "2 same, 1 drifted"]);
    sandbox.replay(&["one", "--ignore", "result"], "").expect_failure(2, &["a path begins with `$`"]);
    sandbox.record("other", |asker| drop(asker.call("grow", json!({}))));
    // It has the handshake in common, so something can be learned; of nothing at all it cannot.
    sandbox.replay(&["one", "--learn", "nothing"], "").expect_failure(2, &["no session `nothing`"]);
}

#[test]
fn notifications_are_counted_and_held_against_the_recording_if_asked() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| {
        asker.text("grow", json!({}));
        // The announcement comes after the answer, and before the next.
        asker.text("echo", json!({ "text": "x" }));
    });
    sandbox.replay(&["one", "--compare-notifications"], "").expect(0, &["3 same"]);
    let edited = ["one", "--set", "$.params.name=echo"];
    let replayed = sandbox.replay(&edited, "");
    replayed.expect(1, &["notifications/tools/list_changed came never, in the recording once"]);
    let ignoring = [&edited[..], &["--ignore", "$.result"]].concat();
    sandbox.replay(&ignoring, "").expect(0, &[]);
    sandbox.replay(&[&ignoring[..], &["--compare-notifications"]].concat(), "").expect(1, &["3 same, 0 drifted"]);
}

#[test]
fn a_server_that_hangs_costs_one_answer() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| {
        asker.text("echo", json!({ "text": "a" }));
        asker.text("echo", json!({ "text": "b" }));
    });
    let hangs = ["one", "--timeout", "0.2", "--only", "text:a or text:b", "--set", "$.params.name=silence"];
    sandbox.replay(&hangs, "").expect(1, &["no answer in time", "1 same, 0 drifted, 2 without an answer"]);
}

/// The recording ended before the last call was answered.
#[test]
fn a_call_that_was_never_answered_is_waited_for() {
    let sandbox = Sandbox::new();
    let message = |at: u64, direction: &str, raw: Value| json!({ "timestamp": format!("2026-11-15T10:00:0{at}Z"), "direction": direction, "raw": raw });
    let ask = |id: u64, tool: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call(tool, "hello") });
    let content = json!({ "content": [{ "type": "text", "text": "hello" }] });
    let session = json!({
        "id": "7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a", "started_at": "2026-11-15T10:00:00Z",
        "messages": [
            message(1, "client_to_server", ask(1, "echo")),
            message(2, "server_to_client", json!({ "jsonrpc": "2.0", "id": 1, "result": content })),
            message(3, "client_to_server", ask(2, "silence")),
        ],
    });
    std::fs::write(sandbox.path("s.json"), session.to_string()).unwrap();
    let args = ["s.json", "--no-handshake", "-v", "--force", "--output", "out.json"];
    let report = || -> Value { serde_json::from_slice(&std::fs::read(sandbox.path("out.json")).unwrap()).unwrap() };
    let replayed = sandbox.replay(&[&args[..], &["--set", "$.params.name=echo", "--name", "late"]].concat(), "");
    replayed.expect(0, &["not compared: the recording has no answer", "1 same", "1 not compared"]);
    let calls = report()["calls"].clone();
    let (first, second) = (&calls[0], &calls[1]);
    assert_eq!((&first["original_request"], &first["sent_message"]), (&ask(1, "echo"), &ask(1, "echo")));
    assert_eq!((&second["original_request"], &second["sent_message"]), (&ask(2, "silence"), &ask(2, "echo")));
    assert_eq!(second["response"], json!({ "jsonrpc": "2.0", "id": 2, "result": content }), "{second}");
    assert!(second["error"].is_null() && second["duration_ms"].is_f64(), "{second}");
    let recorded = sandbox.stdout(["inspect", "late", "--filter", "kind:response"]);
    assert!(recorded.contains("id=2"), "what came is recorded: {recorded}");

    let replayed = sandbox.replay(&[&args[..], &["--timeout", "0.2"]].concat(), "");
    replayed.expect(1, &["no answer within 200ms; the recording has none either", "1 same, 0 drifted, 1 without"]);
    let second = report()["calls"][1].clone();
    assert!(second["response"].is_null() && second["duration_ms"].is_null(), "{second}");
    assert!(second["error"].as_str().unwrap().contains("no answer within"), "{second}");
    let refused = sandbox.replay(&[&args[..], &["--set", "$.params.name=nonesuch"]].concat(), "");
    assert_eq!(refused.code, Some(1));
    let error = report()["calls"][0]["error"].clone();
    assert_eq!(error, "no such tool: nonesuch");
}

#[test]
fn a_server_that_dies_leaves_the_rest_unsent() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| {
        asker.text("echo", json!({ "text": "a" }));
        asker.text("echo", json!({ "text": "b" }));
        asker.text("echo", json!({ "text": "c" }));
    });
    let mut editor = sandbox.command(["replay", "one", "--edit"]);
    editor.args(tools("")).env("EDITOR", r#"sed -i '0,/"echo"/s//"die"/'"#);
    let replayed = editor.output().unwrap();
    let shown = String::from_utf8_lossy(&replayed.stdout);
    assert_eq!(replayed.status.code(), Some(1), "{replayed:?}");
    assert!(shown.contains("no answer: the server ended before it answered (exit code 7)"), "{shown}");
    assert!(shown.contains("not sent") && shown.contains("1 same, 0 drifted, 3 without an answer"), "{shown}");
}

#[test]
fn a_server_that_died_then_and_dies_now_is_the_same() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| drop(asker.call("die", json!({}))));
    sandbox.replay(&["one"], "").expect(0, &["2 same"]);
}

#[test]
fn a_server_that_answers_twice_or_in_another_order_is_understood() {
    let sandbox = Sandbox::new();
    // This one answers neither before it has both.
    sandbox.record_of("one", "reversed", Asker::opened, |asker| {
        asker.text("twice", json!({}));
        let [first, second] = ["1", "2"].map(|text| asker.start("tools/call", call("echo", text)));
        asker.answer(second);
        asker.answer(first);
    });
    for variant in ["reversed", ""] {
        let replayed = sandbox.replay(&["one"], variant);
        replayed.expect(0, &["4 same, 0 drifted", "1 answer came that nobody waited for"]);
    }
}

fn call(tool: &str, text: &str) -> Value {
    json!({ "name": tool, "arguments": { "text": text } })
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| {
        asker.text("echo", json!({ "text": "plain" }));
        // A name that would clear the screen, if it were printed.
        asker.call("\u{9b}2J\u{202e}", json!({ "text": "plain" }));
    });
    let hostile = ["--color", "always", "--set", "$.params.name=hostile", "--junit", "out.xml"];
    let replayed = sandbox.replay(&[&["one"], &hostile[..]].concat(), "");
    replayed.expect(1, &["[⟨U+009B⟩2J⟨U+202E⟩]", r"\u001b]0;owned\u0007⟨U+202E⟩⟨U+009B⟩31m", "\u{1b}[31m"]);
    let inert = |text: &str| !text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']);
    let mut rest = replayed.shown.clone();
    for ours in ["\u{1b}[0m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m"] {
        rest = rest.replace(ours, "");
    }
    assert!(inert(&rest), "{replayed:?}");
    let xml = std::fs::read_to_string(sandbox.path("out.xml")).unwrap();
    assert!(inert(&xml) && xml.contains("[⟨U+009B⟩2J⟨U+202E⟩]"), "{xml}");
}

#[test]
fn huge_answers_are_compared_and_shown_in_part() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| {
        asker.text("big", json!({ "kilobytes": 8192 }));
        asker.text("big", json!({ "kilobytes": 64, "note": "x" }));
    });
    sandbox.replay(&["one"], "").expect(0, &["3 same"]);
    let replayed = sandbox.replay(
        &["one", "--only", "text:note", "--set", "$.params.arguments.kilobytes=65", "--output", "out.json"],
        "",
    );
    replayed.expect(1, &["$.result.content[0].text", "(64.0 KB)", "(65.0 KB)"]);
    assert!(replayed.shown.len() < 4096, "{}", replayed.shown.len());
    let report: Value = serde_json::from_slice(&std::fs::read(sandbox.path("out.json")).unwrap()).unwrap();
    let drifted = report["calls"].as_array().unwrap().iter().find(|call| call["outcome"] == "drifted").unwrap();
    assert_eq!(drifted["differences"][0]["now"]["bytes"], 65 * 1024 + 2);
}

#[test]
fn a_report_replaces_a_file_only_by_force() {
    let sandbox = Sandbox::new();
    sandbox.record("one", everyday);
    for (flag, file) in [("--output", "out.json"), ("--junit", "out.xml")] {
        std::fs::write(sandbox.path(file), "precious").unwrap();
        let refused = sandbox.replay(&["one", flag, file], "");
        refused.expect_failure(1, &[&format!("{file} exists already"), "hint: --force replaces it"]);
        assert_eq!(std::fs::read_to_string(sandbox.path(file)).unwrap(), "precious");
        sandbox.replay(&["one", flag, file, "--force"], "").expect(0, &["0 drifted"]);
        assert_ne!(std::fs::read_to_string(sandbox.path(file)).unwrap(), "precious");
    }
}

#[test]
fn an_interrupted_replay_leaves_a_report() {
    let sandbox = Sandbox::new();
    sandbox.record("one", |asker| {
        asker.text("echo", json!({ "text": "a" }));
        asker.text("echo", json!({ "text": "b" }));
    });
    let mut command = sandbox.command([
        "replay",
        "one",
        "--output",
        "out.json",
        "--only",
        "text:b",
        "--set",
        "$.params.name=silence",
    ]);
    command.args(tools("")).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let before = sandbox.segments();
    let child = command.spawn().unwrap();
    let is_asked = || {
        let segment = sandbox.segments().into_iter().find(|segment| !before.contains(segment));
        let bytes = segment.and_then(|segment| std::fs::read(segment).ok()).unwrap_or_default();
        bytes.windows(7).any(|word| word == b"silence")
    };
    until("the silent tool is called", is_asked);
    signal(child.id(), rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(sandbox.path("out.json")).unwrap()).unwrap();
    assert_eq!((&report["interrupted"], &report["summary"]["same"]), (&json!(true), &json!(1)));
    assert_eq!(report["calls"].as_array().unwrap().len(), 3);
}

#[test]
fn a_session_without_a_handshake_gets_one_unless_told_otherwise() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--name", "rest"], &["tools", ""]);
    proxy.send(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n");
    proxy.json();
    proxy.end();
    sandbox.replay(&["rest", "--name", "opened"], "").expect(0, &["1 same"]);
    let shown = sandbox.stdout(["inspect", "opened"]);
    assert!(
        shown.contains("→ initialize id=\"mcp-proxy-replay\"") && shown.contains("→ notifications/initialized"),
        "{shown}"
    );
    sandbox.replay(&["rest", "--no-handshake", "--name", "verbatim"], "").expect(0, &["1 same"]);
    assert!(!sandbox.stdout(["inspect", "verbatim"]).contains("initialize"));
}
