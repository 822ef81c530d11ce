//! Calls that are under way: their progress, their end, and how many there may be.

use std::time::Duration;

use serde_json::json;

use crate::kit::{Playbook, server, text};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn progress_comes_under_the_clients_token() {
    let play = Playbook::servers(["a"]);
    let (ann, ben) = (play.client().await, play.client().await);
    for (client, token) in [(&ann, json!("mine")), (&ben, json!(1))] {
        client.asks(1, "tools/call", json!({ "name": "a__x", "_meta": { "progressToken": token } }));
        let call = play.server("a").gets_call("x").await;
        call.progresses(1);
        client
            .gets(json!({ "method": "notifications/progress", "params": { "progressToken": token, "progress": 1 } }))
            .await;
        call.answers(text(""));
        client.gets_answer(1).await;
        // Progress of a call that is over is for nobody.
        call.progresses(2);
    }
    ann.gets_nothing_else().await;
    ben.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_answered_to_nobody() {
    let play = Playbook::of([server("a").set(|it| it.in_flight = 2)]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.calls(1, "a__x");
    ann.calls(2, "a__x");
    let (first, second) = (a.gets_call("x").await, a.gets_call("x").await);
    // The third waits for its turn, and the server never hears of it.
    ann.calls(3, "a__x");
    ann.cancels(3);
    ann.tells("notifications/cancelled", json!({ "requestId": 1, "reason": "enough" }));
    a.gets("notifications/cancelled", json!({ "requestId": first.id(), "reason": "enough" })).await;
    first.answers(text("late"));
    second.answers(text("second"));
    ann.gets_result(2, text("second")).await;
    // Neither a call that is over nor one that never was can be cancelled.
    ann.cancels(2);
    ann.cancels("never");
    ann.tells("notifications/cancelled", json!({}));
    a.gets_nothing_else().await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_may_have_so_many_calls_open() {
    let play = Playbook::with(["a", "b"].map(server), |it| it.in_flight_per_client = 3);
    let ann = play.client().await;
    (1..=3).for_each(|id| ann.calls(id, "a__x"));
    ann.calls(4, "b__x");
    let refused = ann.gets_error(4, 5031).await;
    assert_eq!(refused["error"]["data"]["mcp-proxy/reason"], "overloaded");
    ann.cancels(1);
    ann.calls(5, "b__x");
    play.server("b").gets_call("x").await;
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_a_busy_server_is_bounded() {
    let play = Playbook::of([server("a").set(|it| (it.in_flight, it.queue) = (1, 2)), server("b")]);
    let (ann, a) = (play.client().await, play.server("a"));
    (1..=3).for_each(|id| ann.calls(id, "a__x"));
    ann.calls(4, "a__x");
    ann.gets_error(4, 5031).await;
    ann.calls(5, "b__x");
    play.server("b").gets_call("x").await;
    let mut call = a.gets_call("x").await;
    a.gets_nothing_else().await;
    for id in 1..=3 {
        call.answers(text(&id.to_string()));
        ann.gets_result(id, text(&id.to_string())).await;
        if id < 3 {
            call = a.gets_call("x").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_is_dropped() {
    let play = Playbook::of([server("a").set(|it| it.response_timeout = SECOND), server("b")]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.calls(1, "a__x");
    let call = a.gets_call("x").await;
    let given_up = ann.gets_answer(1).await;
    assert_eq!(given_up["error"]["data"]["mcp-proxy/reason"], "server-timeout", "{given_up}");
    assert_eq!(given_up["error"]["message"], "mcp-proxy: server \"a\" did not answer within 1 s");
    let cancelled = a.gets("notifications/cancelled", json!({ "requestId": call.id() })).await;
    assert_eq!(cancelled.message["params"]["reason"], "no answer came within 1 s");
    call.answers(text("late"));
    ann.calls(2, "a__x");
    a.gets_call("x").await.answers(text("in time"));
    ann.gets_result(2, text("in time")).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn progress_puts_the_end_of_a_call_off_up_to_its_cap() {
    let play = Playbook::of([server("a").set(|it| (it.response_timeout, it.response_cap) = (SECOND * 5, SECOND * 12))]);
    let ann = play.client().await;
    ann.asks(1, "tools/call", json!({ "name": "a__x", "_meta": { "progressToken": "t" } }));
    let call = play.server("a").gets_call("x").await;
    for step in 0..3 {
        play.passes(SECOND * 3).await;
        call.progresses(step);
        ann.hears("notifications/progress").await;
    }
    ann.gets_nothing_else().await;
    play.passes(SECOND * 4).await;
    ann.gets_error(1, 5041).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_has_its_calls_cancelled() {
    let play = Playbook::servers(["a"]);
    let (ann, ben) = (play.client().await, play.client().await);
    ann.calls(1, "a__x");
    let call = play.server("a").gets_call("x").await;
    ann.leaves();
    play.server("a").gets("notifications/cancelled", json!({ "requestId": call.id() })).await;
    ben.gets_nothing_else().await;
    // The gateway keeps no place for it.
    assert_eq!(play.shows("a").await.clients, 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_goes_without_progress_and_large_answers() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.asks(1, "tools/call", json!({ "name": "a__x", "_meta": { "progressToken": "t" } }));
    let call = a.gets_call("x").await;
    ann.has_unread(5 * 1024 * 1024);
    call.progresses(1);
    call.answers(text("it waits"));
    let refused = ann.gets_answer(1).await;
    assert_eq!(refused["error"]["data"]["mcp-proxy/reason"], "overloaded", "{refused}");
    ann.gets_nothing_else().await;
    ann.has_unread(0);
    ann.calls(2, "a__x");
    a.gets_call("x").await.answers(text("read"));
    ann.gets_result(2, text("read")).await;
}

#[tokio::test(start_paused = true)]
async fn calls_count_in_the_figures_of_their_server() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.calls(1, "a__x");
    let call = a.gets_call("x").await;
    assert_eq!(play.shows("a").await.in_flight, 1);
    play.passes(SECOND * 11).await;
    call.answers(text(""));
    ann.calls(2, "a__x");
    a.gets_call("x").await.fails(-32000, "no");
    let calls = play.shows("a").await.calls;
    assert_eq!((calls.total, calls.errors, calls.per_minute), (2, 1, 2));
    assert!(calls.longest_us > 11_000_000, "{calls:?}");
    assert_eq!(calls.latency_us.len(), 2);
}
