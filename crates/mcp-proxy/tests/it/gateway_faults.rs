//! Servers that do what they should not. The others go on, and whoever waits for one of them hears of it.

use serde_json::{Value, json};

use crate::gateway_kit::{StdioClient, code_of, fake, names_in, steps, text_of};
use crate::kit::{Sandbox, peak_bytes, until};

const ABSENT: &str = "io.github.mcp-proxy/absent";

#[test]
fn a_server_that_hangs_when_it_starts_is_left_out_until_it_comes() {
    let sandbox = Sandbox::new();
    let fakes = [fake("slow").script("gate", sandbox.gate()), fake("b")];
    let top = json!({ "initialize_wait": "50ms", "list_wait": "50ms" });
    let mut client = StdioClient::open(&sandbox, &fakes, top);
    let mut tools = Value::Null;
    until("the other one is there", || {
        tools = client.ask("tools/list", json!({}));
        names_in(&tools, "tools", "name") == ["b__x", "b__do"]
    });
    let absent = &tools["result"]["_meta"][ABSENT];
    assert_eq!(absent[0]["server"], "slow", "{tools}");
    assert!(!absent[0]["reason"].as_str().unwrap().is_empty());
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    // A call waits for it.
    let call = client.begin("slow__x", json!({ "text": "2" }));
    client.take_kept();
    sandbox.open_gate();
    client.heard("notifications/tools/list_changed");
    assert_eq!(text_of(&client.answer(&call)), "slow:x:2");
    let tools = client.ask("tools/list", json!({}));
    assert_eq!(names_in(&tools, "tools", "name"), ["slow__x", "slow__do", "b__x", "b__do"]);
    assert_eq!(tools["result"].get("_meta"), None);
    client.end();
    let shown = sandbox.stdout(["inspect", sandbox.segments()[0].to_str().unwrap()]);
    assert!(shown.lines().any(|line| line.contains("\"slow\" is missing from tools/list")), "{shown}");
}

#[test]
fn a_server_that_never_introduces_itself_is_given_up() {
    let sandbox = Sandbox::new();
    let fakes = [fake("mute").script("on", json!({ "initialize": [] })).set("startup_timeout", "100ms"), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({ "initialize_wait": "1s" }));
    let refused = client.call("mute__x", json!({}));
    assert_eq!((code_of(&refused), &refused["error"]["data"]["server"]), (5032, &json!("mute")), "{refused}");
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    client.end();
    sandbox.nothing_is_left();
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({}));
    let open = client.begin("a__do", steps(json!([{ "hold": "open" }])));
    let of_b = client.begin("b__do", steps(json!([{ "hold": "of b" }])));
    let died = client.steps("a__do", json!([{ "kill": true }]));
    assert_eq!((code_of(&died), &died["error"]["data"]["server"]), (5032, &json!("a")), "{died}");
    assert!(died["error"]["data"]["retry_after_ms"].is_u64(), "{died}");
    assert_eq!(code_of(&client.answer(&open)), 5032);
    assert_eq!(client.says("a__x", "again"), "a:x:again");
    client.steps("b__do", json!([{ "free": "of b" }, { "text": "" }]));
    assert_eq!(text_of(&client.answer(&of_b)), "of b");
    client.end();
    assert_eq!((sandbox.starts("a").len(), sandbox.starts("b").len()), (2, 1));
}

/// Whatever it dies of and whenever: an error or an answer, never silence, and the neighbour is none the worse.
#[test]
fn a_server_may_die_at_any_point() {
    let partial = r#"{"jsonrpc":"2.0","id":"#;
    for (point, script, call) in [
        ("at the start", ("begin", json!([{ "exit": 3 }])), json!([{ "text": "" }])),
        ("at the start, in peace", ("begin", json!([{ "exit": 0 }])), json!([{ "text": "" }])),
        ("in initialize", ("on", json!({ "initialize": [{ "exit": 1 }] })), json!([{ "text": "" }])),
        (
            "within its introduction",
            ("on", json!({ "initialize": [{ "partial": partial }, { "kill": true }] })),
            json!([{ "text": "" }]),
        ),
        ("in a list", ("on", json!({ "tools/list": [{ "kill": true }] })), json!([{ "text": "" }])),
        ("before an answer", ("x", json!(0)), json!([{ "kill": true }])),
        ("before an answer, in peace", ("x", json!(0)), json!([{ "exit": 0 }])),
        ("within an answer", ("x", json!(0)), json!([{ "partial": partial }, { "exit": 0 }])),
        ("after an answer", ("x", json!(0)), json!([{ "text": "" }, { "exit": 0 }])),
    ] {
        let sandbox = Sandbox::new();
        let fakes = [fake("a").script(script.0, script.1), fake("b")];
        let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
        let tools = client.ask("tools/list", json!({}));
        assert!(names_in(&tools, "tools", "name").contains(&"b__x".to_owned()), "{point}: {tools}");
        let answer = client.steps("a__do", call);
        let is_answered = answer["result"].is_object() || code_of(&answer) == 5032;
        assert!(is_answered, "{point}: {answer}");
        assert_eq!(client.says("b__x", point), format!("b:x:{point}"));
        let again = client.call("a__x", json!({}));
        assert!(again["result"].is_object() || code_of(&again) == 5032, "{point}: {again}");
        client.end();
        sandbox.nothing_is_left();
    }
}

