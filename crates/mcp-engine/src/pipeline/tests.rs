//! A conversation through the pipeline, without a transport.

use bytes::Bytes;
use mcp_wire::Ending;

use super::*;
use crate::bus::Event;

struct Play {
    pipeline: Pipeline,
    conversation: Conversation,
    out: Outbox,
}

impl Play {
    fn begin() -> Self {
        let mut pipeline = Pipeline::new(Recorder::off(), Bus::default(), 1000);
        let conversation = pipeline.begin_conversation();
        Self { pipeline, conversation, out: Outbox::default() }
    }

    fn sends(&mut self, from: Side, text: &str) {
        let frame = Frame { bytes: Bytes::copy_from_slice(text.as_bytes()), ending: Ending::Lf, bom: false };
        self.pipeline.pass(&mut self.conversation, from, [Cut::Frame(frame)], &mut self.out);
    }

    #[track_caller]
    fn gets(&mut self, side: Side, expected: &[&str]) {
        let got: Vec<String> =
            self.out.to(side).drain(..).map(|out| String::from_utf8_lossy(out.frame().bytes).into_owned()).collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn everything_goes_on_as_it_came() {
    let mut play = Play::begin();
    for text in [r#"{ "id" : 1e0,"method":"x" }"#, "not json at all", "", r#"{"id":1,"id":2}"#, "[1,2]"] {
        play.sends(Side::Client, text);
        play.gets(Side::Server, &[text]);
        play.gets(Side::Client, &[]);
    }
}

#[test]
fn noise_is_kept_from_the_client() {
    let mut play = Play::begin();
    play.sends(Side::Server, "Server listening on stdio");
    play.sends(Side::Server, "");
    play.gets(Side::Client, &[]);
    assert_eq!(play.conversation.noise(), 2);
    play.sends(Side::Server, "  {broken");
    play.gets(Side::Client, &["  {broken"]);
}

#[test]
fn a_server_that_is_gone_leaves_no_call_open() {
    let mut play = Play::begin();
    play.sends(Side::Client, r#"{"id":1,"method":"a"}"#);
    play.sends(Side::Client, r#"{"id":"two","method":"b"}"#);
    play.sends(Side::Server, r#"{"id":1,"result":{}}"#);
    play.out.clear();
    play.pipeline.answer_pending(
        &mut play.conversation,
        Side::Client,
        &Refusal::ServerGone { status: "exit code 3".into() },
        &mut play.out,
    );
    play.gets(
        Side::Client,
        &[r#"{"jsonrpc":"2.0","id":"two","error":{"code":5030,"data":{"mcp-proxy/reason":"server-gone"},"message":"mcp-proxy: the server ended before it answered (exit code 3)"}}"#],
    );
    assert_eq!(play.conversation.open_calls(Side::Client), 0);
}

#[test]
fn an_oversize_answer_fails_its_call_and_no_other() {
    let mut play = Play::begin();
    play.sends(Side::Client, r#"{"id":5,"method":"a"}"#);
    play.sends(Side::Client, r#"{"id":6,"method":"a"}"#);
    play.out.clear();
    let too_large = |head: &'static [u8]| Cut::TooLarge { size: 9999, head: head.into(), tail: Bytes::new() };
    play.pipeline.pass(&mut play.conversation, Side::Server, [too_large(br#"{"id":5,"result":"aaa"#)], &mut play.out);
    assert_eq!(play.out.to_client.len(), 1);
    assert!(play.out.to_server.is_empty());
    assert_eq!(play.conversation.open_calls(Side::Client), 1);
    play.out.clear();
    play.pipeline.pass(
        &mut play.conversation,
        Side::Client,
        [too_large(br#"{"id":7,"method":"aaa","params":"#)],
        &mut play.out,
    );
    assert_eq!((play.out.to_client.len(), play.out.to_server.len()), (1, 0));
}

#[test]
fn watchers_see_what_passes() {
    let mut play = Play::begin();
    let mut watch = play.pipeline.journal.bus().subscribe(10);
    play.sends(Side::Client, r#"{"id":1,"method":"a"}"#);
    play.sends(Side::Server, "noise");
    play.sends(Side::Server, r#"{"id":1,"result":{}}"#);
    let seen: Vec<_> = std::iter::from_fn(|| watch.try_next())
        .map(|event| match event {
            Event::Message { sequence, correlated, origin, .. } => (sequence, correlated, origin),
            other => unreachable!("nothing but messages passed: {other:?}"),
        })
        .collect();
    assert_eq!(seen, [(1, None, Origin::Peer), (2, None, Origin::Noise), (3, Some(1), Origin::Peer)]);
}
