//! Bad requests across transports: they start no server, reach none and see nothing of another's, and
//! the next good one works.

use serde_json::json;

use crate::bridge_kit::{Events, LEGACY, Pair, Session, SseClient, error_of, initialize, modern, until_recorded};
use crate::http_kit::{LAST_CHUNK, MODERN, STREAM, answer, bare, call, chunk, event, get, post, result};
use crate::kit::{Sandbox, children_of, peak_bytes, until};

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// `{"jsonrpc":"2.0","id":1,"result":{}}`, compressed.
const ZIPPED: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x56, 0xca, 0x2a, 0xce, 0xcf, 0x2b, 0x2a, 0x48,
    0x56, 0xb2, 0x52, 0x32, 0xd2, 0x33, 0x50, 0xd2, 0x51, 0xca, 0x4c, 0x51, 0xb2, 0x32, 0xd4, 0x51, 0x2a, 0x4a, 0x2d,
    0x2e, 0xcd, 0x29, 0x51, 0xb2, 0xaa, 0xae, 0xad, 0x05, 0x00, 0x6c, 0xbd, 0x59, 0xc0, 0x24, 0x00, 0x00, 0x00,
];

#[test]
fn what_is_refused_at_the_door_starts_no_server() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let body = initialize(LEGACY);
    let length = body.len();
    let typed = "Content-Type: application/json\r\n";
    let posts = [
        (format!("Host: evil.example\r\n{typed}"), 403),
        (format!("Host: localhost\r\nOrigin: http://evil.example\r\n{typed}"), 403),
        (format!("Host: localhost\r\nOrigin: null\r\n{typed}"), 403),
        ("Host: localhost\r\nContent-Type: text/plain\r\n".into(), 415),
        ("Host: localhost\r\n".into(), 415),
        (format!("Host: localhost\r\nContent-Encoding: gzip\r\n{typed}"), 415),
        (format!("Host: localhost\r\nHost: localhost\r\n{typed}"), 400),
        (format!("Host: localhost\r\nMcp-Session-Id: a\r\nMcp-Session-Id: b\r\n{typed}"), 400),
        (format!("Host: localhost\r\nContent-Length: {}\r\n{typed}", length + 1), 400),
        (format!("Host: localhost\r\nX-Folded: a\r\n b\r\n{typed}"), 400),
    ];
    for (head, expected) in posts {
        let mut client = proxy.client();
        let _ =
            client.try_send(format!("POST /mcp HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n{body}").as_bytes());
        assert_eq!(client.response().status(), expected, "{head}");
    }
    for (head, expected) in
        [("Host: evil.example\r\n", 403), ("Host: localhost\r\nOrigin: http://evil.example\r\n", 403), ("", 400)]
    {
        let mut client = proxy.client();
        client.send(format!("GET /sse HTTP/1.1\r\n{head}\r\n").as_bytes());
        assert_eq!(client.response().status(), expected, "{head}");
    }
    assert!(children_of(proxy.pid()).is_empty(), "nothing was started");
    assert_eq!(Session::open(&proxy).ask(call(1, "good")).status(), 200);
    proxy.end();
}

/// A server on a pipe is told nothing of headers, and would have to make sense of the bytes.
#[test]
fn encoded_messages_reach_no_server_on_a_pipe() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let (session, mut stream) = (Session::open(&proxy), SseClient::open(&proxy));
    let id = session.header();
    for wrong in [&["Content-Encoding: gzip"][..], &["Content-Encoding: identity", "Content-Encoding: br"]] {
        for (path, headers) in [("/mcp", [&[id.as_str()], wrong].concat()), (stream.endpoint.as_str(), wrong.to_vec())]
        {
            let refused = proxy.client().ask(&post(path, &headers, ZIPPED));
            assert_eq!(refused.status(), 415, "{path} {wrong:?}");
            assert_eq!(refused.error(), (-32600, json!(null)), "{path} {wrong:?}");
        }
    }
    let plain = ["Content-Encoding: Identity", &id];
    assert_eq!(proxy.client().ask(&post("/mcp", &plain, call(1, "good"))).status(), 200);
    stream.tell(call(2, "seen"));
    for seen in [session.ask(call(2, "seen")).json(), stream.json()] {
        let lines = seen["result"]["lines"].as_array().expect("they are listed");
        let is_message = |line: &serde_json::Value| line.as_str().is_some_and(|line| line.starts_with('{'));
        assert!(lines.iter().all(is_message), "{seen}");
    }
    drop(stream);
    proxy.end();
}

