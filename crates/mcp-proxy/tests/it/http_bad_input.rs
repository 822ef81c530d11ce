//! Bad requests cost themselves and nothing else: they reach no server, and the next good one works.

use std::thread;

use crate::http_kit::{Client, LAST_CHUNK, Listening, MODERN, Origin, Recording, call, chunk, get, json, post, result};
use crate::kit::{Sandbox, peak_bytes};

const MIB: usize = 1 << 20;

struct Stage {
    sandbox: Sandbox,
    origin: Origin,
    proxy: Listening,
}

impl Stage {
    fn set(more: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &[&["--quiet"], more].concat());
        Self { sandbox, origin, proxy }
    }

    /// A good request works, on this connection or on another.
    #[track_caller]
    fn works(&self, client: &mut Client) {
        client.send(&post("/mcp", &[], call(7, "good")));
        let mut reached = self.origin.call();
        assert_eq!(reached.text(), call(7, "good"));
        reached.send(json(result(7)));
        assert_eq!(client.response().body, result(7).as_bytes());
    }

    /// Something that is no request gets one of `statuses`, 0 for no answer at all, and its connection
    /// is closed.
    #[track_caller]
    fn refuses(&self, bytes: &[u8], statuses: &[u16]) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned();
        let mut client = self.proxy.client();
        // The proxy may close before it has read everything.
        let _ = client.try_send(bytes);
        if !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
            // More could come, so it is waited for.
            client.finish_sending();
        }
        let status = client.try_response().map_or(0, |response| response.status());
        client.finish_sending();
        assert!(statuses.contains(&status), "{status}: {shown:?}");
        assert_eq!(client.until_closed(), b"", "{shown:?}");
        self.origin.saw_nothing();
        self.works(&mut self.proxy.client());
    }
}

#[test]
fn what_is_no_http_is_refused() {
    let stage = Stage::set(&[]);
    let good = "Host: localhost\r\nContent-Type: application/json\r\n";
    for garbage in [
        "garbage\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
        "\u{16}\u{3}\u{1}\0\u{a5}\u{1}\0\0\u{a1}\u{3}\u{3}",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /mcp\r\n\r\n",
        "GET /mcp HTTP/0.9\r\n\r\n",
        "GET /mcp HTTP/2.0\r\nHost: localhost\r\n\r\n",
        "GET /mcp HTTP/1.2\r\nHost: localhost\r\n\r\n",
        "GET  /mcp  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /mcp HTTP/1.1 \r\nHost: localhost\r\n\r\n",
        "GET /m cp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /\u{1}mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "G\0T /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type : application/json\r\n\r\n",
        "POST /mcp HTTP/1.1\r\n Host: localhost\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost localhost\r\n\r\n",
        "POST /mcp HTTP/1.1\r\n: localhost\r\n\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n",
    ] {
        stage.refuses(garbage.as_bytes(), &[400, 0]);
    }
    for broken in [
        "X-Folded: one\r\n two\r\n",
        "X-Nul: a\0b\r\n",
        "X-Control: a\u{7}b\r\n",
        "X-Return: a\rb\r\n",
        "X\u{e9}: a\r\n",
        "X-(Odd): a\r\n",
        "X-Blank name: a\r\n",
    ] {
        let request = format!("POST /mcp HTTP/1.1\r\n{good}{broken}Content-Length: 2\r\n\r\n{{}}");
        stage.refuses(request.as_bytes(), &[400]);
    }
    stage.proxy.end();
}

