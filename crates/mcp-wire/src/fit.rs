//! Items of lists and parts of results, held to what the protocol says of them. Many clients refuse a whole list for one
//! member that is not as it should be. What can be mended is mended and every other byte stays.

mod shapes;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use self::shapes::{Is, Need, Part, Shape};
use crate::revision::Era;
use crate::scan::{self, Span};
use crate::splice::{cut_members, splice_all};

/// What an object is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Tool,
    Prompt,
    Resource,
    Template,
    /// Results of the three methods that use a capability.
    CallResult,
    ReadResult,
    PromptResult,
}

/// Who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    Server,
    /// A proxy tool, as text within a result. Some write `meta` there for `_meta`.
    ProxyTool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    AsItIs,
    Mended {
        json: Bytes,
        /// Members that were not null and could not be kept.
        dropped: Vec<String>,
    },
    /// What is wrong with it, in a few words.
    Bad(String),
}

/// Holds an object to what it is to be in a revision of this era. It must be JSON.
pub fn fit(what: What, json: &[u8], era: Era, writer: Writer) -> Fit {
    let start = json.len() - json.trim_ascii_start().len();
    let whole = start..json.trim_ascii_end().len();
    let mut mending = Mending { json, era, writer, edits: Vec::new(), dropped: Vec::new() };
    match mending.object(what.shape(), whole) {
        Err(wrong) => Fit::Bad(wrong.to_string()),
        Ok(()) if mending.edits.is_empty() => Fit::AsItIs,
        Ok(()) => Fit::Mended { json: splice_all(json, &mut mending.edits), dropped: mending.dropped },
    }
}

impl What {
    fn shape(self) -> Shape {
        match self {
            Self::Tool => shapes::TOOL,
            Self::Prompt => shapes::PROMPT,
            Self::Resource => shapes::RESOURCE,
            Self::Template => shapes::TEMPLATE,
            Self::CallResult => shapes::CALL_RESULT,
            Self::ReadResult => shapes::READ_RESULT,
            Self::PromptResult => shapes::PROMPT_RESULT,
        }
    }
}

/// What is wrong with a value, and the member that it is.
enum Wrong {
    Kind(&'static str),
    Missing(&'static str),
    In(&'static str, Box<Wrong>),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "it is no {kind}"),
            Self::Missing(name) => write!(f, "`{name}` is missing"),
            Self::In(name, wrong) => write!(f, "`{name}`: {wrong}"),
        }
    }
}

struct Mending<'a> {
    json: &'a [u8],
    era: Era,
    writer: Writer,
    edits: Vec<(Span, Bytes)>,
    dropped: Vec<String>,
}

impl<'a> Mending<'a> {
    fn object(&mut self, shape: Shape, object: Range<usize>) -> Result<(), Wrong> {
        if self.json.get(object.start) != Some(&b'{') {
            return Err(Wrong::Kind("object"));
        }
        let json = self.json;
        // In ascending order.
        let mut cut: Vec<usize> = Vec::new();
        let mut found = 0_u32;
        let members = || {
            scan::whole_members(&json[object.clone()]).filter_map(|(key, whole, value)| {
                Some((key?, whole.shifted(object.start).range(), value.shifted(object.start).range()))
            })
        };
        // A `_meta` that is no object is dropped, and leaves its place to `meta`.
        let has_meta = || members().any(|(key, _, value)| key == "_meta" && json.get(value.start) == Some(&b'{'));
        let takes_meta = self.writer == Writer::ProxyTool && has(shape, "_meta") && !has_meta();
        for (key, whole, value) in members() {
            let key = match &*key {
                "meta" if takes_meta => {
                    let is_kept = json.get(value.start) == Some(&b'{');
                    match is_kept {
                        true => self.edits.push((key_of(json, &whole), Bytes::from_static(b"\"_meta\""))),
                        false => cut.push(whole.start),
                    }
                    continue;
                }
                key => key,
            };
            let Some(at) = shape.iter().position(|part| part.name == key) else { continue };
            let part = &shape[at];
            let is_null = &json[value.clone()] == b"null";
            if is_null && part.need != Need::Must {
                cut.push(whole.start);
                continue;
            }
            let (edits, dropped) = (self.edits.len(), self.dropped.len());
            match self.value(part.is, value) {
                Ok(()) => found |= 1 << at,
                Err(_) if part.need == Need::May => {
                    self.edits.truncate(edits);
                    self.dropped.truncate(dropped);
                    if self.dropped.last().is_none_or(|last| last != part.name) {
                        self.dropped.push(part.name.to_owned());
                    }
                    cut.push(whole.start);
                }
                Err(wrong) => return Err(Wrong::In(part.name, Box::new(wrong))),
            }
        }
        let is_missing = |(at, part): &(usize, &Part)| part.need == Need::Must && found & (1 << at) == 0;
        if let Some((_, part)) = shape.iter().enumerate().find(is_missing) {
            return Err(Wrong::Missing(part.name));
        }
        if !cut.is_empty() {
            cut_members(json, object, |_, member| cut.binary_search(&member.start).is_ok(), &mut self.edits);
        }
        Ok(())
    }

