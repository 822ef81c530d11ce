//! Clients of Streamable HTTP in front of a server on pipes: sessions, and which stream a message of
//! the server goes to.

use mcp_store::segment::{RecordHead, RecordKind, SegmentReader};
use serde_json::{Value, json};

use crate::bridge_kit::{
    Events, INITIALIZED, LEGACY, Session, expect_stream, initialize, is_process, say, until_quiet, until_recorded,
};
use crate::http_kit::{Client, Listening, bare, call, get, post};
use crate::kit::{Sandbox, marked_processes, signal, until};

const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":"s1","method":"roots/list"}"#;

fn hold(id: &str, name: &str) -> String {
    call(id, &format!("ignore/{name}"))
}

/// A call that wants to hear of its progress under `token`, and is left open.
fn hold_with_token(id: &str, name: &str, token: &str) -> String {
    let params = format!(r#"{{"name":"{name}","_meta":{{"progressToken":{token}}}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ignore/{name}","params":{params}}}"#)
}

fn progress(token: &str, at: u64) -> String {
    let params = format!(r#"{{"progressToken":{token},"progress":{at}}}"#);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#)
}

fn answer(id: &str, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{text}"}}}}"#)
}

/// The JSON text of a member of a line that reached the server.
fn member(line: &str, pointer: &str) -> String {
    serde_json::from_str::<Value>(line).unwrap().pointer(pointer).unwrap_or_else(|| panic!("{line}")).to_string()
}

#[test]
fn a_session_begins_with_initialize_and_has_a_server_of_its_own() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let sessions: Vec<Session<'_>> = (0..3).map(|_| Session::open(&proxy)).collect();
    for session in &sessions {
        let id: uuid::Uuid = session.id.parse().expect("the id is a UUID");
        assert_eq!(id.get_version_num(), 4, "it is made of random bits");
        session.tell(INITIALIZED);
        assert_eq!(session.ask(call(1, "hello")).json()["result"]["method"], "hello");
        assert_eq!(session.seen(), [&initialize(LEGACY), INITIALIZED, &call(1, "hello")]);
    }
    let mut pids: Vec<u32> = sessions.iter().map(|session| session.pid).collect();
    pids.dedup();
    assert_eq!(pids.len(), 3);
    proxy.end();
    assert!(!pids.into_iter().any(is_process));
}

/// Of an exchange whose answer was there whole, nothing follows the head of that answer.
#[test]
fn an_answered_call_ends_its_exchange_with_its_head() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    session.tell(INITIALIZED);
    for id in 1..=3 {
        assert_eq!(session.ask(call(id, "hello")).json()["result"]["method"], "hello");
    }
    drop(session);
    proxy.end();
    // It is recorded behind the answer, and shown with it.
    let shown = sandbox.stdout(["inspect", "-v", sandbox.segments()[0].to_str().unwrap()]);
    assert_eq!(shown.matches("    < content-type: application/json").count(), 4, "{shown}");
    let mut reader = SegmentReader::open(&sandbox.segments()[0]).unwrap();
    let (mut answered, mut over) = (Vec::new(), Vec::new());
    while let Some(head) = reader.next_head().unwrap() {
        match head.kind {
            RecordKind::Exchange if head.flags & RecordHead::ENDS != 0 => answered.push(head.sequence),
            RecordKind::ExchangeEnd => over.push(head.sequence),
            _ => {}
        }
    }
    assert!(answered.len() >= 4, "the introduction and three calls: {answered:?} {over:?}");
    assert!(answered.iter().all(|exchange| !over.contains(exchange)), "{answered:?} {over:?}");
}

