//! Requests of HTTP whose body says one thing and whose head another, or that hide a body where nobody
//! looks for one.

use super::readings::Denied;
use super::stage::{Stage, harmless_with};
use super::{Era, RULES, attacks};
use crate::http_kit::{LAST_CHUNK, MODERN, chunk, get, post};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Sends raw bytes as a request. The status and the body of the first answer come back.
#[track_caller]
fn send(stage: &Stage, request: &[u8]) -> (u16, String) {
    let mut client = stage.proxy().client();
    let _ = client.try_send(request);
    let response = client.try_response();
    response.map_or((0, String::new()), |response| {
        (response.status(), String::from_utf8_lossy(&response.body).into_owned())
    })
}

/// Sends it, and sees that nothing came of it.
#[track_caller]
fn comes_to_nothing(stage: &mut Stage, name: &str, request: &[u8]) {
    let (status, body) = send(stage, request);
    assert!(!body.contains("\"result\""), "{name}: {status} {body}");
    stage.works(1);
    let found = stage.denied_calls(Denied::More);
    assert!(found.is_empty(), "{name}: {status} {body}: {found:?}");
}

/// A request with a line of its head left out, and others added.
fn with_head(body: &str, headers: &[&str], without: &str, more: &[&str]) -> Vec<u8> {
    let kept: Vec<&str> =
        headers.iter().copied().filter(|header| !header.starts_with(without)).chain(more.iter().copied()).collect();
    post("/mcp", &kept, body)
}

#[test]
fn headers_that_disagree_with_the_body() {
    let mut stage = Stage::http(Era::Modern, RULES);
    let harmless = harmless_with(Era::Modern, 7);
    let denied = attacks::filled("<denied>", Era::Modern, &mut 7);
    let headers = stage.headers_of(&harmless);
    let other_version = harmless.replace("2026-07-28", "2026-09-01");
    let nothing = "nothing";
    for (name, body, without, more) in [
        ("another tool in the header", &harmless, "Mcp-Name", &["Mcp-Name: delete_repo"][..]),
        ("another tool in the body", &denied, nothing, &[]),
        ("another tool in the header, in base64", &harmless, "Mcp-Name", &["Mcp-Name: =?base64?ZGVsZXRlX3JlcG8=?="]),
        ("base64 that is none", &harmless, "Mcp-Name", &["Mcp-Name: =?base64?%%%?="]),
        ("another spelling of the tool", &harmless, "Mcp-Name", &["Mcp-Name: ECHO"]),
        ("no tool in the header", &harmless, "Mcp-Name", &[]),
        ("a tool twice", &harmless, nothing, &["Mcp-Name: echo"]),
        ("two tools", &harmless, nothing, &["Mcp-Name: delete_repo"]),
        ("another method in the header", &harmless, "Mcp-Method", &["Mcp-Method: tools/list"]),
        ("no method in the header", &harmless, "Mcp-Method", &[]),
        ("a method twice", &harmless, nothing, &["Mcp-Method: tools/call"]),
        ("two methods", &harmless, nothing, &["Mcp-Method: resources/read"]),
        ("another version in the header", &harmless, "MCP-Protocol-Version", &["MCP-Protocol-Version: 2026-09-01"]),
        ("another version in the body", &other_version, nothing, &[]),
        ("a version twice", &harmless, nothing, &[MODERN]),
        ("an older version in the header", &harmless, "M", &["MCP-Protocol-Version: 2025-11-25"]),
        ("no headers at all", &harmless, "M", &[]),
    ] {
        let (status, body) = send(&stage, &with_head(body, &headers, without, more));
        assert!(status == 400 && body.contains("-32020"), "{name}: {status} {body}");
        stage.works(1);
        let found = stage.denied_calls(Denied::More);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
    stage.end();
}

#[test]
fn headers_of_an_older_revision_must_not_lie() {
    let mut stage = Stage::http(Era::Legacy, RULES);
    let harmless = harmless_with(Era::Legacy, 7);
    let headers = stage.headers_of(&harmless);
    for more in [&["Mcp-Name: delete_repo"][..], &["Mcp-Method: tools/list"], &["Mcp-Name: echo", "Mcp-Name: echo"]] {
        let (status, body) = send(&stage, &with_head(&harmless, &headers, "nothing", more));
        assert!(status == 400 && body.contains("-32020"), "{more:?}: {status} {body}");
    }
    stage.works(1);
    assert_eq!(stage.denied_calls(Denied::More), [""; 0]);
    stage.end();
}

#[test]
fn bodies_that_are_another_text_to_the_server() {
    for era in ERAS {
        let mut stage = Stage::http(era, RULES);
        let denied = attacks::filled("<denied>", era, &mut 7);
        // To whoever believes its charset, this says `delete_repo`.
        let utf7 = denied.replace("delete_repo", "+AGQ-elete+AF8-repo");
        let headers: String = stage.headers_of(&utf7).iter().map(|header| format!("{header}\r\n")).collect();
        for content_type in [
            "application/json; charset=utf-7",
            "application/json; charset=\"utf-7\"",
            "application/json;x=y;CHARSET = UTF-7",
            "application/json; charset=utf-8; charset=utf-7",
            "application/json; charset=utf-16",
            "application/json; charset=utf-16le",
            "application/json; charset=ebcdic-us-37",
        ] {
            let request = format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n{headers}Content-Length: {}\r\n\r\n{utf7}",
                utf7.len()
            );
            assert_eq!(send(&stage, request.as_bytes()).0, 415, "{content_type}");
        }
        for coding in ["gzip", "deflate", "br", "identity, gzip", "x"] {
            let request = post(
                "/mcp",
                &[&stage.headers_of(&denied)[..], &[&*format!("Content-Encoding: {coding}")]].concat(),
                &denied,
            );
            assert_eq!(send(&stage, &request).0, 415, "{coding}");
        }
        for content_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/json",
            "*/*",
            "",
        ] {
            let request = format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n{headers}Content-Length: {}\r\n\r\n{denied}",
                denied.len()
            );
            comes_to_nothing(&mut stage, content_type, request.as_bytes());
        }
        let two = "Content-Type: application/json\r\nContent-Type: application/json; charset=utf-7\r\n";
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{two}{headers}Content-Length: {}\r\n\r\n{utf7}",
            utf7.len()
        );
        comes_to_nothing(&mut stage, "two media types", request.as_bytes());
        let none = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\n\r\n{denied}",
            denied.len()
        );
        comes_to_nothing(&mut stage, "no media type", none.as_bytes());
        stage.end();
    }
}

