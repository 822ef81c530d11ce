//! `list`, `info` and `call` against servers of both eras, over every transport, natively and behind a proxy tool.

use std::io::Write;

use serde_json::{Value, json};

use crate::gateway_kit::{Fake, fake};
use crate::http_kit::Origin;
use crate::kit::{Sandbox, fixture_program, signal, wait};

/// A server with something of each type.
fn calculator() -> Fake {
    let text = json!({ "type": "string", "description": "What to add" });
    let properties = json!({ "text": text, "count": { "type": "integer" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["text"] });
    let any = json!({ "type": "object" });
    fake("calc")
        .list(
            "tools",
            json!([
                { "name": "add", "description": "Add two numbers\nIt is slow", "inputSchema": schema },
                { "name": "do", "description": "does \u{1b}[2J things", "inputSchema": any },
                { "name": "delete_all", "inputSchema": any },
            ]),
        )
        .list("resources", json!([{ "name": "notes", "uri": "mem://notes", "description": "Notes" }]))
        .list("resourceTemplates", json!([{ "name": "note", "uriTemplate": "mem://{id}" }]))
        .list("prompts", json!([{ "name": "greet", "arguments": [{ "name": "who", "required": true }] }]))
}

/// What a command came to.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    shown: String,
    said: String,
}

impl Said {
    #[track_caller]
    fn expect(&self, code: i32, shown: &str) {
        assert_eq!((self.code, self.shown.as_str()), (Some(code), shown), "{self:?}");
    }

    #[track_caller]
    fn expect_failure(&self, code: i32, said: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for piece in said {
            assert!(self.said.contains(piece), "no `{piece}` in {self:?}");
        }
    }
}

/// A sandbox with a server in its configuration, and the words that name it there.
fn with(calculator: Fake) -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    sandbox.gateway_config(&[calculator], &json!({}));
    (sandbox, ["--config", "gateway.json", "--server", "calc"].map(str::to_owned).to_vec())
}

/// The words of a server that is a command.
fn command(sandbox: &Sandbox) -> Vec<String> {
    let (fixture, script) = (fixture_program(), sandbox.path("calc.script"));
    ["--".into(), fixture.to_str().unwrap().to_owned(), "upstream".into(), script.to_str().unwrap().to_owned()].into()
}

fn run(sandbox: &Sandbox, words: &[&str], server: &[String]) -> Said {
    let output = sandbox.output(words.iter().copied().chain(server.iter().map(String::as_str)));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("panicked"), "{said}");
    let shown = String::from_utf8(output.stdout).expect("what people read is text");
    Said { code: output.status.code(), shown, said }
}

fn steps(steps: &Value) -> String {
    format!("steps={steps}")
}

/// What works with any way to the calculator.
#[track_caller]
fn everyday(sandbox: &Sandbox, server: &[String]) {
    let run = |words: &[&str]| run(sandbox, words, server);
    run(&["list"]).expect(
        0,
        "tools\nadd         Add two numbers\ndo          does \u{241b}[2J things\ndelete_all\n\n\
         resources\nnotes  mem://notes  Notes\nnote   mem://{id}\n\nprompts\ngreet\n",
    );
    run(&["list", "--type", "tool", "--prefix", "a"]).expect(0, "add  Add two numbers\n");
    run(&["list", "--type", "tool", "--query", "numbers"]).expect(0, "add  Add two numbers\n");
    run(&["list", "--type", "tool", "--limit", "1"]).expect(0, "add  Add two numbers\nand 2 more\n");
    run(&["info", "add"]).expect(
        0,
        "add (tool)\n\nAdd two numbers\nIt is slow\n\nparameters:\n  text   string, required  What to add\n  count  integer\n",
    );
    run(&["info", "greet"]).expect(0, "greet (prompt)\n\nparameters:\n  who  string, required\n");
    run(&["info", "mem://notes"]).expect(0, "mem://notes (resource)\nnotes\n\nNotes\n");
    run(&["info", "notes", "--type", "resource"]).expect(0, "mem://notes (resource)\nnotes\n\nNotes\n");
    run(&["info", "mem://{id}"]).expect(0, "mem://{id} (resource)\nnote\n\nparameters:\n  id  string, required\n");
    run(&["call", "add", "text=5", "count=3"]).expect(0, "calc:add:5\n");
    run(&["call", "greet", "who=Ada"]).expect(0, "user: calc:greet\n");
    run(&["call", "mem://notes"]).expect(0, "calc:mem://notes\n");
    run(&["call", "notes", "--type", "resource"]).expect(0, "calc:mem://notes\n");
    run(&["call", "mem://{id}", "id=a b"]).expect(0, "calc:mem://a%20b\n");
    run(&["call", "note", "id=7"]).expect(0, "calc:mem://7\n");
    let last = sandbox.seen("calc", "tools/call").pop().unwrap();
    assert_eq!(last["params"]["arguments"], json!({ "text": "5", "count": 3 }), "text where the schema says text");
}