#[test]
fn who_shows_no_session_or_a_wrong_one_is_turned_away() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let check = |headers: &[&str], message: &str, expected: u16| {
        let ask = |request: Vec<u8>| proxy.client().ask(&request).status();
        assert_eq!(ask(post("/mcp", headers, message)), expected, "{headers:?} {message}");
        assert_eq!(ask(get("/mcp", headers)), expected, "{headers:?}");
        assert_eq!(ask(bare("DELETE", "/mcp", headers)), expected, "{headers:?}");
    };
    check(&[], &call(1, "hello"), 400);
    check(&[], INITIALIZED, 400);
    let chosen = "Mcp-Session-Id: 0b9b9f5e-7a1c-4d2e-8f00-0123456789ab";
    for forged in
        [chosen, "Mcp-Session-Id: x", "Mcp-Session-Id:", "Mcp-Session-Id: 00000000-0000-0000-0000-000000000000"]
    {
        check(&[forged], &call(1, "hello"), 404);
    }
    // An id that a client brings along is not adopted either.
    check(&[chosen], &initialize(LEGACY), 404);
    check(&[chosen], &call(1, "hello"), 404);
    assert_eq!(session.seen().len(), 1, "none of it reached another's server");

    let other = Session::open(&proxy);
    assert_eq!(other.delete().status(), 200);
    check(&[&other.header()], &call(1, "hello"), 404);
    assert_eq!(session.ask(call(1, "hello")).status(), 200);
    // Ids that nobody ever gave out are as unknown to another proxy.
    let elsewhere = Sandbox::new();
    let elsewhere = elsewhere.listen_to_puppet();
    assert_eq!(elsewhere.client().ask(&post("/mcp", &[&session.header()], call(1, "hello"))).status(), 404);
    elsewhere.end();
    proxy.end();
}

#[test]
fn delete_ends_the_server_and_what_waits_for_it() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut stream = session.listen(None);
    let mut waiting = session.hold(&hold("1", "waiting"), "waiting");
    assert_eq!(session.delete().status(), 200);
    assert_eq!(waiting.response().status(), 404);
    assert_eq!(stream.all(), []);
    until("the server is gone", || !is_process(session.pid));
    assert_eq!(session.ask(call(1, "hello")).status(), 404);
    assert_eq!(session.delete().status(), 404);
    proxy.end();
}

#[test]
fn a_server_that_crashes_answers_its_calls_and_ends_its_session() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut stream = session.listen(None);
    let mut plain = session.hold(&hold("1", "plain"), "plain");
    let mut streaming = session.hold(&hold_with_token("\"two\"", "streaming", "5"), "streaming");
    session.say(&[progress("5", 1)]);
    expect_stream(&mut streaming);
    assert_eq!(streaming.next_json()["params"]["progress"], 1);
    session.tell(r#"{"jsonrpc":"2.0","method":"exit/7"}"#);

    let answer = plain.response();
    assert_eq!((answer.status(), answer.error()), (200, (5030, json!(1))));
    let last = streaming.all();
    assert_eq!((last.len(), &last[0].json()["id"], &last[0].json()["error"]["code"]), (1, &json!("two"), &json!(5030)));
    assert_eq!(stream.all(), []);
    assert_eq!(session.ask(call(3, "hello")).status(), 404);
    assert_eq!(session.proxy.client().ask(&get("/mcp", &[&session.header()])).status(), 404);

    let again = Session::open(&proxy);
    assert_eq!(again.ask(call(3, "hello")).status(), 200);
    proxy.end();
}

#[test]
fn a_server_that_cannot_begin_leaves_no_session() {
    for fixture in [&["last-words", "3"][..], &["no-such-mode"]] {
        let sandbox = Sandbox::new();
        let proxy = sandbox.listen_to_fixture(fixture, &[]);
        let answer = proxy.client().ask(&post("/mcp", &[], initialize(LEGACY)));
        assert_eq!((answer.status(), answer.error()), (200, (5030, json!("init"))));
        assert_eq!(answer.head.get("mcp-session-id"), None);
        proxy.end();
    }
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen(["--transport", "stdio", "--target-command", "/no/such/server"]);
    let answer = proxy.client().ask(&post("/mcp", &[], initialize(LEGACY)));
    assert_eq!((answer.status(), answer.error()), (200, (5030, json!("init"))));
    assert_eq!(answer.head.get("mcp-session-id"), None);
    proxy.end();
}

