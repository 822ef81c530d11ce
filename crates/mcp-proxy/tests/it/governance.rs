//! The short form that governs a server: `--target CMD --rules FILE`, of both programs.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::kit::{Running, Sandbox, fixture_program, until};

const PROGRAMS: [&str; 2] = [env!("CARGO_BIN_EXE_mcp-proxy"), env!("CARGO_BIN_EXE_mcp-governance-proxy")];

fn command(sandbox: &Sandbox, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(sandbox.path("")).env("HOME", sandbox.path(""));
    command.env_remove("MCP_PROXY_STATE_DIR").env("NO_COLOR", "1");
    command
}

fn call(proxy: &mut Running, id: u64, tool: &str) -> serde_json::Value {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    proxy.send(format!("{call}\n").as_bytes());
    proxy.json()
}

/// A file as a person begins it, and a client's config that names it below the home.
#[test]
fn a_server_is_governed() {
    for program in PROGRAMS {
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path("mcp-rules")).unwrap();
        let rules = "// ~/mcp-rules/github.json\n{\n  \"github\": {\n    \"read\": \"allow\",\n    \"write\": \"allow\",\n    \"delete\": \"deny\"\n  }\n}\n";
        std::fs::write(sandbox.path("mcp-rules/github.json"), rules).unwrap();
        let target = format!("sh -c 'echo started >&2; exec {} answer'", fixture_program().display());
        let args = ["--target", &target, "--rules", "~/mcp-rules/github.json", "--env", "GITHUB_TOKEN=n0b0dys-t0k3n"];
        let mut proxy = Running::start(command(&sandbox, program, &args));
        let denied = call(&mut proxy, 1, "github_delete_repo");
        assert_eq!(denied["error"]["code"], -32000, "{denied}");
        let text = denied["error"]["message"].as_str().unwrap();
        assert!(text.starts_with("Permission denied") && text.contains("github.delete"), "{text}");
        assert_eq!(denied["error"]["data"]["server"], "github");
        assert_eq!(call(&mut proxy, 2, "github_list_repos")["result"]["method"], "tools/call");
        let (status, errors) = proxy.end();
        assert!(status.success(), "{errors}");
        assert!(errors.lines().any(|line| line == "started"), "the server's own words stay visible: {errors}");
        // What the server needs is nobody else's business.
        assert!(!errors.contains("n0b0dys") && !is_in_any_file(&sandbox.path(".local"), "n0b0dys-t0k3n"));
    }
}

#[test]
fn short_flags_do_what_long_ones_do() {
    for program in PROGRAMS {
        let sandbox = Sandbox::new();
        let rules = r#"{ "github": { "delete": "deny" }, "slack": { "write": "deny" } }"#;
        std::fs::write(sandbox.path("rules.json"), rules).unwrap();
        std::fs::write(sandbox.path("lines"), "kept\n").unwrap();
        let target = format!("{} answer", fixture_program().display());
        let args = ["-t", &target, "-r", "rules.json", "-s", "github", "-l", "~/lines"];
        let mut proxy = Running::start(command(&sandbox, program, &args));
        assert_eq!(call(&mut proxy, 1, "delete_repo")["error"]["data"]["server"], "github");
        assert!(call(&mut proxy, 2, "list_repos")["result"].is_object());
        let (status, errors) = proxy.end();
        assert!(status.success(), "{errors}");
        assert_eq!(errors.lines().filter(|line| *line == "Proxy ready").count(), 1, "{errors}");
        let log = std::fs::read_dir(sandbox.state().audit()).unwrap().next().unwrap().unwrap().path();
        let lines = std::fs::read_to_string(sandbox.path("lines")).unwrap();
        assert_eq!(lines.strip_prefix("kept\n").unwrap(), std::fs::read_to_string(log).unwrap());
        assert!(lines.contains("delete_repo") && lines.contains("list_repos"), "{lines}");
    }
}

#[test]
fn a_server_that_does_not_start_is_not_ready() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("rules.json"), "{\"default\": \"allow\"}").unwrap();
    let args = ["-t", "nonesuch-program", "-r", "rules.json"];
    let output = command(&sandbox, PROGRAMS[1], &args).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!errors.contains("Proxy ready") && errors.contains("cannot start"), "{errors}");
}

/// Clients start programs with hardly any environment.
#[test]
fn the_home_is_known_without_its_variable() {
    let sandbox = Sandbox::new();
    let state = sandbox.path("state");
    let args = ["-t", "cat", "-r", "~/no such rules.json", "--state-dir", state.to_str().unwrap()];
    let output = command(&sandbox, PROGRAMS[1], &args).env_remove("HOME").stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("/no such rules.json") && !errors.contains('~'), "{errors}");
}

fn is_in_any_file(dir: &Path, text: &str) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in_any_file(&path, text);
        }
        path.is_file() && std::fs::read(&path).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// The environment reaches the server, and no command line but our own, which whoever started us wrote.
