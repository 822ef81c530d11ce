//! Values of a configuration, read by the kinds that the table of keys knows. What does not fit is noted as
//! a mistake, and reading goes on.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_engine::entrance::TOKEN_BYTES_MAX;
use mcp_store::redact::Redactor;

use super::expand::{Text, expand};
use super::keys::{Key, Takes, names};
use super::world::World;
use crate::config::{Located, Member, Mistake, Mistakes, Reading, Source, Value, each, member, within};

/// A configuration that is being read.
pub(super) struct Reader<'a> {
    pub reading: Reading<'a>,
    pub warnings: Mistakes,
    pub world: &'a World,
    /// What has to do with a server that takes no part is told, but does no harm.
    pub lenient: bool,
}

/// One table of it.
#[derive(Clone, Copy)]
pub(super) struct Fields<'t> {
    pub members: &'t [Member],
    keys: &'static [Key],
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a Source, world: &'a World) -> Self {
        Self { reading: Reading::new(source), warnings: Mistakes::default(), world, lenient: false }
    }

    /// Where the configuration lies.
    pub(super) fn dir(&self) -> PathBuf {
        self.reading.source.path().parent().unwrap_or(Path::new("")).to_owned()
    }

    pub(super) fn wrong(&mut self, at: &Range<usize>, what: impl Into<String>, help: &str) {
        self.reading.mistakes.add(Mistake::at(at.clone(), what).help(help));
    }

    pub(super) fn warn(&mut self, at: &Range<usize>, what: impl Into<String>, help: &str) {
        self.warnings.add(Mistake::at(at.clone(), what).help(help));
    }

    pub(super) fn fields<'t>(&mut self, located: &'t Located, what: &str, keys: &'static [Key]) -> Option<Fields<'t>> {
        let members = self.reading.table(located, what)?;
        self.reading.only(members, &names(keys));
        Some(Fields { members, keys })
    }

    /// Text, with what stands for something replaced by it.
    pub(super) fn text(&mut self, located: &Located, what: &str) -> Option<Text> {
        let written = self.reading.text(located, what)?;
        self.expanded(written, &located.span)
    }

    /// The same; a number or a flag is taken as it is spelled.
    fn spelled(&mut self, located: &Located, what: &str) -> Option<Text> {
        match &located.value {
            Value::Number(number) => Some(Text::plain(number)),
            Value::Flag(flag) => Some(Text::plain(flag.to_string())),
            _ => self.text(located, what),
        }
    }

    fn expanded(&mut self, written: &str, span: &Range<usize>) -> Option<Text> {
        match expand(written, self.world, &self.dir()) {
            Ok(expanded) => {
                for path in expanded.exposed {
                    self.warn(span, format!("others on this machine can read `{path}`"), "`chmod 600` keeps it yours");
                }
                Some(expanded.text)
            }
            Err(fault) => {
                let place = within(self.reading.source.text(), span.clone(), written, fault.at);
                let mistake = Mistake::at(place, fault.what).help(fault.help);
                if self.lenient {
                    self.warnings.add(mistake);
                    return Some(Text::plain(written));
                }
                self.reading.mistakes.add(mistake);
                None
            }
        }
    }

    /// Text that is not empty.
    pub(super) fn some_text(&mut self, located: &Located, what: &str) -> Option<Text> {
        let text = self.text(located, what)?;
        if text.value.trim().is_empty() {
            self.wrong(&located.span, format!("{what} is empty"), "write something, or leave it out");
            return None;
        }
        Some(text)
    }

    /// What somebody has to show. Line breaks and the like never get through a header.
    pub(super) fn secret(&mut self, located: &Located, what: &str) -> Option<Text> {
        let text = self.some_text(located, what)?;
        if !text.value.bytes().all(|byte| byte.is_ascii_graphic()) {
            let what = format!("{what} has something in it that no header can carry");
            self.wrong(&located.span, what, "use letters, digits and signs, without blanks");
            return None;
        }
        if text.value.len() > TOKEN_BYTES_MAX {
            let what = format!("{what} is longer than {TOKEN_BYTES_MAX} bytes");
            self.wrong(&located.span, what, "nobody looks at longer ones");
            return None;
        }
        Some(text)
    }

    pub(super) fn texts(&mut self, located: &Located, what: &str) -> Option<Vec<Text>> {
        let items = self.reading.list(located, what)?;
        let texts: Vec<_> = items.iter().map(|item| self.spelled(item, &format!("each of {what}"))).collect();
        texts.into_iter().collect()
    }

    /// Names or patterns of them, none of which is empty.
    pub(super) fn patterns(&mut self, located: &Located, what: &str) -> Option<Vec<String>> {
        let items = self.reading.list(located, what)?;
        let texts: Vec<_> = items.iter().map(|item| self.some_text(item, &format!("each of {what}"))).collect();
        texts.into_iter().map(|text| text.map(|text| text.value)).collect()
    }

    pub(super) fn pairs<'t>(&mut self, located: &'t Located, what: &str) -> Option<Vec<(&'t Member, Text)>> {
        let members = self.reading.table(located, what)?;
        let pairs: Vec<_> = each(members)
            .map(|member| Some((member, self.spelled(&member.value, &format!("`{}`", member.key))?)))
            .collect();
        pairs.into_iter().collect()
    }

    pub(super) fn count(&mut self, located: &Located, what: &str, min: u64, max: u64) -> Option<u64> {
        let number = match &located.value {
            Value::Number(number) => number.parse().ok().filter(|number| (min..=max).contains(number)),
            _ => None,
        };
        if number.is_none() {
            let what = format!("{what} is a whole number from {min} to {max}");
            self.reading.mistakes.add(Mistake::at(located.span.clone(), what));
        }
        number
    }

    /// A flag, which YAML and people sometimes put into quotes, is not text.
    pub(super) fn flag(&mut self, located: &Located, what: &str) -> Option<bool> {
        self.reading.flag(located, what)
    }

    pub(super) fn duration(&mut self, located: &Located, what: &str) -> Option<Duration> {
        self.reading.duration(located, what)
    }

    /// `None` inside if there is to be none.
    pub(super) fn duration_or_off(&mut self, located: &Located, what: &str) -> Option<Option<Duration>> {
        let is_off = match &located.value {
            Value::Flag(flag) => !flag,
            Value::Number(number) => number.parse::<f64>().is_ok_and(|number| number == 0.0),
            Value::Text(text) => text == "off",
            _ => false,
        };
        if is_off { Some(None) } else { self.duration(located, what).map(Some) }
    }
}

