//! The command `audit`, over logs that are written as a proxy writes them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use mcp_store::Direction;
use mcp_store::audit::{AuditLog, Begin, CallOutcome, Decision, logs};
use rustix::process::Signal;
use uuid::Uuid;

use crate::kit::{Sandbox, outcomes, signal, until, wait};

const SECOND: u64 = 1_000_000_000;
/// 2026-02-01, midnight.
const MIDNIGHT: u64 = 1_769_904_000 * SECOND;
const SESSION: Uuid = Uuid::from_u128(0x5e55_0000_0000_4000_8000_0000_0000_0001);

fn instance(number: u128) -> Uuid {
    Uuid::from_u128(0x1a2b_0000_0000_4000_8000_0000_0000_0000 + (number << 96))
}

fn begin(sandbox: &Sandbox, number: u128) -> AuditLog {
    sandbox.state().prepare().unwrap();
    let begin = Begin {
        time_ns: MIDNIGHT + number as u64 * SECOND,
        instance: instance(number),
        program: "mcp-proxy 0.1.0",
        server: Some("files"),
        rules_version: "3fa9",
    };
    AuditLog::begin(&sandbox.state().audit(), &begin).unwrap()
}

fn call(tool: &str) -> Decision<'_> {
    Decision {
        time_ns: MIDNIGHT + 10 * SECOND,
        session: SESSION,
        sequence: 3,
        conversation: 0,
        client: Some("probe 1.0"),
        server: Some("files"),
        direction: Direction::ClientToServer,
        method: "tools/call",
        tool: Some(tool),
        operation: Some("read"),
        verdict: "allow",
        rule: None,
        rules_version: "3fa9",
        actor: "default",
        why: None,
        held_ns: 0,
    }
}

fn denied(tool: &str) -> Decision<'_> {
    let rule = Some("nothing is deleted");
    Decision {
        operation: Some("delete"),
        verdict: "deny",
        rule,
        actor: "rule",
        sequence: 5,
        time_ns: MIDNIGHT + 11 * SECOND,
        ..call(tool)
    }
}

fn returned(of: u64) -> CallOutcome {
    let latency_ns = 1_234_567;
    let time_ns = MIDNIGHT + 10 * SECOND + latency_ns;
    CallOutcome { of, time_ns, session: SESSION, sequence: 4, status: "ok", code: None, latency_ns }
}

/// Two logs: one of a proxy that ended, one of another that was killed.
pub fn two_logs(sandbox: &Sandbox) {
    let mut log = begin(sandbox, 1);
    let number = log.decision(&call("read_file"));
    log.flush().unwrap();
    log.outcome(&returned(number));
    log.decision(&denied("delete_file"));
    log.note(MIDNIGHT + 12 * SECOND, "other rules count from now on");
    log.end(MIDNIGHT + 13 * SECOND).unwrap();
    let mut log = begin(sandbox, 2);
    let at = |second| MIDNIGHT + second * SECOND;
    let number = log.decision(&Decision {
        time_ns: at(20),
        method: "resources/read",
        tool: Some("file:///etc/\u{202e}passwd\u{1b}[2J"),
        client: Some("=cmd|' /C calc'!A0"),
        actor: "ann",
        rule: Some("ask about files"),
        why: Some("she, \"of all\" people, needed it"),
        held_ns: 2_500_000_000,
        ..call("")
    });
    let status = "error";
    log.outcome(&CallOutcome { time_ns: at(21), status, code: Some(-32002), latency_ns: SECOND, ..returned(number) });
    log.decision(&Decision {
        time_ns: at(22),
        verdict: "observe",
        actor: "rule",
        rule: Some("would be denied"),
        ..call("write_file")
    });
    log.decision(&Decision { time_ns: at(22), ..call("write_file") });
    log.flush().unwrap();
}

