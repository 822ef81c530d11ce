//! Session files that others wrote, and messages that JSON cannot hold as they are.

use bytes::Bytes;

use super::*;
use crate::exchange::{AnswerHead, OPEN_EXCHANGES_MAX};
use crate::recorded::{Direction, Transport};
use crate::segment::{End, RecordHead, RecordKind, SegmentWriter};

fn header() -> SessionHeader {
    SessionHeader {
        notes: [("k".to_owned(), "v \"quoted\"".to_owned())].into(),
        ..SessionHeader::begun(Uuid::new_v4(), 5, Transport::Stdio)
    }
}

fn to_server(sequence: u64) -> RecordHead {
    RecordHead {
        kind: RecordKind::Message,
        direction: Direction::ClientToServer,
        flags: 0,
        conversation: 0,
        sequence,
        time_ns: 0,
        correlated: 0,
    }
}

/// Writes records as HTTP brings them; every read has a time of its own.
struct Capture {
    writer: SegmentWriter,
    head: RecordHead,
    messages: u64,
}

impl Capture {
    fn begin(path: &Path) -> Self {
        let flags = RecordHead::arrived_on(Transport::StreamableHttp);
        let head = RecordHead { flags, conversation: 1, time_ns: 100, ..to_server(0) };
        Self { writer: SegmentWriter::create(path, &header()).expect("a segment can be begun"), head, messages: 0 }
    }

    fn head(&mut self, kind: RecordKind, direction: Direction, sequence: u64) -> RecordHead {
        self.head.time_ns += 1;
        RecordHead { kind, direction, sequence, ..self.head }
    }

    fn request(&mut self, exchange: u64, text: &'static [u8]) {
        let head = self.head(RecordKind::Exchange, Direction::ClientToServer, exchange);
        self.writer.push(&head, &Bytes::from_static(text));
    }

    fn answer(&mut self, exchange: u64, text: &'static [u8]) {
        let head = self.head(RecordKind::Exchange, Direction::ServerToClient, exchange);
        self.writer.push(&head, &Bytes::from_static(text));
    }

    fn over(&mut self, exchange: u64, how: &'static str) {
        let head = self.head(RecordKind::ExchangeEnd, Direction::ServerToClient, exchange);
        self.writer.push(&head, &Bytes::from_static(how.as_bytes()));
    }

    fn message(&mut self, direction: Direction, exchange: u64, event_id: &[u8]) {
        self.messages += 1;
        let head = self.head(RecordKind::Message, direction, self.messages);
        self.writer.push_linked(&head, exchange, event_id, &Bytes::from_static(b"{\"id\":1}"));
    }
}

fn entries_of(file: &FileSession) -> Vec<SessionEntry> {
    let mut entries = file.entries().expect("it can be read");
    std::iter::from_fn(|| entries.next().expect("it can be read")).collect()
}

fn messages_of(file: &FileSession) -> Vec<Recorded> {
    let messages = entries_of(file).into_iter().map(|entry| match entry {
        SessionEntry::Message(message) => message,
        other => panic!("{other:?}"),
    });
    messages.collect()
}

/// The entries of a segment, and those of a session file made of it.
fn both(segment: &Path) -> (Vec<SessionEntry>, Vec<SessionEntry>, String) {
    let entries = |session: &Session| {
        let mut entries = Vec::new();
        let visit = |entry| {
            entries.push(entry);
            Ok::<_, StoreError>(())
        };
        session.for_each_entry(visit).expect("it can be read");
        entries
    };
    let file = segment.with_extension("json");
    let session = Session::open_segment(segment).expect("it opens");
    write(&file, &session).expect("it can be written");
    let read = Session::open(&file, None).expect("it can be read");
    let told = |session: &Session| {
        let summary = session.summary();
        (summary.messages, summary.several_conversations, summary.has_exchanges)
    };
    assert_eq!(told(&session), told(&read));
    (entries(&session), entries(&read), std::fs::read_to_string(&file).expect("it can be read"))
}