#[test]
fn lengths_that_can_be_read_in_two_ways_smuggle_nothing() {
    let stage = Stage::set(&[]);
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let body = call(1, "x");
    let length = body.len();
    for broken in [
        format!("Content-Length: {length}\r\nContent-Length: {}\r\n\r\n{body}", length + 1),
        format!("Content-Length: {length}, {}\r\n\r\n{body}", length + 1),
        format!("Content-Length: +{length}\r\n\r\n{body}"),
        format!("Content-Length: -1\r\n\r\n{body}"),
        format!("Content-Length: 0x{length:x}\r\n\r\n{body}"),
        format!("Content-Length: {length}.0\r\n\r\n{body}"),
        format!("Content-Length: 99999999999999999999999\r\n\r\n{body}"),
        format!("Content-Length:\r\n\r\n{body}"),
        format!("Transfer-Encoding: identity\r\n\r\n{body}"),
        format!("Transfer-Encoding: chunked, gzip\r\n\r\n{body}"),
        format!("Transfer-Encoding: xchunked\r\n\r\n{body}"),
        format!("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{body}"),
    ] {
        stage.refuses(format!("{head}{broken}").as_bytes(), &[400]);
    }
    for broken in [
        "x\r\n",
        "-1\r\n{}\r\n",
        "\r\n",
        "2 2\r\n{}\r\n",
        "fffffffffffffffff\r\n{}\r\n",
        "2\r\n{}xx0\r\n\r\n",
        "2\n{}\n0\n\n",
    ] {
        stage.refuses(format!("{head}Transfer-Encoding: chunked\r\n\r\n{broken}").as_bytes(), &[400]);
    }
    let old = head.replace("HTTP/1.1", "HTTP/1.0");
    stage.refuses(format!("{old}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").as_bytes(), &[400]);

    // With both, the chunks count, as the standard has it, and what follows them is no request.
    let smuggled = String::from_utf8(post("/mcp", &[], call(666, "smuggled"))).unwrap();
    for both in
        ["Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"]
    {
        let mut client = stage.proxy.client();
        client.send(format!("{head}{both}\r\n").as_bytes());
        client.send(&[chunk(&body), LAST_CHUNK.to_vec(), smuggled.clone().into_bytes()].concat());
        let mut reached = stage.origin.call();
        assert_eq!((reached.text(), reached.head.get("transfer-encoding")), (body.clone(), None));
        reached.send(json(result(1)));
        assert_eq!(client.response().status(), 200);
        assert_eq!(client.until_closed(), b"", "it is the last request on its connection");
        stage.origin.saw_nothing();
        stage.works(&mut stage.proxy.client());
    }
    stage.proxy.end();
}

