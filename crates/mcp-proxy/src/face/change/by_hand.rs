//! A held message in an editor. What is wrong with an edit is shown in the file and it is opened again;
//! a file that is saved as it was ends it. The work is not lost: what cannot be sent stays in its file.

use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use mcp_control::ClientError;
use mcp_control::api::Code;
use mcp_wire::layout::indented;
use serde_json::value::RawValue;
use tempfile::NamedTempFile;

use super::{Changed, json};
use crate::edit::editor;
use crate::failure::{Failure, exit, quoted};
use crate::report::say;

const INTRODUCTION: &str =
    "# This message goes on when you leave the editor. Lines that begin with `#`, up here, do not.
# Leave nothing, or change nothing, and it stays held.
";

pub(super) struct ByHand<'a> {
    changed: &'a Changed<'a>,
    file: NamedTempFile,
    before: String,
}

impl<'a> ByHand<'a> {
    pub(super) fn begin(changed: &'a Changed<'a>, message: &Bytes) -> Result<Self, Failure> {
        let before = indented(message);
        let mut file = tempfile::Builder::new().prefix("mcp-proxy-held-").suffix(".json").tempfile()?;
        write!(file, "{INTRODUCTION}\n{before}\n")?;
        file.flush()?;
        Ok(Self { changed, file, before })
    }

    /// Lets a person edit until the message is sent, or they give up.
    pub(super) fn edit(self, send: impl Fn(Box<RawValue>) -> Result<(), ClientError>) -> Result<(), Failure> {
        let mut last = self.before.clone();
        loop {
            editor::open(self.file.path())?;
            let edited = without_comments(&std::fs::read_to_string(self.file.path())?);
            if edited.is_empty() || edited == self.before.trim() {
                return Err(Failure::new(exit::NEGATIVE, "nothing was changed; the message is still held"));
            }
            let (failure, can_be_mended, is_gone) = match json(&edited).map(&send) {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => {
                    let (can_be_mended, is_gone) = (is_about_content(&error), is_gone(&error));
                    (self.changed.face.undecided(self.changed.sequence, error), can_be_mended, is_gone)
                }
                Err(not_json) => (Failure::usage(not_json), true, false),
            };
            // The same once more: whoever edits has given up, or nobody is there.
            if edited == last.trim() || !can_be_mended {
                return Err(self.keep(&edited, is_gone, failure));
            }
            self.show(&failure, &edited)?;
            last = edited;
        }
    }

    /// Puts what is wrong above the message.
    fn show(&self, failure: &Failure, edited: &str) -> Result<(), Failure> {
        let wrong = failure.what().lines().chain(failure.advice());
        let wrong: String = wrong.map(|line| format!("# {line}\n")).collect();
        Ok(std::fs::write(self.file.path(), format!("# It was not sent:\n{wrong}{INTRODUCTION}\n{edited}\n"))?)
    }

    /// Leaves the edit where it can be sent from, and says how.
    fn keep(self, edited: &str, is_gone: bool, failure: Failure) -> Failure {
        let Changed { face, sequence, command } = *self.changed;
        let number = format!("{} {sequence}", face.which());
        let written = std::fs::write(self.file.path(), format!("{edited}\n"));
        let kept = written.and_then(|()| self.file.keep().map_err(|error| error.error));
        let path = match kept {
            Ok((_, path)) => quoted(Path::new(&path)),
            Err(error) => {
                say(&format!("mcp-proxy: your edit is lost: {error}"));
                return failure;
            }
        };
        say(&match is_gone {
            true => format!(
                "mcp-proxy: your edit is kept in {path}; `mcp-proxy replay --live{number} --set PATH=VALUE` sends what was recorded once more, with changes"
            ),
            false => {
                format!("mcp-proxy: your edit is kept in {path}; `mcp-proxy {command}{number} - < {path}` sends it")
            }
        });
        failure
    }
}

/// Another edit helps where this one was refused, but not where the message is gone.
fn is_about_content(error: &ClientError) -> bool {
    let ClientError::Refused { fault, .. } = error else { return false };
    matches!(fault.code, Code::NotJsonRpc | Code::BadRequest | Code::TooLarge | Code::Denied)
}

fn is_gone(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { fault, .. } if fault.code == Code::NotHeld)
}

fn without_comments(text: &str) -> String {
    let lines: Vec<&str> = text.lines().skip_while(|line| line.trim().is_empty() || line.starts_with('#')).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn only_the_message_is_read_back() {
        assert_eq!(without_comments("# a\n\n# b\n\n{\n  \"x\": \"# y\"\n}\n"), "{\n  \"x\": \"# y\"\n}");
        assert_eq!(without_comments("# a\n \n"), "");
    }
}
