//! What may differ, learned from two recordings of the same calls.

use super::twins::{call_key, compare_answers, twins};
use crate::compare::Volatile;
use crate::transcript::{Line, Transcript};

/// Pairs equal calls in their order and remembers where their answers differ. Returns how many pairs
/// there were.
pub fn learn(volatile: &mut Volatile, one: &Transcript, other: &Transcript) -> usize {
    let (ones, others) = (lines(one), lines(other));
    let mut pairs = 0;
    for (line, twin) in ones.iter().zip(twins(&ones, &others, call_key)) {
        let again = twin.and_then(|twin| other.answer_to(others[twin]));
        let (Some(recorded), Some(again)) = (one.answer_to(line), again) else {
            continue;
        };
        let found = compare_answers(recorded.message.bytes(), again.message.bytes(), |_| false);
        found.kept.iter().for_each(|difference| volatile.learn(&line.call(), &difference.path));
        pairs += 1;
    }
    pairs
}

fn lines(transcript: &Transcript) -> Vec<&Line> {
    transcript.calls().map(|(_, line)| line).collect()
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
