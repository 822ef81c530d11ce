//! The faces of a gateway's servers: the command line, the listener's own paths, and the log.

use mcp_control::api::{EventsQuery, Hand, LeaseRequest, ServerState};
use serde_json::{Value, json};

use crate::bridge_kit::{INITIALIZED, initialize};
use crate::http_kit::{Listening, bare, get, post};
use crate::kit::{Sandbox, fixture_program, until};

/// `mcp-proxy serve` with these servers, each the fixture in some mode.
fn gateway(sandbox: &Sandbox, servers: &[(&str, &[&str])], more: Value) -> Listening {
    let command = |words: &[&str]| {
        let fixture = fixture_program().to_string_lossy().into_owned();
        [fixture].into_iter().chain(words.iter().map(|&word| word.to_owned())).collect::<Vec<_>>()
    };
    let servers: Vec<Value> =
        servers.iter().map(|(id, words)| json!({ "id": id, "command": command(words) })).collect();
    let mut config = more;
    config["servers"] = servers.into();
    std::fs::write(sandbox.path("gateway.json"), config.to_string()).unwrap();
    Listening::start(sandbox.command(["serve", "--config", "gateway.json", "--listen", "127.0.0.1:0"]))
}

/// A client that has begun.
struct Client<'a> {
    gateway: &'a Listening,
    session: String,
}

impl<'a> Client<'a> {
    #[track_caller]
    fn begin(gateway: &'a Listening) -> Self {
        let opened = gateway.client().ask(&post("/mcp", &[], initialize("2025-11-25")));
        let session = format!("Mcp-Session-Id: {}", opened.head.get("mcp-session-id").expect("a session begins"));
        let told = gateway.client().ask(&post("/mcp", &[&session], INITIALIZED));
        assert_eq!(told.status(), 202, "{told:?}");
        Self { gateway, session }
    }

    #[track_caller]
    fn ask(&self, method: &str, params: Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        self.gateway.client().ask(&post("/mcp", &[&self.session], call)).json()
    }

    fn leave(self) {
        assert!(self.gateway.client().ask(&bare("DELETE", "/mcp", &[&self.session])).status() < 300);
    }

