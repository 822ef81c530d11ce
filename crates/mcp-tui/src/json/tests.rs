use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::*;
use crate::text::chance::Chance;

fn read(text: &str) -> Arc<Document> {
    Arc::new(Document::parse(text).unwrap())
}

/// The document as a value, by the nodes alone.
fn value(document: &Document, node: NodeId) -> Value {
    match document.shape(node) {
        Shape::Array => document.children(node).map(|child| value(document, child)).collect(),
        Shape::Object => {
            let member = |child| (document.key(child).unwrap().into_owned(), value(document, child));
            Value::Object(document.children(node).map(member).collect::<Map<_, _>>())
        }
        _ => serde_json::from_str(document.source(node)).unwrap(),
    }
}

fn shown(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

fn drawn(tree: &Tree) -> Vec<String> {
    let row = |row: Row| {
        let mark = row.is_open.map_or(' ', |is_open| if is_open { '▾' } else { '▸' });
        let key = match row.key {
            Some(Label::Name(name)) => format!("{name} "),
            Some(Label::Index(index)) => format!("[{index}] "),
            None => String::new(),
        };
        format!("{}{mark} {key}{}", "  ".repeat(row.depth), shown(&row.preview))
    };
    tree.rows(0..tree.len()).into_iter().map(row).collect()
}

#[test]
fn what_is_read_is_what_others_read() {
    let mut chance = Chance::new(2);
    for _ in 0..3000 {
        let json = chance.json(4);
        let document = Document::parse(json.as_str()).unwrap();
        assert_eq!(value(&document, 0), serde_json::from_str::<Value>(&json).unwrap(), "{json}");
        assert_eq!(document.text().as_ref(), json);
    }
}

#[test]
fn what_others_refuse_is_refused() {
    let mut chance = Chance::new(3);
    for _ in 0..20_000 {
        let mut json: Vec<char> = chance.json(3).chars().collect();
        let at = chance.below(json.len());
        match chance.below(3) {
            0 => drop(json.remove(at)),
            1 => json.insert(at, ['"', ',', '}', ']', '0', '-', '.', 'e', '\\', ':', '\n'][chance.below(11)]),
            _ => json.truncate(at),
        }
        let json: String = json.into_iter().collect();
        let expected = serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok();
        assert_eq!(Document::parse(json.as_str()).is_ok(), expected, "{json}");
    }
}

#[test]
fn a_fault_says_where_it_is() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Document::parse(text).unwrap_err().to_string(), expected);
    }
    check("", "it ends too early, at byte 0");
    check("{\"a\" 1}", "a colon is missing, at byte 5");
    check("[1 2]", "a comma or the end of the list is missing, at byte 3");
    check("[1,]", "a value is missing, at byte 3");
    check("{} x", "something follows the value, at byte 3");
    check("\"abc", "a string is not closed, at byte 4");
    check("01", "something follows the value, at byte 1");
}

