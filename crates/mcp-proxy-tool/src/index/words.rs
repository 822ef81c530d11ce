//! The words of a text, as they are compared: in small letters, without their endings, and cut where names are made
//! of several.

/// Calls `each` with the words of a text.
pub(super) fn words(text: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut before = Kind::Other;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let kind = Kind::of(letter);
        let next = letters.peek().map_or(Kind::Other, |letter| Kind::of(*letter));
        if !word.is_empty() && begins_word(before, kind, next) {
            finish(&mut word, &mut each);
        }
        match letter {
            _ if kind == Kind::Other => {}
            letter if letter.is_ascii() => word.push(letter.to_ascii_lowercase()),
            letter => word.extend(letter.to_lowercase()),
        }
        before = kind;
    }
    finish(&mut word, &mut each);
}

fn finish(word: &mut String, each: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        strip_ending(word);
        each(word);
        word.clear();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small,
    Capital,
    Digit,
    /// A letter that is a word, or the better part of one.
    Ideograph,
    Other,
}

impl Kind {
    fn of(letter: char) -> Self {
        match letter {
            'a'..='z' => Self::Small,
            'A'..='Z' => Self::Capital,
            '0'..='9' => Self::Digit,
            letter if letter.is_ascii() => Self::Other,
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => Self::Ideograph,
            letter if letter.is_uppercase() => Self::Capital,
            letter if letter.is_alphabetic() => Self::Small,
            letter if letter.is_numeric() => Self::Digit,
            _ => Self::Other,
        }
    }
}

/// Whether a letter of this kind begins a new word: `readFile`, `HTTPServer`, `sha256`, `read_file`.
fn begins_word(before: Kind, kind: Kind, next: Kind) -> bool {
    match (before, kind) {
        (Kind::Ideograph, _) | (_, Kind::Ideograph) => true,
        (Kind::Capital, Kind::Capital) => next == Kind::Small,
        (Kind::Capital, Kind::Small) => false,
        (before, kind) => before != kind,
    }
}

/// Makes one of `file` and `files`, `create`, `created` and `creating`. What remains need not be a word, only the
/// same for all of them.
fn strip_ending(word: &mut String) {
    if !word.is_ascii() {
        return;
    }
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.len() > 4 && ["sses", "ches", "shes", "xes"].iter().any(|ending| word.ends_with(ending)) {
        word.truncate(word.len() - 2);
    } else if word.len() > 3 && word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.pop();
    }
    if let Some(stem) = ["ing", "ed"].iter().find_map(|ending| word.strip_suffix(ending)).filter(|stem| is_stem(stem)) {
        let length = stem.len() - usize::from(is_doubled(stem));
        word.truncate(length);
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
}

fn is_stem(stem: &str) -> bool {
    stem.len() >= 3 && stem.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

/// `runn`, but not `call`.
fn is_doubled(stem: &str) -> bool {
    let letters = stem.as_bytes();
    matches!(letters, [.., one, other] if one == other && !b"lsz".contains(one))
}

/// Words that say nothing of what is wanted.
pub(super) fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 30] = [
        "a", "an", "and", "are", "as", "at", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it", "me",
        "my", "of", "on", "or", "that", "th", "the", "this", "to", "want", "what", "which", "with",
    ];
    FILLERS.contains(&word)
}

/// Whether a letter put in, taken out, changed or exchanged with its neighbour makes one word of the other.
pub(super) fn differ_by_one_edit(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if long.len() - short.len() > 1 {
        return false;
    }
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[same..], &long[same..]);
    if short.len() < long.len() {
        return *short == long[1..];
    }
    match (short, long) {
        ([a, b, rest @ ..], [c, d, others @ ..]) if a == d && b == c && rest == others => true,
        ([_, rest @ ..], [_, others @ ..]) => rest == others,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words(text, |word| found.push(word.to_owned()));
        found
    }

    #[test]
    fn names_are_cut_into_words() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split(text), expected, "{text}");
        check("readText", &["read", "text"]);
        check("read_text-now", &["read", "text", "now"]);
        check("parseHTTPHeader", &["pars", "http", "header"]);
        check("sha256sum", &["sha", "256", "sum"]);
        check("git__log (all)", &["git", "log", "all"]);
        check("ÉtudeÜber", &["étude", "über"]);
        check("文件 read", &["文", "件", "read"]);
        check(" .,-_ ", &[]);
    }

    #[test]
    fn endings_make_no_difference() {
        let same = |forms: &[&str]| forms.iter().for_each(|form| assert_eq!(split(form), split(forms[0]), "{form}"));
        same(&["file", "files"]);
        same(&["create", "creates", "created", "creating"]);
        same(&["directory", "directories"]);
        same(&["search", "searches", "searching", "searched"]);
        same(&["run", "runs", "running"]);
        same(&["call", "calls", "called", "calling"]);
        same(&["issue", "issues"]);
        let stays = |word: &str| assert_eq!(split(word), [word]);
        ["string", "status", "class", "thing", "this", "red", "need"].into_iter().for_each(stays);
    }

    #[test]
    fn neighbours_differ_by_one_edit() {
        let check =
            |one: &str, other: &str, near: bool| assert_eq!(differ_by_one_edit(one, other), near, "{one} {other}");
        check("search", "serch", true);
        check("search", "seearch", true);
        check("search", "saarch", true);
        check("search", "saerch", true);
        check("search", "searc", true);
        check("search", "srch", false);
        check("search", "hcraes", false);
        check("search", "sorch", false);
        check("search", "ssaerch", false);
    }
}
