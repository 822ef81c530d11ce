//! What a replay sends: the client's messages in their order, less those that are not wanted.

use std::collections::HashMap;

use bytes::Bytes;
use mcp_wire::Id;

use crate::envelope::Side;
use crate::transcript::{Line, Part, Transcript};

#[derive(Default)]
pub struct Script {
    pub turns: Vec<Turn>,
    /// Requests that are not sent, by line.
    pub left_out: Vec<usize>,
    /// The server expects a handshake that the recording does not have.
    pub needs_opening: bool,
}

/// One message to send.
pub struct Turn {
    /// Its line in the transcript; the first, if it is a batch.
    pub line: usize,
    pub bytes: Bytes,
    /// The lines of the requests in it.
    pub asks: Vec<usize>,
}

/// What opens a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// What the server needs, wanted or not.
    AsNeeded,
    /// Nothing but what is wanted.
    Verbatim,
}

impl Script {
    /// `is_wanted` is asked about each message that is no answer, by line.
    pub fn of(transcript: &Transcript, handshake: Handshake, mut is_wanted: impl FnMut(usize) -> bool) -> Self {
        let mut script = Self::default();
        let mut taken = vec![false; transcript.lines().len()];
        let mut by_id: HashMap<Id, usize> = HashMap::new();
        for (at, line) in transcript.lines().iter().enumerate() {
            if line.from != Side::Client || line.is_answer() {
                continue;
            }
            let follows = line.retry_of.or_else(|| by_id.get(&line.message.cancelled_id()?).copied());
            taken[at] = match (&line.part, follows) {
                // A batch is sent as a whole or not at all.
                (Part::Later, _) => taken[at - 1],
                (_, Some(earlier)) => taken[earlier],
                _ => is_wanted(at) || handshake == Handshake::AsNeeded && opens(line),
            };
            if let Some(id) = line.message.id() {
                by_id.insert(id, at);
            }
            script.add(at, line, taken[at]);
        }
        script.needs_opening = handshake == Handshake::AsNeeded && lacks_opening(transcript);
        script
    }

    fn add(&mut self, at: usize, line: &Line, is_taken: bool) {
        if !is_taken {
            self.left_out.extend(line.is_request().then_some(at));
            return;
        }
        let bytes = match &line.part {
            Part::Whole => line.message.bytes(),
            Part::First(whole) => whole,
            Part::Later => {
                if let (true, Some(turn)) = (line.is_request(), self.turns.last_mut()) {
                    turn.asks.push(at);
                }
                return;
            }
        };
        let asks = line.is_request().then_some(at).into_iter().collect();
        self.turns.push(Turn { line: at, bytes: bytes.clone(), asks });
    }
}

fn opens(line: &Line) -> bool {
    matches!(&*line.method(), "initialize" | "notifications/initialized")
}

/// Whether this is the rest of a conversation that opened before the recording began.
fn lacks_opening(transcript: &Transcript) -> bool {
    let mut said = transcript.lines().iter().filter(|line| line.from == Side::Client && !line.is_answer()).peekable();
    said.peek().is_some() && !said.any(|line| opens(line) || line.message.protocol_version().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::tests::transcript;

    #[track_caller]
    fn check(text: &str, handshake: Handshake, wanted: &str, sent: &[usize], left_out: &[usize]) {
        let transcript = transcript(text);
        let script = Script::of(&transcript, handshake, |at| transcript.line(at).method().contains(wanted));
        assert_eq!(script.turns.iter().map(|turn| turn.line).collect::<Vec<_>>(), sent);
        assert_eq!(script.left_out, left_out);
    }

    const LEGACY: &str = r#"> {"id":1,"method":"initialize"}
        < {"id":1,"result":{}}
        > {"method":"notifications/initialized"}
        > {"id":2,"method":"tools/list"}
        > {"id":3,"method":"tools/call"}
        > {"method":"notifications/cancelled","params":{"requestId":3}}
        < {"id":9,"method":"ping"}
        > {"id":9,"result":{}}"#;

    #[test]
    fn what_is_not_wanted_is_left_out_but_for_the_handshake() {
        check(LEGACY, Handshake::AsNeeded, "", &[0, 2, 3, 4, 5], &[]);
        check(LEGACY, Handshake::AsNeeded, "tools/call", &[0, 2, 4, 5], &[3]);
        check(LEGACY, Handshake::AsNeeded, "tools/list", &[0, 2, 3], &[4]);
        check(LEGACY, Handshake::Verbatim, "tools/list", &[3], &[0, 4]);
    }

    #[test]
    fn rounds_and_batches_stay_together() {
        let rounds = r#"> {"id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
            < {"id":1,"result":{"resultType":"input_required","requestState":"s"}}
            > {"id":2,"method":"tools/call","params":{"name":"t","requestState":"s"}}"#;
        let transcript = transcript(rounds);
        let script = Script::of(&transcript, Handshake::AsNeeded, |at| at == 0);
        assert_eq!((script.turns.len(), script.needs_opening), (2, false));
        check(r#"> [{"id":1,"method":"a"},{"id":2,"method":"b"}]"#, Handshake::Verbatim, "a", &[0], &[]);
        check(r#"> [{"id":1,"method":"a"},{"id":2,"method":"b"}]"#, Handshake::Verbatim, "b", &[], &[0, 1]);
    }

    #[test]
    fn a_conversation_that_began_before_the_recording_needs_an_opening() {
        let needs = |text: &str, handshake| Script::of(&transcript(text), handshake, |_| true).needs_opening;
        assert!(needs(r#"> {"id":7,"method":"tools/list"}"#, Handshake::AsNeeded));
        assert!(!needs(r#"> {"id":7,"method":"tools/list"}"#, Handshake::Verbatim));
        assert!(!needs(LEGACY, Handshake::AsNeeded) && !needs("", Handshake::AsNeeded));
    }
}