#[test]
fn paths_are_those_of_filters() {
    let document = read(r#"{"params":{"a-b":[0,{"odd key":1,"q\"\\\n":2,"":3,"é":4,"a*b":5}]}}"#);
    let paths: Vec<String> = document.ids().map(|node| document.path(node)).collect();
    assert_eq!(paths[..5], ["$", "$.params", "$.params.a-b", "$.params.a-b[0]", "$.params.a-b[1]"]);
    assert_eq!(paths[5], r#"$.params.a-b[1]["odd key"]"#);
    assert_eq!(paths[6], r#"$.params.a-b[1]["q\"\\\n"]"#);
    let mut chance = Chance::new(4);
    let random = (0..300).map(|_| read(&chance.json(4)));
    for document in random.chain([document]) {
        for node in document.ids() {
            let path = document.path(node);
            assert_eq!(mcp_filter::Filter::parse(&path).unwrap().to_string(), path);
        }
    }
}

#[test]
fn the_tree_opens_three_deep_and_folds() {
    let json = r#"{"a":{"b":{"c":{"d":[1]}}},"n":1.50,"n":"é\u00e9","e":{},"t":true,"z":null}"#;
    let mut tree = Tree::new(read(json));
    let expected =
        ["▾ ", "  ▾ a ", "    ▾ b ", "      ▸ c {d}", "    n 1.50", r#"    n "é\u00e9""#, "    e {}", "    t true"];
    assert_eq!(drawn(&tree)[..8], expected);
    tree.toggle(3);
    assert_eq!(drawn(&tree)[3..5], ["      ▾ c ", "        ▸ d [1 item]"]);
    tree.close_all();
    assert_eq!(drawn(&tree)[..3], ["▾ ", "  ▸ a {b}", "    n 1.50"]);
    let leaf = tree.find("1")[0];
    assert_eq!(tree.path(leaf), "$.a.b.c.d[0]");
    assert_eq!(tree.row_of(leaf), None);
    assert_eq!(tree.reveal(leaf), 5);
    assert_eq!(tree.node_at(5), Some(leaf));
    tree.open_all();
    assert_eq!(tree.len(), tree.document().len());
    tree.toggle(0);
    assert_eq!(drawn(&tree), ["▸ {a, n, n, e, t, z}"]);
}

#[test]
fn rows_are_the_same_whatever_the_window() {
    let mut chance = Chance::new(5);
    for _ in 0..200 {
        let mut tree = Tree::new(read(&chance.json(6)));
        for _ in 0..4 {
            let at = chance.below(tree.document().len()) as NodeId;
            tree.toggle(at);
        }
        let all = tree.rows(0..usize::MAX);
        let from = chance.below(all.len() + 2);
        let window = tree.rows(from..from + 3);
        assert_eq!(window, all.iter().skip(from).take(3).cloned().collect::<Vec<_>>());
        assert!(all.iter().enumerate().all(|(row, shown)| tree.row_of(shown.node) == Some(row)));
    }
}

#[test]
fn values_are_shown_by_what_they_are() {
    #[track_caller]
    fn check(json: &str, node: NodeId, expected: &str) {
        assert_eq!(shown(&read(json).preview(node, 20)), expected);
    }
    check(r#""a\nb""#, 0, r#""a\nb""#);
    check("\"\u{202e}\u{7f}\"", 0, "\"⟨U+202E⟩␡\"");
    check(&format!("\"{}\"", "x".repeat(5000)), 0, "\"xxxxxxxxxxxxxxxxxxx… 5.0 kB");
    check(r#""{\"a\":[1]}""#, 0, r#""{\"a\":[1]}" (json)"#);
    check(r#""{not}""#, 0, r#""{not}""#);
    check("[1,2,3]", 0, "[3 items, 7 B]");
    check(r#"{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}"#, 0, "{a, b, c, d, e, f, 1 more}");
    let image = format!("iVBORw0KGgo{}=", "A".repeat(1000));
    check(&format!(r#"{{"type":"image","data":"{image}"}}"#), 2, "image/png 758 B (base64)");
    check(&format!(r#"{{"blob":"{image}","mimeType":"x/\u001b"}}"#), 1, r"x/\u001b 758 B (base64)");
    check(&format!(r#"{{"text":"{image}"}}"#), 1, "\"iVBORw0KGgoAAAAAAAA… 1.0 kB");
}

#[test]
fn whoever_edits_sees_everything() {
    let json = "{\"na\u{202e}me\":\"a\u{9b}2J\u{7f}\u{200b}\u{e0041}z\",\"b\":1.0}";
    let expected = "{\n  \"na\\u202eme\": \"a\\u009b2J\\u007f\\u200b\\udb40\\udc41z\",\n  \"b\": 1.0\n}";
    assert_eq!(pretty_of(json), expected);
    assert_eq!(pretty_of(expected), expected, "once is enough");
    let mut chance = Chance::new(12);
    for _ in 0..300 {
        let document = read(&chance.json(5));
        let text = pretty_of(document.text());
        assert!(!text.chars().any(|c| is_deceptive(c) || c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(value(&read(&text), 0), value(&document, 0));
    }
}

#[test]
fn pretty_lines_are_the_pretty_text() {
    let json = r#"{"a":[1,{"b":[]}],"c":1.0}"#;
    let expected = "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": 1.0\n}";
    assert_eq!(pretty_text(&read(json)), expected);
    let mut chance = Chance::new(6);
    for _ in 0..300 {
        let document = read(&chance.json(5));
        let text = pretty_text(&document);
        assert_eq!(value(&read(&text), 0), value(&document, 0));
        let pretty = Pretty::new(document);
        let lines: Vec<String> = pretty.pretty_lines(0..usize::MAX).iter().map(|line| shown(line)).collect();
        assert_eq!(lines.len(), pretty.len());
        let plain: Vec<String> = text.split('\n').map(|line| crate::text::clean(line).into_owned()).collect();
        if !text.contains("\"[") && !text.contains("\"{") {
            assert_eq!(lines, plain);
        }
    }
}

#[test]
fn a_window_of_pretty_lines_is_cut_from_all() {
    let items: Vec<String> = (0..2000).map(|item| format!("[{item},{{\"k\":[]}}]")).collect();
    let pretty = Pretty::new(read(&format!("[{}]", items.join(","))));
    let all = pretty.pretty_lines(0..usize::MAX);
    for from in [0, 255, 256, 257, 5000, all.len() - 2, all.len() + 5] {
        assert_eq!(pretty.pretty_lines(from..from + 7), all.iter().skip(from).take(7).cloned().collect::<Vec<_>>());
    }
}

#[test]
fn raw_lines_wrap_and_hold_everything() {
    #[track_caller]
    fn check(text: &str, width: usize, expected: &[&str]) {
        assert_eq!(Wrap::new(text, width).lines(0..usize::MAX), expected);
    }
    check("abcdef", 4, &["abcd", "ef"]);
    check("abcd", 4, &["abcd"]);
    check("ab\ncd\r\n\nef\n", 4, &["ab", "cd", "", "ef"]);
    check("漢字漢", 5, &["漢字", "漢"]);
    check("abce\u{301}f", 4, &["abce\u{301}", "f"]);
    check("a\x1bb\u{202e}", 9, &["a␛b", "⟨U+202E⟩"]);
    check("\u{202e}x", 3, &["…", "x"]);
    check("", 4, &[""]);
    let mut chance = Chance::new(7);
    for _ in 0..60 {
        let text: String = (0..200).map(|_| chance.text(8)).collect();
        let width = 8 + chance.below(30);
        let mut wrap = Wrap::new(text.as_str(), width);
        let all = wrap.lines(0..usize::MAX);
        assert!(all.iter().all(|line| crate::text::width(line) <= width));
        assert_eq!(wrap.known(), (all.len(), true));
        let from = chance.below(all.len());
        assert_eq!(Wrap::new(text.as_str(), width).lines(from..from + 5), all[from..all.len().min(from + 5)]);
    }
}

#[test]
fn words_are_found_in_keys_and_values() {
    let document = read(r#"{"Token":"a","x":"tok\u0065n","y":["TOKEN",17],"z":{"n":"\"quoted\""}}"#);
    assert_eq!(document.find("token"), [1, 2, 4]);
    assert_eq!(document.find("Token"), [1]);
    assert_eq!(document.find("17"), [5]);
    assert_eq!(document.find("\"quoted"), [7]);
    assert!(document.find("").is_empty());
}

#[test]
fn too_many_values_end_in_one_leaf() {
    let document = {
        let text: Arc<str> = r#"{"a":[1,2,3],"b":{"c":4}}"#.into();
        let nodes = parse::nodes_up_to(&text, 5).unwrap();
        Arc::new(Document { text, nodes })
    };
    assert!(document.is_cut());
    assert_eq!(document.len(), 5);
    let tree = Tree::new(document.clone());
    assert_eq!(drawn(&tree)[2..], ["      [0] 1", "      [1] 2", "      [2] … 15 B more, too large to fold"]);
    assert_eq!(pretty_text(&document), document.text().as_ref());
    assert_eq!(Pretty::new(document).len(), 7);
}

/// Generous, for slow machines in debug builds; what is quadratic takes hours.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn what_is_huge_stays_cheap() {
    let start = Instant::now();
    let wide = format!("{{\"a\":[{}1]}}", "1,".repeat(1_000_000));
    let mut tree = Tree::new(read(&wide));
    assert_eq!(tree.len(), 2);
    tree.toggle(1);
    assert_eq!(tree.rows(999_990..1_000_000).len(), 10);
    assert_eq!(Pretty::new(tree.document().clone()).pretty_lines(900_000..900_050).len(), 50);

    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let mut tree = Tree::new(read(&deep));
    tree.open_all();
    assert_eq!(tree.rows(400_000..400_020).len(), 20);
    assert_eq!(tree.reveal(499_999), 499_999);
    let pretty = Pretty::new(tree.document().clone());
    assert_eq!(pretty_text(pretty.document()), deep);
    assert!(pretty.pretty_lines(499_000..499_020).iter().all(|line| shown(line).len() < 300));

    let long = format!("\"{}\"", "é\u{301}\x7f".repeat(2 << 20));
    let document = read(&long);
    let tree = Tree::new(document.clone());
    for _ in 0..50 {
        assert!(shown(&tree.rows(0..1)[0].preview).len() < 2000);
    }
    let mut wrap = Wrap::new(document.text().clone(), 80);
    assert_eq!(wrap.lines(0..50).len(), 50);
    assert_eq!(wrap.known(), (50, false));
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[test]
fn more_values_than_can_be_folded_are_still_shown() {
    let document = read(&format!("[{}1]", "[],".repeat(NODES_MAX)));
    assert!(document.is_cut());
    assert_eq!(document.len(), NODES_MAX);
    assert!(shown(&document.preview(NODES_MAX as NodeId - 1, 200)).ends_with("too large to fold"));
}
