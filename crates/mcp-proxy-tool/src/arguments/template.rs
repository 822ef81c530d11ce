//! Addresses with holes in them, filled in: RFC 6570 up to its third level. Values are single ones, so that lists
//! and objects in them are mistakes.

use std::borrow::Cow;
use std::fmt::Write;

use mcp_wire::scan;

use super::Mistake;
use super::given::{bounded, names, said, shown, wrong};
use crate::members::Members;

/// Variables of one template, and bytes of the address that comes of it: both far beyond any that is used, and few
/// enough that a short request cannot make a long one.
const VARIABLES_MAX: usize = 100;
const ADDRESS_BYTES_MAX: usize = 64 * 1024;

/// What an expression writes, by its operator: section 3.2.1 of the RFC, appendix A.
struct Style {
    first: &'static str,
    between: &'static str,
    /// `name=value`, and what follows the name of an empty value.
    named: Option<&'static str>,
    keeps_reserved: bool,
    /// Parameters of a query may be left out.
    optional: bool,
}

const PLAIN: Style = Style { first: "", between: ",", named: None, keeps_reserved: false, optional: false };

fn style(operator: u8) -> Option<Style> {
    Some(match operator {
        b'+' => Style { keeps_reserved: true, ..PLAIN },
        b'#' => Style { first: "#", keeps_reserved: true, ..PLAIN },
        b'.' => Style { first: ".", between: ".", ..PLAIN },
        b'/' => Style { first: "/", between: "/", ..PLAIN },
        b';' => Style { first: ";", between: ";", named: Some(""), ..PLAIN },
        b'?' => Style { first: "?", between: "&", named: Some("="), optional: true, ..PLAIN },
        b'&' => Style { first: "&", between: "&", named: Some("="), optional: true, ..PLAIN },
        _ => return None,
    })
}

enum Part<'a> {
    Literal(&'a str),
    Expression(Style, Vec<Variable<'a>>),
}

struct Variable<'a> {
    name: &'a str,
    /// Only so many characters of the value.
    letters_max: Option<usize>,
}

/// A name that a template has a place for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub name: String,
    /// It is part of the address, not of a query that may do without.
    pub is_required: bool,
}

/// What a template wants to be filled in, each once.
pub fn wanted(template: &str) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
    let template = Template::of(template);
    for (style, variable) in template.iter().flat_map(Template::variables) {
        let is_required = !style.optional;
        match all.iter_mut().find(|known| known.name == variable.name) {
            Some(known) => known.is_required |= is_required,
            None => all.push(Wanted { name: variable.name.to_owned(), is_required }),
        }
    }
    all
}

/// The address that comes of a template and an object of values, as JSON. What is no template is one already.
pub fn filled(template: &str, values: &[u8]) -> Result<String, Mistake> {
    let values = Members::of(values).unwrap_or_else(Members::none);
    Template::of(template).map_or_else(|| Ok(template.to_owned()), |template| template.fill(&values))
}

pub(super) struct Template<'a>(Vec<Part<'a>>);

impl<'a> Template<'a> {
    /// None if nothing in it is to be filled in, or it is no template.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}')?;
            parts.push(Part::Literal(literal));
            parts.push(read_expression(expression)?);
            rest = after;
        }
        parts.push(Part::Literal(rest));
        (parts.len() > 1).then_some(Self(parts))
    }

    fn variables(&self) -> impl Iterator<Item = (&Style, &Variable<'a>)> {
        let expressions = self.0.iter().filter_map(|part| match part {
            Part::Expression(style, variables) => Some((style, variables)),
            Part::Literal(_) => None,
        });
        expressions.flat_map(|(style, variables)| variables.iter().map(move |variable| (style, variable)))
    }

    /// Puts the values in; `values` is an object.
    pub(super) fn fill(&self, values: &Members<'_>) -> Result<String, Mistake> {
        if self.variables().count() > VARIABLES_MAX {
            return wrong(format_args!("the template `path` has more than {VARIABLES_MAX} variables"));
        }
        self.refuse_unknown(values)?;
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => filled.push_str(text),
                Part::Expression(style, variables) => expand(style, variables, values, &mut filled)?,
            }
        }
        Ok(filled)
    }

    fn refuse_unknown(&self, values: &Members<'_>) -> Result<(), Mistake> {
        let mut known: Vec<_> = self.variables().map(|(_, variable)| variable.name).collect();
        known.dedup();
        match values.iter().find(|(key, _)| !key.is_some_and(|key| known.contains(&key))) {
            Some((key, _)) => wrong(format_args!(
                "`args` has {}, which is not in the template `path`; it has {}",
                said(key.unwrap_or("\u{fffd}")),
                bounded(&names(&known))
            )),
            None => Ok(()),
        }
    }
}