#[test]
fn a_server_of_a_configuration() {
    for calculator in [calculator(), calculator().modern()] {
        let (sandbox, server) = with(calculator);
        everyday(&sandbox, &server);
        sandbox.nothing_is_left();
    }
}

#[test]
fn a_server_that_is_a_command() {
    let (sandbox, _) = with(calculator());
    everyday(&sandbox, &command(&sandbox));
    let recorded = sandbox.segments().len();
    run(&sandbox, &["list", "--no-record"], &command(&sandbox));
    assert_eq!((recorded, sandbox.segments().len()), (15, 15), "what is asked is recorded, unless that is not wanted");
}

#[test]
fn a_server_with_an_address() {
    for calculator in [calculator(), calculator().modern()] {
        let (sandbox, _) = with(calculator);
        let script = sandbox.path("calc.script");
        let listening = sandbox.listen_to_fixture(&["upstream", script.to_str().unwrap()], &["--no-record"]);
        everyday(&sandbox, &["--url".into(), listening.url("/mcp")]);
        let call = |more: &[&str]| run(&sandbox, &[&["call", "add", "text=x", "--url"], more].concat(), &[]);
        call(&[&listening.url("/sse"), "--transport", "sse"]).expect(0, "calc:add:x\n");
        // The older transport is found where the newer is refused.
        call(&[&listening.url("/sse")]).expect(0, "calc:add:x\n");
    }
}

#[test]
fn results_as_json_are_the_protocols_own() {
    let (sandbox, server) = with(calculator());
    let json = |words: &[&str]| -> Value {
        let said = run(&sandbox, words, &server);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(said.shown.lines().count(), 1, "{said:?}");
        serde_json::from_str(&said.shown).unwrap()
    };
    let listed = json(&["list", "--json"]);
    assert_eq!(listed["tools"][0]["name"], "add");
    assert_eq!(listed["resources"][0]["uri"], "mem://notes");
    assert_eq!(listed["resourceTemplates"][0]["uriTemplate"], "mem://{id}");
    assert_eq!(listed["prompts"][0]["name"], "greet");
    assert_eq!(json(&["info", "greet", "--json"]), listed["prompts"][0]);
    let called = json(&["call", "add", "--args", r#"{"text":"x"}"#, "--json"]);
    assert_eq!(called, json!({ "content": [{ "type": "text", "text": "calc:add:x" }] }));
}

#[test]
fn every_kind_of_content_is_shown() {
    let (sandbox, server) = with(calculator());
    let call = |result: Value| run(&sandbox, &["call", "do", &steps(&json!([{ "answer": result }]))], &server);
    let content = json!([
        { "type": "text", "text": "one\ntwo\u{1b}[2J" },
        { "type": "image", "mimeType": "image/png", "data": "AAAA" },
        { "type": "audio", "mimeType": "audio/wav", "data": "AAA=" },
        { "type": "resource", "resource": { "uri": "mem://a", "text": "inside" } },
        { "type": "resource", "resource": { "uri": "mem://b", "mimeType": "x/y", "blob": "AAAAAAAA" } },
        { "type": "resource_link", "uri": "mem://c", "name": "see" },
        { "type": "hologram" },
    ]);
    call(json!({ "content": content, "structuredContent": { "a": 1 } })).expect(
        0,
        "one\ntwo\u{241b}[2J\n[image image/png, 3 B]\n[audio audio/wav, 2 B]\ninside\n[resource mem://b x/y, 6 B]\n\
         [link mem://c (see)]\n[hologram]\n",
    );
    call(json!({ "content": [], "structuredContent": { "a": [1] } })).expect(0, "{\n  \"a\": [\n    1\n  ]\n}\n");
    let failed = call(json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }));
    failed.expect(1, "no\n");
    failed.expect_failure(1, &["the tool says that it failed"]);
}