#[test]
fn exchanges_come_back_between_the_messages() {
    let (up, down) = (Direction::ClientToServer, Direction::ServerToClient);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let segment = dir.path().join("s.mcpseg");
    let mut capture = Capture::begin(&segment);
    capture.request(1, b"POST /mcp HTTP/1.1\r\nhost: \xff\r\nx: \"1\"\r\nx: 2\r\n");
    capture.message(up, 1, b"");
    capture.request(2, b"GET /mcp HTTP/1.1\r\n");
    capture.answer(2, b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n");
    capture.message(down, 2, b"7");
    capture.answer(1, b"HTTP/1.1 103 Early Hints\r\n");
    capture.answer(1, b"HTTP/1.1 201 Created\r\n");
    capture.message(down, 1, b"\xff id");
    capture.over(1, "");
    capture.over(2, "client left");
    capture.head.conversation = 2;
    // Heads that nobody could read, a head that never had an answer, an end without a beginning.
    capture.request(3, b"");
    capture.answer(3, b"\0\0");
    capture.message(up, 3, b"");
    capture.request(4, b"DELETE /mcp HTTP/1.1\r\n");
    capture.over(5, "");
    capture.message(up, 99, b"");
    capture.writer.finish(999, &End::default()).expect("the disk takes it");

    let (written, read, text) = both(&segment);
    assert_eq!(written, read);
    assert_eq!(written.len(), 16);
    let statuses: Vec<_> = text.lines().filter(|line| line.contains("http_status")).map(str::trim).collect();
    assert_eq!(statuses, ["\"http_status\": 200", "\"http_status\": 201"]);
    assert!(text.contains("\"event_id\": \"7\"") && text.contains("\"event_id\": \"\u{fffd} id\""), "{text}");
    assert!(text.contains("        [\"x\", \"\\\"1\\\"\"],\n        [\"x\", \"2\"]\n      ],"), "{text}");
}

#[test]
fn an_exchange_that_had_to_be_let_go_stands_in_two_parts() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let segment = dir.path().join("s.mcpseg");
    let mut capture = Capture::begin(&segment);
    let last = OPEN_EXCHANGES_MAX as u64 + 1;
    (1..=last).for_each(|exchange| capture.request(exchange, b"GET / HTTP/1.1\r\n"));
    (1..=last).for_each(|exchange| capture.answer(exchange, b"HTTP/1.1 200 OK\r\n"));
    capture.writer.finish(99_999, &End::default()).expect("the disk takes it");
    let (written, read, text) = both(&segment);
    assert!(written == read, "every part is there, in order");
    assert_eq!(text.matches("\"method\": \"GET\"").count(), last as usize);
}

#[test]
fn exchanges_need_only_a_number() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("s.json");
    let text = r#"{"id":"7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a","started_at":"2026-11-15T10:00:00Z","messages":[],
        "exchanges":[{"id":1},{"id":2,"status":404,"later":[]},{"id":3,"ended":"client left","conversation":8}]}"#;
    std::fs::write(&file, text).expect("it can be written");
    let entries = entries_of(&FileSession::open(&file).expect("it can be read"));
    let [SessionEntry::Answer(answer, head), SessionEntry::End(end, Some(_))] = &entries[..] else {
        panic!("{entries:?}");
    };
    assert_eq!((answer.exchange, head, end.conversation), (2, &AnswerHead { status: 404, ..Default::default() }, 8));
}

#[test]
fn every_message_comes_back_as_it_was() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let messages: [&[u8]; 8] =
        [b"{\"id\":1e400,\"id\":\"\\ud800\"}", b"null", b" {} ", b"\xff{", b"", b"{\n\"a\" :1}", b"[1,2]", b"\"text\""];
    let header = header();
    let segment = dir.path().join("s.mcpseg");
    let mut writer = SegmentWriter::create(&segment, &header).expect("a segment can be begun");
    for (index, message) in messages.iter().enumerate() {
        writer.push(&RecordHead { time_ns: 7, ..to_server(index as u64 + 1) }, &Bytes::copy_from_slice(message));
    }
    writer.finish(9, &End::default()).expect("the disk takes it");
    let file = dir.path().join("s.json");
    write(&file, &Session::open_segment(&segment).expect("it opens")).expect("it can be written");
    let read = FileSession::open(&file).expect("it can be read");
    let back = messages_of(&read);
    let back: Vec<&[u8]> = back.iter().map(|message| &message.raw[..]).collect();
    assert_eq!(back, messages);
    assert_eq!((read.header.id, read.ended_ns, read.header.notes), (header.id, Some(9), header.notes));
}

