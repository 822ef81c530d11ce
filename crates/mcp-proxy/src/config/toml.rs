//! TOML. A key that comes twice is found by its parser.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::Mistake;
use super::tree::{Located, Member, Value};

/// The tree, and everything that is wrong with the text.
pub(super) fn parse(text: &str) -> Result<Located, Vec<Mistake>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let span = table.span();
        return Ok(Located { value: members(table.into_inner()), span });
    }
    let mistake = |error: toml::de::Error| {
        Mistake::at(error.span().unwrap_or(0..0), format!("this is not TOML: {}", error.message()))
    };
    Err(errors.into_iter().map(mistake).collect())
}

/// Its parser sorts them by name, and we by where they stand: the order may mean something.
fn members(table: DeTable<'_>) -> Value {
    let mut members: Vec<Member> = table
        .into_iter()
        .map(|(key, value)| Member { key_span: key.span(), key: key.into_inner().into_owned(), value: located(value) })
        .collect();
    members.sort_by_key(|member| member.key_span.start);
    Value::Table(members)
}

fn located(value: Spanned<DeValue<'_>>) -> Located {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => Value::Number(number.to_string()),
        DeValue::Float(number) => Value::Number(number.to_string()),
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(_) => Value::Other("a date or time"),
        DeValue::Array(list) => Value::List(list.into_iter().map(located).collect()),
        DeValue::Table(table) => members(table),
    };
    Located { value, span }
}
