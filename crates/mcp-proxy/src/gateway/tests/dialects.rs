//! Files of clients, as they stand.

use super::{good, load, own_environment, reached, server, wrong};
use crate::gateway::dialect::Dialect;
use crate::gateway::load::Loaded;

/// Every server of a file: how it is reached, and its environment.
fn servers(loaded: &Loaded) -> Vec<String> {
    let mut lines = Vec::new();
    for server in &loaded.config.settings.servers {
        let reached = reached(server);
        let is_command = matches!(server.target, mcp_transport::connect::ServerTarget::Command { .. });
        let env = if is_command { own_environment(server).join(" ") } else { String::new() };
        let off = if server.enabled { "" } else { " (off)" };
        lines.push(format!("{}: {reached} {env}", server.id).trim_end().to_owned() + off);
    }
    lines
}

#[track_caller]
fn check(name: &str, text: &str, dialect: Dialect, expected: &[&str]) -> Loaded {
    let loaded = good(name, text);
    assert_eq!((loaded.dialect, servers(&loaded)), (dialect, expected.iter().map(|line| line.to_string()).collect()));
    loaded
}

#[test]
fn mcp_servers_of_many_clients() {
    let text = r#"{
      "globalShortcut": "Ctrl+Space",
      "mcpServers": {
        "file system": {"command": "npx", "args": ["-y", "fs", "${HOME}/x", "${workspaceFolder}", "${NOT_SET}"], "env": {"A": "$TOKEN", "B": "${NOT_SET:-b}", "C": "${env:TOKEN}", "D": null}},
        "windsurf": {"serverUrl": "https://w.example/sse"},
        "gemini": {"httpUrl": "https://g.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 30000, "trust": true, "includeTools": ["a"]},
        "cursor": {"url": "http://c.example/mcp", "type": "sse", "args": []},
        "cline": {"command": "node", "args": ["a.js"], "disabled": true, "autoApprove": ["x"], "timeout": 60, "env": {"K": "${NOT_SET}"}},
        "copilot": {"type": "local", "command": "c", "tools": ["*"]},
        "copilot2": {"type": "http", "url": "http://h/", "tools": ["one"]},
        "kiro": {"command": "k", "disabledTools": ["t"], "cwd": "${userHome}/k"}
      }
    }"#;
    let loaded = check(
        "f.json",
        text,
        Dialect::McpServers,
        &[
            "file-system: npx -y fs /home/me/x /srv/project/deep '${NOT_SET}' A=s3cret-from-the-environment B=b C=s3cret-from-the-environment",
            "windsurf: Auto https://w.example/sse",
            "gemini: StreamableHttp https://g.example/mcp authorization=Bearer s3cret-from-the-environment",
            "cursor: Sse http://c.example/mcp",
            "cline: node a.js K=${env:NOT_SET} (off)",
            "copilot: c",
            "copilot2: StreamableHttp http://h/",
            "kiro: k",
        ],
    );
    let seconds = |id| server(&loaded, id).response_timeout.as_secs();
    assert_eq!((seconds("gemini"), seconds("cline"), seconds("kiro")), (30, 60, 60));
    let tools = |id| {
        let server = server(&loaded, id);
        (server.enabled_tools.map(|tools| tools.join(" ")), server.disabled_tools.join(" "))
    };
    assert_eq!(tools("gemini"), (Some("a".into()), String::new()));
    assert_eq!(tools("copilot2"), (Some("one".into()), String::new()));
    assert_eq!(tools("copilot"), (None, String::new()));
    assert_eq!(tools("kiro"), (None, "t".into()));
    let warned = loaded.warnings;
    for told in [
        "4:99: `NOT_SET` is not set",
        "`trust` of `gemini` means nothing",
        "`autoApprove` of `cline`",
        "`NOT_SET` is not set in the environment",
    ] {
        assert!(warned.contains(told), "{told}: {warned}");
    }
    assert!(!warned.contains("globalShortcut"), "{warned}");
}