fn read_expression(text: &str) -> Option<Part<'_>> {
    let (style, names) = match style(*text.as_bytes().first()?) {
        Some(style) => (style, &text[1..]),
        None => (PLAIN, text),
    };
    let variables = names.split(',').map(read_variable).collect::<Option<_>>()?;
    Some(Part::Expression(style, variables))
}

fn read_variable(text: &str) -> Option<Variable<'_>> {
    // An asterisk means something for lists only.
    let text = text.strip_suffix('*').unwrap_or(text);
    let (name, letters_max) = match text.split_once(':') {
        Some((name, letters)) => (name, Some(letters.parse().ok()?)),
        None => (text, None),
    };
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.%-".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_of_name)).then_some(Variable { name, letters_max })
}

fn expand(style: &Style, variables: &[Variable<'_>], values: &Members<'_>, filled: &mut String) -> Result<(), Mistake> {
    let mut before = style.first;
    for variable in variables {
        let Some(json) = values.get(variable.name).filter(|json| *json != b"null") else {
            if style.optional {
                continue;
            }
            return wrong(format_args!(
                "`args` must have `{}`, which the template `path` needs",
                bounded(variable.name)
            ));
        };
        let value = single(variable.name, json)?;
        let end = variable.letters_max.and_then(|letters| value.char_indices().nth(letters));
        let value = &value[..end.map_or(value.len(), |(end, _)| end)];
        if filled.len().saturating_add(value.len()) > ADDRESS_BYTES_MAX {
            return wrong("the template `path` becomes too long with these `args`");
        }
        filled.push_str(before);
        before = style.between;
        if let Some(if_empty) = style.named {
            filled.push_str(variable.name);
            filled.push_str(if value.is_empty() { if_empty } else { "=" });
        }
        encode(value, style.keeps_reserved, filled);
    }
    Ok(())
}

fn single<'v>(name: &str, json: &'v [u8]) -> Result<Cow<'v, str>, Mistake> {
    match json.first() {
        Some(b'"') => {}
        Some(b'{' | b'[') | None => {
            let name = bounded(name);
            return wrong(format_args!(
                "`{name}` in `args` must be text, a number, true or false; given: {}",
                shown(json)
            ));
        }
        Some(_) => return Ok(String::from_utf8_lossy(json)),
    }
    match scan::decode_string(json) {
        Some(text) => Ok(text),
        None => wrong(format_args!("`{}` in `args` is text that cannot be decoded", bounded(name))),
    }
}

/// Writes text as a part of an address.
fn encode(text: &str, keeps_reserved: bool, address: &mut String) {
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let stays = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => true,
            b'%' => keeps_reserved && is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2)),
            byte => keeps_reserved && b":/?#[]@!$&'()*+,;=".contains(&byte),
        };
        match stays {
            true => address.push(char::from(byte)),
            false => write!(address, "%{byte:02X}").expect("a string takes everything"),
        }
    }
}

