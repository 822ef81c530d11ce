//! From a place in a text as it reads to the place in the file where it is spelled, escapes and all.

use std::ops::Range;

/// Where the bytes `inner` of `reads` stand in `source`, which spells that text at `span`, quotes
/// included. The whole of it, if that cannot be told.
pub(crate) fn within(source: &str, span: Range<usize>, reads: &str, inner: Range<usize>) -> Range<usize> {
    let spelled = &source[span.clone()];
    let found = match opening(spelled) {
        0 => spelled.starts_with(reads).then_some(inner),
        quote => {
            let spelling = if spelled.starts_with('"') { escaped } else { single_quoted };
            follow(&spelled[quote..], reads, &inner, spelling).map(|found| found.start + quote..found.end + quote)
        }
    };
    found.map_or(span.clone(), |found| span.start + found.start..span.start + found.end)
}

/// How long the quotes are that it begins with.
fn opening(spelled: &str) -> usize {
    ["\"\"\"\n", "'''\n", "\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| spelled.starts_with(quote))
        .map_or(0, str::len)
}

/// Reads along, a character at a time, until both ends are met. `spelling` tells how many bytes spell a
/// character here.
fn follow(
    spelled: &str,
    reads: &str,
    inner: &Range<usize>,
    spelling: fn(&str, char) -> Option<usize>,
) -> Option<Range<usize>> {
    let (mut at, mut start, mut end) = (0, None, None);
    for (read, c) in reads.char_indices() {
        if read == inner.start {
            start = Some(at);
        }
        if read == inner.end {
            end = Some(at);
        }
        at += spelling(spelled.get(at..)?, c)?;
    }
    let start = start.or((inner.start >= reads.len()).then_some(at))?;
    Some(start..end.or((inner.end >= reads.len()).then_some(at))?.max(start))
}

fn single_quoted(spelled: &str, c: char) -> Option<usize> {
    // YAML writes the quote itself as two.
    let is_doubled = c == '\'' && spelled.starts_with("''");
    spelled.starts_with(c).then_some(if is_doubled { 2 } else { c.len_utf8() })
}

fn escaped(spelled: &str, c: char) -> Option<usize> {
    let Some(escape) = spelled.strip_prefix('\\') else {
        return spelled.starts_with(c).then_some(c.len_utf8());
    };
    Some(match escape.chars().next()? {
        'x' => 4,
        // What JSON needs two of.
        'u' if c > '\u{ffff}' => 12,
        'u' => 6,
        'U' => 10,
        other => 1 + other.len_utf8(),
    })
}

#[cfg(test)]
mod tests {
    use super::within;

    #[track_caller]
    fn check(spelled: &str, reads: &str, part: &str, expected: &str) {
        let at = reads.find(part).unwrap();
        let source = format!("key = {spelled} # end");
        let found = within(&source, 6..6 + spelled.len(), reads, at..at + part.len());
        assert_eq!(&source[found], expected);
    }

    #[test]
    fn a_place_in_a_text_is_found_in_its_spelling() {
        check("plain words", "plain words", "words", "words");
        check(r#""tol:x dur>1s""#, "tol:x dur>1s", "dur", "dur");
        check(r#""a \"b\" tol:x""#, r#"a "b" tol:x"#, "tol", "tol");
        check(r#""\u00e4\ud83d\ude00 tol""#, "ä😀 tol", "tol", "tol");
        check(r"'it''s tol'", "it's tol", "tol", "tol");
        check(r"'a\b \\ tol'", r"a\b \\ tol", "tol", "tol");
        check(r#""a\\b tol""#, r"a\b tol", "tol", "tol");
        check("'''\ntol'''", "tol", "tol", "tol");
        check(r#""a tol""#, "a tol", "", "");
    }

    #[test]
    fn what_cannot_be_followed_is_shown_whole() {
        check("folded\n  words", "folded words", "words", "folded\n  words");
        check(r#""\e""#, "something else", "else", r#""\e""#);
    }
}
