//! Whatever a server does, its client gets an answer, the next call works, and memory stays bounded.

use std::thread;

use serde_json::Value;

use crate::http_kit::{
    Client, LAST_CHUNK, Listening, MODERN, Origin, Recording, STREAM, accepted, answer, call, chunk, event, get,
    is_stuck, json, post, result,
};
use crate::kit::{Sandbox, peak_bytes, until};

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

    #[track_caller]
    fn works(&self) {
        let mut client = self.proxy.client();
        client.send(&post("/mcp", &[], call(7, "good")));
        self.origin.call().send(json(result(7)));
        assert_eq!(client.response().body, result(7).as_bytes());
    }

    /// Asks, and lets the server answer with `bytes` and the end of its connection.
    #[track_caller]
    fn answered_with(&self, headers: &[&str], bytes: &[u8], resets: bool) -> Client {
        let mut client = self.proxy.client();
        client.send(&post("/mcp", headers, call("\"a-1\"", "x")));
        let mut reached = self.origin.call();
        let _ = reached.try_send(bytes);
        if resets {
            reached.reset()
        } else {
            reached.close()
        }
        client
    }
}

#[test]
fn a_server_that_gives_no_answer_is_answered_for() {
    let stage = Stage::set(&[]);
    for broken in [
        &b""[..],
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/js",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
        b"garbage\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Nul: a\0b\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"\x15\x03\x01\0\x02\x02\x16",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
    ] {
        for resets in [false, true] {
            let shown = String::from_utf8_lossy(broken).into_owned();
            let response = stage.answered_with(&[], broken, resets).response();
            assert_eq!((response.status(), response.error()), (200, (5023, "a-1".into())), "{shown:?}");
            let response = stage.answered_with(&[MODERN], broken, resets).response();
            assert_eq!((response.status(), response.error()), (502, (5023, "a-1".into())), "{shown:?}");
            stage.works();
        }
    }
    // Whoever asked for no message is not told one.
    let mut client = stage.proxy.client();
    client.send(&get("/mcp", &[]));
    stage.origin.call().close();
    let response = client.response();
    assert_eq!((response.status(), response.body.len()), (502, 0));
    stage.proxy.end();
    let recording = Recording::of(&stage.sandbox);
    let composed = recording.by_server().into_iter().filter(|answer| answer.from_proxy);
    assert!(composed.clone().all(|answer| answer.correlated_id.is_some()));
    assert_eq!(composed.count(), 16 * 4);
}

