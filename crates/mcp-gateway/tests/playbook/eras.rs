//! Clients and servers of either era: features of both work for both, and the others are refused in words.

use serde_json::{Value, json};

use crate::kit::{Client, Heard, Playbook, ServerPlan, message, names, server, text};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const LISTEN: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const UPDATED: &str = "notifications/resources/updated";

fn of_era(is_modern: bool) -> ServerPlan {
    let it = server("a")
        .list("prompts/list", json!(["p"]))
        .list("resources/list", json!(["r:1"]))
        .list("resources/templates/list", json!([{ "name": "t", "uriTemplate": "t:{x}" }]));
    if is_modern { it.modern() } else { it }
}

async fn client_of(play: &Playbook, is_modern: bool) -> Client {
    if is_modern { play.modern_client() } else { play.client().await }
}

const PAIRS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

#[tokio::test(start_paused = true)]
async fn lists_calls_and_progress_work_in_every_pair() {
    for (is_modern, server_is_modern) in PAIRS {
        let play = Playbook::of([of_era(server_is_modern)]);
        let (ann, a) = (client_of(&play, is_modern).await, play.server("a"));
        for (method, kind, key) in [
            ("tools/list", "tools", "name"),
            ("prompts/list", "prompts", "name"),
            ("resources/list", "resources", "uri"),
            ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ] {
            let list = ann.ask(method, json!({})).await;
            assert_eq!(names(&list, kind, key).len(), 1, "{list}");
            // Members of the newest revision alone are in its answers, and in no others.
            for member in ["resultType", "ttlMs", "cacheScope"] {
                assert_eq!(list["result"].get(member).is_some(), is_modern, "{member}: {list}");
            }
        }
        ann.asks(1, "tools/call", json!({ "name": "a__x", "_meta": { "progressToken": "mine" } }));
        let call = a.gets_call("x").await;
        // The server is spoken to in its own way.
        let meta = call.message["params"]["_meta"].as_object().unwrap();
        assert_eq!(meta.keys().any(|key| key.starts_with("io.modelcontextprotocol/")), server_is_modern, "{meta:?}");
        call.progresses(1);
        ann.gets(json!({ "method": "notifications/progress", "params": { "progressToken": "mine" } })).await;
        call.answers(if server_is_modern { json!({ "content": [], "resultType": "complete" }) } else { text("") });
        let answer = ann.gets_answer(1).await;
        assert_eq!(answer["result"].get("resultType").is_some(), is_modern, "{answer}");
        ann.asks(2, "prompts/get", json!({ "name": "a__p" }));
        a.gets("prompts/get", json!({ "name": "p" })).await.answers(json!({ "messages": [] }));
        ann.gets_answer(2).await;
        assert_eq!(a.seen("notifications/initialized").is_empty(), server_is_modern);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_have_the_codes_of_the_clients_era() {
    for (is_modern, server_is_modern) in PAIRS {
        let play = Playbook::of([of_era(server_is_modern), server("b")]);
        let (ann, a) = (client_of(&play, is_modern).await, play.server("a"));
        let uri = ann.ask("resources/list", json!({})).await["result"]["resources"][0]["uri"].clone();
        ann.asks(1, "resources/read", json!({ "uri": uri }));
        let missing = if server_is_modern { -32602 } else { -32002 };
        a.gets("resources/read", Value::Null).await.fails(missing, "not found");
        ann.gets_error(1, if is_modern { -32602 } else { -32002 }).await;
        ann.calls(2, "a__x");
        a.gets_call("x").await.fails(4711, "own");
        ann.gets_error(2, 4711).await;
        ann.calls(3, "c__x");
        ann.gets_error(3, -32602).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_discovers_all_servers_at_once() {
    let play = Playbook::of([of_era(true), server("b")]);
    let ann = play.modern_client();
    let answer = ann.ask("server/discover", json!({})).await;
    let result = &answer["result"];
    assert_eq!((&result["resultType"], &result["supportedVersions"]), (&json!("complete"), &json!(["2026-07-28"])));
    assert!(result["capabilities"]["tools"].is_object() && result["ttlMs"].is_u64(), "{answer}");
    assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["a__x", "b__x"]);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        ann.asks(1, method, json!({}));
        ann.gets_error(1, -32601).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_request_has_to_say_who_sends_it() {
    let play = Playbook::servers(["a"]);
    let ann = play.newcomer();
    let (version, can) = ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities");
    for (meta, code) in [
        (json!({ version: "2026-07-28" }), -32602),
        (json!({ version: "2026-07-28", can: 1 }), -32602),
        (json!({ version: "2099-01-01", can: {} }), -32022),
    ] {
        ann.asks(1, "tools/list", json!({ "_meta": meta }));
        let refused = ann.gets_error(1, code).await;
        if code == -32022 {
            assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
        }
    }
}

fn acknowledges(asked: &Heard) {
    let params =
        json!({ "_meta": { SUBSCRIPTION: asked.id() }, "notifications": asked.message["params"]["notifications"] });
    asked.says(&message(None, ACKNOWLEDGED, params));
}

#[tokio::test(start_paused = true)]
async fn a_listener_hears_of_servers_of_either_era() {
    for server_is_modern in [false, true] {
        let play = Playbook::of([of_era(server_is_modern), server("b")]);
        let (ann, a) = (play.modern_client(), play.server("a"));
        let uri = ann.ask("resources/list", json!({})).await["result"]["resources"][0]["uri"].clone();
        play.settles().await;
        let wanted = json!({ "promptsListChanged": true, "resourceSubscriptions": [uri] });
        ann.asks("l", LISTEN, json!({ "notifications": wanted }));
        let mut meta = json!({});
        if server_is_modern {
            // It was asked for lists when it came up, and that is replaced once it has said that it heard of it.
            acknowledges(&a.gets(LISTEN, Value::Null).await);
            let asked = a.gets(LISTEN, json!({ "notifications": { "resourceSubscriptions": ["r:1"] } })).await;
            meta[SUBSCRIPTION] = asked.id().clone();
            acknowledges(&asked);
        } else {
            a.gets("resources/subscribe", json!({ "uri": "r:1" })).await.answers(json!({}));
        }
        let acknowledged = ann.hears(ACKNOWLEDGED).await;
        assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], "l");
        assert_eq!(acknowledged["params"]["notifications"], wanted);
        a.says("notifications/tools/list_changed", json!({ "_meta": meta }));
        a.says("notifications/prompts/list_changed", json!({ "_meta": meta }));
        a.says(UPDATED, json!({ "uri": "r:1", "_meta": meta }));
        let updated = ann.hears(UPDATED).await;
        assert_eq!(updated["params"], json!({ "_meta": { SUBSCRIPTION: "l" }, "uri": uri }));
        let prompts = ann.hears("notifications/prompts/list_changed").await;
        assert_eq!(prompts["params"]["_meta"][SUBSCRIPTION], "l");
        ann.cancels("l");
        a.says(UPDATED, json!({ "uri": "r:1", "_meta": meta }));
        ann.gets_nothing_else().await;
    }
}

/// A modern client that listens for a resource of an older server.
async fn of_a_listener() -> (Playbook, Client, Value) {
    let play = Playbook::of([of_era(false)]);
    let ann = play.modern_client();
    let uri = ann.ask("resources/list", json!({})).await["result"]["resources"][0]["uri"].clone();
    let wanted = json!({ "resourceSubscriptions": [uri] });
    ann.asks("l", LISTEN, json!({ "notifications": wanted }));
    (play, ann, wanted)
}

#[tokio::test(start_paused = true)]
async fn a_listener_is_told_once_the_servers_know_of_it() {
    let (play, ann, wanted) = of_a_listener().await;
    let a = play.server("a");
    let asked = a.gets("resources/subscribe", Value::Null).await;
    a.says(UPDATED, json!({ "uri": "r:1" }));
    a.says(UPDATED, json!({ "uri": "r:1" }));
    ann.gets_nothing_else().await;
    asked.answers(json!({}));
    // In this order, and a change that is told twice meanwhile is told once.
    let all = ann.rest().await;
    assert_eq!((all.len(), &all[0]["method"], &all[1]["method"]), (2, &json!(ACKNOWLEDGED), &json!(UPDATED)));
    assert_eq!(all[0]["params"], json!({ "_meta": { SUBSCRIPTION: "l" }, "notifications": wanted }));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_comes_again_under_one_id_is_told_of_that() {
    let (play, ann, mut wanted) = of_a_listener().await;
    let first = play.server("a").gets("resources/subscribe", Value::Null).await;
    ann.cancels("l");
    wanted["promptsListChanged"] = true.into();
    ann.asks("l", LISTEN, json!({ "notifications": wanted }));
    first.answers(json!({}));
    play.server("a").gets("resources/subscribe", Value::Null).await.answers(json!({}));
    assert_eq!(ann.hears(ACKNOWLEDGED).await["params"]["notifications"], wanted);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_leaves_has_listened_to_the_end() {
    let (play, ann, wanted) = of_a_listener().await;
    play.server("a").gets("resources/subscribe", Value::Null).await;
    // It closes its input before the server has answered, and is told first that it is listened for.
    ann.link.server().unwrap().input_ended();
    let all = ann.rest().await;
    assert_eq!(all[0]["params"]["notifications"], wanted, "{all:?}");
    assert_eq!((&all[1]["id"], &all[1]["result"]["_meta"][SUBSCRIPTION]), (&json!("l"), &json!("l")));
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_ended_its_listening_is_asked_again() {
    let play = Playbook::of([of_era(true)]);
    let (ann, a) = (play.modern_client(), play.server("a"));
    ann.asks("l", LISTEN, json!({ "notifications": { "toolsListChanged": true } }));
    ann.hears(ACKNOWLEDGED).await;
    let asked = a.gets(LISTEN, Value::Null).await;
    asked.answers(json!({ "resultType": "complete" }));
    a.gets(LISTEN, Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn logs_are_for_modern_clients_that_ask_for_them_with_a_call() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.modern_client(), play.server("a"));
    for (meta, expected) in [(json!({}), 1), (json!({ "io.modelcontextprotocol/logLevel": "info" }), 2)] {
        ann.asks(1, "tools/call", json!({ "name": "a__x", "_meta": meta }));
        let call = a.gets_call("x").await;
        call.says(&message(None, "notifications/message", json!({ "level": "debug", "data": "" })));
        call.says(&message(None, "notifications/message", json!({ "level": "error", "data": "" })));
        call.answers(text(""));
        assert_eq!(ann.rest().await.len(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn questions_do_not_cross_to_the_newest_revision() {
    // A question of an older server to a modern client.
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.modern_client_that(json!({ "roots": {} })), play.server("a"));
    ann.calls(1, "a__x");
    a.gets_call("x").await.asks("q", "roots/list", Value::Null);
    a.hears(json!({ "id": "q", "error": {} })).await;
    ann.gets_nothing_else().await;
    // A modern server that needs input, and an older client.
    let play = Playbook::of([server("a").modern()]);
    let ben = play.client().await;
    ben.calls(1, "a__x");
    let requests = json!({ "q": { "method": "roots/list" } });
    play.server("a")
        .gets_call("x")
        .await
        .answers(json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" }));
    let refused = ben.gets_answer(1).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("revision"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn input_that_a_modern_server_needs_passes_between_modern_sides() {
    let play = Playbook::of([server("a").modern()]);
    let (ann, a) = (play.modern_client(), play.server("a"));
    let asks = json!({ "resultType": "input_required", "inputRequests": { "q": { "method": "roots/list" } }, "requestState": "s" });
    ann.calls(1, "a__x");
    a.gets_call("x").await.answers(asks.clone());
    ann.gets_result(1, asks).await;
    let given = json!({ "name": "a__x", "inputResponses": { "q": { "roots": [] } }, "requestState": "s" });
    ann.asks(2, "tools/call", given);
    a.gets("tools/call", json!({ "inputResponses": { "q": { "roots": [] } }, "requestState": "s" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_to_the_newest_revision_is_asked_in_the_older_way() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.modern_client(), play.server("a"));
    a.answers_by_hand(&["server/discover"]);
    ann.calls(1, "a__x");
    a.gets("server/discover", Value::Null).await;
    a.gets_call("x").await.answers(text("older"));
    ann.gets_answer(1).await;
    assert_eq!(a.seen("initialize").len(), 1);
}
