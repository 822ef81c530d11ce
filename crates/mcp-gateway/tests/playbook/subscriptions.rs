//! Changes and logs reach the clients that want them, and no others.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Client, Heard, Playbook, Server, message, names, server, text};

const UPDATED: &str = "notifications/resources/updated";
const SECOND: Duration = Duration::from_secs(1);

/// A server whose addresses are its own.
fn plain(uris: &[&str]) -> crate::kit::ServerPlan {
    server("a").list("resources/list", json!(uris)).set(|it| it.prefix = false)
}

async fn subscribes(client: &Client, a: &Server, uri: &str) {
    client.asks("subscribe", "resources/subscribe", json!({ "uri": uri }));
    a.gets("resources/subscribe", json!({ "uri": uri })).await.answers(json!({}));
    client.gets_result("subscribe", json!({})).await;
}

fn changes(a: &Server, uris: &[&str]) {
    uris.iter().for_each(|uri| a.says(UPDATED, json!({ "uri": uri })));
}

/// The addresses of all changes that a client was told of.
async fn told(client: &Client) -> Vec<String> {
    let all = client.rest().await;
    let updated = all.iter().filter(|message| message["method"] == UPDATED);
    updated.map(|message| message["params"]["uri"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn clients_hear_of_their_resources_and_of_no_others() {
    let play = Playbook::of([plain(&["r:1", "r:2", "r:both"])]);
    let (ann, ben, a) = (play.client().await, play.client().await, play.server("a"));
    ann.ask("resources/list", json!({})).await;
    subscribes(&ann, &a, "r:1").await;
    subscribes(&ann, &a, "r:both").await;
    subscribes(&ben, &a, "r:2").await;
    // A server is asked once for all.
    assert_eq!(ben.ask("resources/subscribe", json!({ "uri": "r:both" })).await["result"], json!({}));
    changes(&a, &["r:1", "r:2", "r:both"]);
    assert_eq!(
        (told(&ann).await, told(&ben).await),
        (vec!["r:1".into(), "r:both".into()], vec!["r:2".into(), "r:both".into()])
    );
    // A resource that one wants no more the other still hears of.
    ann.ask("resources/unsubscribe", json!({ "uri": "r:both" })).await;
    changes(&a, &["r:both", "r:1"]);
    assert_eq!((told(&ann).await, told(&ben).await), (vec!["r:1".into()], vec!["r:both".into()]));
    a.gets_nothing_else().await;
    ben.asks(1, "resources/unsubscribe", json!({ "uri": "r:both" }));
    a.gets("resources/unsubscribe", json!({ "uri": "r:both" })).await.answers(json!({}));
    ben.gets_result(1, json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn changes_within_a_resource_reach_its_subscribers() {
    let play = Playbook::of([plain(&["file:///dir", "file:///dir/a", "note://n/"])]);
    let (ann, ben, a) = (play.client().await, play.client().await, play.server("a"));
    ann.ask("resources/list", json!({})).await;
    subscribes(&ann, &a, "file:///dir").await;
    subscribes(&ann, &a, "file:///dir/a").await;
    subscribes(&ben, &a, "note://n/").await;
    changes(&a, &["file:///dir/a", "file:///dir?x", "file:///dirs", "note://n", "note://n/1", "card:7", "file:///dir"]);
    assert_eq!(told(&ann).await, ["file:///dir/a", "file:///dir?x", "file:///dir"]);
    assert_eq!(told(&ben).await, ["note://n/1"]);
    // An address that tells nothing is meant for the only client that is subscribed to anything.
    ben.asks(1, "resources/unsubscribe", json!({ "uri": "note://n/" }));
    a.gets("resources/unsubscribe", Value::Null).await.answers(json!({}));
    ben.gets_answer(1).await;
    changes(&a, &["card:7"]);
    assert_eq!((told(&ann).await, told(&ben).await), (vec!["card:7".into()], vec![]));
}

#[tokio::test(start_paused = true)]
async fn changes_around_the_answer_to_a_subscription_follow_it() {
    let play = Playbook::of([plain(&["r:1"])]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.ask("resources/list", json!({})).await;
    ann.asks(1, "resources/subscribe", json!({ "uri": "r:1" }));
    let asked = a.gets("resources/subscribe", Value::Null).await;
    changes(&a, &["r:1", "r:1"]);
    ann.gets_nothing_else().await;
    asked.answers(json!({}));
    changes(&a, &["r:1#part"]);
    let all = ann.rest().await;
    assert_eq!(
        (all.len(), &all[0]["id"]),
        (3, &json!(1)),
        "a change that is told twice meanwhile is told once: {all:?}"
    );
    assert_eq!((&all[1]["params"]["uri"], &all[2]["params"]["uri"]), (&json!("r:1"), &json!("r:1#part")));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_of_a_subscription_that_the_server_refused() {
    let play = Playbook::of([plain(&["r:1", "r:2"])]);
    let (ann, ben, a) = (play.client().await, play.client().await, play.server("a"));
    ann.ask("resources/list", json!({})).await;
    for client in [&ann, &ben] {
        client.asks(1, "resources/subscribe", json!({ "uri": "r:1" }));
        let asked = a.gets("resources/subscribe", Value::Null).await;
        changes(&a, &["r:1"]);
        asked.fails(-32002, "no");
        client.gets_error(1, -32002).await;
    }
    subscribes(&ann, &a, "r:2").await;
    changes(&a, &["r:2"]);
    assert_eq!((told(&ann).await, told(&ben).await), (vec!["r:2".into()], vec![]));
    a.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn subscriptions_outlive_their_server_for_all_clients() {
    let play = Playbook::of([server("a").list("resources/list", json!(["r:1"]))]);
    let (ann, ben, a) = (play.client().await, play.client().await, play.server("a"));
    let uri = names(&ben.ask("resources/list", json!({})).await, "resources", "uri").remove(0);
    ben.asks(1, "resources/subscribe", json!({ "uri": uri }));
    a.gets("resources/subscribe", json!({ "uri": "r:1" })).await.answers(json!({}));
    ben.gets_answer(1).await;
    a.connection().dies("signal 9");
    // The other client calls it back.
    ann.calls(1, "a__x");
    a.gets("resources/subscribe", json!({ "uri": "r:1" })).await.answers(json!({}));
    a.gets_call("x").await;
    changes(&a, &["r:1"]);
    assert_eq!(told(&ben).await, [uri]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_opened_again_has_its_subscriptions_and_lists() {
    let play = Playbook::of([plain(&["r:1"]).at_an_address()]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.ask("resources/list", json!({})).await;
    subscribes(&ann, &a, "r:1").await;
    play.passes(SECOND * 2).await;
    ann.rest().await;
    a.connection().link().client.upstream().unwrap().reopened();
    a.gets("resources/subscribe", json!({ "uri": "r:1" })).await.answers(json!({}));
    ann.hears("notifications/resources/list_changed").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_to_tell_of_changes_is_in_use() {
    let play = Playbook::of([plain(&["r:1"]).set(|it| it.idle_stop = Some(SECOND))]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.ask("resources/list", json!({})).await;
    subscribes(&ann, &a, "r:1").await;
    play.passes(SECOND * 10).await;
    assert!(!a.connection().is_over());
    ann.asks(1, "resources/unsubscribe", json!({ "uri": "r:1" }));
    a.gets("resources/unsubscribe", Value::Null).await.answers(json!({}));
    play.passes(SECOND * 3).await;
    assert!(a.connection().is_over());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_its_subscriptions() {
    let play = Playbook::of([plain(&["r:1"])]);
    let (ann, _ben, a) = (play.client().await, play.client().await, play.server("a"));
    ann.ask("resources/list", json!({})).await;
    subscribes(&ann, &a, "r:1").await;
    ann.leaves();
    a.gets("resources/unsubscribe", json!({ "uri": "r:1" })).await;
}

async fn logging_call(client: &Client, a: &Server) -> Heard {
    client.calls("logs", "a__x");
    let call = a.gets_call("x").await;
    for level in ["info", "error"] {
        call.says(&message(None, "notifications/message", json!({ "level": level, "data": level })));
    }
    call
}

#[tokio::test(start_paused = true)]
async fn each_client_hears_as_much_as_it_wants() {
    let play = Playbook::servers(["a"]);
    let (ann, ben, a) = (play.client().await, play.client().await, play.server("a"));
    for (client, level) in [(&ann, "debug"), (&ben, "error")] {
        client.asks(1, "logging/setLevel", json!({ "level": level }));
        if level == "debug" {
            a.gets("logging/setLevel", json!({ "level": "debug" })).await.answers(json!({}));
        }
        client.gets_result(1, json!({})).await;
    }
    // The server logs at the level of the keenest.
    a.gets_nothing_else().await;
    for (client, expected) in [(&ann, vec!["info", "error"]), (&ben, vec!["error"])] {
        logging_call(client, &a).await.answers(text(""));
        let all = client.rest().await;
        let heard: Vec<&Value> = all.iter().filter(|it| it.get("method").is_some()).collect();
        let levels: Vec<&str> = heard.iter().map(|it| it["params"]["level"].as_str().unwrap()).collect();
        assert_eq!(levels, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_level_is_acknowledged_once_servers_took_it_or_a_second_passed() {
    let play = Playbook::servers(["a", "b"]);
    let (ann, a, b) = (play.client().await, play.server("a"), play.server("b"));
    ann.asks(1, "logging/setLevel", json!({ "level": "error" }));
    let (of_a, of_b) = (a.gets("logging/setLevel", Value::Null).await, b.gets("logging/setLevel", Value::Null).await);
    of_a.answers(json!({}));
    ann.gets_nothing_else().await;
    of_b.answers(json!({}));
    ann.gets_result(1, json!({})).await;
    // A server that says nothing holds it up for a second.
    ann.asks(2, "logging/setLevel", json!({ "level": "debug" }));
    a.gets("logging/setLevel", Value::Null).await.answers(json!({}));
    ann.gets_nothing_else().await;
    ann.gets_result(2, json!({})).await;
    // A request that was withdrawn is not answered.
    ann.asks(3, "logging/setLevel", json!({ "level": "info" }));
    ann.cancels(3);
    play.passes(SECOND * 2).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_level_is_refused() {
    let play = Playbook::servers(["a"]);
    let ann = play.client().await;
    ann.asks(1, "logging/setLevel", json!({ "level": "loud" }));
    ann.gets_error(1, -32602).await;
}

#[tokio::test(start_paused = true)]
async fn a_level_that_a_server_refused_is_asked_for_again() {
    let play = Playbook::servers(["a"]);
    let (ann, ben, a) = (play.client().await, play.client().await, play.server("a"));
    for client in [&ann, &ben] {
        client.asks(1, "logging/setLevel", json!({ "level": "error" }));
        a.gets("logging/setLevel", Value::Null).await.fails(-32603, "not now");
        client.gets_result(1, json!({})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_notification_is_for_the_only_call_or_client() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    a.says("notifications/acme", json!({ "n": 1 }));
    ann.hears("notifications/acme").await;
    let ben = play.client().await;
    a.says("notifications/acme", json!({ "n": 2 }));
    ben.calls(1, "a__x");
    let call = a.gets_call("x").await;
    call.says(&message(None, "notifications/acme", json!({ "n": 3 })));
    ben.gets(json!({ "params": { "n": 3 } })).await;
    ann.gets_nothing_else().await;
    ben.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_paused_is_paused_for_its_client() {
    let play = Playbook::of([server("a").at_an_address()]);
    let ann = play.web_client_that(json!({})).await;
    ann.asks(5, "tools/call", json!({ "name": "a__x" }));
    let call = play.server("a").gets_call("x").await;
    let id = mcp_wire::Id::Integer(call.id().as_i64().unwrap());
    call.connection.link().client.upstream().unwrap().paused(Some(&id), Some(SECOND));
    assert_eq!(ann.paused(), [(mcp_wire::Id::Integer(5), Some(SECOND))]);
}
