use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::redact::planted::planted;
use crate::segment::{End, Mark, OutcomeKind, RecordHead, RecordKind, SegmentWriter};
use crate::{Direction, SessionHeader, Transport};

const ALL: [Format; 6] = [Format::Json, Format::Ndjson, Format::Har, Format::Markdown, Format::Html, Format::Curl];

/// A session of calls that are answered with errors, so that every format shows all of it.
fn write_session(path: &Path, texts: &[String]) -> Session {
    let header = SessionHeader {
        server_command: Some(format!("server --x {}", texts[0])),
        notes: BTreeMap::from([("note".into(), texts[0].clone())]),
        ..SessionHeader::begun(
            uuid::Uuid::parse_str("7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a").expect("a uuid"),
            1_800_000_000_000_000_000,
            Transport::Stdio,
        )
    };
    let mut writer = SegmentWriter::create(path, &header).expect("a segment");
    let mut sequence = 0;
    let mut push = |direction, correlated, message: String| {
        sequence += 1;
        let (kind, time_ns) = (RecordKind::Message, header.started_ns + sequence * 1_000);
        let head = RecordHead { kind, direction, flags: 0, conversation: 0, sequence, time_ns, correlated };
        writer.push(&head, &message.into_bytes().into());
        writer.commit().expect("it can be written");
        sequence
    };
    for (id, text) in texts.iter().enumerate() {
        let text = serde_json::to_string(text).expect("text is JSON");
        let call =
            format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"text":{text}}}}}}}"#);
        let asked = push(Direction::ClientToServer, 0, call);
        let answer = format!(r#"{{"id":{id},"error":{{"code":1,"message":{text},"data":[{text}]}}}}"#);
        push(Direction::ServerToClient, asked, answer);
    }
    writer
        .finish(header.started_ns + 1_000_000, &End { last_words: texts[0].clone(), ..End::default() })
        .expect("an end");
    Session::open_segment(path).expect("a session")
}

fn exported(session: &Session, format: Format, redactor: &mut Redactor) -> String {
    let mut out = Vec::new();
    export(session, format, &Chosen::default(), redactor, &mut out, &mut |_| true).expect("it can be exported");
    String::from_utf8(out).expect("exports are text")
}

/// Fifty at a time, so that reports have room for each of them.
#[test]
fn no_planted_secret_is_in_any_redacted_export() {
    let dir = tempfile::tempdir().expect("a directory");
    let planted = planted();
    for (part, planted) in planted.chunks(50).enumerate() {
        let texts: Vec<String> = planted.iter().map(|planted| planted.text.clone()).collect();
        let session = write_session(&dir.path().join(format!("{part}.mcpseg")), &texts);
        for format in ALL {
            let text = exported(&session, format, &mut Redactor::default());
            for planted in planted {
                assert!(!text.contains(&planted.secret), "{} in {}", planted.secret, format.as_str());
            }
            // What is shown of a secret that is not masked is what it was.
            let bare = exported(&session, format, &mut Redactor::off());
            let shown = planted.iter().filter(|planted| bare.contains(&planted.secret)).count();
            assert!(shown * 10 >= planted.len() * 9, "{}: {shown} of {}", format.as_str(), planted.len());
        }
        let evidence = exported(&session, Format::Json, &mut Redactor::off());
        assert!(planted.iter().filter(|planted| evidence.contains(&planted.secret)).count() >= planted.len() - 5);
    }
}

#[test]
fn an_export_that_is_stopped_is_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let session = write_session(&dir.path().join("s.mcpseg"), &vec!["hello".to_owned(); 20]);
    for format in ALL {
        for stop_after in [0, 1, 7, 1000] {
            let mut out = Vec::new();
            let go_on = &mut |read: u64| read < stop_after;
            let outcome = export(&session, format, &Chosen::default(), &mut Redactor::default(), &mut out, go_on)
                .expect("it can be exported");
            assert_eq!(outcome.messages, stop_after.min(40), "{}", format.as_str());
            assert_eq!(outcome.is_partial, stop_after < 40);
            let text = String::from_utf8(out).expect("exports are text");
            match format {
                Format::Json | Format::Har => {
                    serde_json::from_str::<serde_json::Value>(&text).expect("a document");
                }
                Format::Html => assert!(text.ends_with("</html>\n"), "{text}"),
                Format::Ndjson => assert_eq!(text.lines().count() as u64, 1 + outcome.messages),
                Format::Markdown | Format::Curl if outcome.is_partial => {
                    assert!(text.contains("interrupted"), "{text}")
                }
                Format::Markdown | Format::Curl => {}
            }
        }
    }
}

