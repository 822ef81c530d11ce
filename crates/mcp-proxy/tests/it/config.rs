//! A gateway's configuration as people meet it.

use serde_json::Value;

use crate::kit::{Sandbox, proxy_program};

const NATIVE: &str = r#"
listen = "127.0.0.1:0"
auth_token = "${env:GATEWAY_TOKEN:-abc}"
rules = "rules.json"

[[servers]]
id = "files"
command = ["npx", "-y", "server-filesystem", "--api-key", "hunter2hunter2"]

[[servers]]
id = "far"
url = "https://far.example/mcp"
enabled = false
"#;
const CODEX: &str =
    "[mcp_servers.everything]\ncommand = \"npx\"\nargs = [\"-y\", \"server-everything\"]\nscopes = []\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let write = |name: &str, text: &str| std::fs::write(sandbox.path(name), text).unwrap();
    write("gateway.toml", NATIVE);
    write("rules.json", r#"{"files": {"delete": "deny"}}"#);
    write("config.toml", CODEX);
    std::fs::create_dir(sandbox.path("bin")).unwrap();
    std::os::unix::fs::symlink(proxy_program(), sandbox.path("bin/npx")).unwrap();
    write(
        "wrong.json",
        "{\"servers\": [\n  {\"id\": \"a\", \"comand\": \"x\"},\n  {\"id\": \"b__c\", \"command\": \"x\"}\n]}",
    );
    sandbox
}

#[test]
fn check_says_what_a_file_is_and_which_servers_it_has() {
    let sandbox = sandbox();
    let check = |files: &[&str]| {
        let mut command = sandbox.command(["config", "check"].iter().chain(files));
        command.env("PATH", sandbox.path("bin")).output().unwrap()
    };
    let output = check(&["gateway.toml", "wrong.json", "~/config.toml", "none.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    let home = sandbox.path("");
    let plain = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(home.to_str().unwrap(), "[home]/");
    insta::assert_snapshot!("config_check", plain(output.stdout));
    insta::assert_snapshot!("config_check_wrong", plain(output.stderr));
    let rules = r#"{"files": {"delete": "dney"}}"#;
    std::fs::write(sandbox.path("rules.json"), rules).unwrap();
    let output = check(&["gateway.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("rules.json:1:22"), "{output:?}");
}

#[test]
fn check_looks_up_the_programs_of_servers() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path("plain"), "no program").unwrap();
    let there = proxy_program().to_str().unwrap();
    let file = format!(
        "servers:\n- id: there\n  command: {there}\n- id: nowhere\n  command: [npx-nonesuch, -y]\n\
         - id: off\n  command: npx-nonesuch\n  enabled: false\n- id: plain\n  command: ./plain\n\
         - id: own\n  command: npx\n  env: {{PATH: {}}}\n",
        sandbox.path("bin").display()
    );
    std::fs::write(sandbox.path("programs.yaml"), file).unwrap();
    let output = sandbox.output(["config", "check", "programs.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let wrong: Vec<&str> = said.lines().filter(|line| line.starts_with("programs.yaml:")).collect();
    let expected = [
        "programs.yaml:5:13: the program `npx-nonesuch` is not on PATH",
        "programs.yaml:10:12: the program `./plain` cannot be executed",
    ];
    assert_eq!(wrong, expected, "{said}");
    assert!(said.contains("error: a gateway starts without these servers of programs.yaml"), "{said}");
    // All of them are listed, and the gateway says the same.
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("\n  there    stdio") && shown.contains("\n  nowhere  stdio"), "{shown}");
    let mut serve = sandbox.command(["serve", "--config", "programs.yaml"]);
    let served = serve.stdin(std::process::Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&served.stderr);
    assert!(served.status.success(), "{said}");
    for line in [
        "mcp-proxy: warning: server \"nowhere\" cannot start: the program `npx-nonesuch` is not on PATH; install it",
        "mcp-proxy: warning: server \"plain\" cannot start: the program `./plain` cannot be executed; ",
    ] {
        assert!(said.contains(line), "{said}");
    }
    assert_eq!(said.matches("cannot start: the program").count(), 2, "{said}");
}

#[test]
fn a_file_that_does_not_exist_is_told_before_its_name_is_judged() {
    let said = String::from_utf8(sandbox().output(["config", "check", "nofile"]).stderr).unwrap();
    assert!(said.contains("cannot read the configuration in nofile: ") && !said.contains("format"), "{said}");
}

#[test]
fn arguments_in_the_place_of_a_program_are_pointed_out() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path("c.json"), r#"{"mcpServers": {"a": {"command": "npx -y foo"}}}"#).unwrap();
    let said = String::from_utf8(sandbox.output(["config", "check", "c.json"]).stderr).unwrap();
    assert!(said.contains("the program `npx -y foo` does not exist"), "{said}");
    assert!(said.contains("its arguments belong into `args`"), "{said}");
}

#[test]
fn show_prints_what_counts_in_any_format() {
    let sandbox = sandbox();
    for (flag, name) in [("--json", "again.json"), ("--toml", "again.toml"), ("--yaml", "again.yaml")] {
        let shown = sandbox.stdout(["config", "show", "gateway.toml", flag]);
        assert!(!shown.contains("hunter2") && shown.contains("${env:GATEWAY_TOKEN:-abc}"), "{shown}");
        std::fs::write(sandbox.path(name), &shown).unwrap();
        assert_eq!(sandbox.stdout(["config", "show", name]), shown);
    }
    let ours = sandbox.stdout(["config", "show", "config.toml"]);
    assert!(
        ours.contains("[[servers]]\nid = \"everything\"\ncommand = [\"npx\", \"-y\", \"server-everything\"]"),
        "{ours}"
    );
}

#[test]
fn the_schema_holds_what_is_shown() {
    let sandbox = sandbox();
    let schema: Value = serde_json::from_str(&sandbox.stdout(["config", "schema"])).unwrap();
    let shown: Value = serde_json::from_str(&sandbox.stdout(["config", "show", "gateway.toml", "--json"])).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&shown));
    let mut wrong = shown.clone();
    wrong["servers"][0]["comand"] = "x".into();
    assert!(!validator.is_valid(&wrong));
}

#[track_caller]
fn check_refused(sandbox: &Sandbox, args: &[&str], why: &str) {
    let output = sandbox.output(args);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains(why), "{args:?}: {told}");
}

#[test]
fn a_gateway_begins_with_nothing_that_is_wrong() {
    let sandbox = sandbox();
    for form in [&["serve"][..], &[]] {
        let with = |args: &[&'static str]| [form, args].concat();
        check_refused(&sandbox, &with(&["--config", "wrong.json"]), "did you mean `command`?");
        check_refused(&sandbox, &with(&["--config=none.json"]), "there is no such file");
        let open = ["--config", "config.toml", "--listen", "0.0.0.0:0"];
        check_refused(&sandbox, &with(&open), "so clients need a token");
        check_refused(&sandbox, &with(&["--config", "gateway.toml", "--rules", "rules.json"]), "--rules gives others");
        check_refused(&sandbox, &with(&["--config", "config.toml", "--env", "A=B"]), "are for a single server");
        check_refused(&sandbox, &with(&["--config", "config.toml", "--token-file", "none"]), "cannot read the token");
    }
    // With a target, it is the rules of a single server as ever.
    check_refused(&sandbox, &["--target", "x", "--config", "wrong.json"], "what is allowed of `servers`");
}
