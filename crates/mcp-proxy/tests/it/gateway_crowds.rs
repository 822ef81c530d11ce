//! Many clients at once, none of which knows of the others: all number their calls alike.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::gateway_kit::{HttpClient, StdioClient, fake, steps, text_of};
use crate::kit::Sandbox;

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
