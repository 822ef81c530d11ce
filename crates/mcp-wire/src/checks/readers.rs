//! The parsers that servers have, as far as they differ: each takes a document its own way.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::fold::case_folded;

/// A document with every member that stands in it, repeated ones included.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Document>),
    Object(Vec<(String, Document)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    FirstWins,
    LastWins,
    /// Takes a member for another if only case differs, and the last of them.
    IgnoresCase,
    /// The same, and the first of them.
    IgnoresCaseFirst,
    /// Takes a NUL for the end of a text, and the last of two keys that are the same then.
    StopsAtNul,
    /// The same, and the first of them.
    StopsAtNulFirst,
}

impl Reader {
    pub const ALL: [Self; 6] = [
        Self::FirstWins,
        Self::LastWins,
        Self::IgnoresCase,
        Self::IgnoresCaseFirst,
        Self::StopsAtNul,
        Self::StopsAtNulFirst,
    ];

    /// The document as this reader has it: no key stands twice.
    pub fn read(self, document: &Document) -> Document {
        match document {
            Document::Text(text) => Document::Text(self.text(text)),
            Document::List(items) => Document::List(items.iter().map(|item| self.read(item)).collect()),
            Document::Object(members) => {
                let mut kept: Vec<(String, Document)> = Vec::new();
                let mut places = HashMap::new();
                for (key, value) in members {
                    let (key, value) = (self.text(key), self.read(value));
                    match places.entry(self.same(&key)) {
                        Entry::Vacant(place) => {
                            place.insert(kept.len());
                            kept.push((key, value));
                        }
                        Entry::Occupied(_) if self.keeps_first() => {}
                        Entry::Occupied(place) => kept[*place.get()].1 = value,
                    }
                }
                Document::Object(kept)
            }
            scalar => scalar.clone(),
        }
    }

    /// What this reader finds at the end of `path`.
    pub fn get(self, document: &Document, path: &[&str]) -> Option<Document> {
        let mut found = self.read(document);
        for name in path {
            let Document::Object(members) = found else { return None };
            found = members.into_iter().find(|(key, _)| self.is_same(key, name))?.1;
        }
        Some(found)
    }

    /// Everything that this reader finds under `name`, at any depth.
    pub fn all(self, document: &Document, name: &str) -> Vec<Document> {
        let mut found = Vec::new();
        self.collect(&self.read(document), name, &mut found);
        found
    }

    fn collect(self, document: &Document, name: &str, found: &mut Vec<Document>) {
        match document {
            Document::List(items) => items.iter().for_each(|item| self.collect(item, name, found)),
            Document::Object(members) => {
                for (key, value) in members {
                    if self.is_same(key, name) {
                        found.push(value.without_objects());
                    }
                    self.collect(value, name, found);
                }
            }
            _ => {}
        }
    }

    fn keeps_first(self) -> bool {
        matches!(self, Self::FirstWins | Self::IgnoresCaseFirst | Self::StopsAtNulFirst)
    }

    fn is_same(self, one: &str, other: &str) -> bool {
        self.same(one) == self.same(other)
    }

    /// What is the same for keys that are the same to this reader.
    fn same(self, key: &str) -> String {
        match self {
            Self::IgnoresCase | Self::IgnoresCaseFirst => key.chars().flat_map(case_folded).collect(),
            _ => key.to_owned(),
        }
    }

    fn text(self, text: &str) -> String {
        match self {
            Self::StopsAtNul | Self::StopsAtNulFirst => text.split('\0').next().unwrap_or_default().to_owned(),
            _ => text.to_owned(),
        }
    }
}

impl Document {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// What a rule compares: objects are looked into, by keys of their own.
    fn without_objects(&self) -> Self {
        match self {
            Self::Object(_) => Self::Null,
            Self::List(items) => Self::List(items.iter().map(Self::without_objects).collect()),
            scalar => scalar.clone(),
        }
    }

    /// Keys and texts without what readers may legitimately differ in: texts that no rule looks at
    /// may have a NUL.
    pub fn in_lower_case(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(Reader::StopsAtNul.text(&text)),
            Self::List(items) => Self::List(items.into_iter().map(Self::in_lower_case).collect()),
            Self::Object(members) => {
                let lower = |key: String| key.chars().flat_map(case_folded).collect();
                Self::Object(members.into_iter().map(|(key, value)| (lower(key), value.in_lower_case())).collect())
            }
            scalar => scalar,
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Document;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Document::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Document, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Document::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Document::Object(members))
    }
}
