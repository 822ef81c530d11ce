use mcp_engine::policy::rules::Rules;
use mcp_filter::Subject;

use super::*;
use crate::policy::file;

fn read(text: &str, naming: Naming<'_>) -> Result<Read, Failure> {
    file::of(&Source::for_test("rules.json", text), naming)
}

struct Call<'a>(&'a str, &'a str);

struct CallOf<'a>(&'a str, Call<'a>);

impl Subject for CallOf<'_> {
    fn server(&self) -> Option<std::borrow::Cow<'_, str>> {
        Some(self.0.into())
    }

    fn operation(&self) -> Option<&str> {
        Some(self.1.1)
    }
}

impl Subject for Call<'_> {
    fn tool(&self) -> Option<std::borrow::Cow<'_, str>> {
        Some(self.0.into())
    }

    fn operation(&self) -> Option<&str> {
        Some(self.1)
    }
}

/// The rule that decides about a call.
fn decides<'a>(rules: &'a Rules, tool: &str, operation: &str) -> Option<&'a str> {
    rules.rules.iter().find(|rule| rule.filter.matches(&Call(tool, operation))).map(|rule| &*rule.name)
}

#[track_caller]
fn check(rules: &Rules, tool: &str, operation: &str, expected: Option<&str>) {
    assert_eq!(decides(rules, tool, operation), expected, "{tool} {operation}");
}

const TWO: &str = r#"{"github": {"delete": "deny", "read": "allow"}, "slack": {"write": "deny"}, "default": "deny"}"#;

