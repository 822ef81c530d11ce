//! The older revisions: a client is sent a request, while its call waits.

use std::time::Duration;

use serde_json::Value;

use super::{ALLOW, DECLINE, NO, SESSION};
use crate::envelope::Side;
use crate::intercept::{DecideError, Decision, Lasting};
use crate::pipeline::governance::tests::{Play, asking, call, rule};
use crate::policy::rules::{Permission, Rules, VerdictKind};

/// A client that has said hello, and what it can do.
fn connected(rules: Rules, revision: &str, capabilities: &str) -> Play {
    let mut play = Play::by(rules);
    let params = format!(r#"{{"protocolVersion":"{revision}","capabilities":{capabilities}}}"#);
    play.sends(Side::Client, &format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#));
    let result = format!(r#"{{"protocolVersion":"{revision}"}}"#);
    play.sends(Side::Server, &format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#));
    drop((play.got(Side::Server), play.got(Side::Client)));
    play
}

fn with_forms(timeout: Option<Duration>) -> Play {
    connected(asking(timeout), "2025-06-18", r#"{"elicitation":{}}"#)
}

impl Play {
    /// The id of the question that whoever uses the client was sent.
    fn question(&mut self) -> String {
        assert_eq!(self.got(Side::Server), [""; 0]);
        let question: Value = serde_json::from_str(&self.got_one(Side::Client)).expect("JSON");
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert!(question["params"]["message"].as_str().is_some_and(|text| text.contains("careful")));
        question["id"].as_str().expect("an id").to_owned()
    }

    fn calls_and_asks(&mut self, id: u32, tool: &str) -> String {
        self.calls(id, tool);
        self.question()
    }

    fn answers(&mut self, id: &str, result: &str) {
        self.sends(Side::Client, &format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{result}}}"#));
    }

    /// The client is told that it need not answer any more.
    fn is_taken_back(&self, told: &str, id: &str) {
        let told: Value = serde_json::from_str(told).expect("JSON");
        assert_eq!((&told["method"], &told["params"]["requestId"]), (&"notifications/cancelled".into(), &id.into()));
    }
}

#[tokio::test]
async fn a_call_goes_on_when_its_client_says_so() {
    let mut play = with_forms(None);
    let id = play.calls_and_asks(1, "write_file");
    assert!(id.starts_with("mcp-proxy-ask-1-"), "{id}");
    assert!(play.pipeline.status().held[0].in_client);
    // Others overtake it.
    play.calls(2, "list_files");
    assert_eq!(play.got(Side::Server), [call(2, "list_files")]);
    play.answers(&id, ALLOW);
    assert_eq!(play.got(Side::Server), [call(1, "write_file")]);
    assert_eq!(play.got(Side::Client), [""; 0]);
    // That was once, and an answer is heard once.
    play.answers(&id, ALLOW);
    assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]));
    let id = play.calls_and_asks(3, "write_file");
    play.answers(&id, SESSION);
    play.calls(4, "write_file");
    assert_eq!(play.got(Side::Server), [call(3, "write_file"), call(4, "write_file")]);
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[tokio::test]
async fn whatever_is_no_yes_is_a_no() {
    for (said, why) in NO {
        let mut play = with_forms(None);
        let id = play.calls_and_asks(1, "write_file");
        play.answers(&id, said);
        play.is_denied(why);
        assert!(play.audited().iter().any(|line| line.contains("deny careful client")), "{said}");
    }
    for answer in [
        r#""error":{"code":-32601,"message":"no"}"#,
        r#""result":{"action":"decline","action":"accept","content":{"decision":"allow once"}}"#,
        r#""result":{"action":"accept","content":{"decision":"allow once"}},"result":{}"#,
    ] {
        let mut play = with_forms(None);
        let id = play.calls_and_asks(1, "write_file");
        play.sends(Side::Client, &format!(r#"{{"jsonrpc":"2.0","id":"{id}",{answer}}}"#));
        play.is_denied("no clear answer");
    }
}

#[tokio::test]
async fn only_the_client_that_was_asked_is_heard() {
    let mut play = with_forms(None);
    let id = play.calls_and_asks(1, "write_file");
    // Nobody can make up an answer, and none that is made up reaches the server.
    for forged in ["mcp-proxy-ask-1", "mcp-proxy-ask-1-0123", "mcp-proxy-ask-"] {
        play.answers(forged, ALLOW);
        assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]), "{forged}");
    }
    // Neither can the server, nor another client.
    play.sends(Side::Server, &format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{ALLOW}}}"#));
    play.got(Side::Client);
    let other = play.pipeline.begin_conversation();
    let first = std::mem::replace(&mut play.conversation, other);
    play.answers(&id, ALLOW);
    play.conversation = first;
    assert_eq!(play.got(Side::Server), [""; 0]);
    assert_eq!(play.pipeline.status().held.len(), 1);
    // What a server asks under such an id is its own, and so is the answer.
    let theirs = r#"{"jsonrpc":"2.0","id":"mcp-proxy-ask-1-ff","method":"elicitation/create","params":{}}"#;
    play.sends(Side::Server, theirs);
    assert_eq!(play.got(Side::Client), [theirs]);
    play.answers("mcp-proxy-ask-1-ff", DECLINE);
    assert_eq!(play.got(Side::Server).len(), 1);
    play.answers(&id, ALLOW);
    assert_eq!(play.got(Side::Server), [call(1, "write_file")]);
}

