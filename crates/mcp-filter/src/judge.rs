//! Holds tests against a message.

use std::borrow::Cow;

use mcp_wire::{Direction, Era, scan};
use regex::bytes::Regex;

use crate::compile::{Node, PathTest, Scalar, Spelt, Test, TextTest, number};
use crate::fields::Asks;
use crate::numbers::Range;
use crate::spelling::{Reading, folded};
use crate::subject::Subject;
use crate::syntax::Op;

pub(crate) fn holds(node: &Node, subject: &(impl Subject + ?Sized), reading: Reading) -> bool {
    match node {
        Node::Everything => true,
        Node::Any(parts) => parts.iter().any(|part| holds(part, subject, reading)),
        Node::All(parts) => parts.iter().all(|part| holds(part, subject, reading)),
        Node::Not(inner) => !holds(inner, subject, reading),
        Node::Test(test) => test_holds(test, subject, reading),
    }
}

pub(crate) fn test_holds(test: &Test, subject: &(impl Subject + ?Sized), reading: Reading) -> bool {
    match test {
        Test::Name(asks, tests) => text(*asks, subject).is_some_and(|name| match reading {
            Reading::Written => fits(&tests.written, &name),
            Reading::Folded => fits(&tests.folded, &folded(&name)),
        }),
        Test::Text(Asks::Id, test) => subject.id().is_some_and(|id| id_fits(test, id)),
        Test::Text(asks, test) => text(*asks, subject).is_some_and(|text| fits(test, &text)),
        Test::Words(asks, words) => word(*asks, subject).is_some_and(|word| words.contains(&word)),
        Test::Number(asks, ranges) => in_ranges(*asks, ranges, subject),
        Test::Flag(asks, wanted) => flag(*asks, subject) == *wanted,
        Test::Present(asks) => is_present(*asks, subject),
        Test::Era(era) => subject.revision().is_some_and(|revision| Era::of_header(Some(revision.as_bytes())) == *era),
        Test::Hint(hints) => hints.iter().any(|hint| subject.hint(hint) == Some(true)),
        Test::Search(search) => in_names(search, subject, reading) || in_body(&search.written, subject),
        Test::Body(regex) => in_body(regex, subject),
        Test::HeaderNamed(glob) => headers(subject).any(|(name, _)| glob.matches(&name.to_ascii_lowercase())),
        Test::Header(wanted, test) => {
            headers(subject).any(|(name, value)| name.eq_ignore_ascii_case(wanted) && fits(test, value))
        }
        Test::Path(path, test) => subject.body().is_some_and(|body| path.any(body, |json| value_fits(test, json))),
        Test::NamePath(path, tests) => subject.body().is_some_and(|body| match reading {
            Reading::Written => path.any(body, |json| value_fits(&tests.written, json)),
            Reading::Folded => path.any(body, |json| folded_fits(&tests.folded, json)),
        }),
    }
}

/// Whether it is found in the method, or in what the message is about.
pub(crate) fn in_names(search: &Spelt<Regex>, subject: &(impl Subject + ?Sized), reading: Reading) -> bool {
    [subject.method(), subject.tool()].into_iter().flatten().any(|name| match reading {
        Reading::Written => search.written.is_match(name.as_bytes()),
        Reading::Folded => search.folded.is_match(folded(&name).as_bytes()),
    })
}

fn text(asks: Asks, subject: &(impl Subject + ?Sized)) -> Option<Cow<'_, str>> {
    match asks {
        Asks::Method => subject.method(),
        Asks::Tool => subject.tool(),
        Asks::Server => subject.server(),
        Asks::Client => subject.client(),
        Asks::Revision => subject.revision(),
        Asks::Rule => subject.rule(),
        Asks::Mark => subject.mark(),
        _ => word(asks, subject).map(Cow::Borrowed),
    }
}

fn word(asks: Asks, subject: &(impl Subject + ?Sized)) -> Option<&str> {
    match asks {
        Asks::Direction => subject.direction().map(Direction::as_str),
        Asks::Kind => subject.kind(),
        Asks::Status => subject.status(),
        Asks::Operation => subject.operation(),
        Asks::Verdict => subject.verdict(),
        Asks::Origin => subject.origin(),
        _ => None,
    }
}

fn value(asks: Asks, subject: &(impl Subject + ?Sized)) -> Option<i128> {
    match asks {
        Asks::Code => subject.code().map(i128::from),
        Asks::Duration => subject.duration_ns().map(i128::from),
        Asks::Size => subject.size().map(i128::from),
        Asks::Sequence => subject.sequence().map(i128::from),
        _ => None,
    }
}

fn in_ranges(asks: Asks, ranges: &[Range], subject: &(impl Subject + ?Sized)) -> bool {
    value(asks, subject).is_some_and(|value| ranges.iter().any(|range| range.contains(&value)))
}

