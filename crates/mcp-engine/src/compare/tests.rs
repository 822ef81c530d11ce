use super::*;

/// Each difference as a line: path, sign, values.
#[track_caller]
fn check(recorded: &str, now: &str, expected: &[&str]) {
    assert_eq!(lines(&compare(recorded.as_bytes(), now.as_bytes(), |_| false)), expected);
}

fn lines(found: &Differences) -> Vec<String> {
    let line = |difference: &Difference| {
        let change = match &difference.change {
            Change::Changed { recorded, now } => format!("{} -> {}", recorded.text, now.text),
            Change::Missing { recorded } => format!("- {}", recorded.text),
            Change::Added { now } => format!("+ {}", now.text),
            Change::Reordered => "reordered".into(),
        };
        format!("{} {change}", difference.path)
    };
    found.kept.iter().map(line).collect()
}

#[test]
fn what_says_the_same_is_the_same() {
    check(r#"{"a":1,"b":[true,null]}"#, " { \"b\" : [ true, null ],\n\"a\":1}\t", &[]);
    check(r#"[1,1.0,1e0,100,-0,0.5]"#, r#"[1.0,1e0,10e-1,1E+2,0,5e-1]"#, &[]);
    check(r#"["a\u0062","\/"]"#, r#"["ab","/"]"#, &[]);
    check(r#"{"a":1,"a":2}"#, r#"{"a":2}"#, &[]);
    check("123456789012345678901234567890", "123456789012345678901234567890.0", &[]);
}

#[test]
fn what_says_something_else_is_named_by_its_path() {
    check(r#"{"a":{"b c":[1,2]}}"#, r#"{"a":{"b c":[1,3]}}"#, &["$.a['b c'][1] 2 -> 3"]);
    check(r#"{"a":1}"#, r#"{"b":1}"#, &["$.a - 1", "$.b + 1"]);
    check(r#"[1]"#, r#"[1,[2]]"#, &["$[1] + [2]"]);
    check(r#"[1,2,3]"#, r#"[1]"#, &["$[1] - 2", "$[2] - 3"]);
    check(r#"{"a":[]}"#, r#"{"a":{}}"#, &["$.a [] -> {}"]);
    check("1", "\"1\"", &["$ 1 -> \"1\""]);
    check(
        "123456789012345678901234567890",
        "123456789012345678901234567891",
        &["$ 123456789012345678901234567890 -> 123456789012345678901234567891"],
    );
    check("1e400", "1e401", &["$ 1e400 -> 1e401"]);
    check("1e99999999999999999999", "1e99999999999999999998", &["$ 1e99999999999999999999 -> 1e99999999999999999998"]);
    check(r#""\ud800""#, r#""\ud801""#, &[r#"$ "\ud800" -> "\ud801""#]);
    check("null", "", &["$ null -> "]);
    check("{\"a\":", "not json", &["$ {\"a\": -> not json"]);
}

#[test]
fn items_that_have_names_are_compared_with_their_namesakes() {
    let tools = |names: &[(&str, u32)]| {
        let items: Vec<_> = names.iter().map(|(name, v)| format!(r#"{{"name":"{name}","v":{v}}}"#)).collect();
        format!(r#"{{"tools":[{}]}}"#, items.join(","))
    };
    let before = tools(&[("a", 1), ("b", 2), ("c", 3)]);
    check(
        &before,
        &tools(&[("x", 0), ("a", 1), ("b", 7), ("c", 3)]),
        &["$.tools[1].v 2 -> 7", r#"$.tools[0] + {"name":"x","v":0}"#],
    );
    check(&before, &tools(&[("a", 1), ("c", 3)]), &[r#"$.tools[1] - {"name":"b","v":2}"#]);
    check(&before, &tools(&[("c", 3), ("b", 2), ("a", 1)]), &["$.tools reordered"]);
    // Names that stand twice tell nothing apart.
    check(&tools(&[("a", 1), ("a", 2)]), &tools(&[("a", 2), ("a", 2)]), &["$.tools[0].v 1 -> 2"]);
}

#[test]
fn a_flood_of_differences_is_counted() {
    let list = |item: &str| format!("[{}]", vec![item; 1000].join(","));
    let found = compare(list("1").as_bytes(), list("2").as_bytes(), |_| false);
    assert_eq!((found.kept.len(), found.more, found.count()), (KEPT_MAX, 900, 1000));
}

#[test]
fn nesting_without_end_is_compared_as_text() {
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(1000), "]".repeat(1000));
    let found = compare(deep("1").as_bytes(), deep("2").as_bytes(), |_| false);
    assert_eq!(found.kept.len(), 1);
    assert_eq!(found.kept[0].path.steps().len(), DEPTH_MAX);
    assert!(compare(deep("1").as_bytes(), deep("1").as_bytes(), |_| false).is_empty());
    assert!(!value::canonical(deep("1").as_bytes(), &[]).is_empty());
    assert!(Pattern::parse("$..a").unwrap().find(deep("1").as_bytes()).is_empty());
}

#[test]
fn long_values_are_shown_where_they_begin_to_differ() {
    let text = |end: &str| format!("\"{}{end}\"", "é".repeat(100_000));
    let found = compare(text("one").as_bytes(), text("two").as_bytes(), |_| false);
    let Change::Changed { recorded, now } = &found.kept[0].change else { panic!("{found:?}") };
    assert!(recorded.text.ends_with("one\"") && now.text.ends_with("two\""), "{recorded:?}");
    assert!(!recorded.is_whole() && recorded.text.len() <= 2048 && recorded.len == 200_005);
    assert!(recorded.text.starts_with('é'), "cut between characters");
}

#[track_caller]
fn check_ignored(pattern: &str, recorded: &str, now: &str, expected: &[&str]) {
    let pattern = Pattern::parse(pattern).unwrap();
    assert_eq!(lines(&compare(recorded.as_bytes(), now.as_bytes(), |path| pattern.covers(path))), expected);
}

#[test]
fn ignored_places_are_not_compared() {
    let (one, other) = (r#"{"r":[{"t":1,"u":1},{"t":2,"u":2}],"s":1}"#, r#"{"r":[{"t":9,"u":1},{"t":9,"u":9}],"s":2}"#);
    check_ignored("$.r[*].t", one, other, &["$.r[1].u 2 -> 9", "$.s 1 -> 2"]);
    check_ignored("$.r", one, other, &["$.s 1 -> 2"]);
    check_ignored("$.r[1]", one, other, &["$.r[0].t 1 -> 9", "$.s 1 -> 2"]);
    check_ignored("$..t", one, other, &["$.r[1].u 2 -> 9", "$.s 1 -> 2"]);
    check_ignored("$.*", one, other, &[]);
    check_ignored("$", one, other, &[]);
    check_ignored("$.r[*].t", r#"{"r":[{"t":1}]}"#, r#"{"r":null}"#, &[r#"$.r [{"t":1}] -> null"#]);
}

#[test]
fn patterns_are_read_and_written() {
    for text in ["$", "$.a", "$.a.b-c[0][*]", "$..a", "$..[*]", "$['a b']['it\\'s']", "$.result['io.x/y']"] {
        assert_eq!(Pattern::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Pattern::parse("$.*[\"q\"]").unwrap().to_string(), "$[*].q");
    let fails = |text: &str| Pattern::parse(text).unwrap_err().column;
    assert_eq!(
        [fails(""), fails("a"), fails("$a"), fails("$."), fails("$.é["), fails("$['x"), fails("$.a.."), fails("$[-1]")],
        [1, 1, 2, 3, 5, 4, 6, 3]
    );
}

#[test]
fn patterns_find_places() {
    let found = |pattern: &str, value: &str| -> Vec<String> {
        let spans = Pattern::parse(pattern).unwrap().find(value.as_bytes());
        spans.into_iter().map(|span| value[span.range()].to_owned()).collect()
    };
    let value = r#" {"a":[{"b":1},{"b":"two"},{"c":{"b":3}}]} "#;
    assert_eq!(found("$.a[*].b", value), ["1", "\"two\""]);
    assert_eq!(found("$..b", value), ["1", "\"two\"", "3"]);
    assert_eq!(found("$.a[2].c", value), [r#"{"b":3}"#]);
    assert_eq!(found("$", value), [value.trim()]);
    assert!(found("$.x", value).is_empty() && found("$.a", "").is_empty());
}

#[test]
fn assignments_are_split_after_the_path() {
    assert_eq!(path::split_assignment("$.a=b=c"), Some(("$.a", "b=c")));
    assert_eq!(path::split_assignment("$['a=b']=1"), Some(("$['a=b']", "1")));
    assert_eq!(path::split_assignment("$.a"), None);
}

#[test]
fn a_canonical_spelling_is_shared_by_equals_only() {
    let same = |one: &str, other: &str| {
        value::canonical(one.as_bytes(), &["_meta"]) == value::canonical(other.as_bytes(), &["_meta"])
    };
    assert!(same(r#"{"a":1,"b":{"d":1,"c":[2]},"_meta":1}"#, r#"{ "b":{"c":[2.0],"d":1}, "a":1e0, "_meta":2 }"#));
    assert!(same(r#""\u0061""#, r#""a""#) && same("-0.0", "0") && same("1.50e1", "15"));
    assert!(!same(r#"{"a":{"_meta":1}}"#, r#"{"a":{}}"#), "only outermost members are left out");
    assert!(!same(r#"["a","b"]"#, r#"["a,b"]"#) && !same("1", "\"1\"") && !same("[1,2]", "[12]"));
    assert!(!same(r#"["1\"","x"]"#, r#"["1","\"x"]"#) && !same("null", "\"null\""));
}

#[test]
fn what_was_learned_holds_for_the_same_call() {
    let mut volatile = Volatile::default();
    let found = compare(br#"{"r":[{"t":1}]}"#, br#"{"r":[{"t":2}]}"#, |_| false);
    found.kept.iter().for_each(|difference| volatile.learn("tools/call [now]", &difference.path));
    let elsewhere = compare(br#"{"r":[0,{"t":1}]}"#, br#"{"r":[0,{"t":2}]}"#, |_| false);
    let path = &elsewhere.kept[0].path;
    assert!(volatile.covers("tools/call [now]", path) && !volatile.covers("tools/call [then]", path));
    let learned: Vec<_> = volatile.learned().into_iter().map(|(call, p)| format!("{call} {p}")).collect();
    assert_eq!(learned, ["tools/call [now] $.r[*].t"]);
}
