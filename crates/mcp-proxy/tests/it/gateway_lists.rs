//! Lists of all servers as one: kept while nothing changes, told anew no oftener than need be, and read to the
//! end but not for ever.

use serde_json::{Value, json};

use crate::gateway_kit::{StdioClient, code_of, fake, names_in};
use crate::kit::{Sandbox, until};

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
        let listed = client.ask("tools/list", json!({}));
        let names = names_in(&listed, "tools", "name");
        assert!(names.contains(&"a__x".to_owned()) && names.contains(&"b__x".to_owned()), "{names:?}");
        let cut = &listed["result"]["_meta"]["io.github.mcp-proxy/cut"];
        assert_eq!((cut[0]["server"].as_str(), cut.as_array().map(Vec::len)), (Some("a"), Some(1)), "{cut}");
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

#[test]
fn a_list_that_a_bound_cut_says_so() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..30).map(|number| format!("t{number:02}")).collect();
    let fakes = |paged: u64| [fake("a").list("tools", json!(names)).script("page_size", paged), fake("b")];
    for (paged, bounds, kept, named) in [
        (10, json!({ "list_items": 15 }), 15, "`list_items`"),
        (100, json!({ "list_items": 29 }), 29, "`list_items`"),
        (10, json!({ "list_pages": 2 }), 20, "`list_pages`"),
    ] {
        let mut client = StdioClient::open(&sandbox, &fakes(paged), bounds);
        let listed = client.ask("tools/list", json!({}));
        assert_eq!(names_in(&listed, "tools", "name").len(), kept + 2);
        let cut = listed["result"]["_meta"]["io.github.mcp-proxy/cut"].as_array().unwrap();
        assert_eq!((cut.len(), &cut[0]["server"]), (1, &json!("a")));
        assert!(cut[0]["reason"].as_str().unwrap().contains(named), "{cut:?}");
        // It is said again with what is kept.
        assert_eq!(client.ask("tools/list", json!({}))["result"], listed["result"]);
        // How servers are is looked at a few times a second.
        until("servers list tells of the cut", || sandbox.stdout(["servers", "list", "--json"]).contains(named));
        let said = client.end();
        assert!(said.contains("tools/list of server \"a\" is cut: "), "{said}");
    }
    // One that ends at the bound is whole.
    for bounds in [json!({ "list_items": 30 }), json!({ "list_pages": 3 })] {
        let mut client = StdioClient::open(&sandbox, &fakes(10), bounds);
        let listed = client.ask("tools/list", json!({}));
        assert_eq!(names_in(&listed, "tools", "name").len(), 32);
        assert!(listed["result"].get("_meta").is_none(), "{listed}");
        assert!(!client.end().contains("is cut"));
    }
}

#[test]
fn a_client_may_ask_for_shorter_pages() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({ "page_size": 3 }));
    let mut page = |params: Value| client.ask("tools/list", params);
    let first = page(json!({ "limit": 1 }));
    assert_eq!(names_in(&first, "tools", "name"), ["a__x"]);
    let next = page(json!({ "limit": 2, "cursor": first["result"]["nextCursor"] }));
    assert_eq!(names_in(&next, "tools", "name"), ["a__do", "b__x"]);
    assert_eq!(names_in(&page(json!({ "limit": 1_000 })), "tools", "name").len(), 3, "no more than a page has");
    assert_eq!(names_in(&page(json!({ "limit": null })), "tools", "name").len(), 3);
    for wrong in [json!(0), json!(-1), json!(1.5), json!("2")] {
        assert_eq!(code_of(&page(json!({ "limit": wrong }))), -32602);
    }
    client.end();
}

#[test]
fn addresses_that_two_servers_have_are_left_out_without_prefixes() {
    let sandbox = Sandbox::new();
    let plain = |name: &str, own: &str| {
        fake(name)
            .set("prefix", false)
            .list("tools", json!([format!("{name}-tool")]))
            .list("resources", json!(["memo:both", own]))
            .list("resourceTemplates", json!(["both://{id}", format!("{name}://{{id}}")]))
    };
    let fakes = [plain("a", "memo:a"), plain("b", "memo:b"), fake("c").list("resources", json!(["memo:both"]))];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    // The second time all of them are known.
    for _ in 0..2 {
        let listed = client.ask("resources/list", json!({}));
        let uris = names_in(&listed, "resources", "uri");
        assert_eq!(uris[..2], ["memo:a", "memo:b"], "{uris:?}");
        assert!(uris.len() == 3 && uris[2].starts_with("proxy://"), "{uris:?}");
        let listed = client.ask("resources/templates/list", json!({}));
        assert_eq!(names_in(&listed, "resourceTemplates", "uriTemplate"), ["a://{id}", "b://{id}"]);
    }
    assert!(client.ask("resources/read", json!({ "uri": "memo:both" })).get("error").is_some());
    let said = client.end();
    assert!(said.contains("`memo:both` of a, `memo:both` of b"), "{said}");
}

