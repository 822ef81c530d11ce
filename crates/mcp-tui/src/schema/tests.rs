use std::fmt::Write;
use std::time::Instant;

use super::*;

#[track_caller]
fn faults(schema: &str, arguments: &str) -> Vec<String> {
    match check(schema, arguments) {
        Verdict::Invalid(faults) => faults.into_iter().map(|(path, words)| format!("{path}: {words}")).collect(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn unusable(schema: &str, arguments: &str) -> String {
    match check(schema, arguments) {
        Verdict::Unusable(words) => words,
        other => panic!("{other:?}"),
    }
}

const ISSUE: &str = r#"{"type":"object","properties":{"repo":{"type":"string"},"labels":{"type":"array",
    "items":{"type":"string"}},"n":{"type":"integer","minimum":1}},"required":["repo"],"additionalProperties":false}"#;

#[test]
fn arguments_fit_or_it_is_said_where_not() {
    assert_eq!(check(ISSUE, r#"{"repo":"a","n":1}"#), Verdict::Valid);
    assert_eq!(faults(ISSUE, "{}"), [r#"$: "repo" is a required property"#]);
    let wrong = faults(ISSUE, r#"{"repo":"a","labels":["x",7],"n":0}"#);
    assert_eq!(wrong, ["$.labels[1]: value is not of type \"string\"", "$.n: value is less than the minimum of 1"]);
    assert!(faults(ISSUE, "{").first().unwrap().starts_with("$: not JSON"));
    assert_eq!(check("", "{}"), Verdict::NoSchema);
    assert_eq!(check(" null ", "{}"), Verdict::NoSchema);
    assert_eq!(check("{}", "{}"), Verdict::Valid);
}

#[test]
fn drafts_are_told_apart() {
    let tuple = |draft: &str| format!(r#"{{"$schema":"{draft}","items":[{{"type":"string"}}]}}"#);
    assert!(matches!(check(&tuple("http://json-schema.org/draft-07/schema#"), "[1]"), Verdict::Invalid(_)));
    assert!(matches!(check(r#"{"prefixItems":[{"type":"string"}]}"#, "[1]"), Verdict::Invalid(_)));
}

#[test]
fn what_a_server_says_is_clean_and_short() {
    let schema = format!(r#"{{"enum":["\u001b[2J\u202e","{}"]}}"#, "x".repeat(5000));
    let words = faults(&schema, r#""\u001b""#).concat();
    assert!(!words.chars().any(char::is_control) && words.chars().count() < 300, "{words}");
    let many: Vec<String> = (0..500).map(|item| format!("\"k{item}\":\"\u{7f}\"")).collect();
    let schema = r#"{"additionalProperties":{"type":"integer"}}"#;
    assert_eq!(faults(schema, &format!("{{{}}}", many.join(","))).len(), FAULTS_MAX);
}

#[test]
fn schemas_that_cannot_be_used_say_why() {
    assert_eq!(unusable("{", "{}"), "the schema is not JSON");
    assert_eq!(unusable(r#"{"$ref":"https://example.com/x"}"#, "{}"), "the schema refers to what is not in it");
    assert_eq!(unusable(r##"{"$ref":"#"}"##, "{}"), "the schema refers to itself without end");
    assert_eq!(unusable(r##"{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##, "{}"), "the schema refers to itself without end");
    assert!(!unusable(r#"{"type":"nonsense"}"#, "{}").is_empty());
    assert!(!unusable(r#"{"pattern":"("}"#, "{}").is_empty());
}

#[test]
fn schemas_that_multiply_are_not_checked() {
    let start = Instant::now();
    let mut definitions = String::from(r#""a0":{"type":"object"}"#);
    for level in 1..60 {
        let below = level - 1;
        write!(
            definitions,
            r##","a{level}":{{"allOf":[{{"$ref":"#/$defs/a{below}"}},{{"$ref":"#/$defs/a{below}"}}]}}"##
        )
        .unwrap();
    }
    let wide = format!(r##"{{"$ref":"#/$defs/a59","$defs":{{{definitions}}}}}"##);
    assert_eq!(unusable(&wide, "{}"), "the schema is too involved to check against");
    let deep = r##"{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#","type":"object"}]}}}"##;
    let arguments = format!("{}1{}", "{\"a\":".repeat(50), "}".repeat(50));
    assert_eq!(unusable(deep, &arguments), "the schema is too involved to check against");
    let chain: Vec<String> = (0..20_000).map(|at| format!(r##""c{at}":{{"$ref":"#/$defs/c{}"}}"##, at + 1)).collect();
    let chain = format!(r##"{{"$ref":"#/$defs/c0","$defs":{{{},"c20000":{{}}}}}}"##, chain.join(","));
    assert_eq!(unusable(&chain, "{}"), "the schema is too involved to check against");
    assert!(start.elapsed().as_secs() < 20);
}

#[test]
fn schemas_that_recur_over_different_values_are_checked() {
    let tree = r##"{"$defs":{"n":{"type":"object","properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}}}},
        "$ref":"#/$defs/n"}"##;
    let arguments = format!("{}{{}}{}", "{\"r\":{},\"l\":".repeat(100), "}".repeat(100));
    assert_eq!(check(tree, &arguments), Verdict::Valid);
}

#[test]
fn patterns_that_look_around_are_bounded() {
    assert_eq!(check(r#"{"pattern":"^(?!\\.)a"}"#, "\"ab\""), Verdict::Valid);
    let start = Instant::now();
    let _ = check(r#"{"pattern":"^(?=(a+)+$)b"}"#, &format!("\"{}!\"", "a".repeat(5000)));
    assert!(start.elapsed().as_secs() < 20);
}

#[test]
fn a_skeleton_is_arguments_to_begin_with() {
    #[track_caller]
    fn check(schema: &str, expected: &str) {
        let skeleton = skeleton(schema);
        assert_eq!(skeleton.split_whitespace().collect::<String>(), expected);
        serde_json::from_str::<Value>(&skeleton).unwrap();
    }
    check(ISSUE, r#"{"repo":"","labels":[],"n":1}"#);
    check(
        r#"{"properties":{"b":{"type":"boolean"},"a":{"default":1.50},"c":{"enum":["x","y"]}},"required":["c"]}"#,
        r#"{"c":"x","b":false,"a":1.50}"#,
    );
    check(
        r##"{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"object","required":["x"],
        "properties":{"x":{"anyOf":[{"type":"null"},{"type":"number"}]},"y":{"type":["null","string"]}}}}}"##,
        r#"{"p":{"x":0}}"#,
    );
    check(r#"{"type":"array","minItems":1,"items":{"const":{"a":[1]}}}"#, r#"[{"a":[1]}]"#);
    check("{}", "{}");
    check("no schema", "{}");
    check("true", "{}");
    assert_eq!(skeleton(r#"{"properties":{"a":{"type":"string"}}}"#), "{\n  \"a\": \"\"\n}");
}

#[test]
fn a_skeleton_has_bounds() {
    let mut properties: Vec<String> = (0..40).map(|name| format!(r##""p{name}":{{"$ref":"#"}}"##)).collect();
    properties.push(r#""z":{"type":"string"}"#.to_owned());
    let required: Vec<String> = (0..40).map(|name| format!("\"p{name}\"")).collect();
    let schema = format!(r#"{{"properties":{{{}}},"required":[{}]}}"#, properties.join(","), required.join(","));
    assert!(skeleton(&schema).len() < 16 * BYTES_MAX);
}
