//! Clients that log in to a server through the proxy: what they are told of the resource it protects.

use serde_json::{Value, json};

use crate::http_kit::{Client, Listening, Origin, Recording, answer, bare, call, get, json as json_answer, post};
use crate::kit::Sandbox;

const METADATA: &str = "/.well-known/oauth-protected-resource";

fn challenge(origin: &str, path: &str) -> String {
    format!(r#"Bearer realm="x", resource_metadata="{origin}{METADATA}{path}", scope="a b""#)
}

/// What a server says of itself, in odd spacing.
fn document(resource: &str) -> String {
    format!(r#"{{ "authorization_servers":["https://login.example"] ,"resource" :"{resource}","x":1e400}}"#)
}

/// The same as its clients see it.
fn told(proxy: &Listening, path: &str) -> String {
    document(&format!("http://localhost:{}{path}", proxy.port))
}

/// Asks by the name that clients use.
fn by_name(proxy: &Listening, request: &[u8]) -> Vec<u8> {
    let request = String::from_utf8_lossy(request).into_owned();
    request.replace("Host: localhost\r\n", &format!("Host: localhost:{}\r\n", proxy.port)).into_bytes()
}

#[track_caller]
fn ask_metadata(proxy: &Listening, origin: &Origin, asked: &str, at_server: &str, body: &str) -> (Client, Vec<u8>) {
    let mut client = proxy.client();
    client.send(&by_name(proxy, &get(asked, &[])));
    let mut reached = origin.call();
    assert_eq!(reached.asked(), format!("GET {at_server}"));
    reached.send(json_answer(body));
    let response = client.response();
    assert_eq!((response.status(), response.is_whole), (200, true));
    (client, response.body)
}

#[test]
fn by_default_a_server_speaks_for_itself() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/api/mcp"), &["--quiet"]);
    let own = document(&origin.url("/api/mcp"));
    let asked = format!("{METADATA}/mcp");
    assert_eq!(ask_metadata(&proxy, &origin, &asked, &asked, &own).1, own.as_bytes());
    let mut client = proxy.client();
    client.send(&post("/mcp", &[], call(1, "x")));
    let header = challenge(&origin.url(""), "/api/mcp");
    origin.call().send(answer("401 Unauthorized", &[&format!("WWW-Authenticate: {header}")], ""));
    let refused = client.response();
    assert_eq!((refused.status(), refused.head.get("www-authenticate")), (401, Some(header)));
    proxy.end();
}

/// The whole way that the official clients go, and what they compare.
#[test]
fn a_strict_client_can_log_in_where_the_user_wants_that() {
    for (transport, endpoint, path) in [("streamable-http", "/mcp", "/api/mcp"), ("sse", "/sse", "/events")] {
        let (sandbox, origin) = (Sandbox::new(), Origin::start());
        let flags = ["--quiet", "--rewrite-resource"];
        let proxy = sandbox.listen_to(transport, &origin.url(path), &flags);
        let here = format!("http://localhost:{}", proxy.port);

        let mut client = proxy.client();
        let first = if transport == "sse" { get("/sse", &[]) } else { post("/mcp", &[], call(1, "x")) };
        client.send(&by_name(&proxy, &first));
        let header = format!("WWW-Authenticate: {}", challenge(&origin.url(""), path));
        origin.call().send(answer("401 Unauthorized", &[&header], ""));
        let refused = client.response();
        assert_eq!(refused.head.all("www-authenticate"), [challenge(&here, path)]);

        let at_server = format!("{METADATA}{path}");
        let of_server = document(&origin.url(path));
        let (mut client, body) = ask_metadata(&proxy, &origin, &at_server, &at_server, &of_server);
        assert_eq!(String::from_utf8(body.clone()).unwrap(), told(&proxy, endpoint), "only the resource is another");
        let seen: Value = serde_json::from_str(&String::from_utf8(body).unwrap().replace("1e400", "1")).unwrap();
        assert_eq!(seen["resource"], json!(format!("{here}{endpoint}")), "the very address that it uses");

        // A client that was told of no place looks where the standard says.
        let asked = format!("{METADATA}{endpoint}");
        assert_eq!(
            ask_metadata(&proxy, &origin, &asked, &at_server, &of_server).1,
            told(&proxy, endpoint).into_bytes()
        );
        let of_root = ask_metadata(&proxy, &origin, METADATA, METADATA, &of_server).1;
        assert_eq!(of_root, told(&proxy, endpoint).into_bytes());

        // The token that it got goes to the server.
        let again = if transport == "sse" {
            get("/sse", &["Authorization: Bearer t"])
        } else {
            post("/mcp", &["Authorization: Bearer t"], call(1, "x"))
        };
        client.send(&by_name(&proxy, &again));
        let mut reached = origin.call();
        assert_eq!(reached.head.get("authorization").as_deref(), Some("Bearer t"));
        reached.send(answer("403 Forbidden", &[&header], ""));
        assert_eq!(client.response().head.all("www-authenticate"), [challenge(&here, path)]);
        proxy.end();
        let events = Recording::of(&sandbox).events();
        assert_eq!(events.iter().filter(|event| event.contains("this proxy as the resource")).count(), 3, "{events:?}");
    }
}

#[test]
fn what_names_no_resource_of_the_server_passes_as_it_is() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start());
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet", "--rewrite-resource"]);
    let others = ["/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resources"];
    for path in others {
        let body = document("https://far.example/mcp");
        assert_eq!(ask_metadata(&proxy, &origin, path, path, &body).1, body.as_bytes());
    }
    let asked = format!("{METADATA}/mcp");
    let large = format!(r#"{{"pad":"{}","resource":"x"}}"#, "x".repeat(2 << 20));
    for body in [r#"{"error":"not_found"}"#, "not JSON", "", &large] {
        assert!(ask_metadata(&proxy, &origin, &asked, &asked, body).1 == body.as_bytes());
    }
    let mut client = proxy.client();
    for status in ["404 Not Found", "500 Internal Server Error"] {
        client.send(&get(&asked, &[]));
        origin.call().send(answer(status, &["Content-Type: text/html"], "<p>no</p>"));
        let response = client.response();
        assert_eq!((response.status(), &response.body[..]), (status[..3].parse().unwrap(), &b"<p>no</p>"[..]));
    }
    client.send(&bare("HEAD", &asked, &[]));
    origin.call().send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1234\r\n\r\n");
    assert_eq!(client.response().head.get("content-length"), None, "it is no longer known");
    // A challenge that leads elsewhere is not ours to change.
    client.send(&post("/mcp", &[], call(1, "x")));
    let elsewhere = challenge("https://login.example", "");
    let header = format!("WWW-Authenticate: {elsewhere}");
    origin.call().send(answer("401 Unauthorized", &[&header, "WWW-Authenticate: Basic"], ""));
    assert_eq!(client.response().head.all("www-authenticate"), [&elsewhere, "Basic"]);
    proxy.end();
}

#[test]
fn it_is_refused_where_nobody_could_log_in() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("token"), "secret").unwrap();
    for args in [
        &["--transport", "stdio", "--target-command", "x", "--listen", "0"][..],
        &["--transport", "streamable-http", "--target-url", "http://localhost:1/mcp", "--listen", "stdio"],
        &["--transport", "sse", "--target-url", "http://localhost:1/sse", "--listen", "0", "--token-file", "token"],
    ] {
        let output = sandbox.output([&["proxy", "--rewrite-resource"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--rewrite-resource"), "{said}");
    }
}
