//! Configurations in the gateway's own form.

mod agreement;
mod dialects;
mod mutations;

use std::time::Duration;

use mcp_engine::entrance::Entrance;
use mcp_gateway::settings::{Instance, Notifications, ProxyToolMode, ProxyToolSettings, Speaks, Start, UnwrapTool};
use mcp_proxy_tool::shape::Dialect;
use mcp_transport::connect::{ServerTarget, StdioMode, UrlTransport};

use super::ServerSettings;
use super::load::{self, Loaded};
use super::world::World;
use super::{reference, show};
use crate::cli::Listen;
use crate::config::Source;
use crate::report::Level;

pub(super) const VARIABLES: [(&str, &str); 9] = [
    ("HOME", "/home/me"),
    ("PATH", "/bin"),
    ("LC_ALL", "C"),
    ("XDG_RUNTIME_DIR", "/run/me"),
    ("TOKEN", "s3cret-from-the-environment"),
    ("EMPTY", ""),
    ("BLANK", " \n"),
    ("AWS_SECRET_ACCESS_KEY", "not for servers"),
    ("BASH_FUNC_x", "() { :; }"),
];

pub(super) fn world() -> World {
    World {
        variables: VARIABLES.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: "/srv/project/deep".into(),
        inputs: vec![("given".into(), "from ${the} flag".into())],
    }
}

pub(super) fn load(name: &str, text: &str) -> Result<Loaded, String> {
    load::of(&Source::for_test(name, text), &world()).map_err(|failure| failure.to_string())
}

#[track_caller]
pub(super) fn good(name: &str, text: &str) -> Loaded {
    load(name, text).unwrap_or_else(|why| panic!("{why}"))
}

/// The mistakes of a file, without what is said around them.
#[track_caller]
pub(super) fn wrong(name: &str, text: &str) -> String {
    let Err(shown) = load(name, text) else { panic!("this is right: {text}") };
    let mistakes = shown.split_once("\n\n").expect("what is wrong follows").1;
    mistakes.split("\n\nhint:").next().unwrap().to_owned()
}

/// The only mistake is this one, at this place, with that help.
#[track_caller]
fn check_wrong(name: &str, text: &str, place: &str, what: &str, help: &str) {
    let shown = wrong(name, text);
    assert!(shown.starts_with(&format!("{name}:{place}: {what}")), "{shown}");
    assert!(shown.contains(help), "{shown}");
    assert_eq!(shown.matches(&format!("{name}:")).count(), 1, "{shown}");
}

pub(super) fn server(loaded: &Loaded, id: &str) -> ServerSettings {
    loaded.config.settings.servers.iter().find(|server| &*server.id == id).expect("there is such a server").clone()
}

/// `program arg…`, or the address.
pub(super) fn reached(server: &ServerSettings) -> String {
    match &server.target {
        ServerTarget::Command { command, .. } => {
            let words = std::iter::once(&command.program).chain(&command.args);
            shell_words::join(words.map(|word| word.to_str().unwrap()))
        }
        ServerTarget::Url { target, transport, .. } => {
            let headers: Vec<String> =
                target.added.iter().map(|(name, value)| format!(" {name}={}", value.to_str().unwrap())).collect();
            format!("{transport:?} {target}{}", headers.concat())
        }
    }
}

/// What a server gets besides what every one does.
pub(super) fn own_environment(server: &ServerSettings) -> Vec<String> {
    let ServerTarget::Command { command, .. } = &server.target else { panic!("it is an address") };
    assert!(command.env_only);
    let pairs = command.env.iter().map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()));
    pairs.filter(|pair| !VARIABLES[..4].contains(pair)).map(|(name, value)| format!("{name}={value}")).collect()
}

