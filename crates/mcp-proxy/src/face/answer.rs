//! `answer`: a held request gets its answer from here, and its peer never sees it.

use clap::Args;
use mcp_control::api::{Answer, ErrorAnswer};
use mcp_store::StateDir;
use serde_json::value::RawValue;

use super::change::{json, standard_input};
use super::decide::{error_answer, say_done};
use super::which::Acting;
use crate::failure::Failure;

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy answer [OPTIONS] [INSTANCE] MESSAGE --result JSON\n       mcp-proxy answer [OPTIONS] [INSTANCE] MESSAGE --error [CODE:]MESSAGE\n       mcp-proxy answer [OPTIONS] [INSTANCE] MESSAGE -"
)]
pub(crate) struct AnswerArgs {
    /// The held request by its number, after the instance if several run; `-` after it takes a whole
    /// JSON-RPC response from standard input
    #[arg(value_name = "MESSAGE", num_args = 1..=3, required = true)]
    words: Vec<String>,
    /// The result of the call
    #[arg(long, value_name = "JSON", conflicts_with = "error", value_parser = json, allow_hyphen_values = true)]
    result: Option<Box<RawValue>>,
    /// That it failed, with this text and perhaps a code before it
    #[arg(long, value_name = "[CODE:]MESSAGE", value_parser = error_answer, allow_hyphen_values = true)]
    error: Option<ErrorAnswer>,
    #[command(flatten)]
    acting: Acting,
}

pub(super) fn answer(args: &AnswerArgs, state: &StateDir) -> Result<(), Failure> {
    let mut words = args.words.clone();
    let from_input = words.pop_if(|word| word == "-").is_some();
    if usize::from(from_input) + usize::from(args.result.is_some()) + usize::from(args.error.is_some()) != 1 {
        return Err(Failure::usage(
            "an answer is exactly one of: --result JSON, --error TEXT, or `-` and standard input",
        ));
    }
    let (face, sequence) = args.acting.attach_to_message(&words, state)?;
    let raw = from_input.then(standard_input).transpose()?;
    let answer = Answer { result: args.result.clone(), error: args.error.clone(), raw };
    face.decide(sequence, face.client.answer(sequence, &answer))?;
    say_done(&format!("#{sequence:03} was answered"))
}
