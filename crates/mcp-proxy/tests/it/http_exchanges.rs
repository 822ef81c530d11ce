//! An exchange passes whole: status, headers, body, however they were sent. What concerns one
//! connection only stays on it, and what is secret stays out of the recording.

use crate::http_kit::{
    LAST_CHUNK, Origin, Recording, STREAM, accepted, answer, bare, call, chunk, event, get, json, post, result,
};
use crate::kit::Sandbox;

/// Everything about a head that is meant for the other end, in an order that does not depend on ours.
fn end_to_end(mut headers: Vec<(String, Vec<u8>)>) -> Vec<(String, String)> {
    let framing = ["host", "content-length", "transfer-encoding", "connection"];
    headers.retain(|(name, _)| !framing.contains(&name.as_str()));
    // Values of one name keep their order.
    headers.sort_by(|one, other| one.0.cmp(&other.0));
    headers.into_iter().map(|(name, value)| (name, value.escape_ascii().to_string())).collect()
}

const ODD_HEADERS: &[&str] = &[
    "Content-Type: application/json; charset=utf-8",
    "X-Twice: one",
    "x-TWICE: two, three",
    "X-Empty:",
    "X-Inside:   a  b\tc   ",
    "X-Latin: caf\u{e9}",
    "Mcp-Method: tools/call",
    "Mcp-Name: =?base64?w6nDqQ==?=",
    "Mcp-Param-Region: us-west1",
    "Mcp-Unknown-Thing: yes",
    "MCP-Protocol-Version: 2025-06-18",
    "Last-Event-ID: 00-7/a=b",
    "Mcp-Session-Id: !s3ss10n~",
    "Via: 1.1 somebody",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
];

#[test]
fn headers_pass_both_ways_and_those_of_a_connection_do_not() {
    let hop_by_hop = [
        "Connection: keep-alive, X-Only-Here",
        "X-Only-Here: 1",
        "Keep-Alive: timeout=5",
        "Proxy-Connection: keep-alive",
        "TE: trailers",
        "Trailer: X-Last",
        "Upgrade: h2c",
    ];
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = proxy.client();
    let lines = |more: &[&str]| [ODD_HEADERS, more].concat().join("\r\n");
    let body = call(1, "x");
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{}\r\nContent-Length: {}\r\n\r\n{body}",
        lines(&hop_by_hop),
        body.len()
    );
    client.send(request.as_bytes());
    let mut reached = origin.call();
    let expected = crate::http_kit::Head { raw: format!("x\r\n{}\r\n", lines(&[])).into_bytes() };
    assert_eq!(end_to_end(reached.head.headers()), end_to_end(expected.headers()));
    assert_eq!(reached.head.get("host"), Some(format!("127.0.0.1:{}", origin.port())));

    let of_server =
        ["WWW-Authenticate: Bearer realm=\"a\"", "WWW-Authenticate: Basic", "Date: Sat, 01 Jan 2000 00:00:00 GMT"];
    let of_server =
        [&of_server[..], &["Server: odd/1", "Retry-After: 7", "Location: http://elsewhere.example/"]].concat();
    reached.send(format!(
        "HTTP/1.1 200 Just Fine\r\n{}\r\nContent-Length: 2\r\n\r\n{{}}",
        lines(&[&hop_by_hop[1..], &["Connection: X-Only-Here"], &of_server].concat())
    ));
    let response = client.response();
    let expected = crate::http_kit::Head { raw: format!("x\r\n{}\r\n", lines(&of_server)).into_bytes() };
    assert_eq!(end_to_end(response.head.headers()), end_to_end(expected.headers()));
    assert_eq!((response.head.start().as_str(), response.body.as_slice()), ("HTTP/1.1 200 Just Fine", &b"{}"[..]));
    proxy.end();
}

