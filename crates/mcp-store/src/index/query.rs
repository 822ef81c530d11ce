//! What somebody typed, as a full-text query: words, all of which must be there, `"phrases"`, and
//! `beginnings*`. Everything else is text, so nothing that can be typed is an error of syntax.

/// A query that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query(String);

impl Query {
    /// `None` if there is no letter and no digit in it.
    pub fn parse(typed: &str) -> Option<Self> {
        let mut terms = Vec::new();
        let mut rest = typed.trim_start();
        while !rest.is_empty() {
            let (words, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => rest.split_at(rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len())),
            };
            let is_phrase = rest.starts_with('"');
            let (words, after, is_beginning) = match (is_phrase, after.strip_prefix('*'), words.strip_suffix('*')) {
                (true, Some(after), _) => (words, after, true),
                (false, _, Some(words)) => (words, after, true),
                _ => (words, after, false),
            };
            if words.contains(char::is_alphanumeric) {
                terms.push(term(words, is_beginning));
            }
            rest = after.trim_start();
        }
        (!terms.is_empty()).then(|| Self(terms.join(" AND ")))
    }

    /// In the syntax of FTS5.
    pub(super) fn as_match(&self) -> &str {
        &self.0
    }
}

/// A string of FTS5: what stands in it is cut into words like the text of messages, and they must
/// follow one another. A null byte would end it too early.
fn term(words: &str, is_beginning: bool) -> String {
    let words = words.replace('\0', " ").replace('"', "\"\"");
    format!("\"{words}\"{}", if is_beginning { " *" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        assert_eq!(Query::parse(typed).map(|query| query.0).unwrap_or_default(), expected, "{typed}");
    }

    #[test]
    fn words_phrases_and_beginnings() {
        check("one two", r#""one" AND "two""#);
        check(r#"  "one two"  three "#, r#""one two" AND "three""#);
        check("read_fi*", r#""read_fi" *"#);
        check(r#""read fi"*rest"#, r#""read fi" * AND "rest""#);
        check(r#"one"two""#, r#""one" AND "two""#);
    }

    #[test]
    fn everything_else_is_text() {
        check("NOT a OR b NEAR(c)", r#""NOT" AND "a" AND "OR" AND "b" AND "NEAR(c)""#);
        check("body:x -y ^z {col}: +w", r#""body:x" AND "-y" AND "^z" AND "{col}:" AND "+w""#);
        check(r#""open"#, r#""open""#);
        check("a\0b", r#""a b""#);
        check("** \" \" --- ()", "");
        check("", "");
        check("***x**", r#""***x*" *"#);
    }
}
