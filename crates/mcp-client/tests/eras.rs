//! How a connection is opened, with servers of both eras and with such as say nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kit;

use kit::{Error, HangUp, LEGACY, MODERN_ONLY, Nothing, Result, client_with, raw};
use mcp_client::{ClientError, Options, ProxyClient, Speaks, Use};
use serde_json::{Value, json};
use tokio::process::Command;

const PREFIX: &str = "io.modelcontextprotocol/";

#[tokio::test]
async fn the_newest_revision_names_the_client_in_each_request() {
    let (client, seen) =
        client_with(Options::default(), MODERN_ONLY, |_, _| Result(json!({ "tools": [{ "name": "a" }] })));
    assert_eq!(client.list_tools().await.unwrap().items.len(), 1);
    assert_eq!(seen.methods().first().map(String::as_str), Some("server/discover"));
    for message in seen.all() {
        let meta = &message["params"]["_meta"];
        assert_eq!(meta[format!("{PREFIX}protocolVersion")], kit::MODERN, "{message}");
        assert!(meta[format!("{PREFIX}clientInfo")]["name"].is_string(), "{message}");
        assert!(meta[format!("{PREFIX}clientCapabilities")].is_object(), "{message}");
    }
}

#[tokio::test]
async fn an_older_server_is_opened_as_it_knows() {
    let (client, seen) = client_with(Options::default(), LEGACY, |_, _| Result(json!({ "tools": [] })));
    client.list_tools().await.unwrap();
    assert_eq!(seen.methods()[..4], ["server/discover", "initialize", "notifications/initialized", "tools/list"]);
    let opening = &seen.params("initialize")[0];
    assert_eq!(opening["protocolVersion"], "2025-11-25");
    assert!(seen.params("tools/list")[0].get("_meta").is_none());
}

#[tokio::test]
async fn one_way_alone_is_tried_where_that_is_wanted() {
    let options = |speaks| Options { speaks, ..Options::default() };
    let (legacy, seen) = client_with(options(Speaks::Legacy), LEGACY, |_, _| Result(json!({ "tools": [] })));
    legacy.list_tools().await.unwrap();
    assert_eq!(seen.methods()[0], "initialize");
    let (modern, seen) = client_with(options(Speaks::Modern), LEGACY, |_, _| Result(json!({ "tools": [] })));
    let error = modern.list_tools().await.unwrap_err();
    assert!(matches!(error, ClientError::NotOpened(_)) && error.rpc().unwrap().code == -32601, "{error}");
    assert_eq!(seen.methods(), ["server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_to_the_newest_is_asked_in_the_older_way() {
    let (reader, writer, seen) = raw(|message| match message["method"].as_str().unwrap() {
        "server/discover" => Nothing,
        "initialize" => Result(json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} } })),
        _ => Result(json!({ "tools": [{ "name": "old" }] })),
    });
    let client = ProxyClient::over(reader, writer, Options::default());
    assert_eq!(client.list_tools().await.unwrap().items.len(), 1);
    assert_eq!(seen.params("notifications/cancelled").len(), 1, "the question is taken back");
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_was_only_slow_is_asked_again() {
    let mut asked = 0;
    let (reader, writer, _) = raw(move |message| match message["method"].as_str().unwrap() {
        "server/discover" => {
            asked += 1;
            match asked {
                1 => Nothing,
                _ => Result(json!({ "supportedVersions": [kit::MODERN], "capabilities": { "tools": {} } })),
            }
        }
        "initialize" => Error(-32022, "Unsupported protocol version"),
        _ => Result(json!({ "tools": [{ "name": "new" }] })),
    });
    let client = ProxyClient::over(reader, writer, Options::default());
    assert_eq!(client.list_tools().await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_server_that_hangs_up_at_once_is_an_error_that_says_so() {
    let (reader, writer, _) = raw(|_| HangUp);
    let client = ProxyClient::over(reader, writer, Options::default());
    let error = client.list_tools().await.unwrap_err();
    assert!(matches!(error, ClientError::NotOpened(_)) && error.is_hang_up(), "{error}");
}

/// A process that ends at a question which it does not know is started again for the older way.
#[tokio::test]
async fn a_command_that_ends_at_the_newest_is_started_again() {
    let script = r#"while read -r line; do case "$line" in
        *server/discover*) exit 3;;
        *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}';;
        *tools/list*) echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"sh"}]}}';;
        *tools/call*) echo '{"jsonrpc":"2.0","id":3,"result":{"content":[]}}';;
    esac; done"#;
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let client = ProxyClient::spawn(command, Options::default());
    assert_eq!(client.list_tools().await.unwrap().names().collect::<Vec<_>>(), ["sh"]);
    let mut missing = ProxyClient::spawn(Command::new("/no/such/server"), Options::default());
    let error = missing.list_tools().await.unwrap_err();
    assert!(matches!(&error, ClientError::Spawn { command, .. } if command == "/no/such/server"), "{error}");
    missing = ProxyClient::spawn(Command::new("true"), Options::default());
    assert!(missing.list_tools().await.unwrap_err().is_hang_up());
    client.close().await;
}

#[tokio::test]
async fn chatter_between_messages_is_passed_over() {
    let (reader, writer, _) = raw(|message| match message["method"].as_str().unwrap() {
        "server/discover" => kit::Say(vec![
            Value::from("starting up"),
            json!([1, 2]),
            json!({ "jsonrpc": "2.0", "id": 999, "result": {} }),
            json!({ "jsonrpc": "2.0", "id": "$id", "result": { "supportedVersions": [kit::MODERN], "capabilities": {} } }),
        ]),
        "tools/list" => Error(-32601, "there are none"),
        _ => Nothing,
    });
    let client = ProxyClient::over(reader, writer, Options::default());
    assert_eq!(client.list_tools().await.unwrap().items.len(), 0);
    assert!(
        client.call_tool("x", None, &Use { timeout: Some(std::time::Duration::ZERO), ..Use::default() }).await.is_err()
    );
}
