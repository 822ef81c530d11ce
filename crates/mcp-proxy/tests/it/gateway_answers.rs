//! What a gateway hands out is valid, whatever its servers and clients send.

use serde_json::{Value, json};

use crate::gateway_kit::{StdioClient, code_of, fake};
use crate::kit::Sandbox;

/// Each line of the gateway is read with a full parser, and so is each id in it.
#[test]
fn a_broken_id_is_answered_with_null() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a")], json!({}));
    for id in [&b"\"b\\ad\""[..], b"\"\xff\"", b"1\xff2", b"01", b"1e999", b"\"\\ud800\"", b"{\"a\":}", b"[1e999]"] {
        for method in [&b"\"ping\""[..], b"\"tools/list\"", b"\"initialize\""] {
            client.proxy.send(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"method\":", method, b"}\n"].concat());
            let answer = client.answer(&Value::Null);
            assert_eq!(code_of(&answer), -32600, "{answer}");
        }
    }
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    assert_eq!(client.take_kept(), Vec::<Value>::new());
    client.end();
}
