use std::borrow::Cow;

use mcp_wire::{Direction, Message};
use proptest::prelude::*;

use super::*;

mod foretelling;
mod spellings;

/// A message as it stands there, and a little beside it.
#[derive(Default)]
struct Fake {
    message: Option<Message>,
    direction: Option<Direction>,
    kind: Option<&'static str>,
    status: Option<&'static str>,
    code: Option<i64>,
    duration_ns: Option<u64>,
    revision: Option<&'static str>,
    headers: Vec<(&'static str, &'static str)>,
    edited: bool,
    operation: Option<&'static str>,
    hints: Vec<(&'static str, bool)>,
}

fn message(json: &str) -> Fake {
    Fake { message: Some(Message::new(json.to_owned().into())), ..Fake::default() }
}

impl Subject for Fake {
    fn direction(&self) -> Option<Direction> {
        self.direction
    }

    fn kind(&self) -> Option<&str> {
        self.kind
    }

    fn method(&self) -> Option<Cow<'_, str>> {
        self.message.as_ref()?.method()
    }

    fn tool(&self) -> Option<Cow<'_, str>> {
        let message = self.message.as_ref()?;
        message.name().or_else(|| message.uri())
    }

    fn status(&self) -> Option<&str> {
        self.status
    }

    fn code(&self) -> Option<i64> {
        self.code
    }

    fn id(&self) -> Option<&[u8]> {
        let message = self.message.as_ref()?;
        message.peek().id.map(|span| message.slice(span))
    }

    fn duration_ns(&self) -> Option<u64> {
        self.duration_ns
    }

    fn size(&self) -> Option<u64> {
        self.body().map(|body| body.len() as u64)
    }

    fn sequence(&self) -> Option<u64> {
        Some(7)
    }

    fn body(&self) -> Option<&[u8]> {
        self.message.as_ref().map(|message| &**message.bytes())
    }

    fn header(&self, index: usize) -> Option<(&str, &str)> {
        self.headers.get(index).copied()
    }

    fn revision(&self) -> Option<Cow<'_, str>> {
        self.revision.map(Cow::Borrowed)
    }

    fn edited(&self) -> bool {
        self.edited
    }

    fn operation(&self) -> Option<&str> {
        self.operation
    }

    fn hint(&self, name: &str) -> Option<bool> {
        self.hints.iter().find(|(hint, _)| *hint == name).map(|(_, says)| *says)
    }
}

#[track_caller]
fn parsed(expression: &str) -> Filter {
    Filter::parse(expression).unwrap_or_else(|error| panic!("{error}"))
}

/// Which of the expressions match, and which do not.
#[track_caller]
fn check(subject: &Fake, matching: &[&str], others: &[&str]) {
    for expression in matching {
        assert!(parsed(expression).matches(subject), "should match: {expression}");
        assert!(!parsed(&format!("not ({expression})")).matches(subject), "and its negation should not");
    }
    for expression in others {
        assert!(!parsed(expression).matches(subject), "should not match: {expression}");
        assert!(parsed(&format!("!({expression})")).matches(subject), "and its negation should");
    }
}

