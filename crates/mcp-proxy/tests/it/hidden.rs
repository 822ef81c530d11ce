//! `hide_denied`: lists without what their reader may not use, and calls of it as of something unknown.

use serde_json::{Value, json};

use crate::http_kit::{Client, LAST_CHUNK, MODERN, Origin, STREAM, Serving, event, json as json_answer, post};
use crate::kit::{Running, Sandbox, recorded};

const RULES: &str = r#"{"policy": {"hide_denied": true, "rules": [
    {"name": "no-deletes", "match": "op:delete or hint:destructive", "verdict": "deny"},
    {"name": "no-secrets", "match": "tool:file:///secret*,secret_*", "verdict": "deny"},
    {"name": "no-etc", "match": "tool:write_file $.params.arguments.path ^= \"/etc\"", "verdict": "deny"},
    {"name": "ask-first", "match": "tool:send_mail", "verdict": "ask"}
]}}"#;

const ONLY_ARGUMENTS: &str = r#"{"policy": {"hide_denied": true, "rules": [
    {"name": "no-etc", "match": "$.params.arguments.path ^= \"/etc\"", "verdict": "deny"},
    {"name": "no-big", "match": "size>100k or \"rm -rf\"", "verdict": "deny"}
]}}"#;

/// What a list says, and what of it may be seen.
const LISTS: [(&str, &str, &str); 4] = [
    (
        "tools/list",
        r#"{ "tools" :[{"name":"delete_repo"}, {"name":"write_file","x":1e400} ,{"name":"frob","annotations":{"destructiveHint":true}},{"name":"send_mail"},  {"name":"DELETE_all"} ],"nextCursor":"é"}"#,
        r#"{ "tools" :[{"name":"write_file","x":1e400} ,{"name":"send_mail"} ],"nextCursor":"é"}"#,
    ),
    ("prompts/list", r#"{"prompts":[{"name":"secret_plan"},{"name":"plan"}]}"#, r#"{"prompts":[{"name":"plan"}]}"#),
    (
        "resources/list",
        r#"{"resources":[{"uri":"file:///a","name":"a"},{"uri":"file:///%73ecret/b","name":"b"}]}"#,
        r#"{"resources":[{"uri":"file:///a","name":"a"}]}"#,
    ),
    (
        "resources/templates/list",
        r#"{"resourceTemplates":[{"uriTemplate":"file:///secret/{x}"}]}"#,
        r#"{"resourceTemplates":[]}"#,
    ),
];

fn request(id: usize, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}"#)
}

fn answer(id: usize, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn using(id: usize, method: &str, subject: &str, name: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {subject: name}}).to_string()
}

fn sandbox(rules: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("rules.json"), rules).unwrap();
    sandbox
}

/// A server that has lists, and no tools.
fn script() -> String {
    let cases = LISTS.iter().map(|(method, list, _)| {
        let answer = answer(0, list).replacen(":0,", r#":'"$id"',"#, 1);
        format!(r#"*'"{method}"'*) printf '%s\n' '{answer}' ;; "#)
    });
    let cases: String = cases.collect();
    let call = r#"printf '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"MCP error -32602: Tool %s not found"}],"isError":true}}\n' "$name""#;
    format!(
        r#"while read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}}]*\).*/\1/p')
            name=$(printf '%s' "$line" | sed -n 's/.*"name":"\([^"]*\)".*/\1/p')
            case "$line" in {cases}
                *delete_repo*|*frob*|*FROB*|*secret*) printf '%s\n' "$line" >> seen ;;
                *'"tools/call"'*) {call} ;;
            esac
        done"#
    )
}

/// What the server says of a tool that it does not have.
fn missing(name: &str) -> String {
    let result = json!({ "content": [{ "type": "text", "text": format!("MCP error -32602: Tool {name} not found") }], "isError": true });
    answer(9, &result.to_string())
}

/// The same over HTTP, as JSON or as an event.
fn origin(as_event: bool) -> Serving {
    Origin::start().serve(move |call| {
        let asked: Value = serde_json::from_slice(&call.body).unwrap();
        if asked["method"] == "tools/call" {
            let name = asked["params"]["name"].as_str().unwrap();
            assert!(!["delete_repo", "frob", "FROB"].contains(&name), "{asked}");
            assert_eq!(asked["params"].get("arguments"), Some(&json!({})), "{asked}");
            return call.send(json_answer(missing(name)));
        }
        let at = LISTS.iter().position(|(method, ..)| asked["method"] == *method).expect("nothing else comes here");
        let message = answer(at + 1, LISTS[at].1);
        match as_event {
            false => call.send(json_answer(message)),
            true => call.send([STREAM, &event(message), LAST_CHUNK].concat()),
        }
    })
}

/// Asks for every list, and uses what is hidden. `ask` sends a message and returns what comes back.
fn check_hidden(mut ask: impl FnMut(&str) -> String) {
    for (id, (method, _, shown)) in (1..).zip(LISTS) {
        assert_eq!(ask(&request(id, method)), answer(id, shown));
    }
    for name in ["delete_repo", "frob", "FROB"] {
        let said = ask(&using(9, "tools/call", "name", name));
        assert_eq!(
            serde_json::from_str::<Value>(&said).unwrap(),
            serde_json::from_str::<Value>(&missing(name)).unwrap()
        );
    }
    for (method, member, name, code, message) in [
        ("prompts/get", "name", "secret_plan", -32602, "Unknown prompt: secret_plan"),
        ("resources/read", "uri", "file:///secret/b", -32002, "Resource not found: file:///secret/b"),
    ] {
        let refused: Value = serde_json::from_str(&ask(&using(9, method, member, name))).unwrap();
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert_eq!(refused["error"]["message"], message);
        assert!(!refused.to_string().contains("no-"), "no rule is named: {refused}");
    }
}

