//! What must hold for any expression and any message: shared by property tests and the fuzz target.

use std::borrow::Cow;

use mcp_wire::Message;

use mcp_wire::Direction;

use crate::{Certainty, Filter, Spelling, Subject};

/// A message and nothing beside it.
struct Bare<'a> {
    bytes: &'a [u8],
    message: Message,
}

impl Subject for Bare<'_> {
    fn direction(&self) -> Option<Direction> {
        Some(Direction::ClientToServer)
    }

    fn method(&self) -> Option<Cow<'_, str>> {
        self.message.method()
    }

    fn tool(&self) -> Option<Cow<'_, str>> {
        self.message.name()
    }

    fn id(&self) -> Option<&[u8]> {
        self.message.peek().id.map(|span| self.message.slice(span))
    }

    fn size(&self) -> Option<u64> {
        Some(self.bytes.len() as u64)
    }

    fn body(&self) -> Option<&[u8]> {
        Some(self.bytes)
    }
}

/// Any text is a filter, or an error that shows where. A filter prints as one that is the same, and
/// judges as that one does. Nothing panics.
pub fn filter_is_what_it_prints(text: &str, message: &[u8]) {
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 3, "what, the expression, where: {error}");
            assert!(text.get(error.span()).is_some(), "a part of the expression");
            return;
        }
    };
    let printed = filter.to_string();
    let again = Filter::parse(&printed).unwrap_or_else(|error| panic!("{text:?} printed {printed:?}: {error}"));
    assert_eq!(again, filter, "{text:?} printed {printed:?}");
    assert_eq!(again.to_string(), printed);
    let subject = Bare { bytes: message, message: Message::new(bytes::Bytes::copy_from_slice(message)) };
    let opposite = Filter::parse(&format!("not ({printed})"));
    let matches = filter.matches(&subject);
    assert_eq!(again.matches(&subject), matches, "{text:?}");
    what_is_foretold_comes_to_pass(&filter, &subject);
    assert!(opposite.is_err() || opposite.is_ok_and(|opposite| opposite.matches(&subject) != matches), "{text:?}");
}

/// What a filter foretells from names is what it says of a message that has them.
fn what_is_foretold_comes_to_pass(filter: &Filter, subject: &Bare<'_>) {
    for spelling in [Spelling::Exact, Spelling::Any, Spelling::Every] {
        let matches = filter.matches_in(subject, spelling);
        match filter.foretell(subject, spelling) {
            Certainty::Yes => assert!(matches, "{filter} {spelling:?}"),
            Certainty::No => assert!(!matches, "{filter} {spelling:?}"),
            Certainty::Maybe => {}
        }
    }
    assert_eq!(filter.matches_in(subject, Spelling::Exact), filter.matches(subject), "{filter}");
    assert!(filter.matches_in(subject, Spelling::Any) || !filter.matches(subject), "{filter}");
    assert!(!filter.matches_in(subject, Spelling::Every) || filter.matches(subject), "{filter}");
}
