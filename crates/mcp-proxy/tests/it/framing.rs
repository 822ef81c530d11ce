//! Both framings, on either side.

use crate::kit::Sandbox;

#[test]
fn a_client_that_counts_bytes_gets_counted_answers_and_its_server_counted_requests() {
    let sandbox = Sandbox::new();
    let kept = sandbox.path("kept");
    let sent = b"Content-Length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":1}";
    let mut proxy = sandbox.run(&[], &["keep", kept.to_str().unwrap()]);
    proxy.send(sent);
    assert!(proxy.end().0.success());
    assert_eq!(std::fs::read(&kept).unwrap(), sent);

    // The server answers in lines, the client still gets what it speaks.
    let script = r#"read line; read line; printf '{"id":1,"result":{}}\n'; cat >/dev/null"#;
    let mut proxy = sandbox.run_script(&[], script);
    proxy.send(sent);
    assert_eq!(proxy.line(), b"Content-Length: 20\r\n");
    assert_eq!(proxy.line(), b"\r\n");
    proxy.close_stdin();
    assert_eq!(proxy.rest().concat(), b"{\"id\":1,\"result\":{}}");
}

#[test]
fn a_server_that_counts_bytes_answers_a_client_that_speaks_lines() {
    let sandbox = Sandbox::new();
    let script = r#"echo starting up; printf 'Content-Length: 24\r\n\r\n{"id":1,\n"result":"a b"}\n'; cat >/dev/null"#;
    let mut proxy = sandbox.run_script(&[], script);
    proxy.send(b"{\"id\":1,\"method\":\"x\"}\r\n");
    assert_eq!(String::from_utf8(proxy.line()).unwrap(), "{\"id\":1, \"result\":\"a b\"}\r\n");
    let (status, errors) = proxy.end();
    assert!(status.success() && errors.contains("1 line that is no message was kept from the client"), "{errors}");
}
