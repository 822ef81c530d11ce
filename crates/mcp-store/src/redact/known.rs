//! Secrets that were seen under a name, to be found again where nothing names them: a server that
//! repeats in words what it was given.

use regex::bytes::{Regex, RegexBuilder};

use super::Hidden;

/// Secrets that are searched for again. A session has a handful; a hostile peer could slow the search with more.
const KNOWN_MAX: usize = 256;
/// A shorter secret could be part of any word.
const SHORTEST: usize = 8;
/// A longer one is a file rather than a password, and will hardly be repeated.
const LONGEST: usize = 256;

#[derive(Default)]
pub(super) struct Known {
    values: Vec<String>,
    any: Option<Regex>,
}

impl Known {
    pub(super) fn add(&mut self, value: &[u8]) {
        let is_worth_it = (SHORTEST..=LONGEST).contains(&value.len()) && is_unlike_words(value);
        if !is_worth_it || self.values.len() >= KNOWN_MAX || self.values.iter().any(|known| known.as_bytes() == value) {
            return;
        }
        let Ok(text) = std::str::from_utf8(value) else { return };
        // The order of an alternation decides: of two that begin alike the longer is to be found.
        let place = self.values.partition_point(|known| known.len() > text.len());
        self.values.insert(place, text.to_owned());
        let all: Vec<String> = self.values.iter().map(|value| regex::escape(value)).collect();
        self.any = RegexBuilder::new(&all.join("|")).unicode(false).size_limit(64 << 20).build().ok();
    }

    pub(super) fn find(&self, text: &[u8], hidden: &mut Vec<Hidden>) {
        let Some(any) = &self.any else { return };
        hidden.extend(any.find_iter(text).map(|found| Hidden::inside(found.range())));
    }
}

/// Whether this is made up rather than said: it has a digit in it, or a mark, or capitals inside.
pub(super) fn is_unlike_words(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    let has_inner_capital = value.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let has_mark = has(|byte| byte.is_ascii_punctuation() && !b"-_.,:;!?'/()".contains(byte));
    let has_letter = has(u8::is_ascii_alphabetic);
    has_mark || has_inner_capital || (has(u8::is_ascii_digit) && has_letter)
}
