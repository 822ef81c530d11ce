//! Which path leads where, by which methods, and who may ask at all.

use crate::http_kit::{
    Client, LAST_CHUNK, Listening, MODERN, Origin, Recording, STREAM, accepted, bare, call, chunk, event, get, json,
    post, result,
};
use crate::kit::Sandbox;

#[test]
fn the_endpoint_leads_to_the_targets_path_and_query() {
    for (url, asked, reached) in [
        ("/mcp", "/mcp", "/mcp"),
        ("/deep/er/path?key=a%20b", "/mcp", "/deep/er/path?key=a%20b"),
        ("/a?b=1", "/mcp?c=2&d=%2F", "/a?b=1&c=2&d=%2F"),
        ("", "/mcp?only=mine", "/?only=mine"),
        ("/trailing/", "/mcp", "/trailing/"),
        ("/cut#here", "/mcp", "/cut"),
        (
            "/mcp",
            "/.well-known/oauth-protected-resource/mcp?x=%C3%A9",
            "/.well-known/oauth-protected-resource/mcp?x=%C3%A9",
        ),
        ("/deep/mcp", "/.well-known/openid-configuration", "/.well-known/openid-configuration"),
    ] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to("streamable-http", &origin.url(url), &["--quiet"]);
        let mut client = proxy.client();
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            let is_metadata = asked.starts_with("/.well-known");
            if is_metadata && !matches!(method, "GET" | "HEAD") || !is_metadata && method == "HEAD" {
                continue;
            }
            client.send(&if method == "POST" { post(asked, &[], call(1, "x")) } else { bare(method, asked, &[]) });
            let mut call = origin.call();
            assert_eq!(call.asked(), format!("{method} {reached}"));
            call.send(if method == "HEAD" {
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1234\r\n\r\n".to_vec()
            } else {
                json(r#"{"resource":"x"}"#)
            });
            let response = client.response();
            if method == "HEAD" {
                assert_eq!(response.head.get("content-length").as_deref(), Some("1234"));
            } else {
                assert_eq!(response.body, br#"{"resource":"x"}"#);
            }
        }
        proxy.end();
    }
}

#[test]
fn metadata_is_no_message() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let mut client = proxy.client();
    client.send(&get("/.well-known/oauth-authorization-server", &[]));
    origin.call().send(json(r#"{"issuer":"x","jsonrpc":"2.0","id":1,"result":{}}"#));
    assert_eq!(client.response().status(), 200);
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!((recording.messages().len(), recording.requests().len()), (0, 1));
}

#[test]
fn everything_else_is_not_there() {
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/mcp"), &["--quiet"]);
        let mut client = proxy.client();
        for path in [
            "/",
            "/mcp/",
            "/mcp/x",
            "/MCP",
            "//mcp",
            "/mcp%2f",
            "/./mcp",
            "/x/../mcp",
            "/sse/",
            "/messages",
            "/well-known/x",
            "/.well-known",
            "/favicon.ico",
            "/metrics",
            "/%2e%2e/mcp",
            "*",
        ] {
            let response = client.ask(&get(path, &[]));
            assert_eq!(response.status(), 404, "{path}: {response:?}");
        }
        origin.saw_nothing();
        proxy.end();
        assert_eq!(Recording::of(&sandbox).requests().len(), 0);
    }
}

#[test]
fn a_method_that_is_not_allowed_says_which_are() {
    for (transport, path, allowed) in [
        ("streamable-http", "/mcp", "GET, POST, DELETE"),
        ("streamable-http", "/.well-known/x", "GET, HEAD"),
        ("sse", "/sse", "GET"),
        ("sse", "/message?session=x", "POST"),
    ] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        let mut client = proxy.client();
        for method in ["GET", "HEAD", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "post"] {
            if allowed.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            let response = client.ask(&bare(method, path, &[]));
            assert_eq!(response.status(), 405, "{method} {path}: {response:?}");
            assert_eq!(response.head.get("allow").as_deref(), Some(allowed), "{method} {path}");
        }
        origin.saw_nothing();
        proxy.end();
    }
}