#[test]
fn statuses_pass_with_and_without_bodies() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = proxy.client();
    let problem = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#;
    let statuses = [
        "200 OK",
        "201 Created",
        "202 Accepted",
        "204 No Content",
        "301 Moved Permanently",
        "304 Not Modified",
        "307 Temporary Redirect",
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "405 Method Not Allowed",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "503 Service Unavailable",
        "599 Never Heard Of",
    ];
    for status in statuses {
        let without = ["204", "304"].iter().any(|bodiless| status.starts_with(bodiless));
        let bodies: &[&[u8]] = if without { &[b""] } else { &[b"", problem.as_bytes(), b"<h1>No\xff</h1>"] };
        for body in bodies {
            for method in ["POST", "GET", "DELETE"] {
                let request =
                    if method == "POST" { post("/mcp", &[], call(1, "x")) } else { bare(method, "/mcp", &[]) };
                client.send(&request);
                let mut reached = origin.call();
                assert_eq!(reached.asked(), format!("{method} /mcp"));
                let media = if body.starts_with(b"{") { "application/json" } else { "text/html" };
                let head = format!("HTTP/1.1 {status}\r\nContent-Type: {media}\r\nLocation: /elsewhere\r\n");
                if without {
                    reached.send(format!("{head}\r\n"));
                } else if method == "GET" {
                    reached.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
                    reached.send([chunk(body), LAST_CHUNK.to_vec()].concat().split_off(if body.is_empty() {
                        5
                    } else {
                        0
                    }));
                } else {
                    reached.send([format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat());
                }
                let response = client.response();
                assert_eq!(response.head.start(), format!("HTTP/1.1 {status}"), "{method}");
                assert_eq!(response.body, *body, "{method} {status}");
                assert_eq!(response.head.get("location").as_deref(), Some("/elsewhere"), "nothing is followed");
                let counted = response.head.get("content-length");
                if method == "GET" && !without {
                    assert_eq!(counted, None, "{method} {status}");
                } else if !without {
                    assert_eq!(counted, Some(body.len().to_string()), "{method} {status}");
                }
            }
        }
    }
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!(recording.answers().len(), recording.requests().len());
    assert!(recording.answers().iter().any(|answer| answer.status == 599));
    assert!(recording.ends().iter().any(|how| how.contains("a body that is no message: <h1>No")));
    assert!(recording.events().is_empty(), "they have no numbers among the messages");
}

