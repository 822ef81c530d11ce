//! Arguments and the schema a tool gives for them: whether they fit, and what they could look like.
//!
//! A schema comes from a server and is as hostile as anything else. Nothing is fetched for it, and one
//! that would take for ever to check against is not used; see [`effort`].

mod effort;
mod skeleton;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

pub(crate) use skeleton::skeleton;

use crate::json::{push_item, push_member};
use crate::text::fit;

/// Schemas and arguments larger than this are not checked: they come from servers, and real ones have a hundredth
/// of it.
const BYTES_MAX: usize = 1_000_000;
/// Faults shown of one set of arguments.
const FAULTS_MAX: usize = 20;
/// Cells of a fault's text, and of the path to it.
const WORDS_CELLS_MAX: usize = 200;
const PATH_CELLS_MAX: usize = 200;
/// Steps of one match of a pattern that needs backtracking, and its compiled size: schemas come from servers.
const BACKTRACK_MAX: usize = 20_000;
const PATTERN_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid,
    /// Where, as a path from the arguments' root, and what is wrong there. Clean.
    Invalid(Vec<(String, String)>),
    /// There is none to check against.
    NoSchema,
    /// It could not be used, and why. Clean.
    Unusable(String),
}

/// Holds arguments against a schema, by the draft that it names or else 2020-12.
pub(crate) fn check(schema_json: &str, arguments_json: &str) -> Verdict {
    if matches!(schema_json.trim(), "" | "null") {
        return Verdict::NoSchema;
    }
    if schema_json.len() > BYTES_MAX || arguments_json.len() > BYTES_MAX {
        return Verdict::Unusable("too large to check".to_owned());
    }
    let Ok(schema) = serde_json::from_str::<Value>(schema_json) else {
        return Verdict::Unusable("the schema is not JSON".to_owned());
    };
    let arguments = match serde_json::from_str::<Value>(arguments_json) {
        Ok(arguments) => arguments,
        Err(fault) => return Verdict::Invalid(vec![("$".to_owned(), words(&format!("not JSON: {fault}")))]),
    };
    if let Err(reason) = effort::is_bearable(&schema, &arguments) {
        return Verdict::Unusable(reason.to_owned());
    }
    match compiled(&schema) {
        Ok(validator) => judged(&validator, &arguments),
        Err(fault) => Verdict::Unusable(words(&fault.masked().to_string())),
    }
}

/// Patterns run in linear time where they can. Those that look around cannot, and are common in what
/// libraries generate; they get a bound instead.
fn compiled(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let linear = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX);
    let bounded = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_MAX).size_limit(PATTERN_BYTES_MAX);
    jsonschema::options()
        .offline()
        .with_pattern_options(linear)
        .build(schema)
        .or_else(|_| jsonschema::options().offline().with_pattern_options(bounded).build(schema))
}

fn judged(validator: &Validator, arguments: &Value) -> Verdict {
    let fault = |fault: ValidationError<'_>| {
        let path = path(arguments, fault.instance_path().as_str());
        (fit(&path, PATH_CELLS_MAX, false), words(&fault.masked().to_string()))
    };
    let faults: Vec<_> = validator.iter_errors(arguments).take(FAULTS_MAX).map(fault).collect();
    if faults.is_empty() { Verdict::Valid } else { Verdict::Invalid(faults) }
}

/// A JSON pointer as a path. Whether a number is a name or an item, the arguments tell.
fn path(arguments: &Value, pointer: &str) -> String {
    let mut path = "$".to_owned();
    let mut at = Some(arguments);
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        match (at, name.parse()) {
            (Some(Value::Array(_)), Ok(index)) => push_item(&mut path, index),
            _ => push_member(&mut path, &name),
        }
        at = at.and_then(|value| value.pointer(&format!("/{step}")));
    }
    path
}

fn words(text: &str) -> String {
    fit(text, WORDS_CELLS_MAX, false)
}

#[cfg(test)]
mod tests;
