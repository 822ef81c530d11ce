//! Replaces spans of a message and leaves every other byte alone: the only way a message is
//! changed without a person writing it anew.

use bytes::Bytes;

use crate::id::Id;
use crate::message::Message;
use crate::scan::{self, Span};

/// `bytes` with `replacement` in place of `span`.
pub fn splice(bytes: &[u8], span: Span, replacement: &[u8]) -> Bytes {
    let range = span.range();
    [&bytes[..range.start], replacement, &bytes[range.end..]].concat().into()
}

/// `bytes` with each replacement in place of its span, in one copy. The edits may come in any order, and are
/// sorted; no two of them may overlap.
pub fn splice_all(bytes: &[u8], edits: &mut [(Span, Bytes)]) -> Bytes {
    edits.sort_by_key(|(span, _)| span.range().start);
    let added: usize = edits.iter().map(|(_, replacement)| replacement.len()).sum();
    let mut whole = Vec::with_capacity(bytes.len() + added);
    let mut taken_to = 0;
    for (span, replacement) in edits.iter() {
        let range = span.range();
        debug_assert!(taken_to <= range.start, "edits overlap at {}", range.start);
        // Of two that overlap the first counts: whatever comes of it, no byte is said twice.
        if range.start < taken_to {
            continue;
        }
        whole.extend_from_slice(&bytes[taken_to..range.start]);
        whole.extend_from_slice(replacement);
        taken_to = range.end;
    }
    whole.extend_from_slice(&bytes[taken_to..]);
    whole.into()
}

/// `bytes` without the member at the end of `path`, and without the comma that parted it from another.
/// Where there is no such member nothing changes.
pub fn without_member(bytes: &Bytes, path: &[&str]) -> Bytes {
    let Some((name, to)) = path.split_last() else { return bytes.clone() };
    let object = match to {
        [] => Some(Span::new(0..bytes.len())),
        to => scan::member_at(bytes, to.iter().copied()),
    };
    let Some(object) = object else { return bytes.clone() };
    let members: Vec<_> = scan::whole_members(&bytes[object.range()]).collect();
    let Some(at) = members.iter().rposition(|(key, ..)| key.as_deref() == Some(*name)) else { return bytes.clone() };
    let whole = |at: usize| members[at].1.range();
    let (start, end) = match (at.checked_sub(1), members.get(at + 1)) {
        (_, Some((_, next, _))) => (whole(at).start, next.range().start),
        (Some(before), None) => (whole(before).end, whole(at).end),
        (None, None) => (whole(at).start, whole(at).end),
    };
    splice(bytes, Span::new(start..end).shifted(object.range().start), b"")
}

/// The same message under another id. One that has none stays as it is.
pub fn with_id(message: &Bytes, id: &Id) -> Bytes {
    match Message::new(message.clone()).peek().id {
        Some(span) => splice(message, span, id.to_string().as_bytes()),
        None => message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_span_changes() {
        let text = b"{ \"result\" : 1e400 ,\"id\":\"x\" }";
        let message = Message::new(text.as_slice().into());
        let id = message.peek().id.expect("it has an id");
        assert_eq!(splice(text, id, b"17"), b"{ \"result\" : 1e400 ,\"id\":17 }".as_slice());
    }

    #[test]
    fn several_spans_change_in_any_order() {
        #[track_caller]
        fn check(edits: &[(std::ops::Range<usize>, &'static str)], expected: &str) {
            let edit =
                |(range, text): &(std::ops::Range<usize>, &'static str)| (Span::new(range.clone()), (*text).into());
            let mut edits: Vec<_> = edits.iter().map(edit).collect();
            assert_eq!(splice_all(b"0123456789", &mut edits), expected);
        }
        check(&[], "0123456789");
        check(&[(0..1, "abc")], "abc123456789");
        check(&[(8..10, ""), (0..1, "a"), (1..3, "bcd")], "abcd34567");
        check(&[(4..6, "x"), (2..4, "y")], "01yx6789");
        check(&[(0..10, "")], "");
    }

    #[test]
    fn a_member_leaves_with_its_comma() {
        #[track_caller]
        fn check(text: &'static str, path: &[&str], expected: &str) {
            assert_eq!(without_member(&text.into(), path), expected.as_bytes());
        }
        check(r#"{ "a" : 1 , "b":2, "c":3 }"#, &["a"], r#"{ "b":2, "c":3 }"#);
        check(r#"{ "a" : 1 , "b":2, "c":3 }"#, &["b"], r#"{ "a" : 1 , "c":3 }"#);
        check(r#"{ "a" : 1 , "b":2, "c":3 }"#, &["c"], r#"{ "a" : 1 , "b":2 }"#);
        check(r#"{"p": { "a" : [1,{}] } }"#, &["p", "a"], r#"{"p": {  } }"#);
        check(r#"{"p":{"\u0061":1,"b":[1e400]}}"#, &["p", "a"], r#"{"p":{"b":[1e400]}}"#);
        check(r#"{"p":{"a":1}}"#, &["p", "x"], r#"{"p":{"a":1}}"#);
        check(r#"{"p":[1]}"#, &["p", "x"], r#"{"p":[1]}"#);
    }

    #[test]
    fn another_id_changes_nothing_else() {
        let request = Bytes::from_static(br#"{ "id" : 5, "method":"a" }"#);
        assert_eq!(with_id(&request, &Id::Text("r-1".into())), br#"{ "id" : "r-1", "method":"a" }"#[..]);
        assert_eq!(with_id(&"{}".into(), &Id::Integer(1)), b"{}"[..]);
    }
}