/// Every key of the first seed, and those that came later.
pub(super) const EVERYTHING: &str = r#"{
  "name": "team", "instructions": "Be kind.",
  // comments are fine
  "servers": [
    {"id": "everything", "command": ["npx", "-y", "server-everything"], "env": {"KEY": "${env:TOKEN}", "PORT": 80, "ON": true},
     "pass_env": ["AWS_SECRET_ACCESS_KEY", "NOT_SET"], "cwd": "sub", "startup_timeout": 5, "shutdown_grace": 0.5,
     "stdio_mode": "content-length", "start": "eager", "instance": "per-client", "protocol": "legacy", "idle_stop": "5m",
     "in_flight": 3, "queue": 0, "rate_limit_per_minute": 600, "tools": {"echo": {"rate_limit_per_minute": 6}},
     "response_timeout": "500ms", "response_cap": "1m", "cancel_grace": "3s", "exclusive": false, "prefix": false, "transport": "stdio",
     "enabled_tools": ["e*"], "disabled_tools": ["echo"], "unwrap_proxy_tool": "mcp:proxy"},
    {"id": "far", "url": "https://far.example/mcp?x=1", "transport": "streamableHttp", "headers": {"X-Key": "k", "Authorization": "Bearer ${env:TOKEN}"}, "disabled": false},
    {"id": "off", "command": "server", "args": ["--x", 1], "enabled": false, "env": {"A": "${env:NOT_SET}"}},
  ],
  "listen": "0.0.0.0:8900", "log_level": "WARNING", "response_timeout": 90, "cancel_grace": 0, "auth_token": "abc", "rate_limit_per_minute": 120,
  "structured_logging": true, "healthcheck_interval": 0, "healthcheck_timeout": 3, "initialize_wait": 1, "list_wait": 2,
  "page_size": 10, "in_flight_per_client": 11, "notifications": ["far"], "drain": "1s", "max_message_bytes": 4096,
  "tokens": [{"name": "ci", "token": "${env:TOKEN}", "servers": ["far", "e*"], "tools": ["far__*"], "rate_limit_per_minute": 5}],
  "proxy_tool": {"name": "all", "mode": "instead", "dialect": "magg"}, "rules": "rules.toml", "policy": null
}"#;

