//! The lists of all servers as one.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Playbook, names, server};

const CHANGED: &str = "notifications/tools/list_changed";
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_list_is_read_again_once_its_server_says_that_it_changed() {
    let play = Playbook::servers(["a", "b"]);
    let (ann, a) = (play.client().await, play.server("a"));
    for _ in 0..3 {
        assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["a__x", "b__x"]);
    }
    assert_eq!((a.seen("tools/list").len(), play.server("b").seen("tools/list").len()), (1, 1));
    a.lists("tools/list", json!(["y"]));
    a.says(CHANGED, Value::Null);
    ann.hears(CHANGED).await;
    assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["a__y", "b__x"]);
    assert_eq!((a.seen("tools/list").len(), play.server("b").seen("tools/list").len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_tells_no_changes_is_asked_each_time() {
    let play = Playbook::of([server("a").capabilities(json!({ "tools": {} }))]);
    let ann = play.client().await;
    ann.ask("tools/list", json!({})).await;
    ann.ask("tools/list", json!({})).await;
    assert_eq!(play.server("a").seen("tools/list").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_says_for_how_long_its_list_is_right() {
    for (ttl, asked) in [(3_600_000, 1), (0, 3)] {
        let play = Playbook::of([server("a").modern().hints(json!({ "resultType": "complete", "ttlMs": ttl }))]);
        let ann = play.modern_client();
        for _ in 0..3 {
            assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["a__x"]);
        }
        assert_eq!(play.server("a").seen("tools/list").len(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_is_told_twice_at_most() {
    let play = Playbook::servers(["a"]);
    let ann = play.client().await;
    play.passes(SECOND * 2).await;
    ann.rest().await;
    (0..200).for_each(|_| play.server("a").says(CHANGED, Value::Null));
    assert_eq!(ann.rest().await.len(), 1);
    play.passes(SECOND * 2).await;
    assert_eq!(ann.rest().await.len(), 1);
    play.passes(SECOND * 2).await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn thousands_of_tools_are_read_page_by_page() {
    let tools: Vec<String> = (0..2_500).map(|number| format!("tool-{number:04}")).collect();
    let play = Playbook::of([server("a").list("tools/list", json!(tools)).pages_of(200), server("b")]);
    let ann = play.client().await;
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = ann.ask("tools/list", params).await;
        all.extend(names(&page, "tools", "name"));
        match page["result"].get("nextCursor") {
            Some(next) => params = json!({ "cursor": next }),
            None => break,
        }
    }
    let expected: Vec<String> = tools.iter().map(|name| format!("a__{name}")).chain(["b__x".into()]).collect();
    assert_eq!(all, expected);
    assert_eq!(play.server("a").seen("tools/list").len(), 13);
    ann.calls(1, "a__tool-2499");
    play.server("a").gets_call("tool-2499").await;
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_was_never_given_out_is_refused() {
    let play = Playbook::with(["a", "b"].map(server), |it| it.page_size = 1);
    let ann = play.client().await;
    let good = ann.ask("tools/list", json!({})).await["result"]["nextCursor"].clone();
    ann.asks(1, "prompts/list", json!({ "cursor": good }));
    ann.gets_error(1, -32602).await;
    for bad in
        [json!("x"), json!(""), json!(1), json!("eyJvZmZzZXQiOjF9"), json!(good.as_str().unwrap().to_uppercase())]
    {
        ann.asks(2, "tools/list", json!({ "cursor": bad }));
        ann.gets_error(2, -32602).await;
    }
    let next = ann.ask("tools/list", json!({ "cursor": good })).await;
    assert_eq!(names(&next, "tools", "name"), ["b__x"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_may_ask_for_shorter_pages() {
    let play = Playbook::with([server("a").tools(&["x", "y"]), server("b").tools(&["x", "y"])], |it| it.page_size = 3);
    let ann = play.client().await;
    let first = ann.ask("tools/list", json!({ "limit": 1 })).await;
    assert_eq!(names(&first, "tools", "name"), ["a__x"]);
    let next = ann.ask("tools/list", json!({ "limit": 2, "cursor": first["result"]["nextCursor"] })).await;
    assert_eq!(names(&next, "tools", "name"), ["a__y", "b__x"]);
    for much in [json!(1_000), Value::Null] {
        assert_eq!(names(&ann.ask("tools/list", json!({ "limit": much })).await, "tools", "name").len(), 3);
    }
    for wrong in [json!(0), json!(-1), json!(1.5), json!("2")] {
        ann.asks(1, "tools/list", json!({ "limit": wrong }));
        ann.gets_error(1, -32602).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pages_that_never_end_are_read_up_to_a_bound() {
    for is_circle in [false, true] {
        let play = Playbook::with(["a", "b"].map(server), |it| it.list_pages = 5);
        let (ann, a) = (play.client().await, play.server("a"));
        a.answers_by_hand(&["tools/list"]);
        ann.asks(1, "tools/list", json!({}));
        for page in 0..if is_circle { 2 } else { 5 } {
            let cursor = if is_circle { "same".to_owned() } else { page.to_string() };
            let tool = json!({ "name": format!("t{page}"), "inputSchema": { "type": "object" } });
            a.gets("tools/list", Value::Null).await.answers(json!({ "tools": [tool], "nextCursor": cursor }));
        }
        let listed = ann.gets_answer(1).await;
        assert!(names(&listed, "tools", "name").contains(&"b__x".into()), "{listed}");
        let cut = &listed["result"]["_meta"]["io.github.mcp-proxy/cut"];
        assert_eq!((&cut[0]["server"], cut.as_array().map(Vec::len)), (&json!("a"), Some(1)), "{listed}");
        a.gets_nothing_else().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_a_bound_cut_says_so() {
    let tools: Vec<String> = (0..30).map(|number| format!("t{number:02}")).collect();
    for (page, pages, items, kept, named) in [
        (10, 100, 15, 15, Some("`list_items`")),
        (100, 100, 29, 29, Some("`list_items`")),
        (10, 2, 100, 20, Some("`list_pages`")),
        // A list that ends at the bound is whole.
        (10, 100, 30, 30, None),
        (10, 3, 100, 30, None),
    ] {
        let plans = [server("a").list("tools/list", json!(tools)).pages_of(page), server("b")];
        let play = Playbook::with(plans, |it| (it.list_pages, it.list_items) = (pages, items));
        let ann = play.client().await;
        let listed = ann.ask("tools/list", json!({})).await;
        assert_eq!(names(&listed, "tools", "name").len(), kept + 1);
        let cut = &listed["result"]["_meta"]["io.github.mcp-proxy/cut"];
        let reason = cut[0]["reason"].as_str().unwrap_or_default();
        assert!(named.is_none_or(|named| reason.contains(named)), "{reason}");
        assert_eq!(
            (cut.is_null(), play.has_told("tools/list of server \"a\" is cut: ")),
            (named.is_none(), named.is_some())
        );
        // It is said again with the list that is kept, and on the board.
        assert_eq!(ann.ask("tools/list", json!({})).await["result"], listed["result"]);
        let why = play.shows("a").await.why.unwrap_or_default();
        assert!(named.is_none_or(|named| why.contains(named)), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_for_a_list_that_is_being_read_share_it() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    a.answers_by_hand(&["tools/list"]);
    (0..20).for_each(|id| ann.asks(id, "tools/list", json!({})));
    a.gets("tools/list", Value::Null).await.answers(json!({ "tools": [] }));
    for id in 0..20 {
        ann.gets_result(id, json!({ "tools": [] })).await;
    }
    a.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changed_while_it_was_read_is_read_again_for_the_next() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    a.answers_by_hand(&["tools/list"]);
    let listed = |name: &str| json!({ "tools": [{ "name": name, "inputSchema": { "type": "object" } }] });
    ann.asks(1, "tools/list", json!({}));
    let first = a.gets("tools/list", Value::Null).await;
    a.says(CHANGED, Value::Null);
    ann.asks(2, "tools/list", json!({}));
    first.answers(listed("old"));
    assert_eq!(names(&ann.gets_answer(1).await, "tools", "name"), ["a__old"]);
    a.gets("tools/list", Value::Null).await.answers(listed("new"));
    assert_eq!(names(&ann.gets_answer(2).await, "tools", "name"), ["a__new"]);
    assert_eq!(names(&ann.ask("tools/list", json!({})).await, "tools", "name"), ["a__new"]);
    a.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_leaves_out_servers_that_do_not_answer_in_time_or_fail() {
    let play = Playbook::servers(["a", "b", "c"]);
    let ann = play.client().await;
    play.server("a").answers_by_hand(&["tools/list"]);
    play.server("b").answers_by_hand(&["tools/list"]);
    ann.asks(1, "tools/list", json!({}));
    let late = play.server("a").gets("tools/list", Value::Null).await;
    play.server("b").gets("tools/list", Value::Null).await.fails(-32000, "cannot read /home/of/server");
    let listed = ann.gets_answer(1).await;
    assert_eq!(names(&listed, "tools", "name"), ["c__x"]);
    let absent = &listed["result"]["_meta"]["io.github.mcp-proxy/absent"];
    assert_eq!((&absent[0]["server"], &absent[1]["server"]), (&json!("a"), &json!("b")), "{listed}");
    assert_eq!(absent[1]["reason"], "it answered with an error", "{listed}");
    assert!(!listed.to_string().contains("/home"), "{listed}");
    // The next client finds the list that came too late for this one.
    late.answers(json!({ "tools": [{ "name": "late", "inputSchema": { "type": "object" } }] }));
    ann.asks(2, "tools/list", json!({}));
    play.server("b").gets("tools/list", Value::Null).await.answers(json!({ "tools": [] }));
    assert_eq!(names(&ann.gets_answer(2).await, "tools", "name"), ["a__late", "c__x"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cancelled_is_not_answered() {
    let play = Playbook::servers(["a"]);
    let (ann, a) = (play.client().await, play.server("a"));
    a.answers_by_hand(&["tools/list"]);
    ann.asks(1, "tools/list", json!({}));
    let asked = a.gets("tools/list", Value::Null).await;
    ann.cancels(1);
    asked.answers(json!({ "tools": [] }));
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_item_is_left_out_and_named() {
    let schema = json!({ "type": "object" });
    let odd = json!({ "name": "odd", "inputSchema": schema, "title": null, "description": 7, "annotations": { "title": null } });
    let a = server("a")
        .list("tools/list", json!(["x", { "name": "bare" }, odd]))
        .list("prompts/list", json!([{ "name": "p", "arguments": [{}] }]));
    let play = Playbook::of([a, server("b")]);
    let ann = play.client().await;
    let listed = ann.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed, "tools", "name"), ["a__x", "a__odd", "b__x"]);
    let mut odd = listed["result"]["tools"][1].clone();
    odd.as_object_mut().unwrap().remove("_meta");
    assert_eq!(odd, json!({ "name": "a__odd", "inputSchema": schema, "annotations": {} }));
    let cut = json!([{ "server": "a", "reason": "1 left out, which no client could read" }]);
    assert_eq!(listed["result"]["_meta"]["io.github.mcp-proxy/cut"], cut);
    assert_eq!(ann.ask("prompts/list", json!({})).await["result"]["prompts"], json!([]));
    let said = "`bare` left out, `inputSchema` is missing; `odd` without its `description`";
    let why = play.shows("a").await.why.unwrap();
    assert!(why.contains(said) && why.contains("`p` left out, `arguments`: `name` is missing"), "{why}");
    assert!(play.has_told(&format!("tools/list of server \"a\" has items that are not valid: {said}")));
}

#[tokio::test(start_paused = true)]
async fn output_that_is_no_object_is_for_clients_that_know_it() {
    let tool = json!({ "name": "x", "inputSchema": { "type": "object" }, "outputSchema": { "type": "array" } });
    let result = json!({ "content": [], "structuredContent": [1], "resultType": "complete" });
    for is_modern in [false, true] {
        let play = Playbook::of([server("a").modern().list("tools/list", json!([tool]))]);
        let ann = if is_modern { play.modern_client() } else { play.client().await };
        let listed = ann.ask("tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"][0].get("outputSchema"), is_modern.then_some(&tool["outputSchema"]));
        ann.calls(1, "a__x");
        play.server("a").gets_call("x").await.answers(result.clone());
        let answer = ann.gets_answer(1).await;
        assert_eq!(answer["result"].get("structuredContent"), is_modern.then_some(&json!([1])), "{answer}");
    }
}