/// Each of these bodies may come, but there is no room for all of them at once.
#[test]
fn bodies_that_come_at_once_have_so_much_room_together() {
    const MIB: usize = 1 << 20;
    const LAST: usize = 10;
    let sandbox = Sandbox::new();
    let limit = (8 * MIB).to_string();
    let proxy = sandbox.listen_to_fixture(&["puppet"], &["--message-limit", &limit]);
    let session = Session::open(&proxy);
    let padding = " ".repeat(7 * MIB);
    let requests: Vec<Vec<u8>> =
        (1..=10).map(|id| post("/mcp", &[&session.header()], format!("{}{padding}", call(id, "good")))).collect();
    let mut clients: Vec<_> = requests.iter().map(|_| proxy.client()).collect();
    for (client, request) in clients.iter_mut().zip(&requests) {
        // Whoever is refused need not be listened to any longer.
        let _ = client.try_send(&request[..request.len() - LAST]);
    }
    let mut statuses: Vec<u16> = Vec::new();
    for (client, request) in clients.iter_mut().zip(&requests) {
        let _ = client.try_send(&request[request.len() - LAST..]);
        let response = client.response();
        statuses.push(response.status());
        if response.status() == 503 {
            assert_eq!((response.error().0, response.head.get("retry-after").as_deref()), (5031, Some("5")));
        }
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 9].as_slice(), &[503]].concat());
    // There is room again.
    assert_eq!(proxy.client().ask(&requests[0]).status(), 200);
    drop(clients);
    proxy.end();
}

/// A server on a pipe has no status to refuse them with.
#[test]
fn bodies_that_are_no_message_are_refused() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let (session, mut stream) = (Session::open(&proxy), SseClient::open(&proxy));
    let header = session.header();
    for body in [
        "",
        "   ",
        "no json",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}",
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","method":null}"#,
        "7",
        "null",
        "\"text\"",
    ] {
        for (path, headers) in [("/mcp", &[header.as_str()][..]), (stream.endpoint.as_str(), &[])] {
            let refused = proxy.client().ask(&post(path, headers, body));
            assert_eq!((refused.status(), refused.error()), (400, (-32600, json!(null))), "{path} {body:?}");
        }
    }
    assert_eq!(session.ask(call(1, "good")).status(), 200);
    stream.tell(call(2, "seen"));
    let of_stream = stream.json()["result"]["lines"].clone();
    assert_eq!((session.seen().len(), of_stream), (2, json!([])), "none of them reached a server");
    drop(stream);
    proxy.end();
}

const NOT_READ: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;

/// A server that cannot read an id answers to none.
#[test]
fn an_error_to_no_id_reaches_the_only_open_call() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ignore/deep","params":{}1{}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    for (body, known_by, id) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ignore/torn","params":{"#, "ignore/torn", "1"),
        (&deep, "ignore/deep", "1"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ignore/true"}"#, "ignore/true", "true"),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"initialize","params":{"#,
            r#""id":true,"method":"initialize""#,
            "true",
        ),
        // Ids that no answer can repeat.
        (r#"{"jsonrpc":"2.0","id":"b\ad","method":"ignore/bad"}"#, "ignore/bad", "null"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ignore/1"},{"jsonrpc":"2.0","id":2,"method":"ignore/2"}]"#,
            "ignore/2",
            "null",
        ),
    ] {
        let mut waiting = session.hold(body, known_by);
        session.say(&[NOT_READ]);
        let told = waiting.response();
        let status = if id == "null" { 400 } else { 200 };
        assert_eq!((told.status(), &told.body[..]), (status, NOT_READ.replace("null", id).as_bytes()), "{known_by}");
        assert_eq!(session.ask(call(1, "good")).status(), 200);
    }
    // Of two, neither is taken for the one.
    let mut waiting = [1, 2].map(|id| session.hold(&call(id, &format!("ignore/of-{id}")), &format!("ignore/of-{id}")));
    session.say(&[NOT_READ]);
    let answers = [1, 2].map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    session.say(&answers);
    for (waiting, answer) in waiting.iter_mut().zip(&answers) {
        assert_eq!(waiting.response().body, answer.as_bytes());
    }
    proxy.end();
}