#[test]
fn there_are_sixty_four_servers_and_a_freed_place_is_taken_again() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let mut sessions: Vec<Session<'_>> = (0..64).map(|_| Session::open(&proxy)).collect();
    for request in [post("/mcp", &[], initialize(LEGACY)), get("/sse", &["Accept: text/event-stream"])] {
        let refused = proxy.client().ask(&request);
        assert_eq!((refused.status(), refused.error()), (503, (5031, Value::Null)));
        assert!(refused.head.get("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()), "{refused:?}");
    }
    let freed = sessions.pop().unwrap();
    assert_eq!(freed.delete().status(), 200);
    until("its place is free", || proxy.client().ask(&post("/mcp", &[], initialize(LEGACY))).status() == 200);
    assert!(!is_process(freed.pid));
    assert_eq!(proxy.client().ask(&post("/mcp", &[], initialize(LEGACY))).status(), 503);
    for session in &sessions {
        assert_eq!(session.ask(call(1, "hello")).status(), 200);
    }
    let pids: Vec<u32> = sessions.iter().map(|session| session.pid).collect();
    proxy.end();
    assert!(!pids.into_iter().any(is_process));
}

#[test]
fn no_server_outlives_its_proxy() {
    for end in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let sandbox = Sandbox::new();
        let mark = uuid::Uuid::new_v4().to_string();
        let mut command = sandbox.command(["proxy", "--listen", "127.0.0.1:0", "--transport", "stdio"]);
        let fixture = crate::kit::fixture_program();
        let script = format!("sh -c 'trap \"\" TERM; while :; do sleep 600; done' & exec {} puppet", fixture.display());
        command.args(["--target-command", &shell_words::join(["sh", "-c", &script])]).env("MCP_TEST_MARK", &mark);
        let proxy = Listening::start(command);
        let sessions: Vec<Session<'_>> = (0..3).map(|_| Session::open(&proxy)).collect();
        let stream = sessions[0].listen(None);
        let mut sse = proxy.client();
        sse.send(&get("/sse", &["Accept: text/event-stream"]));
        expect_stream(&mut sse);
        assert!(marked_processes(&mark).len() > 8);
        signal(proxy.pid(), end);
        let (status, said) = proxy.wait();
        assert_eq!(status.success(), end == rustix::process::Signal::TERM, "{said}");
        drop((stream, sse));
        until("nothing is left", || marked_processes(&mark).is_empty());
    }
}

#[test]
fn an_answer_is_json_unless_something_came_before_it() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let plain = session.ask(call(1, "hello"));
    assert_eq!(plain.head.get("content-type").as_deref(), Some("application/json"));
    assert_eq!(plain.head.get("mcp-session-id"), None, "it is said once");

    let request = json!({ "id": 2, "method": "say", "params": { "lines": [
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"first"}}"#,
        r#"{ "jsonrpc" : "2.0", "id" : 2, "result" : 1e400 }"#,
    ] } });
    let mut client = session.send(request.to_string());
    let head = expect_stream(&mut client);
    assert_eq!(head.get("x-accel-buffering").as_deref(), Some("no"));
    assert_eq!(head.get("cache-control").as_deref(), Some("no-cache"));
    let events = client.all();
    assert_eq!(events.iter().map(|event| event.event.as_deref()).collect::<Vec<_>>(), [Some("message"); 2]);
    assert_eq!(events[0].json()["params"]["data"], "first");
    assert_eq!(events[1].data, r#"{ "jsonrpc" : "2.0", "id" : 2, "result" : 1e400 }"#);
    proxy.end();
}

#[test]
fn messages_that_ask_for_nothing_are_taken() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    for message in [
        INITIALIZED,
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        r#"{"id":9,"error":7}"#,
        r#"{"method":"x"}"#,
        r#"[{"method":"x"}]"#,
        "{}",
    ] {
        session.tell(message);
        assert_eq!(session.seen().last().map(String::as_str), Some(message));
    }
    proxy.end();
}

