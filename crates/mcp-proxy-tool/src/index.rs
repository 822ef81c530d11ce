//! Capabilities ranked by how well their names, descriptions and parameters go with a few words. An index of words,
//! weighed by how rare they are and where they stand (BM25 over fields); nothing is learnt, and nothing is asked of
//! anybody.

mod parts;
mod words;

use std::collections::HashMap;

use self::words::{differ_by_one_edit, is_filler, words};

/// How soon more of the same word stops to count, and how much long texts are held against.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.5;

/// What a word is worth that is only the beginning of one in the text, or nearly one.
const OF_PREFIX: f32 = 0.4;
const OF_NEAR: f32 = 0.25;

/// What anything counts in what says of itself that it is not to be used any more.
const OF_DEPRECATED: f32 = 0.5;

/// A shorter beginning of a word begins too many words.
const PREFIX_LEN_MIN: usize = 3;
/// Shorter words have too many neighbours.
const NEAR_LEN_MIN: usize = 5;

/// Words of a query that count; the rest is no query, but a text.
const WORDS_MAX: usize = 32;

pub struct Index {
    /// In their order, so that those with a common beginning stand together.
    terms: Vec<Term>,
    /// The length of each item, as a part of how much it is held against it.
    norms: Vec<f32>,
    /// What each item is worth as a whole.
    worth: Vec<f32>,
    /// What each item is called, without regard to case, for those who know.
    called: HashMap<String, Vec<u32>>,
}

struct Term {
    word: String,
    /// The items that have the word, in their order, and how much it counts there.
    places: Vec<(u32, f32)>,
}

impl Index {
    /// Of items of a list, as JSON.
    pub fn build<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut draft = Draft::default();
        for item in items {
            draft.add(item);
        }
        draft.finish()
    }

    /// The places of the items that go with the words, best first; equal ones in their order.
    pub fn search(&self, query: &str) -> Vec<usize> {
        let mut scores = Scores::new(self.norms.len());
        for word in wanted(query) {
            self.weigh(&word, &mut scores);
        }
        for item in self.called.get(&query.trim().to_lowercase()).into_iter().flatten() {
            scores.total[*item as usize] = f32::INFINITY;
        }
        for (total, worth) in scores.total.iter_mut().zip(&self.worth) {
            *total *= worth;
        }
        scores.ranked()
    }

    fn weigh(&self, word: &str, scores: &mut Scores) {
        let start = self.terms.partition_point(|term| term.word.as_str() < word);
        let begun = self.terms[start..].iter().take_while(|term| term.word.starts_with(word));
        let mut is_found = false;
        for term in begun {
            let worth = if term.word == word { 1.0 } else { OF_PREFIX };
            if worth == 1.0 || word.len() >= PREFIX_LEN_MIN {
                self.count(term, worth, scores);
                is_found = true;
            }
        }
        if !is_found && word.chars().count() >= NEAR_LEN_MIN {
            for term in self.terms.iter().filter(|term| differ_by_one_edit(&term.word, word)) {
                self.count(term, OF_NEAR, scores);
            }
        }
        scores.next_word();
    }

    fn count(&self, term: &Term, worth: f32, scores: &mut Scores) {
        let (all, having) = (self.norms.len() as f32, term.places.len() as f32);
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        for (item, weight) in &term.places {
            let item = *item as usize;
            let share = weight * (SATURATION + 1.0) / (weight + SATURATION * self.norms[item]);
            scores.best_of_word(item, worth * rarity * share);
        }
    }
}

/// The words of a query that are looked for, each once.
fn wanted(query: &str) -> Vec<String> {
    let mut wanted: Vec<String> = Vec::new();
    let mut fillers = Vec::new();
    words(query, |word| {
        let list = if is_filler(word) { &mut fillers } else { &mut wanted };
        if list.len() < WORDS_MAX && !list.iter().any(|other| other == word) {
            list.push(word.to_owned());
        }
    });
    if wanted.is_empty() { fillers } else { wanted }
}

/// What the items have earned so far.
struct Scores {
    total: Vec<f32>,
    /// By the word that is being looked for: of several in the text that go with it, the best counts.
    of_word: Vec<f32>,
    /// How many words of the query each item has.
    hits: Vec<u16>,
    touched: Vec<usize>,
    words: u16,
}

impl Scores {
    fn new(items: usize) -> Self {
        Self { total: vec![0.0; items], of_word: vec![0.0; items], hits: vec![0; items], touched: Vec::new(), words: 0 }
    }

    fn best_of_word(&mut self, item: usize, score: f32) {
        if self.of_word[item] == 0.0 {
            self.touched.push(item);
        }
        self.of_word[item] = self.of_word[item].max(score);
    }

    fn next_word(&mut self) {
        self.words += 1;
        for item in self.touched.drain(..) {
            self.total[item] += std::mem::take(&mut self.of_word[item]);
            self.hits[item] += 1;
        }
    }

    /// Those that have more of the words come before those that have one of them very often.
    fn ranked(self) -> Vec<usize> {
        let score = |item: usize| {
            let coverage = f32::from(self.hits[item]) / f32::from(self.words.max(1));
            self.total[item] * (0.5 + 0.5 * coverage)
        };
        let mut ranked: Vec<_> =
            (0..self.total.len()).filter(|item| self.total[*item] > 0.0).map(|item| (score(item), item)).collect();
        ranked.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
        ranked.into_iter().map(|(_, item)| item).collect()
    }
}

/// An index that is still being made.
#[derive(Default)]
struct Draft {
    numbers: HashMap<String, usize>,
    places: Vec<Vec<(u32, f32)>>,
    lengths: Vec<f32>,
    worth: Vec<f32>,
    called: HashMap<String, Vec<u32>>,
}

impl Draft {
    fn add(&mut self, item: &[u8]) {
        let number = u32::try_from(self.lengths.len()).expect("lists are bounded far below that");
        let mut length = 0.0;
        parts::of(item, |text, weight| {
            words(text, |word| {
                length += weight;
                self.count(word, number, weight);
            });
        });
        for name in parts::names(item) {
            let numbers = self.called.entry(name.to_lowercase()).or_default();
            if numbers.last() != Some(&number) {
                numbers.push(number);
            }
        }
        self.lengths.push(length);
        self.worth.push(if parts::is_deprecated(item) { OF_DEPRECATED } else { 1.0 });
    }

    fn count(&mut self, word: &str, item: u32, weight: f32) {
        let number = match self.numbers.get(word) {
            Some(number) => *number,
            None => {
                self.places.push(Vec::new());
                self.numbers.insert(word.to_owned(), self.places.len() - 1);
                self.places.len() - 1
            }
        };
        let places = &mut self.places[number];
        match places.last_mut() {
            Some((last, weights)) if *last == item => *weights += weight,
            _ => places.push((item, weight)),
        }
    }

    fn finish(mut self) -> Index {
        let mut terms: Vec<_> = self
            .numbers
            .into_iter()
            .map(|(word, number)| Term { word, places: std::mem::take(&mut self.places[number]) })
            .collect();
        terms.sort_unstable_by(|one, other| one.word.cmp(&other.word));
        let average = (self.lengths.iter().sum::<f32>() / self.lengths.len().max(1) as f32).max(1.0);
        let norms = self.lengths.iter().map(|length| 1.0 - LENGTH + LENGTH * length / average).collect();
        Index { terms, norms, worth: self.worth, called: self.called }
    }
}

#[cfg(test)]
mod tests;
