//! Servers that fail, and how they come back.

use std::time::Duration;

use mcp_gateway::board::{ServerOrder, ServerState};
use mcp_gateway::settings::{Instance, Speaks, Start};
use mcp_link::Backend;
use mcp_wire::reply::Refusal;
use serde_json::{Value, json};

use crate::kit::{Playbook, names, server, text};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_in_a_call_is_started_again() {
    let play = Playbook::servers(["a", "b"]);
    let (ann, a, b) = (play.client().await, play.server("a"), play.server("b"));
    ann.calls(1, "a__x");
    ann.calls(2, "b__x");
    a.gets_call("x").await.connection.dies("exit status: 3");
    let died = ann.gets_error(1, 5032).await;
    assert_eq!(died["error"]["data"]["server"], "a");
    assert!(died["error"]["data"]["retry_after_ms"].is_u64(), "{died}");
    assert!(died["error"]["message"].as_str().unwrap().contains("exit status: 3"), "{died}");
    ann.calls(3, "a__x");
    a.gets_call("x").await.answers(text("again"));
    ann.gets_result(3, text("again")).await;
    b.gets_call("x").await.answers(text("b"));
    ann.gets_result(2, text("b")).await;
    assert_eq!((a.starts(), b.starts()), (2, 1));
    let view = play.shows("a").await;
    assert_eq!((view.restarts, view.last_words.as_deref()), (1, Some("last words")));
}

