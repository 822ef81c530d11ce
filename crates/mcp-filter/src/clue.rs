//! What a message must have in it for a filter to match, where that can be told from the filter: looked
//! for in a few nanoseconds, it spares most messages any closer look.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::compile::{Node, Spelt, Test, TextTest};

static ESCAPED_LETTER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));
static ESCAPED_SLASH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\/"));

/// A shorter text stands in too many messages to be worth looking for.
const SHORTEST: usize = 3;

/// Text without which a filter matches nothing, names as they are written: it stands in the message itself or, if that is an answer,
/// in the request that it answers.
#[derive(Clone, Debug)]
pub struct Clue(Finder<'static>);

impl Clue {
    /// Whether `message` can be one that the filter matches. Where letters are spelled as escapes it may
    /// say anything; other escapes stand for nothing that a clue has in it, save one for a slash.
    pub fn may_be_in(&self, message: &[u8]) -> bool {
        self.0.find(message).is_some()
            || ESCAPED_LETTER.find(message).is_some()
            || ESCAPED_SLASH.find(message).is_some()
    }

    pub(crate) fn of(node: &Node) -> Option<Self> {
        match node {
            Node::All(parts) => parts.iter().find_map(Self::of),
            Node::Test(Test::Name(_, Spelt { written, .. })) => match written {
                TextTest::Globs(globs) => match &globs[..] {
                    [glob] => Self::new(glob.longest_piece()),
                    _ => None,
                },
                TextTest::Begins(prefix) => Self::new(prefix.as_bytes()),
                _ => None,
            },
            _ => None,
        }
    }

    fn new(text: &[u8]) -> Option<Self> {
        let is_plain = text.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f));
        (text.len() >= SHORTEST && is_plain).then(|| Self(Finder::new(text).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use crate::Filter;

    #[track_caller]
    fn check(filter: &str, possible: &[&str], impossible: &[&str]) {
        let filter = Filter::parse(filter).unwrap();
        let clue = filter.clue().expect("there is one");
        possible.iter().for_each(|text| assert!(clue.may_be_in(text.as_bytes()), "{text}"));
        impossible.iter().for_each(|text| assert!(!clue.may_be_in(text.as_bytes()), "{text}"));
    }

    #[test]
    fn a_name_must_stand_there() {
        check("tool:echo", &[r#"{"name":"echo"}"#, r#"{"name":"\u0065cho"}"#], &[r#"{"name":"add"}"#]);
        check("> tool:*_file size>3", &[r#"{"name":"read_file"}"#], &[r#"{"name":"file"}"#]);
        let escaped = r#"{"method":"tools\/call"}"#;
        check("method:tools/call", &[r#"{"method":"tools/call"}"#, escaped], &[r#"{"method":"ping","a":"\n\""}"#]);
    }

    #[test]
    fn where_something_else_may_match_there_is_none() {
        for filter in [
            "",
            "tool:a",
            "tool:echo,add",
            "tool:echo or status:err",
            "not tool:echo",
            "echo",
            "tool:*",
            r#"tool:"a\"b""#,
        ] {
            assert!(Filter::parse(filter).unwrap().clue().is_none(), "{filter}");
        }
    }
}
