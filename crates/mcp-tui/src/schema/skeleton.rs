//! Arguments to begin with: what a schema asks for, filled with what it proposes.

use crate::json::{Document, NodeId, Shape, pretty_text, spelled_out};

/// Levels of a schema that a skeleton follows. A person fills in the rest.
const DEPTH_MAX: usize = 6;
/// Size of a skeleton: wide schemas that recur would fill the disk.
const BYTES_MAX: usize = 64 * 1024;
/// Members are looked up one by one, which a schema could make the most of.
const SCHEMA_BYTES_MAX: usize = 128 * 1024;

/// Arguments over several lines that a person can go on from: required members first, then the others, each
/// with its default, its example, its first choice, or something empty of its type. `{}` if the schema
/// says nothing.
pub(crate) fn skeleton(schema: &str) -> String {
    if schema.len() > SCHEMA_BYTES_MAX {
        return "{}".to_owned();
    }
    let Ok(schema) = Document::parse(schema) else {
        return "{}".to_owned();
    };
    let mut sketch = Sketch { schema: &schema, json: String::new() };
    sketch.value(0, 0);
    let whole = Document::parse(sketch.json.as_str());
    whole.map_or_else(|_| "{}".to_owned(), |document| spelled_out(pretty_text(&document)))
}

struct Sketch<'a> {
    schema: &'a Document,
    json: String,
}

impl Sketch<'_> {
    fn value(&mut self, schema: NodeId, depth: usize) {
        if depth > DEPTH_MAX || self.json.len() > BYTES_MAX {
            return self.json.push_str("null");
        }
        if let Some(proposed) = self.proposed(schema) {
            return self.copy(proposed);
        }
        if let Some(other) = self.elsewhere(schema) {
            return self.value(other, depth + 1);
        }
        match self.type_of(schema).as_deref() {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("string") => self.json.push_str("\"\""),
            Some("integer" | "number") => self.number(schema),
            Some("boolean") => self.json.push_str("false"),
            Some(_) => self.json.push_str("null"),
            None if depth == 0 => self.json.push_str("{}"),
            None => self.json.push_str("null"),
        }
    }

    /// A value that the schema itself gives.
    fn proposed(&self, schema: NodeId) -> Option<NodeId> {
        let member = |name| self.member(schema, name);
        let first = |name| member(name).and_then(|list| self.schema.children(list).next());
        member("const").or_else(|| member("default")).or_else(|| first("examples")).or_else(|| first("enum"))
    }

    fn copy(&mut self, proposed: NodeId) {
        let source = self.schema.source(proposed);
        self.json.push_str(if source.len() <= BYTES_MAX { source } else { "null" });
    }

    /// The schema that says more: what it refers to, or the first of a choice that is not null.
    fn elsewhere(&self, schema: NodeId) -> Option<NodeId> {
        let refers = self.member(schema, "$ref").and_then(|reference| self.referred(&self.schema.string(reference)?));
        let choice = ["anyOf", "oneOf"].into_iter().find_map(|name| {
            let mut choices = self.schema.children(self.member(schema, name)?);
            choices.find(|choice| self.type_of(*choice).as_deref() != Some("null"))
        });
        refers.or(if self.member(schema, "properties").is_some() { None } else { choice })
    }

    fn referred(&self, reference: &str) -> Option<NodeId> {
        let mut at = 0;
        for step in reference.strip_prefix('#')?.split('/').skip(1) {
            at = self.member(at, &step.replace("~1", "/").replace("~0", "~"))?;
        }
        Some(at)
    }

    fn type_of(&self, schema: NodeId) -> Option<String> {
        let given = self.member(schema, "type").and_then(|given| match self.schema.shape(given) {
            Shape::Array => self.schema.children(given).find(|kind| self.schema.source(*kind) != "\"null\""),
            _ => Some(given),
        });
        let implied = || self.member(schema, "properties").map(|_| "object".to_owned());
        given.and_then(|given| self.schema.string(given)).map(Into::into).or_else(implied)
    }

    fn object(&mut self, schema: NodeId, depth: usize) {
        let mut properties: Vec<NodeId> =
            self.member(schema, "properties").map(|list| self.schema.children(list).collect()).unwrap_or_default();
        let required = self.required(schema);
        let rank = |property: &NodeId| {
            let name = self.schema.key(*property);
            name.and_then(|name| required.get(name.as_ref()).copied()).unwrap_or(usize::MAX)
        };
        properties.sort_by_cached_key(rank);
        // What is optional far down is left to those who need it.
        if depth > 1 {
            properties.retain(|property| rank(property) != usize::MAX);
        }
        self.json.push('{');
        for (index, property) in properties.into_iter().enumerate() {
            if self.json.len() > BYTES_MAX {
                break;
            }
            if index > 0 {
                self.json.push(',');
            }
            self.json.push_str(self.schema.key_source(property).unwrap_or("\"\""));
            self.json.push(':');
            self.value(property, depth + 1);
        }
        self.json.push('}');
    }

    fn required(&self, schema: NodeId) -> std::collections::HashMap<String, usize> {
        let list = self.member(schema, "required");
        let names = list.into_iter().flat_map(|list| self.schema.children(list));
        names.enumerate().filter_map(|(rank, name)| Some((self.schema.string(name)?.into_owned(), rank))).collect()
    }

    /// Empty, unless something has to be in it.
    fn array(&mut self, schema: NodeId, depth: usize) {
        let least = self.member(schema, "minItems").map_or("0", |least| self.schema.source(least));
        match self.member(schema, "items") {
            Some(items) if least != "0" => {
                self.json.push('[');
                self.value(items, depth + 1);
                self.json.push(']');
            }
            _ => self.json.push_str("[]"),
        }
    }

    fn number(&mut self, schema: NodeId) {
        let least = self.member(schema, "minimum").filter(|least| self.schema.shape(*least) == Shape::Number);
        let least = least.map(|least| self.schema.source(least)).filter(|least| !least.starts_with('-'));
        self.json.push_str(least.unwrap_or("0"));
    }

    fn member(&self, schema: NodeId, name: &str) -> Option<NodeId> {
        (self.schema.shape(schema) == Shape::Object).then(|| self.schema.member(schema, name)).flatten()
    }
}