#[test]
fn every_key_is_read() {
    let loaded = good("dir/f.json", EVERYTHING);
    let config = &loaded.config;
    let one = server(&loaded, "everything");
    assert_eq!(reached(&one), "npx -y server-everything");
    assert_eq!(
        own_environment(&one),
        ["AWS_SECRET_ACCESS_KEY=not for servers", "KEY=s3cret-from-the-environment", "ON=true", "PORT=80"]
    );
    let ServerTarget::Command { command, framing, shown } = &one.target else { panic!("it is a command") };
    assert_eq!(command.cwd.as_deref(), Some("/srv/project/deep/dir/sub".as_ref()));
    assert_eq!((*framing, shown.as_str()), (StdioMode::ContentLength, "npx -y server-everything"));
    assert_eq!((one.start, one.instance, one.speaks), (Start::Eager, Instance::PerClient, Speaks::Legacy));
    let ms = Duration::from_millis;
    assert_eq!((one.startup_timeout, one.shutdown_grace), (ms(5_000), ms(500)));
    assert_eq!((one.response_timeout, one.response_cap, one.idle_stop), (ms(500), ms(60_000), Some(ms(300_000))));
    assert_eq!((one.cancel_grace, one.exclusive), (ms(3_000), false));
    assert_eq!((one.in_flight, one.queue, one.prefix, one.enabled), (3, 0, false, true));
    let far = server(&loaded, "far");
    assert_eq!(
        reached(&far),
        "StreamableHttp https://far.example/mcp x-key=k authorization=Bearer s3cret-from-the-environment"
    );
    assert_eq!((far.cancel_grace, far.exclusive), (ms(0), false));
    assert_eq!((far.startup_timeout, far.response_timeout, far.in_flight), (ms(15_000), ms(90_000), 256));
    let off = server(&loaded, "off");
    assert_eq!((reached(&off).as_str(), off.enabled), ("server --x 1", false));
    let settings = &config.settings;
    assert_eq!((settings.initialize_wait, settings.list_wait, settings.drain), (ms(1_000), ms(2_000), ms(1_000)));
    assert_eq!((settings.healthcheck_interval, settings.healthcheck_timeout), (None, ms(3_000)));
    assert_eq!((settings.page_size, settings.in_flight_per_client), (10, 11));
    assert_eq!(settings.notifications, Notifications::Only(vec!["far".into()]));
    let entrance = &config.entrance;
    assert_eq!(entrance.rate_limit_per_minute.map(|limit| limit.get()), Some(120));
    assert_eq!(entrance.auth_token.as_deref(), Some("abc"));
    let ci = &entrance.tokens[0];
    assert_eq!((ci.name.as_str(), ci.token.as_str()), ("ci", "s3cret-from-the-environment"));
    let patterns = |patterns: &Option<Vec<String>>| patterns.as_ref().map(|all| all.join(" "));
    assert_eq!((patterns(&ci.servers).as_deref(), patterns(&ci.tools).as_deref()), (Some("far e*"), Some("far__*")));
    assert_eq!(ci.rate_limit_per_minute.map(|limit| limit.get()), Some(5));
    let (server_limit, tool_limit) = (&entrance.servers[..], &entrance.tools[..]);
    assert!(matches!(server_limit, [limit] if limit.server == "everything" && limit.per_minute.get() == 600));
    assert!(matches!(tool_limit, [limit] if limit.tool == "echo" && limit.per_minute.get() == 6));
    let patterns = |patterns: &Vec<String>| patterns.join(" ");
    assert_eq!(one.enabled_tools.as_ref().map(patterns).as_deref(), Some("e*"));
    assert_eq!((patterns(&one.disabled_tools).as_str(), far.enabled_tools), ("echo", None));
    let proxy_tool = ProxyToolSettings { name: "all".into(), mode: ProxyToolMode::Instead, dialect: Dialect::Magg };
    assert_eq!(settings.proxy_tool, Some(proxy_tool));
    assert_eq!(one.unwrap_proxy_tool, Some(UnwrapTool::Named("mcp:proxy".into())));
    assert_eq!(far.unwrap_proxy_tool, None);
    assert!(Entrance::new(entrance).is_ok_and(|entrance| entrance.asks_for_token()));
    assert_eq!(config.listen, Some(Listen::At("0.0.0.0:8900".parse().unwrap())));
    assert_eq!(config.rules.as_deref(), Some("/srv/project/deep/dir/rules.toml".as_ref()));
    assert_eq!((config.log_level, config.structured_logging, config.message_bytes_max), (Level::Warn, true, 4096));
    assert_eq!((settings.name.as_str(), settings.instructions.as_deref()), ("team", Some("Be kind.")));
    assert!(!format!("{config:?}").contains("abc"), "a token is never printed");
}