#[test]
fn a_slip_in_a_member_is_told_with_what_was_meant() {
    let shown = wrong("f.json", r#"{"mcpServers": {"x": {"comand": "npx", "args": []}}}"#);
    assert!(shown.contains("f.json:1:23: `comand` of `x` means nothing to a gateway"), "{shown}");
    assert!(shown.contains("^^^^^^^^ did you mean `command`?"), "{shown}");
    let text = r#"{"mcpServers": {
        "x": {"command": "npx", "arg": ["-y"], "enviroment": {}, "trust": true, "comand": "y"},
        "y": {"comand": "npx", "url": "http://y/", "disabled": true}}}"#;
    let warned = good("f.json", text).warnings;
    for (member, meant) in [
        ("`arg` of `x`", "did you mean `args`?"),
        ("`enviroment` of `x`", "did you mean `environment`?"),
        ("`trust` of `x`", "it is ignored"),
        ("`comand` of `x`", "it is ignored"),
        ("`comand` of `y`", "did you mean `command`?"),
    ] {
        let told = warned.split("\n\n").find(|told| told.contains(member)).unwrap_or_else(|| panic!("{warned}"));
        assert!(told.contains(meant), "{told}");
    }
}

#[test]
fn claude_code_has_projects() {
    let text = r#"{
      "numStartups": 3,
      "mcpServers": {"both": {"command": "old"}, "user": {"type": "stdio", "command": "u", "args": [], "env": {}}},
      "projects": {
        "/srv/project": {"mcpServers": {"both": {"command": "new"}, "mine": {"type": "http", "url": "http://h/"}}, "disabledMcpServers": ["user"]},
        "/srv/other": {"mcpServers": {"not": {"command": "n"}}},
        "/srv": {"mcpServers": {"above": {"command": "a"}}}
      }
    }"#;
    check("f.json", text, Dialect::ClaudeCode, &["user: u (off)", "both: new", "mine: StreamableHttp http://h/"]);
    let off = r#"{"mcpServers": {"a": {"command": "x"}}, "projects": {"/srv": {"disabledMcpServers": ["a"]}}}"#;
    check("f.json", off, Dialect::ClaudeCode, &["a: x (off)"]);
    let elsewhere = text.replace("/srv/project", "/somewhere").replace("\"/srv\"", "\"/w\"");
    check("f.json", &elsewhere, Dialect::ClaudeCode, &["both: old", "user: u"]);
    let shown = wrong("f.json", r#"{"projects": {"/somewhere": {"mcpServers": {"a": {"command": "x"}}}}}"#);
    assert!(shown.contains("there is no server in it"), "{shown}");
}

