//! What a capability is called with: the words of the command line in the light of what it takes.

use mcp_client::Type;
use serde_json::Value;
use serde_json::value::RawValue;

use super::info::Known;
use super::schema::{self, Parameter, type_of};
use super::words::{self, Word, Written};
use crate::failure::Failure;

/// Each argument with its JSON, which keeps its digits.
pub(super) type Members = Vec<(String, String)>;

/// `key=value…`, in the light of what the capability takes.
pub(super) fn of_words(words: &[Word], known: &Known) -> Result<Members, Failure> {
    let parameters = schema::parameters(known.kind, &known.item);
    words.iter().map(|word| of_word(word, known.kind, &parameters)).collect()
}

fn of_word(Word { key, value }: &Word, kind: Type, parameters: &[Parameter]) -> Result<(String, String), Failure> {
    let parameter = parameters.iter().find(|parameter| parameter.name == *key);
    let takes_no_text = || parameter.is_some_and(|parameter| !parameter.types.is_empty() && !parameter.takes("string"));
    let json = match (value, kind) {
        // Arguments of prompts are texts, whatever stands in them.
        (Written::Json(json), Type::Prompt) if !matches!(serde_json::from_str(json.get()), Ok(Value::String(_))) => {
            quoted_text(json.get())
        }
        (Written::Json(json), _) => json.get().to_owned(),
        (Written::File(text), Type::Tool) if takes_no_text() => words::json(key, text)?.get().to_owned(),
        (Written::File(text), _) => quoted_text(text),
        (Written::Plain(text), Type::Tool) => json_or_text(text, parameter),
        (Written::Plain(text), Type::Prompt | Type::Resource) => quoted_text(text),
    };
    Ok((key.clone(), json))
}

/// A value that is JSON counts as that, unless the schema wants text there.
fn json_or_text(value: &str, parameter: Option<&Parameter>) -> String {
    let Ok(json) = RawValue::from_string(value.to_owned()) else { return quoted_text(value) };
    let name = serde_json::from_str::<Value>(value).map_or("string", |value| type_of(&value));
    match parameter {
        Some(parameter) if parameter.takes("string") && !parameter.takes(name) => quoted_text(value),
        // A text in quotes is the text with its quotes, where only texts are wanted.
        Some(parameter) if parameter.takes("string") && name == "string" => quoted_text(value),
        _ => json.get().to_owned(),
    }
}

fn quoted_text(text: &str) -> String {
    Value::from(text).to_string()
}

/// An object in its own order.
pub(super) struct Object(pub Members);

impl<'de> serde::Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> serde::de::Visitor<'de> for Walk {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((key, value.get().to_owned()));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Walk).map(Self)
    }
}

/// What is missing, and what nobody would take, is said before anything is sent.
pub(super) fn check(members: &Members, known: &Known, path: &str) -> Result<(), Failure> {
    let parameters = schema::parameters(known.kind, &known.item);
    let is_given = |parameter: &&Parameter| members.iter().any(|(key, _)| *key == parameter.name);
    let missing: Vec<String> = parameters
        .iter()
        .filter(|parameter| parameter.is_required && !is_given(parameter))
        .map(|parameter| format!("`{}`", parameter.name))
        .collect();
    if !missing.is_empty() {
        let failure = Failure::usage(format!("`{path}` needs {}", missing.join(", ")));
        return Err(failure.hint(format!("`mcp-proxy info {path}` shows what it takes; give it as key=value")));
    }
    let takes_more = known.kind == Type::Tool && !schema::is_closed(&known.item);
    let Some(key) = strangers(members, &parameters).next().filter(|_| !takes_more) else { return Ok(()) };
    let failure = match known.kind {
        Type::Resource => Failure::usage(format!("`{path}` has no place for `{key}`")),
        Type::Tool | Type::Prompt => Failure::usage(format!("`{path}` takes no `{key}`")),
    };
    Err(match (nearest(key, &parameters), known.kind) {
        (Some(near), _) => failure.hint(format!("did you mean `{near}`?")),
        (None, Type::Resource) => failure.hint(format!("a template has places such as `{{{key}}}`")),
        (None, _) => failure.hint(format!("`mcp-proxy info {path}` shows what it takes")),
    })
}

/// What is sent although nothing says that it is taken, and is more likely a slip.
pub(super) fn doubts(members: &Members, known: &Known, path: &str) -> Vec<String> {
    let parameters = schema::parameters(known.kind, &known.item);
    if parameters.is_empty() || schema::is_open(&known.item) {
        return Vec::new();
    }
    let doubt = |key: &str| {
        // Every other letter is near a name of one.
        let near = nearest(key, &parameters)
            .filter(|_| key.chars().count() > 1)
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        format!("`{key}` is not a parameter of {path}{near}")
    };
    strangers(members, &parameters).map(doubt).collect()
}

fn strangers<'a>(members: &'a Members, parameters: &'a [Parameter]) -> impl Iterator<Item = &'a str> {
    let is_known = |key: &str| parameters.iter().any(|parameter| parameter.name == key);
    members.iter().map(|(key, _)| key.as_str()).filter(move |key| !is_known(key))
}

