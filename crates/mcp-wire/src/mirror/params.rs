//! Tool arguments that are repeated in headers. Which ones is written in a tool's input schema, as
//! `x-mcp-header`, so the lists of tools that pass by are remembered.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{decode_value, encode_value};
use crate::Message;
use crate::scan::{Span, batch_items, decode_string, member_at, object_members};

/// More tools than this with header annotations are not remembered: a server must not fill the memory.
const TOOLS_MAX: usize = 2_000;
/// More header annotations than this on one tool are not remembered: a server must not fill the memory.
const PARAMS_MAX: usize = 64;
/// A schema larger than this is not read: parsed, it would take many times its size.
const SCHEMA_BYTES_MAX: usize = 1024 * 1024;
const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "Mcp-Param-";

/// Keywords of JSON Schema whose value is a map of names to schemas.
const NAMED_SCHEMAS: [&str; 4] = ["patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords whose value is a schema or a list of them.
const NESTED_SCHEMAS: [&str; 14] = [
    "items",
    "prefixItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "oneOf",
    "anyOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
];

/// What is known of the tools of one server whose arguments go into headers. Tools without
/// annotations leave no trace here.
#[derive(Clone, Debug, Default)]
pub struct ToolParams {
    tools: HashMap<String, Annotated>,
    /// How many of them are illegal: mostly none, and then lists of tools pass unread.
    illegal: usize,
}

#[derive(Clone, Debug)]
enum Annotated {
    Legal(Vec<Param>),
    /// A client must not offer such a tool over HTTP.
    Illegal,
}

#[derive(Clone, Debug)]
struct Param {
    header: String,
    /// Where in the arguments the value stands.
    path: Vec<String>,
}

impl ToolParams {
    /// Remembers what the answer to a `tools/list` says. Later pages add to it, and what is said
    /// anew of a tool replaces what was known.
    pub fn learn(&mut self, tools_list_result: &[u8]) {
        if self.tools.is_empty() && !may_annotate(tools_list_result) {
            return;
        }
        for tool in tools(tools_list_result).map(|tool| &tools_list_result[tool.range()]) {
            if let Some(name) = name_of(tool) {
                self.remember(&name, annotations(tool));
            }
        }
    }

    fn remember(&mut self, name: &str, annotated: Annotated) {
        let before = self.tools.remove(name);
        self.illegal -= usize::from(matches!(before, Some(Annotated::Illegal)));
        let is_plain = matches!(&annotated, Annotated::Legal(params) if params.is_empty());
        if is_plain || self.tools.len() == TOOLS_MAX {
            return;
        }
        self.illegal += usize::from(matches!(annotated, Annotated::Illegal));
        self.tools.insert(name.to_owned(), annotated);
    }

    /// The headers that repeat arguments of this call, by name and encoded value. An argument that is
    /// missing or `null` has none.
    pub fn headers(&self, tools_call: &Message) -> Vec<(String, String)> {
        if self.tools.is_empty() || tools_call.method().as_deref() != Some("tools/call") {
            return Vec::new();
        }
        let name = tools_call.name();
        let Some(Annotated::Legal(params)) = name.and_then(|name| self.tools.get(&*name)) else { return Vec::new() };
        let mut values = vec![None; params.len()];
        if let Some(arguments) = member_at(tools_call.bytes(), ["params", "arguments"]) {
            let wanted: Vec<usize> = (0..params.len()).collect();
            find_values(tools_call.slice(arguments), params, &wanted, 0, &mut values);
        }
        let header = |(param, value): (&Param, Option<&[u8]>)| Some((param.header.clone(), header_value(value?)?));
        params.iter().zip(values).filter_map(header).collect()
    }

    /// Whether the headers of a call repeat its arguments as they must. `seen` gives every value of
    /// the header it is asked for; the name of the first header that is wrong comes back.
    pub fn check<'a>(&self, tools_call: &Message, seen: impl Fn(&str) -> Vec<&'a [u8]>) -> Result<(), String> {
        for (name, expected) in self.headers(tools_call) {
            let is_same = match seen(&name)[..] {
                [value] => match (decode_value(value), decode_value(expected.as_bytes())) {
                    (Some(value), Some(expected)) => value == expected || is_same_integer(&value, &expected),
                    _ => false,
                },
                _ => false,
            };
            if !is_same {
                return Err(name);
            }
        }
        Ok(())
    }

    /// The answer to a `tools/list` without the tools that were learned to be illegal, and with every
    /// other byte as it was. `None` if there is nothing to leave out.
    pub fn without_illegal_tools(&self, result: &[u8]) -> Option<Vec<u8>> {
        if self.illegal == 0 {
            return None;
        }
        let items: Vec<Span> = tools(result).collect();
        let mut kept = Vec::with_capacity(result.len());
        let mut copied = 0;
        let mut is_first = true;
        for (at, item) in items.iter().map(|item| item.range()).enumerate() {
            if !self.is_illegal(&result[item.clone()]) {
                is_first = false;
                continue;
            }
            // A comma goes with it: the one before, or the one after where nothing stands before.
            let (start, end) = match (is_first, items.get(at + 1)) {
                (true, Some(next)) => (item.start, next.range().start),
                (true, None) => (item.start, item.end),
                (false, _) => (items[at - 1].range().end, item.end),
            };
            kept.extend_from_slice(&result[copied..start]);
            copied = end;
        }
        kept.extend_from_slice(&result[copied..]);
        (copied > 0).then_some(kept)
    }

    fn is_illegal(&self, tool: &[u8]) -> bool {
        name_of(tool).is_some_and(|name| matches!(self.tools.get(&*name), Some(Annotated::Illegal)))
    }
}

