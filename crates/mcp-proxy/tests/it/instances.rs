//! Which instances there are, and which one is meant: what is told of them without their help.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use mcp_control::Instances;
use mcp_control::instances::{Description, Registration};

use crate::commands::snapshot_settings;
use crate::http_kit::{Origin, answer, bare, call, post, result};
use crate::kit::{Sandbox, until};
use crate::pty_kit::{Ground, Terminal};

fn description(id: &str, name: Option<&str>) -> Description {
    let (pid, pid_started) = Description::this_process();
    Description {
        id: id.parse().unwrap(),
        pid,
        pid_started,
        version: "0.0.0".into(),
        name: name.map(str::to_owned),
        server_command: Some("server \u{1b}[31m--flag".into()),
        server_url: None,
        client_transport: "stdio".into(),
        server_transport: "streamable_http".into(),
        started_at: jiff::Timestamp::now(),
    }
}

/// Instances that are there and never answer.
fn stuck(sandbox: &Sandbox) -> Vec<(Registration, UnixListener)> {
    let instances = Instances::below(sandbox.state().root());
    let ids = [("7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a", None), ("7f3b9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a", Some("files"))];
    ids.map(|(id, name)| instances.register(&description(id, name)).unwrap()).into()
}

#[test]
fn where_nothing_runs_that_is_said() {
    let sandbox = Sandbox::new();
    assert!(sandbox.stdout(["ps"]).contains("no instance is running; start one with `mcp-proxy run"));
    assert_eq!(sandbox.stdout(["ps", "--json"]), "");
    for args in [&["tail"][..], &["held", "files"], &["forward", "3"], &["hold", "on"], &["break", "add", "tool:x"]] {
        let output = sandbox.output(args);
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("error: no instance is running\n\nhint: start one with"), "{errors}");
    }
}

#[test]
fn one_that_does_not_answer_is_shown_as_such() {
    let sandbox = Sandbox::new();
    let _stuck = stuck(&sandbox);
    let shown = sandbox.stdout(["ps"]);
    assert_eq!(shown.matches("does not answer").count(), 2, "{shown}");
    assert!(shown.contains("stdio→streamable_http") && shown.contains("server ␛[31m--flag"), "{shown}");
    let json = sandbox.stdout(["ps", "--json"]);
    let second: serde_json::Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&second["name"], &second["answers"]), (&"files".into(), &false.into()), "{json}");
    assert!(second["mode"].is_null() && second["pid"] == std::process::id(), "{json}");
}

#[test]
fn ps_fits_the_terminal() {
    let sandbox = Sandbox::new();
    let _stuck = stuck(&sandbox);
    for columns in [60, 80, 200] {
        let terminal = Terminal::open();
        terminal.resize(columns, 24);
        assert_eq!(terminal.start(&sandbox, Ground::InFront, ["ps"]).code(), Some(0));
        until("the table is drawn", || terminal.shown().lines().count() >= 3);
        let shown = terminal.shown();
        assert!(shown.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {shown}");
        let has = |heading: &str| shown.contains(heading);
        let wanted = (columns == 200, columns >= 80, true);
        assert_eq!((has("REVISION"), has("TRANSPORT"), has("does not answer")), wanted, "{columns}: {shown}");
    }
}

#[test]
fn clients_of_a_relay_count_until_their_session_ends() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = proxy.client();
    let counted = || sandbox.shown_instance()["clients"].as_u64().unwrap();
    assert_eq!(counted(), 0);
    for (session, count) in [("s-1", 1), ("s-2", 2)] {
        client.send(&post("/mcp", &[], call(0, "initialize")));
        let head = ["Content-Type: application/json", &format!("Mcp-Session-Id: {session}")];
        origin.call().send(answer("200 OK", &head, result(0)));
        client.response();
        assert_eq!(counted(), count);
    }
    client.send(&bare("DELETE", "/mcp", &["Mcp-Session-Id: s-1"]));
    origin.call().send("HTTP/1.1 204 No Content\r\n\r\n");
    client.response();
    assert_eq!(counted(), 1);
    proxy.end();
}

#[test]
fn errors_name_those_that_could_be_meant() {
    let sandbox = Sandbox::new();
    let _stuck = stuck(&sandbox);
    let mut said = String::new();
    for (args, code) in [
        (&["held"][..], 2),
        (&["held", "7f3"], 2),
        (&["held", "else"], 3),
        (&["held", "--in", "else", "else"], 2),
        (&["forward", "7f3a", "--in", "files", "3"], 2),
        (&["forward", "files"], 2),
        (&["forward", "files", "--all", "3"], 2),
        (&["break", "add", "tol:echo"], 2),
        (&["drop", "3", "--error", ""], 2),
        (&["modify", "3"], 2),
        (&["modify", "3", "--edit", "-"], 2),
        (&["modify", "3", "--set", "params=1"], 2),
        (&["answer", "3"], 2),
        (&["answer", "3", "--result", "{no}"], 2),
        (&["approve", "3", "--edit", "-"], 2),
        (&["approve", "3", "--set", "$.id=1", "--for", "session"], 2),
        (&["approve", "3", "4", "--edit"], 2),
        (&["deny", "3", "--for", "good"], 2),
    ] {
        let output = sandbox.output(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        said.push_str(&format!("$ mcp-proxy {}\n{}\n", args.join(" "), String::from_utf8(output.stderr).unwrap()));
    }
    snapshot_settings().bind(|| insta::assert_snapshot!("instance_errors", said));
}

/// What a killed instance left does not count, and is gone after a look.
#[test]
fn the_dead_are_cleared_away() {
    let sandbox = Sandbox::new();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    let mut left = description("7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a", None);
    (left.pid, left.pid_started) = (pid, Some(1));
    let (registration, listener) = Instances::below(sandbox.state().root()).register(&left).unwrap();
    let socket = registration.socket().to_owned();
    let json = std::fs::read(socket.with_extension("json")).unwrap();
    drop((registration, listener));
    std::fs::write(socket.with_extension("json"), json).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    assert!(sandbox.stdout(["ps"]).contains("no instance is running"));
    assert!(!socket.exists() && !socket.with_extension("json").exists());
}

#[test]
fn a_directory_that_others_can_enter_is_not_used() {
    let sandbox = Sandbox::new();
    let run = sandbox.state().root().join("run");
    std::fs::create_dir_all(&run).unwrap();
    for dir in [run.as_path(), run.parent().unwrap()] {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o770)).unwrap();
    let output = sandbox.output(["ps"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("is not a directory of yours that is closed to others"), "{errors}");
    assert!(errors.contains("hint: give another directory with --state-dir, or `chmod 700 "), "{errors}");
    // One that others share, such as /tmp, is not to be closed.
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let errors = String::from_utf8(sandbox.output(["ps"]).stderr).unwrap();
    assert!(errors.ends_with("hint: give another directory with --state-dir\n"), "{errors}");
}