#[test]
fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    let stage = Stage::set(&[]);
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    for (broken, came) in [
        (format!("{json}Content-Length: 100\r\n\r\n{{\"jsonrpc\":").into_bytes(), "{\"jsonrpc\":"),
        (format!("{json}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"jso\r\n").into_bytes(), "{\"jso"),
        (format!("{json}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"j").into_bytes(), "{\"j"),
        (format!("{json}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"jsoxx").into_bytes(), "{\"jso"),
        (format!("{json}Transfer-Encoding: chunked\r\n\r\nzz\r\n").into_bytes(), ""),
    ] {
        for headers in [&[][..], &[MODERN]] {
            let response = stage.answered_with(headers, &broken, false).response();
            // It cannot be told any more; but it must not look whole, and what came must be there.
            let what = String::from_utf8_lossy(&broken);
            assert_eq!((String::from_utf8_lossy(&response.body), response.is_whole), (came.into(), false), "{what}");
            stage.works();
        }
    }
    stage.proxy.end();
    let recording = Recording::of(&stage.sandbox);
    assert_eq!(recording.ends().iter().filter(|how| *how == "server broke off").count(), 10, "{:?}", recording.ends());
    assert_eq!(recording.by_server().len(), 10, "what came whole is kept");
}

/// The messages of the events of a stream, and whether that ended as it should.
fn messages_of(client: &mut Client) -> (Vec<Value>, bool) {
    assert_eq!(client.head().status(), 200);
    let (rest, is_whole) = client.rest();
    let text = String::from_utf8(rest).unwrap();
    let of_messages = |event: &&str| {
        let name = event.lines().rev().find_map(|line| line.strip_prefix("event: "));
        event.contains("data: {") && name.is_none_or(|name| name == "message")
    };
    let events: Vec<&str> = text.split_inclusive("\n\n").filter(|event| event.ends_with("\n\n")).collect();
    let data = |event: &str| event.lines().filter_map(|line| line.strip_prefix("data: ")).collect::<String>();
    let read = |event: &str| serde_json::from_str(&data(event)).unwrap_or_else(|error| panic!("{error}: {text}"));
    (events.into_iter().filter(of_messages).map(read).collect(), is_whole)
}

#[test]
fn a_stream_that_breaks_off_before_the_answer_ends_with_an_error() {
    for flags in [&[][..], &["--evidence", "strict"]] {
        let stage = Stage::set(flags);
        let told = event(r#"{"jsonrpc":"2.0","method":"n"}"#);
        let halves = ["data: {\"half\"", "data: {\"half\"}\n", "event: mess", ": comm", "da", "\r"].map(chunk);
        let mut broken = vec![([STREAM, b"zz\r\n"].concat(), 0)];
        broken.extend(halves.iter().map(|half| ([STREAM, &told, half].concat(), 1)));
        for (broken, came) in &broken {
            for headers in [&[][..], &[MODERN]] {
                let (messages, is_whole) = messages_of(&mut stage.answered_with(headers, broken, false));
                let shown = String::from_utf8_lossy(broken);
                assert_eq!((messages.len(), is_whole), (came + 1, true), "{shown}: {messages:?}");
                let last = &messages[*came];
                assert_eq!((&last["id"], &last["error"]["code"]), (&"a-1".into(), &5023.into()), "{shown}");
                stage.works();
            }
        }
        stage.proxy.end();
    }
}

#[test]
fn a_stream_that_its_client_can_resume_breaks_off_as_it_came() {
    let stage = Stage::set(&[]);
    let broken = [STREAM, &chunk("id: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n")].concat();
    let (messages, is_whole) = messages_of(&mut stage.answered_with(&[], &broken, false));
    assert_eq!((messages.len(), is_whole), (1, false), "{messages:?}");
    // The newest revision knows no way to ask for the rest.
    let (messages, is_whole) = messages_of(&mut stage.answered_with(&[MODERN], &broken, false));
    assert_eq!((messages.len(), is_whole), (2, true), "{messages:?}");
    assert_eq!(messages[1]["error"]["code"], 5023);
    stage.proxy.end();
}

#[test]
fn an_answer_that_breaks_off_before_any_of_it_left_is_an_error() {
    let stage = Stage::set(&["--evidence", "strict"]);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n";
    let response = stage.answered_with(&[], format!("{head}{{\"jsonrpc\":").as_bytes(), false).response();
    assert_eq!((response.error(), response.is_whole), ((5023, "a-1".into()), true));
    stage.works();
    stage.proxy.end();
}

#[test]
fn what_came_before_a_break_arrives_at_a_slow_reader_too() {
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        let mut client = proxy.client();
        client.send(&if transport == "sse" { get("/sse", &[]) } else { post("/mcp", &[], call(1, "x")) });
        let mut stream = origin.call();
        let large =
            |at: usize| format!(r#"{{"jsonrpc":"2.0","method":"n","params":[{at},"{}"]}}"#, "x".repeat(100_000));
        let writer = thread::spawn(move || {
            stream.send(STREAM);
            (0..100).for_each(|at| stream.send(event(large(at))));
            stream.close();
        });
        until("nothing more can be sent", || is_stuck(client.tcp()));
        assert_eq!(client.head().status(), 200);
        for at in 0..100 {
            let expected = format!("data: {}\n\n", large(at));
            assert!(client.body(expected.len()) == expected.as_bytes(), "event {at}");
        }
        match transport {
            // A call was open.
            "streamable-http" => {
                assert_eq!(serde_json::from_str::<Value>(&client.message()).unwrap()["error"]["code"], 5023)
            }
            _ => assert_eq!(client.rest(), (Vec::new(), false)),
        }
        writer.join().unwrap();
        proxy.end();
    }
}

#[test]
fn an_sse_stream_that_breaks_off_ends_its_connection() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    for resets in [false, true] {
        let mut client = proxy.client();
        client.send(&get("/sse", &[]));
        let mut stream = origin.call();
        stream.send([STREAM, &chunk("event: endpoint\ndata: /m\n\n")].concat());
        client.head();
        let endpoint = client.message();
        stream.send(chunk("data: {\"half\""));
        if resets {
            stream.reset()
        } else {
            stream.close()
        }
        assert!(!client.rest().1);
        assert_eq!(proxy.client().ask(&post(&endpoint, &[], call(1, "x"))).status(), 404);
    }
    // A server that has no stream to offer says so itself.
    for status in ["404 Not Found", "405 Method Not Allowed", "401 Unauthorized"] {
        let mut client = proxy.client();
        client.send(&get("/sse", &[]));
        origin.call().send(answer(status, &["WWW-Authenticate: Bearer"], "no"));
        assert_eq!(client.response().head.start(), format!("HTTP/1.1 {status}"));
    }
    proxy.end();
}

#[test]
fn calls_on_an_sse_stream_that_breaks_off_are_answered() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    for how in ["close", "reset", "end"] {
        let mut client = proxy.client();
        client.send(&get("/sse", &[]));
        let mut stream = origin.call();
        stream.send([STREAM, &chunk("event: endpoint\ndata: /m\n\n")].concat());
        client.head();
        let endpoint = client.message();
        for id in [1, 2] {
            let mut poster = proxy.client();
            poster.send(&post(&endpoint, &[], call(id, "x")));
            origin.call().send(accepted());
            assert_eq!(poster.response().status(), 202);
        }
        stream.send(event(result(2)));
        assert_eq!(client.message(), result(2));
        stream.send(chunk("data: {\"half\""));
        match how {
            "close" => stream.close(),
            "reset" => stream.reset(),
            _ => {
                stream.send(LAST_CHUNK);
                stream.close();
            }
        }
        let answer: Value = serde_json::from_str(&client.message()).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&1.into(), &5023.into()), "{how}: {answer}");
        assert!(client.rest().0.is_empty(), "{how}");
    }
    proxy.end();
}

#[test]
fn heads_without_end_are_cut_short() {
    let stage = Stage::set(&[]);
    for block in ["X-Endless: header\r\n".repeat(1000), "x".repeat(64 * 1024)] {
        let mut client = stage.proxy.client();
        client.send(&post("/mcp", &[], call(1, "x")));
        let mut reached = stage.origin.call();
        let writer = thread::spawn(move || {
            let _ = reached.try_send("HTTP/1.1 200 OK\r\nX-First: ");
            // 100 MB, or until the proxy has had enough.
            for _ in 0..100_000_000 / block.len() {
                if reached.try_send(&block).is_err() {
                    break;
                }
            }
            reached.close();
        });
        let response = client.response();
        assert_eq!((response.status(), response.error()), (200, (5023, 1.into())));
        writer.join().unwrap();
        stage.works();
    }
    let peak = peak_bytes(stage.proxy.pid());
    assert!(peak < 32 * MIB as u64, "{peak} bytes");
    stage.proxy.end();
}

#[test]
fn bodies_without_end_cost_a_bounded_amount_of_memory() {
    let json = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    let zipped = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (transport, head) in [
        ("streamable-http", &json[..]),
        ("streamable-http", text),
        ("streamable-http", zipped),
        ("streamable-http", STREAM),
        ("sse", STREAM),
    ] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let more = ["--quiet", "--message-limit", "4194304"];
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &more);
        let mut client = proxy.client();
        let is_sse = transport == "sse";
        client.send(&if is_sse { get("/sse", &[]) } else { post("/mcp", &[MODERN], call(1, "x")) });
        let mut reached = origin.call();
        reached.send(head);
        client.head();
        // An event or a message of 256 MiB and no end in sight.
        let block = chunk([b"data: ", "x".repeat(MIB).as_bytes()].concat());
        let writer = thread::spawn(move || {
            for _ in 0..256 {
                reached.send(&block);
            }
            reached
        });
        if is_sse {
            // Nothing of it passes before it is whole.
            writer.join().unwrap().send(LAST_CHUNK);
            assert_eq!(client.rest(), (Vec::new(), true));
        } else {
            client.discard(256 * (MIB + 6));
            let mut reached = writer.join().unwrap();
            drop(client);
            reached.until_closed();
        }
        let peak = peak_bytes(proxy.pid());
        assert!(peak < 40 * MIB as u64, "{transport}: {peak} bytes");
        proxy.end();
        let events = Recording::of(&sandbox).events();
        assert!(events.len() <= 1 && events.iter().all(|event| event.len() < 4096), "{events:?}");
    }
}