#[test]
fn a_version_header_names_one_revision_or_what_the_server_agreed_to() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let session = Session::open(&proxy);
    let other = Session::open_with(&proxy, "of-the-house");
    let ask = |session: &Session<'_>, versions: &[&str]| {
        let named = versions.iter().map(|version| format!("MCP-Protocol-Version: {version}"));
        let headers: Vec<String> = named.chain([session.header()]).collect();
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let posted = proxy.client().ask(&post("/mcp", &headers, call(1, "good"))).status();
        if posted == 400 {
            assert_eq!(proxy.client().ask(&get("/mcp", &headers)).status(), 400, "{versions:?}");
            assert_eq!(proxy.client().ask(&bare("DELETE", "/mcp", &headers)).status(), 400, "{versions:?}");
        }
        posted
    };
    for wrong in ["", "x", "of-the-house", "2025-06-19", "2025-06-18, 2025-06-18", "\"2025-06-18\""] {
        assert_eq!(ask(&session, &[wrong]), 400, "{wrong:?}");
    }
    assert_eq!(ask(&session, &["2025-06-18", "2025-03-26"]), 400);
    assert_eq!(ask(&session, &["2025-06-18", "2026-07-28"]), 400);
    for fine in [&[][..], &["2025-06-18"], &["2024-11-05"], &["2025-06-18", "2025-06-18"]] {
        assert_eq!(ask(&session, fine), 200, "{fine:?}");
    }
    assert_eq!(ask(&other, &["of-the-house"]), 200);
    let opening = proxy.client().ask(&post("/mcp", &["MCP-Protocol-Version: x"], initialize(LEGACY)));
    assert_eq!(opening.status(), 400);
    assert_eq!(children_of(proxy.pid()).len(), 2, "it started no server");
    proxy.end();
}

#[test]
fn a_request_of_the_newest_revision_says_so_itself() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let headers = [MODERN, "Mcp-Method: good"];
    for params in ["", r#","params":{}"#, r#","params":{"_meta":{}}"#, r#","params":{"_meta":7}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"mine","method":"good"{params}}}"#);
        let refused = proxy.client().ask(&post("/mcp", &headers, body));
        assert_eq!((refused.status(), refused.error()), (400, (-32602, json!("mine"))), "{params}");
    }
    let passed = proxy.client().ask(&post("/mcp", &headers, modern("7", "good", json!({}))));
    assert_eq!((passed.status(), &passed.json()["result"]["method"]), (200, &json!("good")));
    // A version that the proxy does not know is the server's to refuse, under the id of the request.
    let unknown = modern("8", "good", json!({})).replace("2026-07-28", "of-the-house");
    let headers = ["MCP-Protocol-Version: of-the-house", "Mcp-Method: good"];
    let passed = proxy.client().ask(&post("/mcp", &headers, unknown));
    assert_eq!((passed.status(), &passed.json()["id"]), (200, &json!(8)));
    proxy.end();
}

const TOOL: &str = "echo";

/// A call of the newest revision, with other headers than it should have.
fn mismatched(headers: &[&str], id: &str) -> Vec<u8> {
    let body = modern(id, "tools/call", json!({ "name": TOOL, "arguments": { "city": "Bern", "days": 3 } }));
    post("/mcp", headers, body)
}

/// The headers that such a call should have, each to be had by its number.
const RIGHT: [&str; 5] =
    [MODERN, "Mcp-Method: tools/call", "Mcp-Name: echo", "Mcp-Param-City: Bern", "Mcp-Param-Days: 3"];