#[test]
fn servers_may_be_a_table_and_defaults_are_filled_in() {
    for (name, text) in [
        ("f.toml", "[servers.a]\ncommand = ['x']\n[servers.b]\nurl = 'http://h/mcp'\n"),
        ("f.yaml", "servers:\n  a: {command: x}\n  b:\n    url: http://h/mcp\n"),
        ("f.json", r#"{"servers": {"a": {"command": ["x"]}, "b": {"id": "b", "url": "http://h/mcp", "env": null}}}"#),
    ] {
        let loaded = good(name, text);
        assert_eq!(reached(&server(&loaded, "a")), "x");
        assert_eq!(reached(&server(&loaded, "b")), "Auto http://h/mcp");
        assert_eq!(server(&loaded, "a").startup_timeout, Duration::from_secs(30));
        assert!(!Entrance::new(&loaded.config.entrance).unwrap().asks_for_token() && loaded.config.listen.is_none());
        assert!(loaded.warnings.is_empty());
    }
}

#[test]
fn a_proxy_tool_is_asked_for_in_one_word_or_more() {
    let read = |tool: &str| good("f.toml", &format!("proxy_tool = {tool}\n{A}")).config.settings.proxy_tool;
    let tool = |name: &str, mode| Some(ProxyToolSettings { name: name.into(), mode, dialect: Dialect::Extension });
    assert_eq!(read("true"), tool("proxy", ProxyToolMode::Beside));
    assert_eq!(read("false"), None);
    assert_eq!(read("'mcp:proxy'"), tool("mcp:proxy", ProxyToolMode::Beside));
    assert_eq!(read("{mode = 'instead'}"), tool("proxy", ProxyToolMode::Instead));
    assert_eq!(read("{}"), tool("proxy", ProxyToolMode::Beside));
    let unwrapped = |tool: &str| {
        let loaded = good("f.toml", &format!("{A}unwrap_proxy_tool = {tool}\n"));
        server(&loaded, "a").unwrap_proxy_tool
    };
    assert_eq!(unwrapped("true"), Some(UnwrapTool::Found));
    assert_eq!(unwrapped("false"), None);
    assert_eq!(unwrapped("'x'"), Some(UnwrapTool::Named("x".into())));
}

const A: &str = "[servers.a]\ncommand = ['x']\n";

#[test]
fn mistakes_are_shown_where_they_are() {
    let of = |more: &str| format!("[servers.a]\n{more}\n");
    let top = |more: &str| format!("{more}\n{A}");
    let check = |text: &str, place: &str, what: &str, help: &str| check_wrong("f.toml", text, place, what, help);
    check(&of("comand = ['x']\nurl = 'http://h'"), "2:1", "unknown key `comand`", "did you mean `command`?");
    check(&of("command = ['x']\nstart = 'lasy'"), "3:9", "no such `start`: `lasy`", "did you mean `lazy`?");
    check(&of("command = ['x']\nurl = 'http://h'"), "3:7", "a server has a `command` or a `url`", "leave out either");
    check(&of("prefix = true"), "1:10", "this server has neither", "it needs one");
    check(&of("command = []"), "2:11", "the command is empty", "begins with a program");
    check(&of("command = 7"), "2:11", "`command` is text, and this is a number", "^");
    check(&of("command = 'x'\nheaders = {A = 'b'}"), "3:1", "`headers` is for an address", "leave it out");
    check(&of("url = 'http://h'\nargs = ['b']"), "3:1", "`args` is for a command", "leave it out");
    check(&of("url = 'http://h'\ntransport = 'stdio'"), "3:13", "this `transport` does not go", "an address speaks");
    check(&of("command = 'x'\ntransport = 'sse'"), "3:13", "this `transport` does not go", "a command speaks");
    check(&of("url = 'ftp://h'"), "2:7", "`url` cannot be used: only http://", "begins with http://");
    check(&of("url = 'http://u:p@h'"), "2:7", "`url` cannot be used: a name and a password", "`headers`");
    check(&of("url = 'http://h'\nheaders = {'a b' = 'c'}"), "3:20", "`a b`: that is no header name", "^");
    check(&of("url = 'http://h'\nheaders = {TE = 'c'}"), "3:17", "`TE`: it says how a request is sent", "^");
    check(&of("command = 'x'\nqueue = -1"), "3:9", "`queue` is a whole number from 0", "^");
    check(&of("command = 'x'\nresponse_timeout = '5 parsecs'"), "3:20", "`response_timeout` is no duration", "500ms");
    check(
        &of("command = 'x'\nexclusive = true\ninstance = 'per-client'"),
        "4:12",
        "`per-client` does not go with `exclusive`",
        "one process",
    );
    check(&of("command = 'x'\nresponse_cap = 1"), "3:16", "`response_cap` is less than", "progress");
    check(&of("command = 'x'\nenabled = true\ndisabled = true"), "4:1", "`enabled` says something else", "either");
    check(&of("command = 'x'\nenv = {'A=B' = 'c'}"), "3:8", "no environment can have such", "leave it out");
    check(&of("command = 'x'\ntools = {t = {rate = 1}}"), "3:15", "unknown key `rate`", "rate_limit_per_minute");
    check(&of("command = 'x'\nid = 'b'"), "3:6", "this server is called `a` already", "the key is the id");
    check(&top("listn = 80"), "1:1", "unknown key `listn`", "did you mean `listen`?");
    check(&top("listen = 'everywhere'"), "1:10", "nobody can connect there", "`stdio`, a port");
    check(&top("auth_token = ''"), "1:14", "`auth_token` is empty", "write something");
    check(&top("auth_token = 'a b'"), "1:14", "`auth_token` has something in it", "without blanks");
    check(&top("notifications = ['b']"), "1:18", "there is no server `b`", "did you mean `a`?");
    check(&top("notifications = 'none'"), "1:17", "no such `notifications`", "it is one of");
    check(&top("rules = 'a'\npolicy = 'b'"), "2:10", "`policy` does not go with `rules`", "leave out either");
    check(&top("proxy_tool = 'a b'"), "1:14", "no tool can be called `a b`", "`proxy` would do");
    check(&top("proxy_tool = {mode = 'insted'}"), "1:22", "no such `mode`: `insted`", "did you mean `instead`?");
    check(&top("proxy_tool = {nmae = 'x'}"), "1:15", "unknown key `nmae`", "did you mean `name`?");
    check(&of("command = 'x'\nunwrap_proxy_tool = 1"), "3:21", "`unwrap_proxy_tool` is text", "^");
    check(&top("tokens = [{name = 'a'}]"), "1:12", "this token has no `token`", "a `name` and a `token`");
    check(
        &top("tokens = [{name = 'a', token = 'x', servers = ['c']}]"),
        "1:48",
        "there is no server `c`",
        "did you mean `a`?",
    );
    check(
        &top("tokens = [{name='a', token='x'}, {name='a', token='y'}]"),
        "1:35",
        "there is another token called `a`",
        "it is on line 1",
    );
    check(
        &top("tokens = [{name='a', token='x'}, {name='b', token='x'}]"),
        "1:35",
        "two tokens are the same",
        "the first is on line 1",
    );
    check(&top("tokens = [{name='anonymous', token='x'}]"), "1:12", "no token can be called `anonymous`", "others");
    check(
        &top("auth_token='x'\ntokens = [{name='a', token='x'}]"),
        "2:12",
        "this token is the same as",
        "who shows it",
    );
    check(&top(&format!("auth_token = '{}'", "x".repeat(5000))), "1:14", "`auth_token` is longer than 4096", "^");
    check("listen = 80", "1:1", "there are no `servers`", "a gateway is for servers");
    check("servers = []", "1:11", "there is no server in it", "at least one");
    check("servers = 'a'", "1:11", "`servers` is a list or a table", "^");
    check("servers = [{command = ['x']}]", "1:13", "this server has no `id`", "begin with it");
    check("sevrers = []", "1:1", "unknown key `sevrers`", "did you mean `servers`?");
    check("colour = 'red'", "1:1", "there are no servers in this file", "`mcpServers`");
    check(&top("servers.a = 1"), "2:10", "this is not TOML: duplicate key", "^");
    check_wrong(
        "f.yaml",
        "auth_token:\nservers: {a: {command: x}}",
        "1:11",
        "`auth_token` is text, and this is nothing",
        "^",
    );
}

#[test]
fn ids_are_as_they_have_to_be() {
    for (id, help) in
        [("a__b", "`a_b` would do"), ("a b", "`a-b` would do"), ("a_", "`a-` would do"), ("", "use letters")]
    {
        check_wrong(
            "f.toml",
            &format!("[[servers]]\nid = '{id}'\ncommand = 'x'"),
            "2:6",
            &format!("`{id}` cannot be an id"),
            help,
        );
    }
    let two = "[[servers]]\nid = 'a'\ncommand = 'x'\n[[servers]]\nid = 'a'\ncommand = 'y'\n";
    check_wrong("f.toml", two, "5:6", "there is another server called `a`", "it is on line 2");
}

#[test]
fn all_mistakes_are_shown_at_once() {
    let shown =
        wrong("f.json", r#"{"servers": [{"id": "a b", "comand": "x"}, {"id": "c"}], "listen": {}, "page_size": 0}"#);
    assert_eq!(shown.matches("f.json:").count(), 5, "{shown}");
}

#[test]
fn an_empty_secret_is_never_sent() {
    let check = |text: &str, place: &str, what: &str, help: &str| check_wrong("f.toml", text, place, what, help);
    let top = |value: &str| format!("auth_token = '{value}'\n{A}");
    check(&top("${env:NOT_SET}"), "1:15", "`NOT_SET` is not set in the environment", "set it");
    check(&top("${env:EMPTY}"), "1:15", "`EMPTY` is empty in the environment", "set it");
    check(&top("${env:BLANK}"), "1:15", "`BLANK` is empty in the environment", "set it");
    check(&top("${env:EMPTY:-}"), "1:14", "`auth_token` is empty", "write something");
    check(&top("x${evn:TOKEN}"), "1:16", "nothing is known by `${evn:…}`", "did you mean `${env:…}`?");
    check(&top("${file:/nowhere/at/all}"), "1:15", "the file `/nowhere/at/all` is not there", "directory of this file");
    check(&top("${file:/dev/null}"), "1:15", "the file `/dev/null` is no regular file", "^");
    let header = |value: &str| format!("[servers.a]\nurl = 'http://h/'\nheaders.Authorization = '{value}'");
    check(&header("Bearer ${env:EMPTY}"), "3:33", "`EMPTY` is empty", "set it");
    check(&header("Bearer ${env:EMPTY:-}"), "3:25", "`Authorization`: the value is empty", "would be sent");
    check(&header("Bearer "), "3:25", "`Authorization`: the value is empty", "would be sent");
    check(&header(""), "3:25", "`Authorization`: the value is empty", "would be sent");
}

#[test]
fn what_stands_for_something_is_replaced_by_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("key"), "from a file\r\n").unwrap();
    std::fs::write(dir.path().join("blank"), "\n\n").unwrap();
    std::fs::write(dir.path().join("long"), "x".repeat(70_000)).unwrap();
    std::fs::write(dir.path().join("binary"), b"\xff").unwrap();
    let name = dir.path().join("f.json");
    let name = name.to_str().unwrap();
    let of = |value: &str| format!(r#"{{"servers": {{"a": {{"command": ["x", "{value}"]}}}}}}"#);
    let check = |value: &str, expected: &str| {
        let loaded = good(name, &of(value));
        let server = server(&loaded, "a");
        let ServerTarget::Command { command, shown, .. } = &server.target else { panic!("it is a command") };
        assert_eq!(command.args[0].to_str(), Some(expected), "{value}");
        assert!(!shown.contains("s3cret") && !shown.contains("from a file"), "{shown}");
    };
    check("a${env:TOKEN}b${env:HOME}", "as3cret-from-the-environmentb/home/me");
    check("${file:key}", "from a file");
    check(&format!("${{file:{}/key}}", dir.path().display()), "from a file");
    check("${env:NOT_SET:-other}", "other");
    check("${env:EMPTY:-}", "");
    check("$${env:TOKEN} $$${x} $$", "${env:TOKEN} $${x} $$");
    // What is a shell's stays a shell's.
    check("${VAR} ${VAR:-x} ${#a} $x ${", "${VAR} ${VAR:-x} ${#a} $x ${");
    for (value, what) in [
        ("blank", "is empty"),
        ("long", "is longer than 64 KiB"),
        ("binary", "is not text"),
        (".", "is no regular file"),
    ] {
        let shown = wrong(name, &of(&format!("${{file:{value}}}")));
        assert!(shown.contains(what), "{shown}");
    }
    let warned = good(name, &of("${file:key}")).warnings;
    assert!(warned.contains("others on this machine can read `key`"), "{warned}");
}

#[test]
fn a_server_that_takes_no_part_does_no_harm() {
    let text = "[servers.a]\ncommand = 'x'\n[servers.b]\nenabled = false\nurl = '${env:NOT_SET}'\nheaders.A = '${env:EMPTY}'\n[servers.c]\nenabled = false\ncommand = ['${env:NOT_SET}']\n";
    let loaded = good("f.toml", text);
    assert!(!server(&loaded, "b").enabled && !server(&loaded, "c").enabled);
    let warned = loaded.warnings;
    assert!(warned.contains("f.toml:5:8: `NOT_SET` is not set") && warned.contains("f.toml:9:13"), "{warned}");
}

#[test]
fn rules_can_stand_in_the_file() {
    let policy = "[policy]\ndefault = 'deny'\n[[policy.rules]]\nname = 'r'\nmatch = 'op:read'\nverdict = 'VERDICT'\n";
    let text = format!("{A}{policy}");
    let loaded = good("f.toml", &text.replace("VERDICT", "allow"));
    assert_eq!(loaded.config.rules.as_deref(), Some("/srv/project/deep/f.toml".as_ref()));
    check_wrong("f.toml", &text.replace("VERDICT", "alow"), "8:11", "no such verdict: `alow`", "did you mean `allow`?");
    // Whoever governs by them reads them again, and meets a gateway's keys.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.toml");
    std::fs::write(&path, text.replace("VERDICT", "allow")).unwrap();
    assert!(crate::policy::summary_of(&path, &["a".into()]).unwrap().0.starts_with("1 rule, default deny"));
}

#[test]
fn what_is_worth_knowing_is_told() {
    let warned = good("f.toml", "[servers.a]\ncommand = 'npx -y x'\nenv.API_KEY = ''\n").warnings;
    assert!(warned.contains("f.toml:2:11: this is taken for the name of one program"), "{warned}");
    assert!(warned.contains("f.toml:3:15: `API_KEY` is empty"), "{warned}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.toml");
    std::fs::write(&path, format!("auth_token = 'abc'\n{A}")).unwrap();
    for (mode, is_told) in [(0o644, true), (0o600, false)] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_ne!(load::load(&path, &world()).unwrap().warnings.is_empty(), is_told);
    }
}

