//! The ids that the proxy gives to events of its own are kept beside the messages they carried.

use mcp_store::Recorded;
use serde_json::{Value, json};

use crate::bridge_kit::{Event, Events, Session, expect_stream, until_recorded};
use crate::http_kit::{Recording, call};
use crate::kit::Sandbox;

fn notification(name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}"}}"#)
}

fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// What the server said, as it is recorded.
#[track_caller]
fn recorded<'a>(recording: &'a Recording, message: &str) -> &'a Recorded {
    let found = recording.by_server().into_iter().find(|it| it.raw == message.as_bytes());
    found.unwrap_or_else(|| panic!("not recorded: {message}"))
}

/// Every event is recorded with the id that its client saw. Those without data carry nothing.
#[track_caller]
fn check(recording: &Recording, events: &[Event]) {
    for event in events.iter().filter(|event| !event.data.is_empty()) {
        let recorded = recorded(recording, &event.data);
        assert!(event.id.is_some() && recorded.event_id == event.id, "{event:?}: {:?}", recorded.event_id);
        assert!(recorded.exchange.is_some(), "{event:?}");
    }
}

#[test]
fn on_every_stream_of_a_session() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let sandbox = Sandbox::new();
        let proxy = sandbox.listen_to_puppet();
        let session = Session::open_with(&proxy, revision);
        let mut stream = session.listen(None);
        session.say(&[notification("first"), notification("second")]);
        let mut events = vec![stream.next()];
        while events.last().is_some_and(|event| !event.data.contains("second")) {
            events.push(stream.next());
        }
        // A call whose answer becomes a stream because of what comes before it.
        let mut waiting = session.hold(&call(1, "ignore/this"), "ignore/this");
        session.say(&[notification("third"), result("1")]);
        expect_stream(&mut waiting);
        events.extend(waiting.all());
        assert_eq!(events.iter().filter(|event| !event.data.is_empty()).count(), 4);
        // And one whose answer is no event.
        let plain = session.ask(call(2, "plain"));
        assert_eq!(plain.head.get("content-type").as_deref(), Some("application/json"));
        proxy.end();
        let recording = Recording::of(&sandbox);
        check(&recording, &events);
        assert_eq!(recording.message(r#""result":{"method":"plain"}"#).event_id, None);
        let asked = recording.message("ignore/this");
        assert_eq!(recorded(&recording, &notification("third")).exchange, asked.exchange);
        assert_ne!(
            recorded(&recording, &notification("first")).exchange,
            asked.exchange,
            "it came on the stream of a GET"
        );
    }
}

#[test]
fn also_while_the_client_is_away_and_on_the_exchange_it_comes_back_by() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut waiting = session.hold(&call(1, "ignore/this"), "ignore/this");
    session.say(&[notification("first")]);
    expect_stream(&mut waiting);
    let first = waiting.next();
    drop(waiting);
    session.say(&[notification("away")]);
    until_recorded(&sandbox, &notification("away"));
    let mut rest = session.listen(first.id.as_deref());
    let away = rest.next();
    assert_eq!(away.data, notification("away"));
    session.say(&[notification("back"), result("1")]);
    let events: Vec<Event> = [vec![first, away], rest.all()].concat();
    assert_eq!(events.len(), 4);
    proxy.end();
    let recording = Recording::of(&sandbox);
    check(&recording, &events);
    let exchange = |name: &str| recorded(&recording, &notification(name)).exchange;
    assert_eq!(exchange("away"), exchange("first"), "there was no other yet");
    assert_ne!(exchange("back"), exchange("first"));
    assert_eq!(recorded(&recording, &result("1")).correlated_id, Some(recording.message("ignore/this").id.clone()));
}

#[test]
fn of_answers_that_the_proxy_makes() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut plain = session.hold(&call(1, "ignore/plain"), "ignore/plain");
    let asked = r#"{"jsonrpc":"2.0","id":2,"method":"ignore/this","params":{"_meta":{"progressToken":5}}}"#;
    let mut streaming = session.hold(asked, "ignore/this");
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}"#;
    session.say(&[progress]);
    expect_stream(&mut streaming);
    let mut events = vec![streaming.next()];
    session.tell(r#"{"jsonrpc":"2.0","method":"exit/7"}"#);
    assert_eq!(plain.response().error(), (5030, json!(1)));
    events.extend(streaming.all());
    assert_eq!((events.len(), &events[1].json()["error"]["code"]), (2, &json!(5030)));
    proxy.end();
    let recording = Recording::of(&sandbox);
    check(&recording, &events);
    let answer = recording.message(r#""id":1,"error""#);
    assert_eq!((answer.exchange, &answer.event_id), (recording.message("ignore/plain").exchange, &None));
}

#[test]
fn and_people_can_see_them() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("session.json");
    let proxy = sandbox.listen_to_fixture(&["puppet"], &["--session-file", file.to_str().unwrap()]);
    let session = Session::open(&proxy);
    let mut stream = session.listen(None);
    session.say(&[notification("seen")]);
    let event = stream.next();
    let id = event.id.expect("it has an id");
    drop(stream);
    proxy.end();
    crate::schema::check(&file);
    let saved: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let saved = saved["messages"].as_array().unwrap().iter().find(|message| message["event_id"] == *id);
    assert_eq!(saved.expect("it is in the file")["method"], "notifications/seen");
    let shown = sandbox.stdout(["inspect", "-v", file.to_str().unwrap()]);
    assert!(shown.contains(&format!("event id {id}")), "{shown}");
}
