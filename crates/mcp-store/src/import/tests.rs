use super::*;
use crate::recorded::Transport;
use crate::segment::{AuditId, Verdict, VerdictKind};
use crate::session_file;

struct Place {
    dir: tempfile::TempDir,
    state: StateDir,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::find(Some(&dir.path().join("state"))).unwrap();
    Place { dir, state }
}

impl Place {
    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn bring(&self, path: &Path) -> Imported {
        let import = Import::open(path).unwrap();
        import.bring(&self.state, &mut |_| ControlFlow::Continue(())).unwrap().unwrap()
    }

    /// A session with everything that a session file can say, as a segment and as a file.
    fn recorded(&self) -> (PathBuf, PathBuf) {
        let header = SessionHeader {
            server_url: Some("http://x/".into()),
            notes: [("k".to_owned(), "v".to_owned())].into(),
            ..SessionHeader::begun(Uuid::new_v4(), 1_000_000_007, Transport::StreamableHttp)
        };
        let segment = self.dir.path().join("s.mcpseg");
        let mut writer = SegmentWriter::create(&segment, &header).unwrap();
        let mut time_ns = header.started_ns;
        let mut head = |kind, direction, sequence, correlated, flags| {
            time_ns += 1_000;
            let flags = flags | RecordHead::arrived_on(Transport::StreamableHttp);
            RecordHead { kind, direction, flags, conversation: 3, sequence, time_ns, correlated }
        };
        let (up, down) = (Direction::ClientToServer, Direction::ServerToClient);
        let (message, exchange) = (RecordKind::Message, RecordKind::Exchange);
        let text = |text: &'static str| Bytes::from_static(text.as_bytes());
        writer.push(&head(exchange, up, 1, 0, 0), &text("POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n"));
        writer.push_linked(&head(message, up, 1, 0, 0), 1, b"", &text("{\"id\" : 1.0e0,\"method\":\"a\"}"));
        writer.push(&head(exchange, down, 1, 0, 0), &text("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"));
        writer.push_linked(&head(message, down, 2, 1, 0), 1, b"ev-7", &text("{\"id\":1.0e0,\"result\":{}}"));
        writer.push(&head(RecordKind::ExchangeEnd, down, 1, 0, 0), &text("client left"));
        writer.push(&head(message, down, 3, 0, RecordHead::NOISE), &Bytes::from_static(b" \xffnoise"));
        writer.push(&head(message, down, 4, 0, RecordHead::FROM_PROXY), &text("null"));
        writer.push(&head(RecordKind::Event, up, 9, 0, 0), &text("a message was too large"));
        let held = head(message, up, 10, 0, RecordHead::HELD);
        writer.push(&held, &text("not JSON "));
        let edited = Some(text("{\"id\":2,\"method\":\"b\"}"));
        let (by, why) = ("ann".to_owned(), "b1".to_owned());
        let outcome = Outcome { what: OutcomeKind::Modified, by, why, held_ns: 1_234, edited };
        writer.push_outcome(&RecordHead { correlated: 10, ..held }, &outcome);
        writer.push(&head(message, down, 11, 10, RecordHead::HELD), &text("{\"id\":2,\"result\":1}"));
        let mark = Mark { mark: Some("★".into()), note: Some("two\nlines".into()) };
        writer.push_mark(&RecordHead { correlated: 11, ..held }, &mark);
        let dropped = head(message, down, 12, 0, RecordHead::HELD);
        writer.push(&dropped, &text("{\"method\":\"c\"}"));
        let outcome = Outcome { what: OutcomeKind::Dropped, by: String::new(), edited: None, ..outcome };
        writer.push_outcome(&RecordHead { correlated: 12, ..dropped }, &outcome);
        let denied = head(message, up, 13, 0, 0);
        writer.push(&denied, &text("{\"id\":3,\"method\":\"d\"}"));
        let audit = Some(AuditId { instance: uuid::Uuid::from_u128(5), number: 7 });
        let rule = Some("no-\"deletes\"".into());
        let verdict = Verdict { what: VerdictKind::Deny, rule, operation: Some("delete"), audit };
        writer.push_verdict(&RecordHead { correlated: 13, ..denied }, &verdict);
        writer.push_leg(1_500_000_000, 4, "files");
        let leg = RecordHead { conversation: 4, ..head(message, up, 14, 13, RecordHead::CAUSED) };
        writer.push(&leg, &text("{\"id\":1,\"method\":\"d\"}"));
        let leg = RecordHead { conversation: 4, ..head(message, down, 15, 14, 0) };
        writer.push(&leg, &text("{\"id\":1,\"result\":{}}"));
        writer.finish(2_000_000_000, &End::default()).unwrap();
        let file = self.dir.path().join("s.json");
        session_file::write(&file, &Session::open_segment(&segment).unwrap()).unwrap();
        (segment, file)
    }
}