#[test]
fn headers_that_say_other_than_the_body_are_refused() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let tools = json!({ "tools": [{ "name": TOOL, "inputSchema": { "type": "object", "properties": {
        "city": { "type": "string", "x-mcp-header": "City" },
        "days": { "type": "integer", "x-mcp-header": "Days" },
    } } }] });
    let listed = modern("0", "tools/list", json!({ "answer": tools }));
    let mut client = proxy.client();
    assert_eq!(client.ask(&post("/mcp", &[MODERN, "Mcp-Method: tools/list"], listed)).json()["result"], tools);
    let wrong = [
        (0, ""),
        (0, "MCP-Protocol-Version: 2027-01-01"),
        (1, ""),
        (1, "Mcp-Method: tools/list"),
        (1, "Mcp-Method: Tools/Call"),
        (1, "Mcp-Method: tools/call\r\nMcp-Method: tools/call"),
        (1, "Mcp-Method: tools/call\r\nMcp-Method: tools/list"),
        (2, ""),
        (2, "Mcp-Name: delete_everything"),
        (2, "Mcp-Name: Echo"),
        (2, "Mcp-Name: echo\r\nMcp-Name: echo"),
        (2, "Mcp-Name: =?base64?ZWNobw?="),
        (2, "Mcp-Name: =?base64?!!!!?="),
        (3, ""),
        (3, "Mcp-Param-City: Basel"),
        (3, "Mcp-Param-City: Bern\r\nMcp-Param-City: Bern"),
        (4, ""),
        (4, "Mcp-Param-Days: 4"),
    ];
    for (place, header) in wrong {
        let mut headers = RIGHT.to_vec();
        headers[place] = header;
        headers.retain(|header| !header.is_empty());
        let refused = client.ask(&mismatched(&headers, "\"mine\""));
        assert_eq!((refused.status(), refused.error()), (400, (-32020, json!("mine"))), "{header:?} for {place}");
        // The same call with the right headers, spelled in another way.
        let right = [MODERN, "mcp-method: tools/call", "MCP-NAME: =?base64?ZWNobw==?=", RIGHT[3], RIGHT[4]];
        let passed = client.ask(&mismatched(&right, "7"));
        assert_eq!((passed.status(), &passed.json()["result"]["method"]), (200, &json!("tools/call")), "{passed:?}");
    }
    let seen = client.ask(&post("/mcp", &[MODERN, "Mcp-Method: seen"], modern("8", "seen", json!({})))).json();
    let calls =
        seen["result"]["lines"].as_array().unwrap().iter().filter(|line| line.to_string().contains("tools/call"));
    assert_eq!(calls.count(), wrong.len(), "of the others none reached the server");
    proxy.end();
}

#[test]
fn forged_event_ids_bring_back_nothing() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let (mine, other) = (Session::open(&proxy), Session::open(&proxy));
    let mut stream = other.listen(None);
    other.say(&[CHANGED, CHANGED, CHANGED]);
    let ids: Vec<String> = (0..3).map(|_| stream.next().id.expect("it has an id")).collect();
    // Another's id, and ids that nobody was given.
    let forged =
        ["", "x", "-", "1-", "-1", "0-0", "1-0", "2-99", "99-1", "1-1-1", "18446744073709551616-1", "1-\u{661}"];
    let known = r#"{"jsonrpc":"2.0","method":"notifications/mine"}"#;
    for last in forged.into_iter().chain(ids.iter().map(String::as_str)) {
        let mut stream = mine.listen(Some(last));
        mine.say(&[known]);
        assert_eq!(stream.next().data, known, "{last:?} brings nothing else");
    }
    // Nor does an id of one's own that lies ahead.
    let mut stream = mine.listen(None);
    mine.say(&[known]);
    let (number, place) = {
        let id = stream.next().id.expect("it has an id");
        let (number, place) = id.split_once('-').expect("of two parts");
        (number.to_owned(), place.parse::<u64>().expect("a number"))
    };
    let mut ahead = mine.listen(Some(&format!("{number}-{}", place + 5)));
    mine.say(&[CHANGED]);
    assert_eq!(ahead.next().data, CHANGED);
    // The newest revision has none of this.
    let mut client = proxy.client();
    let request = get("/mcp", &[MODERN, "Last-Event-ID: 1-1", &mine.header()]);
    assert_eq!(client.ask(&request).status(), 405);
    assert_eq!(mine.ask(call(1, "good")).status(), 200);
    proxy.end();
}

