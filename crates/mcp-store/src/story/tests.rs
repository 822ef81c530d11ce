use super::*;
use crate::recorded::message_id;
use crate::{AnswerHead, ExchangeMark, RequestHead};
use uuid::Uuid;

const UP: Direction = Direction::ClientToServer;
const DOWN: Direction = Direction::ServerToClient;

fn recorded(sequence: u64, direction: Direction, raw: &str) -> Recorded {
    Recorded {
        id: message_id(&Uuid::nil(), sequence),
        time_ns: sequence * 1_000_000,
        conversation: 1,
        ..Recorded::bare(sequence, direction, raw.to_owned())
    }
}

/// Tells messages, numbered from 1, and shows what is known of each: kind, method, subject, the
/// request answered, the operation and its round.
#[track_caller]
fn check(messages: &[(Direction, &str)], expected: &[&str]) {
    let mut story = Story::default();
    let shown: Vec<String> = messages
        .iter()
        .zip(1..)
        .map(|((direction, raw), sequence)| show(&story.tell(recorded(sequence, *direction, raw))))
        .collect();
    assert_eq!(shown, expected);
}

fn show(told: &Told) -> String {
    let mut words = vec![told.kind.as_str().to_owned()];
    words.extend(told.method().map(Cow::into_owned));
    words.extend(told.subject().map(|subject| format!("[{subject}]")));
    words.extend(told.answers.map(|sequence| format!("answers {sequence}")));
    words.extend(told.duration_ns().map(|ns| format!("{}ms", ns / 1_000_000)));
    words.extend(told.status().map(|status| match status.code() {
        Some(code) => format!("{} {code}", status.as_str()),
        None => status.as_str().to_owned(),
    }));
    let is_retry = told.asked.as_ref().is_some_and(|asked| asked.round > 1);
    words.extend(told.asked.as_ref().filter(|_| is_retry).map(|a| format!("round {} of {}", a.round, a.operation)));
    words.join(" ")
}