#[test]
fn progress_goes_to_its_own_call_by_its_token() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut stream = session.listen(None);
    let mut one = session.hold(&hold_with_token("1", "one", "\"t\""), "one");
    let mut two = session.hold(&hold_with_token("2", "two", "7"), "two");
    session.say(&[progress("7", 1), progress("\"t\"", 2), progress("\"7\"", 3), progress("7", 4)]);
    session.say(&[answer("2", "second"), progress("7", 5), answer("1", "first"), progress("\"t\"", 6)]);
    session.say(&[LIST_CHANGED]);
    for (client, expected) in [(&mut one, [2].as_slice()), (&mut two, &[1, 4])] {
        expect_stream(client);
        let events = client.all();
        let (last, before) = events.split_last().unwrap();
        let seen: Vec<Value> = before.iter().map(|event| event.json()["params"]["progress"].clone()).collect();
        assert_eq!(seen, expected);
        assert!(last.json()["result"].is_object());
    }
    // Neither what came too late nor what belongs to nobody goes to anybody.
    assert_eq!(stream.next().data, LIST_CHANGED);
    proxy.end();
}

#[test]
fn equal_ids_in_flight_get_their_own_answers() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    for id in ["7", "\"7\"", "\"a\\u0062\"", "12345678901234567890123", "null"] {
        let mut first = session.hold(&hold(id, "first"), "first");
        let mut second = session.hold(&hold(id, "second"), "second");
        let mut third = session.hold(&hold(id, "third"), "third");
        let known = |name: &str| {
            let line = session.seen().into_iter().rev().find(|line| line.contains(name)).unwrap();
            line[line.find("\"id\":").unwrap() + 5..line.find(",\"method\"").unwrap()].to_owned()
        };
        let ids = [known("first"), known("second"), known("third")];
        assert_eq!(ids[0], id, "it is only changed where it must be");
        assert!(ids[1] != ids[0] && ids[2] != ids[0] && ids[2] != ids[1]);
        session.say(&[answer(&ids[2], "third"), answer(&ids[0], "first"), answer(&ids[1], "second")]);
        for (client, name) in [(&mut first, "first"), (&mut second, "second"), (&mut third, "third")] {
            assert_eq!(String::from_utf8(client.response().body).unwrap(), answer(id, name));
        }
        // Once they are answered the id is free again.
        session.tell(call(id, "x").replace(&format!("\"id\":{id},"), ""));
    }
    proxy.end();
}

#[test]
fn ids_of_our_own_making_do_not_meet_a_clients() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut clients: Vec<Client> = Vec::new();
    let ids = ["\"mcp-proxy-1\"", "\"mcp-proxy-2\"", "1", "1", "\"mcp-proxy-1\""];
    for (at, id) in ids.iter().enumerate() {
        clients.push(session.hold(&hold_with_token(id, &format!("call{at}"), id), &format!("call{at}")));
    }
    let lines = session.seen();
    let lines: Vec<&String> = lines.iter().filter(|line| line.contains("ignore/call")).collect();
    let said: Vec<String> = lines
        .iter()
        .enumerate()
        .flat_map(|(at, line)| {
            [
                progress(&member(line, "/params/_meta/progressToken"), at as u64),
                answer(&member(line, "/id"), &at.to_string()),
            ]
        })
        .collect();
    session.say(&said);
    for (at, client) in clients.iter_mut().enumerate() {
        expect_stream(client);
        let events = client.all();
        assert_eq!(events[0].data, progress(ids[at], at as u64));
        assert_eq!(events[1].data, answer(ids[at], &at.to_string()));
    }
    proxy.end();
}

#[test]
fn equal_progress_tokens_in_flight_are_told_apart() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut one = session.hold(&hold_with_token("1", "one", "\"t\\u006f\""), "one");
    let mut two = session.hold(&hold_with_token("2", "two", "\"to\""), "two");
    let token = member(&session.until_seen("ignore/two"), "/params/_meta/progressToken");
    assert_ne!(token, "\"to\"");
    session.say(&[progress(&token, 1), progress("\"to\"", 2), answer("1", "one"), answer("2", "two")]);
    for (client, expected) in [
        (&mut one, [progress("\"to\"", 2), answer("1", "one")]),
        (&mut two, [progress("\"to\"", 1), answer("2", "two")]),
    ] {
        expect_stream(client);
        assert_eq!(client.all().into_iter().map(|event| event.data).collect::<Vec<_>>(), expected);
    }
    proxy.end();
}

