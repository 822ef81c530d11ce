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
    insta::assert_snapshot!(checked, @r#"
    native.toml: 1 rule, default deny, classify words (version 06bc31095aba)
    [home]/github.json: 3 rules, default allow, classify words (version 0967ac20b994); those of the service `github`
      note: `github.delete` does not go by `destructiveHint: true` alone; `"operations": {"TOOL": "delete"}` makes a delete of a tool, and a rule below `policy` can match `hint:destructive`
    two.yaml: 2 rules, default deny, classify words (version a8e3ebc7bf18); each tool's by the service that its name begins with (`github`, `slack`); a tool of none of them gets the strictest verdict of any (deny), unless --service names its service or the file has `unknown_service`
      note: `github.delete` does not go by `destructiveHint: true` alone; `"operations": {"TOOL": "delete"}` makes a delete of a tool, and a rule below `policy` can match `hint:destructive`
    "#);
    assert!(sandbox.stdout(["policy", "check", "--rules", "native.toml", "two.yaml"]).contains("\ntwo.yaml: 2 rules"));
    assert_eq!(sandbox.output(["policy", "check"]).status.code(), Some(2));
    let one = sandbox.stdout(["policy", "check", "--rules", "two.yaml", "--service", "slack"]);
    insta::assert_snapshot!(one, @"two.yaml: 1 rule, default deny, classify words (version a8e3ebc7bf18); those of the service `slack`, and none of `github`");
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
    assert_eq!(checked.matches(": 4 rules, default allow").count(), 4, "{checked}");
    std::fs::write(sandbox.path("rules.yml"), "mine").unwrap();
    for (file, why) in
        [("rules.yml", "already, and it stays"), ("rules", "in which format"), ("no/where.toml", "cannot write")]
    {
        let refused = sandbox.output(["policy", "init", file]);
        assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains(why), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(sandbox.path("rules.yml")).unwrap(), "mine");
}