#[test]
fn a_call_that_is_over_can_be_asked_for_by_its_own_session_only() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let (mine, other) = (Session::open(&proxy), Session::open(&proxy));
    let secret = r#"{"jsonrpc":"2.0","id":1,"result":"secret"}"#;
    let mut waiting = mine.hold(&call(1, "ignore/this"), "ignore/this");
    mine.say(&[CHANGED]);
    waiting.head();
    let last = waiting.next().id.expect("it has an id");
    drop(waiting);
    mine.say(&[secret]);
    until_recorded(&sandbox, secret);
    let mut stream = other.listen(Some(&last));
    other.say(&[CHANGED]);
    assert_eq!(stream.next().data, CHANGED);
    assert_eq!(mine.listen(Some(&last)).all().first().map(|event| event.data.as_str()), Some(secret));
    proxy.end();
}

/// What a server compresses although nobody asked for that is not blown up here.
#[test]
fn a_compressed_answer_is_no_answer_across_transports() {
    const MIB: usize = 1 << 20;
    let mut pair = Pair::open();
    let json_zipped = &["Content-Type: application/json", "Content-Encoding: gzip"];
    pair.send(call(1, "x"));
    let mut request = pair.origin.call();
    assert_eq!(request.head.get("accept-encoding"), None, "it was not asked for");
    request.send(answer("200 OK", json_zipped, ZIPPED));
    assert_eq!(error_of(&pair.proxy), (json!(1), json!(5022)));
    pair.ask(2);
    // Of a bomb the proxy sees what came, and a body has its limit.
    pair.send(call(3, "x"));
    let mut request = pair.origin.call();
    request.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n");
    let block = chunk(vec![0; 1 << 16]);
    until("the proxy has had enough", || request.try_send(&block).is_err());
    assert_eq!(error_of(&pair.proxy), (json!(3), json!(5130)));
    // As a stream it has no events in it.
    pair.send(call(4, "x"));
    let zipped_stream = String::from_utf8_lossy(STREAM).replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
    pair.origin.call().send([zipped_stream.as_bytes(), &chunk(ZIPPED), LAST_CHUNK].concat());
    assert_eq!(error_of(&pair.proxy), (json!(4), json!(5023)));
    pair.ask(5);
    let peak = peak_bytes(pair.proxy.pid());
    assert!(peak < 160 * MIB as u64, "{peak} bytes");
    pair.end();
}

#[test]
fn event_data_that_is_no_message_stays_in_the_proxy() {
    let mut pair = Pair::open();
    pair.send(call(1, "x"));
    let noise = ["hello", "\"text\"", "7", "null"].map(event).concat();
    pair.origin.call().send([STREAM, &noise, &event(result(1)), LAST_CHUNK].concat());
    assert_eq!(pair.proxy.line(), format!("{}\n", result(1)).as_bytes());
    pair.ask(2);
    pair.end();
}

/// Posts to an endpoint of somebody else's, or of nobody's.
#[test]
fn endpoints_of_connections_cannot_be_guessed_or_shared_out() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.listen_to_puppet();
    let client = SseClient::open(&proxy);
    let session = Session::open(&proxy);
    let ask = |path: &str| proxy.client().ask(&post(path, &[], call(1, "x"))).status();
    for path in [
        "/message",
        "/message?session=",
        "/message?session=0",
        "/message?session=00000000-0000-0000-0000-000000000000",
        "/message?x=1",
        &format!("/message?session={}", session.id),
        &format!("{}x", client.endpoint),
        &format!("{}&session=x", client.endpoint),
    ] {
        assert_eq!(ask(path), 404, "{path}");
    }
    let of_stream = client.endpoint.split_once('=').expect("an id").1;
    let header = format!("Mcp-Session-Id: {of_stream}");
    assert_eq!(proxy.client().ask(&post("/mcp", &[&header], call(1, "x"))).status(), 404);
    assert_eq!(ask(&client.endpoint), 202);
    drop(client);
    proxy.end();
}
