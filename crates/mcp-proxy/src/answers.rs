//! Answers to rules that ask, where they are to count for good: a file beside the rules, for people to
//! read and to strike out what they no longer mean.

mod file;
mod read;
mod watch;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use mcp_engine::policy::Answered;
use mcp_engine::policy::rules::{Permission, Rules, VerdictKind};
use mcp_wire::visible::visible;
use serde::Serialize;

use crate::failure::Failure;
use crate::inspect::lines::about;

pub(crate) use watch::AnswersWatch;

/// The file of answers that belongs to a file of rules.
#[derive(Clone, Debug)]
pub(crate) struct AnswersFile {
    path: PathBuf,
}

/// One answer as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    rule: String,
    method: String,
    /// The tool, prompt or resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    /// The server of a gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    permission: Word,
    /// Who said so, and when.
    by: String,
    at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Allow,
    Deny,
}

/// Why answers cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswersError {
    #[error("{}", .0.what())]
    Read(Failure),
    #[error("{path} cannot be written: {source}")]
    Write { path: String, source: io::Error },
    #[error("{path} has no room for more; strike out some of its answers")]
    Full { path: String },
}

impl AnswersFile {
    /// `rules.toml` has its answers in `rules.toml.answers.json`.
    pub(crate) fn beside(rules: &Path) -> Self {
        let mut name = rules.file_name().map_or_else(OsString::new, ToOwned::to_owned);
        name.push(".answers.json");
        Self { path: rules.with_file_name(name) }
    }

    /// The answers, the newest last; none where there is no file.
    pub(crate) fn read(&self) -> Result<Vec<Answered>, Failure> {
        Ok(read::read(&self.path)?.into_iter().map(Answered::from).collect())
    }

    /// Writes an answer in the place of an earlier one to the same, which comes back.
    pub(crate) fn put(&self, answered: &Answered) -> Result<Option<Entry>, AnswersError> {
        file::change(&self.path, |entries| {
            let before = take_out(entries, answered);
            entries.push(Entry::new(answered, Timestamp::now()));
            before
        })
    }

    /// Undoes that.
    pub(crate) fn put_back(&self, answered: &Answered, before: Option<Entry>) -> Result<(), AnswersError> {
        file::change(&self.path, |entries| {
            take_out(entries, answered);
            entries.extend(before);
        })
    }
}

/// What people answered to these rules, one line each.
pub(crate) fn shown(file: &Path, rules: &Rules) -> Result<Vec<String>, Failure> {
    let asks = |name: &str| rules.rules.iter().any(|rule| *rule.name == *name && rule.verdict == VerdictKind::Ask);
    let shown = |entry: &Entry| {
        let about = about(&entry.method, entry.subject.as_deref());
        let of = entry.server.as_deref().map_or_else(String::new, |server| format!(" of {}", visible(server)));
        let word = match entry.permission {
            Word::Allow => "allowed",
            Word::Deny => "denied",
        };
        let effect = if asks(&entry.rule) { "" } else { "; it has no effect: no rule of this name asks" };
        let (rule, by, at) = (visible(&entry.rule), visible(&entry.by), entry.at);
        format!("answer to rule \"{rule}\": {about}{of} {word} by {by} at {at}{effect}")
    };
    Ok(read::read(&AnswersFile::beside(file).path)?.iter().map(shown).collect())
}

/// The last answer to the same. There is more than one only where somebody wrote so.
fn take_out(entries: &mut Vec<Entry>, answered: &Answered) -> Option<Entry> {
    let is_meant = |entry: &mut Entry| Answered::from(entry.clone()).is_about_the_same(answered);
    entries.extract_if(.., is_meant).last()
}

impl Entry {
    fn new(answered: &Answered, at: Timestamp) -> Self {
        Self {
            rule: answered.rule.to_string(),
            method: answered.method.to_string(),
            subject: answered.subject.as_deref().map(str::to_owned),
            server: answered.server.as_deref().map(str::to_owned),
            permission: match answered.permission {
                Permission::Allow => Word::Allow,
                Permission::Deny => Word::Deny,
            },
            by: answered.by.to_string(),
            at: at.round(jiff::Unit::Second).unwrap_or(at),
        }
    }
}

impl From<Entry> for Answered {
    fn from(entry: Entry) -> Self {
        Self {
            rule: entry.rule.into(),
            method: entry.method.into(),
            subject: entry.subject.map(Into::into),
            server: entry.server.map(Into::into),
            permission: match entry.permission {
                Word::Allow => Permission::Allow,
                Word::Deny => Permission::Deny,
            },
            by: entry.by.into(),
        }
    }
}

#[cfg(test)]
mod tests;