#[test]
fn explain_says_what_a_tool_does_and_which_rule_decides() {
    let sandbox = Sandbox::new();
    let rules = r#"
policy:
  default: deny
  operations: {"sync_*": delete}
  rules:
    - {name: sizes, match: 'size>10k', verdict: observe}
    - {name: etc, match: '$.params.arguments.path ^= "/etc"', verdict: deny, message: "Not there."}
    - {name: deletes, match: 'op:delete', verdict: ask, timeout: 30s}
    - {name: reads, match: 'op:read', verdict: allow}
    - {name: thinking, match: 'method:sampling/* server:github', verdict: allow}
"#;
    std::fs::write(sandbox.path("rules.yaml"), rules).unwrap();
    let explain = |args: &[&str]| {
        let output = sandbox.output(["policy", "explain"].iter().chain(args));
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        format!("exit {}\n{said}", output.status.code().unwrap())
    };
    insta::assert_snapshot!(explain(&["get_settings"]), @"
    exit 0
    get_settings is read: verb `get`
    if the server says `destructiveHint: true`: write
    if the server says `readOnlyHint: false`: write
    ");
    insta::assert_snapshot!(explain(&["sync_all", "--rules", "rules.yaml"]), @r#"
    exit 0
    sync_all is delete: set for `sync_*`

    rules.yaml: 5 rules, classify words (version 5c238f1548df)
      depends  sizes    observe  size>10k
      depends  etc      deny     $.params.arguments.path^="/etc"
    → matches  deletes  ask      op:delete
      no       reads    allow    op:read
      no       thinking allow    method:sampling/* and server:github

    decision: it depends on the arguments: deny if `etc` matches, else ask by rule `deletes`; after 30s without an answer deny
    "#);
    let explained = explain(&["read_file", "path=/etc/passwd", "--rules", "~/rules.yaml"]);
    insta::assert_snapshot!(explained.replace(sandbox.path("").to_str().unwrap(), "[home]/"), @r#"
    exit 1
    read_file is read: verb `read`

    [home]/rules.yaml: 5 rules, classify words (version 5c238f1548df)
      no       sizes    observe  size>10k
    → matches  etc      deny     $.params.arguments.path^="/etc"
      no       deletes  ask      op:delete
      matches  reads    allow    op:read
      no       thinking allow    method:sampling/* and server:github

    decision: deny by rule `etc`
    message: Not there.
    "#);
    insta::assert_snapshot!(explain(&["read_file", "path=5", "--rules", "rules.yaml", "--hint", "destructive"]), @r#"
    exit 1
    read_file is write: the server says `destructiveHint: true`; the name alone would be read

    rules.yaml: 5 rules, classify words (version 5c238f1548df)
      no       sizes    observe  size>10k
      no       etc      deny     $.params.arguments.path^="/etc"
      no       deletes  ask      op:delete
      no       reads    allow    op:read
      no       thinking allow    method:sampling/* and server:github

    decision: deny by default
    before the server has listed it: allow by rule `reads`
    "#);
    insta::assert_snapshot!(explain(&["--method", "sampling/createMessage", "--rules", "rules.yaml", "--server", "github"]), @r#"
    exit 0
    sampling/createMessage is no operation

    rules.yaml: 5 rules, classify words (version 5c238f1548df)
      depends  sizes    observe  size>10k
      depends  etc      deny     $.params.arguments.path^="/etc"
      no       deletes  ask      op:delete
      no       reads    allow    op:read
    → matches  thinking allow    method:sampling/* and server:github

    decision: it depends on the arguments: deny if `etc` matches, else allow by rule `thinking`
    "#);
    insta::assert_snapshot!(explain(&["--method", "tools/list", "--rules", "rules.yaml"]), @r#"
    exit 0
    tools/list is no operation; it is needed to talk at all, so rules about everything do not count

    rules.yaml: 5 rules, classify words (version 5c238f1548df)
      depends  sizes    observe  size>10k
      depends  etc      deny     $.params.arguments.path^="/etc"
      no       deletes  ask      op:delete
      no       reads    allow    op:read
      no       thinking allow    method:sampling/* and server:github

    decision: it depends on the arguments: deny if `etc` matches, else allow by default
    "#);
    insta::assert_snapshot!(explain(&["file:///etc", "--method", "resources/read", "--rules", "rules.yaml", "--json"]), @r#"
    exit 0
    {"classify":"words","deciding":["etc","reads"],"default":null,"method":"resources/read","operation":"read","otherwise":[],"recorded":null,"rules":[{"match":"size>10k","matches":"depends","name":"sizes","verdict":"observe"},{"match":"$.params.arguments.path^=\"/etc\"","matches":"depends","name":"etc","verdict":"deny"},{"match":"op:delete","matches":"no","name":"deletes","verdict":"ask"},{"match":"op:read","matches":"yes","name":"reads","verdict":"allow"},{"match":"method:sampling/* and server:github","matches":"no","name":"thinking","verdict":"allow"}],"rules_version":"5c238f1548df","tool":"file:///etc","verdict":null,"why":null}
    "#);
    insta::assert_snapshot!(explain(&[]), @"
    exit 2
    error: whose call is to be explained?

    hint: name the tool, or give --method
    ");
    assert!(explain(&["x", "--hint", "evil"]).contains("expected `destructive`, `readonly`"));
    let hostile = explain(&["evil\u{202e}\u{1b}[2J"]);
    assert!(hostile.contains("evil\u{27e8}U+202E\u{27e9}\u{241b}[2J is write"), "{hostile}");
}

#[test]
fn the_mode_in_force_is_told() {
    let sandbox = Sandbox::new();
    let native =
        "[policy]\nclassify = 'substring'\n[[policy.rules]]\nname = 'a'\nmatch = 'op:delete'\nverdict = 'deny'\n";
    std::fs::write(sandbox.path("native.toml"), native).unwrap();
    let short = r#"{"fs": {"read": "allow", "delete": "deny"}, "classify": "substring", "operations": {"set_preset": "write"}}"#;
    std::fs::write(sandbox.path("short.json"), short).unwrap();
    insta::assert_snapshot!(sandbox.stdout(["policy", "check", "native.toml", "short.json"]), @r#"
    native.toml: 1 rule, default allow, classify substring (version 18e2de51b2c8)
      note: rule "a" does not match a tool for `destructiveHint: true` alone; `match = "op:delete or hint:destructive"` does
    short.json: 2 rules, default allow, classify substring (version cbae0b15db6d); those of the service `fs`
      note: `fs.delete` does not go by `destructiveHint: true` alone; `"operations": {"TOOL": "delete"}` makes a delete of a tool, and a rule below `policy` can match `hint:destructive`
    "#);
    let explain =
        |args: &[&str]| String::from_utf8(sandbox.output(["policy", "explain"].iter().chain(args)).stdout).unwrap();
    insta::assert_snapshot!(explain(&["list_presets", "--rules", "short.json"]), @r#"
    list_presets is delete: `reset` in the name, by `classify = "substring"`

    short.json: 2 rules, classify substring (version cbae0b15db6d)
      no       fs.read   allow    op:read
    → matches  fs.delete deny     op:delete

    decision: deny by rule `fs.delete`
    "#);
    let told = explain(&["set_preset", "--rules", "short.json", "--json"]);
    assert!(told.starts_with(r#"{"classify":"substring","#) && told.contains(r#""operation":"write""#), "{told}");
    assert!(explain(&["list_presets", "--json"]).starts_with(r#"{"classify":null,"#), "no rules, no mode");
}

/// The answer that a server's hints give is told: those that a recording shows, or those that it may give.
#[test]
fn explain_tells_what_hints_would_change() {
    let sandbox = Sandbox::new();
    let rules = "policy:\n  rules:\n    - {name: new, match: 'hint:unknown', verdict: ask, timeout: 9s}\n    - {name: careful, match: 'op>=write', verdict: deny}\n";
    std::fs::write(sandbox.path("rules.yaml"), rules).unwrap();
    let explain = |args: &[&str]| {
        let output = sandbox.output(["policy", "explain"].iter().chain(args));
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        format!("exit {}\n{said}", output.status.code().unwrap())
    };
    insta::assert_snapshot!(explain(&["list_all", "--rules", "rules.yaml"]), @"
    exit 0
    list_all is read: verb `list`

    rules.yaml: 2 rules, classify words (version 15d5ca5620a6)
      no       new     ask      hint:unknown
      no       careful deny     op>=write

    decision: allow by default
    if the server says `destructiveHint: true`: deny by rule `careful`
    if the server says `readOnlyHint: false`: deny by rule `careful`
    before the server has listed it: ask by rule `new`; after 9s without an answer deny
    ");
    insta::assert_snapshot!(explain(&["list_all"]), @"
    exit 0
    list_all is read: verb `list`
    if the server says `destructiveHint: true`: write
    if the server says `readOnlyHint: false`: write
    ");
    insta::assert_snapshot!(explain(&["write_file", "--rules", "rules.yaml", "--hint", "unknown=no"]), @"
    exit 1
    write_file is write: verb `write`

    rules.yaml: 2 rules, classify words (version 15d5ca5620a6)
      no       new     ask      hint:unknown
    → matches  careful deny     op>=write

    decision: deny by rule `careful`
    ");
    let list =
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"list_all","annotations":{"destructiveHint":true}}]}}"#;
    let mut proxy = sandbox.run_script(&["--name", "store"], &format!("read -r line; printf '%s\\n' '{list}'; cat"));
    proxy.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n");
    proxy.json();
    proxy.end();
    let [recording] = sandbox.segments().try_into().expect("one recording");
    let id = &recording.file_stem().unwrap().to_str().unwrap()[..8];
    insta::assert_snapshot!(explain(&["list_all", "--rules", "rules.yaml"]).replace(id, "[id]"), @"
    exit 1
    list_all is write: the server says `destructiveHint: true`; the name alone would be read
    hints: as store listed it in recording [id]

    rules.yaml: 2 rules, classify words (version 15d5ca5620a6)
      no       new     ask      hint:unknown
    → matches  careful deny     op>=write

    decision: deny by rule `careful`
    if the server says `destructiveHint: false`: allow by default
    before the server has listed it: ask by rule `new`; after 9s without an answer deny
    ");
    insta::assert_snapshot!(explain(&["list_all", "--rules", "rules.yaml", "--server", "other"]).lines().last().unwrap(), @"before the server has listed it: ask by rule `new`; after 9s without an answer deny");
    let told = explain(&["list_all", "--rules", "rules.yaml", "--server", "store", "--json"]);
    assert!(told.contains(&format!("\"recorded\":{{\"server\":\"store\",\"session\":\"{id}\"}}")), "{told}");
}
