//! What the terminal is given of recordings: the same that the commands say.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_control::api::PageQuery;
use mcp_proxy_program::shelf::library;
use mcp_tui::library::{ComparedLine, EXPORT_FORMATS, Export, Library, Recording, SessionRef, Work};
use serde_json::{Value, json};

use crate::audit::two_logs;
use crate::kit::{Sandbox, until};
use crate::search::record;

/// What `inspect --json` says and the control API does not.
const NOT_TOLD: [&str; 3] = ["held", "why", "original_raw_base64"];

/// Calls and answers, each in the place of its number: an error, a secret, words that are hostile.
fn conversation() -> Vec<(u64, String)> {
    let call = |id: u64, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        (0, json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string())
    };
    let result = |of: u64, id: u64, text: &str| {
        let result = json!({"content": [{"type": "text", "text": text}], "isError": false});
        (of, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
    };
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}});
    let welcome =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
    vec![
        (0, json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string()),
        (1, json!({"jsonrpc": "2.0", "id": 0, "result": welcome}).to_string()),
        (0, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into()),
        call(1, "read_file", json!({"path": "/etc/passwd"})),
        result(4, 1, "root:x:0:0"),
        call(2, "log\u{1b}in", json!({"password": "hunter2-hunter2"})),
        (6, r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no \u001b[2Jsuch path"}}"#.into()),
        call(3, "read_file", json!({"path": "/srv/notes.txt"})),
        result(8, 3, "nothing of note"),
        (8, "not json at all".into()),
    ]
}

/// That conversation in the store and as a session file.
fn recorded(sandbox: &Sandbox) -> (String, PathBuf) {
    let id = record(sandbox, 1_000, conversation()).to_string();
    let file = sandbox.path("session.json");
    sandbox.stdout(["export", &id, "--output", file.to_str().unwrap()]);
    (id, file)
}

fn stored(id: impl ToString) -> SessionRef {
    SessionRef::Stored(id.to_string())
}

fn open(library: &dyn Library, session: &SessionRef) -> Arc<dyn Recording> {
    library.open(session, &Work::default()).unwrap()
}

/// Every message, a page of `limit` after the other.
fn all(recording: &dyn Recording, limit: u32, filter: Option<&str>) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut after = 0;
    loop {
        let filter = filter.map(str::to_owned);
        let page = recording.page(&PageQuery { after: Some(after), limit: Some(limit), filter, before: None }).unwrap();
        messages.extend(page.messages.iter().map(|message| serde_json::to_value(message).unwrap()));
        match page.newer {
            Some(newer) if newer > after && newer < page.last_sequence => after = newer,
            _ => return messages,
        }
    }
}

#[track_caller]
fn check_same(told: &[Value], inspected: &str) {
    let inspected: Vec<Value> = inspected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), inspected.len(), "{told:?}\n{inspected:?}");
    for (told, inspected) in told.iter().zip(&inspected) {
        for (name, value) in inspected.as_object().unwrap() {
            assert!(NOT_TOLD.contains(&name.as_str()) || told[name] == *value, "{name}: {told}\n{inspected}");
        }
        assert!(told.as_object().unwrap().keys().all(|name| inspected.get(name).is_some()), "{told}\n{inspected}");
    }
}

#[test]
fn pages_say_what_inspect_says() {
    let sandbox = Sandbox::new();
    let (id, file) = recorded(&sandbox);
    let library = library(&sandbox.state());
    let segment = sandbox.segments().remove(0);
    for session in [stored(&id), stored(&id[..8]), SessionRef::File(file), SessionRef::File(segment)] {
        let recording = open(&*library, &session);
        check_same(&all(&*recording, 3, None), &sandbox.stdout(["inspect", "--json", &id]));
        for filter in ["status:err", "tool:read_file", "client:probe >"] {
            let inspected = sandbox.stdout(["inspect", "--json", "--filter", filter, &id]);
            check_same(&all(&*recording, 2, Some(filter)), &inspected);
        }
        let newest = recording.page(&PageQuery { limit: Some(2), ..PageQuery::default() }).unwrap();
        let sequences: Vec<u64> = newest.messages.iter().map(|message| message.sequence).collect();
        assert_eq!((sequences, newest.older, newest.last_sequence), (vec![9, 10], Some(9), 10));
        assert_eq!(recording.message(4).unwrap().tool.as_deref(), Some("read_file"));
        assert_eq!(recording.message(11).unwrap_err(), "there is no message #11");
        let about = recording.about();
        assert_eq!((about.id.as_str(), about.messages, about.is_live), (id.as_str(), 10, false));
        assert_eq!(about.server, "files-server");
        assert!(about.bytes > 0 && about.ended_at.is_some());
    }
}

