//! Rules files as people meet them.

use std::os::unix::fs::PermissionsExt;

use crate::kit::Sandbox;

#[test]
fn check_says_what_it_read() {
    let sandbox = Sandbox::new();
    let native = "[policy]\ndefault = 'deny'\n[[policy.rules]]\nname = 'a'\nmatch = 'op:read'\nverdict = 'allow'\n";
    std::fs::write(sandbox.path("native.toml"), native).unwrap();
    let services = "// of a service\n{\"github\": {\"read\": \"allow\", \"write\": \"allow\", \"delete\": \"deny\"}}";
    std::fs::write(sandbox.path("github.json"), services).unwrap();
    let two = "github: {delete: deny}\nslack: {write: deny}\ndefault: deny\n";
    std::fs::write(sandbox.path("two.yaml"), two).unwrap();
    let checked = sandbox.stdout(["policy", "check", "native.toml", "~/github.json", "two.yaml"]);
    let checked = checked.replace(sandbox.path("").to_str().unwrap(), "[home]/");
    insta::assert_snapshot!(checked, @"
    native.toml: 1 rule, default deny (version 06bc31095aba)
    [home]/github.json: 3 rules, default allow (version 0967ac20b994); those of the service `github`
    two.yaml: 2 rules, default deny (version a8e3ebc7bf18); each tool's by the service that its name begins with (`github`, `slack`); other tools get the default, unless --service names theirs
    ");
    let one = sandbox.stdout(["policy", "check", "two.yaml", "--service", "slack"]);
    insta::assert_snapshot!(one, @"two.yaml: 1 rule, default deny (version a8e3ebc7bf18); those of the service `slack`");
}

#[test]
fn check_shows_every_file_that_is_wrong() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("wrong.json"), "{\"github\": {\"delete\": \"dney\"}}").unwrap();
    std::fs::write(sandbox.path("right.json"), "{\"default\": \"deny\"}").unwrap();
    std::fs::write(sandbox.path("rules.conf"), "x").unwrap();
    std::fs::write(sandbox.path("empty.toml"), " \n").unwrap();
    std::fs::write(sandbox.path("latin.toml"), b"a = '\xe4'").unwrap();
    std::fs::write(sandbox.path("large.toml"), "#".repeat(4 * 1024 * 1024 + 1)).unwrap();
    std::fs::create_dir(sandbox.path("dir.json")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(sandbox.path("pipe.json")).status().unwrap();
    assert!(pipe.success());
    let files = [
        "wrong.json",
        "right.json",
        "rules.conf",
        "empty.toml",
        "latin.toml",
        "large.toml",
        "dir.json",
        "pipe.json",
        "none.json",
    ];
    let output = sandbox.output(["policy", "check"].into_iter().chain(files));
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("right.json: 0 rules, default deny"));
}

#[test]
fn init_writes_a_file_to_begin_with_and_overwrites_none() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.stdout(["policy", "init"]), @"
    wrote rules.toml; change it, then look at it with `mcp-proxy policy check rules.toml`
    use it with `mcp-proxy run --rules rules.toml -- SERVER`
    ");
    let mode = std::fs::metadata(sandbox.path("rules.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0);
    for file in ["rules.yaml", "rules.json", "~/rules.jsonc"] {
        sandbox.stdout(["policy", "init", file]);
    }
    let checked = sandbox.stdout(["policy", "check", "rules.toml", "rules.yaml", "rules.json", "rules.jsonc"]);
    assert_eq!(checked.matches(": 3 rules, default allow").count(), 4, "{checked}");
    std::fs::write(sandbox.path("rules.yml"), "mine").unwrap();
    for (file, why) in
        [("rules.yml", "already, and it stays"), ("rules", "in which format"), ("no/where.toml", "cannot write")]
    {
        let refused = sandbox.output(["policy", "init", file]);
        assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains(why), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(sandbox.path("rules.yml")).unwrap(), "mine");
}
