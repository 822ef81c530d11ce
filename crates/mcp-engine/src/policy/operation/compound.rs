//! A dangerous verb and its object written as one word: `deleterepo`, `bulkremove`.
//!
//! Only long verbs count, only where a word begins or ends, and never in a word of the dictionary: `remote`,
//! `dropbox`, `banner` and `preset` are no verbs.

use super::Operation;
use super::lexicon::{Form, Meaning, WORD_BYTES_MAX};
use super::verbs::UNCUT;
use super::words::look_up;

/// Where a word is cut in two, and what the two are.
pub(super) struct Cut {
    pub at: usize,
    pub meanings: [Option<Meaning>; 2],
}

/// Shorter verbs begin and end too many other words: `banner`, `dropbox`, `runbook`.
pub(super) const VERB_BYTES_MIN: usize = 5;

/// A word of the dictionary that is longer than its verb by this much covers what it begins: `deploymentstatus` is
/// about a deployment, `managerepo` is not about a manager.
const LONGER_BY: usize = 3;

/// Cuts a word that means nothing as a whole.
pub(super) fn cut(word: &[u8]) -> Option<Cut> {
    if word.len() <= VERB_BYTES_MIN || is_uncut(word) {
        return None;
    }
    at_the_beginning(word).or_else(|| at_the_end(word))
}

fn at_the_beginning(word: &[u8]) -> Option<Cut> {
    let (at, verb) = lengths(word).find_map(|length| Some((length, plain(&word[..length])?)))?;
    let is_known = |part: &[u8]| is_uncut(part) || look_up(part).is_some();
    let is_covered = lengths(word).any(|length| length >= at + LONGER_BY && is_known(&word[..length]));
    (is_dangerous(verb) && !is_covered).then(|| Cut { at, meanings: [Some(verb), look_up(&word[at..])] })
}

fn at_the_end(word: &[u8]) -> Option<Cut> {
    let from = |length: usize| word.len() - length;
    let (length, verb) = lengths(word).find_map(|length| Some((length, plain(&word[from(length)..])?)))?;
    let is_covered = lengths(word).any(|longer| longer > length && is_uncut(&word[from(longer)..]));
    let at = from(length);
    (is_dangerous(verb) && !is_covered).then(|| Cut { at, meanings: [look_up(&word[..at]), Some(verb)] })
}

/// The longest counts: `undelete` is no `delete`.
fn lengths(word: &[u8]) -> impl Iterator<Item = usize> + use<> {
    (VERB_BYTES_MIN..word.len().min(WORD_BYTES_MAX + 1)).rev()
}

fn plain(word: &[u8]) -> Option<Meaning> {
    look_up(word).filter(|meaning| matches!(meaning, Meaning::Verb { form: Form::Plain, .. }))
}

fn is_dangerous(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::Verb { group, .. } if group.operation > Operation::Write)
}

fn is_uncut(word: &[u8]) -> bool {
    let single = word.strip_suffix(b"s").unwrap_or(word);
    UNCUT
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known.as_bytes()) || single.eq_ignore_ascii_case(known.as_bytes()))
}
