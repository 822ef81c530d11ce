//! What a server asks its client, answered as the client answered in the recording.

use bytes::Bytes;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::splice::with_id;
use mcp_wire::{Message, scan};

use crate::compare::value::canonical;
use crate::envelope::Side;
use crate::transcript::{META, Transcript, params_key};

#[derive(Default)]
pub(super) struct Questions {
    /// Asked with a request of the server's own.
    requests: Vec<Question>,
    /// Asked in a result that wants the call repeated.
    rounds: Vec<Question>,
}

struct Question {
    method: String,
    params: Vec<u8>,
    /// The client's answer: a whole message, or the value it put into the repeated call.
    answer: Option<Bytes>,
    used: bool,
}

/// What to do about a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Response {
    Answer(Bytes),
    /// The client never answered it, so nobody does.
    Silence,
    /// The recording has nothing like it.
    Unknown(Bytes),
}

impl Questions {
    pub(super) fn of(transcript: &Transcript) -> Self {
        let mut questions = Self::default();
        for (at, line) in transcript.lines().iter().enumerate() {
            if line.from == Side::Server && line.is_request() {
                let answer = transcript.answer(at).map(|answer| answer.message.bytes().clone());
                let params = params_key(&line.message, &[META]);
                questions.requests.push(Question { method: line.method().into(), params, answer, used: false });
            } else if let Some(asked) = line.retry_of.and_then(|first| transcript.answer(first)) {
                questions.add_round(asked.message.bytes(), line.message.bytes());
            }
        }
        questions
    }

    fn add_round(&mut self, asked: &Bytes, answered: &Bytes) {
        for (key, question) in input_requests(asked) {
            let answer = scan::member_at(answered, ["params", "inputResponses", &key]);
            self.rounds.push(Question {
                answer: answer.map(|span| answered.slice(span.range())),
                method: method_of(question),
                params: params_of(question),
                used: false,
            });
        }
    }

    /// Answers a request of the server's.
    pub(super) fn respond(&mut self, request: &Message) -> Response {
        let Some(id) = request.id() else { return Response::Silence };
        let method = request.method().unwrap_or_default();
        match pick(&mut self.requests, &method, &params_key(request, &[META])) {
            Some(Question { answer: Some(answer), .. }) => Response::Answer(with_id(answer, &id)),
            Some(Question { answer: None, .. }) => Response::Silence,
            None if method == "ping" => Response::Answer(reply::empty_result(&id)),
            None => {
                let what = format!("{method} was never asked of the client");
                Response::Unknown(reply::error(&id, &Refusal::NotInRecording { what }))
            }
        }
    }

    /// The answers to everything that a result asks for, as an object for the repeated call. `None` if
    /// the recording lacks one of them.
    pub(super) fn respond_in_round(&mut self, result: &[u8]) -> Option<Vec<u8>> {
        let mut responses = Vec::from(b"{");
        for (at, (key, question)) in input_requests(result).into_iter().enumerate() {
            let known = pick(&mut self.rounds, &method_of(question), &params_of(question))?;
            let answer = known.answer.as_ref()?;
            if at > 0 {
                responses.push(b',');
            }
            responses.extend_from_slice(mcp_wire::Id::Text(key.into()).to_string().as_bytes());
            responses.push(b':');
            responses.extend_from_slice(answer);
        }
        responses.push(b'}');
        Some(responses)
    }
}

/// Finds the recorded question that is meant: an equal one in its turn, else one of the same method.
fn pick<'q>(known: &'q mut [Question], method: &str, params: &[u8]) -> Option<&'q Question> {
    let is_equal = |question: &Question| question.method == method && question.params == params;
    let found = known
        .iter()
        .position(|question| !question.used && is_equal(question))
        .or_else(|| known.iter().rposition(is_equal))
        .or_else(|| known.iter().position(|question| !question.used && question.method == method))
        .or_else(|| known.iter().rposition(|question| question.method == method))?;
    known[found].used = true;
    Some(&known[found])
}