#[test]
fn gemini_lists_what_it_uses() {
    let servers = r#""mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"type": "http", "url": ""}}"#;
    let excluded = format!(r#"{{{servers}, "mcp": {{"excluded": ["b"]}}}}"#);
    let loaded = check("settings.json", &excluded, Dialect::McpServers, &["a: x", "b: y (off)"]);
    assert!(loaded.warnings.contains("`c` has no address yet"), "{}", loaded.warnings);
    let allowed = format!(r#"{{{servers}, "mcp": {{"allowed": ["b"]}}}}"#);
    check("settings.json", &allowed, Dialect::McpServers, &["a: x (off)", "b: y"]);
}

#[test]
fn amp() {
    let text = r#"{"amp.notifications": true, "amp.mcpServers": {"a": {"command": "x", "env": {"K": "${TOKEN}"}}, "b": {"url": "http://h/"}}}"#;
    check("settings.json", text, Dialect::Amp, &["a: x K=s3cret-from-the-environment", "b: Auto http://h/"]);
}

#[test]
fn vs_code_asks_for_inputs() {
    let text = r#"{
      // of a workspace
      "inputs": [
        {"type": "promptString", "id": "token", "description": "it", "password": true},
        {"type": "pickString", "id": "with-default", "default": "d", "options": ["d", "e"]},
        {"type": "promptString", "id": "given"},
      ],
      "servers": {
        "a": {"type": "stdio", "command": "x", "args": ["${workspaceFolder}", "${input:given}", "${FOO}"], "env": {"T": "${input:token}", "D": "${input:with-default}"}, "envFile": "x"},
        "b": {"type": "http", "url": "http://h/mcp", "headers": {"Authorization": "Bearer ${input:token}"}},
      },
    }"#;
    let expected = [
        "a: x /srv/project/deep 'from ${the} flag' '${FOO}' D=d T=s3cret-from-the-environment",
        "b: StreamableHttp http://h/mcp authorization=Bearer s3cret-from-the-environment",
    ];
    let loaded = check("mcp.json", text, Dialect::VsCode, &expected);
    assert!(loaded.warnings.contains("`envFile` of `a` means nothing"));
    let missing = wrong("mcp.json", &text.replace("input:token", "input:api-key"));
    assert!(missing.starts_with("mcp.json:9:"), "{missing}");
    assert!(missing.contains("set API_KEY in the environment, or give --input api-key=VALUE"), "{missing}");
    let inner = r#"{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "x", "type": "stdio"}}}}"#;
    check("settings.json", inner, Dialect::VsCode, &["a: x"]);
    check(
        "mcp.json",
        r#"{"servers": {"a": {"command": "x", "type": "stdio", "gallery": true}}}"#,
        Dialect::VsCode,
        &["a: x"],
    );
    // With a gateway's keys beside them, they are a gateway's servers.
    let ours = wrong("mcp.json", r#"{"listen": 80, "servers": {"a": {"command": "x", "type": "stdio"}}}"#);
    assert!(ours.contains("unknown key `type`"), "{ours}");
}

#[test]
fn codex() {
    let text = r#"
model = "m"
[mcp_servers.everything]
command = "npx"
args = ["-y", "server-everything"]
env = { A = "${B}" }
env_vars = ["TOKEN", { name = "AWS_SECRET_ACCESS_KEY", source = "local" }]
startup_timeout_sec = 20.5
tool_timeout_sec = 45
enabled_tools = ["echo"]
disabled_tools = ["add"]
supports_parallel_tool_calls = true
[mcp_servers."far.away"]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X = "y" }
env_http_headers = { Z = "TOKEN" }
[mcp_servers.off]
command = "o"
enabled = false
"#;
    let loaded = check(
        "config.toml",
        text,
        Dialect::Codex,
        &[
            "everything: npx -y server-everything A=${B} AWS_SECRET_ACCESS_KEY=not for servers TOKEN=s3cret-from-the-environment",
            "far-away: Auto https://h/mcp authorization=Bearer s3cret-from-the-environment x=y z=s3cret-from-the-environment",
            "off: o (off)",
        ],
    );
    let one = server(&loaded, "everything");
    assert_eq!((one.startup_timeout.as_millis(), one.response_timeout.as_secs()), (20_500, 45));
    assert_eq!((one.enabled_tools, one.disabled_tools), (Some(vec!["echo".into()]), vec!["add".into()]));
    let empty =
        wrong("config.toml", &text.replace("bearer_token_env_var = \"TOKEN\"", "bearer_token_env_var = \"EMPTY\""));
    assert!(empty.starts_with("config.toml:15:24: `EMPTY` is empty in the environment"), "{empty}");
}

#[test]
fn zed_writes_commands_in_two_ways() {
    let text = r#"{
      "theme": "One", // and more
      "context_servers": {
        "old": {"source": "custom", "command": {"path": "node", "args": ["a.js"], "env": {"K": "v"}}, "settings": {}},
        "new": {"command": "npx", "args": ["-y", "x"], "env": {}},
        "far": {"url": "https://h/mcp", "headers": {"A": "b"}},
        "built-in": {"source": "extension", "settings": {}},
      }
    }"#;
    let loaded = check(
        "settings.json",
        text,
        Dialect::Zed,
        &["old: node a.js K=v", "new: npx -y x", "far: Auto https://h/mcp a=b"],
    );
    let warned = loaded.warnings;
    assert!(
        warned.contains("`built-in` is a part of the client") && warned.contains("`settings` of `old`"),
        "{warned}"
    );
}

