//! Denied calls that do not come from a client as they are: put in place of a held message, sent once
//! more from a running instance, or replayed from a recording.

use std::io::Write;
use std::process::Stdio;

use super::attacks::{Attack, attacks, filled};
use super::readings::{Denied, denied_calls};
use super::stage::{JOURNAL, Stage, harmless_with, journals_in};
use super::{Era, FIRST_ID, RULES, rules_in};
use crate::kit::{Sandbox, fixture_program, proxy_program};

/// Attacks that a person could type.
fn typed() -> Vec<(Attack, String)> {
    const LONGEST: usize = 10_000;
    let table = attacks(Era::Modern, FIRST_ID).into_iter();
    // What is typed is written anew, so line breaks between its parts are gone.
    let typed = table.filter(|attack| attack.bytes.len() < LONGEST && !attack.name.contains("between CRs"));
    typed.filter_map(|attack| String::from_utf8(attack.bytes.clone()).ok().map(|text| (attack, text))).collect()
}

/// `mcp-proxy ARGS` with this on its standard input. Whether it did what it was told, and what it said.
fn tell(sandbox: &Sandbox, args: &[&str], input: &str) -> (bool, String) {
    let mut command = sandbox.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_edit_is_judged_as_what_it_became() {
    let mut stage = Stage::pipes(Era::Modern, RULES);
    stage.sandbox().breaks("> tool:echo");
    let call = harmless_with(Era::Modern, 77);
    stage.running().send(format!("{call}\n").as_bytes());
    let number = stage.sandbox().held_number();
    let typed = typed();
    assert!(typed.len() >= 80);
    for (attack, text) in typed {
        let (is_done, said) = tell(stage.sandbox(), &["modify", &number, "-", "--not-json-rpc"], &text);
        assert!(!is_done, "{}: it was sent on: {said}", attack.name);
    }
    let (is_done, said) = tell(stage.sandbox(), &["modify", &number, "--set", "$.params.name=delete_repo"], "");
    assert!(!is_done && said.contains("no-deletes"), "{said}");
    let (is_done, said) = tell(stage.sandbox(), &["modify", &number, "--set", "$.params.arguments.path=/tmp"], "");
    assert!(is_done, "{said}");
    assert_eq!(stage.running().json()["id"], 77);
    assert_eq!(stage.denied_calls(Denied::More), [""; 0]);
    stage.end();
}

#[test]
fn what_was_denied_is_not_sent_again() {
    let mut stage = Stage::pipes(Era::Modern, RULES);
    let denied = filled("<denied>", Era::Modern, &mut 7);
    stage.running().send(format!("{denied}\n").as_bytes());
    assert_eq!(stage.running().json()["error"]["code"], -32000);
    stage.sandbox().until_found();
    // The first call and its answer were recorded before it.
    let (harmless, denied) = ("#1", "#3");
    let (is_done, said) = tell(stage.sandbox(), &["replay", "--live", denied], "");
    assert!(!is_done && said.contains("no-deletes"), "{said}");
    let edit = ["replay", "--live", harmless, "--set", "$.params.name=shutdown_host"];
    let (is_done, said) = tell(stage.sandbox(), &edit, "");
    assert!(!is_done && said.contains("no-shutdown"), "{said}");
    let (is_done, said) = tell(stage.sandbox(), &["replay", "--live", harmless], "");
    assert!(is_done, "{said}");
    stage.works(5);
    assert_eq!(stage.denied_calls(Denied::More), [""; 0]);
    stage.end();
}

/// A client made of recorded attacks fares no better than the one that was recorded.
#[test]
fn a_recording_is_judged_when_it_is_replayed() {
    let sandbox = Sandbox::new();
    let rules = rules_in(&sandbox, RULES);
    let table = attacks(Era::Modern, FIRST_ID);
    let mut ungoverned = sandbox.run(&["--quiet", "--name", "attacks"], &["puppet"]);
    for attack in &table {
        ungoverned.send(&[&attack.bytes[..], b"\n"].concat());
    }
    let last = harmless_with(Era::Modern, 5);
    ungoverned.send(format!("{last}\n").as_bytes());
    while ungoverned.json()["id"] != 5 {}
    ungoverned.end();

    let (proxy, fixture, journal) = (proxy_program(), fixture_program(), sandbox.path(JOURNAL));
    let mut command = sandbox.command(["replay", "attacks", "--no-handshake", "--timeout", "1", "--no-record", "--"]);
    command.arg(proxy).args(["run", "--quiet", "--rules", &rules, "--"]).arg(fixture).arg("puppet").arg(journal);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let received = journals_in(&sandbox);
    let is_there = received.windows(last.len()).any(|window| window == last.as_bytes());
    assert!(is_there, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(denied_calls(&received, Denied::More), [""; 0]);
}
