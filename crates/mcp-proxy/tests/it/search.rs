//! Finding messages over all recordings, whoever indexed them.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use bytes::Bytes;
use mcp_store::segment::End;
use mcp_store::{Direction, RecordHead, RecordKind, SegmentWriter, SessionHeader, Transport};
use rustix::process::Signal;

use crate::commands::snapshot_settings;
use crate::kit::{Sandbox, children_of, marked_processes, signal, until, wait};

/// A recording of these messages, each the answer to the one before if its number says so.
pub fn record(sandbox: &Sandbox, started_s: u64, messages: impl IntoIterator<Item = (u64, String)>) -> uuid::Uuid {
    let state = sandbox.state();
    state.prepare().unwrap();
    let header = SessionHeader {
        server_command: Some("files-server".into()),
        ..SessionHeader::begun(uuid::Uuid::new_v4(), started_s * 1_000_000_000, Transport::Stdio)
    };
    let mut writer = SegmentWriter::create(&state.segment(&header.id), &header).unwrap();
    for (index, (correlated, message)) in messages.into_iter().enumerate() {
        let head = RecordHead {
            kind: RecordKind::Message,
            direction: if correlated > 0 { Direction::ServerToClient } else { Direction::ClientToServer },
            flags: 0,
            conversation: 0,
            sequence: index as u64 + 1,
            time_ns: header.started_ns + index as u64,
            correlated,
        };
        writer.push(&head, &Bytes::from(message));
        if index % 100 == 0 {
            writer.commit().unwrap();
        }
    }
    writer.finish(header.started_ns + 1_000_000_000, &End::default()).unwrap();
    header.id
}

fn call(id: u64, tool: &str, text: &str) -> (u64, String) {
    let call = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"text": text}}});
    (0, call.to_string())
}

