use bytes::Bytes;

use super::*;
use crate::catalogue::Catalogue;
use crate::recorded::{Direction, SessionHeader, Transport};
use crate::segment::{End, Outcome, OutcomeKind, RecordHead, RecordKind, SegmentWriter};

struct Place {
    _dir: tempfile::TempDir,
    state: StateDir,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::find(Some(&dir.path().join("state"))).unwrap();
    state.prepare().unwrap();
    Place { _dir: dir, state }
}

impl Place {
    fn begin(&self, started_ns: u64) -> (Uuid, SegmentWriter) {
        let header = SessionHeader {
            server_command: Some("server".into()),
            ..SessionHeader::begun(Uuid::new_v4(), started_ns, Transport::Stdio)
        };
        let writer = SegmentWriter::create(&self.state.segment(&header.id), &header).unwrap();
        (header.id, writer)
    }

    /// A session of these messages, which has ended.
    fn session(&self, started_ns: u64, messages: &[&str]) -> Uuid {
        let (id, mut writer) = self.begin(started_ns);
        for (index, message) in messages.iter().enumerate() {
            push(&mut writer, index as u64 + 1, 0, message);
        }
        writer.finish(started_ns + 1, &End::default()).unwrap();
        id
    }

    fn entries(&self) -> Vec<Entry> {
        Catalogue::open(&self.state).unwrap().entries().unwrap()
    }

    fn recordings(&self) -> Vec<Recording> {
        self.entries().iter().map(Recording::from).collect()
    }