#[test]
fn names_and_words() {
    let call =
        message(r#"{"id":"a7","method":"tools/call","params":{"name":"write_file","arguments":{"path":"/etc/x"}}}"#);
    check(
        &call,
        &[
            "tool:write_*",
            "tool:read_*,write_*",
            "tool=write_file",
            "tool!=x",
            "tool^=write",
            "tool~^w.*e$",
            "tool:*",
            "tool : write_file",
            "tool = write_file",
            "method:tools/call",
            "tool~(write|read)_file",
            "tool~/FILE/i",
            "tools/call",
            "WRITE",
            "\"path\"",
            "'/etc/'",
            "/wr[i]te/",
            "/WRITE/i",
            "etc*x",
            "text:etc",
            "text:nope,ETC",
            "text~etc",
            "id:a7",
            "id=\"a7\"",
            "id:'\"a7\"'",
            "id^=a",
            "seq:7",
            "seq:1..7",
            "seq>=7",
            "seq!=8",
            "size>50",
            "size<1k",
            "size:10..200",
            "server!=x",
            "not server:*",
            "tool:\"write_file\"",
        ],
        &[
            "tool:write",
            "tool:WRITE_*",
            "tool=write_*",
            "tool:\"write_*\"",
            "tool!=write_file,b",
            "tool^=rite",
            "tool~^rite",
            "nope",
            "/WRITE/",
            "etc.x",
            "text:nope",
            "id:7",
            "id:a",
            "seq:8",
            "seq:8..",
            "seq<7",
            "seq>7",
            "size>1k",
            "server:*",
            "server=x",
            "dur<1s",
            "code:*",
            "mark:*",
            "method:tools",
        ],
    );
}

#[test]
fn an_empty_filter_matches_everything() {
    assert!(parsed("").matches(&message("{}")) && parsed(" \n ").matches(&Fake::default()));
}

#[test]
fn what_is_known_beside_the_message() {
    let answer = Fake {
        direction: Some(Direction::ServerToClient),
        kind: Some("error"),
        status: Some("err"),
        code: Some(-32602),
        duration_ns: Some(1_234_000_000),
        revision: Some("2026-07-28"),
        headers: vec![("Content-Type", "application/json"), ("X-Two", "1"), ("x-two", "2")],
        edited: true,
        ..message(r#"{"id":1,"error":{}}"#)
    };
    check(
        &answer,
        &[
            "<",
            "dir:server_to_client",
            "dir:s2c",
            "dir:<",
            "kind:error",
            "kind:response",
            "kind:request,error",
            "kind:*",
            "status:err",
            "status:error",
            "status!=ok",
            "code:-32602",
            "code<0",
            "code:-32700..-32600",
            "dur>1s",
            "dur>=1.2s",
            "dur:1s",
            "dur:1.2s",
            "dur:1s..2s",
            "dur<2m",
            "era:modern",
            "era:2026-07-28",
            "era:2026*",
            "era:legacy,2026*",
            "era!=legacy",
            "era^=2026",
            "header:content-type",
            "header:X-*",
            "header.content-type",
            "header.x-two=2",
            "header.Content-Type:*json",
            "header.x-two!=3",
            "edited:yes",
            "held:no",
            "noise:false",
            "edited:*",
            "era:*",
        ],
        &[
            ">",
            "dir:>",
            "kind:request",
            "status:ok",
            "status:input",
            "code:1",
            "code!=-32602",
            "dur>2s",
            "dur:2s",
            "dur<1s",
            "era:legacy",
            "era:2025*",
            "era!=modern",
            "header:host",
            "header.host",
            "header.x-two:3",
            "edited:no",
            "held:yes",
            "held:*",
            "op:*",
            "verdict:deny",
        ],
    );
}

#[test]
fn a_server_hints_at_what_its_tool_does() {
    let hints = vec![("readonly", false), ("destructive", true), ("openworld", true)];
    let call = Fake { hints, operation: Some("delete"), ..message("{}") };
    check(
        &call,
        &[
            "hint:destructive",
            "hint:destructiveHint",
            "hint:readonly,openworld",
            "hint:*",
            "hint!=readonly",
            "op:delete",
            "op>=write",
            "op>=delete",
            "op>read",
            "op<=delete",
            "op<execute",
        ],
        &[
            "hint:readonly",
            "hint:idempotent",
            "hint:readonly,idempotent",
            "hint!=destructive",
            "hint:unknown",
            "op:read",
            "op<delete",
            "op>delete",
        ],
    );
    let denial = Fake { hints: vec![("readonly", false)], ..message("{}") };
    check(&denial, &["not hint:*"], &["hint:*"]);
    let unlisted = Fake { hints: vec![("unknown", true)], ..message("{}") };
    check(&unlisted, &["hint:unknown", "hint:destructive,unknown"], &["hint:*", "hint:destructive"]);
    check(&message("{}"), &["hint!=readonly"], &["hint:readonly", "hint:*"]);
}

#[test]
fn paths_lead_into_the_message() {
    let call = message(
        r#" {"id":1.0,"params":{"arguments":{"path":"/etc\u002fx","n":[1,{"uri":"u:1"},[{"uri":"u:2"}]],"odd key":null,"t":true},"a":1,"a":2} , "big":123456789012345678901234567890}"#,
    );
    check(
        &call,
        &[
            "$",
            "$.params",
            "$.params.arguments.path ^= \"/etc/\"",
            "$.params.arguments.path=\"/etc/x\"",
            "$.params.arguments.path:/etc/*",
            "$.params.arguments.path ~ x$",
            "$.params.arguments.n[0] = 1",
            "$.params.arguments.n[0] < 1.5",
            "$.params.arguments.n[*].uri=u:1",
            "$..uri:u:2",
            "$..uri=\"u:1\",\"u:3\"",
            "$.*.arguments.t=true",
            "$.params.arguments[\"odd key\"]",
            "$.params.arguments['odd key']=null",
            "$.id=1",
            "$.id=1.0",
            "$.id!=2",
            "$.params.a=1",
            "$.params.a=2",
            "$.params.arguments ~ etc",
            "$.big>1",
            "$.big=123456789012345678901234567890",
            "$.nope!=1",
            "$..n[2][0].uri",
            "$..[0]",
            "$.params..uri",
            "$..*=1",
            "($.params)",
            "$.id>=1 $.id<=1",
        ],
        &[
            "$.param",
            "$.Params",
            "$.params.arguments.path=/etc",
            "$.params.arguments.n[3]",
            "$.params.arguments.n.uri",
            "$.id=\"1\"",
            "$.id=\"1.0\"",
            "$.id!=1",
            "$.id>1",
            "$.params.arguments.path>1",
            "$.params.arguments=x",
            "$.params:*",
            "$.params.arguments.t=\"true\"",
            "$..nope",
            "$[0]",
            "$.id.x",
        ],
    );
    let batch = message(r#"[{"id":1},{"id":2}]"#);
    check(&batch, &["$[1].id=2", "$[*].id=1", "$..id=2"], &["$.id", "$[2]"]);
    check(&message("not json {"), &["json", "/t j/"], &["$.a", "$..a", "$[0]"]);
    check(&message(""), &[], &["$", "$.a", "x"]);
}

#[test]
fn words_spelled_with_escapes_are_found() {
    let call = message(r#"{"params":{"cmd":"r\u006d -rf \"\/\"","x":"déjà"}}"#);
    check(&call, &["\"rm -rf\"", "text:\"\\\"/\\\"\"", "DÉJÀ", "/r. -rf/"], &["\"rm  -rf\""]);
}

#[test]
fn tests_are_joined() {
    let call = message(r#"{"method":"a","params":{"name":"b"}}"#);
    check(
        &call,
        &[
            "method:a tool:b",
            "method:a and tool:b",
            "method:x or tool:b",
            "method:x or method:a and tool:b",
            "method:a && !tool:c",
            "method:x || tool:b",
            "not method:x",
            "!method:x tool:b",
            "not not tool:b",
            "(method:x or method:a) (tool:b)",
            "not (method:x tool:b)",
            "method:a AND NOT tool:c",
            "\"and\" or method:a",
            "!(tool:x)",
        ],
        &[
            "method:a tool:c",
            "method:x or tool:c",
            "method:a and not tool:b",
            "not (method:a or tool:c)",
            "(method:x or method:a) tool:c",
            "method:a (method:x or tool:x)",
            "not method:a or tool:c",
        ],
    );
}

#[track_caller]
fn check_fault(expression: &str, expected: &str) {
    let error = Filter::parse(expression).map(|filter| filter.to_string()).expect_err(expression);
    let shown = error.to_string();
    assert_eq!(shown.trim_start_matches('\n'), expected.trim_matches('\n'), "\n{shown}");
}

#[test]
fn faults_are_underlined() {
    check_fault(
        "tol:search dur>1s",
        "
unknown filter field `tol`
  │ tol:search dur>1s
  │ ^^^ did you mean `tool`?",
    );
    check_fault(
        "file:///tmp",
        "
unknown filter field `file`
  │ file:///tmp
  │ ^^^^ to look for it as text, put it in quotes",
    );
    check_fault(
        "status:er",
        "
`status` cannot be `er`
  │ status:er
  │        ^^ did you mean `err`?",
    );
    check_fault(
        "kind:xyzzy",
        "
`kind` cannot be `xyzzy`
  │ kind:xyzzy
  │      ^^^^^ it is request, response, error, notification, batch, json, bytes, noise, event",
    );
    check_fault(
        "dur>200",
        "
`200` is no value for this
  │ dur>200
  │     ^^^ expected a duration with its unit, such as `200ms`, `1.5s` or `2m`",
    );
    check_fault(
        "tool<3",
        "
`tool` cannot be compared with `<`
  │ tool<3
  │ ^^^^ it takes : = != ~ ^=",
    );
    check_fault(
        "(tool:x or",
        "
something to look for is missing here
  │ (tool:x or
  │           ^",
    );
    check_fault(
        "a (b c",
        "
this `(` is not closed
  │ a (b c
  │   ^",
    );
    check_fault(
        "a ) b",
        "
this `)` closes nothing
  │ a ) b
  │   ^",
    );
    check_fault(
        "tool:",
        "
a value must follow `:`
  │ tool:
  │     ^ an empty one is written \"\"",
    );
    check_fault(
        "tool:a, b or",
        "
something to look for is missing here
  │ tool:a, b or
  │             ^",
    );
    check_fault(
        "/etc/passwd",
        "
a regular expression ends with `/` or `/i`
  │ /etc/passwd
  │      ^^^^^^ to look for a path, put it in quotes",
    );
    check_fault(
        "text~(a",
        "
this regular expression cannot be used: unclosed group
  │ text~(a
  │      ^^",
    );
    check_fault(
        "\u{1b}[2J é tol:x",
        "
unknown filter field `tol`
  │ \u{241b}[2J é tol:x
  │        ^^^ did you mean `tool`?",
    );
    check_fault(
        &format!("{} tol:x {}", "a ".repeat(100), "b ".repeat(100)),
        &format!(
            "
unknown filter field `tol`
  │ …{} tol:x {}…
  │  {}^^^ did you mean `tool`?",
            "a ".repeat(100)[141..].trim_end_matches(' ').to_owned() + " ",
            &"b ".repeat(100)[..37],
            " ".repeat(60)
        ),
    );
}

#[test]
fn every_wrong_expression_is_refused() {
    for expression in [
        "(",
        ")",
        "()",
        "and",
        "or x",
        "x and",
        "not",
        "!",
        "x not",
        "tool:a,",
        "tool:,a",
        "tool=",
        "=x",
        ":x",
        "~x",
        "^=x",
        "!=x",
        ",",
        "a,b",
        "a\"b\"",
        "a(b)",
        "tool:a(b)",
        "tool:a\"b\"",
        "\"open",
        "'open",
        "\"\\x\"",
        "/open",
        "$.",
        "$.a.",
        "$..",
        "$[",
        "$[x]",
        "$[-1]",
        "$[\"a\"",
        "$a",
        "$.a$",
        "$.a>x",
        "$.a<",
        "header.",
        "header.:x",
        "header=x",
        "header:a,b",
        "text=x",
        "text!=x",
        "dur:x",
        "dur>1",
        "size:1x",
        "seq:1.5",
        "seq:..",
        "code:x",
        "noise:maybe",
        "noise:yes,no",
        "noise>yes",
        "era:future",
        "dir:left",
        "kind:req*",
        "status>ok",
        "method<x",
        "tool~[",
        "text~\\",
        "/[/",
        "op:remove",
        "op>remove",
        "op>admin",
        "op<read",
        "op>write,delete",
        "hint:safe",
        "hint^=read",
        "verdict:no",
    ] {
        assert!(Filter::parse(expression).is_err(), "{expression}");
    }
}

#[test]
fn costs_are_bounded() {
    let long = "x".repeat(EXPRESSION_BYTES_MAX + 1);
    assert!(Filter::parse(&long).is_err());
    for (open, close) in [("(", ")"), ("!", ""), ("not ", "")] {
        let nested = |levels: usize| format!("{}x{}", open.repeat(levels), close.repeat(levels));
        assert!(Filter::parse(&nested(NESTING_MAX)).is_ok());
        assert!(Filter::parse(&nested(NESTING_MAX + 1)).is_err());
        assert!(Filter::parse(&nested(4000)).is_err());
    }
    assert!(Filter::parse(&"x ".repeat(REGEXES_MAX)).is_ok());
    assert!(Filter::parse(&"x ".repeat(REGEXES_MAX + 1)).is_err());
    let error = Filter::parse("text~\"(\\\\w{200}){200}\"").expect_err("too large");
    assert!(error.what().ends_with("it is too large"), "{error}");
    assert!(Filter::parse(&format!("${}", ".a".repeat(path::STEPS_MAX))).is_ok());
    assert!(Filter::parse(&format!("${}", ".a".repeat(path::STEPS_MAX + 1))).is_err());
    let deep = message(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
    check(&deep, &["$..[0]"], &["$..a"]);
}

#[test]
fn a_filter_says_what_it_looks_at() {
    let needs = |expression: &str| parsed(expression).needs();
    let none = Needs::default();
    assert_eq!(needs("dir:> size>1k seq<9 noise:no edited:no server:x"), none);
    assert_eq!(needs("kind:request id:7"), Needs { scan: true, ..none });
    assert_eq!(needs("method:x tool:y status:err"), Needs { scan: true, story: true, ..none });
    assert_eq!(needs("hint:readonly op:read"), Needs { scan: true, story: true, ..none });
    assert_eq!(needs("dur>1s"), Needs { story: true, ..none });
    assert_eq!(needs("$.a"), Needs { body: true, ..none });
    assert_eq!(needs("text:x"), Needs { body: true, ..none });
    assert_eq!(needs("word"), Needs { body: true, scan: true, story: true, ..none });
    assert_eq!(needs("header.x"), Needs { headers: true, ..none });
}

/// A filter prints as one that is the same.
#[track_caller]
fn check_printed(expression: &str, expected: &str) {
    let filter = parsed(expression);
    assert_eq!(filter.to_string(), expected);
    assert_eq!(parsed(expected), filter);
}

#[test]
fn filters_print_as_they_mean() {
    check_printed("tool : a,'b c' ( x or !y )", "tool:a,\"b c\" and (x or not y)");
    check_printed("> not(a b)", "> and not (a and b)");
    check_printed("a (b c) or (d or e)", "a and (b and c) or (d or e)");
    check_printed("text~/a\\/b\"/i", "text~\"(?i)a\\\\/b\\\"\"");
    check_printed("/a b/i header.X-Y", "/a b/i and header.X-Y");
    check_printed("$..a[*]['b c'][0].* >= 1", "$..a.*[\"b c\"][0].*>=1");
    check_printed("  ", "");
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "tool", "dur", "text", "header.x", "era", "$.a", "$..b[0]", "$", ":", "=", "!=", "~", "^=", "<", ">", "<=",
        ">=", ",", "(", ")", "!", "not ", " and ", " or ", " ", "\"x y\"", "'", "\"", "/", "/r/", "/r/i", "*", "a",
        "1s", "10k", "7", "..", ".", "[", "]", "\\", "é", "legacy", "yes", "request",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

const SAMPLE: &[u8] = br#"{"id":1,"method":"a","params":{"name":"x y","b":[1,"a"]}}"#;

fn values() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf =
        prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), "[a-c\\\\\"é]{0,3}".prop_map(Value::from)];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"]{0,1}", inner, 0..4)
                .prop_map(|members| Value::from_iter(members.into_iter().collect::<Vec<_>>())),
        ]
    })
}

fn steps() -> impl Strategy<Value = Vec<path::Step>> {
    use path::Step;
    let step = prop_oneof!["[a-c\"]{0,1}".prop_map(Step::Member), (0..3u64).prop_map(Step::Item), Just(Step::Any),];
    let below = any::<bool>().prop_map(|below| below.then_some(Step::Below));
    prop::collection::vec((below, step), 0..5)
        .prop_map(|steps| steps.into_iter().flat_map(|(below, step)| below.into_iter().chain([step])).collect())
}

/// The values that a path leads to, by walking a tree. Each counts once, however it was come by.
fn led_to<'v>(value: &'v serde_json::Value, steps: &[path::Step]) -> Vec<&'v serde_json::Value> {
    use path::Step;
    use serde_json::Value;
    fn children(value: &Value) -> Vec<(Step, &Value)> {
        match value {
            Value::Object(members) => members.iter().map(|(name, value)| (Step::Member(name.clone()), value)).collect(),
            Value::Array(items) => (0..).map(Step::Item).zip(items).collect(),
            _ => Vec::new(),
        }
    }
    fn add<'v>(found: &mut Vec<&'v Value>, more: impl IntoIterator<Item = &'v Value>) {
        for value in more {
            if !found.iter().any(|known| std::ptr::eq(*known, value)) {
                found.push(value);
            }
        }
    }
    let mut found = Vec::new();
    match steps {
        [] => found.push(value),
        [Step::Below, rest @ ..] => {
            add(&mut found, led_to(value, rest));
            children(value).into_iter().for_each(|(_, child)| add(&mut found, led_to(child, steps)));
        }
        [step, rest @ ..] => children(value)
            .into_iter()
            .filter(|(name, _)| *step == Step::Any || step == name)
            .for_each(|(_, child)| add(&mut found, led_to(child, rest))),
    }
    found
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        checks::filter_is_what_it_prints(&text, SAMPLE);
    }

    #[test]
    fn anything_like_a_filter_is_read_or_refused(text in pieces()) {
        checks::filter_is_what_it_prints(&text, SAMPLE);
    }

    /// A path leads where it leads in a parsed message, and as often.
    #[test]
    fn paths_agree_with_a_parser(value in values(), steps in steps()) {
        let path = path::Path { steps };
        let mut visited = 0;
        path.any(value.to_string().as_bytes(), |_| { visited += 1; false });
        prop_assert_eq!(visited, led_to(&value, &path.steps).len(), "{} in {}", path, value);
        let filter = parsed(&path.to_string());
        prop_assert_eq!(filter.matches(&message(&value.to_string())), visited > 0);
    }

    /// A path finds in any bytes what it finds, without a panic.
    #[test]
    fn any_bytes_can_be_walked(bytes in "[\\[\\]{}\",:a1 \\\\]{0,60}") {
        for path in ["$.a", "$..a", "$[0].*", "$..*"] {
            parsed(path).matches(&message(&bytes));
        }
    }
}

/// `FILTER_REFERENCE=write cargo test -p mcp-filter` writes the page anew.
#[test]
fn the_reference_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/filter.md");
    let page = reference::markdown();
    if std::env::var_os("FILTER_REFERENCE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == page, "docs/filter.md is not what the table of fields says");
    for field in FIELDS {
        parsed(field.example);
        assert!(reference::plain().contains(field.example));
    }
}

#[test]
fn an_escape_hides_nothing_in_a_list() {
    let filter = Filter::parse("$.params.arguments.args ~ \"rm -rf\"").expect("a filter");
    for (json, expected) in [
        (r#"{"params":{"arguments":{"args":["sh","rm -rf /"]}}}"#, true),
        (r#"{"params":{"arguments":{"args":["sh","rm \u002drf /"]}}}"#, true),
        (r#"{"params":{"arguments":{"args":{"a":["rm\u0020-rf"]}}}}"#, true),
        (r#"{"params":{"arguments":{"args":["sh","rm \\u002drf /"]}}}"#, false),
    ] {
        assert_eq!(filter.matches(&message(json)), expected, "{json}");
    }
}