#[test]
fn what_cannot_be_meant_is_said_before_it_is_sent() {
    let (sandbox, server) = with(calculator());
    let fails = |words: &[&str], said: &[&str]| run(&sandbox, words, &server).expect_failure(2, said);
    fails(&["call", "ad", "text=x"], &["no tool, prompt or resource `ad`", "did you mean `add`?"]);
    fails(&["info", "--type", "prompt", "gret"], &["no prompt `gret`", "did you mean `greet`?"]);
    fails(&["call", "add", "count=3"], &["`add` needs `text`", "mcp-proxy info add"]);
    fails(&["call", "greet"], &["`greet` needs `who`"]);
    fails(&["call", "greet", "who=a", "whom=b"], &["`greet` takes no `whom`", "did you mean `who`?"]);
    fails(&["call", "add", "text"], &["`text` is no argument"]);
    fails(&["call", "add", "--args", "[1]"], &["--args is no JSON object"]);
    fails(&["call", "mem://notes", "id=1"], &["has no place for `id`"]);
    fails(&["call", "mem://{id}"], &["`mem://{id}` needs `id`"]);
    fails(&["list", "--limit", "0"], &["at least 1"]);
    fails(&["list", "--proxy-tool", "hub"], &["the server has no proxy tool"]);
    assert!(sandbox.seen("calc", "tools/call").is_empty() && sandbox.seen("calc", "prompts/get").is_empty());
    let none: [String; 0] = [];
    run(&sandbox, &["list"], &none).expect_failure(2, &["there is no server to ask", "--url URL"]);
    run(&sandbox, &["list", "--server", "calc"], &none)
        .expect_failure(2, &["no client's file has a server `calc`", "--config FILE"]);
    run(&sandbox, &["list", "--config", "gateway.json", "--server", "cals"], &none)
        .expect_failure(2, &["no server `cals`", "did you mean `calc`?"]);
}

