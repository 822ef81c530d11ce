//! Sessions in other formats, as the program writes them.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::kit::Sandbox;
use crate::pty_kit::{Ground, Terminal};

/// A session file of the project's own; its times and ids are always the same.
pub fn fixture_session(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    dir.join(format!("{name}.json")).to_str().expect("a path").to_owned()
}

pub fn exported(session: &str, format: &str, flags: &[&str]) -> String {
    let session = fixture_session(session);
    let mut args = vec!["export", &session, "--output-format", format];
    args.extend(flags);
    Sandbox::new().stdout(args)
}

fn pretty(json: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(&regex_escape(env!("CARGO_PKG_VERSION")), "[version]");
    settings
}

fn regex_escape(text: &str) -> String {
    text.replace('.', r"\.")
}

#[test]
fn formats_have_the_agreed_shape() {
    settings().bind(|| {
        for session in ["stdio", "http"] {
            insta::assert_snapshot!(format!("export_{session}_ndjson"), exported(session, "ndjson", &[]));
            insta::assert_snapshot!(format!("export_{session}_md"), exported(session, "md", &[]));
            insta::assert_snapshot!(format!("export_{session}_curl"), exported(session, "curl", &[]));
            insta::assert_snapshot!(format!("export_{session}_har"), pretty(&exported(session, "har", &[])));
            let page = exported(session, "html", &[]);
            insta::assert_snapshot!(format!("export_{session}_html_data"), page_data(&page));
        }
        insta::assert_snapshot!("help_export", Sandbox::new().stdout(["export", "--help"]));
    });
}

/// What a page holds of the session.
pub fn page_data(page: &str) -> &str {
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    data.split_once("</script>").unwrap().0
}

/// Nothing in a page comes from elsewhere, and only its own script may run.
#[test]
fn a_page_is_whole_in_itself() {
    let page = exported("stdio", "html", &[]);
    let (_, policy) = page.split_once("Content-Security-Policy\" content=\"").unwrap();
    let (policy, _) = policy.split_once('"').unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for outside in ["src=", "http://", "https://", "url(", "@import", "fetch(", "XMLHttpRequest", "WebSocket"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("href=").count(), page.matches("href=\"data:,\"").count());
    let data: Value = serde_json::from_str(page_data(&page)).unwrap();
    assert_eq!(data["entries"].as_array().unwrap().len(), 21);
}

#[test]
fn a_session_file_is_written_as_it_was() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--session-file", "s.json", "--note", "token=abc"], &["answer"]);
    proxy.ask(1, "hello");
    proxy.send(b"not json, password=hunter2\n");
    assert!(proxy.end().0.success());
    let kept = std::fs::read_to_string(sandbox.path("s.json")).unwrap();
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    assert_eq!(sandbox.stdout(["export", &id[..8], "--no-redact"]), kept);
    let evidence = sandbox.output(["export", "--session-file", "s.json", "-o", "kept.json"]);
    assert!(evidence.status.success(), "{evidence:?}");
    let said = String::from_utf8_lossy(&evidence.stderr);
    assert!(said.contains("verbatim: secrets in it are not masked"), "{said}");
    assert_eq!(std::fs::read_to_string(sandbox.path("kept.json")).unwrap(), kept);
    // With HTTP exchanges, and read back.
    let once = exported("http", "json", &["--no-redact"]);
    std::fs::write(sandbox.path("http.json"), &once).unwrap();
    assert_eq!(sandbox.stdout(["export", "http.json", "--no-redact"]), once);
    assert!(once.contains("k3y-in-a-header-456"), "it is the evidence");
    let session = mcp_store::Session::open(&sandbox.path("http.json"), None).unwrap();
    mcp_store::session_file::write(&sandbox.path("again.json"), &session).unwrap();
    assert_eq!(std::fs::read_to_string(sandbox.path("again.json")).unwrap(), once);
}