#[test]
fn tools_of_servers_with_long_ids_have_names_that_fit() {
    let sandbox = Sandbox::new();
    let ids = ["i".repeat(52), format!("{}-j", "i".repeat(62))];
    let fakes = ids.clone().map(|id| fake(&id).tools(&["x", "a_name_that_is_not_short_either"]));
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let names = names_in(&client.ask("tools/list", json!({})), "tools", "name");
    assert_eq!(names.len(), 4);
    for (at, name) in names.iter().enumerate() {
        assert!(name.len() <= 64, "{name}");
        let original = ["x", "a_name_that_is_not_short_either"][at % 2];
        assert_eq!(client.says(name, "1"), format!("{}:{original}:1", ids[at / 2]));
    }
    client.end();
}

#[test]
fn calls_may_spell_their_subject_as_other_gateways_do() {
    let sandbox = Sandbox::new();
    let fakes = [fake("a").list("prompts", json!(["p"])), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({}));
    let called = client.ask("tools/call", json!({ "toolName": "a__x", "arguments": { "text": "1" } }));
    assert_eq!(called["result"]["content"][0]["text"], "a:x:1", "{called}");
    let got = client.ask("prompts/get", json!({ "promptName": "a__p" }));
    assert!(got.get("result").is_some(), "{got}");
    // The protocol's own member counts where both stand, and no other method has the spelling.
    let called = client.ask("tools/call", json!({ "toolName": "a__x", "name": "b__x", "arguments": { "text": "1" } }));
    assert_eq!(called["result"]["content"][0]["text"], "b:x:1", "{called}");
    assert_eq!(code_of(&client.ask("prompts/get", json!({ "toolName": "a__p" }))), -32602);
    assert_eq!(code_of(&client.ask("tools/call", json!({ "toolName": 7 }))), -32602);
    client.end();
    let seen = sandbox.seen("a", "tools/call");
    assert_eq!((&seen[0]["params"]["name"], seen[0]["params"].get("toolName")), (&json!("x"), None));
}

#[test]
fn an_item_that_no_client_could_read_is_left_out_and_named() {
    let sandbox = Sandbox::new();
    let schema = json!({ "type": "object" });
    let tools = json!([
        "x",
        { "name": "bare" },
        { "name": "odd", "inputSchema": schema, "title": null, "description": 7, "annotations": { "title": null } },
    ]);
    let fakes =
        [fake("a").list("tools", tools).list("prompts", json!([{ "name": "p", "arguments": [{}] }])), fake("b")];
    let mut client = StdioClient::open(&sandbox, &fakes, json!({ "proxy_tool": true }));
    let listed = client.ask("tools/list", json!({}));
    assert_eq!(names_in(&listed, "tools", "name"), ["proxy", "a__x", "a__odd", "b__x", "b__do"]);
    let mut odd = listed["result"]["tools"][2].clone();
    odd.as_object_mut().unwrap().remove("_meta");
    assert_eq!(odd, json!({ "name": "a__odd", "inputSchema": schema, "annotations": {} }));
    // A client that must not know of what is left out is not told its name.
    let cut = json!([{ "server": "a", "reason": "1 left out, which no client could read" }]);
    assert_eq!(listed["result"]["_meta"]["io.github.mcp-proxy/cut"], cut);
    assert_eq!(client.ask("prompts/list", json!({}))["result"]["prompts"], json!([]));
    let through = client.call("proxy", json!({ "action": "list", "type": "tool" })).to_string();
    assert!(!through.contains("bare") && through.contains("a__odd"), "{through}");
    let said = "`bare` left out, `inputSchema` is missing; `odd` without its `description`";
    let named = "`p` left out, `arguments`: `name` is missing";
    until("servers list names it", || {
        let told = sandbox.stdout(["servers", "list", "--json"]);
        told.contains(said) && told.contains(named)
    });
    let told = client.end();
    for text in [format!("tools/list of server \"a\" has items that are not valid: {said}"), named.to_owned()] {
        assert!(told.contains(&text), "{text}: {told}");
    }
}

#[test]
fn output_that_is_no_object_is_for_clients_that_know_it() {
    let tool = json!({ "name": "do", "inputSchema": { "type": "object" }, "outputSchema": { "type": "array" } });
    let result = json!({ "content": [], "structuredContent": [1] });
    for is_modern in [false, true] {
        let sandbox = Sandbox::new();
        let proxy = sandbox.serve(&[fake("a").modern().list("tools", json!([tool]))], json!({ "proxy_tool": true }));
        let mut client = match is_modern {
            true => StdioClient::modern(proxy),
            false => StdioClient::open_with(proxy, json!({})).0,
        };
        let expected = is_modern.then_some(&tool["outputSchema"]);
        assert_eq!(client.ask("tools/list", json!({}))["result"]["tools"][1].get("outputSchema"), expected);
        for action in ["list", "info"] {
            let mut arguments = json!({ "action": action, "type": "tool" });
            if action == "info" {
                arguments["path"] = "a__do".into();
            }
            let told = client.call("proxy", arguments)["result"]["content"][0].to_string();
            assert_eq!(told.contains("outputSchema"), is_modern, "{told}");
        }
        let answer = client.steps("a__do", json!([{ "answer": result }]));
        assert_eq!(answer["result"].get("structuredContent"), is_modern.then_some(&json!([1])), "{answer}");
        client.end();
    }
}
