use mcp_store::Direction;

use super::*;
use crate::transcript::tests::transcript;

const SECOND: u64 = 1_000_000_000;
const OPTIONS: Options = Options { timeout_ns: 10 * SECOND, pace: Pace::Fast, keeps_messages: false };

/// A replay against a server that is a function of what it gets. Time passes only when everybody waits.
struct Play {
    replay: Replay,
    now: u64,
    sent: Vec<String>,
    waited: u64,
}

impl Play {
    fn of(text: &str) -> Self {
        Self::with(text, OPTIONS, Handshake::AsNeeded)
    }

    fn with(text: &str, options: Options, handshake: Handshake) -> Self {
        let transcript = transcript(text);
        let script = Script::of(&transcript, handshake, |_| true);
        Self::scripted(transcript, script, options)
    }

    fn scripted(transcript: Transcript, script: Script, options: Options) -> Self {
        let replay = Replay::new(transcript, script, Volatile::default(), options);
        Self { replay, now: 0, sent: Vec::new(), waited: 0 }
    }

    /// Drives the replay to its end; `server` says what comes back for each message.
    fn run(mut self, mut server: impl FnMut(&Message) -> Vec<String>) -> (Vec<String>, Outcomes, u64) {
        loop {
            match self.replay.step(self.now) {
                Step::Send(bytes) => {
                    self.sent.push(String::from_utf8_lossy(&bytes).into_owned());
                    for answer in server(&Message::new(bytes)) {
                        match answer.as_str() {
                            "gone" => self.replay.closed(),
                            _ => self.hear(&answer),
                        }
                    }
                }
                Step::Wait(until) => {
                    assert!(until > self.now && until < u64::MAX, "something must happen in time");
                    self.waited += until - self.now;
                    self.now = until;
                }
                Step::Done => break,
            }
        }
        (self.sent, self.replay.finish().0, self.waited)
    }

    fn hear(&mut self, text: &str) {
        self.replay.received(&Message::new(text.to_owned().into()), self.now);
    }

    /// Everything that leaves without waiting.
    fn leaves(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        while let Step::Send(bytes) = self.replay.step(self.now) {
            sent.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        sent
    }
}

fn verdicts(outcomes: &Outcomes) -> Vec<&Verdict> {
    outcomes.calls.iter().map(|outcome| &outcome.verdict).collect()
}

/// Says what the recorded server said: the lines up to the client's next.
fn as_recorded(text: &str) -> impl FnMut(&Message) -> Vec<String> {
    let transcript = transcript(text);
    move |message| {
        let is_it = |line: &&Line| line.message.bytes() == message.bytes();
        let answer = transcript.lines().iter().filter(|line| line.is_request()).find(is_it);
        let answer = answer.and_then(|line| line.pair).map(|pair| transcript.line(pair).message.bytes());
        answer.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).into_iter().collect()
    }
}

const SIMPLE: &str = r#"> {"id":1,"method":"initialize"}
    < {"id":1,"result":{"v":1}}
    > {"method":"notifications/initialized"}
    > {"id":2,"method":"a"}
    > {"id":"2","method":"b"}
    < {"id":"2","result":{"b":1}}
    < {"id":2,"result":{"a":1}}
    > {"id":2,"method":"c"}
    < {"id":2,"result":{"c":1}}"#;

#[test]
fn a_server_that_answers_as_it_did_has_not_drifted() {
    let (sent, outcomes, waited) = Play::of(SIMPLE).run(as_recorded(SIMPLE));
    assert_eq!(sent.len(), 5);
    assert_eq!((outcomes.tally().same, waited), (4, 0));
}

