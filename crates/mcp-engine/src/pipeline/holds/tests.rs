//! Held messages through the pipeline, without a transport. Time is paused: what takes 45 seconds
//! takes none.

use std::time::Duration;

use bytes::Bytes;
use mcp_filter::Filter;

use super::*;
use crate::bus::{Bus, Subscription};
use crate::conversation::Conversation;
use crate::intercept::{Answer, DecideError, Decision, HOLD_FOR, HoldOptions, Mode, OnDetach, Owner};
use crate::pipeline::Pipeline;
use crate::record::Recorder;

struct Play {
    pipeline: Pipeline,
    conversation: Conversation,
    out: Outbox,
    events: Subscription,
}

impl Play {
    fn begin() -> Self {
        Self::with(HoldOptions::default())
    }

    fn with(options: HoldOptions) -> Self {
        let bus = Bus::default();
        let events = bus.subscribe(10_000);
        let (_, commands) = crate::commands();
        let pipeline = Pipeline::new(Recorder::off(), bus, 10_000).governed_from(commands, Intercept::new(options));
        Self { pipeline, conversation: Conversation::only(), out: Outbox::default(), events }
    }

    fn breaks(mut self, filter: &str) -> Self {
        let filter = Filter::parse(filter).expect("a filter");
        self.pipeline.decisions().add_breakpoint(None, filter, Owner::Command).expect("there is room");
        self
    }

    fn sends(&mut self, from: Side, text: &str) {
        self.pipeline.pass_one(
            &mut self.conversation,
            from,
            Lane::PIPE,
            Bytes::copy_from_slice(text.as_bytes()),
            &mut self.out,
        );
    }

    /// What has left for `side` since it was last asked.
    #[track_caller]
    fn gets(&mut self, side: Side, expected: &[&str]) {
        for release in self.pipeline.holds.take_released() {
            self.conversation.settle(&release);
            self.out.to(release.from.other()).extend(release.onward);
            self.out.to(release.from).extend(release.back);
        }
        let got: Vec<String> =
            self.out.to(side).drain(..).map(|out| String::from_utf8_lossy(out.frame().bytes).into_owned()).collect();
        assert_eq!(got, expected);
    }

    #[track_caller]
    fn holds(&self, expected: &[u64]) {
        let held: Vec<u64> = self.pipeline.status().held.iter().map(|held| held.sequence).collect();
        assert_eq!(held, expected);
    }

    fn decides(&mut self, sequence: u64, decision: Decision) -> Result<(), DecideError> {
        self.pipeline.decisions().decide(sequence, decision, "ann")
    }

    fn modifies(&mut self, sequence: u64, raw: &str) -> Result<(), DecideError> {
        let raw = Bytes::copy_from_slice(raw.as_bytes());
        self.decides(sequence, Decision::Modify { raw, raw_headers: false, not_json_rpc: false })
    }