#[test]
fn bodies_where_nobody_looks_for_one() {
    for era in ERAS {
        let mut stage = Stage::http(era, RULES);
        let denied = attacks::filled("<denied>", era, &mut 7);
        let headers: String = stage.headers_of(&denied).iter().map(|header| format!("{header}\r\n")).collect();
        for (start, more) in [
            ("GET /mcp", ""),
            ("GET /mcp", "X-HTTP-Method-Override: POST\r\n"),
            ("DELETE /mcp", ""),
            ("DELETE /mcp", "X-HTTP-Method-Override: POST\r\n"),
            ("PUT /mcp", ""),
            ("PATCH /mcp", ""),
            ("OPTIONS /mcp", ""),
            ("BREW /mcp", ""),
            ("POST /mcp", "Expect: 100-continue\r\n"),
            ("POST /mcp", "Upgrade: h2c\r\nConnection: upgrade\r\n"),
            ("POST /mcp?name=echo", ""),
            ("POST http://localhost/mcp", ""),
            ("POST /mcp/", ""),
            ("POST //mcp", ""),
            ("POST /MCP", ""),
            ("POST /%6dcp", ""),
            ("POST /x/../mcp", ""),
            ("POST /sse", ""),
            ("POST /message", ""),
            ("POST /message?session=1", ""),
            ("POST /.well-known/mcp", ""),
            ("GET /.well-known/mcp", ""),
            ("GET /.well-known/../mcp", ""),
            ("GET /.well-known/%2e%2e/mcp", ""),
            ("GET /.well-known/..%2fmcp", ""),
            ("GET /.well-known//../mcp", ""),
        ] {
            let request = format!(
                "{start} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{more}{headers}Content-Length: {}\r\n\r\n{denied}",
                denied.len()
            );
            comes_to_nothing(&mut stage, start, request.as_bytes());
        }
        comes_to_nothing(&mut stage, "a path that leads elsewhere", &get("/.well-known/../mcp", &[]));
        stage.end();
    }
}

#[test]
fn bodies_in_pieces() {
    for era in ERAS {
        let mut stage = Stage::http(era, RULES);
        let denied = attacks::filled("<denied>", era, &mut 7);
        let harmless = harmless_with(era, 3);
        let large = denied.replace("\"x\"", &format!("\"{}\"", "x".repeat(600 * 1024)));
        let headers: String = stage.headers_of(&denied).iter().map(|header| format!("{header}\r\n")).collect();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}"
        );
        let chunked = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut request = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            pieces.for_each(|piece| request.extend(chunk(piece)));
            request.extend(LAST_CHUNK);
            request
        };
        let mut cases = vec![
            ("a byte at a time", chunked(&mut denied.as_bytes().chunks(1))),
            ("in the middle of a name", chunked(&mut denied.as_bytes().chunks(70))),
            ("a large body in chunks", chunked(&mut large.as_bytes().chunks(50_000))),
            ("a large body", post("/mcp", &stage.headers_of(&denied), &large)),
            ("two bodies in chunks", chunked(&mut [harmless.as_bytes(), denied.as_bytes()].into_iter())),
        ];
        let with_extension =
            format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x};name=echo\r\n{denied}\r\n0\r\n\r\n", denied.len());
        cases.push(("a chunk with an extension", with_extension.into()));
        let with_trailers = format!(
            "{head}Transfer-Encoding: chunked\r\nTrailer: Mcp-Name\r\n\r\n{:x}\r\n{denied}\r\n0\r\nMcp-Name: echo\r\n\r\n",
            denied.len()
        );
        cases.push(("chunks with a trailer", with_trailers.into()));
        let both = format!(
            "{head}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{}",
            String::from_utf8_lossy(&post("/mcp", &[], &denied))
        );
        cases.push(("two lengths", both.into()));
        for (name, request) in cases {
            comes_to_nothing(&mut stage, name, &request);
        }
        // The first is answered; the second is judged by itself.
        let two =
            [post("/mcp", &stage.headers_of(&harmless), &harmless), post("/mcp", &stage.headers_of(&denied), &denied)];
        let mut client = stage.proxy().client();
        client.send(&two.concat());
        assert!(client.response().json().get("result").is_some());
        assert!(!client.response().json().to_string().contains("\"result\""));
        assert_eq!(stage.denied_calls(Denied::More), [""; 0]);
        stage.end();
    }
}
