//! What a reader of a tree needs: members by their names, values of one kind, words out of a few. What
//! does not fit is noted as a mistake, and reading goes on.

use std::collections::HashSet;
use std::time::Duration;

use super::mistake::{Mistake, Mistakes, said};
use super::source::Source;
use super::tree::{Located, Member, Value};

/// A tree that is being read.
pub(crate) struct Reading<'a> {
    pub source: &'a Source,
    pub mistakes: Mistakes,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        Self { source, mistakes: Mistakes::default() }
    }

    /// `what` it is, such as "a rule", is said where it is no table.
    pub(crate) fn table<'t>(&mut self, located: &'t Located, what: &str) -> Option<&'t [Member]> {
        match &located.value {
            Value::Table(members) => Some(members),
            other => self.wrong(located, what, "a table", other),
        }
    }

    pub(crate) fn list<'t>(&mut self, located: &'t Located, what: &str) -> Option<&'t [Located]> {
        match &located.value {
            Value::List(items) => Some(items),
            other => self.wrong(located, what, "a list", other),
        }
    }

    pub(crate) fn text<'t>(&mut self, located: &'t Located, what: &str) -> Option<&'t str> {
        match &located.value {
            Value::Text(text) => Some(text),
            other => self.wrong(located, what, "text", other),
        }
    }

    pub(crate) fn flag(&mut self, located: &Located, what: &str) -> Option<bool> {
        match &located.value {
            Value::Flag(flag) => Some(*flag),
            other => self.wrong(located, what, "true or false", other),
        }
    }

    /// One of a few words. `what` they are, such as "verdict", is said where it is another.
    pub(crate) fn word<T: Copy>(&mut self, located: &Located, what: &str, choices: &[(&str, T)]) -> Option<T> {
        let written = self.text(located, what)?;
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == written) {
            return Some(*choice);
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        self.mistakes.add(
            Mistake::at(located.span.clone(), format!("no such {what}: {}", said(written))).meant(written, &words),
        );
        None
    }

    /// A number of seconds, or text with a unit: `30`, `"30s"`, `"1.5m"`.
    pub(crate) fn duration(&mut self, located: &Located, what: &str) -> Option<Duration> {
        let duration = match &located.value {
            Value::Number(seconds) => in_units(seconds, 1.0),
            Value::Text(text) => with_unit(text),
            other => return self.wrong(located, what, "a number of seconds, or text such as \"30s\"", other),
        };
        if duration.is_none() {
            let mistake = Mistake::at(located.span.clone(), format!("{what} is no duration up to a day"));
            self.mistakes.add(mistake.help("write it like \"500ms\", \"30s\", \"5m\" or \"1h\""));
        }
        duration
    }

    /// Notes unknown members. A comment is none.
    pub(crate) fn only(&mut self, members: &[Member], known: &[&str]) {
        let is_known = |member: &Member| known.contains(&member.key.as_str()) || member.is_comment();
        for member in members.iter().filter(|member| !is_known(member)) {
            let what = format!("unknown key {}", said(&member.key));
            self.mistakes.add(Mistake::at(member.key_span.clone(), what).meant(&member.key, known));
        }
    }

    fn wrong<T>(&mut self, located: &Located, what: &str, wanted: &str, found: &Value) -> Option<T> {
        let what = format!("{what} is {wanted}, and this is {}", found.kind());
        self.mistakes.add(Mistake::at(located.span.clone(), what));
        None
    }
}

/// The member of this name. One that comes twice is a mistake that has been noted.
pub(crate) fn member<'t>(members: &'t [Member], key: &str) -> Option<&'t Member> {
    members.iter().find(|member| member.key == key)
}

/// Each member, of a key that comes twice the first.
pub(crate) fn each(members: &[Member]) -> impl Iterator<Item = &Member> {
    let mut seen = HashSet::new();
    members.iter().filter(move |member| seen.insert(&member.key))
}

fn with_unit(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    in_units(number.trim(), seconds)
}

fn in_units(number: &str, unit: f64) -> Option<Duration> {
    const DAY: f64 = 86_400.0;
    let seconds = number.parse::<f64>().ok()? * unit;
    (seconds > 0.0 && seconds <= DAY).then(|| Duration::from_secs_f64(seconds))
}