    /// What became of messages, as it was told.
    fn outcomes(&mut self) -> Vec<(u64, OutcomeKind, bool)> {
        std::iter::from_fn(|| self.events.try_next())
            .filter_map(|event| match event {
                Event::Outcome { sequence, outcome } => Some((sequence, outcome.what, outcome.edited.is_some())),
                _ => None,
            })
            .collect()
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

#[tokio::test(start_paused = true)]
async fn a_breakpoint_holds_a_call_and_its_answer_and_nothing_else() {
    let mut play = Play::begin().breaks("tool:echo");
    play.sends(Side::Client, CALL);
    play.sends(Side::Client, PING);
    play.gets(Side::Server, &[PING]);
    play.holds(&[1]);
    play.decides(1, Decision::Forward).unwrap();
    play.gets(Side::Server, &[CALL]);
    play.sends(Side::Server, ANSWER);
    play.gets(Side::Client, &[]);
    play.holds(&[3]);
    play.decides(3, Decision::Forward).unwrap();
    play.gets(Side::Client, &[ANSWER]);
    assert_eq!(play.decides(3, Decision::Forward), Err(DecideError::NotHeld(3)));
    assert_eq!(play.outcomes(), [(1, OutcomeKind::Forwarded, false), (3, OutcomeKind::Forwarded, false)]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_must_be_json_and_leaves_on_one_line() {
    let mut play = Play::begin().breaks("> tool:echo");
    play.sends(Side::Client, CALL);
    assert!(matches!(play.modifies(1, "{"), Err(DecideError::NotJson(_))));
    assert_eq!(play.modifies(1, r#"{"a":1}"#), Err(DecideError::NotJsonRpc));
    play.holds(&[1]);
    play.modifies(1, "{\n \"id\":1,\r\n\"method\":\"tools/call\"}\n").unwrap();
    play.gets(Side::Server, &[r#"{  "id":1,  "method":"tools/call"}"#]);
    play.sends(Side::Client, CALL);
    let raw = Bytes::from_static(b"[]");
    play.decides(2, Decision::Modify { raw, raw_headers: false, not_json_rpc: true }).unwrap();
    play.gets(Side::Server, &["[]"]);
    assert_eq!(play.outcomes(), [(1, OutcomeKind::Modified, true), (2, OutcomeKind::Modified, true)]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_changes_the_id_is_answered_under_the_old_one() {
    let mut play = Play::begin().breaks("> tool:echo");
    play.sends(Side::Client, CALL);
    play.modifies(1, r#"{"id":"other","method":"tools/call","params":{"name":"echo"}}"#).unwrap();
    play.gets(Side::Server, &[r#"{"id":"other","method":"tools/call","params":{"name":"echo"}}"#]);
    assert_eq!(play.conversation.open_calls(Side::Client), 1);
    play.sends(Side::Server, r#"{"result":{} , "id":"other"}"#);
    play.gets(Side::Client, &[r#"{"result":{} , "id":1}"#]);
    assert_eq!(play.conversation.open_calls(Side::Client), 0);
    assert_eq!(play.outcomes(), [(1, OutcomeKind::Modified, true), (2, OutcomeKind::Forwarded, true)]);
    // What came after has its own id again.
    play.sends(Side::Server, r#"{"result":{} , "id":"other"}"#);
    play.gets(Side::Client, &[r#"{"result":{} , "id":"other"}"#]);
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_reaches_nobody_unless_an_error_is_wanted() {
    let mut play = Play::begin().breaks("tool:echo").breaks("kind:notification");
    play.sends(Side::Client, CALL);
    play.decides(1, Decision::Drop { error: None }).unwrap();
    play.gets(Side::Server, &[]);
    play.gets(Side::Client, &[]);
    assert_eq!(play.conversation.open_calls(Side::Client), 0);
    play.sends(Side::Client, CALL);
    play.decides(2, Decision::Drop { error: Some((-1, "no \"echo\"".into())) }).unwrap();
    play.gets(Side::Client, &[r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no \"echo\""}}"#]);
    // 3 was that error. An answer is replaced by the error.
    play.sends(Side::Client, CALL);
    play.decides(4, Decision::Forward).unwrap();
    play.gets(Side::Server, &[CALL]);
    play.sends(Side::Server, ANSWER);
    play.decides(5, Decision::Drop { error: Some((7, "gone".into())) }).unwrap();
    play.gets(Side::Client, &[r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"gone"}}"#]);
    play.sends(Side::Client, r#"{"method":"notifications/initialized"}"#);
    let error = Some((7, "gone".into()));
    assert_eq!(play.decides(7, Decision::Drop { error }), Err(DecideError::NobodyWaits(7)));
    play.holds(&[7]);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_either_side_can_be_answered_for_the_other() {
    let mut play = Play::begin().breaks("kind:request or kind:response");
    play.sends(Side::Client, CALL);
    play.decides(1, Decision::Answer(Answer::Result("{\n}".into()))).unwrap();
    play.gets(Side::Client, &[r#"{"jsonrpc":"2.0","id":1,"result":{ }}"#]);
    play.sends(Side::Server, r#"{"id":"e","method":"elicitation/create"}"#);
    play.decides(3, Decision::Answer(Answer::Result(r#"{"action":"decline"}"#.into()))).unwrap();
    play.gets(Side::Server, &[r#"{"jsonrpc":"2.0","id":"e","result":{"action":"decline"}}"#]);
    play.gets(Side::Client, &[]);
    play.sends(Side::Server, ANSWER);
    let answer = Decision::Answer(Answer::Result("1".into()));
    assert_eq!(play.decides(5, answer), Err(DecideError::NotARequest(5)));
    let wrong = Decision::Answer(Answer::Result("1,".into()));
    play.sends(Side::Client, PING);
    assert!(matches!(play.decides(6, wrong), Err(DecideError::NotJson(_))));
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_held_request_discards_both() {
    const CANCEL: &str = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
    let mut play = Play::begin().breaks("tool:echo");
    play.sends(Side::Client, CALL);
    play.sends(Side::Client, CANCEL);
    play.gets(Side::Server, &[]);
    play.holds(&[]);
    assert_eq!(play.out.withheld, 1);
    assert_eq!(play.outcomes(), [(2, OutcomeKind::Cancelled, false), (1, OutcomeKind::Cancelled, false)]);
    // One that is on its way is cancelled as ever, and whoever holds its answer sees that.
    play.sends(Side::Client, CALL);
    play.decides(3, Decision::Forward).unwrap();
    play.sends(Side::Server, ANSWER);
    play.gets(Side::Server, &[CALL]);
    play.sends(Side::Client, CANCEL);
    play.gets(Side::Server, &[CANCEL]);
    assert!(play.pipeline.status().held[0].given_up);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_for_a_face_that_is_not_there() {
    let mut play = Play::begin();
    play.pipeline.decisions().set_mode(Mode::Intercept, Owner::Start);
    play.pipeline.decisions().add_breakpoint(None, Filter::parse("").unwrap(), Owner::Face).unwrap();
    play.sends(Side::Client, CALL);
    play.gets(Side::Server, &[CALL]);
    play.pipeline.decisions().set_face(true);
    play.sends(Side::Client, PING);
    play.holds(&[2]);
    play.pipeline.decisions().set_face(false);
    play.gets(Side::Server, &[PING]);
    assert_eq!(play.outcomes(), [(2, OutcomeKind::Released, false)]);
    play.pipeline.decisions().set_mode(Mode::Intercept, Owner::Command);
    play.sends(Side::Client, PING);
    play.holds(&[3]);
}

#[tokio::test(start_paused = true)]
async fn a_face_that_leaves_leaves_what_it_was_told_to() {
    for (on_detach, to_server, to_client) in [
        (OnDetach::Forward, vec![PING], vec![]),
        (OnDetach::Drop, vec![], vec![]),
        (
            OnDetach::Error,
            vec![],
            vec![
                r#"{"jsonrpc":"2.0","id":2,"error":{"code":5040,"data":{"mcp-proxy/reason":"dropped"},"message":"mcp-proxy: the message was held, and whoever watches this proxy did not let it go on"}}"#,
            ],
        ),
    ] {
        let mut play = Play::with(HoldOptions { on_detach, ..HoldOptions::default() });
        play.pipeline.decisions().set_mode(Mode::Intercept, Owner::Face);
        play.pipeline.decisions().set_face(true);
        play.sends(Side::Client, PING);
        play.pipeline.decisions().set_face(false);
        play.gets(Side::Server, &to_server);
        play.gets(Side::Client, &to_client);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_the_limit() {
    let mut play = Play::begin().breaks("kind:request");
    play.sends(Side::Client, CALL);
    tokio::time::advance(Duration::from_secs(1)).await;
    play.sends(Side::Client, PING);
    let deadline = play.pipeline.holds.deadline().expect("something is held");
    assert_eq!(deadline.duration_since(Instant::now()), HOLD_FOR - Duration::from_secs(1));
    tokio::time::sleep_until(deadline).await;
    play.pipeline.decisions().release_overdue();
    play.gets(Side::Server, &[CALL]);
    play.holds(&[2]);
    tokio::time::sleep_until(play.pipeline.holds.deadline().expect("one is left")).await;
    play.pipeline.decisions().release_overdue();
    play.gets(Side::Server, &[PING]);
    assert_eq!(play.pipeline.holds.deadline(), None);
    assert_eq!(play.outcomes(), [(1, OutcomeKind::Released, false), (2, OutcomeKind::Released, false)]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_face_ends_when_one_comes_or_none_does() {
    let options = HoldOptions { wait_for_face: true, ..HoldOptions::default() };
    let mut play = Play::with(options.clone());
    play.sends(Side::Client, CALL);
    play.holds(&[1]);
    play.pipeline.decisions().set_face(true);
    play.gets(Side::Server, &[CALL]);
    play.sends(Side::Client, PING);
    play.gets(Side::Server, &[PING]);
    // To hold everything, it goes on being held.
    let mut play = Play::with(options.clone());
    play.pipeline.decisions().set_mode(Mode::Intercept, Owner::Start);
    play.sends(Side::Client, CALL);
    play.pipeline.decisions().set_face(true);
    play.holds(&[1]);
    let mut play = Play::with(options);
    play.sends(Side::Client, CALL);
    tokio::time::advance(HOLD_FOR).await;
    play.pipeline.decisions().release_overdue();
    play.gets(Side::Server, &[CALL]);
    play.sends(Side::Client, PING);
    play.gets(Side::Server, &[PING]);
}

#[tokio::test(start_paused = true)]
async fn five_hundred_are_held_and_let_go_in_order() {
    let mut play = Play::begin();
    play.pipeline.decisions().set_mode(Mode::Intercept, Owner::Command);
    let sent: Vec<String> = (1..=500).map(|id| format!(r#"{{"id":{id},"method":"a"}}"#)).collect();
    sent.iter().for_each(|text| play.sends(Side::Client, text));
    play.gets(Side::Server, &[]);
    assert_eq!(play.pipeline.status().held.len(), 500);
    assert_eq!(play.pipeline.decisions().set_mode(Mode::Passthrough, Owner::Command), 500);
    play.gets(Side::Server, &sent.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!play.pipeline.watches());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_leaves_nothing_parked() {
    let mut play = Play::begin().breaks("tool:echo");
    play.sends(Side::Client, CALL);
    play.decides(1, Decision::Forward).unwrap();
    play.gets(Side::Server, &[CALL]);
    play.sends(Side::Server, ANSWER);
    play.sends(Side::Client, CALL);
    play.holds(&[2, 3]);
    play.pipeline.decisions().server_is_gone(0);
    play.gets(Side::Server, &[]);
    play.gets(Side::Client, &[ANSWER]);
    let refusal = Refusal::ServerGone { status: "exit status 1".into() };
    assert_eq!(play.outcomes()[1..], [(3, OutcomeKind::Discarded, false), (2, OutcomeKind::Released, false)]);
    play.pipeline.answer_pending(&mut play.conversation, Side::Client, &refusal, &mut play.out);
    assert_eq!(play.out.to_client.len(), 1, "who asked is told");
}

#[tokio::test(start_paused = true)]
async fn a_speaker_is_known_by_name() {
    let mut play = Play::begin().breaks("client:ide not method:initialize");
    play.sends(
        Side::Client,
        r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"ide"}}}"#,
    );
    play.sends(Side::Server, r#"{"id":1,"result":{"protocolVersion":"2025-03-26"}}"#);
    play.sends(Side::Client, PING);
    play.holds(&[3]);
    let clients = play.pipeline.status().clients;
    assert_eq!((clients[0].1.client.as_deref(), clients[0].1.revision.as_deref()), (Some("ide"), Some("2025-03-26")));
}

#[tokio::test(start_paused = true)]
async fn what_no_client_sent_is_answered_to_no_client() {
    let mut play = Play::begin();
    play.sends(Side::Client, CALL);
    play.gets(Side::Server, &[CALL]);
    let mut sent = play.pipeline.injections.inject(0, CALL.into());
    for injection in play.pipeline.injections.take() {
        play.pipeline.pass_injected(&mut play.conversation, Lane::PIPE, injection, &mut play.out);
    }
    assert_eq!(sent.try_recv(), Ok(Ok(2)));
    play.gets(Side::Server, &[&CALL.replace(r#""id":1"#, r#""id":"mcp-proxy-replay-1""#)]);
    play.sends(Side::Server, r#"{"id":"mcp-proxy-replay-1","result":{}}"#);
    play.gets(Side::Client, &[]);
    play.sends(Side::Server, ANSWER);
    play.gets(Side::Client, &[ANSWER]);
    let answers = std::iter::from_fn(|| play.events.try_next()).filter_map(|event| match event {
        Event::Message { sequence, correlated: Some(request), .. } => Some((sequence, request)),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [(3, 2), (4, 1)]);
}

const RENAMED: &str = r#"{"id":"other","method":"tools/call","params":{"name":"echo"}}"#;

/// A call that went on under another id.
fn renamed(filter: &str) -> Play {
    let mut play = Play::begin().breaks(filter);
    play.sends(Side::Client, CALL);
    play.modifies(1, RENAMED).unwrap();
    play.gets(Side::Server, &[RENAMED]);
    play
}

#[tokio::test(start_paused = true)]
async fn our_own_errors_have_the_id_that_the_client_knows() {
    let mut play = renamed("> tool:echo");
    play.pipeline.decisions().server_is_gone(0);
    let refusal = Refusal::StreamLost;
    play.pipeline.answer_pending(&mut play.conversation, Side::Client, &refusal, &mut play.out);
    let error = String::from_utf8(reply::error(&Id::Integer(1), &refusal).to_vec()).unwrap();
    play.gets(Side::Client, &[&error]);
    // An answer that is dropped with an error.
    let mut play = renamed("tool:echo");
    play.sends(Side::Server, r#"{"id":"other","result":{}}"#);
    play.decides(2, Decision::Drop { error: Some((7, "gone".into())) }).unwrap();
    play.gets(Side::Client, &[r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"gone"}}"#]);
}

#[tokio::test(start_paused = true)]
async fn two_calls_under_one_id_are_each_answered_under_their_own() {
    let mut play = Play::begin().breaks("> tool:echo");
    play.sends(Side::Client, PING);
    play.sends(Side::Client, CALL);
    play.modifies(2, r#"{"id":2,"method":"tools/call","params":{"name":"echo"}}"#).unwrap();
    play.gets(Side::Server, &[PING, r#"{"id":2,"method":"tools/call","params":{"name":"echo"}}"#]);
    let refusal = Refusal::StreamLost;
    play.pipeline.answer_pending(&mut play.conversation, Side::Client, &refusal, &mut play.out);
    let error = |id| String::from_utf8(reply::error(&Id::Integer(id), &refusal).to_vec()).unwrap();
    play.gets(Side::Client, &[&error(2), &error(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_under_another_id_is_taken_back_under_that() {
    let mut play = renamed("> tool:echo");
    play.sends(Side::Client, r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#);
    play.gets(Side::Server, &[r#"{"method":"notifications/cancelled","params":{"requestId":"other"}}"#]);
    assert_eq!(play.conversation.open_calls(Side::Client), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_and_its_answer_share_the_limit() {
    let mut play = Play::begin().breaks("tool:echo");
    play.sends(Side::Client, CALL);
    tokio::time::advance(Duration::from_secs(40)).await;
    play.decides(1, Decision::Forward).unwrap();
    play.sends(Side::Server, ANSWER);
    let left = play.pipeline.holds.deadline().expect("it is held").duration_since(Instant::now());
    assert_eq!(left, HOLD_FOR - Duration::from_secs(40));
    tokio::time::sleep_until(play.pipeline.holds.deadline().expect("it is held")).await;
    play.pipeline.decisions().release_overdue();
    play.gets(Side::Client, &[ANSWER]);
    // A call that was held to the end has an answer that is not held at all.
    play.sends(Side::Client, CALL);
    tokio::time::advance(HOLD_FOR).await;
    play.pipeline.decisions().release_overdue();
    play.gets(Side::Server, &[CALL, CALL]);
    play.sends(Side::Server, ANSWER);
    play.gets(Side::Client, &[ANSWER]);
}

#[tokio::test(start_paused = true)]
async fn what_waited_behind_another_is_held_for_less() {
    let mut play = Play::begin().breaks("kind:notification");
    let since = Instant::now();
    tokio::time::advance(Duration::from_secs(30)).await;
    let lane = Lane { since: Some(since), ..Lane::PIPE };
    let told = Bytes::from_static(br#"{"method":"n"}"#);
    play.pipeline.pass_one(&mut play.conversation, Side::Server, lane, told.clone(), &mut play.out);
    assert_eq!(play.pipeline.holds.deadline(), Some(since + HOLD_FOR));
    tokio::time::advance(Duration::from_secs(30)).await;
    play.pipeline.pass_one(&mut play.conversation, Side::Server, lane, told, &mut play.out);
    play.gets(Side::Client, &[r#"{"method":"n"}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_face_that_comes_finds_what_it_wanted_to_see() {
    let options = HoldOptions { wait_for_face: true, ..HoldOptions::default() };
    let mut play = Play::with(options.clone());
    play.pipeline.decisions().add_breakpoint(None, Filter::parse("> tool:echo").unwrap(), Owner::Start).unwrap();
    play.sends(Side::Client, PING);
    play.sends(Side::Client, CALL);
    play.holds(&[1, 2]);
    play.pipeline.decisions().set_face(true);
    play.gets(Side::Server, &[PING]);
    play.holds(&[2]);
    // To hold nothing is also not to wait for anybody.
    let mut play = Play::with(options);
    play.pipeline.decisions().set_mode(Mode::Passthrough, Owner::Command);
    play.sends(Side::Client, PING);
    play.gets(Side::Server, &[PING]);
}
