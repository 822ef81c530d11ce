//! What a capability takes, as far as people and their shells need to know it.

use mcp_client::Type;
use mcp_proxy_tool::arguments::template::{self, Wanted};
use serde_json::Value;
use serde_json::value::RawValue;

/// Values of an `enum` that are shown; a longer list explains nothing.
const VALUES_MAX: usize = 20;

#[derive(Default)]
pub(super) struct Parameter {
    pub name: String,
    /// The JSON types that it may have; empty where the schema does not say.
    pub types: Vec<String>,
    pub is_required: bool,
    pub description: Option<String>,
    /// What the items of an array may be.
    pub items: Vec<String>,
    /// The values that it may have, where they are told.
    pub values: Vec<String>,
    pub default: Option<String>,
    /// Of an object, or of each object in an array; theirs are not told.
    pub fields: Vec<Parameter>,
}

/// What it takes, in the order of the definition as far as that has one.
pub(super) fn parameters(kind: Type, item: &RawValue) -> Vec<Parameter> {
    let item: Value = serde_json::from_str(item.get()).unwrap_or_default();
    match kind {
        Type::Tool => of_schema(&item["inputSchema"], &item["inputSchema"], true),
        Type::Prompt => item["arguments"].as_array().into_iter().flatten().filter_map(of_prompt).collect(),
        Type::Resource => item["uriTemplate"].as_str().map(of_template).unwrap_or_default(),
    }
}

/// Whether a tool takes nothing but what its schema names.
pub(super) fn is_closed(item: &RawValue) -> bool {
    let item: Value = serde_json::from_str(item.get()).unwrap_or_default();
    item["inputSchema"]["additionalProperties"] == false
}

/// Whether its schema says that it takes more than it names.
pub(super) fn is_open(item: &RawValue) -> bool {
    let item: Value = serde_json::from_str(item.get()).unwrap_or_default();
    item["inputSchema"]["additionalProperties"] == true || item["inputSchema"]["additionalProperties"].is_object()
}

/// The properties of an object; `root` is where references lead.
fn of_schema(schema: &Value, root: &Value, has_fields: bool) -> Vec<Parameter> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let named = properties.map(|(name, property)| {
        let is_required = required.contains(&name.as_str());
        Parameter { name: name.clone(), is_required, ..of_property(property, root, has_fields) }
    });
    let mut parameters: Vec<Parameter> = named.collect();
    // Some require what they do not describe.
    for name in required {
        if parameters.iter().all(|parameter| parameter.name != name) {
            parameters.push(Parameter { name: name.into(), is_required: true, ..Parameter::default() });
        }
    }
    parameters.sort_by_key(|parameter| !parameter.is_required);
    parameters
}

fn of_property(property: &Value, root: &Value, has_fields: bool) -> Parameter {
    let referred = referred(property, root);
    let items = self::referred(&referred["items"], root);
    let inside = if items.is_object() { items } else { referred };
    let said = |key: &str| property.get(key).or_else(|| referred.get(key));
    Parameter {
        types: types(referred),
        description: said("description").and_then(Value::as_str).map(str::to_owned),
        items: types(items),
        values: values(inside),
        default: said("default").map(plain),
        fields: if has_fields { of_schema(inside, root, false) } else { Vec::new() },
        ..Parameter::default()
    }
}

/// What a reference within the schema leads to, which is not followed further; anything else is itself.
fn referred<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

fn values(schema: &Value) -> Vec<String> {
    let values = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    let mut values: Vec<String> = values.map(plain).collect();
    if values.len() > VALUES_MAX {
        values.truncate(VALUES_MAX);
        values.push("…".into());
    }
    values
}

/// A value as it would be written behind `key=`.
fn plain(value: &Value) -> String {
    value.as_str().filter(|text| !text.is_empty()).map_or_else(|| value.to_string(), str::to_owned)
}

fn of_prompt(argument: &Value) -> Option<Parameter> {
    Some(Parameter {
        name: argument["name"].as_str()?.to_owned(),
        types: vec!["string".into()],
        is_required: argument["required"] == true,
        description: argument["description"].as_str().map(str::to_owned),
        ..Parameter::default()
    })
}

fn of_template(template: &str) -> Vec<Parameter> {
    let parameter = |Wanted { name, is_required }| Parameter {
        name,
        is_required,
        types: vec!["string".into()],
        ..Parameter::default()
    };
    template::wanted(template).into_iter().map(parameter).collect()
}

/// By `type`, by the alternatives of `anyOf` and `oneOf`, or by the values of `enum` and `const`.
fn types(property: &Value) -> Vec<String> {
    let mut found: Vec<String> = match &property["type"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if found.is_empty() {
        let alternatives = ["anyOf", "oneOf"].into_iter().flat_map(|key| property[key].as_array()).flatten();
        found.extend(alternatives.flat_map(types));
        let values = property["enum"].as_array().into_iter().flatten().chain(property.get("const"));
        found.extend(values.map(|value| type_of(value).to_owned()));
    }
    let mut seen = Vec::new();
    found.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    found
}

/// What JSON Schema calls the type of a value.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Parameter {
    /// What it may be, in words: `array of string (a | b), required, default a`.
    pub(super) fn shown_types(&self) -> String {
        let mut shown = self.types.join(" or ");
        if !self.items.is_empty() {
            shown.push_str(&format!(" of {}", self.items.join(" or ")));
        }
        if !self.values.is_empty() {
            shown.push_str(&format!(" ({})", self.values.join(" | ")));
        }
        let required = self.is_required.then(|| "required".to_owned());
        let default = self.default.as_ref().map(|default| format!("default {default}"));
        let parts = [Some(shown).filter(|shown| !shown.is_empty()), required, default];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Whether a value of this type may be meant.
    pub(super) fn takes(&self, name: &str) -> bool {
        self.types.iter().any(|known| known == name || known == "number" && name == "integer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_told_in_words() {
        let item = serde_json::json!({ "inputSchema": {
            "properties": {
                "mode": { "enum": ["fast", "slow"], "default": "fast" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "people": { "type": "array", "items": { "$ref": "#/$defs/person" } },
                "at": { "type": "object", "properties": { "x": { "type": "number", "default": 0 } } },
            },
            "required": ["people", "bare"],
            "$defs": { "person": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] } },
        } });
        let item = RawValue::from_string(item.to_string()).unwrap();
        let told = |parameters: &[Parameter]| -> Vec<String> {
            parameters.iter().map(|parameter| format!("{}: {}", parameter.name, parameter.shown_types())).collect()
        };
        let mut parameters = parameters(Type::Tool, &item);
        parameters.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(
            told(&parameters),
            [
                "at: object",
                "bare: required",
                "mode: string (fast | slow), default fast",
                "people: array of object, required",
                "tags: array of string",
            ]
        );
        assert_eq!(told(&parameters[0].fields), ["x: number, default 0"]);
        assert_eq!(told(&parameters[3].fields), ["name: string, required"]);
    }
}