/// Opens an SSE connection whose server names `endpoint`.
fn open_stream(proxy: &Listening, origin: &Origin, endpoint: &str) -> (Client, crate::http_kit::Call) {
    let mut client = proxy.client();
    client.send(&get("/sse", &["Accept: text/event-stream"]));
    let mut stream = origin.call();
    stream.send(STREAM);
    stream.send(chunk(format!("event: endpoint\ndata: {endpoint}\n\n")));
    assert_eq!(client.head().status(), 200);
    (client, stream)
}

#[test]
fn an_sse_client_is_told_an_endpoint_of_ours() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/deep/sse?key=1"), &["--quiet"]);
    let absolute = origin.url("/abs?s=1");
    for (named, reached) in [
        ("/messages?id=1", "/messages?id=1"),
        ("messages", "/deep/messages"),
        ("?s=2", "/deep/sse?s=2"),
        (absolute.as_str(), "/abs?s=1"),
        ("/odd?a=%20&b", "/odd?a=%20&b"),
    ] {
        let (mut client, mut stream) = open_stream(&proxy, &origin, named);
        assert_eq!(stream.asked(), "GET /deep/sse?key=1");
        let told = client.event();
        let endpoint = told.strip_prefix("event: endpoint\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        let endpoint = endpoint.unwrap_or_else(|| panic!("{told:?}"));
        let session = endpoint.strip_prefix("/message?session=").unwrap_or_else(|| panic!("{endpoint}"));
        assert_eq!(session.len(), 36, "nobody can guess it");
        // Messages of two connections never meet: each goes where its own stream came from.
        let mut poster = proxy.client();
        poster.send(&post(endpoint, &[], call(1, "x")));
        let mut posted = origin.call();
        assert_eq!(posted.asked(), format!("POST {reached}"));
        posted.send(accepted());
        assert_eq!(poster.response().status(), 202);
        stream.send(event(result(1)));
        assert_eq!(client.message(), result(1));
        // With its stream, a connection is over.
        stream.send(LAST_CHUNK);
        assert_eq!(client.rest(), (Vec::new(), true));
        assert_eq!(poster.ask(&post(endpoint, &[], call(2, "x"))).status(), 404);
    }
    proxy.end();
    let recording = Recording::of(&sandbox);
    assert_eq!(recording.by_server().len(), 5, "an endpoint is no message");
    assert!(recording.by_server().iter().all(|answer| answer.correlated_id.is_some()));
}

#[test]
fn an_endpoint_elsewhere_is_not_followed_and_the_client_is_not_left_waiting() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let elsewhere = [
        "http://evil.example/messages".to_owned(),
        "//evil.example/messages".to_owned(),
        format!("https://127.0.0.1:{}/messages", origin.port()),
        format!("http://127.0.0.1:{}@evil.example/messages", origin.port()),
        format!("http://localhost:{}/messages", origin.port()),
        "file:///etc/passwd".to_owned(),
        "javascript:alert(1)".to_owned(),
        "/\\evil.example/".to_owned(),
        String::new(),
    ];
    for named in &elsewhere {
        let (mut client, mut stream) = open_stream(&proxy, &origin, named);
        let (rest, _) = client.rest();
        assert_eq!(String::from_utf8_lossy(&rest), "", "{named}");
        stream.until_closed();
    }
    let (mut client, _stream) = open_stream(&proxy, &origin, "/messages");
    assert!(client.message().starts_with("/message?session="), "the next one works");
    drop(client);
    proxy.end();
    let recording = Recording::of(&sandbox);
    let refused = recording.events().iter().filter(|event| event.contains("an endpoint on another origin")).count();
    assert_eq!(refused, elsewhere.len(), "{:?}", recording.events());
}