#[test]
fn a_cancellation_names_the_call_as_the_server_knows_it_and_ends_it() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let cancelled =
        |id: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    // The only one under its id.
    let mut plain = session.hold(&hold("1", "plain"), "plain");
    session.tell(cancelled("1"));
    assert_eq!(session.seen().last(), Some(&cancelled("1")));
    expect_stream(&mut plain);
    assert_eq!(plain.all(), [], "its stream is over");
    // The answer that comes all the same is nobody's, and the id is free.
    session.say(&[answer("1", "late")]);
    until_recorded(&sandbox, &answer("1", "late"));
    assert_eq!(session.ask(call(1, "next")).json()["result"]["method"], "next");
    // One that got another id: the other call under the same id was answered meanwhile.
    let mut first = session.hold(&hold("2", "first"), "first");
    let mut second = session.hold(&hold("2", "second"), "second");
    let known = member(&session.until_seen("second"), "/id");
    session.say(&[answer("2", "first")]);
    assert_eq!(first.response().status(), 200);
    session.tell(cancelled("2"));
    assert_eq!(session.seen().last(), Some(&cancelled(&known)));
    expect_stream(&mut second);
    assert_eq!(second.all(), []);
    // What nobody waits for goes on as it is.
    session.tell(cancelled("99"));
    assert_eq!(session.seen().last(), Some(&cancelled("99")));
    proxy.end();
}

#[test]
fn a_request_of_the_server_goes_to_the_only_call_else_to_the_stream_else_it_waits() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    // Nobody is there yet.
    session.say(&[ASK, &ASK.replace("s1", "s2")]);
    until_recorded(&sandbox, &ASK.replace("s1", "s2"));
    let mut stream = session.listen(None);
    assert_eq!([stream.next().data, stream.next().data], [ASK.to_owned(), ASK.replace("s1", "s2")]);
    // One call is.
    let mut only = session.hold(&hold("1", "only"), "only");
    session.say(&[ASK.replace("s1", "s3")]);
    expect_stream(&mut only);
    assert_eq!(only.next().data, ASK.replace("s1", "s3"));
    session.tell(r#"{"jsonrpc":"2.0","id":"s3","result":{"roots":[]}}"#);
    assert_eq!(session.seen().last().unwrap(), r#"{"jsonrpc":"2.0","id":"s3","result":{"roots":[]}}"#);
    // Two are, so nobody can tell whose it is.
    let mut other = session.hold(&hold("2", "other"), "other");
    session.say(&[ASK.replace("s1", "s4"), answer("1", "only"), answer("2", "other")]);
    assert_eq!(stream.next().data, ASK.replace("s1", "s4"));
    assert_eq!(only.all().len(), 1);
    assert_eq!(other.response().json()["result"]["text"], "other");
    // Nobody is.
    session.say(&[ASK.replace("s1", "s5")]);
    assert_eq!(stream.next().data, ASK.replace("s1", "s5"));
    proxy.end();
}

#[test]
fn a_server_that_asks_while_a_call_waits_gets_its_answer_before_it_answers() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut calls: Vec<Client> = Vec::new();
    // Enough of them to fill any window that a loop with one place would have.
    for id in 0..20 {
        let request =
            json!({ "id": id, "method": "say", "params": { "lines": [ASK.replace("s1", &format!("s{id}"))] } });
        let mut client = session.send(request.to_string());
        if id == 0 {
            expect_stream(&mut client);
            assert_eq!(client.next().data, ASK.replace("s1", "s0"));
        }
        calls.push(client);
    }
    let mut stream = session.listen(None);
    for _ in 1..20 {
        let asked = stream.next_json();
        session.tell(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} }).to_string());
    }
    let answers: Vec<String> = (0..20).map(|id| answer(&id.to_string(), "done")).collect();
    session.say(&answers);
    assert_eq!(calls[0].all().len(), 1);
    for client in &mut calls[1..] {
        assert_eq!(client.response().json()["result"]["text"], "done");
    }
    proxy.end();
}