#[test]
fn odd_targets_lead_nowhere_else() {
    let stage = Stage::set(&[]);
    let body = call(1, "x");
    let rest = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for (request, statuses) in [
        ("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), &[400, 405][..]),
        ("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), &[400, 405]),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), &[404, 405]),
        (format!("POST mcp HTTP/1.1\r\nHost: localhost\r\n{rest}"), &[400, 404]),
        (format!("POST ftp://localhost/mcp HTTP/1.1\r\nHost: localhost\r\n{rest}"), &[400, 403, 404]),
        (format!("POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\n{rest}"), &[400, 403]),
        (format!("POST http://localhost@evil.example/mcp HTTP/1.1\r\nHost: localhost\r\n{rest}"), &[400, 403]),
        (format!("POST http://localhost/mcp HTTP/1.1\r\nHost: evil.example\r\n{rest}"), &[400, 403]),
        (format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n{rest}"), &[400]),
        (format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n{rest}"), &[400]),
        (format!("POST /mcp HTTP/1.1\r\n{rest}"), &[400]),
        (format!("POST /mcp HTTP/1.0\r\n{rest}"), &[400]),
        (format!("POST /mcp HTTP/1.1\r\nHost: \r\n{rest}"), &[400, 403]),
    ] {
        stage.refuses(request.as_bytes(), statuses);
    }
    // The whole address of a resource that is here is allowed, and means the resource.
    let mut client = stage.proxy.client();
    client.send(format!("POST http://localhost/mcp?a=1 HTTP/1.1\r\nHost: localhost\r\n{rest}").as_bytes());
    let mut reached = stage.origin.call();
    assert_eq!(reached.asked(), "POST /mcp?a=1");
    assert_eq!(reached.head.get("host"), Some(format!("127.0.0.1:{}", stage.origin.port())));
    reached.send(json(result(1)));
    assert_eq!(client.response().status(), 200);
    stage.works(&mut client);
    stage.proxy.end();
}

#[test]
fn headers_that_decide_something_stand_there_once() {
    let stage = Stage::set(&[]);
    let mut client = stage.proxy.client();
    for twice in [
        ["Origin: http://localhost", "Origin: http://localhost"],
        ["Content-Type: application/json", "Content-Type: text/plain"],
        ["Authorization: Bearer a", "Authorization: Bearer b"],
        ["Mcp-Session-Id: a", "mcp-session-id: b"],
        ["Last-Event-ID: 1", "Last-Event-ID: 2"],
    ] {
        let response = client.ask(&post("/mcp", &twice, call(1, "x")));
        assert_eq!(response.status(), 400, "{twice:?}");
        stage.works(&mut client);
    }
    stage.proxy.end();
}

#[test]
fn heads_have_limits_and_what_is_within_them_passes() {
    let stage = Stage::set(&[]);
    // The target: 8 KiB.
    let mut client = stage.proxy.client();
    let target = |length: usize| format!("/mcp?{}", "a".repeat(length - 5));
    for length in [8 * 1024 - 1, 8 * 1024] {
        client.send(&post(&target(length), &[], call(1, "x")));
        let mut reached = stage.origin.call();
        assert_eq!(reached.asked().len(), "POST ".len() + length);
        reached.send(json(result(1)));
        assert_eq!(client.response().status(), 200, "{length}");
    }
    for length in [8 * 1024 + 1, 32 * 1024] {
        assert_eq!(client.ask(&post(&target(length), &[], call(1, "x"))).status(), 414, "{length}");
        stage.works(&mut client);
    }
    stage.refuses(&post(&target(200 * 1024), &[], call(1, "x")), &[414, 431, 0]);
    // The number of headers: 100, with the four that every request here has.
    let many = |count: usize| -> Vec<String> { (0..count - 4).map(|n| format!("X-{n}: {n}")).collect() };
    let with = |headers: &[String]| post("/mcp", &headers.iter().map(String::as_str).collect::<Vec<_>>(), call(1, "x"));
    client.send(&with(&many(100)));
    let mut reached = stage.origin.call();
    assert_eq!(reached.head.get("x-95").as_deref(), Some("95"));
    reached.send(json(result(1)));
    assert_eq!(client.response().status(), 200);
    stage.refuses(&with(&many(101)), &[431]);
    stage.refuses(&with(&many(20_000)), &[431, 0]);
    // The header section: 64 KiB.
    let large = |bytes: usize| post("/mcp", &[&format!("X-Large: {}", "x".repeat(bytes))], call(1, "x"));
    client.send(&large(60 * 1024));
    let mut reached = stage.origin.call();
    assert_eq!(reached.head.get("x-large").map(|value| value.len()), Some(60 * 1024));
    reached.send(json(result(1)));
    assert_eq!(client.response().status(), 200);
    // What is sent beyond the limit is not read, and may take the answer with it.
    stage.refuses(&large(64 * 1024), &[431, 0]);
    stage.refuses(&large(32 * MIB), &[431, 0]);
    let endless = [b"GET /mcp HTTP/1.1\r\nX-Endless: ".to_vec(), vec![b'x'; 16 * MIB]].concat();
    stage.refuses(&endless, &[431, 0]);
    let peak = peak_bytes(stage.proxy.pid());
    assert!(peak < 32 * MIB as u64, "{peak} bytes");
    stage.proxy.end();
}

/// A request of exactly `size` bytes.
fn request_of(size: usize) -> Vec<u8> {
    let mut message = br#"{"jsonrpc":"2.0","id":1,"method":"sized","pad":""#.to_vec();
    message.resize(size - 2, b'x');
    message.extend_from_slice(b"\"}");
    message
}

fn in_chunks(body: &[u8], more: &str) -> Vec<u8> {
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let mut request = format!("{head}{more}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    body.chunks(100_000).for_each(|data| request.extend_from_slice(&chunk(data)));
    request.extend_from_slice(LAST_CHUNK);
    request
}

#[test]
fn messages_up_to_the_limit_pass_and_beyond_it_fail_alone() {
    // One limit below what is waited for, one above.
    for limit in [64 * 1024, MIB] {
        let stage = Stage::set(&["--message-limit", &limit.to_string()]);
        for (size, passes) in [(limit - 1, true), (limit, true), (limit + 1, false), (5 * limit, false)] {
            for counted in [true, false] {
                for era in ["", "MCP-Protocol-Version: 2026-07-28\r\n"] {
                    let message = request_of(size);
                    let request = if counted {
                        let head: &[&str] = if era.is_empty() { &[] } else { &[MODERN] };
                        post("/mcp", head, &message)
                    } else {
                        in_chunks(&message, era)
                    };
                    let mut client = stage.proxy.client();
                    thread::scope(|scope| {
                        let client = &mut client;
                        let reader = scope.spawn(move || {
                            let _ = client.try_send(&request);
                            client.response()
                        });
                        if passes {
                            let mut reached = stage.origin.call();
                            assert!(reached.body == message, "{size} of {limit}");
                            reached.send(json(result(1)));
                        }
                        let response = reader.join().unwrap();
                        let expected = if passes { 200 } else { 413 };
                        let what = format!("{size} of {limit}, counted {counted}: {response:?}");
                        assert_eq!(response.status(), expected, "{what}");
                        if !passes {
                            assert_eq!(response.error().0, 5130, "{what}");
                        }
                    });
                    drop(client);
                    stage.works(&mut stage.proxy.client());
                }
            }
        }
        let peak = peak_bytes(stage.proxy.pid());
        assert!(peak < 48 * MIB as u64, "{peak} bytes");
        stage.proxy.end();
        let sized = Recording::of(&stage.sandbox).by_client().iter().filter(|message| message.raw.len() > 100).count();
        assert_eq!(sized, 8, "what passed is recorded");
    }
}

#[test]
fn a_body_that_breaks_off_ends_with_its_client() {
    let stage = Stage::set(&[]);
    for size in [100, 200_000, MIB] {
        let message = request_of(size);
        for request in [post("/mcp", &[], &message), in_chunks(&message, "")] {
            let mut client = stage.proxy.client();
            client.send(&request[..request.len() - 20]);
            if size > 256 * 1024 {
                // It passes as it comes, so the server sees it break off too.
                let mut reached = stage.origin.call_head();
                drop(client);
                reached.read_body();
                assert!(!reached.is_whole);
            } else {
                drop(client);
            }
            stage.works(&mut stage.proxy.client());
        }
    }
    stage.proxy.end();
    let recording = Recording::of(&stage.sandbox);
    assert!(recording.by_client().iter().all(|message| message.raw.len() < 50), "nothing half is a message");
}

#[test]
fn a_client_that_sends_one_byte_at_a_time_is_served() {
    let stage = Stage::set(&[]);
    let mut client = stage.proxy.client();
    for request in [post("/mcp", &[], call(1, "dripping")), in_chunks(call(1, "dripping").as_bytes(), "")] {
        for byte in &request {
            client.send(&[*byte]);
        }
        let mut reached = stage.origin.call();
        assert_eq!(reached.text(), call(1, "dripping"));
        for byte in json(result(1)) {
            reached.send([byte]);
        }
        assert_eq!(client.response().body, result(1).as_bytes());
    }
    stage.proxy.end();
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let stage = Stage::set(&[]);
    let mut client = stage.proxy.client();
    let together: Vec<u8> = (1..=5).flat_map(|id| post("/mcp", &[], call(id, "together"))).collect();
    client.send(&together);
    for id in 1..=5 {
        let mut reached = stage.origin.call();
        assert_eq!(reached.text(), call(id, "together"));
        reached.send(json(result(id)));
        assert_eq!(client.response().body, result(id).as_bytes());
    }
    stage.proxy.end();
}

#[test]
fn garbage_messages_reach_the_server_as_they_are() {
    let stage = Stage::set(&[]);
    let mut client = stage.proxy.client();
    for garbage in [&b"garbage"[..], b"{\"half\":", b"\xff\xfe", b"\0", b"}{", b"\"text\"", b"[]", b" \r\n ", b"\n"] {
        for era in [&[][..], &[MODERN]] {
            client.send(&post("/mcp", era, garbage));
            let mut reached = stage.origin.call();
            assert_eq!(reached.body, garbage);
            // And what a server calls an answer passes as well.
            reached.send(json(garbage));
            assert_eq!(client.response().body, garbage);
        }
    }
    stage.works(&mut client);
    stage.proxy.end();
    assert_eq!(Recording::of(&stage.sandbox).messages().len(), 2 * 9 * 2 + 2);
}

#[test]
fn ten_thousand_mutants_leave_the_proxy_as_it_was() {
    let stage = Stage::set(&["--no-record"]);
    stage.works(&mut stage.proxy.client());
    let seeds = [
        post("/mcp", &["Mcp-Session-Id: s1"], call(1, "x")),
        in_chunks(call(1, "x").as_bytes(), ""),
        get("/mcp", &["Accept: text/event-stream", "Last-Event-ID: 7"]),
        get("/.well-known/x", &[]),
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mutants: Vec<Vec<u8>> = (0..10_000)
        .map(|_| {
            let mut request = seeds[random() % seeds.len()].clone();
            for _ in 0..1 + random() % 4 {
                let at = random() % request.len();
                match random() % 4 {
                    0 => request[at] = (random() % 256) as u8,
                    1 => request.insert(at, b"\r\n :;,\0"[random() % 7]),
                    2 => drop(request.remove(at)),
                    _ => request[at] ^= 1 << (random() % 8),
                }
            }
            request
        })
        .collect();
    let Stage { sandbox, origin, proxy } = stage;
    // Whatever gets through is answered.
    let port = origin.port();
    let serving = origin.serve(|call| drop(call.try_send(json("{}"))));
    thread::scope(|scope| {
        for part in mutants.chunks(mutants.len() / 4) {
            let proxy = &proxy;
            scope.spawn(move || {
                for mutant in part {
                    let mut client = proxy.client();
                    let _ = client.try_send(mutant);
                    client.finish_sending();
                    client.until_closed();
                }
            });
        }
    });
    let mut client = proxy.client();
    assert_eq!(client.ask(&post("/mcp", &[], call(7, "good"))).status(), 200, "at {port}");
    let peak = peak_bytes(proxy.pid());
    assert!(peak < 40 * MIB as u64, "{peak} bytes");
    drop((client, serving));
    proxy.end();
    drop(sandbox);
}