/// What is shown can be read again, and comes to the same.
#[test]
fn what_counts_can_be_shown_and_read_again() {
    let loaded = good("f.json", EVERYTHING);
    let shown = show::shown(&loaded.gateway);
    for (name, text) in [("f.json", shown.json()), ("f.toml", shown.toml()), ("f.yaml", shown.yaml())] {
        assert!(!text.contains("s3cret") && !text.contains("\"abc\""), "{text}");
        let again = good(name, &text);
        assert_eq!(show::shown(&again.gateway), shown, "{text}");
        let one = server(&again, "everything");
        assert_eq!(own_environment(&one).len(), 4, "{text}");
    }
}

#[test]
fn the_shown_form_is_as_people_expect_it() {
    let text = "[servers.a]\ncommand = ['npx', '--api-key', 'hunter2hunter2', '--x=${env:TOKEN}']\n[servers.a.env]\nGITHUB_TOKEN = 'abc'\n'odd name' = 'tab\\there'\n[servers.b]\nurl = 'http://h/mcp'\n";
    insta::assert_snapshot!("shown_toml", show::shown(&good("f.toml", text).gateway).toml());
    insta::assert_snapshot!("shown_yaml", show::shown(&good("f.toml", text).gateway).yaml());
    insta::assert_snapshot!("shown_json", show::shown(&good("f.toml", text).gateway).json());
}