    fn has_tool(&self, name: &str) -> bool {
        let listed = self.ask("tools/list", json!({}));
        listed["result"]["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
    }

    fn pid(&self, server: &str) -> Value {
        self.ask("tools/call", json!({ "name": format!("{server}__pid") }))["result"]["content"][0]["text"].clone()
    }
}

/// What `servers list --json` says of one.
fn server(sandbox: &Sandbox, id: &str) -> Value {
    let listed = sandbox.stdout(["servers", "list", "--json"]);
    let mut servers = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    servers.find(|server| server["id"] == id).unwrap_or_else(|| panic!("no server {id}: {listed}"))
}

#[track_caller]
fn refused(sandbox: &Sandbox, args: &[&str], code: i32, words: &str) {
    let refused = sandbox.output(args);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!((refused.status.code(), said.contains(words)), (Some(code), true), "{args:?}: {said}");
}

#[test]
fn servers_are_listed_restarted_disabled_and_enabled() {
    let sandbox = Sandbox::new();
    let gateway = gateway(&sandbox, &[("one", &["tools"]), ("two", &["tools"])], json!({}));
    let client = Client::begin(&gateway);
    until("both servers are there", || client.has_tool("one__pid") && client.has_tool("two__pid"));
    until("it shows", || ["one", "two"].iter().all(|id| server(&sandbox, id)["state"] == "ready"));
    let table = sandbox.stdout(["servers", "list"]);
    assert!(table.starts_with("ID ") && table.contains("\none ") && table.contains(" legacy "), "{table}");

    let before = client.pid("one");
    assert!(sandbox.stdout(["servers", "restart", "one"]).contains("server one was ended"));
    until("another process answers", || {
        let after = client.pid("one");
        after.is_string() && after != before
    });
    until("it is counted", || server(&sandbox, "one")["restarts"] == 1);

    assert_eq!(sandbox.stdout(["servers", "disable", "two"]), "server two is disabled\n");
    assert_eq!(server(&sandbox, "two")["state"], "disabled");
    until("nothing of it is offered", || !client.has_tool("two__pid"));
    assert!(client.has_tool("one__pid"));
    refused(&sandbox, &["servers", "restart", "two"], 1, "server `two` is disabled");
    assert!(sandbox.stdout(["servers", "enable", "two"]).starts_with("server two is enabled"));
    until("it is offered again", || client.has_tool("two__pid"));

    refused(&sandbox, &["servers", "restart", "three"], 1, "there is no server `three`");
    refused(&sandbox, &["servers", "enable", "two", "--instance", "nobody"], 3, "nobody");
    refused(&sandbox, &["servers", "disable"], 2, "NAME");
    gateway.end();
}

#[test]
fn whoever_has_the_lease_decides_about_servers() {
    let sandbox = Sandbox::new();
    let gateway = gateway(&sandbox, &[("one", &["tools"])], json!({}));
    let face = mcp_control::Client::new(crate::control_kit::address(&sandbox));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let request = LeaseRequest { holder: "somebody".into(), take: false };
    let token = runtime.block_on(face.take_lease(&request)).unwrap().token;
    let query = EventsQuery { lease: Some(token.clone()), ..EventsQuery::default() };
    let _events = runtime.block_on(face.events(&query)).unwrap();
    until("the server is known", || !runtime.block_on(face.servers()).unwrap().servers.is_empty());
    refused(&sandbox, &["servers", "disable", "one"], 1, "somebody");
    let face = face.acting_as(Hand { lease: Some(token), ..Hand::default() });
    assert_eq!(runtime.block_on(face.disable_server("one")).unwrap().state, ServerState::Disabled);
    assert!(sandbox.stdout(["servers", "enable", "one", "--take"]).contains("enabled"));
    gateway.end();
}

#[test]
fn a_gateway_says_whether_it_is_well() {
    let sandbox = Sandbox::new();
    let servers: [(&str, &[&str]); 2] = [("fine", &["tools"]), ("broken", &["last-words", "3"])];
    let gateway = gateway(&sandbox, &servers, json!({ "structured_logging": true }));
    let ask = |method: &str, path: &str, headers: &[&str]| gateway.client().ask(&bare(method, path, headers));
    let alive = ask("GET", "/healthz", &[]);
    assert_eq!((alive.status(), &alive.body[..]), (200, &b"ok"[..]));
    // Nobody has needed them yet.
    let ready = ask("GET", "/readyz", &[]);
    assert_eq!((ready.status(), ready.json()), (200, json!({ "ready": true, "servers": [] })));
    let client = Client::begin(&gateway);
    until("what is broken is found", || ask("GET", "/readyz", &[]).status() == 503);
    let ready = ask("GET", "/readyz", &[]).json();
    let missing = ready["servers"].as_array().unwrap();
    assert_eq!((&ready["ready"], missing.len(), &missing[0]["id"]), (&false.into(), 1, &"broken".into()), "{ready}");
    assert!(!ready.to_string().contains("TOKEN"), "{ready}");
    let head = ask("HEAD", "/readyz", &[]);
    assert_eq!((head.status(), head.body.len()), (503, 0));
    assert_eq!(ask("GET", "/healthz", &[]).status(), 200);
    assert_eq!(ask("DELETE", "/healthz", &[]).status(), 405);
    assert_eq!(ask("GET", "/healthz", &["Origin: http://evil.example"]).status(), 403);
    let evil = b"GET /readyz HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(gateway.client().ask(evil).status(), 403);
    until("its last words are shown", || {
        let broken = server(&sandbox, "broken");
        broken["last_words"].as_str().is_some_and(|words| words.contains("TOKEN is required"))
            && broken["why"].is_string()
    });
    sandbox.stdout(["servers", "disable", "broken"]);
    until("who takes no part is not missed", || ask("GET", "/readyz", &[]).status() == 200);
    drop(client);
    let said = gateway.end();
    let lines: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let tells = |is_it: &dyn Fn(&Value) -> bool| assert!(lines.iter().any(is_it), "{said}");
    tells(&|line| line["level"] == "info" && line["message"].as_str().unwrap().starts_with("listening on"));
    tells(&|line| line["level"] == "warn" && line["server"] == "broken");
    tells(&|line| {
        line["target"] == "stderr" && line["server"] == "broken" && line["message"] == "Error: TOKEN is required"
    });
    assert!(lines.iter().all(|line| line["timestamp"].as_str().unwrap().ends_with('Z')), "{said}");
    let loggers = [("mcp-proxy", Value::Null), ("mcp-proxy.server", "stderr".into())];
    let is_named =
        |line: &Value| loggers.iter().any(|(logger, from)| line["logger"] == *logger && line["target"] == *from);
    assert!(lines.iter().all(is_named), "{said}");
}

/// What such a gateway says from a client's arrival to its own end.
fn said(log_level: &str, structured: bool) -> String {
    let sandbox = Sandbox::new();
    let mut top = json!({ "log_level": log_level, "structured_logging": structured });
    let fixture = fixture_program();
    top["servers"] = json!([
        { "id": "fine", "command": [fixture.to_str(), "tools"] },
        { "id": "broken", "command": [fixture.to_str(), "last-words", "3"] },
        { "id": "none", "command": ["/no/such/program"] },
        { "id": "off", "url": "http://127.0.0.1:1/mcp?key=secret", "enabled": false },
    ]);
    std::fs::write(sandbox.path("gateway.json"), top.to_string()).unwrap();
    let gateway = Listening::start(sandbox.command(["serve", "--config", "gateway.json", "--listen", "127.0.0.1:0"]));
    let client = Client::begin(&gateway);
    until("the tools of one are there", || client.has_tool("fine__pid"));
    until("two have failed", || ["broken", "none"].iter().all(|id| server(&sandbox, id)["why"].is_string()));
    let why = server(&sandbox, "none")["why"].to_string();
    assert!(why.contains("could not be started") && !why.contains("retry in"), "the time beside it counts down: {why}");
    until("the last words were read", || server(&sandbox, "broken")["last_words"].is_string());
    client.leave();
    gateway.end()
}

#[test]
fn a_gateway_lists_its_servers_and_says_whose_a_line_is() {
    let said = said("info", false);
    let listed = "mcp-proxy: 4 servers: fine (stdio), broken (stdio), none (stdio), off (HTTP, disabled)\n";
    assert!(said.contains(listed) && !said.contains("secret"), "{said}");
    assert!(said.contains("\n[broken] Error: TOKEN is required\n"), "{said}");
    assert!(said.contains("\nmcp-proxy: error: server \"none\": cannot start `/no/such/program`: "), "{said}");
}

#[test]
fn debug_says_more_than_info() {
    let lines = |level: &str| -> Vec<Value> {
        said(level, true).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let is_there = |lines: &[Value], level: &str, server: Option<&str>, words: &str| {
        lines.iter().any(|line| {
            let message = line["message"].as_str().unwrap();
            line["level"] == level && line.get("server").and_then(Value::as_str) == server && message.contains(words)
        })
    };
    let debug = lines("DEBUG");
    for (server, words) in [
        (None, "(test) has come, with a handshake"),
        (None, "has left"),
        (Some("fine"), "is ready, after a handshake"),
        (Some("fine"), "has answered tools/list with "),
    ] {
        assert!(is_there(&debug, "debug", server, words), "{words}: {debug:#?}");
    }
    assert!(is_there(&debug, "error", Some("none"), "cannot start `/no/such/program`"), "{debug:#?}");
    let info = lines("INFO");
    assert!(info.iter().all(|line| line["level"] != "debug"), "{info:#?}");
    let error = lines("ERROR");
    assert!(is_there(&error, "error", Some("none"), "cannot start `/no/such/program`"), "{error:#?}");
}

#[test]
fn ps_counts_clients_and_servers_and_shows_the_port() {
    let sandbox = Sandbox::new();
    let gateway = gateway(&sandbox, &[("one", &["tools"]), ("two", &["tools"])], json!({}));
    let counted = || {
        let instance = sandbox.shown_instance();
        (instance["clients"].as_u64().unwrap(), instance["servers"].as_u64().unwrap())
    };
    assert_eq!(counted(), (0, 2));
    let (first, second) = (Client::begin(&gateway), Client::begin(&gateway));
    assert_eq!(counted(), (2, 2));
    let shown = sandbox.stdout(["ps"]);
    let port = gateway.url("").rsplit_once(':').unwrap().1.to_owned();
    assert!(shown.lines().nth(1).unwrap().contains(&format!("  {port}  ")), "{shown}");
    first.leave();
    assert_eq!(counted(), (1, 2));
    second.leave();
    assert_eq!(counted(), (0, 2));
    gateway.end();
}

#[test]
fn whether_it_is_well_is_told_without_a_token() {
    let sandbox = Sandbox::new();
    let gateway = gateway(&sandbox, &[("one", &["tools"])], json!({ "auth_token": "sesame-of-some-length" }));
    let status = |path: &str| gateway.client().ask(&get(path, &["Accept: text/event-stream"])).status();
    assert_eq!((status("/healthz"), status("/readyz"), status("/mcp")), (200, 200, 401));
    gateway.end();
}

#[test]
fn an_instance_with_one_server_is_no_gateway() {
    let sandbox = Sandbox::new();
    let fixture = fixture_program();
    let proxy = sandbox.listen(["--transport", "stdio", "--target-command", &fixture.to_string_lossy()]);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(proxy.client().ask(&get(path, &[])).status(), 404);
    }
    until("it can be attached to", || sandbox.output(["held"]).status.success());
    refused(&sandbox, &["servers", "list"], 1, "is no gateway");
    refused(&sandbox, &["servers", "restart", "x"], 1, "is no gateway");
    proxy.end();
}
