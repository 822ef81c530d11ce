//! Replaces one span of a message and leaves every other byte alone: the only way a message is
//! changed without a person writing it anew.

use bytes::Bytes;

use crate::scan::Span;

/// `bytes` with `replacement` in place of `span`.
pub fn splice(bytes: &[u8], span: Span, replacement: &[u8]) -> Bytes {
    let range = span.range();
    [&bytes[..range.start], replacement, &bytes[range.end..]].concat().into()
}

#[cfg(test)]
mod tests {
    use crate::Message;
    use crate::splice::splice;

    #[test]
    fn only_the_span_changes() {
        let text = b"{ \"result\" : 1e400 ,\"id\":\"x\" }";
        let message = Message::new(text.as_slice().into());
        let id = message.peek().id.expect("it has an id");
        assert_eq!(splice(text, id, b"17"), b"{ \"result\" : 1e400 ,\"id\":17 }".as_slice());
    }
}