#[test]
fn sixty_four_large_messages_at_once_cost_what_the_limit_says() {
    const CLIENTS: usize = 64;
    let sandbox = Sandbox::new();
    let origin = Origin::start().serve(|reached| reached.send(json(result(1))));
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet", "--no-record"]);
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":"{}"}}"#, "x".repeat(2 * MIB));
    let request = post("/mcp", &[], message);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| assert_eq!(proxy.client().ask(&request).status(), 200));
        }
    });
    let peak = peak_bytes(proxy.pid());
    assert!(peak < (CLIENTS * 4 + 64) as u64 * MIB as u64, "{peak} bytes");
    proxy.end();
}

#[test]
fn an_answer_may_come_before_the_request_is_complete() {
    let stage = Stage::set(&[]);
    for body in ["", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"too much"}}"#] {
        let mut client = stage.proxy.client();
        let request = post("/mcp", &[], vec![b' '; 8 * MIB]);
        client.send(&request[..MIB]);
        let mut reached = stage.origin.call_head();
        reached.send(answer("413 Payload Too Large", &["Content-Type: application/json"], body));
        let response = client.response();
        assert_eq!((response.status(), response.body.as_slice()), (413, body.as_bytes()));
        // What the client still sends goes nowhere, and holds nothing up.
        let _ = client.try_send(&request[MIB..]);
        client.until_closed();
        reached.close();
        stage.works();
    }
    stage.proxy.end();
}