#[test]
fn answers_know_what_they_answer() {
    check(
        &[
            (UP, r#"{"id":1,"method":"tools/call","params":{"name":"add"}}"#),
            (DOWN, r#"{"id":1,"method":"roots/list"}"#),
            (UP, r#"{"id":"1","method":"resources/read","params":{"uri":"file:///a"}}"#),
            (DOWN, r#"{"id":"1","error":{"code":-32002,"message":"gone"}}"#),
            (UP, r#"{"id":1,"result":{"roots":[]}}"#),
            (DOWN, r#"{"result":{"isError":true,"content":[]},"id":1}"#),
            (DOWN, r#"{"id":1,"result":{}}"#),
            (DOWN, r#"{"method":"notifications/progress"}"#),
            (DOWN, "hello"),
        ],
        &[
            "request tools/call [add]",
            "request roots/list",
            "request resources/read [file:///a]",
            "error resources/read [file:///a] answers 3 1ms err -32002",
            "response roots/list answers 2 3ms ok",
            "response tools/call [add] answers 1 5ms err",
            "response ok",
            "notification notifications/progress",
            "bytes",
        ],
    );
}

#[test]
fn a_retry_is_the_same_operation() {
    let call = r#"{"id":1,"method":"tools/call","params":{"name":"book"}}"#;
    check(
        &[
            (UP, call),
            (DOWN, r#"{"id":1,"result":{"resultType":"input_required","requestState":"s1"}}"#),
            (UP, r#"{"id":7,"method":"tools/call","params":{"name":"book","requestState":"other"}}"#),
            (UP, r#"{"id":2,"method":"tools/call","params":{"name":"book","requestState":"s1"}}"#),
            (DOWN, r#"{"id":2,"result":{"resultType":"input_required","inputRequests":{"b":{},"a":{}}}}"#),
            (UP, r#"{"id":8,"method":"tools/call","params":{"name":"book","inputResponses":{"c":{}}}}"#),
            (UP, r#"{"id":3,"method":"tools/call","params":{"name":"book","inputResponses":{"a":{},"b":{}}}}"#),
            (DOWN, r#"{"id":3,"result":{"resultType":"complete"}}"#),
            (UP, call),
        ],
        &[
            "request tools/call [book]",
            "response tools/call [book] answers 1 1ms input_required",
            "request tools/call [book]",
            "request tools/call [book] round 2 of 1",
            "response tools/call [book] answers 4 1ms input_required round 2 of 1",
            "request tools/call [book]",
            "request tools/call [book] round 3 of 1",
            "response tools/call [book] answers 7 1ms ok round 3 of 1",
            "request tools/call [book]",
        ],
    );
}

#[test]
fn items_of_a_batch_are_answered_one_by_one() {
    check(
        &[
            (UP, r#"[{"id":1,"method":"a"},{"method":"n"},{"id":2,"method":"b"},{"id":3,"method":"c"}]"#),
            (DOWN, r#"{"id":2,"result":{}}"#),
            (DOWN, r#"[{"id":3,"result":{}},{"id":1,"result":{}}]"#),
        ],
        &["batch", "response b answers 1 1ms ok", "batch c answers 1 2ms"],
    );
}

#[test]
fn a_record_that_names_its_request_is_believed() {
    let mut story = Story::default();
    for sequence in 1..=3 {
        story.tell(recorded(sequence, UP, &format!(r#"{{"id":1,"method":"m{sequence}"}}"#)));
    }
    story.tell(recorded(4, UP, r#"[{"id":1,"method":"m4"},{"id":2,"method":"m5"}]"#));
    let mut answer = |id: u64, named: Option<u64>| {
        let mut answer = recorded(9, DOWN, &format!(r#"{{"id":{id},"result":{{}}}}"#));
        answer.correlated_id = named.map(|named| message_id(&Uuid::nil(), named));
        story.tell(answer).method().map(Cow::into_owned)
    };
    assert_eq!(answer(1, Some(2)).as_deref(), Some("m2"));
    assert_eq!(answer(2, Some(4)).as_deref(), Some("m5"));
    assert_eq!(answer(77, Some(3)).as_deref(), Some("m3"), "whatever its id is");
    assert_eq!(answer(1, Some(3)), None, "it was answered");
    assert_eq!(answer(1, Some(99)), None);
    assert_eq!(answer(1, None).as_deref(), Some("m1"));
    assert_eq!(answer(1, None).as_deref(), Some("m4"));
}

#[test]
fn conversations_do_not_mix() {
    let mut story = Story::default();
    story.tell(recorded(1, UP, r#"{"id":1,"method":"a"}"#));
    let other = Recorded { conversation: 2, ..recorded(2, DOWN, r#"{"id":1,"result":{}}"#) };
    assert_eq!(story.tell(other).answers, None);
    assert_eq!(story.tell(recorded(3, DOWN, r#"{"id":1,"result":{}}"#)).answers, Some(1));
}

#[test]
fn who_speaks_is_remembered() {
    let mut story = Story::default();
    let mut said = |direction, raw: &str| {
        let told = story.tell(recorded(1, direction, raw));
        (told.client.as_deref().map(str::to_owned), told.revision.as_deref().map(str::to_owned), told.era())
    };
    assert_eq!(said(UP, r#"{"id":0,"method":"ping"}"#), (None, None, None));
    let opening =
        r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c"}}}"#;
    assert_eq!(said(UP, opening), (Some("c".into()), Some("2025-11-25".into()), Some(Era::Legacy)));
    said(DOWN, r#"{"id":1,"result":{"protocolVersion":"2025-03-26"}}"#);
    assert_eq!(
        said(DOWN, r#"{"method":"notifications/message"}"#),
        (Some("c".into()), Some("2025-03-26".into()), Some(Era::Legacy))
    );
    let modern = r#"{"id":2,"method":"m","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"d"}}}}"#;
    assert_eq!(said(UP, modern), (Some("d".into()), Some("2026-07-28".into()), Some(Era::Modern)));
}

#[test]
fn headers_are_those_a_message_came_with() {
    let mut story = Story::default();
    let mark = ExchangeMark { exchange: 5, conversation: 1, time_ns: 0 };
    let request = RequestHead::parse(b"POST / HTTP/1.1\r\nx-up: 1\r\n");
    let answer = AnswerHead::parse(b"HTTP/1.1 200 OK\r\nx-down: 2\r\n");
    assert!(story.hear(SessionEntry::Request(mark, request)).is_none());
    let mut told = |direction, entry: Option<SessionEntry>| {
        assert!(entry.is_none_or(|entry| story.hear(entry).is_none()));
        let message = Recorded { exchange: Some(5), ..recorded(1, direction, "{}") };
        story.hear(SessionEntry::Message(message)).expect("a message").headers.map(|headers| headers.0.clone())
    };
    let one = |name: &str, value: &str| Some(vec![(name.to_owned(), value.to_owned())]);
    assert_eq!(told(UP, None), one("x-up", "1"));
    assert_eq!(told(DOWN, None), None);
    assert_eq!(told(DOWN, Some(SessionEntry::Answer(mark, answer))), one("x-down", "2"));
    assert_eq!(told(DOWN, Some(SessionEntry::End(mark, None))), None);
}

#[test]
fn noise_and_events_are_no_messages() {
    let mut story = Story::default();
    let line = r#"{"id":1,"method":"a"}"#;
    let noise = story.tell(Recorded { noise: true, ..recorded(1, DOWN, line) });
    assert_eq!((noise.kind, noise.method(), noise.id()), (MessageKind::Noise, None, None));
    let event = story.tell(Recorded { event: Some("too large".into()), ..recorded(2, DOWN, "") });
    assert_eq!((event.kind, event.status()), (MessageKind::Event, None));
    assert_eq!(story.tell(recorded(3, UP, r#"{"id":1,"result":{}}"#)).answers, None);
}

#[test]
fn codes_that_are_no_numbers_keep_their_spelling() {
    let status = |raw: &str| Story::default().tell(recorded(1, DOWN, raw)).status().cloned();
    let error =
        |code, message: Option<&str>| Some(Status::Err(Fault::Error { code, message: message.map(Into::into) }));
    assert_eq!(status(r#"{"id":1,"error":{"code":1e400}}"#), error(Some(Err("1e400".into())), None));
    assert_eq!(status(r#"{"id":1,"error":{"message":"x\u0000"}}"#), error(None, Some("x\0")));
    assert_eq!(status(r#"{"error":"odd"}"#), error(None, None));
}

#[test]
fn what_a_live_replay_sent_is_known_by_its_id() {
    let sent = |direction, raw: &str, from_proxy| {
        Story::default().tell(Recorded { from_proxy, ..recorded(1, direction, raw) }).is_replay
    };
    let request = r#"{"id":"mcp-proxy-replay-1","method":"tools/call"}"#;
    assert!(sent(UP, request, true));
    // A client may call its requests so too, and an answer was not sent by a replay.
    assert!(!sent(UP, request, false));
    assert!(!sent(DOWN, r#"{"id":"mcp-proxy-replay-1","result":{}}"#, true));
    assert!(!sent(UP, r#"{"id":"mcp-proxy-1","method":"ping"}"#, true));
    assert!(!sent(UP, r#"{"method":"notifications/cancelled"}"#, true));
}
