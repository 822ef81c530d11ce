//! Many clients at once, none of which knows of the others: all number their calls alike.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::gateway_kit::{HttpClient, StdioClient, code_of, fake, initialize, steps, text_of};
use crate::kit::{Running, Sandbox};

const CLIENTS: usize = 200;
const CALLS: usize = 5;

/// Says how far it is, and answers some time later.
fn slowly(mark: &str, ms: u64) -> Value {
    let params = json!({ "progressToken": "$token", "progress": 1, "message": mark });
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
    json!([{ "say": progress }, { "later": { "ms": ms, "steps": [{ "say": progress }, { "text": mark }] } }])
}

#[test]
fn two_hundred_clients_with_one_id_and_one_token_get_their_own() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a"), fake("b")], json!({}));
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let gateway = &gateway;
            scope.spawn(move || {
                let mut client = HttpClient::open(gateway);
                for round in 0..CALLS {
                    let mark = format!("{number}/{round}");
                    // Neighbours wait for different times, so that answers overtake each other.
                    let ms = (number * 7 + round * 13) % 10;
                    let tool = if (number + round) % 2 == 0 { "a__do" } else { "b__do" };
                    let params = json!({
                        "name": tool, "arguments": steps(slowly(&mark, ms as u64)), "_meta": { "progressToken": "same" },
                    });
                    let all = client.exchange(1, "tools/call", params);
                    let (told, answers): (Vec<&Value>, Vec<&Value>) =
                        all.iter().partition(|message| message.get("method").is_some());
                    // A server that took long to come up is told of with whatever goes out next.
                    let is_progress = |message: &&&Value| message["method"] == "notifications/progress";
                    let progress: Vec<&&Value> = told.iter().filter(is_progress).collect();
                    assert_eq!(answers.len(), 1, "{all:?}");
                    assert_eq!((&answers[0]["id"], text_of(answers[0])), (&json!(1), mark.clone()));
                    assert_eq!(progress.len(), 2, "{all:?}");
                    for told in progress {
                        assert_eq!((&told["params"]["progressToken"], &told["params"]["message"]), (&json!("same"), &json!(mark)));
                    }
                }
            });
        }
    });
    gateway.end();
    let seen: usize = ["a", "b"].iter().map(|server| sandbox.seen(server, "tools/call").len()).sum();
    assert_eq!(seen, CLIENTS * CALLS);
    assert_eq!((sandbox.starts("a").len(), sandbox.starts("b").len()), (1, 1));
}

#[test]
fn a_server_never_sees_an_id_or_a_token_twice() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a")], json!({}));
    let mut clients: Vec<HttpClient> = (0..5).map(|_| HttpClient::open(&gateway)).collect();
    for client in &mut clients {
        let params = json!({ "name": "a__x", "_meta": { "progressToken": 1 } });
        assert_eq!(client.ask(1, "tools/call", params)["id"], 1);
    }
    let calls = sandbox.seen("a", "tools/call");
    for key in [|call: &Value| call["id"].clone(), |call: &Value| call["params"]["_meta"]["progressToken"].clone()] {
        let mut keys: Vec<String> = calls.iter().map(|call| key(call).to_string()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 5, "{calls:?}");
    }
    gateway.end();
}

#[test]
fn a_call_that_was_taken_back_is_answered_to_nobody() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a").set("in_flight", 2)], json!({}));
    // Under way.
    let first = client.begin("a__do", steps(json!([{ "hold": "first" }])));
    let second = client.begin("a__do", steps(json!([{ "hold": "second" }])));
    let calls = sandbox.until_seen("a", "tools/call", 2);
    // Waiting for its turn: the server never hears of it.
    let third = client.begin("a__x", json!({ "text": "third" }));
    client.notify("notifications/cancelled", json!({ "requestId": third }));
    client.notify("notifications/cancelled", json!({ "requestId": first, "reason": "enough" }));
    let cancelled = sandbox.until_seen("a", "notifications/cancelled", 1);
    assert_eq!(cancelled[0]["params"], json!({ "requestId": calls[0]["id"], "reason": "enough" }));
    // Its answer comes all the same, and then that of the other one.
    assert_eq!(
        text_of(&client.steps("a__do", json!([{ "free": "first" }, { "free": "second" }, { "text": "done" }]))),
        "done"
    );
    assert_eq!(text_of(&client.answer(&second)), "second");
    // What is over cannot be taken back, and neither can what never was.
    client.notify("notifications/cancelled", json!({ "requestId": second }));
    client.notify("notifications/cancelled", json!({ "requestId": "never" }));
    client.notify("notifications/cancelled", json!({}));
    assert_eq!(client.says("a__x", "last"), "a:x:last");
    let kept = client.take_kept();
    assert!(kept.iter().all(|message| message["id"] != first && message["id"] != third), "{kept:?}");
    client.end();
    assert_eq!(sandbox.seen("a", "notifications/cancelled").len(), 1);
    assert_eq!(sandbox.seen("a", "tools/call").len(), 4);
}

