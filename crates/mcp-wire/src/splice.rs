//! Replaces one span of a message and leaves every other byte alone: the only way a message is
//! changed without a person writing it anew.

use bytes::Bytes;

use crate::id::Id;
use crate::message::Message;
use crate::scan::Span;

/// `bytes` with `replacement` in place of `span`.
pub fn splice(bytes: &[u8], span: Span, replacement: &[u8]) -> Bytes {
    let range = span.range();
    [&bytes[..range.start], replacement, &bytes[range.end..]].concat().into()
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
    fn another_id_changes_nothing_else() {
        let request = Bytes::from_static(br#"{ "id" : 5, "method":"a" }"#);
        assert_eq!(with_id(&request, &Id::Text("r-1".into())), br#"{ "id" : "r-1", "method":"a" }"#[..]);
        assert_eq!(with_id(&"{}".into(), &Id::Integer(1)), b"{}"[..]);
    }
}