#[test]
fn what_tools_do_can_be_said() {
    let read = |operations: &str| {
        read(&format!(r#"{{"fs": {{"delete": "deny"}}, "operations": {operations}}}"#), Naming::default())
    };
    let rules = read(r#"{"sync_*": "delete", "_comment": "ours", "get_rid": "admin"}"#).unwrap();
    let of = |tool| rules.rules.classifier.classify(tool, Default::default()).operation.name();
    assert_eq!([of("sync_all"), of("get_rid"), of("get_x")], ["delete", "admin", "read"]);
    assert!(rules.remarks.is_empty(), "whoever says what tools do needs no advice: {:?}", rules.remarks);
    assert_eq!(rules.rules.server.as_deref(), Some("fs"));
    // A service can be called so, too.
    let service = read(r#"{"delete": "deny"}"#).unwrap().rules;
    check(&service, "operations_delete", "delete", Some("operations.delete"));
    assert!(read(r#"{"sync_*": "delte"}"#).unwrap_err().to_string().contains("did you mean `delete`?"));
    assert!(read(r#"{"sync_*": 7}"#).is_err());
}

#[test]
fn rules_that_went_by_a_hint_alone_are_named() {
    let remarks = |text: &str| read(text, Naming::default()).unwrap().remarks.join("\n");
    insta::assert_snapshot!(remarks(r#"{"fs": {"read": "allow", "write": "allow", "delete": "deny"}}"#), @r#"`fs.delete` does not go by `destructiveHint: true` alone; `"operations": {"TOOL": "delete"}` makes a delete of a tool, and a rule below `policy` can match `hint:destructive`"#);
    insta::assert_snapshot!(remarks(r#"{"fs": {"read": "allow", "write": "allow"}, "default": "deny"}"#), @r#"`fs.write` does not go by `destructiveHint: true` alone; `"operations": {"TOOL": "delete"}` makes a delete of a tool, and a rule below `policy` can match `hint:destructive`"#);
    assert_eq!(remarks(r#"{"fs": {"execute": "deny"}}"#), "");
}

#[test]
fn both_spellings_are_the_same_rules() {
    let short = read(r#"{"github": {"read": "allow", "delete": "deny"}, "default": "allow"}"#, Naming::default());
    let long = read(
        r#"{"rules": [{"service": "github", "operations": ["read"], "permission": "allow"},
            {"service": "github", "operations": ["delete"], "permission": "deny", "reason": "never"}]}"#,
        Naming::default(),
    );
    let (short, long) = (short.unwrap().rules, long.unwrap().rules);
    let plain = |rules: &Rules| {
        rules.rules.iter().map(|rule| format!("{} {} {:?}", rule.name, rule.filter, rule.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(plain(&short), ["github.read op:read Allow", "github.delete op:delete Deny"]);
    assert_eq!(plain(&short), plain(&long));
    assert_eq!(long.rules[1].message.as_deref(), Some("never"));
    assert_eq!(short.server.as_deref(), Some("github"));
    assert_eq!(short.default, Permission::Allow);
}

#[test]
fn the_service_is_named_in_this_order() {
    let server = |naming| read(TWO, naming).unwrap().rules.server.map(|server| server.to_string());
    let (service, name) = (Some("slack"), Some("github"));
    assert_eq!(server(Naming { service, servers: &[], name }).as_deref(), Some("slack"));
    let note = read(TWO, Naming { service, servers: &[], name }).unwrap().note.unwrap();
    insta::assert_snapshot!(note, @"those of the service `slack`, and none of `github`");
    assert_eq!(server(Naming { service: None, servers: &[], name }).as_deref(), Some("github"));
    // What the file does not list names nobody's rules.
    assert_eq!(server(Naming { service: None, servers: &[], name: Some("files") }).as_deref(), Some("files"));
    let only =
        read(r#"{"github": {"delete": "deny"}}"#, Naming { service: None, servers: &[], name: Some("mine") }).unwrap();
    assert_eq!(only.rules.server.as_deref(), Some("github"));
    check(&only.rules, "anything", "delete", Some("github.delete"));
}

#[test]
fn a_service_that_is_not_there_is_refused() {
    let refused = |text, service| {
        read(text, Naming { service: Some(service), servers: &[], name: None }).unwrap_err().to_string()
    };
    insta::assert_snapshot!(refused(TWO, "githib"), @"
    error: there is no service `githib` in the rules in rules.json

    hint: did you mean --service github?
    ");
    insta::assert_snapshot!(refused(TWO, "jira"), @"
    error: there is no service `jira` in the rules in rules.json

    hint: give --service with one of `github`, `slack`
    ");
    // Without services there is only the default, and it is everybody's.
    assert!(read(r#"{"default": "deny"}"#, Naming { service: Some("x"), servers: &[], name: None }).is_ok());
}

#[test]
fn a_service_that_no_tool_can_be_told_by_is_noted() {
    let odd = r#"{"Google Drive": {"delete": "deny"}, "slack": {"write": "deny"}}"#;
    let of_tools = read(odd, Naming::default()).unwrap();
    insta::assert_snapshot!(of_tools.remarks[0], @"no tool's name can begin with `Google Drive`; --service applies the rules of such a service");
    check(&of_tools.rules, "slack_send", "write", Some("slack.write"));
    check(&of_tools.rules, "Google Drive_delete", "delete", Some("unknown_service.delete"));
    let all_odd = read(r#"{"a b": {"delete": "deny"}, "c d": {}}"#, Naming::default()).unwrap().rules;
    check(&all_odd, "delete_x", "delete", Some("unknown_service.delete"));
    let named = read(odd, Naming { service: Some("Google Drive"), servers: &[], name: None }).unwrap().rules;
    check(&named, "anything", "delete", Some("Google Drive.delete"));
}

#[test]
fn a_tool_belongs_to_the_service_its_name_begins_with() {
    let Read { rules, note, .. } = read(TWO, Naming::default()).unwrap();
    assert!(note.unwrap().contains("unless --service names its service"));
    for tool in
        ["github_delete", "github-delete", "GitHub.delete", "github__delete", "githubDelete", "github", "github/x"]
    {
        check(&rules, tool, "delete", Some("github.delete"));
    }
    for tool in ["githubber_delete", "my_github_delete", "delete_github", "git_hub", "GITHUBDELETE", ""] {
        check(&rules, tool, "delete", None);
        assert_eq!(rules.default, Permission::Deny, "which is the strictest");
    }
    check(&rules, "slack_delete", "delete", None);
    check(&rules, "slack_send", "write", Some("slack.write"));
}

#[test]
fn a_tool_belongs_to_the_longest_service() {
    let text =
        r#"{"google": {"read": "deny"}, "google_drive": {"delete": "deny"}, "google-drive.eu": {"read": "allow"}}"#;
    let rules = read(text, Naming::default()).unwrap().rules;
    check(&rules, "google_search", "read", Some("google.read"));
    check(&rules, "google_drive_list", "read", None);
    check(&rules, "google_drive_rm", "delete", Some("google_drive.delete"));
    check(&rules, "google-drive.eu_list", "read", Some("google-drive.eu.read"));
    check(&rules, "google-driveXeu_list", "read", Some("google.read"));
}

/// The ids of a gateway's servers are its services; two that differ in case are two.
#[test]
fn each_server_of_a_gateway_has_the_rules_of_its_name() {
    let of = |servers: &[&str]| {
        let servers: Vec<Arc<str>> = servers.iter().map(|server| Arc::from(*server)).collect();
        read(TWO, Naming { service: None, servers: &servers, name: Some("slack") })
    };
    let Read { rules, note, .. } = of(&["github", "GitHub", "files"]).unwrap();
    insta::assert_snapshot!(note.unwrap(), @"each server's by the service of its name; no server is called `slack`; a tool of any other server gets the strictest verdict of any (deny), unless --service names its service or the file has `unknown_service`");
    let decides = |server, operation| {
        let call = CallOf(server, Call("github_delete", operation));
        rules.rules.iter().find(|rule| rule.filter.matches(&call)).map(|rule| &*rule.name)
    };
    assert_eq!(decides("github", "delete"), Some("github.delete"));
    assert_eq!(decides("slack", "write"), Some("slack.write"));
    for (server, operation) in [("GitHub", "delete"), ("files", "delete"), ("github", "write"), ("slack", "delete")] {
        assert_eq!(decides(server, operation), None, "{server} {operation}");
    }
    insta::assert_snapshot!(of(&["a", "b"]).unwrap_err(), @"
    error: none of this gateway's servers is a service of the rules in rules.json

    hint: the rules are about `github`, `slack`, and the servers are `a`, `b`
    ");
}

/// A server that is called like no service gets what the strictest of several services has.
#[test]
fn a_server_of_no_known_service_gets_the_strictest_verdict() {
    let decides = |text: &str, server, operation| {
        let servers = ["github", "other"].map(Arc::from);
        let rules = read(text, Naming { service: None, servers: &servers, name: None }).unwrap().rules;
        let call = CallOf(server, Call("x", operation));
        rules.rules.iter().find(|rule| rule.filter.matches(&call)).map(|rule| rule.name.to_string())
    };
    let two = r#"{"github": {"delete": "deny"}, "slack": {"write": "deny"}}"#;
    assert_eq!(decides(two, "other", "delete").as_deref(), Some("unknown_service.delete"));
    assert_eq!(decides(two, "other", "write").as_deref(), Some("unknown_service.write"));
    assert_eq!(decides(two, "other", "read"), None);
    assert_eq!(decides(two, "github", "write"), None);
    assert_eq!(decides(r#"{"github": {"delete": "deny"}}"#, "other", "delete"), None);
}

/// The strictest verdict that any service has for the operation counts where no service can be told.
#[test]
fn a_tool_of_no_known_service_gets_the_strictest_verdict() {
    let of = |text| read(text, Naming::default()).unwrap();
    let Read { rules, note, .. } = of(r#"{"github": {"delete": "deny"}, "slack": {"write": "deny", "read": "allow"}}"#);
    insta::assert_snapshot!(note.unwrap(), @"each tool's by the service that its name begins with (`github`, `slack`); a tool of none of them gets the strictest verdict of any (deny for write, delete), unless --service names its service or the file has `unknown_service`");
    for tool in ["delete_repo", "gh__github_delete_repo", "mcp__github__delete_repo", "githubber_delete", "slackdelete"]
    {
        check(&rules, tool, "delete", Some("unknown_service.delete"));
        check(&rules, tool, "write", Some("unknown_service.write"));
        check(&rules, tool, "read", None);
    }
    check(&rules, "github_delete_repo", "delete", Some("github.delete"));
    for (tool, operation) in [("github_write", "write"), ("githubWrite", "write"), ("slack_delete", "delete")] {
        check(&rules, tool, operation, None);
    }
    let deny = of(r#"{"a": {"read": "allow"}, "b": {"read": "allow", "write": "allow"}, "default": "deny"}"#).rules;
    check(&deny, "x", "read", Some("unknown_service.read"));
    assert_eq!(deny.rules.last().unwrap().verdict, VerdictKind::Allow);
    check(&deny, "x", "write", None);
    // One service is whatever the server's tools are called.
    check(&of(r#"{"github": {"delete": "deny"}}"#).rules, "delete_repo", "delete", Some("github.delete"));
}

#[test]
fn a_file_says_what_counts_for_tools_of_no_known_service() {
    let of = |unknown: &str, naming| {
        let text = format!(
            r#"{{"github": {{"delete": "deny"}}, "slack": {{"write": "deny"}}, "unknown_service": "{unknown}"}}"#
        );
        read(&text, naming).unwrap()
    };
    for (unknown, verdict) in [("allow", VerdictKind::Allow), ("deny", VerdictKind::Deny)] {
        let Read { rules, note, .. } = of(unknown, Naming::default());
        assert!(note.unwrap().ends_with(&format!("a tool of none of them gets {unknown} (`unknown_service`)")));
        for operation in ["read", "delete"] {
            check(&rules, "delete_repo", operation, Some("unknown_service"));
        }
        assert_eq!(rules.rules.last().unwrap().verdict, verdict);
        check(&rules, "github_write", "write", None);
    }
    // A server of a gateway is known by its id.
    let servers = ["github", "files"].map(Arc::from);
    let Read { rules, note, .. } = of("deny", Naming { service: None, servers: &servers, name: None });
    insta::assert_snapshot!(note.unwrap(), @"each server's by the service of its name; no server is called `slack`; deny of all other servers");
    let decides = |server| {
        let call = CallOf(server, Call("github_get", "read"));
        rules.rules.iter().find(|rule| rule.filter.matches(&call)).map(|rule| &*rule.name)
    };
    assert_eq!((decides("files"), decides("github")), (Some("unknown_service"), None));
}

/// They are told apart by one filter, which has a bound.
#[test]
fn any_number_of_services_is_told_apart_or_refused() {
    let of = |count: usize| {
        let services = (0..count).map(|n| format!(r#""google_service_{n}": {{"delete": "deny"}}"#));
        read(
            &format!(r#"{{"google": {{"write": "deny"}},{}}}"#, services.collect::<Vec<_>>().join(",")),
            Naming::default(),
        )
    };
    let rules = of(100).unwrap().rules;
    check(&rules, "google_service_7_x", "delete", Some("google_service_7.delete"));
    check(&rules, "google_x", "delete", None);
    check(&rules, "x", "delete", Some("unknown_service.delete"));
    assert!(of(1_000).unwrap_err().to_string().contains("has too many services (1001) to tell them apart"));
}
