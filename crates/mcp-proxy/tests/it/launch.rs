//! Who gets to see something drawn: a person at a terminal. A client never does, whatever it hands over.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::kit::{Sandbox, children_of, fixture_program, until};
use crate::pty_kit::{Ground, OnTerminal, Terminal, shell};

const REQUEST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}\n";
const ANSWER: &str = "{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{\"method\":\"hello\"}}";

fn proxy(flags: &[&str]) -> Vec<String> {
    proxy_at(&["--listen-port", "0"], flags)
}

fn proxy_at(place: &[&str], flags: &[&str]) -> Vec<String> {
    let target = format!("{} answer", fixture_program().display());
    let args = ["proxy", "--transport", "stdio", "--target-command", &target];
    args.iter().chain(place).chain(flags).map(|&word| word.to_owned()).collect()
}

/// Where clients of an instance that draws come in: a listener takes the place of the terminal.
fn is_drawn(instance: &Value) -> bool {
    match instance["listen"].as_str().unwrap() {
        "stdio" => false,
        listen => {
            assert!(listen.starts_with("127.0.0.1:") && !listen.ends_with(":0"), "{instance}");
            true
        }
    }
}

/// Starts a proxy with a terminal or a pipe on either end, and says whether it draws.
#[track_caller]
fn check(stdin: bool, stdout: bool, ground: Ground, flags: &[&str], draws: bool) {
    let (sandbox, terminal) = (Sandbox::new(), Terminal::open());
    let (their_stdin, pipe) = std::io::pipe().unwrap();
    let mut command = shell(&sandbox, ground, proxy(flags));
    command.stdin(if stdin { terminal.end() } else { Stdio::from(OwnedFd::from(their_stdin)) });
    command.stdout(if stdout { terminal.end() } else { Stdio::null() }).stderr(terminal.end());
    let started = OnTerminal::new(command.spawn().unwrap());
    drop(command);
    let instance = sandbox.shown_instance();
    assert_eq!(is_drawn(&instance), draws, "{stdin} {stdout} {ground:?} {flags:?}");
    let pid = instance["pid"].as_u64().unwrap();
    crate::kit::signal(u32::try_from(pid).unwrap(), rustix::process::Signal::TERM);
    assert!(started.code().is_some());
    drop(pipe);
}

#[test]
fn a_person_at_a_terminal_sees_something() {
    check(true, true, Ground::InFront, &[], true);
}

#[test]
fn whoever_has_one_end_only_sees_nothing() {
    check(false, true, Ground::InFront, &[], false);
    check(true, false, Ground::InFront, &[], false);
    check(false, false, Ground::InFront, &[], false);
}

#[test]
fn in_the_background_nothing_is_drawn() {
    check(true, true, Ground::Behind, &[], false);
}

#[test]
fn what_is_asked_for_counts_first() {
    check(true, true, Ground::InFront, &["--ui", "tui"], true);
    check(true, true, Ground::InFront, &["--ui", "none"], false);
}

/// Whoever says that clients come over standard input types messages there.
#[test]
fn listening_on_stdio_is_no_reason_to_draw() {
    let (sandbox, terminal) = (Sandbox::new(), Terminal::open());
    let started = terminal.start(&sandbox, Ground::InFront, proxy_at(&["--listen", "stdio"], &[]));
    assert!(!is_drawn(&sandbox.shown_instance()));
    terminal.types(&[REQUEST, b"\x04"].concat());
    assert_eq!(started.code(), Some(0));
    until("the answer is shown", || terminal.shown().contains(ANSWER));
}

/// A person who types what a client's config has is told the entry, and a command that draws.
#[test]
fn a_run_on_a_terminal_says_where_it_belongs() {
    let (sandbox, terminal) = (Sandbox::new(), Terminal::open());
    let server = fixture_program().display().to_string();
    let run = ["run", "--name", "typed", "--", &server, "answer"];
    let started = terminal.start(&sandbox, Ground::InFront, run);
    let here = "; to watch it here: ";
    until("the line is shown", || terminal.shown().split_once(here).is_some_and(|(_, rest)| rest.contains('\n')));
    let shown = terminal.shown();
    let line = shown.lines().find(|line| line.contains(here)).unwrap();
    let (entry, offered) = line.split_once(here).unwrap();
    assert!(entry.ends_with(&format!("\"args\": {}", json!(run))), "{entry}");
    terminal.types(&[REQUEST, b"\x04"].concat());
    assert_eq!(started.code(), Some(0));
    until("messages can be typed all the same", || terminal.shown().contains(ANSWER));

    let terminal = Terminal::open();
    let offered = shell_words::split(offered).unwrap();
    let started = terminal.start(&sandbox, Ground::InFront, &offered[1..]);
    let instance = sandbox.shown_instance();
    assert!(is_drawn(&instance), "{instance}");
    assert_eq!(instance["name"], "typed");
    assert!(started.terminated().is_some());
}

