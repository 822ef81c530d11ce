//! Servers without a proxy tool: what is sent, what comes back, and what goes wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kit;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::{
    Answer, Error, HangUp, LEGACY, MODERN_ONLY, Nothing, Result, Say, client, client_with, raw_value, text, value,
};
use mcp_client::{ClientError, Options, Questions, RpcError, Type, Use};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn everyday(method: &str, params: &Value) -> Answer {
    match method {
        "tools/list" if params["cursor"].is_null() => {
            Result(json!({ "tools": [{ "name": "add" }], "nextCursor": "2" }))
        }
        "tools/list" => Result(json!({ "tools": [{ "name": "subtract" }] })),
        "resources/list" => Result(json!({ "resources": [{ "name": "r", "uri": "file:///r" }] })),
        "resources/templates/list" => {
            Result(json!({ "resourceTemplates": [{ "name": "t", "uriTemplate": "file:///{x}" }] }))
        }
        "prompts/list" => Result(json!({ "prompts": [{ "name": "greet" }] })),
        "tools/call" if params["name"] == "fail" => {
            Result(json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }))
        }
        "tools/call" => Result(text(&params["arguments"]["x"].to_string())),
        "resources/read" => Result(json!({ "contents": [{ "uri": params["uri"], "text": "here" }] })),
        "prompts/get" => Result(json!({ "messages": [], "description": params["name"] })),
        _ => Error(-32601, "no such method"),
    }
}

