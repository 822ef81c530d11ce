//! The commands as people meet them.

use crate::kit::{Sandbox, fixture_program};

/// Replaces what differs between runs.
pub fn snapshot_settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[id]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[time]");
    settings.add_filter(r"\d+(\.\d+)?(µs|ms|s)\b", "[took]");
    settings.add_filter(r"/[^ ]*/examples/mcp-fixture", "mcp-fixture");
    settings
}

#[test]
fn demo_tells_the_whole_story() {
    let sandbox = Sandbox::new();
    for args in [&["demo", "--plain"][..], &["demo"]] {
        let shown = sandbox.stdout(args);
        snapshot_settings().bind(|| insta::assert_snapshot!("demo", shown));
    }
    assert!(sandbox.segments().is_empty(), "the demo leaves nothing behind");
}

#[test]
fn help() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!("help", sandbox.stdout(["--help"]));
    insta::assert_snapshot!("help_proxy", sandbox.stdout(["proxy", "--help"]));
    insta::assert_snapshot!("help_run", sandbox.stdout(["run", "--help"]));
    insta::assert_snapshot!("help_serve", sandbox.stdout(["serve", "--help"]));
    insta::assert_snapshot!("help_config", sandbox.stdout(["config", "show", "--help"]));
    insta::assert_snapshot!("help_sessions", sandbox.stdout(["sessions", "--help"]));
    insta::assert_snapshot!("help_search", sandbox.stdout(["sessions", "search", "--help"]));
    insta::assert_snapshot!("help_replay", sandbox.stdout(["replay", "--help"]));
    insta::assert_snapshot!("help_mock", sandbox.stdout(["mock", "--help"]));
}

/// Hints send people to these, and an installed program has no files beside it.
#[test]
fn pages_are_in_the_program() {
    let sandbox = Sandbox::new();
    let docs = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    for (topic, file) in [
        ("configuration", "config.md"),
        ("errors", "errors.md"),
        ("operations", "operations.md"),
        ("rules", "policy.md"),
    ] {
        let page = std::fs::read_to_string(docs.join(file)).unwrap();
        assert_eq!(sandbox.stdout(["help", topic]).trim(), page.trim(), "{topic}");
    }
    assert!(sandbox.stdout(["help", "filter"]).contains("tool:write_*"));
    std::fs::write(sandbox.path("wrong.toml"), "[policy]\nrules = 1\n").unwrap();
    let wrong = sandbox.output(["policy", "check", "wrong.toml"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("hint: `mcp-proxy help rules` explains"), "{wrong:?}");
    assert!(!sandbox.stdout(["man"]).contains("docs/"), "help names no files");
}

/// A short name could be the beginning of an id, and sessions are removed by it.
#[test]
fn a_name_that_could_be_an_id_means_neither() {
    let sandbox = Sandbox::new();
    drop(sandbox.run(&["--quiet"], &["answer"]).end());
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    drop(sandbox.run(&["--quiet", "--name", &id[..1]], &["answer"]).end());
    let refused = sandbox.output(["sessions", "rm", &id[..1]]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("fits several sessions"), "{refused:?}");
    assert_eq!(sandbox.segments().len(), 2);
    sandbox.stdout(["sessions", "rm", &id]);
    sandbox.stdout(["sessions", "rm", &id[..1]]);
    assert!(sandbox.segments().is_empty());
}

/// Reading takes the newest where several could be meant. Removing does not.
#[test]
fn the_newest_session_is_read_unless_another_is_named() {
    let sandbox = Sandbox::new();
    let fixture = fixture_program();
    let fixture = fixture.to_str().unwrap();
    for args in [&["inspect"][..], &["export"], &["replay", "--", fixture, "answer"], &["inspect", "last"]] {
        let none = sandbox.output(args);
        assert_eq!(none.status.code(), Some(2), "{none:?}");
        assert!(String::from_utf8_lossy(&none.stderr).contains("no session is recorded yet"), "{none:?}");
    }
    for method in ["first", "second"] {
        let mut proxy = sandbox.run(&["--quiet", "--name", "twice"], &["answer"]);
        proxy.ask(1, method);
        drop(proxy.end());
    }
    let newest = sandbox.stdout(["inspect"]);
    assert!(newest.contains("→ second id=1") && !newest.contains("first"), "{newest}");
    assert_eq!(sandbox.stdout(["inspect", "last"]), newest);
    assert!(sandbox.stdout(["sessions", "show"]).contains("twice"));
    for args in [&["export"][..], &["export", "last"]] {
        assert!(sandbox.stdout(args).contains("\"second\""));
    }
    let named = sandbox.output(["inspect", "twice"]);
    assert_eq!(String::from_utf8_lossy(&named.stdout), newest);
    let said = String::from_utf8_lossy(&named.stderr);
    assert!(said.contains("`twice` fits several sessions; this is the newest of that name, "), "{said}");
    assert_eq!(sandbox.output(["sessions", "rm", "twice"]).status.code(), Some(2));
    assert_eq!(sandbox.output(["sessions", "rm", "last"]).status.code(), Some(2));
    let replayed = sandbox.stdout(["replay", "-v", "--no-handshake", "--", fixture, "answer"]);
    assert!(replayed.contains("second id=1") && replayed.contains("1 same"), "{replayed}");
}

#[test]
fn inspect_prints_a_line_a_message() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--name", "fix\u{202e}ture", "--note", "target=a test"], &["answer"]);
    proxy.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"\x1b[2Jread\\u001b_file\",\"big\":1.50e+3}}\n");
    proxy.send(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"read\\u001b_file\",\"big\":1.50e+3}}\n");
    // Only the second is JSON, and answered.
    assert_eq!(proxy.json()["id"], 2);
    proxy.request(3, "exit/7");
    assert_eq!(proxy.json()["error"]["code"], 5030);
    let (status, errors) = proxy.end();
    assert_eq!(status.code(), Some(7), "{errors}");
    assert!(errors.contains("error: the server ended with a call unanswered (exit code 7)"), "{errors}");
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    let shown = sandbox.stdout(["inspect", &id[..6]]);
    snapshot_settings().bind(|| insta::assert_snapshot!("inspect", shown));
    let shown = sandbox.stdout(["inspect", "-v", &id]);
    assert!(!shown.contains('\x1b'), "no escape sequence of a peer reaches the terminal");
    snapshot_settings().bind(|| insta::assert_snapshot!("inspect_verbose", shown));
}

