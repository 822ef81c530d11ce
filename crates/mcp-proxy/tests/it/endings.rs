//! However a conversation ends, it ends, and nobody is left waiting or cut short.

use std::io::Read;
use std::process::Stdio;

use rustix::process::Signal;

use crate::http_kit::Listening;
use crate::kit::{Running, Sandbox, children_of, fixture_program, marked_processes, signal, until};
use crate::pty_kit::{Ground, OnTerminal, Terminal, shell};

#[test]
fn a_server_that_never_stops_talking_can_be_ended() {
    for script in ["exec yes", "exec yes '{}'"] {
        let sandbox = Sandbox::new();
        let proxy = sandbox.run_script(&["--quiet", "--no-record"], script);
        proxy.terminate();
        proxy.end();
    }
    // And without a signal: the end of its input is the end of the conversation.
    Sandbox::new().run_script(&["--quiet", "--no-record"], "exec yes").end();
}

#[test]
fn a_server_that_closed_its_input_is_ended_with_the_conversation() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run_script(&["--quiet"], "exec <&-; echo '{}'; exec sleep 600");
    proxy.line();
    proxy.request(1, "into/the/void");
    // An answer if the request was read before it was noticed, and the end of the stream in any case.
    for line in proxy.rest() {
        let answer: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(answer["error"]["code"], 5030);
    }
    proxy.end();
}

#[test]
fn a_server_that_closed_its_output_leaves_no_call_open() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run_script(&["--quiet"], "read -r line; exec >&-; exec sleep 600");
    proxy.request(1, "x");
    assert_eq!(proxy.json()["error"]["code"], 5030);
    proxy.end();
}

#[test]
fn a_call_under_a_long_id_is_answered_when_its_server_ends() {
    for len in [1_021, 1_022, 1_023, 1_024, 5_000, 100_000] {
        let sandbox = Sandbox::new();
        let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
        let id = "i".repeat(len);
        proxy.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ignore/it\"}}\n").as_bytes());
        proxy.request(1, "exit/7");
        let answers = [proxy.json(), proxy.json()];
        assert!(answers.iter().all(|answer| answer["error"]["code"] == 5030), "{len}");
        assert!(answers.iter().any(|answer| answer["id"] == id), "{len}");
        assert_eq!(proxy.end().0.code(), Some(7));
    }
}

#[test]
fn a_server_that_takes_nothing_does_not_outlive_its_client() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--no-record"], &["deaf"]);
    proxy.send_until_stuck(&b"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n".repeat(1000), 64 << 20);
    proxy.end();
}

#[test]
fn a_slow_client_gets_everything_its_server_said_before_it_ended() {
    let sandbox = Sandbox::new();
    let done = sandbox.path("done");
    let script = format!("yes '{{}}' | head -c 450000; touch {}", done.display());
    let mut command = sandbox.command(["run", "--quiet", "--", "sh", "-c", &script]);
    command.stderr(Stdio::null());
    let mut proxy = Running::start_unread(command);
    until("the server has said everything", || done.exists());
    // The proxy waits for its client; nothing of the server waits with it.
    until("nothing of the server is left, not even a zombie", || children_of(proxy.pid()).is_empty());
    let mut got = Vec::new();
    proxy.take_stdout().read_to_end(&mut got).unwrap();
    assert_eq!(got.len(), 450_000);
    assert!(proxy.end().0.success());
}

#[test]
fn nobody_reading_standard_error_holds_nothing_up() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["run", "--", "sh", "-c"]);
    command.arg(format!("head -c 2000000 /dev/zero >&2; echo noise; exec {} answer", fixture_program().display()));
    let (reader, writer) = std::io::pipe().unwrap();
    command.stderr(writer);
    let mut proxy = Running::start_quietly(command);
    proxy.ask(1, "hello");
    assert!(proxy.end().0.success());
    drop(reader);
}

#[test]
fn a_client_that_closed_first_still_learns_why_its_server_failed() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    proxy.request(1, "ignore/this");
    proxy.request(2, "exit/7");
    let (status, errors) = proxy.end();
    assert_eq!(status.code(), Some(7));
    assert!(errors.contains("the server ended with 2 calls unanswered (exit code 7)"), "{errors}");
}

/// What cannot be started is found before a client waits for it, and a name is not taken for the program.
#[test]
fn what_cannot_be_run_behind_a_flag_is_said_at_once() {
    let sandbox = Sandbox::new();
    for flag in ["--proxy-tool", "--unwrap-proxy-tool"] {
        let fails = |words: &[&str], code: i32, pieces: &[&str]| {
            let output = sandbox.output([&["run", flag], words].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(code), "{said}");
            assert!(pieces.iter().all(|piece| said.contains(piece)), "{said}");
        };
        fails(&["--", "no-such-program"], 3, &["cannot start `no-such-program`: no such program", "full path"]);
        fails(&["all", "--", "no-such-program"], 3, &["cannot start `no-such-program`"]);
        let named = format!("write {flag}=all");
        fails(&["all", "no-such-program"], 2, &["`all` may be the name of the tool, or the program", &named]);
    }
}

/// A listener in front of a server that runs all the time, and that carries the mark.
fn serve_eagerly(sandbox: &Sandbox) -> Vec<String> {
    let mark = format!("MCP_TEST_MARK={}", uuid::Uuid::new_v4());
    let (name, value) = mark.split_once('=').unwrap();
    let server = serde_json::json!({
        "command": "sh",
        "args": ["-c", format!("sleep 600 & exec {} puppet", fixture_program().display())],
        "env": { name: value },
        "start": "eager",
    });
    std::fs::write(sandbox.path("gateway.json"), serde_json::json!({ "servers": { "one": server } }).to_string())
        .unwrap();
    let words = ["serve", "--config", "gateway.json", "--listen", "127.0.0.1:0"];
    words.iter().map(|&word| word.to_owned()).chain([mark]).collect()
}

#[test]
fn a_listener_without_a_terminal_is_not_ended_by_sighup() {
    let sandbox = Sandbox::new();
    let mut words = serve_eagerly(&sandbox);
    let mark = words.pop().unwrap();
    let proxy = Listening::start(shell(&sandbox, Ground::InFront, words));
    until("the guard, the server and its helper run", || marked_processes(&mark).len() == 3);
    for _ in 0..2 {
        signal(proxy.pid(), Signal::HUP);
        proxy.says("SIGHUP is ignored");
    }
    assert_eq!(marked_processes(&mark).len(), 3);
    proxy.end();
    until("the servers are gone", || marked_processes(&mark).is_empty());
}

#[test]
fn a_listener_ends_with_its_window_and_leaves_no_server() {
    let sandbox = Sandbox::new();
    let mut words = serve_eagerly(&sandbox);
    let mark = words.pop().unwrap();
    let terminal = Terminal::open();
    let mut command = shell(&sandbox, Ground::InFront, words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(terminal.end());
    let proxy = OnTerminal::new(command.spawn().unwrap());
    drop(command);
    until("the guard, the server and its helper run", || marked_processes(&mark).len() == 3);
    signal(proxy.pid(), Signal::HUP);
    assert!(proxy.code().is_some());
    until("the servers are gone", || marked_processes(&mark).is_empty());
}
