//! Paths into a message, as users write them: `$.params.arguments.pin`, `$.result.content[*].text`,
//! `$..ssn`. What a path leads to is masked whole.

use std::str::FromStr;

/// A path from the message itself to values in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// At any depth below, rather than right here.
    is_deep: bool,
    to: To,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum To {
    Member(String),
    Item(usize),
    Any,
}

/// A member or an item, as it is met.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Member(&'a str),
    Item(usize),
}

/// How far each of the paths has been followed: which path, how many of its steps.
pub(super) type Trail = Vec<(usize, usize)>;

/// The beginning of every path.
pub(super) fn beginning(paths: &[JsonPath]) -> Trail {
    (0..paths.len()).map(|path| (path, 0)).collect()
}

/// One step on. The second part says whether a path ends here.
pub(super) fn follow(paths: &[JsonPath], trail: &Trail, place: Place<'_>) -> (Trail, bool) {
    let (mut onward, mut arrived) = (Trail::new(), false);
    for &(path, at) in trail {
        let Some(step) = paths[path].steps.get(at) else { continue };
        if step.is_deep && !onward.contains(&(path, at)) {
            onward.push((path, at));
        }
        if step.to.leads_to(place) {
            arrived |= at + 1 == paths[path].steps.len();
            if !onward.contains(&(path, at + 1)) {
                onward.push((path, at + 1));
            }
        }
    }
    (onward, arrived)
}

impl To {
    fn leads_to(&self, place: Place<'_>) -> bool {
        match (self, place) {
            (Self::Any, _) => true,
            (Self::Member(name), Place::Member(met)) => name == met,
            (Self::Item(index), Place::Item(met)) => *index == met,
            _ => false,
        }
    }
}

impl FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rest = text.trim().strip_prefix('$').ok_or("a path begins with `$`, as in `$.params.arguments.pin`")?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let is_deep = rest.starts_with("..");
            if is_deep {
                rest = &rest[1..];
            }
            let (to, after) = match rest.as_bytes()[0] {
                b'.' if is_deep && rest.as_bytes().get(1) == Some(&b'[') => bracket(&rest[1..])?,
                b'.' => dotted(&rest[1..])?,
                b'[' => bracket(rest)?,
                _ => return Err(format!("expected `.` or `[` before `{rest}`")),
            };
            steps.push(Step { is_deep, to });
            rest = after;
        }
        if steps.is_empty() { Err("`$` alone is the whole message".into()) } else { Ok(Self { steps }) }
    }
}

/// `name…` or `*…`
fn dotted(text: &str) -> Result<(To, &str), String> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    match &text[..end] {
        "" => Err("a name is missing after `.`".into()),
        "*" => Ok((To::Any, &text[end..])),
        name => Ok((To::Member(name.to_owned()), &text[end..])),
    }
}

/// `[0]…`, `[*]…`, `['name']…` or `["name"]…`
fn bracket(text: &str) -> Result<(To, &str), String> {
    let inner = &text[1..];
    if let Some(quote @ (b'\'' | b'"')) = inner.bytes().next() {
        let (quote, inner) = (char::from(quote), &inner[1..]);
        let closed = inner.split_once(&format!("{quote}]"));
        let (name, after) = closed.ok_or_else(|| format!("`[{quote}` is never closed"))?;
        return Ok((To::Member(name.to_owned()), after));
    }
    let (index, after) = inner.split_once(']').ok_or("`[` is never closed")?;
    match index {
        "*" => Ok((To::Any, after)),
        index => index
            .parse()
            .map(|index| (To::Item(index), after))
            .map_err(|_| format!("`[{index}]` is neither a number, `*`, nor a name in quotes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        for text in ["$.a", "$.a.b[0].c", "$['a b'].c", "$[\"a.b\"]", "$..pin", "$.a[*].*", "$..[0]", "$..*"] {
            assert!(text.parse::<JsonPath>().is_ok(), "{text}");
        }
        for text in ["", "a", "$", "$a", "$.", "$.a.", "$[", "$[x]", "$['a]", "$.a[-1]", "$...a"] {
            assert!(text.parse::<JsonPath>().is_err(), "{text}");
        }
    }
}
