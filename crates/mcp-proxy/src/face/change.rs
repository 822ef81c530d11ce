//! A held message changed by whoever decides about it: by `--set`, in an editor or from standard input.

mod by_hand;

use std::io::Read;

use bytes::Bytes;
use clap::Args;
use mcp_control::ClientError;
use mcp_wire::framing::MESSAGE_BYTES_MAX;
use mcp_wire::visible::visible;
use serde_json::value::RawValue;

use super::{Face, show};
use crate::edit::{Assignment, assignment};
use crate::failure::{Failure, exit};
use by_hand::ByHand;

/// What is changed.
#[derive(Args)]
pub(super) struct Change {
    /// Put this value, as JSON or as text, where the path leads: `$.params.arguments.path=/tmp`
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<Assignment>,
    /// Open the message in $VISUAL or $EDITOR
    #[arg(long)]
    edit: bool,
}

/// Whose message it is that is changed, and by which command.
pub(super) struct Changed<'a> {
    pub face: &'a Face,
    pub sequence: u64,
    pub command: &'static str,
}

impl Change {
    pub(super) fn is_none(&self) -> bool {
        self.set.is_empty() && !self.edit
    }

    /// Changes the message, or takes another from standard input, and has it sent.
    pub(super) fn carry_out(
        &self,
        from_input: bool,
        changed: &Changed<'_>,
        send: impl Fn(Box<RawValue>) -> Result<(), ClientError>,
    ) -> Result<(), Failure> {
        if from_input {
            return changed.sent(standard_input()?, send);
        }
        let mut message = changed.held()?;
        for assignment in &self.set {
            if assignment.put(&mut message) == 0 {
                return Err(changed.no_place(assignment));
            }
        }
        match self.edit {
            true => ByHand::begin(changed, &message)?.edit(send),
            false => changed.sent(parsed(&message)?, send),
        }
    }
}

impl Changed<'_> {
    /// The message as it is held.
    fn held(&self) -> Result<Bytes, Failure> {
        let held = self.face.decide(self.sequence, self.face.client.held_message(self.sequence))?;
        show::bytes(&held.message)
            .ok_or_else(|| Failure::new(exit::CANNOT_RUN, "the instance did not give the message"))
    }

    fn sent(&self, raw: Box<RawValue>, send: impl Fn(Box<RawValue>) -> Result<(), ClientError>) -> Result<(), Failure> {
        send(raw).map_err(|error| self.face.undecided(self.sequence, error))
    }

    fn no_place(&self, assignment: &Assignment) -> Failure {
        let (sequence, which) = (self.sequence, self.face.which());
        Failure::usage(format!("#{sequence:03} has no place for {}", visible(&assignment.to_string())))
            .hint(format!("`mcp-proxy held{which} '#{sequence}'` shows what it says; --edit changes it freely"))
    }
}

/// A message as it leaves: JSON, and on one line, because a transport may end messages with the line.
pub(super) fn parsed(message: &[u8]) -> Result<Box<RawValue>, Failure> {
    let text = std::str::from_utf8(message).map_err(|_| Failure::usage("the message is not text in UTF-8"))?;
    json(text).map_err(Failure::usage)
}

pub(super) fn json(text: &str) -> Result<Box<RawValue>, String> {
    let not_json = |error: serde_json::Error| format!("this is not JSON: {error}");
    let raw: &RawValue = serde_json::from_str(text).map_err(not_json)?;
    // In JSON, line breaks stand between values only.
    let joined: String = raw.get().lines().map(str::trim_ascii).collect::<Vec<_>>().join(" ");
    RawValue::from_string(joined).map_err(not_json)
}

/// A whole message from standard input.
pub(super) fn standard_input() -> Result<Box<RawValue>, Failure> {
    let mut message = Vec::new();
    std::io::stdin().lock().take(MESSAGE_BYTES_MAX as u64 + 1).read_to_end(&mut message)?;
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(Failure::usage("standard input is longer than any message"));
    }
    parsed(&message)
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn a_message_is_json_on_one_line() {
        let line = |text: &str| json(text).map(|raw| raw.get().to_owned());
        assert_eq!(
            line(" {\n  \"a\": 1e400,\r\n\t\"b\": \"x  y\\n\"\n}\n").unwrap(),
            r#"{ "a": 1e400, "b": "x  y\n" }"#
        );
        assert!(line("").is_err() && line("{} {}").is_err() && line("{a: 1}").is_err());
    }
}