#[test]
fn changed_lists_go_to_the_stream_even_while_a_call_waits() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut stream = session.listen(None);
    let mut only = session.hold(&hold("1", "only"), "only");
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#;
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}"#;
    session.say(&[LIST_CHANGED, log, updated, &answer("1", "done")]);
    assert_eq!([stream.next().data, stream.next().data], [LIST_CHANGED, updated]);
    expect_stream(&mut only);
    assert_eq!(only.all().into_iter().map(|event| event.data).collect::<Vec<_>>(), [log, &answer("1", "done")]);
    proxy.end();
}

#[test]
fn a_second_stream_takes_the_place_of_the_first() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut first = session.listen(None);
    session.say(&[LIST_CHANGED]);
    assert_eq!(first.next().data, LIST_CHANGED);
    let mut second = session.listen(None);
    assert_eq!(first.all(), []);
    session.say(&[LIST_CHANGED]);
    assert_eq!(second.next().data, LIST_CHANGED);
    proxy.end();
}

#[test]
fn what_comes_while_the_stream_is_away_is_kept_for_the_next() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut first = session.listen(None);
    session.say(&[LIST_CHANGED]);
    assert_eq!(first.next().data, LIST_CHANGED);
    drop(first);
    until_quiet(&sandbox);
    session.say(&[ASK]);
    let mut second = session.listen(None);
    assert_eq!(second.next().data, ASK);
    proxy.end();
}

#[test]
fn only_so_much_is_kept_for_a_client_that_does_not_listen() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let lines: Vec<String> = (0..1_000).map(|at| LIST_CHANGED.replace("tools", &format!("n{at}"))).collect();
    session.say(&lines);
    until_recorded(&sandbox, &lines[999]);
    let mut stream = session.listen(None);
    for line in &lines[1_000 - 256..] {
        assert_eq!(&stream.next().data, line);
    }
    drop(stream);
    let other = Session::open(&proxy);
    let large = format!(r#"{{"method":"n","params":"{}"}}"#, "x".repeat(100_000));
    other.tell(json!({ "method": "flood", "params": { "line": large, "times": 100 } }).to_string());
    other.say(&[LIST_CHANGED]);
    until_recorded(&sandbox, LIST_CHANGED);
    let mut stream = other.listen(None);
    let mut kept = 0;
    while stream.next().data != LIST_CHANGED {
        kept += 1;
    }
    assert_eq!(kept, (1 << 20) / 100_000);
    proxy.end();
}

#[test]
fn a_batch_is_answered_as_a_whole() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open_with(&proxy, "2025-03-26");
    let batch = format!("[{},{},{}]", hold("1", "a"), INITIALIZED, hold("\"2\"", "b"));
    // By a server that answers with a batch.
    let mut client = session.hold(&batch, "ignore/a");
    let answers = format!(" [ {} , {} ]", answer("\"2\"", "b"), answer("1", "a"));
    session.say(&[&answers]);
    assert_eq!(String::from_utf8(client.response().body).unwrap(), answers);
    // By one that answers one by one.
    let mut client = session.hold(&batch, "ignore/a");
    session.say(&[answer("\"2\"", "b"), answer("1", "a")]);
    expect_stream(&mut client);
    let events: Vec<String> = client.all().into_iter().map(|event| event.data).collect();
    assert_eq!(events, [answer("\"2\"", "b"), answer("1", "a")]);
    // By one that goes away.
    let mut client = session.hold(&batch, "ignore/a");
    session.tell(r#"{"method":"exit/1"}"#);
    expect_stream(&mut client);
    let errors: Vec<Value> = client.all().iter().map(|event| event.json()["error"]["code"].clone()).collect();
    assert_eq!(errors, [json!(5030), json!(5030)]);
    proxy.end();
}

