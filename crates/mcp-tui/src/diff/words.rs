//! What differs within a line.

use similar::{ChangeTag, TextDiff};

use crate::text::clean;

/// Longer lines are compared by their ends only.
const COMPARED_BYTES_MAX: usize = 2000;
/// Characters shown of a line, or of a part of it that differs.
const SHOWN_CHARS_MAX: usize = 500;
/// Characters shown of an equal part next to one that differs, in a long line.
const BESIDE_CHARS_MAX: usize = 40;

/// A stretch of clean text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub is_changed: bool,
    pub text: String,
}

pub(super) fn unchanged(line: &str) -> Vec<Word> {
    vec![Word { is_changed: false, text: start(line, SHOWN_CHARS_MAX) }]
}

/// Both lines, with what differs marked.
pub(super) fn changed(left: &str, right: &str) -> (Vec<Word>, Vec<Word>) {
    if left.len().max(right.len()) > COMPARED_BYTES_MAX {
        return by_ends(left, right);
    }
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for change in TextDiff::from_words(left, right).iter_all_changes() {
        let is_changed = change.tag() != ChangeTag::Equal;
        if change.tag() != ChangeTag::Insert {
            push(&mut old, is_changed, change.value());
        }
        if change.tag() != ChangeTag::Delete {
            push(&mut new, is_changed, change.value());
        }
    }
    (old, new)
}

fn push(words: &mut Vec<Word>, is_changed: bool, text: &str) {
    match words.last_mut() {
        Some(last) if last.is_changed == is_changed => last.text.push_str(&clean(text)),
        _ => words.push(Word { is_changed, text: clean(text).into_owned() }),
    }
}

fn by_ends(left: &str, right: &str) -> (Vec<Word>, Vec<Word>) {
    let same = |(left, right): &(char, char)| left == right;
    let bytes = |pairs: (char, char)| pairs.0.len_utf8();
    let before: usize = left.chars().zip(right.chars()).take_while(same).map(bytes).sum();
    let (left_rest, right_rest) = (&left[before..], &right[before..]);
    let after: usize = left_rest.chars().rev().zip(right_rest.chars().rev()).take_while(same).map(bytes).sum();
    let words = |rest: &str| {
        let (middle, tail) = rest.split_at(rest.len() - after);
        let words = [
            (false, end(&left[..before])),
            (true, start(middle, SHOWN_CHARS_MAX)),
            (false, start(tail, BESIDE_CHARS_MAX)),
        ];
        words
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(is_changed, text)| Word { is_changed, text })
            .collect()
    };
    (words(left_rest), words(right_rest))
}

fn start(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => clean(&text[..at]).into_owned() + "…",
        None => clean(text).into_owned(),
    }
}

fn end(text: &str) -> String {
    match text.char_indices().rev().nth(BESIDE_CHARS_MAX) {
        Some((at, _)) => format!("…{}", clean(&text[at..])),
        None => clean(text).into_owned(),
    }
}