#[test]
fn a_server_is_found_by_its_name_in_the_files_of_clients() {
    let (sandbox, _) = with(calculator());
    let words = command(&sandbox)[1..].to_vec();
    let write = |file: &str, text: String| {
        let path = sandbox.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let entry = |script: &str| json!({ "command": words[0], "args": [words[1], script] });
    write(".cursor/mcp.json", json!({ "mcpServers": { "calc": entry(&words[2]) } }).to_string());
    write(".codex/config.toml", format!("[mcp_servers.other]\ncommand = {:?}\n", words[0]));
    // What a project brings is nothing that anybody has agreed to.
    write(".mcp.json", json!({ "mcpServers": { "evil": entry(&words[2]) } }).to_string());
    let said = run(&sandbox, &["call", "--server", "calc", "add", "text=1"], &[]);
    said.expect(0, "calc:add:1\n");
    assert!(said.said.contains(".cursor/mcp.json"), "{said:?}");
    run(&sandbox, &["list", "--server", "calk"], &[]).expect_failure(2, &["`calk`", "did you mean `calc`?"]);
    run(&sandbox, &["list", "--server", "evil"], &[]).expect_failure(2, &["no client's file has a server `evil`"]);
    // The same name for the same server is no question; for another it is.
    write(".gemini/settings.json", json!({ "mcpServers": { "calc": entry(&words[2]) } }).to_string());
    run(&sandbox, &["call", "--server", "calc", "add", "text=2", "-q"], &[]).expect(0, "calc:add:2\n");
    write(".gemini/settings.json", json!({ "mcpServers": { "calc": entry("another") } }).to_string());
    run(&sandbox, &["list", "--server", "calc"], &[]).expect_failure(2, &["several files", "--config"]);
}

#[test]
fn arguments_come_from_files_and_from_standard_input() {
    let (sandbox, server) = with(calculator());
    std::fs::write(sandbox.path("words"), "from a file").unwrap();
    std::fs::write(sandbox.path("all.json"), r#"{"text":"all","big":123456789012345678901234567890}"#).unwrap();
    run(&sandbox, &["call", "add", "text=@words"], &server).expect(0, "calc:add:from a file\n");
    std::fs::write(sandbox.path("number"), "12345678901234567890\n").unwrap();
    run(&sandbox, &["call", "add", "text=number", "count=@number"], &server).expect(0, "calc:add:number\n");
    let last = sandbox.journal("calc").pop().unwrap().1;
    assert!(last.contains(r#""count":12345678901234567890"#), "{last}");
    run(&sandbox, &["call", "add", "--args", "@all.json"], &server).expect(0, "calc:add:all\n");
    let piped = |words: &[&str], input: &str| {
        let mut command = sandbox.command(words.iter().copied().chain(server.iter().map(String::as_str)));
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    assert_eq!(piped(&["call", "add", "--args", "-"], r#"{"text":"piped"}"#), "calc:add:piped\n");
    assert_eq!(piped(&["call", "add", "text=@-"], "typed"), "calc:add:typed\n");
    let line = sandbox.journal("calc").into_iter().map(|(_, line)| line).rfind(|line| line.contains("\"all\""));
    assert!(line.unwrap().contains("123456789012345678901234567890"), "digits stay");
}

/// What is wrong with the words themselves is found before there is a server.
#[test]
fn a_slip_of_the_pen_starts_nothing() {
    let (sandbox, server) = with(calculator());
    let fails = |words: &[&str], said: &str| {
        run(&sandbox, &[&["call", "add"], words].concat(), &server).expect_failure(2, &[said]);
    };
    fails(&["text"], "`text` is no argument");
    fails(&["text=a", "text=b"], "`text` is given twice");
    fails(&["text=@missing"], "cannot read missing");
    fails(&["count:=x"], "the value of `count` is not JSON");
    fails(&["--args", r#"{"text":1,"text":2}"#], "`text` is given twice");
    assert!(sandbox.starts("calc").is_empty());
    let doubted = run(&sandbox, &["call", "add", "text=a", "cuont=3"], &server);
    doubted.expect(0, "calc:add:a\n");
    doubted.expect_failure(0, &["`cuont` is not a parameter of add; did you mean `count`?"]);
    let quiet = run(&sandbox, &["call", "-q", "add", "text=a", "cuont=3"], &server);
    assert_eq!((quiet.code, quiet.said.as_str()), (Some(0), ""));
}

#[test]
fn an_empty_list_is_told() {
    let (sandbox, server) = with(calculator());
    let none = run(&sandbox, &["list", "--prefix", "zzz"], &server);
    none.expect(0, "");
    none.expect_failure(0, &["there is nothing to list"]);
    assert_eq!(run(&sandbox, &["list", "-q", "--prefix", "zzz"], &server).said, "");
}

#[test]
fn a_list_that_fails_does_not_hide_the_others() {
    let failing = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"no resources today"}}"#;
    let (sandbox, server) = with(calculator().script("on", json!({ "resources/list": [{ "line": failing }] })));
    let listed = run(&sandbox, &["list"], &server);
    listed.expect(
        1,
        "tools\nadd         Add two numbers\ndo          does \u{241b}[2J things\ndelete_all\n\nprompts\ngreet\n",
    );
    listed.expect_failure(1, &["error: cannot list resources: the server answered with error -32603: no resources"]);
    run(&sandbox, &["list", "--type", "tool", "--limit", "1"], &server).expect(0, "add  Add two numbers\nand 2 more\n");
}

#[test]
fn errors_of_a_server_and_its_end_are_told_apart() {
    let (sandbox, server) = with(calculator());
    let call = |step: Value| run(&sandbox, &["call", "do", &steps(&json!([step]))], &server);
    call(json!({ "error": -32603 })).expect_failure(1, &["the server answered with error -32603: as told"]);
    let failed = steps(&json!([{ "error": -32603 }]));
    let failed = run(&sandbox, &["call", "--json", "do", &failed], &server);
    failed.expect(1, "{\"error\":{\"code\":-32603,\"message\":\"as told\"}}\n");
    call(json!({ "exit": 4 })).expect_failure(3, &["the server ended before it answered (exit code 4)"]);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    run(&sandbox, &["list"], &words(&["--", "/no/such/server"])).expect_failure(3, &["cannot start `/no/such/server`"]);
    let dead = words(&["--", "sh", "-c", "echo TOKEN is required >&2; exit 4"]);
    run(&sandbox, &["list"], &dead)
        .expect_failure(3, &["did not introduce itself", "exit code 4", "TOKEN is required"]);
    let gone = Origin::start().url("/mcp");
    run(&sandbox, &["list", "--url", &gone], &[]).expect_failure(3, &["was never reached"]);
}

/// A server that ends at a question of the newest revision is asked in the older way.
#[test]
fn a_server_that_dies_of_the_newest_revision_is_started_again() {
    let (sandbox, server) = with(calculator().script("on", json!({ "server/discover": [{ "exit": 9 }] })));
    run(&sandbox, &["call", "add", "text=x"], &server).expect(0, "calc:add:x\n");
    assert_eq!(sandbox.starts("calc").len(), 2);
}

#[test]
fn rules_judge_what_is_called() {
    let (sandbox, server) = with(calculator());
    std::fs::write(sandbox.path("rules.json"), r#"{"calc": {"delete": "deny"}}"#).unwrap();
    run(&sandbox, &["call", "--rules", "rules.json", "delete_all"], &server).expect_failure(1, &["Permission denied"]);
    assert!(sandbox.seen("calc", "tools/call").is_empty());
    run(&sandbox, &["call", "--rules", "rules.json", "add", "text=x"], &server).expect(0, "calc:add:x\n");
}

#[test]
fn questions_are_declined_and_progress_is_told() {
    let (sandbox, server) = with(calculator());
    let call = |step: Value| run(&sandbox, &["call", "-v", "do", &steps(&json!([step, { "text": "done" }]))], &server);
    let ask = json!({ "ask": { "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": { "message": "who?" } } });
    let asked = run(&sandbox, &["call", "do", &steps(&json!([ask]))], &server);
    asked.expect_failure(0, &["declined what the server asks for: who?"]);
    assert!(asked.shown.contains(r#""action":"decline""#), "{asked:?}");
    let params = json!({ "progressToken": "$token", "progress": 1, "total": 4, "message": "on my way" });
    let told = call(json!({ "say": { "jsonrpc": "2.0", "method": "notifications/progress", "params": params } }));
    told.expect(0, "done\n");
    told.expect_failure(0, &["progress 1/4: on my way", "recorded as "]);
}

#[test]
fn a_call_is_interrupted() {
    let (sandbox, server) = with(calculator());
    let held = steps(&json!([{ "hold": "x" }]));
    let words = ["call", "do", &held].into_iter().map(str::to_owned).chain(server);
    let mut command = sandbox.command(words);
    command.stderr(std::process::Stdio::null());
    let child = command.spawn().unwrap();
    sandbox.until_seen("calc", "tools/call", 1);
    signal(child.id(), rustix::process::Signal::INT);
    assert_eq!(wait(child).code(), Some(130));
    sandbox.nothing_is_left();
    assert_eq!(sandbox.seen("calc", "notifications/cancelled").len(), 1, "what was asked is taken back");
}

#[test]
fn a_call_over_http_is_interrupted() {
    for calculator in [calculator(), calculator().modern()] {
        let (sandbox, _) = with(calculator);
        let script = sandbox.path("calc.script");
        let listening = sandbox.listen_to_fixture(&["upstream", script.to_str().unwrap()], &["--no-record"]);
        let held = steps(&json!([{ "hold": "x" }]));
        let mut command = sandbox.command(["call", "do", &held, "--url", &listening.url("/mcp")]);
        command.stderr(std::process::Stdio::null());
        let child = command.spawn().unwrap();
        sandbox.until_seen("calc", "tools/call", 1);
        signal(child.id(), rustix::process::Signal::INT);
        assert_eq!(wait(child).code(), Some(130));
        sandbox.until_seen("calc", "notifications/cancelled", 1);
    }
}

/// Nobody looks for long for what is of a server that is not there.
#[test]
fn servers_that_are_missing_behind_a_gateway_are_named() {
    for top in [json!({}), json!({ "proxy_tool": { "name": "proxy", "mode": "instead" } })] {
        let sandbox = Sandbox::new();
        let dead = fake("dead").set("command", json!(["/no/such/server"]));
        let gateway = sandbox.serve_http(&[calculator(), dead], top);
        let server = ["--url".into(), gateway.url("/mcp")];
        let listed = run(&sandbox, &["list", "--type", "tool", "--prefix", "calc__a"], &server);
        listed.expect(0, "calc__add  Add two numbers\n");
        listed.expect_failure(0, &["not in this list: dead"]);
        let unknown = ["no tool, prompt or resource `add` (not in its list: dead)", "did you mean `calc__add`?"];
        run(&sandbox, &["call", "add", "text=x"], &server).expect_failure(2, &unknown);
    }
}

#[test]
fn an_address_that_is_not_the_servers_is_told() {
    let (sandbox, _) = with(calculator());
    let script = sandbox.path("calc.script");
    let listening = sandbox.listen_to_fixture(&["upstream", script.to_str().unwrap()], &["--no-record"]);
    let list = |more: &[&str]| run(&sandbox, &[&["list", "--url", &listening.url("/else")], more].concat(), &[]);
    list(&[]).expect_failure(3, &["answered with HTTP status 404", "try /mcp"]);
    list(&["--transport", "streamable-http"]).expect_failure(3, &["answered with HTTP status 404", "try /mcp"]);
}

/// A server as the extension's text shows one. It answers whatever it is called for with the same list of one tool,
/// which is as good as a definition or a result.
#[test]
fn what_is_behind_a_proxy_tool_is_reached_through_it() {
    let behind = json!([{ "name": "calculator_add", "description": "Add two numbers" }]).to_string();
    let resource = json!({ "uri": "proxy:list/tool", "mimeType": "application/json", "text": behind });
    let annotations = json!({ "proxyAction": "list", "proxyType": "tool", "pythonType": "Tool", "many": true });
    let answer = json!({ "content": [{ "type": "resource", "resource": resource, "annotations": annotations }] });
    let own = json!([{ "name": "proxy", "description": "The proxy tool: list, info, call", "inputSchema": {} }]);
    let hub = fake("calc")
        .list("tools", own)
        .script("capabilities", json!({ "tools": {} }))
        .script("on", json!({ "tools/call": [{ "answer": answer }] }));
    for hub in [hub.clone(), hub.modern()] {
        let (sandbox, server) = with(hub);
        run(&sandbox, &["list", "--type", "tool"], &server).expect(0, "calculator_add  Add two numbers\n");
        run(&sandbox, &["list", "--no-proxy-tool"], &server)
            .expect(0, "tools\nproxy  The proxy tool: list, info, call\n");
        run(&sandbox, &["info", "calculator_add"], &server).expect(0, "calculator_add (tool)\n\nAdd two numbers\n");
        run(&sandbox, &["call", "calculator_add", "a=5"], &server).expect(0, &format!("{behind}\n"));
        let last = sandbox.seen("calc", "tools/call").pop().unwrap();
        let arguments = json!({ "action": "call", "type": "tool", "path": "calculator_add", "args": { "a": 5 } });
        assert_eq!((&last["params"]["name"], &last["params"]["arguments"]), (&json!("proxy"), &arguments));
    }
}

/// Whether a gateway shows its proxy tool beside everything or instead of it is nothing that people notice.
#[test]
fn a_gateway_with_a_proxy_tool_is_as_good_as_the_server() {
    for mode in ["instead", "beside"] {
        for calculator in [calculator(), calculator().modern()] {
            let sandbox = Sandbox::new();
            let top = json!({ "proxy_tool": { "name": "proxy", "mode": mode } });
            let gateway = sandbox.serve_http(&[calculator.set("prefix", false)], top);
            everyday(&sandbox, &["--url".into(), gateway.url("/mcp")]);
        }
    }
}

#[test]
fn help() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!("help_call", sandbox.stdout(["call", "--help"]));
}