    fn value(&mut self, is: Is, value: Range<usize>) -> Result<(), Wrong> {
        let json = &self.json[value.clone()];
        let ok = |is_right: bool, what| if is_right { Ok(()) } else { Err(Wrong::Kind(what)) };
        match is {
            Is::Text => ok(json.starts_with(b"\""), "text"),
            Is::Flag => ok(matches!(json, b"true" | b"false"), "true or false"),
            Is::Whole => ok(number(json).is_some_and(|number| number.fract() == 0.0), "whole number"),
            Is::Share => ok(number(json).is_some_and(|number| (0.0..=1.0).contains(&number)), "number from 0 to 1"),
            Is::Address => ok(text(json).is_some_and(|text| has_scheme(&text)), "address"),
            Is::OneOf(words) => ok(text(json).is_some_and(|text| words.contains(&&*text)), "word that is known"),
            Is::Object => ok(json.starts_with(b"{"), "object"),
            Is::A(shape) => self.object(shape, value),
            Is::Items(item) => {
                ok(json.starts_with(b"["), "list")?;
                let items: Vec<_> = scan::batch_items(json).map(|item| item.shifted(value.start).range()).collect();
                items.into_iter().try_for_each(|it| self.value(*item, it))
            }
            Is::InputSchema => self.schema(value),
            // Revisions that have a handshake know no results but objects.
            Is::OutputSchema if self.era == Era::Legacy => {
                let kind = scan::member_at(json, ["type"]).map(|kind| &json[kind.range()]);
                ok(json.starts_with(b"{") && kind == Some(b"\"object\""), "schema of an object")
            }
            Is::OutputSchema => ok(json.starts_with(b"{"), "object"),
            Is::Output => ok(self.era == Era::Modern || json.starts_with(b"{"), "object"),
            Is::Content => self.content(value),
            Is::Contents => {
                let is_blob = scan::member_at(json, ["blob"]).is_some_and(|blob| json[blob.range()].starts_with(b"\""));
                self.object(if is_blob { shapes::BLOB_CONTENTS } else { shapes::TEXT_CONTENTS }, value)
            }
        }
    }

    /// The schema of arguments, which are an object in any case.
    fn schema(&mut self, schema: Range<usize>) -> Result<(), Wrong> {
        let json = self.json;
        if json.get(schema.start) != Some(&b'{') {
            return Err(Wrong::Kind("object"));
        }
        let is_typed = scan::member_at(&json[schema.clone()], ["type"]).is_some();
        self.object(shapes::INPUT_SCHEMA, schema.clone())?;
        if !is_typed {
            let is_cut = |name: &str, value: Span| {
                has(shapes::INPUT_SCHEMA, name) && &json[value.shifted(schema.start).range()] == b"null"
            };
            let has_more = scan::object_members(&json[schema.clone()]).any(|(name, value)| !is_cut(&name, value));
            let opening = if has_more { "{\"type\":\"object\"," } else { "{\"type\":\"object\"" };
            self.edits.push((Span::new(schema.start..schema.start + 1), Bytes::from_static(opening.as_bytes())));
        }
        // `true` and `false` are schemas in newer revisions alone; these say the same in all.
        let at = scan::member_at(&json[schema.clone()], ["properties"]);
        let Some(properties) = at.map(|span| span.shifted(schema.start).range()) else { return Ok(()) };
        for (_, value) in scan::object_members(&json[properties.clone()]) {
            let value = value.shifted(properties.start);
            match json[value.range()] {
                [b'{', ..] => {}
                [b't', ..] => self.edits.push((value, Bytes::from_static(b"{}"))),
                [b'f', ..] => self.edits.push((value, Bytes::from_static(b"{\"not\":{}}"))),
                _ => return Err(Wrong::In("properties", Box::new(Wrong::Kind("object of schemas")))),
            }
        }
        Ok(())
    }

    /// A block of content. Of kinds that are not known nothing is said.
    fn content(&mut self, value: Range<usize>) -> Result<(), Wrong> {
        let json = &self.json[value.clone()];
        let kind = scan::member_at(json, ["type"]).and_then(|kind| scan::decode_string(&json[kind.range()]));
        let Some(kind) = kind else { return Err(Wrong::Missing("type")) };
        match shapes::CONTENT.iter().find(|(name, _)| *name == kind) {
            Some((_, shape)) => self.object(shape, value),
            None => Ok(()),
        }
    }
}

fn has(shape: Shape, name: &str) -> bool {
    shape.iter().any(|part| part.name == name)
}

/// Where the key of a member stands.
fn key_of(json: &[u8], member: &Range<usize>) -> Span {
    let is_end = |at: &usize| json[*at] == b'"' && json[*at - 1] != b'\\';
    let end = (member.start + 1..member.end).find(is_end).unwrap_or(member.start);
    Span::new(member.start..end + 1)
}

fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    scan::decode_string(json)
}

fn number(json: &[u8]) -> Option<f64> {
    let is_number = json.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
    std::str::from_utf8(json).ok().filter(|_| is_number)?.parse().ok()
}

/// Whether an address says of what kind it is; one that does not is relative, and to nothing here.
fn has_scheme(address: &str) -> bool {
    let Some((scheme, _)) = address.split_once(':') else { return false };
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_of_scheme)
}

#[cfg(test)]
mod tests;
