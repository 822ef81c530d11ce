use std::time::Instant;

use super::*;
use crate::text::chance::Chance;

/// Rows as a unified diff.
fn drawn(diff: &Diff) -> Vec<String> {
    let text = |line: &Line| {
        let word = |word: &Word| if word.is_changed { format!("<{}>", word.text) } else { word.text.clone() };
        line.words.iter().map(word).collect::<String>()
    };
    let row = |row: &Row| match row {
        Row::Same { left, is_ignored: false, .. } => vec![format!(" {}", text(left))],
        Row::Same { left, .. } => vec![format!("~{}", text(left))],
        Row::Changed { left, right } => vec![format!("-{}", text(left)), format!("+{}", text(right))],
        Row::Left(line) => vec![format!("-{}", text(line))],
        Row::Right(line) => vec![format!("+{}", text(line))],
    };
    diff.rows.iter().flat_map(row).collect()
}

#[track_caller]
fn check(left: &str, right: &str, ignore: &[&str], expected: &[&str]) {
    let ignore: Vec<String> = ignore.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(drawn(&diff_json(left, right, &ignore)), expected);
}

#[test]
fn lines_with_the_same_key_are_one_row() {
    check(
        r#"{"a": 1,"b":2}"#,
        r#"{"a":1,"b":3}"#,
        &[],
        &[" {", r#"   "a": 1,"#, r#"-  "b": <2>"#, r#"+  "b": <3>"#, " }"],
    );
    check(r#"{"a":1}"#, r#"{"a":1,"b":[]}"#, &[], &[" {", r#"   "a": 1"#, r#"+  "b": []"#, " }"]);
    check(r#"{"a":1,"b":2}"#, r#"{"b":3}"#, &[], &[" {", r#"-  "a": 1,"#, r#"-  "b": <2>"#, r#"+  "b": <3>"#, " }"]);
    check("[1.0]", "[1.00]", &[], &[" [", "-  <1.0>", "+  <1.00>", " ]"]);
    check("not\njson", "not\nJSON", &[], &[" not", "-json", "+JSON"]);
}

#[test]
fn ignored_values_are_equal_and_marked() {
    let (left, right) = (
        r#"{"id":1,"result":{"ts":5,"rows":[{"user_id":"a","n":1}],"_meta":{"a":1}}}"#,
        r#"{"id":2,"result":{"ts":6,"rows":[{"user_id":"b","n":2}],"_meta":{"b":[1,2]}}}"#,
    );
    let ignore = ["$.id", "$.result.ts", "$..*_id", "$.result[\"_meta\"]"].map(str::to_owned);
    let diff = diff_json(left, right, &ignore);
    assert_eq!((diff.differing, diff.ignored, diff.is_same), (1, 4, false));
    assert!(drawn(&diff).contains(&"~    \"_meta\": {…}".to_owned()));
    let ignore = [&ignore[..], &["$.result.rows[*].n".to_owned()]].concat();
    assert!(diff_json(left, right, &ignore).is_same);
    check(r#"{"a":1}"#, "{}", &["$.a"], &["-<{>", "+<{}>", "-  \"a\": 1", "-}"]);
    assert_eq!(diff_json("1", "1", &["a\x1b".to_owned()]).note.unwrap(), "no path: a␛");
}

#[test]
fn equal_stretches_fold() {
    let items = |changed: &[usize]| -> String {
        let item = |at: usize| if changed.contains(&at) { "true".to_owned() } else { at.to_string() };
        format!("[{}]", (0..50).map(item).collect::<Vec<_>>().join(","))
    };
    let diff = diff_json(&items(&[]), &items(&[20, 24]), &[]);
    let shown = diff.folded(3);
    assert_eq!(shown.first(), Some(&Shown::Folded(0..18)));
    assert_eq!(shown[1..12], (18..29).map(Shown::Row).collect::<Vec<_>>());
    assert_eq!(shown[12..], [Shown::Folded(29..52)]);
    assert_eq!(diff_json("[1]", "[1]", &[]).folded(3), [Shown::Folded(0..3)]);
}

#[test]
fn every_line_of_both_sides_has_its_row() {
    let mut chance = Chance::new(8);
    for _ in 0..300 {
        let (left, right) = (chance.json(4), chance.json(4));
        let diff = diff_json(&left, &right, &["$..a".to_owned()]);
        let left_lines = diff.rows.iter().filter(|row| !matches!(row, Row::Right(_))).count();
        let right_lines = diff.rows.iter().filter(|row| !matches!(row, Row::Left(_))).count();
        assert_eq!(left_lines, layout::lay_out(&left, &[Pattern::parse("$..a").unwrap()]).unwrap().len());
        assert_eq!(right_lines, layout::lay_out(&right, &[Pattern::parse("$..a").unwrap()]).unwrap().len());
        assert!(!drawn(&diff).iter().any(|line| line.chars().any(char::is_control)));
        assert!(diff_json(&left, &left, &[]).is_same);
    }
}

#[test]
fn what_is_too_large_is_said_to_be() {
    let huge = format!("[{}1]", "1,".repeat(30_000));
    assert!(diff_json(&huge, &huge, &[]).is_same);
    let words = diff_json(&huge, "[]", &[]).note.unwrap();
    assert_eq!(words, "they differ; 60 kB and 2 B are too large to compare line by line");
}

#[test]
fn a_long_line_shows_where_it_differs() {
    let line = |middle: &str| format!("\"{}{middle}{}\"", "a".repeat(90_000), "b".repeat(90_000));
    let rows = drawn(&diff_json(&line("one"), &line("two"), &[]));
    assert_eq!(rows.len(), 2);
    assert!(rows[0].contains("aaa<one>bbb") && rows[1].contains("aaa<two>bbb"));
    assert!(rows[0].len() < 120);
}

#[test]
fn the_worst_of_what_is_compared_is_soon_done() {
    let start = Instant::now();
    let mut chance = Chance::new(9);
    let mut items = || {
        let items: Vec<String> = (0..19_000).map(|_| chance.below(40).to_string()).collect();
        format!("[{}]", items.join(","))
    };
    let (left, right) = (items(), items());
    assert!(diff_json(&left, &right, &[]).differing > 0);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn a_long_key_over_many_values_is_no_burden() {
    let run = |value: &str| format!("{{\"{}\":[{}1],\"a\":{value}}}", "k".repeat(900_000), "1,".repeat(10_000));
    assert_eq!(learn(&[&run("1"), &run("2")]), ["$.a"]);
    assert_eq!(diff_json(&run("1"), &run("2"), &["$..x".to_owned()]).differing, 1);
}

#[test]
fn repeats_teach_what_to_ignore() {
    let run = |id: u32, a: &str, b: &str| {
        format!(
            r#"{{"id":{id},"result":{{"x":1,"odd key":"{a}","rows":[{{"t":"{a}"}},{{"t":"{b}"}}],"one":["{a}"]}}}}"#
        )
    };
    let runs = [run(1, "a", "b"), run(2, "c", "d"), run(3, "c", "d")];
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let learned = learn(&runs);
    assert_eq!(learned, ["$.id", r#"$.result["odd key"]"#, "$.result.rows[*].t", "$.result.one[0]"]);
    assert!(diff_json(runs[0], runs[1], &learned).is_same);
    assert!(learn(&["{}", "no json"]).is_empty());
    assert!(learn(&[]).is_empty());
}
