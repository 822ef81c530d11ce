//! From the file to answers. People write in it, so that whatever is wrong is shown where it is.

use std::io;
use std::path::Path;

use mcp_engine::policy::{ANSWERS_MAX, SUBJECT_BYTES_MAX};

use super::{Entry, Word};
use crate::config::{Located, Member, Mistake, Reading, Source, member};
use crate::failure::Failure;

const WHAT: &str = "the answers to rules";
const ENTRY_KEYS: [&str; 7] = ["rule", "method", "subject", "server", "permission", "by", "at"];
const WORDS: [(&str, Word); 2] = [("allow", Word::Allow), ("deny", Word::Deny)];

/// What is in the file; nothing where there is none.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, Failure> {
    if std::fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let source = Source::read(path, WHAT)?;
    let mut reading = Reading::new(&source);
    let root = source.parse(&mut reading.mistakes);
    let entries = root.and_then(|root| entries(&root, &mut reading));
    match entries {
        Some(entries) if reading.mistakes.is_empty() => Ok(entries),
        _ => Err(source
            .refused(WHAT, reading.mistakes)
            .hint("mend the file; or remove it, and what it answers is asked anew")),
    }
}

fn entries(root: &Located, reading: &mut Reading<'_>) -> Option<Vec<Entry>> {
    let members = reading.table(root, "a file of answers")?;
    reading.only(members, &["answers"]);
    let list = required(members, "answers", root, reading)?;
    let items = reading.list(list, "`answers`")?;
    if let Some(item) = items.get(ANSWERS_MAX) {
        reading.mistakes.add(Mistake::at(item.span.clone(), format!("there are more than {ANSWERS_MAX} answers")));
        return None;
    }
    Some(items.iter().filter_map(|item| entry(item, reading)).collect())
}

fn entry(item: &Located, reading: &mut Reading<'_>) -> Option<Entry> {
    let members = reading.table(item, "an answer")?;
    reading.only(members, &ENTRY_KEYS);
    let rule = name(members, "rule", item, reading);
    let method = name(members, "method", item, reading);
    let subject = member(members, "subject").map(|member| named(&member.value, "`subject`", reading));
    let server = member(members, "server").map(|member| named(&member.value, "`server`", reading));
    let permission =
        required(members, "permission", item, reading).and_then(|word| reading.word(word, "permission", &WORDS));
    let by = required(members, "by", item, reading).and_then(|by| reading.text(by, "`by`").map(str::to_owned));
    let at = required(members, "at", item, reading).and_then(|at| {
        let parsed = reading.text(at, "`at`")?.parse().ok();
        if parsed.is_none() {
            let mistake = Mistake::at(at.span.clone(), "this is no time");
            reading.mistakes.add(mistake.help("write it like \"2026-11-16T12:00:00Z\""));
        }
        parsed
    });
    let (subject, server) = (if_right(subject)?, if_right(server)?);
    Some(Entry { rule: rule?, method: method?, subject, server, permission: permission?, by: by?, at: at? })
}

/// What may be missing, unless it is there and wrong.
fn if_right(given: Option<Option<String>>) -> Option<Option<String>> {
    match given {
        Some(value) => value.map(Some),
        None => Some(None),
    }
}

fn name(members: &[Member], key: &str, item: &Located, reading: &mut Reading<'_>) -> Option<String> {
    required(members, key, item, reading).and_then(|value| named(value, &format!("`{key}`"), reading))
}

/// What something is called: a name that answers could have been kept about.
fn named(value: &Located, what: &str, reading: &mut Reading<'_>) -> Option<String> {
    let text = reading.text(value, what)?;
    let wrong = match text.len() {
        0 => "is empty".to_owned(),
        1..=SUBJECT_BYTES_MAX => return Some(text.to_owned()),
        _ => format!("is longer than {SUBJECT_BYTES_MAX} bytes"),
    };
    reading.mistakes.add(Mistake::at(value.span.clone(), format!("{what} {wrong}")));
    None
}

fn required<'t>(members: &'t [Member], key: &str, item: &Located, reading: &mut Reading<'_>) -> Option<&'t Located> {
    let found = member(members, key);
    if found.is_none() {
        // The first line of it is enough to find it by.
        let place = members.first().map_or(item.span.clone(), |member| member.key_span.clone());
        reading.mistakes.add(Mistake::at(place, format!("there is no `{key}` here")));
    }
    found.map(|member| &member.value)
}
