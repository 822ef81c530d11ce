//! Templates of addresses (RFC 6570), as far as a command line can fill them in: its values are texts.

/// A piece in braces: `{id}`, `{+path}`, `{?q,lang}`.
struct Expression<'a> {
    operator: Option<char>,
    names: Vec<&'a str>,
}

/// How an operator writes its values.
struct Manner {
    first: &'static str,
    between: &'static str,
    is_named: bool,
    keeps_reserved: bool,
}

/// A name that a template has a place for.
pub struct Variable {
    pub name: String,
    /// The address is another without it; where it is part of a query or the like, it may be left out.
    pub is_required: bool,
}

enum Piece<'a> {
    Text(&'a str),
    Expression(Expression<'a>),
}

pub fn variables(template: &str) -> Vec<Variable> {
    let mut variables: Vec<Variable> = Vec::new();
    for piece in pieces(template) {
        let Piece::Expression(Expression { operator, names }) = piece else { continue };
        let is_required = !matches!(operator, Some('?' | '&' | ';' | '#'));
        for name in names {
            match variables.iter_mut().find(|known| known.name == name) {
                Some(known) => known.is_required |= is_required,
                None => variables.push(Variable { name: name.to_owned(), is_required }),
            }
        }
    }
    variables
}

/// The address, with what `value` has for each name in its place.
pub fn filled(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut address = String::new();
    for piece in pieces(template) {
        match piece {
            Piece::Text(text) => address.push_str(text),
            Piece::Expression(expression) => address.push_str(&expression.filled(&value)),
        }
    }
    address
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        let Some((inside, after)) = after.split_once('}') else { break };
        pieces.push(Piece::Text(text));
        pieces.push(Piece::Expression(Expression::of(inside)));
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

impl<'a> Expression<'a> {
    fn of(inside: &'a str) -> Self {
        let operator = inside.chars().next().filter(|first| "+#./;?&".contains(*first));
        let names = operator.map_or(inside, |operator| &inside[operator.len_utf8()..]).split(',');
        // How much of a value is meant, and that it may be a list, is more than a text needs.
        let names = names.map(|name| name.split([':', '*']).next().unwrap_or(name)).filter(|name| !name.is_empty());
        Self { operator, names: names.collect() }
    }

    fn filled(&self, value: impl Fn(&str) -> Option<String>) -> String {
        let (first, between, is_named, keeps_reserved) = match self.operator {
            Some('+') => ("", ",", false, true),
            Some('#') => ("#", ",", false, true),
            Some('.') => (".", ".", false, false),
            Some('/') => ("/", "/", false, false),
            Some(';') => (";", ";", true, false),
            Some('?') => ("?", "&", true, false),
            Some('&') => ("&", "&", true, false),
            _ => ("", ",", false, false),
        };
        let manner = Manner { first, between, is_named, keeps_reserved };
        let given = self.names.iter().filter_map(|name| Some((*name, value(name)?)));
        let written: Vec<String> = given.map(|(name, value)| manner.write(name, &value)).collect();
        if written.is_empty() { String::new() } else { format!("{first}{}", written.join(manner.between)) }
    }
}

impl Manner {
    fn write(&self, name: &str, value: &str) -> String {
        let value = if self.keeps_reserved { value.to_owned() } else { encoded(value) };
        match self.is_named {
            true if value.is_empty() && self.first == ";" => name.to_owned(),
            true => format!("{name}={value}"),
            false => value,
        }
    }
}

/// Everything that could mean something else in an address is spelled by its bytes.
fn encoded(text: &str) -> String {
    let spell = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, expected: &str) {
        let value = |name: &str| match name {
            "x" => Some("a b/ü".to_owned()),
            "y" => Some("1".to_owned()),
            _ => None,
        };
        assert_eq!(filled(template, value), expected, "{template}");
    }

    #[test]
    fn templates_are_filled_in() {
        check("f:///{x}/y", "f:///a%20b%2F%C3%BC/y");
        check("f:///{+x}", "f:///a b/ü");
        check("f://{y}/{y}", "f://1/1");
        check("f://h{/y,z}{.y}", "f://h/1.1");
        check("f://h{?y,z}{&y}", "f://h?y=1&y=1");
        check("f://h{?z}", "f://h");
        check("f://h{;y}{#x*}", "f://h;y=1#a b/ü");
        check("f://h/{y:3}{", "f://h/1{");
    }

    #[test]
    fn a_template_tells_its_variables() {
        let told: Vec<_> = variables("f://{a}/{+b*}{?c,a}").into_iter().map(|v| (v.name, v.is_required)).collect();
        assert_eq!(told, [("a".into(), true), ("b".into(), true), ("c".into(), false)]);
        assert!(variables("f://plain").is_empty());
    }
}