fn is_hex(byte: Option<&u8>) -> bool {
    byte.is_some_and(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &str = r#"{"var":"value","hello":"Hello World!","path":"/foo/bar","empty":"","x":1024,"y":"768","half":"50%","done":"a%20b","yes":true}"#;

    /// Fills in those of the values that the template names.
    fn filled(template: &str) -> Result<String, Mistake> {
        let template = Template::of(template).unwrap();
        let mut values = Members::of(VALUES.as_bytes()).unwrap();
        let wanted: Vec<_> = template.variables().map(|(_, variable)| variable.name.to_owned()).collect();
        for key in ["var", "hello", "path", "empty", "x", "y", "half", "done", "yes"] {
            if !wanted.iter().any(|name| name == key) {
                values.remove(key);
            }
        }
        template.fill(&values)
    }

    #[test]
    fn expressions_expand_as_the_rfc_has_it() {
        let check = |template: &str, expected: &str| assert_eq!(filled(template).unwrap(), expected, "{template}");
        check("{var}", "value");
        check("a/{hello}/b", "a/Hello%20World%21/b");
        check("{+hello}", "Hello%20World!");
        check("{+path}/here", "/foo/bar/here");
        check("{path}", "%2Ffoo%2Fbar");
        check("{half}", "50%25");
        check("{+half}", "50%25");
        check("{+done}", "a%20b");
        check("{done}", "a%2520b");
        check("X{#var}", "X#value");
        check("{#path,x}/here", "#/foo/bar,1024/here");
        check("{x,y}", "1024,768");
        check("{/var,x}/here", "/value/1024/here");
        check("{.x,y}", ".1024.768");
        check("{;x,y,empty}", ";x=1024;y=768;empty");
        check("{?x,y}", "?x=1024&y=768");
        check("{?x,y,empty}", "?x=1024&y=768&empty=");
        check("{?x,undef}", "?x=1024");
        check("{?undef}", "");
        check("?fixed=yes{&x}", "?fixed=yes&x=1024");
        check("{var:3}{yes}{var*}", "valtruevalue");
    }

    #[test]
    fn what_is_no_template_is_none() {
        for text in ["plain", "a{", "a{}", "a{b", "a}b", "a{b c}", "a{=b}", "a{b:x}"] {
            assert!(Template::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        let check = |template: &str, values: &str, expected: &str| {
            let filled = Template::of(template).unwrap().fill(&Members::of(values.as_bytes()).unwrap());
            assert_eq!(filled.unwrap_err().0, expected);
        };
        check("a/{b}", "{}", "`args` must have `b`, which the template `path` needs");
        check("a/{b}", r#"{"b":null}"#, "`args` must have `b`, which the template `path` needs");
        let unknown = "`args` has \"c\", which is not in the template `path`; it has `b` and `d`";
        check("a/{b}{?d}", r#"{"b":1,"c":2}"#, unknown);
        check("a/{b}", r#"{"b":[1]}"#, "`b` in `args` must be text, a number, true or false; given: a list");
        let long = format!(r#"{{"b":"{}"}}"#, "x".repeat(ADDRESS_BYTES_MAX));
        check("a/{b}", &long, "the template `path` becomes too long with these `args`");
        let many = "{b}".repeat(VARIABLES_MAX + 1);
        check(&many, r#"{"b":1}"#, "the template `path` has more than 100 variables");
        check("a/{b}", r#"{"b":"\ud800"}"#, "`b` in `args` is text that cannot be decoded");
    }

    #[test]
    fn a_template_tells_what_it_wants() {
        let told: Vec<_> = wanted("f://{a}/{+b*}{?c,a}").into_iter().map(|it| (it.name, it.is_required)).collect();
        assert_eq!(told, [("a".into(), true), ("b".into(), true), ("c".into(), false)]);
        assert_eq!(wanted("f://plain"), []);
        assert_eq!(super::filled("f://{a}{?c}", br#"{"a":"1 2"}"#), Ok("f://1%202".into()));
        assert_eq!(super::filled("f://plain", b"{}"), Ok("f://plain".into()));
    }
}