#[test]
fn a_session_file_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let (_, file) = recorded(&sandbox);
    let before = tree(&sandbox.path(""));
    let recording = open(&*library(&sandbox.state()), &SessionRef::File(file));
    assert_eq!(recording.page(&PageQuery::default()).unwrap().messages.len(), 10);
    drop(recording);
    assert_eq!(tree(&sandbox.path("")), before);
}

/// Every file below `dir`.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let below: Vec<_> = paths.iter().filter(|path| path.is_dir()).flat_map(|path| tree(path)).collect();
    paths.extend(below);
    paths.sort();
    paths
}

#[test]
fn sessions_are_listed_newest_first_and_searched() {
    let sandbox = Sandbox::new();
    let shelf = library(&sandbox.state());
    assert_eq!((shelf.sessions(), shelf.search("anything", 5)), (Ok(Vec::new()), Ok(Vec::new())));
    let older = record(&sandbox, 1_000, conversation()).to_string();
    let newer = record(&sandbox, 2_000, conversation()).to_string();
    let rows = shelf.sessions().unwrap();
    let listed: Vec<(&str, u64)> = rows.iter().map(|row| (row.id.as_str(), row.messages)).collect();
    assert_eq!(listed, [(newer.as_str(), 10), (older.as_str(), 10)]);
    assert_eq!((rows[0].transport.as_str(), rows[0].started_at.as_str()), ("stdio", "1970-01-01T00:33:20Z"));
    for (words, limit) in [("path", 20), ("path", 2), ("\"such path\"", 20), ("hunt*", 20), ("nowhere", 20)] {
        let hits = shelf.search(words, limit).unwrap();
        let output = sandbox.output(["sessions", "search", words, "--json", "--limit", &limit.to_string()]);
        let said: Vec<Value> =
            output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        assert_eq!(hits.len(), said.len());
        for (hit, said) in hits.iter().zip(&said) {
            assert_eq!(
                (&hit.session, hit.sequence),
                (&said["session"].as_str().unwrap().to_owned(), said["sequence"].as_u64().unwrap())
            );
            assert_eq!(hit.timestamp, said["timestamp"].as_str().unwrap());
            let found = said["found"][0].as_str().unwrap();
            assert!(hit.snippet.contains(&format!("«{found}»")), "{hit:?}");
        }
    }
    let hit = &shelf.search("hunter2", 1).unwrap()[0];
    assert_eq!(hit.what, "tools/call [log␛in]");
    let trouble = shelf.search("--", 1).unwrap_err();
    assert_eq!(trouble, "there is no letter and no digit in `--` to search for");
}

#[test]
fn a_session_that_is_being_recorded_grows() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&[], &["answer"]);
    proxy.ask(1, "first");
    let shelf = library(&sandbox.state());
    until("the session is there", || shelf.sessions().is_ok_and(|rows| rows.iter().any(|row| row.messages == 2)));
    let row = shelf.sessions().unwrap().remove(0);
    assert!(row.is_live && row.ended_at.is_none());
    let recording = open(&*shelf, &stored(&row.id));
    assert_eq!(all(&*recording, 10, None).len(), 2);
    proxy.ask(2, "second");
    until("it has grown", || recording.about().messages == 4);
    assert_eq!(all(&*recording, 10, None).len(), 4);
    proxy.end();
    let about = recording.about();
    assert!(!about.is_live && about.ended_at.is_some(), "{about:?}");
}

fn export(session: &SessionRef, format: &str, file: &Path) -> Export {
    let (session, file) = (session.clone(), file.to_owned());
    Export { session, format: format.to_owned(), file, filter: None, redact: true, overwrite: false }
}

