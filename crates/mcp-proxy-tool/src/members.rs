//! JSON as its writer spelled it: the members of an object in their order, each changed or taken out without a
//! touch to the others, and text put together from such parts. Digits, escapes and order stay.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_wire::scan;

#[derive(Clone)]
pub(crate) struct Members<'a>(Vec<Member<'a>>);

#[derive(Clone)]
struct Member<'a> {
    /// None if it cannot be decoded; such a member is kept, and never found.
    key: Option<Cow<'a, str>>,
    /// The key as it was spelled, up to where the value begins.
    head: Cow<'a, [u8]>,
    value: Cow<'a, [u8]>,
}

impl<'a> Members<'a> {
    /// None if it is no object. That it is JSON at all must be known.
    pub(crate) fn of(json: &'a [u8]) -> Option<Self> {
        let json = json.trim_ascii();
        if !json.starts_with(b"{") {
            return None;
        }
        let members = scan::whole_members(json).map(|(key, whole, value)| {
            let head = Cow::Borrowed(&json[whole.range().start..value.range().start]);
            Member { key, head, value: Cow::Borrowed(&json[value.range()]) }
        });
        Some(Self(members.collect()))
    }

    /// The same of text that may be anything.
    pub(crate) fn of_any(text: &'a [u8]) -> Option<Self> {
        is_json(text).then(|| Self::of(text)).flatten()
    }

    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Of a key that stands twice the last one counts, as it does for the parsers our peers use.
    pub(crate) fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.iter().rev().find(|member| member.is(key)).map(|member| &*member.value)
    }

    /// A member that is text.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        scan::decode_string(self.get(key)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<&str>, &[u8])> {
        self.0.iter().map(|member| (member.key.as_deref(), &*member.value))
    }

    /// Changes a member where it stands, or puts it last.
    pub(crate) fn set(&mut self, key: &'static str, json: impl Into<Vec<u8>>) {
        self.rename(key, key, json);
    }

    /// Puts a member in the place of another, or last if there is none.
    pub(crate) fn rename(&mut self, from: &str, to: &'static str, json: impl Into<Vec<u8>>) {
        let new = Member { key: Some(to.into()), head: Cow::Owned(head(to)), value: Cow::Owned(json.into()) };
        let place = self.0.iter().position(|member| member.is(from));
        let before = place.map_or(self.0.len(), |place| self.0[..place].iter().filter(|m| !m.is(to)).count());
        self.0.retain(|member| !member.is(from) && !member.is(to));
        self.0.insert(before.min(self.0.len()), new);
    }

    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let had = self.0.len();
        self.0.retain(|member| !member.is(key));
        self.0.len() != had
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let members = self.0.iter().map(|member| [&*member.head, &*member.value].concat());
        enclosed(b'{', members, b'}')
    }
}

impl Member<'_> {
    fn is(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }
}

fn head(key: &str) -> Vec<u8> {
    let mut head = quoted(key);
    head.push(b':');
    head
}

/// An object put together, member by member.
pub(crate) struct Compose(Vec<u8>);

impl Compose {
    pub(crate) fn new() -> Self {
        Self(vec![b'{'])
    }

    pub(crate) fn json(mut self, key: &str, json: impl AsRef<[u8]>) -> Self {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.extend(head(key));
        self.0.extend_from_slice(json.as_ref());
        self
    }

    pub(crate) fn text(self, key: &str, text: &str) -> Self {
        self.json(key, quoted(text))
    }

    pub(crate) fn number(self, key: &str, number: usize) -> Self {
        self.json(key, number.to_string())
    }

    pub(crate) fn flag(self, key: &str, flag: bool) -> Self {
        self.json(key, if flag { "true" } else { "false" })
    }

    /// Only if there is one.
    pub(crate) fn maybe<T>(self, value: Option<T>, with: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => with(self, value),
            None => self,
        }
    }

    pub(crate) fn done(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }

    pub(crate) fn bytes(self) -> Bytes {
        self.done().into()
    }
}