#[test]
fn opencode() {
    let text = r#"{
      "$schema": "https://opencode.ai/config.json",
      "mcp": {
        "local": {"type": "local", "command": ["npx", "-y", "{env:TOKEN}"], "environment": {"K": "{env:TOKEN}"}, "enabled": true, "timeout": 500},
        "remote": {"type": "remote", "url": "https://h/mcp", "headers": {"Authorization": "Bearer {env:TOKEN}"}, "enabled": false}
      }
    }"#;
    let loaded = check(
        "opencode.json",
        text,
        Dialect::Opencode,
        &[
            "local: npx -y s3cret-from-the-environment K=s3cret-from-the-environment",
            "remote: Auto https://h/mcp authorization=Bearer s3cret-from-the-environment (off)",
        ],
    );
    assert_eq!(server(&loaded, "local").response_timeout.as_millis(), 500);
}

#[test]
fn goose() {
    let text = "
GOOSE_MODEL: m
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    type: builtin
  fs:
    cmd: npx
    args: [-y, fs]
    enabled: true
    envs: {K: v}
    env_keys: [TOKEN]
    name: fs
    timeout: 300
    type: stdio
    available_tools: []
  far:
    type: streamable_http
    uri: https://h/mcp
    headers: {A: b}
    enabled: false
";
    let loaded = check(
        "config.yaml",
        text,
        Dialect::Goose,
        &["fs: npx -y fs K=v TOKEN=s3cret-from-the-environment", "far: StreamableHttp https://h/mcp a=b (off)"],
    );
    assert_eq!(server(&loaded, "fs").response_timeout.as_secs(), 300);
    assert!(loaded.warnings.contains("`developer` is a part of the client"));
}

#[test]
fn continue_has_a_list() {
    let text = "
name: My Config
version: 0.0.1
mcpServers:
  - name: SQLite MCP
    command: npx
    args: ['-y', 'mcp-sqlite', '/path/db']
    env:
      KEY: ${{ secrets.TOKEN }}
  - name: far
    type: sse
    url: https://h/sse
    requestOptions:
      headers: {A: b}
    connectionTimeout: 1500
";
    let loaded = check(
        "config.yaml",
        text,
        Dialect::Continue,
        &["SQLite-MCP: npx -y mcp-sqlite /path/db KEY=s3cret-from-the-environment", "far: Sse https://h/sse a=b"],
    );
    assert_eq!(server(&loaded, "far").startup_timeout.as_millis(), 1500);
    let shown = wrong("config.yaml", "mcpServers:\n  - command: x\n");
    assert!(shown.contains("this server has no `name`"), "{shown}");
}

#[test]
fn mistral_vibe_has_a_list() {
    let text = r#"
[[mcp_servers]]
name = "fetch"
transport = "stdio"
command = "uvx"
args = ["mcp-server-fetch"]
startup_timeout_sec = 15
[[mcp_servers]]
name = "far"
transport = "streamable-http"
url = "http://h:8000/mcp"
api_key_env = "TOKEN"
api_key_header = "X-Key"
api_key_format = "Key {token}"
"#;
    let expected =
        ["fetch: uvx mcp-server-fetch", "far: StreamableHttp http://h:8000/mcp x-key=Key s3cret-from-the-environment"];
    check("config.toml", text, Dialect::Vibe, &expected);
}