#[test]
fn whoever_takes_back_in_the_very_moment_of_the_answer_gets_one_or_none() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a")], json!({}));
    let mut lines = String::new();
    for id in 1000..1300 {
        let params = json!({ "name": "a__x", "arguments": { "text": id.to_string() } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let params = json!({ "requestId": id });
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        lines.push_str(&format!("{call}\n"));
        if id % 3 > 0 {
            lines.push_str(&format!("{cancel}\n"));
        }
    }
    client.proxy.send(lines.as_bytes());
    for id in (1000..1300).filter(|id| id % 3 == 0) {
        assert_eq!(text_of(&client.answer(&json!(id))), format!("a:x:{id}"));
    }
    assert_eq!(client.says("a__x", "last"), "a:x:last");
    let mut answers: HashMap<String, usize> = HashMap::new();
    for message in client.take_kept().iter().filter(|message| message.get("method").is_none()) {
        assert_eq!(text_of(message), format!("a:x:{}", message["id"]));
        *answers.entry(message["id"].to_string()).or_default() += 1;
    }
    assert!(answers.values().all(|count| *count == 1), "{answers:?}");
    client.end();
}

#[test]
fn a_batch_of_which_the_last_call_is_taken_back_is_answered_with_the_others() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.serve(&[fake("a")], json!({}));
    let send = |proxy: &mut Running, message: Value| proxy.send(format!("{message}\n").as_bytes());
    let call = |id: u64, told: Value| {
        let params = json!({ "name": "a__do", "arguments": steps(told) });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let wait = |proxy: &Running, is_it: &dyn Fn(&Value) -> bool| loop {
        let message = proxy.json();
        if is_it(&message) {
            return message;
        }
        assert!(message.get("method").is_some(), "{message}");
    };
    send(&mut proxy, initialize(0, "2025-03-26", json!({})));
    assert_eq!(wait(&proxy, &|message| message["id"] == 0)["result"]["protocolVersion"], "2025-03-26");
    send(&mut proxy, json!([call(1, json!([{ "hold": "one" }])), call(2, json!([{ "hold": "two" }]))]));
    sandbox.until_seen("a", "tools/call", 2);
    // What is answered after the first of them is answered after it has come back.
    send(&mut proxy, call(3, json!([{ "free": "one" }, { "text": "freed" }])));
    assert_eq!(text_of(&wait(&proxy, &|message| message["id"] == 3)), "freed");
    let taken_back = json!({ "requestId": 2 });
    send(&mut proxy, json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": taken_back }));
    let answers = wait(&proxy, &Value::is_array);
    let answers = answers.as_array().unwrap();
    assert_eq!((answers.len(), &answers[0]["id"], text_of(&answers[0])), (1, &json!(1), "one".to_owned()));
    assert!(proxy.end().0.success());
}

#[test]
fn a_client_may_have_so_many_calls_open() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({ "in_flight_per_client": 3 }));
    let open: Vec<Value> = (0..3).map(|n| client.begin("a__do", steps(json!([{ "hold": n.to_string() }])))).collect();
    sandbox.until_seen("a", "tools/call", 3);
    let refused = client.call("b__x", json!({}));
    assert_eq!((code_of(&refused), &refused["error"]["data"]["mcp-proxy/reason"]), (5031, &json!("overloaded")));
    client.notify("notifications/cancelled", json!({ "requestId": open[0] }));
    sandbox.until_seen("a", "notifications/cancelled", 1);
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    for id in &open[1..] {
        client.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    client.end();
}

#[test]
fn what_waits_for_a_busy_server_is_bounded() {
    let sandbox = Sandbox::new();
    let fakes = [fake("a").set("in_flight", 1).set("queue", 2), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let open = client.begin("a__do", steps(json!([{ "hold": "one" }])));
    sandbox.until_seen("a", "tools/call", 1);
    let waiting: Vec<Value> = (0..2).map(|n| client.begin("a__x", json!({ "text": n.to_string() }))).collect();
    let refused = client.call("a__x", json!({}));
    assert_eq!(code_of(&refused), 5031, "{refused}");
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    client.notify("notifications/cancelled", json!({ "requestId": open }));
    for (n, id) in waiting.iter().enumerate() {
        assert_eq!(text_of(&client.answer(id)), format!("a:x:{n}"));
    }
    client.end();
}
