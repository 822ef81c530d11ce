//! The texts of a capability that people search, and what a word in each is worth.

use std::borrow::Cow;

use mcp_wire::scan::{decode_string, object_members};

use crate::members::items;

const OF_NAME: f32 = 4.0;
const OF_ADDRESS: f32 = 2.0;
const OF_TITLE: f32 = 2.5;
const OF_DESCRIPTION: f32 = 1.0;
const OF_PARAMETER: f32 = 1.2;
const OF_PARAMETER_DESCRIPTION: f32 = 0.5;

/// Gives each text with its weight.
pub(super) fn of(item: &[u8], mut text: impl FnMut(&str, f32)) {
    for (key, span) in object_members(item) {
        let json = &item[span.range()];
        let weight = match &*key {
            "name" => OF_NAME,
            "title" => OF_TITLE,
            "description" => OF_DESCRIPTION,
            "uri" | "uriTemplate" => OF_ADDRESS,
            "inputSchema" => {
                of_schema(json, &mut text);
                continue;
            }
            "arguments" => {
                items(json).for_each(|argument| of_argument(argument, &mut text));
                continue;
            }
            "annotations" => {
                say(member(json, "title"), OF_TITLE, &mut text);
                continue;
            }
            _ => continue,
        };
        say(Some(json), weight, &mut text);
    }
}

/// What the item is called, or where it is.
pub(super) fn names(item: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let named = object_members(item).filter(|(key, _)| matches!(&**key, "name" | "uri" | "uriTemplate"));
    named.filter_map(|(_, span)| decode_string(&item[span.range()]))
}

/// Whether it says of itself that it is not to be used any more.
pub(super) fn is_deprecated(item: &[u8]) -> bool {
    let text = member(item, "description").and_then(decode_string);
    text.is_some_and(|text| {
        text.trim_start().get(..BEGINS.len()).is_some_and(|start| start.eq_ignore_ascii_case(BEGINS))
            || text.contains("DEPRECATED")
    })
}

/// How descriptions of such things begin.
const BEGINS: &str = "deprecated";

fn of_schema(schema: &[u8], text: &mut impl FnMut(&str, f32)) {
    let Some(properties) = member(schema, "properties") else { return };
    for (name, span) in object_members(properties) {
        text(&name, OF_PARAMETER);
        say(member(&properties[span.range()], "description"), OF_PARAMETER_DESCRIPTION, text);
    }
}

fn of_argument(argument: &[u8], text: &mut impl FnMut(&str, f32)) {
    say(member(argument, "name"), OF_PARAMETER, text);
    say(member(argument, "description"), OF_PARAMETER_DESCRIPTION, text);
}

fn member<'j>(object: &'j [u8], name: &str) -> Option<&'j [u8]> {
    object_members(object).find(|(key, _)| key == name).map(|(_, span)| &object[span.range()])
}

fn say(json: Option<&[u8]>, weight: f32, text: &mut impl FnMut(&str, f32)) {
    if let Some(said) = json.and_then(decode_string) {
        text(&said, weight);
    }
}
