//! Session files that others wrote, and messages that JSON cannot hold as they are.

use super::*;
use crate::recorded::Transport;
use crate::segment::{End, RecordHead, RecordKind, SegmentWriter};

#[test]
fn every_message_comes_back_as_it_was() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let messages: [&[u8]; 8] =
        [b"{\"id\":1e400,\"id\":\"\\ud800\"}", b"null", b" {} ", b"\xff{", b"", b"{\n\"a\" :1}", b"[1,2]", b"\"text\""];
    let header = SessionHeader {
        id: Uuid::new_v4(),
        started_ns: 5,
        transport: Transport::Stdio,
        server_command: None,
        server_url: None,
        name: None,
        notes: [("k".to_owned(), "v \"quoted\"".to_owned())].into(),
        session_file: None,
        continues: None,
    };
    let segment = dir.path().join("s.mcpseg");
    let mut writer = SegmentWriter::create(&segment, &header).expect("a segment can be begun");
    for (index, message) in messages.iter().enumerate() {
        let head = RecordHead {
            kind: RecordKind::Message,
            direction: Direction::ClientToServer,
            flags: 0,
            conversation: 0,
            sequence: index as u64 + 1,
            time_ns: 7,
            correlated: 0,
        };
        writer.push(&head, &bytes::Bytes::copy_from_slice(message));
    }
    writer.finish(9, &End::default()).expect("the disk takes it");
    let file = dir.path().join("s.json");
    write(&file, &Session::open_segment(&segment).expect("it opens")).expect("it can be written");
    let read = FileSession::read(&file).expect("it can be read");
    let back: Vec<&[u8]> = read.messages.iter().map(|message| &message.raw[..]).collect();
    assert_eq!(back, messages);
    assert_eq!((read.header.id, read.ended_ns, read.header.notes), (header.id, Some(9), header.notes));
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
        let read = FileSession::read(&file).expect("it can be read");
        let message = &read.messages[0];
        assert_eq!((message.id.as_str(), &message.raw[..], message.modified), ("m-1", &b"{\"id\" : 1.0}"[..], true));
        assert_eq!(
            (message.original_raw.as_deref(), message.correlated_id.as_deref()),
            (Some(&b"{\"id\":1}"[..]), Some("m-0"))
        );
    }
}