/// What a result asks for: the keys it wants the answers under, and the questions.
pub(super) fn input_requests(answer: &[u8]) -> Vec<(String, &[u8])> {
    let Some(requests) = scan::member_at(answer, ["result", "inputRequests"]) else { return Vec::new() };
    let requests = &answer[requests.range()];
    scan::object_members(requests).map(|(key, span)| (key.into_owned(), &requests[span.range()])).collect()
}

/// Whether an answer wants the call repeated.
pub(super) fn wants_input(answer: &[u8]) -> bool {
    let result_type = scan::member_at(answer, ["result", "resultType"]);
    result_type.is_some_and(|span| &answer[span.range()] == b"\"input_required\"")
}

fn method_of(question: &[u8]) -> String {
    let method = scan::member_at(question, ["method"]).and_then(|span| scan::decode_string(&question[span.range()]));
    method.unwrap_or_default().into_owned()
}

fn params_of(question: &[u8]) -> Vec<u8> {
    let params = scan::member_at(question, ["params"]);
    canonical(params.map_or(b"{}", |span| &question[span.range()]), &[META])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::tests::transcript;

    fn message(text: &str) -> Message {
        Message::new(text.to_owned().into())
    }

    fn answer(text: &str) -> Response {
        Response::Answer(text.to_owned().into())
    }

    #[test]
    fn questions_are_answered_as_they_were() {
        let mut questions = Questions::of(&transcript(
            r#"< {"id":1,"method":"elicitation/create","params":{"message":"a?"}}
               > {"result":{"a":1},"id":1}
               < {"id":2,"method":"elicitation/create","params":{"message":"b?"}}
               > {"id":2,"result":{"b":1}}
               < {"id":3,"method":"elicitation/create","params":{"message":"a?"}}
               > {"id":3,"error":{"code":-1}}
               < {"id":4,"method":"roots/list"}"#,
        ));
        let mut ask = |text: &str| questions.respond(&message(text));
        assert_eq!(
            ask(r#"{"id":"x","method":"elicitation/create","params":{"message":"a?"}}"#),
            answer(r#"{"result":{"a":1},"id":"x"}"#)
        );
        assert_eq!(
            ask(r#"{"id":8,"method":"elicitation/create","params":{"message":"a?"}}"#),
            answer(r#"{"id":8,"error":{"code":-1}}"#),
            "the second time as it was then"
        );
        assert_eq!(
            ask(r#"{"id":9,"method":"elicitation/create","params":{"message":"new?"}}"#),
            answer(r#"{"id":9,"result":{"b":1}}"#),
            "another question of the kind gets the answer that nobody has had yet"
        );
        assert_eq!(ask(r#"{"id":9,"method":"roots/list"}"#), Response::Silence);
        assert_eq!(ask(r#"{"id":9,"method":"ping"}"#), answer(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#));
        assert!(matches!(ask(r#"{"id":9,"method":"sampling/createMessage"}"#), Response::Unknown(_)));
    }

    #[test]
    fn rounds_are_answered_under_the_keys_they_ask_for() {
        let mut questions = Questions::of(&transcript(
            r#"> {"id":1,"method":"tools/call","params":{"name":"t"}}
               < {"id":1,"result":{"resultType":"input_required","inputRequests":{"k1":{"method":"roots/list"},"k2":{"method":"elicitation/create","params":{"m":1}}}}}
               > {"id":2,"method":"tools/call","params":{"name":"t","inputResponses":{"k1":{"roots":[]},"k2":{"action":"accept"}}}}"#,
        ));
        let now = br#"{"id":1,"result":{"resultType":"input_required","inputRequests":{"x\"2":{"method":"elicitation/create","params":{"m":1}},"x1":{"method":"roots/list","params":{}}}}}"#;
        assert_eq!(questions.respond_in_round(now).unwrap(), br#"{"x\"2":{"action":"accept"},"x1":{"roots":[]}}"#);
        let unknown = br#"{"result":{"inputRequests":{"x":{"method":"sampling/createMessage"}}}}"#;
        assert_eq!(questions.respond_in_round(unknown), None);
    }
}
