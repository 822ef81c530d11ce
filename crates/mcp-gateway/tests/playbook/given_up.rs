//! Calls that were given up while their server may still work on them: its words outside of calls reach nobody else.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Client, Playbook, Server, ServerPlan, server, text};

const GRACE: Duration = Duration::from_secs(2);

fn logged(what: &str) -> Value {
    json!({ "level": "info", "data": what })
}

/// Begins a call and cancels it. The server has heard of both.
async fn gives_up(client: &Client, server: &Server) -> crate::kit::Heard {
    client.calls("given up", "a__x");
    let call = server.gets_call("x").await;
    client.cancels("given up");
    server.gets("notifications/cancelled", json!({ "requestId": call.id() })).await;
    call
}

async fn of_two(plan: ServerPlan) -> (Playbook, Client, Client) {
    let play = Playbook::of([plan]);
    let able = json!({ "roots": {} });
    let (ann, ben) = (play.client_that(able.clone()).await, play.client_that(able).await);
    (play, ann, ben)
}

/// Another client sees what it would see alone, on whichever connection.
async fn is_served(ben: &Client, a: &Server) {
    ben.rest().await;
    ben.calls(1, "a__x");
    let call = a.gets_call("x").await;
    call.says(&crate::kit::message(None, "notifications/message", logged("mine")));
    call.asks("q", "roots/list", Value::Null);
    assert_eq!(ben.hears("notifications/message").await["params"]["data"], "mine");
    let question = ben.hears("roots/list").await;
    ben.answers(&question, json!({ "roots": [] }));
    a.hears(json!({ "id": "q", "result": { "roots": [] } })).await;
    call.answers(text("done"));
    ben.gets_result(1, text("done")).await;
    ben.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn others_get_a_fresh_connection_where_the_server_never_answers() {
    let (play, ann, ben) = of_two(server("a")).await;
    let a = play.server("a");
    let call = gives_up(&ann, &a).await;
    // What is said of the call that was given up is heard by nobody.
    call.says(&crate::kit::message(None, "notifications/message", logged("secret")));
    ben.calls(0, "a__x");
    a.gets_nothing_else().await;
    play.passes(GRACE).await;
    a.gets_call("x").await.answers(text("fresh"));
    ben.gets_result(0, text("fresh")).await;
    assert_eq!(a.starts(), 2);
    is_served(&ben, &a).await;
    // So is a client that comes after it all.
    is_served(&play.client_that(json!({ "roots": {} })).await, &a).await;
    // The connection before has nothing left to do, and ends.
    play.passes(GRACE).await;
    assert!(call.connection.is_over());
}

#[tokio::test(start_paused = true)]
async fn others_wait_for_a_server_that_answers_after_all() {
    let (play, ann, ben) = of_two(server("a")).await;
    let a = play.server("a");
    let call = gives_up(&ann, &a).await;
    ben.calls(0, "a__x");
    a.gets_nothing_else().await;
    call.answers(text("late"));
    a.gets_call("x").await.answers(text("same"));
    ben.gets_result(0, text("same")).await;
    is_served(&ben, &a).await;
    assert_eq!(a.starts(), 1);
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_is_asked_for_by_nobody_else() {
    let (play, ann, ben) = of_two(server("a")).await;
    let a = play.server("a");
    ann.calls(1, "a__x");
    let call = a.gets_call("x").await;
    ann.leaves();
    a.gets("notifications/cancelled", json!({ "requestId": call.id() })).await;
    call.asks("not yours", "roots/list", Value::Null);
    let refused = a.hears(json!({ "id": "not yours" })).await;
    assert!(refused.message["error"].is_object(), "{}", refused.message);
    ben.gets_nothing_else().await;
    play.passes(GRACE).await;
    is_served(&ben, &a).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_took_too_long_costs_others_nothing() {
    let (play, ann, ben) = of_two(server("a").set(|it| it.response_timeout = Duration::from_secs(20))).await;
    let a = play.server("a");
    ann.calls(1, "a__x");
    let call = a.gets_call("x").await;
    play.passes(Duration::from_secs(21)).await;
    ann.gets_error(1, 5041).await;
    a.gets("notifications/cancelled", json!({ "requestId": call.id() })).await;
    play.passes(GRACE).await;
    is_served(&ben, &a).await;
    assert_eq!(a.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_connection_before_finishes_its_calls_and_ends() {
    let (play, ann, ben) = of_two(server("a")).await;
    let a = play.server("a");
    ben.calls("slow", "a__x");
    let slow = a.gets_call("x").await;
    gives_up(&ann, &a).await;
    play.passes(GRACE).await;
    // New work of either goes to a fresh process, and the one before is not ended under its call.
    for client in [&ben, &ann] {
        client.calls(1, "a__x");
        let call = a.gets_call("x").await;
        assert!(!std::rc::Rc::ptr_eq(&call.connection, &slow.connection));
        call.answers(text(""));
        client.gets_answer(1).await;
    }
    play.passes(GRACE).await;
    assert!(!slow.connection.is_over());
    slow.answers(text("slow"));
    ben.gets_result("slow", text("slow")).await;
    play.passes(GRACE).await;
    assert!(slow.connection.is_over());
    assert_eq!(a.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn subscriptions_move_to_the_fresh_connection() {
    let (play, ann, ben) = of_two(server("a").list("resources/list", json!(["r:1"]))).await;
    let a = play.server("a");
    let uri = ben.ask("resources/list", json!({})).await["result"]["resources"][0]["uri"].clone();
    ben.asks(1, "resources/subscribe", json!({ "uri": uri }));
    a.gets("resources/subscribe", json!({ "uri": "r:1" })).await.answers(json!({}));
    ben.gets_answer(1).await;
    gives_up(&ann, &a).await;
    play.passes(GRACE).await;
    ben.rest().await;
    ben.calls(2, "a__x");
    a.gets("resources/subscribe", json!({ "uri": "r:1" })).await.answers(json!({}));
    a.gets_call("x").await.answers(text(""));
    ben.gets_answer(2).await;
    // The lists are as they were, so nothing is said of them.
    ben.gets_nothing_else().await;
    a.says("notifications/resources/updated", json!({ "uri": "r:1" }));
    ben.gets(json!({ "method": "notifications/resources/updated", "params": { "uri": uri } })).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_by_itself_keeps_its_process() {
    let play = Playbook::of([server("a").set(|it| it.cancel_grace = Duration::ZERO)]);
    let (ann, a) = (play.client().await, play.server("a"));
    gives_up(&ann, &a).await;
    for number in 0..3 {
        ann.calls(number, "a__x");
        a.gets_call("x").await.answers(text(""));
        ann.gets_answer(number).await;
    }
    assert_eq!(a.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_server_has_one_process_and_settles_a_call_by_answer_or_grace() {
    for is_answered in [true, false] {
        let (play, ann, ben) = of_two(server("a").set(|it| it.exclusive = true)).await;
        let a = play.server("a");
        let given_up = gives_up(&ann, &a).await;
        ben.calls(1, "a__x");
        let call = a.gets_call("x").await;
        call.asks("q", "roots/list", Value::Null);
        let refused = a.hears(json!({ "id": "q" })).await;
        assert!(refused.message["error"]["message"].as_str().unwrap().contains("cannot be told"));
        call.answers(text(""));
        ben.gets_answer(1).await;
        if is_answered {
            given_up.answers(text("late"));
        } else {
            play.passes(GRACE + Duration::from_secs(1)).await;
        }
        is_served(&ben, &a).await;
        assert_eq!(a.starts(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_server_is_started_once_for_all_clients() {
    let play = Playbook::of([server("a").set(|it| it.exclusive = true)]);
    let (ann, ben) = (play.client().await, play.client_that(json!({ "roots": {} })).await);
    let a = play.server("a");
    for round in 1..=3 {
        ann.calls(round, "a__x");
        a.gets_call("x").await;
        a.connection().dies("signal 9");
        ann.gets_error(round, 5032).await;
        // The client that declares something else comes first.
        ben.calls(round, "a__x");
        a.gets_call("x").await.answers(text(""));
        ben.gets_answer(round).await;
        assert_eq!((a.starts(), play.shows("a").await.instances), (1 + round, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_server_starts_again_once_the_process_before_is_gone() {
    let play = Playbook::of([server("a").set(|it| it.exclusive = true)]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.calls(1, "a__x");
    a.gets_call("x").await.answers(text(""));
    ann.gets_answer(1).await;
    a.lingers.set(true);
    let before = a.connection();
    play.orders("a", mcp_gateway::board::ServerOrder::Restart).await;
    play.passes(Duration::from_secs(1)).await;
    assert_eq!((before.is_over(), a.starts()), (true, 1));
    before.is_gone();
    ann.calls(2, "a__x");
    a.gets_call("x").await;
    assert_eq!(a.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn logs_outside_of_calls_reach_others_after_the_grace_at_an_address() {
    let (play, ann, ben) = of_two(server("a").at_an_address()).await;
    let a = play.server("a");
    gives_up(&ann, &a).await;
    ann.leaves();
    ben.rest().await;
    a.says("notifications/message", logged("secret"));
    ben.gets_nothing_else().await;
    play.passes(GRACE + Duration::from_secs(1)).await;
    a.says("notifications/message", logged("for ben"));
    assert_eq!(ben.hears("notifications/message").await["params"]["data"], "for ben");
    assert_eq!(a.starts(), 1);
}
