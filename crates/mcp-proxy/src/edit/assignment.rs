//! `--set PATH=VALUE`: a value put somewhere in a message, every other byte left alone.

use std::fmt;

use bytes::Bytes;
use mcp_engine::compare::Pattern;
use mcp_engine::compare::path::split_assignment;
use mcp_wire::splice::splice;
use serde_json::value::RawValue;

#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    path: Pattern,
    value: String,
}

pub(crate) fn assignment(text: &str) -> Result<Assignment, String> {
    let (path, value) = split_assignment(text).ok_or("expected PATH=VALUE")?;
    let path = Pattern::parse(path).map_err(|error| error.to_string())?;
    // What is no JSON is text.
    let value = match serde_json::from_str::<&RawValue>(value) {
        Ok(json) => json.get().to_owned(),
        Err(_) => serde_json::Value::from(value).to_string(),
    };
    Ok(Assignment { path, value })
}

impl Assignment {
    /// Puts the value wherever the message has the path. In how many places that was.
    pub(crate) fn replace(&self, message: &mut Bytes) -> usize {
        let places = self.path.find(message);
        for span in places.iter().rev() {
            *message = splice(message, *span, self.value.as_bytes());
        }
        places.len()
    }

    /// The same; where there is no such member, objects that could have it get it.
    pub(crate) fn put(&self, message: &mut Bytes) -> usize {
        match self.replace(message) {
            0 => self.add(message),
            places => places,
        }
    }

    fn add(&self, message: &mut Bytes) -> usize {
        let Some((objects, name)) = self.path.find_lacking(message) else { return 0 };
        let name = serde_json::Value::from(name);
        for object in objects.iter().rev() {
            let text = &message[object.range()];
            let inner = text[1..text.len() - 1].trim_ascii_end();
            let comma = if inner.trim_ascii().is_empty() { "" } else { "," };
            let with_member = [&b"{"[..], inner, format!("{comma}{name}:{}}}", self.value).as_bytes()].concat();
            *message = splice(message, *object, &with_member);
        }
        objects.len()
    }
}

/// The path.
impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_json_or_text() {
        let value = |text: &str| assignment(text).map(|assignment| assignment.value);
        assert_eq!(value("$.a=1e400").as_deref(), Ok("1e400"));
        assert_eq!(value("$.a={\"b\":[]}").as_deref(), Ok("{\"b\":[]}"));
        assert_eq!(value("$.a=hello \"you\"").as_deref(), Ok("\"hello \\\"you\\\"\""));
        assert_eq!(value("$.a=").as_deref(), Ok("\"\""));
        assert!(value("$.a").is_err() && value("a=1").is_err());
    }

    #[track_caller]
    fn check(set: &str, message: &'static str, expected: &str, places: usize) {
        let mut bytes = Bytes::from(message);
        assert_eq!(assignment(set).unwrap().put(&mut bytes), places);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_value_is_put_where_the_path_leads() {
        check("$.a.b=2", r#"{ "a": {"b" : 1e400 }, "c":1.0 }"#, r#"{ "a": {"b" : 2 }, "c":1.0 }"#, 1);
        check("$.a[*].b=x", r#"{"a":[{"b":1},{"b":[]}]}"#, r#"{"a":[{"b":"x"},{"b":"x"}]}"#, 2);
    }

    #[test]
    fn a_member_that_is_missing_is_added() {
        check("$.a.b=2", r#"{"a":{ }}"#, r#"{"a":{"b":2}}"#, 1);
        check("$.a['b\"c']=2", r#"{"a":{"x":1 } ,"y":0}"#, r#"{"a":{"x":1,"b\"c":2} ,"y":0}"#, 1);
        check("$.a[*].b=2", r#"{"a":[{"x":1},{},3]}"#, r#"{"a":[{"x":1,"b":2},{"b":2},3]}"#, 2);
        // Nothing that could have it, or nothing that says where.
        for set in ["$.a.b.c=1", "$..b=1", "$.a[0]=1", "$.a[*]=1"] {
            check(set, r#"{"a":1}"#, r#"{"a":1}"#, 0);
        }
    }
}
