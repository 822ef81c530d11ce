//! A rule asks, and whoever uses the client answers there: between two pipes, in both eras.

use serde_json::{Value, json};

use crate::elicit_kit::{
    ALLOW, ALLOW_SESSION, DENY, OnPipes, accept, answer, hello, is_denied, is_question, is_taken_back, modern_call,
    write_file,
};

fn decided(client: &OnPipes) -> Vec<(String, String)> {
    client.sandbox.decided()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(verdict, actor)| ((*verdict).to_owned(), (*actor).to_owned())).collect()
}

#[test]
fn a_yes_lets_the_call_go_on() {
    let mut client = OnPipes::connected(json!({}));
    let question = client.calls(1);
    client.send(&answer(&question, &accept(ALLOW)));
    assert_eq!(client.proxy.json()["result"]["method"], "tools/call");
    // Once is once.
    let question = client.calls(2);
    client.send(&answer(&question, &accept(ALLOW_SESSION)));
    assert_eq!(client.proxy.json()["id"], 2);
    client.send(&write_file(3));
    assert_eq!(client.proxy.json()["id"], 3);
    assert_eq!(client.seen(), [write_file(1), write_file(2), write_file(3)]);
    assert_eq!(decided(&client), owned(&[("allow", "client"); 3]));
}

#[test]
fn a_no_denies_it() {
    let mut client = OnPipes::connected(json!({}));
    let error = json!({ "code": -32601, "message": "no forms here" });
    for (id, said, why) in [
        (1, accept(DENY), "said no"),
        (2, json!({ "action": "decline" }), "said no"),
        (3, json!({ "action": "cancel" }), "did not decide"),
        (4, json!({ "action": "accept", "content": { "decision": "perhaps" } }), "no clear answer"),
    ] {
        let question = client.calls(id);
        client.send(&answer(&question, &said));
        is_denied(&client.proxy.json(), id, why);
    }
    let question = client.calls(5);
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }).to_string());
    is_denied(&client.proxy.json(), 5, "no clear answer");
    assert_eq!(client.seen(), [""; 0]);
    assert_eq!(decided(&client), owned(&[("deny", "client"); 5]));
}

#[test]
fn nobody_else_can_answer() {
    let mut client = OnPipes::connected(json!({}));
    let question = client.calls(1);
    let forged = answer(&question, &accept(ALLOW)).replace("mcp-proxy-ask-1-", "mcp-proxy-ask-1-forged");
    client.send(&forged);
    // The server says the same under the id that we gave.
    let by_server = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept(ALLOW) }).to_string();
    client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "say", "params": { "lines": [by_server] } }).to_string());
    assert_eq!(client.proxy.json()["id"], question["id"]);
    assert!(!client.seen().iter().any(|line| line.contains("write_file") || line.contains("forged")));
    client.send(&answer(&question, &accept(DENY)));
    is_denied(&client.proxy.json(), 1, "said no");
}

#[test]
fn time_runs_out() {
    let mut client = OnPipes::connected(json!({ "timeout": "100ms" }));
    let question = client.calls(1);
    is_taken_back(&client.proxy.json(), &question);
    is_denied(&client.proxy.json(), 1, "nobody answered in time");
    // Who comes too late is not heard.
    client.send(&answer(&question, &accept(ALLOW)));
    assert_eq!(client.seen(), [""; 0]);
    assert_eq!(decided(&client), owned(&[("deny", "timeout")]));
    let mut client = OnPipes::connected(json!({ "timeout": "100ms", "on_timeout": "allow" }));
    let question = client.calls(1);
    is_taken_back(&client.proxy.json(), &question);
    assert_eq!(client.proxy.json()["id"], 1);
    assert_eq!(decided(&client), owned(&[("allow", "timeout")]));
}

