//! A name cut into whole words, whatever style it is written in.
//!
//! `getHTTPStatus`, `get_http_status`, `get-http-status` and `GET.HTTP.STATUS` have the same words.
//! Letters that look like others are read as those, so that no spelling hides a word; that a name
//! has such letters is told, too.

use std::ops::Range;

use mcp_wire::fold::{Folded, fold};

use super::compound::{self, Cut};
use super::lexicon::{Meaning, WORD_BYTES_MAX, meaning};
use crate::policy::operation::Operation;

/// One word of a name.
#[derive(Clone, Copy)]
pub(super) struct Word {
    /// Where it stands in [`Words::text`].
    start: usize,
    end: usize,
    pub meaning: Option<Meaning>,
    /// Whether it begins a part of the name, after `/`, `.` or `:`.
    pub leads_part: bool,
}

pub(super) struct Words {
    /// The name in plain letters.
    text: Vec<u8>,
    words: Vec<Word>,
    /// Whether it has letters that are not plain ones.
    pub is_disguised: bool,
}

/// Stands for a letter that looks like none of ours.
const UNKNOWN: u8 = b'?';

/// Room reserved for the words of a name; most names have fewer.
const WORDS_USUAL: usize = 8;

impl Words {
    pub(super) fn of(name: &str) -> Self {
        let (text, is_disguised) = plain(name);
        let mut words = Self { text, words: Vec::with_capacity(WORDS_USUAL), is_disguised };
        let (mut at, mut leads_part) = (0, true);
        while at < words.text.len() {
            let end = token_end(&words.text, at);
            if end > at {
                words.add_token(at, end, leads_part);
                leads_part = false;
            }
            leads_part |= matches!(words.text.get(end), Some(b'/' | b'.' | b':'));
            at = end + 1;
        }
        words
    }

    pub(super) fn all(&self) -> &[Word] {
        &self.words
    }

    /// The words after the last `__`, which parts a server's name from its tool's.
    pub(super) fn own(&self) -> &[Word] {
        let start = self.text.windows(2).rposition(|pair| pair == b"__").map_or(0, |at| at + 2);
        let first = self.words.iter().position(|word| word.start >= start).unwrap_or(0);
        &self.words[first..]
    }

    pub(super) fn text(&self, word: &Word) -> String {
        String::from_utf8_lossy(&self.text[word.start..word.end]).to_ascii_lowercase()
    }

    /// What stands between two separators: one word, or several in camel case.
    fn add_token(&mut self, start: usize, end: usize, leads_part: bool) {
        let token = &self.text[start..end];
        if let Some(meaning) = look_up(token).or_else(|| in_digits(token)) {
            return self.words.push(Word { start, end, meaning: Some(meaning), leads_part });
        }
        let (first, mut at) = (self.words.len(), start);
        while at < end {
            let next = at + word_end(&self.text[at..end]);
            let whole = at == start && next == end;
            let meaning = if whole { None } else { look_up(&self.text[at..next]) };
            self.add_word(Word { start: at, end: next, meaning, leads_part: leads_part && at == start });
            at = next;
        }
        self.add_in_odd_case(start..end, first, leads_part);
    }

    /// A word, or the two that are written as one: `deleterepo`.
    fn add_word(&mut self, word: Word) {
        match word.meaning {
            None => self.add_cut(word, compound::cut(&self.text[word.start..word.end])),
            Some(_) => self.words.push(word),
        }
    }

    /// `DELETErepo` and `de1eterepo`, whose letters' case or digits cut no verb free.
    fn add_in_odd_case(&mut self, Range { start, end }: Range<usize>, first: usize, leads_part: bool) {
        let is_verb = |word: &Word| matches!(word.meaning, Some(Meaning::Verb { .. }));
        if self.words.len() - first < 2 || self.words[first..].iter().any(is_verb) {
            return;
        }
        let token = &self.text[start..end];
        let cut = compound::cut(token).or_else(|| compound::cut(&in_letters(token)));
        if cut.is_some() {
            self.words.truncate(first);
            self.add_cut(Word { start, end, meaning: None, leads_part }, cut);
        }
    }

    fn add_cut(&mut self, word: Word, cut: Option<Cut>) {
        let Some(Cut { at, meanings: [first, second] }) = cut else { return self.words.push(word) };
        let middle = word.start + at;
        self.words.push(Word { end: middle, meaning: first, ..word });
        self.words.push(Word { start: middle, meaning: second, leads_part: false, ..word });
    }
}

/// The name in ASCII, and whether it was something else.
fn plain(name: &str) -> (Vec<u8>, bool) {
    if name.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return (name.as_bytes().to_vec(), false);
    }
    let text = name.chars().filter_map(|c| match fold(c) {
        Folded::As(byte) => Some(byte),
        Folded::Nothing => None,
        Folded::Unknown => Some(UNKNOWN),
    });
    (text.collect(), true)
}

fn token_end(text: &[u8], start: usize) -> usize {
    text[start..].iter().position(|byte| !is_letter(*byte)).map_or(text.len(), |length| start + length)
}

/// A letter that stands for one we do not know is part of a word, and makes the word unknown.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == UNKNOWN
}

/// Where the first word of a token ends.
fn word_end(token: &[u8]) -> usize {
    let kind = |at: usize| token.get(at).map(|byte| (byte.is_ascii_digit(), byte.is_ascii_uppercase()));
    let run = |start: usize| (start..).find(|at| kind(*at) != kind(start)).unwrap_or(token.len());
    let first = run(0);
    let (is_digits, is_upper) = kind(0).unwrap_or_default();
    if is_digits || !is_upper || first == token.len() {
        return first;
    }
    let next = run(first);
    match first {
        _ if token[first].is_ascii_digit() => first,
        // One capital begins a word: `Delete`.
        1 => next,
        // The plural of an acronym: `PRs`, `VMsIn`.
        _ if next == first + 1 && token[first] == b's' => next,
        // The last capital of an acronym begins the next word: `HTTPStatus`.
        _ => first - 1,
    }
}

pub(super) fn look_up(word: &[u8]) -> Option<Meaning> {
    let mut lower = [0; WORD_BYTES_MAX];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    meaning(std::str::from_utf8(lower).ok()?)
}

/// A verb spelled with digits or capitals that look like letters (`de1ete`, `deIete`). Only words
/// that make a tool more dangerous are worth the disguise.
fn in_digits(token: &[u8]) -> Option<Meaning> {
    if token.len() > WORD_BYTES_MAX || !token.iter().any(|byte| letter_of_digit(*byte).is_some()) {
        return None;
    }
    look_up(&in_letters(token))
        .filter(|meaning| matches!(meaning, Meaning::Verb { group, .. } if group.operation > Operation::Read))
}

fn in_letters(token: &[u8]) -> Vec<u8> {
    token.iter().map(|byte| letter_of_digit(*byte).unwrap_or(*byte)).collect()
}

/// A digit or a capital in place of the letter that it looks like.
fn letter_of_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0' => Some(b'o'),
        b'1' | b'I' => Some(b'l'),
        b'3' => Some(b'e'),
        b'4' => Some(b'a'),
        b'5' => Some(b's'),
        b'7' => Some(b't'),
        _ => None,
    }
}
