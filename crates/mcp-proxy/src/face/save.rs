//! `save`: what an instance has recorded so far, as a session file.

use std::path::Path;

use clap::Args;
use mcp_control::api::Save;
use mcp_store::StateDir;

use super::decide::say_done;
use super::which::Acting;
use crate::failure::{Failure, quoted};

#[derive(Args)]
#[command(override_usage = "mcp-proxy save [OPTIONS] [INSTANCE] FILE")]
pub struct SaveArgs {
    /// Where to write it, after the instance if several run
    #[arg(value_name = "FILE", num_args = 1..=2, required = true)]
    words: Vec<String>,
    #[command(flatten)]
    acting: Acting,
}

pub fn save(args: &SaveArgs, state: &StateDir) -> Result<(), Failure> {
    let (file, instance) = match args.words.as_slice() {
        [instance, file] => (file, Some(instance.as_str())),
        [file, ..] => (file, None),
        [] => return Err(Failure::usage("expected a file")),
    };
    let face = args.acting.attach(instance, state)?;
    // The instance may have begun in another directory.
    let file = std::path::absolute(file)?;
    let file = file.to_str().ok_or_else(|| Failure::usage(format!("{} is no text", quoted(&file))))?;
    let saved = face.ask(face.client.save(&Save { file: file.to_owned() }))?;
    let files: Vec<String> = saved.files.iter().map(|file| quoted(Path::new(file))).collect();
    let messages = if saved.messages == 1 { "1 message".to_owned() } else { format!("{} messages", saved.messages) };
    say_done(&format!("{messages} saved to {}", files.join(", ")))
}