#[test]
fn exports_are_those_of_the_command() {
    let sandbox = Sandbox::new();
    let id = record(&sandbox, 1_000, conversation());
    let shelf = library(&sandbox.state());
    let from_shelf = sandbox.path("shelf");
    let from_command = sandbox.path("command");
    let compare = |wanted: Export, flags: &[&str]| {
        let (id, path) = (id.to_string(), from_command.to_str().unwrap());
        let args = ["export", &id, "--output-format", &wanted.format, "--output", path, "--force"];
        sandbox.stdout(args.iter().chain(flags));
        let exported = shelf.export(&wanted, &Work::default()).unwrap();
        assert_eq!(fs::read(&from_shelf).unwrap(), fs::read(&from_command).unwrap(), "{}", wanted.format);
        assert_eq!(exported.file, from_shelf);
        exported
    };
    for format in EXPORT_FORMATS {
        let wanted = Export { overwrite: true, ..export(&stored(id), format, &from_shelf) };
        let exported = compare(wanted.clone(), &[]);
        assert_eq!((exported.messages, exported.masked > 0), (10, true), "{format}");
        let exported = compare(
            Export { filter: Some("tool:read_file".into()), ..wanted.clone() },
            &["--filter", "tool:read_file"],
        );
        assert_eq!(exported.messages, 4);
        compare(Export { redact: false, ..wanted.clone() }, &["--no-redact"]);
    }
    let work = Work::default();
    shelf.export(&Export { overwrite: true, ..export(&stored(id), "ndjson", &from_shelf) }, &work).unwrap();
    assert_eq!(work.done().1, 10);
}

#[test]
fn an_export_that_ends_early_leaves_nothing() {
    let sandbox = Sandbox::new();
    let id = record(&sandbox, 1_000, conversation());
    let shelf = library(&sandbox.state());
    shelf.sessions().unwrap();
    fs::write(sandbox.path("kept"), "as it was").unwrap();
    let before = tree(&sandbox.path(""));
    let cancelled = Work::default();
    cancelled.cancel();
    let refuse = |wanted: Export, work: &Work, expected: &str| {
        let trouble = shelf.export(&wanted, work).unwrap_err();
        assert!(trouble.contains(expected), "{trouble}");
        assert_eq!(tree(&sandbox.path("")), before);
        assert_eq!(fs::read_to_string(sandbox.path("kept")).unwrap(), "as it was");
    };
    let (kept, new) = (sandbox.path("kept"), sandbox.path("new"));
    for format in EXPORT_FORMATS {
        let wanted = export(&stored(id), format, &new);
        refuse(wanted.clone(), &cancelled, "interrupted");
        refuse(Export { filter: Some("tool:*".into()), ..wanted }, &cancelled, "interrupted");
        refuse(Export { overwrite: true, ..export(&stored(id), format, &kept) }, &cancelled, "interrupted");
    }
    let wanted = export(&stored(id), "md", &new);
    let work = Work::default();
    refuse(export(&stored(id), "md", &kept), &work, "exists already");
    refuse(export(&stored("\u{1b}[2J"), "md", &new), &work, "no session `␛[2J`");
    refuse(Export { format: "p\u{202e}df".into(), ..wanted.clone() }, &work, "there is no format `p⟨U+202E⟩df`");
    refuse(Export { filter: Some("tool:".into()), ..wanted.clone() }, &work, "tool:");
    refuse(Export { filter: Some("tool:nothing".into()), ..wanted.clone() }, &work, "none of the 10 messages");
    refuse(Export { file: sandbox.path("absent/new"), ..wanted.clone() }, &work, "cannot write");
    refuse(Export { file: sandbox.path(""), overwrite: true, ..wanted }, &work, "cannot write");
}

