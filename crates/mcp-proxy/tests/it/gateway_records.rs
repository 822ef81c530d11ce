//! What is recorded, judged, audited, held and sent again of a gateway: each server by itself, under its own names.

use serde_json::{Value, json};

use mcp_control::api::PageQuery;

use crate::ask_kit::waited;
use crate::gateway_kit::{HttpClient, StdioClient, code_of, fake, names_in, text_of};
use crate::kit::Sandbox;

impl Sandbox {
    /// The messages of the only session so far, as `inspect --json` prints them.
    #[track_caller]
    fn inspected(&self) -> Vec<Value> {
        let id = self.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
        let lines = self.stdout(["inspect", "--json", &id]);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn decisions(&self) -> Vec<Value> {
        let lines = self.stdout(["audit", "--json"]);
        let all = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        all.filter(|line: &Value| line["kind"] == "decision").collect()
    }
}

/// The only message of which all of this is so.
#[track_caller]
fn only<'a>(messages: &'a [Value], members: &Value) -> &'a Value {
    let is_it = |message: &&Value| members.as_object().unwrap().iter().all(|(name, value)| message[name] == *value);
    let found: Vec<&Value> = messages.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{members}: {found:?}");
    found[0]
}

fn check_links(messages: &[Value]) {
    let asked = only(messages, &json!({ "kind": "request", "tool": "b__x" }));
    let sent = only(messages, &json!({ "kind": "request", "tool": "x", "server": "b" }));
    let answered = only(messages, &json!({ "kind": "response", "tool": "x", "server": "b" }));
    let told = only(messages, &json!({ "kind": "response", "tool": "b__x" }));
    // Answers are found by what they answer.
    assert_eq!((&sent["parent"], told.get("parent").and_then(Value::as_u64)), (&asked["sequence"], None));
    assert_eq!((&answered["answers"], &told["answers"]), (&sent["sequence"], &asked["sequence"]));
    assert_eq!((&sent["client"], &asked["client"]), (&json!("test"), &json!("test")));
    assert_ne!(sent["conversation"], asked["conversation"]);
}

#[test]
fn both_sides_are_recorded_and_lead_to_each_other() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({}));
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    client.end();
    check_links(&sandbox.inspected());
}

#[test]
fn both_sides_are_recorded_over_http() {
    let sandbox = Sandbox::new();
    let gateway = sandbox.serve_http(&[fake("a"), fake("b")], json!({}));
    assert_eq!(text_of(&HttpClient::open(&gateway).call(1, "b__x", json!({ "text": "1" }))), "b:x:1");
    gateway.end();
    check_links(&sandbox.inspected());
}

