//! How much work a schema makes, told before it is done. A few lines of references that each lead to two
//! others make more work than a lifetime has; and one that leads back to itself makes no end.
//!
//! What is counted is how often a schema looks at one and the same value. Different members of an object
//! are different values, so a schema of a tree is cheap however it recurs.

use std::collections::HashMap;

use serde_json::Value;

/// Visits of one value that a schema may cause: schemas come from servers.
const LOOKS_MAX: u64 = 20_000;
/// Parts of a schema that are visited to count those.
const PARTS_MAX: usize = 500_000;
/// Schemas within or behind each other: the check follows them on the stack.
const NESTING_MAX: usize = 256;

const TOO_INVOLVED: &str = "the schema is too involved to check against";

/// Schemas for the same value.
const BESIDE: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const ALSO: [&str; 4] = ["not", "if", "then", "else"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Schemas for members or items, of which one value meets one at most.
const EITHER: [&str; 2] = ["properties", "prefixItems"];
/// Schemas for members or items that one value may meet all of.
const ALL: [&str; 1] = ["patternProperties"];
const EVERY: [&str; 7] = [
    "additionalProperties",
    "items",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// Whether checking a value of this depth comes to an end soon, or why not.
pub(super) fn is_bearable(schema: &Value, arguments: &Value) -> Result<(), &'static str> {
    let mut effort = Effort { root: schema, anchors: HashMap::new(), known: HashMap::new(), parts: 0, nesting: 0 };
    effort.note_anchors(schema);
    match effort.looks(schema, depth(arguments))? {
        ..=LOOKS_MAX => Ok(()),
        _ => Err(TOO_INVOLVED),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

struct Effort<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// What following a reference costs with so much depth below; `None` while that is being found out.
    known: HashMap<(&'a str, usize), Option<u64>>,
    parts: usize,
    nesting: usize,
}

impl<'a> Effort<'a> {
    fn note_anchors(&mut self, value: &'a Value) {
        match value {
            Value::Object(members) => {
                for name in ["$anchor", "$dynamicAnchor"] {
                    if let Some(anchor) = members.get(name).and_then(Value::as_str) {
                        self.anchors.insert(anchor, value);
                    }
                }
                members.values().for_each(|member| self.note_anchors(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.note_anchors(item)),
            _ => {}
        }
    }

    /// How often this schema looks at one value that is at most `depth` deep, or at one inside it.
    fn looks(&mut self, schema: &'a Value, depth: usize) -> Result<u64, &'static str> {
        self.parts += 1;
        self.nesting += 1;
        if self.parts > PARTS_MAX || self.nesting > NESTING_MAX {
            return Err(TOO_INVOLVED);
        }
        let looks = self.looks_here(schema, depth);
        self.nesting -= 1;
        looks
    }

    fn looks_here(&mut self, schema: &'a Value, depth: usize) -> Result<u64, &'static str> {
        let Value::Object(keywords) = schema else {
            return Ok(1);
        };
        if !std::ptr::eq(schema, self.root) && keywords.get("$id").is_some_and(Value::is_string) {
            return Err("parts of the schema have addresses of their own");
        }
        let mut looks: u64 = 1;
        for name in REFERENCES {
            if let Some(reference) = keywords.get(name).and_then(Value::as_str) {
                looks = looks.saturating_add(self.followed(reference, depth)?);
            }
        }
        let lists = BESIDE.iter().filter_map(|name| keywords.get(*name)).flat_map(parts);
        let singles = ALSO.iter().filter_map(|name| keywords.get(*name));
        let dependent =
            ["dependentSchemas", "dependencies"].into_iter().filter_map(|name| keywords.get(name)).flat_map(parts);
        for part in lists.chain(singles).chain(dependent) {
            looks = looks.saturating_add(self.looks(part, depth)?);
        }
        if depth > 0 {
            looks = looks.saturating_add(self.looks_inside(schema, depth - 1)?);
        }
        Ok(looks)
    }

    fn looks_inside(&mut self, schema: &'a Value, depth: usize) -> Result<u64, &'static str> {
        let mut looks: u64 = 0;
        for name in EITHER {
            let mut most = 0;
            for part in schema.get(name).into_iter().flat_map(parts) {
                most = most.max(self.looks(part, depth)?);
            }
            looks = looks.saturating_add(most);
        }
        let every = EVERY.iter().filter_map(|name| schema.get(*name)).flat_map(one_or_parts);
        for part in ALL.iter().filter_map(|name| schema.get(*name)).flat_map(parts).chain(every) {
            looks = looks.saturating_add(self.looks(part, depth)?);
        }
        Ok(looks)
    }

    fn followed(&mut self, reference: &'a str, depth: usize) -> Result<u64, &'static str> {
        match self.known.get(&(reference, depth)) {
            Some(Some(looks)) => return Ok(*looks),
            Some(None) => return Err("the schema refers to itself without end"),
            None => {}
        }
        let target = self.target(reference).ok_or("the schema refers to what is not in it")?;
        self.known.insert((reference, depth), None);
        let looks = self.looks(target, depth)?;
        self.known.insert((reference, depth), Some(looks));
        Ok(looks)
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = unescaped(reference.strip_prefix('#')?)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment);
        }
        self.anchors.get(fragment.as_str()).copied()
    }
}

fn parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// `items` may be a schema or, in older drafts, a list of them.
fn one_or_parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    if value.is_array() { parts(value) } else { Box::new(std::iter::once(value)) }
}

/// A fragment of an address as text.
fn unescaped(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| (byte as char).to_digit(16));
        bytes.push((digit(rest.next())? * 16 + digit(rest.next())?) as u8);
    }
    String::from_utf8(bytes).ok()
}
