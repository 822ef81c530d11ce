//! The name that somebody meant.

/// What other protocols, and people, call the parameters.
const ALIASES: [(&str, &str); 12] = [
    ("name", "path"),
    ("uri", "path"),
    ("url", "path"),
    ("arguments", "args"),
    ("params", "args"),
    ("parameters", "args"),
    ("input", "args"),
    ("kind", "type"),
    ("method", "action"),
    ("cursor", "offset"),
    ("calls", "operations"),
    ("search", "query"),
];

/// Edits between a written name and the one that was meant; further away is another word.
const EDITS_MAX: usize = 2;

pub(super) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let given = given.to_lowercase();
    let alias = ALIASES.iter().find(|(other, _)| *other == given).map(|(_, name)| *name);
    if let Some(name) = known.iter().find(|name| Some(**name) == alias) {
        return Some(name);
    }
    let near = known.iter().map(|name| (edits(&given, name), *name)).min()?;
    (near.0 <= EDITS_MAX && near.0 < near.1.len()).then_some(near.1)
}

/// How many letters must be put in, taken out or exchanged to make one word of the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (place, wanted) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != *wanted);
            diagonal = row[place + 1];
            row[place + 1] = exchanged.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found() {
        let known = ["action", "type", "path", "args", "limit"];
        let check = |given: &str, meant: Option<&str>| assert_eq!(nearest(given, &known), meant, "{given}");
        check("pth", Some("path"));
        check("Limits", Some("limit"));
        check("arguments", Some("args"));
        check("uri", Some("path"));
        check("query", None);
        check("search", None);
        check("", None);
    }
}
