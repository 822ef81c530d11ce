//! Lists of all servers as one: kept while nothing changes, told anew no oftener than need be, and read to the
//! end but not for ever.

use serde_json::{Value, json};

use crate::gateway_kit::{StdioClient, code_of, fake, names_in};
use crate::kit::Sandbox;

const CHANGED: &str = "notifications/tools/list_changed";

fn changes(times: usize) -> Value {
    let changed = json!({ "jsonrpc": "2.0", "method": CHANGED });
    json!([{ "repeat": { "times": times, "steps": [{ "say": changed }] } }, { "text": "done" }])
}

/// A client that has read the list, and heard whatever is said when servers come up.
fn settled(sandbox: &Sandbox, top: Value) -> StdioClient {
    let mut client = StdioClient::open(sandbox, &[fake("a"), fake("b")], top);
    client.ask("tools/list", json!({}));
    client.take_kept();
    client
}

#[test]
fn a_list_is_kept_while_nothing_changes() {
    let sandbox = Sandbox::new();
    let mut client = settled(&sandbox, json!({}));
    for _ in 0..10 {
        assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name").len(), 4);
    }
    assert_eq!((sandbox.seen("a", "tools/list").len(), sandbox.seen("b", "tools/list").len()), (1, 1));
    client.steps("a__do", changes(1));
    client.ask("tools/list", json!({}));
    assert_eq!((sandbox.seen("a", "tools/list").len(), sandbox.seen("b", "tools/list").len()), (2, 1));
    client.end();
}

#[test]
fn a_server_that_tells_no_changes_is_asked_each_time() {
    let sandbox = Sandbox::new();
    let fakes = [fake("a").script("capabilities", json!({ "tools": {} }))];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    client.ask("tools/list", json!({}));
    client.ask("tools/list", json!({}));
    client.end();
    assert_eq!(sandbox.seen("a", "tools/list").len(), 2);
}

#[test]
fn a_modern_server_says_for_how_long_its_list_is_right() {
    for (ttl, asked) in [(json!(3_600_000), 1), (json!(0), 3)] {
        let sandbox = Sandbox::new();
        let fakes = [fake("a").modern().script("ttl_ms", ttl)];
        let mut client = StdioClient::modern(sandbox.serve(&fakes, json!({})));
        for _ in 0..3 {
            assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["a__x", "a__do"]);
        }
        client.end();
        assert_eq!(sandbox.seen("a", "tools/list").len(), asked);
    }
}

#[test]
fn a_burst_of_changes_is_told_twice_at_most() {
    const LATER: &str = "notifications/prompts/list_changed";
    for times in [200, 3_000] {
        let sandbox = Sandbox::new();
        let mut client = settled(&sandbox, json!({}));
        let before = sandbox.seen("a", "tools/list").len();
        client.steps("a__do", changes(times));
        // Changes of another list are told a while apart, by which time those of this one have been.
        for _ in 0..2 {
            client.steps("a__do", json!([{ "say": { "jsonrpc": "2.0", "method": LATER } }, { "text": "done" }]));
            client.heard(LATER);
        }
        let told = client.take_kept().iter().filter(|message| message["method"] == CHANGED).count();
        assert!((1..=2).contains(&told), "{told} for {times} changes");
        // A client that asks whenever it is told.
        for _ in 0..told {
            client.ask("tools/list", json!({}));
        }
        client.end();
        let asked = sandbox.seen("a", "tools/list").len() - before;
        assert!((1..=2).contains(&asked), "{asked} for {times} changes");
    }
}

#[test]
fn five_thousand_tools_are_read_page_by_page() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..5_000).map(|number| format!("tool-{number:04}")).collect();
    let fakes = [fake("a").list("tools", json!(names)).script("page_size", 200), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let mut all: Vec<String> = Vec::new();
    let mut cursor: Option<Value> = None;
    let mut pages = 0;
    loop {
        let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let page = client.ask("tools/list", params);
        all.extend(names_in(&page, "tools", "name"));
        pages += 1;
        match page["result"].get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    let expected: Vec<String> =
        names.iter().map(|name| format!("a__{name}")).chain(["b__x".into(), "b__do".into()]).collect();
    assert_eq!((all, pages), (expected, 6));
    assert_eq!(sandbox.seen("a", "tools/list").len(), 25);
    assert_eq!(client.says("a__tool-4999", "1"), "a:tool-4999:1");
    client.end();
}

#[test]
fn a_cursor_that_was_never_given_out_is_refused() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({ "page_size": 1 }));
    let good = client.ask("tools/list", json!({}))["result"]["nextCursor"].clone();
    let of_prompts = client.ask("prompts/list", json!({ "cursor": good }));
    assert_eq!(code_of(&of_prompts), -32602);
    for bad in
        [json!("x"), json!(""), json!(1), json!("eyJvZmZzZXQiOjF9"), json!(good.as_str().unwrap().to_uppercase())]
    {
        let refused = client.ask("tools/list", json!({ "cursor": bad }));
        assert_eq!(code_of(&refused), -32602, "{refused}");
    }
    assert_eq!(names_in(&client.ask("tools/list", json!({ "cursor": good })), "tools", "name"), ["a__do"]);
    client.end();
}