fn searched(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String, String) {
    let output = sandbox.output([&["sessions", "search"], args].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn messages_are_found_in_every_session_newest_first() {
    let sandbox = Sandbox::new();
    let error =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such path: \u001b[2J/etc/passwd\u202e"}}"#;
    record(
        &sandbox,
        1_000,
        [call(1, "read\u{1b}file", "/etc/passwd"), (1, error.to_owned()), call(2, "write", "other")],
    );
    record(&sandbox, 2_000, [call(1, "search", &format!("{} Passwd {}", "hay ".repeat(60), "hay ".repeat(60)))]);
    let mut shown = String::new();
    for args in [
        &["passwd"][..],
        &["etc", "pass*"],
        &["\"such path\""],
        &["passwd", "--limit", "1"],
        &["passwd", "--filter", "status:err"],
        &["passwd", "--filter", "< code=-32602"],
        &["passwd", "--filter", "tool:search"],
        &["passwd", "--filter", "> server:files* size<200"],
        &["passwd", "--filter", "server:other"],
        &["--filter", "tool:write"],
        &["-32602", "--json"],
        &["nowhere"],
        &["passwd", "--filter", "tol:x"],
        &["+-*/"],
        &[],
    ] {
        let (code, out, errors) = searched(&sandbox, args);
        assert!(!out.contains(['\x1b', '\u{202e}']) && !errors.contains('\x1b') || args.contains(&"--json"), "{out}");
        shown.push_str(&format!("$ search {}\n{out}{errors}= {}\n\n", args.join(" "), code.unwrap()));
    }
    let mut settings = snapshot_settings();
    settings.add_filter(r"(?m)^[0-9a-f]{8} #", "[session] #");
    settings.bind(|| insta::assert_snapshot!("search", shown));
}

#[test]
fn one_session_is_searched_by_itself() {
    let sandbox = Sandbox::new();
    let first = record(&sandbox, 1_000, [call(1, "a", "needle")]);
    record(&sandbox, 2_000, [call(1, "b", "needle")]);
    let (_, out, _) = searched(&sandbox, &["needle", "--session", &first.to_string()[..8]]);
    assert!(out.contains("[a]") && !out.contains("[b]"), "{out}");
    assert_eq!(searched(&sandbox, &["needle", "--session", "zzzz"]).0, Some(2));
}

#[test]
fn a_session_that_is_being_recorded_is_searched_as_far_as_it_is() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    for round in 0..3 {
        proxy.ask(round, &format!("round{round}"));
        // The records of an answer follow it.
        until("it is found", || searched(&sandbox, &[&format!("round{round}")]).1.lines().count() == 2);
    }
    assert!(proxy.end().0.success());
    assert_eq!(searched(&sandbox, &["round*"]).1.lines().count(), 6);
}

#[test]
fn an_index_that_is_damaged_or_gone_is_made_anew() {
    let sandbox = Sandbox::new();
    record(&sandbox, 1_000, (0..500).map(|id| call(id, "tool", &format!("needle{id} in {}", "hay ".repeat(40)))));
    assert_eq!(searched(&sandbox, &["needle499"]).0, Some(0));
    let index = sandbox.state().index();
    let bytes = std::fs::metadata(&index).unwrap().len();
    // Whether the beginning or what is behind it.
    for from in [0, 8192] {
        let mut file = std::fs::OpenOptions::new().write(true).open(&index).unwrap();
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(from)).unwrap();
        file.write_all(&vec![0x55; (bytes - from) as usize]).unwrap();
        drop(file);
        let (code, out, errors) = searched(&sandbox, &["needle499"]);
        assert_eq!((code, out.lines().count()), (Some(0), 1), "{errors}");
        assert!(errors.contains("the index was unusable and is filled anew"), "{errors}");
    }
    std::fs::remove_file(&index).unwrap();
    assert_eq!(searched(&sandbox, &["needle499"]).0, Some(0));
    let output = sandbox.output(["sessions", "reindex"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("indexed 500 messages of 1 sessions"), "{output:?}");
}

#[test]
fn removed_sessions_are_found_no_more() {
    let sandbox = Sandbox::new();
    let gone = record(&sandbox, 1_000, [call(1, "a", "needle secretword")]);
    record(&sandbox, 2_000, [call(1, "b", "needle")]);
    assert_eq!(searched(&sandbox, &["needle"]).1.lines().count(), 2);
    sandbox.stdout(["sessions", "rm", &gone.to_string()]);
    let index = std::fs::read(sandbox.state().index()).unwrap();
    assert!(!index.windows(10).any(|window| window == b"secretword"), "its words are gone with it");
    let (code, out, errors) = searched(&sandbox, &["needle"]);
    assert_eq!((code, out.lines().count()), (Some(0), 1), "{errors}");
    // One that somebody removed by hand, too.
    sandbox.segments().iter().for_each(|segment| std::fs::remove_file(segment).unwrap());
    assert_eq!(searched(&sandbox, &["needle"]).0, Some(1));
}

#[test]
fn indexing_that_is_interrupted_is_gone_on_with() {
    let sandbox = Sandbox::new();
    record(&sandbox, 1_000, (0..60_000).map(|id| call(id, "tool", &format!("needle{id} word{} hay", id % 100))));
    let mut command = sandbox.command(["sessions", "reindex"]);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("it has begun", || sandbox.state().index().exists());
    // From the first look at the catalogue on, it is asked and not killed.
    signal(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("interrupted; the ") && errors.contains("stay indexed"), "{errors}");
    assert_eq!(searched(&sandbox, &["needle59999"]).1.lines().count(), 1);
    assert_eq!(searched(&sandbox, &["needle0"]).1.lines().count(), 1);
}

fn is_indexer(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("\0__index\0"))
}

#[test]
fn a_long_recording_is_indexed_while_it_is_made_and_nothing_is_left_behind() {
    let sandbox = Sandbox::new();
    let mark = format!("MCP_TEST_MARK={}", uuid::Uuid::new_v4());
    let (name, value) = mark.split_once('=').unwrap();
    let mut command = sandbox.command(["run", "--quiet", "--"]);
    command.arg(crate::kit::fixture_program()).arg("answer").env(name, value);
    let mut proxy = crate::kit::Running::start(command);
    let large = "x ".repeat(512 * 1024);
    for id in 0..20 {
        let request =
            serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "ask", "params": [format!("needle{id}"), large]});
        proxy.send(format!("{request}\n").as_bytes());
        assert_eq!(proxy.json()["id"], id);
    }
    // The indexer runs at idle priority, so a busy machine may keep it from its end.
    until("the indexer has begun", || sandbox.state().index().exists());
    for child in children_of(proxy.pid()).into_iter().filter(|&child| is_indexer(child)) {
        signal(child, Signal::KILL);
    }
    until("the indexer is reaped, and only the guard is left", || children_of(proxy.pid()).len() == 1);
    assert!(proxy.end().0.success());
    assert_eq!(marked_processes(&mark), Vec::<u32>::new());
    assert_eq!(searched(&sandbox, &["needle19"]).1.lines().count(), 1);
}