#[test]
fn session_files_have_the_agreed_shape() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.command([
        "proxy",
        "--transport",
        "stdio",
        "--session-file",
        "s.json",
        "--output-format",
        "json",
        "--listen-port",
        "8888",
        "--intercept",
        "--note",
        "k=v",
        "--target-command",
    ]);
    proxy.arg(format!("'{}' \"answer\"", fixture_program().display()));
    let mut proxy = crate::kit::Running::start(proxy);
    proxy.ask(1, "hello");
    proxy.send(b"not json\n");
    assert!(proxy.end().0.success());
    let text = std::fs::read_to_string(sandbox.path("s.json")).unwrap();
    snapshot_settings().bind(|| insta::assert_snapshot!("session_file", text));
    crate::schema::check(&sandbox.path("s.json"));
    let shown = sandbox.stdout(["inspect", "--session-file", "s.json"]);
    assert!(shown.contains("#003 → bytes \"not json\""), "{shown}");
}

#[test]
fn nothing_is_kept_without_recording_but_the_session_file() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--no-record", "--session-file", "s.json"], &["answer"]);
    proxy.ask(1, "hello");
    assert!(proxy.end().0.success());
    assert!(sandbox.segments().is_empty());
    let names = |dir: std::path::PathBuf| -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    let files: Vec<String> = names(sandbox.path("")).into_iter().filter(|name| name != ".local").collect();
    assert_eq!(files, ["s.json"]);
    // Only where it could be found while it ran.
    let root = sandbox.state().root().to_owned();
    assert_eq!((names(root.clone()), names(root.join("run"))), (vec!["run".to_owned()], vec![]));
    assert!(sandbox.stdout(["inspect", "s.json"]).contains("#002 ← hello id=1"));
}

