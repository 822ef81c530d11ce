//! The newest revision: a call is answered with a question, and comes again.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ALLOW, CANCEL, NO, SESSION};
use crate::envelope::Side;
use crate::intercept::{DecideError, Decision, Lasting};
use crate::pipeline::governance::tests::{Play, asking, rule};
use crate::policy::rules::VerdictKind;

/// What a client of the newest revision says of itself with each request.
fn meta(capabilities: &str) -> String {
    format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
    )
}

fn call_with(id: u32, tool: &str, more: &str) -> String {
    let meta = meta(r#"{"elicitation":{"form":{}}}"#);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"n":1.50}},{meta}{more}}}}}"#
    )
}

fn call(id: u32, tool: &str) -> String {
    call_with(id, tool, "")
}

fn again(id: u32, tool: &str, said: &str, state: &str) -> String {
    call_with(id, tool, &format!(r#","inputResponses":{{"mcp-proxy-ask":{said}}},"requestState":"{state}""#))
}

impl Play {
    /// The state of the question that the call `id` was answered with.
    fn is_asked(&mut self, id: u32) -> String {
        assert_eq!(self.got(Side::Server), [""; 0]);
        let answer: Value = serde_json::from_str(&self.got_one(Side::Client)).expect("JSON");
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        let form = &answer["result"]["inputRequests"]["mcp-proxy-ask"];
        assert_eq!(form["method"], "elicitation/create");
        assert!(form["params"]["message"].as_str().is_some_and(|text| text.contains("careful")));
        answer["result"]["requestState"].as_str().expect("a state").to_owned()
    }

    /// Sends a call, and what its client is asked comes back.
    fn asks(&mut self, id: u32, tool: &str) -> String {
        self.sends(Side::Client, &call(id, tool));
        self.is_asked(id)
    }
}

#[tokio::test]
async fn a_call_that_comes_again_with_a_yes_goes_on() {
    let mut play = Play::by(asking(None));
    let state = play.asks(1, "write_file");
    assert!(play.pipeline.status().held[0].in_client);
    play.sends(Side::Client, &again(2, "write_file", ALLOW, &state));
    assert_eq!(play.got(Side::Server), [call(2, "write_file")]);
    assert_eq!(play.got(Side::Client), [""; 0]);
    assert_eq!(play.pipeline.status().held.len(), 0);
    play.sends(Side::Server, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert_eq!(play.got(Side::Client).len(), 1);
    // That was once.
    let state = play.asks(3, "write_file");
    play.sends(Side::Client, &again(4, "write_file", SESSION, &state));
    assert_eq!(play.got(Side::Server), [call(4, "write_file")]);
    play.sends(Side::Client, &call(5, "write_file"));
    assert_eq!(play.got(Side::Server), [call(5, "write_file")]);
    // What one client was permitted, another was not.
    let other = play.pipeline.begin_conversation();
    let first = std::mem::replace(&mut play.conversation, other);
    play.asks(1, "write_file");
    play.conversation = first;
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[tokio::test]
async fn whatever_is_no_yes_is_a_no() {
    for (said, why) in NO {
        let mut play = Play::by(asking(None));
        let state = play.asks(1, "write_file");
        play.sends(Side::Client, &again(2, "write_file", said, &state));
        play.is_denied(why);
        assert!(play.audited().iter().any(|line| line.contains("deny careful client")), "{said}");
    }
    let mut play = Play::by(asking(None));
    let state = play.asks(1, "write_file");
    play.sends(Side::Client, &call_with(2, "write_file", &format!(r#","requestState":"{state}""#)));
    play.is_denied("did not decide");
}

#[tokio::test]
async fn a_yes_counts_for_that_call_alone_and_once() {
    let mut play = Play::by(asking(None));
    let state = play.asks(1, "write_file");
    // Another tool, other arguments, another method.
    play.sends(Side::Client, &again(2, "write_other", ALLOW, &state));
    play.is_asked(2);
    let state = play.asks(3, "write_file");
    play.sends(Side::Client, &again(4, "write_file", ALLOW, &state).replace("1.50", "1.51"));
    play.is_asked(4);
    let state = play.asks(5, "write_file");
    let more = format!(r#","task":{{}},"inputResponses":{{"mcp-proxy-ask":{ALLOW}}},"requestState":"{state}""#);
    play.sends(Side::Client, &call_with(6, "write_file", &more));
    play.is_asked(6);
    // Used before.
    let state = play.asks(7, "write_file");
    play.sends(Side::Client, &again(8, "write_file", ALLOW, &state));
    assert_eq!(play.got(Side::Server).len(), 1);
    play.sends(Side::Client, &again(9, "write_file", ALLOW, &state));
    play.is_asked(9);
    // Made up.
    let forged = format!("{}0123", &state[..state.len() - 4]);
    play.sends(Side::Client, &again(10, "write_file", ALLOW, &forged));
    let state = play.is_asked(10);
    // Somebody else's.
    let other = play.pipeline.begin_conversation();
    let first = std::mem::replace(&mut play.conversation, other);
    play.sends(Side::Client, &again(11, "write_file", ALLOW, &state));
    play.is_asked(11);
    play.conversation = first;
    play.sends(Side::Client, &again(12, "write_file", ALLOW, &state));
    assert_eq!(play.got(Side::Server), [call(12, "write_file")]);
}

#[tokio::test]
async fn what_can_be_read_two_ways_answers_nothing() {
    let mut play = Play::by(asking(None));
    let state = play.asks(1, "write_file");
    let twice = again(2, "write_file", ALLOW, &state).replace("\"name\":", "\"name\":\"write_x\",\"name\":");
    play.sends(Side::Client, &twice);
    assert_eq!(play.got(Side::Server), [""; 0]);
    assert!(play.got_one(Side::Client).contains("-32600"));
}

#[tokio::test]
async fn no_yes_helps_against_a_rule_that_denies() {
    let mut rules = asking(None);
    rules.rules.insert(0, rule("never", "$.params.arguments.n = 7", VerdictKind::Deny));
    let mut play = Play::by(rules);
    let state = play.asks(1, "write_file");
    play.sends(Side::Client, &again(2, "write_file", ALLOW, &state).replace("1.50", "7"));
    play.is_denied("never");
}

#[tokio::test]
async fn rounds_of_the_server_stay_its_own() {
    let mut play = Play::by(asking(None));
    let theirs = r#","inputResponses":{"name":{"action":"accept"}},"requestState":"theirs""#;
    let round = |id| call_with(id, "write_file", theirs);
    // Every round is judged, and none of them loses what it had to say.
    play.sends(Side::Client, &round(1));
    let state = play.is_asked(1);
    play.sends(Side::Client, &again(2, "write_file", ALLOW, &state));
    assert_eq!(play.got(Side::Server), [round(2)]);
    // The state of another proxy behind this one is its own business, too.
    let state = "mcp-proxy-ask.0123.4567";
    play.sends(Side::Client, &again(3, "list_files", ALLOW, state));
    assert_eq!(play.got(Side::Server), [again(3, "list_files", ALLOW, state)]);
}

#[tokio::test]
async fn who_answers_first_is_heard() {
    let mut play = Play::by(asking(None));
    let state = play.asks(1, "write_file");
    assert_eq!(play.decides(Decision::Forward), Err(DecideError::IsAsked(1, "careful".into())));
    let edited = Some(call(1, "write_x").into());
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Once, edited }), Err(DecideError::InClient(1)));
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Once, edited: None }), Ok(()));
    assert_eq!(play.pipeline.status().held.len(), 0);
    play.sends(Side::Client, &again(2, "write_file", CANCEL, &state));
    assert_eq!(play.got(Side::Server).len(), 1);
    let state = play.asks(3, "write_file");
    let message = Some("not now".into());
    assert_eq!(play.decides(Decision::Deny { lasting: Lasting::Session, message }), Ok(()));
    play.sends(Side::Client, &again(4, "write_file", ALLOW, &state));
    play.is_denied("rule");
    play.sends(Side::Client, &call(5, "write_file"));
    play.is_denied("rule");
    let state = play.asks(6, "write_other");
    let drop = Decision::Drop { error: Some((5080, "dropped".into())) };
    assert!(matches!(play.decides(drop), Err(DecideError::IsAsked(..))));
    let message = Some("dropped".into());
    assert_eq!(play.decides(Decision::Deny { lasting: Lasting::Once, message }), Ok(()));
    play.sends(Side::Client, &again(7, "write_other", ALLOW, &state));
    play.is_denied("dropped");
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[tokio::test(start_paused = true)]
async fn nobody_has_for_ever_to_answer() {
    let mut play = Play::by(asking(Some(Duration::from_secs(1))));
    let state = play.asks(1, "write_file");
    tokio::time::advance(Duration::from_millis(1_001)).await;
    assert_eq!(play.pipeline.status().held.len(), 0);
    play.sends(Side::Client, &again(2, "write_file", ALLOW, &state));
    play.is_asked(2);
}

#[tokio::test]
async fn only_a_client_that_can_is_asked() {
    let denied = |text: &str| {
        let mut play = Play::by(asking(None));
        play.sends(Side::Client, text);
        play.is_denied("nobody is there to ask");
    };
    denied(&call(1, "write_file").replace(r#""form":{}"#, r#""url":{}"#));
    denied(&call(1, "write_file").replace("elicitation", "sampling"));
    denied(&call(1, "write_file").replace("2026-07-28", "2025-11-25"));
    denied(&call(1, "write_file").replace("tools/call", "vendor/write"));
    // Somebody else is there.
    let mut play = Play::by(asking(None));
    play.pipeline.decisions().set_watchers(1);
    play.sends(Side::Client, &call(1, "write_file"));
    assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]));
    assert!(!play.pipeline.status().held[0].in_client);
}

#[tokio::test]
async fn unanswered_questions_are_bounded() {
    let mut play = Play::by(asking(None));
    let first = play.asks(1, "write_file");
    for id in 2..=1_024 {
        play.asks(id, "write_file");
    }
    let last = play.asks(1_025, "write_file");
    assert_eq!(play.pipeline.status().held.len(), 1_024);
    play.sends(Side::Client, &again(2_000, "write_file", ALLOW, &first));
    play.is_asked(2_000);
    play.sends(Side::Client, &again(2_001, "write_file", ALLOW, &last));
    assert_eq!(play.got(Side::Server).len(), 1);
}

#[tokio::test]
async fn a_breakpoint_still_holds_what_was_approved() {
    let mut play = Play::by(asking(None));
    let filter = mcp_filter::Filter::parse("tool:write_file $.params.requestState").expect("a filter");
    play.pipeline.decisions().add_breakpoint(None, filter, crate::intercept::Owner::Command).expect("it fits");
    let filter = mcp_filter::Filter::parse("tool:write_file").expect("a filter");
    play.pipeline.decisions().add_breakpoint(None, filter, crate::intercept::Owner::Command).expect("it fits");
    let state = play.asks(1, "write_file");
    play.sends(Side::Client, &again(2, "write_file", ALLOW, &state));
    assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]));
    assert_eq!(play.decides(Decision::Forward), Ok(()));
    assert_eq!(play.got(Side::Server), [call(2, "write_file")]);
}

#[test]
fn what_is_asked_fits_the_protocol() {
    let form = json!(["allow once", "allow for this session", "deny"]);
    let mut play = Play::by(asking(None));
    play.sends(Side::Client, &call(1, "write_file"));
    let answer: Value = serde_json::from_str(&play.got_one(Side::Client)).expect("JSON");
    let params = &answer["result"]["inputRequests"]["mcp-proxy-ask"]["params"];
    assert_eq!(params["requestedSchema"]["properties"]["decision"]["enum"], form);
    insta::assert_snapshot!(params["message"].as_str().expect("text"));
}