#[test]
fn a_transport_may_be_written_in_capitals() {
    let server = format!("{} answer", fixture_program().display());
    for transport in ["STDIO", "Stdio", "stdio"] {
        let sandbox = Sandbox::new();
        let output = sandbox.output(["proxy", "--transport", transport, "--target-command", &server]);
        assert_eq!(output.status.code(), Some(0), "{transport}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn what_cannot_be_drawn_is_refused_in_one_line() {
    let sandbox = Sandbox::new();
    for args in [proxy(&["--ui", "tui"]), vec!["attach".into()], vec!["tui".into(), "7f3a".into()]] {
        let output = sandbox.output(&args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.lines().count() == 1 && errors.contains("`mcp-proxy tail`"), "{errors}");
    }
    assert!(sandbox.segments().is_empty());
}

/// A client on a terminal of its own making speaks first, and what it said is served.
#[test]
fn a_client_that_speaks_at_once_is_served_and_its_terminal_left_alone() {
    for opening in [REQUEST.to_vec(), [b"\n \n", REQUEST].concat()] {
        let (sandbox, terminal) = (Sandbox::new(), Terminal::open());
        let before = terminal.modes();
        terminal.types(&opening);
        let started = terminal.start(&sandbox, Ground::InFront, proxy(&[]));
        until("it answers", || terminal.shown().contains(ANSWER));
        assert!(!is_drawn(&sandbox.shown_instance()));
        assert_eq!(terminal.modes(), before);
        terminal.types(&[REQUEST, b"\x04"].concat());
        assert_eq!(started.code(), Some(0));
        assert_eq!(terminal.modes(), before);
        until("both answers are shown", || terminal.shown().matches(ANSWER).count() == 2);
        assert!(!terminal.shown().contains('\u{1b}'), "{:?}", terminal.shown());
    }
}

#[test]
fn a_client_that_counts_bytes_is_known_too() {
    let (sandbox, terminal) = (Sandbox::new(), Terminal::open());
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "hello" }).to_string();
    terminal.types(format!("Content-Length: {}\n\n{body}\n", body.len()).as_bytes());
    let target = format!("{} keep kept", fixture_program().display());
    let args = ["proxy", "--transport", "stdio", "--target-command", &target];
    let started = terminal.start(&sandbox, Ground::InFront, args);
    assert!(!is_drawn(&sandbox.shown_instance()));
    terminal.types(b"\x04");
    assert_eq!(started.code(), Some(0));
    let kept = std::fs::read_to_string(sandbox.path("kept")).unwrap();
    assert_eq!(kept, format!("Content-Length: {}\r\n\r\n{body}", body.len()));
}

/// What a client's config says never draws, and never does anything to a terminal that would stop it.
#[test]
fn what_a_client_starts_in_the_background_is_never_stopped() {
    let run = vec!["run".to_owned(), "--".to_owned(), fixture_program().display().to_string(), "answer".to_owned()];
    for args in [run, proxy(&[])] {
        let (sandbox, terminal) = (Sandbox::new(), Terminal::open());
        let before = terminal.modes();
        let (their_stdin, mut stdin) = std::io::pipe().unwrap();
        let (mut stdout, their_stdout) = std::io::pipe().unwrap();
        let mut command = shell(&sandbox, Ground::Behind, &args);
        command.stdin(their_stdin).stdout(their_stdout).stderr(terminal.end());
        let started = OnTerminal::new(command.spawn().unwrap());
        drop(command);
        stdin.write_all(REQUEST).unwrap();
        let mut answer = vec![0; ANSWER.len()];
        stdout.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), ANSWER);
        let proxies = children_of(started.pid());
        assert!(!proxies.is_empty() && proxies.iter().all(|pid| state(*pid) != Some('T')), "{proxies:?}");
        assert_eq!(terminal.modes(), before);
        drop(stdin);
        assert_eq!(started.code(), Some(0));
        assert_eq!(terminal.modes(), before);
    }
}

/// A proxy in the background with the terminal on both ends shows nothing there, and goes on.
#[test]
fn a_proxy_in_the_background_goes_on_with_its_terminal() {
    let (sandbox, terminal) = (Sandbox::new(), Terminal::open());
    let before = terminal.modes();
    let started = terminal.start(&sandbox, Ground::Behind, proxy_at(&["--listen", "127.0.0.1:0"], &[]));
    let instance = sandbox.shown_instance();
    let pid = u32::try_from(instance["pid"].as_u64().unwrap()).unwrap();
    assert_ne!(state(pid), Some('T'));
    until("it says where it listens", || terminal.shown().contains("listening on http://127.0.0.1:"));
    assert_eq!(terminal.modes(), before);
    crate::kit::signal(pid, rustix::process::Signal::TERM);
    assert_eq!(started.code(), Some(0));
    assert_eq!(terminal.modes(), before);
}

/// Nobody is connected, so that what draws ends with whoever looks at it, and in the ordinary way.
#[test]
fn a_proxy_that_draws_ends_in_the_ordinary_way() {
    let (sandbox, terminal) = (Sandbox::new(), Terminal::open());
    let file = sandbox.path("session.json");
    let before = terminal.modes();
    let started = terminal.start(&sandbox, Ground::InFront, proxy(&["--session-file", file.to_str().unwrap()]));
    assert!(is_drawn(&sandbox.shown_instance()));
    assert!(!terminal.shown().contains("listening on"), "{}", terminal.shown());
    assert_eq!(started.terminated(), Some(0));
    assert_eq!(terminal.modes(), before);
    assert!(file.exists());
    assert_eq!(sandbox.stdout(["ps", "--json"]), "");
    let listed = sandbox.stdout(["sessions", "list", "--json"]);
    assert!(listed.contains("\"ended_at\""), "{listed}");
}

/// The letter by which the system says what a process does; `T` is stopped.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
