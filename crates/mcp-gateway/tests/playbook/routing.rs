//! A call reaches the server that has what it names, and its answer the client that sent it.

use serde_json::{Value, json};

use mcp_gateway::settings::Notifications;

use crate::kit::{Playbook, ServerPlan, message, names, server, text};

/// Two servers that have the same of everything.
fn twins() -> [ServerPlan; 2] {
    ["a", "b"].map(|name| {
        server(name)
            .tools(&["x", "y__z", "__"])
            .list("prompts/list", json!(["p"]))
            .list("resources/list", json!(["file:///same"]))
            .list("resources/templates/list", json!([{ "name": "t", "uriTemplate": "file:///{path}" }]))
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_reaches_the_server_that_its_name_begins_with() {
    let play = Playbook::servers(["fs", "git"]);
    let ann = play.client().await;
    ann.asks(7, "tools/call", json!({ "name": "fs__x", "arguments": { "path": "/" } }));
    let call = play.server("fs").gets("tools/call", json!({ "name": "x", "arguments": { "path": "/" } })).await;
    call.answers(text("done"));
    ann.gets_result(7, text("done")).await;
    play.server("git").gets_nothing_else().await;
    ann.gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn equal_names_lead_to_their_own_servers() {
    let play = Playbook::of(twins());
    let ann = play.client().await;
    let tools = ann.ask("tools/list", json!({})).await;
    assert_eq!(names(&tools, "tools", "name"), ["a__x", "a__y__z", "a____", "b__x", "b__y__z", "b____"]);
    let origin = json!({ "io.github.mcp-proxy/server": "b", "io.github.mcp-proxy/original": "x" });
    assert_eq!(tools["result"]["tools"][3]["_meta"], origin);
    for name in ["a", "b"] {
        for tool in ["x", "y__z", "__"] {
            ann.calls(1, &format!("{name}__{tool}"));
            play.server(name).gets_call(tool).await.answers(text(tool));
            ann.gets_result(1, text(tool)).await;
        }
    }
    ann.asks(2, "prompts/get", json!({ "name": "b__p" }));
    play.server("b").gets("prompts/get", json!({ "name": "p" })).await.answers(json!({ "messages": [] }));
    ann.gets_result(2, json!({ "messages": [] })).await;
    let uris = names(&ann.ask("resources/list", json!({})).await, "resources", "uri");
    assert_ne!(uris[0], uris[1]);
    for (uri, name) in uris.iter().zip(["a", "b"]) {
        ann.asks(3, "resources/read", json!({ "uri": uri }));
        let read = play.server(name).gets("resources/read", json!({ "uri": "file:///same" })).await;
        read.answers(json!({ "contents": [{ "uri": "file:///same", "text": "" }] }));
        ann.gets_result(3, json!({ "contents": [{ "uri": uri }] })).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_expands_to_an_address_that_routes_back() {
    let play = Playbook::of(twins());
    let ann = play.client().await;
    let listed = ann.ask("resources/templates/list", json!({})).await;
    let templates = names(&listed, "resourceTemplates", "uriTemplate");
    assert_eq!(templates, ["proxy://template/a/file:///{path}", "proxy://template/b/file:///{path}"]);
    ann.asks(1, "resources/read", json!({ "uri": templates[1].replace("{path}", "a%20b/c") }));
    let read = play.server("b").gets("resources/read", json!({ "uri": "file:///a%20b/c" })).await;
    read.answers(json!({ "contents": [{ "uri": "file:///a%20b/c", "text": "" }] }));
    let answer = ann.gets_answer(1).await;
    ann.asks(2, "resources/read", json!({ "uri": answer["result"]["contents"][0]["uri"] }));
    play.server("b").gets("resources/read", json!({ "uri": "file:///a%20b/c" })).await;
}

#[tokio::test(start_paused = true)]
async fn completion_asks_the_server_of_its_reference() {
    let play = Playbook::of(twins());
    let ann = play.client().await;
    for (given, original) in [
        (json!({ "type": "ref/prompt", "name": "b__p" }), json!({ "type": "ref/prompt", "name": "p" })),
        (
            json!({ "type": "ref/resource", "uri": "proxy://template/b/file:///{path}" }),
            json!({ "type": "ref/resource", "uri": "file:///{path}" }),
        ),
    ] {
        let argument = json!({ "name": "path", "value": "" });
        ann.asks(1, "completion/complete", json!({ "ref": given, "argument": argument }));
        let asked =
            play.server("b").gets("completion/complete", json!({ "ref": original, "argument": argument })).await;
        asked.answers(json!({ "completion": { "values": ["v"] } }));
        ann.gets_result(1, json!({ "completion": { "values": ["v"] } })).await;
    }
}

#[tokio::test(start_paused = true)]
async fn long_names_are_shortened_alike_and_lead_back() {
    let long = ["l".repeat(64), format!("{}1", "n".repeat(90)), format!("{}2", "n".repeat(90))];
    let tools: Vec<&str> = long.iter().map(String::as_str).collect();
    let play = Playbook::of([server("long").tools(&tools)]);
    let ann = play.client().await;
    let given = names(&ann.ask("tools/list", json!({})).await, "tools", "name");
    for (name, original) in given.iter().zip(&long) {
        assert!(name.len() <= 64 && name.starts_with("long__"), "{name}");
        ann.calls(1, name);
        play.server("long").gets_call(original).await.answers(text(""));
        ann.gets_answer(1).await;
    }
    // A client that remembers a name may use it before any list is read.
    let play = Playbook::of([server("long").tools(&tools), server("other")]);
    let ben = play.client().await;
    ben.calls(1, &given[2]);
    play.server("long").gets_call(&long[2]).await;
}

#[tokio::test(start_paused = true)]
async fn tools_of_servers_with_long_ids_have_names_that_fit() {
    let ids = ["i".repeat(52), format!("{}-j", "i".repeat(62))];
    let play = Playbook::of([&ids[0], &ids[1]].map(|id| server(id).tools(&["x", "a_name_that_is_not_short_either"])));
    let ann = play.client().await;
    let given = names(&ann.ask("tools/list", json!({})).await, "tools", "name");
    assert_eq!(given.len(), 4);
    for (at, name) in given.iter().enumerate() {
        assert!(name.len() <= 64, "{name}");
        ann.calls(1, name);
        let original = ["x", "a_name_that_is_not_short_either"][at % 2];
        play.server(&ids[at / 2]).gets_call(original).await.answers(text(""));
        ann.gets_answer(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_prefixes_a_name_of_two_servers_leads_nowhere() {
    let plain = |name: &str, own: &str| server(name).tools(&["same", own]).set(|it| it.prefix = false);
    let play = Playbook::of([plain("a", "mine"), plain("b", "yours"), server("c").tools(&["same"])]);
    let ann = play.client().await;
    let tools = ann.ask("tools/list", json!({})).await;
    assert_eq!(names(&tools, "tools", "name"), ["mine", "yours", "c__same"]);
    for (given, name, original) in [("mine", "a", "mine"), ("yours", "b", "yours"), ("c__same", "c", "same")] {
        ann.calls(1, given);
        play.server(name).gets_call(original).await.answers(text(""));
        ann.gets_answer(1).await;
    }
    ann.calls(2, "same");
    let refused = ann.gets_answer(2).await;
    assert_eq!(refused["error"]["data"]["mcp-proxy/reason"], "name-collision", "{refused}");
    play.server("a").gets_nothing_else().await;
    play.server("b").gets_nothing_else().await;
    assert!(play.has_told("`same` of a") && play.has_told("`same` of b"));
}

#[tokio::test(start_paused = true)]
async fn a_collision_is_found_before_any_list_is_read() {
    let plain = |name: &str| server(name).tools(&["same", name]).set(|it| it.prefix = false);
    let play = Playbook::of([plain("a"), plain("b")]);
    let ann = play.client().await;
    ann.calls(1, "same");
    assert_eq!(ann.gets_answer(1).await["error"]["data"]["mcp-proxy/reason"], "name-collision");
    ann.calls(2, "b");
    play.server("b").gets_call("b").await;
    ann.calls(3, "nobodys");
    ann.gets_error(3, -32602).await;
}

#[tokio::test(start_paused = true)]
async fn an_address_without_a_prefix_is_read_where_its_template_is() {
    let plain = |name: &str| server(name).set(|it| it.prefix = false);
    let template = json!([{ "name": "t", "uriTemplate": "demo://text/{id}" }]);
    let play = Playbook::of([plain("a"), plain("b").list("resources/templates/list", template)]);
    let ann = play.client().await;
    ann.asks(1, "resources/read", json!({ "uri": "demo://text/3" }));
    play.server("b").gets("resources/read", json!({ "uri": "demo://text/3" })).await;
    play.server("a").gets_nothing_else().await;
}

#[tokio::test(start_paused = true)]
async fn addresses_of_two_servers_are_left_out_without_prefixes() {
    let plain = |name: &str, own: &str| {
        let templates = json!([
            { "name": "t", "uriTemplate": "both://{id}" }, { "name": "u", "uriTemplate": format!("{name}://{{id}}") },
        ]);
        server(name)
            .set(|it| it.prefix = false)
            .list("resources/list", json!(["memo:both", own]))
            .list("resources/templates/list", templates)
    };
    let third = server("c").list("resources/list", json!(["memo:both"]));
    let play = Playbook::of([plain("a", "memo:a"), plain("b", "memo:b"), third]);
    let ann = play.client().await;
    // The second time all of them are known.
    for _ in 0..2 {
        let uris = names(&ann.ask("resources/list", json!({})).await, "resources", "uri");
        assert_eq!(uris[..2], ["memo:a", "memo:b"], "{uris:?}");
        assert!(uris.len() == 3 && uris[2].starts_with("proxy://"), "{uris:?}");
        let listed = ann.ask("resources/templates/list", json!({})).await;
        assert_eq!(names(&listed, "resourceTemplates", "uriTemplate"), ["a://{id}", "b://{id}"]);
    }
    assert!(ann.ask("resources/read", json!({ "uri": "memo:both" })).await["error"].is_object());
    assert!(play.has_told("`memo:both` of a, `memo:both` of b"));
}

#[tokio::test(start_paused = true)]
async fn links_in_results_can_be_followed() {
    let play = Playbook::of(twins());
    let ann = play.client().await;
    ann.calls(1, "b__x");
    let link = json!({ "type": "resource_link", "name": "l", "uri": "file:///linked" });
    let embedded = json!({ "type": "resource", "resource": { "uri": "file:///embedded", "text": "t" } });
    play.server("b").gets_call("x").await.answers(json!({ "content": [link, embedded] }));
    let answer = ann.gets_answer(1).await;
    let content = &answer["result"]["content"];
    for (uri, original) in
        [(&content[0]["uri"], "file:///linked"), (&content[1]["resource"]["uri"], "file:///embedded")]
    {
        ann.asks(2, "resources/read", json!({ "uri": uri }));
        play.server("b").gets("resources/read", json!({ "uri": original })).await;
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_told_apart() {
    let play = Playbook::of(twins());
    let ann = play.client().await;
    ann.calls(1, "b__x");
    play.server("b").gets_call("x").await.answers(json!({ "task": { "taskId": "t1", "status": "working" } }));
    ann.gets_result(1, json!({ "task": { "taskId": "b:t1" } })).await;
    ann.asks(2, "tasks/get", json!({ "taskId": "b:t1" }));
    let asked = play.server("b").gets("tasks/get", json!({ "taskId": "t1" })).await;
    asked.answers(json!({ "taskId": "t1", "status": "working" }));
    ann.gets_result(2, json!({ "taskId": "b:t1", "status": "working" })).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        let refused = ann.ask(method, json!({ "taskId": "nope" })).await;
        assert_eq!(refused["error"], json!({ "code": -32602, "message": "Unknown task: nope" }), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_names_are_refused_as_a_server_would() {
    let play = Playbook::of(twins());
    let ann = play.client().await;
    for (method, params, code) in [
        ("tools/call", json!({ "name": "c__x" }), -32602),
        ("tools/call", json!({ "name": "x" }), -32602),
        ("tools/call", json!({}), -32602),
        ("prompts/get", json!({ "name": "p" }), -32602),
        ("resources/read", json!({ "uri": "file:///same" }), -32002),
        ("no/such/method", json!({}), -32601),
    ] {
        ann.asks(1, method, params);
        ann.gets_error(1, code).await;
    }
    assert_eq!(ann.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_method_goes_to_the_only_server() {
    let play = Playbook::servers(["a"]);
    let ann = play.client().await;
    ann.asks(1, "acme/do", json!({ "n": 1 }));
    play.server("a").gets("acme/do", json!({ "n": 1 })).await.answers(json!({ "n": 2 }));
    ann.gets_result(1, json!({ "n": 2 })).await;
}

#[tokio::test(start_paused = true)]
async fn servers_introduce_themselves_together() {
    let play = Playbook::with([server("a").capabilities(json!({ "tools": {} })), server("b")], |it| {
        it.name = "all".into();
        it.instructions = Some("Ours.".into());
    });
    let ann = play.newcomer();
    let opened = ann.shakes_hands("2025-06-18", json!({})).await;
    let result = &opened["result"];
    assert_eq!((&result["serverInfo"]["name"], &result["protocolVersion"]), (&json!("all"), &json!("2025-06-18")));
    assert_eq!(result["capabilities"]["tools"], json!({ "listChanged": true }));
    assert_eq!(result["capabilities"]["resources"], json!({ "subscribe": true, "listChanged": true }));
    let instructions = result["instructions"].as_str().unwrap();
    assert!(instructions.starts_with("Ours.") && instructions.contains("b plays."), "{instructions}");
    // Servers hear who the client is, not who the gateway is.
    assert_eq!(play.server("b").seen("initialize")[0]["clientInfo"], json!({ "name": "test", "version": "1" }));
}

#[tokio::test(start_paused = true)]
async fn an_id_comes_back_as_it_was() {
    let play = Playbook::servers(["a"]);
    let ann = play.client().await;
    for id in ["7", "\"7\"", "-1", "9007199254740993", "\"\"", "\"a\\u0062\"", "1.5"] {
        ann.sends(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a__x"}}}}"#));
        play.server("a").gets_call("x").await.answers(text(""));
        let id: Value = serde_json::from_str(id).unwrap();
        ann.gets_answer(id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_never_sees_an_id_or_a_token_twice() {
    let play = Playbook::servers(["a"]);
    let mut seen = Vec::new();
    for _ in 0..5 {
        let client = play.client().await;
        client.asks(1, "tools/call", json!({ "name": "a__x", "_meta": { "progressToken": 1 } }));
        let call = play.server("a").gets_call("x").await;
        seen.push((call.id().to_string(), call.message["params"]["_meta"]["progressToken"].to_string()));
        call.answers(text(""));
        client.gets_answer(1).await;
    }
    seen.sort();
    seen.dedup_by(|one, other| one.0 == other.0 || one.1 == other.1);
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn many_clients_with_one_id_get_their_own() {
    let play = Playbook::servers(["a", "b"]);
    let mut clients = Vec::new();
    for number in 0..40 {
        let client = play.client().await;
        let tool = ["a__x", "b__x"][number % 2];
        client.asks(1, "tools/call", json!({ "name": tool, "arguments": { "n": number } }));
        clients.push(client);
    }
    // The last is answered first.
    for (number, client) in clients.iter().enumerate().rev() {
        let call =
            play.server(["a", "b"][number % 2]).gets("tools/call", json!({ "arguments": { "n": number } })).await;
        call.answers(text(&number.to_string()));
        client.gets_result(1, text(&number.to_string())).await;
    }
    for client in clients {
        client.gets_nothing_else().await;
    }
    assert_eq!((play.server("a").starts(), play.server("b").starts()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_notification_reaches_the_servers_that_the_settings_name() {
    for (setting, is_shared, reached) in [
        (Notifications::Concerned, false, [1, 1]),
        (Notifications::Concerned, true, [0, 0]),
        (Notifications::All, true, [1, 1]),
        (Notifications::Nobody, false, [0, 0]),
        (Notifications::Only(vec!["b".into()]), true, [0, 1]),
    ] {
        let play = Playbook::with(["a", "b"].map(server), |it| it.notifications = setting);
        let ann = play.client().await;
        let _ben = if is_shared { Some(play.client().await) } else { None };
        ann.tells("notifications/roots/list_changed", Value::Null);
        play.settles().await;
        assert_eq!(["a", "b"].map(|it| play.server(it).seen("notifications/roots/list_changed").len()), reached);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_large_fails_alone() {
    let play = Playbook::servers(["a", "b"]);
    let ann = play.client().await;
    ann.calls(1, "b__x");
    let open = play.server("b").gets_call("x").await;
    ann.calls(2, "a__x");
    let call = play.server("a").gets_call("x").await;
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, call.id());
    call.connection.link().from_server_too_large((100_000, head.as_bytes(), b"}}"));
    let refused = ann.gets_answer(2).await;
    assert_eq!(refused["error"]["data"]["mcp-proxy/reason"], "too-large", "{refused}");
    open.answers(text("open"));
    ann.gets_result(1, text("open")).await;
}

#[tokio::test(start_paused = true)]
async fn calls_may_spell_their_subject_as_other_gateways_do() {
    let play = Playbook::of([server("a").list("prompts/list", json!(["p"])), server("b")]);
    let ann = play.client().await;
    ann.asks(1, "tools/call", json!({ "toolName": "a__x", "arguments": { "n": 1 } }));
    let call = play.server("a").gets_call("x").await;
    assert_eq!(call.message["params"].get("toolName"), None);
    ann.asks(2, "prompts/get", json!({ "promptName": "a__p" }));
    play.server("a").gets("prompts/get", json!({ "name": "p" })).await;
    // The protocol's own member counts where both stand, and no other method has the spelling.
    ann.asks(3, "tools/call", json!({ "toolName": "a__x", "name": "b__x" }));
    play.server("b").gets_call("x").await;
    ann.asks(4, "prompts/get", json!({ "toolName": "a__p" }));
    ann.gets_error(4, -32602).await;
    ann.asks(5, "tools/call", json!({ "toolName": 7 }));
    ann.gets_error(5, -32602).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_tools_that_are_given_out_can_be_called() {
    let play = Playbook::of([
        server("a").tools(&["read_x", "read_y", "write_x"]).set(|it| it.enabled_tools = Some(vec!["read_*".into()])),
        server("b").tools(&["x", "y"]).set(|it| it.disabled_tools = vec!["y".into()]),
        server("c").set(|it| it.enabled = false),
    ]);
    let ann = play.client().await;
    let tools = ann.ask("tools/list", json!({})).await;
    assert_eq!(names(&tools, "tools", "name"), ["a__read_x", "a__read_y", "b__x"]);
    for hidden in ["a__write_x", "b__y", "c__x"] {
        ann.calls(1, hidden);
        assert!(ann.gets_answer(1).await["error"].is_object(), "{hidden}");
    }
    play.server("a").gets_nothing_else().await;
    play.server("b").gets_nothing_else().await;
    assert_eq!(play.server("c").starts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_together() {
    let play = Playbook::servers(["a", "b"]);
    let ann = play.newcomer();
    ann.shakes_hands("2025-03-26", json!({})).await;
    let call = |id: u64, tool: &str| message(Some(id.into()), "tools/call", json!({ "name": tool }));
    ann.sends(json!([call(1, "a__x"), call(2, "b__x"), { "jsonrpc": "2.0", "id": 3, "method": "ping" }]).to_string());
    let (one, two) = (play.server("a").gets_call("x").await, play.server("b").gets_call("x").await);
    two.answers(text("two"));
    ann.gets_nothing_else().await;
    one.answers(text("one"));
    let answers = ann.rest().await;
    let mut ids: Vec<&Value> = answers[0].as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    ids.sort_by_key(|id| id.as_u64());
    assert_eq!((answers.len(), ids), (1, vec![&json!(1), &json!(2), &json!(3)]));
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_which_the_last_call_is_cancelled_is_answered_with_the_others() {
    let play = Playbook::servers(["a"]);
    let ann = play.newcomer();
    ann.shakes_hands("2025-03-26", json!({})).await;
    let call = |id: u64| message(Some(id.into()), "tools/call", json!({ "name": "a__x", "arguments": { "n": id } }));
    ann.sends(json!([call(1), call(2)]).to_string());
    play.server("a").gets("tools/call", json!({ "arguments": { "n": 1 } })).await.answers(text("one"));
    ann.gets_nothing_else().await;
    ann.cancels(2);
    let answers = ann.rest().await;
    assert_eq!((answers.len(), answers[0].as_array().unwrap().len()), (1, 1));
    assert_eq!(answers[0][0]["result"], text("one"));
}