#[tokio::test]
async fn who_answers_first_is_heard() {
    let mut play = with_forms(None);
    let id = play.calls_and_asks(1, "write_file");
    assert_eq!(play.decides(Decision::Approve { lasting: Lasting::Once, edited: None }), Ok(()));
    let told = play.got_one(Side::Client);
    play.is_taken_back(&told, &id);
    assert_eq!(play.got(Side::Server), [call(1, "write_file")]);
    play.answers(&id, DECLINE);
    assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]));
    let id = play.calls_and_asks(2, "write_file");
    assert!(matches!(play.decides(Decision::Forward), Err(DecideError::IsAsked(..))));
    assert_eq!(play.decides(Decision::Deny { lasting: Lasting::Once, message: Some("not now".into()) }), Ok(()));
    let told = play.got(Side::Client);
    assert!(told.iter().any(|line| line.contains("not now")), "{told:?}");
    play.answers(&id, ALLOW);
    assert_eq!(play.got(Side::Server), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn time_decides_as_the_rule_says() {
    for (on_timeout, passes) in [(Permission::Deny, false), (Permission::Allow, true)] {
        let mut rules = asking(Some(Duration::from_secs(1)));
        rules.rules[0].on_timeout = on_timeout;
        let mut play = connected(rules, "2025-11-25", r#"{"elicitation":{"form":{},"url":{}}}"#);
        let id = play.calls_and_asks(1, "write_file");
        tokio::time::advance(Duration::from_millis(1_001)).await;
        play.pipeline.decisions().release_overdue();
        play.release();
        let told = play.got(Side::Client);
        let taken_back = told.iter().find(|line| line.contains("notifications/cancelled")).expect("it is told");
        play.is_taken_back(taken_back, &id);
        assert_eq!(told.len(), 2 - usize::from(passes), "{told:?}");
        assert_eq!(play.got(Side::Server).len(), usize::from(passes));
    }
}

#[tokio::test]
async fn a_client_that_leaves_answers_nothing() {
    let mut play = with_forms(Some(Duration::from_secs(9)));
    play.calls_and_asks(1, "write_file");
    play.pipeline.decisions().client_is_silent(play.conversation.number());
    play.release();
    play.is_denied("the client is gone");
    play.calls_and_asks(2, "write_file");
    play.pipeline.client_is_gone(play.conversation.number());
    play.release();
    assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]));
    // Whoever takes the call back need not answer either.
    let id = play.calls_and_asks(3, "write_file");
    play.sends(Side::Client, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#);
    let told = play.got_one(Side::Client);
    play.is_taken_back(&told, &id);
    assert_eq!(play.got(Side::Server), [""; 0]);
    // Nor is anybody asked for a server that is gone.
    let id = play.calls_and_asks(4, "write_file");
    play.pipeline.decisions().server_is_gone(play.conversation.number());
    play.release();
    let told = play.got_one(Side::Client);
    play.is_taken_back(&told, &id);
    insta::assert_snapshot!(play.audited().join("\n"));
}

#[tokio::test]
async fn no_yes_helps_against_rules_that_deny_by_now() {
    let mut play = with_forms(None);
    let id = play.calls_and_asks(1, "write_file");
    let mut rules = asking(None);
    rules.rules.insert(0, rule("never", "op:write", VerdictKind::Deny));
    play.pipeline.set_rules(rules.into());
    play.answers(&id, SESSION);
    play.is_denied("never");
    play.pipeline.set_rules(asking(None).into());
    play.calls_and_asks(2, "write_file");
}

#[tokio::test]
async fn only_a_client_that_can_is_asked() {
    for (revision, capabilities) in [
        ("2025-06-18", "{}"),
        ("2025-03-26", r#"{"elicitation":{}}"#),
        ("2025-11-25", r#"{"elicitation":{"url":{}}}"#),
        ("some day", r#"{"elicitation":{}}"#),
    ] {
        let mut play = connected(asking(None), revision, capabilities);
        play.calls(1, "write_file");
        play.is_denied("nobody is there to ask");
    }
    let mut play = with_forms(None);
    play.pipeline.decisions().set_watchers(1);
    play.calls(1, "write_file");
    assert_eq!((play.got(Side::Server), play.got(Side::Client)), (vec![], vec![]));
    // Who came to watch and leaves takes nothing along that a client was asked.
    play.pipeline.decisions().set_watchers(0);
    play.release();
    play.is_denied("nobody is there to ask");
    let id = play.calls_and_asks(2, "write_file");
    play.pipeline.decisions().set_watchers(1);
    play.pipeline.decisions().set_watchers(0);
    play.release();
    play.answers(&id, ALLOW);
    assert_eq!(play.got(Side::Server), [call(2, "write_file")]);
}