/// Records of a session over HTTP, one after the other.
struct Capture {
    writer: SegmentWriter,
    time_ns: u64,
    messages: u64,
}

impl Capture {
    fn begin(path: &Path, transport: Transport, url: Option<&str>) -> Self {
        let header = SessionHeader {
            server_command: url.is_none().then(|| "server".into()),
            server_url: url.map(str::to_owned),
            ..SessionHeader::begun(
                uuid::Uuid::parse_str("7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a").expect("a uuid"),
                1_800_000_000_000_000_000,
                transport,
            )
        };
        let writer = SegmentWriter::create(path, &header).expect("a segment");
        Self { writer, time_ns: header.started_ns, messages: 0 }
    }

    fn head(&mut self, kind: RecordKind, direction: Direction, sequence: u64, correlated: u64) -> RecordHead {
        self.time_ns += 1_000_000;
        RecordHead { kind, direction, flags: 0, conversation: 1, sequence, time_ns: self.time_ns, correlated }
    }

    fn exchange(&mut self, direction: Direction, exchange: u64, head: &str) {
        let record = self.head(RecordKind::Exchange, direction, exchange, 0);
        self.writer.push(&record, &head.to_owned().into());
    }

    fn over(&mut self, exchange: u64) {
        let record = self.head(RecordKind::ExchangeEnd, Direction::ServerToClient, exchange, 0);
        self.writer.push(&record, &bytes::Bytes::new());
    }

    fn message(&mut self, on: Transport, direction: Direction, exchange: Option<u64>, answers: u64, text: &str) {
        self.messages += 1;
        let mut record = self.head(RecordKind::Message, direction, self.messages, answers);
        record.flags = RecordHead::arrived_on(on);
        match exchange {
            Some(exchange) => self.writer.push_linked(&record, exchange, b"", &text.to_owned().into()),
            None => self.writer.push(&record, &text.to_owned().into()),
        }
    }

    fn end(self, path: &Path) -> Session {
        self.writer.finish(self.time_ns, &End::default()).expect("an end");
        Session::open_segment(path).expect("a session")
    }
}

const UP: Direction = Direction::ClientToServer;
const DOWN: Direction = Direction::ServerToClient;
const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#;
const ANSWER: &str = r#"{"id":1,"result":{}}"#;

/// Of each entry: transport, method, address, status, messages, whether there are bodies.
fn har_lines(session: &Session) -> Vec<String> {
    let har = exported(session, Format::Har, &mut Redactor::default());
    let har: serde_json::Value = serde_json::from_str(&har).expect("a document");
    let entries = har["log"]["entries"].as_array().expect("a list").iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    entries
        .map(|entry| {
            let (request, response) = (&entry["request"], &entry["response"]);
            let has_body = |body: &serde_json::Value| if body.is_string() { "body" } else { "-" };
            [
                text(&entry["_transport"]),
                text(&request["method"]),
                text(&request["url"]),
                response["status"].to_string(),
                entry["_messages"].to_string(),
                has_body(&request["postData"]["text"]).to_owned(),
                has_body(&response["content"]["text"]).to_owned(),
            ]
            .join(" ")
        })
        .collect()
}

#[test]
fn a_stdio_client_of_an_http_server_has_entries_on_both_sides() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.mcpseg");
    let mut capture = Capture::begin(&path, Transport::StreamableHttp, Some("https://h.example:1/mcp?x=1"));
    capture.message(Transport::Stdio, UP, None, 0, CALL);
    capture.exchange(UP, 1, "POST /mcp?x=1 HTTP/1.1\r\nx-api-key: ***\r\nmcp-name: x\r\n");
    capture.exchange(DOWN, 1, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n");
    capture.message(Transport::StreamableHttp, DOWN, Some(1), 1, ANSWER);
    capture.over(1);
    let session = capture.end(&path);
    assert_eq!(
        har_lines(&session),
        [
            "stdio POST stdio://server/tools/call/x 200 [1,2] body body",
            "streamable_http POST https://h.example:1/mcp?x=1 200 [1,2] body body",
        ]
    );
    // The script sends what the proxy sent.
    let script = exported(&session, Format::Curl, &mut Redactor::default());
    assert!(
        script.contains("-H \"x-api-key: ${HEADER_X_API_KEY}\"") && script.contains("-H 'mcp-name: x'"),
        "{script}"
    );
}

