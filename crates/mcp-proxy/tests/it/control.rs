//! The control API of a running instance: what it answers, and what it does not.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use mcp_control::api::{Event, EventsQuery, Header, LeaseRequest, Mark, Notes, PageQuery, VerdictKind};
use mcp_control::{Address, Client};
use serde_json::json;

use crate::ask_kit::write_rules;
use crate::control_kit::{Answer, Attached, address, over_tcp, request};
use crate::http_kit::{self, MODERN, Origin, STREAM};
use crate::kit::{PATIENCE, Sandbox, until};

#[test]
fn everything_that_is_described_is_there() {
    let instance = Attached::begin(&["--quiet"], &["tools"]);
    let document = instance.ask("GET", "/openapi.json", "").json();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 30, "{:?}", paths.keys().collect::<Vec<_>>());
    for (path, methods) in paths {
        // Only a real message has a stream or an answer; what counts is that the path is known.
        let path = path.replace("{sequence}", "1").replace("{name}", "b1").replace("{id}", "s1");
        for method in methods.as_object().unwrap().keys().filter(|_| path != "/v1/events") {
            let answer = instance.ask(&method.to_uppercase(), &path, "");
            let unknown = ["method_not_allowed", "there is nothing at this path"];
            assert!(!unknown.iter().any(|text| answer.text().contains(text)), "{method} {path}: {}", answer.text());
            assert_eq!(answer.head.matches("content-type: application/json").count(), 1, "{}", answer.head);
            for header in ["content-security-policy: default-src 'none'; frame-ancestors 'none'", "nosniff", "no-store"]
            {
                assert!(answer.head.contains(header), "{}", answer.head);
            }
        }
    }
    assert!(instance.proxy.end().0.success());
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code().as_str()), (status, code), "{}", answer.text());
    assert!(answer.head.contains("nosniff"), "{}", answer.head);
}