/// What a command says on both outputs, and how it ends.
fn shown(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = sandbox.output([&["audit"], args].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(!stdout.contains('\x1b') && !stderr.contains('\x1b'), "no escape of a peer reaches the terminal");
    let home = sandbox.path("").to_string_lossy().into_owned();
    let code = output.status.code().unwrap();
    format!("$ audit {}\n{stdout}{stderr}[{code}]\n\n", args.join(" ")).replace(&home, "~/")
}

fn all_shown(sandbox: &Sandbox, commands: &[&[&str]]) -> String {
    commands.iter().map(|args| shown(sandbox, args)).collect()
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r#""pid":\d+"#, r#""pid":[pid]"#);
    settings.add_filter(r#""[0-9a-f]{32}""#, r#""[hash]""#);
    settings
}

#[test]
fn help() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!("help_audit", sandbox.stdout(["audit", "--help"]));
}

#[test]
fn decisions_are_listed_with_their_outcomes() {
    let sandbox = Sandbox::new();
    let nothing = shown(&sandbox, &[]);
    assert!(!sandbox.state().root().exists(), "looking leaves nothing behind");
    two_logs(&sandbox);
    let shown = all_shown(
        &sandbox,
        &[
            &[],
            &["--limit", "2"],
            &["--filter", "verdict:deny"],
            &["--filter", "status:err dur>500ms"],
            &["--filter", "tool:nothing"],
            &["--since", "2026-02-01T00:00:12Z", "--until", "2026-02-01T00:00:21Z"],
            &["--instance", "1a2b0002"],
            &["--instance", "1a2b0002", "--filter", "op:read needed"],
            &["--session", &SESSION.to_string(), "--limit", "1"],
            &["--instance", "1a2b"],
            &["--instance", "ffff"],
            &["--since", "noon"],
            &["--filter", "colour:red"],
            &["--filter", "tool:read_file size>1k"],
            &["--filter", "$.params.arguments.path:*"],
        ],
    );
    settings().bind(|| insta::assert_snapshot!("audit_list", nothing + &shown));
}

#[test]
fn a_decision_is_shown_with_the_way_to_its_message() {
    let sandbox = Sandbox::new();
    two_logs(&sandbox);
    let ended = format!("{}/4", instance(1));
    let shown = all_shown(
        &sandbox,
        &[
            &["show", "1a2b0002/2"],
            &["show", &ended],
            &["show", "1a2b0001/5"],
            &["show", "1a2b0002/99"],
            &["show", "1a2b0002"],
            &["show", "ffff/1"],
        ],
    );
    settings().bind(|| insta::assert_snapshot!("audit_show", shown));
}

#[test]
fn lines_are_given_out_as_they_are() {
    let sandbox = Sandbox::new();
    two_logs(&sandbox);
    let everything = sandbox.stdout(["audit", "--json"]);
    let parts = |number: usize| fs::read_to_string(logs(&sandbox.state().audit()).unwrap()[number].path(1)).unwrap();
    assert_eq!(everything, parts(0) + &parts(1));
    let lines = |args: &[&str]| {
        let text = sandbox.stdout([&["audit", "--json"], args].concat());
        text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let numbers = |args: &[&str]| lines(args).iter().map(|line| line["seq"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers(&["--filter", "status:err"]), [2, 3]);
    assert_eq!(numbers(&["--instance", "1a2b0001", "--limit", "2"]), [4, 5]);
    assert_eq!(numbers(&["--filter", "tool:nothing"]), [0u64; 0]);
    settings().bind(|| insta::assert_snapshot!("audit_json", everything));
}

#[test]
fn spreadsheets_get_text_that_they_do_not_compute() {
    let sandbox = Sandbox::new();
    two_logs(&sandbox);
    let shown = all_shown(&sandbox, &[&["--csv"], &["--csv", "--filter", "verdict:observe"]]);
    settings().bind(|| insta::assert_snapshot!("audit_csv", shown.replace("\r\n", "\n")));
}

#[test]
fn logs_are_verified() {
    let sandbox = Sandbox::new();
    let nothing = shown(&sandbox, &["--verify"]);
    two_logs(&sandbox);
    let sound = all_shown(&sandbox, &[&["--verify"], &["--verify", "--json"], &["--verify", "--instance", "1a2b0002"]]);
    let log = logs(&sandbox.state().audit()).unwrap().remove(0);
    let text = fs::read_to_string(log.path(1)).unwrap();
    fs::write(log.path(1), text.replacen("deny", "dent", 1)).unwrap();
    let changed = all_shown(&sandbox, &[&["--verify"], &["--verify", "--json", "--instance", "1a2b0001"]]);
    let cut: String = text.split_inclusive('\n').take(3).collect();
    fs::write(log.path(1), cut).unwrap();
    let cut = all_shown(&sandbox, &[&["--verify", "--instance", "1a2b0001"], &["--limit", "1"]]);
    fs::remove_file(log.path(1)).unwrap();
    let gone = all_shown(&sandbox, &[&["--verify"]]);
    settings().bind(|| insta::assert_snapshot!("audit_verify", nothing + &sound + &changed + &cut + &gone));
}

#[test]
fn a_torn_line_is_what_a_killed_proxy_leaves() {
    let sandbox = Sandbox::new();
    two_logs(&sandbox);
    let log = logs(&sandbox.state().audit()).unwrap().remove(1);
    let text = fs::read(log.path(1)).unwrap();
    fs::write(log.path(1), &text[..text.len() - 100]).unwrap();
    let shown = all_shown(&sandbox, &[&["--verify", "--instance", "1a2b0002"], &["--instance", "1a2b0002"]]);
    settings().bind(|| insta::assert_snapshot!("audit_torn", shown));
}

#[test]
fn a_table_of_decisions_that_is_damaged_is_made_anew() {
    let sandbox = Sandbox::new();
    two_logs(&sandbox);
    let before = sandbox.stdout(["audit"]);
    fs::write(sandbox.state().decisions(), b"this is no database, and long enough to be looked at as one").unwrap();
    let output = sandbox.output(["audit"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("filled anew"), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), before);
}

#[test]
fn decisions_are_followed_in_every_log_there_will_be() {
    let sandbox = Sandbox::new();
    let mut log = begin(&sandbox, 1);
    let mut open = log.decision(&call("read_file"));
    log.flush().unwrap();
    let mut command = sandbox.command(["audit", "--follow"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let mut shown = vec![next(), next()];
    log.outcome(&returned(open));
    log.flush().unwrap();
    shown.push(next());
    // Another proxy starts, and somebody else looks first.
    signal(child.id(), Signal::STOP);
    let mut other = begin(&sandbox, 2);
    open = other.decision(&call("list_directory"));
    other.flush().unwrap();
    sandbox.stdout(["audit"]);
    signal(child.id(), Signal::CONT);
    shown.push(next());
    // The first ends; what the second does is still seen.
    log.note(MIDNIGHT + 14 * SECOND, "good bye");
    log.end(MIDNIGHT + 15 * SECOND).unwrap();
    shown.push(next());
    other.outcome(&returned(open));
    other.flush().unwrap();
    shown.push(next());
    signal(child.id(), Signal::INT);
    assert_eq!(wait(child).code(), Some(130));
    settings().bind(|| insta::assert_snapshot!("audit_follow", shown.join("\n")));
}

#[test]
fn calls_that_come_back_together_are_followed_one_by_one() {
    let sandbox = Sandbox::new();
    let mut log = begin(&sandbox, 1);
    let open = ["read_file", "list_directory"].map(|tool| log.decision(&call(tool)));
    log.flush().unwrap();
    let mut command = sandbox.command(["audit", "--follow"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let before = [next(), next(), next()];
    open.iter().for_each(|of| log.outcome(&returned(*of)));
    log.flush().unwrap();
    let after = [next(), next()];
    child.kill().unwrap();
    wait(child);
    assert!(after[0].contains("read_file") && after[1].contains("list_directory"), "{before:?} {after:?}");
    // With a filter, the line that they share comes with the one that is meant.
    let picked = sandbox.stdout(["audit", "--json", "--filter", "tool:read_file"]);
    let picked: Vec<serde_json::Value> = picked.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = picked.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!((kinds, outcomes(&picked).count()), (vec!["decision", "outcomes"], 2), "{picked:?}");
}

#[test]
fn what_is_followed_can_be_picked_by_its_outcome() {
    let sandbox = Sandbox::new();
    let mut log = begin(&sandbox, 1);
    let mut command = sandbox.command(["audit", "--follow", "--json", "--filter", "status:err"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (seen, lines) = std::sync::mpsc::sync_channel(64);
    let reading = std::thread::spawn(move || output.lines().try_for_each(|line| seen.send(line.unwrap())));
    let mut next: Vec<serde_json::Value> = Vec::new();
    // Nothing tells when it has begun to look, so there is something new until it has seen some.
    // Not more than can be read meanwhile.
    let mut written: Option<Instant> = None;
    until("a decision with its outcome", || {
        if written.is_none_or(|written| written.elapsed() > Duration::from_millis(50)) {
            written = Some(Instant::now());
            for tool in ["one", "two", "three"] {
                let of = log.decision(&call(tool));
                let status = if tool == "two" { "error" } else { "ok" };
                log.outcome(&CallOutcome { status, ..returned(of) });
            }
            log.flush().unwrap();
        }
        next.extend(lines.try_iter().map(|line| serde_json::from_str(&line).unwrap()));
        next.iter().any(|line| line["of"] == next[0]["seq"])
    });
    assert!(next.iter().all(|line| line["tool"] == "two" || line["outcome"] == "error"), "{next:?}");
    child.kill().unwrap();
    wait(child);
    drop(lines);
    let _ = reading.join().unwrap();
}