#[test]
fn registries_describe_servers() {
    let text = r#"{
      "name": "io.github.user/weather__x", "description": "d", "version": "1.0.2",
      "packages": [
        {"registryType": "mcpb", "identifier": "https://h/x.mcpb"},
        {"registryType": "npm", "identifier": "@user/weather", "version": "1.0.2", "transport": {"type": "stdio"},
         "packageArguments": [{"type": "named", "name": "--units", "value": "metric"}, {"type": "positional", "default": "here"}],
         "environmentVariables": [{"name": "TOKEN", "isRequired": true, "isSecret": true}, {"name": "AWS_SECRET_ACCESS_KEY"}]}
      ],
      "remotes": [{"type": "sse", "url": "https://h/sse", "headers": [{"name": "X", "value": "y"}]}]
    }"#;
    let expected = "weather_x: npx -y @user/weather@1.0.2 --units metric here AWS_SECRET_ACCESS_KEY=not for servers TOKEN=s3cret-from-the-environment";
    check("server.json", text, Dialect::Registry, &[expected]);
    let remote = text.replace("\"npm\"", "\"nuget\"");
    check("server.json", &remote, Dialect::Registry, &["weather_x: Sse https://h/sse x=y"]);
    let docker = text.replace("\"npm\"", "\"oci\"").replace("@user/weather", "ghcr.io/user/weather");
    let run = reached(&server(&good("server.json", &docker), "weather_x"));
    let expected =
        "docker run -i --rm -e TOKEN -e AWS_SECRET_ACCESS_KEY ghcr.io/user/weather:1.0.2 --units metric here";
    assert_eq!(run, expected);
}

#[test]
fn mistakes_of_clients_files_are_shown_where_they_are() {
    for (name, text, place, what) in [
        ("f.json", r#"{"mcpServers": {"a": {"command": 7}}}"#, "1:34", "`command` is text, and this is a number"),
        ("f.json", r#"{"mcpServers": {"a": 7}}"#, "1:22", "a server is a table"),
        ("f.json", r#"{"mcpServers": 7}"#, "1:16", "what has the servers is a table"),
        ("f.json", r#"{"mcpServers": {"a": {}}}"#, "1:17", "this server has neither a `command` nor a `url`"),
        (
            "f.json",
            r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${NOT_SET}"}}}}"#,
            "1:52",
            "`NOT_SET` is not set",
        ),
        ("f.json", r#"{"mcpServers": {"a": {"type": "ws", "url": "http://h"}}}"#, "1:31", "no such `transport`: `ws`"),
        (
            "f.json",
            r#"{"mcpServers": {"a b": {"command": "x"}, "a.b": {"command": "y"}}}"#,
            "1:42",
            "`a b` and `a.b` would both be the server `a-b`",
        ),
        ("f.json", r#"{"mcpServers": {" ": {"command": "x"}}}"#, "1:17", "this server has no name"),
        ("f.json", r#"{"mcpServers": {}, "servers": []}"#, "1:2", "this file has `servers` and `mcpServers`"),
        ("f.json", r#"{"mcpSevers": {}}"#, "1:2", "unknown key `mcpSevers`"),
        ("f.toml", "[mcp_servers.a]\nurl = 'h'\n", "2:7", "`url` cannot be used"),
        (
            "f.json",
            r#"{"name": "x", "packages": [{"registryType": "nuget", "identifier": "y"}]}"#,
            "1:10",
            "nothing that this file offers",
        ),
    ] {
        let shown = wrong(name, text);
        assert!(shown.starts_with(&format!("{name}:{place}: {what}")), "{shown}");
    }
}

#[test]
fn no_secret_of_a_client_is_shown() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "args": ["--token", "hunter2hunter2"], "env": {"API_KEY": "hunter2hunter2"}}, "b": {"url": "http://h/?api_key=hunter2hunter2", "headers": {"Authorization": "Bearer hunter2hunter2"}}}}"#;
    let shown = crate::gateway::show::shown(&good("f.json", text).gateway).json();
    assert!(!shown.contains("hunter2"), "{shown}");
    let Err(failed) = load("f.json", &text.replace("\"x\"", "7")) else { panic!("it is wrong") };
    assert!(!failed.contains("hunter2"), "{failed}");
}
