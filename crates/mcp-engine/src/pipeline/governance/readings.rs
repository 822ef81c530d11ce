//! What was forwarded says to every reader what was judged, whatever a client sends.

use mcp_wire::checks::{Document, Reader};
use mcp_wire::fold::skeleton;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::tests::{Play, rule, rules};
use super::*;

fn judges() -> Play {
    Play::by(rules(vec![
        rule("no-deletes", "op:delete", VerdictKind::Deny),
        rule("no-shutdown", "tool:shutdown_host", VerdictKind::Deny),
        rule("no-etc", "$.params.arguments.path ^= \"/etc\"", VerdictKind::Deny),
    ]))
}

/// Whether a reader finds something in a message that rules deny.
fn is_denied(reader: Reader, document: &Document) -> bool {
    if let Document::List(items) = document {
        return items.iter().any(|item| is_denied(reader, item));
    }
    let text = |path: &[&str]| match reader.get(document, path) {
        Some(Document::Text(text)) => Some(text),
        _ => None,
    };
    let is_call = text(&["method"]).is_some_and(|method| skeleton(&method) == "tools/call");
    let name = text(&["params", "name"]).map(|name| skeleton(&name).into_owned());
    let path = text(&["params", "arguments", "path"]);
    is_call
        && (matches!(name.as_deref(), Some("delete_repo" | "shutdown_host"))
            || path.is_some_and(|path| path.starts_with("/etc")))
}

/// Sends what a client sends, and looks at what the server gets of it. Tells whether it got anything.
fn forwards_what_was_judged(play: &mut Play, sent: &str) -> bool {
    play.sends(Side::Client, sent);
    let got = play.got(Side::Server);
    for message in &got {
        assert_eq!(message, sent, "what goes on is what was judged");
        let document = Document::parse(message.as_bytes()).expect("a full parser takes what was let through");
        for reader in Reader::ALL {
            assert!(!is_denied(reader, &document), "{reader:?} reads a denied call in {message}");
        }
    }
    !got.is_empty()
}

/// One of several spellings, most of them sound.
fn spelled(sound: &'static str, others: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(sound), 1 => prop::sample::select(others)].prop_map(|word| format!("\"{word}\""))
}

fn name() -> impl Strategy<Value = String> {
    const NAMES: &[&str] = &[
        "delete_repo",
        "Delete_Repo",
        "shutdown_host",
        "shutdown_host\\u0000",
        "\\u0064elete_repo",
        "d\u{435}lete_repo",
    ];
    prop_oneof![spelled("echo", NAMES), Just("[\"delete_repo\"]".into()), Just("null".into())]
}

fn arguments() -> impl Strategy<Value = String> {
    let path = spelled("/tmp", &["/etc/passwd", "\\/etc", "/etc\\u0000", "\\u002fetc"]);
    let key = spelled("path", &["Path", "p\\u0061th", "path\\u0000", "p\u{430}th", "text", "x"]);
    prop::collection::vec((key, path), 0..3).prop_map(|members| object(&members))
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn params() -> impl Strategy<Value = String> {
    let name = (spelled("name", &["Name", "n\\u0061me", "name\\u0000", "n\u{430}me"]), name());
    let arguments = (spelled("arguments", &["Arguments", "argument\\u0073", "args"]), arguments());
    let more = (spelled("x", &["_meta", "task", "y"]), Just("{}".to_owned()));
    (name, arguments, prop::collection::vec(more, 0..2))
        .prop_map(|(name, arguments, more)| object(&[vec![name, arguments], more].concat()))
}

fn method() -> impl Strategy<Value = String> {
    spelled("tools/call", &["Tools/Call", "tools\\/call", "tools/list", "tools/call ", "acme/do"])
}

/// A call, with members that stand twice or are spelled in other ways.
fn call() -> impl Strategy<Value = String> {
    let again = prop_oneof![
        (spelled("params", &["Params", "par\\u0061ms", "param\u{17f}"]), params()),
        (spelled("method", &["Method", "m\\u0065thod", "method\\u0000"]), method()),
        (Just("\"id\"".to_owned()), spelled("1", &["", "1\\u0000"])),
        (Just("\"more\"".to_owned()), params()),
    ];
    let again = prop_oneof![3 => Just(None), 1 => again.prop_map(Some)];
    (method(), params(), again, any::<bool>()).prop_map(|(method, params, again, is_first)| {
        let usual = [("\"jsonrpc\"", "\"2.0\"".to_owned()), ("\"id\"", "7".into()), ("\"method\"", method)];
        let mut members: Vec<_> = usual.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        members.push(("\"params\"".to_owned(), params));
        if let Some(again) = again {
            members.insert(if is_first { 0 } else { members.len() }, again);
        }
        object(&members)
    })
}

/// What a client and a server say that agree on the revision that has batches.
fn with_batches() -> Play {
    let mut play = judges();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#;
    play.sends(Side::Client, hello);
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}"#);
    drop((play.got(Side::Server), play.got(Side::Client)));
    play
}

proptest! {
    #[test]
    fn whatever_is_sent(sent in call()) {
        forwards_what_was_judged(&mut judges(), &sent);
    }

    #[test]
    fn also_in_batches(items in prop::collection::vec(call(), 1..3)) {
        forwards_what_was_judged(&mut with_batches(), &format!("[{}]", items.join(",")));
    }
}

/// What holds of what is forwarded says nothing if nothing is.
#[test]
fn some_of_it_is_forwarded() {
    let mut runner = TestRunner::deterministic();
    let mut generated = || call().new_tree(&mut runner).expect("a call").current();
    let alone = (0..200).filter(|_| forwards_what_was_judged(&mut judges(), &generated())).count();
    let batch = |call: String| format!("[{call}]");
    let batches = (0..200).filter(|_| forwards_what_was_judged(&mut with_batches(), &batch(generated()))).count();
    for forwarded in [alone, batches] {
        assert!((20..180).contains(&forwarded), "{forwarded} of 200");
    }
}
