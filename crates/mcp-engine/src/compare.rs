//! Two JSON texts side by side: where they say something else, by path. Works on the bytes, so that
//! numbers beyond what a float holds and keys that stand twice are seen as they are. Spelling does not
//! count: `1`, `1.0` and `1e0` are one number, escapes are what they stand for, members have no order.

pub mod excerpt;
pub mod path;
pub mod value;
pub mod volatile;

use std::borrow::Cow;
use std::collections::HashMap;

use mcp_wire::scan::{self, DEPTH_MAX, Span};

pub use excerpt::Excerpt;
pub use path::{Path, Pattern, PatternError, Step};
pub use volatile::Volatile;

/// Differences kept of one answer; more are counted, because no person reads them.
const KEPT_MAX: usize = 100;
/// What tells the items of the protocol's own lists apart, so that one tool more does not make all
/// that follow look changed.
const KEYS: [&str; 3] = ["name", "uri", "uriTemplate"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: Path,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Changed {
        recorded: Excerpt,
        now: Excerpt,
    },
    Missing {
        recorded: Excerpt,
    },
    Added {
        now: Excerpt,
    },
    /// The items of a list are the same, but in another order.
    Reordered,
}

/// What differs, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    pub kept: Vec<Difference>,
    /// How many more there are.
    pub more: u64,
}

impl Differences {
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.more == 0
    }

    pub fn count(&self) -> u64 {
        self.kept.len() as u64 + self.more
    }
}

/// Compares two values. `is_ignored` is asked for the path of each difference.
pub fn compare(recorded: &[u8], now: &[u8], is_ignored: impl Fn(&Path) -> bool) -> Differences {
    let mut comparison = Comparison { is_ignored, path: Path::default(), found: Differences::default() };
    comparison.values(recorded.trim_ascii(), now.trim_ascii());
    comparison.found
}

/// Compares two messages. Their ids are how they were paired, and say nothing more.
pub fn compare_messages(recorded: &[u8], now: &[u8], is_ignored: impl Fn(&Path) -> bool) -> Differences {
    let id = [Step::Member("id".into())];
    compare(recorded, now, |path| path.steps() == id || is_ignored(path))
}

struct Comparison<F> {
    is_ignored: F,
    path: Path,
    found: Differences,
}

impl<F: Fn(&Path) -> bool> Comparison<F> {
    fn values(&mut self, recorded: &[u8], now: &[u8]) {
        if recorded == now {
            return;
        }
        let is_deep = self.path.steps().len() >= DEPTH_MAX;
        match (recorded.first(), now.first()) {
            (Some(b'{'), Some(b'{')) if !is_deep => self.objects(recorded, now),
            (Some(b'['), Some(b'[')) if !is_deep => self.lists(recorded, now),
            _ if value::is_same_scalar(recorded, now) => {}
            _ => self.add(|| {
                let (recorded, now) = Excerpt::of_both(recorded, now);
                Change::Changed { recorded, now }
            }),
        }
    }

    fn objects(&mut self, recorded: &[u8], now: &[u8]) {
        let (before, after) = (members(recorded), members(now));
        for (key, span) in in_order(&before) {
            let value = &recorded[span.range()];
            self.path.push(Step::Member(key.clone().into_owned()));
            match after.get(key) {
                Some(other) => self.values(value, &now[other.range()]),
                None => self.add(|| Change::Missing { recorded: Excerpt::of(value) }),
            }
            self.path.pop();
        }
        for (key, span) in in_order(&after).into_iter().filter(|(key, _)| !before.contains_key(*key)) {
            self.path.push(Step::Member(key.clone().into_owned()));
            self.add(|| Change::Added { now: Excerpt::of(&now[span.range()]) });
            self.path.pop();
        }
    }

    fn lists(&mut self, recorded: &[u8], now: &[u8]) {
        let before: Vec<&[u8]> = scan::batch_items(recorded).map(|span| &recorded[span.range()]).collect();
        let after: Vec<&[u8]> = scan::batch_items(now).map(|span| &now[span.range()]).collect();
        match KEYS.iter().find_map(|key| Some((keyed(&before, key)?, keyed(&after, key)?))) {
            Some((before_by, after_by)) => self.keyed_lists(&before, &after, &before_by, &after_by),
            None => self.plain_lists(&before, &after),
        }
    }

    /// Item by item; what one list has more of stands at its end.
    fn plain_lists(&mut self, before: &[&[u8]], after: &[&[u8]]) {
        for at in 0..before.len().max(after.len()) {
            self.item(at, before.get(at).copied(), after.get(at).copied());
        }
    }

    /// The items of either list are told apart by a key; each is compared with its namesake.
    fn keyed_lists(&mut self, before: &[&[u8]], after: &[&[u8]], before_by: &Keyed<'_>, after_by: &Keyed<'_>) {
        let mut places: Vec<usize> = Vec::with_capacity(before.len());
        for (at, item) in before.iter().enumerate() {
            let other = after_by.places.get(&before_by.keys[at]);
            places.extend(other);
            self.item(at, Some(item), other.map(|&place| after[place]));
        }
        for (at, item) in after.iter().enumerate() {
            if !before_by.places.contains_key(&after_by.keys[at]) {
                self.item(at, None, Some(item));
            }
        }
        if !places.is_sorted() {
            self.add(|| Change::Reordered);
        }
    }

    fn item(&mut self, at: usize, recorded: Option<&[u8]>, now: Option<&[u8]>) {
        self.path.push(Step::Item(at));
        match (recorded, now) {
            (Some(recorded), Some(now)) => self.values(recorded, now),
            (Some(recorded), None) => self.add(|| Change::Missing { recorded: Excerpt::of(recorded) }),
            (None, Some(now)) => self.add(|| Change::Added { now: Excerpt::of(now) }),
            (None, None) => {}
        }
        self.path.pop();
    }

    fn add(&mut self, change: impl FnOnce() -> Change) {
        if (self.is_ignored)(&self.path) {
            return;
        }
        if self.found.kept.len() >= KEPT_MAX {
            self.found.more += 1;
            return;
        }
        self.found.kept.push(Difference { path: self.path.clone(), change: change() });
    }
}

/// The members of an object. Of a key that stands twice the last one counts.
fn members(object: &[u8]) -> HashMap<Cow<'_, str>, Span> {
    scan::object_members(object).collect()
}

fn in_order<'m, 'k>(members: &'m HashMap<Cow<'k, str>, Span>) -> Vec<(&'m Cow<'k, str>, Span)> {
    let mut members: Vec<_> = members.iter().map(|(key, span)| (key, *span)).collect();
    members.sort_by_key(|(_, span)| span.range().start);
    members
}

/// The items of a list by the value of one member, where every item has one of its own.
struct Keyed<'a> {
    keys: Vec<Cow<'a, str>>,
    places: HashMap<Cow<'a, str>, usize>,
}

fn keyed<'a>(items: &[&'a [u8]], key: &str) -> Option<Keyed<'a>> {
    let key_of = |item: &&'a [u8]| scan::decode_string(&item[scan::member_at(item, [key])?.range()]);
    let keys: Vec<Cow<'a, str>> = items.iter().map(key_of).collect::<Option<_>>()?;
    let places: HashMap<_, _> = keys.iter().enumerate().map(|(at, key)| (key.clone(), at)).collect();
    (places.len() == keys.len()).then_some(Keyed { keys, places })
}

#[cfg(test)]
mod tests;