#[test]
fn noise_is_no_message() {
    let sandbox = Sandbox::new();
    let noise = ["starting up...", "", "[1,2", "{}", "null", "[]", "\u{7f}\u{1b}[31m", "{\"jsonrpc\":\"2.0\"}"];
    let lines: Vec<Value> = noise.iter().map(|line| json!({ "line": line })).collect();
    let fakes = [fake("a").script("begin", lines.clone()), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let answer =
        client.steps("a__do", lines.into_iter().chain([json!({ "text": "heard" })]).collect::<Vec<_>>().into());
    assert_eq!(text_of(&answer), "heard");
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    assert!(client.take_kept().iter().all(|message| message["jsonrpc"] == "2.0" && message.get("method").is_some()));
    client.end();
}

#[test]
fn a_server_may_write_to_standard_error_without_end() {
    for text in ["complaint\n".repeat(1000), "x".repeat(10_000)] {
        let sandbox = Sandbox::new();
        let fakes = [fake("a").script("begin", json!([{ "stderr_for_ever": text }])), fake("b")];
        let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
        for number in 0..5 {
            assert_eq!(client.says("a__x", &number.to_string()), format!("a:x:{number}"));
            assert_eq!(client.says("b__x", &number.to_string()), format!("b:x:{number}"));
        }
        assert!(peak_bytes(client.proxy.pid()) < 128 << 20);
        client.end();
        sandbox.nothing_is_left();
    }
}

#[test]
fn a_server_that_reads_nothing_fills_no_memory() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({ "drain": "100ms" }));
    client.begin("a__do", steps(json!([{ "deaf": true }])));
    sandbox.until_seen("a", "tools/call", 1);
    let before = peak_bytes(client.proxy.pid());
    let text = "m".repeat(100_000);
    let calls: Vec<Value> = (0..300).map(|_| client.begin("a__x", json!({ "text": text }))).collect();
    // As many as may wait do; the last is among those that may not.
    let refused = client.answer(calls.last().unwrap());
    assert_eq!(refused["error"]["data"]["mcp-proxy/reason"], "overloaded", "{refused}");
    let grown = peak_bytes(client.proxy.pid()).saturating_sub(before);
    assert!(grown < 96 << 20, "{} MB for 30 MB that were sent", grown >> 20);
    client.stop();
    sandbox.nothing_is_left();
}

#[test]
fn a_neighbour_goes_on_beside_a_server_that_reads_nothing() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({ "drain": "100ms" }));
    client.begin("a__do", steps(json!([{ "deaf": true }])));
    let text = "m".repeat(100_000);
    for _ in 0..50 {
        client.begin("a__x", json!({ "text": text }));
    }
    for number in 0..20 {
        assert_eq!(client.says("b__x", &number.to_string()), format!("b:x:{number}"));
    }
    client.stop();
    sandbox.nothing_is_left();
}

#[test]
fn nothing_of_a_server_survives_that_does_not_want_to_end() {
    let sandbox = Sandbox::new();
    let stubborn = fake("a").script("survives_eof", true).set("shutdown_grace", "100ms");
    let script = sandbox.path("a.script");
    let program = crate::kit::fixture_program();
    let shell = format!("trap '' TERM; exec {} upstream {}", program.display(), script.display());
    let family = "trap '' TERM; sleep 600 & setsid sleep 600 & (sleep 600 &) ; wait";
    let fakes = [
        stubborn.set("command", json!(["sh", "-c", shell])),
        fake("b").script("begin", json!([{ "shell": family }])).set("shutdown_grace", "100ms"),
    ];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    assert_eq!((client.says("a__x", "1"), client.says("b__x", "1")), ("a:x:1".into(), "b:x:1".into()));
    until("the family is there", || sandbox.left_over().len() >= 6);
    client.end();
    sandbox.nothing_is_left();
}

#[test]
fn a_server_that_ends_over_and_over_is_not_started_over_and_over() {
    let sandbox = Sandbox::new();
    let fakes = [fake("a").script("begin", json!([{ "exit": 1 }])), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let mut hints = 0;
    for number in 0..200 {
        let refused = client.call("a__x", json!({}));
        assert_eq!(code_of(&refused), 5032, "{refused}");
        hints += usize::from(refused["error"]["data"]["retry_after_ms"].is_u64());
        assert_eq!(client.says("b__x", &number.to_string()), format!("b:x:{number}"));
    }
    assert_eq!(hints, 200);
    let starts = sandbox.starts("a").len();
    assert!(starts < 10, "{starts}");
    client.end();
}

#[test]
fn a_command_that_does_not_exist_hurts_nobody_else() {
    let sandbox = Sandbox::new();
    let fakes = [fake("a").set("command", json!(["/no/such/program"])), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["b__x", "b__do"]);
    let refused = client.call("a__x", json!({}));
    assert_eq!(code_of(&refused), 5032);
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(!text.contains("/no/such"), "commands are nobody's business: {text}");
    assert!(text.contains("(its program could not be started), retry in "), "{text}");
    client.end();
}
