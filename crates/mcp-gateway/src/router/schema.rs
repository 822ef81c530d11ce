//! What we compose, held to the protocol's own schemas. They are not part of the project; without them beside
//! it the checks are left out, and say so.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

/// Holds a message's `result` or `params` to what the schema of a revision calls `name`.
#[track_caller]
pub(super) fn check(revision: &str, name: &str, value: &Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/mcp-schema").join(revision);
    let Ok(text) = std::fs::read_to_string(file.join("schema.json")) else {
        let _ = writeln!(std::io::stderr(), "SKIPPED in part: the official schemas are not beside the project");
        return;
    };
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
    assert!(schema[place].get(name).is_some(), "{revision} has no {name}");
    schema["$ref"] = json!(format!("#/{place}/{name}"));
    for others in ["anyOf", "oneOf", "type", "properties", "required"] {
        schema.as_object_mut().unwrap().remove(others);
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<_> =
        validator.iter_errors(value).map(|fault| format!("{fault} at {}", fault.instance_path())).collect();
    assert_eq!(faults, Vec::<String>::new(), "{revision} {name}: {value}");
}
