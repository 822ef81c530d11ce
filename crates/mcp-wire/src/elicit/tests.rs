use super::*;

#[test]
fn who_shows_forms() {
    #[track_caller]
    fn check(capabilities: &str, expected: bool) {
        assert_eq!(shows_forms(capabilities.as_bytes()), expected, "{capabilities}");
    }
    check(r#"{"elicitation":{}}"#, true);
    check(r#"{"roots":{}, "elicitation": { "form": {} } }"#, true);
    check(r#"{"elicitation":{"form":{},"url":{}}}"#, true);
    check(r#"{"elicitation":{"url":{}}}"#, false);
    check(r#"{"elicitation":{"form":null}}"#, false);
    check(r#"{"elicitation":true}"#, false);
    check(r#"{"elicitation":null}"#, false);
    check(r#"{"roots":{}}"#, false);
    check("", false);
}

#[test]
fn what_was_said() {
    #[track_caller]
    fn check(result: &str, expected: Said) {
        assert_eq!(said(result.as_bytes()), expected, "{result}");
    }
    check(r#"{"action":"accept","content":{"decision":"allow once"}}"#, Said::AllowOnce);
    check(r#"{"content":{"decision":"allow for this session"},"action":"accept"}"#, Said::AllowForSession);
    check(r#"{"action":"accept","content":{"decision":"deny"}}"#, Said::Deny);
    check(r#"{"action":"decline","content":{"decision":"allow once"}}"#, Said::Deny);
    check(r#"{"action":"cancel"}"#, Said::Nothing);
    check(r#"{"action":"accept"}"#, Said::Nonsense);
    check(r#"{"action":"accept","content":{"decision":"Allow once"}}"#, Said::Nonsense);
    check(r#"{"action":"accept","content":{"decision":["allow once"]}}"#, Said::Nonsense);
    check(r#"{"content":{"decision":"allow once"}}"#, Said::Nonsense);
    check("{}", Said::Nonsense);
}

fn message(text: &str) -> Message {
    Message::new(Bytes::copy_from_slice(text.as_bytes()))
}

/// A call with these members besides its tool and arguments.
fn call(id: u32, more: &str) -> Message {
    message(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"write", "arguments":{{"n":1e400}}{more}}}}}"#
    ))
}

const OURS: &str = r#", "inputResponses":{"mcp-proxy-ask":{"action":"accept","content":{"decision":"deny"}}},"requestState":"mcp-proxy-ask.7""#;

#[test]
fn a_round_of_ours_leaves_no_trace() {
    #[track_caller]
    fn check(again: &str, first: Option<&str>, expected: &str) {
        let first = first.map(|first| call(1, first));
        let (again, expected) = (call(2, again), call(2, expected));
        assert_eq!(without_our_round(&again, first.as_ref()), expected.bytes());
    }
    check(OURS, None, "");
    check(OURS, Some(""), "");
    let theirs = r#", "inputResponses":{"name":{"action":"accept"}},"requestState":"theirs""#;
    check(OURS, Some(theirs), theirs);
    check(OURS, Some(r#","requestState":"theirs""#), r#", "requestState":"theirs""#);
    check(r#","inputResponses":{"a":1,"mcp-proxy-ask":2},"requestState":"x""#, None, r#","inputResponses":{"a":1}"#);
    check(r#","_meta":{"a":1},"requestState":"x""#, None, r#","_meta":{"a":1}"#);
    // Of an answer that was not repeated, what stood there before is put back all the same.
    let again = message(r#"{"params":{"requestState":"mcp-proxy-ask.7"}}"#);
    let first = message(r#"{"params":{"inputResponses":{"a":1}}}"#);
    assert_eq!(without_our_round(&again, Some(&first)), r#"{"params":{"inputResponses":{"a":1}}}"#);
}

#[test]
fn a_request_that_comes_again_says_the_same() {
    #[track_caller]
    fn check(first: &str, again: &str, expected: bool) {
        assert_eq!(is_same_again(&message(first), &message(again)), expected);
    }
    let call = |params: &str| format!(r#"{{"id":1,"method":"tools/call","params":{{{params}}}}}"#);
    let first = call(r#""name":"w","arguments":{"a":1},"_meta":{"t":1}"#);
    check(&first, &call(&format!(r#""_meta":{{"t":2}},"arguments":{{"a":1}},"name":"w"{OURS}"#)), true);
    check(&first, &call(r#""name":"w","arguments":{"a":2}"#), false);
    check(&first, &call(r#""name":"w","arguments":{"a": 1}"#), false);
    check(&first, &call(r#""name":"x","arguments":{"a":1}"#), false);
    check(&first, &call(r#""name":"w","arguments":{"a":1},"task":{}"#), false);
    check(&first, &call(r#""name":"w""#), false);
    check(&first, &call(r#""name":"w","arguments":{"a":1},"inputResponses":{"other":{}}"#), false);
    check(&first, &first.replace("tools/call", "prompts/get"), false);
}

#[test]
fn what_is_sent_is_what_the_protocol_has() {
    assert_eq!(
        request(&Id::Text("mcp-proxy-ask-1".into()), "May \"x\" go on?"),
        r#"{"jsonrpc":"2.0","id":"mcp-proxy-ask-1","method":"elicitation/create","params":{"message":"May \"x\" go on?","requestedSchema":{"properties":{"decision":{"enum":["allow once","allow for this session","deny"],"title":"Decision","type":"string"}},"required":["decision"],"type":"object"}}}"#
    );
    let asked = message(std::str::from_utf8(&input_required(&Id::Integer(3), "s", "?")).expect("text"));
    assert_eq!(asked.id(), Some(Id::Integer(3)));
    let kind = scan::member_at(asked.bytes(), ["result", "resultType"]).expect("it says so");
    assert_eq!(asked.slice(kind), b"\"input_required\"");
}

#[test]
fn a_state_is_found_again() {
    assert_eq!(state_of(&call(1, OURS)).as_deref(), Some("mcp-proxy-ask.7"));
    assert_eq!(state_of(&call(1, r#","requestState":7"#)), None);
    assert_eq!(state_of(&call(1, "")), None);
    assert_eq!(said_again(&call(1, OURS)), Said::Deny);
    assert_eq!(said_again(&call(1, "")), Said::Nothing);
}

proptest::proptest! {
    /// Whatever a request says, and wherever its client puts the answer to us: what is left is the request.
    #[test]
    fn what_is_left_is_what_was_meant(
        members in proptest::collection::vec(("[a-z]{1,4}", "(null|\\{ \\}|1\\.50|\"a\\\\u0062\"|\\[1, \\{\"x\":\"}\"\\}\\])"), 0..4),
        at in proptest::collection::vec(0usize..8, 2),
        blank in "[ \t]{0,2}",
    ) {
        let line = |members: &[String]| {
            let params = members.join(&format!("{blank},{blank}"));
            message(&format!(r#"{{"id":1,"method":"tools/call","params":{{{blank}{params}{blank}}}}}"#))
        };
        let meant: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\"{blank}:{blank}{value}")).collect();
        let mut again = meant.clone();
        for (at, ours) in at.iter().zip([
            r#""requestState":"mcp-proxy-ask.1""#,
            r#""inputResponses":{ "mcp-proxy-ask" : {"action":"cancel"} }"#,
        ]) {
            again.insert(at % (again.len() + 1), ours.to_owned());
        }
        let left = without_our_round(&line(&again), None);
        // Blanks around what was taken out may be others.
        let plain = |bytes: &[u8]| -> Vec<u8> { bytes.iter().copied().filter(|byte| !b" \t".contains(byte)).collect() };
        proptest::prop_assert_eq!(plain(&left), plain(line(&meant).bytes()));
        proptest::prop_assert!(left.len() < line(&again).bytes().len());
    }
}