/// What a server says beside 202 is part of its exchange, and takes no number from a message.
#[test]
fn a_word_beside_an_acceptance_is_no_message() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = proxy.client();
    let bodies = [("text/plain", "Accepted"), ("application/json", "Accepted"), ("application/json", "\"Accepted\"")];
    for (media, body) in bodies {
        client.send(&post("/mcp", &[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        origin.call().send(answer("202 Accepted", &[&format!("Content-Type: {media}")], body));
        let response = client.response();
        assert_eq!((response.status(), response.body.as_slice()), (202, body.as_bytes()));
    }
    client.send(&post("/mcp", &[], call(1, "x")));
    origin.call().send(answer("200 OK", &["Content-Type: text/plain"], "no answer"));
    assert_eq!(client.response().body, b"no answer");
    proxy.end();
    let recording = Recording::of(&sandbox);
    let sequences: Vec<u64> = recording.messages().iter().map(|message| message.sequence).collect();
    assert_eq!((sequences, recording.events()), (vec![1, 2, 3, 4], Vec::<String>::new()));
    assert_eq!(recording.ends(), ["", "", "", "a body that is no message: no answer"]);
}

#[test]
fn events_pass_as_they_came() {
    let odd = [
        &b"\xef\xbb\xbf: a comment first\n\n"[..],
        b"id: 1\nretry: 250\ndata:\n\n",
        b"event: message\r\nid: e/2\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r\n\r\n",
        b"data:{\"jsonrpc\":\"2.0\",\rdata:\"method\":\"b\"}\r\r",
        b": keep-alive\n\n",
        b"\n\n\n",
        b"unknown: field\ndata\nid\nevent:  two blanks\n\n",
        b"data: \xff\xfe not text\nretry: soon\nid: nul\x00inside\n\n",
        b": a comment\n:another\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\n: in between\ndata: \"result\":{}}\n\n",
        b"data: an event without its end",
    ];
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        let mut client = proxy.client();
        let is_sse = transport == "sse";
        client.send(&if is_sse { get("/sse", &[]) } else { post("/mcp", &[], call(1, "x")) });
        let mut stream = origin.call();
        stream.send(STREAM);
        client.head();
        for event in odd {
            // Byte by byte: where a chunk ends says nothing.
            for byte in event {
                stream.send(chunk([*byte]));
            }
        }
        stream.send(LAST_CHUNK);
        // What no blank line ended is no event; only the newer transport passes bytes before it knows.
        let passed = if is_sse { odd[..odd.len() - 1].concat() } else { odd.concat() };
        let (got, is_whole) = client.rest();
        assert_eq!((got.escape_ascii().to_string(), is_whole), (passed.escape_ascii().to_string(), true));
        proxy.end();
        let recording = Recording::of(&sandbox);
        let recorded: Vec<(String, Option<&str>)> = recording
            .by_server()
            .iter()
            .map(|message| (message.raw.escape_ascii().to_string(), message.event_id.as_deref()))
            .collect();
        let expected = [
            (br#"{"jsonrpc":"2.0","method":"a"}"#.escape_ascii().to_string(), Some("e/2")),
            (b"{\"jsonrpc\":\"2.0\",\n\"method\":\"b\"}".escape_ascii().to_string(), None),
            (b"\xff\xfe not text".escape_ascii().to_string(), None),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\n\"result\":{}}".escape_ascii().to_string(), None),
        ];
        assert_eq!(recorded, expected, "{transport}");
        assert!(
            recording.events().iter().any(|event| event.contains("an event without its end")),
            "{:?}",
            recording.events()
        );
    }
}

#[test]
fn headers_of_the_command_line_are_added_and_win() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let added = [
        "--header",
        "X-Key: command line",
        "--header",
        "X-Key: twice",
        "--header",
        "Authorization: Bearer added-secret",
    ];
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[&["--quiet"], &added[..]].concat());
    let mut client = proxy.client();
    client.send(&post("/mcp", &["X-Key: client", "Authorization: Bearer client-secret"], call(1, "x")));
    let mut reached = origin.call();
    assert_eq!(reached.head.all("x-key"), ["command line", "twice"]);
    assert_eq!(reached.head.all("authorization"), ["Bearer added-secret"]);
    reached.send(json(result(1)));
    client.response();
    client.send(&get("/.well-known/oauth-protected-resource", &[]));
    let mut reached = origin.call();
    assert_eq!(reached.head.all("x-key"), ["command line", "twice"], "on every request");
    reached.send(json("{}"));
    client.response();
    proxy.end();
    let segment = std::fs::read(&sandbox.segments()[0]).unwrap();
    for secret in ["added-secret", "client-secret"] {
        assert!(!contains(&segment, secret), "{secret} is not recorded");
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn secrets_pass_and_are_not_recorded() {
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let file = sandbox.path("session.json");
        let more = ["--quiet", "--session-file", file.to_str().unwrap()];
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &more);
        let mut client = proxy.client();
        let sent = [
            "Authorization: Bearer TOPSECRET-1",
            "Cookie: session=TOPSECRET-2",
            "Cookie: more=TOPSECRET-3",
            "Proxy-Authorization: Basic TOPSECRET-4",
        ];
        let is_sse = transport == "sse";
        client.send(&if is_sse { get("/sse", &sent) } else { post("/mcp", &sent, call(1, "x")) });
        let mut reached = origin.call();
        assert_eq!(reached.head.all("authorization"), ["Bearer TOPSECRET-1"]);
        assert_eq!(reached.head.all("cookie"), ["session=TOPSECRET-2", "more=TOPSECRET-3"]);
        assert_eq!(reached.head.all("proxy-authorization"), Vec::<String>::new(), "meant for the first proxy");
        let set =
            ["Set-Cookie: a=TOPSECRET-5; HttpOnly", "Set-Cookie: b=TOPSECRET-6", "Content-Type: application/json"];
        reached.send(answer("200 OK", &set, result(1)));
        let response = client.response();
        assert_eq!(response.head.all("set-cookie"), ["a=TOPSECRET-5; HttpOnly", "b=TOPSECRET-6"]);
        proxy.end();
        crate::schema::check(&file);
        for file in [&sandbox.segments()[0], &file] {
            let kept = std::fs::read(file).unwrap();
            assert!(!contains(&kept, "TOPSECRET"), "{}", file.display());
            assert!(contains(&kept, "Bearer ***"), "that there was one is kept");
        }
        let shown = sandbox.stdout(["inspect", "-v", file.to_str().unwrap()]);
        assert!(shown.contains("authorization: Bearer ***") && !shown.contains("TOPSECRET"), "{shown}");
    }
}