#[test]
fn pages_that_never_end_are_read_up_to_a_point() {
    for (paging, most) in [("for ever", 50), ("in a circle", 3)] {
        let sandbox = Sandbox::new();
        let fakes = [fake("a").script("paging", paging), fake("b")];
        let mut client = StdioClient::open(&sandbox, &fakes, json!({ "page_size": 1000 }));
        let names = names_in(&client.ask("tools/list", json!({})), "tools", "name");
        assert!(names.contains(&"a__x".to_owned()) && names.contains(&"b__x".to_owned()), "{names:?}");
        assert_eq!(client.says("a__x", "1"), "a:x:1");
        client.end();
        let asked = sandbox.seen("a", "tools/list").len();
        assert!(asked <= most, "{asked} pages {paging}");
    }
}

#[test]
fn only_the_tools_that_are_to_be_given_out_are() {
    let sandbox = Sandbox::new();
    let fakes = [
        fake("a").tools(&["read_x", "read_y", "write_x"]).set("enabled_tools", json!(["read_*"])),
        fake("b").tools(&["x", "y"]).set("disabled_tools", json!(["y"])),
        fake("c").set("enabled", false),
    ];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let names = names_in(&client.ask("tools/list", json!({})), "tools", "name");
    assert_eq!(names, ["a__read_x", "a__read_y", "b__x"]);
    for hidden in ["a__write_x", "b__y", "c__x"] {
        let refused = client.call(hidden, json!({}));
        assert!(refused["error"].is_object(), "{hidden}: {refused}");
    }
    client.end();
    assert_eq!(sandbox.seen("a", "tools/call").len() + sandbox.seen("b", "tools/call").len(), 0);
    assert!(sandbox.starts("c").is_empty());
}

#[test]
fn many_who_ask_at_once_have_a_server_asked_once() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a")], json!({}));
    let ids: Vec<Value> = (0..20).map(|_| client.request("tools/list", json!({}))).collect();
    for id in ids {
        assert_eq!(names_in(&client.answer(&id), "tools", "name").len(), 2);
    }
    client.end();
    assert_eq!(sandbox.seen("a", "tools/list").len(), 1);
}

#[test]
fn a_list_that_changed_while_it_was_read_is_read_again_for_the_next() {
    let sandbox = Sandbox::new();
    // Its list is answered when the test says so.
    let fakes = [fake("a").script("on", json!({ "tools/list": [] }))];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let first = client.request("tools/list", json!({}));
    let asked = sandbox.until_seen("a", "tools/list", 1);
    client.steps("a__do", changes(1));
    let next = client.request("tools/list", json!({}));
    // By the answer to this, that one waits for what is being read.
    client.ask("ping", json!({}));
    let listed = |asked: &Value, name: &str| {
        let tools = json!([{ "name": name, "inputSchema": { "type": "object" } }]);
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "tools": tools } });
        json!([{ "say": answer }, { "text": "done" }])
    };
    client.steps("a__do", listed(&asked[0], "old"));
    assert_eq!(names_in(&client.answer(&first), "tools", "name"), ["a__old"]);
    let asked = sandbox.until_seen("a", "tools/list", 2);
    client.steps("a__do", listed(&asked[1], "new"));
    assert_eq!(names_in(&client.answer(&next), "tools", "name"), ["a__new"]);
    assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["a__new"]);
    client.end();
    assert_eq!(sandbox.seen("a", "tools/list").len(), 2);
}

#[test]
fn an_address_without_a_prefix_is_read_where_its_template_is() {
    let sandbox = Sandbox::new();
    let plain = |name: &str| fake(name).set("prefix", false);
    let templates = json!(["demo://text/{id}"]);
    let fakes = [plain("a"), plain("b").list("resourceTemplates", templates)];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let read = client.ask("resources/read", json!({ "uri": "demo://text/3" }));
    assert_eq!(read["result"]["contents"][0]["text"], "b:demo://text/3", "{read}");
    client.end();
    assert!(sandbox.seen("a", "resources/read").is_empty());
}