fn flag(asks: Asks, subject: &(impl Subject + ?Sized)) -> bool {
    match asks {
        Asks::Held => subject.held(),
        Asks::Edited => subject.edited(),
        Asks::Noise => subject.noise(),
        Asks::Replay => subject.replay(),
        _ => false,
    }
}

fn is_present(asks: Asks, subject: &(impl Subject + ?Sized)) -> bool {
    word(asks, subject).is_some() || value(asks, subject).is_some() || flag(asks, subject)
}

fn headers(subject: &(impl Subject + ?Sized)) -> impl Iterator<Item = (&str, &str)> {
    (0..).map_while(|index| subject.header(index))
}

fn fits(test: &TextTest, text: &str) -> bool {
    match test {
        TextTest::Any => true,
        TextTest::Globs(globs) => globs.iter().any(|glob| glob.matches(text)),
        TextTest::Begins(prefix) => text.starts_with(prefix),
        TextTest::Like(regex) => regex.is_match(text.as_bytes()),
    }
}

/// An id fits by its spelling, or by the text it says.
fn id_fits(test: &TextTest, id: &[u8]) -> bool {
    std::str::from_utf8(id).is_ok_and(|spelled| fits(test, spelled))
        || scan::decode_string(id).is_some_and(|said| fits(test, &said))
}

/// Looks at a message as it stands there, and where it has escapes also at what its strings say:
/// nobody hides a word by spelling it otherwise.
fn in_body(regex: &Regex, subject: &(impl Subject + ?Sized)) -> bool {
    subject.body().is_some_and(|body| is_in(regex, body))
}

fn is_in(regex: &Regex, json: &[u8]) -> bool {
    regex.is_match(json)
        || (memchr::memchr(b'\\', json).is_some() && escaped_strings(json).any(|text| regex.is_match(text.as_bytes())))
}

/// What the strings of a message say that have escapes in them.
fn escaped_strings(json: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + memchr::memchr(b'"', &json[at..])?;
            at = start + 1;
            let mut has_escapes = false;
            loop {
                let found = memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
                at += found + 1;
                if json[at - 1] == b'"' {
                    break;
                }
                has_escapes = true;
                at += 1;
            }
            if has_escapes && let Some(text) = scan::decode_string(&json[start..at]) {
                return Some(text);
            }
        }
    })
}

fn value_fits(test: &PathTest, json: &[u8]) -> bool {
    match test {
        PathTest::Present => true,
        PathTest::Equal(wanted) => wanted.iter().any(|wanted| equals(wanted, json)),
        PathTest::Globs(globs) => said(json).is_some_and(|said| globs.iter().any(|glob| glob.matches(&said))),
        PathTest::Begins(prefix) => scan::decode_string(json).is_some_and(|said| said.starts_with(prefix)),
        // Of a list or an object, whatever stands in it.
        PathTest::Like(regex) => match scan::decode_string(json) {
            Some(said) => regex.is_match(said.as_bytes()),
            None => is_in(regex, json),
        },
        PathTest::Number(op, bound) => {
            let number = std::str::from_utf8(json).ok().and_then(number);
            number.is_some_and(|number| match op {
                Op::Less => number < *bound,
                Op::LessOrEqual => number <= *bound,
                Op::Greater => number > *bound,
                _ => number >= *bound,
            })
        }
    }
}

/// The same of a name, as whoever is careless about spelling reads it.
fn folded_fits(test: &PathTest, json: &[u8]) -> bool {
    let Some(said) = scan::decode_string(json) else { return value_fits(test, json) };
    let said = folded(&said);
    match test {
        PathTest::Present => true,
        PathTest::Equal(wanted) => wanted.iter().any(|wanted| wanted.text == said),
        PathTest::Globs(globs) => globs.iter().any(|glob| glob.matches(&said)),
        PathTest::Begins(prefix) => said.starts_with(prefix),
        PathTest::Like(regex) => regex.is_match(said.as_bytes()),
        PathTest::Number(..) => false,
    }
}

fn equals(wanted: &Scalar, json: &[u8]) -> bool {
    if json.first() == Some(&b'"') {
        return scan::decode_string(json).is_some_and(|said| said == wanted.text);
    }
    if wanted.is_text {
        return false;
    }
    json == wanted.text.as_bytes()
        || wanted.number.is_some_and(|wanted| std::str::from_utf8(json).ok().and_then(number) == Some(wanted))
}

/// The text of a string, or the spelling of anything else that is no list or object.
fn said(json: &[u8]) -> Option<Cow<'_, str>> {
    match json.first()? {
        b'"' => scan::decode_string(json),
        b'{' | b'[' => None,
        _ => std::str::from_utf8(json).ok().map(Cow::Borrowed),
    }
}
