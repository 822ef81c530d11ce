//! One form for all spellings of a name or an address. Two texts with the same form are alike to
//! some reader: a person, a server that ignores case, a file system. A rule that refuses goes by
//! this form, so that no spelling walks around it.

mod letters;
mod uri;

use std::borrow::Cow;

pub use letters::{Folded, fold};
pub use uri::{plain_uri, unescaped};

/// `text` in lower case and plain letters, without what cannot be seen and without blanks at its
/// ends. Letters that look like none of ours stay. Borrowed where nothing changes.
pub fn skeleton(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        add(c, &mut plain);
    }
    let trimmed = plain.trim();
    match () {
        () if trimmed == text => Cow::Borrowed(text),
        () if trimmed.len() == plain.len() => Cow::Owned(plain),
        () => Cow::Owned(trimmed.to_owned()),
    }
}

/// Whether `text` is its own skeleton, as nearly every name is.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| matches!(byte, b' '..=b'@' | b'['..=b'~'))
        && bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
}

fn add(c: char, plain: &mut String) {
    match fold(c) {
        Folded::Unknown => case_folded(c).for_each(|c| add_folded(c, plain)),
        folded => add_plain(folded, plain),
    }
}

/// Adds a small letter: it may look like one of ours although its capital does not.
fn add_folded(c: char, plain: &mut String) {
    match fold(c) {
        Folded::Unknown => plain.push(c),
        folded => add_plain(folded, plain),
    }
}

fn add_plain(folded: Folded, plain: &mut String) {
    if let Folded::As(byte) = folded {
        plain.push(char::from(byte.to_ascii_lowercase()));
    }
}

/// `c` as readers see it that ignore case. By way of the capital, since the long s and the Kelvin
/// sign share theirs with plain letters.
pub(crate) fn case_folded(c: char) -> impl Iterator<Item = char> {
    c.to_uppercase().flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(skeleton(text), expected);
    }

    #[test]
    fn spellings_of_a_name_have_one_form() {
        for text in [
            "delete_repo",
            "Delete_Repo",
            "DELETE_REPO",
            "delete_repo\0",
            "delete_repo\0\0",
            "\0delete_repo",
            " delete_repo ",
            "\u{a0}delete_repo\u{3000}",
            "delete\u{200b}_repo",
            "\u{feff}delete_repo",
            "d\u{435}lete_repo",
            "dele\u{301}te_repo",
            "délete_repo",
            "\u{ff44}elete_repo",
            "\u{1d41d}elete_repo",
            "delete\u{ff3f}repo",
            "delete_rep\u{3bf}",
            "delete_repo\u{e0041}",
            "delete_repo\n",
        ] {
            check(text, "delete_repo");
        }
        check("ta\u{17f}k", "task");
        check("tas\u{212a}", "task");
        check("\u{181}", "b");
        check("list commits", "list commits");
        check("", "");
        check(" \0 ", "");
    }

    #[test]
    fn other_alphabets_stay_apart() {
        check("漢字", "漢字");
        assert_ne!(skeleton("漢字"), skeleton("日本"));
        assert_ne!(skeleton("de1ete"), skeleton("delete"));
    }

    #[test]
    fn ordinary_names_are_borrowed() {
        for text in ["delete_repo", "github.list-commits/2", "", "a b", "漢字"] {
            assert!(matches!(skeleton(text), Cow::Borrowed(_)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_form_is_its_own(text in any::<String>()) {
            let form = skeleton(&text).into_owned();
            prop_assert_eq!(skeleton(&form), form.as_str());
        }

        #[test]
        fn case_never_tells_apart(text in "[a-zA-Z0-9_é漢ſ\u{212a}]{0,20}") {
            let capitals = text.to_uppercase();
            prop_assert_eq!(skeleton(&capitals), skeleton(&text));
        }
    }
}