#[test]
fn messages_of_unknown_connections_go_nowhere() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let (mut client, _stream) = open_stream(&proxy, &origin, "/messages");
    let known = client.message();
    let session = known.trim_start_matches("/message?session=");
    let mut poster = proxy.client();
    for path in [
        "/message".to_owned(),
        "/message?session=".to_owned(),
        "/message?session=1".to_owned(),
        format!("/message?session={}", uuid::Uuid::new_v4()),
        format!("/message?Session={session}"),
        format!("/message?x=1&session={session}"),
        format!("/message?session={}", &session[..35]),
    ] {
        let response = poster.ask(&post(&path, &[], call(1, "x")));
        assert_eq!(response.status(), 404, "{path}");
    }
    origin.saw_nothing();
    drop(client);
    proxy.end();
}

/// Requests that reach a server if they are let through, on every route there is.
fn on_every_route(host: &str, more: &[&str]) -> Vec<Vec<u8>> {
    let more: String = more.iter().map(|header| format!("{header}\r\n")).collect();
    let body = call(1, "x");
    let message = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    [
        format!("POST /mcp HTTP/1.1\r\n{host}{more}{message}"),
        format!("GET /mcp HTTP/1.1\r\n{host}{more}\r\n"),
        format!("DELETE /mcp HTTP/1.1\r\n{host}{more}\r\n"),
        format!("GET /sse HTTP/1.1\r\n{host}{more}\r\n"),
        format!("POST /message?session=x HTTP/1.1\r\n{host}{more}{message}"),
        format!("GET /.well-known/x HTTP/1.1\r\n{host}{more}\r\n"),
        format!("GET /nothing HTTP/1.1\r\n{host}{more}\r\n"),
        format!("OPTIONS /mcp HTTP/1.1\r\n{host}{more}\r\n"),
    ]
    .map(String::into_bytes)
    .to_vec()
}

#[test]
fn pages_and_names_from_elsewhere_are_refused_on_every_route() {
    let hosts = [
        "evil.example",
        "evil.example:8888",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1.nip.io",
        "localhost:80@evil.example",
        "127.0.0.1@evil.example",
        "[::1].evil.example",
        "[::1]:80.evil.example",
        "evil.example#127.0.0.1",
        "localhost.",
        "localhost:port",
        "2130706433",
        "0x7f.1",
        "127.1",
        "0.0.0.0",
        "[::ffff:8.8.8.8]",
        "169.254.169.254",
        "",
    ];
    let origins = [
        "null",
        "",
        "http://evil.example",
        "https://localhost.evil.example",
        "http://evil.example:80",
        "http://localhost:80@evil.example",
        "http://127.0.0.1.nip.io",
        "http://localhost/x.evil.example",
        "http://[::1].evil.example",
        "file://",
        "chrome-extension://abcdef",
        "localhost",
        "http:localhost",
        "http://localhost, http://evil.example",
        "*",
    ];
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        let mut client = proxy.client();
        let as_host = hosts.iter().map(|host| (format!("Host: {host}\r\n"), vec![]));
        let as_origin = origins.iter().map(|from| ("Host: localhost\r\n".to_owned(), vec![format!("Origin: {from}")]));
        for (host, more) in as_host.chain(as_origin) {
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            for request in on_every_route(&host, &more) {
                let response = client.ask(&request);
                assert_eq!(response.status(), 403, "{:?}", String::from_utf8_lossy(&request));
                assert_eq!(response.head.get("access-control-allow-origin"), None);
            }
        }
        origin.saw_nothing();
        // From here, under any of our names, it works.
        for (host, from) in [
            ("localhost", "http://localhost:6274"),
            ("LocalHost:8888", "https://127.0.0.1"),
            ("127.0.0.1", "http://[::1]:5173"),
            ("127.7.7.7:80", "http://LOCALHOST"),
            ("[::1]:8888", "https://localhost:443"),
        ] {
            client.send(format!("GET /.well-known/x HTTP/1.1\r\nHost: {host}\r\nOrigin: {from}\r\n\r\n").as_bytes());
            origin.call().send(json("{}"));
            assert_eq!(client.response().status(), 200, "{host} {from}");
        }
        proxy.end();
    }
}