fn ask_on_pipe(proxy: &mut Running, message: &str) -> String {
    proxy.send(format!("{message}\n").as_bytes());
    String::from_utf8(proxy.line()).unwrap().trim_end().to_owned()
}

#[test]
fn a_client_on_a_pipe_sees_what_it_may_use() {
    let sandbox = sandbox(RULES);
    let mut proxy = sandbox.run_script(&["--rules", "rules.json", "--quiet"], &script());
    check_hidden(|message| ask_on_pipe(&mut proxy, message));
    assert!(!sandbox.path("seen").exists(), "the server saw no call");
    drop(proxy.end());
    // The recording has what came and what went on.
    let messages = recorded(&sandbox.segments()[0]);
    let list = messages.iter().find(|message| message.original_raw.is_some()).unwrap();
    assert_eq!(list.raw, answer(1, LISTS[0].2));
    assert_eq!(list.original_raw.as_deref(), Some(answer(1, LISTS[0].1).as_bytes()));
    assert!(list.modified && !list.held);
    let said = |text: &Option<String>| text.clone().unwrap();
    assert_eq!((said(&list.decided_by), said(&list.why)), ("rules".into(), "3 items are hidden".into()));
}

#[test]
fn a_client_over_http_sees_what_it_may_use() {
    for as_event in [false, true] {
        for modern in [&[][..], &[MODERN]] {
            let sandbox = sandbox(RULES);
            let origin = origin(as_event);
            let proxy =
                sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet", "--rules", "rules.json"]);
            let mut client = proxy.client();
            check_hidden(|message| match modern.is_empty() {
                true => ask_over_http(&mut client, message, modern),
                false => ask_over_http(&mut client, &modernised(message), modern),
            });
            proxy.end();
        }
    }
}

fn ask_over_http(client: &mut Client, message: &str, modern: &[&str]) -> String {
    let headers = mirrored(message, modern);
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let response = client.ask(&post("/mcp", &headers, message));
    let body = String::from_utf8(response.body.clone()).unwrap();
    let data = body.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
    data.unwrap_or(body)
}

/// The same request as the newest revision has it.
fn modernised(message: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    match message.contains("\"params\":{}") {
        true => message.replace("\"params\":{}", &format!("\"params\":{{{meta}}}")),
        false => message.replace("\"params\":{", &format!("\"params\":{{{meta},")),
    }
}

/// The headers that repeat parts of it.
fn mirrored(message: &str, modern: &[&str]) -> Vec<String> {
    let mut headers: Vec<String> = modern.iter().map(|&header| header.to_owned()).collect();
    if !modern.is_empty() {
        let message: Value = serde_json::from_str(message).unwrap();
        headers.push(format!("Mcp-Method: {}", message["method"].as_str().unwrap()));
        let params = &message["params"];
        let name = params["name"].as_str().or(params["uri"].as_str());
        headers.extend(name.map(|name| format!("Mcp-Name: {name}")));
    }
    headers
}

#[test]
fn it_does_not_matter_how_either_side_is_reached() {
    let sandbox = sandbox(RULES);
    let origin = origin(true);
    let args = ["run", "--quiet", "--rules", "rules.json", "--url", &origin.url("/mcp")];
    let mut proxy = Running::start(sandbox.command(args));
    check_hidden(|message| ask_on_pipe(&mut proxy, message));
    drop(proxy.end());
    std::fs::write(sandbox.path("server.sh"), script()).unwrap();
    let args = ["--transport", "stdio", "--target-command", "sh server.sh", "--quiet", "--rules", "rules.json"];
    let proxy = sandbox.listen(args);
    let mut client = proxy.client();
    check_hidden(|message| ask_over_http(&mut client, &modernised(message), &[MODERN]));
    proxy.end();
}

/// Where it depends on the arguments whether something may be used, it is listed, and every byte is as it
/// came.
#[test]
fn a_rule_on_arguments_hides_nothing() {
    let shown = |rules: &str| {
        let sandbox = sandbox(rules);
        let mut proxy = sandbox.run_script(&["--rules", "rules.json", "--quiet"], &script());
        for (id, (method, list, _)) in (1..).zip(LISTS) {
            assert_eq!(ask_on_pipe(&mut proxy, &request(id, method)), answer(id, list));
        }
        drop(proxy.end());
        assert!(recorded(&sandbox.segments()[0]).iter().all(|message| !message.modified));
    };
    shown(ONLY_ARGUMENTS);
    // Nor does one that is not told to.
    shown(&RULES.replace("\"hide_denied\": true, ", ""));
}

/// What a server says of its tools counts whether or not anything is hidden, and from when it says so.
#[test]
fn hints_count_from_the_first_list_on() {
    let sandbox = sandbox(&RULES.replace("\"hide_denied\": true, ", ""));
    let mut proxy = sandbox.run_script(&["--rules", "rules.json", "--quiet"], &script());
    proxy.send(format!("{}\n", using(7, "tools/call", "name", "frob")).as_bytes());
    ask_on_pipe(&mut proxy, &request(1, "tools/list"));
    assert!(sandbox.path("seen").exists(), "its name alone says nothing");
    let refused: Value =
        serde_json::from_str(&ask_on_pipe(&mut proxy, &using(8, "tools/call", "name", "frob"))).unwrap();
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert_eq!(refused["error"]["data"]["operation"], "write");
    drop(proxy.end());
}
