//! Calls of two recordings that are the same call, and where they and their answers differ.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use super::handles;
use crate::compare::{Differences, Path, Step, compare_messages};
use crate::transcript::{Line, META, params_key};

/// Handles are new each time; calls that differ in nothing else are the same.
const WITHOUT: [&str; 4] = [META, "cursor", "requestState", "taskId"];

/// What is called, and with what.
pub fn call_key(line: &Line) -> (String, Vec<u8>) {
    (line.call(), params_key(&line.message, &WITHOUT))
}

/// Pairs calls with the same key in their order: for each of `one` the place of its twin in `other`.
pub fn twins<K: Hash + Eq>(one: &[&Line], other: &[&Line], key: impl Fn(&Line) -> K) -> Vec<Option<usize>> {
    let mut places: HashMap<K, VecDeque<usize>> = HashMap::new();
    for (at, line) in other.iter().enumerate() {
        places.entry(key(line)).or_default().push_back(at);
    }
    one.iter().map(|line| places.get_mut(&key(line)).and_then(VecDeque::pop_front)).collect()
}

/// Where two requests ask for something else.
pub fn compare_calls(recorded: &[u8], now: &[u8]) -> Differences {
    compare_messages(recorded, now, is_no_part_of_a_call)
}

fn is_no_part_of_a_call(path: &Path) -> bool {
    matches!(path.steps(), [Step::Member(params), Step::Member(name), ..]
        if params == "params" && WITHOUT.contains(&name.as_str()))
}

/// Where two answers say something else. `is_ignored` is asked for the path of each difference.
pub fn compare_answers(recorded: &[u8], now: &[u8], is_ignored: impl Fn(&Path) -> bool) -> Differences {
    let mut found = compare_messages(recorded, now, is_ignored);
    handles::forgive(&mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Transcript;
    use crate::transcript::tests::transcript;

    fn calls(transcript: &Transcript) -> Vec<&Line> {
        transcript.calls().map(|(_, line)| line).collect()
    }

    #[test]
    fn equal_calls_meet_in_their_order() {
        let one = transcript(
            r#"> {"id":1,"method":"tools/call","params":{"name":"now","_meta":{"progressToken":1}}}
               > {"id":2,"method":"tools/call","params":{"name":"echo","arguments":{"x":1}}}
               > {"id":3,"method":"tools/call","params":{"name":"now"}}"#,
        );
        let other = transcript(
            r#"> {"id":7,"method":"tools/call","params":{"name":"echo","arguments":{"x":2}}}
               > {"id":8,"method":"tools/call","params":{"name":"now"}}"#,
        );
        let (one, other) = (calls(&one), calls(&other));
        assert_eq!(twins(&one, &other, call_key), [Some(1), None, None]);
        assert_eq!(twins(&one, &other, Line::call), [Some(1), Some(0), None]);
    }

    #[test]
    fn a_call_differs_by_what_it_asks_for() {
        let check = |one: &str, other: &str, expected: &[&str]| {
            let found = compare_calls(one.as_bytes(), other.as_bytes());
            let paths: Vec<String> = found.kept.iter().map(|difference| difference.path.to_string()).collect();
            assert_eq!(paths, expected);
        };
        let one = r#"{"id":1,"params":{"cursor":"a","arguments":{"cursor":"a","x":1},"_meta":{"a":1}}}"#;
        check(one, r#"{"id":2,"params":{"cursor":"b","arguments":{"cursor":"a","x":1}}}"#, &[]);
        check(
            one,
            r#"{"id":2,"params":{"arguments":{"cursor":"b","x":2}}}"#,
            &["$.params.arguments.cursor", "$.params.arguments.x"],
        );
    }
}
