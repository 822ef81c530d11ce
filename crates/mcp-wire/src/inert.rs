//! JSON that can be looked at: the same values, with nothing in the text that a terminal obeys or that
//! an eye does not see, and no line break. Only the spelling changes.

use std::borrow::Cow;

use crate::visible::is_deceptive;

/// Spells deceptive characters as escapes, and line breaks between values as blanks.
///
/// In JSON such characters can only stand inside strings, where an escape means the same.
pub fn inert(json: &str) -> Cow<'_, str> {
    escaped(json, |c| matches!(c, '\u{7f}') || is_deceptive(c))
}

/// The same for JSON that stands in a page: nothing in it ends the element or begins another.
pub fn inert_in_page(json: &str) -> Cow<'_, str> {
    escaped(json, |c| matches!(c, '\u{7f}' | '<' | '>' | '&') || is_deceptive(c))
}

fn escaped(json: &str, must_be: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_break = |c| matches!(c, '\n' | '\r');
    let Some(first) = json.find(|c| is_break(c) || must_be(c)) else { return Cow::Borrowed(json) };
    let mut text = String::with_capacity(json.len() + json.len() / 8);
    text.push_str(&json[..first]);
    for c in json[first..].chars() {
        if is_break(c) {
            text.push(' ');
        } else if must_be(c) {
            push_escape(&mut text, c);
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

/// Adds a character as its escape, in two parts if it is of one of the higher planes.
pub fn push_escape(json: &mut String, c: char) {
    c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| json.push_str(&format!("\\u{unit:04x}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_stay_and_the_spelling_is_harmless() {
        let json = "{\"a\":\"\u{202e}x\u{9b}2J\u{7f}\u{e0041} é\",\r\n\"b\":\"</script>&amp;\"}";
        let spelled = inert(json);
        assert_eq!(spelled, "{\"a\":\"\\u202ex\\u009b2J\\u007f\\udb40\\udc41 é\",  \"b\":\"</script>&amp;\"}");
        let in_page = inert_in_page(json);
        assert!(!in_page.contains(['<', '>', '&']));
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("it stays JSON");
        assert_eq!(value(&spelled), value(json));
        assert_eq!(value(&in_page), value(json));
        assert!(matches!(inert("{\"a\":[1e400]}"), Cow::Borrowed(_)));
    }
}