#[test]
fn a_server_that_says_more_than_it_announced_says_it_to_nobody() {
    let stage = Stage::set(&[]);
    let mut client = stage.proxy.client();
    client.send(&post("/mcp", &[], call(1, "x")));
    let mut reached = stage.origin.call();
    // An answer, and one that nobody asked for, for the next client to find.
    reached.send([json(result(1)), json(result("\"poison\""))].concat());
    assert_eq!(client.response().body, result(1).as_bytes());
    let mut other = stage.proxy.client();
    other.send(&post("/mcp", &[], call(2, "x")));
    let mut next = stage.origin.call();
    assert_eq!((next.connection, next.text()), (1, call(2, "x")), "that connection is not used again");
    next.send(json(result(2)));
    assert_eq!(other.response().body, result(2).as_bytes());
    stage.works();
    stage.proxy.end();
}

/// An address that nobody listens on, until somebody does.
struct Reserved {
    socket: rustix::fd::OwnedFd,
    port: u16,
}

impl Reserved {
    fn new() -> Self {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        let any: std::net::SocketAddr = ([127, 0, 0, 1], 0).into();
        bind(&socket, &any).expect("there is a free port");
        let bound: std::net::SocketAddr = getsockname(&socket).expect("it is bound").try_into().expect("an address");
        Self { socket, port: bound.port() }
    }

    fn listen(self) -> Origin {
        rustix::net::listen(&self.socket, 128).expect("it can listen");
        Origin::on(self.socket.into())
    }
}

#[test]
fn a_server_that_is_not_there_is_answered_for_until_it_is() {
    let sandbox = Sandbox::new();
    let reserved = Reserved::new();
    let url = format!("http://127.0.0.1:{}/mcp", reserved.port);
    let proxy = sandbox.listen_to("streamable-http", &url, &["--quiet"]);
    let mut client = proxy.client();
    let large = format!(r#"{{"jsonrpc":"2.0","method":"x","params":"{}","id":"last"}}"#, "x".repeat(MIB));
    for (message, id) in [(call(1, "x"), 1.into()), (call("\"a\"", "x"), "a".into()), (large, "last".into())] {
        let response = client.ask(&post("/mcp", &[], &message));
        assert_eq!((response.status(), response.error()), (200, (5020, id)), "older clients read it there only");
        let response = client.ask(&post("/mcp", &[MODERN], &message));
        assert_eq!((response.status(), response.error().0), (502, 5020));
    }
    // Whoever waits for no message gets none.
    for request in [
        post("/mcp", &[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        post("/mcp", &[], result(1)),
        get("/mcp", &["Accept: text/event-stream"]),
        get("/.well-known/x", &[]),
    ] {
        let response = client.ask(&request);
        assert_eq!((response.status(), response.body.len()), (502, 0));
    }
    let origin = reserved.listen();
    client.send(&post("/mcp", &[], call(9, "now")));
    origin.call().send(json(result(9)));
    assert_eq!(client.response().body, result(9).as_bytes());
    proxy.end();
    let recording = Recording::of(&sandbox);
    let composed: Vec<_> = recording.by_server().into_iter().filter(|answer| answer.from_proxy).collect();
    assert!(composed.len() == 6 && composed.iter().all(|answer| answer.correlated_id.is_some()));
    let noted = recording.events();
    assert!(noted.len() == 10 && noted.iter().all(|event| event.contains("cannot connect to 127.0.0.1")), "{noted:?}");
    assert_eq!(recording.ends().iter().filter(|how| *how == "server not reached").count(), 10);
}

#[test]
fn an_sse_client_whose_message_cannot_be_delivered_is_not_told_that_it_was() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let mut client = proxy.client();
    client.send(&get("/sse", &[]));
    let mut stream = origin.call();
    stream.send([STREAM, &chunk("event: endpoint\ndata: /m\n\n")].concat());
    client.head();
    let endpoint = client.message();
    let mut poster = proxy.client();
    poster.send(&post(&endpoint, &[], call(1, "x")));
    origin.call().close();
    let response = poster.response();
    assert_eq!((response.status(), response.error()), (502, (5023, 1.into())));
    drop(client);
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!(recording.message("5023").correlated_id, Some(recording.message(&call(1, "x")).id.clone()));
}
