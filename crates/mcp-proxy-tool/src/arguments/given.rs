//! The parameters as they were given: which ones there are, and what each holds. Whoever gave something else than
//! it should be is told what, and what would be right.

use std::borrow::Cow;
use std::fmt::Display;

use mcp_wire::scan;
use mcp_wire::visible::visible;

use super::Mistake;
use super::nearest::nearest;
use crate::members::{Members, is_json, is_list, is_object, items};

/// Characters of a caller's text repeated in an error: a model reads and pays for them.
const ECHO_MAX: usize = 100;

/// An object of known parameters, each there at most once. `null` is as good as nothing: many callers fill in
/// what they leave out.
pub(super) struct Given<'a>(Members<'a>);

impl<'a> Given<'a> {
    /// `what` has these parameters, and `known` are their names.
    pub(super) fn read(json: &'a [u8], what: &str, known: &[&str]) -> Result<Self, Mistake> {
        let Some(members) = Members::of(json) else {
            return wrong(format_args!("{what} must be an object; given: {}", shown(json)));
        };
        let mut seen = Vec::new();
        for (key, _) in members.iter() {
            let key = key.unwrap_or("\u{fffd}");
            if !known.contains(&key) {
                return wrong(unknown(what, key, known));
            }
            if seen.contains(&key) {
                return wrong(format_args!("`{key}` stands twice; give each parameter once"));
            }
            seen.push(key);
        }
        Ok(Self(members))
    }

    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).filter(|json| *json != b"null")
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'_, str>>, Mistake> {
        self.maybe(name, "text", scan::decode_string)
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Mistake> {
        self.maybe(name, "true or false", |json| match json {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        })
    }

    /// A whole number in these bounds; models write such as texts, too.
    pub(super) fn number(&self, name: &str, least: usize, most: usize) -> Result<Option<usize>, Mistake> {
        let bounds = match most {
            usize::MAX => format!("a whole number, {least} or more"),
            most => format!("a whole number from {least} to {most}"),
        };
        self.maybe(name, &bounds, |json| {
            let text = scan::decode_string(json);
            let digits = text.as_deref().map_or(json, |text| text.trim().as_bytes());
            let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
            (least..=most).contains(&number).then_some(number)
        })
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, Mistake> {
        let read = |json| Some(items(json).map(|item| scan::decode_string(item).map(Cow::into_owned)));
        let texts = self.maybe(name, "a list of texts", |json| {
            is_list(json).then(|| read(json)).flatten()?.collect::<Option<Vec<_>>>()
        })?;
        Ok(texts.unwrap_or_default())
    }

    /// What `read` makes of a parameter, which must be `what` for it.
    pub(super) fn maybe<'s, T>(
        &'s self,
        name: &str,
        what: &str,
        read: impl FnOnce(&'s [u8]) -> Option<T>,
    ) -> Result<Option<T>, Mistake> {
        let Some(json) = self.get(name) else { return Ok(None) };
        match read(json) {
            Some(value) => Ok(Some(value)),
            None => wrong(format_args!("`{name}` must be {what}; given: {}", shown(json))),
        }
    }
}

fn unknown(what: &str, key: &str, known: &[&str]) -> String {
    let key = bounded(key);
    match nearest(&key, known) {
        Some(meant) => format!("unknown parameter `{key}`; did you mean `{meant}`?"),
        None => format!("unknown parameter `{key}`; {what} can have {}", names(known)),
    }
}

pub(super) fn wrong<T>(text: impl Display) -> Result<T, Mistake> {
    Err(Mistake(text.to_string()))
}

/// `a`, `b` and `c`
pub(super) fn names(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// JSON that is not what it should be, in few words.
pub(super) fn shown(json: &[u8]) -> String {
    match scan::decode_string(json) {
        Some(text) => said(&text),
        None if is_object(json) => "an object".into(),
        None if is_list(json) => "a list".into(),
        None if is_json(json) => bounded(&String::from_utf8_lossy(json)),
        None => "something that is not JSON".into(),
    }
}

/// Text in quotes.
pub(super) fn said(text: &str) -> String {
    format!("\"{}\"", bounded(text))
}

/// Text that somebody gave, short enough and harmless to repeat.
pub(super) fn bounded(text: &str) -> String {
    match text.char_indices().nth(ECHO_MAX) {
        Some((end, _)) => format!("{}…", visible(&text[..end])),
        None => visible(text).to_string(),
    }
}
