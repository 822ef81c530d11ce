//! `modify`: a held message goes on with other content, by `--set`, in an editor or from standard input.

mod by_hand;

use std::io::Read;

use bytes::Bytes;
use clap::Args;
use mcp_control::ClientError;
use mcp_control::api::Modify;
use mcp_store::StateDir;
use mcp_wire::framing::MESSAGE_BYTES_MAX;
use mcp_wire::visible::visible;
use serde_json::value::RawValue;

use super::decide::say_done;
use super::which::Acting;
use super::{Face, show};
use crate::edit::{Assignment, assignment};
use crate::failure::{Failure, exit};
use by_hand::ByHand;

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy modify [OPTIONS] [INSTANCE] MESSAGE --set PATH=VALUE...\n       mcp-proxy modify [OPTIONS] [INSTANCE] MESSAGE --edit\n       mcp-proxy modify [OPTIONS] [INSTANCE] MESSAGE -"
)]
pub struct ModifyArgs {
    /// The held message by its number, after the instance if several run; `-` after it takes the whole
    /// message from standard input
    #[arg(value_name = "MESSAGE", num_args = 1..=3, required = true)]
    words: Vec<String>,
    /// Put this value, as JSON or as text, where the path leads: `$.params.arguments.path=/tmp`
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<Assignment>,
    /// Open the message in $VISUAL or $EDITOR
    #[arg(long)]
    edit: bool,
    /// Leave HTTP headers as they came, even if they no longer agree with the message
    #[arg(long)]
    raw_headers: bool,
    /// Send it even if it is no JSON-RPC message any more
    #[arg(long)]
    not_json_rpc: bool,
    #[command(flatten)]
    acting: Acting,
}

pub fn modify(args: &ModifyArgs, state: &StateDir) -> Result<(), Failure> {
    let mut words = args.words.clone();
    let from_input = words.pop_if(|word| word == "-").is_some();
    if from_input == (args.edit || !args.set.is_empty()) {
        return Err(Failure::usage("what changes is said with --set PATH=VALUE, --edit, or `-` and standard input"));
    }
    let (face, sequence) = args.acting.attach_to_message(&words, state)?;
    let sender = Sender { face: &face, sequence, raw_headers: args.raw_headers, confirm: args.not_json_rpc };
    if from_input {
        sender.send(standard_input()?).map_err(|error| face.undecided(sequence, error))?;
    } else {
        let mut message = sender.held()?;
        for assignment in &args.set {
            if assignment.put(&mut message) == 0 {
                return Err(Failure::usage(format!(
                    "#{sequence:03} has no place for {}",
                    visible(&assignment.to_string())
                ))
                .hint(format!(
                    "`mcp-proxy held{} '#{sequence}'` shows what it says; --edit changes it freely",
                    face.which()
                )));
            }
        }
        match args.edit {
            true => ByHand::begin(&face, sequence, &message)?.edit(|raw| sender.send(raw))?,
            false => sender.send(parsed(&message)?).map_err(|error| face.undecided(sequence, error))?,
        }
    }
    say_done(&format!("#{sequence:03} went on, modified"))
}

/// Where an edited message goes.
struct Sender<'a> {
    face: &'a Face,
    sequence: u64,
    raw_headers: bool,
    confirm: bool,
}

impl Sender<'_> {
    /// The message as it is held.
    fn held(&self) -> Result<Bytes, Failure> {
        let held = self.face.decide(self.sequence, self.face.client.held_message(self.sequence))?;
        show::bytes(&held.message)
            .ok_or_else(|| Failure::new(exit::CANNOT_RUN, "the instance did not give the message"))
    }

    fn send(&self, raw: Box<RawValue>) -> Result<(), ClientError> {
        let modify = Modify { raw, raw_headers: self.raw_headers, confirm: self.confirm };
        self.face.wait(self.face.client.modify(self.sequence, &modify)).map(drop)
    }
}

/// A message as it leaves: JSON, and on one line, because a transport may end messages with the line.
pub fn parsed(message: &[u8]) -> Result<Box<RawValue>, Failure> {
    let text = std::str::from_utf8(message).map_err(|_| Failure::usage("the message is not text in UTF-8"))?;
    json(text).map_err(Failure::usage)
}

pub fn json(text: &str) -> Result<Box<RawValue>, String> {
    let not_json = |error: serde_json::Error| format!("this is not JSON: {error}");
    let raw: &RawValue = serde_json::from_str(text).map_err(not_json)?;
    // In JSON, line breaks stand between values only.
    let joined: String = raw.get().lines().map(str::trim_ascii).collect::<Vec<_>>().join(" ");
    RawValue::from_string(joined).map_err(not_json)
}

/// A whole message from standard input.
pub fn standard_input() -> Result<Box<RawValue>, Failure> {
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
