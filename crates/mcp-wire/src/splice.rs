//! Replaces spans of a message and leaves every other byte alone: the only way a message is
//! changed without a person writing it anew.

use std::ops::Range;

use bytes::Bytes;

use crate::id::Id;
use crate::message::Message;
use crate::scan::{self, Glance, Span};

/// `bytes` with `replacement` in place of `span`.
pub fn splice(bytes: &[u8], span: Span, replacement: &[u8]) -> Bytes {
    let range = span.range();
    [&bytes[..range.start], replacement, &bytes[range.end..]].concat().into()
}

/// `bytes` with each replacement in place of its span, in one copy. The edits may come in any order, and are
/// sorted; no two of them may overlap.
pub fn splice_all(bytes: &[u8], edits: &mut [(Span, impl AsRef<[u8]>)]) -> Bytes {
    edits.sort_by_key(|(span, _)| span.range().start);
    let added: usize = edits.iter().map(|(_, replacement)| replacement.as_ref().len()).sum();
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
        whole.extend_from_slice(replacement.as_ref());
        taken_to = range.end;
    }
    whole.extend_from_slice(&bytes[taken_to..]);
    whole.into()
}

/// The same of a message. A value takes the place of a value, and of a method a text, so that what was known of it at a
/// glance is known of the other, and need not be looked for again.
pub fn spliced(message: &Message, edits: &mut [(Span, impl AsRef<[u8]>)]) -> Message {
    let bytes = splice_all(message.bytes(), edits);
    let Glance { kind, id, method } = *message.glance();
    let is_clean = edits.windows(2).all(|pair| pair[0].0.range().end <= pair[1].0.range().start);
    match (moved(id, edits), moved(method, edits)) {
        (Ok(id), Ok(method)) if is_clean => Message::known(bytes, Glance { kind, id, method }),
        _ => bytes.into(),
    }
}

/// What an edit changes only in part.
struct Torn;

/// Where a value stands after `edits`, each of which stands before it, behind it or in its place.
fn moved(span: Option<Span>, edits: &[(Span, impl AsRef<[u8]>)]) -> Result<Option<Span>, Torn> {
    let Some(span) = span else { return Ok(None) };
    let (mut start, mut length) = (span.range().start, span.range().len());
    for (edited, replacement) in edits {
        let (edited, replacement) = (edited.range(), replacement.as_ref());
        match () {
            () if edited == span.range() => length = replacement.len(),
            () if edited.end <= span.range().start => start = start + replacement.len() - edited.len(),
            () if edited.start >= span.range().end => {}
            () => return Err(Torn),
        }
    }
    if length == 0 { Err(Torn) } else { Ok(Some(Span::new(start..start + length))) }
}

/// Takes out the members of an object for which `is_cut` says so, given their keys and where they stand, with the commas
/// between them.
pub fn cut_members(
    bytes: &[u8],
    object: Range<usize>,
    is_cut: impl Fn(Option<&str>, &Range<usize>) -> bool,
    edits: &mut Vec<(Span, Bytes)>,
) {
    let mut cut = |range: Range<usize>| edits.push((Span::new(range), Bytes::new()));
    let (mut stays_to, mut run) = (None, None::<Range<usize>>);
    for (key, whole, _) in scan::whole_members(&bytes[object.clone()]) {
        let member = whole.shifted(object.start).range();
        if is_cut(key.as_deref(), &member) {
            run = Some(run.map_or(member.start, |run| run.start)..member.end);
            continue;
        }
        if let Some(run) = run.take() {
            cut(run.start..member.start);
        }
        stays_to = Some(member.end);
    }
    if let Some(run) = run {
        cut(stays_to.unwrap_or(run.start)..run.end);
    }
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
            let edit = |(range, text): &(std::ops::Range<usize>, &'static str)| (Span::new(range.clone()), *text);
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
    fn what_was_known_at_a_glance_still_is() {
        #[track_caller]
        fn check(text: &'static str, edits: &[(&'static str, &'static str)]) {
            let message = Message::new(text.into());
            let edit = |(old, new): &(&str, &'static str)| {
                let at = text.find(old).expect("it stands there");
                (Span::new(at..at + old.len()), *new)
            };
            let mut edits: Vec<_> = edits.iter().map(edit).collect();
            let other = spliced(&message, &mut edits);
            assert_eq!(other.bytes(), &splice_all(message.bytes(), &mut edits));
            assert_eq!(*other.glance(), scan::glance(other.bytes()), "{text} {edits:?}");
        }
        let call =
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":7}}}"#;
        check(call, &[]);
        check(call, &[("7", "1234")]);
        check(call, &[("7", "1234"), ("\"echo\"", "\"s__echo\""), ("7}}", "1234}}")]);
        check(call, &[("\"2.0\"", "\"2\""), ("7", "\"x\""), ("\"tools/call\"", "\"a\"")]);
        // Part of the method changes, and it is looked at again.
        check(call, &[("call", "list")]);
        check(r#"{"result":{"id":1},"id":1000}"#, &[("{\"id\":1}", "{}"), ("1000", "1")]);
        check(r#"{"id":5,"error":{}}"#, &[("5", "null")]);
        check(r#"{"method":"notifications/x","params":{}}"#, &[("{}", "{\"a\":1}")]);
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
