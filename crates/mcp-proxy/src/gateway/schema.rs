//! The JSON Schema of the gateway's own form, made of the table of keys.

use serde_json::{Map, Value, json};

use super::keys::{Key, NOTIFIED, TOP, Takes};

pub fn schema() -> Value {
    let mut schema = table(TOP);
    let Value::Object(top) = &mut schema else { return schema };
    top.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    top.insert("title".into(), "Configuration of an mcp-proxy gateway".into());
    top.insert("required".into(), json!(["servers"]));
    schema
}

/// Only these keys, each of which may also be `null`.
fn table(keys: &[Key]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let mut property = nullable(takes(key.takes));
        let about = match key.default {
            "" => key.about.to_owned(),
            default => format!("{} Default: {default}.", key.about),
        };
        if let Value::Object(property) = &mut property {
            property.insert("description".into(), about.into());
        }
        properties.insert(key.name.into(), property);
    }
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn nullable(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn takes(takes: Takes) -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let texts = json!({"type": "array", "items": text});
    match takes {
        Takes::Text | Takes::Secret => text,
        Takes::Flag => json!({"type": "boolean"}),
        Takes::Duration => duration(),
        Takes::DurationOrOff => json!({"anyOf": [duration(), {"enum": [0, false, "off"]}]}),
        Takes::Count { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Takes::Words(words) => json!({"enum": words}),
        Takes::Texts => json!({"type": "array", "items": spelled()}),
        Takes::Pairs => json!({"type": "object", "additionalProperties": spelled()}),
        Takes::Command => json!({"anyOf": [text, {"type": "array", "items": spelled(), "minItems": 1}]}),
        Takes::Listen => json!({"anyOf": [text, {"type": "integer", "minimum": 0, "maximum": 65535}]}),
        Takes::Notifications => json!({"anyOf": [{"enum": NOTIFIED}, texts]}),
        Takes::Tool => json!({"anyOf": [text, {"type": "boolean"}]}),
        Takes::ToolWith(keys) => json!({"anyOf": [text, {"type": "boolean"}, table(keys)]}),
        Takes::Policy => json!({"anyOf": [text, {"type": "object"}]}),
        Takes::List(keys) => json!({"type": "array", "items": table(keys)}),
        Takes::Named(keys) => json!({"type": "object", "additionalProperties": table(keys)}),
        Takes::Servers(keys) => json!({"anyOf": [
            {"type": "array", "items": table(keys), "minItems": 1},
            {"type": "object", "additionalProperties": table(keys), "minProperties": 1},
        ]}),
    }
}

fn spelled() -> Value {
    json!({"type": ["string", "number", "boolean"]})
}

fn duration() -> Value {
    json!({"anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400},
        {"type": "string", "pattern": "^[0-9.]+ *(ms|s|m|h)$"},
    ]})
}