impl<'t> Fields<'t> {
    /// The value of a key, unless it says that there is none.
    pub(super) fn get(&self, key: &str, reader: &Reader<'_>) -> Option<&'t Located> {
        debug_assert!(self.keys.iter().any(|known| known.name == key), "`{key}` is not in the table");
        let located = &member(self.members, key)?.value;
        (!is_null(located, reader.reading.source)).then_some(located)
    }

    pub(super) fn text(&self, key: &str, reader: &mut Reader<'_>) -> Option<Text> {
        self.get(key, reader).and_then(|located| reader.some_text(located, &format!("`{key}`")))
    }

    pub(super) fn flag(&self, key: &str, reader: &mut Reader<'_>) -> Option<bool> {
        self.get(key, reader).and_then(|located| reader.flag(located, &format!("`{key}`")))
    }

    pub(super) fn duration(&self, key: &str, reader: &mut Reader<'_>) -> Option<Duration> {
        self.get(key, reader).and_then(|located| reader.duration(located, &format!("`{key}`")))
    }

    pub(super) fn duration_or_off(&self, key: &str, reader: &mut Reader<'_>) -> Option<Option<Duration>> {
        self.get(key, reader).and_then(|located| reader.duration_or_off(located, &format!("`{key}`")))
    }

    pub(super) fn patterns(&self, key: &str, reader: &mut Reader<'_>) -> Option<Vec<String>> {
        self.get(key, reader).and_then(|located| reader.patterns(located, &format!("`{key}`")))
    }

    /// Between the bounds that the table gives.
    pub(super) fn count(&self, key: &str, reader: &mut Reader<'_>) -> Option<u64> {
        let (min, max) = match self.keys.iter().find(|known| known.name == key).map(|known| known.takes) {
            Some(Takes::Count { min, max }) => (min, max),
            _ => (0, 0),
        };
        self.get(key, reader).and_then(|located| reader.count(located, &format!("`{key}`"), min, max))
    }

    pub(super) fn word<T: Copy>(&self, key: &str, choices: &[(&str, T)], reader: &mut Reader<'_>) -> Option<T> {
        self.get(key, reader).and_then(|located| reader.reading.word(located, &format!("`{key}`"), choices))
    }
}

/// `null` is how some say that there is no value. A key of YAML with nothing behind it was more likely
/// meant to have one.
fn is_null(located: &Located, source: &Source) -> bool {
    let spelled = source.text().get(located.span.clone()).unwrap_or_default();
    located.value == Value::Nothing && (spelled == "~" || spelled.eq_ignore_ascii_case("null"))
}

/// Whether something of this name is kept from whoever looks.
pub(super) fn is_secret_name(name: &str) -> bool {
    let mut redactor = Redactor::default();
    drop(redactor.named(name, "something"));
    redactor.masked() > 0
}