#[test]
fn two_sessions_differ_where_somebody_changed_them() {
    let sandbox = Sandbox::new();
    let (recorded, file) = recorded(&sandbox);
    let shelf = library(&sandbox.state());
    for other in [stored(&recorded), SessionRef::File(file)] {
        let found = shelf.compare(&stored(&recorded), &other, &Work::default()).unwrap();
        assert_eq!((found.same, found.different, found.only_left, found.only_right), (4, 0, 0, 0));
        assert_eq!(found.lines, []);
    }
    let mut edited = conversation();
    edited[4].1 = edited[4].1.replace("root:x", "root:y");
    edited[7].1 = edited[7].1.replace("notes.txt", "other.txt");
    edited[5].1 = edited[5].1.replace("in\"", "out\\u202e\"");
    let edited = record(&sandbox, 2_000, edited);
    let work = Work::default();
    let found = shelf.compare(&stored(&recorded), &stored(edited), &work).unwrap();
    assert_eq!((found.same, found.different, found.only_left, found.only_right), (1, 2, 1, 1));
    let line = |what: &str, left, right, paths: &[&str]| {
        let paths = paths.iter().map(|path| path.to_string()).collect();
        ComparedLine { what: what.into(), left, right, paths }
    };
    assert_eq!(
        found.lines,
        [
            line("tools/call [read_file]", Some(4), Some(4), &["$.result.content[0].text"]),
            line("tools/call [log␛out⟨U+202E⟩]", None, Some(6), &[]),
            line("tools/call [log␛in]", Some(6), None, &[]),
            line("tools/call [read_file]", Some(8), Some(8), &["$.params.arguments.path"]),
        ]
    );
    assert_eq!(work.done(), (4, 4));
    work.cancel();
    assert_eq!(shelf.compare(&stored(&recorded), &stored(edited), &work), Err("interrupted".into()));
}

#[test]
fn a_comparison_lists_only_so_much() {
    let sandbox = Sandbox::new();
    let calls = |text: &'static str| {
        (1..=1_200).flat_map(move |id| {
            let many: Vec<String> = (0..30).map(|at| format!("{text} {at}")).collect();
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t", "arguments": {"id": id}}});
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"content": many}});
            [(0, call.to_string()), (2 * id - 1, answer.to_string())]
        })
    };
    let (left, right) = (record(&sandbox, 1_000, calls("one")), record(&sandbox, 2_000, calls("other")));
    let found = library(&sandbox.state()).compare(&stored(left), &stored(right), &Work::default()).unwrap();
    assert_eq!((found.same, found.different, found.lines.len()), (0, 1_200, 1_001));
    assert_eq!(found.lines[1_000].what, "200 more calls differ, which are not listed");
    assert_eq!((found.lines[0].paths.len(), found.lines[0].paths[20].as_str()), (21, "and 10 more"));
}

#[test]
fn decisions_are_those_of_the_audit_with_their_outcomes() {
    let sandbox = Sandbox::new();
    let shelf = library(&sandbox.state());
    assert_eq!(shelf.audit(None, 5), Ok(Vec::new()));
    two_logs(&sandbox);
    let all = shelf.audit(None, 100).unwrap();
    let written = sandbox.stdout(["audit", "--csv"]);
    assert_eq!(all.len(), written.lines().count() - 1, "{written}");
    let mut times: Vec<_> = all.iter().map(|decision| decision.timestamp.clone()).collect();
    times.reverse();
    assert!(times.is_sorted());
    assert_eq!(shelf.audit(None, 2).unwrap(), all[..2]);
    let denied = shelf.audit(Some("verdict:deny tool:delete_file"), 100).unwrap();
    let said: Vec<_> = denied.iter().map(|it| (it.tool.as_deref(), it.rule.as_deref(), it.actor.as_str())).collect();
    assert_eq!(said, [(Some("delete_file"), Some("nothing is deleted"), "rule")]);
    let read = shelf.audit(Some("tool:read_file status:ok"), 100).unwrap();
    assert_eq!(
        (read[0].outcome.as_deref(), read[0].latency_ns, read[0].sequence),
        (Some("ok"), Some(1_234_000), Some(3))
    );
    assert!(sandbox.stdout(["audit", "show", &read[0].audit_id]).contains("read_file"));
    let hostile = |text: &str| text.contains(['\u{202e}', '\u{1b}']);
    assert!(
        !all.iter()
            .any(|it| hostile(&format!("{:?}{:?}", it.tool, it.client)) || it.tool.as_deref().is_some_and(hostile))
    );
    assert_eq!(shelf.audit(Some("size>1"), 5).unwrap_err(), "the audit does not have `size` of a message");
}
