//! JSON, with comments and commas before a closing bracket. Everything else is as the standard has it.

use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

use super::mistake::Mistake;
use super::tree::{Located, Member, Value};

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// `None` if there is nothing but comments.
pub(super) fn parse(text: &str) -> Result<Option<Located>, Mistake> {
    match parse_to_ast(text, &CollectOptions::default(), &OPTIONS) {
        Ok(parsed) => Ok(parsed.value.map(located)),
        Err(error) => Err(mistake(text, error.kind(), span(error.range()))),
    }
}

/// Marks an unterminated value at its end, and names the line that opened it.
fn mistake(text: &str, kind: &ParseErrorKind, at: Range<usize>) -> Mistake {
    let what = format!("this is not JSON: {}", lower(&kind.to_string()));
    let opened = match kind {
        ParseErrorKind::UnterminatedObject | ParseErrorKind::UnterminatedArray => "it was opened",
        ParseErrorKind::UnterminatedCommentBlock => "it begins",
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            // JSON has no line breaks in a string, so the quote is missing on this line.
            let line = text[at.start..].lines().next().unwrap_or_default();
            let end = at.start + line.trim_end().len();
            return Mistake::at(end..end, what).help("a quote is missing");
        }
        _ => return Mistake::at(at, what),
    };
    let end = text.trim_end().len();
    Mistake::at(end..end, what).other(opened, at.start)
}

/// What another program says begins like the rest of ours.
fn lower(what: &str) -> String {
    let mut letters = what.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn located(value: ast::Value<'_>) -> Located {
    let span = span(value.range());
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Nothing,
        ast::Value::BooleanLit(flag) => Value::Flag(flag.value),
        ast::Value::NumberLit(number) => Value::Number(number.value.to_owned()),
        ast::Value::StringLit(text) => Value::Text(text.value.into_owned()),
        ast::Value::Array(list) => Value::List(list.elements.into_iter().map(located).collect()),
        ast::Value::Object(object) => Value::Table(object.properties.into_iter().map(member).collect()),
    };
    Located { value, span }
}

fn member(property: ast::ObjectProp<'_>) -> Member {
    let key_span = span(property.name.range());
    Member { key: property.name.into_string(), key_span, value: located(property.value) }
}

fn span(range: jsonc_parser::common::Range) -> Range<usize> {
    range.start..range.end
}