#[test]
fn sessions_are_noted_shown_and_removed() {
    let sandbox = Sandbox::new();
    assert!(sandbox.stdout(["sessions", "list"]).contains("no sessions are recorded yet"));
    let mut proxy = sandbox.run(&["--name", "mine"], &["answer"]);
    proxy.ask(1, "hello");
    let (_, errors) = proxy.end();
    assert!(errors.contains("recording, verbatim and readable by you only"), "{errors}");
    let id = errors.strip_prefix("mcp-proxy ").unwrap().split(':').next().unwrap();
    let hints = format!("look with `mcp-proxy inspect {id}`, watch with `mcp-proxy attach {id}`\n");
    assert!(errors.contains(&hints), "{errors}");
    sandbox.stdout(["sessions", "note", "mine", "verdict=fine", "by=me"]);
    let shown = sandbox.stdout(["sessions", "show", "mine"]);
    assert!(shown.contains("verdict = fine") && shown.contains("by = me"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&sandbox.stdout(["sessions", "list", "--json"])).unwrap();
    assert_eq!(
        (&json["messages"], &json["metadata"]["by"], &json["state"]),
        (&2.into(), &"me".into(), &"ended".into())
    );
    sandbox.stdout(["sessions", "rm", "mine"]);
    assert!(sandbox.segments().is_empty());
    assert_eq!(sandbox.output(["sessions", "show", "mine"]).status.code(), Some(2));
}

#[test]
fn errors_say_what_to_do() {
    let sandbox = Sandbox::new();
    let mut said = String::new();
    for args in [
        &["run", "--", "no-such-program-anywhere"][..],
        &["run", "--", "/etc/passwd"],
        &["run"],
        &["proxy", "--transport", "stdio"],
        &["proxy", "--transport", "stdio", "--target-command", "unbalanced 'quote"],
        &["proxy", "--transport", "stdio", "--target-command", ""],
        &["proxy", "--transport", "sse"],
        &["proxy", "--transport", "streamable-http", "--target-command", "true"],
        &["proxy", "--transport", "sse", "--target-url", "ftp://example.com/sse"],
        &["proxy", "--transport", "sse", "--target-url", "http://user:secret@example.com/sse"],
        &["proxy", "--transport", "sse", "--target-url", "http://127.0.0.1:1/sse", "--listen", "0.0.0.0:0"],
        &["proxy", "--transport", "sse", "--target-url", "http://127.0.0.1:1/sse", "--header", "X-Key:"],
        &["run", "--url", "http://127.0.0.1:1/mcp", "--header", "Content-Length: 5"],
        &["run", "--url", "https://127.0.0.1:1/mcp", "--ca-file", "no-such-file"],
        &["proxy", "--transport", "stdio", "--target-url", "http://127.0.0.1:1"],
        &["run", "--env", "novalue", "--", "true"],
        &["run", "--no-record", "--evidence", "strict", "--", "true"],
        &["inspect", "no-such-file.json"],
        &["inspect", "abcdef"],
        &["sessions", "rm", "abcdef"],
        &["insepct"],
    ] {
        let output = sandbox.output(args);
        assert!(output.stdout.is_empty(), "errors do not go to standard output");
        let errors = String::from_utf8_lossy(&output.stderr);
        let errors: String = errors
            .lines()
            .filter(|line| !line.contains(": recording, verbatim"))
            .map(|line| format!("{line}\n"))
            .collect();
        said.push_str(&format!(
            "$ mcp-proxy {}\n{errors}exit {}\n\n",
            args.join(" "),
            output.status.code().unwrap_or(-1)
        ));
    }
    snapshot_settings().bind(|| insta::assert_snapshot!("errors", said));
}

#[test]
fn last_words_are_quoted_when_a_start_fails() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["last-words", "4"]);
    proxy.request(1, "initialize");
    let rest = proxy.rest();
    let (status, errors) = proxy.end();
    assert_eq!(status.code(), Some(4));
    assert!(
        errors.contains("error: the server ended")
            && errors.contains("its last words:\n  Error: TOKEN is required\n  \u{241b}[31mgoodbye"),
        "{errors}"
    );
    // Whether the request got there before the end or not, the client is not left waiting.
    assert!(rest.len() <= 1);
}

#[test]
fn the_servers_own_code_is_the_proxys() {
    let sandbox = Sandbox::new();
    for code in ["0", "1", "42"] {
        let output = sandbox.output(["run", "--quiet", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(output.status.code().unwrap().to_string(), code);
    }
    assert_eq!(sandbox.output(["run", "--quiet", "--", "sh", "-c", "kill -9 $$"]).status.code(), Some(137));
}

#[test]
fn the_servers_arguments_and_environment_are_exact() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["run", "--quiet", "--env", "ADDED=a b=c", "--", "sh", "-c", r#"for a in "$@"; do printf '[%s]' "$a" >&2; done; printf '{%s}{%s}' "$ADDED" "$KEPT" >&2; ls /proc/self/fd | wc -l >&2"#, "sh", "two words", "", "--help", "*", "$HOME"]);
    let output = command.env("KEPT", "kept").stdin(std::process::Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    // Three descriptors, and the one by which they are listed.
    assert!(errors.contains("[two words][][--help][*][$HOME]{a b=c}{kept}4"), "{errors}");
}

#[test]
fn completions_and_the_manual_are_there() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(sandbox.stdout(["completions", shell]).contains("mcp-proxy"));
    }
    let manual = sandbox.stdout(["man"]);
    assert!(manual.contains(".TH mcp-proxy") && manual.contains("target\\-command"));
}

#[test]
fn doctor_finds_a_healthy_home_healthy_and_a_broken_one_broken() {
    let sandbox = Sandbox::new();
    let shown = sandbox.stdout(["doctor"]);
    assert!(!shown.contains("FAIL"), "{shown}");
    // Whether the port is free and how many certificates there are is the machine's business.
    for check in ["store", "disk", "sessions", "guard", "port", "certificates", "program"] {
        let is_check = |line: &&str| line.split_ascii_whitespace().nth(1) == Some(check);
        assert_eq!(shown.lines().filter(is_check).count(), 1, "{check}: {shown}");
    }
    let broken = Sandbox::new();
    std::fs::write(broken.path(".local"), "in the way").unwrap();
    let output = broken.output(["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("FAIL  store"));
}

#[test]
fn doctor_notices_a_system_without_certificates() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("none.pem"), "").unwrap();
    let mut doctor = sandbox.command(["doctor"]);
    let output = doctor.env("SSL_CERT_FILE", sandbox.path("none.pem")).env_remove("SSL_CERT_DIR").output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("warn  certificates") && shown.contains("--ca-file"), "{shown}");
}

#[test]
fn output_into_a_closed_pipe_is_no_error() {
    let sandbox = Sandbox::new();
    let script = format!("{} man | head -1", crate::kit::proxy_program().display());
    let output = std::process::Command::new("bash")
        .args(["-c", &format!("set -o pipefail; {script}")])
        .env("HOME", sandbox.path(""))
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