    fn updated(&self) -> Index {
        let mut index = Index::open(&self.state).unwrap();
        let done = index.update(&self.recordings(), Pace::Foreground, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(done.is_continue());
        index
    }
}

fn push(writer: &mut SegmentWriter, sequence: u64, correlated: u64, message: &str) {
    let direction = if correlated > 0 { Direction::ServerToClient } else { Direction::ClientToServer };
    let head = RecordHead {
        kind: RecordKind::Message,
        direction,
        flags: 0,
        conversation: 0,
        sequence,
        time_ns: sequence,
        correlated,
    };
    writer.push(&head, &Bytes::copy_from_slice(message.as_bytes()));
    writer.commit().unwrap();
}

fn hits(index: &Index, typed: &str, session: Option<&Uuid>) -> Vec<Hit> {
    let mut hits = Vec::new();
    let query = Query::parse(typed).unwrap();
    index
        .search(&query, session, |hit| {
            hits.push(hit);
            Ok::<_, StoreError>(ControlFlow::Continue(()))
        })
        .unwrap();
    hits
}

fn sequences(index: &Index, typed: &str) -> Vec<u64> {
    hits(index, typed, None).iter().map(|hit| hit.sequence).collect()
}

#[test]
fn the_library_can_search_text() {
    let connection = Connection::open_in_memory().unwrap();
    let mut statement = connection.prepare("PRAGMA compile_options").unwrap();
    let options: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(options.iter().any(|option| option == "ENABLE_FTS5"), "{options:?}");
}

#[test]
fn messages_are_found_newest_first_and_read_from_where_they_stand() {
    let place = place();
    let call = r#"{"id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/etc/Pass\u0077d"}}}"#;
    let older = place.session(1, &[call, r#"{"method":"note","params":{"text":"passwd"}}"#, "passwd noise"]);
    let newer = place.session(2, &[r#"{"method":"note","params":["no","PASSWD"]}"#]);
    let index = place.updated();
    let found = hits(&index, "passwd", None);
    let order: Vec<(Uuid, u64)> = found.iter().map(|hit| (hit.session, hit.sequence)).collect();
    assert_eq!(order, [(newer, 1), (older, 3), (older, 2), (older, 1)]);
    assert_eq!(found[3].method.as_deref(), Some("tools/call"));
    assert_eq!((found[3].tool.as_deref(), found[3].jsonrpc_id.as_deref()), (Some("read"), Some("1")));
    assert_eq!((found[2].kind.as_str(), found[1].kind.as_str()), ("notification", "bytes"));
    let entries = place.entries();
    let mut reader = MessageReader::new(&entries);
    let read: Vec<Bytes> = found.iter().map(|hit| reader.read(hit).unwrap().raw).collect();
    assert_eq!((&read[3][..], &read[1][..]), (call.as_bytes(), &b"passwd noise"[..]));
    assert_eq!(hits(&index, "passwd", Some(&older)).len(), 3);
    assert_eq!(hits(&index, "passwd", Some(&Uuid::new_v4())), []);
    assert_eq!(sequences(&index, "\"etc passwd\""), [1]);
    assert_eq!(sequences(&index, "pass* note"), [1, 2]);
}

#[test]
fn a_session_that_grows_is_gone_on_with() {
    let place = place();
    let (id, mut writer) = place.begin(1);
    push(&mut writer, 1, 0, r#"{"id":7,"method":"tools/call","params":{"name":"search"}}"#);
    let index = place.updated();
    assert_eq!(sequences(&index, "search"), [1]);
    push(&mut writer, 2, 1, r#"{"id":7,"error":{"code":-32603,"message":"late answer"}}"#);
    assert!(place.entries()[0].live);
    let recordings = place.recordings();
    assert_eq!(index.backlog(&recordings).unwrap(), 1);
    let index = place.updated();
    let found = hits(&index, "answer", Some(&id));
    // Its request was indexed in the round before.
    assert_eq!((found[0].method.as_deref(), found[0].tool.as_deref()), (Some("tools/call"), Some("search")));
    assert_eq!(found[0].status.as_deref(), Some("error -32603"));
    assert_eq!(index.backlog(&recordings).unwrap(), 0);
    writer.finish(3, &End::default()).unwrap();
    assert_eq!(sequences(&place.updated(), "answer"), [2]);
}

#[test]
fn work_that_is_broken_off_is_kept_and_gone_on_with() {
    let place = place();
    place.session(1, &["one needle", "two needle", "three needle"]);
    let recordings = place.recordings();
    let mut index = Index::open(&place.state).unwrap();
    let mut steps = 0;
    let done = index
        .update(&recordings, Pace::Background, &mut |added| {
            steps += added;
            if steps == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert!(done.is_break());
    assert_eq!((sequences(&index, "needle"), index.backlog(&recordings).unwrap()), (vec![2, 1], 1));
    assert_eq!(sequences(&place.updated(), "needle"), [3, 2, 1]);
}

#[test]
fn recordings_are_found_without_the_catalogue() {
    let place = place();
    place.session(1, &["a needle"]);
    std::fs::write(place.state.sessions().join("x.mcpseg"), "no recording").unwrap();
    let mut index = Index::open(&place.state).unwrap();
    let recordings = recordings(&place.state).unwrap();
    assert_eq!(recordings.len(), 1);
    let done = index.update(&recordings, Pace::Background, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(done.is_continue());
    assert_eq!((sequences(&index, "needle"), index.backlog(&place.recordings()).unwrap()), (vec![1], 0));
}

#[test]
fn a_removed_session_leaves_no_word_behind() {
    let place = place();
    let gone = place.session(1, &["a secretword"]);
    place.session(2, &["another word"]);
    let is_in_the_index = |word: &str| {
        ["", "-wal"].iter().any(|suffix| {
            let mut path = place.state.index().into_os_string();
            path.push(suffix);
            let bytes = std::fs::read(path).unwrap_or_default();
            bytes.windows(word.len()).any(|window| window == word.as_bytes())
        })
    };
    let other = place.updated();
    assert!(is_in_the_index("secretword") && is_in_the_index("another"));
    std::fs::remove_file(place.state.segment(&gone)).unwrap();
    let index = place.updated();
    assert_eq!((sequences(&index, "secretword"), sequences(&index, "word")), (vec![], vec![1]));
    assert!(is_in_the_index("another") && !is_in_the_index("secretword"));
    drop(other);
}

#[test]
fn what_was_removed_is_given_back_to_the_disk() {
    let place = place();
    let words: Vec<String> =
        (0..2_000).map(|n| format!("{{\"method\":\"m\",\"params\":\"word{n} {}\"}}", n * 7919)).collect();
    let gone = place.session(1, &words.iter().map(String::as_str).collect::<Vec<_>>());
    drop(place.updated());
    let before = std::fs::metadata(place.state.index()).unwrap().len();
    std::fs::remove_file(place.state.segment(&gone)).unwrap();
    drop(place.updated());
    let after = std::fs::metadata(place.state.index()).unwrap().len();
    assert!(after < before / 2, "{before} bytes, then {after}");
}

#[test]
fn an_older_or_damaged_index_is_filled_anew() {
    let place = place();
    place.session(1, &["a needle"]);
    drop(place.updated());
    Connection::open(place.state.index()).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let index = place.updated();
    assert_eq!((sequences(&index, "needle"), index.findings.len()), (vec![1], 0));
    drop(index);
    std::fs::write(place.state.index(), [0x55; 8192]).unwrap();
    let index = place.updated();
    assert_eq!((sequences(&index, "needle"), index.findings.len()), (vec![1], 1));
}

/// A program of another version may replace the tables of an index that is open.
#[test]
fn tables_of_another_version_are_left_alone() {
    let place = place();
    let gone = place.session(1, &["a needle"]);
    let mut index = place.updated();
    let other = Connection::open(place.state.index()).unwrap();
    other.execute_batch("PRAGMA user_version = 99").unwrap();
    place.session(2, &["another needle"]);
    let error = index.update(&place.recordings(), Pace::Foreground, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(!error.is_damaged_cache() && index.forget(&[gone]).is_err(), "{error}");
    let messages = other.query_row("SELECT count(*) FROM messages", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(messages, 1);
}

#[test]
fn hostile_queries_find_nothing_or_something_and_never_fail() {
    let place = place();
    place.session(1, &[r#"{"method":"a","params":{"q":"x' OR 1=1; DROP TABLE messages; -- \u0000 NEAR"}}"#]);
    let index = place.updated();
    for typed in ["x' OR 1=1; --", "\"", "a\"b", "NEAR(", "body:", "(((", "a AND", "* a *", "x\0y", "\u{345}", "{a}:b"]
    {
        if let Some(query) = Query::parse(typed) {
            index.search(&query, None, |_| Ok::<_, StoreError>(ControlFlow::Continue(()))).unwrap();
            Snippets::new(&query).unwrap().of("x OR 1=1 near a").unwrap();
        }
    }
    assert_eq!(sequences(&index, "1=1; DROP"), [1]);
}

/// Whether the hold ends before the message is indexed or after, and however often that is asked.
#[test]
fn an_edited_message_is_found_by_what_it_was_and_what_it_became() {
    let place = place();
    let (id, mut writer) = place.begin(1);
    let call = |name: &str| format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#);
    let held = |sequence| RecordHead {
        kind: RecordKind::Message,
        direction: Direction::ClientToServer,
        flags: RecordHead::HELD,
        conversation: 0,
        sequence,
        time_ns: sequence,
        correlated: 0,
    };
    let mut hold = |sequence, name: &str, becomes: Option<&str>| {
        match becomes {
            None => writer.push(&held(sequence), &call(name).into()),
            Some(becomes) => {
                let (what, edited) = (OutcomeKind::Modified, Some(call(becomes).into()));
                let outcome = Outcome { what, by: String::new(), why: String::new(), held_ns: 1, edited };
                writer.push_outcome(&RecordHead { correlated: sequence, ..held(0) }, &outcome);
            }
        }
        writer.commit().unwrap();
    };
    hold(1, "alpha", None);
    hold(1, "alpha", Some("beta"));
    hold(2, "gamma", None);
    let index = place.updated();
    assert_eq!(
        (sequences(&index, "alpha"), sequences(&index, "beta"), sequences(&index, "gamma")),
        (vec![1], vec![1], vec![2])
    );
    hold(2, "gamma", Some("delta"));
    hold(2, "gamma", Some("epsilon"));
    hold(3, "zeta", None);
    drop(index);
    let index = place.updated();
    assert_eq!(
        (sequences(&index, "gamma"), sequences(&index, "delta"), sequences(&index, "zeta")),
        (vec![2], vec![2], vec![3])
    );
    assert!(sequences(&index, "epsilon").is_empty(), "a message goes on once");
    assert_eq!(sequences(&index, "tools"), [3, 2, 1]);
    let check = index.connection.execute("INSERT INTO text_1 (text_1) VALUES ('integrity-check')", []);
    assert!(check.is_ok(), "{check:?}");
    let found = hits(&index, "beta", Some(&id));
    assert_eq!(found[0].tool.as_deref(), Some("beta"));
    let entries = place.entries();
    let read = MessageReader::new(&entries).read(&found[0]).unwrap();
    assert_eq!((read.raw, read.original_raw), (Bytes::from(call("beta")), Some(Bytes::from(call("alpha")))));
    let picked = pick(&entries[0], None, 9, |told| ControlFlow::Continue(told.recorded.modified)).unwrap();
    assert_eq!(picked.iter().map(|hit| hit.sequence).collect::<Vec<_>>(), [2, 1]);
}
