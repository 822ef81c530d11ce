use mcp_store::{Recorded, Story};

use super::*;

/// A conversation written down: `> message` from the client, `< message` from the server. A number before
/// the sign is the HTTP exchange.
pub fn transcript(text: &str) -> Transcript {
    let (mut story, mut transcript) = (Story::default(), Transcript::default());
    for (at, line) in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let (exchange, line) = line.split_at(line.find(['>', '<']).expect("a direction"));
        let direction = if line.starts_with('>') { Direction::ClientToServer } else { Direction::ServerToClient };
        let (from_proxy, raw) = match line[1..].trim().strip_prefix("proxy ") {
            Some(raw) => (true, raw),
            None => (false, line[1..].trim()),
        };
        let exchange = exchange.trim().parse().ok();
        transcript.add(&story.tell(Recorded { direction, exchange, from_proxy, ..recorded(at, raw) }));
    }
    transcript
}

/// A message of a client's, a millisecond after the one before.
pub fn recorded(at: usize, raw: &str) -> Recorded {
    let time_ns = at as u64 * 1_000_000;
    let bare = Recorded::bare(at as u64 + 1, Direction::ClientToServer, raw.to_owned());
    Recorded { id: at.to_string(), time_ns, ..bare }
}

/// What was held counts as what went on; what did not go on is no part of the conversation, nor is the
/// answer that somebody gave in its place.
#[test]
fn what_never_reached_the_other_side_is_left_out() {
    use mcp_store::OutcomeKind::{Answered, Discarded, Dropped, Forwarded, Modified};
    let (up, down) = (Direction::ClientToServer, Direction::ServerToClient);
    let mut story = Story::default();
    let mut transcript = Transcript::default();
    let mut add = |at: usize, direction, outcome, raw: &str| {
        let held = at != 5;
        transcript.add(&story.tell(Recorded { direction, held, outcome, ..recorded(at, raw) }));
    };
    add(0, up, Some(Forwarded), r#"{"id":1,"method":"a"}"#);
    add(1, up, Some(Dropped), r#"{"id":2,"method":"b"}"#);
    add(2, up, Some(Answered), r#"{"id":3,"method":"c"}"#);
    add(3, down, Some(Discarded), r#"{"method":"d"}"#);
    add(4, up, Some(Modified), r#"{"id":4,"method":"e"}"#);
    add(5, down, None, r#"{"id":3,"result":{}}"#);
    add(6, up, None, r#"{"id":5,"method":"still held"}"#);
    let methods: Vec<_> = transcript.lines().iter().map(|line| line.method().into_owned()).collect();
    assert_eq!(methods, ["a", "e"]);
}

#[track_caller]
fn check_pairs(text: &str, expected: &[Option<usize>]) {
    let transcript = transcript(text);
    assert_eq!(transcript.lines().iter().map(|line| line.pair).collect::<Vec<_>>(), expected);
}

#[test]
fn answers_find_their_requests() {
    check_pairs(
        r#"> {"id":1,"method":"a"}
           > {"id":"1","method":"b"}
           < {"id":1,"method":"roots/list"}
           < {"id":"1","result":{}}
           > {"id":1,"result":{}}
           < {"id":1,"result":{}}
           < {"id":1,"result":{}}"#,
        &[Some(5), Some(3), Some(4), Some(1), Some(2), Some(0), None],
    );
}

#[test]
fn items_of_a_batch_count_one_by_one() {
    check_pairs(
        r#"> [{"id":1,"method":"a"},{"method":"n"},{"id":2,"method":"b"}]
           < [{"id":2,"result":{}},{"id":1,"result":{}}]"#,
        &[Some(4), None, Some(3), Some(2), Some(0)],
    );
}

#[test]
fn what_the_proxy_sent_for_the_client_is_left_out() {
    let transcript = transcript(
        r#"> {"id":1,"method":"a"}
           > proxy {"id":0,"method":"initialize"}
           > proxy {"method":"notifications/cancelled","params":{"requestId":1}}
           < proxy {"id":1,"error":{}}"#,
    );
    assert_eq!(transcript.lines().len(), 3);
    assert!(transcript.line(0).cancelled && transcript.line(2).from_proxy);
}

#[test]
fn a_retry_names_the_call_it_repeats() {
    let transcript = transcript(
        r#"> {"id":1,"method":"tools/call","params":{"name":"t"}}
           < {"id":1,"result":{"resultType":"input_required","requestState":"s"}}
           > {"id":2,"method":"tools/call","params":{"name":"t","requestState":"s"}}
           < {"id":2,"result":{"resultType":"input_required","requestState":"t"}}
           > {"id":3,"method":"tools/call","params":{"name":"t","requestState":"t"}}
           < {"id":3,"result":{"resultType":"complete"}}"#,
    );
    let retries: Vec<_> = transcript.calls().map(|(_, line)| line.retry_of).collect();
    assert_eq!(retries, [None, Some(0), Some(2)]);
}

#[test]
fn what_a_server_says_by_itself_has_a_cause() {
    let transcript = transcript(
        r#"< {"method":"early"}
           > {"id":1,"method":"a","params":{"_meta":{"progressToken":7}}}
           2 > {"id":2,"method":"b"}
           3 > {"id":3,"method":"subscriptions/listen"}
           < {"method":"notifications/progress","params":{"progressToken":7}}
           2 < {"method":"log"}
           3 < {"method":"updated"}
           < {"id":1,"method":"roots/list"}
           > {"id":1,"result":{}}
           < {"method":"log"}
           > {"method":"notifications/initialized"}
           < {"method":"log"}"#,
    );
    let causes: Vec<_> = transcript.lines().iter().filter(|line| line.from == Side::Server).map(|l| l.cause).collect();
    assert_eq!(causes, [None, Some(1), Some(2), Some(3), Some(3), Some(3), Some(10)]);
}

#[test]
fn parameters_are_the_same_however_they_are_spelled() {
    let key = |text: &str| params_key(&Message::new(text.to_owned().into()), &[META]);
    let one = key(r#"{"id":1,"method":"a","params":{"x":1,"y":"é","_meta":{"progressToken":1}}}"#);
    assert_eq!(one, key(r#"{"params":{ "y":"\u00e9", "x":1.0 },"id":2,"method":"a"}"#));
    assert_eq!(key(r#"{"id":1,"method":"a"}"#), key(r#"{"id":1,"method":"a","params":{"_meta":{}}}"#));
    assert_ne!(one, key(r#"{"id":1,"method":"a","params":{"x":2,"y":"é"}}"#));
}