#[test]
fn a_message_that_common_parsers_cannot_read_stands_in_base64() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let nested = |levels: usize| {
        format!(r#"{{"id":1,"method":"m","params":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1))
    };
    let pair = r#"{"id":2,"method":"m","params":"\uD83D\uDE00 \\ud800 \u00e9"}"#;
    let lone = [r#""\ud800""#, r#""\ude00""#, r#""\ud800\u0041""#, r#""\ud800x\udc00""#, r#""\\\ud800""#]
        .map(|text| format!(r#"{{"id":3,"method":"m","params":{text}}}"#));
    let odd = r#"{"id":"\udfff","method":"m"}"#.to_owned();
    let plain = [nested(900), pair.to_owned()];
    let messages: Vec<String> =
        plain.iter().cloned().chain([nested(901), nested(5_000)]).chain(lone).chain([odd]).collect();
    let segment = dir.path().join("s.mcpseg");
    let mut writer = SegmentWriter::create(&segment, &header()).expect("a segment can be begun");
    for (index, message) in messages.iter().enumerate() {
        writer.push(&to_server(index as u64 + 1), &Bytes::from(message.clone()));
    }
    writer.finish(9, &End::default()).expect("the disk takes it");
    let file = dir.path().join("s.json");
    write(&file, &Session::open_segment(&segment).expect("it opens")).expect("it can be written");
    let text = std::fs::read_to_string(&file).expect("it is text");
    assert_eq!(text.matches("\"raw_base64\"").count(), messages.len() - plain.len());
    assert_eq!(text.matches("\"method\": \"m\"").count(), messages.len(), "what it says is told all the same");
    assert_eq!(text.matches("\"jsonrpc_id\": null").count(), 1);
    let back = messages_of(&FileSession::open(&file).expect("it can be read"));
    assert!(back.iter().map(|message| &message.raw[..]).eq(messages.iter().map(String::as_bytes)));
}

#[test]
fn other_spellings_are_understood() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (id, raw, original, answers) in [
        ("id", "raw", "original_raw", "correlated_id"),
        ("proxy_id", "payload", "original_payload", "correlated_id"),
        ("id", "raw_message", "original_raw", "correlation_id"),
    ] {
        let file = dir.path().join("s.json");
        let text = format!(
            r#"{{"id":"7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a","started_at":"2026-11-15T10:00:00+00:00","ended_at":null,
                "transport":"stdio","server_command":"x","server_url":null,"metadata":{{"n":1}},
                "messages":[{{"{id}":"m-1","sequence":1,"timestamp":"2026-11-15T10:00:01.5Z","direction":"client_to_server",
                "transport":"stdio","{raw}":{{"id" : 1.0}},"jsonrpc_id":1,"method":null,"{answers}":"m-0","modified":true,"{original}":{{"id":1}}}}]}}"#
        );
        std::fs::write(&file, text).expect("it can be written");
        let message = &messages_of(&FileSession::open(&file).expect("it can be read"))[0];
        assert_eq!((message.id.as_str(), &message.raw[..], message.modified), ("m-1", &b"{\"id\" : 1.0}"[..], true));
        assert_eq!(
            (message.original_raw.as_deref(), message.correlated_id.as_deref()),
            (Some(&b"{\"id\":1}"[..]), Some("m-0"))
        );
    }
}

/// A large file says the same read as a stream as it does read whole.
#[test]
fn a_large_file_is_read_message_by_message() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.json");
    let message = |sequence: u64| {
        format!(
            r#"{{"sequence":{sequence},"timestamp":"2026-01-01T00:00:00Z","direction":"client_to_server","raw":{{"id":{sequence},"method":"m","params":"{}\"]}}"}}}}"#,
            "x".repeat(2_000)
        )
    };
    let messages: Vec<String> = (1..=1_000).map(message).collect();
    let opening = r#"{ "id": "7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a", "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-02T00:00:00Z""#;
    let closing = r#"], "metadata": {"k":"v","n":1} }"#;
    let check = |text: &str, is_stream: bool| {
        std::fs::write(&path, text).unwrap();
        let stream = FileEntries::begin(&path).unwrap();
        assert_eq!(stream.is_some(), is_stream);
        let session = Session::open(&path, None).unwrap();
        let mut whole = Vec::new();
        session
            .for_each_entry(|entry| -> Result<(), StoreError> {
                whole.push(entry);
                Ok(())
            })
            .unwrap();
        let mut entries = crate::Entries::open(&path, None).unwrap();
        assert_eq!(entries.is_whole(), !is_stream);
        let streamed: Vec<_> = std::iter::from_fn(|| entries.next().unwrap()).collect();
        assert!(streamed == whole, "{} and {} entries", streamed.len(), whole.len());
        assert_eq!((entries.summary(), entries.is_whole()), (session.summary(), true));
    };
    let list = messages.join(",\n");
    check(&format!("{opening}, \"messages\": [\n{list}\n{closing}"), true);
    check(&format!("{opening}, \"messages\" :[{list}]}}"), true);
    // In another order, or with exchanges, it is read whole.
    check(&format!("{{\"messages\":[{list}],{}}}", &opening[1..]), false);
    let linked = list.replace("\"sequence\":", "\"exchange\":1,\"sequence\":");
    check(&format!("{opening}, \"messages\": [{linked}], \"exchanges\": [{{\"id\":1}}]}}"), false);
    // What breaks off is told where it does.
    std::fs::write(&path, format!("{opening}, \"messages\": [{list}")).unwrap();
    let mut entries = crate::Entries::open(&path, None).unwrap();
    let error = loop {
        match entries.next() {
            Ok(entry) => assert!(entry.is_some()),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("it breaks off among its messages"), "{error}");
}