#[tokio::test(start_paused = true)]
async fn its_clients_are_told_of_its_lists_although_none_called_it() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.ask("tools/list", json!({})).await;
    play.passes(SECOND * 2).await;
    ann.rest().await;
    a.lists("tools/list", json!(["y"]));
    a.connection().dies("signal 9");
    ann.hears("notifications/tools/list_changed").await;
    assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["a__y"]);
    assert_eq!(a.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn pauses_between_starts_grow_and_the_server_is_never_given_up() {
    let play = Playbook::servers(["a", "b"]);
    play.server("a").fails_to_start.set(true);
    let ann = play.client().await;
    play.settles().await;
    assert!(play.gateway.unready().iter().any(|it| it.id == "a" && it.state != "down"));
    play.passes(SECOND * 8).await;
    let view = play.shows("a").await;
    assert_eq!(view.state, ServerState::Down);
    assert!(view.restarts < 9 && view.why.unwrap().contains("no such program"));
    assert!(play.gateway.unready().iter().any(|it| it.id == "a" && it.state == "down"));
    // A call is told when to come back.
    ann.calls(1, "a__x");
    let refused = ann.gets_error(1, 5032).await;
    assert!(refused["error"]["data"]["retry_after_ms"].as_u64().unwrap() > 1_000, "{refused}");
    let listed = ann.ask("tools/list", json!({})).await;
    let absent = json!([{ "server": "a", "reason": "it is not available" }]);
    assert_eq!(listed["result"]["_meta"]["io.github.mcp-proxy/absent"], absent);
    play.server("a").fails_to_start.set(false);
    play.passes(SECOND * 40).await;
    assert_eq!(play.shows("a").await.state, ServerState::Ready);
    ann.hears("notifications/tools/list_changed").await;
    assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["a__x", "b__x"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_may_die_at_any_point_of_its_opening() {
    for method in ["initialize", "tools/list"] {
        let play = Playbook::servers(["a", "b"]);
        let a = play.server("a");
        a.answers_by_hand(&["initialize", "tools/list"]);
        let ann = play.newcomer();
        let dies = async {
            let opening = a.gets("initialize", Value::Null).await;
            if method == "tools/list" {
                let info = json!({ "name": "a", "version": "1" });
                let can = json!({ "tools": {} });
                opening.answers(json!({ "protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info }));
                ann.asks(1, "tools/list", json!({}));
                a.gets("tools/list", Value::Null).await;
            }
            a.answers_by_hand(&[]);
            a.connection().dies("exit status: 1");
        };
        tokio::join!(ann.shakes_hands("2025-11-25", json!({})), dies);
        ann.calls(2, "b__x");
        play.server("b").gets_call("x").await;
        if method == "tools/list" {
            assert!(names(&ann.gets_answer(1).await, "tools", "name").contains(&"b__x".into()));
        }
        ann.calls(3, "a__x");
        a.gets_call("x").await;
        assert_eq!(a.starts(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_is_left_out_until_it_comes() {
    let play = Playbook::servers(["slow", "b"]);
    let slow = play.server("slow");
    slow.answers_by_hand(&["initialize"]);
    let ann = play.client().await;
    let tools = ann.ask("tools/list", json!({})).await;
    assert_eq!(names(&tools, "tools", "name"), ["b__x"]);
    assert_eq!(tools["result"]["_meta"]["io.github.mcp-proxy/absent"][0]["server"], "slow");
    // A call waits for it.
    ann.calls(1, "slow__x");
    ann.rest().await;
    let info = json!({ "name": "slow", "version": "1" });
    let can = json!({ "tools": { "listChanged": true } });
    let answer = json!({ "protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info });
    slow.gets("initialize", Value::Null).await.answers(answer);
    ann.hears("notifications/tools/list_changed").await;
    slow.gets_call("x").await.answers(text("at last"));
    ann.gets_result(1, text("at last")).await;
    let tools = ann.ask("tools/list", json!({})).await;
    assert_eq!((names(&tools, "tools", "name").len(), tools["result"].get("_meta")), (2, None));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_introduces_itself_is_given_up() {
    let play = Playbook::of([server("mute").set(|it| it.startup_timeout = SECOND), server("b")]);
    let mute = play.server("mute");
    mute.answers_by_hand(&["initialize"]);
    let ann = play.client().await;
    assert!(mute.connection().is_over());
    play.passes(SECOND).await;
    assert!(play.has_told("it did not introduce itself within 1 s"));
    ann.calls(1, "b__x");
    play.server("b").gets_call("x").await;
}

#[tokio::test(start_paused = true)]
async fn a_disabled_server_is_not_started_before_it_is_enabled() {
    let play = Playbook::servers(["a", "b"]);
    let (ann, a) = (play.client().await, play.server("a"));
    play.passes(SECOND * 2).await;
    play.orders("a", ServerOrder::Disable).await;
    assert_eq!(play.shows("a").await.state, ServerState::Disabled);
    assert!(a.connection().is_over());
    ann.calls(1, "a__x");
    ann.gets_error(1, 5032).await;
    assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["b__x"]);
    play.orders("a", ServerOrder::Enable).await;
    ann.calls(2, "a__x");
    a.gets_call("x").await;
    assert_eq!(a.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_that_is_disabled_is_not_tried_again() {
    let play = Playbook::servers(["a"]);
    play.server("a").fails_to_start.set(true);
    let ann = play.client().await;
    play.orders("a", ServerOrder::Disable).await;
    play.server("a").fails_to_start.set(false);
    play.passes(SECOND * 60).await;
    ann.calls(1, "a__x");
    ann.gets_error(1, 5032).await;
    assert_eq!(play.server("a").starts(), 0);
    play.orders("a", ServerOrder::Enable).await;
    ann.calls(2, "a__x");
    play.server("a").gets_call("x").await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_ends_calls_and_clients_go_on() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.calls(1, "a__x");
    a.gets_call("x").await;
    play.orders("a", ServerOrder::Restart).await;
    ann.gets_error(1, 5032).await;
    ann.calls(2, "a__x");
    a.gets_call("x").await.answers(text("again"));
    ann.gets_result(2, text("again")).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_starts_with_its_first_client_or_with_the_gateway() {
    let play = Playbook::of([server("lazy"), server("eager").set(|it| it.start = Start::Eager)]);
    play.gateway.start_early();
    play.settles().await;
    assert_eq!((play.server("lazy").starts(), play.server("eager").starts()), (0, 1));
    assert_eq!(play.shows("lazy").await.state, ServerState::Stopped);
    // It is started again though it has no client.
    play.server("eager").connection().dies("exit status: 0");
    play.passes(SECOND).await;
    assert_eq!(play.server("eager").starts(), 2);
    let _ann = play.client().await;
    assert_eq!(play.server("lazy").starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn clients_share_a_server_or_have_one_of_their_own() {
    let play = Playbook::of([server("own").set(|it| it.instance = Instance::PerClient), server("shared")]);
    let (ann, ben) = (play.client().await, play.client().await);
    assert_eq!((play.server("own").starts(), play.server("shared").starts()), (2, 1));
    ann.calls(1, "own__x");
    let of_ann = play.server("own").gets_call("x").await;
    ben.calls(1, "own__x");
    let of_ben = play.server("own").gets_call("x").await;
    // It goes when its client goes, and that of the other stays; also if it had come back.
    of_ann.connection.dies("signal 9");
    play.passes(SECOND).await;
    assert_eq!(play.server("own").starts(), 3);
    ann.leaves();
    play.settles().await;
    assert!(play.server("own").connection().is_over());
    assert!(!of_ben.connection.is_over());
    assert_eq!(play.shows("own").await.instances, 1);
}

#[tokio::test(start_paused = true)]
async fn clients_that_declare_differently_have_connections_of_their_own() {
    let play = Playbook::servers(["a"]);
    for number in 0..40 {
        play.client_that(json!({ "experimental": { "n": { "n": number } } })).await;
    }
    // There is a bound, up to which those make room that nobody uses.
    assert_eq!(play.server("a").starts(), 40);
    assert_eq!(play.shows("a").await.instances, 32);
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_stopped_until_it_is_needed() {
    let play = Playbook::of([server("a").set(|it| it.idle_stop = Some(SECOND * 5))]);
    let (ann, a) = (play.client().await, play.server("a"));
    ann.calls(1, "a__x");
    let call = a.gets_call("x").await;
    play.passes(SECOND * 20).await;
    assert!(!call.connection.is_over(), "a server in use is not idle");
    call.answers(text(""));
    play.passes(SECOND * 6).await;
    assert!(call.connection.is_over());
    assert_eq!(play.shows("a").await.state, ServerState::Stopped);
    ann.calls(2, "a__x");
    a.gets_call("x").await;
    assert_eq!(a.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_no_longer_answers_pings_is_started_again() {
    let play = Playbook::with([server("a"), server("b"), server("c").modern()], |it| {
        it.healthcheck_interval = Some(SECOND * 5);
        it.healthcheck_timeout = SECOND;
    });
    let (_ann, a) = (play.client().await, play.server("a"));
    a.answers_by_hand(&["ping"]);
    play.passes(SECOND * 11).await;
    assert_eq!(play.shows("a").await.state, ServerState::NotResponding);
    play.passes(SECOND * 30).await;
    assert!(a.starts() >= 2 && play.has_told("it no longer answered"));
    a.answers_by_hand(&[]);
    play.passes(SECOND * 30).await;
    assert_eq!(play.shows("a").await.state, ServerState::Ready);
    assert_eq!(play.server("b").starts(), 1);
    assert!(!play.server("b").seen("ping").is_empty());
    // The newest revision has no ping. The first time is its introduction.
    assert!(play.server("c").seen("server/discover").len() > 2);
    assert!(play.server("c").seen("ping").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_with_a_call_is_shown_and_left_alone() {
    let play = Playbook::with([server("a")], |it| {
        it.healthcheck_interval = Some(SECOND);
        it.healthcheck_timeout = SECOND;
    });
    let (ann, a) = (play.client().await, play.server("a"));
    ann.calls(1, "a__x");
    let call = a.gets_call("x").await;
    a.answers_by_hand(&["ping"]);
    play.passes(SECOND * 30).await;
    assert_eq!((play.shows("a").await.state, a.starts()), (ServerState::NotResponding, 1));
    a.answers_by_hand(&[]);
    call.answers(text("in the end"));
    ann.gets_result(1, text("in the end")).await;
    play.passes(SECOND * 10).await;
    assert_eq!((play.shows("a").await.state, a.starts()), (ServerState::Ready, 1));
}

#[tokio::test(start_paused = true)]
async fn a_hung_server_is_started_again_though_calls_are_always_open() {
    let play = Playbook::with([server("a").set(|it| it.response_timeout = SECOND * 10)], |it| {
        it.healthcheck_interval = Some(SECOND);
        it.healthcheck_timeout = SECOND;
    });
    let (ann, a) = (play.client().await, play.server("a"));
    a.answers_by_hand(&["ping"]);
    for id in 0..10 {
        ann.calls(id, "a__x");
        play.passes(SECOND * 3).await;
    }
    assert!(a.starts() >= 2, "{}", a.starts());
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_calls_fail_on_their_way_is_not_ready() {
    let play = Playbook::of([server("a").at_an_address()]);
    let (ann, a) = (play.client().await, play.server("a"));
    for id in 0..3 {
        ann.calls(id, "a__x");
        a.gets_call("x").await.is_refused(&Refusal::Unreachable { what: "no route".into() });
        assert!(ann.gets_answer(id).await["error"].is_object());
    }
    let view = play.shows("a").await;
    assert_eq!(view.state, ServerState::Failing);
    assert!(view.why.unwrap().contains("no route"));
    ann.calls(4, "a__x");
    a.gets_call("x").await.answers(text("done"));
    ann.gets_answer(4).await;
    assert_eq!(play.shows("a").await.state, ServerState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_a_login_says_so() {
    let play = Playbook::of([server("a").at_an_address().set(|it| it.speaks = Speaks::Legacy)]);
    let a = play.server("a");
    a.answers_by_hand(&["initialize"]);
    let login = Refusal::NeedsLogin { server: None, status: 401 };
    let ann = play.newcomer();
    let refuses = async { a.gets("initialize", Value::Null).await.is_refused(&login) };
    tokio::join!(ann.shakes_hands("2025-11-25", json!({})), refuses);
    ann.calls(1, "a__x");
    let refused = ann.gets_error(1, 5025).await;
    assert_eq!(refused["error"]["data"], json!({ "mcp-proxy/reason": "needs-login", "server": "a" }));
    assert_eq!(play.shows("a").await.state, ServerState::NeedsLogin);
    a.answers_by_hand(&[]);
    play.orders("a", ServerOrder::Restart).await;
    ann.calls(2, "a__x");
    let call = a.gets_call("x").await;
    // A login that lapses shows, too.
    call.is_refused(&login);
    ann.gets_error(2, 5025).await;
    assert_eq!(play.shows("a").await.state, ServerState::NeedsLogin);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_ends_ends_its_servers() {
    let play = Playbook::servers(["a", "b"]);
    let ann = play.client().await;
    ann.calls(1, "a__x");
    play.server("a").gets_call("x").await;
    play.gateway.stop();
    play.ends().await;
    ann.gets_error(1, 5032).await;
    assert!(["a", "b"].iter().all(|name| play.server(name).connection().is_over()));
    ann.calls(2, "a__x");
    ann.gets_error(2, 5032).await;
}
