//! Sessions over HTTP, as `inspect` shows them. They are written here record by record.

use std::path::Path;

use bytes::Bytes;
use mcp_store::segment::End;
use mcp_store::{Direction, RecordHead, RecordKind, SegmentWriter, SessionHeader, Transport};

use crate::commands::snapshot_settings;
use crate::kit::Sandbox;

const UP: Direction = Direction::ClientToServer;
const DOWN: Direction = Direction::ServerToClient;

struct Capture {
    writer: SegmentWriter,
    conversation: u32,
    time_ns: u64,
    messages: u64,
}

impl Capture {
    fn begin(path: &Path) -> Self {
        let header = SessionHeader {
            server_url: Some("http://127.0.0.1:8080/mcp".into()),
            ..SessionHeader::begun(
                "7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a".parse().unwrap(),
                1_800_000_000_000_000_000,
                Transport::StreamableHttp,
            )
        };
        let writer = SegmentWriter::create(path, &header).unwrap();
        Self { writer, conversation: 1, time_ns: header.started_ns, messages: 0 }
    }

    fn head(&mut self, kind: RecordKind, direction: Direction, sequence: u64, correlated: u64) -> RecordHead {
        self.time_ns += 1_000_000;
        let (conversation, time_ns) = (self.conversation, self.time_ns);
        RecordHead { kind, direction, flags: 0, conversation, sequence, time_ns, correlated }
    }

    fn exchange(&mut self, direction: Direction, exchange: u64, head: &[u8]) {
        let record = self.head(RecordKind::Exchange, direction, exchange, 0);
        self.writer.push(&record, &Bytes::copy_from_slice(head));
    }

    fn over(&mut self, exchange: u64, how: &str) {
        let record = self.head(RecordKind::ExchangeEnd, DOWN, exchange, 0);
        self.writer.push(&record, &Bytes::copy_from_slice(how.as_bytes()));
    }

    fn message(&mut self, direction: Direction, exchange: u64, event_id: &str, correlated: u64, message: &str) {
        self.messages += 1;
        let record = self.head(RecordKind::Message, direction, self.messages, correlated);
        self.writer.push_linked(&record, exchange, event_id.as_bytes(), &Bytes::copy_from_slice(message.as_bytes()));
    }

    fn end(self) {
        self.writer.finish(self.time_ns, &End::default()).unwrap();
    }
}

/// What happens on a day with HTTP.
fn write_session(path: &Path) {
    let mut capture = Capture::begin(path);
    // Turned away at first.
    capture.exchange(UP, 1, b"POST /mcp HTTP/1.1\r\naccept: application/json, text/event-stream\r\n");
    capture.message(UP, 1, "", 0, r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
    capture.exchange(DOWN, 1, b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm=\"\x9b\x1b[2J\"\r\n");
    capture.over(1, "");
    // A call answered as JSON, a notification that is only taken, a stream that nothing comes on yet.
    capture.exchange(UP, 2, b"POST /mcp HTTP/1.1\r\nauthorization: [masked]\r\n");
    capture.message(UP, 2, "", 0, r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
    capture.exchange(
        DOWN,
        2,
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nmcp-session-id: s1\r\n",
    );
    capture.message(DOWN, 2, "", 2, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    capture.over(2, "");
    capture.exchange(UP, 3, b"POST /mcp HTTP/1.1\r\nmcp-session-id: s1\r\n");
    capture.message(UP, 3, "", 0, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    capture.exchange(UP, 4, b"GET /mcp HTTP/1.1\r\naccept: text/event-stream\r\n");
    capture.exchange(DOWN, 3, b"HTTP/1.1 202 Accepted\r\n");
    capture.over(3, "");
    capture.exchange(DOWN, 4, b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n");
    // Another client, newer, that says one thing in its headers and another in the message.
    capture.conversation = 2;
    let modern = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n";
    capture.exchange(UP, 5, format!("{modern}Mcp-Name: =?base64?G1sySg==?=\r\n").as_bytes());
    capture.message(UP, 5, "", 0, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}"#);
    capture.exchange(DOWN, 5, b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n");
    capture.message(DOWN, 5, "5-1", 0, r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
    capture.message(DOWN, 5, "5-\u{202e}2", 5, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    capture.over(5, "");
    // Its long call breaks off, and what comes on the first client's second stream does not.
    capture.exchange(UP, 6, format!("{modern}Mcp-Name: echo\r\n").as_bytes());
    capture.message(UP, 6, "", 0, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}"#);
    capture.exchange(DOWN, 6, b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n");
    capture.over(6, "server broke off");
    capture.conversation = 1;
    capture.exchange(UP, 7, b"GET /mcp HTTP/1.1\r\nlast-event-id: 8\r\n");
    capture.exchange(DOWN, 7, b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n");
    capture.message(DOWN, 7, "9", 0, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    capture.exchange(UP, 8, b"DELETE /mcp HTTP/1.1\r\n");
    capture.exchange(DOWN, 8, b"HTTP/1.1 200 OK\r\n");
    capture.over(8, "");
    capture.over(4, "client left");
    capture.over(7, "");
    capture.exchange(UP, 9, b"GET /\x1b[2J HTTP/1.1\r\n");
    capture.end();
}

#[test]
fn inspect_shows_what_http_says_beside_the_messages() {
    let sandbox = Sandbox::new();
    write_session(&sandbox.path("s.mcpseg"));
    let plain = sandbox.stdout(["inspect", "s.mcpseg"]);
    insta::assert_snapshot!("inspect_http", plain);
    let verbose = sandbox.stdout(["inspect", "-v", "s.mcpseg"]);
    assert!(!verbose.contains(['\x1b', '\u{9b}', '\u{202e}']), "nothing a peer sent is obeyed");
    insta::assert_snapshot!("inspect_http_verbose", verbose);
}

#[test]
fn the_only_conversation_needs_no_number() {
    let sandbox = Sandbox::new();
    let mut capture = Capture::begin(&sandbox.path("s.mcpseg"));
    capture.exchange(UP, 1, b"POST /mcp HTTP/1.1\r\n");
    capture.message(UP, 1, "", 0, r#"{"id":2,"method":"tools/call","params":{"name":"echo"}}"#);
    capture.exchange(DOWN, 1, b"HTTP/1.1 404 Not Found\r\n");
    capture.end();
    let shown = sandbox.stdout(["inspect", "s.mcpseg"]);
    assert!(shown.ends_with("\n#001 → tools/call [echo] id=2\n       POST /mcp 404\n"), "{shown}");
}

/// The file says what the recording says.
#[test]
fn a_session_file_is_shown_as_the_recording_it_was_made_of() {
    let sandbox = Sandbox::new();
    write_session(&sandbox.path("s.mcpseg"));
    let session = mcp_store::Session::open_segment(&sandbox.path("s.mcpseg")).unwrap();
    mcp_store::session_file::write(&sandbox.path("s.json"), &session).unwrap();
    crate::schema::check(&sandbox.path("s.json"));
    for args in [&["inspect"][..], &["inspect", "-v"]] {
        let shown = |file: &'static str| sandbox.stdout(args.iter().copied().chain([file]));
        assert_eq!(shown("s.json"), shown("s.mcpseg"));
    }
    let text = std::fs::read_to_string(sandbox.path("s.json")).unwrap();
    let (_, exchanges) = text.split_once("  \"exchanges\"").unwrap();
    snapshot_settings().bind(|| insta::assert_snapshot!("session_file_exchanges", exchanges));
}
