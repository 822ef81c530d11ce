//! Values that a server hands out for the client to hand back, and that mean nothing to anybody else:
//! cursors, the state of a call that waits for input, task ids. A server makes new ones each time, so
//! a replay hands back the new one where the recording has the old one.

use std::collections::HashMap;

use bytes::Bytes;
use mcp_wire::scan;
use mcp_wire::splice::splice;

use crate::compare::{Change, Differences, Path, Step};

const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Cursor,
    State,
    Task,
}

/// Where handles are given out, in an answer.
const GIVEN: [(Kind, &[&str]); 5] = [
    (Kind::Cursor, &["result", "nextCursor"]),
    (Kind::State, &["result", "requestState"]),
    (Kind::Task, &["result", "taskId"]),
    (Kind::Task, &["result", "task", "taskId"]),
    (Kind::Task, &["result", "_meta", RELATED_TASK, "taskId"]),
];

/// Where they are handed back, in a request.
const HANDED_BACK: [(Kind, &[&str]); 4] = [
    (Kind::Cursor, &["params", "cursor"]),
    (Kind::State, &["params", "requestState"]),
    (Kind::Task, &["params", "taskId"]),
    (Kind::Task, &["params", "_meta", RELATED_TASK, "taskId"]),
];

/// Handles by what they were in the recording.
#[derive(Debug, Default)]
pub(super) struct Handles {
    new: HashMap<(Kind, String), Bytes>,
}

impl Handles {
    /// Takes note of what an answer gives out in place of what the recorded one did.
    pub(super) fn learn(&mut self, recorded: &[u8], now: &Bytes) {
        for (kind, place) in GIVEN {
            if let (Some(old), Some(new)) = (text_at(recorded, place), member(now, place)) {
                self.new.insert((kind, old), Bytes::copy_from_slice(new));
            }
        }
    }

    /// `request` with the new handles in place of the recorded ones.
    pub(super) fn carried_over(&self, request: Bytes) -> Bytes {
        if self.new.is_empty() {
            return request;
        }
        HANDED_BACK.into_iter().fold(request, |request, (kind, place)| {
            let new = text_at(&request, place).and_then(|old| self.new.get(&(kind, old)));
            match (new, scan::member_at(&request, place.iter().copied())) {
                (Some(new), Some(span)) => splice(&request, span, new),
                _ => request,
            }
        })
    }
}

fn member<'a>(message: &'a [u8], place: &[&str]) -> Option<&'a [u8]> {
    scan::member_at(message, place.iter().copied()).map(|span| &message[span.range()])
}

fn text_at(message: &[u8], place: &[&str]) -> Option<String> {
    scan::decode_string(member(message, place)?).map(|text| text.into_owned())
}

/// Takes out what differs only because a handle is new. That there is one, and that it is a text, still
/// counts.
pub(super) fn forgive(differences: &mut Differences) {
    differences.kept.retain(|difference| match &difference.change {
        Change::Changed { recorded, now } => {
            !(is_handle(&difference.path) && recorded.text.starts_with('"') && now.text.starts_with('"'))
        }
        _ => true,
    });
}

fn is_handle(path: &Path) -> bool {
    let is_at = |place: &[&str]| {
        place.len() == path.steps().len()
            && place.iter().zip(path.steps()).all(|(name, step)| matches!(step, Step::Member(member) if member == name))
    };
    GIVEN.iter().any(|(_, place)| is_at(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare_messages;

    #[test]
    fn new_handles_take_the_place_of_old_ones() {
        let mut handles = Handles::default();
        handles.learn(br#"{"id":1,"result":{"nextCursor":"old"}}"#, &r#"{"result":{"nextCursor":"n\"w"}}"#.into());
        handles.learn(br#"{"result":{"task":{"taskId":"t1"}}}"#, &r#"{"result":{"task":{"taskId":"t2"}}}"#.into());
        handles.learn(br#"{"result":{"nextCursor":"gone"}}"#, &r#"{"result":{}}"#.into());
        let check = |request: &'static str, expected: &str| {
            assert_eq!(handles.carried_over(request.into()), expected.as_bytes());
        };
        check(r#"{"params":{ "cursor" : "old" }}"#, r#"{"params":{ "cursor" : "n\"w" }}"#);
        check(r#"{"params":{"cursor":"gone"}}"#, r#"{"params":{"cursor":"gone"}}"#);
        check(r#"{"params":{"taskId":"t1"}}"#, r#"{"params":{"taskId":"t2"}}"#);
        check(r#"{"params":{"taskId":"old"}}"#, r#"{"params":{"taskId":"old"}}"#);
        check(
            r#"{"params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}}"#,
            r#"{"params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t2"}}}}"#,
        );
        check("not json", "not json");
    }

    #[test]
    fn a_new_handle_is_no_difference_but_a_missing_one_is() {
        let check = |recorded: &str, now: &str, count: u64| {
            let mut found = compare_messages(recorded.as_bytes(), now.as_bytes(), |_| false);
            forgive(&mut found);
            assert_eq!(found.count(), count, "{found:?}");
        };
        check(r#"{"id":1,"result":{"nextCursor":"a"}}"#, r#"{"id":2,"result":{"nextCursor":"b"}}"#, 0);
        check(r#"{"result":{"nextCursor":"a"}}"#, r#"{"result":{}}"#, 1);
        check(r#"{"result":{"nextCursor":"a"}}"#, r#"{"result":{"nextCursor":1}}"#, 1);
        check(r#"{"result":{"content":{"taskId":"a"}}}"#, r#"{"result":{"content":{"taskId":"b"}}}"#, 1);
    }
}