#[tokio::test]
async fn everything_is_native_where_there_is_no_proxy_tool() {
    for knows in [LEGACY, MODERN_ONLY] {
        let (client, seen) = client(knows, everyday);
        assert_eq!(client.proxy_tool().await.unwrap(), None);
        let names = |listing: mcp_client::Listing| listing.names().collect::<Vec<_>>();
        assert_eq!(names(client.list_tools().await.unwrap()), ["add", "subtract"]);
        assert_eq!(names(client.list_resources().await.unwrap()), ["r"]);
        assert_eq!(names(client.list_resource_templates().await.unwrap()), ["t"]);
        assert_eq!(names(client.list_prompts().await.unwrap()), ["greet"]);
        assert_eq!(value(&client.info(Type::Resource, "file:///r").await.unwrap())["name"], "r");
        let unknown = client.info(Type::Tool, "nothing").await.unwrap_err();
        assert!(matches!(&unknown, ClientError::NoSuch { kind: "tool", path } if path == "nothing"), "{unknown}");
        let arguments = RawValue::from_string(r#"{"x":1.50e3}"#.into()).unwrap();
        let called = client.call_tool("add", Some(&arguments), &Use::default()).await.unwrap();
        assert!(!called.is_error);
        assert!(client.call_tool("fail", None, &Use::default()).await.unwrap().is_error);
        let read = client.read_resource("file:///r", &Use::default()).await.unwrap();
        assert_eq!(value(&read)["contents"][0]["text"], "here");
        let prompt = client.get_prompt("greet", None, &Use::default()).await.unwrap();
        assert_eq!(value(&prompt)["description"], "greet");
        client.close().await;
        let is_modern = seen.methods().iter().all(|method| method != "initialize");
        assert_eq!(is_modern, knows.modern, "{:?}", seen.methods());
    }
}

#[tokio::test]
async fn nothing_happens_before_the_first_request() {
    let (client, seen) = client(LEGACY, everyday);
    tokio::task::yield_now().await;
    assert_eq!(seen.all(), Vec::<Value>::new());
    client.list_prompts().await.unwrap();
    assert_eq!(seen.methods()[..3], ["server/discover", "initialize", "notifications/initialized"]);
}

#[tokio::test]
async fn an_error_is_told_with_its_code_and_data() {
    let (client, _) = client(LEGACY, |method, _| match method {
        "prompts/get" => Say(vec![
            json!({ "jsonrpc": "2.0", "id": "$id", "error": { "code": -32602, "message": "no", "data": { "x": 1 } } }),
        ]),
        _ => Result(json!({ "tools": [] })),
    });
    let error = client.get_prompt("p", None, &Use::default()).await.unwrap_err();
    let RpcError { code, message, data } = error.rpc().expect("the server answered");
    assert_eq!((*code, message.as_str(), data.as_deref().map(RawValue::get)), (-32602, "no", Some(r#"{"x":1}"#)));
}

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    let mut held = None;
    let (client, _) = client(LEGACY, move |method, params| match method {
        "tools/call" => match held.take() {
            None => {
                held = Some(params["name"].clone());
                Nothing
            }
            // The second is answered first. Ids are given out in order.
            Some(first) => Say(vec![
                json!({ "jsonrpc": "2.0", "id": "$id", "result": text(params["name"].as_str().unwrap()) }),
                json!({ "jsonrpc": "2.0", "id": 4, "result": text(first.as_str().unwrap()) }),
            ]),
        },
        _ => Result(json!({ "tools": [] })),
    });
    // Discover is 1, initialize 2, the list 3.
    assert_eq!(client.proxy_tool().await.unwrap(), None);
    let wants = Use::default();
    let (one, two) = tokio::join!(client.call_tool("one", None, &wants), client.call_tool("two", None, &wants));
    assert_eq!(value(&one.unwrap().json), text("one"));
    assert_eq!(value(&two.unwrap().json), text("two"));
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_taken_back() {
    let options = Options { timeout: Duration::from_secs(7), ..Options::default() };
    let (client, seen) = client_with(options, LEGACY, |method, _| match method {
        "tools/call" => Nothing,
        _ => Result(json!({ "tools": [] })),
    });
    let error = client.call_tool("slow", None, &Use::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "no answer to tools/call within 7 s");
    client.close().await;
    let id = &seen.all().iter().find(|message| message["method"] == "tools/call").unwrap()["id"].clone();
    assert_eq!(&seen.params("notifications/cancelled")[0]["requestId"], id);
}

#[tokio::test]
async fn a_call_whose_future_is_dropped_is_taken_back() {
    let (reached, mut is_reached) = tokio::sync::mpsc::channel(1);
    let (client, seen) = client(LEGACY, move |method, _| match method {
        "tools/call" => {
            reached.try_send(()).unwrap();
            Nothing
        }
        _ => Result(json!({ "tools": [] })),
    });
    let wants = Use::default();
    tokio::select! {
        _ = client.call_tool("slow", None, &wants) => panic!("it is never answered"),
        _ = is_reached.recv() => {}
    }
    client.close().await;
    assert_eq!(seen.params("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn progress_reaches_who_asked_for_it() {
    for knows in [LEGACY, MODERN_ONLY] {
        let (client, seen) = client(knows, |method, params| match method {
            "tools/call" => {
                let token = &params["_meta"]["progressToken"];
                let told = |progress: f64, token: &Value| {
                    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params":
                        { "progressToken": token, "progress": progress, "total": 2, "message": "going" } })
                };
                let result = json!({ "jsonrpc": "2.0", "id": "$id", "result": text("done") });
                Say(vec![told(1.0, token), told(9.0, &json!("another's")), told(2.0, token), result])
            }
            _ => Result(json!({ "tools": [] })),
        });
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&heard);
        let wants = Use::with_progress(move |progress| hear.lock().unwrap().push(progress));
        client.call_tool("long", None, &wants).await.unwrap();
        let heard = heard.lock().unwrap().clone();
        assert_eq!(heard.iter().map(|told| told.progress).collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!((heard[0].total, heard[0].message.as_deref()), (Some(2.0), Some("going")));
        client.call_tool("long", None, &Use::default()).await.unwrap();
        assert!(seen.params("tools/call")[1]["_meta"].get("progressToken").is_none());
    }
}

struct SaysYes;

impl Questions for SaysYes {
    fn capabilities(&self) -> String {
        r#"{"elicitation":{}}"#.into()
    }

    fn answer(&self, method: &str, _params: Option<&RawValue>) -> std::result::Result<String, RpcError> {
        Ok(json!({ "action": "accept", "content": { "asked": method } }).to_string())
    }
}

fn asks(method: &str, _: &Value) -> Answer {
    match method {
        "tools/call" => Say(vec![
            json!({ "jsonrpc": "2.0", "id": "q1", "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": "q2", "method": "elicitation/create", "params": {} }),
            json!({ "jsonrpc": "2.0", "id": "$id", "result": text("done") }),
        ]),
        _ => Result(json!({ "tools": [] })),
    }
}

#[tokio::test]
async fn a_server_that_asks_is_answered() {
    let answers = |seen: &kit::Seen| -> Vec<Value> {
        seen.all().into_iter().filter(|message| message.get("method").is_none()).collect()
    };
    let (quiet, seen) = client(LEGACY, asks);
    quiet.call_tool("x", None, &Use::default()).await.unwrap();
    quiet.close().await;
    let answered = answers(&seen);
    assert_eq!(answered[0], json!({ "jsonrpc": "2.0", "id": "q1", "result": {} }));
    assert_eq!((&answered[1]["id"], &answered[1]["error"]["code"]), (&json!("q2"), &json!(-32601)));

    let options = Options { questions: Arc::new(SaysYes), ..Options::default() };
    let (willing, seen) = client_with(options, LEGACY, asks);
    willing.call_tool("x", None, &Use::default()).await.unwrap();
    willing.close().await;
    assert_eq!(answers(&seen)[1]["result"]["content"]["asked"], "elicitation/create");
    assert_eq!(seen.params("initialize")[0]["capabilities"], json!({ "elicitation": {} }));
}

fn asks_in_rounds(method: &str, params: &Value) -> Answer {
    match method {
        "tools/call" if params["requestState"] == "s" => Result(text(&params["inputResponses"]["k"].to_string())),
        "tools/call" => Result(json!({
            "resultType": "input_required", "requestState": "s",
            "inputRequests": { "k": { "method": "elicitation/create", "params": { "message": "?" } } },
        })),
        _ => Result(json!({ "tools": [] })),
    }
}

#[tokio::test]
async fn questions_in_an_answer_are_answered_in_the_next_round() {
    let options = Options { questions: Arc::new(SaysYes), ..Options::default() };
    let (willing, seen) = client_with(options, MODERN_ONLY, asks_in_rounds);
    let arguments = raw_value(&json!({ "a": 1 }));
    let called = willing.call_tool("x", Some(&arguments), &Use::default()).await.unwrap();
    assert!(called.json.get().contains("elicitation/create"), "{}", called.json);
    assert_eq!(seen.params("tools/call")[1]["arguments"], json!({ "a": 1 }));
    let (quiet, _) = client(MODERN_ONLY, asks_in_rounds);
    let error = quiet.call_tool("x", None, &Use::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unanswered { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_up_is_told_from_one_that_is_slow() {
    let (client, _) =
        client(LEGACY, |method, _| if method == "tools/call" { HangUp } else { Result(json!({ "tools": [] })) });
    let error = client.call_tool("x", None, &Use::default()).await.unwrap_err();
    assert!(error.is_hang_up(), "{error}");
    let again = client.call_tool("x", None, &Use::default()).await.unwrap_err();
    assert!(again.is_hang_up(), "{again}");
}

#[tokio::test]
async fn what_is_too_large_fails_alone() {
    let options = Options { message_bytes_max: 4096, ..Options::default() };
    let (client, _) = client_with(options, LEGACY, |method, params| match method {
        "tools/call" if params["name"] == "big" => Result(text(&"x".repeat(10_000))),
        "tools/call" => Result(text("small")),
        _ => Result(json!({ "tools": [] })),
    });
    let error = client.call_tool("big", None, &Use::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { limit: 4096, .. }), "{error}");
    assert_eq!(value(&client.call_tool("fine", None, &Use::default()).await.unwrap().json), text("small"));
}

#[tokio::test]
async fn pages_without_end_are_not_followed_for_ever() {
    let mut page = 0;
    let (client, _) = client(LEGACY, move |method, _| {
        page += 1;
        match method {
            "prompts/list" => Result(json!({ "prompts": [], "nextCursor": page.to_string() })),
            _ => Result(json!({ "tools": [] })),
        }
    });
    let error = client.list_prompts().await.unwrap_err();
    assert!(matches!(error, ClientError::Endless { method: "prompts/list" }), "{error}");
}

#[tokio::test]
async fn a_list_that_is_none_is_an_error() {
    let (client, _) = client(LEGACY, |method, _| match method {
        "prompts/list" => Result(json!({ "prompts": 7 })),
        _ => Result(json!({ "tools": [] })),
    });
    let error = client.list_prompts().await.unwrap_err();
    assert!(matches!(error, ClientError::Unexpected { .. }), "{error}");
}