#[test]
fn each_message_waits_for_what_came_before_it() {
    let mut play = Play::of(SIMPLE);
    assert_eq!(play.leaves(), [r#"{"id":1,"method":"initialize"}"#]);
    play.hear(r#"{"id":1,"result":{"v":1}}"#);
    assert_eq!(play.leaves().len(), 3, "what was on its way together may be again");
    play.hear(r#"{"id":2,"result":{"a":1}}"#);
    assert!(play.leaves().is_empty(), "the other answer came before, too");
    play.hear(r#"{"id":"2","result":{"b":1}}"#);
    assert_eq!(play.leaves(), [r#"{"id":2,"method":"c"}"#]);
    play.hear(r#"{"id":2,"result":{"c":2}}"#);
    assert_eq!(play.replay.step(play.now), Step::Done);
    let (outcomes, transcript, _) = play.replay.finish();
    let Verdict::Drifted(found) = &outcomes.calls[3].verdict else { panic!("{outcomes:?}") };
    assert_eq!(found.kept[0].path.to_string(), "$.result.c");
    assert_eq!(transcript.line(outcomes.calls[3].line).method(), "c");
}

#[test]
fn a_server_that_hangs_costs_one_answer() {
    let (sent, outcomes, waited) = Play::of(SIMPLE).run(|message| match &*message.method().unwrap_or_default() {
        "a" => Vec::new(),
        method => {
            let value = if method == "initialize" { "v" } else { method };
            message.id().map(|id| format!(r#"{{"id":{id},"result":{{"{value}":1}}}}"#)).into_iter().collect()
        }
    });
    assert_eq!(outcomes.tally(), Tally { same: 3, no_answer: 1, ..Tally::default() });
    assert_eq!(outcomes.calls[1].verdict, Verdict::NoAnswer(NoAnswer::InTime));
    assert_eq!(waited, 10 * SECOND + 3_000_000, "the limit, and what it took in the recording");
    assert!(sent.contains(&r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"it took too long"}}"#.to_owned()));
}

#[test]
fn a_server_that_dies_leaves_the_rest_unsent() {
    let (sent, outcomes, _) = Play::of(SIMPLE).run(|message| match &*message.method().unwrap_or_default() {
        "initialize" => vec![r#"{"id":1,"result":{"v":1}}"#.into()],
        "b" => vec!["gone".into()],
        _ => Vec::new(),
    });
    assert_eq!(sent.len(), 4);
    let gone = |why| Verdict::NoAnswer(why);
    assert_eq!(
        verdicts(&outcomes),
        [&Verdict::Same, &gone(NoAnswer::Gone), &gone(NoAnswer::Gone), &gone(NoAnswer::NotSent)]
    );
    assert!(outcomes.is_any_answered());
}

#[test]
fn answers_that_nobody_waits_for_are_counted() {
    let text = r#"> {"id":1,"method":"a"}
        < {"id":1,"result":{}}"#;
    let (_, outcomes, _) = Play::of(text).run(|message| {
        let opening = message.id() == Some(Id::Text(OWN_ID.into()));
        match opening {
            true => vec![format!(r#"{{"id":"{OWN_ID}","result":{{}}}}"#)],
            false if message.kind() == Kind::Request => [
                r#"{"id":"1","result":{}}"#,
                r#"{"id":1,"result":{}}"#,
                r#"{"id":1,"result":{"again":1}}"#,
                r#"{"id":null,"error":{}}"#,
                "rubbish",
                r#"{"what":1}"#,
            ]
            .map(String::from)
            .into(),
            false => Vec::new(),
        }
    });
    assert_eq!((outcomes.tally().same, outcomes.stray, outcomes.strange), (1, 3, 2));
}

#[test]
fn the_rest_of_a_conversation_gets_a_handshake() {
    let text = r#"> {"id":7,"method":"tools/list"}
        < {"id":7,"result":{}}"#;
    let answer = |message: &Message| -> Vec<String> {
        message.id().map(|id| format!(r#"{{"id":{id},"result":{{}}}}"#)).into_iter().collect()
    };
    let (sent, outcomes, _) = Play::of(text).run(answer);
    assert!(sent[0].contains("initialize") && sent[1].contains("notifications/initialized"), "{sent:?}");
    assert_eq!((sent.len(), outcomes.tally().same, outcomes.stray), (3, 1, 0));
    let (sent, ..) = Play::with(text, OPTIONS, Handshake::Verbatim).run(answer);
    assert_eq!(sent, [r#"{"id":7,"method":"tools/list"}"#]);
    // A server that does not answer it is asked the rest all the same.
    let (sent, outcomes, waited) = Play::of(text).run(|_| Vec::new());
    assert_eq!((sent.len(), outcomes.tally().no_answer), (4, 1), "{sent:?}");
    assert_eq!(waited, 20 * SECOND + 1_000_000);
}

#[test]
fn questions_are_answered_and_what_is_announced_is_waited_for() {
    let text = r#"> {"id":1,"method":"initialize"}
        < {"id":1,"result":{}}
        > {"method":"notifications/initialized"}
        < {"id":5,"method":"roots/list"}
        > {"id":5,"result":{"roots":[]}}
        < {"method":"notifications/message"}
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{}}"#;
    let mut play = Play::of(text);
    play.leaves();
    play.hear(r#"{"id":1,"result":{}}"#);
    assert_eq!(play.leaves(), [r#"{"method":"notifications/initialized"}"#]);
    play.hear(r#"{"id":"q","method":"roots/list"}"#);
    assert_eq!(play.leaves(), [r#"{"id":"q","result":{"roots":[]}}"#], "the list waits for the announcement");
    play.hear(r#"{"method":"notifications/message","params":{"other":1}}"#);
    assert_eq!(play.leaves(), [r#"{"id":2,"method":"tools/list"}"#]);
    // A server that says nothing by itself any more is waited for once.
    let (sent, outcomes, waited) = Play::of(text).run(as_recorded(text));
    assert_eq!((sent.len(), outcomes.tally().same), (3, 2));
    assert_eq!(waited, HEARD_FOR_NS + 3_000_000);
    assert_eq!(outcomes.heard["roots/list"], Count { recorded: 1, now: 0 });
}

#[test]
fn what_was_left_out_is_not_waited_for() {
    let text = r#"> {"id":1,"method":"a"}
        < {"method":"notifications/message"}
        < {"id":1,"result":{}}
        > {"id":2,"method":"b"}
        < {"id":2,"result":{}}"#;
    let transcript = transcript(text);
    let script = Script::of(&transcript, Handshake::Verbatim, |at| at == 3);
    let (sent, outcomes, waited) = Play::scripted(transcript, script, OPTIONS).run(as_recorded(text));
    assert_eq!((sent.len(), waited, outcomes.heard.len()), (1, 0, 0));
    assert_eq!(verdicts(&outcomes), [&Verdict::Skipped("left out"), &Verdict::Same]);
}

#[test]
fn a_call_that_was_taken_back_is_not_waited_for() {
    let text = r#"> {"id":1,"method":"a"}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        < {"id":1,"result":{}}
        > {"id":2,"method":"subscriptions/listen"}
        > {"id":3,"method":"b"}
        < {"id":3,"result":{}}"#;
    let (sent, outcomes, waited) = Play::with(text, OPTIONS, Handshake::Verbatim).run(|message| match message.id() {
        Some(Id::Integer(3)) => vec![r#"{"id":3,"result":{}}"#.into()],
        _ => Vec::new(),
    });
    assert_eq!(waited, 0);
    assert_eq!(
        verdicts(&outcomes),
        [
            &Verdict::NotCompared("the client took it back"),
            &Verdict::NotCompared("the recording has no answer"),
            &Verdict::Same,
        ]
    );
    assert!(sent[4].contains(r#""requestId":2,"reason":"the replay is over""#), "{sent:?}");
    assert_eq!(sent.len(), 5, "what was taken back is not taken back twice");
}

/// A call that was under way when the recording ended.
const UNANSWERED: &str = r#"> {"id":1,"method":"a"}
    > {"id":2,"method":"b"}
    < {"id":2,"result":{}}"#;

#[test]
fn a_call_that_the_recording_has_no_answer_to_is_waited_for() {
    let options = Options { keeps_messages: true, ..OPTIONS };
    let mut play = Play::with(UNANSWERED, options, Handshake::Verbatim);
    assert_eq!(play.leaves().len(), 2, "nothing that was sent later waited for it");
    play.hear(r#"{"id":2,"result":{}}"#);
    assert_eq!(play.replay.step(play.now), Step::Wait(10 * SECOND));
    play.now = 4 * SECOND;
    play.hear(r#"{"id":1,"result":{"late":1}}"#);
    assert_eq!(play.replay.step(play.now), Step::Done);
    let (outcomes, ..) = play.replay.finish();
    assert_eq!(verdicts(&outcomes), [&Verdict::NotCompared("the recording has no answer"), &Verdict::Same]);
    let call = &outcomes.calls[0];
    assert_eq!(call.took_ns, Some(4 * SECOND));
    assert_eq!(call.sent.as_deref(), Some(&br#"{"id":1,"method":"a"}"#[..]));
    assert_eq!(call.answer.as_deref(), Some(&br#"{"id":1,"result":{"late":1}}"#[..]));
}

#[test]
fn a_call_that_is_not_answered_this_time_either_is_told() {
    let check = |answers: &[&str], verdict: NoAnswer, expected_wait: u64| {
        let (sent, outcomes, waited) = Play::with(UNANSWERED, OPTIONS, Handshake::Verbatim).run(|message| {
            let is_last = message.id() == Some(Id::Integer(2));
            answers.iter().filter(|_| is_last).map(|answer| (*answer).to_owned()).collect()
        });
        assert_eq!(verdicts(&outcomes), [&Verdict::NoAnswer(verdict), &Verdict::Same]);
        assert_eq!(waited, expected_wait);
        sent
    };
    let answered = r#"{"id":2,"result":{}}"#;
    let sent = check(&[answered], NoAnswer::AsRecorded, 10 * SECOND);
    assert!(sent[2].contains(r#""requestId":1,"reason":"it took too long""#), "{sent:?}");
    check(&[answered, "gone"], NoAnswer::Gone, 0);
    let refusal =
        r#"{"id":1,"error":{"code":5030,"message":"mcp-proxy: it ended","data":{"mcp-proxy/reason":"server-gone"}}}"#;
    check(&[answered, refusal], NoAnswer::Refused("it ended".into()), 0);
}

/// Time passes while a message is held, and the server does not have it.
#[test]
fn the_time_of_a_hold_is_not_waited_for() {
    let mut recorded = Transcript::default();
    let mut story = mcp_store::Story::default();
    let lines = [
        (0, 100, r#"> {"id":1,"method":"a"}"#),
        (101, 200, r#"< {"id":"q","method":"elicitation/create"}"#),
        (302, 50, r#"> {"id":"q","result":{}}"#),
        (353, 40, r#"< {"id":1,"result":{}}"#),
        (395, 0, r#"> {"id":2,"method":"b"}"#),
        (396, 0, r#"< {"id":2,"result":{}}"#),
    ];
    for (at, (seconds, held, line)) in lines.into_iter().enumerate() {
        let (direction, raw) = match line.split_at(2) {
            ("> ", raw) => (Direction::ClientToServer, raw),
            (_, raw) => (Direction::ServerToClient, raw),
        };
        let held_ns = (held > 0).then_some(held * SECOND);
        let outcome = held_ns.map(|_| mcp_store::OutcomeKind::Forwarded);
        let message = crate::transcript::tests::recorded(at, raw);
        let held = held_ns.is_some();
        let message = mcp_store::Recorded { time_ns: seconds * SECOND, direction, held, held_ns, outcome, ..message };
        recorded.add(&story.tell(message));
    }
    assert_eq!(recorded.took_ns(0), Some(3 * SECOND));
    let script = Script::of(&recorded, Handshake::Verbatim, |_| true);
    let options = Options { pace: Pace::Recorded, ..OPTIONS };
    let mut play = Play::scripted(recorded, script, options);
    play.leaves();
    play.hear(r#"{"id":"q","method":"elicitation/create"}"#);
    assert_eq!(play.leaves().len(), 1);
    assert_eq!(play.replay.step(play.now), Step::Wait(13 * SECOND), "three seconds were the server's");
    play.hear(r#"{"id":1,"result":{}}"#);
    assert_eq!(play.replay.step(play.now), Step::Wait(2 * SECOND), "two seconds were the client's");
}

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

fn rounds() -> String {
    format!(
        r#"> {{"id":1,"method":"tools/call","params":{{"name":"t",{MODERN}}}}}
        < {{"id":1,"result":{{"resultType":"input_required","inputRequests":{{"k":{{"method":"elicitation/create"}}}},"requestState":"old"}}}}
        > {{"id":2,"method":"tools/call","params":{{"name":"t","inputResponses":{{"k":{{"action":"accept"}}}},"requestState":"old",{MODERN}}}}}
        < {{"id":2,"result":{{"resultType":"complete","x":1}}}}"#
    )
}

#[test]
fn rounds_carry_the_new_state() {
    let (sent, outcomes, _) = Play::of(&rounds()).run(|message| match message.id() {
        Some(Id::Integer(1)) => vec![r#"{"id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create"}},"requestState":"new"}}"#.into()],
        _ => vec![r#"{"id":2,"result":{"resultType":"complete","x":1}}"#.into()],
    });
    assert!(sent[1].contains(r#""inputResponses":{"k":{"action":"accept"}},"requestState":"new""#), "{sent:?}");
    assert_eq!(outcomes.tally().same, 2);
}

#[test]
fn a_round_that_is_not_wanted_any_more_is_skipped() {
    let (sent, outcomes, _) =
        Play::of(&rounds()).run(|_| vec![r#"{"id":1,"result":{"resultType":"complete","x":1}}"#.into()]);
    assert_eq!(sent.len(), 1);
    assert!(matches!(verdicts(&outcomes)[..], [Verdict::Drifted(_), Verdict::Skipped(_)]), "{outcomes:?}");
}

#[test]
fn rounds_beyond_the_recording_are_followed_as_far_as_it_has_answers() {
    let again = |id: &str, method: &str| {
        format!(
            r#"{{"id":{id},"result":{{"resultType":"input_required","inputRequests":{{"z":{{"method":"{method}"}}}},"requestState":"more"}}}}"#
        )
    };
    let first = again("1", "elicitation/create");
    let (sent, outcomes, _) = Play::of(&rounds()).run(|message| match message.id().unwrap() {
        Id::Integer(1) => vec![first.clone()],
        Id::Integer(_) => vec![again("2", "elicitation/create")],
        id => vec![format!(r#"{{"id":{id},"result":{{"resultType":"complete","x":1}}}}"#)],
    });
    assert!(
        sent[2].contains(r#"{"id":"mcp-proxy-replay-1""#) && sent[2].contains(r#"{"z":{"action":"accept"}}"#),
        "{sent:?}"
    );
    let last = outcomes.calls.last().unwrap();
    assert_eq!((last.extra_rounds, &last.verdict), (1, &Verdict::Drifted(Default::default())), "once more is drift");
    // A server that never has enough, and one that wants what nobody gave.
    let (sent, outcomes, _) = Play::of(&rounds()).run(|message| match message.id().unwrap() {
        Id::Integer(1) => vec![first.clone()],
        id => vec![again(&id.to_string(), "elicitation/create")],
    });
    assert_eq!((sent.len(), outcomes.tally().drifted), (2 + EXTRA_ROUNDS_MAX as usize, 2));
    let (sent, ..) = Play::of(&rounds()).run(|message| match message.id().unwrap() {
        Id::Integer(1) => vec![first.clone()],
        id => vec![again(&id.to_string(), "sampling/createMessage")],
    });
    assert_eq!(sent.len(), 2);
}

#[test]
fn cursors_are_carried_over() {
    let text = r#"> {"id":1,"method":"tools/list"}
        < {"id":1,"result":{"nextCursor":"old"}}
        > {"id":2,"method":"tools/list","params":{"cursor":"old"}}
        < {"id":2,"result":{}}"#;
    let (sent, outcomes, _) = Play::with(text, OPTIONS, Handshake::Verbatim).run(|message| {
        vec![match message.id().unwrap() {
            Id::Integer(1) => r#"{"id":1,"result":{"nextCursor":"new"}}"#.into(),
            _ => r#"{"id":2,"result":{}}"#.into(),
        }]
    });
    assert_eq!(sent[1], r#"{"id":2,"method":"tools/list","params":{"cursor":"new"}}"#);
    assert_eq!(outcomes.tally().same, 2);
}

#[test]
fn what_the_proxy_answers_is_no_answer_unless_it_was_then() {
    let gone =
        r#"{"id":1,"error":{"code":5030,"message":"mcp-proxy: it ended","data":{"mcp-proxy/reason":"server-gone"}}}"#;
    let check = |recorded: &str, expected: Verdict| {
        let text = format!("> {{\"id\":1,\"method\":\"a\"}}\n< {recorded}");
        let (_, outcomes, _) = Play::with(&text, OPTIONS, Handshake::Verbatim).run(|_| vec![gone.into()]);
        assert_eq!(verdicts(&outcomes), [&expected]);
    };
    check(r#"{"id":1,"result":{}}"#, Verdict::NoAnswer(NoAnswer::Refused("it ended".into())));
    check(&format!("proxy {gone}"), Verdict::Same);
}

#[test]
fn at_the_recorded_pace_pauses_are_kept() {
    let options = Options { pace: Pace::Recorded, ..OPTIONS };
    let (_, outcomes, waited) = Play::with(SIMPLE, options, Handshake::AsNeeded).run(as_recorded(SIMPLE));
    assert_eq!((outcomes.tally().same, waited), (4, 4_000_000), "a millisecond before each but the first");
}

#[test]
fn a_recording_cannot_make_a_replay_wait_for_ever() {
    let mut recorded = Transcript::default();
    let mut story = mcp_store::Story::default();
    for (at, text) in [r#"{"id":1,"method":"a"}"#, r#"{"id":1,"result":{}}"#].into_iter().enumerate() {
        let mut message = crate::transcript::tests::recorded(at, text);
        message.time_ns = at as u64 * u64::MAX;
        message.direction = [Direction::ClientToServer, Direction::ServerToClient][at];
        recorded.add(&story.tell(message));
    }
    let script = Script::of(&recorded, Handshake::Verbatim, |_| true);
    let (_, outcomes, waited) = Play::scripted(recorded, script, OPTIONS).run(|_| Vec::new());
    assert_eq!((outcomes.tally().no_answer, waited), (1, OPTIONS.timeout_ns + TOOK_MAX_NS));
}

#[test]
fn batches_leave_whole_and_are_answered_in_any_way() {
    let text = r#"> [{"id":1,"method":"a"},{"method":"n"},{"id":2,"method":"b"}]
        < [{"id":1,"result":{}},{"id":2,"result":{}}]"#;
    let (sent, outcomes, _) = Play::with(text, OPTIONS, Handshake::Verbatim)
        .run(|_| vec![r#"{"id":2,"result":{}}"#.into(), r#"[{"id":1,"result":{}},[]]"#.into()]);
    assert_eq!((sent.len(), outcomes.tally().same, outcomes.strange), (1, 2, 1));
}

#[test]
fn an_edited_message_counts_as_it_is_sent() {
    let text = r#"> {"id":1,"method":"a"}
        < {"id":1,"result":{}}
        > {"id":2,"method":"b"}
        < {"id":2,"result":{}}"#;
    let transcript = transcript(text);
    let mut script = Script::of(&transcript, Handshake::Verbatim, |_| true);
    script.turns[0].bytes = r#"{"id":"mine","method":"a"}"#.into();
    script.turns[1].bytes = "not json".into();
    let (sent, outcomes, _) =
        Play::scripted(transcript, script, OPTIONS).run(|_| vec![r#"{"id":"mine","result":{}}"#.into()]);
    assert_eq!(sent[1], "not json");
    assert!(matches!(verdicts(&outcomes)[..], [Verdict::Same, Verdict::NotCompared(_)]), "{outcomes:?}");
}