fn nearest<'a>(key: &str, parameters: &'a [Parameter]) -> Option<&'a str> {
    mcp_filter::nearest(key, parameters.iter().map(|parameter| parameter.name.as_str()))
}

/// The arguments as one object.
pub(super) fn object(members: &Members) -> Option<Box<RawValue>> {
    let members: Vec<String> =
        members.iter().map(|(key, json)| format!("{}:{json}", Value::from(key.as_str()))).collect();
    RawValue::from_string(format!("{{{}}}", members.join(","))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(kind: Type, item: &str) -> Known {
        Known { kind, item: RawValue::from_string(item.to_owned()).unwrap() }
    }

    const TOOL: &str = r#"{"inputSchema":{"properties":{"text":{"type":"string"},"n":{"type":"integer"},
        "either":{"type":["string","number"]},"choice":{"enum":["a","b"]}},"required":["text"],"additionalProperties":false}}"#;

    #[track_caller]
    fn check_word(kind: Type, word: &str, expected: &str) {
        let members = of_words(&words::read(&[word.to_owned()]).unwrap(), &known(kind, TOOL)).unwrap();
        assert_eq!(object(&members).unwrap().get(), expected, "{word}");
    }

    #[test]
    fn values_are_json_unless_text_is_wanted() {
        check_word(Type::Tool, "n=3", r#"{"n":3}"#);
        check_word(Type::Tool, "n=1.50e3", r#"{"n":1.50e3}"#);
        check_word(Type::Tool, "text=3", r#"{"text":"3"}"#);
        check_word(Type::Tool, "text=\"3\"", r#"{"text":"\"3\""}"#);
        check_word(Type::Tool, "text=a=b", r#"{"text":"a=b"}"#);
        check_word(Type::Tool, "text=", r#"{"text":""}"#);
        check_word(Type::Tool, "either=3", r#"{"either":3}"#);
        check_word(Type::Tool, "either=true", r#"{"either":"true"}"#);
        check_word(Type::Tool, "choice=7", r#"{"choice":"7"}"#);
        check_word(Type::Tool, "other={\"a\":[1]}", r#"{"other":{"a":[1]}}"#);
        check_word(Type::Tool, "other=[1", r#"{"other":"[1"}"#);
        check_word(Type::Tool, "text:=3", r#"{"text":3}"#);
        check_word(Type::Tool, "a:b=3", r#"{"a:b":3}"#);
        check_word(Type::Prompt, "n=3", r#"{"n":"3"}"#);
        check_word(Type::Prompt, "n:=[3]", r#"{"n":"[3]"}"#);
    }

    #[test]
    fn a_file_is_json_where_no_text_is_taken() {
        let read = |key: &str, text: &str| {
            let word = Word { key: key.into(), value: Written::File(text.into()) };
            of_words(&[word], &known(Type::Tool, TOOL)).map(|members| object(&members).unwrap().get().to_owned())
        };
        assert_eq!(read("n", " 1.50\n").unwrap(), r#"{"n":1.50}"#);
        assert_eq!(read("text", "3\n").unwrap(), r#"{"text":"3\n"}"#);
        assert_eq!(read("either", "3").unwrap(), r#"{"either":"3"}"#);
        assert_eq!(read("other", "3").unwrap(), r#"{"other":"3"}"#);
        assert!(read("n", "x").unwrap_err().what().starts_with("the value of `n` is not JSON"));
    }

    #[test]
    fn what_is_likely_a_slip_is_doubted() {
        let doubts = |schema: &str| {
            let tool = known(Type::Tool, &format!(r#"{{"inputSchema":{schema}}}"#));
            doubts(&vec![("pth".into(), "1".into())], &tool, "t")
        };
        assert_eq!(doubts(r#"{"properties":{"path":{}}}"#), ["`pth` is not a parameter of t; did you mean `path`?"]);
        assert!(doubts(r#"{"properties":{"path":{}},"additionalProperties":true}"#).is_empty());
        assert!(doubts(r#"{"properties":{"path":{}},"additionalProperties":{"type":"string"}}"#).is_empty());
        assert!(doubts("{}").is_empty());
    }

    #[test]
    fn a_letter_is_not_taken_for_another() {
        let tool = known(Type::Tool, r#"{"inputSchema":{"properties":{"a":{},"b":{}}}}"#);
        assert_eq!(doubts(&vec![("c".into(), "1".into())], &tool, "t"), ["`c` is not a parameter of t"]);
    }

    #[test]
    fn what_is_missing_or_strange_is_said_before_it_is_sent() {
        let tool = known(Type::Tool, TOOL);
        let check =
            |json: &str| check(&words::of_json(json).unwrap(), &tool, "t").map_err(|failure| failure.what().to_owned());
        assert_eq!(check(r#"{"text":"x"}"#), Ok(()));
        assert_eq!(check("{}"), Err("`t` needs `text`".into()));
        assert_eq!(check(r#"{"text":"x","tetx":1}"#), Err("`t` takes no `tetx`".into()));
    }

    #[test]
    fn an_object_keeps_its_order_and_digits() {
        assert_eq!(
            object(&words::of_json(r#"{ "b": 1.50, "a": [ 2 ] }"#).unwrap()).unwrap().get(),
            r#"{"b":1.50,"a":[ 2 ]}"#
        );
    }
}