#[test]
fn answers_on_a_stream_of_the_older_transport_are_its_body() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.mcpseg");
    let mut capture = Capture::begin(&path, Transport::Stdio, None);
    capture.exchange(UP, 1, "GET /sse HTTP/1.1\r\nhost: 127.0.0.1:8888\r\n");
    capture.exchange(DOWN, 1, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n");
    capture.exchange(UP, 2, "POST /message?session=8487948c HTTP/1.1\r\nhost: 127.0.0.1:8888\r\n");
    capture.message(Transport::Sse, UP, Some(2), 0, CALL);
    capture.exchange(DOWN, 2, "HTTP/1.1 202 Accepted\r\n");
    capture.over(2);
    capture.message(Transport::Stdio, DOWN, Some(2), 1, ANSWER);
    capture.over(1);
    assert_eq!(
        har_lines(&capture.end(&path)),
        [
            "sse POST http://127.0.0.1:8888/message?session=*** 202 [1] body -",
            "sse GET http://127.0.0.1:8888/sse 200 [2] - body",
        ]
    );
}

/// What left is what counts; reports show what came as well. Neither has a secret in it.
#[test]
fn what_was_held_is_told_and_both_versions_are_redacted() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.mcpseg");
    let mut capture = Capture::begin(&path, Transport::Stdio, None);
    let call = |id, tool: &str, token: &str| {
        format!(
            r#"{{"id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"password":"{token}"}}}}}}"#
        )
    };
    let mut hold = |id, tool: &str, what, edited: Option<String>| {
        capture.messages += 1;
        let head = capture.head(RecordKind::Message, Direction::ClientToServer, id, 0);
        let head = RecordHead { flags: RecordHead::HELD, ..head };
        capture.writer.push(&head, &call(id, tool, "came-with-this").into());
        let (by, why, edited) = ("ann".to_owned(), "b1".to_owned(), edited.map(bytes::Bytes::from));
        let outcome = crate::segment::Outcome { what, by, why, held_ns: 3_200_000_000, edited };
        let about = RecordHead { correlated: id, ..head };
        capture.writer.push_outcome(&about, &outcome);
        let note = "see https://x/?access_token=left-in-a-note";
        capture.writer.push_mark(&about, &Mark { mark: Some("odd".into()), note: Some(note.into()) });
    };
    hold(1, "before", OutcomeKind::Modified, Some(call(1, "after", "left-with-this")));
    hold(2, "unwanted", OutcomeKind::Dropped, None);
    capture.writer.finish(capture.time_ns + 1, &End::default()).expect("an end");
    let session = Session::open_segment(&path).expect("a session");
    let all: Vec<(Format, String)> =
        ALL.into_iter().map(|format| (format, exported(&session, format, &mut Redactor::default()))).collect();
    let of = |wanted| &all.iter().find(|(format, _)| *format == wanted).expect("it was exported").1;
    for (format, text) in &all {
        assert!(text.contains("after"), "{}: {text}", format.as_str());
        for secret in ["came-with-this", "left-with-this", "left-in-a-note"] {
            assert!(!text.contains(secret), "{secret} in {}: {text}", format.as_str());
        }
    }
    for format in [Format::Json, Format::Ndjson, Format::Html, Format::Markdown] {
        assert!(of(format).contains("before") && of(format).contains("dropped"), "{}", of(format));
    }
    let report = of(Format::Markdown);
    assert!(report.contains("(modified, held 3.2 s, marked `odd`)"), "{report}");
    assert!(report.contains("(held 3.2 s, dropped, marked `odd`)"), "{report}");
    assert!(report.contains("It was held for 3.2 s, and dropped by `ann`: `b1`."), "{report}");
    assert!(report.contains("This was changed to:"), "{report}");
    assert!(of(Format::Har).contains("it was held, and never passed on (dropped)"), "{}", of(Format::Har));
    let script = of(Format::Curl);
    assert!(!script.contains("unwanted") && script.contains("1 call that never reached the server"), "{script}");
}
