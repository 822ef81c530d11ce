//! `modify`: a held message goes on with other content.

use clap::Args;
use mcp_control::api::Modify;
use mcp_store::StateDir;

use super::change::{Change, Changed};
use super::decide::say_done;
use super::which::Acting;
use crate::failure::Failure;

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy modify [OPTIONS] [INSTANCE] MESSAGE --set PATH=VALUE...\n       mcp-proxy modify [OPTIONS] [INSTANCE] MESSAGE --edit\n       mcp-proxy modify [OPTIONS] [INSTANCE] MESSAGE -"
)]
pub(crate) struct ModifyArgs {
    /// The held message by its number, after the instance if several run; `-` after it takes the whole
    /// message from standard input
    #[arg(value_name = "MESSAGE", num_args = 1..=3, required = true)]
    words: Vec<String>,
    #[command(flatten)]
    change: Change,
    /// Leave HTTP headers as they came, even if they no longer agree with the message
    #[arg(long)]
    raw_headers: bool,
    /// Send it even if it is no JSON-RPC message any more
    #[arg(long)]
    not_json_rpc: bool,
    #[command(flatten)]
    acting: Acting,
}

pub(super) fn modify(args: &ModifyArgs, state: &StateDir) -> Result<(), Failure> {
    let mut words = args.words.clone();
    let from_input = words.pop_if(|word| word == "-").is_some();
    if from_input != args.change.is_none() {
        return Err(Failure::usage("what changes is said with --set PATH=VALUE, --edit, or `-` and standard input"));
    }
    let (face, sequence) = args.acting.attach_to_message(&words, state)?;
    let changed = Changed { face: &face, sequence, command: "modify" };
    args.change.carry_out(from_input, &changed, |raw| {
        let modify = Modify { raw, raw_headers: args.raw_headers, confirm: args.not_json_rpc };
        face.wait(face.client.modify(sequence, &modify)).map(drop)
    })?;
    say_done(&format!("#{sequence:03} went on, modified"))
}
