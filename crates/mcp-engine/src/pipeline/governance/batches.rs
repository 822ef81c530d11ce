//! Batches that go nowhere, in either direction: everyone who waits is told, once, and no id stays taken.

use serde_json::Value;

use super::tests::{Play, call, rule, rules};
use super::*;
use crate::policy::rules::Rules;

fn deny_deletes() -> Rules {
    rules(vec![
        rule("no-deletes", "op:delete", VerdictKind::Deny),
        rule("no-sampling", "method:sampling/*", VerdictKind::Deny),
    ])
}

/// A conversation of which the handshake is over.
fn play(rules: Rules, revision: &str) -> Play {
    let mut play = Play::by(rules);
    let params = format!(r#""params":{{"protocolVersion":"{revision}"}}"#);
    play.sends(Side::Client, &format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize",{params}}}"#));
    let result = format!(r#""result":{{"protocolVersion":"{revision}"}}"#);
    play.sends(Side::Server, &format!(r#"{{"jsonrpc":"2.0","id":0,{result}}}"#));
    drop((play.got(Side::Server), play.got(Side::Client)));
    play
}

fn with_batches(rules: Rules) -> Play {
    play(rules, "2025-03-26")
}

fn without_batches() -> Play {
    play(deny_deletes(), "2025-11-25")
}

/// The only message that a side got.
#[track_caller]
fn only(play: &mut Play, side: Side) -> Value {
    let got = play.got(side);
    assert_eq!(got.len(), 1, "{got:?}");
    serde_json::from_str(&got[0]).expect("JSON")
}

fn batch(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

fn result(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

#[test]
fn neighbours_of_a_denied_call_may_be_sent_again() {
    let mut play = with_batches(deny_deletes());
    play.sends(Side::Client, &batch(&[call(1, "list_repos"), call(2, "delete_repo"), call(3, "get_repo")]));
    assert_eq!(play.got(Side::Server), [""; 0]);
    let answers = only(&mut play, Side::Client);
    let code = |at: usize| (answers[at]["id"].clone(), answers[at]["error"]["code"].clone());
    assert_eq!(
        [code(0), code(1), code(2)],
        [(1.into(), 5042.into()), (2.into(), (-32000).into()), (3.into(), 5042.into())]
    );
    assert_eq!(answers[0]["error"]["data"]["mcp-proxy/reason"], "batch-refused");
    let told = answers[0]["error"]["message"].as_str().expect("a text");
    assert!(told.contains("Send this one again by itself") && !told.contains("denied"), "{told}");
    assert_eq!(play.conversation.open_calls(Side::Client), 0, "its ids are closed");
    play.calls(1, "list_repos");
    assert_eq!(play.got(Side::Server).len(), 1);
    play.sends(Side::Server, &result(1));
    assert_eq!(only(&mut play, Side::Client)["id"], 1);
}

#[test]
fn they_are_told_so_by_a_result_where_denials_are_results() {
    let mut play = with_batches(Rules { denial: Denial::Result, ..deny_deletes() });
    play.sends(Side::Client, &batch(&[call(1, "list_repos"), call(2, "delete_repo")]));
    let answers = only(&mut play, Side::Client);
    assert_eq!(answers[0]["result"]["isError"], true, "{answers}");
    let told = answers[0]["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(told.contains("Send this one again by itself"), "{told}");
}

#[test]
fn a_batch_in_a_revision_without_batches_is_answered_once() {
    let mut play = without_batches();
    play.sends(Side::Client, &batch(&[call(1, "list_repos"), call(2, "get_repo")]));
    assert_eq!(play.got(Side::Server), [""; 0]);
    let answer = only(&mut play, Side::Client);
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &(-32600).into()));
    assert_eq!(play.conversation.open_calls(Side::Client), 0, "nobody waits for its ids");
}

#[test]
fn a_batch_without_a_written_decision_is_answered_item_by_item() {
    let mut play = with_batches(Rules { audit_required: true, ..deny_deletes() });
    play.fills_disk(true);
    play.sends(Side::Client, &batch(&[call(1, "list_repos"), call(2, "get_repo")]));
    assert_eq!(play.got(Side::Server), [""; 0]);
    let answers = only(&mut play, Side::Client);
    assert_eq!((&answers[0]["error"]["code"], &answers[1]["error"]["code"]), (&5071.into(), &5071.into()));
    assert_eq!(play.conversation.open_calls(Side::Client), 0);
    play.fills_disk(false);
}

#[test]
fn a_refused_batch_of_answers_answers_its_calls() {
    let mut play = without_batches();
    for id in 1..=3 {
        play.calls(id, "list_repos");
    }
    play.got(Side::Server);
    play.sends(Side::Server, &batch(&[result(1)]));
    let answer = only(&mut play, Side::Client);
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&1.into(), &5022.into()), "{answer}");
    // A client without batches reads them one by one. An answer to no call reaches no client.
    play.sends(Side::Server, &batch(&[result(3), result(2), result(9)]));
    let mut answers: Vec<Value> =
        play.got(Side::Client).iter().map(|answer| serde_json::from_str(answer).expect("JSON")).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [2, 3], "{answers:?}");
    assert_eq!(play.conversation.open_calls(Side::Client), 0);
    play.sends(Side::Server, &batch(&[result(1)]));
    assert_eq!(play.got(Side::Client), [""; 0], "it is answered already");
}

#[test]
fn a_denied_question_takes_no_answer_with_it_unsaid() {
    let mut play = with_batches(deny_deletes());
    play.sends(Side::Client, &batch(&[call(1, "list_repos"), call(2, "get_repo")]));
    play.got(Side::Server);
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#;
    play.sends(Side::Server, &batch(&[result(1), question.into(), result(2)]));
    let denied = only(&mut play, Side::Server);
    assert_eq!((&denied[0]["id"], &denied[0]["error"]["code"]), (&"q".into(), &(-32000).into()), "{denied}");
    let answers = only(&mut play, Side::Client);
    for (at, id) in [(0, 1), (1, 2)] {
        assert_eq!((&answers[at]["id"], &answers[at]["error"]["code"]), (&id.into(), &(-32000).into()), "{answers}");
        assert_eq!(answers[at]["error"]["data"]["rule"], "no-sampling");
    }
    assert_eq!((play.conversation.open_calls(Side::Client), play.conversation.open_calls(Side::Server)), (0, 0));
}

#[test]
fn an_exchange_hears_of_its_own_call() {
    for (came, expected) in [(batch(&[result(1)]), 1), (batch(&[result(2), result(1)]), 1), (batch(&[result(2)]), 0)] {
        let mut play = without_batches();
        let lane = Lane { exchange: 7, ..Lane::PIPE };
        let asked =
            play.pipeline.pass_opening(&mut play.conversation, lane, Bytes::from(call(1, "list_repos")), &mut play.out);
        play.got(Side::Server);
        let lane = Lane { asked: asked.as_ref(), ..lane };
        play.pipeline.pass_one(&mut play.conversation, Side::Server, lane, Bytes::from(came), &mut play.out);
        play.release();
        let got = play.got(Side::Client);
        assert_eq!(got.len(), expected, "{got:?}");
        assert!(got.iter().all(|got| got.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":5022"#)), "{got:?}");
    }
}