#[test]
fn servers_get_no_more_of_the_environment_than_they_need() {
    let loaded = good("f.toml", A);
    let ServerTarget::Command { command, .. } = server(&loaded, "a").target else { panic!("it is a command") };
    let names: Vec<&str> = command.env.iter().map(|(name, _)| name.to_str().unwrap()).collect();
    assert_eq!((names, command.env_only), (vec!["HOME", "LC_ALL", "PATH", "XDG_RUNTIME_DIR"], true));
}

#[test]
fn transports_have_many_names() {
    for (word, transport) in [
        ("auto", UrlTransport::Auto),
        ("http", UrlTransport::StreamableHttp),
        ("streamable_http", UrlTransport::StreamableHttp),
        ("streamable-http", UrlTransport::StreamableHttp),
        ("sse", UrlTransport::Sse),
    ] {
        let loaded = good("f.toml", &format!("[servers.a]\nurl = 'http://h/'\ntransport = '{word}'"));
        let ServerTarget::Url { transport: found, .. } = server(&loaded, "a").target else {
            panic!("it is an address")
        };
        assert_eq!(found, transport, "{word}");
    }
}

/// `UPDATE_DOCS=1 cargo test -p mcp-proxy-workbench gateway` writes the page anew.
#[test]
fn the_reference_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
    let page = reference::markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap();
    assert!(found == page, "docs/config.md is not what the table of keys says");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "t").unwrap();
    let example = example.replace("~/.tracker-token", dir.path().join("token").to_str().unwrap());
    good("f.toml", &example.replace("GATEWAY_TOKEN", "TOKEN"));
}