#[test]
fn secrets_are_masked_unless_told_otherwise() {
    let secrets =
        ["p4ssw0rd-in-url", "k3y-in-the-query-123", "k3y-in-a-header-456", "t0k3n-in-arguments-789", "s-9f8e7d6c5b4a"];
    for format in ["json", "ndjson", "har", "md", "html", "curl"] {
        let masked = exported("http", format, &[]);
        let left: Vec<_> = secrets.iter().filter(|secret| masked.contains(**secret)).collect();
        assert!(left.is_empty(), "{format}: {left:?}");
        assert!(exported("http", format, &["--no-redact"]).contains("k3y-in-the-query-123"), "{format}");
    }
    let sandbox = Sandbox::new();
    let http = fixture_session("http");
    let said = |args: &[&str]| {
        let output = sandbox.output([&["export", &http, "-o", "out", "--force"], args].concat());
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        said(&["--output-format", "har"]),
        "mcp-proxy: wrote 12 messages as har to out; 16 secrets were masked\n"
    );
    assert!(said(&["--output-format", "json"]).contains("16 secrets were masked"));
    assert!(said(&["--output-format", "md", "--no-redact"]).contains("nothing was masked"));
}

#[test]
fn paths_are_masked_on_demand() {
    let masked = exported("stdio", "ndjson", &["--redact", "$.params.arguments.path", "--redact", "$..city"]);
    assert!(masked.contains(r#""arguments":{"path":"***"}"#) && masked.contains(r#"{"city":"***"}"#), "{masked}");
    let sandbox = Sandbox::new();
    let session = fixture_session("stdio");
    for args in [
        &["export", &session, "--redact", "path", "--output-format", "md"][..],
        &["export", &session, "--redact", "$.x", "-o", "x.json"],
        &["export", &session, "--redact", "$.x", "--no-redact", "--output-format", "md"],
    ] {
        assert_eq!(sandbox.output(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_part_is_chosen_by_filter_number_and_conversation() {
    let sequences = |session: &str, flags: &[&str]| -> Vec<u64> {
        let lines = exported(session, "ndjson", flags);
        let sequence = |line: &str| serde_json::from_str::<Value>(line).unwrap()["sequence"].as_u64().unwrap();
        lines.lines().skip(1).map(sequence).collect()
    };
    assert_eq!(sequences("stdio", &["--filter", "status:err"]), [15, 17]);
    assert_eq!(sequences("stdio", &["--only", "#3,5-7"]), [3, 5, 6, 7]);
    assert_eq!(sequences("stdio", &["--only", "14-17", "--filter", "tool:divide"]), [16, 17]);
    assert_eq!(sequences("http", &["--conversation", "2"]), [11, 12]);
    // Where calls are shown, an answer brings its request along.
    let har: Value = serde_json::from_str(&exported("stdio", "har", &["--filter", "status:err"])).unwrap();
    let messages: Vec<_> = har["log"]["entries"].as_array().unwrap().iter().map(|entry| &entry["_messages"]).collect();
    assert_eq!(messages, [&serde_json::json!([14, 15]), &serde_json::json!([16, 17])]);
    let har: Value = serde_json::from_str(&exported("http", "har", &["--filter", "tool:rain code:-32602"])).unwrap();
    let exchanges: Vec<_> = har["log"]["entries"].as_array().unwrap().iter().map(|entry| &entry["_exchange"]).collect();
    assert_eq!(exchanges, [6]);
    // What was asked for is evidence, also if nothing is wrong with it.
    let report = exported("stdio", "md", &["--only", "6"]);
    assert!(report.contains("### #6 `tools/call [read_note]`: ok after 106 ms"), "{report}");
    assert!(report.contains("| messages | 2 of 21"), "{report}");
}

#[test]
fn the_name_of_the_file_tells_the_format() {
    let sandbox = Sandbox::new();
    let session = fixture_session("stdio");
    for (file, beginning) in [
        ("a.har", "{\"log\":"),
        ("a.md", "# MCP session"),
        ("a.html", "<!doctype html>"),
        ("a.sh", "#!/bin/sh"),
        ("a.jsonl", "{\"id\":"),
        ("a.json", "{\n  \"id\":"),
        ("b.JSON", "{\n  \"id\":"),
    ] {
        assert!(sandbox.output(["export", &session, "-o", file]).status.success());
        let text = std::fs::read_to_string(sandbox.path(file)).unwrap();
        assert!(text.starts_with(beginning), "{file}: {text:.40}");
    }
    for file in ["a.txt", "a", "a.json.gz"] {
        let output = sandbox.output(["export", &session, "-o", file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("json|ndjson|har|md|html|curl"), "{errors}");
        assert!(!sandbox.path(file).exists());
    }
}

/// Only a file that is named as a session file is evidence: what a pipe or a terminal shows is masked.
#[test]
fn what_goes_to_a_pipe_or_a_terminal_is_masked() {
    let sandbox = Sandbox::new();
    let http = fixture_session("http");
    let secret = "k3y-in-a-header-456";
    for flags in [&[][..], &["--output-format", "json"], &["-o", "/dev/stdout"]] {
        let args = [&["export", http.as_str()], flags].concat();
        let masked = sandbox.stdout(&args);
        assert!(masked.contains("***") && !masked.contains(secret), "{flags:?}");
        assert!(sandbox.stdout(args.iter().chain(&["--no-redact"])).contains(secret), "{flags:?}");
    }
    let fifo = sandbox.path("pipe.json");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read_to_string(fifo).unwrap()
    });
    assert!(sandbox.output(["export", &http, "-o", "pipe.json"]).status.success());
    assert!(!reader.join().unwrap().contains(secret));
    let terminal = Terminal::open();
    let program = terminal.start(&sandbox, Ground::InFront, ["export", &http]);
    assert_eq!(program.code(), Some(0));
    crate::kit::until("the count is shown", || terminal.shown().contains("were masked"));
    let shown = terminal.shown();
    assert!(shown.contains("***") && !shown.contains(secret), "{shown}");
}

#[test]
fn a_file_that_exists_is_replaced_only_by_force() {
    let sandbox = Sandbox::new();
    let session = fixture_session("stdio");
    std::fs::write(sandbox.path("kept.md"), "mine").unwrap();
    symlink("nowhere", sandbox.path("dangling.md")).unwrap();
    for file in ["kept.md", "dangling.md"] {
        let refused = sandbox.output(["export", &session, "-o", file]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let errors = String::from_utf8(refused.stderr).unwrap();
        assert!(errors.contains("exists already") && errors.contains("hint: --force replaces it"), "{errors}");
    }
    assert_eq!(std::fs::read_to_string(sandbox.path("kept.md")).unwrap(), "mine");
    assert!(sandbox.output(["export", &session, "-o", "kept.md", "--force"]).status.success());
    assert!(std::fs::read_to_string(sandbox.path("kept.md")).unwrap().starts_with("# MCP session"));
}

#[test]
fn files_are_private_and_whole_or_not_there() {
    let sandbox = Sandbox::new();
    let session = fixture_session("stdio");
    let files = || -> Vec<String> {
        let names = std::fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    std::fs::write(sandbox.path("elsewhere"), "somebody's").unwrap();
    symlink("elsewhere", sandbox.path("out.md")).unwrap();
    assert!(sandbox.output(["export", &session, "-o", "out.md", "--force"]).status.success());
    assert_eq!(std::fs::read_to_string(sandbox.path("elsewhere")).unwrap(), "somebody's", "a link is not followed");
    let mode = std::fs::symlink_metadata(sandbox.path("out.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let before = files();
    std::fs::create_dir(sandbox.path("dir")).unwrap();
    for out in ["dir", "no/such/dir/out.md"] {
        let output = sandbox.output(["export", &session, "-o", out, "--output-format", "md"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("hint: give --output"), "{output:?}");
    }
    // What is no session, or has nothing in it that is meant, leaves what was there before.
    std::fs::write(sandbox.path("broken.json"), "{").unwrap();
    assert_eq!(sandbox.output(["export", "broken.json", "-o", "out.md", "--force"]).status.code(), Some(2));
    let none = sandbox.output(["export", &session, "-o", "new.md", "--filter", "tool:nothing"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("none of the 21 messages"), "{none:?}");
    let bad = sandbox.output(["export", &session, "-o", "new.md", "--filter", "tol:x"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("^^^ did you mean `tool`?"), "{bad:?}");
    assert_eq!(files(), [&before[..], &["broken.json".into(), "dir".into()]].concat().tap_sorted());
}

trait Sorted {
    fn tap_sorted(self) -> Self;
}

impl Sorted for Vec<String> {
    fn tap_sorted(mut self) -> Self {
        self.sort();
        self
    }
}

#[test]
fn standard_output_is_the_default_and_may_close_early() {
    let sandbox = Sandbox::new();
    let session = fixture_session("stdio");
    assert_eq!(sandbox.stdout(["export", &session, "-o", "-"]), sandbox.stdout(["export", &session]));
    assert!(sandbox.stdout(["export", &session, "-o", "/dev/stdout"]).starts_with("{\n  \"id\""));
    let script = format!("set -o pipefail; {} export {session} | head -1", crate::kit::proxy_program().display());
    let output =
        std::process::Command::new("bash").args(["-c", &script]).env("HOME", sandbox.path("")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let full = sandbox.output(["export", &session, "-o", "/dev/full"]);
    assert_eq!(full.status.code(), Some(3), "{full:?}");
}

/// A session of `messages` calls and answers with `bytes` of text in each.
fn long_session(path: &Path, messages: u64, bytes: usize) {
    use mcp_store::{Direction, End, RecordHead, RecordKind, SegmentWriter, SessionHeader, Transport};
    let header = SessionHeader {
        server_command: Some("server".into()),
        ..SessionHeader::begun(
            "7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a".parse().unwrap(),
            1_800_000_000_000_000_000,
            Transport::Stdio,
        )
    };
    let mut writer = SegmentWriter::create(path, &header).unwrap();
    let text = "x ".repeat(bytes / 2);
    for sequence in 1..=messages {
        let is_answer = sequence % 2 == 0;
        let (direction, message) = match is_answer {
            false => (
                Direction::ClientToServer,
                format!(
                    r#"{{"jsonrpc":"2.0","id":{sequence},"method":"tools/call","params":{{"name":"t","arguments":{{"text":"{text}"}}}}}}"#
                ),
            ),
            true => (
                Direction::ServerToClient,
                format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"text":"{text}"}}}}"#, sequence - 1),
            ),
        };
        let head = RecordHead {
            kind: RecordKind::Message,
            direction,
            flags: 0,
            conversation: 0,
            sequence,
            time_ns: header.started_ns + sequence * 1_000_000,
            correlated: if is_answer { sequence - 1 } else { 0 },
        };
        writer.push(&head, &message.into_bytes().into());
        writer.commit().unwrap();
    }
    writer.finish(header.started_ns + messages * 1_000_000, &End::default()).unwrap();
}

/// What stands there after Ctrl-C is whole in itself, and says that it is a part.
#[test]
fn an_interrupted_export_is_a_valid_part() {
    use std::io::Read;
    let sandbox = Sandbox::new();
    long_session(&sandbox.path("s.mcpseg"), 4_000, 1_000);
    let mut command = sandbox.command(["export", "s.mcpseg", "--output-format", "har"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    // Once it writes it listens; it writes no further than the pipe is large.
    let mut har = vec![0; 16];
    stdout.read_exact(&mut har).unwrap();
    let pid = child.id();
    let before = wakes(pid);
    crate::kit::signal(pid, rustix::process::Signal::INT);
    crate::kit::until("it has heard", || wakes(pid) > before);
    stdout.read_to_end(&mut har).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(crate::kit::wait(child).code(), Some(130), "{said}");
    assert!(said.contains("error: interrupted; what was written is whole"), "{said}");
    let har: Value = serde_json::from_slice(&har).unwrap();
    assert!(har["log"]["entries"].as_array().unwrap().len() < 2_000);
    assert!(har["log"]["comment"].as_str().unwrap().contains("This is a part"), "{}", har["log"]["comment"]);
}

/// How often the thread that waits for Ctrl-C has gone back to waiting.
fn wakes(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let listens = |task: &PathBuf| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "ctrl-c");
    let task = tasks.map(|task| task.unwrap().path()).find(listens).expect("it listens");
    let status = std::fs::read_to_string(task.join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn pages_and_reports_of_long_sessions_say_what_is_left_out() {
    let sandbox = Sandbox::new();
    long_session(&sandbox.path("s.mcpseg"), 21_000, 40);
    let output = sandbox.output(["export", "s.mcpseg", "-o", "s.html"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("left out: 1000 messages"), "{output:?}");
    let page = std::fs::read_to_string(sandbox.path("s.html")).unwrap();
    let data: Value = serde_json::from_str(page_data(&page)).unwrap();
    assert_eq!(data["entries"].as_array().unwrap().len(), 20_000);
    assert!(data["notes"].to_string().contains("Left out: 1000 messages"), "{}", data["notes"]);
    let report = sandbox.stdout(["export", "s.mcpseg", "--output-format", "md"]);
    assert!(report.contains("20500 messages are left out"), "{report:.2000}");
}
