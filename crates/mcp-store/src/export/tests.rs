use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::redact::planted::planted;
use crate::segment::{End, RecordHead, RecordKind, SegmentWriter};
use crate::{Direction, SessionHeader, Transport};

const ALL: [Format; 6] = [Format::Json, Format::Ndjson, Format::Har, Format::Markdown, Format::Html, Format::Curl];

/// A session of calls that are answered with errors, so that every format shows all of it.
fn write_session(path: &Path, texts: &[String]) -> Session {
    let header = SessionHeader {
        id: uuid::Uuid::parse_str("7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a").expect("a uuid"),
        started_ns: 1_800_000_000_000_000_000,
        transport: Transport::Stdio,
        server_command: Some(format!("server --x {}", texts[0])),
        server_url: None,
        name: None,
        notes: BTreeMap::from([("note".into(), texts[0].clone())]),
        session_file: None,
        continues: None,
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
            if format.is_verbatim() {
                continue;
            }
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
