use super::*;
use crate::transcript::tests::transcript;

fn message(text: &str) -> Message {
    Message::new(text.to_owned().into())
}

struct Play(Mock);

impl Play {
    fn of(text: &str) -> Self {
        Self(Mock::of(&transcript(text)))
    }

    /// What is said in answer to a message.
    #[track_caller]
    fn check(&mut self, asked: &str, said: &[&str]) {
        let Taken::Said(out) = self.0.take(&message(asked), 0) else { panic!("unknown: {asked}") };
        let out: Vec<_> = out.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
        assert_eq!(out, said);
    }

    /// The code and the words of a refusal.
    #[track_caller]
    fn refused(&mut self, asked: &str) -> String {
        let Taken::Unknown(refusal) = self.0.take(&message(asked), 0) else { panic!("known: {asked}") };
        String::from_utf8_lossy(&refusal).into_owned()
    }
}

#[test]
fn a_call_is_answered_as_it_was() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"y":[2]},"_meta":{"progressToken":5}}}
           < {"result":{"first":1},"id":1}
           > {"id":2,"method":"tools/call","params":{"name":"b"}}
           < {"id":2,"error":{"code":-1,"message":"no"}}
           > {"id":3,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"y":[2]}}}
           < {"id":3,"result":{"second":1}}"#,
    );
    let call = r#"{"params":{"arguments":{"y":[2.0],"x":1e0},"name":"\u0061"},"method":"tools/call","id":"q"}"#;
    play.check(call, &[r#"{"result":{"first":1},"id":"q"}"#]);
    play.check(
        r#"{"id":7,"method":"tools/call","params":{"name":"b"}}"#,
        &[r#"{"id":7,"error":{"code":-1,"message":"no"}}"#],
    );
    play.check(call, &[r#"{"id":"q","result":{"second":1}}"#]);
    play.check(call, &[r#"{"id":"q","result":{"second":1}}"#]);
}

#[test]
fn what_the_recording_does_not_have_is_refused_in_words() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"tools/call","params":{"name":"a"}}
           < {"id":1,"result":{}}
           > {"id":2,"method":"tools/call","params":{"name":"b"}}"#,
    );
    let refused = play.refused(r#"{"id":9,"method":"tools/call","params":{"name":"c"}}"#);
    assert!(refused.contains(r#""id":9"#) && refused.contains("5050"), "{refused}");
    assert!(refused.contains(r#"it has 2 calls of tools/call, none with {\"name\":\"c\"}"#), "{refused}");
    let refused = play.refused(r#"{"id":9,"method":"prompts/list"}"#);
    assert!(refused.contains("-32601") && refused.contains("no call of prompts/list"), "{refused}");
    let long = format!(r#"{{"id":9,"method":"tools/call","params":{{"name":"{}"}}}}"#, "é".repeat(10_000));
    assert!(play.refused(&long).len() < 1_000);
    // What nobody answered, though it was waited for, is refused too; a ping never is.
    let Taken::Said(out) = play.0.take(&message(r#"{"id":9,"method":"tools/call","params":{"name":"b"}}"#), 0) else {
        panic!()
    };
    assert!(String::from_utf8_lossy(&out[0]).contains("did not answer it either"));
    play.check(r#"{"id":9,"method":"ping"}"#, &[r#"{"jsonrpc":"2.0","id":9,"result":{}}"#]);
}

#[test]
fn a_handshake_is_known_by_its_method() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"then"}}}
           < {"id":1,"result":{"protocolVersion":"2025-06-18"}}
           > {"method":"notifications/initialized"}
           < {"method":"notifications/tools/list_changed"}
           < {"id":0,"method":"roots/list"}
           > {"id":0,"result":{}}
           < {"method":"notifications/message"}"#,
    );
    let initialize =
        r#"{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"now"}}}"#;
    play.check(initialize, &[r#"{"id":0,"result":{"protocolVersion":"2025-06-18"}}"#]);
    let (changed, roots) = (r#"{"method":"notifications/tools/list_changed"}"#, r#"{"id":0,"method":"roots/list"}"#);
    play.check(r#"{"method":"notifications/initialized"}"#, &[changed, roots]);
    play.check(r#"{"id":0,"result":{"roots":[1]}}"#, &[r#"{"method":"notifications/message"}"#]);
    play.check(r#"{"method":"notifications/initialized"}"#, &[]);
}

#[test]
fn progress_goes_by_the_callers_token() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"a","params":{"_meta":{"progressToken":"old"}}}
           < {"method":"notifications/progress","params":{"progressToken":"old","progress":1}}
           < {"method":"notifications/message","params":{"data":"old"}}
           < {"id":1,"result":{}}
           < {"method":"notifications/later"}"#,
    );
    let (log, result) = (r#"{"method":"notifications/message","params":{"data":"old"}}"#, r#"{"id":2,"result":{}}"#);
    play.check(
        r#"{"id":2,"method":"a","params":{"_meta":{"progressToken":7}}}"#,
        &[
            r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
            log,
            result,
            r#"{"method":"notifications/later"}"#,
        ],
    );
    // Without a token there is nobody to report to. What came after the answer came once.
    play.check(r#"{"id":2,"method":"a"}"#, &[log, result]);
}

#[test]
fn a_call_waits_for_what_the_client_answers() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"a"}
           < {"id":1,"method":"elicitation/create"}
           > {"id":1,"result":{}}
           < {"id":1,"method":"sampling/createMessage"}
           > {"id":1,"result":{}}
           < {"id":1,"result":{"done":1}}"#,
    );
    let (first, second) =
        (r#"{"id":1,"method":"elicitation/create"}"#, r#"{"id":1,"method":"sampling/createMessage"}"#);
    play.check(r#"{"id":"x","method":"a"}"#, &[first]);
    // The same again meanwhile: the questions are told apart.
    play.check(r#"{"id":"y","method":"a"}"#, &[r#"{"id":"mcp-proxy-mock-1","method":"elicitation/create"}"#]);
    assert_eq!(play.0.take(&message(r#"{"id":"1","result":{}}"#), 0), Taken::NotOurs, "1 and \"1\" are two ids");
    play.check(r#"{"id":1,"result":{}}"#, &[second]);
    play.check(r#"{"id":1,"error":{}}"#, &[r#"{"id":"x","result":{"done":1}}"#]);
    play.check(r#"{"method":"notifications/cancelled","params":{"requestId":"y"}}"#, &[]);
    assert_eq!(play.0.take(&message(r#"{"id":"mcp-proxy-mock-1","result":{}}"#), 0), Taken::NotOurs);
}

#[test]
fn an_answer_waits_for_what_the_client_said_before_it() {
    let text = r#"> {"id":1,"method":"steps"}
        < {"method":"notifications/message"}
        > {"id":2,"method":"release"}
        < {"id":2,"result":{"released":1}}
        < {"id":1,"result":{"stepped":1}}"#;
    let (log, stepped) = (r#"{"method":"notifications/message"}"#, r#"{"id":7,"result":{"stepped":1}}"#);
    let mut play = Play::of(text);
    play.check(r#"{"id":7,"method":"steps"}"#, &[log]);
    assert_eq!(play.0.due(), Some(HOLD_FOR_NS));
    assert!(play.0.look(HOLD_FOR_NS - 1).is_empty());
    play.check(r#"{"id":8,"method":"release"}"#, &[r#"{"id":8,"result":{"released":1}}"#, stepped]);
    assert_eq!(play.0.due(), None);
    // A client that does something else is not kept waiting, and only once.
    let mut play = Play::of(text);
    play.check(r#"{"id":7,"method":"steps"}"#, &[log]);
    assert_eq!(play.0.look(HOLD_FOR_NS), [stepped]);
    play.check(r#"{"id":7,"method":"steps"}"#, &[log, stepped]);
    // What is taken back is not held any more.
    let mut play = Play::of(text);
    play.check(r#"{"id":7,"method":"steps"}"#, &[log]);
    play.check(r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#, &[]);
    assert_eq!(play.0.due(), None);
}

#[test]
fn calls_that_were_made_together_are_answered_in_their_order() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"initialize"}
           > {"id":2,"method":"a"}
           > {"id":3,"method":"b"}
           > {"id":4,"method":"c"}
           < {"id":1,"result":{}}
           < {"id":2,"result":{"a":1}}
           < {"id":4,"result":{"c":1}}
           < {"id":3,"result":{"b":1}}"#,
    );
    // Nobody goes on before a session is open, whatever the recorded client did.
    play.check(r#"{"id":1,"method":"initialize"}"#, &[r#"{"id":1,"result":{}}"#]);
    play.check(r#"{"id":2,"method":"a"}"#, &[]);
    play.check(r#"{"id":3,"method":"b"}"#, &[]);
    let rest = [r#"{"id":2,"result":{"a":1}}"#, r#"{"id":4,"result":{"c":1}}"#, r#"{"id":3,"result":{"b":1}}"#];
    play.check(r#"{"id":4,"method":"c"}"#, &rest);
}

#[test]
fn only_so_many_answers_are_held() {
    let calls = (0..=2 * HELD_MAX).map(|id| format!(r#"> {{"id":{id},"method":"m{id}"}}"#));
    let answers = (0..=2 * HELD_MAX).map(|id| format!(r#"< {{"id":{id},"result":{{}}}}"#));
    let mut play = Play::of(&calls.chain(answers).collect::<Vec<_>>().join("\n"));
    let mut answered = 0;
    for id in 0..=2 * HELD_MAX {
        let Taken::Said(out) = play.0.take(&message(&format!(r#"{{"id":{id},"method":"m{id}"}}"#)), 0) else {
            panic!()
        };
        assert_eq!(out.len(), usize::from(id >= HELD_MAX) * if id == 2 * HELD_MAX { 1 + HELD_MAX } else { 1 });
        answered += out.len();
    }
    assert_eq!(answered, 2 * HELD_MAX + 1);
}

#[test]
fn calls_that_were_under_way_together_may_come_one_by_one() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"a"}
           > {"id":2,"method":"b"}
           < {"id":1,"result":{}}
           < {"id":2,"result":{}}
           > {"id":3,"method":"c"}
           < {"id":3,"result":{}}"#,
    );
    play.check(r#"{"id":5,"method":"b"}"#, &[r#"{"id":5,"result":{}}"#]);
    play.check(r#"{"id":6,"method":"a"}"#, &[r#"{"id":6,"result":{}}"#]);
}

#[test]
fn a_call_that_was_taken_back_stays_unanswered() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"a","params":{"_meta":{"progressToken":1}}}
           < {"method":"notifications/progress","params":{"progressToken":1}}
           > {"method":"notifications/cancelled","params":{"requestId":1}}
           > {"id":2,"method":"a"}
           < {"id":2,"result":{}}"#,
    );
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":1}}"#;
    play.check(r#"{"id":5,"method":"a","params":{"_meta":{"progressToken":1}}}"#, &[progress]);
    play.check(r#"{"method":"notifications/cancelled","params":{"requestId":5}}"#, &[]);
    play.check(r#"{"id":6,"method":"a"}"#, &[r#"{"id":6,"result":{}}"#]);
}

#[test]
fn rounds_are_told_apart_by_their_state() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"tools/call","params":{"name":"t"}}
           < {"id":1,"result":{"resultType":"input_required","requestState":"s"}}
           > {"id":2,"method":"tools/call","params":{"name":"t","requestState":"s","inputResponses":{"k":1}}}
           < {"id":2,"result":{"done":1}}"#,
    );
    play.check(
        r#"{"id":1,"method":"tools/call","params":{"name":"t"}}"#,
        &[r#"{"id":1,"result":{"resultType":"input_required","requestState":"s"}}"#],
    );
    // What a person answers may differ.
    play.check(
        r#"{"id":2,"method":"tools/call","params":{"name":"t","requestState":"s","inputResponses":{"k":2}}}"#,
        &[r#"{"id":2,"result":{"done":1}}"#],
    );
    play.refused(r#"{"id":2,"method":"tools/call","params":{"name":"t","requestState":"other"}}"#);
}

#[test]
fn subscriptions_have_the_id_they_are_opened_under() {
    let meta = |id: &str| format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let (old, new) = (meta("1"), meta("\"n\""));
    let mut play = Play::of(&format!(
        r#"> {{"id":1,"method":"subscriptions/listen","params":{{"x":1}}}}
           < {{"method":"notifications/subscriptions/acknowledged","params":{{{old}}}}}
           > {{"id":2,"method":"touch"}}
           < {{"method":"notifications/resources/updated","params":{{{old}}}}}
           < {{"id":2,"result":{{}}}}
           > {{"id":3,"method":"close"}}
           < {{"id":1,"result":{{{old}}}}}
           < {{"id":3,"result":{{}}}}"#
    ));
    let updated = format!(r#"{{"method":"notifications/resources/updated","params":{{{new}}}}}"#);
    play.check(r#"{"id":2,"method":"touch"}"#, &[r#"{"id":2,"result":{}}"#]);
    let acknowledged = format!(r#"{{"method":"notifications/subscriptions/acknowledged","params":{{{new}}}}}"#);
    play.check(r#"{"id":"n","method":"subscriptions/listen","params":{"x":1}}"#, &[&acknowledged]);
    play.check(r#"{"id":3,"method":"touch"}"#, &[&updated, r#"{"id":3,"result":{}}"#]);
    let ended = format!(r#"{{"id":"n","result":{{{new}}}}}"#);
    play.check(r#"{"id":4,"method":"close"}"#, &[&ended, r#"{"id":4,"result":{}}"#]);
    play.check(r#"{"id":5,"method":"touch"}"#, &[r#"{"id":5,"result":{}}"#]);
}

#[test]
fn what_is_learned_is_known_from_then_on() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"a","params":{"x":1}}
        < {"id":1,"result":{"x":1}}"#,
    );
    play.refused(r#"{"id":9,"method":"a","params":{"x":2}}"#);
    play.0.learn(&message(r#"{"id":9,"method":"a","params":{"x":2}}"#), &message(r#"{"id":9,"result":{"x":2}}"#));
    play.check(r#"{"id":10,"method":"a","params":{"x":2}}"#, &[r#"{"id":10,"result":{"x":2}}"#]);
    play.0.extend(&transcript(
        r#"> {"id":1,"method":"a","params":{"x":1}}
           < {"id":1,"result":{"x":"other"}}
           > {"id":2,"method":"a","params":{"x":3}}
           < {"id":2,"result":{"x":3}}"#,
    ));
    play.check(r#"{"id":1,"method":"a","params":{"x":1}}"#, &[r#"{"id":1,"result":{"x":1}}"#]);
    play.check(r#"{"id":1,"method":"a","params":{"x":3}}"#, &[r#"{"id":1,"result":{"x":3}}"#]);
}

#[test]
fn questions_without_end_are_bounded() {
    let mut play = Play::of(
        r#"> {"id":1,"method":"a"}
           < {"id":1,"method":"elicitation/create"}"#,
    );
    for id in 0..WAITING_MAX {
        let Taken::Said(out) = play.0.take(&message(&format!(r#"{{"id":{id},"method":"a"}}"#)), 0) else { panic!() };
        assert!(String::from_utf8_lossy(&out[0]).contains("elicitation/create"));
    }
    let Taken::Said(out) = play.0.take(&message(r#"{"id":-1,"method":"a"}"#), 0) else { panic!() };
    assert!(String::from_utf8_lossy(&out[0]).contains("5031"));
}

#[test]
fn what_is_no_call_is_passed_over() {
    let mut play = Play::of("< {\"method\":\"early\"}");
    assert_eq!(play.0.begin().len(), 1);
    assert!(play.0.begin().is_empty());
    for rubbish in ["rubbish", "[1]", "{}", "{\"method\":\"notifications/unknown\"}"] {
        play.check(rubbish, &[]);
    }
}

fn to_server(text: &str) -> Out {
    Out::ToServer(text.to_owned().into())
}

fn to_client(text: &str) -> Out {
    Out::ToClient(text.to_owned().into())
}

#[test]
fn a_live_server_is_opened_with_the_clients_own_handshake() {
    let mut live = Live::default();
    live.note(&message(r#"{"id":0,"method":"initialize","params":{"x":1}}"#));
    let asked = message(r#"{"id":7,"method":"a"}"#);
    assert_eq!(live.ask(&asked), [to_server(r#"{"id":"mcp-proxy-mock","method":"initialize","params":{"x":1}}"#)]);
    assert_eq!(live.ask(&message(r#"{"id":8,"method":"b"}"#)), []);
    let opened = live.from_server(&message(r#"{"id":"mcp-proxy-mock","result":{}}"#));
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(
        opened,
        [to_server(initialized), to_server(r#"{"id":7,"method":"a"}"#), to_server(r#"{"id":8,"method":"b"}"#)]
    );
    let answer = r#"{"id":7,"result":{}}"#;
    let learned = Out::Learned { request: asked.bytes().clone(), answer: answer.into() };
    assert_eq!(live.from_server(&message(answer)), [learned, to_client(answer)]);
    assert_eq!(live.from_server(&message(answer)), [], "once is enough");
    assert!(live.works_on(&Id::Integer(8)) && !live.works_on(&Id::Integer(7)));
    assert_eq!(live.gone().len(), 1);
}

#[test]
fn a_live_server_may_ask_too() {
    let mut live = Live::default();
    let modern = r#"{"id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    assert_eq!(live.ask(&message(modern)), [to_server(modern)]);
    assert_eq!(
        live.from_server(&message(r#"{"id":5,"method":"ping"}"#)),
        [to_client(r#"{"id":"mcp-proxy-live-1","method":"ping"}"#)]
    );
    assert_eq!(live.answered(&message(r#"{"id":5,"result":{}}"#)), None);
    assert_eq!(
        live.answered(&message(r#"{"id":"mcp-proxy-live-1","result":{}}"#)),
        Some(to_server(r#"{"id":5,"result":{}}"#))
    );
    assert_eq!(live.from_server(&message(r#"{"method":"n"}"#)), [to_client(r#"{"method":"n"}"#)]);
    assert_eq!(live.from_server(&message("rubbish")), []);
}