#[test]
fn what_is_wrong_is_said() {
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    instance.call(1, "x");
    let long = format!("/v1/messages?filter={}", "x".repeat(57 * 1024));
    let cases = [
        ("GET", "/", "", 404, "not_found"),
        ("GET", "/v1/../v1/instance", "", 404, "not_found"),
        ("GET", "/v1/%2e%2e/openapi.json", "", 404, "not_found"),
        ("GET", "/v1%2finstance", "", 404, "not_found"),
        ("GET", "//v1/instance", "", 404, "not_found"),
        ("GET", "/v1/messages/../instance", "", 404, "not_found"),
        ("GET", "/v1/messages/1/../../instance", "", 404, "not_found"),
        ("GET", "/v1/messages/0", "", 404, "not_found"),
        ("GET", "/v1/messages/+1", "", 404, "not_found"),
        ("GET", "/v1/messages/99999999999999999999999", "", 404, "not_found"),
        ("GET", &long, "", 400, "bad_request"),
        ("POST", "/v1/instance", "", 405, "method_not_allowed"),
        ("GET", "/v1/messages?limit=0", "", 400, "bad_request"),
        ("GET", "/v1/messages?limit=1001", "", 400, "bad_request"),
        ("GET", "/v1/messages?before=1&after=1", "", 400, "bad_request"),
        ("GET", "/v1/messages?limit=1&limit=2", "", 400, "bad_request"),
        ("GET", "/v1/messages?after=9223372036854775808", "", 400, "bad_request"),
        ("GET", "/v1/messages?nonsense=1", "", 400, "bad_request"),
        ("GET", "/v1/messages?filter=toll:x", "", 400, "bad_filter"),
        ("GET", "/v1/messages/1/exchange", "", 404, "not_found"),
        ("GET", "/v1/messages/9/exchange", "", 404, "not_found"),
        ("GET", "/v1/messages/1/explain", "", 404, "not_found"),
        ("GET", "/v1/messages/9/explain", "", 404, "not_found"),
        ("GET", "/v1/events?per_second=0", "", 400, "bad_request"),
        ("GET", "/v1/events?per_second=10001", "", 400, "bad_request"),
        ("GET", "/v1/events?filter=(", "", 400, "bad_filter"),
        ("GET", "/v1/events?lease=x", "", 423, "locked"),
        ("POST", "/v1/held/1/forward", "", 404, "not_held"),
        ("POST", "/v1/held/1/forward", "{}", 400, "bad_request"),
        ("POST", "/v1/held/1/forward?by=a&by=b", "", 400, "bad_request"),
        ("POST", "/v1/held/1/modify", r#"{"raw":{},"more":1}"#, 400, "bad_request"),
        ("POST", "/v1/held/1/modify", r#"{"raw":{},"raw":{}}"#, 400, "bad_request"),
        ("POST", "/v1/held/1/modify", "", 400, "bad_request"),
        ("POST", "/v1/held/1/answer", "{}", 400, "bad_request"),
        ("POST", "/v1/held/1/answer", r#"{"result":{},"error":{"code":1,"message":""}}"#, 400, "bad_request"),
        ("POST", "/v1/held/1/answer", r#"{"raw":{"method":"x"}}"#, 422, "not_json_rpc"),
        ("PUT", "/v1/mode", r#"{"mode":"neither"}"#, 400, "bad_request"),
        ("POST", "/v1/breakpoints", r#"{"filter":"toll:x"}"#, 400, "bad_filter"),
        ("POST", "/v1/breakpoints", r#"{"filter":"tool:x","name":"../x"}"#, 400, "bad_request"),
        ("DELETE", "/v1/breakpoints/%2e%2e%2fx", "", 404, "not_found"),
        ("POST", "/v1/messages/2/replay", "{}", 409, "not_possible"),
        ("POST", "/v1/messages/2/replay", "", 409, "not_possible"),
        ("POST", "/v1/messages/1/replay", r#"{"raw":[1]}"#, 422, "not_json_rpc"),
        ("PUT", "/v1/messages/99/mark", "{}", 404, "not_found"),
        ("PUT", "/v1/messages/1/mark", "[null, null]", 400, "bad_request"),
        ("PATCH", "/v1/notes", r#"{"":"x"}"#, 400, "bad_request"),
        ("POST", "/v1/save", r#"{"file":"relative.json"}"#, 400, "bad_request"),
        ("POST", "/v1/save", r#"{"file":"/dev/null"}"#, 409, "not_possible"),
        ("POST", "/v1/lease", r#"{"holder":" "}"#, 400, "bad_request"),
        ("DELETE", "/v1/lease?lease=x", "", 423, "locked"),
        ("POST", "/v1/login", r#"{"token":"x"}"#, 404, "not_found"),
    ];
    for (method, path, body, status, code) in cases {
        let answer = instance.ask(method, path, body);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{method} {path} {body}: {}",
            answer.text()
        );
    }
    let form = request("PUT", "/v1/mode", &["content-type: text/plain"], r#"{"mode":"intercept"}"#);
    refused(&instance.raw(&form), 415, "unsupported_media_type");
    let nothing = request("PUT", "/v1/mode", &[], r#"{"mode":"intercept"}"#);
    refused(&instance.raw(&nothing), 415, "unsupported_media_type");
    let long = format!(r#"{{"filter":"tool:{}"}}"#, "x".repeat(65 * 1024));
    refused(&instance.ask("POST", "/v1/breakpoints", &long), 413, "too_large");
    assert_eq!(instance.raw(b"nonsense\r\n\r\n").status, 400);
    // Nothing of this changed anything.
    let snapshot = instance.runtime.block_on(instance.client.snapshot()).unwrap();
    assert_eq!((snapshot.breakpoints.len(), snapshot.held.len(), snapshot.last_sequence), (0, 0, 2));
    assert_eq!(snapshot.mode, mcp_control::api::Mode::Passthrough);
    instance.call(2, "still here");
    assert!(instance.proxy.end().0.success());
}

#[test]
fn messages_may_be_as_long_as_any_but_no_longer() {
    let instance = Attached::begin(&["--quiet", "--message-limit", "100000"], &["tools"]);
    let modify = |length: usize| format!(r#"{{"raw":"{}"}}"#, "x".repeat(length));
    refused(&instance.ask("POST", "/v1/held/1/modify", &modify(99_000)), 404, "not_held");
    refused(&instance.ask("POST", "/v1/held/1/modify", &modify(200_000)), 413, "too_large");
    assert!(instance.proxy.end().0.success());
}

/// A body says what to send instead, and may be left out with its type.
#[test]
fn a_replay_needs_no_body() {
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    instance.call(1, "once");
    let bare = instance.raw(&request("POST", "/v1/messages/1/replay", &[], ""));
    assert_eq!((bare.status, &bare.json()["sequence"]), (200, &json!(3)), "{}", bare.text());
    let raw = crate::hold_kit::call(9, "echo", &"x".repeat(100_000));
    let other = instance.ask("POST", "/v1/messages/1/replay", &json!({ "raw": raw }).to_string());
    assert_eq!(other.status, 200, "{}", other.text());
    assert!(instance.proxy.end().0.success());
}

#[test]
fn tcp_is_open_to_whoever_has_the_token_and_nobody_else() {
    let (mut instance, port, token) = Attached::over_tcp();
    instance.call(1, "x");
    let token = &*token;
    let host = &*format!("host: 127.0.0.1:{port}");
    let bearer = &*format!("authorization: Bearer {token}");
    let json = "content-type: application/json";
    let get = |headers: &[&str]| over_tcp(port, "GET", "/v1/instance", headers, "").status;
    assert_eq!(get(&[host, bearer]), 200);
    assert_eq!((get(&[host]), get(&[host, "authorization: Bearer x"]), get(&[bearer])), (401, 401, 400));
    assert_eq!(over_tcp(port, "GET", &format!("/v1/instance?token={token}"), &[host], "").status, 401);
    assert_eq!(get(&["host: evil.example", bearer]), 403);
    assert_eq!(get(&[&format!("host: evil.example:{port}"), bearer]), 403);
    assert_eq!(get(&[host, host, bearer]), 400);
    assert_eq!(get(&[host, "origin: http://evil.example", bearer]), 403);
    assert_eq!(get(&[host, "origin: null", bearer]), 403);
    // Every path is closed, those that do not exist too.
    for path in ["/", "/openapi.json", "/v1/events", "/v1/nothing", "/v1/../openapi.json"] {
        let answer = over_tcp(port, "GET", path, &[host], "");
        refused(&answer, 401, "unauthorized");
        assert!(answer.head.contains("www-authenticate: bearer") && !answer.head.contains("access-control"));
    }
    let preflight = [host, "origin: http://evil.example", "access-control-request-method: PUT"];
    assert_eq!(over_tcp(port, "OPTIONS", "/v1/mode", &preflight, "").status, 403);

    let mode = |headers: &[&str]| over_tcp(port, "PUT", "/v1/mode", headers, r#"{"mode":"passthrough"}"#).status;
    assert_eq!((mode(&[host, bearer, json]), mode(&[host, bearer, "content-type: text/plain"])), (200, 415));
    let log_in =
        |token: &str| over_tcp(port, "POST", "/v1/login", &[host, json], &json!({ "token": token }).to_string());
    assert_eq!(log_in("wrong").status, 401);
    let answer = log_in(token);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("; httponly") && cookie.contains("; samesite=strict"), "{cookie}");
    let cookie = &*format!("cookie: {}", cookie.split(';').next().unwrap());
    let origin = &*format!("origin: http://127.0.0.1:{port}");
    assert_eq!(
        (get(&[host, cookie]), mode(&[host, cookie, json]), mode(&[host, cookie, json, origin])),
        (200, 403, 200)
    );
    // It was for one time.
    assert_eq!((log_in(token).status, get(&[host, bearer])), (401, 401));
    assert!(instance.proxy.end().0.success());
}

/// Whoever can connect and has no token keeps nobody out who has it, nor one who is about to log in.
#[test]
fn a_crowd_of_strangers_shuts_nobody_out() {
    let (instance, port, token) = Attached::over_tcp();
    let begun = format!(
        "POST /v1/login HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
    );
    let stranger = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // It may have been turned away already.
        let _ = stream.write_all(begun.as_bytes());
        stream
    };
    let crowd: Vec<TcpStream> = (0..300).map(stranger).collect();
    let host = &*format!("host: 127.0.0.1:{port}");
    let bearer = &*format!("authorization: Bearer {token}");
    assert_eq!(over_tcp(port, "GET", "/v1/instance", &[host, bearer], "").status, 200);
    // The oldest made room.
    let mut oldest = &crowd[0];
    oldest.set_read_timeout(Some(PATIENCE)).unwrap();
    let left = oldest.read(&mut [0; 1]);
    assert!(matches!(&left, Ok(0)) || left.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    let login = json!({ "token": token }).to_string();
    let json = "content-type: application/json";
    assert_eq!(over_tcp(port, "POST", "/v1/login", &[host, json], &login).status, 200);
    drop(crowd);
    assert!(instance.proxy.end().0.success());
}

#[test]
fn a_face_goes_on_from_where_it_was() {
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    for id in 1..=3 {
        instance.call(id, "early");
    }
    let after = EventsQuery { after: Some(2), ..EventsQuery::default() };
    let mut events = instance.runtime.block_on(instance.client.events(&after)).unwrap();
    assert!(matches!(instance.next(&mut events), Event::Snapshot(snapshot) if snapshot.last_sequence == 6));
    for id in 4..=5 {
        instance.call(id, "late");
    }
    for sequence in 3..=10 {
        match instance.next(&mut events) {
            Event::Message(message) => {
                assert_eq!((message.sequence, message.method.as_deref()), (sequence, Some("tools/call")));
                assert_eq!(message.tool.as_deref(), Some("echo"));
            }
            other => panic!("{other:?} in place of #{sequence}"),
        }
    }
    // Only what matches, of what was and of what comes.
    let filtered = EventsQuery { after: Some(0), filter: Some("< id:5".into()), ..EventsQuery::default() };
    let mut events = instance.runtime.block_on(instance.client.events(&filtered)).unwrap();
    assert!(matches!(instance.next(&mut events), Event::Snapshot(_)));
    assert!(matches!(instance.next(&mut events), Event::Message(message) if message.sequence == 10));
    instance.call(5, "again");
    assert!(matches!(instance.next(&mut events), Event::Message(message) if message.sequence == 12));
    assert!(instance.proxy.end().0.success());
}

#[test]
fn nothing_is_missing_or_told_twice_while_traffic_flows() {
    const CALLS: u64 = 200;
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    instance.call(1, "first");
    let (address, runtime) =
        (instance.address.clone(), tokio::runtime::Builder::new_current_thread().enable_all().build());
    let watching = std::thread::spawn(move || {
        runtime.unwrap().block_on(async {
            let all = EventsQuery { after: Some(0), ..EventsQuery::default() };
            let mut told = Vec::new();
            for _ in 0..5 {
                // Attaches anew again and again, each time from where it was.
                let after = EventsQuery { after: Some(told.last().copied().unwrap_or(0)), ..all.clone() };
                let mut events = Client::new(address.clone()).events(&after).await.unwrap();
                let enough = told.len() + CALLS as usize / 2;
                while told.len() < enough && told.len() < 2 * CALLS as usize {
                    let next = tokio::time::timeout(PATIENCE, events.next()).await.expect("an event comes in time");
                    match next.unwrap().expect("the stream goes on") {
                        Event::Message(message) => told.push(message.sequence),
                        Event::Gap(gap) => panic!("{} are missing", gap.missed),
                        _ => {}
                    }
                }
            }
            told
        })
    });
    for id in 2..=CALLS {
        instance.call(id, "more");
    }
    assert_eq!(watching.join().unwrap(), (1..=2 * CALLS).collect::<Vec<_>>());
    assert!(instance.proxy.end().0.success());
}

#[test]
fn a_stuck_face_holds_nothing_up_and_is_told_what_it_missed() {
    const CALLS: u64 = 120;
    /// More in all than a face can fall behind by.
    const TEXT: usize = 200_000;
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    let Address::Socket(socket) = instance.address.clone() else { unreachable!("it is a socket") };
    let mut stuck = UnixStream::connect(&socket).unwrap();
    stuck.write_all(&request("GET", "/v1/events", &[], "")).unwrap();
    let nothing = EventsQuery { filter: Some("method:nothing".into()), ..EventsQuery::default() };
    let open = |_| instance.runtime.block_on(instance.client.events(&nothing)).unwrap();
    let others: Vec<_> = (0..9).map(open).collect();
    until("ten faces are there", || instance.runtime.block_on(instance.client.snapshot()).unwrap().faces == 10);
    let text = "x".repeat(TEXT);
    for id in 1..=CALLS {
        instance.call(id, &text);
    }
    for mut events in others {
        assert!(matches!(instance.next(&mut events), Event::Snapshot(_)));
        drop(events);
    }
    // It wakes up: what it is told and what it has missed is everything.
    let (mut told, mut missed) = (0, 0);
    let mut lines = std::io::BufReader::new(stuck);
    lines.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    let mut name = String::new();
    while told + missed < 2 * CALLS {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).expect("the stream goes on");
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.trim().to_owned();
        }
        if let Some(data) = line.strip_prefix("data: ") {
            match name.as_str() {
                "message" => told += 1,
                "gap" => missed += serde_json::from_str::<mcp_control::api::Gap>(data).unwrap().missed,
                _ => {}
            }
        }
    }
    assert_eq!(told + missed, 2 * CALLS);
    assert!(missed > 0 && told > 0, "{told} told, {missed} missed");
    assert!(instance.proxy.end().0.success());
}

/// What a face has missed may have been that something is held.
#[test]
fn after_a_gap_a_face_is_told_how_things_stand() {
    /// More in all than a face can fall behind by, before and after.
    const CALLS: u64 = 60;
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    let mut events = instance.runtime.block_on(instance.client.events(&EventsQuery::default())).unwrap();
    assert!(matches!(instance.next(&mut events), Event::Snapshot(snapshot) if snapshot.held.is_empty()));
    let text = "x".repeat(200_000);
    for id in 1..=CALLS {
        instance.call(id, &text);
    }
    assert_eq!(instance.ask("POST", "/v1/breakpoints", r#"{"filter":"> tool:held"}"#).status, 200);
    instance.proxy.send(format!("{}\n", crate::hold_kit::call(1_000, "held", "x")).as_bytes());
    for id in 1..=CALLS {
        instance.call(id, &text);
    }
    let mut missed = 0;
    let snapshot = loop {
        match instance.next(&mut events) {
            Event::Gap(gap) => missed += gap.missed,
            Event::Snapshot(snapshot) if !snapshot.held.is_empty() => break snapshot,
            _ => {}
        }
    };
    assert!(missed > 0);
    assert_eq!((snapshot.held.len(), snapshot.breakpoints.len()), (1, 1));
    assert_eq!(instance.ask("POST", "/v1/held/forward", "").status, 200);
    assert_eq!(instance.proxy.json()["id"], 1_000);
    assert!(instance.proxy.end().0.success());
}

#[test]
fn a_face_is_told_what_cannot_be_read() {
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    instance.call(1, "lost");
    std::fs::remove_file(&instance.sandbox.segments()[0]).unwrap();
    let after = EventsQuery { after: Some(0), ..EventsQuery::default() };
    let mut events = instance.runtime.block_on(instance.client.events(&after)).unwrap();
    assert!(matches!(instance.next(&mut events), Event::Snapshot(_)));
    assert!(matches!(instance.next(&mut events), Event::Gap(gap) if gap.missed == 2));
    instance.call(2, "told");
    assert!(matches!(instance.next(&mut events), Event::Message(message) if message.sequence == 3));
}

#[test]
fn history_is_read_from_memory_where_nothing_is_recorded() {
    let mut instance = Attached::begin(&["--quiet", "--no-record"], &["tools"]);
    for id in 1..=3 {
        instance.call(id, "x");
    }
    let newest = PageQuery { limit: Some(2), ..PageQuery::default() };
    let page = instance.runtime.block_on(instance.client.messages(&newest)).unwrap();
    let sequences: Vec<u64> = page.messages.iter().map(|message| message.sequence).collect();
    assert_eq!((sequences.as_slice(), page.older, page.last_sequence), (&[5, 6][..], Some(5), 6));
    let answer = instance.runtime.block_on(instance.client.message(4)).unwrap();
    assert_eq!((answer.answers, answer.tool.as_deref()), (Some(3), Some("echo")));
    let save = instance.ask("POST", "/v1/save", &json!({ "file": instance.sandbox.path("s.json") }).to_string());
    refused(&save, 409, "not_possible");
    assert!(instance.proxy.end().0.success());
}

#[test]
fn marks_notes_and_saved_files_stay() {
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    instance.call(1, "x");
    let mark = Mark { mark: Some("odd".into()), note: Some("look\u{1b}[2J".into()) };
    let notes = Notes([("ticket".to_owned(), "42".to_owned())].into());
    let file = instance.sandbox.path("s.json");
    let (marked, saved) = instance.runtime.block_on(async {
        instance.client.mark(1, &mark).await.unwrap();
        instance.client.note(&notes).await.unwrap();
        let save = mcp_control::api::Save { file: file.display().to_string() };
        (instance.client.message(1).await.unwrap(), instance.client.save(&save).await.unwrap())
    });
    assert_eq!((marked.mark.as_deref(), marked.note), (Some("odd"), mark.note));
    assert_eq!((saved.messages, saved.files.len()), (2, 1));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(r#""mark": "odd""#) && text.contains(r#""ticket": "42""#), "{text}");
    assert!(instance.proxy.end().0.success());
}

#[test]
fn faces_hear_of_each_other_and_of_the_end() {
    let instance = Attached::begin(&["--quiet"], &["tools"]);
    let (client, runtime) = (&instance.client, &instance.runtime);
    let mut watching = runtime.block_on(client.events(&EventsQuery::default())).unwrap();
    assert!(matches!(instance.next(&mut watching), Event::Snapshot(_)));
    let ann = LeaseRequest { holder: "ann".into(), take: false };
    let grant = runtime.block_on(client.take_lease(&ann)).unwrap();
    assert!(
        matches!(instance.next(&mut watching), Event::Lease(state) if state.lease.as_ref().unwrap().holder == "ann")
    );
    refused(&instance.ask("PUT", "/v1/mode", r#"{"mode":"intercept"}"#), 423, "locked");
    let path = format!("/v1/mode?lease={}", grant.token);
    assert_eq!(instance.ask("PUT", &path, r#"{"mode":"intercept"}"#).status, 200);
    assert!(matches!(instance.next(&mut watching), Event::Mode(_)));
    let bob = LeaseRequest { holder: "bob".into(), take: true };
    assert_eq!(runtime.block_on(client.take_lease(&bob)).unwrap().taken_from.as_deref(), Some("ann"));
    assert!(
        matches!(instance.next(&mut watching), Event::Lease(state) if state.lease.as_ref().unwrap().holder == "bob")
    );
    refused(&instance.ask("PUT", &path, r#"{"mode":"passthrough"}"#), 423, "locked");
    let Attached { proxy, runtime, .. } = instance;
    assert!(proxy.end().0.success());
    runtime.block_on(async {
        let mut last = None;
        while let Some(event) = watching.next().await.unwrap() {
            last = Some(event);
        }
        assert!(matches!(last, Some(Event::End(_))), "{last:?}");
    });
}

/// Reads on until so many messages were told or missed; tells which, and how many held ones.
fn told_and_missed(instance: &Attached, events: &mut mcp_control::Events, count: u64) -> (Vec<u64>, u64, u64) {
    let (mut told, mut missed, mut held) = (Vec::new(), 0, 0);
    while told.len() as u64 + missed < count {
        match instance.next(events) {
            Event::Message(message) => told.push(message.sequence),
            Event::Gap(gap) => missed += gap.missed,
            Event::Held(_) => held += 1,
            _ => {}
        }
    }
    (told, missed, held)
}

#[test]
fn a_face_says_how_much_it_wants_to_be_told() {
    /// Their messages are a burst, and no more than that.
    const CALLS: u64 = 500;
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    assert_eq!(instance.ask("POST", "/v1/breakpoints", r#"{"filter":"> tool:held"}"#).status, 200);
    let slow = EventsQuery { per_second: Some(1), ..EventsQuery::default() };
    let mut slow = instance.runtime.block_on(instance.client.events(&slow)).unwrap();
    assert!(matches!(instance.next(&mut slow), Event::Snapshot(_)));
    let call_all = |instance: &mut Attached| {
        let calls = (1..=CALLS).map(|id| format!("{}\n", crate::hold_kit::call(id, "echo", "x")));
        instance.proxy.send(calls.collect::<String>().as_bytes());
        (1..=CALLS).for_each(|_| drop(instance.proxy.json()));
    };
    call_all(&mut instance);
    let (told, missed, _) = told_and_missed(&instance, &mut slow, 2 * CALLS);
    assert_eq!((told, missed), ((1..=2 * CALLS).collect(), 0));
    // Another face changes nothing for this one, which has spent what it had.
    let all = EventsQuery { after: Some(0), ..EventsQuery::default() };
    let mut all = instance.runtime.block_on(instance.client.events(&all)).unwrap();
    assert!(matches!(instance.next(&mut all), Event::Snapshot(_)));
    let (told, missed, _) = told_and_missed(&instance, &mut all, 2 * CALLS);
    assert_eq!((told.len() as u64, missed), (2 * CALLS, 0));
    call_all(&mut instance);
    instance.proxy.send(format!("{}\n", crate::hold_kit::call(1_000, "held", "x")).as_bytes());
    let (told, missed, held) = told_and_missed(&instance, &mut slow, 2 * CALLS + 1);
    assert!((1..CALLS).contains(&(told.len() as u64)) && missed > CALLS, "{} told, {missed} missed", told.len());
    // What is held is told, however many messages are left out.
    if held == 0 {
        while !matches!(instance.next(&mut slow), Event::Held(held) if held.sequence == 4 * CALLS + 1) {}
    }
    assert_eq!(instance.ask("POST", "/v1/held/forward", "").status, 200);
    while !matches!(instance.next(&mut slow), Event::Outcome(outcome) if outcome.sequence == 4 * CALLS + 1) {}
    assert_eq!(instance.proxy.json()["id"], 1_000);
    // The only face that is left is told what it missed, though nothing comes after.
    drop(all);
    until("one face is left", || instance.runtime.block_on(instance.client.snapshot()).unwrap().faces == 1);
    let before = instance.runtime.block_on(instance.client.instance()).unwrap().messages;
    (0..3).for_each(|_| call_all(&mut instance));
    let mut missed = 0;
    loop {
        match instance.next(&mut slow) {
            Event::Message(message) if message.sequence > before => {}
            Event::Gap(gap) => missed += gap.missed,
            Event::Snapshot(snapshot) if snapshot.last_sequence == before + 6 * CALLS && missed > 4 * CALLS => break,
            _ => {}
        }
    }
    assert!(instance.proxy.end().0.success());
}

#[test]
fn the_heads_of_an_exchange_are_told() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let control = Client::new(address(&sandbox));
    let mut client = proxy.client();
    let headers = ["Authorization: Bearer secret", "X-Kind: odd", MODERN];
    client.send(&http_kit::post("/mcp?x=1", &headers, http_kit::call(1, "ping")));
    let mut call = origin.call();
    // What has not come yet is not told.
    let open = runtime.block_on(control.exchange(1)).unwrap();
    assert_eq!((open.number, open.status, open.response, open.ended_at), (1, None, vec![], None));
    let event = [b"id: e7\ndata: ", http_kit::result(1).as_bytes(), b"\n\n"].concat();
    call.send(STREAM);
    call.send(http_kit::chunk(event));
    call.send(http_kit::LAST_CHUNK);
    assert!(client.response().is_whole);
    let mut exchange = mcp_control::api::Exchange::default();
    until("the exchange is over", || {
        exchange = runtime.block_on(control.exchange(2)).unwrap();
        exchange.ended_at.is_some()
    });
    assert_eq!((exchange.method.as_deref(), exchange.target.as_deref()), (Some("POST"), Some("/mcp?x=1")));
    assert_eq!((exchange.number, exchange.status, exchange.event_id.as_deref()), (1, Some(200), Some("e7")));
    let value = |headers: &[Header], name: &str| {
        let found = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value.clone())
    };
    assert_eq!(value(&exchange.request, "x-kind").as_deref(), Some("odd"));
    assert_eq!(value(&exchange.request, "authorization").as_deref(), Some("Bearer ***"));
    assert_eq!(value(&exchange.response, "content-type").as_deref(), Some("text/event-stream"));
    assert!(exchange.started_at <= exchange.answered_at && exchange.answered_at <= exchange.ended_at);
    assert_eq!(exchange.ending, None);
    let request = runtime.block_on(control.exchange(1)).unwrap();
    assert_eq!(request, mcp_control::api::Exchange { event_id: None, ..exchange });
    let unknown = runtime.block_on(control.exchange(3)).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no message #3");
    proxy.end();
}

#[test]
fn without_http_or_a_recording_there_is_no_exchange() {
    for (flags, why) in [
        (&["--quiet"][..], "#1 came in no HTTP exchange"),
        (&["--quiet", "--no-record"], "nothing is recorded, so nothing is known of HTTP exchanges"),
    ] {
        let mut instance = Attached::begin(flags, &["tools"]);
        instance.call(1, "x");
        let error = instance.runtime.block_on(instance.client.exchange(1)).unwrap_err();
        assert_eq!(error.to_string(), why);
        assert!(instance.proxy.end().0.success());
    }
}

#[test]
fn it_is_told_why_a_message_is_judged_as_it_is() {
    let sandbox = Sandbox::new();
    let rule = |name: &str, filter: &str, verdict: &str| json!({ "name": name, "match": filter, "verdict": verdict });
    let mut rules = vec![rule("noted", "tool:delete_*", "observe")];
    rules.extend((0..298).map(|at| rule(&format!("other-{at}"), &format!("tool:other_{at}"), "deny")));
    rules.extend([rule("deletes", "op:delete", "deny"), rule("all", "tool:*", "allow")]);
    write_rules(&sandbox, &rules);
    let proxy = sandbox.run(&["--quiet", "--rules", "rules.json"], &["tools"]);
    let mut instance = Attached::to(sandbox, proxy);
    instance.proxy.send(format!("{}\n", crate::hold_kit::call(1, "delete_repo", "x")).as_bytes());
    assert_eq!(instance.proxy.json()["error"]["code"], -32000);
    let told = instance.runtime.block_on(instance.client.explain(1)).unwrap();
    assert_eq!((told.verdict, told.operation.as_deref()), (Some(VerdictKind::Deny), Some("delete")));
    assert_eq!(told.reasons, ["verb `delete`"]);
    assert_eq!(told.recorded.and_then(|verdict| verdict.rule).as_deref(), Some("deletes"));
    assert_eq!((told.rules.len(), told.rules_omitted, told.rules_changed), (201, 100, false));
    let of_note: Vec<_> = told.rules.iter().filter(|rule| rule.matches || rule.decides).collect();
    let of_note: Vec<_> = of_note.iter().map(|rule| (&*rule.name, rule.decides, rule.note.as_deref())).collect();
    assert_eq!(of_note, [("noted", false, Some("it only notes that it matches")), ("deletes", true, None)]);
    // An answer of the proxy's own is nothing that rules decide about.
    let told = instance.runtime.block_on(instance.client.explain(2)).unwrap();
    assert_eq!((told.verdict, told.rules.len(), told.reasons.len()), (None, 0, 1), "{:?}", told.reasons);
    // Other rules count from now on, and it is said that they did not then.
    let asks = json!({ "name": "asks", "match": "op:delete", "verdict": "ask", "timeout": "30s" });
    write_rules(&instance.sandbox, &[asks, rule("late", "tool:delete_repo", "allow")]);
    let mut told = instance.runtime.block_on(instance.client.explain(1)).unwrap();
    until("the rules are read again", || {
        told = instance.runtime.block_on(instance.client.explain(1)).unwrap();
        told.rules_changed
    });
    assert_eq!((told.verdict, told.rules.len()), (Some(VerdictKind::Ask), 2));
    assert_eq!(told.recorded.map(|verdict| verdict.verdict).as_deref(), Some("deny"));
    assert_eq!(told.rules[0].note.as_deref(), Some("deny if nobody answers within 30s"));
    assert_eq!(told.rules[1].note.as_deref(), Some("a rule before it decides"));
    instance.call(3, "x");
    let told = instance.runtime.block_on(instance.client.explain(3)).unwrap();
    assert_eq!((told.verdict, told.rules_changed), (Some(VerdictKind::Allow), false));
    assert!(told.rules.iter().all(|rule| !rule.decides && !rule.matches));
    assert!(instance.proxy.end().0.success());
}
