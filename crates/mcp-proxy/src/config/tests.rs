use super::mistake::Mistakes;
use super::{Located, Source, Value, expand_home};

/// A tree without its places.
fn plain(located: &Located) -> String {
    match &located.value {
        Value::Nothing => "nothing".into(),
        Value::Flag(flag) => flag.to_string(),
        Value::Number(number) => number.clone(),
        Value::Text(text) => format!("{text:?}"),
        Value::List(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Table(members) => {
            let members = members.iter().map(|member| format!("{}={}", member.key, plain(&member.value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(" "))
        }
        Value::Other(what) => (*what).into(),
    }
}

fn parse(name: &str, text: &str) -> Result<Located, String> {
    let source = Source::for_test(name, text);
    let mut mistakes = Mistakes::default();
    let root = source.parse(&mut mistakes);
    if mistakes.is_empty() { Ok(root.unwrap()) } else { Err(mistakes.shown(&source)) }
}

#[track_caller]
fn check(name: &str, text: &str, expected: &str) {
    assert_eq!(parse(name, text).map(|root| plain(&root)).as_deref(), Ok(expected), "{text}");
}

#[track_caller]
fn check_wrong(name: &str, text: &str, expected: &str) {
    let shown = parse(name, text).expect_err(text);
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn every_format_gives_the_same_tree() {
    let expected = r#"{z={a="x" b=[1 true "two"]} c="y"}"#;
    check("f.json", "// why\n{\"z\": {\"a\": \"x\", \"b\": [1, true, \"two\",]}, /* c */ \"c\": \"y\"}", expected);
    check("f.JSONC", "{\"z\":{\"a\":\"\\u0078\",\"b\":[1,true,\"two\"]},\"c\":\"y\"}", expected);
    check("f.toml", "[z]\na = 'x'\nb = [1, true, \"two\"]\n", r#"{z={a="x" b=[1 true "two"]}}"#);
    check("f.yaml", "z:\n  a: x\n  b:\n  - 1\n  - true\n  - two\nc: 'y'\n", expected);
    check("f.yml", "{z: {a: x, b: [1, true, two]}, c: y}", expected);
}

#[test]
fn keys_stay_in_their_order() {
    check("f.toml", "z = 1\na = 2\nm.y = 3\nm.x = 4\n", "{z=1 a=2 m={y=3 x=4}}");
}

/// YAML of old took these for flags.
#[test]
fn words_of_yaml_are_text() {
    check(
        "f.yaml",
        "a: no\nb: off\nc: ~\nd: 1.5\ne: .inf\nf: 1s\n5: x",
        r#"{a="no" b="off" c=nothing d=1.5 e=".inf" f="1s" 5="x"}"#,
    );
}

#[test]
fn every_value_knows_its_place() {
    for (name, text) in [
        ("f.json", "{\"a\": [\"ä\", {\"b\": \"here\"}]}"),
        ("f.toml", "a = [\"ä\", {b = \"here\"}]"),
        ("f.yaml", "a:\n  - ä\n  - b: \"here\"\n"),
    ] {
        fn find(located: &Located) -> Option<&Located> {
            match &located.value {
                Value::Text(text) => (text == "here").then_some(located),
                Value::List(items) => items.iter().find_map(find),
                Value::Table(members) => members.iter().find_map(|member| find(&member.value)),
                _ => None,
            }
        }
        let root = parse(name, text).unwrap();
        assert_eq!(&text[find(&root).unwrap().span.clone()], "\"here\"", "{name}");
    }
}

#[test]
fn what_could_be_read_two_ways_is_wrong() {
    check_wrong("f.json", "{\"a\": 1,\n \"a\": 2}", "f.json:2:2: `a` is here twice");
    check_wrong("f.json", "[{\"a\": 1, \"\\u0061\": 2}]", "`a` is here twice");
    check_wrong("f.yaml", "a: 1\nb: {c: 1, c: 2}", "f.yaml:2:11: `c` is here twice");
    check_wrong("f.toml", "a = 1\na = 2", "f.toml:2:1: this is not TOML: duplicate key");
    check_wrong("f.yaml", "a: &x 1\nb: *x", "aliases are not read here");
    check_wrong("f.yaml", "a: !!binary x", "tags are not read here");
    check_wrong("f.yaml", "a: 1\n---\nb: 2", "a second document");
    check_wrong("f.json", "{'a': 1}", "f.json:1:2: this is not JSON");
    check_wrong("f.json", "{a: 1}", "this is not JSON");
    check_wrong("f.json", "{\"a\": 1 \"b\": 2}", "this is not JSON: expected comma");
    check_wrong("f.json", "{} {}", "this is not JSON");
    check_wrong("f.json", "// nothing", "there is nothing in this file");
}

#[test]
fn what_ends_too_early_is_marked_where_it_does() {
    let check = |text: &str, place: &str, what: &str, shown_at: &str| {
        let shown = parse("f.json", text).expect_err(text);
        assert!(shown.starts_with(&format!("f.json:{place}: this is not JSON: unterminated {what}")), "{shown}");
        assert!(shown.ends_with(shown_at), "{shown}");
    };
    check("{\n  \"a\": {\n    \"b\": 1\n  }\n", "4:4", "object", "  │   }\n  │    ^ it was opened on line 1");
    check("{\"a\": {\n \"b\": [1,\n 2\n\n", "3:3", "array", "  │  2\n  │   ^ it was opened on line 2");
    check("{\"a\": 1} /* on\nand on", "2:7", "comment block", "^ it begins on line 1");
    check("{\n \"a\": \"b,\n}\n", "2:10", "string", "  │  \"a\": \"b,\n  │          ^ a quote is missing");
}

/// Whoever has the stack for it can write such a file in no time.
#[test]
fn deep_files_are_refused() {
    for (name, open) in [("f.json", "["), ("f.json", "{\"a\":"), ("f.toml", "a = ["), ("f.yaml", "["), ("f.yaml", "- ")]
    {
        let text = if open.starts_with("a =") { format!("a = {}", "[".repeat(100_000)) } else { open.repeat(100_000) };
        assert!(parse(name, &text).is_err(), "{name} {open}");
    }
}

/// Somebody may give us the wrong file, and what we say of it may go to a log.
#[test]
fn secrets_are_not_shown() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let shown = parse("f.json", &format!("{{\"env\": {{\"GITHUB_TOKEN\": \"{token}\" x}}}}")).unwrap_err();
    assert!(!shown.contains("ghp_") && shown.contains("so it is not shown"), "{shown}");
    assert_eq!(super::said(token), "what is there (it seems to be a secret)");
}

#[test]
fn long_and_hostile_lines_are_cut_and_visible() {
    let text = format!("{{\"{}\": \x1b[2J, \"x\": \"{}\"}}", "k".repeat(200), "v".repeat(200));
    let shown = parse("f.json", &text).unwrap_err();
    assert!(!shown.contains('\x1b') && shown.lines().all(|line| line.chars().count() < 130), "{shown}");
    let many = (0..50).map(|n| format!("a{n} == 1\n")).collect::<String>();
    let shown = parse("f.toml", &many).unwrap_err();
    assert!(shown.contains("f.toml:1:5:") && shown.contains("more") && shown.lines().count() < 100, "{shown}");
}

#[test]
fn a_byte_order_mark_is_no_mistake() {
    check("f.json", "\u{feff}{\"a\": 1}", "{a=1}");
}

#[test]
fn a_tilde_is_the_home() {
    let home = std::path::PathBuf::from(std::env::var_os("HOME").unwrap());
    assert_eq!(expand_home("~/rules.json".as_ref()), home.join("rules.json"));
    for other in ["rules.json", "/~/rules.json", "~other/rules.json"] {
        assert_eq!(expand_home(other.as_ref()), std::path::Path::new(other));
    }
}