#[test]
fn the_environment_is_the_servers_alone() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("rules.json"), "{\"default\": \"allow\"}").unwrap();
    // Other runs of the tests are none of ours. The pattern does not match itself.
    let run = std::process::id();
    let (secret, pattern) = (format!("k3pt-s3cr3t-{run}"), format!("k3pt-s3cr[3]t-{run}"));
    let look = format!("for p in $(pgrep -f {pattern}); do tr '\\0' ' ' < /proc/$p/cmdline; echo; done > found");
    let target = format!("sh -c {}", quoted(&format!("{look}; printf %s \"$SECRET\" > got; mv got seen; cat")));
    let env = format!("SECRET={secret}");
    let mut args = vec!["--target", &target, "--rules=rules.json", "--no-record", "--quiet"];
    args.extend(["--env", &env, "--name", "x", "--state-dir", "state"]);
    let proxy = Running::start(command(&sandbox, PROGRAMS[1], &args));
    // A server gets two seconds once its client has left, and looking may take longer.
    until("the server has looked around", || sandbox.path("seen").exists());
    let (status, errors) = proxy.end();
    assert!(status.success(), "{errors}");
    assert_eq!(std::fs::read_to_string(sandbox.path("seen")).unwrap(), secret);
    let found = std::fs::read_to_string(sandbox.path("found")).unwrap();
    assert!(found.lines().all(|line| line.starts_with(PROGRAMS[1])), "{found}");
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(!sandbox.path("state/sessions").exists());
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn what_the_form_needs_is_said() {
    let sandbox = Sandbox::new();
    let outcome = |program: &str, args: &[&str]| {
        let mut command = command(&sandbox, program, args);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap().replace(sandbox.path("").to_str().unwrap(), "[home]/");
        format!("exit {}\n{said}", output.status.code().unwrap())
    };
    insta::assert_snapshot!("governance_help", outcome(PROGRAMS[1], &["--help"]));
    assert_eq!(outcome(PROGRAMS[1], &[]), outcome(PROGRAMS[1], &["--help"]).replace("exit 0", "exit 2"));
    insta::assert_snapshot!(outcome(PROGRAMS[1], &["--version"]), @"
    exit 0
    mcp-governance-proxy 0.1.0
    ");
    insta::assert_snapshot!(outcome(PROGRAMS[1], &["--target", "cat"]), @"
    exit 2
    error: the following required arguments were not provided:
      --rules <FILE>

    Usage: mcp-governance-proxy --target <CMD|URL> --rules <FILE>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(outcome(PROGRAMS[0], &["--rules", "rules.json"]), @"
    exit 2
    error: the following required arguments were not provided:
      --target <CMD|URL>

    Usage: mcp-proxy --target <CMD|URL> --rules <FILE>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(outcome(PROGRAMS[0], &["--target=cat", "--rules", "none.json"]), @"
    exit 2
    error: cannot read the rules in [home]/none.json: there is no such file
    ");
    insta::assert_snapshot!(outcome(PROGRAMS[1], &["--target", "'cat", "--rules", "none.json"]), @"
    exit 2
    error: --target cannot be split into words: missing closing quote
    ");
    assert!(outcome(PROGRAMS[0], &["--bogus"]).contains("unexpected argument '--bogus'"));
}

/// What `--version` of a program says, however it is called.
fn version(sandbox: &Sandbox, program: &str, path: &Path) -> String {
    let mut command = command(sandbox, program, &["--version"]);
    let output = command.env("PATH", path).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_small_program_finds_the_large_one_however_it_is_called() {
    let sandbox = Sandbox::new();
    let installed = sandbox.path("installed");
    std::fs::create_dir(&installed).unwrap();
    for program in PROGRAMS.map(Path::new) {
        std::fs::hard_link(program, installed.join(program.file_name().unwrap()))
            .or_else(|_| std::fs::copy(program, installed.join(program.file_name().unwrap())).map(drop))
            .unwrap();
    }
    let elsewhere = sandbox.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in ["mcp-governance-proxy", "governed"] {
        std::os::unix::fs::symlink(installed.join("mcp-governance-proxy"), elsewhere.join(name)).unwrap();
    }
    let called = |program: &str, path: &Path| version(&sandbox, program, path);
    for said in [
        called("mcp-governance-proxy", &installed),
        called("mcp-governance-proxy", &elsewhere),
        called("governed", &elsewhere),
        called("./installed/mcp-governance-proxy", Path::new("")),
        called("elsewhere/governed", Path::new("")),
    ] {
        assert_eq!(said, "mcp-governance-proxy 0.1.0\n");
    }
}

#[test]
fn the_small_program_tells_what_it_misses() {
    let sandbox = Sandbox::new();
    std::fs::copy(PROGRAMS[1], sandbox.path("mcp-governance-proxy")).unwrap();
    let output = command(&sandbox, "./mcp-governance-proxy", &["--help"]).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap().replace(sandbox.path("").to_str().unwrap(), "[home]/");
    insta::assert_snapshot!(errors, @r#"
    error: `mcp-proxy` not found: no "[home]/mcp-proxy"

    hint: `mcp-governance-proxy` runs the `mcp-proxy` in its own directory; install both there
    "#);
    assert!(output.status.code() == Some(3) && output.stdout.is_empty());
}

/// `pkill mcp-governance-proxy` finds it; the kernel keeps fifteen letters of a name.
#[test]
fn processes_bear_the_name_of_their_program() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("rules.json"), "{\"default\": \"allow\"}").unwrap();
    for (program, name) in PROGRAMS.into_iter().zip(["mcp-proxy\n", "mcp-governance-\n"]) {
        let target = format!("{} answer", fixture_program().display());
        let mut proxy = Running::start(command(&sandbox, program, &["-t", &target, "-r", "rules.json", "-q"]));
        call(&mut proxy, 1, "any");
        assert_eq!(std::fs::read_to_string(format!("/proc/{}/comm", proxy.pid())).unwrap(), name);
        assert!(proxy.end().0.success());
    }
}