#[test]
fn a_client_that_ends_has_not_answered() {
    let mut client = OnPipes::connected(json!({}));
    client.calls(1);
    client.proxy.close_stdin();
    is_denied(&client.proxy.json(), 1, "the client is gone");
    let OnPipes { sandbox, proxy } = client;
    assert_eq!(proxy.rest(), Vec::<Vec<u8>>::new());
    assert!(proxy.end().0.success());
    assert_eq!(sandbox.decided(), owned(&[("deny", "nobody")]));
    // One that is killed reads nothing any more, and nothing is left of it.
    let mut client = OnPipes::connected(json!({}));
    client.calls(1);
    let OnPipes { sandbox, proxy } = client;
    let pid = proxy.pid();
    drop(proxy);
    crate::kit::until("the proxy is gone", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(!sandbox.decided().iter().any(|(verdict, _)| verdict == "allow"));
}

#[test]
fn a_call_that_is_taken_back_is_not_asked_about() {
    let mut client = OnPipes::connected(json!({}));
    let question = client.calls(1);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    is_taken_back(&client.proxy.json(), &question);
    assert_eq!(client.seen(), [""; 0]);
}

#[test]
fn a_client_without_forms_is_not_asked() {
    let mut client = OnPipes::begin(json!({}));
    client.send(&hello(&json!({ "elicitation": { "url": {} } })));
    assert_eq!(client.proxy.json()["id"], "init");
    client.send(&write_file(1));
    is_denied(&client.proxy.json(), 1, "nobody is there to ask");
}

#[test]
fn somebody_at_a_shell_may_be_faster() {
    let mut client = OnPipes::connected(json!({}));
    client.sandbox.until_found();
    let question = client.calls(1);
    client.sandbox.stdout(["approve", &client.sandbox.held_number()]);
    is_taken_back(&client.proxy.json(), &question);
    assert_eq!(client.proxy.json()["id"], 1);
    let question = client.calls(2);
    client.sandbox.stdout(["deny", &client.sandbox.held_number(), "--message", "not on Mondays"]);
    is_taken_back(&client.proxy.json(), &question);
    is_denied(&client.proxy.json(), 2, "not on Mondays");
    client.send(&answer(&question, &accept(ALLOW)));
    assert_eq!(client.seen(), [write_file(1)]);
}

#[test]
fn in_the_newest_revision_a_shell_may_be_faster_too() {
    let mut client = OnPipes::begin(json!({ "timeout": "10m" }));
    client.send(&modern_call(1, None));
    let asked = client.proxy.json();
    is_question(&asked, 1);
    client.sandbox.until_found();
    client.sandbox.stdout(["deny", &client.sandbox.held_number(), "--message", "not on Mondays"]);
    client.sandbox.held(0);
    client.send(&modern_call(2, Some((&asked, &accept(ALLOW)))));
    is_denied(&client.proxy.json(), 2, "not on Mondays");
    assert_eq!(client.seen(), [""; 0]);
}

#[test]
fn in_the_newest_revision_the_call_comes_again() {
    let mut client = OnPipes::begin(json!({}));
    let asks = |client: &mut OnPipes, id: u64| -> Value {
        client.send(&modern_call(id, None));
        let asked = client.proxy.json();
        is_question(&asked, id);
        asked
    };
    let asked = asks(&mut client, 1);
    client.send(&modern_call(2, Some((&asked, &accept(ALLOW)))));
    assert_eq!(client.proxy.json()["id"], 2);
    // The same once more is another call.
    client.send(&modern_call(3, Some((&asked, &accept(ALLOW)))));
    is_question(&client.proxy.json(), 3);
    for (id, said, why) in [
        (10, accept(DENY), "said no"),
        (12, json!({ "action": "decline" }), "said no"),
        (14, json!({ "action": "cancel" }), "did not decide"),
    ] {
        let asked = asks(&mut client, id);
        client.send(&modern_call(id + 1, Some((&asked, &said))));
        is_denied(&client.proxy.json(), id + 1, why);
    }
    let asked = asks(&mut client, 20);
    client.send(&modern_call(21, Some((&asked, &accept(ALLOW_SESSION)))));
    assert_eq!(client.proxy.json()["id"], 21);
    client.send(&modern_call(22, None));
    assert_eq!(client.proxy.json()["id"], 22);
    assert_eq!(client.seen(), [modern_call(2, None), modern_call(21, None), modern_call(22, None)]);
    let decided = decided(&client);
    assert_eq!(decided.iter().filter(|(verdict, _)| verdict == "ask").count(), 6, "{decided:?}");
    assert_eq!(decided.iter().filter(|(_, actor)| actor == "client").count(), 6, "{decided:?}");
}

#[test]
fn a_question_that_waited_too_long_is_asked_again() {
    let mut client = OnPipes::begin(json!({ "timeout": "1ms" }));
    client.send(&modern_call(1, None));
    let asked = client.proxy.json();
    is_question(&asked, 1);
    client.sandbox.until_found();
    client.sandbox.held(0);
    client.send(&modern_call(2, Some((&asked, &accept(ALLOW)))));
    is_question(&client.proxy.json(), 2);
    assert_eq!(client.seen(), [""; 0]);
}

/// Nothing of a question is anything that a server said or heard: a recording without it can be played.
#[test]
fn a_recording_tells_it_all_and_replays_none_of_it() {
    let mut client = OnPipes::connected(json!({}));
    let question = client.calls(1);
    client.send(&answer(&question, &accept(ALLOW)));
    assert_eq!(client.proxy.json()["id"], 1);
    let OnPipes { sandbox, proxy } = client;
    assert!(proxy.end().0.success());
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    let lines = sandbox.stdout(["inspect", "--json", &id]);
    let messages: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find = |what: &dyn Fn(&Value) -> bool| messages.iter().find(|message| what(message)).unwrap();
    let asked = find(&|message| message["method"] == "elicitation/create" && message["kind"] == "request");
    assert_eq!(asked["origin"], "proxy", "{asked}");
    let said = find(&|message| message["raw"]["result"]["action"] == "accept");
    assert_eq!((&said["answers"], &said["outcome"]), (&asked["sequence"], &"dropped".into()), "{said}");
    let program = crate::kit::fixture_program();
    let command = format!("{} puppet", program.to_str().unwrap());
    let report = sandbox.stdout(["replay", &id, "--target-command", &command, "--ignore", "$..serverInfo"]);
    assert!(report.contains("2 same, 0 drifted"), "{report}");
}