#[test]
fn compressed_answers_pass_unread_and_are_not_asked_for() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &["Accept-Encoding: gzip, br"], call(1, "x")));
    let mut reached = origin.call();
    assert_eq!(reached.head.get("accept-encoding"), None, "what is compressed cannot be looked at");
    // A server that compresses all the same.
    let zipped = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\xae\x05\0C\xbf\xa6\xa3\x02\0\0\0";
    reached.send(answer("200 OK", &["Content-Type: application/json", "Content-Encoding: gzip"], zipped));
    let response = client.response();
    assert_eq!(
        (response.body.as_slice(), response.head.get("content-encoding").as_deref()),
        (&zipped[..], Some("gzip"))
    );
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!(recording.by_server().len(), 0);
    assert_eq!(recording.events(), ["a body that is encoded (gzip) was passed on unread"]);
}

#[test]
fn a_body_that_ends_with_its_connection_is_passed_whole() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    for version in ["1.0", "1.1"] {
        let mut client = proxy.client();
        client.send(&post("/mcp", &[], call(1, "x")));
        let mut reached = origin.call();
        reached.send(format!("HTTP/{version} 200 OK\r\nContent-Type: application/json\r\n\r\n{}", result(1)));
        reached.close();
        let response = client.response();
        assert_eq!((response.head.start().as_str(), response.is_whole), ("HTTP/1.1 200 OK", true));
        assert_eq!(response.body, result(1).as_bytes());
    }
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert!(recording.by_server().iter().all(|answer| answer.correlated_id.is_some()));
    assert_eq!(recording.by_server().len(), 2);
}

#[test]
fn an_older_client_gets_an_answer_it_understands() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = proxy.client();
    let body = call(1, "x");
    let head = "POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    client.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    let mut reached = origin.call();
    assert_eq!((reached.head.start().as_str(), reached.text()), ("POST /mcp HTTP/1.1", body));
    reached.send(STREAM);
    reached.send(event(result(1)));
    reached.send(LAST_CHUNK);
    let head = client.head();
    assert_eq!((head.status(), head.get("transfer-encoding")), (200, None));
    assert_eq!(client.rest(), (format!("data: {}\n\n", result(1)).into_bytes(), true));
    proxy.end();
}

#[test]
fn a_client_may_ask_before_it_sends_its_body() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = proxy.client();
    let body = call(1, "x");
    let request = post("/mcp", &["Expect: 100-continue"], &body);
    client.send(&request[..request.len() - body.len()]);
    assert_eq!(client.head().status(), 100);
    client.send(body.as_bytes());
    let mut reached = origin.call();
    assert_eq!(reached.text(), body);
    reached.send(b"HTTP/1.1 100 Continue\r\n\r\n");
    reached.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
    reached.send(json(result(1)));
    let response = client.response();
    assert_eq!((response.status(), response.body.as_slice()), (200, result(1).as_bytes()));
    proxy.end();
}

#[test]
fn a_message_that_is_only_taken_is_only_taken() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
    origin.call().send(accepted());
    let response = client.response();
    assert_eq!((response.status(), response.body.len()), (202, 0));
    // And one without anything in it is an exchange all the same.
    client.send(&post("/mcp", &[], ""));
    let mut reached = origin.call();
    assert_eq!((reached.body.len(), reached.head.get("content-length").as_deref()), (0, Some("0")));
    reached.send(answer("400 Bad Request", &[], ""));
    assert_eq!(client.response().status(), 400);
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!((recording.messages().len(), recording.requests().len(), recording.answers().len()), (1, 2, 2));
}