/// What a gateway asks its servers of its own accord stands in the recording, and in lists only on demand.
#[test]
fn health_checks_and_discovery_are_listed_only_on_demand() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({}));
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    client.ask("tools/list", json!({}));
    let said = |args: &[&str]| -> Vec<Value> {
        sandbox.stdout(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let between = |messages: &[Value], method: &str| {
        let is_it = |message: &&Value| message["method"] == method && !message["parent"].is_u64();
        messages.iter().filter(is_it).filter(|message| message["server"] == "a").count()
    };
    // Live, over the control API.
    let live = |filter: Option<&str>| -> Vec<Value> {
        let query = PageQuery { filter: filter.map(str::to_owned), limit: Some(1_000), ..PageQuery::default() };
        let page = waited(sandbox.control().messages(&query));
        page.messages.iter().map(|message| serde_json::to_value(message).unwrap()).collect()
    };
    let listed = live(None);
    assert_eq!((between(&listed, "initialize"), between(&listed, "tools/list")), (0, 0), "{listed:?}");
    let own = live(Some("origin:proxy"));
    assert_eq!((between(&own, "initialize"), between(&own, "tools/list")), (2, 2), "{own:?}");
    client.end();
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    let listed = said(&["inspect", "--json", &id]);
    assert_eq!(between(&listed, "initialize"), 0, "{listed:?}");
    assert!(listed.iter().any(|message| message["tool"] == "x" && message["server"] == "b"), "{listed:?}");
    let own = said(&["inspect", "--json", &id, "--filter", "origin:proxy"]);
    for method in ["initialize", "tools/list", "notifications/initialized"] {
        assert!(between(&own, method) > 0, "{method}: {own:?}");
    }
    let everything = said(&["inspect", "--json", &id, "--filter", "origin:*"]);
    assert_eq!(everything.len(), listed.len() + own.len());
    let shown = sandbox.stdout(["inspect", &id]);
    let left_out = format!("{} messages of health checks and discovery; --filter 'origin:*' shows", own.len());
    assert!(shown.contains(&left_out) && !shown.contains("[a] initialize"), "{shown}");
    // The session file is whole.
    sandbox.stdout(["export", &id, "-o", "s.json"]);
    let file: Value = serde_json::from_slice(&std::fs::read(sandbox.path("s.json")).unwrap()).unwrap();
    assert_eq!(file["messages"].as_array().unwrap().len(), everything.len());
    // So is the index, which has them apart.
    let found = said(&["sessions", "search", "initialize", "--json"]);
    let found_own = said(&["sessions", "search", "initialize", "--json", "--filter", "origin:proxy"]);
    assert_eq!((found.len(), found_own.len()), (1, 2), "{found:?} {found_own:?}");
}

#[test]
fn rules_judge_a_tool_by_its_server_and_its_own_name() {
    let sandbox = Sandbox::new();
    let fakes = ["a", "b"].map(|name| fake(name).tools(&["delete_x", "read_x"]));
    std::fs::write(sandbox.path("rules.json"), r#"{"a": {"delete": "deny"}}"#).unwrap();
    let mut client = StdioClient::open(&sandbox, &fakes, json!({ "rules": sandbox.path("rules.json").to_str() }));
    let denied = client.call("a__delete_x", json!({}));
    assert_eq!(code_of(&denied), -32000, "{denied}");
    let data = &denied["error"]["data"];
    assert_eq!(
        (&data["server"], &data["tool"], &data["operation"]),
        (&json!("a"), &json!("delete_x"), &json!("delete"))
    );
    assert_eq!(client.says("a__read_x", "1"), "a:read_x:1");
    assert_eq!(client.says("b__delete_x", "2"), "b:delete_x:2");
    client.end();
    assert_eq!(sandbox.seen("a", "tools/call").len(), 1);
    let decisions = sandbox.decisions();
    for (server, tool, verdict) in [("a", "delete_x", "deny"), ("a", "read_x", "allow"), ("b", "delete_x", "allow")] {
        let decision = only(&decisions, &json!({ "server": server, "tool": tool }));
        assert_eq!((&decision["verdict"], &decision["client"]), (&json!(verdict), &json!("test")), "{decision}");
    }
    assert_eq!(decisions.len(), 3, "each call is decided about once: {decisions:?}");
}

#[test]
fn a_rule_can_name_a_server() {
    let sandbox = Sandbox::new();
    let rule = json!({ "name": "not-on-b", "match": "server:b tool:x", "verdict": "deny" });
    let top = json!({ "policy": { "rules": [rule], "hide_denied": true } });
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], top);
    assert_eq!(names_in(&client.ask("tools/list", json!({})), "tools", "name"), ["a__x", "a__do", "b__do"]);
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    // As if there were no such thing, which this server runs as well.
    let name_of_missing = text_of(&client.call("b__nonesuch", json!({})));
    assert_eq!(text_of(&client.call("b__x", json!({}))), name_of_missing.replace("nonesuch", "x"));
    client.end();
    assert!(sandbox.seen("b", "tools/call").iter().all(|call| call["params"]["name"] != "x"));
}

#[test]
fn the_audit_names_whoever_shows_a_token() {
    let sandbox = Sandbox::new();
    let tokens = json!([{ "name": "alice", "token": "token-of-alice" }]);
    let top = json!({ "tokens": tokens, "policy": { "default": "allow" } });
    let gateway = sandbox.serve_http(&[fake("a")], top);
    let mut client = HttpClient::open_with(&gateway, &["Authorization: Bearer token-of-alice"], json!({}));
    assert_eq!(text_of(&client.call(1, "a__x", json!({ "text": "1" }))), "a:x:1");
    gateway.end();
    let decisions = sandbox.decisions();
    let decision = only(&decisions, &json!({ "server": "a", "tool": "x" }));
    let client = decision["client"].as_str().unwrap();
    assert!(client.contains("alice"), "{decision}");
}

#[test]
fn what_is_held_of_one_server_holds_up_no_other() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({}));
    sandbox.breaks("> server:a tool:x");
    let call = client.begin("a__x", json!({ "text": "held" }));
    let number = sandbox.held_number();
    assert_eq!(client.says("b__x", "1"), "b:x:1");
    assert!(sandbox.seen("a", "tools/call").is_empty());
    sandbox.stdout(["forward", &number]);
    assert_eq!(text_of(&client.answer(&call)), "a:x:held");
    client.end();
}

#[test]
fn what_a_server_was_asked_can_be_asked_again() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[fake("a"), fake("b")], json!({}));
    assert_eq!(client.says("b__x", "again"), "b:x:again");
    sandbox.until_found();
    let sent =
        only(&sandbox.inspected(), &json!({ "kind": "request", "tool": "x", "server": "b" }))["sequence"].clone();
    let answer = sandbox.stdout(["replay", "--live", &format!("#{sent}")]);
    assert!(answer.contains("b:x:again"), "{answer}");
    // The client hears nothing of it.
    assert_eq!(client.says("a__x", "1"), "a:x:1");
    let kept = client.take_kept();
    assert!(kept.iter().all(|message| message.get("method").is_some()), "{kept:?}");
    client.end();
    assert_eq!(sandbox.seen("b", "tools/call").len(), 2);
}
