//! Whatever a client hands over as standard input and output: sockets, files, a terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::kit::{Sandbox, fixture_program, wait};

const REQUEST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}\n";
const ANSWER: &str = "{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{\"method\":\"hello\"}}\n";

fn run_answer(sandbox: &Sandbox) -> std::process::Command {
    let mut command = sandbox.command(["run", "--quiet", "--"]);
    command.arg(fixture_program()).arg("answer").stderr(Stdio::null());
    command
}

#[test]
fn sockets() {
    let sandbox = Sandbox::new();
    let (stdin, their_stdin) = UnixStream::pair().unwrap();
    let (stdout, their_stdout) = UnixStream::pair().unwrap();
    let mut command = run_answer(&sandbox);
    command.stdin(Stdio::from(OwnedFd::from(their_stdin))).stdout(Stdio::from(OwnedFd::from(their_stdout)));
    let child = command.spawn().unwrap();
    drop(command);
    let mut lines = BufReader::new(stdout);
    for _ in 0..3 {
        (&stdin).write_all(REQUEST).unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, ANSWER);
    }
    // Many large messages: a socket takes part of a write, and gives part of a read.
    let big = format!("{{\"id\":1,\"method\":\"hello\",\"pad\":\"{}\"}}\n", "x".repeat(1 << 20));
    let writer = std::thread::spawn(move || {
        for _ in 0..8 {
            (&stdin).write_all(big.as_bytes()).unwrap();
        }
        stdin
    });
    for _ in 0..8 {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, ANSWER);
    }
    drop(writer.join().unwrap());
    assert!(wait(child).success());
}

#[test]
fn plain_files() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("in"), REQUEST.repeat(500)).unwrap();
    let mut command = run_answer(&sandbox);
    command
        .stdin(std::fs::File::open(sandbox.path("in")).unwrap())
        .stdout(std::fs::File::create(sandbox.path("out")).unwrap());
    assert!(wait(command.spawn().unwrap()).success());
    assert_eq!(std::fs::read_to_string(sandbox.path("out")).unwrap(), ANSWER.repeat(500));
}

#[test]
fn a_log_file_on_stderr_is_appended_to() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("log"), "before\n").unwrap();
    let mut command = sandbox.command(["run", "--", "sh", "-c", "echo from the server >&2; exit 3"]);
    let log = std::fs::OpenOptions::new().append(true).open(sandbox.path("log")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    assert_eq!(wait(command.spawn().unwrap()).code(), Some(3));
    let log = std::fs::read_to_string(sandbox.path("log")).unwrap();
    assert!(log.starts_with("before\nmcp-proxy ") && log.contains("\nfrom the server\n"), "{log}");
}

#[test]
fn a_socket_on_stderr_gets_what_the_server_says() {
    let sandbox = Sandbox::new();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut command = sandbox.command(["run", "--quiet", "--", "sh", "-c", "echo from the server >&2"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(OwnedFd::from(theirs)));
    let child = command.spawn().unwrap();
    drop(command);
    let mut said = String::new();
    ours.read_to_string(&mut said).unwrap();
    assert_eq!(said, "from the server\n");
    assert!(wait(child).success());
}

#[test]
fn the_null_device() {
    let sandbox = Sandbox::new();
    let mut command = run_answer(&sandbox);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    assert!(wait(command.spawn().unwrap()).success());
}

#[test]
fn a_terminal() {
    let sandbox = Sandbox::new();
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    let mut raw = rustix::termios::tcgetattr(&theirs).unwrap();
    raw.local_modes.remove(rustix::termios::LocalModes::ECHO);
    raw.output_modes.remove(rustix::termios::OutputModes::OPOST);
    rustix::termios::tcsetattr(&theirs, rustix::termios::OptionalActions::Now, &raw).unwrap();
    let mut command = run_answer(&sandbox);
    command.stdin(theirs.try_clone().unwrap()).stdout(theirs);
    let child = command.spawn().unwrap();
    drop(command);
    let mut terminal = std::fs::File::from(ours);
    // A terminal gives one line at a time, however many were typed.
    terminal.write_all(&REQUEST.repeat(5)).unwrap();
    let mut got = vec![0; ANSWER.len() * 5];
    terminal.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), ANSWER.repeat(5));
    terminal.write_all(b"\x04").unwrap();
    assert!(wait(child).success());
}

#[test]
fn both_directions_at_once_without_a_deadlock() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run_script(&["--quiet"], "cat");
    let line = format!("{{\"id\":1,\"pad\":\"{}\"}}\n", "x".repeat(4000));
    let writer = proxy.send_from_behind(line.repeat(10_000).into_bytes());
    for _ in 0..10_000 {
        assert_eq!(proxy.line().len(), line.len());
    }
    proxy.put_back(writer.join().unwrap());
    assert!(proxy.end().0.success());
}