#[test]
fn an_indexer_ends_with_a_killed_proxy() {
    let sandbox = Sandbox::new();
    record(&sandbox, 1_000, (0..60_000).map(|id| call(id, "tool", "hay and more hay")));
    let mut command = sandbox.command(["__index"]);
    command.arg(sandbox.state().root()).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    until("it has begun", || sandbox.state().index().exists());
    // The pipe closes with the proxy, whatever ends it.
    drop(child.stdin.take());
    assert!(wait(child).success());
    assert_eq!(searched(&sandbox, &["more", "--limit", "1"]).0, Some(0));
}

fn list(sandbox: &Sandbox) -> usize {
    sandbox.stdout(["sessions", "list", "--json"]).lines().count()
}

#[test]
fn pruning_removes_what_it_is_told_to_and_nothing_that_runs() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    proxy.ask(1, "hello");
    let ids: Vec<uuid::Uuid> =
        (0..4).map(|day| record(&sandbox, 86_400 * (day + 1), [call(1, "tool", &format!("needle{day}"))])).collect();
    let untold = sandbox.output(["sessions", "prune"]);
    assert_eq!(untold.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&untold.stderr).contains("nothing says what to remove"), "{untold:?}");
    assert_eq!(searched(&sandbox, &["needle*"]).1.lines().count(), 4);
    let dry = sandbox.stdout(["sessions", "prune", "--keep", "3", "--dry-run"]);
    assert_eq!(dry.matches("would remove").count(), 2, "{dry}");
    assert_eq!(list(&sandbox), 5);
    let output = sandbox.output(["sessions", "prune", "--keep", "3"]);
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && errors.contains("removed 2 sessions with") && errors.contains("3 kept"),
        "{errors}"
    );
    assert!(out.contains(&ids[0].to_string()[..8]) && out.contains(&ids[1].to_string()[..8]), "{out}");
    assert_eq!((list(&sandbox), searched(&sandbox, &["needle*"]).1.lines().count()), (3, 2));
    assert!(sandbox.output(["sessions", "prune", "--older-than", "1d", "--keep-bytes", "1"]).status.success());
    assert_eq!(list(&sandbox), 1, "the one that runs stays");
    proxy.ask(2, "still here");
    assert!(proxy.end().0.success());
}

#[test]
fn sessions_go_out_and_come_in_again() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--session-file", "s.json", "--note", "why=test"], &["answer"]);
    proxy.ask(1, "hello");
    proxy.send(b"not \xff json\n");
    proxy.send(b"{ \"id\" : 15, \"method\": \"again\", \"params\": 1.50e3 }\n");
    assert_eq!(proxy.json()["id"], 15);
    assert!(proxy.end().0.success());
    crate::schema::check(&sandbox.path("s.json"));
    let segment: PathBuf = sandbox.segments().pop().unwrap();
    let kept = sandbox.path("kept.mcpseg");
    std::fs::copy(&segment, &kept).unwrap();
    let said = |args: &[&str]| {
        let output = sandbox.output([&["sessions", "import"], args].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, errors) = said(&["s.json"]);
    assert!(code == Some(0) && errors.contains("is recorded already as"), "{errors}");
    for file in ["s.json", "kept.mcpseg"] {
        std::fs::remove_file(&segment).unwrap();
        let (code, errors) = said(&[file]);
        assert!(code == Some(0) && errors.contains("imported ") && errors.contains(": 5 messages"), "{errors}");
        assert!(said(&[file]).1.contains("is recorded already as"));
        assert_eq!(searched(&sandbox, &["again"]).1.lines().count(), 2);
        assert!(sandbox.stdout(["sessions", "list"]).contains("ended"));
        let again = sandbox.path("again.json");
        mcp_store::session_file::write(&again, &mcp_store::Session::open_segment(&segment).unwrap()).unwrap();
        assert_eq!(std::fs::read(again).unwrap(), std::fs::read(sandbox.path("s.json")).unwrap(), "{file}");
    }
    let id = segment.file_stem().unwrap().to_string_lossy().into_owned();
    assert!(sandbox.output(["export", &id, "--no-redact", "-o", "lines.jsonl"]).status.success());
    std::fs::remove_file(&segment).unwrap();
    let (code, errors) = said(&["lines.jsonl"]);
    assert!(code == Some(0) && errors.contains(": 5 messages"), "{errors}");
    assert_eq!(searched(&sandbox, &["again"]).1.lines().count(), 2);
    std::fs::write(sandbox.path("other"), "{}").unwrap();
    std::fs::remove_file(&segment).unwrap();
    let (code, errors) = said(&["other", "s.json", "nowhere"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(
        errors.contains("missing field") && errors.contains("imported s.json") && errors.contains("nowhere"),
        "{errors}"
    );
    assert_eq!(list(&sandbox), 1);
}
