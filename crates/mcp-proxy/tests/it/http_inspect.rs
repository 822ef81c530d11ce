//! What people see of sessions over HTTP that the program itself recorded.

use crate::commands::snapshot_settings;
use crate::http_kit::{
    LAST_CHUNK, MODERN, Origin, STREAM, accepted, answer, bare, call, chunk, event, get, json, post,
};
use crate::kit::Sandbox;

fn settings() -> insta::Settings {
    let mut settings = snapshot_settings();
    settings.add_filter(r"127\.0\.0\.1:\d+", "127.0.0.1:[port]");
    settings
}

#[test]
fn a_session_over_streamable_http() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet", "--name", "weather"]);
    let mut client = proxy.client();
    let result = |id: u64, text: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{text}"}}}}"#);
    // Turned away, then let in.
    client.send(&post("/mcp", &[], call(0, "initialize")));
    origin.call().send(answer("401 Unauthorized", &["WWW-Authenticate: Bearer realm=\"weather\""], ""));
    client.response();
    client.send(&post("/mcp", &["Authorization: Bearer secret"], call(0, "initialize")));
    origin.call().send(answer(
        "200 OK",
        &["Content-Type: application/json", "Mcp-Session-Id: s-1"],
        result(0, "hello"),
    ));
    client.response();
    let session = ["Mcp-Session-Id: s-1", "MCP-Protocol-Version: 2025-11-25"];
    client.send(&post("/mcp", &session, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
    origin.call().send(accepted());
    client.response();
    client.send(&get("/mcp", &session));
    origin.call().send(answer("405 Method Not Allowed", &["Allow: POST"], "no stream here"));
    client.response();
    // A call that is answered on a stream, one that is resumed, and the end of the session.
    client.send(&post("/mcp", &session, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rain"}}"#));
    let mut stream = origin.call();
    stream.send([STREAM, &chunk("id: 1-0\nretry: 500\ndata:\n\n")].concat());
    stream.send(chunk("id: 1-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"));
    stream.send(LAST_CHUNK);
    client.response();
    client.send(&get("/mcp", &[session[0], session[1], "Last-Event-ID: 1-1"]));
    let mut resumed = origin.call();
    resumed.send([STREAM, &chunk(format!("id: 1-2\ndata: {}\n\n", result(1, "dry"))), LAST_CHUNK].concat());
    client.response();
    client.send(&bare("DELETE", "/mcp", &session));
    origin.call().send("HTTP/1.1 204 No Content\r\n\r\n");
    client.response();
    // A client of the newest revision, whose server breaks off.
    let modern = [MODERN, "Mcp-Method: tools/call", "Mcp-Name: rain"];
    client.send(&post("/mcp", &modern, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rain"}}"#));
    origin.call().close();
    client.response();
    client.send(&post("/mcp", &modern, r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"rain"}}"#));
    origin.call().send([STREAM, &event(result(3, "wet")), LAST_CHUNK].concat());
    client.response();
    client.send(&get("/.well-known/oauth-protected-resource", &[]));
    origin.call().send(json("{}"));
    client.response();
    proxy.end();
    let segment = sandbox.segments().remove(0);
    let plain = sandbox.stdout(["inspect", segment.to_str().unwrap()]);
    let verbose = sandbox.stdout(["inspect", "-v", segment.to_str().unwrap()]);
    settings().bind(|| {
        insta::assert_snapshot!("inspect_streamable_http", plain);
        insta::assert_snapshot!("inspect_streamable_http_verbose", verbose);
    });
}

#[test]
fn a_session_over_sse() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let mut client = proxy.client();
    client.send(&get("/sse", &["Accept: text/event-stream"]));
    let mut stream = origin.call();
    stream.send([STREAM, &chunk("event: endpoint\ndata: /messages?id=1\n\n")].concat());
    client.head();
    let endpoint = client.message();
    let mut poster = proxy.client();
    poster.send(&post(&endpoint, &[], call(0, "initialize")));
    origin.call().send(accepted());
    poster.response();
    stream.send(event(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
    client.message();
    drop(client);
    stream.until_closed();
    proxy.end();
    let shown = sandbox.stdout(["inspect", "-v", sandbox.segments()[0].to_str().unwrap()]);
    settings().bind(|| insta::assert_snapshot!("inspect_sse_verbose", shown));
}