/// A list of these values.
pub(crate) fn list<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Vec<u8> {
    enclosed(b'[', items, b']')
}

fn enclosed<T: AsRef<[u8]>>(open: u8, parts: impl IntoIterator<Item = T>, close: u8) -> Vec<u8> {
    let mut json = vec![open];
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            json.push(b',');
        }
        json.extend_from_slice(part.as_ref());
    }
    json.push(close);
    json
}

/// The items of a list; none if it is no list.
pub(crate) fn items(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    scan::batch_items(json).map(|item| &json[item.range()])
}

pub(crate) fn is_list(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"[")
}

pub(crate) fn is_object(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"{")
}

pub(crate) fn is_json(text: &[u8]) -> bool {
    scan::nesting(text).is_some()
}

/// `text` as JSON.
pub(crate) fn quoted(text: &str) -> Vec<u8> {
    serde_json::Value::from(text).to_string().into()
}

/// The same of JSON that becomes text.
pub(crate) fn quoted_json(json: &[u8]) -> Vec<u8> {
    quoted(&String::from_utf8_lossy(json))
}

/// JSON without the blanks between its parts.
pub(crate) fn compact(json: &[u8]) -> Vec<u8> {
    let mut compact = Vec::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for &byte in json {
        if in_string || !byte.is_ascii_whitespace() {
            compact.push(byte);
        }
        let ends = byte == b'"' && !escaped;
        in_string ^= ends;
        escaped = in_string && byte == b'\\' && !escaped;
    }
    compact
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(json: &str, edit: impl FnOnce(&mut Members<'_>)) -> String {
        let mut members = Members::of(json.as_bytes()).unwrap();
        edit(&mut members);
        String::from_utf8(members.write()).unwrap()
    }

    #[test]
    fn what_is_not_edited_stays_as_it_was_spelled() {
        let json = r#"{"b" : 1.50,"a":"é","\ud800":1e400,"n":null}"#;
        assert_eq!(edited(json, |_| {}), json);
        assert_eq!(edited(json, |m| m.set("a", *b"2")), r#"{"b" : 1.50,"a":2,"\ud800":1e400,"n":null}"#);
        assert_eq!(edited(json, |m| m.set("c", *b"2")), r#"{"b" : 1.50,"a":"é","\ud800":1e400,"n":null,"c":2}"#);
        assert_eq!(edited(json, |m| assert!(m.remove("b"))), r#"{"a":"é","\ud800":1e400,"n":null}"#);
        assert_eq!(edited("{}", |m| m.set("c", *b"2")), r#"{"c":2}"#);
    }

    #[test]
    fn a_member_that_takes_the_place_of_another_stands_once() {
        assert_eq!(edited(r#"{"a":1,"b":2,"c":3}"#, |m| m.rename("b", "x", *b"4")), r#"{"a":1,"x":4,"c":3}"#);
        assert_eq!(edited(r#"{"x":1,"b":2,"x":3}"#, |m| m.rename("b", "x", *b"4")), r#"{"x":4}"#);
        assert_eq!(edited(r#"{"b":1,"a":2,"b":3}"#, |m| m.set("b", *b"4")), r#"{"b":4,"a":2}"#);
    }

    #[test]
    fn blanks_go_only_between_parts() {
        let check = |json: &str, expected: &str| {
            assert_eq!(String::from_utf8(compact(json.as_bytes())).unwrap(), expected);
        };
        check("{ \"a b\" :\n[ 1 , 2.50 ]\t}", r#"{"a b":[1,2.50]}"#);
        check(r#"[ "\" , \\" , " " ]"#, r#"["\" , \\"," "]"#);
        check(r#" "\\\"  x\\" "#, r#""\\\"  x\\""#);
    }

    #[test]
    fn only_objects_have_members() {
        assert!(Members::of(b"[1]").is_none());
        assert!(Members::of_any(b"{\"a\":1").is_none());
        assert!(Members::of_any(b" {\"a\":1} ").is_some());
    }
}