/// The tools in the answer to a `tools/list`.
fn tools(result: &[u8]) -> impl Iterator<Item = Span> {
    let list = member_at(result, ["result", "tools"]).map_or(0..0, Span::range);
    batch_items(&result[list.clone()]).map(move |tool| tool.shifted(list.start))
}

fn name_of(tool: &[u8]) -> Option<Cow<'_, str>> {
    decode_string(&tool[member_at(tool, ["name"])?.range()])
}

/// Whether a list could hold an annotation. Its hyphens can only be spelled otherwise by number.
fn may_annotate(list: &[u8]) -> bool {
    [ANNOTATION, "\\u"].iter().any(|sign| memchr::memmem::find(list, sign.as_bytes()).is_some())
}

/// Finds the values of the `wanted` parameters, whose paths lead to `object` with their first `depth`
/// steps. One walk serves them all: a call may be large, and a tool have many annotations.
fn find_values<'a>(
    object: &'a [u8],
    params: &[Param],
    wanted: &[usize],
    depth: usize,
    values: &mut [Option<&'a [u8]>],
) {
    for (key, span) in object_members(object) {
        let value = &object[span.range()];
        let here: Vec<usize> = wanted.iter().copied().filter(|&param| params[param].path[depth] == key).collect();
        let (ends, passes): (Vec<usize>, Vec<usize>) =
            here.into_iter().partition(|&param| params[param].path.len() == depth + 1);
        ends.into_iter().for_each(|param| values[param] = Some(value));
        if !passes.is_empty() {
            // Of a key that stands twice the last one counts, with all that it does not hold.
            passes.iter().for_each(|&param| values[param] = None);
            find_values(value, params, &passes, depth + 1, values);
        }
    }
}

/// A JSON scalar as a header says it. Numbers keep the spelling they have in the body.
fn header_value(json: &[u8]) -> Option<String> {
    match json[0] {
        b'"' => decode_string(json).map(|text| encode_value(&text)),
        b'{' | b'[' | b'n' => None,
        _ => std::str::from_utf8(json).ok().map(encode_value),
    }
}

fn annotations(tool: &[u8]) -> Annotated {
    let mut params = Vec::new();
    let json = member_at(tool, ["inputSchema"]).map_or(&b""[..], |schema| &tool[schema.range()]);
    if !may_annotate(json) || json.len() > SCHEMA_BYTES_MAX {
        return Annotated::Legal(params);
    }
    let Ok(schema) = serde_json::from_slice::<Value>(json) else { return Annotated::Legal(params) };
    match collect(&schema, &mut Vec::new(), true, &mut params) {
        Ok(()) => Annotated::Legal(params),
        Err(Illegal) => Annotated::Illegal,
    }
}

struct Illegal;

/// Collects the annotations of `schema` and what it holds. One that does not describe a fixed place
/// in the arguments is illegal: a header could not be derived from it.
fn collect<'a>(
    schema: &'a Value,
    path: &mut Vec<&'a str>,
    is_reachable: bool,
    params: &mut Vec<Param>,
) -> Result<(), Illegal> {
    let Some(members) = schema.as_object() else { return Ok(()) };
    if let Some(annotation) = members.get(ANNOTATION) {
        let is_placed = is_reachable && !path.is_empty();
        let param = param(annotation, members, path, params).filter(|_| is_placed).ok_or(Illegal)?;
        if params.len() < PARAMS_MAX {
            params.push(param);
        }
    }
    for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name);
        collect(property, path, is_reachable, params)?;
        path.pop();
    }
    for schema in unreachable(members) {
        collect(schema, path, false, params)?;
    }
    Ok(())
}

/// The schemas in `members` that describe no fixed place.
fn unreachable(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let named = NAMED_SCHEMAS.iter().filter_map(|keyword| members.get(*keyword)?.as_object());
    let nested = NESTED_SCHEMAS.iter().filter_map(|keyword| members.get(*keyword));
    named.flat_map(Map::values).chain(nested.flat_map(|nested| match nested {
        Value::Array(schemas) => schemas.as_slice(),
        schema => std::slice::from_ref(schema),
    }))
}

/// The parameter an annotation makes of a property, if all is as it must be.
fn param(annotation: &Value, property: &Map<String, Value>, path: &[&str], params: &[Param]) -> Option<Param> {
    let name = annotation.as_str().filter(|name| is_token(name))?;
    let is_scalar = matches!(property.get("type")?.as_str()?, "string" | "integer" | "boolean");
    let header = format!("{PREFIX}{name}");
    let is_taken = params.iter().any(|param| param.header.eq_ignore_ascii_case(&header));
    let path = path.iter().map(|&name| name.to_owned()).collect();
    (is_scalar && !is_taken).then_some(Param { header, path })
}

/// Whether `name` can be part of a header's name.
fn is_token(name: &str) -> bool {
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token_byte)
}

/// `7`, `+7` and `7.0` are spelled differently by different clients.
fn is_same_integer(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.fract() == 0.0);
    number(one).is_some() && number(one) == number(other)
}

#[cfg(test)]
mod tests;