#[test]
fn a_batch_shares_neither_ids_nor_tokens_with_calls_in_flight() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open_with(&proxy, "2025-03-26");
    let mut single = session.hold(&hold_with_token("1", "single", "\"t\""), "single");
    let batch = format!("[ {} ,{}]", hold_with_token("1", "one", "\"t\""), hold_with_token("2", "two", "\"u\""));
    let mut client = session.hold(&batch, "ignore/one");
    let line = session.until_seen("ignore/one");
    let (id, token) = (member(&line, "/0/id"), member(&line, "/0/params/_meta/progressToken"));
    assert!(id != "1" && token != "\"t\"" && member(&line, "/1/id") == "2", "{line}");
    assert_eq!(line.replacen(&id, "1", 1).replacen(&token, "\"t\"", 1), batch, "all else is as it was");
    session.say(&[progress(&token, 1), progress("\"u\"", 2), progress("\"t\"", 3)]);
    session.say(&[format!("[{},{}]", answer(&id, "one"), answer("2", "two")), answer("1", "single")]);
    expect_stream(&mut client);
    let events: Vec<String> = client.all().into_iter().map(|event| event.data).collect();
    let answers = format!("[{},{}]", answer("1", "one"), answer("2", "two"));
    assert_eq!(events, [progress("\"t\"", 1), progress("\"u\"", 2), answers]);
    expect_stream(&mut single);
    let events: Vec<String> = single.all().into_iter().map(|event| event.data).collect();
    assert_eq!(events, [progress("\"t\"", 3), answer("1", "single")]);
    proxy.end();
}

#[test]
fn a_batch_of_answers_to_different_clients_is_taken_apart() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let mut stream = session.listen(None);
    let mut one = session.hold(&hold("1", "one"), "one");
    let mut two = session.hold(&hold("2", "two"), "two");
    session.say(&[format!("[{},{},{}]", answer("2", "two"), LIST_CHANGED, answer("1", "one"))]);
    assert_eq!(String::from_utf8(one.response().body).unwrap(), answer("1", "one"));
    assert_eq!(String::from_utf8(two.response().body).unwrap(), answer("2", "two"));
    assert_eq!(stream.next().data, LIST_CHANGED);
    proxy.end();
}

#[test]
fn a_legacy_client_that_leaves_does_not_cancel_its_call() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    drop(session.hold(&hold("1", "left"), "left"));
    session.say(&[answer("1", "late")]);
    assert_eq!(session.ask(call(2, "hello")).status(), 200);
    let seen = session.seen();
    assert!(!seen.iter().any(|line| line.contains("cancelled")), "{seen:?}");
    assert_eq!(seen.last(), Some(&call(2, "hello")));
    assert!(seen.contains(&say(&[answer("1", "late")])));
    proxy.end();
}

#[test]
fn an_oversize_answer_fails_its_call_alone() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_fixture(&["puppet"], &["--message-limit", "100000"]);
    let session = Session::open(&proxy);
    let mut one = session.hold(&hold("1", "one"), "one");
    let mut same = session.hold(&hold("1", "same"), "same");
    let known = member(&session.until_seen("ignore/same"), "/id");
    let file = sandbox.path("large");
    std::fs::write(&file, format!("{}\n", answer(&known, &"x".repeat(200_000)))).unwrap();
    session.tell(json!({ "method": "play", "params": { "file": file } }).to_string());
    assert_eq!(same.response().error(), (5130, json!(1)));
    session.say(&[answer("1", "one")]);
    assert_eq!(one.response().json()["result"]["text"], "one");
    let too_large = session.ask(format!(r#"{{"id":1,"method":"x","params":"{}"}}"#, "x".repeat(100_000)));
    assert_eq!((too_large.status(), too_large.error()), (413, (5130, Value::Null)));
    assert_eq!(session.ask(call(2, "hello")).status(), 200);
    proxy.end();
}

#[test]
fn other_methods_and_paths_are_refused() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    for (method, path, expected) in [
        ("PUT", "/mcp", 405),
        ("POST", "/sse", 415),
        ("DELETE", "/sse", 405),
        ("GET", "/message", 405),
        ("GET", "/", 404),
    ] {
        assert_eq!(proxy.client().ask(&bare(method, path, &[])).status(), expected, "{method} {path}");
    }
    assert_eq!(proxy.client().ask(&post("/message?session=x", &[], call(1, "x"))).status(), 404);
    assert_eq!(proxy.client().ask(&get("/.well-known/oauth-protected-resource", &[])).status(), 404);
    proxy.end();
}
