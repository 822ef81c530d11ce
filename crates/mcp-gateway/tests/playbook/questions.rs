//! Questions of servers reach the client whose call they belong to, and nobody else.

use serde_json::{Value, json};

use crate::kit::{Client, Playbook, server, text};

const QUESTIONS: [&str; 3] = ["roots/list", "sampling/createMessage", "elicitation/create"];

async fn able(play: &Playbook) -> Client {
    play.client_that(json!({ "roots": {}, "sampling": {}, "elicitation": {} })).await
}

#[tokio::test(start_paused = true)]
async fn servers_that_number_alike_are_told_apart() {
    let play = Playbook::servers(["a", "b", "c"]);
    let ann = able(&play).await;
    let mut asked = Vec::new();
    for (name, method) in ["a", "b", "c"].into_iter().zip(QUESTIONS) {
        ann.calls(name, &format!("{name}__x"));
        play.server(name).gets_call("x").await.asks(1, method, json!({ "message": "?" }));
        let question = ann.hears(method).await;
        assert_eq!(question["params"], json!({ "message": "?" }));
        asked.push(question);
    }
    for (name, question) in ["a", "b", "c"].iter().zip(&asked).rev() {
        ann.answers(question, json!({ "for": name }));
        play.server(name).hears(json!({ "id": 1, "result": { "for": name } })).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_of_a_question_comes_back_as_it_was() {
    let play = Playbook::servers(["a"]);
    let ann = able(&play).await;
    for id in [json!("q"), json!(0), json!(-5), json!("1")] {
        ann.calls(1, "a__x");
        let call = play.server("a").gets_call("x").await;
        call.asks(id.clone(), "roots/list", Value::Null);
        let question = ann.hears("roots/list").await;
        let error = json!({ "code": -1, "message": "no" });
        ann.sends(json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }).to_string());
        play.server("a").hears(json!({ "id": id, "error": error })).await;
        call.answers(text(""));
        ann.gets_answer(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_behind_a_question() {
    let play = Playbook::servers(["a", "b"]);
    let ann = able(&play).await;
    ann.calls(1, "a__x");
    play.server("a").gets_call("x").await.asks(7, "sampling/createMessage", json!({}));
    let question = ann.hears("sampling/createMessage").await;
    for name in ["a", "b"] {
        ann.calls(2, &format!("{name}__x"));
        play.server(name).gets_call("x").await.answers(text(name));
        ann.gets_result(2, text(name)).await;
    }
    // The client is not blamed for the time that it takes.
    play.passes(std::time::Duration::from_secs(90)).await;
    ann.answers(&question, json!({}));
    play.server("a").hears(json!({ "id": 7, "result": {} })).await;
    // An answer to no open question is nobody's.
    ann.answers(&question, json!({}));
    ann.answers(&json!({ "id": 4711 }), json!({}));
    play.server("a").gets_nothing_else().await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_is_not_asked_what_it_cannot_answer() {
    let play = Playbook::servers(["a"]);
    let ann = play.client_that(json!({ "roots": {} })).await;
    ann.calls(1, "a__x");
    let call = play.server("a").gets_call("x").await;
    for method in ["sampling/createMessage", "elicitation/create"] {
        call.asks(1, method, json!({}));
        play.server("a").hears(json!({ "id": 1, "error": { "code": -32601 } })).await;
    }
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_ping_of_a_server_is_answered_for_the_client() {
    let play = Playbook::servers(["a"]);
    let ann = play.client().await;
    play.server("a").asks("p", "ping", Value::Null);
    play.server("a").hears(json!({ "id": "p", "result": {} })).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn the_client_that_a_shared_server_means_is_never_guessed() {
    let play = Playbook::servers(["a"]);
    let (ann, ben, a) = (able(&play).await, able(&play).await, play.server("a"));
    ann.calls(1, "a__x");
    ben.calls(1, "a__x");
    let (_, second) = (a.gets_call("x").await, a.gets_call("x").await);
    second.asks(1, "roots/list", Value::Null);
    let refused = a.hears(json!({ "id": 1 })).await;
    assert!(refused.message["error"]["message"].as_str().unwrap().contains("cannot be told"));
    ann.gets_nothing_else().await;
    ben.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn an_address_says_with_which_call_its_question_comes() {
    let play = Playbook::of([server("a").at_an_address()]);
    let (ann, ben, a) = (able(&play).await, able(&play).await, play.server("a"));
    ann.asks(1, "tools/call", json!({ "name": "a__x", "arguments": { "for": "ann" } }));
    ben.asks(1, "tools/call", json!({ "name": "a__x", "arguments": { "for": "ben" } }));
    let call = a.gets("tools/call", json!({ "arguments": { "for": "ben" } })).await;
    call.asks(1, "roots/list", Value::Null);
    let question = ben.hears("roots/list").await;
    ben.answers(&question, json!({ "roots": [] }));
    a.hears(json!({ "id": 1, "result": { "roots": [] } })).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_comes_on_the_stream_of_its_call() {
    let play = Playbook::servers(["a"]);
    let ann = play.web_client_that(json!({ "roots": {} })).await;
    ann.asks(5, "tools/call", json!({ "name": "a__x" }));
    let call = play.server("a").gets_call("x").await;
    call.asks(1, "roots/list", Value::Null);
    let question = ann.hears_about(5, "roots/list").await;
    ann.answers(&question, json!({ "roots": [] }));
    play.server("a").hears(json!({ "id": 1, "result": { "roots": [] } })).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_is_asked_nothing_before_it_is_introduced() {
    let play = Playbook::servers(["a", "b"]);
    let (ann, a, b) = (play.newcomer(), play.server("a"), play.server("b"));
    b.answers_by_hand(&["initialize"]);
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": {} }, "clientInfo": info });
    ann.asks(0, "initialize", params);
    let opening = b.gets("initialize", Value::Null).await;
    a.asks("early", "roots/list", Value::Null);
    // One that is withdrawn before never reaches the client.
    a.asks("withdrawn", "roots/list", Value::Null);
    a.says("notifications/cancelled", json!({ "requestId": "withdrawn" }));
    ann.gets_nothing_else().await;
    opening.answers(json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info }));
    ann.gets_answer(0).await;
    let question = ann.hears("roots/list").await;
    ann.answers(&question, json!({ "roots": [] }));
    a.hears(json!({ "id": "early", "result": { "roots": [] } })).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_a_server_that_has_yet_to_introduce_itself() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.newcomer(), play.server("a"));
    a.answers_by_hand(&["initialize"]);
    let opening = async {
        let opening = a.gets("initialize", Value::Null).await;
        opening.asks("early", "roots/list", Value::Null);
        opening
    };
    let (_, opening) = tokio::join!(ann.shakes_hands("2025-11-25", json!({ "roots": {} })), opening);
    let question = ann.hears("roots/list").await;
    ann.answers(&question, json!({ "roots": [] }));
    a.hears(json!({ "id": "early", "result": { "roots": [] } })).await;
    let info = json!({ "name": "a", "version": "1" });
    opening.answers(json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": info }));
    ann.calls(1, "a__x");
    a.gets_call("x").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_is_told_only_what_can_be_asked_across_eras() {
    let can = json!({
        "sampling": { "tools": {} }, "elicitation": { "form": {} }, "roots": { "listChanged": true },
        "experimental": { "e": {} }, "extensions": { "x/y": {} },
    });
    let across = json!({ "experimental": { "e": {} }, "extensions": { "x/y": {} } });
    for (is_modern, expected) in [(true, across), (false, can.clone())] {
        let play = Playbook::servers(["a"]);
        let ann = if is_modern { play.modern_client_that(can.clone()) } else { play.client_that(can.clone()).await };
        ann.calls(1, "a__x");
        play.server("a").gets_call("x").await;
        assert_eq!(play.server("a").seen("initialize")[0]["capabilities"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_question_is_withdrawn_from_the_client() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (able(&play).await, play.server("a"));
    ann.calls(1, "a__x");
    a.gets_call("x").await.asks(3, "roots/list", Value::Null);
    let question = ann.hears("roots/list").await;
    a.says("notifications/cancelled", json!({ "requestId": 3 }));
    let withdrawn = ann.hears("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // Its answer is to no open question.
    ann.answers(&question, json!({ "roots": [] }));
    a.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_ends_its_questions() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (able(&play).await, play.server("a"));
    for is_cancelled in [false, true] {
        ann.calls(1, "a__x");
        let call = a.gets_call("x").await;
        call.asks(3, "roots/list", Value::Null);
        let question = ann.hears("roots/list").await;
        if is_cancelled {
            ann.cancels(1);
            a.gets("notifications/cancelled", Value::Null).await;
        } else {
            call.answers(text(""));
            ann.gets_answer(1).await;
        }
        ann.answers(&question, json!({ "roots": [] }));
        a.gets_nothing_else().await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_with_a_question_reaches_its_server() {
    let play = Playbook::servers(["a", "b"]);
    let (ann, a) = (able(&play).await, play.server("a"));
    ann.calls(1, "a__x");
    let call = a.gets_call("x").await;
    call.asks(3, "sampling/createMessage", json!({ "_meta": { "progressToken": "t" } }));
    ann.hears("sampling/createMessage").await;
    ann.tells("notifications/progress", json!({ "progressToken": "t", "progress": 1 }));
    ann.tells("notifications/progress", json!({ "progressToken": "other", "progress": 1 }));
    a.gets("notifications/progress", json!({ "progressToken": "t", "progress": 1 })).await;
    a.gets_nothing_else().await;
    play.server("b").gets_nothing_else().await;
}