#[test]
fn what_a_form_could_send_is_refused() {
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        let mut client = proxy.client();
        let path = if transport == "sse" { "/message?session=x" } else { "/mcp" };
        for wrong in [
            "",
            "Content-Type:\r\n",
            "Content-Type: text/plain\r\n",
            "Content-Type: application/x-www-form-urlencoded\r\n",
            "Content-Type: multipart/form-data; boundary=x\r\n",
            "Content-Type: text/plain; application/json\r\n",
            "Content-Type: application/jsonp\r\n",
            "Content-Type: application/json, text/plain\r\n",
        ] {
            let body = call(1, "x");
            let length = body.len();
            let request =
                format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{wrong}Content-Length: {length}\r\n\r\n{body}");
            assert_eq!(client.ask(request.as_bytes()).status(), 415, "{wrong}");
        }
        origin.saw_nothing();
        proxy.end();
    }
}

#[test]
fn a_listener_that_others_can_reach_wants_a_token_and_keeps_it() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    std::fs::write(sandbox.path("token"), "sesame-0123456789\nsecond line\n").unwrap();
    let mut command = sandbox.command(["proxy", "--quiet", "--listen", "0.0.0.0:0", "--token-file", "token"]);
    command.args(["--transport", "streamable-http", "--target-url", &origin.url("/mcp")]);
    let proxy = Listening::start(command);
    let mut client = proxy.client();
    for shown in [
        &[][..],
        &["Authorization: Bearer"],
        &["Authorization: Bearer wrong"],
        &["Authorization: Bearer sesame-012345678"],
        &["Authorization: Bearer sesame-01234567890"],
        &["Authorization: Bearer  sesame-0123456789"],
        &["Authorization: Basic sesame-0123456789"],
        &["Authorization: sesame-0123456789"],
        &["X-Authorization: Bearer sesame-0123456789"],
        &["Cookie: token=sesame-0123456789"],
    ] {
        for request in on_every_route("Host: localhost\r\n", shown) {
            let response = client.ask(&request);
            assert_eq!(response.status(), 401, "{shown:?}: {response:?}");
            assert_eq!(response.head.all("www-authenticate"), ["Bearer"], "{shown:?}");
        }
    }
    let in_query = post("/mcp?access_token=sesame-0123456789&token=sesame-0123456789", &[], call(1, "x"));
    assert_eq!(client.ask(&in_query).status(), 401);
    let twice = ["Authorization: Bearer sesame-0123456789", "Authorization: Bearer sesame-0123456789"];
    assert_eq!(client.ask(&post("/mcp", &twice, call(1, "x"))).status(), 400);
    origin.saw_nothing();
    // Whoever shows it may come under any name, but not as a page from elsewhere.
    let shown = "Authorization: bearer sesame-0123456789";
    let lured = on_every_route("Host: proxy.example\r\n", &[shown, "Origin: http://evil.example"]);
    assert!(lured.iter().all(|request| client.ask(request).status() == 403));
    for (more, path) in [(&[][..], "/mcp"), (&[MODERN], "/mcp")] {
        client.send(&post(path, &[&[shown], more].concat(), call(1, "x")));
        let mut reached = origin.call();
        assert_eq!(reached.head.all("authorization"), Vec::<String>::new(), "it goes no further");
        reached.send(json(result(1)));
        assert_eq!(client.response().status(), 200);
    }
    proxy.end();
    let segment = std::fs::read(&sandbox.segments()[0]).unwrap();
    assert!(!segment.windows(10).any(|window| window == b"sesame-012"), "it is not recorded");
}
