//! Servers that end, and are there again: nothing is left of those before, however often it happens.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::gateway_kit::{Fake, StdioClient, fake, names_in, steps, text_of};
use crate::kit::{Sandbox, fixture_program, signal, until};

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Memory that is in use now, without that of programs.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Kills all servers, and calls each until it is there again.
#[track_caller]
fn cycle(client: &mut StdioClient, servers: &[Fake]) {
    let pids: Vec<u32> =
        servers.iter().map(|server| client.says(&format!("{}__pid", server.name), "").parse().unwrap()).collect();
    pids.iter().for_each(|pid| signal(*pid, Signal::KILL));
    for (server, before) in servers.iter().zip(pids) {
        until("the server is there again", || {
            let answer = client.call(&format!("{}__pid", server.name), json!({}));
            let is_there = answer["result"].is_object();
            assert!(is_there || answer["error"]["code"] == 5032, "{answer}");
            is_there && text_of(&answer) != before.to_string()
        });
    }
    client.take_kept();
}

/// As many times as `MCP_PROXY_CYCLES` says, or a hundred.
#[test]
fn servers_that_are_killed_leave_nothing_behind() {
    const SERVERS: usize = 10;
    let cycles = std::env::var("MCP_PROXY_CYCLES").ok().and_then(|cycles| cycles.parse().ok()).unwrap_or(100_usize);
    let sandbox = Sandbox::new();
    let servers: Vec<Fake> = (0..SERVERS).map(|number| fake(&format!("s{number}")).tools(&["pid"])).collect();
    let mut client = StdioClient::open(&sandbox, &servers, json!({}));
    let proxy = client.proxy.pid();
    // What is opened once is opened by then.
    cycle(&mut client, &servers);
    let all = sandbox.left_over().len();
    let (files, bytes) = (open_files(proxy), memory(proxy));
    for _ in 0..cycles.div_ceil(SERVERS) {
        cycle(&mut client, &servers);
    }
    until("the killed are gone", || sandbox.left_over().len() <= all);
    until("their files are closed", || open_files(proxy) <= files + 2);
    let grown = memory(proxy).saturating_sub(bytes);
    assert!(grown < 16 << 20, "{} KB more after {cycles} cycles", grown >> 10);
    client.end();
    sandbox.nothing_is_left();
}

#[test]
fn a_server_that_no_longer_answers_is_started_again() {
    let sandbox = Sandbox::new();
    let top = json!({ "healthcheck_interval": "100ms", "healthcheck_timeout": "200ms" });
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b"), fake("c").modern()], top);
    let open = client.begin("a__do", steps(json!([{ "hold": "open" }])));
    sandbox.until_seen("a", "tools/call", 1);
    let stopped = sandbox.starts("a")[0];
    signal(stopped, Signal::STOP);
    let answer = client.answer(&open);
    assert_eq!(answer["error"]["code"], 5032, "{answer}");
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    until("the stopped one is gone", || !sandbox.left_over().contains(&stopped));
    assert_eq!((sandbox.starts("a").len(), sandbox.starts("b").len()), (2, 1));
    assert!(!sandbox.seen("b", "ping").is_empty());
    // The newest revision has no ping. The first time is its introduction.
    sandbox.until_seen("c", "server/discover", 2);
    client.end();
}

#[test]
fn a_server_that_is_busy_with_a_call_is_shown_and_left_alone() {
    let sandbox = Sandbox::new();
    let top = json!({ "healthcheck_interval": "50ms", "healthcheck_timeout": "50ms" });
    let never_there = fake("b").script("on", json!({ "ping": [] }));
    let mut client = StdioClient::open(&sandbox, &[fake("a"), never_there], top);
    // From the start, so that a slow machine makes no idle server of it that misses pings.
    let open = client.begin("a__do", steps(json!([{ "gate": sandbox.gate() }, { "text": "in the end" }])));
    client.begin("b__x", json!({ "text": "1" }));
    sandbox.until_seen("a", "tools/call", 1);
    let state = || -> Value {
        let listed = sandbox.stdout(["servers", "list", "--json"]);
        serde_json::from_str::<Value>(listed.lines().next().unwrap()).unwrap()["state"].clone()
    };
    until("it shows", || state() == "not_responding");
    assert!(sandbox.stdout(["servers", "list"]).contains(" not responding "));
    // Another that answers no ping and has no call is started again meanwhile, more than once.
    let before = sandbox.starts("b").len();
    until("the other is started again", || sandbox.starts("b").len() >= before + 2);
    assert_eq!(sandbox.starts("a").len(), 1);
    sandbox.open_gate();
    assert_eq!(text_of(&client.answer(&open)), "in the end");
    until("it is well again", || state() == "ready");
    client.end();
    sandbox.nothing_is_left();
}

#[test]
fn a_server_that_lives_with_a_closed_output_is_started_again() {
    let sandbox = Sandbox::new();
    let mute = fake("a").script("survives_eof", true);
    let mut client = StdioClient::open(&sandbox, &[mute, fake("b")], json!({}));
    let answer = client.steps("a__do", json!([{ "mute": true }]));
    assert_eq!((&answer["error"]["code"], &answer["error"]["data"]["server"]), (&5032.into(), &"a".into()), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("standard output closed"), "{answer}");
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    assert_eq!((sandbox.starts("a").len(), sandbox.starts("b").len()), (2, 1));
    client.end();
    sandbox.nothing_is_left();
}

/// A server whose program fails until [`mend`] is called.
fn broken(sandbox: &Sandbox, name: &str) -> Fake {
    let (mended, script) = (sandbox.path(&format!("{name}.mended")), sandbox.path(&format!("{name}.script")));
    let upstream = format!("exec {} upstream {}", fixture_program().display(), script.display());
    let shell = format!("if [ -e {} ]; then {upstream}; fi; exit 1", mended.display());
    fake(name).set("command", json!(["sh", "-c", shell]))
}

fn mend(sandbox: &Sandbox, name: &str) {
    std::fs::write(sandbox.path(&format!("{name}.mended")), "").unwrap();
}

#[test]
fn whoever_comes_while_a_server_fails_is_told_what_may_come() {
    let sandbox = Sandbox::new();
    let (mut client, opened) = StdioClient::open_with(sandbox.serve(&[broken(&sandbox, "a")], json!({})), json!({}));
    let capabilities = &opened["result"]["capabilities"];
    for kind in ["tools", "prompts", "resources"] {
        assert_eq!(capabilities[kind]["listChanged"], true, "{opened}");
    }
    let tools = client.ask("tools/list", json!({}));
    assert!(names_in(&tools, "tools", "name").is_empty(), "{tools}");
    mend(&sandbox, "a");
    sandbox.until_seen("a", "notifications/initialized", 1);
    client.heard("notifications/tools/list_changed");
    assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["a__x", "a__do"]);
    client.end();
}
