//! The client against a server that says what it is told to.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::JoinHandle;

use super::*;
use crate::api::{Event, Gap};

/// Answers one request with `answer`, and returns the request.
fn answering(socket: &Path, answer: String) -> JoinHandle<String> {
    use std::io::{Read, Write};
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let read = stream.read(&mut request).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..read]).into_owned()
    })
}

fn whole(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn an_action_says_who_acts_and_what_came_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let server = answering(&socket, whole("200 OK", r#"{"released":1}"#));
    let hand = Hand { lease: None, by: Some("ann & bob".into()), take: true };
    let client = Client::new(Address::Socket(socket)).acting_as(hand);
    assert_eq!(client.forward(7).await.unwrap(), Released { released: 1 });
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /v1/held/7/forward?by=ann%20%26%20bob&take=true HTTP/1.1\r\n"), "{request}");
}

#[tokio::test]
async fn a_refusal_is_in_the_words_of_the_instance() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let body = r#"{"error":{"code":"not_held","message":"message 7 is not held"}}"#;
    let server = answering(&socket, whole("404 Not Found", body));
    let refused = Client::new(Address::Socket(socket)).forward(7).await.unwrap_err();
    assert_eq!(refused.to_string(), "message 7 is not held");
    assert!(matches!(refused, ClientError::Refused { status: 404, .. }));
    server.join().unwrap();
}

#[tokio::test]
async fn events_come_one_by_one_and_unknown_ones_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let stream = ": hello\n\nevent: gap\ndata: {\"missed\":\ndata: 3}\n\nevent: new\ndata: {}\n\nevent: gap\ndata: {\"missed\":4}\n\n";
    let server = answering(&socket, whole("200 OK", stream));
    let mut events = Client::new(Address::Socket(socket)).events(&EventsQuery::default()).await.unwrap();
    for expected in [3, 4] {
        let event = events.next().await.unwrap();
        assert!(matches!(event, Some(Event::Gap(Gap { missed })) if missed == expected), "{event:?}");
    }
    assert!(events.next().await.unwrap().is_none());
    server.join().unwrap();
}

#[tokio::test]
async fn nobody_there_is_said_plainly() {
    let dir = tempfile::tempdir().unwrap();
    let error = Client::new(Address::Socket(dir.path().join("s"))).instance().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreached { .. }));
    assert!(error.to_string().ends_with("cannot be reached"));
}

#[test]
fn names_stay_within_their_segment() {
    assert_eq!(connect::escaped("../a b/é"), "%2E%2E%2Fa%20b%2F%C3%A9");
}