fn file_of(segment: &Path, place: &Place) -> String {
    let path = place.dir.path().join("again.json");
    session_file::write(&path, &Session::open_segment(segment).unwrap()).unwrap();
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_session_file_comes_back_byte_for_byte() {
    let place = place();
    let (_, file) = place.recorded();
    let imported = place.bring(&file);
    assert_eq!((imported.summary.messages, imported.findings.len()), (11, 0));
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(file_of(&imported.path, &place), text);
    for member in [
        "\"original_raw\": null",
        "\"original_raw_base64\": \"bm90IEpTT04g\"",
        "\"held_ns\": 1234",
        "\"outcome\": \"modified\"",
        "\"decided_by\": \"ann\"",
        "\"mark\": \"★\"",
        "\"outcome\": \"dropped\"",
        "\"verdict\": \"deny\"",
        "\"rule\": \"no-\\\"deletes\\\"\"",
        "\"op\": \"delete\"",
        "\"upstream\": \"files\"",
        "\"parent\": 13",
        "\"audit_id\": \"00000000-0000-0000-0000-000000000005/7\"",
    ] {
        assert!(text.contains(member), "{member} in {text}");
    }
}

#[test]
fn a_segment_is_taken_as_it_is() {
    let place = place();
    let (segment, _) = place.recorded();
    let imported = place.bring(&segment);
    assert_eq!(fs::read(&imported.path).unwrap(), fs::read(&segment).unwrap());
    let import = Import::open(&segment).unwrap();
    assert!(import.bring(&place.state, &mut |_| ControlFlow::Continue(())).is_err(), "it is there already");
    assert_eq!(place.state.segments().unwrap().len(), 1);
}

const OTHERS: &str = r#"{"messages":[
    {"proxy_id":"m-1","timestamp":"2026-11-15T10:00:01.5Z","direction":"client_to_server","payload":{"id":1,"method":"a"}},
    {"proxy_id":"m-2","sequence":1,"timestamp":"2026-11-15T10:00:02Z","direction":"server_to_client","payload":{"id":1},
     "correlation_id":"m-1","modified":true,"original_payload":{}}],
    "metadata":{"n":1},"started_at":"2026-11-15T10:00:00+00:00","id":"7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a","more":[[1]]}"#;

#[test]
fn files_of_related_tools_are_understood() {
    let place = place();
    let imported = place.bring(&place.file("others.json", OTHERS));
    assert_eq!(imported.findings.len(), 1, "{:?}", imported.findings);
    let text = file_of(&imported.path, &place);
    assert!(text.contains("\"n\": 1\n") && text.contains("\"raw\": {\"id\":1,\"method\":\"a\"}"), "{text}");
    assert!(text.contains("\"modified\": true") && text.contains("\"original_raw\": {}"), "{text}");
    let id = crate::recorded::message_id(imported.summary.header.id.as_ref(), 1);
    assert!(text.contains(&format!("\"correlated_id\": \"{id}\"")), "{text}");
}

#[test]
fn lines_are_a_session_too() {
    let place = place();
    let (segment, _) = place.recorded();
    let lines = r#"{"id":"7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6b","started_at":"2026-11-15T10:00:00Z","ended_at":"2026-11-15T11:00:00Z","transport":"sse"}
{"sequence":1,"timestamp":"2026-11-15T10:00:01Z","direction":"client_to_server","raw":{"id":1,"method":"a"}}
{"sequence":2,"timestamp":"2026-11-15T10:00:01Z","direction":"server_to_client","raw":{"id":1,"result":"}\n{"}}
"#;
    let imported = place.bring(&place.file("s.ndjson", lines));
    assert_eq!((imported.summary.messages, imported.summary.header.transport), (2, Transport::Sse));
    assert!(file_of(&imported.path, &place).contains(r#""raw": {"id":1,"result":"}\n{"}"#));
    drop(segment);
}

#[test]
fn work_that_is_broken_off_leaves_nothing() {
    let place = place();
    let import = Import::open(&place.file("others.json", OTHERS)).unwrap();
    assert!(import.bring(&place.state, &mut |_| ControlFlow::Break(())).unwrap().is_none());
    assert_eq!(fs::read_dir(place.state.sessions()).unwrap().count(), 0);
    // Nor does what a kill left stay.
    fs::write(place.state.sessions().join("x.importing"), "MCPSEG01").unwrap();
    place.bring(&place.file("others.json", OTHERS));
    assert_eq!(fs::read_dir(place.state.sessions()).unwrap().count(), 1);
}

#[test]
fn what_is_no_whole_session_is_refused() {
    let place = place();
    let began = r#"{"id":"7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a","started_at":"2026-11-15T10:00:00Z","ended_at":null,"messages":[]}"#;
    for content in [
        began,
        "{}",
        "[]",
        "",
        "{\"id\":1,\"started_at\":2,\"messages\":[]}",
        &OTHERS.replace("\"payload\"", "\"load\""),
    ] {
        let refused = Import::open(&place.file("s.json", content));
        assert!(matches!(refused, Err(StoreError::NotASession { .. })), "{content}");
    }
    let header = r#"{"id":"7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a","started_at":"2026-11-15T10:00:00Z"}"#;
    assert!(Import::open(&place.file("s.json", header)).is_err(), "no messages, and no lines either");
}
