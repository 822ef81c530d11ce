//! What may differ, learned from two recordings of the same calls.

use std::collections::{HashMap, VecDeque};

use super::handles;
use crate::compare::{Volatile, compare_messages};
use crate::transcript::{META, Transcript, params_key};

/// Handles are new each time; calls that differ in nothing else are the same.
const WITHOUT: [&str; 4] = [META, "cursor", "requestState", "taskId"];

/// Pairs equal calls in their order and remembers where their answers differ. Returns how many pairs
/// there were.
pub fn learn(volatile: &mut Volatile, one: &Transcript, other: &Transcript) -> usize {
    let mut calls: HashMap<(String, Vec<u8>), VecDeque<usize>> = HashMap::new();
    for (at, line) in other.calls() {
        calls.entry((line.call(), params_key(&line.message, &WITHOUT))).or_default().push_back(at);
    }
    let mut pairs = 0;
    for (at, line) in one.calls() {
        let call = line.call();
        let key = (call, params_key(&line.message, &WITHOUT));
        let twin = calls.get_mut(&key).and_then(VecDeque::pop_front);
        let (Some(recorded), Some(again)) = (one.answer(at), twin.and_then(|twin| other.answer(twin))) else {
            continue;
        };
        let mut found = compare_messages(recorded.message.bytes(), again.message.bytes(), |_| false);
        handles::forgive(&mut found);
        found.kept.iter().for_each(|difference| volatile.learn(&key.0, &difference.path));
        pairs += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::tests::transcript;

    #[test]
    fn what_differs_between_two_recordings_may_differ_again() {
        let one = transcript(
            r#"> {"id":1,"method":"tools/call","params":{"name":"now","_meta":{"progressToken":1}}}
               < {"id":1,"result":{"content":[{"text":"12:00"}],"nextCursor":"a"}}
               > {"id":2,"method":"tools/call","params":{"name":"echo","arguments":{"x":1}}}
               < {"id":2,"result":{"content":[{"text":"1"}]}}"#,
        );
        let other = transcript(
            r#"> {"id":7,"method":"tools/call","params":{"name":"echo","arguments":{"x":2}}}
               < {"id":7,"result":{"content":[{"text":"2"}]}}
               > {"id":8,"method":"tools/call","params":{"name":"now"}}
               < {"id":8,"result":{"content":[{"text":"12:01"}],"nextCursor":"b"}}"#,
        );
        let mut volatile = Volatile::default();
        assert_eq!(learn(&mut volatile, &one, &other), 1);
        let learned: Vec<_> = volatile.learned().into_iter().map(|(call, p)| format!("{call} {p}")).collect();
        assert_eq!(learned, ["tools/call [now] $.result.content[*].text"]);
    }
}
